//! Contractions of rows on CUDA: attention, whose rows are weights that a softmax makes of products.

use super::contraction_cuda::{NO_COPIES_BYTES, ProductSchedule, Unit, is_copied};
use super::exact::is_exact;
use super::facts::Figures;
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
    /// What the factors are, where warps multiply small matrices by one instruction: `F16` or `BF16`. The weights go there
    /// as the sum of two such numbers each.
    pub matrices: Option<DType>,
    /// Tiles of a factor in shared memory that are copied there; 1 if they come through registers.
    pub stages: u32,
}

/// Rows and elements of a thread.
const OWN: u32 = 4;

/// Threads along a row: half a warp, which exchanges what each has of it.
const THREADS_OF_ROW: u32 = 16;

/// Rows of a block, the most first.
const ROWS: [u32; 2] = [64, 32];

/// Elements of a row at a time, and terms of a tile of these.
pub(crate) const ROW_ELEMENTS: u64 = (THREADS_OF_ROW * OWN) as u64;
const DEPTH: u32 = 16;

/// The same of warps, and a warp's rows: those of an instruction, with all elements and columns.
const WARP_DEPTH: u32 = 32;
const WARP_ROWS: u32 = 16;

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
        if self.matrices.is_some() { 4 } else { THREADS_OF_ROW }
    }

    /// Blocks that a multiprocessor has registers for.
    pub(crate) fn at_once(&self) -> u32 {
        match self.matrices {
            None => 512 / self.threads(),
            Some(_) => (if self.columns > COLUMNS[0] { 256 } else { 384 }) / self.threads(),
        }
    }

    /// Bytes of shared memory where each of so many steps has a slot: of small matrices, whose weights are sums of two.
    fn shared_bytes(&self, steps: u64) -> u64 {
        let [rows, elements, columns] = [self.rows, self.elements, self.columns].map(u64::from);
        let of_elements = (rows + elements) * u64::from(self.depth);
        let of_results = columns * u64::from(self.of_results().depth);
        let weights = 2 * rows * elements;
        let size = self.matrices.map_or(4, |dtype| dtype.size() as u64);
        steps.saturating_mul(of_elements + of_results).saturating_add(weights).saturating_mul(size)
    }

    /// The tiles that the rows' elements are added up in.
    pub(crate) fn of_elements(&self) -> ProductSchedule {
        ProductSchedule {
            rows: self.rows,
            columns: self.elements,
            depth: self.depth,
            own_rows: if self.matrices.is_some() { WARP_ROWS } else { OWN },
            own_columns: self.own(self.elements),
            unit: self.matrices.map_or(Unit::Thread, Unit::Warp),
            stages: self.stages,
            splits: 1,
        }
    }

    /// The same of the results: as many elements of a tile as the other tiles have.
    pub(crate) fn of_results(&self) -> ProductSchedule {
        let columns = self.columns;
        let depth = self.depth * self.elements / columns;
        ProductSchedule { columns, depth, own_columns: self.own(columns), ..self.of_elements() }
    }

    /// Of so many elements or columns, those of a thread or a warp.
    fn own(&self, all: u32) -> u32 {
        if self.matrices.is_some() { all } else { all / THREADS_OF_ROW }
    }

    /// Checks it beside the chosen one: of the same kind with as many rows or fewer.
    ///
    /// # Errors
    /// [`Refusal::Misfit`].
    pub(super) fn check(&self, chosen: &RowProductSchedule) -> Result<(), Refusal> {
        match ROWS.contains(&self.rows)
            && *self == (RowProductSchedule { rows: self.rows, stages: self.stages, ..*chosen })
            && self.stages <= chosen.stages
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
        let matrices = Instruction::of(kernel, scores).map(|of| of.factors);
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
        let rows = ROWS.into_iter().find(fills).unwrap_or(ROWS[ROWS.len() - 1]);
        let columns = width.filter(|_| fits)?;
        let depth = if matrices.is_some() { WARP_DEPTH } else { DEPTH };
        let dtype = matrices.unwrap_or(DType::F32);
        let all = [scores.products[0].left, scores.products[0].right, right];
        let copies =
            figures.shared_bytes > NO_COPIES_BYTES && all.iter().any(|&id| is_copied(kernel, id, dtype));
        let stages = if copies { 2 } else { 1 };
        let schedule =
            RowProductSchedule { rows, elements: ROW_ELEMENTS as u32, columns, depth, matrices, stages };
        // A slot for each step, where these are few and what they need fits.
        let steps = self.steps(kernel, &schedule);
        let of_block = schedule.shared_bytes(steps) * u64::from(schedule.at_once());
        let is_filled = all.iter().all(|&id| is_copied(kernel, id, dtype)) && matrices.is_some();
        let has_room = steps <= MOST_STEPS && of_block <= u64::from(figures.shared_bytes);
        let stages = if copies && is_filled && has_room { stages.max(steps as u32) } else { stages };
        Some(RowProductSchedule { stages, ..schedule })
    }
}
