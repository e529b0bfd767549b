//! The work of a kernel: how often each node is evaluated and in which loop, what is read, and what is stored.

use lazuli_codegen::cost::WORTH_KEEPING;
use lazuli_codegen::schedule::share;

use super::{AfterScan, Analyser, Analysis, At, OUTSIDE, UNREAD};
use crate::ReduceOp;
use crate::fusion::cost::{Loop, Role, Work};
use crate::fusion::domain::Rows;
use crate::fusion::facts::{NodeFacts, beside_largest, far_read};
use crate::fusion::group::Recomputed;
use crate::fusion::reads::{Divided, Place, Read, is_join};
use crate::graph::NodeId;
use crate::graph::domain::Hero;
use crate::graph::op::{Op, View};

/// Simple operations that reading an element is worth, which another kernel has stored instead of computing it here.
pub(super) const READ: f64 = 1.0;

/// How many times as long it takes to combine a long window where rows or lines are gone along: each by itself, from elements
/// that are read anew.
const WINDOW_IN_ROW: f64 = 2.0;

/// A reduction that so many results in a row share is hoisted out of their loop, where it has no lanes. And how many times as long as
/// a far read each of its steps takes, which waits for the one before.
const SHARED: f64 = 8.0;
const SCALAR_STEP: f64 = 2.0;

/// How many times as long a reduction takes nested in a window as by itself: its loads have the conditions of both.
const NESTED: f64 = 2.0;

/// How many times as long a far read takes in the loop of a window, beside all that is computed of it there, as in a loop of its own.
const FAR_IN_WINDOW: f64 = 3.0;

/// So many parts of a join that are one reduction at other positions get no loops of their own: every result computes all of them.
const BRANCHES: f64 = 4.0;

/// Simple operations between two scans that these hide.
const HIDDEN: f64 = 2.0;

/// What a kernel goes over.
struct Shape<'a> {
    rows: Option<&'a Rows>,
    is_scan: bool,
    /// Whether lines that are scanned are swept over twice.
    is_shared_scan: bool,
    /// The loop of most of it.
    kind: Loop,
    /// Rows of results are stored as they are computed; what is read or stored across them takes a line an element.
    stores_rows: bool,
    /// Results along the rows are stored, or their positions are found.
    is_ordered: bool,
    /// Lanes go along rows.
    is_along: bool,
}

/// How a node is evaluated.
#[derive(Clone, Copy)]
struct Evaluation {
    /// How often each of its elements is.
    times: f64,
    /// In how many passes over the rows.
    passes: u32,
    /// The loop of what it needs, where that has no lanes of its own.
    inside: Loop,
    /// Whether at positions that are computed.
    is_far: bool,
    /// Whether windows of it are combined, and whether it combines what it reads.
    is_windowed: bool,
    /// As [`State::is_merged`](super::State), and as [`State::is_part`](super::State) for what it reads.
    is_merged: bool,
    is_part: bool,
    /// As [`State::is_slid`](super::State).
    is_slid: bool,
    combines: bool,
    /// Whether it is a loop of a thread in another one.
    is_nested: bool,
    /// As [`State::unshared`](super::State), for what it reads.
    unshared: f64,
    place: (Loop, Role),
    /// How often what it reads is used where that is computed once.
    reuse: f64,
    /// Whether at the positions of results, and of nothing else.
    is_in_place: bool,
    /// In how many places of the text.
    texts: f64,
}

impl Analyser<'_> {
    /// Adds up operations and bytes. What varies along a row is computed anew in each pass that leads to a reduction or a
    /// result that needs it, but for what is kept of it.
    pub(super) fn count(
        &mut self,
        analysis: &mut Analysis,
        nodes: &[NodeId],
        outputs: &[NodeId],
        rows: Option<&Rows>,
    ) {
        let facts = self.facts;
        let scan = analysis.hero.scan().and_then(|scan| facts.of(scan).scan);
        let stores_row = |rows: &Rows| outputs.iter().any(|&id| facts.of(id).elements == rows.full_elements);
        let stores_rows = rows.is_some_and(stores_row);
        let kind = match (scan, rows) {
            (Some(scan), _) if scan.is_innermost() => {
                let is_one = |&id: &NodeId| facts.of(id).scan.is_none() || facts.of(id).is_in_registers;
                if nodes.iter().all(is_one) { Loop::Registers } else { Loop::Steps }
            }
            (Some(_), _) => Loop::Across,
            (None, Some(_)) if nodes.iter().any(|&id| facts.of(id).is_packed) => Loop::Products,
            (None, Some(rows)) if rows.is_consecutive => Loop::Rows,
            (None, Some(_)) => Loop::Columns,
            (None, None) if matches!(analysis.hero, Hero::Scatter(_)) => Loop::Scatter,
            (None, None) if nodes.iter().any(|&id| facts.of(id).fan > 1.0) => Loop::Windows,
            (None, None) => Loop::Lanes,
        };
        let is_position = |&id: &NodeId| {
            matches!(&self.graph.node(id).op, Op::Reduce { op: ReduceOp::ArgMax | ReduceOp::ArgMin, .. })
        };
        let finds_positions = nodes.iter().any(is_position);
        let figures = facts.figures;
        let is_recurrence = |&id: &NodeId| matches!(self.graph.node(id).op, Op::Recurrence { .. });
        let is_shared_scan = figures.packs
            && scan.is_some_and(|lines| lines.are_shared_rows(figures.processors))
            && !nodes.iter().any(is_recurrence);
        let is_ordered = stores_rows || finds_positions;
        let is_along = kind == Loop::Rows || nodes.iter().any(|&id| facts.of(id).is_along_terms);
        let is_scan = scan.is_some();
        let shape = Shape { rows, is_scan, is_shared_scan, kind, stores_rows, is_ordered, is_along };
        self.ways = [0.0; 2];
        let Analysis { work, recomputed, texts, .. } = analysis;
        // Whether what is read is not one with what is stored, so that the innermost axis has a loop of its own.
        let mut apart = false;
        // Whether something costly has a loop in lanes before the one in order, and after it.
        let mut beside_steps = [false; 2];
        let mut sorts = Vec::new();
        for (number, &id) in nodes.iter().enumerate().rev() {
            let node = facts.of(id);
            let (evaluation, state) = (self.evaluation(number, id, &shape), self.states[number]);
            let Evaluation { times, passes, place, .. } = evaluation;
            *texts += evaluation.texts;
            let slides = node.slides.filter(|_| self.rows(id).is_none() && !evaluation.is_nested);
            let shorter = slides.map_or(1.0, |(combined, _)| match kind {
                Loop::Windows => combined,
                Loop::Rows if node.inner as u64 >= share::SHORTEST_WINDOWED_LINE => combined,
                _ => WINDOW_IN_ROW,
            });
            let combined = node.elements as f64 * node.fan * shorter;
            let (each, repeated) = (combined * self.cost(id, &mut sorts), times * f64::from(passes));
            self.add(work, place, each * repeated);
            // What is packed and what is sorted or scattered has no lanes, tiles or loops for reductions of another's, nor have
            // rows for a long one at each row; nor are there any at computed positions. A loop in a loop beside products is taken
            // for one that does not vary along the columns, which are the lanes.
            let is_lone = match kind {
                _ if evaluation.is_far && place.0 == Loop::Windows => node.fan > 1.0,
                Loop::Products if place.0 == Loop::Windows && evaluation.is_nested => true,
                Loop::Products => node.is_across && rows.is_some_and(|rows| node.elements >= rows.results),
                Loop::Scatter => place.0 == Loop::Windows && node.fan > 1.0,
                Loop::Rows => {
                    let is_short = share::is_in_thread(node.fan as u64, || false);
                    place.0 == Loop::Windows && !is_short && !self.states[number].varies
                }
                _ => false,
            };
            if is_lone {
                let read = combined * repeated * facts.figures.far_read;
                self.add(work, (Loop::Lanes, Role::Hero), read);
            }
            if place.0 == Loop::Windows
                && matches!(self.graph.node(id).op, Op::Gather { .. })
                && facts.reads.is_far(id)
            {
                let read = node.elements as f64 * repeated * facts.figures.far_read;
                self.add(work, (Loop::Lanes, Role::Hero), read * (FAR_IN_WINDOW - 1.0));
            }
            // Windows that have elements of two parts are combined one element after the other, with conditions.
            if state.is_slid && evaluation.inside == Loop::Windows && is_join(self.graph, id) {
                let terms = node.elements as f64 * repeated * evaluation.unshared;
                let read = terms * beside_largest(self.graph, id) * facts.figures.far_read;
                self.add(work, (Loop::Lanes, Role::Hero), read);
            }
            let is_hoisted = repeated >= SHARED * NESTED * evaluation.unshared;
            if kind == Loop::Windows && evaluation.is_nested && is_hoisted {
                self.add(work, (Loop::Lanes, Role::Hero), combined * facts.figures.far_read * SCALAR_STEP);
            }
            let is_between = state.is_prologue && matches!(state.follows_scan, AfterScan::Running(_));
            if kind == Loop::Steps && node.scan.is_none() && node.cost > HIDDEN {
                if is_between {
                    self.add(work, (Loop::Lanes, Role::Hero), each * repeated * facts.figures.between_scans);
                }
                beside_steps[usize::from(state.is_prologue)] = true;
            }
            // What lies in turns is counted in steps, in whatever loop.
            let around = match place.0 {
                Loop::Steps | Loop::Products if shape.is_along => Loop::Rows,
                Loop::Steps => kind,
                around => around,
            };
            let at = Place {
                is_result: evaluation.is_in_place && !shape.is_scan && around != Loop::Windows,
                is_windowed: state.is_windowed,
                is_ordered,
            };
            let slows = |divided: Divided| divided.slows(around, at);
            if !(at.is_result && state.is_stored) && facts.reads.divided(id).is_some_and(slows) {
                let divided = node.elements as f64 * repeated * facts.figures.divided;
                self.add(work, (Loop::Lanes, Role::Hero), divided);
            }
            // Positions along a row have to be divided to find where windows of its lines begin and end.
            if evaluation.is_merged && place.0 == Loop::Windows && matches!(kind, Loop::Rows | Loop::Columns)
            {
                let apart =
                    facts.reads.reads(id).iter().filter(|read| !read.aligned).map(|read| read.elements);
                let most = apart.max().unwrap_or(0) as f64;
                self.add(work, (Loop::Lanes, Role::Hero), most * repeated * facts.figures.divided);
            }
            // Before a scan, what is read under a condition is read one by one.
            let is_padded = || facts.reads.reads(id).iter().any(|read| read.is_padded);
            if matches!(kind, Loop::Registers | Loop::Steps) && node.scan.is_none() && is_padded() {
                let read = node.elements as f64 * repeated * facts.figures.far_read;
                self.add(work, (Loop::Lanes, Role::Hero), read);
            }
            let again = each * (repeated - 1.0) * facts.figures.loops[place.0 as usize][place.1 as usize];
            if repeated > 1.001 && again > recomputed.map_or(0.0, |most: Recomputed| most.operations) {
                let value = self.graph.node(id).origin;
                *recomputed = Some(Recomputed { value, times: repeated, operations: again });
            }
            for read in facts.reads.reads(id) {
                apart |= !read.aligned && facts.of(read.node).elements > 1;
                // Neighbouring windows reuse elements, but recompute reductions that are nested in them.
                let read_once = slides.map_or(1.0, |(_, read)| read);
                let unshared = if evaluation.combines { 1.0 / read_once } else { evaluation.unshared };
                let shared = Evaluation { times: times * read_once, unshared, ..evaluation };
                self.count_read(work, read, &shared, &shape);
            }
        }
        // For what is before or behind the scan, each line begins and ends a loop in lanes.
        let lines = scan.map_or(0, |lines| lines.ends()) as f64;
        let begun = lines * beside_steps.iter().filter(|is_there| **is_there).count() as f64;
        work.counted.turns += begun;
        work.operations += begun * facts.figures.turn;
        // Whichever way lanes go, they read the others' elements one by one.
        let [along, across] = self.ways;
        work.counted.transposed[1] += along.min(across);
        work.operations += along.min(across) * facts.figures.transposed[1];
        if rows.is_none() && apart {
            let begun = outputs.iter().map(|&id| turns(facts.of(id))).fold(0.0, f64::max);
            work.counted.turns += begun;
            work.operations += begun * facts.figures.turn;
            if kind == Loop::Lanes {
                let idle = outputs.iter().map(|&id| idle_lanes(facts.of(id).inner, facts.figures.vector));
                let own: f64 = work.counted.loops[Loop::Lanes as usize].iter().sum();
                self.add(work, (Loop::Lanes, Role::Hero), own * idle.fold(0.0, f64::max));
            }
        }
        self.count_bytes(work, outputs);
    }

    /// Simple operations of an element. The elements in order and where they come from are of one sort, which counts once.
    fn cost(&self, id: NodeId, sorts: &mut Vec<u32>) -> f64 {
        let node = self.facts.of(id);
        let is_here = |read: &Read| read.map.is_none() && self.place[read.node.index()] != OUTSIDE;
        if matches!(self.graph.node(id).op, Op::Gather { .. })
            && self.facts.reads.is_far(id)
            && self.facts.reads.reads(id).iter().any(is_here)
        {
            // What it reads is computed here, from what is read there.
            return node.cost - far_read(self.graph, id, &self.facts.figures);
        }
        match node.scatter.filter(|_| matches!(self.graph.node(id).op, Op::Sort { .. })) {
            Some(sort) if sorts.contains(&sort) => 1.0,
            sort => {
                sorts.extend(sort);
                node.cost
            }
        }
    }

    pub(super) fn add(&self, work: &mut Work, (kind, role): (Loop, Role), operations: f64) {
        work.counted.loops[kind as usize][role as usize] += operations;
        work.operations += operations * self.facts.figures.loops[kind as usize][role as usize];
    }

    /// Whether each part of an interleaved join has lanes of its own: neighbours along a row are combined before the row is.
    fn combines_neighbours(&self, id: NodeId, shape: &Shape) -> bool {
        let at = Place { is_ordered: shape.is_ordered, ..Place::default() };
        let divided = self.facts.reads.divided(id);
        shape.is_along && divided.is_some_and(|divided| !divided.slows(Loop::Rows, at))
    }

    fn evaluation(&mut self, number: usize, id: NodeId, shape: &Shape) -> Evaluation {
        let (node, mut state) = (self.facts.of(id), self.states[number]);
        let elements = node.elements as f64;
        if state.is_stored {
            state.aligned = state.aligned.max(elements);
            state.texts_aligned = 1.0;
        }
        let evaluations = state.aligned + state.scattered;
        let mut times = if elements > 0.0 { evaluations / elements } else { 1.0 };
        let mut passes = 1;
        let is_shared = self.rows(id).is_some();
        let is_in_thread = node.fan > 1.0 && !is_shared && node.scan.is_none() && node.scatter.is_none();
        let is_hero = is_shared || is_in_thread || node.scan.is_some() || node.scatter.is_some();
        if let Some(rows) = shape.rows {
            // Once a row, however often the row's elements use it: kernels hoist what does not vary. Not what a reduction in a
            // thread combines: that is several elements of the row. (Beside products, a block has few rows.)
            let is_several =
                shape.kind != Loop::Products && state.at == At::OfRow && state.inside == Loop::Windows;
            if !state.varies && !is_several {
                times = times.min(rows.results as f64 / elements.max(1.0));
            }
            if is_shared || state.varies && state.is_stored {
                state.needed = 1 << state.stage | if is_shared { 0 } else { state.needed };
            }
            if state.varies && !is_shared && !(rows.is_kept && node.cost >= WORTH_KEEPING) {
                passes = state.needed.count_ones().max(1);
            }
        }
        if shape.is_shared_scan && state.is_prologue && node.scan.is_none() {
            passes = 2;
        }
        for &at in &self.links[state.links.0 as usize..state.links.1 as usize] {
            let before = &mut self.states[at as usize];
            before.needed |= state.needed;
            before.is_prologue |= is_hero || state.is_prologue;
        }
        // What one element after the other combines or lays down, it computes as well.
        let interleaves = self.facts.reads.reads(id).iter().any(|read| read.interleaved)
            && !self.combines_neighbours(id, shape);
        let inside = match interleaves {
            true => Loop::Steps,
            false if is_in_thread => state.inside.max(Loop::Windows),
            false => state.inside,
        };
        let role = match () {
            () if is_hero => Role::Hero,
            // Along all but short rows what is costly has a loop of its own, before that of the reduction (`nest::fission`).
            () if state.is_prologue && shape.kind == Loop::Rows && node.cost >= WORTH_KEEPING => {
                Role::Epilogue
            }
            () if state.is_prologue => Role::Prologue,
            () => Role::Epilogue,
        };
        let place = match shape.rows {
            _ if inside == Loop::Steps => {
                (Loop::Steps, if interleaves { Role::Hero } else { Role::Prologue })
            }
            _ if inside == Loop::Windows => (Loop::Windows, role),
            Some(_) if !is_shared && !state.varies => (Loop::Lanes, Role::Hero),
            _ if shape.kind == Loop::Lanes => (Loop::Lanes, Role::Hero),
            _ => (shape.kind, role),
        };
        let texts = state.texts_aligned + state.texts_scattered;
        // A loop in a part of a join has the conditions of the part, which leave out none of its steps.
        if is_in_thread && state.is_part && texts >= BRANCHES {
            times = times.max(texts);
        }
        let is_nested = is_in_thread && state.inside == Loop::Windows;
        if is_nested {
            times *= state.unshared * NESTED;
        }
        let is_in_place = shape.rows.is_none() && state.scattered == 0.0;
        Evaluation {
            times,
            passes,
            inside,
            is_far: state.is_far,
            is_windowed: state.is_windowed,
            is_merged: state.is_merged,
            is_slid: state.is_slid,
            is_part: state.is_part || is_join(self.graph, id),
            combines: is_in_thread,
            is_nested,
            unshared: state.unshared,
            place,
            reuse: node.reuse,
            is_in_place,
            texts,
        }
    }

    /// What a node reads becomes a demand for it.
    fn count_read(&mut self, work: &mut Work, read: &Read, by: &Evaluation, shape: &Shape) {
        let elements = if by.is_in_place { read.in_place } else { read.elements };
        let demand = elements as f64 * by.times;
        let demand = (demand / by.reuse).max(demand.min(self.facts.of(read.node).elements as f64));
        if read.permuted && (shape.rows.is_none() || shape.stores_rows) {
            let is_line = usize::from(shape.stores_rows || shape.is_scan);
            work.counted.transposed[is_line] += demand;
            work.operations += demand * self.facts.figures.transposed[is_line];
        }
        let is_slid = by.is_slid || by.inside == Loop::Windows && self.reads_windows(read);
        if let Some(state) = self.states.get_mut(self.place[read.node.index()] as usize) {
            state.inside = state.inside.max(by.inside);
            state.is_far |= by.is_far || read.map.is_none();
            state.is_windowed |= by.is_windowed || by.combines && !read.aligned;
            state.is_merged |= by.is_merged || read.is_merged;
            state.is_part |= by.is_part;
            state.is_slid |= is_slid;
            state.unshared = state.unshared.max(by.unshared);
            match read.aligned {
                true => {
                    state.aligned = state.aligned.max(demand);
                    state.texts_aligned = state.texts_aligned.max(by.texts);
                }
                false => {
                    state.scattered += more(&mut self.through, &mut self.touched, read, demand);
                    state.texts_scattered += more(&mut self.texts_through, &mut self.touched, read, by.texts);
                }
            }
            return;
        }
        let more = more(&mut self.through, &mut self.touched, read, demand);
        // What is computed at a gathered position reads there, from each of its operands; of windows that is counted above (`is_lone`).
        if by.is_far && by.inside != Loop::Windows && self.facts.of(read.node).elements > 1 {
            self.add(work, (Loop::Lanes, Role::Hero), more * self.facts.figures.far_read);
        }
        if let (Some(rows), Loop::Rows | Loop::Columns, false) = (shape.rows, shape.kind, shape.stores_rows)
            && self.facts.of(read.node).elements >= rows.full_elements
        {
            self.ways[usize::from(read.permuted)] += more;
        }
        if by.inside == Loop::Windows {
            work.counted.window_reads += more;
            work.operations += more * self.facts.figures.window_read;
        } else if self.facts.reads.is_computed(read.node) {
            self.add(work, (Loop::Lanes, Role::Hero), more * READ * f64::from(by.passes));
        }
        self.external.push(read.node);
        let whole = &mut self.demands[read.node.index()];
        *whole = whole.max(0.0) + more;
    }

    /// Whether a view of windows is on the way to what is read.
    fn reads_windows(&self, read: &Read) -> bool {
        let mut id = read.through;
        while id != read.node {
            match &self.graph.node(id).op {
                Op::View(View::Window { .. }) => return true,
                Op::View(_) => id = self.graph.operands(id)[0],
                _ => return false,
            }
        }
        false
    }

    fn count_bytes(&mut self, work: &mut Work, outputs: &[NodeId]) {
        let (facts, demands) = (self.facts, &mut self.demands);
        let near = facts.figures.near;
        self.external.reverse();
        self.external.retain(|&read| {
            let demand = std::mem::replace(&mut demands[read.index()], UNREAD);
            if demand < 0.0 {
                return false;
            }
            let node = facts.of(read);
            let bytes = demand.min(node.elements as f64) as u64 * node.size as u64;
            work.bytes_read += bytes;
            work.far += if node.bytes() > near { bytes } else { 0 };
            true
        });
        for &output in outputs {
            let bytes = facts.of(output).bytes();
            work.bytes_written += bytes;
            work.far += if bytes > near { bytes } else { 0 };
        }
    }
}

/// What a read adds to the demand: what is read through one view, by however many readers, is there after the first;
/// computed positions are each reader's own.
fn more(through: &mut [f64], touched: &mut Vec<NodeId>, read: &Read, demand: f64) -> f64 {
    let most = &mut through[read.through.index()];
    let more = if read.map.is_none() { demand } else { (demand - *most).max(0.0) };
    *most += more;
    touched.push(read.through);
    more
}

/// Lanes of the last vector of a line that are beyond its end, for each of its elements.
fn idle_lanes(line: usize, vector: usize) -> f64 {
    line.next_multiple_of(vector) as f64 / line as f64 - 1.0
}

/// How often the loop along the innermost axis begins.
fn turns(node: &NodeFacts) -> f64 {
    node.elements as f64 / node.inner as f64
}
