//! Functions of tensors that are recorded once and called many times.

pub(crate) mod compile;
pub(crate) mod tree;
