//! The library of helper functions, and the set of those that a kernel's text calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::OnceLock;

use super::primary::call;
use super::{bulk, lines};
use crate::ops::Spelling;
use crate::{BinaryOp, Language, UnaryOp};

/// Texts of the helpers, cut into [`Snippet`]s at blank lines; whatever a helper uses stands before it.
const CUDA_TEXTS: &[&str] =
    &[include_str!("helpers/common.h"), include_str!("helpers/cuda.cuh"), include_str!("helpers/random.h")];
const C_TEXTS: &[&str] = &[
    include_str!("helpers/prototypes.h"),
    include_str!("helpers/remainders.h"),
    include_str!("helpers/common.h"),
    include_str!("helpers/c.h"),
    include_str!("helpers/random.h"),
    C_MATH,
    C_SPECIAL,
    C_MATH_F64,
    TILES,
    TURN,
    TURN_16_BIT,
    FEW_ROWS,
    PAIRS,
    FEW_PAIRS,
    SORT_ITEMS,
    SORT,
];
/// Functions that may be called in vectors instead of pasted.
const C_MATH: &str = include_str!("helpers/c_math.h");
const C_SPECIAL: &str = include_str!("helpers/c_special.h");
const C_MATH_F64: &str = include_str!("helpers/c_math_f64.h");

/// Functions that are called once for a tile, whose products and sums contract to fused multiply-adds.
const TILES: &str = include_str!("helpers/tiles.h");

/// What transposes tiles in registers.
const TURN: &str = include_str!("helpers/turn.h");

const FEW_ROWS: &str = include_str!("helpers/few_rows.h");

/// The same for numbers of 16 bits whose products processors add up two by two.
const PAIRS: &str = include_str!("helpers/pairs.h");
const FEW_PAIRS: &str = include_str!("helpers/few_pairs.h");

/// What else tiles are of, what their functions' names end with, and bytes of an element.
const TILE_TYPES: [(&str, &str, u32); 4] =
    [("double", "_f64", 8), ("int", "_i32", 4), ("unsigned", "_u32", 4), ("long long", "_i64", 8)];

/// The same for elements of two bytes.
const TURN_16_BIT: &str = include_str!("helpers/turn_16_bit.h");

/// The same for elements of eight bytes: eight rows at a time took 1.2 to 1.4 times as long, with AVX-512.
fn turn_by_fours() -> String {
    let (fours, _) = TURN.split_once("\n\n").unwrap_or((TURN, ""));
    fours.replace("lz_turn_fours", "lz_turn_some")
}

/// What sorts compare, in C.
const SORT_ITEMS: &str = include_str!("helpers/sort_items.h");

/// Functions that sort rows, in C: of 64-bit items.
const SORT: &str = include_str!("helpers/sort.h");

/// What their names begin with.
const PRODUCT: &str = "lz_multiply_";

/// How those are declared: long texts are compiled at `-O1`, which leaves their registers in memory. Where long ones are compiled
/// apart from their kernels, a `const` parameter says that a literal 1 may become a part of the function.
const CALLED: &str = "static __attribute__((noinline, optimize(\"O2\", \"fp-contract=fast\"))) ";

/// How those are declared that take long: compiled once.
const ONCE: &str = "static __attribute__((noinline)) ";

/// How the names of helpers in C begin that are declared as [`ONCE`].
const LONG: [&str; 2] = ["lz_sort_row_", "lz_turn_f32"];

/// The helper of CUDA C that stays a function: what it does is long, and seldom done.
const SLOW_PATH: &str = "lz_divide_f32";

/// One helper: a definition, or the declaration of a library function, with its comment.
struct Snippet {
    name: &'static str,
    comment: &'static str,
    code: &'static str,
}

impl Snippet {
    /// `None` for a paragraph that is only a comment.
    fn parse(paragraph: &'static str) -> Option<Snippet> {
        let mut start = 0;
        for line in paragraph.split_inclusive('\n') {
            if !line.starts_with("//") {
                break;
            }
            start += line.len();
        }
        let (comment, code) = paragraph.split_at(start);
        let name = match code.strip_prefix("struct ") {
            Some(rest) => words(rest).next()?,
            None => words(code.split_once('(')?.0).last()?,
        };
        Some(Snippet { name, comment, code: code.trim_end() })
    }

    fn is_definition(&self) -> bool {
        self.code.ends_with('}')
    }

    /// The lines that a call costs where the function is pasted; 0 if it always is.
    fn lines_pasted(&self) -> usize {
        let (head, rest) = self.code.split_once('(').unwrap_or_default();
        let parameters = rest.split_once(')').map_or("", |(parameters, _)| parameters);
        let is_of_floats =
            |text: &str| ["float ", "double "].iter().any(|ty| text.starts_with(ty)) && !text.contains('*');
        let takes_floats = is_of_floats(head) && parameters.split(", ").all(is_of_floats);
        let is_of = |text: &str| text.contains(self.code);
        let is_function = || [C_MATH, C_SPECIAL, C_MATH_F64].into_iter().chain(own_texts()).any(is_of);
        if takes_floats && is_function() { self.lines() } else { 0 }
    }

    fn lines(&self) -> usize {
        let others = words(self.code).filter(|word| *word != self.name && word.starts_with("lz_"));
        let of =
            |name| snippets(Language::C).iter().find(|other| other.name == name).map_or(0, Snippet::lines);
        self.code.lines().count() + others.map(of).sum::<usize>()
    }
}

/// The texts that stand beside operations, in both languages.
fn own_texts() -> impl Iterator<Item = &'static str> {
    let unary = UnaryOp::ALL.into_iter().map(UnaryOp::spelling);
    unary.chain(BinaryOp::ALL.into_iter().map(BinaryOp::spelling)).filter_map(|spelling| match spelling {
        Spelling::Text(text) => Some(text),
        _ => None,
    })
}

fn snippets(language: Language) -> &'static [Snippet] {
    static CUDA: OnceLock<Vec<Snippet>> = OnceLock::new();
    static C: OnceLock<Vec<Snippet>> = OnceLock::new();
    let (cell, texts) = match language {
        Language::Cuda => (&CUDA, CUDA_TEXTS),
        Language::C => (&C, C_TEXTS),
    };
    cell.get_or_init(|| {
        // Made once, and there as long as the constants are.
        let derived: [String; 3] = match language {
            Language::C => [
                [("unsigned short", "_bf16"), ("short", "_i16")]
                    .map(|(ty, suffix)| {
                        TURN_16_BIT.trim_end().replace("unsigned short", ty).replace("_f16", suffix)
                    })
                    .join("\n\n"),
                TILE_TYPES
                    .map(|(ty, suffix, bytes)| {
                        let turn = if bytes == 4 { TURN.to_string() } else { turn_by_fours() };
                        let text = [TILES, &turn, FEW_ROWS].map(str::trim_end).join("\n\n");
                        text.replace("float", ty).replace("_f32", suffix)
                    })
                    .join("\n\n"),
                SORT.split("\n\n")
                    .take(1)
                    .collect::<String>()
                    .replace("typedef long long", "typedef __int128")
                    .replace("_i64", "_i128"),
            ],
            Language::Cuda => [
                String::new(),
                SORT_ITEMS
                    .replace("lz_as_i32", "__float_as_int")
                    .replace("lz_as_f32", "__int_as_float")
                    .replace("lz_as_i64", "__double_as_longlong")
                    .replace("lz_as_f64", "__longlong_as_double"),
                [include_str!("helpers/sort.cuh").trim_end(), &lines::definitions(), &bulk::definitions()]
                    .join("\n\n"),
            ],
        };
        let derived = derived.map(|text| -> &'static str { text.leak() });
        let parsed = |text: &'static str| text.split("\n\n").filter_map(Snippet::parse);
        let mut snippets: Vec<Snippet> = texts.iter().copied().chain(derived).flat_map(parsed).collect();
        for snippet in own_texts().flat_map(parsed) {
            // A language may have a function of its own for some dtype.
            if snippets.iter().all(|other| other.name != snippet.name) {
                snippets.push(snippet);
            }
        }
        snippets
    })
}

/// The text of a helper or of a declaration, and its place in the library.
pub(super) fn definition(language: Language, name: &str) -> Option<(usize, &'static str)> {
    let place = snippets(language).iter().position(|snippet| snippet.name == name)?;
    Some((place, snippets(language)[place].code))
}

/// The identifiers and numbers of a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Collects the helper functions that a kernel's text needs.
///
/// ```
/// use lazuli_codegen::intrinsics::{self, Helpers};
/// use lazuli_codegen::{DType, Language, UnaryOp};
///
/// let mut helpers = Helpers::new();
/// let text = intrinsics::unary(Language::C, UnaryOp::Sqrt, DType::F32, "x", &mut helpers);
/// assert_eq!(text, "sqrtf(x)");
/// assert_eq!(helpers.text(Language::C), "float sqrtf(float);\n");
/// ```
#[derive(Default, Clone, Debug)]
pub struct Helpers {
    /// How often each is called.
    used: BTreeMap<&'static str, usize>,
}

/// More lines of pasted functions take a C compiler a fifth of a second; then each function is compiled once.
const MOST_PASTED: usize = 300;

/// How functions are declared that loops call in vectors. Their results do not move into branches (`tree-sink`), where
/// no vector can call them. gcc on some processors prefers vectors of half their width, so that both are there.
const SHARED: &str = "\
#ifdef __clang__
#define SHARED static inline __attribute__((always_inline))
#else
#pragma GCC optimize(\"no-tree-sink\")
#ifdef __AVX512F__
#define SHARED _Pragma(\"omp declare simd notinbranch simdlen(16)\") \\
    _Pragma(\"omp declare simd notinbranch simdlen(8)\") static __attribute__((noinline))
#else
#define SHARED _Pragma(\"omp declare simd notinbranch\") static __attribute__((noinline))
#endif
#endif

";

impl Helpers {
    /// No helpers.
    pub fn new() -> Helpers {
        Helpers::default()
    }

    /// Whether nothing needs a helper.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// The definitions of the helpers used and of what those use, each after what it depends on. The order is the
    /// library's own: it does not depend on the order of use.
    pub fn text(&self, language: Language) -> String {
        let all = snippets(language);
        let mut needed: BTreeSet<&str> = self.used.keys().copied().collect();
        for snippet in all.iter().rev().filter(|snippet| snippet.is_definition()) {
            if needed.contains(snippet.name) {
                needed.extend(words(snippet.code));
            }
        }
        let qualifiers = match language {
            Language::Cuda => "__device__ __forceinline__ ",
            Language::C => "static inline __attribute__((always_inline)) ",
        };
        let mut text = String::new();
        let is_shared = self.shares(language);
        if is_shared {
            text.push_str(SHARED);
        }
        for snippet in all.iter().filter(|snippet| needed.contains(snippet.name)) {
            let is_called = is_shared && self.used.contains_key(snippet.name) && snippet.lines_pasted() > 0;
            let qualifiers = match snippet.is_definition() {
                false => "",
                true if is_called => "SHARED ",
                true if snippet.name == SLOW_PATH => "__device__ __noinline__ ",
                true if language == Language::C && snippet.name.starts_with(PRODUCT) => CALLED,
                true if language == Language::C && SORT.contains(snippet.code) => ONCE,
                true if language == Language::C && LONG.iter().any(|name| snippet.name.starts_with(name)) => {
                    ONCE
                }
                true => qualifiers,
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}{qualifiers}{}", snippet.comment, snippet.code);
        }
        text
    }

    /// Whether pasting the functions at each call would make too much text.
    fn shares(&self, language: Language) -> bool {
        let pasted =
            |snippet: &Snippet| self.used.get(snippet.name).map_or(0, |calls| calls * snippet.lines_pasted());
        language == Language::C && snippets(language).iter().map(pasted).sum::<usize>() > MOST_PASTED
    }

    /// Notes what others have noted.
    pub(super) fn add(&mut self, others: &Helpers) {
        others.used.iter().for_each(|(name, calls)| *self.used.entry(name).or_default() += calls);
    }

    /// Whether the library has such a function.
    pub(super) fn exists(&self, language: Language, function: &str) -> bool {
        snippets(language).iter().any(|snippet| snippet.name == function)
    }

    /// The text of a call, noting the function if it is one of the library's; other functions are the language's own.
    pub(super) fn call(&mut self, language: Language, function: &str, arguments: &[&str]) -> String {
        if let Some(snippet) = snippets(language).iter().find(|snippet| snippet.name == function) {
            *self.used.entry(snippet.name).or_default() += 1;
        }
        call(function, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANGUAGES: [Language; 2] = [Language::Cuda, Language::C];

    #[test]
    fn every_helper_stands_once_and_after_what_it_uses() {
        for language in LANGUAGES {
            let all = snippets(language);
            let mut seen = BTreeSet::new();
            for snippet in all {
                for word in words(snippet.code).filter(|word| *word != snippet.name) {
                    let known = all.iter().any(|other| other.name == word);
                    assert!(
                        !known || seen.contains(word),
                        "{language}: {} uses {word}, which follows it",
                        snippet.name
                    );
                    assert!(known || !word.starts_with("lz_"), "{language}: {word} is not defined");
                }
                assert!(seen.insert(snippet.name), "{language}: {} is defined twice", snippet.name);
            }
        }
    }

    #[test]
    fn helpers_come_with_their_dependencies_and_nothing_else() {
        let mut helpers = Helpers::new();
        helpers.call(Language::C, "lz_round_bf16", &["x"]);
        let text = helpers.text(Language::C);
        let heads = text.lines().filter(|line| line.starts_with("static"));
        let defined: Vec<&str> = heads.flat_map(words).filter(|word| word.starts_with("lz_")).collect();
        assert_eq!(defined, ["lz_as_i32", "lz_as_f32", "lz_round_bf16"]);
    }

    #[test]
    fn the_languages_own_functions_need_no_helper() {
        let mut helpers = Helpers::new();
        assert_eq!(helpers.call(Language::Cuda, "expf", &["x"]), "expf(x)");
        assert!(helpers.is_empty());
        assert_eq!(helpers.text(Language::Cuda), "");
    }

    #[test]
    fn eight_bytes_are_turned_by_fours() {
        let fours = turn_by_fours();
        let count = |word: &str| fours.matches(word).count();
        assert_eq!(["lz_turn_some_f32(", "lz_turn_fours", "#if", "#endif"].map(count), [1, 0, 1, 1]);
    }
}
