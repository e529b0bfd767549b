//! Memory and time of routines.

use std::hash::BuildHasher;

use lazuli_routines::Routine;
use rustc_hash::FxBuildHasher;

use crate::Result;
use crate::runtime::cpu::{Cost, threads};
use crate::runtime::host;

/// About how many times as many elements as a matrix has the library takes on its way.
pub(super) const COPIES: usize = 6;

/// What is less is there.
const LEAST_BYTES: usize = 1 << 20;

/// Whether there is memory for so many elements of each of several threads. Where the library found none, it would end the
/// process.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn ensure_room<T>(elements: usize, blocks: usize) -> Result<()> {
    let threads = blocks.min(threads() as usize).max(1);
    let elements = elements.saturating_mul(threads);
    match elements.saturating_mul(size_of::<T>()) < LEAST_BYTES {
        true => Ok(()),
        false => host::reserve(&mut Vec::<T>::new(), elements),
    }
}

/// What is known of the time that a routine takes for so many elements, about.
pub(super) fn cost(routine: Routine, elements: usize) -> &'static Cost {
    const MANY: usize = 256;
    static COSTS: [Cost; MANY] = [const { Cost::new() }; MANY];
    let kind = (std::mem::discriminant(&routine), elements.checked_ilog2());
    // Two kinds in one place learn again.
    &COSTS[FxBuildHasher.hash_one(kind) as usize % MANY]
}
