//! Why two kernels are not one: what is between them, and what their reductions are called.

use super::Analyser;
use crate::ReduceOp;
use crate::fusion::Facts;
use crate::fusion::group::{Group, Name, WhyNot};
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};

/// Which of a method's reductions a node is, as far as there is a word for it.
pub(crate) fn part(graph: &Graph, facts: &Facts, reduction: NodeId) -> Option<&'static str> {
    let Op::Reduce { op, .. } = graph.node(reduction).op else { return None };
    match op {
        ReduceOp::Sum if facts.contracted(graph, reduction).is_some() => Some("product"),
        ReduceOp::Sum | ReduceOp::SumExp => Some("sum"),
        ReduceOp::Max => Some("maximum"),
        ReduceOp::Min => Some("minimum"),
        ReduceOp::SquaredDeviations => Some("squared deviations"),
        _ => None,
    }
}

impl Analyser<'_> {
    /// As [`Analyser::group`] of the nodes of two kernels, of which the second comes after the first: a refusal is about what is
    /// between the two.
    pub(in crate::fusion) fn both(
        &mut self,
        first: &Group,
        second: &Group,
        outputs: Vec<NodeId>,
    ) -> Result<Group, WhyNot> {
        let mut nodes: Vec<NodeId> = first.nodes.iter().chain(&second.nodes).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        self.refused = None;
        let reason = match self.group(nodes.clone(), outputs) {
            Ok(group) => return Ok(group),
            Err(reason) => reason,
        };
        let is_of =
            |group: &Group, pair: &[NodeId; 2]| pair.iter().all(|id| group.nodes.binary_search(id).is_ok());
        let found = self.refused.and_then(|pair| {
            let own = [first, second].into_iter().find(|group| is_of(group, &pair))?;
            Some((pair, own))
        });
        let Some((pair, own)) = found else { return Err(reason) };
        self.kernels = [first.nodes.clone(), second.nodes.clone()];
        let between = self.attempt(&nodes, false, |analyser| analyser.link(&nodes).map(|_| ()));
        self.kernels = Default::default();
        between?;
        let called = |id: NodeId| self.graph.node(id).called();
        let reads =
            |id: &&NodeId| self.facts.reads.reads(**id).iter().any(|read| first.outputs.contains(&read.node));
        let is_consumer = std::ptr::eq(own, first) && second.nodes.iter().any(|id| reads(&id));
        // A row of the second one's reduction is all of what follows from the first one's.
        if let (true, Some(consumer)) = (is_consumer, second.hero.reduction()) {
            let shapes = [pair[0], consumer].map(|id| self.graph.node(id).shape.clone());
            let (producer, consumer) = (self.name(pair[0], &nodes), self.name(consumer, &nodes));
            return Err(WhyNot::FeedsReduction { producer, consumer, shapes });
        }
        if !own.waits_for_rows {
            return Err(reason);
        }
        let last = |group: &Group| group.nodes.last().map_or("", |&id| called(id));
        let other = match std::ptr::eq(own, first) {
            true => second.nodes.iter().find(reads).map_or(last(second), |&id| called(id)),
            false => last(first),
        };
        Err(WhyNot::BesideRows { rows: own.hero.reduction().map_or(last(own), called), other })
    }

    /// Whether nodes are of one kernel that is there.
    pub(super) fn are_together(&self, pair: [NodeId; 2]) -> bool {
        self.kernels.iter().any(|nodes| pair.iter().all(|id| nodes.binary_search(id).is_ok()))
    }

    /// A node as reasons call it, among those of a kernel.
    pub(super) fn name(&self, id: NodeId, nodes: &[NodeId]) -> Name {
        let node = self.graph.node(id);
        let called = node.origin;
        // It is its name.
        if called.strip_suffix("_keepdim").unwrap_or(called) == node.op.name() {
            return Name { called, part: None };
        }
        let is_reduction = |id: NodeId| matches!(self.graph.node(id).op, Op::Reduce { .. });
        let is_alike =
            |&other: &NodeId| other != id && is_reduction(other) && self.graph.node(other).origin == called;
        let has_several = is_reduction(id) && nodes.iter().any(is_alike);
        Name { called, part: if has_several { part(self.graph, self.facts, id) } else { None } }
    }
}
