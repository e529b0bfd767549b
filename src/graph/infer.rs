//! Result shape and dtype of every operation: used when recording, and by the verifier between passes.

use super::body::Body;
use super::op::{Op, Sorted, StepResult, View};
use crate::{BinaryOp, DType, ReduceOp, Shape, UnaryOp};

/// Shape and dtype of an operand or a result.
pub(crate) type Type<'a> = (&'a Shape, DType);

/// Checks that `result` is what `op` gives for `operands`.
///
/// The message names shapes and dtypes, but not the operation: the caller has its user-facing name.
pub(crate) fn check(op: &Op, operands: &[Type<'_>], result: Type<'_>) -> Result<(), String> {
    let typing = Typing { operands, result };
    match op {
        Op::Input(_) => typing.count(0),
        Op::Constant(constant) => {
            typing.count(0)?;
            typing.expect(&Shape::scalar(), constant.value.dtype())
        }
        Op::Iota => match result.0.rank() == 1 && result.1 == DType::I64 {
            true => typing.count(0),
            false => Err(format!("gives a 1-d i64 tensor, but is recorded as {} {}", result.1, result.0)),
        },
        Op::Random { .. } => match result.1.is_float() {
            true => typing.count(0),
            false => Err(format!("random numbers are floats, not {}", result.1)),
        },
        Op::Unary(op) => typing.unary(*op),
        Op::Binary(op) => typing.binary(*op),
        Op::Select => typing.select(),
        Op::Cast => typing.expect(typing.only()?.0, result.1),
        Op::View(view) => {
            let (shape, dtype) = typing.only()?;
            match dtype == result.1 {
                true => check_view(view, shape, result.0),
                false => Err(format!("a view keeps the dtype {dtype}, but is recorded as {}", result.1)),
            }
        }
        Op::Reduce { op, axes } => typing.reduce(*op, axes),
        Op::Scan { op, axis, .. } => {
            let (shape, dtype) = typing.only()?;
            check_axes(&[*axis], shape)?;
            typing.accepted(op.is_scan() && op.accepts(dtype), dtype)?;
            typing.expect(shape, dtype)
        }
        Op::Recurrence { axis, body, result, .. } => typing.recurrence(*axis, body, *result),
        Op::Gather { axis, .. } => typing.gather(*axis),
        Op::Scatter { op, axis, extent } => typing.scatter(*op, *axis, *extent),
        Op::Sort { axis, extent, result, .. } => typing.sort(*axis, *extent, *result),
    }
}

/// An operation's operands, and what it is recorded as.
#[derive(Clone, Copy)]
struct Typing<'a> {
    operands: &'a [Type<'a>],
    result: Type<'a>,
}

impl<'a> Typing<'a> {
    fn operand(self, n: usize) -> Result<Type<'a>, String> {
        self.operands.get(n).copied().ok_or_else(|| format!("operand {n} is missing"))
    }

    fn count(self, n: usize) -> Result<(), String> {
        match self.operands.len() == n {
            true => Ok(()),
            false => Err(format!("takes {n} operands, got {}", self.operands.len())),
        }
    }

    /// The operand of an operation with one.
    fn only(self) -> Result<Type<'a>, String> {
        self.count(1)?;
        self.operand(0)
    }

    /// The operands of an operation with two.
    fn both(self) -> Result<[Type<'a>; 2], String> {
        self.count(2)?;
        Ok([self.operand(0)?, self.operand(1)?])
    }

    fn expect(self, shape: &Shape, dtype: DType) -> Result<(), String> {
        match self.result == (shape, dtype) {
            true => Ok(()),
            false => {
                Err(format!("gives {dtype} {shape}, but is recorded as {} {}", self.result.1, self.result.0))
            }
        }
    }

    fn accepted(self, accepts: bool, dtype: DType) -> Result<(), String> {
        if accepts { Ok(()) } else { Err(format!("not defined for {dtype}")) }
    }

    fn unary(self, op: UnaryOp) -> Result<(), String> {
        let (shape, dtype) = self.only()?;
        self.accepted(op.accepts(dtype), dtype)?;
        self.expect(shape, op.result(dtype))
    }

    fn binary(self, op: BinaryOp) -> Result<(), String> {
        let [(shape, dtype), (other_shape, other_dtype)] = self.both()?;
        if shape != other_shape || dtype != other_dtype {
            return Err(format!("operands differ: {dtype} {shape} and {other_dtype} {other_shape}"));
        }
        self.accepted(op.accepts(dtype), dtype)?;
        self.expect(shape, op.result(dtype))
    }

    fn select(self) -> Result<(), String> {
        self.count(3)?;
        let (condition, a, b) = (self.operand(0)?, self.operand(1)?, self.operand(2)?);
        if condition.1 != DType::Bool || a != b || condition.0 != a.0 {
            return Err(format!(
                "needs a bool condition and two like operands, got {} {}, {} {} and {} {}",
                condition.1, condition.0, a.1, a.0, b.1, b.0
            ));
        }
        self.expect(a.0, a.1)
    }

    fn reduce(self, op: ReduceOp, axes: &[usize]) -> Result<(), String> {
        let (shape, dtype) = self.only()?;
        check_axes(axes, shape)?;
        self.accepted(op.accepts(dtype), dtype)?;
        if op.needs_values() && axes.iter().any(|&axis| shape[axis] == 0) {
            return Err(format!("no largest or smallest of nothing: shape {shape} is empty along {axes:?}"));
        }
        self.expect(&shape.without(axes), op.result(dtype))
    }

    fn recurrence(self, axis: usize, body: &Body, wanted: StepResult) -> Result<(), String> {
        self.count(body.inputs.len())?;
        let full = self.operand(body.carries)?.0;
        check_axes(&[axis], full)?;
        let slice = full.without(&[axis]);
        check_body(body, full, &slice, self.operands)?;
        let (shape, number) = match wanted {
            StepResult::Each(number) => (full, number),
            StepResult::Last(number) if number < body.carries => (&slice, number),
            StepResult::Last(number) => return Err(format!("carry {number} is missing")),
        };
        match body.output(number) {
            Some(dtype) => self.expect(shape, dtype),
            None => Err(format!("result {number} is missing")),
        }
    }

    fn gather(self, axis: usize) -> Result<(), String> {
        let [(shape, dtype), (at, index)] = self.both()?;
        let fits = axis < at.rank()
            && shape.rank() == at.rank()
            && (0..at.rank()).all(|k| k == axis || shape[k] == at[k]);
        match fits && index.is_int() {
            true => self.expect(at, dtype),
            false => Err(format!("{index} {at} is no index of axis {axis} of shape {shape}")),
        }
    }

    fn scatter(self, op: ReduceOp, axis: usize, extent: usize) -> Result<(), String> {
        let [(shape, dtype), (at, index)] = self.both()?;
        check_axes(&[axis], shape)?;
        if at != shape || !index.is_int() {
            return Err(format!("{index} {at} is no index of each element of shape {shape}"));
        }
        self.accepted(op.accepts(dtype) && op.is_plain(), dtype)?;
        self.expect(&shape.with_extent(axis, extent), dtype)
    }

    fn sort(self, axis: usize, extent: usize, wanted: Sorted) -> Result<(), String> {
        let (shape, dtype) = self.only()?;
        check_axes(&[axis], shape)?;
        if extent > shape[axis] {
            return Err(format!("{extent} of {} elements", shape[axis]));
        }
        let dtype = match wanted {
            Sorted::Values => dtype,
            Sorted::Positions => DType::I64,
        };
        self.expect(&shape.with_extent(axis, extent), dtype)
    }
}

/// Checks that the operands are what the body takes, and that what it carries stays what it is.
fn check_body(body: &Body, full: &Shape, slice: &Shape, operands: &[Type<'_>]) -> Result<(), String> {
    for (number, (operand, dtype)) in operands.iter().zip(&body.inputs).enumerate() {
        let is_carry = number < body.carries;
        let shape = if is_carry { slice } else { full };
        if *operand != (shape, *dtype) {
            let (got, like) = operand;
            return Err(format!("operand {number} is {like} {got}, and the step takes {dtype} {shape}"));
        }
        if is_carry && body.output(number) != Some(*dtype) {
            return Err(format!("carry {number} begins as {dtype} and becomes something else"));
        }
    }
    Ok(())
}

fn check_axes(axes: &[usize], shape: &Shape) -> Result<(), String> {
    let ascending = axes.windows(2).all(|pair| pair[0] < pair[1]);
    match ascending && axes.iter().all(|&axis| axis < shape.rank()) {
        true => Ok(()),
        false => Err(format!("axes {axes:?} do not fit shape {shape}")),
    }
}

fn check_view(view: &View, from: &Shape, to: &Shape) -> Result<(), String> {
    let mismatch = || Err(format!("{view:?} does not turn shape {from} into {to}"));
    let same_rank = from.rank() == to.rank();
    let fits = match view {
        View::Reshape => from.elements() == to.elements(),
        View::Permute(perm) => {
            let mut seen = perm.clone();
            seen.sort_unstable();
            same_rank
                && seen.iter().copied().eq(0..from.rank())
                && perm.iter().zip(to.iter()).all(|(&p, &extent)| from[p] == extent)
        }
        View::Expand => from.broadcast(to).as_ref() == Some(to),
        View::Slice { starts, steps } => {
            same_rank
                && starts.len() == from.rank()
                && steps.len() == from.rank()
                && (0..from.rank()).all(|axis| {
                    let (start, step) = (starts[axis] as i128, steps[axis] as i128);
                    let inside = |at: i128| at >= 0 && at < from[axis] as i128;
                    let last = start + step * (to[axis] as i128 - 1);
                    step != 0 && (to[axis] == 0 || inside(start) && inside(last))
                })
        }
        View::Pad { before, .. } => {
            same_rank
                && before.len() == from.rank()
                && (0..from.rank())
                    .all(|axis| to[axis].checked_sub(from[axis]).is_some_and(|border| before[axis] <= border))
        }
        View::Window { axis, size, stride, dilation } => {
            *axis < from.rank()
                && *size >= 1
                && *stride >= 1
                && *dilation >= 1
                && to.rank() == from.rank() + 1
                && to[from.rank()] == *size
                && (0..from.rank()).all(|k| match k == *axis {
                    true => window_count(from[k], *size, *stride, *dilation) == Some(to[k]),
                    false => from[k] == to[k],
                })
        }
    };
    if fits { Ok(()) } else { mismatch() }
}

/// How many windows fit an extent, or `None` if not even one does.
pub(crate) fn window_count(extent: usize, size: usize, stride: usize, dilation: usize) -> Option<usize> {
    let span = dilation.checked_mul(size.checked_sub(1)?)?.checked_add(1)?;
    Some(extent.checked_sub(span)? / stride.max(1) + 1)
}
