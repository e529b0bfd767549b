//! Every schedule that a kernel takes gives the same results, whoever has chosen it.

#![allow(clippy::unwrap_used, clippy::panic)] // A failed assumption stops the test.

mod groups;

use std::collections::BTreeSet;

use super::{Call, Results, run};
use crate::emit::nest_with;
use crate::intrinsics::philox_uniform_f64;
use crate::ir::Kernel;
use crate::nest::Nest;
use crate::schedule::{Figures, Matrices, Schedule, schedule};
use crate::{DType, Language, Scalar};

const FIGURES: Figures =
    Figures { processors: 4, is_low_pressure: false, shared_bytes: 64 << 10, matrices: Matrices::Warps };

/// Multiples of 1/64, so that short sums are exact in whatever order.
fn input(number: usize, dtype: DType, elements: u64) -> Vec<u8> {
    let element = |n: u64| {
        let uniform = philox_uniform_f64(number as u64, n);
        let scalar = match dtype {
            _ if dtype.is_float() => Scalar::from_f64(dtype, (uniform * 256.0).floor() / 64.0 - 2.0),
            _ => Scalar::from_f64(dtype, (uniform * 8.0).floor()),
        };
        scalar.to_bits().to_le_bytes().into_iter().take(dtype.size())
    };
    (0..elements).flat_map(element).collect()
}

fn results(kernel: &Kernel, language: Language, schedule: &Schedule) -> Result<Option<Results>, String> {
    results_on(&FIGURES, kernel, language, schedule)
}

fn results_on(
    figures: &Figures,
    kernel: &Kernel,
    language: Language,
    schedule: &Schedule,
) -> Result<Option<Results>, String> {
    let Ok(nest) = nest_with(kernel, language, figures, schedule) else { return Ok(None) };
    results_of(&nest, language).map(Some)
}

fn results_of(nest: &Nest, language: Language) -> Result<Results, String> {
    let kernel = &nest.kernel;
    let inputs = kernel.buffers.iter().filter(|buffer| !buffer.is_output).enumerate();
    let inputs: Vec<Vec<u8>> =
        inputs.map(|(number, buffer)| input(number, buffer.dtype, buffer.elements)).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let arguments: Vec<Scalar> = kernel.arguments.iter().map(|argument| argument.value).collect();
    let call = Call { arguments: &arguments, offset: &|_| 1, inputs: &inputs };
    run(nest, language, &call).map_err(|fault| fault.to_string())
}

/// The first elements that are not alike.
fn difference(kernel: &Kernel, a: &Results, b: &Results) -> Option<String> {
    let outputs = kernel.buffers.iter().filter(|buffer| buffer.is_output);
    for ((buffer, a), b) in outputs.zip(&a.outputs).zip(&b.outputs) {
        let scalars = |bytes: &[u8]| -> Vec<Scalar> {
            let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            bytes
                .chunks_exact(buffer.dtype.size())
                .map(|b| Scalar::from_bits(buffer.dtype, bits(b)))
                .collect()
        };
        let is_near =
            |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * b.abs().max(1.0);
        for (at, (a, b)) in scalars(a).into_iter().zip(scalars(b)).enumerate() {
            if !is_near(a.as_f64(), b.as_f64()) {
                return Some(format!("{}[{at}] is {a}, not {b}", buffer.name));
            }
        }
    }
    (a.failed != b.failed).then(|| format!("{:?} failed, not {:?}", a.failed, b.failed))
}

/// Settings that schedules of the kind may have besides.
const MORE: [&str; 14] = [
    "keep=none",
    "keep=v0",
    "keep=v2",
    "keep=v3+v4",
    "keep=v4",
    "persistent=2",
    "shared_bytes=4096",
    "stack_bytes=4096",
    "online",
    "splits=3",
    "collected=4",
    "local",
    "all",
    "tile=32x32",
];

const OTHERS: [&str; 12] = [
    "pointwise(threads=64, vec=1)",
    "pointwise(threads=32, vec=4)",
    "pointwise(elements_per_block=100)",
    "tiled(across=a0, tile=32x32, threads=32x8)",
    "row_reduce(threads_per_row=32, rows_per_block=1, vec=1)",
    "row_reduce(threads_per_row=64, rows_per_block=1, vec=2)",
    "row_reduce(threads_per_row=8, rows_per_block=4, vec=1)",
    "column_reduce(threads=32x8, vec=1)",
    "column_reduce(threads=16x1, vec=1)",
    "scan(threads=32, rows_per_block=4, vec=1)",
    "sort(rows_per_block=8, lanes=8)",
    "sort(threads=64, rows_per_block=1, tile=16)",
];

/// Schedules with one setting more, one less, or another value of one; and those of other kinds.
fn neighbours(text: &str) -> BTreeSet<String> {
    let (kind, rest) = text.split_once('(').unwrap();
    let settings: Vec<&str> = rest.trim_end_matches(')').split(", ").collect();
    let with = |settings: &[String]| format!("{kind}({})", settings.join(", "));
    let own: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let mut found: BTreeSet<String> = OTHERS.iter().map(|&other| other.to_owned()).collect();
    for (place, setting) in own.iter().enumerate() {
        let mut fewer = own.clone();
        fewer.remove(place);
        found.insert(with(&fewer));
        let Some((name, values)) = setting.split_once('=') else { continue };
        let numbers: Vec<Option<u64>> = values.split('x').map(|value| value.parse().ok()).collect();
        for (changed, number) in numbers.iter().enumerate() {
            let Some(number) = *number else { continue };
            for other in [1, number / 2, number * 2, number * 4, number + 1, number / 3] {
                let mut values: Vec<String> = values.split('x').map(str::to_owned).collect();
                values[changed] = other.to_string();
                let mut others = own.clone();
                others[place] = format!("{name}={}", values.join("x"));
                found.insert(with(&others));
            }
        }
    }
    for more in MORE {
        let name = more.split('=').next().unwrap();
        if !own.iter().any(|setting| setting.split('=').next() == Some(name)) {
            found.insert(with(&[own.as_slice(), &[more.to_owned()]].concat()));
        }
    }
    found.insert(text.to_owned());
    found
}

/// Checks all neighbours of the schedule that is chosen in either language, of which the kernel takes at least so many; where
/// that is none, nothing is checked.
fn check(text: &str, least: [usize; 2]) {
    let kernel: Kernel = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let chosen = |language| schedule(&kernel, language, &FIGURES);
    let expected = results(&kernel, Language::C, &chosen(Language::C).unwrap()).unwrap().unwrap();
    let mut report = Vec::new();
    let counts = [Language::C, Language::Cuda].map(|language| {
        if least[usize::from(language == Language::Cuda)] == 0 {
            return 0;
        }
        let chosen = chosen(language).unwrap();
        let mut candidates = neighbours(&chosen.to_string());
        let beside = chosen.neighbours(&kernel, language, &FIGURES);
        candidates.extend(beside.iter().map(Schedule::to_string));
        let candidates = candidates.iter().filter_map(|text| text.parse::<Schedule>().ok());
        let mut count = 0;
        for schedule in candidates {
            match results(&kernel, language, &schedule) {
                Ok(None) => {}
                Ok(Some(results)) => {
                    count += 1;
                    let difference = difference(&kernel, &results, &expected);
                    report
                        .extend(difference.map(|difference| format!("{language}, {schedule}: {difference}")));
                }
                Err(error) => report.push(format!("{language}, {schedule}: {error}")),
            }
        }
        count
    });
    assert!(report.is_empty(), "kernel {}\n{}", kernel.name, report.join("\n"));
    assert!(counts[0] >= least[0] && counts[1] >= least[1], "{counts:?} schedules");
}

/// How many schedules at least a kernel takes in C and in CUDA C; a kernel.
macro_rules! schedules {
    ($($name:ident: $least:expr, $kernel:expr;)*) => {$(
        #[test]
        fn $name() {
            check($kernel, $least);
        }
    )*};
}

schedules! {
    element_by_element: [8, 9], "\
kernel k
  map i0 < n_i0 = 13
  map i1 < 96
  input in0: f32 [1248]
  input in1: f16 [96]
  output out0: f32 [1248]
  argument c0: f32 = 0.5
  v0: f32 = load in0[i0 * 96 + i1]
  v1: f32 = load in1[i1]
  v2: f32 = mul v0 v1
  v3: f32 = argument c0
  v4: f32 = add v2 v3
  store out0[i0 * 96 + i1] = v4
";
    transposed: [2, 7], "\
kernel k
  map i0 < n_i0 = 50
  map i1 < 70
  input in0: f32 [3500]
  output out0: f32 [3500]
  v0: f32 = load in0[i0 + i1 * 50]
  v1: f32 = neg v0
  store out0[i0 * 70 + i1] = v1
";
    windows: [8, 6], "\
kernel k
  map i0 < n_i0 = 3
  map i1 < 8
  map i2 < 10
  reduce r0 < 3
  reduce r1 < 3
  input in0: f32 [960]
  output out0: f32 [240]
  v0: bool = in_bounds 0 <= i1 * 2 + r0 - 1 < 16, 0 <= i2 * 2 + r1 - 1 < 20
  v1: f32 = load in0[i0 * 320 + i1 * 40 + i2 * 2 + r0 * 20 + r1 - 21] if v0
  v2: f32 = literal -inf
  v3: f32 = select v0 v1 v2
  v4: f32 = reduce max over r0, r1 of v3
  store out0[i0 * 80 + i1 * 10 + i2] = v4
";
    rows: [15, 16], "\
kernel k
  map i0 < n_i0 = 9
  reduce r0 < 100
  input in0: f32 [900]
  output out0: f32 [9]
  output out1: i64 [9]
  v0: f32 = load in0[i0 * 100 + r0]
  v1: f32 = reduce sum over r0 of v0
  v2: i64 = position r0
  v3: i64 = reduce argmax over r0 of v0 at v2
  store out0[i0] = v1
  store out1[i0] = v3
";
    softmax: [21, 16], "\
kernel k
  map i0 < n_i0 = 7
  reduce r0 < 64
  input in0: f32 [448]
  output out0: f32 [448]
  v0: f32 = load in0[i0 * 64 + r0]
  v1: f32 = reduce max over r0 of v0
  v2: f32 = reduce sum_exp over r0 of v0
  v3: f32 = sub v0 v1
  v4: f32 = exp v3
  v5: f32 = div v4 v2
  store out0[i0 * 64 + r0] = v5
";
    deviations_of_halves: [15, 15], "\
kernel k
  map i0 < n_i0 = 5
  reduce r0 < 200
  input in0: f16 [1000]
  output out0: f32 [5]
  output out1: f16 [1000]
  v0: f32 = load in0[i0 * 200 + r0]
  v1: f32 = reduce squared_deviations over r0 of v0
  v2: f32 = reduce sum over r0 of v0
  v3: f32 = sub v0 v2
  store out0[i0] = v1
  store out1[i0 * 200 + r0] = v3
";
    columns: [10, 17], "\
kernel k
  map i0 < 2
  map i1 < 40
  reduce r0 < n_r0 = 90
  input in0: f32 [7200]
  output out0: f32 [80]
  v0: f32 = load in0[i0 * 3600 + i1 + r0 * 40]
  v1: f32 = reduce sum over r0 of v0
  store out0[i0 * 40 + i1] = v1
";
    scans_of_rows: [7, 9], "\
kernel k
  map i0 < n_i0 = 6
  map i1 < 100
  input in0: f32 [600]
  output out0: f32 [600]
  v0: f32 = load in0[i0 * 100 + i1]
  v1: f32 = cumsum along i1 of v0
  store out0[i0 * 100 + i1] = v1
";
    scans_of_columns: [7, 11], "\
kernel k
  map i0 < 70
  map i1 < 20
  input in0: f32 [1400]
  output out0: f32 [1400]
  v0: f32 = load in0[i0 * 20 + i1]
  v1: f32 = cumsum reverse along i0 of v0
  store out0[i0 * 20 + i1] = v1
";
    scatters: [4, 7], "\
kernel k
  map i0 < 8
  map i1 < 5
  reduce r0 < n_r0 = 60
  input in0: f32 [300]
  input in1: i64 [60]
  output out0: f32 [40]
  v0: f32 = load in0[i1 + r0 * 5]
  v1: i64 = load in1[r0]
  v2: f32 = scatter sum over r0 of v0 to i0 at v1 check 0
  store out0[i0 * 5 + i1] = v2
";
    sorts: [5, 7], "\
kernel k
  map i0 < n_i0 = 11
  map i1 < 3
  reduce r0 < 10
  input in0: f32 [110]
  output out0: f32 [33]
  output out1: i64 [33]
  v0: f32 = load in0[i0 * 10 + r0]
  v1: f32 = sort descending over r0 of v0 to i1
  v2: i64 = argsort descending over r0 of v0 to i1
  store out0[i0 * 3 + i1] = v1
  store out1[i0 * 3 + i1] = v2
";
    products: [6, 7], "\
kernel k
  map i0 < n_i0 = 16
  map i1 < 64
  reduce r0 < 32
  input in0: f32 [512]
  input in1: f32 [2048]
  output out0: f32 [1024]
  v0: f32 = load in0[i0 * 32 + r0]
  v1: f32 = load in1[i1 + r0 * 64]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r0 of v2
  store out0[i0 * 64 + i1] = v3
";
    products_of_halves: [6, 2], "\
kernel k
  map i0 < n_i0 = 32
  map i1 < 64
  reduce r0 < 64
  input in0: f16 [2048]
  input in1: f16 [4096]
  output out0: f32 [2048]
  v0: f32 = load in0[i0 * 64 + r0]
  v1: f32 = load in1[i1 + r0 * 64]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r0 of v2
  store out0[i0 * 64 + i1] = v3
";
    recurrences: [5, 1], "\
kernel k
  map i0 < n_i0 = 40
  map i1 < 20
  input in0: f32 [40]
  input in1: f32 [800]
  output out0: f32 [800]
  recurrence along i1: v1 becomes v5
  v0: f32 = load in0[i0]
  v1: f32 = carry 0 of row i0 from v0
  v2: f32 = load in1[i0 * 20 + i1]
  v3: f32 = literal 0.5
  v4: f32 = mul v1 v3
  v5: f32 = add v4 v2
  store out0[i0 * 20 + i1] = v5
";
    checked_positions: [8, 7], "\
kernel k
  map i0 < n_i0 = 300
  computed g0 < n_g0 = 4 is v0 check 0
  offset o0 < n_o0 = 2 number 0
  input in0: i64 [300]
  input in1: f32 [4]
  input in2: f32 [301]
  output out0: f32 [300]
  v0: i64 = load in0[i0]
  v1: f32 = load in1[g0]
  v2: f32 = load in2[i0 + o0]
  v3: f32 = mul v1 v2
  store out0[i0] = v3
";
    distances: [6, 17], "\
kernel k
  map i0 < n_i0 = 90
  reduce r0 < 12
  reduce r1 < 3
  input in0: f32 [270]
  input in1: f32 [36]
  output out0: i64 [90]
  v0: f32 = load in0[i0 * 3 + r1]
  v1: f32 = load in1[r0 * 3 + r1]
  v2: f32 = sub v0 v1
  v3: f32 = square v2
  v4: f32 = reduce sum over r1 of v3
  v5: i64 = position r0
  v6: i64 = reduce argmin over r0 of v4 at v5
  store out0[i0] = v6
";
    one_long_row: [1, 1], "\
kernel k
  reduce r0 < n_r0 = 70000
  input in0: i32 [70000]
  output out0: i32 [1]
  v0: i32 = load in0[r0]
  v1: i32 = reduce min over r0 of v0
  store out0[0] = v1
";
    long_columns: [10, 21], "\
kernel k
  map i0 < 3
  reduce r0 < 5000
  input in0: i32 [15000]
  output out0: i32 [3]
  v0: i32 = load in0[r0 * 3 + i0]
  v1: i32 = reduce max over r0 of v0
  store out0[i0] = v1
";
    sorts_of_wide_numbers: [5, 6], "\
kernel k
  map i0 < n_i0 = 3
  map i1 < 70
  reduce r0 < 70
  input in0: f64 [210]
  output out0: f64 [210]
  v0: f64 = load in0[i0 * 70 + r0]
  v1: f64 = sort over r0 of v0 to i1
  store out0[i0 * 70 + i1] = v1
";
    attention_in_tiles: [1, 2], "\
kernel k
  map i0 < n_i0 = 2
  map i1 < 40
  map i2 < 48
  reduce r0 < 70
  reduce r1 < 20
  input in0: f32 [1600]
  input in1: f32 [2800]
  input in2: f32 [6720]
  output out0: f32 [3840]
  v0: f32 = load in0[i0 * 800 + i1 * 20 + r1]
  v1: f32 = load in1[i0 * 1400 + r0 * 20 + r1]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r1 of v2
  v4: i64 = position r0
  v5: i64 = position i1
  v6: bool = le v4 v5
  v7: f32 = literal -inf
  v8: f32 = select v6 v3 v7
  v9: f32 = reduce max over r0 of v8
  v10: f32 = sub v8 v9
  v11: f32 = exp v10
  v12: f32 = reduce sum_exp over r0 of v8
  v13: f32 = div v11 v12
  v14: f32 = load in2[i0 * 3360 + r0 * 48 + i2]
  v15: f32 = mul v13 v14
  v16: f32 = reduce sum over r0 of v15
  store out0[i0 * 1920 + i1 * 48 + i2] = v16
";
    attention_by_matrices: [1, 2], "\
kernel k
  map i0 < n_i0 = 2
  map i1 < 40
  map i2 < 72
  reduce r0 < 150
  reduce r1 < 24
  input in0: f16 [1920]
  input in1: f16 [7200]
  input in2: f16 [21600]
  output out0: f32 [5760]
  v0: f32 = load in0[i0 * 960 + i1 * 24 + r1]
  v1: f32 = load in1[i0 * 3600 + r0 * 24 + r1]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r1 of v2
  v4: f32 = literal 0.25
  v5: f32 = mul v3 v4
  v6: f32 = reduce max over r0 of v5
  v7: f32 = sub v5 v6
  v8: f32 = exp v7
  v9: f32 = reduce sum_exp over r0 of v5
  v10: f32 = div v8 v9
  v11: f32 = load in2[i0 * 10800 + r0 * 72 + i2]
  v12: f32 = mul v10 v11
  v13: f32 = reduce sum over r0 of v12
  store out0[i0 * 2880 + i1 * 72 + i2] = v13
";
    attention: [6, 0], "\
kernel k
  map i0 < 1
  map i1 < 16
  map i2 < 16
  reduce r0 < 64
  reduce r1 < 32
  input in0: f32 [512]
  input in1: f32 [2048]
  input in2: f32 [1024]
  output out0: f32 [256]
  v0: f32 = load in0[i0 * 512 + i1 * 32 + r1]
  v1: f32 = load in1[i0 * 2048 + r0 * 32 + r1]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r1 of v2
  v4: f32 = literal 0.125
  v5: f32 = mul v3 v4
  v6: f32 = reduce max over r0 of v5
  v7: f32 = sub v5 v6
  v8: f32 = exp v7
  v9: f32 = reduce sum_exp over r0 of v5
  v10: f32 = div v8 v9
  v11: f32 = load in2[i0 * 1024 + r0 * 16 + i2]
  v12: f32 = mul v10 v11
  v13: f32 = reduce sum over r0 of v12
  store out0[i0 * 256 + i1 * 16 + i2] = v13
";
}

/// The results of the schedule that is chosen for a GPU, beside those of another one.
fn check_beside(text: &str, chosen: &str, other: &str) {
    let kernel: Kernel = text.parse().unwrap_or_else(|error| panic!("{error}"));
    // Of groups of warps those of a GPU that has them.
    let figures = match chosen.contains("group") {
        true => Figures { shared_bytes: 227 << 10, matrices: Matrices::Groups, ..FIGURES },
        false => FIGURES,
    };
    let own = schedule(&kernel, Language::Cuda, &figures).unwrap();
    assert_eq!(own.to_string(), chosen);
    let of = |figures: &Figures, schedule: &Schedule| {
        results_on(figures, &kernel, Language::Cuda, schedule).unwrap_or_else(|fault| panic!("{fault}"))
    };
    let (own, other) = (of(&figures, &own).unwrap(), of(&FIGURES, &other.parse().unwrap()).unwrap());
    assert_eq!(difference(&kernel, &own, &other), None);
}

#[test]
fn rows_that_begin_anywhere_are_read_in_vectors() {
    // Each of eight rows begins at another place within a vector; a weight for each column begins at 0.
    let text = "\
kernel odd
  map i0 < n_i0 = 8
  reduce r0 < 4099
  input in0: bf16 [32792]
  input in1: f32 [4099]
  output out0: f32 [8]
  output out1: f32 [8]
  v0: f32 = load in0[i0 * 4099 + r0]
  v1: f32 = load in1[r0]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r0 of v2
  v4: f32 = reduce max over r0 of v0
  store out0[i0] = v3
  store out1[i0] = v4
";
    check_beside(
        text,
        "row_reduce(threads_per_row=256, rows_per_block=1, vec=8)",
        "row_reduce(threads_per_row=256, rows_per_block=1, vec=1)",
    );
}

#[test]
fn parts_of_joins_are_loaded_as_vectors() {
    let text = "\
kernel join
  map i0 < n_i0 = 5
  map i1 < 64
  input in0: f32 [80]
  input in1: f32 [240]
  output out0: f32 [320]
  v0: bool = in_bounds 0 <= i1 < 16
  v1: f32 = load in0[i0 * 16 + i1] if v0
  v2: bool = in_bounds 0 <= i1 - 16 < 48
  v3: f32 = load in1[i0 * 48 + i1 - 16] if v2
  v4: f32 = select v0 v1 v3
  store out0[i0 * 64 + i1] = v4
";
    check_beside(text, "pointwise(threads=256, vec=4)", "pointwise(threads=64, vec=1)");
}
