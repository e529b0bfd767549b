//! What an evaluation visits, and who else has handles of it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::recording::{Recipe, Sources, State, Tensor, TensorNode};

/// Bytes of a tensor that may be kept, however small all else is.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// What the outputs' evaluation visits.
pub(super) struct History {
    /// Sources first. Each has one handle here.
    pub(super) tensors: Vec<Tensor>,
    /// The numbers of each one's sources.
    sources: Vec<Vec<usize>>,
    outputs: FxHashSet<*const TensorNode>,
}

impl History {
    pub(super) fn of(outputs: &[Tensor]) -> History {
        let key = |tensor: &Tensor| Arc::as_ptr(&tensor.node);
        let mut history =
            History { tensors: Vec::new(), sources: Vec::new(), outputs: outputs.iter().map(key).collect() };
        let mut numbers: FxHashMap<*const TensorNode, usize> = FxHashMap::default();
        let mut entered: FxHashSet<*const TensorNode> = FxHashSet::default();
        // A tensor is entered, then left when all its sources were.
        let mut pending: Vec<(Tensor, Option<Sources>)> =
            outputs.iter().map(|tensor| (tensor.clone(), None)).collect();
        while let Some((tensor, left)) = pending.pop() {
            if let Some(sources) = left {
                let of = |source: &Tensor| numbers.get(&key(source)).copied();
                history.sources.push(sources.iter().filter_map(of).collect());
                numbers.insert(key(&tensor), history.tensors.len());
                history.tensors.push(tensor);
            } else if entered.insert(key(&tensor)) {
                let sources = match &*tensor.node.state() {
                    State::Recorded(_, sources) => sources.clone(),
                    State::Invalid(_) | State::Evaluated(_) | State::Lent(_) => Sources::new(),
                };
                let below: Vec<Tensor> = sources.iter().cloned().collect();
                pending.push((tensor, Some(sources)));
                pending.extend(below.into_iter().map(|source| (source, None)));
            }
        }
        history
    }

    /// The numbers of what a tensor follows from.
    pub(super) fn sources(&self, number: usize) -> &[usize] {
        &self.sources[number]
    }

    /// Whether each tensor is an output, or has no handle that will be left when the outputs are computed.
    pub(super) fn released(&self) -> Vec<bool> {
        let mut let_go = vec![0usize; self.tensors.len()];
        let mut released = vec![false; self.tensors.len()];
        for (number, tensor) in self.tensors.iter().enumerate().rev() {
            let is_output = self.outputs.contains(&Arc::as_ptr(&tensor.node));
            if is_output || Arc::strong_count(&tensor.node) == let_go[number] + 1 {
                released[number] = true;
                self.sources[number].iter().for_each(|&source| let_go[source] += 1);
            }
        }
        released
    }

    /// What to keep of what was computed before, as `again` says, or follows from such: of those that are no outputs, are to be
    /// computed, and fit, what others than these tensors have handles of: users, or what is recorded elsewhere. What was computed
    /// before and has no such handle would be computed with each step that follows from it, unless what comes after it is kept.
    pub(super) fn kept(
        &self,
        again: impl Fn(&Tensor) -> bool,
        fits: impl Fn(&Tensor) -> bool,
    ) -> Vec<Tensor> {
        let mut handles = vec![1usize; self.tensors.len()];
        self.sources.iter().flatten().for_each(|&source| handles[source] += 1);
        let (mut kept, mut follows) = (Vec::new(), vec![false; self.tensors.len()]);
        for (number, tensor) in self.tensors.iter().enumerate() {
            let is_output = self.outputs.contains(&Arc::as_ptr(&tensor.node));
            let is_held = !is_output && Arc::strong_count(&tensor.node) > handles[number];
            let is_recorded = || {
                matches!(
                    &*tensor.node.state(),
                    State::Recorded(Recipe::Op(_) | Recipe::WithNumber { .. } | Recipe::Derived(_), _)
                )
            };
            let (is_again, comes_after) =
                (again(tensor), self.sources[number].iter().any(|&source| follows[source]));
            if is_held && (is_again || comes_after) && fits(tensor) && is_recorded() {
                kept.push(tensor.clone());
            } else {
                follows[number] = comes_after || is_again && !is_held;
            }
        }
        kept
    }
}
