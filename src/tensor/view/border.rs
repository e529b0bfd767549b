//! How users name borders, and those whose elements are the tensor's own.

use smallvec::SmallVec;

use super::join;
use crate::tensor::arguments::call::Call;
use crate::{Number, Result, Shape, Tensor};

/// A border, as integers of any of the usual types. Where one is negative, so many positions are cut off instead.
///
/// * One pair `(before, after)` or `[before, after]` for every axis, first axis first, as NumPy's `pad`.
/// * A flat list, last axis first, as PyTorch's `F.pad`: `[left, right, top, bottom]`. Axes that it does not reach have
///   no border.
/// * One integer for all sides of all axes.
///
/// ```
/// use lazuli::{Border, DType, Shape, Tensor};
/// let x = Tensor::zeros([2, 3], DType::F32);
/// assert_eq!(x.pad(&[(0, 1), (2, -1)], 0).shape()?, Shape::from([3, 4]));
/// assert_eq!(x.pad([[0, 1], [2, -1]], 0).shape()?, Shape::from([3, 4]));
/// assert_eq!(x.pad([2, -1, 0, 1], 0).shape()?, Shape::from([3, 4]));
/// assert_eq!(x.pad([2, -1], 0).shape()?, Shape::from([2, 4]));
/// assert_eq!(x.pad(1, 0.0).shape()?, Shape::from([4, 5]));
/// assert_eq!(Border::from(&[(0, 1), (2, -1)]), Border::from(&vec![(0isize, 1), (2, -1)]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Border(Sides);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Sides {
    All(isize),
    Each(SmallVec<[(isize, isize); 4]>),
    /// Before and after the last axis, before and after the one in front of it, and so on.
    FromLast(SmallVec<[isize; 8]>),
}

/// Integers beyond `isize` become the largest, which no border can be.
macro_rules! from_pairs {
    ($($ty:ty),*) => {$(
        impl From<&[($ty, $ty)]> for Border {
            fn from(pairs: &[($ty, $ty)]) -> Border {
                let one = |side: $ty| isize::try_from(side).unwrap_or(isize::MAX);
                Border(Sides::Each(pairs.iter().map(|&(before, after)| (one(before), one(after))).collect()))
            }
        }

        impl From<$ty> for Border {
            fn from(all: $ty) -> Border {
                Border(Sides::All(isize::try_from(all).unwrap_or(isize::MAX)))
            }
        }

        impl<const N: usize> From<&[($ty, $ty); N]> for Border {
            fn from(pairs: &[($ty, $ty); N]) -> Border {
                Border::from(&pairs[..])
            }
        }

        impl<const N: usize> From<[($ty, $ty); N]> for Border {
            fn from(pairs: [($ty, $ty); N]) -> Border {
                Border::from(&pairs[..])
            }
        }

        impl<const N: usize> From<&[[$ty; 2]; N]> for Border {
            fn from(pairs: &[[$ty; 2]; N]) -> Border {
                Border::from(*pairs)
            }
        }

        impl<const N: usize> From<[[$ty; 2]; N]> for Border {
            fn from(pairs: [[$ty; 2]; N]) -> Border {
                Border::from(pairs.map(|[before, after]| (before, after)))
            }
        }

        impl From<&[$ty]> for Border {
            fn from(sides: &[$ty]) -> Border {
                let one = |&side: &$ty| isize::try_from(side).unwrap_or(isize::MAX);
                Border(Sides::FromLast(sides.iter().map(one).collect()))
            }
        }

        impl<const N: usize> From<[$ty; N]> for Border {
            fn from(sides: [$ty; N]) -> Border {
                Border::from(&sides[..])
            }
        }

        impl<const N: usize> From<&[$ty; N]> for Border {
            fn from(sides: &[$ty; N]) -> Border {
                Border::from(&sides[..])
            }
        }

        impl From<Vec<$ty>> for Border {
            fn from(sides: Vec<$ty>) -> Border {
                Border::from(&sides[..])
            }
        }

        impl From<&Vec<$ty>> for Border {
            fn from(sides: &Vec<$ty>) -> Border {
                Border::from(&sides[..])
            }
        }

        impl From<Vec<($ty, $ty)>> for Border {
            fn from(pairs: Vec<($ty, $ty)>) -> Border {
                Border::from(&pairs[..])
            }
        }

        impl From<&Vec<($ty, $ty)>> for Border {
            fn from(pairs: &Vec<($ty, $ty)>) -> Border {
                Border::from(&pairs[..])
            }
        }
    )*};
}
from_pairs!(i32, i64, isize, usize);

impl Border {
    /// The pair of each axis of a shape.
    fn of_axes(&self, call: Call, shape: &Shape) -> Result<SmallVec<[(isize, isize); 4]>> {
        let rank = shape.rank();
        match &self.0 {
            Sides::All(all) => Ok(SmallVec::from_elem((*all, *all), rank)),
            Sides::Each(sides) if sides.len() == rank => Ok(sides.clone()),
            Sides::Each(sides) => call.fail(format!(
                "takes one pair (before, after) for each of the {rank} axes of shape {shape}, got {}",
                sides.len()
            )),
            Sides::FromLast(sides) if sides.len() % 2 == 0 && sides.len() <= 2 * rank => {
                let mut axes = SmallVec::from_elem((0, 0), rank);
                for (axis, pair) in axes.iter_mut().rev().zip(sides.chunks_exact(2)) {
                    *axis = (pair[0], pair[1]);
                }
                Ok(axes)
            }
            Sides::FromLast(sides) => call.fail(format!(
                "a flat list has two numbers (before, after) for each axis, last axis first, and shape {shape} has \
                 {rank} axes; got a list of {}",
                sides.len()
            )),
        }
    }

    /// The tensor without what is cut off, and how wide the border of the rest is.
    pub(crate) fn cut(&self, call: Call, x: &Tensor) -> Result<(Tensor, Vec<(usize, usize)>)> {
        let (shape, _) = x.known()?;
        let sides = self.of_axes(call, shape)?;
        let (mut slices, mut border) = (Vec::new(), Vec::new());
        for (axis, (before, after)) in sides.into_iter().enumerate() {
            let off = |side: isize| if side < 0 { side.unsigned_abs() } else { 0 };
            let Some(count) =
                shape[axis].checked_sub(off(before)).and_then(|rest| rest.checked_sub(off(after)))
            else {
                return call.fail(cuts_too_much((before, after), axis, shape));
            };
            if before < 0 || after < 0 {
                slices.push((axis, (if count == 0 { 0 } else { off(before) }, 1, count)));
            }
            border.push((before.max(0).unsigned_abs(), after.max(0).unsigned_abs()));
        }
        let rest = if slices.is_empty() { x.clone() } else { call.slice(x, &slices)? };
        Ok((rest, border))
    }
}

/// What a border holds: see [`Tensor::pad_with`].
///
/// ```
/// use lazuli::{PadMode, Tensor};
/// let x = Tensor::from_slice(&[1i32, 2, 3], [3]);
/// let padded = |mode| x.pad_with(&[(2, 2)], mode).to_vec::<i32>();
/// assert_eq!(padded(PadMode::Constant(0.into()))?, [0, 0, 1, 2, 3, 0, 0]);
/// assert_eq!(padded(PadMode::Reflect)?, [3, 2, 1, 2, 3, 2, 1]);
/// assert_eq!(padded(PadMode::Replicate)?, [1, 1, 1, 2, 3, 3, 3]);
/// assert_eq!(padded(PadMode::Circular)?, [2, 3, 1, 2, 3, 1, 2]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum PadMode {
    /// The number, converted to the tensor's dtype, which must hold it.
    Constant(Number),
    /// The tensor mirrored at its first and last position, which are not repeated.
    Reflect,
    /// The first and the last position, again and again.
    Replicate,
    /// What comes first at the other end.
    Circular,
}

impl Tensor {
    /// A [`Border`]; [`PadMode`] says what it holds. Where a number is negative, so many positions are cut off instead. A
    /// reflected or replicated border on the other side is that of the whole tensor, a circular one of what is left, as in PyTorch.
    ///
    /// Invalid if more is cut off than is there, for a list that does not fit the number of axes, for a reflected border that
    /// is not narrower than the tensor, for a circular one that is wider, and for a replicated one where there is nothing to
    /// replicate.
    ///
    /// ```
    /// use lazuli::{DType, PadMode, Shape, Tensor};
    /// let image = Tensor::zeros([3, 8, 8], DType::U8);
    /// let padded = image.pad_with(&[(0, 0), (2, 2), (2, 2)], PadMode::Reflect);
    /// assert_eq!(padded.shape()?, Shape::from([3, 12, 12]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pad_with(&self, border: impl Into<Border>, mode: PadMode) -> Tensor {
        let (call, border) = (Call::here("pad_with"), border.into());
        call.composed(|| match mode {
            PadMode::Constant(value) => Ok(self.pad(border, value)),
            // What is left goes around.
            PadMode::Circular => {
                let (rest, border) = border.cut(call, self)?;
                pad_axes(call, &rest, self.known()?.0, &border, mode)
            }
            // The border is that of the whole tensor, also where another side is cut off.
            PadMode::Reflect | PadMode::Replicate => {
                let (shape, _) = self.known()?;
                let sides = border.of_axes(call, shape)?;
                let wide: Vec<(usize, usize)> = sides
                    .iter()
                    .map(|&(before, after)| (before.max(0).unsigned_abs(), after.max(0).unsigned_abs()))
                    .collect();
                let padded = pad_axes(call, self, shape, &wide, mode)?;
                let off: Vec<(isize, isize)> =
                    sides.iter().map(|&(before, after)| (before.min(0), after.min(0))).collect();
                for (axis, &(before, after)) in off.iter().enumerate() {
                    let (extent, off) =
                        (padded.known()?.0[axis], before.unsigned_abs().saturating_add(after.unsigned_abs()));
                    if off > extent {
                        let (before, after) = sides[axis];
                        return call.fail(cuts_too_much((before, after), axis, shape));
                    }
                }
                Ok(Border::from(&off[..]).cut(call, &padded)?.0)
            }
        })
    }
}

fn cuts_too_much((before, after): (isize, isize), axis: usize, shape: &Shape) -> String {
    format!("the border ({before}, {after}) cuts off more than axis {axis} of shape {shape} has")
}

/// Borders of all axes; `of` is the shape that the user gave.
fn pad_axes(call: Call, x: &Tensor, of: &Shape, border: &[(usize, usize)], mode: PadMode) -> Result<Tensor> {
    let mut padded = x.clone();
    for (axis, &(before, after)) in border.iter().enumerate() {
        if (before, after) != (0, 0) {
            padded = pad_axis(call, &padded, of, axis, [before, after], mode)?;
        }
    }
    Ok(padded)
}

fn pad_axis(
    call: Call,
    x: &Tensor,
    of: &Shape,
    axis: usize,
    [before, after]: [usize; 2],
    mode: PadMode,
) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let (extent, at) = (shape[axis], axis as isize);
    let widest = before.max(after);
    let limit = |limit: usize, kind: &str| match widest <= limit {
        true => Ok(()),
        false => call.fail(format!(
            "a {kind} border of axis {axis} of shape {of} can be at most {limit} wide, got {widest}"
        )),
    };
    match mode {
        PadMode::Reflect => {
            limit(extent.saturating_sub(1), "reflected")?;
            let back = |start: usize, length: usize| x.narrow(at, start, length).flip(at);
            join::cat(call, &[&back(1, before), x, &back(extent - 1 - after, after)], at)
        }
        PadMode::Circular => {
            limit(extent, "circular")?;
            let again = |start: usize, length: usize| x.narrow(at, start, length);
            join::cat(call, &[&again(extent - before, before), x, &again(0, after)], at)
        }
        PadMode::Constant(_) | PadMode::Replicate => {
            limit(if extent == 0 { 0 } else { usize::MAX }, "replicated")?;
            let edge = |index: isize, count: usize| {
                let extents = shape.iter().enumerate().map(|(own, &e)| if own == axis { count } else { e });
                x.select(at, index).unsqueeze(at).broadcast_to(extents.collect::<Vec<_>>())
            };
            join::cat(call, &[&edge(0, before), x, &edge(-1, after)], at)
        }
    }
}
