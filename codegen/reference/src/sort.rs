//! Rows in order.

use std::cmp::Ordering;

use crate::extents::{Extents, elements, strides};
use crate::values::for_any;
use crate::{Element, Values};

/// What is sorted how.
#[derive(Clone, Copy)]
pub struct Sort {
    /// Along which axis.
    pub axis: usize,
    /// How many of the first elements are wanted.
    pub extent: usize,
    /// The largest first.
    pub descending: bool,
    /// Where the elements come from is wanted, as `I64`, not the elements.
    pub is_position: bool,
}

/// The first elements of each row in order, or where they come from. Equal ones stay in their order; -0 equals 0, and NaN is
/// above all numbers.
///
/// ```
/// use lazuli_reference::{Sort, Values, sort};
/// let largest = Sort { axis: 0, extent: 2, descending: true, is_position: false };
/// assert_eq!(sort(&Values::I32(vec![1, 3, 2]), &[3], largest), Values::I32(vec![3, 2]));
/// ```
pub fn sort(x: &Values, shape: &[usize], sort: Sort) -> Values {
    let (inner, count) = (strides(shape)[sort.axis], shape[sort.axis]);
    let mut first = Extents::from_slice(shape);
    first[sort.axis] = sort.extent;
    let mut sources = vec![0usize; elements(&first)];
    let mut places = vec![0i64; sources.len()];
    // Of any type: what sorts is compiled once.
    let order: Box<dyn Fn(usize, usize) -> Ordering + '_> =
        for_any!(x, x => Box::new(move |a: usize, b: usize| compare(x[a], x[b])));
    for row in 0..elements(shape).checked_div(count).unwrap_or(0) {
        let (outer, column) = (row / inner, row % inner);
        let source = |place: usize| (outer * count + place) * inner + column;
        let mut places_of_row: Vec<usize> = (0..count).collect();
        places_of_row.sort_by(|&a, &b| {
            let order = order(source(a), source(b));
            if sort.descending { order.reverse() } else { order }
        });
        for (rank, &place) in places_of_row.iter().take(sort.extent).enumerate() {
            let target = (outer * sort.extent + rank) * inner + column;
            (sources[target], places[target]) = (source(place), place as i64);
        }
    }
    match sort.is_position {
        false => for_any!(x, x => Element::wrap(sources.into_iter().map(|at| x[at]).collect())),
        true => Values::I64(places),
    }
}

/// NaN is above all numbers, and equal to itself.
fn compare<T: Element>(a: T, b: T) -> Ordering {
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}
