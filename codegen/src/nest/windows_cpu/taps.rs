//! Windows whose elements have weights, or are else computed anew at each place of a window, as those of filters: nothing that one
//! combines is its neighbour's, but what it reads is.
//!
//! Some results at a time have their partial results in registers while a loop goes through the places of the window. What these
//! read is laid out before, once for all windows that have it: so a border is decided there, and no load of the loop has a condition.

use super::super::INDEX;
use super::super::accumulate::{Accumulator, mul_add, set};
use super::super::emitter::Emitter;
use super::super::loops::{counting, stepping};
use super::super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::super::stmt::{Expr, LoopHint, Stmt};
use super::super::turned;
use super::super::variable::Var;
use super::window::Window;
use super::{Windows, arrays, of_lanes};
use crate::Scalar;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::Taps;

/// Bytes of the partial results of a block of results: eight vectors of 32 bytes.
const BYTES: u64 = 256;

/// Lanes of the widest vectors.
const VECTOR: u64 = 16;

/// Elements that are laid out together: what a window reads beside them has loops around.
const MOST_LAID_OUT: u64 = 1 << 12;

/// A block of windows that is computed.
struct Block<'a, 'k> {
    kernel: &'k Kernel,
    taps: &'a Taps,
    axis: AxisId,
    lanes: u64,
    /// The other axes of the windows, of which the last ones are laid out together.
    laid_out: &'a [AxisId],
    /// The first window, and how many.
    first: Var,
    count: Var,
}

/// Room for the elements that so many windows have, at every `step`-th of which one begins.
fn room(taps: &Taps, lanes: u64) -> u64 {
    (lanes + taps.reach().div_ceil(taps.step) + 1).next_multiple_of(VECTOR)
}

impl Windows {
    /// The results of windows at all positions of the stretch.
    pub(super) fn tapped<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        (windows, taps): (&[&Window], &Taps),
        (start, stop): (Var, Var),
    ) -> Option<Vec<Accumulator>> {
        let lanes = self.lanes(kernel, windows);
        let results = arrays(emitter, kernel, windows, self.length.next_multiple_of(lanes))?;
        let laid_out = turned::take(emitter);
        let (first, count) = (emitter.fresh("block"), emitter.fresh("count"));
        let others: Vec<AxisId> =
            windows[0].loops.iter().copied().filter(|&axis| axis != taps.along).collect();
        let mut elements = room(taps, lanes) * taps.step;
        let is_together = |&&axis: &&AxisId| {
            elements = elements.saturating_mul(kernel.axis(axis).extent);
            elements <= MOST_LAID_OUT
        };
        let together = others.iter().rev().take_while(is_together).count();
        let (around, within) = others.split_at(others.len() - together);
        let block = Block { kernel, taps, axis: self.axis, lanes, laid_out: within, first, count };
        let mut is_complete = true;
        emitter.repeat(stepping(first, (start, stop), lanes, LoopHint::None), |emitter| {
            emitter.bind(count, INDEX, Expr::name(stop).then(Sub, first).then(Min, lanes));
            let sums = windows.iter().map(|window| Accumulator::of(emitter, kernel, window.id, Some(lanes)));
            let Some(sums) = sums.collect::<Option<Vec<_>>>() else {
                is_complete = false;
                return;
            };
            let own = block.lay_out_own(emitter, windows);
            around.iter().for_each(|&axis| emitter.open(&[axis], false));
            block.combine(emitter, (windows, &sums), own);
            around.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::None));
            let at = Expr::name(first).then(Sub, start);
            of_whole_lanes(emitter, &[], lanes, |emitter, lane| {
                let at = at.clone().then(Add, lane.clone());
                for (result, sum) in results.iter().zip(&sums) {
                    result.copy(emitter, Some(&at), &|part| sum.part(part, Some(lane)));
                }
            });
        });
        emitter.staged.extend(laid_out);
        if results.iter().any(Accumulator::settles) {
            of_lanes(emitter, Expr::name(stop).then(Sub, start), |emitter, lane| {
                results.iter().for_each(|result| result.settle(emitter, Some(lane)));
            });
        }
        is_complete.then_some(results)
    }

    /// Windows of a block.
    fn lanes(&self, kernel: &Kernel, windows: &[&Window]) -> u64 {
        let bytes = |window: &&Window| match &kernel.value(window.id).op {
            ValueOp::Reduce { op, operand, .. } => {
                kernel.value(*operand).dtype.compute().size() as u64 * op.parts().len() as u64
            }
            _ => 0,
        };
        let bytes = windows.iter().map(bytes).sum::<u64>().next_power_of_two();
        (BYTES / bytes).clamp(VECTOR, self.length.next_multiple_of(VECTOR))
    }
}

/// A loop over so many lanes, all of which there are.
fn of_whole_lanes<'k>(
    emitter: &mut Emitter<'k>,
    axes: &[AxisId],
    lanes: u64,
    body: impl FnOnce(&mut Emitter<'k>, &Expr),
) {
    let around = counting(Var::Lane, 0, lanes, LoopHint::Simd);
    emitter.repeat_along(axes, around, |emitter| body(emitter, &Expr::name(Var::Lane)));
}

impl<'k> Block<'_, 'k> {
    fn room(&self) -> u64 {
        room(self.taps, self.lanes)
    }

    /// Elements of a line, or of those of one place in a step, that all lanes read.
    fn read(&self) -> u64 {
        self.lanes + self.taps.reach() / self.taps.step
    }

    /// Arrays of what differs among windows alone.
    fn lay_out_own(&self, emitter: &mut Emitter<'k>, windows: &[&Window]) -> Vec<(ValueId, Expr)> {
        let own = all_of(windows, |taps| &taps.own);
        if own.is_empty() {
            return Vec::new();
        }
        let slot = Expr::name(self.axis).then(Sub, self.first);
        let elements = emitter.elements_of(&own, "own", self.lanes, &slot);
        let end = self.first.then(Add, self.count);
        let around = counting(self.axis, self.first, end, LoopHint::SimdSpilling);
        emitter.repeat_along(&[self.axis], around, |emitter| emitter.leave(&elements));
        let own = all_at(&elements, &Expr::name(Var::Lane));
        self.fill(emitter, &own, (Expr::name(self.count), self.lanes), &Expr::Int(0));
        own
    }

    /// What is beyond the last window of a block is never stored, but it is computed with.
    fn fill(
        &self,
        emitter: &mut Emitter<'k>,
        arrays: &[(ValueId, Expr)],
        (from, to): (Expr, u64),
        line: &Expr,
    ) {
        let k = emitter.fresh("k");
        emitter.repeat(counting(k, from, to, LoopHint::Simd), |emitter| {
            for (id, element) in arrays {
                let zero = Expr::Literal(Scalar::from_i64(self.kernel.value(*id).dtype.compute(), 0));
                emitter.push(set(at(element, line.clone().then(Add, k)), zero));
            }
        });
    }

    /// The number of the line that is laid out for some positions of the other axes, as its first element.
    fn line(&self) -> Expr {
        let number = self.laid_out.iter().fold(Expr::Int(0), |line, &axis| {
            mul_add(line, Expr::Int(self.kernel.axis(axis).extent), Expr::name(axis))
        });
        number.then(Mul, self.room() * self.taps.step)
    }

    /// Lays out what the windows read, and goes through their places.
    fn combine(
        &self,
        emitter: &mut Emitter<'k>,
        (windows, sums): (&[&Window], &[Accumulator]),
        own: Vec<(ValueId, Expr)>,
    ) {
        let images = all_of(windows, |taps| &taps.images);
        let lines: u64 = self.laid_out.iter().map(|&axis| self.kernel.axis(axis).extent).product();
        let room = self.room() * self.taps.step * lines;
        let arrays = emitter.elements_of(&images, "image", room, &Expr::Int(0));
        self.laid_out.iter().for_each(|&axis| emitter.open(&[axis], false));
        self.lay_out(emitter, &arrays);
        self.laid_out.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::None));
        let Taps { along, step, spread, .. } = *self.taps;
        self.laid_out.iter().for_each(|&axis| emitter.open(&[axis], false));
        emitter.open(&[along], false);
        let place = Expr::name(along);
        let place = match step {
            1 => place.then(Mul, spread),
            _ => mul_add(place.clone().then(Rem, step), self.room(), place.then(Div, step)),
        };
        let first = self.line().then(Add, place);
        of_whole_lanes(emitter, &[self.axis], self.lanes, |emitter, lane| {
            let slot = first.clone().then(Add, lane.clone());
            emitter.find(&all_at(&arrays, &slot));
            emitter.find(&own);
            windows.iter().zip(sums).for_each(|(window, sum)| sum.take(emitter, window.id, Some(lane), None));
        });
        emitter.close_loop(along, LoopHint::None);
        self.laid_out.iter().rev().for_each(|&axis| emitter.close_loop(axis, LoopHint::None));
    }

    /// One line of what the windows read.
    fn lay_out(&self, emitter: &mut Emitter<'k>, arrays: &[(ValueId, Expr)]) {
        if self.taps.step == 1 {
            let count = Expr::name(self.count).then(Add, self.taps.reach());
            let slot = self.line().then(Add, Expr::name(self.axis).then(Sub, self.first));
            let body = emitter.scope(&[self.taps.along], |emitter| {
                emitter.bind(self.taps.along, INDEX, Expr::Int(0));
                let end = self.first.then(Add, count.clone());
                let around = counting(self.axis, self.first, end, LoopHint::SimdSpilling);
                emitter.repeat_along(&[self.axis], around, |emitter| emitter.leave(&all_at(arrays, &slot)));
                self.fill(emitter, arrays, (count, self.read()), &self.line());
            });
            return emitter.push(Stmt::Block(body));
        }
        for phase in 0..self.taps.step {
            let body = emitter.scope(&[self.axis], |emitter| self.lay_out_phase(emitter, arrays, phase));
            emitter.push(Stmt::Block(body));
        }
    }

    /// The elements at which windows begin, those beside them, and so on, each in a line of its own.
    fn lay_out_phase(&self, emitter: &mut Emitter<'k>, arrays: &[(ValueId, Expr)], phase: u64) {
        let Taps { along, step, .. } = *self.taps;
        let room = self.room();
        emitter.bind(self.axis, INDEX, self.first);
        let last = Expr::name(self.count).then(Sub, 1).then(Mul, step).then(Add, self.taps.reach());
        let count = emitter.fresh("elements");
        emitter.bind(count, INDEX, last.then(Add, step - phase).then(Div, step));
        let line = self.line().then(Add, phase * room);
        let k = emitter.fresh("k");
        emitter.repeat_along(&[along], counting(k, 0, count, LoopHint::SimdSpilling), |emitter| {
            emitter.bind(along, INDEX, k.then(Mul, step).then(Add, phase));
            emitter.leave(&all_at(arrays, &line.clone().then(Add, k)));
        });
        self.fill(emitter, arrays, (Expr::name(count), self.read()), &line);
    }
}

/// The element of the same array at another place.
fn at(element: &Expr, slot: Expr) -> Expr {
    match element {
        Expr::Element(array, _) => Expr::element(*array, slot),
        other => other.clone(),
    }
}

fn all_at(elements: &[(ValueId, Expr)], slot: &Expr) -> Vec<(ValueId, Expr)> {
    elements.iter().map(|(id, element)| (*id, at(element, slot.clone()))).collect()
}

/// What all of the windows have of something.
fn all_of(windows: &[&Window], of: impl Fn(&Taps) -> &Vec<ValueId>) -> Vec<ValueId> {
    let mut all: Vec<ValueId> =
        windows.iter().filter_map(|window| window.taps.as_ref()).flat_map(of).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}
