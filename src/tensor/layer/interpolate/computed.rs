//! Positions that are computed numbers: tables of the elements beside them and of their weights, one for each axis.

use super::adjoint::{Curve, inner, outer};
use super::banded::summed;
use super::positions::{Positions, numerators};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::position::gather::nearest;
use crate::tensor::reduce::statistics::along;
use crate::{DType, Result, Tensor};

/// The axis at `size` positions, each `1 / factor` after the one before it; of nearest elements, those at `edge`, in parts of a
/// position, from its beginning. May only be called while a call is composed.
pub(super) fn scaled(
    call: Call,
    x: &Tensor,
    axis: usize,
    size: usize,
    factor: f64,
    (curve, edge): (Curve, f64),
) -> Result<Tensor> {
    let last = x.known()?.0[axis] as f64 - 1.0;
    let number = counting(size).cast(DType::F64);
    let position = match curve {
        Curve::Nearest => (number + edge) / factor,
        Curve::Linear => ((number + 0.5) / factor - 0.5).clamp(0.0, last),
        Curve::Cubic => (number + 0.5) / factor - 0.5,
    };
    let before = position.floor();
    let far = position - &before;
    between(call, x, axis, (&before.cast(DType::I64), &far), curve)
}

/// The axis at positions that are quotients of integers.
pub(super) fn at_quotients(
    call: Call,
    x: &Tensor,
    axis: usize,
    positions: Positions,
    curve: Curve,
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let unit = positions.unit as f64;
    let numerators = match curve {
        Curve::Linear => numerators(positions).clamp(0.0, (shape[axis] as f64 - 1.0) * unit),
        Curve::Nearest | Curve::Cubic => numerators(positions),
    };
    let before = (&numerators / unit).floor();
    let far = (numerators - &before * unit).cast(dtype) * (1.0 / unit);
    between(call, x, axis, (&before.cast(DType::I64), &far), curve)
}

/// The axis at positions of which each lies so far behind an element, in parts of the distance to the next one.
fn between(
    call: Call,
    x: &Tensor,
    axis: usize,
    (before, far): (&Tensor, &Tensor),
    curve: Curve,
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let at = |offset: i64| nearest(call, x, axis, &(before + offset));
    if curve == Curve::Nearest {
        return at(0);
    }
    let far = far.cast(dtype).reshape(along(shape.rank(), axis, before.known()?.0.elements()));
    let near = 1.0 - &far;
    if curve == Curve::Linear {
        let low = at(0)?;
        // An element alone may be infinite.
        return Ok(far.eq(0.0).where_(&low, &low * near + at(1)? * &far));
    }
    let weights = [outer(&far), inner(&far), inner(&near), outer(&near)];
    let term = |(offset, weight)| Ok(at(offset)? * weight);
    summed((-1..).zip(&weights).map(term), x)
}
