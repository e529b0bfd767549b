//! The operations of the graph, which fusion and lowering know. What is made of several is composed where it is recorded.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::dag::Dag;
use crate::{BinaryOp, DType, ReduceOp, Scalar, Shape, SourceLocation, UnaryOp};

/// Axes of a tensor, ascending.
pub(crate) type Axes = SmallVec<[usize; 6]>;

/// The operations that some outputs need.
pub(crate) type Graph = Dag<Node>;

/// One operation with its result's type and where it came from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub op: Op,
    pub shape: Shape,
    pub dtype: DType,
    /// The operation as the user called it, such as `softmax` for each primitive of a softmax.
    pub origin: &'static str,
    pub location: SourceLocation,
}

/// A [`Node`] whose parts are somewhere.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef<'a> {
    pub(crate) op: &'a Op,
    pub(crate) shape: &'a Shape,
    pub(crate) dtype: DType,
    pub(crate) origin: &'static str,
    pub(crate) location: SourceLocation,
}

impl Node {
    /// What the user called the operation.
    pub(crate) fn called(&self) -> &'static str {
        if self.origin.is_empty() { self.op.name() } else { self.origin }
    }

    pub(crate) fn as_ref(&self) -> NodeRef<'_> {
        let Node { op, shape, dtype, origin, location } = self;
        NodeRef { op, shape, dtype: *dtype, origin, location: *location }
    }
}

impl From<NodeRef<'_>> for Node {
    fn from(NodeRef { op, shape, dtype, origin, location }: NodeRef) -> Node {
        Node { op: op.clone(), shape: shape.clone(), dtype, origin, location }
    }
}

/// What a node of the graph computes from its operands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    /// A buffer with data: the n-th of the evaluation's inputs, contiguous and row-major.
    Input(usize),
    /// A 0-d constant.
    Constant(Constant),
    /// The i64 values 0, 1, … along the only dimension.
    Iota,
    /// Uniform floats in [0, 1): Philox of the seed and the row-major element index of this node.
    Random { seed: u64 },
    /// Pointwise; one operand.
    Unary(UnaryOp),
    /// Pointwise; two operands of one shape and dtype.
    Binary(BinaryOp),
    /// `select(condition, a, b)`, pointwise: a `Bool` and two operands of one dtype, all of one shape.
    Select,
    /// Pointwise conversion to the node's dtype, as Rust's `as`; rounds to the 16-bit floats.
    Cast,
    /// Other positions of the same elements; moves no data by itself.
    View(View),
    /// Combines the elements along the axes, which the result no longer has.
    Reduce { op: ReduceOp, axes: Axes },
    /// The elements along the axis up to each, combined. In reverse: from each on.
    /// Exclusive: without the element itself, beginning with what nothing combines to.
    Scan { op: ReduceOp, axis: usize, reverse: bool, exclusive: bool },
    /// A step for each position along the axis, one after the other. The operands are what the carries begin as, of
    /// the shape without the axis, and then the elements of all steps, of the whole shape.
    Recurrence { axis: usize, reverse: bool, body: Arc<Body>, result: StepResult },
    /// `gather(x, index)`: at each position of the index, the element of x at the same position but for the axis, where
    /// the index says which. x has the index's shape but for the axis; an index outside of the axis is an error, or cannot be by
    /// how it was recorded: nothing checks it then.
    Gather { axis: usize, is_checked: bool },
    /// `scatter(x, index)`, of one shape: at each of `extent` positions of the axis, those elements of x combined, in
    /// their order along the axis, whose index says this one; what nothing combines to where there are none. Not by
    /// squared deviations. An index outside of the axis is an error.
    Scatter { op: ReduceOp, axis: usize, extent: usize },
    /// The first `extent` elements along the axis in ascending or descending order, or the positions that they come from.
    /// Equal ones stay in their order; -0 equals 0, and NaN is above all numbers.
    Sort { axis: usize, extent: usize, descending: bool, result: Sorted },
}

/// What one step of a recurrence computes. Nodes are 0-d, because every position is a step of its own; the inputs are
/// the carries and then the elements, the outputs the carries of the next step and then results.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) graph: Graph,
    /// How many of the inputs are carries.
    pub(crate) carries: usize,
    /// The inputs' dtypes; one that nothing needs may have no node.
    pub(crate) inputs: Vec<DType>,
    pub(super) key: StructuralKey,
    /// How gradients go through its nodes where that does not follow from these. It is the recorder's own: nothing that compiles
    /// looks at it.
    pub(crate) rules: Option<Arc<dyn Any + Send + Sync>>,
}

/// Bodies are equal if their graphs are, whatever lines of the user's they are from.
impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        (self.key, self.carries, &self.inputs) == (other.key, other.carries, &other.inputs)
    }
}

impl Eq for Body {}

impl Hash for Body {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.key, self.carries, &self.inputs).hash(state);
    }
}

/// 128 bits that are equal for two graphs if, and for all practical purposes only if, their live nodes
/// agree in operation, attributes (constants by their bits), shape, dtype, operands and origin, and
/// their outputs agree. Locations do not count: another call of the same function is the same graph. Only those of
/// gathers and scatters do, because running a plan may report them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct StructuralKey(pub(crate) u128);

/// Which of its results a sort gives; one kernel computes both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Sorted {
    /// The elements.
    Values,
    /// Where they come from, as `I64`.
    Positions,
}

/// Which of its results a recurrence gives. Several of one loop are several nodes: one kernel computes them together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum StepResult {
    /// An output of the body, at every position.
    Each(usize),
    /// A carry after the last step, which has no axis.
    Last(usize),
}

/// A 0-d constant and how it appears in a kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Constant {
    pub value: Scalar,
    pub role: ConstantRole,
}

/// Whether another value of a constant means another kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ConstantRole {
    /// The user's own number, or one that follows from a batch size: passed to the kernel as an argument.
    Argument,
    /// Part of an operation's definition, such as the coefficients of gelu: printed in the kernel's text.
    Literal,
}

/// Element positions of a view's result in terms of its operand's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum View {
    /// The same row-major sequence of elements under the node's shape.
    Reshape,
    /// Dimension k of the result is dimension `perm[k]` of the operand.
    Permute(Axes),
    /// NumPy broadcasting to the node's shape: dimensions align at the last.
    Expand,
    /// `result[i]` is `operand[start + step * i]` per dimension; steps may be negative, not 0.
    Slice { starts: SmallVec<[i64; 6]>, steps: SmallVec<[i64; 6]> },
    /// `result[i]` is `operand[i - before]` where that exists, else the value.
    Pad { before: SmallVec<[usize; 6]>, value: Scalar },
    /// Sliding windows: `result[.., o, .., k]` is `operand[.., o * stride + k * dilation, ..]` at
    /// `axis`; the window becomes a new last dimension.
    Window { axis: usize, size: usize, stride: usize, dilation: usize },
}

impl Op {
    /// The name in dumps, kernel names and explanations.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Op::Input(_) => "input",
            Op::Constant(_) => "constant",
            Op::Iota => "iota",
            Op::Random { .. } => "random",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Select => "where",
            Op::Cast => "cast",
            Op::View(view) => match view {
                View::Reshape => "reshape",
                View::Permute(_) => "permute",
                View::Expand => "expand",
                View::Slice { .. } => "slice",
                View::Pad { .. } => "pad",
                View::Window { .. } => "window",
            },
            Op::Reduce { op, .. } => op.name(),
            Op::Scan { op, .. } => op.scan_name(),
            Op::Recurrence { .. } => "recurrence",
            Op::Gather { .. } => "gather",
            Op::Scatter { op, .. } => op.scatter_name(),
            Op::Sort { result: Sorted::Values, .. } => "sort",
            Op::Sort { result: Sorted::Positions, .. } => "argsort",
        }
    }

    /// Whether elements are only renamed or generated from their position: free inside any kernel.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Op::Input(_) | Op::Constant(_) | Op::Iota | Op::View(_))
    }

    /// Whether each element of the result follows from the operands' elements at its own position, whatever the
    /// shape: then a step may consist of it.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(self, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast)
    }
}
