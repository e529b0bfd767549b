//! Counter-based random numbers: a value depends on the seed and the element's index alone.
//!
//! Philox4x32-10: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011. The key is the seed, the counter is (index, 0): each index has a block of four words of its own, of which
//! the first two are used, word 0 as the upper half.

use super::Helpers;
use crate::{DType, Language};

/// The text of a value of `dtype` (`F32`, or `F64`) that is uniform in [0, 1), given the texts of a seed and of an
/// element index, which are converted to 64-bit unsigned integers. Equals [`philox_uniform_f32`] or
/// [`philox_uniform_f64`] bit for bit.
pub fn random_uniform(
    language: Language,
    dtype: DType,
    seed: &str,
    index: &str,
    helpers: &mut Helpers,
) -> String {
    let function = if dtype == DType::F64 { "lz_random_f64" } else { "lz_random_f32" };
    helpers.call(language, function, &[seed, index])
}

/// The text of an `F32` that is uniform in [0, 1), given the texts of a seed, of an element's index, and of a 32-bit distance
/// from there. Equals [`philox_uniform_f32`] bit for bit.
pub fn random_uniform_after(operands: [&str; 3], helpers: &mut Helpers) -> String {
    helpers.call(Language::C, "lz_random_after_f32", &operands)
}

/// Uniform in [0, 1): the top 24 bits of word 0.
///
/// ```
/// use lazuli_codegen::intrinsics::philox_uniform_f32;
/// assert_eq!(philox_uniform_f32(0, 0), (0x6627e8d5 >> 8) as f32 / (1 << 24) as f32);
/// ```
pub fn philox_uniform_f32(seed: u64, index: u64) -> f32 {
    (words(seed, index) >> 40) as f32 * (1.0 / (1u64 << 24) as f32)
}

/// Uniform in [0, 1): the top 53 bits of words 0 and 1. Its top 24 bits are those of [`philox_uniform_f32`].
pub fn philox_uniform_f64(seed: u64, index: u64) -> f64 {
    (words(seed, index) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

fn words(seed: u64, index: u64) -> u64 {
    let key = [seed as u32, (seed >> 32) as u32];
    let block = philox4x32_10([index as u32, (index >> 32) as u32, 0, 0], key);
    (block[0] as u64) << 32 | block[1] as u64
}

/// The block of Philox4x32-10 for a counter and a key.
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let p0 = 0xd251_1f53_u64 * c0 as u64;
        let p1 = 0xcd9e_8d57_u64 * c2 as u64;
        [c0, c1, c2, c3] = [(p1 >> 32) as u32 ^ c1 ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c3 ^ k1, p0 as u32];
        k0 = k0.wrapping_add(0x9e37_79b9);
        k1 = k1.wrapping_add(0xbb67_ae85);
    }
    [c0, c1, c2, c3]
}

#[cfg(test)]
mod tests {
    use super::philox4x32_10;

    /// Known-answer vectors that Random123 is distributed with.
    #[test]
    fn known_answers() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(
            philox4x32_10([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]
        );
        assert_eq!(
            philox4x32_10([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }
}
