//! Householder's reflections, which make a matrix an upper triangle without changing lengths.

use super::parts::{
    Entries, UNROLLED, column, entries, in_loops, joined, lengthened, row, row_numbers, rows,
};
use crate::{DType, Tensor};

/// Rows and columns of a matrix, and the columns that are to be a triangle.
#[derive(Clone, Copy)]
pub(super) struct Reflections {
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) triangle: usize,
}

impl Reflections {
    /// All columns after the reflections that make an upper triangle of the first ones, below which are roundings. As in LAPACK, what
    /// is on the diagonal has the other sign of what was there, or stays where there is nothing below.
    pub(super) fn run(self, x: &Tensor) -> Tensor {
        match (self.steps(), self.rows <= UNROLLED) {
            (0, _) => x.clone(),
            (_, true) => joined(&self.of_entries(entries(x, self.rows, self.width))),
            (_, false) => self.of_matrix(x),
        }
    }

    fn steps(self) -> usize {
        self.triangle.min(self.rows.saturating_sub(1))
    }

    fn of_entries(self, mut x: Entries) -> Entries {
        for k in 0..self.steps() {
            let (above, below) = x.split_at_mut(k + 1);
            let top = &mut above[k];
            let own: Vec<Tensor> = below.iter().map(|line| line[k].clone()).collect();
            let product = |j: usize, below: &[Vec<Tensor>]| {
                let terms = own.iter().zip(below).map(|(own, line)| own * &line[j]);
                terms.reduce(|sum, term| sum + term)
            };
            let Some(squares) = product(k, below) else { continue };
            let Reflection { result, first, scale } = Reflection::new(&top[k], &squares);
            for j in k + 1..self.width {
                let Some(sum) = product(j, below) else { continue };
                let share = (&top[j] * &first + sum) * &scale;
                top[j] = &top[j] - &first * &share;
                for (own, line) in own.iter().zip(below.iter_mut()) {
                    line[j] = &line[j] - own * &share;
                }
            }
            top[k] = result;
        }
        x
    }

    fn of_matrix(self, x: &Tensor) -> Tensor {
        let down = row_numbers(in_loops(self.rows));
        let mut x = lengthened(x, self.rows);
        for k in 0..self.steps() {
            let number = k as i64;
            let below = down.gt(number).where_(column(&x, k), 0.0);
            let sums = (&below * &x).sum_keepdim(-2);
            let top = row(&x, k);
            let Reflection { first, scale, .. } = Reflection::new(&column(&top, k), &column(&sums, k));
            let share = (top * &first + sums) * scale;
            x = &x - down.eq(number).where_(first, below) * share;
        }
        rows(&x, 0, self.rows)
    }
}

/// The reflection by `v`, which is a column from its diagonal on but for the first element: `1 - scale * v @ vᵀ`.
pub(super) struct Reflection {
    /// What it makes of the element on the diagonal.
    pub(super) result: Tensor,
    /// The first element of `v`.
    pub(super) first: Tensor,
    pub(super) scale: Tensor,
}

impl Reflection {
    /// Of the element on the diagonal, and the sum of squares below.
    pub(super) fn new(diagonal: &Tensor, squares: &Tensor) -> Reflection {
        let norm = (squares + diagonal.square()).sqrt();
        let result = diagonal.ge(0.0).where_(-&norm, &norm);
        let first = diagonal - &result;
        // Far below what rounding has made of a column of magnitude 1, squares have no digits left.
        let least = if diagonal.node.dtype == DType::F64 { 1e-200 } else { 1e-30 };
        let is_none = squares.le(least);
        let scale = is_none.where_(0.0, -(&result * &first).reciprocal());
        Reflection { result: is_none.where_(diagonal, result), first, scale }
    }
}

/// Powers of two, by which the columns of a matrix are divided for their squares to be in range: a row of them.
pub(super) fn scales(x: &Tensor) -> Tensor {
    let greatest = x.abs().max_keepdim(-2);
    greatest.eq(0.0).where_(1.0, greatest.log2().floor().exp2())
}
