//! The Hurwitz zeta function, the derivatives of the digamma function, which are its values, and the gamma function of several dimensions.

use std::f64::consts::PI;

use super::bessel::trigamma;
use super::operands::{Rule, float_for, unified};
use crate::tensor::arguments::call::Call;
use crate::tensor::reduce::statistics::widened;
use crate::{DType, Operand, Tensor};

impl Tensor {
    /// The Hurwitz zeta function, the sum of `(q + k)^-x` over all `k` from 0 on, where this tensor is `x`: with `q = 1` Riemann's. In
    /// the promoted dtype, or `F32` for integers and bools; shapes broadcast. Infinite for `x = 1` and at the poles, where `q` is a
    /// whole number not above 0; NaN for `x` below 1, and for `q` below 0 unless `x` is whole. PyTorch's `torch.special.zeta`, with
    /// gradients by both.
    ///
    /// F. Johansson, "Rigorous high-precision computation of the Hurwitz zeta function and its derivatives", 2015: Euler and
    /// Maclaurin's formula, in `F64`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2.0f64, 3.0], [2]);
    /// let riemann = x.zeta(1.0).to_vec::<f64>()?;
    /// assert!((riemann[0] - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-15);
    /// assert_eq!(Tensor::from([2.0f64]).zeta(0.0).to_vec::<f64>()?, [f64::INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn zeta(&self, q: impl Into<Operand>) -> Tensor {
        let (call, operands) = (Call::here("zeta"), [self.into(), q.into()]);
        call.composed(|| {
            let dtype = Rule::Float.dtype(call, &operands)?;
            let shapes = operands.each_ref().map(Operand::shape);
            let shape = call.broadcast(&shapes.each_ref())?;
            let [x, q] = operands.map(|operand| unified(call, operand, DType::F64, &shape));
            Ok(hurwitz(&x?, &q?).cast(dtype))
        })
    }

    /// The derivative of so high an order of [`Tensor::digamma`], which is itself that of order 0. Floats keep their dtype, integers and
    /// bools give `F32`. At the poles, the whole numbers not above 0, infinite as the terms of its series are. PyTorch's
    /// `torch.polygamma(order, x)`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f64, 2.5], [2]);
    /// let trigamma = x.polygamma(1).to_vec::<f64>()?;
    /// assert!((trigamma[0] - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-15);
    /// assert!((x.polygamma(2).to_vec::<f64>()?[0] + 2.404_113_806_319_188_6).abs() < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn polygamma(&self, order: usize) -> Tensor {
        let call = Call::here("polygamma");
        call.composed(|| {
            let dtype = float_for(self.known()?.1);
            let x = self.cast(dtype);
            Ok(match order {
                0 => x.digamma(),
                1 => trigamma(&x),
                _ => {
                    let factorial: f64 = (2..=order).map(|factor| factor as f64).product();
                    let factor = if order % 2 == 1 { factorial } else { -factorial };
                    let wide = x.cast(DType::F64);
                    let value = (hurwitz(&wide.full_like(order as f64 + 1.0), &wide) * factor).cast(dtype);
                    call.derived(&value, &[&x], move |g, all| Ok(vec![g * all[1].polygamma(order + 1)]))
                }
            })
        })
    }

    /// The logarithm of the gamma function of so many dimensions, which is that of Wishart's distribution: `log(π) p (p - 1) / 4` and the
    /// sum of `lgamma(x - k / 2)` over `k` below `p`, the dimensions. It is for numbers above `(p - 1) / 2`. Floats keep their dtype,
    /// integers and bools give `F32`. PyTorch's `torch.special.multigammaln`.
    ///
    /// Invalid for no dimensions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2.5f64], [1]).multigammaln(2).item::<f64>()?;
    /// assert!((x - 0.857_047_813_397_6).abs() < 1e-12);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn multigammaln(&self, dimensions: usize) -> Tensor {
        let call = Call::here("multigammaln");
        call.composed(|| {
            call.needs(dimensions > 0, "needs at least one dimension", dimensions)?;
            let x = self.cast(float_for(self.known()?.1));
            let p = dimensions as f64;
            widened(&x, |x| {
                let halves = Tensor::arange(0, dimensions as i64, 1).cast(x.node.dtype) * 0.5;
                (x.unsqueeze(-1) - halves).lgamma().sum(-1) + PI.ln() * (p * (p - 1.0) / 4.0)
            })
        })
    }
}

/// Of `F64`.
fn hurwitz(x: &Tensor, q: &Tensor) -> Tensor {
    let floor = q.floor();
    let is_whole = q.eq(&floor);
    let is_negative = q.lt(0.0) & !&is_whole;
    let has_sum = x.gt(1.0) & (q.gt(0.0) | (&is_negative & x.eq(x.floor())));
    // No formula is computed where it does not count: its slope would be.
    let (power, own) = (has_sum.where_(x, 2.0), has_sum.where_(q, 1.0));
    let is_negative = is_negative & &has_sum;
    // Below 0, the terms of either side of 0 are two series, and one of them ends.
    let rest = has_sum.where_(q - floor, 0.5);
    let half = &power * 0.5;
    let sign = half.eq(half.floor()).where_(1.0f64, -1.0);
    let begin = [
        is_negative.where_(&rest, &own),
        is_negative.where_(1.0 - rest, 1.0),
        is_negative.where_(1.0 - &own, 1.0),
    ];
    let ended = is_negative.where_(&sign, 0.0);
    let weights = [ended.ones_like(), ended.clone(), -ended];
    // Of one text: a sum over a new axis.
    let sum = (from(&power, &Tensor::stack(&begin, 0)) * Tensor::stack(&weights, 0)).sum(0);
    let at_pole = (q.le(0.0) & is_whole).where_(f64::INFINITY, sum.full_like(f64::NAN));
    let without = x.eq(1.0).where_(f64::INFINITY, x.lt(1.0).where_(f64::NAN, at_pole));
    has_sum.where_(sum, without)
}

/// The sum for `q` above 0: some terms, and Euler and Maclaurin's series of those behind.
fn from(x: &Tensor, q: &Tensor) -> Tensor {
    let term = |k: usize| (q + k as f64).pow(-x);
    let before = (1..TERMS).fold(term(0), |sum, k| sum + term(k));
    let far = q + TERMS as f64;
    let last = far.pow(-x);
    let square = far.square().reciprocal();
    let mut series = square.full_like(0.0);
    for (k, coefficient) in COEFFICIENTS.iter().enumerate().rev() {
        let factors = match k {
            0 => x / &far,
            _ => (x + (2 * k - 1) as f64) * (x + (2 * k) as f64) * &square,
        };
        series = (series + *coefficient) * factors;
    }
    // Where a power has underflowed, no factor counts.
    let behind = last.eq(0.0).where_(0.0, &last * (far / (x - 1.0) + 0.5 + series));
    before + behind
}

/// Terms that are added one by one.
const TERMS: usize = 9;

/// Bernoulli's numbers 2, 4, … over the factorials of 2, 4, ….
const COEFFICIENTS: [f64; 12] = [
    0.083_333_333_333_333_33,
    -0.001_388_888_888_888_889,
    3.306_878_306_878_307e-5,
    -8.267_195_767_195_768e-7,
    2.087_675_698_786_81e-8,
    -5.284_190_138_687_493e-10,
    1.338_253_653_068_467_9e-11,
    -3.389_680_296_322_582_7e-13,
    8.586_062_056_277_845e-15,
    -2.174_868_698_558_062e-16,
    5.509_002_828_360_229_5e-18,
    -1.395_446_468_581_252_2e-19,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn interpreted(elements: &[f64]) -> Tensor {
        Tensor::from_slice(elements, [elements.len()]).to(&Device::interpreter())
    }

    fn assert_near(got: &Tensor, expected: &[f64], tolerance: f64) {
        let got = got.to_vec::<f64>().unwrap();
        assert_eq!(got.len(), expected.len());
        for (place, (got, expected)) in got.into_iter().zip(expected).enumerate() {
            let is_same = got == *expected || (got.is_nan() && expected.is_nan());
            let is_near = (got - expected).abs() <= tolerance * expected.abs();
            assert!(is_same || is_near, "{got:?}, expected {expected:?} at {place}");
        }
    }

    const X: [f64; 11] = [2.0, 3.0, 1.062_5, 1.5, 20.0, 300.0, 1_000.0, 2.0, 3.0, 4.0, 7.0];
    const Q: [f64; 11] = [1.0, 0.25, 0.001, 1_000_000.0, 5.0, 30.5, 200.25, -0.5, -2.75, -100.125, -1.5];
    const VALUES: [f64; 11] = [
        1.644_934_066_848_226_4,
        64.663_869_968_768_47,
        1_556.506_585_641_587_2,
        0.002_000_000_500_000_125,
        1.077_276_509_609_247e-14,
        0.0,
        0.0,
        8.934_802_200_544_679,
        62.058_826_529_857_59,
        4_098.500_387_099_492,
        0.001_830_564_038_263_937_8,
    ];
    const POLYGAMMA_AT: [f64; 6] = [0.125, 1.0, 3.5, 80.0, -0.75, -12.5];
    const POLYGAMMA_2: [f64; 6] = [
        -1_025.753_338_118_135_6,
        -2.404_113_806_319_188_5,
        -0.108_204_051_641_727_4,
        -0.000_158_215_331_395_566_44,
        -124.586_999_196_796_19,
        -0.005_908_436_585_788_24,
    ];
    const POLYGAMMA_5: [f64; 6] = [
        31_457_340.659_602_646,
        122.081_167_438_133_9,
        0.087_049_178_567_183_49,
        7.555_961_191_793_831e-9,
        492_226.752_450_808_9,
        15_382.227_033_039_435,
    ];
    const MULTIGAMMALN_3: [f64; 2] = [1.596_312_591_138_855, 20.104_800_157_934_413];
    #[test]
    fn zeta_by_known_values() {
        assert_near(&interpreted(&X).zeta(interpreted(&Q)), &VALUES, 4e-15);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = interpreted(&[1.0, 0.5, 2.0, 2.0, 2.5, inf, inf, inf, 2.0, 1e30, nan, 2.0]);
        let q = interpreted(&[3.0, 3.0, 0.0, -3.0, -0.5, 2.0, 1.0, 0.5, inf, 7.5, 1.0, nan]);
        let expected = [inf, nan, inf, inf, nan, 0.0, 1.0, inf, 0.0, 0.0, nan, nan];
        assert_near(&x.zeta(&q), &expected, 0.0);
    }

    #[test]
    fn slopes_of_both() {
        let (x, q) = (interpreted(&[2.5, 3.0, 1.25]), interpreted(&[0.75, -1.5, 40.0]));
        let (dx, dq) = crate::grad(&x.zeta(&q).sum(..), &(x.clone(), q.clone()));
        assert_near(&dq, &(-&x * (&x + 1.0).zeta(&q)).to_vec::<f64>().unwrap(), 1e-13);
        let step = 1e-5;
        let slope = ((&x + step).zeta(&q) - (&x - step).zeta(&q)) / (2.0 * step);
        // Below 0 it is defined for whole `x` alone, and has no slope by it.
        for (place, (got, expected)) in
            dx.to_vec::<f64>().unwrap().into_iter().zip(slope.to_vec::<f64>().unwrap()).enumerate()
        {
            assert!(
                place == 1 || (got - expected).abs() < 1e-8 * expected.abs(),
                "{got}, expected {expected}"
            );
        }
    }

    #[test]
    fn polygamma_by_known_values() {
        let x = interpreted(&POLYGAMMA_AT);
        assert_near(&x.polygamma(2), &POLYGAMMA_2, 1e-14);
        assert_near(&x.polygamma(5), &POLYGAMMA_5, 1e-14);
        assert_near(&x.polygamma(0), &x.digamma().to_vec::<f64>().unwrap(), 0.0);
        let slopes = crate::grad(&x.polygamma(2).sum(..), &x).to_vec::<f64>().unwrap();
        assert_near(&x.polygamma(3), &slopes, 0.0);
        assert_eq!(x.cast(DType::BF16).polygamma(2).dtype().unwrap(), DType::BF16);
    }

    #[test]
    fn gamma_of_dimensions() {
        let x = interpreted(&[2.0, 7.25]);
        assert_near(&x.multigammaln(1), &x.lgamma().to_vec::<f64>().unwrap(), 0.0);
        assert_near(&x.multigammaln(3), &MULTIGAMMALN_3, 1e-14);
        mistake!(x.multigammaln(0), "multigammaln: needs at least one dimension, got 0");
    }
}
