//! What goes along an axis step by step.

mod along;
mod apart;
pub(crate) mod recurrences;
pub(crate) mod scans;
pub(crate) mod step;
mod unrolled;
