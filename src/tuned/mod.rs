//! What was measured of kernels, and which of their schedules follow from it: a file, and what of it is in force.

mod file;
mod force;
mod measured;

pub(crate) use force::{SectionId, device_name, in_force, section};
pub(crate) use measured::{Key, normalised};
pub use measured::{TunedKernel, Tuning};
