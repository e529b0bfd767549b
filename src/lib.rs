//! Lazuli: a lazy tensor graph compiler.

mod error;
mod runtime;

pub use error::{Error, Result, SourceLocation};
pub use lazuli_codegen::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};
