//! Reductions of several parts as passes of plain reductions: squared deviations as the mean, then the squares of the
//! distances from it; sums of exponentials as the maximum, then the sum.
//!
//! Where a row stays in registers the second pass costs nothing, and there is no division an element as in Welford's
//! method, and no maximum to scale to. Sums are merged pairwise.

use std::borrow::Cow;

use super::shifted::from_first;
use super::{Schedule, cooperative};
use crate::ir::{AxisKind, Kernel, Numbered, ValueId, ValueOp};
use crate::{BinaryOp, ReduceOp, Refusal, Scalar, UnaryOp};

/// The kernel with the reductions that its schedule computes in plain passes replaced by these.
///
/// # Errors
/// If the kernel's reductions cannot run together.
pub(crate) fn for_schedule<'k>(kernel: &'k Kernel, schedule: &Schedule) -> Result<Cow<'k, Kernel>, Refusal> {
    let plain = match schedule {
        Schedule::Rows(rows) if rows.persistent > 0 => in_plain_passes(kernel, |_| true),
        Schedule::Rows(rows) if !rows.online => in_plain_passes(kernel, |op| op == ReduceOp::SumExp),
        Schedule::Columns(columns) if columns.shares_all => {
            in_plain_passes(kernel, |op| op == ReduceOp::SumExp)
        }
        // Rows are near, too.
        Schedule::RowContraction(_) | Schedule::RowProduct(_) | Schedule::Contraction(_) => {
            in_plain_passes(kernel, |_| true)
        }
        // One thread's own values are near anyway.
        Schedule::Pointwise(_)
        | Schedule::Tiled(_)
        | Schedule::Scan(_)
        | Schedule::Scatter(_)
        | Schedule::Sort(_)
        | Schedule::Rows(_)
        | Schedule::Columns(_)
        | Schedule::Product(_) => in_plain_passes(kernel, |_| false),
    };
    // In two passes no mean goes on being rounded: what it is off by counts squared.
    let plain = plain?;
    Ok(match from_first(&plain) {
        Some(shifted) => Cow::Owned(shifted),
        None => plain,
    })
}

/// The kernel with every reduction of several parts replaced that threads share and that `replaces`, and sums of
/// exponentials of one thread.
///
/// # Errors
/// If the kernel's reductions cannot run together.
pub(super) fn in_plain_passes(
    kernel: &Kernel,
    replaces: impl Fn(ReduceOp) -> bool,
) -> Result<Cow<'_, Kernel>, Refusal> {
    let reduced = |value: &ValueOp| match value {
        ValueOp::Reduce { op: op @ (ReduceOp::SquaredDeviations | ReduceOp::SumExp), .. } => Some(*op),
        _ => None,
    };
    if !kernel.values.iter().any(|value| reduced(&value.op).is_some()) {
        return Ok(Cow::Borrowed(kernel));
    }
    let shared = cooperative(kernel)?;
    let is_replaced = |number: usize, op: ReduceOp| match shared.contains(&ValueId(number as u32)) {
        true => replaces(op),
        false => op == ReduceOp::SumExp,
    };
    if !kernel
        .values
        .iter()
        .enumerate()
        .any(|(n, value)| reduced(&value.op).is_some_and(|op| is_replaced(n, op)))
    {
        return Ok(Cow::Borrowed(kernel));
    }
    // What replaces a reduction may be among its results as well.
    let mut result = Numbered::like(kernel);
    let mut new_ids: Vec<ValueId> = Vec::with_capacity(kernel.values.len());
    for (number, value) in kernel.values.iter().enumerate() {
        let mut op = value.op.clone();
        op.named_operands_mut().into_iter().for_each(|id| *id = new_ids[id.index()]);
        let id = match op {
            ValueOp::Reduce { op: reduction, ref axes, operand, .. }
                if reduced(&value.op).is_some() && is_replaced(number, reduction) =>
            {
                let dtype = value.dtype;
                let reduce =
                    |op, operand| ValueOp::Reduce { op, axes: axes.clone(), operand, position: None };
                if reduction == ReduceOp::SumExp {
                    let max = result.add(reduce(ReduceOp::Max, operand), dtype);
                    let below = result.add(ValueOp::Binary(BinaryOp::Sub, operand, max), dtype);
                    let exp = result.add(ValueOp::Unary(UnaryOp::Exp, below), dtype);
                    result.add(reduce(ReduceOp::Sum, exp), dtype)
                } else {
                    let length: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
                    let sum = result.add(reduce(ReduceOp::Sum, operand), dtype);
                    let length = Scalar::from_f64(dtype, length.max(1) as f64);
                    let length = result.add(ValueOp::Literal(length), dtype);
                    let mean = result.add(ValueOp::Binary(BinaryOp::Div, sum, length), dtype);
                    let distance = result.add(ValueOp::Binary(BinaryOp::Sub, operand, mean), dtype);
                    let square = result.add(ValueOp::Binary(BinaryOp::Mul, distance, distance), dtype);
                    result.add(reduce(ReduceOp::Sum, square), dtype)
                }
            }
            op => result.add(op, value.dtype),
        };
        new_ids.push(id);
        // In time for what is read at the positions that the value says.
        for (axis, old) in result.kernel.axes.iter_mut().zip(&kernel.axes) {
            if let (AxisKind::Computed { value, .. }, AxisKind::Computed { value: old, .. }) =
                (&mut axis.kind, old.kind)
                && old.index() == number
            {
                *value = id;
            }
        }
    }
    let mut result = result.kernel;
    for store in &kernel.stores {
        result.store(store.buffer, store.index.clone(), new_ids[store.value.index()]);
    }
    for recurrence in &mut result.recurrences {
        recurrence.carry = new_ids[recurrence.carry.index()];
        recurrence.next = new_ids[recurrence.next.index()];
    }
    Ok(Cow::Owned(result))
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
        let two_passes = in_plain_passes(&kernel, |_| true).unwrap();
        two_passes.verify().unwrap();
        let reductions: Vec<&ValueOp> = two_passes
            .values
            .iter()
            .map(|v| &v.op)
            .filter(|op| matches!(op, ValueOp::Reduce { .. }))
            .collect();
        assert_eq!(reductions.len(), 2);
        assert!(reductions.iter().all(|op| matches!(op, ValueOp::Reduce { op: ReduceOp::Sum, .. })));
        assert_eq!(crate::schedule::Plan::new(&two_passes).unwrap().passes.len(), 2);
    }
}
