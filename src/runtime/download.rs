//! Copies of values to the host while the program goes on.

use super::buffer::Buffer;
#[cfg(feature = "cuda")]
use super::cuda::driver::{CudaDevice, Landing};
use crate::Result;

/// Values on their way to the host.
pub(crate) enum Transit {
    Host(Buffer),
    #[cfg(feature = "cuda")]
    Cuda(Box<Landing>),
}

impl Transit {
    pub(crate) fn start(buffer: &Buffer) -> Result<Transit> {
        Ok(match buffer {
            Buffer::Host(_) => Transit::Host(buffer.clone()),
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => Transit::Cuda(Box::new(buffer.device().start_download(buffer)?)),
        })
    }

    pub(crate) fn is_ready(&self) -> Result<bool> {
        match self {
            Transit::Host(_) => Ok(true),
            #[cfg(feature = "cuda")]
            Transit::Cuda(landing) => landing.is_ready(),
        }
    }

    /// The values, in host memory.
    pub(crate) fn wait(self) -> Result<Buffer> {
        match self {
            Transit::Host(buffer) => Ok(buffer),
            #[cfg(feature = "cuda")]
            Transit::Cuda(landing) => {
                let (host, source) = landing.wait()?;
                crate::stats::add_many(crate::stats::Counter::BytesDown, host.bytes());
                super::checks::of(&source)?;
                Ok(Buffer::Host(host.into()))
            }
        }
    }
}

/// The bytes in memory that a GPU copies from by itself; nothing where there is no GPU.
pub(crate) fn pinned(buffer: &Buffer) -> Result<Option<Buffer>> {
    #[cfg(feature = "cuda")]
    if let (Buffer::Host(host), true) = (buffer, super::cuda::driver::device_count()? > 0) {
        let pinned = CudaDevice::open(0)?.pin(host.as_slice())?;
        return Ok(Some(Buffer::Host(pinned.into())));
    }
    let _ = buffer;
    Ok(None)
}
