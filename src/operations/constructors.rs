//! Tensors from numbers and seeds.

use super::row::Accuracy::{Exact, Near, Ulps};
use super::row::Gives::{Fixed, Same};
use super::row::{ANY, Accuracy, Elements, Group, Input, SMALL, operations};
use crate::{DType, Number, Tensor};

const PROBABILITY: Input = Input::new(Elements::Unit, None);
/// Cosines near 0 cancel.
const NORMAL: Accuracy = Near { relative: 16.0, absolute: 16.0 };

operations! {
    /// From numbers.
    CONSTRUCTORS: Group::Constructor;
    zeros(dtype;) All -> Same, Exact, "Zeros.": "torch.zeros((2, 3), dtype=dtype)" => Tensor::zeros([2, 3], dtype);
    ones(dtype;) All -> Same, Exact, "Ones.": "torch.ones((2, 3), dtype=dtype)" => Tensor::ones([2, 3], dtype);
    full(dtype;) All -> Same, Exact, "A value everywhere.": "torch.full((2, 3), 7, dtype=dtype)" => Tensor::full([2, 3], 7, dtype);
    zeros_like(a: ANY) All -> Same, Exact, "Zeros in a tensor's shape and dtype.": "torch.zeros_like(a)" => a.zeros_like();
    ones_like(a: ANY) All -> Same, Exact, "Ones in a tensor's shape and dtype.": "torch.ones_like(a)" => a.ones_like();
    full_like(a: ANY) All -> Same, Exact, "A value in a tensor's shape and dtype.": "torch.full_like(a, 3)" => a.full_like(Number::Int(3));
    new_zeros(a: ANY) All -> Same, Exact, "Zeros of another shape, in a tensor's dtype.": "a.new_zeros((2, 3))" => a.new_zeros([2, 3]);
    new_ones(a: ANY) All -> Same, Exact, "Ones of another shape, in a tensor's dtype.": "a.new_ones((2, 3))" => a.new_ones([2, 3]);
    new_full(a: ANY) All -> Same, Exact, "A value in another shape, in a tensor's dtype.": "a.new_full((2, 3), 3)" => a.new_full([2, 3], 3);
    linspace(_dtype;) All -> Fixed(DType::F64), Exact, "So many numbers, equally far apart.": "torch.linspace(-1.0, 2.0, 13, dtype=torch.float64)" => Tensor::linspace(-1.0, 2.0, 13, DType::F64);
    logspace(_dtype;) All -> Fixed(DType::F32), Ulps(2), "Powers, equally many times apart.": "torch.logspace(-1.0, 2.0, 13, 3.0, dtype=torch.float32)" => Tensor::logspace(-1.0, 2.0, 13, 3.0, DType::F32);
    hann_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Hann's window.": "torch.hann_window(13, dtype=dtype)" => Tensor::hann_window(13, true, dtype);
    hamming_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Hamming's window.": "torch.hamming_window(13, dtype=dtype)" => Tensor::hamming_window(13, true, dtype);
    hamming_window_with(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Hamming's window with other weights.": "torch.hamming_window(13, False, 0.7, 0.2, dtype=torch.float64).to(dtype)" => Tensor::hamming_window_with(13, false, 0.7, 0.2, dtype);
    bartlett_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Bartlett's window.": "torch.bartlett_window(13, dtype=dtype)" => Tensor::bartlett_window(13, true, dtype);
    kaiser_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Kaiser's window.": "torch.kaiser_window(13, True, 6.0, dtype=dtype)" => Tensor::kaiser_window(13, true, 6.0, dtype);
    blackman_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Blackman's window.": "torch.blackman_window(13, periodic=False, dtype=dtype)" => Tensor::blackman_window(13, false, dtype);
    general_cosine_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "A window of cosines.": "torch.signal.windows.general_cosine(13, a=[0.5, 0.3, 0.2], sym=False, dtype=torch.float64).to(dtype)" => Tensor::general_cosine_window(13, true, &[0.5, 0.3, 0.2], dtype);
    general_hamming_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "A window of one cosine.": "torch.signal.windows.general_hamming(13, alpha=0.6, dtype=torch.float64).to(dtype)" => Tensor::general_hamming_window(13, false, 0.6, dtype);
    nuttall_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Nuttall's window.": "torch.signal.windows.nuttall(13, dtype=torch.float64).to(dtype)" => Tensor::nuttall_window(13, false, dtype);
    gaussian_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "A bell curve.": "torch.signal.windows.gaussian(13, std=2.5, dtype=torch.float64).to(dtype)" => Tensor::gaussian_window(13, false, 2.5, dtype), "torch.signal.windows.gaussian(12, std=2.5, sym=False, dtype=torch.float64).to(dtype)" => Tensor::gaussian_window(12, true, 2.5, dtype);
    cosine_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "Half a sine.": "torch.signal.windows.cosine(13, dtype=torch.float64).to(dtype)" => Tensor::cosine_window(13, false, dtype), "torch.signal.windows.cosine(13, sym=False, dtype=torch.float64).to(dtype)" => Tensor::cosine_window(13, true, dtype);
    exponential_window(dtype;) Floats -> Same, Near { relative: 4.0, absolute: 4.0 }, "A window that decays to both sides.": "torch.signal.windows.exponential(12, tau=3.0, dtype=torch.float64).to(dtype)" => Tensor::exponential_window(12, false, None, 3.0, dtype), "torch.signal.windows.exponential(12, center=2.0, tau=3.0, sym=False, dtype=torch.float64).to(dtype)" => Tensor::exponential_window(12, true, 2.0, 3.0, dtype);
    fftfreq(dtype;) Floats -> Same, Ulps(2), "The frequencies of `fft`'s results.": "torch.fft.fftfreq(13, 0.3, dtype=dtype)" => Tensor::fftfreq(13, 0.3, dtype), "torch.fft.fftfreq(4, -2.0, dtype=dtype)" => Tensor::fftfreq(4, -2.0, dtype);
    rfftfreq(dtype;) Floats -> Same, Ulps(2), "The frequencies of `rfft`'s results.": "torch.fft.rfftfreq(13, 0.3, dtype=dtype)" => Tensor::rfftfreq(13, 0.3, dtype), "torch.fft.rfftfreq(4, -2.0, dtype=dtype)" => Tensor::rfftfreq(4, -2.0, dtype);
    eye(dtype;) All -> Same, Exact, "The identity matrix.": "torch.eye(4, dtype=dtype)" => Tensor::eye(4, dtype);
    eye_with(_dtype;) All -> Fixed(DType::F32), Exact, "Ones on a diagonal.": "torch.tensor(np.eye(3, 5, 1, dtype=np.float32))" => Tensor::eye_with(3, 5, 1, DType::F32);
    tri(_dtype;) All -> Fixed(DType::F32), Exact, "Ones at and below a diagonal.": "torch.tensor(np.tri(3, 5, 1, dtype=np.float32))" => Tensor::tri(3, 5, 1, DType::F32);
    tril_indices(_dtype;) All -> Fixed(DType::I64), Exact, "Where a lower triangle is.": "torch.tril_indices(4, 6, 1)" => Tensor::tril_indices(4, 6, 1), "torch.tril_indices(13, 5, -2)" => Tensor::tril_indices(13, 5, -2);
    triu_indices(_dtype;) All -> Fixed(DType::I64), Exact, "Where an upper triangle is.": "torch.triu_indices(4, 6, 1)" => Tensor::triu_indices(4, 6, 1), "torch.triu_indices(13, 5, -2)" => Tensor::triu_indices(13, 5, -2);
    arange(_dtype;) All -> Fixed(DType::F32), Exact, "From start to, but without, end.": "torch.arange(0.5, 9.0, 0.25, dtype=torch.float32)" => Tensor::arange(0.5f32, 9.0, 0.25);
    arange_with(dtype;) Numbers -> Same, Exact, "`arange` of any dtype.": "torch.arange(0, 1, 0.1, dtype=dtype if dtype.is_floating_point else torch.float64).to(dtype)" => Tensor::arange_with(0, 1, 0.1, dtype), "torch.arange(3, 20, 5, dtype=dtype)" => Tensor::arange_with(3, 20, 5, dtype);
}

operations! {
    /// From seeds; other numbers than PyTorch's.
    RANDOM: Group::Random;
    rand(_dtype;) All -> Fixed(DType::F32), Exact, "Uniform in [0, 1).": "" => Tensor::rand([13, 5], 42);
    rand_with(dtype;) Floats -> Same, Exact, "Uniform in [0, 1), of any float dtype.": "" => Tensor::rand_with([13, 5], dtype, 42);
    randn(_dtype;) All -> Fixed(DType::F32), NORMAL, "Of the standard normal distribution.": "" => Tensor::randn([13, 5], 42);
    randn_with(dtype;) Floats -> Same, NORMAL, "Of the standard normal distribution, of any float dtype.": "" => Tensor::randn_with([13, 5], dtype, 42);
    rand_like(a: SMALL) Floats -> Same, Exact, "Uniform in [0, 1), in a tensor's shape and dtype.": "" => a.rand_like(42);
    randn_like(a: SMALL) Floats -> Same, NORMAL, "Normal, in a tensor's shape and dtype.": "" => a.randn_like(42);
    normal(a: SMALL.shape(&[5, 1]), b: SMALL.shape(&[40])) Floats -> Same, NORMAL, "Normal, each with its own mean and deviation.": "" => Tensor::normal(a, b, 42), "" => Tensor::normal(1.5, b, 42);
    randint(_dtype;) All -> Fixed(DType::I64), Exact, "Integers, all equally likely.": "" => Tensor::randint(-3, 9, [13, 5], 42);
    randint_like(a: SMALL) Numbers -> Same, Exact, "Integers in a tensor's shape and dtype.": "" => a.randint_like(0, 9, 42);
    randperm(_dtype;) All -> Fixed(DType::I64), Exact, "The numbers below n in random order.": "" => Tensor::randperm(13, 42);
    bernoulli(a: PROBABILITY) Floats -> Same, Exact, "1 with a probability, else 0.": "" => a.bernoulli(42);
    exponential(a: SMALL) Floats -> Same, NORMAL, "Of an exponential distribution.": "" => a.exponential(2.5, 42);
    geometric(a: SMALL) Numbers -> Same, Exact, "Trials until one succeeds.": "" => a.geometric(0.375, 42);
    cauchy(a: SMALL) Floats -> Same, NORMAL, "Of Cauchy's distribution.": "" => a.cauchy(-1.0, 0.5, 42);
    log_normal(a: SMALL) Floats -> Same, NORMAL, "Whose logarithms are normal.": "" => a.log_normal(0.5, 0.25, 42);
    poisson(a: PROBABILITY) Floats -> Same, Exact, "Counts of Poisson's distribution.": "" => a.poisson(42), "" => (a * 32).poisson(42);
    rrelu(a: ANY) Floats -> Same, Exact, "`leaky_relu` with slopes that are drawn.": "" => a.rrelu(0.125, 0.375, 42);
    multinomial(a: PROBABILITY.shape(&[5, 9])) Floats -> Fixed(DType::I64), Exact, "Classes drawn by their weights.": "" => a.multinomial(20, true, 42), "" => a.multinomial(3, false, 42);
    dropout(a: ANY) Floats -> Same, Exact, "0 with a probability, else scaled.": "" => a.dropout(0.3, 42);
    dropout1d(a: SMALL.shape(&[3, 4, 40])) Floats -> Same, Exact, "`dropout` of channels.": "" => a.dropout1d(0.3, 42);
    dropout2d(a: SMALL.shape(&[3, 4, 2, 5])) Floats -> Same, Exact, "`dropout` of the channels of images.": "" => a.dropout2d(0.3, 42);
    dropout3d(a: SMALL.shape(&[3, 4, 2, 2, 5])) Floats -> Same, Exact, "`dropout` of the channels of volumes.": "" => a.dropout3d(0.3, 42);
    gumbel_softmax(a: SMALL.shape(&[4, 37])) Floats -> Same, NORMAL, "Shares near those of classes drawn by logits.": "" => a.gumbel_softmax(0.7, false, -1, 42), "" => a.gumbel_softmax(2.0, true, 0, 42);
    alpha_dropout(a: ANY) Floats -> Same, Exact, "`dropout` for selu.": "" => a.alpha_dropout(0.3, 42);
}
