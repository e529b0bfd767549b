//! Stands in for `module` where libraries are loaded in another way.

use std::ffi::c_void;

use crate::error::Result;

/// Why nothing can be emulated here.
pub(crate) fn availability() -> Result<()> {
    Err(super::unsupported())
}

/// There is none.
pub(crate) enum EmulatedModule {}

impl EmulatedModule {
    /// Always an error.
    pub(crate) fn compile(_kernel_name: &str, _source: &str) -> Result<EmulatedModule> {
        Err(super::unsupported())
    }

    /// Nothing.
    pub(crate) fn compile_ahead(_kernels: &[(Vec<&str>, &str)]) {}

    /// Cannot be called.
    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    /// # Safety
    /// Cannot be called.
    pub(crate) unsafe fn launch(
        &self,
        _grid: [u32; 3],
        _block: [u32; 3],
        _dynamic_shared_bytes: u32,
        _arguments: &mut [*mut c_void],
    ) -> Result<()> {
        match *self {}
    }
}
