//! Loaded kernels and their launches.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaFunction, DriverError, result, sys};
use cudarc::nvrtc::Ptx;
use lazuli_codegen::DType;
use lazuli_codegen::schedule::TensorMap;
use smallvec::SmallVec;

use super::{CudaDevice, CudaStream};
use crate::runtime::cuda::{cubin, dependent_launch};
use crate::runtime::tiles::{MapWords, Tiles};
use crate::{Error, Result};

/// A kernel may have this much shared memory, static and dynamic together, without asking for more.
pub(crate) const DEFAULT_SHARED_BYTES: u32 = 48 * 1024;

/// A loaded function of a kernel. Dropping it waits for the device and unloads it.
pub(crate) struct CudaKernel {
    function: CudaFunction,
    name: String,
    /// The dynamic shared memory that the driver allows at a launch.
    shared_limit: Mutex<u32>,
    /// It waits for the kernel before it itself.
    begins_early: bool,
    device: Arc<CudaDevice>,
}

impl CudaKernel {
    /// The function's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Registers of a thread, and which share of the threads that a multiprocessor can have it has at once, in blocks of this many
    /// threads and bytes of shared memory. `None` where the driver does not say.
    pub(crate) fn occupancy(&self, block: [u32; 3], dynamic_shared_bytes: u32) -> Option<(u32, f64)> {
        let threads: u32 = block.iter().product();
        self.allow_shared_bytes(dynamic_shared_bytes).ok()?;
        let registers = u32::try_from(self.function.num_regs().ok()?).ok()?;
        let bytes = dynamic_shared_bytes as usize;
        let blocks =
            self.function.occupancy_max_active_blocks_per_multiprocessor(threads, bytes, None).ok()?;
        let most =
            self.device.context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
        Some((registers, f64::from(blocks * threads) / f64::from(most.ok()?)))
    }

    /// The driver's map of such tiles of a buffer.
    ///
    /// # Errors
    /// [`Error::Device`], as for a buffer that does not begin at a multiple of 16 bytes.
    pub(crate) fn tensor_map(&self, tiles: &Tiles, address: u64) -> Result<MapWords> {
        let mut map = MapWords([0; 16]);
        let ty = match tiles.dtype {
            DType::BF16 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            _ => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        };
        let rank = tiles.axes.len();
        let extents: SmallVec<[u64; 5]> = tiles.axes.iter().map(|axis| axis.0).collect();
        // Neighbours are no stride.
        let strides: SmallVec<[u64; 5]> = tiles.axes.iter().skip(1).map(|axis| axis.1).collect();
        let mut of_tile: SmallVec<[u32; 5]> = smallvec::smallvec![1; rank];
        (of_tile[0], of_tile[1]) = (TensorMap::LINE, tiles.lines);
        let steps: SmallVec<[u32; 5]> = smallvec::smallvec![1; rank];
        // SAFETY: kernels with maps are for drivers that have this function (`has_tensor_maps`); all lists are as long as the rank,
        // but for the strides, which are one less; the map is 128 bytes, and aligned to as many.
        let status = unsafe {
            sys::cuTensorMapEncodeTiled(
                std::ptr::from_mut(&mut map).cast(),
                ty,
                rank as u32,
                (address + tiles.first) as *mut c_void,
                extents.as_ptr(),
                strides.as_ptr(),
                of_tile.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        let failed = |error| self.device.failed(&format!("tensor map of kernel {}", self.name), error);
        status.result().map(|()| map).map_err(failed)
    }

    /// The driver's handle.
    pub(super) fn function(&self) -> sys::CUfunction {
        self.function.cu_function()
    }

    /// Whether it waits for the kernel before it itself.
    pub(super) fn begins_early(&self) -> bool {
        self.begins_early
    }

    /// Raises the limit where a launch needs more.
    pub(super) fn allow_shared_bytes(&self, bytes: u32) -> Result<(), DriverError> {
        let mut limit = self.shared_limit.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > *limit {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            self.function.set_attribute(attribute, i32::try_from(bytes).unwrap_or(i32::MAX))?;
            *limit = bytes;
        }
        Ok(())
    }
}

impl Drop for CudaKernel {
    fn drop(&mut self) {
        // The code must not go away below a kernel that still runs. A failure here is not lost: those that matter
        // stay with the context and come with the next call.
        self.device.context.record_err(self.device.context.synchronize());
    }
}

impl CudaDevice {
    /// Whether the driver makes tensor maps, as those of CUDA 12 and later do.
    pub(crate) fn has_tensor_maps(&self) -> bool {
        self.has_tensor_maps
    }

    /// Loads the functions of a compiled kernel, or of PTX, which the driver compiles. They begin early if their text is one that
    /// [waits](crate::runtime::cuda::dependent_launch).
    ///
    /// # Errors
    /// [`Error::Device`], such as for a CUBIN of another architecture.
    pub(crate) fn load(
        self: &Arc<Self>,
        code: &[u8],
        functions: &[&str],
        waits: bool,
    ) -> Result<Vec<CudaKernel>> {
        let operation = format!("load kernel {}", functions.last().unwrap_or(&"without functions"));
        self.enter(&operation)?;
        let ptx =
            std::str::from_utf8(code).ok().filter(|text| text.contains(".target") && !text.contains('\0'));
        // The driver is not told how long the file is, and cudarc makes C strings of the names.
        if ptx.is_none() && !cubin::is_whole(code) || functions.iter().any(|name| name.contains('\0')) {
            return Err(Error::Device {
                device: self.label.clone(),
                operation,
                message: "the CUBIN is damaged".to_owned(),
            });
        }
        let failed = |error| self.failed(&operation, error);
        // What the driver makes of PTX is not known here.
        let waits_first = |name: &str| {
            waits && ptx.is_none() && cubin::code(code, name).is_some_and(dependent_launch::waits_first)
        };
        let early: Vec<bool> = functions.iter().map(|name| waits_first(name)).collect();
        let code = ptx.map_or_else(|| Ptx::from_binary(code.to_vec()), Ptx::from_src);
        let module = self.context.load_module(code).map_err(failed)?;
        let load = |(name, begins_early): (&&str, bool)| {
            let function = module.load_function(name).map_err(failed)?;
            let static_bytes = u32::try_from(function.shared_size_bytes().map_err(failed)?).unwrap_or(0);
            Ok(CudaKernel {
                function,
                name: (*name).to_owned(),
                shared_limit: Mutex::new(DEFAULT_SHARED_BYTES.saturating_sub(static_bytes)),
                begins_early: begins_early && self.has_launch_attributes,
                device: Arc::clone(self),
            })
        };
        functions.iter().zip(early).map(load).collect()
    }

    /// Starts a kernel on a stream and does not wait for it. A grid without blocks is nothing to do.
    ///
    /// The arguments point to the kernel's parameters; the driver copies those before this returns.
    ///
    /// # Safety
    /// Each argument must point to a value of its parameter's type, in the kernel's order. Buffers whose addresses
    /// are among them must be of this device and used on the stream, and the kernel must stay within their bytes with this
    /// grid and block.
    ///
    /// # Errors
    /// [`Error::Device`] where the launch is refused. Failures of the kernel itself come with a later call.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &CudaKernel,
        stream: &CudaStream,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        if !std::ptr::eq(self, Arc::as_ptr(&kernel.device)) {
            return Err(Error::internal(
                "launch",
                format!("kernel {} is of {}, not {}", kernel.name, kernel.device.label, self.label),
            ));
        }
        if grid.contains(&0) {
            return Ok(());
        }
        let failed = |error| {
            let operation = format!(
                "launch of kernel {} (grid {grid:?}, block {block:?}, {dynamic_shared_bytes} bytes of shared memory)",
                kernel.name
            );
            self.failed(&operation, error)
        };
        self.enter("launch")?;
        kernel.allow_shared_bytes(dynamic_shared_bytes).map_err(failed)?;
        // What others do on a stream of theirs, such as record it, is their business.
        let mut early = early();
        let attributes = if kernel.begins_early && !stream.is_foreign() { &mut early[..] } else { &mut [] };
        // SAFETY: the kernel's module is loaded for as long as the kernel lives, which waits for the device when it
        // is dropped. The caller answers for the arguments. A kernel with the attribute waits for the one before.
        unsafe { start(kernel, stream, grid, block, dynamic_shared_bytes, attributes, arguments) }
            .map_err(failed)?;
        stream.has_started();
        Ok(())
    }
}

/// What lets a kernel begin before the one before it has ended.
fn early() -> [sys::CUlaunchAttribute; 1] {
    let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let value = sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 };
    [sys::CUlaunchAttribute { id, pad: [0; 4], value }]
}

/// # Safety
/// As [`CudaDevice::launch`]; attributes are for drivers that have them, and kernels that allow them.
unsafe fn start(
    kernel: &CudaKernel,
    stream: &CudaStream,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    attributes: &mut [sys::CUlaunchAttribute],
    arguments: &mut [*mut c_void],
) -> Result<(), DriverError> {
    let ([x, y, z], [width, height, depth]) = (grid, block);
    if attributes.is_empty() {
        // SAFETY: the caller's promise.
        return unsafe {
            result::launch_kernel(
                kernel.function(),
                grid.into(),
                block.into(),
                shared_bytes,
                stream.raw(),
                arguments,
            )
        };
    }
    let config = sys::CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: width,
        blockDimY: height,
        blockDimZ: depth,
        sharedMemBytes: shared_bytes,
        hStream: stream.raw(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    };
    // SAFETY: the caller's promise.
    unsafe { sys::cuLaunchKernelEx(&config, kernel.function(), arguments.as_mut_ptr(), null_mut()) }.result()
}
