//! `ndarray` arrays both ways.

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use crate::runtime::host;
use crate::{Element, Result, Tensor};

/// A copy of the array's elements, row-major; the array may have any strides.
///
/// ```
/// use lazuli::Tensor;
/// let array = ndarray::arr2(&[[1.0f32, 2.0], [3.0, 4.0]]);
/// let x = Tensor::from(&array.t());
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
/// assert_eq!(x.t().to_ndarray::<f32>()?, array.into_dyn());
/// # Ok::<(), lazuli::Error>(())
/// ```
impl<T: Element, S: Data<Elem = T>, D: Dimension> From<&ArrayBase<S, D>> for Tensor {
    #[track_caller]
    fn from(array: &ArrayBase<S, D>) -> Tensor {
        match host::collect(array.iter().copied()) {
            Ok(elements) => Tensor::from_vec(elements, array.shape()),
            Err(error) => Tensor::invalid(error),
        }
    }
}

impl Tensor {
    /// The values as an `ndarray` array, computed if they are not there yet. Needs the feature `ndarray`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// let array = (x * 10).to_ndarray::<i32>()?;
    /// assert_eq!(array[[1, 2]], 50);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let (shape, elements) = (self.shape()?, self.to_vec::<T>()?);
        let error = |error: ndarray::ShapeError| crate::Error::internal("to_ndarray", error.to_string());
        ArrayD::from_shape_vec(IxDyn(&shape), elements).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, f16};

    #[test]
    fn arrays_go_there_and_back() {
        let array = ndarray::Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64);
        let x = Tensor::from(&array.slice(ndarray::s![.., ..;-1, 1..]));
        assert_eq!(x.shape().unwrap().to_vec(), [2, 3, 3]);
        assert_eq!(x.to_vec::<i64>().unwrap()[..3], [21, 22, 23]);
        assert_eq!(x.to_ndarray::<i64>().unwrap()[[1, 2, 0]], 101);
        assert_eq!(Tensor::from(&ndarray::arr0(f16::ONE)).dtype().unwrap(), DType::F16);
        let none = Tensor::from(&ndarray::Array2::<bool>::default((0, 2)));
        assert_eq!(none.to_ndarray::<bool>().unwrap().shape(), [0, 2]);
        let error = x.to_ndarray::<f32>().unwrap_err().to_string();
        assert!(
            error.starts_with("to_vec: the tensor is i64 [2, 3, 3], not f32; convert it with .cast("),
            "{error}"
        );
    }
}
