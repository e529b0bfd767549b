//! Which kernels are compiled with numbers as arguments: those whose texts come again with other numbers.
//!
//! The first text of a kind is compiled as it is, with all numbers known. When an evaluation brings another one that
//! differs in numbers alone, by little, as where an extent grows, or after several that differ by more, there is one text for
//! all of them from then on. Where that was so, a text of the same kernel that is otherwise different, as rows of twice the
//! length are, gets numbers as arguments from the first on. What few texts of one evaluation have in common, such as layers of
//! different sizes, is left alone, but for offsets, as where each of many kernels selects another row: these have one text at
//! once. So have many that differ in sizes, such as the steps of something that shrinks.
//! Results do not depend on which text ran: both do the same, operation by operation.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::schedule::Schedule;
use lazuli_codegen::{Emitted, General, Language, Numbers};
use lru::LruCache;
use xxhash_rust::xxh3::xxh3_128;

use crate::debug::{self, Level};

/// Kinds of texts that are remembered, least recently used first out.
const FAMILIES: usize = 1024;
/// After so many, their numbers may differ by any factor.
const MANY: usize = 4;
/// So many are remembered.
const MOST_SEEN: usize = 16;

/// So many of one evaluation that differ in offsets alone are one text.
const AT_ONCE: usize = 3;
/// So many are one whatever numbers they differ in: steps of an evaluation, each of another size. Not products, whose loops
/// take longer if their lengths are not known.
const STEPS: usize = 8;

/// A kernel's text, to be compiled, and what it is given besides the kernel's arguments.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) emitted: Arc<Emitted>,
    general: Option<(Arc<str>, Arc<[u64]>)>,
    id: TextId,
}

/// What tells a source from all others of the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TextId(u128);

impl TextId {
    pub(crate) fn of(source: &str) -> TextId {
        TextId(xxh3_128(source.as_bytes()))
    }
}

impl Text {
    /// As emitted.
    pub(crate) fn exact(emitted: &Arc<Emitted>) -> Text {
        Text { emitted: emitted.clone(), general: None, id: TextId::of(&emitted.source) }
    }

    /// Of [`Text::source`].
    pub(crate) fn id(&self) -> TextId {
        self.id
    }

    /// What the compiler gets.
    pub(crate) fn source(&self) -> &str {
        self.general.as_ref().map_or(&self.emitted.source, |(source, _)| source)
    }

    /// The numbers that follow the arguments.
    pub(crate) fn numbers(&self) -> Option<&Arc<[u64]>> {
        self.general.as_ref().map(|(_, numbers)| numbers)
    }
}

/// A text for several, and its source.
type Served = (General, Arc<str>, TextId);

/// Texts that differ in numbers alone.
#[derive(Default)]
struct Family {
    /// What evaluations brought, until there are as many as are kept.
    seen: Vec<Arc<Numbers>>,
    general: Option<Served>,
    /// The compiler does not take it.
    is_refused: bool,
}

impl Family {
    /// The text for this one and all that were seen, if there is to be one.
    fn serve(
        &mut self,
        new: &Numbers,
        emitted: &Arc<Emitted>,
        constants: Option<&BTreeSet<u64>>,
        is_compiled: impl Fn() -> bool,
    ) -> Option<Text> {
        let text = |(general, source, id): &Served, numbers: Vec<u64>| {
            debug_assert!(general.arguments(new).is_some());
            Text { emitted: emitted.clone(), general: Some((source.clone(), numbers.into())), id: *id }
        };
        if self.is_refused {
            return None;
        }
        if let Some(general) = &self.general
            && let Some(numbers) = general.0.arguments(new)
        {
            return Some(text(general, numbers));
        }
        let is_first = self.seen.is_empty();
        let is_news = self.seen.len() < MANY && !self.seen.iter().any(|seen| seen.is_near(new));
        if is_compiled() || is_news && !(is_first && constants.is_some()) {
            return None;
        }
        let all: Vec<&Numbers> = self.seen.iter().map(|seen| &**seen).chain([new]).collect();
        let general = match constants {
            Some(constants) if is_first => General::expected(new, constants)?,
            _ => General::of(&all)?,
        };
        let numbers = general.arguments(new)?;
        Some(text(self.put(general, new), numbers))
    }

    /// From now on the text for what it serves, `text` among them.
    fn put(&mut self, general: General, text: &Numbers) -> &Served {
        let source: Arc<str> = general.source(text).into();
        debug::print(Level::Source, || format!("with numbers as arguments:\n{source}"));
        let id = TextId::of(&source);
        self.general.insert((general, source, id))
    }

    /// A text for these of one evaluation, if they are several and differ in offsets alone, or are many `steps`.
    fn expect(&mut self, together: &[&Numbers], steps: bool) {
        let is_served = |text: &Numbers| {
            self.general.as_ref().is_some_and(|(general, ..)| general.arguments(text).is_some())
        };
        if self.is_refused || together.len() < AT_ONCE || together.iter().all(|text| is_served(text)) {
            return;
        }
        // What is compiled already is served by what takes its place.
        let before = if self.general.is_some() { self.seen.as_slice() } else { &[] };
        let all: Vec<&Numbers> = before.iter().map(|seen| &**seen).chain(together.iter().copied()).collect();
        if let Some(general) = General::of(&all)
            && (steps && together.len() >= STEPS || general.is_of_offsets(together[0]))
        {
            self.put(general, together[0]);
        }
    }
}

/// What is known of texts: of those that differ in numbers alone, and of kernels by their names, which of their numbers are
/// the same in all.
struct Known {
    families: LruCache<TextId, Family>,
    constants: LruCache<(Language, String), BTreeSet<u64>>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn with_known<T>(f: impl FnOnce(&mut Known) -> T) -> T {
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let most = NonZeroUsize::new(FAMILIES).unwrap_or(NonZeroUsize::MIN);
    let new = || Known { families: LruCache::new(most), constants: LruCache::new(most) };
    f(known.get_or_insert_with(new))
}

fn with_family<T>(numbers: &Numbers, f: impl FnOnce(&mut Family) -> T) -> T {
    let key = TextId::of(numbers.skeleton());
    with_known(|known| f(known.families.get_or_insert_mut(key, Family::default)))
}

/// The texts to compile for these kernels of one evaluation, none of which is loaded as it is.
pub(crate) fn texts(kernels: &[Arc<Emitted>], is_on_disk: impl Fn(&Emitted) -> bool) -> Vec<Text> {
    let numbers: Vec<Option<Arc<Numbers>>> =
        kernels.iter().map(|emitted| Numbers::of(emitted).map(Arc::new)).collect();
    let mut together: BTreeMap<&str, Vec<(&Emitted, &Numbers)>> = BTreeMap::new();
    for (emitted, numbers) in kernels.iter().zip(&numbers) {
        let Some(numbers) = numbers else { continue };
        let others = together.entry(numbers.skeleton()).or_default();
        if others.iter().all(|(_, other)| *other != &**numbers) {
            others.push((emitted, numbers));
        }
    }
    for mut together in together.into_values().filter(|together| together.len() >= AT_ONCE) {
        together.retain(|(emitted, _)| !is_on_disk(emitted));
        let is_product = |(emitted, _): &(&Emitted, &Numbers)| {
            matches!(
                emitted.schedule,
                Schedule::Contraction(_) | Schedule::RowContraction(_) | Schedule::Product(_)
            )
        };
        let steps = !together.iter().any(is_product);
        let numbers: Vec<&Numbers> = together.into_iter().map(|(_, numbers)| numbers).collect();
        if let Some(first) = numbers.first() {
            with_family(first, |family| family.expect(&numbers, steps));
        }
    }
    let mut texts = Vec::with_capacity(kernels.len());
    for (emitted, numbers) in kernels.iter().zip(&numbers) {
        let name = (emitted.language, emitted.name.clone());
        let text = numbers.as_ref().and_then(|numbers| {
            let constants = with_known(|known| known.constants.get(&name).cloned());
            with_family(numbers, |family| {
                let text = family.serve(numbers, emitted, constants.as_ref(), || is_on_disk(emitted))?;
                // Other offsets are no sign of other sizes.
                let is_news = |general: &General| constants.is_none() && !general.is_of_offsets(numbers);
                let learnt = family.general.as_ref().filter(|(general, ..)| is_news(general));
                Some((text, learnt.map(|(general, ..)| general.constants().collect::<BTreeSet<u64>>())))
            })
        });
        let text = text.map(|(text, learnt)| {
            if let Some(constants) = learnt {
                with_known(|known| known.constants.put(name, constants));
            }
            text
        });
        texts.push(text.unwrap_or_else(|| Text::exact(emitted)));
    }
    for (numbers, text) in numbers.iter().zip(&texts) {
        let Some(numbers) = numbers else { continue };
        with_family(numbers, |family| {
            // What is served teaches nothing, but for the first of them.
            let is_news = text.numbers().is_none() || family.seen.len() < MANY;
            if is_news && family.seen.len() < MOST_SEEN && !family.seen.contains(numbers) {
                family.seen.push(numbers.clone());
            }
        });
    }
    texts
}

/// From now on, texts like this one are compiled as they are.
pub(crate) fn refuse(text: &Text) {
    if let Some(numbers) = Numbers::of(&text.emitted) {
        with_family(&numbers, |family| {
            family.is_refused = true;
            family.general = None;
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A failed assumption stops the test.
mod tests {
    use lazuli_codegen::ir::Kernel;
    use lazuli_codegen::schedule::{Figures, Matrices};

    use super::*;

    /// Rows of so many elements times one element.
    fn scaled(name: &str, element: usize, extent: usize) -> Arc<Emitted> {
        let text = format!(
            "\
kernel {name}
  map i0 < 70
  map i1 < {extent}
  input in0: f32 [90000]
  output out0: f32 [{all}]
  v0: f32 = load in0[i1 * 71 + i0]
  v1: f32 = load in0[{element}]
  v2: f32 = mul v0 v1
  store out0[i0 * {extent} + i1] = v2
",
            all = 70 * extent,
        );
        let kernel: Kernel = text.parse().unwrap();
        let figures =
            Figures { processors: 2, is_low_pressure: false, shared_bytes: 0, matrices: Matrices::Warps };
        Arc::new(lazuli_codegen::emit(&kernel, Language::C, &figures).unwrap())
    }

    #[test]
    fn what_differs_in_offsets_is_one_text_at_once() {
        let sources = |kernels: &[Arc<Emitted>]| {
            let texts = texts(kernels, |_| false);
            texts.iter().map(|text| text.source().to_owned()).collect::<BTreeSet<String>>().len()
        };
        let of = |name: &str, elements: &[usize]| -> Vec<Arc<Emitted>> {
            elements.iter().map(|&element| scaled(name, element, 53)).collect()
        };
        assert_eq!(sources(&of("few", &[5, 7000])), 2);
        assert_eq!(sources(&of("several", &[5, 7000, 300])), 1);
        // Far from those, and the only one.
        assert_eq!(sources(&of("several", &[80000])), 1);
        assert!(texts(&of("several", &[81000]), |_| false)[0].numbers().is_some());
        // Layers of different sizes, and steps of something that shrinks.
        let layers = [53, 155, 307].map(|extent| scaled("layers", 5, extent));
        assert_eq!(sources(&layers), 3);
        let steps: Vec<Arc<Emitted>> = (0..12).map(|step| scaled("steps", 5, 307 - 16 * step)).collect();
        assert_eq!(sources(&steps), 1);
    }
}
