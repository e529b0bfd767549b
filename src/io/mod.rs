//! Tensors from files and into files.
//!
//! | format | functions | feature |
//! |---|---|---|
//! | NumPy's `.npy`, one tensor | [`read_npy`], [`write_npy`] | – |
//! | NumPy's `.npz`, several with names | `read_npz`, `write_npz` | `npz` |
//! | safetensors, several with names | `read_safetensors`, `write_safetensors` | `safetensors` |
//!
//! What is read is on the CPU. What is written is evaluated first. With the feature `ndarray`, `Tensor::from(&array)`
//! and [`Tensor::to_ndarray`](crate::Tensor) convert in memory. With the feature `dlpack`, `Tensor::from_dlpack` and
//! `Tensor::to_dlpack` share memory with PyTorch, NumPy, JAX, candle and others, on the CPU and on a GPU, without a copy.
//!
//! ```
//! use lazuli::{Tensor, io};
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("x.npy");
//! io::write_npy(&path, &Tensor::arange(0.0f32, 3.0, 1.0).sqrt())?;
//! assert_eq!(io::read_npy(&path)?.square().round().to_vec::<f32>()?, [0.0, 1.0, 2.0]);
//! # Ok::<(), lazuli::Error>(())
//! ```

#[cfg(feature = "dlpack")]
mod dlpack;
#[cfg(feature = "ndarray")]
mod ndarray;
mod npy;
#[cfg(feature = "npz")]
mod npz;
#[cfg(feature = "safetensors")]
mod safetensors;

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

pub use npy::{read_npy, write_npy};
#[cfg(feature = "npz")]
pub use npz::{read_npz, write_npz};
#[cfg(feature = "safetensors")]
pub use safetensors::{read_safetensors, write_safetensors};

use crate::runtime::host::HostBuffer;
use crate::{DType, Error, Result, Shape, Tensor};

/// An [`Error::Io`] for what is wrong with a file's content; [`Error::io`] is for what the system says.
fn failure(action: &'static str, path: &Path, message: impl Display) -> Error {
    Error::Io { action, path: path.display().to_string(), message: message.to_string(), source: None }
}

/// The tensor's shape, dtype and elements, computed if they are not there yet.
fn parts(x: &Tensor) -> Result<(&Shape, DType, Arc<HostBuffer>)> {
    x.compute()?;
    let (shape, dtype) = x.known()?;
    Ok((shape, dtype, x.buffer()?.to_host()?))
}
