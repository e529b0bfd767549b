//! Whether one kernel can compute some nodes, and its work. Fusion asks this of every merge that it considers, so
//! nothing is allocated for an answer.

mod scatter;
use lazuli_codegen::cost::WORTH_KEEPING;

use super::cost::{LOOPS, Loop, Work};
use super::facts::{Facts, NodeFacts, Space};
use super::group::{Group, MAX_BUFFERS, MAX_NODES, MAX_WALKS, Recomputed, WhyNot};
use crate::graph::{Graph, NodeId};

/// The place of what is not among the nodes: it comes from memory.
const OUTSIDE: u32 = u32::MAX;

/// Simple operations that reading an element is worth, which another kernel has stored instead of computing it here.
const READ: f64 = 1.0;

/// The demand for what is not read from memory.
const UNREAD: f64 = -1.0;

/// What [`Group`] says besides nodes and buffers.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Analysis {
    pub(super) reduction: Option<NodeId>,
    pub(super) scan: Option<NodeId>,
    pub(super) work: Work,
    pub(super) recomputed: Option<Recomputed>,
}

/// How a node follows from a scan.
#[derive(Clone, Copy, PartialEq, Debug)]
enum AfterScan {
    Independent,
    /// At each position of the axis: a scan, or what is computed from one; so many scans follow from each other.
    Running(u32),
    /// When the end is reached.
    Ended,
}

/// What is known of a node at its place among the nodes.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Its reads that are among the nodes, as a range of the links.
    links: (u32, u32),
    /// The place of a shared reduction that it depends on.
    after: u32,
    /// How many walks must have ended before it can be computed.
    stage: u32,
    /// In which walks its value is needed, as bits.
    needed: u32,
    is_stored: bool,
    follows_scan: AfterScan,
    /// Whether it is a scatter or follows from one.
    follows_scatter: bool,
    /// Whether it has one value a row of the reduction.
    once_a_row: bool,
    /// Whether it has a value for each element of the rows, in their order.
    along_row: bool,
    /// Whether a shared reduction follows from it.
    is_reduced: bool,
    /// The loop of what is computed from it, where that is in no lanes of its own.
    inside: Loop,
    /// Evaluations. Readers at the same index share an evaluation; others add up.
    aligned: f64,
    scattered: f64,
}

/// Tables that are kept from one analysis to the next.
pub(super) struct Analyser<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    /// Nodes of one kernel.
    pub(super) most_nodes: usize,
    /// Where a node is among the nodes; by node.
    place: Vec<u32>,
    /// Elements that are read from memory; by node.
    demands: Vec<f64>,
    /// Elements that are read through an operand, by whichever reader reads most; by node.
    through: Vec<f64>,
    /// Operands with an entry there.
    touched: Vec<NodeId>,
    states: Vec<State>,
    links: Vec<u32>,
    /// What is read from memory, in the order of first use.
    external: Vec<NodeId>,
    /// The same of another attempt.
    attempted: Vec<NodeId>,
    /// Whether threads share short reductions too.
    shares_short: bool,
}

impl<'a> Analyser<'a> {
    pub(super) fn new(graph: &'a Graph, facts: &'a Facts) -> Analyser<'a> {
        Analyser {
            graph,
            facts,
            most_nodes: MAX_NODES,
            place: vec![OUTSIDE; facts.bound()],
            demands: vec![UNREAD; facts.bound()],
            through: vec![0.0; facts.bound()],
            touched: Vec::new(),
            states: Vec::new(),
            links: Vec::new(),
            external: Vec::new(),
            attempted: Vec::new(),
            shares_short: false,
        }
    }

    /// A node as a kernel of its own.
    pub(super) fn single(&mut self, id: NodeId) -> Option<Group> {
        self.group(vec![id], vec![id]).ok()
    }

    /// The kernel that computes `nodes` and stores `outputs`.
    pub(super) fn group(
        &mut self,
        mut nodes: Vec<NodeId>,
        mut outputs: Vec<NodeId>,
    ) -> Result<Group, WhyNot> {
        nodes.sort_unstable();
        nodes.dedup();
        outputs.sort_unstable();
        outputs.dedup();
        let Analysis { reduction, scan, work, recomputed } = self.analyse(&nodes, &outputs)?;
        let (reads, is_frugal) = (self.external.clone(), false);
        Ok(Group { nodes, outputs, reads, reduction, scan, work, recomputed, is_frugal })
    }

    /// Checks that one kernel can compute `nodes` and store `outputs`, both ascending, and adds up its work.
    pub(super) fn analyse(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Analysis, WhyNot> {
        if nodes.len() > self.most_nodes {
            return Err(WhyNot::TooLarge { nodes: nodes.len() });
        }
        if self.facts.undone.is_some_and(|cut| !cut.allows(nodes, outputs, &self.facts.reads)) {
            return Err(WhyNot::Off);
        }
        let own = self.attempt(nodes, outputs, false);
        if !self.stores_short_rows(nodes, outputs) {
            return own;
        }
        // A thread for each element would reduce its row anew.
        std::mem::swap(&mut self.external, &mut self.attempted);
        let shared = self.attempt(nodes, outputs, true);
        match (&own, &shared) {
            (Ok(a), Ok(b)) if a.work.operations <= b.work.operations => {}
            (_, Ok(_)) => return shared,
            (_, Err(_)) => {}
        }
        std::mem::swap(&mut self.external, &mut self.attempted);
        own
    }

    /// Whether results along rows are stored that are short enough for one thread to reduce.
    fn stores_short_rows(&self, nodes: &[NodeId], outputs: &[NodeId]) -> bool {
        let facts = self.facts;
        let Some(short) = nodes.iter().find_map(|&id| facts.of(id).short) else { return false };
        let elements = facts.numbered(short).full_elements;
        outputs.iter().any(|&output| facts.of(output).elements == elements)
    }

    fn attempt(
        &mut self,
        nodes: &[NodeId],
        outputs: &[NodeId],
        shares_short: bool,
    ) -> Result<Analysis, WhyNot> {
        self.shares_short = shares_short;
        self.external.clear();
        let result = self.analyse_nodes(nodes, outputs);
        nodes.iter().for_each(|id| self.place[id.index()] = OUTSIDE);
        self.external.iter().for_each(|id| self.demands[id.index()] = UNREAD);
        self.touched.drain(..).for_each(|id| self.through[id.index()] = 0.0);
        result
    }

    /// What a reduction walks that threads share; `None` for every other node.
    fn space(&self, id: NodeId) -> Option<u32> {
        let node = self.facts.of(id);
        if self.shares_short { node.space.or(node.short) } else { node.space }
    }

    fn analyse_nodes(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Analysis, WhyNot> {
        let reduction = self.link(nodes)?;
        let scan = self.follow_scans(nodes, outputs)?;
        self.follow_scatters(nodes, outputs)?;
        let walked =
            reduction.and_then(|reduction| self.space(reduction)).map(|space| *self.facts.numbered(space));
        let mut walks = 1;
        if let Some((reduction, space)) = reduction.zip(walked.as_ref()) {
            walks = self.follow_reductions(nodes, reduction, space)?;
        }
        let misfit = match walked {
            // In another order than the rows'.
            Some(space) => outputs.iter().copied().find(|&output| {
                // Without elements, rows and their results are alike.
                let is_row = self.facts.of(output).elements == space.full_elements && space.full_elements > 0;
                is_row && space.length > 1 && !self.states[self.place[output.index()] as usize].along_row
            }),
            None => None,
        };
        let misfit = misfit.or_else(|| self.misfit(outputs, reduction, scan));
        if let Some(misfit) = misfit {
            let shape = |id: NodeId| self.graph.node(id).shape.clone();
            let (first, last) = (outputs[0], outputs[outputs.len() - 1]);
            let other = if misfit == first { last } else { first };
            let first = shape(reduction.unwrap_or(other));
            return Err(WhyNot::DifferentSpaces { first, second: shape(misfit) });
        }
        if walks > MAX_WALKS {
            return Err(WhyNot::TooManyWalks);
        }
        for output in outputs {
            if let Some(state) = self.states.get_mut(self.place[output.index()] as usize) {
                state.is_stored = true;
            }
        }
        let mut analysis = Analysis { reduction, scan, ..Analysis::default() };
        self.count(&mut analysis, nodes, outputs, walked.as_ref())?;
        if let Some(space) = walked.filter(|_| self.shares_short) {
            analysis.work.operations *= space.waste;
        }
        let buffers = self.external.len() + outputs.len();
        match buffers > MAX_BUFFERS {
            true => Err(WhyNot::TooManyBuffers { buffers }),
            false => Ok(analysis),
        }
    }

    /// Finds where each node's reads are among the nodes. All reductions that threads share must walk the same
    /// rows, and none wait for another.
    fn link(&mut self, nodes: &[NodeId]) -> Result<Option<NodeId>, WhyNot> {
        let facts = self.facts;
        self.states.clear();
        self.links.clear();
        let mut first: Option<NodeId> = None;
        for (number, &id) in nodes.iter().enumerate() {
            let start = self.links.len() as u32;
            let mut after = OUTSIDE;
            for read in facts.reads.reads(id) {
                let at = self.place[read.node.index()];
                if at == OUTSIDE {
                    continue;
                }
                let follows = || self.space(read.node).is_some() || self.states[at as usize].after != OUTSIDE;
                if read.gathered && follows() {
                    let (producer, consumer) = (self.graph.node(read.node), self.graph.node(id));
                    return Err(WhyNot::Gathered { producer: producer.origin, consumer: consumer.origin });
                }
                self.links.push(at);
                if after == OUTSIDE && first.is_some() {
                    after = if self.space(read.node).is_some() { at } else { self.states[at as usize].after };
                }
            }
            self.place[id.index()] = number as u32;
            self.states.push(State {
                links: (start, self.links.len() as u32),
                after,
                stage: 0,
                needed: 0,
                is_stored: false,
                follows_scan: AfterScan::Independent,
                follows_scatter: false,
                once_a_row: false,
                along_row: false,
                is_reduced: false,
                inside: Loop::Lanes,
                aligned: 0.0,
                scattered: 0.0,
            });
            let Some(own) = self.space(id) else { continue };
            let origin = |id: NodeId| self.graph.node(id).origin;
            if let Some(&other) = nodes.get(after as usize)
                && (self.space(other) != Some(own) || !facts.numbered(own).is_walkable)
            {
                return Err(WhyNot::FeedsReduction { producer: origin(other), consumer: origin(id) });
            }
            let &mut first = first.get_or_insert(id);
            if self.space(first) != Some(own) {
                return Err(WhyNot::DifferentReductions { first: origin(first), second: origin(id) });
            }
        }
        Ok(first)
    }

    /// Checks that scans go along one axis of one shape, which all outputs have, and that what follows from them is
    /// computed where they are: element by element, or when they have come to their end. Gives the first scan.
    fn follow_scans(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Option<NodeId>, WhyNot> {
        let facts = self.facts;
        let scan = nodes.iter().find_map(|&id| Some((id, facts.of(id).scan?)));
        let Some((first, space)) = scan else { return Ok(None) };
        let origin = |id: NodeId| self.graph.node(id).origin;
        let beside = |other: NodeId| WhyNot::BesideScan { scan: origin(first), other: origin(other) };
        for (number, &id) in nodes.iter().enumerate() {
            let node = facts.of(id);
            if node.scan.is_some_and(|other| other != space) || node.space.is_some() {
                return Err(beside(id));
            }
            let mut follows = match node.scan {
                None => AfterScan::Independent,
                Some(_) if node.shape == space.full => AfterScan::Running(1),
                Some(_) => AfterScan::Ended,
            };
            for read in facts.reads.reads(id) {
                let Some(state) = self.states.get(self.place[read.node.index()] as usize) else { continue };
                let shape = match state.follows_scan {
                    AfterScan::Independent => continue,
                    AfterScan::Running(_) => space.full,
                    AfterScan::Ended => space.slice,
                };
                // A scan reads every position in its order, whatever is left of it in the end.
                let own = if node.scan.is_some() { space.full } else { node.shape };
                if !read.aligned || own != shape {
                    return Err(WhyNot::OutOfOrder { scan: origin(first), reader: origin(id) });
                }
                follows = match (follows, state.follows_scan) {
                    (AfterScan::Ended, _) | (_, AfterScan::Ended) => AfterScan::Ended,
                    (AfterScan::Running(own), AfterScan::Running(before)) => {
                        AfterScan::Running(own.max(before + u32::from(node.scan.is_some())))
                    }
                    (_, after) => after,
                };
                if follows == AfterScan::Running(MAX_WALKS + 1) {
                    return Err(WhyNot::TooManyWalks);
                }
            }
            self.states[number].follows_scan = follows;
        }
        for &output in outputs {
            let follows =
                self.states.get(self.place[output.index()] as usize).map(|state| state.follows_scan);
            if facts.of(output).shape != space.full && follows != Some(AfterScan::Ended) {
                return Err(beside(output));
            }
        }
        Ok(Some(first))
    }

    /// Checks what follows the shared reductions: it is either one value a row or, if the row can be walked again,
    /// of the row's own shape. Finds what has one value a row of the reduction, not one a column, even where there
    /// are as many: results of reductions, what follows from them, and what has the shape of a result with its axes
    /// kept. Returns the number of walks.
    fn follow_reductions(&mut self, nodes: &[NodeId], first: NodeId, space: &Space) -> Result<u32, WhyNot> {
        let facts = self.facts;
        let results = facts.of(first).elements;
        let mut last = 0;
        for (number, &id) in nodes.iter().enumerate() {
            let (own, state) = (facts.of(id), self.states[number]);
            let is_reduction = self.space(id).is_some();
            if let Some(&waits_for) = nodes.get(state.after as usize) {
                let of_row = || is_reduction || own.elements == space.full_elements;
                if own.elements != results && !(space.is_walkable && of_row()) {
                    let (reduction, node) = (self.graph.node(waits_for), self.graph.node(id));
                    return Err(WhyNot::FlowsBack {
                        reduction: reduction.origin,
                        reduced: reduction.shape.clone(),
                        to: node.shape.clone(),
                    });
                }
            }
            let (mut stage, mut follows) = (0, false);
            for &at in &self.links[state.links.0 as usize..state.links.1 as usize] {
                let (before, at) = (&self.states[at as usize], nodes[at as usize]);
                stage = stage.max(before.stage + u32::from(self.space(at).is_some()));
                follows |= before.once_a_row;
            }
            last = last.max(stage);
            let is_result = own.elements == space.kept_elements;
            let is_aligned = || {
                let mut reads = facts.reads.reads(id).iter().filter(|read| read.aligned);
                reads.any(|read| {
                    let before = self.states.get(self.place[read.node.index()] as usize);
                    before.is_some_and(|before| before.along_row)
                })
            };
            let along_row =
                own.elements == space.full_elements && (own.domain == space.full_domain || is_aligned());
            let state = &mut self.states[number];
            state.stage = stage;
            state.once_a_row = is_result && (is_reduction || own.shape == space.kept || follows);
            state.along_row = along_row;
        }
        Ok(last + 1)
    }

    /// The first output without a place in one iteration space with the others.
    pub(super) fn misfit(
        &self,
        outputs: &[NodeId],
        reduction: Option<NodeId>,
        scan: Option<NodeId>,
    ) -> Option<NodeId> {
        let of = |id: NodeId| self.facts.of(id);
        let &first = outputs.first()?;
        if let Some(space) = scan.and_then(|scan| of(scan).scan) {
            let fits = |output: &NodeId| [space.full, space.slice].contains(&of(*output).shape);
            return outputs.iter().copied().find(|output| !fits(output));
        }
        let space = |id: NodeId| of(id).space.or(of(id).short).map(|space| self.facts.numbered(space));
        let fits = |&output: &NodeId| match reduction.zip(reduction.and_then(space)) {
            None => of(output).domain == of(first).domain,
            Some((reduction, space)) => {
                [of(reduction).elements, space.full_elements].contains(&of(output).elements)
                    || of(reduction).short.is_some() && of(output).domain == of(first).domain
            }
        };
        outputs.iter().copied().find(|output| !fits(output))
    }

    /// How often each node is evaluated, and what follows: operations and bytes. What varies along a row is
    /// computed anew in each walk that leads to a reduction or a result that needs it, but for what is kept of it.
    fn count(
        &mut self,
        analysis: &mut Analysis,
        nodes: &[NodeId],
        outputs: &[NodeId],
        space: Option<&Space>,
    ) -> Result<(), WhyNot> {
        let facts = self.facts;
        let figures = &facts.figures;
        let along_scan = analysis.scan.and_then(|scan| facts.of(scan).scan).map(|scan| scan.is_innermost);
        // Rows of results are stored as they are computed; what is read or stored across them takes a line an element.
        let walks_rows = space.is_some_and(|space| {
            outputs.iter().any(|&output| facts.of(output).elements == space.full_elements)
        });
        let transposed = figures.transposed[usize::from(walks_rows || analysis.scan.is_some())];
        // Whether what is read is not walked as one, so that the innermost axis has a loop of its own.
        let mut apart = false;
        let Analysis { work, recomputed, .. } = analysis;
        let add = |work: &mut Work, kind: Loop, operations: f64| {
            work.counted[kind as usize] += operations;
            work.operations += operations * figures.loops[kind as usize];
        };
        for (number, &id) in nodes.iter().enumerate().rev() {
            let (node, mut state) = (facts.of(id), self.states[number]);
            let elements = node.elements as f64;
            if state.is_stored {
                state.aligned = state.aligned.max(elements);
            }
            let evaluations = state.aligned + state.scattered;
            let mut times = if elements > 0.0 { evaluations / elements } else { 1.0 };
            let mut walks = 1;
            let is_shared = self.space(id).is_some();
            if let Some(space) = space {
                if is_shared && times > 1.001 {
                    if !space.is_walkable {
                        let node = self.graph.node(id);
                        let to = outputs.first().map(|&output| self.graph.node(output).shape.clone());
                        let (reduced, to) = (node.shape.clone(), to.unwrap_or_default());
                        return Err(WhyNot::FlowsBack { reduction: node.origin, reduced, to });
                    }
                    times = 1.0;
                }
                if state.once_a_row {
                    // Once a row, however often the row's elements use it: kernels hoist what does not vary.
                    times = times.min(1.0);
                }
                let varies = node.elements == space.full_elements && !is_shared;
                if is_shared || varies && state.is_stored {
                    state.needed = 1 << state.stage | if is_shared { 0 } else { state.needed };
                }
                if varies && !(space.is_kept && node.cost >= WORTH_KEEPING) {
                    walks = state.needed.count_ones().max(1);
                }
                for &at in &self.links[state.links.0 as usize..state.links.1 as usize] {
                    let before = &mut self.states[at as usize];
                    before.needed |= state.needed;
                    before.is_reduced |= is_shared || state.is_reduced;
                }
            }
            let repeated = times * f64::from(walks);
            // What one element after the other combines or lays down, it computes as well.
            let interleaves = facts.reads.reads(id).iter().any(|read| read.interleaved);
            let is_in_thread = node.fan > 1.0 && !is_shared && node.scan.is_none();
            let inside = match node.scatter.is_some() || interleaves {
                true => Loop::Steps,
                false if is_in_thread => state.inside.max(Loop::Windows),
                false => state.inside,
            };
            let kind = match (space, along_scan) {
                _ if inside > Loop::Columns => inside,
                (Some(space), _) if !walks_row(node, space) => Loop::Lanes,
                (Some(space), _) if !space.is_row => Loop::Columns,
                // The last walk, which stores results, is a loop as any other.
                // What is kept of a row is computed once, in lanes: measured, within 7 % of a loop of its own or faster.
                (Some(space), _) if !is_shared && space.is_kept && node.cost >= WORTH_KEEPING => Loop::Lanes,
                (Some(_), _) if is_shared || state.is_reduced => Loop::Rows,
                // Scans compute what surrounds them a stretch at a time, or in lanes across columns.
                (_, Some(is_row)) if node.scan.is_some() => {
                    if is_row {
                        Loop::Steps
                    } else {
                        Loop::Columns
                    }
                }
                _ => Loop::Lanes,
            };
            add(work, kind, elements * repeated * node.fan * node.cost);
            let again = elements * (repeated - 1.0) * node.fan * node.cost * figures.loops[kind as usize];
            if repeated > 1.001 && again > recomputed.map_or(0.0, |most: Recomputed| most.operations) {
                let value = self.graph.node(id).origin;
                *recomputed = Some(Recomputed { value, times: repeated, operations: again });
            }
            for read in facts.reads.reads(id) {
                let demand = read.elements as f64 * times;
                apart |= !read.aligned && facts.of(read.node).elements > 1;
                if read.permuted && (space.is_none() || walks_rows) {
                    work.counted[LOOPS] += demand;
                    work.operations += demand * transposed;
                }
                if let Some(state) = self.states.get_mut(self.place[read.node.index()] as usize) {
                    state.inside = state.inside.max(inside);
                }
                match self.states.get_mut(self.place[read.node.index()] as usize) {
                    Some(state) if read.aligned => state.aligned = state.aligned.max(demand),
                    state => {
                        // What is read through one view, by however many readers, is there after the first; computed
                        // positions are each reader's own.
                        let most = &mut self.through[read.through.index()];
                        let more = if read.gathered { demand } else { (demand - *most).max(0.0) };
                        *most += more;
                        self.touched.push(read.through);
                        match state {
                            Some(state) => state.scattered += more,
                            None => {
                                if facts.reads.is_computed(read.node) {
                                    add(work, kind, more * READ * f64::from(walks));
                                }
                                self.external.push(read.node);
                                let whole = &mut self.demands[read.node.index()];
                                *whole = whole.max(0.0) + more;
                            }
                        }
                    }
                }
            }
        }
        let turns = match space.is_none() && apart {
            true => outputs.iter().map(|&id| turns(facts.of(id))).fold(0.0, f64::max),
            false => 0.0,
        };
        work.counted[LOOPS + 1] += turns;
        work.operations += turns * figures.turn;
        self.external.reverse();
        let demands = &mut self.demands;
        self.external.retain(|&read| {
            let demand = std::mem::replace(&mut demands[read.index()], UNREAD);
            if demand < 0.0 {
                return false;
            }
            let node = facts.of(read);
            let bytes = demand.min(node.elements as f64) as u64 * node.size as u64;
            work.bytes_read += bytes;
            work.far += if node.bytes() > figures.near { bytes } else { 0 };
            true
        });
        for &output in outputs {
            let bytes = facts.of(output).bytes();
            work.bytes_written += bytes;
            work.far += if bytes > figures.near { bytes } else { 0 };
        }
        Ok(())
    }
}

/// Whether a node is computed for each element of the rows.
fn walks_row(node: &NodeFacts, space: &Space) -> bool {
    node.elements as f64 * node.fan >= space.full_elements as f64
}

/// How often the loop along the innermost axis begins.
fn turns(node: &NodeFacts) -> f64 {
    node.elements as f64 / node.inner as f64
}
