//! What operations get.

use std::rc::Rc;

use super::values::Values;
use crate::{Error, Shape};

/// A value that an operation reads.
pub(super) struct Operand<'a> {
    pub(super) values: Rc<Values>,
    pub(super) shape: &'a Shape,
}

pub(super) fn broken(message: impl Into<String>) -> Error {
    Error::internal("interpreter", message)
}
