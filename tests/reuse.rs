//! Kernels and plans that serve every position: programs that do the same at another place each time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

#[path = "common/mod.rs"]
mod common;
#[path = "../benches/reuse/programs.rs"]
mod programs;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use lazuli::{Device, Target, Tensor, stats};
use programs::{CALLS, Data, GROWING, PROGRAMS, Program};

/// The counters are the process's: one test at a time.
static COUNTERS: Mutex<()> = Mutex::new(());

/// Kernels that a program takes: where it begins at 0, and elsewhere; on CUDA also where accesses are aligned.
const MOST_KERNELS: usize = 3;

/// Kernels of these calls for a target, those of one call, and plans made.
fn compiled(
    program: &Program,
    data: &Data,
    target: &Target,
    calls: impl Iterator<Item = usize> + Clone,
) -> (usize, usize, u64) {
    let before = stats();
    let mut sources: HashSet<String> = HashSet::new();
    let mut at_once = 0;
    for n in calls.clone() {
        let compiled = (program.call)(data, n).compile_for(target).unwrap();
        at_once = at_once.max(compiled.kernels().len());
        sources.extend(compiled.kernels().iter().map(|kernel| kernel.source().to_string()));
    }
    let (plans, hits) = (stats().plans_made - before.plans_made, stats().plan_hits - before.plan_hits);
    assert_eq!(plans + hits, calls.count() as u64);
    (sources.len(), at_once, plans)
}

#[test]
fn few_kernels_and_plans_serve_all_positions() {
    let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Data::new(&Device::cpu()).unwrap();
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for program in PROGRAMS {
            let (kernels, at_once, plans) = compiled(program, &data, &target, 0..CALLS);
            assert!(kernels <= MOST_KERNELS * at_once, "{}: {kernels} kernels for {target}", program.name);
            assert!(plans * 100 <= CALLS as u64, "{}: {plans} plans for {target}", program.name);
        }
    }
}

#[test]
fn few_kernels_and_plans_serve_what_grows() {
    let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let data = Data::new(&Device::cpu()).unwrap();
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for program in GROWING {
            // Up to 8 positions are the loop of one thread, whose length is text.
            let (_, _, few) = compiled(program, &data, &target, 0..8);
            let many = (8..70).chain((70..CALLS).step_by(15)).chain([255, 256, CALLS - 1]);
            let (kernels, at_once, plans) = compiled(program, &data, &target, many);
            assert!(kernels <= MOST_KERNELS * at_once, "{}: {kernels} kernels for {target}", program.name);
            assert!((few + plans) * 100 <= CALLS as u64, "{}: {} plans", program.name, few + plans);
        }
    }
}

#[test]
fn each_position_has_its_own_results() {
    let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let reference = Data::new(&Device::interpreter()).unwrap();
    for device in common::devices() {
        let data = Data::new(&device).unwrap();
        for program in PROGRAMS.iter().chain(GROWING) {
            for n in [0, 1, 16, 17, 500, 999] {
                let values = |tensor: Tensor| tensor.to_vec::<f32>().unwrap();
                let (actual, expected) =
                    (values((program.call)(&data, n)), values((program.call)(&reference, n)));
                assert_eq!(actual.len(), expected.len());
                for (at, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                    assert!(
                        (actual - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                        "{} on {device}, call {n}: {actual} is not {expected} at {at}",
                        program.name
                    );
                }
            }
        }
    }
}

#[test]
fn what_was_evaluated_before_decides_nothing() {
    let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let x = Tensor::from_vec(vec![1.0f32; 100 * 64], [100, 64]);
    let at = |start: usize| (x.narrow(0, start, 10) * 2.0).compile_for(&Target::cuda("sm_90")).unwrap();
    let (three, seven) = (at(3), at(7));
    assert_eq!(three.source(), seven.source());
    // Where it begins is what the launch says.
    let arguments = |program: &lazuli::Program| program.kernels()[0].arguments();
    assert_eq!(arguments(&three)[4], "o0: offset = 3");
    assert_eq!(arguments(&seven)[4], "o0: offset = 7");
    // The distance between two reads of one tensor is text, and so is a beginning at 0.
    let stencil = |start: usize| {
        let rows = x.narrow(0, start, 20);
        (rows.slice(0, 1..) - rows.slice(0, ..-1)).compile_for(&Target::cuda("sm_90")).unwrap()
    };
    assert!(stencil(5).source().contains("o0 * 64u + 64u"), "{}", stencil(5).source());
    assert!(!stencil(0).source().contains("o0"), "{}", stencil(0).source());
}
