//! One call by the user: its name and place, which every node and every error that it makes carries.

use std::cell::Cell;
use std::fmt::Display;

use smallvec::{SmallVec, smallvec};

use super::axes::{Axes, AxesKind};
use crate::graph::op::{self, Constant, ConstantRole, Op, View};
use crate::recording::{Recipe, Sources, State, Tensor, is_addressable};
use crate::{BinaryOp, DType, Device, Error, ReduceOp, Result, Scalar, Shape, SourceLocation, UnaryOp};

thread_local! {
    /// The user's call while it records operations of the public API: they are part of it.
    static OUTER: Cell<Option<Call>> = const { Cell::new(None) };
    /// Whether a function is recorded for all of its inputs.
    static IS_TRACED: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function that is recorded once for all of its inputs.
pub(crate) fn trace<T>(f: impl FnOnce() -> T) -> T {
    /// Restores what was before, also if `f` panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_TRACED.set(self.0);
        }
    }
    let _restore = Restore(IS_TRACED.replace(true));
    f()
}

/// Whether what is recorded may be that of any call of a function.
pub(crate) fn is_traced() -> bool {
    IS_TRACED.get()
}

/// What the user called, and where. Its methods record the primitives that the call is made of.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    op: &'static str,
    location: SourceLocation,
}

impl Call {
    /// A call of `op` by the caller of the function that is marked `#[track_caller]`; within
    /// [`Call::compose`] the call that is composed.
    #[track_caller]
    pub(crate) fn here(op: &'static str) -> Call {
        let own = Call { op, location: SourceLocation::caller() };
        OUTER.get().unwrap_or(own)
    }

    /// A call by another name, of a place that is known.
    pub(crate) fn at(op: &'static str, location: SourceLocation) -> Call {
        Call { op, location }
    }

    /// What `f` makes of the public API's operations. They carry this call's name and place, and so do their
    /// errors: the user knows nothing of them.
    pub(crate) fn compose<T>(self, f: impl FnOnce() -> T) -> T {
        /// Restores the call around this one, also if `f` panics.
        struct Restore(Option<Call>);
        impl Drop for Restore {
            fn drop(&mut self) {
                OUTER.set(self.0);
            }
        }
        let _restore = Restore(OUTER.replace(Some(self)));
        f()
    }

    /// [`Call::compose`] for one tensor, invalid where `f` fails.
    pub(crate) fn composed(self, f: impl FnOnce() -> Result<Tensor>) -> Tensor {
        Tensor::or_invalid(self.compose(f))
    }

    pub(crate) fn location(self) -> SourceLocation {
        self.location
    }

    pub(crate) fn name(self) -> &'static str {
        self.op
    }

    /// An [`Error::InvalidOperation`] of this call.
    pub(crate) fn error(self, message: impl Into<String>) -> Error {
        Error::InvalidOperation { op: self.op, message: message.into(), location: self.location }
    }

    /// An `Err` of this call.
    pub(crate) fn fail<T>(self, message: impl Into<String>) -> Result<T> {
        Err(self.error(message))
    }

    /// Records one operation of the graph.
    pub(crate) fn record(self, op: Op, sources: &[&Tensor], shape: Shape, dtype: DType) -> Result<Tensor> {
        let tensor = Tensor::record(op, sources, shape, dtype, self.op, self.location);
        tensor.validity().map(|()| tensor)
    }

    pub(crate) fn constant(self, value: Scalar, role: ConstantRole) -> Result<Tensor> {
        self.filled(value, role, &Shape::scalar())
    }

    /// A constant at every position of the shape.
    pub(crate) fn filled(self, value: Scalar, role: ConstantRole, shape: &Shape) -> Result<Tensor> {
        self.needs_addressable(shape)?;
        let state = State::Recorded(Recipe::Filled(Constant { value, role }), Sources::new());
        Ok(Tensor::from_parts(shape.clone(), value.dtype(), None, self.op, self.location, state))
    }

    /// A constant at every position of the shape, on a device if one is given.
    pub(crate) fn filled_on(
        self,
        device: Option<Device>,
        value: Scalar,
        role: ConstantRole,
        shape: &Shape,
    ) -> Result<Tensor> {
        let filled = self.filled(value, role, shape)?;
        device.map_or(Ok(filled.clone()), |device| self.transfer(&filled, device))
    }

    /// The tensor on a device.
    pub(crate) fn transfer(self, x: &Tensor, device: Device) -> Result<Tensor> {
        let (shape, dtype) = x.known()?;
        if x.node.device == Some(device) {
            return Ok(x.clone());
        }
        let state = State::Recorded(Recipe::Transfer, Sources::from_iter([x.clone()]));
        Ok(Tensor::from_parts(shape.clone(), dtype, Some(device), self.op, self.location, state))
    }

    /// Data of the user's, which is the host's, on the thread's default device.
    pub(crate) fn placed(self, x: &Tensor) -> Result<Tensor> {
        let is_of_user = OUTER.get().is_none();
        if is_of_user { self.transfer(x, Device::default()) } else { Ok(x.clone()) }
    }

    /// Records an elementwise operation that is known to fit: all sources have the shape of the first one, and the dtypes that it
    /// takes, and are on one device.
    #[inline(always)]
    fn fitting(self, op: Op, sources: Sources, device: Option<Device>, dtype: DType) -> Tensor {
        let shape = sources.first().map(|source| source.node.shape.clone()).unwrap_or_default();
        let state = State::Recorded(Recipe::Op(op), sources);
        Tensor::from_parts(shape, dtype, device, self.op, self.location, state)
    }

    pub(crate) fn unary(self, op: UnaryOp, x: &Tensor) -> Result<Tensor> {
        let (shape, dtype) = x.known()?;
        if op.accepts(dtype) {
            return Ok(self.fitting(Op::Unary(op), smallvec![x.clone()], x.node.device, op.result(dtype)));
        }
        self.record(Op::Unary(op), &[x], shape.clone(), op.result(dtype))
    }

    /// `op` of two tensors of one dtype, one of which is broadcast to the other.
    pub(crate) fn binary(self, op: BinaryOp, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let ((shape, dtype), (other, _)) = (a.known()?, b.known()?);
        let shape = if shape.broadcasts_to(other) { other } else { shape };
        self.record(Op::Binary(op), &[a, b], shape.clone(), op.result(dtype))
    }

    /// The same of tensors that are given away, of a dtype that is known to be accepted, and of any shapes.
    pub(crate) fn binary_of(self, op: BinaryOp, a: Tensor, b: Tensor) -> Result<Tensor> {
        let (own, other) = (&a.node.shape, &b.node.shape);
        let dtype = op.result(a.node.dtype);
        let device = a.node.device.or(b.node.device);
        if own == other && (device == b.node.device || b.node.device.is_none()) {
            return Ok(self.fitting(Op::Binary(op), smallvec![a, b], device, dtype));
        }
        let shape = self.broadcast(&[own, other])?;
        self.record(Op::Binary(op), &[&a, &b], shape, dtype)
    }

    /// `op` of a tensor and a number of its dtype, which are known to be accepted; the number may be the first operand.
    pub(crate) fn with_number(self, op: BinaryOp, x: Tensor, number: Constant, is_first: bool) -> Tensor {
        let (shape, device) = (x.node.shape.clone(), x.node.device);
        let dtype = op.result(x.node.dtype);
        let recipe = Recipe::WithNumber { op, number, is_first };
        let state = State::Recorded(recipe, smallvec![x]);
        Tensor::from_parts(shape, dtype, device, self.op, self.location, state)
    }

    pub(crate) fn cast(self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        let (shape, own) = x.known()?;
        if own == dtype {
            return Ok(x.clone());
        }
        self.record(Op::Cast, &[x], shape.clone(), dtype)
    }

    pub(crate) fn view(self, view: View, x: &Tensor, shape: Shape) -> Result<Tensor> {
        let (_, dtype) = x.known()?;
        self.record(Op::View(view), &[x], shape, dtype)
    }

    pub(crate) fn reshape(self, x: &Tensor, shape: Shape) -> Result<Tensor> {
        if *x.known()?.0 == shape {
            return Ok(x.clone());
        }
        self.view(View::Reshape, x, shape)
    }

    /// The tensor broadcast to a shape that it is known to broadcast to.
    pub(crate) fn expand(self, x: &Tensor, shape: &Shape) -> Result<Tensor> {
        if x.known()?.0 == shape {
            return Ok(x.clone());
        }
        self.view(View::Expand, x, shape.clone())
    }

    /// The slices (first, step, count) along some axes; the others stay.
    pub(crate) fn slice(self, x: &Tensor, slices: &[(usize, (usize, isize, usize))]) -> Result<Tensor> {
        let (shape, _) = x.known()?;
        let mut starts = SmallVec::from_elem(0, shape.rank());
        let mut steps = SmallVec::from_elem(1, shape.rank());
        let mut extents = shape.to_vec();
        for &(axis, (first, step, count)) in slices {
            (starts[axis], steps[axis], extents[axis]) = (first as i64, step as i64, count);
        }
        self.view(View::Slice { starts, steps }, x, Shape::from(extents))
    }

    /// The elements along some axes combined, which stay with extent 1 for `keepdim`; the tensor itself where there are
    /// no axes.
    pub(crate) fn reduce(self, op: ReduceOp, x: &Tensor, axes: &op::Axes, keepdim: bool) -> Result<Tensor> {
        let (shape, dtype) = x.known()?;
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let shape = if keepdim { kept(shape, axes) } else { shape.without(axes) };
        self.record(Op::Reduce { op, axes: axes.clone() }, &[x], shape, dtype)
    }

    /// What `f` makes of floats, computed in `F32` for those of 16 bits and rounded once.
    pub(crate) fn rounded_once(
        self,
        x: &Tensor,
        f: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (_, dtype) = x.known()?;
        self.cast(&f(&self.cast(x, dtype.compute())?)?, dtype)
    }

    /// An error unless a number of the user's is what it must be; a NaN mostly is not.
    pub(crate) fn needs(self, holds: bool, what: &str, given: impl Display) -> Result<()> {
        if holds { Ok(()) } else { self.fail(format!("{what}, got {given}")) }
    }

    /// An error unless the tensor's elements are floats.
    pub(crate) fn needs_float(self, x: &Tensor) -> Result<()> {
        let (shape, dtype) = x.known()?;
        match dtype.is_float() {
            true => Ok(()),
            false => self.fail(format!(
                "needs a float tensor, got {dtype} {shape}; cast it first, such as with .cast(DType::F32)"
            )),
        }
    }

    /// An error if a tensor of that shape could not be addressed.
    pub(crate) fn needs_addressable(self, shape: &Shape) -> Result<()> {
        match is_addressable(shape) {
            true => Ok(()),
            false => self.fail(format!("shape {shape} has more elements than can be addressed")),
        }
    }

    /// The axis as an index into the shape.
    pub(crate) fn axis(self, axis: isize, shape: &Shape) -> Result<usize> {
        let rank = shape.rank();
        match from_end(axis, rank).filter(|&axis| axis < rank) {
            Some(axis) => Ok(axis),
            None if rank == 0 => self.fail(format!("axis {axis} is out of range: a 0-d tensor has no axes")),
            None => self.fail(format!(
                "axis {axis} is out of range for shape {shape}: it must be from -{rank} to {}",
                rank - 1
            )),
        }
    }

    /// The axes as indices into the shape, in the order given, each at most once.
    pub(crate) fn axes_in_order(self, axes: &[isize], shape: &Shape) -> Result<op::Axes> {
        let mut indices = op::Axes::new();
        for &axis in axes {
            let index = self.axis(axis, shape)?;
            if indices.contains(&index) {
                return self.fail(format!("axis {index} of shape {shape} is given twice in {axes:?}"));
            }
            indices.push(index);
        }
        Ok(indices)
    }

    /// What `f` makes of the tensor along an axis. A 0-d tensor counts as a row of one element, as in PyTorch.
    pub(crate) fn along(
        self,
        x: &Tensor,
        axis: isize,
        f: impl FnOnce(&Tensor, usize) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (shape, _) = x.known()?;
        if is_of_scalar(axis, shape) {
            let row = self.reshape(x, Shape::from([1]))?;
            return self.reshape(&f(&row, 0)?, shape.clone());
        }
        f(x, self.axis(axis, shape)?)
    }

    /// The axes as indices into the shape, ascending; none of a 0-d tensor, whose axis 0 is its only element's.
    pub(crate) fn axes(self, axes: &Axes, shape: &Shape) -> Result<op::Axes> {
        match &axes.0 {
            AxesKind::All => Ok((0..shape.rank()).collect()),
            AxesKind::List(list) if matches!(list[..], [axis] if is_of_scalar(axis, shape)) => {
                Ok(op::Axes::new())
            }
            AxesKind::List(list) => {
                let mut indices = self.axes_in_order(list, shape)?;
                indices.sort_unstable();
                Ok(indices)
            }
        }
    }

    /// The shape that all broadcast to.
    pub(crate) fn broadcast(self, shapes: &[&Shape]) -> Result<Shape> {
        let together = shapes.iter().try_fold(Shape::scalar(), |together, shape| together.broadcast(shape));
        match together {
            Some(shape) => Ok(shape),
            None => {
                let named: SmallVec<[&&Shape; 3]> = shapes.iter().filter(|shape| shape.rank() > 0).collect();
                let clash = clash(shapes);
                self.fail(format!("shapes {} do not broadcast: {clash}", list(&named)))
            }
        }
    }
}

/// The shape with axes of extent 1.
pub(crate) fn kept(shape: &Shape, axes: &op::Axes) -> Shape {
    shape.iter().enumerate().map(|(axis, &extent)| if axes.contains(&axis) { 1 } else { extent }).collect()
}

/// Whether the axis is the one that a 0-d tensor has in PyTorch.
pub(crate) fn is_of_scalar(axis: isize, shape: &Shape) -> bool {
    shape.rank() == 0 && matches!(axis, -1 | 0)
}

/// The index that a negative one counts from the end; `None` before the start.
pub(crate) fn from_end(index: isize, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(index.unsigned_abs()),
    }
}

/// `a`, `a and b` or `a, b and c`.
pub(crate) fn list(items: &[impl Display]) -> String {
    match items {
        [] => String::new(),
        [only] => only.to_string(),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|item| item.to_string()).collect();
            format!("{} and {last}", first.join(", "))
        }
    }
}

/// Where shapes that do not broadcast differ, from the last dimension on.
fn clash(shapes: &[&Shape]) -> String {
    let rank = shapes.iter().map(|shape| shape.rank()).max().unwrap_or(0);
    for back in 1..=rank {
        let mut extents = shapes
            .iter()
            .filter_map(|shape| Some(shape[shape.rank().checked_sub(back)?]))
            .filter(|&e| e != 1);
        let first = extents.next();
        if let (Some(first), Some(other)) = (first, extents.find(|&extent| Some(extent) != first)) {
            return format!("{first} against {other} in dimension -{back}, which must be equal or 1");
        }
    }
    "extents must be equal or 1".into()
}
