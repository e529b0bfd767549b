//! Rows in order, and what follows from it: the largest elements, medians. One kernel puts rows in order, with what
//! is computed element by element before and after it; elements and positions come together.

use super::gather::{gathered_within, looked_up_within};
use super::rows::Rows;
use crate::graph::op::{Op, Sorted};
use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::{Call, is_of_scalar};
use crate::tensor::arguments::promotion::result_type;
use crate::{DType, Operand, Result, Tensor};

impl Tensor {
    /// The elements along an axis in ascending or descending order, and where they come from (`I64`). PyTorch's `sort`, and
    /// always stable: equal elements stay in their order. -0 equals 0, and NaN is the largest.
    ///
    /// Of every dtype; invalid for an axis out of range. If only one of the two is used, only that one is computed.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, f32::NAN, 2.0], [4]);
    /// let (values, positions) = x.sort(0, false);
    /// assert_eq!(values.to_vec::<f32>()?[..3], [1.0, 2.0, 3.0]);
    /// assert_eq!(positions.to_vec::<i64>()?, [1, 3, 0, 2]);
    /// assert_eq!(x.sort(0, true).1.to_vec::<i64>()?, [2, 0, 3, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self, axis: isize, descending: bool) -> (Tensor, Tensor) {
        let call = Call::here("sort");
        pair(call, |result| sorted(call, self, axis, None, descending, result))
    }

    /// Where the elements along an axis come from if they are in order: the positions of [`Tensor::sort`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2i32, 1, 3, 9, 8, 9], [2, 3]);
    /// assert_eq!(x.argsort(1, false).to_vec::<i64>()?, [1, 0, 2, 1, 0, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn argsort(&self, axis: isize, descending: bool) -> Tensor {
        let call = Call::here("argsort");
        Tensor::or_invalid(sorted(call, self, axis, None, descending, Sorted::Positions))
    }

    /// The elements along the first axis in ascending order. PyTorch's `msort`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3i32, 1, 2, 5], [2, 2]);
    /// assert_eq!(x.msort().to_vec::<i32>()?, [2, 1, 3, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn msort(&self) -> Tensor {
        let call = Call::here("msort");
        Tensor::or_invalid(sorted(call, self, 0, None, false, Sorted::Values))
    }

    /// The `k` largest (or smallest) elements along an axis, the largest (the smallest) first, and where they come from
    /// (`I64`). Of equal ones the first are taken; NaN is the largest.
    ///
    /// Invalid if there are fewer than `k`. What is beyond the first `k` is neither sorted nor stored.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.1f32, 0.7, 0.2, 0.7], [4]);
    /// let (values, positions) = x.topk(2, -1, true);
    /// assert_eq!(values.to_vec::<f32>()?, [0.7, 0.7]);
    /// assert_eq!(positions.to_vec::<i64>()?, [1, 3]);
    /// assert_eq!(x.topk(1, -1, false).1.to_vec::<i64>()?, [0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> (Tensor, Tensor) {
        let call = Call::here("topk");
        pair(call, |result| sorted(call, self, axis, Some(k), largest, result))
    }

    /// The `k`-th smallest element along an axis, counted from 1, and where it is (`I64`), without the axis.
    ///
    /// Invalid for a `k` of 0, and if there are fewer than `k`. Of equal ones the first has the lowest number.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (value, position) = Tensor::from_slice(&[5i32, 3, 8, 1], [4]).kthvalue(2, 0);
    /// assert_eq!((value.item::<i32>()?, position.item::<i64>()?), (3, 1));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn kthvalue(&self, k: usize, axis: isize) -> (Tensor, Tensor) {
        let call = Call::here("kthvalue");
        pair(call, |result| {
            let Some(last) = k.checked_sub(1) else { return call.fail("k counts from 1, got 0") };
            let first = sorted(call, self, axis, Some(k), false, result)?;
            Ok(at(&first, self, axis, last))
        })
    }

    /// The median along the axes, the lower one of two, and where it is (`I64`), without the axes. NaN, where one is. Along several
    /// axes the position counts through them in row-major order; for the median of all elements, `..`.
    ///
    /// Invalid for an axis out of range, given twice or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (value, position) = Tensor::from_slice(&[5.0f32, 3.0, 8.0, 1.0], [4]).median(0);
    /// assert_eq!((value.item::<f32>()?, position.item::<i64>()?), (3.0, 1));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn median(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, axes) = (Call::here("median"), axes.into());
        pair(call, |result| Ok(median_of(call, self, &axes, result, false)?.1))
    }

    /// [`Tensor::median`] that keeps the axes, with extent 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[5.0f32, 3.0, 8.0, 1.0], [2, 2]);
    /// let centred = &x - x.median_keepdim(1).0;
    /// assert_eq!(centred.to_vec::<f32>()?, [2.0, 0.0, 7.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn median_keepdim(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, axes) = (Call::here("median_keepdim"), axes.into());
        pair(call, |result| {
            let (rows, median) = median_of(call, self, &axes, result, false)?;
            Ok(rows.with_axes(&median))
        })
    }

    /// The median along the axes of what is not NaN, the lower one of two, and where it is (`I64`), without the axes, as
    /// [`Tensor::median`].
    ///
    /// Invalid for an axis out of range, given twice or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (value, _) = Tensor::from_slice(&[5.0f32, f32::NAN, 8.0, 1.0], [4]).nanmedian(0);
    /// assert_eq!(value.item::<f32>()?, 5.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nanmedian(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, axes) = (Call::here("nanmedian"), axes.into());
        pair(call, |result| Ok(median_of(call, self, &axes, result, true)?.1))
    }

    /// [`Tensor::nanmedian`] that keeps the axes, with extent 1.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let (value, position) = Tensor::from_slice(&[5.0f32, f32::NAN, 8.0, 1.0], [2, 2]).nanmedian_keepdim(..);
    /// assert_eq!((value.shape()?, position.shape()?), (Shape::from([1, 1]), Shape::from([1, 1])));
    /// assert_eq!((value.item::<f32>()?, position.item::<i64>()?), (5.0, 0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nanmedian_keepdim(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, axes) = (Call::here("nanmedian_keepdim"), axes.into());
        pair(call, |result| {
            let (rows, median) = median_of(call, self, &axes, result, true)?;
            Ok(rows.with_axes(&median))
        })
    }

    /// Where the values would have to stand in the tensor, whose rows (along its last axis) are in ascending order: before
    /// the first element that is not less (`right`: that is greater). `I64`, of the values' shape. The other axes of both
    /// are the same, or the tensor has one axis only, and the values any. Behind all others for NaN.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let edges = Tensor::from_slice(&[1.0f32, 3.0, 3.0, 9.0], [4]);
    /// let values = Tensor::from_slice(&[0.0f32, 3.0, 10.0], [3]);
    /// assert_eq!(edges.searchsorted(&values, false).to_vec::<i64>()?, [0, 1, 4]);
    /// assert_eq!(edges.searchsorted(&values, true).to_vec::<i64>()?, [0, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn searchsorted(&self, values: impl AsRef<Tensor>, right: bool) -> Tensor {
        let values = values.as_ref();
        let call = Call::here("searchsorted");
        call.composed(|| searched(call, self, values, right))
    }

    /// The number of the bucket of each element, between boundaries in ascending order: how many of them are less (`right`:
    /// no greater). `I64`. PyTorch's `bucketize`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32, 1.0, 7.0], [3]);
    /// let boundaries = Tensor::from_slice(&[1.0f32, 5.0], [2]);
    /// assert_eq!(x.bucketize(&boundaries, false).to_vec::<i64>()?, [0, 0, 2]);
    /// assert_eq!(x.bucketize(&boundaries, true).to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bucketize(&self, boundaries: impl AsRef<Tensor>, right: bool) -> Tensor {
        let boundaries = boundaries.as_ref();
        let call = Call::here("bucketize");
        call.composed(|| match boundaries.known()?.0.rank() {
            1 => searched(call, boundaries, self, right),
            rank => call.fail(format!("boundaries have one dimension, got {rank}")),
        })
    }

    /// The number of the bin of each element, between edges in ascending order: how many of them are no greater (`right`: less).
    /// `I64`. NumPy's `digitize`, whose `right` says the opposite of what it says to [`Tensor::bucketize`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32, 1.0, 7.0], [3]);
    /// let edges = Tensor::from_slice(&[1.0f32, 5.0], [2]);
    /// assert_eq!(x.digitize(&edges, false).to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn digitize(&self, edges: impl AsRef<Tensor>, right: bool) -> Tensor {
        Call::here("digitize").composed(|| Ok(self.bucketize(edges, !right)))
    }

    /// Whether each element is among those of another tensor of any shape: `Bool`. NaN is equal to nothing. PyTorch's and
    /// NumPy's `isin`; for their `invert=True`, `.isin(others).logical_not()`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4], [4]);
    /// let even = Tensor::from_slice(&[2i32, 4, 6], [3]);
    /// assert_eq!(x.isin(&even).to_vec::<bool>()?, [false, true, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn isin(&self, others: impl AsRef<Tensor>) -> Tensor {
        let others = others.as_ref();
        let call = Call::here("isin");
        call.composed(|| {
            let dtype = result_type(&[Operand::from(self), Operand::from(others)])?;
            let [x, others] = [self.cast(dtype), others.cast(dtype).ravel()];
            let count = others.known()?.0.elements();
            if count <= FEW {
                return Ok(x.unsqueeze(-1).eq(&others).any(-1));
            }
            let others = others.sort(0, false).0;
            let place = others.searchsorted(&x, false).minimum(count as i64 - 1);
            Ok(looked_up_within(call, &others, &place)?.eq(&x))
        })
    }
}

/// Elements and positions.
fn pair(call: Call, of: impl Fn(Sorted) -> Result<Tensor>) -> (Tensor, Tensor) {
    (call.composed(|| of(Sorted::Values)), call.composed(|| of(Sorted::Positions)))
}

/// The first `k` of each row in order, or all of them.
pub(super) fn sorted(
    call: Call,
    x: &Tensor,
    axis: isize,
    k: Option<usize>,
    descending: bool,
    result: Sorted,
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    if is_of_scalar(axis, shape) {
        // One element, as PyTorch sees it.
        let row = x.reshape([1]);
        let sorted = sorted(call, &row, 0, k, descending, result)?;
        return Ok(if k == Some(0) { sorted } else { sorted.squeeze(0) });
    }
    let axis = call.axis(axis, shape)?;
    let extent = k.unwrap_or(shape[axis]);
    if extent > shape[axis] {
        return call.fail(format!(
            "k is {extent}, but axis {axis} of shape {shape} has only {} elements",
            shape[axis]
        ));
    }
    if shape[axis] >= 1 << 31 {
        return call.fail(format!(
            "rows of less than 2^31 elements can be sorted, got {dtype} {shape} along axis {axis}"
        ));
    }
    let dtype = match result {
        Sorted::Values => dtype,
        Sorted::Positions => DType::I64,
    };
    call.record(Op::Sort { axis, extent, descending, result }, &[x], shape.with_extent(axis, extent), dtype)
}

/// One position along an axis of what has been sorted; of a 0-d tensor itself.
pub(super) fn at(sorted: &Tensor, x: &Tensor, axis: isize, position: usize) -> Tensor {
    match x.node.shape.rank() {
        0 => sorted.clone(),
        _ => sorted.select(axis, position as isize),
    }
}

/// The rows that the axes are, and their medians.
fn median_of(call: Call, x: &Tensor, axes: &Axes, result: Sorted, skips_nan: bool) -> Result<(Rows, Tensor)> {
    let rows = Rows::of(call, x, axes)?;
    let median = median(call, &rows.x, rows.axis, result, skips_nan)?;
    Ok((rows, median))
}

fn median(call: Call, x: &Tensor, axis: isize, result: Sorted, skips_nan: bool) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let extent = shape[call.axis(axis, shape)?];
    if extent == 0 {
        return call.fail(format!("no median of nothing: axis {axis} of shape {shape}"));
    }
    let middle = (extent - 1) / 2;
    let lower = || Ok(at(&sorted(call, x, axis, Some(middle + 1), false, result)?, x, axis, middle));
    if !dtype.is_float() {
        return lower();
    }
    let is_nan = x.isnan();
    if skips_nan {
        let others = is_nan.logical_not().count_nonzero_keepdim(axis);
        let rank = (others - 1).maximum(0).floor_divide(2);
        return Ok(sorted(call, x, axis, None, false, result)?.gather(axis, &rank).squeeze(axis));
    }
    // NaN is behind the lower half of a row, which is all that is sorted, so that it is looked for in the row itself.
    let has_nan = is_nan.any(axis);
    Ok(match result {
        Sorted::Values => has_nan.where_(f64::NAN, lower()?),
        Sorted::Positions => has_nan.where_(is_nan.cast(DType::I32).argmax(axis), lower()?),
    })
}

/// Boundaries that are compared one by one.
const FEW: usize = 8;

fn searched(call: Call, sequence: &Tensor, values: &Tensor, right: bool) -> Result<Tensor> {
    let ((rows, _), (shape, _)) = (sequence.known()?, values.known()?);
    let Some((&count, outer)) = rows.split_last() else {
        return call.fail("the sequence has at least one dimension");
    };
    let is_row = outer.is_empty();
    if !is_row && shape.split_last().map(|(_, own)| own) != Some(outer) {
        return call.fail(format!("shapes {rows} and {shape} differ before the last dimension"));
    }
    // Whether a value stands behind an element: always, if it is NaN.
    let is_behind = |element: &Tensor, value: &Tensor| match right {
        true => element.gt(value).logical_not(),
        false => element.ge(value).logical_not(),
    };
    if count <= FEW {
        let sequence = if is_row { sequence.clone() } else { sequence.unsqueeze(-2) };
        return Ok(is_behind(&sequence, &values.unsqueeze(-1)).count_nonzero(-1));
    }
    // Binary search, all steps of one kernel.
    let element = |before: &Tensor| {
        // Within, whatever the data are: `before` counts from 1.
        let position = before.minimum(count as i64) - 1;
        match is_row {
            true => looked_up_within(call, sequence, &position),
            false => gathered_within(call, sequence, outer.len(), &position),
        }
    };
    let mut found = Tensor::zeros(shape.clone(), DType::I64);
    for bit in (0..=count.ilog2()).rev() {
        let next = &found + (1i64 << bit);
        let is_next = next.le(count as i64).logical_and(is_behind(&element(&next)?, values));
        found = is_next.where_(&next, &found);
    }
    Ok(found)
}
