//! The body of a recurrence: what one step computes, as a graph of its own.

use super::dag::NodeId;
use super::hash::structural_key;
pub(crate) use super::op::Body;
use super::op::{Graph, StructuralKey};
use crate::DType;

impl Body {
    pub(crate) fn new(graph: Graph, carries: usize, inputs: Vec<DType>) -> Body {
        let key = structural_key(&graph);
        Body { graph, carries, inputs, key, rules: None }
    }

    pub(crate) fn key(&self) -> StructuralKey {
        self.key
    }

    /// The dtype of an output.
    pub(crate) fn output(&self, number: usize) -> Option<DType> {
        let &id = self.graph.outputs().get(number)?;
        Some(self.graph.node(id).dtype)
    }

    /// The nodes that an output needs and that are not `known`, operands first.
    pub(crate) fn needed(&self, output: NodeId, known: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let mut seen = vec![false; self.graph.bound()];
        let (mut pending, mut needed) = (vec![output], Vec::new());
        while let Some(id) = pending.pop() {
            if !known(id) && !std::mem::replace(&mut seen[id.index()], true) {
                needed.push(id);
                pending.extend(self.graph.operands(id));
            }
        }
        needed.sort_unstable();
        needed
    }
}
