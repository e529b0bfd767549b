//! Where tensors live and kernels run.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use super::backend::Backend;
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
    Cpu,
    Cuda(usize),
    Emulated,
    Interpreter,
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
        Device(DeviceKind::Cpu)
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
}

impl Device {
    /// What the device is, in a line: for logs and benchmark tables.
    ///
    /// ```
    /// use lazuli::Device;
    /// assert!(Device::cpu().description()?.ends_with(" threads"));
    /// assert!(Device::cuda(1000).description().is_err());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there.
    pub fn description(&self) -> Result<String> {
        Backend::open(*self)?;
        Ok(match self.0 {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda(ordinal) => {
                let device = super::cuda::driver::CudaDevice::open(ordinal)?;
                format!(
                    "{self}: {} ({}, {} multiprocessors, {:.0} GB, {} KiB of shared memory a block)",
                    device.name(),
                    device.architecture(),
                    device.multiprocessors(),
                    device.total_memory() as f64 / 1e9,
                    device.shared_bytes_per_block() / 1024
                )
            }
            DeviceKind::Cpu => format!("cpu: {} threads", rayon::current_num_threads()),
            _ => self.to_string(),
        })
    }

    /// The CUDA architecture that its kernels are compiled for, none on the CPU.
    pub(crate) fn architecture(&self) -> Result<Option<String>> {
        match self.0 {
            DeviceKind::Cpu => Ok(None),
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda(ordinal) => {
                let device = super::cuda::driver::CudaDevice::open(ordinal)?;
                Ok(Some(device.architecture().to_owned()))
            }
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) => Backend::open(*self).map(|_| None),
            DeviceKind::Emulated => Ok(Some("sm_90".into())),
            DeviceKind::Interpreter => Err(Error::Unavailable {
                what: "a target for the interpreter".into(),
                reason: "it has no kernels".into(),
                hint: "Name another device".into(),
            }),
        }
    }

    /// Waits until everything that was started on the device has ended.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::rand([1000], 1).to(&Device::cpu()).exp();
    /// x.eval()?;
    /// Device::cpu().synchronize()?; // what x.eval() started has ended
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there; what kernels reported while running.
    pub fn synchronize(&self) -> Result<()> {
        Backend::open(*self)?.synchronize()
    }

    /// Seconds that the work started by `f` takes on the device: by events on a GPU, by the clock elsewhere.
    ///
    /// ```
    /// use lazuli::{DType, Device, Tensor};
    /// let x = Tensor::ones([1000], DType::F32).to(&Device::cpu());
    /// let seconds = Device::cpu().time(|| x.exp().eval())?;
    /// assert!(seconds > 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `f` returns; [`Unavailable`](crate::Error::Unavailable) if the device is not there.
    pub fn time(&self, f: impl FnOnce() -> Result<()>) -> Result<f64> {
        #[cfg(feature = "cuda")]
        if let DeviceKind::Cuda(ordinal) = self.0 {
            return super::cuda::driver::CudaDevice::open(ordinal)?.time(f);
        }
        Backend::open(*self)?;
        let start = Instant::now();
        f()?;
        Ok(start.elapsed().as_secs_f64())
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
        let ordinal = |name: &str| name.strip_prefix("cuda:")?.parse().ok();
        match name.trim() {
            "cpu" => Ok(Device::cpu()),
            "cuda" => Ok(Device::cuda(0)),
            "cuda (emulated)" => Ok(Device::cuda_emulated()),
            "interpreter" => Ok(Device::interpreter()),
            other => ordinal(other).map(Device::cuda).ok_or_else(|| Error::Unavailable {
                what: format!("device `{name}`"),
                reason: "no device has this name".into(),
                hint: "There are cpu, cuda, cuda:N, interpreter and cuda (emulated)".into(),
            }),
        }
    }
}
