//! Of neighbours along an axis: what they differ by, and the area below them.

use super::statistics::widened;
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// Each element less the one before it along an axis, which becomes one shorter; of bools, whether they differ.
    /// Keeps the dtype; unsigned integers wrap. PyTorch's and NumPy's `diff` with `n` = 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let prices = Tensor::from_slice(&[1.0f32, 4.0, 2.0], [3]);
    /// assert_eq!(prices.diff(0).to_vec::<f32>()?, [3.0, -2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diff(&self, axis: isize) -> Tensor {
        let call = Call::here("diff");
        call.composed(|| {
            let [before, after] = neighbours(call, self, axis)?;
            Ok(match self.known()?.1 {
                DType::Bool => after.ne(before),
                _ => after - before,
            })
        })
    }

    /// The area below the elements along an axis, `dx` apart, by the trapezoidal rule: the sum of the means of neighbours,
    /// times `dx`. The axis is gone; of fewer than two elements the area is 0. Keeps the dtype; invalid for integers and
    /// bools. NumPy's `trapezoid`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let y = Tensor::from_slice(&[0.0f32, 2.0, 4.0], [3]);
    /// assert_eq!(y.trapezoid(0, 0.5).item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn trapezoid(&self, axis: isize, dx: f64) -> Tensor {
        let call = Call::here("trapezoid");
        call.composed(|| {
            call.needs_float(self)?;
            let [before, after] = neighbours(call, self, axis)?;
            let dtype = self.known()?.1.compute();
            widened(self, |_| (before.cast(dtype) + after.cast(dtype)).sum(axis) * (dx / 2.0))
        })
    }

    /// The area below the elements along an axis up to each but the first, `dx` apart, by the trapezoidal rule: the running sums
    /// whose last is [`Tensor::trapezoid`]. The axis becomes one shorter. Keeps the dtype; invalid for integers and bools.
    /// PyTorch's and SciPy's `cumulative_trapezoid`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let speed = Tensor::from_slice(&[0.0f32, 2.0, 4.0], [3]);
    /// assert_eq!(speed.cumulative_trapezoid(0, 0.5).to_vec::<f32>()?, [0.5, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cumulative_trapezoid(&self, axis: isize, dx: f64) -> Tensor {
        let call = Call::here("cumulative_trapezoid");
        call.composed(|| {
            call.needs_float(self)?;
            let [before, after] = neighbours(call, self, axis)?;
            let dtype = self.known()?.1.compute();
            widened(self, |_| ((before.cast(dtype) + after.cast(dtype)) * (dx / 2.0)).cumsum(axis))
        })
    }
}

/// All elements along the axis but the last, and all but the first.
fn neighbours(call: Call, x: &Tensor, axis: isize) -> Result<[Tensor; 2]> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    let (length, first) = (shape[axis].saturating_sub(1), shape[axis].min(1));
    let axis = axis as isize;
    Ok([x.narrow(axis, 0, length), x.narrow(axis, first, length)])
}
