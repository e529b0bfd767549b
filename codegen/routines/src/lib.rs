//! What libraries do on the host: with whole matrices, factorisations and what is solved by them (faer); with whole lines,
//! Fourier transforms (rustfft).
//!
//! A kernel goes over its elements with loops that are known when it is compiled. A factorisation is a launch for each column then,
//! and a transform of another length another kernel. What there is for these on the host are libraries, which need no
//! compiling.
//!
//! It is a crate of its own because the libraries are generic: where they are called for `f32` and `f64`, they are compiled.

#[cfg(feature = "libraries")]
mod lines;
#[cfg(feature = "libraries")]
mod matrices;
#[cfg(not(feature = "libraries"))]
mod none;
mod routine;
mod transform;

#[cfg(feature = "libraries")]
pub use lines::Lines;
#[cfg(feature = "libraries")]
pub use matrices::{f32, f64};
#[cfg(not(feature = "libraries"))]
pub use none::{Lines, f32, f64};
pub use routine::{Matrix, MatrixShape, Routine};
pub use transform::Transform;
