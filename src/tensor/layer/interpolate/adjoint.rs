//! What goes back through resizing.
//!
//! Along an axis, what is read at positions that are quotients of integers is read for neighbours, of which the first is at
//! a quotient as well: going back is resizing the other way, from windows with a weight for each of their elements.

use super::banded::banded;
use super::positions::{Positions, elements, numerators, whole_remainders};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Shape, Tensor};

/// How much an element counts by its distance from a position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    /// The element whose part of the axis the position is in, alone.
    Nearest,
    Linear,
    Cubic,
}

impl Curve {
    /// The distance from which on elements do not count.
    fn reach(self) -> i64 {
        match self {
            Curve::Nearest => 0,
            Curve::Linear => 1,
            Curve::Cubic => 2,
        }
    }

    fn at(self, distance: &Tensor) -> Tensor {
        let distance = distance.abs();
        match self {
            Curve::Nearest => Tensor::ones((), distance.node.dtype),
            Curve::Linear => (1.0 - distance).maximum(0.0),
            Curve::Cubic => {
                let beyond = distance.lt(2.0).where_(outer(&(&distance - 1.0)), 0.0);
                distance.le(1.0).where_(inner(&distance), beyond)
            }
        }
    }
}

/// Keys' curve with a slope of -3/4, as PyTorch's, up to a distance of 1.
pub(in crate::tensor::layer) fn inner(distance: &Tensor) -> Tensor {
    (distance * 1.25 - 2.25) * distance.square() + 1.0
}

/// The same, so far beyond a distance of 1.
pub(in crate::tensor::layer) fn outer(beyond: &Tensor) -> Tensor {
    let distance = beyond + 1.0;
    ((&distance * -0.75 + 3.75) * &distance - 6.0) * &distance + 3.0
}

/// What reaches the elements of an axis, so many, of what reaches it at some positions.
pub(super) fn returned(
    call: Call,
    g: &Tensor,
    axis: usize,
    extent: usize,
    positions: Positions,
    curve: Curve,
) -> Result<Tensor> {
    let Positions { start, step, unit, size } = positions;
    let (shape, dtype) = g.known()?;
    let rank = shape.rank();
    let mut border = vec![(0, 0); rank];
    if positions.are_all_of(extent) {
        return Ok(g.clone());
    }
    if step == 0 {
        border[axis] = (0, extent as isize - 1);
        return Ok(g.sum_keepdim(axis as isize).pad(&border, 0));
    }
    // How far positions that read an element lie behind it, in parts of a unit.
    let (least, most) = match curve.reach() {
        0 => (0, unit - 1),
        reach => (1 - reach * unit, reach * unit - 1),
    };
    let count = (most - least) / step + 1;
    let firsts = Positions { start: least - start + step - 1, step: unit, unit: step, size: extent };
    if !firsts.are_regular() {
        let [element, tap] = [extent, count as usize].map(|count| counting(count).cast(DType::F64));
        // [count, extent]
        let index = (numerators(firsts) / step as f64).floor() + tap.unsqueeze(1);
        let behind = &index * step as f64 + start as f64 - &element * unit as f64;
        let weight = match curve {
            Curve::Nearest => behind.le(most as f64).cast(dtype),
            _ => with_ends(curve, &(behind.cast(dtype) * (1.0 / unit as f64)), element),
        };
        let is_one = index.ge(0.0) & index.lt(size as f64);
        return banded(call, g, axis, &index.cast(DType::I64), &is_one.where_(weight, 0.0));
    }
    // The first of them has the index `(first + unit * element) / step`; where it is none of the axis, zeros are before it.
    let first = firsts.start;
    let before = (-first.div_euclid(step)).max(0);
    let first = first + before * step;
    let reach = ((extent as i64 - 1) * unit + first) / step + count;
    border[axis] = (before as isize, (reach - before - size as i64) as isize);
    let windows = g.pad(&border, 0).unfold(axis as isize, count as usize, 1);
    let windows = elements(call, &windows, axis, Positions { start: first, ..firsts }, 0)?;
    // [extent, count]
    let rest = whole_remainders(first, unit, step, extent)?;
    let behind = counting(count as usize) * step + (least + step - 1) - rest.unsqueeze(1);
    let mut along: Vec<usize> = vec![1; rank + 1];
    (along[axis], along[rank]) = (extent, count as usize);
    let along = Shape::from(along);
    if curve == Curve::Nearest {
        return Ok(behind.le(most).reshape(along).where_(windows, 0).sum(-1));
    }
    let distance = behind.cast(dtype) * (1.0 / unit as f64);
    let weight = with_ends(curve, &distance, counting(extent).unsqueeze(1)).reshape(along);
    // What does not count may be infinite.
    Ok(weight.ne(0.0).where_(windows * &weight, 0).sum(-1))
}

/// How much elements count by their distance from positions: the first and the last one are what is beyond them as well.
fn with_ends(curve: Curve, distance: &Tensor, element: Tensor) -> Tensor {
    let last = element.node.shape.elements() as i64 - 1;
    [(0, 1.0), (last, -1.0)].into_iter().fold(curve.at(distance), |weight, (end, side)| {
        let beyond = (1..=curve.reach()).map(|far| curve.at(&(distance + side * far as f64)));
        let all = beyond.fold(weight.clone(), |sum, beyond| sum + beyond);
        element.eq(end).where_(all, weight)
    })
}
