//! Contractions on CUDA: tiles of both factors go through shared memory, and each thread keeps its part of the sums in
//! registers.
//!
//! While the products of one tile of terms are added up, the next tile is on its way: what is loaded waits in registers, and
//! whatever the factors are computed from it is computed when it is put into the other half of the shared memory. What
//! follows from the sums is computed from them where they are. Each sum has its terms in order; where the terms are split
//! among blocks, the last block adds up what the others have left, in order.

mod bulk;
mod exchange;
pub(super) mod plan;
mod products;
mod tiles;

use plan::{Factor, Layout, Plan};

use super::accumulate::{mul_add, set};
use super::contraction_cpu::ceil;
use super::emitter::Emitter;
use super::loops::counting;
use super::passes::{launch_items, launch_of_parts};
use super::pointwise::{lanes_and_stores, split_lanes};
use super::split::{Arrivals, all_parts, own_part, with_arrivals};
use super::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, ProductStep, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest, Workspace};
use crate::index::AxisId;
use crate::ir::{Kernel, Store, ValueOp};
use crate::schedule::{Contraction, Launch, Lift, ProductSchedule, Unit, with_one_depth};
use crate::{Language, ReduceOp, Refusal};

/// Threads of a warp.
pub(super) const WARP: u64 = 32;

pub(super) fn build(
    kernel: &Kernel,
    contraction: &Contraction,
    schedule: &ProductSchedule,
) -> Result<Nest, Refusal> {
    let (flat, depth) = with_one_depth(kernel, &contraction.depth);
    let columns = contraction.columns();
    let parts = [
        (&contraction.rows[..], u64::from(schedule.rows)),
        (&columns[..], u64::from(schedule.columns)),
        (&contraction.batch[..], 1),
    ];
    let launch = Launch {
        splits: schedule.splits,
        block: [schedule.threads(), 1, 1],
        at_once: schedule.at_once(contraction),
        ..launch_of_parts(kernel, &parts)
    };
    let blocks = launch.items.count();
    let workspaces = match schedule.splits {
        1 => Vec::new(),
        splits => with_arrivals(partial_sums(contraction, schedule, blocks * u64::from(splits)), blocks),
    };
    let plan = Plan { flat: &flat, contraction, columns, depth, schedule };
    let factors = plan.factors();
    let of_results = plan.of_results();
    let mut emitter = Emitter::new(&flat, Language::Cuda);
    let v = Vars::new(&mut emitter);
    let layout = plan.layout();
    let writer = Writer {
        v,
        plan: &plan,
        layout,
        of_results: &of_results,
        slots: plan.slots(&factors),
        arrivals: Arrivals::at(&workspaces, Expr::Builtin(Builtin::BlockX)),
    };
    writer.body(&mut emitter, &factors);
    let body = emitter.finish()?;
    // Has a name for the lanes of whatever is split.
    let named = split_lanes(&flat, Some(contraction.column), 2);
    let mut function = Function::of(kernel, body, launch);
    match schedule.unit.is_group() {
        true => function.share_lines_at_launch(),
        false => function.share_at_launch(),
    }
    Ok(plan.with_maps(Nest::new(named, vec![function], workspaces), &factors))
}

/// Memory for the sums of each part.
fn partial_sums(contraction: &Contraction, schedule: &ProductSchedule, parts: u64) -> Vec<Workspace> {
    let elements = parts * u64::from(schedule.rows) * u64::from(schedule.columns);
    let of = |number| Workspace {
        name: format!("partial_sums{number}"),
        dtype: contraction.sum,
        elements,
        zeroed: false,
    };
    (0..contraction.products.len()).map(of).collect()
}

/// The arrays of a factor.
pub(super) struct Tile<'k> {
    pub(super) factor: &'k Factor,
    /// All tiles in shared memory, one after the other.
    pub(super) shared: Var,
    /// What has been loaded of the next one.
    pub(super) next: Vec<Var>,
    pub(super) filled: Filled,
}

/// When shared memory gets the tiles of a factor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// Step by step, into some slots in turn.
    InTurns,
    /// Before the first step: each step has a slot of its own.
    Before,
    /// All of them while those before are read, which took as many steps: each step has two slots.
    Ahead {
        /// How many.
        steps: u64,
    },
    /// They are computed, as whole rows: by single elements in shared memory, of matrices in what threads have of them.
    Computed,
}

macro_rules! variables {
    ($($name:ident),*) => {
        /// The variables of a function.
        #[derive(Clone, Copy)]
        pub(super) struct Vars {
            $(pub(super) $name: Var,)*
        }

        impl Vars {
            pub(super) fn new(emitter: &mut Emitter) -> Vars {
                Vars { $($name: emitter.index(stringify!($name)),)* }
            }
        }
    };
}
variables!(
    row0,
    column0,
    x,
    y,
    first_step,
    steps,
    of_part,
    stage,
    step,
    slot,
    other,
    next_step,
    turn,
    at,
    along,
    across,
    position,
    term,
    k,
    i,
    j,
    m,
    n,
    row,
    lane,
    warp_row,
    warp_column,
    column,
    exchanged
);

pub(super) struct Writer<'k> {
    pub(super) v: Vars,
    pub(super) layout: Layout,
    pub(super) plan: &'k Plan<'k>,
    pub(super) of_results: &'k (Kernel, u64),
    /// Tiles of each factor that are in shared memory: one is read while the others are written.
    pub(super) slots: u64,
    /// Counters of finished parts, where there are parts.
    pub(super) arrivals: Arrivals,
}

impl<'k> Writer<'k> {
    pub(super) fn sums_of_thread(&self) -> u64 {
        u64::from(self.plan.schedule.sums())
    }

    fn body(&self, emitter: &mut Emitter<'k>, factors: &'k [Factor]) {
        self.begin(emitter);
        let tiles: Vec<Tile> =
            factors.iter().map(|factor| self.declare(emitter, factor, Filled::InTurns)).collect();
        let products = &self.plan.contraction.products;
        let sums: Vec<Var> =
            products.iter().map(|product| self.declare_sums(emitter, product.lift)).collect();
        self.steps(emitter);
        match self.plan.schedule.bulk {
            true => self.add_up_tiles(emitter, &tiles, &sums, &self.first_step()),
            false => self.add_up(emitter, &tiles, &sums, &self.first_step()),
        }
        if self.plan.schedule.splits > 1 {
            self.merge_splits(emitter, &sums);
        }
        self.results(emitter, &sums);
    }

    /// Adds the products of all steps to the sums, from a step on. As many steps ahead as there is room for, tiles are on their
    /// way; groups of warps still read those of the step before.
    pub(super) fn add_up(&self, emitter: &mut Emitter<'k>, tiles: &[Tile<'k>], sums: &[Var], first: &Expr) {
        let slots = self.slots;
        let is_group = self.plan.schedule.unit.is_group();
        let ahead = if is_group { slots - 2 } else { slots - 1 };
        let moving = || tiles.iter().filter(|tile| tile.filled == Filled::InTurns);
        let copied = || moving().filter(|tile| tile.factor.is_copied);
        let other = || moving().filter(|tile| !tile.factor.is_copied);
        let copies = copied().next().is_some();
        let steps = Expr::Name(self.v.steps);

        let (stage, slot) = match ahead {
            1 => (Expr::Int(0), None),
            _ => (Expr::Name(self.v.stage), Some(self.v.stage)),
        };
        let own = first.clone().then(Add, stage.clone());
        let body = |emitter: &mut Emitter<'k>| {
            copied().for_each(|tile| self.copy(emitter, tile, &own, slot));
            other().for_each(|tile| self.fetch(emitter, tile, &own));
            other().for_each(|tile| self.place(emitter, tile, &own, slot));
        };
        if copies {
            emitter.open_pinned();
            self.guarded(emitter, stage.then(Less, steps.clone()), body);
            emitter.push(Stmt::CommitCopies);
            let body = emitter.close();
            self.repeated(emitter, self.v.stage, ahead, body);
        } else {
            body(emitter);
        }

        emitter.open(&[], false);
        if copies {
            emitter.push(Stmt::AwaitCopies { but: ahead as u32 - 1 });
        }
        if is_group {
            emitter.push(Stmt::Products(ProductStep::Publish));
        }
        emitter.push(Stmt::Barrier);
        let (step, after) = (Expr::Name(self.v.step), self.v.step.then(Add, ahead));
        emitter.bind(self.v.slot, INDEX, step.then(Rem, slots));
        emitter.bind(self.v.other, INDEX, after.clone().then(Rem, slots));
        emitter.bind(self.v.next_step, INDEX, first.clone().then(Add, after.clone()));
        let (step, is_next) = (Expr::Name(self.v.next_step), after.then(Less, steps.clone()));
        // A group goes on at once, while its products are carried out.
        if is_group {
            emitter.push(Stmt::Products(ProductStep::Begin));
            self.multiply_groups(emitter, tiles, sums);
            emitter.push(Stmt::Products(ProductStep::Commit));
        }
        self.guarded(emitter, is_next.clone(), |emitter| {
            copied().for_each(|tile| self.copy(emitter, tile, &step, Some(self.v.other)));
            other().for_each(|tile| self.fetch(emitter, tile, &step));
        });
        if copies {
            emitter.push(Stmt::CommitCopies);
        }
        match self.plan.schedule.unit {
            Unit::WarpGroup(_) => emitter.push(Stmt::Products(ProductStep::Await(1))),
            Unit::Warp(_) => self.multiply_matrices(emitter, tiles, sums),
            Unit::Thread => self.multiply(emitter, tiles, sums, first),
        }
        if other().next().is_some() {
            self.guarded(emitter, is_next, |emitter| {
                other().for_each(|tile| self.place(emitter, tile, &step, Some(self.v.other)));
            });
        }
        let body = emitter.close();
        emitter.push(counting(self.v.step, 0, steps, LoopHint::None).of(body));
        if is_group {
            emitter.push(Stmt::Products(ProductStep::Await(0)));
        }
    }

    /// Begins to copy the tiles of all steps, from a step on, each into a slot of its own.
    pub(super) fn fill(&self, emitter: &mut Emitter<'k>, tiles: &[&Tile<'k>], steps: u64, first: &Expr) {
        emitter.open_pinned();
        let step = first.clone().then(Add, self.v.stage);
        tiles.iter().for_each(|tile| self.copy(emitter, tile, &step, Some(self.v.stage)));
        let body = emitter.close();
        emitter.push(counting(self.v.stage, 0, Expr::Int(steps), LoopHint::Unroll).of(body));
    }

    /// Adds up the products of all steps, whose tiles are in shared memory; those of groups of warps are on their way then.
    pub(super) fn add_filled(&self, emitter: &mut Emitter<'k>, tiles: &[Tile<'k>], sums: &[Var], steps: u64) {
        let is_group = self.plan.schedule.unit.is_group();
        if is_group {
            emitter.push(Stmt::Products(ProductStep::Begin));
        }
        emitter.open(&[], false);
        match self.plan.schedule.unit {
            Unit::WarpGroup(_) => self.multiply_groups(emitter, tiles, sums),
            Unit::Warp(_) => self.multiply_matrices(emitter, tiles, sums),
            Unit::Thread => self.multiply(emitter, tiles, sums, &Expr::Int(0)),
        }
        let body = emitter.close();
        emitter.push(counting(self.v.step, 0, Expr::Int(steps), LoopHint::Unroll).of(body));
        if is_group {
            emitter.push(Stmt::Products(ProductStep::Commit));
        }
    }

    fn guarded(&self, emitter: &mut Emitter<'k>, condition: Expr, body: impl FnOnce(&mut Emitter<'k>)) {
        emitter.under(Some(condition), body);
    }

    /// Binds the block's first row and column, the batch's axes, and the thread's place.
    fn begin(&self, emitter: &mut Emitter<'k>) {
        let Contraction { batch, rows, .. } = self.plan.contraction;
        let mut block = Expr::Builtin(Builtin::BlockX);
        let parts = [
            (self.v.row0, "block1", rows.as_slice(), self.plan.schedule.rows),
            (self.v.column0, "block2", self.plan.columns.as_slice(), self.plan.schedule.columns),
        ];
        for (first, rest, axes, of) in parts {
            let of = Expr::Int(of.into());
            let chunks = ceil(emitter.positions(axes), of.clone());
            let is_last = batch.is_empty() && first == self.v.column0;
            let own = if is_last { block.clone() } else { block.clone().then(Rem, chunks.clone()) };
            emitter.bind(first, INDEX, own.then(Mul, of));
            if !is_last {
                block = Expr::Name(emitter.bind(rest, INDEX, block.then(Div, chunks)));
            }
        }
        if let (false, Expr::Name(rest)) = (batch.is_empty(), &block) {
            emitter.unflatten(*rest, batch, 1);
        }
        self.place_thread(emitter);
    }

    /// Binds the thread's place in the block's tile.
    pub(super) fn place_thread(&self, emitter: &mut Emitter<'k>) {
        let schedule = self.plan.schedule;
        let across = Expr::Int((schedule.columns / schedule.own_columns).into());
        let thread = Expr::Builtin(Builtin::ThreadX);
        if schedule.unit == Unit::Thread {
            emitter.bind(self.v.x, INDEX, thread.clone().then(Rem, across.clone()));
            emitter.bind(self.v.y, INDEX, thread.then(Div, across));
            return;
        }
        emitter.bind(self.v.lane, INDEX, thread.clone().then(Rem, WARP));
        let warp = Expr::Name(emitter.bind("warp", INDEX, thread.then(Div, WARP)));
        // Each warp of a group has a quarter of its rows, and all of its columns.
        let of_group = u64::from(schedule.unit.warps());
        let unit = if of_group == 1 { warp.clone() } else { warp.clone().then(Div, of_group) };
        let (rows, columns) = (Expr::Int(schedule.own_rows.into()), Expr::Int(schedule.own_columns.into()));
        let row = unit.clone().then(Div, across.clone()).then(Mul, rows);
        let row = match of_group {
            1 => row,
            _ => row.then(Add, warp.then(Rem, of_group).then(Mul, u64::from(schedule.own_rows) / of_group)),
        };
        emitter.bind(self.v.warp_row, INDEX, row);
        emitter.bind(self.v.warp_column, INDEX, unit.then(Rem, across).then(Mul, columns));
        // The lane's first row, and its first pair of columns.
        let row = self.v.lane.then(Div, 4);
        emitter.bind(self.v.y, INDEX, self.v.warp_row.then(Add, row));
        let pair = self.v.lane.then(Rem, 4);
        let first = self.v.warp_column.then(Div, 2);
        emitter.bind(self.v.x, INDEX, first.then(Add, pair));
    }

    pub(super) fn declare(&self, emitter: &mut Emitter, factor: &'k Factor, filled: Filled) -> Tile<'k> {
        let dtype = self.plan.dtype();
        let shared = emitter.fresh(if factor.is_left { "left" } else { "right" });
        let slots = if let Filled::Ahead { steps } = filled { 2 * steps } else { self.slots };
        let len = slots * self.plan.tile_len(factor);
        let shared = emitter.share(shared, Type::Memory(dtype), len);
        let mut next = Vec::new();
        for &id in &factor.early {
            let (var, value) = (emitter.fresh("next"), factor.kernel.value(id));
            // Vectors wait as they are in memory, single elements as values.
            let ty = match (&value.op, factor.vector) {
                (ValueOp::Load { buffer, .. }, 2..) => {
                    Type::Memory(factor.kernel.buffers[buffer.index()].dtype)
                }
                _ => Type::Register(value.dtype),
            };
            next.push(emitter.array(var, ty, factor.turns * factor.vector));
        }
        Tile { factor, shared, next, filled }
    }

    pub(super) fn declare_sums(&self, emitter: &mut Emitter, lift: Option<Lift>) -> Var {
        let var = emitter.fresh("sums");
        let sums = emitter.array(var, Type::Register(self.plan.contraction.sum), self.sums_of_thread());
        self.clear(emitter, sums, lift);
        sums
    }

    /// Has no terms in the sums, or in what the lifted values are combined to.
    pub(super) fn clear(&self, emitter: &mut Emitter, sums: Var, lift: Option<Lift>) {
        let op = lift.map_or(ReduceOp::Sum, |lift| lift.op);
        let identity = Expr::Literal(op.identity(self.plan.contraction.sum));
        self.each_sum(emitter, |n| vec![set(Expr::element(sums, n), identity)]);
    }

    fn each_sum(&self, emitter: &mut Emitter, body: impl FnOnce(Expr) -> Vec<Stmt>) {
        let all = Expr::Int(self.sums_of_thread());
        emitter.push(counting(self.v.n, 0, all, LoopHint::Unroll).of(body(Expr::Name(self.v.n))));
    }

    /// Binds the block's first tile of terms, and how many it has.
    fn steps(&self, emitter: &mut Emitter) {
        let tiles = ceil(emitter.positions(&[self.plan.depth]), Expr::Int(self.plan.deep()));
        if self.plan.schedule.splits == 1 {
            emitter.bind(self.v.steps, INDEX, tiles);
            return;
        }
        let (part, parts) = (own_part(), all_parts());
        let each = tiles.clone().then(Add, parts.clone()).then(Sub, 1).then(Div, parts);
        emitter.bind(self.v.of_part, INDEX, each);
        let first = part.then(Mul, self.v.of_part);
        emitter.bind(self.v.first_step, INDEX, first.then(Min, tiles.clone()));
        let rest = tiles.then(Sub, self.first_step());
        emitter.bind(self.v.steps, INDEX, self.v.of_part.then(Min, rest));
    }

    /// A loop that is unrolled, if it has several turns.
    pub(super) fn repeated(&self, emitter: &mut Emitter, var: Var, turns: u64, body: Vec<Stmt>) {
        emitter.push(match turns {
            1 => Stmt::Block(body),
            _ => counting(var, 0, turns, LoopHint::Unroll).of(body),
        });
    }

    fn turn(&self, factor: &Factor) -> Expr {
        if factor.turns == 1 { Expr::Int(0) } else { Expr::Name(self.v.turn) }
    }

    /// The first step of the block.
    fn first_step(&self) -> Expr {
        if self.plan.schedule.splits == 1 { Expr::Int(0) } else { Expr::Name(self.v.first_step) }
    }

    /// Which group of the thread's rows.
    fn row_group(&self) -> Expr {
        if self.layout.rows[0] == 1 { Expr::Int(0) } else { Expr::Name(self.v.m) }
    }

    /// The same of its columns.
    pub(super) fn column_group(&self) -> Expr {
        if self.layout.columns == 1 { Expr::Int(0) } else { Expr::Name(self.v.n) }
    }

    /// Whatever follows from the sums, vector by vector of neighbouring columns.
    pub(super) fn results(&self, emitter: &mut Emitter<'k>, sums: &[Var]) {
        let (kernel, vector) = self.of_results;
        let loops = |emitter: &mut Emitter, var, to: u64| {
            let body = emitter.close();
            self.repeated(emitter, var, to, body);
        };
        let (rows, layout) = (&self.plan.contraction.rows, &self.layout);
        if self.vectors() > 1 {
            self.exchange(emitter, sums, *vector);
        }
        emitter.using(kernel, |emitter| {
            emitter.open(&[], false);
            emitter.open(&[], false);
            let own = self.v.i.then(Mul, layout.row_steps[1]);
            let own = mul_add(self.v.y, layout.row_scale, own);
            let row = mul_add(self.row_group(), layout.row_steps[0], own);
            emitter.bind(self.v.row, INDEX, self.v.row0.then(Add, row));
            let is_row = self.v.row.then(Less, emitter.positions(rows));
            let is_row = (!self.fills(rows, self.plan.schedule.rows)).then_some(is_row);
            emitter.under(is_row, |emitter| {
                emitter.unflatten(self.v.row, rows, 1);
                emitter.open(&[], false);
                match *vector {
                    1 => {
                        emitter.open(&[], false);
                        self.column(emitter, sums);
                        loops(emitter, self.v.j, layout.lanes);
                    }
                    _ => self.column(emitter, sums),
                }
                loops(emitter, self.v.n, layout.columns / self.vectors());
            });
            loops(emitter, self.v.i, layout.rows[1]);
            loops(emitter, self.v.m, layout.rows[0]);
        });
    }

    /// Whether the rows or columns are whole tiles, as the text knows: then all of a block's are some of them.
    fn fills(&self, axes: &[AxisId], tile: u32) -> bool {
        let kernel = self.plan.flat;
        !axes.iter().any(|&axis| kernel.axis(axis).is_argument)
            && launch_items(kernel, axes).is_multiple_of(tile.into())
    }

    /// Groups of columns whose sums are in one vector of results: several where lanes have exchanged theirs.
    fn vectors(&self) -> u64 {
        (self.of_results.1 / self.layout.lanes).max(1)
    }

    /// What follows from the sums of one vector: `m`, `i`, `n` and, of single columns, `j` say which.
    fn column(&self, emitter: &mut Emitter<'k>, sums: &[Var]) {
        let ((kernel, vector), layout) = (self.of_results, &self.layout);
        let (of, columns) = (Expr::Int(*vector), &self.plan.columns);
        let own = match (*vector, self.vectors()) {
            (1, _) => mul_add(self.v.x, layout.lanes, self.v.j),
            (_, 1) => Expr::Name(self.v.x),
            _ => Expr::Name(self.v.exchanged),
        };
        let group = if layout.columns == self.vectors() { Expr::Int(0) } else { Expr::Name(self.v.n) };
        let own = mul_add(group.clone(), layout.column_step * self.vectors() / vector, own);
        emitter.bind(self.v.column, INDEX, self.v.column0.then(Div, of.clone()).then(Add, own));
        let is_column = self.v.column.then(Less, emitter.positions(columns).then(Div, of));
        let is_column = (!self.fills(columns, self.plan.schedule.columns)).then_some(is_column);
        emitter.under(is_column, |emitter| {
            emitter.unflatten(self.v.column, columns, *vector);
            let [of_group, of_row, of_columns] = layout.sum_steps;
            let row = mul_add(self.row_group(), of_group, self.v.i.then(Mul, of_row));
            let lane = if *vector > 1 { Expr::name(Var::Lane) } else { Expr::Name(self.v.j) };
            let lane = match self.vectors() {
                1 => lane,
                _ => mul_add(lane.clone().then(Div, layout.lanes), of_columns, lane.then(Rem, layout.lanes)),
            };
            let at = row.then(Add, group.then(Mul, of_columns * self.vectors())).then(Add, lane);
            let stores: Vec<&Store> = kernel.stores.iter().collect();
            lanes_and_stores(emitter, kernel, &stores, None, |emitter| {
                for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
                    let (from, to) = (self.plan.contraction.sum, kernel.value(product.sum).dtype);
                    let sum = Expr::element(sums, at.clone());
                    let sum = match from == to {
                        true => sum,
                        false => Expr::Cast { from, to, operand: Box::new(sum) },
                    };
                    emitter.define(product.sum, sum);
                }
            });
        });
    }
}
