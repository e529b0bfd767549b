//! What goes along an axis step by step.

pub(crate) mod recurrences;
pub(crate) mod scans;
