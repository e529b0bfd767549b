//! How much a kernel of the CPU computes, and what is enough of it for a thread.

use super::facts::CPU_ELEMENTS_PER_BLOCK;
use crate::cost;
use crate::ir::{AxisKind, Kernel, Value, ValueId, ValueOp};

/// The least, however much each takes: lanes are to be full.
const LEAST_ELEMENTS_PER_BLOCK: u64 = 1 << 9;
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
    // The same text for every extent that is an argument.
    let turns = |value: &Value| {
        let axes = value.axes.iter().map(|&axis| kernel.axis(axis));
        let inside = axes.filter(|axis| axis.kind == AxisKind::Reduce && !axis.is_argument);
        inside.map(|axis| axis.extent as f64).product::<f64>()
    };
    let values = (0..kernel.values.len()).map(|number| ValueId(number as u32));
    let each = values.filter(|&id| kernel.value(id).axes.contains(&inner));
    let cost: f64 = each.map(|id| turns(kernel.value(id)) * operations(kernel, id)).sum();
    if cost <= COSTLY_RESULT {
        return CPU_ELEMENTS_PER_BLOCK;
    }
    let fewer = (CPU_ELEMENTS_PER_BLOCK as f64 * COSTLY_RESULT / cost) as u64;
    (1 << fewer.max(1).ilog2()).max(LEAST_ELEMENTS_PER_BLOCK)
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
        // 50 simple operations each.
        assert_eq!(elements(&chain(5), "v5"), CPU_ELEMENTS_PER_BLOCK / 4);
        assert_eq!(elements(&chain(200), "v200"), LEAST_ELEMENTS_PER_BLOCK);
    }
}
