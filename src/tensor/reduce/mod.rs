//! What combines the elements along axes.

mod average;
mod compare;
mod covariance;
mod missing;
pub(crate) mod moments;
pub(crate) mod neighbours;
pub(crate) mod reductions;
pub(crate) mod statistics;
