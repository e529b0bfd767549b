//! Schedules of scans and recurrences.

use super::facts::{
    ACCESS_BYTES, BLOCKS_PER_PROCESSOR, SPLIT_LENGTH, THREADS, extent_of, is_nested,
    largest_power_of_two_divisor, previous_power_of_two, rows_of,
};
use super::vector::Sizes;
use super::work::operations;
use super::{Figures, ScanSchedule};
use crate::index::AxisId;
use crate::intrinsics::lanes::has_scan;
use crate::ir::{AxisKind, Kernel, Value, ValueId, ValueOp};
use crate::{DType, Language, ReduceOp};

/// Steps from which it pays to let rows of a recurrence go through shared memory.
const STAGED_STEPS: u64 = 16;

/// The most parts of an axis along which the CPU scans: each begins with its exclusive prefix.
pub(crate) const MOST_SCAN_SPLITS: u64 = 256;

/// Steps of a part of such an axis, unless it has more than [`MOST_SCAN_SPLITS`] of them, where so many columns go on
/// together.
pub(crate) fn scan_split_length(columns: u64) -> u64 {
    SPLIT_LENGTH / columns.next_power_of_two()
}

/// Rows that go on together along the innermost axis: a step waits for the one before it, not for those of other rows.
const ROWS_TOGETHER: u64 = 4;

/// The same where what combines two values is costly: each has a lane of the vectors that do.
pub(crate) const ROWS_IN_LANES: u64 = 16;

/// Simple operations of a combination from which it is worth laying rows down in lanes.
const COSTLY: f64 = 12.0;

/// Scans of a kernel whose rows are laid down in lanes: their elements and results are in local arrays.
const MOST_IN_LANES: usize = 4;

/// Scans of a kernel that are made within registers: their elements and results are in local arrays.
const MOST_IN_REGISTERS: usize = 8;

/// Positions along the axis from which that is done.
const LONG_IN_REGISTERS: u64 = 16;

/// The same of rows in lanes, and of steps of recurrences in them.
const LONG_IN_LANES: u64 = 64;
const STEPS_IN_LANES: u64 = 16;

/// Whether rows of so many values are scanned within registers on the CPU.
pub fn is_in_registers(op: ReduceOp, dtype: DType, length: u64) -> bool {
    has_scan(op, dtype) && length >= LONG_IN_REGISTERS
}

/// Whether a kernel's scans along rows are, stretch by stretch: what they take is in vectors, and so is what follows from them.
pub(crate) fn are_in_registers(kernel: &Kernel) -> bool {
    let scans = || kernel.values.iter().filter(|value| matches!(value.op, ValueOp::Scan { .. }));
    kernel.recurrences.is_empty()
        && (1..=MOST_IN_REGISTERS).contains(&scans().count())
        && kernel.scan_axes().all(|(axis, _)| {
            let length = kernel.axis(axis).extent;
            scans().all(
                |scan| matches!(scan.op, ValueOp::Scan { op, .. } if is_in_registers(op, scan.dtype, length)),
            )
        })
}

/// How many rows go on together on the CPU: [`ROWS_IN_LANES`] have lanes, and one has registers of its own.
pub(crate) fn rows_together(kernel: &Kernel) -> u64 {
    if are_in_registers(kernel) {
        return 1;
    }
    let is_scan = |op: &ValueOp| matches!(op, ValueOp::Scan { .. });
    let scans: Vec<_> = kernel.values.iter().filter(|value| is_scan(&value.op)).collect();
    let is_long = |least| kernel.scan_axes().all(|(axis, _)| kernel.axis(axis).extent >= least);
    let in_lanes = match kernel.recurrences.is_empty() {
        true => {
            let is_costly = |op: &ValueOp| matches!(op, ValueOp::Scan { op, .. } if op.cost() >= COSTLY);
            let is_along =
                |id: &ValueId| kernel.scan_axes().all(|(axis, _)| kernel.value(*id).axes.contains(&axis));
            is_long(LONG_IN_LANES)
                && scans.iter().any(|scan| is_costly(&scan.op))
                && scans.len() <= MOST_IN_LANES
                && !is_nested(kernel, is_scan)
                && scans.iter().all(|scan| kernel.operands(&scan.op).iter().all(is_along))
        }
        false => {
            is_long(STEPS_IN_LANES)
                && has_rows(kernel, ROWS_IN_LANES)
                && scans.is_empty()
                && has_costly_steps(kernel)
        }
    };
    if in_lanes { ROWS_IN_LANES } else { ROWS_TOGETHER }
}

/// Whether there are so many rows beside each other, as far as that is known.
fn has_rows(kernel: &Kernel, least: u64) -> bool {
    let is_other = |id: &AxisId| kernel.scan_axes().all(|(axis, _)| axis != *id);
    let mut others = kernel.axes_of_kind(AxisKind::Map).into_iter().filter(is_other);
    let is_argument = others.clone().any(|axis| kernel.axis(axis).is_argument);
    is_argument
        || others.try_fold(1, |rows: u64, axis| rows.checked_mul(kernel.axis(axis).extent)) >= Some(least)
}

/// Whether steps of recurrences take long enough, are elementwise, and take and leave little.
fn has_costly_steps(kernel: &Kernel) -> bool {
    let is_in_order = in_order(kernel);
    let steps = || (0..kernel.values.len()).filter(|&number| is_in_order[number]);
    let is_elementwise = |number: usize| {
        let value = &kernel.values[number];
        let is_own = matches!(
            value.op,
            ValueOp::Carry { .. }
                | ValueOp::Unary(..)
                | ValueOp::Binary(..)
                | ValueOp::Select(..)
                | ValueOp::Cast(..)
        );
        // Bytes would have as many lanes as a vector has of them.
        is_own && (value.dtype == DType::Bool || value.dtype.size() >= 4)
    };
    let is_carry = |id: ValueId| matches!(kernel.value(id).op, ValueOp::Carry { .. });
    let cost = |number: usize| match ValueId(number as u32) {
        id if is_carry(id) => 0.0,
        id => operations(kernel, id),
    };
    let is_number = |id: &ValueId| kernel.value(*id).dtype != DType::Bool;
    let carries = || kernel.recurrences.iter().map(|recurrence| recurrence.carry);
    let left = || kernel.stores.iter().map(|store| store.value).filter(|id| is_in_order[id.index()]);
    let taken = taken_in_order(kernel);
    steps().all(is_elementwise)
        && steps().map(cost).sum::<f64>() >= COSTLY
        && carries().all(|id| is_number(&id))
        && taken.iter().all(is_number)
        && taken.len() + left().count() <= 2 * MOST_IN_LANES
}

/// Which values only the loop in order knows: scans, carries, and what lies between two of them or leads to what a step
/// gives to the next.
pub(crate) fn in_order(kernel: &Kernel) -> Vec<bool> {
    let is_seed = |op: &ValueOp| matches!(op, ValueOp::Scan { .. } | ValueOp::Carry { .. });
    let mut follows = vec![false; kernel.values.len()];
    for (number, value) in kernel.values.iter().enumerate() {
        let below = kernel.operands(&value.op).iter().any(|operand| follows[operand.index()]);
        follows[number] = below || is_seed(&value.op);
    }
    let scans = kernel.values.iter().filter(|value| matches!(value.op, ValueOp::Scan { .. }));
    let ends = scans.flat_map(|value| kernel.operands(&value.op));
    let ends = ends.chain(kernel.recurrences.iter().map(|recurrence| recurrence.next));
    let mut leads = vec![false; kernel.values.len()];
    kernel.down_from(ends).into_iter().for_each(|id| leads[id.index()] = true);
    let of = |(number, value): (usize, &Value)| {
        is_seed(&value.op) || follows[number] && leads[number] && !matches!(value.op, ValueOp::Last { .. })
    };
    kernel.values.iter().enumerate().map(of).collect()
}

/// What the loop in order takes of a row or a position: it is known before.
pub(crate) fn taken_in_order(kernel: &Kernel) -> Vec<ValueId> {
    let is_in_order = in_order(kernel);
    let varies = |id: &ValueId| !is_in_order[id.index()] && !kernel.value(*id).axes.is_empty();
    let steps = kernel.values.iter().zip(&is_in_order).filter(|(_, is_in_order)| **is_in_order);
    let operands = steps.flat_map(|(value, _)| match value.op {
        ValueOp::Carry { .. } => Vec::new(),
        _ => kernel.operands(&value.op).to_vec(),
    });
    let next = kernel.recurrences.iter().map(|recurrence| recurrence.next);
    let mut taken: Vec<ValueId> = operands.chain(next).filter(varies).collect();
    taken.sort_unstable();
    taken.dedup();
    taken
}

/// Steps from which a column whose length is an argument has as many threads as can share it: 4096 columns of 4096 took 60 µs
/// on an H200, and 98 with 8 threads each.
const MANY_STEPS: u64 = 256;

/// Rows of scans that keep every core busy even when a block takes several of them.
const MANY_ROWS: u64 = 64;

/// The schedule of a kernel with scans or recurrences.
pub(super) fn scan(kernel: &Kernel, language: Language) -> Option<ScanSchedule> {
    let (axis, _) = kernel.scan_axes().next()?;
    let map = kernel.axes_of_kind(AxisKind::Map);
    let (length, is_argument) = (kernel.axis(axis).extent, kernel.axis(axis).is_argument);
    let is_innermost = map.last() == Some(&axis);
    Some(match (language, is_innermost) {
        (Language::C, true) => {
            let rows = if is_argument { 1 } else { rows_of(length) };
            // Rows that go side by side are worth more than smaller blocks, where there are enough for all cores.
            let (others, together) = (extent_of(kernel, &map) / length.max(1), rows_together(kernel));
            let are_steps = together == ROWS_IN_LANES && !kernel.recurrences.is_empty();
            let many = if are_steps { together } else { MANY_ROWS };
            let rows = if others >= many { rows.max(together) } else { rows };
            // Rows of a block that make no whole group would go on alone.
            let rows = if rows > together { rows / together * together } else { rows };
            ScanSchedule { threads: 1, rows: rows as u32, vector: 1, tile: 0, splits: 1 }
        }
        (Language::C, false) => {
            let columns = map.last().map_or(1, |&inner| kernel.axis(inner).extent);
            ScanSchedule { threads: 1, rows: columns.clamp(1, 512) as u32, vector: 1, tile: 0, splits: 1 }
        }
        // One step after the other: no threads share a loop.
        (Language::Cuda, _) if !kernel.recurrences.is_empty() => {
            let rows = if map.len() > 1 { 32 } else { 1 };
            let tile = if is_innermost && rows > 1 && length >= STAGED_STEPS { 32 } else { 0 };
            ScanSchedule { threads: 1, rows, vector: 1, tile, splits: 1 }
        }
        (Language::Cuda, true) => {
            let vector = match is_argument {
                true => 1,
                false => {
                    let widest = Sizes::of_loads(kernel, &[axis]).widest();
                    largest_power_of_two_divisor(length, ACCESS_BYTES / widest.max(4))
                }
            };
            let vectors = length / vector;
            let (threads, rows) = match vectors {
                _ if is_argument => (1024, 1),
                0..=64 => (32, 8),
                65..=512 => (128, 1),
                513..=16384 => (256, 1),
                _ => (1024, 1),
            };
            ScanSchedule { threads, rows, vector: vector as u32, tile: 0, splits: 1 }
        }
        (Language::Cuda, false) => {
            // At least 16 elements for each thread that shares a column; of columns whose length is an argument, few or many.
            let parts = match is_argument {
                true if length <= MANY_STEPS => 8,
                true => 32,
                false => previous_power_of_two(length / 16).clamp(1, 32),
            };
            ScanSchedule { threads: parts as u32, rows: 32, vector: 1, tile: 0, splits: 1 }
        }
    })
}

/// The schedule of scans whose axis is divided: where it is long, and they are so few that processors would be idle.
/// The elements are read twice then.
pub(super) fn divided(
    kernel: &Kernel,
    scan: &ScanSchedule,
    language: Language,
    figures: &Figures,
) -> Option<ScanSchedule> {
    let (axis, _) = kernel.scan_axes().next().filter(|&(axis, _)| is_divisible(kernel, axis))?;
    let map = kernel.axes_of_kind(AxisKind::Map);
    let is_innermost = map.last() == Some(&axis);
    let length = kernel.axis(axis).extent;
    let others: Vec<AxisId> = map.into_iter().filter(|&other| other != axis).collect();
    let (processors, rows) = (u64::from(figures.processors), u64::from(scan.rows));
    let blocks = match (language, is_innermost, others.split_last()) {
        (Language::C, false, Some((&columns, rest))) => {
            extent_of(kernel, rest).saturating_mul(kernel.axis(columns).extent.div_ceil(rows))
        }
        _ => extent_of(kernel, &others).div_ceil(rows),
    };
    let (threads, splits) = match language {
        Language::C => {
            let part = scan_split_length(if is_innermost { 1 } else { rows });
            let is_worth_it = is_line_shared(blocks, length, part, processors);
            (scan.threads, if is_worth_it { length.div_ceil(part).min(MOST_SCAN_SPLITS) } else { 1 })
        }
        Language::Cuda => {
            // Of a row eight tiles at least, in small blocks: not all of a multiprocessor waits for a tile's last warp. Of
            // columns 32 elements for each thread: whole columns are read twice as well.
            let (least, threads, part) = match is_innermost {
                true => {
                    let threads = scan.threads.min(THREADS);
                    (SPLIT_LENGTH, threads, 8 * u64::from(threads * scan.vector))
                }
                false => (SPLIT_LENGTH / 16, scan.threads, 32 * u64::from(scan.threads)),
            };
            let full = processors * BLOCKS_PER_PROCESSOR * u64::from(THREADS) / (u64::from(threads) * rows);
            let is_worth_it = blocks * 2 <= processors && length >= least;
            let most = (full / blocks.max(1)).min(1024);
            (threads, if is_worth_it { (length / part).min(most) } else { 1 })
        }
    };
    (splits > 1).then_some(ScanSchedule { threads, splits: splits as u32, ..*scan })
}

/// Whether cores share each of so many lines of a scan: what is divided is read twice, and computed twice before it is scanned.
fn is_line_shared(lines: u64, length: u64, part: u64, processors: u64) -> bool {
    lines * 2 <= processors && length >= 2 * part
}

/// The same of lines along the innermost axis.
///
/// ```
/// use lazuli_codegen::schedule::is_row_scan_shared;
/// assert!(is_row_scan_shared(1, 1 << 20, 8));
/// assert!(!is_row_scan_shared(1, 1 << 12, 8) && !is_row_scan_shared(100, 1 << 20, 8));
/// ```
pub fn is_row_scan_shared(lines: u64, length: u64, processors: u64) -> bool {
    is_line_shared(lines, length, scan_split_length(1), processors)
}

/// Whether what comes before a part of the axis is known from its elements alone: no scan follows from another one, and
/// there is no recurrence.
pub(super) fn is_divisible(kernel: &Kernel, axis: AxisId) -> bool {
    let is_scan = |op: &ValueOp| matches!(op, ValueOp::Scan { .. });
    kernel.recurrences.is_empty()
        && !is_nested(kernel, is_scan)
        && kernel.stores.iter().all(|store| store.index.uses(axis))
}
