//! NVRTC, NVIDIA's run-time compiler: found, loaded and called without a GPU and without a driver.
//!
//! The library is opened through `libloading` here rather than through cudarc's bindings, for three reasons.
//! cudarc looks for a fixed list of names and panics when none of them loads or a symbol is missing, so a path
//! of the user's own choice needs a detour. It returns NVRTC's status as a Rust `enum` of the version it was
//! generated for, and a newer library may answer with a value that this `enum` lacks (13.3 added one), which
//! is undefined behaviour. And it has no safe call for CUBINs. The dozen functions below are all that is needed.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, OnceLock};

use libloading::Library;

use super::cubin::{self, CubinInfo};
use super::lines;
use super::places::folders;
use crate::runtime::process::loader_words;
use crate::{Error, Result, settings};

/// The environment variable that names the library to use, and the only one tried when it is set.
const PATH_VARIABLE: &str = "LAZULI_NVRTC";

/// What the operating system's loader is asked for, newest first.
#[cfg(not(windows))]
const LIBRARY_NAMES: &[&str] = &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
#[cfg(windows)]
const LIBRARY_NAMES: &[&str] = &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64.dll"];

/// Where the PyPI packages keep the library, below the folder they are installed to.
const PACKAGE_FOLDERS: &[&str] = &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cuda_nvrtc/bin"];

/// NVRTC's `nvrtcResult`, as the plain integer it is in C.
type Status = c_int;
const SUCCESS: Status = 0;

/// NVRTC's `nvrtcProgram`.
type ProgramHandle = *mut std::ffi::c_void;

/// Declares the table of functions and how it is filled from a library.
macro_rules! functions {
    ($($field:ident: $symbol:literal = fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions used, each with the signature of NVIDIA's `nvrtc.h`.
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// Looks every function up, or says which one is missing.
            ///
            /// # Safety
            /// The library must be NVRTC, and must stay open for as long as the table is used.
            unsafe fn of(library: &Library) -> Result<Functions, String> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: the type is the one that `nvrtc.h` declares for this symbol.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol)
                        };
                        *symbol.map_err(|error| loader_words(&error))?
                    },)*
                })
            }
        }
    };
}

functions! {
    version: b"nvrtcVersion\0" = fn(*mut c_int, *mut c_int) -> Status;
    architecture_count: b"nvrtcGetNumSupportedArchs\0" = fn(*mut c_int) -> Status;
    architectures: b"nvrtcGetSupportedArchs\0" = fn(*mut c_int) -> Status;
    error_string: b"nvrtcGetErrorString\0" = fn(Status) -> *const c_char;
    create: b"nvrtcCreateProgram\0" = fn(
        *mut ProgramHandle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> Status;
    destroy: b"nvrtcDestroyProgram\0" = fn(*mut ProgramHandle) -> Status;
    compile: b"nvrtcCompileProgram\0" = fn(ProgramHandle, c_int, *const *const c_char) -> Status;
    log_size: b"nvrtcGetProgramLogSize\0" = fn(ProgramHandle, *mut usize) -> Status;
    log: b"nvrtcGetProgramLog\0" = fn(ProgramHandle, *mut c_char) -> Status;
    cubin_size: b"nvrtcGetCUBINSize\0" = fn(ProgramHandle, *mut usize) -> Status;
    cubin: b"nvrtcGetCUBIN\0" = fn(ProgramHandle, *mut c_char) -> Status;
    ptx_size: b"nvrtcGetPTXSize\0" = fn(ProgramHandle, *mut usize) -> Status;
    ptx: b"nvrtcGetPTX\0" = fn(ProgramHandle, *mut c_char) -> Status;
}

/// The options that every kernel is compiled with. They are part of what a cached CUBIN depends on.
///
/// - `--fmad=false`: a product and a sum are rounded one after the other, as they are on the CPU and as they
///   would be in two kernels. Fusing operations must not change a result; a fused multiply-add is emitted
///   only where the kernel asks for one.
/// - `--std=c++17`: what NVRTC 12 and 13 take by default, fixed so that a later default changes nothing.
/// - `--ptxas-options=-v`: the log then states spilled bytes, for one millisecond in forty.
///
/// Division, square roots and subnormal numbers keep NVRTC's defaults, which follow IEEE 754.
pub(crate) fn default_options() -> &'static [&'static str] {
    &["--fmad=false", "--std=c++17", "--ptxas-options=-v"]
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub(crate) struct Cubin {
    /// The ELF file that the driver loads.
    pub bytes: Vec<u8>,
    /// The compiler's messages: warnings, and with [`default_options`] what `ptxas` has to say.
    pub log: String,
}

impl Cubin {
    /// What [`cubin::inspect`] reads, with the spilled bytes from the log where it states them.
    pub(crate) fn inspect(&self, kernel_name: &str) -> Option<CubinInfo> {
        let mut info = cubin::inspect(&self.bytes, kernel_name)?;
        if let Some(spilled) = cubin::spill_bytes(&self.log, kernel_name) {
            info.spill_bytes = spilled;
        }
        Some(info)
    }

    /// What the functions of a kernel need, the largest of each.
    pub(crate) fn inspect_all<'a>(&self, functions: impl Iterator<Item = &'a str>) -> Option<CubinInfo> {
        functions.map(|name| self.inspect(name)).reduce(|a, b| Some(a?.or_more(&b?)))?
    }
}

/// The source with kernels that are content with one block at a time on a multiprocessor.
fn for_one_block(source: &str) -> String {
    const BOUNDS: &str = "__launch_bounds__(";
    let mut parts = source.split(BOUNDS);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(BOUNDS);
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ');
        match part
            .split_once(')')
            .map(|(bounds, rest)| (bounds.split_once(',').unwrap_or((bounds, "")), rest))
        {
            Some(((threads, blocks), rest)) if is_number(threads) && is_number(blocks) => {
                text.push_str(&format!("{threads}, 1){rest}"));
            }
            _ => text.push_str(part),
        }
    }
    text
}

/// The loaded compiler.
pub(crate) struct Nvrtc {
    functions: Functions,
    /// What was loaded: a path, or a name that the loader resolved.
    place: String,
    version: (i32, i32),
    architectures: Vec<u32>,
    /// Keeps the functions above in memory.
    _library: Library,
}

impl Nvrtc {
    /// The compiler of this process, looked for on the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with every place that was tried.
    pub(crate) fn get() -> Result<&'static Nvrtc> {
        static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
        NVRTC.get_or_init(Nvrtc::find).as_ref().map_err(Clone::clone)
    }

    /// The version, such as `(13, 0)`.
    pub(crate) fn version(&self) -> (i32, i32) {
        self.version
    }

    /// The path or name that the library was loaded by.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The architectures that it compiles for, ascending, such as `[75, 80, 90, 100]`.
    pub(crate) fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// [`default_options`], and what this version offers besides that leaves the code as it is:
    ///
    /// - `--minimal` (12.4): no declarations of textures and of the CUDA runtime, which kernels do not use. It
    ///   takes a tenth off the time of a small kernel.
    /// - `--no-cache` (12.9): without it NVRTC starts the driver, where there is one, for a cache of its own.
    ///   CUBINs are cached already, and compiling should neither need a working device nor wake one.
    pub(crate) fn options(&self) -> &'static [&'static str] {
        const ALL: &[&str] =
            &["--fmad=false", "--std=c++17", "--ptxas-options=-v", "--minimal", "--no-cache"];
        static WITH_LINES: OnceLock<Vec<&str>> = OnceLock::new();
        let options = match self.version {
            version if version >= (12, 9) => ALL,
            version if version >= (12, 4) => &ALL[..4],
            _ => default_options(),
        };
        match lines::folder() {
            Some(_) => WITH_LINES.get_or_init(|| [options, &[lines::OPTION]].concat()),
            None => options,
        }
    }

    /// Compiles CUDA C for one architecture, such as `sm_90`, with exactly these options besides.
    ///
    /// `ptxas` (seen with 13.0) may keep to 32 registers a thread, for more blocks at a time, and spill what does not fit,
    /// though a thread may have 255. What spills is compiled again for one block at a time, which it does not do that for;
    /// the one that spills less is the result.
    ///
    /// It may be called from several threads at once.
    ///
    /// # Errors
    /// [`Error::Compilation`] with the compiler's log and the source.
    pub(crate) fn compile(
        &self,
        kernel_name: &str,
        source: &str,
        architecture: &str,
        options: &[&str],
    ) -> Result<Cubin> {
        let compile = |source: &str| self.try_compile(kernel_name, source, architecture, options);
        let cubin = compile(source).map_err(|log| self.refused(kernel_name, source, log))?;
        let spilled = cubin::all_spill_bytes(&cubin.log);
        if spilled == 0 {
            return Ok(cubin);
        }
        let again = compile(&for_one_block(source)).ok();
        Ok(again.filter(|again| cubin::all_spill_bytes(&again.log) < spilled).unwrap_or(cubin))
    }

    /// [`compile`](Nvrtc::compile), with the text of the log as the error.
    fn try_compile(
        &self,
        kernel_name: &str,
        source: &str,
        architecture: &str,
        options: &[&str],
    ) -> Result<Cubin, String> {
        let program =
            Program::create(self, &c_string("the source", source)?, &file_name(kernel_name, source)?)?;
        let log = program.compile(architecture, options)?;
        let bytes = program.bytes(self.functions.cubin_size, self.functions.cubin)?;
        if bytes.is_empty() {
            return Err(format!(
                "no CUBIN comes of --gpu-architecture={architecture}: name a real architecture, such as sm_90"
            ));
        }
        Ok(Cubin { bytes, log })
    }

    /// The PTX of a text, for a virtual architecture such as `compute_90`. Options of the assembler do not count.
    ///
    /// # Errors
    /// As [`compile`](Nvrtc::compile).
    pub(crate) fn ptx(
        &self,
        kernel_name: &str,
        source: &str,
        architecture: &str,
        options: &[&str],
    ) -> Result<String> {
        let options: Vec<&str> =
            options.iter().copied().filter(|option| !option.starts_with("--ptxas")).collect();
        let compile = || {
            let program =
                Program::create(self, &c_string("the source", source)?, &file_name(kernel_name, source)?)?;
            program.compile(architecture, &options)?;
            program.text(self.functions.ptx_size, self.functions.ptx)
        };
        compile().map_err(|log| self.refused(kernel_name, source, log))
    }

    fn refused(&self, kernel_name: &str, source: &str, log: String) -> Error {
        Error::Compilation {
            kernel: kernel_name.to_owned(),
            compiler: format!("NVRTC {}.{} ({})", self.version.0, self.version.1, self.place),
            log,
            source_text: Arc::from(source),
        }
    }

    /// Goes through the places, in order, for one whose code the driver runs, if there is a driver: of its CUDA version or an older
    /// one, whatever comes after the point. Else it is the first one, which may do with a driver's package for compatibility.
    fn find() -> Result<Nvrtc> {
        let mut tried = Vec::new();
        let newest = super::version::of_driver().map_or(i32::MAX, |(major, _)| major);
        let mut too_new: Option<Nvrtc> = None;
        let mut fits = |nvrtc: Nvrtc| match nvrtc.version.0 <= newest {
            true => Some(nvrtc),
            false => {
                too_new.get_or_insert(nvrtc);
                None
            }
        };
        if let Some(path) = settings::variable(PATH_VARIABLE).filter(|path| !path.is_empty()) {
            // A choice that does not work is reported rather than replaced by another library.
            let path = PathBuf::from(path);
            match Nvrtc::load(&path) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(reason) => tried.push(format!("{PATH_VARIABLE}={}: {reason}", path.display())),
            }
        } else {
            for name in LIBRARY_NAMES {
                match Nvrtc::load(Path::new(name)).map(&mut fits) {
                    Ok(Some(nvrtc)) => return Ok(nvrtc),
                    Ok(None) => {}
                    Err(reason) => tried.push(with_place(name, &reason)),
                }
            }
            for folder in folders(PACKAGE_FOLDERS) {
                let paths = LIBRARY_NAMES.iter().map(|name| folder.join(name)).filter(|path| path.is_file());
                let before = tried.len();
                for path in paths {
                    match Nvrtc::load(&path).map(&mut fits) {
                        Ok(Some(nvrtc)) => return Ok(nvrtc),
                        Ok(None) => {}
                        Err(reason) => tried.push(with_place(&path.display().to_string(), &reason)),
                    }
                }
                if tried.len() == before {
                    tried.push(format!("{}: not there", folder.display()));
                }
            }
            if let Some(nvrtc) = too_new {
                return Ok(nvrtc);
            }
        }
        Err(Error::Unavailable {
            what: "NVRTC".to_owned(),
            reason: format!("the library did not load, tried: {}", tried.join("; ")),
            hint: format!(
                "Install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` (in a checkout of Lazuli: \
                 tests/fetch-nvrtc), and set {PATH_VARIABLE} to the path of {} if it lies elsewhere",
                LIBRARY_NAMES[0]
            ),
        })
    }

    /// Loads one library and asks it for its version, or says why it cannot be used.
    fn load(path: &Path) -> Result<Nvrtc, String> {
        // SAFETY: loading runs the library's own initialisers. The names and places are NVIDIA's or the user's
        // own choice; NVRTC's initialisers have no preconditions.
        let library = unsafe { Library::new(path) }.map_err(|error| loader_words(&error))?;
        // SAFETY: the library was asked for as NVRTC, and it moves into the value that owns the functions.
        let functions = unsafe { Functions::of(&library) }?;
        let mut nvrtc = Nvrtc {
            functions,
            place: path.display().to_string(),
            version: (0, 0),
            architectures: Vec::new(),
            _library: library,
        };
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: both pointers are to integers of this function.
        nvrtc.check("nvrtcVersion", unsafe { (nvrtc.functions.version)(&mut major, &mut minor) })?;
        // SAFETY: the pointer is to an integer of this function.
        let status = unsafe { (nvrtc.functions.architecture_count)(&mut count) };
        nvrtc.check("nvrtcGetNumSupportedArchs", status)?;
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        if !architectures.is_empty() {
            // SAFETY: NVRTC writes as many integers as it has just counted, and the vector has room for them.
            let status = unsafe { (nvrtc.functions.architectures)(architectures.as_mut_ptr()) };
            nvrtc.check("nvrtcGetSupportedArchs", status)?;
        }
        nvrtc.version = (major, minor);
        nvrtc.architectures = architectures.into_iter().filter_map(|number| number.try_into().ok()).collect();
        nvrtc.architectures.sort_unstable();
        Ok(nvrtc)
    }

    /// Turns a status into words.
    fn check(&self, function: &str, status: Status) -> Result<(), String> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: NVRTC answers every number, also an unknown one, with a static string.
        let text = unsafe { (self.functions.error_string)(status) };
        if text.is_null() {
            return Err(format!("{function}: status {status}"));
        }
        // SAFETY: not null, and static as above.
        let text = unsafe { CStr::from_ptr(text) };
        Err(format!("{function}: {}", text.to_string_lossy()))
    }
}

/// A program, destroyed on drop.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: ProgramHandle,
}

/// A function that answers with a size in bytes.
type SizeFunction = unsafe extern "C" fn(ProgramHandle, *mut usize) -> Status;
/// A function that fills as many bytes.
type FillFunction = unsafe extern "C" fn(ProgramHandle, *mut c_char) -> Status;

impl<'a> Program<'a> {
    fn create(nvrtc: &'a Nvrtc, source: &CStr, file_name: &CStr) -> Result<Program<'a>, String> {
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is a place to write to, the strings end in NUL (NVRTC copies them), and no headers
        // are given.
        let status = unsafe {
            (nvrtc.functions.create)(
                &mut handle,
                source.as_ptr(),
                file_name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        nvrtc.check("nvrtcCreateProgram", status)?;
        Ok(Program { nvrtc, handle })
    }

    /// Compiles, and gives the log.
    fn compile(&self, architecture: &str, options: &[&str]) -> Result<String, String> {
        // With what no other GPU has: groups of warps multiply (CUDA 12.0 and later).
        let own = if architecture == "sm_90" && self.nvrtc.version() >= (12, 0) { "a" } else { "" };
        let architecture = format!("--gpu-architecture={architecture}{own}");
        let options = options
            .iter()
            .copied()
            .chain([architecture.as_str()])
            .map(|option| c_string("an option", option))
            .collect::<Result<Vec<CString>, String>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).map_err(|_| "too many options".to_owned())?;
        let functions = &self.nvrtc.functions;
        // SAFETY: the program is alive, and the pointers are to C strings that outlive the call.
        let status = unsafe { (functions.compile)(self.handle, count, pointers.as_ptr()) };
        let log = self.text(functions.log_size, functions.log).unwrap_or_default();
        match self.nvrtc.check("nvrtcCompileProgram", status) {
            Ok(()) => Ok(log),
            // The log of a wrong option is empty.
            Err(reason) => Err(if log.is_empty() { reason } else { log }),
        }
    }

    /// Asks for a size, then for as many bytes.
    fn bytes(&self, size: SizeFunction, fill: FillFunction) -> Result<Vec<u8>, String> {
        let mut length = 0;
        // SAFETY: the program is alive, and the pointer is to an integer of this function.
        self.nvrtc.check("asking for a size", unsafe { size(self.handle, &mut length) })?;
        let mut bytes = vec![0u8; length];
        if length > 0 {
            // SAFETY: the function fills the number of bytes that it has just stated.
            let status = unsafe { fill(self.handle, bytes.as_mut_ptr().cast()) };
            self.nvrtc.check("asking for the result", status)?;
        }
        Ok(bytes)
    }

    /// The same for text that ends in NUL.
    fn text(&self, size: SizeFunction, fill: FillFunction) -> Result<String, String> {
        let bytes = self.bytes(size, fill)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned())
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from `nvrtcCreateProgram` and is destroyed once. Failure leaves nothing to do.
        unsafe { (self.nvrtc.functions.destroy)(&mut self.handle) };
    }
}

/// A reason that starts with the place, which many loaders' messages do already.
fn with_place(place: &str, reason: &str) -> String {
    if reason.starts_with(place) { reason.to_owned() } else { format!("{place}: {reason}") }
}

/// What NVRTC calls a text in its messages.
fn file_name(kernel_name: &str, source: &str) -> Result<CString, String> {
    let file = lines::file(kernel_name, source).map(|file| file.display().to_string());
    c_string("the kernel's name", &file.unwrap_or_else(|| format!("{kernel_name}.cu")))
}

/// A C string, or which text holds a NUL.
fn c_string(what: &str, text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{what} holds a NUL character"))
}

#[cfg(test)]
pub(crate) mod tests;
