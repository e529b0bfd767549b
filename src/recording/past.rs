//! What computed tensors were recorded from: whoever asks for values changes no gradient.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::origins::Origins;
use super::tensor::Past;
use super::{Recipe, Sources, State, Tensor, TensorNode};

impl Past {
    /// How many computed tensors whose histories are there lie behind each other.
    pub(crate) fn generation(past: Option<&Past>) -> u32 {
        match past {
            Some(Past::Recorded { generation, .. }) => *generation,
            Some(Past::Origins(_)) | None => 0,
        }
    }
}

impl Recipe {
    /// The sources that gradients go on to.
    pub(crate) fn differentiable<'a>(&self, sources: &'a [Tensor]) -> &'a [Tensor] {
        match self {
            Recipe::Derived(_) => sources.get(1..).unwrap_or_default(),
            _ => sources,
        }
    }
}

impl State {
    pub(crate) fn past(&self) -> Option<&Past> {
        match self {
            State::Evaluated(_, past) => past.as_deref(),
            State::Invalid(_) | State::Recorded(..) | State::Lent(_) => None,
        }
    }

    /// How the tensor was recorded, though it may be computed.
    pub(crate) fn recorded(&self) -> Option<(&Recipe, &Sources)> {
        match self {
            State::Recorded(recipe, sources) => Some((recipe, sources)),
            _ => match self.past()? {
                Past::Recorded { recipe, sources, .. } => Some((recipe, sources)),
                Past::Origins(_) => None,
            },
        }
    }
}

impl Tensor {
    /// Lets go of a computed tensor's history, but for what it followed from.
    pub(crate) fn forget(&self) {
        if !matches!(self.node.state().past(), Some(Past::Recorded { .. })) {
            return;
        }
        let origins = self.origins();
        let mut forgotten = None;
        // Another thread may have made it data, or forgotten it, meanwhile.
        if let State::Evaluated(_, Some(past)) = &mut *self.node.state()
            && matches!(**past, Past::Recorded { .. })
        {
            forgotten = Some(std::mem::replace(past, Arc::new(Past::Origins(origins))));
        }
        // After the lock is released: the history may be long.
        drop(forgotten);
    }

    /// What a tensor was recorded from by floats alone, as far as others than one recorded tensor have handles of it.
    fn origins(&self) -> Origins<TensorNode> {
        let (mut behind, mut origins) = (Origins::none(), Vec::new());
        let mut met: FxHashSet<*const TensorNode> = FxHashSet::from_iter([Arc::as_ptr(&self.node)]);
        let mut pending = vec![self.clone()];
        while let Some(tensor) = pending.pop() {
            let sources = {
                let state = tensor.node.state();
                if let Some(Past::Origins(before)) = state.past() {
                    behind.join(before);
                }
                match state.recorded() {
                    Some((recipe, sources)) => Sources::from(recipe.differentiable(sources)),
                    None => continue,
                }
            };
            for source in sources {
                if source.node.dtype.is_float() && met.insert(Arc::as_ptr(&source.node)) {
                    // One more handle is here.
                    if source.is_evaluated() || Arc::strong_count(&source.node) > 2 {
                        origins.push(Arc::downgrade(&source.node));
                    }
                    pending.push(source);
                }
            }
        }
        behind.add(origins);
        behind
    }

    /// The computed tensors whose histories are behind a tensor's, each up to the first.
    pub(crate) fn computed_behind(&self) -> Vec<Tensor> {
        let mut found = Vec::new();
        let mut met: FxHashSet<*const TensorNode> = FxHashSet::default();
        let mut pending = vec![self.clone()];
        while let Some(tensor) = pending.pop() {
            let Some(sources) = tensor.node.state().recorded().map(|(_, sources)| sources.clone()) else {
                continue;
            };
            for source in sources {
                if met.insert(Arc::as_ptr(&source.node)) {
                    let generation = Past::generation(source.node.state().past());
                    if generation == 0 { &mut pending } else { &mut found }.push(source);
                }
            }
        }
        found
    }
}
