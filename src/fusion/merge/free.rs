//! What follows from positions and numbers alone and is read by many: each of them computes it, and nobody stores it.

use super::{INLINED, Merger};
use crate::fusion::cost::operation_cost;
use crate::graph::NodeId;
use crate::graph::op::{Op, View};

/// Simple operations of what costs no more than reading it: a converted position that is compared.
const FREE: f64 = 2.0;

impl Merger<'_> {
    /// By node, which of these nobody stores. Fewer readers are left to the search, which weighs what they would repeat.
    pub(super) fn free(&mut self, nodes: &[NodeId]) -> Vec<bool> {
        let mut is_free = vec![false; self.facts.bound()];
        for &id in nodes {
            let users = self.facts.reads.users(id);
            let is_read = users.len() > INLINED && !self.part.is_wanted[id.index()];
            if !is_read || self.cost_of_positions(id).is_none_or(|cost| cost > FREE) {
                continue;
            }
            is_free[id.index()] = true;
            // Some kernel might not be one with it.
            let is_kernel = |user: &NodeId| {
                let nodes = self.with_free(vec![*user], &is_free);
                nodes.len() > 1 && self.analyser.group(nodes, vec![*user]).is_ok()
            };
            is_free[id.index()] = users.iter().all(is_kernel);
        }
        is_free
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
            let own = if cost > FREE { None } else { self.cost_of_positions(operand) };
            Some(cost + own?)
        })
    }

    /// The nodes, and what they read that nobody stores.
    pub(super) fn with_free(&self, mut nodes: Vec<NodeId>, is_free: &[bool]) -> Vec<NodeId> {
        let mut at = 0;
        while let Some(&id) = nodes.get(at) {
            let reads = self.facts.reads.reads(id).iter().map(|read| read.node);
            let free: Vec<NodeId> = reads.filter(|id| is_free[id.index()] && !nodes.contains(id)).collect();
            nodes.extend(free);
            at += 1;
        }
        nodes
    }
}
