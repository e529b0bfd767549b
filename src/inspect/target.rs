//! What kernels are compiled for.

use std::fmt;

use lazuli_codegen::Language;

use lazuli_codegen::schedule::Matrices;

use crate::compiler::{Settings, matrices};
use crate::fusion::cut;
use crate::{Device, Error, Fusion, Result};

/// What kernels are compiled for.
///
/// ```
/// use lazuli::Target;
/// assert_eq!(Target::cuda("sm_90").to_string(), "cuda sm_90");
/// assert_eq!(Target::cpu().to_string(), "cpu");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// Of CUDA; none for the CPU.
    pub(super) architecture: Option<String>,
}

impl Target {
    /// A CUDA architecture, such as `sm_90`. No GPU is needed. What is none, whatever compiles for it, is an error where kernels are asked for.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert!(program.source().contains("__global__ void"));
    /// let error = y.compile_for(&Target::cuda("gfx90a")).unwrap_err();
    /// assert!(error.to_string().contains("\"gfx90a\""), "{error}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cuda(architecture: impl Into<String>) -> Target {
        Target { architecture: Some(architecture.into()) }
    }

    /// The CPU of this machine.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu();
    /// let program = y.compile_for(&Target::cpu())?;
    /// assert!(program.source().contains("void relu_f32") && !program.source().contains("__global__"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cpu() -> Target {
        Target { architecture: None }
    }

    /// What kernels for a device are compiled for.
    ///
    /// ```
    /// use lazuli::{Device, Target};
    /// assert_eq!(Target::of(&Device::cpu())?, Target::cpu());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is a GPU that is not there, or the interpreter, which has no
    /// kernels.
    pub fn of(device: &Device) -> Result<Target> {
        device.architecture().map(|architecture| Target { architecture })
    }

    /// Whether there is such a target, with or without a GPU here.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for an architecture that is none.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.architecture {
            Some(architecture) if !is_architecture(architecture) => Err(Error::Unavailable {
                what: format!("the CUDA architecture {architecture:?}"),
                reason: "NVIDIA has none of that name".into(),
                hint: "Name one such as sm_75, sm_80, sm_90, sm_90a or sm_100".into(),
            }),
            _ => Ok(()),
        }
    }

    /// What plans for it depend on. Nothing was measured on a target, only on devices.
    pub(crate) fn settings(&self, fusion: Fusion) -> Settings {
        let undone = cut::undone();
        match &self.architecture {
            Some(architecture) => Settings {
                language: Language::Cuda,
                fusion,
                shared_bytes: shared_bytes(architecture),
                matrices: matrices(architecture),
                undone,
                tuned: None,
            },
            None => Settings {
                language: Language::C,
                fusion,
                shared_bytes: 0,
                matrices: Matrices::None,
                undone,
                tuned: None,
            },
        }
    }
}

/// Compute capabilities of GPUs that CUDA has known since version 12, times ten.
const CAPABILITIES: [u32; 21] =
    [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121];

/// Whether NVIDIA's compilers may know it: one of these, or a later one. From 9.0 on there are those with what one chip alone has (`a`), from 10.0
/// on those with what its family has (`f`).
fn is_architecture(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("sm_") else { return false };
    let (digits, least) = match rest.as_bytes().last() {
        Some(b'a') => (&rest[..rest.len() - 1], 90),
        Some(b'f') => (&rest[..rest.len() - 1], 100),
        _ => (rest, 0),
    };
    let is_number = digits.len() <= 3 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number && !digits.starts_with('0'));
    let is_known =
        |number: u32| CAPABILITIES.contains(&number) || CAPABILITIES.iter().all(|&known| known < number);
    number.is_some_and(|number| is_known(number) && number >= least)
}

/// Bytes of shared memory that a block can have, as the CUDA C++ Programming Guide has them for each compute capability;
/// what every GPU has for those that it does not name.
fn shared_bytes(architecture: &str) -> u32 {
    let number = architecture.trim_start_matches(|c: char| !c.is_ascii_digit());
    let kibibytes = match number.trim_end_matches(|c: char| !c.is_ascii_digit()).parse() {
        Ok(70 | 72) => 96,
        Ok(75) => 64,
        Ok(80 | 87) => 163,
        Ok(86 | 89 | 120..=129) => 99,
        Ok(90 | 100..=119) => 227,
        Ok(_) | Err(_) => 48,
    };
    kibibytes << 10
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.architecture {
            Some(architecture) => write!(f, "cuda {architecture}"),
            None => f.write_str("cpu"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_those_of_gpus() {
        let names =
            ["sm_50", "sm_75", "sm_90", "sm_90a", "sm_100f", "sm_103a", "sm_120", "sm_121f", "sm_130"];
        assert!(names.into_iter().all(is_architecture));
        let others = [
            "",
            "sm_",
            "sm_a",
            "90",
            "SM_90",
            "sm_10",
            "sm_1",
            "sm_95",
            "sm_90f",
            "sm_80a",
            "sm_090",
            "sm_+90",
            "sm_90 ",
            "sm_90aa",
            "sm_90b",
            "sm_1000",
            "gfx90a",
            "compute_90",
            "sm_banana",
            "sm_90\0",
        ];
        let taken: Vec<&str> = others.into_iter().filter(|name| is_architecture(name)).collect();
        assert!(taken.is_empty(), "{taken:?}");
        assert!(Target::cuda("90").check().is_err() && Target::cpu().check().is_ok());
    }
}
