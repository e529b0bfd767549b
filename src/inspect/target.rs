//! What kernels are compiled for.

use std::fmt;

use lazuli_codegen::Language;

use crate::compiler::{Settings, has_warp_groups};
use crate::fusion::cut;
use crate::{Device, Fusion, Result};

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
    /// A CUDA architecture, such as `sm_90`. No GPU is needed.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert!(program.source().contains("__global__ void"));
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

    /// What plans for it depend on. Nothing was measured on a target, only on devices.
    pub(crate) fn settings(&self, fusion: Fusion) -> Settings {
        let undone = cut::undone();
        match &self.architecture {
            Some(architecture) => Settings {
                language: Language::Cuda,
                fusion,
                shared_bytes: shared_bytes(architecture),
                warp_groups: has_warp_groups(architecture),
                undone,
                tuned: None,
            },
            None => Settings {
                language: Language::C,
                fusion,
                shared_bytes: 0,
                warp_groups: false,
                undone,
                tuned: None,
            },
        }
    }
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
