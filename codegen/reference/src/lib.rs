//! The arithmetic of Lazuli's reference interpreter: plain loops over typed arrays, and kernels by these.
//!
//! It is the oracle that fusion, lowering, schedules, nests, printers and devices are tested against. So it is written for
//! being obviously right, and of [`lazuli_codegen`] it takes only what it is told: dtypes, what operations are declared to
//! mean, and kernels with their index expressions. Nothing here uses a schedule, a nest or a text of one.
//!
//! It is a crate of its own because tests spend their time in these loops: a profile optimises whole crates. What is
//! generic over elements is therefore not called from outside, where it would be compiled without.

mod cast;
mod error;
mod extents;
mod gather;
pub mod kernels;
mod random;
mod reduce;
mod scalar;
mod scan;
mod scatter;
mod sort;
mod values;
mod views;

/// What [`with_type`] names.
#[doc(hidden)]
pub use half::{bf16, f16};
#[doc(hidden)]
pub use lazuli_codegen::DType;

pub use cast::cast;
pub use error::{Error, Result};
pub use extents::ensure_room;
pub use gather::gather;
pub use random::{philox, uniform};
pub use reduce::reduce;
pub use scalar::{binary, select, unary};
pub use scan::{Scan, scan};
pub use scatter::scatter;
pub use sort::{Sort, sort};
pub use values::{Element, Values};
pub use views::{pad, strided};
