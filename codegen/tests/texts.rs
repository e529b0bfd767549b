//! Kernels as text: what prints reads back, and what is no kernel is an error that says where.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use lazuli_codegen::ir::Kernel;
use proptest::prelude::*;

/// One of everything.
const ZOO: &str = "\
kernel zoo
  map i0 < n_i0 = 6
  map i1 < 10
  reduce r0 < 5
  reduce r1 < n_r1 = 3
  computed g0 < 7 is v3 check 2
  offset o0 < 901 number 4
  offset o1 < n_o1 = 12 number 0
  input in0: f16 [1000]
  input out0: f32 [60]
  output out0: f32 [60]
  output out1: i64 [60]
  output out2: f32 [6]
  argument c0: f32 = NaN(0x7fc00001)
  argument seed0: i64 = -9223372036854775807
  recurrence along i1 reverse: v20 becomes v21
  v0: bool = in_bounds 0 <= i1 + r0 - 2 < 10, -1 <= i0 < 6
  v1: f32 = load in0[r0 + o0 + o1 + (i0 * 10 + i1) / 3 * 4 + i1 % 4] if v0
  v2: i64 = position i0 * 2 % 3 + 599 - i1
  v3: i64 = bitnot v2
  v4: f32 = load out0[r1 + g0 * 8]
  v5: f32 = literal -0.0
  v6: f32 = argument c0
  v7: f32 = random seed0[i0 * 10 + i1]
  v8: f32 = exp v7
  v9: f32 = select v0 v1 v5
  v10: f32 = reduce sum over r0 of v9
  v11: i64 = position r1
  v12: i64 = reduce argmax over r1 of v4 at v11
  v13: f32 = cast v7 to f16
  v14: f32 = cumsum reverse exclusive along i1 of v13
  v15: bool = lt v14 v6
  v16: f32 = reduce max over r1 of v4
  v17: f32 = logcumsumexp along i0 of v10
  v18: f32 = literal inf
  v19: f32 = pow v17 v18
  v20: f32 = carry 0 of row i0 from v5
  v21: f32 = hypot v20 v19
  v22: f32 = last of v20
  v23: i64 = position i0 + r1
  v24: f32 = load out0[i0 + r1 * 3]
  v25: f32 = scatter prod over r1 of v24 to i1 at v23 check 0
  store out0[i0 * 10 + i1] = v25
  store out1[i0 * 10 + i1] = v12
  store out2[i0] = v22
";

#[test]
fn one_of_everything_reads_back() {
    let kernel: Kernel = ZOO.parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kernel.to_string(), ZOO);
    assert_eq!(kernel.to_string().parse::<Kernel>().unwrap(), kernel);
    // Comments and white space do not matter.
    let spaced = ZOO.replace('\n', " // a comment\n\n").replace(" = ", "=");
    assert_eq!(spaced.parse::<Kernel>().unwrap(), kernel);
}

/// What is wrong, and the error.
const WRONG: [(&str, &str); 16] = [
    ("kernel zoo", "kernels"),
    ("= exp v7", "= exq v7"),
    ("= exp v7", "= exp v8"),
    ("load in0", "load in1"),
    ("[r0 + o0", "[r7 + o0"),
    ("v8: f32", "v9: f32"),
    ("v8: f32", "v8: f64"),
    ("literal inf", "literal 1.5.2"),
    ("map i1 < 10", "map i1 < 9999999999999999999999"),
    ("map i1 < 10", "map i1 < 1000000000000000000"),
    ("out2[i0]", "out2[0]"),
    ("i1 % 4", "i1 % 0"),
    ("599 - i1", "(0 - i1) / 2"),
    ("v20 becomes v21", "v20 becomes v99"),
    ("is v3 check", "is v99 check"),
    ("store out1", "stash out1"),
];

#[test]
fn errors_say_where_and_what() {
    let mut text = String::new();
    for (from, to) in WRONG {
        assert!(ZOO.contains(from), "{from}");
        let error = ZOO.replacen(from, to, 1).parse::<Kernel>().unwrap_err();
        text += &format!("{from} => {to}\n    {error}\n");
    }
    insta::with_settings!({
        snapshot_path => "../../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!("kernel_text_errors", text) });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done to a text: a kernel that reads back, or an error.
    #[test]
    fn no_text_panics(edits in proptest::collection::vec((0usize..2000, 0usize..12, 0usize..2000, 0usize..12), 1..4)) {
        let mut text = ZOO.as_bytes().to_vec();
        for (to, removed, from, copied) in edits {
            let to = to % text.len();
            let piece: Vec<u8> = text.iter().skip(from % text.len()).take(copied).copied().collect();
            let end = (to + removed).min(text.len());
            text.splice(to..end, piece);
            if text.is_empty() {
                break;
            }
        }
        let text = String::from_utf8(text).unwrap();
        if let Ok(kernel) = text.parse::<Kernel>() {
            prop_assert_eq!(kernel.to_string().parse::<Kernel>(), Ok(kernel));
        }
    }
}
