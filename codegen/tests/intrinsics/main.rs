//! The emitted text of every operation, compiled by the system's compiler and compared with a reference; and what some
//! of it looks like.

// The lint knows tests by their attribute alone, not what they call.
#![allow(clippy::unwrap_used, clippy::panic)] // A failed assumption stops the test.

mod accesses;
mod c_library;
mod exact;
mod lanes;
mod reference;
mod sweep;
mod text;
