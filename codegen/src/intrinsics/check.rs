//! Positions that a kernel computes, checked before anything is read there.

use super::Helpers;
use crate::Language;

/// The parameter that points to where failed checks are noted.
pub const CHECKS: &str = "checks";

/// The text of a position below `extent`: that of `position`, a 64-bit integer, if it is one. Otherwise the check's
/// number and the value are noted at [`CHECKS`], and the nearest position is taken.
pub fn checked_position(
    language: Language,
    position: &str,
    extent: &str,
    check: u32,
    helpers: &mut Helpers,
) -> String {
    let number = (check + 1).to_string();
    helpers.call(language, "lz_position", &[position, extent, &number, CHECKS])
}

/// The same of a vector of positions, of which the first `count` are some: in C.
pub fn checked_positions(
    (positions, count): (&str, &str),
    extent: &str,
    check: u32,
    helpers: &mut Helpers,
) -> String {
    // What each lane calls where one of them is none.
    helpers.call(Language::C, "lz_position", &[]);
    format!("lz_checked_positions({positions}, {extent}, {}, {CHECKS}, {count})", check + 1)
}
