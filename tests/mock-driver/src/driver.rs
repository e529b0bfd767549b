//! The functions of `libcuda`. What NVIDIA's documentation says of each is its contract, and its safety.

#![allow(
    clippy::missing_safety_doc,
    clippy::not_unsafe_ptr_arg_deref,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    non_snake_case,
    reason = "the contract of each is that of the driver's function"
)]

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::{Arc, PoisonError};

use lazuli::emulation::Kernel;

use crate::device::{
    MOST_BLOCKS, MOST_SHARED_BYTES, MULTIPROCESSORS, REGISTERS_OF_MULTIPROCESSOR, REGISTERS_OF_THREAD,
    SHARED_BYTES, THREADS_OF_MULTIPROCESSOR, capability,
};
use crate::nvrtc::{MARK, source_within};
use crate::status::{Result, Status};
use crate::stream::{CURRENT, Event, FIRST_CONTEXT, Function, Module, Stream, Work, state};

pub(crate) fn answer(f: impl FnOnce() -> Result<()>) -> c_int {
    Status::from(f()).0
}

/// Writes a result.
///
/// # Safety
/// The place is null, or may be written to.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

pub(crate) fn device_number(device: c_int) -> Result<usize> {
    let number = usize::try_from(device).map_err(|_| Status::INVALID_DEVICE)?;
    if number < state().devices.len() { Ok(number) } else { Err(Status::INVALID_DEVICE) }
}

// Errors ---------------------------------------------------------------------------------------------------------------

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(status: c_int, text: *mut *const c_char) -> c_int {
    answer(|| match Status::words(status) {
        Some((name, _)) => unsafe { put(text, name.as_ptr()) },
        None => Err(Status::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(status: c_int, text: *mut *const c_char) -> c_int {
    answer(|| match Status::words(status) {
        Some((_, words)) => unsafe { put(text, words.as_ptr()) },
        None => Err(Status::INVALID_VALUE),
    })
}

// Devices and contexts -------------------------------------------------------------------------------------------------

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    Status::SUCCESS.0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    answer(|| unsafe { put(version, 13_000) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    answer(|| unsafe { put(count, state().devices.len() as c_int) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    answer(|| unsafe { put(device, device_number(ordinal)? as c_int) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> c_int {
    const NAME: &[u8] = b"Mock GPU\0";
    answer(|| {
        device_number(device)?;
        if name.is_null() || usize::try_from(length).unwrap_or(0) < NAME.len() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller has that much room.
        unsafe { std::ptr::copy_nonoverlapping(NAME.as_ptr().cast(), name, NAME.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    answer(|| {
        let device = device_number(device)?;
        unsafe { put(bytes, state().devices[device].memory) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int {
    answer(|| {
        device_number(device)?;
        let number = match attribute {
            1 => 1024,             // threads of a block
            8 => SHARED_BYTES,     // shared memory of a block
            10 => 32,              // threads of a warp
            13 => 1_980_000,       // clock, kHz
            16 => MULTIPROCESSORS, // multiprocessors
            36 => 3_201_000,       // memory's clock, kHz
            37 => 6144,            // bits of its bus
            38 => 50 << 20,        // bytes of L2
            39 => THREADS_OF_MULTIPROCESSOR,
            75 => capability().0,    // compute capability
            76 => capability().1,    //
            97 => MOST_SHARED_BYTES, // shared memory of a block that asks for it
            115 => 1,                // memory pools
            _ => 0,
        };
        unsafe { put(value, number as c_int) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> c_int {
    answer(|| unsafe { put(context, FIRST_CONTEXT + device_number(device)?) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    answer(|| device_number(device).map(|_| ()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> c_int {
    answer(|| unsafe { put(context, CURRENT.get().map_or(0, |device| FIRST_CONTEXT + device)) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    answer(|| {
        let device = match context.checked_sub(FIRST_CONTEXT) {
            Some(device) if device < state().devices.len() => Some(device),
            _ if context == 0 => None,
            _ => return Err(Status::INVALID_CONTEXT),
        };
        CURRENT.set(device);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        state.wait_for_device(device)
    })
}

// Streams and events ---------------------------------------------------------------------------------------------------

/// Lowest and highest, as on GPUs of today.
const PRIORITIES: (c_int, c_int) = (0, -5);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> c_int {
    answer(|| {
        state().current()?;
        unsafe { put(least, PRIORITIES.0).and(put(greatest, PRIORITIES.1)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut usize, flags: c_uint) -> c_int {
    unsafe { cuStreamCreateWithPriority(stream, flags, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreateWithPriority(
    stream: *mut usize,
    _flags: c_uint,
    priority: c_int,
) -> c_int {
    answer(|| {
        let mut state = state();
        let (device, handle) = (state.current()?, state.handle());
        state.streams.insert(handle, Stream::new(device, priority.clamp(PRIORITIES.1, PRIORITIES.0)));
        unsafe { put(stream, handle) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetPriority(stream: usize, priority: *mut c_int) -> c_int {
    answer(|| {
        let number = state().stream(stream)?.priority;
        unsafe { put(priority, number) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: usize) -> c_int {
    answer(|| if state().stream(stream)?.is_idle() { Ok(()) } else { Err(Status::NOT_READY) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> c_int {
    answer(|| {
        let mut state = state();
        match state.events.get(&event).ok_or(Status::INVALID_HANDLE)?.stream {
            Some((other, done)) => state.push(stream, Work::Wait { stream: other, done }),
            None => Ok(()),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: usize) -> c_int {
    answer(|| {
        let mut state = state();
        // What it has to do is done all the same.
        state.wait(stream)?;
        state.streams.remove(&stream);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: usize) -> c_int {
    answer(|| state().wait(stream))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> c_int {
    answer(|| {
        let mut state = state();
        let (device, handle) = (state.current()?, state.handle());
        state.events.insert(handle, Event { device, reached: None, stream: None });
        unsafe { put(event, handle) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: usize) -> c_int {
    answer(|| state().events.remove(&event).map(|_| ()).ok_or(Status::INVALID_HANDLE))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: usize, stream: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        let (stream, given) = (state.resolve(stream)?, state.given(stream)?);
        let recorded = state.events.get_mut(&event).filter(|event| event.device == device);
        let recorded = recorded.ok_or(Status::INVALID_HANDLE)?;
        (recorded.reached, recorded.stream) = (None, Some((stream, given + 1)));
        state.push(stream, Work::Record(event))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: usize) -> c_int {
    answer(|| {
        let mut state = state();
        match state.events.get(&event).ok_or(Status::INVALID_HANDLE)?.stream {
            Some((stream, done)) => state.advance(stream, done),
            None => Ok(()),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: usize) -> c_int {
    answer(|| match state().events.get(&event).ok_or(Status::INVALID_HANDLE)? {
        Event { stream: Some(_), reached: None, .. } => Err(Status::NOT_READY),
        _ => Ok(()),
    })
}

/// # Safety
/// As the driver's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: usize, end: usize) -> c_int {
    answer(|| {
        let state = state();
        let time = |event: usize| -> Result<f64> {
            let event = state.events.get(&event).filter(|event| event.stream.is_some());
            let reached = event.ok_or(Status::INVALID_HANDLE)?.reached.ok_or(Status::NOT_READY)?;
            Ok(state.milliseconds(reached))
        };
        unsafe { put(milliseconds, (time(end)? - time(start)?) as f32) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) -> c_int {
    unsafe { cuEventElapsedTime_v2(milliseconds, start, end) }
}

// Modules, functions, launches -----------------------------------------------------------------------------------------

/// The end of an ELF file of 64 bits, from its headers.
///
/// # Safety
/// The image is such a file, whole.
unsafe fn end_of_elf(image: *const u8) -> usize {
    let word = |offset: usize| unsafe { image.add(offset).cast::<u64>().read_unaligned() } as usize;
    let half = |offset: usize| unsafe { image.add(offset).cast::<u16>().read_unaligned() } as usize;
    let (segments, sections) = (word(32), word(40));
    let mut end = (segments + half(54) * half(56)).max(sections + half(58) * half(60));
    for number in 0..half(60) {
        let section = sections + number * half(58);
        let kind = unsafe { image.add(section + 4).cast::<u32>().read_unaligned() };
        const NO_BITS: u32 = 8;
        if kind != NO_BITS {
            end = end.max(word(section + 24) + word(section + 32));
        }
    }
    end
}

/// The source behind a CUBIN, and the architecture that it was compiled for.
///
/// # Safety
/// The image is what the mock NVRTC gave, or another ELF file with at least as many bytes behind as the mark has.
unsafe fn source_behind(image: *const u8) -> Result<(u32, Arc<str>)> {
    let bytes = |offset: usize, count: usize| unsafe { std::slice::from_raw_parts(image.add(offset), count) };
    if bytes(0, 2) == b"//" {
        // PTX, which the driver compiles for what it has: all but newer parts' features.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().map_err(|_| Status::INVALID_IMAGE)?;
        let (architecture, source) = source_within(text).ok_or(Status::INVALID_IMAGE)?;
        let own = capability().0 * 10 + capability().1;
        return if architecture <= own { Ok((own, source)) } else { Err(Status::NO_BINARY_FOR_GPU) };
    }
    if bytes(0, 5) != b"\x7fELF\x02" {
        return Err(Status::INVALID_IMAGE);
    }
    let mark = unsafe { end_of_elf(image) };
    if bytes(mark, MARK.len()) != MARK {
        return Err(Status::INVALID_IMAGE);
    }
    let number = mark + MARK.len();
    let architecture = unsafe { image.add(number).cast::<u32>().read_unaligned() };
    let length = unsafe { image.add(number + 4).cast::<u64>().read_unaligned() } as usize;
    let source = std::str::from_utf8(bytes(number + 12, length)).map_err(|_| Status::INVALID_IMAGE)?;
    Ok((architecture, source.into()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const u8) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        let (architecture, source) = unsafe { source_behind(image) }?;
        let (major, minor) = (architecture / 10, architecture % 10);
        if major != capability().0 || minor > capability().1 {
            return Err(Status::NO_BINARY_FOR_GPU);
        }
        let handle = state.handle();
        state.modules.insert(handle, Module { device, source, functions: Vec::new() });
        unsafe { put(module, handle) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let module = state.modules.remove(&module).ok_or(Status::INVALID_HANDLE)?;
        for function in module.functions {
            state.functions.remove(&function);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    answer(|| {
        let (device, source) = {
            let state = state();
            let found = state.modules.get(&module).ok_or(Status::INVALID_HANDLE)?;
            (found.device, found.source.clone())
        };
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Status::NOT_FOUND)?;
        // Compiling takes long, and others may go on.
        let kernel = Kernel::compile(name, &source).map_err(|error| {
            eprintln!("mock driver: {error}");
            Status::NOT_FOUND
        })?;
        let mut state = state();
        let handle = state.handle();
        let loaded = Function::new(device, kernel, waits(name, &source));
        state.functions.insert(handle, Arc::new(loaded));
        state.modules.get_mut(&module).ok_or(Status::INVALID_HANDLE)?.functions.push(handle);
        unsafe { put(function, handle) }
    })
}

/// Whether a kernel's first statement waits for the kernel before it.
fn waits(kernel: &str, source: &str) -> bool {
    let kernels = source.split("__global__ ").skip(1);
    let mut own = kernels.filter_map(|text| text.split_once(&format!(" {kernel}(")));
    // Nothing before its parameters but what bounds it.
    let found = own.find(|(bounds, _)| bounds.starts_with("void") && !bounds.contains('{'));
    let body = found.and_then(|(_, rest)| rest.split_once("{"));
    let first = body.and_then(|(_, body)| body.trim_start().split_once(')'));
    first.is_some_and(|(asm, _)| asm.starts_with("asm volatile(") && asm.contains("griddepcontrol.wait;"))
}

fn function_of(handle: usize) -> Result<Arc<Function>> {
    state().functions.get(&handle).cloned().ok_or(Status::INVALID_HANDLE)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: usize) -> c_int {
    const SHARED: c_int = 1;
    const REGISTERS: c_int = 4;
    answer(|| {
        let function = function_of(function)?;
        let number = match attribute {
            SHARED => function.kernel.static_shared_bytes(),
            REGISTERS => REGISTERS_OF_THREAD,
            _ => 0,
        };
        unsafe { put(value, number as c_int) }
    })
}

/// Blocks that a multiprocessor has threads, registers and shared memory for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    function: usize,
    threads: c_int,
    dynamic_shared: usize,
    _flags: c_uint,
) -> c_int {
    answer(|| {
        let function = function_of(function)?;
        let threads = u32::try_from(threads).ok().filter(|&threads| threads > 0);
        let threads = threads.ok_or(Status::INVALID_VALUE)?.next_multiple_of(32);
        let shared = dynamic_shared as u32 + function.kernel.static_shared_bytes();
        let room = [
            THREADS_OF_MULTIPROCESSOR / threads,
            REGISTERS_OF_MULTIPROCESSOR / (REGISTERS_OF_THREAD * threads),
            MOST_SHARED_BYTES.checked_div(shared).unwrap_or(u32::MAX),
            MOST_BLOCKS,
        ];
        unsafe { put(blocks, room.into_iter().min().unwrap_or(0) as c_int) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) -> c_int {
    const DYNAMIC_SHARED: c_int = 8;
    answer(|| {
        let function = function_of(function)?;
        if attribute == DYNAMIC_SHARED {
            let bytes = u32::try_from(value).map_err(|_| Status::INVALID_VALUE)?;
            if bytes.saturating_add(function.kernel.static_shared_bytes()) > MOST_SHARED_BYTES {
                return Err(Status::INVALID_VALUE);
            }
            *function.shared_limit.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
        }
        Ok(())
    })
}

/// Maps are what emulated kernels read of them. Of tiles, only what Lazuli asks for: 16-bit elements, swizzled lines of 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut [u64; 16],
    dtype: c_int,
    rank: c_uint,
    address: u64,
    extents: *const u64,
    strides: *const u64,
    of_tile: *const u32,
    steps: *const u32,
    interleave: c_int,
    swizzle: c_int,
    _promotion: c_int,
    fill: c_int,
) -> c_int {
    const F16: c_int = 6;
    const BF16: c_int = 9;
    const OF_128_BYTES: c_int = 3;
    answer(|| {
        let rank = rank as usize;
        if !(2..=5).contains(&rank) || ![F16, BF16].contains(&dtype) || !(map as usize).is_multiple_of(64) {
            return Err(Status::INVALID_VALUE);
        }
        let (extents, of_tile) =
            unsafe { (std::slice::from_raw_parts(extents, rank), std::slice::from_raw_parts(of_tile, rank)) };
        let (strides, steps) = unsafe {
            (std::slice::from_raw_parts(strides, rank - 1), std::slice::from_raw_parts(steps, rank))
        };
        let fits = address.is_multiple_of(16)
            && extents.iter().all(|extent| (1..=1 << 32).contains(extent))
            && strides.iter().all(|stride| stride.is_multiple_of(16) && (1..1 << 40).contains(stride))
            && of_tile[0] == 64
            && of_tile.iter().all(|&elements| (1..=256).contains(&elements))
            && of_tile[2..].iter().chain(steps).all(|&one| one == 1)
            && [interleave, fill] == [0, 0]
            && swizzle == OF_128_BYTES;
        if !fits {
            return Err(Status::INVALID_VALUE);
        }
        let mut words = [0; 16];
        words[0] = address;
        words[1..=rank].copy_from_slice(extents);
        words[6] = 1;
        strides.iter().enumerate().for_each(|(number, stride)| words[7 + number] = stride / 2);
        words[11] = of_tile[1].into();
        unsafe { put(map, words) }
    })
}

// For tests ------------------------------------------------------------------------------------------------------------

/// Bytes and allocations of a device that were not released, when all its work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lazuliMockMemory(device: c_int, bytes: *mut usize, blocks: *mut usize) -> c_int {
    answer(|| {
        let device = device_number(device)?;
        let mut state = state();
        state.wait_for_device(device)?;
        let device = &state.devices[device];
        unsafe { put(bytes, device.used).and(put(blocks, device.blocks())) }
    })
}

/// The next kernel of a device to run accesses memory that is none, which the device does not survive.
#[unsafe(no_mangle)]
pub extern "C" fn lazuliMockFailKernel(device: c_int) -> c_int {
    answer(|| {
        let device = device_number(device)?;
        state().devices[device].next_kernel_fails = true;
        Ok(())
    })
}
