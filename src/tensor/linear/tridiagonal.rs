//! Symmetric matrices as tridiagonal ones, and eigenvalues and vectors of those.

use super::parts::{
    at, column, columns, identities, in_loops, lengthened, other_row_numbers, row, rows, swapped,
};
use super::qr::qr;
use super::reflection::Reflection;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::scan::recurrences::scan;
use crate::tensor::scan::scans::ScanOrder;
use crate::{DType, Result, Tensor};

/// What is on the diagonal and below it, both as columns with `n` rows, of which the last one below is 0.
pub(super) struct Tridiagonal {
    n: usize,
    diagonal: Tensor,
    below: Tensor,
}

impl Tridiagonal {
    /// `t` with `x = q @ t @ qᵀ` of a symmetric matrix with entries up to 1, and `qᵀ`, by Householder's reflections from both sides.
    pub(super) fn of(x: &Tensor, n: usize) -> (Tridiagonal, Tensor) {
        let (down, across) = (other_row_numbers(in_loops(n)), counting(2 * n));
        let mut x = lengthened(&Tensor::cat([x, &identities(x, n)], -1), n);
        for k in 0..n.saturating_sub(2) {
            let first_row = k as i32 + 1;
            let below = down.gt(first_row).where_(column(&x, k), 0.0);
            let sums = (&below * &x).sum_keepdim(-2);
            let top = row(&x, k + 1);
            let Reflection { first, scale, .. } = Reflection::new(&column(&top, k), &column(&sums, k));
            let v = down.eq(first_row).where_(&first, below);
            // `scale * vᵀ @ x`, and as a column: `x` is symmetric in its first columns.
            let share = (top * first + sums) * &scale;
            let turned = lengthened(&swapped(&columns(&share, 0, n)), n);
            let twice = (&v * &turned).sum_keepdim(-2) * scale;
            let of_columns = rows(&v, 0, n).transpose(-1, -2).tile([1, 2]);
            let of_columns = across.lt(n as i64).where_(of_columns, 0.0);
            x = &x - &v * share - (turned - &v * twice) * of_columns;
        }
        let x = rows(&x, 0, n);
        let diagonal = x.diagonal(0, -2, -1).unsqueeze(-1);
        let below = columns(&rows(&x, 1, n), 0, n - 1).diagonal(0, -2, -1).unsqueeze(-1);
        let mut border = vec![(0, 0); x.node.shape.rank() - 2];
        border.extend([(0, 1), (0, 0)]);
        (Tridiagonal { n, diagonal, below: below.pad(border, 0.0) }, columns(&x, n, 2 * n))
    }

    /// What is below the diagonal, in the row where it is: the first one has 0.
    fn before(&self) -> Tensor {
        self.below.roll(1, -2)
    }

    /// The eigenvalues but for the `least` ones, in ascending order along a last axis: each halves an interval by how many are less
    /// (Sturm).
    pub(super) fn eigenvalues(&self, least: usize) -> Tensor {
        let radius = self.below.abs() + self.before().abs();
        let ends = [(&self.diagonal - &radius).min(-2), (&self.diagonal + &radius).max(-2)];
        let place = counting(self.n).slice(0, at(least)..);
        let whole = self.diagonal.squeeze(-1).slice(-1, at(least)..).zeros_like();
        let [mut low, mut high] = ends.map(|end| end + &whole);
        let squares = self.before().square();
        let (halvings, smallest) = match self.diagonal.node.dtype {
            DType::F64 => (60, 1e-290),
            _ => (30, 1e-30),
        };
        for _ in 0..halvings {
            let middle = (&low + &high) * 0.5;
            let inits = [middle.ones_like(), middle.zeros_like()];
            let ([_, less], []) = scan(
                [&self.diagonal, &squares],
                -2,
                ScanOrder::new(),
                inits,
                |[pivot, less], [own, square]| {
                    let pivot = own - &middle - square / pivot;
                    let pivot = pivot.abs().lt(smallest).where_(-smallest, pivot);
                    let less = less + pivot.lt(0.0).cast(less.node.dtype);
                    ([pivot, less], [])
                },
            );
            let is_above = less.gt(&place);
            (low, high) = (is_above.where_(&low, &middle), is_above.where_(middle, high));
        }
        (low + high) * 0.5
    }

    /// A vector for each eigenvalue, as columns, which are about perpendicular, by inverse iteration from random vectors.
    pub(super) fn vectors(&self, call: Call, values: &Tensor) -> Result<Tensor> {
        let norm = (self.diagonal.abs() + self.below.abs() + self.before().abs()).max(-2);
        // By more than roundings apart from eigenvalues that differ by roundings: all their vectors then grow alike, and those that are
        // perpendicular stay so.
        let beside = values + norm * (16.0 * self.eps());
        let step = |x: &Tensor| {
            let x = self.solved(&beside, x);
            &x / x.abs().max_keepdim(-2)
        };
        let count = values.node.shape.last().copied().unwrap_or(0);
        let random = Tensor::rand([self.n, count], 1).cast(values.node.dtype) - 0.5;
        let (perpendicular, _) = qr(call, &step(&step(&random)))?;
        Ok(step(&perpendicular))
    }

    fn eps(&self) -> f64 {
        if self.diagonal.node.dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() }
    }

    /// `x` of `(t - value) @ x = b`, column by column, with rows exchanged; pivots of 0 count as a rounding.
    fn solved(&self, values: &Tensor, b: &Tensor) -> Tensor {
        let least = self.eps();
        let inits = [values.ones_like(), values.zeros_like(), values.zeros_like()];
        let inputs = [&self.diagonal, &self.before(), &self.below, b];
        // Each step is given the row before, of which two entries are left, and what it comes to.
        let ([pivot, _, rest], [pivots, next, third, sums]) =
            scan(inputs, -2, ScanOrder::new(), inits, |[p, q, y], [own, before, after, b]| {
                let own = own - values;
                let is_exchanged = before.abs().gt(p.abs());
                let either = |a: &Tensor, b: &Tensor| is_exchanged.where_(a, b);
                let pivot = either(before, p);
                let factor = either(p, before) / &pivot;
                let p_next = either(q, &own) - &factor * either(&own, q);
                let p_next = p_next.abs().lt(least).where_(least, p_next);
                let q_next = is_exchanged.where_(-&factor * after, after);
                let y_next = either(y, b) - &factor * either(b, y);
                let none = after.zeros_like();
                let row = [pivot, either(&own, q), is_exchanged.where_(after, none), either(b, y)];
                ([p_next, q_next, y_next], row)
            });
        let last = rest / pivot;
        let inits = [last.clone(), last.zeros_like()];
        let (_, [x]) = scan(
            [&pivots, &next, &third, &sums],
            -2,
            ScanOrder::new().reverse(),
            inits,
            |[x, after], [pivot, next, third, sum]| {
                let own = (sum - next * x - third * after) / pivot;
                ([own.clone(), x.clone()], [own])
            },
        );
        Tensor::cat([x.slice(-2, 1..at(self.n)), last.unsqueeze(-2)], -2)
    }
}
