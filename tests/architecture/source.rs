//! Which file uses what of which other file, read from the tokens of the source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A use of one file's item in another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrow {
    pub from: PathBuf,
    pub to: PathBuf,
    /// In the file that uses.
    pub line: usize,
}

/// The modules of a crate, without what only its tests compile.
pub struct Crate {
    modules: BTreeMap<Name, Module>,
}

/// The path of a module or an item, without `crate`.
type Name = Vec<String>;

#[derive(Default)]
struct Module {
    file: PathBuf,
    /// What the module defines, and what `use` brings in: the path there.
    items: BTreeMap<String, Option<Name>>,
    globs: Vec<Name>,
    paths: Vec<UsedPath>,
    /// Modules in files of their own.
    children: Vec<String>,
}

struct UsedPath {
    segments: Name,
    line: usize,
    /// Whether it hands an item on: `pub use`.
    is_handed_on: bool,
}

/// A longer chain of `use` than this is a circle.
const MOST_STEPS: usize = 16;

impl Crate {
    /// Reads a crate whose `lib.rs` is in the folder.
    pub fn read(folder: &Path) -> Crate {
        let mut modules = BTreeMap::new();
        let mut pending = vec![(Name::new(), folder.join("lib.rs"), folder.to_path_buf())];
        while let Some((name, file, folder)) = pending.pop() {
            let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let tokens: TokenStream = text.parse().unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let mut module = Module { file, ..Module::default() };
            module.read(&tokens.into_iter().collect::<Vec<_>>(), true);
            for child in &module.children {
                let (file, below) = (folder.join(format!("{child}.rs")), folder.join(child));
                let file = if file.exists() { file } else { below.join("mod.rs") };
                pending.push(([name.as_slice(), std::slice::from_ref(child)].concat(), file, below));
            }
            modules.insert(name, module);
        }
        Crate { modules }
    }

    pub fn files(&self) -> BTreeSet<&Path> {
        self.modules.values().map(|module| module.file.as_path()).collect()
    }

    /// All uses of other files, in order. What a module hands on from below is the business of those two.
    pub fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (name, module) in &self.modules {
            for path in &module.paths {
                let Some(target) = self.resolve(name, &path.segments, MOST_STEPS) else { continue };
                let to = &self.modules[&target].file;
                if *to != module.file && !(path.is_handed_on && target.starts_with(name)) {
                    arrows.insert(Arrow { from: module.file.clone(), to: to.clone(), line: path.line });
                }
            }
        }
        arrows
    }

    /// The module that defines what a path in another leads to; `None` outside of the crate.
    fn resolve(&self, from: &[String], segments: &[String], steps: usize) -> Option<Name> {
        let steps = steps.checked_sub(1)?;
        let (mut at, mut rest) = (from.to_vec(), segments);
        match rest.first()?.as_str() {
            "crate" => (at, rest) = (Name::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                let is_child = self.modules.contains_key(&[from, &[first.to_owned()]].concat());
                if !is_child && !self.modules[from].items.contains_key(first) {
                    return None;
                }
            }
        }
        while let Some(segment) = rest.first() {
            let child = [at.as_slice(), std::slice::from_ref(segment)].concat();
            if self.modules.contains_key(&child) {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            let module = &self.modules[&at];
            return match module.items.get(segment) {
                Some(None) => Some(at),
                Some(Some(there)) => self.resolve(&at, &[there.as_slice(), &rest[1..]].concat(), steps),
                None => {
                    let through = |glob: &Name| self.resolve(&at, &[glob.as_slice(), rest].concat(), steps);
                    // A name that is nowhere is one that a macro has defined.
                    module.globs.iter().find_map(through).or(Some(at))
                }
            };
        }
        Some(at)
    }
}

impl Module {
    /// Reads a list of tokens: items at the level of the module, or what stands in their brackets.
    fn read(&mut self, tokens: &[TokenTree], is_top: bool) {
        let mut i = 0;
        while i < tokens.len() {
            if is_test_attribute(&tokens[i..]) {
                i = end_of_item(tokens, i + 2);
                continue;
            }
            match &tokens[i] {
                TokenTree::Group(group) => {
                    self.read(&group.stream().into_iter().collect::<Vec<_>>(), false);
                }
                TokenTree::Ident(word) if word == "use" => {
                    let is_handed_on = is_top && follows_pub(&tokens[..i]);
                    let end = end_of_item(tokens, i);
                    self.read_use(&tokens[i + 1..end - 1], Name::new(), is_top, is_handed_on);
                    i = end;
                    continue;
                }
                TokenTree::Ident(word)
                    if is_top && is_word(tokens.get(i + 1)) && defines(&word.to_string()) =>
                {
                    let name = tokens[i + 1].to_string();
                    match (word == "mod", tokens.get(i + 2)) {
                        (true, Some(TokenTree::Punct(_))) => self.children.push(name),
                        _ => drop(self.items.insert(name, None)),
                    }
                    i += 2;
                    continue;
                }
                TokenTree::Ident(word) if is_top && word == "macro_rules" => {
                    self.items.insert(tokens[i + 2].to_string(), None);
                }
                TokenTree::Ident(word) if !is_path(tokens, i.wrapping_sub(1)) => {
                    let line = word.span().start().line;
                    let mut segments = vec![word.to_string()];
                    while is_path(tokens, i + 2) && is_word(tokens.get(i + 3)) {
                        segments.push(tokens[i + 3].to_string());
                        i += 3;
                    }
                    if segments.len() > 1 {
                        self.paths.push(UsedPath { segments, line, is_handed_on: false });
                    }
                }
                _ => {}
            }
            i += 1;
        }
    }

    /// Reads what follows `use`, or a part of it in braces.
    fn read_use(&mut self, tokens: &[TokenTree], prefix: Name, is_top: bool, is_handed_on: bool) {
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
        for tree in tokens.split(is_comma).filter(|tree| !tree.is_empty()) {
            let (mut segments, mut alias, mut is_glob) = (prefix.clone(), None, false);
            let line = tree[0].span().start().line;
            for (i, token) in tree.iter().enumerate() {
                match token {
                    TokenTree::Ident(word) if word == "as" => {
                        alias = tree.get(i + 1).map(ToString::to_string)
                    }
                    TokenTree::Ident(_) if alias.is_some() => {}
                    TokenTree::Ident(word) => segments.push(word.to_string()),
                    TokenTree::Punct(p) if p.as_char() == '*' => is_glob = true,
                    TokenTree::Group(group) => {
                        let inner: Vec<_> = group.stream().into_iter().collect();
                        self.read_use(&inner, std::mem::take(&mut segments), is_top, is_handed_on);
                    }
                    _ => {}
                }
            }
            if segments.last().is_some_and(|last| last == "self") {
                segments.pop();
            }
            let Some(last) = segments.last().cloned() else { continue };
            if is_glob {
                self.globs.push(segments.clone());
            } else if is_top {
                self.items.insert(alias.unwrap_or(last), Some(segments.clone()));
            }
            self.paths.push(UsedPath { segments, line, is_handed_on });
        }
    }
}

fn defines(word: &str) -> bool {
    matches!(word, "struct" | "enum" | "union" | "trait" | "fn" | "type" | "const" | "static" | "mod")
}

fn is_word(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Ident(_)))
}

/// Whether `::` ends at this token.
fn is_path(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    is_colon(at) && is_colon(at.wrapping_sub(1))
}

/// Whether the tokens end with `pub` or `pub(...)`.
fn follows_pub(tokens: &[TokenTree]) -> bool {
    let is_pub = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Ident(word)) if word == "pub");
    match tokens {
        [.., before, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            is_pub(Some(before))
        }
        _ => is_pub(tokens.last()),
    }
}

/// Whether the tokens begin with `#[cfg(test)]`, `#[cfg(all(test, ...))]` or the like.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return false };
    let text = attribute.to_string().replace(' ', "");
    hash.as_char() == '#'
        && ["[cfg(test)", "[cfg(all(test,", "[cfg(doctest)"].iter().any(|test| text.starts_with(test))
}

/// Where the tokens after an item begin: after its `;`, or after its braces unless it is a `use`.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_braced =
        |token: &TokenTree| matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
    let plain = ["use", "const", "static"];
    let is_plain = tokens[from..].iter().take(4).any(|token| plain.contains(&token.to_string().as_str()));
    let end = tokens[from..].iter().position(|token| is_end(token) || (!is_plain && is_braced(token)));
    end.map_or(tokens.len(), |end| from + end + 1)
}
