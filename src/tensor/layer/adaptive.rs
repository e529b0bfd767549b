//! Pooling into a given number of windows.

use super::pool::{PerAxis, Pool, avg_pool, gcd, last, max_pool, not_bool};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::position::gather::selected_within;
use crate::tensor::position::scatter::scattered;
use crate::tensor::reduce::statistics::{along, widened};
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
    match is_max {
        true => largest(call, x, size.to_vec()),
        false => widened(x, |x| means(call, x, size.to_vec())),
    }
}

/// Along narrow windows, of which a row has many, vectors go across them and one axis is pooled after the other: that takes
/// fewer elements. Along wide ones they go through the windows, all axes at once.
fn pooled(
    x: &Tensor,
    size: &[usize],
    along: impl Fn(&Tensor, usize, &[usize]) -> Result<Tensor>,
) -> Result<Tensor> {
    let shape = x.known()?.0;
    let (first, count) = (shape.rank() - size.len(), size.len());
    let is_narrow = longest_window(shape[shape.rank() - 1], size[count - 1]) <= size[count - 1];
    match is_narrow {
        true => (0..count).try_fold(x.clone(), |x, d| along(&x, first + d, &size[d..=d])),
        false => along(x, first, size),
    }
}

/// Windows to windows: those of the result that an element is in are the ones that divide the result into as many as there are
/// elements. So what goes back is pooled as well, the other way.
fn means(call: Call, x: &Tensor, size: Vec<usize>) -> Tensor {
    let mean = pooled(x, &size, |x, first, size| {
        let sum = windows_along(call, x, first, size, 0.0)?.sum(behind(size.len()));
        Ok(shared(&sum, first, &x.node.shape[first..first + size.len()], size))
    });
    let extents = last_of(x, size.len());
    call.derived(&Tensor::or_invalid(mean), &[x], move |g, _| {
        let first = g.node.shape.rank() - size.len();
        Ok(vec![sums(call, &shared(g, first, &extents, &size), extents.clone())])
    })
}

fn sums(call: Call, x: &Tensor, size: Vec<usize>) -> Tensor {
    let sum = pooled(x, &size, |x, first, size| {
        Ok(windows_along(call, x, first, size, 0.0)?.sum(behind(size.len())))
    });
    let extents = last_of(x, size.len());
    call.derived(&Tensor::or_invalid(sum), &[x], move |g, _| Ok(vec![sums(call, g, extents.clone())]))
}

/// Sums of windows, divided by how many elements these have.
fn shared(sums: &Tensor, first: usize, extents: &[usize], size: &[usize]) -> Tensor {
    let (rank, dtype) = (sums.node.shape.rank(), sums.node.dtype);
    extents.iter().zip(size).enumerate().fold(sums.clone(), |sums, (d, (&extent, &size))| {
        sums / lengths(extent, size).cast(dtype).reshape(along(rank, first + d, size))
    })
}

/// Of equal elements the gradient is the first one's, as in PyTorch.
fn largest(call: Call, x: &Tensor, size: Vec<usize>) -> Result<Tensor> {
    let all = pooled(x, &size, |x, first, size| {
        Ok(windows_along(call, x, first, size, least(x))?.max(behind(size.len())))
    })?;
    let extents = last_of(x, size.len());
    Ok(call.derived(&all, &[x], move |g, all| {
        let [largest, x] = all else { return Ok(Vec::new()) };
        let first = x.node.shape.rank() - size.len();
        let apart = |x: &Tensor| size.iter().fold(x.clone(), |x, _| x.unsqueeze(-1));
        let windows = windows_along(call, x, first, &size, least(x))?;
        let places = windows_along(call, &places(&extents), 0, &size, -1.0)?;
        let is_largest = windows.eq(apart(largest)).logical_and(places.ge(0));
        let end = extents.iter().product::<usize>();
        let taken = is_largest.where_(places, end as i64).min(behind(size.len()));
        // Of NaN alone no element is the largest.
        let is_some = taken.lt(end as i64);
        let [g, taken] = [is_some.where_(g, 0.0), is_some.where_(taken, 0)].map(|x| x.flatten(first..));
        let sum = scattered(call, ReduceOp::Sum, &g, first, &taken, end)?;
        Ok(vec![sum.reshape(x.node.shape.clone())])
    }))
}

/// What is no more than any element.
pub(super) fn least(x: &Tensor) -> Number {
    Number::of(ReduceOp::Max.identity(x.node.dtype))
}

/// The extents of the last axes.
pub(super) fn last_of(x: &Tensor, count: usize) -> Vec<usize> {
    let shape = &x.node.shape;
    shape[shape.rank().saturating_sub(count)..].to_vec()
}

/// The numbers of elements.
pub(super) fn places(extents: &[usize]) -> Tensor {
    counting(extents.iter().product()).reshape(extents.to_vec())
}

/// The last axes, so many.
pub(super) fn behind(count: usize) -> Vec<isize> {
    (1..=count as isize).map(|back| -back).collect()
}

/// The windows along axes from one on, as last axes: all of the longest lengths, then those that begin where they should; a
/// position that is no element of its window is `edge`.
pub(super) fn windows_along(
    call: Call,
    x: &Tensor,
    first: usize,
    size: &[usize],
    edge: impl Into<Number>,
) -> Result<Tensor> {
    let edge = edge.into();
    let (shape, _) = x.known()?;
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
    for (d, &size) in size.iter().enumerate() {
        let axis = first + d;
        elements = selected_within(call, &elements, axis, &starts(extents[d], size))?;
        let inside = counting(longest[d]).lt(lengths(extents[d], size).unsqueeze(1));
        let mut dims = vec![1; rank + longest.len()];
        (dims[axis], dims[rank + d]) = (size, longest[d]);
        elements = inside.reshape(dims).where_(&elements, elements.full_like(edge));
    }
    Ok(elements)
}

/// Where the windows begin that divide an extent.
fn starts(extent: usize, size: usize) -> Tensor {
    (counting(size) * extent as i64).floor_divide(size as i64)
}

/// How many elements they have.
fn lengths(extent: usize, size: usize) -> Tensor {
    let ends = ((counting(size) + 1) * extent as i64 + (size as i64 - 1)).floor_divide(size as i64);
    ends - starts(extent, size)
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
