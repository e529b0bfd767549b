//! The languages that kernels are printed in.

use std::fmt;

/// The language of an emitted kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// CUDA C for NVRTC: no header is needed.
    Cuda,
    /// C11 with GNU extensions for the CPU, compiled by gcc or clang.
    C,
}

impl Language {
    /// The word for it in texts and options.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Cuda => "cuda",
            Language::C => "c",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::Cuda => "CUDA C",
            Language::C => "C",
        })
    }
}
