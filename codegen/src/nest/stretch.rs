//! Scans and recurrences along the innermost axis whose elements are costly: some of them are computed at a time, in
//! vector lanes, then scanned in order, and then what follows from the results is computed in lanes again. The loop in
//! order is the one that no compiler vectorises.

mod registers;

use rustc_hash::FxHashSet;

use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::loops::counting;
use super::scan::{Carries, Scans};
use super::stmt::Arithmetic::{Add, Mul, Sub};
use super::stmt::{Expr, LoopHint};
use super::variable::Var;
use crate::DType;
use crate::ir::{BufferId, Kernel, Store, ValueId, ValueOp};
use crate::schedule::{self, ROWS_IN_LANES, are_in_registers, in_order, rows_together, taken_in_order};

/// Positions of a stretch: those of four rows, of a few values each, stay in the nearest cache.
const LENGTH: u64 = 256;

/// The same of rows that are laid down in lanes.
const LENGTH_IN_LANES: u64 = 64;

/// Shorter axes are not worth it, unless what is computed is.
const SHORTEST: u64 = 16;

/// Shorter ones never are: a vector of so few elements takes as long as these.
const SHORTEST_COSTLY: u64 = 4;

/// Simple operations that are worth it on short axes: 20,001 rows of 7 with an exponential took 0.12 ms, and 0.23 in order; with a
/// quotient 0.075 and 0.065.
const COSTLY: f64 = 12.0;

/// Arrays at most: 64 KiB of the stack, with four rows.
const MOST: usize = 16;

/// Simple operations that the loop in order hides: it waits for the result before it anyway.
const HIDDEN: f64 = 2.0;

/// What of a loop in order is computed apart from it.
pub(super) struct Stretches {
    /// What the loop takes, computed before it.
    inputs: Vec<ValueId>,
    /// What the loop leaves to the loop after it; empty if it stores by itself.
    results: Vec<ValueId>,
}

/// One loop in order, or several that go on together.
pub(super) struct InOrder<'a, 'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) scans: &'a Scans,
    pub(super) running: &'a [Accumulator],
    pub(super) carries: Option<&'a Carries<'k>>,
    /// How many loops there are, and the number of one.
    pub(super) lanes: Option<(u64, &'a Expr)>,
    /// Where the running results of one are.
    pub(super) lane: Option<&'a Expr>,
    /// Stores at each position.
    pub(super) stores: &'a [&'k Store],
    /// The variable that counts positions.
    pub(super) step: Var,
    /// Binds the axis from it.
    pub(super) bind: &'a dyn Fn(&mut Emitter<'k>),
    /// Whether all loops are at the same position.
    pub(super) is_one_position: bool,
    /// Repeats what it is given for each of the loops.
    pub(super) for_each: ForEach<'a, 'k>,
}

/// Repeats something for each of several loops that go on together.
pub(super) type ForEach<'a, 'k> = &'a dyn Fn(&mut Emitter<'k>, LoopHint, &dyn Fn(&mut Emitter<'k>));

impl Stretches {
    /// What is worth an array; `None` if nothing is.
    pub(super) fn of(kernel: &Kernel, scans: &Scans) -> Option<Stretches> {
        let extent = kernel.axis(scans.axis).extent;
        if !scans.is_innermost || extent < SHORTEST_COSTLY {
            return None;
        }
        let varies = |id: ValueId| kernel.value(id).axes.contains(&scans.axis);
        let is_in_order = in_order(kernel);
        let (along, _) = scans.stores(kernel);
        let mut inputs: Vec<ValueId> = Vec::new();
        let mut results: Vec<ValueId> = Vec::new();
        let mut after: Vec<ValueId> = along.iter().map(|store| store.value).collect();
        let mut seen = FxHashSet::default();
        let mut epilogue: f64 = along.iter().map(|store| conversion(kernel, store.buffer)).sum();
        let mut prologues = 0.0;
        while let Some(id) = after.pop() {
            if !seen.insert(id) || !varies(id) && !is_in_order[id.index()] {
                continue;
            }
            match is_in_order[id.index()] {
                true => results.push(id),
                false => {
                    epilogue += operations(kernel, id);
                    after.extend(kernel.operands(&kernel.value(id).op));
                }
            }
        }
        for (number, value) in kernel.values.iter().enumerate().filter(|(number, _)| is_in_order[*number]) {
            let is_carry = matches!(kernel.values[number].op, ValueOp::Carry { .. });
            for id in kernel.operands(&value.op) {
                if is_carry || is_in_order[id.index()] || !varies(id) || inputs.contains(&id) {
                    continue;
                }
                let operations = prologue(kernel, id, &varies);
                if operations > HIDDEN {
                    prologues += operations;
                    inputs.push(id);
                }
            }
        }
        if rows_together(kernel) == ROWS_IN_LANES {
            return Some(Stretches::in_lanes(kernel, results));
        }
        if extent < SHORTEST && prologues + epilogue < COSTLY {
            return None;
        }
        if epilogue <= HIDDEN {
            results.clear();
        }
        results.sort_unstable();
        (1..=MOST).contains(&(inputs.len() + results.len())).then_some(Stretches { inputs, results })
    }

    /// All that the loop in order takes and leaves: rows are laid down in lanes, which find neither in memory.
    fn in_lanes(kernel: &Kernel, results: Vec<ValueId>) -> Stretches {
        Stretches { inputs: taken_in_order(kernel), results }
    }

    /// The loops from step `from` to `to`.
    fn emit<'k>(&self, emitter: &mut Emitter<'k>, of: &InOrder<'_, 'k>, from: Expr, to: &Expr) {
        let stretch = [emitter.fresh("start"), emitter.fresh("stop")];
        let rows = of.lanes.map_or(1, |(lanes, _)| lanes);
        let own = of.lanes.map_or(Expr::Int(0), |(_, lane)| lane.clone().then(Mul, LENGTH));
        let slot = own.then(Add, of.step.then(Sub, stretch[0]));
        let inputs = emitter.elements_of(&self.inputs, "element", rows * LENGTH, &slot);
        let results = emitter.elements_of(&self.results, "result", rows * LENGTH, &slot);
        emitter.stretches(stretch, (from, to), LENGTH, |emitter| {
            if !inputs.is_empty() {
                of.each_row(emitter, &|emitter| {
                    of.along(emitter, stretch, &|emitter| emitter.leave(&inputs));
                });
            }
            emitter.repeat(counting(of.step, stretch[0], stretch[1], LoopHint::None), |emitter| {
                (of.for_each)(emitter, LoopHint::Unroll, &|emitter| {
                    of.bind_step(emitter);
                    emitter.find(&inputs);
                    of.advance(emitter, |emitter| match results.is_empty() {
                        true => of.store(emitter),
                        false => emitter.leave(&results),
                    });
                });
            });
            if !results.is_empty() {
                of.each_row(emitter, &|emitter| {
                    of.along(emitter, stretch, &|emitter| {
                        emitter.find(&inputs);
                        emitter.find(&results);
                        of.store(emitter);
                    });
                });
            }
        });
    }

    /// The same where each lane of vectors goes along a row: what it takes is laid down in arrays, the lanes of a step side
    /// by side, and what it leaves is taken up from there.
    fn emit_in_lanes<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        of: &InOrder<'_, 'k>,
        lane: &Expr,
        from: Expr,
        to: &Expr,
    ) {
        let stretch = [emitter.fresh("start"), emitter.fresh("stop")];
        let place = of.step.then(Sub, stretch[0]);
        let slot = place.clone().then(Mul, ROWS_IN_LANES).then(Add, lane);
        let mut both = |ids: &[ValueId], name: &'static str| {
            let mut arrays = [Vec::new(), Vec::new()];
            for &id in ids {
                arrays[0].extend(emitter.elements_of(&[id], name, ROWS_IN_LANES * LENGTH_IN_LANES, &slot));
                arrays[1].extend(emitter.elements_of(&[id], "line", LENGTH_IN_LANES, &place));
            }
            arrays
        };
        let ([inputs, lines], [results, lines_after]) =
            (both(&self.inputs, "element"), both(&self.results, "result"));
        type Elements = [(ValueId, Expr)];
        let copy = |emitter: &mut Emitter<'k>, to: &Elements, from: &Elements| {
            for ((_, to), (_, from)) in to.iter().zip(from) {
                let along = counting(of.step, stretch[0], stretch[1], LoopHint::None);
                emitter.push(along.of(vec![set(to, from)]));
            }
        };
        emitter.stretches(stretch, (from, to), LENGTH_IN_LANES, |emitter| {
            of.each_row(emitter, &|emitter| {
                of.along(emitter, stretch, &|emitter| emitter.leave(&lines));
                copy(emitter, &inputs, &lines);
            });
            emitter.repeat(counting(of.step, stretch[0], stretch[1], LoopHint::None), |emitter| {
                (of.for_each)(emitter, LoopHint::Simd, &|emitter| {
                    emitter.under(None, |emitter| {
                        emitter.find(&inputs);
                        of.advance(emitter, |emitter| emitter.leave(&results));
                    });
                });
            });
            if of.stores.is_empty() {
                return;
            }
            of.each_row(emitter, &|emitter| {
                copy(emitter, &lines_after, &results);
                of.along(emitter, stretch, &|emitter| {
                    emitter.find(&lines_after);
                    of.store(emitter);
                });
            });
        });
    }
}

impl<'k> InOrder<'_, 'k> {
    /// The loops from step `from` to `to`.
    pub(super) fn emit(&self, emitter: &mut Emitter<'k>, from: Expr, to: Expr) {
        if self.scans.is_innermost && are_in_registers(self.kernel) {
            return self.emit_in_registers(emitter, from, &to);
        }
        match (Stretches::of(self.kernel, self.scans), self.lanes) {
            (Some(stretches), Some((ROWS_IN_LANES, lane))) => {
                stretches.emit_in_lanes(emitter, self, lane, from, &to);
            }
            (Some(stretches), _) => stretches.emit(emitter, self, from, &to),
            (None, _) => emitter.repeat(counting(self.step, from, to, LoopHint::None), |emitter| {
                if self.is_one_position {
                    self.bind_step(emitter);
                }
                (self.for_each)(emitter, LoopHint::Unroll, &|emitter| {
                    if !self.is_one_position {
                        self.bind_step(emitter);
                    }
                    if !self.scans.is_innermost {
                        self.scans.prefetch_next(emitter, self.kernel);
                    }
                    self.advance(emitter, |emitter| self.store(emitter));
                });
            }),
        }
    }

    fn bind_step(&self, emitter: &mut Emitter<'k>) {
        (self.bind)(emitter);
        emitter.bind_axes(&[self.scans.axis]);
    }

    /// One step, with what is stored or left of it.
    fn advance(&self, emitter: &mut Emitter<'k>, store: impl FnOnce(&mut Emitter)) {
        if let Some(carries) = self.carries {
            carries.begin_step(emitter, self.lane);
        }
        self.scans.advance(emitter, self.kernel, self.running, self.lane, None);
        match self.carries {
            Some(carries) => carries.end_step(emitter, self.lane, store),
            None => store(emitter),
        }
    }

    fn store(&self, emitter: &mut Emitter) {
        self.stores.iter().for_each(|store| emitter.store(store));
    }

    /// Each of the loops by itself: what is known of a row alone is not the same in those of the next one.
    fn each_row(&self, emitter: &mut Emitter<'k>, body: &dyn Fn(&mut Emitter<'k>)) {
        (self.for_each)(emitter, LoopHint::None, &|emitter| emitter.under(None, |emitter| body(emitter)));
    }

    /// A stretch in lanes.
    fn along(&self, emitter: &mut Emitter<'k>, [start, stop]: [Var; 2], body: &dyn Fn(&mut Emitter<'k>)) {
        emitter.repeat(counting(self.step, start, stop, LoopHint::Simd), |emitter| {
            self.bind_step(emitter);
            body(emitter);
        });
    }
}

/// Simple operations for one element of a value and of what it follows from, as far as that varies along the axis.
fn prologue(kernel: &Kernel, id: ValueId, varies: &dyn Fn(ValueId) -> bool) -> f64 {
    kernel.down_from([id]).into_iter().filter(|&id| varies(id)).map(|id| operations(kernel, id)).sum()
}

/// Those of a conversion from or to what a buffer holds, in the loop in order: without vectors.
fn conversion(kernel: &Kernel, buffer: BufferId) -> f64 {
    match kernel.buffers[buffer.index()].dtype {
        DType::F16 => 10.0,
        DType::BF16 => 3.0,
        _ => 0.0,
    }
}

/// Simple operations of one evaluation. Loads are free but for conversions.
fn operations(kernel: &Kernel, id: ValueId) -> f64 {
    match &kernel.value(id).op {
        ValueOp::Load { buffer, .. } => conversion(kernel, *buffer),
        ValueOp::Position(_) => 0.0,
        _ => schedule::operations(kernel, id),
    }
}
