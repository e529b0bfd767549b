//! Compiled kernels: in memory, else on disk, else from the compiler.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::Emitted;
use lru::LruCache;
use rayon::prelude::*;

use super::backend::{Backend, Module};
use super::cache::{DiskCache, Key};
use super::cpu::{Compiler, CpuModule, Unloaded, together};
#[cfg(feature = "cuda")]
use super::cuda::architecture::{is_virtual, to_compile_for};
use super::device::{Device, DeviceKind};
use super::flights::{Flights, Turn};
use super::general;
pub(crate) use super::general::Text;
use super::general::TextId;
use super::{fork, host};
#[cfg(feature = "cuda")]
use crate::debug::{self, Level};
use crate::{Error, Result, stats};

/// Kernels that stay loaded, least recently used first out.
const LOADED: usize = 4096;
/// Bytes that a thread may spill: what the threads of a full multiprocessor (2,048) spill stays in its nearest cache (128 KiB
/// and more), while a value between two kernels goes to memory and back.
pub(crate) const MOST_SPILLED_BYTES: u32 = 64;

/// A kernel loaded for a device.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) device: Device,
    pub(crate) module: Arc<Module>,
    /// Of a thread, because registers ran out (CUDA).
    pub(crate) spill_bytes: u32,
    /// What it is given after its arguments.
    pub(crate) numbers: Option<Arc<[u64]>>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel on {}", self.device)
    }
}

/// Kernels that threads are loading.
static FLIGHTS: Flights<(Device, TextId), Result<Loaded>> = Flights::new();

static MEMORY: Mutex<Option<LruCache<(Device, TextId), Loaded>>> = Mutex::new(None);

/// What a kernel in memory is found by. A CPU by another name has the CPU's.
fn held(device: Device, text: &Text) -> (Device, TextId) {
    let owner = if matches!(device.0, DeviceKind::Cpu(_)) { Device::cpu() } else { device };
    (owner, text.id())
}

/// A plan is to be made: what its kernels are compiled by may start.
pub(crate) fn expect(backend: &Backend) {
    if let Backend::Cpu(_) = backend {
        Compiler::expect_text();
    }
}

/// The kernels of one evaluation, each with what is to be compiled for it.
pub(crate) fn texts(backend: &Backend, device: Device, emitted: &[Arc<Emitted>]) -> Vec<Text> {
    let exact: Vec<Text> = emitted.iter().map(Text::exact).collect();
    let is_new = |text: &Text| with_memory(|memory| !memory.contains(&held(device, text)));
    let new: Vec<bool> = exact.iter().map(is_new).collect();
    let kernels: Vec<Arc<Emitted>> =
        emitted.iter().zip(&new).filter(|&(_, &new)| new).map(|(emitted, _)| emitted.clone()).collect();
    if kernels.is_empty() {
        if let Backend::Cpu(_) = backend {
            Compiler::note_runs(0);
        }
        return exact;
    }
    let is_on_disk = |emitted: &Emitted| {
        let key = disk_key(backend, &emitted.source);
        key.is_some_and(|key| DiskCache::get().is_some_and(|disk| disk.place(&key).exists()))
    };
    let mut texts = general::texts(&kernels, is_on_disk).into_iter();
    let text = |(exact, new)| if new { texts.next().unwrap_or(exact) } else { exact };
    exact.into_iter().zip(new).map(text).collect()
}

/// The kernel, if it is loaded.
pub(crate) fn loaded(device: Device, text: &Text) -> Option<Loaded> {
    let loaded = with_memory(|memory| memory.get(&held(device, text)).cloned())?;
    Some(Loaded { numbers: text.numbers().cloned(), ..loaded })
}

/// What the cache on disk knows a source by; `None` where it has no kernels of the device's.
fn disk_key(backend: &Backend, source: &str) -> Option<Key> {
    match backend {
        Backend::Cpu(identity) => Some(Key::new("cpu", identity, &[], source)),
        #[cfg(feature = "cuda")]
        Backend::Cuda(device) => {
            let nvrtc = super::cuda::nvrtc::Nvrtc::get().ok()?;
            let architecture = to_compile_for(device.architecture(), nvrtc.architectures());
            Some(cubin_key(nvrtc, &architecture, source))
        }
        #[cfg(feature = "emulate")]
        Backend::Emulated => None,
        Backend::Interpreter | Backend::Interpreted => None,
    }
}

/// The kernel, compiled for the device.
///
/// # Errors
/// [`Error::Compilation`] with the compiler's log and the source; [`Error::Unavailable`] without a compiler.
pub(crate) fn load(backend: &Backend, device: Device, text: &Text) -> Result<Loaded> {
    let loaded = load_once(backend, device, text);
    let is_refused = match &loaded {
        Err(Error::Compilation { .. }) => text.numbers().is_some(),
        Ok(loaded) => spills(loaded, text),
        Err(_) => false,
    };
    if !is_refused {
        return loaded;
    }
    general::refuse(text);
    load(backend, device, &Text::exact(&text.emitted))
}

/// As [`load`], with what comes of another thread that is at it.
fn load_once(backend: &Backend, device: Device, text: &Text) -> Result<Loaded> {
    let with_numbers = |loaded: Loaded| Loaded { numbers: text.numbers().cloned(), ..loaded };
    loop {
        if let Some(loaded) = loaded(device, text) {
            return Ok(loaded);
        }
        match FLIGHTS.begin(held(device, text)) {
            Turn::Own(lead) => {
                // Another one may have been over just before this one began.
                let result = match loaded(device, text) {
                    Some(loaded) => Ok(loaded),
                    None => load_anew(backend, device, text),
                };
                lead.end(result.clone());
                return result.map(with_numbers);
            }
            Turn::Others(flight) => {
                if let Some(result) = flight.wait() {
                    return result.map(with_numbers);
                }
            }
        }
    }
}

fn load_anew(backend: &Backend, device: Device, text: &Text) -> Result<Loaded> {
    host::make_room();
    let (module, spill_bytes) = module(backend, text)?;
    let loaded = Loaded { device, module: Arc::new(module), spill_bytes, numbers: None };
    if !spills(&loaded, text) {
        with_memory(|memory| memory.put(held(device, text), loaded.clone()));
    }
    Ok(loaded)
}

/// Whether numbers as arguments make a kernel spill too many registers: what is known in the text may take some that
/// arguments do not leave.
fn spills(loaded: &Loaded, text: &Text) -> bool {
    loaded.spill_bytes > MOST_SPILLED_BYTES && text.numbers().is_some()
}

/// Compiles together what is neither in memory nor on disk, where one run of the compiler takes several kernels. What
/// fails is left to [`load`].
pub(crate) fn compile_ahead(backend: &Backend, device: Device, texts: &[Text]) {
    let is_loaded = |text: &Text| with_memory(|memory| memory.contains(&held(device, text)));
    fork::ready();
    match backend {
        Backend::Cpu(identity) => {
            let new = texts.iter().filter(|text| !is_loaded(text));
            let mut new: Vec<(Key, &Text)> =
                new.map(|text| (Key::new("cpu", identity, &[], text.source()), text)).collect();
            new.sort_by_key(|(key, _)| *key);
            new.dedup_by_key(|(key, _)| *key);
            let disk = DiskCache::get();
            new.retain(|(key, _)| !disk.is_some_and(|disk| disk.place(key).exists()));
            let sources: Vec<&str> = new.iter().map(|(_, text)| text.source()).collect();
            let batches = together::batches(&sources, rayon::current_num_threads());
            batches.par_iter().for_each(|batch| {
                let kernels: Vec<(Key, &Text)> = batch.iter().map(|&number| new[number]).collect();
                let _ = match kernels.as_slice() {
                    [(_, text)] => load(backend, device, text).map(|_| ()),
                    kernels => compile_together(device, kernels),
                };
            });
            Compiler::note_runs(batches.len());
        }
        #[cfg(feature = "emulate")]
        Backend::Emulated => {
            let new = texts.iter().filter(|text| !is_loaded(text));
            let kernels: Vec<_> =
                new.map(|text| (text.emitted.functions().collect(), text.source())).collect();
            super::emulate::EmulatedModule::compile_ahead(&kernels);
        }
        _ => {}
    }
}

/// Compiles kernels for the CPU in one text, loads and stores each; but for those that other threads are at.
fn compile_together<'a>(device: Device, kernels: &[(Key, &'a Text)]) -> Result<()> {
    let own = |(key, text): &(Key, &'a Text)| match FLIGHTS.begin(held(device, text)) {
        Turn::Own(lead) => loaded(device, text).is_none().then_some((*key, *text, lead)),
        Turn::Others(_) => None,
    };
    let kernels: Vec<_> = kernels.iter().filter_map(own).collect();
    if kernels.is_empty() {
        return Ok(());
    }
    host::make_room();
    let compiler = Compiler::get()?;
    let sources: Vec<&str> = kernels.iter().map(|(_, text, _)| text.source()).collect();
    let library = compiler.compile_all("several", &sources)?;
    for (key, text, lead) in kernels {
        let (name, source) = (text.emitted.name.as_str(), text.source());
        let module = CpuModule::load(name, &together::id(source), text.emitted.functions(), &library, None);
        let module = module.map_err(|unloaded| compiler.not_loaded(name, unloaded))?;
        stats::add(stats::Counter::KernelsCompiled);
        if let Some(disk) = DiskCache::get() {
            disk.store(&key, "c", source, &library);
        }
        let module = Arc::new(Module::Cpu(module));
        let loaded = Loaded { device, module, spill_bytes: 0, numbers: None };
        with_memory(|memory| memory.put(held(device, text), loaded.clone()));
        lead.end(Ok(loaded));
    }
    Ok(())
}

fn with_memory<T>(f: impl FnOnce(&mut LruCache<(Device, TextId), Loaded>) -> T) -> T {
    let mut memory = MEMORY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(memory.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(LOADED).unwrap_or(NonZeroUsize::MIN))))
}

/// The loaded kernel, and the bytes that it spills.
fn module(backend: &Backend, text: &Text) -> Result<(Module, u32)> {
    match backend {
        Backend::Cpu(identity) => cpu_module(identity, text).map(|module| (Module::Cpu(module), 0)),
        #[cfg(feature = "emulate")]
        Backend::Emulated => {
            let (name, source) = (text.emitted.name.as_str(), text.source());
            super::emulate::keep(name, source);
            let functions = text.emitted.functions();
            let modules = functions.map(|name| super::emulate::EmulatedModule::compile(name, source));
            Ok((Module::Emulated(modules.collect::<Result<_>>()?), 0))
        }
        #[cfg(feature = "cuda")]
        Backend::Cuda(device) => {
            let nvrtc = super::cuda::nvrtc::Nvrtc::get()?;
            let architecture = to_compile_for(device.architecture(), nvrtc.architectures());
            let (cubin, spill_bytes) = compile_cubin(text, &architecture)?;
            let functions: Vec<&str> = text.emitted.functions().collect();
            let begins_early = super::cuda::dependent_launch::begins_early(&architecture);
            Ok((Module::Cuda(device.load(&cubin, &functions, begins_early)?), spill_bytes))
        }
        Backend::Interpreter | Backend::Interpreted => {
            Err(Error::internal("kernel loading", "interpreters have no compiled kernels"))
        }
    }
}

/// A library from the cache, or from the C compiler, which is asked for only then.
fn cpu_module(identity: &str, text: &Text) -> Result<CpuModule> {
    let (emitted, source) = (&text.emitted, text.source());
    let name = emitted.name.as_str();
    let (key, id) = (Key::new("cpu", identity, &[], source), together::id(source));
    let disk = DiskCache::get();
    if let Some(disk) = disk
        && let Some(library) = disk.load(&key)
        // A sound file that this system refuses all the same is replaced.
        && let Ok(module) = CpuModule::load(name, &id, emitted.functions(), &library, Some(&disk.place(&key)))
    {
        stats::add(stats::Counter::DiskHits);
        return Ok(module);
    }
    let compiler = Compiler::get()?;
    let mut library = compiler.compile(name, source)?;
    stats::add(stats::Counter::KernelsCompiled);
    let mut module = CpuModule::load(name, &id, emitted.functions(), &library, None);
    if matches!(module, Err(Unloaded::Refused(_))) {
        library = compiler.compile_linked(name, source)?;
        module = CpuModule::load(name, &id, emitted.functions(), &library, None);
    }
    let module = module.map_err(|unloaded| compiler.not_loaded(name, unloaded))?;
    if let Some(disk) = disk {
        disk.store(&key, "c", source, &library);
    }
    Ok(module)
}

/// A CUBIN, or PTX for a virtual architecture, from the cache or from NVRTC, and the bytes that a thread spills.
#[cfg(feature = "cuda")]
fn compile_cubin(text: &Text, architecture: &str) -> Result<(Vec<u8>, u32)> {
    let (name, source) = (text.emitted.name.as_str(), text.source());
    let nvrtc = super::cuda::nvrtc::Nvrtc::get()?;
    let (major, minor) = nvrtc.version();
    let options = nvrtc.options();
    debug::print(Level::Timings, || {
        format!("{name} for {architecture} by NVRTC {major}.{minor} ({})", nvrtc.place())
    });
    super::cuda::lines::write(name, source);
    let key = cubin_key(nvrtc, architecture, source);
    let mut cubin = cached(&key, "cu", source, || {
        let source = &super::cuda::dependent_launch::source(source, architecture);
        if is_virtual(architecture) {
            // What it spills, the driver knows alone.
            return Ok([nvrtc.ptx(name, source, architecture, options)?.into_bytes(), vec![0; 4]].concat());
        }
        let cubin = nvrtc.compile(name, source, architecture, options)?;
        let spill_bytes = cubin.inspect_all(text.emitted.functions()).map_or(0, |info| info.spill_bytes);
        Ok([cubin.bytes, spill_bytes.to_le_bytes().to_vec()].concat())
    })?;
    let spill_bytes = match cubin.split_last_chunk() {
        Some((_, behind)) => u32::from_le_bytes(*behind),
        None => 0,
    };
    cubin.truncate(cubin.len().saturating_sub(size_of::<u32>()));
    Ok((cubin, spill_bytes))
}

/// What the cache on disk knows a CUBIN by. Behind it are the spilled bytes: only the log of its compilation tells them from
/// a stack.
#[cfg(feature = "cuda")]
fn cubin_key(nvrtc: &super::cuda::nvrtc::Nvrtc, architecture: &str, source: &str) -> Key {
    let (major, minor) = nvrtc.version();
    let mut maker = format!("nvrtc {major}.{minor}, room before spills, which are behind");
    if let Some(folder) = super::cuda::lines::folder() {
        // The CUBIN names the file.
        maker = format!("{maker}, lines in {}", folder.display());
    }
    Key::new(
        architecture,
        &maker,
        nvrtc.options(),
        &super::cuda::dependent_launch::source(source, architecture),
    )
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
