//! Systems of more equations than unknowns, or less.

use super::parts::{columns, rows, swapped, turned};
use super::qr::qr;
use super::reflection::{Reflections, scales};
use super::substitution::substituted;
use super::{Matrices, matrices, right_hand_side, routine, together};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

impl Tensor {
    /// The `x` for which `self @ x - b` is least, column by column, of matrices `[…, m, n]` in `F32` or `F64` whose columns are
    /// independent; if there are less rows than columns, and the rows are, the least `x` for which it is 0. `b` is as
    /// [`Tensor::solve`] takes it. The solution of PyTorch's `torch.linalg.lstsq`.
    ///
    /// By Householder's reflections. Columns (or rows) that depend on each other result in infinities, NaN, or numbers that
    /// rounding has made.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from([[1.0f64, 0.0], [1.0, 1.0], [1.0, 2.0]]); // a line through three points
    /// let line = a.lstsq(Tensor::from([1.0f64, 3.0, 5.0])).to_vec::<f64>()?;
    /// assert!((line[0] - 1.0).abs() < 1e-14 && (line[1] - 2.0).abs() < 1e-14);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lstsq(&self, b: impl AsRef<Tensor>) -> Tensor {
        let b = b.as_ref();
        let call = Call::here("lstsq");
        call.composed(|| {
            let rows = matrices(call, self)?.rows;
            let (b, is_vector) = right_hand_side(call, self, b, rows)?;
            let [a, b] = together(call, self, &b)?;
            let x = least(call, &a, &b)?;
            Ok(if is_vector { x.squeeze(-1) } else { x })
        })
    }
}

fn least(call: Call, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let of = matrices(call, a)?;
    let Matrices { rows: m, columns: n, dtype, .. } = of;
    let width = matrices(call, b)?.columns;
    if m.min(n) == 0 {
        return Ok(call.following(&Tensor::zeros(of.of(n, width), dtype), &[a, b]));
    }
    if width == 0 || !routine::takes_of(a, m) || !routine::takes(b) {
        return decomposed(call, a, b);
    }
    let decomposition = move |of: &[Tensor]| decomposed(call, &of[0], &of[1]);
    let x = routine::record_one(call, Routine::LeastSquares, &[a, b], decomposition)?;
    Ok(call.derived(&x, &[a, b], move |g, all| {
        let x = decomposed(call, &all[1], &all[2])?;
        let (of_a, of_b) = crate::vjp(&[x], &[g], &(all[1].clone(), all[2].clone()));
        Ok(vec![of_a, of_b])
    }))
}

fn decomposed(call: Call, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let Matrices { rows: m, columns: n, .. } = matrices(call, a)?;
    let width = matrices(call, b)?.columns;
    if m < n {
        let (q, r) = qr(call, &swapped(a))?;
        return Ok(q.matmul(substituted(&swapped(&r), b, m, false)));
    }
    let scales = scales(a);
    let all = Reflections { rows: m, width: n + width, triangle: n };
    let done = rows(&all.run(&Tensor::cat([&(a / &scales), b], -1)), 0, n);
    let (triangle, b) = (columns(&done, 0, n), columns(&done, n, n + width));
    Ok(substituted(&turned(&triangle), &b.flip(-2), n, false).flip(-2) / swapped(&scales))
}
