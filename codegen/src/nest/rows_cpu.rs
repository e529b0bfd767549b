//! Reductions of rows on the CPU: vector lanes go along a row together, long rows are cut into parts of a
//! fixed length, so that results do not depend on the number of threads.

mod guards;

use guards::{Combined, Guards, ends, interior_of_lines};

use super::accumulate::{Accumulator, load, mul_add, save};
use super::emitter::Emitter;
use super::epilogue::Epilogue;
use super::fission::{Divided, Fission};
use super::interior::Interior;
use super::loops::{counting, stepping};
use super::passes::{Pass, Plan, launch_items, launch_over, partial_workspaces};
use super::peeled::Peeled;
use super::persistent::{Place, RowCache};
use super::prefetch::RowPrefetch;
use super::split::{Parts, merging, of_parts};
use super::stmt::Arithmetic::{Add, Div, Max, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::variable::Var;
use super::windows_cpu::{Border, Windows};
use super::{Function, INDEX, Nest, turned};
use crate::DType;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId};
use crate::schedule::{Launch, RowSchedule, SPLIT_LENGTH};
use crate::{Language, Refusal};

pub(super) fn build(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule) -> Result<Nest, Refusal> {
    let rows = launch_items(kernel, &plan.map);
    let reductions = plan.reductions();
    let split = schedule.splits > 1;
    let windows = Combined::of(kernel, plan, schedule);
    let peeled = if windows.is_none() { Peeled::of(kernel, plan) } else { None };
    let interior = if windows.is_none() && peeled.is_none() { interior_of_lines(kernel, plan) } else { None };
    let guards = Guards { peeled: peeled.as_ref(), interior: interior.as_ref(), windows: windows.as_ref() };
    let mut emitter = Emitter::new(kernel, Language::C);
    let workspaces = match split {
        true => partial_workspaces(kernel, Language::C, &reductions, rows * u64::from(schedule.splits)),
        false => Vec::new(),
    };
    let mut functions = Vec::new();
    if split {
        functions.extend(parts(kernel, guards, plan, schedule)?);
    } else {
        let per_block = u64::from(schedule.rows_per_block);
        let row = plan.row_name(&mut emitter);
        let one_row = plan.map.is_empty();
        let epilogue = Epilogue::of(kernel, plan, schedule);
        let ends = (!one_row).then(|| {
            let first_row = emitter.bind("first_row", INDEX, Builtin::BlockX.then(Mul, per_block));
            let end = first_row.then(Add, per_block);
            let end = end.then(Min, emitter.positions(&plan.map));
            let end_row = emitter.bind("end_row", INDEX, end);
            (Expr::Name(first_row), Expr::Name(end_row))
        });
        let epilogue = epilogue.as_ref().zip(ends.clone()).map(|(epilogue, ends)| {
            let rows = epilogue.declare(&mut emitter, row, ends, per_block);
            (epilogue, rows)
        });
        if ends.is_some() {
            if let Some(&inner) = plan.axes.last().filter(|_| guards.are_none()) {
                turned::lay_out(&mut emitter, kernel, inner, per_block);
            }
            emitter.open_pinned();
            emitter.unflatten(row, &plan.map, 1);
        }
        if let Some(&along) = plan.axes.last().filter(|_| schedule.stack_bytes > 0) {
            let length = launch_items(kernel, &plan.axes);
            let keep = match schedule.keep {
                Some(ids) => plan.keep_these(kernel, Language::C, ids),
                None => plan.keep_on_stack(kernel, length, u64::from(schedule.stack_bytes)),
            };
            let position = Expr::Name(plan.sweep_name(&mut emitter));
            let place = Place::Stack { position, length, along };
            emitter.cache(RowCache::new(Vec::new(), keep.values, place));
        }
        let prefetch = RowPrefetch::of(kernel, plan);
        for (number, pass) in plan.passes.iter().enumerate() {
            let length = emitter.positions(&plan.axes);
            let row = (Expr::Int(0), length);
            let prefetch = (number == prefetch.pass).then_some(&prefetch);
            let accumulators = cpu_sweep(&mut emitter, (kernel, guards, prefetch), plan, pass, schedule, row);
            let zero = Expr::Int(0);
            let lane = (schedule.threads_per_row > 1).then_some(&zero);
            accumulators.iter().for_each(|accumulator| accumulator.settle(&mut emitter, lane));
            pass.define(&mut emitter, &accumulators, |_| lane.cloned());
        }
        match &epilogue {
            None => plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store])),
            Some((_, rows)) => emitter.leave(&rows.sources),
        }
        if let Some((first, end)) = ends {
            let body = emitter.close();
            emitter.push(counting(row, first, end, LoopHint::None).of(body));
        }
        if let Some((epilogue, rows)) = &epilogue {
            epilogue.emit(&mut emitter, kernel, plan, row, rows);
        }
        let launch = Launch { per_block, ..launch_over(kernel, &plan.map) };
        functions.push(Function::of(kernel, emitter.finish()?, launch));
    }
    Ok(Nest::new(kernel.clone(), functions, workspaces))
}

/// A block is a part of a row, and leaves partial results; a second function merges the parts in order.
fn parts(
    kernel: &Kernel,
    guards: Guards,
    plan: &Plan,
    schedule: &RowSchedule,
) -> Result<[Function; 2], Refusal> {
    let block = Expr::Builtin(Builtin::BlockX);
    let mut emitter = Emitter::new(kernel, Language::C);
    let count = plan.parts(&emitter, SPLIT_LENGTH);
    let count = Expr::Name(emitter.bind("parts", INDEX, count));
    let row = emitter.bind("row", INDEX, block.clone().then(Div, count.clone()));
    let length = emitter.positions(&plan.axes);
    let part = emitter.part(["first", "end"], block.clone().then(Rem, count), SPLIT_LENGTH, length);
    emitter.unflatten(row, &plan.map, 1);
    let prefetch = RowPrefetch::of(kernel, plan);
    for (number, pass) in plan.passes.iter().enumerate() {
        let prefetch = (number == prefetch.pass).then_some(&prefetch);
        let accumulators =
            cpu_sweep(&mut emitter, (kernel, guards, prefetch), plan, pass, schedule, part.clone());
        let zero = Expr::Int(0);
        let lane = (schedule.threads_per_row > 1).then_some(&zero);
        save(&mut emitter, &accumulators, lane, &block);
    }
    let launch = launch_over(kernel, &plan.map);
    let first = Function::of(kernel, emitter.finish()?, of_parts(&launch, schedule.splits));

    let mut emitter = Emitter::new(kernel, Language::C);
    let count = plan.parts(&emitter, SPLIT_LENGTH);
    let count = Expr::Name(emitter.bind("parts", INDEX, count));
    let row = emitter.bind("row", INDEX, block);
    emitter.unflatten(row, &plan.map, 1);
    let accumulators = plan.passes[0].declare(&mut emitter, kernel, None);
    Parts::all(count.clone()).merge(&mut emitter, |emitter, part| {
        load(emitter, &accumulators, None, &mul_add(row, count, part.clone()));
    });
    accumulators.iter().for_each(|accumulator| accumulator.settle(&mut emitter, None));
    plan.passes[0].define(&mut emitter, &accumulators, |_| None);
    plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
    Ok([first, merging(kernel, emitter.finish()?, launch)])
}

/// One pass along a row, or a part of it.
fn cpu_sweep<'k>(
    emitter: &mut Emitter<'k>,
    (kernel, Guards { peeled, interior, windows }, prefetch): (&'k Kernel, Guards<'k>, Option<&RowPrefetch>),
    plan: &Plan,
    pass: &Pass,
    schedule: &RowSchedule,
    (first, end): (Expr, Expr),
) -> Vec<Accumulator> {
    let lanes = u64::from(schedule.threads_per_row);
    let accumulators = pass.declare(emitter, kernel, (lanes > 1).then_some(lanes));
    let flat = plan.sweep_name(emitter);
    let combined = windows.and_then(|combined| {
        let there = emitter.cached.as_ref().map_or(&[][..], |cache| &cache.there);
        let windows = Windows::of_pass(kernel, &plan.axes, ends(kernel, pass), there)?;
        Some((windows, combined.border.as_ref()))
    });
    let has_lines =
        has_lines((kernel, interior), plan, lanes, &first) || combined.is_some() && plan.axes.len() > 1;
    let counts_together = lanes > 1 && !has_lines;
    let counted = Accumulator::common_welford(&accumulators).filter(|_| counts_together);
    let steps = counted.map(|accumulator| accumulator.declare_steps(emitter));
    let sweep = |kernel| Sweep {
        kernel,
        plan,
        pass,
        prefetch,
        lanes,
        flat,
        accumulators: &accumulators,
        steps: steps.as_ref(),
        has_lines,
        interior,
        windows: combined.as_ref().map(|(windows, border)| (windows, *border)),
        line: None,
    };
    // Lanes that have counted together do so to the end of the pass, but for the rest.
    match peeled.filter(|peeled| steps.is_none() || !peeled.cuts_rows()) {
        None => sweep(kernel).part(emitter, first, end),
        Some(peeled) => peeled.emit(emitter, (&first, &end), &mut |emitter, kernel, from, to| {
            sweep(kernel).part(emitter, from, to);
        }),
    }
    if lanes > 1 {
        accumulators.iter().for_each(|accumulator| accumulator.merge_lanes(emitter));
    }
    accumulators
}

/// A pass.
struct Sweep<'a, 'k> {
    kernel: &'k Kernel,
    plan: &'a Plan,
    pass: &'a Pass,
    /// What it asks for besides.
    prefetch: Option<&'a RowPrefetch>,
    lanes: u64,
    /// The variable of the sweep.
    flat: Var,
    accumulators: &'a [Accumulator],
    /// What all lanes have in common counted.
    steps: Option<&'a Expr>,
    /// Whether the row is swept line by line.
    has_lines: bool,
    interior: Option<&'k Interior>,
    /// Those that are combined before its loops.
    windows: Option<(&'a Windows, Option<&'k Border>)>,
    /// The position of the outer axes, in the loop along a line.
    line: Option<Var>,
}

/// Whether a row is swept line by line: of several axes, the innermost is not a multiple of the lanes, which would divide
/// their positions one by one where they reach into the next line, or is guarded at its ends. Parts of a row begin and end
/// within lines, which should not be short then.
fn has_lines(
    (kernel, interior): (&Kernel, Option<&Interior>),
    plan: &Plan,
    lanes: u64,
    first: &Expr,
) -> bool {
    let Some((&inner, [_, ..])) = plan.axes.split_last() else { return false };
    let (extent, is_whole) = (kernel.axis(inner).extent, *first == Expr::Int(0));
    let divides = !extent.is_multiple_of(lanes);
    lanes > 1 && if is_whole { interior.is_some() || divides } else { divides && extent >= lanes }
}

impl<'k> Sweep<'_, 'k> {
    /// The pass along a part of the row. What is costly is computed in loops of its own, of some elements at a time.
    fn part(&self, emitter: &mut Emitter<'k>, first: Expr, end: Expr) {
        let &Sweep { kernel, plan, lanes, flat, .. } = self;
        if lanes == 1 {
            let body = self.visit(emitter, None, None, None);
            emitter.push(counting(flat, first, end, LoopHint::None).of(body));
            return;
        }
        let length = launch_items(kernel, &plan.axes);
        let is_constant = plan.axes.iter().all(|&axis| !kernel.axis(axis).is_argument);
        let is_whole = is_constant && length <= LONGEST_STRETCH;
        if self.windows.is_some() {
            return self.in_lanes(emitter, first, end);
        }
        match self.fission(emitter) {
            None if self.only_stores() => {
                self.each(emitter, (&first, &end), &mut |emitter| self.store(emitter));
            }
            None => self.in_lanes(emitter, first, end),
            Some(fission) if is_whole => {
                let slot = Expr::Name(flat);
                self.divided(emitter, &fission, (&first, &end), &slot, length);
            }
            Some(fission) => {
                let (start, stop) = (emitter.fresh("begin"), emitter.fresh("stop"));
                emitter.repeat(stepping(start, (first, &end), LONGEST_STRETCH, LoopHint::None), |emitter| {
                    let to = Expr::name(start).then(Add, LONGEST_STRETCH).then(Min, end.clone());
                    emitter.bind(stop, INDEX, to);
                    let slot = flat.then(Sub, start);
                    let stretch = (&Expr::name(start), &Expr::name(stop));
                    self.divided(emitter, &fission, stretch, &slot, LONGEST_STRETCH);
                });
            }
        }
    }

    fn only_stores(&self) -> bool {
        self.pass.reductions.is_empty() && self.plan.axes.len() == 1
    }

    /// What is worth loops of its own.
    fn fission(&self, emitter: &Emitter) -> Option<Fission> {
        let &Sweep { kernel, plan, .. } = self;
        if plan.axes.len() > 1 {
            return None;
        }
        let there: &[ValueId] = emitter.cached.as_ref().map_or(&[], |cache| cache.there.as_slice());
        self.fission_beside(there, launch_items(kernel, &plan.axes))
    }

    /// The same in a loop of so many elements, which finds some values in arrays.
    fn fission_beside(&self, there: &[ValueId], length: u64) -> Option<Fission> {
        let &Sweep { kernel, plan, pass, .. } = self;
        let divided = Divided {
            kernel,
            along: if self.line.is_some() { &plan.axes[plan.axes.len() - 1..] } else { &plan.axes },
            bound: plan.map.iter().chain(&plan.axes).copied().collect(),
            ends: ends(kernel, pass),
            there,
            apart: (!pass.reductions.is_empty()).then_some(APART),
        };
        divided.fission(length)
    }

    /// The windows of some elements at a time, then what uses them.
    fn windowed(
        &self,
        emitter: &mut Emitter<'k>,
        (windows, border): (&Windows, Option<&'k Border>),
        (first, end): (Expr, Expr),
    ) {
        let length = windows.length();
        let cached = emitter.cached.as_ref().map_or(&[][..], |cache| &cache.there);
        let there: Vec<ValueId> = windows.ids().chain(cached.iter().copied()).collect();
        let sweep = Sweep { windows: None, ..*self };
        let fission = sweep.fission_beside(&there, length).unwrap_or_default();
        let stretch = [emitter.fresh("begin"), emitter.fresh("stop")];
        let inner = self.plan.axes.last().map_or(self.flat, |&axis| Var::Axis(axis));
        emitter.stretches(stretch, (first, &end), length, |emitter| {
            let elements = windows.elements(emitter, (self.kernel, border), (stretch[0], stretch[1]));
            let before = std::mem::replace(&mut emitter.elements, elements);
            let slot = inner.then(Sub, stretch[0]);
            let stretch = stretch.map(Expr::name);
            sweep.divided(emitter, &fission, (&stretch[0], &stretch[1]), &slot, length);
            emitter.elements = before;
        });
    }

    /// A loop along the row.
    fn each(
        &self,
        emitter: &mut Emitter<'k>,
        (from, to): (&Expr, &Expr),
        body: &mut dyn FnMut(&mut Emitter<'k>),
    ) {
        if let (Some(_), Some(&axis)) = (self.line, self.plan.axes.last()) {
            let along = counting(axis, from.clone(), to.clone(), LoopHint::Simd);
            return emitter.repeat_along(&[axis], along, body);
        }
        emitter.repeat_along(
            &self.plan.axes,
            counting(self.flat, from.clone(), to.clone(), LoopHint::Simd),
            |emitter| {
                if let Some(prefetch) = self.prefetch {
                    prefetch.emit(emitter);
                }
                body(emitter);
            },
        );
    }

    /// The loops of a stretch, then the pass that uses what they leave.
    fn divided(
        &self,
        emitter: &mut Emitter<'k>,
        fission: &Fission,
        stretch: (&Expr, &Expr),
        slot: &Expr,
        length: u64,
    ) {
        emitter.open(&[], false);
        let elements = fission.emit(emitter, self.kernel, slot, length, &mut |emitter, body| {
            self.each(emitter, stretch, &mut |emitter| {
                emitter.define_elements();
                body(emitter);
            });
        });
        let before = emitter.elements.clone();
        emitter.elements.extend(elements);
        if !self.pass.stores.is_empty() {
            self.each(emitter, stretch, &mut |emitter| self.store(emitter));
        }
        if !self.pass.reductions.is_empty() {
            let pass = &Pass { reductions: self.pass.reductions.clone(), ..Pass::default() };
            Sweep { pass, ..*self }.in_lanes(emitter, stretch.0.clone(), stretch.1.clone());
        }
        emitter.elements = before;
        let body = emitter.close();
        emitter.guarded(None, body);
    }

    fn store(&self, emitter: &mut Emitter<'k>) {
        emitter.define_elements();
        self.pass.stores.iter().for_each(|&store| emitter.store(&self.kernel.stores[store]));
    }

    /// The positions of the innermost axis, without guards where none is needed.
    fn in_line(&self, emitter: &mut Emitter<'k>, extent: u64) {
        // What is kept is left by all parts of a line, or by none.
        let Some(interior) = self.interior.filter(|_| emitter.cached.is_none()) else {
            return self.in_lanes(emitter, Expr::Int(0), Expr::Int(extent));
        };
        let part = |emitter: &mut Emitter<'k>, kernel: &'k Kernel, from: u64, to: u64| {
            emitter.open_pinned();
            emitter.using(kernel, |emitter| {
                Sweep { kernel, ..*self }.in_lanes(emitter, Expr::Int(from), Expr::Int(to));
            });
            emitter.close()
        };
        let (low, high) = (interior.low, interior.high);
        let inside = [(self.kernel, 0, low), (&interior.kernel, low, high), (self.kernel, high, extent)];
        let inside = inside.into_iter().filter(|(_, from, to)| from < to);
        let inside: Vec<Stmt> =
            inside.map(|(kernel, from, to)| Stmt::Block(part(emitter, kernel, from, to))).collect();
        if interior.conditions.is_empty() {
            emitter.append(inside);
            return;
        }
        let otherwise = part(emitter, self.kernel, 0, extent);
        let condition = Expr::InBounds(interior.conditions.clone());
        emitter.push(Stmt::If { condition, then: inside, otherwise });
    }

    /// Line by line, where several axes cannot be one.
    fn lines(&self, emitter: &mut Emitter<'k>, inner: u64, (first, end): (Expr, Expr)) {
        let axes = &self.plan.axes;
        let line = emitter.index("line");
        let is_whole = first == Expr::Int(0);
        let lines = if is_whole { end.clone() } else { end.clone().then(Add, inner - 1) }.then(Div, inner);
        emitter.repeat(counting(line, first.clone().then(Div, inner), lines, LoopHint::None), |emitter| {
            emitter.unflatten(line, &axes[..axes.len() - 1], 1);
            let sweep = Sweep { line: Some(line), ..*self };
            if is_whole {
                return sweep.in_line(emitter, inner);
            }
            // A part has some of the first and of the last line.
            let start = line.then(Mul, inner);
            let (from, to) = (emitter.fresh("from"), emitter.fresh("to"));
            let from = emitter.bind(from, INDEX, start.clone().then(Max, first).then(Sub, start.clone()));
            let to = emitter.bind(to, INDEX, start.clone().then(Add, inner).then(Min, end).then(Sub, start));
            sweep.in_lanes(emitter, Expr::Name(from), Expr::Name(to));
        });
    }

    /// All lanes at once, then those that are left.
    fn in_lanes(&self, emitter: &mut Emitter<'k>, first: Expr, end: Expr) {
        let &Sweep { kernel, plan, lanes, accumulators, .. } = self;
        let inner = plan.axes.last().map_or(1, |&axis| kernel.axis(axis).extent);
        if self.has_lines && self.line.is_none() {
            self.lines(emitter, inner, (first, end));
            return;
        }
        if let Some(windows) = self.windows {
            return self.windowed(emitter, windows, (first, end));
        }
        let single = plan.axes.len() == 1 || self.line.is_some();
        let welford = Accumulator::common_welford(accumulators);
        let length = if self.line.is_some() { inner } else { launch_items(kernel, &plan.axes) };
        let is_long = length >= CHAIN * lanes * 8;
        let is_plain = accumulators.iter().all(|accumulator| accumulator.op.is_plain());
        let waits = is_long && is_plain && self.pass.is_light(kernel);
        // A group of lanes that never reaches into the next position of the outer axes needs no division for each lane.
        let stays_within = |group: u64| !single && inner.is_multiple_of(group);
        let chain = if waits && (stays_within(lanes * CHAIN) || !stays_within(lanes)) { CHAIN } else { 1 };
        // Memory is read in its order, since processors ask for what comes next of such streams only. But truths, which are bytes
        // in memory and bits of masks in registers, stay there from element to element.
        let has_truths = accumulators.iter().any(|accumulator| accumulator.dtype == DType::Bool);
        let lane = Expr::name(Var::Lane);
        let before = emitter.cached.as_ref().map(|cache| cache.there.clone());
        let steps = self.steps;
        let mut from = first;
        // Several groups of lanes at a time, so that they stay in registers between additions, then one.
        for chain in if chain > 1 { vec![chain, 1] } else { vec![1] } {
            let group = lanes * chain;
            let length = end.clone().then(Sub, from.clone());
            let whole_length = length.then(Div, group).then(Mul, group);
            let mut whole = from.clone().then(Add, whole_length);
            if whole == from {
                continue;
            }
            if !matches!(whole, Expr::Int(_)) {
                let name = emitter.fresh("whole");
                whole = Expr::Name(emitter.bind(name, INDEX, whole));
            }
            if let (Some(cache), Some(before)) = (&mut emitter.cached, &before) {
                // The other elements are not there yet.
                cache.there.clone_from(before);
            }
            let (start, k) = (emitter.index("start"), emitter.index("k"));
            emitter.repeat(stepping(start, (from, whole.clone()), group, LoopHint::None), |emitter| {
                let weight =
                    welford.zip(steps).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
                let outer =
                    plan.axes.split_last().filter(|_| stays_within(group)).map(|(_, axes)| (axes, inner));
                let body = self.elements(emitter, start, (chain > 1).then_some(k), outer, weight.as_ref());
                let of_lanes = counting(Var::Lane, 0, lanes, LoopHint::Simd);
                let in_chain = counting(k, 0, chain, LoopHint::Unroll);
                emitter.push(match chain {
                    1 => of_lanes.of(body),
                    _ if has_truths => of_lanes.of(vec![in_chain.of(body)]),
                    _ => in_chain.of(vec![of_lanes.of(body)]),
                });
            });
            from = whole;
        }
        if let Some(steps) = steps {
            accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
        }
        let remaining = end.then(Sub, from.clone());
        if remaining != Expr::Int(0) {
            if let (Some(cache), Some(before)) = (&mut emitter.cached, before) {
                cache.there = before;
            }
            let rest = self.visit(emitter, Some(from.then(Add, lane.clone())), Some(&lane), None);
            emitter.push(counting(Var::Lane, 0, remaining, LoopHint::Simd).of(rest));
        }
    }

    /// What the pass does at the lanes' elements from `start` on, or at the `k`-th of several times so many. `outer` are the
    /// axes, and the extent inside of them, that all these elements have one position of.
    fn elements(
        &self,
        emitter: &mut Emitter<'k>,
        start: Var,
        k: Option<Var>,
        outer: Option<(&[AxisId], u64)>,
        weight: Option<&Expr>,
    ) -> Vec<Stmt> {
        let (lane, lanes) = (Expr::name(Var::Lane), Expr::Int(self.lanes));
        let offset = |start: Option<Expr>| match (k, start) {
            (None, Some(start)) => start.then(Add, lane.clone()),
            (None, None) => lane.clone(),
            (Some(k), Some(start)) => mul_add(k, lanes.clone(), start).then(Add, lane.clone()),
            (Some(k), None) => k.then(Mul, lanes.clone()).then(Add, lane.clone()),
        };
        let Some((axes, inner)) = outer else {
            return self.visit(emitter, Some(offset(Some(Expr::Name(start)))), Some(&lane), weight);
        };
        let outer = emitter.bind("outer", INDEX, start.then(Div, inner));
        let begin = emitter.bind("begin", INDEX, start.then(Rem, inner));
        emitter.unflatten(outer, axes, 1);
        let (start, begin) = (start.then(Sub, begin), Expr::Name(begin));
        self.within(emitter, start, begin.then(Add, offset(None)), weight)
    }

    /// What the pass does at a position.
    fn visit(
        &self,
        emitter: &mut Emitter<'k>,
        position: Option<Expr>,
        lane: Option<&Expr>,
        weight: Option<&Expr>,
    ) -> Vec<Stmt> {
        let &Sweep { kernel, plan, pass, accumulators, .. } = self;
        if let (Some(line), Some(position), Some(&axis)) = (self.line, &position, plan.axes.last()) {
            let start = line.then(Mul, kernel.axis(axis).extent);
            return self.within(emitter, start, position.clone(), weight);
        }
        emitter.open(&[], false);
        if let Some(position) = position {
            emitter.bind(self.flat, INDEX, position);
        }
        emitter.unflatten(self.flat, &plan.axes, 1);
        if let Some(prefetch) = self.prefetch.filter(|_| lane.is_some()) {
            prefetch.emit(emitter);
        }
        emitter.define_elements();
        visit_here(emitter, kernel, pass, accumulators, lane, weight);
        emitter.close()
    }

    /// The same where all lanes are within one position of the outer axes, whose line starts there in the row.
    fn within(
        &self,
        emitter: &mut Emitter<'k>,
        start: Expr,
        position: Expr,
        weight: Option<&Expr>,
    ) -> Vec<Stmt> {
        let &Sweep { kernel, plan, pass, accumulators, .. } = self;
        let Some((&axis, _)) = plan.axes.split_last() else { return Vec::new() };
        emitter.open(&[axis], false);
        emitter.bind(axis, INDEX, position.clone());
        if emitter.cached.is_some() {
            emitter.bind(self.flat, INDEX, start.then(Add, position));
        }
        emitter.define_elements();
        visit_here(emitter, kernel, pass, accumulators, Some(&Expr::name(Var::Lane)), weight);
        emitter.close()
    }
}

/// What a pass does at the position that is bound.
fn visit_here(
    emitter: &mut Emitter,
    kernel: &Kernel,
    pass: &Pass,
    accumulators: &[Accumulator],
    lane: Option<&Expr>,
    weight: Option<&Expr>,
) {
    for (&reduction, accumulator) in pass.reductions.iter().zip(accumulators) {
        accumulator.take(emitter, reduction, lane, weight);
    }
    pass.stores.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
}

/// Additions to a lane in a row.
const CHAIN: u64 = 4;

/// Elements of a stretch of a row; a multiple of all groups of lanes, so that these begin where they would without stretches.
const LONGEST_STRETCH: u64 = 1024;

/// Simple operations from which what is reduced is computed in a loop of its own: lanes that add up wait for each other.
const APART: f64 = 8.0;
