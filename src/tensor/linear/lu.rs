//! A matrix as a product of triangles.

use smallvec::SmallVec;

use super::elimination::{Elimination, factors};
use super::parts::{at, column, columns, row_numbers, rows, swapped};
use super::triangular::solved;
use super::{Matrices, matrices, routine, square, together};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::{counting, diagonal};
use crate::tensor::position::gather::taken_along;
use crate::{DType, Result, Tensor};

impl Tensor {
    /// `(p, l, u)` with this matrix equal to `p @ l @ u`, of each matrix of a batch, in `F32` or `F64`: a permutation, a lower
    /// triangle with 1 on its diagonal, and an upper one. From `[…, m, n]`, with `k` the smaller of the two, `[…, m, m]`,
    /// `[…, m, k]` and `[…, k, n]`. PyTorch's `torch.linalg.lu`.
    ///
    /// The pivot of a column is the first of its greatest entries, so that none of `l` is above 1 in magnitude. A singular
    /// matrix has a 0 on the diagonal of `u`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from([[1.0f32, 3.0], [2.0, 4.0]]);
    /// let (p, l, u) = a.lu();
    /// assert_eq!(p.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
    /// assert_eq!((l.to_vec::<f32>()?, u.to_vec::<f32>()?), (vec![1.0, 0.0, 0.5, 1.0], vec![2.0, 4.0, 0.0, 1.0]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lu(&self) -> (Tensor, Tensor, Tensor) {
        let call = Call::here("lu");
        match call.compose(|| lu(call, self)) {
            Ok(parts) => parts,
            Err(error) => {
                let invalid = || Tensor::invalid(error.clone());
                (invalid(), invalid(), invalid())
            }
        }
    }

    /// Both triangles of [`Tensor::lu`] in one matrix, the lower one without its diagonal, and the order of rows: row `i` of the product
    /// of the triangles is row `order[i]` of this matrix. From `[…, m, n]`, `[…, m, n]` and `I64` of `[…, m]`; what
    /// [`Tensor::lu_solve`] takes. PyTorch's `torch.linalg.lu_factor`, which has the exchanges of rows one after the other instead of
    /// the order that they lead to.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (lu, order) = Tensor::from([[1.0f32, 3.0], [2.0, 4.0]]).lu_factor();
    /// assert_eq!((lu.to_vec::<f32>()?, order.to_vec::<i64>()?), (vec![2.0, 4.0, 0.5, 1.0], vec![1, 0]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lu_factor(&self) -> (Tensor, Tensor) {
        let call = Call::here("lu_factor");
        let parts = call.compose(|| {
            let of = matrices(call, self)?;
            let (p, l, u) = lu(call, self)?;
            let k = of.rows.min(of.columns);
            let wide = l.tril(-1).pad([0, at(of.columns - k)], 0.0);
            let whole = wide + u.pad([0, 0, 0, at(of.rows - k)], 0.0);
            let order = match of.rows {
                0 => Tensor::zeros(of.of(0, 0).without(&[of.batch.rank()]), DType::I64),
                _ => p.argmax(-2),
            };
            whole.validity().map(|()| (whole, order))
        });
        parts.unwrap_or_else(|error| (Tensor::invalid(error.clone()), Tensor::invalid(error)))
    }

    /// `x` of `a @ x = b`, where this tensor and `order` are what [`Tensor::lu_factor`] gives of a square matrix `a`, and `b` are matrices.
    /// Batches broadcast. PyTorch's `torch.linalg.lu_solve`, with the order of rows in place of their exchanges.
    ///
    /// A 0 on the diagonal makes infinities or NaN.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (a, b) = (Tensor::from([[1.0f32, 3.0], [2.0, 4.0]]), Tensor::from([[7.0f32], [10.0]]));
    /// let (lu, order) = a.lu_factor();
    /// assert_eq!(lu.lu_solve(&order, &b).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lu_solve(&self, order: impl AsRef<Tensor>, b: impl AsRef<Tensor>) -> Tensor {
        let (call, order, b) = (Call::here("lu_solve"), order.as_ref(), b.as_ref());
        call.composed(|| {
            let of = square(call, self)?;
            let (own, dtype) = order.known()?;
            let expected = self.known()?.0.without(&[of.batch.rank() + 1]);
            if !dtype.is_int() || *own != expected {
                return call
                    .fail(format!("the order must be integers of shape {expected}, got {dtype} {own}"));
            }
            let [lu, b] = together(call, self, b)?;
            let rows = matrices(call, &b)?.rows;
            if rows != of.rows {
                return call.fail(format!(
                    "shapes {} and {} do not fit: the matrix has {} rows",
                    lu.node.shape, b.node.shape, of.rows
                ));
            }
            if b.node.shape.elements() == 0 {
                return Ok(call.following(&b, &[&lu]));
            }
            let b = taken_along(&b, &order.unsqueeze(-1), -2);
            let half = solved(call, &lu, &b, rows, false, true)?;
            solved(call, &lu, &half, rows, true, false)
        })
    }
}

fn lu(call: Call, x: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let of = matrices(call, x)?;
    if of.rows.min(of.columns) == 0 || !routine::takes_of(x, of.rows) {
        let [p, l, u] = decomposed(call, x)?;
        return Ok((p, l, u));
    }
    let made =
        routine::record(call, Routine::Lu, &[x], move |x| decomposed(call, &x[0]).map(SmallVec::from))?;
    let [p, l, u] = &made[..] else { return call.fail("has no triangles") };
    let decomposition = move |x: &Tensor| decomposed(call, x).map(|[_, l, u]| [l, u]);
    let [l, u] = routine::differentiable(call, [l, u], x, decomposition);
    Ok((call.detached(p), l, u))
}

fn decomposed(call: Call, x: &Tensor) -> Result<[Tensor; 3]> {
    let of = matrices(call, x)?;
    let Matrices { rows: m, columns: n, dtype, .. } = of;
    let k = m.min(n);
    // Numbers of rows go with them. `F32` has each up to 2^24.
    let order = row_numbers(m).cast(dtype).broadcast_to(of.of(m, 1));
    let all = Elimination { rows: m, passive: 1, pivots: k, width: n + 1 };
    let done = all.run(&Tensor::cat([&order, x], -1));
    let p = swapped(&column(&done, 0)).eq(row_numbers(m).cast(dtype)).cast(dtype);
    let u = rows(&columns(&done, 1, n + 1), 0, k).triu(0);
    let factors = factors(&columns(&done, 1, k + 1));
    let l = row_numbers(m).gt(counting(k)).where_(factors, diagonal(m, k, 0).cast(dtype));
    for part in [&p, &l, &u] {
        part.validity()?;
    }
    Ok([p, l, u])
}
