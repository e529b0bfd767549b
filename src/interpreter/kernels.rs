//! Kernels without a compiler: [`lazuli_reference::kernels`], with this crate's errors.

pub(crate) use lazuli_reference::kernels::{Launch, Results};

use super::operand::reported;
use crate::Result;

/// Runs a kernel.
///
/// # Errors
/// [`OutOfMemory`](crate::Error::OutOfMemory); [`Internal`](crate::Error::Internal) if it reads or writes beyond a
/// buffer, leaves elements of an output unwritten, or is not sound.
pub(crate) fn run(launch: Launch<'_>) -> Result<Results> {
    lazuli_reference::kernels::run(launch).map_err(reported)
}
