//! What operations get.

use std::rc::Rc;

use super::values::Values;
use crate::runtime::host;
use crate::{DType, Error, Result, Shape};

/// Larger results are asked for before they are computed, so that running out of memory is an error.
const SMALL: usize = 1 << 20;

/// A value that an operation reads.
pub(super) struct Operand<'a> {
    pub(super) values: Rc<Values>,
    pub(super) shape: &'a Shape,
}

pub(super) fn broken(message: impl Into<String>) -> Error {
    Error::internal("interpreter", message)
}

pub(super) fn ensure_room(shape: &Shape, dtype: DType) -> Result<()> {
    let bytes = shape.elements().saturating_mul(dtype.size());
    if bytes > SMALL && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        return Err(host::out_of_memory(bytes as u64));
    }
    Ok(())
}
