//! Reductions and running sums that pass over NaN, as NumPy's of these names and pandas' of all names do. Integers and bools
//! have none: of these they are the plain ones.

use super::statistics::{composed_reduction_methods, root, widened, without};
use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

composed_reduction_methods! {
    /// The sum along the axes of what is not NaN; dtypes as by [`Tensor::sum`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 2.0], [3]);
    /// assert_eq!(x.nansum(..).to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nansum, nansum_keepdim = nansum;
    /// The mean along the axes of what is not NaN, NaN of nothing. Keeps the dtype.
    ///
    /// Invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 2.0], [3]);
    /// assert_eq!(x.nanmean(..).to_vec::<f32>()?, [1.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanmean, nanmean_keepdim = nanmean;
    /// The product along the axes of what is not NaN, 1 of nothing; dtypes as by [`Tensor::prod`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2.0f32, f32::NAN, 3.0], [3]);
    /// assert_eq!(x.nanprod(..).to_vec::<f32>()?, [6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanprod, nanprod_keepdim = nanprod;
    /// The smallest element along the axes that is not NaN; NaN where all are. Keeps the dtype.
    ///
    /// Invalid for an axis out of range, given twice, or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, f32::NAN, 1.0], [3]);
    /// assert_eq!(x.nanmin(..).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanmin, nanmin_keepdim = nanmin;
    /// The largest element along the axes that is not NaN; NaN where all are. Keeps the dtype.
    ///
    /// Invalid for an axis out of range, given twice, or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, f32::NAN, 1.0], [3]);
    /// assert_eq!(x.nanmax(..).item::<f32>()?, 3.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanmax, nanmax_keepdim = nanmax;
    /// The variance along the axes of what is not NaN, whose number less the correction divides: see [`Tensor::var`]. NaN where
    /// no more numbers are there than the correction, as in NumPy. Keeps the dtype.
    ///
    /// Invalid for integers and bools, and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 3.0], [3]);
    /// assert_eq!(x.nanvar(.., 1).item::<f32>()?, 2.0);
    /// assert_eq!(x.nanvar(.., 0).item::<f32>()?, 1.0);
    /// assert!(x.nanvar(.., 2).item::<f32>()?.is_nan());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanvar, nanvar_keepdim = nanvar, correction: usize = 1;
    /// The standard deviation along the axes of what is not NaN: the square root of [`Tensor::nanvar`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 5.0], [3]);
    /// assert_eq!(x.nanstd(.., 0).item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanstd, nanstd_keepdim = nanstd, correction: usize = 1;
    /// The index of the smallest element along the axes that is not NaN, the first of equal ones: `I64`, counted as by
    /// [`Tensor::argmin`]. 0 where all are NaN, as there; NumPy raises an error.
    ///
    /// Invalid along an axis of extent 0, for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 5.0, 2.0], [3]);
    /// assert_eq!((x.nanargmin(0).item::<i64>()?, x.argmin(0).item::<i64>()?), (2, 0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanargmin, nanargmin_keepdim = nanargmin;
    /// The index of the largest element along the axes that is not NaN, the first of equal ones: `I64`, counted as by
    /// [`Tensor::argmax`]. 0 where all are NaN, as there; NumPy raises an error.
    ///
    /// Invalid along an axis of extent 0, for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 5.0, 2.0], [3]);
    /// assert_eq!(x.nanargmax(0).item::<i64>()?, 1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    nanargmax, nanargmax_keepdim = nanargmax;
}

impl Tensor {
    /// The sums along the axis up to each element of what is not NaN; dtypes as by [`Tensor::cumsum`].
    ///
    /// Invalid for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 1.0, f32::NAN, 2.0], [4]);
    /// assert_eq!(x.nancumsum(0).to_vec::<f32>()?, [0.0, 1.0, 1.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nancumsum(&self, axis: isize) -> Tensor {
        let call = Call::here("nancumsum");
        call.composed(|| Ok(replaced(self, 0.0)?.cumsum(axis)))
    }

    /// The products along the axis up to each element of what is not NaN; dtypes as by [`Tensor::cumprod`].
    ///
    /// Invalid for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 2.0, f32::NAN, 3.0], [4]);
    /// assert_eq!(x.nancumprod(0).to_vec::<f32>()?, [1.0, 2.0, 2.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nancumprod(&self, axis: isize) -> Tensor {
        let call = Call::here("nancumprod");
        call.composed(|| Ok(replaced(self, 1.0)?.cumprod(axis)))
    }
}

/// The tensor with a number in the place of each NaN.
fn replaced(x: &Tensor, number: f64) -> Result<Tensor> {
    Ok(if x.known()?.1.is_float() { x.isnan().where_(number, x) } else { x.clone() })
}

fn nansum(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    call.axes(axes, shape)?;
    Ok(match dtype.is_float() {
        true => x.isnan().where_(x.zeros_like(), x).sum_keepdim(axes.clone()),
        false => x.sum_keepdim(axes.clone()),
    })
}

fn nanmean(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    call.needs_float(x)?;
    let numbers = x.isnan().logical_not();
    widened(x, |x| {
        let sum = numbers.where_(x, x.zeros_like()).sum_keepdim(axes.clone());
        sum / numbers.cast(x.node.dtype).sum_keepdim(axes.clone())
    })
}

fn nanprod(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    call.axes(axes, x.known()?.0)?;
    Ok(replaced(x, 1.0)?.prod_keepdim(axes.clone()))
}

fn nanmin(_: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    Ok(match x.known()?.1.is_float() {
        true => extremes(x, axes)?.0,
        false => x.min_keepdim(axes.clone()),
    })
}

fn nanmax(_: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    Ok(match x.known()?.1.is_float() {
        true => extremes(x, axes)?.1,
        false => x.max_keepdim(axes.clone()),
    })
}

/// The smallest and the largest number, NaN where there is none: only there the one is above the other.
fn extremes(x: &Tensor, axes: &Axes) -> Result<(Tensor, Tensor)> {
    let least = replaced(x, f64::INFINITY)?.min_keepdim(axes.clone());
    let most = replaced(x, f64::NEG_INFINITY)?.max_keepdim(axes.clone());
    let is_none = least.gt(&most);
    Ok((is_none.where_(f64::NAN, least), is_none.where_(f64::NAN, most)))
}

fn nanvar(call: Call, x: &Tensor, axes: &Axes, correction: usize) -> Result<Tensor> {
    call.needs_float(x)?;
    let numbers = x.isnan().logical_not();
    widened(x, |x| {
        let count = numbers.cast(x.node.dtype).sum_keepdim(axes.clone());
        let mean = numbers.where_(x, x.zeros_like()).sum_keepdim(axes.clone()) / &count;
        let deviations = numbers.where_(x - mean, x.zeros_like());
        let divisor = count - correction as f64;
        divisor.gt(0.0).where_(deviations.square().sum_keepdim(axes.clone()) / &divisor, f64::NAN)
    })
}

fn nanstd(call: Call, x: &Tensor, axes: &Axes, correction: usize) -> Result<Tensor> {
    widened(x, |x| {
        Tensor::or_invalid(nanvar(call, x, axes, correction).and_then(|variance| root(call, &variance)))
    })
}

fn nanargmin(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    Ok(match x.known()?.1.is_float() {
        true => first_of(x, &nanmin(call, x, axes)?, axes),
        false => x.argmin_keepdim(axes.clone()),
    })
}

fn nanargmax(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    Ok(match x.known()?.1.is_float() {
        true => first_of(x, &nanmax(call, x, axes)?, axes),
        false => x.argmax_keepdim(axes.clone()),
    })
}

/// Where the extreme is first. (Of elements with infinities for NaN, the extreme would be first at a NaN before an infinity.)
fn first_of(x: &Tensor, extreme: &Tensor, axes: &Axes) -> Tensor {
    x.eq(extreme).cast(x.node.dtype).argmax_keepdim(axes.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Device, Shape};

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    #[track_caller]
    fn assert_same(what: &str, got: &Tensor, expected: &[f64]) {
        let got = got.to(&Device::interpreter()).cast(DType::F64).to_vec::<f64>().unwrap();
        let is_same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 || a == b || a.is_nan() && b.is_nan();
        assert!(got.len() == expected.len() && got.iter().zip(expected).all(is_same), "{what}: {got:?}");
    }

    /// What NumPy's functions give for these rows, but for positions among NaN alone, and beside infinities for it.
    #[test]
    fn special_rows_are_numpys() {
        let rows = [
            [NAN, 1.0, 2.0],
            [INF, 1.0, -INF],
            [-INF, -INF, -INF],
            [0.0, -0.0, 0.0],
            [NAN, NAN, NAN],
            [INF, INF, 1.0],
            [NAN, INF, INF],
            [NAN, -INF, NAN],
            [4.0, NAN, 1.0],
        ];
        let x = Tensor::from_slice(rows.as_flattened(), [9, 3]);
        assert_same("min", &x.nanmin(1), &[1.0, -INF, -INF, 0.0, NAN, 1.0, INF, -INF, 1.0]);
        assert_same("max", &x.nanmax(-1), &[2.0, INF, -INF, 0.0, NAN, INF, INF, -INF, 4.0]);
        assert_same("prod", &x.nanprod(1), &[2.0, -INF, -INF, 0.0, 1.0, INF, INF, -INF, 4.0]);
        assert_same("var 0", &x.nanvar(1, 0), &[0.25, NAN, NAN, 0.0, NAN, NAN, NAN, NAN, 2.25]);
        assert_same("var 1", &x.nanvar(1, 1), &[0.5, NAN, NAN, 0.0, NAN, NAN, NAN, NAN, 4.5]);
        assert_same("var 2", &x.nanvar(1, 2), &[NAN, NAN, NAN, 0.0, NAN, NAN, NAN, NAN, NAN]);
        assert_same("std", &x.nanstd(1, 0), &[0.5, NAN, NAN, 0.0, NAN, NAN, NAN, NAN, 1.5]);
        assert_same("argmin", &x.nanargmin(1), &[1.0, 2.0, 0.0, 0.0, 0.0, 2.0, 1.0, 1.0, 2.0]);
        assert_same("argmax", &x.nanargmax(1), &[2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    }

    /// Of numbers and where they are.
    type Of<'a> = &'a dyn Fn(&[(usize, f64)]) -> f64;

    #[test]
    fn along_several_axes_against_loops() {
        let values: Vec<f64> =
            (0..4 * 5 * 7).map(|n| if n % 3 == 1 { NAN } else { ((n * 37) % 101) as f64 - 50.0 }).collect();
        let x = Tensor::from_slice(&values, [4, 5, 7]);
        // The numbers of the middle position m, and where they are among the 28 of the other axes.
        let numbers = |m: usize| -> Vec<(usize, f64)> {
            let all = (0..28).map(|i| (i, values[i / 7 * 35 + m * 7 + i % 7]));
            all.filter(|(_, value)| !value.is_nan()).collect()
        };
        let each = |f: Of| (0..5).map(|m| f(&numbers(m))).collect::<Vec<f64>>();
        let variance = |row: &[(usize, f64)], correction: f64| {
            let mean = row.iter().map(|(_, x)| x).sum::<f64>() / row.len() as f64;
            row.iter().map(|(_, x)| (x - mean).powi(2)).sum::<f64>() / (row.len() as f64 - correction)
        };
        let least =
            |row: &[(usize, f64)]| row.iter().copied().reduce(|a, b| if b.1 < a.1 { b } else { a }).unwrap();
        let most =
            |row: &[(usize, f64)]| row.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a }).unwrap();
        for correction in [0, 1, 5] {
            let expected = each(&|row| variance(row, correction as f64));
            let got = x.nanvar([0, 2], correction);
            let ratio = got / Tensor::from_slice(&expected, [5]);
            assert_same("variance over expected", &ratio, &[1.0; 5]);
        }
        assert_same("min", &x.nanmin([0, -1]), &each(&|row| least(row).1));
        assert_same("max", &x.nanmax([0, -1]), &each(&|row| most(row).1));
        assert_same("argmin", &x.nanargmin([2, 0]), &each(&|row| least(row).0 as f64));
        assert_same("argmax", &x.nanargmax([2, 0]), &each(&|row| most(row).0 as f64));
        for kept in [x.nanmin_keepdim([0, 2]), x.nanvar_keepdim([0, 2], 1), x.nanargmax_keepdim([0, 2])] {
            assert_eq!(kept.shape().unwrap(), Shape::from([1, 5, 1]));
        }
        // Two numbers, where the second moves a mean that is far away.
        let far = Tensor::from_slice(&[1e8, NAN, 1e8 + 1.0, NAN], [4]);
        assert_same("far from 0", &far.nanvar(.., 0), &[0.25]);
    }

    #[test]
    fn running_sums_and_products_go_on_over_nan() {
        let x = Tensor::from_slice(&[NAN, 2.0, NAN, 3.0, INF, -INF], [6]);
        assert_same("sums", &x.nancumsum(0), &[0.0, 2.0, 2.0, 5.0, INF, NAN]);
        assert_same("products", &x.nancumprod(-1), &[1.0, 2.0, 2.0, 6.0, INF, -INF]);
        let columns = x.slice(0, ..4).reshape([2, 2]);
        assert_same("sums of columns", &columns.nancumsum(0), &[0.0, 2.0, 0.0, 5.0]);
        let whole = Tensor::from_slice(&[3i32, 4, 5], [3]);
        assert_eq!(whole.nancumprod(0).to_vec::<i64>().unwrap(), [3, 12, 60]);
        assert_eq!(Tensor::zeros([0, 2], DType::F32).nancumsum(0).shape().unwrap(), Shape::from([0, 2]));
    }

    #[test]
    fn of_nothing_of_numbers_and_of_integers() {
        let none = Tensor::zeros([2, 0], DType::F64);
        assert_same("variance of nothing", &none.nanvar(1, 0), &[NAN, NAN]);
        assert_same("product of nothing", &none.nanprod(1), &[1.0, 1.0]);
        assert_eq!(none.nanmin(0).shape().unwrap(), Shape::from([0]));
        assert!(none.nanmin(1).shape().is_err() && none.nanargmax(..).shape().is_err());
        for dtype in DType::ALL {
            let x = Tensor::from_slice(&[1u8, 0, 1, 1], [2, 2]).cast(dtype);
            assert_eq!(x.nanmax(1).to_string(), x.max(1).to_string());
            assert_eq!(x.nanprod(0).to_string(), x.prod(0).to_string());
            assert_eq!(x.nanargmin(..).to_string(), x.argmin(..).to_string());
            assert_eq!(x.nanvar(0, 1).dtype().ok(), dtype.is_float().then_some(dtype));
        }
        let one = Tensor::scalar(NAN);
        assert_same("0-d", &one.nanmin(0), &[NAN]);
        assert_same("0-d", &one.nanprod(..), &[1.0]);
        assert_same("0-d", &one.nanargmax(0), &[0.0]);
    }

    /// Sums and squares of 16-bit floats are beyond them, their variance is not.
    #[test]
    fn halves_are_rounded_once() {
        let x = Tensor::from_slice(&[300.0, NAN, 500.0, 400.0], [4]).cast(DType::F16);
        assert_same("variance", &x.nanvar(.., 1), &[10000.0]);
        assert_same("deviation", &x.nanstd(.., 1), &[100.0]);
    }
}
