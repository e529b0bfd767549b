//! Scalar operations whose result is exactly defined, so that it may be computed ahead: all of them
//! on integers, and on floats those that IEEE 754 rounds correctly. `None` where a kernel's result may
//! differ: transcendental functions, and arithmetic on the 16-bit floats, which kernels keep unrounded
//! in f32. A NaN result is the canonical one.

use half::{bf16, f16};

use crate::{BinaryOp, DType, Scalar, UnaryOp};

pub(super) fn unary(op: UnaryOp, x: Scalar) -> Option<Scalar> {
    let dtype = x.dtype();
    if !op.accepts(dtype) {
        return None;
    }
    match dtype {
        DType::Bool => Some(Scalar::from_bool(!x.is_nonzero())),
        DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            Some(Scalar::from_i64(dtype, integer_unary(op, x.as_i64())?))
        }
        DType::F16 | DType::BF16 => match op {
            UnaryOp::Neg
            | UnaryOp::Abs
            | UnaryOp::Sign
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Round
            | UnaryOp::Trunc
            | UnaryOp::Relu
            | UnaryOp::IsNan
            | UnaryOp::IsInf
            | UnaryOp::IsFinite => f32_unary(op, x.as_f64() as f32).map(|result| result.within(dtype)),
            _ => None,
        },
        DType::F32 => f32_unary(op, x.as_f64() as f32).map(|result| result.within(dtype)),
        DType::F64 => f64_unary(op, x.as_f64()).map(|result| result.within(dtype)),
    }
}

pub(super) fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Option<Scalar> {
    let dtype = a.dtype();
    if b.dtype() != dtype || !op.accepts(dtype) {
        return None;
    }
    match dtype {
        DType::Bool => Some(Scalar::from_bool(bool_binary(op, a.is_nonzero(), b.is_nonzero())?)),
        DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            let result = integer_binary(op, dtype, a.as_i64(), b.as_i64())?;
            Some(Scalar::from_i64(op.result(dtype), result))
        }
        DType::F16 | DType::BF16 => match op {
            BinaryOp::Maximum | BinaryOp::Minimum => {
                f32_binary(op, a.as_f64() as f32, b.as_f64() as f32).map(|result| result.within(dtype))
            }
            _ if op.is_comparison() => {
                f32_binary(op, a.as_f64() as f32, b.as_f64() as f32).map(|result| result.within(dtype))
            }
            _ => None,
        },
        DType::F32 => f32_binary(op, a.as_f64() as f32, b.as_f64() as f32).map(|result| result.within(dtype)),
        DType::F64 => f64_binary(op, a.as_f64(), b.as_f64()).map(|result| result.within(dtype)),
    }
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

fn bool_binary(op: BinaryOp, a: bool, b: bool) -> Option<bool> {
    Some(match op {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Fmax | BinaryOp::Or => a | b,
        BinaryOp::Mul | BinaryOp::Minimum | BinaryOp::Fmin | BinaryOp::And => a & b,
        BinaryOp::Xor | BinaryOp::Ne => a != b,
        BinaryOp::Eq => a == b,
        BinaryOp::Lt => !a & b,
        BinaryOp::Le => !a | b,
        BinaryOp::Gt => a & !b,
        BinaryOp::Ge => a | !b,
        BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::Rem
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Atan2
        | BinaryOp::Hypot
        | BinaryOp::Copysign
        | BinaryOp::Shl
        | BinaryOp::Shr => return None,
    })
}

/// In i64; the low bits are right for every narrower type.
fn integer_unary(op: UnaryOp, x: i64) -> Option<i64> {
    Some(match op {
        UnaryOp::Neg => x.wrapping_neg(),
        UnaryOp::Abs => x.wrapping_abs(),
        UnaryOp::Sign => x.signum(),
        UnaryOp::Square => x.wrapping_mul(x),
        UnaryOp::Relu => x.max(0),
        UnaryOp::BitNot => !x,
        _ => return None,
    })
}

/// In i64; the low bits are right for every narrower type.
fn integer_binary(op: BinaryOp, dtype: DType, a: i64, b: i64) -> Option<i64> {
    let width = dtype.size() as i64 * 8;
    Some(match op {
        BinaryOp::Fmod if b == 0 => 0,
        BinaryOp::Fmod => a.wrapping_rem(b),
        BinaryOp::Shl if (0..width).contains(&b) => a << b,
        BinaryOp::Shl => 0,
        BinaryOp::Shr if (0..width).contains(&b) => a >> b,
        BinaryOp::Shr => -i64::from(a < 0),
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::FloorDiv if b == 0 => 0,
        BinaryOp::FloorDiv => {
            let (quotient, remainder) = (a.wrapping_div(b), a.wrapping_rem(b));
            quotient - (remainder != 0 && (remainder < 0) != (b < 0)) as i64
        }
        BinaryOp::Rem if b == 0 => 0,
        BinaryOp::Rem => {
            let remainder = a.wrapping_rem(b);
            if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
        }
        BinaryOp::Pow => integer_power(a, b),
        BinaryOp::Maximum | BinaryOp::Fmax => a.max(b),
        BinaryOp::Minimum | BinaryOp::Fmin => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Eq => (a == b) as i64,
        BinaryOp::Ne => (a != b) as i64,
        BinaryOp::Lt => (a < b) as i64,
        BinaryOp::Le => (a <= b) as i64,
        BinaryOp::Gt => (a > b) as i64,
        BinaryOp::Ge => (a >= b) as i64,
        BinaryOp::Div | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Copysign => return None,
    })
}

fn integer_power(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

/// The result of a float operation: a number or a truth value.
enum Outcome {
    Number(f64),
    Truth(bool),
}

impl Outcome {
    /// As a scalar; the number is representable in `dtype`, or is NaN.
    fn within(self, dtype: DType) -> Scalar {
        match self {
            Outcome::Number(number) if number.is_nan() => Scalar::from_f64(dtype, f64::NAN),
            Outcome::Number(number) => Scalar::from_f64(dtype, number),
            Outcome::Truth(truth) => Scalar::from_bool(truth),
        }
    }
}

macro_rules! float_operations {
    ($float:ident, $unary:ident, $binary:ident) => {
        fn $unary(op: UnaryOp, x: $float) -> Option<Outcome> {
            let number = match op {
                UnaryOp::Neg => -x,
                UnaryOp::Abs => x.abs(),
                UnaryOp::Sign if x == 0.0 => 0.0,
                UnaryOp::Sign => x.signum(),
                UnaryOp::Reciprocal => 1.0 / x,
                UnaryOp::Square => x * x,
                UnaryOp::Sqrt => x.sqrt(),
                UnaryOp::Floor => x.floor(),
                UnaryOp::Ceil => x.ceil(),
                UnaryOp::Round => x.round_ties_even(),
                UnaryOp::Trunc => x.trunc(),
                UnaryOp::Relu => {
                    if x < 0.0 {
                        0.0
                    } else {
                        x
                    }
                }
                UnaryOp::IsNan => return Some(Outcome::Truth(x.is_nan())),
                UnaryOp::IsInf => return Some(Outcome::Truth(x.is_infinite())),
                UnaryOp::IsFinite => return Some(Outcome::Truth(x.is_finite())),
                UnaryOp::Rsqrt
                | UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Expm1
                | UnaryOp::Log
                | UnaryOp::Log2
                | UnaryOp::Log10
                | UnaryOp::Log1p
                | UnaryOp::Sin
                | UnaryOp::Cos
                | UnaryOp::Tan
                | UnaryOp::Asin
                | UnaryOp::Acos
                | UnaryOp::Atan
                | UnaryOp::Sinh
                | UnaryOp::Cosh
                | UnaryOp::Asinh
                | UnaryOp::Acosh
                | UnaryOp::Atanh
                | UnaryOp::Cbrt
                | UnaryOp::Erfc
                | UnaryOp::Erfinv
                | UnaryOp::Lgamma
                | UnaryOp::Digamma
                | UnaryOp::Tanh
                | UnaryOp::Erf
                | UnaryOp::Not
                | UnaryOp::BitNot => return None,
            };
            Some(Outcome::Number(number.into()))
        }

        fn $binary(op: BinaryOp, a: $float, b: $float) -> Option<Outcome> {
            let number = match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                // Which zero is the larger one is left to the kernel.
                BinaryOp::Maximum | BinaryOp::Minimum if a == b && a.to_bits() != b.to_bits() => return None,
                BinaryOp::Maximum | BinaryOp::Minimum if a.is_nan() || b.is_nan() => $float::NAN,
                BinaryOp::Maximum => a.max(b),
                BinaryOp::Minimum => a.min(b),
                BinaryOp::Eq => return Some(Outcome::Truth(a == b)),
                BinaryOp::Ne => return Some(Outcome::Truth(a != b)),
                BinaryOp::Lt => return Some(Outcome::Truth(a < b)),
                BinaryOp::Le => return Some(Outcome::Truth(a <= b)),
                BinaryOp::Gt => return Some(Outcome::Truth(a > b)),
                BinaryOp::Ge => return Some(Outcome::Truth(a >= b)),
                BinaryOp::FloorDiv
                | BinaryOp::Rem
                | BinaryOp::Fmod
                | BinaryOp::Fmax
                | BinaryOp::Fmin
                | BinaryOp::Pow
                | BinaryOp::Atan2
                | BinaryOp::Hypot
                | BinaryOp::Copysign
                | BinaryOp::Shl
                | BinaryOp::Shr
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor => return None,
            };
            Some(Outcome::Number(number.into()))
        }
    };
}
float_operations!(f32, f32_unary, f32_binary);
float_operations!(f64, f64_unary, f64_binary);

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
