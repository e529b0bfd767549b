use half::{bf16, f16};
use lazuli_reference::{Element, Values, binary, cast, unary, with_type};

use crate::graph::op::Op;
use crate::interpreter::testing::{Data, apply, close, same, tensor, try_apply};
use crate::{BinaryOp, DType, UnaryOp};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn one<T: Element, U: Element>(op: UnaryOp, x: &[T]) -> Vec<U> {
    apply(Op::Unary(op), &[tensor(x, [x.len()])], [x.len()])
}

fn two<T: Element, U: Element>(op: BinaryOp, a: &[T], b: &[T]) -> Vec<U> {
    apply(Op::Binary(op), &[tensor(a, [a.len()]), tensor(b, [b.len()])], [a.len()])
}

fn halves(x: &[f32]) -> Vec<f16> {
    x.iter().map(|&x| f16::from_f32(x)).collect()
}

/// One element of every dtype.
fn sample(dtype: DType) -> Data {
    with_type!(dtype, T => tensor(&[T::from_int(1)], []))
}

#[test]
fn every_operation_is_defined_exactly_where_it_says() {
    for dtype in DType::ALL {
        let x = sample(dtype);
        for op in UnaryOp::ALL {
            let result = with_type!(op.result(dtype), U => {
                try_apply::<U>(Op::Unary(op), std::slice::from_ref(&x), []).map(|v| v.len())
            });
            assert_eq!(result.ok(), op.accepts(dtype).then_some(1), "{op} of {dtype}");
            let direct = unary(op, &cast(&Values::I64(vec![1]), dtype));
            assert_eq!(direct.is_ok(), op.accepts(dtype), "{op} of {dtype}");
        }
        for op in BinaryOp::ALL {
            let result = with_type!(op.result(dtype), U => {
                try_apply::<U>(Op::Binary(op), &[x.clone(), x.clone()], []).map(|v| v.len())
            });
            assert_eq!(result.ok(), op.accepts(dtype).then_some(1), "{op} of {dtype}");
            let value = cast(&Values::I64(vec![1]), dtype);
            assert_eq!(binary(op, &value, &value).is_ok(), op.accepts(dtype), "{op} of {dtype}");
        }
    }
}

#[test]
fn pointwise_operations_of_nothing() {
    assert!(one::<f32, f32>(UnaryOp::Exp, &[]).is_empty());
    assert!(two::<i64, bool>(BinaryOp::Lt, &[], &[]).is_empty());
}

#[test]
fn sign_like_functions_of_floats() {
    let x = [-2.5f32, -0.0, 0.0, 3.0, NAN, -INF];
    same(&one::<_, f32>(UnaryOp::Neg, &x[..4]), &[2.5, 0.0, -0.0, -3.0]);
    same(&one::<_, f32>(UnaryOp::Abs, &x), &[2.5, 0.0, 0.0, 3.0, NAN, INF]);
    same(&one::<_, f32>(UnaryOp::Sign, &x), &[-1.0, 0.0, 0.0, 1.0, NAN, -1.0]);
    same(&one::<_, f32>(UnaryOp::Relu, &x), &[0.0, -0.0, 0.0, 3.0, NAN, 0.0]);
    same(&one::<_, f16>(UnaryOp::Relu, &halves(&x)), &halves(&[0.0, -0.0, 0.0, 3.0, NAN, 0.0]));
}

#[test]
fn functions_of_integers_wrap() {
    let x = [i32::MIN, -3, 0, 46_341];
    assert_eq!(one::<_, i32>(UnaryOp::Neg, &x), [i32::MIN, 3, 0, -46_341]);
    assert_eq!(one::<_, i32>(UnaryOp::Abs, &x), [i32::MIN, 3, 0, 46_341]);
    assert_eq!(one::<_, i32>(UnaryOp::Sign, &x), [-1, -1, 0, 1]);
    assert_eq!(one::<_, i32>(UnaryOp::Square, &x), [0, 9, 0, -2_147_479_015]);
    assert_eq!(one::<_, i32>(UnaryOp::Relu, &x), [0, 0, 0, 46_341]);
    assert_eq!(one::<_, i32>(UnaryOp::BitNot, &x), [i32::MAX, 2, -1, -46_342]);
    assert_eq!(one::<_, i64>(UnaryOp::Abs, &[i64::MIN]), [i64::MIN]);
    assert_eq!(one::<_, i64>(UnaryOp::Neg, &[i64::MIN]), [i64::MIN]);
    assert_eq!(one::<_, u8>(UnaryOp::Neg, &[0u8, 1, 200]), [0, 255, 56]);
    assert_eq!(one::<_, u8>(UnaryOp::Abs, &[200u8]), [200]);
    assert_eq!(one::<_, u8>(UnaryOp::Sign, &[0u8, 200]), [0, 1]);
    assert_eq!(one::<_, u8>(UnaryOp::BitNot, &[0u8, 0b1010_0101]), [255, 0b0101_1010]);
    assert_eq!(one::<_, bool>(UnaryOp::Not, &[true, false]), [false, true]);
}

#[test]
fn rounding_functions() {
    let x = [-2.5f32, -1.5, -0.5, -0.2, 0.5, 1.5, 2.5, 2.7, INF, NAN];
    same(&one::<_, f32>(UnaryOp::Floor, &x), &[-3.0, -2.0, -1.0, -1.0, 0.0, 1.0, 2.0, 2.0, INF, NAN]);
    same(&one::<_, f32>(UnaryOp::Ceil, &x), &[-2.0, -1.0, -0.0, -0.0, 1.0, 2.0, 3.0, 3.0, INF, NAN]);
    same(&one::<_, f32>(UnaryOp::Round, &x), &[-2.0, -2.0, -0.0, -0.0, 0.0, 2.0, 2.0, 3.0, INF, NAN]);
    same(&one::<_, f32>(UnaryOp::Trunc, &x), &[-2.0, -1.0, -0.0, -0.0, 0.0, 1.0, 2.0, 2.0, INF, NAN]);
}

#[test]
fn roots_and_quotients() {
    let x = [4.0f32, 0.0, -0.0, INF, -1.0, NAN];
    same(&one::<_, f32>(UnaryOp::Sqrt, &x), &[2.0, 0.0, -0.0, INF, NAN, NAN]);
    same(&one::<_, f32>(UnaryOp::Rsqrt, &x), &[0.5, INF, -INF, 0.0, NAN, NAN]);
    same(&one::<_, f32>(UnaryOp::Reciprocal, &x), &[0.25, INF, -INF, 0.0, -1.0, NAN]);
    same(&one::<_, f32>(UnaryOp::Square, &[1e30f32, -3.0]), &[INF, 9.0]);
    same(&one::<_, f32>(UnaryOp::Reciprocal, &[3.0f32]), &[0.333_333_34]);
    same(&one::<_, f64>(UnaryOp::Sqrt, &[2.0f64]), &[std::f64::consts::SQRT_2]);
}

#[test]
fn transcendental_functions_in_double_precision() {
    use std::f64::consts::{E, FRAC_PI_4, LN_2};
    close(&one(UnaryOp::Exp, &[0.0f64, 1.0, -1.0]), &[1.0, E, 1.0 / E]);
    close(&one(UnaryOp::Exp2, &[0.5f64, 10.0]), &[2f64.sqrt(), 1024.0]);
    close(&one(UnaryOp::Expm1, &[0.0f64, LN_2, 1e-20]), &[0.0, 1.0, 1e-20]);
    close(&one(UnaryOp::Log, &[1.0f64, E]), &[0.0, 1.0]);
    close(&one(UnaryOp::Log2, &[8.0f64, 0.5]), &[3.0, -1.0]);
    close(&one(UnaryOp::Log10, &[1000.0f64]), &[3.0]);
    close(&one(UnaryOp::Log1p, &[1.0f64, 1e-20]), &[LN_2, 1e-20]);
    close(&one(UnaryOp::Sin, &[0.0f64, FRAC_PI_4]), &[0.0, 0.5f64.sqrt()]);
    close(&one(UnaryOp::Cos, &[0.0f64, FRAC_PI_4]), &[1.0, 0.5f64.sqrt()]);
    close(&one(UnaryOp::Tan, &[0.0f64, FRAC_PI_4]), &[0.0, 1.0]);
    close(&one(UnaryOp::Tanh, &[0.0f64, LN_2]), &[0.0, 0.6]);
    // Abramowitz and Stegun, table 7.1.
    close(&one(UnaryOp::Erf, &[0.0f64, 0.5, 1.0]), &[0.0, 0.520_499_877_813_046_5, 0.842_700_792_949_714_9]);
}

#[test]
fn transcendental_functions_of_special_values() {
    let x = [NAN, INF, -INF, 0.0];
    same(&one::<_, f32>(UnaryOp::Exp, &x), &[NAN, INF, 0.0, 1.0]);
    same(&one::<_, f32>(UnaryOp::Log, &x), &[NAN, INF, NAN, -INF]);
    same(&one::<_, f32>(UnaryOp::Tanh, &x), &[NAN, 1.0, -1.0, 0.0]);
    same(&one::<_, f32>(UnaryOp::Erf, &x), &[NAN, 1.0, -1.0, 0.0]);
    same(&one::<_, f32>(UnaryOp::Sin, &x), &[NAN, NAN, NAN, 0.0]);
    same(&one::<_, f32>(UnaryOp::Expm1, &x), &[NAN, INF, -1.0, 0.0]);
    same(&one::<_, f32>(UnaryOp::Log1p, &[-1.0f32, -2.0, -0.0]), &[-INF, NAN, -0.0]);
    same(&one::<_, f32>(UnaryOp::Exp, &[89.0f32, -104.0]), &[INF, 0.0]);
    same(&one::<_, f16>(UnaryOp::Exp, &halves(&[12.0])), &halves(&[INF]));
}

#[test]
fn tests_of_special_values() {
    let x = [NAN, INF, -INF, 0.0, 1e-45];
    assert_eq!(one::<_, bool>(UnaryOp::IsNan, &x), [true, false, false, false, false]);
    assert_eq!(one::<_, bool>(UnaryOp::IsInf, &x), [false, true, true, false, false]);
    assert_eq!(one::<_, bool>(UnaryOp::IsFinite, &x), [false, false, false, true, true]);
}

#[test]
fn float_arithmetic_is_ieee() {
    let (a, b) = ([1.0f32, INF, 0.0, 16_777_216.0], [0.0f32, INF, -0.0, 1.0]);
    same(&two::<_, f32>(BinaryOp::Add, &a, &b), &[1.0, INF, 0.0, 16_777_216.0]);
    same(&two::<_, f32>(BinaryOp::Sub, &a, &b), &[1.0, NAN, 0.0, 16_777_215.0]);
    same(&two::<_, f32>(BinaryOp::Mul, &a, &b), &[0.0, INF, -0.0, 16_777_216.0]);
    same(&two::<_, f32>(BinaryOp::Div, &a, &b), &[INF, NAN, NAN, 16_777_216.0]);
    same(&two::<_, f16>(BinaryOp::Add, &halves(&[2048.0]), &halves(&[1.0])), &halves(&[2048.0]));
    same(&two::<_, f16>(BinaryOp::Mul, &halves(&[300.0]), &halves(&[300.0])), &halves(&[INF]));
    let third = two::<_, bf16>(BinaryOp::Div, &[bf16::ONE], &[bf16::from_f32(3.0)]);
    assert_eq!(third[0].to_bits(), 0x3eab);
}

#[test]
fn powers_and_angles() {
    let powers =
        two::<_, f32>(BinaryOp::Pow, &[2.0f32, -2.0, 0.0, NAN, 1.0, -8.0], &[10.0, 3.0, -1.0, 0.0, NAN, 0.5]);
    same(&powers, &[1024.0, -8.0, INF, 1.0, 1.0, NAN]);
    let angles = two::<_, f64>(BinaryOp::Atan2, &[1.0f64, 0.0, -0.0, -1.0], &[1.0, -1.0, -1.0, 0.0]);
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    same(&angles, &[FRAC_PI_4, PI, -PI, -FRAC_PI_2]);
}

#[test]
fn largest_and_smallest_of_two() {
    let (a, b) = ([NAN, 1.0, -0.0, 0.0, 2.0, -INF], [1.0, NAN, 0.0, -0.0, 3.0, INF]);
    same(&two::<_, f32>(BinaryOp::Maximum, &a, &b), &[NAN, NAN, 0.0, 0.0, 3.0, INF]);
    same(&two::<_, f32>(BinaryOp::Minimum, &a, &b), &[NAN, NAN, -0.0, -0.0, 2.0, -INF]);
    assert_eq!(two::<_, u8>(BinaryOp::Maximum, &[200u8], &[100]), [200]);
    assert_eq!(two::<_, i32>(BinaryOp::Minimum, &[i32::MIN], &[100]), [i32::MIN]);
}

#[test]
fn float_floor_division_and_remainder_as_pytorch() {
    let a = [7.0f32, -7.0, 7.0, -7.0, 6.0, -6.0, 1.0, -1.0, 0.0, 1.0, -1.0, 1.0, -0.5, 1.0];
    let b = [2.0f32, 2.0, -2.0, -2.0, 3.0, 3.0, 0.0, 0.0, 0.0, INF, INF, NAN, 1.0, 0.1];
    let quotients = two::<_, f32>(BinaryOp::FloorDiv, &a, &b);
    same(&quotients, &[3.0, -4.0, -4.0, 3.0, 2.0, -2.0, INF, -INF, NAN, 0.0, -1.0, NAN, -1.0, 9.0]);
    let remainders = two::<_, f32>(BinaryOp::Rem, &a[..13], &b[..13]);
    same(&remainders, &[1.0, 1.0, -1.0, -1.0, 0.0, -0.0, NAN, NAN, NAN, 1.0, INF, NAN, 0.5]);
    same(&two::<_, f32>(BinaryOp::FloorDiv, &[-0.0f32, 0.0], &[3.0, -3.0]), &[-0.0, -0.0]);
    same(&two::<_, f32>(BinaryOp::Rem, &[INF], &[2.0]), &[NAN]);
}

#[test]
fn integer_floor_division_and_remainder() {
    let (a, b) = ([7, -7, 7, -7, 5, i32::MIN, 0, -6], [2, 2, -2, -2, 0, -1, 3, 3]);
    assert_eq!(two::<i32, i32>(BinaryOp::FloorDiv, &a, &b), [3, -4, -4, 3, 0, i32::MIN, 0, -2]);
    assert_eq!(two::<i32, i32>(BinaryOp::Rem, &a, &b), [1, 1, -1, -1, 0, 0, 0, 0]);
    assert_eq!(two::<i64, i64>(BinaryOp::FloorDiv, &[i64::MIN, i64::MIN], &[-1, 0]), [i64::MIN, 0]);
    assert_eq!(two::<i64, i64>(BinaryOp::Rem, &[i64::MIN, i64::MAX], &[-1, i64::MIN]), [0, -1]);
    assert_eq!(two::<u8, u8>(BinaryOp::FloorDiv, &[200u8, 200], &[7, 0]), [28, 0]);
    assert_eq!(two::<u8, u8>(BinaryOp::Rem, &[200u8, 200], &[7, 0]), [4, 0]);
}

#[test]
fn integer_powers() {
    let bases = [2i32, 3, -2, 2, 2, -1, -1, 1, 0, 0, 7, 10];
    let exponents = [10, 0, 3, 31, 32, -3, -4, -9, 0, -1, -1, 10];
    let expected = [1024, 1, -8, i32::MIN, 0, -1, 1, 1, 1, 0, 0, 1_410_065_408];
    assert_eq!(two::<i32, i32>(BinaryOp::Pow, &bases, &exponents), expected);
    assert_eq!(two::<u8, u8>(BinaryOp::Pow, &[3u8, 255, 2], &[6, 2, 8]), [217, 1, 0]);
    assert_eq!(
        two::<i64, i64>(BinaryOp::Pow, &[3, -1], &[i64::MAX, i64::MIN]),
        [-6_148_914_691_236_517_205, 1]
    );
}

#[test]
fn integer_arithmetic_wraps() {
    assert_eq!(two::<u8, u8>(BinaryOp::Add, &[250u8], &[10]), [4]);
    assert_eq!(two::<u8, u8>(BinaryOp::Sub, &[1u8], &[2]), [255]);
    assert_eq!(two::<i32, i32>(BinaryOp::Add, &[i32::MAX], &[1]), [i32::MIN]);
    assert_eq!(two::<i64, i64>(BinaryOp::Mul, &[i64::MAX], &[2]), [-2]);
    assert_eq!(two::<i32, i32>(BinaryOp::And, &[0b1100], &[0b1010]), [0b1000]);
    assert_eq!(two::<i32, i32>(BinaryOp::Or, &[0b1100], &[0b1010]), [0b1110]);
    assert_eq!(two::<i32, i32>(BinaryOp::Xor, &[0b1100, -1], &[0b1010, 1]), [0b0110, -2]);
}

#[test]
fn truth_tables() {
    let (a, b) = ([false, false, true, true], [false, true, false, true]);
    for op in [BinaryOp::Add, BinaryOp::Or, BinaryOp::Maximum] {
        assert_eq!(two::<_, bool>(op, &a, &b), [false, true, true, true]);
    }
    for op in [BinaryOp::Mul, BinaryOp::And, BinaryOp::Minimum] {
        assert_eq!(two::<_, bool>(op, &a, &b), [false, false, false, true]);
    }
    assert_eq!(two::<_, bool>(BinaryOp::Xor, &a, &b), [false, true, true, false]);
    assert_eq!(two::<_, bool>(BinaryOp::Lt, &a, &b), [false, true, false, false]);
    assert_eq!(two::<_, bool>(BinaryOp::Ge, &a, &b), [true, false, true, true]);
}

#[test]
fn comparisons_with_nan_and_zeros() {
    let (a, b) = ([NAN, NAN, 0.0, 1.0, 2.0], [NAN, 1.0, -0.0, 2.0, 1.0f32]);
    assert_eq!(two::<_, bool>(BinaryOp::Eq, &a, &b), [false, false, true, false, false]);
    assert_eq!(two::<_, bool>(BinaryOp::Ne, &a, &b), [true, true, false, true, true]);
    assert_eq!(two::<_, bool>(BinaryOp::Lt, &a, &b), [false, false, false, true, false]);
    assert_eq!(two::<_, bool>(BinaryOp::Le, &a, &b), [false, false, true, true, false]);
    assert_eq!(two::<_, bool>(BinaryOp::Gt, &a, &b), [false, false, false, false, true]);
    assert_eq!(two::<_, bool>(BinaryOp::Ge, &a, &b), [false, false, true, false, true]);
    assert_eq!(two::<_, bool>(BinaryOp::Gt, &[200u8], &[100]), [true]);
    assert_eq!(two::<_, bool>(BinaryOp::Ne, &halves(&[NAN, 0.0]), &halves(&[NAN, -0.0])), [true, false]);
}

#[test]
fn where_takes_either() {
    let operands = [tensor(&[true, false], [2]), tensor(&[1.0f32, NAN], [2]), tensor(&[NAN, -0.0f32], [2])];
    same(&apply::<f32>(Op::Select, &operands, [2]), &[1.0, -0.0]);
    let operands = [tensor(&[false], []), tensor(&[true], []), tensor(&[false], [])];
    assert_eq!(apply::<bool>(Op::Select, &operands, []), [false]);
}
