//! Layers of neural networks.

use super::row::Accuracy::{Exact, Near, Ulps};
use super::row::Gives::{Float, Same, Sum as Summed};
use super::row::{ANY, Accuracy, Elements, Group, Input, MASK, SMALL, UNIT, operations};
use crate::Reduction::{Mean, None, Sum};
use crate::{
    Attention, BinaryCrossEntropy, Conv1d, Conv2d, Conv3d, CrossEntropy, DType, Fourier, FourierNorm,
    GridSample, Interpolation, KlDiv, NllLoss, Outside, Pool1d, Pool2d, Pool3d, Stft, Tensor,
};

const IMAGE: Input = SMALL.shape(&[2, 3, 7, 9]);
const PLANES: Input = SMALL.shape(&[2, 4, 7, 9]);
const CHANNELS: Input = SMALL.shape(&[4]);
const VARIANCE: Input = Input { elements: Elements::Unit, ..CHANNELS };
const POOLED: Accuracy = Near { relative: 2.0, absolute: 2.0 };
const NORMAL: Accuracy = Near { relative: 16.0, absolute: 64.0 };
const ROWS: Input = SMALL.shape(&[4, 37]);
const LABELS: Input = Input::new(Elements::Below(37), Some(DType::I64)).shape(&[4]);
const SUMMED: Accuracy = Near { relative: 8.0, absolute: 8.0 };

/// Sums of so many terms whose factors are rounded too.
const TURNED: Accuracy = Near { relative: 16.0, absolute: 1024.0 };

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
    threshold(a: ANY) Numbers -> Same, Exact, "`x` above the threshold, else the value.": "F.threshold(a, 1, 3)" => a.threshold(1.0, 3.0);
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
    binary_cross_entropy_with_logits_with(a: ROWS, b: UNIT.shape(&[4, 37]), w: UNIT.shape(&[4, 1]), p: UNIT.shape(&[37])) Floats -> Same, SUMMED, "`binary_cross_entropy_with_logits` with weights.": "F.binary_cross_entropy_with_logits(a, b, w, reduction='none', pos_weight=p)" => a.binary_cross_entropy_with_logits_with(b, &BinaryCrossEntropy::new().weights(w).positive_weights(p).reduction(None)), "F.binary_cross_entropy_with_logits(a, b, pos_weight=p)" => a.binary_cross_entropy_with_logits_with(b, &BinaryCrossEntropy::new().positive_weights(p)), "F.binary_cross_entropy_with_logits(a, b, w, reduction='sum')" => a.binary_cross_entropy_with_logits_with(b, &BinaryCrossEntropy::new().weights(w).reduction(Sum));
    binary_cross_entropy(a: UNIT.shape(&[4, 37]), b: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "The cross-entropy of probabilities.": "F.binary_cross_entropy(a, b, reduction='none')" => a.binary_cross_entropy(b, None), "F.binary_cross_entropy(a, b)" => a.binary_cross_entropy(b, Mean);
    kl_div(a: ROWS, b: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "Terms of the Kullback-Leibler divergence.": "F.kl_div(a, b, reduction='none')" => a.kl_div(b, None), "F.kl_div(a, b, reduction='sum')" => a.kl_div(b, Sum);
    kl_div_with(a: ROWS, b: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "`kl_div` of logarithms, and the mean of a batch.": "F.kl_div(a, b, log_target=True, reduction='none')" => a.kl_div_with(b, &KlDiv::new().log_target().reduction(None)), "F.kl_div(a, b, reduction='batchmean')" => a.kl_div_with(b, &KlDiv::new().batch_mean()), "F.kl_div(a, b, log_target=True)" => a.kl_div_with(b, &KlDiv::new().log_target()), "F.kl_div(a[0, 0], b[0, 0], reduction='batchmean')" => a.select(0, 0).select(0, 0).kl_div_with(&b.select(0, 0).select(0, 0), &KlDiv::new().batch_mean());
    poisson_nll_loss(a: UNIT.shape(&[4, 37]), b: ROWS) Floats -> Same, SUMMED, "The negative log-likelihood of Poisson's distribution.": "F.poisson_nll_loss(a, b, reduction='none')" => a.poisson_nll_loss(b, true, false, 1e-8, None), "F.poisson_nll_loss(a, b, log_input=False, full=True, eps=0.5)" => a.poisson_nll_loss(b, false, true, 0.5, Mean);
    gaussian_nll_loss(a: ROWS, b: ROWS, v: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "The negative log-likelihood of the normal distribution.": "F.gaussian_nll_loss(a, b, v + 1, reduction='none')" => a.gaussian_nll_loss(b, &(v + 1), false, 1e-6, None), "F.gaussian_nll_loss(a, b, v[:, 0] + 1, full=True)" => a.gaussian_nll_loss(b, &(v.select(1, 0) + 1), true, 1e-6, Mean);
    soft_margin_loss(a: UNIT.shape(&[4, 37]), b: ROWS) Floats -> Same, SUMMED, "`log(1 + exp(-y * x))`.": "F.soft_margin_loss(a, b, reduction='none')" => a.soft_margin_loss(b, None), "F.soft_margin_loss(a, b)" => a.soft_margin_loss(b, Mean);
    hinge_embedding_loss(a: ROWS, t: MASK.shape(&[4, 37])) Floats -> Same, SUMMED, "The distance, or what it falls short of a margin.": "F.hinge_embedding_loss(a, t.to(a.dtype) * 2 - 1, reduction='none')" => a.hinge_embedding_loss(&(t.cast(DType::I8) * 2 - 1), 1.0, None), "F.hinge_embedding_loss(a, t.to(a.dtype), margin=0.5)" => a.hinge_embedding_loss(t, 0.5, Mean);
    margin_ranking_loss(a: ROWS, b: ROWS, t: MASK.shape(&[4, 37])) Floats -> Same, SUMMED, "What is not the larger, or smaller, by a margin.": "F.margin_ranking_loss(a, b, t.to(a.dtype) * 2 - 1, margin=0.5, reduction='none')" => a.margin_ranking_loss(b, &(t.cast(DType::I8) * 2 - 1), 0.5, None), "F.margin_ranking_loss(a, b, t.to(a.dtype) * 2 - 1)" => a.margin_ranking_loss(b, &(t.cast(DType::I8) * 2 - 1), 0.0, Mean);
    cosine_embedding_loss(a: UNIT.shape(&[4, 37]), b: UNIT.shape(&[4, 37]), t: MASK.shape(&[4])) Floats -> Same, NORMAL, "Of a pair's angle, small or beyond a margin.": "F.cosine_embedding_loss(a, b, t.to(a.dtype) * 2 - 1, margin=0.25, reduction='none')" => a.cosine_embedding_loss(b, &(t.cast(DType::I8) * 2 - 1), 0.25, None), "F.cosine_embedding_loss(a[0], b[1], t[0].to(a.dtype) * 2 - 1)" => a.select(0, 0).cosine_embedding_loss(&b.select(0, 1), &(t.select(0, 0).cast(DType::I8) * 2 - 1), 0.0, Mean);
    triplet_margin_loss(a: ROWS, b: ROWS, c: ROWS) Floats -> Same, NORMAL, "Nearer to the positive than to the negative by a margin.": "F.triplet_margin_loss(a, b, c, margin=5.0, reduction='none')" => a.triplet_margin_loss(b, c, 5.0, 2.0, false, None), "F.triplet_margin_loss(a, b, c, margin=9.0, p=1.0, swap=True)" => a.triplet_margin_loss(b, c, 9.0, 1.0, true, Mean);
    nll_loss(a: ROWS, l: LABELS) Floats -> Same, SUMMED, "The negative element that the label chooses.": "F.nll_loss(a, l, reduction='none')" => a.nll_loss(l, None), "F.nll_loss(a, l)" => a.nll_loss(l, Mean);
    nll_loss_with(a: ROWS, l: LABELS, w: UNIT.shape(&[37])) Floats -> Same, SUMMED, "`nll_loss` with weights of classes, and labels that are none.": "F.nll_loss(a, l, w)" => a.nll_loss_with(l, &NllLoss::new().weights(w)), "F.nll_loss(a, l, ignore_index=5, reduction='none')" => a.nll_loss_with(l, &NllLoss::new().ignored(5).reduction(None)), "F.nll_loss(a, l, w, ignore_index=5, reduction='sum')" => a.nll_loss_with(l, &NllLoss::new().weights(w).ignored(5).reduction(Sum));
    cross_entropy(a: ROWS, l: LABELS) Floats -> Same, SUMMED, "nll_loss of the logarithm of the softmax.": "F.cross_entropy(a, l, reduction='none')" => a.cross_entropy(l, None), "F.cross_entropy(a, l)" => a.cross_entropy(l, Mean), "F.cross_entropy(a, l, reduction='sum')" => a.cross_entropy(l, Sum);
    cross_entropy_with(a: ROWS, l: LABELS, w: UNIT.shape(&[37]), p: UNIT.shape(&[4, 37])) Floats -> Same, SUMMED, "Cross-entropy with weights, smoothing or probabilities.": "F.cross_entropy(a, l, w)" => a.cross_entropy_with(l, &CrossEntropy::new().weights(w)), "F.cross_entropy(a, l, w, label_smoothing=0.25)" => a.cross_entropy_with(l, &CrossEntropy::new().weights(w).smoothing(0.25)), "F.cross_entropy(a, l, ignore_index=5, reduction='none', label_smoothing=0.5)" => a.cross_entropy_with(l, &CrossEntropy::new().ignored(5).smoothing(0.5).reduction(None)), "F.cross_entropy(a, p, w, reduction='sum')" => a.cross_entropy_with(p, &CrossEntropy::new().weights(w).reduction(Sum)), "F.cross_entropy(a, p, label_smoothing=0.25)" => a.cross_entropy_with(p, &CrossEntropy::new().smoothing(0.25));
    ctc_loss(a: SMALL.shape(&[8, 3, 5]), l: Input::new(Elements::Below(4), Some(DType::I64)).shape(&[3, 3])) Floats -> Same, NORMAL, "How likely labels are, whenever they come.": "F.ctc_loss(a, l + 1, torch.arange(6, 9), torch.arange(1, 4), reduction='none')" => a.ctc_loss(l + 1, Tensor::arange(6, 9, 1), Tensor::arange(1, 4, 1), 0, None, false), "F.ctc_loss(torch.log_softmax(a, -1), l, torch.arange(2, 5), torch.arange(1, 4), 4, zero_infinity=True)" => a.log_softmax(-1).ctc_loss(l, Tensor::arange(2, 5, 1), Tensor::arange(1, 4, 1), 4, Mean, true);
}

operations! {
    /// Normalisation.
    NORMS: Group::Norm;
    softmax(a: ROWS) Floats -> Same, Near { relative: 8.0, absolute: 0.0 }, "`exp(x - max) / sum(exp(x - max))` along an axis.": "torch.softmax(a, -1)" => a.softmax(-1), "torch.softmax(a, 0)" => a.softmax(0);
    softmin(a: ROWS) Floats -> Same, Near { relative: 8.0, absolute: 0.0 }, "`softmax(-x)` along an axis.": "F.softmin(a, -1)" => a.softmin(-1), "F.softmin(a, 0)" => a.softmin(0);
    layer_norm(a: ROWS, w: SMALL.shape(&[37]), b: SMALL.shape(&[37])) Floats -> Same, Near { relative: 8.0, absolute: 32.0 }, "`(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions.": "F.layer_norm(a, [37], w, b, 1e-5)" => a.layer_norm([37], Some(w), Some(b), 1e-5);
    log_softmax(a: ROWS) Floats -> Same, Near { relative: 8.0, absolute: 8.0 }, "`x - logsumexp(x)` along an axis.": "torch.log_softmax(a, -1)" => a.log_softmax(-1), "torch.log_softmax(a, 0)" => a.log_softmax(0);
    rms_norm(a: ROWS, w: SMALL.shape(&[37])) Floats -> Same, NORMAL, "`x / sqrt(mean(x²) + eps) * weight` over the last dimensions.": "F.rms_norm(a, [37], w, 1e-5)" => a.rms_norm([37], Some(w), 1e-5);
    group_norm(a: PLANES, w: CHANNELS, b: CHANNELS) Floats -> Same, NORMAL, "Mean 0 and variance 1 within groups of channels.": "F.group_norm(a, 2, w, b, 1e-5)" => a.group_norm(2, Some(w), Some(b), 1e-5);
    instance_norm(a: PLANES, w: CHANNELS, b: CHANNELS) Floats -> Same, NORMAL, "Mean 0 and variance 1 within each channel.": "F.instance_norm(a, weight=w, bias=b, eps=1e-5)" => a.instance_norm(Some(w), Some(b), 1e-5);
    batch_norm(a: PLANES, m: CHANNELS, v: VARIANCE, w: CHANNELS, b: CHANNELS) Floats -> Same, NORMAL, "With given means and variances of channels.": "F.batch_norm(a, m, v, w, b, eps=1e-3)" => a.batch_norm(m, v, Some(w), Some(b), 1e-3);
    normalize(a: ROWS) Floats -> Same, NORMAL, "Divided by the p-norm along an axis.": "F.normalize(a, 2.0, -1, 1e-6)" => a.normalize(2.0, -1, 1e-6), "F.normalize(a, 1.0, 0, 1e-6)" => a.normalize(1.0, 0, 1e-6);
    renorm(a: ROWS) Floats -> Same, NORMAL, "Scaled to a largest p-norm along an axis.": "torch.renorm(a, 2, 0, 20.0)" => a.renorm(2.0, 0, 20.0), "torch.renorm(a, 1, 1, 10.0)" => a.renorm(1.0, 1, 10.0), "torch.renorm(a, float('inf'), 1, 4.0)" => a.renorm(f64::INFINITY, 1, 4.0);
    local_response_norm(a: PLANES) Floats -> Same, NORMAL, "Divided by a mean of squares of neighbouring channels.": "F.local_response_norm(a, 3, 0.1, 0.75, 1.0)" => a.local_response_norm(3, 0.1, 0.75, 1.0);
    pairwise_distance(a: ROWS, b: ROWS) Floats -> Same, NORMAL, "The p-norm of differences along the last axis.": "F.pairwise_distance(a, b)" => a.pairwise_distance(b, 2.0, 1e-6), "F.pairwise_distance(a, b, p=1.0, eps=0.5)" => a.pairwise_distance(b, 1.0, 0.5);
    cosine_similarity(a: ROWS, b: ROWS) Floats -> Same, NORMAL, "The cosine of the angle along an axis.": "F.cosine_similarity(a, b, 1, 1e-6)" => a.cosine_similarity(b, 1, 1e-6);
}

operations! {
    /// Windows.
    WINDOWS: Group::Window;
    max_pool2d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each window.": "F.max_pool2d(a, 2, 2)" => a.max_pool2d(2, 2);
    max_pool2d_with(a: IMAGE) Numbers -> Same, Exact, "`max_pool2d` with padding and dilation.": "F.max_pool2d(a, 3, 2, 1, (1, 2))" => a.max_pool2d_with(Pool2d::new(3).stride(2).padding(1).dilation((1, 2)));
    avg_pool2d(a: IMAGE) Floats -> Same, Ulps(2), "The mean of each window.": "F.avg_pool2d(a, 2, 2)" => a.avg_pool2d(2, 2);
    avg_pool2d_with(a: IMAGE) Floats -> Same, Ulps(2), "`avg_pool2d` with padding and dilation.": "F.avg_pool2d(a, 3, 2, 1)" => a.avg_pool2d_with(Pool2d::new(3).stride(2).padding(1));
    max_pool1d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each window.": "F.max_pool2d(a, (1, 3), (1, 2))" => a.max_pool1d(3, 2);
    max_pool1d_with(a: IMAGE) Numbers -> Same, Exact, "`max_pool1d` with padding and more.": "F.max_pool2d(a, (1, 3), (1, 2), (0, 1), ceil_mode=True)" => a.max_pool1d_with(Pool1d::new(3).stride(2).padding(1).ceil_mode(true));
    max_pool3d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each window.": "F.max_pool3d(a, 2, 1)" => a.max_pool3d(2, 1);
    max_pool3d_with(a: IMAGE) Numbers -> Same, Exact, "`max_pool3d` with padding and more.": "F.max_pool3d(a, 3, 2, 1, ceil_mode=True)" => a.max_pool3d_with(Pool3d::new(3).stride(2).padding(1).ceil_mode(true));
    avg_pool1d(a: IMAGE) Floats -> Same, POOLED, "The mean of each window.": "F.avg_pool2d(a, (1, 3), (1, 2))" => a.avg_pool1d(3, 2);
    avg_pool1d_with(a: IMAGE) Floats -> Same, POOLED, "`avg_pool1d` with padding and more.": "F.avg_pool2d(a, (1, 3), (1, 2), (0, 1), count_include_pad=False)" => a.avg_pool1d_with(Pool1d::new(3).stride(2).padding(1).count_include_pad(false));
    avg_pool3d(a: IMAGE) Floats -> Same, POOLED, "The mean of each window.": "F.avg_pool3d(a, 2, 1)" => a.avg_pool3d(2, 1);
    avg_pool3d_with(a: IMAGE) Floats -> Same, POOLED, "`avg_pool3d` with padding and more.": "F.avg_pool3d(a, 3, 2, 1, ceil_mode=True)" => a.avg_pool3d_with(Pool3d::new(3).stride(2).padding(1).ceil_mode(true)), "F.avg_pool3d(a, 3, 2, 1, divisor_override=5)" => a.avg_pool3d_with(Pool3d::new(3).stride(2).padding(1).divisor_override(5));
    max_pool1d_with_indices(a: PLANES) Numbers -> Same, Exact, "`max_pool1d` and the positions.": "(F.max_pool2d(a, (1, 3), (1, 2)), F.max_pool2d(a, (1, 3), (1, 2), return_indices=True)[1] % 9)" => a.max_pool1d_with_indices(Pool1d::new(3).stride(2));
    max_pool2d_with_indices(a: PLANES) Numbers -> Same, Exact, "`max_pool2d` and the positions.": "F.max_pool2d(a, 3, 2, 1, return_indices=True)" => a.max_pool2d_with_indices(Pool2d::new(3).stride(2).padding(1));
    max_pool3d_with_indices(a: PLANES) Numbers -> Same, Exact, "`max_pool3d` and the positions.": "F.max_pool3d(a, 2, 1, return_indices=True)" => a.max_pool3d_with_indices(Pool3d::new(2).stride(1));
    lp_pool1d(a: IMAGE) Floats -> Same, POOLED, "The p-norm of each window.": "F.lp_pool2d(a, 2.0, (1, 3), (1, 2))" => a.lp_pool1d(2.0, 3, 2);
    lp_pool2d(a: IMAGE) Floats -> Same, POOLED, "The p-norm of each window.": "F.lp_pool2d(a, 2.0, 3, 2)" => a.lp_pool2d(2.0, 3, 2);
    lp_pool3d(a: IMAGE) Floats -> Same, POOLED, "The p-norm of each window.": "F.lp_pool3d(a, 2.0, 3, 2)" => a.lp_pool3d(2.0, 3, 2);
    max_unpool1d(a: SMALL.shape(&[2, 4, 4]), i: Input::new(Elements::Below(9), Some(DType::I64)).shape(&[2, 4, 4])) All -> Same, Exact, "Elements back at the positions of a pooling.": "F.max_unpool1d(a, i, 2, output_size=[9])" => a.max_unpool1d(i, 9);
    max_unpool2d(a: SMALL.shape(&[2, 4, 3, 4]), i: Input::new(Elements::Below(63), Some(DType::I64)).shape(&[2, 4, 3, 4])) All -> Same, Exact, "Elements back at the positions of a pooling.": "F.max_unpool2d(a, i, 2, output_size=(7, 9))" => a.max_unpool2d(i, (7, 9));
    max_unpool3d(a: SMALL.shape(&[1, 2, 2, 3, 2]), i: Input::new(Elements::Below(96), Some(DType::I64)).shape(&[1, 2, 2, 3, 2])) All -> Same, Exact, "Elements back at the positions of a pooling.": "F.max_unpool3d(a, i, 2, output_size=(4, 6, 4))" => a.max_unpool3d(i, (4, 6, 4));
    adaptive_max_pool1d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each of so many windows.": "F.adaptive_max_pool2d(a, (7, 4))" => a.adaptive_max_pool1d(4);
    adaptive_max_pool2d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each of so many windows.": "F.adaptive_max_pool2d(a, (3, 4))" => a.adaptive_max_pool2d((3, 4));
    adaptive_max_pool3d(a: IMAGE) Numbers -> Same, Exact, "The largest element of each of so many windows.": "F.adaptive_max_pool3d(a, (2, 3, 4))" => a.adaptive_max_pool3d((2, 3, 4));
    adaptive_avg_pool1d(a: IMAGE) Floats -> Same, POOLED, "The mean of each of so many windows.": "F.adaptive_avg_pool2d(a, (7, 4))" => a.adaptive_avg_pool1d(4);
    adaptive_avg_pool2d(a: IMAGE) Floats -> Same, POOLED, "The mean of each of so many windows.": "F.adaptive_avg_pool2d(a, (3, 4))" => a.adaptive_avg_pool2d((3, 4)), "F.adaptive_avg_pool2d(a, 1)" => a.adaptive_avg_pool2d(1);
    adaptive_avg_pool3d(a: IMAGE) Floats -> Same, POOLED, "The mean of each of so many windows.": "F.adaptive_avg_pool3d(a, (2, 3, 4))" => a.adaptive_avg_pool3d((2, 3, 4));
    grid_sample(a: SMALL.shape(&[2, 3, 7, 5]), g: UNIT.shape(&[2, 4, 6, 2])) Floats -> Same, Near { relative: 64.0, absolute: 512.0 }, "Read where a grid says.": "F.grid_sample(a, g * 3 - 1.5, align_corners=False)" => a.grid_sample(&(g * 3.0 - 1.5), GridSample::new()), "F.grid_sample(a, g * 3 - 1.5, padding_mode='border', align_corners=True)" => a.grid_sample(&(g * 3.0 - 1.5), GridSample::new().outside(Outside::Border).align_corners(true)), "F.grid_sample(a, g * 9 - 4.5, padding_mode='reflection', align_corners=False)" => a.grid_sample(&(g * 9.0 - 4.5), GridSample::new().outside(Outside::Reflection)), "F.grid_sample(a, g * 9 - 4.5, padding_mode='reflection', align_corners=True)" => a.grid_sample(&(g * 9.0 - 4.5), GridSample::new().outside(Outside::Reflection).align_corners(true)), "F.grid_sample(a, g * 3 - 1.5, mode='nearest', align_corners=False)" => a.grid_sample(&(g * 3.0 - 1.5), GridSample::new().nearest());
    affine_grid(a: SMALL.shape(&[2, 2, 3])) Floats -> Same, Near { relative: 8.0, absolute: 32.0 }, "The grid of an affine map.": "F.affine_grid(a, (2, 1, 4, 6), align_corners=False)" => a.affine_grid([4, 6], false), "F.affine_grid(a, (2, 1, 5, 1), align_corners=True)" => a.affine_grid([5, 1], true);
    interpolate(a: IMAGE) Floats -> Same, Near { relative: 4.0, absolute: 8.0 }, "Resized; of every dtype but for linear modes.": "F.interpolate(a, (10, 5), mode='bilinear')" => a.interpolate([10, 5], Interpolation::Linear { align_corners: false }), "F.interpolate(a, (4, 20), mode='bilinear', align_corners=True)" => a.interpolate([4, 20], Interpolation::Linear { align_corners: true }), "F.interpolate(a.double(), (10, 5), mode='nearest').to(a.dtype)" => a.interpolate([10, 5], Interpolation::Nearest), "F.interpolate(a.double(), (10, 5), mode='nearest-exact').to(a.dtype)" => a.interpolate([10, 5], Interpolation::NearestExact), "F.interpolate(a, (10, 5), mode='bicubic')" => a.interpolate([10, 5], Interpolation::Cubic { align_corners: false }), "F.interpolate(a, (4, 20), mode='bicubic', align_corners=True)" => a.interpolate([4, 20], Interpolation::Cubic { align_corners: true }), "F.interpolate(a, (3, 7), mode='area')" => a.interpolate([3, 7], Interpolation::Area);
    interpolate_scale(a: IMAGE) All -> Same, Exact, "Resized by factors.": "F.interpolate(a.double(), scale_factor=(2.0, 0.5), mode='nearest').to(a.dtype)" => a.interpolate_scale(&[2.0, 0.5], Interpolation::Nearest), "F.interpolate(a.double(), scale_factor=(1.1, 1.1), mode='bilinear')" => a.cast(DType::F64).interpolate_scale(&[1.1, 1.1], Interpolation::Linear { align_corners: false }), "F.interpolate(a.double(), scale_factor=(1.1, 1.05), mode='nearest').to(a.dtype)" => a.interpolate_scale(&[1.1, 1.05], Interpolation::Nearest), "F.interpolate(a.double()[:, :, 0], scale_factor=1.1, mode='nearest').to(a.dtype)" => a.select(2, 0).interpolate_scale(&[1.1], Interpolation::Nearest);
}

const LEFT: Input = SMALL.shape(&[3, 5]);
const RIGHT: Input = SMALL.shape(&[5, 4]);
const LEFTS: Input = SMALL.shape(&[2, 3, 5]);
const RIGHTS: Input = SMALL.shape(&[2, 5, 4]);
const SIGNAL: Input = SMALL.shape(&[2, 4, 9]);
const VOLUME: Input = SMALL.shape(&[1, 2, 4, 5, 6]);
const HEADS: Input = SMALL.shape(&[2, 4, 5, 3]);
const KEYS: Input = SMALL.shape(&[2, 4, 6, 3]);
const VALUES: Input = SMALL.shape(&[2, 4, 6, 2]);

operations! {
    /// Products.
    PRODUCTS: Group::Product;
    matmul(a: LEFTS, b: RIGHT) Numbers -> Same, SUMMED, "The product of matrices; those before the last two dimensions broadcast.": "torch.matmul(a, b)" => a.matmul(b), "torch.matmul(a[0], b)" => a.select(0, 0).matmul(b), "torch.matmul(a, b[:, 0])" => a.matmul(&b.select(1, 0)), "torch.matmul(a[0, 0], b)" => a.select(0, 0).select(0, 0).matmul(b);
    mm(a: LEFT, b: RIGHT) Numbers -> Same, SUMMED, "The product of two matrices.": "torch.mm(a, b)" => a.mm(b);
    bmm(a: LEFTS, b: RIGHTS) Numbers -> Same, SUMMED, "The products of two batches of matrices.": "torch.bmm(a, b)" => a.bmm(b);
    multi_dot(a: SMALL.shape(&[3, 5]), b: SMALL.shape(&[5, 2]), c: SMALL.shape(&[2])) Numbers -> Same, SUMMED, "The product of many matrices.": "torch.linalg.multi_dot([a, b, c])" => Tensor::multi_dot(&[a, b, c]), "torch.linalg.multi_dot([c, b.mT, a.mT, a, b])" => Tensor::multi_dot(&[c, &b.t(), &a.t(), a, b]), "torch.linalg.multi_dot([c, c])" => Tensor::multi_dot(&[c, c]);
    mv(a: LEFT, b: SMALL.shape(&[5])) Numbers -> Same, SUMMED, "The product of a matrix and a vector.": "torch.mv(a, b)" => a.mv(b);
    dot(a: SMALL.shape(&[37]), b: SMALL.shape(&[37])) Numbers -> Same, SUMMED, "The sum of the products of two vectors' elements.": "torch.dot(a, b)" => a.dot(b);
    matrix_power(a: UNIT.shape(&[2, 4, 4])) Numbers -> Same, SUMMED, "So many factors of a matrix.": "torch.matrix_power(a, 5)" => a.matrix_power(5), "torch.matrix_power(a, 0)" => a.matrix_power(0), "torch.matrix_power(a[0], 2)" => a.select(0, 0).matrix_power(2);
    trace(a: SMALL.shape(&[5, 7])) All -> Summed, SUMMED, "The sum of a matrix's diagonal.": "torch.trace(a)" => a.trace();
    cross(a: SMALL.shape(&[4, 3]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "Perpendicular to both vectors.": "torch.linalg.cross(a, b, dim=-1)" => a.cross(b, -1);
    inner(a: LEFTS, b: SMALL.shape(&[3, 5])) Numbers -> Same, SUMMED, "The sum of products over the last axes.": "torch.inner(a, b)" => a.inner(b);
    vecdot(a: ROWS, b: SMALL.shape(&[37])) Numbers -> Same, SUMMED, "The sum of products along an axis.": "(a * b).sum(-1, dtype=a.dtype)" => a.vecdot(b, -1);
    outer(a: SMALL.shape(&[3]), b: SMALL.shape(&[5])) All -> Same, Exact, "All products of the elements of two vectors.": "torch.outer(a, b)" => a.outer(b);
    linear(a: LEFTS, w: SMALL.shape(&[4, 5]), b: SMALL.shape(&[4])) Numbers -> Same, SUMMED, "`x @ weightᵀ + bias` along the last dimension.": "F.linear(a, w, b)" => a.linear(w, Some(b)), "F.linear(a, w)" => a.linear(w, Option::None);
    addmm(x: SMALL.shape(&[4]), a: LEFT, b: RIGHT) Numbers -> Same, SUMMED, "`beta * x + alpha * (a @ b)` of matrices.": "torch.addmm(x, a, b)" => x.addmm(a, b, 1, 1), "torch.addmm(x, a, b, beta=2, alpha=3)" => x.addmm(a, b, 2, 3), "torch.addmm(x, a, b, beta=0)" => x.addmm(a, b, 0, 1);
    baddbmm(x: SMALL.shape(&[2, 3, 4]), a: LEFTS, b: RIGHTS) Numbers -> Same, SUMMED, "`addmm` of batches of matrices.": "torch.baddbmm(x, a, b, beta=2, alpha=3)" => x.baddbmm(a, b, 2, 3);
    tensordot(a: LEFTS, b: SMALL.shape(&[5, 2, 4])) Numbers -> Same, SUMMED, "The sum of products over pairs of axes.": "torch.tensordot(a, b, dims=([2, 0], [0, 1]))" => a.tensordot(b, [2, 0], [0, 1]), "torch.tensordot(a, b, dims=([], []))" => a.tensordot(b, Vec::<isize>::new(), Vec::<isize>::new());
    einsum(a: LEFTS, b: RIGHTS, c: SMALL.shape(&[4])) Numbers -> Same, SUMMED, "Sums of products by naming axes.": "torch.einsum('bij,bjk->bik', a, b)" => crate::Tensor::einsum("bij,bjk->bik", &[a, b]), "torch.einsum('bij,bjk,k->i', a, b, c)" => crate::Tensor::einsum("bij,bjk,k->i", &[a, b, c]), "torch.einsum('...j,...jk', a, b[:1])" => crate::Tensor::einsum("...j,...jk", &[a, &b.slice(0, ..1)]), "torch.einsum('iji->j', a[:, :, :2])" => crate::Tensor::einsum("iji->j", &[&a.slice(2, ..2)]);
    bilinear(a: LEFT, b: SMALL.shape(&[3, 4]), w: SMALL.shape(&[2, 5, 4]), c: SMALL.shape(&[2])) Numbers -> Same, SUMMED, "`x1ᵀ @ weight @ x2 + bias` for each output.": "F.bilinear(a, b, w, c)" => a.bilinear(b, w, Some(c));
    cdist(a: LEFTS, b: SMALL.shape(&[2, 4, 5])) Floats -> Same, SUMMED, "The distances between all rows of two matrices.": "torch.cdist(a, b)" => a.cdist(b, 2.0), "torch.cdist(a, b, p=1.0)" => a.cdist(b, 1.0), "torch.cdist(a, b, p=float('inf'))" => a.cdist(b, f64::INFINITY);
    pdist(a: SMALL.shape(&[7, 5])) Floats -> Same, SUMMED, "The distances between all pairs of rows.": "torch.pdist(a)" => a.pdist(2.0), "torch.pdist(a, 1.0)" => a.pdist(1.0), "torch.pdist(a, float('inf'))" => a.pdist(f64::INFINITY);
    vander(a: SMALL.shape(&[5])) All -> Summed, SUMMED, "The powers of each element.": "torch.vander(a)" => a.vander(5, false), "torch.vander(a, 3, True)" => a.vander(3, true);
    conv1d(a: SIGNAL, w: SMALL.shape(&[3, 4, 3]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "Windows of the last dimension, contracted with a weight.": "F.conv1d(a, w, b, 2, 1)" => a.conv1d(w, Some(b), 2, 1);
    conv1d_with(a: SIGNAL, w: SMALL.shape(&[6, 2, 3])) Numbers -> Same, SUMMED, "`conv1d` with dilation, groups and more.": "F.conv1d(a, w, None, 1, 'same', 2, 2)" => a.conv1d_with(w, Option::None, Conv1d::new().same().dilation(2).groups(2));
    conv2d(a: PLANES, w: SMALL.shape(&[3, 4, 3, 2]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "Windows of the last two dimensions, contracted with a weight.": "F.conv2d(a, w, b, 2, 1)" => a.conv2d(w, Some(b), 2, 1), "F.conv2d(a[0], w)" => a.select(0, 0).conv2d(w, Option::None, 1, 0);
    conv2d_with(a: PLANES, w: SMALL.shape(&[4, 1, 3, 3])) Numbers -> Same, SUMMED, "`conv2d` with dilation, groups and more.": "F.conv2d(a, w, None, (2, 1), (1, 2), (1, 2), 4)" => a.conv2d_with(w, Option::None, Conv2d::new().stride((2, 1)).padding((1, 2)).dilation((1, 2)).groups(4)), "F.conv2d(a, w, None, 1, 'same', 1, 4)" => a.conv2d_with(w, Option::None, Conv2d::new().same().groups(4));
    conv3d(a: VOLUME, w: SMALL.shape(&[3, 2, 2, 3, 2]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "Windows of the last three dimensions, contracted with a weight.": "F.conv3d(a, w, b, 1, 1)" => a.conv3d(w, Some(b), 1, 1);
    conv3d_with(a: VOLUME, w: SMALL.shape(&[2, 1, 2, 2, 2])) Numbers -> Same, SUMMED, "`conv3d` with dilation, groups and more.": "F.conv3d(a, w, None, 2, 1, 2, 2)" => a.conv3d_with(w, Option::None, Conv3d::new().stride(2).padding(1).dilation(2).groups(2));
    conv_transpose1d(a: SIGNAL, w: SMALL.shape(&[4, 3, 3]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "What conv1d goes back by.": "F.conv_transpose1d(a, w, b, 2, 1)" => a.conv_transpose1d(w, Some(b), 2, 1);
    conv_transpose1d_with(a: SIGNAL, w: SMALL.shape(&[4, 2, 3])) Numbers -> Same, SUMMED, "`conv_transpose1d` with dilation, groups and more.": "F.conv_transpose1d(a, w, None, 3, 2, 1, 2, 2)" => a.conv_transpose1d_with(w, Option::None, Conv1d::new().stride(3).padding(2).output_padding(1).groups(2).dilation(2));
    conv_transpose2d(a: PLANES, w: SMALL.shape(&[4, 3, 3, 2]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "What conv2d goes back by.": "F.conv_transpose2d(a, w, b, 2, 1)" => a.conv_transpose2d(w, Some(b), 2, 1);
    conv_transpose2d_with(a: PLANES, w: SMALL.shape(&[4, 1, 3, 3])) Numbers -> Same, SUMMED, "`conv_transpose2d` with dilation, groups and more.": "F.conv_transpose2d(a, w, None, 2, (3, 1), 1, 4)" => a.conv_transpose2d_with(w, Option::None, Conv2d::new().stride(2).padding((3, 1)).output_padding(1).groups(4));
    conv_transpose3d(a: VOLUME, w: SMALL.shape(&[2, 3, 2, 3, 2]), b: SMALL.shape(&[3])) Numbers -> Same, SUMMED, "What conv3d goes back by.": "F.conv_transpose3d(a, w, b, 2, 1)" => a.conv_transpose3d(w, Some(b), 2, 1);
    conv_transpose3d_with(a: VOLUME, w: SMALL.shape(&[2, 1, 2, 2, 2])) Numbers -> Same, SUMMED, "`conv_transpose3d` with dilation, groups and more.": "F.conv_transpose3d(a, w, None, 2, 0, 1, 2, 1)" => a.conv_transpose3d_with(w, Option::None, Conv3d::new().stride(2).output_padding(1).groups(2));
    fft(a: SMALL.shape(&[2, 150]), b: SMALL.shape(&[2, 150])) All -> Float, TURNED, "Fourier's transform of complex numbers.": "(lambda f: (f.real, f.imag))(torch.fft.fft(torch.complex(as_float(a), as_float(b)), dim=1))" => a.fft(b, 1), "(lambda f: (f.real, f.imag))(torch.fft.fft(torch.complex(as_float(a), as_float(b)), dim=0))" => a.fft(b, 0), "(lambda f: (f.real, f.imag))(torch.fft.fft(torch.complex(as_float(a), as_float(b))[:, :131], dim=-1))" => a.slice(1, ..131).fft(&b.slice(1, ..131), -1);
    ifft(a: SMALL.shape(&[2, 150]), b: SMALL.shape(&[2, 150])) All -> Float, TURNED, "The inverse of fft.": "(lambda f: (f.real, f.imag))(torch.fft.ifft(torch.complex(as_float(a), as_float(b)), dim=1))" => a.ifft(b, 1);
    rfft(a: SMALL.shape(&[1, 600])) All -> Float, TURNED, "Fourier's transform of real numbers.": "(lambda f: (f.real, f.imag))(torch.fft.rfft(as_float(a), dim=1))" => a.rfft(1), "(lambda f: (f.real, f.imag))(torch.fft.rfft(as_float(a)[:, :9], dim=1))" => a.slice(1, ..9).rfft(1);
    irfft(a: SMALL.shape(&[1, 301]), b: SMALL.shape(&[1, 301])) All -> Float, TURNED, "The inverse of rfft.": "torch.fft.irfft(torch.complex(as_float(a), as_float(b)), n=600, dim=1)" => a.irfft(b, 600, 1), "torch.fft.irfft(torch.complex(as_float(a), as_float(b))[:, :5], n=9, dim=1)" => a.slice(1, ..5).irfft(&b.slice(1, ..5), 9, 1), "torch.fft.irfft(torch.complex(as_float(a), as_float(b))[:, :5], n=4, dim=1)" => a.slice(1, ..5).irfft(&b.slice(1, ..5), 4, 1), "torch.fft.irfft(torch.complex(as_float(a), as_float(b))[:, :5], n=15, dim=1)" => a.slice(1, ..5).irfft(&b.slice(1, ..5), 15, 1);
    fft_with(a: SMALL.shape(&[2, 50]), b: SMALL.shape(&[2, 50])) All -> Float, TURNED, "`fft` of another length or scale.": "(lambda f: (f.real, f.imag))(torch.fft.fft(torch.complex(as_float(a), as_float(b)), 64, norm='ortho'))" => a.fft_with(b, -1, Fourier::new().length(64).norm(FourierNorm::Ortho)), "(lambda f: (f.real, f.imag))(torch.fft.fft(torch.complex(as_float(a), as_float(b)), 3, 0, norm='forward'))" => a.fft_with(b, 0, Fourier::new().length(3).norm(FourierNorm::Forward)), "(lambda f: (f.real, f.imag))(torch.fft.fft(torch.complex(as_float(a), as_float(b)), 21))" => a.fft_with(b, 1, Fourier::new().length(21));
    ifft_with(a: SMALL.shape(&[2, 50]), b: SMALL.shape(&[2, 50])) All -> Float, TURNED, "The inverse of fft_with.": "(lambda f: (f.real, f.imag))(torch.fft.ifft(torch.complex(as_float(a), as_float(b)), 21, norm='ortho'))" => a.ifft_with(b, -1, Fourier::new().length(21).norm(FourierNorm::Ortho)), "(lambda f: (f.real, f.imag))(torch.fft.ifft(torch.complex(as_float(a), as_float(b)), norm='forward'))" => a.ifft_with(b, 1, Fourier::new().norm(FourierNorm::Forward));
    rfft_with(a: SMALL.shape(&[2, 50])) All -> Float, TURNED, "`rfft` of another length or scale.": "(lambda f: (f.real, f.imag))(torch.fft.rfft(as_float(a), 64, norm='ortho'))" => a.rfft_with(-1, Fourier::new().length(64).norm(FourierNorm::Ortho)), "(lambda f: (f.real, f.imag))(torch.fft.rfft(as_float(a), 3, 0, norm='forward'))" => a.rfft_with(0, Fourier::new().length(3).norm(FourierNorm::Forward)), "(lambda f: (f.real, f.imag))(torch.fft.rfft(as_float(a)[:0], 3, 0))" => a.slice(0, ..0).rfft_with(0, Fourier::new().length(3));
    irfft_with(a: SMALL.shape(&[2, 50]), b: SMALL.shape(&[2, 50])) All -> Float, TURNED, "The inverse of rfft_with.": "torch.fft.irfft(torch.complex(as_float(a), as_float(b)), norm='ortho')" => a.irfft_with(b, -1, Fourier::new().norm(FourierNorm::Ortho)), "torch.fft.irfft(torch.complex(as_float(a), as_float(b)), 41, norm='forward')" => a.irfft_with(b, 1, Fourier::new().length(41).norm(FourierNorm::Forward)), "torch.fft.irfft(torch.complex(as_float(a), as_float(b)), 6, 0)" => a.irfft_with(b, 0, Fourier::new().length(6));
    fft2(a: SMALL.shape(&[2, 6, 20]), b: SMALL.shape(&[2, 6, 20])) All -> Float, TURNED, "`fft` along the last two axes.": "(lambda f: (f.real, f.imag))(torch.fft.fft2(torch.complex(as_float(a), as_float(b))))" => a.fft2(b), "(lambda f: (f.real, f.imag))(torch.fft.fft2(torch.complex(as_float(a), as_float(b))[0, :, :17]))" => a.select(0, 0).slice(1, ..17).fft2(&b.select(0, 0).slice(1, ..17));
    ifft2(a: SMALL.shape(&[2, 6, 20]), b: SMALL.shape(&[2, 6, 20])) All -> Float, TURNED, "The inverse of fft2.": "(lambda f: (f.real, f.imag))(torch.fft.ifft2(torch.complex(as_float(a), as_float(b))))" => a.ifft2(b);
    rfft2(a: SMALL.shape(&[2, 6, 20])) All -> Float, TURNED, "`fft2` of real numbers.": "(lambda f: (f.real, f.imag))(torch.fft.rfft2(as_float(a)))" => a.rfft2(), "(lambda f: (f.real, f.imag))(torch.fft.rfft2(as_float(a)[0, :5, :9]))" => a.select(0, 0).slice(0, ..5).slice(1, ..9).rfft2();
    irfft2(a: SMALL.shape(&[2, 6, 11]), b: SMALL.shape(&[2, 6, 11])) All -> Float, TURNED, "The inverse of rfft2.": "torch.fft.irfft2(torch.complex(as_float(a), as_float(b)), s=(6, 20))" => a.irfft2(b, 20), "torch.fft.irfft2(torch.complex(as_float(a), as_float(b)), s=(6, 21))" => a.irfft2(b, 21);
    fftn(a: SMALL.shape(&[3, 4, 7]), b: SMALL.shape(&[3, 4, 7])) All -> Float, TURNED, "`fft` along several axes.": "(lambda f: (f.real, f.imag))(torch.fft.fftn(torch.complex(as_float(a), as_float(b))))" => a.fftn(b, ..), "(lambda f: (f.real, f.imag))(torch.fft.fftn(torch.complex(as_float(a), as_float(b)), dim=(2, 0)))" => a.fftn(b, [2, 0]);
    ifftn(a: SMALL.shape(&[3, 4, 7]), b: SMALL.shape(&[3, 4, 7])) All -> Float, TURNED, "The inverse of fftn.": "(lambda f: (f.real, f.imag))(torch.fft.ifftn(torch.complex(as_float(a), as_float(b)), dim=(0, 1)))" => a.ifftn(b, [0, 1]);
    rfftn(a: SMALL.shape(&[3, 4, 7])) All -> Float, TURNED, "`fftn` of real numbers.": "(lambda f: (f.real, f.imag))(torch.fft.rfftn(as_float(a)))" => a.rfftn(..), "(lambda f: (f.real, f.imag))(torch.fft.rfftn(as_float(a), dim=(2, 0)))" => a.rfftn([2, 0]);
    irfftn(a: SMALL.shape(&[3, 4, 7]), b: SMALL.shape(&[3, 4, 7])) All -> Float, TURNED, "The inverse of rfftn.": "torch.fft.irfftn(torch.complex(as_float(a), as_float(b)), s=(3, 4, 12))" => a.irfftn(b, 12, ..), "torch.fft.irfftn(torch.complex(as_float(a), as_float(b)), s=(7, 5), dim=(2, 0))" => a.irfftn(b, 5, [2, 0]);
    stft(a: SMALL.shape(&[2, 64]), w: UNIT.shape(&[12])) Floats -> Same, TURNED, "Fourier's transforms of overlapping parts.": "(lambda s: (s.real, s.imag))(torch.stft(a, 16, 4, 12, w, return_complex=True))" => a.stft(&Stft::new(16).window(w)), "(lambda s: (s.real, s.imag))(torch.stft(a, 16, 5, center=False, normalized=True, return_complex=True))" => a.stft(&Stft::new(16).hop(5).border(Option::None).normalized());
    istft(a: SMALL.shape(&[2, 9, 10]), b: SMALL.shape(&[2, 9, 10])) Floats -> Same, TURNED, "The inverse of stft.": "torch.istft(torch.complex(a, b), 16, 4, length=40)" => a.istft(b, &Stft::new(16), 40), "torch.istft(torch.complex(a, b), 16, 4, center=False, normalized=True)" => a.istft(b, &Stft::new(16).border(Option::None).normalized(), Option::None);
    scaled_dot_product_attention(q: HEADS, k: KEYS, v: VALUES, m: MASK.shape(&[5, 6])) Floats -> Same, NORMAL, "`softmax(q @ kᵀ / sqrt(length)) @ v`, with masks.": "F.scaled_dot_product_attention(q, k, v)" => q.scaled_dot_product_attention(k, v, &Attention::new()), "F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25)" => q.scaled_dot_product_attention(k, v, &Attention::new().causal(true).scale(0.25)), "F.scaled_dot_product_attention(q, k, v, attn_mask=m)" => q.scaled_dot_product_attention(k, v, &Attention::new().mask(m)), "F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)" => q.scaled_dot_product_attention(&k.slice(1, ..2), &v.slice(1, ..2), &Attention::new().grouped(true));
}
