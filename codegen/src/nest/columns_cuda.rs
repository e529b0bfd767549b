//! Reductions of columns on CUDA: neighbouring threads hold neighbouring columns and go down
//! together; a second thread dimension shares a column.

use super::accumulate::{Accumulator, load, mul_add, save, set};
use super::emitter::Emitter;
use super::loops::{counting, halving, stepping};
use super::passes::{Pass, Plan, lane_of, launch_items, partial_workspaces};
use super::pointwise::{lane_axis, lanes_and_stores, split_lanes, unrolled_lanes};
use super::split::{Arrivals, Parts, interleaved, own_part, with_arrivals};
use super::stmt::Arithmetic::{Add, And, Div, Equal, Less, Mul};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::tile::{ACCESS_BYTES, chunks};
use super::variable::Var;
use super::{Function, Nest, Parameter};
use crate::DType;
use crate::index::AxisId;
use crate::ir::{Kernel, Store};
use crate::schedule::{ColumnSchedule, Launch, WorkItems};
use crate::{Language, Refusal};

/// Threads of a column whose partial results are merged without a loop.
const MOST_UNROLLED: u64 = 32;

/// Threads of a column that each merge the partial results of all, where these are single numbers: that is as fast as by halves,
/// with a barrier for each. Of three numbers and 64 threads it took ten times as long as all else on an H200.
const MOST_IN_ORDER: u64 = 8;

struct CudaColumns<'a> {
    kernel: &'a Kernel,
    plan: &'a Plan,
    schedule: &'a ColumnSchedule,
    lane: Option<AxisId>,
    groups: Expr,
    /// The number of this thread's.
    group: Var,
    /// Where there are parts.
    arrivals: Arrivals,
}

pub(super) fn build(scalar: &Kernel, plan: &Plan, schedule: &ColumnSchedule) -> Result<Nest, Refusal> {
    let kernel = split_lanes(scalar, plan.map.last().copied(), schedule.vector);
    let columns = launch_items(scalar, &plan.map);
    let launch = Launch {
        items: WorkItems::of(scalar, &plan.map).divided(u64::from(schedule.vector)),
        per_block: u64::from(schedule.threads_x),
        splits: schedule.splits,
        block: [schedule.threads_x, schedule.threads_y, 1],
        ..Launch::default()
    };
    let mut workspaces = Vec::new();
    if schedule.splits > 1 {
        let elements = columns * u64::from(schedule.splits);
        let partials = partial_workspaces(&kernel, Language::Cuda, &plan.reductions(), elements);
        workspaces = with_arrivals(partials, launch.grid()[0]);
    }
    let mut emitter = Emitter::new(&kernel, Language::Cuda);
    let groups = match plan.map.split_last() {
        Some((&last, outer)) => {
            let inner = match scalar.axis(last).is_argument {
                true => emitter.extent(last).then(Div, u64::from(schedule.vector)),
                false => Expr::Int(scalar.axis(last).extent / u64::from(schedule.vector)),
            };
            emitter.positions(outer).then(Mul, inner)
        }
        None => Expr::Int(1),
    };
    let group = emitter.index("group");
    let writer = CudaColumns {
        kernel: &kernel,
        plan,
        schedule,
        lane: lane_axis(&kernel),
        groups,
        group,
        arrivals: Arrivals::at(&workspaces, Expr::Builtin(Builtin::BlockX)),
    };
    writer.body(&mut emitter);
    let body = emitter.finish()?;
    let functions = vec![Function::of(&kernel, body, launch)];
    Ok(Nest::new(kernel, functions, workspaces))
}

impl CudaColumns<'_> {
    fn lanes(&self) -> Option<u64> {
        self.lane.map(|axis| self.kernel.axis(axis).extent)
    }

    /// Runs `body` for each lane, or once without lanes.
    fn for_each_lane(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter, Option<&Expr>)) {
        match self.lane {
            None => body(emitter, None),
            Some(axis) => {
                emitter.open(&[axis], true);
                body(emitter, Some(&Expr::name(Var::Lane)));
                let body = emitter.close();
                emitter.push(unrolled_lanes(self.kernel.axis(axis).extent, body));
            }
        }
    }

    fn body(&self, emitter: &mut Emitter) {
        let kernel = self.kernel;
        let group = mul_add(Builtin::BlockX, u64::from(self.schedule.threads_x), Builtin::ThreadX);
        // Threads beyond the last column go down it too, so that all take part in the barriers.
        let inside = emitter.bind_within("own_group", self.group, group, self.groups.clone());
        emitter.unflatten(self.group, &self.plan.map, u64::from(self.schedule.vector));
        for pass in &self.plan.passes {
            let accumulators = pass.declare(emitter, kernel, self.lanes());
            self.sweep(emitter, pass, &accumulators, &inside);
            for accumulator in &accumulators {
                self.merge_threads(emitter, accumulator, "shared");
            }
            if self.schedule.splits > 1 {
                self.merge_splits(emitter, &accumulators, &inside);
            }
            for accumulator in accumulators.iter().filter(|accumulator| accumulator.settles()) {
                self.for_each_lane(emitter, |emitter, lane| accumulator.settle(emitter, lane));
            }
            pass.define(emitter, &accumulators, |id| self.lane.map(|axis| lane_of(kernel, id, Some(axis))));
        }
        if !self.plan.results.is_empty() {
            let first = Builtin::ThreadY.then(Equal, 0);
            emitter.open_pinned();
            let stores: Vec<&Store> = self.plan.results.iter().map(|&store| &kernel.stores[store]).collect();
            lanes_and_stores(emitter, kernel, &stores, None, |_| {});
            let then = emitter.close();
            emitter.push(Stmt::If { condition: first.then(And, inside), then, otherwise: Vec::new() });
        }
        if self.schedule.splits > 1 {
            let thread = Builtin::ThreadX.then(Add, Builtin::ThreadY);
            self.arrivals.reset_by(emitter, thread);
        }
    }

    fn sweep(&self, emitter: &mut Emitter, pass: &Pass, accumulators: &[Accumulator], inside: &Expr) {
        pass.bind_invariants(emitter, self.kernel, &self.plan.map);
        let threads = u64::from(self.schedule.threads_y);
        let thread = if threads == 1 { Expr::Int(0) } else { Expr::Builtin(Builtin::ThreadY) };
        let (from, step) = interleaved(self.schedule.splits, thread, threads);
        let flat = self.plan.sweep_name(emitter);
        let to = emitter.positions(&self.plan.axes);
        // All lanes have counted as many: one division for all of them.
        let welford = Accumulator::common_welford(accumulators).filter(|_| self.lane.is_some());
        let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
        emitter.repeat(stepping(flat, (from, to), step, LoopHint::UnrollBy(4)), |emitter| {
            emitter.unflatten(flat, &self.plan.axes, 1);
            let stores: Vec<&Store> = pass.stores.iter().map(|&store| &self.kernel.stores[store]).collect();
            let lane = self.lane.map(|_| Expr::name(Var::Lane));
            let weight =
                welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
            lanes_and_stores(emitter, self.kernel, &stores, Some(inside.clone()), |emitter| {
                for (&id, accumulator) in pass.reductions.iter().zip(accumulators) {
                    accumulator.take(emitter, id, lane.as_ref(), weight.as_ref());
                }
            });
        });
        if let Some(steps) = &steps {
            accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
        }
    }

    /// Merges the partial results of the threads of each column; all get the result. Those of few threads are merged in their order by
    /// each of them, others by halves.
    fn merge_threads(&self, emitter: &mut Emitter, accumulator: &Accumulator, prefix: &str) {
        if self.schedule.threads_y == 1 {
            return;
        }
        let lanes = self.lanes().unwrap_or(1);
        let width = u64::from(self.schedule.threads_x) * lanes;
        let rows = u64::from(self.schedule.threads_y);
        let shared = accumulator.declare_shared(emitter, prefix, width * rows);
        let slot = |thread: Expr, lane: Option<&Expr>| {
            let column = Builtin::ThreadX.then(Mul, lanes);
            let column = lane.map_or(column.clone(), |lane| column.then(Add, lane.clone()));
            thread.then(Mul, width).then(Add, column)
        };
        let leave = |emitter: &mut Emitter| {
            self.for_each_lane(emitter, |emitter, lane| {
                for (part, array) in shared.iter().enumerate() {
                    let target = Expr::element(array, slot(Expr::Builtin(Builtin::ThreadY), lane));
                    emitter.push(set(target, accumulator.part(part, lane)));
                }
            });
        };
        let merge = |emitter: &mut Emitter, thread: Expr| {
            self.for_each_lane(emitter, |emitter, lane| {
                let place = |part: usize| Expr::element(shared[part], slot(thread.clone(), lane));
                accumulator.merge(emitter, lane, &place);
            });
        };
        leave(emitter);
        emitter.push(Stmt::Barrier);
        if rows <= MOST_IN_ORDER && shared.len() == 1 || !rows.is_power_of_two() {
            accumulator.reset(emitter);
            let y = emitter.index("y");
            let hint = if rows <= MOST_UNROLLED { LoopHint::Unroll } else { LoopHint::UnrollBy(8) };
            emitter.repeat(counting(y, 0, Expr::Int(rows), hint), |emitter| merge(emitter, Expr::Name(y)));
            return;
        }
        let half = emitter.index("half");
        emitter.repeat(halving(half, rows / 2, LoopHint::Unroll), |emitter| {
            let is_first = || Some(Builtin::ThreadY.then(Less, half));
            emitter.under(is_first(), |emitter| merge(emitter, Builtin::ThreadY.then(Add, half)));
            emitter.push(Stmt::Barrier);
            emitter.under(is_first(), leave);
            emitter.push(Stmt::Barrier);
        });
        self.for_each_lane(emitter, |emitter, lane| {
            accumulator.copy(emitter, lane, &|part| Expr::element(shared[part], slot(Expr::Int(0), lane)));
        });
    }

    /// Every block leaves its partial results; the last one of some columns merges all in order.
    fn merge_splits(&self, emitter: &mut Emitter, accumulators: &[Accumulator], inside: &Expr) {
        let lanes = self.lanes().unwrap_or(1);
        let place = |split: Expr| mul_add(split, self.groups.clone(), self.group).then(Mul, lanes);
        let place_in = |split: Expr, lane: Option<&Expr>| {
            lane.map_or(place(split.clone()), |lane| place(split.clone()).then(Add, lane.clone()))
        };
        // Numbers that are in memory what they are in registers.
        let is_plain = |(own, part): (&Accumulator, usize)| own.part_dtype(part).size() >= 4;
        let in_vectors = self.lane.is_some() && parts_of(accumulators).all(is_plain);
        emitter.open(&[], false);
        match in_vectors {
            true => self.save_vectors(emitter, accumulators, &place(own_part())),
            false => self.for_each_lane(emitter, |emitter, lane| {
                save(emitter, accumulators, lane, &place_in(own_part(), lane));
            }),
        }
        let then = emitter.close();
        let first = Builtin::ThreadY.then(Equal, 0);
        emitter.push(Stmt::If { condition: first.then(And, inside.clone()), then, otherwise: Vec::new() });
        self.arrivals.arrive(emitter);
        accumulators.iter().for_each(|accumulator| accumulator.reset(emitter));
        let parts = Parts::of_thread(Builtin::ThreadY, self.schedule.threads_y);
        parts.merge(emitter, |emitter, part| {
            let at = place(part.clone());
            match in_vectors {
                true => self.load_vectors(emitter, accumulators, &at),
                false => self.for_each_lane(emitter, |emitter, lane| {
                    load(emitter, accumulators, lane, &place_in(part.clone(), lane));
                }),
            }
        });
        for accumulator in accumulators {
            self.merge_threads(emitter, accumulator, "final");
        }
    }

    /// A thread's neighbouring columns have their partial results side by side: they are written by whole vectors.
    fn save_vectors(&self, emitter: &mut Emitter, accumulators: &[Accumulator], first: &Expr) {
        let arrays = self.arrays(emitter, accumulators);
        for ((accumulator, part), (array, dtype)) in parts_of(accumulators).zip(&arrays) {
            self.for_each_lane(emitter, |emitter, lane| {
                let value = Expr::ToMemory(*dtype, Box::new(accumulator.part(part, lane)));
                emitter.push(set(Expr::element(*array, Var::Lane), value));
            });
        }
        self.access(emitter, &arrays, first, true);
    }

    /// The same of those that are read: all are on their way before the first is merged.
    fn load_vectors(&self, emitter: &mut Emitter, accumulators: &[Accumulator], first: &Expr) {
        let arrays = self.arrays(emitter, accumulators);
        self.access(emitter, &arrays, first, false);
        self.for_each_lane(emitter, |emitter, lane| {
            let mut own = arrays.as_slice();
            for accumulator in accumulators {
                accumulator.merge(emitter, lane, &|part| {
                    let (array, dtype) = own[part];
                    Expr::FromMemory(dtype, Box::new(Expr::element(array, Var::Lane)))
                });
                own = &own[accumulator.parts.len()..];
            }
        });
    }

    /// An array of a thread's lanes for each part.
    fn arrays(&self, emitter: &mut Emitter, accumulators: &[Accumulator]) -> Vec<(Var, DType)> {
        let lanes = self.lanes().unwrap_or(1);
        let array = |(accumulator, part): (&Accumulator, usize)| {
            let (array, dtype) = (emitter.fresh("partial"), accumulator.part_dtype(part));
            emitter.array(array, Type::Memory(dtype), lanes);
            (array, dtype)
        };
        parts_of(accumulators).map(array).collect()
    }

    /// Stores such arrays to their workspaces, or loads them, from this element on.
    fn access(&self, emitter: &mut Emitter, arrays: &[(Var, DType)], first: &Expr, is_store: bool) {
        for (number, &(array, dtype)) in arrays.iter().enumerate() {
            for (offset, width) in chunks(self.lanes().unwrap_or(1), ACCESS_BYTES / dtype.size() as u64) {
                let (at, index) = (Expr::Int(offset), first.clone().then(Add, Expr::Int(offset)));
                let buffer = Parameter::Workspace(number).into();
                emitter.push(match is_store {
                    true => Stmt::VectorStore { array, at, buffer, index, dtype, width },
                    false => Stmt::VectorLoad { array, at, buffer, index, dtype, width },
                });
            }
        }
    }
}

/// The parts of all partial results, in the order of their workspaces.
fn parts_of(accumulators: &[Accumulator]) -> impl Iterator<Item = (&Accumulator, usize)> {
    accumulators
        .iter()
        .flat_map(|accumulator| (0..accumulator.parts.len()).map(move |part| (accumulator, part)))
}
