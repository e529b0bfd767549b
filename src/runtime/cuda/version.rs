//! The driver's version, which is asked for before anything else of it is needed.

use std::ffi::c_int;

use libloading::Library;

/// What `libcuda` is called.
#[cfg(not(windows))]
const NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];
#[cfg(windows)]
const NAMES: &[&str] = &["nvcuda.dll"];

/// The newest CUDA version that the driver runs code of, such as `(12, 4)`; nothing where there is no driver. Starts no driver.
pub(crate) fn of_driver() -> Option<(i32, i32)> {
    // SAFETY: NVIDIA's driver, whose initialisers ask for nothing.
    let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
    // SAFETY: the type is the one that `cuda.h` declares, the status being an integer.
    let version =
        unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion") }.ok()?;
    let mut number = 0;
    // SAFETY: the pointer is to an integer of this function. It may be called before the driver is started.
    let status = unsafe { version(&mut number) };
    // The driver may be started later: it stays.
    std::mem::forget(library);
    (status == 0 && number > 0).then_some((number / 1000, number % 1000 / 10))
}
