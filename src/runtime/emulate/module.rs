//! Compiled kernels and their launches.

use std::ffi::c_void;
use std::sync::Arc;

use libloading::os::unix::Library;

use super::abi::{Kernel, LaunchRequest};
use super::toolchain::{Failure, Toolchain};
use super::translate::translate;
use super::{DEVICE, SHARED_BYTES};
use crate::error::{Error, Result};

const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
const MAX_BLOCK_THREADS: u64 = 1024;
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
const MAX_STATIC_SHARED_BYTES: u64 = 48 * 1024;

/// Whether kernels can be compiled and run here; the error says what is missing.
pub(crate) fn availability() -> Result<()> {
    Toolchain::get().map(|_| ())
}

/// A function of a CUDA C kernel, compiled for the host.
pub(crate) struct EmulatedModule {
    name: String,
    source: Arc<str>,
    toolchain: &'static Toolchain,
    kernel: *const Kernel,
    /// Where `kernel` is.
    _library: Library,
}

// SAFETY: `kernel` leads to a constant in the library, which lives as long as the module.
unsafe impl Send for EmulatedModule {}
// SAFETY: as above; and the runtime serialises launches of one kernel.
unsafe impl Sync for EmulatedModule {}

impl EmulatedModule {
    /// Compiles the exact text that NVRTC would be given, for one of the functions in it,
    /// `extern "C" __global__ void kernel_name(...)`.
    pub(crate) fn compile(kernel_name: &str, source: &str) -> Result<EmulatedModule> {
        let toolchain = Toolchain::get()?;
        let source: Arc<str> = Arc::from(source);
        let refused = |log: String| Error::Compilation {
            kernel: kernel_name.to_owned(),
            compiler: toolchain.compiler_name(),
            log,
            source_text: Arc::clone(&source),
        };
        let text = translate(kernel_name, &source).map_err(refused)?;
        let (library, symbol) = toolchain.kernel(&text).map_err(|failure| match failure {
            Failure::Refused(log) => refused(log),
            Failure::Broken(error) => error,
        })?;
        // SAFETY: the shim's `LZ_EMU_EXPORT` defines this symbol as a `lz_emu_kernel`.
        let kernel = unsafe { library.get::<*const Kernel>(symbol.as_bytes()) }
            .map(|symbol| symbol.into_raw() as *const Kernel)
            .map_err(|error| Error::internal("emulator", error.to_string()))?;
        Ok(EmulatedModule { name: kernel_name.to_owned(), source, toolchain, kernel, _library: library })
    }

    /// Compiles kernels that are not on disk yet together, each a text with the names of its functions. What fails is
    /// reported by [`EmulatedModule::compile`].
    pub(crate) fn compile_ahead(kernels: &[(Vec<&str>, &str)]) {
        let Ok(toolchain) = Toolchain::get() else { return };
        let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
        for (functions, source) in kernels {
            let translated = functions.iter().filter_map(|name| translate(name, source).ok());
            texts.extend(translated.map(|text| (text, functions.clone())));
        }
        toolchain.compile_ahead(&texts);
    }

    /// The function's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs the kernel to its end, with the convention of `cuLaunchKernel`: `arguments` are pointers to the
    /// arguments' values.
    ///
    /// # Safety
    /// Each pointer must lead to a value of its parameter's type, and the memory that the kernel accesses
    /// through pointers among them must be there, and not be accessed by others meanwhile.
    pub(crate) unsafe fn launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        self.check_launch(grid, block, dynamic_shared_bytes, arguments.len()).map_err(|m| self.failed(m))?;
        let mut request = LaunchRequest {
            kernel: self.kernel,
            arguments: arguments.as_mut_ptr(),
            grid,
            block,
            dynamic_shared_bytes,
            lines: [0; 4],
            message: [0; 1024],
        };
        // SAFETY: the request is valid for a GPU, as checked above; the rest is the caller's promise.
        if unsafe { (self.toolchain.launch)(&mut request) } == 0 {
            return Ok(());
        }
        let length = request.message.iter().position(|&byte| byte == 0).unwrap_or(request.message.len());
        let mut message = String::from_utf8_lossy(&request.message[..length]).into_owned();
        for line in request.lines.into_iter().filter(|&line| line != 0) {
            let text = self.source.lines().nth(line as usize - 1).unwrap_or_default();
            message.push_str(&format!("\n{line:5} | {text}"));
        }
        Err(self.failed(message))
    }

    /// Bytes of each parameter.
    pub(crate) fn parameter_bytes(&self) -> &[u32] {
        // SAFETY: see `Send`; as many numbers as there are parameters.
        unsafe {
            let kernel = &*self.kernel;
            std::slice::from_raw_parts(kernel.parameter_bytes, kernel.parameters as usize)
        }
    }

    /// Shared memory of a block besides what a launch asks for.
    pub(crate) fn static_shared_bytes(&self) -> u64 {
        // SAFETY: see `Send`.
        let kernel = unsafe { &*self.kernel };
        (kernel.shared_end as u64).saturating_sub(kernel.shared_begin as u64)
    }

    /// What a driver would refuse.
    pub(crate) fn check_launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
        arguments: usize,
    ) -> Result<(), String> {
        // SAFETY: see `Send`.
        let kernel = unsafe { &*self.kernel };
        let beyond =
            |size: [u32; 3], most: [u32; 3]| size.iter().zip(most).any(|(&n, most)| n == 0 || n > most);
        if beyond(grid, MAX_GRID) {
            return Err(format!("a grid of {grid:?} blocks: each must be from 1 to {MAX_GRID:?}"));
        }
        let threads: u64 = block.iter().map(|&n| u64::from(n)).product();
        if beyond(block, MAX_BLOCK) || threads > MAX_BLOCK_THREADS {
            return Err(format!(
                "a block of {block:?} threads: each must be from 1 to {MAX_BLOCK:?}, and all together at most {MAX_BLOCK_THREADS}"
            ));
        }
        if threads > u64::from(kernel.max_threads) {
            return Err(format!(
                "a block of {threads} threads, while __launch_bounds__ promises at most {}",
                kernel.max_threads
            ));
        }
        let fixed = self.static_shared_bytes();
        if fixed > MAX_STATIC_SHARED_BYTES {
            return Err(format!(
                "{fixed} bytes of static shared memory are more than {MAX_STATIC_SHARED_BYTES}"
            ));
        }
        if fixed + u64::from(dynamic_shared_bytes) > u64::from(SHARED_BYTES) {
            return Err(format!(
                "{fixed} bytes of static and {dynamic_shared_bytes} of dynamic shared memory are more than {SHARED_BYTES}"
            ));
        }
        if arguments != kernel.parameters as usize {
            return Err(format!("{arguments} arguments for {} parameters", kernel.parameters));
        }
        Ok(())
    }

    fn failed(&self, message: String) -> Error {
        Error::Device { device: DEVICE.to_owned(), operation: format!("launch of {}", self.name), message }
    }
}
