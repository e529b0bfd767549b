//! Devices, memory, compiled kernels and their execution.

pub(crate) mod buffer;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod device;
pub(crate) mod host;
//! Devices, and how kernels are compiled and run on them.
#[cfg(feature = "emulate")]
mod emulate;
