//! A driver and an NVRTC that unmodified CUDA programs load on a machine without a GPU.
//!
//! [`driver`] and [`memory`] have the functions of `libcuda` that Lazuli calls, with the rules that a GPU's host code lives by: work waits in
//! its stream until somebody waits for the stream, so that what reads too early reads something else; fresh memory holds
//! NaN, and so does what was released; a copy outside of an allocation, a launch beyond the limits, a handle that was
//! destroyed and a CUBIN of another architecture are refused with the driver's own status; a kernel that fails makes
//! every later call of its context fail. The launches of a [`graph`] run in another order than they were added in, wherever
//! their dependencies allow it.
//!
//! [`nvrtc`] hands on to the real NVRTC, and puts the source behind the CUBIN: kernels are executed from it, as on the
//! emulated device. The two are one library under two names.
//!
//! It shows mistakes of host code. Nothing of speed, of concurrency on a device, and of its memory order is like a GPU.
//!
//! | environment variable | |
//! |---|---|
//! | `LAZULI_MOCK_NVRTC` | the real NVRTC |
//! | `LAZULI_MOCK_DEVICES` | how many devices there are: 2 |
//! | `LAZULI_MOCK_MEMORY` | bytes of each: 4 GiB |
//! | `LAZULI_MOCK_CAPABILITY` | what kernels must be compiled for: 90, which is sm_90 |

mod device;
pub mod driver;
pub mod graph;
pub mod launch;
pub mod memory;
pub mod nvrtc;
mod status;
mod stream;
