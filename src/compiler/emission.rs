//! Kernels' texts: equal kernels are emitted once.

use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::ir::Kernel;
use lazuli_codegen::schedule::{Figures, Matrices, Schedule};
use lazuli_codegen::{Choice, Class, Emitted, Language, Refusal, Sizes, emit_with};
use lru::LruCache;
use rustc_hash::FxBuildHasher;

use super::settings::Settings;
use crate::fusion::group::{Group, WhyNot};
use crate::tuned;

/// How many texts are kept, least recently used first out.
const TEXTS: usize = 512;
/// Classes that are remembered.
const MOST_CLASSES: usize = 2048;

type EmittedCache = LruCache<(Kernel, (Language, u32, Matrices), bool, Option<Schedule>), Arc<Emitted>>;

static EMITTED: Mutex<Option<EmittedCache>> = Mutex::new(None);

/// What is known of the sizes of a class.
enum Known {
    /// One of them was emitted.
    Seen,
    /// Each has a text of its own.
    Apart,
    Served(Arc<(Class, Sizes)>),
}

/// Kernels of many sizes, by a hash of their class.
static CLASSES: Mutex<Option<LruCache<u64, Known>>> = Mutex::new(None);

/// Emits a kernel, or finds what was emitted for an equal one: the repeated blocks of a model, or the
/// same kernel with another learning rate. Under the schedule that was measured to be the fastest, if it was.
pub(super) fn emit_cached(
    kernel: &Kernel,
    is_low_pressure: bool,
    settings: Settings,
) -> Result<Arc<Emitted>, Refusal> {
    let key = tuned::normalised(kernel);
    let measured = settings.tuned.filter(|_| !is_low_pressure).and_then(tuned::section);
    let given = measured.and_then(|section| section.of(&key)?.schedule_given());
    emit_given(kernel, key, is_low_pressure, settings, given)
}

/// As [`emit_cached`], under this schedule. What the kernel does not take is as if it had not been given.
pub(super) fn emit_as(
    kernel: &Kernel,
    is_low_pressure: bool,
    settings: Settings,
    schedule: Schedule,
) -> Result<Arc<Emitted>, Refusal> {
    emit_given(kernel, tuned::normalised(kernel), is_low_pressure, settings, Some(schedule))
}

fn emit_given(
    kernel: &Kernel,
    key: Kernel,
    is_low_pressure: bool,
    settings: Settings,
    given: Option<Schedule>,
) -> Result<Arc<Emitted>, Refusal> {
    let on = (settings.language, settings.shared_bytes, settings.matrices);
    let key = (key, on, is_low_pressure, given);
    if let Some(emitted) = with_emitted(|cache| cache.get(&key).cloned()) {
        return Ok(emitted);
    }
    let figures = figures(settings, is_low_pressure);
    let given = given.and_then(|schedule| emit_with(kernel, settings.language, &figures, schedule).ok());
    let emitted = match given {
        Some(emitted) => Arc::new(emitted),
        None => {
            let choice = Choice::of(kernel, settings.language, &figures)?;
            let class = choice.class().map(|class| (FxBuildHasher.hash_one(&class), class));
            // What serves all sizes is not kept for each.
            if let Some(emitted) = class.as_ref().and_then(|class| served(&choice, class)) {
                return Ok(Arc::new(emitted));
            }
            let emitted = choice.emit()?;
            if let Some(class) = class {
                note(&choice, &emitted, class);
            }
            Arc::new(emitted)
        }
    };
    with_emitted(|cache| cache.put(key, emitted.clone()));
    Ok(emitted)
}

/// The emission of a kernel whose text is known, because kernels of other sizes have it.
fn served(choice: &Choice, (hash, class): &(u64, Class)) -> Option<Emitted> {
    let known = with_classes(|classes| match classes.get(hash) {
        Some(Known::Served(known)) if known.0 == *class => Some(known.clone()),
        _ => None,
    });
    Some(known?.1.emitted(choice))
}

/// A size of a class was emitted: the second one says whether it serves others.
fn note(choice: &Choice, emitted: &Emitted, (hash, class): (u64, Class)) {
    let is_second = with_classes(|classes| match classes.get(&hash) {
        Some(known) => matches!(known, Known::Seen),
        None => {
            classes.put(hash, Known::Seen);
            false
        }
    });
    if is_second {
        let served = |sizes| Known::Served(Arc::new((class, sizes)));
        let known = choice.sizes(emitted).map_or(Known::Apart, served);
        with_classes(|classes| classes.put(hash, known));
    }
}

/// What schedules depend on.
pub(super) fn figures(settings: Settings, is_low_pressure: bool) -> Figures {
    let processors = settings.figures().processors;
    let Settings { shared_bytes, matrices, .. } = settings;
    Figures { processors, is_low_pressure, shared_bytes, matrices }
}

/// A kernel should take a compiler no more than this many milliseconds.
pub(super) const MOST_COMPILE_TIME: usize = 400;

/// About how many milliseconds a C compiler takes: its time goes with the text, and with the loops in vectors.
pub(super) fn compile_time(source: &str) -> usize {
    let functions = source.find("\nstatic void ").unwrap_or(0);
    let text = &source[functions..];
    text.len() / 100 + 8 * text.matches("#pragma omp simd").count()
}

/// Kernels that take a compiler too long are divided, down to this many operations.
const LEAST_DIVIDED: usize = 16;

/// Why a group should not be this kernel.
pub(super) fn refused(group: &Group, emitted: &Emitted, settings: Settings) -> Option<WhyNot> {
    let keeps_rows = || {
        matches!(
            emitted.schedule,
            Schedule::Contraction(_) | Schedule::RowContraction(_) | Schedule::RowProduct(_)
        )
    };
    if group.waits_for_rows && !keeps_rows() {
        return Some(WhyNot::NoSchedule(Refusal::Misfit("its rows would be computed anew for each result")));
    }
    let is_divisible = settings.language == Language::C && group.nodes.len() >= LEAST_DIVIDED;
    let milliseconds = if is_divisible { compile_time(&emitted.source) } else { 0 };
    (milliseconds > MOST_COMPILE_TIME).then_some(WhyNot::CompileTime { milliseconds })
}

fn with_classes<T>(f: impl FnOnce(&mut LruCache<u64, Known>) -> T) -> T {
    let mut cache = CLASSES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let most = NonZeroUsize::new(MOST_CLASSES).unwrap_or(NonZeroUsize::MIN);
    f(cache.get_or_insert_with(|| LruCache::new(most)))
}

fn with_emitted<T>(f: impl FnOnce(&mut EmittedCache) -> T) -> T {
    let mut cache = EMITTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(cache.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(TEXTS).unwrap_or(NonZeroUsize::MIN))))
}
