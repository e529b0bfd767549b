//! Devices, memory, compiled kernels and their execution.

pub(crate) mod backend;
pub(crate) mod buffer;
pub(crate) mod cache;
pub(crate) mod checks;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod device;
pub(crate) mod donation;
#[cfg(feature = "emulate")]
pub(crate) mod emulate;
pub(crate) mod executor;
pub(crate) mod host;
pub(crate) mod kernels;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod workshop;
