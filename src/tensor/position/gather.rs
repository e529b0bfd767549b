//! Reading at positions that another tensor says. Both are computed in the kernel that reads;
//! only what threads reduce together is stored before.

use crate::graph::op::Op;
use crate::tensor::arguments::call::{Call, from_end, is_of_scalar, list};
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The positions of an axis that a 1-d index of integers names, in its order, some of them several times.
    ///
    /// An index that is negative, or not below the extent, is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange)
    /// when the values are asked for. Of what later operations cut off, nothing is read, and nothing checked.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([3, 2]);
    /// let index = Tensor::from_slice(&[2i64, 0, 2], [3]);
    /// assert_eq!(x.index_select(0, &index).to_vec::<i32>()?, [4, 5, 0, 1, 4, 5]);
    ///
    /// let beyond = x.index_select(0, &(index + 1)).to_vec::<i32>().unwrap_err();
    /// let text = beyond.to_string();
    /// assert!(text.starts_with("index_select: index 3 is out of range for axis 0 of extent 3, at "), "{text}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_select(&self, axis: isize, index: impl AsRef<Tensor>) -> Tensor {
        let index = index.as_ref();
        let call = Call::here("index_select");
        call.composed(|| {
            let (shape, _) = self.known()?;
            needs_index(call, index)?;
            if is_of_scalar(axis, shape) && index.known()?.0.elements() == 1 {
                // As in PyTorch, a number has one axis here.
                return Ok(self.reshape([1]).index_select(0, index).reshape(Shape::scalar()));
            }
            let axis = call.axis(axis, shape)?;
            match index.known()?.0.rank() {
                0 | 1 => selected(call, self, axis, &index.reshape([index.node.shape.elements()])),
                _ => call.fail(format!(
                    "the index must have one dimension, got shape {}; use .gather, .take or .embedding",
                    index.node.shape
                )),
            }
        })
    }

    /// At each position of the index, the element at that position but for the axis, where the index says which:
    /// `result[i][j] = x[i][index[i][j]]` along axis 1. The index has as many dimensions as the tensor, and at
    /// most its extents along the other axes. A 0-d tensor is a line of one element, and a 0-d index one position of a line.
    ///
    /// Index out of range: as [`Tensor::index_select`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// let index = Tensor::from_slice(&[2u8, 0, 1, 1], [2, 2]);
    /// assert_eq!(x.gather(1, &index).to_vec::<i32>()?, [2, 0, 4, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, axis: isize, index: impl AsRef<Tensor>) -> Tensor {
        let index = index.as_ref();
        let call = Call::here("gather");
        call.composed(|| gather(call, self, axis, index))
    }

    /// As [`Tensor::gather`] under NumPy's name: along the other axes, tensor and index broadcast, and negative positions count
    /// from the end.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[30, 10, 20, 5, 15, 25], [2, 3]);
    /// let largest = x.argmax_keepdim(1);
    /// assert_eq!(x.take_along_axis(&largest, 1).to_vec::<i32>()?, [30, 25]);
    /// let first = Tensor::from_slice(&[0], [1, 1]);
    /// assert_eq!(x.take_along_axis(&first, 1).to_vec::<i32>()?, [30, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_axis(&self, index: impl AsRef<Tensor>, axis: isize) -> Tensor {
        let index = index.as_ref();
        let call = Call::here("take_along_axis");
        call.composed(|| {
            let (shape, _) = same_rank(call, self, index)?;
            let extent = shape[call.axis(axis, shape)?];
            Ok(taken_along(self, &from_start(index, extent), axis))
        })
    }

    /// The elements at the positions that the index names, counted through all axes (row-major), in the index's
    /// shape, as PyTorch's `take`. Negative ones count from the end.
    ///
    /// Index out of range: as [`Tensor::index_select`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 60, 10).reshape([2, 3]);
    /// let index = Tensor::from_slice(&[4i64, 0], [1, 2]);
    /// assert_eq!(x.take(&index).to_vec::<i32>()?, [40, 0]);
    /// assert_eq!(x.take(&(index - 5)).to_vec::<i32>()?, [50, 10]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, index: impl AsRef<Tensor>) -> Tensor {
        let index = index.as_ref();
        let call = Call::here("take");
        call.composed(|| {
            needs_index(call, index)?;
            looked_up(call, self, &from_start(index, self.known()?.0.elements()))
        })
    }

    /// The rows of a table of `weights` that these integers name, along a new last axis, as PyTorch's
    /// `functional.embedding`.
    ///
    /// Index out of range: as [`Tensor::index_select`].
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let weights = Tensor::from_slice(&[0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5], [3, 2]);
    /// let ids = Tensor::from_slice(&[2i64, 0, 1, 1], [2, 2]);
    /// let vectors = ids.embedding(&weights);
    /// assert_eq!(vectors.shape()?, Shape::from([2, 2, 2]));
    /// assert_eq!(vectors.to_vec::<f32>()?, [2.0, 2.5, 0.0, 0.5, 1.0, 1.5, 1.0, 1.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn embedding(&self, weights: impl AsRef<Tensor>) -> Tensor {
        let weights = weights.as_ref();
        let call = Call::here("embedding");
        call.composed(|| embedding(call, self, weights))
    }

    /// [`Tensor::embedding`] with a row of the table that stands for no entry: it is read as the others are, and its gradient is 0. PyTorch's
    /// `functional.embedding` with `padding_idx`. A negative number counts from the table's end.
    ///
    /// Invalid for what [`Tensor::embedding`] is, and for a row that the table does not have.
    ///
    /// ```
    /// use lazuli::{Tensor, grad};
    /// let weights = Tensor::from_slice(&[0.5f32, 1.5, 2.5], [3, 1]);
    /// let ids = Tensor::from_slice(&[2i64, 0, 2], [3]);
    /// let loss = ids.embedding_padded(&weights, 0).sum(..);
    /// assert_eq!(loss.item::<f32>()?, 5.5);
    /// assert_eq!(grad(&loss, &weights).to_vec::<f32>()?, [0.0, 0.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn embedding_padded(&self, weights: impl AsRef<Tensor>, padding: isize) -> Tensor {
        let weights = weights.as_ref();
        let call = Call::here("embedding_padded");
        call.composed(|| {
            let vectors = embedding(call, self, weights)?;
            let entries = weights.known()?.0[0];
            let Some(padding) = from_end(padding, entries).filter(|&padding| padding < entries) else {
                return call.fail(format!("the table {} has no row {padding}", weights.node.shape));
            };
            let is_padding = self.cast(DType::I64).eq(padding as i64).unsqueeze(-1);
            Ok(is_padding.where_(vectors.detach(), &vectors))
        })
    }
}

fn embedding(call: Call, index: &Tensor, weights: &Tensor) -> Result<Tensor> {
    needs_index(call, index)?;
    match weights.known()?.0.rank() {
        2 => rows(call, weights, index),
        _ => call.fail(format!(
            "the weights must be a table (entries, features), got shape {}",
            weights.node.shape
        )),
    }
}

pub(crate) fn needs_index(call: Call, index: &Tensor) -> Result<()> {
    let (shape, dtype) = index.known()?;
    match dtype.is_int() {
        true => Ok(()),
        false => call.fail(format!("needs an index of integers, got {dtype} {shape}")),
    }
}

/// A 0-d tensor and a source of one element as lines, where an index has one position: as in PyTorch, a number has one axis.
pub(super) fn as_lines(call: Call, x: &Tensor, index: &Tensor, src: &Tensor) -> Result<[Tensor; 2]> {
    let ((at, _), (own, _)) = (index.known()?, src.known()?);
    match at.elements() == 1 && own.rank() < 2 && own.elements() == 1 {
        true => Ok([x.reshape([1]), src.reshape([1])]),
        false => call.fail(format!(
            "a 0-d tensor takes one position and one element, got an index of shape {at} and a source of shape {own}"
        )),
    }
}

/// The shapes of tensor and index, which have equally many dimensions.
fn same_rank<'a>(call: Call, x: &'a Tensor, index: &'a Tensor) -> Result<(&'a Shape, &'a Shape)> {
    let (shape, _) = x.known()?;
    needs_index(call, index)?;
    let (at, _) = index.known()?;
    match shape.rank() == at.rank() {
        true => Ok((shape, at)),
        false => call.fail(format!(
            "the index must have as many dimensions as shape {shape}, got shape {at}; to take whole rows, use .index_select"
        )),
    }
}

/// [`Tensor::take_along_axis`] of positions that are not negative. May only be called while a call is composed.
pub(crate) fn taken_along(x: &Tensor, index: &Tensor, axis: isize) -> Tensor {
    let call = Call::here("take_along_axis");
    call.composed(|| {
        let (shape, at) = same_rank(call, x, index)?;
        let axis = call.axis(axis, shape)?;
        let (mut own, mut other) = (shape.to_vec(), at.to_vec());
        (own[axis], other[axis]) = (1, 1);
        let together = call.broadcast(&[&own.into(), &other.into()])?;
        let (mut own, mut other) = (together.to_vec(), together.to_vec());
        (own[axis], other[axis]) = (shape[axis], at[axis]);
        gathered(call, &x.broadcast_to(own), axis, &index.broadcast_to(other))
    })
}

fn gather(call: Call, x: &Tensor, axis: isize, index: &Tensor) -> Result<Tensor> {
    let ((own, _), (of_index, _)) = (x.known()?, index.known()?);
    if own.rank() + of_index.rank() < 2 && own.rank().max(of_index.rank()) < 2 && matches!(axis, 0 | -1) {
        // As in PyTorch, a number has one axis here.
        needs_index(call, index)?;
        return Ok(gathered(call, &x.ravel(), 0, &index.ravel())?.reshape(of_index));
    }
    let (shape, at) = same_rank(call, x, index)?;
    let axis = call.axis(axis, shape)?;
    let others = || (0..shape.rank()).filter(|&other| other != axis);
    let beyond: Vec<usize> = others().filter(|&other| at[other] > shape[other]).collect();
    if !beyond.is_empty() {
        return call.fail(format!(
            "the index of shape {at} is larger than shape {shape} along {} {}; only along axis {axis} may it be",
            if beyond.len() == 1 { "axis" } else { "axes" },
            list(&beyond)
        ));
    }
    let part = others().fold(x.clone(), |part, other| match at[other] == shape[other] {
        true => part,
        false => part.narrow(other as isize, 0, at[other]),
    });
    gathered(call, &part, axis, index)
}

/// An index whose negative positions, which count from the end of so many, count from the start. What is before the start
/// stays negative. May only be called while a call is composed.
pub(crate) fn from_start(index: &Tensor, extent: usize) -> Tensor {
    if index.node.dtype.is_unsigned() {
        return index.clone();
    }
    let (index, extent) = (index.cast(DType::I64), extent as i64);
    (index.lt(0) & index.ge(-extent)).where_(&index + extent, &index)
}

/// [`Tensor::take`] of positions that are not negative. May only be called while a call is composed.
pub(crate) fn looked_up(call: Call, x: &Tensor, index: &Tensor) -> Result<Tensor> {
    rows(call, &x.reshape([x.known()?.0.elements()]), index)
}

/// [`looked_up`] in one dimension, of positions that are within whatever the data are. May only be called while a call is composed.
pub(super) fn looked_up_within(call: Call, x: &Tensor, index: &Tensor) -> Result<Tensor> {
    Ok(gathered_within(call, x, 0, &index.ravel())?.reshape(index.known()?.0.clone()))
}

/// The entries of the table's first axis that an index of any shape names: the index's shape comes first.
fn rows(call: Call, table: &Tensor, index: &Tensor) -> Result<Tensor> {
    needs_index(call, index)?;
    let (entry, at) = (table.known()?.0.without(&[0]), index.known()?.0);
    let flat = selected(call, table, 0, &index.reshape([at.elements()]))?;
    Ok(flat.reshape(at.iter().chain(entry.iter()).copied().collect::<Shape>()))
}

/// The positions of an axis that a 1-d index names.
fn selected(call: Call, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
    named(call, x, axis, index, true)
}

fn named(call: Call, x: &Tensor, axis: usize, index: &Tensor, is_checked: bool) -> Result<Tensor> {
    let mut extents = x.known()?.0.to_vec();
    extents[axis] = index.known()?.0.elements();
    let mut line = vec![1; extents.len()];
    line[axis] = extents[axis];
    let shape = Shape::from(extents);
    call.needs_addressable(&shape)?;
    recorded(call, x, axis, &index.reshape(line).broadcast_to(shape), is_checked)
}

/// The positions of an axis that are nearest to those that a 1-d index of integers names: all are some, and none is checked.
pub(crate) fn nearest(call: Call, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
    let last = x.known()?.0[axis] as i64 - 1;
    selected_within(call, x, axis, &index.clamp(0, last.max(0)))
}

/// The positions of an axis that a 1-d index names, which is within whatever the data are: nothing checks it.
pub(crate) fn selected_within(call: Call, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
    named(call, x, axis, index, false)
}

/// The primitive: x has the index's shape but for the axis.
pub(crate) fn gathered(call: Call, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
    recorded(call, x, axis, index, true)
}

/// The same of an index that is within the axis whatever the data are: nothing checks it.
pub(crate) fn gathered_within(call: Call, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
    recorded(call, x, axis, index, false)
}

fn recorded(call: Call, x: &Tensor, axis: usize, index: &Tensor, is_checked: bool) -> Result<Tensor> {
    let ((shape, dtype), (at, _)) = (x.known()?, index.known()?);
    if shape[axis] == 0 && at.elements() > 0 {
        return call.fail(format!("axis {axis} of shape {shape} has no positions to read at"));
    }
    call.record(Op::Gather { axis, is_checked }, &[x, index], at.clone(), dtype)
}
