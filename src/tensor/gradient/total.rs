//! What reaches a tensor by several ways, as one tensor.

use crate::graph::op::{ConstantRole, Op, View};
use crate::recording::{Recipe, State};
use crate::tensor::arguments::call::Call;
use crate::tensor::view::copied::{added_apart, copied_back};
use crate::tensor::view::join::joined;
use crate::{BinaryOp, Result, Scalar, Tensor};

/// What reaches some positions of an axis, and no others.
struct Part {
    axis: usize,
    first: usize,
    tensor: Tensor,
}

/// The sum of what reaches a tensor. What reaches parts that do not overlap, as what a tensor was
/// split into, is joined: a sum would add zeros everywhere, once for each part.
pub(super) fn total(call: Call, terms: &[Tensor]) -> Result<Option<Tensor>> {
    let [first, ..] = terms else { return Ok(None) };
    if terms.len() == 1 {
        return Ok(Some(first.clone()));
    }
    let (whole, join) = call.compose(|| split(call, terms))?;
    let dtype = first.node.dtype;
    // 16-bit floats are rounded once.
    let wide = |term: &Tensor| call.cast(term, dtype.compute());
    let mut whole = whole.iter().map(wide).collect::<Result<Vec<Tensor>>>()?;
    if let Some(sum) = added_apart(call, &whole) {
        whole = vec![sum];
    }
    let join = join.as_ref().map(wide).transpose()?;
    let mut all = join.into_iter().chain(whole);
    let Some(mut sum) = all.next() else { return Ok(None) };
    for term in all {
        sum = call.binary(BinaryOp::Add, &sum, &term)?;
    }
    call.cast(&sum, dtype).map(Some)
}

/// The terms that are not joined, and the join of the others.
fn split(call: Call, terms: &[Tensor]) -> Result<(Vec<Tensor>, Option<Tensor>)> {
    let (mut parts, mut whole) = (Vec::new(), Vec::new());
    let mut along = None;
    for term in terms {
        match Part::of(term) {
            Some(part) if *along.get_or_insert(part.axis) == part.axis => parts.push(part),
            _ => whole.push(term.clone()),
        }
    }
    parts.sort_by_key(|part| part.first);
    let follows = |pair: &[Part]| pair[0].end() <= pair[1].first;
    if parts.len() < 2 || !parts.windows(2).all(follows) {
        return Ok((terms.to_vec(), None));
    }
    let shape = &terms[0].node.shape;
    let mut pieces = Vec::new();
    let mut end = 0;
    for Part { axis, first, tensor } in parts {
        pieces.extend(zeros(call, &tensor, axis, first - end)?);
        end = first + tensor.node.shape[axis];
        pieces.push(tensor);
    }
    if let (Some(axis), Some(last)) = (along, pieces.last().cloned()) {
        pieces.extend(zeros(call, &last, axis, shape[axis] - end)?);
        let join = copied_back(call, &pieces, axis).unwrap_or_else(|| joined(&pieces, axis))?;
        return Ok((whole, Some(join)));
    }
    Ok((terms.to_vec(), None))
}

/// So many positions of zeros beside a tensor, if any.
fn zeros(call: Call, beside: &Tensor, axis: usize, count: usize) -> Result<Option<Tensor>> {
    if count == 0 {
        return Ok(None);
    }
    let zero = Scalar::from_i64(beside.node.dtype, 0);
    let shape = beside.node.shape.with_extent(axis, count);
    call.filled_on(beside.node.device, zero, ConstantRole::Literal, &shape).map(Some)
}

impl Part {
    /// What is zeros but for some positions of one axis.
    fn of(term: &Tensor) -> Option<Part> {
        let state = term.node.state();
        let State::Recorded(Recipe::Op(Op::View(View::Pad { before, value })), sources) = &*state else {
            return None;
        };
        let (own, inner) = (&term.node.shape, sources.first()?);
        let mut differing = (0..own.rank()).filter(|&axis| own[axis] != inner.node.shape[axis]);
        let axis = differing.next()?;
        let is_part = differing.next().is_none() && value.as_f64() == 0.0;
        is_part.then(|| Part { axis, first: before[axis], tensor: inner.clone() })
    }

    fn end(&self) -> usize {
        self.first + self.tensor.node.shape[self.axis]
    }
}
