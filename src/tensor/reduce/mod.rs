//! What combines the elements along axes.

pub(crate) mod reductions;
pub(crate) mod statistics;
