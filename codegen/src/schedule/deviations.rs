//! Squared deviations as two walks: the mean, then the squares of the distances from it.
//!
//! Where a row stays in registers the second walk costs nothing, and there is no division an element, as in
//! Welford's method. Both walks are sums, merged pairwise.

use super::cooperative;
use crate::ir::{AxisKind, Kernel, Value, ValueId, ValueOp};
use crate::{BinaryOp, ReduceOp, Scalar};

/// The kernel with every reduction of squared deviations that threads share replaced by two sums.
///
/// # Errors
/// If the kernel's reductions cannot run together.
pub(crate) fn in_two_walks(kernel: &Kernel) -> Result<Kernel, String> {
    let shared = cooperative(kernel)?;
    let mut result = Kernel { values: Vec::new(), stores: Vec::new(), ..kernel.clone() };
    let mut new_ids: Vec<ValueId> = Vec::with_capacity(kernel.values.len());
    for (number, value) in kernel.values.iter().enumerate() {
        let op = with_operands(&value.op, &new_ids);
        let id = match op {
            ValueOp::Reduce { op: ReduceOp::SquaredDeviations, ref axes, operand }
                if shared.contains(&ValueId(number as u32)) =>
            {
                let length: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
                let sum = ValueOp::Reduce { op: ReduceOp::Sum, axes: axes.clone(), operand };
                let sum = find_or_add(&mut result, sum, value);
                let length = result.literal(Scalar::from_f64(value.dtype, length.max(1) as f64));
                let mean = result.binary(BinaryOp::Div, sum, length);
                let distance = result.binary(BinaryOp::Sub, operand, mean);
                let square = result.binary(BinaryOp::Mul, distance, distance);
                result.reduce(ReduceOp::Sum, axes, square)
            }
            op => find_or_add(&mut result, op, value),
        };
        new_ids.push(id);
        // In time for what is read at the positions that the value says.
        for (axis, old) in result.axes.iter_mut().zip(&kernel.axes) {
            if let (AxisKind::Computed { value, .. }, AxisKind::Computed { value: old, .. }) =
                (&mut axis.kind, old.kind)
                && old.index() == number
            {
                *value = id;
            }
        }
    }
    for store in &kernel.stores {
        result.store(store.buffer, store.index.clone(), new_ids[store.value.index()]);
    }
    Ok(result)
}

/// The value if the kernel has it already: the mean may be a result as well.
fn find_or_add(kernel: &mut Kernel, op: ValueOp, like: &Value) -> ValueId {
    let existing = match op {
        ValueOp::Reduce { .. } => kernel.values.iter().position(|value| value.op == op),
        _ => None,
    };
    match existing {
        Some(number) => ValueId(number as u32),
        None => kernel.add(op, like.dtype),
    }
}

fn with_operands(op: &ValueOp, new_ids: &[ValueId]) -> ValueOp {
    let new = |id: ValueId| new_ids[id.index()];
    match op {
        ValueOp::Load { buffer, index, guard } => {
            ValueOp::Load { buffer: *buffer, index: index.clone(), guard: guard.map(new) }
        }
        ValueOp::Unary(op, a) => ValueOp::Unary(*op, new(*a)),
        ValueOp::Binary(op, a, b) => ValueOp::Binary(*op, new(*a), new(*b)),
        ValueOp::Select(condition, a, b) => ValueOp::Select(new(*condition), new(*a), new(*b)),
        ValueOp::Cast(to, a) => ValueOp::Cast(*to, new(*a)),
        ValueOp::Scan { op, axis, reverse, exclusive, operand } => ValueOp::Scan {
            op: *op,
            axis: *axis,
            reverse: *reverse,
            exclusive: *exclusive,
            operand: new(*operand),
        },
        ValueOp::Carry { recurrence, init, row } => {
            ValueOp::Carry { recurrence: *recurrence, init: new(*init), row: row.clone() }
        }
        ValueOp::Last { carry } => ValueOp::Last { carry: new(*carry) },
        ValueOp::Scatter { op, axis, over, index, check, operand } => ValueOp::Scatter {
            op: *op,
            axis: *axis,
            over: *over,
            index: new(*index),
            check: *check,
            operand: new(*operand),
        },
        ValueOp::Reduce { op, axes, operand } => {
            ValueOp::Reduce { op: *op, axes: axes.clone(), operand: new(*operand) }
        }
        ValueOp::Literal(_)
        | ValueOp::Argument(_)
        | ValueOp::Position(_)
        | ValueOp::InBounds(_)
        | ValueOp::Random { .. } => op.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::index::IndexExpr;
    use crate::ir::AxisKind;

    #[test]
    fn the_mean_is_summed_once() {
        let mut kernel = Kernel::new("moments");
        let row = kernel.add_axis(AxisKind::Map, 10, true);
        let column = kernel.add_axis(AxisKind::Reduce, 100, false);
        let input = kernel.add_input(DType::F32, 1000);
        let (mean, spread) = (kernel.add_output(DType::F32, 10), kernel.add_output(DType::F32, 10));
        let at = IndexExpr::axis(row).scale(100).add(&IndexExpr::axis(column));
        let x = kernel.load(input, at, None);
        let deviations = kernel.reduce(ReduceOp::SquaredDeviations, &[column], x);
        let sum = kernel.reduce(ReduceOp::Sum, &[column], x);
        kernel.store(mean, IndexExpr::axis(row), sum);
        kernel.store(spread, IndexExpr::axis(row), deviations);
        let two_walks = in_two_walks(&kernel).unwrap();
        two_walks.verify().unwrap();
        let reductions: Vec<&ValueOp> = two_walks
            .values
            .iter()
            .map(|v| &v.op)
            .filter(|op| matches!(op, ValueOp::Reduce { .. }))
            .collect();
        assert_eq!(reductions.len(), 2);
        assert!(reductions.iter().all(|op| matches!(op, ValueOp::Reduce { op: ReduceOp::Sum, .. })));
        assert_eq!(super::super::Plan::new(&two_walks).unwrap().passes.len(), 2);
    }
}
