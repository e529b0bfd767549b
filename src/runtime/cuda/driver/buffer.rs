//! Memory of a device.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{DriverError, result};

use super::CudaDevice;
use super::free_lists::Block;
use super::order::{Access, Uses};
use super::stream::CudaStream;
use crate::runtime::fault::Faults;
use crate::runtime::memory::let_go;
use crate::{Error, Result};

/// Memory of a device. Dropping it releases the memory after the work that has been started with it.
pub(crate) struct CudaBuffer {
    /// 0 for no bytes.
    address: u64,
    bytes: usize,
    device: Arc<CudaDevice>,
    /// The stream that was current when the buffer was made.
    home: Arc<CudaStream>,
    uses: Mutex<Uses>,
    owner: Owner,
    faults: Faults,
}

/// To whom memory goes back.
enum Owner {
    /// The device's pool, in the order of a stream: a block of so many bytes.
    Pool { block: usize },
    /// The device, which waits for all of its work.
    Device,
    /// Others, who keep it until this is dropped.
    Other { keeper: Option<Box<dyn Any + Send + Sync>>, is_ordered: bool },
}

impl CudaBuffer {
    /// Fresh memory, counted already, got in the order of this thread's stream.
    pub(super) fn new(device: &Arc<CudaDevice>, bytes: usize) -> Result<CudaBuffer, DriverError> {
        let home = device.stream();
        let (address, owner) = match (bytes, &device.pool) {
            (0, _) => (0, Owner::Device),
            (_, Some(pool)) => {
                let block = device.free_lists.block_bytes(bytes);
                let address = match device.free_lists.take(&home, block) {
                    Some(address) => address,
                    // SAFETY: any bytes are valid, and nothing on the host reads them but through `download`.
                    None => unsafe { result::mem_pool::alloc_async(pool.raw(), block, home.raw()) }?,
                };
                (address, Owner::Pool { block })
            }
            // SAFETY: as above.
            (_, None) => (unsafe { result::malloc_sync(bytes) }?, Owner::Device),
        };
        home.has_started();
        let (device, uses) = (device.clone(), Mutex::new(Uses::new(home.clone())));
        Ok(CudaBuffer { address, bytes, device, home, uses, owner, faults: Faults::default() })
    }

    /// Memory of others, who have written it in the order of this thread's stream.
    ///
    /// # Safety
    /// There are so many bytes of this device, which nobody writes or releases until `keeper` is dropped.
    pub(crate) unsafe fn of_others(
        device: &Arc<CudaDevice>,
        address: u64,
        bytes: usize,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> CudaBuffer {
        let home = device.stream();
        let owner = Owner::Other { keeper: Some(keeper), is_ordered: home.is_foreign() };
        let (device, uses) = (device.clone(), Mutex::new(Uses::new(home.clone())));
        CudaBuffer { address, bytes, device, home, uses, owner, faults: Faults::default() }
    }

    /// The address on the device: 0 for no bytes.
    pub(crate) fn device_pointer(&self) -> u64 {
        self.address
    }

    /// The length.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What may be wrong with what it holds.
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> &Arc<CudaDevice> {
        &self.device
    }

    /// Whether others have it, and may see what is written.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self.owner, Owner::Other { .. })
    }

    /// From now on the stream uses it: what it starts comes after what other streams do with it.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn use_on(&self, stream: &Arc<CudaStream>, access: Access) -> Result<()> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.add(&self.device, stream, access).map_err(|error: DriverError| -> Error {
            self.device.failed("order a stream after another one", error)
        })
    }

    fn release(&mut self) -> Result<(), DriverError> {
        let device = &self.device;
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        device.context.bind_to_thread()?;
        match &mut self.owner {
            _ if self.address == 0 => Ok(()),
            &mut Owner::Pool { block: bytes } => {
                let ordered = uses.wait(device, &self.home);
                // Who comes after the stream comes after what it waits for now.
                device.live(&self.home).has_started();
                let block = Block { address: self.address, bytes, stream: self.home.clone() };
                // Another library may destroy a stream of its own.
                let released = match ordered.is_err() || self.home.is_foreign() {
                    true => vec![block],
                    false => device.free_lists.keep(block),
                };
                ordered.and(device.release(released))
            }
            // SAFETY: the memory is the device's; the driver waits for all that uses it.
            Owner::Device => unsafe { result::free_sync(self.address) },
            Owner::Other { keeper, is_ordered } => {
                // What its owner does with it comes in the order of the owner's stream, or else at any time.
                let waited = match is_ordered {
                    true => uses.wait(device, &self.home),
                    false => uses.streams().try_for_each(|stream| {
                        // SAFETY: the stream is alive.
                        unsafe { result::stream::synchronize(device.live(stream).raw()) }
                    }),
                };
                drop(keeper.take());
                waited
            }
        }
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if !self.is_of_others() {
            // Before somebody else has the address.
            let_go(Some(self.device.ordinal), self.address, self.bytes);
        }
        let released = self.release();
        // Those that matter come with the next call.
        self.device.context.record_err(released);
        if !self.is_of_others() {
            self.device.usage.give_back(self.bytes);
        }
    }
}
