//! The memory behind evaluated tensors.

use std::ffi::c_void;
use std::sync::Arc;

use smallvec::SmallVec;

#[cfg(feature = "cuda")]
use super::cuda::driver::CudaBuffer;
use super::fault::Fault;
#[cfg(feature = "cuda")]
use super::fault::Faults;
use super::host::HostBuffer;
use super::memory;
use crate::{Result, SourceLocation};

/// Memory of one tensor: its elements, contiguous and row-major. Cheap to clone; the memory goes
/// back to its pool with the last handle.
#[derive(Clone)]
pub(crate) enum Buffer {
    /// Memory of this process: the CPU, the interpreter and the emulated device.
    Host(Arc<HostBuffer>),
    /// Memory of a GPU.
    #[cfg(feature = "cuda")]
    Cuda(Arc<CudaBuffer>),
}

/// Inputs, or outputs: mostly few.
pub(crate) type Buffers = SmallVec<[Buffer; 4]>;

impl Buffer {
    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Buffer::Host(buffer) => buffer.bytes(),
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => buffer.bytes(),
        }
    }

    /// The memory is from now on a tensor's, which this made.
    pub(crate) fn hold(&self, op: &'static str, location: SourceLocation) {
        let (space, is_of_others) = match self {
            Buffer::Host(buffer) => (None, buffer.is_of_others()),
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => (Some(buffer.device().ordinal()), buffer.is_of_others()),
        };
        if !is_of_others {
            memory::hold(space, self.pointer() as u64, self.bytes(), op, location);
        }
    }

    /// How many share the memory: beyond counting if it is others'.
    pub(crate) fn owners(&self) -> usize {
        match self {
            Buffer::Host(buffer) if buffer.is_of_others() => usize::MAX,
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) if buffer.is_of_others() => usize::MAX,
            Buffer::Host(buffer) => Arc::strong_count(buffer),
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => Arc::strong_count(buffer),
        }
    }

    /// The first byte, in the address space of the device.
    pub(crate) fn pointer(&self) -> *mut c_void {
        match self {
            Buffer::Host(buffer) => buffer.as_ptr().cast(),
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => buffer.device_pointer() as *mut c_void,
        }
    }

    /// What it holds follows from others, and from a launch that may turn out to have been wrong.
    pub(crate) fn follow<'a>(
        &self,
        sources: impl Iterator<Item = &'a Buffer>,
        launch: Option<&'a Arc<Fault>>,
    ) {
        match self {
            // The launch is over, and was right.
            Buffer::Host(_) => {}
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => {
                let faults = Faults::gather(sources.filter_map(Buffer::faults), launch.into_iter());
                buffer.faults().set(faults);
            }
        }
        #[cfg(not(feature = "cuda"))]
        let _ = (sources, launch);
    }

    #[cfg(feature = "cuda")]
    fn faults(&self) -> Option<&Faults> {
        match self {
            Buffer::Host(_) => None,
            Buffer::Cuda(buffer) => Some(buffer.faults()),
        }
    }

    /// The buffer in host memory: itself, or a copy from the GPU.
    pub(crate) fn to_host(&self) -> Result<Arc<HostBuffer>> {
        match self {
            Buffer::Host(buffer) => Ok(buffer.clone()),
            #[cfg(feature = "cuda")]
            Buffer::Cuda(buffer) => {
                let host = HostBuffer::allocate(buffer.bytes())?;
                // SAFETY: the block holds that many bytes, and nobody else has it yet.
                let bytes = unsafe { std::slice::from_raw_parts_mut(host.as_ptr(), host.bytes()) };
                buffer.device().download(buffer, bytes)?;
                // The device has been waited for.
                super::checks::of(buffer)?;
                crate::stats::add_many(crate::stats::Counter::BytesDown, host.bytes());
                Ok(Arc::new(host))
            }
        }
    }
}
