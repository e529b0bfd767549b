//! NVRTC compiles all CUDA C that the tests have executed on the emulated device, whichever test it was.
//!
//! `LAZULI_EMULATED_SOURCES` names the folder that the emulated device has left its kernels in; `tests/run` sets it, and
//! runs this last.

#![cfg(all(feature = "cuda", feature = "emulate"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

#[path = "common/mod.rs"]
mod common;

/// Kernels that are read, and compiled, at a time.
const AT_ONCE: usize = 512;

#[test]
fn everything_that_was_executed_compiles() {
    let folder = std::env::var_os("LAZULI_EMULATED_SOURCES").filter(|folder| !folder.is_empty());
    let Some(files) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else {
        let missing = "LAZULI_EMULATED_SOURCES names no folder with kernels (tests/run sets it)";
        return common::matrix::unchecked(missing).unwrap();
    };
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    for part in paths.chunks(AT_ONCE) {
        let text = |path: &std::path::PathBuf| {
            let (_, name) = path.file_stem()?.to_str()?.split_once('-')?;
            Some((name.to_string(), String::new(), std::fs::read_to_string(path).ok()?))
        };
        let texts: Vec<_> = part.iter().filter_map(text).collect();
        common::nvrtc::compile_at_all(&texts).unwrap_or_else(|problems| panic!("{problems}"));
    }
    println!("{} kernels", paths.len());
}
