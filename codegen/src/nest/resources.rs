//! What one launch may have on CUDA, on every architecture.

use super::variable::{Local, Space};
use super::{Body, Function, Nest, Parameter};
use crate::Refusal;
use crate::ir::Kernel;

/// Bytes of a kernel's parameters (CUDA C++ Programming Guide, `__global__` functions; 32,764 since CUDA 12.1, but not
/// with older drivers).
pub(crate) const PARAMETER_BYTES: u64 = 4096;

/// Bytes of shared memory that a block declares.
const SHARED_BYTES: u64 = 48 << 10;

/// Of what a launch provides, arrays begin where a line of all banks does.
const LINE: u64 = 128;

impl Parameter {
    /// Bytes of the parameter, which begins at a multiple of them.
    pub(crate) fn bytes(self, kernel: &Kernel, index_size: u64) -> u64 {
        match self {
            Parameter::Buffer(_) | Parameter::Checks | Parameter::Workspace(_) => 8,
            Parameter::Argument(id) => kernel.arguments[id.index()].value.dtype().size() as u64,
            Parameter::Extent(_) | Parameter::Offset(_) => index_size,
            Parameter::Map(_) => 128,
        }
    }
}

impl Local {
    /// Bytes of an array.
    fn bytes(&self, index_size: u64) -> u64 {
        self.len.unwrap_or(1).saturating_mul(self.ty.bytes(index_size))
    }
}

impl Function {
    /// Takes what it shares from the memory that the launch provides, if a block cannot declare as much.
    pub(super) fn share_at_launch(&mut self) {
        self.share(LINE, SHARED_BYTES);
    }

    /// Takes all that it shares from the memory that the launch provides, where lines of matrices begin at a multiple of eight.
    pub(super) fn share_lines_at_launch(&mut self) {
        self.share(8 * LINE, 0);
    }

    /// Takes what is more than so many bytes, and has each array begin at a multiple of others.
    fn share(&mut self, line: u64, most: u64) {
        let shared = self.body.locals.iter_mut().filter(|local| local.space == Space::Shared(None));
        // Nothing but numbers is there.
        let (mut end, mut all): (u64, Vec<(&mut Local, u64)>) = (self.launch.shared_bytes.into(), Vec::new());
        for local in shared {
            let from = end;
            end = (from + local.bytes(4)).next_multiple_of(line);
            all.push((local, from));
        }
        if end > most {
            all.into_iter().for_each(|(local, from)| local.space = Space::Shared(Some(from)));
            self.launch.shared_bytes = end as u32;
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
        let shared = body.locals.iter().filter(|local| local.space == Space::Shared(None));
        shared.map(|local| local.bytes(self.index_size())).sum()
    }
}
