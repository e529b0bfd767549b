//! Compiled kernels: in memory, else on disk, else from the compiler.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::Emitted;
use lru::LruCache;

use super::backend::{Backend, Module};
use super::cache::{DiskCache, Key};
use super::cpu::{Compiler, CpuModule};
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
    /// Of a thread, because registers ran out (CUDA).
    pub(crate) spill_bytes: u32,
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
    let (module, spill_bytes) = module(backend, emitted)?;
    let loaded = Loaded { device, module: Arc::new(module), spill_bytes };
    with_memory(|memory| memory.put(memory_key, loaded.clone()));
    Ok(loaded)
}

/// Compiles together what is neither in memory nor on disk, where one run of the compiler takes several kernels. What
/// fails is left to [`load`].
#[cfg_attr(
    not(feature = "emulate"),
    expect(unused_variables, reason = "one run of the C compiler takes one kernel")
)]
pub(crate) fn compile_ahead(backend: &Backend, device: Device, emitted: &[&Emitted]) {
    #[cfg(feature = "emulate")]
    if let Backend::Emulated = backend {
        let is_loaded = |emitted: &Emitted| {
            let key = (device, blake3::hash(emitted.source.as_bytes()));
            with_memory(|memory| memory.contains(&key))
        };
        let new = emitted.iter().filter(|emitted| !is_loaded(emitted));
        let kernels: Vec<_> =
            new.map(|emitted| (emitted.functions().collect(), emitted.source.as_str())).collect();
        super::emulate::EmulatedModule::compile_ahead(&kernels);
    }
    #[cfg(not(feature = "emulate"))]
    let _ = (backend, device, emitted);
}

fn with_memory<T>(f: impl FnOnce(&mut LruCache<(Device, blake3::Hash), Loaded>) -> T) -> T {
    let mut memory = MEMORY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(memory.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(LOADED).unwrap_or(NonZeroUsize::MIN))))
}

/// The loaded kernel, and the bytes that it spills.
fn module(backend: &Backend, emitted: &Emitted) -> Result<(Module, u32)> {
    match backend {
        Backend::Cpu(identity) => cpu_module(identity, emitted).map(|module| (Module::Cpu(module), 0)),
        #[cfg(feature = "emulate")]
        Backend::Emulated => {
            let (name, source) = (emitted.name.as_str(), emitted.source.as_str());
            super::emulate::keep(name, source);
            let functions = emitted.functions();
            let modules = functions.map(|name| super::emulate::EmulatedModule::compile(name, source));
            Ok((Module::Emulated(modules.collect::<Result<_>>()?), 0))
        }
        #[cfg(feature = "cuda")]
        Backend::Cuda(device) => {
            let nvrtc = super::cuda::nvrtc::Nvrtc::get()?;
            let architecture = nearest_architecture(device.architecture(), nvrtc.architectures());
            let (cubin, spill_bytes) = compile_cubin(emitted, &architecture)?;
            let functions: Vec<&str> = emitted.functions().collect();
            Ok((Module::Cuda(device.load(&cubin, &functions)?), spill_bytes))
        }
        Backend::Interpreter => Err(Error::internal("kernel loading", "the interpreter has no kernels")),
    }
}

/// A library from the cache, or from the C compiler, which is asked for only then.
fn cpu_module(identity: &str, emitted: &Emitted) -> Result<CpuModule> {
    let (name, source) = (emitted.name.as_str(), emitted.source.as_str());
    let key = Key::new("cpu", identity, &[], source);
    let disk = DiskCache::get();
    if let Some(disk) = disk
        && let Some(library) = disk.load(&key)
        // A sound file that this system refuses all the same is replaced.
        && let Ok(module) = CpuModule::load(name, emitted.functions(), &library, Some(&disk.place(&key)))
    {
        stats::add(stats::Counter::DiskHits);
        return Ok(module);
    }
    let compiler = Compiler::get()?;
    let library = compiler.compile(name, source)?;
    stats::add(stats::Counter::KernelsCompiled);
    let module = CpuModule::load(name, emitted.functions(), &library, None);
    let module = module.map_err(|unloaded| compiler.not_loaded(name, unloaded))?;
    if let Some(disk) = disk {
        disk.store(&key, "c", source, &library);
    }
    Ok(module)
}

/// A CUBIN from the cache or from NVRTC, and the bytes that a thread spills.
#[cfg(feature = "cuda")]
fn compile_cubin(emitted: &Emitted, architecture: &str) -> Result<(Vec<u8>, u32)> {
    let (name, source) = (emitted.name.as_str(), emitted.source.as_str());
    let nvrtc = super::cuda::nvrtc::Nvrtc::get()?;
    let (major, minor) = nvrtc.version();
    let options = nvrtc.options();
    debug::print(Level::Timings, || {
        format!("{name} for {architecture} by NVRTC {major}.{minor} ({})", nvrtc.place())
    });
    // Behind the CUBIN are the spilled bytes: only the log of its compilation tells them from a stack.
    let key = Key::new(
        architecture,
        &format!("nvrtc {major}.{minor}, room before spills, which are behind"),
        options,
        source,
    );
    let mut cubin = cached(&key, "cu", source, || {
        let cubin = nvrtc.compile(name, source, architecture, options)?;
        let spill_bytes = cubin.inspect_all(emitted.functions()).map_or(0, |info| info.spill_bytes);
        Ok([cubin.bytes, spill_bytes.to_le_bytes().to_vec()].concat())
    })?;
    let spill_bytes = match cubin.split_last_chunk() {
        Some((_, behind)) => u32::from_le_bytes(*behind),
        None => 0,
    };
    cubin.truncate(cubin.len().saturating_sub(size_of::<u32>()));
    Ok((cubin, spill_bytes))
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

#[cfg(feature = "cuda")]
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
