//! Layers of neural networks.

use super::Accuracy::{Exact, Near, Ulps};
use super::Gives::{Float, Same};
use super::{ANY, Accuracy, Elements, Group, Input, SMALL, UNIT, operations};
use crate::Reduction::{Mean, None, Sum};
use crate::{DType, Pool2d};

const IMAGE: Input = SMALL.shape(&[2, 3, 7, 9]);
const ROWS: Input = SMALL.shape(&[4, 37]);
const LABELS: Input = Input::new(Elements::Below(37), Some(DType::I64)).shape(&[4]);
const SUMMED: Accuracy = Near { relative: 8.0, absolute: 8.0 };

/// `exp` overflows before its reciprocal is 0, and loses digits before it is 0 itself.
const TAIL: Accuracy = Near { relative: 6.0, absolute: 1e-28 };

operations! {
    /// Activations.
    ACTIVATIONS: Group::Activation;
    relu(a: ANY) Numbers -> Same, Exact, "`max(x, 0)`.": "torch.relu(a)" => a.relu();
    sigmoid(a: ANY) All -> Float, TAIL, "`1 / (1 + exp(-x))`.": "torch.sigmoid(a)" => a.sigmoid();
    silu(a: ANY) Floats -> Same, TAIL, "`x * sigmoid(x)`.": "F.silu(a)" => a.silu();
    gelu(a: ANY) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "`x / 2 * (1 + erf(x / sqrt(2)))`.": "F.gelu(a)" => a.gelu();
    gelu_tanh(a: ANY) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "gelu with tanh in place of erf.": "F.gelu(a, approximate='tanh')" => a.gelu_tanh();
    relu6(a: ANY) Numbers -> Same, Exact, "`min(max(x, 0), 6)`.": "F.relu6(a)" => a.relu6();
    hardtanh(a: ANY) Numbers -> Same, Exact, "`min(max(x, low), high)`.": "F.hardtanh(a, 0, 1)" => a.hardtanh(0.0, 1.0);
    leaky_relu(a: ANY) Floats -> Same, Exact, "`x` if positive, else `slope * x`.": "F.leaky_relu(a, 0.25)" => a.leaky_relu(0.25);
    prelu(a: SMALL.shape(&[3, 4, 5]), w: SMALL.shape(&[4])) Floats -> Same, Exact, "`x` if positive, else `weight * x`.": "F.prelu(a, w)" => a.prelu(w);
    elu(a: ANY) Floats -> Same, Ulps(4), "`x` if positive, else `alpha * (exp(x) - 1)`.": "F.elu(a, 1.5)" => a.elu(1.5);
    selu(a: ANY) Floats -> Same, Ulps(4), "elu with constants that keep mean 0 and variance 1.": "F.selu(a)" => a.selu();
    celu(a: ANY) Floats -> Same, Ulps(4), "`x` if positive, else `alpha * (exp(x / alpha) - 1)`.": "F.celu(a, 2.0)" => a.celu(2.0);
    logsigmoid(a: ANY) Floats -> Same, Ulps(4), "`log(sigmoid(x))`.": "F.logsigmoid(a)" => a.logsigmoid();
    hardsigmoid(a: ANY) Floats -> Same, Exact, "`min(max(x + 3, 0), 6) / 6`.": "F.hardsigmoid(a)" => a.hardsigmoid();
    hardswish(a: ANY) Floats -> Same, Exact, "`x * min(max(x + 3, 0), 6) / 6`.": "F.hardswish(a)" => a.hardswish();
    softplus(a: ANY) Floats -> Same, Ulps(5), "`log(1 + exp(beta * x)) / beta`.": "F.softplus(a, 2.0, 20.0)" => a.softplus(2.0, 20.0);
    softsign(a: ANY) Floats -> Same, Exact, "`x / (1 + |x|)`.": "F.softsign(a)" => a.softsign();
    mish(a: ANY) Floats -> Same, TAIL, "`x * tanh(softplus(x))`.": "F.mish(a)" => a.mish();
    tanhshrink(a: ANY) Floats -> Same, Near { relative: 2.0, absolute: 2.0 }, "`x - tanh(x)`.": "F.tanhshrink(a)" => a.tanhshrink();
    softshrink(a: ANY) Floats -> Same, Exact, "Towards 0 by lambda.": "F.softshrink(a, 0.5)" => a.softshrink(0.5);
    hardshrink(a: ANY) Floats -> Same, Exact, "0 within ±lambda.": "F.hardshrink(a, 0.5)" => a.hardshrink(0.5);
    glu(a: SMALL.shape(&[4, 6])) Floats -> Same, Ulps(4), "One half times the sigmoid of the other.": "F.glu(a, -1)" => a.glu(-1), "F.glu(a, 0)" => a.glu(0);
}

operations! {
    /// Losses.
    LOSSES: Group::Loss;
    mse_loss(a: ROWS, b: ROWS) Floats -> Same, SUMMED, "Squared differences.": "F.mse_loss(a, b, reduction='none')" => a.mse_loss(b, None), "F.mse_loss(a, b, reduction='mean')" => a.mse_loss(b, Mean);
    l1_loss(a: ROWS, b: ROWS) Floats -> Same, SUMMED, "Distances.": "F.l1_loss(a, b, reduction='sum')" => a.l1_loss(b, Sum), "F.l1_loss(a, b)" => a.l1_loss(b, Mean);
    smooth_l1_loss(a: ROWS, b: ROWS) Floats -> Same, SUMMED, "Squared differences below beta, distances above.": "F.smooth_l1_loss(a, b, reduction='none', beta=2.0)" => a.smooth_l1_loss(b, 2.0, None), "F.smooth_l1_loss(a, b)" => a.smooth_l1_loss(b, 1.0, Mean);
    huber_loss(a: ROWS, b: ROWS) Floats -> Same, SUMMED, "Squared differences below delta, scaled distances above.": "F.huber_loss(a, b, reduction='none', delta=2.0)" => a.huber_loss(b, 2.0, None), "F.huber_loss(a, b)" => a.huber_loss(b, 1.0, Mean);
    binary_cross_entropy_with_logits(a: ROWS, b: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "The cross-entropy of logits with probabilities.": "F.binary_cross_entropy_with_logits(a, b, reduction='none')" => a.binary_cross_entropy_with_logits(b, None), "F.binary_cross_entropy_with_logits(a, b)" => a.binary_cross_entropy_with_logits(b, Mean);
    kl_div(a: ROWS, b: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "Terms of the Kullback-Leibler divergence.": "F.kl_div(a, b, reduction='none')" => a.kl_div(b, None), "F.kl_div(a, b, reduction='sum')" => a.kl_div(b, Sum);
    nll_loss(a: ROWS, l: LABELS) Floats -> Same, SUMMED, "The negative element that the label chooses.": "F.nll_loss(a, l, reduction='none')" => a.nll_loss(l, None), "F.nll_loss(a, l)" => a.nll_loss(l, Mean);
    cross_entropy(a: ROWS, l: LABELS) Floats -> Same, SUMMED, "nll_loss of the logarithm of the softmax.": "F.cross_entropy(a, l, reduction='none')" => a.cross_entropy(l, None), "F.cross_entropy(a, l)" => a.cross_entropy(l, Mean), "F.cross_entropy(a, l, reduction='sum')" => a.cross_entropy(l, Sum);
}

operations! {
    /// Normalisation.
    NORMS: Group::Norm;
    softmax(a: ROWS) Floats -> Same, Near { relative: 8.0, absolute: 0.0 }, "`exp(x - max) / sum(exp(x - max))` along an axis.": "torch.softmax(a, -1)" => a.softmax(-1), "torch.softmax(a, 0)" => a.softmax(0);
    layer_norm(a: ROWS, w: SMALL.shape(&[37]), b: SMALL.shape(&[37])) Floats -> Same, Near { relative: 8.0, absolute: 32.0 }, "`(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions.": "F.layer_norm(a, [37], w, b, 1e-5)" => a.layer_norm([37], Some(w), Some(b), 1e-5);
}

operations! {
    /// Windows.
    WINDOWS: Group::Window;
    max_pool2d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each window.": "F.max_pool2d(a, 2, 2)" => a.max_pool2d(2, 2);
    max_pool2d_with(a: IMAGE) Numbers -> Same, Exact, "`max_pool2d` with padding and dilation.": "F.max_pool2d(a, 3, 2, 1, (1, 2))" => a.max_pool2d_with(Pool2d::new(3).stride(2).padding(1).dilation((1, 2)));
    avg_pool2d(a: IMAGE) Floats -> Same, Ulps(2), "The mean of each window.": "F.avg_pool2d(a, 2, 2)" => a.avg_pool2d(2, 2);
    avg_pool2d_with(a: IMAGE) Floats -> Same, Ulps(2), "`avg_pool2d` with padding and dilation.": "F.avg_pool2d(a, 3, 2, 1)" => a.avg_pool2d_with(Pool2d::new(3).stride(2).padding(1));
}
