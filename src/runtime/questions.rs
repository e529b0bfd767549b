//! What is asked of a device itself: what it is, and how long its work takes.

use std::time::Instant;

use lazuli_codegen::Language;

use super::backend::Backend;
use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda::driver::CudaDevice;
use super::device::{Device, DeviceKind};
use super::host;
use super::memory::Memory;
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
            DeviceKind::Cpu(_) => format!("{self}: {} threads", cpu::threads()),
            _ => self.to_string(),
        })
    }

    /// How many bytes tensors have there, the most they had, and what is kept for the next ones. Devices in the memory of this
    /// process (the CPU, interpreters, the emulated GPU) are one in this.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_vec(vec![1.0f32; 1000], [1000]);
    /// assert!(Device::cpu().memory()?.allocated >= 4000);
    /// # drop(x);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there.
    pub fn memory(&self) -> Result<Memory> {
        match Backend::open(*self)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.memory(),
            _ => Ok(host::memory()),
        }
    }

    /// From now on, [`Memory::peak`] is the most that is allocated from now on.
    ///
    /// ```
    /// use lazuli::Device;
    /// Device::cpu().reset_peak_memory()?;
    /// assert!(Device::cpu().memory()?.peak >= Device::cpu().memory()?.allocated);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there.
    pub fn reset_peak_memory(&self) -> Result<()> {
        match Backend::open(*self)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.usage().reset_peak(),
            _ => host::reset_peak(),
        }
        Ok(())
    }

    /// From now on, tensors and evaluations have at most so many bytes there; `None` for as many as there is room for. What would
    /// need more is [`OutOfMemory`](crate::Error::OutOfMemory). Devices in the memory of this process have one limit, and
    /// what they have already stays. What is kept for the next allocations is within the limit, too.
    ///
    /// ```
    /// use lazuli::{DType, Device, Error, Tensor};
    /// let cpu = Device::cpu();
    /// cpu.limit_memory(Some(cpu.memory()?.allocated + (1 << 20)))?;
    /// let too_much = Tensor::rand([1000, 1000], 1).exp(); // this line
    /// let error = too_much.eval().unwrap_err();
    /// assert!(matches!(error, Error::OutOfMemory { op: Some("exp"), requested: 4_000_000, .. }));
    /// cpu.limit_memory(None)?;
    /// too_much.eval()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there.
    pub fn limit_memory(&self, bytes: Option<u64>) -> Result<()> {
        let bytes = bytes.unwrap_or(u64::MAX);
        match Backend::open(*self)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.limit(bytes)?,
            _ => host::limit(bytes),
        }
        Ok(())
    }

    /// Gives memory that is kept for the next allocations back to the system. Running out of memory does the same, before it
    /// is an error.
    ///
    /// ```
    /// use lazuli::Device;
    /// Device::cpu().trim_memory()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there, [`Device`](crate::Error::Device) if waiting for it fails.
    pub fn trim_memory(&self) -> Result<()> {
        match Backend::open(*self)? {
            #[cfg(feature = "cuda")]
            Backend::Cuda(device) => device.trim()?,
            _ => host::trim(),
        }
        Ok(())
    }

    /// The CUDA architecture that its kernels are compiled for, none on the CPU.
    pub(crate) fn architecture(&self) -> Result<Option<String>> {
        match self.0 {
            DeviceKind::Cpu(_) => Ok(None),
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda(ordinal) => {
                let device = CudaDevice::open(ordinal)?;
                Ok(Some(device.architecture().to_owned()))
            }
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) => Backend::open(*self).map(|_| None),
            DeviceKind::Interpreted(Language::C) => Ok(None),
            DeviceKind::Emulated => Ok(Some("sm_90".into())),
            DeviceKind::Interpreted(Language::Cuda) => Ok(Some("sm_100".into())),
            DeviceKind::Interpreter => Err(Error::Unavailable {
                what: "a target for the interpreter".into(),
                reason: "it has no kernels".into(),
                hint: "Name another device".into(),
            }),
        }
    }

    /// Waits until everything that was started on the device, on whatever stream, has ended.
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

    /// Seconds that the work started by `f` takes on the device: by events on the current [`Stream`](crate::Stream) of a GPU,
    /// by the clock elsewhere.
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
