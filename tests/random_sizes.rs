//! Random graphs of one size after the other, as plans of other sizes follow from those before: results near the reference
//! interpreter's. A debug build also makes each plan that follows, and compares the two.
//!
//! The graphs are the same on every run. `LAZULI_RANDOM_CASES=1000` tries more of them, the first of which are those.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;
mod graphs;

use common::{FUSED, Scope, differences, near};
use graphs::{SMOOTH_OPS, SmoothInputs, recipes, smooth_tensors};
use lazuli::DType;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Of one class, in no order: the third one of a structure says which others follow.
const SIZES: [usize; 8] = [41, 50, 47, 44, 58, 63, 35, 60];

/// Plans of both languages.
const SCOPE: Scope = Scope { unfused_on_cpu: false, ..FUSED.interpreted() };

/// Results with more elements are not recorded.
const MOST_ELEMENTS: usize = 20_000;

#[test]
fn sizes_in_turn() {
    let cases = std::env::var("LAZULI_RANDOM_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[91; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = recipes(SMOOTH_OPS.to_vec(), 4..=16);
    for case in 0..cases {
        let recipe = strategy.new_tree(&mut runner).expect("a graph").current();
        for size in SIZES {
            let shapes = [[3, size, 24], [3, 24, size], [size, 5, 9]];
            let shape = shapes[case % shapes.len()];
            let report = differences(&format!("{shape:?}"), SCOPE, |device| {
                let inputs = SmoothInputs::new(device, DType::F32, shape, MOST_ELEMENTS);
                let tensors = smooth_tensors(&inputs, &recipe).into_iter().rev().take(3).enumerate();
                tensors.map(|(number, tensor)| near(number.to_string(), tensor, 1e-3, 1e-3)).collect()
            });
            assert!(report.is_empty(), "{recipe:?}: {report}");
        }
    }
}
