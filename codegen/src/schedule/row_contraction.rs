//! Contractions whose left factor needs reductions of its rows: attention, and layers after a normalisation. And rows that are
//! made of products, and reduced, but not multiplied: the nearest of some centres, a softmax of logits.

use super::contraction::{Contraction, Product};
use super::exact::is_exact;
use super::row_blocks::{even_rows, has_all_columns, some_rows};
use super::share::{COLUMNS, FEWEST_TERMS, PANEL};
use crate::index::AxisId;
use crate::ir::{AxisKind, AxisSet, Kernel, Store, ValueId, ValueOp};
use crate::{BinaryOp, DType, Language, ReduceOp};

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
    /// The sum at the end. Without products where the rows, or their reductions, are the results (CPU): its column is what they
    /// go along.
    pub(crate) contraction: Contraction,
    /// What rows go along: an axis of the sum's left factor.
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

/// Whether each store is of results of a row, or of its elements if these are results, and at a place of its own for each.
fn is_stored(kernel: &Kernel, map: &[AxisId], elements: Option<AxisId>) -> bool {
    let is_result = |axis: &AxisId| kernel.axis(*axis).kind != AxisKind::Reduce;
    kernel.stores.iter().all(|store| {
        let value = kernel.value(store.value);
        let is_element = elements.is_some_and(|along| store.index.uses(along));
        let fits = |axis: &AxisId| is_result(axis) || is_element && elements == Some(*axis);
        value.axes.iter().all(fits)
            && store.index.axes().iter().all(fits)
            && map.iter().all(|&axis| store.index.uses(axis))
    })
}

impl RowContraction {
    /// The kernel as a contraction of rows.
    pub(crate) fn of(kernel: &Kernel, language: Language) -> Option<RowContraction> {
        let map = kernel.axes_of_kind(AxisKind::Map);
        let &column = map.last()?;
        let below = kernel.down_from(kernel.stores.iter().map(|store| store.value));
        let is_reduced = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        let of_columns = |id: &ValueId| is_reduced(id) && kernel.value(*id).axes.contains(&column);
        let mut sums = below.iter().copied().filter(of_columns);
        let mut found = match (sums.next()?, sums.next()) {
            (sum, None) => RowContraction::with_product(kernel, sum, column)?,
            _ if language == Language::C => RowContraction::without_product(kernel, &below)?,
            _ => return None,
        };
        let product = found.contraction.products.first().copied();
        let mut packed = AxisSet::default();
        packed.extend(product.iter().flat_map(|product| &kernel.value(product.right).axes));
        for &id in below.iter().filter(|&&id| product.is_none_or(|product| product.sum != id)) {
            match &kernel.value(id).op {
                ValueOp::Scan { .. }
                | ValueOp::Carry { .. }
                | ValueOp::Last { .. }
                | ValueOp::Scatter { .. }
                | ValueOp::Sort { .. } => return None,
                ValueOp::Reduce { axes, .. } if axes.as_slice() == [found.along] => found.statistics.push(id),
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
        let has = |id: &ValueId, axis: &AxisId| kernel.value(*id).axes.contains(axis);
        let outer = if product.is_some() { &map[..map.len() - 1] } else { map.as_slice() };
        for axis in outer {
            let is_of_rows = match product {
                Some(product) => has(&product.left, axis),
                None => found.statistics.iter().any(|id| has(id, axis)),
            };
            match (packed.contains(axis), is_of_rows) {
                (true, true) => found.contraction.batch.push(*axis),
                (false, true) => found.contraction.rows.push(*axis),
                (_, false) => return None,
            }
        }
        for score in &mut found.scores {
            score.batch.clone_from(&found.contraction.batch);
            score.rows.clone_from(&found.contraction.rows);
            score.is_paired = language == Language::C && score.has_pairs(kernel);
        }
        found.contraction.is_paired = language == Language::C && product.is_some() && found.has_pairs(kernel);
        // Rows of products that do not vary over all of them would be computed again for each.
        let is_of_all = |score: &Contraction| score.rows.iter().all(|axis| has(&score.products[0].sum, axis));
        if !found.scores.iter().all(is_of_all) {
            return None;
        }
        let has_rows = match product {
            Some(_) => !found.statistics.is_empty() || !found.scores.is_empty(),
            None => !found.statistics.is_empty() && !found.scores.is_empty(),
        };
        let length = kernel.axis(found.along).extent;
        let products = match language {
            Language::C => found.contraction.batches(kernel),
            Language::Cuda => 1,
        };
        let pays = super::share::is_packed_batch(
            products,
            positions(kernel, &found.contraction.rows),
            kernel.axis(found.contraction.column).extent,
            if product.is_some() { length } else { found.terms(kernel) },
        );
        let is_near = language == Language::Cuda || found.most_rows(kernel) > 0;
        let elements = product.is_none().then_some(found.along);
        (is_stored(kernel, &map, elements) && has_rows && pays && is_near).then_some(found)
    }

    /// Another form of a contraction that reduces its rows: blocks have all columns, and reduce them once. `None` if its rows are too few
    /// for that, or so long that a cache holds few.
    pub(super) fn instead(kernel: &Kernel, contraction: &Contraction) -> Option<RowContraction> {
        let is_reduced = !contraction.statistics.is_empty() && !contraction.is_few;
        let found = is_reduced.then(|| RowContraction::of(kernel, Language::C)).flatten()?;
        has_all_columns(found.schedule(kernel).rows.into()).then_some(found)
    }

    /// Whether the factors may be BF16, whose terms are multiplied in pairs: rounding them changes nothing, or the left ones are
    /// weights of a softmax, and their sums are rounded to BF16 themselves before anything follows from them.
    fn has_pairs(&self, kernel: &Kernel) -> bool {
        let product = &self.contraction.products[0];
        let rounds = |op: &ValueOp| {
            matches!(op, ValueOp::Cast(DType::BF16, _)) || !kernel.operands(op).contains(&product.sum)
        };
        let is_bf16 = |store: &Store| {
            store.value != product.sum || kernel.buffers[store.buffer.index()].dtype == DType::BF16
        };
        let are_rounded =
            || kernel.values.iter().all(|value| rounds(&value.op)) && kernel.stores.iter().all(is_bf16);
        let is_exact = |value| is_exact(kernel, value, DType::BF16);
        let is_rounded = is_exact(product.left) || are_rounded() && self.softmax(kernel).is_some();
        let is_even = kernel.axis(self.along).extent.is_multiple_of(2);
        self.contraction.sum == DType::F32 && is_even && is_exact(product.right) && is_rounded
    }

    /// Of rows that are multiplied.
    fn with_product(kernel: &Kernel, sum: ValueId, column: AxisId) -> Option<RowContraction> {
        let (along, left, right) = product(kernel, sum, column)?;
        let right_side = kernel.down_from([right]);
        let is_plain = |id: &ValueId| !matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        let products = vec![Product { sum, left, right, lift: None }];
        let dtype = kernel.value(sum).dtype;
        right_side.iter().all(is_plain).then_some(())?;
        RowContraction::along(kernel, along, dtype).map(|rows| RowContraction {
            contraction: Contraction { products, column, depth: vec![along], ..rows.contraction },
            ..rows
        })
    }

    /// Of rows that are results, or reduced to these: they go along what some reduction is for each position of.
    fn without_product(kernel: &Kernel, below: &[ValueId]) -> Option<RowContraction> {
        let is_reduce = |axis: &&AxisId| kernel.axis(**axis).kind == AxisKind::Reduce;
        let (along, score) = below.iter().find_map(|&id| {
            let ValueOp::Reduce { .. } = kernel.value(id).op else { return None };
            Some((*kernel.value(id).axes.iter().find(is_reduce)?, id))
        })?;
        RowContraction::along(kernel, along, kernel.value(score).dtype)
    }

    fn along(kernel: &Kernel, along: AxisId, dtype: DType) -> Option<RowContraction> {
        let fits = !kernel.axis(along).is_argument && matches!(dtype, DType::F32 | DType::F64);
        fits.then(|| RowContraction {
            contraction: Contraction {
                dtype,
                sum: dtype,
                products: Vec::new(),
                batch: Vec::new(),
                rows: Vec::new(),
                lines: Vec::new(),
                column: along,
                depth: Vec::new(),
                statistics: Vec::new(),
                windows: None,
                is_paired: false,
                is_few: false,
            },
            along,
            scores: Vec::new(),
            statistics: Vec::new(),
        })
    }

    /// Terms of the products that an element of a row is made of.
    fn terms(&self, kernel: &Kernel) -> u64 {
        self.scores.iter().map(|score| positions(kernel, &score.depth)).sum()
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
            products: vec![Product { sum: id, left, right, lift: None }],
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
        let Contraction { rows, batch, column, products, .. } = &self.contraction;
        // The text is for every extent of an argument: of rows it matters only whether they are blocks enough as they are.
        let most_rows = self.most_rows(kernel);
        let many = |rows: u64| some_rows(rows, most_rows);
        let known = |axes: &[AxisId], counted: &dyn Fn(u64) -> u64| match axes.split_first() {
            Some((&first, rest)) if kernel.axis(first).is_argument => {
                positions(kernel, rest) * counted(kernel.axis(first).extent)
            }
            _ => positions(kernel, axes),
        };
        let (all, batch) = (known(rows, &many), known(batch, &|_| 1));
        let columns = if products.is_empty() { 0 } else { kernel.axis(*column).extent };
        let of_row = kernel.axis(self.along).extent * (columns + self.terms(kernel));
        // If the outermost extent is an argument, it is the rows inside of it that are divided.
        let first = rows.first().filter(|&&axis| kernel.axis(axis).is_argument);
        let each = first.map_or(all, |_| positions(kernel, &rows[1..]));
        let of_block = even_rows(batch, [all, each], most_rows, of_row);
        // Whole rows, the sums and these columns are in a second-level cache together. Of doubles as many bytes.
        let most = if self.scores.is_empty() { COLUMNS / 2 } else { COLUMNS };
        let most = most * 4 / self.contraction.dtype.size() as u64;
        let columns = padded(kernel, *column).max(padded(kernel, self.along)).min(most);
        let depths = self.scores.iter().flat_map(|score| &score.depth).chain(&self.contraction.depth);
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
