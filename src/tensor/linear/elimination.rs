//! Gaussian elimination with rows exchanged: what LU, determinants and solving have in common.

use super::parts::{
    Entries, MANY, PANEL, Panel, UNROLLED, at, column, columns, entries, identities, in_loops, joined,
    lengthened, lines, panels, row, row_numbers, rows, short_rows, turned,
};
use super::{routine, substitution};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::position::gather::taken_along;
use crate::{DType, Result, Tensor};

/// Which columns and rows an elimination goes over.
#[derive(Clone, Copy)]
pub(super) struct Elimination {
    /// Rows of the matrix.
    pub(super) rows: usize,
    /// Columns before all others that only have their rows exchanged.
    pub(super) passive: usize,
    /// Columns after those of which each has a pivot in turn.
    pub(super) pivots: usize,
    /// All columns; from those after the pivots' multiples of the pivots' rows are subtracted as well.
    pub(super) width: usize,
}

impl Elimination {
    /// The upper triangle. Below a pivot stays what it has to be divided by the pivot to be the factor of its row. The pivot of a
    /// column is the first of its greatest entries; where all are 0 nothing is subtracted, as in LAPACK.
    pub(super) fn run(self, x: &Tensor) -> Tensor {
        match (self.steps(), self.rows <= UNROLLED) {
            (0, _) => x.clone(),
            (_, true) => joined(&self.of_entries(entries(x, self.rows, self.width)).0),
            (_, false) if self.pivots < MANY => self.of_matrix(x),
            (_, false) => self.of_panels(x),
        }
    }

    fn steps(self) -> usize {
        self.pivots.min(self.rows.saturating_sub(1))
    }

    /// The same of entries, with whether rows were exchanged, pair by pair.
    pub(super) fn of_entries(self, mut x: Entries) -> (Entries, Vec<Tensor>) {
        let mut exchanges = Vec::new();
        for k in 0..self.steps() {
            let own = k + self.passive;
            exchanges.extend(exchange(&mut x, k, own));
            for i in k + 1..self.rows {
                let pivot = &x[k][own];
                let factor = pivot.eq(0.0).where_(0.0, &x[i][own] / pivot);
                for j in own + 1..x[i].len() {
                    x[i][j] = &x[i][j] - &factor * &x[k][j];
                }
            }
        }
        (x, exchanges)
    }

    /// A panel of pivots at a time: what stands beside it has its rows exchanged as the panel has, then the pivots' rows are solved for, and
    /// from the others a product is subtracted.
    fn of_panels(self, x: &Tensor) -> Tensor {
        let (mut rest, mut done) = (x.clone(), Vec::new());
        for Panel { first, end } in panels(self.steps(), PANEL) {
            let (count, height) = (end - first, self.rows - first);
            let [begin, after] = [first, end].map(|column| column + self.passive);
            let numbers = row_numbers(height).cast(x.node.dtype);
            let numbers = numbers.broadcast_to(column(&rest, 0).node.shape.clone());
            let own = Elimination { rows: height, passive: 1, pivots: count, width: count + 1 };
            let own = own.of_matrix(&Tensor::cat([&numbers, &columns(&rest, begin, after)], -1));
            let (order, own) = (column(&own, 0).cast(DType::I64), columns(&own, 1, count + 1));
            let exchanged = |first, end| taken_along(&columns(&rest, first, end), &order, -2);
            let (before, beside) = (exchanged(0, begin), exchanged(after, self.width));
            let factors = factors(&own);
            let solved =
                substitution::substituted(&rows(&factors, 0, count), &rows(&beside, 0, count), count, true);
            let reduced = rows(&beside, count, height) - rows(&factors, count, height).matmul(&solved);
            let line = |from, to, beside: &Tensor| {
                Tensor::cat([&rows(&before, from, to), &rows(&own, from, to), beside], -1)
            };
            done.push(line(0, count, &solved));
            rest = line(count, height, &reduced);
        }
        done.push(rest);
        Tensor::cat(&done, -2)
    }

    fn of_matrix(self, x: &Tensor) -> Tensor {
        let mut x = lengthened(x, self.rows);
        let (down, across) = (row_numbers(in_loops(self.rows)), counting(self.width));
        for k in 0..self.steps() {
            let own = k + self.passive;
            let Exchanged { exchanged, pivots, below } = Exchanged::new(&x, k, own, &down);
            let pivot = column(&pivots, own);
            let is_below = down.gt(k as i64).logical_and(pivot.ne(0.0));
            let factor = is_below.where_(below / pivot, 0.0);
            x = exchanged - factor * across.gt(own as i64).where_(pivots, 0.0);
        }
        rows(&x, 0, self.rows)
    }
}

/// What an elimination has subtracted multiples of rows by, below its pivots.
pub(super) fn factors(x: &Tensor) -> Tensor {
    let pivots = x.diagonal(0, -2, -1).unsqueeze(-2);
    pivots.eq(0.0).where_(0.0, x / pivots)
}

/// A matrix whose row `k` is the one with the pivot of a column.
struct Exchanged {
    exchanged: Tensor,
    /// The row of the pivot.
    pivots: Tensor,
    /// The column, in which below the pivot nothing has changed.
    below: Tensor,
}

impl Exchanged {
    fn new(x: &Tensor, k: usize, own: usize, rows: &Tensor) -> Exchanged {
        let number = k as i64;
        // Of all columns, of which one counts: so the step before is computed as a whole, and stored with what is found here.
        let greatest = column(&rows.lt(number).where_(-1.0, x.abs()).argmax_keepdim(-2), own);
        let pivots = taken_along(x, &greatest, -2);
        let is_pivot = rows.eq(&greatest);
        let top = row(x, k);
        let below = is_pivot.where_(column(&top, own), column(x, own));
        let exchanged = rows.eq(number).where_(&pivots, is_pivot.where_(top, x));
        Exchanged { exchanged, pivots, below }
    }
}

/// Exchanges the row `k` with the one whose entry in a column is the first of the greatest from it on; which one that is.
fn exchange(x: &mut Entries, k: usize, own: usize) -> Vec<Tensor> {
    let mut greatest = x[k][own].abs();
    let mut chosen: Vec<Tensor> = Vec::new();
    for line in &x[k + 1..] {
        let entry = line[own].abs();
        let is_greater = entry.gt(&greatest);
        for earlier in &mut chosen {
            *earlier = is_greater.logical_not().logical_and(&*earlier);
        }
        greatest = is_greater.where_(entry, greatest);
        chosen.push(is_greater);
    }
    let (above, below) = x.split_at_mut(k + 1);
    let first = above[k].clone();
    for (line, is_chosen) in below.iter_mut().zip(&chosen) {
        for ((top, entry), old) in above[k].iter_mut().zip(line).zip(&first) {
            *top = is_chosen.where_(&*entry, &*top);
            *entry = is_chosen.where_(old, &*entry);
        }
    }
    chosen
}

/// `x` of `a @ x = b`, of a matrix with `n` rows and `b` with `n` rows of `width`.
pub(super) fn solved(call: Call, a: &Tensor, b: &Tensor, n: usize, width: usize) -> Result<Tensor> {
    match width > 0 && routine::takes_of(a, n) && routine::takes(b) {
        true => {
            let decomposition = move |of: &[Tensor]| Ok(solved_decomposed(&of[0], &of[1], n, width));
            routine::record_one(call, Routine::Solve, &[a, b], decomposition)
        }
        false => Ok(solved_decomposed(a, b, n, width)),
    }
}

fn solved_decomposed(a: &Tensor, b: &Tensor, n: usize, width: usize) -> Tensor {
    let all = Elimination { rows: n, passive: 0, pivots: n, width: n + width };
    if n > UNROLLED {
        let done = all.run(&Tensor::cat([a, b], -1));
        let (triangle, b) = (columns(&done, 0, n), columns(&done, n, n + width));
        return substitution::substituted(&turned(&triangle), &b.flip(-2), n, false).flip(-2);
    }
    // Rows of `b` are entries like others, which broadcast: a kernel goes over its columns.
    let with_b = short_rows(a, n, n).into_iter().zip(lines(b, n));
    let (done, _) = all.of_entries(
        with_b
            .map(|(mut line, b)| {
                line.push(b);
                line
            })
            .collect(),
    );
    let triangle: Entries = done.iter().rev().map(|line| line[..n].iter().rev().cloned().collect()).collect();
    let b: Vec<Tensor> = done.iter().rev().filter_map(|line| line.last().cloned()).collect();
    let mut x = substitution::of_entries(&triangle, &b, false);
    x.reverse();
    Tensor::stack(x, -2)
}

/// The inverse of a matrix with `n` rows.
pub(super) fn inverse(call: Call, a: &Tensor, n: usize) -> Result<Tensor> {
    match routine::takes_of(a, n) {
        true => routine::record_one(call, Routine::Inverse, &[a], move |a| Ok(inverse_decomposed(&a[0], n))),
        false => Ok(inverse_decomposed(a, n)),
    }
}

fn inverse_decomposed(a: &Tensor, n: usize) -> Tensor {
    let identity = identities(a, n);
    if n <= UNROLLED || n >= MANY {
        return solved_decomposed(a, &identity, n, n);
    }
    // Gauss and Jordan's way: above the pivots as well, so that nothing is left to be solved.
    let mut x = lengthened(&Tensor::cat([a, &identity], -1), n);
    let down = row_numbers(in_loops(n));
    for k in 0..n {
        let Exchanged { exchanged, pivots, below } = Exchanged::new(&x, k, k, &down);
        let scaled = &pivots / column(&pivots, k);
        x = down.eq(k as i64).where_(&scaled, exchanged - below * &scaled);
    }
    rows(&x, 0, n).slice(-1, at(n)..)
}
