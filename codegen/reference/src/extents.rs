//! What follows from the extents of an array.

use lazuli_codegen::DType;
use smallvec::SmallVec;

use crate::{Error, Result};

/// The extents of an array, or what there is one of for each of its axes.
pub(crate) type Extents = SmallVec<[usize; 6]>;

/// Larger results are asked for before they are computed, so that running out of memory is an error.
const SMALL: usize = 1 << 20;

/// How many elements there are; saturates.
pub(crate) fn elements(extents: &[usize]) -> usize {
    if extents.contains(&0) {
        return 0;
    }
    extents.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent))
}

/// Row-major strides, in elements.
pub(crate) fn strides(extents: &[usize]) -> Extents {
    let mut strides = SmallVec::from_elem(1, extents.len());
    for axis in (0..extents.len().saturating_sub(1)).rev() {
        strides[axis] = extents[axis + 1].max(1).saturating_mul(strides[axis + 1]);
    }
    strides
}

/// Whether there is room for an array.
///
/// # Errors
/// [`Error::OutOfMemory`]
///
/// ```
/// use lazuli_reference::{Error, ensure_room};
/// assert!(ensure_room(&[2, 3], lazuli_codegen::DType::F32).is_ok());
/// let error = ensure_room(&[1 << 40, 1 << 40], lazuli_codegen::DType::F32);
/// assert!(matches!(error, Err(Error::OutOfMemory { .. })));
/// ```
pub fn ensure_room(extents: &[usize], dtype: DType) -> Result<()> {
    let bytes = elements(extents).saturating_mul(dtype.size());
    if bytes > SMALL && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        return Err(Error::OutOfMemory { bytes: bytes as u64 });
    }
    Ok(())
}
