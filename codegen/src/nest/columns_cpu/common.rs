//! What the elements of a column have in common, such as a cosine of its own or, after a pass over it, the reciprocal of its
//! standard deviation: computed once a column, and not for each element of the passes that follow.

use super::CpuColumns;
use crate::DType;
use crate::ir::{AxisKind, ValueId, ValueOp};
use crate::nest::emitter::Emitter;
use crate::nest::passes::{Pass, launch_items};
use crate::nest::stmt::Expr;
use crate::nest::variable::Var;
use crate::schedule::operations;

/// Simple operations that are worth an array.
const LEAST: f64 = 2.0;

/// Arrays at most, and elements of a column that are worth them where it takes no pass to know what they have in common.
const MOST: usize = 16;
const SHORTEST: u64 = 4;

impl<'k> CpuColumns<'k> {
    /// Leaves in arrays what columns reduce of their own before the passes.
    pub(super) fn leave_apart(&self, emitter: &mut Emitter<'k>, apart: &[ValueId]) {
        if apart.is_empty() {
            return;
        }
        let elements = emitter.elements_of(apart, "apart", self.width, &Expr::name(Var::Lane));
        self.each_column(emitter, |emitter, _| emitter.leave(&elements));
        emitter.find(&elements);
    }

    /// Leaves in arrays what passes from this one on need of the columns that those before have reduced, and before the first of
    /// them what needs no reduction.
    pub(super) fn leave_common(&self, emitter: &mut Emitter<'k>, next: usize) {
        let (before, after) = self.plan.passes.split_at(next);
        let axes = || self.plan.axes.iter().map(|&axis| self.kernel.axis(axis));
        let is_short =
            axes().all(|axis| !axis.is_argument) && launch_items(self.kernel, &self.plan.axes) < SHORTEST;
        if self.narrow.is_some() || before.is_empty() && is_short {
            return;
        }
        let common = self.common(before, after);
        if common.is_empty() {
            return;
        }
        let elements = emitter.elements_of(&common, "common", self.width, &Expr::name(Var::Lane));
        self.each_column(emitter, |emitter, _| emitter.leave(&elements));
        emitter.find(&elements);
    }

    /// Values that follow from the reductions of the last of some passes, or from none if there are no passes, do not vary along the
    /// columns, and are used by what does, or stored.
    fn common(&self, before: &[Pass], after: &[Pass]) -> Vec<ValueId> {
        let kernel = self.kernel;
        let of = |pass: &Pass| -> Vec<ValueId> {
            pass.reductions.iter().chain(pass.maxima.iter().map(|(id, _)| id)).copied().collect()
        };
        let done: Vec<ValueId> = before.iter().flat_map(of).collect();
        let new = before.last().map_or(Vec::new(), of);
        let is_first = before.is_empty();
        // Of each value: whether it is the same along a column and known by now, whether it was not before, and what it costs.
        let mut known: Vec<Option<(bool, f64)>> = vec![None; kernel.values.len()];
        for (number, value) in kernel.values.iter().enumerate() {
            let id = ValueId(number as u32);
            let is_of_column = value.axes.iter().all(|&axis| kernel.axis(axis).kind == AxisKind::Map);
            known[number] = match &value.op {
                _ if !is_of_column => None,
                ValueOp::Reduce { .. } => done.contains(&id).then(|| (new.contains(&id), 0.0)),
                ValueOp::Literal(_) | ValueOp::Argument(_) | ValueOp::Position(_) => Some((is_first, 0.0)),
                ValueOp::Load { index, guard: None, .. } => {
                    kernel.computed_axes(index).is_empty().then_some((is_first, 0.0))
                }
                ValueOp::Unary(..) | ValueOp::Binary(..) | ValueOp::Select(..) | ValueOp::Cast(..) => {
                    let own = Some((false, operations(kernel, id)));
                    kernel.operands(&value.op).iter().fold(own, |sum, operand| {
                        let ((a, cost), (b, own)) = sum.zip(known[operand.index()])?;
                        Some((a || b, cost + own))
                    })
                }
                _ => None,
            };
        }
        let operand = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { operand, .. } => Some(operand),
            _ => None,
        };
        let stored = |pass: &Pass| pass.stores.iter().map(|&store| kernel.stores[store].value).collect();
        let ends = |pass: &Pass| -> Vec<ValueId> {
            let stored: Vec<ValueId> = stored(pass);
            pass.reductions.iter().filter_map(operand).chain(stored).collect()
        };
        let mut used: Vec<ValueId> = after.iter().flat_map(ends).collect();
        for id in kernel.down_from(used.clone()) {
            if known[id.index()].is_none() {
                used.extend(kernel.operands(&kernel.value(id).op));
            }
        }
        used.sort_unstable();
        used.dedup();
        used.retain(|id| {
            let value = kernel.value(*id);
            let is_worth_it = known[id.index()].is_some_and(|(is_new, cost)| is_new && cost >= LEAST);
            // Bytes would have as many lanes as a vector has of them.
            let is_narrow = matches!(value.dtype, DType::Bool | DType::U8 | DType::I8 | DType::I16);
            is_worth_it && value.axes.contains(&self.inner()) && !is_narrow
        });
        used.truncate(MOST);
        used
    }
}
