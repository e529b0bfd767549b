//! Schedules of rows: how many threads or lanes share one, and what they keep of it.

use super::facts::{
    ACCESS_BYTES, BLOCKS_PER_PROCESSOR, MOST_KEPT_BYTES, SPLIT_LENGTH, STACK_BYTES, THREADS,
    UNROLLED_OPERATIONS, extent_of, is_splittable, largest_power_of_two_divisor, previous_power_of_two,
    rows_of, widest_input,
};
use super::keep::Keep;
use super::plain::in_plain_passes;
use super::share::NEAR_LENGTH;
use super::vector::{Sizes, is_peeled};
use super::{Figures, Plan, RowSchedule};
use crate::index::AxisId;
use crate::ir::{Axis, AxisKind, Kernel, Value, ValueOp};
use crate::{Language, ReduceOp};

/// Elements of a row whose threads take no more turns than they need.
const LONG: u64 = 4096;

/// Bytes of a row that a thread should keep in registers: four 16-byte accesses in flight. More threads share a
/// longer row.
const KEPT_BYTES: u64 = 64;

/// Simple operations for an element that cost little beside reading it, and elements of a part of a row at least, however costly.
const LIGHT: f64 = 16.0;
const LEAST_PART: u64 = 1024;

/// On a core, elements that weigh so many times as much as light ones: their rows count as several.
const COSTLY: u64 = 4;

/// Shared memory with which the threads of a block combine what each has of a row, a reduction: 32 warps, two values of 8
/// bytes.
const COMBINING_BYTES: u64 = 512;

pub(super) fn rows(kernel: &Kernel, axes: &[AxisId], language: Language, figures: &Figures) -> RowSchedule {
    let length = extent_of(kernel, axes);
    let rows = extent_of(kernel, &kernel.axes_of_kind(AxisKind::Map));
    let inner = axes.last().map_or(1, |&axis| kernel.axis(axis).extent);
    let is_argument = axes.iter().any(|&axis| kernel.axis(axis).is_argument);
    let adds_exp = kernel.values.iter().any(|value| match &value.op {
        ValueOp::Reduce { op, axes: own, .. } => *op == ReduceOp::SumExp && own.as_slice() == axes,
        _ => false,
    });
    match language {
        Language::C => {
            let lanes = lanes(kernel, axes, inner);
            let splits = match is_splittable(kernel, axes) {
                true => length.div_ceil(SPLIT_LENGTH).min(u64::from(u32::MAX)) as u32,
                false => 1,
            };
            let rows_per_block = match is_argument {
                true => 1,
                // What is costly goes to several threads where there are few rows.
                false => {
                    let each = (weight(kernel, axes) / COSTLY).max(reads(kernel, axes));
                    rows_of(length.saturating_mul(each)) as u32
                }
            };
            let online = adds_exp && (splits > 1 || length > NEAR_LENGTH);
            let stack_bytes = match is_argument || splits > 1 || online {
                true => 0,
                false => stack_bytes(kernel, length).unwrap_or(0),
            };
            RowSchedule {
                threads_per_row: lanes as u32,
                rows_per_block,
                vector: 1,
                persistent: 0,
                shared_bytes: 0,
                stack_bytes: stack_bytes as u32,
                online,
                keep: None,
                splits,
            }
        }
        Language::Cuda => {
            let full = u64::from(figures.processors) * BLOCKS_PER_PROCESSOR;
            let work = length.saturating_mul(weight(kernel, axes));
            let splits = match is_splittable(kernel, axes) && rows * 16 < full && work >= SPLIT_LENGTH / 2 {
                true => {
                    let most = full.div_ceil(rows.max(1)).min(1024).min((length / LEAST_PART).max(1));
                    (work / (SPLIT_LENGTH / 8)).clamp(1, most)
                }
                false => 1,
            };
            let widest_vector = Sizes::of_loads(kernel, axes).vector();
            let is_peeled = is_peeled(kernel, axes, widest_vector);
            let vector = match is_argument && axes.len() == 1 || is_peeled {
                true => widest_vector,
                false => largest_power_of_two_divisor(inner, widest_vector),
            };
            let row = match (splits, is_argument || is_peeled) {
                (1, false) => Row::kept(kernel, length, vector, figures),
                _ => None,
            };
            let read_again = || match (splits, is_argument) {
                (1, false) => Row { threads: again(kernel, axes, length), turns: 0, shared_bytes: 0 },
                _ => Row { threads: THREADS, turns: 0, shared_bytes: 0 },
            };
            let Row { threads: threads_per_row, turns: persistent, shared_bytes } =
                row.unwrap_or_else(read_again);
            let rows_per_block = if threads_per_row <= 32 { THREADS / threads_per_row } else { 1 };
            RowSchedule {
                threads_per_row,
                rows_per_block,
                vector: vector as u32,
                persistent,
                shared_bytes,
                stack_bytes: 0,
                online: adds_exp && persistent == 0,
                keep: None,
                splits: splits as u32,
            }
        }
    }
}

/// How often an element of a row reads anything, in loops of its own.
fn reads(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    let is_read = |value: &&Value| matches!(value.op, ValueOp::Load { .. });
    kernel.values.iter().filter(is_read).map(|value| positions(kernel, axes, value)).max().unwrap_or(1)
}

/// Positions of the loops that an element of a row has of its own for a value. The same for every extent that is an argument.
fn positions(kernel: &Kernel, axes: &[AxisId], value: &Value) -> u64 {
    let own = match &value.op {
        ValueOp::Reduce { axes: own, .. } if own.as_slice() != axes => own.as_slice(),
        _ => &[],
    };
    let is_own = |axis: &AxisId| {
        let Axis { kind, is_argument, .. } = *kernel.axis(*axis);
        kind == AxisKind::Reduce && !is_argument && !axes.contains(axis)
    };
    let all = value.axes.iter().chain(own).copied().filter(is_own);
    extent_of(kernel, &all.collect::<Vec<_>>())
}

/// What an element of a row takes, as a multiple of one that is little but read: what is computed of it, and in loops of its own.
fn weight(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    let of = |value: &Value| {
        let cost = match &value.op {
            ValueOp::Unary(op, _) => op.cost(),
            ValueOp::Binary(op, ..) => op.cost(),
            ValueOp::Reduce { op, axes: own, .. } if own.as_slice() != axes => op.cost(),
            ValueOp::Load { .. } | ValueOp::Select(..) | ValueOp::Cast(..) => 1.0,
            _ => 0.0,
        };
        cost * positions(kernel, axes, value) as f64
    };
    let varies = |value: &&Value| axes.iter().any(|axis| value.axes.contains(axis));
    let cost: f64 = kernel.values.iter().filter(varies).map(of).sum();
    (cost / LIGHT) as u64 + 1
}

/// The threads of a row whose passes read it again: as many as there can be of a long one, so that few rows at a time
/// are in the cache.
fn again(kernel: &Kernel, axes: &[AxisId], length: u64) -> u32 {
    let is_long = length > NEAR_LENGTH && !is_splittable(kernel, axes);
    if is_long { 1024 } else { THREADS }
}

/// The bytes of the stack that keep what is costly of a row.
fn stack_bytes(kernel: &Kernel, length: u64) -> Option<u64> {
    let plain = in_plain_passes(kernel, |op| op == ReduceOp::SumExp).ok()?;
    let plan = Plan::new(&plain).ok()?;
    Some(plan.keep_on_stack(&plain, length, STACK_BYTES).array_bytes(length))
}

/// Shared memory that a block can keep a row in, beside what its threads combine by.
pub(super) fn most_shared(plan: &Plan, figures: &Figures) -> u64 {
    let combining = COMBINING_BYTES * plan.reductions().len() as u64;
    u64::from(figures.shared_bytes).saturating_sub(combining)
}

/// How the threads of a block share a row.
struct Row {
    threads: u32,
    /// The vectors of a thread, if it keeps them.
    turns: u32,
    /// Of shared memory, if they do not fit registers.
    shared_bytes: u32,
}

impl Row {
    /// A row that is kept from pass to pass: in registers or, if these do not hold it, in shared memory.
    fn kept(kernel: &Kernel, length: u64, vector: u64, figures: &Figures) -> Option<Row> {
        let plain = in_plain_passes(kernel, |_| true).ok()?;
        let plan = Plan::new(&plain).ok()?;
        let vectors = length / vector;
        let of = |bytes: u64| {
            let wanted = (length * bytes).div_ceil(KEPT_BYTES).min(vectors).next_power_of_two();
            let threads = wanted.clamp(8, 1024);
            (threads, vectors.div_ceil(threads))
        };
        let mut bytes = plan.keep_loads(&plain).bytes.max(widest_input(kernel));
        if !plan.fits(bytes, of(bytes).1 * vector) {
            bytes = plan.keep_least(&plain).bytes.max(widest_input(kernel));
        }
        let (threads, turns) = of(bytes);
        let row = |turns: u64| Row { threads: threads as u32, turns: turns as u32, shared_bytes: 0 };
        let fits = |turns: &u64| {
            let operations = plain.values.len() as u64 * turns * vector;
            plan.fits(bytes, turns * vector) && operations <= UNROLLED_OPERATIONS
        };
        // Where the last turn is not for all threads anyway, a power of two: so short rows of many lengths are one text. Long ones
        // need the registers.
        let is_exact = vectors.is_multiple_of(threads) || length >= LONG;
        let even = if is_exact { turns } else { turns.next_power_of_two() };
        if let Some(turns) = [even, turns].into_iter().find(fits) {
            return Some(row(turns));
        }
        // Several rows of a block are short enough for registers.
        let most = most_shared(&plan, figures);
        let shared_bytes = plan.keep_shared(&plain, length, most).array_bytes(length);
        let fits = threads > 32 && (1..=most).contains(&shared_bytes);
        fits.then_some(Row { shared_bytes: shared_bytes as u32, ..row(turns) })
    }
}

impl Plan {
    /// Whether a thread can keep some bytes for each of its elements of a row.
    fn fits(&self, bytes: u64, elements: u64) -> bool {
        // The first results take the place of the elements that they follow from, others their own.
        let stores: usize = self.passes.iter().map(|pass| pass.stores.len()).sum();
        let results = ACCESS_BYTES * (stores as u64).saturating_sub(1);
        elements * bytes + results <= MOST_KEPT_BYTES
    }

    /// What threads that have so many elements of a row keep of it.
    pub(crate) fn keep(&self, kernel: &Kernel, elements: u64) -> Keep {
        self.keep_what_fits(kernel, |keep| self.fits(keep.bytes, elements))
    }

    /// What is kept of a row in so many bytes of shared memory.
    pub(crate) fn keep_shared(&self, kernel: &Kernel, length: u64, bytes: u64) -> Keep {
        self.keep_what_fits(kernel, |keep| keep.array_bytes(length) <= bytes)
    }

    /// Costly values, else the loads, else what takes the fewest bytes.
    fn keep_what_fits(&self, kernel: &Kernel, fits: impl Fn(&Keep) -> bool) -> Keep {
        let choices = [Plan::keep_values, Plan::keep_loads];
        let found = choices.iter().map(|choice| choice(self, kernel)).find(fits);
        found.unwrap_or_else(|| self.keep_least(kernel))
    }
}

/// Lanes of a CPU row: two or three vectors of the widest instructions, so that additions overlap.
pub(super) fn lanes(kernel: &Kernel, axes: &[AxisId], inner: u64) -> u64 {
    let finds_position = |value: &Value| matches!(value.op, ValueOp::Reduce { position: Some(_), .. });
    let is_stored_along = kernel.stores.iter().any(|store| axes.iter().any(|axis| store.index.uses(*axis)));
    let along = widest_along(kernel, axes);
    let (widest, most) = match kernel.values.iter().any(finds_position) && !is_stored_along {
        // Positions take 32 bits there, though the result has 64; merging two takes longer than finding one, but less is done
        // with parts of vectors.
        true => (along.max(4), (inner / 4).max(64 / along.max(4)).min(inner)),
        false => (along, inner),
    };
    let (fewest, most_lanes) = (previous_power_of_two(most), 128 / widest);
    // Of several axes, what the lanes do not divide is swept line by line. A line in one vector, of which some lanes have
    // nothing, takes less than one that ends in a part of a vector.
    let in_lines = axes.len() > 1 && most == inner && !inner.is_multiple_of(fewest.min(most_lanes));
    match in_lines && extent_of(kernel, axes) <= SPLIT_LENGTH {
        true => (2 * fewest).min(most_lanes),
        false => fewest.min(most_lanes),
    }
}

/// The widest dtype that is read, reduced or stored along the axes. What is there once a row, such as a label, says nothing of
/// the lanes.
fn widest_along(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    let varies = |value: &Value| axes.iter().any(|axis| value.axes.contains(axis));
    let loaded = kernel.values.iter().filter(|value| varies(value)).filter_map(|value| match &value.op {
        ValueOp::Load { buffer, .. } => Some(kernel.buffers[buffer.index()].dtype),
        _ => None,
    });
    let reduced = kernel.values.iter().filter_map(|value| match &value.op {
        // What is narrow in memory may be wide when it is added up.
        ValueOp::Reduce { axes: own, operand, .. } if own.as_slice() == axes => {
            Some(kernel.value(*operand).dtype).filter(|dtype| dtype.size() > 4)
        }
        _ => None,
    });
    let stores = kernel.stores.iter().filter(|store| axes.iter().any(|axis| store.index.uses(*axis)));
    let stored = stores.map(|store| kernel.buffers[store.buffer.index()].dtype);
    loaded.chain(reduced).chain(stored).map(|dtype| dtype.size() as u64).max().unwrap_or(4)
}
