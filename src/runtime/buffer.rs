//! The memory behind evaluated tensors.

use std::sync::Arc;

use super::host::HostBuffer;

/// Memory of one tensor: its elements, contiguous and row-major. Cheap to clone; the memory goes
/// back to its pool with the last handle.
#[derive(Clone, Debug)]
pub(crate) enum Buffer {
    /// Memory of this process: the CPU, the interpreter and the emulated device.
    Host(Arc<HostBuffer>),
}

impl Buffer {
    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Buffer::Host(buffer) => buffer.bytes(),
        }
    }
}
