//! Parts of axes, borders around them, and windows along them. These are views too: they copy nothing.

use super::border::Border;
use crate::graph::infer::window_count;
use crate::graph::op::View;
use crate::tensor::arguments::axes::{Axes, Bounds, resolve_slice};
use crate::tensor::arguments::call::{Call, from_end, is_of_scalar};
use crate::{DType, Number, Result, Shape, Tensor};

impl Tensor {
    /// A part of one axis, as Python's slices: negative bounds count from the end, and bounds beyond the ends
    /// are cut. Clippy takes `1..-1` for a mistake: allow `clippy::reversed_empty_ranges`, or write
    /// [`Tensor::slice_step`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1);
    /// assert_eq!(x.slice(0, 1..3).to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(x.slice(0, 1..-1).to_vec::<i32>()?, [1, 2, 3, 4]);
    /// assert_eq!(x.slice(0, -2..).to_vec::<i32>()?, [4, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, axis: isize, range: impl Into<Bounds>) -> Tensor {
        let Bounds { start, end } = range.into();
        Tensor::or_invalid(slice(Call::here("slice"), self, axis, start, end, 1))
    }

    /// Python's `[start:end:step]` on one axis; `None` is an open bound, and a negative step walks backwards.
    ///
    /// Invalid if the step is 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1);
    /// assert_eq!(x.slice_step(0, None, None, 2).to_vec::<i32>()?, [0, 2, 4]);
    /// assert_eq!(x.slice_step(0, 4, 0, -1).to_vec::<i32>()?, [4, 3, 2, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn slice_step(
        &self,
        axis: isize,
        start: impl Into<Option<isize>>,
        end: impl Into<Option<isize>>,
        step: isize,
    ) -> Tensor {
        Tensor::or_invalid(slice(Call::here("slice_step"), self, axis, start.into(), end.into(), step))
    }

    /// `length` positions of one axis from `start` on.
    ///
    /// Invalid if they are not all there; [`Tensor::slice`] cuts instead.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1);
    /// assert_eq!(x.narrow(0, 2, 3).to_vec::<i32>()?, [2, 3, 4]);
    /// assert!(x.narrow(0, 4, 3).eval().is_err()); // there is no position 6
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Tensor {
        Tensor::or_invalid(narrow(Call::here("narrow"), self, axis, start, length))
    }

    /// One position of an axis, which the result no longer has. A negative index counts from the end.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// assert_eq!(x.select(0, -1).to_vec::<i32>()?, [3, 4, 5]);
    /// assert_eq!(x.select(1, 0).to_vec::<i32>()?, [0, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn select(&self, axis: isize, index: isize) -> Tensor {
        Tensor::or_invalid(select(Call::here("select"), self, axis, index))
    }

    /// A [`Border`] of `value`: pairs (before, after) of all axes, PyTorch's flat list `[left, right, top, bottom]`, or one
    /// integer for all sides. The value is converted to the tensor's dtype, which must hold it ([`Tensor::full`] says which
    /// it does). Where a number is negative, so many positions are cut off instead.
    ///
    /// Invalid if more is cut off than is there, and for a list that does not fit the number of axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]);
    /// assert_eq!(x.pad(&[(0, 0), (1, 2)], 9.0).to_vec::<f32>()?, [9.0, 1.0, 2.0, 9.0, 9.0]);
    /// assert_eq!(x.pad(&[(0, 0), (-1, 1)], 9.0).to_vec::<f32>()?, [2.0, 9.0]);
    /// assert_eq!(x.pad([-1, 1], 9.0).to_vec::<f32>()?, [2.0, 9.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, border: impl Into<Border>, value: impl Into<Number>) -> Tensor {
        Tensor::or_invalid(pad(Call::here("pad"), self, border.into(), value.into()))
    }

    /// Backwards along the axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// assert_eq!(x.flip(1).to_vec::<i32>()?, [2, 1, 0, 5, 4, 3]);
    /// assert_eq!(x.flip(..).to_vec::<i32>()?, [5, 4, 3, 2, 1, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn flip(&self, axes: impl Into<Axes>) -> Tensor {
        Tensor::or_invalid(flip(Call::here("flip"), self, &axes.into()))
    }

    /// Windows of `size` neighbours every `step` positions of an axis, as PyTorch's `unfold`: the axis then
    /// counts the windows, and a new last axis the positions in a window. Positions after the last whole window
    /// are left out.
    ///
    /// Invalid if not even one window fits.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 5, 1);
    /// assert_eq!(x.unfold(0, 3, 2).to_vec::<i32>()?, [0, 1, 2, 2, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unfold(&self, axis: isize, size: usize, step: usize) -> Tensor {
        let call = Call::here("unfold");
        call.composed(|| {
            if !is_of_scalar(axis, self.known()?.0) {
                return window(call, self, axis, size, step, 1);
            }
            // As in PyTorch, the one window of a number has no axis of windows.
            Ok(window(call, &self.reshape([1]), 0, size, step, 1)?.squeeze(0))
        })
    }

    /// Windows as by [`Tensor::unfold`], whose positions are `dilation` apart.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let x = Tensor::arange(0, 6, 1).window(0, 3, 1, 2);
    /// assert_eq!(x.shape()?, Shape::from([2, 3]));
    /// assert_eq!(x.to_vec::<i32>()?, [0, 2, 4, 1, 3, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn window(&self, axis: isize, size: usize, step: usize, dilation: usize) -> Tensor {
        Tensor::or_invalid(window(Call::here("window"), self, axis, size, step, dilation))
    }
}

fn slice(
    call: Call,
    x: &Tensor,
    axis: isize,
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    if step == 0 {
        return call.fail("the step is 0; use 1 for every position, or -1 to go backwards");
    }
    call.slice(x, &[(axis, resolve_slice(shape[axis], start, end, step))])
}

fn narrow(call: Call, x: &Tensor, axis: isize, start: usize, length: usize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let index = call.axis(axis, shape)?;
    match start.checked_add(length) {
        Some(end) if end <= shape[index] => {
            let first = if length == 0 { 0 } else { start };
            call.slice(x, &[(index, (first, 1, length))])
        }
        _ => call.fail(format!(
            "{length} positions from {start} on are more than axis {index} of shape {shape} has"
        )),
    }
}

fn select(call: Call, x: &Tensor, axis: isize, index: isize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    let extent = shape[axis];
    match from_end(index, extent).filter(|&index| index < extent) {
        Some(index) => call.reshape(&call.slice(x, &[(axis, (index, 1, 1))])?, shape.without(&[axis])),
        None => call.fail(format!("index {index} is out of range for axis {axis} of shape {shape}")),
    }
}

fn pad(call: Call, x: &Tensor, border: Border, value: Number) -> Result<Tensor> {
    let (x, border) = border.cut(call, x)?;
    let (shape, dtype) = x.known()?;
    let filler = value.held(call, dtype)?;
    // What saturates cannot be addressed, and is refused.
    let extents = shape
        .iter()
        .zip(&border)
        .map(|(&extent, &(before, after))| extent.saturating_add(before).saturating_add(after));
    let before = border.iter().map(|&(before, _)| before).collect();
    if border.iter().all(|&sides| sides == (0, 0)) || is_usual(value, dtype) {
        return call.view(View::Pad { before, value: filler }, &x, extents.collect());
    }
    // In a kernel's text, each number would be another kernel. A padded `true` is the very condition.
    call.compose(|| {
        let inside = Tensor::ones(vec![1; shape.rank()], DType::Bool).broadcast_to(shape).pad(&border, false);
        let padded = inside.where_(x.pad(&border, 0), Tensor::full(Shape::scalar(), value, dtype));
        padded.validity().map(|()| padded)
    })
}

/// Whether this is a number that programs do not change from call to call: what counts as nothing to sums, products and extremes.
fn is_usual(value: Number, dtype: DType) -> bool {
    match value {
        Number::Bool(_) => true,
        Number::Int(value) => {
            (-1..=1).contains(&value)
                || dtype.iinfo().is_some_and(|info| value <= info.min || value >= info.max)
        }
        Number::Float(value) => !value.is_finite() || [-1.0, 0.0, 1.0].contains(&value),
    }
}

fn flip(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let slices: Vec<_> = call
        .axes(axes, shape)?
        .into_iter()
        .map(|axis| (axis, resolve_slice(shape[axis], None, None, -1)))
        .collect();
    call.slice(x, &slices)
}

fn window(
    call: Call,
    x: &Tensor,
    axis: isize,
    size: usize,
    stride: usize,
    dilation: usize,
) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    if size == 0 || stride == 0 || dilation == 0 {
        return call.fail(format!(
            "size, step and dilation must be at least 1, got {size}, {stride} and {dilation}"
        ));
    }
    match window_count(shape[axis], size, stride, dilation) {
        Some(count) => {
            let mut extents = shape.to_vec();
            extents[axis] = count;
            extents.push(size);
            call.view(View::Window { axis, size, stride, dilation }, x, Shape::from(extents))
        }
        None => call.fail(format!(
            "no window of {size} positions, {dilation} apart, fits axis {axis} of shape {shape}; pad it first"
        )),
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::*;
    use crate::DType;
    use crate::tensor::tests::{last_view, mistake};

    fn x() -> Tensor {
        Tensor::ones([2, 3, 4], DType::F32)
    }

    fn shape(tensor: Tensor) -> Vec<usize> {
        tensor.shape().unwrap().to_vec()
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "a slice to -1 ends before the last, as in Python")]
    fn shapes_are_pytorchs() {
        assert_eq!(shape(x().slice(-1, 1..-1)), [2, 3, 2]);
        assert_eq!(shape(x().slice(1, 9..)), [2, 0, 4]);
        assert_eq!(shape(x().slice_step(2, None, None, -2)), [2, 3, 2]);
        assert_eq!(shape(x().slice_step(2, 3, None, -3)), [2, 3, 2]);
        assert_eq!(shape(x().narrow(1, 1, 2)), [2, 2, 4]);
        assert_eq!(shape(x().narrow(1, 3, 0)), [2, 0, 4]);
        assert_eq!(shape(x().select(1, -1)), [2, 4]);
        assert_eq!(shape(x().pad(&[(0, 0), (1, 2), (3, 0)], 0.0)), [2, 6, 7]);
        assert_eq!(shape(x().flip([0, 2])), [2, 3, 4]);
        assert_eq!(shape(x().unfold(2, 2, 1)), [2, 3, 3, 2]);
        assert_eq!(shape(x().window(-1, 2, 1, 3)), [2, 3, 1, 2]);
    }

    #[test]
    fn views_are_recorded_as_they_are_defined() {
        let backwards = View::Slice {
            starts: SmallVec::from_slice(&[0, 2, 3]),
            steps: SmallVec::from_slice(&[1, -1, -1]),
        };
        assert_eq!(last_view(&x().flip([1, 2])), backwards);
        let every_other = View::Slice {
            starts: SmallVec::from_slice(&[0, 0, 3]),
            steps: SmallVec::from_slice(&[1, 1, -2]),
        };
        assert_eq!(last_view(&x().slice_step(2, None, None, -2)), every_other);
        let padded = View::Pad {
            before: SmallVec::from_slice(&[1, 0, 2]),
            value: Number::from(1).to_scalar(DType::F32),
        };
        assert_eq!(last_view(&x().pad(&[(1, 0), (0, 0), (2, 2)], 1)), padded);
        assert_eq!(
            last_view(&x().unfold(1, 2, 1)),
            View::Window { axis: 1, size: 2, stride: 1, dilation: 1 }
        );
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        mistake!(
            x().slice_step(0, None, None, 0),
            "slice_step: the step is 0; use 1 for every position, or -1 to go backwards"
        );
        mistake!(
            x().narrow(1, 2, 2),
            "narrow: 2 positions from 2 on are more than axis 1 of shape [2, 3, 4] has"
        );
        mistake!(x().select(1, 3), "select: index 3 is out of range for axis 1 of shape [2, 3, 4]");
        mistake!(
            x().pad(&[(1, 1)], 0),
            "pad: takes one pair (before, after) for each of the 3 axes of shape [2, 3, 4], got 1"
        );
        mistake!(
            x().pad([1], 0),
            "pad: a flat list has two numbers (before, after) for each axis, last axis first, and shape [2, 3, 4] has \
             3 axes; got a list of 1"
        );
        mistake!(
            x().pad([1; 8], 0),
            "pad: a flat list has two numbers (before, after) for each axis, last axis first, and shape [2, 3, 4] has \
             3 axes; got a list of 8"
        );
        mistake!(
            x().unfold(1, 4, 1),
            "unfold: no window of 4 positions, 1 apart, fits axis 1 of shape [2, 3, 4]; pad it first"
        );
        mistake!(
            x().window(1, 0, 1, 1),
            "window: size, step and dilation must be at least 1, got 0, 1 and 1"
        );
    }
}
