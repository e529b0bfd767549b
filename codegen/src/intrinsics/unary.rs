//! Operations on one value.

use super::{Helpers, library, needs_wrapping, one, zero};
use crate::{DType, Language, UnaryOp};

/// The text of `op` applied to `x`, a value of compute type `dtype` that the operation accepts. `IsNan`, `IsInf` and
/// `IsFinite` give a `Bool`, every other operation a value of `dtype`.
///
/// In CUDA C the transcendental functions are the language's own; in C those of `F64` are the C library's, and those
/// of `F32` are helpers that vectorise.
pub fn unary(language: Language, op: UnaryOp, dtype: DType, x: &str, helpers: &mut Helpers) -> String {
    let dtype = dtype.compute();
    debug_assert!(op.accepts(dtype), "{op} of {dtype}");
    match op {
        UnaryOp::Neg => negate(language, dtype, x, helpers),
        UnaryOp::Abs if dtype.is_float() => helpers.call(language, &library("fabs", dtype), &[x]),
        UnaryOp::Abs if dtype == DType::U8 => x.to_string(),
        UnaryOp::Abs => {
            let negated = negate(language, dtype, x, helpers);
            format!("{x} < 0 ? {negated} : {x}")
        }
        UnaryOp::Sign if dtype.is_float() => helpers.call(language, &format!("lz_sign_{dtype}"), &[x]),
        UnaryOp::Sign if dtype == DType::U8 => format!("{x} != 0 ? 1 : 0"),
        UnaryOp::Sign => format!("({x} > 0) - ({x} < 0)"),
        UnaryOp::Square if dtype == DType::U8 => format!("(unsigned char)({x} * {x})"),
        UnaryOp::Square if needs_wrapping(language, dtype) => {
            helpers.call(language, &format!("lz_mul_{dtype}"), &[x, x])
        }
        UnaryOp::Square => format!("{x} * {x}"),
        UnaryOp::Reciprocal => format!("{} / {x}", one(dtype)),
        UnaryOp::Rsqrt => match language {
            Language::Cuda => helpers.call(language, &library("rsqrt", dtype), &[x]),
            Language::C => {
                let root = helpers.call(language, &library("sqrt", dtype), &[x]);
                format!("{} / {root}", one(dtype))
            }
        },
        UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc => {
            helpers.call(language, &library(op.name(), dtype), &[x])
        }
        UnaryOp::Round => helpers.call(language, &library("rint", dtype), &[x]),
        UnaryOp::Exp
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
        | UnaryOp::Erf => {
            let function = match (language, dtype) {
                (Language::C, DType::F32) => format!("lz_{op}_f32"),
                _ => library(op.name(), dtype),
            };
            helpers.call(language, &function, &[x])
        }
        UnaryOp::Relu if dtype == DType::U8 => x.to_string(),
        UnaryOp::Relu => format!("{x} < {zero} ? {zero} : {x}", zero = zero(dtype)),
        UnaryOp::Not => format!("!{x}"),
        UnaryOp::BitNot if dtype == DType::U8 => format!("(unsigned char)~{x}"),
        UnaryOp::BitNot => format!("~{x}"),
        UnaryOp::IsNan => format!("{x} != {x}"),
        UnaryOp::IsInf => helpers.call(language, &format!("lz_is_inf_{dtype}"), &[x]),
        UnaryOp::IsFinite => helpers.call(language, &format!("lz_is_finite_{dtype}"), &[x]),
    }
}

fn negate(language: Language, dtype: DType, x: &str, helpers: &mut Helpers) -> String {
    if dtype == DType::U8 {
        format!("(unsigned char)-{x}")
    } else if needs_wrapping(language, dtype) {
        helpers.call(language, &format!("lz_neg_{dtype}"), &[x])
    } else if x.starts_with('-') {
        // A negative literal: `--x` would be a decrement.
        format!("-({x})")
    } else {
        format!("-{x}")
    }
}
