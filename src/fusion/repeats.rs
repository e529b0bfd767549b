//! What comes many times in a program, as the operations of a recurrence's steps or of a model's layers do.
//!
//! A kernel of some steps is the kernel of the next ones, whose text is emitted and compiled once, as long as it ends where
//! steps end. The search for merges knows nothing of steps: left alone, it fills kernels to their limits, each with another
//! part of a step at its ends, and each of another text. So a kernel has at most so many operations of each kind.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::cost::operation_cost;
use super::group::{MAX_NODES, TooMany};
use super::reads::{Reads, is_join};
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};

/// What comes fewer times is left to the search: its kernels are few texts anyway.
const LEAST: u32 = 16;

/// Bytes of a result from which what lies between two kernels costs more than the launch. There kernels are as large as they
/// can be.
const LARGE_BYTES: usize = 1 << 16;

/// Simple operations of a kernel elsewhere, about: a C compiler takes 100 ms for its text.
const SMALL_TEXT: f64 = 64.0;

/// Simple operations that the text of a function is as long as, such as a sine; and what operations cost that are functions, at
/// least ([`operation_cost`]).
const TEXT_OF_FUNCTION: f64 = 4.0;
const FUNCTION: f64 = 6.0;

/// Generations of operands that tell kinds apart.
const GENERATIONS: usize = 2;

/// Generations of operands and users in which operations of a kind must be alike, most of them and at least so many: else no two
/// kernels would have the same of them, however few each had.
const SURROUNDINGS: usize = 8;
const ALIKE: u32 = LEAST / 2;

/// Operations of no such kind.
const NONE: u32 = u32::MAX;

/// Operations of the same kind.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// How often it comes.
    times: u32,
    /// How many a kernel has at most.
    most: u32,
}

/// The kinds of operations that come many times.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    kinds: Vec<Kind>,
    /// By node; empty if there is none.
    kind_of: Vec<u32>,
}

impl Repeats {
    pub(super) fn of(graph: &Graph, reads: &Reads) -> Repeats {
        let mut computed: Vec<NodeId> = graph.nodes().filter(|&id| reads.is_computed(id)).collect();
        // What could be one kernel is left to the search: formulas have such loops, too.
        if computed.len() <= MAX_NODES {
            return Repeats::default();
        }
        // The parts of a join are a loop over a table.
        let mut is_joined = vec![false; graph.bound()];
        for &id in computed.iter().rev() {
            let joins = matches!(reads.users(id), [user] if is_joined[user.index()]);
            is_joined[id.index()] = joins || is_join(graph, id);
        }
        computed.retain(|id| !is_joined[id.index()]);
        let hashes = hashes(graph);
        let mut times: FxHashMap<u64, (u32, f64)> = FxHashMap::default();
        for &id in &computed {
            let (times, text) = times.entry(hashes[id.index()]).or_default();
            *times += 1;
            *text += text_of(&graph.node(id).op);
        }
        times.retain(|_, (times, _)| *times >= LEAST);
        if times.is_empty() {
            return Repeats::default();
        }
        let alike = alike(graph, &computed, &hashes);
        times.retain(|kind, (times, _)| 2 * alike.get(kind).copied().unwrap_or(0) >= *times);
        let texts = Texts::of(times.values().copied().collect());
        let mut repeats = Repeats { kinds: Vec::new(), kind_of: vec![NONE; graph.bound()] };
        let mut number_of: FxHashMap<u64, u32> = FxHashMap::default();
        for &id in &computed {
            let hash = hashes[id.index()];
            let Some(&(times, _)) = times.get(&hash) else { continue };
            repeats.kind_of[id.index()] = *number_of.entry(hash).or_insert_with(|| {
                let node = graph.node(id);
                let bytes = node.shape.elements().saturating_mul(node.dtype.size());
                let text = if bytes < LARGE_BYTES { SMALL_TEXT } else { MAX_NODES as f64 };
                let most = (text / texts.of_step(times)).max(1.0) as u32;
                repeats.kinds.push(Kind { times, most });
                repeats.kinds.len() as u32 - 1
            });
        }
        if repeats.kinds.is_empty() { Repeats::default() } else { repeats }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// How many of these nodes, a region of steps, are the whole steps that a kernel has at most; `None` if most of them come a
    /// few times. A step has once what comes least often, and other kinds several times.
    pub(super) fn of_kernel(&self, nodes: &[NodeId]) -> Option<usize> {
        let kinds = || nodes.iter().filter_map(|id| self.kinds.get(*self.kind_of.get(id.index())? as usize));
        let Kind { times, most } = *kinds().min_by_key(|kind| kind.times)?;
        let step = (nodes.len() as f64 / f64::from(times)).round().max(1.0);
        (2 * kinds().count() > nodes.len()).then_some(most as usize * step as usize)
    }

    /// What a kernel of these nodes would have too many of; a node that is named twice counts once.
    pub(super) fn too_many(&self, graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> Option<TooMany> {
        if self.is_empty() {
            return None;
        }
        let of_kind = |id: NodeId| Some((self.kind_of[id.index()], id)).filter(|&(kind, _)| kind != NONE);
        let mut all: SmallVec<[(u32, NodeId); 64]> = nodes.into_iter().filter_map(of_kind).collect();
        all.sort_unstable();
        all.dedup();
        all.chunk_by(|(a, _), (b, _)| a == b).find_map(|alike| {
            let &(kind, id) = alike.first()?;
            let Kind { times, most } = self.kinds[kind as usize];
            let called = graph.node(id).called();
            (alike.len() > most as usize).then_some(TooMany { called, times, most })
        })
    }
}

/// How long an operation's text is, in simple operations.
fn text_of(op: &Op) -> f64 {
    if operation_cost(op) >= FUNCTION { TEXT_OF_FUNCTION } else { 1.0 }
}

/// How long the text of all kinds is, by how often they come.
struct Texts {
    /// How often a kind comes, ascending, and the text of all kinds that come so often or less.
    sums: Vec<(u32, f64)>,
}

impl Texts {
    fn of(mut kinds: Vec<(u32, f64)>) -> Texts {
        kinds.sort_by(|(times, text), (other, its)| times.cmp(other).then(text.total_cmp(its)));
        let mut sum = 0.0;
        kinds.iter_mut().for_each(|(_, text)| {
            sum += *text;
            *text = sum;
        });
        Texts { sums: kinds }
    }

    /// The text of one of so many steps: of the kinds that come about as often, half as often to twice.
    fn of_step(&self, steps: u32) -> f64 {
        let up_to = |times: u32| match self.sums.partition_point(|(other, _)| *other <= times) {
            0 => 0.0,
            count => self.sums[count - 1].1,
        };
        let all = up_to(steps.saturating_mul(2)) - up_to(steps / 2);
        (all / f64::from(steps)).round().max(1.0)
    }
}

/// Of each kind, by its hash, how many operations have [`ALIKE`] with the same surroundings.
fn alike(graph: &Graph, computed: &[NodeId], kinds: &[u64]) -> FxHashMap<u64, u32> {
    let around = (0..SURROUNDINGS).fold(kinds.to_vec(), |before, _| {
        let mut users = vec![0_u64; graph.bound()];
        for id in graph.nodes() {
            let own = before[id.index()];
            graph.operands(id).iter().for_each(|operand| {
                let sum = &mut users[operand.index()];
                *sum = sum.wrapping_add(own);
            });
        }
        let with_neighbours = graph.nodes().map(|id| {
            let mut hasher = FxHasher::default();
            (before[id.index()], users[id.index()]).hash(&mut hasher);
            graph.operands(id).iter().for_each(|operand| before[operand.index()].hash(&mut hasher));
            hasher.finish()
        });
        with_neighbours.collect()
    });
    let mut times: FxHashMap<u64, u32> = FxHashMap::default();
    computed.iter().for_each(|id| *times.entry(around[id.index()]).or_default() += 1);
    let mut alike = FxHashMap::default();
    for id in computed.iter().filter(|id| times.get(&around[id.index()]).is_some_and(|times| *times >= ALIKE))
    {
        *alike.entry(kinds[id.index()]).or_default() += 1;
    }
    alike
}

/// By node, a hash of the operation, its result's shape and dtype, and those of its operands, [`GENERATIONS`] back: what kinds are told
/// apart by.
fn hashes(graph: &Graph) -> Vec<u64> {
    let own: Vec<u64> = graph
        .nodes()
        .map(|id| {
            let node = graph.node(id);
            let mut hasher = FxHasher::default();
            (std::mem::discriminant(&node.op), node.called(), node.dtype, &node.shape).hash(&mut hasher);
            hasher.finish()
        })
        .collect();
    (0..GENERATIONS).fold(own.clone(), |before, _| {
        let with_operands = graph.nodes().map(|id| {
            let mut hasher = FxHasher::default();
            own[id.index()].hash(&mut hasher);
            graph.operands(id).iter().for_each(|operand| before[operand.index()].hash(&mut hasher));
            hasher.finish()
        });
        with_operands.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, UnaryOp};

    const OPS: [[UnaryOp; 2]; 7] = [
        [UnaryOp::Exp, UnaryOp::Sin],
        [UnaryOp::Abs, UnaryOp::Square],
        [UnaryOp::Log, UnaryOp::Tanh],
        [UnaryOp::Neg, UnaryOp::Relu],
        [UnaryOp::Erf, UnaryOp::Cos],
        [UnaryOp::Sqrt, UnaryOp::Floor],
        [UnaryOp::Atan, UnaryOp::Ceil],
    ];

    fn repeats(sketch: &Sketch, outputs: Vec<NodeId>) -> Repeats {
        let graph = sketch.outputs(outputs);
        Repeats::of(&graph, &Reads::new(&graph, false))
    }

    #[test]
    fn what_differs_around_is_no_step() {
        // Every operation comes 64 times, and each chain once.
        let mut s = Sketch::new();
        let x = s.input([100], DType::F32);
        let chain = |n: usize| (0..7).fold(x, |y, bit| s.unary(OPS[bit][(n >> bit) & 1], y));
        let outputs = (0..128).map(chain).collect();
        assert!(repeats(&s, outputs).is_empty());
    }

    #[test]
    fn steps_are() {
        let mut s = Sketch::new();
        let (x, w) = (s.input([100], DType::F32), s.input([100], DType::F32));
        let step = |h: NodeId, _| {
            let y = s.binary(BinaryOp::Mul, h, w);
            let y = s.unary(UnaryOp::Tanh, y);
            let y = s.binary(BinaryOp::Add, y, x);
            s.unary(UnaryOp::Sin, y)
        };
        let last = (0..80).fold(x, step);
        let repeats = repeats(&s, vec![last]);
        assert!(repeats.kinds.iter().all(|kind| kind.times > 70 && kind.most < 10), "{repeats:?}");
        assert_eq!(repeats.kinds.len(), 4);
    }
}
