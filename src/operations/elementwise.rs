//! Elementwise operations.

use super::row::Accuracy::{Exact, Near, Ulps};
use super::row::Gives::{Fixed, Float, Same};
use super::row::{ANY, Group, MASK, SMALL, TRUTH, UNIT, operations};
use crate::{DType, Rounding, Tensor};

operations! {
    /// Of one tensor.
    UNARY: Group::Unary;
    neg(a: ANY) Numbers -> Same, Exact, "`-x`; integers wrap.": "torch.neg(a)" => a.neg();
    abs(a: ANY) Numbers -> Same, Exact, "`|x|`; the least integer stays itself.": "torch.abs(a)" => a.abs();
    sign(a: ANY) Numbers -> Same, Exact, "-1, 0 or 1; NaN for NaN.": "torch.where(a.isnan(), a, torch.sign(a)) if a.is_floating_point() else torch.sign(a)" => a.sign();
    square(a: ANY) Numbers -> Same, Exact, "`x * x`.": "torch.square(a)" => a.square();
    floor(a: ANY) Numbers -> Same, Exact, "Rounded towards minus infinity.": "torch.floor(a)" => a.floor();
    ceil(a: ANY) Numbers -> Same, Exact, "Rounded towards plus infinity.": "torch.ceil(a)" => a.ceil();
    round(a: ANY) Numbers -> Same, Exact, "Rounded to the nearest integer, halves to even.": "torch.round(a)" => a.round();
    trunc(a: ANY) Numbers -> Same, Exact, "Rounded towards zero.": "torch.trunc(a)" => a.trunc();
    reciprocal(a: ANY) All -> Float, Exact, "`1 / x`.": "torch.reciprocal(a)" => a.reciprocal();
    sqrt(a: ANY) All -> Float, Exact, "The square root.": "torch.sqrt(a)" => a.sqrt();
    rsqrt(a: ANY) All -> Float, Ulps(2), "`1 / sqrt(x)`.": "torch.rsqrt(a)" => a.rsqrt();
    exp(a: ANY) All -> Float, Ulps(2), "e to the power x.": "torch.exp(a)" => a.exp();
    exp2(a: ANY) All -> Float, Ulps(2), "2 to the power x.": "torch.exp2(a)" => a.exp2();
    expm1(a: ANY) All -> Float, Ulps(2), "`exp(x) - 1`, accurate near 0.": "torch.expm1(a)" => a.expm1();
    log(a: ANY) All -> Float, Ulps(2), "The natural logarithm.": "torch.log(a)" => a.log();
    log2(a: ANY) All -> Float, Ulps(2), "The logarithm to base 2.": "torch.log2(a)" => a.log2();
    log10(a: ANY) All -> Float, Ulps(2), "The logarithm to base 10.": "torch.log10(a)" => a.log10();
    log1p(a: ANY) All -> Float, Ulps(2), "`log(1 + x)`, accurate near 0.": "torch.log1p(a)" => a.log1p();
    sin(a: ANY) All -> Float, Ulps(2), "The sine of radians.": "torch.sin(a)" => a.sin();
    cos(a: ANY) All -> Float, Ulps(2), "The cosine of radians.": "torch.cos(a)" => a.cos();
    tan(a: ANY) All -> Float, Ulps(4), "The tangent of radians.": "torch.tan(a)" => a.tan();
    tanh(a: ANY) All -> Float, Ulps(2), "The hyperbolic tangent.": "torch.tanh(a)" => a.tanh();
    erf(a: ANY) All -> Float, Ulps(2), "The error function.": "torch.erf(a)" => a.erf();
    cbrt(a: ANY) All -> Float, Ulps(4), "The cube root.": "np.cbrt(a)" => a.cbrt();
    asin(a: ANY) All -> Float, Ulps(2), "The arc sine.": "torch.asin(a)" => a.asin();
    acos(a: ANY) All -> Float, Ulps(2), "The arc cosine.": "torch.acos(a)" => a.acos();
    atan(a: ANY) All -> Float, Ulps(2), "The arc tangent.": "torch.atan(a)" => a.atan();
    sinh(a: ANY) All -> Float, Ulps(3), "The hyperbolic sine.": "torch.sinh(a)" => a.sinh();
    cosh(a: ANY) All -> Float, Ulps(2), "The hyperbolic cosine.": "torch.cosh(a)" => a.cosh();
    asinh(a: ANY) All -> Float, Ulps(3), "The inverse of sinh.": "torch.asinh(a)" => a.asinh();
    acosh(a: ANY) All -> Float, Ulps(4), "The inverse of cosh.": "torch.acosh(a)" => a.acosh();
    atanh(a: ANY) All -> Float, Ulps(3), "The inverse of tanh.": "torch.atanh(a)" => a.atanh();
    entr(a: ANY) All -> Float, Ulps(4), "`-x * log(x)`, 0 at 0.": "torch.special.entr(a)" => a.entr();
    erfc(a: ANY) All -> Float, Ulps(5), "`1 - erf(x)`, accurate for large x.": "torch.special.erfc(a)" => a.erfc();
    erfinv(a: ANY) All -> Float, Ulps(5), "The inverse of erf.": "torch.erfinv(a)" => a.erfinv();
    lgamma(a: ANY) All -> Float, Near { relative: 8.0, absolute: 8.0 }, "The logarithm of the absolute value of the gamma function.": "torch.lgamma(a)" => a.lgamma();
    digamma(a: ANY) All -> Float, Near { relative: 8.0, absolute: 8.0 }, "The derivative of lgamma.": "torch.digamma(a)" => a.digamma();
    polygamma(a: UNIT.shape(&[4, 37])) All -> Float, Near { relative: 32.0, absolute: 8.0 }, "The derivatives of digamma.": "torch.polygamma(2, (as_float(a) + 0.25).double()).to(as_float(a).dtype)" => (a + 0.25).polygamma(2), "torch.special.zeta(torch.tensor(2.0).double(), (as_float(a) * 9 + 0.75).double()).to(as_float(a).dtype)" => (a * 9.0 + 0.75).polygamma(1), "torch.polygamma(5, (as_float(a) * 9 + 0.75).double()).to(as_float(a).dtype)" => (a * 9.0 + 0.75).polygamma(5), "torch.polygamma(0, a)" => a.polygamma(0);
    multigammaln(a: UNIT.shape(&[4, 37])) All -> Float, Near { relative: 8.0, absolute: 16.0 }, "The logarithm of the gamma function of several dimensions.": "torch.special.multigammaln(as_float(a) + 2, 3)" => (a + 2.0).multigammaln(3);
    i0(a: ANY) All -> Float, Ulps(8), "The modified Bessel function of order 0.": "torch.i0(a)" => a.i0();
    i0e(a: ANY) All -> Float, Ulps(8), "`i0(x) * exp(-|x|)`.": "torch.special.i0e(a)" => a.i0e();
    i1(a: ANY) All -> Float, Ulps(8), "The modified Bessel function of order 1.": "torch.special.i1(a)" => a.i1();
    i1e(a: ANY) All -> Float, Ulps(8), "`i1(x) * exp(-|x|)`.": "torch.special.i1e(a)" => a.i1e();
    bessel_j0(a: UNIT.shape(&[4, 37])) All -> Float, Near { relative: 8.0, absolute: 8.0 }, "The Bessel function of order 0.": "torch.special.bessel_j0((as_float(a) * 16 - 4).double()).to(as_float(a).dtype)" => (a * 16.0 - 4.0).bessel_j0();
    bessel_j1(a: UNIT.shape(&[4, 37])) All -> Float, Near { relative: 8.0, absolute: 8.0 }, "The Bessel function of order 1.": "torch.special.bessel_j1((as_float(a) * 16 - 4).double()).to(as_float(a).dtype)" => (a * 16.0 - 4.0).bessel_j1();
    ndtr(a: ANY) All -> Float, Near { relative: 8.0, absolute: 8.0 }, "The share of a normal distribution below x.": "(torch.special.erfc((a if a.dtype == torch.float64 else a.float()) * -(0.5 ** 0.5)) * 0.5).to(as_float(a).dtype)" => a.ndtr();
    log_ndtr(a: ANY) All -> Float, Near { relative: 16.0, absolute: 8.0 }, "The logarithm of ndtr.": "torch.special.log_ndtr(a)" => a.log_ndtr();
    ndtri(a: UNIT) All -> Float, Near { relative: 16.0, absolute: 8.0 }, "The inverse of ndtr.": "torch.special.ndtri(a)" => a.ndtri(), "torch.special.ndtri(a * 1e-5)" => (a * 1e-5).ndtri(), "torch.special.ndtri(a * -1.5)" => (a * -1.5).ndtri();
    erfcx(a: ANY) All -> Float, Ulps(32), "`exp(x²) * erfc(x)`.": "torch.special.erfcx(a)" => a.erfcx();
    logit(a: UNIT) All -> Float, Near { relative: 8.0, absolute: 8.0 }, "`log(x / (1 - x))`.": "torch.logit(a)" => a.logit();
    sinc(a: ANY) All -> Float, Near { relative: 4.0, absolute: 2.0 }, "`sin(πx) / (πx)`.": "torch.sinc(a)" => a.sinc();
    deg2rad(a: ANY) All -> Float, Exact, "Radians of degrees.": "torch.deg2rad(a)" => a.deg2rad();
    rad2deg(a: ANY) All -> Float, Exact, "Degrees of radians.": "torch.rad2deg(a)" => a.rad2deg();
    frac(a: ANY) Floats -> Same, Exact, "What is behind the point.": "torch.frac(a)" => a.frac();
    frexp(a: ANY) Floats -> Same, Exact, "Mantissas and exponents.": "tuple(torch.frexp(a))" => a.frexp();
    round_decimals(a: ANY) Floats -> Same, Exact, "Rounded to so many decimals, halves to even.": "torch.round(a, decimals=2)" => a.round_decimals(2), "torch.round(a, decimals=-1)" => a.round_decimals(-1);
    nan_to_num(a: ANY) All -> Same, Exact, "NaN and infinities replaced.": "torch.nan_to_num(a)" => a.nan_to_num(0.0, None, None), "torch.nan_to_num(a, 1.0, 2.0, -3.0)" => a.nan_to_num(1.0, Some(2.0), Some(-3.0));
    view_dtype(a: SMALL.shape(&[3, 8])) All -> Fixed(DType::U8), Exact, "The same bits as numbers of another dtype.": "a.view(torch.uint8)" => a.view_dtype(DType::U8), "a.view(torch.int16)" => a.view_dtype(DType::I16), "a.view(torch.int32)" => a.view_dtype(DType::I32), "a.view(torch.int64)" => a.view_dtype(DType::I64), "a.view(torch.float16)" => a.view_dtype(DType::F16), "a.view(torch.bfloat16)" => a.view_dtype(DType::BF16), "a.view(torch.float32)" => a.view_dtype(DType::F32), "a.view(torch.float64)" => a.view_dtype(DType::F64);
    cast(dtype; a: ANY) All -> Same, Exact, "Converted as Rust's `as` converts.": "a.to(dtype)" => a.cast(dtype);
}

operations! {
    /// Of two and three tensors.
    BINARY: Group::Binary;
    add(a: ANY, b: ANY) All -> Same, Exact, "`a + b`; integers wrap, bools are or-ed.": "torch.add(a, b)" => a.add(b), "a + 3" => a.add(3);
    sub(a: ANY, b: ANY) Numbers -> Same, Exact, "`a - b`.": "torch.sub(a, b)" => a.sub(b);
    mul(a: ANY, b: ANY) All -> Same, Exact, "`a * b`.": "torch.mul(a, b)" => a.mul(b);
    div(a: ANY, b: ANY) All -> Float, Exact, "The true quotient.": "torch.div(a, b)" => a.div(b);
    div_with(a: ANY, b: ANY) Numbers -> Same, Exact, "The quotient rounded to an integer; an integer over zero is 0.": "torch.div(a, b, rounding_mode='trunc')" => a.div_with(b, Rounding::Trunc), "torch.div(a, b, rounding_mode='floor')" => a.div_with(b, Rounding::Floor);
    floor_divide(a: ANY, b: ANY) Numbers -> Same, Exact, "The quotient rounded towards minus infinity; an integer over zero is 0.": "torch.floor_divide(a, b)" => a.floor_divide(b);
    remainder(a: ANY, b: ANY) Numbers -> Same, Exact, "The remainder with the divisor's sign; an integer by zero is 0.": "torch.remainder(a, b)" => a.remainder(b);
    pow(a: ANY, b: ANY) Numbers -> Same, Ulps(8), "a to the power b.": "torch.pow(a, b)" => a.pow(b), "torch.pow(a, 0.5)" => a.pow(0.5), "torch.pow(a, -0.5)" => a.pow(-0.5), "torch.pow(a, 3)" => a.pow(3), "torch.pow(a, 4)" => a.pow(4);
    rpow(a: ANY, b: ANY) Numbers -> Same, Ulps(8), "b to the power a.": "torch.pow(b, a)" => a.rpow(b), "torch.pow(2.5, a)" => a.rpow(2.5);
    float_power(a: ANY, b: SMALL) All -> Fixed(DType::F64), Ulps(8), "a to the power b in F64.": "torch.float_power(a, b)" => a.float_power(b), "torch.float_power(a, -2)" => a.float_power(-2), "torch.float_power(a, 0.5)" => a.float_power(0.5);
    ldexp(a: SMALL, b: SMALL) All -> Float, Ulps(4), "`a * 2^b`.": "torch.ldexp(a, b)" => a.ldexp(b), "torch.ldexp(a, torch.tensor(3))" => a.ldexp(3);
    maximum(a: ANY, b: ANY) All -> Same, Exact, "The larger; NaN if either is.": "torch.maximum(a, b)" => a.maximum(b);
    minimum(a: ANY, b: ANY) All -> Same, Exact, "The smaller; NaN if either is.": "torch.minimum(a, b)" => a.minimum(b);
    atan2(a: ANY, b: ANY) All -> Float, Ulps(3), "The angle of the point (b, a).": "torch.atan2(a, b)" => a.atan2(b);
    fmod(a: ANY, b: ANY) Numbers -> Same, Exact, "The remainder with the dividend's sign; an integer by zero is 0.": "torch.fmod(a, b)" => a.fmod(b);
    fmax(a: ANY, b: ANY) All -> Same, Exact, "The larger, or the one that is no NaN.": "torch.fmax(a, b)" => a.fmax(b);
    fmin(a: ANY, b: ANY) All -> Same, Exact, "The smaller, or the one that is no NaN.": "torch.fmin(a, b)" => a.fmin(b);
    hypot(a: ANY, b: ANY) All -> Float, Ulps(3), "`sqrt(a² + b²)`.": "torch.hypot(a, b)" => a.hypot(b);
    nextafter(a: ANY, b: ANY) Floats -> Same, Exact, "The next number on the way to b.": "torch.nextafter(a, b)" => a.nextafter(b);
    copysign(a: ANY, b: ANY) All -> Float, Exact, "The magnitude of a with the sign of b.": "torch.copysign(a, b)" => a.copysign(b);
    logaddexp(a: ANY, b: ANY) All -> Float, Near { relative: 4.0, absolute: 4.0 }, "`log(exp(a) + exp(b))`.": "torch.logaddexp(a, b)" => a.logaddexp(b);
    logaddexp2(a: ANY, b: ANY) All -> Float, Near { relative: 4.0, absolute: 4.0 }, "`log2(exp2(a) + exp2(b))`.": "torch.logaddexp2(a, b)" => a.logaddexp2(b);
    gradient(a: SMALL.shape(&[3, 7])) All -> Float, Near { relative: 4.0, absolute: 32.0 }, "The slope at each element along an axis.": "torch.gradient(as_float(a), spacing=0.5, dim=1)[0]" => a.gradient(-1, 0.5), "torch.gradient(as_float(a), dim=0)[0]" => a.gradient(0, 1), "torch.gradient(as_float(a), spacing=(torch.arange(7, dtype=as_float(a).dtype).square(),), dim=1)[0]" => a.gradient(1, Tensor::arange(0.0f32, 7.0, 1.0).square());
    gradient_with(a: SMALL.shape(&[3, 7])) All -> Float, Near { relative: 4.0, absolute: 64.0 }, "`gradient` with ends of another order.": "torch.gradient(as_float(a), spacing=0.5, dim=1, edge_order=2)[0]" => a.gradient_with(-1, 0.5, 2), "torch.gradient(as_float(a), spacing=(torch.arange(7, dtype=as_float(a).dtype).square(),), dim=1, edge_order=2)[0]" => a.gradient_with(1, Tensor::arange(0.0f32, 7.0, 1.0).square(), 2);
    diff(a: SMALL.shape(&[3, 7])) All -> Same, Exact, "Each element less the one before it.": "torch.diff(a, dim=-1)" => a.diff(-1), "torch.diff(a, dim=0)" => a.diff(0);
    diff_with(a: SMALL.shape(&[4, 6]), b: SMALL.shape(&[4, 2])) All -> Same, Exact, "`diff` several times, with elements before and behind.": "torch.diff(a, 2, dim=-1)" => a.diff_with(2, -1, None, None), "torch.diff(a, 3, dim=1, prepend=b, append=b)" => a.diff_with(3, 1, Some(b), Some(b)), "torch.diff(a, 1, dim=1, append=b)" => a.diff_with(1, 1, None, Some(b)), "torch.diff(a, 7, dim=0)" => a.diff_with(7, 0, None, None), "torch.diff(a, 0, prepend=b)" => a.diff_with(0, -1, Some(b), None);
    xlog1py(a: ANY, b: ANY) All -> Float, Ulps(4), "`a * log(1 + b)`, 0 where a is.": "torch.special.xlog1py(a, b)" => a.xlog1py(b);
    xlogy(a: ANY, b: ANY) All -> Float, Ulps(4), "`a * log(b)`, 0 where a is.": "torch.xlogy(a, b)" => a.xlogy(b);
    gammainc(a: UNIT.shape(&[6, 1]), b: UNIT.shape(&[24])) All -> Float, Near { relative: 64.0, absolute: 8.0 }, "The share of a gamma distribution below b.": "torch.special.gammainc((as_float(a) * 30).double(), (as_float(b) * 30).double()).to(as_float(a).dtype)" => (a * 30.0).gammainc(b * 30.0);
    gammaincc(a: UNIT.shape(&[6, 1]), b: UNIT.shape(&[24])) All -> Float, Near { relative: 64.0, absolute: 8.0 }, "The share of a gamma distribution above b.": "torch.special.gammaincc((as_float(a) * 30).double(), (as_float(b) * 30).double()).to(as_float(a).dtype)" => (a * 30.0).gammaincc(b * 30.0);
    zeta(a: SMALL.shape(&[5, 1]), b: SMALL.shape(&[8])) All -> Float, Near { relative: 64.0, absolute: 8.0 }, "Hurwitz's zeta function.": "torch.special.zeta(a.double(), b.double()).to(as_float(a).dtype)" => a.zeta(b), "torch.special.zeta(a.double(), (as_float(b) + 0.375).double()).to(as_float(a).dtype)" => a.zeta(b + 0.375);
    heaviside(a: ANY, b: ANY) All -> Same, Exact, "0 below 0, 1 above, b at 0.": "torch.heaviside(a, b)" => a.heaviside(b);
    lerp(a: ANY, b: ANY, c: ANY) Floats -> Same, Exact, "From a to b on a line.": "torch.lerp(a, b, c)" => a.lerp(b, c), "torch.lerp(a, b, 0.25)" => a.lerp(b, 0.25), "torch.lerp(a, b, 0.75)" => a.lerp(b, 0.75);
    addcmul(a: ANY, b: ANY, c: ANY) Numbers -> Same, Exact, "`a + value * b * c`.": "torch.addcmul(a, b, c, value=3)" => a.addcmul(b, c, 3.0);
    addcdiv(a: ANY, b: ANY, c: ANY) Floats -> Same, Exact, "`a + value * b / c`.": "torch.addcdiv(a, b, c, value=0.5)" => a.addcdiv(b, c, 0.5);
    clamp_min(a: ANY, b: ANY) All -> Same, Exact, "Not below b; NaN if either is.": "torch.clamp_min(a, b)" => a.clamp_min(b), "torch.clamp(a, min=1)" => a.clamp_min(1);
    clamp_max(a: ANY, b: ANY) All -> Same, Exact, "Not above b; NaN if either is.": "torch.clamp_max(a, b)" => a.clamp_max(b), "torch.clamp(a, max=1)" => a.clamp_max(1);
    clamp(a: ANY, b: ANY, c: ANY) All -> Same, Exact, "`min(max(a, low), high)`.": "torch.clamp(a, b, c)" => a.clamp(b, c);
}

operations! {
    /// Questions, logic and bits.
    LOGIC: Group::Logic;
    eq(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether they are equal.": "torch.eq(a, b)" => a.eq(b);
    ne(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether they differ.": "torch.ne(a, b)" => a.ne(b);
    lt(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether a is less.": "torch.lt(a, b)" => a.lt(b);
    le(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether a is less or equal.": "torch.le(a, b)" => a.le(b);
    gt(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether a is greater.": "torch.gt(a, b)" => a.gt(b);
    ge(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether a is greater or equal.": "torch.ge(a, b)" => a.ge(b);
    logical_and(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether both are nonzero.": "torch.logical_and(a, b)" => a.logical_and(b);
    logical_or(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether either is nonzero.": "torch.logical_or(a, b)" => a.logical_or(b);
    logical_xor(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether exactly one is nonzero.": "torch.logical_xor(a, b)" => a.logical_xor(b);
    logical_not(a: ANY) All -> TRUTH, Exact, "Whether it is zero.": "torch.logical_not(a)" => a.logical_not();
    gcd(a: ANY, b: ANY) Integers -> Same, Exact, "The greatest common divisor.": "np.gcd(a, b)" => a.gcd(b);
    lcm(a: SMALL, b: SMALL) Integers -> Same, Exact, "The least common multiple.": "np.lcm(a, b)" => a.lcm(b);
    bitwise_and(a: ANY, b: ANY) Bits -> Same, Exact, "Bitwise and.": "torch.bitwise_and(a, b)" => a.bitwise_and(b);
    bitwise_or(a: ANY, b: ANY) Bits -> Same, Exact, "Bitwise or.": "torch.bitwise_or(a, b)" => a.bitwise_or(b);
    bitwise_xor(a: ANY, b: ANY) Bits -> Same, Exact, "Bitwise exclusive or.": "torch.bitwise_xor(a, b)" => a.bitwise_xor(b);
    bitwise_not(a: ANY) Bits -> Same, Exact, "Bitwise complement; of bools the negation.": "torch.bitwise_not(a)" => a.bitwise_not();
    isnan(a: ANY) All -> TRUTH, Exact, "Whether it is NaN.": "torch.isnan(a)" => a.isnan();
    isinf(a: ANY) All -> TRUTH, Exact, "Whether it is an infinity.": "torch.isinf(a)" => a.isinf();
    isposinf(a: ANY) All -> TRUTH, Exact, "Whether it is +∞.": "torch.isposinf(a)" => a.isposinf();
    isneginf(a: ANY) All -> TRUTH, Exact, "Whether it is -∞.": "torch.isneginf(a)" => a.isneginf();
    signbit(a: ANY) All -> TRUTH, Exact, "Whether it has a minus sign, as -0 has.": "torch.signbit(a)" => a.signbit();
    isfinite(a: ANY) All -> TRUTH, Exact, "Whether it is neither NaN nor an infinity.": "torch.isfinite(a)" => a.isfinite();
    isclose(a: ANY, b: ANY) All -> TRUTH, Exact, "Whether the difference is within tolerances.": "torch.isclose(a, b)" => a.isclose(b, 1e-5, 1e-8, false), "torch.isclose(a, b, 0.1, 0.5, True)" => a.isclose(b, 0.1, 0.5, true);
    bitwise_left_shift(a: ANY, b: ANY) Integers -> Same, Exact, "Shifted left by b bits; 0 where that is no number of bits.": "torch.bitwise_left_shift(a, b)" => a.bitwise_left_shift(b);
    bitwise_right_shift(a: ANY, b: ANY) Integers -> Same, Exact, "Shifted right by b bits, copies of the sign coming in.": "torch.bitwise_right_shift(a, b)" => a.bitwise_right_shift(b);
    masked_fill(a: ANY, m: MASK) All -> Same, Exact, "A value where the mask is true.": "a.masked_fill(m, 1)" => a.masked_fill(m, 1);
    where_(m: MASK, a: ANY, b: ANY) All -> Same, Exact, "a where the mask is true, b elsewhere.": "torch.where(m, a, b)" => m.where_(a, b);
}
