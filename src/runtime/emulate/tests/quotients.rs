//! Quotients by a shared reciprocal have the bits of divisions.

use lazuli_codegen::DType;
use lazuli_codegen::intrinsics::{Helpers, quotient};

use super::*;

/// Significands, as integers of 24 bits, whose quotient in units of its last place is `near / 2b` from where rounding changes:
/// `a * 2^shift - b * m = near`, where `m` is odd if it is a midpoint.
fn near_boundaries(b: u64, shift: u32, near: i64) -> Vec<u64> {
    let twos = b.trailing_zeros();
    if near.unsigned_abs().trailing_zeros() < twos {
        return Vec::new();
    }
    let odd = b >> twos;
    let half = odd.div_ceil(2);
    let inverse = (0..shift - twos).fold(1 % odd, |power, _| power * half % odd);
    let near = (near >> twos).rem_euclid(odd as i64) as u64;
    let least = inverse * near % odd;
    let first = least + ((1 << 23) - least.min(1 << 23)).div_ceil(odd) * odd;
    (first..1 << 24).step_by(odd as usize).collect()
}

fn pairs() -> Vec<(f32, f32)> {
    let mut pairs = Vec::new();
    // Every exponent with every other, and with zeros, infinities and NaN, which is among the last ones.
    let mut bits = 1u32;
    for a in 0..=255u32 {
        for b in 0..=255u32 {
            let mut number = |exponent: u32| {
                bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let sparse = if bits & 0x300 == 0 { 0 } else { bits >> 9 };
                f32::from_bits(exponent << 23 | sparse | bits << 31 & 0x8000_0000)
            };
            pairs.push((number(a), number(b)));
        }
    }
    let specials = [0.0, 1.0, 3.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::INFINITY, f32::NAN];
    let specials: Vec<f32> = specials.into_iter().flat_map(|x| [x, -x]).collect();
    pairs.extend(specials.iter().flat_map(|&a| specials.iter().map(move |&b| (a, b))));
    // One divisor in 1021 of those with 24 bits, and the largest.
    for b in (1u64 << 23..1 << 24).step_by(1021).chain([(1 << 24) - 1]) {
        for shift in [24, 25] {
            for near in (-8..=8).filter(|&near| near != 0) {
                pairs.extend(near_boundaries(b, shift, near).into_iter().map(|a| (a as f32, b as f32)));
            }
        }
    }
    pairs
}

#[test]
fn quotients_by_one_divisor_are_rounded_as_divisions_are() {
    let mut helpers = Helpers::new();
    let text = quotient(DType::F32, "x[i]", "d[i]", &mut helpers);
    let source = format!(
        "{}extern \"C\" __global__ void k(const float* x, const float* d, float* y, unsigned n) {{\n\
         for (unsigned i = threadIdx.x; i < n; i += blockDim.x) y[i] = {text};\n}}\n",
        helpers.text(lazuli_codegen::Language::Cuda)
    );
    let (x, d): (Vec<f32>, Vec<f32>) = pairs().into_iter().unzip();
    assert!(x.len() > 200_000, "{} pairs", x.len());
    let mut y = vec![0.0f32; x.len()];
    let (mut px, mut pd, mut py, mut n) = (x.as_ptr(), d.as_ptr(), y.as_mut_ptr(), x.len() as u32);
    run("k", &source, 1, 32, &mut [place(&mut px), place(&mut pd), place(&mut py), place(&mut n)]).unwrap();
    for ((a, b), got) in x.iter().zip(&d).zip(&y) {
        let expected = a / b;
        let is_same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
        assert!(is_same, "{a:e} / {b:e}: {got:e}, not {expected:e}");
    }
}
