//! Contractions of few rows on a core: each element of the right factor is used a few times alone, so that it is read as memory
//! has it, once for all rows.

use super::contraction::{Contraction, ContractionSchedule, Product, consecutive_along};
use super::depth::positions;
use super::share::{FEWEST_ROWS, PANEL, TILE_ROWS, VECTOR};
use crate::DType;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};

/// Rows that are few: what is read for them is not worth packing.
pub(super) const FEW_ROWS: u64 = 16;

/// Terms whose columns are gone through side by side then, more of fewer columns; columns of such a block, and blocks.
pub(crate) const FEW_TERMS: u64 = 16;
const THIN_COLUMNS: u64 = 512;
const THIN_BLOCKS: u64 = 8;

/// Terms of a column that are read at a time, where these are neighbours in memory, and columns that pay for fewer rows than
/// are packed.
const LONG_TERMS: u64 = 2048;
const MANY_LINES: u64 = 128;

/// Columns of a block.
pub(super) fn thin_columns(columns: u64) -> u64 {
    (columns / THIN_BLOCKS).next_multiple_of(PANEL).clamp(PANEL, THIN_COLUMNS)
}

impl Contraction {
    /// Whether rows are so few that the right factor is gone through as it is in memory.
    pub(super) fn is_thin(&self, kernel: &Kernel) -> bool {
        let is_few = positions(kernel, &self.rows) <= FEW_ROWS;
        is_few && self.lines.is_empty() && self.depth.len() == 1 && !self.is_upright(kernel)
    }

    /// Whether columns are few as well, and neighbouring rows are neighbours in memory: turning these would cost more than
    /// packing both.
    fn is_upright(&self, kernel: &Kernel) -> bool {
        let Some(&row) = self.rows.last() else { return false };
        let columns = kernel.axis(self.column);
        let is_across = |product: &Product| {
            consecutive_along(kernel, product.left, row, self.depth[0])
                && !self.goes_along_terms(kernel, product.right)
        };
        !columns.is_argument && columns.extent <= PANEL && self.products.iter().all(is_across)
    }

    /// Whether fewer rows than are packed pay for it.
    pub(super) fn pays_thin(&self, kernel: &Kernel, rows: u64, columns: u64) -> bool {
        let pays = match self.are_lines(kernel) {
            // One row is one of a reduction of rows.
            true => rows > 1 && columns >= MANY_LINES && !self.has_lifts(),
            false => columns >= THIN_COLUMNS,
        };
        rows < FEWEST_ROWS && self.is_thin(kernel) && pays
    }

    /// Finds out how the rows go through the columns together, if these are multiplied.
    pub(super) fn goes_with_few_rows(&mut self, kernel: &Kernel) {
        let is_there = |product: &Product| {
            self.goes_along_terms(kernel, product.right)
                || self.is_in_memory(kernel, product.right, DType::BF16)
        };
        self.is_paired = self.has_pairs(kernel) && self.products.iter().all(is_there);
        self.is_few = !self.has_lifts();
    }

    /// Whether neighbouring terms of a right factor are neighbours in memory, and columns are not.
    pub(crate) fn goes_along_terms(&self, kernel: &Kernel, right: ValueId) -> bool {
        consecutive_along(kernel, right, self.depth[0], self.column)
    }

    /// Whether a right factor's columns are neighbours in memory, in this dtype, and fill vectors.
    fn is_in_memory(&self, kernel: &Kernel, right: ValueId, dtype: DType) -> bool {
        let columns = kernel.axis(self.column);
        let is_whole = columns.extent.is_multiple_of(VECTOR) && !columns.is_argument;
        let load = match kernel.value(right).op {
            ValueOp::Cast(DType::F32, narrow) => narrow,
            _ => right,
        };
        match &kernel.value(load).op {
            ValueOp::Load { buffer, index, guard: None } => {
                let stride = |axis: AxisId| index.coefficient(axis);
                is_whole
                    && kernel.buffers[buffer.index()].dtype == dtype
                    && kernel.computed_axes(index).is_empty()
                    && stride(self.column) == Some(1)
                    && stride(self.depth[0]).is_some_and(|stride| stride >= 0)
            }
            _ => false,
        }
    }

    fn are_lines(&self, kernel: &Kernel) -> bool {
        self.products.iter().all(|product| self.goes_along_terms(kernel, product.right))
    }

    /// How a core computes it.
    pub(super) fn thin(&self, kernel: &Kernel) -> ContractionSchedule {
        let (column, terms) = (kernel.axis(self.column).extent, kernel.axis(self.depth[0]).extent);
        let some = thin_columns(column);
        // Memory is read line by line, some side by side.
        let (columns, depth) = match (self.are_lines(kernel), self.has_lifts()) {
            (true, false) => (some, LONG_TERMS),
            (true, true) => (PANEL, LONG_TERMS / 2),
            (false, false) => (some, FEW_TERMS * (THIN_COLUMNS / some)),
            (false, true) => (some, FEW_TERMS),
        };
        ContractionSchedule {
            rows: FEW_ROWS.next_multiple_of(TILE_ROWS) as u32,
            lines: 1,
            columns: columns as u32,
            depth: depth.min(terms) as u32,
            part: 0,
        }
    }
}
