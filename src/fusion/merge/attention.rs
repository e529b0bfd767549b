//! Three groups that are one kernel on a GPU only together.

use super::super::group::Group;
use super::{DOUBT, Merger, NOBODY, Numbers, ascending};
use crate::graph::NodeId;

impl Merger<'_> {
    /// Joins reductions of rows, the contraction that makes these rows, and the one that multiplies what follows from them,
    /// where one kernel of all three gains. No two of them are one that a GPU could run.
    pub(super) fn join_attention(&mut self, middle: usize) {
        let is_packed = |group: &Group| group.hero.reduction().is_some_and(|id| self.facts.of(id).is_packed);
        let packed = |number: &usize| self.groups[*number].as_ref().is_some_and(is_packed);
        let Some(group) = self.groups[middle].as_ref().filter(|group| !is_packed(group)) else { return };
        if group.hero.reduction().is_none() {
            return;
        }
        let owners = group.reads.iter().map(|read| self.owner[read.index()]);
        let producers = ascending(owners.filter(|&owner| owner != NOBODY).map(|owner| owner as usize));
        let consumers = self.consumers(middle);
        let mut packed_producers = producers.iter().copied().filter(packed);
        let (Some(first), None) = (packed_producers.next(), packed_producers.next()) else { return };
        let (&[last], true) = (consumers.as_slice(), consumers.iter().all(packed)) else { return };
        let all = [first, middle, last];
        let outside = |number: usize| self.readers_of(number).filter(|next| !all.contains(next)).collect();
        let (of_first, of_middle): (Numbers, Numbers) = (outside(first), outside(middle));
        let comes_back = [(of_first.clone(), middle), (of_first, last), (of_middle, last)]
            .into_iter()
            .any(|(from, to)| self.reaches(from, to));
        if comes_back {
            return;
        }
        let (mut nodes, mut outputs) = (Vec::new(), Vec::new());
        for group in all.iter().filter_map(|&number| self.groups[number].as_ref()) {
            nodes.extend(&group.nodes);
            let is_needed = |id: &&NodeId| {
                let mut readers = self.readers[id.index()].iter().map(|&reader| reader as usize);
                self.part.is_wanted[id.index()] || readers.any(|reader| !all.contains(&reader))
            };
            outputs.extend(group.outputs.iter().filter(is_needed));
        }
        for ids in [&mut nodes, &mut outputs] {
            ids.sort_unstable();
            ids.dedup();
        }
        let apart: f64 = all.iter().map(|&number| self.seconds(number)).sum();
        let Ok(group) = self.analyser.group(nodes, outputs) else { return };
        if group.work.seconds(self.figures) < apart * DOUBT {
            all.iter().for_each(|&number| drop(self.take(number)));
            self.put(last, group);
        }
    }
}
