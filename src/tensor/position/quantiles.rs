//! Quantiles: what a part of a row is below. All that a call asks for are read from one row in order.

use super::gather::taken_along;
use super::rows::Rows;
use super::sort::{at, sorted};
use crate::graph::op::Sorted;
use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Shape, Tensor};

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

/// What a quantile between two elements in order is: PyTorch's and NumPy's `interpolation`.
///
/// ```
/// use lazuli::{QuantileBetween, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0], [3]);
/// let between = |between| x.quantile_with(0.75, 0, between).item::<f32>();
/// assert_eq!((between(QuantileBetween::Lower)?, between(QuantileBetween::Higher)?), (2.0, 4.0));
/// assert_eq!(between(QuantileBetween::Linear)?, 3.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum QuantileBetween {
    /// What is linear between them.
    #[default]
    Linear,
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// What is in the middle.
    Midpoint,
    /// The nearer one; of two as near that at an even position.
    Nearest,
}

impl QuantileBetween {
    /// The places of two elements, and how much the second one counts.
    fn places(self, rank: f64) -> (f64, f64, f64) {
        match self {
            QuantileBetween::Linear => (rank.floor(), rank.ceil(), rank.fract()),
            QuantileBetween::Midpoint => (rank.floor(), rank.ceil(), 0.5),
            QuantileBetween::Lower => (rank.floor(), rank.floor(), 0.0),
            QuantileBetween::Higher => (rank.ceil(), rank.ceil(), 0.0),
            QuantileBetween::Nearest => {
                let nearest = rank.round_ties_even();
                (nearest, nearest, 0.0)
            }
        }
    }

    /// Whether the place is that of one element.
    fn is_one(self) -> bool {
        !matches!(self, QuantileBetween::Linear | QuantileBetween::Midpoint)
    }
}

impl Tensor {
    /// The `q`-quantile along the axes, which the result no longer has: between two elements in order, what is linear between
    /// them. NaN, where one is. Of a list of numbers all quantiles, along a new first axis, as PyTorch's and NumPy's; they
    /// share the sort. Keeps the dtype. For the quantile of all elements, `..`.
    ///
    /// Invalid for integers and bools, for a `q` that is not from 0 to 1, and for an axis out of range, given twice or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, 1.0, 3.0, 2.0], [2, 2]);
    /// assert_eq!(x.quantile(0.5, 1).to_vec::<f32>()?, [2.5, 2.5]);
    /// assert_eq!(x.quantile([0.0, 0.5, 1.0], ..).to_vec::<f32>()?, [1.0, 2.5, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn quantile(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>) -> Tensor {
        let (call, q, axes) = (Call::here("quantile"), q.into(), axes.into());
        call.composed(|| quantile(call, &Rows::of(call, self, &axes)?, &q, QuantileBetween::Linear))
    }

    /// [`Tensor::quantile`] that keeps the axes, with extent 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, 1.0, 3.0, 9.0], [2, 2]);
    /// let above = x.gt(x.quantile_keepdim(0.5, 1));
    /// assert_eq!(above.to_vec::<bool>()?, [true, false, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn quantile_keepdim(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>) -> Tensor {
        let (call, q, axes) = (Call::here("quantile_keepdim"), q.into(), axes.into());
        call.composed(|| {
            let rows = Rows::of(call, self, &axes)?;
            Ok(keeping(&rows, &quantile(call, &rows, &q, QuantileBetween::Linear)?, &q))
        })
    }

    /// [`Tensor::quantile`] that is another number between two elements: see [`QuantileBetween`]. PyTorch's `interpolation`.
    ///
    /// ```
    /// use lazuli::{QuantileBetween, Tensor};
    /// let x = Tensor::from_slice(&[4.0f32, 1.0, 3.0, 2.0], [4]);
    /// assert_eq!(x.quantile_with(0.3, 0, QuantileBetween::Nearest).item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn quantile_with(
        &self,
        q: impl Into<Quantiles>,
        axes: impl Into<Axes>,
        between: QuantileBetween,
    ) -> Tensor {
        let (call, q, axes) = (Call::here("quantile_with"), q.into(), axes.into());
        call.composed(|| quantile(call, &Rows::of(call, self, &axes)?, &q, between))
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
    pub fn nanquantile(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>) -> Tensor {
        let (call, q, axes) = (Call::here("nanquantile"), q.into(), axes.into());
        call.composed(|| nanquantile(call, &Rows::of(call, self, &axes)?, &q, QuantileBetween::Linear))
    }

    /// [`Tensor::nanquantile`] that keeps the axes, with extent 1.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let x = Tensor::from_slice(&[4.0f32, f32::NAN, 3.0, 2.0], [2, 2]);
    /// assert_eq!(x.nanquantile_keepdim([0.0, 1.0], 1).shape()?, Shape::from([2, 2, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nanquantile_keepdim(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>) -> Tensor {
        let (call, q, axes) = (Call::here("nanquantile_keepdim"), q.into(), axes.into());
        call.composed(|| {
            let rows = Rows::of(call, self, &axes)?;
            Ok(keeping(&rows, &nanquantile(call, &rows, &q, QuantileBetween::Linear)?, &q))
        })
    }

    /// [`Tensor::nanquantile`] that is another number between two elements: see [`QuantileBetween`].
    ///
    /// ```
    /// use lazuli::{QuantileBetween, Tensor};
    /// let x = Tensor::from_slice(&[4.0f32, f32::NAN, 3.0], [3]);
    /// assert_eq!(x.nanquantile_with(0.25, 0, QuantileBetween::Higher).item::<f32>()?, 4.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nanquantile_with(
        &self,
        q: impl Into<Quantiles>,
        axes: impl Into<Axes>,
        between: QuantileBetween,
    ) -> Tensor {
        let (call, q, axes) = (Call::here("nanquantile_with"), q.into(), axes.into());
        call.composed(|| nanquantile(call, &Rows::of(call, self, &axes)?, &q, between))
    }
}

impl Quantiles {
    /// Of numbers from 0 to 100.
    fn of_percents(self) -> Quantiles {
        Quantiles { numbers: self.numbers.iter().map(|q| q / 100.0).collect(), ..self }
    }

    /// An error unless all are from 0 to 100.
    fn needs_percents(&self, call: Call) -> Result<()> {
        match self.numbers.iter().find(|q| !(0.0..=100.0).contains(*q)) {
            Some(q) => call.fail(format!("q must be from 0 to 100, got {q}")),
            None => Ok(()),
        }
    }
}

impl Tensor {
    /// [`Tensor::quantile`] by numbers from 0 to 100: NumPy's `percentile`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, 1.0, 3.0, 2.0, 0.0], [5]);
    /// assert_eq!(x.percentile([25.0, 50.0], 0).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn percentile(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>) -> Tensor {
        let (call, q) = (Call::here("percentile"), q.into());
        call.composed(|| q.needs_percents(call).map(|()| self.quantile(q.of_percents(), axes)))
    }

    /// [`Tensor::nanquantile`] by numbers from 0 to 100: NumPy's `nanpercentile`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, f32::NAN, 3.0, 2.0], [4]);
    /// assert_eq!(x.nanpercentile(50.0, 0).item::<f32>()?, 3.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nanpercentile(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>) -> Tensor {
        let (call, q) = (Call::here("nanpercentile"), q.into());
        call.composed(|| q.needs_percents(call).map(|()| self.nanquantile(q.of_percents(), axes)))
    }
}

/// A result with the axes of the rows, which may have one of several numbers before all others.
fn keeping(rows: &Rows, result: &Tensor, q: &Quantiles) -> Tensor {
    let first = q.is_list.then_some(q.numbers.len());
    result.reshape(first.into_iter().chain(rows.kept.iter().copied()).collect::<Shape>())
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

fn quantile(call: Call, rows: &Rows, q: &Quantiles, between: QuantileBetween) -> Result<Tensor> {
    let Rows { x, axis, .. } = rows;
    let axis = *axis;
    let (own, last) = checked(call, x, q, axis)?;
    let dtype = x.known()?.1;
    let rank = |q: f64| match dtype {
        // Which element is nearer is decided as PyTorch does, in the tensor's dtype.
        DType::F32 if between.is_one() => f64::from(q as f32 * last as f32),
        _ => q * last as f64,
    };
    let places: Vec<(f64, f64, f64)> =
        q.numbers.iter().map(|&q| between.places(rank(q).min(last as f64))).collect();
    let most = places.iter().fold(0.0, |most: f64, &(_, above, _)| most.max(above)) as usize;
    let first = sorted(call, x, axis, Some(most + 1), false, Sorted::Values)?;
    let found = match (q.is_list, &places[..]) {
        (false, &[(below, above, weight)]) => {
            let [below, above] = [below, above].map(|place| at(&first, x, axis, place as usize));
            if between.is_one() { below } else { below.lerp(&above, weight) }
        }
        _ => {
            let elements = |place: fn(&(f64, f64, f64)) -> f64| {
                let places = beside(call, x, places.iter().map(place).collect())?;
                Ok(first.index_select(axis, &places.cast(DType::I64)).movedim(own as isize, 0))
            };
            let below: Result<Tensor> = elements(|places| places.0);
            if between.is_one() {
                below?
            } else {
                let above: Result<Tensor> = elements(|places| places.1);
                let weights = beside(call, x, places.iter().map(|places| places.2).collect())?;
                below?.lerp(&above?, &outer(&weights, x.known()?.0.rank() - 1).cast(dtype))
            }
        }
    };
    Ok(x.isnan().any(axis).where_(f64::NAN, found).cast(dtype))
}

fn nanquantile(call: Call, rows: &Rows, q: &Quantiles, between: QuantileBetween) -> Result<Tensor> {
    let Rows { x, axis, .. } = rows;
    let axis = *axis;
    let (own, _) = checked(call, x, q, axis)?;
    let (shape, dtype) = x.known()?;
    let whole = sorted(call, x, axis, None, false, Sorted::Values)?;
    // As in `quantile`.
    let wide = if between.is_one() { dtype.compute() } else { DType::F64 };
    let last = (x.isnan().logical_not().count_nonzero_keepdim(axis) - 1).maximum(0).cast(wide);
    // The quantiles of a list are along an axis before all others.
    let (whole, rank, own) = match (q.is_list, &q.numbers[..]) {
        (false, &[q]) => (whole, last * q, own),
        _ => {
            let numbers = outer(&beside(call, x, q.numbers.clone())?, shape.rank()).cast(wide);
            (whole.unsqueeze(0), last.unsqueeze(0) * numbers, own + 1)
        }
    };
    let element = |rank: &Tensor| taken_along(&whole, &rank.cast(DType::I64), own as isize);
    let found = match between {
        QuantileBetween::Lower => element(&rank.floor()),
        QuantileBetween::Higher => element(&rank.ceil()),
        QuantileBetween::Nearest => element(&rank.round()),
        QuantileBetween::Midpoint => element(&rank.floor()).lerp(element(&rank.ceil()), 0.5),
        QuantileBetween::Linear => {
            let below = rank.floor();
            let [low, high] = [&below, &rank.ceil()].map(element);
            low.lerp(&high, &(&rank - &below).cast(dtype))
        }
    };
    Ok(found.squeeze(own as isize))
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
    use crate::Device;
    use crate::tensor::tests::{mistake, recorded};

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
        assert_eq!(shape(x.quantile_keepdim([0.5, 0.1], [2, 0])), Shape::from([2, 1, 4, 1]));
        assert_eq!(shape(x.nanquantile_keepdim(0.5, ..)), Shape::from([1, 1, 1]));
    }

    #[test]
    fn several_axes_are_one_row() {
        let x = Tensor::from_vec((0..24).map(|n| (n * 7 % 24) as f32).collect(), [2, 3, 4]);
        let x = x.to(&Device::interpreter());
        let rows = x.transpose(0, 1).reshape([3, 8]);
        let (value, place) = x.median([2, 0]);
        assert_eq!(value.to_string(), rows.median(1).0.to_string());
        assert_eq!(place.to_vec::<i64>().unwrap(), rows.median(1).1.to_vec::<i64>().unwrap());
        assert_eq!(x.quantile(0.3, [0, -1]).to_string(), rows.quantile(0.3, 1).to_string());
        assert_eq!(x.median(..).0.item::<f32>().unwrap(), 11.0);
        assert_eq!(x.median(Vec::<isize>::new()).0.to_string(), x.to_string());
        // Halfway between two elements, the one at an even position is nearest.
        let row = Tensor::arange(0.0f32, 6.0, 1.0).to(&Device::interpreter());
        let nearest = row.quantile_with([0.1, 0.3, 0.5, 0.7, 0.9], 0, QuantileBetween::Nearest);
        assert_eq!(nearest.to_vec::<f32>().unwrap(), [0.0, 2.0, 2.0, 4.0, 4.0]);
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
