//! Host memory that the system may not move: a GPU copies from it and to it by itself, while the program goes on.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaEvent, result};

use super::CudaDevice;
use super::buffer::CudaBuffer;
use super::order::Access;
use crate::runtime::host::HostBuffer;
use crate::{Error, Result};

/// Every device of the process may copy from it.
const PORTABLE: u32 = 1;
/// Bytes that are kept for later: to get such memory takes longer than to copy as much.
const MOST_KEPT: usize = 256 << 20;

/// A block of such memory.
struct Block {
    start: NonNull<u8>,
    bytes: usize,
    device: Arc<CudaDevice>,
}

// SAFETY: plain memory, which its one owner may use from any thread.
unsafe impl Send for Block {}
// SAFETY: what is shared is only read.
unsafe impl Sync for Block {}

/// Those that nobody has now, those released first at the beginning.
fn free() -> MutexGuard<'static, Vec<Block>> {
    static FREE: Mutex<Vec<Block>> = Mutex::new(Vec::new());
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Block {
    fn drop(&mut self) {
        let context = &self.device.context;
        // SAFETY: allocated by `Pinned::new`, and no copy is under way.
        let freed =
            context.bind_to_thread().and_then(|()| unsafe { result::free_host(self.start.as_ptr().cast()) });
        context.record_err(freed);
    }
}

/// Memory for copies, kept for later when it is dropped. No copy may be under way then.
pub(crate) struct Pinned(Option<Block>);

impl Pinned {
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn new(device: &Arc<CudaDevice>, bytes: usize) -> Result<Pinned> {
        let bytes = bytes.max(1).next_power_of_two();
        {
            let mut free = free();
            if let Some(known) = free.iter().rposition(|block| block.bytes == bytes) {
                return Ok(Pinned(Some(free.remove(known))));
            }
        }
        device.enter("allocate host memory")?;
        // SAFETY: any bytes are valid; they are written before anybody reads them.
        let attempt = || unsafe { result::malloc_host(bytes, PORTABLE) };
        let start = attempt().or_else(|_| {
            let kept = std::mem::take(&mut *free());
            drop(kept);
            attempt()
        });
        let start = start.ok().and_then(|start| NonNull::new(start.cast()));
        let start = start.ok_or_else(|| crate::runtime::host::out_of_memory(bytes as u64))?;
        Ok(Pinned(Some(Block { start, bytes, device: device.clone() })))
    }

    fn start(&self) -> *mut u8 {
        self.0.as_ref().map_or(std::ptr::null_mut(), |block| block.start.as_ptr())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        let mut free = free();
        free.extend(self.0.take());
        while free.iter().map(|block| block.bytes).sum::<usize>() > MOST_KEPT {
            rest.push(free.remove(0));
        }
        // The lock is not held while the driver gives them back.
        drop(free);
    }
}

/// Whether a copy from this memory to a GPU needs nobody who waits for it.
pub(crate) fn is_pinned(buffer: &HostBuffer) -> bool {
    buffer.keeper().is_some_and(|keeper| keeper.is::<Pinned>())
}

/// A copy to the host that may be under way.
pub(crate) struct Landing {
    memory: Option<Pinned>,
    bytes: usize,
    copied: CudaEvent,
    /// What is copied, and what may turn out to be wrong with it.
    source: Arc<CudaBuffer>,
}

impl Landing {
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn is_ready(&self) -> Result<bool> {
        self.source.device().is_reached(&self.copied)
    }

    /// Waits for the copy.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn wait(mut self) -> Result<(HostBuffer, Arc<CudaBuffer>)> {
        self.source.device().wait_until(&self.copied)?;
        let memory =
            self.memory.take().ok_or_else(|| Error::internal("download", "the copy has no memory"))?;
        let (start, keeper) = (memory.start(), Box::new(memory));
        // SAFETY: the memory has so many bytes and more, which were copied, and nobody writes to them any more.
        Ok((unsafe { HostBuffer::of_others(start, self.bytes, keeper) }, self.source.clone()))
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // Somebody else may have the memory next.
        if self.memory.is_some() && self.source.device().wait_until(&self.copied).is_err() {
            std::mem::forget(self.memory.take());
        }
    }
}

impl CudaDevice {
    /// The bytes in such memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn pin(self: &Arc<Self>, bytes: &[u8]) -> Result<HostBuffer> {
        let memory = Pinned::new(self, bytes.len())?;
        // SAFETY: the memory has so many bytes, and nobody else has it yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.start(), bytes.len()) };
        let (start, keeper) = (memory.start(), Box::new(memory));
        // SAFETY: nobody writes to it until the keeper is dropped.
        Ok(unsafe { HostBuffer::of_others(start, bytes.len(), keeper) })
    }

    /// Starts a copy to the host after what the buffer or this thread's stream waits for, and does not wait for it.
    ///
    /// # Errors
    /// [`Error::Device`], [`Error::OutOfMemory`].
    pub(crate) fn start_download(self: &Arc<Self>, buffer: &Arc<CudaBuffer>) -> Result<Landing> {
        let operation = "copy from the device";
        let (bytes, memory) = (buffer.bytes(), Pinned::new(self, buffer.bytes())?);
        let stream = self.enter_with(operation, &[(buffer, Access::Reads)])?;
        if bytes > 0 {
            // SAFETY: the memory has so many bytes, and nobody reads them before the event.
            let host = unsafe { std::slice::from_raw_parts_mut(memory.start(), bytes) };
            // SAFETY: as above; the buffer is of this device, alive and as long.
            unsafe { result::memcpy_dtoh_async(host, buffer.device_pointer(), stream.raw()) }
                .map_err(|error| self.failed(operation, error))?;
            stream.has_started();
        }
        let copied = self.record(&stream)?;
        Ok(Landing { memory: Some(memory), bytes, copied, source: buffer.clone() })
    }

    /// Starts a copy from such memory, and does not wait for it. The buffer has the same number of bytes.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn start_upload(&self, buffer: &CudaBuffer, host: &Arc<HostBuffer>) -> Result<()> {
        let operation = "copy to the device";
        self.check_buffer(operation, buffer, host.bytes())?;
        let stream = self.enter_with(operation, &[(buffer, Access::Writes)])?;
        if host.bytes() > 0 {
            // SAFETY: the buffer is of this device, alive and as long, and the memory is kept until it has been copied.
            unsafe { result::memcpy_htod_async(buffer.device_pointer(), host.as_slice(), stream.raw()) }
                .map_err(|error| self.failed(operation, error))?;
            stream.has_started();
        }
        let copied = self.record(&stream);
        if copied.is_err() {
            // It is not known when it may go.
            std::mem::forget(host.clone());
        }
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.push((copied?, host.clone()));
        let are_done: Vec<bool> =
            uploads.iter().map(|(copied, _)| self.is_reached(copied).unwrap_or(false)).collect();
        let mut are_done = are_done.into_iter();
        uploads.retain(|_| !are_done.next().unwrap_or(false));
        Ok(())
    }
}
