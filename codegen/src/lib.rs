//! Kernel IR, schedules and printers of the Lazuli tensor compiler.
//!
//! This crate turns a description of an algorithm ([`ir`]) and a schedule into CUDA C or C text. It
//! knows nothing of tensors, graphs, devices or files.

mod batch;
pub mod cost;
mod dtype;
mod emit;
pub mod index;
pub mod interpreter;
pub mod intrinsics;
pub mod ir;
mod language;
mod limits;
pub mod nest;
mod numbers;
mod ops;
mod refusal;
mod scalar;
pub mod schedule;
mod sizes;
pub mod syntax;
mod text;

pub use batch::{Batch, emit_batch};
pub use dtype::{DType, UnknownDType};
pub use emit::{Emitted, emit, emit_with};
pub use index::{Atom, AxisId, AxisRanges, Bound, BoundTruth, IndexExpr};
pub use language::Language;
pub use limits::{FloatInfo, IntInfo};
pub use numbers::{General, Numbers};
pub use ops::{
    Algebra, BinaryAdjoint, BinaryMeaning, BinaryOp, Formula, Meaning, Part, ReduceOp, UnaryAdjoint,
    UnaryMeaning, UnaryOp,
};
pub use refusal::{Allowed, Refusal};
pub use scalar::Scalar;
pub use sizes::{Choice, Class, Sizes};
pub use syntax::ParseError;
