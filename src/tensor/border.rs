//! Borders whose elements are the tensor's own.

use super::call::Call;
use super::join;
use super::rearrange::around;
use crate::{Number, Result, Tensor};

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
pub enum PadMode {
    /// The number, converted to the tensor's dtype.
    Constant(Number),
    /// The tensor mirrored at its first and last position, which are not repeated.
    Reflect,
    /// The first and the last position, again and again.
    Replicate,
    /// What comes first at the other end.
    Circular,
}

impl Tensor {
    /// A border, given as one pair (before, after) for every axis; [`PadMode`] says what it holds.
    ///
    /// Invalid for a reflected border that is not narrower than the tensor, for a circular one that is wider,
    /// and for a replicated one where there is nothing to replicate.
    ///
    /// ```
    /// use lazuli::{DType, PadMode, Shape, Tensor};
    /// let image = Tensor::zeros([3, 8, 8], DType::U8);
    /// let padded = image.pad_with(&[(0, 0), (2, 2), (2, 2)], PadMode::Reflect);
    /// assert_eq!(padded.shape()?, Shape::from([3, 12, 12]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pad_with(&self, border: &[(usize, usize)], mode: PadMode) -> Tensor {
        let call = Call::here("pad_with");
        call.composed(|| match mode {
            PadMode::Constant(value) => Ok(self.pad(border, value)),
            _ => {
                let (shape, _) = self.known()?;
                if border.len() != shape.rank() {
                    return Ok(self.pad(border, 0)); // Its error is this one's.
                }
                let mut padded = self.clone();
                for (axis, &(before, after)) in border.iter().enumerate() {
                    if (before, after) != (0, 0) {
                        padded = pad_axis(call, &padded, axis, [before, after], mode)?;
                    }
                }
                Ok(padded)
            }
        })
    }
}

fn pad_axis(
    call: Call,
    x: &Tensor,
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
            "a {kind} border of axis {axis} of shape {shape} can be at most {limit} wide, got {widest}"
        )),
    };
    match mode {
        PadMode::Reflect => {
            limit(extent.saturating_sub(1), "reflected")?;
            // There and back again, then around.
            let back = x.narrow(at, 1, extent.saturating_sub(2)).flip(at);
            let cycle = join::cat(call, &[x, &back], at)?;
            around(&cycle, axis, -(before as isize), extent + before + after)
        }
        PadMode::Circular => {
            limit(extent, "circular")?;
            around(x, axis, -(before as isize), extent + before + after)
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
