//! Bessel functions over powers of their argument, of which one is the slope of the other: derivatives of any order at 0, and
//! without the digits that differences lose near it.

use super::formula::Term;

/// Functions `f_n(x) = b_n(x) / x^n` of Bessel functions `b_n`, by order. All are even; `f_n' = sign x f_(n+1)`, and
/// `f_(n+1) = sign (f_(n-1) - (2n + shift) f_n) / x²`.
#[derive(Clone, Copy)]
pub(super) struct Quotient {
    pub(super) sign: f64,
    /// 1 for spherical functions, whose orders lie a half higher.
    pub(super) shift: u32,
    /// Whether they are multiplied with `exp(-|x|)`.
    pub(super) is_scaled: bool,
    /// Those of two neighbouring orders, of which the second is 1, or 0 with a shift.
    pub(super) begin: fn(&Term) -> [Term; 2],
}

/// Of the spherical functions of the first kind: of order 0, `sin(x) / x`.
pub(super) const SPHERICAL: Quotient =
    Quotient { sign: -1.0, shift: 1, is_scaled: false, begin: |x| [x.cos(), x.sin() / x] };

/// Up to here it is a power series, whose first terms are exact to the last bits.
const NEAR: f64 = 2.0;
const TERMS: u32 = 14;

impl Quotient {
    /// The one of order 1, given the Bessel function of that order.
    pub(super) fn of_first(self, x: &Term, y: &Term) -> Term {
        let is_zero = x.eq(0.0);
        // No quotient is computed where it does not count: its slope would be.
        let quotient = y / is_zero.select(1.0, x);
        self.sloped(1, x, is_zero.select(0.5, quotient))
    }

    /// The one of an order from 1 on.
    pub(super) fn of(self, order: u32, x: &Term) -> Term {
        let is_near = x.abs().le(NEAR);
        let far = is_near.select(NEAR, x);
        let [mut before, mut value] = (self.begin)(&far);
        for n in 1 - self.shift..order {
            let next = (before - &value * f64::from(2 * n + self.shift)) / far.square() * self.sign;
            (before, value) = (value, next);
        }
        let near = is_near.select(x, NEAR);
        self.sloped(order, x, is_near.select(self.series(order, &near), value))
    }

    /// The value, with the slope that the next order gives.
    fn sloped(self, order: u32, x: &Term, value: Term) -> Term {
        value.derived([x], move |g, [x], y| {
            let slope = &x * self.of(order + 1, &x) * self.sign;
            [g * if self.is_scaled { slope - x.sign() * y } else { slope }]
        })
    }

    /// By powers of `x²`.
    fn series(self, order: u32, x: &Term) -> Term {
        // The term of x^(2k) is divided by 2^k k! and the product of all 2j + shift with j up to order + k: its last factor.
        let shift = f64::from(self.shift);
        let factor = |k: u32| 2.0 * f64::from(order + k) + shift;
        let first: f64 = (1..=order).map(|n| 2.0 * f64::from(n) + shift).product();
        let square = x.square();
        // Of the last term first, each a multiple of the one before.
        let sum = (1..TERMS)
            .rev()
            .fold(x.like(1.0), |sum, k| sum * &square * (self.sign / (2.0 * f64::from(k) * factor(k))) + 1.0);
        let sum = sum * (1.0 / first);
        if self.is_scaled { sum * (-x.abs()).exp() } else { sum }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tensor::arguments::call::Call;
    use crate::{Device, Tensor};

    /// Each is the same on both sides of where the series ends, and near it.
    pub(in super::super) fn assert_meets(quotient: Quotient) {
        let at = [-2.000_000_001, -1.999_999_999, 1.999_999_999, 2.000_000_001];
        let x = Tensor::from_slice(&at, [4]).to(&Device::interpreter());
        for order in 1..4 {
            let x = Term { call: Call::here("grad"), value: Ok(x.clone()) };
            let values = quotient.of(order, &x).value.unwrap().to_vec::<f64>().unwrap();
            let first = values[0];
            assert!(values.iter().all(|value| (value / first - 1.0).abs() < 1e-8), "{order}: {values:?}");
        }
    }

    #[test]
    fn series_and_recurrence_meet() {
        assert_meets(SPHERICAL);
    }
}
