//! A part of a tensor exchanged for other values: in the result, since tensors do not change.
//!
//! The new values are padded to the whole, and each element is chosen by its position: one kernel, which reads
//! either the one or the other.

use super::index::{Part, resolve};
use crate::tensor::arguments::axes::resolve_slice;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::tensor::make::create::diagonal;
use crate::tensor::map::operands::unified;
use crate::{DType, Index, Result, Shape, Tensor};

impl Tensor {
    /// The tensor with other values at a part: NumPy's `x[1:, 0] = value`, as a new tensor. The value is a number or
    /// a tensor, broadcasts to the part, and is converted to the tensor's dtype: a tensor as Rust's `as` converts, a number as by
    /// [`Tensor::full`].
    ///
    /// Invalid for what [`Tensor::i`] does not take, for a number that the dtype does not hold, and for a value that does not
    /// broadcast to the part.
    ///
    /// ```
    /// use lazuli::{Tensor, s};
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// assert_eq!(x.slice_assign(s![.., 1..], -1).to_vec::<i32>()?, [0, -1, -1, 3, -1, -1]);
    /// let last = x.slice_assign(s![-1, ..;2], Tensor::from_slice(&[7, 8], [2]));
    /// assert_eq!(last.to_vec::<i32>()?, [0, 1, 2, 7, 4, 8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn slice_assign(&self, indices: impl AsRef<[Index]>, value: impl Into<Operand>) -> Tensor {
        let call = Call::here("slice_assign");
        let (indices, value) = (indices.as_ref(), value.into());
        call.composed(|| {
            let part = resolve(call, self, indices)?;
            assigned(call, self, &part, value)
        })
    }

    /// The tensor with `values` at `start:end:step` of one axis, as PyTorch's `slice_scatter`; `None` is an open
    /// bound. The values have the shape of [`Tensor::slice_step`]'s result, and are converted to the tensor's dtype.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1);
    /// let values = Tensor::from_slice(&[10, 20, 30], [3]);
    /// assert_eq!(x.slice_scatter(0, &values, None, None, 2).to_vec::<i32>()?, [10, 1, 20, 3, 30, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn slice_scatter(
        &self,
        axis: isize,
        values: impl AsRef<Tensor>,
        start: impl Into<Option<isize>>,
        end: impl Into<Option<isize>>,
        step: isize,
    ) -> Tensor {
        let values = values.as_ref();
        let call = Call::here("slice_scatter");
        let (start, end) = (start.into(), end.into());
        call.composed(|| {
            let (shape, _) = self.known()?;
            let axis = call.axis(axis, shape)?;
            if step == 0 {
                return call.fail("the step is 0; use 1 for every position, or -1 to go backwards");
            }
            let mut slices: Vec<_> = shape.iter().map(|&extent| (0, 1, extent)).collect();
            slices[axis] = resolve_slice(shape[axis], start, end, step);
            let mut extents = shape.to_vec();
            extents[axis] = slices[axis].2;
            let (own, _) = values.known()?;
            if own[..] != extents[..] {
                let part = Shape::from(extents);
                return call
                    .fail(format!("the part of shape {shape} has shape {part}, the values have {own}"));
            }
            assigned(call, self, &Part { slices, extents }, values.into())
        })
    }

    /// The tensor with other values on a diagonal of two axes, in the shape of [`Tensor::diagonal`]'s result and converted to the
    /// tensor's dtype. PyTorch's `diagonal_scatter`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::I32);
    /// let values = Tensor::from_slice(&[7, 8], [2]);
    /// assert_eq!(x.diagonal_scatter(&values, 1, 0, 1).to_vec::<i32>()?, [0, 7, 0, 0, 0, 8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal_scatter(
        &self,
        values: impl AsRef<Tensor>,
        offset: isize,
        first: isize,
        second: isize,
    ) -> Tensor {
        let values = values.as_ref();
        let call = Call::here("diagonal_scatter");
        call.composed(|| {
            let part = self.diagonal(offset, first, second);
            let ((shape, dtype), (part, _), (own, _)) = (self.known()?, part.known()?, values.known()?);
            if own != part {
                return call
                    .fail(format!("the diagonal of shape {shape} has shape {part}, the values have {own}"));
            }
            let axes = call.axes_in_order(&[first, second], shape)?;
            let (rows, columns) = (shape[axes[0]], shape[axes[1]]);
            // At or above the main diagonal a value's number is its row, below it is its column.
            let (extent, across) = if offset >= 0 { (rows, -1) } else { (columns, -2) };
            let mut border = vec![(0, 0); part.rank()];
            border[part.rank() - 1] = (0, extent - part[part.rank() - 1]);
            let values = values.cast(dtype).pad(&border, 0).unsqueeze(across);
            let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
            let offset = offset.clamp(-(rows as isize), columns as isize);
            let last = self.movedim(&axes, [-2, -1]);
            Ok(diagonal(rows, columns, offset).where_(values, last).movedim([-2, -1], &axes))
        })
    }
}

/// The tensor with a value at a part. May only be called while a call is composed.
fn assigned(call: Call, x: &Tensor, part: &Part, value: Operand) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let extents = Shape::from(&part.extents[..]);
    if let Operand::Tensor(tensor) = &value
        && tensor.known()?.0.broadcast(&extents).as_ref() != Some(&extents)
    {
        let own = tensor.known()?.0;
        return call.fail(format!("shape {own} does not broadcast to the part's shape {extents}"));
    }
    if let Operand::Number(number) = value {
        number.held(call, dtype)?;
    }
    let counts = || part.slices.iter().map(|&(_, _, count)| count);
    // What is chosen by position; all of an axis needs no choice.
    let mut line: Vec<usize> = counts().collect();
    for (count, extent) in line.iter_mut().zip(shape.iter()).filter(|(count, extent)| **count == **extent) {
        *count = 1.min(*extent);
    }
    let mut chosen = Tensor::ones(line, DType::Bool);
    let mut values = call.reshape(&unified(call, value, dtype, &extents)?, counts().collect())?;
    let mut border = vec![(0, 0); shape.rank()];
    for (axis, &(first, step, count)) in part.slices.iter().enumerate() {
        if step < 0 {
            values = values.flip(axis as isize);
        }
        if count == shape[axis] {
            continue;
        }
        // In rising order.
        let apart = step.unsigned_abs();
        let first = if step < 0 { first - apart * (count - 1) } else { first };
        let length = if count == 0 { 0 } else { (count - 1) * apart + 1 };
        if length > count {
            values = spread(&values, axis, apart, length)?;
            chosen = spread(&chosen, axis, apart, length)?;
        }
        border[axis] = (first, shape[axis] - first - length);
    }
    // One pad for all axes: one kernel takes every place. Of a pad of a pad the places are text.
    Ok(chosen.pad(&border, 0).where_(&values.pad(&border, 0), x))
}

/// The positions of an axis `apart` from each other, with zeros between.
fn spread(x: &Tensor, axis: usize, apart: usize, length: usize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let mut between = vec![(0, 0); shape.rank() + 1];
    between[axis + 1] = (0, apart - 1);
    let mut extents = shape.to_vec();
    extents[axis] *= apart;
    let spread = x.unsqueeze(axis as isize + 1).pad(&between, 0);
    Ok(spread.reshape(Shape::from(extents)).narrow(axis as isize, 0, length))
}
