//! What must hold of all passes.

mod illegal;
mod laws;
mod property;
mod views;

use super::evaluate::{self, same};
use super::exact;
use crate::graph::Graph;
use crate::graph::op::Op;
use crate::graph::sketch::Sketch;
use crate::graph::text::{Locations, text};
use crate::{BinaryOp, DType, Error, Scalar, UnaryOp};

/// The values that laws break on.
fn specials(dtype: DType) -> Vec<Scalar> {
    let integer = |value: &i64| Scalar::from_i64(dtype, *value);
    let (tiny, least_normal, largest): (f64, f64, f64) = match dtype {
        DType::Bool => return [0, 1].iter().map(integer).collect(),
        DType::U8 => return [0, 1, 2, 3, 7, 128, 254, 255].iter().map(integer).collect(),
        DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            let (least, most) = dtype.iinfo().map(|info| (info.min, info.max)).unwrap();
            return [0, 1, -1, 2, -2, 3, 7, -7, 300, (1 << 24) + 1, least, least + 1, most]
                .iter()
                .map(integer)
                .collect();
        }
        DType::F16 => (f64::powi(2.0, -24), f64::powi(2.0, -14), 65504.0),
        DType::BF16 => (f64::powi(2.0, -133), f64::powi(2.0, -126), 3.3895313892515355e38),
        DType::F32 => (f64::powi(2.0, -149), f32::MIN_POSITIVE.into(), f32::MAX.into()),
        DType::F64 => (f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX),
    };
    let positive =
        [0.0, tiny, 3.0 * tiny, least_normal, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 300.0, largest, f64::INFINITY];
    let negative = positive.iter().map(|x| -x);
    let all = positive.iter().copied().chain(negative).chain([f64::NAN]);
    all.map(|x| Scalar::from_f64(dtype, x)).collect()
}

/// Data for each input. Vectors whose length is the square of the number of specials pair each
/// special with each; floats cycle through the specials; integers count from 1.
fn inputs(graph: &Graph) -> Vec<Vec<Scalar>> {
    let mut inputs = vec![Vec::new(); crate::compiler::input_nodes(graph).count()];
    for id in graph.nodes() {
        let node = graph.node(id);
        let Op::Input(slot) = node.op else { continue };
        let (elements, dtype) = (node.shape.elements(), node.dtype);
        let specials = specials(dtype);
        let pairs = elements == specials.len() * specials.len();
        inputs[slot] = (0..elements)
            .map(|n| match (pairs, dtype.is_float()) {
                (true, _) if slot == 0 => specials[n / specials.len()],
                (true, _) | (false, true) => specials[(n + slot) % specials.len()],
                (false, false) => Scalar::from_i64(dtype, n as i64 + 1),
            })
            .collect();
    }
    inputs
}

/// Every element of every output has the same bits before and after, or is NaN in both.
fn assert_same_values(before: &Graph, after: &Graph, what: &str) {
    let inputs = inputs(before);
    let (expected, actual) = (evaluate::evaluate(before, &inputs), evaluate::evaluate(after, &inputs));
    for (output, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        assert_eq!(expected.len(), actual.len(), "{what}");
        for (n, (&e, &a)) in expected.iter().zip(actual).enumerate() {
            let values: Vec<_> = inputs.iter().map(|input| input.get(n)).collect();
            assert!(
                same(e, a),
                "{what}: output {output} at {n} is {a:?}, not {e:?}; inputs there {values:?}\nbefore:\n{}after:\n{}",
                printed(before),
                printed(after)
            );
        }
    }
}

fn printed(graph: &Graph) -> String {
    text(graph, Locations::Hidden)
}

fn all_passes(graph: &Graph) -> Graph {
    super::run(graph, None).unwrap()
}

#[test]
fn passes_run_in_order_until_quiet_and_the_observer_sees_what_changed() {
    // cse finds x twice, which simplify needs; what simplify leaves, fold and canonicalise take up.
    let mut s = Sketch::new();
    let x = s.input([2, 2], DType::I64);
    let a = s.permute(x, [1, 0]);
    let b = s.permute(x, [1, 0]);
    let zero = s.binary(BinaryOp::Sub, a, b);
    let one = s.splat(Scalar::from_i64(DType::I64, 1), [2, 2]);
    let one = s.binary(BinaryOp::Add, one, zero);
    let y = s.binary(BinaryOp::Mul, a, one);
    let y = s.permute(y, [1, 0]);
    let mut seen = Vec::new();
    let mut observer = |name: &str, _: &Graph| seen.push(name.to_string());
    let result = super::run(&s.outputs([y]), Some(&mut observer)).unwrap();
    assert_eq!(printed(&result), "%0 = input slot=0 : i64 [2, 2]\nreturn %0\n");
    assert_eq!(result.bound(), 1);
    assert_eq!(seen.first().map(String::as_str), Some("cse"));
    assert_eq!(seen.last().map(String::as_str), Some("dead_code"));
}

#[test]
fn an_ill_typed_graph_is_an_internal_error_that_names_the_stage() {
    let mut s = Sketch::new();
    let x = s.input([2], DType::F32);
    let y = s.op(Op::Unary(UnaryOp::Not), &[x], [2], DType::F32);
    let error = super::run(&s.outputs([y]), None).unwrap_err();
    assert!(matches!(error, Error::Internal { stage: "recording", .. }), "{error}");
}

#[test]
fn names_in_the_table_are_distinct_and_documented() {
    let mut names: Vec<&str> = super::PASSES.iter().map(|pass| pass.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), super::PASSES.len());
    assert!(super::PASSES.iter().all(|pass| !pass.doc.is_empty()));
}

#[test]
fn a_long_chain_neither_recurses_nor_takes_long() {
    let mut s = Sketch::new();
    let mut x = s.input([2], DType::F32);
    for n in 0..100_000 {
        x = s.unary(if n % 3 == 0 { UnaryOp::Sin } else { UnaryOp::Neg }, x);
    }
    let result = all_passes(&s.outputs([x]));
    assert_eq!(result.bound(), 1 + 33_334, "the input and every sin");
}

#[test]
fn folded_constants_have_the_bits_that_evaluation_gives() {
    let mut folded = 0;
    let mut check = |exact: Option<Scalar>, expected: &dyn Fn() -> Scalar, what: &dyn Fn() -> String| {
        if let Some(exact) = exact {
            folded += 1;
            assert!(same(exact.cast(exact.dtype().compute()), expected()), "{}: {exact:?}", what());
        }
    };
    for dtype in DType::ALL {
        let wide = |x: Scalar| x.cast(dtype.compute());
        for x in specials(dtype) {
            for op in UnaryOp::ALL {
                let expected = || op.apply(wide(x)).unwrap();
                check(exact::unary(op, x), &expected, &|| format!("{op}({x:?})"));
            }
            for y in specials(dtype) {
                for op in BinaryOp::ALL {
                    let expected = || op.apply(wide(x), wide(y)).unwrap();
                    check(exact::binary(op, x, y), &expected, &|| format!("{op}({x:?}, {y:?})"));
                }
            }
        }
    }
    assert!(folded > 10_000, "{folded}");
}
