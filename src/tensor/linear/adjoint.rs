//! What reaches a matrix, of what reaches its parts: formulas, instead of back through every step that has found these. They
//! are of the operations themselves, so that they have gradients too.
//!
//! M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
//! differentiation", 2008.

use super::parts::{row_numbers, swapped};
use crate::tensor::make::create::counting;
use crate::{Result, Tensor};

/// Of a function that reads the lower triangle alone.
fn lower_half(x: &Tensor) -> Tensor {
    let n = x.known().map_or(0, |(shape, _)| shape[shape.rank() - 1]);
    let (down, across) = (row_numbers(n), counting(n));
    down.gt(&across).where_(x + swapped(x), down.eq(&across).where_(x, 0.0))
}

/// Quotients by differences, and 0 of what is equal.
fn over(x: &Tensor, differences: &Tensor) -> Tensor {
    let is_none = differences.eq(0.0);
    is_none.where_(0.0, x / is_none.where_(1.0, differences))
}

/// Of eigenvalues.
pub(super) fn of_eigenvalues(g: &Tensor, x: &Tensor) -> Result<Vec<Tensor>> {
    let (_, v) = x.eigh();
    Ok(vec![lower_half(&(&v * g.unsqueeze(-2)).matmul(swapped(&v)))])
}

/// Of eigenvectors, those of equal values apart.
pub(super) fn of_eigenvectors(g: &Tensor, x: &Tensor) -> Result<Vec<Tensor>> {
    let (w, v) = x.eigh();
    let gaps = w.unsqueeze(-2) - w.unsqueeze(-1);
    let inner = over(&swapped(&v).matmul(g), &gaps);
    Ok(vec![lower_half(&v.matmul(inner).matmul(swapped(&v)))])
}

/// Of singular values.
pub(super) fn of_singular_values(g: &Tensor, x: &Tensor) -> Result<Vec<Tensor>> {
    let (u, _, vh) = x.svd();
    Ok(vec![(u * g.unsqueeze(-2)).matmul(vh)])
}

/// Of the left vectors of a matrix with at least as many rows as columns.
pub(super) fn of_left_vectors(g: &Tensor, x: &Tensor) -> Result<Vec<Tensor>> {
    let (u, s, vh) = x.svd();
    let own = swapped(&u).matmul(g);
    let within = turning(&own, &s) * s.unsqueeze(-2);
    let beyond = (g - u.matmul(own)) / s.unsqueeze(-2);
    Ok(vec![(u.matmul(within) + beyond).matmul(vh)])
}

/// Of its right vectors, which are rows.
pub(super) fn of_right_vectors(g: &Tensor, x: &Tensor) -> Result<Vec<Tensor>> {
    let (u, s, vh) = x.svd();
    let own = vh.matmul(swapped(g));
    let within = turning(&own, &s) * s.unsqueeze(-1);
    let beyond = (g - swapped(&own).matmul(&vh)) / s.unsqueeze(-1);
    Ok(vec![u.matmul(within.matmul(&vh) + beyond)])
}

/// How directions turn into each other.
fn turning(x: &Tensor, s: &Tensor) -> Tensor {
    let squares = s.square();
    over(&(x - swapped(x)), &(squares.unsqueeze(-2) - squares.unsqueeze(-1)))
}

/// Of an inverse.
pub(super) fn of_inverse(g: &Tensor, inverse: &Tensor) -> Result<Vec<Tensor>> {
    let turned = swapped(inverse);
    Ok(vec![-turned.matmul(g).matmul(&turned)])
}

/// Of the solutions `y` of a system.
pub(super) fn of_solutions(g: &Tensor, a: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    let of_right = swapped(a).solve(g);
    Ok(vec![-of_right.matmul(swapped(y)), of_right])
}

/// Of the triangle of Cholesky's decomposition.
pub(super) fn of_triangle(g: &Tensor, lower: &Tensor) -> Result<Vec<Tensor>> {
    let n = lower.known()?.0.last().copied().unwrap_or(0);
    let (down, across) = (row_numbers(n), counting(n));
    let product = swapped(lower).matmul(g);
    let half = down.gt(&across).where_(&product, down.eq(&across).where_(&product * 0.5, 0.0));
    let turned = swapped(lower);
    let left = turned.solve_triangular(half, true, true, false);
    let both = swapped(&turned.solve_triangular(swapped(&left), true, true, false));
    Ok(vec![lower_half(&((&both + swapped(&both)) * 0.5))])
}

/// Of a triangle, and of right-hand sides, whose solutions are `y`.
pub(super) fn of_triangle_solved(
    g: &Tensor,
    t: &Tensor,
    y: &Tensor,
    is_upper: bool,
    is_unit: bool,
) -> Result<Vec<Tensor>> {
    let of_right = swapped(t).solve_triangular(g, !is_upper, true, is_unit);
    let all = -of_right.matmul(swapped(y));
    let apart = isize::from(is_unit);
    Ok(vec![if is_upper { all.triu(apart) } else { all.tril(-apart) }, of_right])
}
