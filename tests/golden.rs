//! What PyTorch gives: every row of the table of operations, with every dtype, on special values, broadcast, 0-d and
//! empty, compared with `tests/golden/results.txt.gz`, which `tests/golden/generate.py` has written with PyTorch.
//! `GOLDEN_CASES=path cargo test --test golden cases_are_written` writes the cases for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use common::data::{Sample, input};
use common::matrix::sampled;
use common::{Tolerance, mismatch, mismatch_but};
use flate2::Crc;
use lazuli::operations::{self, Accuracy, Case, Elements, Operation};
use lazuli::{DType, Device, Fusion, Shape, Tensor, bf16, f16, with_fusion};

/// Results that differ from PyTorch's on purpose.
struct Difference {
    operations: &'static [&'static str],
    dtypes: &'static [DType],
    /// Which elements, in words.
    which: &'static str,
    /// What both give, and why ours stays.
    reason: &'static str,
    /// Which elements, as a question about one.
    is_meant: fn(&Differing) -> bool,
}

/// An element that differs.
struct Differing<'a> {
    /// The call in PyTorch.
    torch: &'a str,
    /// The inputs' elements, of an elementwise operation.
    inputs: &'a [f64],
    ours: f64,
    theirs: f64,
    /// Of the result's dtype.
    eps: f64,
}

impl Differing<'_> {
    fn distance(&self) -> f64 {
        (self.ours - self.theirs).abs()
    }

    /// Whether ours is this number, rounded once.
    fn is_rounded(&self, exact: f64) -> bool {
        (self.ours - exact).abs() <= exact.abs() * self.eps / 2.0
    }

    /// Whether the distance is what rounding terms of this magnitude makes it.
    fn is_rounding_of(&self, magnitude: f64) -> bool {
        magnitude.is_finite() && self.distance() <= magnitude * self.eps
    }
}

/// In the documentation too: `INSTA_UPDATE=always cargo test --test golden` writes that page anew.
const DIFFERENCES: &[Difference] = &[
    Difference {
        operations: &[
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "clamp",
            "clip",
            "clamp_min",
            "clamp_max",
            "relu6",
            "hardtanh",
            "cummax",
            "cummax_with",
            "cummin",
            "cummin_with",
            "cummax_with_indices",
            "cummin_with_indices",
        ],
        dtypes: FLOATS,
        which: "between zeros of different sign",
        reason: "+0 is greater than -0 here, in whichever order the operands are, as in IEEE 754-2019. PyTorch \
                 takes either, and another one for another dtype.",
        is_meant: |x| x.ours == 0.0 && x.theirs == 0.0,
    },
    Difference {
        operations: &["scatter_add", "index_put", "put"],
        dtypes: FLOATS,
        which: "where nothing is added to -0",
        reason: "The result is +0: the sum of nothing, +0, is added to every element. PyTorch's stays -0.",
        is_meant: |x| x.ours == 0.0 && x.ours.is_sign_positive() && x.theirs == 0.0,
    },
    Difference {
        operations: &["softshrink"],
        dtypes: FLOATS,
        which: "between zeros of different sign",
        reason: "Within lambda the result is +0. PyTorch's kernel gives +0 in whole vectors, and a zero with the \
                 number's sign in what is left over.",
        is_meant: |x| x.ours.is_sign_positive() && x.ours == 0.0 && x.theirs == 0.0,
    },
    Difference {
        operations: &["fmod", "remainder"],
        dtypes: &[DType::BF16, DType::F32, DType::F64],
        which: "where the quotient overflows",
        reason: "The remainder is exact, as in C. PyTorch's is NaN.",
        is_meant: |x| {
            let quotient = (x.inputs[0] / x.inputs[1]).abs();
            let overflows = quotient > if x.eps < 1e-10 { f64::MAX } else { f32::MAX.into() };
            overflows && x.inputs[0].is_finite() && x.ours.abs() <= x.inputs[1].abs() && x.theirs.is_nan()
        },
    },
    Difference {
        operations: &["floor_divide"],
        dtypes: HALVES,
        which: "where the quotient's floor is rounded",
        reason: "The floor is rounded once. PyTorch rounds steps before it, and can be off by one ulp.",
        is_meant: |x| x.is_rounded((x.inputs[0] / x.inputs[1]).floor()) && x.is_rounding_of(x.ours.abs()),
    },
    Difference {
        operations: &["div_with"],
        dtypes: HALVES,
        which: "where the quotient in 16 bits is another integer's",
        reason: "The quotient is rounded to an integer, and that to 16 bits. PyTorch rounds it to 16 bits before.",
        is_meant: |x| {
            let quotient = x.inputs[0] / x.inputs[1];
            let is_ours = x.is_rounded(quotient.trunc()) || x.is_rounded(quotient.floor());
            is_ours && x.distance() <= (quotient.abs() * x.eps).max(1.0)
        },
    },
    Difference {
        operations: &["pow"],
        dtypes: &[DType::F16],
        which: "of -infinity and -0 to the power of the number 0.5 or -0.5",
        reason: "These are roots in every dtype. PyTorch's are in all but F16.",
        is_meant: |x| (x.inputs[0] == f64::NEG_INFINITY || x.inputs[0] == 0.0) && x.theirs == x.theirs.abs(),
    },
    Difference {
        operations: &["sqrt"],
        dtypes: &[DType::F64],
        which: "where PyTorch is off by one ulp",
        reason: "The root is rounded correctly, as IEEE 754 demands.",
        is_meant: |x| x.ours == x.inputs[0].sqrt() && x.is_rounding_of(x.ours),
    },
    Difference {
        operations: &["bessel_j0", "bessel_j1"],
        dtypes: &[DType::F64],
        which: "of all numbers",
        reason: "The results are exact to some units in the last place, as mpmath's and SciPy's. PyTorch's are off by up to 1e-6.",
        is_meant: |x| x.distance() < 1e-5,
    },
    Difference {
        operations: &["erf"],
        dtypes: HALVES,
        which: "of numbers below 1e-6 in magnitude",
        reason: "The result is `2 / sqrt(π) * x`, rounded. PyTorch's is 0.",
        is_meant: |x| {
            let [a] = x.inputs[..] else { return false };
            a.abs() < 1e-6 && x.ours * a > 0.0 && x.theirs == 0.0
        },
    },
    Difference {
        operations: &["i0", "i1"],
        dtypes: FLOATS,
        which: "of infinity, and of 16-bit numbers whose result is none",
        reason: "The result is infinity. PyTorch gives NaN.",
        is_meant: |x| x.ours.is_infinite() && x.theirs.is_nan(),
    },
    Difference {
        operations: &["i0e"],
        dtypes: &[DType::BF16],
        which: "where PyTorch is off by two ulps",
        reason: "The result is rounded once. PyTorch rounds each step to 16 bits: of 0 it gives 0.992.",
        is_meant: |x| x.is_rounding_of(x.ours),
    },
    Difference {
        operations: &["gelu"],
        dtypes: FLOATS,
        which: "of infinity and the greatest numbers",
        reason: "The result is the number itself. PyTorch gives NaN for infinity, and infinity for the greatest \
                 numbers.",
        is_meant: |x| x.ours == x.inputs[0] && x.ours > 100.0 && !x.theirs.is_finite(),
    },
    Difference {
        operations: &["softsign"],
        dtypes: HALVES,
        which: "where two roundings differ from one",
        reason: "The quotient is rounded once. PyTorch rounds `1 + |x|` to 16 bits too.",
        is_meant: |x| x.is_rounded(x.inputs[0] / (1.0 + x.inputs[0].abs())) && x.is_rounding_of(x.ours.abs()),
    },
    Difference {
        operations: &["addcmul"],
        dtypes: &[DType::F32, DType::F64],
        which: "by one rounding of the product",
        reason: "The product is rounded, and then the sum, fused or not. PyTorch's CPU kernel rounds both at once (a \
                 fused multiply-add).",
        is_meant: |x| x.is_rounding_of((3.0 * x.inputs[1] * x.inputs[2]).abs()),
    },
    Difference {
        operations: &["lerp"],
        dtypes: FLOATS,
        which: "by one rounding of the product, and from an infinite end with a weight of -0.5 or less",
        reason: "As for `addcmul`. Where the weight is below 0.5 it is `start + weight * (end - start)` here; for \
                 weights of -0.5 and less PyTorch computes from the end, which cancels more, overflows earlier, and \
                 is NaN for infinities.",
        is_meant: |x| {
            let [start, end, weight] = x.inputs[..] else { return false };
            let from_end = (1.0 - weight) * (end - start);
            let is_nan = end.is_infinite() && weight <= -0.5 && x.theirs.is_nan();
            x.is_rounding_of(start.abs().max(end.abs()).max(from_end.abs()))
                || is_nan && x.ours == start + weight * (end - start)
        },
    },
    Difference {
        operations: &["interpolate"],
        dtypes: &[DType::F32, DType::F64],
        which: "by what rounding a position makes",
        reason: "Positions are exact fractions here. PyTorch rounds them, and is off by up to 50 eps where ours is \
                 off by 7 (of elements up to 8); between four neighbours by up to 120.",
        is_meant: |x| x.is_rounding_of(if x.torch.contains("bicubic") { 120.0 } else { 50.0 }),
    },
];

const FLOATS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64];
const HALVES: &[DType] = &[DType::F16, DType::BF16];

/// Operations whose integer division stops PyTorch's process, for zero or for the least integer by -1. Here both have
/// results; compared is the rest.
const DIVISIONS: [&str; 4] = ["floor_divide", "div_with", "remainder", "fmod"];

/// Pairs of special values that are compared.
const PAIRS: usize = 256;

/// What inputs are: of one element, the special values, all pairs of them, broadcast, empty, or as their row says.
const SETS: [&str; 6] = ["0-d", "special", "pairs", "broadcast", "empty", "own"];

/// One call with its inputs.
struct Golden {
    /// Ends with a checksum of the expression and the inputs: results of others are not found.
    key: String,
    operation: &'static Operation,
    case: &'static Case,
    dtype: DType,
    set: &'static str,
    inputs: Vec<Tensor>,
}

/// All cases, in the table's order.
fn cases() -> Vec<Golden> {
    let mut cases = Vec::new();
    for operation in operations::all() {
        let elementwise =
            !operation.inputs.is_empty() && operation.inputs.iter().all(|input| input.shape.is_none());
        let sets: &[&str] = match (operation.inputs.len(), elementwise) {
            (_, false) => &["own"],
            (1, true) => &["special", "0-d", "empty"],
            (_, true) => &["pairs", "broadcast", "0-d", "empty"],
        };
        for dtype in DType::ALL.into_iter().filter(|&dtype| operation.accepts.accepts(dtype)) {
            for (number, case) in
                operation.cases.iter().enumerate().filter(|(_, case)| !case.torch.is_empty())
            {
                for set in sets {
                    let inputs: Vec<Tensor> =
                        (0..operation.inputs.len()).map(|n| made(operation, n, dtype, set)).collect();
                    let mut sum = Crc::new();
                    sum.update(case.torch.as_bytes());
                    inputs.iter().for_each(|input| sum.update(input_text(input).as_bytes()));
                    let key = format!("{}/{number}/{dtype}/{set}/{:08x}", operation.name, sum.sum());
                    cases.push(Golden { key, operation, case, dtype, set, inputs });
                }
            }
        }
    }
    cases
}

/// The n-th input.
fn made(operation: &Operation, n: usize, dtype: DType, set: &str) -> Tensor {
    let own = &operation.inputs[n];
    let dtype = own.dtype.unwrap_or(dtype);
    let divides = DIVISIONS.contains(&operation.name) && dtype.is_int();
    let shape: &[usize] = match (set, n % 3) {
        ("special", _) => return with_type!(dtype, T => spread::<T>(T::specials().len(), 0, false)),
        ("pairs", _) if own.elements == Elements::Special => {
            return with_type!(dtype, T => spread::<T>(PAIRS, n, divides));
        }
        ("pairs", _) => &[PAIRS],
        ("broadcast", 0) => &[7, 1],
        ("broadcast", 1) => &[5],
        ("broadcast", _) => &[7, 5],
        ("0-d", _) => &[],
        ("empty", 0) => &[2, 0, 3],
        ("empty", _) => &[1, 3],
        _ => &[2, 3],
    };
    match divides && set != "empty" {
        true => input(&Device::cpu(), own, dtype, shape, 1 + n),
        false => input(&Device::cpu(), own, dtype, shape, 3 * n),
    }
}

/// Special values in an order that depends on the input's number, so that all meet all. With `divides`, no zero and no
/// least integer.
fn spread<T: Sample + PartialEq>(count: usize, n: usize, divides: bool) -> Tensor {
    let all = T::specials();
    let limits = T::DTYPE.iinfo().map(|info| [0, info.min]);
    let forbidden = |x: &T| {
        limits.is_some_and(|limits| {
            limits.iter().any(|&limit| Tensor::scalar(*x).eq(Tensor::scalar(limit)).item::<bool>().unwrap())
        })
    };
    let values: Vec<T> = all.into_iter().filter(|x| !divides || !forbidden(x)).collect();
    let step = [1, 7, 11][n % 3];
    let at = |i: usize| values[(i * step + i / values.len() * n) % values.len()];
    Tensor::from_vec((0..count).map(at).collect(), [count])
}

// --- The files ---

fn shape_text(shape: &Shape) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    if extents.is_empty() { "-".into() } else { extents.join("x") }
}

/// The elements' bytes, little-endian, in hexadecimal.
fn bits_text(tensor: &Tensor) -> String {
    fn hex<T: lazuli::Element>(tensor: &Tensor, bytes: fn(T) -> Vec<u8>) -> String {
        let elements = tensor.to_vec::<T>().unwrap();
        elements.into_iter().flat_map(bytes).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
    let text = match tensor.dtype().unwrap() {
        DType::Bool => hex::<bool>(tensor, |x| vec![x.into()]),
        DType::U8 => hex::<u8>(tensor, |x| vec![x]),
        DType::I8 => hex::<i8>(tensor, |x| x.to_le_bytes().into()),
        DType::I16 => hex::<i16>(tensor, |x| x.to_le_bytes().into()),
        DType::I32 => hex::<i32>(tensor, |x| x.to_le_bytes().into()),
        DType::U32 => hex::<u32>(tensor, |x| x.to_le_bytes().into()),
        DType::I64 => hex::<i64>(tensor, |x| x.to_le_bytes().into()),
        DType::F16 => hex::<f16>(tensor, |x| x.to_le_bytes().into()),
        DType::BF16 => hex::<bf16>(tensor, |x| x.to_le_bytes().into()),
        DType::F32 => hex::<f32>(tensor, |x| x.to_le_bytes().into()),
        DType::F64 => hex::<f64>(tensor, |x| x.to_le_bytes().into()),
    };
    if text.is_empty() { "-".into() } else { text }
}

/// Its fields between tabs.
fn input_text(tensor: &Tensor) -> String {
    let shape = shape_text(&tensor.shape().unwrap());
    format!("{}\t{shape}\t{}", tensor.dtype().unwrap(), bits_text(tensor))
}

/// A tensor as `dtype shape bits`.
fn parsed(text: &str) -> Tensor {
    let words: Vec<&str> = text.split(' ').collect();
    let [dtype, shape, bits] = words[..] else { panic!("{text}") };
    let dtype = DType::ALL.into_iter().find(|own| own.name() == dtype).unwrap();
    let extents = shape.split('x').filter(|extent| *extent != "-");
    let shape: Shape = extents.map(|extent| extent.parse::<usize>().unwrap()).collect();
    let digits = if bits == "-" { "" } else { bits };
    let byte = |i: usize| u8::from_str_radix(&digits[i..i + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    fn tensor<T: lazuli::Element, const N: usize>(
        bytes: &[u8],
        shape: Shape,
        from: fn([u8; N]) -> T,
    ) -> Tensor {
        let elements = bytes.chunks_exact(N).map(|chunk| from(chunk.try_into().unwrap())).collect();
        Tensor::from_vec(elements, shape)
    }
    match dtype {
        DType::Bool => tensor(&bytes, shape, |[x]| x != 0),
        DType::U8 => tensor(&bytes, shape, |[x]| x),
        DType::I8 => tensor(&bytes, shape, i8::from_le_bytes),
        DType::I16 => tensor(&bytes, shape, i16::from_le_bytes),
        DType::I32 => tensor(&bytes, shape, i32::from_le_bytes),
        DType::U32 => tensor(&bytes, shape, u32::from_le_bytes),
        DType::I64 => tensor(&bytes, shape, i64::from_le_bytes),
        DType::F16 => tensor(&bytes, shape, f16::from_le_bytes),
        DType::BF16 => tensor(&bytes, shape, bf16::from_le_bytes),
        DType::F32 => tensor(&bytes, shape, f32::from_le_bytes),
        DType::F64 => tensor(&bytes, shape, f64::from_le_bytes),
    }
}

#[test]
fn cases_are_written() {
    let mut inputs = BTreeMap::new();
    let mut text = String::new();
    for Golden { key, operation, case, dtype, inputs: own, .. } in cases() {
        let mut names = Vec::new();
        for (input, tensor) in operation.inputs.iter().zip(&own) {
            let number = inputs.len();
            let number = *inputs.entry(input_text(tensor)).or_insert(number);
            names.push(format!("{}={number}", input.name));
        }
        let names = if names.is_empty() { "-".into() } else { names.join(",") };
        writeln!(text, "case\t{key}\t{dtype}\t{names}\t{}", case.torch).unwrap();
    }
    let inputs: String =
        inputs.iter().map(|(fields, number)| format!("input\t{number}\t{fields}\n")).collect();
    if let Some(path) = std::env::var_os("GOLDEN_CASES") {
        std::fs::write(path, inputs + &text).unwrap();
    }
}

// --- The comparison ---

/// How far a result may be from PyTorch's. Its own functions are as approximate as ours.
fn tolerance(golden: &Golden, result: DType) -> Tolerance {
    let is_16_bit = HALVES.contains(&result);
    match golden.operation.accuracy {
        _ if !result.is_float() => Tolerance::Exact,
        Accuracy::Exact => Tolerance::Exact,
        Accuracy::Ulps(_) if is_16_bit => Tolerance::Ulps(1),
        Accuracy::Ulps(steps) => Tolerance::Ulps(u64::from(steps) + 2),
        Accuracy::Near { relative, absolute } => {
            let info = result.finfo().unwrap();
            Tolerance::Near {
                relative: 2.0 * relative * info.eps,
                absolute: 2.0 * absolute * info.eps + info.smallest_subnormal,
            }
        }
    }
}

/// The elements of an elementwise operation's inputs that each element of the result is made from.
fn elements(golden: &Golden, shape: &Shape) -> Vec<Vec<f64>> {
    if golden.operation.inputs.iter().any(|input| input.shape.is_some()) {
        return Vec::new();
    }
    let wide = |input: &Tensor| {
        let input = input.to(&Device::interpreter()).expand(shape.to_vec());
        // One that the case does not take may have any shape.
        input.cast(DType::F64).to_vec::<f64>().unwrap_or_else(|_| vec![f64::NAN; shape.elements()])
    };
    golden.inputs.iter().map(wide).collect()
}

/// How a result differs, but for what is listed; notes which rows of the list are needed.
fn unlisted(golden: &Golden, y: &Tensor, e: &Tensor, needed: &mut BTreeSet<&str>) -> Option<String> {
    let (dtype, shape) = (e.dtype().unwrap(), e.shape().unwrap());
    let tolerance = tolerance(golden, dtype);
    let difference = mismatch(y, e, tolerance)?;
    let name = golden.operation.name;
    let rows: Vec<&Difference> = DIFFERENCES
        .iter()
        .filter(|row| row.operations.contains(&name) && row.dtypes.contains(&golden.dtype))
        .collect();
    let (Some(info), false) = (dtype.finfo(), rows.is_empty()) else { return Some(difference) };
    let inputs = elements(golden, &shape);
    let is_meant = |i: usize, ours: f64, theirs: f64| {
        let inputs: Vec<f64> = inputs.iter().map(|elements| elements[i]).collect();
        let differing = Differing { torch: golden.case.torch, inputs: &inputs, ours, theirs, eps: info.eps };
        rows.iter().any(|row| (row.is_meant)(&differing))
    };
    let rest = mismatch_but(y, e, tolerance, &is_meant);
    if rest.is_none() {
        needed.insert(name);
    }
    rest
}

/// PyTorch's results by case, none where it refused. Nothing, if the file is not there.
fn results() -> Option<BTreeMap<String, Vec<Tensor>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/results.txt.gz");
    let Ok(packed) = std::fs::read(path) else {
        eprintln!("not checked: tests/golden/results.txt.gz is missing (tests/golden/generate.py writes it)");
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let of_line = |line: &str| {
        let mut fields = line.split('\t');
        match fields.next() {
            Some("result") => Some((fields.next().unwrap().into(), fields.map(parsed).collect())),
            Some("refused") => Some((fields.next().unwrap().into(), Vec::new())),
            _ => None,
        }
    };
    Some(text.lines().filter_map(of_line).collect())
}

#[test]
fn results_are_pytorchs() {
    let Some(expected) = results() else { return };
    let cases = cases();
    let mut report = String::new();
    let mut needed = BTreeSet::new();
    let mut compared = 0;
    // The interpreter everything. Kernels, which are compared with it elsewhere, as a sample: most of the time is
    // compilers'.
    let interpreted = (Device::interpreter(), Fusion::On, &DType::ALL[..], &SETS[..]);
    let whole = [
        interpreted,
        (Device::cpu(), Fusion::On, &[DType::I32, DType::BF16, DType::F64], &SETS[1..]),
        (Device::cpu(), Fusion::Off, &[DType::F32], &SETS[1..]),
        #[cfg(feature = "emulate")]
        (Device::cuda_emulated(), Fusion::On, &[DType::F32], &SETS[1..]),
    ];
    let sample = [interpreted, (Device::cpu(), Fusion::On, &[DType::F32], &["special", "own"])];
    for (device, fusion, dtypes, sets) in sampled(&whole, &sample) {
        for (&dtype, &set) in dtypes.iter().flat_map(|dtype| sets.iter().map(move |set| (dtype, set))) {
            // One plan for all operations of a dtype on inputs of a shape.
            let mut outputs = Vec::new();
            for golden in cases.iter().filter(|case| case.dtype == dtype && case.set == set) {
                let Some(expected) = expected.get(&golden.key).filter(|results| !results.is_empty()) else {
                    continue;
                };
                let inputs: Vec<Tensor> = golden.inputs.iter().map(|input| input.to(&device)).collect();
                let results = (golden.case.record)(&inputs, dtype);
                if results.len() != expected.len() {
                    writeln!(report, "{}: {} results", golden.key, results.len()).unwrap();
                }
                outputs.extend(results.iter().zip(expected).map(|(y, e)| (golden, y.to(&device), e)));
            }
            with_fusion(fusion, || lazuli::eval(outputs.iter().map(|(_, y, _)| y))).unwrap();
            for (golden, y, e) in outputs {
                compared += 1;
                if let Some(difference) = unlisted(golden, &y, e, &mut needed) {
                    writeln!(report, "{} on {device}, fusion {fusion:?}: {difference}", golden.key).unwrap();
                }
            }
        }
    }
    let missing: Vec<&Golden> = cases.iter().filter(|case| !expected.contains_key(&case.key)).collect();
    println!("{compared} results compared");
    if !missing.is_empty() {
        // New or altered since PyTorch ran: for its next run, not a failure.
        let names: BTreeSet<&str> = missing.iter().map(|case| case.operation.name).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        eprintln!("{} cases are not in the results, and not checked, of {names}", missing.len());
    }
    assert!(report.is_empty(), "\n{report}");
    for row in DIFFERENCES {
        let is_needed = row.operations.iter().any(|name| needed.contains(name));
        let is_unchecked = missing.iter().any(|case| row.operations.contains(&case.operation.name));
        assert!(is_needed || is_unchecked, "no result of {:?} differs any more", row.operations);
    }
}

#[test]
fn tensors_survive_their_text() {
    for dtype in DType::ALL {
        let x = with_type!(dtype, T => spread::<T>(30, 1, false)).reshape([5, 6]);
        for x in [x.slice(0, 1..1), x.select(0, 0).select(0, 0), x] {
            let text = format!("{dtype} {} {}", shape_text(&x.shape().unwrap()), bits_text(&x));
            assert_eq!(mismatch(&parsed(&text), &x, Tolerance::Exact), None, "{text}");
        }
    }
}

#[test]
fn differences_name_operations() {
    for name in DIFFERENCES.iter().flat_map(|row| row.operations) {
        assert!(operations::all().any(|operation| operation.name == *name), "{name} is no operation");
    }
}

#[test]
fn the_documentation_shows_the_differences() {
    let mut page = "\n| operation | dtypes | which results | why |\n|---|---|---|---|\n".to_owned();
    for row in DIFFERENCES {
        let link = |name: &&str| format!("[`{name}`](crate::Tensor::{name})");
        let names: Vec<String> = row.operations.iter().map(link).collect();
        let dtypes: Vec<&str> = row.dtypes.iter().map(|dtype| dtype.name()).collect();
        let which = row.which.replace('|', "\\|");
        let reason = row.reason.replace('|', "\\|");
        writeln!(page, "| {} | {} | {which} | {reason} |", names.join(", "), dtypes.join(", ")).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/operations/differences.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&path, page).unwrap();
    } else {
        let shown = std::fs::read_to_string(&path).unwrap();
        assert!(shown == page, "run INSTA_UPDATE=always cargo test --test golden");
    }
}
