//! Compiled kernels: in memory, else on disk, else from the compiler.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::Emitted;
use lru::LruCache;

use super::backend::{Backend, Module};
use super::cache::{DiskCache, Key};
use super::cpu::CpuModule;
use super::device::Device;
#[cfg(feature = "cuda")]
use crate::debug::{self, Level};
use crate::{Error, Result, stats};

/// Kernels that stay loaded, least recently used first out.
const LOADED: usize = 4096;

/// A kernel loaded for a device.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) device: Device,
    pub(crate) module: Arc<Module>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel on {}", self.device)
    }
}

static MEMORY: Mutex<Option<LruCache<(Device, blake3::Hash), Loaded>>> = Mutex::new(None);

/// The kernel, compiled for the device.
///
/// # Errors
/// [`Error::Compilation`] with the compiler's log and the source; [`Error::Unavailable`] without a compiler.
pub(crate) fn load(backend: &Backend, device: Device, emitted: &Emitted) -> Result<Loaded> {
    let memory_key = (device, blake3::hash(emitted.source.as_bytes()));
    if let Some(loaded) = with_memory(|memory| memory.get(&memory_key).cloned()) {
        return Ok(loaded);
    }
    let module = Arc::new(module(backend, emitted)?);
    let loaded = Loaded { device, module };
    with_memory(|memory| memory.put(memory_key, loaded.clone()));
    Ok(loaded)
}

fn with_memory<T>(f: impl FnOnce(&mut LruCache<(Device, blake3::Hash), Loaded>) -> T) -> T {
    let mut memory = MEMORY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(memory.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(LOADED).unwrap_or(NonZeroUsize::MIN))))
}

fn module(backend: &Backend, emitted: &Emitted) -> Result<Module> {
    let (name, source) = (emitted.name.as_str(), emitted.source.as_str());
    match backend {
        Backend::Cpu(compiler) => {
            let key = Key::new("cpu", compiler.identity(), &[], source);
            let library = cached(&key, "so", source, || compiler.compile(name, source))?;
            match CpuModule::load(name, &library) {
                Ok(module) => Ok(Module::Cpu(module)),
                // A sound file that this system refuses all the same: compile it here.
                Err(_) => CpuModule::load(name, &compiler.compile(name, source)?).map(Module::Cpu),
            }
        }
        #[cfg(feature = "emulate")]
        Backend::Emulated => {
            super::emulate::keep(name, source);
            super::emulate::EmulatedModule::compile(name, source).map(Module::Emulated)
        }
        #[cfg(feature = "cuda")]
        Backend::Cuda(device) => {
            let nvrtc = super::cuda::nvrtc::Nvrtc::get()?;
            let architecture = nearest_architecture(device.architecture(), nvrtc.architectures());
            let cubin = compile_cubin(name, source, &architecture)?;
            device.load(&cubin, name).map(Module::Cuda)
        }
        Backend::Interpreter => Err(Error::internal("kernel loading", "the interpreter has no kernels")),
    }
}

/// A CUBIN from the cache or from NVRTC.
#[cfg(feature = "cuda")]
pub(crate) fn compile_cubin(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>> {
    let nvrtc = super::cuda::nvrtc::Nvrtc::get()?;
    let (major, minor) = nvrtc.version();
    let options = nvrtc.options();
    debug::print(Level::Timings, || {
        format!("{name} for {architecture} by NVRTC {major}.{minor} ({})", nvrtc.place())
    });
    let key = Key::new(architecture, &format!("nvrtc {major}.{minor}"), options, source);
    cached(&key, "cubin", source, || Ok(nvrtc.compile(name, source, architecture, options)?.bytes))
}

/// The architecture to compile for: the device's own or, if the compiler is older than the device, the
/// newest of the same generation, whose code the device runs as well.
#[cfg(feature = "cuda")]
fn nearest_architecture(device: &str, supported: &[u32]) -> String {
    let Some(own) = device.strip_prefix("sm_").and_then(|digits| digits.parse::<u32>().ok()) else {
        return device.to_string();
    };
    let best = supported.iter().copied().filter(|&a| a <= own && a / 10 == own / 10).max();
    best.map_or_else(|| device.to_string(), |best| format!("sm_{best}"))
}

fn cached(
    key: &Key,
    extension: &str,
    source: &str,
    compile: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let disk = DiskCache::get();
    if let Some(binary) = disk.and_then(|disk| disk.load(key)) {
        stats::add(stats::Counter::DiskHits);
        return Ok(binary);
    }
    let binary = compile()?;
    stats::add(stats::Counter::KernelsCompiled);
    if let Some(disk) = disk {
        disk.store(key, extension, source, &binary);
    }
    Ok(binary)
}
