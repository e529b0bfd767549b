//! What groups would be as one: their nodes, what these store, and how long that takes.

use smallvec::SmallVec;

use super::super::group::Group;
use super::{INLINED, Memo, Merger, Numbers};
use crate::graph::NodeId;
use crate::graph::domain::Hero;

impl Merger<'_> {
    /// Finds what two groups store as one; what only they use is not stored. `None` if it is plain that they
    /// cannot be one.
    pub(super) fn stored_by_both(&mut self, a: usize, b: usize) -> Option<()> {
        let (first, second) = (self.groups[a].as_ref()?, self.groups[b].as_ref()?);
        let rows = |group: &Group| group.hero.reduction().and_then(|id| self.facts.of(id).shared_rows());
        let is_packed = |group: &Group| group.hero.reduction().is_some_and(|id| self.facts.of(id).is_packed);
        let has_contraction = is_packed(first) || is_packed(second);
        if let Some((first, second)) = rows(first).zip(rows(second))
            && first != second
            && !has_contraction
        {
            return None;
        }
        let is_needed = |id: &&NodeId| {
            let mut readers = self.readers[id.index()].iter().map(|&reader| reader as usize);
            self.part.is_wanted[id.index()] || readers.any(|reader| reader != a && reader != b)
        };
        self.outputs.clear();
        self.outputs.extend(first.outputs.iter().chain(&second.outputs).filter(is_needed));
        self.outputs.sort_unstable();
        self.outputs.dedup();
        // Threads share what one would do where what is stored needs it.
        let few = || {
            let mut nodes = first.nodes.iter().chain(&second.nodes);
            nodes.find(|id| self.facts.of(**id).few_rows().is_some()).copied()
        };
        let heroes = match (first.hero, second.hero) {
            (hero @ Hero::Scan(_), _) | (_, hero @ Hero::Scan(_)) => [hero; 2],
            // A contraction may wait for reductions of its rows, or they for it.
            (Hero::Reduction(a), Hero::Reduction(b)) if has_contraction => {
                match is_packed(first) == is_packed(second) {
                    true => [Hero::Reduction(a.max(b)); 2],
                    false => [first.hero, second.hero],
                }
            }
            (hero @ Hero::Reduction(_), _) | (_, hero @ Hero::Reduction(_)) => [hero; 2],
            (hero, _) => [few().map_or(hero, Hero::Reduction); 2],
        };
        let fits = |&hero: &Hero| self.analyser.misfit(&self.outputs, hero).is_none();
        heroes.iter().any(fits).then_some(())
    }

    /// Finds the nodes of two groups as one.
    pub(super) fn nodes_of_both(&mut self, a: usize, b: usize) -> Option<()> {
        union(&self.groups[a].as_ref()?.nodes, &self.groups[b].as_ref()?.nodes, &mut self.nodes);
        Some(())
    }

    pub(super) fn merged_seconds(&mut self, a: usize, b: usize) -> Option<f64> {
        self.stored_by_both(a, b)?;
        let (key, outputs) = ((a.min(b), a.max(b)), self.outputs.len());
        let versions = (self.versions[key.0], self.versions[key.1]);
        if let Some(memo) = self.merged.get(&key)
            && (memo.versions, memo.outputs) == (versions, outputs)
        {
            return memo.seconds;
        }
        self.nodes_of_both(a, b)?;
        let seconds = self.analysed_seconds();
        self.merged.insert(key, Memo { versions, outputs, seconds });
        seconds
    }

    fn analysed_seconds(&mut self) -> Option<f64> {
        let analysis = self.analyser.analyse(&self.nodes, &self.outputs).ok()?;
        Some(analysis.work.seconds(self.figures) + self.repeated(analysis.texts - self.nodes.len() as f64))
    }

    /// The consumers that the producer may be computed in, if it is not needed then.
    pub(super) fn inlines(&self, producer: usize) -> Option<Numbers> {
        let group = self.groups[producer].as_ref()?;
        // The reduction is one that threads share.
        if group.hero.reduction().is_some() || group.outputs.iter().any(|id| self.part.is_wanted[id.index()])
        {
            return None;
        }
        let consumers = self.consumers(producer);
        (2..=INLINED).contains(&consumers.len()).then_some(consumers)
    }

    /// Finds the nodes and outputs of a consumer with the producer's nodes computed inside.
    pub(super) fn inline(&mut self, producer: usize, consumer: usize) -> Option<()> {
        let (first, second) = (self.groups[producer].as_ref()?, self.groups[consumer].as_ref()?);
        // From the last of the producer's nodes on, those that lead to what the consumer reads.
        let (reads, is_needed) = (&self.facts.reads, &mut self.is_needed);
        second.reads.iter().for_each(|read| is_needed[read.index()] = true);
        let mut needed: SmallVec<[NodeId; 32]> = SmallVec::new();
        for &id in first.nodes.iter().rev() {
            if is_needed[id.index()] {
                needed.push(id);
                reads.reads(id).iter().for_each(|read| is_needed[read.node.index()] = true);
            }
        }
        second.reads.iter().for_each(|read| is_needed[read.index()] = false);
        let marked = needed.iter().flat_map(|&id| reads.reads(id));
        marked.for_each(|read| is_needed[read.node.index()] = false);
        needed.reverse();
        union(&needed, &second.nodes, &mut self.nodes);
        self.outputs.clone_from(&second.outputs);
        Some(())
    }

    pub(super) fn inlined_seconds(&mut self, producer: usize, consumer: usize) -> Option<f64> {
        let key = (producer, consumer);
        let versions = (self.versions[producer], self.versions[consumer]);
        if let Some(memo) = self.inlined.get(&key).filter(|memo| memo.versions == versions) {
            return memo.seconds;
        }
        self.inline(producer, consumer)?;
        let seconds = self.analysed_seconds();
        self.inlined.insert(key, Memo { versions, outputs: self.outputs.len(), seconds });
        seconds
    }

    /// The kernel of the nodes and outputs found last.
    pub(super) fn found(&mut self) -> Option<Group> {
        self.analyser.group(self.nodes.clone(), self.outputs.clone()).ok()
    }
}

/// The nodes of two ascending lists, ascending, each once.
fn union(a: &[NodeId], b: &[NodeId], result: &mut Vec<NodeId>) {
    result.clear();
    let (mut a, mut b) = (a, b);
    while let (Some((&first, behind_a)), Some((&second, behind_b))) = (a.split_first(), b.split_first()) {
        result.push(first.min(second));
        a = if first <= second { behind_a } else { a };
        b = if second <= first { behind_b } else { b };
    }
    result.extend(a.iter().chain(b));
}
