//! What each computed node reads, through the views in between.

mod divided;
mod reader;

use smallvec::SmallVec;

pub(crate) use self::divided::{Divided, Place};
use self::reader::{Reader, innermost};
use crate::graph::maps::{Indices, MapId, Maps};
use crate::graph::op::{Op, View};
use crate::graph::{Graph, NodeId};

/// A value that a computed node reads: an input or another computed node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    pub(crate) node: NodeId,
    /// How often elements of `node` are read when the reader is computed once in full.
    pub(crate) elements: u64,
    /// The same where the reader joins several that are computed and its positions are those of the kernel's results, which decide the
    /// part they are of.
    pub(crate) in_place: u64,
    /// The operand: the node itself, or the last of the views that lead to it. Who reads the same view reads the same
    /// elements.
    pub(crate) through: NodeId,
    /// Which elements, by the reader's positions (of a reduction, by those that it combines); `None` if the reader
    /// computes where it reads, not along the rows that threads go over together.
    pub(crate) map: Option<MapId>,
    /// Whether reader and node have the same elements in the same order.
    pub(crate) aligned: bool,
    /// Whether neighbours of the reader are none in memory, while those of another of its axes are.
    pub(crate) permuted: bool,
    /// Whether the node's elements are few or one of each that are joined along the innermost axis.
    pub(crate) interleaved: bool,
    /// Whether several of the node's axes are the reader's innermost one.
    pub(crate) is_merged: bool,
    /// Whether it is read between borders of the innermost axis alone.
    pub(crate) is_padded: bool,
}

/// A way through views.
struct Path {
    read: Read,
    /// Indices of the node's elements; `None` while each position reads the one in its own place.
    indices: Option<Indices>,
}

/// The reads of every computed node and who uses each; tables indexed by node.
pub(crate) struct Reads {
    reads: Vec<SmallVec<[Read; 2]>>,
    users: Vec<SmallVec<[NodeId; 2]>>,
    computed: Vec<bool>,
    /// Of views that divide positions, and of joins whose parts do.
    divided: Vec<Option<Divided>>,
    is_output: Vec<bool>,
    pub(crate) maps: Maps,
}

/// Whether the node selects, by position, between tensors that are padded to the whole.
pub(super) fn is_join(graph: &Graph, id: NodeId) -> bool {
    let is_padded = |id: &NodeId| matches!(graph.node(*id).op, Op::View(View::Pad { .. }));
    matches!(graph.node(id).op, Op::Select) && graph.operands(id)[1..].iter().any(is_padded)
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

/// An edge has less than one in so many elements of its join.
const EDGE: usize = 16;

impl Reads {
    /// The reads of a graph, whose views are stored where that is cheaper than dividing, if `stores_views`.
    pub(crate) fn new(graph: &Graph, stores_views: bool) -> Reads {
        let bound = graph.bound();
        let mut result = Reads {
            reads: vec![SmallVec::new(); bound],
            users: vec![SmallVec::new(); bound],
            computed: vec![false; bound],
            divided: vec![None; bound],
            is_output: vec![false; bound],
            maps: Maps::default(),
        };
        for &output in graph.outputs() {
            let root = stored_as(graph, output);
            result.is_output[root.index()] = true;
            result.computed[root.index()] = !matches!(graph.node(root).op, Op::Input(_));
        }
        let live = graph.live();
        if stores_views {
            result.divided = divided::mark(graph, &live, &mut result.computed, &result.maps);
        }
        for id in graph.nodes().filter(|id| live[id.index()]) {
            let node = graph.node(id);
            result.computed[id.index()] |= !node.op.is_free();
            if !result.computed[id.index()] {
                continue;
            }
            let mut found: SmallVec<[Read; 2]> = SmallVec::new();
            for (position, operand) in graph.operands(id).into_iter().enumerate() {
                result.read(graph, id, position, operand, &mut found);
            }
            // One part beside what is there already, as a cache, is no more than a part.
            let is_part = |read: &&Read| read.in_place < read.elements && result.computed[read.node.index()];
            if found.iter().filter(is_part).count() < 2 {
                found.iter_mut().for_each(|read| read.in_place = read.elements);
            }
            let is_one = |&part: &NodeId| {
                let is_pad = matches!(graph.node(part).op, Op::View(View::Pad { .. }));
                is_pad && innermost(&graph.node(graph.operands(part)[0]).shape) == 1
            };
            let is_interleaved = || graph.operands(id).iter().any(is_one);
            if stores_views && found.iter().any(|read| read.interleaved) && is_interleaved() {
                let own = Divided::interleaved(innermost(&node.shape));
                result.divided[id.index()] = Some(own.or(result.divided[id.index()]));
            }
            for read in &found {
                result.users[read.node.index()].push(id);
            }
            result.reads[id.index()] = found;
        }
        result
    }

    /// What a node reads by an operand.
    fn read(
        &self,
        graph: &Graph,
        id: NodeId,
        position: usize,
        operand: NodeId,
        found: &mut SmallVec<[Read; 2]>,
    ) {
        let (node, read_shape) = (graph.node(id), &graph.node(operand).shape);
        let shape = match &node.op {
            Op::Reduce { .. } | Op::Recurrence { .. } | Op::Scatter { .. } | Op::Sort { .. } => read_shape,
            _ => &node.shape,
        };
        let elements = match &node.op {
            Op::Scatter { .. } if position == 1 => index_reads(graph, id, operand),
            _ => shape.elements() as u64,
        };
        // A free output is its own kernel: it reads what its operand leads to.
        let own_view = match &node.op {
            Op::View(view) if !matches!(view, View::Reshape) => Some(view),
            _ => None,
        };
        let is_gather = matches!(node.op, Op::Gather { .. }) && position == 0;
        // What a carry begins as is needed before the first of the results.
        let is_init = matches!(&node.op, Op::Recurrence { body, .. } if position < body.carries);
        let is_scatter = matches!(node.op, Op::Scatter { .. } | Op::Sort { .. });
        let may_align = !(own_view.is_some() || is_gather || is_init || is_scatter);
        let reader = Reader::new(shape, is_gather, may_align);
        let indices = own_view.map(|view| reader.through(view, shape, read_shape, None));
        let read = Read {
            node: operand,
            elements,
            in_place: elements,
            through: operand,
            map: None,
            aligned: false,
            permuted: false,
            interleaved: false,
            is_merged: false,
            is_padded: false,
        };
        self.follow(graph, &reader, Path { read, indices }, found);
    }

    /// Goes through free nodes to what has values; recursion is replaced by a list, as views chain.
    fn follow(&self, graph: &Graph, reader: &Reader, start: Path, found: &mut SmallVec<[Read; 2]>) {
        let mut pending: SmallVec<[Path; 2]> = SmallVec::new();
        pending.push(start);
        while let Some(Path { mut read, indices }) = pending.pop() {
            let node = graph.node(read.node);
            if self.computed[read.node.index()] || matches!(node.op, Op::Input(_)) {
                if !reader.is_gather {
                    let map = reader.map(indices.as_ref(), &node.shape, &self.maps);
                    let is_same = reader.shape.elements() == node.shape.elements();
                    read.aligned = reader.may_align && is_same && self.maps.is_identity(map);
                    read.permuted = self.maps.is_transposed(map);
                    read.map = Some(map);
                }
                if !found.contains(&read) {
                    found.push(read);
                }
                continue;
            }
            let Op::View(view) = &node.op else { continue };
            let operand = graph.operands(read.node)[0];
            let from = &graph.node(operand).shape;
            if let View::Pad { before, .. } = view {
                let (own, joined) = (innermost(from), innermost(&node.shape));
                let first = before.last().copied().unwrap_or(0);
                let (part, whole) = (from.elements(), node.shape.elements());
                // The ends of rows, and a few of the rows, are apart from the loop over the rest.
                let is_end = own == joined || first == 0 || first + own == joined;
                let is_edge = is_end && part < whole / EDGE;
                let of_part = |elements: u64| (elements as f64 * part as f64 / whole as f64).ceil() as u64;
                if is_edge {
                    read.elements = of_part(read.elements);
                }
                if is_edge || own == joined {
                    read.in_place = of_part(read.in_place);
                }
                read.is_padded |= own != joined;
                read.interleaved |= !is_edge && own < joined && own <= INTERLEAVED;
            }
            read.is_merged |= matches!(view, View::Reshape) && innermost(from) < innermost(&node.shape);
            let indices = match reader.is_gather {
                true => None,
                false => Some(reader.through(view, &node.shape, from, indices)),
            };
            read.node = operand;
            pending.push(Path { read, indices });
        }
    }

    /// Whether a gather's neighbours read at positions of their own.
    pub(crate) fn is_far(&self, gather: NodeId) -> bool {
        let varies = |read: &Read| read.map.is_some_and(|map| self.maps.varies_inside(map));
        self.reads(gather).iter().any(varies)
    }

    /// How a view divides positions that may be stored, or a join whose parts do.
    pub(crate) fn divided(&self, id: NodeId) -> Option<Divided> {
        self.divided[id.index()]
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
