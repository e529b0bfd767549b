//! Every law of `simplify` and every pointwise rule of `canonicalise`: it applies where it should,
//! and the values stay, for all pairs of special values at every dtype.

use super::{assert_same_values, specials};
use crate::graph::op::ConstantRole;
use crate::graph::sketch::Sketch;
use crate::graph::verify::verify;
use crate::graph::{Graph, NodeId};
use crate::passes::rule::{Rule, Site};
use crate::passes::{canonicalise, simplify};
use crate::{BinaryOp as B, DType, Scalar, UnaryOp as U};

/// Draws graphs that a law applies to; x and y are inputs of one dtype.
type Draw = fn(&mut Sketch, NodeId, NodeId) -> Vec<NodeId>;

/// A law's name and what it is to be tried on. Expressions that a dtype does not have are skipped.
const SAMPLES: &[(&str, Draw)] = &[
    ("involution", |s, x, _| {
        each(&[U::Neg, U::Not, U::BitNot], |op| [op, op].iter().fold(x, |x, &op| s.unary(op, x)))
    }),
    ("idempotence", |s, x, _| {
        each(&[U::Abs, U::Relu, U::Sign], |op| [op, op].iter().fold(x, |x, &op| s.unary(op, x)))
    }),
    ("round_of_integral", |s, x, _| {
        let all = [U::Floor, U::Ceil, U::Round, U::Trunc];
        each(&all, |inner| each(&all, |outer| [inner, outer].iter().fold(x, |x, &op| s.unary(op, x))))
            .concat()
    }),
    ("even_of_neg", |s, x, _| {
        let pairs = [[U::Neg, U::Abs], [U::Neg, U::Square], [U::Abs, U::Square]];
        each(&pairs, |pair| pair.iter().fold(x, |x, &op| s.unary(op, x)))
    }),
    ("not_of_equality", |s, x, y| each(&[B::Eq, B::Ne], |op| not_of(s, op, x, y))),
    ("not_of_order", |s, x, y| each(&[B::Lt, B::Le, B::Gt, B::Ge], |op| not_of(s, op, x, y))),
    ("add_neutral", |s, x, _| each(&[-0.0, 0.0], |c| with(s, B::Add, x, c))),
    ("add_neg", |s, x, y| {
        let (neg_x, neg_y) = (s.unary(U::Neg, x), s.unary(U::Neg, y));
        vec![s.binary(B::Add, x, neg_y), s.binary(B::Add, neg_x, y), s.binary(B::Add, neg_x, neg_y)]
    }),
    ("sub_zero", |s, x, _| each(&[0.0, -0.0], |c| with(s, B::Sub, x, c))),
    ("sub_neg", |s, x, y| {
        let neg_y = s.unary(U::Neg, y);
        vec![s.binary(B::Sub, x, neg_y)]
    }),
    ("sub_itself", |s, x, _| vec![s.binary(B::Sub, x, x)]),
    ("mul_one", |s, x, _| vec![with(s, B::Mul, x, 1.0)]),
    ("mul_minus_one", |s, x, _| each(&[-1.0, 255.0], |c| with(s, B::Mul, x, c))),
    ("mul_zero", |s, x, _| vec![with(s, B::Mul, x, 0.0)]),
    ("div_one", |s, x, _| vec![with(s, B::Div, x, 1.0)]),
    ("div_power_of_two", |s, x, _| {
        let divisors = [2.0, -4.0, 0.25, 1.0 / 16384.0, 32768.0, 3.0, 1.7e38, 0.0, f64::INFINITY, 1e-45];
        let powers =
            [-149, -127, -126, -125, 125, 126, 127, -1022, 1023, -14, 14, 15].map(|k| f64::powi(2.0, k));
        each(&[divisors.as_slice(), powers.as_slice()].concat(), |c| with(s, B::Div, x, c))
    }),
    ("pow_zero", |s, x, _| each(&[0.0, -0.0], |c| with(s, B::Pow, x, c))),
    ("pow_one", |s, x, _| vec![with(s, B::Pow, x, 1.0)]),
    ("pow_two", |s, x, _| vec![with(s, B::Pow, x, 2.0)]),
    ("pow_minus_one", |s, x, _| vec![with(s, B::Pow, x, -1.0)]),
    ("extremum_with_itself", |s, x, _| each(&[B::Maximum, B::Minimum], |op| s.binary(op, x, x))),
    ("extremum_with_bound", |s, x, _| {
        let bounds = [f64::NEG_INFINITY, f64::INFINITY, f64::MIN, f64::MAX, f64::NAN];
        each(&bounds, |c| each(&[B::Maximum, B::Minimum], |op| with(s, op, x, c))).concat()
    }),
    ("bitwise_with_itself", |s, x, _| each(&[B::And, B::Or, B::Xor], |op| s.binary(op, x, x))),
    ("bitwise_neutral", bitwise),
    ("bitwise_absorbing", bitwise),
    ("xor_all_ones", bitwise),
    ("compare_with_itself", |s, x, _| {
        each(&[B::Eq, B::Ne, B::Lt, B::Le, B::Gt, B::Ge], |op| s.binary(op, x, x))
    }),
    ("select_by_constant", |s, x, y| {
        each(&[false, true], |c| {
            let shape = s.shape(x);
            let c = s.splat(Scalar::from_bool(c), shape);
            s.select(c, x, y)
        })
    }),
    ("select_between_same", |s, x, y| {
        let c = s.binary(B::Lt, x, y);
        let (shape, seven) = (s.shape(x), Scalar::from_f64(s.dtype(x), 7.0));
        let (a, b) = (s.splat(seven, shape.clone()), s.splat(seven, shape));
        vec![s.select(c, x, x), s.select(c, a, b)]
    }),
    ("select_by_not", |s, x, y| {
        let c = s.binary(B::Lt, x, y);
        let c = s.unary(U::Not, c);
        vec![s.select(c, x, y)]
    }),
    ("select_of_bools", |s, x, y| {
        let (c, shape) = (s.binary(B::Lt, x, y), s.shape(x));
        let (t, f) =
            (s.splat(Scalar::from_bool(true), shape.clone()), s.splat(Scalar::from_bool(false), shape));
        vec![s.select(c, t, f), s.select(c, f, t)]
    }),
    ("cast_through_wider", |s, x, _| {
        each(&DType::ALL, |through| {
            let wide = s.cast(x, through);
            each(&DType::ALL, |to| s.cast(wide, to))
        })
        .concat()
    }),
    ("cast_to_itself", |s, x, _| each(&DType::ALL, |to| s.cast(x, to))),
    ("constant_second", |s, x, _| {
        each(&B::ALL, |op| {
            each(&[0.0, -0.0, 1.0, -2.0, f64::NAN], |c| {
                let c = constant(s, x, c);
                s.binary(op, c, x)
            })
        })
        .concat()
    }),
];

fn each<T: Copy, R>(items: &[T], f: impl FnMut(T) -> R) -> Vec<R> {
    items.iter().copied().map(f).collect()
}

fn constant(s: &mut Sketch, like: NodeId, value: f64) -> NodeId {
    let (shape, value) = (s.shape(like), Scalar::from_f64(s.dtype(like), value));
    s.splat_as(value, ConstantRole::Literal, shape)
}

fn with(s: &mut Sketch, op: B, x: NodeId, value: f64) -> NodeId {
    let c = constant(s, x, value);
    s.binary(op, x, c)
}

fn not_of(s: &mut Sketch, op: B, x: NodeId, y: NodeId) -> NodeId {
    let comparison = s.binary(op, x, y);
    s.unary(U::Not, comparison)
}

fn bitwise(s: &mut Sketch, x: NodeId, _: NodeId) -> Vec<NodeId> {
    let ops = [B::And, B::Or, B::Xor];
    each(&ops, |op| each(&[0.0, 1.0, -1.0, 255.0], |c| with(s, op, x, c))).concat()
}

fn applies(rule: &Rule, graph: &Graph, root: NodeId) -> bool {
    let (node, operands) = (graph.node(root), graph.operands(root));
    (rule.apply)(&mut Site::new(graph, node, &operands)).is_some()
}

fn pointwise_rules() -> impl Iterator<Item = (&'static Rule, fn(&Graph) -> Option<Graph>)> {
    let simplify_tables: [&'static [Rule]; 10] = [
        &simplify::UNARY,
        &simplify::ADD,
        &simplify::SUB,
        &simplify::MUL,
        &simplify::DIV,
        &simplify::POW,
        &simplify::EXTREMA,
        &simplify::BITWISE,
        &simplify::COMPARISONS,
        &simplify::SELECT,
    ];
    let laws = simplify_tables.into_iter().flatten().chain(&simplify::CAST);
    let rules = canonicalise::CAST.iter().chain(&canonicalise::BINARY);
    laws.map(|law| (law, simplify::run as fn(&Graph) -> _))
        .chain(rules.map(|rule| (rule, canonicalise::run as fn(&Graph) -> _)))
}

#[test]
fn every_law_has_samples_applies_and_keeps_every_value() {
    for (rule, run) in pointwise_rules() {
        let Some((_, draw)) = SAMPLES.iter().find(|(name, _)| *name == rule.name) else {
            panic!("no samples for the law {}: {}", rule.name, rule.statement)
        };
        let mut applications = 0;
        for dtype in DType::ALL {
            let length = specials(dtype).len().pow(2);
            let mut s = Sketch::new();
            let (x, y) = (s.input([length], dtype), s.input([length], dtype));
            for root in draw(&mut s, x, y) {
                let graph = only(&s, root);
                if verify(&graph, "sample").is_err() {
                    continue;
                }
                let result = run(&graph);
                if applies(rule, &s.graph, root) {
                    applications += 1;
                    assert!(result.is_some(), "{} applies but was not applied", rule.name);
                }
                if let Some(after) = result {
                    verify(&after, "after").unwrap();
                    assert_same_values(
                        &graph,
                        &after,
                        &format!("{} ({}) for {dtype}", rule.name, rule.statement),
                    );
                }
            }
        }
        assert!(applications > 0, "{} applies to none of its samples", rule.name);
    }
}

/// The graph with one output and without dead nodes, which may be ill-typed.
fn only(s: &Sketch, root: NodeId) -> Graph {
    s.outputs([root]).rewrite(|graph, node, operands| graph.add(node.clone(), operands))
}
