//! Sorts on the CPU: eight short rows side by side by a network, or a row after the other by digits.

use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::launch_over;
use super::sort::{Items, Sorts};
use super::stmt::Arithmetic::{Add, Min, Mul, Sub};
use super::stmt::{Builtin, Expr, LoopHint, SortBy, SortedRow, Sorting, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest, Parameter, Workspace};
use crate::ir::Kernel;
use crate::schedule::{Launch, SORT_LANES, SortSchedule, WorkItems};
use crate::{DType, Language, Refusal};

/// 64-bit numbers of the two arrays that rows are sorted in on the stack.
const STACK: u64 = 1 << 15;

/// The same of all blocks in scratch memory, about: longer rows have fewer blocks.
const SCRATCH: u64 = 1 << 25;

pub(super) fn build(kernel: &Kernel, sorts: &Sorts, schedule: &SortSchedule) -> Result<Nest, Refusal> {
    let mut emitter = Emitter::new(kernel, Language::C);
    let length = kernel.axis(sorts.over).extent * sorts.width();
    let writer = Writer { kernel, sorts, rows: u64::from(schedule.rows) };
    let mut launch = Launch { per_block: schedule.rows.into(), ..launch_over(kernel, &sorts.outer) };
    let mut workspaces = Vec::new();
    if schedule.lanes > 1 {
        writer.in_lanes(&mut emitter);
    } else if 2 * length <= STACK {
        writer.on_stack(&mut emitter, length);
    } else {
        let blocks = (SCRATCH / (2 * length)).clamp(4, 64);
        let elements = 2 * length * blocks;
        workspaces.push(Workspace { name: "scratch".into(), dtype: DType::I64, elements, zeroed: false });
        launch = Launch { items: WorkItems::number(blocks), ..Launch::default() };
        writer.in_scratch(&mut emitter, length, blocks);
    }
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, emitter.finish()?, launch)], workspaces))
}

struct Writer<'a> {
    kernel: &'a Kernel,
    sorts: &'a Sorts,
    /// Of a block.
    rows: u64,
}

impl Writer<'_> {
    fn length(&self) -> Expr {
        Expr::Int(self.kernel.axis(self.sorts.over).extent)
    }

    /// Binds the first row of a block and the one after its last.
    fn begin(&self, emitter: &mut Emitter) -> [Expr; 2] {
        let rows = emitter.positions(&self.sorts.outer);
        let first = Builtin::BlockX.then(Mul, self.rows);
        let first = Expr::Name(emitter.bind("first", INDEX, first));
        let end = first.clone().then(Add, self.rows).then(Min, rows);
        [first, Expr::Name(emitter.bind("end", INDEX, end))]
    }

    /// A loop that puts the items of the row whose axes are bound.
    fn put(&self, emitter: &mut Emitter, items: Items, hint: LoopHint, at: impl Fn(Expr) -> Expr) {
        let over = self.sorts.over;
        let place = Expr::name(over);
        emitter.repeat_along(&[over], counting(over, 0, self.length(), hint), |emitter| {
            self.sorts.put(emitter, items, at(place.clone()), place);
        });
    }

    /// A loop that stores the first elements of the row whose axes are bound.
    fn store(&self, emitter: &mut Emitter, items: Items, at: impl Fn(Expr) -> Expr) {
        let axis = self.sorts.axis;
        emitter.open(&[axis], false);
        self.sorts.store(emitter, items.place_and_key(at(Expr::name(axis))));
        emitter.close_loop(axis, LoopHint::None);
    }

    /// A loop over eight rows or fewer.
    fn each_lane(
        &self,
        emitter: &mut Emitter,
        row: impl Fn(Expr) -> Expr,
        to: Expr,
        body: impl FnOnce(&mut Emitter, Expr),
    ) {
        let lane = emitter.index("lane");
        emitter.repeat_pinned(counting(lane, 0, to, LoopHint::None), |emitter| {
            let row = emitter.bind("row", INDEX, row(Expr::Name(lane)));
            emitter.unflatten(row, &self.sorts.outer, 1);
            body(emitter, Expr::Name(lane));
        });
    }

    /// Tiles of eight rows.
    fn in_lanes(&self, emitter: &mut Emitter) {
        let [first, end] = self.begin(emitter);
        let lanes = Expr::Int(SORT_LANES);
        let items = emitter.fresh("items");
        let length = self.kernel.axis(self.sorts.over).extent * SORT_LANES;
        let array = emitter.array(items, Type::Register(DType::I64), length);
        let items = Items { array, wide: false };
        let at = |place: Expr, lane: &Expr| place.then(Mul, lanes.clone()).then(Add, lane.clone());
        let var = emitter.index("tile");
        let tile = Expr::Name(var);
        emitter.repeat(stepping(var, (first, &end), lanes.clone(), LoopHint::None), |emitter| {
            // Lanes without a row have the last one again.
            let last = end.clone().then(Sub, 1);
            let row = |lane: Expr| tile.clone().then(Add, lane).then(Min, last.clone());
            self.each_lane(emitter, row, lanes.clone(), |emitter, lane| {
                self.put(emitter, items, LoopHint::None, |place| at(place, &lane));
            });
            let by = SortBy::Lanes { count: self.length() };
            emitter.push(Stmt::Sort(Box::new(Sorting { items: array, at: Expr::Int(0), wide: false, by })));
            let left = lanes.clone().then(Min, end.clone().then(Sub, tile.clone()));
            let left = Expr::Name(emitter.bind("lanes", INDEX, left));
            let row = |lane: Expr| tile.clone().then(Add, lane);
            self.each_lane(emitter, row, left, |emitter, lane| {
                self.store(emitter, items, |rank| at(rank, &lane));
            });
        });
    }

    fn on_stack(&self, emitter: &mut Emitter, length: u64) {
        let [first, end] = self.begin(emitter);
        let [array, spare] = ["items", "spare"].map(|prefix| {
            let array = emitter.fresh(prefix);
            emitter.array(array, Type::Register(DType::I64), length)
        });
        let row = emitter.index("row");
        emitter.repeat_pinned(counting(row, first, end, LoopHint::None), |emitter| {
            self.sort_row(emitter, row, [array, spare], [Expr::Int(0), Expr::Int(0)]);
        });
    }

    /// Each block has a part of the scratch memory, and every so many-th row.
    fn in_scratch(&self, emitter: &mut Emitter, length: u64, blocks: u64) {
        let array = Var::from(Parameter::Workspace(0));
        let block = Expr::Builtin(Builtin::BlockX);
        let items = length / self.sorts.width();
        let base = Expr::Name(emitter.bind("base", INDEX, block.clone().then(Mul, 2 * items)));
        let row = emitter.index("row");
        emitter.repeat_pinned(
            stepping(row, (block, emitter.positions(&self.sorts.outer)), blocks, LoopHint::None),
            |emitter| {
                let spare = base.clone().then(Add, items);
                self.sort_row(emitter, row, [array, array], [base, spare]);
            },
        );
    }

    /// Puts the items of a row from a place on, sorts them, and stores the results.
    fn sort_row(
        &self,
        emitter: &mut Emitter,
        row: Var,
        [array, spare]: [Var; 2],
        [base, spare_at]: [Expr; 2],
    ) {
        let items = Items { array, wide: self.sorts.wide };
        let at = |place: Expr| base.clone().then(Add, place);
        emitter.unflatten(row, &self.sorts.outer, 1);
        // Wide ones are two numbers each.
        let hint = if items.wide { LoopHint::None } else { LoopHint::Simd };
        self.put(emitter, items, hint, at);
        let wanted = Expr::Int(self.kernel.axis(self.sorts.axis).extent);
        let row = SortedRow { spare, spare_at: items.place(spare_at), count: self.length(), wanted };
        let by = SortBy::Row(Box::new(row));
        let first = items.place(base.clone());
        emitter.push(Stmt::Sort(Box::new(Sorting { items: array, at: first, wide: items.wide, by })));
        self.store(emitter, items, at);
    }
}
