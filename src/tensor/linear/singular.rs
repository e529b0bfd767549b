//! Singular values, and what is known from them.

use smallvec::SmallVec;

use super::adjoint::{of_left_vectors, of_right_vectors, of_singular_values};
use super::parts::{columns, rows, swapped};
use super::qr::qr;
use super::tridiagonal::Tridiagonal;
use super::{Matrices, matrices, routine};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// `(u, s, vh)` with this matrix equal to `u @ diag(s) @ vh`, of each matrix of a batch, in `F32` or `F64`: orthonormal columns,
    /// singular values in descending order, and orthonormal rows. From `[…, m, n]`, with `k` the smaller of the two, `[…, m, k]`,
    /// `[…, k]` and `[…, k, n]`. PyTorch's `torch.linalg.svd` with `full_matrices=False`.
    ///
    /// Each value is within some roundings of the greatest. A column of `u` may have either sign, and the row of `vh` has it as well.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[3.0f64, 0.0], [4.0, 5.0]]);
    /// let (u, s, vh) = x.svd();
    /// assert!(((u * s).matmul(&vh) - x).abs().max(..).item::<f64>()? < 1e-13);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn svd(&self) -> (Tensor, Tensor, Tensor) {
        let call = Call::here("svd");
        match call.compose(|| svd(call, self)) {
            Ok(parts) => parts,
            Err(error) => {
                let invalid = || Tensor::invalid(error.clone());
                (invalid(), invalid(), invalid())
            }
        }
    }

    /// The singular values in descending order, as by [`Tensor::svd`]. PyTorch's `torch.linalg.svdvals`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let values = Tensor::from([[0.0f64, 2.0], [3.0, 0.0]]).svdvals().to_vec::<f64>()?;
    /// assert!((values[0] - 3.0).abs() < 1e-14 && (values[1] - 2.0).abs() < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn svdvals(&self) -> Tensor {
        let call = Call::here("svdvals");
        call.composed(|| values(call, self))
    }

    /// The pseudoinverse (Moore and Penrose's) of a matrix, or of each of a batch, in `F32` or `F64`: from `[…, m, n]`, `[…, n, m]`.
    /// Singular values up to `max(m, n) * eps` of the greatest count as 0. PyTorch's `torch.linalg.pinv`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2.0f64, 0.0], [0.0, 0.0]]);
    /// let expected = Tensor::from([[0.5f64, 0.0], [0.0, 0.0]]);
    /// assert!((x.pinv() - expected).abs().max(..).item::<f64>()? < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pinv(&self) -> Tensor {
        let call = Call::here("pinv");
        call.composed(|| pinv(call, self, None, None))
    }

    /// [`Tensor::pinv`] for which singular values count as 0 up to `atol`, or up to `rtol` of the greatest, whichever is more. Without an
    /// `rtol` it is `max(m, n) * eps`, or 0 beside an `atol` that is not. PyTorch's `torch.linalg.pinv` with `atol` and `rtol`.
    ///
    /// Invalid for a tolerance that is negative or NaN.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2.0f64, 0.0], [0.0, 0.1]]);
    /// let expected = Tensor::from([[0.5f64, 0.0], [0.0, 0.0]]);
    /// assert!((x.pinv_with(0.2, None) - expected).abs().max(..).item::<f64>()? < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pinv_with(&self, atol: impl Into<Option<f64>>, rtol: impl Into<Option<f64>>) -> Tensor {
        let (call, atol, rtol) = (Call::here("pinv_with"), atol.into(), rtol.into());
        call.composed(|| pinv(call, self, atol, rtol))
    }

    /// How many times as much of an error there may be in a solution as in what it is of, of a matrix or of each of a batch, in `F32`
    /// or `F64`: the greatest singular value over the least one. Infinite if a matrix has no inverse, NaN for zeros alone, 0 for one
    /// without elements. PyTorch's `torch.linalg.cond`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[4.0f64, 0.0], [0.0, -2.0]]);
    /// assert!((x.cond().item::<f64>()? - 2.0).abs() < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cond(&self) -> Tensor {
        let call = Call::here("cond");
        call.composed(|| {
            let of = matrices(call, self)?;
            if of.rows.min(of.columns) == 0 {
                return Ok(call.following(&Tensor::zeros(of.batch, of.dtype), &[self]));
            }
            let s = values(call, self)?;
            Ok(s.select(-1, 0) / s.select(-1, -1))
        })
    }

    /// How many singular values of a matrix, or of each of a batch, are above `max(m, n) * eps` of the greatest, as `I64`: how many rows
    /// are independent. PyTorch's `torch.linalg.matrix_rank`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [2.0, 4.0]]);
    /// assert_eq!(x.matrix_rank().item::<i64>()?, 1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_rank(&self) -> Tensor {
        let call = Call::here("matrix_rank");
        call.composed(|| matrix_rank(call, self, None, None))
    }

    /// [`Tensor::matrix_rank`] of singular values above `atol`, and above `rtol` of the greatest, as [`Tensor::pinv_with`] takes them. PyTorch's
    /// `torch.linalg.matrix_rank` with `atol` and `rtol`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2.0f64, 0.0], [0.0, 0.1]]);
    /// assert_eq!(x.matrix_rank_with(0.2, None).item::<i64>()?, 1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_rank_with(&self, atol: impl Into<Option<f64>>, rtol: impl Into<Option<f64>>) -> Tensor {
        let (call, atol, rtol) = (Call::here("matrix_rank_with"), atol.into(), rtol.into());
        call.composed(|| matrix_rank(call, self, atol, rtol))
    }
}

fn pinv(call: Call, x: &Tensor, atol: Option<f64>, rtol: Option<f64>) -> Result<Tensor> {
    let of = matrices(call, x)?;
    let [atol, rtol] = tolerances(call, &of, atol, rtol)?;
    if of.rows.min(of.columns) == 0 {
        return Ok(call.following(&Tensor::zeros(of.of(of.columns, of.rows), of.dtype), &[x]));
    }
    let (u, s, vh) = svd(call, x)?;
    let inverse = counts(&s, atol, rtol).where_(s.reciprocal(), s.zeros_like() * &s);
    Ok((swapped(&vh) * inverse.unsqueeze(-2)).matmul(swapped(&u)))
}

fn matrix_rank(call: Call, x: &Tensor, atol: Option<f64>, rtol: Option<f64>) -> Result<Tensor> {
    let of = matrices(call, x)?;
    let [atol, rtol] = tolerances(call, &of, atol, rtol)?;
    if of.rows.min(of.columns) == 0 {
        return Ok(Tensor::zeros(of.batch, DType::I64));
    }
    Ok(counts(&values(call, x)?, atol, rtol).sum(-1))
}

/// Up to which number, and up to which share of the greatest one, singular values count as 0: by default, what rounding may have made of it.
fn tolerances(call: Call, of: &Matrices, atol: Option<f64>, rtol: Option<f64>) -> Result<[f64; 2]> {
    for tolerance in [atol, rtol].into_iter().flatten() {
        call.needs(tolerance >= 0.0, "a tolerance must be 0 or more", tolerance)?;
    }
    let eps = if of.dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
    let atol = atol.unwrap_or(0.0);
    let share = if atol > 0.0 { 0.0 } else { of.rows.max(of.columns) as f64 * eps };
    Ok([atol, rtol.unwrap_or(share)])
}

/// Which singular values, of which there are some, are above the tolerances.
fn counts(s: &Tensor, atol: f64, rtol: f64) -> Tensor {
    let limit = s.slice(-1, ..1) * rtol;
    s.gt(if atol > 0.0 { limit.maximum(atol) } else { limit })
}

/// A square matrix with the same singular values, and what the left vectors of it are multiplied with, of matrices with as many
/// rows as columns or more.
fn squared(call: Call, x: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    let of = matrices(call, x)?;
    if of.rows == of.columns {
        return Ok((x.clone(), None));
    }
    let (q, r) = qr(call, x)?;
    Ok((r, Some(q)))
}

/// Of a square matrix with `n` rows: the symmetric one that has it beside its transpose, whose eigenvalues are the singular values
/// with both signs, as a tridiagonal one; its basis; and by what entries were divided.
fn doubled(x: &Tensor, n: usize) -> (Tridiagonal, Tensor, Tensor) {
    // A power of two, so that squares are in range.
    let greatest = x.abs().max_keepdim([-2, -1]);
    let scale = greatest.eq(0.0).where_(1.0, greatest.log2().floor().exp2());
    let x = x / &scale;
    let none = x.zeros_like();
    let upper = Tensor::cat([&none, &x], -1);
    let lower = Tensor::cat([&swapped(&x), &none], -1);
    let (tridiagonal, basis) = Tridiagonal::of(&Tensor::cat([upper, lower], -2), 2 * n);
    (tridiagonal, basis, scale)
}

pub(super) fn values(call: Call, x: &Tensor) -> Result<Tensor> {
    let of = matrices(call, x)?;
    let Matrices { rows: m, columns: n, dtype, .. } = of;
    let k = m.min(n);
    if k == 0 {
        return Ok(call.following(&Tensor::zeros(of.of(m, 0), dtype).sum(-2), &[x]));
    }
    let s = match routine::takes(x) {
        true => {
            routine::record_one(call, Routine::SingularValues, &[x], move |x| values_decomposed(call, &x[0]))?
        }
        false => values_decomposed(call, x)?,
    };
    Ok(call.derived(&s, &[x], |g, all| of_singular_values(g, &all[1])))
}

/// Of what is not empty.
fn values_decomposed(call: Call, x: &Tensor) -> Result<Tensor> {
    let Matrices { rows: m, columns: n, .. } = matrices(call, x)?;
    let k = m.min(n);
    let (square, _) = squared(call, &if m < n { swapped(x) } else { x.clone() })?;
    let (tridiagonal, _, scale) = doubled(&square, k);
    // A rounding may have made a 0 negative.
    Ok((tridiagonal.eigenvalues(k).clamp_min(0.0) * scale.squeeze(-1)).flip(-1))
}

pub(super) fn svd(call: Call, x: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let of = matrices(call, x)?;
    let Matrices { rows: m, columns: n, dtype, .. } = of;
    if m.min(n) == 0 {
        let empty = |rows, columns| call.following(&Tensor::zeros(of.of(rows, columns), dtype), &[x]);
        return Ok((empty(m, 0), values(call, x)?, empty(0, n)));
    }
    if m < n {
        let (u, s, vh) = svd(call, &swapped(x))?;
        return Ok((swapped(&vh), s, swapped(&u)));
    }
    let [u, s, vh] = match routine::takes(x) {
        true => {
            let decomposition = move |x: &[Tensor]| decomposed(call, &x[0]).map(SmallVec::from);
            let made = routine::record(call, Routine::SingularVectors, &[x], decomposition)?;
            let [u, s, vh] = &made[..] else { return call.fail("has no singular values") };
            [u, s, vh].map(Tensor::clone)
        }
        false => decomposed(call, x)?,
    };
    let u = call.derived(&u, &[x], |g, all| of_left_vectors(g, &all[1]));
    let s = call.derived(&s, &[x], |g, all| of_singular_values(g, &all[1]));
    Ok((u, s, call.derived(&vh, &[x], |g, all| of_right_vectors(g, &all[1]))))
}

/// Of what has as many rows as columns or more, and some.
fn decomposed(call: Call, x: &Tensor) -> Result<[Tensor; 3]> {
    let n = matrices(call, x)?.columns;
    let (square, before) = squared(call, x)?;
    let (tridiagonal, basis, scale) = doubled(&square, n);
    let s = tridiagonal.eigenvalues(n);
    let vectors = swapped(&basis).matmul(tridiagonal.vectors(call, &s)?).flip(-1);
    // A vector of a small value may have a share of the one of the same value with the other sign, which has the same directions:
    // each half is one by itself.
    let orthonormal = |half: &Tensor| -> Result<Tensor> {
        let (q, r) = qr(call, half)?;
        let sign = r.diagonal(0, -2, -1).lt(0.0).where_(-1.0, r.diagonal(0, -2, -1).ones_like());
        Ok(columns(&q, 0, n) * sign.unsqueeze(-2))
    };
    let u = orthonormal(&rows(&vectors, 0, n))?;
    let v = orthonormal(&rows(&vectors, n, 2 * n))?;
    let u = before.map_or(u.clone(), |before| before.matmul(&u));
    let s = (s.clamp_min(0.0) * scale.squeeze(-1)).flip(-1);
    for part in [&u, &s, &v] {
        part.validity()?;
    }
    Ok([u, s, swapped(&v)])
}
