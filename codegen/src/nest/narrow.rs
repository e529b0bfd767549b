//! Narrow columns on the CPU: a few columns alone fill no vector, but several positions of them are neighbours in memory. Lanes
//! hold all columns of some positions, one position after the other, and what these come to is combined at the end.

use super::INDEX;
use super::accumulate::{Accumulator, mul_add};
use super::emitter::Emitter;
use super::loops::counting;
use super::passes::{Pass, Plan};
use super::stmt::Arithmetic::{Div, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt};
use super::variable::Var;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, ValueId, ValueOp};

/// Positions side by side: so many fill whole vectors, however few the columns are.
const SIDE_BY_SIDE: u64 = 16;

/// As many columns fill the lanes themselves.
const WIDE: u64 = 16;

/// Columns as they go side by side.
pub(super) struct Narrow {
    /// The kernel whose swept axis counts groups of positions, and whose innermost axis what is in one of them.
    kernel: Kernel,
    inner: AxisId,
}

impl Narrow {
    /// `None` if there are columns enough, or they are no neighbours.
    pub(super) fn of(kernel: &Kernel, plan: &Plan, inner: AxisId) -> Option<Narrow> {
        let ([pass], &[axis]) = (&plan.passes[..], &plan.axes[..]) else { return None };
        let (columns, length) = (kernel.axis(inner), kernel.axis(axis));
        let is_narrow = !columns.is_argument && (2..WIDE).contains(&columns.extent);
        let is_long = length.is_argument || length.extent >= 4 * SIDE_BY_SIDE;
        let is_plain = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { op, .. } => op.is_plain(),
            _ => false,
        };
        if !is_narrow || !is_long || !pass.stores.is_empty() || !pass.reductions.iter().all(is_plain) {
            return None;
        }
        let operand = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { operand, .. } => Some(operand),
            _ => None,
        };
        let width = columns.extent as i64;
        let mut folded = kernel.clone();
        for id in kernel.down_from(pass.reductions.iter().filter_map(operand)) {
            let value = kernel.value(id);
            let varies = value.axes.contains(&axis) || value.axes.contains(&inner);
            match (&value.op, &mut folded.values[id.index()].op) {
                (_, _) if !varies => {}
                (ValueOp::Unary(..) | ValueOp::Binary(..) | ValueOp::Select(..) | ValueOp::Cast(..), _) => {}
                (ValueOp::Load { index, guard: None, .. }, ValueOp::Load { index: own, .. })
                    if kernel.computed_axes(index).is_empty()
                        && index.coefficient(inner) == Some(1)
                        && index.coefficient(axis) == Some(width) =>
                {
                    let further = IndexExpr::axis(axis).scale((SIDE_BY_SIDE as i64 - 1) * width);
                    *own = index.add(&further);
                }
                _ => return None,
            }
        }
        Some(Narrow { kernel: folded, inner })
    }

    /// A sweep down narrow columns: as many positions side by side as fill vectors, then those that are left.
    pub(super) fn sweep<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        (plan, pass): (&Plan, &Pass),
        flat: Var,
        (from, to): (Expr, Expr),
    ) -> Vec<Accumulator> {
        let (kernel, inner) = (&self.kernel, self.inner);
        let columns = kernel.axis(inner).extent;
        let accumulators = pass.declare(emitter, kernel, Some(columns * SIDE_BY_SIDE));
        let lane = Expr::name(Var::Lane);
        let group = |emitter: &mut Emitter<'k>, lanes: Expr| {
            emitter.unflatten(flat, &plan.axes, 1);
            emitter.using(kernel, |emitter| {
                emitter.repeat_along(&[inner], counting(Var::Lane, 0, lanes, LoopHint::Simd), |emitter| {
                    emitter.bind(inner, INDEX, lane.clone());
                    for (&id, accumulator) in pass.reductions.iter().zip(&accumulators) {
                        accumulator.take(emitter, id, Some(&lane), None);
                    }
                });
            });
        };
        let groups = to.clone().then(Div, SIDE_BY_SIDE);
        let groups = match groups {
            Expr::Int(_) => groups,
            groups => {
                let name = emitter.fresh("groups");
                Expr::Name(emitter.bind(name, INDEX, groups))
            }
        };
        let from = from.then(Div, SIDE_BY_SIDE);
        emitter.repeat(counting(flat, from, groups.clone(), LoopHint::None), |emitter| {
            group(emitter, Expr::Int(columns * SIDE_BY_SIDE));
        });
        let left = to.then(Sub, groups.clone().then(Mul, SIDE_BY_SIDE));
        if left != Expr::Int(0) {
            emitter.open(&[], false);
            emitter.bind(flat, INDEX, groups);
            group(emitter, left.then(Mul, columns));
            let body = emitter.close();
            emitter.push(Stmt::Block(body));
        }
        let k = emitter.index("k");
        let other = mul_add(k, columns, lane.clone());
        emitter.open(&[], false);
        for accumulator in &accumulators {
            accumulator.merge(emitter, Some(&lane), &|part| accumulator.part(part, Some(&other)));
        }
        let body = emitter.close();
        let body = vec![counting(Var::Lane, 0, columns, LoopHint::Simd).of(body)];
        emitter.push(counting(k, 1, SIDE_BY_SIDE, LoopHint::None).of(body));
        accumulators
    }
}
