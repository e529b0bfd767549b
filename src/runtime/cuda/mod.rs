//! NVIDIA devices: kernels become CUBINs through NVRTC and run through the driver.
//!
//! Neither library is needed to build or to link. Both are looked for when first asked for, and where one is
//! missing the answer is an [`Error::Unavailable`](crate::Error::Unavailable), never a panic.

pub(crate) mod architecture;
pub(crate) mod cubin;
pub(crate) mod dependent_launch;
pub(crate) mod driver;
pub(crate) mod lines;
pub(crate) mod nvrtc;
pub(crate) mod nvtx;
mod places;
pub mod testing;
mod version;
