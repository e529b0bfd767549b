//! Operations on two values, and selection between two.

use super::unary::negate;
use super::{Helpers, function, library, narrowed, needs_wrapping, register_type, zero};
use crate::{BinaryOp, DType, Language};

/// The text of `a * b + c` of values of compute type `dtype`: of floats rounded once.
pub fn mul_add(language: Language, dtype: DType, [a, b, c]: [&str; 3], helpers: &mut Helpers) -> String {
    let dtype = dtype.compute();
    match dtype.is_float() {
        true => helpers.call(language, &library("fma", dtype), &[a, b, c]),
        false => {
            let product = binary(language, BinaryOp::Mul, dtype, a, b, helpers);
            binary(language, BinaryOp::Add, dtype, &super::parenthesise(&product), c, helpers)
        }
    }
}

/// The CUDA C of `a / b` of values of compute type `dtype`, where many are divided by the same `b`.
pub fn quotient(dtype: DType, a: &str, b: &str, helpers: &mut Helpers) -> String {
    match dtype.compute() {
        DType::F32 => helpers.call(Language::Cuda, "lz_quotient_f32", &[a, b]),
        dtype => binary(Language::Cuda, BinaryOp::Div, dtype, a, b, helpers),
    }
}

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
        // What a compiler would make a negation, which `negate` writes as one that is not lost.
        BinaryOp::Sub if dtype.is_int() && a == zero(dtype) => negate(language, dtype, b, helpers),
        BinaryOp::Mul if dtype.is_int() && b == "-1" => negate(language, dtype, a, helpers),
        BinaryOp::Mul if dtype.is_int() && a == "-1" => negate(language, dtype, b, helpers),
        BinaryOp::Add => arithmetic(language, "add", "+", dtype, a, b, helpers),
        BinaryOp::Sub => arithmetic(language, "sub", "-", dtype, a, b, helpers),
        BinaryOp::Mul => arithmetic(language, "mul", "*", dtype, a, b, helpers),
        BinaryOp::Div => format!("{a} / {b}"),
        BinaryOp::Pow if dtype.is_int() => helpers.call(language, &format!("lz_pow_{dtype}"), &[a, b]),
        BinaryOp::Fmod if dtype.is_float() => helpers.call(language, &library("fmod", dtype), &[a, b]),
        // Without negative numbers the remainders are one.
        BinaryOp::Fmod if dtype.is_unsigned() => helpers.call(language, &format!("lz_rem_{dtype}"), &[a, b]),
        BinaryOp::Fmod => helpers.call(language, &format!("lz_fmod_{dtype}"), &[a, b]),
        BinaryOp::Fmax | BinaryOp::Fmin if dtype.is_float() => {
            let name = match language {
                // CUDA's own order zeros by their signs, and prefer a number to NaN; C's may not do the former.
                Language::Cuda => library(op.name(), dtype),
                Language::C => format!("lz_{op}_{dtype}"),
            };
            helpers.call(language, &name, &[a, b])
        }
        BinaryOp::Fmax => binary(language, BinaryOp::Maximum, dtype, a, b, helpers),
        BinaryOp::Fmin => binary(language, BinaryOp::Minimum, dtype, a, b, helpers),
        BinaryOp::Shl | BinaryOp::Shr => shift(language, op, dtype, a, b),
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
        _ => function(language, op.spelling(), op.name(), dtype, &[a, b], helpers),
    }
}

/// `a` where `condition` (a `Bool`) holds, `b` elsewhere.
pub fn select(_language: Language, condition: &str, a: &str, b: &str) -> String {
    format!("{condition} ? {a} : {b}")
}

/// A shift by any number of bits; the hardware's own is only asked for those that the type has.
fn shift(language: Language, op: BinaryOp, dtype: DType, a: &str, b: &str) -> String {
    let last = dtype.size() * 8 - 1;
    let fits = match dtype {
        DType::U8 => format!("{b} <= {last}"),
        DType::U32 => format!("{b} <= {last}u"),
        _ => format!("{b} >= 0 && {b} <= {last}"),
    };
    let (amount, unsigned) = match dtype {
        DType::I64 => (format!("((int){b} & {last})"), "unsigned long long"),
        _ => (format!("({b} & {last})"), "unsigned int"),
    };
    match op {
        BinaryOp::Shl => {
            let ty = register_type(language, dtype);
            format!("{fits} ? ({ty})(({unsigned}){a} << {amount}) : {}", zero(dtype))
        }
        _ if dtype.is_unsigned() => format!("{fits} ? {a} >> {amount} : {}", zero(dtype)),
        _ => format!("{a} >> ({fits} ? {amount} : {last})"),
    }
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
    } else if needs_wrapping(language, dtype) {
        helpers.call(language, &format!("lz_{name}_{dtype}"), &[a, b])
    } else {
        narrowed(language, dtype, &format!("{a} {operator} {b}"))
    }
}
