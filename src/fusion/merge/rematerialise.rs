//! Rematerialisation: what follows from positions and numbers alone and has many readers is computed by each of them, and stored
//! by none.

use super::{INLINED, Merger};
use crate::fusion::cost::operation_cost;
use crate::graph::NodeId;
use crate::graph::op::{Op, View};

/// Simple operations that cost no more than reading their result: a position is converted and compared.
const CHEAP: f64 = 2.0;

impl Merger<'_> {
    /// By node, which of these are rematerialised. What has fewer readers is left to the search, which weighs what they would repeat.
    pub(super) fn rematerialised(&mut self, nodes: &[NodeId]) -> Vec<bool> {
        let mut found = vec![false; self.facts.bound()];
        for &id in nodes {
            let has_many_readers = self.facts.reads.users(id).len() > INLINED;
            if !has_many_readers || self.cost_of_positions(id).is_none_or(|cost| cost > CHEAP) {
                continue;
            }
            // With what it is computed from, which nobody stores for it.
            let mut own = vec![id];
            let mut at = 0;
            while let Some(&id) = own.get(at) {
                let reads = self.facts.reads.reads(id).iter().map(|read| read.node);
                let is_new = |id: &NodeId| !found[id.index()] && !own.contains(id);
                let new: Vec<NodeId> = reads.filter(is_new).collect();
                own.extend(new);
                at += 1;
            }
            own.retain(|id| !found[id.index()]);
            if own.iter().any(|id| self.part.is_wanted[id.index()] || !nodes.contains(id)) {
                continue;
            }
            own.iter().for_each(|id| found[id.index()] = true);
            let readers = own.iter().flat_map(|&id| self.facts.reads.users(id).iter().copied());
            let readers: Vec<NodeId> = readers.filter(|id| !found[id.index()]).collect();
            // A reader may be of a kind that shares its kernel with nothing, or be too large already.
            let shares_kernel = |user: &NodeId| {
                let nodes = self.with_rematerialised(vec![*user], &found);
                nodes.len() > 1 && self.analyser.group(nodes, vec![*user]).is_ok()
            };
            if !readers.iter().all(shares_kernel) {
                own.iter().for_each(|id| found[id.index()] = false);
            }
        }
        found
    }

    /// The simple operations of an element that follows from positions and numbers; `None` if it does not.
    fn cost_of_positions(&self, id: NodeId) -> Option<f64> {
        let op = &self.graph.node(id).op;
        match op {
            Op::Iota | Op::Constant(_) => return Some(0.0),
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => {}
            Op::View(View::Reshape | View::Permute(_) | View::Expand | View::Slice { .. }) => {}
            _ => return None,
        }
        let operands = self.graph.operands(id);
        operands.iter().try_fold(operation_cost(op), |cost, &operand| {
            // Longer expressions cost too much anyway.
            let own = if cost > CHEAP { None } else { self.cost_of_positions(operand) };
            Some(cost + own?)
        })
    }

    /// The nodes, with what they read that is rematerialised.
    pub(super) fn with_rematerialised(
        &self,
        mut nodes: Vec<NodeId>,
        is_rematerialised: &[bool],
    ) -> Vec<NodeId> {
        let mut at = 0;
        while let Some(&id) = nodes.get(at) {
            let reads = self.facts.reads.reads(id).iter().map(|read| read.node);
            let is_missing = |id: &NodeId| is_rematerialised[id.index()] && !nodes.contains(id);
            let missing: Vec<NodeId> = reads.filter(is_missing).collect();
            nodes.extend(missing);
            at += 1;
        }
        nodes
    }
}
