//! Of neighbours along an axis: what they differ by, the slope between them, and the area below them.

use super::statistics::widened;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::tensor::map::operands::float_for;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// Each element less the one before it, of all elements in row-major order: NumPy's `ediff1d`. See [`Tensor::diff`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[1, 4], [2, 8]]);
    /// assert_eq!(x.ediff1d().to_vec::<i32>()?, [3, -2, 6]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ediff1d(&self) -> Tensor {
        Call::here("ediff1d").composed(|| Ok(self.ravel().diff(0)))
    }

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

    /// [`Tensor::diff`] so many times, of the tensor with others before and behind it along the axis: PyTorch's and NumPy's `diff` with
    /// `n`, `prepend` and `append`. In the promoted dtype. No time, the tensor itself.
    ///
    /// Invalid for an axis out of range, and if what is before or behind does not fit.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 4, 9, 16], [4]);
    /// assert_eq!(x.diff_with(2, 0, None, None).to_vec::<i32>()?, [2, 2]);
    /// let zero = Tensor::from_slice(&[0], [1]);
    /// assert_eq!(x.diff_with(1, 0, Some(&zero), None).to_vec::<i32>()?, [1, 3, 5, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diff_with(
        &self,
        n: usize,
        axis: isize,
        prepend: Option<&Tensor>,
        append: Option<&Tensor>,
    ) -> Tensor {
        let call = Call::here("diff_with");
        call.composed(|| {
            let axis = call.axis(axis, self.known()?.0)? as isize;
            if n == 0 {
                return Ok(self.clone());
            }
            let parts: Vec<&Tensor> = prepend.into_iter().chain([self]).chain(append).collect();
            let mut x = if parts.len() == 1 { self.clone() } else { Tensor::cat(&parts, axis) };
            let extent = x.known()?.0[axis as usize];
            if n >= extent {
                return Ok(x.narrow(axis, 0, 0));
            }
            for _ in 0..n {
                x = x.diff(axis);
            }
            Ok(x)
        })
    }

    /// The slope at each element along an axis, of elements so far apart: the mean slope to both neighbours, and at the ends that
    /// to the only one. `spacing` is a number (1 in PyTorch and NumPy), or a tensor of one dimension, the coordinates, where
    /// neighbours weigh more the nearer they are: a parabola through three has that slope. Floats keep their dtype, integers
    /// and bools give `F32`. PyTorch's and NumPy's `gradient` along one axis.
    ///
    /// Invalid for fewer than two elements along the axis, and for another number of coordinates.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let y = Tensor::from_slice(&[0.0f32, 1.0, 4.0, 9.0], [4]);
    /// assert_eq!(y.gradient(0, 1.0).to_vec::<f32>()?, [1.0, 2.0, 4.0, 5.0]);
    /// let (x, y) = (Tensor::from([0.0f32, 1.0, 3.0]), Tensor::from([0.0f32, 1.0, 9.0]));
    /// assert_eq!(y.gradient(0, &x).to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gradient(&self, axis: isize, spacing: impl Into<Operand>) -> Tensor {
        let (call, spacing) = (Call::here("gradient"), spacing.into());
        call.composed(|| gradient(call, self, axis, spacing, 1))
    }

    /// [`Tensor::gradient`] with slopes at the ends of so high an order: 1, to the only neighbour, or 2, of the parabola through the
    /// last three. PyTorch's and NumPy's `edge_order`.
    ///
    /// Invalid where `gradient` is, for another order, and for fewer than three elements along the axis with an order of 2.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let y = Tensor::from_slice(&[0.0f32, 1.0, 4.0, 9.0], [4]);
    /// assert_eq!(y.gradient_with(0, 1.0, 2).to_vec::<f32>()?, [0.0, 2.0, 4.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gradient_with(&self, axis: isize, spacing: impl Into<Operand>, edge_order: usize) -> Tensor {
        let (call, spacing) = (Call::here("gradient_with"), spacing.into());
        call.composed(|| {
            call.needs((1..=2).contains(&edge_order), "the order at the ends must be 1 or 2", edge_order)?;
            gradient(call, self, axis, spacing, edge_order)
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

    /// [`Tensor::trapezoid`] of elements at coordinates: in one dimension, one for each position of the axis, or in more, which
    /// broadcast. Keeps the promoted dtype of elements and coordinates; invalid unless the elements are floats, and for another number
    /// of coordinates. PyTorch's and NumPy's `trapezoid` with `x`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (y, x) = (Tensor::from([0.0f32, 2.0, 4.0]), Tensor::from([0.0f32, 1.0, 3.0]));
    /// assert_eq!(y.trapezoid_with(&x, 0).item::<f32>()?, 7.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn trapezoid_with(&self, x: impl AsRef<Tensor>, axis: isize) -> Tensor {
        let (call, x) = (Call::here("trapezoid_with"), x.as_ref());
        call.composed(|| {
            let (areas, dtype) = areas(call, self, x, axis)?;
            Ok(areas.sum(call.axis(axis, self.known()?.0)?).cast(dtype))
        })
    }

    /// [`Tensor::cumulative_trapezoid`] of elements at coordinates, as to [`Tensor::trapezoid_with`]. PyTorch's
    /// `cumulative_trapezoid` with `x`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (y, x) = (Tensor::from([0.0f32, 2.0, 4.0]), Tensor::from([0.0f32, 1.0, 3.0]));
    /// assert_eq!(y.cumulative_trapezoid_with(&x, 0).to_vec::<f32>()?, [1.0, 7.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cumulative_trapezoid_with(&self, x: impl AsRef<Tensor>, axis: isize) -> Tensor {
        let (call, x) = (Call::here("cumulative_trapezoid_with"), x.as_ref());
        call.composed(|| {
            let (areas, dtype) = areas(call, self, x, axis)?;
            Ok(areas.cumsum(call.axis(axis, self.known()?.0)? as isize).cast(dtype))
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

fn gradient(call: Call, x: &Tensor, axis: isize, spacing: Operand, edge_order: usize) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let (at, dtype) = (call.axis(axis, shape)?, float_for(dtype));
    let (length, axis) = (shape[at], at as isize);
    if length <= edge_order {
        return call.fail(format!("axis {at} of shape {shape} has fewer than {} elements", edge_order + 1));
    }
    let x = x.cast(dtype.compute());
    let [before, after] = neighbours(call, &x, axis)?;
    let inner = |x: &Tensor, first: usize| x.narrow(axis, first, length - 2);
    // Slopes between neighbours, those inside, and what part of two neighbouring steps each of them is.
    let (slopes, inside, parts) = match spacing {
        Operand::Tensor(coordinates) if coordinates.known()?.0.rank() > 0 => {
            let (own, own_dtype) = coordinates.known()?;
            if own[..] != [length] {
                return call.fail(format!(
                    "the spacing along axis {at} of shape {shape} is a number or {length} coordinates, got shape {own}"
                ));
            }
            // Differences of large coordinates are small: rounded afterwards.
            let wide = if own_dtype.is_float() { own_dtype.compute() } else { DType::I64 };
            let mut line = vec![1; shape.rank()];
            line[at] = length - 1;
            let steps = coordinates.cast(wide).diff(0).cast(dtype.compute()).reshape(line);
            let slopes = (after - before) / &steps;
            let (left, right) = (inner(&steps, 0), inner(&steps, 1));
            let weighed = inner(&slopes, 0) * &right + inner(&slopes, 1) * &left;
            let both = &left + &right;
            let inside = weighed / &both;
            (slopes, inside, Some([left / &both, right / both]))
        }
        step => {
            let both = inner(&after, 1) - inner(&before, 0);
            let slopes = (after - before).div(step.clone());
            (slopes, both.div(step) * 0.5, None)
        }
    };
    let ends = [(0, 1), (length - 2, length.saturating_sub(3))].map(|(last, next)| {
        let slope = slopes.narrow(axis, last, 1);
        if edge_order == 1 {
            return slope;
        }
        // As much again as the slope has changed from the middle of one step to that of the other.
        let change = &slope - slopes.narrow(axis, next, 1);
        let part = parts.as_ref().map(|parts| match last {
            0 => parts[0].narrow(axis, 0, 1),
            _ => parts[1].narrow(axis, length - 3, 1),
        });
        slope
            + match part {
                Some(part) => change * part,
                None => change * 0.5,
            }
    });
    Ok(Tensor::cat(&[&ends[0], &inside, &ends[1]], axis).cast(dtype))
}

/// The area between each two neighbours, which are at coordinates, in the dtype of its arithmetic; and the result's.
fn areas(call: Call, y: &Tensor, x: &Tensor, axis: isize) -> Result<(Tensor, DType)> {
    call.needs_float(y)?;
    let dtype = result_type(&[y.into(), x.into()])?;
    let ((shape, _), (own, own_dtype)) = (y.known()?, x.known()?);
    let at = call.axis(axis, shape)?;
    // The coordinates with all axes of the elements.
    let line: Shape = match own.rank() {
        1 => (0..shape.rank()).map(|n| if n == at { own[0] } else { 1 }).collect(),
        rank => (rank..shape.rank()).map(|_| 1).chain(own.iter().copied()).collect(),
    };
    if line.rank() != shape.rank() || line[at] != shape[at] || line.broadcast(shape).is_none() {
        return call.fail(format!(
            "coordinates along axis {at} of shape {shape} are {} numbers, in one dimension or broadcasting, got {own_dtype} {own}",
            shape[at]
        ));
    }
    let wide = dtype.compute();
    let x = x.reshape(line).cast(wide);
    let [left, right] = neighbours(call, &x, at as isize)?;
    let [before, after] = neighbours(call, &y.cast(wide), at as isize)?;
    Ok(((before + after) * ((right - left) * 0.5), dtype))
}

/// All elements along the axis but the last, and all but the first.
fn neighbours(call: Call, x: &Tensor, axis: isize) -> Result<[Tensor; 2]> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    let (length, first) = (shape[axis].saturating_sub(1), shape[axis].min(1));
    let axis = axis as isize;
    Ok([x.narrow(axis, 0, length), x.narrow(axis, first, length)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn slopes_of_two_and_of_integers() {
        let x = Tensor::from_slice(&[200u8, 100, 7, 9], [2, 2]).to(&Device::interpreter());
        assert_eq!(x.gradient(1, 2).to_vec::<f32>().unwrap(), [-50.0, -50.0, 1.0, 1.0]);
        let line = Tensor::arange(0u8, 2, 1).to(&Device::interpreter());
        assert_eq!(x.gradient(1, line.flip(0)).to_vec::<f32>().unwrap(), [100.0, 100.0, -2.0, -2.0]);
    }

    /// In `F32` these coordinates would all be equal.
    #[test]
    fn coordinates_are_subtracted_before_they_are_rounded() {
        let times = (Tensor::arange(0.0f64, 4.0, 1.0) + 1e15).to(&Device::interpreter());
        let x = Tensor::arange(0.0f32, 4.0, 1.0).square().to(&Device::interpreter());
        assert_eq!(x.gradient(0, times).to_vec::<f32>().unwrap(), [1.0, 2.0, 4.0, 5.0]);
    }
}
