//! Answers about two tensors as a whole.

use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::result_type;
use crate::{Operand, Result, Tensor};

impl Tensor {
    /// Whether all elements are close to another tensor's: whether [`Tensor::isclose`] holds everywhere. PyTorch's and NumPy's
    /// `allclose`; their `rtol` is 1e-5, their `atol` 1e-8.
    ///
    /// **Evaluates** the answer; an error for what [`Tensor::isclose`] is invalid for.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// assert!(x.allclose(&x * 1.000001, 1e-5, 1e-8, false)?);
    /// assert!(!x.allclose(1.5, 1e-5, 1e-8, false)?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn allclose(&self, other: impl Into<Operand>, rtol: f64, atol: f64, equal_nan: bool) -> Result<bool> {
        let (call, other) = (Call::here("allclose"), other.into());
        call.compose(|| self.isclose(other, rtol, atol, equal_nan).all(..).item())
    }

    /// Whether another tensor has the same shape and equal elements, in the dtype to which both are promoted; NaN equals nothing.
    /// PyTorch's `equal`, NumPy's `array_equal`. For each element see [`Tensor::eq`].
    ///
    /// **Evaluates** the answer, if the shapes are the same.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], [2]);
    /// assert!(x.equal(&Tensor::from_slice(&[1.0f32, 2.0], [2]))?);
    /// assert!(!x.equal(&x.reshape([1, 2]))?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn equal(&self, other: impl AsRef<Tensor>) -> Result<bool> {
        let (call, other) = (Call::here("equal"), other.as_ref());
        call.compose(|| match self.known()?.0 == other.known()?.0 {
            true => self.eq(other).all(..).item(),
            false => Ok(false),
        })
    }

    /// The p-norm of the difference from another tensor: a 0-d tensor. In the promoted dtype, which must be a float; shapes broadcast.
    /// PyTorch's `dist`, whose `p` is 2.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from([1.0f32, 1.0]), Tensor::from([4.0f32, 5.0]));
    /// assert_eq!(x.dist(&y, 2.0).item::<f32>()?, 5.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn dist(&self, other: impl AsRef<Tensor>, p: f64) -> Tensor {
        let (call, other) = (Call::here("dist"), other.as_ref());
        call.composed(|| {
            let dtype = result_type(&[self.into(), other.into()])?;
            let wide = |x: &Tensor| x.cast(dtype.compute());
            Ok((wide(self) - wide(other)).norm(.., p).cast(dtype))
        })
    }
}
