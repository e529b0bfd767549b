//! Scatters on CUDA: a block has a range of positions and some columns, and partial results in shared memory, a set for
//! each warp. The lanes of a warp have neighbouring columns, or, where there are none, neighbouring elements; those of
//! them that meet at one position take turns. So the order of every sum follows from the sizes.

mod atomic;
mod collected;

use super::accumulate::{mul_add, set};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::launch_items;
use super::scatter::workspaces as partial_workspaces;
use super::scatter::{Partials, Scatters, TRUTH, bind_digits, offset, scaled, workspace};
use super::split::{Arrivals, Parts, all_parts, interleaved, own_part, with_arrivals};
use super::stmt::Arithmetic::{Add, And, Div, Equal, Less, Mul, Rem};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use super::{Body, Function, INDEX, Nest};
use crate::ir::Kernel;
use crate::schedule::{Launch, ScatterSchedule};
use crate::{Language, Refusal};

const LANES: u64 = 32;

pub(super) fn build(
    kernel: &Kernel,
    scatters: &Scatters,
    schedule: &ScatterSchedule,
) -> Result<Nest, Refusal> {
    if schedule.is_atomic {
        return atomic::build(kernel, scatters);
    }
    let columns = launch_items(kernel, &scatters.inner).max(1);
    let mut emitter = Emitter::new(kernel, Language::Cuda);
    let rows = emitter.positions(&scatters.outer);
    let (ranges, tiles) = (
        kernel.axis(scatters.axis).extent.div_ceil(schedule.positions).max(1),
        columns.div_ceil(schedule.columns),
    );
    let digits = [("row", &rows), ("range", &Expr::Int(ranges)), ("tile", &Expr::Int(tiles))];
    let [row, range, tile] = bind_digits(&mut emitter, Expr::Builtin(Builtin::BlockX), digits);
    scatters.bind_row(&mut emitter, &row);
    let writer = Writer {
        kernel,
        scatters,
        schedule,
        shared: scatters.partials(kernel, |_| emitter.fresh("shared")),
        partials: scatters.partials(kernel, workspace),
        ranges,
        range,
        tile,
        thread: emitter.index("thread"),
        slot: emitter.index("slot"),
        columns,
    };
    let launch = Launch {
        splits: schedule.splits,
        block: [LANES as u32, schedule.warps, 1],
        ..scatters.launch(kernel, ranges * tiles)
    };
    let mut workspaces = Vec::new();
    if schedule.splits > 1 {
        let blocks = launch.items.count();
        let elements = blocks * u64::from(schedule.splits) * writer.results();
        workspaces = with_arrivals(partial_workspaces(&writer.partials, elements), blocks);
    }
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, writer.body(emitter)?, launch)], workspaces))
}

struct Writer<'a> {
    kernel: &'a Kernel,
    scatters: &'a Scatters,
    schedule: &'a ScatterSchedule,
    /// In shared memory.
    shared: Vec<Partials>,
    /// In the workspaces.
    partials: Vec<Partials>,
    ranges: u64,
    /// The block's range of positions, and its tile of columns.
    range: Expr,
    tile: Expr,
    /// The number of a thread in its block.
    thread: Var,
    /// Which of the block's results a thread is at.
    slot: Var,
    columns: u64,
}

impl<'a> Writer<'a> {
    /// Results of a block.
    fn results(&self) -> u64 {
        self.schedule.positions * self.schedule.columns
    }

    fn body(&self, mut emitter: Emitter<'a>) -> Result<Body, Refusal> {
        let schedule = self.schedule;
        let (x, y) = (Expr::Builtin(Builtin::ThreadX), Expr::Builtin(Builtin::ThreadY));
        let warps = u64::from(schedule.warps);
        emitter.bind(
            self.thread,
            INDEX,
            offset(if warps > 1 { y } else { Expr::Int(0) }, Expr::Int(LANES), x),
        );
        let sets = self.sets();
        for shared in &self.shared {
            emitter.share(shared.array, Type::Register(shared.dtype), sets * self.results());
        }
        let slot = Expr::Name(self.slot);
        emitter.open(&[], false);
        self.shared.iter().for_each(|shared| shared.reset(&mut emitter, &slot));
        let body = emitter.close();
        emitter.push(self.for_slots(sets * self.results(), body));
        emitter.push(Stmt::Barrier);
        emitter.open_pinned();
        match (schedule.collected, schedule.columns) {
            (0, 1) => self.sweep_elements(&mut emitter),
            (0, _) => self.sweep_columns(&mut emitter),
            (each, _) => self.sweep_collected(&mut emitter, u64::from(each)),
        }
        let sweep = emitter.close();
        emitter.append(sweep);
        emitter.push(Stmt::Barrier);
        self.finish(&mut emitter);
        emitter.finish()
    }

    /// How many sets of results the block has.
    fn sets(&self) -> u64 {
        if self.schedule.collected > 0 { 1 } else { u64::from(self.schedule.warps) }
    }

    /// A loop of all threads over places in shared memory.
    fn for_slots(&self, slots: u64, body: Vec<Stmt>) -> Stmt {
        stepping(self.slot, (self.thread, slots), LANES * u64::from(self.schedule.warps), LoopHint::None)
            .of(body)
    }

    /// This warp's number among all that share the elements, and how many there are.
    fn warps(&self) -> (Expr, Expr) {
        let warps = u64::from(self.schedule.warps);
        let warp = if warps > 1 { Expr::Builtin(Builtin::ThreadY) } else { Expr::Int(0) };
        interleaved(self.schedule.splits, warp, warps)
    }

    /// Whether a position is this block's, and its place among the block's positions.
    fn place(&self, at: Var) -> (Option<Expr>, Expr) {
        let positions = || Expr::Int(self.schedule.positions);
        match self.ranges {
            1 => (None, Expr::Name(at)),
            _ => {
                let range = at.then(Div, positions());
                (Some(range.then(Equal, self.range.clone())), at.then(Rem, positions()))
            }
        }
    }

    /// This warp's set of partial results.
    fn own_set(&self) -> Expr {
        let warp = if self.sets() > 1 { Expr::Builtin(Builtin::ThreadY) } else { Expr::Int(0) };
        scaled(warp, Expr::Int(self.results()))
    }

    /// Binds a lane's column. Lanes beyond the last one do the same as it, and store nothing.
    fn bind_column(&self, emitter: &mut Emitter, own: Expr, of_block: u64) {
        let column = self.scatters.column_name(emitter);
        match self.columns.is_multiple_of(of_block) {
            true => drop(emitter.bind(column, INDEX, own)),
            false => drop(emitter.bind_within("own_column", column, own, Expr::Int(self.columns))),
        }
        emitter.unflatten(column, &self.scatters.inner, 1);
    }

    /// Binds a lane's element: beyond the last one that again, so that all read one. Gives whether it is the lane's own.
    fn bind_element(&self, emitter: &mut Emitter, number: Expr) -> Expr {
        let over = self.scatters.over;
        let inside = emitter.bind_within("own", over, number, emitter.extent(over));
        emitter.bind_axes(&[over]);
        inside
    }

    /// Combines the values at hand with what is at a slot.
    fn combine(&self, emitter: &mut Emitter, slot: &Expr) {
        for shared in &self.shared {
            let value = emitter.value(shared.operand);
            shared.combine(emitter, slot, value);
        }
    }

    /// Each lane has a column, and goes from element to element.
    fn sweep_columns(&self, emitter: &mut Emitter) {
        let scatters = self.scatters;
        let own = offset(self.tile.clone(), Expr::Int(LANES), Expr::Builtin(Builtin::ThreadX));
        self.bind_column(emitter, own, LANES);
        let (from, step) = self.warps();
        emitter.repeat_along(
            &[scatters.over],
            stepping(scatters.over, (from, emitter.extent(scatters.over)), step, LoopHint::UnrollBy(4)),
            |emitter| {
                let at = scatters.bind_position(emitter, "at");
                let (is_own, place) = self.place(at);
                emitter.under(is_own, |emitter| {
                    let own = offset(self.own_set(), Expr::Int(1), Expr::Builtin(Builtin::ThreadX));
                    self.combine(emitter, &mul_add(place, LANES, own));
                });
            },
        );
    }

    /// Each lane has an element of 32 that the warp goes on by.
    fn sweep_elements(&self, emitter: &mut Emitter) {
        let scatters = self.scatters;
        let start = emitter.index("start");
        emitter.open(&[], false);
        let extent = emitter.extent(scatters.over);
        // Lanes beyond the last element take no turn.
        let inside = self.bind_element(emitter, start.then(Add, Builtin::ThreadX));
        let at = scatters.bind_position(emitter, "at");
        let (is_own, place) = self.place(at);
        let active = is_own.map_or(inside.clone(), |is_own| inside.then(And, is_own));
        let is_active = emitter.bind("active", TRUTH, active);
        let nowhere = Expr::Int(self.schedule.positions);
        let active = Expr::Name(is_active);
        let place = Expr::Select(Box::new(active.clone()), Box::new(place), Box::new(nowhere));
        let place = emitter.bind("place", INDEX, place);
        if self.ranges == 1 {
            // All of them are needed: read before the turns.
            self.shared.iter().for_each(|shared| {
                emitter.value(shared.operand);
            });
        }
        emitter.open_pinned();
        self.combine(emitter, &offset(self.own_set(), Expr::Int(1), Expr::Name(place)));
        let body = emitter.close();
        emitter.push(Stmt::InTurns { key: Expr::Name(place), active, body });
        let body = emitter.close();
        let (from, step) = self.warps();
        emitter.push(
            stepping(start, (scaled(from, Expr::Int(LANES)), extent), step.then(Mul, LANES), LoopHint::None)
                .of(body),
        );
    }

    /// Merges the warps' partial results, and the blocks', each in their order, and computes what is stored.
    fn finish(&self, emitter: &mut Emitter) {
        let slot = || Expr::Name(self.slot);
        emitter.open(&[], false);
        let merged: Vec<_> = self.shared.iter().map(|shared| shared.declare(emitter)).collect();
        let number = emitter.index("set");
        emitter.open(&[], false);
        let at = if self.sets() > 1 { mul_add(number, self.results(), slot()) } else { slot() };
        for (shared, merged) in self.shared.iter().zip(&merged) {
            shared.merge(emitter, merged, &at);
        }
        let body = emitter.close();
        match self.sets() {
            1 => emitter.append(body),
            sets => {
                emitter.push(counting(number, 0, sets, LoopHint::Unroll).of(body));
            }
        }
        if self.schedule.splits == 1 {
            for (shared, merged) in self.shared.iter().zip(&merged) {
                emitter.define(shared.id, merged.result(None));
            }
            self.store(emitter);
            let body = emitter.close();
            emitter.push(self.for_slots(self.results(), body));
            return;
        }
        let block = Expr::Builtin(Builtin::BlockX);
        let place = |part: Expr| mul_add(mul_add(block.clone(), all_parts(), part), self.results(), slot());
        for (partials, merged) in self.partials.iter().zip(&merged) {
            let at = place(own_part());
            emitter.push(set(Expr::element(partials.array, at), merged.result(None)));
        }
        let body = emitter.close();
        emitter.push(self.for_slots(self.results(), body));
        let arrivals = Arrivals::of(self.partials.len(), block.clone());
        arrivals.arrive(emitter);
        emitter.open(&[], false);
        let merged: Vec<_> = self.partials.iter().map(|partials| partials.declare(emitter)).collect();
        Parts::all(all_parts()).ahead(8).merge(emitter, |emitter, part| {
            for (partials, merged) in self.partials.iter().zip(&merged) {
                partials.merge(emitter, merged, &place(part.clone()));
            }
        });
        for (partials, merged) in self.partials.iter().zip(&merged) {
            emitter.define(partials.id, merged.result(None));
        }
        self.store(emitter);
        let body = emitter.close();
        emitter.push(self.for_slots(self.results(), body));
        arrivals.reset_by(emitter, Expr::Name(self.thread));
    }

    /// Stores what follows from the results at a slot, if it is one.
    fn store(&self, emitter: &mut Emitter) {
        let (kernel, scatters, schedule) = (self.kernel, self.scatters, self.schedule);
        let mut conditions = Vec::new();
        let place = self.slot.then(Div, schedule.columns);
        let position = kernel.axis(scatters.axis);
        emitter.bind(scatters.axis, INDEX, offset(self.range.clone(), Expr::Int(schedule.positions), place));
        if !position.extent.is_multiple_of(schedule.positions) {
            conditions.push(Expr::name(scatters.axis).then(Less, position.extent));
        }
        let column = scatters.column_name(emitter);
        if schedule.columns > 1 {
            let within = self.slot.then(Rem, schedule.columns);
            emitter.bind(column, INDEX, offset(self.tile.clone(), Expr::Int(schedule.columns), within));
            if !self.columns.is_multiple_of(schedule.columns) {
                conditions.push(Expr::name(column).then(Less, self.columns));
            }
        } else if !scatters.inner.is_empty() {
            emitter.bind(column, INDEX, Expr::Int(0));
        }
        emitter.open_pinned();
        emitter.bind_axes(&[scatters.axis]);
        emitter.unflatten(column, &scatters.inner, 1);
        emitter.store_all(kernel);
        let then = emitter.close();
        emitter.guarded(conditions.into_iter().reduce(|a, b| a.then(And, b)), then);
    }
}
