//! Questions about the shape that have PyTorch's names. As [`Tensor::shape`], they answer with the error of an invalid tensor.

use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

impl Tensor {
    /// How many elements there are.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::zeros([2, 3], DType::F32).numel()?, 6);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in its history, if the tensor is invalid.
    pub fn numel(&self) -> Result<usize> {
        Ok(self.known()?.0.elements())
    }

    /// The number of dimensions.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::zeros([2, 3], DType::F32).ndim()?, 2);
    /// assert_eq!(Tensor::scalar(1.0).ndim()?, 0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in its history, if the tensor is invalid.
    pub fn ndim(&self) -> Result<usize> {
        Ok(self.known()?.0.rank())
    }

    /// The extent of one axis.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F32);
    /// assert_eq!((x.size(0)?, x.size(-1)?), (2, 3));
    /// assert!(x.size(2).unwrap_err().to_string().starts_with("size: axis 2 is out of range for shape [2, 3]"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in its history, if the tensor is invalid; an axis out of range.
    #[track_caller]
    pub fn size(&self, axis: isize) -> Result<usize> {
        let (shape, _) = self.known()?;
        Ok(shape[Call::here("size").axis(axis, shape)?])
    }
}
