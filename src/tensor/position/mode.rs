//! What occurs most often.

use crate::tensor::arguments::call::{Call, is_of_scalar};
use crate::tensor::make::create::counting;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// The element that occurs most often along an axis, which the results no longer have, and where it occurs last (`I64`). Of
    /// several that occur equally often it is the least; NaN is greater than all numbers, and equal to nothing. PyTorch's
    /// `mode`.
    ///
    /// Invalid for an axis out of range or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (value, position) = Tensor::from([3, 1, 3, 1, 2]).mode(0);
    /// assert_eq!((value.item::<i32>()?, position.item::<i64>()?), (1, 3));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn mode(&self, axis: isize) -> (Tensor, Tensor) {
        let call = Call::here("mode");
        match call.compose(|| mode(call, self, axis)) {
            Ok([value, position]) => (value, position),
            Err(error) => (Tensor::or_invalid(Err(error.clone())), Tensor::or_invalid(Err(error))),
        }
    }
}

fn mode(call: Call, x: &Tensor, axis: isize) -> Result<[Tensor; 2]> {
    let (shape, _) = x.known()?;
    if is_of_scalar(axis, shape) {
        return mode(call, &x.reshape([1]), axis);
    }
    let at = call.axis(axis, shape)?;
    let Some(last) = shape[at].checked_sub(1) else {
        return call.fail(format!("no mode of nothing: axis {at} of shape {shape}"));
    };
    let (sorted, order) = x.sort(axis, false);
    let differs = sorted.narrow(axis, 1, last).ne(sorted.narrow(axis, 0, last));
    let begins = Tensor::cat(&[&Tensor::ones(shape.with_extent(at, 1), DType::Bool), &differs], axis);
    let mut line = vec![1; shape.rank()];
    line[at] = shape[at];
    let place = counting(shape[at]).reshape(line);
    // How many equal ones are before each; the first longest run is that of the least element, and ends at its last.
    let before = &place - begins.where_(&place, 0).cummax(axis);
    let longest = before.argmax_keepdim(axis);
    Ok([sorted, order].map(|x| x.gather(axis, &longest).squeeze(axis)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn of_one_of_nan_and_of_a_0d_tensor() {
        let of = |x: Tensor| {
            let (value, position) = x.to(&Device::interpreter()).mode(-1);
            (value.item::<f32>().unwrap(), position.item::<i64>().unwrap())
        };
        assert_eq!(of(Tensor::from([7.0f32])), (7.0, 0));
        assert_eq!(of(Tensor::scalar(7.0f32)), (7.0, 0));
        assert_eq!(of(Tensor::from([f32::NAN, 2.0, f32::NAN])), (2.0, 1));
        assert_eq!(of(Tensor::from([0.0f32, 1.0, -0.0])).1, 2);
    }
}
