//! Transforms of another length, or scaled otherwise.

use super::tables::Complex;
use super::transforms::{forward, forward_half, inverse};
use super::{alike, along, both, fitted, fitted_inverse_half};
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

/// How a transform is scaled: the `norm` of PyTorch's and NumPy's `fft`.
///
/// ```
/// use lazuli::{Fourier, FourierNorm, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 1.0, 1.0, 1.0], [4]);
/// let first = |norm| x.rfft_with(0, Fourier::new().norm(norm)).0.select(0, 0).item::<f32>();
/// assert_eq!(first(FourierNorm::Backward)?, 4.0);
/// assert_eq!(first(FourierNorm::Ortho)?, 2.0);
/// assert_eq!(first(FourierNorm::Forward)?, 1.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum FourierNorm {
    /// The inverse is over how many numbers there are: what [`Tensor::fft`] and [`Tensor::ifft`] do.
    #[default]
    Backward,
    /// Both are over the square root of that, so that lengths stay.
    Ortho,
    /// The transform is over how many numbers there are, the inverse is not.
    Forward,
}

impl FourierNorm {
    /// What a transform of `n` numbers, or its inverse, is multiplied with.
    fn factor(self, n: usize, is_inverse: bool) -> f64 {
        let n = n as f64;
        match (self, is_inverse) {
            (FourierNorm::Backward, _) => 1.0,
            (FourierNorm::Ortho, false) => 1.0 / n.sqrt(),
            (FourierNorm::Ortho, true) => n.sqrt(),
            (FourierNorm::Forward, false) => 1.0 / n,
            (FourierNorm::Forward, true) => n,
        }
    }
}

/// What [`Tensor::fft_with`] and its like do beside the transform: PyTorch's `n` and `norm`.
///
/// ```
/// use lazuli::{Fourier, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
/// let (re, _) = x.rfft_with(0, Fourier::new().length(2)); // of the first two
/// assert_eq!(re.to_vec::<f32>()?, [3.0, -1.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Fourier {
    length: Option<usize>,
    norm: FourierNorm,
}

impl Fourier {
    /// As many numbers as there are, scaled as [`FourierNorm::Backward`].
    ///
    /// ```
    /// use lazuli::{Fourier, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2]);
    /// assert_eq!(x.rfft_with(0, Fourier::new()).0.to_vec::<f32>()?, x.rfft(0).0.to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> Fourier {
        Fourier::default()
    }

    /// So many numbers: the first ones along the axis, with zeros behind them if there are fewer. Of an inverse to real numbers, how
    /// many result. PyTorch's `n`.
    ///
    /// ```
    /// use lazuli::{Fourier, Shape, Tensor};
    /// let (re, _) = Tensor::rand([3, 5], 1).rfft_with(1, Fourier::new().length(8));
    /// assert_eq!(re.shape()?, Shape::from([3, 5]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn length(mut self, n: usize) -> Fourier {
        self.length = Some(n);
        self
    }

    /// How it is scaled.
    ///
    /// ```
    /// use lazuli::{Fourier, FourierNorm, Tensor};
    /// let x = Tensor::from_slice(&[3.0f32, 3.0], [2]);
    /// let (mean, _) = x.rfft_with(0, Fourier::new().norm(FourierNorm::Forward));
    /// assert_eq!(mean.to_vec::<f32>()?, [3.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn norm(mut self, norm: FourierNorm) -> Fourier {
        self.norm = norm;
        self
    }

    /// The transform of both parts along an axis.
    fn transformed(
        self,
        call: Call,
        (re, im): (&Tensor, &Tensor),
        axis: isize,
        is_inverse: bool,
        transform: impl FnOnce(&Tensor, &Tensor) -> Result<Complex>,
    ) -> Result<Complex> {
        let (shape, _) = alike(call, re, im)?;
        let at = call.axis(axis, shape)?;
        let n = self.length.unwrap_or(shape[at]);
        if self.length == Some(0) {
            return call.fail("the length must be at least 1, got 0");
        }
        let [re, im] = [re, im].map(|x| match self.length {
            None => x.clone(),
            Some(n) => fitted(&x.movedim(at, -1), n).movedim(-1, at),
        });
        let factor = self.norm.factor(n, is_inverse);
        along(call, (&re, &im), at as isize, |re, im| {
            let (re, im) = transform(re, im)?;
            Ok(if factor == 1.0 { (re, im) } else { (re * factor, im * factor) })
        })
    }
}

impl Tensor {
    /// [`Tensor::fft`] of another length, or scaled otherwise: PyTorch's `fft.fft` with `n` and `norm`.
    ///
    /// Invalid for what [`Tensor::fft`] is, and for a length of 0.
    ///
    /// ```
    /// use lazuli::{Fourier, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// let (re, im) = x.fft_with(&x.zeros_like(), 0, Fourier::new().length(4));
    /// assert_eq!(re.round_decimals(4).to_vec::<f32>()?, [3.0, 1.0, -1.0, 1.0]);
    /// assert_eq!(im.round_decimals(4).to_vec::<f32>()?, [0.0, -2.0, 0.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fft_with(
        &self,
        imaginary: impl AsRef<Tensor>,
        axis: isize,
        settings: Fourier,
    ) -> (Tensor, Tensor) {
        let (call, imaginary) = (Call::here("fft_with"), imaginary.as_ref());
        both(call, || {
            settings.transformed(call, (self, imaginary), axis, false, |re, im| forward(call, re, Some(im)))
        })
    }

    /// The inverse of [`Tensor::fft_with`]: PyTorch's `fft.ifft` with `n` and `norm`.
    ///
    /// ```
    /// use lazuli::{Fourier, FourierNorm, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], [4]);
    /// let ortho = Fourier::new().norm(FourierNorm::Ortho);
    /// let (re, im) = x.fft_with(&x, 0, ortho);
    /// let (back, _) = re.ifft_with(&im, 0, ortho);
    /// assert_eq!(back.round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ifft_with(
        &self,
        imaginary: impl AsRef<Tensor>,
        axis: isize,
        settings: Fourier,
    ) -> (Tensor, Tensor) {
        let (call, imaginary) = (Call::here("ifft_with"), imaginary.as_ref());
        both(call, || {
            settings.transformed(call, (self, imaginary), axis, true, |re, im| inverse(call, re, im))
        })
    }

    /// [`Tensor::rfft`] of another length, or scaled otherwise: PyTorch's `fft.rfft` with `n` and `norm`.
    ///
    /// ```
    /// use lazuli::{Fourier, Tensor};
    /// let (re, im) = Tensor::from_slice(&[1.0f32, 2.0], [2]).rfft_with(0, Fourier::new().length(4));
    /// assert_eq!(re.round_decimals(4).to_vec::<f32>()?, [3.0, 1.0, -1.0]);
    /// assert_eq!(im.round_decimals(4).to_vec::<f32>()?, [0.0, -2.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rfft_with(&self, axis: isize, settings: Fourier) -> (Tensor, Tensor) {
        let call = Call::here("rfft_with");
        both(call, || settings.transformed(call, (self, self), axis, false, |x, _| forward_half(call, x)))
    }

    /// The inverse of [`Tensor::rfft_with`]: real numbers, as many as the length says, or twice as many as there are elements but
    /// the first. PyTorch's `fft.irfft` with `n` and `norm`.
    ///
    /// ```
    /// use lazuli::{Fourier, FourierNorm, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]);
    /// let ortho = Fourier::new().norm(FourierNorm::Ortho);
    /// let (re, im) = x.rfft_with(0, ortho);
    /// assert_eq!(re.irfft_with(&im, 0, ortho).round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn irfft_with(&self, imaginary: impl AsRef<Tensor>, axis: isize, settings: Fourier) -> Tensor {
        let (call, imaginary) = (Call::here("irfft_with"), imaginary.as_ref());
        call.composed(|| {
            let (shape, _) = alike(call, self, imaginary)?;
            let at = call.axis(axis, shape)?;
            let n = settings.length.unwrap_or_else(|| shape[at].saturating_sub(1).saturating_mul(2));
            let factor = settings.norm.factor(n, true);
            let (real, _) = along(call, (self, imaginary), axis, |re, im| {
                let real = fitted_inverse_half(call, re, im, n)?;
                let real = if factor == 1.0 { real } else { real * factor };
                Ok((real.clone(), real))
            })?;
            Ok(real)
        })
    }
}
