//! Where tensors live and kernels run.

use std::fmt;

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
    Cpu,
    Cuda(usize),
    Emulated,
    Interpreter,
}

impl Device {
    /// The CPU: kernels are emitted as C and compiled by the system's C compiler.
    pub fn cpu() -> Device {
        Device(DeviceKind::Cpu)
    }

    /// The CUDA GPU with this ordinal, from 0.
    pub fn cuda(ordinal: usize) -> Device {
        Device(DeviceKind::Cuda(ordinal))
    }

    /// The emitted CUDA C, executed on the CPU thread by thread. For tests: right, but slow. Needs
    /// the feature `emulate` and a C++ compiler.
    pub fn cuda_emulated() -> Device {
        Device(DeviceKind::Emulated)
    }

    /// The reference interpreter: one plain loop an operation, no compiler, nothing fused.
    pub fn interpreter() -> Device {
        Device(DeviceKind::Interpreter)
    }

    /// Whether the device's memory is the program's own.
    pub(crate) fn is_host(self) -> bool {
        !matches!(self.0, DeviceKind::Cuda(_))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DeviceKind::Cpu => f.pad("cpu"),
            DeviceKind::Cuda(ordinal) => f.pad(&format!("cuda:{ordinal}")),
            DeviceKind::Emulated => f.pad("cuda (emulated)"),
            DeviceKind::Interpreter => f.pad("interpreter"),
        }
    }
}
