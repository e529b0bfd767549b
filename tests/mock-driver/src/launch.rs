//! Launches, with the rules of the driver for what a kernel may ask: `cuLaunch…`.

#![allow(
    clippy::missing_safety_doc,
    clippy::not_unsafe_ptr_arg_deref,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    non_snake_case,
    reason = "the contract of each is that of the driver's function"
)]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::PoisonError;

use crate::device::capability;
use crate::driver::answer;
use crate::status::{Result, Status};
use crate::stream::{Launch, State, Work, state};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: usize,
    arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    answer(|| {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let mut state = state();
        let launch = unsafe { launch_of(&state, function, grid, block, shared, arguments) }?;
        state.push(stream, Work::Launch(launch))
    })
}

/// `CUlaunchConfig` of `cuda.h`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: usize,
    attributes: *const LaunchAttribute,
    count: c_uint,
}

/// `CUlaunchAttribute` of `cuda.h`: a number, and a value of up to 64 bytes.
#[repr(C, align(8))]
pub struct LaunchAttribute {
    id: c_uint,
    pad: [u8; 4],
    value: [c_int; 16],
}

/// Launches have ended before the next begins, but a kernel that may begin before must be one that waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: usize,
    arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    const PROGRAMMATIC_STREAM_SERIALIZATION: c_uint = 6;
    answer(|| {
        let LaunchConfig { grid, block, shared, stream, attributes, count } = unsafe { config.read() };
        let mut state = state();
        for number in 0..count as usize {
            let attribute = unsafe { &*attributes.add(number) };
            let kernel = state.functions.get(&function).ok_or(Status::INVALID_HANDLE)?;
            if attribute.id != PROGRAMMATIC_STREAM_SERIALIZATION || attribute.value[0] != 1 {
                return Err(Status::INVALID_VALUE);
            }
            if capability().0 < 9 || !kernel.waits {
                eprintln!("mock driver: the kernel does not wait for the one before it");
                return Err(Status::INVALID_VALUE);
            }
        }
        let launch = unsafe { launch_of(&state, function, grid, block, shared, arguments) }?;
        state.push(stream, Work::Launch(launch))
    })
}

/// A launch that this thread's context allows, with copies of its parameters.
///
/// # Safety
/// There are as many pointers, each to a value of its parameter's type.
pub(crate) unsafe fn launch_of(
    state: &State,
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    arguments: *mut *mut c_void,
) -> Result<Launch> {
    let function = state.functions.get(&function).cloned().ok_or(Status::INVALID_HANDLE)?;
    if state.current()? != function.device {
        return Err(Status::INVALID_HANDLE);
    }
    let limit = *function.shared_limit.lock().unwrap_or_else(PoisonError::into_inner);
    if shared > limit {
        return Err(Status::INVALID_VALUE);
    }
    let sizes = function.kernel.parameter_bytes();
    if let Err(reason) = function.kernel.check_launch(grid, block, shared, sizes.len()) {
        eprintln!("mock driver: {reason}");
        return Err(Status::INVALID_VALUE);
    }
    let copied = sizes.iter().enumerate().map(|(number, &bytes)| {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts((*arguments.add(number)).cast::<u8>(), bytes as usize) }.to_vec()
    });
    let arguments = copied.collect();
    Ok(Launch { function, grid, block, shared, arguments })
}
