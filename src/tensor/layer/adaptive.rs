//! Pooling into a given number of windows.

use super::pool::{PerAxis, Pool, avg_pool, gcd, last, max_pool, not_bool};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::reduce::statistics::{along, widened};
use crate::tensor::view::rearrange::interleaved;
use crate::{Number, ReduceOp, Result, Shape, Tensor};

macro_rules! adaptive_methods {
    ($($max:ident, $avg:ident = $n:literal;)*) => {
        impl Tensor {
            $(
                #[doc = concat!(
                    "The largest element of each of so many windows as `size` says, which divide the last ",
                    stringify!($n), " dimension(s) as evenly as they can. Keeps the dtype.\n\nInvalid for `Bool` and \
                     where there is nothing to divide."
                )]
                ///
                /// ```
                /// use lazuli::Tensor;
                /// let x = Tensor::from_slice(&[1i32, 5, 2, 4, 3], [5]);
                /// assert_eq!(x.adaptive_max_pool1d(2).to_vec::<i32>()?, [5, 4]); // of 1 5 2, and of 2 4 3
                /// # Ok::<(), lazuli::Error>(())
                /// ```
                #[track_caller]
                pub fn $max(&self, size: impl Into<PerAxis<$n>>) -> Tensor {
                    let (call, size) = (Call::here(stringify!($max)), size.into());
                    call.composed(|| {
                        not_bool(call, self)?;
                        adaptive(call, self, size.0, true)
                    })
                }

                #[doc = concat!(
                    "The mean of each of so many windows as `size` says, which divide the last ", stringify!($n),
                    " dimension(s) as evenly as they can. Keeps the dtype.\n\nInvalid for integers and bools and \
                     where there is nothing to divide."
                )]
                ///
                /// ```
                /// use lazuli::Tensor;
                /// let x = Tensor::from_slice(&[1.0f32, 5.0, 3.0, 4.0, 2.0], [5]);
                /// assert_eq!(x.adaptive_avg_pool1d(2).to_vec::<f32>()?, [3.0, 3.0]);
                /// # Ok::<(), lazuli::Error>(())
                /// ```
                #[track_caller]
                pub fn $avg(&self, size: impl Into<PerAxis<$n>>) -> Tensor {
                    let (call, size) = (Call::here(stringify!($avg)), size.into());
                    call.composed(|| {
                        call.needs_float(self)?;
                        adaptive(call, self, size.0, false)
                    })
                }
            )*
        }
    };
}

adaptive_methods! {
    adaptive_max_pool1d, adaptive_avg_pool1d = 1;
    adaptive_max_pool2d, adaptive_avg_pool2d = 2;
    adaptive_max_pool3d, adaptive_avg_pool3d = 3;
}

/// Window i of an extent begins at `floor(i * extent / size)` and ends before `ceil((i + 1) * extent / size)`.
pub(super) fn adaptive<const N: usize>(
    call: Call,
    x: &Tensor,
    size: [usize; N],
    is_max: bool,
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let Some(first) = shape.rank().checked_sub(N) else {
        return call.fail(format!("needs at least {N} dimensions, got {dtype} {shape}"));
    };
    let extents: [usize; N] = std::array::from_fn(|d| shape[first + d]);
    if size.contains(&0) || extents.contains(&0) {
        return call
            .fail(format!("cannot divide the last {N} dimensions of shape {shape} into {size:?} windows: extents and sizes must be at least 1"));
    }
    let reduced = |x: &Tensor| if is_max { x.max(last::<N>()) } else { x.mean(last::<N>()) };
    let pooled: Shape = shape[..first].iter().copied().chain(size).collect();
    call.needs_addressable(&pooled)?;
    if size == [1; N] {
        return Ok(reduced(x).reshape(pooled));
    }
    if (0..N).all(|d| extents[d].is_multiple_of(size[d])) {
        let pool = Pool::<N>::new(std::array::from_fn(|d| extents[d] / size[d]));
        return if is_max { max_pool(call, x, &pool) } else { avg_pool(call, x, &pool) };
    }
    // Along narrow windows, of which a row has many, vectors go across them and one axis is pooled after the other: that
    // takes fewer elements. Along wide ones they go through the windows, all axes at once.
    let is_narrow = longest_window(extents[N - 1], size[N - 1]) <= size[N - 1];
    let pool = |x: &Tensor| match is_narrow {
        true => (0..N).try_fold(x.clone(), |x, d| pooled_along(call, &x, first + d, &size[d..=d], is_max)),
        false => pooled_along(call, x, first, &size, is_max),
    };
    match is_max {
        true => pool(x),
        false => widened(x, |x| Tensor::or_invalid(pool(x))),
    }
}

/// The windows along axes from one on: all of the longest lengths, then those that begin where they should; a position that
/// is no element of its window is masked.
fn pooled_along(call: Call, x: &Tensor, first: usize, size: &[usize], is_max: bool) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let (rank, end) = (shape.rank(), first + size.len());
    let extents = &shape[first..end];
    let longest: Vec<usize> =
        extents.iter().zip(size).map(|(&extent, &size)| longest_window(extent, size)).collect();
    let pooled = [&shape[..first], size, &shape[end..]].concat();
    call.needs_addressable(&pooled.into_iter().chain(longest.iter().copied()).collect())?;
    let mut border = vec![(0, 0); rank];
    longest.iter().enumerate().for_each(|(d, &length)| border[first + d] = (0, length - 1));
    let mut elements = x.pad(&border, 0);
    for (d, &length) in longest.iter().enumerate() {
        elements = elements.unfold((first + d) as isize, length, 1);
    }
    let lengths: Vec<Tensor> =
        extents.iter().zip(size).map(|(&extent, &size)| lengths(extent, size)).collect();
    let op = if is_max { ReduceOp::Max } else { ReduceOp::Sum };
    let edge = Number::of(op.identity(dtype));
    for (d, &size) in size.iter().enumerate() {
        let axis = first + d;
        let windows = interleaved(call, &elements, axis, size)?;
        elements = windows.slice_step(axis as isize, None, None, extents[d] as isize);
        let inside = counting(longest[d]).lt(lengths[d].unsqueeze(1));
        let mut dims = vec![1; rank + longest.len()];
        (dims[axis], dims[rank + d]) = (size, longest[d]);
        elements = inside.reshape(dims).where_(&elements, elements.full_like(edge));
    }
    let windows: Vec<isize> = (rank..rank + longest.len()).map(|axis| axis as isize).collect();
    if is_max {
        return Ok(elements.max(&windows));
    }
    let means =
        lengths.iter().zip(size).enumerate().fold(elements.sum(&windows), |sum, (d, (length, &size))| {
            sum / length.cast(dtype).reshape(along(rank, first + d, size))
        });
    Ok(means)
}

/// How many elements the windows have that divide an extent.
fn lengths(extent: usize, size: usize) -> Tensor {
    let (windows, extent, size) = (counting(size), extent as i64, size as i64);
    let end = ((&windows + 1) * extent + (size - 1)).floor_divide(size);
    end - (windows * extent).floor_divide(size)
}

/// The length of the longest of the windows that divide an extent.
fn longest_window(extent: usize, count: usize) -> usize {
    let (whole, rest) = (extent / count, extent % count);
    // Where a window begins within an element, it ends so much later.
    whole + usize::from(rest > 0) + usize::from(rest > gcd(rest, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_windows() {
        for (extent, count) in (1..20).flat_map(|extent| (1..25).map(move |count| (extent, count))) {
            let length = |i: usize| ((i + 1) * extent).div_ceil(count) - i * extent / count;
            let longest = (0..count).map(length).max().unwrap();
            assert_eq!(longest_window(extent, count), longest, "{extent} by {count}");
        }
    }
}
