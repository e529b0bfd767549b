//! Resizing that averages what a position stands for: the curve is as much wider as the result is smaller.

use super::adjoint::Curve;
use super::banded::banded;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Shape, Tensor};

/// The axis in another size: each position is the mean of the elements around it, by their distance in positions of the result, or in
/// elements if these are farther apart. May only be called while a call is composed.
pub(super) fn smoothed(
    call: Call,
    x: &Tensor,
    axis: usize,
    size: usize,
    (curve, align_corners): (Curve, bool),
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let extent = shape[axis];
    if size == extent {
        return Ok(x.clone());
    }
    let step = match (align_corners, size) {
        (true, 1) => 0.0,
        (true, _) => (extent as f64 - 1.0) / (size as f64 - 1.0),
        (false, _) => extent as f64 / size as f64,
    };
    let width = step.max(1.0);
    let support = width * if curve == Curve::Linear { 1.0 } else { 2.0 };
    // At most so many elements are nearer than the support.
    let count = ((2.0 * support).ceil() as usize).clamp(1, extent);
    call.needs_addressable(&Shape::from([size, count]))?;
    let centre = (counting(size).cast(DType::F64) + 0.5) * step;
    let bound = |side: f64| (&centre + (side * support + 0.5)).floor().clamp(0.0, extent as f64);
    let (first, end) = (bound(-1.0), bound(1.0));
    // [count, size]
    let place = first + counting(count).cast(DType::F64).unsqueeze(1);
    let distance = (&place - &centre + 0.5) / width;
    let weight = place.lt(end).where_(at(curve, &distance.abs()), 0.0);
    let weight = (&weight / weight.sum_keepdim(0)).cast(dtype);
    banded(call, x, axis, &place.cast(DType::I64), &weight)
}

/// How much an element counts by its distance. Cubic is Keys' curve with a slope of -1/2, as PyTorch's and Pillow's here.
fn at(curve: Curve, distance: &Tensor) -> Tensor {
    if curve == Curve::Linear {
        return (1.0 - distance).maximum(0.0);
    }
    let near = (distance * 1.5 - 2.5) * distance.square() + 1.0;
    let far = ((distance - 5.0) * distance + 8.0) * distance * -0.5 + 2.0;
    distance.lt(1.0).where_(near, distance.lt(2.0).where_(far, 0.0))
}
