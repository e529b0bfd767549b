//! Contractions whose left factor needs reductions of its rows: attention, and layers after a normalisation. On a core a
//! block has whole rows of it, made of products if need be, reduces them, and multiplies them, or stores what they come to. On a GPU a block goes along
//! rows that a softmax makes of products once, and has parts of them.

use lazuli_codegen::schedule::{row_blocks, share};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::count::READ;
use super::{Analyser, Analysis};
use crate::fusion::contracted::varies;
use crate::fusion::cost::{Loop, Role, Work};
use crate::fusion::domain::Rows;
use crate::fusion::facts::By;
use crate::fusion::reads::Read;
use crate::graph::NodeId;
use crate::graph::domain::Hero;
use crate::graph::op::{Op, View};
use crate::{DType, ReduceOp};

/// Simple operations that packing an element is worth.
const PACKING: f64 = 20.0;

/// Rows of a block for which packing the other factors pays, if all rows are more.
const FEWEST_ROWS: u64 = 24;

/// Terms and columns of products that are not much beside what is done to the rows.
const LIGHT: usize = 256;

/// Of a node: what it follows from.
#[derive(Clone, Copy, Default)]
struct Follows {
    /// Reductions of the rows, or products that they are made of.
    rows: bool,
    /// The sum at the end.
    sum: bool,
    /// Reductions that a thread does by itself: a loop wherever they are needed, which packing does not repeat.
    loops: bool,
}

/// What the nodes of the kernel are to it.
struct Parts {
    /// Of each node.
    follows: Vec<Follows>,
    /// The sums at the end, and the products that rows are made of.
    sums: Vec<NodeId>,
    scores: Vec<NodeId>,
    /// The elements of the left factor.
    elements: usize,
}

impl Analyser<'_> {
    /// The kernel as such a contraction; `None` if it is none.
    pub(super) fn row_contraction(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Option<Analysis> {
        let (facts, graph) = (self.facts, self.graph);
        let last = nodes.iter().copied().rev().find(|&id| self.is_shared(id) && facts.of(id).is_packed)?;
        let Some(parts) = self.parts(nodes, last, true) else {
            return self.reduced_products(nodes, outputs);
        };
        let Parts { follows, sums, scores, elements } = &parts;
        if !sums.iter().all(|&sum| self.is_of_weights(nodes, &parts, sum)) || self.reads_rows(nodes, &parts) {
            return None;
        }
        let follows_sum =
            |output: &NodeId| nodes.binary_search(output).is_ok_and(|number| follows[number].sum);
        if !outputs.iter().all(|output| sums.contains(output) || follows_sum(output)) {
            return None;
        }
        let packs = facts.figures.packs;
        if !packs && !self.is_attention(nodes, sums, scores) {
            return None;
        }
        let work = match scores.is_empty() {
            // Each block reduces its rows anew.
            true => self.work_of_sums(nodes, outputs, (sums, follows), *elements),
            false => {
                let length = facts.rows(facts.of(last).rows?).length;
                let size = facts.of(graph.operands(last)[0]).size as u64;
                let of_block = share::rows_of_block(length as u64, size, scores.len() as u64);
                if sums.len() > 1
                    || self.has_several_axes(last)
                    || packs && !self.pays_for_rows(last, scores, *elements, of_block)
                {
                    return None;
                }
                let products: Vec<NodeId> = sums.iter().chain(scores).copied().collect();
                let mut work =
                    self.work_of_rows((nodes, follows), outputs, (&products, None), of_block as f64);
                // One block is one core's, while products apart are divided along their columns. What is short is one core's anyway.
                if *elements as u64 <= length as u64 * of_block {
                    let figures = &facts.figures;
                    let idle = work.operations * (figures.one_row - 1.0) - figures.alone * figures.operations;
                    work.operations += idle.max(0.0);
                }
                work
            }
        };
        let hero = Hero::Reduction(last);
        self.misfit(outputs, hero).is_none().then_some(Analysis {
            hero,
            work,
            recomputed: None,
            waits_for_rows: true,
            texts: nodes.len() as f64,
        })
    }

    /// The kernel as rows of products that are reduced, and not multiplied; `None` if it is none.
    fn reduced_products(&mut self, nodes: &[NodeId], outputs: &[NodeId]) -> Option<Analysis> {
        let facts = self.facts;
        let is_reduced = |id: &NodeId| self.is_shared(*id) && !facts.of(*id).is_packed;
        let last = nodes.iter().copied().rev().find(is_reduced).filter(|_| facts.figures.packs)?;
        let rows = *facts.rows(facts.of(last).rows?);
        let Parts { scores, follows, .. } = self.parts(nodes, last, false)?;
        if self.leaves_rows(nodes, &follows, &rows) {
            return None;
        }
        let size = facts.of(self.graph.operands(last)[0]).size as u64;
        let of_block = share::rows_of_block(rows.length as u64, size, scores.len() as u64);
        let hero = Hero::Reduction(last);
        // A contraction alone is divided along its columns as well, which few rows need.
        let fits = rows.results as u64 >= of_block * u64::from(facts.figures.processors) && of_block > 0;
        if !fits || self.misfit(outputs, hero).is_some() {
            return None;
        }
        let work =
            self.work_of_rows((nodes, &follows), outputs, (&scores, Some(rows.length)), of_block as f64);
        Some(Analysis { hero, work, recomputed: None, waits_for_rows: true, texts: nodes.len() as f64 })
    }

    /// Whether something needs what follows from rows of products at other rows than its own, for which these would be
    /// multiplied again.
    fn leaves_rows(&self, nodes: &[NodeId], follows: &[Follows], rows: &Rows) -> bool {
        let leaves = |read: &Read| {
            let Ok(at) = nodes.binary_search(&read.node) else { return false };
            let is_of_rows = follows[at].rows || self.is_shared(read.node);
            is_of_rows && !read.aligned && read.map != Some(rows.row)
        };
        nodes.iter().any(|&id| self.facts.reads.reads(id).iter().any(leaves))
    }

    /// What each node of the kernel is to the sums at the end, if there are any; `None` if some can be nothing of that.
    fn parts(&self, nodes: &[NodeId], last: NodeId, multiplies: bool) -> Option<Parts> {
        let (facts, graph) = (self.facts, self.graph);
        let of_sum = facts.of(last).rows?;
        let mut follows: Vec<Follows> = vec![Follows::default(); nodes.len()];
        let (mut sums, mut scores) = (Vec::new(), Vec::new());
        let mut elements = None;
        for (number, &id) in nodes.iter().enumerate() {
            let own = self.follows(nodes, id, &follows, &sums)?;
            follows[number] = own;
            let is_reduction = match graph.node(id).op {
                Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Random { .. } => false,
                Op::Reduce { .. } => true,
                _ => return None,
            };
            if own.sum && is_reduction {
                return None;
            }
            if !is_reduction {
                continue;
            }
            if facts.of(id).by == By::Thread {
                // What it combines would be made again for each of its elements.
                if own.rows {
                    return None;
                }
                continue;
            }
            if !self.is_shared(id) {
                return None;
            }
            if facts.of(id).is_packed && (own.rows || id == last) {
                if !multiplies || facts.of(id).is_lifted {
                    return None;
                }
                sums.push(id);
                if facts.of(id).rows != Some(of_sum) {
                    return None;
                }
                continue;
            }
            let rows = facts.rows(facts.of(id).rows?);
            let own_elements = match facts.of(id).is_packed {
                // What rows are made of is packed along one axis.
                true if own.loops || facts.of(id).is_lifted || self.has_several_axes(id) => return None,
                true => {
                    scores.push(id);
                    rows.results
                }
                false if rows.length != facts.rows(of_sum).length || !rows.is_consecutive => return None,
                false if !multiplies && (facts.of(id).rows != Some(of_sum) || self.has_several_axes(id)) => {
                    return None;
                }
                false => rows.full_elements,
            };
            if *elements.get_or_insert(own_elements) != own_elements {
                return None;
            }
        }
        Some(Parts { follows, sums, scores, elements: elements? })
    }

    /// What a node follows from; `None` if it reads what follows from a sum elsewhere than at its own position.
    fn follows(&self, nodes: &[NodeId], id: NodeId, follows: &[Follows], sums: &[NodeId]) -> Option<Follows> {
        let mut own = Follows::default();
        for read in self.facts.reads.reads(id) {
            let Ok(at) = nodes.binary_search(&read.node) else { continue };
            let Follows { rows, sum, loops } = follows[at];
            let is_sum = sums.contains(&read.node);
            own.rows |= rows || !is_sum && self.is_shared(read.node);
            own.loops |= loops || self.is_loop(read.node);
            own.sum |= sum || is_sum;
            if (sum || is_sum) && !read.aligned {
                return None;
            }
        }
        Some(own)
    }

    /// Whether a sum is of products of two factors, one of which follows from the rows' reductions, and has as many elements
    /// as what is reduced.
    fn is_of_weights(&self, nodes: &[NodeId], parts: &Parts, sum: NodeId) -> bool {
        let (facts, graph) = (self.facts, self.graph);
        let product = graph.operands(sum)[0];
        let reads = facts.reads.reads(product);
        let place = |id: NodeId| nodes.binary_search(&id).ok();
        let at = |id: NodeId| place(id).map_or(Follows::default(), |at| parts.follows[at]);
        let weights = |id: NodeId| at(id).rows && facts.of(id).elements == parts.elements;
        let is_plain = |id: NodeId| {
            let Follows { rows, loops, .. } = at(id);
            !(rows || loops || self.is_loop(id) && place(id).is_some())
        };
        let left = reads.iter().filter(|read| weights(read.node)).count();
        let right = reads.iter().filter(|read| is_plain(read.node)).count();
        place(product).is_some()
            && (left, right, reads.len()) == (1, 1, 2)
            && reads.iter().all(|read| !weights(read.node) || !read.permuted && self.is_left(sum, read))
            && graph.node(product).dtype.is_float()
    }

    /// Whether what a product reads is the same for all columns of the sum.
    fn is_left(&self, sum: NodeId, read: &Read) -> bool {
        let Op::Reduce { axes, .. } = &self.graph.node(sum).op else { return false };
        let shape = &self.graph.node(self.graph.operands(sum)[0]).shape;
        let is_result = |axis: &usize| shape[*axis] != 1 && !axes.contains(axis);
        let innermost = (0..shape.rank()).rfind(is_result);
        innermost.is_some_and(|innermost| !varies(self.graph, read.through, shape)[innermost])
    }

    /// Whether what follows from a sum reads elements of rows that are made of products. A block has these along its rows, and
    /// not where the results are: it would compute them again.
    fn reads_rows(&self, nodes: &[NodeId], parts: &Parts) -> bool {
        let (facts, Parts { follows, sums, scores, elements }) = (self.facts, parts);
        let is_element = |read: &Read| {
            let Ok(at) = nodes.binary_search(&read.node) else { return false };
            let of_rows = follows[at].rows || scores.contains(&read.node);
            let is_after = follows[at].sum || sums.contains(&read.node);
            of_rows && !is_after && facts.of(read.node).elements >= *elements
        };
        let after = nodes.iter().zip(follows).filter(|(_, follows)| follows.sum);
        let mut reads = after.flat_map(|(&id, _)| facts.reads.reads(id));
        !scores.is_empty() && reads.any(is_element)
    }

    fn is_shared(&self, id: NodeId) -> bool {
        self.facts.of(id).rows.is_some() && self.facts.of(id).by == By::Threads
    }

    fn is_loop(&self, id: NodeId) -> bool {
        matches!(self.graph.node(id).op, Op::Reduce { .. }) && self.facts.of(id).by == By::Thread
    }

    fn has_several_axes(&self, id: NodeId) -> bool {
        let Op::Reduce { axes, .. } = &self.graph.node(id).op else { return false };
        let shape = &self.graph.node(self.graph.operands(id)[0]).shape;
        axes.iter().filter(|&&axis| shape[axis] != 1).count() > 1
    }

    /// Whether a GPU goes along the rows once: a softmax of products in 32 bits, with few columns.
    fn is_attention(&self, nodes: &[NodeId], sums: &[NodeId], scores: &[NodeId]) -> bool {
        let (facts, graph) = (self.facts, self.graph);
        let (&[sum], &[score]) = (sums, scores) else { return false };
        let is_other = |id: &NodeId| facts.of(*id).by == By::Threads && ![sum, score].contains(id);
        let mut found = (None, None);
        for &id in nodes.iter().filter(|id| matches!(graph.node(**id).op, Op::Reduce { .. }) && is_other(id))
        {
            let Op::Reduce { op, .. } = graph.node(id).op else { continue };
            let place = match op {
                ReduceOp::Max => &mut found.0,
                ReduceOp::SumExp => &mut found.1,
                _ => return false,
            };
            if place.replace(graph.operands(id)[0]).is_some() {
                return false;
            }
        }
        let product = graph.operands(sum)[0];
        let columns = graph.node(sum).shape.last().copied().unwrap_or(1);
        let is_wide = |id: NodeId| graph.node(id).dtype == DType::F32;
        let of_score = graph.operands(score)[0];
        matches!(found, (Some(a), Some(b)) if a == b)
            && columns <= share::MOST_ATTENTION_COLUMNS
            && is_wide(product)
            && is_wide(of_score)
    }

    /// Whether a block's rows are enough for packing the other factors again.
    fn pays_for_rows(&self, sum: NodeId, scores: &[NodeId], elements: usize, of_block: u64) -> bool {
        let facts = self.facts;
        let product = self.graph.operands(sum)[0];
        let factors = facts.reads.reads(product).iter().map(|read| facts.of(read.node).elements);
        let others = factors.filter(|&own| own != elements).max().unwrap_or(elements);
        let rows = facts.of(product).elements / others.max(1);
        let columns = facts.of(product).elements / elements.max(1);
        let terms = scores.iter().map(|&id| facts.of(id).fan as usize).max();
        // A block of fewer rows packs the other factors again, which long sums do not make up for.
        let packs_again = columns <= LIGHT && terms.is_none_or(|terms| terms <= LIGHT);
        of_block > 0 && (rows as u64 <= of_block || of_block >= FEWEST_ROWS && packs_again)
    }

    /// Sums of products alone, each block of which reduces its rows before it packs them, and both for each of the blocks
    /// side by side.
    fn work_of_sums(
        &mut self,
        nodes: &[NodeId],
        outputs: &[NodeId],
        (sums, follows): (&[NodeId], &[Follows]),
        elements: usize,
    ) -> Work {
        let facts = self.facts;
        let mut work = Work::default();
        let Some(&last) = sums.last() else { return work };
        let product = self.graph.operands(last)[0];
        let (of_product, terms) = (facts.of(product).elements, facts.of(last).fan as usize);
        let factors = facts.reads.reads(product).iter().map(|read| facts.of(read.node).elements);
        let right = factors.filter(|&own| own != elements).max().unwrap_or(elements).max(1);
        let columns = (of_product / elements.max(1)) as u64;
        let rows = of_product / right;
        let batch = elements / terms.max(1) / rows.max(1);
        let [rows, terms, batch] = [rows, terms, batch.max(1)].map(|extent| extent as u64);
        let size = facts.of(last).size as u64;
        let [rows_each, columns_each] = row_blocks::reduced_block(batch, [rows, columns], terms, size);
        let often = columns.div_ceil(columns_each.max(1)) as f64;
        if columns_each >= columns {
            // Such blocks have fewer rows than others, and so pack the columns more often.
            let again = rows.div_ceil(rows_each.max(1)).saturating_sub(rows.div_ceil(share::ROWS));
            self.add(&mut work, (Loop::Lanes, Role::Hero), right as f64 * again as f64 * PACKING);
        }
        for (&id, follows) in nodes.iter().zip(follows) {
            let node = facts.of(id);
            let is_factor = facts.reads.users(id).iter().any(|user| sums.contains(user));
            let (place, times) = match (sums.contains(&id), is_factor) {
                (true, _) => ((Loop::Products, Role::Hero), 1.0),
                (_, true) => ((Loop::Products, Role::Prologue), 1.0),
                _ if follows.sum => ((Loop::Lanes, Role::Hero), 1.0),
                _ => ((Loop::Lanes, Role::Hero), often),
            };
            self.add(&mut work, place, node.elements as f64 * node.fan * node.cost * times);
        }
        self.add_reads(&mut work, (nodes, follows), sums);
        self.bytes_of_rows(&mut work, nodes, outputs);
        work
    }

    /// What would be stored is read as often apart: once for all products of it. What does not follow from the rows is as well
    /// computed there, such as numbers of 16 bits made wider.
    fn add_reads(&self, work: &mut Work, (nodes, follows): (&[NodeId], &[Follows]), sums: &[NodeId]) {
        let facts = self.facts;
        let prologue = facts.figures.loops[Loop::Products as usize][Role::Prologue as usize];
        let mut seen: SmallVec<[NodeId; 4]> = SmallVec::new();
        for &sum in sums {
            let product = self.graph.operands(sum)[0];
            for read in facts.reads.reads(product) {
                if facts.reads.is_computed(read.node) && !seen.contains(&read.node) {
                    seen.push(read.node);
                    let is_stored =
                        nodes.binary_search(&read.node).map_or(true, |number| follows[number].rows);
                    let each = match is_stored {
                        true => READ,
                        false => READ.min(facts.of(read.node).cost * prologue),
                    };
                    self.add(work, (Loop::Lanes, Role::Hero), facts.of(product).elements as f64 * each);
                }
            }
        }
    }

    /// Rows are computed once. Of rows that are not multiplied the length is given: it tells their factors apart.
    fn work_of_rows(
        &mut self,
        (nodes, follows): (&[NodeId], &[Follows]),
        outputs: &[NodeId],
        (products, length): (&[NodeId], Option<usize>),
        of_block: f64,
    ) -> Work {
        let facts = self.facts;
        let mut work = Work::default();
        let mut factors: SmallVec<[(NodeId, f64); 4]> = SmallVec::new();
        for &sum in products {
            let product = self.graph.operands(sum)[0];
            let reads = facts.reads.reads(product);
            factors.extend(reads.iter().map(|read| (read.node, 1.0)));
            if !facts.figures.packs {
                continue;
            }
            // Blocks of fewer rows than a contraction has pack the other factor more often.
            let left = length.map(|length| facts.of(product).elements / length.max(1));
            let elements = reads.iter().map(|read| facts.of(read.node).elements);
            let packed = elements.filter(|&own| left != Some(own)).max().or(left).unwrap_or(1).max(1);
            let rows = facts.of(product).elements as f64 / packed as f64;
            let often = ((rows / of_block).max(1.0) - (rows / share::ROWS as f64).max(1.0)).max(0.0);
            self.add(&mut work, (Loop::Lanes, Role::Hero), packed as f64 * often * PACKING);
            let follows_rows = |id| nodes.binary_search(&id).is_ok_and(|number| follows[number].rows);
            let is_packed = |id: NodeId| facts.of(id).elements == packed && !follows_rows(id);
            let right = factors.iter_mut().rev().find(|(factor, _)| is_packed(*factor));
            right.into_iter().for_each(|(_, times)| *times += often);
            self.add_reads(&mut work, (nodes, follows), &[sum]);
        }
        let times = self.times(nodes, &factors);
        for (&id, times) in nodes.iter().zip(times) {
            let node = facts.of(id);
            // As apart: what decides is what this kernel does otherwise.
            let feeds = self.is_product(id);
            let place = match (node.is_packed, feeds, node.rows.is_some()) {
                (true, ..) => (Loop::Products, Role::Hero),
                (_, true, _) => (Loop::Products, Role::Prologue),
                (_, _, true) => (Loop::Rows, Role::Hero),
                _ => (Loop::Lanes, Role::Hero),
            };
            self.add(&mut work, place, node.elements as f64 * node.fan * node.cost * times);
            // What factors are computed from across the lines of memory takes a line an element, each time they are packed again.
            let is_permuted = |read: &&Read| read.permuted && times > 1.0 && !self.is_product(id);
            for read in facts.reads.reads(id).iter().filter(is_permuted) {
                let again = read.elements as f64 * (times - 1.0);
                work.counted.transposed[1] += again;
                work.operations += again * facts.figures.transposed[1];
            }
        }
        self.bytes_of_rows(&mut work, nodes, outputs);
        work
    }

    fn is_product(&self, id: NodeId) -> bool {
        self.facts.reads.users(id).iter().any(|&user| self.facts.of(user).is_packed)
    }

    /// How often each element of the nodes is computed: once, but what is brought in as a factor as often as it is packed, and what
    /// that is made of wherever it is read. What is the same along its reader's innermost axis is computed before that loop, and
    /// what follows from reductions once a row.
    fn times(&self, nodes: &[NodeId], factors: &[(NodeId, f64)]) -> Vec<f64> {
        let facts = self.facts;
        let mut times = vec![1.0; nodes.len()];
        let (mut aligned, mut scattered) = (vec![0.0f64; nodes.len()], vec![0.0; nodes.len()]);
        // Who reads through the same view reads the same elements.
        let mut through: FxHashMap<NodeId, f64> = FxHashMap::default();
        for (number, &id) in nodes.iter().enumerate().rev() {
            let node = facts.of(id);
            if facts.reads.users(id).iter().any(|&user| facts.of(user).is_packed) {
                continue;
            }
            if node.rows.is_none() {
                let packed = factors.iter().filter(|(factor, _)| *factor == id).map(|(_, times)| *times);
                let read = (aligned[number] + scattered[number]) / (node.elements as f64).max(1.0);
                times[number] = packed.fold(read.max(1.0), f64::max);
            }
            for read in facts.reads.reads(id).iter().filter(|read| !self.is_same_along_rows(id, read)) {
                let Ok(at) = nodes.binary_search(&read.node) else { continue };
                let demand = read.elements as f64 * times[number];
                if read.aligned {
                    aligned[at] = aligned[at].max(demand);
                } else {
                    let most = through.entry(read.through).or_insert(0.0);
                    scattered[at] += (demand - *most).max(0.0);
                    *most = most.max(demand);
                }
            }
        }
        times
    }

    /// Whether the reader's neighbours along its innermost axis read the same element.
    fn is_same_along_rows(&self, reader: NodeId, read: &Read) -> bool {
        let last = |id: NodeId| self.graph.node(id).shape.last().copied().unwrap_or(1);
        let is_expanded = matches!(self.graph.node(read.through).op, Op::View(View::Expand));
        is_expanded && last(self.graph.operands(read.through)[0]) == 1 && last(reader) > 1
    }

    /// What is read and stored, each once.
    fn bytes_of_rows(&mut self, work: &mut Work, nodes: &[NodeId], outputs: &[NodeId]) {
        let facts = self.facts;
        for read in nodes.iter().flat_map(|&id| facts.reads.reads(id)) {
            if nodes.binary_search(&read.node).is_err() && !self.external.contains(&read.node) {
                self.external.push(read.node);
            }
        }
        for &id in self.external.iter().chain(outputs) {
            let bytes = facts.of(id).bytes();
            work.far += if bytes > facts.figures.near { bytes } else { 0 };
        }
        work.bytes_read = self.external.iter().map(|&id| facts.of(id).bytes()).sum();
        work.bytes_written = outputs.iter().map(|&id| facts.of(id).bytes()).sum();
    }
}
