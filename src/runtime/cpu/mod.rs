//! The CPU as a device: emitted C is compiled by the system's C compiler, loaded, and run on rayon's threads.

mod compiler;
mod effort;
mod linker;
mod module;
mod parallel;
pub(crate) mod together;

pub(crate) use compiler::{Compiler, identity, model};
pub(crate) use module::{CpuModule, Unloaded};
pub(crate) use parallel::threads;

/// The device's name in errors.
const DEVICE: &str = "cpu";

#[cfg(test)]
mod tests;
