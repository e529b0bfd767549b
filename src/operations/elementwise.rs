//! Elementwise operations.

use super::Accuracy::{Exact, Ulps};
use super::Gives::{Float, Same};
use super::{ANY, Group, MASK, TRUTH, operations};

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
    cast(dtype; a: ANY) All -> Same, Exact, "Converted as Rust's `as` converts.": "a.to(dtype)" => a.cast(dtype);
}

operations! {
    /// Of two and three tensors.
    BINARY: Group::Binary;
    add(a: ANY, b: ANY) All -> Same, Exact, "`a + b`; integers wrap, bools are or-ed.": "torch.add(a, b)" => a.add(b), "a + 3" => a.add(3);
    sub(a: ANY, b: ANY) Numbers -> Same, Exact, "`a - b`.": "torch.sub(a, b)" => a.sub(b);
    mul(a: ANY, b: ANY) All -> Same, Exact, "`a * b`.": "torch.mul(a, b)" => a.mul(b);
    div(a: ANY, b: ANY) All -> Float, Exact, "The true quotient.": "torch.div(a, b)" => a.div(b);
    floor_divide(a: ANY, b: ANY) Numbers -> Same, Exact, "The quotient rounded towards minus infinity; an integer over zero is 0.": "torch.floor_divide(a, b)" => a.floor_divide(b);
    remainder(a: ANY, b: ANY) Numbers -> Same, Exact, "The remainder with the divisor's sign; an integer by zero is 0.": "torch.remainder(a, b)" => a.remainder(b);
    pow(a: ANY, b: ANY) Numbers -> Same, Ulps(8), "a to the power b.": "torch.pow(a, b)" => a.pow(b);
    maximum(a: ANY, b: ANY) All -> Same, Exact, "The larger; NaN if either is.": "torch.maximum(a, b)" => a.maximum(b);
    minimum(a: ANY, b: ANY) All -> Same, Exact, "The smaller; NaN if either is.": "torch.minimum(a, b)" => a.minimum(b);
    atan2(a: ANY, b: ANY) All -> Float, Ulps(3), "The angle of the point (b, a).": "torch.atan2(a, b)" => a.atan2(b);
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
    bitwise_and(a: ANY, b: ANY) Bits -> Same, Exact, "Bitwise and.": "torch.bitwise_and(a, b)" => a.bitwise_and(b);
    bitwise_or(a: ANY, b: ANY) Bits -> Same, Exact, "Bitwise or.": "torch.bitwise_or(a, b)" => a.bitwise_or(b);
    bitwise_xor(a: ANY, b: ANY) Bits -> Same, Exact, "Bitwise exclusive or.": "torch.bitwise_xor(a, b)" => a.bitwise_xor(b);
    bitwise_not(a: ANY) Bits -> Same, Exact, "Bitwise complement; of bools the negation.": "torch.bitwise_not(a)" => a.bitwise_not();
    isnan(a: ANY) All -> TRUTH, Exact, "Whether it is NaN.": "torch.isnan(a)" => a.isnan();
    isinf(a: ANY) All -> TRUTH, Exact, "Whether it is an infinity.": "torch.isinf(a)" => a.isinf();
    isfinite(a: ANY) All -> TRUTH, Exact, "Whether it is neither NaN nor an infinity.": "torch.isfinite(a)" => a.isfinite();
    where_(m: MASK, a: ANY, b: ANY) All -> Same, Exact, "a where the mask is true, b elsewhere.": "torch.where(m, a, b)" => m.where_(a, b);
}
