//! What follows from the reductions of rows, computed for several rows at a time in vector lanes: a row has one result, and
//! a loop over rows, with lanes along each, has none for it.

use super::emitter::Emitter;
use super::loops::counting;
use super::passes::Plan;
use super::stmt::Arithmetic::Sub;
use super::stmt::{Expr, LoopHint};
use super::variable::Var;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::{RowSchedule, operations};

/// Fewer rows do not fill the lanes.
const FEWEST_ROWS: u32 = 8;

/// Simple operations from which it is worth it.
const COSTLY: f64 = 12.0;

/// The epilogue of a block's rows.
pub(super) struct Epilogue {
    /// The reductions that it takes.
    sources: Vec<ValueId>,
}

/// Its arrays, with an element for each row of the block.
pub(super) struct Rows {
    pub(super) sources: Vec<(ValueId, Expr)>,
    /// A row's.
    slot: Expr,
    first: Expr,
    end: Expr,
    length: u64,
}

impl Epilogue {
    /// `None` if it is not worth it, or if several axes of rows would have to be told apart in the lanes.
    pub(super) fn of(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule) -> Option<Epilogue> {
        if schedule.rows_per_block < FEWEST_ROWS || plan.map.is_empty() {
            return None;
        }
        // What a pass needs is there already.
        let swept = plan.passes.iter().flat_map(|pass| {
            let reduced = pass.reductions.iter().flat_map(|&id| kernel.operands(&kernel.value(id).op));
            let stored = pass.stores.iter().map(|&store| kernel.stores[store].value);
            reduced.chain(stored).collect::<Vec<_>>()
        });
        let swept = kernel.down_from(swept);
        let mut sources = Vec::new();
        let mut pending: Vec<ValueId> =
            plan.results.iter().map(|&store| kernel.stores[store].value).collect();
        let mut seen = vec![false; kernel.values.len()];
        let mut costly = 0.0;
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            let op = &kernel.value(id).op;
            match op {
                ValueOp::Reduce { .. } => sources.push(id),
                ValueOp::Literal(_) | ValueOp::Argument(_) => {}
                ValueOp::Load { index, guard: None, .. }
                    if plan.map.len() == 1 && kernel.computed_axes(index).is_empty() => {}
                ValueOp::Unary(..) | ValueOp::Binary(..) | ValueOp::Select(..) | ValueOp::Cast(..) => {
                    costly += match op {
                        _ if swept.contains(&id) => 0.0,
                        // Row by row compilers make a branch of it, which is mispredicted, and then the next rows' loads start late.
                        ValueOp::Select(..) => COSTLY,
                        _ => operations(kernel, id),
                    };
                    pending.extend(kernel.operands(op));
                }
                ValueOp::Load { .. }
                | ValueOp::Position(_)
                | ValueOp::InBounds(_)
                | ValueOp::Random { .. }
                | ValueOp::Scan { .. }
                | ValueOp::Scatter { .. }
                | ValueOp::Sort { .. }
                | ValueOp::Carry { .. }
                | ValueOp::Last { .. } => return None,
            }
        }
        sources.sort_unstable();
        (costly >= COSTLY && !sources.is_empty()).then_some(Epilogue { sources })
    }

    /// Declares the arrays, before the loop over the rows.
    pub(super) fn declare(
        &self,
        emitter: &mut Emitter,
        row: Var,
        (first, end): (Expr, Expr),
        length: u64,
    ) -> Rows {
        let slot = row.then(Sub, &first);
        let sources = emitter.elements_of(&self.sources, "total", length, &slot);
        Rows { sources, slot, first, end, length }
    }

    /// What follows, after the loop over the rows.
    pub(super) fn emit<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        plan: &Plan,
        row: Var,
        rows: &Rows,
    ) {
        let store = |emitter: &mut Emitter<'k>| {
            plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
        };
        let each = |emitter: &mut Emitter<'k>, hint: LoopHint, body: &dyn Fn(&mut Emitter<'k>)| {
            emitter.repeat_along(&plan.map, counting(row, rows.first.clone(), rows.end.clone(), hint), body);
        };
        if plan.map.len() == 1 {
            return each(emitter, LoopHint::Simd, &|emitter| {
                emitter.find(&rows.sources);
                store(emitter);
            });
        }
        // Where the results go divides the row's number: in a loop of its own.
        let mut known: Vec<(ValueId, Expr)> = Vec::new();
        for &store in &plan.results {
            let id = emitter.stored_value(&kernel.stores[store]);
            if known.iter().all(|(other, _)| *other != id) {
                known.extend(emitter.elements_of(&[id], "result", rows.length, &rows.slot));
            }
        }
        each(emitter, LoopHint::Simd, &|emitter| {
            emitter.find(&rows.sources);
            emitter.leave(&known);
        });
        each(emitter, LoopHint::None, &|emitter| {
            emitter.unflatten(row, &plan.map, 1);
            emitter.find(&known);
            store(emitter);
        });
    }
}
