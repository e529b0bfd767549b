//! NVRTC as tests use it: many kernels in one text. Hidden from the documentation, and no part of the interface.

use super::cubin::CubinInfo;
use super::dependent_launch;
use super::nvrtc::Nvrtc;
use crate::{Error, Result};

/// The version, and the architectures that it compiles for, such as `[75, 80, 90, 100]`.
pub fn find() -> Result<((i32, i32), &'static [u32])> {
    let nvrtc = Nvrtc::get()?;
    Ok((nvrtc.version(), nvrtc.architectures()))
}

/// Compiles a text as devices have it, and tells what became of the kernels in it. What is not `optimised` is compiled in less time, to
/// see that it compiles at all.
///
/// # Errors
/// Those of the compiler.
pub fn compile(
    source: &str,
    kernels: &[&str],
    architecture: &str,
    optimised: bool,
) -> Result<Vec<CubinInfo>> {
    let nvrtc = Nvrtc::get()?;
    let mut options = nvrtc.options().to_vec();
    if !optimised && nvrtc.version() >= (13, 0) {
        options.push("--Ofast-compile=mid");
    }
    let cubin =
        nvrtc.compile("kernels", &dependent_launch::source(source, architecture), architecture, &options)?;
    let inspect = |name: &&str| {
        let missing = || Error::internal("CUBIN inspection", format!("{name} is not in the compiled module"));
        cubin.inspect(name).ok_or_else(missing)
    };
    kernels.iter().map(inspect).collect()
}

/// The PTX of a text for compute capability 9.0, compiled with the options of every kernel.
pub fn ptx(source: &str) -> Result<String> {
    let nvrtc = Nvrtc::get()?;
    nvrtc.ptx("kernels", source, "compute_90", nvrtc.options())
}
