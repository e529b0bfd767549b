//! Special functions, of entropies, probabilities and powers: formulas of others, with values of their own where these have none.

use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

use super::bessel_quotients::SPHERICAL;
use super::formula::{Term, formula};
use super::operands::{Rule, float_for};
use crate::tensor::arguments::call::Call;
use crate::tensor::reduce::statistics::widened;
use crate::{DType, Operand, Result, Tensor};

impl Tensor {
    /// `sin(πx) / (πx)`, and 1 at 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32], [1]).sinc().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn sinc(&self) -> Tensor {
        let sinc = |[x]: [Term; 1]| {
            let product = &x * PI;
            x.eq(0.0)
                .select(1.0, product.sin() / &product)
                .derived([&x], |g, [x], _| [g * (&x * SPHERICAL.of(1, &(&x * PI)) * -(PI * PI))])
        };
        Tensor::or_invalid(formula(Call::here("sinc"), Rule::Float, [self.into()], sinc))
    }

    /// `self * log(other)`, and 0 where `self` is 0, unless `other` is NaN: in the promoted dtype, or `F32` for
    /// integers and bools. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0], [2]);
    /// assert_eq!(x.xlogy(&Tensor::from_slice(&[0.0f32, 1.0], [2])).to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn xlogy(&self, other: impl Into<Operand>) -> Tensor {
        let operands = [self.into(), other.into()];
        Tensor::or_invalid(formula(Call::here("xlogy"), Rule::Float, operands, |[x, y]| xlogy(&x, &y)))
    }

    /// `self * log(1 + other)`, and 0 where `self` is 0, unless `other` is NaN: in the promoted dtype, or `F32` for
    /// integers and bools. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f64, 2.0], [2]);
    /// assert_eq!(x.xlog1py(&Tensor::from_slice(&[-1.0f64, 1e-20], [2])).to_vec::<f64>()?, [0.0, 2e-20]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn xlog1py(&self, other: impl Into<Operand>) -> Tensor {
        let operands = [self.into(), other.into()];
        let product = |[x, y]: [Term; 2]| {
            times_logarithm(&x, &y, y.log1p()).derived([&x, &y], |g, [x, y], _| {
                let own = &y + 1.0;
                [none_of_nothing(&x, &own, &g * y.log1p()), g * x / own]
            })
        };
        Tensor::or_invalid(formula(Call::here("xlog1py"), Rule::Float, operands, product))
    }

    /// `-x * log(x)`, 0 at 0, and negative infinity below: what each probability adds to an entropy. Floats keep their dtype,
    /// integers and bools give `F32`. PyTorch's `torch.special.entr`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let bits = Tensor::from_slice(&[0.5f64, 0.5, 0.0], [3]).entr().sum(..) / std::f64::consts::LN_2;
    /// assert_eq!(bits.item::<f64>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn entr(&self) -> Tensor {
        let entropy = |[x]: [Term; 1]| {
            let own = -(&x * x.log());
            let entropy = x.lt(0.0).select(f64::NEG_INFINITY, x.eq(0.0).select(0.0, own));
            entropy.derived([&x], |g, [x], _| [g * -(x.log() + 1.0)])
        };
        Tensor::or_invalid(formula(Call::here("entr"), Rule::Float, [self.into()], entropy))
    }

    /// The share of a normal distribution below each number: `erfc(-x / sqrt(2)) / 2`. Far below 0 the relative error is
    /// about `x²` times that of rounding `x / sqrt(2)`; PyTorch's `torch.special.ndtr` is 0 there, from -5.4 on in `F32`. Floats
    /// keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let shares = Tensor::from_slice(&[0.0f64, f64::INFINITY], [2]).ndtr();
    /// assert_eq!(shares.to_vec::<f64>()?, [0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ndtr(&self) -> Tensor {
        let share = |[x]: [Term; 1]| (&x * -FRAC_1_SQRT_2).erfc() * 0.5;
        Tensor::or_invalid(formula(Call::here("ndtr"), Rule::Float, [self.into()], share))
    }

    /// The scaled complementary error function, `exp(x²) * erfc(x)`, which does not underflow. Floats keep their dtype, integers and
    /// bools give `F32`. PyTorch's `torch.special.erfcx`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f64, 1e8, f64::NEG_INFINITY], [3]).erfcx().to_vec::<f64>()?;
    /// assert!(x[0] == 1.0 && (x[1] * 1e8 - 0.564_189_583_547_756_3).abs() < 1e-14 && x[2] == f64::INFINITY);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn erfcx(&self) -> Tensor {
        let call = Call::here("erfcx");
        call.composed(|| of_floats(self, erfcx))
    }

    /// The logarithm of [`Tensor::ndtr`], which does not underflow far below 0. Floats keep their dtype, integers and bools give `F32`.
    /// PyTorch's `torch.special.log_ndtr`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let logarithms = Tensor::from_slice(&[0.0f64, -40.0], [2]).log_ndtr().to_vec::<f64>()?;
    /// assert!((logarithms[0] + std::f64::consts::LN_2).abs() < 1e-15 && (logarithms[1] + 804.608_442).abs() < 1e-5);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn log_ndtr(&self) -> Tensor {
        let call = Call::here("log_ndtr");
        call.composed(|| {
            of_floats(self, |x| {
                let is_low = x.lt(-1.0);
                // Neither formula is computed where it does not count: its slope would be.
                let low = is_low.where_(x, -1.0) * FRAC_1_SQRT_2;
                let high = is_low.where_(-1.0, x) * FRAC_1_SQRT_2;
                let below = (erfcx(&-&low) * 0.5).log() - &low * &low;
                is_low.where_(below, (high.erfc() * -0.5).log1p())
            })
        })
    }

    /// The number that a normal distribution has such a share below: the inverse of [`Tensor::ndtr`]. Infinite at 0 and 1, NaN beyond.
    /// Floats keep their dtype, integers and bools give `F32`. PyTorch's `torch.special.ndtri`.
    ///
    /// S. L. Moshier, Cephes Math Library, 1984.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let quantiles = Tensor::from_slice(&[0.0f64, 0.5, 0.975, 1.0], [4]).ndtri().to_vec::<f64>()?;
    /// assert!(quantiles[1] == 0.0 && (quantiles[2] - 1.959_963_984_540_054).abs() < 1e-14);
    /// assert_eq!((quantiles[0], quantiles[3]), (f64::NEG_INFINITY, f64::INFINITY));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ndtri(&self) -> Tensor {
        let call = Call::here("ndtri");
        call.composed(|| of_floats(self, ndtri))
    }

    /// `x * 2^exponent`, without overflow or underflow on the way. In the promoted dtype, `F32` if that is no float; shapes broadcast.
    /// PyTorch's and NumPy's `ldexp`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.5f32, 3.0, 1e-30], [3]);
    /// assert_eq!(x.ldexp(&Tensor::from([2, -1, 0])).to_vec::<f32>()?, [6.0, 1.5, 1e-30]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ldexp(&self, exponent: impl Into<Operand>) -> Tensor {
        let (call, operands) = (Call::here("ldexp"), [self.into(), exponent.into()]);
        call.composed(|| {
            let dtype = Rule::Float.dtype(call, &operands)?;
            // From the least number to the largest it is no further.
            let most = if dtype == DType::F64 { 2200.0 } else { 360.0 };
            formula(call, Rule::Float, operands, |[x, exponent]| {
                // In three steps, each of which is a number of the dtype.
                let exponent = exponent.clamp(-most, most);
                let third = (&exponent * (1.0 / 3.0)).trunc();
                let rest = exponent - &third - &third;
                let step = third.exp2();
                x * &step * rest.exp2() * step
            })
        })
    }

    /// `self` to the power `other` in `F64`, to which both are converted. Shapes broadcast. PyTorch's `float_power`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2i32, -1], [2]);
    /// assert_eq!(x.float_power(-1).to_vec::<f64>()?, [0.5, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn float_power(&self, other: impl Into<Operand>) -> Tensor {
        let (call, other) = (Call::here("float_power"), other.into());
        call.composed(|| {
            let base = self.cast(DType::F64);
            Ok(match other {
                Operand::Tensor(other) => base.pow(other.cast(DType::F64)),
                Operand::Number(other) => base.pow(other.to_scalar(DType::F64).as_f64()),
            })
        })
    }
}

/// `x * log(y)`, 0 where `x` is 0, NaN where `y` is.
pub(crate) fn xlogy(x: &Term, y: &Term) -> Term {
    times_logarithm(x, y, y.log())
        .derived([x, y], |g, [x, y], _| [none_of_nothing(&x, &y, &g * y.log()), g * x / y])
}

/// What reaches `x` through a product with the logarithm of `y`: none where both are nothing.
fn none_of_nothing(x: &Term, y: &Term, adjoint: Term) -> Term {
    x.eq(0.0).and(y.le(0.0)).select(0.0, adjoint)
}

/// `x` times a logarithm that follows from `y`: 0 where `x` is 0, NaN where `y` is.
fn times_logarithm(x: &Term, y: &Term, logarithm: Term) -> Term {
    let product = x * logarithm;
    x.eq(0.0).and(y.isnan().not()).select(0.0, product)
}

/// Of floats in the dtype of their arithmetic, rounded once; of others in `F32`.
fn of_floats(x: &Tensor, f: impl FnOnce(&Tensor) -> Tensor) -> Result<Tensor> {
    let dtype = x.known()?.1;
    widened(&x.cast(float_for(dtype)), f)
}

/// The polynomial with these coefficients, that of the highest power last.
fn polynomial(x: &Tensor, coefficients: &[f64]) -> Tensor {
    let highest = coefficients.last().copied().unwrap_or(0.0);
    let first = x.full_like(highest);
    coefficients.iter().rev().skip(1).fold(first, |sum, &coefficient| sum * x + coefficient)
}

/// Of floats that compute.
fn erfcx(x: &Tensor) -> Tensor {
    // From here on the asymptotic series is exact to the last bits; erfc is still a normal number.
    let limit = if x.node.dtype == DType::F64 { 25.0 } else { 8.0 };
    // Below -30 the result is infinite.
    let small = x.clamp(-30.0, limit);
    // The square in two parts, of which the first is exact: the error of one would be as many times larger as it is.
    let head = (&small * 16.0).trunc() * (1.0 / 16.0);
    let rest = (&small - &head) * (&small + &head);
    let product = (head.square()).exp() * rest.exp() * small.erfc();
    let large = x.maximum(limit);
    let inverse = large.square().reciprocal() * 0.5;
    // (-1)^k (2k - 1)!! of the powers of 1 / (2x²).
    let mut coefficients = vec![1.0];
    for k in 1..10 {
        let before = coefficients.last().copied().unwrap_or(1.0);
        coefficients.push(-before * f64::from(2 * k - 1));
    }
    let series = polynomial(&inverse, &coefficients) * (1.0 / PI.sqrt()) / large;
    x.gt(limit).where_(series, product)
}

/// Of floats that compute.
fn ndtri(p: &Tensor) -> Tensor {
    let tail = (-2.0f64).exp();
    let is_upper = p.gt(1.0 - tail);
    let is_tail = is_upper.logical_or(p.lt(tail));
    let is_inside = p.gt(0.0).logical_and(p.lt(1.0));
    // No formula is computed where it does not count: its slope would be.
    let own = is_upper.where_(1.0 - p, p);
    let far = is_tail.logical_and(&is_inside).where_(&own, 0.1);
    let near = is_tail.where_(0.5, p) - 0.5;
    let square = near.square();
    let quotient = polynomial(&square, &P0) / polynomial(&square, &Q0);
    let middle = (&near + &near * (square * quotient)) * TAU.sqrt();
    let root = (far.log() * -2.0).sqrt();
    let inverse = root.reciprocal();
    let first = &root - root.log() * &inverse;
    let quotient = |p: &[f64], q: &[f64]| polynomial(&inverse, p) / polynomial(&inverse, q);
    let correction = &inverse * root.lt(8.0).where_(quotient(&P1, &Q1), quotient(&P2, &Q2));
    let distance = first - correction;
    let found = is_tail.where_(is_upper.where_(&distance, -&distance), middle);
    let ends =
        p.eq(0.0).where_(f64::NEG_INFINITY, p.eq(1.0).where_(f64::INFINITY, found.full_like(f64::NAN)));
    is_inside.where_(found, ends)
}

// Rational functions of Cephes' `ndtri`, lowest power first.
const P0: [f64; 5] = [
    -1.239_165_838_673_812_5,
    13.931_260_938_727_968,
    -56.676_285_746_907_03,
    98.001_075_418_599_97,
    -59.963_350_101_410_79,
];
const Q0: [f64; 9] = [
    -1.183_316_211_213_3,
    15.905_622_512_621_17,
    -82.037_225_616_833_34,
    200.260_212_380_060_66,
    -225.462_687_854_119_37,
    86.360_242_139_089_05,
    4.676_279_128_988_815,
    1.954_488_583_381_417_6,
    1.0,
];
const P1: [f64; 9] = [
    -0.000_857_456_785_154_685_4,
    -0.035_042_462_682_784_82,
    -0.140_256_079_171_354_5,
    2.186_633_068_507_902_5,
    14.684_956_192_885_803,
    44.080_507_389_320_08,
    57.162_819_224_642_13,
    31.525_109_459_989_388,
    4.055_448_923_059_624_5,
];
const Q1: [f64; 9] = [
    -0.000_933_259_480_895_457_4,
    -0.038_080_640_769_157_83,
    -0.142_182_922_854_787_79,
    2.504_649_462_083_094,
    15.042_538_569_290_75,
    41.317_203_825_467_2,
    45.390_763_512_887_92,
    15.779_988_325_646_675,
    1.0,
];
const P2: [f64; 9] = [
    6.239_745_391_849_833e-9,
    2.658_069_746_867_375_5e-6,
    0.000_301_581_553_508_235_43,
    0.012_371_663_481_782_003,
    0.201_485_389_549_179_08,
    1.333_034_608_158_075_5,
    3.938_810_252_924_744_4,
    6.915_228_890_689_842,
    3.237_748_917_769_460_3,
];
const Q2: [f64; 9] = [
    6.790_194_080_099_813e-9,
    2.892_478_647_453_806_8e-6,
    0.000_328_014_464_682_127_74,
    0.013_420_400_608_854_318,
    0.216_236_993_594_496_63,
    1.377_020_994_890_813_2,
    3.679_835_638_561_608_7,
    6.024_270_393_647_42,
    1.0,
];
