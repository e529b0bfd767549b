//! What the system does not give: an error that says so, never an end of the process. Each scenario is a process of its
//! own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.
#![cfg(unix)]

mod workloads;

use lazuli::{DType, Error, Tensor, io};
use workloads::in_limited_child;

#[test]
fn child() {
    match workloads::scenario().as_deref() {
        None => {}
        Some("copies") => copies(),
        Some(other) => panic!("no scenario {other}"),
    }
}

/// Runs a scenario under limits of the shell's `ulimit`.
#[track_caller]
fn succeeds(limits: &str, scenario: &str, variables: &[(&str, &str)]) -> String {
    let output = in_limited_child(limits, scenario, variables);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{scenario}: {}\n{text}", output.status);
    text
}

fn is_out_of_memory<T>(result: lazuli::Result<T>) -> bool {
    matches!(result, Err(Error::OutOfMemory { requested, .. }) if requested >= 1 << 28)
}

/// A tensor that fits once and not twice.
fn copies() {
    let large = Tensor::zeros([3 << 25], DType::F32);
    large.eval().unwrap();
    assert!(is_out_of_memory(large.to_vec::<f32>()));
    assert!(is_out_of_memory((&large + 1.0).eval()));
    assert!(is_out_of_memory((0i64..).collect::<Tensor>().eval()));
    drop(large);
    // Its memory is in the pool, which the copy gets back.
    let small = Tensor::zeros([1 << 26], DType::F32);
    assert_eq!(small.to_vec::<f32>().unwrap().len(), 1 << 26);
    // A file is written without a copy.
    io::write_npy("/dev/null", &small).unwrap();
}

#[test]
fn a_copy_that_does_not_fit_is_out_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    succeeds("ulimit -v 800000", "copies", &[("LAZULI_CACHE_DIR", folder.path().to_str().unwrap())]);
}
