//! A matrix as a product of one with orthonormal columns and a triangle.

use smallvec::SmallVec;

use super::parts::{columns, identities, rows, swapped};
use super::reflection::{Reflections, scales};
use super::{Matrices, matrices, routine};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

impl Tensor {
    /// `(q, r)` with this matrix equal to `q @ r`, of each matrix of a batch, in `F32` or `F64`: orthonormal columns, and an upper
    /// triangle. From `[…, m, n]`, with `k` the smaller of the two, `[…, m, k]` and `[…, k, n]`. PyTorch's `torch.linalg.qr`.
    ///
    /// By Householder's reflections, so that columns are orthonormal for any matrix. The signs are LAPACK's.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (q, r) = Tensor::from([[3.0f64, 1.0], [4.0, 7.0]]).qr();
    /// let expected = Tensor::from([[-5.0f64, -6.2], [0.0, 3.4]]);
    /// assert!((r - expected).abs().max(..).item::<f64>()? < 1e-14);
    /// assert!((q.t().matmul(&q) - Tensor::from([[1.0, 0.0], [0.0, 1.0]])).abs().max(..).item::<f64>()? < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn qr(&self) -> (Tensor, Tensor) {
        let call = Call::here("qr");
        match call.compose(|| qr(call, self)) {
            Ok(parts) => parts,
            Err(error) => (Tensor::invalid(error.clone()), Tensor::invalid(error)),
        }
    }
}

pub(super) fn qr(call: Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let of = matrices(call, x)?;
    let Matrices { rows: m, columns: n, dtype, .. } = of;
    let k = m.min(n);
    if k == 0 {
        let empty = |rows, columns| call.following(&Tensor::zeros(of.of(rows, columns), dtype), &[x]);
        return Ok((empty(m, 0), empty(0, n)));
    }
    let [q, r] = match routine::takes_of(x, m) {
        true => {
            let made = routine::record(call, Routine::Qr, &[x], move |x| {
                decomposed(call, &x[0]).map(SmallVec::from_iter)
            })?;
            let [q, r] = &made[..] else { return call.fail("has no triangle") };
            routine::differentiable(call, [q, r], x, move |x| decomposed(call, x))
        }
        false => decomposed(call, x)?,
    };
    Ok((q, r))
}

/// As many columns as rows.
pub(super) fn complete(call: Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let m = matrices(call, x)?.rows;
    let [q, r] = first_columns(x, matrices(call, x)?, m)?;
    Ok((q, r))
}

fn decomposed(call: Call, x: &Tensor) -> Result<[Tensor; 2]> {
    let of = matrices(call, x)?;
    let k = of.rows.min(of.columns);
    first_columns(x, of, k)
}

/// So many orthonormal columns, and as many rows of the triangle.
fn first_columns(x: &Tensor, of: Matrices, k: usize) -> Result<[Tensor; 2]> {
    let Matrices { rows: m, columns: n, .. } = of;
    let scales = scales(x);
    let all = Reflections { rows: m, width: n + m, triangle: n };
    let done = all.run(&Tensor::cat([&(x / &scales), &identities(x, m)], -1));
    let r = rows(&columns(&done, 0, n), 0, k).triu(0) * scales;
    let q = columns(&swapped(&columns(&done, n, n + m)), 0, k);
    q.validity()?;
    r.validity()?;
    Ok([q, r])
}
