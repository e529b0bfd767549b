//! Triangles whose product with their transpose is a positive definite matrix.

use super::adjoint::of_triangle;
use super::parts::{
    Entries, MANY, PANEL, Panel, UNROLLED, column, columns, entries, identities, in_loops, joined,
    lengthened, lowered, panels, row_numbers, rows, swapped,
};
use super::triangular::solved;
use super::{routine, square, together};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{Result, Tensor};

impl Tensor {
    /// The lower triangle `l` with `l @ lᵀ` equal to this symmetric, positive definite matrix, or the `upper` one `u` with `uᵀ @ u`;
    /// of each matrix of a batch, in `F32` or `F64`. Only the lower triangle is read. PyTorch's `torch.linalg.cholesky`.
    ///
    /// From the first column on at which a matrix turns out not to be positive definite, its result is NaN: while it is recorded,
    /// nobody knows. Invalid unless the last two dimensions are equal.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from([[4.0f32, 2.0], [2.0, 10.0]]);
    /// assert_eq!(a.cholesky(false).to_vec::<f32>()?, [2.0, 0.0, 1.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cholesky(&self, upper: bool) -> Tensor {
        let call = Call::here("cholesky");
        call.composed(|| {
            let n = square(call, self)?.rows;
            let lower = call.derived(&factor(call, self, n)?, &[self], |g, all| of_triangle(g, &all[0]));
            Ok(if upper { swapped(&lower) } else { lower })
        })
    }

    /// `x` of `a @ x = self`, where the factor is `a.cholesky(upper)`. Both are matrices or batches of them, which broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from([[4.0f32, 2.0], [2.0, 10.0]]);
    /// let b = Tensor::from([[8.0f32], [22.0]]);
    /// assert_eq!(b.cholesky_solve(a.cholesky(false), false).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cholesky_solve(&self, factor: impl AsRef<Tensor>, upper: bool) -> Tensor {
        let factor = factor.as_ref();
        let call = Call::here("cholesky_solve");
        call.composed(|| {
            let n = square(call, factor)?.rows;
            let [factor, b] = together(call, factor, self)?;
            both_solved(call, &factor, &b, n, upper)
        })
    }

    /// The inverse of `a`, where this is `a.cholesky(upper)`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let factor = Tensor::from([[2.0f32, 0.0], [0.0, 0.5]]);
    /// assert_eq!(factor.cholesky_inverse(false).to_vec::<f32>()?, [0.25, 0.0, 0.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cholesky_inverse(&self, upper: bool) -> Tensor {
        let call = Call::here("cholesky_inverse");
        call.composed(|| {
            let n = square(call, self)?.rows;
            both_solved(call, self, &identities(self, n), n, upper)
        })
    }
}

fn both_solved(call: Call, factor: &Tensor, b: &Tensor, n: usize, upper: bool) -> Result<Tensor> {
    let lower = if upper { swapped(factor) } else { factor.clone() };
    let half = solved(call, &lower, b, n, false, false)?;
    solved(call, &swapped(&lower), &half, n, true, false)
}

/// The lower triangle.
fn factor(call: Call, x: &Tensor, n: usize) -> Result<Tensor> {
    match n > 0 && routine::takes_of(x, n) {
        true => routine::record_one(call, Routine::Cholesky, &[x], move |x| Ok(decomposed(&x[0], n))),
        false => Ok(decomposed(x, n)),
    }
}

fn decomposed(x: &Tensor, n: usize) -> Tensor {
    match n {
        0 => x.clone(),
        1..=UNROLLED => joined(&of_entries(&entries(x, n, n))),
        _ => of_matrix(x, n),
    }
}

/// NaN for what is not positive, so that whatever follows is NaN too.
fn positive(x: &Tensor) -> Tensor {
    x.gt(0.0).where_(x, f64::NAN)
}

fn of_entries(x: &Entries) -> Entries {
    let mut lower: Entries = Vec::new();
    for (i, line) in x.iter().enumerate() {
        let mut own: Vec<Tensor> = Vec::new();
        for j in 0..line.len() {
            let entry = match j {
                _ if j > i => line[j].zeros_like(),
                _ => {
                    let other = if j == i { &own } else { &lower[j] };
                    let rest = own.iter().zip(other).fold(line[j].clone(), |rest, (a, b)| rest - a * b);
                    if j == i { positive(&rest).sqrt() } else { rest / &lower[j][j] }
                }
            };
            own.push(entry);
        }
        lower.push(own);
    }
    lower
}

/// A panel of columns at a time, where there are many: from what comes after, a product is subtracted.
fn of_matrix(x: &Tensor, n: usize) -> Tensor {
    let mut rest = row_numbers(n).ge(counting(n)).where_(x, swapped(x));
    if n < MANY {
        return of_columns(&rest, n, n);
    }
    let mut lower = Vec::new();
    for Panel { first, end } in panels(n, PANEL) {
        let (width, height) = (end - first, n - first);
        let own = of_columns(&columns(&rest, 0, width), height, width);
        if end < n {
            let below = rows(&own, width, height);
            rest = columns(&rows(&rest, width, height), width, height) - below.matmul(swapped(&below));
        }
        lower.push(lowered(&own, first));
    }
    Tensor::cat(&lower, -1)
}

/// The first columns of the triangle, of those of a symmetric matrix of `n` rows: as elimination without exchanges, whose columns are
/// then divided by the roots of their pivots.
fn of_columns(x: &Tensor, n: usize, width: usize) -> Tensor {
    let (down, across) = (row_numbers(in_loops(n)), counting(width));
    let mut x = lengthened(x, n);
    for k in 0..width.min(n - 1) {
        let number = k as i64;
        // The row as a sum of which one row counts. Others need it, so that `x` is stored, and not computed anew for them.
        let pivots = down.eq(number).where_(&x, 0.0).sum_keepdim(-2);
        let factor = down.gt(number).where_(column(&x, k) / positive(&column(&pivots, k)), 0.0);
        // Not 0 times what may be NaN.
        x = &x - across.gt(number).where_(factor * pivots, 0.0);
    }
    let x = rows(&x, 0, n);
    let roots = positive(&x.diagonal(0, -2, -1)).sqrt();
    row_numbers(n).ge(&across).where_(x / roots.unsqueeze(-2), 0.0)
}
