//! Products of matrices, convolutions and attention: compositions of broadcasting products and sums.

mod added;
pub(crate) mod attention;
mod chain;
mod contraction;
pub(crate) mod convolution;
pub(crate) mod convolve;
mod einsum;
pub(crate) mod fourier;
mod matmul;
pub(crate) mod spectrogram;
mod vander;
