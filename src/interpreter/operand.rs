//! What operations get, and what is told of those that fail.

use std::rc::Rc;

use lazuli_reference::{self as reference, Values};

use crate::runtime::host;
use crate::{Error, Shape};

/// A value that an operation reads.
pub(super) struct Operand<'a> {
    pub(super) values: Rc<Values>,
    pub(super) shape: &'a Shape,
}

pub(super) fn broken(message: impl Into<String>) -> Error {
    Error::internal("interpreter", message)
}

/// An error of the arithmetic, as users are told.
pub(super) fn told(error: reference::Error) -> Error {
    match error {
        reference::Error::OutOfMemory { bytes } => host::out_of_memory(bytes),
        other => broken(other.to_string()),
    }
}
