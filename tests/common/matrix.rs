//! How much is checked: a sample, everything where `LAZULI_TEST_MATRIX=full` is set, or nothing that needs a compiler
//! where it is `fast`. With `cuda` everything runs on `cuda:0` alone, fused and unfused.
//!
//! Compilers are nearly all of the time that the tests take. So all kernels run in the interpreter of kernels, those for
//! the CPU and those for CUDA: passes, fusion and lowering are tested with every operation, each elementwise one with every
//! dtype, each other one with six. The sample compiles each elementwise operation with five or six of the dtypes, each other one
//! with two or three, each schedule in each language, each fused pipeline, and one of five random graphs; what it leaves out are their products.

use std::sync::Once;

/// Whether `LAZULI_TEST_MATRIX=fast` asks for interpreted kernels alone.
pub fn is_fast() -> bool {
    std::env::var("LAZULI_TEST_MATRIX").is_ok_and(|matrix| matrix == "fast")
}

/// Whether `LAZULI_TEST_MATRIX=cuda` asks for the first GPU alone.
pub fn is_cuda() -> bool {
    std::env::var("LAZULI_TEST_MATRIX").is_ok_and(|matrix| matrix == "cuda")
}

/// Whether `LAZULI_TEST_MATRIX=full` asks for every kernel on every device and architecture.
pub fn is_full_matrix() -> bool {
    std::env::var("LAZULI_TEST_MATRIX").is_ok_and(|matrix| matrix == "full")
}

/// The whole list in the full matrix, else the sample of it.
pub fn sampled<T: Copy>(all: &[T], sample: &[T]) -> Vec<T> {
    if is_full_matrix() { all.to_vec() } else { sample.to_vec() }
}

/// Says what was not checked. Where `CI` is set, that is a failure.
pub fn unchecked(what: &str) -> Result<(), String> {
    static ONCE: Once = Once::new();
    if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty()) {
        return Err(format!("not checked: {what}"));
    }
    ONCE.call_once(|| eprintln!("not checked: {what}"));
    Ok(())
}
