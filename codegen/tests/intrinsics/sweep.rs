//! The errors of the functions of emitted C: over all of f32, and of f64 beside the C library's.

use lazuli_codegen::{BinaryOp, Language, UnaryOp};

use crate::c_library::CLibrary;
use crate::reference::{transcendental, ulps_f32};

/// The largest error, where it is, and how many results were looked at.
fn worst<X: Copy>(results: impl Iterator<Item = (X, f32, f64)>) -> (f64, Option<X>, usize) {
    let mut worst = (0.0, None, 0);
    for (x, got, expected) in results {
        let error = ulps_f32(got, expected);
        if error > worst.0 {
            (worst.0, worst.1) = (error, Some(x));
        }
        worst.2 += 1;
    }
    worst
}

#[test]
fn unary_functions_are_accurate_everywhere() {
    let Some(library) = CLibrary::get(Language::C) else { return };
    // The step is odd, so that the last bits vary; dense near 1 and 0.5, where logarithms and exponentials cancel.
    let bits = (0..=u32::MAX).step_by(997).chain((0x3e80_0000..0x4080_0000).step_by(37));
    let x: Vec<f32> = bits.map(f32::from_bits).collect();
    let mut failures = Vec::new();
    for (op, limit) in [
        (UnaryOp::Exp, 1.0),
        (UnaryOp::Exp2, 1.1),
        (UnaryOp::Expm1, 1.5),
        (UnaryOp::Log, 1.0),
        (UnaryOp::Log2, 0.6),
        (UnaryOp::Log10, 0.6),
        (UnaryOp::Log1p, 0.6),
        (UnaryOp::Sin, 1.0),
        (UnaryOp::Cos, 1.0),
        (UnaryOp::Tan, 1.0),
        (UnaryOp::Tanh, 1.5),
        (UnaryOp::Erf, 1.5),
        // The rounding of the square root counts twice beyond 1/2.
        (UnaryOp::Asin, 2.0),
        (UnaryOp::Acos, 1.5),
        (UnaryOp::Atan, 1.5),
        (UnaryOp::Sinh, 0.6),
        (UnaryOp::Cosh, 0.6),
        (UnaryOp::Asinh, 0.6),
        (UnaryOp::Acosh, 0.6),
        (UnaryOp::Atanh, 0.6),
        (UnaryOp::Cbrt, 0.6),
        (UnaryOp::Erfc, 0.6),
        (UnaryOp::Rsqrt, 1.5),
        (UnaryOp::Erfinv, 0.6),
        (UnaryOp::Digamma, 0.6),
        (UnaryOp::I0, 0.6),
    ] {
        let function = transcendental(op).unwrap();
        let got = library.run::<f32, f32>(&format!("{op}_f32"), &x, &x);
        let (error, at, count) = worst(x.iter().zip(got).map(|(x, got)| (*x, got, function(*x as f64))));
        println!("{:6} {error:.3} ulp at {at:?} of {count}", op.name());
        if error > limit {
            failures.push(format!("{op}: {error} ulp at {at:?}, more than {limit}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn binary_functions_are_accurate_everywhere() {
    let Some(library) = CLibrary::get(Language::C) else { return };
    let mut state = 1u64;
    let mut next = || {
        // D. E. Knuth's MMIX generator; the upper bits are good.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    let mut a = Vec::new();
    let mut b = Vec::new();
    for i in 0..2_000_000 {
        let (x, y) = (next(), next());
        // Any bits; then moderate numbers, whose powers are finite.
        let any = (f32::from_bits(x), f32::from_bits(y));
        let moderate = (x as f32 * 2e-9, (y as f32 - 2147483648.0) * 3e-8);
        let near_one = (1.0 + (x as f32 - 2147483648.0) * 1e-12, (y as f32 - 2147483648.0) * 1e-5);
        let pair = [any, moderate, near_one][i % 3];
        a.push(pair.0);
        b.push(pair.1);
    }
    for (op, function, limit) in [
        (BinaryOp::Pow, f64::powf as fn(f64, f64) -> f64, 1.0),
        (BinaryOp::Atan2, f64::atan2, 1.0),
        (BinaryOp::Hypot, f64::hypot, 0.6),
    ] {
        let got = library.run::<f32, f32>(&format!("{op}_f32"), &a, &b);
        let pairs = a.iter().copied().zip(b.iter().copied());
        let results = pairs.zip(got).map(|((a, b), got)| ((a, b), got, function(a as f64, b as f64)));
        let (error, at, count) = worst(results);
        println!("{:6} {error:.3} ulp at {at:?} of {count}", op.name());
        assert!(error <= limit, "{op}: {error} ulp at {at:?}");
    }
}

/// How many doubles one is from the other; 0 for two NaN.
fn distance(a: f64, b: f64) -> u64 {
    let order =
        |x: f64| if x.is_sign_negative() { -((x.to_bits() << 1 >> 1) as i128) } else { x.to_bits() as i128 };
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) => (order(a) - order(b)).unsigned_abs() as u64,
        _ => u64::MAX,
    }
}

/// Any bits, then numbers up to 30, and ones near 1.
fn doubles(count: usize, mut state: u64) -> Vec<f64> {
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let any = |x: f64, y: f64| f64::from_bits(((x * 4294967296.0) as u64) << 32 | (y * 4294967296.0) as u64);
    let number = |n: usize| {
        let (x, y) = (next(), next());
        match n % 4 {
            0 => any(x, y),
            1 => (x - 0.5) * 60.0,
            2 => (x - 0.5) * 60.0 * (-40.0 * y).exp2(),
            _ => (1.0 + (x - 0.5) * (-20.0 * y).exp2()) * if n % 8 == 3 { 1.0 } else { -1.0 },
        }
    };
    (0..count).map(number).collect()
}

#[test]
fn functions_of_doubles_are_accurate_everywhere() {
    let Some(library) = CLibrary::get(Language::C) else { return };
    let (x, y) = (doubles(400_000, 1), doubles(400_000, 2));
    let mut failures = Vec::new();
    let mut check = |name: &str, got: Vec<f64>, expected: Vec<f64>, limit: u64| {
        let distances = expected.iter().zip(&got).map(|(expected, got)| distance(*got, *expected));
        let (most, at) = distances.zip(0..).max().unwrap();
        println!("{name:6} {most} at {:e}, {:e}", x[at], y[at]);
        if most > limit {
            failures.push(format!(
                "{name}: {most} at {:e}, {:e}: {:e}, {:e}",
                x[at], y[at], got[at], expected[at]
            ));
        }
    };
    use UnaryOp::*;
    for op in [
        Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sin, Cos, Tan, Tanh, Erf, Asin, Acos, Atan, Sinh, Cosh,
        Asinh, Acosh, Atanh, Cbrt, Erfc,
    ] {
        let got = library.run::<f64, f64>(&format!("{op}_f64"), &x, &x);
        // The library's hyperbolic functions and erfc are up to two units off themselves.
        let limit = if op == Erfc { 5 } else { 3 };
        check(op.name(), got, x.iter().copied().map(transcendental(op).unwrap()).collect(), limit);
    }
    for (op, function, limit) in [
        (BinaryOp::Pow, f64::powf as fn(f64, f64) -> f64, 1),
        (BinaryOp::Atan2, f64::atan2, 2),
        (BinaryOp::Hypot, f64::hypot, 2),
    ] {
        let got = library.run::<f64, f64>(&format!("{op}_f64"), &x, &y);
        check(op.name(), got, x.iter().zip(&y).map(|(&x, &y)| function(x, y)).collect(), limit);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
