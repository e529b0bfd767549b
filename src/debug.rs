//! `LAZULI_DEBUG=1..5`: what happens, on standard error, from coarse to fine.

use std::sync::OnceLock;

use crate::settings;

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

fn level() -> u8 {
    static LEVEL: OnceLock<u8> = OnceLock::new();
    let of_process = || settings::text("LAZULI_DEBUG").and_then(|value| value.parse().ok()).unwrap_or(0);
    settings::scope().debug.unwrap_or_else(|| *LEVEL.get_or_init(of_process))
}

pub(crate) fn enabled(wanted: Level) -> bool {
    level() >= wanted as u8
}

pub(crate) fn print(wanted: Level, message: impl FnOnce() -> String) {
    if enabled(wanted) {
        eprintln!("[lazuli] {}", message().trim_end());
    }
}
