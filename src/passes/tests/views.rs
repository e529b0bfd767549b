//! Every rule about views and reductions: what it makes of a sample, and that the values stay.

use super::{assert_same_values, printed};
use crate::graph::NodeId;
use crate::graph::sketch::Sketch;
use crate::graph::verify::verify;
use crate::passes::canonicalise::{self, EXPAND, PAD, PERMUTE, REDUCE, RESHAPE, SLICE, WINDOW};
use crate::{BinaryOp, DType, ReduceOp, Scalar, ScanOp, UnaryOp};

type Draw = fn(&mut Sketch) -> NodeId;

/// A rule's name, a sample, and the result without remarks and without its first line, which is the
/// input `%0` of shape [2, 1, 3] (i64, or f32 for reductions).
const SAMPLES: &[(&str, Draw, &str)] = &[
    (
        "reshape_to_itself",
        |s| {
            let x = i64s(s);
            s.reshape(x, [2, 1, 3])
        },
        "return %0\n",
    ),
    (
        "reshape_reshape",
        |s| {
            let x = i64s(s);
            let y = s.reshape(x, [6]);
            s.reshape(y, [3, 2])
        },
        "%1 = reshape(%0) : i64 [3, 2]\nreturn %1\n",
    ),
    (
        "reshape_reshape",
        |s| {
            let x = i64s(s);
            let y = s.reshape(x, [6]);
            s.reshape(y, [2, 1, 3])
        },
        "return %0\n",
    ),
    (
        "reshape_of_a_permute_of_ones",
        |s| {
            let x = i64s(s);
            let y = s.permute(x, [1, 0, 2]);
            s.reshape(y, [6])
        },
        "%1 = reshape(%0) : i64 [6]\nreturn %1\n",
    ),
    (
        "permute_permute",
        |s| {
            let x = i64s(s);
            let y = s.permute(x, [2, 0, 1]);
            s.permute(y, [1, 2, 0])
        },
        "return %0\n",
    ),
    (
        "permute_permute",
        |s| {
            let x = i64s(s);
            let y = s.permute(x, [2, 0, 1]);
            s.permute(y, [0, 2, 1])
        },
        "%1 = permute(%0) perm=[2, 1, 0] : i64 [3, 1, 2]\nreturn %1\n",
    ),
    (
        "permute_of_ones",
        |s| {
            let x = i64s(s);
            s.permute(x, [0, 2, 1])
        },
        "%1 = reshape(%0) : i64 [2, 3, 1]\nreturn %1\n",
    ),
    (
        "permute_of_ones",
        |s| {
            let x = i64s(s);
            s.permute(x, [0, 1, 2])
        },
        "return %0\n",
    ),
    (
        "expand_to_itself",
        |s| {
            let x = i64s(s);
            s.expand(x, [2, 1, 3])
        },
        "return %0\n",
    ),
    (
        "expand_expand",
        |s| {
            let x = i64s(s);
            let y = s.expand(x, [2, 4, 3]);
            s.expand(y, [5, 2, 4, 3])
        },
        "%1 = expand(%0) : i64 [5, 2, 4, 3]\nreturn %1\n",
    ),
    (
        "expand_of_leading_ones",
        |s| {
            let x = i64s(s);
            let y = s.reshape(x, [1, 2, 1, 3]);
            s.expand(y, [5, 2, 4, 3])
        },
        "%1 = expand(%0) : i64 [5, 2, 4, 3]\nreturn %1\n",
    ),
    (
        "expand_by_ones",
        |s| {
            let x = i64s(s);
            s.expand(x, [1, 1, 2, 1, 3])
        },
        "%1 = reshape(%0) : i64 [1, 1, 2, 1, 3]\nreturn %1\n",
    ),
    (
        "slice_of_everything",
        |s| {
            let x = i64s(s);
            s.slice(x, [0, 0, 0], [1, -1, 1], [2, 1, 3])
        },
        "return %0\n",
    ),
    (
        "slice_slice",
        |s| {
            let x = i64s(s);
            let y = s.slice(x, [1, 0, 2], [-1, 1, -1], [2, 1, 3]);
            s.slice(y, [0, 0, 0], [1, 5, 2], [2, 1, 2])
        },
        "%1 = slice(%0) starts=[1, 0, 2] steps=[-1, 1, -2] : i64 [2, 1, 2]\nreturn %1\n",
    ),
    (
        "slice_slice",
        |s| {
            let x = i64s(s);
            let y = s.slice(x, [0, 0, 2], [1, 1, -2], [2, 1, 2]);
            s.slice(y, [1, 0, 1], [3, 1, 9], [1, 0, 1])
        },
        "%1 = slice(%0) starts=[1, 0, 0] : i64 [1, 0, 1]\nreturn %1\n",
    ),
    (
        "slice_slice",
        |s| {
            let x = i64s(s);
            let y = s.slice(x, [1, 0, 2], [-1, 1, -1], [2, 1, 3]);
            s.slice(y, [1, 0, 2], [-1, 1, -1], [2, 1, 3])
        },
        "return %0\n",
    ),
    (
        "slice_of_broadcast",
        |s| {
            let x = i64s(s);
            let y = s.expand(x, [7, 2, 9, 3]);
            s.slice(y, [6, 0, 1, 0], [-2, 1, 3, 1], [4, 2, 3, 3])
        },
        "%1 = expand(%0) : i64 [4, 2, 3, 3]\nreturn %1\n",
    ),
    (
        "flip_of_scan",
        |s| {
            let x = i64s(s);
            let y = s.scan(ScanOp::Sum, x, 2, false, true);
            s.slice(y, [1, 0, 2], [-1, 1, -1], [2, 1, 3])
        },
        "%1 = slice(%0) starts=[1, 0, 2] steps=[-1, 1, -1] : i64 [2, 1, 3]\n\
         %2 = cumsum(%1) axis=2 reverse exclusive : i64 [2, 1, 3]\nreturn %2\n",
    ),
    (
        "flip_of_scan",
        |s| {
            let x = i64s(s);
            let y = s.scan(ScanOp::Max, x, 0, true, false);
            s.slice(y, [1, 0, 0], [-1, 1, 1], [2, 1, 3])
        },
        "%1 = slice(%0) starts=[1, 0, 0] steps=[-1, 1, 1] : i64 [2, 1, 3]\n\
         %2 = cummax(%1) axis=0 : i64 [2, 1, 3]\nreturn %2\n",
    ),
    (
        "pad_by_nothing",
        |s| {
            let x = i64s(s);
            s.pad(x, [0, 0, 0], seven(), [2, 1, 3])
        },
        "return %0\n",
    ),
    (
        "pad_pad",
        |s| {
            let x = i64s(s);
            let y = s.pad(x, [1, 0, 2], seven(), [4, 1, 5]);
            s.pad(y, [0, 1, 1], seven(), [4, 3, 8])
        },
        "%1 = pad(%0) before=[1, 1, 3] value=7 : i64 [4, 3, 8]\nreturn %1\n",
    ),
    (
        "window_of_one",
        |s| {
            let x = i64s(s);
            s.window(x, 2, 1, 2)
        },
        "%1 = slice(%0) starts=[0, 0, 0] steps=[1, 1, 2] : i64 [2, 1, 2]\n\
         %2 = reshape(%1) : i64 [2, 1, 2, 1]\nreturn %2\n",
    ),
    (
        "window_of_one",
        |s| {
            let x = i64s(s);
            s.window(x, 0, 1, 1)
        },
        "%1 = reshape(%0) : i64 [2, 1, 3, 1]\nreturn %1\n",
    ),
    (
        "view_of_splat",
        |s| {
            i64s(s);
            let c = s.splat(seven(), []);
            s.reshape(c, [1, 1])
        },
        SPLAT_1_1,
    ),
    (
        "view_of_splat",
        |s| {
            i64s(s);
            let c = s.splat(seven(), [4, 2]);
            s.permute(c, [1, 0])
        },
        SPLAT_2_4,
    ),
    (
        "view_of_splat",
        |s| {
            i64s(s);
            let c = s.splat(seven(), [4]);
            s.expand(c, [2, 4])
        },
        SPLAT_2_4,
    ),
    (
        "view_of_splat",
        |s| {
            i64s(s);
            let c = s.splat(seven(), [4, 9]);
            s.slice(c, [3, 0], [-2, 1], [2, 4])
        },
        SPLAT_2_4,
    ),
    (
        "view_of_splat",
        |s| {
            i64s(s);
            let c = s.splat(seven(), [5]);
            s.window(c, 0, 4, 1)
        },
        SPLAT_2_4,
    ),
    (
        "pad_of_like_splat",
        |s| {
            i64s(s);
            let c = s.splat(seven(), [1, 2]);
            s.pad(c, [1, 0], seven(), [2, 4])
        },
        SPLAT_2_4,
    ),
    (
        "reduce_single_values",
        |s| {
            let x = f32s(s);
            s.reduce(ReduceOp::Max, x, [1])
        },
        "%1 = reshape(%0) : f32 [2, 3]\nreturn %1\n",
    ),
    (
        "reduce_single_values",
        |s| {
            let x = f32s(s);
            s.reduce(ReduceOp::Prod, x, [])
        },
        "return %0\n",
    ),
    (
        "reduce_single_values",
        |s| {
            let x = f32s(s);
            s.reduce(ReduceOp::Sum, x, [1])
        },
        "%1 = reshape(%0) : f32 [2, 3]\n%2 = constant 0.0 literal : f32 []\n\
         %3 = expand(%2) : f32 [2, 3]\n%4 = add(%1, %3) : f32 [2, 3]\nreturn %4\n",
    ),
    (
        "reduce_single_values",
        |s| {
            let x = i64s(s);
            s.reduce(ReduceOp::Sum, x, [])
        },
        "return %0\n",
    ),
    (
        "reduce_nothing",
        |s| {
            let x = f32s(s);
            let none = s.slice(x, [0, 0, 0], [1, 1, 1], [2, 0, 3]);
            s.reduce(ReduceOp::Prod, none, [1])
        },
        "%0 = constant 1.0 literal : f32 []\n%1 = expand(%0) : f32 [2, 3]\nreturn %1\n",
    ),
    (
        "reduce_nothing",
        |s| {
            let x = f32s(s);
            let none = s.slice(x, [0, 0, 0], [1, 1, 1], [2, 0, 3]);
            s.reduce(ReduceOp::SquaredDeviations, none, [0, 1, 2])
        },
        "%0 = constant 0.0 literal : f32 []\nreturn %0\n",
    ),
    (
        "sum_of_exponentials",
        |s| {
            let x = s.input([29, 1, 29], DType::F32);
            let kept = s.reduce(ReduceOp::Max, x, [0]);
            exponentials(s, x, kept, [0])
        },
        "%1 = sum_exp(%0) axes=[0] : f32 [1, 29]\nreturn %1\n",
    ),
    (
        "sum_of_exponentials",
        |s| {
            let x = s.input([2, 5, 3], DType::F64);
            let max = s.reduce(ReduceOp::Max, x, [1, 2]);
            let kept = s.reshape(max, [2, 1, 1]);
            exponentials(s, x, kept, [1, 2])
        },
        "%1 = sum_exp(%0) axes=[1, 2] : f64 [2]\nreturn %1\n",
    ),
    // Not a rule, but what several of them make together.
    (
        "",
        |s| {
            let x = i64s(s);
            let y = s.permute(x, [0, 2, 1]);
            let y = s.reshape(y, [1, 2, 3]);
            let y = s.reshape(y, [1, 1, 2, 3]);
            let y = s.expand(y, [4, 1, 2, 3]);
            s.slice(y, [2, 0, 0, 0], [1, 1, 1, 1], [1, 1, 2, 3])
        },
        "%1 = reshape(%0) : i64 [1, 1, 2, 3]\nreturn %1\n",
    ),
];

const SPLAT_1_1: &str = "%0 = constant 7 argument : i64 []\n%1 = expand(%0) : i64 [1, 1]\nreturn %1\n";
const SPLAT_2_4: &str = "%0 = constant 7 argument : i64 []\n%1 = expand(%0) : i64 [2, 4]\nreturn %1\n";

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

fn f32s(s: &mut Sketch) -> NodeId {
    s.input([2, 1, 3], DType::F32)
}

fn seven() -> Scalar {
    Scalar::from_i64(DType::I64, 7)
}

#[test]
fn every_view_rule_gives_the_expected_graph_and_keeps_every_value() {
    for (name, draw, expected) in SAMPLES {
        let mut s = Sketch::new();
        let root = draw(&mut s);
        let before = s.outputs([root]);
        verify(&before, "sample").unwrap();
        let after = canonicalise::run(&before).unwrap_or_else(|| panic!("{name} did not apply"));
        verify(&after, "after").unwrap();
        let text = printed(&after);
        let lines = text.lines().filter(|line| !line.starts_with("%0 = input"));
        let shown: String = lines.flat_map(|line| [line.split("  # ").next().unwrap(), "\n"]).collect();
        assert_eq!(shown, *expected, "{name}");
        assert_same_values(&before, &after, name);
        assert!(canonicalise::run(&after).is_none(), "{name}: there is more to do after\n{text}");
    }
}

#[test]
fn every_view_rule_has_a_sample() {
    let tables = [&RESHAPE[..], &PERMUTE, &EXPAND, &SLICE, &PAD, &WINDOW, &REDUCE];
    for rule in tables.into_iter().flatten() {
        assert!(SAMPLES.iter().any(|(name, ..)| *name == rule.name), "{}: {}", rule.name, rule.statement);
    }
}

#[test]
fn look_alikes_are_left_alone() {
    // Not all of what was scanned.
    let mut s = Sketch::new();
    let x = i64s(&mut s);
    let y = s.scan(ScanOp::Sum, x, 2, false, false);
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
    let graph = s.outputs([reshaped, permuted, cut, other, edge, widened]);
    assert!(canonicalise::run(&graph).is_none());
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
