//! Tensors put together and taken apart along an axis.
//!
//! A join is a choice by position: each half is padded to the whole, and one kernel reads whichever half covers
//! an element. Halves of halves keep the depth, and with it the number of conditions on each read, small. Joins of another
//! number of parts each time are copies ([`super::copied`]).

use std::borrow::Borrow;

use super::copied::copied;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::{DType, Result, Shape, Tensor};

/// A tensor is divided into so many parts at most: each is a tensor of its own.
const MOST_PARTS: usize = 1 << 20;

/// Whether the first two axes of [`Tensor::meshgrid`]'s results are rows and columns, or x and y.
///
/// ```
/// use lazuli::{Indexing, Shape, Tensor};
/// let (x, y) = (Tensor::arange(0, 2, 1), Tensor::arange(0, 3, 1));
/// assert_eq!(Tensor::meshgrid(&[&x, &y], Indexing::Ij)[0].shape()?, Shape::from([2, 3]));
/// assert_eq!(Tensor::meshgrid(&[&x, &y], Indexing::Xy)[0].shape()?, Shape::from([3, 2]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Indexing {
    /// Axis k counts the k-th tensor's elements, as in a matrix.
    Ij,
    /// As `Ij` with the first two axes exchanged, as in a plot.
    Xy,
}

impl Tensor {
    /// The tensors, or references to them, one after the other along an axis, in their promoted dtype. All other extents
    /// are equal, but vectors without elements join tensors of any shape. A line that has joined two numbers of tensors has
    /// those of further numbers computed and copied, so that no other number is compiled.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::arange(0, 2, 1), Tensor::arange(5, 8, 1));
    /// assert_eq!(Tensor::cat(&[&x, &y], 0).to_vec::<i32>()?, [0, 1, 5, 6, 7]);
    /// let doubled: Vec<Tensor> = [x, y].iter().map(|x| x * 2).collect();
    /// assert_eq!(Tensor::cat(&doubled, 0).to_vec::<i32>()?, [0, 2, 10, 12, 14]);
    ///
    /// let mut rows = Tensor::from([0.0f32; 0]);
    /// for n in 0..3 {
    ///     rows = Tensor::cat([rows, Tensor::rand([1, 4], n)], 0);
    /// }
    /// assert_eq!(rows.shape()?, lazuli::Shape::from([3, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cat<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, axis: isize) -> Tensor {
        let tensors = tensors.as_ref();
        let call = Call::here("cat");
        call.composed(|| cat(call, &borrowed(tensors), axis))
    }

    /// The tensors, all of one shape, along a new axis, which is number `axis` of the result.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let (x, y) = (Tensor::arange(0, 3, 1), Tensor::arange(5, 8, 1));
    /// assert_eq!(Tensor::stack(&[&x, &y], 0).shape()?, Shape::from([2, 3]));
    /// assert_eq!(Tensor::stack(&[&x, &y], -1).to_vec::<i32>()?, [0, 5, 1, 6, 2, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn stack<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, axis: isize) -> Tensor {
        let tensors = tensors.as_ref();
        let call = Call::here("stack");
        call.composed(|| {
            let tensors = borrowed(tensors);
            let Some(first) = tensors.first() else { return call.fail("there is no tensor to stack") };
            let shape = first.known()?.0;
            for (number, tensor) in tensors.iter().enumerate() {
                let own = tensor.known()?.0;
                if own != shape {
                    return call.fail(format!(
                        "tensor 0 has shape {shape}, but tensor {number} has {own}: they must be equal"
                    ));
                }
            }
            let parts: Vec<Tensor> = tensors.iter().map(|tensor| tensor.unsqueeze(axis)).collect();
            let rank = shape.rank() as isize + 1;
            cat(call, &parts.iter().collect::<Vec<_>>(), if axis < 0 { axis + rank } else { axis })
        })
    }

    /// Consecutive parts of `size` positions along an axis; the last may be shorter.
    ///
    /// Recording never fails, but how many parts there are is a question about the shape, and what does not fit has no
    /// answer: so this, and its kin, return a `Result` of the list.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 5, 1).split(2, 0)?;
    /// assert_eq!(parts.len(), 3);
    /// assert_eq!(parts[2].to_vec::<i32>()?, [4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; a size of 0, or an axis out of range.
    #[track_caller]
    pub fn split(&self, size: usize, axis: isize) -> Result<Vec<Tensor>> {
        let call = Call::here("split");
        let (shape, _) = self.known()?;
        let extent = shape[call.axis(axis, shape)?];
        if size == 0 {
            return call.fail(format!("parts of shape {shape} must have at least 1 position, got 0"));
        }
        parts(call, self, axis, &sizes(call, extent, size, shape)?)
    }

    /// Consecutive parts of the given sizes along an axis, which together are all of it.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 5, 1).split_sizes(&[1, 4], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; sizes that do not add up, or an axis out of range.
    #[track_caller]
    pub fn split_sizes(&self, sizes: &[usize], axis: isize) -> Result<Vec<Tensor>> {
        let call = Call::here("split_sizes");
        let (shape, _) = self.known()?;
        let own = call.axis(axis, shape)?;
        let sum = sizes.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
        if sum != shape[own] {
            return call.fail(format!(
                "the sizes {sizes:?} add up to {sum}, but axis {own} of shape {shape} has {} positions",
                shape[own]
            ));
        }
        parts(call, self, axis, sizes)
    }

    /// At most `count` consecutive parts along an axis, equal but for the last, as PyTorch's `chunk`: five
    /// positions in four chunks are parts of 2, 2 and 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::arange(0, 5, 1).chunk(4, 0)?.len(), 3);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; a count of 0, or an axis out of range.
    #[track_caller]
    pub fn chunk(&self, count: usize, axis: isize) -> Result<Vec<Tensor>> {
        let call = Call::here("chunk");
        let (shape, _) = self.known()?;
        let extent = shape[call.axis(axis, shape)?];
        match count {
            0 => call.fail(format!("needs at least 1 chunk of shape {shape}, got 0")),
            _ if extent == 0 => {
                bounded(call, count, shape)?;
                parts(call, self, axis, &vec![0; count])
            }
            _ => parts(call, self, axis, &sizes(call, extent, extent.div_ceil(count), shape)?),
        }
    }

    /// The positions of an axis as tensors of their own, which no longer have it.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let rows = Tensor::arange(0, 6, 1).reshape([2, 3]).unbind(0)?;
    /// assert_eq!(rows[1].to_vec::<i32>()?, [3, 4, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; an axis out of range.
    #[track_caller]
    pub fn unbind(&self, axis: isize) -> Result<Vec<Tensor>> {
        let call = Call::here("unbind");
        let (shape, _) = self.known()?;
        let extent = shape[call.axis(axis, shape)?] as isize;
        bounded(call, extent as usize, shape)?;
        call.compose(|| (0..extent).map(|index| valid(self.select(axis, index))).collect())
    }

    /// The coordinates of a grid: result k holds the k-th 1-d tensor's elements along axis k, repeated along
    /// the axes of the others. As many results as tensors.
    ///
    /// ```
    /// use lazuli::{Indexing, Tensor};
    /// let (y, x) = (Tensor::arange(0, 2, 1), Tensor::arange(5, 8, 1));
    /// let grid = Tensor::meshgrid(&[&y, &x], Indexing::Ij);
    /// assert_eq!(grid[0].to_vec::<i32>()?, [0, 0, 0, 1, 1, 1]);
    /// assert_eq!(grid[1].to_vec::<i32>()?, [5, 6, 7, 5, 6, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn meshgrid<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, indexing: Indexing) -> Vec<Tensor> {
        let tensors = tensors.as_ref();
        let call = Call::here("meshgrid");
        let grid = call.compose(|| meshgrid(call, &borrowed(tensors), indexing));
        grid.unwrap_or_else(|error| tensors.iter().map(|_| Tensor::invalid(error.clone())).collect())
    }
}

/// References to tensors that were given by value or by reference.
pub(crate) fn borrowed<T: Borrow<Tensor>>(tensors: &[T]) -> Vec<&Tensor> {
    tensors.iter().map(Borrow::borrow).collect()
}

/// The tensor, or its error.
fn valid(tensor: Tensor) -> Result<Tensor> {
    tensor.validity().map(|()| tensor)
}

pub(crate) fn bounded(call: Call, count: usize, shape: &Shape) -> Result<()> {
    match count <= MOST_PARTS {
        true => Ok(()),
        false => call.fail(format!("{count} parts of shape {shape} are more than the {MOST_PARTS} allowed")),
    }
}

fn sizes(call: Call, extent: usize, size: usize, shape: &Shape) -> Result<Vec<usize>> {
    let count = extent.div_ceil(size).max(1);
    bounded(call, count, shape)?;
    Ok((0..count).map(|part| size.min(extent - part * size)).collect())
}

fn parts(call: Call, x: &Tensor, axis: isize, sizes: &[usize]) -> Result<Vec<Tensor>> {
    let mut start = 0;
    let part = |&size: &usize| {
        let part = x.narrow(axis, start, size);
        start += size;
        valid(part)
    };
    call.compose(|| sizes.iter().map(part).collect())
}

fn meshgrid(call: Call, tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
    let mut extents = Vec::new();
    for (number, tensor) in tensors.iter().enumerate() {
        match tensor.known()?.0[..] {
            [] => extents.push(1),
            [extent] => extents.push(extent),
            _ => {
                let shape = tensor.known()?.0;
                return call.fail(format!("tensor {number} has shape {shape}, but needs one dimension"));
            }
        }
    }
    let shape = Shape::from(&extents[..]);
    let results = tensors.iter().enumerate().map(|(own, tensor)| {
        let dims: Vec<usize> =
            (0..extents.len()).map(|axis| if axis == own { extents[own] } else { 1 }).collect();
        let grid = tensor.reshape(dims).broadcast_to(&shape);
        valid(if indexing == Indexing::Xy && extents.len() > 1 { grid.transpose(0, 1) } else { grid })
    });
    results.collect()
}

/// The parts after each other. May only be called while a call is composed.
pub(crate) fn cat(call: Call, tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
    let shapes: Vec<&Shape> = tensors.iter().map(|tensor| Ok(tensor.known()?.0)).collect::<Result<_>>()?;
    // As in PyTorch, a vector of nothing joins whatever there is: loops begin with one.
    let begins = shapes.iter().position(|shape| shape[..] != [0]).unwrap_or(0);
    let Some(&shape) = shapes.get(begins) else { return call.fail("there is no tensor to join") };
    if shape.rank() == 0 {
        return call.fail("0-d tensors have no axis to join along; use .stack");
    }
    let axis = call.axis(axis, shape)?;
    for (number, own) in shapes.into_iter().enumerate().filter(|(_, own)| own[..] != [0]) {
        if own.rank() != shape.rank() || own.without(&[axis]) != shape.without(&[axis]) {
            return call.fail(format!(
                "tensor {begins} has shape {shape}, but tensor {number} has {own}: only axis {axis} may differ"
            ));
        }
    }
    let operands: Vec<Operand> = tensors.iter().map(|&tensor| tensor.into()).collect();
    let dtype = result_type(&operands)?;
    let parts: Vec<Tensor> = tensors
        .iter()
        .filter(|tensor| tensor.node.shape[..] != [0] && tensor.node.shape[axis] > 0)
        .map(|tensor| call.cast(tensor, dtype))
        .collect::<Result<_>>()?;
    let whole = match parts.is_empty() {
        true => call.cast(tensors[begins], dtype)?,
        false => copied(call, &parts, axis).unwrap_or_else(|| joined(&parts, axis))?,
    };
    let empty: Vec<&Tensor> =
        tensors.iter().copied().filter(|tensor| tensor.node.shape.elements() == 0).collect();
    Ok(call.following(&whole, &empty))
}

/// The same as a choice by position, of parts of one dtype, that is never a copy. May only be called while a call is composed.
pub(crate) fn joined(parts: &[Tensor], axis: usize) -> Result<Tensor> {
    if let [only] = parts {
        return Ok(only.clone());
    }
    let (before, after) = parts.split_at(parts.len() / 2);
    let (before, after) = (joined(before, axis)?, joined(after, axis)?);
    let (shape, _) = before.known()?;
    let (first, second) = (shape[axis], after.known()?.0[axis]);
    let border = |before: usize, after: usize| -> Vec<(usize, usize)> {
        (0..shape.rank()).map(|own| if own == axis { (before, after) } else { (0, 0) }).collect()
    };
    // A padded `true` is the very condition under which the padded half is read.
    let mut line = vec![1; shape.rank()];
    line[axis] = first;
    let is_first = Tensor::ones(line, DType::Bool).pad(&border(0, second), false);
    let (before, after) = (before.pad(&border(0, second), 0), after.pad(&border(first, 0), 0));
    valid(is_first.where_(before, after))
}
