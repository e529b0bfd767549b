//! Reductions on the CPU that a GPU leaves to one thread, as columns: rows of few elements, which lie across (lanes hold
//! neighbouring rows), and columns that are too long to be unrolled.

use super::choose::{SHORTEST_COLUMNS, reductions};
use super::{ColumnSchedule, Plan};
use crate::Refusal;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Store, Value, ValueId, ValueOp};

/// Longer rows fill the lanes themselves.
const LONGEST: u64 = 16;

/// Columns that one thread of a GPU walks alone, at most; those of up to so many elements are unrolled on the CPU.
const LONGEST_COLUMNS: u64 = 64;
const LONGEST_UNROLLED: u64 = 25;

/// Elements of a tile: a few tiles stay in the nearest cache.
const TILE: u64 = 2048;

/// Whether the elements that a load reads along the reduced axes are consecutive, or nearly, and those of neighbouring columns
/// are not.
pub(crate) fn lies_across(kernel: &Kernel, load: ValueId, axes: &[AxisId], column: AxisId) -> bool {
    let ValueOp::Load { index, guard: None, .. } = &kernel.value(load).op else { return false };
    let stride = |axis: AxisId| index.coefficient(axis).map(i64::unsigned_abs);
    let varies = |axis: &AxisId| stride(*axis).is_none_or(|stride| stride > 0);
    let is_bound = |axis: &AxisId| axes.contains(axis) || kernel.axis(*axis).kind.is_map_or_offset();
    let reach: Option<u64> =
        axes.iter().map(|&axis| Some(stride(axis)? * (kernel.axis(axis).extent - 1))).sum();
    axes.iter().any(varies)
        && index.axes().iter().all(is_bound)
        && kernel.computed_axes(index).is_empty()
        && axes.last().is_some_and(|&axis| stride(axis) == Some(1))
        && reach.zip(stride(column)).is_some_and(|(reach, stride)| stride > reach)
}

/// Whether what a store writes along the reduced axes is consecutive.
pub(crate) fn is_stored_across(store: &Store, axes: &[AxisId], column: AxisId) -> bool {
    let stride = |axis: AxisId| store.index.coefficient(axis).map(i64::unsigned_abs);
    axes.last().is_some_and(|&axis| stride(axis) == Some(1))
        && stride(column).is_some_and(|stride| stride > 1)
}

/// All reductions that are in no other one, however short they are.
pub(crate) fn all_reductions(kernel: &Kernel) -> Result<Vec<ValueId>, Refusal> {
    reductions(kernel, |_, _| false)
}

/// The axis along which lanes hold neighbouring columns: the innermost one, unless it is short and another one is consecutive
/// in memory.
pub(crate) fn lanes_along(kernel: &Kernel) -> Option<AxisId> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let is_long =
        |axis: AxisId| kernel.axis(axis).is_argument || kernel.axis(axis).extent >= SHORTEST_COLUMNS;
    let &last = map.last()?;
    if is_long(last) {
        return Some(last);
    }
    let consecutive = |axis: AxisId| {
        let is_consecutive = |value: &&Value| match &value.op {
            ValueOp::Load { index, .. } => index.coefficient(axis) == Some(1),
            _ => false,
        };
        kernel.values.iter().filter(is_consecutive).count()
    };
    let others = map.iter().copied().filter(|&axis| is_long(axis) && consecutive(axis) > 0);
    others.max_by_key(|&axis| consecutive(axis)).or(Some(last))
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

/// The schedule, where all that is read along the rows lies across, or all that is read down the columns does not.
pub(super) fn across(kernel: &Kernel) -> Option<ColumnSchedule> {
    let column = lanes_along(kernel)?;
    let reductions = all_reductions(kernel).ok()?;
    let ValueOp::Reduce { axes, .. } = &kernel.value(*reductions.first()?).op else { return None };
    let is_argument = axes.iter().any(|&axis| kernel.axis(axis).is_argument);
    let length: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
    let is_many = kernel.axis(column).is_argument || kernel.axis(column).extent >= SHORTEST_COLUMNS;
    if is_argument || !(2..=LONGEST_COLUMNS).contains(&length) || !is_many {
        return None;
    }
    // Loops within the walk, and what they read, are those of one row.
    let reduced = kernel.axes_of_kind(AxisKind::Reduce);
    let is_simple = reduced.iter().all(|axis| axes.contains(axis))
        && !kernel.values.iter().any(|value| matches!(value.op, ValueOp::InBounds(_)));
    let varies = |id: &ValueId| {
        let value = kernel.value(*id);
        matches!(value.op, ValueOp::Load { .. }) && axes.iter().any(|axis| value.axes.contains(axis))
    };
    let loads: Vec<ValueId> = (0..kernel.values.len() as u32).map(ValueId).filter(varies).collect();
    // What all columns read at one place, such as a weight, costs nothing.
    let is_one = |id: ValueId| !kernel.value(id).axes.contains(&column);
    let is_read_across = |id: ValueId| lies_across(kernel, id, axes, column);
    let is_consecutive = |id: ValueId| match &kernel.value(id).op {
        ValueOp::Load { index, .. } => index.coefficient(column) == Some(1) && !overlaps(kernel, id, axes),
        _ => false,
    };
    let lanes = match length {
        ..=LONGEST => super::choose::previous_power_of_two(TILE / length).min(512),
        _ => 512.min(kernel.axis(column).extent),
    };
    // Shorter columns are unrolled, in one loop over the results.
    let fits = |fits: &dyn Fn(ValueId) -> bool| {
        loads.iter().all(|&id| fits(id) || is_one(id)) && loads.iter().any(|&id| fits(id))
    };
    let fits = match length {
        ..=LONGEST => fits(&is_read_across),
        _ => length > LONGEST_UNROLLED && fits(&is_consecutive),
    };
    let schedule =
        ColumnSchedule { threads_x: lanes as u32, threads_y: 1, vector: 1, splits: 1, shares_all: true };
    (is_simple && fits && Plan::of(kernel, reductions).is_ok()).then_some(schedule)
}
