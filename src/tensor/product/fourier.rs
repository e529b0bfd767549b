//! Fourier transforms. There is no complex dtype: real and imaginary parts are tensors of their own.

mod frequencies;
mod passes;
mod several;
mod tables;

use self::passes::turned;
use self::tables::{Complex, Table, table};
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The discrete Fourier transform of complex numbers along an axis, of which this tensor has the real parts: real and
    /// imaginary parts of `Σ x[t] * exp(-2πi * k * t / n)`. PyTorch's and NumPy's `fft.fft`. Any number of elements; the best
    /// are products of small primes.
    ///
    /// 16-bit floats are computed in `F32` and rounded once. Invalid for integers and bools, if shapes or dtypes of the parts
    /// differ, and for no elements along the axis.
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
    /// and an odd number have as many.
    ///
    /// Invalid for what [`Tensor::fft`] is, and for another number of elements along the axis.
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
                let real = inverse_half(call, re, im, n)?;
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

/// The shape and the dtype that both parts have.
fn alike<'a>(call: Call, re: &'a Tensor, im: &Tensor) -> Result<(&'a Shape, DType)> {
    let ((shape, dtype), (other, other_dtype)) = (re.known()?, im.known()?);
    call.needs_float(re)?;
    if shape != other || dtype != other_dtype {
        return call.fail(format!(
            "real and imaginary parts must be alike, got {dtype} {shape} and {other_dtype} {other}"
        ));
    }
    Ok((shape, dtype))
}

/// Up to here, a transform is one product with a matrix of all turns.
const DIRECT: usize = 16;
/// The same of real numbers, which have half as many turns.
const DIRECT_HALF: usize = 112;

/// How many elements a transform has along the last axis.
fn length(x: &Tensor) -> usize {
    x.node.shape.last().copied().unwrap_or(1)
}

/// Along the last axis.
fn forward(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let n = length(re);
    if n <= DIRECT {
        let (cos, sin) = table(call, Table::Turns { rows: n, columns: n, of: n }, re)?;
        return Ok(turned(re, im, |x| x.matmul(&cos), |x| x.matmul(&sin)));
    }
    match passes::radices(n) {
        Some(radices) => passes::transformed(call, re, im, &radices),
        None => by_convolution(call, re, im),
    }
}

/// `exp(2πi * k)` is `exp(-2πi * k)` with the parts exchanged.
fn inverse(call: Call, re: &Tensor, im: &Tensor) -> Result<Complex> {
    let n = length(re) as f64;
    let (im, re) = forward(call, &(im / n), Some(&(re / n)))?;
    Ok((re, im))
}

/// Of real numbers. Every second one is the imaginary part of the one before it, which halves an even number of them:
/// results at `k` and at `n / 2 - k` are sums and differences of what follows from the two parts.
fn forward_half(call: Call, x: &Tensor) -> Result<Complex> {
    let n = length(x);
    let half = n / 2 + 1;
    if n <= DIRECT_HALF {
        let (cos, sin) = table(call, Table::Turns { rows: n, columns: half, of: n }, x)?;
        return Ok(turned(x, None, |x| x.matmul(&cos), |x| x.matmul(&sin)));
    }
    if !n.is_multiple_of(2) {
        let (re, im) = forward(call, x, None)?;
        return Ok((re.narrow(-1, 0, half), im.narrow(-1, 0, half)));
    }
    let pairs = x.unflatten(-1, [n / 2, 2]);
    let (re, im) = forward(call, &pairs.select(-1, 0), Some(&pairs.select(-1, 1)))?;
    let around = |x: &Tensor| Tensor::cat(&[x, &x.narrow(-1, 0, 1)], -1);
    let (re, im) = (around(&re), around(&im));
    let (re_back, im_back) = (re.flip(-1), im.flip(-1));
    let (even_re, even_im) = ((&re + &re_back) * 0.5, (&im - &im_back) * 0.5);
    let (odd_re, odd_im) = ((&im + &im_back) * 0.5, (&re_back - &re) * 0.5);
    let (cos, sin) = table(call, Table::Circle { rows: half, of: n }, x)?;
    let (re, im) = turned(&odd_re, Some(&odd_im), |x| x * &cos, |x| x * &sin);
    Ok((even_re + re, even_im + im))
}

/// [`forward_half`], backwards.
fn inverse_half(call: Call, re: &Tensor, im: &Tensor, n: usize) -> Result<Tensor> {
    let half = n / 2 + 1;
    if length(re) != half || n == 0 {
        return call
            .fail(format!("{n} real numbers have {half} results, got {}: pad or cut the axis", length(re)));
    }
    // What results of real numbers have no imaginary parts of: the first, and of an even number the one in the middle.
    let middle = usize::from(n.is_multiple_of(2));
    let im = &padded(&im.narrow(-1, 1, half - 1 - middle), 1, middle);
    if n <= DIRECT_HALF {
        let (cos, sin) = table(call, Table::Halves { n }, re)?;
        return Ok(re.matmul(&cos) - im.matmul(&sin));
    }
    if !n.is_multiple_of(2) {
        // The second half mirrors the first.
        let mirrored = |x: &Tensor| x.narrow(-1, 1, n - half).flip(-1);
        let re = Tensor::cat(&[re, &mirrored(re)], -1);
        let im = Tensor::cat(&[im, &-mirrored(im)], -1);
        return Ok(inverse(call, &re, &im)?.0);
    }
    let first = |x: &Tensor| x.narrow(-1, 0, n / 2);
    let (re_back, im_back) = (first(&re.flip(-1)), first(&im.flip(-1)));
    let (re, im) = (first(re), first(im));
    let (even_re, even_im) = ((&re + &re_back) * 0.5, (&im - &im_back) * 0.5);
    let (odd_re, odd_im) = ((&re - &re_back) * 0.5, (&im + &im_back) * 0.5);
    let (cos, sin) = table(call, Table::Circle { rows: n / 2, of: n }, &re)?;
    // Turned back.
    let (odd_im, odd_re) = turned(&odd_im, Some(&odd_re), |x| x * &cos, |x| x * &sin);
    let (re, im) = inverse(call, &(even_re - odd_im), &(even_im + odd_re))?;
    Ok(Tensor::stack(&[re, im], -1).flatten(-2..))
}

/// With zeros along the last axis, so many before and after.
fn padded(x: &Tensor, before: usize, after: usize) -> Tensor {
    let mut border = vec![(0, 0); x.node.shape.rank()];
    if let Some(last) = border.last_mut() {
        *last = (before, after);
    }
    x.pad(&border, 0)
}

/// Any number of elements: since `k * t = (k² + t² - (k - t)²) / 2`, a convolution, which is a product of transforms of a
/// power of 2 (L. I. Bluestein, 1970).
fn by_convolution(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let n = length(re);
    let Some(padded_length) = n.checked_mul(2).and_then(|twice| twice.checked_next_power_of_two()) else {
        return call.fail(format!("{n} elements are too many to transform"));
    };
    let (cos, sin) = table(call, Table::Squares { n, padded: padded_length }, re)?;
    let [first_cos, first_sin] = [&cos, &sin].map(|x| x.narrow(0, 0, n));
    let (re, im) = turned(re, im, |x| x * &first_cos, |x| x * &first_sin);
    let wide = |x: &Tensor| padded(x, 0, padded_length - n);
    let (re, im) = forward(call, &wide(&re), Some(&wide(&im)))?;
    let (of_cos, of_sin) = forward(call, &cos, Some(&sin))?;
    let (re, im) = (&re * &of_cos - &im * &of_sin, re * of_sin + im * of_cos);
    let (re, im) = inverse(call, &re, &im)?;
    let first = |x: Tensor| x.narrow(-1, 0, n);
    Ok(turned(&first(re), Some(&first(im)), |x| x * &first_cos, |x| x * &first_sin))
}
