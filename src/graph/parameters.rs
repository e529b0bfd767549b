//! What of a graph its kernels get as arguments, so that another value is the same plan: the user's numbers, seeds, and
//! where slices and padded tensors begin.
//!
//! The slices of one tensor along one axis begin at one parameter, the least position that any of them reads, each at a
//! fixed distance from there. So the distances between the elements that a kernel reads of a tensor are part of its
//! text, as a stencil needs it; and where that least position is 0, as in halves, stencils, and everything that is only
//! cut at its end, there is no parameter, but for the crop of an image with a border, as at random. Neither
//! is there one for slices of what follows from such a slice: indices with many unknown positions grow with each view, and
//! nothing in them simplifies. Nor is there one for slices of several joins of the same parts, as a stencil on a tensor with
//! a border of its own elements has: each reads that of which all its elements are.
//!
//! What a pad puts somewhere into a larger tensor, as an assignment to a part does, begins at a parameter. So does the
//! second of two tensors that are joined along the outermost axis, where the first one ends: a join of what grows is
//! one kernel. Part of the text, which has a loop for each of their parts, are borders (as wide on either side, unless
//! around one position, or on one side alone), other joins, and pads of what is padded. So is where a pad of something
//! reshaped begins, unless the reshape only adds or leaves out axes of one element, or what is put is one position: its index
//! is divided, and what is divided must not be less than zero.

use lazuli_codegen::Language;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::numbers::Number;
use super::op::{Op, View};
use super::{Graph, NodeId, maps};
use crate::Shape;

/// Bytes of an access of several elements.
const ACCESS_BYTES: i64 = 16;

/// The parameters of a graph, in the order of its nodes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Parameters {
    /// The bits of each one's value: of a scalar of its compute dtype, or a position.
    pub(crate) values: Vec<u64>,
    of_nodes: FxHashMap<NodeId, usize>,
    starts: FxHashMap<(NodeId, usize), Start>,
    placed: FxHashMap<(NodeId, usize), Placed>,
}

/// Where a pad puts its operand along an axis.
#[derive(Clone, Copy, Hash, Debug)]
pub(crate) struct Placed {
    pub(crate) parameter: usize,
    pub(crate) place: Place,
    /// The parameter is less than this.
    pub(crate) extent: usize,
    pub(crate) is_outermost: bool,
}

/// Which end a parameter is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    /// The operand begins at 0, and ends at the parameter.
    First,
    /// It begins at the parameter, and is as long as the text says.
    Middle,
    /// It begins at the parameter, and goes on to the end.
    Last,
}

/// Where a view begins along an axis: at `unit * parameter + rest`.
#[derive(Clone, Copy, Hash, Debug)]
pub(crate) struct Start {
    pub(crate) parameter: usize,
    /// More than 1 where accesses of several elements are possible as the position is a multiple of it.
    pub(crate) unit: i64,
    pub(crate) rest: i64,
    /// The parameter is less than this.
    pub(crate) extent: usize,
    /// Whether the axis is the outermost, so that the extent does not matter.
    pub(crate) is_outermost: bool,
}

/// What slices of one tensor along one axis read: from the least position up to one after the largest.
struct Span {
    low: i64,
    high: i64,
    parameter: Option<usize>,
}

impl Parameters {
    pub(crate) fn of(graph: &Graph, language: Language) -> Parameters {
        let mut spans: FxHashMap<(NodeId, usize), Span> = FxHashMap::default();
        let mut places = Places::default();
        let is_nested = nested_pads(graph);
        let is_of_stencil = joins_of_stencils(graph);
        for id in graph.nodes() {
            for (operand, axis, (low, high), _) in slices(graph, id) {
                let span = spans.entry((operand, axis)).or_insert(Span { low, high, parameter: None });
                (span.low, span.high) = (span.low.min(low), span.high.max(high));
            }
            for (axis, place) in pads(graph, id) {
                let shape = &graph.node(id).shape;
                let along = places.entry((axis, shape[axis])).or_default();
                along.is_inner |= shape[..axis].iter().any(|&extent| extent != 1);
                along.is_nested |= is_nested[id.index()];
                if !along.parts.contains(&place) {
                    along.parts.push(place);
                }
            }
        }
        let mut parameters = Parameters::default();
        let mut follows = vec![false; graph.bound()];
        let mut is_divided = vec![false; graph.bound()];
        // Both halves of a join meet at one.
        let mut met: FxHashMap<(usize, usize, usize), usize> = FxHashMap::default();
        for id in graph.nodes() {
            let is_cut_before = graph.operands(id).iter().any(|operand| follows[operand.index()]);
            follows[id.index()] = is_cut_before;
            let is_divided_before = graph.operands(id).iter().any(|operand| is_divided[operand.index()]);
            is_divided[id.index()] = is_divided_before || is_division(graph, id);
            if let Some(number) = Number::of(&graph.node(id).op) {
                parameters.of_nodes.insert(id, parameters.values.len());
                parameters.values.push(number.bits());
            }
            for (operand, axis, _, start) in
                slices(graph, id).filter(|slice| !is_cut_before && !is_of_stencil[slice.0.index()])
            {
                let Some(span) = spans.get_mut(&(operand, axis)) else { continue };
                let is_crop = is_crop(graph, id, axis, span);
                if span.low == 0 && !is_crop {
                    continue;
                }
                let node = graph.node(operand);
                let unit = match is_crop {
                    true => 1,
                    false => unit(&node.shape, axis, span.low, node.dtype.size() as i64, language),
                };
                let parameter = *span.parameter.get_or_insert_with(|| {
                    parameters.values.push((span.low / unit) as u64);
                    parameters.values.len() - 1
                });
                let extent = (node.shape[axis] as i64 - (span.high - span.low)) / unit + 1;
                let start = Start {
                    parameter,
                    unit,
                    rest: start - span.low,
                    extent: extent as usize,
                    is_outermost: node.shape[..axis].iter().all(|&extent| extent == 1),
                };
                parameters.starts.insert((id, axis), start);
                follows[id.index()] = true;
            }
            // The only position of an axis is not divided.
            let is_free = |&(_, (from, to)): &(usize, (usize, usize))| !is_divided_before || to - from == 1;
            for (axis, part) in pads(graph, id).filter(is_free) {
                let extent = graph.node(id).shape[axis];
                let Some(along) = places.get(&(axis, extent)) else { continue };
                let Some(place) = along.place(part, extent) else { continue };
                let at = if place == Place::First { part.1 } else { part.0 };
                let parameter = *met.entry((axis, extent, at)).or_insert_with(|| {
                    parameters.values.push(at as u64);
                    parameters.values.len() - 1
                });
                let placed = Placed { parameter, place, extent: extent + 1, is_outermost: !along.is_inner };
                parameters.placed.insert((id, axis), placed);
            }
        }
        parameters
    }

    /// Whether the same is a parameter of both, in graphs that differ in sizes.
    pub(crate) fn is_like(&self, other: &Parameters) -> bool {
        let has_start = |(at, own): (&(NodeId, usize), &Start)| {
            let of = |start: &Start| (start.parameter, start.unit, start.is_outermost);
            other.starts.get(at).is_some_and(|other| of(other) == of(own))
        };
        let has_placed = |(at, own): (&(NodeId, usize), &Placed)| {
            let of = |placed: &Placed| (placed.parameter, placed.place, placed.is_outermost);
            other.placed.get(at).is_some_and(|other| of(other) == of(own))
        };
        let lengths = |of: &Parameters| (of.values.len(), of.starts.len(), of.placed.len());
        lengths(self) == lengths(other)
            && self.of_nodes == other.of_nodes
            && self.starts.iter().all(has_start)
            && self.placed.iter().all(has_placed)
    }

    /// Which parameters are numbers of the user's or seeds, and these.
    pub(crate) fn numbers(&self, graph: &Graph) -> Vec<(usize, Number)> {
        let of = |(&id, &parameter)| Some((parameter, Number::of(&graph.node(id).op)?));
        self.of_nodes.iter().filter_map(of).collect()
    }

    /// The parameter that is the number of a constant, or the seed of a random tensor.
    pub(crate) fn of_node(&self, id: NodeId) -> Option<usize> {
        self.of_nodes.get(&id).copied()
    }

    /// Where a pad puts its operand along an axis, unless that is part of the text.
    pub(crate) fn placed(&self, id: NodeId, axis: usize) -> Option<&Placed> {
        self.placed.get(&(id, axis))
    }

    /// Where a slice begins along an axis, unless that is part of the text.
    pub(crate) fn start(&self, id: NodeId, axis: usize) -> Option<&Start> {
        self.starts.get(&(id, axis))
    }
}

/// Whether a position of this node is divided to find its operand's.
fn is_division(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op == Op::View(View::Reshape) && maps::divides(&node.shape, &graph.node(graph.operands(id)[0]).shape)
}

/// Whether a slice of an image with a border is a crop, which may begin elsewhere next time: the only one along the axis, unlike
/// those of a stencil, and of fewer positions than the image with its border has.
fn is_crop(graph: &Graph, slice: NodeId, axis: usize, span: &Span) -> bool {
    let padded = graph.operands(slice)[0];
    let Op::View(View::Pad { before, .. }) = &graph.node(padded).op else { return false };
    let (lengths, extents) = (&graph.node(graph.operands(padded)[0]).shape, &graph.node(padded).shape);
    let read = (span.high - span.low) as usize;
    maps::is_bordered_image(before, lengths, extents)
        && read < extents[axis]
        && read == graph.node(slice).shape[axis]
}

/// Of each axis that a slice cuts: the operand, the axis, the positions that it reads, and where it begins.
fn slices(graph: &Graph, id: NodeId) -> impl Iterator<Item = (NodeId, usize, (i64, i64), i64)> + '_ {
    let node = graph.node(id);
    let cut = match &node.op {
        Op::View(View::Slice { starts, steps }) if node.shape.elements() > 0 => Some((starts, steps)),
        _ => None,
    };
    cut.into_iter().flat_map(move |(starts, steps)| {
        let operand = graph.operands(id)[0];
        starts.iter().zip(steps).enumerate().map(move |(axis, (&start, &step))| {
            let last = start + step * (node.shape[axis] as i64 - 1);
            (operand, axis, (start.min(last), start.max(last) + 1), start)
        })
    })
}

/// Pads of pads, and what these pad, as in a join of many: element by element, where one loop for each part is had.
fn nested_pads(graph: &Graph) -> Vec<bool> {
    let is_pad = |id: NodeId| matches!(graph.node(id).op, Op::View(View::Pad { .. }));
    let passes_on = |id: NodeId| {
        let op = &graph.node(id).op;
        matches!(op, Op::View(_) | Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast)
    };
    let (mut below, mut above) = (vec![false; graph.bound()], vec![false; graph.bound()]);
    for id in graph.nodes().filter(|&id| passes_on(id)) {
        let is_padded = |operand: &NodeId| is_pad(*operand) || below[operand.index()];
        below[id.index()] = graph.operands(id).iter().any(is_padded);
    }
    for id in graph.nodes().rev().filter(|&id| passes_on(id)) {
        let is_padded = is_pad(id) || above[id.index()];
        graph.operands(id).iter().for_each(|operand| above[operand.index()] |= is_padded);
    }
    below.iter().zip(&above).map(|(below, above)| below | above).collect()
}

/// Joins that have parts in common, where slices of two and more of them are read: a stencil on a tensor with a border of its own
/// elements, whose neighbours each come from another join.
fn joins_of_stencils(graph: &Graph) -> Vec<bool> {
    let pads = |id: NodeId| match graph.node(id).op {
        Op::View(View::Pad { .. }) => Some(graph.operands(id)),
        _ => None,
    };
    let parts = |id: NodeId| {
        let parts = graph.operands(id).into_iter().skip(1);
        let is_join = graph.node(id).op == Op::Select && parts.clone().all(|part| pads(part).is_some());
        is_join.then(|| parts.collect())
    };
    let mut is_of_stencil = vec![false; graph.bound()];
    let mut families: UnionFind<usize> = UnionFind::new(graph.bound());
    for id in graph.nodes() {
        for operand in parts(id).or(pads(id)).into_iter().flatten() {
            families.union(id.index(), operand.index());
        }
    }
    // What is only padded is an edge that becomes a part.
    let mut is_used = vec![false; graph.bound()];
    let readers = graph.nodes().filter(|&id| pads(id).is_none());
    readers.flat_map(|id| graph.operands(id)).for_each(|operand| is_used[operand.index()] = true);
    graph.outputs().iter().for_each(|output| is_used[output.index()] = true);
    let mut sliced: FxHashMap<usize, SmallVec<[NodeId; 4]>> = FxHashMap::default();
    for id in graph.nodes().filter(|id| is_used[id.index()]) {
        let Op::View(View::Slice { .. }) = graph.node(id).op else { continue };
        let join = graph.operands(id)[0];
        let family = sliced.entry(families.find(join.index())).or_default();
        if parts(join).is_some() && !family.contains(&join) {
            family.push(join);
        }
    }
    for join in sliced.values().filter(|joins| joins.len() > 1).flatten() {
        is_of_stencil[join.index()] = true;
    }
    is_of_stencil
}

/// What pads make of one axis and extent, by both.
type Places = FxHashMap<(usize, usize), Along>;

/// What pads put along an axis.
#[derive(Default)]
struct Along {
    /// From and to where, each pair once.
    parts: SmallVec<[(usize, usize); 4]>,
    /// Whether the axis is not the outermost of one of them.
    is_inner: bool,
    /// Whether one of them is a pad of a pad, or is padded.
    is_nested: bool,
}

impl Along {
    /// Which end of a part is a parameter, if any is.
    fn place(&self, (start, end): (usize, usize), extent: usize) -> Option<Place> {
        if self.is_nested {
            return None;
        }
        if let [one, other] = self.parts[..]
            && (one.1 == other.0 || other.1 == one.0)
            && (one.0.min(other.0), one.1.max(other.1)) == (0, extent)
        {
            let place = if start == 0 { Place::First } else { Place::Last };
            return (!self.is_inner).then_some(place);
        }
        // One position in the middle of many is assigned to, as every other one is.
        let is_even = start.abs_diff(extent - end) <= 1 && (start <= 1 || end - start > 1);
        let is_border = start == 0 || end == extent || is_even;
        let meets_another = self.parts.iter().any(|&(from, to)| to == start || from == end);
        (!is_border && !meets_another).then_some(Place::Middle)
    }
}

/// Of each axis that a pad makes longer: the axis, and from and to where the operand is.
fn pads(graph: &Graph, id: NodeId) -> impl Iterator<Item = (usize, (usize, usize))> + '_ {
    let shape = &graph.node(id).shape;
    let padded = match &graph.node(id).op {
        Op::View(View::Pad { before, .. }) => Some((before, &graph.node(graph.operands(id)[0]).shape)),
        _ => None,
    };
    padded.into_iter().filter(|(_, from)| from.elements() > 0).flat_map(move |(before, from)| {
        let places = before.iter().zip(from.iter()).map(|(&before, &length)| (before, before + length));
        places.enumerate().filter(|&(axis, _)| from[axis] != shape[axis])
    })
}

/// On CUDA a position that is a multiple of what one access reads is a multiple in the text too, unless all positions
/// along the axis are.
fn unit(shape: &Shape, axis: usize, low: i64, bytes: i64, language: Language) -> i64 {
    let width = ACCESS_BYTES / bytes;
    let inner: i64 = shape[axis + 1..].iter().map(|&extent| extent as i64).product();
    match language {
        Language::Cuda if inner % width != 0 && low % width == 0 => width,
        Language::Cuda | Language::C => 1,
    }
}
