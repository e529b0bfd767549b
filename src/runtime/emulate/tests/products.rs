//! Products of groups of warps, which are carried out when they are awaited.

use std::ffi::c_void;

use lazuli_codegen::intrinsics::{self, Helpers};
use lazuli_codegen::nest::stmt::Lines;
use lazuli_codegen::{DType, Language};

use super::{EmulatedModule, place};
use crate::error::Result;

/// Sums of a group after a product of ones and twos in lines of shared memory, which `before` and `after` stand around.
fn sums(before: &[&str], after: &[&str]) -> Result<Vec<f32>> {
    let mut helpers = Helpers::new();
    let lines = [Lines::Along, Lines::Along];
    let arguments = ["sums", "left", "right"];
    let product = intrinsics::multiply_group(64, DType::BF16, lines, &arguments, &mut helpers);
    let mut steps = |steps: &[&str]| -> String {
        steps.iter().map(|step| format!("  {};\n", intrinsics::products(step, &mut helpers))).collect()
    };
    let (before, after) = (steps(before), steps(after));
    let begin = intrinsics::begin_copy(16, ["left + at", "x + at", "true"], &mut helpers);
    let begin_right = intrinsics::begin_copy(16, ["right + at", "x + 4096 + at", "true"], &mut helpers);
    let commit = intrinsics::commit_copies(&mut helpers);
    let awaited = intrinsics::await_copies(0, &mut helpers);
    let source = format!(
        "{}\n\
        extern \"C\" __global__ void __launch_bounds__(128) k(const unsigned short* x, float* y) {{\n\
        \x20 extern __shared__ __align__(1024) unsigned char memory[];\n\
        \x20 unsigned short* const left = (unsigned short*)memory;\n\
        \x20 unsigned short* const right = left + 4096;\n\
        \x20 for (unsigned at = threadIdx.x * 8u; at < 4096u; at += 1024u) {{ {begin}; {begin_right}; }}\n\
        \x20 {commit}; {awaited};\n\
        \x20 float sums[32];\n\
        \x20 for (unsigned n = 0u; n < 32u; ++n) sums[n] = 0.0f;\n\
        {before}  __syncthreads();\n  {product};\n{after}\
        \x20 for (unsigned n = 0u; n < 32u; ++n) y[threadIdx.x * 32u + n] = sums[n];\n}}\n",
        helpers.text(Language::Cuda)
    );
    let module = EmulatedModule::compile("k", &source)?;
    let mut x = vec![0x3f80u16; 4096];
    x.extend(vec![0x4000u16; 4096]);
    let mut y = vec![0.0f32; 4096];
    let (mut from, mut to) = (x.as_ptr(), y.as_mut_ptr());
    let arguments: &mut [*mut c_void] = &mut [place(&mut from), place(&mut to)];
    // SAFETY: the kernel reads 8192 numbers and writes 4096, as many as there are.
    unsafe { module.launch([1, 1, 1], [128, 1, 1], 16384, arguments) }?;
    Ok(y)
}

#[test]
fn products_are_there_when_they_are_awaited() {
    let y = sums(&["publish", "begin"], &["commit", "await_but_0"]).unwrap();
    assert!(y.iter().all(|&sum| sum == 32.0), "{y:?}");
}

#[test]
fn a_missing_wait_is_an_error() {
    for after in [&["commit"][..], &["commit", "await_but_1"], &["await_but_0"]] {
        let error = sums(&["publish", "begin"], after).unwrap_err().to_string();
        assert!(error.contains("has not waited for the product"), "{after:?}: {error}");
    }
}

#[test]
fn what_was_copied_and_not_published_is_not_multiplied() {
    let error = sums(&["begin"], &["commit", "await_but_0"]).unwrap_err().to_string();
    assert!(error.contains("what it has copied and not published"), "{error}");
}
