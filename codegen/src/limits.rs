//! What numbers a dtype holds: NumPy's and PyTorch's `finfo` and `iinfo`.

use half::{bf16, f16};

use crate::DType;

/// The limits of a float dtype: every number here is one of its own, exact in `f64`.
///
/// ```
/// use lazuli_codegen::DType;
/// let info = DType::F16.finfo().unwrap();
/// assert_eq!((info.bits, info.max, info.min), (16, 65504.0, -65504.0));
/// assert_eq!(DType::F32.finfo().unwrap().eps, f32::EPSILON.into());
/// assert_eq!(DType::I32.finfo(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct FloatInfo {
    /// Bits of one number.
    pub bits: u32,
    /// The distance from 1 to the next larger number.
    pub eps: f64,
    /// The least finite number.
    pub min: f64,
    /// The greatest finite number.
    pub max: f64,
    /// The least positive number with all its digits (`smallest_normal`).
    pub tiny: f64,
    /// The least positive number.
    pub smallest_subnormal: f64,
}

/// The limits of an integer dtype.
///
/// ```
/// use lazuli_codegen::DType;
/// let info = DType::I8.iinfo().unwrap();
/// assert_eq!((info.bits, info.min, info.max), (8, -128, 127));
/// assert_eq!(DType::Bool.iinfo(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IntInfo {
    /// Bits of one number.
    pub bits: u32,
    /// The least number.
    pub min: i64,
    /// The greatest number.
    pub max: i64,
}

impl DType {
    /// The limits of a float dtype; `None` for integers and `Bool`.
    pub fn finfo(self) -> Option<FloatInfo> {
        // Mantissa bits, least exponent of a normal number, greatest number.
        let (mantissa, exponent, max) = match self {
            DType::F16 => (10, -14, f16::MAX.to_f64()),
            DType::BF16 => (7, -126, bf16::MAX.to_f64()),
            DType::F32 => (23, -126, f32::MAX.into()),
            DType::F64 => (52, -1022, f64::MAX),
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
                return None;
            }
        };
        let tiny = 2f64.powi(exponent);
        let eps = 2f64.powi(-mantissa);
        let bits = 8 * self.size() as u32;
        Some(FloatInfo { bits, eps, min: -max, max, tiny, smallest_subnormal: tiny * eps })
    }

    /// The limits of an integer dtype; `None` for floats and `Bool`.
    pub fn iinfo(self) -> Option<IntInfo> {
        let (min, max) = match self {
            DType::U8 => (0, u8::MAX.into()),
            DType::I8 => (i8::MIN.into(), i8::MAX.into()),
            DType::I16 => (i16::MIN.into(), i16::MAX.into()),
            DType::I32 => (i32::MIN.into(), i32::MAX.into()),
            DType::U32 => (0, u32::MAX.into()),
            DType::I64 => (i64::MIN, i64::MAX),
            DType::Bool | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return None,
        };
        Some(IntInfo { bits: 8 * self.size() as u32, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_rusts() {
        let info = |dtype: DType| dtype.finfo().unwrap();
        assert_eq!((info(DType::F64).eps, info(DType::F64).tiny), (f64::EPSILON, f64::MIN_POSITIVE));
        assert_eq!(info(DType::F64).smallest_subnormal, f64::from_bits(1));
        assert_eq!(info(DType::F32).tiny, f32::MIN_POSITIVE.into());
        assert_eq!(info(DType::F32).smallest_subnormal, f32::from_bits(1).into());
        assert_eq!(info(DType::F16).eps, f16::EPSILON.to_f64());
        assert_eq!(info(DType::F16).smallest_subnormal, f16::MIN_POSITIVE_SUBNORMAL.to_f64());
        assert_eq!(info(DType::BF16).eps, bf16::EPSILON.to_f64());
        assert_eq!(info(DType::BF16).tiny, bf16::MIN_POSITIVE.to_f64());
    }

    #[test]
    fn every_dtype_but_bool_has_limits() {
        for dtype in DType::ALL {
            assert_eq!(dtype.finfo().is_some(), dtype.is_float(), "{dtype}");
            assert_eq!(dtype.iinfo().is_some(), dtype.is_int(), "{dtype}");
        }
    }
}
