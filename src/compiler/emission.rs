//! Kernels' texts: equal kernels are emitted once.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::ir::{AxisKind, Kernel};
use lazuli_codegen::schedule::Figures;
use lazuli_codegen::{Emitted, Language, Refusal, emit};
use lru::LruCache;

use super::settings::Settings;
use crate::Scalar;

/// How many texts are kept, least recently used first out.
const TEXTS: usize = 512;

type EmittedCache = LruCache<(Kernel, Language, bool, u32), Arc<Emitted>>;

static EMITTED: Mutex<Option<EmittedCache>> = Mutex::new(None);

/// Emits a kernel, or finds what was emitted for an equal one: the repeated blocks of a model, or the
/// same kernel with another learning rate.
pub(super) fn emit_cached(
    kernel: &Kernel,
    is_low_pressure: bool,
    settings: Settings,
) -> Result<Arc<Emitted>, Refusal> {
    let mut key = kernel.clone();
    for argument in &mut key.arguments {
        // The text has the argument's name and type.
        argument.value = Scalar::from_i64(argument.value.dtype(), 0);
    }
    for axis in &mut key.axes {
        if let AxisKind::Offset { number } = &mut axis.kind {
            *number = 0;
        }
    }
    let key = (key, settings.language, is_low_pressure, settings.shared_bytes);
    if let Some(emitted) = with_emitted(|cache| cache.get(&key).cloned()) {
        return Ok(emitted);
    }
    let processors = settings.figures().processors;
    let figures = Figures { processors, is_low_pressure, shared_bytes: settings.shared_bytes };
    let emitted = Arc::new(emit(kernel, settings.language, &figures)?);
    with_emitted(|cache| cache.put(key, emitted.clone()));
    Ok(emitted)
}

fn with_emitted<T>(f: impl FnOnce(&mut EmittedCache) -> T) -> T {
    let mut cache = EMITTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(cache.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(TEXTS).unwrap_or(NonZeroUsize::MIN))))
}
