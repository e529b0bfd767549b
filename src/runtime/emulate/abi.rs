//! What the compiled side and this one agree on: `lz_emu_kernel` of `shim.h` and
//! `lz_emu_launch_request` of `fibers.cpp`.

use std::ffi::{c_char, c_void};

/// What a kernel's library tells of itself, under the name `lz_emu_exported`.
#[repr(C)]
pub(super) struct Kernel {
    pub entry: unsafe extern "C" fn(*mut *mut c_void),
    pub parameters: u32,
    pub max_threads: u32,
    pub shared_begin: *mut c_char,
    pub shared_end: *mut c_char,
    pub parameter_bytes: *const u32,
}

/// One launch, and what became of it.
#[repr(C)]
pub(super) struct LaunchRequest {
    pub kernel: *const Kernel,
    pub arguments: *mut *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared_bytes: u32,
    pub lines: [u32; 4],
    pub message: [u8; 1024],
}

/// `lz_emu_launch`: 0, or else the request's message is set.
pub(super) type LaunchFunction = unsafe extern "C" fn(*mut LaunchRequest) -> i32;
