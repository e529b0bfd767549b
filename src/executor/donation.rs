//! Results in the memory of inputs that nobody can ask for any more.
//!
//! Who can ask for a tensor's values? Whoever has a handle: a user, or a recorded tensor that has it as a source. An
//! evaluation ends with its outputs letting go of their sources. So a tensor is *released* by it if it has no other
//! handles than those of outputs, and of recorded tensors that are released themselves. The number of handles, which
//! their `Arc` knows, is compared with the number of those that the traversal from the outputs has met: any other handle,
//! wherever it is, makes the two differ. The memory must have no other owner either: another tensor's, or that of an
//! evaluation or a copy under way.
//!
//! Handles can only be made from handles, and the ones of a released tensor are all in histories of the outputs. There
//! another thread may meet them, because it evaluates an output at the same time. It has then taken handles before they
//! were counted, or an owner's share of the memory before that was counted, or it finds the tensor lent, waits for the
//! end of this evaluation, and begins anew: with the outputs computed.
//!
//! A failure after values are lost would leave outputs that can never be computed. Only kernels at the end of a plan
//! write over inputs, whose memory is all there before the first of them runs, and which check nothing; or else the last one
//! alone, if it has checked everything before it writes (`ScatterSchedule::is_sparse`): the tensors get their values back if a
//! check fails. What is left is a device that refuses a launch; then the tensors that lost their values stand for that error.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use lazuli_codegen::ir::BufferId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::history::History;
use super::settle::forget_for;
use super::trial;
use crate::Error;
use crate::compiler::{self, Plan};
use crate::graph::NodeId;
use crate::recording::loan::Loan;
use crate::recording::{Past, State, Tensor};
use crate::runtime::buffer::Buffer;

/// Bytes of a result that are worth a kernel of its own, if the user has not said so.
pub(crate) const LEAST_BYTES: usize = 1 << 20;

/// Inputs and the outputs that are written over them.
pub(crate) type Pairs = Vec<(BufferId, BufferId)>;

/// Inputs that kernels of a plan would write over, as it seems before everything else is ready.
pub(crate) struct Offer {
    /// The first kernel after which nothing can fail.
    pub(crate) tail: usize,
    /// For each kernel of the plan.
    pub(crate) over: Vec<Pairs>,
    history: History,
    /// The numbers of the tensors that lose their values.
    given_up: Vec<usize>,
}

/// Inputs that are being overwritten. When it is dropped, whoever waits for the outputs goes on.
pub(crate) struct Claim {
    history: History,
    lent: Vec<(usize, Buffer, Option<Arc<Past>>)>,
    loan: Arc<Loan>,
}

impl Offer {
    /// `donated` says of which inputs the user has given the values up.
    pub(crate) fn new(plan: &Plan, outputs: &[Tensor], inputs: &[Buffer], donated: &[bool]) -> Option<Offer> {
        let bytes: usize = inputs.iter().map(Buffer::bytes).sum();
        if bytes < LEAST_BYTES && !donated.contains(&true) || trial::is_noting() {
            return None;
        }
        let tail = tail(plan);
        if plan.kernels[tail..].iter().all(|kernel| kernel.overwritable.is_empty()) {
            return None;
        }
        let candidates = candidates(plan, tail, inputs, donated);
        if candidates.is_empty() {
            return None;
        }
        let (mut history, mut held_by) = holders(outputs);
        let pointer = |slot: usize| inputs[slot].pointer() as usize;
        let wanted: FxHashSet<usize> = candidates
            .iter()
            .flat_map(|(_, candidates)| candidates)
            .flat_map(|candidate| candidate.slots.iter().map(|&slot| pointer(slot)))
            .collect();
        if wanted.iter().any(|pointer| !held_by.contains_key(pointer)) {
            drop(history);
            forget_for(outputs, |buffer| wanted.contains(&(buffer.pointer() as usize)));
            (history, held_by) = holders(outputs);
        }
        let holder = |slot: usize| held_by.get(&pointer(slot)).copied();
        let (over, taken) = pairs(plan, candidates, |slot| holder(slot).is_some());
        let given_up: Vec<usize> = taken.into_iter().filter_map(holder).collect();
        (!given_up.is_empty()).then_some(Offer { tail, over, history, given_up })
    }

    /// Takes the values from their tensors, if nobody else can see them; `shares` are the owners of each tensor's memory
    /// that this evaluation knows of, the tensor included.
    pub(crate) fn claim(self, shares: usize) -> Option<Claim> {
        let released = self.history.released();
        let mut claim = Claim { history: self.history, lent: Vec::new(), loan: Arc::default() };
        for number in self.given_up {
            let Some(tensor) = claim.history.tensors.get(number).cloned() else { continue };
            let mut state = tensor.node.state();
            match &*state {
                State::Evaluated(buffer, past) if released[number] && buffer.owners() == shares => {
                    claim.lent.push((number, buffer.clone(), past.clone()));
                    *state = State::Lent(claim.loan.clone());
                }
                State::Invalid(_) | State::Recorded(..) | State::Evaluated(..) | State::Lent(_) => {
                    drop(state);
                    claim.restore();
                    return None;
                }
            }
        }
        // What others did with the values, before they let go of them, comes before what is done now.
        fence(Ordering::Acquire);
        Some(claim)
    }
}

impl Claim {
    /// Nothing was overwritten after all.
    fn restore(&mut self) {
        for (number, buffer, past) in self.lent.drain(..) {
            *self.history.tensors[number].node.state() = State::Evaluated(buffer, past);
        }
    }

    /// The results are not there, and nothing was written.
    pub(crate) fn give_back(mut self) {
        self.restore();
    }

    /// The values are lost, and the results are not there.
    pub(crate) fn fail(self, error: &Error) {
        for (number, ..) in &self.lent {
            self.history.tensors[*number].node.fail(error.clone());
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.loan.end();
    }
}

/// An input of a kernel that is worth writing over.
struct Candidate {
    input: BufferId,
    /// The plan's inputs that it is in the kernel's parts.
    slots: Vec<usize>,
}

/// What the outputs' evaluation visits; and the computed tensors among that, by the addresses of their memory, whose values nobody
/// can ask for after it.
fn holders(outputs: &[Tensor]) -> (History, FxHashMap<usize, usize>) {
    let history = History::of(outputs);
    let released = history.released();
    let mut held_by: FxHashMap<usize, usize> = FxHashMap::default();
    for (number, tensor) in history.tensors.iter().enumerate().filter(|(number, _)| released[*number]) {
        if let State::Evaluated(buffer, _) = &*tensor.node.state() {
            held_by.insert(buffer.pointer() as usize, number);
        }
    }
    (history, held_by)
}

/// The first kernel after which nothing can fail: the following ones compute outputs alone, and check nothing. Or the last one,
/// if it checks everything before it writes.
fn tail(plan: &Plan) -> usize {
    let computes_outputs = |kernel: &compiler::PlannedKernel| {
        kernel.parts.iter().all(|part| part.lowered.outputs.iter().all(|id| plan.outputs.contains(id)))
    };
    let checks =
        |kernel: &compiler::PlannedKernel| kernel.parts.iter().any(|part| !part.lowered.checks.is_empty());
    let last = plan.kernels.iter().rev();
    match last.clone().next() {
        Some(kernel) if checks(kernel) => {
            let may_write = computes_outputs(kernel) && kernel.checks_first();
            plan.kernels.len() - usize::from(may_write)
        }
        _ => {
            let is_last =
                |kernel: &&Arc<compiler::PlannedKernel>| computes_outputs(kernel) && !checks(kernel);
            plan.kernels.len() - last.take_while(is_last).count()
        }
    }
}

/// What each kernel writes over, and the inputs that lose their values; `is_free` says which may.
fn pairs(
    plan: &Plan,
    candidates: Vec<(usize, Vec<Candidate>)>,
    is_free: impl Fn(usize) -> bool,
) -> (Vec<Pairs>, Vec<usize>) {
    let (mut over, mut taken) = (vec![Pairs::new(); plan.kernels.len()], Vec::new());
    for (kernel, candidates) in candidates {
        let free: Vec<Candidate> =
            candidates.into_iter().filter(|one| one.slots.iter().all(|&slot| is_free(slot))).collect();
        let inputs: Vec<BufferId> = free.iter().map(|candidate| candidate.input).collect();
        over[kernel] = plan.kernels[kernel].pair_up(&inputs);
        for (input, _) in &over[kernel] {
            taken.extend(
                free.iter().filter(|one| one.input == *input).flat_map(|one| one.slots.iter().copied()),
            );
        }
    }
    (over, taken)
}

/// What each kernel writes over if nobody else sees these inputs, now or later.
pub(super) fn over_given(plan: &Plan, inputs: &[Buffer], given: &[usize]) -> Vec<Pairs> {
    let donated: Vec<bool> = (0..inputs.len()).map(|slot| given.contains(&slot)).collect();
    pairs(plan, candidates(plan, tail(plan), inputs, &donated), |slot| donated[slot]).0
}

/// By kernel.
fn candidates(plan: &Plan, tail: usize, inputs: &[Buffer], donated: &[bool]) -> Vec<(usize, Vec<Candidate>)> {
    let slot_of: FxHashMap<NodeId, usize> =
        compiler::input_nodes(&plan.graph).map(|(slot, id)| (id, slot)).collect();
    let mut readers: FxHashMap<NodeId, usize> = FxHashMap::default();
    for part in plan.kernels.iter().flat_map(|kernel| &kernel.parts) {
        part.lowered.inputs.iter().for_each(|&id| *readers.entry(id).or_default() += 1);
    }
    let mut result = Vec::new();
    for (number, kernel) in
        plan.kernels.iter().enumerate().skip(tail).filter(|(_, kernel)| !kernel.is_empty())
    {
        let candidate = |&input: &BufferId| {
            let slot = |part: &compiler::Part| {
                let id = part.lowered.inputs.get(input.index())?;
                let slot = *slot_of.get(id)?;
                let buffer = &part.lowered.kernel.buffers[input.index()];
                let is_whole = inputs.get(slot)?.bytes() == buffer.elements as usize * buffer.dtype.size();
                (is_whole && readers.get(id) == Some(&1) && !plan.outputs.contains(id)).then_some(slot)
            };
            let slots = kernel.parts.iter().map(slot).collect::<Option<Vec<usize>>>()?;
            let bytes: usize = slots.iter().map(|&slot| inputs[slot].bytes()).sum();
            let is_worth_it =
                bytes >= LEAST_BYTES || slots.iter().all(|&slot| donated.get(slot) == Some(&true));
            is_worth_it.then_some(Candidate { input, slots })
        };
        let candidates: Vec<Candidate> = kernel.overwritable.iter().filter_map(candidate).collect();
        if !candidates.is_empty() {
            result.push((number, candidates));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `y = x + 1`, x with no other handle, and the offer to overwrite x.
    fn offer() -> (Tensor, Offer) {
        let y = Tensor::from_vec(vec![1.0f32, 2.0], [2]) + 1.0;
        let history = History::of(std::slice::from_ref(&y));
        let is_evaluated = |tensor: &Tensor| matches!(&*tensor.node.state(), State::Evaluated(..));
        let given_up = (0..history.tensors.len()).filter(|&n| is_evaluated(&history.tensors[n])).collect();
        (y, Offer { tail: 0, over: Vec::new(), history, given_up })
    }

    #[test]
    fn what_loses_its_values_stands_for_the_error() {
        let (y, offer) = offer();
        let claim = offer.claim(1).unwrap();
        claim.fail(&Error::internal("launch", "the device is gone"));
        assert!(y.eval().unwrap_err().to_string().contains("the device is gone"));
    }

    #[test]
    fn who_meets_lent_values_waits_for_the_end() {
        let (y, offer) = offer();
        let claim = offer.claim(1).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| y.to_vec::<f32>());
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!reader.is_finished());
            claim.fail(&Error::internal("launch", "the device is gone"));
            assert!(reader.join().unwrap().is_err());
        });
        // An evaluation that ends without a result or an error leaves no one waiting.
        let (y, offer) = self::offer();
        drop(offer.claim(1));
        assert!(y.eval().unwrap_err().to_string().contains("given up"));
    }

    #[test]
    fn a_claim_that_fails_leaves_the_values() {
        for (shares, is_held) in [(2, false), (1, true)] {
            let (y, offer) = offer();
            let handle = is_held.then(|| offer.history.tensors[offer.given_up[0]].clone());
            assert!(offer.claim(shares).is_none());
            assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 3.0]);
            drop(handle);
        }
    }
}
