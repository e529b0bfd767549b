//! The CPU as a device: emitted C is compiled by the system's C compiler, loaded, and run on rayon's threads.

mod called;
mod compiler;
mod effort;
mod flags;
mod join;
mod linker;
mod module;
mod parallel;
mod processor;
#[cfg(target_os = "linux")]
mod standby;
pub(crate) mod together;

pub(crate) use compiler::{Compiler, identity};
pub(crate) use join::joined;
pub(crate) use module::{CpuModule, Unloaded};
pub(crate) use parallel::threads;
pub(crate) use parallel::{Cost, run as in_parallel};
pub(crate) use processor::model;

/// The device's name in errors.
const DEVICE: &str = "cpu";

/// Where compilers take no text from a pipe, or objects are not linked here.
#[cfg(not(target_os = "linux"))]
mod standby {
    pub(super) fn start<F>(_count: usize, _after: std::time::Duration, _command: F) {}

    pub(super) fn compile(_source: &str, _command: &[String]) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(test)]
mod tests;
