//! Common subexpressions: the same operation on the same operands becomes one node. Random numbers
//! too: they follow from seed and element index alone.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::canonicalise::swaps_freely;
use crate::graph::op::Op;
use crate::graph::{Graph, Node, NodeId, Operands};

/// The operands of a commutative operation may come in either order; the first order recorded stays.
pub(super) fn run(graph: &Graph) -> Option<Graph> {
    let live = graph.live();
    // The first node of each value, for every node; and the nodes that are the first, by hash. Two
    // values of one hash are as good as impossible, and then the later one is merely not shared.
    let mut first: Vec<NodeId> = graph.nodes().collect();
    let mut by_hash: FxHashMap<u64, NodeId> = FxHashMap::default();
    by_hash.reserve(graph.bound());
    let mut merged = false;
    for id in graph.nodes().filter(|id| live[id.index()]) {
        let node = graph.node(id);
        let operands = operands_as(graph, id, &first);
        let found = *by_hash.entry(hash(node, &operands)).or_insert(id);
        let same = |a: &Node, b: &Node| a.op == b.op && a.shape == b.shape && a.dtype == b.dtype;
        if found != id && same(node, graph.node(found)) && operands == operands_as(graph, found, &first) {
            first[id.index()] = found;
            merged = true;
        }
    }
    if !merged {
        return None;
    }
    let mut old = graph.nodes().filter(|id| live[id.index()]);
    let mut new: Vec<Option<NodeId>> = vec![None; graph.bound()];
    Some(graph.rewrite(|result, node, operands| {
        let Some(id) = old.next() else { return result.add(node.clone(), operands) };
        let own = &mut new[first[id.index()].index()];
        *own.get_or_insert_with(|| result.add(node.clone(), operands))
    }))
}

/// The first nodes of the operands' values, in an order of their own where the order is free.
fn operands_as(graph: &Graph, id: NodeId, first: &[NodeId]) -> Operands {
    let mut operands: Operands = graph.operands(id).iter().map(|operand| first[operand.index()]).collect();
    let node = graph.node(id);
    if matches!(node.op, Op::Binary(op) if swaps_freely(op, node.dtype)) {
        operands.sort_unstable();
    }
    operands
}

fn hash(node: &Node, operands: &Operands) -> u64 {
    let mut hasher = FxHasher::default();
    (&node.op, &node.shape, node.dtype, operands).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::op::Op;
    use crate::graph::sketch::Sketch;
    use crate::graph::text::{Locations, text};
    use crate::{BinaryOp, DType, UnaryOp};

    #[test]
    fn equal_expressions_share_and_different_ones_do_not() {
        let mut s = Sketch::new();
        let x = s.input([2], DType::F32);
        let y = s.input([2], DType::F32);
        let random = [7, 7, 8].map(|seed| s.op(Op::Random { seed }, &[], [2], DType::F32));
        let sums = [(x, y), (y, x), (x, x)].map(|(a, b)| s.binary(BinaryOp::Add, a, b));
        let differences = [(x, y), (y, x)].map(|(a, b)| s.binary(BinaryOp::Sub, a, b));
        let exps = [sums[0], sums[1]].map(|sum| s.unary(UnaryOp::Exp, sum));
        let graph = s.outputs(random.into_iter().chain(sums).chain(differences).chain(exps));
        let expected = "\
%0 = input slot=0 : f32 [2]
%1 = input slot=1 : f32 [2]
%2 = random seed=7 : f32 [2]
%3 = random seed=8 : f32 [2]
%4 = add(%0, %1) : f32 [2]
%5 = add(%0, %0) : f32 [2]
%6 = sub(%0, %1) : f32 [2]
%7 = sub(%1, %0) : f32 [2]
%8 = exp(%4) : f32 [2]
return %2, %2, %3, %4, %4, %5, %6, %7, %8, %8
";
        let merged = run(&graph).unwrap();
        assert_eq!(text(&merged, Locations::Hidden), expected);
        assert!(run(&merged).is_none());
    }

    #[test]
    fn which_zero_is_larger_is_left_open() {
        let mut s = Sketch::new();
        let x = s.input([2], DType::F32);
        let y = s.input([2], DType::F32);
        let maxima = [(x, y), (y, x)].map(|(a, b)| s.binary(BinaryOp::Maximum, a, b));
        assert!(run(&s.outputs(maxima)).is_none());
    }
}
