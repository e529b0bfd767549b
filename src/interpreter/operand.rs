//! What operations get, and how errors of the arithmetic are reported.

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

/// An error of the arithmetic as one of this crate.
pub(super) fn reported(error: reference::Error) -> Error {
    match error {
        reference::Error::OutOfMemory { bytes } => host::out_of_memory(bytes),
        other => broken(other.to_string()),
    }
}
