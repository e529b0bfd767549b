//! Which frequencies the results of transforms are of, and in which order.

use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// The frequencies of the `n` results of [`Tensor::fft`], of elements that are `spacing` apart, in cycles: `0, 1, …, -2, -1`
    /// over `n * spacing`. PyTorch's and NumPy's `fft.fftfreq`.
    ///
    /// Invalid for an `n` of 0, a spacing that is 0 or not finite, and a dtype that is no float.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::fftfreq(4, 0.5, DType::F32).to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
    /// assert_eq!(Tensor::fftfreq(5, 0.2, DType::F32).to_vec::<f32>()?, [0.0, 1.0, 2.0, -2.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fftfreq(n: usize, spacing: f64, dtype: DType) -> Tensor {
        let call = Call::here("fftfreq");
        call.composed(|| {
            let number = counting(n);
            // From the middle on, they count from the end.
            let number = number.lt(n.div_ceil(2) as i64).where_(&number, &number - n as i64);
            frequencies(call, &number, n, spacing, dtype)
        })
    }

    /// The frequencies of the `n / 2 + 1` results of [`Tensor::rfft`]: see [`Tensor::fftfreq`]. That of the middle one of an even
    /// number is positive.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::rfftfreq(4, 0.5, DType::F32).to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rfftfreq(n: usize, spacing: f64, dtype: DType) -> Tensor {
        let call = Call::here("rfftfreq");
        call.composed(|| frequencies(call, &counting(n / 2 + 1), n, spacing, dtype))
    }

    /// The axes turned so that the frequency 0, which transforms give first, is in the middle. Of every dtype.
    ///
    /// Invalid for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let frequencies = Tensor::fftfreq(5, 0.2, DType::F32).fftshift(0);
    /// assert_eq!(frequencies.to_vec::<f32>()?, [-2.0, -1.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fftshift(&self, axes: impl Into<Axes>) -> Tensor {
        let (call, axes) = (Call::here("fftshift"), axes.into());
        call.composed(|| turned(call, self, &axes, |extent| (extent / 2) as isize))
    }

    /// The opposite of [`Tensor::fftshift`]: the one in the middle is first.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 5, 1);
    /// assert_eq!(x.ifftshift(0).to_vec::<i32>()?, [2, 3, 4, 0, 1]);
    /// assert_eq!(x.ifftshift(0).fftshift(0).to_vec::<i32>()?, [0, 1, 2, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ifftshift(&self, axes: impl Into<Axes>) -> Tensor {
        let (call, axes) = (Call::here("ifftshift"), axes.into());
        call.composed(|| turned(call, self, &axes, |extent| -((extent / 2) as isize)))
    }
}

fn frequencies(call: Call, number: &Tensor, n: usize, spacing: f64, dtype: DType) -> Result<Tensor> {
    if !dtype.is_float() {
        return call.fail(format!("frequencies are floats, not {dtype}"));
    }
    if n == 0 {
        return call.fail("a transform has at least 1 element, got 0");
    }
    call.needs(
        spacing.is_finite() && spacing != 0.0,
        "the spacing must be a finite number other than 0",
        spacing,
    )?;
    number.known()?;
    Ok((number.cast(DType::F64) * (1.0 / (n as f64 * spacing))).cast(dtype))
}

fn turned(call: Call, x: &Tensor, axes: &Axes, shift: fn(usize) -> isize) -> Result<Tensor> {
    let shape = x.known()?.0;
    let axes = call.axes(axes, shape)?;
    Ok(axes.iter().fold(x.clone(), |x, &axis| x.roll(shift(shape[axis]), axis)))
}
