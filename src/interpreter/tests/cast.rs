use half::{bf16, f16};
use lazuli_reference::Element;

use crate::graph::op::Op;
use crate::interpreter::testing::{apply, same, tensor};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn converted<T: Element, U: Element>(x: &[T]) -> Vec<U> {
    apply(Op::Cast, &[tensor(x, [x.len()])], [x.len()])
}

fn halves(x: &[f32]) -> Vec<f16> {
    x.iter().map(|&x| f16::from_f32(x)).collect()
}

#[test]
fn casts_from_floats() {
    let x = [NAN, INF, -INF, -1.9, 300.7, -0.0];
    assert_eq!(converted::<_, bool>(&x), [true, true, true, true, true, false]);
    assert_eq!(converted::<_, u8>(&x), [0, 255, 0, 0, 255, 0]);
    assert_eq!(converted::<_, i32>(&x), [0, i32::MAX, i32::MIN, -1, 300, 0]);
    assert_eq!(converted::<_, i64>(&x), [0, i64::MAX, i64::MIN, -1, 300, 0]);
    same(
        &converted::<_, f64>(&x),
        &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::from(-1.9f32), f64::from(300.7f32), -0.0],
    );
    same(&converted::<_, f16>(&x), &halves(&x));
    same(&converted::<_, f32>(&[1e300f64, 0.1, 1e-300]), &[INF, 0.1, 0.0]);
    assert_eq!(converted::<_, i32>(&[f16::MAX, f16::NAN]), [65504, 0]);
    assert_eq!(converted::<_, f16>(&[bf16::MAX, bf16::from_f32(3.0)]), halves(&[INF, 3.0]));
}

#[test]
fn casts_from_integers() {
    let x = [i64::MAX, i64::MIN, -1, 256, 0];
    assert_eq!(converted::<_, bool>(&x), [true, true, true, true, false]);
    assert_eq!(converted::<_, u8>(&x), [255, 0, 255, 0, 0]);
    assert_eq!(converted::<_, i32>(&x), [-1, 0, -1, 256, 0]);
    same(&converted::<_, f32>(&x), &[9.223_372e18, -9.223_372e18, -1.0, 256.0, 0.0]);
    same(&converted::<_, f64>(&[(1i64 << 53) + 1]), &[9_007_199_254_740_992.0]);
    same(&converted::<_, f16>(&[65519i32, 65520, -2049]), &halves(&[65504.0, INF, -2048.0]));
    assert_eq!(converted::<_, i64>(&[200u8, 7]), [200, 7]);
    assert_eq!(converted::<_, i32>(&[true, false]), [1, 0]);
    assert_eq!(converted::<_, bf16>(&[true]), [bf16::ONE]);
    assert_eq!(converted::<_, bool>(&[true, false]), [true, false]);
    assert!(converted::<i32, f16>(&[]).is_empty());
}

#[test]
fn casts_from_f64_round_once() {
    // Just above halfway between two numbers; f32 would round it to halfway, and that to even.
    let above = [1.0 + 2f64.powi(-11) + 2f64.powi(-40)];
    assert_eq!(converted::<_, f16>(&above), [f16::from_f32(1.0 + 2f32.powi(-10))]);
    let above = [1.0 + 2f64.powi(-8) + 2f64.powi(-50)];
    assert_eq!(converted::<_, bf16>(&above), [bf16::from_f32(1.0 + 2f32.powi(-7))]);
}
