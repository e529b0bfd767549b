//! Partial results of windows, one for each place along a vector axis, of what their other axes reduce there. Few positions of these
//! axes are an unrolled loop inside of the vectors', so that a partial result stays in a register; others are the outer loops, and
//! each of their steps adds to arrays.

use super::super::accumulate::Accumulator;
use super::super::emitter::Emitter;
use super::super::stmt::{Expr, LoopHint, Stmt};
use super::window::{Border, Window};
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};

/// Positions of loops that are unrolled within those along vectors, at most.
const MOST_UNROLLED: u64 = 9;

/// Partial results to compute.
pub(super) struct Partials<'a, 'k> {
    /// They go over the same elements.
    pub(super) windows: &'a [&'a Window],
    pub(super) border: Option<&'k Border>,
    /// An array for each window, whose element of a place is at the slot.
    pub(super) elements: &'a [Accumulator],
    pub(super) along: AxisId,
    pub(super) slot: &'a Expr,
}

/// Emits the loops along vectors for one of the kernels: what is given does the work at a place.
pub(super) type Along<'a, 'k> = &'a dyn Fn(&mut Emitter<'k>, &'k Kernel, LoopHint, &dyn Fn(&mut Emitter<'k>));

impl<'k> Partials<'_, 'k> {
    pub(super) fn emit(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, along: Along<'_, 'k>) {
        let guard = self.windows[0].guard.as_ref().zip(self.border);
        let in_registers = |emitter: &mut Emitter<'k>, kernel: &'k Kernel| {
            // What spills over is stored by the next of several loops.
            along(emitter, kernel, LoopHint::SimdSpilling, &|emitter| self.in_registers(emitter));
        };
        if !self.are_few(kernel) {
            return self.in_memory(emitter, kernel, along);
        }
        let Some((guard, border)) = guard else { return in_registers(emitter, kernel) };
        let inside = |emitter: &mut Emitter<'k>| {
            emitter.using(&border.inside, |emitter| in_registers(emitter, &border.inside));
        };
        // Where all that the loops read is inside, which is nearly everywhere.
        match guard.everywhere(kernel, self.all().0) {
            None => self.in_memory(emitter, kernel, along),
            Some(rows) if rows.is_empty() => inside(emitter),
            Some(rows) => {
                rows.iter().for_each(|bound| emitter.bind_computed(&bound.expr));
                let then = emitter.pinned(inside);
                let otherwise = emitter.pinned(|emitter| self.in_memory(emitter, kernel, along));
                emitter.push(Stmt::If { condition: Expr::InBounds(rows), then, otherwise });
            }
        }
    }

    /// Axes that are loops, and the windows with what they combine.
    fn all(&self) -> (&[AxisId], impl Iterator<Item = (ValueId, &Accumulator)>) {
        (&self.windows[0].loops, self.windows.iter().map(|window| window.id).zip(self.elements))
    }

    /// Whether the loops are short, and nothing but addresses is worth computing once for each of their positions.
    fn are_few(&self, kernel: &Kernel) -> bool {
        let (loops, all) = self.all();
        let positions: u64 = loops.iter().map(|&axis| kernel.axis(axis).extent).product();
        let is_of_line = |id: &ValueId| {
            let value = kernel.value(*id);
            match value.op {
                ValueOp::Reduce { .. } => true,
                ValueOp::Unary(..) | ValueOp::Binary(..) | ValueOp::Select { .. } => {
                    !value.axes.contains(&self.along) && loops.iter().any(|axis| value.axes.contains(axis))
                }
                _ => false,
            }
        };
        let operands = all.flat_map(|(id, _)| kernel.operands(&kernel.value(id).op));
        let below = kernel.down_from(operands.collect::<Vec<ValueId>>());
        (2..=MOST_UNROLLED).contains(&positions) && !below.iter().any(is_of_line)
    }

    /// The loops within those along vectors: each place is stored once.
    fn in_registers(&self, emitter: &mut Emitter<'k>) {
        let kernel = emitter.kernel;
        let (loops, all) = self.all();
        let own = all.map(|(id, to)| Some((id, to, Accumulator::of(emitter, kernel, id, None)?)));
        let Some(own) = own.collect::<Option<Vec<_>>>() else {
            emitter.misfit("no reduction");
            return;
        };
        loops.iter().for_each(|&axis| emitter.open(&[axis], false));
        own.iter().for_each(|(id, _, sum)| sum.take(emitter, *id, None, None));
        loops.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::Unroll));
        own.iter().for_each(|(_, to, sum)| to.copy(emitter, Some(self.slot), &|part| sum.part(part, None)));
    }

    /// Those along vectors within the loops: each takes what there is at a place, and stores it.
    fn in_memory(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, along: Along<'_, 'k>) {
        let loops = self.all().0;
        let guard = self.windows[0].guard.as_ref().zip(self.border);
        self.elements.iter().for_each(|elements| elements.reset(emitter));
        // Where no step is left out, all places have as many values.
        let counted = Accumulator::common_welford(self.elements).filter(|_| guard.is_none());
        let steps = counted.map(|elements| elements.declare_steps(emitter));
        loops.iter().for_each(|&axis| emitter.open(&[axis], false));
        emitter.open(&[], false);
        let weight = counted.zip(steps.as_ref()).map(|(elements, steps)| elements.next_step(emitter, steps));
        let all = |emitter: &mut Emitter<'k>, kernel: &'k Kernel| {
            along(emitter, kernel, LoopHint::Simd, &|emitter| {
                self.all().1.for_each(|(id, to)| to.take(emitter, id, Some(self.slot), weight.as_ref()));
            });
        };
        match guard {
            None => all(emitter, kernel),
            Some((guard, border)) => guard.choose(emitter, border, &all),
        }
        let body = emitter.close();
        emitter.append(body);
        loops.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::None));
        if let Some(steps) = &steps {
            self.elements.iter().for_each(|elements| elements.spread_steps(emitter, steps));
        }
    }
}
