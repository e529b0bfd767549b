//! Bessel functions of the first kind, which oscillate: formulas in `F64`, rounded once. The coefficients of their Chebyshev series
//! are of a computation with 40 digits.

use std::f64::consts::PI;

use super::bessel::{chebyshev, precise, signed};
use super::bessel_quotients::Quotient;
use super::formula::Term;
use crate::Tensor;
use crate::tensor::arguments::call::Call;

impl Tensor {
    /// The Bessel function of the first kind, of order 0: what a drum's membrane does along its radius. 0 at infinity. Floats keep their
    /// dtype, integers and bools give `F32`. PyTorch's `torch.special.bessel_j0`, SciPy's `j0`.
    ///
    /// H. Hankel, "Die Cylinderfunctionen erster und zweiter Art", 1869.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, f32::INFINITY], [3]);
    /// assert_eq!(x.bessel_j0().to_vec::<f32>()?, [1.0, 0.765_197_7, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bessel_j0(&self) -> Tensor {
        Tensor::or_invalid(precise(Call::here("bessel_j0"), self, j0))
    }

    /// The Bessel function of the first kind, of order 1: the negative slope of [`Tensor::bessel_j0`]. Floats keep their dtype, integers
    /// and bools give `F32`. PyTorch's `torch.special.bessel_j1`, SciPy's `j1`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, -1.0], [3]);
    /// assert_eq!(x.bessel_j1().to_vec::<f32>()?, [0.0, 0.440_050_57, -0.440_050_57]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bessel_j1(&self) -> Tensor {
        Tensor::or_invalid(precise(Call::here("bessel_j1"), self, j1))
    }
}

fn j0(x: &Term) -> Term {
    let a = x.abs();
    let [sine, cosine] = [a.sin(), a.cos()];
    // Of an angle less π/4, without the digits that a large angle would lose by the difference.
    let far = oscillation(&a, [&P_0, &Q_0], &cosine + &sine, sine - cosine);
    let near = low(&a, &LOW_0, ZEROS_0);
    a.le(8.0).select(near, far).derived([x], |g, [x], _| [-(g * j1(&x))])
}

fn j1(x: &Term) -> Term {
    let a = x.abs();
    let [sine, cosine] = [a.sin(), a.cos()];
    // Of an angle less 3π/4.
    let far = oscillation(&a, [&P_1, &Q_1], &sine - &cosine, -(sine + cosine));
    let near = low(&a, &LOW_1, ZEROS_1) * &a;
    let value = signed(x, &a.le(8.0).select(near, far));
    value.derived([x], |g, [x], y| [g * (j0(&x) - FIRST.of_first(&x, &y))])
}

const FIRST: Quotient = Quotient { sign: -1.0, shift: 0, is_scaled: false, begin: |x| [j0(x), j1(x) / x] };

/// Up to 8: the zeros are factors, near which the relative error would be large.
fn low(a: &Term, coefficients: &[f64], zeros: [f64; 2]) -> Term {
    let square = a.minimum(8.0).square();
    let factors = (&square - zeros[0]) * (&square - zeros[1]);
    factors * chebyshev(&(square * 0.0625 - 2.0), coefficients)
}

/// From 8 on, by cosine and sine of the phase, times the root of 2.
fn oscillation(a: &Term, [p, q]: [&[f64]; 2], cosine: Term, sine: Term) -> Term {
    let own = a.maximum(8.0);
    let inverse = own.like(8.0) / &own;
    let place = inverse.square() * 4.0 - 2.0;
    let wave = chebyshev(&place, p) * cosine - chebyshev(&place, q) * inverse * sine;
    a.eq(f64::INFINITY).select(0.0, wave / (own * PI).sqrt())
}

/// Squares of zeros.
const ZEROS_0: [f64; 2] = [5.783_185_962_946_784, 30.471_262_343_662_087];
const ZEROS_1: [f64; 2] = [14.681_970_642_123_893, 49.218_456_321_694_6];

/// Of `j0(x)` over the factors of its zeros up to 8, in `x²`.
const LOW_0: [f64; 15] = [
    4.891_229_005_581_117_6e-20,
    -3.047_599_375_669_837_6e-18,
    1.663_258_801_521_127_8e-16,
    -7.875_041_254_709_154e-15,
    3.198_923_297_023_347_7e-13,
    -1.100_386_082_793_969_7e-11,
    3.155_992_758_361_133_4e-10,
    -7.406_701_254_344_167e-9,
    1.389_802_517_342_890_5e-7,
    -2.024_889_498_001_283_4e-6,
    2.204_908_639_454_817e-5,
    -0.000_170_405_849_515_573_57,
    0.000_868_772_147_206_257_7,
    -0.002_620_939_138_497_025,
    0.003_980_711_000_320_297,
];

/// Of Hankel's two parts of order 0 from 8 on, in `64 / x²`.
const P_0: [f64; 14] = [
    -2.880_866_169_482_871e-18,
    1.630_591_923_374_418_6e-17,
    -1.001_151_372_346_778_6e-16,
    6.748_072_215_733_873e-16,
    -5.069_034_095_935_236e-15,
    4.326_595_743_154_940_4e-14,
    -4.304_578_869_925_391_4e-13,
    5.168_262_387_349_193e-12,
    -7.864_091_377_237_07e-11,
    1.630_646_463_515_138_2e-9,
    -5.170_594_537_606_097_5e-8,
    3.075_184_787_519_474_5e-6,
    -0.000_536_522_046_813_211_7,
    1.998_920_698_695_037_4,
];
const Q_0: [f64; 14] = [
    3.108_244_048_673_814_3e-18,
    -1.668_606_521_437_814_6e-17,
    9.662_128_970_303_257e-17,
    -6.099_930_131_640_05e-16,
    4.255_225_040_245_461e-15,
    -3.336_328_185_322_427e-14,
    3.006_145_125_351_706e-13,
    -3.206_747_420_996_635e-12,
    4.220_121_904_668_738_5e-11,
    -7.271_915_936_866_32e-10,
    1.797_245_724_796_899_2e-8,
    -7.414_498_411_060_647e-7,
    6.838_519_942_611_649e-5,
    -0.031_111_709_210_674_018,
];

/// Of `j1(x) / x` over the factors of its zeros up to 8, in `x²`.
const LOW_1: [f64; 15] = [
    1.441_829_178_131_505_1e-21,
    -9.546_930_865_755_219e-20,
    5.558_821_065_951_572e-18,
    -2.820_546_623_952_485_6e-16,
    1.234_146_558_961_971_8e-14,
    -4.600_078_224_134_52e-13,
    1.439_541_766_931_255_4e-11,
    -3.716_577_146_675_772e-10,
    7.747_614_077_073_057e-9,
    -1.269_075_502_369_425e-7,
    1.576_470_099_225_889e-6,
    -1.414_935_642_562_348_5e-5,
    8.553_646_588_540_538e-5,
    -0.000_311_568_403_664_356_2,
    0.000_557_914_197_752_262_1,
];

/// Of Hankel's two parts of order 1 from 8 on, in `64 / x²`.
const P_1: [f64; 14] = [
    3.049_299_119_766_587_2e-18,
    -1.731_231_321_611_633_5e-17,
    1.066_768_911_433_541_2e-16,
    -7.221_180_842_274_018e-16,
    5.452_674_896_044_717e-15,
    -4.684_223_783_990_489_5e-14,
    4.699_195_515_230_542e-13,
    -5.704_863_640_395_645e-12,
    8.816_898_659_582_339e-11,
    -1.871_890_749_106_306_7e-9,
    6.177_633_960_644_299e-8,
    -3.987_284_300_488_908e-6,
    0.000_898_989_833_085_940_8,
    2.001_806_081_720_027_4,
];
const Q_1: [f64; 14] = [
    -3.283_451_987_298_161_4e-18,
    1.767_635_548_776_479e-17,
    -1.026_914_753_182_324_3e-16,
    6.508_282_957_783_384e-16,
    -4.561_252_395_077_297_4e-15,
    3.596_776_582_916_529_4e-14,
    -3.264_315_674_327_9e-13,
    3.515_218_794_968_608_2e-12,
    -4.686_363_688_176_945e-11,
    8.229_193_327_650_554e-10,
    -2.095_978_138_408_342_4e-8,
    9.138_615_257_955_454e-7,
    -9.627_723_549_157_08e-5,
    0.093_555_574_139_070_65,
];

#[cfg(test)]
mod tests {
    use super::super::bessel_quotients::tests::assert_meets;
    use super::*;
    use crate::Device;

    fn interpreted(elements: &[f64]) -> Tensor {
        Tensor::from_slice(elements, [elements.len()]).to(&Device::interpreter())
    }

    /// Values of mpmath, 20 digits.
    #[test]
    fn values_of_forty_digits() {
        let x = interpreted(&AT);
        for (got, expected) in [(x.bessel_j0(), J0), (x.bessel_j1(), J1)] {
            let got = got.to_vec::<f64>().unwrap();
            for ((got, expected), at) in got.into_iter().zip(expected).zip(AT) {
                // Near a zero as exact as the place is.
                assert!((got - expected).abs() <= 4e-16, "{got:?}, expected {expected:?} at {at}");
            }
        }
    }

    #[test]
    fn series_and_recurrence_meet() {
        assert_meets(FIRST);
    }

    #[test]
    fn ends_and_slopes() {
        let ends = interpreted(&[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        let values = ends.bessel_j0().to_vec::<f64>().unwrap();
        assert!(values[..4] == [1.0, 1.0, 0.0, 0.0] && values[4].is_nan(), "{values:?}");
        let values = ends.bessel_j1().to_vec::<f64>().unwrap();
        assert!(values[..4] == [0.0; 4] && values[4].is_nan(), "{values:?}");
        let x = interpreted(&[0.0, 3.0, -9.5]);
        let slopes = crate::grad(&x.bessel_j1().sum(..), &x).to_vec::<f64>().unwrap();
        for (got, expected) in slopes.into_iter().zip(SLOPES) {
            assert!((got - expected).abs() < 1e-15, "{got}, expected {expected}");
        }
        let slopes = crate::grad(&x.bessel_j0().sum(..), &x);
        assert_eq!(slopes.to_vec::<f64>().unwrap(), (-x.bessel_j1()).to_vec::<f64>().unwrap());
    }

    const AT: [f64; 13] = [
        1.0e-9,
        0.5,
        1.0,
        2.404_825_557_695_773,
        3.831_7,
        5.5,
        7.0,
        7.999_999,
        8.000_001,
        -9.5,
        20.25,
        1_000.0,
        10_000_000.0,
    ];
    const J0: [f64; 13] = [
        1.0,
        0.938_469_807_240_812_9,
        0.765_197_686_557_966_6,
        -6.108_765_259_736_73e-17,
        -0.402_759_395_695_375_1,
        -0.006_843_869_417_819_197,
        0.300_079_270_519_555_6,
        0.171_651_041_773_829_64,
        0.171_650_572_501_136_08,
        -0.193_928_747_687_422_35,
        0.145_421_393_873_677_6,
        0.024_786_686_152_420_176,
        -8.683_734_864_191_702e-5,
    ];
    const J1: [f64; 13] = [
        5.0e-10,
        0.242_268_457_674_873_9,
        0.440_050_585_744_933_5,
        0.519_147_497_289_466_7,
        2.404_559_043_103_632e-6,
        -0.341_438_215_429_043_35,
        -0.004_682_823_482_345_833,
        0.234_636_204_532_526_45,
        0.234_636_489_175_053_92,
        -0.161_264_430_757_529_86,
        0.105_014_968_649_533_61,
        0.004_728_311_907_089_524,
        0.000_236_899_240_312_057_85,
    ];
    const SLOPES: [f64; 3] = [0.5, -0.373_071_607_743_912_24, -0.210_903_950_925_057_07];
}
