//! NVRTC's functions: the real ones, and the source put behind each CUBIN.

#![allow(non_snake_case, reason = "the names are NVRTC's")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libloading::Library;

/// Stands between a CUBIN and its source: the architecture's number, the length of the source, and the source follow.
pub(crate) const MARK: &[u8; 16] = b"lazuli's source\n";

/// Begins the remark at the end of a PTX text.
const REMARK: &str = "// lazuli's source: ";

const SUCCESS: c_int = 0;
const INVALID_PROGRAM: c_int = 4;
const INTERNAL_ERROR: c_int = 11;

/// What is known of a program: by the handle that the real NVRTC gave it.
#[derive(Default)]
struct Program {
    source: Vec<u8>,
    architecture: u32,
}

static PROGRAMS: Mutex<Option<HashMap<usize, Program>>> = Mutex::new(None);

fn with_program<T>(handle: usize, f: impl FnOnce(&mut Program) -> T) -> Option<T> {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    programs.get_or_insert_default().get_mut(&handle).map(f)
}

/// The real one.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let open = || {
        let Some(path) = std::env::var_os("LAZULI_MOCK_NVRTC") else {
            eprintln!("mock NVRTC: LAZULI_MOCK_NVRTC does not say where the real one is");
            return None;
        };
        // SAFETY: the user names NVRTC, whose initialisers ask for nothing.
        let library = unsafe { Library::new(&path) };
        library.inspect_err(|error| eprintln!("mock NVRTC: {error}")).ok()
    };
    LIBRARY.get_or_init(open).as_ref()
}

/// Calls a function of the real library.
macro_rules! real {
    ($name:literal, $type:ty, $($argument:expr),*) => {
        match library().map(|library| unsafe { library.get::<$type>($name) }) {
            Some(Ok(function)) => unsafe { function($($argument),*) },
            _ => INTERNAL_ERROR,
        }
    };
}

type Handle = usize;

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    real!(b"nvrtcVersion", unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int, major, minor)
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> c_int {
    real!(b"nvrtcGetNumSupportedArchs", unsafe extern "C" fn(*mut c_int) -> c_int, count)
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(architectures: *mut c_int) -> c_int {
    real!(b"nvrtcGetSupportedArchs", unsafe extern "C" fn(*mut c_int) -> c_int, architectures)
}

/// As NVRTC's.
#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(status: c_int) -> *const c_char {
    // SAFETY: the type is the one in `nvrtc.h`.
    let function = library().map(|library| unsafe {
        library.get::<unsafe extern "C" fn(c_int) -> *const c_char>(b"nvrtcGetErrorString")
    });
    match function {
        // SAFETY: NVRTC answers every number.
        Some(Ok(function)) => unsafe { function(status) },
        _ => c"the mock found no real NVRTC".as_ptr(),
    }
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut Handle,
    source: *const c_char,
    name: *const c_char,
    headers: c_int,
    header_texts: *const *const c_char,
    header_names: *const *const c_char,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    let status =
        real!(b"nvrtcCreateProgram", Create, program, source, name, headers, header_texts, header_names);
    if status == SUCCESS {
        // SAFETY: the caller's promise: a C string, and a place that now holds the handle.
        let (source, handle) = unsafe { (CStr::from_ptr(source).to_bytes().to_vec(), *program) };
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        programs.get_or_insert_default().insert(handle, Program { source, architecture: 0 });
    }
    status
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    let handle = unsafe { *program };
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    programs.get_or_insert_default().remove(&handle);
    real!(b"nvrtcDestroyProgram", unsafe extern "C" fn(*mut Handle) -> c_int, program)
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    program: Handle,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    const OPTIONS: [&str; 2] = ["--gpu-architecture=sm_", "--gpu-architecture=compute_"];
    for number in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's promise: as many C strings.
        let option = unsafe { CStr::from_ptr(*options.add(number)) }.to_string_lossy();
        let named = OPTIONS.iter().find_map(|known| option.strip_prefix(known));
        let digits = named.map(|rest| rest.trim_end_matches(['a', 'f']));
        if let Some(architecture) = digits.and_then(|digits| digits.parse().ok()) {
            with_program(program, |program| program.architecture = architecture);
        }
    }
    type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
    real!(b"nvrtcCompileProgram", Compile, program, count, options)
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLogSize(program: Handle, size: *mut usize) -> c_int {
    real!(b"nvrtcGetProgramLogSize", unsafe extern "C" fn(Handle, *mut usize) -> c_int, program, size)
}

/// As NVRTC's.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLog(program: Handle, log: *mut c_char) -> c_int {
    real!(b"nvrtcGetProgramLog", unsafe extern "C" fn(Handle, *mut c_char) -> c_int, program, log)
}

/// Bytes of the real CUBIN.
fn real_size(program: Handle, size: &mut usize) -> c_int {
    real!(b"nvrtcGetCUBINSize", unsafe extern "C" fn(Handle, *mut usize) -> c_int, program, size)
}

/// Mark, architecture, length, source.
fn behind(program: &Program) -> Vec<u8> {
    let length = (program.source.len() as u64).to_le_bytes();
    [&MARK[..], &program.architecture.to_le_bytes(), &length, &program.source].concat()
}

/// As NVRTC's, with room for what is put behind.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBINSize(program: Handle, size: *mut usize) -> c_int {
    let mut bytes = 0;
    let status = real_size(program, &mut bytes);
    if status != SUCCESS || bytes == 0 {
        return status;
    }
    let Some(behind) = with_program(program, |program| behind(program).len()) else { return INVALID_PROGRAM };
    // SAFETY: the caller's promise: a place for a size.
    unsafe { *size = bytes + behind };
    SUCCESS
}

/// As NVRTC's, with the source behind.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBIN(program: Handle, cubin: *mut c_char) -> c_int {
    let mut bytes = 0;
    let status = real_size(program, &mut bytes);
    if status != SUCCESS {
        return status;
    }
    let status = real!(b"nvrtcGetCUBIN", unsafe extern "C" fn(Handle, *mut c_char) -> c_int, program, cubin);
    if status != SUCCESS {
        return status;
    }
    let Some(behind) = with_program(program, |program| behind(program)) else { return INVALID_PROGRAM };
    // SAFETY: the caller has as many bytes as `nvrtcGetCUBINSize` said.
    unsafe { std::ptr::copy_nonoverlapping(behind.as_ptr(), cubin.cast::<u8>().add(bytes), behind.len()) };
    SUCCESS
}

/// The end of a PTX text: the architecture and the source as a remark, in hexadecimal digits.
fn remark(program: &Program) -> String {
    let digits: String = program.source.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\n{REMARK}{} {digits}\n\0", program.architecture)
}

/// What a PTX text says of its architecture and source.
pub(crate) fn source_within(ptx: &str) -> Option<(u32, Arc<str>)> {
    let (architecture, digits) = ptx.split_once(REMARK)?.1.trim_end().split_once(' ')?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let source: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Some((architecture.parse().ok()?, String::from_utf8(source?).ok()?.into()))
}

/// Bytes of the real PTX.
fn real_ptx_size(program: Handle, size: &mut usize) -> c_int {
    real!(b"nvrtcGetPTXSize", unsafe extern "C" fn(Handle, *mut usize) -> c_int, program, size)
}

/// As NVRTC's, with room for what is put behind.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTXSize(program: Handle, size: *mut usize) -> c_int {
    let mut bytes = 0;
    let status = real_ptx_size(program, &mut bytes);
    if status != SUCCESS || bytes == 0 {
        return status;
    }
    let Some(remark) = with_program(program, |program| remark(program).len()) else { return INVALID_PROGRAM };
    // SAFETY: the caller's promise: a place for a size. The first text's NUL goes.
    unsafe { *size = bytes - 1 + remark };
    SUCCESS
}

/// As NVRTC's, with the source behind.
///
/// # Safety
/// As NVRTC's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTX(program: Handle, ptx: *mut c_char) -> c_int {
    let mut bytes = 0;
    let mut status = real_ptx_size(program, &mut bytes);
    if status == SUCCESS {
        status = real!(b"nvrtcGetPTX", unsafe extern "C" fn(Handle, *mut c_char) -> c_int, program, ptx);
    }
    if status != SUCCESS || bytes == 0 {
        return status;
    }
    let Some(remark) = with_program(program, |program| remark(program)) else { return INVALID_PROGRAM };
    // SAFETY: the caller has as many bytes as `nvrtcGetPTXSize` said.
    unsafe { std::ptr::copy_nonoverlapping(remark.as_ptr(), ptx.cast::<u8>().add(bytes - 1), remark.len()) };
    SUCCESS
}
