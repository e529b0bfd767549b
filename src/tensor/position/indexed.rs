//! Elements at positions along several axes at once, and where a mask holds.

use std::borrow::Borrow;

use super::gather::{from_start, looked_up, needs_index};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The elements at positions along the first axes, given by one tensor of integers for each: NumPy's and PyTorch's
    /// `x[i, j]`. The indices broadcast; the result has their shape, and then the axes that none is for. Negative ones count
    /// from the end.
    ///
    /// A mask of bools may be among them, for as many axes as it has, whose extents are its own: it stands for the positions where it
    /// holds, in order, one vector for each of its axes. How many these are **is evaluated** at once, as by [`Tensor::nonzero`], since
    /// the result's shape follows from it; [`Tensor::masked_select`] takes a mask that broadcasts.
    ///
    /// An index that is out of range is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for.
    /// Invalid for no index, more than there are axes, for an index of floats, and for a mask of other extents.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 12, 1).reshape([3, 4]);
    /// let (rows, columns) = (Tensor::from([2, 0]), Tensor::from([1, -1]));
    /// assert_eq!(x.index(&[&rows, &columns]).to_vec::<i32>()?, [9, 3]);
    /// let even_rows = Tensor::from([true, false, true]);
    /// assert_eq!(x.index(&[&even_rows]).to_vec::<i32>()?, [0, 1, 2, 3, 8, 9, 10, 11]);
    /// assert_eq!(x.index(&[&even_rows, &Tensor::from([-1, 0])]).to_vec::<i32>()?, [3, 8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index<T: Borrow<Tensor>>(&self, indices: impl AsRef<[T]>) -> Tensor {
        let indices = indices.as_ref();
        let call = Call::here("index");
        call.composed(|| {
            let places = Places::of(call, self, &positions(call, self, indices)?)?;
            let parts = self.reshape(places.flat(self.known()?.0)).index_select(0, &places.rows);
            Ok(parts.reshape(places.result(self.known()?.0)))
        })
    }

    /// The tensor with other values at positions along the first axes, which are given as to [`Tensor::index`] and broadcast to
    /// the shape of its result: PyTorch's `index_put`, NumPy's `x[i, j] = values`. Where several meet, it is the last of
    /// them; with `accumulate`, all of them are added to what is there.
    ///
    /// The values have the tensor's dtype; a sum of bools is whether any is true. Index out of range, masks and invalid indices: as
    /// [`Tensor::index`]; but a mask alone, with values that are the same wherever it holds, is evaluated with all else.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0, 0, 0, 0, 0, 0], [2, 3]);
    /// let (rows, columns) = (Tensor::from([1, 0, 1]), Tensor::from([2, 0, 2]));
    /// let values = Tensor::from([5, 7, 9]);
    /// assert_eq!(x.index_put(&[&rows, &columns], &values, false).to_vec::<i32>()?, [7, 0, 0, 0, 0, 9]);
    /// assert_eq!(x.index_put(&[&rows, &columns], &values, true).to_vec::<i32>()?, [7, 0, 0, 0, 0, 14]);
    /// let mask = Tensor::from([false, true]);
    /// assert_eq!(x.index_put(&[&mask], &values, false).to_vec::<i32>()?, [0, 0, 0, 5, 7, 9]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_put<T: Borrow<Tensor>>(
        &self,
        indices: impl AsRef<[T]>,
        values: impl AsRef<Tensor>,
        accumulate: bool,
    ) -> Tensor {
        let (values, indices) = (values.as_ref(), indices.as_ref());
        let call = Call::here("index_put");
        call.composed(|| {
            let ((shape, dtype), (own, own_dtype)) = (self.known()?, values.known()?);
            if let Some(put) = put_alike(call, self, indices, values, accumulate)? {
                return Ok(put);
            }
            let places = Places::of(call, self, &positions(call, self, indices)?)?;
            let result = places.result(shape);
            if own.broadcast(&result).as_ref() != Some(&result) {
                return call.fail(format!("shape {own} does not broadcast to the part's shape {result}"));
            }
            let whole = self.reshape(places.flat(shape));
            let parts = places.flat(shape).with_extent(0, places.shape.elements());
            let values = values.broadcast_to(result).reshape(parts);
            let put = match accumulate {
                // Whether any is true.
                true if own_dtype == DType::Bool && dtype == DType::Bool => {
                    let counts = whole.cast(DType::I64).index_add(0, &places.rows, &values.cast(DType::I64));
                    counts.cast(DType::Bool)
                }
                true => whole.index_add(0, &places.rows, &values),
                false => whole.index_copy(0, &places.rows, &values),
            };
            Ok(put.reshape(shape))
        })
    }

    /// The tensor with other values at positions that are counted through all axes (row-major), as to [`Tensor::take`], and of which
    /// there are as many as of the values, in any shapes. Where several meet, it is the last of them; with `accumulate`, all of them
    /// are added to what is there. PyTorch's `put`. Dtypes and index out of range: as [`Tensor::index_put`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0, 1, 2, 3], [2, 2]);
    /// let places = Tensor::from([2, -1]);
    /// assert_eq!(x.put(&places, &Tensor::from([7, 9]), false).to_vec::<i32>()?, [0, 1, 7, 9]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn put(&self, index: impl AsRef<Tensor>, values: impl AsRef<Tensor>, accumulate: bool) -> Tensor {
        let (call, index, values) = (Call::here("put"), index.as_ref(), values.as_ref());
        call.composed(|| {
            let ((shape, _), (at, _), (own, _)) = (self.known()?, index.known()?, values.known()?);
            if at.elements() != own.elements() {
                return call.fail(format!("takes as many values as positions, got shapes {own} and {at}"));
            }
            Ok(self.ravel().index_put(&[index.ravel()], values.ravel(), accumulate).reshape(shape))
        })
    }

    /// The tensor with elements of `source`, in order, where a mask holds: PyTorch's `masked_scatter`, NumPy's
    /// `x[mask] = source`. The mask broadcasts to the tensor; elements of the source that are left over are not used.
    ///
    /// A source with fewer elements than the mask holds is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the
    /// values are asked for. Invalid unless the mask is of bools and the source has the tensor's dtype.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, -1.0, 2.0, -5.0], [2, 2]);
    /// let filled = x.masked_scatter(&x.lt(0.0), &Tensor::from([10.0f32, 20.0, 30.0]));
    /// assert_eq!(filled.to_vec::<f32>()?, [3.0, 10.0, 2.0, 20.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_scatter(&self, mask: impl AsRef<Tensor>, source: impl AsRef<Tensor>) -> Tensor {
        let (mask, source) = (mask.as_ref(), source.as_ref());
        let call = Call::here("masked_scatter");
        call.composed(|| {
            let ((shape, dtype), (of_mask, mask_dtype), (own, own_dtype)) =
                (self.known()?, mask.known()?, source.known()?);
            if mask_dtype != DType::Bool {
                return call.fail(format!("the mask must be bool, got {mask_dtype} {of_mask}"));
            }
            if of_mask.broadcast(shape).as_ref() != Some(shape) {
                return call.fail(format!("mask {of_mask} does not broadcast to the tensor's shape {shape}"));
            }
            if own_dtype != dtype {
                return call.fail(format!(
                    "the source must have the tensor's dtype {dtype}, got {own_dtype}; cast it first, such as with \
                     .cast(DType::{dtype:?})"
                ));
            }
            if shape.elements() == 0 {
                return Ok(call.following(self, &[source]));
            }
            let mask = mask.broadcast_to(shape);
            let count = mask.ravel().cast(DType::I64).cumsum(0).reshape(shape);
            // What no mask needs must be somewhere, also in a source of nothing.
            let (source, before) = match own.elements() {
                0 => (Tensor::zeros([1], dtype), 0),
                _ => (source.ravel(), 1),
            };
            Ok(mask.where_(looked_up(call, &source, &mask.where_(count - before, 0))?, self))
        })
    }
}

/// The indices, in which a mask is as many as it has axes: evaluates where it holds.
fn positions<T: Borrow<Tensor>>(call: Call, x: &Tensor, indices: &[T]) -> Result<Vec<Tensor>> {
    let shape = x.known()?.0;
    let mut positions = Vec::new();
    // All mistakes before anything is evaluated.
    let axes = checked_axes(call, x, indices)?;
    for index in indices {
        let index = index.borrow();
        match index.known()? {
            (own, DType::Bool) => {
                let places = index.nonzero()?;
                positions.extend((0..own.rank()).map(|axis| places.select(1, axis as isize)));
            }
            _ => positions.push(index.clone()),
        }
    }
    match positions.len() == axes && axes <= shape.rank() {
        true => Ok(positions),
        false => call.fail(format!("shape {shape} has not {axes} axes")),
    }
}

/// For how many axes the indices are, which fit these.
fn checked_axes<T: Borrow<Tensor>>(call: Call, x: &Tensor, indices: &[T]) -> Result<usize> {
    let shape = x.known()?.0;
    let mut axes = 0;
    for index in indices {
        let (own, dtype) = index.borrow().known()?;
        if dtype != DType::Bool {
            needs_index(call, index.borrow())?;
        } else if own.rank() == 0 || shape.get(axes..axes + own.rank()) != Some(&own[..]) {
            return call
                .fail(format!("a mask of shape {own} does not fit shape {shape} from axis {axes} on"));
        }
        axes += if dtype == DType::Bool { own.rank() } else { 1 };
    }
    if axes == 0 || axes > shape.rank() {
        return call.fail(format!("shape {shape} takes one to {} indices, got {axes}", shape.rank()));
    }
    Ok(axes)
}

/// [`Tensor::index_put`] by one mask of values that do not depend on which position it is: how many there are need not be known.
fn put_alike<T: Borrow<Tensor>>(
    call: Call,
    x: &Tensor,
    indices: &[T],
    values: &Tensor,
    accumulate: bool,
) -> Result<Option<Tensor>> {
    let ((shape, dtype), (own, own_dtype)) = (x.known()?, values.known()?);
    let [mask] = indices else { return Ok(None) };
    let mask = mask.borrow();
    if mask.known()?.1 != DType::Bool || own_dtype != dtype {
        return Ok(None);
    }
    let axes = checked_axes(call, x, indices)?;
    let part: Shape = std::iter::once(1).chain(shape[axes..].iter().copied()).collect();
    if own.broadcast(&part).as_ref() != Some(&part) {
        return Ok(None);
    }
    let ones = vec![1; shape.rank() - axes];
    let mask = mask.reshape(mask.known()?.0.iter().copied().chain(ones).collect::<Shape>());
    let values = values.broadcast_to(part).reshape(&shape[axes..]);
    let put = match (accumulate, dtype) {
        (false, _) => values,
        (true, DType::Bool) => x.logical_or(values),
        (true, _) => x + values,
    };
    Ok(Some(mask.where_(put, x)))
}

/// Positions along the first axes of a tensor.
struct Places {
    /// Positions through these axes, row-major, in one dimension.
    rows: Tensor,
    /// What the indices broadcast to.
    shape: Shape,
    /// How many axes they are for.
    axes: usize,
}

impl Places {
    fn of(call: Call, x: &Tensor, indices: &[Tensor]) -> Result<Places> {
        let (shape, axes) = (x.known()?.0, indices.len());
        let shapes: Vec<&Shape> = indices.iter().map(|index| Ok(index.known()?.0)).collect::<Result<_>>()?;
        let together = call.broadcast(&shapes)?;
        let mut rows = Tensor::zeros([together.elements()], DType::I64);
        for (axis, index) in indices.iter().enumerate() {
            let extent = shape[axis] as i64;
            let index = from_start(&index.cast(DType::I64), shape[axis]).broadcast_to(&together);
            rows = rows * extent + checked(&index, axis, shape[axis]);
        }
        Ok(Places { rows, shape: together, axes })
    }

    /// The tensor's shape with the axes that have an index as one.
    fn flat(&self, shape: &Shape) -> Shape {
        let first = shape[..self.axes].iter().product();
        std::iter::once(first).chain(shape[self.axes..].iter().copied()).collect()
    }

    /// The shape of what is there.
    fn result(&self, shape: &Shape) -> Shape {
        self.shape.iter().chain(&shape[self.axes..]).copied().collect()
    }
}

/// The index in one dimension, each element looked up among the axis's positions: one that is none of them is an error that
/// names the axis.
fn checked(index: &Tensor, axis: usize, extent: usize) -> Tensor {
    let along = |x: Tensor| x.reshape([vec![1; axis], vec![-1]].concat());
    along(counting(extent)).gather(axis as isize, &along(index.clone())).ravel()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn here(x: Tensor) -> Tensor {
        x.to(&Device::interpreter())
    }

    fn numbers() -> Tensor {
        here(counting(24).reshape([2, 3, 4]))
    }

    #[test]
    fn masks_are_positions() {
        let x = numbers();
        let flags = [true, false, true, false, false, true];
        let mask = here(Tensor::from_slice(&flags, [2, 3]));
        let rows = x.index(&[&mask]);
        assert_eq!(rows.shape().unwrap(), Shape::from([3, 4]));
        assert_eq!(rows.to_vec::<i64>().unwrap(), [0, 1, 2, 3, 8, 9, 10, 11, 20, 21, 22, 23]);
        assert_eq!(x.index(&[&mask, &here(Tensor::from([0, -1, 1]))]).to_vec::<i64>().unwrap(), [0, 11, 21]);
        // A vector of positions before the mask, which broadcasts with its places.
        let columns = here(Tensor::from([true, false, false, true]));
        let (first, second) = (here(Tensor::from([[1], [0]])), here(Tensor::from([2])));
        let part = x.index(&[&first, &second, &columns]);
        assert_eq!(part.shape().unwrap(), Shape::from([2, 2]));
        assert_eq!(part.to_vec::<i64>().unwrap(), [20, 23, 8, 11]);
        assert_eq!(x.index(&[&x.gt(21)]).to_vec::<i64>().unwrap(), [22, 23]);
        let none = x.index(&[&mask & &here(Tensor::from([false]))]);
        assert_eq!(none.shape().unwrap(), Shape::from([0, 4]));
    }

    #[test]
    fn masks_take_values() {
        let x = numbers().reshape([6, 4]).slice(0, ..3);
        let mask = here(Tensor::from([false, true, true]));
        let line = here(Tensor::from([-1i64, -2, -3, -4]));
        let expected = [0, 1, 2, 3, -1, -2, -3, -4, -1, -2, -3, -4];
        assert_eq!(x.index_put(&[&mask], &line, false).to_vec::<i64>().unwrap(), expected);
        let expected = [0, 1, 2, 3, 3, 3, 3, 3, 7, 7, 7, 7];
        assert_eq!(x.index_put(&[&mask], &line, true).to_vec::<i64>().unwrap(), expected);
        let each = here(Tensor::from([[-1i64], [-2]]));
        let expected = [0, 1, 2, 3, -1, -1, -1, -1, -2, -2, -2, -2];
        assert_eq!(x.index_put(&[&mask], &each, false).to_vec::<i64>().unwrap(), expected);
        // What is the same wherever the mask holds needs no counting, so that a function may be recorded with it.
        let clipped = crate::compile(|x: Tensor| x.index_put(&[x.gt(1.0)], x.full_like(1.0).max(..), false));
        let x = here(Tensor::from([0.5f32, 1.5, f32::NAN]));
        assert_eq!(clipped.call(&x).unwrap().to_vec::<f32>().unwrap()[..2], [0.5, 1.0]);
    }

    #[test]
    fn mistakes_with_masks() {
        let x = numbers();
        let mask = here(Tensor::from([true, false, true]));
        mistake!(x.index(&[&mask]), "index: a mask of shape [3] does not fit shape [2, 3, 4] from axis 0 on");
        mistake!(
            x.index(&[&x.gt(1), &mask]),
            "index: a mask of shape [3] does not fit shape [2, 3, 4] from axis 3 on"
        );
        mistake!(
            x.index_put(&[x.gt(20)], here(Tensor::from([1i64, 2])), false),
            "index_put: shape [2] does not broadcast to the part's shape [3]"
        );
    }
}
