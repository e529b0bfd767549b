//! Where tensors live and kernels run.

use std::fmt;
use std::str::FromStr;

use lazuli_codegen::Language;

use crate::{Error, Result};

/// A place that holds tensors and runs kernels. Naming a device never fails; using one that is not
/// there gives [`Error::Unavailable`](crate::Error::Unavailable).
///
/// ```
/// use lazuli::Device;
/// assert_eq!(Device::cpu().to_string(), "cpu");
/// assert_eq!(Device::cuda(1).to_string(), "cuda:1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device(pub(crate) DeviceKind);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum DeviceKind {
    /// With its number: the first one is the CPU, the others are the same by other names.
    Cpu(usize),
    Cuda(usize),
    Emulated,
    Interpreter,
    /// Kernels for a language, in the interpreter of kernels.
    Interpreted(Language),
}

impl Device {
    /// The CPU: kernels are emitted as C and compiled by the system's C compiler.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 4.0], [2]).to(&Device::cpu());
    /// assert_eq!(x.sqrt().to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cpu() -> Device {
        Device(DeviceKind::Cpu(0))
    }

    /// The CPU under another name, `cpu:1`: a device of its own for programs that divide their work among several, to write and
    /// test these where there is one GPU or none. Processors, memory, and kernels are the CPU's, and number 0 is the CPU itself.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let there = x.to(&Device::cpu_virtual(1));
    /// assert_eq!((&there + 1.0).to_vec::<f32>()?, [2.0, 3.0]);
    /// let error = (&x + &there).eval().unwrap_err(); // as with two GPUs
    /// assert!(error.to_string().contains("cpu and cpu:1"), "{error}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cpu_virtual(number: usize) -> Device {
        Device(DeviceKind::Cpu(number))
    }

    /// Whether it is the CPU, by whatever name.
    pub(crate) fn is_cpu(self) -> bool {
        matches!(self.0, DeviceKind::Cpu(_))
    }

    /// The CUDA GPU with this ordinal, from 0.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 4.0], [2]).to(&Device::cuda(0)); // recorded only
    /// assert_eq!(x.device()?.to_string(), "cuda:0");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cuda(ordinal: usize) -> Device {
        Device(DeviceKind::Cuda(ordinal))
    }

    /// The emitted CUDA C, executed on the CPU thread by thread. For tests: right, but slow. Needs
    /// the feature `emulate` and a C++ compiler.
    ///
    /// ```
    /// use lazuli::Device;
    /// assert_eq!(Device::cuda_emulated().to_string(), "cuda (emulated)");
    /// ```
    pub fn cuda_emulated() -> Device {
        Device(DeviceKind::Emulated)
    }

    /// The reference interpreter: one plain loop an operation, no compiler, nothing fused.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 4.0], [2]);
    /// let reference = x.to(&Device::interpreter()).sqrt().to_vec::<f32>()?;
    /// assert_eq!(x.sqrt().to_vec::<f32>()?, reference);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn interpreter() -> Device {
        Device(DeviceKind::Interpreter)
    }

    /// The kernels that the CPU would run, in an interpreter instead of a compiler. It tells a mistake of fusion or of
    /// lowering from one of the emitted text, and tests both without compiling anything: slow, but at once.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 4.0], [2]).to(&Device::cpu_interpreted());
    /// let y = x.sqrt() + 1.0;
    /// assert_eq!(y.explain()?.kernels(), 1);
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cpu_interpreted() -> Device {
        Device(DeviceKind::Interpreted(Language::C))
    }

    /// The kernels that a GPU of architecture sm_100 would run, in an interpreter, as [`Device::cpu_interpreted`].
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2]).to(&Device::cuda_interpreted());
    /// assert_eq!((&x / x.sum(0)).to_vec::<f32>()?, [0.25, 0.75]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cuda_interpreted() -> Device {
        Device(DeviceKind::Interpreted(Language::Cuda))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DeviceKind::Cpu(0) => f.pad("cpu"),
            DeviceKind::Cpu(number) => f.pad(&format!("cpu:{number}")),
            DeviceKind::Cuda(ordinal) => f.pad(&format!("cuda:{ordinal}")),
            DeviceKind::Emulated => f.pad("cuda (emulated)"),
            DeviceKind::Interpreter => f.pad("interpreter"),
            DeviceKind::Interpreted(Language::C) => f.pad("cpu (interpreted)"),
            DeviceKind::Interpreted(Language::Cuda) => f.pad("cuda (interpreted)"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// A device by the name that it prints; `cuda` is the first GPU.
    ///
    /// ```
    /// use lazuli::Device;
    /// assert_eq!("cuda:1".parse::<Device>()?, Device::cuda(1));
    /// assert_eq!("cpu".parse::<Device>()?, Device::cpu());
    /// assert!("tpu".parse::<Device>().is_err());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](Error::Unavailable) if no device has such a name. Whether it is there shows when it is used.
    fn from_str(name: &str) -> Result<Device> {
        let numbered = |kind: &str| name.trim().strip_prefix(kind)?.parse().ok();
        match name.trim() {
            "cpu" => Ok(Device::cpu()),
            "cuda" => Ok(Device::cuda(0)),
            "cuda (emulated)" => Ok(Device::cuda_emulated()),
            "interpreter" => Ok(Device::interpreter()),
            "cpu (interpreted)" => Ok(Device::cpu_interpreted()),
            "cuda (interpreted)" => Ok(Device::cuda_interpreted()),
            _ => {
                let device = numbered("cuda:").map(Device::cuda);
                device.or_else(|| numbered("cpu:").map(Device::cpu_virtual)).ok_or_else(|| Error::Unavailable {
                    what: format!("device `{name}`"),
                    reason: "no device has this name".into(),
                    hint: "There are cpu, cpu:N, cuda, cuda:N, interpreter, cuda (emulated), cpu (interpreted) and cuda (interpreted)".into(),
                })
            }
        }
    }
}
