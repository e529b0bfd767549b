//! Lanes of vectors in C: the same operations as of single numbers, on as many of them as the processor's registers hold.
//!
//! What an operation is, says its C of single numbers alone. It is read (`syntax`), and printed with vectors for
//! numbers (`translate`), so that each lane has the bits that a loop of single numbers would give. What vectors are
//! made of is in `primitives`.

mod accesses;
mod conversions;
mod halves;
mod kind;
mod primitives;
mod scans;
mod short_floats;
mod syntax;
mod translate;
mod vectorised;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kind::PASTED;
pub use kind::{Kind, SPREAD};
pub use primitives::Wider;
use primitives::memory;
pub use scans::has_scan;

use super::helpers::words;
use crate::DType;

/// An operand or a result: text, what it is, and whether it is a vector or one number for all lanes.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Any expression.
    pub text: String,
    /// Of each lane.
    pub kind: Kind,
    /// Whether lanes differ.
    pub is_vector: bool,
}

impl Value {
    /// Differs among lanes.
    pub fn vector(text: String, kind: Kind) -> Value {
        Value { text, kind, is_vector: true }
    }

    /// The same in all lanes.
    pub fn scalar(text: String, kind: Kind) -> Value {
        Value { text, kind, is_vector: false }
    }
}

/// The vectors of a kernel's text: how many lanes they have, and what it needs for them.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Bytes of the widest elements: 4 or 8. A register has that many lanes of them, and all vectors as many.
    width: u32,
    /// Functions by their order in the library, and names.
    functions: BTreeMap<(usize, Arc<str>), Arc<str>>,
    /// The kinds of the parameters of those functions, and of the result.
    signatures: BTreeMap<Arc<str>, Arc<Signature>>,
}

/// The kinds of a function's parameters, and of its result.
type Signature = (Vec<Kind>, Kind);

/// Bytes of the widest elements that a text has vectors of.
pub const WIDTHS: [u32; 2] = [4, 8];

impl Lanes {
    /// Vectors of as many lanes as a register has of so many bytes.
    pub fn new(width: u32) -> Lanes {
        Lanes { width, functions: BTreeMap::new(), signatures: BTreeMap::new() }
    }

    /// The name of the primitive of a kind.
    fn primitive(&mut self, name: &str, kind: Kind) -> String {
        match kind {
            Kind::Mask => format!("lz_{name}_mask"),
            _ => format!("lz_{name}_{}", kind.vector()),
        }
    }

    /// Lanes from memory, of what memory holds: of 16-bit floats their bits.
    pub fn load(dtype: DType) -> (String, Kind) {
        (format!("lz_load_{dtype}"), memory(dtype).1)
    }

    /// Lanes from memory for which a condition holds: another argument. Where it holds for none, the address is near the
    /// tensor, or may be anything.
    pub fn inside(dtype: DType, is_near: bool) -> (String, Kind) {
        let any = if is_near { "" } else { "any_" };
        (format!("lz_{any}inside_{dtype}"), memory(dtype).1)
    }

    /// The same of lanes some elements from each other: an argument before says how far.
    pub fn gather_inside(dtype: DType) -> (String, Kind) {
        (format!("lz_gather_inside_{dtype}"), memory(dtype).1)
    }

    /// Lanes to memory.
    pub fn store(dtype: DType) -> (String, Kind) {
        (format!("lz_store_{dtype}"), memory(dtype).1)
    }

    /// Some lanes from memory that has all.
    pub fn load_first(dtype: DType) -> (String, Kind) {
        (format!("lz_load_first_{dtype}"), memory(dtype).1)
    }

    /// Some lanes to memory that has room for all.
    pub fn store_first(dtype: DType) -> (String, Kind) {
        (format!("lz_store_first_{dtype}"), memory(dtype).1)
    }

    /// The same where the next lanes are another line's.
    pub fn store_line(dtype: DType) -> (String, Kind) {
        (format!("lz_store_line_{dtype}"), memory(dtype).1)
    }

    /// Lanes to memory, around the caches if another argument says so.
    pub fn stream(dtype: DType) -> (String, Kind) {
        (format!("{STREAM}{dtype}"), memory(dtype).1)
    }

    /// Lanes from memory, some elements from each other, of which all between are read as well: another argument says which.
    pub fn pick(dtype: DType) -> (String, Kind) {
        (format!("lz_pick_{dtype}"), memory(dtype).1)
    }

    /// Lanes from an array of [`SPREAD`] elements, each for as many neighbours as an argument says, from a lane on.
    pub fn spread(dtype: DType) -> (String, Kind) {
        (format!("lz_spread_{dtype}"), memory(dtype).1)
    }

    /// The most lanes that there can be.
    pub fn most(&self) -> u64 {
        u64::from(64 / self.width)
    }

    /// Lanes from the ones some further on.
    pub fn shift(kind: Kind) -> String {
        format!("lz_shift_{}", kind.vector())
    }

    /// Lanes from memory, some elements from each other.
    pub fn gather(dtype: DType) -> (String, Kind) {
        (format!("lz_gather_{dtype}"), memory(dtype).1)
    }

    /// Lanes from memory, each at an index of its own: a vector of these is another argument.
    pub fn gather_at(dtype: DType) -> (String, Kind) {
        (format!("lz_gather_at_{dtype}"), memory(dtype).1)
    }

    fn define(&mut self, order: usize, name: &str, code: String) {
        self.functions.insert((order, name.into()), code.into());
    }

    /// What has to stand before a text that has vectors.
    ///
    /// # Errors
    /// If there must be fewer lanes: the text has wider elements.
    pub fn text(&self, text: &str) -> Result<Arc<str>, Wider> {
        /// By all that it depends on: kernels that differ in numbers alone need the same.
        type Known = BTreeMap<String, Result<Arc<str>, Wider>>;
        static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
        let mut key = self.width.to_string();
        let functions = self.functions.keys().map(|(_, name)| &**name);
        for word in
            functions.chain(words(text).filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())))
        {
            key.push(' ');
            key.push_str(word);
        }
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known().get(&key) {
            return text.clone();
        }
        let text = self.text_anew(text).map(Arc::from);
        let mut known = known();
        if known.len() == MOST_KNOWN {
            known.clear();
        }
        known.insert(key, text.clone());
        text
    }

    fn text_anew(&self, text: &str) -> Result<String, Wider> {
        let all: Vec<(&str, &str)> =
            self.functions.iter().map(|((_, name), code)| (&**name, &**code)).collect();
        let wide = if self.width == 4 { halves::wide(&all) } else { BTreeSet::new() };
        let is_wide = |(name, _): &&(&str, &str)| wide.contains(name);
        let both: BTreeMap<&str, String> = all
            .iter()
            .filter(is_wide)
            .filter_map(|&(name, code)| Some((name, self.both(name, code)?)))
            .collect();
        // What is needed of whole vectors, and of halves.
        let mut needed: BTreeSet<&str> = words(text).collect();
        let known = self.names();
        let mut halved: BTreeSet<&str> =
            needed.iter().filter_map(|word| halves::original(word, &known)).collect();
        for &(name, code) in all.iter().rev() {
            if needed.contains(name) {
                match both.get(name) {
                    Some(both) => {
                        halved.insert(name);
                        needed.extend(words(both));
                    }
                    None => needed.extend(words(code)),
                }
            }
            if halved.contains(name) {
                halved.extend(words(code));
            }
        }
        let is_known = |word: &str| known.contains(word);
        let mut used: Vec<(String, Cow<str>)> = Vec::new();
        for &(name, code) in &all {
            if halved.contains(name) {
                used.push((halves::halved_name(name), halves::halved(code, is_known).into()));
            }
            if needed.contains(name) {
                let code = both.get(name).map_or(code, String::as_str);
                used.push((name.to_string(), code.into()));
            }
        }
        let mut primitives = primitives::text(self.width, &needed)?;
        if words(text).filter(|word| word.starts_with(STREAM)).count() > MOST_STREAMED {
            primitives =
                primitives.replace(&format!("{PASTED}void {STREAM}"), &format!("{CALLED}void {STREAM}"));
        }
        if !halved.is_empty() {
            // Nothing but halves: they are the whole vectors of wider elements.
            if !primitives.contains("#define LANES ") {
                return Err(Wider);
            }
            primitives += &(halves::primitives(&halved)? + &halves::parts(&needed));
        }
        // Lines of each with all that it calls, and of all that the text calls.
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pasted = 0;
        for (name, code) in &used {
            let own =
                words(code).filter(|word| word != name).filter_map(|word| lines.get(word)).sum::<usize>();
            let is_instruction = code.contains("\n#if ");
            lines.insert(name, if is_instruction { SHORT } else { code.lines().count() + own });
        }
        let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
        for name in words(text).filter(|word| lines.contains_key(word)) {
            *calls.entry(name).or_default() += 1;
            pasted += lines.get(name).copied().unwrap_or(0);
        }
        let functions = used.iter().map(|(name, code)| {
            let is_called =
                pasted > MOST_PASTED && calls.contains_key(name.as_str()) && lines[name.as_str()] > SHORT;
            format!("{}{code}", if is_called { CALLED } else { PASTED })
        });
        Ok(primitives + &functions.collect::<String>())
    }

    /// The names of primitives and functions.
    fn names(&self) -> BTreeSet<&str> {
        let functions = self.functions.keys().map(|(_, name)| &**name);
        halves::names().into_iter().chain(functions).collect()
    }

    /// The loop of half as many lanes for one that has wide elements; `None` for any other, and where all loops are such.
    pub fn halved_loop(&self, text: &str) -> Option<String> {
        let may_be_wide = self.width == 4 && (text.contains("64") || text.contains("lz_positions"));
        if !may_be_wide || self.text(text).is_ok() {
            return None;
        }
        let known = self.names();
        Some(halves::halved(text, |word| known.contains(word)))
    }

    /// The function that has each half of a vector go through this one; `None` where what it takes or gives is wide itself.
    fn both(&self, name: &str, code: &str) -> Option<String> {
        let (kinds, result) = &**self.signatures.get(name)?;
        let is_narrow = kinds.iter().chain([result]).all(|kind| !kind.is_wide());
        let is_by_value = code.split(')').next().is_some_and(|head| !head.contains('*'));
        (is_narrow && is_by_value).then(|| halves::both(name, kinds, *result))
    }
}

/// Texts that are kept.
const MOST_KNOWN: usize = 256;

const CALLED: &str = "static __attribute__((noinline)) ";

/// Where a text has more stores around the caches than these, they are calls: each is three ways to store, and thirty of them
/// most of what there is to compile.
const MOST_STREAMED: usize = 6;
const STREAM: &str = "lz_stream_";

/// Where more lines would be pasted, functions longer than [`SHORT`] are called: a loop then loads their constants in each
/// turn, and takes up to half as long again.
const MOST_PASTED: usize = 800;
const SHORT: usize = 6;
