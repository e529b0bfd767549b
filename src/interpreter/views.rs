//! Views: all but reshape and pad read the operand at an affine function of the result's index.

use lazuli_reference::{Values, pad, strided};
use smallvec::SmallVec;

use super::operand::reported;
use crate::graph::op::View;
use crate::{Result, Shape};

type Strides = SmallVec<[i64; 6]>;

/// The view's elements, or `None` if they are the operand's own, in their order.
pub(super) fn view(view: &View, x: &Values, from: &Shape, to: &Shape) -> Result<Option<Values>> {
    let own: Strides = from.strides().iter().map(|&stride| stride as i64).collect();
    let (base, strides) = match view {
        View::Reshape => return Ok(None),
        View::Permute(perm) => (0, perm.iter().map(|&axis| own[axis]).collect()),
        View::Expand => {
            let new = to.rank() - from.rank();
            let kept =
                own.iter().zip(from.iter()).map(|(&stride, &extent)| if extent == 1 { 0 } else { stride });
            (0, std::iter::repeat_n(0, new).chain(kept).collect())
        }
        View::Slice { starts, steps } => {
            let base = starts.iter().zip(&own).map(|(start, stride)| start * stride).sum();
            (base, steps.iter().zip(&own).map(|(step, stride)| step * stride).collect())
        }
        View::Window { axis, stride, dilation, .. } => {
            let mut strides = own;
            let unit = strides[*axis];
            strides[*axis] = unit * *stride as i64;
            strides.push(unit * *dilation as i64);
            (0, strides)
        }
        View::Pad { before, value } => {
            return pad(x, from, to, before, *value).map(Some).map_err(reported);
        }
    };
    Ok(Some(strided(x, base, to, &strides)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{apply, tensor, try_apply};
    use super::*;
    use crate::graph::op::Op;
    use crate::{DType, Scalar};

    /// The view of the numbers 0, 1, … in a shape.
    fn of_numbers(view: View, from: impl Into<Shape>, to: impl Into<Shape>) -> Vec<i32> {
        let from = from.into();
        let numbers: Vec<i32> = (0..from.elements() as i32).collect();
        apply(Op::View(view), &[tensor(&numbers, from)], to)
    }

    fn slice(starts: &[i64], steps: &[i64]) -> View {
        View::Slice { starts: starts.into(), steps: steps.into() }
    }

    fn pad(before: &[usize], value: Scalar) -> View {
        View::Pad { before: before.into(), value }
    }

    fn minus_one() -> Scalar {
        Scalar::from_i64(DType::I32, -1)
    }

    #[test]
    fn reshape_keeps_the_order() {
        assert_eq!(of_numbers(View::Reshape, [2, 3], [3, 1, 2]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of_numbers(View::Reshape, [1, 1], []), [0]);
        assert_eq!(of_numbers(View::Reshape, [0, 3], [7, 0]), [0i32; 0]);
    }

    #[test]
    fn permute_moves_dimensions() {
        assert_eq!(of_numbers(View::Permute([1, 0].as_slice().into()), [2, 3], [3, 2]), [0, 3, 1, 4, 2, 5]);
        let cycled = of_numbers(View::Permute([2, 0, 1].as_slice().into()), [2, 2, 3], [3, 2, 2]);
        assert_eq!(cycled, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
        assert_eq!(of_numbers(View::Permute([1, 0].as_slice().into()), [0, 3], [3, 0]), [0i32; 0]);
        assert_eq!(of_numbers(View::Permute([].as_slice().into()), [], []), [0]);
    }

    #[test]
    fn expand_repeats_dimensions_of_one() {
        assert_eq!(of_numbers(View::Expand, [2, 1], [2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(of_numbers(View::Expand, [3], [2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(of_numbers(View::Expand, [], [2, 2]), [0, 0, 0, 0]);
        assert_eq!(of_numbers(View::Expand, [2, 1, 2], [2, 2, 2]), [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(of_numbers(View::Expand, [1], [0]), [0i32; 0]);
        assert_eq!(of_numbers(View::Expand, [1, 1], [1, 1]), [0]);
    }

    #[test]
    fn slice_starts_and_steps() {
        assert_eq!(of_numbers(slice(&[1], &[2]), [6], [3]), [1, 3, 5]);
        assert_eq!(of_numbers(slice(&[3], &[-1]), [4], [4]), [3, 2, 1, 0]);
        assert_eq!(of_numbers(slice(&[1, 2], &[-1, -2]), [2, 3], [2, 2]), [5, 3, 2, 0]);
        assert_eq!(of_numbers(slice(&[0, 1], &[1, 1]), [3, 3], [2, 1]), [1, 4]);
        assert_eq!(of_numbers(slice(&[9], &[1]), [4], [0]), [0i32; 0]);
        assert_eq!(of_numbers(slice(&[], &[]), [], []), [0]);
    }

    #[test]
    fn pad_surrounds() {
        assert_eq!(of_numbers(pad(&[1], minus_one()), [2], [5]), [-1, 0, 1, -1, -1]);
        let framed = of_numbers(pad(&[1, 0], minus_one()), [1, 2], [3, 3]);
        assert_eq!(framed, [-1, -1, -1, 0, 1, -1, -1, -1, -1]);
        assert_eq!(of_numbers(pad(&[1, 1], minus_one()), [2, 0], [3, 2]), [-1; 6]);
        assert_eq!(of_numbers(pad(&[0, 1], minus_one()), [0, 1], [0, 4]), [0i32; 0]);
        assert_eq!(of_numbers(pad(&[], minus_one()), [], []), [0]);
        let wrong = Op::View(pad(&[0], Scalar::from_f64(DType::F32, 0.0)));
        assert!(try_apply::<i32>(wrong, &[tensor(&[1i32], [1])], [2]).is_err());
    }

    #[test]
    fn windows_overlap_skip_and_dilate() {
        let window = |axis, size, stride, dilation| View::Window { axis, size, stride, dilation };
        assert_eq!(of_numbers(window(0, 3, 1, 1), [4], [2, 3]), [0, 1, 2, 1, 2, 3]);
        assert_eq!(of_numbers(window(0, 2, 3, 2), [7], [2, 2]), [0, 2, 3, 5]);
        // result[o, j, k] is operand[o + k, j].
        assert_eq!(of_numbers(window(0, 2, 1, 1), [3, 2], [2, 2, 2]), [0, 2, 1, 3, 2, 4, 3, 5]);
        assert_eq!(of_numbers(window(1, 2, 2, 1), [2, 4], [2, 2, 2]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of_numbers(window(1, 2, 1, 1), [0, 4], [0, 3, 2]), [0i32; 0]);
    }

    #[test]
    fn views_of_every_dtype_keep_the_bits() {
        use lazuli_reference::{Element, with_type};
        for dtype in DType::ALL {
            with_type!(dtype, T => {
                let (zero, one) = (T::from_int(0), T::from_int(1));
                let x = tensor(&[zero, one], [2]);
                let flipped: Vec<T> = apply(Op::View(slice(&[1], &[-1])), std::slice::from_ref(&x), [2]);
                assert!(flipped == [one, zero]);
                let padded: Vec<T> = apply(Op::View(pad(&[1], Scalar::from_i64(dtype, 1))), &[x], [3]);
                assert!(padded == [one, zero, one]);
            });
        }
    }
}
