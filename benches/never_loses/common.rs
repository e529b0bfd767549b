//! What the tests' workloads are made of.

#[path = "../../tests/common/data.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
pub mod data;
