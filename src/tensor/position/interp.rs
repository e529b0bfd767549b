//! Places between edges that ascend: linear interpolation between points, and counts of what is in each part.

use super::gather::looked_up;
use super::scatter::counted;
use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::Rule;
use crate::{DType, Operand, Result, Tensor};

impl Tensor {
    /// Linear interpolation between points: at each element the value between those of the neighbouring `xs`, and beyond their ends that of
    /// the first or the last. `xs` ascend, `values` are as many, both with one dimension; of equal `xs` the last one counts. In the
    /// promoted dtype, `F32` for integers and bools; NaN for NaN. NumPy's `interp`.
    ///
    /// Invalid for no points, and for `xs` and `values` of different lengths or of other dimensions than one.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (xs, values) = (Tensor::from([0.0f32, 1.0, 3.0]), Tensor::from([10.0f32, 20.0, 0.0]));
    /// let x = Tensor::from([-1.0f32, 0.5, 1.0, 2.0, 9.0]);
    /// assert_eq!(x.interp(&xs, &values).to_vec::<f32>()?, [10.0, 15.0, 20.0, 10.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn interp(&self, xs: impl AsRef<Tensor>, values: impl AsRef<Tensor>) -> Tensor {
        let call = Call::here("interp");
        call.composed(|| interp(call, [self, xs.as_ref(), values.as_ref()], [None, None]))
    }

    /// [`Tensor::interp`] with other values below the first and above the last of `xs`, where they are given. NumPy's `interp` with `left`
    /// and `right`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (xs, values) = (Tensor::from([0.0f32, 1.0]), Tensor::from([10.0f32, 20.0]));
    /// let x = Tensor::from([-1.0f32, 0.5, 9.0]);
    /// let known = x.interp_with(&xs, &values, Some(f64::NAN), None).to_vec::<f32>()?;
    /// assert!(known[0].is_nan() && known[1..] == [15.0, 20.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn interp_with(
        &self,
        xs: impl AsRef<Tensor>,
        values: impl AsRef<Tensor>,
        left: Option<f64>,
        right: Option<f64>,
    ) -> Tensor {
        let call = Call::here("interp_with");
        call.composed(|| interp(call, [self, xs.as_ref(), values.as_ref()], [left, right]))
    }

    /// How many elements are in each part between `edges`, which ascend, one fewer than these; or the sums of their `weights`. An edge
    /// belongs to the part behind it, and the last one to the last part; what is beyond, and NaN, does not count. In the tensor's
    /// float dtype. PyTorch's and NumPy's `histogram` with edges; for equal parts see [`Tensor::histc`], and for a density divide by
    /// `counts.sum(0) * edges.diff(0)`.
    ///
    /// Invalid for integers and bools, for edges that are not two or more with one dimension, and for weights of another shape or dtype.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, edges) = (Tensor::from([0.5f32, 1.0, 1.5, 4.0, 9.0]), Tensor::from([0.0f32, 1.0, 4.0]));
    /// assert_eq!(x.histogram(&edges, None).to_vec::<f32>()?, [1.0, 3.0]);
    /// let weights = Tensor::from([0.25f32, 1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(x.histogram(&edges, Some(&weights)).to_vec::<f32>()?, [0.25, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn histogram(&self, edges: impl AsRef<Tensor>, weights: Option<&Tensor>) -> Tensor {
        let (call, edges) = (Call::here("histogram"), edges.as_ref());
        call.composed(|| {
            call.needs_float(self)?;
            let ((shape, dtype), (own, own_dtype)) = (self.known()?, edges.known()?);
            let bins = match own[..] {
                [count] if count > 1 => count - 1,
                _ => {
                    return call
                        .fail(format!("needs two edges or more with one dimension, got {own_dtype} {own}"));
                }
            };
            if let Some((of, of_dtype)) = weights.map(Tensor::known).transpose()?
                && (of != shape || of_dtype != dtype)
            {
                return call.fail(format!("the weights must be {dtype} {shape}, got {of_dtype} {of}"));
            }
            let x = self.ravel();
            let (first, last) = (edges.slice(0, ..1), edges.slice(0, -1..));
            let is_in = x.ge(first) & x.le(last);
            // The last edge is within the last part.
            let place = (edges.searchsorted(&x, true) - 1).minimum(bins as i64 - 1);
            // 16 bits could not count.
            let weights = match weights {
                Some(weights) => is_in.where_(weights.ravel().cast(dtype.compute()), 0.0),
                None => is_in.cast(DType::I64),
            };
            Ok(counted(call, &is_in.where_(place, 0), bins, Some(weights))?.cast(dtype))
        })
    }
}

fn interp(call: Call, [x, xs, values]: [&Tensor; 3], beyond: [Option<f64>; 2]) -> Result<Tensor> {
    let dtype = Rule::Float.dtype(call, &[x, xs, values].map(Operand::from))?;
    let ((at, _), (of, _)) = (xs.known()?, values.known()?);
    let count = match at[..] {
        [count] if at == of && count > 0 => count,
        _ => {
            return call.fail(format!(
                "needs points, as many xs as values with one dimension, got shapes {at} and {of}"
            ));
        }
    };
    let [x, xs, values] = [x, xs, values].map(|tensor| tensor.cast(dtype.compute()));
    let ends = |line: &Tensor| [line.select(0, 0), line.select(0, -1)];
    let ([low, high], [first, last]) = (ends(&xs), ends(&values));
    let edge = |own: Tensor, beyond: Option<f64>| beyond.map_or(own.clone(), |number| own.full_like(number));
    let (left, right) = (edge(first, beyond[0]), edge(last.clone(), beyond[1]));
    let between = match count {
        1 => last.clone(),
        _ => {
            let next = xs.searchsorted(&x, true).clamp(1, count as i64 - 1);
            let before = &next - 1;
            let [x0, x1] = [looked_up(call, &xs, &before)?, looked_up(call, &xs, &next)?];
            let [y0, y1] = [looked_up(call, &values, &before)?, looked_up(call, &values, &next)?];
            // Where nothing is between them, no slope.
            let width = x1.gt(&x0).where_(&x1 - &x0, 1.0);
            &y0 + (y1 - &y0) / width * (&x - x0)
        }
    };
    let inside = x.eq(&high).where_(last, between);
    let result = x.lt(low).where_(left, x.gt(high).where_(right, inside));
    Ok(x.isnan().where_(&x, result).cast(dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn here(x: Tensor) -> Tensor {
        x.to(&Device::interpreter())
    }

    #[test]
    fn values_between_points() {
        let (xs, ys) =
            (here(Tensor::from([0.0f64, 1.0, 1.0, 4.0])), here(Tensor::from([1.0f64, 2.0, 8.0, 5.0])));
        let x = here(Tensor::from([[-9.0f64, 0.0, 0.25], [1.0, 2.5, 4.0]]));
        assert_eq!(x.interp(&xs, &ys).to_vec::<f64>().unwrap(), [1.0, 1.0, 1.25, 8.0, 6.5, 5.0]);
        let ends = here(Tensor::from([f64::NEG_INFINITY, f64::NAN, f64::INFINITY]));
        let values = ends.interp_with(&xs, &ys, Some(-1.0), Some(-2.0)).to_vec::<f64>().unwrap();
        assert!(values[0] == -1.0 && values[1].is_nan() && values[2] == -2.0, "{values:?}");
        let one = x.interp(xs.slice(0, 1..2), ys.slice(0, 1..2)).to_vec::<f64>().unwrap();
        assert_eq!(one, [2.0; 6]);
        let (dx, dy) = crate::grad(&x.interp(&xs, &ys).sum(..), &(x.clone(), ys.clone()));
        assert_eq!(dx.to_vec::<f64>().unwrap(), [0.0, 1.0, 1.0, -1.0, -1.0, 0.0]);
        assert_eq!(dy.to_vec::<f64>().unwrap(), [2.75, 0.25, 1.5, 1.5]);
        mistake!(
            x.interp(&xs, ys.slice(0, 1..)),
            "interp: needs points, as many xs as values with one dimension, got shapes [4] and [3]"
        );
    }

    #[test]
    fn counts_between_edges() {
        let x = here(Tensor::from([[0.0f32, 0.5, 2.0, 2.0], [f32::NAN, -0.5, 3.0, f32::INFINITY]]));
        let edges = here(Tensor::from([0.0f32, 0.5, 2.0, 2.5, 3.0]));
        assert_eq!(x.histogram(&edges, None).to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 1.0]);
        assert_eq!(x.slice(0, ..0).histogram(&edges, None).to_vec::<f32>().unwrap(), [0.0; 4]);
        let many = here(Tensor::full([5000], 1.0, DType::BF16));
        let counts = many.histogram(edges.cast(DType::BF16), None);
        assert_eq!(counts.cast(DType::F32).to_vec::<f32>().unwrap(), [0.0, 4992.0, 0.0, 0.0]);
        let sums = many.histogram(edges.cast(DType::BF16), Some(&many));
        assert_eq!(sums.cast(DType::F32).to_vec::<f32>().unwrap(), [0.0, 4992.0, 0.0, 0.0]);
        mistake!(
            x.histogram(edges.slice(0, ..1), None),
            "histogram: needs two edges or more with one dimension, got f32 [1]"
        );
    }
}
