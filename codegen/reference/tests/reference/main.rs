//! The reference's arithmetic, by hand. Its operations are tested as graphs of one, in `lazuli`.

#![allow(clippy::unwrap_used, clippy::panic)] // A failed assumption stops the test.

mod cast;
mod kernels;
mod random;
mod reduce;
mod values;
