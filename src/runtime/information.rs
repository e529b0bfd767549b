//! What a device is, in numbers.

use super::backend::Backend;
use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda::driver::CudaDevice;
#[cfg(feature = "cuda")]
use super::cuda::nvrtc::Nvrtc;
use super::device::{Device, DeviceKind};
use crate::{Error, Result};

/// What a device is; from [`Device::information`].
///
/// ```
/// use lazuli::Device;
/// let cpu = Device::cpu().information()?;
/// assert!(cpu.processors >= 1 && cpu.bandwidth.is_none());
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct DeviceInformation {
    /// The product's name, where it is known, such as `NVIDIA H200`.
    pub name: Option<String>,
    /// What kernels are compiled for, such as `sm_90`; of GPUs.
    pub architecture: Option<String>,
    /// The multiprocessors of a GPU; the threads that a kernel has on the CPU.
    pub processors: usize,
    /// Bytes of memory, where they are known.
    pub memory: Option<u64>,
    /// The highest clock of its processors in Hz; of GPUs.
    pub clock: Option<f64>,
    /// Bytes a second that its memory moves at most, by its clock and width; of GPUs.
    pub bandwidth: Option<f64>,
}

impl Device {
    /// What compiles its kernels, in words: a C compiler with its version, or NVRTC. Where the CPU has none, the interpreter takes its
    /// place in evaluations, and this is how to know.
    ///
    /// ```
    /// use lazuli::Device;
    /// match Device::cpu().compiler() {
    ///     Ok(compiler) => println!("kernels are compiled by {compiler}"),
    ///     Err(error) => println!("{error}"), // what is missing, and what to do
    /// }
    /// assert!(Device::interpreter().compiler().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if there is none, or none is needed.
    pub fn compiler(&self) -> Result<String> {
        match self.0 {
            DeviceKind::Cpu(_) => Ok(cpu::Compiler::get()?.version().to_owned()),
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda(_) => {
                let (major, minor) = Nvrtc::get()?.version();
                Ok(format!("NVRTC {major}.{minor}"))
            }
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) => Backend::open(*self).map(|_| "NVRTC".into()),
            DeviceKind::Emulated => Backend::open(*self).map(|_| "a C++ compiler".into()),
            DeviceKind::Interpreter | DeviceKind::Interpreted(_) => Err(Error::Unavailable {
                what: format!("a compiler for {self}"),
                reason: "nothing is compiled there".into(),
                hint: "Name another device".into(),
            }),
        }
    }

    /// What the device is: name, memory, processors, clocks.
    ///
    /// ```
    /// use lazuli::Device;
    /// let device = Device::best().information()?;
    /// println!("{} processors, {:?} bytes", device.processors, device.memory);
    /// assert!(Device::cuda(1000).information().is_err());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) if it is not there.
    pub fn information(&self) -> Result<DeviceInformation> {
        Backend::open(*self)?;
        #[cfg(feature = "cuda")]
        if let DeviceKind::Cuda(ordinal) = self.0 {
            let device = CudaDevice::open(ordinal)?;
            let [clock, memory_clock, bits] = device.clocks()?.map(f64::from);
            // Two transfers a cycle.
            let bandwidth = 2.0 * memory_clock * 1e3 * bits / 8.0;
            return Ok(DeviceInformation {
                name: Some(device.name().to_owned()),
                architecture: Some(device.architecture().to_owned()),
                processors: device.multiprocessors() as usize,
                memory: Some(device.total_memory()),
                clock: Some(clock * 1e3),
                bandwidth: (bandwidth > 0.0).then_some(bandwidth),
            });
        }
        let of = |file: &str, key: &str| {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'))?;
            Some(line.1.trim().to_owned())
        };
        let kilobytes =
            of("/proc/meminfo", "MemTotal").and_then(|total| total.split(' ').next()?.parse().ok());
        Ok(DeviceInformation {
            name: of("/proc/cpuinfo", "model name"),
            architecture: None,
            processors: if matches!(self.0, DeviceKind::Cpu(_)) { cpu::threads() as usize } else { 1 },
            memory: kilobytes.map(|kilobytes: u64| kilobytes << 10),
            clock: None,
            bandwidth: None,
        })
    }
}
