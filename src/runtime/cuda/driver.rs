//! CUDA devices: memory, copies, kernels and timing, each on the stream of the thread that asks.
//!
//! cudarc loads the driver's library when the program runs, but panics where the library or one of its functions
//! is missing. So everything here starts at [`driver`], which looks for the library and for every function that
//! this module can reach ([`REQUIRED_FUNCTIONS`]) before the first call; without them there is no
//! [`CudaDevice`] to call anything on.
//!
//! Work is ordered by its stream, allocation and release included, and buffers order streams (`stream`). So a buffer may
//! be dropped right after the launch that uses it.

mod buffer;
mod free_lists;
mod graph;
mod kernel;
mod memory;
mod order;
mod pinned;
mod pool;
mod recent;
mod stream;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{CudaContext, CudaEvent, DriverError, result};

use crate::runtime::host::HostBuffer;
use crate::runtime::memory::{Counter, Memory};
use crate::{Error, Result};
pub(crate) use buffer::CudaBuffer;
use free_lists::FreeLists;
pub(crate) use graph::{CudaGraph, Node};
pub(crate) use kernel::{CudaKernel, DEFAULT_SHARED_BYTES};
pub(crate) use order::Access;
pub(crate) use pinned::{Landing, is_pinned};
use pool::Pool;
use recent::{Recent, is_final};
pub(crate) use stream::CudaStream;

/// Every function of the driver that the calls below can reach through cudarc.
const REQUIRED_FUNCTIONS: &[&str] = &[
    "cuInit",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuCtxGetCurrent",
    "cuCtxGetStreamPriorityRange",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuStreamCreateWithPriority",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuMemAllocFromPoolAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemHostAlloc",
    "cuMemFree_v2",
    "cuMemPoolCreate",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyPeerAsync",
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

/// What drivers of CUDA 12.3 and later have, beside the functions that everything needs.
const GRAPH_FUNCTIONS: &[&str] = &[
    "cuGraphCreate",
    "cuGraphAddKernelNode_v2",
    "cuGraphAddDependencies_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
];

/// `cuEventElapsedTime`. Drivers before 12.8 lack the second version, the only one that cudarc's bindings for
/// CUDA 13 call; the two differ in nothing that matters here. The status is a plain integer, as in C.
type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> u32;

/// The driver, once it is known to be whole and has been initialised.
struct Driver {
    device_count: usize,
    elapsed_time: ElapsedTime,
    has_graphs: bool,
    has_tensor_maps: bool,
    has_launch_attributes: bool,
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
        Ok(count) => Ok(Driver {
            device_count: usize::try_from(count).unwrap_or(0),
            elapsed_time,
            has_graphs: GRAPH_FUNCTIONS.iter().all(|name| has(name)),
            has_tensor_maps: has("cuTensorMapEncodeTiled"),
            has_launch_attributes: has("cuLaunchKernelEx"),
        }),
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

/// The driver's name for an error, its number and its explanation.
fn words(error: DriverError) -> String {
    let number = error.0 as u32;
    match (error.error_name(), error.error_string()) {
        (Ok(name), Ok(text)) => format!("{} ({number}): {}", name.to_string_lossy(), text.to_string_lossy()),
        _ => format!("error {number}"),
    }
}

/// One device with its streams. There is one value per device in a process, which lives until the process ends.
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
    has_graphs: bool,
    has_tensor_maps: bool,
    has_launch_attributes: bool,
    /// Where stream-ordered allocations come from, on the devices that have them.
    pool: Option<Pool>,
    /// What they are tried from first.
    free_lists: FreeLists,
    /// What buffers have.
    usage: Counter,
    /// Where work goes that a thread sends to no other stream.
    main: Arc<CudaStream>,
    /// Host memory that may still be copied from, until the events.
    uploads: Mutex<Vec<(CudaEvent, Arc<HostBuffer>)>>,
    recent: Mutex<Recent>,
    /// What the first error said that nothing comes after.
    lost: OnceLock<String>,
    /// Those that nobody has now.
    free_streams: Mutex<Vec<Arc<CudaStream>>>,
    context: Arc<CudaContext>,
}

impl CudaDevice {
    /// The device with this number, opened on the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where there is no driver or no such device.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<CudaDevice>> {
        static DEVICES: Mutex<Option<HashMap<usize, Arc<CudaDevice>>>> = Mutex::new(None);
        /// The first of them again: each evaluation asks, and needs no lock.
        static FIRST: [OnceLock<Arc<CudaDevice>>; 16] = [const { OnceLock::new() }; 16];
        if let Some(device) = FIRST.get(ordinal).and_then(OnceLock::get) {
            return Ok(Arc::clone(device));
        }
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
        if let Some(first) = FIRST.get(ordinal) {
            first.get_or_init(|| Arc::clone(&device));
        }
        Ok(device)
    }

    fn new(ordinal: usize, driver: &Driver) -> Result<CudaDevice, DriverError> {
        let context = CudaContext::new(ordinal)?;
        context.bind_to_thread()?;
        let main = CudaStream::create(0)?;
        let pool = context.has_async_alloc().then(|| Pool::new(context.cu_device())).transpose()?;
        let total_memory = context.total_mem()? as u64;
        let name = context.name()?;
        let (major, minor) = context.compute_capability()?;
        let attribute = |attribute| Ok(u32::try_from(context.attribute(attribute)?).unwrap_or(0));
        Ok(CudaDevice {
            ordinal,
            label: format!("cuda:{ordinal} ({name})"),
            name,
            architecture: format!("sm_{major}{minor}"),
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            total_memory,
            shared_bytes_per_block: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            elapsed_time: driver.elapsed_time,
            has_graphs: driver.has_graphs,
            has_tensor_maps: driver.has_tensor_maps,
            has_launch_attributes: driver.has_launch_attributes,
            pool,
            free_lists: FreeLists::new(total_memory),
            usage: Counter::new(),
            main,
            uploads: Mutex::default(),
            recent: Mutex::default(),
            lost: OnceLock::new(),
            free_streams: Mutex::default(),
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

    /// Its processors' clock and its memory's, in kHz, and the bits that its memory moves at a time.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn clocks(&self) -> Result<[u32; 3]> {
        let attribute = |attribute| {
            let value = self.context.attribute(attribute);
            value
                .map(|value| u32::try_from(value).unwrap_or(0))
                .map_err(|error| self.failed("ask for clocks", error))
        };
        Ok([
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        ])
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

    /// Counts what buffers have.
    pub(crate) fn usage(&self) -> &Counter {
        &self.usage
    }

    /// What buffers have, beside what the pool has from the device.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn memory(&self) -> Result<Memory> {
        let mut reserved = 0;
        if let Some(pool) = &self.pool {
            let operation = "ask for the pool's size";
            self.enter(operation)?;
            reserved = pool.reserved().map_err(|error| self.failed(operation, error))?;
        }
        Ok(self.usage.read(reserved))
    }

    /// Waits for the device, then gives memory that buffers have released back to it.
    ///
    /// # Errors
    /// [`Error::Device`], also for failures of earlier work.
    pub(crate) fn trim(&self) -> Result<()> {
        let operation = "trim the memory pool";
        self.enter(operation)?;
        let released = self.release(self.free_lists.clear());
        self.synchronize_for(operation)?;
        let trimmed = self.pool.as_ref().map_or(Ok(()), Pool::trim);
        released.and(trimmed).map_err(|error| self.failed(operation, error))
    }

    /// Notes what is launched now: of these kernels the one with the number, or all of them as one graph.
    pub(crate) fn launching(&self, kernels: &Arc<[String]>, number: Option<usize>) {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).note(kernels, number);
    }

    /// Waits until all work on all streams has been done.
    ///
    /// # Errors
    /// [`Error::Device`] where any of it failed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.synchronize_for("synchronize")
    }

    /// The seconds that the device takes for what the closure starts on this thread's stream, by the device's own clock.
    /// It waits.
    ///
    /// # Errors
    /// What the closure returns, and [`Error::Device`].
    pub(crate) fn time(&self, f: impl FnOnce() -> Result<()>) -> Result<f64> {
        let stream = self.stream();
        let start = self.record(&stream)?;
        f()?;
        let end = self.record(&stream)?;
        self.wait_until(&end)?;
        self.seconds_between(&start, &end)
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
        self.context.synchronize().map_err(|error| self.failed(operation, error))
    }

    fn failed(&self, operation: &str, error: DriverError) -> Error {
        let mut message = words(error);
        if is_final(error) {
            let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            message += &format!(". {}", self.lost.get_or_init(|| recent().loss()));
        }
        Error::Device { device: self.label.clone(), operation: operation.to_owned(), message }
    }
}

#[cfg(test)]
mod tests;
