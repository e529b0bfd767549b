//! Contractions of rows on CUDA: attention, whose rows are weights that a softmax makes of products.

use super::contraction_cuda::{NO_COPIES_BYTES, ProductSchedule, Unit, is_copied};
use super::exact::is_exact;
use super::facts::{Figures, Matrices};
use super::instructions::Instruction;
use super::row_contraction::{RowContraction, positions};
use super::share;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, ReduceOp, Refusal, UnaryOp};

/// How the threads of a block compute it: they go along their rows once, some elements at a time. Of these they add up the
/// products, weigh them by the greatest one so far, and add what they weigh to the results; so no row is ever in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RowProductSchedule {
    /// Rows of a block.
    pub rows: u32,
    /// Elements of each at a time.
    pub elements: u32,
    /// Columns of the results, with those that fill the last thread's.
    pub columns: u32,
    /// Terms of the elements' products that are in shared memory together.
    pub depth: u32,
    /// Who has a part of the sums to itself. To matrices the weights go as numbers of their factors' type, or as the sum of two such
    /// numbers each.
    pub unit: Unit,
    /// Tiles of a factor in shared memory that are copied there; 1 if they come through registers.
    pub stages: u32,
}

/// Rows and elements of a thread.
const OWN: u32 = 4;

/// Threads along a row: half a warp, which exchanges what each has of it.
const THREADS_OF_ROW: u32 = 16;

/// Rows of a block, the most first.
const ROWS: [u32; 2] = [64, 32];
/// The same of groups of warps, the best one first: on an H200, 16 heads of 1024 × 64 take 17.3 µs with 64 rows and 20.1 with 128, with a
/// mask or without one; 128 heads take 80.4 and 78.3.
const ROWS_OF_GROUPS: [u32; 2] = [64, 128];

/// Elements of a row at a time, and terms of a tile of these.
const ROW_ELEMENTS: u64 = (THREADS_OF_ROW * OWN) as u64;
const DEPTH: u32 = 16;

/// The same of warps, and a warp's rows: those of an instruction, with all elements and columns.
const WARP_DEPTH: u32 = 32;
const WARP_ROWS: u32 = 16;

/// The same of groups of warps, and the terms from which on they multiply: theirs are 64 at least.
const GROUP_DEPTH: u32 = 64;
const GROUP_ROWS: u32 = 64;
const LEAST_TERMS_OF_GROUPS: u64 = 48;

/// The most tiles of a factor that are in shared memory together.
const MOST_STEPS: u64 = 4;

/// Columns of the results: the sums of a thread are in registers.
const COLUMNS: [u32; 2] = [64, share::MOST_ATTENTION_COLUMNS as u32];

impl RowProductSchedule {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.of_elements().threads()
    }

    /// Threads that have a row together: half a warp, or those that have one of an instruction's rows.
    pub(crate) fn threads_of_row(&self) -> u32 {
        if self.unit == Unit::Thread { THREADS_OF_ROW } else { 4 }
    }

    /// Blocks that a multiprocessor has registers for.
    pub(crate) fn at_once(&self) -> u32 {
        let is_wide = self.columns > COLUMNS[0];
        match self.unit {
            Unit::Thread => 512 / self.threads(),
            Unit::Warp(_) => (if is_wide { 256 } else { 384 }) / self.threads(),
            Unit::WarpGroup(_) => (if is_wide { 256 } else { 512 }) / self.threads(),
        }
    }

    /// Bytes of shared memory where each of so many steps of terms has a slot, and two of what the next elements need.
    fn shared_bytes(&self, steps: u64) -> u64 {
        let [rows, elements, columns] = [self.rows, self.elements, self.columns].map(u64::from);
        let of_elements = (rows + 2 * elements) * u64::from(self.depth);
        let of_results = 2 * columns * elements;
        let size = self.unit.matrices().map_or(4, |dtype| dtype.size() as u64);
        steps.saturating_mul(of_elements).saturating_add(of_results).saturating_mul(size)
    }

    /// The tiles that the rows' elements are added up in.
    pub(crate) fn of_elements(&self) -> ProductSchedule {
        ProductSchedule {
            rows: self.rows,
            columns: self.elements,
            depth: self.depth,
            own_rows: match self.unit {
                Unit::Thread => OWN,
                Unit::Warp(_) => WARP_ROWS,
                Unit::WarpGroup(_) => GROUP_ROWS,
            },
            own_columns: self.own(self.elements),
            unit: self.unit,
            stages: self.stages,
            bulk: false,
            splits: 1,
        }
    }

    /// The same of the results: as many elements of a tile as the other tiles have.
    pub(crate) fn of_results(&self) -> ProductSchedule {
        let columns = self.columns;
        let depth = if self.unit.is_group() { self.elements } else { self.depth * self.elements / columns };
        ProductSchedule { columns, depth, own_columns: self.own(columns), ..self.of_elements() }
    }

    /// Of so many elements or columns, those of a thread or a warp.
    fn own(&self, all: u32) -> u32 {
        if self.unit == Unit::Thread { all / THREADS_OF_ROW } else { all }
    }

    /// Checks it beside the chosen one: of the same kind.
    ///
    /// # Errors
    /// [`Refusal::Misfit`].
    pub(super) fn check(&self, chosen: &RowProductSchedule) -> Result<(), Refusal> {
        let rows = if self.unit.is_group() { ROWS_OF_GROUPS } else { ROWS };
        match rows.contains(&self.rows)
            && *self == (RowProductSchedule { rows: self.rows, stages: self.stages, ..*chosen })
            && self.stages <= chosen.stages
            && (!self.unit.is_group() || self.stages == chosen.stages)
        {
            true => Ok(()),
            false => Err(Refusal::Misfit("rows, elements, columns and depth are none that a block can have")),
        }
    }
}

/// Elements of rows as weights: exponentials of the distances from the greatest, divided by their sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    /// What it is of.
    pub(crate) operand: ValueId,
    pub(crate) greatest: ValueId,
    pub(crate) total: ValueId,
    /// The weight.
    pub(crate) quotient: ValueId,
    /// Where something known of the whole row makes it zero.
    pub(crate) nothing: Option<Nothing>,
    /// Whether weights are multiplied by something, so that they may be any numbers.
    pub(crate) is_scaled: bool,
}

/// A choice between zero and weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nothing {
    pub(crate) choice: ValueId,
    pub(crate) condition: ValueId,
    /// The weights, and whether they are there where the condition holds.
    pub(crate) weights: ValueId,
    pub(crate) holds: bool,
}

impl RowContraction {
    /// The softmax that the weights come from, if these are all that is known of the rows and go into the products in
    /// proportion, whatever they are masked or multiplied by.
    pub(crate) fn softmax(&self, kernel: &Kernel) -> Option<Softmax> {
        let &[greatest, total] = self.statistics.as_slice() else { return None };
        let ValueOp::Reduce { op: ReduceOp::Max, operand, position: None, .. } = kernel.value(greatest).op
        else {
            return None;
        };
        let is_exp = |id: ValueId| match kernel.value(id).op {
            ValueOp::Unary(UnaryOp::Exp, distance) => {
                matches!(kernel.value(distance).op, ValueOp::Binary(BinaryOp::Sub, a, b) if (a, b) == (operand, greatest))
            }
            _ => false,
        };
        let is_total = match kernel.value(total).op {
            ValueOp::Reduce { op: ReduceOp::SumExp, operand: own, .. } => own == operand,
            ValueOp::Reduce { op: ReduceOp::Sum, operand: own, .. } => is_exp(own),
            _ => false,
        };
        let knows = |id: ValueId| kernel.down_from([id]).iter().any(|below| self.statistics.contains(below));
        let is_zero =
            |id: ValueId| matches!(kernel.value(id).op, ValueOp::Literal(zero) if zero.as_f64() == 0.0);
        let of_row = |id: ValueId| !kernel.value(id).axes.contains(&self.along);
        let (mut nothing, mut is_scaled): (Option<Nothing>, bool) = (None, false);
        let mut weight = self.contraction.products[0].left;
        let quotient = loop {
            let op = &kernel.value(weight).op;
            let next = match *op {
                ValueOp::Binary(BinaryOp::Div, a, b) if b == total && is_exp(a) => break weight,
                ValueOp::Binary(BinaryOp::Mul, a, b) => match (is_exp(a), &kernel.value(b).op) {
                    (true, &ValueOp::Unary(UnaryOp::Reciprocal, of)) if of == total => break weight,
                    _ if !knows(b) => a,
                    _ if !knows(a) => b,
                    _ => return None,
                },
                ValueOp::Binary(BinaryOp::Div, a, b) if !knows(b) => a,
                ValueOp::Select(condition, a, b) => {
                    let (weights, holds) = match () {
                        () if is_zero(b) => (a, true),
                        () if is_zero(a) => (b, false),
                        () => return None,
                    };
                    if knows(condition) {
                        if nothing.is_some() || !of_row(condition) {
                            return None;
                        }
                        nothing = Some(Nothing { choice: weight, condition, weights, holds });
                    }
                    weights
                }
                ValueOp::Unary(UnaryOp::Neg, a) => a,
                _ => return None,
            };
            is_scaled |= matches!(op, ValueOp::Binary(..));
            weight = next;
        };
        // Whatever else is stored knows the sums alone.
        let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
        while let Some(id) = pending.pop() {
            if id == self.contraction.products[0].sum {
                continue;
            }
            if self.statistics.contains(&id) {
                return None;
            }
            pending.extend(kernel.operands(&kernel.value(id).op));
        }
        (is_total && !knows(operand)).then_some(Softmax {
            operand,
            greatest,
            total,
            quotient,
            nothing,
            is_scaled,
        })
    }

    /// Tiles of the longer of the elements' terms and the results' elements, if it is known how many.
    fn steps(&self, kernel: &Kernel, schedule: &RowProductSchedule) -> u64 {
        let terms = kernel.axis(self.scores[0].depth[0]);
        let of_results = u64::from(schedule.elements / schedule.of_results().depth);
        let of_elements = terms.extent.div_ceil(schedule.depth.into());
        if terms.is_argument { u64::MAX } else { of_elements.max(of_results) }
    }

    /// How a GPU computes it, if it can: 32-bit products and a softmax of them.
    pub(super) fn tiles(&self, kernel: &Kernel, figures: &Figures) -> Option<RowProductSchedule> {
        let [scores] = self.scores.as_slice() else { return None };
        let softmax = self.softmax(kernel)?;
        let matrices = Instruction::of(kernel, scores, figures).map(|of| of.factors);
        let right = self.contraction.products[0].right;
        let matrices = matrices.filter(|&dtype| !softmax.is_scaled && is_exact(kernel, right, dtype));
        let columns = kernel.axis(self.contraction.column);
        let width = COLUMNS.into_iter().find(|&width| columns.extent <= u64::from(width));
        let rows = positions(kernel, &self.contraction.rows);
        let pays = share::is_tiled(rows, columns.extent, kernel.axis(self.along).extent);
        let fits = self.contraction.dtype == DType::F32 && !columns.is_argument && pays;
        // What an argument says counts as many.
        let is_argument = |axis: &AxisId| kernel.axis(*axis).is_argument;
        let of_batch = positions(kernel, &self.contraction.batch);
        let is_known = !self.contraction.batch.iter().chain(&self.contraction.rows).any(is_argument);
        let blocks = |of: u32| rows.div_ceil(of.into()).saturating_mul(of_batch);
        let fills = |of: &u32| !is_known || blocks(*of) >= u64::from(figures.processors);
        let columns = width.filter(|_| fits)?;
        let all = [scores.products[0].left, scores.products[0].right, right];
        let of = |unit: Unit| {
            let rows = match unit.is_group() {
                true => ROWS_OF_GROUPS[0],
                false => ROWS.into_iter().find(fills).unwrap_or(ROWS[ROWS.len() - 1]),
            };
            let depth = match unit {
                Unit::Thread => DEPTH,
                Unit::Warp(_) => WARP_DEPTH,
                Unit::WarpGroup(_) => GROUP_DEPTH,
            };
            let dtype = unit.matrices().unwrap_or(DType::F32);
            let copies =
                figures.shared_bytes > NO_COPIES_BYTES && all.iter().any(|&id| is_copied(kernel, id, dtype));
            let stages = if copies { 2 } else { 1 };
            let schedule =
                RowProductSchedule { rows, elements: ROW_ELEMENTS as u32, columns, depth, unit, stages };
            // A slot for each step, where these are few and what they need fits.
            let steps = self.steps(kernel, &schedule);
            let is_filled = all.iter().all(|&id| is_copied(kernel, id, dtype)) && unit != Unit::Thread;
            let has_room =
                steps <= MOST_STEPS && schedule.shared_bytes(steps) <= u64::from(figures.shared_bytes);
            let is_filled = copies && is_filled && has_room;
            let stages = if is_filled { stages.max(steps as u32) } else { stages };
            (RowProductSchedule { stages, ..schedule }, is_filled)
        };
        let terms = kernel.axis(scores.depth[0]);
        let has_groups = figures.matrices == Matrices::Groups
            && !terms.is_argument
            && terms.extent >= LEAST_TERMS_OF_GROUPS;
        let groups = matrices.filter(|_| has_groups).map(|dtype| of(Unit::WarpGroup(dtype)));
        let groups = groups.filter(|(_, is_filled)| *is_filled).map(|(schedule, _)| schedule);
        Some(groups.unwrap_or_else(|| of(matrices.map_or(Unit::Thread, Unit::Warp)).0))
    }
}
