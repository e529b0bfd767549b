//! Lazuli is a lazy tensor graph compiler: operations on [`Tensor`]s are only recorded; when values are asked for,
//! the recording becomes few fused kernels, emitted as CUDA C or C, compiled just in time, cached, and run.
//!
//! ```
//! use lazuli::{Device, Fusion, Target, Tensor, with_fusion};
//!
//! // Record. Nothing runs in these lines, and none of them can fail.
//! let data = (0..32 * 256).map(|i| (i % 7) as f32).collect();
//! let x = Tensor::from_vec(data, [32, 256]).to(&Device::best()); // a GPU, or else the CPU
//! let normal = |x: &Tensor| (x - x.mean_keepdim(1)) / (x.var_keepdim(1, 0) + 1e-5).sqrt();
//! let y = normal(&x).relu();
//!
//! // Fuse. What would run, and why: one kernel, which reads x once and writes y.
//! let plan = y.explain()?;
//! println!("{plan}");
//! assert!(plan.to_string().starts_with("1 kernel instead of 9, 65.5 kB moved instead of 263.7 kB"));
//!
//! // The kernel's source in CUDA C, without a GPU: to read, and for snapshot tests.
//! let program = y.compile_for(&Target::cuda("sm_90"))?;
//! assert!(program.source().contains("__global__ void"));
//!
//! // Run. Values are asked for: the kernel is compiled, unless a cache has it, and launched.
//! let values = y.to_vec::<f32>()?;
//!
//! // The same, one kernel an operation: to compare speed, or to find a bug.
//! let again = with_fusion(Fusion::Off, || normal(&x).relu().to_vec::<f32>())?;
//! assert!(values.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-5));
//! # Ok::<(), lazuli::Error>(())
//! ```
//!
//! | | |
//! |---|---|
//! | [`Tensor`] | records: constructors, operations, views, and the questions that end recording |
//! | [`operations`] | every operation in a table: dtypes, accuracy, its name in PyTorch, and what differs from it |
//! | [`compile()`] | a function of tensors that is recorded once and called many times |
//! | [`Stream`], [`Event`] | several orders of work on a GPU |
//! | [`Device`] | where values are computed: GPU, CPU, or the reference interpreter |
//! | [`parallel`] | the same work on parts of the data, on several devices at once |
//! | [`Target`] | what kernels are emitted for, with or without such a device |
//! | [`Explanation`], [`Program`] | which kernels, why, and their source |
//!
//! # Recording
//!
//! Names and meanings of operations are PyTorch's where it has them, and broadcasting is NumPy's; an operator takes
//! tensors by value or by reference, or a number on either side. A mistake makes an invalid tensor. It surfaces as an
//! [`Error`] that names the operation, the shapes and your line, at the first question: [`Tensor::to_vec`],
//! [`Tensor::item`], [`Tensor::eval`], [`eval`], [`Tensor::shape`], [`Tensor::explain`], [`Tensor::compile_for`].
//!
//! An evaluated tensor keeps its values and forgets how it came about. Until then, everything that uses it computes
//! it anew: evaluate what you use many times, or ask for several tensors in one [`eval`].
//!
//! # Inspecting
//!
//! [`Tensor::explain`] gives an [`Explanation`]: groups, kernels, bytes moved, and why neighbours are not one kernel.
//! [`Tensor::compile_for`] gives a [`Program`] of [`KernelInfo`]s. [`Tensor::placeholder`] stands for data that both do without. [`profile()`] tells how long each kernel takes. [`stats()`] counts what the process has compiled and
//! launched. `LAZULI_DEBUG=1` to `5` prints, to standard error, times of kernels, plans, schedules, sources,
//! and the graph after every pass.
//!
//! # Indexing and printing
//!
//! `x.i(s![.., 1, ..;-1, None])` is NumPy's `x[:, 1, ::-1, None]`: see [`s!`]. `println!("{x}")` computes the values and
//! prints them as NumPy does; `{x:?}` says what the tensor is and computes nothing.
//!
//! # Numbers
//!
//! Fusing never changes a bit of an elementwise result in `F32`, `F64` and integers. `F16` and `BF16` are storage
//! types: arithmetic is in `F32`, and rounds at a cast or a store. Sums have a fixed order, the same in every run. NaN,
//! infinities and signed zeros are kept by every rewrite; max, min, relu and pooling hand NaN on. Random numbers
//! depend on seed and position alone.
//!
//! Dtypes promote as in PyTorch. `U32` beside another integer type, which PyTorch refuses, promotes as in NumPy: to
//! `U32` with `U8`, else to `I64`.
//!
//! # Devices and features
//!
//! Files and arrays of others are in [`io`]; the features `npz`, `safetensors`, `ndarray` and `dlpack` add what needs other
//! crates.
//!
//! [`Device::cpu`] needs a C compiler when a kernel first runs (without one the [`Device::interpreter`] takes over).
//! [`Device::cuda`] needs a driver and NVRTC, which are looked for when it is used: with the feature `cuda`, on by
//! default, nothing of CUDA is needed to build. With the feature `emulate`, [`Device::cuda_emulated`] executes the
//! emitted CUDA C on the CPU, for tests.

// They panic where nothing can be written: `stderr::say` does not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod compiler;
mod debug;
mod error;
mod executor;
mod fusion;
mod graph;
mod inspect;
mod interpreter;
pub mod io;
mod lower;
#[doc(hidden)]
pub mod measure;
pub mod operations;
#[cfg(feature = "opt")]
pub mod opt;
mod passes;
mod recording;
mod runtime;
mod settings;
mod shape;
mod stats;
mod stderr;
mod tensor;
mod tune;
mod tuned;

pub use compiler::explain::Explanation;
pub use error::{Error, Result, SourceLocation};
pub use fusion::Fusion;
pub use half::{bf16, f16};
pub use inspect::parts::{Argument, ArgumentKind, LaunchInfo, ScheduleInfo};
pub use inspect::profile::{KernelTime, Profile, profile};
#[cfg(feature = "cuda")]
pub use inspect::program::{CompiledKernel, CubinInfo};
pub use inspect::program::{KernelInfo, Program};
pub use inspect::target::Target;
pub(crate) use lazuli_codegen::{BinaryOp, ReduceOp, Scalar, UnaryOp};
pub use lazuli_codegen::{DType, FloatInfo, IntInfo, UnknownDType};
pub use recording::Tensor;
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub use runtime::cuda::testing as nvrtc;
pub use runtime::device::Device;
#[cfg(all(feature = "emulate", unix))]
#[doc(hidden)]
pub use runtime::emulate::testing as emulation;
pub use runtime::information::DeviceInformation;
pub use runtime::memory::Memory;
pub use runtime::stream::{Event, Stream};
pub use settings::Settings;
pub use shape::Shape;
pub use stats::{Stats, stats};
pub use tensor::ask::download::Download;
pub use tensor::ask::evaluate::{compile_for, cuda_is_available, eval, explain, with_fusion};
pub use tensor::{
    Arguments, Attention, Axes, BinaryCrossEntropy, BitOrder, Border, Bounds, Compiled, Conv, Conv1d, Conv2d,
    Conv3d, ConvolveMode, CrossEntropy, Dims, Element, Executable, Fourier, FourierNorm, GridSample, Index,
    Indexing, Interpolation, KlDiv, Leaves, MatrixNorm, NllLoss, Number, Operand, Outside, PadMode, Pair,
    PerAxis, Pool, Pool1d, Pool2d, Pool3d, QuantileBetween, Quantiles, Reduction, RoiAlign, Rounding,
    ScanOrder, ScatterReduction, Stft, Tensors, Traceable, clip_grad_norm, compile, grad, hessian, iterate,
    jacobian, jvp, parallel, scan, tree_map, vjp,
};
pub use tune::{Tuner, TuningProgress, tune};
pub use tuned::{TunedKernel, Tuning};

/// Its examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
