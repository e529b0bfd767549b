//! Modified Bessel functions, and the slope of the digamma function: formulas in `F64`, rounded once.

use std::f64::consts::{PI, TAU};

use super::bessel_quotients::Quotient;
use super::formula::{Term, formula};
use super::operands::{Rule, float_for};
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// [`Tensor::i0`] times `exp(-|x|)`, which does not overflow. Floats keep their dtype, integers and bools give `F32`. PyTorch's
    /// `torch.special.i0e`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, f32::INFINITY], [2]);
    /// assert_eq!(x.i0e().to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn i0e(&self) -> Tensor {
        Tensor::or_invalid(precise(Call::here("i0e"), self, i0e))
    }

    /// The modified Bessel function of the first kind, of order 1: the slope of [`Tensor::i0`]. Floats keep their dtype, integers and
    /// bools give `F32`. PyTorch's `torch.special.i1`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, -1.0], [3]);
    /// assert_eq!(x.i1().to_vec::<f32>()?, [0.0, 0.565_159_1, -0.565_159_1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn i1(&self) -> Tensor {
        Tensor::or_invalid(precise(Call::here("i1"), self, i1))
    }

    /// [`Tensor::i1`] times `exp(-|x|)`, which does not overflow. Floats keep their dtype, integers and bools give `F32`. PyTorch's
    /// `torch.special.i1e`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, f32::INFINITY], [3]);
    /// assert_eq!(x.i1e().to_vec::<f32>()?, [0.0, 0.207_910_42, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn i1e(&self) -> Tensor {
        Tensor::or_invalid(precise(Call::here("i1e"), self, i1e))
    }
}

/// What a formula makes of the elements in `F64`, in their dtype.
pub(super) fn precise(call: Call, x: &Tensor, f: impl FnOnce(&Term) -> Term) -> Result<Tensor> {
    let dtype = float_for(x.known()?.1);
    let wide = call.cast(x, DType::F64)?;
    call.cast(&formula(call, Rule::Floats, [wide.into()], |[x]| f(&x))?, dtype)
}

pub(super) fn signed(x: &Term, magnitude: &Term) -> Term {
    x.lt(0.0).select(-magnitude, magnitude)
}

fn inverse(x: &Term) -> Term {
    x.like(1.0) / x
}

fn i0e(x: &Term) -> Term {
    let a = x.abs();
    let near = a.minimum(FAR);
    let root = (&near * -0.5).exp();
    // Hankel's expansion.
    let series = polynomial(&inverse(&a), &[1.0, 0.125, 0.070_312_5, 0.073_242_187_5, 0.112_152_099_609_375]);
    let value = a.gt(FAR).select(series / a.sqrt() * TAU.sqrt().recip(), near.i0() * &root * &root);
    value.derived([x], |g, [x], y| [g * (i1e(&x) - x.sign() * y)])
}

const MODIFIED: Quotient = Quotient { sign: 1.0, shift: 0, is_scaled: false, begin: |x| [x.i0(), i1(x) / x] };
const SCALED: Quotient = Quotient { sign: 1.0, shift: 0, is_scaled: true, begin: |x| [i0e(x), i1e(x) / x] };

/// Where five terms of the expansion are exact to the last bit, and `i0` has not overflowed.
const FAR: f64 = 600.0;

fn i1(x: &Term) -> Term {
    let a = x.abs();
    // In two steps: the exponential function overflows sooner.
    let root = (&a * 0.5).exp();
    let value = a.gt(1000.0).select(x * f64::INFINITY, i1e(x) * &root * &root);
    value.derived([x], |g, [x], y| [g * (x.i0() - MODIFIED.of_first(&x, &y))])
}

/// S. L. Moshier, Cephes Math Library, 1984.
fn i1e(x: &Term) -> Term {
    let a = x.abs();
    let low = chebyshev(&(&a * 0.5 - 2.0), &LOW) * &a;
    let high = chebyshev(&(inverse(&a) * 32.0 - 2.0), &HIGH) / a.sqrt();
    let value = signed(x, &a.le(8.0).select(low, high));
    value.derived([x], |g, [x], y| [g * (i0e(&x) - x.sign() * &y - SCALED.of_first(&x, &y))])
}

/// The slope of the digamma function: the recurrence up to 10, and the slope of Stirling's series from there.
pub(crate) fn trigamma(x: &Tensor) -> Tensor {
    Tensor::or_invalid(precise(Call::here("grad"), x, |x| {
        let is_low = x.lt(0.5);
        let own = is_low.select(-x + 1.0, x);
        let steps = (0..10).fold(own.like(0.0), |sum, k| sum + inverse(&(&own + f64::from(k)).square()));
        let far = inverse(&(own + 10.0));
        let square = far.square();
        let bernoulli = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0];
        let value = &far + &square * 0.5 + &far * &square * polynomial(&square, &bernoulli) + steps;
        // No formula is computed where it does not count: its slope would be.
        let low = is_low.select(x, 0.25);
        let sine = ((&low - low.round()) * PI).sin();
        is_low.select(inverse(&(sine * (1.0 / PI))).square() - &value, value)
    }))
}

/// The polynomial with these coefficients, that of the highest power last.
fn polynomial(x: &Term, coefficients: &[f64]) -> Term {
    coefficients.iter().rev().fold(x.like(0.0), |sum, &coefficient| sum * x + coefficient)
}

/// The series of Chebyshev polynomials of `y / 2` with these coefficients, that of the lowest degree last.
pub(super) fn chebyshev(y: &Term, coefficients: &[f64]) -> Term {
    let zero = y.like(0.0);
    let [mut last, mut before, mut first] = [zero.clone(), zero.clone(), zero];
    for &coefficient in coefficients {
        (first, before) = (before, last);
        last = y * &before - &first + coefficient;
    }
    (last - first) * 0.5
}

/// Of `exp(-x) i1(x) / x` up to 8.
const LOW: [f64; 29] = [
    2.777_914_112_761_046_4e-18,
    -2.111_421_214_358_166e-17,
    1.553_631_957_736_200_5e-16,
    -1.105_596_947_735_386_2e-15,
    7.600_684_294_735_408e-15,
    -5.042_185_504_727_912e-14,
    3.223_793_365_945_575e-13,
    -1.983_974_397_764_943_6e-12,
    1.173_618_629_889_090_1e-11,
    -6.663_489_723_502_027e-11,
    3.625_590_281_552_117e-10,
    -1.887_249_751_722_829_4e-9,
    9.381_537_386_495_773e-9,
    -4.445_059_128_796_328e-8,
    2.003_294_753_552_135_3e-7,
    -8.568_720_264_695_455e-7,
    3.470_251_308_137_678_5e-6,
    -1.327_316_365_603_943_6e-5,
    4.781_565_107_550_054e-5,
    -0.000_161_760_815_825_896_74,
    0.000_512_285_956_168_575_8,
    -0.001_513_572_450_631_253_2,
    0.004_156_422_944_312_888,
    -0.010_564_084_894_626_197,
    0.024_726_449_030_626_516,
    -0.052_945_981_208_094_99,
    0.102_643_658_689_847_1,
    -0.176_416_518_357_834_06,
    0.252_587_186_443_633_65,
];

/// Of `exp(-x) sqrt(x) i1(x)` from 8 on.
const HIGH: [f64; 25] = [
    7.517_296_310_842_105e-18,
    4.414_348_323_071_708e-18,
    -4.650_305_368_489_358_6e-17,
    -3.209_525_921_993_424e-17,
    2.962_628_997_645_95e-16,
    3.308_202_310_920_928_5e-16,
    -1.880_354_775_510_782_5e-15,
    -3.814_403_072_437_007_5e-15,
    1.042_027_698_412_880_2e-14,
    4.272_440_016_711_951e-14,
    -2.101_541_842_772_664_3e-14,
    -4.083_551_111_092_197_4e-13,
    -7.198_551_776_245_908e-13,
    2.035_628_544_147_089_6e-12,
    1.412_580_743_661_378_2e-11,
    3.252_603_583_015_488_4e-11,
    -1.897_495_812_350_541_3e-11,
    -5.589_743_462_196_584e-10,
    -3.835_380_385_964_237e-9,
    -2.631_468_846_889_519_6e-8,
    -2.512_236_237_870_209e-7,
    -3.882_564_808_877_691e-6,
    -0.000_110_588_938_762_623_71,
    -0.009_761_097_491_361_469,
    0.778_576_235_018_280_1,
];

#[cfg(test)]
mod tests {
    use super::super::bessel_quotients::tests::assert_meets;
    use super::*;
    use crate::Device;

    fn assert_near(got: &Tensor, expected: &[f64]) {
        let got = got.to_vec::<f64>().unwrap();
        for (got, expected) in got.into_iter().zip(expected) {
            let is_near = (got - expected).abs() <= 2e-15 * expected.abs();
            assert!(got == *expected || is_near, "{got:?}, expected {expected:?}");
        }
    }

    fn interpreted(elements: &[f64]) -> Tensor {
        Tensor::from_slice(elements, [elements.len()]).to(&Device::interpreter())
    }

    #[test]
    fn bessel_functions_by_known_values() {
        let x = interpreted(&[0.0, 1.0, -3.0, 700.0, f64::INFINITY]);
        let e = [1.0, 0.465_759_607_593_640_4, 0.243_000_354_161_825_37, 0.015_081_295_651_531_355, 0.0];
        assert_near(&x.i0e(), &e);
        let e = [0.0, 0.207_910_415_349_708_45, -0.196_826_713_297_300_85, 0.015_070_519_444_716_846, 0.0];
        assert_near(&x.i1e(), &e);
        let values = [
            0.0,
            0.565_159_103_992_485,
            -3.953_370_217_402_609_4,
            1.528_500_390_233_900_6e302,
            f64::INFINITY,
        ];
        assert_near(&x.i1(), &values);
        assert!(interpreted(&[f64::NAN]).i1().item::<f64>().unwrap().is_nan());
        assert_eq!(interpreted(&[f64::NEG_INFINITY]).i1().to_vec::<f64>().unwrap(), [f64::NEG_INFINITY]);
        // One formula goes on from the other.
        let x = interpreted(&[599.999_999, 600.000_001, 7.999_999_999_9, 8.000_000_000_1]);
        let slopes = (x.i0e() * x.sqrt()).to_vec::<f64>().unwrap();
        assert!((slopes[0] - slopes[1]).abs() < 1e-12, "{slopes:?}");
        let slopes = x.i1e().to_vec::<f64>().unwrap();
        assert!((slopes[2] - slopes[3]).abs() < 1e-11, "{slopes:?}");
    }

    #[test]
    fn series_and_recurrences_meet() {
        [MODIFIED, SCALED].into_iter().for_each(assert_meets);
    }

    #[test]
    fn slopes_by_known_values() {
        let slopes = |f: fn(&Tensor) -> Tensor, at: &[f64]| {
            let x = interpreted(at);
            crate::grad(&f(&x).sum(..), &x)
        };
        assert_near(&slopes(Tensor::i0, &[0.0, 1.0]), &[0.0, 0.565_159_103_992_485]);
        assert_near(&slopes(Tensor::i1, &[0.0, 1.0]), &[0.5, 0.700_906_773_759_523_2]);
        assert_near(&slopes(Tensor::i1e, &[0.0]), &[0.5]);
        let square = PI * PI;
        assert_near(
            &slopes(Tensor::digamma, &[1.0, 0.5, -0.5]),
            &[square / 6.0, square / 2.0, square / 2.0 + 4.0],
        );
    }
}
