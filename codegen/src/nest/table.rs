//! A loop over a table of buffers does for all segments of a run what one segment does.

use super::INDEX;
use super::emitter::{Emitter, Staged};
use super::loops::{counting, halving};
use super::runs::{Run, from};
use super::segments::Segments;
use super::stmt::Arithmetic::{Add, Div, LessEqual, Max, Min, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, ValueOp};

impl Run {
    /// The tables, before all loops that are open: of where the segments begin, and of what they read.
    fn tables(&self, emitter: &mut Emitter) -> (Var, Var) {
        let (begins, parts) = (emitter.fresh("begins"), emitter.fresh("parts"));
        let begins = emitter.table(begins, INDEX, self.positions.len());
        let parts = emitter.table(parts, Type::Memory(self.dtype), self.buffers.len());
        emitter.push_first(Stmt::Positions { table: begins, positions: self.positions.clone() });
        let buffers = self.buffers.iter().map(|&buffer| buffer.into()).collect();
        emitter.push_first(Stmt::Buffers { table: parts, buffers, dtype: self.dtype });
        (begins, parts)
    }

    /// Emits with the first segment's kernel where the segment is the one with this number, and `within` is the position from
    /// its beginning on.
    fn with_segment<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        segments: &'k Segments,
        (parts, number): (Var, Expr),
        within: &Expr,
        emit: impl FnOnce(&mut Emitter<'k>, &'k Kernel),
    ) {
        let (start, kernel) = &segments.parts[self.segments.start];
        let part = emitter.fresh("part");
        let part = emitter.table(part, Type::Memory(self.dtype), 1);
        emitter.push(Stmt::Part { part, table: parts, number, dtype: self.dtype });
        for &id in &self.loads {
            let ValueOp::Load { index, .. } = &kernel.value(id).op else { continue };
            let index = from(index, segments.axis, start.as_constant().unwrap_or(0), kernel);
            let stride = index.coefficient(segments.axis).unwrap_or(0).unsigned_abs();
            let rest = index.substitute(segments.axis, &IndexExpr::zero(), &kernel.ranges());
            let along = match (stride, within) {
                (0, _) | (_, Expr::Int(0)) => Expr::Int(0),
                _ => within.clone().then(Mul, stride),
            };
            let slot = if rest == IndexExpr::zero() { along } else { along.then(Add, Expr::Index(rest)) };
            emitter.staged.insert(id, Staged { array: part, dtype: self.dtype, slot: Some(slot) });
        }
        emit(emitter, kernel);
        emitter.staged.clear();
    }

    /// The loop along the axis of the segments, from `start` to `stop`.
    pub(super) fn along<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        segments: &'k Segments,
        start: &Expr,
        stop: &Expr,
    ) {
        let (begins, parts) = self.tables(emitter);
        let axis = segments.axis;
        if self.length() == Some(1) {
            // The position says which segment it is.
            emitter.repeat_pinned(counting(axis, start.clone(), stop.clone(), LoopHint::None), |emitter| {
                emitter.bind_axes(&[axis]);
                let number = Expr::name(axis).then(Sub, self.positions[0]);
                self.with_segment(emitter, segments, (parts, number), &Expr::Int(0), |emitter, kernel| {
                    emitter.using(kernel, |emitter| emitter.store_all(kernel));
                });
            });
            return;
        }
        let number = emitter.fresh("number");
        let count = Expr::Int(self.buffers.len() as u64);
        emitter.repeat_pinned(counting(number, 0, count, LoopHint::None), |emitter| {
            let names = [("begin", 0), ("end", 1)].map(|(name, after)| {
                let at = Expr::name(number).then(Add, after);
                let var = emitter.fresh(name);
                emitter.bind(var, INDEX, Expr::element(begins, at))
            });
            let [begin, end] = names.map(Expr::name);
            let first = emitter.fresh("start");
            let first = emitter.bind(first, INDEX, start.clone().then(Max, begin.clone()));
            let last = emitter.fresh("stop");
            let last = emitter.bind(last, INDEX, stop.clone().then(Min, end));
            let within = Expr::name(axis).then(Sub, begin);
            self.with_segment(emitter, segments, (parts, Expr::name(number)), &within, |emitter, kernel| {
                emit_loop(emitter, kernel, axis, Expr::name(first), Expr::name(last));
            });
        });
    }

    /// The loop along another axis, where the position along the axis of the segments is known.
    pub(super) fn across<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        segments: &'k Segments,
        axis: AxisId,
        (start, stop): (Expr, Expr),
    ) {
        let (begins, parts) = self.tables(emitter);
        let number = self.number(emitter, begins, segments.axis);
        let begin = emitter.fresh("begin");
        let begin = emitter.bind(begin, INDEX, Expr::element(begins, number.clone()));
        let within = Expr::name(segments.axis).then(Sub, begin);
        self.with_segment(emitter, segments, (parts, number), &within, |emitter, kernel| {
            emit_loop(emitter, kernel, axis, start, stop);
        });
    }

    /// Which segment a position is in.
    fn number(&self, emitter: &mut Emitter, begins: Var, axis: AxisId) -> Expr {
        let number = emitter.fresh("number");
        if let Some(length) = self.length() {
            let from_first = Expr::name(axis).then(Sub, self.positions[0]);
            return Expr::Name(emitter.bind(number, INDEX, from_first.then(Div, length)));
        }
        let step = emitter.fresh("step");
        let number = emitter.variable(number, INDEX, Expr::Int(0));
        let count = self.buffers.len() as u64;
        let half = count.next_power_of_two() / 2;
        emitter.repeat(halving(step, half, LoopHint::None), |emitter| {
            let next = emitter.fresh("next");
            let value = Expr::name(number).then(Add, step).then(Min, count);
            let next = emitter.bind(next, INDEX, value);
            let then = vec![Stmt::Assign { target: Expr::name(number), value: Expr::name(next) }];
            let condition = Expr::element(begins, next).then(LessEqual, axis);
            emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        });
        Expr::name(number)
    }
}

fn emit_loop<'k>(emitter: &mut Emitter<'k>, kernel: &'k Kernel, axis: AxisId, from: Expr, to: Expr) {
    let body = emitter.using(kernel, |emitter| {
        emitter.open(&[axis], false);
        emitter.store_all(kernel);
        emitter.close()
    });
    emitter.push(counting(axis, from, to, LoopHint::Simd).of(body));
}
