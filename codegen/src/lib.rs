//! Kernel IR, schedules and printers of the Lazuli tensor compiler.
//!
//! This crate turns a description of an algorithm ([`ir`]) and a schedule into CUDA C or C text. It
//! knows nothing of tensors, graphs, devices or files.

mod dtype;
pub mod intrinsics;
mod language;
mod ops;
mod scalar;

pub use dtype::DType;
pub use language::Language;
pub use ops::{BinaryOp, ReduceOp, UnaryOp};
pub use scalar::Scalar;
