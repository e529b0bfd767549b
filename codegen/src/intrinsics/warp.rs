//! What the lanes of a warp find out about each other.

use super::Helpers;
use crate::Language;

/// The text of how many lanes before this one have the same key, a 32-bit integer.
pub fn lanes_before(language: Language, key: &str, helpers: &mut Helpers) -> String {
    helpers.call(language, "lz_lanes_before", &[key])
}

/// The text of how many lanes before this one have a condition that holds.
pub fn votes_before(language: Language, condition: &str, helpers: &mut Helpers) -> String {
    helpers.call(language, "lz_votes_before", &[condition])
}
