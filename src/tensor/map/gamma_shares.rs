//! The incomplete gamma functions: shares of a gamma distribution, whose density is integrated, or a series. In `F64`, rounded once.
//!
//! With `t = x exp(±s)`, what is left of the density is `exp(-E(s))`, where `E(s) = |x - a| s + x (exp(±s) - 1 ∓ s)` is convex and without
//! cancellation: up to where it is [`ENOUGH`] 30 places of Gauss and Legendre have 15 digits, for any `a`, near `x = a` and far from it.

use std::f64::consts::PI;

use super::operands::{Rule, unified};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Operand, Result, ScanOrder, Tensor};

impl Tensor {
    /// The share of a gamma distribution below `x`, where this tensor is its shape `a`: the lower incomplete gamma function over the whole
    /// one. In the promoted dtype, `F32` for integers and bools; shapes broadcast. NaN for what is below 0, and for `a` and `x` both 0 or
    /// both infinite. PyTorch's and SciPy's `gammainc(a, x)`, with gradients by both.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from_slice(&[1.0f64, 0.5, 1e6], [3]);
    /// let shares = a.gammainc(&Tensor::from([1.0f64, 2.0, 1e6])).to_vec::<f64>()?;
    /// assert!((shares[0] - (1.0 - (-1.0f64).exp())).abs() < 1e-15);
    /// assert!((shares[1] - 0.954_499_736_103_641_6).abs() < 1e-14 && (shares[2] - 0.500_132_980_7).abs() < 1e-9);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gammainc(&self, x: impl Into<Operand>) -> Tensor {
        let call = Call::here("gammainc");
        call.composed(|| share(call, [self.into(), x.into()], Side::Below))
    }

    /// The share of a gamma distribution above `x`, `1 - gammainc`, without its cancellation where it is small. All else as for
    /// [`Tensor::gammainc`]. PyTorch's and SciPy's `gammaincc(a, x)`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let above = Tensor::from([1.0f64]).gammaincc(100.0).item::<f64>()?;
    /// assert!((above / (-100.0f64).exp() - 1.0).abs() < 1e-13);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gammaincc(&self, x: impl Into<Operand>) -> Tensor {
        let call = Call::here("gammaincc");
        call.composed(|| share(call, [self.into(), x.into()], Side::Above))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Below,
    Above,
}

fn share(call: Call, operands: [Operand; 2], side: Side) -> Result<Tensor> {
    let dtype = Rule::Float.dtype(call, &operands)?;
    let shapes = operands.each_ref().map(Operand::shape);
    let shape = call.broadcast(&shapes.each_ref())?;
    let [a, x] = operands.map(|operand| unified(call, operand, DType::F64, &shape));
    let (a, x) = (a?, x?);
    if shape.elements() == 0 {
        return Ok(a.cast(dtype));
    }
    // By `x` the slope is the density; by `a` it is that of the formulas.
    let value = of_parts(&a, &call.detached(&x), side);
    let value = call.derived(&value, &[&value, &x, &a], move |g, all| {
        let density = density(&all[3], &all[2]) / &all[2];
        let slope = (all[3].gt(0.0) & all[2].gt(0.0)).where_(density, 0.0);
        Ok(vec![g.clone(), g * if side == Side::Below { slope } else { -slope }, g.zeros_like()])
    });
    Ok(value.cast(dtype))
}

fn of_parts(a: &Tensor, x: &Tensor, side: Side) -> Tensor {
    let is_inside = a.gt(0.0) & x.gt(0.0) & a.isfinite() & x.isfinite();
    // No formula is computed where it does not count: its slope would be.
    let (own, at) = (is_inside.where_(a, 1.0), is_inside.where_(x, 1.0));
    let is_above = at.ge(own.maximum(1.0));
    let is_below = own.ge(LARGE) & !&is_above;
    let is_integral = &is_above | &is_below;
    let is_small = at.ge(&own) & !&is_above;
    let integral = {
        let (a, x) = (is_integral.where_(&own, 2.0), is_integral.where_(&at, 4.0));
        density(&a, &x) * integral(&a, &x)
    };
    let series = {
        let is_series = !(&is_integral | &is_small);
        let (a, x) = (is_series.where_(&own, 1.0), is_series.where_(&at, 0.5));
        density(&a, &x) / &a * series(&a, &x)
    };
    let small = above_small(&is_small.where_(&own, 0.25), &is_small.where_(&at, 0.5));
    let (low, high) = match side {
        Side::Below => (integral.clone(), 1.0 - &integral),
        Side::Above => (1.0 - &integral, integral.clone()),
    };
    let rest = match side {
        Side::Below => is_small.where_(1.0 - small, series),
        Side::Above => is_small.where_(small, 1.0 - series),
    };
    let found = is_above.where_(high, is_below.where_(low, rest));
    // All of it is below `x`, or nothing.
    let (is_all, is_none) = (x.eq(f64::INFINITY) | a.eq(0.0), x.eq(0.0) | a.eq(f64::INFINITY));
    let is_known = a.ge(0.0) & x.ge(0.0) & (&is_all ^ &is_none);
    let (all, none) = if side == Side::Below { (1.0, 0.0) } else { (0.0, 1.0) };
    let end = is_known.where_(is_all.where_(found.full_like(all), none), f64::NAN);
    is_inside.where_(found, end)
}

/// From this shape on Stirling's series is exact to the last bits.
const LARGE: f64 = 20.0;

/// `x^a exp(-x) / Γ(a)`.
fn density(a: &Tensor, x: &Tensor) -> Tensor {
    let is_large = a.ge(LARGE);
    let (own, at) = (is_large.where_(a, LARGE), is_large.where_(x, LARGE));
    let apart = (&at - &own) / &own;
    let y = &apart / (&apart + 2.0);
    let is_near = apart.abs().lt(0.5);
    let near = is_near.where_(&y, 0.1);
    let square = near.square();
    // log1p(apart) - apart, by the series of the inverse hyperbolic tangent.
    let tangent = polynomial(&square, (1..18).map(|k| 1.0 / f64::from(2 * k + 1)));
    let near = &near * 2.0 * square * tangent - &apart * &y;
    let logarithm = is_near.where_(near, (&at / &own).log() - &apart);
    let inverse = own.reciprocal();
    let stirling = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let stirling = polynomial(&inverse.square(), stirling.into_iter()) * &inverse;
    let large = (&own * logarithm - stirling).exp() * (own / (2.0 * PI)).sqrt();
    let (own, at) = (is_large.where_(1.0, a), is_large.where_(1.0, x));
    // In two steps: one alone would underflow sooner.
    let half = (&at * -0.5).exp();
    let small = at.pow(&own) * &half * (-own.lgamma()).exp() * half;
    is_large.where_(large, small)
}

/// What is left is below the last bit of the integral.
const ENOUGH: f64 = 38.0;

/// The integral of `exp(-E(s))`, above `x` where it is more than `a`, else below.
fn integral(a: &Tensor, x: &Tensor) -> Tensor {
    let sign = x.lt(a).where_(x.full_like(-1.0), 1.0);
    let apart = (x - a).abs();
    let exponent = |s: &Tensor, [apart, x, sign]: [&Tensor; 3]| apart * s + x * behind_linear(&(s * sign));
    let end = {
        let [a, x, apart, sign] = [a, x, &apart, &sign].map(Tensor::detach);
        let first = 2.0 * ENOUGH / (&apart + (apart.square() + &x * (2.0 * ENOUGH)).sqrt());
        let bent = (ENOUGH / &x + &first).log1p();
        let mut end = x.lt(&a).where_(&first, first.minimum(bent));
        // Newton's steps, of a convex function from above.
        for _ in 0..3 {
            let slope = &apart + &x * (&end * &sign).expm1().abs();
            end = &end - (exponent(&end, [&apart, &x, &sign]) - ENOUGH) / slope;
        }
        end
    };
    let numbers = |numbers: [f64; 30]| {
        let data = Tensor::from_slice(&numbers, [30]);
        x.node.device.map_or(data.clone(), |device| data.to(&device))
    };
    let (places, shares) = (numbers(PLACES), numbers(SHARES));
    let [apart, x, sign, far] = [&apart, x, &sign, &end].map(|tensor| tensor.unsqueeze(-1));
    let exponent = exponent(&(places * far), [&apart, &x, &sign]);
    ((-exponent).exp() * shares).sum(-1) * end
}

/// `exp(s) - 1 - s`.
fn behind_linear(s: &Tensor) -> Tensor {
    let is_near = s.abs().lt(1.0);
    let near = is_near.where_(s, 0.5);
    let mut factorial = 1.0;
    let inverses = (2..20).map(|k| {
        factorial *= f64::from(k);
        1.0 / factorial
    });
    let series = polynomial(&near, inverses) * near.square();
    is_near.where_(series, s.expm1() - s)
}

/// `1 + x / (a + 1) + x² / ((a + 1) (a + 2)) + …` for `x` below `a`, which is below [`LARGE`].
fn series(a: &Tensor, x: &Tensor) -> Tensor {
    let counts = counting(50).cast(DType::F64) + 1.0;
    let order = ScanOrder::new().reverse();
    let ([sum], []) =
        crate::scan([&counts], 0, order, [x.ones_like()], |[sum], [k]| ([sum * x / (a + k) + 1.0], []));
    sum
}

/// The share above `x`, which is below 1, of a shape that is not greater.
fn above_small(a: &Tensor, x: &Tensor) -> Tensor {
    let is_near = a.lt(0.5);
    let near = is_near.where_(a, 0.25);
    let by_zeta =
        polynomial(&near, NEAR_ONE.into_iter()) * near.square() + &near * (1.0 - EULER) - near.log1p();
    let lgamma = is_near.where_(by_zeta, (is_near.where_(1.0, a) + 1.0).lgamma());
    let exponent = a * x.log() - lgamma;
    // The terms behind the first, over `a`.
    let minus = -x;
    let mut factorial = 1.0;
    let terms: Vec<Tensor> = (1..=18)
        .map(|n| {
            factorial *= f64::from(n);
            1.0 / factorial / (a + f64::from(n))
        })
        .collect();
    let sum = terms.into_iter().rev().fold(x.zeros_like(), |sum, term| sum * &minus + term) * &minus;
    -exponent.expm1() - a * exponent.exp() * sum
}

/// The polynomial with these coefficients, that of the highest power last.
fn polynomial(x: &Tensor, coefficients: impl Iterator<Item = f64>) -> Tensor {
    let coefficients: Vec<f64> = coefficients.collect();
    coefficients.into_iter().rev().fold(x.zeros_like(), |sum, coefficient| sum * x + coefficient)
}

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// Gauss and Legendre's places between 0 and 1.
const PLACES: [f64; 30] = [
    0.001_553_257_962_675_229_8,
    0.008_165_938_360_126_395,
    0.019_989_067_515_846_243,
    0.036_899_976_285_362_84,
    0.058_719_732_103_973_66,
    0.085_217_118_808_615_81,
    0.116_111_283_947_586_91,
    0.151_074_752_603_342_1,
    0.189_736_908_505_378_58,
    0.231_687_925_928_990_04,
    0.276_483_115_230_955_4,
    0.323_647_637_234_560_97,
    0.372_681_536_916_055_1,
    0.423_065_043_195_708_2,
    0.474_264_078_722_341_16,
    0.525_735_921_277_658_9,
    0.576_934_956_804_291_7,
    0.627_318_463_083_944_9,
    0.676_352_362_765_439_1,
    0.723_516_884_769_044_6,
    0.768_312_074_071_01,
    0.810_263_091_494_621_4,
    0.848_925_247_396_657_9,
    0.883_888_716_052_413_1,
    0.914_782_881_191_384_2,
    0.941_280_267_896_026_4,
    0.963_100_023_714_637_2,
    0.980_010_932_484_153_7,
    0.991_834_061_639_873_6,
    0.998_446_742_037_324_8,
];

/// Their weights.
const SHARES: [f64; 30] = [
    0.003_984_096_248_083_302_5,
    0.009_233_234_155_545_48,
    0.014_392_353_941_661_684,
    0.019_399_596_284_813_525,
    0.024_201_336_415_297_026,
    0.028_746_578_108_809_533,
    0.032_987_114_941_090_245,
    0.036_877_987_368_852_6,
    0.040_377_947_614_710_11,
    0.043_449_893_600_541_49,
    0.046_061_261_118_893_06,
    0.048_184_368_587_322_13,
    0.049_796_710_293_397_634,
    0.050_881_194_874_202_75,
    0.051_426_326_446_779_42,
    0.051_426_326_446_779_42,
    0.050_881_194_874_202_75,
    0.049_796_710_293_397_634,
    0.048_184_368_587_322_13,
    0.046_061_261_118_893_06,
    0.043_449_893_600_541_49,
    0.040_377_947_614_710_11,
    0.036_877_987_368_852_6,
    0.032_987_114_941_090_245,
    0.028_746_578_108_809_533,
    0.024_201_336_415_297_026,
    0.019_399_596_284_813_525,
    0.014_392_353_941_661_684,
    0.009_233_234_155_545_48,
    0.003_984_096_248_083_302_5,
];

/// Of the powers of `a` from the square on, in `lgamma(1 + a)` with `log1p(a)` added: `(ζ(k) - 1) / k`, with alternating signs.
const NEAR_ONE: [f64; 24] = [
    0.322_467_033_424_113_2,
    -0.067_352_301_053_198_1,
    0.020_580_808_427_784_546,
    -0.007_385_551_028_673_986,
    0.002_890_510_330_741_523_4,
    -0.001_192_753_911_703_261,
    0.000_509_669_524_743_042_5,
    -0.000_223_154_758_453_579_39,
    9.945_751_278_180_853e-5,
    -4.492_623_673_813_314e-5,
    2.050_721_277_567_069e-5,
    -9.439_488_275_268_397e-6,
    4.374_866_789_907_488e-6,
    -2.039_215_753_801_366e-6,
    9.551_412_130_407_42e-7,
    -4.492_469_198_764_566e-7,
    2.120_718_480_555_466_5e-7,
    -1.004_322_482_396_809_9e-7,
    4.769_810_169_363_980_4e-8,
    -2.271_109_460_894_316_4e-8,
    1.083_865_921_489_695_5e-8,
    -5.183_475_041_970_047e-9,
    2.483_674_543_802_478_5e-9,
    -1.192_140_140_586_091_2e-9,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    fn here(elements: &[f64]) -> Tensor {
        Tensor::from_slice(elements, [elements.len()]).to(&Device::interpreter())
    }

    const A: [f64; 19] = [
        0.01,
        1.0e-10,
        0.3,
        0.9,
        0.5,
        2.5,
        5.0,
        19.5,
        19.9,
        20.0,
        25.0,
        100.0,
        100.0,
        1_000.0,
        100_000.0,
        0.75,
        3.0,
        30.0,
        2_000_000.0,
    ];
    const X: [f64; 19] = [
        0.5,
        0.25,
        0.3,
        0.2,
        8.0,
        1.0,
        5.0,
        19.0,
        25.0,
        20.0,
        5.0,
        100.5,
        160.0,
        900.0,
        100_300.0,
        30.0,
        1.0e-5,
        29.99,
        1_997_000.0,
    ];
    const LOWER: [f64; 19] = [
        0.994_373_243_806_032_9,
        0.999_999_999_895_571_8,
        0.726_957_343_710_366_2,
        0.222_566_128_646_666_14,
        0.999_936_657_516_333_8,
        0.150_854_963_915_390_36,
        0.559_506_714_934_787_5,
        0.484_655_473_167_706_8,
        0.871_045_644_773_006_8,
        0.529_742_733_160_76,
        1.599_586_398_487_006e-10,
        0.533_171_386_247_446_6,
        0.999_999_855_797_755,
        0.000_549_902_265_711_782_9,
        0.828_636_311_251_207_6,
        0.999_999_999_999_967_6,
        1.666_654_166_716_667e-16,
        0.523_556_547_948_204_6,
        0.016_912_731_340_549_717,
    ];
    const UPPER: [f64; 19] = [
        0.005_626_756_193_967_184_4,
        1.044_282_634_449_977_9e-10,
        0.273_042_656_289_633_8,
        0.777_433_871_353_333_9,
        6.334_248_366_623_985e-5,
        0.849_145_036_084_609_7,
        0.440_493_285_065_212_4,
        0.515_344_526_832_293_3,
        0.128_954_355_226_993_22,
        0.470_257_266_839_239_96,
        0.999_999_999_840_041_4,
        0.466_828_613_752_553_4,
        1.442_022_450_535_273_7e-7,
        0.999_450_097_734_288_2,
        0.171_363_688_748_792_35,
        3.236_747_871_003_718_4e-14,
        0.999_999_999_999_999_8,
        0.476_443_452_051_795_34,
        0.983_087_268_659_450_3,
    ];
    #[test]
    fn shares_of_forty_digits() {
        let (a, x) = (here(&A), here(&X));
        for (got, expected) in [(a.gammainc(&x), LOWER), (a.gammaincc(&x), UPPER)] {
            let got = got.to_vec::<f64>().unwrap();
            for (place, (got, expected)) in got.into_iter().zip(expected).enumerate() {
                let error = (got - expected).abs() / expected;
                assert!(error < 4e-14, "{got:e}, expected {expected:e} at {place}, {error:e}");
            }
        }
    }

    #[test]
    fn ends_are_those_of_scipy() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let a = here(&[0.0, 0.0, 2.0, 2.0, inf, inf, -1.0, 1.0, nan, 1.0]);
        let x = here(&[1.0, 0.0, 0.0, inf, 3.0, inf, 1.0, -1.0, 1.0, nan]);
        let below = a.gammainc(&x).to_vec::<f64>().unwrap();
        let above = a.gammaincc(&x).to_vec::<f64>().unwrap();
        let expected = [1.0, nan, 0.0, 1.0, 0.0, nan, nan, nan, nan, nan];
        for (place, expected) in expected.into_iter().enumerate() {
            let is = |got: f64, expected: f64| got == expected || (got.is_nan() && expected.is_nan());
            assert!(
                is(below[place], expected) && is(above[place], 1.0 - expected),
                "{place}: {below:?}, {above:?}"
            );
        }
        assert_eq!(a.cast(DType::F16).gammainc(x.cast(DType::BF16)).dtype().unwrap(), DType::F32);
    }

    #[test]
    fn slopes_by_both() {
        let (a, x) = (here(&[0.25, 0.75, 3.0, 40.0, 40.0, 5.0]), here(&[0.5, 0.5, 1.5, 38.0, 45.0, 9.0]));
        for f in [|a: &Tensor, x: &Tensor| a.gammainc(x), |a: &Tensor, x: &Tensor| a.gammaincc(x)] {
            let (da, dx) = crate::grad(&f(&a, &x).sum(..), &(a.clone(), x.clone()));
            let step = 1e-5;
            let by_a = (f(&(&a + step), &x) - f(&(&a - step), &x)) / (2.0 * step);
            let by_x = (f(&a, &(&x + step)) - f(&a, &(&x - step))) / (2.0 * step);
            for (got, expected) in [(da, by_a), (dx, by_x)] {
                let error = (got - expected).abs().max(..).item::<f64>().unwrap();
                assert!(error < 1e-9, "{error:e}");
            }
        }
    }
}
