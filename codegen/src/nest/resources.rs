//! What one launch may have on CUDA, on every architecture.

use super::variable::Space;
use super::{Body, Nest, Parameter};
use crate::Refusal;
use crate::ir::Kernel;

/// Bytes of a kernel's parameters (CUDA C++ Programming Guide, `__global__` functions; 32,764 since CUDA 12.1, but not
/// with older drivers).
pub(crate) const PARAMETER_BYTES: u64 = 4096;

/// Bytes of shared memory that a block declares.
const SHARED_BYTES: u64 = 48 << 10;

impl Parameter {
    /// Bytes of the parameter, which begins at a multiple of them.
    pub(crate) fn bytes(self, kernel: &Kernel, index_size: u64) -> u64 {
        match self {
            Parameter::Buffer(_) | Parameter::Checks | Parameter::Workspace(_) => 8,
            Parameter::Argument(id) => kernel.arguments[id.index()].value.dtype().size() as u64,
            Parameter::Extent(_) | Parameter::Offset(_) => index_size,
        }
    }
}

impl Nest {
    /// Whether a launch can have all that the kernel needs.
    ///
    /// # Errors
    /// What there is too much of.
    pub(crate) fn check_resources(&self) -> Result<(), Refusal> {
        let parameters = self.parameter_bytes();
        if parameters > PARAMETER_BYTES {
            return Err(Refusal::ParameterBytes { bytes: parameters, most: PARAMETER_BYTES });
        }
        let shared =
            self.functions.iter().map(|function| self.shared_bytes(&function.body)).max().unwrap_or(0);
        if shared > SHARED_BYTES {
            return Err(Refusal::SharedBytes { bytes: shared, most: SHARED_BYTES });
        }
        Ok(())
    }

    /// Each parameter at a multiple of its size.
    fn parameter_bytes(&self) -> u64 {
        self.parameters.iter().fold(0, |end: u64, parameter| {
            let size = parameter.bytes(&self.kernel, self.index_size());
            end.next_multiple_of(size) + size
        })
    }

    fn index_size(&self) -> u64 {
        if self.wide_index { 8 } else { 4 }
    }

    /// Of all that a function declares.
    fn shared_bytes(&self, body: &Body) -> u64 {
        let shared = body.locals.iter().filter(|local| local.space == Space::Shared);
        shared.map(|local| local.len.unwrap_or(1).saturating_mul(local.ty.bytes(self.index_size()))).sum()
    }
}
