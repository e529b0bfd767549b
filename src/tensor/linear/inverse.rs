//! Systems of equations, and inverses.

use super::adjoint::{of_inverse, of_solutions};
use super::elimination::{inverse, solved};
use super::parts::swapped;
use super::{right_hand_side, square, together};
use crate::tensor::arguments::call::Call;
use crate::{Shape, Tensor};

impl Tensor {
    /// `x` of `self @ x = b`, of square matrices in `F32` or `F64`. `b` is a matrix, a vector, or a batch: of vectors if it has the
    /// shape of this batch of matrices without its last dimension, else of matrices. Batches broadcast, and dtypes are promoted.
    /// PyTorch's `torch.linalg.solve`.
    ///
    /// By Gaussian elimination with rows exchanged. A singular matrix results in infinities or NaN: while it is recorded, nobody
    /// knows. Invalid unless the last two dimensions are equal, and those of `b` fit.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from([[0.0f32, 2.0], [4.0, 1.0]]);
    /// assert_eq!(a.solve(Tensor::from([6.0f32, 11.0])).to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn solve(&self, b: impl AsRef<Tensor>) -> Tensor {
        let b = b.as_ref();
        let call = Call::here("solve");
        call.composed(|| {
            let n = square(call, self)?.rows;
            let (b, is_vector) = right_hand_side(call, self, b, n)?;
            let [a, b] = together(call, self, &b)?;
            let width = b.node.shape.last().copied().unwrap_or(0);
            let x = if n == 0 { b.clone() } else { solved(call, &a, &b, n, width)? };
            let x = call.derived(&x, &[&a, &b], |g, all| of_solutions(g, &all[1], &all[0]));
            Ok(if is_vector { x.squeeze(-1) } else { x })
        })
    }

    /// `x` of `x @ self = b`, of square matrices in `F32` or `F64`, and of a matrix `b` or a batch of them; batches broadcast, and dtypes are
    /// promoted. PyTorch's `torch.linalg.solve` with `left=False`; see [`Tensor::solve`].
    ///
    /// Invalid unless the last two dimensions are equal, and the last one of `b` is that.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (a, b) = (Tensor::from([[0.0f32, 2.0], [4.0, 1.0]]), Tensor::from([[12.0f32, 7.0]]));
    /// assert_eq!(a.solve_right(&b).to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn solve_right(&self, b: impl AsRef<Tensor>) -> Tensor {
        let b = b.as_ref();
        let call = Call::here("solve_right");
        call.composed(|| {
            let n = square(call, self)?.rows;
            let (own, other) = (self.known()?.0, b.known()?.0);
            if other.rank() < 2 || other[other.rank() - 1] != n {
                return call.fail(format!("shapes {own} and {other} do not fit: the matrix has {n} columns"));
            }
            // As many dimensions as the matrices have are no batch of vectors.
            let one = vec![1; own.rank().saturating_sub(other.rank())];
            let b = b.reshape(one.into_iter().chain(other.iter().copied()).collect::<Shape>());
            Ok(swapped(&swapped(self).solve(swapped(&b))))
        })
    }

    /// The inverse of a square matrix, or of each of a batch, in `F32` or `F64`. PyTorch's `torch.linalg.inv`.
    ///
    /// A singular matrix results in infinities or NaN: while it is recorded, nobody knows. Invalid unless the last two dimensions
    /// are equal. What an inverse is multiplied with is had faster and more accurately by [`Tensor::solve`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from([[0.0f32, 2.0], [4.0, 0.0]]);
    /// assert_eq!(a.inv().to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn inv(&self) -> Tensor {
        let call = Call::here("inv");
        call.composed(|| {
            let n = square(call, self)?.rows;
            let inverse = if n == 0 { self.clone() } else { inverse(call, self, n)? };
            Ok(call.derived(&inverse, &[self], |g, all| of_inverse(g, &all[0])))
        })
    }
}
