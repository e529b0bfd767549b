//! A compiled kernel, loaded.

use std::ffi::c_void;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use libloading::Library;
use smallvec::SmallVec;

use super::DEVICE;
use super::parallel::{self, Cost};
use crate::error::{Error, Result};

/// `void function(void* const* args, long long first_block, long long end_block)`.
type KernelFunction = unsafe extern "C" fn(*const *mut c_void, i64, i64);

/// A loaded library. It is unloaded when dropped.
#[derive(Debug)]
pub(crate) struct CpuModule {
    name: String,
    /// The functions that were run, mostly one or two.
    functions: Mutex<SmallVec<[Arc<Function>; 2]>>,
    library: Library,
}

#[derive(Debug)]
struct Function {
    name: String,
    /// In the module's library: called only while that is borrowed.
    entry: KernelFunction,
    cost: Cost,
}

impl CpuModule {
    /// Loads the bytes of a shared library that [`Compiler::compile`](super::Compiler::compile) made.
    pub(crate) fn load(kernel_name: &str, library: &[u8]) -> Result<CpuModule> {
        let library = load(library).map_err(|message| Error::Device {
            device: DEVICE.into(),
            operation: format!("loading kernel {kernel_name}"),
            message,
        })?;
        Ok(CpuModule { name: kernel_name.to_owned(), functions: Mutex::default(), library })
    }

    /// Runs blocks `0..blocks` of `function`, on the threads of rayon's current pool where that pays.
    ///
    /// # Safety
    /// The library has such a function of the type
    /// `void f(void* const* args, long long first_block, long long end_block)`; `arguments` are pointers to the values of its
    /// parameters; different blocks write different memory; and the memory that it accesses is there, and is
    /// not accessed by others meanwhile, except for reading what it only reads.
    pub(crate) unsafe fn run(&self, function: &str, blocks: u64, arguments: &[*mut c_void]) -> Result<()> {
        let function = self.function(function)?;
        let entry = function.entry;
        // Pointers are not `Sync`, slices of atomics neither cast: an address is.
        let arguments = arguments.as_ptr() as usize;
        parallel::run(blocks, &function.cost, &move |first, end| {
            let arguments = arguments as *const *mut c_void;
            // SAFETY: the caller's promise; `parallel::run` gives out each block once, and returns when all
            // are done, so that the arguments and the library outlive the call.
            unsafe { entry(arguments, first as i64, end as i64) }
        });
        Ok(())
    }

    fn function(&self, name: &str) -> Result<Arc<Function>> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.iter().find(|function| function.name == name) {
            return Ok(Arc::clone(function));
        }
        // SAFETY: `run`'s callers promise that a function of this name has this type.
        let entry = unsafe { self.library.get::<KernelFunction>(name) };
        let entry = *entry.map_err(|error| {
            Error::internal("cpu", format!("kernel {} has no function {name}: {error}", self.name))
        })?;
        let function = Arc::new(Function { name: name.to_owned(), entry, cost: Cost::default() });
        functions.push(Arc::clone(&function));
        Ok(function)
    }
}

/// Loads from a file that is gone when this returns. Where the temporary folder is full or does not let
/// programs run, the folder of this user's caches may do.
fn load(library: &[u8]) -> Result<Library, String> {
    let mut reasons = Vec::new();
    for folder in [Some(std::env::temp_dir()), dirs::cache_dir()].into_iter().flatten() {
        match load_from(&folder, library) {
            Ok(library) => return Ok(library),
            Err(reason) => reasons.push(format!("from {}: {reason}", folder.display())),
        }
    }
    Err(reasons.join("; "))
}

fn load_from(folder: &PathBuf, library: &[u8]) -> Result<Library, String> {
    // The loader takes a file of a name that it has loaded for the one that it has: no name twice.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let prefix = format!("lazuli-{}-{number}-", std::process::id());
    let write = || -> io::Result<tempfile::TempPath> {
        let mut file = tempfile::Builder::new().prefix(&prefix).suffix(".so").tempfile_in(folder)?;
        file.write_all(library)?;
        // Closed before it is loaded: some systems refuse to run what is open for writing.
        Ok(file.into_temp_path())
    };
    let path = write().map_err(|error| error.to_string())?;
    // SAFETY: the library was made by this user's C compiler from an emitted kernel, which has no
    // constructors: loading runs nothing but the C library's own start-up code.
    let loaded = unsafe { Library::new(path.as_os_str()) };
    loaded.map_err(|error| error.to_string())
}
