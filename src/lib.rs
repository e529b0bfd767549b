//! Lazuli: a lazy tensor graph compiler.

mod compiler;
mod debug;
mod error;
mod fusion;
mod graph;
mod interpreter;
mod lower;
mod passes;
mod runtime;
mod shape;
mod stats;
mod tensor;

pub use compiler::explain::Explanation;
#[cfg(feature = "cuda")]
pub use compiler::program::{CompiledKernel, CubinInfo};
pub use compiler::program::{KernelInfo, Program, Target};
pub use error::{Error, Result, SourceLocation};
pub use fusion::Fusion;
pub use half::{bf16, f16};
pub use lazuli_codegen::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};
pub use runtime::device::Device;
pub use shape::Shape;
pub use stats::{Stats, stats};
pub use tensor::evaluate::{compile_for, cuda_is_available, eval, with_fusion};
pub use tensor::{Axes, Dims, Element, Number, Operand, Pair, Pool2d, Tensor};
