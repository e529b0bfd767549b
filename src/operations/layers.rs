//! Layers of neural networks.

use super::Accuracy::{Exact, Near, Ulps};
use super::Gives::{Float, Same};
use super::{ANY, Accuracy, Group, Input, SMALL, operations};
use crate::Pool2d;

const IMAGE: Input = SMALL.shape(&[2, 3, 7, 9]);
const ROWS: Input = SMALL.shape(&[4, 37]);

/// `exp` overflows before its reciprocal is 0.
const TAIL: Accuracy = Near { relative: 6.0, absolute: 1e-30 };

operations! {
    /// Activations.
    ACTIVATIONS: Group::Activation;
    relu(a: ANY) Numbers -> Same, Exact, "`max(x, 0)`.": "torch.relu(a)" => a.relu();
    sigmoid(a: ANY) All -> Float, TAIL, "`1 / (1 + exp(-x))`.": "torch.sigmoid(a)" => a.sigmoid();
    silu(a: ANY) Floats -> Same, TAIL, "`x * sigmoid(x)`.": "F.silu(a)" => a.silu();
    gelu(a: ANY) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "`x / 2 * (1 + erf(x / sqrt(2)))`.": "F.gelu(a)" => a.gelu();
    gelu_tanh(a: ANY) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "gelu with tanh in place of erf.": "F.gelu(a, approximate='tanh')" => a.gelu_tanh();
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
