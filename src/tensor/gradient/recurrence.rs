//! The adjoint of a loop with a step of the user's: a loop the other way, whose step is the adjoint of a step.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::site::Adjoints;
use crate::graph::NodeId;
use crate::graph::body::Body;
use crate::graph::op::{Op, StepResult};
use crate::recording::{Recipe, Sources, State};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::tensor::scan::recurrences::{DerivedNodes, Recurrence};
use crate::{Result, Shape, Tensor};

/// A sweep of its own, over one step.
type Sweep = fn(&[(Tensor, Tensor)], &[Tensor]) -> Result<Vec<Option<Tensor>>>;

/// What tells two loops apart: the body, the axis, the direction, and the sources.
type Key = (*const Body, usize, bool, Vec<usize>);

/// The loops on the way. Each result of a loop is a tensor of its own; what reaches all of them goes on together, from the last
/// one that the sweep meets.
pub(super) struct Loops {
    loops: FxHashMap<Key, Loop>,
    keys: FxHashMap<usize, Key>,
}

/// One loop, and what has reached its results.
pub(super) struct Loop {
    axis: usize,
    reverse: bool,
    body: Arc<Body>,
    last: usize,
    reached: Vec<(StepResult, Tensor)>,
}

impl Loops {
    /// Of tensors with their numbers, which the sweep meets from the last one to the first.
    pub(super) fn of<'a>(tensors: impl Iterator<Item = (usize, Option<&'a Recipe>, &'a Sources)>) -> Loops {
        let mut all = Loops { loops: FxHashMap::default(), keys: FxHashMap::default() };
        for (number, recipe, sources) in tensors {
            if let Some(Recipe::Op(Op::Recurrence { axis, reverse, body, .. })) = recipe {
                let (axis, reverse) = (*axis, *reverse);
                let places = sources.iter().map(|source| Arc::as_ptr(&source.node) as usize).collect();
                let key = (Arc::as_ptr(body), axis, reverse, places);
                let new = || Loop { axis, reverse, body: body.clone(), last: number, reached: Vec::new() };
                all.loops.entry(key.clone()).or_insert_with(new);
                all.keys.insert(number, key);
            }
        }
        all
    }

    /// The loop, if this was the last of its results, with what has reached it, if anything.
    pub(super) fn meet(
        &mut self,
        number: usize,
        recipe: &Recipe,
        cotangent: Option<Tensor>,
    ) -> Option<&Loop> {
        let Recipe::Op(Op::Recurrence { result, .. }) = recipe else { return None };
        let own = self.loops.get_mut(self.keys.get(&number)?)?;
        own.reached.extend(cotangent.map(|cotangent| (*result, cotangent)));
        (own.last == number && !own.reached.is_empty()).then_some(own)
    }
}

impl Loop {
    pub(super) fn adjoints(
        &self,
        call: Call,
        sources: &[Tensor],
        wants: &dyn Fn(usize) -> bool,
        sweep: Sweep,
    ) -> Result<Adjoints> {
        let Loop { axis, reverse, ref body, ref reached, .. } = *self;
        let (inits, elements) = sources.split_at(body.carries.min(sources.len()));
        let [first, ..] = elements else { return Ok(Adjoints::new()) };
        let slice = first.node.shape.without(&[axis]);
        let zeros = |like: &Tensor| call.compose(|| like.zeros_like());
        let carried: Vec<usize> =
            (0..inits.len()).filter(|&carry| inits[carry].node.dtype.is_float()).collect();
        let wanted: Vec<usize> =
            (0..elements.len()).filter(|&element| wants(inits.len() + element)).collect();

        // The carries that each step has begun with.
        let begun: Vec<Operand> = inits.iter().map(Operand::from).collect();
        let ahead: Vec<&Tensor> = elements.iter().collect();
        let forward =
            Recurrence::record(call, &ahead, axis as isize, reverse, &begun, |carries, elements| {
                let next = replayed(body, carries, elements, &slice);
                (next.into_iter().take(carries.len()).collect(), carries.to_vec())
            })?;
        let before = |carry: usize| forward.result(StepResult::Each(inits.len() + carry));
        let mut inputs = elements.to_vec();
        inputs.extend((0..inits.len()).map(before).collect::<Result<Vec<Tensor>>>()?);
        let mut each: Vec<usize> = Vec::new();
        for (result, cotangent) in reached {
            if let StepResult::Each(output) = result {
                each.push(*output);
                inputs.push(cotangent.clone());
            }
        }
        let of_last = |&carry: &usize| {
            let last = reached.iter().find(|(result, _)| *result == StepResult::Last(carry));
            Operand::from(&last.map_or_else(|| zeros(&inits[carry]), |(_, cotangent)| cotangent.clone()))
        };
        let last: Vec<Operand> = carried.iter().map(of_last).collect();
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let back = Recurrence::record(call, &inputs, axis as isize, !reverse, &last, |later, given| {
            let (own, rest) = given.split_at(elements.len());
            let (before, cotangents) = rest.split_at(inits.len());
            let outputs = replayed(body, before, own, &slice);
            let mut pairs: Vec<(Tensor, Tensor)> = Vec::new();
            let numbers = carried.iter().chain(&each).copied();
            for (output, cotangent) in numbers.zip(later.iter().chain(cotangents)) {
                // What no step has made has nothing to go back to.
                if let Some(value) = outputs.get(output).filter(|value| value.node.is_of_step) {
                    pairs.push((value.clone(), cotangent.clone()));
                }
            }
            let aims: Vec<Tensor> = carried
                .iter()
                .map(|&carry| before[carry].clone())
                .chain(wanted.iter().map(|&element| own[element].clone()))
                .collect();
            let adjoints = match sweep(&pairs, &aims) {
                Err(error) => vec![Tensor::invalid(error); aims.len()],
                Ok(found) => {
                    let or_zero =
                        |(adjoint, aim): (Option<Tensor>, &Tensor)| adjoint.unwrap_or_else(|| zeros(aim));
                    found.into_iter().zip(&aims).map(or_zero).collect()
                }
            };
            let (carries, results) = adjoints.split_at(carried.len());
            (carries.to_vec(), results.to_vec())
        })?;
        let mut adjoints = Adjoints::from_elem(None, sources.len());
        for (number, &carry) in carried.iter().enumerate().filter(|(_, carry)| wants(**carry)) {
            adjoints[carry] = Some(back.result(StepResult::Last(number))?);
        }
        for (number, &element) in wanted.iter().enumerate() {
            adjoints[inits.len() + element] = Some(back.result(StepResult::Each(carried.len() + number))?);
        }
        Ok(adjoints)
    }
}

/// The outputs of a step for tensors of the shape of one.
fn replayed(body: &Body, carries: &[Tensor], elements: &[Tensor], slice: &Shape) -> Vec<Tensor> {
    let graph = &body.graph;
    let mut made: FxHashMap<NodeId, Tensor> = FxHashMap::default();
    for id in graph.nodes() {
        let node = graph.node(id);
        let operands: Vec<Tensor> =
            graph.operands(id).iter().filter_map(|operand| made.get(operand).cloned()).collect();
        let value = match &node.op {
            &Op::Input(number) => carries.iter().chain(elements).nth(number).cloned(),
            &Op::Constant(constant) => {
                let call = Call::at(node.origin, node.location);
                Some(Tensor::or_invalid(call.filled(constant.value, constant.role, slice)))
            }
            op => match DerivedNodes::of(body, id) {
                Some(derived) => {
                    let by = derived.by.iter().filter_map(|by| made.get(by).cloned());
                    let sources: Sources = operands.into_iter().chain(by).collect();
                    let device = sources.first().and_then(|source| source.node.device);
                    let state = State::Recorded(Recipe::Derived(derived.rule.clone()), sources);
                    let (shape, dtype) = (slice.clone(), node.dtype);
                    Some(Tensor::from_parts(shape, dtype, device, node.origin, node.location, state))
                }
                None => {
                    let sources: Vec<&Tensor> = operands.iter().collect();
                    Some(Tensor::record(
                        op.clone(),
                        &sources,
                        slice.clone(),
                        node.dtype,
                        node.origin,
                        node.location,
                    ))
                }
            },
        };
        made.extend(value.map(|value| (id, value)));
    }
    graph.outputs().iter().filter_map(|output| made.get(output).cloned()).collect()
}
