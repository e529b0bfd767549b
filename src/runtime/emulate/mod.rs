//! Executes emitted CUDA C on the host, so that barriers, shuffles and shared memory are tested where there
//! is no GPU.
//!
//! The exact text that NVRTC would be given is [translated](translate) where C++ differs from CUDA, compiled
//! by the system's C++ compiler with a header that supplies CUDA's names (`shim.h`, and `ptx.h` for inline PTX), and run by a
//! runtime (`fibers.cpp`) that makes every CUDA thread a fiber. Blocks run one after another.
//!
//! What this finds: wrong indices and results, barriers that not all threads reach, shuffles that name lanes
//! which have returned, shared memory read before it is written, misaligned vector accesses, launches that a
//! driver would refuse. What it cannot: anything about speed, the hardware's approximate functions, weak memory
//! order, blocks that wait for later blocks, accesses outside of a buffer (which may crash the process).

use std::path::Path;

use crate::error::Error;

/// The device's name in errors.
const DEVICE: &str = "cuda (emulated)";

/// Where there is no context switch, no ELF linker, or no other way to load a library: nothing is emulated.
const SUPPORTED: bool = cfg!(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64"
));

#[cfg(unix)]
mod abi;
#[cfg(unix)]
mod module;
#[cfg(unix)]
pub mod testing;
#[cfg(unix)]
mod toolchain;
#[cfg(unix)]
mod translate;
#[cfg(unix)]
pub(crate) use module::{EmulatedModule, availability};

#[cfg(not(unix))]
mod unsupported;
#[cfg(not(unix))]
pub(crate) use unsupported::{EmulatedModule, availability};

#[cfg(test)]
#[cfg(unix)]
mod tests;

/// Bytes of shared memory that a block can have, as on sm_90. The runtime has room for as many (`fibers.cpp`).
pub(crate) const SHARED_BYTES: u32 = 227 << 10;

/// Names a folder for the CUDA C of every kernel, so that tests can give all of it to NVRTC.
const SOURCES_VARIABLE: &str = "LAZULI_EMULATED_SOURCES";

/// Leaves the source in the folder for sources, if there is one. What cannot be written is not missed.
pub(crate) fn keep(kernel_name: &str, source: &str) {
    let Some(folder) = std::env::var_os(SOURCES_VARIABLE).filter(|folder| !folder.is_empty()) else { return };
    let path =
        Path::new(&folder).join(format!("{}-{kernel_name}.cu", blake3::hash(source.as_bytes()).to_hex()));
    if !path.exists() {
        let _ = std::fs::create_dir_all(&folder);
        let _ = std::fs::write(path, source);
    }
}

fn unsupported() -> Error {
    Error::Unavailable {
        what: DEVICE.to_owned(),
        reason: "it needs Linux on x86-64 or aarch64".to_owned(),
        hint: "Use the CPU device instead".to_owned(),
    }
}
