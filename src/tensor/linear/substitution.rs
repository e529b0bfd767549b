//! Systems whose matrix is a lower triangle, solved from the first row on.

use super::parts::{
    Entries, UNROLLED, column, in_loops, lengthened, lines, other_row_numbers, row, rows, short_rows,
};
use crate::Tensor;

/// `x` of `t @ x = b`. Above the diagonal nothing is read of `t`, which has `n` rows, nor the diagonal itself if it counts as 1.
pub(super) fn substituted(t: &Tensor, b: &Tensor, n: usize, is_unit: bool) -> Tensor {
    match n {
        0 => b.clone(),
        1..=UNROLLED => Tensor::stack(of_entries(&short_rows(t, n, n), &lines(b, n), is_unit), -2),
        _ => of_matrix(t, b, n, is_unit),
    }
}

pub(super) fn of_entries(t: &Entries, b: &[Tensor], is_unit: bool) -> Vec<Tensor> {
    let mut x: Vec<Tensor> = Vec::new();
    for (i, (line, b)) in t.iter().zip(b).enumerate() {
        let rest = line.iter().zip(&x).fold(b.clone(), |rest, (factor, x)| rest - factor * x);
        x.push(if is_unit { rest } else { rest / &line[i] });
    }
    x
}

fn of_matrix(t: &Tensor, b: &Tensor, n: usize, is_unit: bool) -> Tensor {
    let (t, mut x) = (lengthened(t, n), lengthened(b, n));
    let down = other_row_numbers(in_loops(n));
    for k in 0..n {
        let (number, own) = (k as i32, column(&t, k));
        // A sum of which one row counts. Others need it, so that `x` is stored: a slice would be computed anew, with all steps before.
        let sum = down.eq(number).where_(&x, 0.0).sum_keepdim(-2);
        let solved = if is_unit { sum } else { sum / row(&own, k) };
        let rest = down.gt(number).where_(&x - own * &solved, &x);
        x = down.eq(number).where_(solved, rest);
    }
    rows(&x, 0, n)
}
