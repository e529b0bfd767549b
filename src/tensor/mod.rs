//! The public operations on a [`Tensor`](crate::Tensor), by what they do.
//!
//! Every one starts a [`Call`](arguments::call::Call), which knows its name and the user's place, and records
//! primitives through `Tensor::record`. What cannot be recorded becomes an invalid tensor.

pub(crate) mod arguments;
pub(crate) mod ask;
mod function;
mod gradient;
mod layer;
mod linear;
pub(crate) mod make;
mod map;
mod names;
mod position;
mod product;
mod reduce;
mod scan;
#[cfg(test)]
mod tests;
mod view;

pub use arguments::axes::{Axes, Bounds, Dims};
pub use arguments::element::Element;
pub use arguments::promotion::{Number, Operand};
pub use function::clip::clip_grad_norm;
pub use function::compile::{Compiled, Executable, Traceable, compile};
pub use function::parallel;
pub use function::tree::{Arguments, Leaves, Tensors, tree_map};
pub use gradient::{grad, hessian, jacobian, jvp, vjp};
pub use layer::boxes::RoiAlign;
pub use layer::cross_entropy::CrossEntropy;
pub use layer::grid::{GridSample, Outside};
pub use layer::interpolate::Interpolation;
pub use layer::losses::Reduction;
pub use layer::pool::{Pair, PerAxis, Pool, Pool1d, Pool2d, Pool3d};
pub use layer::weighted::{BinaryCrossEntropy, KlDiv, NllLoss};
pub use linear::norms::MatrixNorm;
pub use map::arithmetic::Rounding;
pub use map::bits::BitOrder;
pub use position::quantiles::{QuantileBetween, Quantiles};
pub use position::scatter::ScatterReduction;
pub use product::attention::Attention;
pub use product::convolution::{Conv, Conv1d, Conv2d, Conv3d};
pub use product::convolve::ConvolveMode;
pub use product::fourier::settings::{Fourier, FourierNorm};
pub use product::spectrogram::Stft;
pub use scan::recurrences::{iterate, scan};
pub use scan::scans::ScanOrder;
pub use view::border::{Border, PadMode};
pub use view::index::Index;
pub use view::join::Indexing;
