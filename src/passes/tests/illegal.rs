//! Rewrites that look right and are not: each of these expressions must come out as it went in.

use super::{all_passes, printed};
use crate::graph::NodeId;
use crate::graph::op::{ConstantRole, Op};
use crate::graph::sketch::Sketch;
use crate::{BinaryOp as B, DType, ReduceOp, Scalar, UnaryOp as U};

type Draw = fn(&mut Sketch, NodeId, NodeId) -> NodeId;

/// An expression in two f32 inputs, and who would notice.
const ILLEGAL: &[(&str, Draw)] = &[
    ("x + 0 is not x: -0", |s, x, _| with(s, B::Add, x, 0.0)),
    ("x - (-0) is not x: -0", |s, x, _| with(s, B::Sub, x, -0.0)),
    ("x * 0 is not 0: NaN, infinity, negative numbers", |s, x, _| with(s, B::Mul, x, 0.0)),
    ("0 / x is not 0: NaN, 0", |s, x, _| {
        let zero = splat(s, x, 0.0);
        s.binary(B::Div, zero, x)
    }),
    ("x - x is not 0: NaN, infinity", |s, x, _| s.binary(B::Sub, x, x)),
    ("x / x is not 1: NaN, infinity, 0", |s, x, _| s.binary(B::Div, x, x)),
    ("x == x is not true: NaN", |s, x, _| s.binary(B::Eq, x, x)),
    ("x != x is not false: NaN", |s, x, _| s.binary(B::Ne, x, x)),
    ("x <= x is not true: NaN", |s, x, _| s.binary(B::Le, x, x)),
    ("not(x < y) is not x >= y: NaN", |s, x, y| {
        let less = s.binary(B::Lt, x, y);
        s.unary(U::Not, less)
    }),
    ("(x + y) + x is not y + 2x: rounding", |s, x, y| {
        let sum = s.binary(B::Add, x, y);
        s.binary(B::Add, sum, x)
    }),
    ("(x + 1) + 2 is not x + 3: rounding", |s, x, _| {
        let sum = with(s, B::Add, x, 1.0);
        with(s, B::Add, sum, 2.0)
    }),
    ("(x * 3) * 5 is not x * 15: rounding, overflow", |s, x, _| {
        let product = with(s, B::Mul, x, 3.0);
        with(s, B::Mul, product, 5.0)
    }),
    ("x * y + x is not fma(x, y, x): rounding", |s, x, y| {
        let product = s.binary(B::Mul, x, y);
        s.binary(B::Add, product, x)
    }),
    ("(x * y) / y is not x: rounding, 0, infinity", |s, x, y| {
        let product = s.binary(B::Mul, x, y);
        s.binary(B::Div, product, y)
    }),
    ("(x + y) - y is not x: rounding, infinity", |s, x, y| {
        let sum = s.binary(B::Add, x, y);
        s.binary(B::Sub, sum, y)
    }),
    ("x / 3 is not x * (1 / 3): rounding", |s, x, _| with(s, B::Div, x, 3.0)),
    ("x / 2^127 is not x * 2^-127: no normal number", |s, x, _| with(s, B::Div, x, f64::powi(2.0, 127))),
    ("1 / (1 / x) is not x: rounding", |s, x, _| {
        let reciprocal = s.unary(U::Reciprocal, x);
        s.unary(U::Reciprocal, reciprocal)
    }),
    ("sqrt(x * x) is not abs(x): overflow", |s, x, _| {
        let square = s.unary(U::Square, x);
        s.unary(U::Sqrt, square)
    }),
    ("pow(x, 0.5) is not sqrt(x): -infinity, -0", |s, x, _| with(s, B::Pow, x, 0.5)),
    ("pow(x, 3) is not x * x * x: rounding", |s, x, _| with(s, B::Pow, x, 3.0)),
    ("abs(relu(x)) is not relu(x): -0", |s, x, _| {
        let relu = s.unary(U::Relu, x);
        s.unary(U::Abs, relu)
    }),
    ("max(x, 0) is not relu(x): -0", |s, x, _| with(s, B::Maximum, x, 0.0)),
    ("max(x, y) is not where(x > y, x, y): NaN", |s, x, y| s.binary(B::Maximum, x, y)),
    ("x as f16 as f32 is not x: rounding", |s, x, _| {
        let half = s.cast(x, DType::F16);
        s.cast(half, DType::F32)
    }),
    ("x as i32 as f32 is not trunc(x): saturation, NaN", |s, x, _| {
        let integer = s.cast(x, DType::I32);
        s.cast(integer, DType::F32)
    }),
    ("x as i64 as i32 is not x as i32: saturation", |s, x, _| {
        let long = s.cast(x, DType::I64);
        s.cast(long, DType::I32)
    }),
    ("squared deviations of single values are not 0: NaN, infinity", |s, x, _| {
        let column = s.reshape(x, [8, 1]);
        s.reduce(ReduceOp::SquaredDeviations, column, [1])
    }),
];

fn splat(s: &mut Sketch, like: NodeId, value: f64) -> NodeId {
    let (shape, value) = (s.shape(like), Scalar::from_f64(s.dtype(like), value));
    s.splat_as(value, ConstantRole::Literal, shape)
}

fn with(s: &mut Sketch, op: B, x: NodeId, value: f64) -> NodeId {
    let c = splat(s, x, value);
    s.binary(op, x, c)
}

#[test]
fn illegal_rewrites_are_not_done() {
    for (what, draw) in ILLEGAL {
        let mut s = Sketch::new();
        let (x, y) = (s.input([8], DType::F32), s.input([8], DType::F32));
        let root = draw(&mut s, x, y);
        let graph = s.outputs([root]);
        assert_eq!(printed(&all_passes(&graph)), printed(&graph), "{what}");
    }
}

#[test]
fn another_count_or_scalar_argument_is_not_another_graph() {
    let draw = |divisor: f64| {
        let mut s = Sketch::new();
        let x = s.input([8], DType::F32);
        let c = s.splat(Scalar::from_f64(DType::F32, divisor), [8]);
        let y = s.binary(B::Div, x, c);
        let result = all_passes(&s.outputs([y]));
        let ops: Vec<&str> = result.nodes().map(|id| result.node(id).op.name()).collect();
        ops
    };
    assert_eq!(draw(32.0), draw(33.0));
}

#[test]
fn an_explicit_rounding_to_16_bits_stays() {
    let mut s = Sketch::new();
    let x = s.input([8], DType::F16);
    let square = s.unary(U::Square, x);
    let rounded = s.cast(square, DType::F16);
    let wide = s.cast(square, DType::F32);
    let rounded_too = s.cast(wide, DType::F16);
    let casts = all_passes(&s.outputs([rounded, rounded_too]));
    assert_eq!(casts.nodes().filter(|&id| casts.node(id).op == Op::Cast).count(), 1);
}
