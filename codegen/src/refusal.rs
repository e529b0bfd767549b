//! Why no kernel comes of a description of one.

use std::fmt;

/// Why a kernel cannot be scheduled or launched: whoever made it can make smaller ones.
///
/// ```
/// use lazuli_codegen::Refusal;
/// let refusal = Refusal::SharedBytes { bytes: 65536, most: 49152 };
/// assert_eq!(refusal.to_string(), "65536 bytes of shared memory are more than the 49152 of a block");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// Reductions that threads share go over different axes.
    DifferentReductions,
    /// Scans go along different axes, or in different directions.
    DifferentScans,
    /// Scatters go along different axes, or by different indices.
    DifferentScatters,
    /// A block has no memory for the results of so many scatters.
    TooManyScatters,
    /// More parameters than a launch can have (CUDA).
    ParameterBytes {
        /// What the kernel needs.
        bytes: u64,
        /// What there is.
        most: u64,
    },
    /// More shared memory than a block can declare (CUDA).
    SharedBytes {
        /// What the kernel needs.
        bytes: u64,
        /// What there is.
        most: u64,
    },
    /// A loop nest that uses what is not defined there: the schedule was not made for the kernel.
    Undefined(&'static str),
    /// A schedule that was not made for the kernel: what it lacks.
    Misfit(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::DifferentReductions => write!(f, "reductions over different axes"),
            Refusal::DifferentScans => write!(f, "scans along different axes, or in different directions"),
            Refusal::DifferentScatters => write!(f, "scatters along different axes, or by different indices"),
            Refusal::TooManyScatters => write!(f, "more scatters than a block has memory for"),
            Refusal::ParameterBytes { bytes, most } => {
                write!(f, "{bytes} bytes of parameters are more than the {most} of a launch")
            }
            Refusal::SharedBytes { bytes, most } => {
                write!(f, "{bytes} bytes of shared memory are more than the {most} of a block")
            }
            Refusal::Undefined(what) => write!(f, "{what} is used where it is not defined"),
            Refusal::Misfit(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Refusal {}
