//! Directed acyclic graphs over petgraph: nodes are only ever added, and operands come before users.

use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use smallvec::SmallVec;

/// A node of a [`Dag`].
pub(crate) type NodeId = NodeIndex<u32>;

/// Operands of a node, in order.
pub(crate) type Operands = SmallVec<[NodeId; 4]>;

/// A directed acyclic graph with outputs.
#[derive(Clone, Debug)]
pub(crate) struct Dag<N> {
    pub(super) inner: StableDiGraph<N, u32, u32>,
    outputs: Vec<NodeId>,
}

impl<N> Default for Dag<N> {
    fn default() -> Dag<N> {
        Dag { inner: StableDiGraph::default(), outputs: Vec::new() }
    }
}

impl<N> Dag<N> {
    /// An empty graph with room for so many nodes.
    pub(crate) fn with_capacity(nodes: usize) -> Dag<N> {
        Dag { inner: StableDiGraph::with_capacity(nodes, 2 * nodes), outputs: Vec::new() }
    }

    /// Adds a node after its operands.
    pub(crate) fn add(&mut self, node: N, operands: &[NodeId]) -> NodeId {
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

    pub(crate) fn node(&self, id: NodeId) -> &N {
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

    /// The graph with changed nodes.
    pub(crate) fn map_nodes(mut self, mut change: impl FnMut(NodeId, &mut N)) -> Dag<N> {
        for number in 0..self.bound() as u32 {
            let id = NodeId::from(number);
            change(id, &mut self.inner[id]);
        }
        self
    }

    /// A new graph in which `replace` has added a substitute for every live node, given the node and
    /// its operands' substitutes. This is how every pass is written; dead nodes fall away.
    pub(crate) fn rewrite(&self, mut replace: impl FnMut(&mut Dag<N>, &N, &[NodeId]) -> NodeId) -> Dag<N> {
        let live = self.live();
        let inner = StableDiGraph::with_capacity(self.inner.node_count(), self.inner.edge_count());
        let mut result = Dag { inner, outputs: Vec::new() };
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
