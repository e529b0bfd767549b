//! Random numbers: Philox4x32-10 of the seed and the element index, nothing else.
//! J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

use half::{bf16, f16};
use lazuli_codegen::DType;

use crate::error::broken;
use crate::{Result, Values};

/// Uniform numbers in [0, 1): of a format with p bits of precision, multiples of 2^-p.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if the dtype is no float's.
///
/// ```
/// use lazuli_codegen::DType;
/// use lazuli_reference::uniform;
/// assert_eq!(uniform(7, 3, DType::F32), uniform(7, 3, DType::F32));
/// assert!(uniform(7, 3, DType::I32).is_err());
/// ```
pub fn uniform(seed: u64, count: usize, dtype: DType) -> Result<Values> {
    uniform_at(seed, 0..count as u64, dtype)
}

/// Those with these numbers.
pub(crate) fn uniform_at(seed: u64, indices: impl Iterator<Item = u64>, dtype: DType) -> Result<Values> {
    let key = [seed as u32, (seed >> 32) as u32];
    let words = indices.map(|index| philox([index as u32, (index >> 32) as u32, 0, 0], key));
    // Every one of these is exact.
    let top = |word: u32, bits: u32| (word >> (32 - bits)) as f32 / (1u32 << bits) as f32;
    Ok(match dtype {
        DType::F16 => Values::F16(words.map(|w| f16::from_f32(top(w[0], 11))).collect()),
        DType::BF16 => Values::BF16(words.map(|w| bf16::from_f32(top(w[0], 8))).collect()),
        DType::F32 => Values::F32(words.map(|w| top(w[0], 24)).collect()),
        DType::F64 => {
            let wide = |w: [u32; 4]| u64::from(w[0]) << 32 | u64::from(w[1]);
            Values::F64(words.map(|w| (wide(w) >> 11) as f64 / (1u64 << 53) as f64).collect())
        }
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            return Err(broken(format!("random numbers are floats, not {dtype}")));
        }
    })
}

/// Ten rounds over a counter.
///
/// ```
/// assert_ne!(lazuli_reference::philox([0; 4], [0; 2]), lazuli_reference::philox([0; 4], [1, 0]));
/// ```
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (low0, high0) = multiply(0xD251_1F53, counter[0]);
        let (low1, high1) = multiply(0xCD9E_8D57, counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// The low and the high half of a product.
fn multiply(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    (product as u32, (product >> 32) as u32)
}
