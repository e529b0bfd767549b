//! Parts of matrices, which are the last two axes: rows, columns, and single entries of small ones.

use crate::tensor::make::create::counting;
use crate::{DType, Tensor};

/// Up to so many rows each entry is a tensor of its own, and an algorithm one formula of them: a kernel or two for a whole batch.
pub(super) const UNROLLED: usize = 6;

/// Of fewer rows than these one thread does a sum, so that fusion may compute it anew where it is used. The loops over columns
/// count on its being stored: then each step is a kernel, and the same one.
const SHARED: usize = 9;

/// Columns of a panel: each step of a loop changes these alone, and a product what comes after them.
pub(super) const PANEL: usize = 32;

/// So many rows are worth it. Of fewer, steps that each move the whole matrix take less than the compiling of the products' kernels,
/// each of another size (`benches/notes/linear.md`).
pub(super) const MANY: usize = 640;

/// Some columns, or the rows of the same numbers.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) first: usize,
    pub(super) end: usize,
}

/// Those of so many columns, one after the other.
pub(super) fn panels(columns: usize, width: usize) -> impl Iterator<Item = Panel> {
    (0..columns).step_by(width).map(move |first| Panel { first, end: columns.min(first + width) })
}

/// The entries of a matrix, row by row.
pub(super) type Entries = Vec<Vec<Tensor>>;

/// An index as slices take it.
pub(super) fn at(index: usize) -> isize {
    isize::try_from(index).unwrap_or(isize::MAX)
}

/// Each entry, with the shape of the batch.
pub(super) fn entries(x: &Tensor, rows: usize, columns: usize) -> Entries {
    lines(x, rows).iter().map(|line| (0..columns).map(|j| line.select(-1, at(j))).collect()).collect()
}

/// Each entry as a row of one element, which broadcasts to the rows of another matrix.
pub(super) fn short_rows(x: &Tensor, rows: usize, columns: usize) -> Entries {
    lines(x, rows)
        .iter()
        .map(|line| (0..columns).map(|j| line.slice(-1, at(j)..at(j + 1))).collect())
        .collect()
}

/// Each row.
pub(super) fn lines(x: &Tensor, rows: usize) -> Vec<Tensor> {
    (0..rows).map(|i| x.select(-2, at(i))).collect()
}

/// The matrix of these entries, of which there must be one.
pub(super) fn joined(entries: &[Vec<Tensor>]) -> Tensor {
    let columns = entries.first().map_or(0, Vec::len);
    let all: Vec<&Tensor> = entries.iter().flatten().collect();
    Tensor::stack(all, -1).unflatten(-1, [at(entries.len()), at(columns)])
}

pub(super) fn column(x: &Tensor, k: usize) -> Tensor {
    columns(x, k, k + 1)
}

pub(super) fn columns(x: &Tensor, first: usize, end: usize) -> Tensor {
    x.slice(-1, at(first)..at(end))
}

pub(super) fn row(x: &Tensor, k: usize) -> Tensor {
    rows(x, k, k + 1)
}

pub(super) fn rows(x: &Tensor, first: usize, end: usize) -> Tensor {
    x.slice(-2, at(first)..at(end))
}

/// The numbers of rows, as a column.
pub(super) fn row_numbers(rows: usize) -> Tensor {
    counting(rows).unsqueeze(1)
}

/// The numbers of rows in another dtype, for loops that follow another loop: what both compare with would be one node, which many
/// read, and be stored.
pub(super) fn other_row_numbers(rows: usize) -> Tensor {
    row_numbers(rows).cast(DType::I32)
}

/// How many rows a loop over the columns of so many rows has.
pub(super) fn in_loops(rows: usize) -> usize {
    rows.max(SHARED)
}

/// As many rows as a loop over columns needs, those that are missing of zeros.
pub(super) fn lengthened(x: &Tensor, rows: usize) -> Tensor {
    padded(x, in_loops(rows) - rows, 0)
}

/// More rows and columns, of zeros.
pub(super) fn padded(x: &Tensor, rows: usize, columns: usize) -> Tensor {
    let mut border = vec![(0, 0); x.node.shape.rank().saturating_sub(2)];
    border.extend([(0, at(rows)), (0, at(columns))]);
    x.pad(border, 0.0)
}

/// Some rows further down, below zeros.
pub(super) fn lowered(x: &Tensor, by: usize) -> Tensor {
    let mut border = vec![(0, 0); x.node.shape.rank().saturating_sub(2)];
    border.extend([(at(by), 0), (0, 0)]);
    x.pad(border, 0.0)
}

/// The lower triangle of which these are the halves of the diagonal, and what is below.
pub(super) fn halves(first: &Tensor, below: &Tensor, second: &Tensor) -> Tensor {
    let left = Tensor::cat([first, below], -2);
    let right = Tensor::cat([&first.zeros_like(), second], -2);
    Tensor::cat([left, right], -1)
}

pub(super) fn swapped(x: &Tensor) -> Tensor {
    x.transpose(-1, -2)
}

/// Upside down and from right to left: an upper triangle becomes a lower one.
pub(super) fn turned(x: &Tensor) -> Tensor {
    x.flip([-2, -1])
}

/// The identity, for each matrix of a batch that `x` is a batch of.
pub(super) fn identities(x: &Tensor, n: usize) -> Tensor {
    let mut shape = x.node.shape.to_vec();
    shape.truncate(shape.len().saturating_sub(2));
    shape.extend([n, n]);
    Tensor::eye(n, x.node.dtype).broadcast_to(shape)
}
