//! What compiled kernels run on.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
