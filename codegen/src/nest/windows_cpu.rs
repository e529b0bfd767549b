//! Windows of a core's innermost loop: some neighbouring results at a time are combined in vector lanes, each in a
//! partial result of its own, before the loop that uses them.
//!
//! A window that moves on by one element shares all but one with the next. Partial results of 1, 2, 4, … neighbouring
//! elements are made of each other for all windows of the stretch at once, and a window of any length is made of those
//! that its binary digits name: about log2 of the length combinations an element, in vectors, of any reduction that can
//! merge, and without cancellation.

use super::INDEX;
use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::fission::{Divided, Fission};
use super::guarded_lanes::{VECTOR, are_masks};
use super::interior::{decided, everywhere};
use super::loops::counting;
use super::stmt::Arithmetic::{Add, Max, Min, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt};
use super::turned;
use super::variable::Var;
use crate::index::{AxisId, Bound, BoundTruth};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::schedule::{LONGEST_UNROLLED, STACK_BYTES, is_last, sliding_axis, strided_axis};

/// Results of a stretch, at least: partial results of so many stay in the nearest cache.
const LENGTH: u64 = 512;

/// Sliding windows from this length on are made of each other.
const SHORTEST_SLIDING: u64 = 8;

/// Positions of loops that are unrolled within those along vectors, at most.
const MOST_UNROLLED: u64 = 9;

/// A reduction over a window.
struct Window {
    id: ValueId,
    /// Reduced axes that are loops.
    loops: Vec<AxisId>,
    /// The reduced axis along which windows slide by one element, and its length.
    sliding: Option<(AxisId, u64)>,
    /// The short reduced axis along which a window moves on by some elements. What the loops combine at each of these is there
    /// once, and the few of a window are combined where it is used.
    strided: Option<Strided>,
    /// What decides where the window is beyond the border.
    guard: Option<Guard>,
}

#[derive(Clone, Copy)]
struct Strided {
    axis: AxisId,
    length: u64,
    stride: u64,
}

/// The one condition of all that a window reads.
struct Guard {
    /// What the loops decide.
    rows: Vec<Bound>,
    /// The first elements inside and beyond the other border, where the window of the first result begins.
    columns: Option<(i64, i64)>,
}

/// A kernel without the conditions of its windows: where they hold, and where they do not.
pub(super) struct Border {
    inside: Kernel,
    outside: Kernel,
}

/// The results of windows.
enum Combined {
    /// One for each position.
    Whole(Accumulator),
    /// What few of have to be combined.
    Parts(Accumulator, Strided),
}

/// The windows of a loop that are combined before it.
pub(super) struct Windows {
    axis: AxisId,
    windows: Vec<Window>,
    /// Results of a stretch.
    length: u64,
}

impl Windows {
    /// Those of the loop over `axis`; `None` if there are none.
    pub(super) fn of(kernel: &Kernel, axis: AxisId) -> Option<Windows> {
        let below = kernel.down_from(kernel.stores.iter().map(|store| store.value));
        let mut windows: Vec<Window> = below.into_iter().filter_map(|id| window(kernel, axis, id)).collect();
        // What a window combines is computed at each of its elements, windows of others among it.
        let within: Vec<ValueId> = windows
            .iter()
            .flat_map(|window| kernel.down_from(kernel.operands(&kernel.value(window.id).op)))
            .collect();
        windows.retain(|window| !within.contains(&window.id));
        let longest = windows.iter().filter_map(|window| window.sliding).map(|(_, length)| length).max();
        let own = kernel.axis(axis);
        let least = if own.is_argument { LENGTH } else { LENGTH.min(own.extent.next_multiple_of(16)) };
        let length = least.max(longest.map_or(0, |longest| longest.next_power_of_two()));
        let bytes = |window: &Window| {
            let reach = window.sliding.map_or(0, |(_, length)| length + length.min(LENGTH));
            let stride = window.strided.map_or(1, |strided| strided.stride);
            (length * stride + reach) * 3 * kernel.value(window.id).dtype.compute().size() as u64
        };
        let is_small = windows.iter().map(bytes).sum::<u64>() <= STACK_BYTES * 2;
        (!windows.is_empty() && is_small).then_some(Windows { axis, windows, length })
    }

    /// The kernel without conditions, if windows of the loop over `axis` decide all that it has.
    pub(super) fn border(kernel: &Kernel, axis: AxisId) -> Option<Border> {
        let windows = Windows::of(kernel, axis)?;
        let is_decided =
            |id: ValueId| windows.windows.iter().any(|window| window.id == id && window.guard.is_some());
        // What is computed without going through one of them.
        let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
        let mut seen = vec![false; kernel.values.len()];
        while let Some(id) = pending.pop() {
            if is_decided(id) || std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            if matches!(kernel.value(id).op, ValueOp::InBounds(_)) {
                return None;
            }
            pending.extend(kernel.operands(&kernel.value(id).op));
        }
        let border = || Border { inside: decided(kernel, |_| true), outside: decided(kernel, |_| false) };
        windows.windows.iter().any(|window| window.guard.is_some()).then(border)
    }

    /// The loop from `from` to `to`.
    pub(super) fn emit<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (kernel, border): (&'k Kernel, Option<&'k Border>),
        from: Expr,
        to: Expr,
    ) {
        let (start, stop) = (emitter.fresh("start"), emitter.fresh("stop"));
        emitter.stretches([start, stop], (from, &to), self.length, |emitter| {
            emitter.using(kernel, |emitter| self.stretch(emitter, (kernel, border), (start, stop)));
        });
    }

    fn stretch<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (kernel, border): (&'k Kernel, Option<&'k Border>),
        (start, stop): (Var, Var),
    ) {
        let combined = |window: &Window| match window.strided {
            Some(strided) => {
                let parts = self.parts(emitter, (kernel, border), window, strided, (start, stop))?;
                Some(Combined::Parts(parts, strided))
            }
            None => self.combine(emitter, (kernel, border), window, (start, stop)).map(Combined::Whole),
        };
        let results: Vec<Combined> = self.windows.iter().filter_map(combined).collect();
        let slot = self.slot(start);
        let stretch = (Expr::name(start), Expr::name(stop));
        let define = |emitter: &mut Emitter<'k>| {
            for (window, result) in self.windows.iter().zip(&results) {
                let result = match result {
                    Combined::Whole(result) => result.result(Some(&slot)),
                    Combined::Parts(parts, strided) => {
                        few(emitter, kernel, window.id, parts, *strided, &slot)
                    }
                };
                emitter.define(window.id, result);
            }
        };
        match self.fission(kernel) {
            Some(fission) => self.divided(emitter, kernel, &fission, &results, (&slot, stretch), define),
            None => self.along(emitter, &stretch, |emitter| {
                define(emitter);
                emitter.store_all(kernel);
            }),
        }
    }

    /// The loops that use the windows, where these are several: what one leaves to the next is in arrays.
    fn divided<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        fission: &Fission,
        results: &[Combined],
        (slot, stretch): (&Expr, (Expr, Expr)),
        define: impl Fn(&mut Emitter<'k>),
    ) {
        // The few parts of a window are combined once.
        let mut own: Vec<(ValueId, Expr)> = Vec::new();
        let mut parts: Vec<(ValueId, Expr)> = Vec::new();
        for (window, result) in self.windows.iter().zip(results) {
            match result {
                Combined::Whole(result) => own.push((window.id, result.result(Some(slot)))),
                Combined::Parts(..) => {
                    parts.extend(emitter.elements_of(&[window.id], "window", self.length, slot));
                }
            }
        }
        if !parts.is_empty() {
            self.along(emitter, &stretch, |emitter| {
                define(emitter);
                emitter.leave(&parts);
            });
        }
        own.extend(parts);
        let mut elements = own.clone();
        elements.extend(fission.emit(emitter, kernel, slot, self.length, &mut |emitter, body| {
            self.along(emitter, &stretch, |emitter| {
                emitter.find(&own);
                body(emitter);
            });
        }));
        self.along(emitter, &stretch, |emitter| {
            emitter.find(&elements);
            emitter.values_before_stores(kernel);
            emitter.store_all(kernel);
        });
    }

    /// What of the loop that uses the windows is worth loops of its own.
    fn fission(&self, kernel: &Kernel) -> Option<Fission> {
        let there: Vec<ValueId> = self.windows.iter().map(|window| window.id).collect();
        let divided = Divided {
            kernel,
            along: &[self.axis],
            bound: kernel.axes_of_kind(AxisKind::Map).into_iter().collect(),
            ends: kernel.stores.iter().map(|store| store.value).collect(),
            there: &there,
            apart: None,
        };
        divided.fission(self.length)
    }

    /// Which partial result is that of the position that is bound.
    fn slot(&self, start: Var) -> Expr {
        Expr::name(self.axis).then(Sub, start)
    }

    /// A loop along the axis, in vectors.
    fn along<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (from, to): &(Expr, Expr),
        body: impl FnOnce(&mut Emitter<'k>),
    ) {
        emitter.repeat_along(&[self.axis], counting(self.axis, from, to, LoopHint::Simd), body);
    }

    /// What the loops combine at each element of the windows of the stretch.
    fn parts<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (kernel, border): (&'k Kernel, Option<&'k Border>),
        window: &Window,
        strided: Strided,
        (start, stop): (Var, Var),
    ) -> Option<Accumulator> {
        let Strided { axis, length, stride } = strided;
        let extent = kernel.axis(self.axis).extent;
        let most = if kernel.axis(self.axis).is_argument { self.length } else { self.length.min(extent) };
        let lanes = (most.max(1) - 1) * stride + length;
        let parts = Accumulator::undefined(emitter, kernel, window.id, lanes.next_multiple_of(16))?;
        let laid_out = turned::take(emitter);
        emitter.open(&[], false);
        // The windows of all positions go on from that of the first.
        let last = Expr::name(stop).then(Sub, start).then(Sub, 1);
        let all = last.then(Mul, stride).then(Add, length);
        let (count, low, high) = (emitter.fresh("count"), emitter.fresh("low"), emitter.fresh("high"));
        emitter.bind(count, INDEX, all);
        emitter.bind(self.axis, INDEX, Expr::name(start));
        emitter.bind_axes(&[self.axis]);
        let columns = window.guard.as_ref().filter(|_| border.is_some()).and_then(|guard| guard.columns);
        if let Some((first, beyond)) = columns {
            let begun = Expr::name(start).then(Mul, stride);
            for (var, at) in [(low, first), (high, beyond)] {
                let at = if at < 0 { Expr::Int(0) } else { Expr::Int(at as u64).then(Sub, begun.clone()) };
                let at = at.then(Max, 0).then(Min, count);
                emitter.bind(var, INDEX, at);
            }
        }
        let slot = Expr::name(axis);
        let taken = Taken { window, border, elements: &parts, along: axis, slot: &slot };
        taken.emit(emitter, kernel, &|emitter, kernel, take| {
            let part = |emitter: &mut Emitter<'k>, kernel: &'k Kernel, from: Expr, to: Expr| {
                let body = emitter.pinned(|emitter| {
                    emitter.using(kernel, |emitter| {
                        emitter.repeat_along(&[axis], counting(axis, from, to, LoopHint::Simd), take);
                    });
                });
                emitter.append(body);
            };
            let (zero, count) = (|| Expr::Int(0), || Expr::name(count));
            match border.filter(|border| columns.is_some() && std::ptr::eq(kernel, &border.inside)) {
                Some(border) => {
                    part(emitter, &border.outside, zero(), Expr::name(low));
                    part(emitter, kernel, Expr::name(low), Expr::name(high));
                    part(emitter, &border.outside, Expr::name(high), count());
                }
                None => part(emitter, kernel, zero(), count()),
            }
        });
        let body = emitter.close();
        emitter.push(Stmt::Block(body));
        emitter.staged.extend(laid_out);
        Some(parts)
    }

    /// The results of one window at all positions of the stretch.
    fn combine<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (kernel, border): (&'k Kernel, Option<&'k Border>),
        window: &Window,
        (start, stop): (Var, Var),
    ) -> Option<Accumulator> {
        let own = window.sliding.map_or(1, |(_, length)| length);
        let lanes = (self.length + own - 1).next_multiple_of(16);
        let elements = Accumulator::undefined(emitter, kernel, window.id, lanes)?;
        let laid_out = window.sliding.map(|_| turned::take(emitter)).unwrap_or_default();
        // Windows of one element along the axis that they slide along, also those that begin in the last window.
        emitter.open(&[], false);
        if let Some((axis, _)) = window.sliding {
            emitter.bind(axis, INDEX, Expr::Int(0));
            emitter.bind_axes(&[axis]);
        }
        let slot = self.slot(start);
        let to = Expr::name(stop).then(Add, own - 1);
        let taken = Taken { window, border, elements: &elements, along: self.axis, slot: &slot };
        taken.emit(emitter, kernel, &|emitter, _, take| {
            self.along(emitter, &(start.into(), to.clone()), take);
        });
        let body = emitter.close();
        emitter.push(Stmt::Block(body));
        emitter.staged.extend(laid_out);
        let count = Expr::name(stop).then(Sub, start);
        let result = match window.sliding {
            None => elements,
            Some((_, length)) => self.slide(emitter, kernel, window, elements, length, &count)?,
        };
        if result.settles() {
            emitter.repeat(counting(Var::Lane, 0, count, LoopHint::Simd), |emitter| {
                result.settle(emitter, Some(&Expr::name(Var::Lane)));
            });
        }
        Some(result)
    }

    /// Makes windows of `length` neighbours of the partial results.
    fn slide<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        window: &Window,
        neighbours: Accumulator,
        length: u64,
        count: &Expr,
    ) -> Option<Accumulator> {
        if length.is_power_of_two() {
            (0..length.ilog2()).for_each(|digit| double(emitter, &neighbours, 1 << digit, length, count));
            return Some(neighbours);
        }
        let result = Accumulator::of(emitter, kernel, window.id, Some(self.length))?;
        let lane = Expr::name(Var::Lane);
        let mut reach = 0;
        for digit in 0..=length.ilog2() {
            let own = 1u64 << digit;
            if length & own != 0 {
                emitter.repeat(counting(Var::Lane, 0, count.clone(), LoopHint::Simd), |emitter| {
                    let at = lane.clone().then(Add, reach);
                    match reach {
                        0 => (0..result.parts.len()).for_each(|part| {
                            emitter.push(set(
                                result.part(part, Some(&lane)),
                                neighbours.part(part, Some(&lane)),
                            ));
                        }),
                        _ => result.merge(emitter, Some(&lane), &|part| neighbours.part(part, Some(&at))),
                    }
                });
                reach += own;
            }
            if reach < length {
                double(emitter, &neighbours, own, length, count);
            }
        }
        Some(result)
    }
}

/// What the loops of a window combine at each place of vectors along an axis.
struct Taken<'a, 'k> {
    window: &'a Window,
    border: Option<&'k Border>,
    /// Of each place, at a slot.
    elements: &'a Accumulator,
    along: AxisId,
    slot: &'a Expr,
}

/// Emits the loops along vectors for one of the kernels: what is given does the work at a place.
type Along<'a, 'k> = &'a dyn Fn(&mut Emitter<'k>, &'k Kernel, &dyn Fn(&mut Emitter<'k>));

impl<'k> Taken<'_, 'k> {
    fn emit(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, along: Along<'_, 'k>) {
        let guard = self.window.guard.as_ref().zip(self.border);
        let in_registers = |emitter: &mut Emitter<'k>, kernel: &'k Kernel| {
            along(emitter, kernel, &|emitter| self.in_registers(emitter));
        };
        if !self.are_few(kernel) {
            return self.in_memory(emitter, kernel, along);
        }
        let Some((guard, border)) = guard else { return in_registers(emitter, kernel) };
        let inside = |emitter: &mut Emitter<'k>| {
            emitter.using(&border.inside, |emitter| in_registers(emitter, &border.inside));
        };
        // Where all that the loops read is inside, which is nearly everywhere.
        match guard.everywhere(kernel) {
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

    /// Whether the loops are short, and nothing but addresses is worth computing once for each of their positions.
    fn are_few(&self, kernel: &Kernel) -> bool {
        let Window { id, loops, .. } = self.window;
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
        let below = kernel.down_from(kernel.operands(&kernel.value(*id).op));
        (2..=MOST_UNROLLED).contains(&positions) && !below.iter().any(is_of_line)
    }

    /// The loops within those along vectors: each place is stored once.
    fn in_registers(&self, emitter: &mut Emitter<'k>) {
        let Window { id, loops, .. } = self.window;
        let Some(own) = Accumulator::of(emitter, emitter.kernel, *id, None) else {
            emitter.misfit("no reduction");
            return;
        };
        loops.iter().for_each(|&axis| emitter.open(&[axis], false));
        own.take(emitter, *id, None, None);
        loops.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::Unroll));
        for part in 0..own.parts.len() {
            emitter.push(set(self.elements.part(part, Some(self.slot)), own.part(part, None)));
        }
    }

    /// Those along vectors within the loops: each takes what there is at a place, and stores it.
    fn in_memory(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, along: Along<'_, 'k>) {
        let Window { id, loops, guard, .. } = self.window;
        self.elements.reset(emitter);
        loops.iter().for_each(|&axis| emitter.open(&[axis], false));
        emitter.open(&[], false);
        let all = |emitter: &mut Emitter<'k>, kernel: &'k Kernel| {
            along(emitter, kernel, &|emitter| self.elements.take(emitter, *id, Some(self.slot), None));
        };
        match guard.as_ref().zip(self.border) {
            None => all(emitter, kernel),
            Some((guard, border)) => guard.choose(emitter, border, &all),
        }
        let body = emitter.close();
        emitter.append(body);
        loops.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::None));
    }
}

/// Makes partial results of `own` neighbours into those of twice as many. Each takes one that comes later, which in order
/// and in vectors is read before it changes.
fn double(emitter: &mut Emitter, neighbours: &Accumulator, own: u64, length: u64, count: &Expr) {
    let lane = Expr::name(Var::Lane);
    let other = lane.clone().then(Add, own);
    let to = count.clone().then(Add, length - 2 * own);
    emitter.repeat(counting(Var::Lane, 0, to, LoopHint::Simd), |emitter| {
        neighbours.merge(emitter, Some(&lane), &|part| neighbours.part(part, Some(&other)));
    });
}

/// The few parts of a window, combined.
fn few(
    emitter: &mut Emitter,
    kernel: &Kernel,
    id: ValueId,
    parts: &Accumulator,
    strided: Strided,
    slot: &Expr,
) -> Expr {
    let Some(result) = Accumulator::of(emitter, kernel, id, None) else {
        return emitter.misfit("no reduction");
    };
    let first = slot.clone().then(Mul, strided.stride);
    for position in 0..strided.length {
        let at = first.clone().then(Add, position);
        result.merge(emitter, None, &|part| parts.part(part, Some(&at)));
    }
    result.settle(emitter, None);
    result.result(None)
}

impl Guard {
    /// That of all conditions below a window, if they are one, which the loops and the position within the window decide.
    fn of(
        kernel: &Kernel,
        axis: AxisId,
        id: ValueId,
        strided: Option<Strided>,
    ) -> Result<Option<Guard>, NoGuard> {
        let mut conditions = kernel.down_from([id]).into_iter().filter_map(|id| match &kernel.value(id).op {
            ValueOp::InBounds(bounds) => Some(bounds),
            _ => None,
        });
        let Some(first) = conditions.next() else { return Ok(None) };
        if conditions.any(|other| other != first) {
            return Err(NoGuard);
        }
        let ValueOp::Reduce { axes: own, .. } = &kernel.value(id).op else { return Err(NoGuard) };
        // A reduction along the same axis, such as the softmax of a window, goes over all positions, whatever this loop decides.
        let is_again = |id: &ValueId| match &kernel.value(*id).op {
            ValueOp::Reduce { axes, .. } => axes.iter().any(|axis| own.contains(axis)),
            _ => false,
        };
        if kernel.down_from(kernel.operands(&kernel.value(id).op)).iter().any(is_again) {
            return Err(NoGuard);
        }
        // What a reduction further in decides is not known before its loop.
        let is_inner = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce && !own.contains(axis);
        let mut guard = Guard { rows: Vec::new(), columns: None };
        // Nor is a position of what is computed at each result.
        let of_result =
            |own: &AxisId| *own == axis || strided.is_some_and(|s| s.axis == *own) || is_inner(own);
        for bound in first {
            let computed = kernel.computed_axes(&bound.expr);
            let varies = computed.iter().any(|&(_, value)| kernel.value(value).axes.iter().any(of_result));
            if varies || bound.expr.axes().iter().any(is_inner) {
                return Err(NoGuard);
            }
            let within =
                strided.map_or(0, |strided| bound.expr.coefficient(strided.axis).unwrap_or(i64::MAX));
            match (bound.expr.coefficient(axis), within) {
                (Some(0), 0) => guard.rows.push(bound.clone()),
                (Some(own), 1) if bound.expr.axes().len() == 2 && own > 0 && guard.columns.is_none() => {
                    let offset = bound.expr.constant_term();
                    guard.columns = Some((bound.lo - offset, bound.hi - offset));
                }
                _ => return Err(NoGuard),
            }
        }
        Ok(Some(guard))
    }

    /// What holds where the loops' conditions do at all of their positions; `None` if that is not known, or nowhere.
    fn everywhere(&self, kernel: &Kernel) -> Option<Vec<Bound>> {
        let mut all = Vec::new();
        for bound in &self.rows {
            match everywhere(kernel, bound, &[])?.simplify(&kernel.ranges()) {
                BoundTruth::Always => {}
                BoundTruth::Never => return None,
                BoundTruth::Depends(bound) => all.push(bound),
            }
        }
        Some(all)
    }

    /// One of the kernels without conditions, as the loops decide.
    fn choose<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        border: &'k Border,
        part: &dyn Fn(&mut Emitter<'k>, &'k Kernel),
    ) {
        if self.rows.is_empty() {
            return emitter.using(&border.inside, |emitter| part(emitter, &border.inside));
        }
        self.rows.iter().for_each(|bound| emitter.bind_computed(&bound.expr));
        let [then, otherwise] = [&border.inside, &border.outside].map(|kernel| {
            emitter.open_pinned();
            emitter.using(kernel, |emitter| part(emitter, kernel));
            emitter.close()
        });
        emitter.push(Stmt::If { condition: Expr::InBounds(self.rows.clone()), then, otherwise });
    }
}

/// The conditions of a window are several, or of another form.
struct NoGuard;

/// The reduction as a window of the loop over `axis`, if it is worth it.
fn window(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<Window> {
    let value = kernel.value(id);
    let ValueOp::Reduce { op, axes, position, .. } = &value.op else { return None };
    let is_free = value.axes.iter().all(|axis| kernel.axis(*axis).kind == AxisKind::Map);
    if !is_free || !value.axes.contains(&axis) || axes.iter().any(|&axis| kernel.axis(axis).is_argument) {
        return None;
    }
    let positions: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
    let sliding = sliding_axis(kernel, axis, id).filter(|&(_, length)| length >= SHORTEST_SLIDING);
    let is_short = positions <= LONGEST_UNROLLED && sliding.is_none();
    if is_short && is_one_vector(kernel, axis, &kernel.down_from([id])) {
        return None;
    }
    let strided = match sliding.is_none() && op.is_plain() && position.is_none() {
        true => strided_axis(kernel, axis, id).map(|(axis, length, stride)| Strided { axis, length, stride }),
        false => None,
    };
    let guard = match sliding {
        None => Guard::of(kernel, axis, id, strided),
        Some(_) => Ok(None),
    };
    let (strided, guard) = match guard {
        Ok(guard) => (strided, guard),
        Err(NoGuard) => (None, None),
    };
    let shared = sliding.map(|(axis, _)| axis).or(strided.map(|strided| strided.axis));
    let below = kernel.down_from(kernel.operands(&value.op));
    let is_inner = |id: &&ValueId| {
        matches!(kernel.value(**id).op, ValueOp::Reduce { .. }) && kernel.value(**id).axes.contains(&axis)
    };
    // What is reduced before is shared if it is one at each element of the window, and not one of the window.
    let is_apart = |id: &ValueId| shared.is_none_or(|shared| !kernel.value(*id).axes.contains(&shared));
    if below.iter().filter(is_inner).any(is_apart) {
        return None;
    }
    // Others that are short are as well unrolled.
    let is_last = strided.is_some_and(|strided| is_last(strided.length, strided.stride));
    let has_others = axes.len() > 1 || below.iter().any(|id| is_inner(&id));
    let is_worth_it = guard.is_some() || is_last && has_others || !is_short;
    let loops = axes.iter().copied().filter(|&own| shared != Some(own)).collect();
    is_worth_it.then_some(Window { id, loops, sliding, strided, guard })
}

/// Whether a loop over the axis is one vector of neighbours, in which short windows beyond the edges are combined as they are, in
/// registers: a partial result in memory would have to be stored before its neighbours can be read.
fn is_one_vector(kernel: &Kernel, axis: AxisId, below: &[ValueId]) -> bool {
    let own = kernel.axis(axis);
    let is_guarded = below.iter().any(|&id| matches!(kernel.value(id).op, ValueOp::InBounds(_)));
    let is_near = |&id: &ValueId| match &kernel.value(id).op {
        ValueOp::Load { index, .. } => index.coefficient(axis).is_some_and(|step| (0..=1).contains(&step)),
        _ => true,
    };
    !own.is_argument
        && own.extent <= VECTOR
        && is_guarded
        && below.iter().all(is_near)
        && are_masks(kernel, axis)
}
