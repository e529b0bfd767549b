//! The scalar operations that kernels are made of, and what each computes.
//!
//! The semantics stated here bind every implementation: the emitted CUDA C, the emitted C and the
//! reference interpreter. Comparison results are `Bool`; every other result has the operands' type.

use std::fmt;

use crate::DType;

/// An operation on one value.
///
/// ```
/// use lazuli_codegen::{DType, UnaryOp};
/// assert_eq!(UnaryOp::Relu.name(), "relu");
/// assert!(UnaryOp::Relu.accepts(DType::I32) && !UnaryOp::Exp.accepts(DType::I32));
/// assert_eq!(UnaryOp::IsNan.result(DType::F32), DType::Bool);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnaryOp {
    /// `-x`; wraps for integers.
    Neg,
    /// `|x|`; the least integer stays itself; NaN keeps being NaN.
    Abs,
    /// -1, 0 or 1; NaN for NaN, and 0 for ±0.
    Sign,
    /// `1 / x`.
    Reciprocal,
    /// `x * x`.
    Square,
    /// Square root, correctly rounded.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// e to the x.
    Exp,
    /// 2 to the x.
    Exp2,
    /// `exp(x) - 1`, exact near 0.
    Expm1,
    /// Natural logarithm.
    Log,
    /// Logarithm to base 2.
    Log2,
    /// Logarithm to base 10.
    Log10,
    /// `log(1 + x)`, exact near 0.
    Log1p,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
    /// Tangent of radians.
    Tan,
    /// Hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
    /// Round towards minus infinity.
    Floor,
    /// Round towards plus infinity.
    Ceil,
    /// Round half to even.
    Round,
    /// Round towards zero.
    Trunc,
    /// `x < 0 ? 0 : x`: NaN stays NaN and -0 stays -0.
    Relu,
    /// Logical not of a `Bool`.
    Not,
    /// Bitwise complement of an integer.
    BitNot,
    /// `Bool`: whether x is NaN.
    IsNan,
    /// `Bool`: whether x is ±infinity.
    IsInf,
    /// `Bool`: whether x is neither NaN nor infinite.
    IsFinite,
}

/// An operation on two values of the same type.
///
/// ```
/// use lazuli_codegen::{BinaryOp, DType};
/// assert_eq!(BinaryOp::FloorDiv.name(), "floor_divide");
/// assert_eq!(BinaryOp::Lt.result(DType::F32), DType::Bool);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BinaryOp {
    /// Sum; wraps for integers; logical or for `Bool`.
    Add,
    /// Difference; wraps for integers.
    Sub,
    /// Product; wraps for integers; logical and for `Bool`.
    Mul,
    /// IEEE quotient; floats only.
    Div,
    /// Quotient rounded towards minus infinity, as PyTorch's `//`. Integer division by zero gives 0;
    /// the least integer divided by -1 wraps to itself. For floats as PyTorch's `floor_divide`
    /// (`(a - fmod(a, b)) / b` snapped to the nearest integer below; `x // 0` is `x / 0`).
    FloorDiv,
    /// Remainder with the divisor's sign, as PyTorch's `%`. An integer remainder by zero is 0.
    Rem,
    /// `a` to the power `b`. Integers: repeated wrapping multiplication; a negative exponent gives
    /// 0, except for bases 1 (1) and -1 (±1).
    Pow,
    /// The larger; NaN if either is NaN.
    Maximum,
    /// The smaller; NaN if either is NaN.
    Minimum,
    /// Angle of the point (`b`, `a`), in radians.
    Atan2,
    /// Bitwise and; logical for `Bool`.
    And,
    /// Bitwise or; logical for `Bool`.
    Or,
    /// Bitwise exclusive or; logical for `Bool`.
    Xor,
    /// `a == b`; false if either is NaN.
    Eq,
    /// `a != b`; true if either is NaN.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
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
}

impl UnaryOp {
    /// Every unary operation.
    pub const ALL: [UnaryOp; 29] = [
        UnaryOp::Neg,
        UnaryOp::Abs,
        UnaryOp::Sign,
        UnaryOp::Reciprocal,
        UnaryOp::Square,
        UnaryOp::Sqrt,
        UnaryOp::Rsqrt,
        UnaryOp::Exp,
        UnaryOp::Exp2,
        UnaryOp::Expm1,
        UnaryOp::Log,
        UnaryOp::Log2,
        UnaryOp::Log10,
        UnaryOp::Log1p,
        UnaryOp::Sin,
        UnaryOp::Cos,
        UnaryOp::Tan,
        UnaryOp::Tanh,
        UnaryOp::Erf,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::Round,
        UnaryOp::Trunc,
        UnaryOp::Relu,
        UnaryOp::Not,
        UnaryOp::BitNot,
        UnaryOp::IsNan,
        UnaryOp::IsInf,
        UnaryOp::IsFinite,
    ];

    /// The name in dumps and messages.
    pub const fn name(self) -> &'static str {
        match self {
            UnaryOp::Neg => "neg",
            UnaryOp::Abs => "abs",
            UnaryOp::Sign => "sign",
            UnaryOp::Reciprocal => "reciprocal",
            UnaryOp::Square => "square",
            UnaryOp::Sqrt => "sqrt",
            UnaryOp::Rsqrt => "rsqrt",
            UnaryOp::Exp => "exp",
            UnaryOp::Exp2 => "exp2",
            UnaryOp::Expm1 => "expm1",
            UnaryOp::Log => "log",
            UnaryOp::Log2 => "log2",
            UnaryOp::Log10 => "log10",
            UnaryOp::Log1p => "log1p",
            UnaryOp::Sin => "sin",
            UnaryOp::Cos => "cos",
            UnaryOp::Tan => "tan",
            UnaryOp::Tanh => "tanh",
            UnaryOp::Erf => "erf",
            UnaryOp::Floor => "floor",
            UnaryOp::Ceil => "ceil",
            UnaryOp::Round => "round",
            UnaryOp::Trunc => "trunc",
            UnaryOp::Relu => "relu",
            UnaryOp::Not => "not",
            UnaryOp::BitNot => "bitnot",
            UnaryOp::IsNan => "isnan",
            UnaryOp::IsInf => "isinf",
            UnaryOp::IsFinite => "isfinite",
        }
    }

    /// Whether the operation is defined for operands of `dtype`.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Square | UnaryOp::Relu => {
                !matches!(dtype, DType::Bool)
            }
            UnaryOp::Not => matches!(dtype, DType::Bool),
            UnaryOp::BitNot => dtype.is_int(),
            UnaryOp::Reciprocal
            | UnaryOp::Sqrt
            | UnaryOp::Rsqrt
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Expm1
            | UnaryOp::Log
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Log1p
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Tanh
            | UnaryOp::Erf
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Round
            | UnaryOp::Trunc
            | UnaryOp::IsNan
            | UnaryOp::IsInf
            | UnaryOp::IsFinite => dtype.is_float(),
        }
    }

    /// The result's dtype for operands of `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        match self {
            UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite => DType::Bool,
            _ => dtype,
        }
    }
}

impl BinaryOp {
    /// Every binary operation.
    pub const ALL: [BinaryOp; 19] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::FloorDiv,
        BinaryOp::Rem,
        BinaryOp::Pow,
        BinaryOp::Maximum,
        BinaryOp::Minimum,
        BinaryOp::Atan2,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
    ];

    /// The name in dumps and messages.
    pub const fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::FloorDiv => "floor_divide",
            BinaryOp::Rem => "remainder",
            BinaryOp::Pow => "pow",
            BinaryOp::Maximum => "maximum",
            BinaryOp::Minimum => "minimum",
            BinaryOp::Atan2 => "atan2",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Xor => "xor",
            BinaryOp::Eq => "eq",
            BinaryOp::Ne => "ne",
            BinaryOp::Lt => "lt",
            BinaryOp::Le => "le",
            BinaryOp::Gt => "gt",
            BinaryOp::Ge => "ge",
        }
    }

    /// Whether the operation is defined for operands of `dtype`.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self {
            BinaryOp::Add | BinaryOp::Mul | BinaryOp::Maximum | BinaryOp::Minimum => true,
            BinaryOp::Sub | BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::Pow => {
                !matches!(dtype, DType::Bool)
            }
            BinaryOp::Div | BinaryOp::Atan2 => dtype.is_float(),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !dtype.is_float(),
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => true,
        }
    }

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
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Eq
                | BinaryOp::Ne
        )
    }

    /// The result's dtype for operands of `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        if self.is_comparison() { DType::Bool } else { dtype }
    }
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: [ReduceOp; 5] =
        [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::SquaredDeviations];

    /// The name in dumps and messages.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::SquaredDeviations => "squared_deviations",
        }
    }

    /// Whether the reduction is defined for operands of `dtype`. `Sum` and `Prod` of `Bool` and
    /// integers are recorded as a cast to `I64` first.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self {
            ReduceOp::Sum | ReduceOp::Prod => dtype.is_float() || matches!(dtype, DType::I64),
            ReduceOp::Max | ReduceOp::Min => true,
            ReduceOp::SquaredDeviations => dtype.is_float(),
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
