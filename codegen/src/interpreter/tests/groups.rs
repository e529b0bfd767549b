//! Products of groups of warps, beside those of warps.

use super::{FIGURES, check_beside, results_of};
use crate::Language;
use crate::emit::nest_with;
use crate::nest::{Nest, NestError, verify};
use crate::schedule::{Figures, Matrices};
use crate::syntax::Cursor;

#[test]
fn groups_of_warps_multiply_as_warps_do() {
    let product = |left: &str, right: &str| {
        format!(
            "\
kernel k
  map i0 < 70
  map i1 < 72
  reduce r0 < 136
  input in0: f16 [9520]
  input in1: f16 [9792]
  output out0: f32 [5040]
  v0: f32 = load in0[{left}]
  v1: f32 = load in1[{right}]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r0 of v2
  store out0[i0 * 72 + i1] = v3
"
        )
    };
    let own = "contraction(tile=64x64, depth=64, group=64x64, f16, stages=4";
    let other = "contraction(tile=16x64, depth=64, warp=16x16, f16)";
    // Tiles of lines that begin at multiples of 16 bytes are copied as a whole.
    for (left, copied) in [("i0 * 136 + r0", ", bulk)"), ("i0 + r0 * 70", ")")] {
        for right in ["i1 * 136 + r0", "i1 + r0 * 72"] {
            check_beside(&product(left, right), &format!("{own}{copied}"), other);
        }
    }
    // Of each batch, what is beyond its rows, columns and terms is nothing, though another batch follows.
    for right in ["i0 * 9792 + i2 * 136 + r0", "i0 * 9792 + i2 + r0 * 72"] {
        let text = format!(
            "\
kernel k
  map i0 < n_i0 = 2
  map i1 < 70
  map i2 < 72
  reduce r0 < 136
  input in0: bf16 [19048]
  input in1: bf16 [19584]
  output out0: bf16 [10080]
  v0: f32 = load in0[i0 * 9520 + i1 * 136 + r0 + 8]
  v1: f32 = load in1[{right}]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r0 of v2
  v4: f32 = cast v3 to bf16
  store out0[i0 * 5040 + i1 * 72 + i2] = v4
"
        );
        let own = "contraction(tile=128x128, depth=64, group=64x128, bf16, stages=4, bulk)";
        check_beside(&text, own, &other.replace(", f16", ", bf16"));
    }
    check_beside(
        "\
kernel k
  map i0 < n_i0 = 2
  map i1 < 70
  map i2 < 64
  reduce r0 < 150
  reduce r1 < 64
  input in0: f16 [8960]
  input in1: f16 [19200]
  input in2: f16 [19200]
  output out0: f32 [8960]
  v0: f32 = load in0[i0 * 4480 + i1 * 64 + r1]
  v1: f32 = load in1[i0 * 9600 + r0 * 64 + r1]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r1 of v2
  v4: f32 = literal 0.125
  v5: f32 = mul v3 v4
  v6: f32 = reduce max over r0 of v5
  v7: f32 = sub v5 v6
  v8: f32 = exp v7
  v9: f32 = reduce sum_exp over r0 of v5
  v10: f32 = div v8 v9
  v11: f32 = load in2[i0 * 9600 + r0 * 64 + i2]
  v12: f32 = mul v10 v11
  v13: f32 = reduce sum over r0 of v12
  store out0[i0 * 4480 + i1 * 64 + i2] = v13
",
        "row_contraction(tile=64x64, columns=64, depth=64, f16, group, stages=2)",
        "row_contraction(tile=32x64, columns=64, depth=32, f16)",
    );
}

/// What a tile is copied to may be read when its round has been awaited, and only rounds that were begun may be.
#[test]
fn tiles_are_awaited() {
    let text = "\
kernel k
  map i0 < 64
  map i1 < 64
  reduce r0 < 640
  input in0: f16 [40960]
  input in1: f16 [40960]
  output out0: f16 [4096]
  v0: f32 = load in0[i0 * 640 + r0]
  v1: f32 = load in1[i1 + r0 * 64]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r0 of v2
  v4: f32 = cast v3 to f16
  store out0[i0 * 64 + i1] = v4
";
    let figures = Figures { shared_bytes: 227 << 10, matrices: Matrices::Groups, ..FIGURES };
    let schedule = "contraction(tile=64x64, depth=64, group=64x64, f16, stages=4, bulk)".parse().unwrap();
    let nest = nest_with(&text.parse().unwrap(), Language::Cuda, &figures, &schedule).unwrap();
    let text = nest.to_text(Language::Cuda);
    results_of(&nest, Language::Cuda).unwrap();
    let found = |from: &str, to: &str| {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let (_, nest) = Nest::parse(&mut Cursor::new(&changed)).unwrap();
        (verify(&nest, Language::Cuda), results_of(&nest, Language::Cuda).unwrap_err())
    };
    let (verified, fault) = found("await_tiles arrived0[slot] round step / 4", "");
    assert_eq!(verified, Err(NestError::Unawaited("left0".into())));
    assert!(fault.contains("before it is written"), "{fault}");
    let (_, fault) = found("round step / 4", "round step / 4 + 1");
    assert!(fault.contains("2 copies have arrived, 2 for each of 2 rounds"), "{fault}");
    // The slot of the step that is being multiplied.
    let (_, fault) = found("let other: index = (step + 3) % 4", "let other: index = (step + 4) % 4");
    assert!(fault.contains("copies have arrived") || fault.contains("before it is written"), "{fault}");
}
