//! Lazuli: a lazy tensor graph compiler.

mod error;
mod fusion;
mod graph;
mod interpreter;
mod lower;
mod passes;
mod runtime;
mod shape;
mod tensor;

pub use error::{Error, Result, SourceLocation};
pub use half::{bf16, f16};
pub use lazuli_codegen::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};
pub use fusion::Fusion;
pub use runtime::device::Device;
pub use shape::Shape;
pub use tensor::{Axes, Dims, Element, Number, Operand, Pair, Pool2d, Tensor};
