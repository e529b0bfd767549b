//! A candidate kernel: some computed nodes, checked against what one kernel can do, with its work.

use std::fmt;

use rustc_hash::FxHashMap;

use super::cost::{Work, operation_cost};
use super::reads::Reads;
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use crate::{ReduceOp, Shape};

/// Computed nodes of one kernel; beyond it, compilers slow down and registers run out.
pub(crate) const MAX_NODES: usize = 256;

/// Buffers of one kernel: 4 KiB of kernel parameters, less scalars and extents.
pub(crate) const MAX_BUFFERS: usize = 384;

/// Reductions up to this many positions are loops of one thread.
const IN_THREAD: usize = 8;

/// So are windows up to this many.
const IN_THREAD_WINDOW: usize = 64;

/// Rows up to this long may be walked several times by one kernel: what a walk has read is still in a
/// near cache when the next one wants it.
const WALKABLE: usize = 16_384;

/// Walks of one kernel along its rows.
const MAX_WALKS: u32 = 5;

/// Why two kernels are not one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum WhyNot {
    Off,
    FlowsBack { reduction: &'static str, reduced: Shape, to: Shape },
    FeedsReduction { producer: &'static str, consumer: &'static str },
    DifferentReductions { first: &'static str, second: &'static str },
    DifferentSpaces { first: Shape, second: Shape },
    Recomputation { value: &'static str, times: f64, fused: f64, apart: f64 },
    Unprofitable { fused: f64, apart: f64 },
    Cycle,
    TooLarge { nodes: usize },
    TooManyWalks,
    TooManyBuffers { buffers: usize },
    Schedule(String),
}

/// Seconds as a reader wants them.
fn microseconds(seconds: f64) -> String {
    format!("{:.1} µs", seconds * 1e6)
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::Off => write!(f, "fusion is off"),
            WhyNot::FlowsBack { reduction, reduced, to } => {
                write!(
                    f,
                    "{reduction} {reduced} is needed at every element of {to}: the whole reduction comes first"
                )
            }
            WhyNot::FeedsReduction { producer, consumer } => {
                write!(f, "the reduction {producer} must end before the reduction {consumer} can begin")
            }
            WhyNot::DifferentReductions { first, second } => {
                write!(f, "{first} and {second} reduce different axes")
            }
            WhyNot::DifferentSpaces { first, second } => {
                write!(f, "both are stored, but over different iteration spaces: {first} and {second}")
            }
            WhyNot::Recomputation { value, times, fused, apart } => write!(
                f,
                "{value} would be computed {times:.1} times per element: {} fused, {} apart",
                microseconds(*fused),
                microseconds(*apart)
            ),
            WhyNot::Unprofitable { fused, apart } => {
                write!(f, "nothing gained: {} fused, {} apart", microseconds(*fused), microseconds(*apart))
            }
            WhyNot::Cycle => write!(f, "a kernel between them needs the one and is needed by the other"),
            WhyNot::TooLarge { nodes } => {
                write!(f, "{nodes} operations are more than the {MAX_NODES} of a kernel")
            }
            WhyNot::TooManyWalks => {
                write!(f, "it would walk along its rows more than {MAX_WALKS} times")
            }
            WhyNot::TooManyBuffers { buffers } => {
                write!(f, "{buffers} buffers are more than the {MAX_BUFFERS} of a kernel")
            }
            WhyNot::Schedule(reason) => write!(f, "no schedule: {reason}"),
        }
    }
}

/// A kernel to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Computed nodes, ascending.
    pub(crate) nodes: Vec<NodeId>,
    /// Those of them that are stored, ascending.
    pub(crate) outputs: Vec<NodeId>,
    /// What it reads from memory, in the order of first use.
    pub(crate) reads: Vec<NodeId>,
    /// A reduction that spans the iteration space.
    pub(crate) reduction: Option<NodeId>,
    pub(crate) work: Work,
    /// The largest recomputation: which value, how often per element.
    pub(crate) recomputed: Option<(&'static str, f64)>,
}

/// Whether several threads share the reduction.
pub(crate) fn is_cooperative(graph: &Graph, reads: &Reads, id: NodeId) -> bool {
    let Op::Reduce { axes, .. } = &graph.node(id).op else { return false };
    let shape = &graph.node(graph.operands(id)[0]).shape;
    let positions: usize = axes.iter().map(|&axis| shape[axis]).product();
    let windowed = reads.reads(id).iter().any(|read| read.windowed) || through_window(graph, id);
    !(positions <= IN_THREAD || positions <= IN_THREAD_WINDOW && windowed)
}

/// Whether the reduction's operand is itself a window view of something.
fn through_window(graph: &Graph, id: NodeId) -> bool {
    use crate::graph::op::View;
    let mut at = graph.operands(id)[0];
    loop {
        match &graph.node(at).op {
            Op::View(View::Window { .. }) => return true,
            Op::View(_) => at = graph.operands(at)[0],
            _ => return false,
        }
    }
}

/// Where each node's reads are among a group's nodes; `None` for what comes from memory.
struct Links {
    starts: Vec<usize>,
    places: Vec<Option<usize>>,
}

impl Links {
    fn new(reads: &Reads, nodes: &[NodeId]) -> Links {
        let mut links = Links { starts: Vec::with_capacity(nodes.len() + 1), places: Vec::new() };
        for (number, &id) in nodes.iter().enumerate() {
            links.starts.push(links.places.len());
            let place = |read: &super::reads::Read| nodes[..number].binary_search(&read.node).ok();
            links.places.extend(reads.reads(id).iter().map(place));
        }
        links.starts.push(links.places.len());
        links
    }

    /// In the order of the node's reads.
    fn of(&self, number: usize) -> &[Option<usize>] {
        &self.places[self.starts[number]..self.starts[number + 1]]
    }
}

impl Group {
    /// Checks that one kernel can compute `nodes` and store `outputs`, and adds up its work.
    pub(crate) fn analyse(
        graph: &Graph,
        reads: &Reads,
        cooperative: &[bool],
        mut nodes: Vec<NodeId>,
        mut outputs: Vec<NodeId>,
    ) -> Result<Group, WhyNot> {
        nodes.sort_unstable();
        nodes.dedup();
        outputs.sort_unstable();
        outputs.dedup();
        if nodes.len() > MAX_NODES {
            return Err(WhyNot::TooLarge { nodes: nodes.len() });
        }
        let links = Links::new(reads, &nodes);
        let reduction = check_reductions(graph, cooperative, &nodes, &links)?;
        check_space(graph, &outputs, reduction)?;
        let mut group = Group { nodes, outputs, reduction, ..Group::default() };
        group.count(graph, reads, cooperative, &links)?;
        let buffers = group.reads.len() + group.outputs.len();
        match buffers > MAX_BUFFERS {
            true => Err(WhyNot::TooManyBuffers { buffers }),
            false => Ok(group),
        }
    }

    /// How often each node is evaluated, and what follows: operations and bytes.
    fn count(
        &mut self,
        graph: &Graph,
        reads: &Reads,
        cooperative: &[bool],
        links: &Links,
    ) -> Result<(), WhyNot> {
        // Readers at the same index share an evaluation; others add up.
        let mut aligned = vec![0.0f64; self.nodes.len()];
        let mut scattered = vec![0.0; self.nodes.len()];
        for &output in &self.outputs {
            if let Ok(at) = self.nodes.binary_search(&output) {
                aligned[at] = graph.node(output).shape.elements() as f64;
            }
        }
        let mut external: Vec<NodeId> = Vec::new();
        let walks = self.walks(graph, cooperative, links)?;
        let once_a_row = self.once_a_row(graph, cooperative, links);
        let mut demands: FxHashMap<NodeId, f64> = FxHashMap::default();
        for (number, &id) in self.nodes.iter().enumerate().rev() {
            let node = graph.node(id);
            let elements = node.shape.elements() as f64;
            let evaluations = aligned[number] + scattered[number];
            let mut times = if elements > 0.0 { evaluations / elements } else { 1.0 };
            if cooperative[id.index()] && times > 1.001 {
                if !is_walkable(graph, id) {
                    let first = self.outputs.first().map(|&output| graph.node(output).shape.clone());
                    let (reduced, to) = (node.shape.clone(), first.unwrap_or_default());
                    return Err(WhyNot::FlowsBack { reduction: node.origin, reduced, to });
                }
                times = 1.0;
            }
            if once_a_row[number] {
                // Once a row, however often the row's elements use it: kernels hoist what does not vary.
                times = times.min(1.0);
            }
            let repeated = times * f64::from(walks[number]);
            let evaluations = elements * repeated;
            let fan = match &node.op {
                Op::Reduce { .. } => {
                    graph.node(graph.operands(id)[0]).shape.elements() as f64 / elements.max(1.0)
                }
                _ => 1.0,
            };
            let cost = match &node.op {
                Op::Reduce { op: ReduceOp::SquaredDeviations, .. } => 12.0,
                op => operation_cost(op),
            };
            self.work.operations += evaluations * fan * cost;
            if repeated > 1.001 && cost > 0.0 && self.recomputed.is_none_or(|(_, most)| repeated > most) {
                self.recomputed = Some((node.origin, repeated));
            }
            for (read, &at) in reads.reads(id).iter().zip(links.of(number)) {
                let demand = read.elements as f64 * times;
                match at {
                    Some(at) if read.aligned => aligned[at] = aligned[at].max(demand),
                    Some(at) => scattered[at] += demand,
                    None => {
                        external.push(read.node);
                        *demands.entry(read.node).or_default() += demand;
                    }
                }
            }
        }
        external.reverse();
        external.retain(|&read| {
            let Some(demand) = demands.remove(&read) else { return false };
            let node = graph.node(read);
            let demand = demand.min(node.shape.elements() as f64);
            self.work.bytes_read += demand as u64 * node.dtype.size() as u64;
            true
        });
        for &output in &self.outputs {
            let node = graph.node(output);
            self.work.bytes_written += (node.shape.elements() * node.dtype.size()) as u64;
        }
        self.reads = external;
        Ok(())
    }

    /// In how many walks along the rows each node is computed: what varies along a row is computed anew
    /// in each walk that leads to a reduction or a result that needs it.
    fn walks(&self, graph: &Graph, cooperative: &[bool], links: &Links) -> Result<Vec<u32>, WhyNot> {
        let mut count = vec![1; self.nodes.len()];
        let Some(reduction) = self.reduction else { return Ok(count) };
        let full = space(graph, reduction).0.elements();
        // How many walks must have ended before a node can be computed.
        let mut stage = vec![0u32; self.nodes.len()];
        for number in 0..self.nodes.len() {
            for &at in links.of(number).iter().flatten() {
                let ended = stage[at] + u32::from(cooperative[self.nodes[at].index()]);
                stage[number] = stage[number].max(ended);
            }
            if stage[number] >= MAX_WALKS {
                return Err(WhyNot::TooManyWalks);
            }
        }
        // In which walks, as bits.
        let mut needed = vec![0u32; self.nodes.len()];
        for (number, &id) in self.nodes.iter().enumerate().rev() {
            let varies = graph.node(id).shape.elements() == full && !cooperative[id.index()];
            if varies && self.outputs.binary_search(&id).is_ok() {
                needed[number] |= 1 << stage[number];
            }
            let wanted = if cooperative[id.index()] { 1 << stage[number] } else { needed[number] };
            if varies {
                count[number] = wanted.count_ones().max(1);
            }
            for &at in links.of(number).iter().flatten() {
                needed[at] |= wanted;
            }
        }
        Ok(count)
    }

    /// What has one value a row of the reduction, not one a column, even where there are as many: results of
    /// reductions, what follows from them, and what has the shape of a result with its axes kept.
    fn once_a_row(&self, graph: &Graph, cooperative: &[bool], links: &Links) -> Vec<bool> {
        let mut found = vec![false; self.nodes.len()];
        let Some(reduction) = self.reduction else { return found };
        let (full, axes) = space(graph, reduction);
        let kept: Shape =
            (0..full.rank()).map(|axis| if axes.contains(&axis) { 1 } else { full[axis] }).collect();
        for (number, &id) in self.nodes.iter().enumerate() {
            let shape = &graph.node(id).shape;
            let follows = || links.of(number).iter().flatten().any(|&at| found[at]);
            found[number] = shape.elements() == kept.elements()
                && (cooperative[id.index()] || *shape == kept || follows());
        }
        found
    }
}

/// All reductions that threads share walk the same rows, and none waits for another.
fn check_reductions(
    graph: &Graph,
    cooperative: &[bool],
    nodes: &[NodeId],
    links: &Links,
) -> Result<Option<NodeId>, WhyNot> {
    if !nodes.iter().any(|id| cooperative[id.index()]) {
        return Ok(None);
    }
    let mut first: Option<NodeId> = None;
    // Which shared reduction each node depends on.
    let mut after: Vec<Option<NodeId>> = vec![None; nodes.len()];
    for (number, &id) in nodes.iter().enumerate() {
        let waits_for = links
            .of(number)
            .iter()
            .flatten()
            .find_map(|&at| if cooperative[nodes[at].index()] { Some(nodes[at]) } else { after[at] });
        after[number] = waits_for;
        if !cooperative[id.index()] {
            continue;
        }
        let (own, own_node) = (space(graph, id), graph.node(id));
        if let Some(reduction) =
            waits_for.filter(|&other| !is_walkable(graph, other) || space(graph, other) != own)
        {
            let producer = graph.node(reduction).origin;
            return Err(WhyNot::FeedsReduction { producer, consumer: own_node.origin });
        }
        match first {
            Some(other) if space(graph, other) != own => {
                let first = graph.node(other).origin;
                return Err(WhyNot::DifferentReductions { first, second: own_node.origin });
            }
            Some(_) => {}
            None => first = Some(id),
        }
    }
    if let Some(reduction) = first {
        // What follows a reduction is either one value a row or, if the row can be walked again, of
        // the row's own shape.
        let results = graph.node(reduction).shape.elements();
        let (full, _) = space(graph, reduction);
        let walkable = is_walkable(graph, reduction);
        for (&id, waits_for) in nodes.iter().zip(&after) {
            let &Some(waits_for) = waits_for else { continue };
            let shape = &graph.node(id).shape;
            let fits = shape.elements() == results
                || walkable && (cooperative[id.index()] || shape.elements() == full.elements());
            if !fits {
                let node = graph.node(waits_for);
                return Err(WhyNot::FlowsBack {
                    reduction: node.origin,
                    reduced: node.shape.clone(),
                    to: shape.clone(),
                });
            }
        }
    }
    Ok(first)
}

/// Whether the reduction's rows are short enough to be walked more than once.
pub(super) fn is_walkable(graph: &Graph, id: NodeId) -> bool {
    let (shape, axes) = space(graph, id);
    axes.iter().map(|&axis| shape[axis]).product::<usize>() <= WALKABLE
}

/// The shape that a reduction walks and the axes it combines.
pub(super) fn space(graph: &Graph, id: NodeId) -> (&Shape, &[usize]) {
    let shape = &graph.node(graph.operands(id)[0]).shape;
    match &graph.node(id).op {
        Op::Reduce { axes, .. } => (shape, axes),
        _ => (shape, &[]),
    }
}

/// All outputs have a place in one iteration space.
fn check_space(graph: &Graph, outputs: &[NodeId], reduction: Option<NodeId>) -> Result<(), WhyNot> {
    let shape = |id: NodeId| &graph.node(id).shape;
    let Some((&first, others)) = outputs.split_first() else { return Ok(()) };
    for &output in outputs {
        let fits = match reduction {
            None => shape(output) == shape(first),
            Some(reduction) => {
                let full = shape(graph.operands(reduction)[0]);
                shape(output).elements() == shape(reduction).elements() || shape(output) == full
            }
        };
        if !fits {
            let other = others.last().copied().filter(|_| output == first).unwrap_or(first);
            let first = reduction.map_or(shape(other), |reduction| shape(reduction)).clone();
            return Err(WhyNot::DifferentSpaces { first, second: shape(output).clone() });
        }
    }
    Ok(())
}
