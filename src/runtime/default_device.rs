//! The device of what has no other: each thread's own.

use std::cell::Cell;

use super::device::{Device, DeviceKind};

thread_local! {
    static DEFAULT: Cell<Device> = const { Cell::new(Device(DeviceKind::Cpu(0))) };
}

impl Default for Device {
    /// This thread's default device: [`Device::cpu`] until [`Device::set_default`] or [`Device::scope`] says another.
    ///
    /// ```
    /// use lazuli::Device;
    /// assert_eq!(Device::default(), Device::cpu());
    /// ```
    fn default() -> Device {
        DEFAULT.get()
    }
}

impl Device {
    /// From now on this thread's tensors are on this device if nothing says where they are to be: data of its own
    /// ([`Tensor::from_vec`](crate::Tensor::from_vec) and the like) is moved there, and what follows from constants alone (ones,
    /// random numbers) is computed there. As `torch.set_default_device`. Other threads, new ones too, have their own.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// Device::set_default(&Device::cpu_virtual(1));
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!((x.device()?, Tensor::rand([3], 1).device()?), (Device::default(), Device::default()));
    /// assert_eq!((x + 1.0).device()?, Device::cpu_virtual(1));
    /// Device::set_default(&Device::cpu());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn set_default(device: &Device) {
        DEFAULT.set(*device);
    }

    /// It is this thread's default device while `f` runs, inside of other such calls in the place of theirs.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Device::cpu_virtual(1).scope(|| Tensor::from([1.0f32, 2.0]));
    /// assert_eq!((x.device()?, Device::default()), (Device::cpu_virtual(1), Device::cpu()));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> T {
        /// Restores the device also if `f` panics.
        struct Restore(Device);
        impl Drop for Restore {
            fn drop(&mut self) {
                DEFAULT.set(self.0);
            }
        }
        let _restore = Restore(DEFAULT.replace(*self));
        f()
    }

    /// Whether work for it is under way, and not done, when a call returns.
    pub(crate) fn runs_ahead(self) -> bool {
        matches!(self.0, DeviceKind::Cuda(_))
    }
}
