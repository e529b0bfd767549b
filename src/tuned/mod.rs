//! What was measured of kernels, and which schedules and cuts follow from it: a file, and what of it is in force.

mod chosen;
mod file;
mod force;
mod measured;

pub(crate) use chosen::{Chosen, Place, Side};
pub(crate) use force::{SectionId, cut, device_name, in_force, section};
pub(crate) use measured::{Key, normalised};
pub use measured::{TunedKernel, Tuning};
