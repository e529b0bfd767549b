use half::{bf16, f16};
use lazuli_codegen::{DType, Scalar};
use lazuli_reference::{Element, Values, cast};

/// Asserts equality to the sign of zero, with NaN equal to NaN.
#[track_caller]
fn same(actual: &[f64], expected: &[f64]) {
    assert_eq!(format!("{actual:?}"), format!("{expected:?}"));
}

#[test]
fn f64_rounds_to_16_bits_once() {
    // Just above halfway between 1 and the next f16; f32 would round it to halfway first.
    let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(<f16 as Element>::from_real(above), f16::from_f32(1.0 + 2f32.powi(-10)));
    let below = 1.0 + 3.0 * 2f64.powi(-11) - 2f64.powi(-40);
    assert_eq!(<f16 as Element>::from_real(below), f16::from_f32(1.0 + 2f32.powi(-10)));
    let halfway = 1.0 + 2f64.powi(-11);
    assert_eq!(<f16 as Element>::from_real(halfway), f16::ONE);
    let above = -1.0 - 2f64.powi(-8) - 2f64.powi(-50);
    assert_eq!(<bf16 as Element>::from_real(above), bf16::from_f32(-1.0 - 2f32.powi(-7)));
    let least = 2f64.powi(-24);
    assert_eq!(<f16 as Element>::from_real(least * 0.5), f16::ZERO);
    assert_eq!(<f16 as Element>::from_real(least * (0.5 + 1e-12)).to_bits(), 1);
    let least = 2f64.powi(-133);
    assert_eq!(<bf16 as Element>::from_real(least * 0.5).to_bits(), 0);
    assert_eq!(<bf16 as Element>::from_real(least * (0.5 + 1e-12)).to_bits(), 1);
}

#[test]
fn extremes_round_to_16_bits() {
    for (value, expected) in [
        (65519.999, 65504.0),
        (65520.0, f64::INFINITY),
        (1e300, f64::INFINITY),
        (f64::NEG_INFINITY, f64::NEG_INFINITY),
        (-1e-300, -0.0),
        (f64::NAN, f64::NAN),
    ] {
        same(&[<f16 as Element>::from_real(value).to_f64()], &[expected]);
    }
    for (value, expected) in [
        (f32::MAX as f64, f64::INFINITY),
        (3.39e38, bf16::MAX.to_f64()),
        (1e300, f64::INFINITY),
        (-1e-300, -0.0),
    ] {
        same(&[<bf16 as Element>::from_real(value).to_f64()], &[expected]);
    }
}

#[test]
fn every_16_bit_float_survives_f64() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    for dtype in [DType::F16, DType::BF16] {
        let all = Values::from_bytes(dtype, &bytes);
        let again = cast(&cast(&all, DType::F64), dtype);
        // To the sign of zero, with NaN equal to NaN.
        assert!(format!("{all:?}") == format!("{again:?}"), "{dtype}");
    }
}

#[test]
fn bytes_need_not_be_aligned() {
    let mut bytes = vec![0u8];
    bytes.extend([1.5f64, -2.0].iter().flat_map(|x| x.to_ne_bytes()));
    let values = Values::from_bytes(DType::F64, &bytes[1..]);
    assert_eq!(values, Values::F64(vec![1.5, -2.0]));
    assert_eq!(values.bytes(), &bytes[1..]);
}

#[test]
fn a_scalar_of_each_dtype() {
    for dtype in DType::ALL {
        let values = Values::filled(Scalar::from_i64(dtype, 1), 3);
        assert_eq!((values.len(), values.dtype()), (3, dtype));
        assert_eq!(values.bytes().len(), 3 * dtype.size());
    }
    assert_eq!(Values::filled(Scalar::from_i64(DType::I32, -5), 1), Values::I32(vec![-5]));
    assert_eq!(Values::filled(Scalar::from_f64(DType::F16, -0.5), 1), Values::F16(vec![f16::from_f32(-0.5)]));
}
