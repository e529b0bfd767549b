//! Reading at positions that are values.

use super::operand::{Operand, broken};
use super::values::{Element, Values, for_any};
use crate::graph::Node;
use crate::{Error, Result};

/// At each position of the index, the element of x at that position but for the axis, where the index says which.
pub(super) fn gather(node: &Node, axis: usize, x: &Operand<'_>, index: &Values) -> Result<Values> {
    let extent = x.shape[axis];
    let (inner, count) = (node.shape.strides()[axis], node.shape[axis]);
    let mut sources = Vec::with_capacity(node.shape.elements());
    for (n, index) in integers(index)?.into_iter().enumerate() {
        let position = usize::try_from(index).ok().filter(|&position| position < extent);
        let Some(position) = position else {
            let (op, location) = (node.origin, node.location);
            return Err(Error::IndexOutOfRange { op, index, axis, extent, location });
        };
        let outer = n / (inner * count);
        sources.push((outer * extent + position) * inner + n % inner);
    }
    Ok(for_any!(&*x.values, x => Element::wrap(sources.into_iter().map(|at| x[at]).collect())))
}

pub(super) fn integers(values: &Values) -> Result<Vec<i64>> {
    let is_index = values.dtype().is_int();
    let integers = values.integers().filter(|_| is_index);
    integers.ok_or_else(|| broken(format!("{} is no index", values.dtype())))
}
