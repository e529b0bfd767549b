//! What kernels tell of themselves. Their texts are files: `tests/filetests/kernels`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use lazuli_codegen::ir::{BufferId, Kernel};
use lazuli_codegen::schedule::{Figures, Matrices};
use lazuli_codegen::{Language, emit};

const FIGURES: Figures =
    Figures { processors: 132, is_low_pressure: false, shared_bytes: 227 << 10, matrices: Matrices::Warps };

fn kernel(text: &str) -> Kernel {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A step with momentum: `v = 0.9 v + g`, then `p = p - 0.01 v`.
const MOMENTUM: &str = "\
kernel momentum
  map i0 < n_i0 = 1000
  input in0: f32 [1000]
  input in1: f32 [1000]
  input in2: f32 [1000]
  output out0: f32 [1000]
  output out1: f32 [1000]
  argument c0: f32 = 0.9
  argument c1: f32 = 0.01
  v0: f32 = load in0[i0]
  v1: f32 = load in1[i0]
  v2: f32 = load in2[i0]
  v3: f32 = argument c0
  v4: f32 = argument c1
  v5: f32 = mul v0 v3
  v6: f32 = add v5 v1
  v7: f32 = mul v6 v4
  v8: f32 = sub v2 v7
  store out0[i0] = v6
  store out1[i0] = v8
";

#[test]
fn results_over_inputs() {
    let k = kernel(MOMENTUM);
    let [v, g, p, new_v, new_p] = [0, 1, 2, 3, 4].map(BufferId);
    assert_eq!(k.overwritable(), [v, g, p]);
    // The first result is there before the parameter is read.
    assert_eq!(k.pair_up(&[p], |_, _| true), [(p, new_p)]);
    assert_eq!(k.pair_up(&[p, g], |_, _| true), [(g, new_v), (p, new_p)]);
    assert_eq!(k.pair_up(&[g], |_, output| output == new_p), [(g, new_p)]);
    let in_place = k.written_over(&[(v, new_v), (p, new_p)]);
    assert_eq!(in_place.to_string().parse(), Ok(in_place.clone()));
    assert_eq!(emit(&in_place, Language::Cuda, &FIGURES).unwrap().parameters.len(), 6);
}

/// Sums of rows, of any number of them.
fn sums(rows: u64) -> Kernel {
    kernel(&format!(
        "\
kernel sum
  map i0 < n_i0 = {rows}
  reduce r0 < 1024
  input in0: f32 [{}]
  output out0: f32 [{rows}]
  v0: f32 = load in0[i0 * 1024 + r0]
  v1: f32 = reduce sum over r0 of v0
  store out0[i0] = v1
",
        rows * 1024
    ))
}

#[test]
fn what_is_reduced_or_read_elsewhere_is_not_written_over() {
    assert_eq!(sums(1000).overwritable(), []);
    let two = |index: &str| {
        kernel(&format!(
            "\
kernel two
  map i0 < 100
  map i1 < 100
  input in0: f32 [10000]
  output out0: f32 [10000]
  v0: f32 = load in0[{index}]
  store out0[i0 * 100 + i1] = v0
"
        ))
    };
    assert_eq!(two("i0 + i1 * 100").overwritable(), []);
    assert_eq!(two("i1").overwritable(), [], "read by many positions");
    assert_eq!(two("i0 * 100 + i1").overwritable(), [BufferId(0)]);
}

#[test]
fn the_size_of_the_outermost_axis_is_not_in_the_source() {
    for language in [Language::Cuda, Language::C] {
        let source = |rows: u64| emit(&sums(rows * 7), language, &FIGURES).unwrap().source.to_string();
        let sources: std::collections::BTreeSet<String> = (100..200).map(source).collect();
        assert_eq!(sources.len(), 1);
    }
}
