//! Operations on one value.

use super::{Helpers, function, library, narrowed, needs_wrapping, one, zero};
use crate::{DType, Language, UnaryOp};

/// The text of `op` applied to `x`, a value of compute type `dtype` that the operation accepts. `IsNan`, `IsInf` and
/// `IsFinite` give a `Bool`, `Bitcast` a value of `dtype.bitcast()`, every other operation a value of `dtype`.
///
/// In CUDA C the transcendental functions are the language's own; in C they are helpers that vectorise, but for few.
pub fn unary(language: Language, op: UnaryOp, dtype: DType, x: &str, helpers: &mut Helpers) -> String {
    let dtype = dtype.compute();
    debug_assert!(op.accepts(dtype), "{op} of {dtype}");
    match op {
        UnaryOp::Neg => negate(language, dtype, x, helpers),
        UnaryOp::Abs if dtype.is_float() => helpers.call(language, &library("fabs", dtype), &[x]),
        UnaryOp::Abs if dtype.is_unsigned() => x.to_string(),
        UnaryOp::Abs => {
            let negated = negate(language, dtype, x, helpers);
            format!("{x} < 0 ? {negated} : {x}")
        }
        UnaryOp::Sign if dtype.is_float() => helpers.call(language, &format!("lz_sign_{dtype}"), &[x]),
        UnaryOp::Sign if dtype.is_unsigned() => {
            format!("{x} != {zero} ? {one} : {zero}", zero = zero(dtype), one = one(dtype))
        }
        UnaryOp::Sign => format!("({x} > 0) - ({x} < 0)"),
        UnaryOp::Square if needs_wrapping(language, dtype) => {
            helpers.call(language, &format!("lz_mul_{dtype}"), &[x, x])
        }
        UnaryOp::Square => narrowed(language, dtype, &format!("{x} * {x}")),
        UnaryOp::Reciprocal => format!("{} / {x}", one(dtype)),
        UnaryOp::Rsqrt => match language {
            Language::Cuda => helpers.call(language, &library("rsqrt", dtype), &[x]),
            Language::C => {
                let root = helpers.call(language, &library("sqrt", dtype), &[x]);
                format!("{} / {root}", one(dtype))
            }
        },
        UnaryOp::Relu if dtype.is_unsigned() => x.to_string(),
        UnaryOp::Relu => format!("{x} < {zero} ? {zero} : {x}", zero = zero(dtype)),
        UnaryOp::Not => format!("!{x}"),
        UnaryOp::BitNot => narrowed(language, dtype, &format!("~{x}")),
        UnaryOp::Bitcast => {
            let to = op.result(dtype);
            let name = match (language, to) {
                (Language::C, _) => format!("lz_as_{to}"),
                (Language::Cuda, DType::I32) => "__float_as_int".into(),
                (Language::Cuda, DType::F32) => "__int_as_float".into(),
                (Language::Cuda, DType::I64) => "__double_as_longlong".into(),
                (Language::Cuda, _) => "__longlong_as_double".into(),
            };
            helpers.call(language, &name, &[x])
        }
        UnaryOp::IsNan => format!("{x} != {x}"),
        _ => function(language, op.spelling(), op.name(), dtype, &[x], helpers),
    }
}

/// The CUDA C of an exponential of a float to more bits than a number of 16 has.
pub fn brief_exp(x: &str, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, "lz_brief_exp", &[x])
}

/// Zero times each of so many elements, an even number, from an address on, added up.
pub fn zero_times(dtype: DType, first: &str, count: u64, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_zero_times_{dtype}"), &[first, &format!("{count}u")])
}

pub(super) fn negate(language: Language, dtype: DType, x: &str, helpers: &mut Helpers) -> String {
    let negated = if language == Language::Cuda && dtype.is_int() {
        let wide = if dtype.size() < 4 { DType::I32 } else { dtype };
        helpers.call(language, &format!("lz_neg_{wide}"), &[x])
    } else if x.starts_with('-') {
        // A negative literal: `--x` would be a decrement.
        format!("-({x})")
    } else {
        format!("-{x}")
    };
    narrowed(language, dtype, &negated)
}
