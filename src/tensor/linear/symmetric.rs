//! Eigenvalues and eigenvectors of symmetric matrices.

use super::adjoint::{of_eigenvalues, of_eigenvectors};
use super::parts::{row_numbers, swapped};
use super::qr::qr;
use super::tridiagonal::Tridiagonal;
use super::{routine, square};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{Result, Tensor};

impl Tensor {
    /// The eigenvalues of a symmetric matrix, or of each of a batch, in `F32` or `F64`, in ascending order. Only the lower triangle is
    /// read. PyTorch's `torch.linalg.eigvalsh`.
    ///
    /// By a tridiagonal matrix that has the same ones, and intervals that are halved: each is within some roundings of the
    /// greatest in magnitude. Invalid unless the last two dimensions are equal.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let values = Tensor::from([[2.0f64, 1.0], [1.0, 2.0]]).eigvalsh().to_vec::<f64>()?;
    /// assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn eigvalsh(&self) -> Tensor {
        let call = Call::here("eigvalsh");
        call.composed(|| Ok(eigen(call, self, false)?.0))
    }

    /// The eigenvalues of a symmetric matrix in ascending order, as by [`Tensor::eigvalsh`], and a matrix with an eigenvector for
    /// each as a column: they are orthonormal, and each may have either sign. PyTorch's `torch.linalg.eigh`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2.0f64, 1.0], [1.0, 2.0]]);
    /// let (values, vectors) = x.eigh();
    /// let same = (&vectors * &values).matmul(vectors.t());
    /// assert!((same - x).abs().max(..).item::<f64>()? < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn eigh(&self) -> (Tensor, Tensor) {
        let call = Call::here("eigh");
        match call.compose(|| eigen(call, self, true)) {
            Ok(parts) => parts,
            Err(error) => (Tensor::invalid(error.clone()), Tensor::invalid(error)),
        }
    }
}

/// The eigenvalues, and the vectors if they are asked for.
fn eigen(call: Call, x: &Tensor, with_vectors: bool) -> Result<(Tensor, Tensor)> {
    let of = square(call, x)?;
    let n = of.rows;
    if n < 2 {
        return Ok((x.diagonal(0, -2, -1), if n == 0 { x.clone() } else { x.ones_like() + x * 0.0 }));
    }
    let (values, vectors) = match routine::takes(x) {
        true => {
            let routine = if with_vectors { Routine::Eigenvectors } else { Routine::Eigenvalues };
            let decomposition = move |x: &[Tensor]| {
                let (values, vectors) = decomposed(call, &x[0], with_vectors)?;
                Ok([values].into_iter().chain(with_vectors.then_some(vectors)).collect())
            };
            let made = routine::record(call, routine, &[x], decomposition)?;
            match (made.first(), made.last()) {
                (Some(values), Some(last)) => (values.clone(), last.clone()),
                _ => return call.fail("has no eigenvalues"),
            }
        }
        false => decomposed(call, x, with_vectors)?,
    };
    let values = call.derived(&values, &[x], |g, all| of_eigenvalues(g, &all[1]));
    Ok((values, call.derived(&vectors, &[x], |g, all| of_eigenvectors(g, &all[1]))))
}

/// Of two rows and more.
fn decomposed(call: Call, x: &Tensor, with_vectors: bool) -> Result<(Tensor, Tensor)> {
    let n = square(call, x)?.rows;
    let x = row_numbers(n).ge(counting(n)).where_(x, swapped(x));
    // A power of two, so that squares are in range.
    let greatest = x.abs().max_keepdim([-2, -1]);
    let scale = greatest.eq(0.0).where_(1.0, greatest.log2().floor().exp2());
    let (tridiagonal, basis) = Tridiagonal::of(&(x / &scale), n);
    let values = tridiagonal.eigenvalues(0);
    let vectors = match with_vectors {
        true => swapped(&basis).matmul(qr(call, &tridiagonal.vectors(call, &values)?)?.0),
        false => basis,
    };
    let values = values * scale.squeeze(-1);
    values.validity()?;
    vectors.validity()?;
    Ok((values, vectors))
}
