//! `LAZULI_DEBUG=1..5`: what happens, on standard error, from coarse to fine.

use crate::{settings, stderr};

/// How fine a message is; each level includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// 1: device and time of every kernel.
    Timings = 1,
    /// 2: groups, boundaries, bytes.
    Plan = 2,
    /// 3: schedules and launch shapes.
    Schedule = 3,
    /// 4: emitted sources.
    Source = 4,
    /// 5: the graph after each pass and the kernel IR.
    Ir = 5,
}

pub(crate) fn enabled(wanted: Level) -> bool {
    settings::debug_level() >= wanted as u8
}

pub(crate) fn print(wanted: Level, message: impl FnOnce() -> String) {
    if enabled(wanted) {
        stderr::say(&format!("[lazuli] {}", message()));
    }
}
