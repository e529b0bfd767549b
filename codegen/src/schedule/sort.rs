//! Kernels that put rows in order.

use crate::index::AxisId;
use crate::intrinsics::sorts_wide_items;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::{Language, Refusal};

/// How rows are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SortSchedule {
    /// Threads of a block (CUDA).
    pub threads: u32,
    /// Rows of a block.
    pub rows: u32,
    /// Items that are sorted together in shared memory: of a row, rounded up to a power of two, or of a part of a row; parts
    /// are then merged by more functions (CUDA).
    pub tile: u32,
    /// Rows that are sorted side by side (CPU).
    pub lanes: u32,
}

/// Rows that are sorted side by side on the CPU: 64-bit items of the widest vector.
pub(crate) const SORT_LANES: u64 = 8;

/// Elements of rows that are: a network compares more often than a sort by digits moves.
const LONGEST_IN_LANES: u64 = 256;

/// Elements of a block on the CPU.
const CPU_ELEMENTS: u64 = 1 << 13;

/// 64-bit numbers in shared memory: 32 KiB.
const MOST_SHARED: u64 = 1 << 12;

/// Items of a block of short rows on CUDA.
const CUDA_ITEMS: u64 = 1 << 9;

/// Of a kernel that sorts: one value, along one axis.
pub(crate) struct Sorts {
    /// The elements in order, and where they come from: either or both.
    pub(crate) ids: Vec<ValueId>,
    pub(crate) operand: ValueId,
    pub(crate) axis: AxisId,
    pub(crate) over: AxisId,
    pub(crate) descending: bool,
    /// The other map axes.
    pub(crate) outer: Vec<AxisId>,
    /// Whether an item is two 64-bit numbers.
    pub(crate) wide: bool,
}

impl Sorts {
    /// What the kernel sorts; `None` for other kernels.
    ///
    /// # Errors
    /// If it sorts several things, or rows of more elements than an item has bits for.
    pub(crate) fn of(kernel: &Kernel) -> Result<Option<Sorts>, Refusal> {
        let mut found = None;
        let mut ids = Vec::new();
        for (number, value) in kernel.values.iter().enumerate() {
            let ValueOp::Sort { axis, over, descending, operand, .. } = value.op else { continue };
            let own = (operand, axis, over, descending);
            if found.is_some_and(|found| found != own) {
                return Err(Refusal::Misfit("one kernel sorts one thing"));
            }
            found = Some(own);
            ids.push(ValueId(number as u32));
        }
        let Some((operand, axis, over, descending)) = found else { return Ok(None) };
        if kernel.axis(over).extent > i32::MAX as u64 {
            return Err(Refusal::Misfit("rows that are sorted have less than 2^31 elements"));
        }
        let outer = kernel.axes_of_kind(AxisKind::Map).into_iter().filter(|&other| other != axis).collect();
        let wide = sorts_wide_items(kernel.value(operand).dtype);
        Ok(Some(Sorts { ids, operand, axis, over, descending, outer, wide }))
    }

    /// 64-bit numbers of an item.
    pub(crate) fn width(&self) -> u64 {
        if self.wide { 2 } else { 1 }
    }
}

pub(super) fn sort(kernel: &Kernel, sorts: &Sorts, language: Language) -> SortSchedule {
    let length = kernel.axis(sorts.over).extent.max(1);
    match language {
        Language::C => {
            let lanes = if length <= LONGEST_IN_LANES && !sorts.wide { SORT_LANES } else { 1 };
            let rows = (CPU_ELEMENTS / length).max(1).next_multiple_of(lanes);
            SortSchedule { threads: 1, rows: rows as u32, tile: 0, lanes: lanes as u32 }
        }
        Language::Cuda => {
            let tile = length.next_power_of_two().clamp(2, MOST_SHARED / sorts.width());
            // Neighbouring rows fill a block.
            let rows = if length > tile { 1 } else { (CUDA_ITEMS / tile).max(1) };
            let threads = (rows * tile / 4).clamp(32, 1024);
            SortSchedule { threads: threads as u32, rows: rows as u32, tile: tile as u32, lanes: 1 }
        }
    }
}
