//! Systems whose matrix is a triangle.

use super::adjoint::of_triangle_solved;
use super::parts::{swapped, turned};
use super::substitution::substituted;
use super::{routine, square, together};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

impl Tensor {
    /// `x` of `self @ x = b`, or, unless `left`, of `x @ self = b`, where this is a triangle: the `upper` one, or the lower one. What
    /// is beyond its diagonal is not read, and if it `is_unit`, the diagonal counts as 1 and is not read either. Both are matrices
    /// or batches of them, which broadcast, in `F32` or `F64`. PyTorch's `torch.linalg.solve_triangular`.
    ///
    /// A 0 on the diagonal makes infinities or NaN. On a GPU, what is none in a column of `b` makes NaN of up to 32 rows around it as
    /// well: blocks of the diagonal are inverted, and multiplied with.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (t, b) = (Tensor::from([[2.0f32, 1.0], [0.0, 4.0]]), Tensor::from([[4.0f32], [8.0]]));
    /// assert_eq!(t.solve_triangular(&b, true, true, false).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn solve_triangular(&self, b: impl AsRef<Tensor>, upper: bool, left: bool, is_unit: bool) -> Tensor {
        let b = b.as_ref();
        let call = Call::here("solve_triangular");
        call.composed(|| {
            let n = square(call, self)?.rows;
            let [t, b] = together(call, self, b)?;
            match left {
                true => solved(call, &t, &b, n, upper, is_unit),
                false => Ok(swapped(&solved(call, &swapped(&t), &swapped(&b), n, !upper, is_unit)?)),
            }
        })
    }
}

/// `x` of `t @ x = b`.
pub(super) fn solved(
    call: Call,
    t: &Tensor,
    b: &Tensor,
    n: usize,
    upper: bool,
    is_unit: bool,
) -> Result<Tensor> {
    let shape = &b.node.shape;
    if shape[shape.rank() - 2] != n {
        return call
            .fail(format!("shapes {} and {shape} do not fit: the triangle has {n} rows", t.node.shape));
    }
    if shape.elements() > 0 && routine::takes_of(t, n) && routine::takes(b) {
        let routine = Routine::Triangle { is_upper: upper, is_unit };
        let decomposition = move |of: &[Tensor]| Ok(decomposed(&of[0], &of[1], n, upper, is_unit));
        let x = routine::record_one(call, routine, &[t, b], decomposition)?;
        return Ok(
            call.derived(&x, &[t, b], move |g, all| of_triangle_solved(g, &all[1], &all[0], upper, is_unit))
        );
    }
    let x = decomposed(t, b, n, upper, is_unit);
    Ok(if n == 0 { call.following(&x, &[t]) } else { x })
}

fn decomposed(t: &Tensor, b: &Tensor, n: usize, upper: bool, is_unit: bool) -> Tensor {
    match upper {
        true => substituted(&turned(t), &b.flip(-2), n, is_unit).flip(-2),
        false => substituted(t, b, n, is_unit),
    }
}
