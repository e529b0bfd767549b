//! Positions of factors that are no small fractions: numbers, computed in `F64`, and the elements at their whole parts.

use super::adjoint::{Curve, inner, outer};
use crate::tensor::make::create::counting;
use crate::tensor::reduce::statistics::along;
use crate::{DType, Result, Tensor};

/// The axis at `size` positions, each `1 / factor` after the one before it; of nearest elements, those at `edge`, in parts of a
/// position, from its beginning. May only be called while a call is composed.
pub(super) fn scaled(
    x: &Tensor,
    axis: usize,
    size: usize,
    factor: f64,
    (curve, edge): (Curve, f64),
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let last = shape[axis] as i64 - 1;
    let number = counting(size).cast(DType::F64);
    let at = |index: Tensor| x.index_select(axis as isize, index.cast(DType::I64).clamp(0, last));
    if curve == Curve::Nearest {
        return Ok(at(((number + edge) / factor).floor()));
    }
    let position = (number + 0.5) / factor - 0.5;
    let beside = |line: Tensor| line.cast(dtype).reshape(along(shape.rank(), axis, size));
    if curve == Curve::Linear {
        let position = position.clamp(0.0, last as f64);
        let low = position.floor();
        let weight = beside(&position - &low);
        let [low, high] = [at(low), at(position.ceil())];
        // An element alone may be infinite.
        return Ok(weight.eq(0.0).where_(&low, &low * (1.0 - &weight) + high * &weight));
    }
    let base = position.floor();
    let far = beside(position - &base);
    let near = 1.0 - &far;
    let weights = [outer(&far), inner(&far), inner(&near), outer(&near)];
    let parts = (-1..).zip(&weights).map(|(offset, weight)| at(&base + offset) * weight);
    Ok(parts.reduce(|sum, part| sum + part).unwrap_or_else(|| x.clone()))
}
