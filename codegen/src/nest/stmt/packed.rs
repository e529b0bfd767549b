//! What helpers of a core do with the factors of a contraction.

use super::Expr;
use crate::DType;
use crate::nest::variable::Var;

/// Packed rows, a panel of packed columns, and their sums; or few rows, and columns as memory has them.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct TileProduct {
    /// Of all three: a float or an integer of 32 or 64 bits. Of BF16 the sums are `F32`, and so are packed factors, which are
    /// pairs; of few rows they are elements of memory.
    pub dtype: DType,
    /// The array of the rows.
    pub left: Var,
    /// Where the rows begin.
    pub left_at: Expr,
    /// Elements from row to row.
    pub left_row: u64,
    /// Elements from term to term.
    pub left_term: u64,
    /// The array of the columns.
    pub right: Var,
    /// Where the panel begins.
    pub right_at: Expr,
    /// Elements from term to term, the columns of one being neighbours; of `lines` from column to column, whose terms are.
    pub right_row: u64,
    /// Whether the terms of a column are neighbours: of few rows.
    pub lines: bool,
    /// The array of the sums.
    pub sums: Var,
    /// Where the first is.
    pub sums_at: Expr,
    /// Elements from row to row.
    pub sums_row: u64,
    /// Terms.
    pub depth: Expr,
    /// Columns, a multiple of 16 unless they are `lines`.
    pub width: Expr,
    /// Whether the sums have begun.
    pub adds: Expr,
    /// How many rows there are if not six. Of packed ones there are whole sixes, of sums as well.
    pub rows: Option<Expr>,
    /// Whether they are few: then their terms are neighbours.
    pub few: bool,
    /// Whether rows in memory are read by no other block, and so are not in a cache.
    pub streams: bool,
}

/// Lines whose elements of one place become neighbours: sixteen, or as many as it says.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Turning {
    /// Of the elements: two, four or eight bytes.
    pub dtype: DType,
    /// The array that gets them.
    pub to: Var,
    /// Where the first is put.
    pub to_at: Expr,
    /// Elements from those of one place to those of the next.
    pub to_row: u64,
    /// The array or buffer of the lines.
    pub from: Var,
    /// Where the first line begins.
    pub from_at: Expr,
    /// Elements from line to line.
    pub from_row: u64,
    /// Elements of a line.
    pub depth: Expr,
    /// How many lines there are if not sixteen.
    pub rows: Option<Expr>,
}

impl Turning {
    /// Whether such elements are turned in registers.
    pub(crate) fn takes(dtype: DType) -> bool {
        dtype.size() > 1
    }
}

/// Packed terms of BF16, in `F32`, that become pairs of neighbouring terms, in place, where the processor multiplies such. Where
/// it does not they stay, and for everything but a product of BF16 they are gone.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Pairing {
    /// The array.
    pub array: Var,
    /// Where the first is.
    pub at: Expr,
    /// Elements from line to line.
    pub row: u64,
    /// Terms.
    pub depth: Expr,
    /// The elements of a line of one term, or how many lines there are.
    pub count: Expr,
    /// Whether each line has the terms of a row.
    pub along: bool,
}
