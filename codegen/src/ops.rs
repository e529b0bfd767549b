//! The scalar operations that kernels are made of, and what each computes.
//!
//! The semantics stated here bind every implementation: the emitted CUDA C, the emitted C and the
//! reference interpreter. Each operation is declared in one place, here: its name, the dtypes that it is defined for,
//! its result, and how it is spelled ([`Spelling`]). What it computes in constants and in the interpreter stands in
//! matches without a default, so that an operation cannot be missing there.

use std::fmt;

use crate::DType;

/// How an operation is spelled in CUDA C and in C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spelling {
    /// By operators, or in a way of its own: see `intrinsics`.
    Own,
    /// A function of this name of CUDA's and of C's library; with an `f` behind it for `F32`.
    Library(&'static str),
    /// The library's function of the operation's name; in C for `F32` the helper `lz_NAME_f32`, and where C's library
    /// has none, for `F64` too.
    Vectorised,
    /// The helper `lz_NAME_DTYPE`, in both languages.
    Helper,
    /// The helper `lz_THIS_DTYPE`, in both languages.
    Named(&'static str),
}

macro_rules! scalar_operations {
    (
        $(#[$type_meta:meta])*
        $type:ident: $($(#[$meta:meta])* $op:ident = $name:literal, $accepts:ident -> $result:ident, $spelling:expr;)*
    ) => {
        $(#[$type_meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $type {
            $($(#[$meta])* $op,)*
        }

        impl $type {
            /// Every operation.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$op),*];

            /// The name in dumps and messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$op => $name,)*
                }
            }

            /// Whether the operation is defined for operands of `dtype`.
            pub const fn accepts(self, dtype: DType) -> bool {
                match self {
                    $($type::$op => scalar_operations!(@accepts $accepts dtype),)*
                }
            }

            /// The result's dtype for operands of `dtype`.
            pub const fn result(self, dtype: DType) -> DType {
                match self {
                    $($type::$op => scalar_operations!(@result $result dtype),)*
                }
            }

            pub(crate) const fn spelling(self) -> Spelling {
                use Spelling::*;
                match self {
                    $($type::$op => $spelling,)*
                }
            }
        }
    };
    (@accepts All $dtype:ident) => { true };
    (@accepts Numbers $dtype:ident) => { !matches!($dtype, DType::Bool) };
    (@accepts Floats $dtype:ident) => { $dtype.is_float() };
    (@accepts Bits $dtype:ident) => { !$dtype.is_float() };
    (@accepts Integers $dtype:ident) => { $dtype.is_int() };
    (@accepts Bool $dtype:ident) => { matches!($dtype, DType::Bool) };
    (@result Same $dtype:ident) => { $dtype };
    (@result Bool $dtype:ident) => { DType::Bool };
}

scalar_operations! {
    /// An operation on one value.
    ///
    /// ```
    /// use lazuli_codegen::{DType, UnaryOp};
    /// assert_eq!(UnaryOp::Relu.name(), "relu");
    /// assert!(UnaryOp::Relu.accepts(DType::I32) && !UnaryOp::Exp.accepts(DType::I32));
    /// assert_eq!(UnaryOp::IsNan.result(DType::F32), DType::Bool);
    /// ```
    UnaryOp:
    /// `-x`; wraps for integers.
    Neg = "neg", Numbers -> Same, Own;
    /// `|x|`; the least integer stays itself; NaN keeps being NaN.
    Abs = "abs", Numbers -> Same, Own;
    /// -1, 0 or 1; NaN for NaN, and 0 for ±0.
    Sign = "sign", Numbers -> Same, Own;
    /// `1 / x`.
    Reciprocal = "reciprocal", Floats -> Same, Own;
    /// `x * x`.
    Square = "square", Numbers -> Same, Own;
    /// Square root, correctly rounded.
    Sqrt = "sqrt", Floats -> Same, Library("sqrt");
    /// `1 / sqrt(x)`.
    Rsqrt = "rsqrt", Floats -> Same, Own;
    /// Cube root.
    Cbrt = "cbrt", Floats -> Same, Vectorised;
    /// e to the x.
    Exp = "exp", Floats -> Same, Vectorised;
    /// 2 to the x.
    Exp2 = "exp2", Floats -> Same, Vectorised;
    /// `exp(x) - 1`, exact near 0.
    Expm1 = "expm1", Floats -> Same, Vectorised;
    /// Natural logarithm.
    Log = "log", Floats -> Same, Vectorised;
    /// Logarithm to base 2.
    Log2 = "log2", Floats -> Same, Vectorised;
    /// Logarithm to base 10.
    Log10 = "log10", Floats -> Same, Vectorised;
    /// `log(1 + x)`, exact near 0.
    Log1p = "log1p", Floats -> Same, Vectorised;
    /// Sine of radians.
    Sin = "sin", Floats -> Same, Vectorised;
    /// Cosine of radians.
    Cos = "cos", Floats -> Same, Vectorised;
    /// Tangent of radians.
    Tan = "tan", Floats -> Same, Vectorised;
    /// Arc sine, in radians.
    Asin = "asin", Floats -> Same, Vectorised;
    /// Arc cosine, in radians.
    Acos = "acos", Floats -> Same, Vectorised;
    /// Arc tangent, in radians.
    Atan = "atan", Floats -> Same, Vectorised;
    /// Hyperbolic sine.
    Sinh = "sinh", Floats -> Same, Vectorised;
    /// Hyperbolic cosine.
    Cosh = "cosh", Floats -> Same, Vectorised;
    /// Hyperbolic tangent.
    Tanh = "tanh", Floats -> Same, Vectorised;
    /// Inverse of the hyperbolic sine.
    Asinh = "asinh", Floats -> Same, Vectorised;
    /// Inverse of the hyperbolic cosine.
    Acosh = "acosh", Floats -> Same, Vectorised;
    /// Inverse of the hyperbolic tangent.
    Atanh = "atanh", Floats -> Same, Vectorised;
    /// The error function.
    Erf = "erf", Floats -> Same, Vectorised;
    /// `1 - erf(x)`, exact for large x.
    Erfc = "erfc", Floats -> Same, Vectorised;
    /// Inverse of the error function: ±infinity at ±1, NaN beyond.
    Erfinv = "erfinv", Floats -> Same, Vectorised;
    /// Logarithm of the absolute value of the gamma function; infinity at its poles.
    Lgamma = "lgamma", Floats -> Same, Library("lgamma");
    /// Derivative of the logarithm of the gamma function: infinity of the other sign at ±0, NaN at negative integers.
    Digamma = "digamma", Floats -> Same, Helper;
    /// Round towards minus infinity.
    Floor = "floor", Floats -> Same, Library("floor");
    /// Round towards plus infinity.
    Ceil = "ceil", Floats -> Same, Library("ceil");
    /// Round half to even.
    Round = "round", Floats -> Same, Library("rint");
    /// Round towards zero.
    Trunc = "trunc", Floats -> Same, Library("trunc");
    /// `x < 0 ? 0 : x`: NaN stays NaN and -0 stays -0.
    Relu = "relu", Numbers -> Same, Own;
    /// Logical not of a `Bool`.
    Not = "not", Bool -> Same, Own;
    /// Bitwise complement of an integer.
    BitNot = "bitnot", Integers -> Same, Own;
    /// `Bool`: whether x is NaN.
    IsNan = "isnan", Floats -> Bool, Own;
    /// `Bool`: whether x is ±infinity.
    IsInf = "isinf", Floats -> Bool, Named("is_inf");
    /// `Bool`: whether x is neither NaN nor infinite.
    IsFinite = "isfinite", Floats -> Bool, Named("is_finite");
}

scalar_operations! {
    /// An operation on two values of the same type.
    ///
    /// ```
    /// use lazuli_codegen::{BinaryOp, DType};
    /// assert_eq!(BinaryOp::FloorDiv.name(), "floor_divide");
    /// assert_eq!(BinaryOp::Lt.result(DType::F32), DType::Bool);
    /// ```
    BinaryOp:
    /// Sum; wraps for integers; logical or for `Bool`.
    Add = "add", All -> Same, Own;
    /// Difference; wraps for integers.
    Sub = "sub", Numbers -> Same, Own;
    /// Product; wraps for integers; logical and for `Bool`.
    Mul = "mul", All -> Same, Own;
    /// IEEE quotient; floats only.
    Div = "div", Floats -> Same, Own;
    /// Quotient rounded towards minus infinity, as PyTorch's `//`. Integer division by zero gives 0;
    /// the least integer divided by -1 wraps to itself. For floats as PyTorch's `floor_divide`
    /// (`(a - fmod(a, b)) / b` snapped to the nearest integer below; `x // 0` is `x / 0`).
    FloorDiv = "floor_divide", Numbers -> Same, Named("floor_div");
    /// Remainder with the divisor's sign, as PyTorch's `%`. An integer remainder by zero is 0.
    Rem = "remainder", Numbers -> Same, Named("rem");
    /// Remainder with the dividend's sign, as C's `fmod`. An integer remainder by zero is 0.
    Fmod = "fmod", Numbers -> Same, Own;
    /// `a` to the power `b`. Integers: repeated wrapping multiplication; a negative exponent gives
    /// 0, except for bases 1 (1) and -1 (±1).
    Pow = "pow", Numbers -> Same, Vectorised;
    /// The larger; NaN if either is NaN.
    Maximum = "maximum", All -> Same, Own;
    /// The smaller; NaN if either is NaN.
    Minimum = "minimum", All -> Same, Own;
    /// The larger; the other if one is NaN.
    Fmax = "fmax", All -> Same, Own;
    /// The smaller; the other if one is NaN.
    Fmin = "fmin", All -> Same, Own;
    /// Angle of the point (`b`, `a`), in radians.
    Atan2 = "atan2", Floats -> Same, Vectorised;
    /// `sqrt(a² + b²)` without overflow on the way; infinite if either is, even beside NaN.
    Hypot = "hypot", Floats -> Same, Vectorised;
    /// The magnitude of `a` with the sign of `b`.
    Copysign = "copysign", Floats -> Same, Library("copysign");
    /// Bitwise and; logical for `Bool`.
    And = "and", Bits -> Same, Own;
    /// Bitwise or; logical for `Bool`.
    Or = "or", Bits -> Same, Own;
    /// Bitwise exclusive or; logical for `Bool`.
    Xor = "xor", Bits -> Same, Own;
    /// `a` shifted left by `b` bits; 0 where `b` is negative or not less than the width.
    Shl = "shl", Integers -> Same, Own;
    /// `a` shifted right by `b` bits, copies of the sign coming in; where `b` is negative or not less than the
    /// width, nothing but these: -1 or 0.
    Shr = "shr", Integers -> Same, Own;
    /// `a == b`; false if either is NaN.
    Eq = "eq", All -> Bool, Own;
    /// `a != b`; true if either is NaN.
    Ne = "ne", All -> Bool, Own;
    /// `a < b`.
    Lt = "lt", All -> Bool, Own;
    /// `a <= b`.
    Le = "le", All -> Bool, Own;
    /// `a > b`.
    Gt = "gt", All -> Bool, Own;
    /// `a >= b`.
    Ge = "ge", All -> Bool, Own;
}

impl BinaryOp {
    /// Whether the result is a `Bool` comparison.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }

    /// Whether swapping the operands never changes the result (NaN payloads aside).
    pub const fn is_commutative(self) -> bool {
        matches!(
            self,
            BinaryOp::Add
                | BinaryOp::Mul
                | BinaryOp::Maximum
                | BinaryOp::Minimum
                | BinaryOp::Fmax
                | BinaryOp::Fmin
                | BinaryOp::Hypot
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Eq
                | BinaryOp::Ne
        )
    }
}

/// How the values along reduced axes are combined.
///
/// ```
/// use lazuli_codegen::ReduceOp;
/// assert_eq!(ReduceOp::Sum.name(), "sum");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ReduceOp {
    /// Sum; 0 for no values.
    Sum,
    /// Product; 1 for no values.
    Prod,
    /// The largest value; NaN if any is NaN; logical or for `Bool`.
    Max,
    /// The smallest value; NaN if any is NaN; logical and for `Bool`.
    Min,
    /// The sum of squared deviations from the mean, by Welford's method; floats only; 0 for no values.
    /// B. P. Welford, Technometrics 4(3), 1962; merged as in Chan, Golub, LeVeque, 1979.
    SquaredDeviations,
    /// The sum of `exp(x - max)` in one walk, where max is the largest value, known at its end: what was summed up to a
    /// new maximum is scaled to it. Floats only; NaN if the maximum is NaN or infinite.
    /// M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
    SumExp,
    /// The position of the largest value, an `I64`: that of the first NaN, or else of the first of equal ones.
    ArgMax,
    /// The position of the smallest value, an `I64`: that of the first NaN, or else of the first of equal ones.
    ArgMin,
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: [ReduceOp; 8] = [
        ReduceOp::Sum,
        ReduceOp::Prod,
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::SquaredDeviations,
        ReduceOp::SumExp,
        ReduceOp::ArgMax,
        ReduceOp::ArgMin,
    ];

    /// The name in dumps and messages.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::SquaredDeviations => "squared_deviations",
            ReduceOp::SumExp => "sum_exp",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::ArgMin => "argmin",
        }
    }

    /// Whether the reduction is defined for operands of `dtype`. `Sum` and `Prod` of `Bool` and
    /// integers are recorded as a cast to `I64` first.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self {
            ReduceOp::Sum | ReduceOp::Prod => dtype.is_float() || matches!(dtype, DType::I64),
            ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin => true,
            ReduceOp::SquaredDeviations | ReduceOp::SumExp => dtype.is_float(),
        }
    }

    /// Whether a partial result is one number of the operands' kind, which takes another value by one operation.
    pub const fn is_plain(self) -> bool {
        match self {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => true,
            ReduceOp::SquaredDeviations | ReduceOp::SumExp | ReduceOp::ArgMax | ReduceOp::ArgMin => false,
        }
    }

    /// Whether the result is the position of a value.
    pub const fn is_position(self) -> bool {
        matches!(self, ReduceOp::ArgMax | ReduceOp::ArgMin)
    }

    /// The result's dtype for operands of `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        if self.is_position() { DType::I64 } else { dtype }
    }

    /// Whether there is no result for no values.
    pub const fn needs_values(self) -> bool {
        match self {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::SquaredDeviations => false,
            ReduceOp::Max | ReduceOp::Min | ReduceOp::SumExp | ReduceOp::ArgMax | ReduceOp::ArgMin => true,
        }
    }
}

macro_rules! display_name {
    ($($ty:ty),*) => {$(
        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}
display_name!(UnaryOp, BinaryOp, ReduceOp);
