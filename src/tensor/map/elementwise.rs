//! Operations on each element of one tensor.

use super::operands::float_for;
use crate::tensor::arguments::call::Call;
use crate::{BinaryOp, DType, Result, Tensor, UnaryOp};

macro_rules! unary_methods {
    ($(#[$block:meta])* impl: $($(#[$meta:meta])* $name:ident = $op:ident;)*) => {
        $(#[$block])*
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self) -> Tensor {
                    Tensor::or_invalid(unary(Call::here(stringify!($name)), UnaryOp::$op, self))
                }
            )*
        }
    };
}

unary_methods! {
    /// Signs, magnitudes and rounding: the dtype stays.
    impl:
    /// `-x`; integers wrap. Keeps shape and dtype; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i8, -2, i8::MIN], [3]);
    /// assert_eq!(x.neg().to_vec::<i8>()?, [-1, 2, i8::MIN]);
    /// assert_eq!((-x).to_vec::<i8>()?, [-1, 2, i8::MIN]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    neg = Neg;
    /// `|x|`; the least integer stays itself. Keeps shape and dtype; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.5f32, 2.0], [2]).abs().to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    abs = Abs;
    /// -1, 0 or 1; 0 for ±0, and NaN for NaN. Keeps shape and dtype; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.5f32, -0.0, 7.0], [3]);
    /// assert_eq!(x.sign().to_vec::<f32>()?, [-1.0, 0.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sign = Sign;
    /// `x * x`; integers wrap. Keeps shape and dtype; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.5f32, 3.0], [2]).square().to_vec::<f32>()?, [2.25, 9.0]);
    /// assert_eq!(Tensor::from_slice(&[15u8, 17], [2]).square().to_vec::<u8>()?, [225, 33]); // 289 wraps
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    square = Square;
    /// `max(x, 0)`; NaN stays NaN, and -0 stays -0. Keeps shape and dtype; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1i32, 0, 2], [3]).relu().to_vec::<i32>()?, [0, 0, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    relu = Relu;
    /// Rounded towards minus infinity. Keeps shape and dtype; integers stay as they are; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.5f32, 1.5], [2]);
    /// assert_eq!(x.floor().to_vec::<f32>()?, [-2.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    floor = Floor;
    /// Rounded towards plus infinity. Keeps shape and dtype; integers stay as they are; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.5f32, 1.5], [2]);
    /// assert_eq!(x.ceil().to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ceil = Ceil;
    /// Rounded to the nearest integer, halves to the even one. Keeps shape and dtype; integers stay as they
    /// are; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32, 1.5, -2.5], [3]);
    /// assert_eq!(x.round().to_vec::<f32>()?, [0.0, 2.0, -2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    round = Round;
    /// Rounded towards zero. Keeps shape and dtype; integers stay as they are; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.5f32, 1.5], [2]);
    /// assert_eq!(x.trunc().to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    trunc = Trunc;
}

unary_methods! {
    /// Functions of real numbers: integers and bools are taken as `F32`.
    impl:
    /// `1 / x`. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, -0.0], [2]);
    /// assert_eq!(x.reciprocal().to_vec::<f32>()?, [0.25, f32::NEG_INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    reciprocal = Reciprocal;
    /// The square root, correctly rounded; NaN below 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[4i32, 9], [2]).sqrt().to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sqrt = Sqrt;
    /// `1 / sqrt(x)`. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, 0.0], [2]);
    /// assert_eq!(x.rsqrt().to_vec::<f32>()?, [0.5, f32::INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    rsqrt = Rsqrt;
    /// e to the power x. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, f32::NEG_INFINITY, 100.0], [3]);
    /// assert_eq!(x.exp().to_vec::<f32>()?, [1.0, 0.0, f32::INFINITY]); // e^100 is too large for an f32
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    exp = Exp;
    /// 2 to the power x. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3i32, -1], [2]);
    /// assert_eq!(x.exp2().to_vec::<f32>()?, [8.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    exp2 = Exp2;
    /// `exp(x) - 1`, exact near 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1e-10f32], [1]);
    /// assert_eq!(x.expm1().to_vec::<f32>()?, [1e-10]);
    /// assert_eq!((x.exp() - 1.0).to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    expm1 = Expm1;
    /// The natural logarithm; NaN below 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, -1.0], [3]);
    /// let y = x.log().to_vec::<f32>()?;
    /// assert_eq!(y[..2], [0.0, f32::NEG_INFINITY]);
    /// assert!(y[2].is_nan());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    log = Log;
    /// The logarithm to base 2; NaN below 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[8i32, 1, 0], [3]);
    /// assert_eq!(x.log2().to_vec::<f32>()?, [3.0, 0.0, f32::NEG_INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    log2 = Log2;
    /// The logarithm to base 10; NaN below 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1000i32, 1, 0], [3]);
    /// assert_eq!(x.log10().round().to_vec::<f32>()?, [3.0, 0.0, f32::NEG_INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    log10 = Log10;
    /// `log(1 + x)`, exact near 0. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1e-10f32], [1]);
    /// assert_eq!(x.log1p().to_vec::<f32>()?, [1e-10]);
    /// assert_eq!((x + 1.0).log().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    log1p = Log1p;
    /// The sine of radians. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// use std::f32::consts::FRAC_PI_2;
    /// let x = Tensor::from_slice(&[0.0, FRAC_PI_2, -FRAC_PI_2], [3]);
    /// assert_eq!(x.sin().to_vec::<f32>()?, [0.0, 1.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sin = Sin;
    /// The cosine of radians. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0, std::f32::consts::PI], [2]);
    /// assert_eq!(x.cos().to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cos = Cos;
    /// The tangent of radians. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// use std::f32::consts::FRAC_PI_4;
    /// let y = Tensor::from_slice(&[0.0, FRAC_PI_4], [2]).tan().to_vec::<f32>()?;
    /// assert!(y[0] == 0.0 && (y[1] - 1.0).abs() < 1e-6);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    tan = Tan;
    /// The arc sine, in radians; NaN beyond ±1. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let zero = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(zero.asin().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    asin = Asin;
    /// The arc cosine, in radians; NaN beyond ±1. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let zero = Tensor::from_slice(&[1.0f32], [1]);
    /// assert_eq!(zero.acos().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    acos = Acos;
    /// The arc tangent, in radians. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let zero = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(zero.atan().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    atan = Atan;
    /// The hyperbolic sine. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let zero = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(zero.sinh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sinh = Sinh;
    /// The hyperbolic cosine. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let zero = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(zero.cosh().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cosh = Cosh;
    /// The hyperbolic tangent. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 20.0, f32::NEG_INFINITY], [3]);
    /// assert_eq!(x.tanh().to_vec::<f32>()?, [0.0, 1.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    tanh = Tanh;
    /// The error function. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, f32::INFINITY, f32::NEG_INFINITY], [3]);
    /// assert_eq!(x.erf().to_vec::<f32>()?, [0.0, 1.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    erf = Erf;
    /// The inverse of the hyperbolic sine. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(x.asinh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    asinh = Asinh;
    /// The inverse of the hyperbolic cosine; NaN below 1.
    /// Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32], [1]);
    /// assert_eq!(x.acosh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    acosh = Acosh;
    /// The inverse of the hyperbolic tangent; NaN beyond ±1.
    /// Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(x.atanh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    atanh = Atanh;
    /// The cube root, also of negative numbers. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-27.0f32], [1]);
    /// assert_eq!(x.cbrt().to_vec::<f32>()?, [-3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cbrt = Cbrt;
    /// `1 - erf(x)`, accurate for large x. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(x.erfc().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    erfc = Erfc;
    /// The inverse of the error function: ±infinity at ±1, NaN beyond.
    /// Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32], [1]);
    /// assert_eq!(x.erfinv().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    erfinv = Erfinv;
    /// The logarithm of the absolute value of the gamma function; infinity at its poles.
    /// Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2.0f32], [1]);
    /// assert_eq!(x.lgamma().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    lgamma = Lgamma;
    /// The derivative of the logarithm of the gamma function. At 0 an infinity of the other sign,
    /// NaN at negative integers.
    /// Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::INFINITY], [1]);
    /// assert_eq!(x.digamma().to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    digamma = Digamma;
    /// The modified Bessel function of the first kind, of order 0, of which Kaiser windows are made.
    /// Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, -1.0], [3]);
    /// assert_eq!(x.i0().to_vec::<f32>()?, [1.0, 1.266_065_8, 1.266_065_8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    i0 = I0;
}

unary_methods! {
    /// Questions and complements.
    impl:
    /// Whether the element is zero (or `false`): a `Bool` of the same shape, for every dtype.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 0.5, f32::NAN], [3]);
    /// assert_eq!(x.logical_not().to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logical_not = Not;
    /// The bitwise complement of integers, the negation of bools. Keeps shape and dtype; invalid for
    /// floats. Also written `!x`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!((!Tensor::from_slice(&[0i32, 5], [2])).to_vec::<i32>()?, [-1, -6]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    bitwise_not = BitNot;
    /// Whether the element is NaN: a `Bool` of the same shape, `false` for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, f32::INFINITY], [3]);
    /// assert_eq!(x.isnan().to_vec::<bool>()?, [false, true, false]);
    /// assert_eq!(x.isnan().where_(0.0, &x).to_vec::<f32>()?, [1.0, 0.0, f32::INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    isnan = IsNan;
    /// Whether the element is ±infinity: a `Bool` of the same shape, `false` for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, f32::NEG_INFINITY], [3]);
    /// assert_eq!(x.isinf().to_vec::<bool>()?, [false, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    isinf = IsInf;
    /// Whether the element is neither NaN nor infinite: a `Bool` of the same shape, `true` for integers and
    /// bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, f32::INFINITY], [3]);
    /// assert_eq!(x.isfinite().to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    isfinite = IsFinite;
}

impl Tensor {
    /// The elements converted to `dtype` as Rust's `as` converts: floats truncate towards zero and
    /// saturate, NaN becomes 0, integers wrap; everything but zero becomes `true`. This is also where
    /// 16-bit floats round.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[-1.5f32, 2.9, f32::NAN], [3]);
    /// assert_eq!(x.cast(DType::I32).to_vec::<i32>()?, [-1, 2, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        Tensor::or_invalid(Call::here("cast").cast(self, dtype))
    }
}

pub(crate) fn unary(call: Call, op: UnaryOp, x: &Tensor) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let bool_message = |mend: &str| call.fail(format!("not defined for bool {shape}; {mend}"));
    let cast_message = "cast it first, such as with .cast(DType::I64)";
    match op {
        UnaryOp::Neg if dtype == DType::Bool => {
            bool_message("to invert a mask use .logical_not() or the operator !")
        }
        UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Square | UnaryOp::Relu if dtype == DType::Bool => {
            bool_message(cast_message)
        }
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Square | UnaryOp::Relu => call.unary(op, x),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => match dtype {
            DType::Bool => bool_message(cast_message),
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => Ok(x.clone()),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => call.unary(op, x),
        },
        UnaryOp::Not => call.unary(op, &call.cast(x, DType::Bool)?),
        UnaryOp::BitNot if dtype == DType::Bool => call.unary(UnaryOp::Not, x),
        UnaryOp::BitNot if dtype.is_float() => {
            call.fail(format!("needs an integer or bool tensor, got {dtype} {shape}"))
        }
        UnaryOp::BitNot => call.unary(op, x),
        // Every integer is finite and equals itself.
        UnaryOp::IsNan | UnaryOp::IsInf if !dtype.is_float() => call.binary(BinaryOp::Ne, x, x),
        UnaryOp::IsFinite if !dtype.is_float() => call.binary(BinaryOp::Eq, x, x),
        UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite => call.unary(op, x),
        // Functions of real numbers.
        _ => call.unary(op, &call.cast(x, float_for(dtype))?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use crate::tensor::tests::{mistake, recorded};

    type Method = fn(&Tensor) -> Tensor;

    const SAME: [(&str, Method); 9] = [
        ("neg", Tensor::neg),
        ("abs", Tensor::abs),
        ("sign", Tensor::sign),
        ("square", Tensor::square),
        ("relu", Tensor::relu),
        ("floor", Tensor::floor),
        ("ceil", Tensor::ceil),
        ("round", Tensor::round),
        ("trunc", Tensor::trunc),
    ];

    const FLOAT: [(&str, Method); 15] = [
        ("reciprocal", Tensor::reciprocal),
        ("sqrt", Tensor::sqrt),
        ("rsqrt", Tensor::rsqrt),
        ("exp", Tensor::exp),
        ("exp2", Tensor::exp2),
        ("expm1", Tensor::expm1),
        ("log", Tensor::log),
        ("log2", Tensor::log2),
        ("log10", Tensor::log10),
        ("log1p", Tensor::log1p),
        ("sin", Tensor::sin),
        ("cos", Tensor::cos),
        ("tan", Tensor::tan),
        ("tanh", Tensor::tanh),
        ("erf", Tensor::erf),
    ];

    const QUESTIONS: [(&str, Method); 4] = [
        ("logical_not", Tensor::logical_not),
        ("isnan", Tensor::isnan),
        ("isinf", Tensor::isinf),
        ("isfinite", Tensor::isfinite),
    ];

    #[test]
    fn dtypes_follow_pytorch_and_shapes_stay() {
        for dtype in DType::ALL {
            let x = Tensor::zeros([2, 3], dtype);
            let check = |name: &str, method: Method, expected: DType| {
                let y = method(&x);
                assert_eq!(y.dtype().unwrap(), expected, "{name} of {dtype}");
                assert_eq!(y.shape().unwrap(), Shape::from([2, 3]), "{name} of {dtype}");
            };
            for (name, method) in SAME {
                match dtype {
                    DType::Bool => assert!(method(&x).validity().is_err(), "{name} of bool"),
                    _ => check(name, method, dtype),
                }
            }
            for (name, method) in FLOAT {
                check(name, method, if dtype.is_float() { dtype } else { DType::F32 });
            }
            for (name, method) in QUESTIONS {
                check(name, method, DType::Bool);
            }
            match dtype.is_float() {
                true => assert!(x.bitwise_not().validity().is_err()),
                false => check("bitwise_not", Tensor::bitwise_not, dtype),
            }
            for to in DType::ALL {
                assert_eq!(x.cast(to).dtype().unwrap(), to);
            }
        }
    }

    #[test]
    fn methods_record_the_operation_of_their_name() {
        let x = Tensor::from_slice(&[1.0f32], [1]);
        for (name, method) in SAME.iter().chain(&FLOAT).chain(&QUESTIONS[1..]) {
            assert_eq!(recorded(&method(&x)), ["input", name]);
        }
        assert_eq!(recorded(&x.logical_not()), ["input", "cast", "not"]);
    }

    #[test]
    fn integers_take_the_short_way() {
        let x = Tensor::from_slice(&[1i64], [1]);
        assert_eq!(recorded(&x.floor()), ["input"]);
        assert_eq!(recorded(&x.sqrt()), ["input", "cast", "sqrt"]);
        assert_eq!(recorded(&x.isnan()), ["input", "ne"]);
        assert_eq!(recorded(&x.isfinite()), ["input", "eq"]);
        assert_eq!(recorded(&x.bitwise_not()), ["input", "bitnot"]);
        assert_eq!(recorded(&x.cast(DType::I64)), ["input"]);
        assert_eq!(recorded(&Tensor::from_slice(&[true], [1]).bitwise_not()), ["input", "not"]);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let mask = Tensor::ones([2], DType::Bool);
        mistake!(
            mask.neg(),
            "neg: not defined for bool [2]; to invert a mask use .logical_not() or the operator !"
        );
        mistake!(
            mask.relu(),
            "relu: not defined for bool [2]; cast it first, such as with .cast(DType::I64)"
        );
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(x.bitwise_not(), "bitwise_not: needs an integer or bool tensor, got f32 [2, 3]");
    }
}
