//! What a contraction combines in the place of products, once an element of each factor is there.

use super::emitter::Emitter;
use super::stmt::Expr;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::Lift;
use crate::{BinaryOp, DType, ReduceOp, UnaryOp};

/// A partial result of `dtype`, combined with what the factors that are defined are lifted to. Products are added as those
/// of matrices are: rounded once.
pub(super) fn with_lifted(emitter: &mut Emitter, lift: Lift, dtype: DType, partial: Expr) -> Expr {
    let kernel = emitter.kernel;
    let value = kernel.value(lift.value);
    let adds = lift.op == ReduceOp::Sum && dtype.is_float() && value.dtype == dtype;
    match value.op {
        ValueOp::Binary(BinaryOp::Mul, a, b) if adds => {
            let (a, b) = (emitter.value(a), emitter.value(b));
            Expr::MulAdd(dtype, Box::new([a, b, partial]))
        }
        ValueOp::Unary(UnaryOp::Square, a) if adds => {
            let a = emitter.value(a);
            let a = emitter.named(a, dtype);
            Expr::MulAdd(dtype, Box::new([a.clone(), a, partial]))
        }
        _ => {
            let own = emitter.value(lift.value);
            combined(lift.op, dtype, partial, cast(own, value.dtype, dtype))
        }
    }
}

/// Two partial results, of a monoid that has one operation.
pub(super) fn combined(op: ReduceOp, dtype: DType, a: Expr, b: Expr) -> Expr {
    match op.plain() {
        Some(op) => Expr::Binary(op, dtype, Box::new(a), Box::new(b)),
        None => b,
    }
}

/// An element of a factor, in whose dtype it is packed, as the value that it is of.
pub(super) fn of_factor(kernel: &Kernel, value: ValueId, packed: DType, element: Expr) -> Expr {
    cast(element, packed, kernel.value(value).dtype)
}

pub(super) fn cast(operand: Expr, from: DType, to: DType) -> Expr {
    if from == to { operand } else { Expr::Cast { from, to, operand: Box::new(operand) } }
}
