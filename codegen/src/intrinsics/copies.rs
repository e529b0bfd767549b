//! Copies from memory to shared memory that are on their way while a thread goes on.

use super::Helpers;
use crate::Language;

/// A call that begins a copy of 4, 8 or 16 bytes, or of as many zeros where a condition does not hold (CUDA).
pub fn begin_copy(bytes: u64, [to, from, condition]: [&str; 3], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_begin_copy_{bytes}"), &[to, from, condition])
}

/// A call that makes a group of the copies that have been begun (CUDA).
pub fn commit_copies(helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, "lz_commit_copies", &[])
}

/// A call that waits for all groups of copies but the last few (CUDA).
pub fn await_copies(but: u32, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_await_copies_but_{but}"), &[])
}

/// A call that begins to copy a tile, of the map's axes from these positions on (CUDA).
pub fn begin_tile(axes: usize, arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_begin_tile_{axes}"), arguments)
}

/// A call about what is to arrive of such copies: `expect`, or `await` (CUDA).
pub fn tiles(step: &str, arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_{step}_tiles"), arguments)
}
