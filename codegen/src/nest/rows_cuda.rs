//! Reductions of rows on CUDA: a group of threads goes over the consecutive elements of a row.

use super::accumulate::{Accumulator, load, mul_add, save};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::{Pass, Plan, launch_items, launch_over, partial_workspaces};
use super::persistent::{Place, RowCache};
use super::pointwise::{lanes_and_stores, split_lanes};
use super::split::{Arrivals, Parts, all_parts, interleaved, own_part, with_arrivals};
use super::stmt::Arithmetic::{Add, And, Div, Equal, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::variable::Var;
use super::{Function, INDEX, Nest, Workspace};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, Store, ValueOp};
use crate::schedule::{Keep, Launch, RowSchedule, UNROLLED_OPERATIONS, is_of_rows};
use crate::{Language, Refusal};

/// Turns of passes through shared memory that are unrolled wholly: all that 1024 threads have in 16-byte accesses. In
/// narrower ones the code would be long, and its registers spill.
const MOST_UNROLLED_TURNS: u64 = 16;

pub(super) fn build(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule) -> Result<Nest, Refusal> {
    let vectorised = split_lanes(kernel, plan.axes.last().copied(), schedule.vector);
    let workspaces = workspaces(&vectorised, plan, schedule);
    let mut emitter = Emitter::new(&vectorised, Language::Cuda);
    let row = plan.row_name(&mut emitter);
    let writer = CudaRows {
        scalar: kernel,
        plan,
        schedule,
        arrivals: Arrivals::at(&workspaces, Expr::Name(row)),
        row,
        flat: plan.sweep_name(&mut emitter),
        turn: emitter.index("turn"),
    };
    writer.body(&mut emitter, &vectorised);
    let body = emitter.finish()?;
    let launch = Launch {
        per_block: u64::from(schedule.rows_per_block),
        splits: schedule.splits,
        block: [schedule.threads_per_row, schedule.rows_per_block, 1],
        shared_bytes: schedule.shared_bytes,
        ..launch_over(kernel, &plan.map)
    };
    Ok(Nest::new(vectorised, vec![Function::of(kernel, body, launch)], workspaces))
}

struct CudaRows<'a> {
    scalar: &'a Kernel,
    plan: &'a Plan,
    schedule: &'a RowSchedule,
    /// Counters of finished parts, where there are parts.
    arrivals: Arrivals,
    /// The row, which is the last one for threads beyond it.
    row: Var,
    /// The position of the sweep.
    flat: Var,
    /// Which of its vectors of the row a thread is at.
    turn: Var,
}

/// Whether an axis is a number of vectors that the text knows.
fn is_whole(kernel: &Kernel, axis: AxisId, vector: u64) -> bool {
    !kernel.axis(axis).is_argument && kernel.axis(axis).extent.is_multiple_of(vector)
}

/// Where a row begins: that of the first load whose elements are consecutive.
fn first_element(kernel: &Kernel, axis: AxisId) -> Option<IndexExpr> {
    let ranges = kernel.ranges();
    kernel.values.iter().find_map(|value| match &value.op {
        ValueOp::Load { index, guard: None, .. } if is_of_rows(kernel, index, axis) => {
            Some(index.substitute(axis, &IndexExpr::zero(), &ranges))
        }
        _ => None,
    })
}

/// Partial results of the parts of split rows, and a counter for each row.
fn workspaces(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule) -> Vec<Workspace> {
    if schedule.splits == 1 {
        return Vec::new();
    }
    let rows = launch_items(kernel, &plan.map);
    let elements = rows * u64::from(schedule.splits);
    with_arrivals(partial_workspaces(kernel, Language::Cuda, &plan.reductions(), elements), rows)
}

impl<'a> CudaRows<'a> {
    fn body(&self, emitter: &mut Emitter<'a>, kernel: &'a Kernel) {
        if self.schedule.persistent > 0 {
            emitter.cache(self.row_cache());
        }
        let several = self.schedule.rows_per_block > 1;
        let row = match several {
            true => mul_add(Builtin::BlockX, u64::from(self.schedule.rows_per_block), Builtin::ThreadY),
            false => Expr::Builtin(Builtin::BlockX),
        };
        let rows = emitter.positions(&self.plan.map);
        let mut inside = None;
        if several {
            // Threads beyond the last row go along it too, so that whole warps take part in shuffles.
            inside = Some(emitter.bind_within("own_row", self.row, row, rows));
        } else if !self.plan.map.is_empty() || self.schedule.splits > 1 {
            emitter.bind(self.row, INDEX, row);
        }
        emitter.unflatten(self.row, &self.plan.map, 1);
        for pass in &self.plan.passes {
            let inside = inside.clone();
            let accumulators = match self.schedule.persistent {
                0 => self.sweep(emitter, kernel, pass, inside),
                turns => self.sweep_cached(emitter, kernel, pass, inside, u64::from(turns)),
            };
            for accumulator in &accumulators {
                self.merge_threads(emitter, accumulator);
            }
            if self.schedule.splits > 1 {
                self.merge_splits(emitter, &accumulators);
            }
            accumulators.iter().for_each(|accumulator| accumulator.settle(emitter, None));
            pass.define(emitter, &accumulators, |_| None);
        }
        if !self.plan.results.is_empty() {
            let first = Builtin::ThreadX.then(Equal, 0);
            let condition = inside.into_iter().fold(first, |first, inside| first.then(And, inside));
            emitter.under(Some(condition), |emitter| {
                self.plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
                if self.schedule.splits > 1 {
                    emitter.push(self.arrivals.reset());
                }
            });
        }
    }

    /// What the schedule says of that.
    fn keep(&self) -> Option<Keep> {
        self.schedule.keep.map(|ids| self.plan.keep_these(self.scalar, Language::Cuda, ids))
    }

    /// What stays from pass to pass.
    fn row_cache(&self) -> RowCache {
        let turns = u64::from(self.schedule.persistent);
        match self.schedule.shared_bytes {
            0 => {
                let keep = self
                    .keep()
                    .unwrap_or_else(|| self.plan.keep(self.scalar, turns * u64::from(self.schedule.vector)));
                RowCache::new(keep.loads, keep.values, Place::Registers { turn: self.turn(turns), turns })
            }
            bytes => {
                let length = launch_items(self.scalar, &self.plan.axes);
                let chosen = || self.plan.keep_shared(self.scalar, length, u64::from(bytes));
                let keep = self.keep().unwrap_or_else(chosen);
                RowCache::new(
                    keep.loads,
                    keep.values,
                    Place::Shared { vector: self.vector_of_turn(turns), length, end: 0 },
                )
            }
        }
    }

    /// Which of a thread's vectors it is at.
    fn turn(&self, turns: u64) -> Expr {
        if turns == 1 { Expr::Int(0) } else { Expr::Name(self.turn) }
    }

    /// The number of a thread's vector in the row.
    fn vector_of_turn(&self, turns: u64) -> Expr {
        let thread = Expr::Builtin(Builtin::ThreadX);
        match turns {
            1 => thread,
            _ => mul_add(self.turn, u64::from(self.schedule.threads_per_row), thread),
        }
    }

    /// One pass along the row, by all threads of the row: whole vectors, and single elements where they do not reach.
    fn sweep(
        &self,
        emitter: &mut Emitter<'a>,
        kernel: &'a Kernel,
        pass: &Pass,
        inside: Option<Expr>,
    ) -> Vec<Accumulator> {
        let accumulators = pass.declare(emitter, kernel, None);
        let vector = u64::from(self.schedule.vector);
        let threads = u64::from(self.schedule.threads_per_row);
        let length = emitter.positions(&self.plan.axes);
        let flat = self.flat;
        let thread = Expr::Builtin(Builtin::ThreadX);
        let (thread, step) = interleaved(self.schedule.splits, thread, threads);
        let single = match self.plan.axes.as_slice() {
            [axis] => Some(*axis),
            _ => None,
        };
        let has_tail = vector > 1 && single.is_some_and(|axis| !is_whole(self.scalar, axis, vector));
        pass.bind_invariants(emitter, if has_tail { self.scalar } else { kernel }, &self.plan.map);
        // Where the rows begin anywhere, the first vector is the first that is aligned.
        let first = single.filter(|_| has_tail).and_then(|axis| first_element(self.scalar, axis));
        let first = first.filter(|first| emitter.alignment(first, vector) < vector);
        let lead = first.as_ref().map(|first| {
            let beyond = Expr::Index(first.clone()).then(Rem, vector);
            let lead = Expr::Int(vector).then(Sub, beyond).then(Rem, vector);
            let may_be_short = |axis| {
                let axis = self.scalar.axis(axis);
                axis.is_argument || axis.extent < vector
            };
            let lead = if single.is_some_and(may_be_short) { lead.then(Min, length.clone()) } else { lead };
            let name = emitter.fresh("lead");
            Expr::Name(emitter.bind(name, INDEX, lead))
        });
        let vectors = |length: Expr| length.then(Div, vector).then(Mul, vector);
        let whole = match &lead {
            Some(lead) => {
                let whole = lead.clone().then(Add, vectors(length.clone().then(Sub, lead.clone())));
                let name = emitter.fresh("whole");
                Expr::Name(emitter.bind(name, INDEX, whole))
            }
            None if has_tail => vectors(length.clone()),
            None => length.clone(),
        };
        if let Some(lead) = &lead {
            let range = (thread.clone(), lead.clone());
            self.single_elements(emitter, pass, &accumulators, &inside, range, &step);
        }
        let position = thread.clone().then(Mul, vector);
        let position = lead.map_or(position.clone(), |lead| lead.then(Add, position));
        emitter.open(&[], false);
        emitter.unflatten_sweep(flat, &self.plan.axes, vector);
        if let (Some(axis), Some(first)) = (single, &first) {
            emitter.multiples.remove(&axis);
            emitter.aligned = Some((first.add(&IndexExpr::axis(axis)), vector));
        }
        let (from, to, stride) = match single {
            Some(_) => (position, whole.clone(), step.clone().then(Mul, vector)),
            None => (thread.clone(), whole.clone().then(Div, vector), step.clone()),
        };
        self.elements(emitter, kernel, pass, &accumulators, inside.clone());
        emitter.aligned = None;
        let body = emitter.close();
        emitter.push(stepping(flat, (from, to), stride, LoopHint::UnrollBy(4)).of(body));
        if has_tail {
            let range = (whole.then(Add, thread), length);
            self.single_elements(emitter, pass, &accumulators, &inside, range, &step);
        }
        accumulators
    }

    /// A part of a pass, element by element.
    fn single_elements(
        &self,
        emitter: &mut Emitter<'a>,
        pass: &Pass,
        accumulators: &[Accumulator],
        inside: &Option<Expr>,
        (from, to): (Expr, Expr),
        step: &Expr,
    ) {
        let body = emitter.using(self.scalar, |emitter| {
            emitter.open(&self.plan.axes, false);
            self.elements(emitter, self.scalar, pass, accumulators, inside.clone());
            emitter.close()
        });
        emitter.push(stepping(self.flat, (from, to), step.clone(), LoopHint::None).of(body));
    }

    /// One pass along a row that its threads keep, unrolled: wholly, unless it is in shared memory and too much.
    fn sweep_cached(
        &self,
        emitter: &mut Emitter<'a>,
        kernel: &'a Kernel,
        pass: &Pass,
        inside: Option<Expr>,
        turns: u64,
    ) -> Vec<Accumulator> {
        let accumulators = pass.declare(emitter, kernel, None);
        pass.bind_invariants(emitter, kernel, &self.plan.map);
        let vector = u64::from(self.schedule.vector);
        let threads = u64::from(self.schedule.threads_per_row);
        let vectors = launch_items(self.scalar, &self.plan.axes) / vector;
        let flat = self.flat;
        let position = self.vector_of_turn(turns);
        emitter.open(&[], false);
        let (position, length) = match self.plan.axes.as_slice() {
            [_] => (position.then(Mul, vector), vectors * vector),
            _ => (position, vectors),
        };
        emitter.bind(flat, INDEX, position);
        emitter.open(&[], false);
        emitter.unflatten_sweep(flat, &self.plan.axes, vector);
        self.elements(emitter, kernel, pass, &accumulators, inside);
        let then = emitter.close();
        let is_inside = (turns * threads != vectors).then(|| Expr::name(flat).then(Less, length));
        emitter.guarded(is_inside, then);
        let body = emitter.close();
        emitter.push(match turns {
            1 => Stmt::Block(body),
            _ => {
                // Only registers have to know their turns.
                let is_long = turns > MOST_UNROLLED_TURNS
                    || kernel.values.len() as u64 * turns * vector > UNROLLED_OPERATIONS;
                let is_free = self.schedule.shared_bytes > 0 && is_long;
                let hint = if is_free { LoopHint::UnrollBy(4) } else { LoopHint::Unroll };
                counting(self.turn, 0, turns, hint).of(body)
            }
        });
        accumulators
    }

    /// What is done with the elements at one position, all lanes.
    fn elements(
        &self,
        emitter: &mut Emitter<'a>,
        kernel: &'a Kernel,
        pass: &Pass,
        accumulators: &[Accumulator],
        inside: Option<Expr>,
    ) {
        let stores: Vec<&Store> = pass.stores.iter().map(|&store| &kernel.stores[store]).collect();
        lanes_and_stores(emitter, kernel, &stores, inside, |emitter| {
            for (&reduction, accumulator) in pass.reductions.iter().zip(accumulators) {
                accumulator.take(emitter, reduction, None, None);
            }
        });
    }

    fn merge_threads(&self, emitter: &mut Emitter, accumulator: &Accumulator) {
        accumulator.merge_by_shuffles(emitter, self.schedule.threads_per_row.min(32));
        accumulator.merge_by_shared_memory(emitter, self.schedule.threads_per_row / 32, "shared");
    }

    /// Every block leaves its partial results; the last one of a row merges all of them in order.
    fn merge_splits(&self, emitter: &mut Emitter, accumulators: &[Accumulator]) {
        let place = |part: Expr| mul_add(self.row, all_parts(), part);
        let first = Builtin::ThreadX.then(Equal, 0);
        emitter.open(&[], false);
        save(emitter, accumulators, None, &place(own_part()));
        let then = emitter.close();
        emitter.push(Stmt::If { condition: first, then, otherwise: Vec::new() });
        self.arrivals.arrive(emitter);
        accumulators.iter().for_each(|accumulator| accumulator.reset(emitter));
        let parts = Parts::of_thread(Builtin::ThreadX, self.schedule.threads_per_row);
        parts.merge(emitter, |emitter, part| load(emitter, accumulators, None, &place(part.clone())));
        for accumulator in accumulators {
            accumulator.merge_by_shuffles(emitter, self.schedule.threads_per_row.min(32));
            accumulator.merge_by_shared_memory(emitter, self.schedule.threads_per_row / 32, "final");
        }
    }
}
