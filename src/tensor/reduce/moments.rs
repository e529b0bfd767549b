//! Means and variances: sums that are divided by numbers of elements.

use crate::graph::op::{Axes, ConstantRole};
use crate::tensor::arguments::call::Call;
use crate::{BinaryOp, ReduceOp, Result, Scalar, Tensor};

/// The mean along the axes; of 16-bit floats before it is rounded, so that the sum does not overflow.
pub(crate) fn mean(call: Call, x: &Tensor, axes: &Axes, keepdim: bool) -> Result<Tensor> {
    let sum = call.reduce(ReduceOp::Sum, x, axes, keepdim)?;
    divided(call, &sum, count(x, axes)?)
}

/// The squared deviations from the mean along the axes, over so many elements less than there are.
pub(crate) fn variance(
    call: Call,
    x: &Tensor,
    axes: &Axes,
    correction: usize,
    keepdim: bool,
) -> Result<Tensor> {
    let deviations = call.reduce(ReduceOp::SquaredDeviations, x, axes, keepdim)?;
    divided(call, &deviations, count(x, axes)?.saturating_sub(correction))
}

fn count(x: &Tensor, axes: &Axes) -> Result<usize> {
    let (shape, _) = x.known()?;
    Ok(axes.iter().fold(1, |count, &axis| count.saturating_mul(shape[axis])))
}

/// By a number that follows from the shape, perhaps from the batch size: another one is not another kernel.
fn divided(call: Call, x: &Tensor, count: usize) -> Result<Tensor> {
    let (_, dtype) = x.known()?;
    let count = Scalar::from_i64(dtype, i64::try_from(count).unwrap_or(i64::MAX));
    call.binary(BinaryOp::Div, x, &call.constant(count, ConstantRole::Argument)?)
}
