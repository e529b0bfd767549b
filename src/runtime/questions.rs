//! What is asked of a device itself: what it is, and how long its work takes.

use std::time::Instant;

use lazuli_codegen::Language;

use super::backend::Backend;
#[cfg(feature = "cuda")]
use super::cuda::driver::CudaDevice;
use super::device::{Device, DeviceKind};
use crate::{Error, Result};

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
                let device = CudaDevice::open(ordinal)?;
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
                let device = CudaDevice::open(ordinal)?;
                Ok(Some(device.architecture().to_owned()))
            }
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) => Backend::open(*self).map(|_| None),
            DeviceKind::Interpreted(Language::C) => Ok(None),
            DeviceKind::Emulated | DeviceKind::Interpreted(Language::Cuda) => Ok(Some("sm_90".into())),
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
            return CudaDevice::open(ordinal)?.time(f);
        }
        Backend::open(*self)?;
        let start = Instant::now();
        f()?;
        Ok(start.elapsed().as_secs_f64())
    }
}
