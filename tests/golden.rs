//! What PyTorch gives: every row of the table of operations, with every dtype, on special values, broadcast, 0-d and
//! empty, compared with `tests/golden/results.txt.gz`, which `tests/golden/generate.py` has written with PyTorch.
//! `GOLDEN_CASES=path cargo test --test golden cases_are_written` writes the cases for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use common::data::{Sample, input};
use common::{Tolerance, mismatch};
use lazuli::operations::{self, Accuracy, Case, Elements, Operation};
use lazuli::{DType, Device, Fusion, Shape, Tensor, bf16, f16, with_fusion};

/// Where results differ from PyTorch's on purpose: the operation, the dtypes, how far, and why.
const DIFFERENCES: &[(&str, &[DType], Tolerance, &str)] = &[
    (
        "lerp",
        FLOATS,
        Tolerance::Near { relative: 1e-2, absolute: 1e-2 },
        "PyTorch contracts to a fused multiply-add",
    ),
    (
        "addcmul",
        HALVES,
        Tolerance::Near { relative: 2e-2, absolute: 1e-2 },
        "PyTorch rounds to 16 bits between the steps",
    ),
    (
        "addcdiv",
        HALVES,
        Tolerance::Near { relative: 2e-2, absolute: 1e-2 },
        "PyTorch rounds to 16 bits between the steps",
    ),
];

const FLOATS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64];
const HALVES: &[DType] = &[DType::F16, DType::BF16];

/// Operations whose integer division stops PyTorch's process, for zero or for the least integer by -1. Here both have
/// results; compared is the rest.
const DIVISIONS: [&str; 3] = ["floor_divide", "remainder", "fmod"];

/// Pairs of special values that are compared.
const PAIRS: usize = 256;

/// One call with its inputs.
struct Golden {
    key: String,
    operation: &'static Operation,
    case: &'static Case,
    dtype: DType,
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
                    let inputs =
                        (0..operation.inputs.len()).map(|n| made(operation, n, dtype, set)).collect();
                    let key = format!("{}/{number}/{dtype}/{set}", operation.name);
                    cases.push(Golden { key, operation, case, dtype, inputs });
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
    for Golden { key, operation, case, dtype, inputs: own } in cases() {
        let mut names = Vec::new();
        for (input, tensor) in operation.inputs.iter().zip(&own) {
            let fields = [
                tensor.dtype().unwrap().to_string(),
                shape_text(&tensor.shape().unwrap()),
                bits_text(tensor),
            ];
            let number = inputs.len();
            let number = *inputs.entry(fields.join("\t")).or_insert(number);
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
    let listed = DIFFERENCES
        .iter()
        .find(|(name, dtypes, ..)| *name == golden.operation.name && dtypes.contains(&golden.dtype));
    let is_16_bit = HALVES.contains(&result);
    match (listed, golden.operation.accuracy) {
        (Some((_, _, tolerance, _)), _) => *tolerance,
        _ if !result.is_float() => Tolerance::Exact,
        (None, Accuracy::Exact) => Tolerance::Exact,
        (None, Accuracy::Ulps(_)) if is_16_bit => Tolerance::Ulps(1),
        (None, Accuracy::Ulps(steps)) => Tolerance::Ulps(u64::from(steps) + 2),
        (None, Accuracy::Near { relative, absolute }) => {
            let info = result.finfo().unwrap();
            Tolerance::Near {
                relative: 2.0 * relative * info.eps,
                absolute: 2.0 * absolute * info.eps + info.smallest_subnormal,
            }
        }
    }
}

/// PyTorch's results by case; those that it refused are absent. Nothing, if the file is not there.
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
        (fields.next() == Some("result"))
            .then(|| (fields.next().unwrap().into(), fields.map(parsed).collect()))
    };
    Some(text.lines().filter_map(of_line).collect())
}

#[test]
fn results_are_pytorchs() {
    let Some(expected) = results() else { return };
    let cases = cases();
    let mut report = String::new();
    let mut compared = 0;
    let ways = [
        (Device::interpreter(), Fusion::On, &DType::ALL[..]),
        (Device::cpu(), Fusion::On, &DType::ALL),
        (Device::cpu(), Fusion::Off, &[DType::I32, DType::F16, DType::F32]),
        #[cfg(feature = "emulate")]
        (Device::cuda_emulated(), Fusion::On, &[DType::I16, DType::U8, DType::F32, DType::BF16]),
    ];
    for (device, fusion, dtypes) in ways {
        for (&dtype, set) in dtypes.iter().flat_map(|dtype| {
            ["special", "pairs", "broadcast", "0-d", "empty", "own"].map(|set| (dtype, set))
        }) {
            // One plan for all operations of a dtype on inputs of a shape.
            let chosen =
                cases.iter().filter(|case| case.dtype == dtype && case.key.ends_with(&format!("/{set}")));
            let mut outputs = Vec::new();
            for golden in chosen {
                let Some(expected) = expected.get(&golden.key) else { continue };
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
                let tolerance = tolerance(golden, e.dtype().unwrap());
                if let Some(difference) = mismatch(&y, e, tolerance) {
                    writeln!(report, "{} on {device}, fusion {fusion:?}: {difference}", golden.key).unwrap();
                }
            }
        }
    }
    println!("{compared} results compared");
    assert!(report.is_empty(), "\n{report}");
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
fn differences_name_operations_and_say_why() {
    for (name, dtypes, _, reason) in DIFFERENCES {
        assert!(operations::all().any(|operation| operation.name == *name), "{name} is no operation");
        assert!(!dtypes.is_empty() && reason.len() > 10, "{name}: {reason}");
    }
}
