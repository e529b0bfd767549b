//! Systems whose matrix is a lower triangle: blocks on its diagonal are inverted, all of them side by side, and then each panel of
//! rows is a product, and another one with what comes after.

use super::parts::{
    Entries, PANEL, Panel, UNROLLED, at, columns, halves, identities, lines, padded, panels, row_numbers,
    rows, short_rows,
};
use crate::Tensor;
use crate::tensor::make::create::counting;

/// `x` of `t @ x = b`. Above the diagonal nothing is read of `t`, which has `n` rows, nor the diagonal itself if it counts as 1.
pub(super) fn substituted(t: &Tensor, b: &Tensor, n: usize, is_unit: bool) -> Tensor {
    match n {
        0 => b.clone(),
        1..=UNROLLED => Tensor::stack(of_entries(&short_rows(t, n, n), &lines(b, n), is_unit), -2),
        _ => of_panels(t, b, n, is_unit),
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

fn of_panels(t: &Tensor, b: &Tensor, n: usize, is_unit: bool) -> Tensor {
    let size = PANEL.min(n.next_power_of_two());
    let inverses = inverses(&blocks(&filled(t, n, n.next_multiple_of(size), is_unit), size), size);
    let (mut rest, mut x) = (b.clone(), Vec::new());
    for (number, Panel { first, end }) in panels(n, size).enumerate() {
        let count = end - first;
        let inverse = columns(&rows(&inverses.select(-3, at(number)), 0, count), 0, count);
        let solved = inverse.matmul(rows(&rest, 0, count));
        if end < n {
            let after = columns(&rows(t, end, n), first, end).matmul(&solved);
            rest = rows(&rest, count, n - first) - after;
        }
        x.push(solved);
    }
    Tensor::cat(&x, -2)
}

/// The triangle with zeros above the diagonal and, if it is a unit one, ones on it; and with as many rows and columns as are asked for, those
/// that are new of the identity.
fn filled(t: &Tensor, n: usize, length: usize, is_unit: bool) -> Tensor {
    let (down, across) = (row_numbers(length), counting(length));
    let t = padded(t, length - n, length - n);
    let diagonal = match is_unit {
        true => t.ones_like(),
        false => across.lt(n as i64).where_(&t, 1.0),
    };
    down.gt(&across).where_(&t, down.eq(&across).where_(diagonal, 0.0))
}

/// The blocks on the diagonal of a matrix, along a new axis before the last two.
fn blocks(x: &Tensor, size: usize) -> Tensor {
    let split = [-1, at(size)];
    x.unflatten(-1, split).unflatten(-3, split).diagonal(0, -4, -2).movedim(-1, -3)
}

/// The inverses of lower triangles of `n` rows, a power of two: of both halves of the diagonal, side by side, and of what is below.
fn inverses(t: &Tensor, n: usize) -> Tensor {
    let half = n / 2;
    if n <= UNROLLED {
        return substituted(t, &identities(t, n), n, false);
    }
    let both = inverses(&blocks(t, half), half);
    let [first, second] = [0, 1].map(|number| both.select(-3, number));
    let below = -second.matmul(columns(&rows(t, half, n), 0, half)).matmul(&first);
    halves(&first, &below, &second)
}
