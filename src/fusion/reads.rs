//! What each computed node reads, through the views in between.

use smallvec::SmallVec;

use crate::graph::op::{Op, View};
use crate::graph::{Graph, NodeId};

/// A value that a computed node reads: an input or another computed node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    pub(crate) node: NodeId,
    /// How often elements of `node` are read when the reader is computed once in full.
    pub(crate) elements: u64,
    /// The operand: the node itself, or the last of the views that lead to it. Who reads the same view reads the same
    /// elements.
    pub(crate) through: NodeId,
    /// Whether reader and node have the same elements in the same order.
    pub(crate) aligned: bool,
    /// Whether a window view lies between.
    pub(crate) windowed: bool,
    /// Whether the innermost axis is another one.
    pub(crate) permuted: bool,
    /// Whether the node's elements are few or one of each that are joined along the innermost axis.
    pub(crate) interleaved: bool,
    /// Whether the reader computes where it reads: not along the rows that threads walk together.
    pub(crate) gathered: bool,
}

/// The reads of every computed node and who uses each; tables indexed by node.
pub(crate) struct Reads {
    reads: Vec<SmallVec<[Read; 2]>>,
    users: Vec<SmallVec<[NodeId; 2]>>,
    computed: Vec<bool>,
    is_output: Vec<bool>,
}

/// The node whose buffer holds an output: reshapes only rename the elements.
pub(crate) fn stored_as(graph: &Graph, mut id: NodeId) -> NodeId {
    while let Op::View(View::Reshape) = graph.node(id).op {
        id = graph.operands(id)[0];
    }
    id
}

/// Results of a scatter that one block holds, about.
const SCATTERED: usize = 4096;

/// Blocks that read the same index, at most: so many ways to divide the results are enough.
const RANGES: usize = 16;

/// How often a scatter reads its index: each element once for all of a row that it moves, and for each range of
/// results anew.
fn index_reads(graph: &Graph, scatter: NodeId, mut index: NodeId) -> u64 {
    while let Op::View(View::Expand) = graph.node(index).op {
        index = graph.operands(index)[0];
    }
    let ranges = (graph.node(scatter).shape.elements() / SCATTERED).clamp(1, RANGES);
    graph.node(index).shape.elements().saturating_mul(ranges) as u64
}

/// Neighbours of a join along the innermost axis that are too few for the lanes of a core.
const INTERLEAVED: usize = 8;

/// Whether a permutation leaves the innermost axis of more than one element where it is.
fn is_innermost_kept(graph: &Graph, permuted: NodeId, perm: &[usize]) -> bool {
    let shape = &graph.node(permuted).shape;
    let before = &graph.node(graph.operands(permuted)[0]).shape;
    let inner = (0..shape.rank()).rev().find(|&axis| shape[axis] != 1);
    let inner_before = (0..before.rank()).rev().find(|&axis| before[axis] != 1);
    inner.map(|axis| perm[axis]) == inner_before
}

impl Reads {
    pub(crate) fn new(graph: &Graph) -> Reads {
        let bound = graph.bound();
        let mut result = Reads {
            reads: vec![SmallVec::new(); bound],
            users: vec![SmallVec::new(); bound],
            computed: vec![false; bound],
            is_output: vec![false; bound],
        };
        for &output in graph.outputs() {
            let root = stored_as(graph, output);
            result.is_output[root.index()] = true;
            result.computed[root.index()] = !matches!(graph.node(root).op, Op::Input(_));
        }
        let live = graph.live();
        for id in graph.nodes().filter(|id| live[id.index()]) {
            let node = graph.node(id);
            result.computed[id.index()] |= !node.op.is_free();
            if !result.computed[id.index()] {
                continue;
            }
            let mut found: SmallVec<[Read; 2]> = SmallVec::new();
            for (position, operand) in graph.operands(id).into_iter().enumerate() {
                // A free output is its own kernel: it reads what its operand leads to.
                let own_view = matches!(&node.op, Op::View(view) if !matches!(view, View::Reshape));
                let gathered = matches!(node.op, Op::Gather { .. }) && position == 0;
                // What a carry begins as is needed before the first of the results.
                let init = matches!(&node.op, Op::Recurrence { body, .. } if position < body.carries);
                let elements = match &node.op {
                    Op::Scatter { .. } if position == 1 => index_reads(graph, id, operand),
                    Op::Reduce { .. } | Op::Recurrence { .. } | Op::Scatter { .. } => {
                        graph.node(operand).shape.elements() as u64
                    }
                    _ => node.shape.elements() as u64,
                };
                let start = Read {
                    node: operand,
                    elements,
                    through: operand,
                    aligned: !own_view && !gathered && !init && !matches!(node.op, Op::Scatter { .. }),
                    windowed: false,
                    permuted: false,
                    interleaved: false,
                    gathered,
                };
                result.follow(graph, start, &mut found);
            }
            for read in &found {
                result.users[read.node.index()].push(id);
            }
            result.reads[id.index()] = found;
        }
        result
    }

    /// Walks through free nodes to what has values; recursion is replaced by a list, as views chain.
    fn follow(&self, graph: &Graph, start: Read, found: &mut SmallVec<[Read; 2]>) {
        let mut pending: SmallVec<[Read; 4]> = SmallVec::from_slice(&[start]);
        while let Some(mut read) = pending.pop() {
            let node = graph.node(read.node);
            if self.computed[read.node.index()] || matches!(node.op, Op::Input(_)) {
                if !found.contains(&read) {
                    found.push(read);
                }
                continue;
            }
            if let Op::View(view) = &node.op {
                match view {
                    View::Reshape => {}
                    View::Window { .. } => {
                        read.windowed = true;
                        read.aligned = false;
                    }
                    View::Permute(perm) => {
                        read.permuted ^= !is_innermost_kept(graph, read.node, perm);
                        read.aligned = false;
                    }
                    View::Pad { .. } => {
                        let inner = |id: NodeId| graph.node(id).shape.last().copied().unwrap_or(1);
                        let (own, joined) = (inner(graph.operands(read.node)[0]), inner(read.node));
                        read.interleaved |= own < joined && own <= INTERLEAVED;
                        read.aligned = false;
                    }
                    View::Expand | View::Slice { .. } => read.aligned = false,
                }
                read.node = graph.operands(read.node)[0];
                pending.push(read);
            }
        }
    }

    /// Whether the node is computed by some kernel.
    pub(crate) fn is_computed(&self, id: NodeId) -> bool {
        self.computed[id.index()]
    }

    /// Whether the evaluation wants the node's values.
    pub(crate) fn is_output(&self, id: NodeId) -> bool {
        self.is_output[id.index()]
    }

    /// What a computed node reads; constants and positions do not count.
    pub(crate) fn reads(&self, id: NodeId) -> &[Read] {
        &self.reads[id.index()]
    }

    /// The computed nodes that read a node, once for each way of reading.
    pub(crate) fn users(&self, id: NodeId) -> &[NodeId] {
        &self.users[id.index()]
    }
}
