//! Streams and events as users have them: the same on every device, whether it runs ahead of its host or not.

use std::ffi::c_void;
use std::fmt;
#[cfg(feature = "cuda")]
use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "cuda")]
use cudarc::driver::CudaEvent;

use super::backend::Backend;
#[cfg(feature = "cuda")]
use super::cuda::driver::{CudaDevice, CudaStream};
use super::device::Device;
use crate::Result;

/// An order of work on a device: what one stream gets is done one after the other, what several get at the same time, if
/// the device has room.
///
/// [`Stream::scope`] sends what this thread computes to a stream; without one, it goes to the device's own. Tensors may be
/// used on any stream: work that uses what another stream computes waits for it, on the device, by itself; and so does the
/// release of memory. On devices that do not run ahead of the program, which are all but GPUs, streams change nothing.
///
/// ```
/// use lazuli::{DType, Device, Stream, Tensor};
/// let device = Device::best();
/// let side = Stream::new(&device)?;
/// let x = Tensor::ones([1000], DType::F32).to(&device);
/// x.eval()?;
/// let sum = side.scope(|| x.sum(0).item::<f32>())?; // after x is there, without a word
/// assert_eq!(sum, 1000.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    device: Device,
    queue: Queue,
}

#[derive(Clone)]
enum Queue {
    /// The device is done with everything when a call returns.
    Host,
    #[cfg(feature = "cuda")]
    Cuda(Arc<Held>),
}

/// A stream of a GPU, held by handles.
#[cfg(feature = "cuda")]
struct Held {
    device: Arc<CudaDevice>,
    stream: Arc<CudaStream>,
    /// What becomes of it with the last handle.
    kind: Kind,
}

#[cfg(feature = "cuda")]
enum Kind {
    /// Somebody else may have it.
    Free,
    /// It is not used any more.
    Foreign,
    /// Nothing: others have it.
    Current,
}

#[cfg(feature = "cuda")]
impl Drop for Held {
    fn drop(&mut self) {
        match self.kind {
            Kind::Free => self.device.give_stream(self.stream.clone()),
            Kind::Foreign => self.device.close_stream(&self.stream),
            Kind::Current => {}
        }
    }
}

impl Stream {
    /// A stream of the device that nobody else has.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// assert_eq!(Stream::new(&Device::cpu())?.device(), Device::cpu());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if the device is not there.
    pub fn new(device: &Device) -> Result<Stream> {
        Stream::with_priority(device, 0)
    }

    /// A stream whose blocks go before those of streams with higher numbers, as in CUDA: -1 before 0. Numbers beyond what the
    /// device knows are the nearest that it does.
    ///
    /// ```
    /// use lazuli::{Device, Stream, Tensor};
    /// let urgent = Stream::with_priority(&Device::best(), -1)?;
    /// let x = Tensor::from([1.0f32, 2.0]).to(&Device::best());
    /// assert_eq!(urgent.scope(|| (x + 1.0).to_vec::<f32>())?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if the device is not there.
    pub fn with_priority(device: &Device, priority: i32) -> Result<Stream> {
        let queue = match Backend::open(*device)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => {
                let stream = device.take_stream(priority)?;
                Queue::Cuda(Arc::new(Held { device, stream, kind: Kind::Free }))
            }
            _ => Queue::Host,
        };
        #[cfg(not(feature = "cuda"))]
        let _ = priority;
        Ok(Stream { device: *device, queue })
    }

    /// A `CUstream` (or `cudaStream_t`, which is the same) of another library, such as that of `torch.cuda.current_stream()`;
    /// null is the default stream. What is computed on it comes after what the library has started there, and before what it
    /// starts then. The stream may go when the last handle of this one has.
    ///
    /// # Safety
    /// On a GPU, it is a stream of the device's primary context (that of CUDA's runtime), and there until the handles are
    /// dropped.
    ///
    /// ```
    /// use lazuli::{Device, Stream, Tensor};
    /// // SAFETY: null is the default stream.
    /// let stream = unsafe { Stream::external(&Device::best(), std::ptr::null_mut()) }?;
    /// let x = Tensor::from([1.0f32, 2.0]).to(&Device::best());
    /// assert_eq!(stream.scope(|| (x * 2.0).to_vec::<f32>())?, [2.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if the device is not there.
    pub unsafe fn external(device: &Device, stream: *mut c_void) -> Result<Stream> {
        let queue = match Backend::open(*device)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => {
                // SAFETY: the caller's promise.
                let stream = unsafe { CudaDevice::wrap_stream(stream) };
                Queue::Cuda(Arc::new(Held { device, stream, kind: Kind::Foreign }))
            }
            _ => Queue::Host,
        };
        #[cfg(not(feature = "cuda"))]
        let _ = stream;
        Ok(Stream { device: *device, queue })
    }

    /// The stream that this thread's work on the device goes to.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// let side = Stream::new(&Device::best())?;
    /// let inside = side.scope(|| Stream::current(&Device::best()))?;
    /// assert_eq!(inside.as_raw(), side.as_raw());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if the device is not there.
    pub fn current(device: &Device) -> Result<Stream> {
        let queue = match Backend::open(*device)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => {
                let stream = device.stream();
                Queue::Cuda(Arc::new(Held { device, stream, kind: Kind::Current }))
            }
            _ => Queue::Host,
        };
        Ok(Stream { device: *device, queue })
    }

    /// The device.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// assert_eq!(Stream::current(&Device::cpu())?.device(), Device::cpu());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.device
    }

    /// The `CUstream`, for other libraries to start work on; null where the device has none. What they do with a tensor's
    /// memory on it comes after what computes the tensor on it.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// assert!(Stream::new(&Device::cpu())?.as_raw().is_null());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn as_raw(&self) -> *mut c_void {
        match &self.queue {
            Queue::Host => std::ptr::null_mut(),
            #[cfg(feature = "cuda")]
            Queue::Cuda(held) => held.stream.share(),
        }
    }

    /// While `f` runs, this thread's work on the device goes to the stream: evaluations, copies and allocations. What is only
    /// recorded meanwhile goes where it is evaluated.
    ///
    /// ```
    /// use lazuli::{Device, Stream, Tensor};
    /// let side = Stream::new(&Device::best())?;
    /// let x = Tensor::rand([100], 1).to(&Device::best());
    /// let y = x.exp();
    /// side.scope(|| y.eval())?; // on the side
    /// assert_eq!(y.log().to_vec::<f32>()?.len(), 100); // and this not, after it
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> T {
        match &self.queue {
            Queue::Host => f(),
            #[cfg(feature = "cuda")]
            Queue::Cuda(held) => held.device.with_stream(&held.stream, f),
        }
    }

    /// Waits until all that the stream was given has been done.
    ///
    /// ```
    /// use lazuli::{Device, Stream, Tensor};
    /// let side = Stream::new(&Device::best())?;
    /// side.scope(|| Tensor::rand([1000], 1).to(&Device::best()).exp().eval())?;
    /// side.synchronize()?;
    /// assert!(side.is_idle()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.queue {
            Queue::Host => Ok(()),
            #[cfg(feature = "cuda")]
            Queue::Cuda(held) => held.device.synchronize_stream(&held.stream),
        }
    }

    /// Whether all that the stream was given has been done.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// assert!(Stream::new(&Device::cpu())?.is_idle()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if any of it failed.
    pub fn is_idle(&self) -> Result<bool> {
        match &self.queue {
            Queue::Host => Ok(true),
            #[cfg(feature = "cuda")]
            Queue::Cuda(held) => held.device.is_idle(&held.stream),
        }
    }

    /// An event that is reached when all that the stream was given so far has been done.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// let event = Stream::current(&Device::best())?.record()?;
    /// event.synchronize()?;
    /// assert!(event.is_reached()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if the device does not work.
    pub fn record(&self) -> Result<Event> {
        let moment = match &self.queue {
            Queue::Host => Moment::Host(Instant::now()),
            #[cfg(feature = "cuda")]
            Queue::Cuda(held) => {
                Moment::Cuda(held.device.clone(), Arc::new(held.device.record(&held.stream)?))
            }
        };
        Ok(Event { device: self.device, moment })
    }

    /// What the stream is given from now on is done after the event, on whatever stream and GPU that was recorded. Tensors
    /// need no such call; the work of other libraries may.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// let [first, second] = [Stream::new(&Device::best())?, Stream::new(&Device::best())?];
    /// second.wait(&first.record()?)?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if the device does not work.
    pub fn wait(&self, event: &Event) -> Result<()> {
        match (&self.queue, &event.moment) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(held), Moment::Cuda(_, moment)) => held.device.wait_for_event(&held.stream, moment),
            #[cfg(feature = "cuda")]
            (Queue::Host, Moment::Cuda(..)) => event.synchronize(),
            (_, Moment::Host(_)) => Ok(()),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.device)
    }
}

/// A moment of a [`Stream`]: made by [`Stream::record`], reached when what the stream was given before has been done.
///
/// ```
/// use lazuli::{Device, Stream, Tensor};
/// let device = Device::best();
/// let stream = Stream::current(&device)?;
/// let start = stream.record()?;
/// Tensor::rand([1000], 1).to(&device).exp().eval()?;
/// let end = stream.record()?;
/// assert!(end.seconds_since(&start)? >= 0.0);
/// assert!(end.is_reached()?);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone)]
pub struct Event {
    device: Device,
    moment: Moment,
}

#[derive(Clone)]
enum Moment {
    Host(Instant),
    #[cfg(feature = "cuda")]
    Cuda(Arc<CudaDevice>, Arc<CudaEvent>),
}

impl Event {
    /// Waits for it.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// Stream::current(&Device::best())?.record()?.synchronize()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if what comes before it failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.moment {
            Moment::Host(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Moment::Cuda(device, event) => device.wait_until(event),
        }
    }

    /// Whether it has been reached.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// assert!(Stream::current(&Device::cpu())?.record()?.is_reached()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if what comes before it failed.
    pub fn is_reached(&self) -> Result<bool> {
        match &self.moment {
            Moment::Host(_) => Ok(true),
            #[cfg(feature = "cuda")]
            Moment::Cuda(device, event) => device.is_reached(event),
        }
    }

    /// Seconds from an earlier event of the same device to this one, by the device's clock. It waits for both.
    ///
    /// ```
    /// use lazuli::{Device, Stream};
    /// let stream = Stream::current(&Device::best())?;
    /// let (start, end) = (stream.record()?, stream.record()?);
    /// assert!(end.seconds_since(&start)? >= 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if the other one is of another device, or if what comes before either failed.
    pub fn seconds_since(&self, earlier: &Event) -> Result<f64> {
        match (&earlier.moment, &self.moment) {
            (Moment::Host(start), Moment::Host(end)) => {
                Ok(end.saturating_duration_since(*start).as_secs_f64())
            }
            #[cfg(feature = "cuda")]
            (Moment::Cuda(device, start), Moment::Cuda(other, end)) if Arc::ptr_eq(device, other) => {
                device.wait_until(start)?;
                device.wait_until(end)?;
                device.seconds_between(start, end)
            }
            #[cfg(feature = "cuda")]
            _ => Err(crate::Error::Device {
                device: self.device.to_string(),
                operation: "time".into(),
                message: format!("the earlier event is of {}", earlier.device),
            }),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.device)
    }
}
