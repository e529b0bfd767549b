//! Scans on CUDA. Along the innermost axis a block goes along a row tile by tile: each thread scans its own elements,
//! the threads scan their totals, and what came before is carried on. Along another axis neighbouring threads hold
//! neighbouring columns, and a column's parts are first combined, then scanned from what the parts before gave.
//! Recurrences can be neither combined nor divided: one thread runs each loop, along whichever axis.

use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::launch_over;
use super::persistent::{Place, RowCache};
use super::pointwise::{lane_axis, lanes_and_stores, split_lanes, unrolled_lanes};
use super::recurrence_cuda::Tiles;
use super::scan::{Scans, Totals};
use super::stmt::Arithmetic::{Add, Div, Equal, Less, LessEqual, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::index::IndexExpr;
use crate::ir::{AxisKind, Kernel, Store, ValueId, ValueOp};
use crate::schedule::{Launch, ScanSchedule};
use crate::{Language, Refusal};

pub(super) fn build(scalar: &Kernel, scans: &Scans, schedule: &ScanSchedule) -> Result<Nest, Refusal> {
    let shares_rows = scans.is_innermost && !scans.is_sequential;
    let kernel = match shares_rows {
        true => split_lanes(scalar, Some(scans.axis), schedule.vector),
        false => scalar.clone(),
    };
    // A part of a row has one total, a part of a column one for each thread.
    let parts = match shares_rows {
        true => u64::from(schedule.splits),
        false => u64::from(schedule.splits) * u64::from(schedule.threads),
    };
    let totals = Totals::new(&kernel, scans, Language::Cuda, scans.rows(scalar) * parts);
    let writer = |emitter: &mut Emitter| {
        let row = emitter.index("row");
        Writer { scalar, kernel: &kernel, scans, schedule, totals: &totals, row }
    };
    let launch = Launch {
        per_block: u64::from(schedule.rows),
        splits: schedule.splits,
        block: match shares_rows {
            true => [schedule.threads, schedule.rows, 1],
            false => [schedule.rows, schedule.threads, 1],
        },
        ..launch_over(scalar, &scans.others)
    };
    let mut functions = Vec::new();
    if schedule.splits > 1 {
        let mut emitter = Emitter::new(&kernel, Language::Cuda);
        match shares_rows {
            true => writer(&mut emitter).row_totals(&mut emitter),
            false => writer(&mut emitter).column_totals(&mut emitter),
        }
        let name = format!("{}_totals", kernel.name);
        functions.push(Function { name, body: emitter.finish()?, launch: launch.clone() });
    }
    let mut emitter = Emitter::new(&kernel, Language::Cuda);
    match shares_rows {
        true => writer(&mut emitter).rows(&mut emitter),
        false => writer(&mut emitter).columns(&mut emitter),
    }
    functions.push(Function::of(&kernel, emitter.finish()?, launch));
    let workspaces = if schedule.splits > 1 { totals.workspaces.clone() } else { Vec::new() };
    Ok(Nest::new(kernel, functions, workspaces))
}

/// A scan within a tile.
struct Scanned {
    /// Which.
    number: usize,
    /// The exclusive prefix of this thread's elements.
    prefix: Accumulator,
    /// The array of results within this thread's elements.
    part: Var,
    /// The array of what each warp comes to.
    shared: Var,
}

pub(super) struct Writer<'a> {
    pub(super) scalar: &'a Kernel,
    pub(super) kernel: &'a Kernel,
    pub(super) scans: &'a Scans,
    pub(super) schedule: &'a ScanSchedule,
    /// Of a divided axis.
    pub(super) totals: &'a Totals,
    /// The number of this thread's scan.
    pub(super) row: Var,
}

impl<'a> Writer<'a> {
    /// Binds the axes of this thread's scan; threads beyond the last one compute it too, but store nothing, so that
    /// all take part in barriers. Gives the condition to store.
    pub(super) fn bind_row(&self, emitter: &mut Emitter<'a>, number: Expr) -> Option<Expr> {
        let rows = emitter.positions(&self.scans.others);
        if self.schedule.rows == 1 {
            if !self.scans.others.is_empty() {
                emitter.bind(self.row, INDEX, number);
                emitter.unflatten(self.row, &self.scans.others, 1);
            }
            return None;
        }
        let inside = emitter.bind_within("own_row", self.row, number, rows);
        emitter.unflatten(self.row, &self.scans.others, 1);
        Some(inside)
    }

    fn columns(&self, emitter: &mut Emitter<'a>) {
        let inside = self.bind_column(emitter);
        let running = self.scans.declare(emitter, self.kernel, None);
        let carries = self.scans.declare_carries(emitter, self.kernel, None);
        let (along, once) = self.scans.stores(self.kernel);
        let mut prefixes: Vec<Option<Var>> = vec![None; running.len()];
        let (mut from, mut to) = (Expr::Int(0), emitter.extent(self.scans.axis));
        if self.schedule.threads > 1 {
            (from, to) = self.bind_column_part(emitter);
            match self.schedule.splits {
                1 => (0..self.scans.stage_count()).for_each(|stage| {
                    self.scan_parts(emitter, &running, &mut prefixes, stage, (&from, &to));
                }),
                _ => self.take_column_parts(emitter, &running),
            }
        }
        if self.schedule.tile > 0 {
            let (rows, steps) = (u64::from(self.schedule.rows), u64::from(self.schedule.tile));
            let tile = emitter.index("tile");
            let tiles = Tiles { kernel: self.kernel, scans: self.scans, rows, steps, tile };
            tiles.run_steps(emitter, &running, &carries, &along, inside.clone());
        } else {
            // The condition is outside of the loop, so that elements are loaded some steps ahead.
            emitter.under(inside.clone(), |emitter| {
                let sweep = self.sweep(emitter, &from, &to, |emitter| {
                    carries.begin_step(emitter, None);
                    self.scans.advance(emitter, self.kernel, &running, None, None);
                    carries.end_step(emitter, None, |emitter| {
                        emitter.open_pinned();
                        along.iter().for_each(|store| emitter.store(store));
                        let stores = emitter.close();
                        emitter.append(stores);
                    });
                });
                emitter.push(sweep);
            });
        }
        let end = carries.end(emitter, None, &once);
        emitter.guarded(inside, end);
    }

    /// Binds the axes of this thread's column.
    pub(super) fn bind_column(&self, emitter: &mut Emitter<'a>) -> Option<Expr> {
        let width = Expr::Int(u64::from(self.schedule.rows));
        let number = mul_add(Builtin::BlockX, width, Builtin::ThreadX);
        self.bind_row(emitter, number)
    }

    /// The number of this thread's part of a column.
    pub(super) fn column_part(&self) -> Expr {
        let y = Expr::Builtin(Builtin::ThreadY);
        match self.schedule.splits {
            1 => y,
            _ => mul_add(Builtin::BlockY, u64::from(self.schedule.threads), y),
        }
    }

    /// Where this thread's part of a column begins and ends.
    pub(super) fn bind_column_part(&self, emitter: &mut Emitter<'a>) -> (Expr, Expr) {
        let threads = Expr::Int(u64::from(self.schedule.threads));
        let extent = emitter.extent(self.scans.axis);
        let length = match self.schedule.splits {
            1 => extent.clone().then(Add, threads.clone().then(Sub, 1)).then(Div, threads.clone()),
            _ => {
                let parts = Builtin::GridY.then(Mul, threads.clone());
                extent.clone().then(Add, parts.clone()).then(Sub, 1).then(Div, parts)
            }
        };
        let length = emitter.bind("length", INDEX, length);
        let from = emitter.bind("from", INDEX, self.column_part().then(Mul, length));
        let end = from.then(Add, length).then(Min, extent);
        let to = emitter.bind("to", INDEX, end);
        (Expr::Name(from), Expr::Name(to))
    }

    /// The threads' running results of a column become those up to each thread, in order.
    pub(super) fn combine_column_threads(
        &self,
        emitter: &mut Emitter<'a>,
        running: &[&Accumulator],
        count: Expr,
    ) {
        let (width, threads) = (u64::from(self.schedule.rows), u64::from(self.schedule.threads));
        let (x, y) = (Expr::Builtin(Builtin::ThreadX), Expr::Builtin(Builtin::ThreadY));
        let share = |running: &&Accumulator| {
            let ty = Type::Register(running.dtype);
            let array = emitter.shared("shared", running.name(), ty, width * threads);
            let slot = mul_add(y.clone(), width, x.clone());
            emitter.push(set(Expr::element(array, slot), running.place(None)));
            array
        };
        let shared: Vec<Var> = running.iter().map(share).collect();
        emitter.push(Stmt::Barrier);
        running.iter().for_each(|running| running.reset(emitter));
        let part = emitter.index("part");
        emitter.repeat(counting(part, 0, count, LoopHint::None), |emitter| {
            for (running, name) in running.iter().zip(&shared) {
                let slot = mul_add(part, width, x.clone());
                running.take_value(emitter, Expr::element(name, slot), None);
            }
        });
    }

    /// What each part of a column comes to, for the scans of a stage: their running results become what the parts
    /// before give. Scans of the stages before know that already, and begin there in each pass.
    fn scan_parts(
        &self,
        emitter: &mut Emitter<'a>,
        running: &[Accumulator],
        prefixes: &mut [Option<Var>],
        stage: usize,
        (from, to): (&Expr, &Expr),
    ) {
        let sweep = self.sweep(emitter, from, to, |emitter| {
            self.scans.advance(emitter, self.kernel, running, None, Some(stage));
        });
        emitter.push(sweep);
        let of_stage: Vec<&Accumulator> = self.scans.of_stage(stage).map(|number| &running[number]).collect();
        self.combine_column_threads(emitter, &of_stage, Expr::Builtin(Builtin::ThreadY));
        for (running, prefix) in running.iter().zip(prefixes.iter()) {
            if let Some(prefix) = prefix {
                emitter.push(set(running.place(None), prefix));
            }
        }
        if stage + 1 < self.scans.stage_count() {
            for number in self.scans.of_stage(stage) {
                let (prefix, running) = (emitter.fresh("prefix"), &running[number]);
                emitter.bind(prefix, Type::Register(running.dtype), running.place(None));
                prefixes[number] = Some(prefix);
            }
        }
    }

    /// A loop along a part of a column.
    pub(super) fn sweep(
        &self,
        emitter: &mut Emitter<'a>,
        from: &Expr,
        to: &Expr,
        body: impl FnOnce(&mut Emitter<'a>),
    ) -> Stmt {
        let step = self.scans.step_name(emitter);
        emitter.open(&[], false);
        self.scans.bind_position(emitter, step);
        emitter.bind_axes(&[self.scans.axis]);
        body(emitter);
        let body = emitter.close();
        counting(step, from.clone(), to.clone(), LoopHint::UnrollBy(8)).of(body)
    }

    fn rows(&self, emitter: &mut Emitter<'a>) {
        let (threads, vector) = (u64::from(self.schedule.threads), u64::from(self.schedule.vector));
        let (x, y) = (Expr::Builtin(Builtin::ThreadX), Expr::Builtin(Builtin::ThreadY));
        let several = self.schedule.rows > 1;
        let block = Expr::Builtin(Builtin::BlockX);
        let number = match several {
            true => mul_add(block, u64::from(self.schedule.rows), y.clone()),
            false => block,
        };
        let own_row = self.bind_row(emitter, number);
        let axis = self.scalar.axis(self.scans.axis);
        let tile = threads * vector;
        let is_single = !axis.is_argument && axis.extent <= tile;
        // Elements of the tile that the scan and the results need stay in registers between them.
        emitter.cache(RowCache::new(
            self.scanned_loads(),
            Vec::new(),
            Place::Registers { turn: Expr::Int(0), turns: 1 },
        ));
        let carries = match is_single {
            true => Vec::new(),
            false => self.scans.declare(emitter, self.kernel, None),
        };
        let (mut from, mut to) = (Expr::Int(0), emitter.extent(self.scans.axis));
        if self.schedule.splits > 1 {
            (from, to) = self.bind_row_part(emitter);
            self.take_row_parts(emitter, &carries);
        }
        let tile_start = emitter.index("tile");
        emitter.open(&[], false);
        let position = x.clone().then(Mul, vector);
        let first = if is_single { position } else { tile_start.then(Add, position) };
        let step = emitter.bind("step", INDEX, first);
        let in_row = step.then(Less, to.clone());
        let mut scanned: Vec<Scanned> = Vec::new();
        for stage in 0..self.scans.stage_count() {
            self.scan_tile(emitter, (step, &in_row), &mut scanned, &carries, stage);
        }
        self.open_elements(emitter, step);
        let stores: Vec<&Store> = self.kernel.stores.iter().collect();
        lanes_and_stores(emitter, self.kernel, &stores, own_row, |emitter| {
            self.define(emitter, &scanned, &self.lane());
        });
        let then = emitter.close();
        emitter.guarded(Some(in_row), then);
        if !is_single {
            // The next tile overwrites what the warps have left.
            emitter.push(Stmt::Barrier);
        }
        let body = emitter.close();
        match is_single {
            true => emitter.append(body),
            false => emitter.push(stepping(tile_start, (from, to), tile, LoopHint::None).of(body)),
        }
    }

    /// The scans of a stage within a tile: each thread's own elements, then the exclusive prefix over threads.
    fn scan_tile(
        &self,
        emitter: &mut Emitter<'a>,
        (step, in_row): (Var, &Expr),
        scanned: &mut Vec<Scanned>,
        carries: &[Accumulator],
        stage: usize,
    ) {
        let warps = u64::from(self.schedule.threads) / 32;
        let (x, y) = (Expr::Builtin(Builtin::ThreadX), Expr::Builtin(Builtin::ThreadY));
        let several = self.schedule.rows > 1;
        // Each thread's own elements: the results so far, and in all.
        let mut own: Vec<(usize, Accumulator, Var)> = Vec::new();
        for number in self.scans.of_stage(stage) {
            let Some(total) = self.scans.declare_one(emitter, self.kernel, number, None) else { continue };
            let (part, ty) = (emitter.fresh("part"), Type::Register(total.dtype));
            emitter.array(part, ty, u64::from(self.schedule.vector));
            own.push((number, total, part));
        }
        self.open_elements(emitter, step);
        self.for_lanes(emitter, |emitter, lane| {
            self.define(emitter, scanned, &lane);
            for (number, total, part) in &own {
                let id = self.scans.ids[*number];
                let ValueOp::Scan { operand, exclusive, .. } = self.kernel.value(id).op else { continue };
                let value = emitter.value(operand);
                let keep = set(Expr::element(part, lane.clone()), total.place(None));
                if exclusive {
                    emitter.push(keep.clone());
                }
                total.take_value(emitter, value, None);
                if !exclusive {
                    emitter.push(keep);
                }
            }
        });
        let then = emitter.close();
        emitter.guarded(Some(in_row.clone()), then);
        // The threads' totals, scanned within each warp; then the exclusive prefix over warps.
        let warp = x.clone().then(Div, 32);
        let slot = |index: Expr| match several {
            true => mul_add(y.clone(), warps, index),
            false => index,
        };
        let first = scanned.len();
        for (number, total, part) in own {
            let Some(prefix) = self.scans.declare_one(emitter, self.kernel, number, None) else { continue };
            self.scan_warp(emitter, &total, &prefix);
            let len = warps * u64::from(self.schedule.rows);
            let shared = emitter.shared("shared", total.name(), Type::Register(total.dtype), len);
            let last = x.clone().then(Rem, 32).then(Equal, 31);
            let write = set(Expr::element(shared, slot(warp.clone())), total.place(None));
            emitter.push(Stmt::If { condition: last, then: vec![write], otherwise: Vec::new() });
            scanned.push(Scanned { number, prefix, part, shared });
        }
        emitter.push(Stmt::Barrier);
        for Scanned { number, prefix, shared, .. } in &scanned[first..] {
            if warps > 1 {
                let w = emitter.index("w");
                emitter.repeat(counting(w, 0, warp.clone(), LoopHint::None), |emitter| {
                    prefix.take_value(emitter, Expr::element(shared, slot(Expr::Name(w))), None);
                });
            }
            if let Some(carry) = carries.get(*number) {
                prefix.take_value(emitter, carry.place(None), None);
                let w = emitter.index("w");
                emitter.repeat(counting(w, 0, warps, LoopHint::Unroll), |emitter| {
                    carry.take_value(emitter, Expr::element(shared, slot(Expr::Name(w))), None);
                });
            }
        }
    }

    /// The values of scans at one of this thread's elements.
    fn define(&self, emitter: &mut Emitter, scanned: &[Scanned], lane: &Expr) {
        for Scanned { number, prefix, part, .. } in scanned {
            let own = emitter.named(Expr::element(part, lane.clone()), prefix.dtype);
            let value = prefix.combined(emitter, prefix.place(None), own);
            let value = emitter.named(value, prefix.dtype);
            emitter.define(self.scans.ids[*number], value);
        }
    }

    /// Opens the scope of this thread's elements of a tile.
    pub(super) fn open_elements(&self, emitter: &mut Emitter<'a>, step: Var) {
        emitter.open(&[], false);
        let vector = u64::from(self.schedule.vector);
        match self.scans.reverse && vector > 1 {
            false => self.scans.bind_position(emitter, step),
            // Of the vectors from the end on, each from its first element on.
            true => {
                let vectors = emitter.extent(self.scans.axis).then(Div, vector);
                let after = step.then(Div, vector);
                let number = vectors.then(Sub, 1).then(Sub, after);
                emitter.bind(self.scans.axis, INDEX, number.then(Mul, vector));
            }
        }
        emitter.bind_axes(&[self.scans.axis]);
        if vector > 1 {
            emitter.multiples.insert(self.scans.axis, vector as i64);
        }
    }

    fn lane(&self) -> Expr {
        match lane_axis(self.kernel) {
            Some(_) => Expr::name(Var::Lane),
            None => Expr::Int(0),
        }
    }

    pub(super) fn for_lanes(&self, emitter: &mut Emitter<'a>, body: impl FnOnce(&mut Emitter<'a>, Expr)) {
        let Some(axis) = lane_axis(self.kernel) else { return body(emitter, Expr::Int(0)) };
        emitter.open(&[axis], true);
        body(emitter, Expr::name(Var::Lane));
        let mut body = emitter.close();
        let lanes = u64::from(self.schedule.vector);
        let lanes = match self.scans.reverse {
            false => unrolled_lanes(lanes, body),
            // The last lane comes first.
            true => {
                let turn = emitter.index("turn");
                let value = Expr::Int(lanes - 1).then(Sub, turn);
                body.insert(0, Stmt::Let { var: Var::Lane, value });
                counting(turn, 0, lanes, LoopHint::Unroll).of(body)
            }
        };
        emitter.push(lanes);
    }

    /// Makes each thread's total the one up to and with this thread, within its warp; the prefix gets that of the
    /// thread before.
    fn scan_warp(&self, emitter: &mut Emitter<'a>, total: &Accumulator, prefix: &Accumulator) {
        let lane = || Builtin::ThreadX.then(Rem, 32);
        let up = |delta: Expr| Expr::ShuffleUp { value: Box::new(total.place(None)), delta: Box::new(delta) };
        let delta = emitter.index("delta");
        emitter.open(&[], false);
        let before = emitter.named(up(Expr::Name(delta)), total.dtype);
        emitter.open(&[], false);
        total.take_value(emitter, before, None);
        let then = emitter.close();
        let condition = delta.then(LessEqual, lane());
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(stepping(delta, (1, 32), delta, LoopHint::Unroll).of(body));
        let before = emitter.named(up(Expr::Int(1)), total.dtype);
        let then = vec![set(prefix.place(None), before)];
        emitter.push(Stmt::If { condition: Expr::Int(0).then(Less, lane()), then, otherwise: Vec::new() });
    }

    /// The unguarded loads that the scans' operands depend on, of one element at each position of the axis. What is looked up for
    /// each position is none: a thread's lanes come in together, and each of them is somewhere else.
    fn scanned_loads(&self) -> Vec<ValueId> {
        let is_own = |value: ValueId| self.kernel.value(value).axes.contains(&self.scans.axis);
        let is_one = |index: &IndexExpr| {
            index.uses(self.scans.axis)
                && !self.kernel.computed_axes(index).iter().any(|&(_, value)| is_own(value))
                && !index.axes().iter().any(|&axis| self.kernel.axis(axis).kind == AxisKind::Reduce)
        };
        let is_wanted = |id: &ValueId| matches!(&self.kernel.value(*id).op, ValueOp::Load { guard: None, index, .. } if is_one(index));
        let operands = self.scans.ids.iter().flat_map(|&id| self.kernel.operands(&self.kernel.value(id).op));
        self.kernel.down_from(operands).into_iter().filter(is_wanted).collect()
    }
}
