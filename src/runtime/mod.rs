//! Devices, and how kernels are compiled and run on them.

#[cfg(feature = "emulate")]
mod emulate;
