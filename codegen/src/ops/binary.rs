//! Operations on two values: each declared in one place, with what it computes.

use super::Meaning::{Exact, Near, Stepwise, Test};
use super::scalar_operations;

/// What an operation on two values computes.
pub type BinaryMeaning = super::Meaning<fn(f64, f64) -> f64, fn(f32, f32) -> f32, fn(f64, f64) -> bool>;

scalar_operations! {
    /// An operation on two values of the same type.
    ///
    /// ```
    /// use lazuli_codegen::{BinaryOp, DType};
    /// assert_eq!(BinaryOp::FloorDiv.name(), "floor_divide");
    /// assert_eq!(BinaryOp::Lt.result(DType::F32), DType::Bool);
    /// ```
    BinaryOp of BinaryMeaning, fn(i64, i64) -> i64:
    /// Sum; wraps for integers; logical or for `Bool`.
    Add = "add", All -> Same {
        cost: 1.0,
        spelling: Own,
        floats: Exact(|a, b| a + b),
        integers: i64::wrapping_add,
    }
    /// Difference; wraps for integers.
    Sub = "sub", Numbers -> Same {
        cost: 1.0,
        spelling: Own,
        floats: Exact(|a, b| a - b),
        integers: i64::wrapping_sub,
    }
    /// Product; wraps for integers; logical and for `Bool`.
    Mul = "mul", All -> Same {
        cost: 1.0,
        spelling: Own,
        floats: Exact(|a, b| a * b),
        integers: i64::wrapping_mul,
    }
    /// IEEE quotient; floats only.
    Div = "div", Floats -> Same { cost: 8.0, spelling: Own, floats: Exact(|a, b| a / b) }
    /// Quotient rounded towards minus infinity, as PyTorch's `//`. Integer division by zero gives 0;
    /// the least integer divided by -1 wraps to itself. For floats as PyTorch's `floor_divide`
    /// (`(a - fmod(a, b)) / b` snapped to the nearest integer below; `x // 0` is `x / 0`).
    FloorDiv = "floor_divide", Numbers -> Same {
        cost: 15.0,
        spelling: Named("floor_div"),
        floats: Stepwise(floor_divide_f32, floor_divide_f64),
        integers: floor_divide,
    }
    /// Remainder with the divisor's sign, as PyTorch's `%`. An integer remainder by zero is 0.
    Rem = "remainder", Numbers -> Same {
        cost: 15.0,
        spelling: Named("rem"),
        floats: Stepwise(remainder_f32, remainder_f64),
        integers: remainder,
    }
    /// Remainder with the dividend's sign, as C's `fmod`. An integer remainder by zero is 0.
    Fmod = "fmod", Numbers -> Same {
        cost: 15.0,
        spelling: Own,
        floats: Near(|a, b| a % b),
        integers: |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) },
    }
    /// `a` to the power `b`. Integers: repeated wrapping multiplication; a negative exponent gives
    /// 0, except for bases 1 (1) and -1 (±1).
    Pow = "pow", Numbers -> Same {
        cost: 40.0,
        spelling: Vectorised,
        floats: Near(f64::powf),
        integers: power,
    }
    /// The larger; NaN if either is NaN.
    Maximum = "maximum", All -> Same { cost: 1.0, spelling: Own, floats: Exact(maximum), integers: i64::max }
    /// The smaller; NaN if either is NaN.
    Minimum = "minimum", All -> Same { cost: 1.0, spelling: Own, floats: Exact(minimum), integers: i64::min }
    /// The larger; the other if one is NaN.
    Fmax = "fmax", All -> Same {
        cost: 1.0,
        spelling: Own,
        floats: Near(|a, b| number(a, b, maximum)),
        integers: i64::max,
    }
    /// The smaller; the other if one is NaN.
    Fmin = "fmin", All -> Same {
        cost: 1.0,
        spelling: Own,
        floats: Near(|a, b| number(a, b, minimum)),
        integers: i64::min,
    }
    /// Angle of the point (`b`, `a`), in radians.
    Atan2 = "atan2", Floats -> Same { cost: 40.0, spelling: Vectorised, floats: Near(f64::atan2) }
    /// `sqrt(a² + b²)` without overflow on the way; infinite if either is, even beside NaN.
    Hypot = "hypot", Floats -> Same { cost: 40.0, spelling: Vectorised, floats: Near(libm::hypot) }
    /// The magnitude of `a` with the sign of `b`.
    Copysign = "copysign", Floats -> Same {
        cost: 1.0,
        spelling: Library("copysign"),
        floats: Near(f64::copysign),
    }
    /// Bitwise and; logical for `Bool`.
    And = "and", Bits -> Same { cost: 1.0, spelling: Own, integers: |a, b| a & b }
    /// Bitwise or; logical for `Bool`.
    Or = "or", Bits -> Same { cost: 1.0, spelling: Own, integers: |a, b| a | b }
    /// Bitwise exclusive or; logical for `Bool`.
    Xor = "xor", Bits -> Same { cost: 1.0, spelling: Own, integers: |a, b| a ^ b }
    /// The greatest common divisor, which is not negative, and 0 of two zeros. Where it is the least integer's magnitude, which no
    /// integer of the type is, it wraps to that.
    Gcd = "gcd", Integers -> Same { cost: 80.0, spelling: Text(GCD), integers: gcd }
    /// `a` shifted left by `b` bits; 0 where `b` is negative or not less than the width.
    Shl = "shl", Integers -> Same { cost: 1.0, spelling: Own, integers: shifted_left }
    /// `a` shifted right by `b` bits, copies of the sign coming in; where `b` is negative or not less than the
    /// width, nothing but these: -1 or 0.
    Shr = "shr", Integers -> Same { cost: 1.0, spelling: Own, integers: shifted_right }
    /// `a == b`; false if either is NaN.
    Eq = "eq", All -> Bool {
        cost: 1.0,
        spelling: Own,
        floats: Test(|a, b| a == b),
        integers: |a, b| i64::from(a == b),
    }
    /// `a != b`; true if either is NaN.
    Ne = "ne", All -> Bool {
        cost: 1.0,
        spelling: Own,
        floats: Test(|a, b| a != b),
        integers: |a, b| i64::from(a != b),
    }
    /// `a < b`.
    Lt = "lt", All -> Bool {
        cost: 1.0,
        spelling: Own,
        floats: Test(|a, b| a < b),
        integers: |a, b| i64::from(a < b),
    }
    /// `a <= b`.
    Le = "le", All -> Bool {
        cost: 1.0,
        spelling: Own,
        floats: Test(|a, b| a <= b),
        integers: |a, b| i64::from(a <= b),
    }
    /// `a > b`.
    Gt = "gt", All -> Bool {
        cost: 1.0,
        spelling: Own,
        floats: Test(|a, b| a > b),
        integers: |a, b| i64::from(a > b),
    }
    /// `a >= b`.
    Ge = "ge", All -> Bool {
        cost: 1.0,
        spelling: Own,
        floats: Test(|a, b| a >= b),
        integers: |a, b| i64::from(a >= b),
    }
}

impl BinaryOp {
    /// Whether the result is a `Bool` comparison.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }

    /// Whether swapping the operands never changes the result (NaN payloads aside).
    pub const fn is_commutative(self) -> bool {
        matches!(
            self,
            BinaryOp::Add
                | BinaryOp::Mul
                | BinaryOp::Maximum
                | BinaryOp::Minimum
                | BinaryOp::Fmax
                | BinaryOp::Fmin
                | BinaryOp::Hypot
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Gcd
                | BinaryOp::Eq
                | BinaryOp::Ne
        )
    }
}

/// The larger, NaN if either is NaN; +0 is larger than -0.
fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b || (a == b && !a.is_sign_negative()) { a } else { b }
}

/// The smaller, NaN if either is NaN; -0 is smaller than +0.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// The number, if the other is NaN.
fn number(a: f64, b: f64, combine: fn(f64, f64) -> f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => combine(a, b),
    }
}

macro_rules! divisions {
    ($float:ident, $floor_divide:ident, $remainder:ident) => {
        /// As PyTorch's `floor_divide`: the quotient without the remainder, snapped to an integer.
        fn $floor_divide(a: $float, b: $float) -> $float {
            if b == 0.0 {
                return a / b;
            }
            let remainder = a % b;
            let mut quotient = (a - remainder) / b;
            if remainder != 0.0 && (b < 0.0) != (remainder < 0.0) {
                quotient -= 1.0;
            }
            if quotient == 0.0 {
                return (0.0 as $float).copysign(a / b);
            }
            let floor = quotient.floor();
            if quotient - floor > 0.5 { floor + 1.0 } else { floor }
        }

        /// As PyTorch's `remainder`: C's `fmod`, moved to the divisor's sign.
        fn $remainder(a: $float, b: $float) -> $float {
            let remainder = a % b;
            if remainder != 0.0 && (b < 0.0) != (remainder < 0.0) { remainder + b } else { remainder }
        }
    };
}
divisions!(f32, floor_divide_f32, remainder_f32);
divisions!(f64, floor_divide_f64, remainder_f64);

fn floor_divide(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let is_inexact_and_negative = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    a.wrapping_div(b) - i64::from(is_inexact_and_negative)
}

fn remainder(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
}

/// Euclid's. Magnitudes are unsigned: that of the least integer is no integer of its type.
const GCD: &str = "\
unsigned int lz_gcd_u32(unsigned int a, unsigned int b) {
    while (b != 0) {
        unsigned int r = a % b;
        a = b;
        b = r;
    }
    return a;
}

unsigned long long lz_gcd_u64(unsigned long long a, unsigned long long b) {
    while (b != 0) {
        unsigned long long r = a % b;
        a = b;
        b = r;
    }
    return a;
}

unsigned char lz_gcd_u8(unsigned char a, unsigned char b) {
    return (unsigned char)lz_gcd_u32(a, b);
}

signed char lz_gcd_i8(signed char a, signed char b) {
    return (signed char)lz_gcd_u32((unsigned int)(a < 0 ? -a : a), (unsigned int)(b < 0 ? -b : b));
}

short lz_gcd_i16(short a, short b) {
    return (short)lz_gcd_u32((unsigned int)(a < 0 ? -a : a), (unsigned int)(b < 0 ? -b : b));
}

int lz_gcd_i32(int a, int b) {
    unsigned int p = a < 0 ? 0u - (unsigned int)a : (unsigned int)a;
    unsigned int q = b < 0 ? 0u - (unsigned int)b : (unsigned int)b;
    return (int)lz_gcd_u32(p, q);
}

long long lz_gcd_i64(long long a, long long b) {
    unsigned long long p = a < 0 ? 0ull - (unsigned long long)a : (unsigned long long)a;
    unsigned long long q = b < 0 ? 0ull - (unsigned long long)b : (unsigned long long)b;
    return (long long)lz_gcd_u64(p, q);
}";

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

fn power(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        (_, ..0) => 0,
        (_, 0..) => {
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
    }
}

/// In a narrower type, bits beyond its width fall off.
fn shifted_left(a: i64, b: i64) -> i64 {
    if (0..64).contains(&b) { a << b } else { 0 }
}

/// Beyond the width, copies of the sign are all that is left.
fn shifted_right(a: i64, b: i64) -> i64 {
    a >> if (0..64).contains(&b) { b } else { 63 }
}
