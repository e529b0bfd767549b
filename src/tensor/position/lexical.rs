//! Orders by several keys, as words are in a dictionary, and the different positions of an axis.

use std::borrow::Borrow;

use super::found::Distinct;
use crate::tensor::arguments::call::Call;
use crate::tensor::view::join::borrowed;
use crate::{Result, Tensor};

impl Tensor {
    /// The order that sorts along an axis by several keys of one shape, of which the **last** comes first, as in NumPy's `lexsort`: where
    /// it is equal, the one before it decides, and at last the position. `I64` of the keys' shape; NaN comes last.
    ///
    /// Invalid for no keys, for keys of different shapes, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (first, last) = (Tensor::from([2, 1, 3, 1]), Tensor::from([7.0f32, 5.0, 5.0, 5.0]));
    /// assert_eq!(Tensor::lexsort([&first, &last], 0).to_vec::<i64>()?, [1, 3, 2, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lexsort<T: Borrow<Tensor>>(keys: impl AsRef<[T]>, axis: isize) -> Tensor {
        let (call, keys) = (Call::here("lexsort"), keys.as_ref());
        call.composed(|| {
            let keys = borrowed(keys);
            let Some(first) = keys.first() else { return call.fail("there is no key to sort by") };
            let shape = first.known()?.0;
            for key in &keys {
                let own = key.known()?.0;
                if own != shape {
                    return call.fail(format!("keys of shapes {shape} and {own}: they must be equal"));
                }
            }
            call.along(first, axis, |_, axis| Ok(order(&keys, axis as isize)))
        })
    }

    /// The different positions of an axis, in the order of their elements (row-major, as words are in a dictionary): of a matrix and axis 0
    /// its different rows. Those with NaN differ from all others. PyTorch's `torch.unique(x, dim=axis)`, NumPy's `unique` with an axis.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`]. There is a sort for each element of a position. An error for an axis
    /// out of range, and for positions without elements.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2, 1], [1, 3], [2, 1], [1, 2]]);
    /// assert_eq!(x.unique_dim(0)?.to_vec::<i32>()?, [1, 2, 1, 3, 2, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_dim(&self, axis: isize) -> Result<Tensor> {
        let call = Call::here("unique_dim");
        call.compose(|| Ok(different(call, self, axis)?.0))
    }

    /// [`Tensor::unique_dim`], where each position of the axis is among its results, and how often each of these occurs: `I64` vectors.
    /// PyTorch's `torch.unique` with a `dim`, `return_inverse` and `return_counts`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2, 1], [1, 3], [2, 1]]);
    /// let (rows, inverse, counts) = x.unique_dim_inverse_counts(0)?;
    /// assert_eq!(rows.to_vec::<i32>()?, [1, 3, 2, 1]);
    /// assert_eq!((inverse.to_vec::<i64>()?, counts.to_vec::<i64>()?), (vec![1, 0, 1], vec![1, 2]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_dim_inverse_counts(&self, axis: isize) -> Result<(Tensor, Tensor, Tensor)> {
        let call = Call::here("unique_dim_inverse_counts");
        call.compose(|| {
            let (values, distinct) = different(call, self, axis)?;
            Ok((values, distinct.inverse(), distinct.runs.lengths()))
        })
    }
}

/// The order by keys, of which there is one: stable sorts, the most important one last.
fn order(keys: &[&Tensor], axis: isize) -> Tensor {
    let of = |key: &Tensor| if key.node.shape.rank() == 0 { key.reshape([1]) } else { key.clone() };
    let mut order = keys
        .first()
        .map_or_else(|| Tensor::zeros([0], crate::DType::I64), |key| of(key).argsort(axis, false));
    for key in keys.iter().skip(1) {
        let next = of(key).gather(axis, &order).argsort(axis, false);
        order = order.gather(axis, &next);
    }
    order
}

fn different(call: Call, x: &Tensor, axis: isize) -> Result<(Tensor, Distinct)> {
    let (shape, dtype) = x.known()?;
    let own = call.axis(axis, shape)?;
    let count = shape[own];
    let width =
        shape.iter().enumerate().map(|(axis, &extent)| if axis == own { 1 } else { extent }).product();
    if width == 0 {
        return call
            .fail(format!("the positions along axis {own} of {dtype} {shape} have no elements to compare"));
    }
    let first = x.movedim(own as isize, 0);
    let rows = first.reshape([count, width]);
    let columns: Vec<Tensor> = (0..width).rev().map(|column| rows.select(1, column as isize)).collect();
    let order = order(&borrowed(&columns), 0);
    let distinct = Distinct::ordered(call, &rows.index_select(0, &order), order)?;
    let values = distinct.values();
    let found = values.known()?.0[0];
    let values = values.reshape(first.known()?.0.with_extent(0, found)).movedim(0, own as isize);
    values.validity()?;
    Ok((values, distinct))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device, Shape};

    fn here(x: Tensor) -> Tensor {
        x.to(&Device::interpreter())
    }

    #[test]
    fn rows_are_in_order_of_their_elements() {
        let rows = [[3i64, 0, 1], [1, 2, 0], [3, 0, 0], [1, 2, 0], [0, 9, 9], [3, 0, 1], [3, 0, 1]];
        let x = here(Tensor::from(rows));
        let (values, inverse, counts) = x.unique_dim_inverse_counts(0).unwrap();
        let mut expected = rows.to_vec();
        expected.sort();
        expected.dedup();
        assert_eq!(values.to_vec::<i64>().unwrap(), expected.concat());
        assert_eq!(counts.to_vec::<i64>().unwrap(), [1, 2, 1, 3]);
        assert_eq!(inverse.to_vec::<i64>().unwrap(), [3, 1, 2, 1, 0, 3, 3]);
        assert_eq!(x.t().unique_dim(-1).unwrap().t().to_vec::<i64>().unwrap(), expected.concat());
        let cube = x.reshape([7, 3, 1]).expand([7, 3, 2]);
        assert_eq!(cube.unique_dim(0).unwrap().shape().unwrap(), Shape::from([4, 3, 2]));
        assert_eq!(x.slice(0, ..0).unique_dim(0).unwrap().shape().unwrap(), Shape::from([0, 3]));
        let nan = here(Tensor::from([[1.0f32, f32::NAN], [1.0, f32::NAN], [1.0, -0.0], [1.0, 0.0]]));
        assert_eq!(nan.unique_dim_inverse_counts(0).unwrap().2.to_vec::<i64>().unwrap(), [2, 1, 1]);
        let error = Tensor::zeros([3, 0], DType::F32).unique_dim(0).unwrap_err().to_string();
        assert!(
            error
                .contains("unique_dim: the positions along axis 0 of f32 [3, 0] have no elements to compare"),
            "{error}"
        );
    }

    #[test]
    fn the_last_key_comes_first() {
        let (a, b) = (
            here(Tensor::from([[1, 0, 1, 0], [5, 5, 5, 4]])),
            here(Tensor::from([[2, 2, 1, 1], [0, 0, 0, 0]])),
        );
        let order = Tensor::lexsort([&a, &b], -1);
        assert_eq!(order.to_vec::<i64>().unwrap(), [3, 2, 1, 0, 3, 0, 1, 2]);
        assert_eq!(Tensor::lexsort([&a], 0).to_vec::<i64>().unwrap(), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(Tensor::lexsort([here(Tensor::scalar(3))], 0).item::<i64>().unwrap(), 0);
        mistake!(Tensor::lexsort::<Tensor>([], 0), "lexsort: there is no key to sort by");
        mistake!(
            Tensor::lexsort([&a, &b.slice(1, 1..)], 0),
            "lexsort: keys of shapes [2, 4] and [2, 3]: they must be equal"
        );
    }
}
