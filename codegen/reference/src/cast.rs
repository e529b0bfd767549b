//! Conversions between element types.

use half::slice::HalfFloatSliceExt;
use lazuli_codegen::DType;

use crate::scalar::map;
use crate::values::{Float, Int};
use crate::{Element, Values, with_type};

/// As Rust's `as`: floats to integers saturate and NaN becomes 0, integers wrap, floats round once.
///
/// ```
/// use lazuli_codegen::DType;
/// use lazuli_reference::{Values, cast};
/// assert_eq!(cast(&Values::F32(vec![-1.9, 300.7, f32::NAN]), DType::U8), Values::U8(vec![0, 255, 0]));
/// ```
pub fn cast(x: &Values, to: DType) -> Values {
    fn from_float<T: Float>(x: &[T], to: DType) -> Values {
        with_type!(to, U => U::wrap(map(x, |x| U::from_real(x.to_f64()))))
    }
    fn from_int<T: Copy>(x: &[T], to: DType, to_i64: fn(T) -> i64) -> Values {
        with_type!(to, U => U::wrap(map(x, |x| U::from_int(to_i64(x)))))
    }
    match x {
        Values::Bool(x) => from_int(x, to, i64::from),
        Values::U8(x) => from_int(x, to, Int::to_i64),
        Values::I8(x) => from_int(x, to, Int::to_i64),
        Values::I16(x) => from_int(x, to, Int::to_i64),
        Values::I32(x) => from_int(x, to, Int::to_i64),
        Values::U32(x) => from_int(x, to, Int::to_i64),
        Values::I64(x) => from_int(x, to, Int::to_i64),
        // All at once: each alone asks what the processor can do.
        Values::F16(x) => from_float(&x.to_f32_vec(), to),
        Values::BF16(x) => from_float(x, to),
        Values::F32(x) => from_float(x, to),
        Values::F64(x) => from_float(x, to),
    }
}
