//! Kernels on the emulated device one by one, as a driver for tests runs them. Hidden from the documentation, and no part of
//! the interface.

use std::ffi::c_void;

use super::EmulatedModule;
use crate::Result;

/// A function of a CUDA C kernel, compiled for the host.
pub struct Kernel(EmulatedModule);

impl Kernel {
    /// Compiles one of the functions of a text.
    ///
    /// # Errors
    /// [`Error::Compilation`](crate::Error::Compilation), or what is missing to compile.
    pub fn compile(name: &str, source: &str) -> Result<Kernel> {
        EmulatedModule::compile(name, source).map(Kernel)
    }

    /// Bytes of each parameter.
    pub fn parameter_bytes(&self) -> &[u32] {
        self.0.parameter_bytes()
    }

    /// Shared memory of a block besides what a launch asks for.
    pub fn static_shared_bytes(&self) -> u32 {
        u32::try_from(self.0.static_shared_bytes()).unwrap_or(u32::MAX)
    }

    /// What a driver would refuse.
    ///
    /// # Errors
    /// The reason.
    pub fn check_launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        arguments: usize,
    ) -> Result<(), String> {
        self.0.check_launch(grid, block, shared_bytes, arguments)
    }

    /// Runs it to its end.
    ///
    /// # Safety
    /// Each pointer leads to a value of its parameter's type, and the memory that the kernel accesses through pointers among
    /// them is there.
    ///
    /// # Errors
    /// What is wrong with the kernel or the launch.
    pub unsafe fn launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.launch(grid, block, shared_bytes, arguments) }
    }
}
