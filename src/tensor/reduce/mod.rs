//! What combines the elements along axes.

mod covariance;
pub(crate) mod moments;
pub(crate) mod neighbours;
pub(crate) mod reductions;
pub(crate) mod statistics;
