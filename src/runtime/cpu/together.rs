//! Several kernels in one run of the C compiler: to start it, and the linker, is most of what a small kernel takes, and helper
//! functions that several kernels have are compiled once.

use std::collections::{BTreeMap, BTreeSet};

/// Kernels in one text, at most.
const MOST_KERNELS: usize = 8;
/// A longer text takes its time by itself.
const MOST_TEXT: usize = 1 << 15;
/// Bytes of text that a compiler takes as long for as it takes to start, with the linker.
const START: usize = 5 << 10;

/// What tells a kernel from others in one library.
pub(crate) fn id(source: &str) -> String {
    blake3::hash(source.as_bytes()).to_hex()[..16].to_owned()
}

/// The name of a kernel's function in a library of several.
pub(super) fn symbol(function: &str, id: &str) -> String {
    format!("{function}_{id}")
}

/// Which kernels go through the compiler together, by their sources, so that each of some threads has about as much to do:
/// the longest first. Texts for which it looks for vectors keep to themselves.
pub(crate) fn batches(sources: &[&str], threads: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(sources[number].len()));
    let bins = threads.max(sources.len().div_ceil(MOST_KERNELS));
    let mut loads = vec![0; bins];
    let mut batches: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    let mut alone = Vec::new();
    for number in order {
        let source = sources[number];
        if source.len() > MOST_TEXT {
            alone.push(vec![number]);
            continue;
        }
        let looks_for_vectors = source.contains("#pragma omp simd");
        let start = |bin: usize| {
            let batch = batches.get(&(bin, looks_for_vectors));
            if batch.is_some_and(|batch| batch.len() < MOST_KERNELS) { 0 } else { START }
        };
        let Some(bin) = (0..bins).min_by_key(|&bin| loads[bin] + start(bin)) else { continue };
        loads[bin] += start(bin) + source.len();
        let batch = batches.entry((bin, looks_for_vectors)).or_default();
        if batch.len() == MOST_KERNELS {
            alone.push(std::mem::take(batch));
        }
        batch.push(number);
    }
    alone.extend(batches.into_values());
    alone
}

/// What stands before the functions of some kernels, each definition once.
#[derive(Default)]
struct Shared<'a> {
    definitions: Vec<&'a str>,
    /// Which of them defines a name.
    of_names: BTreeMap<&'a str, &'a str>,
    /// Their texts, and what tells each from others.
    kernels: Vec<(&'a str, String)>,
}

impl<'a> Shared<'a> {
    /// Whether nothing of a source has a name that is something else here.
    fn takes(&self, definitions: &[&str]) -> bool {
        definitions.iter().all(|definition| {
            names(definition)
                .iter()
                .all(|name| self.of_names.get(name).is_none_or(|other| other == definition))
        })
    }

    fn add(&mut self, text: &'a str, id: String, definitions: Vec<&'a str>) {
        for definition in definitions {
            if !self.definitions.contains(&definition) {
                self.of_names.extend(names(definition).into_iter().map(|name| (name, definition)));
                self.definitions.push(definition);
            }
        }
        self.kernels.push((text, id));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let Some((_, shared)) = self.kernels.first() else { return text };
        let renamed =
            |name: &&&str| self.of_names[**name].lines().filter_map(defined).any(|own| own == **name);
        for name in self.of_names.keys().filter(renamed) {
            text.push_str(&format!("#define {name} {}\n", symbol(name, shared)));
        }
        self.definitions.iter().for_each(|definition| text.push_str(definition));
        for (kernel, id) in &self.kernels {
            let own = &kernel[functions(kernel)..];
            let names: BTreeSet<&str> = own.lines().filter_map(defined).collect();
            names.iter().for_each(|name| text.push_str(&format!("#define {name} {}\n", symbol(name, id))));
            text.push_str(own);
            names.iter().for_each(|name| text.push_str(&format!("#undef {name}\n")));
        }
        self.of_names.keys().for_each(|name| text.push_str(&format!("#undef {name}\n")));
        text
    }
}

/// Texts as one, each with the source of the kernel that it is of. What they define is called by [`symbol`], and the source's
/// [`id`].
pub(super) fn join<'a, 'b>(texts: impl IntoIterator<Item = (&'a str, &'b str)>) -> String {
    let mut all: Vec<Shared> = Vec::new();
    for (text, source) in texts {
        let (definitions, id) = (definitions(&text[..functions(text)]), id(source));
        match all.iter_mut().find(|shared| shared.takes(&definitions)) {
            Some(shared) => shared.add(text, id, definitions),
            None => {
                let mut shared = Shared::default();
                shared.add(text, id, definitions);
                all.push(shared);
            }
        }
    }
    all.iter().map(Shared::text).collect()
}

/// Where a kernel's own functions begin.
pub(super) fn functions(source: &str) -> usize {
    source.find("\nstatic void ").map_or(0, |at| at + 1)
}

/// The definitions in a text, with the comments before them: directives up to the end of their condition, functions and
/// types up to the end of their braces, and lines.
pub(super) fn definitions(text: &str) -> Vec<&str> {
    let mut definitions = Vec::new();
    let (mut begin, mut end, mut conditions, mut is_open) = (0, 0, 0usize, false);
    for line in text.split_inclusive('\n') {
        end += line.len();
        let own = line.trim_end();
        if !is_open {
            conditions += usize::from(own.starts_with("#if"));
            conditions = conditions.saturating_sub(usize::from(own.starts_with("#endif")));
        }
        if conditions == 0 {
            is_open = match is_open {
                true => !own.starts_with('}'),
                false => own.ends_with('{'),
            };
        }
        let is_comment = own.is_empty() || own.starts_with("//");
        if conditions == 0 && !is_open && !is_comment {
            definitions.push(text[begin..end].trim_start());
            begin = end;
        }
    }
    if !text[begin..].trim().is_empty() {
        definitions.push(text[begin..].trim_start());
    }
    definitions
}

/// What a definition defines, macros as well.
pub(super) fn names(definition: &str) -> Vec<&str> {
    let macros =
        definition.lines().filter_map(|line| line.strip_prefix("#define ")?.split([' ', '(']).next());
    definition.lines().filter_map(defined).chain(macros).collect()
}

/// The function or struct whose definition a line of emitted C begins. What else stands there, others may repeat.
fn defined(line: &str) -> Option<&str> {
    if let Some(name) = line.strip_prefix("struct ") {
        return name.strip_suffix('{').map(str::trim_end);
    }
    if let Some(alias) = line.strip_prefix("typedef ") {
        let declared = alias.split_once(" __attribute__").map_or(alias.trim_end_matches(';'), |(own, _)| own);
        return declared.rsplit(' ').next().filter(|name| *name != "idx");
    }
    let is_function =
        ["static ", "SHARED ", "void "].iter().any(|start| line.starts_with(start)) && !line.ends_with(';');
    let behind = line.split_once("__attribute__((").and_then(|(_, rest)| rest.split_once(")) "));
    let behind_attributes = behind.map_or(line, |(_, rest)| rest);
    let head = behind_attributes.split_once('(').filter(|_| is_function)?.0;
    head.rsplit([' ', '*']).next().filter(|name| !name.is_empty() && !name.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
typedef long long idx;

#if defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float f32v __attribute__((vector_size(LANES * sizeof(float))));
float fmaf(float, float, float);
// Twice as much.
static inline __attribute__((always_inline)) f32v lz_twice(f32v x) {
#ifdef MASKS
    return x + x;
#else
    return 2 * x;
#endif
}

static void a_blocks(idx end_block) {
  lz_twice(end_block);
}
void a(void* const* args, idx first_block, idx end_block) {
}
";

    #[test]
    fn what_kernels_share_is_there_once() {
        let other = SOURCE.replace("a_blocks", "b_blocks").replace("void a(", "void b(");
        let text = join([SOURCE, &other].map(|source| (source, source)));
        assert_eq!(text.matches("lz_twice(f32v x) {").count(), 1, "{text}");
        assert_eq!(text.matches("#define lz_twice lz_twice_").count(), 1);
        for (source, name) in [(SOURCE, "a"), (&other, "b")] {
            assert!(text.contains(&format!("#define {name} {}\n", symbol(name, &id(source)))), "{text}");
        }
        // Of another width, another function.
        let wide = SOURCE.replace("LANES 8", "LANES 16");
        let text = join([SOURCE, &other, &wide].map(|source| (source, source)));
        assert_eq!(text.matches("lz_twice(f32v x) {").count(), 2, "{text}");
        assert_eq!(text.matches("#undef LANES\n").count(), 2);
        assert_eq!(definitions(&SOURCE[..functions(SOURCE)]).len(), 5);
    }

    #[test]
    fn each_thread_has_about_as_much_to_compile() {
        let text = |length: usize| "x".repeat(length);
        let sources = [text(9000), text(100), text(200), text(8000), text(7000), text(40_000)];
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let mut batches = batches(&sources, 2);
        batches.iter_mut().for_each(|batch| batch.sort_unstable());
        batches.sort();
        assert_eq!(batches, [vec![0, 1, 2], vec![3, 4], vec![5]]);
        let many = vec!["x"; 40];
        let batches = super::batches(&many, 2);
        assert!(batches.iter().all(|batch| batch.len() <= MOST_KERNELS));
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 40);
        // What the compiler is to find vectors in is compiled with more effort, which costs.
        let batches = super::batches(&["#pragma omp simd", "x"], 1);
        assert_eq!(batches.len(), 2);
    }

    #[test]
    fn definitions_are_found() {
        let helper = "static inline __attribute__((always_inline)) float lz_exp_f32(float x) {";
        assert_eq!(defined(helper), Some("lz_exp_f32"));
        assert_eq!(defined("void scan(void* const* args, idx first_block, idx end_block) {"), Some("scan"));
        assert_eq!(defined("static void scan_blocks(float* out0, idx n,"), Some("scan_blocks"));
        assert_eq!(defined("SHARED float lz_sin_f32(float x) {"), Some("lz_sin_f32"));
        assert_eq!(defined("struct Part {"), Some("Part"));
        assert_eq!(defined("typedef i32v mask;"), Some("mask"));
        let vector = "typedef float f32v __attribute__((vector_size(LANES * sizeof(float))));";
        assert_eq!(defined(vector), Some("f32v"));
        let called = "static __attribute__((noinline)) f32v lz_sin_f32v(f32v x) {";
        assert_eq!(defined(called), Some("lz_sin_f32v"));
        let own = "static __attribute__((noinline, optimize(\"O2\", \"fp-contract=fast\"))) void lz_multiply_tile_f32(idx depth) {";
        assert_eq!(defined(own), Some("lz_multiply_tile_f32"));
        for other in ["    for (;;) {", "float fmaf(float, float, float);", "typedef long long idx;", "}"] {
            assert_eq!(defined(other), None);
        }
    }
}
