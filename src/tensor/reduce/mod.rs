//! What combines the elements along axes.

pub(crate) mod neighbours;
pub(crate) mod reductions;
pub(crate) mod statistics;
