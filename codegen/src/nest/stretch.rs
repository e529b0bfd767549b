//! Scans and recurrences along the innermost axis whose elements are costly: some of them are computed at a time, in
//! vector lanes, then scanned in order, and then what follows from the results is computed in lanes again. The loop in
//! order is the one that no compiler vectorises.

use rustc_hash::FxHashSet;

use super::INDEX;
use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::scan::{Carries, Scans};
use super::stmt::Arithmetic::{Add, Min, Mul, Sub};
use super::stmt::{Expr, LoopHint, Type};
use super::variable::Var;
use crate::DType;
use crate::ir::{BufferId, Kernel, Store, ValueId, ValueOp};
use crate::schedule::{self, ROWS_IN_LANES, rows_together};

/// Positions of a stretch: those of four rows, of a few values each, stay in the nearest cache.
const LENGTH: u64 = 256;

/// The same of rows that are laid down in lanes.
const LENGTH_IN_LANES: u64 = 64;

/// Shorter axes are not worth it.
const SHORTEST: u64 = 16;

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
    /// Repeats what it is given for each of the loops.
    pub(super) for_each: ForEach<'a, 'k>,
}

/// Repeats something for each of several loops that go on together.
pub(super) type ForEach<'a, 'k> = &'a dyn Fn(&mut Emitter<'k>, LoopHint, &dyn Fn(&mut Emitter<'k>));

impl Stretches {
    /// What is worth an array; `None` if nothing is.
    pub(super) fn of(kernel: &Kernel, scans: &Scans) -> Option<Stretches> {
        if !scans.is_innermost || kernel.axis(scans.axis).extent < SHORTEST {
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
                let is_costly = || prologue(kernel, id, &varies) > HIDDEN;
                if !is_carry && !is_in_order[id.index()] && varies(id) && !inputs.contains(&id) && is_costly()
                {
                    inputs.push(id);
                }
            }
        }
        if rows_together(kernel) == ROWS_IN_LANES {
            return Some(Stretches::in_lanes(kernel, scans, results));
        }
        if epilogue <= HIDDEN {
            results.clear();
        }
        results.sort_unstable();
        (1..=MOST).contains(&(inputs.len() + results.len())).then_some(Stretches { inputs, results })
    }

    /// All that the scans take and leave: rows are laid down in lanes, which find neither in memory.
    fn in_lanes(kernel: &Kernel, scans: &Scans, results: Vec<ValueId>) -> Stretches {
        let operands = scans.ids.iter().flat_map(|&id| kernel.operands(&kernel.value(id).op));
        let mut inputs: Vec<ValueId> = operands.collect();
        inputs.sort_unstable();
        inputs.dedup();
        Stretches { inputs, results }
    }

    /// The loops from step `from` to `to`.
    pub(super) fn emit<'k>(&self, emitter: &mut Emitter<'k>, of: &InOrder<'_, 'k>, from: Expr, to: Expr) {
        if let Some((ROWS_IN_LANES, lane)) = of.lanes {
            return self.emit_in_lanes(emitter, of, lane, from, to);
        }
        let rows = of.lanes.map_or(1, |(lanes, _)| lanes);
        let array = |emitter: &mut Emitter<'k>, id: ValueId, name: &'static str| {
            let name = emitter.fresh(name);
            (id, emitter.array(name, Type::Register(of.kernel.value(id).dtype), rows * LENGTH))
        };
        let inputs: Vec<(ValueId, Var)> =
            self.inputs.iter().map(|&id| array(emitter, id, "element")).collect();
        let results: Vec<(ValueId, Var)> =
            self.results.iter().map(|&id| array(emitter, id, "result")).collect();
        let (start, stop) = (emitter.fresh("start"), emitter.fresh("stop"));
        let own = match of.lanes {
            Some((_, lane)) => lane.clone().then(Mul, LENGTH),
            None => Expr::Int(0),
        };
        let slot = own.then(Add, Expr::name(of.step).then(Sub, start));
        let place = |array: &Var| Expr::element(array, slot.clone());
        let lane = of.lane;
        let (first, last) = (Expr::name(start), Expr::name(stop));
        emitter.repeat(stepping(start, (from, &to), LENGTH, LoopHint::None), |emitter| {
            let end = Expr::name(start).then(Add, LENGTH).then(Min, to.clone());
            emitter.bind(stop, INDEX, end);
            let in_lanes = |emitter: &mut Emitter<'k>, body: &dyn Fn(&mut Emitter<'k>)| {
                (of.for_each)(emitter, LoopHint::None, &|emitter| {
                    // What is known of a row alone is not the same in the loops of the next one.
                    emitter.under(None, |emitter| {
                        let (first, last) = (first.clone(), last.clone());
                        emitter.repeat(counting(of.step, first, last, LoopHint::Simd), |emitter| {
                            (of.bind)(emitter);
                            emitter.bind_axes(&[of.scans.axis]);
                            body(emitter);
                        });
                    });
                });
            };
            if !inputs.is_empty() {
                in_lanes(emitter, &|emitter| {
                    for (id, name) in &inputs {
                        let value = emitter.value(*id);
                        emitter.push(set(place(name), value));
                    }
                });
            }
            emitter.repeat(counting(of.step, first.clone(), last.clone(), LoopHint::None), |emitter| {
                (of.for_each)(emitter, LoopHint::Unroll, &|emitter| {
                    (of.bind)(emitter);
                    emitter.bind_axes(&[of.scans.axis]);
                    inputs.iter().for_each(|(id, name)| emitter.define(*id, place(name)));
                    if let Some(carries) = of.carries {
                        carries.begin_step(emitter, lane);
                    }
                    of.scans.advance(emitter, of.kernel, of.running, lane, None);
                    let store = |emitter: &mut Emitter| match results.is_empty() {
                        true => of.stores.iter().for_each(|store| emitter.store(store)),
                        false => {
                            for (id, name) in &results {
                                let value = emitter.value(*id);
                                emitter.push(set(place(name), value));
                            }
                        }
                    };
                    match of.carries {
                        Some(carries) => carries.end_step(emitter, lane, store),
                        None => store(emitter),
                    }
                });
            });
            if !results.is_empty() {
                in_lanes(emitter, &|emitter| {
                    inputs.iter().chain(&results).for_each(|(id, name)| emitter.define(*id, place(name)));
                    of.stores.iter().for_each(|store| emitter.store(store));
                });
            }
        });
    }
}

impl Stretches {
    /// The same where each lane of vectors goes along a row: what it takes is laid down in arrays, the lanes of a step side
    /// by side, and what it leaves is taken up from there.
    fn emit_in_lanes<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        of: &InOrder<'_, 'k>,
        lane: &Expr,
        from: Expr,
        to: Expr,
    ) {
        let array = |emitter: &mut Emitter<'k>, id: ValueId, name: &'static str, length: u64| {
            let name = emitter.fresh(name);
            (id, emitter.array(name, Type::Register(of.kernel.value(id).dtype), length))
        };
        let mut arrays = |ids: &[ValueId], names: [&'static str; 2]| -> Vec<[(ValueId, Var); 2]> {
            let both = |&id: &ValueId| {
                [
                    array(emitter, id, names[0], ROWS_IN_LANES * LENGTH_IN_LANES),
                    array(emitter, id, names[1], LENGTH_IN_LANES),
                ]
            };
            ids.iter().map(both).collect()
        };
        let inputs = arrays(&self.inputs, ["element", "line"]);
        let results = arrays(&self.results, ["result", "line"]);
        let (start, stop) = (emitter.fresh("start"), emitter.fresh("stop"));
        let (first, last) = (Expr::name(start), Expr::name(stop));
        let place = Expr::name(of.step).then(Sub, first.clone());
        let slot = place.clone().then(Mul, ROWS_IN_LANES).then(Add, lane.clone());
        let along = |emitter: &mut Emitter<'k>, hint: LoopHint, body: &dyn Fn(&mut Emitter<'k>)| {
            emitter.repeat(counting(of.step, first.clone(), last.clone(), hint), |emitter| {
                (of.bind)(emitter);
                emitter.bind_axes(&[of.scans.axis]);
                body(emitter);
            });
        };
        let copy = |emitter: &mut Emitter<'k>, to: Expr, from: Expr| {
            let body = vec![set(to, from)];
            emitter.push(counting(of.step, first.clone(), last.clone(), LoopHint::None).of(body));
        };
        // What is known of a row alone is not the same in the loops of the next one.
        let each_row = |emitter: &mut Emitter<'k>, body: &dyn Fn(&mut Emitter<'k>)| {
            (of.for_each)(emitter, LoopHint::None, &|emitter| {
                emitter.under(None, |emitter| {
                    body(emitter);
                });
            });
        };
        emitter.repeat(stepping(start, (from, &to), LENGTH_IN_LANES, LoopHint::None), |emitter| {
            let end = first.clone().then(Add, LENGTH_IN_LANES).then(Min, to.clone());
            emitter.bind(stop, INDEX, end);
            each_row(emitter, &|emitter| {
                along(emitter, LoopHint::Simd, &|emitter| {
                    for [(id, _), (_, line)] in &inputs {
                        let value = emitter.value(*id);
                        emitter.push(set(Expr::element(line, place.clone()), value));
                    }
                });
                for [(_, name), (_, line)] in &inputs {
                    copy(emitter, Expr::element(name, slot.clone()), Expr::element(line, place.clone()));
                }
            });
            emitter.repeat(counting(of.step, first.clone(), last.clone(), LoopHint::None), |emitter| {
                (of.for_each)(emitter, LoopHint::Simd, &|emitter| {
                    emitter.under(None, |emitter| {
                        inputs.iter().for_each(|[(id, name), _]| {
                            emitter.define(*id, Expr::element(name, slot.clone()))
                        });
                        of.scans.advance(emitter, of.kernel, of.running, of.lane, None);
                        for [(id, name), _] in &results {
                            let value = emitter.value(*id);
                            emitter.push(set(Expr::element(name, slot.clone()), value));
                        }
                    });
                });
            });
            each_row(emitter, &|emitter| {
                for [(_, name), (_, line)] in &results {
                    copy(emitter, Expr::element(line, place.clone()), Expr::element(name, slot.clone()));
                }
                along(emitter, LoopHint::Simd, &|emitter| {
                    results.iter().for_each(|[(id, _), (_, line)]| {
                        emitter.define(*id, Expr::element(line, place.clone()))
                    });
                    of.stores.iter().for_each(|store| emitter.store(store));
                });
            });
        });
    }
}

/// Which values only the loop in order knows: scans, carries, and what lies between two of them or leads to what a step
/// gives to the next.
fn in_order(kernel: &Kernel) -> Vec<bool> {
    let is_seed = |op: &ValueOp| matches!(op, ValueOp::Scan { .. } | ValueOp::Carry { .. });
    let mut follows = vec![false; kernel.values.len()];
    for (number, value) in kernel.values.iter().enumerate() {
        let below = kernel.operands(&value.op).iter().any(|operand| follows[operand.index()]);
        follows[number] = below || is_seed(&value.op);
    }
    let scans = kernel.values.iter().filter(|value| matches!(value.op, ValueOp::Scan { .. }));
    let ends = scans.flat_map(|value| kernel.operands(&value.op));
    let ends = ends.chain(kernel.recurrences.iter().map(|recurrence| recurrence.next));
    let mut leads = vec![false; kernel.values.len()];
    kernel.down_from(ends).into_iter().for_each(|id| leads[id.index()] = true);
    let of = |(number, value): (usize, &crate::ir::Value)| {
        is_seed(&value.op) || follows[number] && leads[number] && !matches!(value.op, ValueOp::Last { .. })
    };
    kernel.values.iter().enumerate().map(of).collect()
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
