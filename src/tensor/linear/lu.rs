//! A matrix as a product of triangles.

use smallvec::SmallVec;

use super::elimination::{Elimination, factors};
use super::parts::{column, columns, row_numbers, rows, swapped};
use super::{Matrices, matrices, routine};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::{counting, diagonal};
use crate::{Result, Tensor};

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
