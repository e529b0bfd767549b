//! What a library does with whole matrices on the host: factorisations, and what is solved by them.
//!
//! A kernel goes over its elements with loops that are known when it is compiled, and a factorisation of columns one after the other
//! is a launch for each of them. What there is for that on the host is a library (faer), which takes each matrix of a
//! batch as a whole, and needs no compiling.
//!
//! It is a crate of its own because the library is generic: where it is called for `f32` and `f64`, it is compiled.

#[cfg(feature = "faer")]
mod library;
#[cfg(not(feature = "faer"))]
mod none;
mod routine;

#[cfg(feature = "faer")]
pub use library::{f32, f64};
#[cfg(not(feature = "faer"))]
pub use none::{f32, f64};
pub use routine::{Matrix, MatrixShape, Routine};
