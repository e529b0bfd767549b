//! What each operation computes, written from the definitions of the operations alone.

use lazuli_codegen::{BinaryOp, DType, Scalar, UnaryOp};

/// What a result is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Bit for bit, but for the payload of a NaN.
    Exact(Scalar),
    /// Within the operation's error of this real number, rounded to f64.
    Near(f64),
}

unsafe extern "C" {
    // The standard library of Rust has no stable error function, and its inverse hyperbolic functions lose digits; the
    // C library that it links has better.
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
}

/// A transcendental function in f64.
pub fn transcendental(op: UnaryOp) -> Option<fn(f64) -> f64> {
    Some(match op {
        UnaryOp::Exp => f64::exp,
        UnaryOp::Exp2 => f64::exp2,
        UnaryOp::Expm1 => f64::exp_m1,
        UnaryOp::Log => f64::ln,
        UnaryOp::Log2 => f64::log2,
        UnaryOp::Log10 => f64::log10,
        UnaryOp::Log1p => f64::ln_1p,
        UnaryOp::Sin => f64::sin,
        UnaryOp::Cos => f64::cos,
        UnaryOp::Tan => f64::tan,
        UnaryOp::Tanh => f64::tanh,
        UnaryOp::Erf => |x| erf(x),
        UnaryOp::Asin => f64::asin,
        UnaryOp::Acos => f64::acos,
        UnaryOp::Atan => f64::atan,
        UnaryOp::Sinh => f64::sinh,
        UnaryOp::Cosh => f64::cosh,
        UnaryOp::Asinh => |x| asinh(x),
        UnaryOp::Acosh => |x| acosh(x),
        UnaryOp::Atanh => |x| atanh(x),
        UnaryOp::Cbrt => f64::cbrt,
        UnaryOp::Erfc => |x| erfc(x),
        UnaryOp::Lgamma => |x| lgamma(x),
        UnaryOp::Erfinv => erfinv,
        UnaryOp::Digamma => digamma,
        UnaryOp::I0 => i0,
        UnaryOp::Rsqrt => |x| 1.0 / x.sqrt(),
        _ => return None,
    })
}

/// Newton's method on the C library's functions, from a bracket.
fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() || a >= 1.0 {
        return if a == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    let scale = std::f64::consts::PI.sqrt() / 2.0;
    if a < 1e-8 {
        return x * scale;
    }
    let excess = |y: f64| if a < 0.5 { erf(y) - a } else { (1.0 - a) - erfc(y) };
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        *(if excess(middle) < 0.0 { &mut low } else { &mut high }) = middle;
    }
    let y = (low + high) / 2.0;
    (y - excess(y) * (y * y).exp() * scale).copysign(x)
}

/// The derivative of Stirling's series far out, and the recurrence down from there.
fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let fraction = x - x.round_ties_even();
        let is_pole = fraction == 0.0 || x.is_infinite();
        let cotangent = std::f64::consts::PI / (std::f64::consts::PI * fraction).tan();
        return if is_pole { f64::NAN } else { digamma(1.0 - x) - cotangent };
    }
    let steps = if x < 30.0 { (30.0 - x).ceil() as usize } else { 0 };
    let y = x + steps as f64;
    let z = 1.0 / (y * y);
    let series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z / 240.0)));
    let below: f64 = (0..steps).rev().map(|n| 1.0 / (x + n as f64)).sum();
    y.ln() - 0.5 / y - series - below
}

/// The mean of cosh(x cos t) over a circle, by a midpoint rule that gives all digits; Hankel's expansion far out, its
/// exponential function in two steps because it overflows later.
fn i0(x: f64) -> f64 {
    const POINTS: u32 = 16;
    let a = x.abs();
    if a.is_nan() || a > 1000.0 {
        return a * f64::INFINITY;
    }
    if a <= 30.0 {
        let angle = |n: u32| (f64::from(n) + 0.5) * std::f64::consts::FRAC_PI_2 / f64::from(POINTS);
        return (0..POINTS).map(|n| (a * angle(n).cos()).cosh()).sum::<f64>() / f64::from(POINTS);
    }
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..20 {
        let odd = f64::from(2 * k - 1);
        term *= odd * odd / (f64::from(8 * k) * a);
        sum += term;
    }
    let root = (a / 2.0).exp();
    sum / (std::f64::consts::TAU * a).sqrt() * root * root
}

pub fn unary(op: UnaryOp, x: Scalar) -> Expected {
    let dtype = x.dtype();
    if op == UnaryOp::Bitcast {
        return Expected::Exact(match dtype {
            DType::F32 => Scalar::from_i64(DType::I32, i64::from(x.to_bits() as u32)),
            DType::F64 => Scalar::from_i64(DType::I64, x.to_bits() as i64),
            DType::I32 => Scalar::from_f64(DType::F32, f32::from_bits(x.as_i64() as u32).into()),
            _ => Scalar::from_f64(DType::F64, f64::from_bits(x.as_i64() as u64)),
        });
    }
    if let Some(function) = transcendental(op) {
        return Expected::Near(function(x.as_f64()));
    }
    Expected::Exact(match dtype {
        DType::F32 => {
            let x = x.as_f64() as f32;
            match unary_float(op, x as f64, (x * x) as f64, (1.0 / x) as f64, x.sqrt() as f64) {
                Ok(truth) => Scalar::from_bool(truth),
                Err(value) => Scalar::from_f64(dtype, value),
            }
        }
        DType::F64 => {
            let x = x.as_f64();
            match unary_float(op, x, x * x, 1.0 / x, x.sqrt()) {
                Ok(truth) => Scalar::from_bool(truth),
                Err(value) => Scalar::from_f64(dtype, value),
            }
        }
        DType::Bool => Scalar::from_bool(!x.is_nonzero()),
        _ => {
            let x = x.as_i64();
            let value = match op {
                UnaryOp::Neg => x.wrapping_neg(),
                UnaryOp::Abs => x.wrapping_abs(),
                UnaryOp::Sign => x.signum(),
                UnaryOp::Square => x.wrapping_mul(x),
                UnaryOp::Relu => x.max(0),
                UnaryOp::BitNot => !x,
                _ => unreachable!("{op} of integers"),
            };
            Scalar::from_i64(dtype, value)
        }
    })
}

/// `Ok` of a truth value or `Err` of a number; what rounds is given, rounded.
fn unary_float(op: UnaryOp, x: f64, square: f64, reciprocal: f64, root: f64) -> Result<bool, f64> {
    Err(match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x.is_nan() => x,
        UnaryOp::Sign if x == 0.0 => 0.0,
        UnaryOp::Sign => x.signum(),
        UnaryOp::Square => square,
        UnaryOp::Reciprocal => reciprocal,
        UnaryOp::Sqrt => root,
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Relu if x < 0.0 => 0.0,
        UnaryOp::Relu => x,
        UnaryOp::IsNan => return Ok(x.is_nan()),
        UnaryOp::IsInf => return Ok(x.is_infinite()),
        UnaryOp::IsFinite => return Ok(x.is_finite()),
        _ => unreachable!("{op} of floats"),
    })
}

pub fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Expected {
    let dtype = a.dtype();
    if op.is_comparison() {
        let ordering = if dtype.is_float() {
            a.as_f64().partial_cmp(&b.as_f64())
        } else {
            Some(a.as_i64().cmp(&b.as_i64()))
        };
        return Expected::Exact(Scalar::from_bool(match op {
            BinaryOp::Eq => ordering.is_some_and(|o| o.is_eq()),
            BinaryOp::Ne => !ordering.is_some_and(|o| o.is_eq()),
            BinaryOp::Lt => ordering.is_some_and(|o| o.is_lt()),
            BinaryOp::Le => ordering.is_some_and(|o| o.is_le()),
            BinaryOp::Gt => ordering.is_some_and(|o| o.is_gt()),
            _ => ordering.is_some_and(|o| o.is_ge()),
        }));
    }
    match (dtype, op) {
        (DType::F32 | DType::F64, BinaryOp::Pow) => Expected::Near(a.as_f64().powf(b.as_f64())),
        (DType::F32 | DType::F64, BinaryOp::Hypot) => Expected::Near(a.as_f64().hypot(b.as_f64())),
        (DType::F32 | DType::F64, BinaryOp::Atan2) => Expected::Near(a.as_f64().atan2(b.as_f64())),
        (DType::F32, _) => {
            let value = float_f32(op, a.as_f64() as f32, b.as_f64() as f32);
            Expected::Exact(Scalar::from_f64(dtype, value as f64))
        }
        (DType::F64, _) => Expected::Exact(Scalar::from_f64(dtype, float_f64(op, a.as_f64(), b.as_f64()))),
        (DType::Bool, _) => {
            let (a, b) = (a.is_nonzero(), b.is_nonzero());
            Expected::Exact(Scalar::from_bool(match op {
                BinaryOp::Add | BinaryOp::Or | BinaryOp::Maximum | BinaryOp::Fmax => a || b,
                BinaryOp::Mul | BinaryOp::And | BinaryOp::Minimum | BinaryOp::Fmin => a && b,
                BinaryOp::Xor => a != b,
                _ => unreachable!("{op} of bool"),
            }))
        }
        _ => Expected::Exact(Scalar::from_i64(dtype, integers(op, dtype, a.as_i64(), b.as_i64()))),
    }
}

/// The result before it wraps to the width of `dtype`.
fn integers(op: BinaryOp, dtype: DType, a: i64, b: i64) -> i64 {
    match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::Fmod if b == 0 => 0,
        BinaryOp::Fmod => (a as i128 % b as i128) as i64,
        BinaryOp::Shl | BinaryOp::Shr => {
            let fits = b >= 0 && b < 8 * dtype.size() as i64;
            match op {
                BinaryOp::Shl if fits => ((a as i128) << b) as i64,
                BinaryOp::Shl => 0,
                _ if fits => a >> b,
                _ => -((a < 0) as i64),
            }
        }
        BinaryOp::FloorDiv => {
            let quotient = a as i128 / b as i128;
            let inexact = a as i128 % b as i128 != 0;
            (quotient - (inexact && (a < 0) != (b < 0)) as i128) as i64
        }
        BinaryOp::Rem => {
            let remainder = a as i128 % b as i128;
            let shifted = remainder != 0 && (remainder < 0) != (b < 0);
            (remainder + if shifted { b as i128 } else { 0 }) as i64
        }
        BinaryOp::Pow if b < 0 => match a {
            1 => 1,
            -1 if b % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        },
        BinaryOp::Pow => {
            // Modulo 2^64, of which every width is a factor: multiply by the squares, from the top bit down.
            (0..64).rev().fold(1i64, |result, bit| {
                let square = result.wrapping_mul(result);
                if b >> bit & 1 == 1 { square.wrapping_mul(a) } else { square }
            })
        }
        BinaryOp::Maximum | BinaryOp::Fmax => a.max(b),
        BinaryOp::Minimum | BinaryOp::Fmin => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Gcd => {
            let [least, most] =
                [a.unsigned_abs().min(b.unsigned_abs()), a.unsigned_abs().max(b.unsigned_abs())];
            if least == 0 { most as i64 } else { integers(op, dtype, (most % least) as i64, least as i64) }
        }
        _ => unreachable!("{op} of {dtype}"),
    }
}

macro_rules! float_binary {
    ($name:ident, $float:ty) => {
        fn $name(op: BinaryOp, a: $float, b: $float) -> $float {
            // Zeros are ordered by their sign, as IEEE 754-2019's maximum and minimum do.
            let less = a < b || a == b && a.is_sign_negative();
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Maximum | BinaryOp::Minimum if a.is_nan() || b.is_nan() => <$float>::NAN,
                BinaryOp::Maximum => {
                    if less {
                        b
                    } else {
                        a
                    }
                }
                BinaryOp::Minimum => {
                    if less {
                        a
                    } else {
                        b
                    }
                }
                BinaryOp::Fmod => a % b,
                BinaryOp::Copysign => a.copysign(b),
                BinaryOp::Fmax | BinaryOp::Fmin if a.is_nan() => b,
                BinaryOp::Fmax | BinaryOp::Fmin if b.is_nan() => a,
                BinaryOp::Fmax => $name(BinaryOp::Maximum, a, b),
                BinaryOp::Fmin => $name(BinaryOp::Minimum, a, b),
                BinaryOp::Rem => {
                    let r = a % b;
                    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
                }
                BinaryOp::FloorDiv => {
                    if b == 0.0 {
                        return a / b;
                    }
                    let r = a % b;
                    let mut quotient = (a - r) / b;
                    if r != 0.0 && (r < 0.0) != (b < 0.0) {
                        quotient -= 1.0;
                    }
                    if quotient == 0.0 {
                        return (0.0 as $float).copysign(a / b);
                    }
                    let floor = quotient.floor();
                    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
                }
                _ => unreachable!("{op} of floats"),
            }
        }
    };
}
float_binary!(float_f32, f32);
float_binary!(float_f64, f64);

/// How far `got` is from `expected`, in units in the last place of an `f32` at `expected`.
pub fn ulps_f32(got: f32, expected: f64) -> f64 {
    if expected.is_nan() || got.is_nan() {
        return if expected.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = expected as f32;
    if got == rounded {
        let same_sign = got != 0.0 || got.is_sign_negative() == expected.is_sign_negative();
        return match (same_sign, rounded.is_infinite()) {
            (false, _) => f64::INFINITY,
            (true, true) => 0.0,
            (true, false) => (got as f64 - expected).abs() / ulp_f32(expected),
        };
    }
    // Beyond the largest number, infinity stands for the next one.
    let number = |x: f64| if x.is_infinite() { x.signum() * 2f64.powi(128) } else { x };
    (number(got as f64) - number(expected)).abs() / ulp_f32(expected)
}

fn ulp_f32(x: f64) -> f64 {
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.clamp(-126, 127) - 23)
}

/// How far apart two `f64` are, counted in representable numbers.
pub fn steps_f64(got: f64, expected: f64) -> f64 {
    if got.is_nan() || expected.is_nan() {
        return if got.is_nan() && expected.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let position = |x: f64| {
        let magnitude = (x.to_bits() & i64::MAX as u64) as i128;
        if x.is_sign_negative() { -1 - magnitude } else { magnitude }
    };
    (position(got) - position(expected)).abs() as f64
}
