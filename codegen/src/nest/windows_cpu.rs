//! Windows of a core's innermost loop: some neighbouring results at a time are combined in vector lanes, each in a
//! partial result of its own, before the loop that uses them.
//!
//! A window that moves on by one element shares all but one with the next. Partial results of 1, 2, 4, … neighbouring
//! elements are made of each other for all windows of the stretch at once, and a window of any length is made of those
//! that its binary digits name: about log2 of the length combinations an element, in vectors, of any reduction that can
//! merge, and without cancellation.

mod partials;
mod taps;
mod window;

use partials::Partials;
pub(super) use window::Border;
use window::{Strided, Window};

use super::INDEX;
use super::accumulate::Accumulator;
use super::emitter::{Emitter, MOST_IN_LOOP};
use super::fission::{self, Fission};
use super::interior::decided;
use super::loops::counting;
use super::stmt::Arithmetic::{Add, Max, Min, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt};
use super::turned;
use super::variable::Var;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::schedule::STACK_BYTES;

/// Results of a stretch, at least: partial results of so many stay in the nearest cache.
pub(super) const LENGTH: u64 = 512;

/// The same where all that is combined lies in rows of memory: processors ask for what comes next of long parts of these.
const LENGTH_OF_ROWS: u64 = 1024;

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
        Windows::below(kernel, axis, &[], below)
    }

    /// Those that a pass over some axes, along the last of them, needs for these values of its elements, beside what is there.
    pub(super) fn of_pass(
        kernel: &Kernel,
        swept: &[AxisId],
        ends: Vec<ValueId>,
        there: &[ValueId],
    ) -> Option<Windows> {
        let &axis = swept.last()?;
        let (mut pending, mut below) = (ends, Vec::new());
        while let Some(id) = pending.pop() {
            // What is one for all elements, as a reduction of them, is there before the pass.
            if kernel.value(id).axes.contains(&axis) && !below.contains(&id) && !there.contains(&id) {
                pending.extend(kernel.operands(&kernel.value(id).op));
                below.push(id);
            }
        }
        below.sort_unstable();
        Windows::below(kernel, axis, swept, below)
    }

    fn below(kernel: &Kernel, axis: AxisId, swept: &[AxisId], below: Vec<ValueId>) -> Option<Windows> {
        let own = |id| Window::of(kernel, axis, swept, id);
        let mut windows: Vec<Window> = below.into_iter().filter_map(own).collect();
        // What a window combines is computed at each of its elements, windows of others among it.
        let within: Vec<ValueId> = windows
            .iter()
            .flat_map(|window| kernel.down_from(kernel.operands(&kernel.value(window.id).op)))
            .collect();
        windows.retain(|window| !within.contains(&window.id));
        let longest = windows.iter().filter_map(|window| window.sliding).map(|(_, length)| length).max();
        let own = kernel.axis(axis);
        let are_rows = windows.iter().all(Window::is_of_rows);
        let least = match own.is_argument {
            // One text for many extents.
            true => LENGTH,
            false => (if are_rows { LENGTH_OF_ROWS } else { LENGTH }).min(own.extent.next_multiple_of(16)),
        };
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
        Windows::of(kernel, axis)?.decide(kernel)
    }

    /// Whether all conditions are of what windows read, and decided where that is laid out.
    pub(super) fn lays_out_guards(kernel: &Kernel, axis: AxisId) -> bool {
        let Some(windows) = Windows::of(kernel, axis) else { return false };
        let is_laid_out = |id| windows.windows.iter().any(|window| window.id == id && window.taps.is_some());
        let is_guarded = kernel.values.iter().any(|value| matches!(value.op, ValueOp::InBounds(_)));
        is_guarded && !has_others(kernel, is_laid_out)
    }

    /// The same of these windows.
    pub(super) fn decide(&self, kernel: &Kernel) -> Option<Border> {
        let is_decided =
            |id: ValueId| self.windows.iter().any(|window| window.id == id && window.guard.is_some());
        if has_others(kernel, is_decided) {
            return None;
        }
        let border = || Border { inside: decided(kernel, |_| true), outside: decided(kernel, |_| false) };
        self.windows.iter().any(|window| window.guard.is_some()).then(border)
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
        let Some(results) = self.combined(emitter, (kernel, border), (start, stop)) else {
            emitter.misfit("no reduction");
            return;
        };
        match self.fission(kernel) {
            Some(fission) => {
                let left = self.left(emitter, kernel, &results, (start, stop));
                self.divided(emitter, kernel, &fission, left, (start, stop));
            }
            None => self.along(emitter, (start, stop), |emitter| {
                self.define(emitter, kernel, &results, start);
                emitter.store_all(kernel);
            }),
        }
    }

    /// The windows of a stretch, combined: which elements of arrays are those of the position that is bound.
    pub(super) fn elements<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        of: (&'k Kernel, Option<&'k Border>),
        stretch: (Var, Var),
    ) -> Vec<(ValueId, Expr)> {
        match self.combined(emitter, of, stretch) {
            Some(results) => self.left(emitter, of.0, &results, stretch),
            None => {
                emitter.misfit("no reduction");
                Vec::new()
            }
        }
    }

    /// Results of a stretch, at most.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The reductions that are windows.
    pub(super) fn ids(&self) -> impl Iterator<Item = ValueId> {
        self.windows.iter().map(|window| window.id)
    }

    /// Values of the position that is bound.
    fn define(&self, emitter: &mut Emitter, kernel: &Kernel, results: &[Combined], start: Var) {
        let slot = self.slot(start);
        for (window, result) in self.windows.iter().zip(results) {
            let result = match result {
                Combined::Whole(result) => result.result(Some(&slot)),
                Combined::Parts(parts, strided) => few(emitter, kernel, window.id, parts, *strided, &slot),
            };
            emitter.define(window.id, result);
        }
    }

    /// The same in arrays, for several loops: the few parts of a window are combined once.
    fn left<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        results: &[Combined],
        stretch: (Var, Var),
    ) -> Vec<(ValueId, Expr)> {
        let slot = self.slot(stretch.0);
        let mut own: Vec<(ValueId, Expr)> = Vec::new();
        let mut parts: Vec<(ValueId, Expr)> = Vec::new();
        for (window, result) in self.windows.iter().zip(results) {
            match result {
                Combined::Whole(result) => own.push((window.id, result.result(Some(&slot)))),
                Combined::Parts(..) => {
                    parts.extend(emitter.elements_of(&[window.id], "window", self.length, &slot));
                }
            }
        }
        if !parts.is_empty() {
            self.along(emitter, stretch, |emitter| {
                self.define(emitter, kernel, results, stretch.0);
                emitter.leave(&parts);
            });
        }
        own.extend(parts);
        own
    }

    /// What the windows combine, in their order. Those that go over the same elements share loops.
    fn combined<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        of: (&'k Kernel, Option<&'k Border>),
        stretch: (Var, Var),
    ) -> Option<Vec<Combined>> {
        let mut groups: Vec<Vec<&Window>> = Vec::new();
        for window in &self.windows {
            let fits = |group: &Vec<&Window>| group.len() < MOST_IN_LOOP && group[0].goes_with(window);
            match groups.iter_mut().find(|group| fits(group)) {
                Some(group) => group.push(window),
                None => groups.push(vec![window]),
            }
        }
        let mut results: Vec<(ValueId, Combined)> = Vec::new();
        for group in &groups {
            let (all, strided) = match (&group[0].taps, group[0].strided) {
                (Some(taps), _) => (self.tapped(emitter, of.0, (group, taps), stretch)?, None),
                (None, Some(strided)) => (self.parts(emitter, of, group, strided, stretch)?, Some(strided)),
                (None, None) => (self.combine(emitter, of, group, stretch)?, None),
            };
            let combined = |own: Accumulator| match strided {
                Some(strided) => Combined::Parts(own, strided),
                None => Combined::Whole(own),
            };
            results.extend(group.iter().map(|window| window.id).zip(all.into_iter().map(combined)));
        }
        let order = |(id, _): &(ValueId, Combined)| self.windows.iter().position(|window| window.id == *id);
        results.sort_by_key(order);
        Some(results.into_iter().map(|(_, combined)| combined).collect())
    }

    /// The loops that use the windows, where these are several: what one leaves to the next is in arrays.
    fn divided<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        fission: &Fission,
        own: Vec<(ValueId, Expr)>,
        stretch: (Var, Var),
    ) {
        let mut elements = own.clone();
        let slot = self.slot(stretch.0);
        elements.extend(fission.emit(emitter, kernel, &slot, self.length, &mut |emitter, body| {
            self.along(emitter, stretch, |emitter| {
                emitter.find(&own);
                body(emitter);
            });
        }));
        self.along(emitter, stretch, |emitter| {
            emitter.find(&elements);
            emitter.values_before_stores(kernel);
            emitter.store_all(kernel);
        });
    }

    /// What of the loop that uses the windows is worth loops of its own.
    fn fission(&self, kernel: &Kernel) -> Option<Fission> {
        let there: Vec<ValueId> = self.windows.iter().map(|window| window.id).collect();
        let map = kernel.axes_of_kind(AxisKind::Map);
        fission::of_results(kernel, self.axis, &map, &there, self.length)
    }

    /// Which partial result is that of the position that is bound.
    fn slot(&self, start: Var) -> Expr {
        Expr::name(self.axis).then(Sub, start)
    }

    /// A loop along the axis, in vectors.
    fn along<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (from, to): (Var, Var),
        body: impl FnOnce(&mut Emitter<'k>),
    ) {
        emitter.repeat_along(&[self.axis], counting(self.axis, from, to, LoopHint::Simd), body);
    }

    /// What the loops combine at each element of the windows of the stretch.
    fn parts<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (kernel, border): (&'k Kernel, Option<&'k Border>),
        windows: &[&Window],
        strided: Strided,
        (start, stop): (Var, Var),
    ) -> Option<Vec<Accumulator>> {
        let Strided { axis, length, stride } = strided;
        let extent = kernel.axis(self.axis).extent;
        let most = if kernel.axis(self.axis).is_argument { self.length } else { self.length.min(extent) };
        let lanes = (most.max(1) - 1) * stride + length;
        let parts = arrays(emitter, kernel, windows, lanes.next_multiple_of(16))?;
        let laid_out = turned::take(emitter);
        emitter.open(&[], false);
        // The windows of all positions go on from that of the first.
        let last = Expr::name(stop).then(Sub, start).then(Sub, 1);
        let all = last.then(Mul, stride).then(Add, length);
        let (count, low, high) = (emitter.fresh("count"), emitter.fresh("low"), emitter.fresh("high"));
        emitter.bind(count, INDEX, all);
        emitter.bind(self.axis, INDEX, Expr::name(start));
        emitter.bind_axes(&[self.axis]);
        let columns = windows[0].guard.as_ref().filter(|_| border.is_some()).and_then(|guard| guard.columns);
        if let Some((first, beyond)) = columns {
            let begun = Expr::name(start).then(Mul, stride);
            for (var, at) in [(low, first), (high, beyond)] {
                let at = if at < 0 { Expr::Int(0) } else { Expr::Int(at as u64).then(Sub, begun.clone()) };
                let at = at.then(Max, 0).then(Min, count);
                emitter.bind(var, INDEX, at);
            }
        }
        let slot = Expr::name(axis);
        let partials = Partials { windows, border, elements: &parts, along: axis, slot: &slot };
        partials.emit(emitter, kernel, &|emitter, kernel, hint, take| {
            let part = |emitter: &mut Emitter<'k>, kernel: &'k Kernel, from: Expr, to: Expr| {
                let body = emitter.pinned(|emitter| {
                    emitter.using(kernel, |emitter| {
                        emitter.repeat_along(&[axis], counting(axis, from, to, hint), take);
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

    /// The results of windows at all positions of the stretch.
    fn combine<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (kernel, border): (&'k Kernel, Option<&'k Border>),
        windows: &[&Window],
        (start, stop): (Var, Var),
    ) -> Option<Vec<Accumulator>> {
        let sliding = windows[0].sliding;
        let own = sliding.map_or(1, |(_, length)| length);
        let elements = arrays(emitter, kernel, windows, (self.length + own - 1).next_multiple_of(16))?;
        let laid_out = sliding.map(|_| turned::take(emitter)).unwrap_or_default();
        // Windows of one element along the axis that they slide along, also those that begin in the last window.
        emitter.open(&[], false);
        if let Some((axis, _)) = sliding {
            emitter.bind(axis, INDEX, Expr::Int(0));
            emitter.bind_axes(&[axis]);
        }
        let slot = self.slot(start);
        let to = Expr::name(stop).then(Add, own - 1);
        let partials = Partials { windows, border, elements: &elements, along: self.axis, slot: &slot };
        partials.emit(emitter, kernel, &|emitter, _, hint, take| {
            emitter.repeat_along(&[self.axis], counting(self.axis, start, to.clone(), hint), take);
        });
        let body = emitter.close();
        emitter.push(Stmt::Block(body));
        emitter.staged.extend(laid_out);
        let count = Expr::name(stop).then(Sub, start);
        let results = match sliding {
            None => elements,
            Some((_, length)) => self.slide(emitter, kernel, windows, elements, length, &count)?,
        };
        if results.iter().any(Accumulator::settles) {
            of_lanes(emitter, count, |emitter, lane| {
                results.iter().for_each(|result| result.settle(emitter, Some(lane)));
            });
        }
        Some(results)
    }

    /// Makes windows of `length` neighbours of the partial results.
    fn slide<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        windows: &[&Window],
        neighbours: Vec<Accumulator>,
        length: u64,
        count: &Expr,
    ) -> Option<Vec<Accumulator>> {
        if length.is_power_of_two() {
            (0..length.ilog2()).for_each(|digit| double(emitter, &neighbours, 1 << digit, length, count));
            return Some(neighbours);
        }
        let results = arrays(emitter, kernel, windows, self.length)?;
        let mut reach = 0;
        for digit in 0..=length.ilog2() {
            let own = 1u64 << digit;
            if length & own != 0 {
                of_lanes(emitter, count.clone(), |emitter, lane| {
                    let at = lane.clone().then(Add, reach);
                    for (result, neighbours) in results.iter().zip(&neighbours) {
                        match reach {
                            0 => result.copy(emitter, Some(lane), &|part| neighbours.part(part, Some(lane))),
                            _ => result.merge(emitter, Some(lane), &|part| neighbours.part(part, Some(&at))),
                        }
                    }
                });
                reach += own;
            }
            if reach < length {
                double(emitter, &neighbours, own, length, count);
            }
        }
        Some(results)
    }
}

/// Whether a condition is needed by what the kernel stores without one of these values.
fn has_others(kernel: &Kernel, is_one: impl Fn(ValueId) -> bool) -> bool {
    let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
    let mut seen = vec![false; kernel.values.len()];
    while let Some(id) = pending.pop() {
        if is_one(id) || std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        if matches!(kernel.value(id).op, ValueOp::InBounds(_)) {
            return true;
        }
        pending.extend(kernel.operands(&kernel.value(id).op));
    }
    false
}

/// Arrays for partial results, in which nothing is yet.
fn arrays(
    emitter: &mut Emitter,
    kernel: &Kernel,
    windows: &[&Window],
    lanes: u64,
) -> Option<Vec<Accumulator>> {
    windows.iter().map(|window| Accumulator::undefined(emitter, kernel, window.id, Some(lanes))).collect()
}

/// A loop over so many first elements of such arrays, beyond which nothing is read any more.
fn of_lanes<'k>(emitter: &mut Emitter<'k>, count: Expr, body: impl FnOnce(&mut Emitter<'k>, &Expr)) {
    emitter.repeat(counting(Var::Lane, 0, count, LoopHint::SimdSpilling), |emitter| {
        body(emitter, &Expr::name(Var::Lane));
    });
}

/// Makes partial results of `own` neighbours into those of twice as many. Each takes one that comes later, which in order
/// and in vectors is read before it changes.
fn double(emitter: &mut Emitter, neighbours: &[Accumulator], own: u64, length: u64, count: &Expr) {
    of_lanes(emitter, count.clone().then(Add, length - 2 * own), |emitter, lane| {
        let other = lane.clone().then(Add, own);
        for neighbours in neighbours {
            neighbours.merge(emitter, Some(lane), &|part| neighbours.part(part, Some(&other)));
        }
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
