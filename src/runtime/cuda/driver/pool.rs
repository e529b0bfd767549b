//! The memory that stream-ordered allocations come from: a pool of our own, which no other library in the process uses.

use std::mem::zeroed;

use cudarc::driver::{DriverError, result, sys};

/// The driver's handle of a pool. It lives as long as the process.
pub(super) struct Pool(sys::CUmemoryPool);

// SAFETY: the handle is no memory of this process. The driver's functions may be called with it from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool on the device, which keeps what is released instead of giving it back whenever a stream is waited for.
    pub(super) fn new(device: sys::CUdevice) -> Result<Pool, DriverError> {
        let location =
            sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device };
        let properties = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location,
            // SAFETY: zeros are what the driver wants in all else.
            ..unsafe { zeroed() }
        };
        // SAFETY: the properties are whole.
        let pool = Pool(unsafe { result::mem_pool::create(&raw const properties) }?);
        pool.keep(u64::MAX)?;
        Ok(pool)
    }

    pub(super) fn raw(&self) -> sys::CUmemoryPool {
        self.0
    }

    /// From now on, so many bytes at most are kept for later when a stream is waited for.
    pub(super) fn keep(&self, mut bytes: u64) -> Result<(), DriverError> {
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: this attribute is a `cuuint64_t`.
        unsafe { result::mem_pool::set_attribute(self.0, attribute, (&raw mut bytes).cast()) }
    }

    /// The bytes that it has from the device.
    pub(super) fn reserved(&self) -> Result<u64, DriverError> {
        let (mut bytes, attribute) = (0u64, sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        // SAFETY: this attribute is a `cuuint64_t`.
        unsafe { result::mem_pool::get_attribute(self.0, attribute, (&raw mut bytes).cast()) }?;
        Ok(bytes)
    }

    /// Gives what is free back to the device.
    pub(super) fn trim(&self) -> Result<(), DriverError> {
        // SAFETY: the pool lives as long as the process.
        unsafe { result::mem_pool::trim_to(self.0, 0) }
    }
}
