//! In which dtype and shape operands meet.

use smallvec::SmallVec;

use crate::graph::op::ConstantRole;
use crate::tensor::arguments::call::{Call, list};
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::{DType, Result, Shape, Tensor};

/// In which dtype operands meet.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Their promoted dtype.
    Promoted,
    /// Their promoted dtype, which must hold the numbers: what is chosen or limited does not wrap.
    Held,
    /// Their promoted dtype, `F32` if that is no float.
    Float,
    /// Their promoted dtype, which must be a float.
    Floats,
    /// Their promoted dtype, which must not be `Bool`.
    Numbers,
    /// Each is asked whether it is nonzero.
    Truth,
}

impl Rule {
    /// The dtype in which the operands meet.
    pub(crate) fn dtype(self, call: Call, operands: &[Operand]) -> Result<DType> {
        let promoted = result_type(operands)?;
        let got = || list(&operands.iter().map(described).collect::<SmallVec<[String; 3]>>());
        match self {
            Rule::Promoted => Ok(promoted),
            Rule::Held => holds(call, promoted, operands).map(|()| promoted),
            Rule::Float => Ok(float_for(promoted)),
            Rule::Truth => Ok(DType::Bool),
            Rule::Floats if promoted.is_float() => Ok(promoted),
            Rule::Floats if operands.len() == 1 => call.fail(format!(
                "needs a float tensor, got {}; cast it first, such as with .cast(DType::F32)",
                got()
            )),
            Rule::Floats => call.fail(format!(
                "needs float tensors, got {}; cast one first, such as with .cast(DType::F32)",
                got()
            )),
            Rule::Numbers if promoted == DType::Bool => call.fail(format!(
                "not defined for bools, got {}; cast first, such as with .cast(DType::I64)",
                got()
            )),
            Rule::Numbers => Ok(promoted),
        }
    }
}

/// An error unless the dtype holds all numbers among the operands.
fn holds(call: Call, dtype: DType, operands: &[Operand]) -> Result<()> {
    operands.iter().try_for_each(|operand| match operand {
        Operand::Number(number) => number.held(call, dtype).map(|_| ()),
        Operand::Tensor(_) => Ok(()),
    })
}

/// An operand in an error's message.
pub(super) fn described(operand: &Operand) -> String {
    match operand {
        Operand::Tensor(tensor) => format!("{} {}", tensor.node.dtype, tensor.node.shape),
        Operand::Number(number) => format!("the number {}", number.to_scalar(number.dtype())),
    }
}

/// The operand as a tensor of that dtype, of its own shape.
pub(crate) fn cast(call: Call, operand: Operand, dtype: DType) -> Result<Tensor> {
    match operand {
        Operand::Tensor(tensor) if tensor.node.dtype == dtype => tensor.validity().map(|()| tensor),
        Operand::Tensor(tensor) => call.cast(&tensor, dtype),
        Operand::Number(number) => call.constant(number.to_scalar(dtype), ConstantRole::Argument),
    }
}

/// The operand as a tensor of that dtype and shape.
pub(crate) fn unified(call: Call, operand: Operand, dtype: DType, shape: &Shape) -> Result<Tensor> {
    match operand {
        // Cast before broadcasting: there are fewer elements.
        Operand::Tensor(tensor) => call.expand(&call.cast(&tensor, dtype)?, shape),
        Operand::Number(number) => call.filled(number.to_scalar(dtype), ConstantRole::Argument, shape),
    }
}

/// The dtype in which real functions take a dtype: PyTorch's default float for what is no float.
pub(crate) fn float_for(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}
