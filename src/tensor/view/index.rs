//! Indexing as NumPy writes it: [`s!`](crate::s) and [`Tensor::i`].

use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::graph::op::View;
use crate::tensor::arguments::axes::{Bounds, resolve_slice};
use crate::tensor::arguments::call::{Call, from_end};
use crate::{Result, Shape, Tensor};

/// What to take of one axis: an integer (that position; the axis is gone), a range, a range with a step, a new
/// axis, or `...` for all axes that the others leave. Made by [`s!`](crate::s).
///
/// ```
/// use lazuli::{Index, Shape, Tensor};
/// let x = Tensor::arange(0, 24, 1).reshape([2, 3, 4]);
/// // What a program computes needs no macro.
/// let indices = vec![Index::Ellipsis, Index::from(1..3)];
/// assert_eq!(x.i(indices).shape()?, Shape::from([2, 3, 2]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Index {
    /// One position; a negative one counts from the end. The result has no such axis.
    At(isize),
    /// Python's `start:end:step`.
    Slice {
        /// The first position; open: the end where the walk begins.
        start: Option<isize>,
        /// The position before which to stop; open: none.
        end: Option<isize>,
        /// From one position to the next; negative walks backwards.
        step: isize,
    },
    /// All axes that the other indices leave.
    Ellipsis,
    /// A new axis of extent 1.
    NewAxis,
}

impl Index {
    /// Every `step`-th position of the range; a negative step walks it backwards, from its end, as Python does:
    /// `..;-1` is `::-1`, and `4..0;-1` is `4:0:-1`.
    ///
    /// ```
    /// use lazuli::{Index, Tensor};
    /// let x = Tensor::arange(0, 5, 1);
    /// assert_eq!(x.i([Index::from(..).step(-2)]).to_vec::<i32>()?, [4, 2, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn step(self, step: isize) -> Index {
        match self {
            Index::Slice { start, end, .. } => Index::Slice { start, end, step },
            other => other,
        }
    }
}

/// The Rust range, or what Python would write.
impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Index::At(index) => write!(f, "{index}"),
            Index::Ellipsis => write!(f, "..."),
            Index::NewAxis => write!(f, "None"),
            Index::Slice { start, end, step } => {
                let shown = |bound: Option<isize>| bound.map_or(String::new(), |bound| bound.to_string());
                write!(f, "{}..{}", shown(start), shown(end))?;
                if step == 1 { Ok(()) } else { write!(f, ";{step}") }
            }
        }
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::Slice { start: None, end: None, step: 1 }
    }
}

/// `None` is a new axis, as in NumPy.
impl From<Option<std::convert::Infallible>> for Index {
    fn from(_: Option<std::convert::Infallible>) -> Index {
        Index::NewAxis
    }
}

macro_rules! from_integers {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Index {
            fn from(index: $ty) -> Index {
                Index::At(saturated(index))
            }
        }

        from_integers!(@ranges $ty, Range, RangeFrom, RangeTo, RangeInclusive, RangeToInclusive);
    )*};
    (@ranges $ty:ty, $($range:ident),*) => {$(
        impl From<$range<$ty>> for Index {
            fn from(range: $range<$ty>) -> Index {
                let Bounds { start, end } = range.into();
                Index::Slice { start, end, step: 1 }
            }
        }
    )*};
}
from_integers!(i32, i64, isize, usize);

/// Integers beyond `isize` become the largest, which is beyond every axis.
fn saturated<T: TryInto<isize>>(index: T) -> isize {
    index.try_into().unwrap_or(isize::MAX)
}

/// Indices for [`Tensor::i`], separated by commas, one for each axis from the first on:
///
/// | index | NumPy | takes |
/// |---|---|---|
/// | `1`, `-1` | the same | one position, and drops the axis |
/// | `1..3`, `..-1`, `2..=4` | `1:3`, `:-1`, `2:5` | a part of the axis |
/// | `..` | `:` | the whole axis |
/// | `..;2`, `..;-1`, `8..2;-2` | `::2`, `::-1`, `8:2:-2` | every so many positions, or backwards |
/// | `...` | the same | all axes that the others leave |
/// | `None` | the same | a new axis |
///
/// Clippy takes `8..2` and `1..-1` for mistakes: allow `clippy::reversed_empty_ranges`.
///
/// ```
/// use lazuli::{Shape, Tensor, s};
/// let x = Tensor::arange(0, 24, 1).reshape([2, 3, 4]);
/// assert_eq!(x.i(s![0, 1]).to_vec::<i32>()?, [4, 5, 6, 7]);
/// assert_eq!(x.i(s![.., 1, ..;-1, None]).shape()?, Shape::from([2, 4, 1]));
/// assert_eq!(x.i(s![..., -1]).to_vec::<i32>()?, [3, 7, 11, 15, 19, 23]);
/// assert_eq!(x.i(s![1, 0..2, ..;-2]).to_vec::<i32>()?, [15, 13, 19, 17]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    (@ [$($done:expr,)*]) => { [$($done),*] as [$crate::Index; _] };
    (@ [$($done:expr,)*] ...) => { $crate::s!(@ [$($done,)* $crate::Index::Ellipsis,]) };
    (@ [$($done:expr,)*] ..., $($rest:tt)*) => { $crate::s!(@ [$($done,)* $crate::Index::Ellipsis,] $($rest)*) };
    (@ [$($done:expr,)*] $range:expr; $step:expr) => {
        $crate::s!(@ [$($done,)* $crate::Index::from($range).step($step),])
    };
    (@ [$($done:expr,)*] $range:expr; $step:expr, $($rest:tt)*) => {
        $crate::s!(@ [$($done,)* $crate::Index::from($range).step($step),] $($rest)*)
    };
    (@ [$($done:expr,)*] $index:expr) => { $crate::s!(@ [$($done,)* $crate::Index::from($index),]) };
    (@ [$($done:expr,)*] $index:expr, $($rest:tt)*) => {
        $crate::s!(@ [$($done,)* $crate::Index::from($index),] $($rest)*)
    };
    ($($indices:tt)*) => { $crate::s!(@ [] $($indices)*) };
}

impl Tensor {
    /// A part of the tensor, as NumPy's brackets: see [`s!`](crate::s). A view, whatever it takes.
    ///
    /// Invalid for a position out of range, a step of 0, or more indices than axes.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor, s};
    /// let image = Tensor::arange(0, 60, 1).reshape([4, 5, 3]);
    /// let (red, mirrored) = (image.i(s![.., .., 0]), image.i(s![.., ..;-1]));
    /// assert_eq!(red.shape()?, Shape::from([4, 5]));
    /// assert_eq!(mirrored.i(s![0, 0]).to_vec::<i32>()?, [12, 13, 14]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn i(&self, indices: impl AsRef<[Index]>) -> Tensor {
        Tensor::or_invalid(index(Call::here("i"), self, indices.as_ref()))
    }
}

/// What indices take of a tensor.
pub(crate) struct Part {
    /// First position, step and number of positions along each axis.
    pub(crate) slices: Vec<(usize, isize, usize)>,
    /// The result's extents, once positions have dropped their axes and new axes are there.
    pub(crate) extents: Vec<usize>,
}

fn index(call: Call, x: &Tensor, indices: &[Index]) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let Part { slices, extents } = resolve(call, x, indices)?;
    let is_whole = slices.iter().zip(shape.iter()).all(|(slice, &extent)| slice.1 == 1 && slice.2 == extent);
    let part = match is_whole {
        true => x.clone(),
        false => {
            let starts = slices.iter().map(|slice| slice.0 as i64).collect();
            let steps = slices.iter().map(|slice| slice.1 as i64).collect();
            call.view(View::Slice { starts, steps }, x, slices.iter().map(|slice| slice.2).collect())?
        }
    };
    call.reshape(&part, Shape::from(extents))
}

pub(crate) fn resolve(call: Call, x: &Tensor, indices: &[Index]) -> Result<Part> {
    let (shape, _) = x.known()?;
    let rank = shape.rank();
    let given = || {
        let shown: Vec<String> = indices.iter().map(Index::to_string).collect();
        format!("s![{}]", shown.join(", "))
    };
    let taken = indices.iter().filter(|index| matches!(index, Index::At(_) | Index::Slice { .. })).count();
    if indices.iter().filter(|index| **index == Index::Ellipsis).count() > 1 {
        return call.fail(format!("{} has more than one ...", given()));
    }
    let Some(left) = rank.checked_sub(taken) else {
        return call.fail(format!("{} takes {taken} axes, but shape {shape} has {rank}", given()));
    };
    let mut slices: Vec<(usize, isize, usize)> = shape.iter().map(|&extent| (0, 1, extent)).collect();
    let mut extents = Vec::new();
    let mut axis = 0;
    for index in indices {
        match *index {
            Index::NewAxis => extents.push(1),
            Index::Ellipsis => {
                extents.extend_from_slice(&shape[axis..axis + left]);
                axis += left;
            }
            Index::At(position) => {
                let extent = shape[axis];
                let Some(first) = from_end(position, extent).filter(|&first| first < extent) else {
                    return call.fail(format!(
                        "index {position} in {} is out of range for axis {axis} of shape {shape}",
                        given()
                    ));
                };
                slices[axis] = (first, 1, 1);
                axis += 1;
            }
            Index::Slice { start, end, step } => {
                if step == 0 {
                    return call.fail(format!(
                        "a step in {} is 0; use 1 for every position, or -1 to go backwards",
                        given()
                    ));
                }
                slices[axis] = resolve_slice(shape[axis], start, end, step);
                extents.push(slices[axis].2);
                axis += 1;
            }
        }
    }
    extents.extend_from_slice(&shape[axis..]);
    Ok(Part { slices, extents })
}
