//! The library of helper functions, and the set of those that a kernel's text calls.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::OnceLock;

use crate::Language;

/// Texts of the helpers, cut into [`Snippet`]s at blank lines; whatever a helper uses stands before it.
const CUDA_TEXTS: &[&str] =
    &[include_str!("helpers/common.h"), include_str!("helpers/cuda.cuh"), include_str!("helpers/random.h")];
const C_TEXTS: &[&str] = &[
    include_str!("helpers/prototypes.h"),
    include_str!("helpers/common.h"),
    include_str!("helpers/c.h"),
    include_str!("helpers/random.h"),
    include_str!("helpers/c_math.h"),
];

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
        let name = words(code.split_once('(')?.0).last()?;
        Some(Snippet { name, comment, code: code.trim_end() })
    }

    fn is_definition(&self) -> bool {
        self.code.ends_with('}')
    }
}

fn snippets(language: Language) -> &'static [Snippet] {
    static CUDA: OnceLock<Vec<Snippet>> = OnceLock::new();
    static C: OnceLock<Vec<Snippet>> = OnceLock::new();
    let (cell, texts) = match language {
        Language::Cuda => (&CUDA, CUDA_TEXTS),
        Language::C => (&C, C_TEXTS),
    };
    cell.get_or_init(|| texts.iter().flat_map(|text| text.split("\n\n")).filter_map(Snippet::parse).collect())
}

/// The identifiers and numbers of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
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
    used: BTreeSet<&'static str>,
}

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
        let mut needed: BTreeSet<&str> = self.used.clone();
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
        for snippet in all.iter().filter(|snippet| needed.contains(snippet.name)) {
            let qualifiers = if snippet.is_definition() { qualifiers } else { "" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}{qualifiers}{}", snippet.comment, snippet.code);
        }
        text
    }

    /// Whether the library has such a function.
    pub(super) fn exists(&self, language: Language, function: &str) -> bool {
        snippets(language).iter().any(|snippet| snippet.name == function)
    }

    /// The text of a call, noting the function if it is one of the library's; other functions are the language's own.
    pub(super) fn call(&mut self, language: Language, function: &str, arguments: &[&str]) -> String {
        if let Some(snippet) = snippets(language).iter().find(|snippet| snippet.name == function) {
            self.used.insert(snippet.name);
        }
        format!("{function}({})", arguments.join(", "))
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
}
