//! Quantiles: what a part of a row is below. All that a call asks for are read from one row in order.

use super::sort::{at, sorted};
use crate::graph::op::Sorted;
use crate::tensor::arguments::call::{Call, is_of_scalar};
use crate::{DType, Result, Tensor};

/// Which quantiles [`Tensor::quantile`] gives: one, by a number from 0 to 1, or several, by a list of such numbers.
///
/// ```
/// use lazuli::{Quantiles, Tensor};
/// let x = Tensor::from_slice(&[4.0f32, 1.0, 3.0, 2.0, 0.0], [5]);
/// let quartiles = Quantiles::from([0.25, 0.5, 0.75]);
/// assert_eq!(x.quantile(quartiles, 0).to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Quantiles {
    numbers: Vec<f64>,
    /// Whether the result has an axis of them.
    is_list: bool,
}

impl From<f64> for Quantiles {
    fn from(q: f64) -> Quantiles {
        Quantiles { numbers: vec![q], is_list: false }
    }
}

impl From<Vec<f64>> for Quantiles {
    fn from(numbers: Vec<f64>) -> Quantiles {
        Quantiles { numbers, is_list: true }
    }
}

impl From<&Vec<f64>> for Quantiles {
    fn from(numbers: &Vec<f64>) -> Quantiles {
        numbers.clone().into()
    }
}

impl From<&[f64]> for Quantiles {
    fn from(numbers: &[f64]) -> Quantiles {
        numbers.to_vec().into()
    }
}

impl<const N: usize> From<[f64; N]> for Quantiles {
    fn from(numbers: [f64; N]) -> Quantiles {
        numbers.to_vec().into()
    }
}

impl<const N: usize> From<&[f64; N]> for Quantiles {
    fn from(numbers: &[f64; N]) -> Quantiles {
        numbers.to_vec().into()
    }
}

impl Tensor {
    /// The `q`-quantile along an axis, which the result no longer has: between two elements in order, what is linear between
    /// them. NaN, where one is. Of a list of numbers all quantiles, along a new first axis, as PyTorch's and NumPy's; they
    /// share the sort. Keeps the dtype.
    ///
    /// Invalid for integers and bools, for a `q` that is not from 0 to 1, and for an axis out of range or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, 1.0, 3.0, 2.0], [4]);
    /// assert_eq!(x.quantile(0.5, 0).item::<f32>()?, 2.5);
    /// assert_eq!(x.quantile([0.0, 0.5, 1.0], 0).to_vec::<f32>()?, [1.0, 2.5, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn quantile(&self, q: impl Into<Quantiles>, axis: isize) -> Tensor {
        let (call, q) = (Call::here("quantile"), q.into());
        call.composed(|| {
            let (x, axis) = row(self, axis)?;
            quantile(call, &x, &q, axis)
        })
    }

    /// [`Tensor::quantile`] of what is not NaN; NaN of nothing.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, f32::NAN, 3.0, 2.0], [4]);
    /// assert_eq!(x.nanquantile(0.5, 0).item::<f32>()?, 3.0);
    /// assert_eq!(x.nanquantile([0.25, 1.0], 0).to_vec::<f32>()?, [2.5, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nanquantile(&self, q: impl Into<Quantiles>, axis: isize) -> Tensor {
        let (call, q) = (Call::here("nanquantile"), q.into());
        call.composed(|| {
            let (x, axis) = row(self, axis)?;
            nanquantile(call, &x, &q, axis)
        })
    }
}

/// A tensor with the axis: of a 0-d one, a row of its element.
fn row(x: &Tensor, axis: isize) -> Result<(Tensor, isize)> {
    Ok(if is_of_scalar(axis, x.known()?.0) { (x.reshape([1]), 0) } else { (x.clone(), axis) })
}

/// Checks the quantiles, and gives the axis and the last position along it.
fn checked(call: Call, x: &Tensor, q: &Quantiles, axis: isize) -> Result<(usize, usize)> {
    let (shape, dtype) = x.known()?;
    if !dtype.is_float() {
        return call.fail(format!("needs a float tensor, got {dtype}; cast it first"));
    }
    if let Some(q) = q.numbers.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        return call.fail(format!("q must be from 0 to 1, got {q}"));
    }
    let axis = call.axis(axis, shape)?;
    match shape[axis].checked_sub(1) {
        Some(last) => Ok((axis, last)),
        None => call.fail(format!("no quantile of nothing: axis {axis} of shape {shape}")),
    }
}

fn quantile(call: Call, x: &Tensor, q: &Quantiles, axis: isize) -> Result<Tensor> {
    let (own, last) = checked(call, x, q, axis)?;
    let dtype = x.known()?.1;
    let ranks: Vec<f64> = q.numbers.iter().map(|q| q * last as f64).collect();
    let most = ranks.iter().fold(0.0, |most: f64, &rank| most.max(rank)).ceil() as usize;
    let first = sorted(call, x, axis, Some(most + 1), false, Sorted::Values)?;
    let between = match (q.is_list, &ranks[..]) {
        (false, &[rank]) => {
            let (below, above) =
                (at(&first, x, axis, rank.floor() as usize), at(&first, x, axis, rank.ceil() as usize));
            below.lerp(&above, rank.fract())
        }
        _ => {
            let [below, above] = [f64::floor, f64::ceil].map(|round| {
                let places = beside(call, x, ranks.iter().map(|&rank| round(rank)).collect())?;
                Ok(first.index_select(axis, &places.cast(DType::I64)).movedim(own as isize, 0))
            });
            let weights = beside(call, x, ranks.iter().map(|rank| rank.fract()).collect())?;
            below?.lerp(&above?, &outer(&weights, x.known()?.0.rank() - 1).cast(dtype))
        }
    };
    Ok(x.isnan().any(axis).where_(f64::NAN, between).cast(dtype))
}

fn nanquantile(call: Call, x: &Tensor, q: &Quantiles, axis: isize) -> Result<Tensor> {
    let (own, _) = checked(call, x, q, axis)?;
    let (shape, dtype) = x.known()?;
    let whole = sorted(call, x, axis, None, false, Sorted::Values)?;
    let last = (x.isnan().logical_not().count_nonzero_keepdim(axis) - 1).maximum(0).cast(DType::F64);
    // The quantiles of a list are along an axis before all others.
    let (whole, rank, own) = match (q.is_list, &q.numbers[..]) {
        (false, &[q]) => (whole, last * q, own),
        _ => {
            let numbers = outer(&beside(call, x, q.numbers.clone())?, shape.rank());
            (whole.unsqueeze(0), last.unsqueeze(0) * numbers, own + 1)
        }
    };
    let below = rank.floor();
    let [low, high] =
        [&below, &rank.ceil()].map(|rank| whole.take_along_axis(&rank.cast(DType::I64), own as isize));
    let weight = (&rank - &below).cast(dtype);
    Ok(low.lerp(&high, &weight).squeeze(own as isize))
}

/// These numbers in one dimension, on a tensor's device.
fn beside(call: Call, x: &Tensor, numbers: Vec<f64>) -> Result<Tensor> {
    let count = numbers.len();
    let tensor = Tensor::from_vec(numbers, [count]);
    x.node.device.map_or(Ok(tensor.clone()), |device| call.transfer(&tensor, device))
}

/// A row along the first axis of so many more.
fn outer(row: &Tensor, more: usize) -> Tensor {
    let count = row.node.shape.elements();
    row.reshape(std::iter::once(count).chain(std::iter::repeat_n(1, more)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{mistake, recorded};
    use crate::{Device, Shape};

    #[test]
    fn a_list_gives_a_first_axis_and_shares_the_sort() {
        let x = Tensor::from_vec((0..60).map(|n| (n * 7 % 60) as f32).collect(), [3, 4, 5]);
        let shape = |x: Tensor| x.shape().unwrap();
        assert_eq!(shape(x.quantile(0.5, 1)), Shape::from([3, 5]));
        assert_eq!(shape(x.quantile([0.5], -1)), Shape::from([1, 3, 4]));
        assert_eq!(shape(x.quantile(vec![0.5; 7], 0)), Shape::from([7, 4, 5]));
        assert_eq!(shape(x.nanquantile(&[0.1, 0.2], 1)), Shape::from([2, 3, 5]));
        assert_eq!(shape(x.nanquantile(&vec![0.1; 0], 1)), Shape::from([0, 3, 5]));
        assert_eq!(shape(x.quantile(&[][..], 2)), Shape::from([0, 3, 4]));
        for several in [x.quantile([0.1, 0.2, 0.9], 1), x.nanquantile([0.1, 0.2, 0.9], 1)] {
            let sorts = recorded(&several).into_iter().filter(|op| op.contains("sort")).count();
            assert_eq!(sorts, 1);
        }
        assert_eq!(shape(Tensor::scalar(3.0f32).quantile([0.1, 0.9], 0)), Shape::from([2]));
        assert_eq!(shape(Tensor::scalar(3.0f32).nanquantile(0.5, -1)), Shape::scalar());
    }

    #[test]
    fn of_a_list_each_is_what_it_is_alone() {
        let nan = f32::NAN;
        let rows = [
            [3.0, -1.0, 2.5, 8.0, 0.0],
            [nan, 1.0, nan, 4.0, 2.0],
            [nan; 5],
            [-f32::INFINITY, 0.0, 1.0, 2.0, 7.0],
        ];
        let x = Tensor::from_slice(rows.as_flattened(), [4, 5]).to(&Device::interpreter());
        let qs = [0.0, 0.1, 0.25, 0.5, 0.99, 1.0];
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let x = x.cast(dtype);
            for axis in [0, 1, -1] {
                for (number, &q) in qs.iter().enumerate() {
                    let number = number as isize;
                    let (all, alone) = (x.quantile(qs, axis).select(0, number), x.quantile(q, axis));
                    assert_eq!(all.to_string(), alone.to_string(), "{dtype}, {q} along {axis}");
                    let (all, alone) = (x.nanquantile(qs, axis).select(0, number), x.nanquantile(q, axis));
                    assert_eq!(all.to_string(), alone.to_string(), "{dtype}, nan {q} along {axis}");
                }
            }
        }
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(x.quantile([0.5, 1.5], 0), "quantile: q must be from 0 to 1, got 1.5");
        mistake!(x.nanquantile([f64::NAN, 0.5], 0), "nanquantile: q must be from 0 to 1, got NaN");
        mistake!(
            x.quantile([0.5], 2),
            "quantile: axis 2 is out of range for shape [2, 3]: it must be from -2 to 1"
        );
    }
}
