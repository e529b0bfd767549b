//! Reductions on the CPU that a GPU leaves to one thread, as columns: rows of few elements, which lie across (lanes hold
//! neighbouring rows), columns that are too long to be unrolled, and rows each element of which is itself a reduction.

use std::ops::RangeInclusive;

use super::facts::{SHORTEST_COLUMNS, extent_of, previous_power_of_two, reductions};
use super::share::NEAR;
use super::work::operations;
use super::{ColumnSchedule, Plan};
use crate::Refusal;
use crate::cost::WORTH_KEEPING;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, Store, Value, ValueId, ValueOp};
use crate::ops::ReduceOp;

/// Rows of more elements fill the lanes themselves: of plain reductions, of functions or where results lie along them, and of
/// several reductions or those that keep more than a number (`benches/notes/short_rows.md`, "By length").
const LONGEST: u64 = 16;
const LONGEST_COSTLY: u64 = 24;
const LONGEST_SEVERAL: u64 = 40;

/// Columns that one thread of a GPU reduces alone, at most; those of up to so many elements are unrolled on the CPU.
const LONGEST_COLUMNS: u64 = 64;
const LONGEST_UNROLLED: u64 = 25;

/// Rows that are transposed at a time: those of a vector, and as many as stay in the nearest cache.
const VECTOR: u64 = 16;
const MOST_COLUMNS: u64 = 64;

/// Elements of a row that are reductions, at most: a lane adds up all of them.
const LONGEST_NESTED: u64 = 4096;

/// Positions of such a reduction, at most.
const LONGEST_INNER: u64 = 128;

/// Bytes of its tiles: a quarter of the nearest cache, since the rows pass through it too while they are turned (with half of it, the best
/// of 8 × 8 numbers each took 1.0 ms for 0.7; a density of neighbours takes 0.61 for 0.57). And elements of a tile where that leaves too few columns.
const NESTED_TILES: u64 = 8 << 10;
const NESTED_TILE: u64 = 8192;

/// Blocks that keep every core busy, where there are enough columns.
const BLOCKS: u64 = 16;

/// Whether the elements that a load reads along the reduced axes are consecutive, or nearly, or a row's in another order, as
/// of a roll, and those of neighbouring columns are not, or wherever a position says that each column computes.
pub(crate) fn lies_across(kernel: &Kernel, load: ValueId, axes: &[AxisId], column: AxisId) -> bool {
    let ValueOp::Load { index, guard: None, .. } = &kernel.value(load).op else { return false };
    let stride = |axis: AxisId| index.coefficient(axis).map(i64::unsigned_abs);
    let varies = |axis: &AxisId| stride(*axis).is_none_or(|stride| stride > 0);
    let computed = kernel.computed_axes(index);
    let of_column = |value: ValueId| {
        let own = &kernel.value(value).axes;
        own.contains(&column) && !axes.iter().any(|axis| own.contains(axis))
    };
    let is_gathered = !computed.is_empty() && computed.iter().all(|&(_, value)| of_column(value));
    let is_bound = |axis: &AxisId| {
        axes.contains(axis)
            || kernel.axis(*axis).kind.is_map_or_offset()
            || computed.iter().any(|(computed, _)| computed == axis)
    };
    let is_dense = |reach: u64| match axes.iter().all(|&axis| stride(axis).is_some()) {
        true => axes.last().is_some_and(|&axis| stride(axis) == Some(1)),
        false => reach < 2 * extent_of(kernel, axes),
    };
    axes.iter().any(varies)
        && index.axes().iter().all(is_bound)
        && (is_gathered || computed.is_empty())
        && reach(kernel, index, axes)
            .zip(stride(column))
            .is_some_and(|(reach, stride)| is_dense(reach) && (is_gathered || stride > reach))
}

/// From the first to the last element that an index reaches along these axes; `None` where a division or remainder is of others
/// as well.
fn reach(kernel: &Kernel, index: &IndexExpr, axes: &[AxisId]) -> Option<u64> {
    let is_offset = |axis: AxisId| matches!(kernel.axis(axis).kind, AxisKind::Offset { .. });
    let (first, last) = index.part_along(axes, is_offset)?.range(&kernel.ranges());
    last.checked_sub(first)?.try_into().ok()
}

/// Whether what a store writes along the reduced axes is consecutive.
pub(crate) fn is_stored_across(store: &Store, axes: &[AxisId], column: AxisId) -> bool {
    let stride = |axis: AxisId| store.index.coefficient(axis).map(i64::unsigned_abs);
    axes.last().is_some_and(|&axis| stride(axis) == Some(1))
        && stride(column).is_some_and(|stride| stride > 1)
}

/// The reduced axes along which a value varies, outermost first.
pub(crate) fn reduced_axes(kernel: &Kernel, id: ValueId) -> Vec<AxisId> {
    let is_reduced = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce;
    kernel.value(id).axes.iter().copied().filter(is_reduced).collect()
}

/// The reductions of columns: those that are in no other one, however short they are, but for what all columns have in common
/// and, where others go along other axes, what is short enough to be unrolled.
pub(crate) fn reductions_of_columns(kernel: &Kernel) -> Result<Vec<ValueId>, Refusal> {
    let column = lanes_along(kernel);
    let positions = |id: ValueId| match &kernel.value(id).op {
        ValueOp::Reduce { axes, .. } if axes.iter().all(|&axis| !kernel.axis(axis).is_argument) => {
            extent_of(kernel, axes)
        }
        _ => u64::MAX,
    };
    let is_common = |id: ValueId| {
        positions(id) <= LONGEST_COLUMNS && column.is_none_or(|axis| !kernel.value(id).axes.contains(&axis))
    };
    let all = reductions(kernel, |_, id| is_common(id));
    if !matches!(all, Err(Refusal::DifferentReductions)) {
        return all;
    }
    let before = needed_by_elements(kernel);
    let longest = reductions(kernel, |_, id| {
        is_common(id) || positions(id) <= LONGEST_COLUMNS && before.binary_search(&id).is_ok()
    });
    match longest {
        Err(Refusal::DifferentReductions) => {
            reductions(kernel, |_, id| is_common(id) || positions(id) <= LONGEST_UNROLLED)
        }
        found => found,
    }
}

/// The values that elements of reductions follow from, ascending.
fn needed_by_elements(kernel: &Kernel) -> Vec<ValueId> {
    let operand = |value: &Value| match value.op {
        ValueOp::Reduce { operand, .. } => Some(operand),
        _ => None,
    };
    let mut below = kernel.down_from(kernel.values.iter().filter_map(operand));
    below.sort_unstable();
    below
}

/// Reductions of each column's own, along other axes than these, that the elements of its passes need: they come before
/// the passes.
pub(crate) fn reductions_apart(kernel: &Kernel, reductions: &[ValueId], axes: &[AxisId]) -> Vec<ValueId> {
    let Some(column) = lanes_along(kernel) else { return Vec::new() };
    let is_swept = |id: ValueId| kernel.value(id).axes.iter().any(|axis| axes.contains(axis));
    let stored = kernel.stores.iter().map(|store| store.value).filter(|&id| is_swept(id));
    let is_reduced = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce;
    let mut below = kernel.down_from(reductions.iter().copied().chain(stored));
    below.sort_unstable();
    below.retain(|id| {
        let value = kernel.value(*id);
        matches!(value.op, ValueOp::Reduce { .. })
            && !reductions.contains(id)
            && value.axes.contains(&column)
            && !value.axes.iter().any(is_reduced)
    });
    below
}

/// The axes of the reductions within a pass along `axes`: each of its elements has results of their own.
pub(crate) fn nested_axes(kernel: &Kernel, reductions: &[ValueId], axes: &[AxisId]) -> Vec<AxisId> {
    let mut nested: Vec<AxisId> = Vec::new();
    // What is further in comes first among the values.
    for id in kernel.down_from(reductions.iter().copied()).into_iter().rev() {
        let value = kernel.value(id);
        let is_within = value.axes.iter().any(|axis| axes.contains(axis) || nested.contains(axis));
        if let ValueOp::Reduce { axes: own, .. } = &value.op
            && is_within
        {
            nested.extend(own.iter().filter(|axis| !nested.contains(axis)).collect::<Vec<_>>());
        }
    }
    nested.sort_unstable();
    nested
}

/// The axis along which lanes hold neighbouring columns: the innermost one, unless it is short, and more is consecutive in memory
/// along another one than is near along this.
pub(crate) fn lanes_along(kernel: &Kernel) -> Option<AxisId> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let is_long =
        |axis: AxisId| kernel.axis(axis).is_argument || kernel.axis(axis).extent >= SHORTEST_COLUMNS;
    let &last = map.last()?;
    if is_long(last) {
        return Some(last);
    }
    // Elements of all that is read in such steps.
    let read = |axis: AxisId, steps: RangeInclusive<i64>| -> u64 {
        let elements = |value: &Value| match &value.op {
            ValueOp::Load { index, buffer, .. } => {
                let is_so = index.coefficient(axis).is_some_and(|step| steps.contains(&step));
                if is_so { kernel.buffers[buffer.index()].elements } else { 0 }
            }
            _ => 0,
        };
        kernel.values.iter().map(elements).sum()
    };
    let near = read(last, 1..=NEAR as i64);
    let others = map.iter().copied().filter(|&axis| is_long(axis) && read(axis, 1..=1) > near);
    others.max_by_key(|&axis| read(axis, 1..=1)).or(Some(last))
}

/// Whether what neighbouring results read overlaps: some access steps over elements of the next one.
fn overlaps(kernel: &Kernel, load: ValueId, axes: &[AxisId]) -> bool {
    let ValueOp::Load { index, .. } = &kernel.value(load).op else { return false };
    let stride = |axis: AxisId| index.coefficient(axis).unwrap_or(0).unsigned_abs();
    let last = |axis: AxisId| stride(axis) * (kernel.axis(axis).extent.max(1) - 1);
    let map = kernel.axes_of_kind(AxisKind::Map);
    axes.iter().any(|&axis| {
        let reach = stride(axis) * kernel.axis(axis).extent;
        map.iter().any(|&m| stride(m) > 0 && stride(m) < reach && last(m) >= stride(axis) && stride(axis) > 0)
    })
}

/// Whether transposing what is stored along the reduced axes costs more than gathering, element by element, what is loaded along
/// them.
fn stores_outweigh_loads(kernel: &Kernel, loads: &[ValueId], axes: &[AxisId], column: AxisId) -> bool {
    let stored = kernel.stores.iter().filter(|store| is_stored_across(store, axes, column)).count();
    let apart = |&id: &ValueId| {
        let ValueOp::Load { index, .. } = &kernel.value(id).op else { return 0.0 };
        let within: Vec<AxisId> =
            reduced_axes(kernel, id).into_iter().filter(|axis| !axes.contains(axis)).collect();
        let each = match axes.last().map(|&axis| index.coefficient(axis).map(i64::unsigned_abs)) {
            Some(Some(0 | 1)) | None => 0.0,
            // Lanes so near are shuffled out of whole vectors.
            Some(Some(2..=4)) => 0.25,
            _ => 1.0,
        };
        each * extent_of(kernel, &within) as f64
    };
    stored > 0 && loads.iter().map(apart).sum::<f64>() <= stored as f64
}

fn stores_along(kernel: &Kernel, axes: &[AxisId]) -> bool {
    kernel.stores.iter().any(|store| axes.iter().any(|&axis| store.index.uses(axis)))
}

/// How many elements a row has at most that lies across. Tiles of eight bytes an element fill the nearest cache sooner.
fn longest_row(kernel: &Kernel, reductions: &[ValueId], axes: &[AxisId], loads: &[ValueId]) -> u64 {
    let keeps_more = |&id: &ValueId| match kernel.value(id).op {
        ValueOp::Reduce { op, position, .. } => {
            position.is_some() || matches!(op, ReduceOp::SquaredDeviations | ReduceOp::SumExp)
        }
        _ => false,
    };
    let is_reduction = |id: ValueId| matches!(kernel.value(id).op, ValueOp::Reduce { .. });
    let is_costly = |id: ValueId| !is_reduction(id) && operations(kernel, id) >= WORTH_KEEPING;
    let longest = match stores_along(kernel, axes) {
        true => LONGEST_COSTLY,
        false if reductions.len() > 1 || reductions.iter().any(keeps_more) => LONGEST_SEVERAL,
        false if kernel.down_from(reductions.iter().copied()).into_iter().any(is_costly) => LONGEST_COSTLY,
        false => LONGEST,
    };
    let widest = loads.iter().map(|&id| kernel.value(id).dtype.size() as u64).max().unwrap_or(4);
    (longest * 4 / widest.max(4)).max(LONGEST)
}

/// How many rows of so many elements, which are stored, are transposed at a time. Rows whose elements are shuffled into place
/// stay in registers, a vector of each of their elements.
fn columns_of(length: u64) -> u64 {
    match length {
        2..=4 | 8 => VECTOR,
        _ => MOST_COLUMNS,
    }
}

/// The schedule, where all that is read along the rows lies across, or all that is read down the columns does not.
pub(super) fn across(kernel: &Kernel) -> Option<ColumnSchedule> {
    let column = lanes_along(kernel)?;
    let reductions = reductions_of_columns(kernel).ok()?;
    let ValueOp::Reduce { axes, .. } = &kernel.value(*reductions.first()?).op else { return None };
    let is_argument = |axis: &AxisId| kernel.axis(*axis).is_argument;
    let is_many = is_argument(&column) || kernel.axis(column).extent >= SHORTEST_COLUMNS;
    let inner = nested_axes(kernel, &reductions, axes);
    if !is_many || axes.iter().chain(&inner).any(is_argument) {
        return None;
    }
    let (length, within) = (extent_of(kernel, axes), extent_of(kernel, &inner));
    let longest = if inner.is_empty() { LONGEST_COLUMNS } else { LONGEST_NESTED };
    // What loops read is that of one row.
    let is_guarded = kernel.values.iter().any(|value| matches!(value.op, ValueOp::InBounds(_)));
    if !(2..=longest).contains(&length) || within > LONGEST_INNER || is_guarded {
        return None;
    }
    let varies =
        |id: ValueId| kernel.value(id).axes.iter().any(|axis| axes.contains(axis) || inner.contains(axis));
    let stored = kernel.stores.iter().map(|store| store.value).filter(|&id| varies(id));
    let swept = kernel.down_from(reductions.iter().copied().chain(stored));
    let is_short = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Reduce { axes, .. } => {
            !axes.iter().any(is_argument) && extent_of(kernel, axes) <= LONGEST_COLUMNS
        }
        _ => false,
    };
    if !reductions_apart(kernel, &reductions, axes).iter().all(is_short) {
        return None;
    }
    // What is somewhere else for each column and each element of it is read one by one whatever the loops are.
    let is_alone = |index: &IndexExpr| {
        let mut computed = kernel.computed_axes(index).into_iter();
        computed.any(|(_, value)| kernel.value(value).axes.contains(&column) && varies(value))
    };
    let is_decisive = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Load { index, .. } => varies(*id) && !is_alone(index),
        _ => false,
    };
    let loads: Vec<ValueId> = swept.into_iter().filter(is_decisive).collect();
    // What all columns read at one place, such as a weight, costs nothing.
    let is_one = |id: ValueId| !kernel.value(id).axes.contains(&column);
    let tile = |id: ValueId| extent_of(kernel, &reduced_axes(kernel, id));
    let is_read_across = |id: ValueId| lies_across(kernel, id, &reduced_axes(kernel, id), column);
    let is_consecutive = |id: ValueId| match &kernel.value(id).op {
        ValueOp::Load { index, .. } => index.coefficient(column) == Some(1) && !overlaps(kernel, id, axes),
        _ => false,
    };
    let fits = |fits: &dyn Fn(ValueId) -> bool| {
        loads.iter().all(|&id| fits(id) || is_one(id)) && loads.iter().any(|&id| fits(id))
    };
    let (fits, lanes) = match length {
        _ if !inner.is_empty() => {
            let turned = || loads.iter().copied().filter(|&id| is_read_across(id));
            let largest = turned().map(tile).max().unwrap_or(0);
            let bytes: u64 = turned().map(|id| tile(id) * kernel.value(id).dtype.size() as u64).sum();
            let lanes = previous_power_of_two(NESTED_TILES / bytes.max(1)).min(512);
            let columns = previous_power_of_two(kernel.axis(column).extent / BLOCKS);
            let lanes = lanes.min(columns).max(SHORTEST_COLUMNS);
            let is_small = largest * SHORTEST_COLUMNS <= NESTED_TILE
                && !stores_outweigh_loads(kernel, &loads, axes, column);
            (fits(&|id| is_read_across(id) || is_consecutive(id)) && is_small, lanes)
        }
        _ if length <= longest_row(kernel, &reductions, axes, &loads) => {
            let is_stored = stores_along(kernel, axes);
            (fits(&is_read_across), if is_stored { columns_of(length) } else { MOST_COLUMNS })
        }
        // Shorter columns are unrolled, in one loop over the results.
        _ => (length > LONGEST_UNROLLED && fits(&is_consecutive), 512.min(kernel.axis(column).extent)),
    };
    let schedule =
        ColumnSchedule { threads_x: lanes as u32, threads_y: 1, vector: 1, splits: 1, shares_all: true };
    (fits && Plan::of(kernel, reductions).is_ok()).then_some(schedule)
}
