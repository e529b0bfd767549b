//! Reductions of columns on the CPU: vector lanes hold neighbouring columns and go down them together.
//!
//! Rows of few elements are columns that lie across: tiles of some rows are transposed into small arrays first, and what is
//! stored along them afterwards.

mod common;
mod guards;
mod tiles;

use std::cell::Cell;
use std::collections::BTreeMap;

use self::guards::Guards;
use super::accumulate::{Accumulator, load, mul_add, save, set};
use super::emitter::Emitter;
use super::fission::Divided;
use super::index_split::IndexSplit;
use super::loops::{counting, stepping};
use super::narrow::Narrow;
use super::passes::{Pass, Plan, lane_of, launch_items, launch_of_columns, partial_workspaces};
use super::persistent::{Place, RowCache};
use super::prefetch::prefetch_next;
use super::split::{Parts, merging, of_parts};
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint};
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::{
    COLUMN_SPLIT_LENGTH, ColumnSchedule, Launch, STACK_BYTES, lanes_along, nested_axes, operations,
    reductions_apart,
};
use crate::{Language, ReduceOp, Refusal};

pub(super) fn build(kernel: &Kernel, mut plan: Plan, schedule: &ColumnSchedule) -> Result<Nest, Refusal> {
    // Lanes go along the last one.
    if let Some(lanes) = lanes_along(kernel) {
        plan.map.retain(|&axis| axis != lanes);
        plan.map.push(lanes);
    }
    let plan = &plan;
    let width = u64::from(schedule.threads_x);
    let columns = launch_items(kernel, &plan.map);
    let split = schedule.splits > 1;
    let workspaces = match split {
        true => {
            partial_workspaces(kernel, Language::C, &plan.reductions(), columns * u64::from(schedule.splits))
        }
        false => Vec::new(),
    };
    let Some(&inner) = plan.map.last() else {
        return Ok(Nest::new(kernel.clone(), Vec::new(), workspaces));
    };
    let launch = launch_of_columns(kernel, &plan.map, width);
    let is_known = !kernel.axis(inner).is_argument && !schedule.shares_all;
    let guards = if is_known { Guards::of(kernel, plan, inner) } else { None };
    // A block of narrow columns has all of them.
    let is_plain = guards.is_none() && !schedule.shares_all && width >= kernel.axis(inner).extent;
    let narrow = if is_plain { Narrow::of(kernel, plan, inner) } else { None };
    let peeled = Peeled { kernel, guards: guards.as_ref(), narrow: narrow.as_ref() };
    let functions = match split {
        true => parts(peeled, plan, schedule, launch)?,
        false => vec![whole(peeled, plan, schedule, launch)?],
    };
    Ok(Nest::new(kernel.clone(), functions, workspaces))
}

/// A kernel, and what it is where no guards are or where columns are few.
#[derive(Clone, Copy)]
struct Peeled<'k> {
    kernel: &'k Kernel,
    guards: Option<&'k Guards>,
    narrow: Option<&'k Narrow>,
}

/// A block goes down whole columns.
fn whole(
    Peeled { kernel, guards, narrow }: Peeled,
    plan: &Plan,
    schedule: &ColumnSchedule,
    launch: Launch,
) -> Result<Function, Refusal> {
    let mut emitter = Emitter::new(kernel, Language::C);
    let mut writer = CpuColumns::new(kernel, plan, u64::from(schedule.threads_x), &mut emitter, false);
    (writer.guards, writer.narrow) = (guards, narrow);
    if schedule.shares_all {
        writer.results = writer.tiles_of_results(&mut emitter);
        writer.keep(&mut emitter, STACK_BYTES);
        let apart = reductions_apart(kernel, &plan.reductions(), &plan.axes);
        writer.transpose(&mut emitter, &apart);
        writer.leave_apart(&mut emitter, &apart);
    }
    let is_plain = guards.is_none() && narrow.is_none() && !schedule.shares_all;
    match IndexSplit::of(kernel, writer.inner()).filter(|_| is_plain) {
        None => writer.passes(&mut emitter),
        Some(split) => {
            let end = emitter.bind("end", INDEX, writer.first.then(Add, Expr::Name(writer.count)));
            split.emit(&mut emitter, (Expr::Name(writer.first), Expr::Name(end)), |emitter, at, stop| {
                writer.first = at;
                writer.count = emitter.bind("columns", INDEX, stop.then(Sub, at));
                writer.hint = LoopHint::SimdSegment;
                writer.passes(emitter);
            });
        }
    }
    Ok(Function::of(kernel, emitter.finish()?, launch))
}

/// A block goes down a part of its columns and leaves partial results; a second function merges the parts in order.
fn parts(
    Peeled { kernel, guards, narrow }: Peeled,
    plan: &Plan,
    schedule: &ColumnSchedule,
    merge: Launch,
) -> Result<Vec<Function>, Refusal> {
    let (width, pass) = (u64::from(schedule.threads_x), &plan.passes[0]);
    let mut emitter = Emitter::new(kernel, Language::C);
    let mut writer = CpuColumns::new(kernel, plan, width, &mut emitter, true);
    (writer.guards, writer.narrow) = (guards, narrow);
    let from = writer.part.clone().then(Mul, COLUMN_SPLIT_LENGTH);
    let to = from.clone().then(Add, COLUMN_SPLIT_LENGTH).then(Min, emitter.positions(&plan.axes));
    let to = Expr::Name(emitter.bind("end", INDEX, to));
    writer.leave_common(&mut emitter, 0);
    let accumulators = writer.sweep(&mut emitter, 0, from, to);
    writer.each_column(&mut emitter, |emitter, lane| {
        let at = writer.place(emitter);
        save(emitter, &accumulators, Some(lane), &at);
    });
    let first = Function::of(kernel, emitter.finish()?, of_parts(&merge, schedule.splits));

    let mut emitter = Emitter::new(kernel, Language::C);
    let mut writer = CpuColumns::new(kernel, plan, width, &mut emitter, false);
    let parts = plan.parts(&emitter, COLUMN_SPLIT_LENGTH);
    let accumulators = pass.declare(&mut emitter, kernel, Some(width));
    Parts::all(parts).merge(&mut emitter, |emitter, part| {
        writer.part = part.clone();
        writer.each_column(emitter, |emitter, lane| {
            let at = writer.place(emitter);
            load(emitter, &accumulators, Some(lane), &at);
        });
    });
    writer.finish(&mut emitter, pass, &accumulators);
    writer.results(&mut emitter);
    Ok(vec![first, merging(kernel, emitter.finish()?, merge)])
}

struct CpuColumns<'a> {
    kernel: &'a Kernel,
    plan: &'a Plan,
    width: u64,
    /// The variable of the sweep.
    flat: Var,
    /// The axes of reductions within the pass.
    nested: Vec<AxisId>,
    /// The number of the block's row of columns, if there are several.
    row: Expr,
    /// Of which part partial results are, if there are several.
    part: Expr,
    /// The block's columns: the first, and how many.
    first: Var,
    count: Var,
    /// The tiles of results that lie across, by the number of their store.
    results: BTreeMap<usize, Var>,
    /// How passes get around guards.
    guards: Option<&'a Guards>,
    /// How few columns go side by side.
    narrow: Option<&'a Narrow>,
    /// Of loops over columns.
    hint: LoopHint,
}

/// What a pass does at each position.
struct Step<'a> {
    pass: &'a Pass,
    accumulators: &'a [Accumulator],
    weight: Option<&'a Expr>,
}

impl<'k> CpuColumns<'k> {
    /// Binds the block's columns, the outer axes and, if split, the part.
    fn new(
        kernel: &'k Kernel,
        plan: &'k Plan,
        width: u64,
        emitter: &mut Emitter,
        split: bool,
    ) -> CpuColumns<'k> {
        let (inner, outer) = (plan.map[plan.map.len() - 1], &plan.map[..plan.map.len() - 1]);
        let mut block = Expr::Builtin(Builtin::BlockX);
        let (mut row, mut part) = (Expr::Int(0), Expr::Int(0));
        if split {
            let parts = plan.parts(emitter, COLUMN_SPLIT_LENGTH);
            let parts = Expr::Name(emitter.bind("parts", INDEX, parts));
            part = Expr::Name(emitter.bind("part", INDEX, block.clone().then(Rem, parts.clone())));
            block = block.then(Div, parts);
        }
        let lanes = Expr::Int(width);
        let extent = emitter.extent(inner);
        if !outer.is_empty() {
            let count = extent.clone().then(Add, width - 1).then(Div, lanes.clone());
            let chunks = Expr::Name(emitter.bind("chunks", INDEX, count));
            let number = emitter.bind("row", INDEX, block.clone().then(Div, chunks.clone()));
            row = Expr::Name(number);
            emitter.unflatten(number, outer, 1);
            block = block.then(Rem, chunks);
        }
        let first = emitter.bind("first", INDEX, block.then(Mul, lanes.clone()));
        let count = emitter.bind("width", INDEX, lanes.then(Min, extent.then(Sub, first)));
        let flat = plan.sweep_name(emitter);
        let nested = nested_axes(kernel, &plan.reductions(), &plan.axes);
        let (results, guards, narrow, hint) = (BTreeMap::new(), None, None, LoopHint::Simd);
        CpuColumns {
            kernel,
            plan,
            width,
            flat,
            nested,
            row,
            part,
            first,
            count,
            results,
            guards,
            narrow,
            hint,
        }
    }

    /// All passes, and what is stored after them.
    fn passes(&self, emitter: &mut Emitter<'k>) {
        for (number, pass) in self.plan.passes.iter().enumerate() {
            self.leave_common(emitter, number);
            let to = emitter.positions(&self.plan.axes);
            let accumulators = self.sweep(emitter, number, Expr::Int(0), to);
            self.finish(emitter, pass, &accumulators);
        }
        self.results(emitter);
        self.store_across(emitter);
    }

    fn inner(&self) -> AxisId {
        self.plan.map[self.plan.map.len() - 1]
    }

    /// A loop over the block's columns that binds the innermost axis.
    fn each_column(&self, emitter: &mut Emitter<'k>, body: impl FnOnce(&mut Emitter<'k>, &Expr)) {
        self.some_columns(emitter, (&Expr::Int(0), &Expr::Name(self.count)), body);
    }

    /// The same over some of them.
    fn some_columns(
        &self,
        emitter: &mut Emitter<'k>,
        (from, to): (&Expr, &Expr),
        body: impl FnOnce(&mut Emitter<'k>, &Expr),
    ) {
        let lane = Expr::name(Var::Lane);
        emitter.repeat_along(
            &[self.inner()],
            counting(Var::Lane, from.clone(), to.clone(), self.hint),
            |emitter| {
                emitter.bind(self.inner(), INDEX, self.first.then(Add, lane.clone()));
                body(emitter, &lane);
            },
        );
    }

    /// The pass of this number, along some positions.
    fn sweep(&self, emitter: &mut Emitter<'k>, number: usize, from: Expr, to: Expr) -> Vec<Accumulator> {
        let pass = &self.plan.passes[number];
        if let Some(narrow) = self.narrow {
            return narrow.sweep(emitter, (self.plan, number), self.flat, (from, to));
        }
        let accumulators = pass.declare(emitter, self.kernel, Some(self.width));
        let flat = self.flat;
        let welford = Accumulator::common_welford(&accumulators);
        let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
        let from = match self.goes_together(emitter, pass, &accumulators) {
            true => self.together(emitter, pass, &accumulators, (from, &to)),
            false => from,
        };
        if from == to {
            return accumulators;
        }
        emitter.repeat(counting(flat, from, to, LoopHint::None), |emitter| {
            emitter.unflatten(flat, &self.plan.axes, 1);
            let weight =
                welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
            let step = Step { pass, accumulators: &accumulators, weight: weight.as_ref() };
            match self.guards {
                None => self.step(emitter, self.kernel, &step, (&Expr::Int(0), &Expr::Name(self.count))),
                Some(guards) => {
                    let (along, columns) = ((self.kernel, self.inner()), (self.first, self.count));
                    guards.emit(emitter, along, columns, &mut |emitter, kernel, columns| {
                        self.step(emitter, kernel, &step, columns);
                    });
                }
            }
        });
        if let Some(steps) = &steps {
            accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
        }
        accumulators
    }

    /// Whether several positions are combined at a time: a column's partial result stays in a register between them, and
    /// memory is read in several places at once.
    fn goes_together(&self, emitter: &Emitter, pass: &Pass, accumulators: &[Accumulator]) -> bool {
        let kernel = self.kernel;
        let [axis] = &self.plan.axes[..] else { return false };
        let operand = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { operand, .. } => Some(operand),
            _ => None,
        };
        let below = kernel.down_from(pass.reductions.iter().filter_map(operand));
        let below = || below.iter().filter(|&&id| kernel.value(id).axes.contains(axis));
        let loads = below().filter(|&&id| matches!(kernel.value(id).op, ValueOp::Load { .. })).count();
        let cost: f64 = below().map(|&id| operations(kernel, id)).sum();
        let is_long = kernel.axis(*axis).is_argument || kernel.axis(*axis).extent >= 2 * TOGETHER;
        self.width >= NARROWEST
            && is_long
            && self.guards.is_none()
            && self.nested.is_empty()
            && self.results.is_empty()
            && emitter.cached.is_none()
            && pass.stores.is_empty()
            && !accumulators.is_empty()
            && accumulators.len().max(loads) <= MOST_TOGETHER
            && cost <= CHEAP
            && accumulators.iter().all(|accumulator| accumulator.op.is_plain())
    }

    /// Positions that a pass looks up for all columns at once.
    fn looked_up(&self, pass: &Pass) -> Vec<AxisId> {
        let kernel = self.kernel;
        let below = kernel.down_from(pass.reductions.iter().copied());
        let indices = below.iter().flat_map(|&id| kernel.value(id).op.indices());
        let computed = indices.flat_map(|index| kernel.computed_axes(index));
        let is_of_row = |(_, value): &(AxisId, ValueId)| {
            let axes = &kernel.value(*value).axes;
            !axes.contains(&self.inner()) && self.plan.axes.iter().any(|axis| axes.contains(axis))
        };
        let mut axes: Vec<AxisId> = computed.filter(is_of_row).map(|(axis, _)| axis).collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }

    /// The positions of a sweep, some at a time, in their order; gives the first of those that are left.
    fn together(
        &self,
        emitter: &mut Emitter<'k>,
        pass: &Pass,
        accumulators: &[Accumulator],
        (from, to): (Expr, &Expr),
    ) -> Expr {
        let length = to.clone().then(Sub, from.clone());
        let whole = length.then(Div, TOGETHER).then(Mul, TOGETHER);
        let mut whole = from.clone().then(Add, whole);
        if !matches!(whole, Expr::Int(_)) {
            let name = emitter.fresh("whole");
            whole = Expr::Name(emitter.bind(name, INDEX, whole));
        }
        let (start, k) = (emitter.index("start"), emitter.index("k"));
        let places = self.looked_up(pass);
        let at = |emitter: &mut Emitter<'k>| {
            emitter.bind(self.flat, INDEX, start.then(Add, k));
            emitter.bind_axes(&self.plan.axes);
        };
        emitter.repeat(stepping(start, (from, whole.clone()), TOGETHER, LoopHint::None), |emitter| {
            // Looked up once, and not for each vector of columns.
            let places: Vec<(AxisId, Expr)> = places
                .iter()
                .map(|&axis| {
                    let array = emitter.fresh("place");
                    (axis, Expr::element(emitter.array(array, INDEX, TOGETHER), Expr::Name(k)))
                })
                .collect();
            if !places.is_empty() {
                emitter.repeat(counting(k, 0, TOGETHER, LoopHint::Unroll), |emitter| {
                    at(emitter);
                    emitter.leave_positions(&places);
                });
            }
            self.each_column(emitter, |emitter, lane| {
                emitter.repeat(counting(k, 0, TOGETHER, LoopHint::Unroll), |emitter| {
                    at(emitter);
                    emitter.find_positions(&places);
                    for (&id, accumulator) in pass.reductions.iter().zip(accumulators) {
                        accumulator.take(emitter, id, Some(lane), None);
                    }
                });
            });
        });
        whole
    }

    /// What a pass does at a position, for some columns.
    fn step(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, step: &Step, columns: (&Expr, &Expr)) {
        let &Step { pass, accumulators, weight } = step;
        // In the first loop of the position.
        let is_due = Cell::new(!pass.reductions.is_empty());
        let prefetch = |emitter: &mut Emitter<'k>| {
            if is_due.replace(false) {
                prefetch_next(emitter, kernel, &pass.reductions, (&self.plan.axes, self.inner()), 2);
            }
        };
        let elements = self.before(emitter, kernel, pass, columns, &prefetch);
        self.some_columns(emitter, columns, |emitter, lane| {
            prefetch(emitter);
            emitter.find(&elements);
            for (&id, accumulator) in pass.reductions.iter().zip(accumulators) {
                accumulator.take(emitter, id, Some(lane), weight);
            }
            for &number in &pass.stores {
                let store = &kernel.stores[number];
                match self.results.get(&number) {
                    None => emitter.store(store),
                    Some(array) => {
                        let value = emitter.stored(store);
                        emitter.push(set(Expr::element(array, self.slot()), value));
                    }
                }
            }
        });
    }

    /// Loops of their own for what is costly at one position of the pass.
    fn before(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        pass: &Pass,
        columns: (&Expr, &Expr),
        prefetch: &dyn Fn(&mut Emitter<'k>),
    ) -> Vec<(ValueId, Expr)> {
        let operand = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { operand, .. } => Some(operand),
            _ => None,
        };
        let is_costly = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { op, .. } => op == ReduceOp::SumExp,
            _ => false,
        };
        let stored = pass.stores.iter().map(|&store| kernel.stores[store].value);
        let mut there = emitter.cached.as_ref().map_or(Vec::new(), |cache| cache.there.clone());
        there.extend((0..kernel.values.len() as u32).map(ValueId).filter(|&id| emitter.is_defined(id)));
        let divided = Divided {
            kernel,
            along: &[self.inner()],
            bound: self.plan.map.iter().chain(&self.plan.axes).copied().collect(),
            ends: pass.reductions.iter().filter_map(operand).chain(stored).collect(),
            there: &there,
            apart: pass.reductions.iter().any(is_costly).then_some(APART),
        };
        let Some(fission) = divided.fission(self.width) else { return Vec::new() };
        fission.emit(emitter, kernel, &Expr::name(Var::Lane), self.width, &mut |emitter, body| {
            self.some_columns(emitter, columns, |emitter, _| {
                prefetch(emitter);
                body(emitter);
            });
        })
    }

    /// An element's place in an array of a tile.
    fn slot(&self) -> Expr {
        self.slot_at(Expr::Name(self.flat))
    }

    /// That of an element at a position of its row.
    fn slot_at(&self, position: Expr) -> Expr {
        mul_add(position, self.width, Var::Lane)
    }

    /// How many elements a tile has.
    fn tile(&self) -> u64 {
        self.width * launch_items(self.kernel, &self.plan.axes)
    }

    /// Has passes leave to each other what is costly.
    fn keep(&self, emitter: &mut Emitter<'k>, bytes: u64) {
        if bytes > 0 {
            let length = self.tile();
            let values = self.plan.keep_on_stack(self.kernel, length, bytes).values;
            let place = Place::Stack { position: self.slot(), length, along: self.inner() };
            emitter.cache(RowCache::new(Vec::new(), values, place));
        }
    }

    /// A column's place among all partial results.
    fn place(&self, emitter: &Emitter) -> Expr {
        let extent = emitter.extent(self.inner());
        let name = Expr::name(self.inner());
        let column = self.row.clone().then(Mul, extent).then(Add, name);
        self.part.clone().then(Mul, emitter.positions(&self.plan.map)).then(Add, column)
    }

    fn finish(&self, emitter: &mut Emitter<'k>, pass: &Pass, accumulators: &[Accumulator]) {
        for accumulator in accumulators.iter().filter(|accumulator| accumulator.settles()) {
            self.each_column(emitter, |emitter, lane| accumulator.settle(emitter, Some(lane)));
        }
        pass.define(emitter, accumulators, |id| Some(lane_of(self.kernel, id, Some(self.inner()))));
    }

    fn results(&self, emitter: &mut Emitter<'k>) {
        if !self.plan.results.is_empty() {
            self.each_column(emitter, |emitter, _| {
                self.plan.results.iter().for_each(|&store| emitter.store(&self.kernel.stores[store]));
            });
        }
    }
}

/// Positions that are combined at a time.
const TOGETHER: u64 = 4;

/// So many places in memory are read at once for each of them, at most.
const MOST_TOGETHER: usize = 3;

/// Simple operations of an element that are worth a loop of their own before an exponential is added to a sum.
const APART: f64 = 20.0;

/// Simple operations of an element that leave time to be saved.
const CHEAP: f64 = 8.0;

/// Fewer columns are no vector.
const NARROWEST: u64 = 16;
