//! Sums of a few elements of an axis, by tables: a product with a matrix that has a band of numbers.

use crate::tensor::arguments::call::Call;
use crate::tensor::position::gather::nearest;
use crate::tensor::reduce::statistics::along;
use crate::{Result, Tensor};

/// So many terms are spelled out, and more are a reduction.
const MOST_TERMS: usize = 8;

/// The axis as sums of a few of its elements: tables `[count, size]` say which, and how much each counts. Those that do not count
/// are nowhere in the result, whatever they are.
pub(super) fn banded(call: Call, x: &Tensor, axis: usize, index: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (rank, table) = (x.known()?.0.rank(), index.known()?.0);
    let (count, size) = (table[0], table[1]);
    let counted = |element: Tensor, weight: Tensor| weight.ne(0.0).where_(element * &weight, 0.0);
    if count > MOST_TERMS {
        let all = nearest(call, x, axis, &index.ravel())?.unflatten(axis as isize, [count, size]);
        let mut beside = vec![1; rank + 1];
        (beside[axis], beside[axis + 1]) = (count, size);
        return Ok(counted(all, weight.reshape(beside)).sum(axis as isize));
    }
    let term = |k: usize| {
        let element = nearest(call, x, axis, &index.select(0, k as isize))?;
        Ok(counted(element, weight.select(0, k as isize).reshape(along(rank, axis, size))))
    };
    summed((0..count).map(term), x)
}

/// The sum of what there is, or else `none`.
pub(super) fn summed(terms: impl Iterator<Item = Result<Tensor>>, none: &Tensor) -> Result<Tensor> {
    let sum = terms.reduce(|sum, term| Ok(sum? + term?)).transpose()?;
    Ok(sum.unwrap_or_else(|| none.clone()))
}
