//! What profilers get to know: ranges of the host's timeline, and the lines of kernels.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.
#![cfg(all(unix, feature = "cuda"))]

mod workloads;

use std::fs;
use std::process::Command;

use lazuli::{Device, Tensor, cuda_is_available};
use workloads::child_succeeds;

#[test]
fn child() {
    match workloads::scenario().as_deref() {
        None => {}
        Some("evaluates") => evaluates(&Device::cpu()),
        Some("on a GPU") => evaluates(&Device::cuda(0)),
        Some(other) => panic!("no scenario {other}"),
    }
}

fn evaluates(device: &Device) {
    let x = Tensor::from([1f32, 4.0, 9.0]).to(device);
    assert_eq!((x.sqrt() + 1.0).to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0]);
}

/// A library with NVTX's functions, which prints what they are called with.
const LIBRARY: &str = r#"
extern int printf(const char*, ...);
extern int fflush(void*);
static int depth;
int nvtxRangePushA(const char* text) { printf("<%d %s>\n", depth, text); fflush(0); return depth++; }
int nvtxRangePop(void) { printf("<%d ends>\n", --depth); fflush(0); return depth; }
"#;

#[test]
fn evaluations_and_launches_are_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library] = ["nvtx.c", "libnvtx3interop.so.1"].map(|name| folder.path().join(name));
    fs::write(&source, LIBRARY).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.unwrap().success());
    let place = folder.path().to_str().unwrap();
    let said = |is_on| {
        let (text, _) = child_succeeds("evaluates", &[("LD_LIBRARY_PATH", place), ("LAZULI_NVTX", is_on)]);
        text.lines().filter_map(|line| Some(line[line.find('<')?..].to_owned())).collect::<Vec<_>>()
    };
    let ranges = said("on");
    let [evaluation, kernel, end, last] = &ranges[..] else { panic!("{ranges:?}") };
    assert!(evaluation.starts_with("<0 evaluate add, at tests/profilers.rs:"), "{evaluation}");
    assert!(kernel.starts_with("<1 sqrt_add_f32 (add, at tests/profilers.rs:"), "{kernel}");
    assert_eq!([end.as_str(), last], ["<1 ends>", "<0 ends>"]);
    assert_eq!(said("off"), Vec::<String>::new());
}

/// Whether there is a CUDA toolkit, or a Python package of NVIDIA's, for all users.
fn system_may_have_it() -> bool {
    let is_there = |path: &str| fs::exists(path).unwrap();
    let has_packages = |lib: &str| {
        let folders = fs::read_dir(lib).into_iter().flatten().map(|entry| entry.unwrap().path());
        folders
            .flat_map(|python| ["site-packages", "dist-packages"].map(|own| python.join(own).join("nvidia")))
            .any(|package| package.exists())
    };
    ["/usr/local/cuda", "/opt/cuda"].into_iter().any(is_there)
        || ["/usr/local/lib", "/usr/lib"].into_iter().any(has_packages)
}

#[test]
fn without_the_library_there_is_a_warning() {
    if system_may_have_it() {
        return println!("this machine may have it");
    }
    // Nor is it the user's.
    let home = tempfile::tempdir().unwrap();
    let mut variables = vec![("LAZULI_NVTX", "on"), ("HOME", home.path().to_str().unwrap())];
    variables.extend(
        ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "VIRTUAL_ENV", "LD_LIBRARY_PATH"].map(|name| (name, "")),
    );
    let (_, warnings) = child_succeeds("evaluates", &variables);
    assert_eq!(warnings.matches("there is no libnvtx3interop.so.1").count(), 1, "{warnings}");
}

#[test]
fn a_gpus_kernels_are_files_with_lines() {
    if !cuda_is_available() {
        return println!("there is no GPU");
    }
    let folder = tempfile::tempdir().unwrap();
    let texts = folder.path().join("texts");
    // A driver for tests, and its compiler.
    let driver = ["LAZULI_NVRTC", "LAZULI_MOCK_NVRTC"].map(|name| (name, std::env::var(name)));
    for cache in ["on", "on", "off"] {
        let place = folder.path().to_str().unwrap();
        let mut variables = vec![
            ("LAZULI_LINE_INFO", texts.to_str().unwrap()),
            ("LAZULI_CACHE_DIR", place),
            ("LAZULI_CACHE", cache),
        ];
        variables.extend(driver.iter().filter_map(|(name, value)| Some((*name, value.as_deref().ok()?))));
        child_succeeds("on a GPU", &variables);
        let files: Vec<_> = fs::read_dir(&texts).unwrap().map(|file| file.unwrap().path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        assert!(file.file_name().unwrap().to_str().unwrap().starts_with("sqrt_add_f32-"), "{files:?}");
        assert!(fs::read_to_string(file).unwrap().contains("__global__ void"));
        // Also where the CUBIN is found, the file is there.
        fs::remove_dir_all(&texts).unwrap();
    }
}
