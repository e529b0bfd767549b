//! Conversions between types, and between registers and memory.

use super::{Helpers, register_type, zero};
use crate::{DType, Language};

/// A raw element of `dtype`, as read from memory, as a value in a register.
pub fn from_memory(language: Language, dtype: DType, raw: &str, helpers: &mut Helpers) -> String {
    match dtype {
        DType::F16 | DType::BF16 => helpers.call(language, &format!("lz_{dtype}_to_f32"), &[raw]),
        _ => raw.to_string(),
    }
}

/// What adds the products of a tile of rows and a panel of columns to its sums: see `helpers/tiles.h`.
pub fn multiply_tile(dtype: DType, arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::C, &format!("lz_multiply_tile_{dtype}"), arguments)
}

/// The same of few rows; of BF16 as memory has them: see `helpers/few_rows.h`.
pub fn multiply_few(dtype: DType, lines: bool, arguments: &[&str], helpers: &mut Helpers) -> String {
    let name = if lines { "dots" } else { "rows" };
    helpers.call(Language::C, &format!("lz_multiply_{name}_{dtype}"), arguments)
}

/// The same where the rows are in memory, in BF16, and terms are multiplied in pairs: see `helpers/pairs.h`.
pub fn multiply_lines(arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::C, "lz_multiply_lines_bf16", arguments)
}

/// A call that makes pairs of terms of BF16 for the tiles' products: see `helpers/pairs.h`.
pub fn pair(along: bool, arguments: &[&str], helpers: &mut Helpers) -> String {
    let name = if along { "lz_pair_along_bf16" } else { "lz_pair_across_bf16" };
    helpers.call(Language::C, name, arguments)
}

/// A call that prefetches a stream some way ahead of a place: see `helpers/c.h`.
pub fn prefetch_stream(place: &str, helpers: &mut Helpers) -> String {
    helpers.call(Language::C, "lz_prefetch_stream", &[place])
}

/// A call that lays sixteen lines of numbers side by side, or as many as it says: see `helpers/tiles.h`.
pub fn turn(dtype: DType, counts: bool, arguments: &[&str], helpers: &mut Helpers) -> String {
    let name = if counts { "turn_some" } else { "turn" };
    helpers.call(Language::C, &format!("lz_{name}_{dtype}"), arguments)
}

/// A value in a register (of the compute type of `dtype`) as the raw element that memory holds.
pub fn to_memory(language: Language, dtype: DType, value: &str, helpers: &mut Helpers) -> String {
    match dtype {
        DType::F16 | DType::BF16 => helpers.call(language, &format!("lz_f32_to_{dtype}"), &[value]),
        _ => value.to_string(),
    }
}

/// A value of the compute type `from` as a value of `to`. As Rust's `as`: floats convert to integers rounding towards
/// zero and saturating, NaN gives 0, integers wrap. To `Bool` is `x != 0`. To `F16` or `BF16` rounds to that precision
/// and gives a float; from `F64` it rounds only once.
pub fn cast(language: Language, from: DType, to: DType, x: &str, helpers: &mut Helpers) -> String {
    let from = from.compute();
    match to {
        DType::F16 | DType::BF16 => {
            let single = match from {
                DType::F32 => x.to_string(),
                DType::F64 => helpers.call(language, "lz_f64_to_f32_odd", &[x]),
                DType::Bool
                | DType::U8
                | DType::I8
                | DType::I16
                | DType::I32
                | DType::U32
                | DType::I64
                | DType::F16
                | DType::BF16 => {
                    format!("(float){x}")
                }
            };
            helpers.call(language, &format!("lz_round_{to}"), &[&single])
        }
        _ if from == to => x.to_string(),
        DType::Bool => format!("{x} != {}", zero(from)),
        DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 if from.is_float() => {
            helpers.call(language, &format!("lz_{from}_to_{to}"), &[x])
        }
        DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::U32
        | DType::I64
        | DType::F32
        | DType::F64 => format!("({}){x}", register_type(language, to)),
    }
}
