//! Devices, memory, compiled kernels and their execution.

pub(crate) mod buffer;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod device;
pub(crate) mod host;
