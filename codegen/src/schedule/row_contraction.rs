//! Contractions whose left factor needs reductions of its rows: attention, and layers after a normalisation.

use super::contraction::{Contraction, Product};
use super::share::{COLUMNS, FEWEST_TERMS, PANEL, TILE_ROWS};
use crate::index::AxisId;
use crate::ir::{AxisKind, AxisSet, Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, Language, ReduceOp};

/// Blocks that keep all cores busy, and multiplications of one that are worth dividing it.
const BLOCKS: u64 = 3;
const DIVIDED: u64 = 1 << 23;

/// Terms that are packed together.
const DEPTH: u64 = 256;

/// How a core computes it: a block has whole rows of the left factor, so that their reductions are known before it is
/// multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RowContractionSchedule {
    /// Rows of a block.
    pub rows: u32,
    /// Columns, or elements of the rows, that are packed together.
    pub columns: u32,
    /// Terms that are packed together.
    pub depth: u32,
}

/// A contraction of rows.
#[derive(Clone, Debug)]
pub(crate) struct RowContraction {
    /// The sum at the end.
    pub(crate) contraction: Contraction,
    /// Its left factor's.
    pub(crate) along: AxisId,
    /// What the rows are made of by products: sums along other axes.
    pub(crate) scores: Vec<Contraction>,
    /// Reductions of the rows, each after those that it depends on.
    pub(crate) statistics: Vec<ValueId>,
}

/// Elements of a row with those that fill its last panel.
pub(crate) fn padded(kernel: &Kernel, axis: AxisId) -> u64 {
    kernel.axis(axis).extent.next_multiple_of(PANEL)
}

/// Whether each store is of results of a row, and at a place of its own for each.
fn is_stored(kernel: &Kernel, map: &[AxisId]) -> bool {
    let is_result = |axis: &AxisId| kernel.axis(*axis).kind != AxisKind::Reduce;
    kernel.stores.iter().all(|store| {
        kernel.value(store.value).axes.iter().all(is_result)
            && store.index.axes().iter().all(is_result)
            && map.iter().all(|&axis| store.index.uses(axis))
    })
}

impl RowContraction {
    /// The kernel as a contraction of rows.
    pub(crate) fn of(kernel: &Kernel, language: Language) -> Option<RowContraction> {
        let map = kernel.axes_of_kind(AxisKind::Map);
        let (&column, outer) = map.split_last()?;
        let below = kernel.down_from(kernel.stores.iter().map(|store| store.value));
        let is_reduced = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        let of_columns = |id: &ValueId| is_reduced(id) && kernel.value(*id).axes.contains(&column);
        let mut sums = below.iter().copied().filter(of_columns);
        let (sum, None) = (sums.next()?, sums.next()) else { return None };
        let (along, left, right) = product(kernel, sum, column)?;
        let (value, terms) = (kernel.value(sum), kernel.axis(along));
        let right_side = kernel.down_from([right]);
        let has = |id: ValueId, axis: &AxisId| kernel.value(id).axes.contains(axis);
        if terms.is_argument
            || !matches!(value.dtype, DType::F32 | DType::F64)
            || right_side.iter().any(is_reduced)
        {
            return None;
        }
        let mut found = RowContraction {
            contraction: Contraction {
                dtype: value.dtype,
                sum: value.dtype,
                products: vec![Product { sum, left, right }],
                batch: Vec::new(),
                rows: Vec::new(),
                lines: Vec::new(),
                column,
                depth: vec![along],
                statistics: Vec::new(),
                windows: None,
            },
            along,
            scores: Vec::new(),
            statistics: Vec::new(),
        };
        let mut packed: AxisSet = kernel.value(right).axes.clone();
        for &id in below.iter().filter(|&&id| id != sum) {
            match &kernel.value(id).op {
                ValueOp::Scan { .. }
                | ValueOp::Carry { .. }
                | ValueOp::Last { .. }
                | ValueOp::Scatter { .. }
                | ValueOp::Sort { .. } => return None,
                ValueOp::Reduce { axes, .. } if axes.as_slice() == [along] => found.statistics.push(id),
                ValueOp::Reduce { axes, .. } => match found.score(kernel, id) {
                    Some(score) => {
                        packed.extend(&kernel.value(score.products[0].right).axes);
                        found.scores.push(score);
                    }
                    // Of few elements, a loop for each.
                    None if positions(kernel, axes) <= super::share::MOST_IN_THREAD => {}
                    None => return None,
                },
                _ => {}
            }
        }
        for axis in outer {
            match (packed.contains(axis), has(left, axis)) {
                (true, _) if !has(left, axis) => return None,
                (true, _) => found.contraction.batch.push(*axis),
                (false, true) => found.contraction.rows.push(*axis),
                (false, false) => return None,
            }
        }
        for score in &mut found.scores {
            score.batch.clone_from(&found.contraction.batch);
            score.rows.clone_from(&found.contraction.rows);
        }
        let has_rows = !found.statistics.is_empty() || !found.scores.is_empty();
        let pays = super::share::is_packed(
            positions(kernel, &found.contraction.rows),
            kernel.axis(column).extent,
            terms.extent,
        );
        let is_near = language == Language::Cuda || found.most_rows(kernel) > 0;
        (is_stored(kernel, &map) && has_rows && pays && is_near).then_some(found)
    }

    /// A reduction as a sum of products that the rows are made of.
    fn score(&self, kernel: &Kernel, id: ValueId) -> Option<Contraction> {
        let is_reduced = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        let is_plain = |id| !kernel.down_from([id]).iter().any(is_reduced);
        let (depth, left, right) = product(kernel, id, self.along)?;
        let is_score = kernel.value(id).dtype == self.contraction.dtype
            && !kernel.axis(depth).is_argument
            && kernel.axis(depth).extent >= FEWEST_TERMS
            && is_plain(left)
            && is_plain(right);
        is_score.then(|| Contraction {
            products: vec![Product { sum: id, left, right }],
            column: self.along,
            depth: vec![depth],
            ..self.contraction.clone()
        })
    }

    /// Rows of a block as far as a cache holds them.
    fn most_rows(&self, kernel: &Kernel) -> u64 {
        let arrays = self.scores.len().max(1) as u64;
        let length = kernel.axis(self.along).extent;
        super::share::rows_of_block(length, self.contraction.dtype.size() as u64, arrays)
    }

    /// How a core computes it.
    pub(crate) fn schedule(&self, kernel: &Kernel) -> RowContractionSchedule {
        let Contraction { rows, batch, column, .. } = &self.contraction;
        // What is an argument counts as one block: the text is for every extent.
        let known = |axes: &[AxisId], otherwise: u64| match axes.split_first() {
            Some((&first, rest)) if kernel.axis(first).is_argument => positions(kernel, rest) * otherwise,
            _ => positions(kernel, axes),
        };
        let (all, batch) = (known(rows, self.most_rows(kernel)), known(batch, 1));
        let mut of_block = self.most_rows(kernel).min(all.next_multiple_of(TILE_ROWS));
        let terms: u64 = self.scores.iter().map(|score| positions(kernel, &score.depth)).sum();
        let of_row = kernel.axis(self.along).extent * (kernel.axis(*column).extent + terms);
        while batch * all.div_ceil(of_block) < BLOCKS && of_block.saturating_mul(of_row) >= DIVIDED {
            of_block = (of_block / 2).next_multiple_of(TILE_ROWS);
        }
        // As many in each.
        of_block = all.div_ceil(all.div_ceil(of_block)).next_multiple_of(TILE_ROWS);
        // What is packed takes as little of a stack of doubles.
        let most = COLUMNS * 4 / self.contraction.dtype.size() as u64;
        let columns = padded(kernel, *column).max(padded(kernel, self.along)).min(most);
        let depths = self.scores.iter().flat_map(|score| &score.depth).chain([&self.along]);
        let depth = depths.map(|&axis| kernel.axis(axis).extent).max().unwrap_or(1).min(DEPTH);
        RowContractionSchedule { rows: of_block as u32, columns: columns as u32, depth: depth as u32 }
    }
}

/// A sum of products along one axis: that axis, the factor that does not vary over the column, and the one that does.
fn product(kernel: &Kernel, sum: ValueId, column: AxisId) -> Option<(AxisId, ValueId, ValueId)> {
    let ValueOp::Reduce { op: ReduceOp::Sum, axes, operand, position: None } = &kernel.value(sum).op else {
        return None;
    };
    let (&[axis], ValueOp::Binary(BinaryOp::Mul, a, b)) = (axes.as_slice(), &kernel.value(*operand).op)
    else {
        return None;
    };
    let has = |id: ValueId, axis: AxisId| kernel.value(id).axes.contains(&axis);
    let (left, right) = if has(*b, column) { (*a, *b) } else { (*b, *a) };
    let fits = has(right, column) && !has(left, column) && has(left, axis) && has(right, axis);
    fits.then_some((axis, left, right))
}

pub(super) fn positions(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}
