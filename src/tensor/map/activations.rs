//! Activations of neural networks.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::formula::{Argument, Term, formula};
use super::operands::Rule;
use crate::graph::op::View;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::{Result, Shape, Tensor};

/// `activation_methods! { rule: docs name(parameters) = |x| formula; … }`, where parameters may have a condition:
/// `name(parameters) needs [condition, "what must hold", what is given] = |x| formula;`.
macro_rules! activation_methods {
    ($rule:ident: $(
        $(#[$meta:meta])*
        $name:ident($($parameter:ident),*) $(needs [$holds:expr, $needs:literal, $given:expr])? = $formula:expr;
    )*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self $(, $parameter: f64)*) -> Tensor {
                    let call = Call::here(stringify!($name));
                    $(if let Err(error) = call.needs($holds, $needs, $given) {
                        return Tensor::invalid(error);
                    })?
                    $(let $parameter = Argument($parameter);)*
                    let compute: &dyn Fn(&Term) -> Term = &$formula;
                    Tensor::or_invalid(formula(call, Rule::$rule, [self.into()], |[x]| compute(&x)))
                }
            )*
        }
    };
}

activation_methods! {
    Numbers:
    /// `min(max(x, 0), 6)`; NaN stays NaN. Keeps shape and dtype; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1i32, 3, 9], [3]).relu6().to_vec::<i32>()?, [0, 3, 6]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    relu6() = |x| x.flattened(0.0, 6.0);
    /// `min(max(x, low), high)`; NaN stays NaN. Keeps shape and dtype, which must hold the limits; invalid for
    /// `Bool`, and for a low limit above the high one. PyTorch's limits are -1 and 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-3.0f32, 0.5], [2]);
    /// assert_eq!(x.hardtanh(-1.0, 1.0).to_vec::<f32>()?, [-1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hardtanh(low, high) needs [
        low.is_nan() || high.is_nan() || low <= high,
        "the low limit must not be above the high one",
        format!("{low} and {high}")
    ] = |x| x.flattened(low, high);
    /// `x` where it is above the threshold, else the value; NaN stays NaN. Keeps shape and dtype, which must hold
    /// the numbers; invalid for `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-3.0f32, 0.5, 2.0], [3]);
    /// assert_eq!(x.threshold(0.5, 9.0).to_vec::<f32>()?, [9.0, 9.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    threshold(threshold, value) = |x| x.le(threshold).select(value, x);
}

activation_methods! {
    Float:
    /// `1 / (1 + exp(-x))`. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32], [1]).sigmoid().to_vec::<f32>()?, [0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sigmoid() = |x| x.sigmoid();
}

activation_methods! {
    Floats:
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
    silu() = |x| (x / ((-x).exp() + 1.0)).derived([x], |g, [x], _| {
        let s = x.sigmoid();
        [g * (&s * (x * (-&s + 1.0) + 1.0))]
    });
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
    gelu() = |x| {
        let erf = (x * FRAC_1_SQRT_2).erf();
        x * 0.5 * (erf + 1.0)
    };
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
    gelu_tanh() = |x| {
        let inner = (x + x.square() * x * 0.044715) * (2.0 / PI).sqrt();
        x * 0.5 * (inner.tanh() + 1.0)
    };
    /// `x` where it is positive, `slope * x` elsewhere. Keeps shape and dtype; invalid for integers and bools.
    /// PyTorch's slope is 0.01.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-4.0f32, 2.0], [2]);
    /// assert_eq!(x.leaky_relu(0.25).to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    leaky_relu(slope) = |x| x.gt(0.0).select(x, x * slope);
    /// `x` where it is positive, `alpha * (exp(x) - 1)` elsewhere. Keeps shape and dtype; invalid for integers and
    /// bools. PyTorch's alpha is 1.
    ///
    /// D.-A. Clevert, T. Unterthiner, S. Hochreiter, "Fast and accurate deep network learning by exponential linear
    /// units", 2015.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NEG_INFINITY, 2.0], [2]);
    /// assert_eq!(x.elu(1.0).to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    elu(alpha) = |x| {
        let elu = x.gt(0.0).select(x, x.expm1() * alpha);
        elu.derived([x], move |g, [x], y| [x.gt(0.0).select(&g, &g * (y + alpha))])
    };
    /// [`Tensor::elu`] with the alpha and the scale that keep mean 0 and variance 1. Keeps shape and dtype; invalid for
    /// integers and bools.
    ///
    /// G. Klambauer et al., "Self-normalizing neural networks", 2017.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], [2]);
    /// assert_eq!(x.selu().to_vec::<f32>()?, [0.0, 1.050_701]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    selu() = |x| {
        const BELOW: f64 = SELU_SCALE * SELU_ALPHA;
        let selu = x.gt(0.0).select(x * SELU_SCALE, x.expm1() * BELOW);
        selu.derived([x], |g, [x], y| [x.gt(0.0).select(&g * SELU_SCALE, &g * (y + BELOW))])
    };
    /// `x` where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere. Keeps shape and dtype; invalid for integers
    /// and bools, and for an alpha of 0. PyTorch's alpha is 1.
    ///
    /// J. T. Barron, "Continuously differentiable exponential linear units", 2017.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NEG_INFINITY, 2.0], [2]);
    /// assert_eq!(x.celu(0.5).to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    celu(alpha) needs [alpha != 0.0, "alpha must not be 0", alpha] = |x| {
        let celu = x.gt(0.0).select(x, (x / alpha).expm1() * alpha);
        celu.derived([x], move |g, [x], y| [x.gt(0.0).select(&g, &g * (y / alpha + 1.0))])
    };
    /// `log(sigmoid(x))`, without overflow. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-100.0f32, 100.0], [2]);
    /// assert_eq!(x.logsigmoid().to_vec::<f32>()?[0], -100.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logsigmoid() = |x| x.logsigmoid();
    /// `min(max(x + 3, 0), 6) / 6`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-4.0f32, 0.0, 4.0], [3]);
    /// assert_eq!(x.hardsigmoid().to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hardsigmoid() = |x| (x + 3.0).flattened(0.0, 6.0) / 6.0;
    /// `x * min(max(x + 3, 0), 6) / 6`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// A. Howard et al., "Searching for MobileNetV3", 2019.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-4.0f32, 3.0], [2]);
    /// assert_eq!(x.hardswish().to_vec::<f32>()?, [-0.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hardswish() = |x| {
        let swish = x * (x + 3.0).clamp(0.0, 6.0) / 6.0;
        swish.derived([x], |g, [x], _| {
            let between = &g * (&x / 3.0 + 0.5);
            [x.le(-3.0).select(0.0, x.lt(3.0).select(between, &g))]
        })
    };
    /// `log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` exceeds the threshold. Keeps shape and dtype;
    /// invalid for integers and bools. PyTorch's beta is 1 and its threshold 20.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NEG_INFINITY, 50.0], [2]);
    /// assert_eq!(x.softplus(1.0, 20.0).to_vec::<f32>()?, [0.0, 50.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    softplus(beta, threshold) = |x| {
        let scaled = x * beta;
        let softplus = scaled.gt(threshold).select(x, scaled.exp().log1p() / beta);
        softplus.derived([x], move |g, [x], _| {
            let scaled = x * beta;
            [scaled.gt(threshold).select(&g, &g * scaled.sigmoid())]
        })
    };
    /// `x / (1 + |x|)`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.0f32, 3.0], [2]).softsign().to_vec::<f32>()?, [-0.5, 0.75]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    softsign() = |x| x / (x.abs() + 1.0);
    /// `x * tanh(softplus(x))`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// D. Misra, "Mish: a self regularized non-monotonic activation function", 2019.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32, 50.0], [2]).mish().to_vec::<f32>()?, [0.0, 50.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    mish() = |x| (x * x.softplus().tanh()).derived([x], |g, [x], _| {
        let t = x.softplus().tanh();
        [g * (&t + &x * x.sigmoid() * (-t.square() + 1.0))]
    });
    /// `x - tanh(x)`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32, 50.0], [2]).tanhshrink().to_vec::<f32>()?, [0.0, 49.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    tanhshrink() = |x| x - x.tanh();
    /// Towards 0 by lambda, and 0 within it. Keeps shape and dtype; invalid for integers and bools, and unless lambda is
    /// finite and not negative. PyTorch's lambda is 0.5.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.0f32, 0.25, 2.0], [3]);
    /// assert_eq!(x.softshrink(0.5).to_vec::<f32>()?, [-1.5, 0.0, 1.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    softshrink(lambda) needs [
        (0.0..=f64::MAX).contains(&lambda),
        "lambda must be finite and not negative",
        lambda
    ] = |x| {
        let moved = x.gt(0.0).select(x - lambda, x + lambda);
        x.abs().le(lambda).select(0.0, moved)
    };
    /// 0 within ±lambda, `x` beyond. Keeps shape and dtype; invalid for integers and bools. PyTorch's lambda is 0.5.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.0f32, 0.25, 2.0], [3]);
    /// assert_eq!(x.hardshrink(0.5).to_vec::<f32>()?, [-2.0, 0.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hardshrink(lambda) = |x| x.abs().le(lambda).select(0.0, x);
}

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

impl Tensor {
    /// `x` where it is positive, `weight * x` elsewhere. The weight is one number, or one for each index of dimension
    /// 1 (the channels). Keeps shape and dtype.
    ///
    /// Invalid for integers and bools, and for a weight of another dtype or length.
    ///
    /// K. He et al., "Delving deep into rectifiers", 2015.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, -1.0, 2.0, 2.0], [2, 2]);
    /// let weight = Tensor::from_slice(&[0.5f32, 0.25], [2]);
    /// assert_eq!(x.prelu(&weight).to_vec::<f32>()?, [-0.5, -0.25, 2.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn prelu(&self, weight: impl AsRef<Tensor>) -> Tensor {
        let weight = weight.as_ref();
        Tensor::or_invalid(prelu(Call::here("prelu"), self, weight))
    }

    /// The first half along an axis times the sigmoid of the second half: half of the extent. Keeps the dtype.
    ///
    /// Invalid for integers and bools, for an axis out of range, and for an odd extent.
    ///
    /// Y. N. Dauphin et al., "Language modeling with gated convolutional networks", 2016.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2.0f32, 4.0, 0.0, 0.0], [4]);
    /// assert_eq!(x.glu(-1).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn glu(&self, axis: isize) -> Tensor {
        Tensor::or_invalid(glu(Call::here("glu"), self, axis))
    }
}

fn prelu(call: Call, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let (own, own_dtype) = weight.known()?;
    call.needs_float(x)?;
    let channels = shape.get(1).copied().unwrap_or(1);
    if own.rank() > 1 || own.elements() != 1 && own.elements() != channels || own_dtype != dtype {
        return call
            .fail(format!("the weight must be {dtype} of 1 or {channels} elements, got {own_dtype} {own}"));
    }
    let mut aligned = vec![1; shape.rank().max(1)];
    if let (Some(extent), true) = (aligned.get_mut(1), own.elements() != 1) {
        *extent = channels;
    }
    aligned.truncate(shape.rank());
    let weight = call.reshape(weight, Shape::from(aligned))?;
    let operands = [Operand::from(x), Operand::from(weight)];
    formula(call, Rule::Floats, operands, |[x, w]| x.gt(0.0).select(&x, &x * w))
}

fn glu(call: Call, x: &Tensor, axis: isize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    call.needs_float(x)?;
    if shape[axis] % 2 != 0 {
        return call
            .fail(format!("axis {axis} of shape {shape} has {} elements, which have no half", shape[axis]));
    }
    let mut half = shape.to_vec();
    half[axis] /= 2;
    let half = Shape::from(half);
    let part = |start: usize| {
        let starts = (0..shape.rank()).map(|own| if own == axis { start as i64 } else { 0 }).collect();
        let steps = shape.iter().map(|_| 1).collect();
        call.view(View::Slice { starts, steps }, x, half.clone())
    };
    let operands = [Operand::from(part(0)?), Operand::from(part(half[axis])?)];
    formula(call, Rule::Floats, operands, |[a, b]| a * b.sigmoid())
}
