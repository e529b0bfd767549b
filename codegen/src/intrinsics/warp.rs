//! What the lanes of a warp find out about each other.

use super::Helpers;
use crate::{DType, Language};

/// The text of how many lanes before this one have the same key, a 32-bit integer.
pub fn lanes_before(language: Language, key: &str, helpers: &mut Helpers) -> String {
    helpers.call(language, "lz_lanes_before", &[key])
}

/// The text of how many lanes before this one have a condition that holds.
pub fn votes_before(language: Language, condition: &str, helpers: &mut Helpers) -> String {
    helpers.call(language, "lz_votes_before", &[condition])
}

/// A call that gives each thread of a warp its part of four 8 × 8 matrices in shared memory, whose rows become columns on
/// the way if that is wanted (CUDA).
pub fn load_matrices(parts: &str, row: &str, turns: bool, helpers: &mut Helpers) -> String {
    let name = if turns { "lz_load_matrices_turned" } else { "lz_load_matrices" };
    helpers.call(Language::Cuda, name, &[parts, row])
}

/// A call that adds the product of two small matrices of a warp to its sums (CUDA).
pub fn multiply_matrices(dtype: DType, arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_multiply_matrices_{dtype}"), arguments)
}
