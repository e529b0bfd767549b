//! What the executor asks of a device: memory, compiled kernels, launches.

use std::ffi::c_void;
use std::sync::Arc;

use lazuli_codegen::schedule::Launch;

use super::buffer::Buffer;
use super::checks::Notes;
use super::cpu::{self, CpuModule};
#[cfg(feature = "cuda")]
use super::cuda::driver::{Access, CudaDevice, CudaKernel, is_pinned};
use super::device::{Device, DeviceKind};
use super::host::HostBuffer;
use super::join::Join;
use super::tiles::{MapWords, Tiles};
use crate::error::IndexCheck;
#[cfg(feature = "cuda")]
use crate::stats::{self, Counter};
use crate::{Error, Result, stderr};

/// An opened device.
#[derive(Clone)]
pub(crate) enum Backend {
    /// With what its compiled kernels are found by.
    Cpu(&'static str),
    #[cfg(feature = "emulate")]
    Emulated,
    #[cfg(feature = "cuda")]
    Cuda(Arc<CudaDevice>),
    Interpreter,
    /// Kernels in the interpreter of kernels.
    Interpreted,
}

/// A compiled kernel in memory: on CUDA each of its functions.
pub(crate) enum Module {
    Cpu(CpuModule),
    #[cfg(feature = "emulate")]
    Emulated(Vec<super::emulate::EmulatedModule>),
    #[cfg(feature = "cuda")]
    Cuda(Vec<CudaKernel>),
}

impl Module {
    /// What its kernels get that copy such tiles of a buffer at an address.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver refuses it.
    pub(crate) fn tensor_map(&self, tiles: &Tiles, address: u64) -> Result<MapWords> {
        match self {
            #[cfg(feature = "emulate")]
            Module::Emulated(_) => Ok(tiles.emulated(address)),
            #[cfg(feature = "cuda")]
            Module::Cuda(kernels) => {
                let kernel = kernels.first().ok_or_else(|| missing("a copy of tiles"))?;
                kernel.tensor_map(tiles, address)
            }
            Module::Cpu(_) => {
                let _ = (tiles, address);
                Err(Error::internal("launch", "tiles are copied on a GPU"))
            }
        }
    }

    /// What its launches take of a GPU: the registers of the thread that has the most, and the least share of a multiprocessor's
    /// threads that run at once.
    pub(crate) fn occupancy(&self, launches: &[(String, Launch)]) -> Option<(u32, f64)> {
        #[cfg(feature = "cuda")]
        if let Module::Cuda(functions) = self {
            let own = |(function, launch): &(String, Launch)| {
                let kernel = functions.iter().find(|kernel| kernel.name() == function)?;
                kernel.occupancy(launch.block, launch.shared_bytes)
            };
            return launches
                .iter()
                .filter_map(own)
                .reduce(|(most, least), (registers, share)| (most.max(registers), least.min(share)));
        }
        let _ = launches;
        None
    }

    /// One of its functions on a GPU, and the blocks of a launch.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_cuda(&self, function: &str, launch: &Launch) -> Result<(&CudaKernel, [u32; 3])> {
        let kernel = match self {
            Module::Cuda(functions) => functions.iter().find(|kernel| kernel.name() == function),
            _ => None,
        };
        let kernel = kernel.ok_or_else(|| missing(function))?;
        Ok((kernel, launch_grid(launch.grid(), "cuda", function)?))
    }
}

impl Backend {
    /// Opens a device. The CPU without a C compiler becomes the interpreter, with one warning.
    pub(crate) fn open(device: Device) -> Result<Backend> {
        match device.0 {
            DeviceKind::Cpu(_) => Ok(match cpu::identity() {
                Ok(identity) => Backend::Cpu(identity),
                Err(error) => Backend::without_compiler(&error),
            }),
            DeviceKind::Interpreter => Ok(Backend::Interpreter),
            DeviceKind::Interpreted(_) => Ok(Backend::Interpreted),
            #[cfg(feature = "emulate")]
            DeviceKind::Emulated => super::emulate::availability().map(|()| Backend::Emulated),
            #[cfg(not(feature = "emulate"))]
            DeviceKind::Emulated => Err(Error::Unavailable {
                what: device.to_string(),
                reason: "the crate was built without it".into(),
                hint: "Build with the feature `emulate`".into(),
            }),
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda(ordinal) => CudaDevice::open(ordinal).map(Backend::Cuda),
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) => Err(Error::Unavailable {
                what: device.to_string(),
                reason: "the crate was built without it".into(),
                hint: "Build with the feature `cuda`".into(),
            }),
        }
    }

    /// What takes the place of a CPU without a C compiler, with one warning.
    fn without_compiler(error: &Error) -> Backend {
        static WARN: std::sync::Once = std::sync::Once::new();
        WARN.call_once(|| stderr::warn(&format!("{error}. Falling back to the (slow) interpreter")));
        Backend::Interpreter
    }

    /// What takes its place where kernels could not be loaded: a CPU without a compiler runs what the cache has.
    pub(crate) fn after(&self, error: &Error) -> Option<Backend> {
        let is_missing = matches!(self, Backend::Cpu(_)) && cpu::Compiler::get().is_err();
        is_missing.then(|| Backend::without_compiler(error))
    }

    /// Memory with unspecified contents.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Buffer> {
        self.allocate_beside(bytes, 0)
    }

    /// The same for one of several results of a kernel, after so many others.
    pub(crate) fn allocate_beside(&self, bytes: usize, others: usize) -> Result<Buffer> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.allocate(bytes).map(Arc::new).map(Buffer::Cuda),
            _ => HostBuffer::allocate_beside(bytes, others).map(Arc::new).map(Buffer::Host),
        }
    }

    /// Memory filled with zeros.
    pub(crate) fn allocate_zeroed(&self, bytes: usize) -> Result<Buffer> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.allocate_zeroed(bytes).map(Arc::new).map(Buffer::Cuda),
            _ => HostBuffer::zeroed(bytes).map(Arc::new).map(Buffer::Host),
        }
    }

    /// Counters that are zero whenever no kernel runs: kernels that count leave zeros behind.
    pub(crate) fn counters(&self, bytes: usize) -> Result<Buffer> {
        match self {
            // Kernels of one stream run one after the other: they share the counters.
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.counters(bytes).map(Buffer::Cuda),
            _ => self.allocate_zeroed(bytes),
        }
    }

    /// Where the next launch of a kernel notes which of its checks failed.
    pub(crate) fn notes(&self, checks: &Arc<[IndexCheck]>) -> Result<Notes> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => super::checks::on_device(device, checks),
            _ => {
                #[cfg(not(feature = "cuda"))]
                let _ = checks; // looked at when the launch is over
                Ok(Notes::on_host())
            }
        }
    }

    /// Whether a launch may end before what it does.
    pub(crate) fn runs_ahead(&self) -> bool {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(_) => true,
            #[cfg(feature = "emulate")]
            Backend::Emulated => false,
            Backend::Cpu(_) | Backend::Interpreter | Backend::Interpreted => false,
        }
    }

    /// Whether the memory is the device's.
    pub(crate) fn holds(&self, buffer: &Buffer) -> bool {
        match (self, buffer) {
            #[cfg(feature = "cuda")]
            (Backend::Cuda(device), Buffer::Cuda(buffer)) => buffer.device().ordinal() == device.ordinal(),
            #[cfg(feature = "cuda")]
            (Backend::Cuda(_), Buffer::Host(_)) | (_, Buffer::Cuda(_)) => false,
            (_, Buffer::Host(_)) => true,
        }
    }

    /// The elements in this device's memory: shared where it is the same memory, else copied.
    pub(crate) fn import(&self, buffer: &Buffer) -> Result<Buffer> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => {
                let copy = device.allocate(buffer.bytes())?;
                match buffer {
                    Buffer::Cuda(other) if other.device().ordinal() == device.ordinal() => {
                        device.copy(other, &copy)?;
                    }
                    Buffer::Cuda(other) => {
                        device.copy_from_peer(other, &copy)?;
                        stats::add_many(Counter::BytesBetween, copy.bytes());
                    }
                    Buffer::Host(host) => {
                        match is_pinned(host) {
                            true => device.start_upload(&copy, host)?,
                            false => device.upload(&copy, host.as_slice())?,
                        }
                        stats::add_many(Counter::BytesUp, copy.bytes());
                    }
                }
                let copy = Buffer::Cuda(Arc::new(copy));
                copy.follow(std::iter::once(buffer), None);
                Ok(copy)
            }
            _ => buffer.to_host().map(Buffer::Host),
        }
    }

    /// Pieces that this device holds, in one buffer. On a GPU there is one row.
    pub(crate) fn join(&self, join: &Join) -> Result<Buffer> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => {
                // Rows are joined by a kernel, but for random numbers and constants that were joined before this was
                // the default device.
                if join.rows > 1 {
                    return self.import(&Buffer::Host(Arc::new(cpu::joined(join)?)));
                }
                let joined = device.allocate(join.row() * join.rows)?;
                let mut at = 0;
                for piece in join.pieces.iter().filter(|_| join.rows > 0) {
                    match &piece.buffer {
                        Buffer::Cuda(from) => {
                            device.copy_part(from, piece.start, &joined, at, piece.bytes)?;
                        }
                        Buffer::Host(_) => return Err(Error::internal("join", "a part is elsewhere")),
                    }
                    at += piece.bytes;
                }
                let joined = Buffer::Cuda(Arc::new(joined));
                joined.follow(join.pieces.iter().map(|piece| &piece.buffer), None);
                Ok(joined)
            }
            _ => cpu::joined(join).map(Arc::new).map(Buffer::Host),
        }
    }

    /// What this thread launches from now on comes after what others do with these buffers.
    #[cfg_attr(not(feature = "cuda"), allow(clippy::unused_self, reason = "nothing else runs ahead"))]
    pub(crate) fn order<'a>(
        &self,
        read: impl Iterator<Item = &'a Buffer>,
        written: impl Iterator<Item = &'a Buffer>,
    ) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Backend::Cuda(device) = self {
            let stream = device.stream();
            let uses = read.map(|buffer| (buffer, Access::Reads));
            for (buffer, access) in uses.chain(written.map(|buffer| (buffer, Access::Writes))) {
                if let Buffer::Cuda(buffer) = buffer {
                    buffer.use_on(&stream, access)?;
                }
            }
        }
        #[cfg(not(feature = "cuda"))]
        let _ = (read, written);
        Ok(())
    }

    /// Notes what is launched next: of these kernels the one with the number.
    #[cfg_attr(
        not(feature = "cuda"),
        allow(clippy::unused_self, reason = "others say at once what went wrong")
    )]
    pub(crate) fn launching(&self, kernels: &Arc<[String]>, number: usize) {
        #[cfg(feature = "cuda")]
        if let Backend::Cuda(device) = self {
            device.launching(kernels, Some(number));
        }
        #[cfg(not(feature = "cuda"))]
        let _ = (kernels, number);
    }

    /// Runs one function of a kernel.
    ///
    /// # Safety
    /// The arguments must be what the function's parameters are, with buffers as large as its accesses that this thread's
    /// stream may use ([`Backend::order`]).
    pub(crate) unsafe fn launch(
        &self,
        module: &Module,
        (function, launch): &(String, Launch),
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let grid = launch.grid();
        match module {
            // SAFETY: the caller's promise.
            Module::Cpu(module) => unsafe { module.run(function, grid[0], arguments) },
            #[cfg(feature = "emulate")]
            Module::Emulated(functions) => {
                let module = functions.iter().find(|module| module.name() == *function);
                let module = module.ok_or_else(|| missing(function))?;
                let grid = launch_grid(grid, "cuda (emulated)", function)?;
                // SAFETY: the caller's promise.
                unsafe { module.launch(grid, launch.block, launch.shared_bytes, arguments) }
            }
            #[cfg(feature = "cuda")]
            Module::Cuda(_) => match self {
                Backend::Cuda(device) => {
                    let (kernel, grid) = module.on_cuda(function, launch)?;
                    let (stream, shared) = (device.stream(), launch.shared_bytes);
                    // SAFETY: the caller's promise.
                    unsafe { device.launch(kernel, &stream, grid, launch.block, shared, arguments) }
                }
                _ => Err(Error::internal("launch", format!("{function} was compiled for another device"))),
            },
        }
    }

    /// The seconds of what `f` launches, by the device's own clock if it has one. Such a device is waited for.
    pub(crate) fn time(&self, f: impl FnOnce() -> Result<()>) -> Result<Option<f64>> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.time(f).map(Some),
            _ => f().map(|()| None),
        }
    }

    /// Waits until everything launched has ended.
    pub(crate) fn synchronize(&self) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => {
                device.synchronize()?;
                super::checks::read(device)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(any(feature = "cuda", feature = "emulate"))]
fn missing(function: &str) -> Error {
    Error::internal("launch", format!("{function} was not loaded"))
}

#[cfg(any(feature = "cuda", feature = "emulate"))]
fn launch_grid(grid: [u64; 3], device: &str, function: &str) -> Result<[u32; 3]> {
    let fits = grid[0] <= i32::MAX as u64 && grid[1] <= 65_535 && grid[2] <= 65_535;
    match fits {
        true => Ok([grid[0] as u32, grid[1] as u32, grid[2] as u32]),
        false => Err(Error::Device {
            device: device.into(),
            operation: format!("launch of {function}"),
            message: format!(
                "a grid of {grid:?} blocks exceeds the device's limits; evaluate in smaller parts"
            ),
        }),
    }
}
