//! Whether one kernel can compute some nodes, and its work. Fusion asks this of every merge that it considers, so
//! nothing is allocated for an answer.

use super::cost::Work;
use super::facts::{Facts, Space};
use super::group::{Group, MAX_BUFFERS, MAX_NODES, MAX_WALKS, WhyNot};
use crate::graph::{Graph, NodeId};

/// The place of what is not among the nodes: it comes from memory.
const OUTSIDE: u32 = u32::MAX;

/// The demand for what is not read from memory.
const UNREAD: f64 = -1.0;

/// What [`Group`] says besides nodes and buffers.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Analysis {
    pub(super) reduction: Option<NodeId>,
    pub(super) work: Work,
    pub(super) recomputed: Option<(&'static str, f64)>,
}

/// Tables that are kept from one analysis to the next: `place` and `demands` are indexed by node, the others by
/// place among the nodes.
pub(super) struct Analyser<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    place: Vec<u32>,
    demands: Vec<f64>,
    /// Where each node's reads begin among the links.
    starts: Vec<u32>,
    /// The place of each read.
    links: Vec<u32>,
    /// Which shared reduction each node depends on, by place.
    after: Vec<u32>,
    is_stored: Vec<bool>,
    stage: Vec<u32>,
    needed: Vec<u32>,
    walks: Vec<u32>,
    once_a_row: Vec<bool>,
    aligned: Vec<f64>,
    scattered: Vec<f64>,
    /// What is read from memory, in the order of first use.
    external: Vec<NodeId>,
}

fn reset<T: Clone>(table: &mut Vec<T>, len: usize, value: T) {
    table.clear();
    table.resize(len, value);
}

impl<'a> Analyser<'a> {
    pub(super) fn new(graph: &'a Graph, facts: &'a Facts) -> Analyser<'a> {
        Analyser {
            graph,
            facts,
            place: vec![OUTSIDE; facts.bound()],
            demands: vec![UNREAD; facts.bound()],
            starts: Vec::new(),
            links: Vec::new(),
            after: Vec::new(),
            is_stored: Vec::new(),
            stage: Vec::new(),
            needed: Vec::new(),
            walks: Vec::new(),
            once_a_row: Vec::new(),
            aligned: Vec::new(),
            scattered: Vec::new(),
            external: Vec::new(),
        }
    }

    /// A node as a kernel of its own.
    pub(super) fn single(&mut self, id: NodeId) -> Option<Group> {
        self.group(vec![id], vec![id]).ok()
    }

    /// The kernel that computes `nodes` and stores `outputs`.
    pub(super) fn group(
        &mut self,
        mut nodes: Vec<NodeId>,
        mut outputs: Vec<NodeId>,
    ) -> Result<Group, WhyNot> {
        nodes.sort_unstable();
        nodes.dedup();
        outputs.sort_unstable();
        outputs.dedup();
        let Analysis { reduction, work, recomputed } = self.analyse(&nodes, &outputs)?;
        Ok(Group { nodes, outputs, reads: self.external.clone(), reduction, work, recomputed })
    }

    /// Checks that one kernel can compute `nodes` and store `outputs`, both ascending, and adds up its work.
    pub(super) fn analyse(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Analysis, WhyNot> {
        if nodes.len() > MAX_NODES {
            return Err(WhyNot::TooLarge { nodes: nodes.len() });
        }
        self.link(nodes, outputs);
        let result = self.analyse_linked(nodes, outputs);
        nodes.iter().for_each(|id| self.place[id.index()] = OUTSIDE);
        self.external.iter().for_each(|id| self.demands[id.index()] = UNREAD);
        result
    }

    fn analyse_linked(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Analysis, WhyNot> {
        let reduction = self.check_reductions(nodes)?;
        if let Some(misfit) = self.misfit(outputs, reduction) {
            let shape = |id: NodeId| self.graph.node(id).shape.clone();
            let (first, last) = (outputs[0], outputs[outputs.len() - 1]);
            let other = if misfit == first { last } else { first };
            return Err(WhyNot::DifferentSpaces {
                first: shape(reduction.unwrap_or(other)),
                second: shape(misfit),
            });
        }
        reset(&mut self.walks, nodes.len(), 1);
        reset(&mut self.once_a_row, nodes.len(), false);
        if let Some(&space) = reduction.and_then(|reduction| self.facts.space(reduction)) {
            self.count_walks(nodes, &space)?;
            self.find_once_a_row(nodes, &space);
        }
        let mut analysis = Analysis { reduction, ..Analysis::default() };
        self.count(&mut analysis, nodes, outputs)?;
        let buffers = self.external.len() + outputs.len();
        match buffers > MAX_BUFFERS {
            true => Err(WhyNot::TooManyBuffers { buffers }),
            false => Ok(analysis),
        }
    }

    /// Finds where each node's reads are among the nodes.
    fn link(&mut self, nodes: &[NodeId], outputs: &[NodeId]) {
        self.starts.clear();
        self.links.clear();
        self.external.clear();
        for (number, &id) in nodes.iter().enumerate() {
            self.starts.push(self.links.len() as u32);
            let reads = self.facts.reads.reads(id).iter();
            self.links.extend(reads.map(|read| self.place[read.node.index()]));
            self.place[id.index()] = number as u32;
        }
        self.starts.push(self.links.len() as u32);
        reset(&mut self.is_stored, nodes.len(), false);
        for output in outputs {
            if let Some(is_stored) = self.is_stored.get_mut(self.place[output.index()] as usize) {
                *is_stored = true;
            }
        }
    }

    /// The links of a node's reads, by their numbers, in order.
    fn links_of(&self, number: usize) -> std::ops::Range<usize> {
        self.starts[number] as usize..self.starts[number + 1] as usize
    }

    /// All reductions that threads share walk the same rows, and none waits for another.
    fn check_reductions(&mut self, nodes: &[NodeId]) -> Result<Option<NodeId>, WhyNot> {
        let facts = self.facts;
        let Some(first) = nodes.iter().copied().find(|&id| facts.is_cooperative(id)) else { return Ok(None) };
        let node = |id: NodeId| self.graph.node(id);
        let (number_of_space, space) = (facts.of(first).space, facts.space(first).copied());
        let is_walkable = space.is_some_and(|space| space.is_walkable);
        reset(&mut self.after, nodes.len(), OUTSIDE);
        for (number, &id) in nodes.iter().enumerate() {
            for link in self.links_of(number) {
                let at = self.links[link];
                if at == OUTSIDE {
                    continue;
                }
                let is_shared = facts.is_cooperative(nodes[at as usize]);
                self.after[number] = if is_shared { at } else { self.after[at as usize] };
                if self.after[number] != OUTSIDE {
                    break;
                }
            }
            let own = facts.of(id).space;
            if own.is_none() {
                continue;
            }
            if let Some(&other) = nodes.get(self.after[number] as usize)
                && (facts.of(other).space != own || !is_walkable)
            {
                let (producer, consumer) = (node(other).origin, node(id).origin);
                return Err(WhyNot::FeedsReduction { producer, consumer });
            }
            if own != number_of_space {
                return Err(WhyNot::DifferentReductions {
                    first: node(first).origin,
                    second: node(id).origin,
                });
            }
        }
        // What follows a reduction is either one value a row or, if the row can be walked again, of the
        // row's own shape.
        let results = facts.of(first).elements;
        let full = space.map_or(0, |space| space.full_elements);
        for (&id, &after) in nodes.iter().zip(&self.after) {
            let Some(&waits_for) = nodes.get(after as usize) else { continue };
            let own = facts.of(id);
            let fits =
                own.elements == results || is_walkable && (own.space.is_some() || own.elements == full);
            if !fits {
                let reduction = node(waits_for);
                return Err(WhyNot::FlowsBack {
                    reduction: reduction.origin,
                    reduced: reduction.shape.clone(),
                    to: node(id).shape.clone(),
                });
            }
        }
        Ok(Some(first))
    }

    /// The first output without a place in one iteration space with the others.
    pub(super) fn misfit(&self, outputs: &[NodeId], reduction: Option<NodeId>) -> Option<NodeId> {
        let of = |id: NodeId| self.facts.of(id);
        let &first = outputs.first()?;
        let fits = |&output: &NodeId| match reduction.zip(reduction.and_then(|id| self.facts.space(id))) {
            None => of(output).shape == of(first).shape,
            Some((reduction, space)) => {
                of(output).elements == of(reduction).elements || of(output).shape == space.full
            }
        };
        outputs.iter().copied().find(|output| !fits(output))
    }

    /// In how many walks along the rows each node is computed: what varies along a row is computed anew
    /// in each walk that leads to a reduction or a result that needs it.
    fn count_walks(&mut self, nodes: &[NodeId], space: &Space) -> Result<(), WhyNot> {
        // How many walks must have ended before a node can be computed.
        reset(&mut self.stage, nodes.len(), 0);
        for number in 0..nodes.len() {
            let mut stage = 0;
            for link in self.links_of(number) {
                let at = self.links[link] as usize;
                if let Some(&before) = self.stage.get(at) {
                    stage = stage.max(before + u32::from(self.facts.is_cooperative(nodes[at])));
                }
            }
            if stage >= MAX_WALKS {
                return Err(WhyNot::TooManyWalks);
            }
            self.stage[number] = stage;
        }
        // In which walks, as bits.
        reset(&mut self.needed, nodes.len(), 0);
        for (number, &id) in nodes.iter().enumerate().rev() {
            let (is_shared, walk) = (self.facts.is_cooperative(id), 1 << self.stage[number]);
            let varies = self.facts.of(id).elements == space.full_elements && !is_shared;
            if varies && self.is_stored[number] {
                self.needed[number] |= walk;
            }
            let wanted = if is_shared { walk } else { self.needed[number] };
            if varies {
                self.walks[number] = wanted.count_ones().max(1);
            }
            for link in self.links_of(number) {
                if let Some(needed) = self.needed.get_mut(self.links[link] as usize) {
                    *needed |= wanted;
                }
            }
        }
        Ok(())
    }

    /// What has one value a row of the reduction, not one a column, even where there are as many: results of
    /// reductions, what follows from them, and what has the shape of a result with its axes kept.
    fn find_once_a_row(&mut self, nodes: &[NodeId], space: &Space) {
        for (number, &id) in nodes.iter().enumerate() {
            let node = self.facts.of(id);
            let follows = |link: usize| self.once_a_row.get(self.links[link] as usize) == Some(&true);
            self.once_a_row[number] = node.elements == space.kept_elements
                && (node.space.is_some() || node.shape == space.kept || self.links_of(number).any(follows));
        }
    }

    /// How often each node is evaluated, and what follows: operations and bytes.
    fn count(&mut self, analysis: &mut Analysis, nodes: &[NodeId], outputs: &[NodeId]) -> Result<(), WhyNot> {
        let facts = self.facts;
        let Analysis { work, recomputed, .. } = analysis;
        // Readers at the same index share an evaluation; others add up.
        reset(&mut self.aligned, nodes.len(), 0.0);
        reset(&mut self.scattered, nodes.len(), 0.0);
        for (number, &id) in nodes.iter().enumerate().rev() {
            let node = facts.of(id);
            let elements = node.elements as f64;
            if self.is_stored[number] {
                self.aligned[number] = self.aligned[number].max(elements);
            }
            let evaluations = self.aligned[number] + self.scattered[number];
            let mut times = if elements > 0.0 { evaluations / elements } else { 1.0 };
            if times > 1.001
                && let Some(space) = facts.space(id)
            {
                if !space.is_walkable {
                    let node = self.graph.node(id);
                    let to = outputs.first().map(|&output| self.graph.node(output).shape.clone());
                    let (reduced, to) = (node.shape.clone(), to.unwrap_or_default());
                    return Err(WhyNot::FlowsBack { reduction: node.origin, reduced, to });
                }
                times = 1.0;
            }
            if self.once_a_row[number] {
                // Once a row, however often the row's elements use it: kernels hoist what does not vary.
                times = times.min(1.0);
            }
            let repeated = times * f64::from(self.walks[number]);
            work.operations += elements * repeated * node.fan * node.cost;
            if repeated > 1.001 && node.cost > 0.0 && recomputed.is_none_or(|(_, most)| repeated > most) {
                *recomputed = Some((self.graph.node(id).origin, repeated));
            }
            for (link, read) in self.links_of(number).zip(facts.reads.reads(id)) {
                let demand = read.elements as f64 * times;
                let at = self.links[link] as usize;
                if at == OUTSIDE as usize {
                    self.external.push(read.node);
                    let whole = &mut self.demands[read.node.index()];
                    *whole = whole.max(0.0) + demand;
                } else if read.aligned {
                    self.aligned[at] = self.aligned[at].max(demand);
                } else {
                    self.scattered[at] += demand;
                }
            }
        }
        self.external.reverse();
        let demands = &mut self.demands;
        self.external.retain(|&read| {
            let demand = std::mem::replace(&mut demands[read.index()], UNREAD);
            if demand < 0.0 {
                return false;
            }
            let node = facts.of(read);
            work.bytes_read += demand.min(node.elements as f64) as u64 * node.size as u64;
            true
        });
        work.bytes_written += outputs.iter().map(|&output| facts.of(output).bytes()).sum::<u64>();
        Ok(())
    }
}
