//! Floats as they are after rounding to few integers, with the gradients of what was not cut off.

use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// `(clamp(round(x / scale) + zero_point, least, most) - zero_point) * scale`: what quantisation to integers from `least` to `most`
    /// leaves of a float. Ties go to even integers, NaN stays. The gradient is that of the tensor itself where the integer is
    /// in range, else 0 (straight through). Keeps the dtype; halves are rounded once. PyTorch's `fake_quantize_per_tensor_affine`.
    ///
    /// B. Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference", 2018.
    ///
    /// Invalid for integers and bools, unless the scale is positive and finite, and unless `least <= zero_point <= most`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.3f32, -0.6, 9.0], [3]);
    /// assert_eq!(x.fake_quantize_per_tensor_affine(0.5, 0, -4, 3).to_vec::<f32>()?, [0.5, -0.5, 1.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fake_quantize_per_tensor_affine(
        &self,
        scale: f64,
        zero_point: i64,
        least: i64,
        most: i64,
    ) -> Tensor {
        let call = Call::here("fake_quantize_per_tensor_affine");
        call.composed(|| {
            call.needs(scale > 0.0 && scale.is_finite(), "the scale must be positive and finite", scale)?;
            if zero_point < least || zero_point > most {
                return call.fail(format!(
                    "the zero point must be from {least} to {most}, which integers are, got {zero_point}"
                ));
            }
            call.needs_float(self)?;
            let (_, dtype) = self.known()?;
            let number = |x: f64| Tensor::full([], x, dtype.compute());
            quantized(call, self, &number(scale), &number(zero_point as f64), [least, most])
        })
    }

    /// [`Tensor::fake_quantize_per_tensor_affine`] with a scale and a zero point of each position of an axis, which are vectors: of floats,
    /// and of integers or floats. Their own gradients are 0. PyTorch's `fake_quantize_per_channel_affine`.
    ///
    /// Invalid for integers and bools, for an axis out of range, for other lengths than the axis has, and for `least > most`. Scales
    /// must be positive, and zero points in range, for it to be quantisation; their values are not asked for.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.3f32, 0.3], [1, 2]);
    /// let (scale, zero) = (Tensor::from([0.5f32, 0.25]), Tensor::from([0, 1]));
    /// assert_eq!(x.fake_quantize_per_channel_affine(&scale, &zero, 1, 0, 7).to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fake_quantize_per_channel_affine(
        &self,
        scale: impl AsRef<Tensor>,
        zero_point: impl AsRef<Tensor>,
        axis: isize,
        least: i64,
        most: i64,
    ) -> Tensor {
        let (scale, zero_point) = (scale.as_ref(), zero_point.as_ref());
        let call = Call::here("fake_quantize_per_channel_affine");
        call.composed(|| {
            call.needs_float(self)?;
            call.needs_float(scale)?;
            let (shape, dtype) = self.known()?;
            let axis = call.axis(axis, shape)?;
            for (name, given) in [("scales", scale), ("zero points", zero_point)] {
                let (own, other) = given.known()?;
                if own[..] != [shape[axis]] || other == DType::Bool {
                    return call.fail(format!(
                        "the {name} must be one each of the {} positions of axis {axis} of {shape}, got {other} {own}",
                        shape[axis]
                    ));
                }
            }
            if least > most {
                return call.fail(format!("no integer is from {least} to {most}"));
            }
            let mut line = vec![1; shape.rank()];
            line[axis] = shape[axis];
            let each = |x: &Tensor| x.cast(dtype.compute()).reshape(&line[..]);
            quantized(call, self, &each(scale), &each(zero_point), [least, most])
        })
    }
}

fn quantized(
    call: Call,
    x: &Tensor,
    scale: &Tensor,
    zero_point: &Tensor,
    [least, most]: [i64; 2],
) -> Result<Tensor> {
    let (_, dtype) = x.known()?;
    let compute = dtype.compute();
    let integer = move |x: &Tensor, scale: &Tensor, zero: &Tensor| {
        (x.cast(compute) * scale.reciprocal()).round() + zero
    };
    let limited = integer(x, scale, zero_point).clamp(least as f64, most as f64);
    let y = ((limited - zero_point) * scale).cast(dtype);
    y.validity()?;
    Ok(call.derived(&y, &[x, scale, zero_point], move |g, all| {
        let [_, x, scale, zero] = all else { return Ok(Vec::new()) };
        let number = integer(x, scale, zero);
        let is_in = number.ge(least as f64).logical_and(number.le(most as f64));
        Ok(vec![is_in.where_(g, 0.0), scale.zeros_like(), zero.zeros_like()])
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn here(x: Tensor) -> Tensor {
        x.to(&Device::interpreter())
    }

    /// PyTorch's.
    #[test]
    fn gradients_go_straight_through() {
        let x = here(Tensor::from([1e9f32, 0.35, -2.0, 1.0, 0.44, 0.45, -1.14, -1.16, f32::NAN]));
        let y = x.fake_quantize_per_tensor_affine(0.1, 3, -8, 7);
        let gradient = crate::grad(&(&y * 2.0).sum(..), &x).to_vec::<f32>().unwrap();
        assert_eq!(gradient, [0.0, 2.0, 0.0, 0.0, 2.0, 2.0, 2.0, 0.0, 0.0]);
        let y = y.round_decimals(4).to_vec::<f32>().unwrap();
        assert_eq!(y[..8], [0.4, 0.4, -1.1, 0.4, 0.4, 0.4, -1.1, -1.1]);
        assert!(y[8].is_nan());
        let (scale, zero) = (here(Tensor::from([0.1f32, 0.2])), here(Tensor::from([0, 1])));
        let y =
            here(Tensor::ones([2, 3], DType::F32)).fake_quantize_per_channel_affine(&scale, &zero, 0, -8, 7);
        assert_eq!(y.round_decimals(4).to_vec::<f32>().unwrap(), [0.7, 0.7, 0.7, 1.0, 1.0, 1.0]);
        let gradient = crate::grad(&y.sum(..), &scale);
        assert_eq!(gradient.to_vec::<f32>().unwrap(), [0.0; 2]);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(
            x.fake_quantize_per_tensor_affine(0.1, 8, -8, 7),
            "fake_quantize_per_tensor_affine: the zero point must be from -8 to 7, which integers are, got 8"
        );
        mistake!(
            x.fake_quantize_per_tensor_affine(0.0, 0, -8, 7),
            "fake_quantize_per_tensor_affine: the scale must be positive and finite, got 0"
        );
        mistake!(
            x.fake_quantize_per_channel_affine(Tensor::from([0.5f32]), Tensor::from([1]), 0, 0, 7),
            "fake_quantize_per_channel_affine: the scales must be one each of the 2 positions of axis 0 of [2, 3], got f32 [1]"
        );
    }
}
