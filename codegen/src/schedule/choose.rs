//! Choosing a schedule from the kernel's shape and the target's figures.

use super::keep::Keep;
use super::plain::in_plain_walks;
use super::share::{self, NEAR_LENGTH};
use super::sliding::sliding_axis;
use super::vector::Sizes;
use super::{
    ColumnSchedule, Contraction, Plan, PointwiseSchedule, RowContraction, RowSchedule, ScanSchedule,
    Scatters, Schedule, Sorts,
};
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Store, Value, ValueId, ValueOp};
use crate::{Language, ReduceOp, Refusal};

/// What schedules depend on of the target.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Multiprocessors of the GPU, or cores of the CPU.
    pub processors: u32,
    /// Whether registers ran out otherwise: then a thread computes one element at a time, and keeps none.
    pub is_frugal: bool,
    /// Bytes of shared memory that a block can have (CUDA).
    pub shared_bytes: u32,
}

/// Threads of a pointwise or row block.
const THREADS: u32 = 256;

/// Bytes of the widest access of a thread.
pub(super) const ACCESS_BYTES: u64 = 16;

/// Register values that the unrolled loops of one thread may load.
const LOADS_PER_THREAD: u64 = 64;

/// Bytes of a row that a thread should keep in registers: four 16-byte accesses in flight. More threads share a
/// longer row.
const KEPT_BYTES: u64 = 64;

/// Bytes of a row that a thread can keep in registers beside what it computes, where a block is as large as
/// it can be (1024 threads have 64 registers each).
pub(super) const MOST_KEPT_BYTES: u64 = 128;

/// Shared memory with which the threads of a block combine what each has of a row, a reduction: 32 warps, two values of 8
/// bytes.
const COMBINING_BYTES: u64 = 512;

/// Steps from which it pays to let rows of a recurrence go through shared memory.
const STAGED_STEPS: u64 = 16;

/// Operations of an unrolled walk: compilation takes time in proportion.
pub(crate) const UNROLLED_OPERATIONS: u64 = 8192;

/// Blocks of 256 threads that fill a multiprocessor.
pub(super) const BLOCKS_PER_PROCESSOR: u64 = 8;

/// Elements of a part of a split row, and the length from which rows are split: sums stay accurate,
/// and one row keeps all processors busy.
pub const SPLIT_LENGTH: u64 = 1 << 16;

/// Elements of a part of a split column on the CPU, where one lane adds up all of them.
pub const COLUMN_SPLIT_LENGTH: u64 = 1 << 12;

/// The most parts of an axis along which the CPU scans: each begins with what all before it come to.
pub(crate) const MOST_SCAN_SPLITS: u64 = 256;

/// Steps of a part of such an axis, unless it has more than [`MOST_SCAN_SPLITS`] of them, where so many columns go on
/// together.
pub(crate) fn scan_split_length(columns: u64) -> u64 {
    SPLIT_LENGTH / columns.next_power_of_two()
}

/// Bytes of the stack that a kernel takes for what it keeps of a row: near a core, and little beside any stack.
pub const STACK_BYTES: u64 = 1 << 16;

/// Fewer columns than this do not fill the lanes of a core.
pub(super) const SHORTEST_COLUMNS: u64 = 16;

/// Results of a CPU block: enough work to outweigh handing it to a thread.
const CPU_ELEMENTS_PER_BLOCK: u64 = 1 << 14;

/// Rows of scans that keep every core busy even when a block takes several of them.
const MANY_ROWS: u64 = 64;

/// The reductions that several threads share; all others are loops of one thread.
///
/// # Errors
/// If they cannot run in one kernel: they reduce different axes, or one is inside another.
pub fn cooperative(kernel: &Kernel) -> Result<Vec<ValueId>, Refusal> {
    let axes = |id: ValueId| match &kernel.value(id).op {
        ValueOp::Reduce { axes, .. } => axes.as_slice(),
        _ => &[],
    };
    let shared = reductions(kernel, is_in_thread)?;
    // Along axes that threads walk together, no thread walks by itself.
    let walked = shared.first().map(|&id| axes(id));
    reductions(kernel, |kernel, id| is_in_thread(kernel, id) && walked != Some(axes(id)))
}

/// The reductions that are in no other one, but for those that are left to one thread.
pub(super) fn reductions(
    kernel: &Kernel,
    is_in_thread: impl Fn(&Kernel, ValueId) -> bool,
) -> Result<Vec<ValueId>, Refusal> {
    // A reduction that varies along another's axes is inside of it: a loop of the same thread.
    let is_reduced = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce;
    let mut result: Vec<ValueId> = Vec::new();
    let mut shared: Option<&[AxisId]> = None;
    for (number, value) in kernel.values.iter().enumerate() {
        let ValueOp::Reduce { axes, .. } = &value.op else { continue };
        if value.axes.iter().any(is_reduced) || is_in_thread(kernel, ValueId(number as u32)) {
            continue;
        }
        if shared.is_some_and(|shared| shared != axes.as_slice()) {
            return Err(Refusal::DifferentReductions);
        }
        shared = Some(axes);
        result.push(ValueId(number as u32));
    }
    Ok(result)
}

/// Whether one thread computes the reduction by itself.
fn is_in_thread(kernel: &Kernel, id: ValueId) -> bool {
    let ValueOp::Reduce { axes, operand, .. } = &kernel.value(id).op else { return false };
    let is_stored_along = |axis| kernel.stores.iter().any(|store| store.index.uses(axis));
    if axes.iter().any(|&axis| kernel.axis(axis).is_argument || is_stored_along(axis)) {
        return false;
    }
    let positions: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
    share::is_in_thread(positions, || reads_windows(kernel, axes, *operand))
}

/// Whether a core makes all of these reductions of those of shorter windows: see `nest::windows_cpu`.
fn slides(kernel: &Kernel, reductions: &[ValueId]) -> bool {
    let Some(&inner) = kernel.axes_of_kind(AxisKind::Map).last() else { return false };
    let is_reduced = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce;
    let is_long = kernel.axis(inner).extent >= SHORTEST_COLUMNS;
    is_long
        && reductions.iter().all(|&id| sliding_axis(kernel, inner, id).is_some())
        && !kernel.stores.iter().any(|store| {
            kernel.value(store.value).axes.iter().any(is_reduced) || store.index.axes().iter().any(is_reduced)
        })
}

/// Whether some load below a reduction is of a window.
fn reads_windows(kernel: &Kernel, axes: &[AxisId], operand: ValueId) -> bool {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let reduced = || axes.iter().map(|&axis| (axis, kernel.axis(axis).extent));
    loads_below(kernel, operand).any(|load| match &kernel.value(load).op {
        ValueOp::Load { index, .. } => share::is_window(index, reduced(), &map),
        _ => false,
    })
}

/// The loads that a value depends on.
fn loads_below(kernel: &Kernel, root: ValueId) -> impl Iterator<Item = ValueId> + '_ {
    let is_load = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Load { .. });
    kernel.down_from([root]).into_iter().filter(is_load)
}

/// A schedule for the kernel.
///
/// # Errors
/// If none can run it: the reason.
pub fn schedule(kernel: &Kernel, language: Language, figures: &Figures) -> Result<Schedule, Refusal> {
    if let Some(scan) = scan(kernel, language) {
        return Ok(Schedule::Scan(divided(kernel, &scan, language, figures).unwrap_or(scan)));
    }
    if let Some(scatters) = Scatters::of(kernel)? {
        return Ok(Schedule::Scatter(super::scatter::scatter(kernel, &scatters, language, figures)));
    }
    if let Some(sorts) = Sorts::of(kernel)? {
        return Ok(Schedule::Sort(super::sort::sort(kernel, &sorts, language)));
    }
    if let Some(contraction) = Contraction::of(kernel, language) {
        return Ok(match language {
            Language::C => Schedule::Contraction(contraction.schedule(kernel)),
            Language::Cuda => Schedule::Product(contraction.tiles(kernel, figures)),
        });
    }
    if let Some(rows) = RowContraction::of(kernel).filter(|_| language == Language::C) {
        return Ok(Schedule::RowContraction(rows.schedule(kernel)));
    }
    if let Some(across) = super::across::across(kernel).filter(|_| language == Language::C) {
        return Ok(Schedule::Columns(across));
    }
    let reductions = cooperative(kernel)?;
    if reductions.is_empty()
        && let Some((_, tiled)) = super::tiled::tiled(kernel, language)
    {
        return Ok(Schedule::Tiled(tiled));
    }
    let first = reductions.first().filter(|_| language == Language::Cuda || !slides(kernel, &reductions));
    match first {
        None => Ok(Schedule::Pointwise(pointwise(kernel, language))),
        Some(&first) => {
            let ValueOp::Reduce { axes, operand, .. } = &kernel.value(first).op else {
                return Err(Refusal::Misfit("not a reduction"));
            };
            let walks_rows = match language {
                Language::C => strides_less_along(kernel, axes, *operand),
                Language::Cuda => None,
            };
            match walks_rows.unwrap_or_else(|| reduces_contiguous_axis(kernel, axes, *operand)) {
                true => Ok(Schedule::Rows(rows(kernel, axes, language, figures))),
                false => Ok(Schedule::Columns(columns(kernel, axes, language, figures))),
            }
        }
    }
}

/// The schedule of a kernel whose threads compute results of their own.
pub(super) fn pointwise(kernel: &Kernel, language: Language) -> PointwiseSchedule {
    match language {
        Language::Cuda => {
            PointwiseSchedule { threads: THREADS, vector: pointwise_vector(kernel), elements_per_block: 0 }
        }
        Language::C => {
            PointwiseSchedule { threads: 1, vector: 1, elements_per_block: CPU_ELEMENTS_PER_BLOCK }
        }
    }
}

/// The schedule of a kernel with scans or recurrences.
fn scan(kernel: &Kernel, language: Language) -> Option<ScanSchedule> {
    let (axis, reverse) = kernel.scan_axes().next()?;
    let map = kernel.axes_of_kind(AxisKind::Map);
    let (length, is_argument) = (kernel.axis(axis).extent, kernel.axis(axis).is_argument);
    let is_innermost = map.last() == Some(&axis);
    Some(match (language, is_innermost) {
        (Language::C, true) => {
            let rows = if is_argument { 1 } else { (CPU_ELEMENTS_PER_BLOCK / length.max(1)).max(1) };
            // Rows that go side by side are worth more than smaller blocks, where there are enough for all cores.
            let others = extent_of(kernel, &map) / length.max(1);
            let rows = if others >= MANY_ROWS { rows.max(crate::nest::ROWS_TOGETHER) } else { rows };
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
            let vector = match reverse || is_argument {
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
            // At least 16 elements for each thread that shares a column.
            let parts = if is_argument { 8 } else { previous_power_of_two(length / 16).clamp(1, 32) };
            ScanSchedule { threads: parts as u32, rows: 32, vector: 1, tile: 0, splits: 1 }
        }
    })
}

/// The schedule of scans whose axis is divided: where it is long, and they are so few that processors would be idle.
/// The elements are read twice then.
fn divided(
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
            // What is divided is read twice.
            let is_worth_it = blocks * 2 <= processors && length >= 2 * part;
            (scan.threads, if is_worth_it { length.div_ceil(part).min(MOST_SCAN_SPLITS) } else { 1 })
        }
        Language::Cuda => {
            // Of a row eight tiles at least, in small blocks: not all of a multiprocessor waits for a tile's last warp. Of
            // columns 64 elements for each thread.
            let (least, threads, part) = match is_innermost {
                true => {
                    let threads = scan.threads.min(THREADS);
                    (SPLIT_LENGTH, threads, 8 * u64::from(threads * scan.vector))
                }
                false => (SPLIT_LENGTH / 8, scan.threads, 64 * u64::from(scan.threads)),
            };
            let full = processors * BLOCKS_PER_PROCESSOR * u64::from(THREADS) / (u64::from(threads) * rows);
            let is_worth_it = blocks * 2 <= processors && length >= least;
            let most = (full / blocks.max(1)).min(1024);
            (threads, if is_worth_it { (length / part).min(most) } else { 1 })
        }
    };
    (splits > 1).then_some(ScanSchedule { threads, splits: splits as u32, ..*scan })
}

/// Whether what comes before a part of the axis is known from its elements alone: no scan follows from another one, and
/// there is no recurrence.
pub(super) fn is_divisible(kernel: &Kernel, axis: AxisId) -> bool {
    let is_scan = |op: &ValueOp| matches!(op, ValueOp::Scan { .. });
    kernel.recurrences.is_empty()
        && !is_nested(kernel, is_scan)
        && kernel.stores.iter().all(|store| store.index.uses(axis))
}

/// Lanes of a CPU row: two or three vectors of the widest instructions, so that additions overlap.
fn lanes(kernel: &Kernel, axes: &[AxisId], inner: u64) -> u64 {
    let finds_position = |value: &Value| matches!(value.op, ValueOp::Reduce { position: Some(_), .. });
    let is_stored_along = kernel.stores.iter().any(|store| axes.iter().any(|axis| store.index.uses(*axis)));
    let along = widest_along(kernel, axes);
    let (widest, most) = match kernel.values.iter().any(finds_position) && !is_stored_along {
        // Positions take 32 bits there, though the result has 64; merging two takes longer than finding one.
        true => (along.max(4), inner / 4),
        false => (along, inner),
    };
    (128 / widest).min(previous_power_of_two(most))
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

fn largest_power_of_two_divisor(n: u64, limit: u64) -> u64 {
    let mut divisor = limit.max(1);
    while !n.is_multiple_of(divisor) {
        divisor /= 2;
    }
    divisor
}

/// Consecutive results of a thread, where some store is consecutive along the innermost axis; fewer if the unrolled loops
/// would load too much.
fn pointwise_vector(kernel: &Kernel) -> u32 {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let Some(&inner) = map.last() else { return 1 };
    if !kernel.stores.iter().any(|store| store.index.coefficient(inner) == Some(1)) {
        return 1;
    }
    let mut vector = Sizes::along(kernel, &[inner]).vector();
    if map.len() > 1 {
        vector = largest_power_of_two_divisor(kernel.axis(inner).extent, vector);
    }
    let window: u64 =
        kernel.axes_of_kind(AxisKind::Reduce).iter().map(|&axis| kernel.axis(axis).extent).product();
    // Guarded elements are read one by one: neighbouring threads should be as near as can be.
    let is_guarded = |value: &Value| matches!(value.op, ValueOp::Load { guard: Some(_), .. });
    if window > 1 && kernel.values.iter().any(is_guarded) {
        return 1;
    }
    while vector > 1 && vector * window > LOADS_PER_THREAD {
        vector /= 2;
    }
    vector as u32
}

/// Whether the loads below a reduction are mostly consecutive along its axes.
fn reduces_contiguous_axis(kernel: &Kernel, axes: &[AxisId], operand: ValueId) -> bool {
    let (mut along, mut across) = (0, 0);
    for load in loads_below(kernel, operand) {
        let ValueOp::Load { index, buffer, .. } = &kernel.value(load).op else { continue };
        // What is read once a row says nothing of the walk.
        if !axes.iter().any(|axis| kernel.value(load).axes.contains(axis)) {
            continue;
        }
        let weight =
            kernel.buffers[buffer.index()].elements * kernel.buffers[buffer.index()].dtype.size() as u64;
        let consecutive = |axis: AxisId| index.coefficient(axis).is_some_and(|c| c.unsigned_abs() == 1);
        if axes.iter().any(|&axis| consecutive(axis)) {
            along += weight;
        } else if kernel.axes_of_kind(AxisKind::Map).into_iter().any(consecutive) {
            across += weight;
        }
    }
    along >= across
}

/// Whether a core's lanes read fewer loads element by element along a row than across columns; `None` if it makes no
/// difference. What all lanes read at one place costs nothing, which is not so for the threads of a GPU's block, who share
/// what they read.
fn strides_less_along(kernel: &Kernel, axes: &[AxisId], operand: ValueId) -> Option<bool> {
    let along = *axes.last()?;
    let across = *kernel.axes_of_kind(AxisKind::Map).last()?;
    if kernel.axis(across).extent < SHORTEST_COLUMNS {
        return None;
    }
    let strided = |axis: AxisId| {
        let is_strided = |load: &ValueId| match &kernel.value(*load).op {
            ValueOp::Load { index, .. } => index.coefficient(axis).is_none_or(|c| c.unsigned_abs() > 1),
            _ => false,
        };
        loads_below(kernel, operand).filter(is_strided).count()
    };
    let (rows, columns) = (strided(along), strided(across));
    (rows != columns).then_some(rows < columns)
}

pub(super) fn extent_of(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}

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
                false => (CPU_ELEMENTS_PER_BLOCK / length.max(1)).max(1) as u32,
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
            let splits = match is_splittable(kernel, axes) && rows * 16 < full && length >= SPLIT_LENGTH / 2 {
                true => (length / (SPLIT_LENGTH / 8)).clamp(1, full.div_ceil(rows.max(1))).min(1024),
                false => 1,
            };
            let widest_vector = Sizes::of_loads(kernel, axes).vector();
            let vector = match is_argument && axes.len() == 1 {
                true => widest_vector,
                false => largest_power_of_two_divisor(inner, widest_vector),
            };
            let row = match (splits, is_argument) {
                (1, false) => Row::kept(kernel, length, vector, figures),
                _ => None,
            };
            let walked_again = || match (splits, is_argument) {
                (1, false) => Row { threads: again(kernel, axes, length), turns: 0, shared_bytes: 0 },
                _ => Row { threads: THREADS, turns: 0, shared_bytes: 0 },
            };
            let Row { threads: threads_per_row, turns: persistent, shared_bytes } =
                row.unwrap_or_else(walked_again);
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

/// The threads of a row whose walks read it again: as many as there can be of a long one, so that few rows at a time
/// are in the cache.
fn again(kernel: &Kernel, axes: &[AxisId], length: u64) -> u32 {
    let is_long = length > NEAR_LENGTH && !is_splittable(kernel, axes);
    if is_long { 1024 } else { THREADS }
}

/// The bytes of the stack that keep what is costly of a row.
fn stack_bytes(kernel: &Kernel, length: u64) -> Option<u64> {
    let walked = in_plain_walks(kernel, |op| op == ReduceOp::SumExp).ok()?;
    let plan = Plan::new(&walked).ok()?;
    Some(plan.keep_on_stack(&walked, length, STACK_BYTES).array_bytes(length))
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
    /// A row that is kept from walk to walk: in registers or, if these do not hold it, in shared memory.
    fn kept(kernel: &Kernel, length: u64, vector: u64, figures: &Figures) -> Option<Row> {
        let walked = in_plain_walks(kernel, |_| true).ok()?;
        let plan = Plan::new(&walked).ok()?;
        let vectors = length / vector;
        let of = |bytes: u64| {
            let wanted = (length * bytes).div_ceil(KEPT_BYTES).min(vectors).next_power_of_two();
            let threads = wanted.clamp(8, 1024);
            (threads, vectors.div_ceil(threads))
        };
        let mut bytes = plan.keep_loads(&walked).bytes.max(widest_input(kernel));
        if !plan.fits(bytes, of(bytes).1 * vector) {
            bytes = plan.keep_least(&walked).bytes.max(widest_input(kernel));
        }
        let (threads, turns) = of(bytes);
        let operations = walked.values.len() as u64 * turns * vector;
        let row = Row { threads: threads as u32, turns: turns as u32, shared_bytes: 0 };
        if plan.fits(bytes, turns * vector) && operations <= UNROLLED_OPERATIONS {
            return Some(row);
        }
        // Several rows of a block are short enough for registers.
        let most = most_shared(&plan, figures);
        let shared_bytes = plan.keep_shared(&walked, length, most).array_bytes(length);
        let fits = threads > 32 && (1..=most).contains(&shared_bytes);
        fits.then_some(Row { shared_bytes: shared_bytes as u32, ..row })
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

/// A split row is read once: nothing that depends on the result may vary along it. What varies along it otherwise is
/// stored on the way.
pub(super) fn is_splittable(kernel: &Kernel, axes: &[AxisId]) -> bool {
    let walks = |op: &ValueOp| matches!(op, ValueOp::Reduce { axes: own, .. } if own.as_slice() == axes);
    let Some(follows) = following(kernel, walks) else { return false };
    let is_along = |store: &Store| axes.iter().any(|axis| store.index.uses(*axis));
    !kernel.stores.iter().any(|store| is_along(store) && follows[store.value.index()])
}

/// Whether one of these operations follows from another of them.
fn is_nested(kernel: &Kernel, is_one: impl Fn(&ValueOp) -> bool) -> bool {
    following(kernel, is_one).is_none()
}

/// Which values are one of these operations, or follow from one; `None` if one follows from another.
fn following(kernel: &Kernel, is_one: impl Fn(&ValueOp) -> bool) -> Option<Vec<bool>> {
    let mut follows = vec![false; kernel.values.len()];
    for (number, value) in kernel.values.iter().enumerate() {
        let below = kernel.operands(&value.op).iter().any(|operand| follows[operand.index()]);
        let is_one = is_one(&value.op);
        if below && is_one {
            return None;
        }
        follows[number] = below || is_one;
    }
    Some(follows)
}

fn widest_input(kernel: &Kernel) -> u64 {
    let inputs = kernel.buffers.iter().filter(|buffer| !buffer.is_output);
    inputs.map(|buffer| buffer.dtype.size() as u64).max().unwrap_or(4)
}

pub(super) fn previous_power_of_two(n: u64) -> u64 {
    1 << n.max(1).ilog2()
}

pub(super) fn columns(
    kernel: &Kernel,
    axes: &[AxisId],
    language: Language,
    figures: &Figures,
) -> ColumnSchedule {
    let length = extent_of(kernel, axes);
    let map = kernel.axes_of_kind(AxisKind::Map);
    let columns = extent_of(kernel, &map);
    let inner = map.last().map_or(1, |&axis| kernel.axis(axis).extent);
    match language {
        Language::C => {
            // A block's partial results stay in the first-level cache.
            let inner = super::across::lanes_along(kernel).map_or(inner, |axis| kernel.axis(axis).extent);
            let lanes = inner.clamp(1, 512) as u32;
            let splits = match is_splittable(kernel, axes) {
                true => length.div_ceil(COLUMN_SPLIT_LENGTH).min(u64::from(u32::MAX)) as u32,
                false => 1,
            };
            ColumnSchedule { threads_x: lanes, threads_y: 1, vector: 1, splits, shares_all: false }
        }
        Language::Cuda => {
            let widest = map.last().map_or(4, |&inner| Sizes::along(kernel, &[inner]).widest());
            let vector = largest_power_of_two_divisor(inner, ACCESS_BYTES / widest.max(4));
            let blocks = columns.div_ceil(32 * vector);
            let full = u64::from(figures.processors) * BLOCKS_PER_PROCESSOR;
            let splits = match is_splittable(kernel, axes) && blocks * 2 < full && length >= 512 {
                true => (full / blocks.max(1)).clamp(1, length / 128).min(256),
                false => 1,
            };
            let vector = vector as u32;
            ColumnSchedule { threads_x: 32, threads_y: 8, vector, splits: splits as u32, shares_all: false }
        }
    }
}
