//! Random graphs: all passes together change no bit, and running them again changes nothing.

use proptest::prelude::*;

use super::{all_passes, assert_same_values, printed};
use crate::graph::sketch::Sketch;
use crate::graph::verify::verify;
use crate::graph::{Graph, NodeId};
use crate::{BinaryOp as B, DType, ReduceOp, Scalar, UnaryOp as U};

/// One operation: what, and which earlier nodes and numbers, all modulo what there is.
pub(super) type Choice = (u8, u8, u8, u8);

const UNARIES: [U; 12] = [
    U::Neg,
    U::Abs,
    U::Sign,
    U::Square,
    U::Relu,
    U::Sqrt,
    U::Floor,
    U::Trunc,
    U::Round,
    U::Exp,
    U::BitNot,
    U::Reciprocal,
];
const BINARIES: [B; 11] =
    [B::Add, B::Sub, B::Mul, B::Div, B::Maximum, B::Minimum, B::And, B::Or, B::Xor, B::FloorDiv, B::Rem];
const COMPARISONS: [B; 6] = [B::Eq, B::Ne, B::Lt, B::Le, B::Gt, B::Ge];
const CONSTANTS: [f64; 8] = [0.0, -0.0, 1.0, -1.0, 2.0, 0.25, f64::INFINITY, f64::NAN];

/// A graph over [2, 3] tensors of one dtype; views go elsewhere and come back. Ill-typed choices are
/// left out.
pub(super) fn drawn(dtype: DType, choices: &[Choice]) -> Graph {
    let mut s = Sketch::new();
    let mut pool = vec![s.input([2, 3], dtype), s.input([2, 3], dtype)];
    for &choice in choices {
        let before = s.graph.bound();
        if let Some(id) = one(&mut s, &pool, dtype, choice) {
            debug_assert!(id.index() >= before);
            pool.push(id);
        }
    }
    s.outputs(pool.iter().rev().take(3).copied())
}

fn one(s: &mut Sketch, pool: &[NodeId], dtype: DType, (what, a, b, c): Choice) -> Option<NodeId> {
    let pick = |n: u8| pool[pool.len() - 1 - n as usize % pool.len()];
    let (x, y) = (pick(a), pick(b));
    let id = match what % 14 {
        0 | 1 => {
            let op = UNARIES[c as usize % UNARIES.len()];
            op.accepts(dtype).then(|| s.unary(op, x))?
        }
        2..=4 => {
            let op = BINARIES[c as usize % BINARIES.len()];
            op.accepts(dtype).then(|| s.binary(op, x, y))?
        }
        5 => s.splat(Scalar::from_f64(dtype, CONSTANTS[c as usize % CONSTANTS.len()]), [2, 3]),
        6 => {
            let condition = s.binary(COMPARISONS[c as usize % COMPARISONS.len()], x, y);
            let condition = if c % 2 == 0 { s.unary(U::Not, condition) } else { condition };
            s.select(condition, x, y)
        }
        7 => {
            let through = DType::ALL[c as usize % DType::ALL.len()];
            let there = s.cast(x, through);
            s.cast(there, dtype)
        }
        8 => {
            let there = s.permute(x, [1, 0]);
            let there = if c % 2 == 0 { s.unary(U::Neg, there) } else { there };
            s.permute(there, [1, 0])
        }
        9 => {
            let there = s.reshape(x, [[6, 1, 1], [1, 2, 3], [3, 1, 2]][c as usize % 3]);
            s.reshape(there, [2, 3])
        }
        10 => s.slice(x, [1, 2], [-1, -1], [2, 3]),
        11 => {
            let row = s.slice(x, [(c % 2).into(), 0], [1, 1], [1, 3]);
            s.expand(row, [2, 3])
        }
        12 => {
            let value = Scalar::from_f64(dtype, CONSTANTS[c as usize % CONSTANTS.len()]);
            let padded = s.pad(x, [1, 0], value, [3, 3]);
            let padded = s.pad(padded, [0, 1], value, [3, 5]);
            s.slice(padded, [0, (c % 3).into()], [1, 1], [2, 3])
        }
        _ => {
            let op = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod][c as usize % 4];
            let (windows, axes) = match c % 3 {
                0 => (s.reshape(x, [2, 1, 3]), 1),
                1 => (s.window(x, 1, 1, 1), 2),
                _ => (s.expand(x, [2, 2, 3]), 0),
            };
            s.reduce(op, windows, [axes])
        }
    };
    Some(id)
}

fn check(dtype: DType, choices: &[Choice]) {
    let before = drawn(dtype, choices);
    verify(&before, "sample").unwrap();
    let after = all_passes(&before);
    assert_same_values(&before, &after, "random graph");
    assert_eq!(printed(&all_passes(&after)), printed(&after), "passes found more to do the second time");
}

pub(super) fn choices() -> impl Strategy<Value = Vec<Choice>> {
    prop::collection::vec(any::<Choice>(), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bit_changes_in_f32(choices in choices()) {
        check(DType::F32, &choices);
    }

    #[test]
    fn no_bit_changes_in_i64(choices in choices()) {
        check(DType::I64, &choices);
    }

    #[test]
    fn no_bit_changes_in_u8(choices in choices()) {
        // Sums of bytes are recorded as sums of i64.
        let choices: Vec<Choice> = choices.into_iter().filter(|choice| choice.0 % 14 != 13).collect();
        check(DType::U8, &choices);
    }

    #[test]
    fn no_bit_changes_in_registers_of_f16(choices in choices()) {
        check(DType::F16, &choices);
    }
}
