//! Ranges that Nsight Systems and other profilers show on the host's timeline, through NVIDIA's library for them.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

use super::places::folders;
use crate::{settings, stderr};

/// The third version's, then the second's, which CUDA 12.9 was the last to have. Both have the functions.
#[cfg(not(windows))]
const NAMES: &[&str] = &["libnvtx3interop.so.1", "libnvToolsExt.so.1"];
#[cfg(windows)]
const NAMES: &[&str] = &["nvtx3interop.dll", "nvToolsExt64_1.dll"];
/// Where the PyPI packages keep it.
const PACKAGES: &[&str] = &["nvidia/cu13/lib", "nvidia/nvtx/lib"];

struct Nvtx {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
    /// Keeps the functions in memory.
    _library: Library,
}

/// A range, which ends when it is dropped.
pub(crate) struct Range {
    nvtx: &'static Nvtx,
    /// A range ends on the thread that it began on.
    _thread: PhantomData<*const ()>,
}

/// Begins a range, where the user wants them.
pub(crate) fn range(text: impl FnOnce() -> String) -> Option<Range> {
    static NVTX: OnceLock<Option<Nvtx>> = OnceLock::new();
    let nvtx = NVTX.get_or_init(|| settings::has_nvtx().then(Nvtx::find).flatten()).as_ref()?;
    let text = CString::new(text()).ok()?;
    // SAFETY: the text ends in NUL, and is copied.
    unsafe { (nvtx.push)(text.as_ptr()) };
    Some(Range { nvtx, _thread: PhantomData })
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: it takes nothing; a range was begun on this thread.
        unsafe { (self.nvtx.pop)() };
    }
}

impl Nvtx {
    /// `None`, with a warning, if no library has it.
    fn find() -> Option<Nvtx> {
        let by_loader = NAMES.iter().map(|&name| Path::new(name).to_owned());
        let in_folders =
            folders(PACKAGES).into_iter().flat_map(|folder| NAMES.iter().map(move |name| folder.join(name)));
        let found = by_loader.chain(in_folders).find_map(|path| Nvtx::load(&path));
        if found.is_none() {
            stderr::warn(&format!(
                "LAZULI_NVTX: there is no {}. It comes with the CUDA toolkit and with `pip install nvidia-nvtx`; the \
                 loader (LD_LIBRARY_PATH), CUDA_PATH and Python's packages are searched.",
                NAMES[0]
            ));
        }
        found
    }

    fn load(path: &Path) -> Option<Nvtx> {
        // SAFETY: loading runs the library's initialisers; NVTX's have no preconditions.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: the types are those of `nvToolsExt.h`.
        let (push, pop) =
            unsafe { (*library.get(b"nvtxRangePushA\0").ok()?, *library.get(b"nvtxRangePop\0").ok()?) };
        Some(Nvtx { push, pop, _library: library })
    }
}
