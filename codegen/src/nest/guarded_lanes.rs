//! Guards that differ among the lanes of a core's loops: where neighbouring lanes read elements near each other, a vector is loaded
//! under a mask, and a border needs no loop of single numbers.

use crate::DType;
use crate::index::AxisId;
use crate::ir::{Kernel, Value, ValueId, ValueOp};
use crate::schedule::share::NEAR;

/// What a vector of the widest registers has of 32 bits: where borders end, whole vectors go on.
pub(super) const VECTOR: u64 = 16;

/// Rows of so many positions are masked from end to end: the few vectors between two borders are not worth loops of their own.
const LONGEST_WHOLE: u64 = 2 * VECTOR;

/// The same of rows that are reduced, whose borders would be loops of single numbers.
const LONGEST_REDUCED: u64 = 4 * VECTOR;

/// Whether loops along the axis that store all results read what is guarded in vectors, and all guards are masks.
pub(super) fn are_masks(kernel: &Kernel, axis: AxisId) -> bool {
    are_masks_of(kernel, axis, &kernel.stores.iter().map(|store| store.value).collect::<Vec<_>>())
        && kernel.stores.iter().all(|store| store.index.coefficient(axis) == Some(1))
}

/// The same of loops that compute these values.
pub(super) fn are_masks_of(kernel: &Kernel, axis: AxisId, values: &[ValueId]) -> bool {
    let below = kernel.down_from(values.iter().copied());
    let all = || below.iter().map(|&id| kernel.value(id));
    let is_wide = |value: &Value| match &value.op {
        ValueOp::Load { buffer, .. } => {
            let dtype = kernel.buffers[buffer.index()].dtype;
            !matches!(dtype, DType::Bool | DType::U8 | DType::I8 | DType::I16)
        }
        _ => false,
    };
    let is_one = |value: &Value| match &value.op {
        ValueOp::InBounds(bounds) => bounds.iter().all(|bound| bound.expr.coefficient(axis).is_some()),
        ValueOp::Load { index, guard, .. } => match index.coefficient(axis) {
            // One number for all lanes, read if a guard leaves any of them.
            Some(0) => {
                let differs = |guard: ValueId| kernel.value(guard).axes.contains(&axis);
                !guard.is_some_and(differs) || kernel.computed_axes(index).is_empty()
            }
            Some(step) => (1..=NEAR as i64).contains(&step) && kernel.computed_axes(index).is_empty(),
            None => false,
        },
        ValueOp::Random { .. } | ValueOp::Scan { .. } | ValueOp::Scatter { .. } | ValueOp::Sort { .. } => {
            false
        }
        _ => true,
    };
    let differs = |value: &Value| matches!(value.op, ValueOp::InBounds(_)) && value.axes.contains(&axis);
    all().any(differs) && all().any(is_wide) && all().all(is_one)
}

/// Whether a line along the axis is short enough that masking all of its vectors beats peeling its borders, in loops that compute
/// these values. Strided loads take several masked vectors each, so that fewer are worth it.
pub(super) fn masks_lines(kernel: &Kernel, axis: AxisId, values: &[ValueId]) -> bool {
    let has_gaps = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Load { index, .. } => index.coefficient(axis).is_none_or(|step| step > 1),
        _ => false,
    };
    let below = kernel.down_from(values.iter().copied());
    let longest = if below.iter().any(has_gaps) { VECTOR } else { LONGEST_REDUCED };
    kernel.axis(axis).extent <= longest && are_masks_of(kernel, axis, values)
}

/// Where vectors without masks begin and end, of an interior; `None` if there are too few.
pub(super) fn whole_vectors(extent: u64, (low, high): (u64, u64)) -> Option<(u64, u64)> {
    let low = low.next_multiple_of(VECTOR);
    let high = if high == extent { high } else { low + high.saturating_sub(low) / VECTOR * VECTOR };
    (extent > LONGEST_WHOLE && low < high).then_some((low, high))
}
