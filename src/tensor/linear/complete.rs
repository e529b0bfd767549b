//! Factorisations whose orthonormal columns are a basis of the whole space.

use super::parts::swapped;
use super::qr::{complete, qr};
use super::singular::svd;
use super::{Matrices, matrices};
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

impl Tensor {
    /// [`Tensor::qr`] with as many columns as rows: from `[…, m, n]`, `[…, m, m]` and `[…, m, n]`. PyTorch's `torch.linalg.qr` with
    /// `mode="complete"`. With more rows than columns by kernels, also where a library makes [`Tensor::qr`].
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let (q, r) = Tensor::from([[3.0f64], [4.0]]).qr_complete();
    /// assert_eq!((q.shape()?, r.shape()?), (Shape::from([2, 2]), Shape::from([2, 1])));
    /// assert!((q.matmul(&r) - Tensor::from([[3.0f64], [4.0]])).abs().max(..).item::<f64>()? < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn qr_complete(&self) -> (Tensor, Tensor) {
        let call = Call::here("qr_complete");
        match call.compose(|| qr_complete(call, self)) {
            Ok(parts) => parts,
            Err(error) => (Tensor::invalid(error.clone()), Tensor::invalid(error)),
        }
    }

    /// [`Tensor::svd`] with whole bases: from `[…, m, n]`, with `k` the smaller of the two, `[…, m, m]`, `[…, k]` and `[…, n, n]`.
    /// PyTorch's `torch.linalg.svd` with `full_matrices=True`, its default. The columns and rows beyond `k` are some basis of what is
    /// left.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let (u, s, vh) = Tensor::from([[3.0f64], [4.0]]).svd_full();
    /// assert_eq!((u.shape()?, vh.shape()?), (Shape::from([2, 2]), Shape::from([1, 1])));
    /// assert!((s.item::<f64>()? - 5.0).abs() < 1e-14);
    /// assert!((u.matmul(u.t()) - Tensor::eye(2, lazuli::DType::F64)).abs().max(..).item::<f64>()? < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn svd_full(&self) -> (Tensor, Tensor, Tensor) {
        let call = Call::here("svd_full");
        let whole = || -> Result<(Tensor, Tensor, Tensor)> {
            let (u, s, vh) = svd(call, self)?;
            let u = completed(call, &u)?;
            let vh = swapped(&completed(call, &swapped(&vh))?);
            Ok((u, s, vh))
        };
        match call.compose(whole) {
            Ok(parts) => parts,
            Err(error) => {
                let invalid = || Tensor::invalid(error.clone());
                (invalid(), invalid(), invalid())
            }
        }
    }
}

fn qr_complete(call: Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let of = matrices(call, x)?;
    let Matrices { rows: m, columns: n, dtype, .. } = of;
    match n {
        _ if m <= n && m > 0 => qr(call, x),
        _ if m == 0 || n == 0 => {
            let q = Tensor::eye(m, dtype).broadcast_to(of.of(m, m));
            Ok((call.following(&q, &[x]), call.following(&Tensor::zeros(of.of(m, n), dtype), &[x])))
        }
        _ => complete(call, x),
    }
}

/// Orthonormal columns, and behind them those of a basis of what they leave.
fn completed(call: Call, columns: &Tensor) -> Result<Tensor> {
    let Matrices { rows: m, columns: k, .. } = matrices(call, columns)?;
    if m == k {
        return Ok(columns.clone());
    }
    let (q, _) = qr_complete(call, columns)?;
    Ok(Tensor::cat(&[columns, &q.slice(-1, k..)], -1))
}
