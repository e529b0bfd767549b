//! Recurrences: the body, position after position, for all loops at once.

use lazuli_reference::Values;
use smallvec::SmallVec;

use super::operand::{Operand, broken};
use super::views;
use crate::graph::body::Body;
use crate::graph::op::{Op, StepResult, View};
use crate::graph::{Graph, Node};
use crate::runtime::host::HostBuffer;
use crate::{Result, Shape};

/// How a recurrence goes along its axis, and which of its results is wanted.
pub(super) struct Recurrence<'a> {
    pub(super) axis: usize,
    pub(super) reverse: bool,
    pub(super) body: &'a Body,
    pub(super) result: StepResult,
}

/// Evaluates a graph, given its inputs.
pub(super) type Evaluate = fn(&Graph, &[&[u8]]) -> Result<Vec<HostBuffer>>;

/// A result of the recurrence; `evaluate` is for the body.
pub(super) fn recurrence(
    recurrence: &Recurrence,
    operands: &[Operand<'_>],
    evaluate: Evaluate,
) -> Result<Values> {
    let Recurrence { axis, reverse, body, result } = *recurrence;
    let (inits, elements) = operands.split_at(body.carries.min(operands.len()));
    let full = elements.first().ok_or_else(|| broken("a recurrence along nothing"))?.shape;
    let slice = full.without(&[axis]);
    let step = at_shape(&body.graph, &slice);
    // The axis first: then the elements of a step lie together.
    let order: SmallVec<[usize; 6]> =
        std::iter::once(axis).chain((0..full.rank()).filter(|&k| k != axis)).collect();
    let rows = elements.iter().map(|element| permuted(&element.values, element.shape, &order));
    let rows: Vec<Values> = rows.collect::<Result<_>>()?;

    let mut carries: Vec<Vec<u8>> = inits.iter().map(|init| init.values.bytes().to_vec()).collect();
    let mut each: Vec<Vec<u8>> = vec![Vec::new(); full[axis]];
    for time in 0..full[axis] {
        let place = if reverse { full[axis] - 1 - time } else { time };
        let of_step = |row: &Values| {
            let bytes = slice.elements() * row.dtype().size();
            row.bytes()[place * bytes..][..bytes].to_vec()
        };
        let inputs: Vec<Vec<u8>> = carries.iter().cloned().chain(rows.iter().map(of_step)).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let outputs = evaluate(&step, &inputs)?;
        let bytes = |output: &HostBuffer| output.as_slice().to_vec();
        if let StepResult::Each(number) = result {
            each[place] = outputs.get(number).map(bytes).unwrap_or_default();
        }
        carries = outputs.iter().take(body.carries).map(bytes).collect();
    }
    match result {
        StepResult::Last(number) => {
            let init = inits.get(number).ok_or_else(|| broken("no such carry"))?;
            Ok(Values::from_bytes(init.values.dtype(), &carries[number]))
        }
        StepResult::Each(number) => {
            let dtype = body.output(number).ok_or_else(|| broken("no such result"))?;
            let stacked: Shape = order.iter().map(|&k| full[k]).collect();
            let mut back: SmallVec<[usize; 6]> = SmallVec::from_elem(0, full.rank());
            order.iter().enumerate().for_each(|(place, &k)| back[k] = place);
            permuted(&Values::from_bytes(dtype, &each.concat()), &stacked, &back)
        }
    }
}

fn permuted(x: &Values, shape: &Shape, order: &[usize]) -> Result<Values> {
    let to: Shape = order.iter().map(|&axis| shape[axis]).collect();
    let moved = views::view(&View::Permute(SmallVec::from_slice(order)), x, shape, &to)?;
    Ok(moved.unwrap_or_else(|| x.clone()))
}

/// The body for all positions of a shape together.
fn at_shape(body: &Graph, shape: &Shape) -> Graph {
    body.rewrite(|result, node, operands| {
        let wide = Node { shape: shape.clone(), ..node.clone() };
        match node.op {
            Op::Constant(_) => {
                let constant = result.add(node.clone(), operands);
                result.add(Node { op: Op::View(View::Expand), ..wide }, &[constant])
            }
            _ => result.add(wide, operands),
        }
    })
}
