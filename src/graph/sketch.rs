//! Graphs for tests, drawn by hand: shapes and dtypes of results follow by themselves where they can.

use smallvec::SmallVec;

use super::op::{Constant, ConstantRole, Op, View};
use super::{Graph, Node, NodeId};
use crate::{BinaryOp, DType, ReduceOp, Scalar, Shape, SourceLocation, UnaryOp};

#[derive(Default)]
pub(crate) struct Sketch {
    pub(crate) graph: Graph,
    inputs: usize,
}

impl Sketch {
    pub(crate) fn new() -> Sketch {
        Sketch::default()
    }

    pub(crate) fn node(op: Op, shape: impl Into<Shape>, dtype: DType) -> Node {
        let location = SourceLocation { file: "sketch.rs", line: 1, column: 1 };
        Node { origin: op.name(), op, shape: shape.into(), dtype, location }
    }

    pub(crate) fn op(
        &mut self,
        op: Op,
        operands: &[NodeId],
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> NodeId {
        self.graph.add(Sketch::node(op, shape, dtype), operands)
    }

    /// The graph so far with these outputs.
    pub(crate) fn outputs(&self, outputs: impl IntoIterator<Item = NodeId>) -> Graph {
        let mut graph = self.graph.clone();
        graph.set_outputs(outputs.into_iter().collect());
        graph
    }

    pub(crate) fn shape(&self, id: NodeId) -> Shape {
        self.graph.node(id).shape.clone()
    }

    pub(crate) fn dtype(&self, id: NodeId) -> DType {
        self.graph.node(id).dtype
    }

    pub(crate) fn input(&mut self, shape: impl Into<Shape>, dtype: DType) -> NodeId {
        self.inputs += 1;
        self.op(Op::Input(self.inputs - 1), &[], shape, dtype)
    }

    /// A constant of the user's, expanded to the shape.
    pub(crate) fn splat(&mut self, value: Scalar, shape: impl Into<Shape>) -> NodeId {
        self.splat_as(value, ConstantRole::Argument, shape)
    }

    pub(crate) fn splat_as(&mut self, value: Scalar, role: ConstantRole, shape: impl Into<Shape>) -> NodeId {
        let shape = shape.into();
        let constant = self.op(Op::Constant(Constant { value, role }), &[], [], value.dtype());
        if shape.rank() == 0 { constant } else { self.expand(constant, shape) }
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, x: NodeId) -> NodeId {
        let (shape, dtype) = (self.shape(x), op.result(self.dtype(x)));
        self.op(Op::Unary(op), &[x], shape, dtype)
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        let (shape, dtype) = (self.shape(a), op.result(self.dtype(a)));
        self.op(Op::Binary(op), &[a, b], shape, dtype)
    }

    pub(crate) fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> NodeId {
        let (shape, dtype) = (self.shape(a), self.dtype(a));
        self.op(Op::Select, &[condition, a, b], shape, dtype)
    }

    pub(crate) fn cast(&mut self, x: NodeId, dtype: DType) -> NodeId {
        let shape = self.shape(x);
        self.op(Op::Cast, &[x], shape, dtype)
    }

    fn view(&mut self, view: View, x: NodeId, shape: impl Into<Shape>) -> NodeId {
        let dtype = self.dtype(x);
        self.op(Op::View(view), &[x], shape, dtype)
    }

    pub(crate) fn reshape(&mut self, x: NodeId, shape: impl Into<Shape>) -> NodeId {
        self.view(View::Reshape, x, shape)
    }

    pub(crate) fn expand(&mut self, x: NodeId, shape: impl Into<Shape>) -> NodeId {
        self.view(View::Expand, x, shape)
    }

    pub(crate) fn permute(&mut self, x: NodeId, perm: impl AsRef<[usize]>) -> NodeId {
        let from = self.shape(x);
        let shape: Shape = perm.as_ref().iter().map(|&axis| from[axis]).collect();
        self.view(View::Permute(SmallVec::from_slice(perm.as_ref())), x, shape)
    }

    pub(crate) fn slice(
        &mut self,
        x: NodeId,
        starts: impl AsRef<[i64]>,
        steps: impl AsRef<[i64]>,
        shape: impl Into<Shape>,
    ) -> NodeId {
        let (starts, steps) = (SmallVec::from_slice(starts.as_ref()), SmallVec::from_slice(steps.as_ref()));
        self.view(View::Slice { starts, steps }, x, shape)
    }

    pub(crate) fn pad(
        &mut self,
        x: NodeId,
        before: impl AsRef<[usize]>,
        value: Scalar,
        shape: impl Into<Shape>,
    ) -> NodeId {
        self.view(View::Pad { before: SmallVec::from_slice(before.as_ref()), value }, x, shape)
    }

    /// Sliding windows without dilation.
    pub(crate) fn window(&mut self, x: NodeId, axis: usize, size: usize, stride: usize) -> NodeId {
        let mut shape = self.shape(x).to_vec();
        shape[axis] = (shape[axis] - size) / stride + 1;
        shape.push(size);
        self.view(View::Window { axis, size, stride, dilation: 1 }, x, shape)
    }

    pub(crate) fn reduce(&mut self, op: ReduceOp, x: NodeId, axes: impl AsRef<[usize]>) -> NodeId {
        let axes = axes.as_ref();
        let (shape, dtype) = (self.shape(x).without(axes), self.dtype(x));
        self.op(Op::Reduce { op, axes: SmallVec::from_slice(axes) }, &[x], shape, dtype)
    }

    pub(crate) fn scan(
        &mut self,
        op: ReduceOp,
        x: NodeId,
        axis: usize,
        reverse: bool,
        exclusive: bool,
    ) -> NodeId {
        let (shape, dtype) = (self.shape(x), self.dtype(x));
        self.op(Op::Scan { op, axis, reverse, exclusive }, &[x], shape, dtype)
    }

    /// The sums of a vector's elements at each of `extent` positions.
    pub(crate) fn scatter(&mut self, x: NodeId, index: NodeId, extent: usize) -> NodeId {
        let dtype = self.dtype(x);
        self.op(Op::Scatter { op: ReduceOp::Sum, axis: 0, extent }, &[x, index], [extent], dtype)
    }
}
