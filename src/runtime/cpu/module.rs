//! A compiled kernel, loaded.

use std::ffi::c_void;
use std::fs;
#[cfg(target_os = "linux")]
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use libloading::Library;
use smallvec::SmallVec;

use super::parallel::{self, Cost};
use super::together;
use crate::error::{Error, Result};
use crate::runtime::process::loader_words;
use crate::runtime::workshop::{self, Workshop};

/// `void function(void* const* args, long long first_block, long long end_block)`.
type KernelFunction = unsafe extern "C" fn(*const *mut c_void, i64, i64);

/// A loaded library with a kernel's functions, mostly one or two. It is unloaded when dropped.
#[derive(Debug)]
pub(crate) struct CpuModule {
    name: String,
    functions: SmallVec<[Function; 2]>,
    /// Keeps the functions above in memory.
    _library: Library,
}

#[derive(Debug)]
struct Function {
    name: String,
    entry: KernelFunction,
    cost: Cost,
}

/// Why a library gives no kernel, in the loader's words.
#[derive(Debug)]
pub(crate) enum Unloaded {
    /// It cannot be loaded.
    Refused(String),
    /// It has no such function.
    Incomplete(String),
}

impl CpuModule {
    /// Loads the bytes of a shared library that [`Compiler::compile`](super::Compiler::compile) made, for the functions
    /// of the kernel, alone or with others of which `id` tells it. `place` is the file that has them, if there is one.
    pub(crate) fn load<'a>(
        kernel_name: &str,
        id: &str,
        functions: impl IntoIterator<Item = &'a str>,
        library: &[u8],
        place: Option<&Path>,
    ) -> Result<CpuModule, Unloaded> {
        let library = load(library, place).map_err(Unloaded::Refused)?;
        let function = |name: &str| {
            // SAFETY: `run`'s callers promise that a function of this name has this type.
            let get = |name: &str| unsafe { library.get::<KernelFunction>(name) };
            // This one first: libraries that are needed by this one have short names too.
            let entry = get(&together::symbol(name, id)).or_else(|_| get(name));
            let entry = *entry.map_err(|error| Unloaded::Incomplete(loader_words(&error)))?;
            Ok(Function { name: name.to_owned(), entry, cost: Cost::default() })
        };
        let functions = functions.into_iter().map(function).collect::<Result<_, _>>()?;
        Ok(CpuModule { name: kernel_name.to_owned(), functions, _library: library })
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

    fn function(&self, name: &str) -> Result<&Function> {
        let found = self.functions.iter().find(|function| function.name == name);
        found.ok_or_else(|| Error::internal("cpu", format!("{name} is no function of kernel {}", self.name)))
    }
}

/// Loads from the file, or else from memory, or else from a file that is gone when this returns: the file may be where no
/// programs can be run from, and not every system runs programs from memory.
fn load(library: &[u8], place: Option<&Path>) -> Result<Library, String> {
    let mut reasons = Vec::new();
    if let Some(place) = place {
        match open(place) {
            Ok(library) => return Ok(library),
            // The loader's words begin with the path.
            Err(reason) => reasons.push(reason),
        }
    }
    #[cfg(target_os = "linux")]
    match load_from_memory(library) {
        Ok(library) => return Ok(library),
        Err(reason) => reasons.push(format!("from memory: {reason}")),
    }
    for folder in workshop::places() {
        match load_from(&folder, library) {
            Ok(library) => return Ok(library),
            Err(reason) => reasons.push(format!("from {}: {reason}", folder.display())),
        }
    }
    Err(reasons.join("; "))
}

/// The loader takes a file of a name that it has loaded for the one that it has: no name twice.
fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
fn load_from_memory(library: &[u8]) -> Result<Library, String> {
    use std::os::fd::AsRawFd;

    let write = || -> io::Result<fs::File> {
        let file = rustix::fs::memfd_create("lazuli kernel", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = fs::File::from(file);
        file.write_all(library)?;
        Ok(file)
    };
    let file = write().map_err(|error| error.to_string())?;
    // Numbers of files are given again, and links lead to the same path: the number is spelled in steps that lead nowhere.
    let number = next_number();
    let bits = u64::BITS - number.leading_zeros();
    let nowhere: String = (0..bits).map(|bit| if number >> bit & 1 == 1 { "./" } else { "/" }).collect();
    open(Path::new(&format!("/proc/self/fd/{nowhere}{}", file.as_raw_fd())))
}

fn load_from(folder: &Path, library: &[u8]) -> Result<Library, String> {
    let workshop = Workshop::new(folder).map_err(|error| error.to_string())?;
    let path = workshop.path().join(format!("kernel-{}-{}.so", std::process::id(), next_number()));
    fs::write(&path, library).map_err(|error| error.to_string())?;
    open(&path)
}

fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: the library was made by this user's C compiler from an emitted kernel, which has no
    // constructors: loading runs nothing but the C library's own start-up code.
    unsafe { Library::new(path.as_os_str()) }.map_err(|error| loader_words(&error))
}
