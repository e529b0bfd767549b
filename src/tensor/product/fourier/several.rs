//! Transforms along several axes: one after the other.

use super::tables::Complex;
use super::transforms::{forward, forward_half, inverse};
use super::{alike, along, both, fitted_inverse_half};
use crate::graph::op;
use crate::tensor::arguments::axes::{Axes, AxesKind};
use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::float_for;
use crate::{Result, Tensor};

impl Tensor {
    /// [`Tensor::fft`] along the last two axes, as of images.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let (re, im) = x.fft2(&x.zeros_like());
    /// assert_eq!(re.round_decimals(4).to_vec::<f32>()?, [10.0, -2.0, -4.0, 0.0]);
    /// assert_eq!(im.round_decimals(4).to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fft2(&self, imaginary: impl AsRef<Tensor>) -> (Tensor, Tensor) {
        let (call, imaginary) = (Call::here("fft2"), imaginary.as_ref());
        both(call, || several(call, (self, imaginary), &LAST_TWO.into(), forward_of))
    }

    /// The inverse of [`Tensor::fft2`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let (re, im) = x.fft2(&x);
    /// assert_eq!(re.ifft2(&im).0.round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ifft2(&self, imaginary: impl AsRef<Tensor>) -> (Tensor, Tensor) {
        let (call, imaginary) = (Call::here("ifft2"), imaginary.as_ref());
        both(call, || several(call, (self, imaginary), &LAST_TWO.into(), inverse))
    }

    /// [`Tensor::fft2`] of real numbers, of whose last axis of `n` results the first `n / 2 + 1` say all.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let (re, _) = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 4]).rfft2();
    /// assert_eq!(re.shape()?, Shape::from([2, 3]));
    /// assert_eq!(re.round_decimals(4).to_vec::<f32>()?, [36.0, -4.0, -4.0, -16.0, 0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rfft2(&self) -> (Tensor, Tensor) {
        let call = Call::here("rfft2");
        both(call, || real(call, self, &LAST_TWO.into()))
    }

    /// The inverse of [`Tensor::rfft2`]: real numbers, `n` along the last axis, as for [`Tensor::irfft`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    /// let (re, im) = x.rfft2();
    /// assert_eq!(re.irfft2(&im, 3).round_decimals(4).to_vec::<f32>()?, x.to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn irfft2(&self, imaginary: impl AsRef<Tensor>, n: usize) -> Tensor {
        let (call, imaginary) = (Call::here("irfft2"), imaginary.as_ref());
        call.composed(|| to_real(call, (self, imaginary), n, &LAST_TWO.into()))
    }

    /// [`Tensor::fft`] along each of the axes. Along no axis, the tensor itself.
    ///
    /// Invalid for what [`Tensor::fft`] is, and for an axis that is given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 2, 2]);
    /// let (re, _) = x.fftn(&x.zeros_like(), ..);
    /// assert_eq!(re.round_decimals(4).to_vec::<f32>()?, [36.0, -4.0, -8.0, 0.0, -16.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fftn(&self, imaginary: impl AsRef<Tensor>, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, imaginary, axes) = (Call::here("fftn"), imaginary.as_ref(), axes.into());
        both(call, || several(call, (self, imaginary), &axes, forward_of))
    }

    /// The inverse of [`Tensor::fftn`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let (re, im) = x.fftn(&x, 0);
    /// assert_eq!(re.ifftn(&im, 0).1.round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ifftn(&self, imaginary: impl AsRef<Tensor>, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, imaginary, axes) = (Call::here("ifftn"), imaginary.as_ref(), axes.into());
        both(call, || several(call, (self, imaginary), &axes, inverse))
    }

    /// [`Tensor::fftn`] of real numbers, of whose last named axis of `n` results the first `n / 2 + 1` say all.
    ///
    /// Invalid for what [`Tensor::fftn`] is, and for no axis.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let (re, _) = Tensor::ones([4, 6], DType::F32).rfftn([1, 0]);
    /// assert_eq!(re.shape()?, Shape::from([3, 6]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rfftn(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let (call, axes) = (Call::here("rfftn"), axes.into());
        both(call, || real(call, self, &axes))
    }

    /// The inverse of [`Tensor::rfftn`]: real numbers, `n` along the last named axis, as for [`Tensor::irfft`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    /// let (re, im) = x.rfftn([1, 0]);
    /// assert_eq!(re.irfftn(&im, 2, [1, 0]).round_decimals(4).to_vec::<f32>()?, x.to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn irfftn(&self, imaginary: impl AsRef<Tensor>, n: usize, axes: impl Into<Axes>) -> Tensor {
        let (call, imaginary, axes) = (Call::here("irfftn"), imaginary.as_ref(), axes.into());
        call.composed(|| to_real(call, (self, imaginary), n, &axes))
    }
}

const LAST_TWO: [isize; 2] = [-2, -1];

/// The axes in the order in which they are named.
fn named(call: Call, x: &Tensor, axes: &Axes) -> Result<op::Axes> {
    let shape = x.known()?.0;
    match &axes.0 {
        AxesKind::All => Ok((0..shape.rank()).collect()),
        AxesKind::List(list) => call.axes_in_order(list, shape),
    }
}

/// The axis of which real numbers have half, and those before it.
fn halved(call: Call, x: &Tensor, axes: &Axes) -> Result<(usize, op::Axes)> {
    let mut axes = named(call, x, axes)?;
    match axes.pop() {
        Some(last) => Ok((last, axes)),
        None => call.fail(format!("needs an axis to transform along, of shape {}", x.known()?.0)),
    }
}

fn forward_of(call: Call, re: &Tensor, im: &Tensor) -> Result<Complex> {
    forward(call, re, Some(im))
}

/// A transform along the last axis.
type Along = fn(Call, &Tensor, &Tensor) -> Result<Complex>;

/// The transform along each axis.
fn each(call: Call, parts: Complex, axes: &[usize], transform: Along) -> Result<Complex> {
    axes.iter().try_fold(parts, |(re, im), &axis| {
        along(call, (&re, &im), axis as isize, |re, im| transform(call, re, im))
    })
}

/// The transform along the axes, of 16-bit floats rounded once.
fn several(call: Call, (re, im): (&Tensor, &Tensor), axes: &Axes, transform: Along) -> Result<Complex> {
    let (_, dtype) = alike(call, re, im)?;
    let axes = named(call, re, axes)?;
    let wide = |x: &Tensor| x.cast(dtype.compute());
    let (re, im) = each(call, (wide(re), wide(im)), &axes, transform)?;
    Ok((re.cast(dtype), im.cast(dtype)))
}

fn real(call: Call, x: &Tensor, axes: &Axes) -> Result<Complex> {
    let dtype = float_for(x.known()?.1);
    let (last, others) = halved(call, x, axes)?;
    let x = x.cast(dtype.compute());
    let half = along(call, (&x, &x), last as isize, |x, _| forward_half(call, x))?;
    let (re, im) = each(call, half, &others, forward_of)?;
    Ok((re.cast(dtype), im.cast(dtype)))
}

fn to_real(call: Call, (re, im): (&Tensor, &Tensor), n: usize, axes: &Axes) -> Result<Tensor> {
    let (_, dtype) = alike(call, re, im)?;
    let (last, others) = halved(call, re, axes)?;
    let wide = |x: &Tensor| x.cast(dtype.compute());
    let (re, im) = each(call, (wide(re), wide(im)), &others, inverse)?;
    let back = along(call, (&re, &im), last as isize, |re, im| {
        let real = fitted_inverse_half(call, re, im, n)?;
        Ok((real.clone(), real))
    })?;
    Ok(back.0.cast(dtype))
}
