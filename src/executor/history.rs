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
        History::through(outputs, |tensor| match &*tensor.node.state() {
            State::Recorded(_, sources) => sources.clone(),
            State::Invalid(_) | State::Evaluated(..) | State::Lent(_) => Sources::new(),
        })
    }

    /// Also what computed tensors were recorded from, as far as they have kept that, and as far as it was recorded after a time.
    pub(super) fn with_pasts(outputs: &[Tensor], after: u64) -> History {
        History::through(outputs, |tensor| match tensor.node.state().recorded() {
            Some((_, sources)) if tensor.node.time > after => sources.clone(),
            _ => Sources::new(),
        })
    }

    fn through(outputs: &[Tensor], sources: impl Fn(&Tensor) -> Sources) -> History {
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
                let sources = sources(&tensor);
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
        let is_output = |number: usize| self.outputs.contains(&Arc::as_ptr(&self.tensors[number].node));
        let (mut released, _) = self.without_handles(is_output);
        (0..released.len()).filter(|&number| is_output(number)).for_each(|number| released[number] = true);
        released
    }

    /// Whether nobody else has a handle of each tensor, and how many of its handles are let go. Not counted as others' are this
    /// history's own handle, that of the list of outputs, and those of tensors that let go of their sources: the ones that
    /// `lets_go` says, and those of which nobody else has a handle.
    pub(super) fn without_handles(&self, lets_go: impl Fn(usize) -> bool) -> (Vec<bool>, Vec<usize>) {
        let mut let_go = vec![0usize; self.tensors.len()];
        let mut without = vec![false; self.tensors.len()];
        for (number, tensor) in self.tensors.iter().enumerate().rev() {
            let own = 1 + usize::from(self.outputs.contains(&Arc::as_ptr(&tensor.node)));
            without[number] = Arc::strong_count(&tensor.node) == let_go[number] + own;
            if without[number] || lets_go(number) {
                self.sources[number].iter().for_each(|&source| let_go[source] += 1);
            }
        }
        (without, let_go)
    }

    /// What to keep of what was computed before, as `again` says, or follows from such: of those that are no outputs, are to be
    /// computed, and fit, what others than these tensors have handles of: users, or what is recorded elsewhere. What was computed
    /// before and has no such handle would be computed with each step that follows from it, unless what comes after it is kept.
    /// Handles in histories of computed tensors, which `in_pasts` counts for what was recorded after a time, are for gradients alone.
    pub(super) fn kept(
        &self,
        again: impl Fn(&Tensor) -> bool,
        fits: impl Fn(&Tensor) -> bool,
        in_pasts: impl Fn(u64) -> FxHashMap<*const TensorNode, usize>,
    ) -> Vec<Tensor> {
        let mut handles = vec![1usize; self.tensors.len()];
        self.sources.iter().flatten().for_each(|&source| handles[source] += 1);
        let others = |number: usize| {
            Arc::strong_count(&self.tensors[number].node) > handles[number] && again(&self.tensors[number])
        };
        let earliest =
            (0..self.tensors.len()).filter(|&n| others(n)).map(|n| self.tensors[n].node.time).min();
        if let Some(earliest) = earliest {
            let in_pasts = in_pasts(earliest);
            for (tensor, handles) in self.tensors.iter().zip(&mut handles) {
                *handles += in_pasts.get(&Arc::as_ptr(&tensor.node)).copied().unwrap_or(0);
            }
        }
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
