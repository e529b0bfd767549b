//! Elements at an affine function of the result's index, and within others.

use std::ops::Range;

use lazuli_codegen::Scalar;
use smallvec::SmallVec;

use crate::error::broken;
use crate::extents::{elements, strides};
use crate::values::for_any;
use crate::{Element, Result, Values};

/// The elements at `base + index · strides`, for every index within the extents, row-major.
///
/// ```
/// use lazuli_reference::{Values, strided};
/// let flipped = strided(&Values::I32(vec![0, 1, 2]), 2, &[3], &[-1]);
/// assert_eq!(flipped, Values::I32(vec![2, 1, 0]));
/// ```
pub fn strided(x: &Values, base: i64, extents: &[usize], strides: &[i64]) -> Values {
    for_any!(x, x => Element::wrap(gather(x, base, extents, strides)))
}

/// The elements at `base + index · strides`, for every index within the extents, row-major.
pub(crate) fn gather<T: Copy>(x: &[T], base: i64, extents: &[usize], strides: &[i64]) -> Vec<T> {
    if extents.contains(&0) {
        return Vec::new();
    }
    let mut result = Vec::with_capacity(extents.iter().product());
    let (inner, outer) = extents.split_last().map_or((1, extents), |(&inner, outer)| (inner, outer));
    let step = strides.last().copied().unwrap_or(1);
    for_each_offset(base, outer, strides, |start| match step {
        1 => result.extend_from_slice(&x[row(start, inner)]),
        0 => result.extend(std::iter::repeat_n(x[start as usize], inner)),
        _ => result.extend((0..inner as i64).map(|k| x[(start + k * step) as usize])),
    });
    result
}

fn row(start: i64, len: usize) -> Range<usize> {
    start as usize..start as usize + len
}

/// Calls `visit` with `base + index · strides` for every index within the extents, row-major.
fn for_each_offset(base: i64, extents: &[usize], strides: &[i64], mut visit: impl FnMut(i64)) {
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, extents.len());
    let mut offset = base;
    loop {
        visit(offset);
        let mut axis = extents.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < extents[axis] {
                break;
            }
            offset -= strides[axis] * extents[axis] as i64;
            index[axis] = 0;
        }
    }
}

/// The elements with those of x, of the extents `from`, after so many along each axis, and the value everywhere else.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if the value is of another dtype.
///
/// ```
/// use lazuli_codegen::{DType, Scalar};
/// use lazuli_reference::{Values, pad};
/// let padded = pad(&Values::U8(vec![1, 2]), &[2], &[4], &[1], Scalar::from_i64(DType::U8, 9));
/// assert_eq!(padded, Ok(Values::U8(vec![9, 1, 2, 9])));
/// ```
pub fn pad(x: &Values, from: &[usize], to: &[usize], before: &[usize], value: Scalar) -> Result<Values> {
    if value.dtype() != x.dtype() {
        return Err(broken(format!("{} padded with {}", x.dtype(), value.dtype())));
    }
    let strides: SmallVec<[i64; 6]> = strides(to).iter().map(|&stride| stride as i64).collect();
    let base = before.iter().zip(&strides).map(|(&before, stride)| before as i64 * stride).sum();
    fn place<T: Element>(x: &[T], from: &[usize], base: i64, strides: &[i64], mut result: Vec<T>) -> Values {
        let (inner, outer) = from.split_last().map_or((1, from), |(&inner, outer)| (inner, outer));
        if !x.is_empty() {
            let mut rows = x.chunks_exact(inner);
            for_each_offset(base, outer, strides, |start| {
                if let Some(source) = rows.next() {
                    result[row(start, inner)].copy_from_slice(source);
                }
            });
        }
        T::wrap(result)
    }
    let count = elements(to);
    Ok(for_any!(x, x => {
        let around = vec![Element::from_low_bits(value.to_bits()); count];
        place(x, from, base, &strides, around)
    }))
}
