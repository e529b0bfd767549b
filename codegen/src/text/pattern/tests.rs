#![allow(clippy::unwrap_used)] // A failed assumption stops the test.

use super::*;
use crate::Language;
use crate::nest::build;
use crate::schedule::{Figures, Matrices, schedule};

/// Kernels by two extents: reductions of rows and columns, windows with borders, joins, lanes that are some elements
/// apart, positions, running sums, transposes and products.
const KERNELS: [fn(u64, u64) -> String; 9] = [
    |n, m| {
        format!(
            "map i0 < n_i0 = {m}\n  reduce r0 < {n}\n  input in0: f32 [{all}]\n  output out0: f32 [{all}]\n  v0: f32 \
             = load in0[i0 * {n} + r0]\n  v1: f32 = reduce max over r0 of v0\n  v2: f32 = sub v0 v1\n  v3: f32 = exp \
             v2\n  store out0[i0 * {n} + r0] = v3",
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {n}\n  reduce r0 < {m}\n  input in0: f32 [{all}]\n  output out0: f32 [{n}]\n  v0: f32 = load \
             in0[r0 * {n} + i0]\n  v1: f32 = reduce sum over r0 of v0\n  store out0[i0] = v1",
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  input in0: f32 [{all}]\n  output out0: f32 [{more}]\n  v0: bool = in_bounds \
             0 <= i1 - 3 < {inner}\n  v1: f32 = load in0[i0 * {inner} + i1 - 3] if v0\n  v2: f32 = add v1 v1\n  store \
             out0[i0 * {n} + i1] = v2",
            inner = n - 6,
            all = (n - 6) * m,
            more = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  input in0: f32 [{first}]\n  input in1: f32 [{all}]\n  output out0: f32 \
             [{all}]\n  v0: bool = in_bounds 0 <= i1 < {half}\n  v1: f32 = load in0[i0 * {half} + i1] if v0\n  v2: f32 = \
             load in1[i0 * {n} + i1]\n  v3: f32 = select v0 v1 v2\n  store out0[i0 * {n} + i1] = v3",
            half = n / 2,
            first = (n / 2) * m,
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  input in0: f32 [{more}]\n  output out0: f32 [{all}]\n  v0: f32 = load \
             in0[i0 * {row} + i1 * 2]\n  v1: f32 = load in0[i0 * {row} + i1 * 2 + 1]\n  v2: f32 = add v0 v1\n  store \
             out0[i0 * {n} + i1] = v2",
            row = 2 * n,
            more = 2 * n * m,
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  output out0: f32 [{all}]\n  v0: i64 = position i0 * {n} + i1\n  v1: f32 = \
             cast v0 to f32\n  store out0[i0 * {n} + i1] = v1",
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  input in0: f32 [{all}]\n  output out0: f32 [{all}]\n  v0: f32 = load in0[i0 \
             * {n} + i1]\n  v1: f32 = cumsum along i1 of v0\n  store out0[i0 * {n} + i1] = v1",
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  input in0: f32 [{all}]\n  output out0: f32 [{all}]\n  v0: f32 = load in0[i1 \
             * {m} + i0]\n  v1: f32 = exp v0\n  store out0[i0 * {n} + i1] = v1",
            all = n * m
        )
    },
    |n, m| {
        format!(
            "map i0 < {m}\n  map i1 < {n}\n  reduce r0 < 70\n  input in0: f32 [{a}]\n  input in1: f32 [{b}]\n  output \
             out0: f32 [{all}]\n  v0: f32 = load in0[i0 * 70 + r0]\n  v1: f32 = load in1[r0 * {n} + i1]\n  v2: f32 = \
             mul v0 v1\n  v3: f32 = reduce sum over r0 of v2\n  store out0[i0 * {n} + i1] = v3",
            a = 70 * m,
            b = 70 * n,
            all = n * m
        )
    },
];

/// What a pattern gives is what would be printed, over sizes of all kinds; most are found.
#[test]
fn patterns_give_what_is_printed() {
    let figures =
        Figures { processors: 2, is_low_pressure: false, shared_bytes: 0, matrices: Matrices::Warps };
    let mut state = 1u64;
    let mut size = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (random, most) = (state >> 33, [40, 200, 3000, 100_000][(state >> 60) as usize % 4]);
        7 + random % most
    };
    let (mut found, mut all) = (0, 0);
    for (number, kernel) in KERNELS.iter().enumerate() {
        for _ in 0..120 {
            let (n, m) = (size(), 2 + size() % 400);
            let text = format!("kernel pattern_{number}\n  {}\n", kernel(n, m));
            let kernel: Kernel = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
            let schedule = schedule(&kernel, Language::C, &figures).unwrap();
            let mut nest = build(&kernel, Language::C, &schedule).unwrap();
            let printed = c::print(&nest, streams::condition(&nest).as_deref());
            let (constants, mut numbers) = (decisions(&nest).1, Numbers::default());
            let mut copy = nest.clone();
            each_number(&mut copy, constants, &mut |value, role| numbers.take(value, role));
            numbers.put_back(&mut copy, constants);
            assert_eq!(c::print(&copy, streams::condition(&copy).as_deref()), printed);
            let before = with_known(|known| known.count);
            let (source, filled) = print(&mut nest);
            assert_eq!(source, printed);
            found += usize::from(filled.is_some() && with_known(|known| known.count) == before);
            all += 1;
        }
    }
    assert!(3 * found > all, "{found} of {all}");
}

/// Rows of every length, as of what grows, are printed for few of them.
#[test]
fn few_of_many_sizes_are_printed() {
    let figures =
        Figures { processors: 2, is_low_pressure: false, shared_bytes: 0, matrices: Matrices::Warps };
    let mut printed = 0;
    for n in 64..564 {
        let kernel = KERNELS[0](n, 6);
        let kernel: Kernel = format!("kernel growing\n  {kernel}\n").parse().unwrap();
        let schedule = schedule(&kernel, Language::C, &figures).unwrap();
        let mut nest = build(&kernel, Language::C, &schedule).unwrap();
        let plain = c::print(&nest, streams::condition(&nest).as_deref());
        let before = with_known(|known| known.count);
        let (source, filled) = print(&mut nest);
        assert_eq!(source, plain);
        printed += usize::from(filled.is_none() || with_known(|known| known.count) != before);
    }
    assert!(printed <= 100, "{printed} of 500");
}

#[test]
fn texts_that_differ_in_more_have_no_pattern() {
    let text = |words: &str| format!("typedef long long idx;\n\nstatic void {words}\n");
    let of = |a: &str, b: &str| Pattern::of(&text(a), &text(b), &[700, 45]);
    let pattern = of("f(1300000001 + x1300000001, 1300000040)", "f(700 + x1300000001, 45)").unwrap();
    assert_eq!(pattern.fill(&[3, 12]), text("f(3 + x1300000001, 12)"));
    assert!(of("f(1300000001)", "f(701)").is_none(), "derived from a number");
    assert!(of("f(1300000001)", "f(7000)").is_none());
    assert!(of("f(1300000001 + 2)", "f(700 + 3)").is_none());
    assert!(of("f(1300000001)", "f(700) + 1").is_none());
    assert!(of("f(1300000100)", "f(700)").is_none(), "a number that there is not");
}
