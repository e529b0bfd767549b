//! Every operation and cast at every dtype on special values, and conversions of the 16-bit floats.

use half::{bf16, f16};
use lazuli_codegen::intrinsics::{philox_uniform_f32, philox_uniform_f64};
use lazuli_codegen::{BinaryOp, DType, Language, ReduceOp, Scalar, UnaryOp};

use crate::c_library::{CLibrary, COMPUTE};
use crate::reference::{self, Expected, steps_f64, ulps_f32};

/// The errors of `Expected::Near` that special values may have.
const NEAR: f64 = 2.0;

const FLOATS: [f64; 45] = [
    0.0,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    3.5,
    7.0,
    10.0,
    64.0,
    88.72,
    89.0,
    103.9,
    104.5,
    127.0,
    127.5,
    128.0,
    149.0,
    150.0,
    254.9,
    255.0,
    255.5,
    256.0,
    65504.0,
    65520.0,
    1e5,
    16777215.0,
    16777217.0,
    2147483520.0,
    2147483647.0,
    2147483648.0,
    4294967296.0,
    9.2e18,
    9223372036854775808.0,
    1e30,
    1200.0,
    std::f64::consts::PI,
    std::f64::consts::LN_2,
    1e-5,
    1e-20,
    f64::INFINITY,
];
const INTEGERS: [i64; 24] = [
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    16,
    31,
    32,
    33,
    63,
    100,
    127,
    128,
    200,
    255,
    256,
    46341,
    65536,
    1 << 30,
    i32::MAX as i64,
    1 << 40,
    i64::MAX,
];

/// Special values of a dtype.
pub fn specials(dtype: DType) -> Vec<Scalar> {
    let mut values = Vec::new();
    match dtype {
        DType::Bool => values.extend([false, true].map(Scalar::from_bool)),
        DType::U8 => values.extend((0..256).map(|x| Scalar::from_i64(dtype, x))),
        DType::I8 => values.extend((-128..128).map(|x| Scalar::from_i64(dtype, x))),
        DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            let least = dtype.iinfo().unwrap().min;
            for x in INTEGERS {
                values.extend([x, -x].map(|x| Scalar::from_i64(dtype, x)));
            }
            values.extend([least, least + 1].map(|x| Scalar::from_i64(dtype, x)));
        }
        _ => {
            let single = [f32::MIN_POSITIVE, f32::from_bits(1), f32::from_bits(0x7fffff), f32::MAX];
            let double = [f64::MIN_POSITIVE, f64::from_bits(1), f64::MAX, 1.0 + f64::EPSILON];
            let extremes = single.into_iter().map(|x| x as f64).chain(double);
            for x in FLOATS.into_iter().chain(extremes) {
                values.extend([x, -x].map(|x| Scalar::from_f64(dtype, x)));
            }
            values.push(Scalar::from_f64(dtype, f64::NAN));
        }
    }
    values
}

/// Runs a loop on scalars, through the memory form of the dtypes.
pub fn run(library: &CLibrary, name: &str, a: &[Scalar], b: &[Scalar], result: DType) -> Vec<Scalar> {
    fn with<A: Copy>(
        library: &CLibrary,
        name: &str,
        a: &[Scalar],
        b: &[Scalar],
        result: DType,
        raw: fn(u64) -> A,
    ) -> Vec<Scalar> {
        let raws = |values: &[Scalar]| values.iter().map(|x| raw(x.to_bits())).collect::<Vec<A>>();
        let (a, b) = (raws(a), raws(b));
        let bits: Vec<u64> = match result.size() {
            1 => library.run::<A, u8>(name, &a, &b).into_iter().map(u64::from).collect(),
            2 => library.run::<A, u16>(name, &a, &b).into_iter().map(u64::from).collect(),
            4 => library.run::<A, u32>(name, &a, &b).into_iter().map(u64::from).collect(),
            _ => library.run::<A, u64>(name, &a, &b),
        };
        bits.into_iter().map(|bits| Scalar::from_bits(result, bits)).collect()
    }
    match a[0].dtype().size() {
        1 => with(library, name, a, b, result, |bits| bits as u8),
        2 => with(library, name, a, b, result, |bits| bits as u16),
        4 => with(library, name, a, b, result, |bits| bits as u32),
        _ => with(library, name, a, b, result, |bits| bits),
    }
}

/// Why a result is wrong, if it is.
fn compare(got: Scalar, expected: Expected) -> Option<String> {
    let is_nan = |x: Scalar| x.dtype().is_float() && x.as_f64().is_nan();
    let error = match expected {
        Expected::Exact(expected) if got == expected || is_nan(got) && is_nan(expected) => return None,
        Expected::Exact(expected) => return Some(format!("{got:?} instead of {expected:?}")),
        Expected::Near(expected) if got.dtype() == DType::F32 => ulps_f32(got.as_f64() as f32, expected),
        Expected::Near(expected) => steps_f64(got.as_f64(), expected),
    };
    (error > NEAR).then(|| format!("{got:?} instead of {expected:?}"))
}

#[test]
fn unary_operations_are_right_on_special_values() {
    let mut failures = Vec::new();
    for library in CLibrary::both() {
        for dtype in COMPUTE {
            let x = specials(dtype);
            for op in UnaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
                let got = run(library, &format!("{op}_{dtype}"), &x, &x, op.result(dtype));
                for (x, got) in x.iter().zip(got) {
                    let wrong = compare(got, reference::unary(op, *x));
                    if let Some(wrong) = wrong.filter(|_| !near_a_zero(op, *x, got, 4.0)) {
                        failures.push(format!("{}: {op}({x:?}) is {wrong}", library.language));
                        break;
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn declarations_say_what_the_references_compute() {
    let mut failures = Vec::new();
    for dtype in COMPUTE {
        let values = specials(dtype);
        for op in UnaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            for x in &values {
                let got = op.apply(*x).unwrap();
                let wrong = compare(got, reference::unary(op, *x));
                // Both are sums in f64: they may round to either side.
                let wrong = wrong.filter(|_| !near_a_zero(op, *x, got, 8.0));
                failures.extend(wrong.map(|wrong| format!("{op}({x:?}) is {wrong}")));
            }
        }
        for op in BinaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
                let wrong = compare(op.apply(*a, *b).unwrap(), reference::binary(op, *a, *b));
                failures.extend(wrong.map(|wrong| format!("{op}({a:?}, {b:?}) is {wrong}")));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Some have zeros between numbers, where only the absolute error is small, and others are sums of many terms on both
/// sides: in double precision nothing hides that.
fn near_a_zero(op: UnaryOp, x: Scalar, got: Scalar, units: f64) -> bool {
    let Expected::Near(expected) = reference::unary(op, x) else { return false };
    let error = (got.as_f64() - expected).abs();
    matches!(op, UnaryOp::Digamma | UnaryOp::Lgamma | UnaryOp::I0)
        && x.dtype() == DType::F64
        && error <= units * f64::EPSILON * expected.abs().max(1.0)
}

#[test]
fn binary_operations_are_right_on_special_values() {
    for library in CLibrary::both() {
        for dtype in COMPUTE {
            let values = specials(dtype);
            let a: Vec<Scalar> = values.iter().flat_map(|a| values.iter().map(|_| *a)).collect();
            let b: Vec<Scalar> = values.iter().flat_map(|_| values.iter().copied()).collect();
            for op in BinaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
                let got = run(library, &format!("{op}_{dtype}"), &a, &b, op.result(dtype));
                for ((a, b), got) in a.iter().zip(&b).zip(got) {
                    if let Some(wrong) = compare(got, reference::binary(op, *a, *b)) {
                        panic!("{}: {op}({a:?}, {b:?}) is {wrong}", library.language);
                    }
                }
            }
        }
    }
}

#[test]
fn casts_convert_as_scalars_do() {
    for library in CLibrary::both() {
        for from in COMPUTE {
            let mut x = specials(from);
            if from == DType::F64 {
                // Next to the middle between two numbers of f16, and of bf16: rounding through f32 would go wrong.
                for half in [f16::from_f32(1.0).to_f64() + 2f64.powi(-11), 1.0 + 2f64.powi(-8)] {
                    x.extend([-1.0, 0.0, 1.0].map(|e| Scalar::from_f64(from, half + e * 2f64.powi(-40))));
                }
            }
            for to in DType::ALL {
                if library.language == Language::Cuda && matches!(to, DType::F16 | DType::BF16) {
                    continue;
                }
                let got = run(library, &format!("cast_{from}_{to}"), &x, &x, to.compute());
                for (x, got) in x.iter().zip(got) {
                    let expected = match (from, to) {
                        (DType::F64, DType::F16 | DType::BF16) => nearest(to, x.as_f64()),
                        _ => x.cast(to).cast(to.compute()),
                    };
                    if let Some(wrong) = compare(got, Expected::Exact(expected)) {
                        panic!("{}: {x:?} cast to {to} is {wrong}", library.language);
                    }
                }
            }
        }
    }
}

/// The number of a 16-bit dtype nearest to `x`, as a float. The neighbours of a good guess are compared with `x`: the
/// conversions of `half` from f64 do not look at every bit.
fn nearest(dtype: DType, x: f64) -> Scalar {
    let guess = Scalar::from_f64(dtype, x);
    let value = |bits: &u64| Scalar::from_bits(dtype, *bits).as_f64();
    if guess.as_f64() == 0.0 || !guess.as_f64().is_finite() {
        return guess.cast(DType::F32);
    }
    let bits = guess.to_bits();
    let best = [bits - 1, bits, bits + 1]
        .into_iter()
        .min_by(|p, q| {
            let distance = |bits| (value(bits) - x).abs();
            distance(p).total_cmp(&distance(q)).then((p & 1).cmp(&(q & 1)))
        })
        .unwrap();
    Scalar::from_bits(dtype, best).cast(DType::F32)
}

#[test]
fn reductions_start_from_their_neutral_element() {
    for library in CLibrary::both() {
        for dtype in COMPUTE {
            let x = specials(dtype);
            for op in ReduceOp::ALL.into_iter().filter(|op| op.is_plain() && op.accepts(dtype)) {
                let got = run(library, &format!("reduce_{op}_{dtype}"), &x, &x, dtype);
                for (x, got) in x.iter().zip(got) {
                    // The sum starts from +0, which swallows the sign of -0.
                    let zero =
                        op != ReduceOp::Prod && dtype.is_float() && x.as_f64() == 0.0 && got.as_f64() == 0.0;
                    if let Some(wrong) = compare(got, Expected::Exact(*x)).filter(|_| !zero) {
                        panic!("{}: {op} of {x:?} alone is {wrong}", library.language);
                    }
                }
            }
        }
    }
}

#[test]
fn loads_of_16_bit_floats_are_exact() {
    let Some(library) = CLibrary::get(Language::C) else { return };
    check_loads_of_16_bit_floats(library);
}

pub fn check_loads_of_16_bit_floats(library: &CLibrary) {
    let every: Vec<u16> = (0..=u16::MAX).collect();
    for (name, convert) in [
        ("load_f16", (|h| f16::from_bits(h).to_f32()) as fn(u16) -> f32),
        ("load_bf16", |h| bf16::from_bits(h).to_f32()),
    ] {
        for (h, got) in every.iter().zip(library.run::<u16, f32>(name, &every, &every)) {
            let expected = convert(*h);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{name} of {h:#06x} is {got:?} instead of {expected:?}");
        }
    }
}

/// To the bits of a 16-bit float, and back.
type Conversions = (fn(f32) -> u16, fn(u16) -> f32);

#[test]
fn stores_of_16_bit_floats_round_half_to_even() {
    let Some(library) = CLibrary::get(Language::C) else { return };
    check_stores_of_16_bit_floats(library);
}

pub fn check_stores_of_16_bit_floats(library: &CLibrary) {
    // Every pattern of the upper half, with the lower halves that decide about rounding; and a sweep.
    let upper = (0..=u16::MAX as u32).map(|upper| upper << 16);
    let mut bits: Vec<u32> = upper
        .flat_map(|upper| {
            [0, 1, 0x0fff, 0x1000, 0x1001, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff]
                .map(|low| upper | low)
        })
        .collect();
    bits.extend((0..=u32::MAX).step_by(997));
    let f16s: Conversions = (|x| f16::from_f32(x).to_bits(), |h| f16::from_bits(h).to_f32());
    let bf16s: Conversions = (|x| bf16::from_f32(x).to_bits(), |h| bf16::from_bits(h).to_f32());
    for (name, (convert, load)) in [("store_f16", f16s), ("store_bf16", bf16s)] {
        for (x, got) in bits.iter().zip(library.run::<u32, u16>(name, &bits, &bits)) {
            let expected = convert(f32::from_bits(*x));
            let same = got == expected || load(got).is_nan() && load(expected).is_nan();
            assert!(same, "{name} of {x:#010x} is {got:#06x} instead of {expected:#06x}");
        }
        // A cast rounds to the same number, and leaves it a float.
        let dtype = name.trim_start_matches("store_");
        let stored = bits.iter().map(|x| convert(f32::from_bits(*x)));
        for ((x, stored), got) in
            bits.iter().zip(stored).zip(library.run::<u32, f32>(&format!("cast_f32_{dtype}"), &bits, &bits))
        {
            let expected = load(stored);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{x:#010x} cast to {dtype} is {got:?} instead of {expected:?}");
        }
    }
}

#[test]
fn random_numbers_are_those_of_the_reference() {
    for library in CLibrary::both() {
        let seeds = [0, 1, 42, 0x0123_4567_89ab_cdef, u64::MAX];
        let indices = [0, 1, 2, 1000, u32::MAX as u64, 1 << 32, (1 << 40) + 7, u64::MAX];
        let seed: Vec<u64> = seeds.iter().flat_map(|seed| [*seed; 8]).collect();
        let index: Vec<u64> = indices.repeat(seeds.len());
        let single = library.run::<u64, f32>("random_f32", &seed, &index);
        let double = library.run::<u64, f64>("random_f64", &seed, &index);
        for (i, (seed, index)) in seed.into_iter().zip(index).enumerate() {
            assert_eq!(single[i], philox_uniform_f32(seed, index), "seed {seed}, index {index}");
            assert_eq!(double[i], philox_uniform_f64(seed, index), "seed {seed}, index {index}");
        }
    }
}
