//! What fusion asks of each node again and again, worked out once a graph.

use lazuli_codegen::index::{AxisId, AxisRanges, IndexExpr};
use lazuli_codegen::schedule::{is_in_registers, share};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::contracted::{Combined, Contracted};
use super::cost::{TargetFigures, operation_cost};
use super::cut::Cut;
use super::domain::{Lines, Rows};
use super::reads::{Divided, Reads, is_join};
use super::repeats::Repeats;
use crate::graph::domain::{Domain, Roles, roles};
use crate::graph::maps::{self, Indices};
use crate::graph::op::{Op, StepResult, View};
use crate::graph::{Graph, NodeId};
use crate::{BinaryOp, ReduceOp, Shape};

/// Innermost dimensions of so few elements have no loop of their own.
const FEW: usize = 8;

/// Windows of so many elements and more are made of shorter ones.
const SHORTEST_SLIDING: f64 = 8.0;

/// What a doubling of windows costs beside combining an element, which needs no memory between.
const DOUBLING: f64 = 4.0;

/// The figures of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeFacts {
    pub(super) elements: usize,
    /// Of one element.
    pub(super) size: usize,
    /// The elements of the innermost loop.
    pub(super) inner: usize,
    /// Equal for shapes that differ in dimensions of one element alone: the same elements at the same places.
    domain: u32,
    /// Simple operations for each element that is computed or, in a reduction, combined.
    pub(super) cost: f64,
    /// Elements that a reduction combines into one; otherwise 1.
    pub(super) fan: f64,
    /// How often an element that is read is used: of the factors of a contraction, whose tiles are near; otherwise 1.
    pub(super) reuse: f64,
    /// Of a scan or a recurrence.
    pub(super) scan: Option<Lines>,
    /// Whether a core scans such rows within registers, of what is innermost.
    pub(super) is_in_registers: bool,
    /// Of a scatter; equal for scatters of one shape along one axis by one index.
    pub(super) scatter: Option<u32>,
    /// Of a reduction: equal for the same rows.
    pub(super) rows: Option<u32>,
    pub(super) by: By,
    /// Of a reduction over windows that slide by an element: how many of its combinations are made, since long windows are made of
    /// shorter ones and those of several axes of lines, and how many of its reads, since neighbours share them.
    pub(super) slides: Option<(f64, f64)>,
    /// Whether it is the sum of a product whose factors are packed, or brought in by tiles.
    pub(super) is_packed: bool,
    /// Whether those are combined in another way than by sums of products.
    pub(super) is_lifted: bool,
    /// Whether it is the product of one row with lines of terms: rows that a core reduces, in lanes along them.
    pub(super) is_along_terms: bool,
    /// Whether it is a reduction of a few elements, which neighbouring results read far apart.
    pub(super) is_across: bool,
    /// Whether it is what a recurrence has come to in the end.
    pub(super) is_end: bool,
    /// How many times as long a kernel takes that goes along its lines, as these are too few: of a recurrence.
    pub(super) idle: f64,
    /// How many parts are joined to it, or to what it is computed from and is not stored anyway.
    pub(super) parts: u32,
    /// Whether it is a sort of one row.
    pub(super) is_one_row: bool,
}

/// So many parts of a join may be compared at a position that is computed, which of them it is in is not known before.
pub(super) const MOST_PARTS: u32 = 4;

/// Updates of one tensor (a part is replaced by what is computed from the tensor as the update before left it) in one kernel,
/// at most: each of its positions computes all of them.
pub(super) const MOST_UPDATES: u32 = 3;

/// Positions next to another part at which windows may have elements of both.
const BETWEEN: usize = 8;

/// The share of a join's elements that are not of its largest part, but near it.
pub(super) fn beside_largest(graph: &Graph, join: NodeId) -> f64 {
    let whole = &graph.node(join).shape;
    let shape = |id: NodeId| match graph.node(id).op {
        Op::View(View::Pad { .. }) => Some(&graph.node(graph.operands(id)[0]).shape),
        _ => None,
    };
    let parts: SmallVec<[&Shape; 2]> = graph.operands(join)[1..].iter().filter_map(|&id| shape(id)).collect();
    let largest = (0..parts.len()).max_by_key(|&number| parts[number].elements());
    let share = |part: &Shape| {
        let joined = (0..whole.rank()).find(|&axis| part[axis] < whole[axis]);
        joined.map_or(0.0, |axis| part[axis].min(BETWEEN) as f64 / whole[axis] as f64)
    };
    (0..parts.len()).filter(|&number| Some(number) != largest).map(|number| share(parts[number])).sum()
}

/// Who does a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// Several threads.
    Threads,
    /// One thread, unless results along its rows are stored: it has few elements to combine, or they are a window.
    Thread,
    /// As `Thread` where one of these nodes, as a range of [`Facts::windows`], is in its kernel, which reads windows; else
    /// as `Threads`.
    ThreadIfWindows(u32, u32),
}

impl NodeFacts {
    pub(super) fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.size) as u64
    }

    /// The rows of a reduction that threads share, if nothing else is in its kernel.
    pub(super) fn shared_rows(&self) -> Option<u32> {
        self.rows.filter(|_| self.by != By::Thread)
    }

    /// The rows of a reduction that one thread may do, as long as no results along them are stored.
    pub(super) fn few_rows(&self) -> Option<u32> {
        self.rows.filter(|_| self.by != By::Threads)
    }
}

/// What fusion works on: what nodes read, their figures, and who does which reductions.
pub(crate) struct Facts {
    pub(crate) reads: Reads,
    nodes: Vec<NodeFacts>,
    rows: Vec<Rows>,
    domains: Vec<Domain>,
    /// Nodes that read windows for a reduction.
    windows: Vec<NodeId>,
    pub(super) figures: TargetFigures,
    pub(super) repeats: Repeats,
    /// A merge that is not made.
    pub(super) undone: Option<Cut>,
}

/// What is the same of several nodes, by number.
#[derive(Default)]
struct Numbers {
    rows: FxHashMap<Roles, u32>,
    domains: FxHashMap<Domain, u32>,
    shapes: FxHashMap<Shape, u32>,
    scatters: FxHashMap<(u32, usize, usize, NodeId), u32>,
}

impl Facts {
    pub(crate) fn new(graph: &Graph, figures: &TargetFigures, undone: Option<Cut>) -> Facts {
        let reads = Reads::new(graph, figures.divided > 0.0);
        let mut facts = Facts {
            repeats: Repeats::of(graph, &reads),
            reads,
            nodes: Vec::with_capacity(graph.bound()),
            rows: Vec::new(),
            domains: Vec::new(),
            windows: Vec::new(),
            figures: *figures,
            undone,
        };
        let mut numbers = Numbers::default();
        for id in graph.nodes() {
            let node = facts.node(graph, id, &mut numbers);
            facts.nodes.push(node);
        }
        facts
    }

    fn node(&mut self, graph: &Graph, id: NodeId, numbers: &mut Numbers) -> NodeFacts {
        let node = graph.node(id);
        let operands = graph.operands(id);
        let elements = node.shape.elements();
        let mut facts = NodeFacts {
            elements,
            size: node.dtype.size(),
            inner: innermost(&node.shape),
            domain: self.domain(&node.shape, numbers),
            cost: operation_cost(&node.op),
            fan: 1.0,
            reuse: 1.0,
            scan: None,
            is_in_registers: false,
            scatter: None,
            rows: None,
            by: By::Thread,
            slides: None,
            is_packed: false,
            is_lifted: false,
            is_along_terms: false,
            is_across: false,
            is_end: matches!(node.op, Op::Recurrence { result: StepResult::Last(_), .. }),
            idle: 1.0,
            parts: match &node.op {
                _ if self.reads.is_output(id) => 1,
                Op::Reduce { .. } | Op::Gather { .. } | Op::Scatter { .. } | Op::Sort { .. } => 1,
                _ if is_join(graph, id) => {
                    operands[1..].iter().fold(0, |sum: u32, &part| sum.saturating_add(self.of(part).parts))
                }
                _ => operands.iter().map(|&operand| self.of(operand).parts).max().unwrap_or(1),
            },
            is_one_row: false,
        };
        self.of_hero(graph, id, numbers, &mut facts);
        let sizes = operands.iter().map(|&operand| graph.node(operand).dtype.size());
        if sizes.fold(facts.size, usize::max) == 8 && !is_of_positions(graph, id) {
            facts.cost *= self.figures.wide;
        }
        if matches!(node.op, Op::Gather { .. }) && self.reads.is_far(id) {
            facts.cost += far_read(graph, id, &self.figures);
        }
        facts
    }

    /// What an operation that can be a hero adds.
    fn of_hero(&mut self, graph: &Graph, id: NodeId, numbers: &mut Numbers, facts: &mut NodeFacts) {
        let (node, operands) = (graph.node(id), graph.operands(id));
        let elements = facts.elements;
        let fan = |all: usize| all as f64 / (elements as f64).max(1.0);
        match &node.op {
            Op::Reduce { op, axes } => {
                facts.fan = fan(self.of(operands[0]).elements);
                facts.cost = op.cost();
                if self.reads.is_computed(id) {
                    let factors;
                    (facts.by, factors) = self.by(graph, id, *op, axes);
                    facts.is_packed = factors.is_some();
                    facts.is_lifted = factors.as_ref().is_some_and(|of| of.combined == Combined::Lifted);
                    if self.of(operands[0]).reuse > 1.0 && !facts.is_lifted {
                        facts.cost *= self.figures.product;
                    }
                    facts.is_along_terms = self.figures.packs
                        && !facts.is_lifted
                        && factors.is_some_and(|of| of.is_row())
                        && reads_across(graph, &self.reads, id, axes);
                    facts.rows = Some(self.rows_of(graph, operands[0], axes, numbers));
                    facts.is_across = self.figures.packs
                        && facts.by == By::Thread
                        && reads_across(graph, &self.reads, id, axes);
                    if self.figures.doubles && facts.by != By::Threads {
                        facts.slides = self.slides(graph, id, operands[0], axes);
                    }
                }
            }
            Op::Scan { op, axis, reverse, .. } => {
                facts.scan = Some(Lines::new(&node.shape, *axis, *reverse));
                facts.is_in_registers = is_in_registers(*op, node.dtype, node.shape[*axis] as u64);
            }
            Op::Recurrence { axis, reverse, body, .. } => {
                let full = &graph.node(operands[body.carries]).shape;
                let lines = Lines::new(full, *axis, *reverse);
                facts.idle = (self.figures.busy / lines.ends().max(1) as f64).max(1.0);
                facts.scan = Some(lines);
                // In the end, one value is left of a row.
                facts.fan = fan(full.elements());
            }
            Op::Scatter { axis, extent, .. } => {
                let full = self.of(operands[0]);
                facts.fan = fan(full.elements);
                let number = numbers.scatters.len() as u32;
                let key = (full.domain, *axis, *extent, operands[1]);
                facts.scatter = Some(*numbers.scatters.entry(key).or_insert(number));
            }
            Op::Sort { axis, extent, descending, .. } => {
                let full = self.of(operands[0]);
                facts.fan = fan(full.elements);
                facts.is_one_row = full.elements == graph.node(operands[0]).shape[*axis];
                let number = numbers.scatters.len() as u32;
                // Both results of one sort, whose order is told by the sign.
                let axis = if *descending { !*axis } else { *axis };
                let key = (full.domain, axis, *extent, operands[0]);
                facts.scatter = Some(*numbers.scatters.entry(key).or_insert(number));
            }
            _ => {}
        }
    }

    /// The product of what broadcasts that the sum is of: it has more elements than either of its factors, and nobody else
    /// wants them. Stored, it would be the largest value by far, so that it counts as no value of its own.
    pub(crate) fn contracted(&self, graph: &Graph, sum: NodeId) -> Option<NodeId> {
        let Op::Reduce { op: ReduceOp::Sum, .. } = graph.node(sum).op else { return None };
        let product = graph.operands(sum)[0];
        let is_contraction = matches!(graph.node(product).op, Op::Binary(BinaryOp::Mul))
            && self.reads.users(product) == [sum]
            && !self.reads.is_output(product)
            && graph.operands(product).iter().all(|&id| distinct(graph, id) < self.of(product).elements);
        is_contraction.then_some(product)
    }

    fn domain(&mut self, shape: &Shape, numbers: &mut Numbers) -> u32 {
        if let Some(&number) = numbers.shapes.get(shape) {
            return number;
        }
        let domain = Domain::new(shape);
        let number = *numbers.domains.entry(domain.clone()).or_insert(self.domains.len() as u32);
        if number as usize == self.domains.len() {
            self.domains.push(domain);
        }
        numbers.shapes.insert(shape.clone(), number);
        number
    }

    fn rows_of(&mut self, graph: &Graph, operand: NodeId, axes: &[usize], numbers: &mut Numbers) -> u32 {
        let full = &graph.node(operand).shape;
        let roles = roles(full, axes);
        if let Some(&number) = numbers.rows.get(&roles) {
            return number;
        }
        // Kernels take the first axis as they find it: rows along it have no known length.
        let has_length = !axes.contains(&0) || full[0] == 1;
        let size = narrowest(graph, operand);
        let domain = self.of(operand).domain;
        self.rows.push(Rows::new(&roles, domain, size, has_length, &self.figures, &self.reads.maps));
        let number = self.rows.len() as u32 - 1;
        numbers.rows.insert(roles, number);
        number
    }

    /// Who does a reduction, and what contraction of packed factors it is, if it is one.
    fn by(&mut self, graph: &Graph, id: NodeId, op: ReduceOp, axes: &[usize]) -> (By, Option<Contracted>) {
        let operand = graph.operands(id)[0];
        let shape = &graph.node(operand).shape;
        let positions: u64 = axes.iter().map(|&axis| shape[axis] as u64).product();
        if share::is_in_thread(positions, || false) {
            return (By::Thread, None);
        }
        let in_lanes = self.figures.packs && !op.is_position() && is_in_lanes(graph, &self.reads, id, axes);
        let reads_windows = || {
            let mut found = Vec::new();
            read_windows(graph, &self.reads, id, axes, &mut found);
            !found.is_empty() && !in_lanes
        };
        let contraction = Contracted::of(graph, operand, op, axes);
        if let Some(of) = contraction.filter(|of| of.pays(&self.figures, reads_windows)) {
            let by = match of.combined {
                Combined::Products => self.figures.product,
                Combined::Lifted => self.figures.lifted,
            };
            for node in &of.nodes {
                let node = &mut self.nodes[node.index()];
                node.cost *= by;
                node.reuse = self.figures.reuse;
            }
            return (By::Threads, Some(of));
        }
        // Kernels take the first axis as they find it: whatever its length, one text does.
        let is_outermost = axes.contains(&0) && shape[0] > 1;
        if in_lanes && !is_outermost {
            return (By::Thread, None);
        }
        if is_outermost || !share::may_be_window(positions) {
            return (By::Threads, None);
        }
        let first = self.windows.len() as u32;
        read_windows(graph, &self.reads, id, axes, &mut self.windows);
        let by = match &self.windows[first as usize..] {
            [] => By::Threads,
            windows if windows.contains(&id) => By::Thread,
            _ => By::ThreadIfWindows(first, self.windows.len() as u32),
        };
        (by, None)
    }

    fn slides(&self, graph: &Graph, id: NodeId, operand: NodeId, axes: &[usize]) -> Option<(f64, f64)> {
        let extent = |&axis: &usize| graph.node(operand).shape[axis] as f64;
        let (length, elements) = (axes.last().map(extent)?, axes.iter().map(extent).product::<f64>());
        let read = self.reads.reads(id).iter().max_by_key(|read| read.elements)?;
        let shared = read.elements as f64 / (self.of(read.node).elements as f64).max(1.0);
        let (combined, most_shared) = match () {
            () if length >= SHORTEST_SLIDING => (DOUBLING * length.log2() / length, length),
            // Along the other axes once for all windows, then along this one.
            () if elements > length => ((elements / length + length) / elements, elements),
            () => return None,
        };
        (shared >= 0.5 * most_shared).then(|| (combined.min(1.0), 1.0 / length))
    }

    /// Nodes that read windows for a reduction with [`By::ThreadIfWindows`].
    pub(super) fn windows(&self, from: u32, to: u32) -> &[NodeId] {
        &self.windows[from as usize..to as usize]
    }

    /// Whether both have the same elements at the same places.
    pub(super) fn is_same_domain(&self, a: NodeId, b: NodeId) -> bool {
        self.of(a).domain == self.of(b).domain
    }

    /// Whether one kernel can go over the elements of both.
    pub(super) fn fits(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.of(a).domain, self.of(b).domain);
        a == b || self.domains[a as usize].fits(&self.domains[b as usize])
    }

    /// Whether one kernel can go over a node's elements as over all elements of some rows.
    pub(super) fn fits_rows(&self, id: NodeId, rows: &Rows) -> bool {
        let (own, rows) = (self.of(id).domain, rows.domain);
        own == rows || self.domains[own as usize].fits(&self.domains[rows as usize])
    }

    pub(super) fn of(&self, id: NodeId) -> &NodeFacts {
        &self.nodes[id.index()]
    }

    /// Whether one of two nodes may be computed in a slower loop if they share a kernel.
    pub(super) fn changes_loop(&self, producer: NodeId, consumer: NodeId, interleaved: bool) -> bool {
        let is_turned = self.reads.divided(producer).is_some_and(Divided::is_turned);
        let (producer, consumer) = (self.of(producer), self.of(consumer));
        let is_slower = interleaved
            || is_turned
            || producer.scan.is_some()
            || consumer.fan > 1.0
            || consumer.scan.is_some()
            || producer.fan > 1.0 && producer.by != By::Threads;
        producer.idle.max(consumer.idle) > 1.0
            || is_slower && self.figures.loops.iter().flatten().any(|&times| times > 1.0)
    }

    /// The rows with a number.
    pub(super) fn rows(&self, number: u32) -> &Rows {
        &self.rows[number as usize]
    }

    /// Whether node indices are below this.
    pub(super) fn bound(&self) -> usize {
        self.nodes.len()
    }
}

/// Bytes of a table that stays in the nearest cache, and the share of a far read that reading one of its elements takes.
const NEAR_TABLE: usize = 16 << 10;
const OF_NEAR_TABLE: f64 = 0.25;

/// Operations that reading an element of what a gather picks from is worth.
pub(crate) fn far_read(graph: &Graph, gather: NodeId, figures: &TargetFigures) -> f64 {
    let table = graph.node(graph.operands(gather)[0]);
    let is_near = table.shape.elements().saturating_mul(table.dtype.size()) <= NEAR_TABLE;
    figures.far_read * if is_near { OF_NEAR_TABLE } else { 1.0 }
}

/// How many elements of a tensor are read through views, at most: a factor may be a part of a large one.
fn distinct(graph: &Graph, mut id: NodeId) -> usize {
    let mut least = graph.node(id).shape.elements();
    while matches!(graph.node(id).op, Op::View(_)) {
        id = graph.operands(id)[0];
        least = least.min(graph.node(id).shape.elements());
    }
    least
}

/// Whether positions are compared or converted, for which lanes of 32 bits do.
fn is_of_positions(graph: &Graph, id: NodeId) -> bool {
    let is_position = |&operand: &NodeId| {
        let mut operand = operand;
        while let Op::View(_) = graph.node(operand).op {
            operand = graph.operands(operand)[0];
        }
        matches!(graph.node(operand).op, Op::Iota)
    };
    let node = graph.node(id);
    let does = match &node.op {
        Op::Binary(op) => op.is_comparison(),
        Op::Cast => node.dtype.size() < 8,
        _ => false,
    };
    does && graph.operands(id).iter().any(is_position)
}

/// The elements of the innermost dimension, and of those before it as long as they are few.
fn innermost(shape: &Shape) -> usize {
    let mut elements = 1;
    for &extent in shape.iter().rev() {
        elements *= extent;
        if elements > FEW {
            break;
        }
    }
    elements
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

/// Finds the nodes that read windows for a reduction: itself, or what it follows from element by element.
fn read_windows(graph: &Graph, reads: &Reads, id: NodeId, axes: &[usize], found: &mut Vec<NodeId>) {
    let shape = &graph.node(graph.operands(id)[0]).shape;
    let axis = |axis: usize| AxisId(axis as u32);
    let reduced = || axes.iter().map(|&reduced| (axis(reduced), shape[reduced] as u64));
    let map: SmallVec<[AxisId; 6]> =
        (0..shape.rank()).filter(|other| !axes.contains(other)).map(axis).collect();
    each_read(graph, reads, id, |[reader, _], position| {
        let is_window = share::is_window(position, reduced(), &map);
        if is_window {
            found.push(reader);
        }
        is_window
    });
}

/// Whether a core has windows in its lanes that a reduction goes over, or what it follows from element by element reads, and nothing
/// that lies across them.
fn is_in_lanes(graph: &Graph, reads: &Reads, id: NodeId, axes: &[usize]) -> bool {
    let shape = &graph.node(graph.operands(id)[0]).shape;
    let inner = (0..shape.rank()).rfind(|axis| shape[*axis] != 1 && !axes.contains(axis));
    let Some(inner) = inner.filter(|&inner| shape[inner] as u64 >= share::SHORTEST_COLUMNS) else {
        return false;
    };
    let reduced = || axes.iter().map(|&axis| (AxisId(axis as u32), shape[axis] as u64));
    let inner = AxisId(inner as u32);
    let (mut found, mut is_across) = (false, false);
    each_read(graph, reads, id, |[_, of], position| {
        // What lies between is computed where it is combined.
        if !matches!(graph.node(of).op, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast) {
            found |= share::is_window_in_lanes(position, reduced(), inner);
            is_across |= lies_across(position, inner);
        }
        false
    });
    found && !is_across
}

/// Whether what neighbouring results read there is so far apart that lanes read it one by one.
fn lies_across(position: &IndexExpr, inner: AxisId) -> bool {
    position.coefficient(inner).is_none_or(|step| step.unsigned_abs() > share::NEAR)
}

/// Whether what a reduction reads for neighbouring results lies so far apart that lanes read it one by one.
fn reads_across(graph: &Graph, reads: &Reads, id: NodeId, axes: &[usize]) -> bool {
    let shape = &graph.node(graph.operands(id)[0]).shape;
    let inner = (0..shape.rank()).rfind(|axis| shape[*axis] != 1 && !axes.contains(axis));
    let Some(inner) = inner.map(|inner| AxisId(inner as u32)) else { return false };
    let mut found = false;
    each_read(graph, reads, id, |_, position| {
        found |= lies_across(position, inner);
        found
    });
    found
}

/// Goes through what a reduction reads, and what follows from it element by element: who reads what, and at which position of
/// the whole. What answers with true is not looked into.
fn each_read(
    graph: &Graph,
    reads: &Reads,
    id: NodeId,
    mut found: impl FnMut([NodeId; 2], &IndexExpr) -> bool,
) {
    let operand = graph.operands(id)[0];
    let shape = &graph.node(operand).shape;
    let mut ranges = AxisRanges::new();
    shape.iter().enumerate().for_each(|(axis, &extent)| ranges.set(AxisId(axis as u32), extent as u64));
    let own: Indices = (0..shape.rank()).map(|n| IndexExpr::axis(AxisId(n as u32))).collect();
    let mut pending: Vec<(NodeId, NodeId, Indices)> = vec![(id, operand, own)];
    let mut steps = 0;
    while let Some((reader, at, indices)) = pending.pop().filter(|_| steps < MOST_STEPS) {
        steps += 1;
        let node = graph.node(at);
        let operands = graph.operands(at);
        let is_computed = reads.is_computed(at);
        if is_computed || matches!(node.op, Op::Input(_)) {
            let position = maps::flatten(&indices, &node.shape).simplify(&ranges);
            if found([reader, at], &position) {
                continue;
            }
        }
        match &node.op {
            Op::View(view) if !is_computed => {
                let shapes = (&node.shape, &graph.node(operands[0]).shape);
                let indices = maps::through(view, shapes, &indices, &maps::starts(view), &ranges);
                pending.push((reader, operands[0], indices));
            }
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => {
                pending.extend(operands.iter().map(|&operand| (at, operand, indices.clone())));
            }
            _ => {}
        }
    }
}

/// Steps of the search: what has not been found then is taken for none.
const MOST_STEPS: usize = 256;
