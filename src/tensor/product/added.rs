//! PyTorch's further products that are added to what is there.

use super::matmul::{added, has_ranks, same_batches};
use crate::tensor::arguments::call::Call;
use crate::{Number, Tensor};

impl Tensor {
    /// `beta * self + alpha * (matrix @ vector)`, as [`Tensor::addmm`] of a matrix and a vector. PyTorch's `addmv`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (m, v) = (Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), Tensor::from([1.0f32, 1.0]));
    /// assert_eq!(v.addmv(&m, &v, 1.0, 2.0).to_vec::<f32>()?, [7.0, 15.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn addmv(
        &self,
        matrix: impl AsRef<Tensor>,
        vector: impl AsRef<Tensor>,
        beta: impl Into<Number>,
        alpha: impl Into<Number>,
    ) -> Tensor {
        let (matrix, vector) = (matrix.as_ref(), vector.as_ref());
        let (call, factors) = (Call::here("addmv"), [beta.into(), alpha.into()]);
        call.composed(|| {
            has_ranks(call, [matrix, vector], [2, 1])?;
            added(call, self, [matrix, vector], factors)
        })
    }

    /// `beta * self + alpha * (a ⊗ b)` of two vectors, whose outer product has the first one's elements along its rows: as
    /// [`Tensor::addmm`]. PyTorch's `addr`, of numbers.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0]));
    /// assert_eq!(Tensor::scalar(1.0f32).addr(&a, &b, 10.0, 1.0).to_vec::<f32>()?, [13.0, 14.0, 16.0, 18.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn addr(
        &self,
        a: impl AsRef<Tensor>,
        b: impl AsRef<Tensor>,
        beta: impl Into<Number>,
        alpha: impl Into<Number>,
    ) -> Tensor {
        let (a, b) = (a.as_ref(), b.as_ref());
        let (call, factors) = (Call::here("addr"), [beta.into(), alpha.into()]);
        call.composed(|| {
            has_ranks(call, [a, b], [1, 1])?;
            added(call, self, [&a.unsqueeze(1), &b.unsqueeze(0)], factors)
        })
    }

    /// `beta * self + alpha * Σ (a[i] @ b[i])` over a batch of matrices, as [`Tensor::addmm`]; as one product. PyTorch's `addbmm`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let a = Tensor::ones([4, 2, 3], DType::F32);
    /// let sum = Tensor::zeros([2, 2], DType::F32).addbmm(&a, a.transpose(1, 2), 1.0, 1.0);
    /// assert_eq!(sum.to_vec::<f32>()?, [12.0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn addbmm(
        &self,
        a: impl AsRef<Tensor>,
        b: impl AsRef<Tensor>,
        beta: impl Into<Number>,
        alpha: impl Into<Number>,
    ) -> Tensor {
        let (a, b) = (a.as_ref(), b.as_ref());
        let (call, factors) = (Call::here("addbmm"), [beta.into(), alpha.into()]);
        call.composed(|| {
            has_ranks(call, [a, b], [3, 3])?;
            same_batches(call, a, b)?;
            let ((of_a, _), (of_b, _)) = (a.known()?, b.known()?);
            if of_a[2] != of_b[1] {
                return call
                    .fail(format!("shapes {of_a} and {of_b} do not fit: {} terms and {}", of_a[2], of_b[1]));
            }
            // A sum over the batch and the terms of each.
            let rows = a.transpose(0, 1).reshape([of_a[1], of_a[0] * of_a[2]]);
            let columns = b.reshape([of_b[0] * of_b[1], of_b[2]]);
            added(call, self, [&rows, &columns], factors)
        })
    }
}
