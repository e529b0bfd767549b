//! Operations on two values, and selection between two.

use super::{Helpers, library, needs_wrapping};
use crate::{BinaryOp, DType, Language};

/// The text of `op` applied to `a` and `b`, values of compute type `dtype` that the operation accepts. Comparisons
/// give a `Bool`, every other operation a value of `dtype`.
pub fn binary(
    language: Language,
    op: BinaryOp,
    dtype: DType,
    a: &str,
    b: &str,
    helpers: &mut Helpers,
) -> String {
    let dtype = dtype.compute();
    debug_assert!(op.accepts(dtype), "{op} of {dtype}");
    match op {
        BinaryOp::Add => arithmetic(language, "add", "+", dtype, a, b, helpers),
        BinaryOp::Sub => arithmetic(language, "sub", "-", dtype, a, b, helpers),
        BinaryOp::Mul => arithmetic(language, "mul", "*", dtype, a, b, helpers),
        BinaryOp::Div => format!("{a} / {b}"),
        BinaryOp::FloorDiv => helpers.call(language, &format!("lz_floor_div_{dtype}"), &[a, b]),
        BinaryOp::Rem => helpers.call(language, &format!("lz_rem_{dtype}"), &[a, b]),
        BinaryOp::Pow if dtype.is_int() => helpers.call(language, &format!("lz_pow_{dtype}"), &[a, b]),
        BinaryOp::Pow | BinaryOp::Atan2 => {
            let function = match (language, dtype) {
                (Language::C, DType::F32) => format!("lz_{op}_f32"),
                _ => library(op.name(), dtype),
            };
            helpers.call(language, &function, &[a, b])
        }
        BinaryOp::Maximum | BinaryOp::Minimum if dtype.is_float() => {
            helpers.call(language, &format!("lz_{op}_{dtype}"), &[a, b])
        }
        BinaryOp::Maximum if dtype == DType::Bool => format!("{a} | {b}"),
        BinaryOp::Minimum if dtype == DType::Bool => format!("{a} & {b}"),
        BinaryOp::Maximum => format!("{a} > {b} ? {a} : {b}"),
        BinaryOp::Minimum => format!("{a} < {b} ? {a} : {b}"),
        BinaryOp::And => format!("{a} & {b}"),
        BinaryOp::Or => format!("{a} | {b}"),
        BinaryOp::Xor => format!("{a} ^ {b}"),
        BinaryOp::Eq => format!("{a} == {b}"),
        BinaryOp::Ne => format!("{a} != {b}"),
        BinaryOp::Lt => format!("{a} < {b}"),
        BinaryOp::Le => format!("{a} <= {b}"),
        BinaryOp::Gt => format!("{a} > {b}"),
        BinaryOp::Ge => format!("{a} >= {b}"),
    }
}

/// `a` where `condition` (a `Bool`) holds, `b` elsewhere.
pub fn select(_language: Language, condition: &str, a: &str, b: &str) -> String {
    format!("{condition} ? {a} : {b}")
}

/// A sum, difference or product: integers wrap, and of `Bool` the sum is "or" and the product "and".
fn arithmetic(
    language: Language,
    name: &str,
    operator: &str,
    dtype: DType,
    a: &str,
    b: &str,
    helpers: &mut Helpers,
) -> String {
    if dtype == DType::Bool {
        let operator = if operator == "*" { "&" } else { "|" };
        format!("{a} {operator} {b}")
    } else if dtype == DType::U8 {
        format!("(unsigned char)({a} {operator} {b})")
    } else if needs_wrapping(language, dtype) {
        helpers.call(language, &format!("lz_{name}_{dtype}"), &[a, b])
    } else {
        format!("{a} {operator} {b}")
    }
}
