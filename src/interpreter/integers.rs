//! Operations on integers that Rust has with other corners.

use super::values::Int;

/// As PyTorch: nothing is left where the amount is no number of bits that the type has.
pub(super) fn shifted_left<T: Int>(a: T, b: T) -> i64 {
    let width = 8 * size_of::<T>() as i64;
    if (0..width).contains(&b.to_i64()) { a.to_i64() << b.to_i64() } else { 0 }
}

pub(super) fn shifted_right<T: Int>(a: T, b: T) -> i64 {
    let width = 8 * size_of::<T>() as i64;
    let amount = if (0..width).contains(&b.to_i64()) { b.to_i64() } else { 63 };
    a.to_i64() >> amount
}

pub(super) fn int_floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let quotient = a.wrapping_div(b);
    let inexact_and_negative = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    if inexact_and_negative { quotient - 1 } else { quotient }
}

pub(super) fn int_remainder(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
}

pub(super) fn int_pow(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (1, _) => 1,
        (-1, _) => {
            if exponent % 2 == 0 {
                1
            } else {
                -1
            }
        }
        (_, ..0) => 0,
        (_, 0..) => {
            let (mut result, mut square, mut rest) = (1i64, base, exponent);
            while rest > 0 {
                if rest % 2 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                rest /= 2;
            }
            result
        }
    }
}
