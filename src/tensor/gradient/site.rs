//! One recorded operation on the way back, and what the rules of several kinds of operations share.

use smallvec::SmallVec;

use crate::graph::op::{Axes, Op};
use crate::tensor::arguments::call::Call;
use crate::{ReduceOp, Result, Shape, Tensor};

/// What reaches each operand; fewer, or `None`, for those that nothing reaches. Where an operand was broadcast it is of the
/// result's shape still.
pub(super) type Adjoints = SmallVec<[Option<Tensor>; 3]>;

/// One recorded operation, whose adjoints are recorded while its call is composed.
pub(super) struct Site<'a> {
    pub(super) call: Call,
    pub(super) result: &'a Tensor,
    pub(super) sources: &'a [Tensor],
    /// What reaches the result.
    pub(super) cotangent: &'a Tensor,
    /// Which sources are of interest.
    pub(super) wants: &'a dyn Fn(usize) -> bool,
}

impl Site<'_> {
    /// The second where the first holds, else the third.
    pub(super) fn choice(&self, condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let shape = self.call.broadcast(&[&condition.node.shape, &a.node.shape, &b.node.shape])?;
        self.call.record(Op::Select, &[condition, a, b], shape, a.node.dtype)
    }

    pub(super) fn unknown<T>(&self, name: &str) -> Result<T> {
        self.call.fail(format!("`{name}` has no derivative here"))
    }
}

/// The shares of elements in `y`, the logarithm of their exponentials' sum.
pub(super) fn weights(x: &Tensor, y: &Tensor) -> Tensor {
    y.isneginf().where_(0, (x - y).exp())
}

pub(super) fn scattered(
    call: Call,
    op: ReduceOp,
    x: &Tensor,
    index: &Tensor,
    axis: usize,
    extent: usize,
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let shape = shape.with_extent(axis, extent);
    call.record(Op::Scatter { op, axis, extent }, &[x, index], shape, dtype)
}

/// What reaches an operand that was broadcast: the sum of what reaches its copies.
pub(super) fn summed_to(call: Call, adjoint: &Tensor, shape: &Shape) -> Result<Tensor> {
    let (own, dtype) = adjoint.known()?;
    if own == shape {
        return Ok(adjoint.clone());
    }
    let more = own.rank() - shape.rank();
    let axes: Axes =
        (0..own.rank()).filter(|&axis| axis < more || shape[axis - more] == 1 && own[axis] != 1).collect();
    let sum = call.reduce(ReduceOp::Sum, adjoint, &axes, true)?;
    debug_assert_eq!(sum.node.dtype, dtype);
    call.reshape(&sum, shape.clone())
}
