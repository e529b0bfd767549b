//! How every scalar operation is spelled in CUDA C and in C, with the helper functions it needs.
//!
//! The functions here turn operand texts into the text of a result, and note in a [`Helpers`] what that text calls;
//! [`Helpers::text`] then gives the definitions a kernel must be preceded by, and no others. Nothing but the compiler
//! is needed to compile the result: no header is included in either language.
//!
//! Values in registers have a *compute* type ([`DType::compute`]): `F16` and `BF16` exist in memory alone, and a cast
//! to one of them rounds a float to its precision and leaves it a float.
//!
//! Operands are *primary* expressions (identifiers, literals, calls, parenthesised text); results may be any
//! expression, and [`parenthesise`] makes a primary one of them. An operand's text may be repeated in the result: a
//! large one is better named first.
//!
//! ```
//! use lazuli_codegen::intrinsics::{self, Helpers};
//! use lazuli_codegen::{BinaryOp, DType, Language, UnaryOp};
//!
//! let mut helpers = Helpers::new();
//! let sum = intrinsics::binary(Language::Cuda, BinaryOp::Add, DType::F32, "a", "b", &mut helpers);
//! let root = intrinsics::unary(Language::Cuda, UnaryOp::Sqrt, DType::F32, &sum, &mut helpers);
//! assert_eq!(root, "sqrtf(a + b)");
//! assert!(helpers.is_empty());
//! ```
//!
//! C is compiled with `-fwrapv`: signed integers wrap there. CUDA C has no such switch, and calls helpers that wrap.

mod binary;
mod bulk;
mod check;
mod convert;
mod copies;
mod groups;
mod helpers;
pub mod lanes;
mod lines;
mod literal;
mod primary;
mod random;
mod sort;
mod types;
mod unary;
mod warp;

pub use binary::{binary, mul_add, quotient, select};
pub use check::{CHECKS, checked_position, checked_positions};
pub use convert::{
    cast, from_memory, multiply_few, multiply_lines, multiply_tile, pair, prefetch_stream, to_memory, turn,
};
pub use copies::{await_copies, begin_copy, begin_tile, commit_copies, tiles};
pub use groups::{multiply_group, products};
pub use helpers::Helpers;
pub use lines::Lines;
pub use literal::literal;
pub(crate) use primary::call;
pub use primary::parenthesise;
pub use random::{
    philox_uniform_f32, philox_uniform_f64, philox4x32_10, random_uniform, random_uniform_after,
};
pub(crate) use sort::is_wide as sorts_wide_items;
pub use sort::{SortPart, sort, sort_part};
pub use types::{memory_type, register_type};
pub use unary::{brief_exp, unary, zero_times};
pub use warp::{lanes_before, load_matrices, multiply_matrices, votes_before};

use crate::ops::Spelling;
use crate::{DType, Language};

/// A call of the function that an operation is spelled as.
fn function(
    language: Language,
    spelling: Spelling,
    name: &str,
    dtype: DType,
    operands: &[&str],
    helpers: &mut Helpers,
) -> String {
    let helper = |name: &str| format!("lz_{name}_{dtype}");
    let name = match spelling {
        Spelling::Library(name) => library(name, dtype),
        Spelling::Vectorised if language == Language::C && helpers.exists(language, &helper(name)) => {
            helper(name)
        }
        Spelling::Vectorised | Spelling::Own => library(name, dtype),
        Spelling::Text(_) => helper(name),
        Spelling::Named(name) => helper(name),
    };
    helpers.call(language, &name, operands)
}

/// The C library's name of a function for floats of `dtype`, such as `sqrtf` or `sqrt`.
fn library(name: &str, dtype: DType) -> String {
    if dtype == DType::F64 { name.to_string() } else { format!("{name}f") }
}

/// Zero as a literal of `dtype`, as the operand of a comparison.
fn zero(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "0.0",
        DType::F16 | DType::BF16 | DType::F32 => "0.0f",
        DType::U32 => "0u",
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => "0",
    }
}

/// One as a literal of `dtype`.
fn one(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "1.0",
        DType::F16 | DType::BF16 | DType::F32 => "1.0f",
        DType::U32 => "1u",
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => "1",
    }
}

/// Whether an operator on signed integers of `dtype` must be spelled as a helper that wraps.
fn needs_wrapping(language: Language, dtype: DType) -> bool {
    language == Language::Cuda && matches!(dtype, DType::I32 | DType::I64)
}

/// The text of an integer expression in the type of `dtype`: C computes with narrower integers than `int` in `int`.
fn narrowed(language: Language, dtype: DType, text: &str) -> String {
    match dtype {
        DType::U8 | DType::I8 | DType::I16 => {
            format!("({}){}", register_type(language, dtype), parenthesise(text))
        }
        _ => text.to_string(),
    }
}
