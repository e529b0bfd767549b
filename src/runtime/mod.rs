//! Devices, memory, compiled kernels and their execution.

pub(crate) mod backend;
pub(crate) mod buffer;
pub(crate) mod cache;
pub(crate) mod checks;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod default_device;
pub(crate) mod device;
pub(crate) mod download;
#[cfg(feature = "emulate")]
pub(crate) mod emulate;
pub(crate) mod fault;
pub(crate) mod flights;
pub(crate) mod fork;
pub(crate) mod general;
pub(crate) mod host;
pub(crate) mod information;
pub(crate) mod join;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod progress;
mod questions;
pub(crate) mod routine;
pub(crate) mod stream;
pub(crate) mod tiles;
pub(crate) mod workshop;

#[cfg(feature = "cuda")]
pub(crate) use cuda::nvtx::range;

/// Ranges are in NVIDIA's hands.
#[cfg(not(feature = "cuda"))]
pub(crate) fn range(_: impl FnOnce() -> String) -> Option<std::convert::Infallible> {
    None
}
