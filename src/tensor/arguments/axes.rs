//! How users name axes and extents.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use smallvec::SmallVec;

use crate::Shape;

/// Which axes an operation works on: all (`..` or `()`), one integer, or a list of integers. Negative axes
/// count from the end. An empty list is no axis at all.
///
/// ```
/// use lazuli::{DType, Shape, Tensor};
/// let x = Tensor::zeros([2, 3, 4], DType::F32);
/// assert_eq!(x.sum(..).shape()?, Shape::scalar());
/// assert_eq!(x.sum(-1).shape()?, Shape::from([2, 3]));
/// assert_eq!(x.sum([0, 2]).shape()?, Shape::from([3]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Axes(pub(crate) AxesKind);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AxesKind {
    All,
    List(SmallVec<[isize; 6]>),
}

/// Extents, axes or shifts: one integer of any of the usual types or a list, some with a meaning below 0: see
/// [`Tensor::reshape`](crate::Tensor::reshape), [`Tensor::expand`](crate::Tensor::expand) and
/// [`Tensor::permute`](crate::Tensor::permute).
///
/// ```
/// use lazuli::{DType, Dims, Shape, Tensor};
/// let x = Tensor::zeros([2, 3, 4], DType::F32);
/// assert_eq!(x.reshape([6, -1]).shape()?, Shape::from([6, 4]));
/// assert_eq!(x.reshape(Shape::from([24])).shape()?, Shape::from([24]));
/// assert_eq!(Dims::from([6, -1]), Dims::from(vec![6isize, -1]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dims(pub(crate) SmallVec<[isize; 6]>);

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Axes {
        Axes(AxesKind::All)
    }
}

impl From<()> for Axes {
    fn from(_: ()) -> Axes {
        Axes(AxesKind::All)
    }
}

impl From<&Shape> for Dims {
    fn from(shape: &Shape) -> Dims {
        Dims::from(&shape[..])
    }
}

impl From<Shape> for Dims {
    fn from(shape: Shape) -> Dims {
        Dims::from(&shape)
    }
}

/// A part of an axis, or some neighbouring axes: a Rust range of integers of any of the usual types. Negative bounds count from
/// the end. Where nothing else says its type, a number in the text of a program is an `i32` in Rust, and one beyond 2^31 does not compile:
/// write such as `2_499_999_995i64`.
///
/// ```
/// use lazuli::Tensor;
/// let (x, steps) = (Tensor::arange(0, 6, 1), [2usize, 3]);
/// assert_eq!(x.slice(0, steps[0]..steps[1]).to_vec::<i32>()?, [2]);
/// assert_eq!(x.slice(0, ..=1i64).to_vec::<i32>()?, [0, 1]);
/// assert_eq!(x.slice(0, -1..).to_vec::<i32>()?, [5]);
/// assert_eq!(x.slice(0, 4..2_499_999_995i64).to_vec::<i32>()?, [4, 5]);
/// assert_eq!(x.slice(0, 4u64..u64::MAX).to_vec::<i32>()?, [4, 5]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// As Python writes them: the end exclusive, and nothing for what is open.
    pub(crate) start: Option<isize>,
    pub(crate) end: Option<isize>,
}

impl From<RangeFull> for Bounds {
    fn from(_: RangeFull) -> Bounds {
        Bounds { start: None, end: None }
    }
}

/// Integers beyond `isize` become the largest, which no axis and no extent can be.
macro_rules! from_integers {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Axes {
            fn from(axis: $ty) -> Axes {
                Axes::from([axis])
            }
        }

        impl From<&[$ty]> for Axes {
            fn from(axes: &[$ty]) -> Axes {
                Axes(AxesKind::List(Dims::from(axes).0))
            }
        }

        impl From<$ty> for Dims {
            fn from(dim: $ty) -> Dims {
                Dims::from([dim])
            }
        }

        impl From<&[$ty]> for Dims {
            fn from(dims: &[$ty]) -> Dims {
                Dims(dims.iter().map(|&dim| isize::try_from(dim).unwrap_or(isize::MAX)).collect())
            }
        }

        from_integers!(@lists $ty, Axes, Dims);
    )*};
    (@lists $ty:ty, $($target:ty),*) => {$(
        impl<const N: usize> From<[$ty; N]> for $target {
            fn from(list: [$ty; N]) -> $target {
                <$target>::from(&list[..])
            }
        }

        impl<const N: usize> From<&[$ty; N]> for $target {
            fn from(list: &[$ty; N]) -> $target {
                <$target>::from(&list[..])
            }
        }

        impl From<Vec<$ty>> for $target {
            fn from(list: Vec<$ty>) -> $target {
                <$target>::from(&list[..])
            }
        }

        impl From<&Vec<$ty>> for $target {
            fn from(list: &Vec<$ty>) -> $target {
                <$target>::from(&list[..])
            }
        }
    )*};
}
from_integers!(i32, i64, isize, usize);

/// Integers beyond `isize` become the largest, which is beyond every axis.
macro_rules! from_ranges {
    ($($ty:ty),*) => {$(
        from_ranges!(@of $ty, Range<$ty>, RangeFrom<$ty>, RangeTo<$ty>, RangeInclusive<$ty>, RangeToInclusive<$ty>);
        from_ranges!(@of $ty, (Bound<$ty>, Bound<$ty>));
    )*};
    (@of $ty:ty, $($range:ty),*) => {$(
        impl From<$range> for Bounds {
            fn from(range: $range) -> Bounds {
                let bound = |bound: Bound<&$ty>| bound.map(|&at| isize::try_from(at).unwrap_or(isize::MAX));
                python_bounds(bound(RangeBounds::<$ty>::start_bound(&range)), bound(range.end_bound()))
            }
        }
    )*};
}
from_ranges!(i32, i64, isize, u32, u64, usize);

/// The bounds of a Rust range as Python writes them.
fn python_bounds(start: Bound<isize>, end: Bound<isize>) -> Bounds {
    let start = match start {
        Bound::Included(start) => Some(start),
        Bound::Excluded(-1) => Some(isize::MAX),
        Bound::Excluded(start) => Some(start.saturating_add(1)),
        Bound::Unbounded => None,
    };
    let end = match end {
        Bound::Excluded(end) => Some(end),
        Bound::Included(-1) => None,
        Bound::Included(end) => Some(end.saturating_add(1)),
        Bound::Unbounded => None,
    };
    Bounds { start, end }
}

/// Python's `[start:end:step]` on a dimension: the first position, the step and the number of positions.
/// `step` is not 0.
pub(crate) fn resolve_slice(
    extent: usize,
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
) -> (usize, isize, usize) {
    let (length, step) = (extent as i128, step as i128);
    // Where positions may stand: one past either end is allowed only where a walk stops.
    let (lowest, highest) = if step < 0 { (-1, length - 1) } else { (0, length) };
    let position = |index: isize| {
        let index = index as i128;
        (if index < 0 { index + length } else { index }).clamp(lowest, highest.max(lowest))
    };
    let first = start.map_or(if step < 0 { highest } else { lowest }, position);
    let stop = end.map_or(if step < 0 { lowest } else { highest }, position);
    let distance = if step < 0 { first - stop } else { stop - first };
    if distance <= 0 {
        return (0, 1, 0);
    }
    let count = (distance - 1) / step.abs() + 1;
    // A single position has no step, so that no odd step outlives it.
    (first as usize, if count == 1 { 1 } else { step as isize }, count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::wild;
    use proptest::prelude::*;

    /// Taken from CPython: `list(range(extent))[start:end:step]`.
    #[test]
    fn slices_are_pythons() {
        type Case = (usize, Option<isize>, Option<isize>, isize, &'static [usize]);
        let cases: [Case; 20] = [
            (5, None, None, 1, &[0, 1, 2, 3, 4]),
            (5, Some(1), Some(-1), 1, &[1, 2, 3]),
            (5, Some(-2), None, 1, &[3, 4]),
            (5, None, Some(-2), 1, &[0, 1, 2]),
            (5, Some(-9), Some(2), 1, &[0, 1]),
            (5, Some(3), Some(99), 1, &[3, 4]),
            (5, Some(7), Some(9), 1, &[]),
            (5, Some(3), Some(1), 1, &[]),
            (5, None, None, 2, &[0, 2, 4]),
            (5, Some(1), None, 3, &[1, 4]),
            (5, Some(1), Some(4), 3, &[1]),
            (5, None, None, -1, &[4, 3, 2, 1, 0]),
            (5, None, None, -2, &[4, 2, 0]),
            (5, Some(3), Some(0), -1, &[3, 2, 1]),
            (5, Some(99), Some(-9), -3, &[4, 1]),
            (5, Some(-9), Some(9), -1, &[]),
            (5, Some(1), None, -1, &[1, 0]),
            (5, None, Some(2), isize::MIN, &[4]),
            (0, None, None, 1, &[]),
            (0, None, None, -1, &[]),
        ];
        for (extent, start, end, step, expected) in cases {
            let (first, stride, count) = resolve_slice(extent, start, end, step);
            let positions: Vec<usize> =
                (0..count).map(|i| (first as isize + stride * i as isize) as usize).collect();
            assert_eq!(positions, expected, "range({extent})[{start:?}:{end:?}:{step}]");
        }
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "a slice to -1 ends before the last, as in Python")]
    fn rust_ranges_become_python_bounds() {
        fn bounds(range: impl Into<Bounds>) -> (Option<isize>, Option<isize>) {
            let Bounds { start, end } = range.into();
            (start, end)
        }
        assert_eq!(bounds(1usize..), (Some(1), None));
        assert_eq!(bounds(-3i64..usize::MAX as i64), (Some(-3), Some(-1)));
        assert_eq!(bounds(..usize::MAX), (None, Some(isize::MAX)));
        assert_eq!(bounds(..), (None, None));
        assert_eq!(bounds(1..3), (Some(1), Some(3)));
        assert_eq!(bounds(..=3), (None, Some(4)));
        assert_eq!(bounds(2..=-1), (Some(2), None));
        assert_eq!(bounds(-2..), (Some(-2), None));
        assert_eq!(bounds(0..=isize::MAX), (Some(0), Some(isize::MAX)));
        assert_eq!(bounds((Bound::Excluded(-1), Bound::Unbounded)), (Some(isize::MAX), None));
    }

    proptest! {
        #[test]
        fn slices_stay_inside(
            extent in prop_oneof![0usize..10, Just(i64::MAX as usize / 16)],
            start in proptest::option::of(wild()),
            end in proptest::option::of(wild()),
            step in wild().prop_filter("not 0", |&step| step != 0),
        ) {
            let (first, stride, count) = resolve_slice(extent, start, end, step);
            if count > 0 {
                let last = first as i128 + stride as i128 * (count as i128 - 1);
                prop_assert!(first < extent && last >= 0 && last < extent as i128);
            }
        }
    }
}
