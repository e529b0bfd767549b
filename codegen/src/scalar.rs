//! A constant of any dtype, compared and hashed by its bits.

use std::fmt;

use half::{bf16, f16};

use crate::DType;

/// A constant of a given dtype. Two scalars are equal if dtype and bits are: `-0.0 != 0.0`, and a
/// NaN equals itself, which is what a cache key needs.
///
/// ```
/// use lazuli_codegen::{DType, Scalar};
/// let half = Scalar::from_f64(DType::F32, 0.5);
/// assert_eq!(half.as_f64(), 0.5);
/// assert_ne!(Scalar::from_f64(DType::F32, 0.0), Scalar::from_f64(DType::F32, -0.0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scalar {
    dtype: DType,
    bits: u64,
}

impl Scalar {
    /// The value rounded to `dtype`, converted as Rust's `as` converts (saturating, NaN to 0).
    pub fn from_f64(dtype: DType, value: f64) -> Scalar {
        let bits = match dtype {
            DType::Bool => (value != 0.0) as u64,
            DType::U8 => value as u8 as u64,
            DType::I8 => value as i8 as u8 as u64,
            DType::I16 => value as i16 as u16 as u64,
            DType::I32 => value as i32 as u32 as u64,
            DType::U32 => value as u32 as u64,
            DType::I64 => value as i64 as u64,
            DType::F16 => f16::from_f32(round_to_odd(value)).to_bits() as u64,
            DType::BF16 => bf16::from_f32(round_to_odd(value)).to_bits() as u64,
            DType::F32 => (value as f32).to_bits() as u64,
            DType::F64 => value.to_bits(),
        };
        Scalar { dtype, bits }
    }

    /// The integer converted to `dtype` as Rust's `as` converts (integers wrap).
    pub fn from_i64(dtype: DType, value: i64) -> Scalar {
        let bits = match dtype {
            DType::Bool => (value != 0) as u64,
            DType::U8 => value as u8 as u64,
            DType::I8 => value as i8 as u8 as u64,
            DType::I16 => value as i16 as u16 as u64,
            DType::I32 => value as i32 as u32 as u64,
            DType::U32 => value as u32 as u64,
            DType::I64 => value as u64,
            DType::F32 => (value as f32).to_bits() as u64,
            DType::F16 => f16::from_f32(value as f32).to_bits() as u64,
            DType::BF16 => bf16::from_f32(value as f32).to_bits() as u64,
            DType::F64 => (value as f64).to_bits(),
        };
        Scalar { dtype, bits }
    }

    /// A `Bool`.
    pub fn from_bool(value: bool) -> Scalar {
        Scalar { dtype: DType::Bool, bits: value as u64 }
    }

    /// The element type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The value as f64: exact for everything but `I64` beyond 2^53.
    pub fn as_f64(self) -> f64 {
        match self.dtype {
            DType::Bool | DType::U8 | DType::U32 => self.bits as f64,
            DType::I8 => self.bits as i8 as f64,
            DType::I16 => self.bits as i16 as f64,
            DType::I32 => self.bits as i32 as f64,
            DType::I64 => self.bits as i64 as f64,
            DType::F16 => f16::from_bits(self.bits as u16).to_f64(),
            DType::BF16 => bf16::from_bits(self.bits as u16).to_f64(),
            DType::F32 => f32::from_bits(self.bits as u32) as f64,
            DType::F64 => f64::from_bits(self.bits),
        }
    }

    /// The value as i64; floats convert as Rust's `as` does.
    pub fn as_i64(self) -> i64 {
        match self.dtype {
            DType::Bool | DType::U8 | DType::U32 => self.bits as i64,
            DType::I8 => self.bits as i8 as i64,
            DType::I16 => self.bits as i16 as i64,
            DType::I32 => self.bits as i32 as i64,
            DType::I64 => self.bits as i64,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => self.as_f64() as i64,
        }
    }

    /// Whether the value is not zero.
    pub fn is_nonzero(self) -> bool {
        if self.dtype.is_float() { self.as_f64() != 0.0 } else { self.bits != 0 }
    }

    /// The bits, in the low [`DType::size`] bytes.
    pub fn to_bits(self) -> u64 {
        self.bits
    }

    /// The scalar with these bits (the low [`DType::size`] bytes count).
    pub fn from_bits(dtype: DType, bits: u64) -> Scalar {
        let width = dtype.size() * 8;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        Scalar { dtype, bits: bits & mask }
    }

    /// The scalar of which this is the text, as [`Display`](fmt::Display) gives it.
    ///
    /// ```
    /// use lazuli_codegen::{DType, Scalar};
    /// let third = Scalar::from_f64(DType::F32, 1.0 / 3.0);
    /// assert_eq!(Scalar::from_text(DType::F32, &third.to_string()), Some(third));
    /// assert_eq!(Scalar::from_text(DType::U8, "256"), None);
    /// ```
    pub fn from_text(dtype: DType, text: &str) -> Option<Scalar> {
        if dtype == DType::Bool {
            return text.parse().ok().map(Scalar::from_bool);
        }
        if !dtype.is_float() {
            let value = text.parse().ok()?;
            return Some(Scalar::from_i64(dtype, value)).filter(|scalar| scalar.as_i64() == value);
        }
        if let Some(bits) = text.strip_prefix("NaN(0x").and_then(|rest| rest.strip_suffix(')')) {
            let scalar = Scalar::from_bits(dtype, u64::from_str_radix(bits, 16).ok()?);
            return Some(scalar).filter(|scalar| scalar.as_f64().is_nan());
        }
        match dtype {
            DType::F32 => {
                text.parse().ok().map(|value: f32| Scalar::from_bits(dtype, value.to_bits().into()))
            }
            _ => text.parse().ok().map(|value| Scalar::from_f64(dtype, value)),
        }
    }

    /// Converted to `dtype` as Rust's `as` converts.
    pub fn cast(self, dtype: DType) -> Scalar {
        if dtype == self.dtype {
            self
        } else if self.dtype.is_float() {
            // Through f32 or f64 with one rounding: every f16, bf16 and f32 is exact in f64.
            Scalar::from_f64(dtype, self.as_f64())
        } else {
            Scalar::from_i64(dtype, self.as_i64())
        }
    }
}

/// The f32 from which rounding to a 16-bit float rounds `value` once: where `value` is not exact, the
/// neighbour whose last bit is odd. S. Boldo, G. Melquiond, IEEE Trans. Comput. 57(4), 2008.
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let is_exact = f64::from(nearest) == value || value.is_nan();
    match nearest.to_bits() {
        bits if is_exact || bits & 1 == 1 => nearest,
        bits if f64::from(nearest).abs() > value.abs() => f32::from_bits(bits - 1),
        bits => f32::from_bits(bits + 1),
    }
}

impl fmt::Display for Scalar {
    /// The shortest text that [`Scalar::from_text`] reads as the same bits. A NaN that is not the usual one shows them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            dtype if self.as_f64().is_nan() && *self != Scalar::from_f64(dtype, f64::NAN) => {
                write!(f, "NaN({:#x})", self.bits)
            }
            DType::Bool => write!(f, "{}", self.bits != 0),
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
                write!(f, "{}", self.as_i64())
            }
            DType::F32 => write!(f, "{:?}", f32::from_bits(self.bits as u32)),
            DType::F16 | DType::BF16 | DType::F64 => write!(f, "{:?}", self.as_f64()),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", self.dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_floats_are_rounded_once() {
        let above_half = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(Scalar::from_f64(DType::F16, above_half).as_f64(), 1.0 + 2f64.powi(-10));
        let above_half = 1.0 + 2f64.powi(-8) + 2f64.powi(-50);
        assert_eq!(Scalar::from_f64(DType::BF16, above_half).as_f64(), 1.0 + 2f64.powi(-7));
    }

    #[test]
    fn texts_have_every_bit() {
        for dtype in DType::ALL {
            let patterns =
                (0..64).flat_map(|shift| [1u64 << shift, u64::MAX << shift, 0x7fc0_1234_5678_9abd >> shift]);
            for bits in patterns.chain([0x7fc1, 0xffc0, 0x7fc0_0001, 0xffc0_0000, 0x3c00, 0x3f80]) {
                let bits = if dtype == DType::Bool { bits & 1 } else { bits };
                let scalar = Scalar::from_bits(dtype, bits);
                assert_eq!(Scalar::from_text(dtype, &scalar.to_string()), Some(scalar), "{dtype} {bits:#x}");
            }
        }
    }

    #[test]
    fn casts_saturate_and_wrap_as_rust_does() {
        assert_eq!(Scalar::from_f64(DType::F32, 1e20).cast(DType::I32).as_i64(), i64::from(i32::MAX));
        assert_eq!(Scalar::from_f64(DType::F32, f64::NAN).cast(DType::I64).as_i64(), 0);
        assert_eq!(Scalar::from_i64(DType::I64, 300).cast(DType::U8).as_i64(), 44);
    }
}
