//! Lazuli: a lazy tensor graph compiler.
pub use lazuli_codegen::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};
