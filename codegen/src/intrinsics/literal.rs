//! Literals.

use crate::{DType, Language, Scalar};

/// The text of a constant in a register. Numbers are exact: floats print as the shortest decimal that rounds to them,
/// and the 16-bit floats as the `F32` that they are. Every NaN prints as one quiet NaN.
///
/// A negative number prints as `-1.0f`, which stands as an operand of every function of this module.
///
/// ```
/// use lazuli_codegen::intrinsics::literal;
/// use lazuli_codegen::{DType, Language, Scalar};
/// assert_eq!(literal(Language::Cuda, Scalar::from_f64(DType::F32, 1e-5)), "1e-5f");
/// assert_eq!(literal(Language::C, Scalar::from_i64(DType::I64, 3)), "3LL");
/// ```
pub fn literal(language: Language, value: Scalar) -> String {
    match value.dtype() {
        DType::Bool => match (language, value.is_nonzero()) {
            (Language::Cuda, true) => "true",
            (Language::Cuda, false) => "false",
            (Language::C, true) => "1",
            (Language::C, false) => "0",
        }
        .to_string(),
        DType::U8 | DType::I8 | DType::I16 => value.as_i64().to_string(),
        DType::U32 => format!("{}u", value.as_i64()),
        // C has no negative literals: the least integer's absolute value is not an integer of its type.
        DType::I32 => match value.as_i64() as i32 {
            i32::MIN => "(-2147483647 - 1)".to_string(),
            number => number.to_string(),
        },
        DType::I64 => match value.as_i64() {
            i64::MIN => "(-9223372036854775807LL - 1)".to_string(),
            number => format!("{number}LL"),
        },
        // Exact: the value is an f32.
        DType::F16 | DType::BF16 | DType::F32 => float32(language, value.as_f64() as f32),
        DType::F64 => float64(language, value.as_f64()),
    }
}

fn float32(language: Language, value: f32) -> String {
    if value.is_finite() {
        return format!("{value:?}f");
    }
    match (language, value.is_nan(), value > 0.0) {
        (Language::Cuda, true, _) => "__int_as_float(0x7fc00000)",
        (Language::Cuda, false, true) => "__int_as_float(0x7f800000)",
        (Language::Cuda, false, false) => "-__int_as_float(0x7f800000)",
        (Language::C, true, _) => "__builtin_nanf(\"\")",
        (Language::C, false, true) => "__builtin_inff()",
        (Language::C, false, false) => "-__builtin_inff()",
    }
    .to_string()
}

fn float64(language: Language, value: f64) -> String {
    if value.is_finite() {
        return format!("{value:?}");
    }
    match (language, value.is_nan(), value > 0.0) {
        (Language::Cuda, true, _) => "__longlong_as_double(0x7ff8000000000000LL)",
        (Language::Cuda, false, true) => "__longlong_as_double(0x7ff0000000000000LL)",
        (Language::Cuda, false, false) => "-__longlong_as_double(0x7ff0000000000000LL)",
        (Language::C, true, _) => "__builtin_nan(\"\")",
        (Language::C, false, true) => "__builtin_inf()",
        (Language::C, false, false) => "-__builtin_inf()",
    }
    .to_string()
}
