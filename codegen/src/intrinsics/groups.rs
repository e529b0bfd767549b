//! Products of matrices in shared memory that four warps carry out while they go on (`wgmma`, on sm_90 alone).

use super::Helpers;
use super::lines::{Lines, name};
use crate::{DType, Language};

/// A call that begins to add the product of two matrices in shared memory to a group's sums (CUDA).
pub fn multiply_group(
    columns: u32,
    dtype: DType,
    lines: [Lines; 2],
    arguments: &[&str],
    helpers: &mut Helpers,
) -> String {
    helpers.call(Language::Cuda, &name(columns, dtype, lines), arguments)
}

/// A call of what comes before or behind such products: `publish`, `begin`, `commit`, or `await_but_` so many.
pub fn products(step: &str, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_products_{step}"), &[])
}
