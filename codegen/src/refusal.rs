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
    /// A number of a schedule that the kernel, or the target, cannot have.
    Setting {
        /// Its name in the schedule's text.
        name: &'static str,
        /// What the schedule says; flags are 0 or 1.
        value: u64,
        /// What it could be.
        allowed: Allowed,
    },
    /// A value that a schedule keeps where it cannot be.
    Placement {
        /// The number of the value in the nest's kernel.
        value: u32,
        /// What is in the way.
        why: &'static str,
    },
    /// A loop nest that uses what is not defined there: the schedule was not made for the kernel.
    Undefined(&'static str),
    /// A schedule that was not made for the kernel: what it lacks.
    Misfit(&'static str),
}

/// What a number of a schedule can be.
///
/// ```
/// use lazuli_codegen::{Allowed, Refusal};
/// let refusal = Refusal::Setting { name: "vec", value: 3, allowed: Allowed::PowerOfTwo(4) };
/// assert_eq!(refusal.to_string(), "the schedule has vec=3, which can be a power of two up to 4");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Allowed {
    /// This alone.
    Only(u64),
    /// Up to so much.
    AtMost(u64),
    /// So much and more.
    AtLeast(u64),
    /// A power of two, up to so much.
    PowerOfTwo(u64),
    /// A multiple of it.
    MultipleOf(u64),
}

impl Allowed {
    pub(crate) fn has(self, value: u64) -> bool {
        match self {
            Allowed::Only(only) => value == only,
            Allowed::AtMost(most) => value <= most,
            Allowed::AtLeast(least) => value >= least,
            Allowed::PowerOfTwo(most) => value.is_power_of_two() && value <= most,
            Allowed::MultipleOf(of) => value.is_multiple_of(of),
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Only(only) => write!(f, "{only} alone"),
            Allowed::AtMost(most) => write!(f, "{most} at most"),
            Allowed::AtLeast(least) => write!(f, "{least} at least"),
            Allowed::PowerOfTwo(most) => write!(f, "a power of two up to {most}"),
            Allowed::MultipleOf(of) => write!(f, "a multiple of {of}"),
        }
    }
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
            Refusal::Setting { name, value, allowed } => {
                write!(f, "the schedule has {name}={value}, which can be {allowed}")
            }
            Refusal::Placement { value, why } => write!(f, "the schedule keeps v{value}: {why}"),
            Refusal::Undefined(what) => write!(f, "{what} is used where it is not defined"),
            Refusal::Misfit(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Refusal {}
