//! Memory of a device, and copies to, from and within it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUresult;
use cudarc::driver::{DriverError, result};

use super::CudaDevice;
use super::buffer::CudaBuffer;
use super::free_lists::Block;
use super::order::Access;
use super::stream::CudaStream;
use crate::runtime::memory::out_of_memory;
use crate::{Error, Result};

/// Enough counters for most kernels.
const LEAST_COUNTER_BYTES: usize = 1 << 16;

/// Of streams, by their numbers: zeros whenever no kernel of the stream runs.
fn counters() -> MutexGuard<'static, Vec<(u64, Arc<CudaBuffer>)>> {
    static COUNTERS: Mutex<Vec<(u64, Arc<CudaBuffer>)>> = Mutex::new(Vec::new());
    COUNTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CudaDevice {
    /// A buffer with whatever bytes were there before. A buffer of no bytes takes no memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after what was released has been given back to the device and tried again.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<CudaBuffer> {
        self.enter("allocate")?;
        if !self.usage.take(bytes) {
            return Err(self.out_of_memory(bytes));
        }
        let mut buffer = CudaBuffer::new(self, bytes);
        if matches!(buffer, Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY))) {
            buffer = match self.trim() {
                Ok(()) => CudaBuffer::new(self, bytes),
                Err(error) => {
                    self.usage.give_back(bytes);
                    return Err(error);
                }
            };
        }
        buffer.map_err(|error| {
            self.usage.give_back(bytes);
            match error.0 {
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => self.out_of_memory(bytes),
                _ => self.failed("allocate", error),
            }
        })
    }

    fn out_of_memory(&self, bytes: usize) -> Error {
        let memory = self.usage.read(0);
        out_of_memory(self.label.clone(), Some(self.ordinal), bytes as u64, memory, self.usage.limit())
    }

    /// From now on, tensors have at most so many bytes, and what is released beyond that is given back.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn limit(&self, bytes: u64) -> Result<()> {
        let operation = "limit memory";
        self.enter(operation)?;
        self.usage.set_limit(bytes);
        let kept = self.pool.as_ref().map_or(Ok(()), |pool| pool.keep(bytes));
        self.release(self.free_lists.limit(bytes.min(self.total_memory)))
            .and(kept)
            .map_err(|error| self.failed(operation, error))
    }

    /// Gives blocks back to the pool, in the order of their streams. The context is current.
    pub(super) fn release(&self, blocks: Vec<Block>) -> Result<(), DriverError> {
        let mut released = Ok(());
        for block in blocks {
            let stream = self.live(&block.stream);
            // SAFETY: the memory is the pool's, and all that uses it comes before.
            released = released.and(unsafe { result::free_async(block.address, stream.raw()) });
            stream.has_started();
        }
        released
    }

    /// A buffer of zeros.
    ///
    /// # Errors
    /// As [`allocate`](CudaDevice::allocate).
    pub(crate) fn allocate_zeroed(self: &Arc<Self>, bytes: usize) -> Result<CudaBuffer> {
        let buffer = self.allocate(bytes)?;
        self.fill(&buffer, 0)?;
        Ok(buffer)
    }

    /// Counters that are zero whenever no kernel of this thread's stream runs: those that count leave zeros behind.
    ///
    /// # Errors
    /// As [`allocate`](CudaDevice::allocate).
    pub(crate) fn counters(self: &Arc<Self>, bytes: usize) -> Result<Arc<CudaBuffer>> {
        let stream = self.stream();
        let known = || {
            let counters = counters();
            let own = counters.iter().find(|(id, buffer)| *id == stream.id && buffer.bytes() >= bytes);
            own.map(|(_, buffer)| buffer.clone())
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let made = Arc::new(self.allocate_zeroed(bytes.next_power_of_two().max(LEAST_COUNTER_BYTES))?);
        let mut counters = counters();
        counters.retain(|(id, _)| *id != stream.id);
        counters.push((stream.id, made.clone()));
        Ok(made)
    }

    /// Sets every byte of the buffer.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn fill(&self, buffer: &CudaBuffer, byte: u8) -> Result<()> {
        let operation = "fill";
        self.check_buffer(operation, buffer, buffer.bytes())?;
        if buffer.bytes() == 0 {
            return Ok(());
        }
        let stream = self.enter_with(operation, &[(buffer, Access::Writes)])?;
        // SAFETY: the buffer is of this device, alive, and as long as stated. Its release comes later.
        unsafe { result::memset_d8_async(buffer.device_pointer(), byte, buffer.bytes(), stream.raw()) }
            .map_err(|error| self.failed(operation, error))?;
        stream.has_started();
        Ok(())
    }

    /// Copies from the host. The buffer has the same number of bytes.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn upload(&self, buffer: &CudaBuffer, host: &[u8]) -> Result<()> {
        let operation = "copy to the device";
        self.check_buffer(operation, buffer, host.len())?;
        if host.is_empty() {
            return Ok(());
        }
        let stream = self.enter_with(operation, &[(buffer, Access::Writes)])?;
        // SAFETY: the buffer is of this device, alive, and as long as the slice.
        unsafe { result::memcpy_htod_async(buffer.device_pointer(), host, stream.raw()) }
            .map_err(|error| self.failed(operation, error))?;
        stream.has_started();
        // The driver may still be reading the slice, which is only borrowed.
        self.wait_for(operation, &stream)
    }

    /// Waits for all that the buffer or this thread's stream waits for, and copies to the host. The buffer has the same
    /// number of bytes.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn download(&self, buffer: &CudaBuffer, host: &mut [u8]) -> Result<()> {
        let operation = "copy from the device";
        self.check_buffer(operation, buffer, host.len())?;
        let stream = self.enter_with(operation, &[(buffer, Access::Reads)])?;
        if !host.is_empty() {
            // SAFETY: the buffer is of this device, alive, and as long as the slice, and the slice is not used before
            // the stream has been waited for.
            unsafe { result::memcpy_dtoh_async(host, buffer.device_pointer(), stream.raw()) }
                .map_err(|error| self.failed(operation, error))?;
            stream.has_started();
        }
        self.wait_for(operation, &stream)
    }

    /// Waits for these streams alone, and copies a buffer to the host that no other stream writes.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn read_after(
        &self,
        streams: &[&Arc<CudaStream>],
        buffer: &CudaBuffer,
        host: &mut [u8],
    ) -> Result<()> {
        let operation = "copy from the device";
        self.check_buffer(operation, buffer, host.len())?;
        let stream = self.enter_with(operation, &[])?;
        let failed = |error| self.failed(operation, error);
        streams.iter().try_for_each(|other| self.order(&stream, other)).map_err(failed)?;
        // SAFETY: the buffer is of this device, alive, and as long as the slice, and the slice is not used before
        // the stream has been waited for.
        unsafe { result::memcpy_dtoh_async(host, buffer.device_pointer(), stream.raw()) }.map_err(failed)?;
        stream.has_started();
        self.wait_for(operation, &stream)
    }

    /// Copies from the host into a part of a buffer that no other stream uses, and waits for it.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn write_now(&self, buffer: &CudaBuffer, offset: usize, host: &[u8]) -> Result<()> {
        let operation = "copy to the device";
        if offset + host.len() > buffer.bytes() {
            return Err(Error::internal(operation, "the bytes are beyond the buffer"));
        }
        let stream = self.enter_with(operation, &[])?;
        // SAFETY: the bytes are within the buffer, which is alive.
        unsafe { result::memcpy_htod_async(buffer.device_pointer() + offset as u64, host, stream.raw()) }
            .map_err(|error| self.failed(operation, error))?;
        stream.has_started();
        self.wait_for(operation, &stream)
    }

    /// Copies between two buffers of this device with the same number of bytes.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn copy(&self, from: &CudaBuffer, to: &CudaBuffer) -> Result<()> {
        let operation = "copy on the device";
        self.check_buffer(operation, from, to.bytes())?;
        self.check_buffer(operation, to, from.bytes())?;
        if from.bytes() == 0 || from.device_pointer() == to.device_pointer() {
            return Ok(());
        }
        let stream = self.enter_with(operation, &[(from, Access::Reads), (to, Access::Writes)])?;
        // SAFETY: both buffers are of this device, alive, as long as stated, and, being two, do not overlap.
        unsafe {
            result::memcpy_dtod_async(to.device_pointer(), from.device_pointer(), from.bytes(), stream.raw())
        }
        .map_err(|error| self.failed(operation, error))?;
        stream.has_started();
        Ok(())
    }

    /// Copies some bytes of a buffer of this device to a place in another one.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn copy_part(
        &self,
        from: &CudaBuffer,
        start: usize,
        to: &CudaBuffer,
        at: usize,
        bytes: usize,
    ) -> Result<()> {
        let operation = "copy on the device";
        self.check_buffer(operation, from, from.bytes())?;
        self.check_buffer(operation, to, to.bytes())?;
        let fits = start + bytes <= from.bytes() && at + bytes <= to.bytes();
        // Empty buffers have no address of their own.
        let is_one = bytes > 0 && from.device_pointer() == to.device_pointer();
        if !fits || is_one {
            return Err(Error::internal(operation, "the bytes are not those of two buffers"));
        }
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.enter_with(operation, &[(from, Access::Reads), (to, Access::Writes)])?;
        let (from, to) = (from.device_pointer() + start as u64, to.device_pointer() + at as u64);
        // SAFETY: both buffers are of this device and alive, and being two, do not overlap; the bytes are within them.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream.raw()) }
            .map_err(|error| self.failed(operation, error))?;
        stream.has_started();
        Ok(())
    }

    /// Copies from a buffer of another GPU with the same number of bytes, and waits for nothing: each device's own work comes
    /// before and after it as it would if the other one were the same.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn copy_from_peer(&self, from: &CudaBuffer, to: &CudaBuffer) -> Result<()> {
        let operation = "copy from another device";
        let peer = from.device();
        self.check_buffer(operation, to, from.bytes())?;
        if from.bytes() == 0 {
            return Ok(());
        }
        let theirs = peer.enter_with(operation, &[(from, Access::Reads)])?;
        let written = peer.record(&theirs)?;
        let own = self.enter_with(operation, &[(to, Access::Writes)])?;
        self.wait_for_event(&own, &written)?;
        let (context, peers) = (self.context.cu_ctx(), peer.context.cu_ctx());
        let (start, end) = (from.device_pointer(), to.device_pointer());
        // SAFETY: both buffers are alive, as long as stated, and of these contexts. The release of either comes later.
        unsafe { result::memcpy_peer_async(context, end, peers, start, from.bytes(), own.raw()) }
            .map_err(|error| self.failed(operation, error))?;
        own.has_started();
        // What becomes of the source is in the order of its device's stream.
        let copied = self.record(&own)?;
        peer.wait_for_event(&theirs, &copied)
    }

    /// The stream of others may go from now on.
    pub(crate) fn close_stream(&self, stream: &CudaStream) {
        let ordered = self.context.bind_to_thread().and_then(|()| self.order(&self.main, stream));
        self.context.record_err(ordered);
        stream.is_closed.store(true, Ordering::Release);
        counters().retain(|(id, _)| *id != stream.id);
    }

    /// Makes the device current on this thread, and gives its stream, on which these buffers may now be used.
    pub(super) fn enter_with(
        &self,
        operation: &str,
        buffers: &[(&CudaBuffer, Access)],
    ) -> Result<Arc<CudaStream>> {
        self.enter(operation)?;
        let stream = self.stream();
        buffers.iter().try_for_each(|(buffer, access)| buffer.use_on(&stream, *access))?;
        Ok(stream)
    }

    /// A buffer of another device or length would be read or written out of bounds.
    pub(super) fn check_buffer(
        &self,
        operation: &'static str,
        buffer: &CudaBuffer,
        bytes: usize,
    ) -> Result<()> {
        if !std::ptr::eq(self, Arc::as_ptr(buffer.device())) {
            let message = format!("the buffer is of {}, not {}", buffer.device().label, self.label);
            return Err(Error::internal(operation, message));
        }
        if buffer.bytes() != bytes {
            let message = format!("the buffer has {} bytes, not {bytes}", buffer.bytes());
            return Err(Error::internal(operation, message));
        }
        Ok(())
    }
}
