//! What fusion asks of each node again and again, worked out once a graph.

use rustc_hash::FxHashMap;

use super::analyse::Analyser;
use super::cost::{TargetFigures, operation_cost};
use super::cut::Cut;
use super::group::Group;
use super::reads::Reads;
use crate::graph::op::{Op, View};
use crate::graph::{Graph, NodeId};
use crate::{ReduceOp, Shape};

/// Reductions up to this many positions are loops of one thread.
const IN_THREAD: usize = 8;

/// So are windows up to this many.
const IN_THREAD_WINDOW: usize = 64;

/// Rows up to this long may be walked several times by one kernel: what a walk has read is still near when the next one
/// wants it. Longer ones may where the target's figures say so.
const WALKABLE: usize = 16_384;

/// The figures of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeFacts {
    pub(super) elements: usize,
    /// Of one element.
    pub(super) size: usize,
    /// The extent of the innermost dimension of more than one element.
    pub(super) inner: usize,
    /// Equal for equal shapes.
    pub(super) shape: u32,
    /// Equal for shapes that differ in dimensions of one element alone: the same elements at the same places.
    pub(super) domain: u32,
    /// Simple operations for each element that is computed or, in a reduction, combined.
    pub(super) cost: f64,
    /// Elements that a reduction combines into one; otherwise 1.
    pub(super) fan: f64,
    /// Of a scan or a recurrence.
    pub(super) scan: Option<ScanSpace>,
    /// Of a scatter; equal for scatters of one shape along one axis by one index.
    pub(super) scatter: Option<u32>,
    /// Of a reduction that threads share; equal for reductions of the same axes of the same shape.
    pub(super) space: Option<u32>,
    /// Of a reduction of few elements that are no window, which one thread does unless results along its rows are
    /// stored; as [`NodeFacts::space`].
    pub(super) short: Option<u32>,
}

impl NodeFacts {
    pub(super) fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.size) as u64
    }
}

/// What scans and recurrences go along.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ScanSpace {
    axis: u32,
    reverse: bool,
    /// Whether it is the innermost axis.
    pub(super) is_innermost: bool,
    /// The shape with the axis.
    pub(super) full: u32,
    /// The shape without it, that of what is known in the end.
    pub(super) slice: u32,
}

/// What shared reductions walk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Space {
    /// The shape that is reduced.
    pub(super) full: u32,
    pub(super) full_domain: u32,
    pub(super) full_elements: usize,
    /// The shape with the reduced axes kept, as 1.
    pub(super) kept: u32,
    pub(super) kept_elements: usize,
    /// Elements of a row.
    pub(super) length: usize,
    /// How many times as long as in full lanes an operation takes along a row that is too short for them.
    pub(super) waste: f64,
    /// Whether what is reduced is consecutive.
    pub(super) is_row: bool,
    /// Whether the rows are short enough to be walked more than once.
    pub(super) is_walkable: bool,
    /// Whether the rows fit registers, with what is costly to compute again.
    pub(super) is_kept: bool,
}

/// What fusion works on: what nodes read, their figures, and which reductions threads share.
pub(crate) struct Facts {
    pub(crate) reads: Reads,
    nodes: Vec<NodeFacts>,
    spaces: Vec<Space>,
    pub(super) figures: TargetFigures,
    /// A merge that is not made.
    pub(super) undone: Option<Cut>,
}

impl Facts {
    pub(crate) fn new(graph: &Graph, figures: &TargetFigures, undone: Option<Cut>) -> Facts {
        let reads = Reads::new(graph);
        let mut numbers = Numbers::default();
        let mut facts = Facts {
            reads,
            nodes: Vec::with_capacity(graph.bound()),
            spaces: Vec::new(),
            figures: *figures,
            undone,
        };
        let mut spaces: FxHashMap<(u32, &[usize]), u32> = FxHashMap::default();
        let mut scatters: FxHashMap<(u32, usize, usize, NodeId), u32> = FxHashMap::default();
        for id in graph.nodes() {
            let node = graph.node(id);
            let elements = node.shape.elements();
            let (mut cost, mut fan) = (operation_cost(&node.op), 1.0);
            let (mut space, mut short) = (None, None);
            if let Op::Reduce { op, axes, .. } = &node.op {
                let operand = graph.operands(id)[0];
                fan = facts.nodes[operand.index()].elements as f64 / (elements as f64).max(1.0);
                match op {
                    ReduceOp::SquaredDeviations => cost = 12.0,
                    ReduceOp::SumExp => cost = 22.0,
                    ReduceOp::ArgMax | ReduceOp::ArgMin => cost = 4.0,
                    ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => {}
                }
                let kind = Reduces::of(graph, &facts.reads, id);
                if facts.reads.is_computed(id) && kind != Reduces::Windows {
                    let full = &graph.node(operand).shape;
                    let number = numbers.of(full);
                    let own = Some(*spaces.entry((number, axes)).or_insert_with(|| {
                        let size = narrowest(graph, operand);
                        facts.spaces.push(Space::new(full, axes, size, figures, &mut numbers));
                        facts.spaces.len() as u32 - 1
                    }));
                    match kind {
                        Reduces::Short => short = own,
                        Reduces::Shared | Reduces::Windows => space = own,
                    }
                }
            }
            let along = match &node.op {
                Op::Scan { axis, reverse, .. } => Some((*axis, *reverse, &node.shape)),
                Op::Recurrence { axis, reverse, body, .. } => {
                    let elements = graph.operands(id)[body.carries];
                    Some((*axis, *reverse, &graph.node(elements).shape))
                }
                _ => None,
            };
            let scan = along.map(|(axis, reverse, full)| {
                // In the end, one value is left of a row.
                fan = full.elements() as f64 / (elements as f64).max(1.0);
                let is_innermost = full[axis + 1..].iter().all(|&extent| extent == 1);
                let (full, slice) = (numbers.of(full), numbers.of(&full.without(&[axis])));
                ScanSpace { axis: axis as u32, reverse, is_innermost, full, slice }
            });
            let shape = numbers.of(&node.shape);
            let domain = numbers.of_domain(&node.shape, shape);
            let scatter = match node.op {
                Op::Scatter { axis, extent, .. } => {
                    let (operand, index) = (graph.operands(id)[0], graph.operands(id)[1]);
                    let operand = facts.nodes[operand.index()];
                    fan = operand.elements as f64 / (elements as f64).max(1.0);
                    let number = scatters.len() as u32;
                    Some(*scatters.entry((operand.shape, axis, extent, index)).or_insert(number))
                }
                _ => None,
            };
            let size = node.dtype.size();
            let operands = graph.operands(id);
            let widest =
                operands.iter().map(|&operand| graph.node(operand).dtype.size()).fold(size, usize::max);
            if widest == 8 {
                cost *= figures.wide;
            }
            facts.nodes.push(NodeFacts {
                elements,
                size,
                inner: innermost(&node.shape),
                shape,
                domain,
                cost,
                fan,
                scan,
                scatter,
                space,
                short,
            });
        }
        facts
    }

    pub(super) fn of(&self, id: NodeId) -> &NodeFacts {
        &self.nodes[id.index()]
    }

    /// What a shared reduction walks; `None` for every other node.
    pub(super) fn space(&self, id: NodeId) -> Option<&Space> {
        self.of(id).space.map(|space| self.numbered(space))
    }

    /// Whether one of two nodes may be computed in a slower loop if they share a kernel.
    pub(super) fn changes_loop(&self, producer: NodeId, consumer: NodeId, interleaved: bool) -> bool {
        let (producer, consumer) = (self.of(producer), self.of(consumer));
        let is_slower =
            interleaved || producer.scan.is_some() || consumer.fan > 1.0 || consumer.scan.is_some();
        is_slower && self.figures.loops.iter().any(|&times| times > 1.0)
    }

    /// The space with a number.
    pub(super) fn numbered(&self, space: u32) -> &Space {
        &self.spaces[space as usize]
    }

    /// Whether several threads share the node, a reduction.
    pub(super) fn is_cooperative(&self, id: NodeId) -> bool {
        self.of(id).space.is_some()
    }

    /// Whether node indices are below this.
    pub(super) fn bound(&self) -> usize {
        self.nodes.len()
    }

    /// Every operation as a kernel of its own.
    pub(crate) fn singles(&self, graph: &Graph) -> Vec<Group> {
        let mut analyser = Analyser::new(graph, self);
        let computed = graph.nodes().filter(|&id| self.reads.is_computed(id));
        computed.filter_map(|id| analyser.single(id)).collect()
    }
}

/// Shapes by number, so that comparing them is comparing numbers.
#[derive(Default)]
struct Numbers(FxHashMap<Shape, u32>);

impl Numbers {
    fn of(&mut self, shape: &Shape) -> u32 {
        if let Some(&number) = self.0.get(shape) {
            return number;
        }
        let number = self.0.len() as u32;
        self.0.insert(shape.clone(), number);
        number
    }

    /// That of the shape without dimensions of one element.
    fn of_domain(&mut self, shape: &Shape, own: u32) -> u32 {
        match shape.contains(&1) {
            true => self.of(&shape.iter().copied().filter(|&extent| extent != 1).collect()),
            false => own,
        }
    }
}

impl Space {
    fn new(
        full: &Shape,
        axes: &[usize],
        size: usize,
        figures: &TargetFigures,
        numbers: &mut Numbers,
    ) -> Space {
        let extents = (0..full.rank()).map(|axis| if axes.contains(&axis) { 1 } else { full[axis] });
        let kept: Shape = extents.collect();
        let length = axes.iter().map(|&axis| full[axis]).product::<usize>();
        // What is consecutive: columns share their lines with others, and have no registers to stay in.
        let is_row = axes.last().is_some_and(|&axis| axis + 1 == full.rank());
        let bytes = length.saturating_mul(size);
        let fills = kept.elements() >= figures.processors as usize;
        // Kernels take the first axis as they find it: rows along it have no known length.
        let has_length = !axes.contains(&0) || full[0] == 1;
        let room = figures.kept.max(if has_length { figures.shared } else { 0 });
        let is_kept = is_row && bytes <= room;
        let is_near = is_kept || is_row && fills && bytes <= figures.cache;
        let number = numbers.of(full);
        Space {
            full: number,
            full_domain: numbers.of_domain(full, number),
            length,
            waste: (figures.lanes as f64 / length.max(1) as f64).max(1.0),
            full_elements: full.elements(),
            kept: numbers.of(&kept),
            kept_elements: kept.elements(),
            is_row,
            is_walkable: length <= WALKABLE || is_near,
            is_kept,
        }
    }
}

/// The extent of the innermost dimension of more than one element.
fn innermost(shape: &Shape) -> usize {
    shape.iter().rev().copied().find(|&extent| extent > 1).unwrap_or(1)
}

/// Bytes of an element, or of what it follows from element by element: a row is kept as it takes the least room.
fn narrowest(graph: &Graph, mut id: NodeId) -> usize {
    let mut size = graph.node(id).dtype.size();
    while let Op::Unary(_) | Op::Cast = graph.node(id).op {
        id = graph.operands(id)[0];
        size = size.min(graph.node(id).dtype.size());
    }
    size
}

/// Who does a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduces {
    /// Several threads.
    Shared,
    /// One thread, which has few elements to combine.
    Short,
    /// One thread: its neighbours read the same elements, or some of them.
    Windows,
}

impl Reduces {
    fn of(graph: &Graph, reads: &Reads, id: NodeId) -> Reduces {
        let Op::Reduce { axes, .. } = &graph.node(id).op else { return Reduces::Windows };
        let shape = &graph.node(graph.operands(id)[0]).shape;
        let positions: usize = axes.iter().map(|&axis| shape[axis]).product();
        let is_windowed = || reads.reads(id).iter().any(|read| read.windowed) || through_window(graph, id);
        match positions {
            ..=IN_THREAD_WINDOW if is_windowed() => Reduces::Windows,
            ..=IN_THREAD => Reduces::Short,
            _ => Reduces::Shared,
        }
    }
}

/// Whether the reduction's operand is itself a window view of something.
fn through_window(graph: &Graph, id: NodeId) -> bool {
    let mut at = graph.operands(id)[0];
    loop {
        match &graph.node(at).op {
            Op::View(View::Window { .. }) => return true,
            Op::View(_) => at = graph.operands(at)[0],
            _ => return false,
        }
    }
}
