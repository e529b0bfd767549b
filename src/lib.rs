//! Lazuli: a lazy tensor graph compiler.

mod error;
mod graph;
mod passes;
mod runtime;
mod shape;
mod tensor;

pub use error::{Error, Result, SourceLocation};
pub use lazuli_codegen::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};
pub use runtime::device::Device;
pub use shape::Shape;
pub use tensor::Tensor;
