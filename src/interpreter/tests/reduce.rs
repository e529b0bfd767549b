use half::{bf16, f16};
use lazuli_reference::Element;

use crate::graph::op::Op;
use crate::interpreter::testing::{apply, same, tensor, try_apply};
use crate::{ReduceOp, Shape};

fn reduced<T: Element>(
    op: ReduceOp,
    x: &[T],
    from: impl Into<Shape>,
    axes: &[usize],
    to: impl Into<Shape>,
) -> Vec<T> {
    apply(Op::Reduce { op, axes: axes.into() }, &[tensor(x, from)], to)
}

#[test]
fn along_any_axes() {
    let x: Vec<f32> = (0..24).map(|x| x as f32).collect();
    let sum = |axes: &[usize], to: &[usize]| reduced(ReduceOp::Sum, &x, [2, 3, 4], axes, to);
    assert_eq!(sum(&[2], &[2, 3]), [6.0, 22.0, 38.0, 54.0, 70.0, 86.0]);
    assert_eq!(sum(&[0], &[3, 4]), [12., 14., 16., 18., 20., 22., 24., 26., 28., 30., 32., 34.]);
    assert_eq!(sum(&[1], &[2, 4]), [12.0, 15.0, 18.0, 21.0, 48.0, 51.0, 54.0, 57.0]);
    assert_eq!(sum(&[0, 2], &[3]), [60.0, 92.0, 124.0]);
    assert_eq!(sum(&[0, 1, 2], &[]), [276.0]);
    assert_eq!(sum(&[], &[2, 3, 4]), x);
    assert_eq!(reduced(ReduceOp::Sum, &[7.0f32], [], &[], []), [7.0]);
}

#[test]
fn sums_accumulate_in_double_precision_and_round_once() {
    let mut x = vec![1.0f32; 1001];
    x[0] = 16_777_216.0;
    assert_eq!(reduced(ReduceOp::Sum, &x, [1001], &[0], []), [16_778_216.0]);
    let x = vec![f16::from_f32(0.1); 10_000];
    assert_eq!(reduced(ReduceOp::Sum, &x, [10_000], &[0], []), [f16::from_f32(1000.0)]);
    assert_eq!(reduced(ReduceOp::Sum, &[1e20f32, 1.0, -1e20], [3], &[0], []), [0.0]);
    same(&reduced(ReduceOp::Sum, &[f32::INFINITY, f32::NEG_INFINITY], [2], &[0], []), &[f32::NAN]);
    assert_eq!(reduced(ReduceOp::Prod, &[3.0f32, -2.0, 0.5], [3], &[0], []), [-3.0]);
}

#[test]
fn integer_sums_and_products_wrap() {
    assert_eq!(reduced(ReduceOp::Sum, &[i64::MAX, 2, 3], [3], &[0], []), [i64::MIN + 4]);
    assert_eq!(reduced(ReduceOp::Prod, &[1i64 << 62, 2, 3], [3], &[0], []), [i64::MIN]);
}

#[test]
fn extremes_propagate_nan() {
    let x = [1.0f32, f32::NAN, 3.0, 4.0, -5.0, 6.0, -0.0, 0.0, -0.0];
    same(&reduced(ReduceOp::Max, &x, [3, 3], &[1], [3]), &[f32::NAN, 6.0, 0.0]);
    same(&reduced(ReduceOp::Min, &x, [3, 3], &[1], [3]), &[f32::NAN, -5.0, -0.0]);
    let x = [bf16::NEG_INFINITY, bf16::NEG_INFINITY];
    assert_eq!(reduced(ReduceOp::Max, &x, [2], &[0], []), [bf16::NEG_INFINITY]);
}

#[test]
fn extremes_of_integers_and_truth() {
    let x = [3i32, i32::MIN, 7, 200];
    assert_eq!(reduced(ReduceOp::Max, &x, [2, 2], &[0], [2]), [7, 200]);
    assert_eq!(reduced(ReduceOp::Min, &x, [2, 2], &[0], [2]), [3, i32::MIN]);
    assert_eq!(reduced(ReduceOp::Max, &[200u8, 100], [2], &[0], []), [200]);
    let x = [true, false, false, false, true, true];
    assert_eq!(reduced(ReduceOp::Max, &x, [3, 2], &[1], [3]), [true, false, true]);
    assert_eq!(reduced(ReduceOp::Min, &x, [3, 2], &[1], [3]), [false, false, true]);
}

#[test]
fn squared_deviations_from_the_mean() {
    let x = [1.0f64, 2.0, 3.0, 4.0, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0, 1e9 + 4.0];
    assert_eq!(reduced(ReduceOp::SquaredDeviations, &x, [2, 4], &[1], [2]), [5.0, 5.0]);
    assert_eq!(reduced(ReduceOp::SquaredDeviations, &[4.0f32], [1], &[0], []), [0.0]);
    same(&reduced(ReduceOp::SquaredDeviations, &[f32::INFINITY, 1.0], [2], &[0], []), &[f32::NAN]);
}

#[test]
fn exponentials_add_up_below_the_maximum() {
    let x = [1000.0f64, 1000.0 - 2f64.ln(), 1000.0 - 4f64.ln(), f64::NEG_INFINITY];
    let sum = reduced(ReduceOp::SumExp, &x, [4], &[0], [])[0];
    assert!((sum - 1.75).abs() < 1e-12, "{sum}");
    let inf = f32::INFINITY;
    for row in [[inf, 0.0], [inf, inf], [-inf, -inf], [f32::NAN, 0.0], [0.0, f32::NAN]] {
        same(&reduced(ReduceOp::SumExp, &row, [2], &[0], []), &[f32::NAN]);
    }
}

#[test]
fn reductions_of_nothing() {
    let none: [f32; 0] = [];
    same(&reduced(ReduceOp::Sum, &none, [2, 0], &[1], [2]), &[0.0, 0.0]);
    same(&reduced(ReduceOp::Sum, &none, [0, 2], &[0], [2]), &[0.0, 0.0]);
    same(&reduced(ReduceOp::Prod, &none, [0], &[0], []), &[1.0]);
    same(&reduced(ReduceOp::SquaredDeviations, &none, [0], &[0], []), &[0.0]);
    assert_eq!(reduced::<i64>(ReduceOp::Prod, &[], [0], &[0], []), [1]);
    assert!(reduced(ReduceOp::Max, &none, [0, 2], &[1], [0]).is_empty());
    let max = Op::Reduce { op: ReduceOp::Max, axes: [1].as_slice().into() };
    assert!(try_apply::<f32>(max, &[tensor(&none, [2, 0])], [2]).is_err());
}

#[test]
fn positions_of_extremes() {
    let at = |op, x: &[f32]| {
        let op = Op::Reduce { op, axes: [0].as_slice().into() };
        apply::<i64>(op, &[tensor(x, [x.len()])], [])[0]
    };
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (x, max, min) in [
        (&[1.0, 5.0, 5.0, 1.0][..], 1, 0),
        (&[-0.0, 0.0, -0.0], 0, 0),
        (&[-inf, -inf], 0, 0),
        (&[inf, -inf, inf], 0, 1),
        (&[inf, nan, nan], 1, 1),
    ] {
        assert_eq!((at(ReduceOp::ArgMax, x), at(ReduceOp::ArgMin, x)), (max, min), "{x:?}");
    }
}
