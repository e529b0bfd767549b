//! Whole positions of an axis exchanged for others, and all of them in another order.

use super::gather::{as_lines, from_start, needs_index};
use super::scatter::{met, scattered};
use crate::tensor::arguments::call::{Call, is_of_scalar};
use crate::tensor::make::create::counting;
use crate::{Number, ReduceOp, Result, ScatterReduction, Shape, Tensor};

impl Tensor {
    /// The tensor with a number at the positions of an axis that a 1-d index names, converted to the tensor's dtype as by
    /// [`Tensor::full`]. Negative positions count from the end.
    ///
    /// Index out of range: as [`Tensor::scatter`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// let index = Tensor::from_slice(&[2i64, 0], [2]);
    /// assert_eq!(x.index_fill(1, &index, -1).to_vec::<i32>()?, [-1, 1, -1, -1, 4, -1]);
    /// assert_eq!(x.index_fill(1, &(index - 3), 7).to_vec::<i32>()?, [7, 1, 7, 7, 4, 7]); // the last and the first
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_fill(&self, axis: isize, index: impl AsRef<Tensor>, value: impl Into<Number>) -> Tensor {
        let index = index.as_ref();
        let (call, value) = (Call::here("index_fill"), value.into());
        call.composed(|| {
            call.along(self, axis, |x, axis| {
                let (axis, line, parts) = along(call, x, axis as isize, index)?;
                let line = from_start(&line, x.known()?.0[axis]);
                Ok(x.scatter(axis as isize, &line.broadcast_to(parts), value))
            })
        })
    }

    /// The tensor with the positions of `src` along an axis, which has this tensor's shape but for that axis and its dtype,
    /// at those that a 1-d index names; the last of several that are named twice.
    ///
    /// Index out of range: as [`Tensor::scatter`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([3, 2]);
    /// let (index, rows) = (Tensor::from_slice(&[2i64, 0], [2]), Tensor::from_slice(&[10, 11, 12, 13], [2, 2]));
    /// assert_eq!(x.index_copy(0, &index, &rows).to_vec::<i32>()?, [12, 13, 2, 3, 10, 11]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_copy(&self, axis: isize, index: impl AsRef<Tensor>, src: impl AsRef<Tensor>) -> Tensor {
        let (index, src) = (index.as_ref(), src.as_ref());
        let call = Call::here("index_copy");
        call.composed(|| {
            if is_of_scalar(axis, self.known()?.0) {
                let [x, src] = as_lines(call, self, index, src)?;
                return Ok(x.index_copy(0, index, src).reshape(Shape::scalar()));
            }
            let (axis, line, parts) = along(call, self, axis, index)?;
            needs_parts(call, self, &parts, axis, src)?;
            let (shape, count) = (self.known()?.0, parts[axis]);
            if parts.elements() == 0 {
                return Ok(call.following(self, &[src]));
            }
            // Which comes last is one question a position of the axis, whatever lies there.
            let order = counting(count).reshape(line.known()?.0.clone());
            let last = scattered(call, ReduceOp::Max, &order, axis, &line, shape[axis])?;
            let (is_met, at) = met(call, &last)?;
            Ok(is_met.where_(src.gather(axis as isize, &at.broadcast_to(shape.clone())), self))
        })
    }

    /// The tensor with the positions of `src` along an axis combined with those that a 1-d index names, some of them several
    /// times; with `include_self` or without as [`Tensor::scatter_reduce`]. PyTorch's `index_reduce`; for sums see
    /// [`Tensor::index_add`] too.
    ///
    /// Dtypes, order and index out of range: as [`Tensor::scatter_add`].
    ///
    /// ```
    /// use lazuli::{ScatterReduction, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let (index, rows) = (Tensor::from_slice(&[1i64, 1], [2]), Tensor::from_slice(&[9.0f32, 1.0, 5.0, 7.0], [2, 2]));
    /// let most = x.index_reduce(0, &index, &rows, ScatterReduction::Amax, true);
    /// assert_eq!(most.to_vec::<f32>()?, [1.0, 2.0, 9.0, 7.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_reduce(
        &self,
        axis: isize,
        index: impl AsRef<Tensor>,
        src: impl AsRef<Tensor>,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Tensor {
        let (index, src) = (index.as_ref(), src.as_ref());
        let call = Call::here("index_reduce");
        call.composed(|| {
            if is_of_scalar(axis, self.known()?.0) {
                let [x, src] = as_lines(call, self, index, src)?;
                return Ok(x.index_reduce(0, index, src, reduce, include_self).reshape(Shape::scalar()));
            }
            let (axis, line, parts) = along(call, self, axis, index)?;
            needs_parts(call, self, &parts, axis, src)?;
            Ok(self.scatter_reduce(axis as isize, line.broadcast_to(parts), src, reduce, include_self))
        })
    }

    /// The tensor with other values at one position of an axis, in the shape of [`Tensor::select`]'s result and converted to
    /// the tensor's dtype.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// let row = Tensor::from_slice(&[7, 8, 9], [3]);
    /// assert_eq!(x.select_scatter(0, &row, -1).to_vec::<i32>()?, [0, 1, 2, 7, 8, 9]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn select_scatter(&self, axis: isize, values: impl AsRef<Tensor>, index: isize) -> Tensor {
        let values = values.as_ref();
        let call = Call::here("select_scatter");
        call.composed(|| {
            let shape = self.known()?.0;
            let axis = call.axis(axis, shape)?;
            let (part, own) = (self.select(axis as isize, index), values.known()?.0);
            if part.known()?.0 != own {
                return call.fail(format!(
                    "a position of shape {shape} has shape {}, the values have {own}",
                    part.node.shape
                ));
            }
            let at = if index < 0 { index + shape[axis] as isize } else { index };
            Ok(self.slice_scatter(axis as isize, &values.unsqueeze(axis as isize), at, at + 1, 1))
        })
    }

    /// The integers from 0 to, but without, `n` in random order: `I64`. For shuffling by [`Tensor::index_select`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let order = Tensor::randperm(100, 42);
    /// assert_eq!(order.sort(0, false).0.to_vec::<i64>()?, (0..100).collect::<Vec<_>>());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn randperm(n: usize, seed: u64) -> Tensor {
        let call = Call::here("randperm");
        // Of 2^53 numbers two of a billion are hardly ever equal, and then in order.
        call.composed(|| Ok(Tensor::rand_with([n], crate::DType::F64, seed).argsort(0, false)))
    }
}

fn needs_parts(call: Call, x: &Tensor, parts: &Shape, axis: usize, src: &Tensor) -> Result<()> {
    let own = src.known()?.0;
    match own == parts {
        true => Ok(()),
        false => call.fail(format!(
            "{} positions of shape {} have shape {parts}, the source has {own}",
            parts[axis], x.node.shape
        )),
    }
}

/// The axis, the index along it, and the shape of the positions that it names.
fn along(call: Call, x: &Tensor, axis: isize, index: &Tensor) -> Result<(usize, Tensor, Shape)> {
    let shape = x.known()?.0;
    let axis = call.axis(axis, shape)?;
    needs_index(call, index)?;
    let at = &index.node.shape;
    if at.rank() > 1 {
        return call.fail(format!("the index must have one dimension, got shape {at}; use .scatter"));
    }
    let (mut line, mut parts) = (vec![1; shape.rank()], shape.to_vec());
    (line[axis], parts[axis]) = (at.elements(), at.elements());
    Ok((axis, index.reshape(line), parts.into()))
}
