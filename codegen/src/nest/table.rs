//! Runs of segments that differ in what buffer they read and where they begin, as the operands of a join of many: a loop
//! over a table of buffers does for all of them what one segment does.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::INDEX;
use super::emitter::{Emitter, Staged};
use super::passes::count_loop;
use super::segments::Segments;
use super::stmt::Arithmetic::{Add, Div, LessEqual, Max, Min, Mul, Sub};
use super::stmt::{Expr, LoopHint, Step, Stmt, Type};
use super::variable::Var;
use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};

/// Fewer segments run faster with a loop each, whose length is known, and are not too much text.
const LEAST_PIECES: usize = 48;

/// Consecutive segments that do the same.
pub(super) struct Run {
    /// Which segments.
    pub(super) segments: Range<usize>,
    /// What each reads.
    buffers: Vec<BufferId>,
    /// Where each begins, and where the last one ends.
    positions: Vec<u64>,
    /// What the first one reads from its buffer.
    loads: Vec<ValueId>,
    dtype: DType,
}

impl Run {
    /// The runs among the segments, in order.
    pub(super) fn all(segments: &Segments, kernel: &Kernel) -> Vec<Run> {
        let axis = segments.axis;
        let starts: Option<Vec<i64>> = segments.parts.iter().map(|(start, _)| start.as_constant()).collect();
        let Some(mut starts) = starts else { return Vec::new() };
        let extent = kernel.axis(axis);
        starts.push(if extent.is_argument { i64::MAX } else { extent.extent as i64 });
        let mut runs = Vec::new();
        let mut first = 0;
        while first < segments.parts.len() {
            let part =
                |number: usize| Part { kernel: &segments.parts[number].1, axis, start: starts[number] };
            let mut run: Option<Run> = None;
            let mut end = first + 1;
            while end < segments.parts.len() {
                let Some(same) = Comparison::of(part(first), part(end)) else { break };
                let run = run.get_or_insert_with(|| Run {
                    segments: first..end,
                    buffers: vec![same.buffers.0],
                    positions: Vec::new(),
                    loads: same.loads.clone(),
                    dtype: kernel.buffers[same.buffers.0.index()].dtype,
                });
                if (run.buffers[0], &run.loads) != (same.buffers.0, &same.loads) {
                    break;
                }
                run.buffers.push(same.buffers.1);
                end += 1;
            }
            if let Some(mut run) = run.filter(|run| run.buffers.len() >= LEAST_PIECES) {
                run.segments.end = end;
                run.positions = starts[first..=end].iter().map(|&start| start as u64).collect();
                runs.push(run);
            }
            first = end;
        }
        runs
    }

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

    /// The length of the segments, if it is one.
    fn length(&self) -> Option<u64> {
        let length = self.positions[1].checked_sub(self.positions[0])?;
        self.positions.windows(2).all(|pair| pair[1] - pair[0] == length).then_some(length)
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
                _ => within.clone().then(Mul, Expr::Int(stride)),
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
            emitter.open_pinned();
            emitter.bind_axes(&[axis]);
            let number = Expr::name(axis).then(Sub, Expr::Int(self.positions[0]));
            self.with_segment(emitter, segments, (parts, number), &Expr::Int(0), |emitter, kernel| {
                emitter.using(kernel, |emitter| kernel.stores.iter().for_each(|store| emitter.store(store)));
            });
            let body = emitter.close();
            emitter.push(count_loop(axis, start.clone(), stop.clone(), LoopHint::None, body));
            return;
        }
        let number = emitter.fresh("number");
        emitter.open_pinned();
        let names = [("begin", 0), ("end", 1)].map(|(name, after)| {
            let at = Expr::name(number).then(Add, Expr::Int(after));
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
        let body = emitter.close();
        let count = Expr::Int(self.buffers.len() as u64);
        emitter.push(count_loop(number, Expr::Int(0), count, LoopHint::None, body));
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
        let within = Expr::name(segments.axis).then(Sub, Expr::name(begin));
        self.with_segment(emitter, segments, (parts, number), &within, |emitter, kernel| {
            emit_loop(emitter, kernel, axis, start, stop);
        });
    }

    /// Which segment a position is in.
    fn number(&self, emitter: &mut Emitter, begins: Var, axis: AxisId) -> Expr {
        let number = emitter.fresh("number");
        if let Some(length) = self.length() {
            let from_first = Expr::name(axis).then(Sub, Expr::Int(self.positions[0]));
            return Expr::Name(emitter.bind(number, INDEX, from_first.then(Div, Expr::Int(length))));
        }
        let step = emitter.fresh("step");
        let number = emitter.variable(number, INDEX, Expr::Int(0));
        let count = self.buffers.len() as u64;
        emitter.open(&[], false);
        let next = emitter.fresh("next");
        let value = Expr::name(number).then(Add, Expr::name(step)).then(Min, Expr::Int(count));
        let next = emitter.bind(next, INDEX, value);
        let then = vec![Stmt::Assign { target: Expr::name(number), value: Expr::name(next) }];
        let condition = Expr::element(begins, Expr::name(next)).then(LessEqual, Expr::name(axis));
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        let body = emitter.close();
        let (half, to) = (Expr::Int(count.next_power_of_two() / 2), Expr::Int(0));
        emitter.push(Stmt::For { var: step, from: half, to, step: Step::Halve, hint: LoopHint::None, body });
        Expr::name(number)
    }
}

fn emit_loop<'k>(emitter: &mut Emitter<'k>, kernel: &'k Kernel, axis: AxisId, from: Expr, to: Expr) {
    let body = emitter.using(kernel, |emitter| {
        emitter.open(&[axis], false);
        kernel.stores.iter().for_each(|store| emitter.store(store));
        emitter.close()
    });
    emitter.push(count_loop(axis, from, to, LoopHint::Simd, body));
}

/// The index with positions along the axis from `start` on.
fn from(index: &IndexExpr, axis: AxisId, start: i64, kernel: &Kernel) -> IndexExpr {
    index.substitute(axis, &IndexExpr::axis(axis).offset(start), &kernel.ranges())
}

/// A segment as it is compared.
#[derive(Clone, Copy)]
struct Part<'a> {
    kernel: &'a Kernel,
    axis: AxisId,
    start: i64,
}

/// What two segments that do the same read, each from a buffer of its own, at the same place from its beginning on.
struct Comparison {
    buffers: (BufferId, BufferId),
    /// The first one's.
    loads: Vec<ValueId>,
}

impl Comparison {
    fn of(a: Part, b: Part) -> Option<Comparison> {
        let mut found: FxHashMap<ValueId, (BufferId, BufferId)> = FxHashMap::default();
        let mut seen: FxHashSet<(ValueId, ValueId)> = FxHashSet::default();
        let pairs = a.kernel.stores.iter().zip(&b.kernel.stores);
        let mut pending: Vec<(ValueId, ValueId)> = pairs.map(|(a, b)| (a.value, b.value)).collect();
        while let Some((x, y)) = pending.pop() {
            if !seen.insert((x, y)) {
                continue;
            }
            match (&a.kernel.value(x).op, &b.kernel.value(y).op) {
                (
                    ValueOp::Load { buffer: of_a, index: at_a, guard: None },
                    ValueOp::Load { buffer: of_b, index: at_b, guard: None },
                ) => {
                    if (of_a, at_a) == (of_b, at_b) {
                        continue;
                    }
                    let dtype = |part: Part, buffer: BufferId| part.kernel.buffers[buffer.index()].dtype;
                    let at_a = from(at_a, a.axis, a.start, a.kernel);
                    let is_same = at_a == from(at_b, b.axis, b.start, b.kernel);
                    let is_map = |axis: &AxisId| a.kernel.axis(*axis).kind == AxisKind::Map;
                    let is_linear = at_a.coefficient(a.axis).is_some_and(|stride| stride >= 0);
                    if !is_same
                        || !is_linear
                        || !at_a.axes().iter().all(is_map)
                        || dtype(a, *of_a) != dtype(b, *of_b)
                    {
                        return None;
                    }
                    found.insert(x, (*of_a, *of_b));
                }
                (x, y) if x == y && matches!(x, ValueOp::Literal(_) | ValueOp::Argument(_)) => {}
                (ValueOp::Unary(f, a), ValueOp::Unary(g, b)) if f == g => pending.push((*a, *b)),
                (ValueOp::Cast(f, a), ValueOp::Cast(g, b)) if f == g => pending.push((*a, *b)),
                (ValueOp::Binary(f, a, b), ValueOp::Binary(g, c, d)) if f == g => {
                    pending.extend([(*a, *c), (*b, *d)]);
                }
                (ValueOp::Select(a, b, c), ValueOp::Select(d, e, f)) => {
                    pending.extend([(*a, *d), (*b, *e), (*c, *f)]);
                }
                _ => return None,
            }
        }
        let mut loads: Vec<ValueId> = found.keys().copied().collect();
        loads.sort_unstable();
        let buffers = *found.get(loads.first()?)?;
        found.values().all(|&other| other == buffers).then_some(Comparison { buffers, loads })
    }
}
