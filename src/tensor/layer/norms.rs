//! Normalisations, computed in `F32` for 16-bit floats and rounded once.

use crate::graph::op::{self, ConstantRole};
use crate::tensor::arguments::call::Call;
use crate::tensor::reduce::moments;
use crate::tensor::reduce::statistics::{along, root, widened};
use crate::{BinaryOp, DType, Operand, ReduceOp, Result, Scalar, Shape, Tensor, UnaryOp};

impl Tensor {
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

    /// [`Tensor::softmax`] of the negative: the smallest element has the largest share.
    ///
    /// Invalid for integers and bools, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[500.0f32, 0.0, 500.0], [3]);
    /// assert_eq!(x.softmin(0).to_vec::<f32>()?, [0.0, 1.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn softmin(&self, axis: isize) -> Tensor {
        let call = Call::here("softmin");
        call.composed(|| {
            call.needs_float(self)?;
            Ok((-self).softmax(axis))
        })
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

    /// `log(softmax(x))` along one axis, without the loss of digits: `x - logsumexp(x)`. Keeps shape and dtype.
    ///
    /// Invalid for integers and bools, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 0.0], [2]);
    /// assert_eq!(x.log_softmax(-1).to_vec::<f32>()?, [-(2f32.ln()); 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax(&self, axis: isize) -> Tensor {
        let call = Call::here("log_softmax");
        call.composed(|| {
            let (shape, _) = self.known()?;
            call.axes(&axis.into(), shape)?;
            call.needs_float(self)?;
            if shape.elements() == 0 {
                return Ok(self.clone());
            }
            widened(self, |x| {
                let shifted = x - x.max_keepdim(axis).detach();
                &shifted - shifted.exp().sum_keepdim(axis).log()
            })
        })
    }

    /// `x / sqrt(mean(x²) + eps) * weight`, with the mean over the last dimensions: those of
    /// `normalized_shape`, which is also the weight's shape. Keeps shape and dtype.
    ///
    /// B. Zhang, R. Sennrich, "Root mean square layer normalization", 2019.
    ///
    /// Invalid for integers and bools, and if shapes or dtypes do not match.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, -3.0], [2]);
    /// assert_eq!(x.rms_norm([2], None, 0.0).to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rms_norm(&self, normalized_shape: impl Into<Shape>, weight: Option<&Tensor>, eps: f64) -> Tensor {
        let (call, normalized) = (Call::here("rms_norm"), normalized_shape.into());
        call.composed(|| {
            let (shape, _) = self.known()?;
            call.needs_float(self)?;
            if normalized.rank() == 0 || !shape.ends_with(&normalized) {
                return call.fail(format!("normalized_shape {normalized} is not the end of shape {shape}"));
            }
            let weight = parameter(call, self, "weight", weight, &normalized, &normalized)?;
            let axes: Vec<usize> = (shape.rank() - normalized.rank()..shape.rank()).collect();
            widened(self, |x| {
                let scaled = x * (x.square().mean_keepdim(axes) + eps).rsqrt();
                weight.map_or(scaled.clone(), |weight| scaled * weight)
            })
        })
    }

    /// Mean 0 and variance 1 within each of `groups` groups of neighbouring channels (axis 1) and all axes
    /// after it, then times weight and plus bias, one number a channel. Keeps shape and dtype.
    ///
    /// Y. Wu, K. He, "Group normalization", 2018.
    ///
    /// Invalid for integers and bools, and if the channels cannot be divided into so many groups.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 10.0, 30.0], [1, 4]);
    /// assert_eq!(x.group_norm(2, None, None, 0.0).to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Tensor {
        let call = Call::here("group_norm");
        call.composed(|| group_norm(call, self, Some(groups), [weight, bias], eps))
    }

    /// [`Tensor::group_norm`] with each channel a group of its own. Needs at least one axis after the channels.
    ///
    /// D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization: the missing ingredient for fast
    /// stylization", 2016.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 10.0, 30.0], [1, 2, 2]);
    /// assert_eq!(x.instance_norm(None, None, 0.0).to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn instance_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let call = Call::here("instance_norm");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if shape.rank() < 3 {
                return call.fail(format!(
                    "needs at least 3 dimensions (batch, channels, and what is normalised), got {dtype} {shape}"
                ));
            }
            group_norm(call, self, None, [weight, bias], eps)
        })
    }

    /// `(x - mean) / sqrt(var + eps) * weight + bias` with given statistics, one number a channel (axis 1):
    /// batch normalisation in inference. Keeps shape and dtype.
    ///
    /// S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    /// covariate shift", 2015.
    ///
    /// Invalid for integers and bools, and if shapes or dtypes do not match.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 10.0, 3.0, 30.0], [2, 2]);
    /// let (mean, var) = (Tensor::from_slice(&[2.0f32, 20.0], [2]), Tensor::from_slice(&[1.0f32, 100.0], [2]));
    /// assert_eq!(x.batch_norm(&mean, &var, None, None, 0.0).to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm(
        &self,
        mean: impl AsRef<Tensor>,
        var: impl AsRef<Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Tensor {
        let (mean, var) = (mean.as_ref(), var.as_ref());
        let call = Call::here("batch_norm");
        call.composed(|| {
            let (channels, broadcast) = channels(call, self)?;
            let parameter = |name, given| parameter(call, self, name, given, &channels, &broadcast);
            let (Some(mean), Some(var)) = (parameter("mean", Some(mean))?, parameter("variance", Some(var))?)
            else {
                return call.fail("needs a mean and a variance");
            };
            let (weight, bias) = (parameter("weight", weight)?, parameter("bias", bias)?);
            widened(self, |x| affine((x - mean) * (var + eps).rsqrt(), weight, bias))
        })
    }

    /// Batch normalisation in training: `(x - mean) / sqrt(var + eps) * weight + bias` with the mean and the (biased) variance of each
    /// channel (axis 1) in this batch; and what the running statistics become, each `(1 - momentum) * running + momentum * own`, with
    /// the unbiased variance. Keeps shape and dtype, and those of the running statistics. Gradients go through the batch's statistics.
    /// PyTorch's `F.batch_norm(…, training=True)`, whose `momentum` is 0.1 and `eps` 1e-5; with a
    /// momentum of 1, the running statistics are the batch's.
    ///
    /// S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    /// covariate shift", 2015.
    ///
    /// All are invalid for integers and bools, if shapes or dtypes do not match, and if a channel has one element, which has no
    /// variance. Of none, the running statistics stay.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 10.0, 3.0, 30.0], [2, 2]);
    /// let (mean, var) = (Tensor::zeros([2], DType::F32), Tensor::ones([2], DType::F32));
    /// let (y, mean, var) = x.batch_norm_training(&mean, &var, None, None, 0.5, 0.0);
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// assert_eq!((mean.to_vec::<f32>()?, var.to_vec::<f32>()?), (vec![1.0, 10.0], vec![1.5, 100.5]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm_training(
        &self,
        running_mean: impl AsRef<Tensor>,
        running_var: impl AsRef<Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        momentum: f64,
        eps: f64,
    ) -> (Tensor, Tensor, Tensor) {
        let (call, running) =
            (Call::here("batch_norm_training"), [running_mean.as_ref(), running_var.as_ref()]);
        let all = call.compose(|| batch_norm_training(call, self, running, [weight, bias], momentum, eps));
        all.unwrap_or_else(|error| {
            let invalid = || Tensor::invalid(error.clone());
            (invalid(), invalid(), invalid())
        })
    }

    /// Divided by the p-norm along an axis, but by `eps` at least. Keeps shape and dtype. PyTorch's `eps` is
    /// 1e-12.
    ///
    /// Invalid for integers and bools, for a `p` that is NaN, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 4.0], [2]);
    /// assert_eq!(x.normalize(2.0, -1, 1e-12).to_vec::<f32>()?, [0.6, 0.8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn normalize(&self, p: f64, axis: isize, eps: f64) -> Tensor {
        let call = Call::here("normalize");
        call.composed(|| {
            call.needs_float(self)?;
            widened(self, |x| x / x.norm_keepdim(axis, p).maximum(eps))
        })
    }

    /// Each position of an axis scaled so that its p-norm, over all other axes, is `most`, if it is more. Keeps shape and dtype.
    /// PyTorch's `renorm`, which adds 1e-7 to the norm that it divides by.
    ///
    /// Invalid for integers and bools, for a `p` that is not above 0, a `most` below 0, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 4.0, 0.3, 0.4], [2, 2]);
    /// let rows = x.renorm(2.0, 0, 1.0).round_decimals(4);
    /// assert_eq!(rows.to_vec::<f32>()?, [0.6, 0.8, 0.3, 0.4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn renorm(&self, p: f64, axis: isize, most: f64) -> Tensor {
        let call = Call::here("renorm");
        call.composed(|| {
            call.needs_float(self)?;
            call.needs(p > 0.0, "the order p must be more than 0", p)?;
            call.needs(most >= 0.0, "the largest norm must be 0 or more", most)?;
            let (shape, _) = self.known()?;
            let axis = call.axis(axis, shape)?;
            if shape.elements() == 0 {
                return Ok(self.clone());
            }
            let others: Vec<usize> = (0..shape.rank()).filter(|&other| other != axis).collect();
            widened(self, |x| {
                let norm = x.norm_keepdim(others, p);
                x * norm.gt(most).where_(most / (&norm + 1e-7), 1.0)
            })
        })
    }

    /// Divided by `(k + alpha * mean(x²))^beta`, with the mean over `size` neighbouring channels (axis 1);
    /// channels that do not exist count as 0. Keeps shape and dtype. PyTorch's defaults are 1e-4, 0.75 and 1.
    ///
    /// A. Krizhevsky, I. Sutskever, G. E. Hinton, "ImageNet classification with deep convolutional neural
    /// networks", 2012.
    ///
    /// Invalid for integers and bools, for a size of 0, and without an axis 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]);
    /// assert_eq!(x.local_response_norm(1, 1.0, 1.0, 0.0).to_vec::<f32>()?, [1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn local_response_norm(&self, size: usize, alpha: f64, beta: f64, k: f64) -> Tensor {
        let call = Call::here("local_response_norm");
        call.composed(|| {
            let (channels, _) = channels(call, self)?;
            if size == 0 {
                return call.fail("the size must be at least 1, got 0");
            }
            if channels.elements() == 0 {
                return Ok(self.clone());
            }
            widened(self, |x| {
                let mut border = vec![(0, 0); x.node.shape.rank()];
                border[1] = (size / 2, (size - 1) / 2);
                let windows = x.square().pad(&border, 0.0).unfold(1, size, 1);
                x / (windows.mean(-1) * alpha + k).pow(beta)
            })
        })
    }

    /// The cosine of the angle between two vectors along an axis, which the result no longer has:
    /// `sum(x * y) / (max(|x|, eps) * max(|y|, eps))`. Shapes broadcast; dtypes are promoted. PyTorch's `eps`
    /// is 1e-8.
    ///
    /// Invalid for integers and bools, for an axis out of range, and for a negative `eps`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1.0f32, 0.0], [2]), Tensor::from_slice(&[3.0f32, 4.0], [2]));
    /// assert_eq!(x.cosine_similarity(&y, 0, 1e-8).to_vec::<f32>()?, [0.6]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cosine_similarity(&self, other: impl AsRef<Tensor>, axis: isize, eps: f64) -> Tensor {
        let other = other.as_ref();
        let call = Call::here("cosine_similarity");
        call.composed(|| {
            let operands = [Operand::from(self), Operand::from(other)];
            let dtype = crate::tensor::arguments::promotion::result_type(&operands)?;
            let shape = call.broadcast(&[&self.node.shape, &other.node.shape])?;
            call.axes(&axis.into(), &shape)?;
            call.needs(eps >= 0.0, "eps must be 0 or more", eps)?;
            for tensor in [self, other] {
                call.needs_float(tensor)?;
            }
            let [x, y] = [self, other].map(|tensor| tensor.cast(dtype.compute()).broadcast_to(&shape));
            let length =
                |x: &Tensor| -> Result<Tensor> { Ok(root(call, &x.square().sum(axis))?.maximum(eps)) };
            Ok(((&x * &y).sum(axis) / (length(&x)? * length(&y)?)).cast(dtype))
        })
    }
}

fn softmax(call: Call, x: &Tensor, axis: isize) -> Result<Tensor> {
    call.needs_float(x)?;
    call.along(x, axis, |x, axis| {
        if x.known()?.0.elements() == 0 {
            return Ok(x.clone()); // There is no largest of nothing, and nothing to compute.
        }
        call.rounded_once(x, |x| softmax_of(call, x, &op::Axes::from_slice(&[axis])))
    })
}

fn softmax_of(call: Call, x: &Tensor, axes: &op::Axes) -> Result<Tensor> {
    let largest = call.detached(&call.reduce(ReduceOp::Max, x, axes, true)?);
    let shifted = call.binary(BinaryOp::Sub, x, &largest)?;
    let exp = call.unary(UnaryOp::Exp, &shifted)?;
    // One division a row: the sum is between 1 and the number of elements, or NaN.
    let sum = call.reduce(ReduceOp::Sum, &exp, axes, true)?;
    let scale = call.unary(UnaryOp::Reciprocal, &sum)?;
    call.binary(BinaryOp::Mul, &exp, &scale)
}

/// `(x - mean) / sqrt(var + eps)`.
fn standardised(call: Call, x: &Tensor, axes: &op::Axes, eps: f64) -> Result<Tensor> {
    let mean = moments::mean(call, x, axes, true)?;
    let variance = moments::variance(call, x, axes, 0, true)?;
    let eps = call.constant(Scalar::from_f64(variance.node.dtype, eps), ConstantRole::Argument)?;
    let scale = call.unary(UnaryOp::Rsqrt, &call.binary(BinaryOp::Add, &variance, &eps)?)?;
    call.binary(BinaryOp::Mul, &call.binary(BinaryOp::Sub, x, &mean)?, &scale)
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
    let axes: op::Axes = (shape.rank() - normalized.rank()..shape.rank()).collect();
    let mut result = call.rounded_once(x, |x| standardised(call, x, &axes, eps))?;
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

/// The shape of one number a channel, and as it broadcasts to the tensor; the tensor is a float one.
fn channels(call: Call, x: &Tensor) -> Result<(Shape, Shape)> {
    let (shape, dtype) = x.known()?;
    call.needs_float(x)?;
    match shape.get(1) {
        Some(&count) => Ok((Shape::from([count]), along(shape.rank() - 1, 0, count))),
        None => call.fail(format!("needs channels along axis 1, got {dtype} {shape}")),
    }
}

/// The parameter in the dtype of the arithmetic, in the shape in which it broadcasts.
fn parameter(
    call: Call,
    x: &Tensor,
    name: &str,
    given: Option<&Tensor>,
    expected: &Shape,
    broadcast: &Shape,
) -> Result<Option<Tensor>> {
    let Some(given) = given else { return Ok(None) };
    let ((_, dtype), (own, own_dtype)) = (x.known()?, given.known()?);
    // Beside 16-bit floats, parameters are often kept in F32.
    let fits = own_dtype == dtype || own_dtype == dtype.compute();
    if own != expected || !fits {
        let or = if dtype == dtype.compute() { String::new() } else { format!(" or {}", DType::F32) };
        return call.fail(format!("the {name} must be {dtype}{or} {expected}, got {own_dtype} {own}"));
    }
    Ok(Some(given.cast(dtype.compute()).reshape(broadcast)))
}

fn batch_norm_training(
    call: Call,
    x: &Tensor,
    running: [&Tensor; 2],
    [weight, bias]: [Option<&Tensor>; 2],
    momentum: f64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (each, broadcast) = channels(call, x)?;
    let parameter = |name, given| parameter(call, x, name, given, &each, &broadcast);
    for (name, running) in [("running mean", running[0]), ("running variance", running[1])] {
        parameter(name, Some(running))?;
    }
    let (weight, bias) = (parameter("weight", weight)?, parameter("bias", bias)?);
    let (shape, dtype) = x.known()?;
    let count: usize = shape.iter().enumerate().map(|(axis, &e)| if axis == 1 { 1 } else { e }).product();
    if count == 1 && each[0] > 0 {
        return call.fail(format!("needs more than one element a channel, got {dtype} {shape}"));
    }
    if shape.elements() == 0 {
        return Ok((x.clone(), running[0].clone(), running[1].clone()));
    }
    let axes: Vec<usize> = (0..shape.rank()).filter(|&axis| axis != 1).collect();
    let wide = x.cast(dtype.compute());
    let (var, mean) = wide.var_mean_keepdim(axes, 0);
    let normal = affine((&wide - &mean) * (&var + eps).rsqrt(), weight, bias).cast(dtype);
    let next = |old: &Tensor, own: Tensor, share: f64| {
        let own = own.reshape(&each) * share;
        (old.cast(dtype.compute()) * (1.0 - momentum) + own).cast(old.node.dtype)
    };
    let unbiased = count as f64 / (count as f64 - 1.0);
    let (mean, var) = (next(running[0], mean, momentum), next(running[1], var, momentum * unbiased));
    for tensor in [&normal, &mean, &var] {
        tensor.validity()?;
    }
    Ok((normal, mean, var))
}

fn affine(x: Tensor, weight: Option<Tensor>, bias: Option<Tensor>) -> Tensor {
    let scaled = weight.map_or(x.clone(), |weight| x * weight);
    bias.map_or(scaled.clone(), |bias| scaled + bias)
}

fn group_norm(
    call: Call,
    x: &Tensor,
    groups: Option<usize>,
    [weight, bias]: [Option<&Tensor>; 2],
    eps: f64,
) -> Result<Tensor> {
    let (one_each, _) = channels(call, x)?;
    let (shape, count) = (x.known()?.0, one_each[0]);
    let groups = groups.unwrap_or(count);
    if count.checked_rem(groups).is_none_or(|rest| rest != 0) && (count, groups) != (0, 0) {
        return call
            .fail(format!("the {count} channels of shape {shape} cannot be divided into {groups} groups"));
    }
    let in_group = count.checked_div(groups).unwrap_or(0);
    let rest = Shape::from(&shape[2..]).elements();
    let apart = Shape::from([shape[0], groups, in_group, rest]);
    let broadcast = Shape::from([groups, in_group, 1]);
    let weight = parameter(call, x, "weight", weight, &one_each, &broadcast)?;
    let bias = parameter(call, x, "bias", bias, &one_each, &broadcast)?;
    if shape.elements() == 0 {
        return Ok(x.clone());
    }
    widened(x, |x| {
        let normal = x.reshape(&apart).layer_norm([in_group, rest], None, None, eps);
        affine(normal, weight, bias).reshape(shape)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{mistake, recorded};

    #[test]
    fn dtypes_follow_pytorch() {
        for dtype in DType::ALL {
            let x = Tensor::zeros([4, 4], dtype);
            let same = dtype.is_float().then_some(dtype);
            assert_eq!(x.softmax(0).dtype().ok(), same, "{dtype}");
            assert_eq!(x.layer_norm([4], None, None, 1e-5).dtype().ok(), same);
        }
    }

    #[test]
    fn a_softmax_is_an_extreme_a_sum_and_a_factor_each_of_a_row() {
        let x = Tensor::from_slice(&[1.0f32; 4], [2, 2]);
        let expected = [
            "input",
            "max",
            "reshape",
            "expand",
            "sub",
            "exp",
            "sum",
            "reshape",
            "reciprocal",
            "expand",
            "mul",
        ];
        assert_eq!(recorded(&x.softmax(-1)), expected);
        let half = recorded(&x.cast(DType::BF16).softmax(-1));
        assert_eq!((&*half[1], &*half[2], half.last().map(String::as_str)), ("cast", "cast", Some("cast")));
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([1, 2, 3], DType::F32);
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
