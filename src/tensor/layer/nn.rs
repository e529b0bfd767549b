//! Neural-network layers: activations and normalisation, recorded whole and decomposed later.

use crate::graph::op::Composite;
use crate::tensor::arguments::call::Call;
use crate::tensor::map::elementwise::float_for;
use crate::{BinaryOp, Result, Shape, Tensor};

impl Tensor {
    /// `1 / (1 + exp(-x))`. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32], [1]).sigmoid().to_vec::<f32>()?, [0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        Tensor::or_invalid(sigmoid(Call::here("sigmoid"), self))
    }

    /// `x * sigmoid(x)`, also called swish. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// S. Elfwing, E. Uchibe, K. Doya, "Sigmoid-weighted linear units for neural network function approximation
    /// in reinforcement learning", 2017.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let y = Tensor::from_slice(&[-1.0f32, 0.0, 30.0], [3]).silu();
    /// assert_eq!((y * 1000.0).round().to_vec::<f32>()?, [-269.0, 0.0, 30_000.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        Tensor::or_invalid(activation(Call::here("silu"), Composite::Silu, self))
    }

    /// `x / 2 * (1 + erf(x / sqrt(2)))`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let y = Tensor::from_slice(&[-1.0f32, 0.0, 30.0], [3]).gelu();
    /// assert_eq!((y * 10_000.0).round().to_vec::<f32>()?, [-1587.0, 0.0, 300_000.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        Tensor::or_invalid(activation(Call::here("gelu"), Composite::Gelu, self))
    }

    /// `x / 2 * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³)))`, PyTorch's gelu with `approximate="tanh"`. Keeps
    /// shape and dtype; invalid for integers and bools.
    ///
    /// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let y = Tensor::from_slice(&[-1.0f32, 0.0, 30.0], [3]).gelu_tanh();
    /// assert_eq!((y * 10_000.0).round().to_vec::<f32>()?, [-1588.0, 0.0, 300_000.0]); // gelu: -1587
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_tanh(&self) -> Tensor {
        Tensor::or_invalid(activation(Call::here("gelu_tanh"), Composite::GeluTanh, self))
    }

    /// `exp(x - max) / sum(exp(x - max))` along one axis. Keeps shape and dtype.
    ///
    /// Invalid for integers and bools, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let logits = Tensor::from_slice(&[1.0f32, 1.0, 5.0, 5.0], [2, 2]);
    /// assert_eq!(logits.softmax(-1).to_vec::<f32>()?, [0.5; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, axis: isize) -> Tensor {
        Tensor::or_invalid(softmax(Call::here("softmax"), self, axis))
    }

    /// `(x - mean) / sqrt(var + eps) * weight + bias`, with mean and (biased) variance over the last
    /// dimensions: those of `normalized_shape`, which is also the shape of weight and bias. Keeps shape and
    /// dtype. PyTorch's `eps` is 1e-5.
    ///
    /// J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.
    ///
    /// Invalid for integers and bools, and if shapes or dtypes do not match.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, -1.0], [1, 2]);
    /// let (weight, bias) = (Tensor::full([2], 3, DType::F32), Tensor::ones([2], DType::F32));
    /// let y = x.layer_norm([2], Some(&weight), Some(&bias), 0.0);
    /// assert_eq!(y.to_vec::<f32>()?, [4.0, -2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(
        &self,
        normalized_shape: impl Into<Shape>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Tensor {
        let call = Call::here("layer_norm");
        Tensor::or_invalid(layer_norm(call, self, &normalized_shape.into(), weight, bias, eps))
    }
}

fn sigmoid(call: Call, x: &Tensor) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    call.composite(Composite::Sigmoid, &call.cast(x, float_for(dtype))?, shape.clone())
}

fn activation(call: Call, composite: Composite, x: &Tensor) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    call.needs_float(x)?;
    call.composite(composite, x, shape.clone())
}

fn softmax(call: Call, x: &Tensor, axis: isize) -> Result<Tensor> {
    call.needs_float(x)?;
    call.along(x, axis, |x, axis| call.composite(Composite::Softmax { axis }, x, x.known()?.0.clone()))
}

fn layer_norm(
    call: Call,
    x: &Tensor,
    normalized: &Shape,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    call.needs_float(x)?;
    if normalized.rank() == 0 || !shape.ends_with(normalized) {
        return call.fail(format!("normalized_shape {normalized} is not the end of shape {shape}"));
    }
    let composite = Composite::LayerNorm { dims: normalized.rank(), eps_bits: eps.to_bits() };
    let mut result = call.composite(composite, x, shape.clone())?;
    for (name, parameter, op) in [("weight", weight, BinaryOp::Mul), ("bias", bias, BinaryOp::Add)] {
        let Some(parameter) = parameter else { continue };
        let (own, own_dtype) = parameter.known()?;
        if own != normalized || own_dtype != dtype {
            return call.fail(format!("the {name} must be {dtype} {normalized}, got {own_dtype} {own}"));
        }
        result = call.binary(op, &result, &call.expand(parameter, shape)?)?;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::tensor::tests::{mistake, recorded};

    #[test]
    fn dtypes_follow_pytorch() {
        for dtype in DType::ALL {
            let x = Tensor::zeros([4, 4], dtype);
            let same = dtype.is_float().then_some(dtype);
            for y in [x.silu(), x.gelu(), x.gelu_tanh(), x.softmax(0)] {
                assert_eq!(y.dtype().ok(), same, "{dtype}");
            }
            assert_eq!(x.layer_norm([4], None, None, 1e-5).dtype().ok(), same);
            assert_eq!(x.sigmoid().dtype().unwrap(), float_for(dtype));
        }
    }

    #[test]
    fn layers_are_recorded_whole() {
        let x = Tensor::from_slice(&[1.0f32; 4], [2, 2]);
        let w = Tensor::from_slice(&[1.0f32; 2], [2]);
        assert_eq!(recorded(&x.softmax(-1)), ["input", "softmax"]);
        assert_eq!(
            recorded(&x.layer_norm([2], Some(&w), Some(&w), 1e-5)),
            ["input", "layer_norm", "input", "expand", "mul", "expand", "add"]
        );
        assert_eq!(recorded(&x.layer_norm([2, 2], None, None, 1e-5)), ["input", "layer_norm"]);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([1, 2, 3], DType::F32);
        mistake!(
            x.cast(DType::I32).gelu(),
            "gelu: needs a float tensor, got i32 [1, 2, 3]; cast it first, such as with .cast(DType::F32)"
        );
        mistake!(
            x.softmax(3),
            "softmax: axis 3 is out of range for shape [1, 2, 3]: it must be from -3 to 2"
        );
        mistake!(
            x.layer_norm([2], None, None, 1e-5),
            "layer_norm: normalized_shape [2] is not the end of shape [1, 2, 3]"
        );
        mistake!(
            x.layer_norm([3], Some(&Tensor::ones([2], DType::F16)), None, 1e-5),
            "layer_norm: the weight must be f32 [3], got f16 [2]"
        );
    }
}
