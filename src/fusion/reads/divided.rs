//! Views that divide positions: rolls, tiles, pixels that change places with channels, rows of another length. A loop that does so for
//! each element has no vectors, but for those of pointwise kernels, which go from quotient to quotient. So such a view
//! is a node that may be stored, though it computes nothing.

use lazuli_codegen::index::{Atom, AxisId};
use lazuli_codegen::schedule::share;
use smallvec::SmallVec;

use super::reader::{Reader, innermost};
use crate::BinaryOp;
use crate::fusion::cost::Loop;
use crate::graph::maps::{self, Indices, Maps};
use crate::graph::op::{Op, View};
use crate::graph::{Graph, NodeId};

/// A view that is stored has no more than so many elements of each of what it is of.
const MOST_REPEATED: usize = 4;

/// Stretches of neighbours that are packed without divisions.
const PACKED: u64 = 16;

/// How positions are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divided {
    /// How many neighbours have one quotient.
    stretch: u64,
    /// Whether the innermost axis is divided.
    is_inside: bool,
    /// Whether neighbours of a stretch are none in memory.
    is_strided: bool,
    /// Whether windows of it are read.
    is_windowed: bool,
    /// Whether parts of a join are.
    is_join: bool,
}

/// Where a kernel reads a view.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Place {
    /// At the positions of results, and of nothing else.
    pub(crate) is_result: bool,
    /// In windows that are combined.
    pub(crate) is_windowed: bool,
    /// In rows along which results are stored, or positions are found.
    pub(crate) is_ordered: bool,
}

impl Divided {
    /// Neighbours are of several parts: so many in turn.
    pub(super) fn interleaved(parts: usize) -> Divided {
        let stretch = if parts as u64 <= share::NEAR { parts as u64 } else { 1 };
        Divided { stretch, is_inside: true, is_strided: false, is_windowed: false, is_join: true }
    }

    /// Whether positions are divided for each element in a loop.
    pub(crate) fn slows(self, kind: Loop, at: Place) -> bool {
        match kind {
            _ if at.is_result => self.is_inside && self.is_turned(),
            Loop::Windows => at.is_windowed || self.is_windowed || self.is_inside && !self.is_unrolled(),
            Loop::Products => self.is_windowed || self.is_inside && self.stretch < PACKED,
            // Whole rows are reduced in memory's order (`Kernel::order_rows`), and groups are lines (`schedule::by_quotients`).
            Loop::Rows => {
                let is_moved = self.is_strided || self.is_unrolled();
                self.is_inside && (self.stretch == 1 || at.is_ordered && is_moved)
            }
            Loop::Columns => self.is_inside && !self.is_unrolled(),
            // Whoever reads one part of a join reads no other.
            Loop::Lanes => self.is_inside && !self.is_join,
            _ => self.is_inside,
        }
    }

    /// Whether neighbours of one quotient are side by side.
    fn is_unrolled(self) -> bool {
        (2..=share::NEAR).contains(&self.stretch)
    }

    /// Whether tiles turn what is stored by itself, which neighbours that are unrolled do not need.
    pub(crate) fn is_turned(self) -> bool {
        self.is_strided && !self.is_unrolled()
    }

    pub(super) fn or(self, other: Option<Divided>) -> Divided {
        let Some(other) = other else { return self };
        Divided {
            stretch: self.stretch.min(other.stretch),
            is_inside: self.is_inside || other.is_inside,
            is_strided: self.is_strided || other.is_strided,
            is_windowed: self.is_windowed || other.is_windowed,
            is_join: self.is_join || other.is_join,
        }
    }
}

/// Views of each other, the one that is of a value first.
type Chain = SmallVec<[NodeId; 6]>;

/// What divides of each node; views that may be stored are among those that are computed, then.
pub(super) fn mark(graph: &Graph, live: &[bool], computed: &mut [bool], maps: &Maps) -> Vec<Option<Divided>> {
    let mut all: Vec<Option<Divided>> = vec![None; graph.bound()];
    for id in graph.nodes().filter(|id| live[id.index()]) {
        let node = graph.node(id);
        if node.op.is_free() && !computed[id.index()] {
            continue;
        }
        for operand in graph.operands(id) {
            let chain = chain(graph, computed, operand);
            let Some((view, divided)) = stored(graph, maps, &chain) else { continue };
            let has_values = || {
                let source = graph.operands(chain[0])[0];
                computed[source.index()] || !matches!(graph.node(source).op, Op::Constant(_) | Op::Iota)
            };
            let is_packed = matches!(node.op, Op::Binary(BinaryOp::Mul))
                && node.shape.elements() > graph.node(view).shape.elements()
                && !divided.slows(Loop::Products, Place::default());
            // What a join's parts divide is known where the join is: stored, one of them gains nothing.
            let marked = match node.op {
                Op::Select if divided.stretch == 1 => continue,
                Op::Select => id,
                _ if is_packed || !has_values() => continue,
                _ => view,
            };
            computed[marked.index()] = true;
            let divided = Divided { is_join: marked == id, ..divided };
            all[marked.index()] = Some(divided.or(all[marked.index()]));
        }
    }
    all
}

/// The views that lead to a value, from the one that is of it.
fn chain(graph: &Graph, computed: &[bool], mut id: NodeId) -> Chain {
    let mut chain = Chain::new();
    while let Op::View(_) = graph.node(id).op
        && !computed[id.index()]
    {
        chain.push(id);
        id = graph.operands(id)[0];
    }
    chain.reverse();
    chain
}

/// Which of these views may be stored: the last that divides positions, with those of it that leave out what a value was repeated
/// for. Before a reshape it is stored as it is: whole rows may be turned then.
fn stored(graph: &Graph, maps: &Maps, chain: &Chain) -> Option<(NodeId, Divided)> {
    let shape = |id: NodeId| &graph.node(id).shape;
    let elements = |at: usize| shape(chain[at]).elements();
    let &first = chain.first()?;
    let is_reshape = |&id: &NodeId| matches!(graph.node(id).op, Op::View(View::Reshape));
    let takes_apart =
        |&id: &NodeId| is_reshape(&id) && maps::divides(shape(id), shape(graph.operands(id)[0]));
    if !chain.iter().any(takes_apart) {
        return None;
    }
    let source = graph.operands(first)[0];
    let all = shape(source).elements();
    let is_window = |&id: &NodeId| matches!(graph.node(id).op, Op::View(View::Window { .. }));
    let candidate = |from: usize| {
        let kept = all.min(elements(from))..=elements(from);
        let is_slice = |at: &usize| matches!(graph.node(chain[*at]).op, Op::View(View::Slice { .. }));
        let slices = (from + 1..chain.len()).take_while(is_slice);
        let at = slices.take_while(|&at| kept.contains(&elements(at))).last().unwrap_or(from);
        let overlaps = chain[..=at].iter().any(is_window) && elements(at) > all;
        let is_large = elements(at) > MOST_REPEATED * all && all > 1;
        if overlaps || is_large || elements(at) < 2 {
            return None;
        }
        let (view, inner) = (chain[at], innermost(shape(chain[at])) as u64);
        let reader = Reader::new(shape(view), false, false);
        let indices = indices(graph, &reader, &chain[..=at]);
        let map = reader.map(indices.as_ref(), shape(source), maps);
        let position = maps::flatten(&indices?, shape(source)).simplify(&reader.ranges);
        let last = AxisId(shape(view).rank().saturating_sub(1) as u32);
        let divided = Divided {
            stretch: maps.stretch(map, inner, share::NEAR),
            is_inside: position.coefficient(last).is_none(),
            is_strided: maps.is_transposed(map),
            is_windowed: chain[at..].iter().any(is_window),
            is_join: false,
        };
        let before = at.checked_sub(1).filter(|_| is_reshape(&view)).map(|before| chain[before]);
        // Quotients of outer positions are found once a row, but not by windows.
        (divided.is_inside || divided.is_windowed).then_some((before.unwrap_or(view), divided))
    };
    let quotients: SmallVec<[usize; 6]> =
        (0..=chain.len()).map(|end| quotients(graph, &chain[..end])).collect();
    // What follows may be of one quotient alone.
    let divides = |at: &usize| quotients[at + 1..].iter().all(|&more| more > quotients[*at]);
    (0..chain.len()).rev().filter(divides).find_map(candidate)
}

/// The indices of a value at the positions of the last of some views.
fn indices(graph: &Graph, reader: &Reader, views: &[NodeId]) -> Option<Indices> {
    let mut indices = None;
    for &id in views.iter().rev() {
        let Op::View(view) = &graph.node(id).op else { continue };
        let (to, from) = (&graph.node(id).shape, &graph.node(graph.operands(id)[0]).shape);
        indices = Some(reader.through(view, to, from, indices));
    }
    indices
}

/// How many quotients and remainders the position of a value has by those of the last of some views.
fn quotients(graph: &Graph, views: &[NodeId]) -> usize {
    let (Some(&first), Some(&last)) = (views.first(), views.last()) else { return 0 };
    let source = graph.operands(first)[0];
    let reader = Reader::new(&graph.node(last).shape, false, false);
    let Some(indices) = indices(graph, &reader, views) else { return 0 };
    let position = maps::flatten(&indices, &graph.node(source).shape).simplify(&reader.ranges);
    position.terms().iter().filter(|(atom, _)| !matches!(atom, Atom::Axis(_))).count()
}
