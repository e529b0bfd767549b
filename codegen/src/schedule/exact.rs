//! Values that a narrow type holds as they are.

use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, UnaryOp};

/// Whether every element of the value is one of the narrow type, so that storing it there rounds nothing.
pub fn is_exact(kernel: &Kernel, value: ValueId, dtype: DType) -> bool {
    let of = |value: ValueId| is_exact(kernel, value, dtype);
    match &kernel.value(value).op {
        ValueOp::Load { buffer, .. } => kernel.buffers[buffer.index()].dtype == dtype,
        ValueOp::Cast(to, _) => *to == dtype,
        ValueOp::Literal(scalar) => scalar.as_f64() == 0.0,
        ValueOp::Select(_, a, b) => of(*a) && of(*b),
        ValueOp::Unary(UnaryOp::Relu | UnaryOp::Neg | UnaryOp::Abs, a) => of(*a),
        ValueOp::Binary(BinaryOp::Maximum | BinaryOp::Minimum, a, b) => of(*a) && of(*b),
        _ => false,
    }
}
