//! What operations cost, in simple ones: an addition is 1. They only rank choices.

use crate::{BinaryOp, UnaryOp};

/// Of one evaluation.
///
/// ```
/// use lazuli_codegen::{UnaryOp, cost};
/// assert!(cost::unary(UnaryOp::Erf) > cost::unary(UnaryOp::Neg));
/// ```
pub const fn unary(op: UnaryOp) -> f64 {
    match op {
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Sign
        | UnaryOp::Square
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::Trunc
        | UnaryOp::Relu
        | UnaryOp::Not
        | UnaryOp::BitNot
        | UnaryOp::IsNan
        | UnaryOp::IsInf
        | UnaryOp::IsFinite => 1.0,
        UnaryOp::Reciprocal | UnaryOp::Sqrt | UnaryOp::Rsqrt => 8.0,
        UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Log10 => 15.0,
        UnaryOp::Expm1 | UnaryOp::Log1p | UnaryOp::Tanh | UnaryOp::Erf => 25.0,
        UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tan => 30.0,
        UnaryOp::Asin
        | UnaryOp::Acos
        | UnaryOp::Atan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Cbrt
        | UnaryOp::Erfc
        | UnaryOp::Erfinv => 40.0,
        UnaryOp::Lgamma | UnaryOp::Digamma => 80.0,
    }
}

/// Of one evaluation.
///
/// ```
/// use lazuli_codegen::{BinaryOp, cost};
/// assert!(cost::binary(BinaryOp::Pow) > cost::binary(BinaryOp::Div));
/// ```
pub const fn binary(op: BinaryOp) -> f64 {
    match op {
        BinaryOp::Div => 8.0,
        BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::Fmod => 15.0,
        BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot => 40.0,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Maximum
        | BinaryOp::Minimum
        | BinaryOp::Fmax
        | BinaryOp::Fmin
        | BinaryOp::Copysign
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => 1.0,
    }
}

/// What a random number costs.
pub const RANDOM: f64 = 40.0;

/// What is worth a register, that it need not be computed again.
pub const WORTH_KEEPING: f64 = 8.0;
