//! How much a kernel of the CPU computes, and what is enough of it for a thread.

use super::facts::CPU_ELEMENTS_PER_BLOCK;
use crate::cost;
use crate::index::AxisId;
use crate::ir::{Axis, AxisKind, Kernel, Value, ValueId, ValueOp};

/// The least, however much each takes: lanes are to be full.
const LEAST_ELEMENTS_PER_BLOCK: u64 = 1 << 9;
/// The least columns of a block, and blocks that keep some threads busy.
const LEAST_COLUMNS: u64 = 32;
const BLOCKS: u64 = 8;
/// Simple operations of a result that takes longer to compute than to store, on one core.
const COSTLY_RESULT: f64 = 64.0;

/// Simple operations of one evaluation. Loads are free.
pub(crate) fn operations(kernel: &Kernel, id: ValueId) -> f64 {
    match &kernel.value(id).op {
        ValueOp::Literal(_) | ValueOp::Argument(_) | ValueOp::Load { .. } => 0.0,
        ValueOp::Position(_) | ValueOp::InBounds(_) | ValueOp::Select(..) | ValueOp::Cast(..) => 1.0,
        ValueOp::Random { .. } => cost::RANDOM,
        ValueOp::Unary(op, _) => op.cost(),
        ValueOp::Binary(op, ..) => op.cost(),
        // Loops of their own.
        ValueOp::Reduce { .. }
        | ValueOp::Scan { .. }
        | ValueOp::Scatter { .. }
        | ValueOp::Sort { .. }
        | ValueOp::Carry { .. }
        | ValueOp::Last { .. } => cost::WORTH_KEEPING,
    }
}

/// Results of a block of a kernel whose threads compute results of their own: about as much work whatever they cost, so that
/// costly ones go to several threads where they are few.
pub(super) fn elements_per_block(kernel: &Kernel) -> u64 {
    let Some(&inner) = kernel.axes_of_kind(AxisKind::Map).last() else { return CPU_ELEMENTS_PER_BLOCK };
    let cost = of_result(kernel, inner);
    if cost <= COSTLY_RESULT {
        return CPU_ELEMENTS_PER_BLOCK;
    }
    let fewer = (CPU_ELEMENTS_PER_BLOCK as f64 * COSTLY_RESULT / cost) as u64;
    (1 << fewer.max(1).ilog2()).max(LEAST_ELEMENTS_PER_BLOCK)
}

/// Simple operations of what varies along an axis of results, for each of these. The same for every extent that is an argument.
fn of_result(kernel: &Kernel, inner: AxisId) -> f64 {
    let turns = |value: &Value| {
        let axes = value.axes.iter().map(|&axis| kernel.axis(axis));
        let inside = axes.filter(|axis| axis.kind == AxisKind::Reduce && !axis.is_argument);
        inside.map(|axis| axis.extent as f64).product::<f64>()
    };
    let values = (0..kernel.values.len()).map(|number| ValueId(number as u32));
    let each = values.filter(|&id| kernel.value(id).axes.contains(&inner));
    each.map(|id| turns(kernel.value(id)) * operations(kernel, id)).sum()
}

/// Columns of a block that could have `columns` of them, where `others` counts the blocks for each position of this axis: fewer where
/// the reduced elements take longer to compute than to read, and one block would leave all of it to one thread.
pub(super) fn columns_per_block(kernel: &Kernel, inner: AxisId, columns: u64, others: u64) -> u64 {
    let is_reduced = |id: &ValueId| {
        let axes = &kernel.value(*id).axes;
        axes.contains(&inner) && axes.iter().any(|&axis| kernel.axis(axis).kind == AxisKind::Reduce)
    };
    let ids = (0..kernel.values.len()).map(|number| ValueId(number as u32));
    let reduced: Vec<ValueId> = ids.filter(is_reduced).collect();
    let is_read = reduced.iter().any(|&id| matches!(kernel.value(id).op, ValueOp::Load { .. }));
    let element: f64 = reduced.iter().map(|&id| operations(kernel, id)).sum();
    if is_read && element <= COSTLY_RESULT {
        return columns;
    }
    let Axis { extent, is_argument, .. } = *kernel.axis(inner);
    // One text for many extents that are arguments.
    let extent = if is_argument { extent.next_power_of_two() } else { extent };
    let work = of_result(kernel, inner) * extent as f64;
    let wanted = (work / (CPU_ELEMENTS_PER_BLOCK as f64 * COSTLY_RESULT)) as u64;
    let parts = wanted.clamp(1, BLOCKS).div_ceil(others.max(1));
    extent.div_ceil(parts).next_multiple_of(LEAST_COLUMNS).clamp(1, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costly_results_make_smaller_blocks() {
        let elements = |lines: &str, last: &str| {
            let text = format!(
                "kernel k\n  map i0 < n_i0 = 100000\n  input in0: f32 [100000]\n  output out0: f32 [100000]\n  \
                 v0: f32 = load in0[i0]\n{lines}  store out0[i0] = {last}\n"
            );
            elements_per_block(&text.parse::<Kernel>().unwrap())
        };
        assert_eq!(elements("  v1: f32 = tanh v0\n", "v1"), CPU_ELEMENTS_PER_BLOCK);
        let chain = |length: usize| -> String {
            (1..=length).map(|n| format!("  v{n}: f32 = sin v{}\n", n - 1)).collect()
        };
        // 30 simple operations each.
        assert_eq!(elements(&chain(8), "v8"), CPU_ELEMENTS_PER_BLOCK / 4);
        assert_eq!(elements(&chain(200), "v200"), LEAST_ELEMENTS_PER_BLOCK);
    }

    #[test]
    fn costly_reductions_of_few_columns_are_for_several_threads() {
        let columns = |lines: &str, last: usize| {
            let sum = last + 1;
            let text = format!(
                "kernel k\n  map i0 < 500\n  reduce r0 < 400\n  input in0: f32 [500]\n  input in1: f32 [400]\n  \
                 input in2: f32 [200000]\n  output out0: f32 [500]\n  v0: f32 = load in0[i0]\n  v1: f32 = load in1[r0]\n  \
                 v2: f32 = sub v0 v1\n{lines}  v{sum}: f32 = reduce sum over r0 of v{last}\n  store out0[i0] = v{sum}\n"
            );
            let kernel: Kernel = text.parse().unwrap();
            columns_per_block(&kernel, kernel.axes_of_kind(AxisKind::Map)[0], 500, 1)
        };
        // Of all pairs of two vectors, each from its own.
        assert_eq!(columns("  v3: f32 = sin v2\n", 3), 128);
        assert_eq!(columns("", 2), 500);
        // As much work, but a matrix is read, which takes as long: whole lines of it are.
        let read = "  v3: f32 = load in2[i0 + r0*500]\n  v4: f32 = sin v3\n  v5: f32 = mul v2 v4\n";
        assert_eq!(columns(read, 5), 500);
    }
}
