//! The work of a kernel: how often each node is evaluated and in which loop, what is read, and what is stored.

use lazuli_codegen::cost::WORTH_KEEPING;

use super::{Analyser, Analysis, UNREAD};
use crate::fusion::cost::{LOOPS, Loop, Work};
use crate::fusion::domain::Rows;
use crate::fusion::facts::NodeFacts;
use crate::fusion::group::Recomputed;
use crate::fusion::reads::Read;
use crate::graph::NodeId;

/// Simple operations that reading an element is worth, which another kernel has stored instead of computing it here.
const READ: f64 = 1.0;

/// What a kernel goes over.
struct Shape<'a> {
    rows: Option<&'a Rows>,
    /// Of a scan, whether it is along the innermost axis.
    along_scan: Option<bool>,
    /// Rows of results are stored as they are computed; what is read or stored across them takes a line an element.
    stores_rows: bool,
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
    kind: Loop,
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
        let shape = Shape { rows, along_scan: scan.map(|scan| scan.is_innermost()), stores_rows };
        let Analysis { work, recomputed, .. } = analysis;
        // Whether what is read is not one with what is stored, so that the innermost axis has a loop of its own.
        let mut apart = false;
        for (number, &id) in nodes.iter().enumerate().rev() {
            let node = facts.of(id);
            let evaluation = self.evaluation(number, id, &shape);
            let Evaluation { times, passes, kind, .. } = evaluation;
            let (each, repeated) = (node.elements as f64 * node.fan * node.cost, times * f64::from(passes));
            self.add(work, kind, each * repeated);
            let again = each * (repeated - 1.0) * facts.figures.loops[kind as usize];
            if repeated > 1.001 && again > recomputed.map_or(0.0, |most: Recomputed| most.operations) {
                let value = self.graph.node(id).origin;
                *recomputed = Some(Recomputed { value, times: repeated, operations: again });
            }
            for read in facts.reads.reads(id) {
                apart |= !read.aligned && facts.of(read.node).elements > 1;
                self.count_read(work, read, &evaluation, &shape);
            }
        }
        if rows.is_none() && apart {
            let begun = outputs.iter().map(|&id| turns(facts.of(id))).fold(0.0, f64::max);
            work.counted[LOOPS + 1] += begun;
            work.operations += begun * facts.figures.turn;
        }
        self.count_bytes(work, outputs);
    }

    fn add(&self, work: &mut Work, kind: Loop, operations: f64) {
        work.counted[kind as usize] += operations;
        work.operations += operations * self.facts.figures.loops[kind as usize];
    }

    fn evaluation(&mut self, number: usize, id: NodeId, shape: &Shape) -> Evaluation {
        let (node, mut state) = (self.facts.of(id), self.states[number]);
        let elements = node.elements as f64;
        if state.is_stored {
            state.aligned = state.aligned.max(elements);
        }
        let evaluations = state.aligned + state.scattered;
        let mut times = if elements > 0.0 { evaluations / elements } else { 1.0 };
        let mut passes = 1;
        let is_shared = self.rows(id).is_some();
        if let Some(rows) = shape.rows {
            if !state.varies {
                // Once a row, however often the row's elements use it: kernels hoist what does not vary.
                times = times.min(rows.results as f64 / elements.max(1.0));
            }
            if is_shared || state.varies && state.is_stored {
                state.needed = 1 << state.stage | if is_shared { 0 } else { state.needed };
            }
            if state.varies && !is_shared && !(rows.is_kept && node.cost >= WORTH_KEEPING) {
                passes = state.needed.count_ones().max(1);
            }
            for &at in &self.links[state.links.0 as usize..state.links.1 as usize] {
                let before = &mut self.states[at as usize];
                before.needed |= state.needed;
                before.is_reduced |= is_shared || state.is_reduced;
            }
        }
        // What one element after the other combines or lays down, it computes as well.
        let interleaves = self.facts.reads.reads(id).iter().any(|read| read.interleaved);
        let is_in_thread = node.fan > 1.0 && !is_shared && node.scan.is_none();
        let inside = match node.scatter.is_some() || interleaves {
            true => Loop::Steps,
            false if is_in_thread => state.inside.max(Loop::Windows),
            false => state.inside,
        };
        let varies = is_shared || state.varies;
        let kind = match (shape.rows, shape.along_scan) {
            _ if inside > Loop::Columns => inside,
            (Some(_), _) if !varies => Loop::Lanes,
            (Some(rows), _) if !rows.is_consecutive => Loop::Columns,
            // The last pass, which stores results, is a loop as any other.
            // What is kept of a row is computed once, in lanes: measured, within 7 % of a loop of its own or faster.
            (Some(rows), _) if !is_shared && rows.is_kept && node.cost >= WORTH_KEEPING => Loop::Lanes,
            (Some(_), _) if is_shared || state.is_reduced => Loop::Rows,
            // Scans compute what surrounds them a stretch at a time, or in lanes across columns.
            (_, Some(true)) if node.scan.is_some() => Loop::Steps,
            (_, Some(false)) if node.scan.is_some() => Loop::Columns,
            _ => Loop::Lanes,
        };
        Evaluation { times, passes, inside, kind }
    }

    /// What a node reads becomes a demand for it.
    fn count_read(&mut self, work: &mut Work, read: &Read, by: &Evaluation, shape: &Shape) {
        let demand = read.elements as f64 * by.times;
        if read.permuted && (shape.rows.is_none() || shape.stores_rows) {
            let is_line = shape.stores_rows || shape.along_scan.is_some();
            work.counted[LOOPS] += demand;
            work.operations += demand * self.facts.figures.transposed[usize::from(is_line)];
        }
        if let Some(state) = self.states.get_mut(self.place[read.node.index()] as usize) {
            state.inside = state.inside.max(by.inside);
            match read.aligned {
                true => state.aligned = state.aligned.max(demand),
                false => state.scattered += more(&mut self.through, &mut self.touched, read, demand),
            }
            return;
        }
        let more = more(&mut self.through, &mut self.touched, read, demand);
        if self.facts.reads.is_computed(read.node) {
            self.add(work, by.kind, more * READ * f64::from(by.passes));
        }
        self.external.push(read.node);
        let whole = &mut self.demands[read.node.index()];
        *whole = whole.max(0.0) + more;
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

/// How often the loop along the innermost axis begins.
fn turns(node: &NodeFacts) -> f64 {
    node.elements as f64 / node.inner as f64
}
