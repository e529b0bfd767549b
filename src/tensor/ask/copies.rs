//! How fast a device copies its memory, which is what kernels are compared with.

use std::sync::{Mutex, PoisonError};

use crate::inspect::profile::Profile;
use crate::recording::Tensor;
use crate::runtime::device::DeviceKind;
use crate::{DType, Device, Result};

/// More than caches hold.
const BYTES: u64 = 256 << 20;

/// Times that a copy is made.
const COPIES: usize = 5;

impl Profile {
    /// With each kernel's speed beside that of a copy: what share of it the kernel moves its bytes at
    /// ([`KernelTime::share_of_copy`](crate::KernelTime), and a column of the table). Each device's copy is measured once in a
    /// process, which takes up to half a second. Kernels whose bytes stay in caches may be over 100 %; those of interpreters have none.
    ///
    /// ```
    /// use lazuli::{Tensor, profile};
    /// let x = Tensor::rand([1000, 1000], 1);
    /// x.eval()?;
    /// let (_, profile) = profile(|| x.softmax(1).eval());
    /// let profile = profile.beside_copies()?;
    /// assert!(profile.kernels()[0].share_of_copy.is_some_and(|share| share > 0.0));
    /// assert!(profile.to_string().contains("of copy"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`eval`](crate::eval).
    pub fn beside_copies(mut self) -> Result<Profile> {
        for kernel in &mut self.kernels {
            let of_copy = bytes_per_second(kernel.device)?;
            kernel.share_of_copy = of_copy.map(|speed| kernel.gigabytes_per_second() * 1e9 / speed);
        }
        Ok(self)
    }
}

/// Bytes that a copy reads and writes in a second; nothing for an interpreter.
fn bytes_per_second(device: Device) -> Result<Option<f64>> {
    static KNOWN: Mutex<Vec<(Device, f64)>> = Mutex::new(Vec::new());
    if !matches!(device.0, DeviceKind::Cpu(_) | DeviceKind::Cuda(_)) {
        return Ok(None);
    }
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().iter().find(|(other, _)| *other == device).map(|(_, speed)| *speed);
    if found.is_some() {
        return Ok(found);
    }
    let memory = device.information()?.memory.unwrap_or(BYTES);
    let elements = (BYTES.min(memory / 16) / 4) as usize;
    let x = Tensor::zeros([elements], DType::F32).to(&device);
    x.eval()?;
    let mut least = f64::INFINITY;
    for _ in 0..=COPIES {
        // As cheap as a copy.
        let y = -&x;
        least = least.min(device.time(|| y.eval())?);
    }
    let speed = (8 * elements) as f64 / least.max(1e-9);
    known().push((device, speed));
    Ok(Some(speed))
}
