//! The dataflow graph of one evaluation: what the tensors that were asked for need, as petgraph.
//!
//! Invariants: node indices are in topological order (operands before users), because nodes are only
//! ever added; an edge's weight is the operand's position; [`verify::verify`] holds between all passes.

pub(crate) mod body;
pub(crate) mod build;
pub(crate) mod dot;
pub(crate) mod hash;
pub(crate) mod infer;
pub(crate) mod op;
pub(crate) mod parameters;
#[cfg(test)]
pub(crate) mod sketch;
pub(crate) mod text;
pub(crate) mod verify;

use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use smallvec::SmallVec;

use crate::{DType, Shape, SourceLocation};
use op::Op;

/// A node of a [`Graph`].
pub(crate) type NodeId = NodeIndex<u32>;

/// Operands of a node, in order.
pub(crate) type Operands = SmallVec<[NodeId; 4]>;

/// One operation with its result's type and where it came from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub op: Op,
    pub shape: Shape,
    pub dtype: DType,
    /// The operation as the user called it, such as `softmax` for each primitive of a softmax.
    pub origin: &'static str,
    pub location: SourceLocation,
}

/// The operations that the outputs need.
#[derive(Clone, Default, Debug)]
pub(crate) struct Graph {
    inner: StableDiGraph<Node, u32, u32>,
    outputs: Vec<NodeId>,
}

impl Graph {
    /// Adds a node after its operands.
    pub(crate) fn add(&mut self, node: Node, operands: &[NodeId]) -> NodeId {
        let id = self.inner.add_node(node);
        for (position, &operand) in operands.iter().enumerate() {
            self.inner.add_edge(operand, id, position as u32);
        }
        id
    }

    pub(crate) fn set_outputs(&mut self, outputs: Vec<NodeId>) {
        self.outputs = outputs;
    }

    /// The nodes whose values were asked for; one may be asked for twice.
    pub(crate) fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.inner[id]
    }

    /// One more than the largest node index: the length of a table indexed by node.
    pub(crate) fn bound(&self) -> usize {
        self.inner.node_count()
    }

    /// All nodes, operands before users.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.inner.node_indices()
    }

    pub(crate) fn operands(&self, id: NodeId) -> Operands {
        let mut operands = Operands::new();
        // Edges were added in the order of the operands, which `verify` checks, and come back the last one first.
        for operand in self.inner.neighbors_directed(id, Direction::Incoming) {
            operands.push(operand);
        }
        operands.reverse();
        operands
    }

    /// Which nodes the outputs need, as a table indexed by node.
    pub(crate) fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.bound()];
        let mut pending: Vec<NodeId> = self.outputs.clone();
        while let Some(id) = pending.pop() {
            if !std::mem::replace(&mut live[id.index()], true) {
                pending.extend(self.inner.neighbors_directed(id, Direction::Incoming));
            }
        }
        live
    }

    /// Numbers of the live nodes: dense, operands before users; `None` for dead nodes.
    pub(crate) fn numbers(&self) -> Vec<Option<u32>> {
        let mut next = 0..;
        self.live().into_iter().map(|live| if live { next.next() } else { None }).collect()
    }

    /// A new graph in which `replace` has added a substitute for every live node, given the node and
    /// its operands' substitutes. This is how every pass is written; dead nodes fall away.
    pub(crate) fn rewrite(&self, mut replace: impl FnMut(&mut Graph, &Node, &[NodeId]) -> NodeId) -> Graph {
        let live = self.live();
        let inner = StableDiGraph::with_capacity(self.inner.node_count(), self.inner.edge_count());
        let mut result = Graph { inner, outputs: Vec::new() };
        let mut substitute: Vec<Option<NodeId>> = vec![None; self.bound()];
        for id in self.nodes().filter(|id| live[id.index()]) {
            let operands: Operands =
                self.operands(id).iter().filter_map(|operand| substitute[operand.index()]).collect();
            substitute[id.index()] = Some(replace(&mut result, self.node(id), &operands));
        }
        let outputs = self.outputs.iter().filter_map(|output| substitute[output.index()]).collect();
        result.set_outputs(outputs);
        result
    }
}
