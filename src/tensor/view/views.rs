//! The same elements under other shapes and axes. Views copy nothing.

use crate::graph::op::{self, View};
use crate::tensor::arguments::axes::{Axes, Bounds, Dims};
use crate::tensor::arguments::call::{Call, from_end, is_of_scalar};
use crate::{Result, Shape, Tensor};

impl Tensor {
    /// The same elements in row-major order under another shape; one extent may be -1 and follows from the
    /// others.
    ///
    /// Invalid if the shape does not take exactly as many elements.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let x = Tensor::arange(0, 12, 1).reshape([3, -1]);
    /// assert_eq!(x.shape()?, Shape::from([3, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, dims: impl Into<Dims>) -> Tensor {
        Tensor::or_invalid(reshape(Call::here("reshape"), self, &dims.into().0))
    }

    /// Neighbouring axes merged into one: all with `flatten(..)`, all but the first with `flatten(1..)`. A 0-d
    /// tensor becomes `[1]`.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::zeros([2, 3, 4], DType::F32);
    /// assert_eq!(x.flatten(..).shape()?, Shape::from([24]));
    /// assert_eq!(x.flatten(1..).shape()?, Shape::from([2, 12]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn flatten(&self, axes: impl Into<Bounds>) -> Tensor {
        let Bounds { start, end } = axes.into();
        Tensor::or_invalid(flatten(Call::here("flatten"), self, (start, end)))
    }

    /// The axes in another order: axis k of the result is axis `order[k]` of this tensor. Every axis is named
    /// once.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let nhwc = Tensor::zeros([1, 8, 9, 3], DType::U8);
    /// assert_eq!(nhwc.permute([0, 3, 1, 2]).shape()?, Shape::from([1, 3, 8, 9]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn permute(&self, order: impl Into<Dims>) -> Tensor {
        Tensor::or_invalid(permute(Call::here("permute"), self, &order.into().0))
    }

    /// Two axes exchanged.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::zeros([2, 3, 4], DType::F32);
    /// assert_eq!(x.transpose(0, -1).shape()?, Shape::from([4, 3, 2]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self, a: isize, b: isize) -> Tensor {
        Tensor::or_invalid(transpose(Call::here("transpose"), self, a, b))
    }

    /// The transpose of a matrix; tensors with fewer dimensions stay as they are.
    ///
    /// Invalid for more than two dimensions.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// assert_eq!(x.t().to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    /// assert_eq!(x.flatten(..).t().shape()?, Shape::from([6]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn t(&self) -> Tensor {
        Tensor::or_invalid(t(Call::here("t"), self))
    }

    /// Without those of the axes that have extent 1: `squeeze(..)` for all of them. Other axes stay, as in
    /// PyTorch.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::zeros([1, 3, 1], DType::F32);
    /// assert_eq!(x.squeeze(..).shape()?, Shape::from([3]));
    /// assert_eq!(x.squeeze([0, 1]).shape()?, Shape::from([3, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Tensor {
        Tensor::or_invalid(squeeze(Call::here("squeeze"), self, &axes.into()))
    }

    /// With a new axis of extent 1, which is number `axis` of the result.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F32);
    /// assert_eq!(x.unsqueeze(1).shape()?, Shape::from([2, 1, 3]));
    /// assert_eq!(x.unsqueeze(-1).shape()?, Shape::from([2, 3, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unsqueeze(&self, axis: isize) -> Tensor {
        Tensor::or_invalid(unsqueeze(Call::here("unsqueeze"), self, axis))
    }

    /// Repeated along axes of extent 1 and along new leading axes; an extent of -1 stays as it is.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let column = Tensor::zeros([3, 1], DType::F32);
    /// assert_eq!(column.expand([2, -1, 4]).shape()?, Shape::from([2, 3, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn expand(&self, dims: impl Into<Dims>) -> Tensor {
        Tensor::or_invalid(expand(Call::here("expand"), self, &dims.into().0))
    }

    /// Broadcast to a shape: repeated along axes of extent 1 and along new leading axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let column = Tensor::from_slice(&[1i32, 2], [2, 1]);
    /// assert_eq!(column.broadcast_to([2, 3]).to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        Tensor::or_invalid(broadcast_to(Call::here("broadcast_to"), self, shape.into()))
    }
}

fn reshape(call: Call, x: &Tensor, dims: &[isize]) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let elements = shape.elements();
    let mut extents = Vec::with_capacity(dims.len());
    let mut open = None;
    for (axis, &dim) in dims.iter().enumerate() {
        match (usize::try_from(dim), open) {
            (Ok(extent), _) => extents.push(extent),
            (Err(_), _) if dim != -1 => {
                return call.fail(format!("extent {dim} in {dims:?}: extents are 0 or more, or -1 once"));
            }
            (Err(_), Some(_)) => return call.fail(format!("only one extent may be -1, got {dims:?}")),
            (Err(_), None) => {
                open = Some(axis);
                extents.push(1);
            }
        }
    }
    let known = Shape::from(&extents[..]).elements();
    if let Some(axis) = open {
        if known == 0 {
            return call
                .fail(format!("-1 in {dims:?} could be anything beside an extent of 0; write it out"));
        }
        if elements % known != 0 {
            return call
                .fail(format!("the {elements} elements of shape {shape} cannot be divided over {dims:?}"));
        }
        extents[axis] = elements / known;
    } else if known != elements {
        return call.fail(format!("shape {shape} has {elements} elements, but {dims:?} takes {known}"));
    }
    call.reshape(x, Shape::from(extents))
}

fn flatten(call: Call, x: &Tensor, (start, end): (Option<isize>, Option<isize>)) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let line = Shape::from([1]);
    // As in PyTorch, a number has one axis here.
    let shape = if shape.rank() == 0 { &line } else { shape };
    let rank = shape.rank();
    let bound = |bound: Option<isize>, default| bound.map_or(Some(default), |bound| from_end(bound, rank));
    match (bound(start, 0), bound(end, rank)) {
        (Some(start), Some(end)) if start < end && end <= rank => {
            let merged = Shape::from(&shape[start..end]).elements();
            let extents = shape[..start].iter().copied().chain([merged]).chain(shape[end..].iter().copied());
            call.reshape(x, extents.collect())
        }
        _ => {
            let shown = |bound: Option<isize>| bound.map_or(String::new(), |bound| bound.to_string());
            let (start, end) = (shown(start), shown(end));
            call.fail(format!("axes {start}..{end} are no axes of shape {shape}; use .. for all of them"))
        }
    }
}

fn permute(call: Call, x: &Tensor, order: &[isize]) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let order_of_axes = call.axes_in_order(order, shape)?;
    if order_of_axes.len() != shape.rank() {
        let (given, rank) = (order.len(), shape.rank());
        return call
            .fail(format!("{given} axes {order:?} for shape {shape}: name each of its {rank} axes once"));
    }
    permuted(call, x, order_of_axes)
}

fn permuted(call: Call, x: &Tensor, order: op::Axes) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let extents = order.iter().map(|&axis| shape[axis]).collect();
    call.view(View::Permute(order), x, extents)
}

fn transpose(call: Call, x: &Tensor, a: isize, b: isize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    if is_of_scalar(a, shape) && is_of_scalar(b, shape) {
        return Ok(x.clone());
    }
    let (a, b) = (call.axis(a, shape)?, call.axis(b, shape)?);
    let mut order: op::Axes = (0..shape.rank()).collect();
    order.swap(a, b);
    permuted(call, x, order)
}

fn t(call: Call, x: &Tensor) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    match shape.rank() {
        0 | 1 => Ok(x.clone()),
        2 => permuted(call, x, op::Axes::from_slice(&[1, 0])),
        rank => call.fail(format!(
            "needs at most 2 dimensions, got {rank} in shape {shape}; use .transpose(-2, -1) for a batch of matrices"
        )),
    }
}

fn squeeze(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let mut gone = call.axes(axes, shape)?;
    gone.retain(|&mut axis| shape[axis] == 1);
    call.reshape(x, shape.without(&gone))
}

fn unsqueeze(call: Call, x: &Tensor, axis: isize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let rank = shape.rank();
    match from_end(axis, rank + 1).filter(|&axis| axis <= rank) {
        Some(axis) => {
            let mut extents = shape.to_vec();
            extents.insert(axis, 1);
            call.reshape(x, Shape::from(extents))
        }
        None => call.fail(format!(
            "axis {axis} is out of range for a new axis of shape {shape}: it must be from -{} to {rank}",
            rank + 1
        )),
    }
}

fn expand(call: Call, x: &Tensor, dims: &[isize]) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let mut extents = Vec::with_capacity(dims.len());
    for (axis, &dim) in dims.iter().enumerate() {
        let own = (axis + shape.rank()).checked_sub(dims.len()).map(|own| shape[own]);
        match (usize::try_from(dim), own) {
            (Ok(extent), _) => extents.push(extent),
            (Err(_), Some(own)) if dim == -1 => extents.push(own),
            (Err(_), None) if dim == -1 => {
                return call
                    .fail(format!("-1 in {dims:?} is a new axis, of which shape {shape} has no extent"));
            }
            (Err(_), _) => {
                return call
                    .fail(format!("extent {dim} in {dims:?}: extents are 0 or more, or -1 to keep one"));
            }
        }
    }
    broadcast_to(call, x, Shape::from(extents))
}

fn broadcast_to(call: Call, x: &Tensor, to: Shape) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    match shape.broadcast(&to) {
        Some(together) if together == to => call.expand(x, &to),
        _ => call.fail(format!(
            "shape {shape} does not expand to {to}: only extents of 1 can be repeated, and new axes come first"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::tensor::tests::{last_view, mistake, recorded};

    fn x() -> Tensor {
        Tensor::ones([2, 3, 4], DType::F32)
    }

    fn shape(tensor: Tensor) -> Vec<usize> {
        tensor.shape().unwrap().to_vec()
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "a slice to -1 ends before the last, as in Python")]
    fn shapes_are_pytorchs() {
        assert_eq!(shape(x().reshape([6, 4])), [6, 4]);
        assert_eq!(shape(x().reshape([-1])), [24]);
        assert_eq!(shape(x().reshape([4usize, 6])), [4, 6]);
        assert_eq!(shape(x().reshape(vec![3i64, -1, 2])), [3, 4, 2]);
        assert_eq!(shape(x().sum(..).reshape([1, -1])), [1, 1]);
        assert_eq!(shape(Tensor::zeros([0, 3], DType::F32).reshape([-1, 3])), [0, 3]);
        assert_eq!(shape(x().flatten(..)), [24]);
        assert_eq!(shape(x().flatten(1..)), [2, 12]);
        assert_eq!(shape(x().flatten(..-1)), [6, 4]);
        assert_eq!(shape(x().flatten(0..=-1)), [24]);
        assert_eq!(shape(x().flatten(1..2)), [2, 3, 4]);
        assert_eq!(shape(x().sum(..).flatten(..)), [1]);
        assert_eq!(shape(x().permute([2, 0, -2])), [4, 2, 3]);
        assert_eq!(shape(x().transpose(0, -1)), [4, 3, 2]);
        assert_eq!(shape(x().select(0, 1).t()), [4, 3]);
        assert_eq!(shape(Tensor::ones([1, 2, 1], DType::F32).squeeze(..)), [2]);
        assert_eq!(shape(Tensor::ones([1, 2, 1], DType::F32).squeeze([0, 1])), [2, 1]);
        assert_eq!(shape(x().unsqueeze(-1)), [2, 3, 4, 1]);
        assert_eq!(shape(x().unsqueeze(-4)), [1, 2, 3, 4]);
        assert_eq!(shape(x().unsqueeze(3)), [2, 3, 4, 1]);
        assert_eq!(shape(x().expand([5, -1, 3, 4])), [5, 2, 3, 4]);
        assert_eq!(shape(Tensor::ones([3, 1], DType::F32).broadcast_to([2, 3, 0])), [2, 3, 0]);
    }

    #[test]
    fn views_are_recorded_as_they_are_defined() {
        assert_eq!(last_view(&x().transpose(0, 2)), View::Permute(op::Axes::from_slice(&[2, 1, 0])));
    }

    #[test]
    fn views_that_change_nothing_are_not_recorded() {
        let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
        for same in [x.reshape([2]), x.flatten(..), x.t(), x.squeeze(..), x.expand([-1]), x.broadcast_to([2])]
        {
            assert_eq!(recorded(&same), ["input"]);
        }
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        mistake!(x().reshape([5, 5]), "reshape: shape [2, 3, 4] has 24 elements, but [5, 5] takes 25");
        mistake!(
            x().reshape([5, -1]),
            "reshape: the 24 elements of shape [2, 3, 4] cannot be divided over [5, -1]"
        );
        mistake!(x().reshape([-1, -1]), "reshape: only one extent may be -1, got [-1, -1]");
        mistake!(x().reshape([-2, 3]), "reshape: extent -2 in [-2, 3]: extents are 0 or more, or -1 once");
        mistake!(
            x().slice(0, 5..).reshape([0, -1]),
            "reshape: -1 in [0, -1] could be anything beside an extent of 0; write it out"
        );
        mistake!(
            x().flatten(1..1),
            "flatten: axes 1..1 are no axes of shape [2, 3, 4]; use .. for all of them"
        );
        mistake!(
            x().permute([0, 1]),
            "permute: 2 axes [0, 1] for shape [2, 3, 4]: name each of its 3 axes once"
        );
        mistake!(x().permute([0, 1, -2]), "permute: axis 1 of shape [2, 3, 4] is given twice in [0, 1, -2]");
        mistake!(
            x().transpose(0, 3),
            "transpose: axis 3 is out of range for shape [2, 3, 4]: it must be from -3 to 2"
        );
        mistake!(
            x().t(),
            "t: needs at most 2 dimensions, got 3 in shape [2, 3, 4]; use .transpose(-2, -1) for a batch of matrices"
        );
        mistake!(
            x().unsqueeze(4),
            "unsqueeze: axis 4 is out of range for a new axis of shape [2, 3, 4]: it must be from -4 to 3"
        );
        mistake!(
            x().expand([2, 3, 8]),
            "expand: shape [2, 3, 4] does not expand to [2, 3, 8]: only extents of 1 can be repeated, and new axes come first"
        );
        mistake!(
            x().expand([-1, 2, 3, 4]),
            "expand: -1 in [-1, 2, 3, 4] is a new axis, of which shape [2, 3, 4] has no extent"
        );
        mistake!(
            x().broadcast_to([4]),
            "broadcast_to: shape [2, 3, 4] does not expand to [4]: only extents of 1 can be repeated, and new axes come first"
        );
    }
}
