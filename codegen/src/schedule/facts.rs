//! What schedules ask of a kernel, and the numbers that they share.

use super::share;
pub(super) use super::share::SHORTEST_COLUMNS;
use crate::Refusal;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Store, ValueId, ValueOp};

/// What schedules depend on of the target.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Multiprocessors of the GPU, or cores of the CPU.
    pub processors: u32,
    /// Whether registers ran out otherwise: then a thread computes one element at a time, and keeps none.
    pub is_low_pressure: bool,
    /// Bytes of shared memory that a block can have (CUDA).
    pub shared_bytes: u32,
    /// What multiplies small matrices of 16-bit numbers (CUDA).
    pub matrices: Matrices,
}

/// Instructions of a GPU that multiply small matrices of 16-bit numbers and add up in `F32`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Matrices {
    /// There are none that kernels use: before sm_75.
    None,
    /// Warps multiply `F16` (sm_75).
    WarpsOfF16,
    /// Warps multiply `F16` and `BF16` (sm_80 and later).
    Warps,
    /// Groups of four warps do so as well, in shared memory (sm_90 alone).
    Groups,
}

/// Threads of a pointwise or row block.
pub(super) const THREADS: u32 = 256;

/// Bytes of the widest access of a thread.
pub(super) const ACCESS_BYTES: u64 = 16;

/// Bytes of a row that a thread can keep in registers beside what it computes, where a block is as large as
/// it can be (1024 threads have 64 registers each).
pub(super) const MOST_KEPT_BYTES: u64 = 128;

/// Operations of an unrolled pass: compilation takes time in proportion.
pub(crate) const UNROLLED_OPERATIONS: u64 = 8192;

/// Blocks of 256 threads that fill a multiprocessor.
pub(super) const BLOCKS_PER_PROCESSOR: u64 = 8;

/// Elements of a part of a split row, and the length from which rows are split: sums stay accurate,
/// and one row keeps all processors busy.
pub const SPLIT_LENGTH: u64 = 1 << 16;

/// Elements of a part of a split column on the CPU, where one lane adds up all of them.
pub const COLUMN_SPLIT_LENGTH: u64 = 1 << 12;

/// Bytes of the stack that a kernel takes for what it keeps of a row: near a core, and little beside any stack.
pub const STACK_BYTES: u64 = 1 << 16;

/// Results of a CPU block: enough work to outweigh handing it to a thread.
pub(super) const CPU_ELEMENTS_PER_BLOCK: u64 = 1 << 14;

/// Rows of a length in a CPU block: a power of two, so that rows of near lengths have one text.
pub(super) fn rows_of(length: u64) -> u64 {
    previous_power_of_two((CPU_ELEMENTS_PER_BLOCK / length.max(1)).max(1))
}

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
    // Along axes that threads reduce together, no thread reduces by itself.
    let shared_axes = shared.first().map(|&id| axes(id));
    reductions(kernel, |kernel, id| is_in_thread(kernel, id) && shared_axes != Some(axes(id)))
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
pub(super) fn loads_below(kernel: &Kernel, root: ValueId) -> impl Iterator<Item = ValueId> + '_ {
    let is_load = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Load { .. });
    kernel.down_from([root]).into_iter().filter(is_load)
}

pub(super) fn largest_power_of_two_divisor(n: u64, limit: u64) -> u64 {
    let mut divisor = limit.max(1);
    while !n.is_multiple_of(divisor) {
        divisor /= 2;
    }
    divisor
}

pub(super) fn extent_of(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}

/// A split row is read once: nothing that depends on the result may vary along it. What varies along it otherwise is
/// stored on the way.
pub(super) fn is_splittable(kernel: &Kernel, axes: &[AxisId]) -> bool {
    let reduces = |op: &ValueOp| matches!(op, ValueOp::Reduce { axes: own, .. } if own.as_slice() == axes);
    let Some(follows) = following(kernel, reduces) else { return false };
    let is_along = |store: &Store| axes.iter().any(|axis| store.index.uses(*axis));
    !kernel.stores.iter().any(|store| is_along(store) && follows[store.value.index()])
}

/// Whether one of these operations follows from another of them.
pub(super) fn is_nested(kernel: &Kernel, is_one: impl Fn(&ValueOp) -> bool) -> bool {
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

pub(super) fn widest_input(kernel: &Kernel) -> u64 {
    let inputs = kernel.buffers.iter().filter(|buffer| !buffer.is_output);
    inputs.map(|buffer| buffer.dtype.size() as u64).max().unwrap_or(4)
}

pub(super) fn previous_power_of_two(n: u64) -> u64 {
    1 << n.max(1).ilog2()
}
