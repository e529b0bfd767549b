//! Matrices in the host's memory.

use bytemuck::Pod;
use lazuli_routines::Matrix;

use crate::runtime::host::HostBuffer;
use crate::{Error, Result};

/// Matrices in memory: a batch of `[m, n]`, row by row, or of their transposes.
pub(crate) struct Matrices<'a> {
    pub(crate) buffer: &'a HostBuffer,
    /// Rows and columns as the routine has them.
    pub(crate) shape: [usize; 2],
    pub(crate) is_transposed: bool,
}

/// A batch of matrices, of which there is one for each position.
pub(super) struct Batch<'a, T> {
    elements: &'a [T],
    pub(super) shape: [usize; 2],
    is_transposed: bool,
}

/// The elements of a batch of matrices that are not empty.
pub(super) fn elements<'a, T: Pod>(of: &Matrices<'a>) -> Result<&'a [T]> {
    let elements: Option<&[T]> = bytemuck::try_cast_slice(of.buffer.as_slice()).ok();
    let size = of.shape[0] * of.shape[1];
    let whole = elements.filter(|elements| size > 0 && elements.len().is_multiple_of(size));
    whole.ok_or_else(|| Error::internal("routines", "a batch that is none of such matrices"))
}

impl<'a, T: Pod> Batch<'a, T> {
    pub(super) fn new(of: &Matrices<'a>) -> Result<Batch<'a, T>> {
        Ok(Batch { elements: elements(of)?, shape: of.shape, is_transposed: of.is_transposed })
    }

    pub(super) fn count(&self) -> usize {
        self.elements.len() / (self.shape[0] * self.shape[1])
    }

    pub(super) fn matrix(&self, number: usize) -> Matrix<'a, T> {
        let Batch { shape, is_transposed, .. } = *self;
        let size = shape[0] * shape[1];
        Matrix { elements: &self.elements[number * size..][..size], shape, is_transposed }
    }
}
