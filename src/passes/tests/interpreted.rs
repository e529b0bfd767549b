//! Random graphs by the reference interpreter: the same bits before and after all passes.

use proptest::prelude::*;

use super::property::{Choice, choices, drawn};
use super::{all_passes, inputs, printed};
use crate::interpreter::evaluate;
use crate::{DType, Scalar};

fn check(dtype: DType, choices: &[Choice]) {
    let before = drawn(dtype, choices);
    let after = all_passes(&before);
    let bytes: Vec<Vec<u8>> = inputs(&before).iter().map(|values| bytes(values)).collect();
    let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let (expected, actual) = (evaluate(&before, &slices).unwrap(), evaluate(&after, &slices).unwrap());
    for (expected, actual) in expected.iter().zip(&actual) {
        let (expected, actual) = (scalars(expected.as_slice(), dtype), scalars(actual.as_slice(), dtype));
        let same = |(e, a): (&Scalar, &Scalar)| e == a || e.as_f64().is_nan() && a.as_f64().is_nan();
        assert!(
            expected.len() == actual.len() && expected.iter().zip(&actual).all(same),
            "{expected:?} became {actual:?}\nbefore:\n{}after:\n{}",
            printed(&before),
            printed(&after)
        );
    }
}

fn bytes(values: &[Scalar]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_bits().to_le_bytes().into_iter().take(x.dtype().size())).collect()
}

fn scalars(bytes: &[u8], dtype: DType) -> Vec<Scalar> {
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte));
    bytes.chunks_exact(dtype.size()).map(|chunk| Scalar::from_bits(dtype, bits(chunk))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bit_changes_in_f32(choices in choices()) {
        check(DType::F32, &choices);
    }

    #[test]
    fn no_bit_changes_in_f64(choices in choices()) {
        check(DType::F64, &choices);
    }

    #[test]
    fn no_bit_changes_in_i64(choices in choices()) {
        check(DType::I64, &choices);
    }
}
