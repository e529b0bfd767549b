//! Rust types that tensors are made from and read into.

use std::fmt;

use half::{bf16, f16};

use crate::runtime::host;
use crate::{DType, Error, Result, Scalar};

/// A Rust type that is a tensor's element type: `bool`, `u8`, `i8`, `i16`, `i32`, `u32`, `i64`,
/// [`f16`](struct@f16), [`bf16`], `f32` or `f64`. Sealed: a tensor has no other elements.
///
/// ```
/// use lazuli::{DType, Element};
/// fn dtype_of<T: Element>(_: &[T]) -> DType {
///     T::DTYPE
/// }
/// assert_eq!(dtype_of(&[1u8, 2]), DType::U8);
/// assert_eq!(dtype_of(&[lazuli::f16::ONE]), DType::F16);
/// ```
pub trait Element: Copy + PartialEq + fmt::Debug + Send + Sync + 'static + sealed::Plain {
    /// The dtype of a tensor with these elements.
    const DTYPE: DType;
}

mod sealed {
    use crate::Scalar;

    /// Plain bytes without padding; not every pattern of bytes is a value (`bool`).
    pub trait Plain: bytemuck::NoUninit + bytemuck::CheckedBitPattern {
        fn to_scalar(self) -> Scalar;
    }
}

macro_rules! elements {
    ($($ty:ty = $dtype:ident, $to_scalar:expr;)*) => {$(
        impl sealed::Plain for $ty {
            fn to_scalar(self) -> Scalar {
                let to_scalar: fn($ty) -> Scalar = $to_scalar;
                to_scalar(self)
            }
        }
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    bool = Bool, Scalar::from_bool;
    u8 = U8, |value| Scalar::from_i64(DType::U8, value.into());
    i8 = I8, |value| Scalar::from_i64(DType::I8, value.into());
    i16 = I16, |value| Scalar::from_i64(DType::I16, value.into());
    i32 = I32, |value| Scalar::from_i64(DType::I32, value.into());
    u32 = U32, |value| Scalar::from_i64(DType::U32, value.into());
    i64 = I64, |value| Scalar::from_i64(DType::I64, value);
    f16 = F16, |value| Scalar::from_bits(DType::F16, value.to_bits().into());
    bf16 = BF16, |value| Scalar::from_bits(DType::BF16, value.to_bits().into());
    f32 = F32, |value| Scalar::from_bits(DType::F32, value.to_bits().into());
    f64 = F64, |value| Scalar::from_bits(DType::F64, value.to_bits());
}

/// The value with its dtype; keeps every bit.
pub(crate) fn to_scalar<T: Element>(value: T) -> Scalar {
    sealed::Plain::to_scalar(value)
}

/// The elements as they lie in memory.
pub(crate) fn to_bytes<T: Element>(elements: &[T]) -> &[u8] {
    bytemuck::cast_slice(elements)
}

/// The elements whose bytes these are.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Internal`] if the bytes are not whole elements, not aligned, or a `bool` that is neither 0 nor 1.
pub(crate) fn from_bytes<T: Element>(bytes: &[u8]) -> Result<Vec<T>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    match bytemuck::checked::try_cast_slice::<u8, T>(bytes) {
        Ok(elements) => {
            let mut copy = Vec::new();
            host::reserve(&mut copy, elements.len())?;
            copy.extend_from_slice(elements);
            Ok(copy)
        }
        Err(error) => {
            let message = format!("{} bytes are no {} elements: {error}", bytes.len(), T::DTYPE);
            Err(Error::internal("reading a buffer", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Element>(elements: &[T]) {
        assert_eq!(to_bytes(elements).len(), elements.len() * T::DTYPE.size());
        assert_eq!(from_bytes::<T>(to_bytes(elements)).unwrap(), elements);
    }

    #[test]
    fn elements_survive_their_bytes() {
        round_trip(&[true, false]);
        round_trip(&[0u8, 255]);
        round_trip(&[i8::MIN, -1, i8::MAX]);
        round_trip(&[i16::MIN, -1, i16::MAX]);
        round_trip(&[i32::MIN, -1, i32::MAX]);
        round_trip(&[0, 1, u32::MAX]);
        round_trip(&[i64::MIN, -1, i64::MAX]);
        round_trip(&[f16::MIN, f16::EPSILON, f16::INFINITY]);
        round_trip(&[bf16::MIN, bf16::EPSILON, bf16::INFINITY]);
        round_trip(&[f32::MIN, -0.0, f32::INFINITY]);
        round_trip(&[f64::MIN, -0.0, f64::INFINITY]);
        round_trip::<f32>(&[]);
    }

    #[test]
    fn scalars_keep_every_bit() {
        assert_eq!(to_scalar(true), Scalar::from_bool(true));
        assert_eq!(to_scalar(200u8).as_i64(), 200);
        assert_eq!(to_scalar(-7i32).as_i64(), -7);
        assert_eq!(to_scalar(i64::MIN).as_i64(), i64::MIN);
        assert_eq!(to_scalar(-0.0f32).to_bits(), 0x8000_0000);
        assert_eq!(to_scalar(f64::NAN).to_bits(), f64::NAN.to_bits());
        assert_eq!(to_scalar(f16::from_f32(0.5)).as_f64(), 0.5);
        assert_eq!(to_scalar(bf16::from_f32(0.5)).as_f64(), 0.5);
    }

    #[test]
    fn a_byte_that_is_no_bool_is_refused() {
        assert_eq!(from_bytes::<bool>(&[0, 1]).unwrap(), [false, true]);
        assert!(matches!(from_bytes::<bool>(&[0, 2]), Err(Error::Internal { .. })));
    }

    #[test]
    fn a_part_of_an_element_is_refused() {
        let bytes = [0u32; 2];
        assert!(from_bytes::<f32>(&bytemuck::cast_slice(&bytes)[..6]).is_err());
    }
}
