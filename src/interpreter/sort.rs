//! Rows in order.

use std::cmp::Ordering;

use super::values::{Element, Values, for_any};
use crate::Shape;
use crate::graph::op::Sorted;

/// What is sorted how; see `Op::Sort`.
#[derive(Clone, Copy)]
pub(super) struct Sort {
    pub(super) axis: usize,
    pub(super) extent: usize,
    pub(super) descending: bool,
    pub(super) result: Sorted,
}

/// The first elements of each row in order, or where they come from.
pub(super) fn sort(x: &Values, shape: &Shape, sort: Sort) -> Values {
    let (inner, count) = (shape.strides()[sort.axis], shape[sort.axis]);
    let mut sources = vec![0usize; shape.with_extent(sort.axis, sort.extent).elements()];
    let mut places = vec![0i64; sources.len()];
    for_any!(x, x => for row in 0..shape.elements().checked_div(count).unwrap_or(0) {
        let (outer, column) = (row / inner, row % inner);
        let source = |place: usize| (outer * count + place) * inner + column;
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| {
            let order = compare(x[source(a)], x[source(b)]);
            if sort.descending { order.reverse() } else { order }
        });
        for (rank, &place) in order.iter().take(sort.extent).enumerate() {
            let target = (outer * sort.extent + rank) * inner + column;
            (sources[target], places[target]) = (source(place), place as i64);
        }
    });
    match sort.result {
        Sorted::Values => for_any!(x, x => Element::wrap(sources.into_iter().map(|at| x[at]).collect())),
        Sorted::Positions => Values::I64(places),
    }
}

/// NaN is above all numbers, and equal to itself.
fn compare<T: Element>(a: T, b: T) -> Ordering {
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{apply, same, tensor};
    use super::*;
    use crate::graph::op::Op;

    #[test]
    fn rows_in_order() {
        let x = tensor(&[3.0f32, f32::NAN, 0.0, -0.0, 3.0, f32::INFINITY, f32::NAN, -1.0], [2, 4]);
        let op = |axis, extent, descending, result| Op::Sort { axis, extent, descending, result };
        let values: Vec<f32> = apply(op(1, 4, false, Sorted::Values), std::slice::from_ref(&x), [2, 4]);
        same(&values, &[0.0, -0.0, 3.0, f32::NAN, -1.0, 3.0, f32::INFINITY, f32::NAN]);
        let places: Vec<i64> = apply(op(1, 3, true, Sorted::Positions), std::slice::from_ref(&x), [2, 3]);
        assert_eq!(places, [1, 0, 2, 2, 1, 0]);
        let columns: Vec<i64> = apply(op(0, 1, false, Sorted::Positions), &[x], [1, 4]);
        assert_eq!(columns, [0, 1, 0, 1]);
    }
}
