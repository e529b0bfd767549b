//! Scalar operations whose result is exactly defined, so that it may be computed ahead: all of them
//! on integers, and on floats those that IEEE 754 rounds correctly. `None` where a kernel's result may
//! differ: transcendental functions, and results on 16-bit floats that need rounding, which kernels keep unrounded
//! in f32. A NaN result is the canonical one.

use half::{bf16, f16};

use crate::{BinaryOp, DType, Scalar, UnaryOp};
use lazuli_codegen::Meaning;

/// Whether some values of the dtype have an exact result. If none has, values need not be looked at.
pub(super) fn has_unary(op: UnaryOp, dtype: DType) -> bool {
    op == UnaryOp::Bitcast || has_exact(op.floats(), dtype)
}

pub(super) fn has_binary(op: BinaryOp, dtype: DType) -> bool {
    has_exact(op.floats(), dtype)
}

fn has_exact<N, S, T>(meaning: Option<Meaning<N, S, T>>, dtype: DType) -> bool {
    !dtype.is_float() || matches!(meaning, Some(Meaning::Exact(_) | Meaning::Test(_)))
}

pub(super) fn unary(op: UnaryOp, x: Scalar) -> Option<Scalar> {
    if op == UnaryOp::Bitcast {
        // Literals print every NaN as the same one, whose bits would be others.
        return op.apply(x).filter(|y| !x.as_f64().is_nan() && !y.as_f64().is_nan());
    }
    let is_exact = match op.floats() {
        _ if !x.dtype().is_float() => true,
        Some(Meaning::Exact(_) | Meaning::Test(_)) => is_kept(x.dtype(), op.apply(wide(x))?),
        Some(Meaning::Near(_) | Meaning::Stepwise(..)) | None => false,
    };
    if is_exact { op.apply(x).map(canonical) } else { None }
}

pub(super) fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Option<Scalar> {
    let are_zeros = a.as_f64() == 0.0 && b.as_f64() == 0.0;
    let is_exact = match op.floats() {
        _ if !a.dtype().is_float() => true,
        // Which zero is the larger one is left to the kernel.
        _ if are_zeros && matches!(op, BinaryOp::Maximum | BinaryOp::Minimum) => a == b,
        Some(Meaning::Exact(_) | Meaning::Test(_)) => is_kept(a.dtype(), op.apply(wide(a), wide(b))?),
        Some(Meaning::Near(_) | Meaning::Stepwise(..)) | None => false,
    };
    if is_exact { op.apply(a, b).map(canonical) } else { None }
}

/// As kernels have it in registers.
fn wide(x: Scalar) -> Scalar {
    x.cast(x.dtype().compute())
}

/// Whether what a kernel has in a register is a value of the dtype, or no float.
fn is_kept(dtype: DType, result: Scalar) -> bool {
    let is_same = |stored: Scalar| stored.as_f64() == result.as_f64() || result.as_f64().is_nan();
    !result.dtype().is_float() || is_same(result.cast(dtype))
}

fn canonical(x: Scalar) -> Scalar {
    if x.dtype().is_float() && x.as_f64().is_nan() { Scalar::from_f64(x.dtype(), f64::NAN) } else { x }
}

/// As Rust's `as`, where there is only one way to round.
pub(super) fn cast(x: Scalar, to: DType) -> Option<Scalar> {
    let from = x.dtype();
    if from == to {
        return Some(x);
    }
    if from.is_float() && to.is_float() && x.as_f64().is_nan() {
        return Some(Scalar::from_f64(to, f64::NAN));
    }
    match (from, to) {
        (DType::F16 | DType::BF16 | DType::F32, DType::F16) => {
            Some(Scalar::from_bits(to, f16::from_f32(x.as_f64() as f32).to_bits().into()))
        }
        (DType::F16 | DType::BF16 | DType::F32, DType::BF16) => {
            Some(Scalar::from_bits(to, bf16::from_f32(x.as_f64() as f32).to_bits().into()))
        }
        // Through f32 or not makes a difference here, unless nothing is rounded.
        (DType::F64, DType::F16 | DType::BF16) => {
            let rounded = x.cast(to);
            (rounded.as_f64() == x.as_f64()).then_some(rounded)
        }
        (
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64,
            DType::F16 | DType::BF16,
        ) => {
            let rounded = x.cast(to);
            (rounded.as_f64().is_finite() && rounded.as_i64() == x.as_i64()).then_some(rounded)
        }
        (
            _,
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::U32
            | DType::I64
            | DType::F32
            | DType::F64,
        ) => Some(x.cast(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn i32s(op: BinaryOp, a: i64, b: i64) -> i64 {
        let scalar = |value| Scalar::from_i64(DType::I32, value);
        binary(op, scalar(a), scalar(b)).unwrap().as_i64()
    }

    #[test]
    fn integers_wrap_floor_and_have_a_result_for_zero_divisors() {
        let least = i32::MIN as i64;
        let cases = [
            (BinaryOp::Add, i32::MAX as i64, 1, least),
            (BinaryOp::Mul, 1 << 20, 1 << 12, 0),
            (BinaryOp::FloorDiv, -7, 2, -4),
            (BinaryOp::FloorDiv, 7, -2, -4),
            (BinaryOp::FloorDiv, least, -1, least),
            (BinaryOp::FloorDiv, 5, 0, 0),
            (BinaryOp::Rem, -7, 3, 2),
            (BinaryOp::Rem, 7, -3, -2),
            (BinaryOp::Rem, least, -1, 0),
            (BinaryOp::Rem, 5, 0, 0),
            (BinaryOp::Pow, -3, 3, -27),
            (BinaryOp::Pow, 2, 32, 0),
            (BinaryOp::Pow, 0, 0, 1),
            (BinaryOp::Pow, 2, -1, 0),
            (BinaryOp::Pow, 1, -5, 1),
            (BinaryOp::Pow, -1, -5, -1),
            (BinaryOp::Pow, -1, -4, 1),
            (BinaryOp::Lt, -1, 0, 1),
        ];
        for (op, a, b, expected) in cases {
            assert_eq!(i32s(op, a, b), expected, "{op}({a}, {b})");
        }
        let u8 = |value| Scalar::from_i64(DType::U8, value);
        assert_eq!(binary(BinaryOp::Sub, u8(1), u8(2)), Some(u8(255)));
        assert_eq!(unary(UnaryOp::Neg, u8(5)), Some(u8(251)));
        let i64 = |value| Scalar::from_i64(DType::I64, value);
        assert_eq!(unary(UnaryOp::Abs, i64(i64::MIN)), Some(i64(i64::MIN)));
        assert_eq!(binary(BinaryOp::FloorDiv, i64(i64::MIN), i64(-1)), Some(i64(i64::MIN)));
    }

    #[test]
    fn floats_round_in_their_own_type_and_nans_are_canonical() {
        let f32 = |value: f32| Scalar::from_f64(DType::F32, value.into());
        assert_eq!(binary(BinaryOp::Add, f32(1.0), f32(1e-9)), Some(f32(1.0)));
        assert_eq!(binary(BinaryOp::Div, f32(0.0), f32(0.0)), Some(f32(f32::NAN)));
        assert_eq!(unary(UnaryOp::Neg, f32(f32::NAN)), Some(f32(f32::NAN)));
        assert_eq!(unary(UnaryOp::Sqrt, f32(-0.0)), Some(f32(-0.0)));
        assert_eq!(unary(UnaryOp::Relu, f32(-0.0)), Some(f32(-0.0)));
        assert_eq!(unary(UnaryOp::Sign, f32(-0.0)), Some(f32(0.0)));
        assert_eq!(binary(BinaryOp::Maximum, f32(0.0), f32(-0.0)), None);
        assert_eq!(binary(BinaryOp::Maximum, f32(1.0), f32(f32::NAN)), Some(f32(f32::NAN)));
        assert_eq!(unary(UnaryOp::Exp, f32(0.0)), None);
    }

    #[test]
    fn bits_of_numbers_are_computed_ahead() {
        let f32 = |bits: u64| Scalar::from_bits(DType::F32, bits);
        let i32 = |bits: u64| Scalar::from_bits(DType::I32, bits);
        for bits in [0, 1, 0x3f80_0000, 0x7f80_0000, 0x8000_0000, 0xff80_0000] {
            assert_eq!(unary(UnaryOp::Bitcast, f32(bits)), Some(i32(bits)));
            assert_eq!(unary(UnaryOp::Bitcast, i32(bits)), Some(f32(bits)));
        }
        // No literal has this payload.
        assert_eq!([f32(0x7f80_0001), i32(0xffc0_0000)].map(|x| unary(UnaryOp::Bitcast, x)), [None; 2]);
    }

    #[test]
    fn casts_to_16_bits_round_half_to_even_once() {
        let f32 = |value: f32| Scalar::from_f64(DType::F32, value.into());
        let bits = |x: Scalar| cast(x, DType::F16).map(Scalar::to_bits);
        // 1 + 2^-11 is half way; a little more rounds up.
        assert_eq!(bits(f32(1.0 + f32::powi(2.0, -11))), Some(0x3c00));
        assert_eq!(bits(f32(1.0 + f32::powi(2.0, -11) + f32::powi(2.0, -22))), Some(0x3c01));
        assert_eq!(bits(f32(1e9)), Some(0x7c00));
        assert_eq!(bits(Scalar::from_f64(DType::F64, 1.5)), Some(0x3e00));
        assert_eq!(bits(Scalar::from_f64(DType::F64, 0.1)), None);
        assert_eq!(bits(Scalar::from_i64(DType::I64, 2048)), Some(0x6800));
        assert_eq!(bits(Scalar::from_i64(DType::I64, 2049)), None);
    }

    #[test]
    fn casts_to_integers_saturate_and_nan_is_zero() {
        let f64 = |value| Scalar::from_f64(DType::F64, value);
        assert_eq!(cast(f64(300.0), DType::U8).map(Scalar::as_i64), Some(255));
        assert_eq!(cast(f64(f64::NAN), DType::I32).map(Scalar::as_i64), Some(0));
        assert_eq!(cast(f64(f64::NAN), DType::Bool).map(Scalar::as_i64), Some(1));
        assert_eq!(cast(Scalar::from_i64(DType::I32, 300), DType::U8).map(Scalar::as_i64), Some(44));
    }
}
