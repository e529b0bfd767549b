//! Fourier transforms. There is no complex dtype: real and imaginary parts are tensors of their own.

mod decomposition;
mod frequencies;
mod passes;
pub(crate) mod settings;
mod several;
mod tables;
mod transforms;

use self::tables::Complex;
use self::transforms::{forward, forward_half, inverse, inverse_half};
use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::float_for;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The discrete Fourier transform of complex numbers along an axis, of which this tensor has the real parts: real and
    /// imaginary parts of `Σ x[t] * exp(-2πi * k * t / n)`. PyTorch's and NumPy's `fft.fft`. Any number of elements; the best
    /// are products of small primes.
    ///
    /// 16-bit floats are computed in `F32` and rounded once; integers and bools give `F32`. Invalid if shapes or dtypes of the
    /// parts differ, and for no elements along the axis.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 0.0], [4]);
    /// let (re, im) = x.fft(&x.zeros_like(), 0);
    /// assert_eq!(re.to_vec::<f32>()?, [1.0; 4]);
    /// assert_eq!(im.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fft(&self, imaginary: impl AsRef<Tensor>, axis: isize) -> (Tensor, Tensor) {
        let imaginary = imaginary.as_ref();
        let call = Call::here("fft");
        both(call, || along(call, (self, imaginary), axis, |re, im| forward(call, re, Some(im))))
    }

    /// The inverse of [`Tensor::fft`]: `Σ x[k] * exp(2πi * k * t / n) / n`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], [4]);
    /// let (re, im) = x.fft(&x, 0);
    /// let (back, _) = re.ifft(&im, 0);
    /// assert_eq!(back.round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ifft(&self, imaginary: impl AsRef<Tensor>, axis: isize) -> (Tensor, Tensor) {
        let imaginary = imaginary.as_ref();
        let call = Call::here("ifft");
        both(call, || along(call, (self, imaginary), axis, |re, im| inverse(call, re, im)))
    }

    /// [`Tensor::fft`] of real numbers, of whose `n` results the first `n / 2 + 1` say all.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (re, im) = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]).rfft(0);
    /// assert_eq!(re.to_vec::<f32>()?, [10.0, -2.0, -2.0]);
    /// assert_eq!(im.round_decimals(4).to_vec::<f32>()?, [0.0, 2.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rfft(&self, axis: isize) -> (Tensor, Tensor) {
        let call = Call::here("rfft");
        both(call, || along(call, (self, self), axis, |x, _| forward_half(call, x)))
    }

    /// The inverse of [`Tensor::rfft`]: `n` real numbers of their `n / 2 + 1` results. `n` must be given, because an even
    /// and an odd number have as many. Of another number of elements along the axis, the first count, with zeros behind them if
    /// there are too few, as in PyTorch.
    ///
    /// Invalid for what [`Tensor::fft`] is, and for an `n` of 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (re, im) = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]).rfft(0);
    /// assert_eq!(re.irfft(&im, 4, 0).round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn irfft(&self, imaginary: impl AsRef<Tensor>, n: usize, axis: isize) -> Tensor {
        let imaginary = imaginary.as_ref();
        let call = Call::here("irfft");
        call.composed(|| {
            along(call, (self, imaginary), axis, |re, im| {
                let real = fitted_inverse_half(call, re, im, n)?;
                Ok((real.clone(), real))
            })
            .map(|(real, _)| real)
        })
    }
}

/// Two results of one call, both invalid where it fails.
pub(crate) fn both(call: Call, f: impl FnOnce() -> Result<Complex>) -> Complex {
    call.compose(f).unwrap_or_else(|error| (Tensor::invalid(error.clone()), Tensor::invalid(error)))
}

/// What `f` makes of the parts with the axis last, in the dtype of their arithmetic.
fn along(
    call: Call,
    (re, im): (&Tensor, &Tensor),
    axis: isize,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Complex>,
) -> Result<Complex> {
    let (shape, dtype) = alike(call, re, im)?;
    let axis = call.axis(axis, shape)?;
    if shape[axis] == 0 {
        return call.fail(format!("axis {axis} of shape {shape} has no elements to transform"));
    }
    let axis = axis as isize;
    let last = |x: &Tensor| x.movedim(axis, -1).cast(dtype.compute());
    let (re, im) = f(&last(re), &last(im))?;
    let back = |x: Tensor| x.cast(dtype).movedim(-1, axis);
    Ok((back(re), back(im)))
}

/// The shape that both parts have, and the dtype of results.
fn alike<'a>(call: Call, re: &'a Tensor, im: &Tensor) -> Result<(&'a Shape, DType)> {
    let ((shape, dtype), (other, other_dtype)) = (re.known()?, im.known()?);
    if shape != other || dtype != other_dtype {
        return call.fail(format!(
            "real and imaginary parts must be alike, got {dtype} {shape} and {other_dtype} {other}"
        ));
    }
    Ok((shape, float_for(dtype)))
}

/// The first `length` elements along the last axis, with zeros behind them if there are fewer.
fn fitted(x: &Tensor, length: usize) -> Tensor {
    let shape = &x.node.shape;
    let own = shape.last().copied().unwrap_or(0);
    match length <= own {
        true => x.narrow(-1, 0, length),
        false => {
            let mut border = vec![(0, 0); shape.rank()];
            border[shape.rank() - 1] = (0, length - own);
            x.pad(&border, 0)
        }
    }
}

/// `n` real numbers of what [`fitted`] makes of their half transform along the last axis.
fn fitted_inverse_half(call: Call, re: &Tensor, im: &Tensor, n: usize) -> Result<Tensor> {
    if n == 0 {
        return call.fail("n must be at least 1, got 0");
    }
    let half = n / 2 + 1;
    inverse_half(call, &fitted(re, half), &fitted(im, half), n)
}
