//! What a compiled function becomes: a graph that is carried out with other inputs each time or, where a library makes something of
//! what some kernels compute, one graph after the other.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::history::History;
use super::routines::{self, Source, carried_out};
use super::traced::{Slots, Traced};
use super::{evaluate, pending, present};
use crate::graph::Graph;
use crate::recording::build::{Recording, build_traced};
use crate::recording::{Recipe, State, Tensor, TensorNode};
use crate::runtime::backend::Backend;
use crate::runtime::buffer::{Buffer, Buffers};
use crate::runtime::device::Device;
use crate::runtime::routine::Invocation;
use crate::{Error, Fusion, Result};

/// A function's graphs, ready to run.
pub(crate) struct Stages {
    before: Vec<Stage>,
    last: Traced,
    /// Data of tensors that the last graph uses besides what is given and was made before.
    captured: Buffers,
}

/// Kernels, and what a library makes after them.
struct Stage {
    /// Missing where nothing is to be computed.
    kernels: Option<(Traced, Buffers)>,
    calls: Vec<Call>,
}

/// What a library makes.
struct Call {
    invocation: Arc<Invocation>,
    /// The tensors that it is of, and where their values are.
    sources: SmallVec<[(Tensor, Value); 2]>,
    /// Which of its results are read.
    wanted: SmallVec<[usize; 3]>,
    /// One of these, for its name and place.
    result: Tensor,
}

enum Value {
    /// Given, or made before.
    Slot(usize),
    /// What the function has used.
    Captured(Buffer),
}

fn key(tensor: &Tensor) -> *const TensorNode {
    Arc::as_ptr(&tensor.node)
}

impl Stages {
    /// Plans what was made of stand-ins for the inputs, and loads all kernels. What follows from other tensors alone is computed.
    ///
    /// # Errors
    /// What has no values while a function is recorded; as [`evaluate`].
    pub(crate) fn new(
        results: &[Tensor],
        stand_ins: &[Tensor],
        device: Device,
        fusion: Fusion,
    ) -> Result<Stages> {
        let mut given = stand_ins.to_vec();
        let mut recording = build_traced(results, &given)?;
        let is_missing =
            |recording: &Recording, given: usize| recording.inputs.iter().skip(given).any(Option::is_none);
        let mut before = Vec::new();
        if is_missing(&recording, given.len()) {
            evaluate(&independent(results), fusion)?;
            let rounds = pending(results);
            let shared = routines::shared(results, &rounds);
            for (round, shared) in rounds.iter().zip(shared) {
                before.push(Stage::new(round, shared, &mut given, device, fusion)?);
            }
            recording = build_traced(results, &given)?;
        }
        if is_missing(&recording, given.len()) {
            return Err(Error::internal("compile", "a copy was not carried out"));
        }
        let captured = recording.inputs.into_iter().skip(given.len());
        let last = Traced::new(recording.graph, device, fusion)?;
        let captured = present(captured, last.backend())?;
        Ok(Stages { before, last, captured })
    }

    pub(crate) fn backend(&self) -> &Backend {
        self.last.backend()
    }

    /// The last graph, as it was recorded.
    pub(crate) fn graph(&self) -> &Graph {
        self.last.graph()
    }

    /// What libraries make before.
    pub(crate) fn made_before(&self) -> impl Iterator<Item = &Tensor> {
        self.before.iter().flat_map(|stage| &stage.calls).map(|call| &call.result)
    }

    /// The results' buffers, as [`Traced::run`].
    pub(crate) fn run(
        &self,
        mut inputs: SmallVec<[Buffer; 8]>,
        given: &Slots,
        outputs: SmallVec<[Option<Buffer>; 4]>,
    ) -> Result<Buffers> {
        for stage in &self.before {
            stage.run(&mut inputs)?;
        }
        inputs.extend(self.captured.iter().cloned());
        // What was computed of an input before may be the input itself.
        let none = Slots::new();
        self.last.run(&inputs, if self.before.is_empty() { given } else { &none }, outputs)
    }
}

/// What is made apart from kernels and follows from no stand-in.
fn independent(results: &[Tensor]) -> Vec<Tensor> {
    let history = History::of(results);
    let mut follows = vec![false; history.tensors.len()];
    let mut independent = Vec::new();
    for (number, tensor) in history.tensors.iter().enumerate() {
        let state = tensor.node.state();
        let State::Recorded(recipe, sources) = &*state else { continue };
        follows[number] = matches!(recipe, Recipe::CallInput)
            || history.sources(number).iter().any(|&source| follows[source]);
        if !follows[number] && recipe.is_external(sources) {
            independent.push(tensor.clone());
        }
    }
    independent
}

impl Stage {
    /// A round of what is apart; what it computes, and what is made of that, are stand-ins for the next ones.
    fn new(
        round: &[Tensor],
        shared: Vec<Tensor>,
        given: &mut Vec<Tensor>,
        device: Device,
        fusion: Fusion,
    ) -> Result<Stage> {
        let mut outputs: Vec<Tensor> = Vec::new();
        let is_there = |tensor: &Tensor, given: &[Tensor], outputs: &[Tensor]| {
            let is_it = |other: &Tensor| Arc::ptr_eq(&other.node, &tensor.node);
            tensor.is_evaluated() || given.iter().any(is_it) || outputs.iter().any(is_it)
        };
        let mut found: Vec<(Arc<Invocation>, SmallVec<[usize; 3]>, Tensor)> = Vec::new();
        for tensor in round {
            let State::Recorded(Recipe::Routine { invocation, number, .. }, sources) =
                tensor.node.state().clone()
            else {
                // A copy of what has no values, which is told there.
                evaluate(std::slice::from_ref(tensor), fusion)?;
                return Err(Error::internal("compile", "a copy within a function"));
            };
            for source in sources.into_iter().chain(shared.iter().cloned()) {
                if !is_there(&source, given, &outputs) {
                    outputs.push(source);
                }
            }
            match found.iter_mut().find(|(other, _, _)| Arc::ptr_eq(other, &invocation)) {
                Some((_, wanted, _)) => wanted.push(number),
                None => found.push((invocation, smallvec::smallvec![number], tensor.clone())),
            }
        }
        let kernels = match outputs.is_empty() {
            true => None,
            false => {
                let recording = build_traced(&outputs, given)?;
                let captured = recording.inputs.into_iter().skip(given.len());
                let traced = Traced::new(recording.graph, device, fusion)?;
                let captured = present(captured, traced.backend())?;
                Some((traced, captured))
            }
        };
        given.append(&mut outputs);
        let slots: FxHashMap<*const TensorNode, usize> =
            given.iter().enumerate().map(|(slot, tensor)| (key(tensor), slot)).collect();
        let mut calls = Vec::new();
        for (invocation, wanted, result) in found {
            let State::Recorded(_, sources) = result.node.state().clone() else {
                return Err(Error::internal("compile", "a routine was carried out"));
            };
            let value = |source: Tensor| {
                let value = match slots.get(&key(&source)) {
                    Some(&slot) => Value::Slot(slot),
                    None => Value::Captured(source.buffer()?),
                };
                Ok((source, value))
            };
            let sources = sources.into_iter().map(value).collect::<Result<_>>()?;
            let of = |number: usize| {
                round.iter().find(|tensor| {
                    matches!(&*tensor.node.state(), State::Recorded(Recipe::Routine { invocation: other, number: own, .. }, _)
                        if Arc::ptr_eq(other, &invocation) && *own == number)
                })
            };
            given.extend(wanted.iter().filter_map(|&number| of(number).cloned()));
            calls.push(Call { invocation, sources, wanted, result });
        }
        Ok(Stage { kernels, calls })
    }

    /// Adds what it makes.
    fn run(&self, values: &mut SmallVec<[Buffer; 8]>) -> Result<()> {
        if let Some((traced, captured)) = &self.kernels {
            let inputs: SmallVec<[Buffer; 8]> = values.iter().chain(captured).cloned().collect();
            values.extend(traced.run(&inputs, &Slots::new(), SmallVec::new())?);
        }
        for call in &self.calls {
            let source = |(tensor, value): &(Tensor, Value)| {
                let buffer = match value {
                    Value::Slot(slot) => values.get(*slot).cloned(),
                    Value::Captured(buffer) => Some(buffer.clone()),
                };
                let buffer = buffer.ok_or_else(|| Error::internal("compile", "a value is missing"))?;
                Ok(Source { shape: tensor.node.shape.clone(), buffer })
            };
            let sources = call.sources.iter().map(source).collect::<Result<SmallVec<[Source; 2]>>>()?;
            let TensorNode { dtype, origin, location, .. } = &*call.result.node;
            let made = carried_out(&call.invocation, *dtype, &sources)
                .map_err(|error| error.of_operation(origin, *location))?;
            values.extend(call.wanted.iter().filter_map(|&number| made.get(number).cloned()));
        }
        Ok(())
    }
}
