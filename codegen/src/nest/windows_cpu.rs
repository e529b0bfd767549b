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
use super::stmt::Arithmetic::{Add, Min, Sub};
use super::stmt::{Expr, LoopHint, Step, Stmt};
use super::variable::Var;
use super::walk::count_loop;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::schedule::{STACK_BYTES, sliding_axis};

/// Results of a stretch, at least: partial results of so many stay in the nearest cache.
const LENGTH: u64 = 512;

/// Shorter windows are unrolled in the lanes of the loop that uses them.
const LONGEST_UNROLLED: u64 = 25;

/// Sliding windows from this length on are made of each other.
const SHORTEST_SLIDING: u64 = 8;

/// A reduction over a window.
struct Window {
    id: ValueId,
    /// Reduced axes that are loops.
    loops: Vec<AxisId>,
    /// The reduced axis along which windows slide by one element, and its length.
    sliding: Option<(AxisId, u64)>,
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
        let windows: Vec<Window> = below.into_iter().filter_map(|id| window(kernel, axis, id)).collect();
        let longest = windows.iter().filter_map(|window| window.sliding).map(|(_, length)| length).max();
        let length = LENGTH.max(longest.map_or(0, |longest| longest.next_power_of_two()));
        let bytes = |window: &Window| {
            let reach = window.sliding.map_or(0, |(_, length)| length + length.min(LENGTH));
            (length + reach) * 3 * kernel.value(window.id).dtype.compute().size() as u64
        };
        let is_small = windows.iter().map(bytes).sum::<u64>() <= STACK_BYTES * 2;
        (!windows.is_empty() && is_small).then_some(Windows { axis, windows, length })
    }

    /// The loop from `from` to `to`.
    pub(super) fn emit<'k>(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, from: Expr, to: Expr) {
        let (start, stop) = (emitter.fresh("start"), emitter.fresh("stop"));
        emitter.open(&[], false);
        let end = Expr::name(start).then(Add, Expr::Int(self.length)).then(Min, to.clone());
        emitter.bind(stop, INDEX, end);
        emitter.using(kernel, |emitter| {
            let results: Vec<Accumulator> = self
                .windows
                .iter()
                .filter_map(|window| self.combine(emitter, kernel, window, start, stop))
                .collect();
            let slot = self.slot(start);
            let body = self.along(emitter, Expr::name(start), Expr::name(stop), |emitter| {
                for (window, result) in self.windows.iter().zip(&results) {
                    emitter.define(window.id, result.result(Some(&slot)));
                }
                kernel.stores.iter().for_each(|store| emitter.store(store));
            });
            emitter.push(body);
        });
        let body = emitter.close();
        let step = Step::Add(Expr::Int(self.length));
        emitter.push(Stmt::For { var: start, from, to, step, hint: LoopHint::None, body });
    }

    /// Which partial result is that of the position that is bound.
    fn slot(&self, start: Var) -> Expr {
        Expr::name(self.axis).then(Sub, Expr::name(start))
    }

    /// A loop along the axis, in vectors.
    fn along<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        from: Expr,
        to: Expr,
        body: impl FnOnce(&mut Emitter<'k>),
    ) -> Stmt {
        emitter.open(&[self.axis], false);
        body(emitter);
        let body = emitter.close();
        count_loop(self.axis, from, to, LoopHint::Simd, body)
    }

    /// The results of one window at all positions of the stretch.
    fn combine<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        window: &Window,
        start: Var,
        stop: Var,
    ) -> Option<Accumulator> {
        let own = window.sliding.map_or(1, |(_, length)| length);
        let lanes = (self.length + own - 1).next_multiple_of(16);
        let elements = Accumulator::of(emitter, kernel, window.id, Some(lanes))?;
        // Windows of one element along the axis that they slide along, also those that begin in the last window.
        for &axis in &window.loops {
            emitter.open(&[axis], false);
        }
        emitter.open(&[], false);
        if let Some((axis, _)) = window.sliding {
            emitter.bind(axis, INDEX, Expr::Int(0));
            emitter.bind_axes(&[axis]);
        }
        let slot = self.slot(start);
        let to = Expr::name(stop).then(Add, Expr::Int(own - 1));
        let body = self.along(emitter, Expr::name(start), to, |emitter| {
            elements.take(emitter, window.id, Some(&slot), None);
        });
        emitter.push(body);
        let body = emitter.close();
        match window.loops.is_empty() {
            true => emitter.push(Stmt::Block(body)),
            false => body.into_iter().for_each(|stmt| emitter.push(stmt)),
        }
        for &axis in window.loops.iter().rev() {
            emitter.close_loop(axis, LoopHint::None);
        }
        let count = Expr::name(stop).then(Sub, Expr::name(start));
        let result = match window.sliding {
            None => elements,
            Some((_, length)) => self.slide(emitter, kernel, window, elements, length, &count)?,
        };
        if result.settles() {
            emitter.open(&[], false);
            result.settle(emitter, Some(&Expr::name(Var::Lane)));
            let body = emitter.close();
            emitter.push(count_loop(Var::Lane, Expr::Int(0), count, LoopHint::Simd, body));
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
                emitter.open(&[], false);
                let at = lane.clone().then(Add, Expr::Int(reach));
                match reach {
                    0 => (0..result.parts.len()).for_each(|part| {
                        emitter.push(set(result.part(part, Some(&lane)), neighbours.part(part, Some(&lane))));
                    }),
                    _ => result.merge(emitter, Some(&lane), &|part| neighbours.part(part, Some(&at))),
                }
                let body = emitter.close();
                emitter.push(count_loop(Var::Lane, Expr::Int(0), count.clone(), LoopHint::Simd, body));
                reach += own;
            }
            if reach < length {
                double(emitter, &neighbours, own, length, count);
            }
        }
        Some(result)
    }
}

/// Makes partial results of `own` neighbours into those of twice as many. Each takes one that comes later, which in order
/// and in vectors is read before it changes.
fn double(emitter: &mut Emitter, neighbours: &Accumulator, own: u64, length: u64, count: &Expr) {
    let lane = Expr::name(Var::Lane);
    let other = lane.clone().then(Add, Expr::Int(own));
    emitter.open(&[], false);
    neighbours.merge(emitter, Some(&lane), &|part| neighbours.part(part, Some(&other)));
    let body = emitter.close();
    let to = count.clone().then(Add, Expr::Int(length - 2 * own));
    emitter.push(count_loop(Var::Lane, Expr::Int(0), to, LoopHint::Simd, body));
}

/// The reduction as a window of the loop over `axis`, if it is worth it.
fn window(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<Window> {
    let value = kernel.value(id);
    let ValueOp::Reduce { axes, operand, .. } = &value.op else { return None };
    let is_free = value.axes.iter().all(|axis| kernel.axis(*axis).kind == AxisKind::Map);
    if !is_free || !value.axes.contains(&axis) || axes.iter().any(|&axis| kernel.axis(axis).is_argument) {
        return None;
    }
    let is_inner = |id: &ValueId| {
        matches!(kernel.value(*id).op, ValueOp::Reduce { .. }) && kernel.value(*id).axes.contains(&axis)
    };
    if kernel.down_from([*operand]).iter().any(is_inner) {
        return None;
    }
    let positions: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
    let sliding = sliding_axis(kernel, axis, id).filter(|&(_, length)| length >= SHORTEST_SLIDING);
    if sliding.is_none() && positions <= LONGEST_UNROLLED {
        return None;
    }
    let loops = axes.iter().copied().filter(|&own| sliding.is_none_or(|(axis, _)| axis != own)).collect();
    Some(Window { id, loops, sliding })
}
