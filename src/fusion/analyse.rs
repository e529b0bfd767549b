//! Whether one kernel can compute some nodes, and its work. Fusion asks this of every merge that it considers, so
//! nothing is allocated for an answer.

mod between;
mod count;
mod row_contraction;
mod scatter;

use super::cost::{Loop, Work};
use super::domain::Rows;
use super::facts::{By, Facts, MOST_PARTS, MOST_UPDATES};
use super::group::{Group, MAX_BUFFERS, MAX_NODES, MAX_PASSES, Recomputed, WhyNot};
use super::reads::is_join;
use crate::graph::domain::Hero;
use crate::graph::maps::MapId;
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use lazuli_codegen::schedule::SPLIT_LENGTH;
use lazuli_codegen::schedule::share::MOST_PRODUCTS;

pub(crate) use between::part;

/// The place of what is not among the nodes: it comes from memory.
const OUTSIDE: u32 = u32::MAX;

/// The demand for what is not read from memory.
const UNREAD: f64 = -1.0;

/// What [`Group`] says besides nodes and buffers.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Analysis {
    pub(super) hero: Hero,
    pub(super) work: Work,
    pub(super) recomputed: Option<Recomputed>,
    pub(super) waits_for_rows: bool,
    /// Operations as its text has them, one for each place where one is computed.
    pub(super) texts: f64,
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

/// Which elements of a node the elements of the rows need.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Nowhere,
    One(MapId),
    /// Several, or no one knows which, but the same for all elements of a row.
    OfRow,
    /// Several, or no one knows which.
    Any,
}

/// What is known of a node at its place among the nodes.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Its reads that are among the nodes, as a range of the links.
    links: (u32, u32),
    /// The place of a shared reduction that it depends on.
    after: u32,
    /// How many updates, one computed from the other, it follows from.
    updates: u32,
    /// How many passes over the rows must have ended before it can be computed.
    stage: u32,
    /// In which passes its value is needed, as bits.
    needed: u32,
    is_stored: bool,
    follows_scan: AfterScan,
    /// Whether it is a scatter or follows from one.
    follows_scatter: bool,
    at: At,
    /// Whether it varies along the rows of the shared reductions.
    varies: bool,
    /// Whether what several elements are combined by follows from it.
    is_prologue: bool,
    /// The loop of what is computed from it, where that is in no lanes of its own.
    inside: Loop,
    /// Whether it is computed where a position says.
    is_far: bool,
    /// Whether windows of it are combined.
    is_windowed: bool,
    /// Whether the kernel's innermost axis is several of its own.
    is_merged: bool,
    /// Whether a part of a join follows from it.
    is_part: bool,
    /// Whether a view of windows leads to it, which a reduction reads at once or after elementwise operations.
    is_slid: bool,
    /// How many times more often than its readers ask for it a reduction nested below it runs: neighbouring windows reuse elements,
    /// but recompute such a reduction.
    unshared: f64,
    /// Evaluations. Readers at the same index share an evaluation; others add up.
    aligned: f64,
    scattered: f64,
    /// How often its text is there: the same for readers at the same index.
    texts_aligned: f64,
    texts_scattered: f64,
}

/// Tables that are kept from one analysis to the next.
pub(super) struct Analyser<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    /// Nodes of one kernel.
    pub(super) most_nodes: usize,
    /// Whether a node counts as often as its text is there.
    pub(super) counts_texts: bool,
    /// Where a node is among the nodes; by node.
    place: Vec<u32>,
    /// Elements that are read from memory; by node.
    demands: Vec<f64>,
    /// Elements that are read through an operand, by whichever reader reads most; by node.
    through: Vec<f64>,
    /// Texts that read through an operand; by node.
    texts_through: Vec<f64>,
    /// Operands with an entry there.
    touched: Vec<NodeId>,
    states: Vec<State>,
    links: Vec<u32>,
    /// What is read from memory, in the order of first use.
    external: Vec<NodeId>,
    /// The same of another attempt.
    attempted: Vec<NodeId>,
    /// Elements of whole rows that are read from memory as rows are, and across them.
    ways: [f64; 2],
    /// Whether threads share all reductions.
    shares_all: bool,
    /// The two nodes that the last refusal is about, if it is about two.
    refused: Option<[NodeId; 2]>,
    /// What is a kernel, ascending: whatever its nodes are to each other is no reason against another one.
    kernels: [Vec<NodeId>; 2],
}

impl<'a> Analyser<'a> {
    pub(super) fn new(graph: &'a Graph, facts: &'a Facts) -> Analyser<'a> {
        Analyser {
            graph,
            facts,
            most_nodes: MAX_NODES,
            counts_texts: false,
            place: vec![OUTSIDE; facts.bound()],
            demands: vec![UNREAD; facts.bound()],
            through: vec![0.0; facts.bound()],
            texts_through: vec![0.0; facts.bound()],
            touched: Vec::new(),
            states: Vec::new(),
            links: Vec::new(),
            external: Vec::new(),
            attempted: Vec::new(),
            ways: [0.0; 2],
            shares_all: false,
            refused: None,
            kernels: Default::default(),
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
        let Analysis { hero, work, recomputed, waits_for_rows, texts } = self.analyse(&nodes, &outputs)?;
        let (reads, is_low_pressure) = (self.external.clone(), false);
        let hero = match hero {
            Hero::Reduction(reduction) => Hero::Reduction(self.finest(&nodes, reduction)),
            hero => hero,
        };
        Ok(Group { nodes, outputs, reads, hero, work, recomputed, is_low_pressure, waits_for_rows, texts })
    }

    /// The reduction of the same rows whose shape divides them most finely, and tells how long they are: it names the axes.
    fn finest(&self, nodes: &[NodeId], reduction: NodeId) -> NodeId {
        let fineness = |id: NodeId| match &self.graph.node(id).op {
            Op::Reduce { axes, .. } => {
                let full = &self.graph.node(self.graph.operands(id)[0]).shape;
                let has_length = !axes.contains(&0) || full[0] == 1;
                (has_length, full.iter().filter(|&&extent| extent != 1).count())
            }
            _ => (false, 0),
        };
        let rows = self.facts.of(reduction).rows;
        let same = nodes.iter().copied().filter(|&id| self.facts.of(id).rows == rows);
        let finer = |best: NodeId, id: NodeId| if fineness(id) > fineness(best) { id } else { best };
        same.fold(reduction, finer)
    }

    /// Checks that one kernel can compute `nodes` and store `outputs`, both ascending, and adds up its work.
    pub(super) fn analyse(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Analysis, WhyNot> {
        if nodes.len() > self.most_nodes {
            return Err(WhyNot::TooLarge { nodes: nodes.len() });
        }
        if self.facts.undone.is_some_and(|cut| !cut.allows(nodes, outputs, &self.facts.reads)) {
            return Err(WhyNot::Off);
        }
        let own = self.attempt(nodes, false, |analyser| analyser.analyse_nodes(nodes, outputs));
        let refused = self.refused;
        if !self.stores_few(nodes, outputs) {
            return own;
        }
        // A thread for each element would reduce its row anew.
        std::mem::swap(&mut self.external, &mut self.attempted);
        let shared = self.attempt(nodes, true, |analyser| analyser.analyse_nodes(nodes, outputs));
        match (&own, &shared) {
            (Ok(a), Ok(b)) if a.work.operations <= b.work.operations => {}
            (_, Ok(_)) => return shared,
            (_, Err(_)) => {}
        }
        self.refused = refused;
        std::mem::swap(&mut self.external, &mut self.attempted);
        own
    }

    /// Whether results along rows are stored that one thread could reduce.
    fn stores_few(&self, nodes: &[NodeId], outputs: &[NodeId]) -> bool {
        let facts = self.facts;
        let mut few = nodes.iter().filter_map(|&id| facts.of(id).few_rows());
        few.any(|rows| {
            let elements = facts.rows(rows).full_elements;
            outputs.iter().any(|&output| facts.of(output).elements == elements)
        })
    }

    fn attempt<T>(
        &mut self,
        nodes: &[NodeId],
        shares_all: bool,
        analyse: impl FnOnce(&mut Self) -> Result<T, WhyNot>,
    ) -> Result<T, WhyNot> {
        self.shares_all = shares_all;
        self.external.clear();
        self.refused = None;
        let result = analyse(self);
        nodes.iter().for_each(|id| self.place[id.index()] = OUTSIDE);
        self.external.iter().for_each(|id| self.demands[id.index()] = UNREAD);
        for id in self.touched.drain(..) {
            self.through[id.index()] = 0.0;
            self.texts_through[id.index()] = 0.0;
        }
        result
    }

    /// The rows of a reduction that threads share; `None` for every other node. What it reads has its place.
    fn rows(&self, id: NodeId) -> Option<u32> {
        let node = self.facts.of(id);
        let is_inside = |id: &NodeId| self.place[id.index()] != OUTSIDE;
        let is_shared = match node.by {
            By::Threads => true,
            By::Thread => self.shares_all,
            By::ThreadIfWindows(from, to) => {
                self.shares_all || !self.facts.windows(from, to).iter().any(is_inside)
            }
        };
        node.rows.filter(|_| is_shared)
    }

    fn analyse_nodes(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Analysis, WhyNot> {
        let reduction = match self.link(nodes) {
            Ok(reduction) => reduction,
            Err(why) => {
                self.external.clear();
                return self.row_contraction(nodes, outputs).ok_or(why);
            }
        };
        let scan = self.follow_scans(nodes, outputs)?;
        let scatter = self.follow_scatters(nodes, outputs)?;
        let rows = reduction.and_then(|reduction| self.rows(reduction)).map(|rows| *self.facts.rows(rows));
        // Beside scans and scatters no threads share a reduction.
        let hero = match (scan, scatter, reduction) {
            (Some(scan), ..) => Hero::Scan(scan),
            (None, Some(scatter), _) => Hero::Scatter(scatter),
            (None, None, Some(reduction)) => Hero::Reduction(reduction),
            (None, None, None) => Hero::Elements,
        };
        if let Some(misfit) = self.misfit(outputs, hero) {
            let shape = |id: NodeId| self.graph.node(id).shape.clone();
            let (first, last) = (outputs[0], outputs[outputs.len() - 1]);
            let other = if misfit == first { last } else { first };
            let first = shape(reduction.unwrap_or(other));
            return Err(WhyNot::DifferentSpaces { first, second: shape(misfit) });
        }
        let mut passes = 1;
        if let Some(rows) = &rows {
            passes = self.stages(nodes);
            self.relate(nodes, outputs, rows)?;
        }
        if passes > MAX_PASSES {
            return Err(WhyNot::TooManyPasses);
        }
        for output in outputs {
            if let Some(state) = self.states.get_mut(self.place[output.index()] as usize) {
                state.is_stored = true;
            }
        }
        let mut analysis = Analysis { hero, ..Analysis::default() };
        self.count(&mut analysis, nodes, outputs, rows.as_ref());
        let stores = |rows: &Rows| outputs.iter().any(|&id| self.facts.of(id).elements == rows.full_elements);
        if let Some(rows) = rows.as_ref().filter(|rows| passes > 1 && stores(rows)) {
            let (figures, work) = (&self.facts.figures, &mut analysis.work);
            let longer = rows.idle_again(figures) * figures.few_again;
            work.operations += work.bytes() as f64 / figures.bandwidth * longer * figures.operations;
        }
        if let Some(rows) = rows.filter(|_| self.shares_all) {
            analysis.work.operations *= rows.waste;
        }
        let is_alone = rows.is_some_and(|rows| rows.is_one() && !self.is_divided(nodes, &rows));
        analysis.work.operations *= nodes.iter().map(|&id| self.facts.of(id).idle).fold(1.0, f64::max);
        if is_alone || nodes.iter().any(|&id| self.facts.of(id).is_one_row) {
            analysis.work.operations *= self.facts.figures.one_row;
        }
        if self.counts_texts && analysis.texts > self.most_nodes as f64 {
            return Err(WhyNot::TooLarge { nodes: analysis.texts as usize });
        }
        let buffers = self.external.len() + outputs.len();
        match buffers > MAX_BUFFERS {
            true => Err(WhyNot::TooManyBuffers { buffers }),
            false => Ok(analysis),
        }
    }

    /// Whether rows are long enough to be divided, and nothing along them waits for their reductions.
    fn is_divided(&self, nodes: &[NodeId], rows: &Rows) -> bool {
        let waits =
            |(&id, state): (&NodeId, &State)| state.stage > 0 && (state.varies || self.rows(id).is_some());
        rows.length as u64 > SPLIT_LENGTH && !nodes.iter().zip(&self.states).any(waits)
    }

    /// Finds where each node's reads are among the nodes. All reductions that threads share must be of the same
    /// rows, and none wait for another.
    fn link(&mut self, nodes: &[NodeId]) -> Result<Option<NodeId>, WhyNot> {
        let facts = self.facts;
        self.states.clear();
        self.links.clear();
        let mut first: Option<NodeId> = None;
        let mut products = 0;
        for (number, &id) in nodes.iter().enumerate() {
            let start = self.links.len() as u32;
            let mut after = OUTSIDE;
            let mut updates = 0;
            let elements = facts.of(id).elements as u64;
            let replaces = is_join(self.graph, id)
                && facts.reads.reads(id).iter().any(|read| read.aligned && read.elements == elements);
            for read in facts.reads.reads(id) {
                let at = self.place[read.node.index()];
                if at == OUTSIDE {
                    continue;
                }
                let is_part = replaces && read.elements < elements;
                updates = updates.max(self.states[at as usize].updates + u32::from(is_part));
                let follows = || self.rows(read.node).is_some() || self.states[at as usize].after != OUTSIDE;
                let pair = [read.node, id];
                let is_far = read.map.is_none() && (facts.of(read.node).parts > MOST_PARTS || follows());
                if is_far && !self.are_together(pair) {
                    let (producer, consumer) = (self.graph.node(read.node), self.graph.node(id));
                    self.refused = Some(pair);
                    return Err(WhyNot::Gathered { producer: producer.origin, consumer: consumer.origin });
                }
                self.links.push(at);
                if after == OUTSIDE && first.is_some() {
                    after = if self.rows(read.node).is_some() { at } else { self.states[at as usize].after };
                }
            }
            if updates > MOST_UPDATES {
                return Err(WhyNot::TooManyUpdates);
            }
            self.place[id.index()] = number as u32;
            self.states.push(State {
                links: (start, self.links.len() as u32),
                after,
                updates,
                stage: 0,
                needed: 0,
                is_stored: false,
                follows_scan: AfterScan::Independent,
                follows_scatter: false,
                at: At::Nowhere,
                varies: false,
                is_prologue: false,
                inside: Loop::Lanes,
                is_far: false,
                is_windowed: false,
                is_merged: false,
                is_part: false,
                is_slid: false,
                unshared: 1.0,
                aligned: 0.0,
                scattered: 0.0,
                texts_aligned: 0.0,
                texts_scattered: 0.0,
            });
            let Some(own) = self.rows(id) else { continue };
            if let Some(&other) = nodes.get(after as usize)
                && (self.rows(other) != Some(own) || !facts.rows(own).is_near)
                && !self.are_together([other, id])
            {
                self.refused = Some([other, id]);
                let shapes = [other, id].map(|id| self.graph.node(id).shape.clone());
                let (producer, consumer) = (self.name(other, nodes), self.name(id, nodes));
                return Err(WhyNot::FeedsReduction { producer, consumer, shapes });
            }
            let &mut first = first.get_or_insert(id);
            // What is packed for several products is of one dtype.
            let (of_first, of_own) = (facts.of(first), facts.of(id));
            products += usize::from(of_own.is_packed);
            if products > MOST_PRODUCTS {
                return Err(WhyNot::TooManyProducts);
            }
            let packs_both = of_first.is_packed && of_own.is_packed;
            let fits = !packs_both || self.graph.node(first).dtype == self.graph.node(id).dtype;
            let is_other = !fits || self.rows(first) != Some(own);
            if is_other && !self.are_together([first, id]) {
                self.refused = Some([first, id]);
                let (first, second) = (self.name(first, nodes), self.name(id, nodes));
                return Err(WhyNot::DifferentReductions { first, second });
            }
        }
        Ok(first)
    }

    /// Checks that scans go along one axis of one shape, which all outputs have, and that what follows from them is
    /// computed where they are: element by element, or when they have come to their end. Gives the first scan.
    fn follow_scans(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Result<Option<NodeId>, WhyNot> {
        let facts = self.facts;
        let scan = nodes.iter().find_map(|&id| Some((id, facts.of(id).scan?)));
        let Some((first, lines)) = scan else { return Ok(None) };
        let origin = |id: NodeId| self.graph.node(id).origin;
        let beside = |other: NodeId| WhyNot::BesideScan { scan: origin(first), other: origin(other) };
        for (number, &id) in nodes.iter().enumerate() {
            let node = facts.of(id);
            if node.scan.is_some_and(|other| other != lines) || self.rows(id).is_some() {
                return Err(beside(id));
            }
            let mut follows = match node.scan {
                None => AfterScan::Independent,
                Some(_) if node.is_end => AfterScan::Ended,
                Some(_) => AfterScan::Running(1),
            };
            for read in facts.reads.reads(id) {
                let Some(state) = self.states.get(self.place[read.node.index()] as usize) else { continue };
                let elements = match state.follows_scan {
                    AfterScan::Independent => continue,
                    AfterScan::Running(_) => lines.elements(),
                    AfterScan::Ended => lines.ends(),
                };
                // A scan reads every position in its order, whatever is left of it in the end.
                let own = if node.scan.is_some() { lines.elements() } else { node.elements };
                if !read.aligned || own != elements {
                    return Err(WhyNot::OutOfOrder { scan: origin(first), reader: origin(id) });
                }
                follows = match (follows, state.follows_scan) {
                    (AfterScan::Ended, _) | (_, AfterScan::Ended) => AfterScan::Ended,
                    (AfterScan::Running(own), AfterScan::Running(before)) => {
                        AfterScan::Running(own.max(before + u32::from(node.scan.is_some())))
                    }
                    (_, after) => after,
                };
                if follows == AfterScan::Running(MAX_PASSES + 1) {
                    return Err(WhyNot::TooManyPasses);
                }
            }
            self.states[number].follows_scan = follows;
        }
        for &output in outputs {
            let follows =
                self.states.get(self.place[output.index()] as usize).map(|state| state.follows_scan);
            let is_along = facts.of(output).elements == lines.elements()
                && (facts.of(first).is_end || facts.fits(output, first));
            if !is_along && follows != Some(AfterScan::Ended) {
                return Err(beside(output));
            }
        }
        Ok(Some(first))
    }

    /// Finds how many passes over the rows must have ended before each node. Returns the number of passes.
    fn stages(&mut self, nodes: &[NodeId]) -> u32 {
        let mut last = 0;
        for number in 0..nodes.len() {
            let (from, to) = self.states[number].links;
            let mut stage = 0;
            for &at in &self.links[from as usize..to as usize] {
                let is_shared = self.rows(nodes[at as usize]).is_some();
                stage = stage.max(self.states[at as usize].stage + u32::from(is_shared));
            }
            self.states[number].stage = stage;
            last = last.max(stage);
        }
        last + 1
    }

    /// Finds which elements of each node the elements of the rows need, from the outputs down. Reductions must be needed
    /// for each row its own, and what follows from them along the row only where a second pass is near.
    fn relate(&mut self, nodes: &[NodeId], outputs: &[NodeId], rows: &Rows) -> Result<(), WhyNot> {
        for &output in outputs {
            let elements = self.facts.of(output).elements;
            let map = if elements == rows.full_elements { rows.whole } else { rows.row };
            self.states[self.place[output.index()] as usize].at = At::One(map);
        }
        for (number, &id) in nodes.iter().enumerate().rev() {
            let state = self.states[number];
            let (is_shared, varies) = (self.rows(id).is_some(), self.varies(state.at, rows));
            self.states[number].varies = varies;
            let reduction = match nodes.get(state.after as usize) {
                _ if is_shared => Some(id).filter(|_| state.at != At::One(rows.row)),
                waits_for => waits_for.copied().filter(|_| varies && !rows.is_near),
            };
            if let Some(reduction) = reduction {
                return Err(self.flows_back(reduction, id, nodes));
            }
            for read in self.facts.reads.reads(id) {
                let Some(before) = self.states.get(self.place[read.node.index()] as usize) else { continue };
                let at = if is_shared { At::One(rows.whole) } else { state.at };
                let next = match (at, read.map) {
                    (At::One(at), Some(map)) if is_shared || self.facts.of(id).fan == 1.0 => {
                        At::One(self.then(at, map, read.aligned, rows))
                    }
                    _ if varies || is_shared => At::Any,
                    _ => At::OfRow,
                };
                let both = match before.at {
                    At::Nowhere => next,
                    other if other == next => next,
                    other if self.varies(other, rows) || self.varies(next, rows) => At::Any,
                    _ => At::OfRow,
                };
                self.states[self.place[read.node.index()] as usize].at = both;
            }
        }
        Ok(())
    }

    fn then(&self, at: MapId, map: MapId, is_aligned: bool, rows: &Rows) -> MapId {
        match at {
            _ if is_aligned => at,
            _ if at == rows.whole => map,
            _ => self.facts.reads.maps.then(at, map),
        }
    }

    fn varies(&self, at: At, rows: &Rows) -> bool {
        match at {
            At::Nowhere | At::OfRow => false,
            At::One(map) => rows.varies(map, &self.facts.reads.maps),
            At::Any => true,
        }
    }

    /// A reduction is needed elsewhere than at its row: by its first reader, or where the node is that follows from it.
    fn flows_back(&mut self, reduction: NodeId, id: NodeId, nodes: &[NodeId]) -> WhyNot {
        let reads =
            |other: &&NodeId| self.facts.reads.reads(**other).iter().any(|read| read.node == reduction);
        let reader = if id == reduction { nodes.iter().find(reads).copied() } else { Some(id) };
        let (node, to) = (self.graph.node(reduction), self.graph.node(reader.unwrap_or(id)));
        let name = self.name(reduction, nodes);
        self.refused = Some([reduction, reader.unwrap_or(id)]);
        WhyNot::FlowsBack { reduction: name, reduced: node.shape.clone(), to: to.shape.clone() }
    }

    /// The first output without a place in one iteration space with the others.
    pub(super) fn misfit(&self, outputs: &[NodeId], hero: Hero) -> Option<NodeId> {
        let facts = self.facts;
        let &first = outputs.first()?;
        if let Some(lines) = hero.scan().and_then(|scan| facts.of(scan).scan) {
            let fits =
                |output: &NodeId| [lines.elements(), lines.ends()].contains(&facts.of(*output).elements);
            return outputs.iter().copied().find(|output| !fits(output));
        }
        let of_rows = hero.reduction().and_then(|id| Some((id, facts.rows(facts.of(id).rows?))));
        let fits = |&output: &NodeId| match of_rows {
            None => facts.fits(first, output),
            Some((id, rows)) => {
                let elements = facts.of(output).elements;
                let is_in_order = || {
                    let mut reads = facts.reads.reads(output).iter();
                    facts.fits_rows(output, rows) || reads.any(|read| read.aligned)
                };
                elements == rows.results
                    || elements == rows.full_elements && is_in_order()
                    || facts.of(id).few_rows().is_some() && facts.fits(first, output)
            }
        };
        outputs.iter().copied().find(|output| !fits(output))
    }
}
