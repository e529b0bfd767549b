//! CUDA devices: memory, copies, kernels and timing, on one stream per device.
//!
//! cudarc loads the driver's library when the program runs, but panics where the library or one of its functions
//! is missing. So everything here starts at [`driver`], which looks for the library and for every function that
//! this module can reach ([`REQUIRED_FUNCTIONS`]) before the first call; without them there is no
//! [`CudaDevice`] to call anything on.
//!
//! All work on a device is ordered by its stream, allocation and release included. So a buffer may be dropped
//! right after the launch that uses it, and no events are needed to order anything.

mod kernel;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError, result};

use crate::runtime::fault::Faults;
use crate::runtime::memory::{Counter, Memory};
use crate::{Error, Result};
pub(crate) use kernel::{CudaKernel, DEFAULT_SHARED_BYTES};

/// Every function of the driver that the calls below can reach through cudarc.
const REQUIRED_FUNCTIONS: &[&str] = &[
    "cuInit",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetMemPool",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuLaunchKernel",
];

/// `cuEventElapsedTime`. Drivers before 12.8 lack the second version, the only one that cudarc's bindings for
/// CUDA 13 call; the two differ in nothing that matters here. The status is a plain integer, as in C.
type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> u32;

/// The driver, once it is known to be whole and has been initialised.
struct Driver {
    device_count: usize,
    elapsed_time: ElapsedTime,
}

/// Why there is no driver.
struct NoDriver {
    reason: String,
    hint: &'static str,
    /// The machine simply has no NVIDIA device or driver, as opposed to one that does not work.
    none_installed: bool,
}

/// Looks for the driver on the first call.
fn driver() -> Result<&'static Driver, &'static NoDriver> {
    static DRIVER: OnceLock<Result<Driver, NoDriver>> = OnceLock::new();
    DRIVER.get_or_init(find_driver).as_ref()
}

fn find_driver() -> Result<Driver, NoDriver> {
    const INSTALL: &str = "Install NVIDIA's driver, or evaluate on the CPU";
    const UPDATE: &str = "Update NVIDIA's driver (`nvidia-smi` shows its version), or evaluate on the CPU";
    // SAFETY: this loads the driver's library and closes it again.
    if !unsafe { sys::is_culib_present() } {
        return Err(NoDriver {
            reason: "the driver's library (libcuda.so.1 or nvcuda.dll) is not there".to_owned(),
            hint: INSTALL,
            none_installed: true,
        });
    }
    // SAFETY: the library is there, so this loads it for the rest of the process and does not panic.
    let library = unsafe { sys::culib() };
    // SAFETY: the symbols are only looked up, not called.
    let has = |name: &str| unsafe { library.get::<*const c_void>(name) }.is_ok();
    let mut missing: Vec<&str> = REQUIRED_FUNCTIONS.iter().copied().filter(|name| !has(name)).collect();
    let elapsed_time = ["cuEventElapsedTime_v2", "cuEventElapsedTime"].into_iter().find_map(|name| {
        // SAFETY: both have the type that `cuda.h` declares, and the library is never closed.
        unsafe { library.get::<ElapsedTime>(name) }.ok().map(|symbol| *symbol)
    });
    if elapsed_time.is_none() {
        missing.push("cuEventElapsedTime");
    }
    let (Some(elapsed_time), []) = (elapsed_time, missing.as_slice()) else {
        return Err(NoDriver {
            reason: format!("the driver is too old and lacks {}", missing.join(", ")),
            hint: UPDATE,
            none_installed: false,
        });
    };
    let device_count = result::init().and_then(|()| result::device::get_count());
    match device_count {
        Ok(count) => Ok(Driver { device_count: usize::try_from(count).unwrap_or(0), elapsed_time }),
        Err(error) => Err(NoDriver {
            reason: format!("the driver did not start: {}", words(error)),
            hint: "Check that `nvidia-smi` lists the device and that this process may use it, \
                   or evaluate on the CPU",
            none_installed: error.0 == CUresult::CUDA_ERROR_NO_DEVICE,
        }),
    }
}

/// The number of CUDA devices: 0 where there is no driver or no device.
///
/// # Errors
/// [`Error::Unavailable`] where there is a driver that does not work.
pub(crate) fn device_count() -> Result<usize> {
    match driver() {
        Ok(driver) => Ok(driver.device_count),
        Err(no_driver) if no_driver.none_installed => Ok(0),
        Err(no_driver) => Err(no_driver.error("CUDA")),
    }
}

impl NoDriver {
    fn error(&self, what: impl Into<String>) -> Error {
        Error::Unavailable { what: what.into(), reason: self.reason.clone(), hint: self.hint.to_owned() }
    }
}

/// The driver's name for an error and its explanation.
fn words(error: DriverError) -> String {
    match (error.error_name(), error.error_string()) {
        (Ok(name), Ok(text)) => format!("{}: {}", name.to_string_lossy(), text.to_string_lossy()),
        _ => format!("error {}", error.0 as u32),
    }
}

/// One device with its stream. There is one value per device in a process, which lives until the process ends.
pub(crate) struct CudaDevice {
    ordinal: usize,
    /// For messages: `cuda:0 (NVIDIA H200)`.
    label: String,
    name: String,
    architecture: String,
    multiprocessors: u32,
    total_memory: u64,
    shared_bytes_per_block: u32,
    elapsed_time: ElapsedTime,
    /// Where stream-ordered allocations come from, on the devices that have them.
    pool: Option<Pool>,
    /// What buffers have.
    counter: Counter,
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
}

/// The driver's handle of a memory pool.
struct Pool(sys::CUmemoryPool);

// SAFETY: the handle is no memory of this process. The driver's functions may be called with it from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl CudaDevice {
    /// The device with this number, opened on the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where there is no driver or no such device.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<CudaDevice>> {
        static DEVICES: Mutex<Option<HashMap<usize, Arc<CudaDevice>>>> = Mutex::new(None);
        let label = || format!("cuda:{ordinal}");
        let driver = driver().map_err(|no_driver| no_driver.error(label()))?;
        if ordinal >= driver.device_count {
            return Err(Error::Unavailable {
                what: label(),
                reason: match driver.device_count {
                    0 => "no device was found".to_owned(),
                    1 => "one device was found, cuda:0".to_owned(),
                    n => format!("{n} devices were found, cuda:0 to cuda:{}", n - 1),
                },
                hint: "Ask for one of the devices there are (CUDA_VISIBLE_DEVICES may hide some), \
                       or evaluate on the CPU"
                    .to_owned(),
            });
        }
        // The lock is held while the device opens, so that no two threads open it twice.
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let devices = devices.get_or_insert_default();
        if let Some(device) = devices.get(&ordinal) {
            return Ok(Arc::clone(device));
        }
        let device = CudaDevice::new(ordinal, driver).map_err(|error| Error::Unavailable {
            what: label(),
            reason: format!("the device could not be opened: {}", words(error)),
            hint: "Check that `nvidia-smi` lists the device as healthy and not used exclusively by another \
                   process, or evaluate on the CPU"
                .to_owned(),
        })?;
        let device = Arc::new(device);
        devices.insert(ordinal, Arc::clone(&device));
        Ok(device)
    }

    fn new(ordinal: usize, driver: &Driver) -> Result<CudaDevice, DriverError> {
        let context = CudaContext::new(ordinal)?;
        // SAFETY: all work goes to one stream, which orders it. This comes before the stream is made, or cudarc
        // would wait for the whole device there.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream()?;
        let pool = context.has_async_alloc().then(|| memory_pool(&context)).transpose()?;
        let name = context.name()?;
        let (major, minor) = context.compute_capability()?;
        let attribute = |attribute| Ok(u32::try_from(context.attribute(attribute)?).unwrap_or(0));
        Ok(CudaDevice {
            ordinal,
            label: format!("cuda:{ordinal} ({name})"),
            name,
            architecture: format!("sm_{major}{minor}"),
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            total_memory: context.total_mem()? as u64,
            shared_bytes_per_block: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            elapsed_time: driver.elapsed_time,
            pool,
            counter: Counter::new(),
            stream,
            context,
        })
    }

    /// The number of the device.
    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The product's name, such as `NVIDIA H200`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What kernels are compiled for, such as `sm_90`.
    pub(crate) fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The number of multiprocessors, each of which runs blocks of its own.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// The device's memory in bytes, used or not.
    pub(crate) fn total_memory(&self) -> u64 {
        self.total_memory
    }

    /// The most shared memory that a block can have, static and dynamic together.
    pub(crate) fn shared_bytes_per_block(&self) -> u32 {
        self.shared_bytes_per_block
    }

    /// A buffer with whatever bytes were there before. A buffer of no bytes takes no memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after what was released has been given back to the device and tried again.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<CudaBuffer> {
        self.enter("allocate")?;
        let memory = if bytes == 0 {
            None
        } else {
            match self.allocate_once(bytes) {
                Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                    self.trim()?;
                    Some(self.allocate_once(bytes))
                }
                other => Some(other),
            }
        };
        let memory = memory.transpose().map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                Error::OutOfMemory { device: self.label.clone(), requested: bytes as u64 }
            }
            _ => self.failed("allocate", error),
        })?;
        self.counter.take(bytes);
        Ok(CudaBuffer { memory, device: Arc::clone(self), faults: Faults::default() })
    }

    /// Counts what buffers have.
    pub(crate) fn counter(&self) -> &Counter {
        &self.counter
    }

    /// What buffers have, beside what the pool has from the device.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn memory(&self) -> Result<Memory> {
        let mut reserved = 0u64;
        if let Some(pool) = &self.pool {
            let operation = "ask for the pool's size";
            self.enter(operation)?;
            // SAFETY: the pool is the device's own, and this attribute is a `cuuint64_t`.
            unsafe {
                result::mem_pool::get_attribute(
                    pool.0,
                    sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                    (&raw mut reserved).cast(),
                )
            }
            .map_err(|error| self.failed(operation, error))?;
        }
        Ok(self.counter.read(reserved))
    }

    fn allocate_once(&self, bytes: usize) -> Result<CudaSlice<u8>, DriverError> {
        // SAFETY: any bytes are valid for `u8`, and nothing on the host reads them but through `download`.
        unsafe { self.stream.alloc::<u8>(bytes) }
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

    /// Waits for the device, then gives memory that buffers have released back to it.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn trim(&self) -> Result<()> {
        self.synchronize_for("trim the memory pool")?;
        if let Some(pool) = &self.pool {
            // SAFETY: the pool is the device's own and lives as long as the device.
            unsafe { result::mem_pool::trim_to(pool.0, 0) }
                .map_err(|error| self.failed("trim the memory pool", error))?;
        }
        Ok(())
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
        self.enter(operation)?;
        // SAFETY: the buffer is of this device, alive, and as long as stated. Its release comes later in the stream.
        unsafe {
            result::memset_d8_async(buffer.device_pointer(), byte, buffer.bytes(), self.stream.cu_stream())
        }
        .map_err(|error| self.failed(operation, error))
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
        self.enter(operation)?;
        // SAFETY: the buffer is of this device, alive, and as long as the slice.
        unsafe { result::memcpy_htod_async(buffer.device_pointer(), host, self.stream.cu_stream()) }
            .map_err(|error| self.failed(operation, error))?;
        // The driver may still be reading the slice, which is only borrowed.
        self.synchronize_for(operation)
    }

    /// Waits for all earlier work, and copies to the host. The buffer has the same number of bytes.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn download(&self, buffer: &CudaBuffer, host: &mut [u8]) -> Result<()> {
        let operation = "copy from the device";
        self.check_buffer(operation, buffer, host.len())?;
        if host.is_empty() {
            return self.synchronize_for(operation);
        }
        self.enter(operation)?;
        // SAFETY: the buffer is of this device, alive, and as long as the slice, and the slice is not used before
        // the stream has been waited for.
        unsafe { result::memcpy_dtoh_async(host, buffer.device_pointer(), self.stream.cu_stream()) }
            .map_err(|error| self.failed(operation, error))?;
        self.synchronize_for(operation)
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
        self.enter(operation)?;
        // SAFETY: both buffers are of this device, alive, as long as stated, and, being two, do not overlap.
        unsafe {
            result::memcpy_dtod_async(
                to.device_pointer(),
                from.device_pointer(),
                from.bytes(),
                self.stream.cu_stream(),
            )
        }
        .map_err(|error| self.failed(operation, error))
    }

    /// Waits until all work has been done.
    ///
    /// # Errors
    /// [`Error::Device`] where any of it failed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.synchronize_for("synchronize")
    }

    /// The seconds that the device takes for what the closure starts, by the device's own clock. It waits.
    ///
    /// # Errors
    /// What the closure returns, and [`Error::Device`].
    pub(crate) fn time(&self, f: impl FnOnce() -> Result<()>) -> Result<f64> {
        let operation = "time";
        let failed = |error| self.failed(operation, error);
        self.enter(operation)?;
        let event = || self.stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).map_err(failed);
        let start: CudaEvent = event()?;
        f()?;
        self.enter(operation)?;
        let end = event()?;
        self.synchronize_for(operation)?;
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

    /// Makes the device current on this thread, after reporting what a drop could not.
    fn enter(&self, operation: &str) -> Result<()> {
        self.context.check_err().map_err(|error| {
            // cudarc keeps failures of drops for the next call; that call has not happened then.
            self.failed(&format!("a release of memory, or work before it (noticed by {operation}),"), error)
        })?;
        self.context.bind_to_thread().map_err(|error| self.failed(operation, error))
    }

    fn synchronize_for(&self, operation: &str) -> Result<()> {
        self.enter(operation)?;
        self.stream.synchronize().map_err(|error| self.failed(operation, error))
    }

    fn failed(&self, operation: &str, error: DriverError) -> Error {
        Error::Device { device: self.label.clone(), operation: operation.to_owned(), message: words(error) }
    }

    /// A buffer of another device or length would be read or written out of bounds.
    fn check_buffer(&self, operation: &'static str, buffer: &CudaBuffer, bytes: usize) -> Result<()> {
        if !std::ptr::eq(self, Arc::as_ptr(&buffer.device)) {
            let message = format!("the buffer is of {}, not {}", buffer.device.label, self.label);
            return Err(Error::internal(operation, message));
        }
        if buffer.bytes() != bytes {
            let message = format!("the buffer has {} bytes, not {bytes}", buffer.bytes());
            return Err(Error::internal(operation, message));
        }
        Ok(())
    }
}

/// The pool behind stream-ordered allocations, told to keep what is released instead of giving it back to the
/// device whenever the stream is waited for. It belongs to the device, so other users of the device in this
/// process share it; [`CudaDevice::trim`] empties it.
fn memory_pool(context: &CudaContext) -> Result<Pool, DriverError> {
    // SAFETY: the device handle is the context's own.
    let pool = unsafe { result::device::get_mem_pool(context.cu_device()) }?;
    let mut keep = u64::MAX;
    // SAFETY: the pool is the device's, and this attribute is a `cuuint64_t`.
    unsafe {
        result::mem_pool::set_attribute(
            pool,
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            (&raw mut keep).cast(),
        )
    }?;
    Ok(Pool(pool))
}

/// Memory of a device. Dropping it releases the memory after the work that has been started on the device.
pub(crate) struct CudaBuffer {
    /// `None` for no bytes.
    memory: Option<CudaSlice<u8>>,
    device: Arc<CudaDevice>,
    faults: Faults,
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        self.device.counter.give_back(self.bytes());
    }
}

impl CudaBuffer {
    /// The address on the device: 0 for no bytes.
    pub(crate) fn device_pointer(&self) -> u64 {
        use cudarc::driver::DevicePtr;
        self.memory.as_ref().map_or(0, |memory| memory.device_ptr(&self.device.stream).0)
    }

    /// The length.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, CudaSlice::len)
    }

    /// What may be wrong with what it holds.
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> &Arc<CudaDevice> {
        &self.device
    }
}

#[cfg(test)]
mod tests;
