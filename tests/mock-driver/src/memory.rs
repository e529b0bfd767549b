//! The functions of `libcuda` about memory: allocations, pools, pinned memory, copies and fills.

#![allow(
    clippy::missing_safety_doc,
    clippy::not_unsafe_ptr_arg_deref,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    non_snake_case,
    reason = "the contract of each is that of the driver's function"
)]

use std::ffi::{c_int, c_uint, c_void};

use crate::driver::{answer, device_number, put};
use crate::status::{Result, Status};
use crate::stream::{FIRST_CONTEXT, Pool, State, Work, state};

fn allocate(state: &mut State, device: usize, bytes: usize) -> Result<u64> {
    match state.devices[device].allocate(bytes) {
        // What was released is released when its stream comes to it.
        Err(Status::OUT_OF_MEMORY) => {
            state.wait_for_device(device)?;
            state.devices[device].allocate(bytes)
        }
        other => other,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        unsafe { put(address, allocate(&mut state, device, bytes)?) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let pool = FIRST_CONTEXT + state.device_of(stream)?;
        unsafe { put(address, allocate_from(&mut state, pool, bytes, stream)?) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut u64,
    bytes: usize,
    pool: usize,
    stream: usize,
) -> c_int {
    answer(|| unsafe { put(address, allocate_from(&mut state(), pool, bytes, stream)?) })
}

fn allocate_from(state: &mut State, pool: usize, bytes: usize, stream: usize) -> Result<u64> {
    let device = state.device_of(stream)?;
    if state.pools.get(&pool).ok_or(Status::INVALID_VALUE)?.device != device {
        return Err(Status::INVALID_VALUE);
    }
    let address = allocate(state, device, bytes)?;
    state.pool_of.insert(address, pool);
    if let Some(pool) = state.pools.get_mut(&pool) {
        pool.used += bytes as u64;
        pool.reserved = pool.reserved.max(pool.used);
    }
    Ok(address)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        state.wait_for_device(device)?;
        state.devices[device].release(address).map(|_| ())
    })
}

fn host_layout(bytes: usize) -> Result<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes, 4096).map_err(|_| Status::OUT_OF_MEMORY)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(start: *mut *mut c_void, bytes: usize, _flags: c_uint) -> c_int {
    answer(|| {
        let mut state = state();
        state.current()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let block = unsafe { std::alloc::alloc(host_layout(bytes)?) };
        if block.is_null() {
            return Err(Status::OUT_OF_MEMORY);
        }
        unsafe { block.write_bytes(0xff, bytes) };
        state.pinned.insert(block as usize, bytes);
        unsafe { put(start, block.cast()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(start: *mut c_void) -> c_int {
    answer(|| {
        let mut state = state();
        let bytes = state.pinned.remove(&(start as usize)).ok_or(Status::INVALID_VALUE)?;
        let end = start as usize + bytes;
        if state.streams.values().any(|stream| stream.copies(start as usize, end)) {
            eprintln!("mock driver: host memory is released while it is copied");
            return Err(Status::LAUNCH_FAILED);
        }
        unsafe { std::alloc::dealloc(start.cast(), host_layout(bytes)?) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.device_of(stream)?;
        if !state.devices[device].owns(address) {
            return Err(Status::INVALID_VALUE);
        }
        state.push_anywhere(stream, Work::Release(address))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        state.wait_for_device(device)?;
        let device = &state.devices[device];
        unsafe { put(free, device.memory - device.used).and(put(total, device.memory)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetMemPool(pool: *mut usize, device: c_int) -> c_int {
    answer(|| unsafe { put(pool, FIRST_CONTEXT + device_number(device)?) })
}

/// The beginning of `CUmemPoolProps`.
#[repr(C)]
pub struct PoolProperties {
    allocation: c_int,
    handles: c_int,
    location: c_int,
    device: c_int,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolCreate(pool: *mut usize, properties: *const PoolProperties) -> c_int {
    const PINNED: c_int = 1;
    const DEVICE: c_int = 1;
    answer(|| {
        let properties = unsafe { &*properties };
        if (properties.allocation, properties.handles, properties.location) != (PINNED, 0, DEVICE) {
            return Err(Status::INVALID_VALUE);
        }
        let device = device_number(properties.device)?;
        let mut state = state();
        let handle = state.handle();
        state.pools.insert(handle, Pool { device, used: 0, reserved: 0, threshold: 0 });
        unsafe { put(pool, handle) }
    })
}

const THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut u64) -> c_int {
    answer(|| {
        let state = state();
        let pool = state.pools.get(&pool).ok_or(Status::INVALID_VALUE)?;
        let number = match attribute {
            THRESHOLD => pool.threshold,
            RESERVED => pool.reserved,
            USED => pool.used,
            _ => return Err(Status::INVALID_VALUE),
        };
        unsafe { put(value, number) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolSetAttribute(pool: usize, attribute: c_int, value: *const u64) -> c_int {
    answer(|| {
        let mut state = state();
        let pool = state.pools.get_mut(&pool).ok_or(Status::INVALID_VALUE)?;
        if attribute != THRESHOLD {
            return Err(Status::INVALID_VALUE);
        }
        pool.threshold = unsafe { value.read() };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolTrimTo(pool: usize, bytes: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let pool = state.pools.get_mut(&pool).ok_or(Status::INVALID_VALUE)?;
        pool.reserved = pool.reserved.min(bytes as u64).max(pool.used);
        Ok(())
    })
}

/// Leaves a copy or a fill to a stream, if the device's side of it is within an allocation.
fn transfer(stream: usize, places: &[(u64, usize)], work: Work) -> Result<()> {
    let mut state = state();
    let device = state.current()?;
    if places.iter().any(|&(address, bytes)| !state.devices[device].holds(address, bytes)) {
        return Err(Status::INVALID_VALUE);
    }
    state.push(stream, work)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    bytes: usize,
    stream: usize,
) -> c_int {
    answer(|| {
        let mut state = state();
        let device = |context: usize| {
            let device = context.checked_sub(FIRST_CONTEXT).filter(|&device| device < state.devices.len());
            device.ok_or(Status::INVALID_CONTEXT)
        };
        let (own, peer) = (device(to_context)?, device(from_context)?);
        let fits = state.devices[own].holds(to, bytes) && state.devices[peer].holds(from, bytes);
        if own != state.current()? || !fits {
            return Err(Status::INVALID_VALUE);
        }
        state.push(stream, Work::PeerCopy { to, from, peer, bytes })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(address: u64, byte: u8, bytes: usize, stream: usize) -> c_int {
    answer(|| transfer(stream, &[(address, bytes)], Work::Fill { address, byte, bytes }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const u8,
    bytes: usize,
    stream: usize,
) -> c_int {
    answer(|| transfer(stream, &[(to, bytes)], Work::ToDevice { to, from, bytes }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: usize) -> c_int {
    answer(|| transfer(stream, &[(from, bytes)], Work::ToHost { to, from, bytes }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) -> c_int {
    answer(|| transfer(stream, &[(to, bytes), (from, bytes)], Work::Copy { to, from, bytes }))
}
