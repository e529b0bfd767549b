//! Several kernels in one run of the C compiler: to start it, and the linker, is most of what a small kernel takes.

use std::collections::BTreeSet;

/// Kernels in one text, at most.
pub(crate) const MOST_KERNELS: usize = 8;
/// A longer text takes its time by itself.
pub(crate) const MOST_TEXT: usize = 1 << 13;

/// What tells a kernel from others in one library.
pub(crate) fn id(source: &str) -> String {
    blake3::hash(source.as_bytes()).to_hex()[..16].to_owned()
}

/// The name of a kernel's function in a library of several.
pub(super) fn symbol(function: &str, id: &str) -> String {
    format!("{function}_{id}")
}

/// The sources as one. What they define is called by [`symbol`].
pub(crate) fn join<'a>(sources: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for source in sources {
        let id = id(source);
        let names: Vec<&str> = source.lines().filter_map(defined).collect();
        names.iter().for_each(|name| text.push_str(&format!("#define {name} {}\n", symbol(name, &id))));
        text.push_str(source);
        let macros = source.lines().filter_map(|line| line.strip_prefix("#define ")?.split(' ').next());
        let defined: BTreeSet<&str> = names.into_iter().chain(macros).collect();
        defined.iter().for_each(|name| text.push_str(&format!("#undef {name}\n")));
    }
    text
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
    let attributes = ["__attribute__((always_inline))", "__attribute__((noinline))"];
    let behind = attributes.iter().find_map(|attribute| line.split_once(attribute));
    let behind_attributes = behind.map_or(line, |(_, rest)| rest);
    let head = behind_attributes.split_once('(').filter(|_| is_function)?.0;
    head.rsplit([' ', '*']).next().filter(|name| !name.is_empty() && !name.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for other in ["    for (;;) {", "float fmaf(float, float, float);", "typedef long long idx;", "}"] {
            assert_eq!(defined(other), None);
        }
    }
}
