//! Rows of many short lines on the CPU, such as all coordinates of points beside a weight for each: lanes that go along a line
//! have nothing to do for most of it.

use super::RowSchedule;
use super::facts::{SPLIT_LENGTH, extent_of};
use super::rows::lanes;
use crate::ir::{AxisKind, Kernel};

/// Lines of more elements fill a vector, or most of it.
const LONGEST: u64 = 7;

/// Fewer lines are soon done anyhow.
const FEWEST: u64 = 64;

/// The kernel with each line's elements combined one after the other, and its schedule, whose lanes go from line to line; `None`
/// if lines are not short, or cannot be combined so.
pub(crate) fn in_short_lines(kernel: &Kernel, schedule: &RowSchedule) -> Option<(Kernel, RowSchedule)> {
    let axes = kernel.axes_of_kind(AxisKind::Reduce);
    let &[.., before, inner] = axes.as_slice() else { return None };
    let line = kernel.axis(inner);
    let is_short = (2..=LONGEST).contains(&line.extent) && !line.is_argument;
    let is_stored = kernel.stores.iter().any(|store| axes.iter().any(|axis| store.index.uses(*axis)));
    let is_kept = schedule.keep.is_some() || schedule.stack_bytes > 0;
    if !is_short || is_stored || is_kept || kernel.axis(before).extent < FEWEST {
        return None;
    }
    let combined = kernel.unrolls(inner, line.extent).then(|| kernel.unrolled(inner, line.extent))?;
    let lines = &axes[..axes.len() - 1];
    let splits = match schedule.splits {
        1 => 1,
        _ => extent_of(&combined, lines).div_ceil(SPLIT_LENGTH).min(u64::from(u32::MAX)) as u32,
    };
    let lanes = lanes(&combined, lines, combined.axis(before).extent) as u32;
    Some((combined, RowSchedule { threads_per_row: lanes, splits, ..*schedule }))
}
