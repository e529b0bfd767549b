//! Elements at positions that are values.

use crate::error::broken;
use crate::extents::{elements, strides};
use crate::values::for_any;
use crate::{Element, Error, Result, Values};

/// At each position of the index, the element of x at that position but for the axis, where the index says which.
/// `from` are the extents of x, `to` those of the index.
///
/// # Errors
/// [`Error::IndexOutOfRange`]; [`Error::Broken`] if the index is of no integers.
///
/// ```
/// use lazuli_reference::{Values, gather};
/// let gathered = gather(&Values::F32(vec![1.0, 2.0]), &[2], &Values::U8(vec![1, 1, 0]), &[3], 0);
/// assert_eq!(gathered, Ok(Values::F32(vec![2.0, 2.0, 1.0])));
/// ```
pub fn gather(x: &Values, from: &[usize], index: &Values, to: &[usize], axis: usize) -> Result<Values> {
    let extent = from[axis];
    let (inner, count) = (strides(to)[axis], to[axis]);
    let mut sources = Vec::with_capacity(elements(to));
    for (n, index) in integers(index)?.into_iter().enumerate() {
        let position = usize::try_from(index).ok().filter(|&position| position < extent);
        let position = position.ok_or(Error::IndexOutOfRange { index, axis, extent })?;
        let outer = n / (inner * count);
        sources.push((outer * extent + position) * inner + n % inner);
    }
    Ok(for_any!(x, x => Element::wrap(sources.into_iter().map(|at| x[at]).collect())))
}

pub(crate) fn integers(values: &Values) -> Result<Vec<i64>> {
    let is_index = values.dtype().is_int();
    let integers = values.integers().filter(|_| is_index);
    integers.ok_or_else(|| broken(format!("{} is no index", values.dtype())))
}
