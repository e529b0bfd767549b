//! Pooling into a given number of windows, and where each has its largest element.

use super::adaptive::{adaptive, behind, last_of, least, places, windows_along};
use super::pool::{PerAxis, not_bool};
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

macro_rules! adaptive_place_methods {
    ($($name:ident = $n:literal;)*) => {
        impl Tensor {
            $(
                #[doc = concat!(
                    "[`Tensor::adaptive_max_pool", stringify!($n), "d`], and the position of each window's largest element: the index \
                     into the last ", stringify!($n), " dimension(s), flattened, as `I64`. Of equal ones the first counts, and the last \
                     NaN before all numbers, as in PyTorch with `return_indices=True`.\n\nInvalid where pooling is."
                )]
                ///
                /// ```
                /// use lazuli::Tensor;
                /// let x = Tensor::from_slice(&[1i32, 5, 2, 4, 3], [5]);
                /// let (value, index) = x.adaptive_max_pool1d_with_indices(2);
                /// assert_eq!((value.to_vec::<i32>()?, index.to_vec::<i64>()?), (vec![5, 4], vec![1, 3]));
                /// # Ok::<(), lazuli::Error>(())
                /// ```
                #[track_caller]
                pub fn $name(&self, size: impl Into<PerAxis<$n>>) -> (Tensor, Tensor) {
                    let (call, size) = (Call::here(stringify!($name)), size.into());
                    match call.compose(|| with_places(call, self, size.0)) {
                        Ok((value, index)) => (value, index),
                        Err(error) => (Tensor::invalid(error.clone()), Tensor::invalid(error)),
                    }
                }
            )*
        }
    };
}

adaptive_place_methods! {
    adaptive_max_pool1d_with_indices = 1;
    adaptive_max_pool2d_with_indices = 2;
    adaptive_max_pool3d_with_indices = 3;
}

fn with_places<const N: usize>(call: Call, x: &Tensor, size: [usize; N]) -> Result<(Tensor, Tensor)> {
    not_bool(call, x)?;
    let largest = adaptive(call, x, size, true)?;
    let (shape, dtype) = x.known()?;
    let (first, extents) = (shape.rank() - N, last_of(x, N));
    let elements = windows_along(call, x, first, &size, least(x))?;
    // Positions that are no elements are after all others.
    let own = windows_along(call, &places(&extents), 0, &size, -1.0)?;
    let apart = (0..N).fold(largest.clone(), |x, _| x.unsqueeze(-1));
    let is_largest = elements.eq(apart).logical_and(own.ge(0));
    let found = is_largest.where_(&own, extents.iter().product::<usize>() as i64);
    if !dtype.is_float() {
        return Ok((largest, found.min(behind(N))));
    }
    // Below all positions, and the lower the later: the last NaN is before all others.
    let found = elements.isnan().where_(own.bitwise_not(), found).min(behind(N));
    Ok((largest, found.lt(0).where_(found.bitwise_not(), &found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device};

    /// PyTorch's.
    #[test]
    fn of_nan_and_of_equal_elements() {
        let of = |x: [f32; 5]| {
            let x = Tensor::from(x).to(&Device::interpreter());
            x.adaptive_max_pool1d_with_indices(2).1.to_vec::<i64>().unwrap()
        };
        assert_eq!(of([1.0, f32::NAN, f32::NAN, f32::NAN, 5.0]), [2, 3]);
        assert_eq!(of([2.0, 2.0, 1.0, 3.0, 3.0]), [0, 3]);
        assert_eq!(of([f32::NEG_INFINITY; 5]), [0, 2]);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(
            x.adaptive_max_pool2d_with_indices((2, 0)).1,
            "adaptive_max_pool2d_with_indices: cannot divide the last 2 dimensions of shape [2, 3] into [2, 0] windows: extents and sizes must be at least 1"
        );
    }
}
