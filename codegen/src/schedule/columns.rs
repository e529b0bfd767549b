//! Schedules of reductions across rows: neighbouring threads or lanes hold neighbouring columns.

use super::ColumnSchedule;
use super::facts::{
    ACCESS_BYTES, BLOCKS_PER_PROCESSOR, COLUMN_SPLIT_LENGTH, Figures, THREADS, extent_of, is_splittable,
    largest_power_of_two_divisor, previous_power_of_two,
};
use super::vector::Sizes;
use super::work::columns_per_block;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Value, ValueOp};
use crate::{Language, ReduceOp};

/// Bytes of a row that neighbouring threads read together: a GPU's memory answers with 32 at a time, and of fewer than 64 in
/// one place, softmaxes of 2048 and 4096 columns on an H200 took 1.3 to 1.9 times as long.
const LEAST_BYTES: u64 = 64;

/// Threads of a block of few columns that are read again: with 512 and 1024, softmaxes were the fastest.
const TALL_THREADS: u64 = 512;

/// Threads of a block of few columns that are divided, and the elements of each from which there are so many.
const MOST_THREADS: u64 = 1024;
const LONG: u64 = 1 << 14;

/// Threads that a multiprocessor has at a time.
const THREADS_OF_PROCESSOR: u64 = 2048;

/// Blocks of a multiprocessor that columns which are read again should give.
const BLOCKS_TO_FILL: u64 = 4;

/// Elements of a column that one thread may go down alone: softmaxes of three channels took three times as long with eight threads.
const MOST_OF_THREAD: u64 = 32;

/// Elements of a part of divided columns at least, or so many for each of its threads.
const LEAST_PART: u64 = 128;
const LEAST_OF_THREAD: u64 = 8;

/// Elements of columns that are divided at all: results of others can no longer be in their kernel.
const LEAST_DIVIDED: u64 = 3 * LEAST_PART;

/// Elements of a column that a thread should have at least.
const LEAST_TERMS: u64 = 4;

/// Bytes of shared memory in which a block's threads leave their partial results; where columns are divided, twice.
const SHARED_BYTES: u64 = 40 << 10;

pub(super) fn columns(
    kernel: &Kernel,
    axes: &[AxisId],
    language: Language,
    figures: &Figures,
) -> ColumnSchedule {
    match language {
        Language::C => on_cpu(kernel, axes),
        Language::Cuda => on_cuda(kernel, axes, figures),
    }
}

fn on_cpu(kernel: &Kernel, axes: &[AxisId]) -> ColumnSchedule {
    // A block's partial results stay in the first-level cache.
    let inner = super::across::lanes_along(kernel).or(kernel.axes_of_kind(AxisKind::Map).last().copied());
    let lanes = inner.map_or(1, |axis| kernel.axis(axis).extent).clamp(1, 512);
    let splits = match is_splittable(kernel, axes) {
        true => extent_of(kernel, axes).div_ceil(COLUMN_SPLIT_LENGTH).min(u64::from(u32::MAX)) as u32,
        false => 1,
    };
    // An extent that is an argument counts as 1: the text is for every one.
    let others = kernel.axes_of_kind(AxisKind::Map).into_iter().filter(|&axis| Some(axis) != inner);
    let others: u64 = others
        .map(|axis| kernel.axis(axis))
        .filter(|axis| !axis.is_argument)
        .map(|axis| axis.extent)
        .product();
    let lanes =
        inner.map_or(lanes, |axis| columns_per_block(kernel, axis, lanes, others * u64::from(splits)));
    ColumnSchedule { threads_x: lanes as u32, threads_y: 1, vector: 1, splits, shares_all: false }
}

/// Blocks of 256 threads over 32 vectors of columns. Where these are too few, columns that are read once are divided; what is
/// read again for the results has blocks of fewer columns, and more threads for each.
fn on_cuda(kernel: &Kernel, axes: &[AxisId], figures: &Figures) -> ColumnSchedule {
    let length = extent_of(kernel, axes);
    let map = kernel.axes_of_kind(AxisKind::Map);
    let columns = extent_of(kernel, &map);
    let inner = map.last().map_or(1, |&axis| kernel.axis(axis).extent);
    let sizes = map.last().map(|&inner| Sizes::along(kernel, &[inner]));
    let widest = sizes.map_or(4, |sizes| sizes.widest());
    let vector = largest_power_of_two_divisor(inner, ACCESS_BYTES / widest.max(4));
    let processors = u64::from(figures.processors);
    let full = processors * BLOCKS_PER_PROCESSOR;
    let blocks = columns.div_ceil(32 * vector);
    let of_thread = vector * partial_bytes(kernel);
    if is_splittable(kernel, axes) {
        // Few columns: threads beyond the last one would be idle.
        let threads_x = columns.div_ceil(vector).next_power_of_two().min(32);
        let least = (LEAST_OF_THREAD * u64::from(THREADS) / threads_x).min(LEAST_PART);
        let splits = match blocks * 2 < full && length >= LEAST_DIVIDED {
            true => (full / blocks.max(1)).clamp(1, length / least).min(256),
            false => 1,
        };
        let fill = processors * THREADS_OF_PROCESSOR / (blocks * splits).max(1);
        let threads = match length >= LONG {
            true => fill.min(MOST_THREADS).min(SHARED_BYTES / 2 / of_thread).max(u64::from(THREADS)),
            false => u64::from(THREADS),
        };
        return schedule(threads_x, previous_power_of_two(threads / threads_x), vector, splits);
    }
    // A thread has such short columns to itself, where these fill the multiprocessors.
    if length <= MOST_OF_THREAD && columns >= processors * THREADS_OF_PROCESSOR / 4 * vector {
        return schedule(u64::from(THREADS), 1, vector, 1);
    }
    let mut wide = 32 * vector;
    while wide * widest > LEAST_BYTES && columns.div_ceil(wide) < processors * BLOCKS_TO_FILL {
        wide /= 2;
    }
    let vector = vector.min((wide / 8).max(1));
    let threads_x = (wide / vector).min(columns.div_ceil(vector).next_power_of_two());
    let most = (length / LEAST_TERMS).max(1) * threads_x;
    let threads = match columns.div_ceil(wide) < full {
        true => TALL_THREADS.min(SHARED_BYTES / of_thread).min(most),
        false => u64::from(THREADS),
    };
    schedule(threads_x, previous_power_of_two(threads / threads_x).max(8), vector, 1)
}

/// Bytes of a column's partial results.
fn partial_bytes(kernel: &Kernel) -> u64 {
    let of = |value: &Value| match &value.op {
        ValueOp::Reduce { op, position, .. } => {
            let words = match op {
                ReduceOp::SquaredDeviations => 3,
                ReduceOp::SumExp => 2,
                _ => 1,
            };
            words * value.dtype.size() as u64 + if position.is_some() { 8 } else { 0 }
        }
        _ => 0,
    };
    kernel.values.iter().map(of).sum::<u64>().max(1)
}

fn schedule(threads_x: u64, threads_y: u64, vector: u64, splits: u64) -> ColumnSchedule {
    ColumnSchedule {
        threads_x: threads_x as u32,
        threads_y: threads_y as u32,
        vector: vector as u32,
        splits: splits as u32,
        shares_all: false,
    }
}
