//! What orders one stream after another.
//!
//! Each buffer knows the stream that wrote it last and those that have read it since ([`Uses`]). Work on another stream
//! waits for these first, by an event that is recorded when it is needed: who uses one stream alone records none.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use cudarc::driver::{CudaEvent, DriverError, result, sys};
use smallvec::SmallVec;

use super::CudaDevice;
use super::stream::CudaStream;
use crate::{Error, Result};

/// The streams that use a buffer.
pub(super) struct Uses {
    writer: Arc<CudaStream>,
    /// Those that come after what the writer wrote, and read it.
    readers: SmallVec<[Arc<CudaStream>; 1]>,
}

/// What work does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Reads,
    Writes,
}

impl Uses {
    /// Of memory that this stream wrote or got.
    pub(super) fn new(stream: Arc<CudaStream>) -> Uses {
        Uses { writer: stream, readers: SmallVec::new() }
    }

    /// From now on the stream uses the buffer: what it starts comes after what others do with it.
    pub(super) fn add(
        &mut self,
        device: &CudaDevice,
        stream: &Arc<CudaStream>,
        access: Access,
    ) -> Result<(), DriverError> {
        match access {
            Access::Reads => {
                let is_known = |other: &Arc<CudaStream>| other.id == stream.id;
                if !is_known(&self.writer) && !self.readers.iter().any(is_known) {
                    device.order(stream, &self.writer)?;
                    self.readers.push(stream.clone());
                }
            }
            Access::Writes => {
                self.wait(device, stream)?;
                *self = Uses::new(stream.clone());
            }
        }
        Ok(())
    }

    /// What the stream starts from now on comes after all that uses the buffer.
    pub(super) fn wait(&self, device: &CudaDevice, stream: &CudaStream) -> Result<(), DriverError> {
        self.streams().try_for_each(|other| device.order(stream, other))
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &Arc<CudaStream>> {
        std::iter::once(&self.writer).chain(&self.readers)
    }
}

impl CudaDevice {
    /// The stream that this thread's work on the device goes to.
    pub(crate) fn stream(&self) -> Arc<CudaStream> {
        CudaStream::current(self.ordinal).unwrap_or_else(|| self.main.clone())
    }

    /// While `f` runs, this thread's work on the device goes to the stream.
    pub(crate) fn with_stream<T>(&self, stream: &Arc<CudaStream>, f: impl FnOnce() -> T) -> T {
        stream.within(self.ordinal, f)
    }

    /// A stream that nobody else has: of this priority, or the nearest that the device knows. Lower numbers go first.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn take_stream(&self, priority: i32) -> Result<Arc<CudaStream>> {
        let operation = "create a stream";
        self.enter(operation)?;
        let failed = |error| self.failed(operation, error);
        let (least, greatest) = result::stream::get_priority_range().map_err(failed)?;
        let priority = priority.clamp(greatest.min(least), least.max(greatest));
        let mut free = self.free_streams.lock().unwrap_or_else(PoisonError::into_inner);
        match free.iter().position(|stream| stream.priority == priority) {
            Some(number) => Ok(free.swap_remove(number)),
            None => CudaStream::create(priority).map_err(failed),
        }
    }

    /// From now on others may have it.
    pub(crate) fn give_stream(&self, stream: Arc<CudaStream>) {
        self.free_streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// A stream of others.
    ///
    /// # Safety
    /// It is one of this device's primary context, until [`CudaDevice::close_stream`].
    pub(crate) unsafe fn wrap_stream(raw: *mut c_void) -> Arc<CudaStream> {
        Arc::new(CudaStream::new(raw.cast(), 0, true))
    }

    /// The stream, or what comes after it.
    pub(super) fn live<'a>(&'a self, stream: &'a CudaStream) -> &'a CudaStream {
        if stream.is_closed.load(Ordering::Acquire) { &self.main } else { stream }
    }

    /// What is started on one stream from now on comes after what was started on the other one.
    pub(super) fn order(&self, later: &CudaStream, earlier: &CudaStream) -> Result<(), DriverError> {
        let (later, earlier) = (self.live(later), self.live(earlier));
        if later.id == earlier.id {
            return Ok(());
        }
        // Before the event: it may come after more than this.
        let started = earlier.started.load(Ordering::Acquire);
        let mut waited = later.waited.lock().unwrap_or_else(PoisonError::into_inner);
        let known = waited.iter().position(|(id, _)| *id == earlier.id);
        let is_counted = !earlier.is_shared.load(Ordering::Acquire);
        if is_counted && known.is_some_and(|known| waited[known].1 >= started) {
            return Ok(());
        }
        let event = self.context.new_event(None)?;
        // SAFETY: the event and both streams are alive, and of this device.
        unsafe {
            result::event::record(event.cu_event(), earlier.raw())?;
            let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
            result::stream::wait_event(later.raw(), event.cu_event(), flags)?;
        }
        match known {
            Some(known) => waited[known].1 = started,
            None if is_counted => waited.push((earlier.id, started)),
            None => {}
        }
        Ok(())
    }

    /// An event after what was started on the stream.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn record(&self, stream: &CudaStream) -> Result<CudaEvent> {
        let operation = "record an event";
        self.enter(operation)?;
        let failed = |error| self.failed(operation, error);
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        let event = self.context.new_event(Some(flags)).map_err(failed)?;
        // SAFETY: both are alive, and of this device.
        unsafe { result::event::record(event.cu_event(), self.live(stream).raw()) }.map_err(failed)?;
        Ok(event)
    }

    /// What is started on the stream from now on comes after the event, which may be of another device.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn wait_for_event(&self, stream: &CudaStream, event: &CudaEvent) -> Result<()> {
        let operation = "wait for an event";
        self.enter(operation)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both are alive.
        unsafe { result::stream::wait_event(self.live(stream).raw(), event.cu_event(), flags) }
            .map_err(|error| self.failed(operation, error))?;
        stream.has_started();
        Ok(())
    }

    /// Whether all that was started on the stream has ended.
    ///
    /// # Errors
    /// [`Error::Device`] where any of it failed.
    pub(crate) fn is_idle(&self, stream: &CudaStream) -> Result<bool> {
        let operation = "ask a stream";
        self.enter(operation)?;
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.live(stream).raw()) }.result() {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(self.failed(operation, error)),
        }
    }

    /// Waits until all that was started on the stream has ended.
    ///
    /// # Errors
    /// [`Error::Device`] where any of it failed.
    pub(crate) fn synchronize_stream(&self, stream: &CudaStream) -> Result<()> {
        self.wait_for("synchronize", stream)
    }

    pub(super) fn wait_for(&self, operation: &str, stream: &CudaStream) -> Result<()> {
        self.enter(operation)?;
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.live(stream).raw()) }
            .map_err(|error| self.failed(operation, error))
    }

    /// The seconds between two events of this device that have been reached.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn seconds_between(&self, start: &CudaEvent, end: &CudaEvent) -> Result<f64> {
        let operation = "time";
        self.enter(operation)?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive, of this device, and recorded; the function is the driver's own.
        let status = unsafe { (self.elapsed_time)(&mut milliseconds, start.cu_event(), end.cu_event()) };
        if status != 0 {
            return Err(Error::Device {
                device: self.label.clone(),
                operation: operation.to_owned(),
                message: format!("the events could not be read: error {status}"),
            });
        }
        Ok(f64::from(milliseconds) / 1e3)
    }

    /// Waits for an event.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn wait_until(&self, event: &CudaEvent) -> Result<()> {
        let operation = "wait for an event";
        self.enter(operation)?;
        event.synchronize().map_err(|error| self.failed(operation, error))
    }

    /// Whether an event has been reached.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn is_reached(&self, event: &CudaEvent) -> Result<bool> {
        let operation = "ask an event";
        self.enter(operation)?;
        event.try_is_complete().map_err(|error| self.failed(operation, error))
    }
}
