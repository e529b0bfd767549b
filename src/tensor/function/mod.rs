//! Functions of tensors that are recorded once and called many times.

pub(crate) mod clip;
pub(crate) mod compile;
pub mod parallel;
pub(crate) mod tree;
