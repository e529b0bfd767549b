//! Devices, memory, compiled kernels and their execution.

pub(crate) mod buffer;
pub(crate) mod device;
pub(crate) mod host;
