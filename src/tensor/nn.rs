//! Neural-network layers: activations, normalisation and pooling, recorded whole and decomposed later.

use super::call::Call;
use super::elementwise::float_for;
use crate::graph::infer::pool2d_shape;
use crate::graph::op::{self, Composite};
use crate::{BinaryOp, DType, Result, Shape, Tensor};

/// Two numbers, for height and width: from one for both, a tuple or an array.
///
/// ```
/// use lazuli::Pair;
/// assert_eq!(Pair::from(2), Pair::from((2, 2)));
/// assert_eq!(Pair::from([3, 1]), Pair::from((3, 1)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pair(pub(crate) [usize; 2]);

impl From<usize> for Pair {
    fn from(both: usize) -> Pair {
        Pair([both, both])
    }
}

impl From<(usize, usize)> for Pair {
    fn from((height, width): (usize, usize)) -> Pair {
        Pair([height, width])
    }
}

impl From<[usize; 2]> for Pair {
    fn from(pair: [usize; 2]) -> Pair {
        Pair(pair)
    }
}

/// The windows of a 2-d pooling: [`Tensor::max_pool2d_with`] and [`Tensor::avg_pool2d_with`].
///
/// ```
/// use lazuli::{DType, Pool2d, Shape, Tensor};
/// let x = Tensor::zeros([1, 8, 32, 32], DType::F32);
/// let pool = Pool2d::new(3).stride(2).padding(1);
/// assert_eq!(x.max_pool2d_with(pool).shape()?, Shape::from([1, 8, 16, 16]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pool2d(op::Pool2d);

impl Pool2d {
    /// Windows of that size, side by side (the stride is the size), without padding or dilation.
    pub fn new(kernel: impl Into<Pair>) -> Pool2d {
        let Pair(kernel) = kernel.into();
        Pool2d(op::Pool2d { kernel, stride: kernel, padding: [0, 0], dilation: [1, 1] })
    }

    /// The distance between the starts of neighbouring windows.
    pub fn stride(mut self, stride: impl Into<Pair>) -> Pool2d {
        self.0.stride = stride.into().0;
        self
    }

    /// How far windows may reach beyond each edge: at most half of their size.
    pub fn padding(mut self, padding: impl Into<Pair>) -> Pool2d {
        self.0.padding = padding.into().0;
        self
    }

    /// The distance between neighbouring positions of one window.
    pub fn dilation(mut self, dilation: impl Into<Pair>) -> Pool2d {
        self.0.dilation = dilation.into().0;
        self
    }
}

impl Tensor {
    /// The largest element of each window of the last two dimensions; NaN if any is NaN. Any dimensions may
    /// come before, such as `[batch, channels, height, width]`; an extent becomes
    /// `(extent - kernel) / stride + 1`, rounded down. Keeps the dtype.
    ///
    /// Invalid for fewer than two dimensions, for `Bool`, and where no window fits.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 4]);
    /// assert_eq!(x.max_pool2d(2, 2).to_vec::<f32>()?, [6.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn max_pool2d(&self, kernel: impl Into<Pair>, stride: impl Into<Pair>) -> Tensor {
        let pool = Pool2d::new(kernel).stride(stride);
        Tensor::or_invalid(pool2d(Call::here("max_pool2d"), Composite::MaxPool2d(pool.0), self, pool))
    }

    /// [`Tensor::max_pool2d`] with padding and dilation. The padding is below every number. An extent becomes
    /// `(extent + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1`, rounded down.
    #[track_caller]
    pub fn max_pool2d_with(&self, pool: Pool2d) -> Tensor {
        Tensor::or_invalid(pool2d(Call::here("max_pool2d_with"), Composite::MaxPool2d(pool.0), self, pool))
    }

    /// The mean of each window of the last two dimensions; shapes as by [`Tensor::max_pool2d`]. Keeps the
    /// dtype.
    ///
    /// Invalid for fewer than two dimensions, for integers and bools, and where no window fits.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 4]);
    /// assert_eq!(x.avg_pool2d(2, 2).to_vec::<f32>()?, [3.5, 5.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn avg_pool2d(&self, kernel: impl Into<Pair>, stride: impl Into<Pair>) -> Tensor {
        let pool = Pool2d::new(kernel).stride(stride);
        Tensor::or_invalid(pool2d(Call::here("avg_pool2d"), Composite::AvgPool2d(pool.0), self, pool))
    }

    /// [`Tensor::avg_pool2d`] with padding and dilation. The padding is zeros, which count in the mean
    /// (PyTorch's `count_include_pad`).
    #[track_caller]
    pub fn avg_pool2d_with(&self, pool: Pool2d) -> Tensor {
        Tensor::or_invalid(pool2d(Call::here("avg_pool2d_with"), Composite::AvgPool2d(pool.0), self, pool))
    }

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
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        Tensor::or_invalid(activation(Call::here("silu"), Composite::Silu, self))
    }

    /// `x / 2 * (1 + erf(x / sqrt(2)))`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        Tensor::or_invalid(activation(Call::here("gelu"), Composite::Gelu, self))
    }

    /// `x / 2 * (1 + tanh(sqrt(2 / π) * (x + 0.044715 * x³)))`, PyTorch's gelu with `approximate="tanh"`. Keeps
    /// shape and dtype; invalid for integers and bools.
    ///
    /// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
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

fn pool2d(call: Call, composite: Composite, x: &Tensor, pool: Pool2d) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    match composite {
        Composite::AvgPool2d(_) => call.needs_float(x)?,
        _ if dtype == DType::Bool => {
            return call
                .fail(format!("not defined for bool {shape}; cast it first, such as with .cast(DType::U8)"));
        }
        _ => {}
    }
    let pooled = pool2d_shape(shape, &pool.0).map_err(|message| call.error(message))?;
    // What it decomposes into must be addressable as well: the padded input, and all windows of it.
    let mut padded = shape.to_vec();
    for (extent, padding) in padded.iter_mut().rev().zip(pool.0.padding.into_iter().rev()) {
        *extent = extent.saturating_add(padding.saturating_mul(2));
    }
    call.needs_addressable(&padded.into())?;
    call.needs_addressable(&pooled.iter().copied().chain(pool.0.kernel).collect())?;
    call.composite(composite, x, pooled)
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
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    call.needs_float(x)?;
    call.composite(Composite::Softmax { axis }, x, shape.clone())
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
    use crate::tensor::tests::{mistake, recorded};

    #[test]
    fn pooling_shapes_are_pytorchs() {
        let x = Tensor::zeros([2, 3, 7, 9], DType::F32);
        let shape = |x: Tensor| x.shape().unwrap();
        assert_eq!(shape(x.max_pool2d(2, 2)), Shape::from([2, 3, 3, 4]));
        assert_eq!(shape(x.avg_pool2d((3, 2), [1, 3])), Shape::from([2, 3, 5, 3]));
        let pool = Pool2d::new(3).stride(2).padding(1).dilation((1, 2));
        assert_eq!(shape(x.max_pool2d_with(pool)), Shape::from([2, 3, 4, 4]));
        assert_eq!(shape(x.avg_pool2d_with(Pool2d::new(3))), Shape::from([2, 3, 2, 3]));
        assert_eq!(shape(x.select(0, 0).max_pool2d(2, 1)), Shape::from([3, 6, 8]));
        assert_eq!(shape(x.select(0, 0).select(0, 0).max_pool2d(2, 1)), Shape::from([6, 8]));
        assert_eq!(
            shape(Tensor::zeros([0, 3, 4, 4], DType::F32).max_pool2d(2, 2)),
            Shape::from([0, 3, 2, 2])
        );
    }

    #[test]
    fn dtypes_follow_pytorch() {
        for dtype in DType::ALL {
            let x = Tensor::zeros([4, 4], dtype);
            let same = dtype.is_float().then_some(dtype);
            for y in [x.silu(), x.gelu(), x.gelu_tanh(), x.softmax(0), x.avg_pool2d(2, 2)] {
                assert_eq!(y.dtype().ok(), same, "{dtype}");
            }
            assert_eq!(x.layer_norm([4], None, None, 1e-5).dtype().ok(), same);
            assert_eq!(x.sigmoid().dtype().unwrap(), float_for(dtype));
            assert_eq!(x.max_pool2d(2, 2).dtype().ok(), (dtype != DType::Bool).then_some(dtype));
        }
    }

    #[test]
    fn layers_are_recorded_whole() {
        let x = Tensor::from_slice(&[1.0f32; 4], [2, 2]);
        let w = Tensor::from_slice(&[1.0f32; 2], [2]);
        assert_eq!(recorded(&x.softmax(-1)), ["input", "softmax"]);
        assert_eq!(recorded(&x.relu().max_pool2d(2, 2)), ["input", "relu", "max_pool2d"]);
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
            x.max_pool2d(4, 1),
            "max_pool2d: kernel 4×4 with dilation 1×1 exceeds the padded input 2×3 (input [1, 2, 3], padding 0×0)"
        );
        mistake!(
            x.avg_pool2d_with(Pool2d::new(2).padding(2)),
            "avg_pool2d_with: padding 2 is more than half of the kernel 2"
        );
        mistake!(
            x.max_pool2d(2, 0),
            "max_pool2d: kernel, stride and dilation must be at least 1, got 2, 0, 1"
        );
        mistake!(
            Tensor::ones([3], DType::F32).max_pool2d(2, 2),
            "max_pool2d: needs at least 2 dimensions (height, width), got shape [3]"
        );
        mistake!(
            x.cast(DType::U8).avg_pool2d(2, 2),
            "avg_pool2d: needs a float tensor, got u8 [1, 2, 3]; cast it first, such as with .cast(DType::F32)"
        );
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
        let huge = Tensor::ones([1 << 29, 1 << 29], DType::U8);
        mistake!(
            huge.max_pool2d(1 << 28, 1),
            "max_pool2d: shape [268435457, 268435457, 268435456, 268435456] has more elements than can be addressed"
        );
    }
}
