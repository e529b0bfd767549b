//! Every rule about views and reductions keeps the values. What each makes of its samples is in the file of these.

use lazuli_codegen::syntax::Cursor;

use super::{assert_same_values, printed};
use crate::graph::op::ConstantRole;
use crate::graph::sketch::Sketch;
use crate::graph::verify::verify;
use crate::graph::{Graph, NodeId, parse};
use crate::passes::canonicalise::{self, EXPAND, PAD, PERMUTE, REDUCE, RESHAPE, SLICE, WINDOW};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};

/// Samples, each under the name of the rule that it is of, and what becomes of them.
const SAMPLES: &str = include_str!("../../../tests/filetests/views.txt");

/// The names and the graphs.
fn samples() -> impl Iterator<Item = (&'static str, Graph)> {
    SAMPLES.split("---- ").skip(1).filter_map(|sample| {
        let (name, rest) = sample.split_once('\n').unwrap();
        // Others are of kernels.
        let (graph, _) = rest.split_once("==== --passes canonicalise --to graph\n")?;
        let graph = parse::graph(&mut Cursor::new(graph)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Some((name, graph.0))
    })
}

/// `sum(exp(x - kept))`.
fn exponentials(s: &mut Sketch, x: NodeId, kept: NodeId, axes: impl AsRef<[usize]>) -> NodeId {
    let shape = s.shape(x);
    let max = s.expand(kept, shape);
    let below = s.binary(BinaryOp::Sub, x, max);
    let exp = s.unary(UnaryOp::Exp, below);
    s.reduce(ReduceOp::Sum, exp, axes)
}

fn i64s(s: &mut Sketch) -> NodeId {
    s.input([2, 1, 3], DType::I64)
}

fn seven() -> Scalar {
    Scalar::from_i64(DType::I64, 7)
}

#[test]
fn every_view_rule_keeps_every_value_and_leaves_nothing_to_do() {
    for (name, before) in samples() {
        let after = canonicalise::run(&before).unwrap_or_else(|| panic!("{name} did not apply"));
        verify(&after, "after").unwrap();
        assert_same_values(&before, &after, name);
        assert!(
            canonicalise::run(&after).is_none(),
            "{name}: there is more to do after\n{}",
            printed(&after)
        );
    }
}

#[test]
fn every_view_rule_has_a_sample() {
    let tables = [&RESHAPE[..], &PERMUTE, &EXPAND, &SLICE, &PAD, &WINDOW, &REDUCE];
    for rule in tables.into_iter().flatten() {
        assert!(samples().any(|(name, _)| name == rule.name), "{}: {}", rule.name, rule.statement);
    }
}

#[test]
fn look_alikes_are_left_alone() {
    // Not all of what was scanned.
    let mut s = Sketch::new();
    let x = i64s(&mut s);
    let y = s.scan(ReduceOp::Sum, x, 2, false, false);
    let y = s.slice(y, [0, 0, 1], [1, 1, -1], [2, 1, 2]);
    assert!(canonicalise::run(&s.outputs([y])).is_none());
    let mut s = Sketch::new();
    let x = i64s(&mut s);
    let reshaped = s.reshape(x, [3, 2]);
    let permuted = s.permute(x, [2, 1, 0]);
    let expanded = s.expand(x, [2, 2, 3]);
    let cut = s.slice(expanded, [0, 0, 1], [1, 1, 1], [2, 2, 2]);
    let padded = s.pad(x, [0, 0, 1], seven(), [2, 1, 4]);
    let other = s.pad(padded, [0, 0, 1], Scalar::from_i64(DType::I64, 8), [2, 1, 5]);
    let seven = s.splat(seven(), [4]);
    let edge = s.pad(seven, [1], Scalar::from_i64(DType::I64, 8), [6]);
    let widened = s.reshape(x, [2, 1, 1, 3]);
    let widened = s.expand(widened, [2, 5, 1, 3]);
    // Some of the padding, and some of what is padded; of padding on both sides one.
    let part = s.slice(padded, [0, 0, 0], [1, 1, 1], [2, 1, 2]);
    let both = s.pad(x, [0, 0, 1], self::seven(), [2, 1, 5]);
    let end = s.slice(both, [0, 0, 4], [1, 1, 1], [2, 1, 1]);
    let graph = s.outputs([reshaped, permuted, cut, other, edge, widened, part, end]);
    assert!(canonicalise::run(&graph).is_none());
    // Some of either part of a join; and a condition that is not of positions.
    let mut s = Sketch::new();
    let (x, y) = (i64s(&mut s), i64s(&mut s));
    let truth = s.splat_as(Scalar::from_bool(true), ConstantRole::Literal, [2, 1, 2]);
    let is_first = s.pad(truth, [0, 0, 0], Scalar::from_bool(false), [2, 1, 3]);
    let joined = s.select(is_first, x, y);
    let across = s.slice(joined, [0, 0, 1], [1, 1, 1], [2, 1, 2]);
    // One part of a table that was written over.
    let inside = s.slice(joined, [0, 0, 0], [1, 1, 1], [2, 1, 2]);
    let is_less = s.binary(BinaryOp::Lt, x, y);
    let less = s.select(is_less, x, y);
    let any = s.slice(less, [0, 0, 0], [1, 1, 1], [2, 1, 1]);
    assert!(canonicalise::run(&s.outputs([across, inside, any])).is_none());
}

#[test]
fn exponentials_below_something_else_stay() {
    let mut s = Sketch::new();
    let (x, y) = (s.input([3, 3], DType::F32), s.input([3, 3], DType::F32));
    let max = |s: &mut Sketch, x: NodeId, axes: &[usize]| s.reduce(ReduceOp::Max, x, axes);
    let (rows, other) = (max(&mut s, x, &[1]), max(&mut s, y, &[1]));
    let (columns, least) = (max(&mut s, x, &[0]), s.reduce(ReduceOp::Min, x, [1]));
    let column = |s: &mut Sketch, x: NodeId| s.reshape(x, [3, 1]);
    // Each row's maximum, but along the columns; another tensor's; another reduction; a maximum of each column.
    let mut sums = vec![exponentials(&mut s, x, rows, [1])];
    for kept in [other, least, columns] {
        let kept = column(&mut s, kept);
        sums.push(exponentials(&mut s, x, kept, [1]));
    }
    let kept = column(&mut s, rows);
    sums.extend([exponentials(&mut s, x, kept, [0]), exponentials(&mut s, x, kept, [0, 1])]);
    let graph = s.outputs(sums);
    assert!(canonicalise::run(&graph).is_none(), "{}", printed(&graph));
}

#[test]
fn a_tensor_without_elements_stays_what_it_is() {
    let mut s = Sketch::new();
    let x = s.input([0, 3], DType::F32);
    let sum = s.reduce(ReduceOp::Sum, x, [0, 1]);
    let rows = s.reduce(ReduceOp::Sum, x, [1]);
    let stretched = s.expand(x, [2, 0, 3]);
    let graph = s.outputs([sum, rows, stretched]);
    let after = canonicalise::run(&graph).unwrap();
    let expected = "\
%0 = input slot=0 : f32 [0, 3]
%1 = constant 0.0 literal : f32 []  # sum
%2 = sum(%0) axes=[1] : f32 [0]
%3 = expand(%0) : f32 [2, 0, 3]
return %1, %2, %3
";
    assert_eq!(printed(&after), expected);
    assert_same_values(&graph, &after, "empty");
}
