//! Scatters on the CPU. A block has a range of positions and a part of the columns, and combines the elements that are
//! its own, in their order. Where that takes few reads of the index, or where lists say which they are, its results are in
//! a local array until they are stored. Otherwise they are in scratch memory, a second function computes what is stored, and, where there are few
//! results, a block has a part of the elements: the same for any number of threads. Where elements are few beside the results,
//! a function stores what there is without them, and another one what the positions come to that some go to.

use super::accumulate::{mul_add, set};
use super::emitter::Emitter;
use super::loops::counting;
use super::passes::{launch_items, launch_over};
use super::scatter::{Partials, Scatters, bind_digits, offset, scaled, workspace, workspaces};
use super::scatter_lists::Lists;
use super::split::{Parts, merging, of_parts};
use super::stmt::Arithmetic::{Add, And, Div, Less, LessEqual, Mul, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest, Parameter, Workspace};
use crate::ir::{AxisKind, Kernel};
use crate::schedule::{Launch, SCATTER_SPLIT_LENGTH, ScatterSchedule};
use crate::{Language, Refusal};

/// Columns along the innermost axis that are worth a loop of their own.
const SHORTEST_LINE: u64 = 8;

/// Results of a block of the second function.
const RESULTS: u64 = 1 << 14;

pub(super) fn build(
    kernel: &Kernel,
    scatters: &Scatters,
    schedule: &ScatterSchedule,
) -> Result<Nest, Refusal> {
    let is_local = schedule.is_local;
    let mut emitter = Emitter::new(kernel, Language::C);
    let writer = Writer {
        kernel,
        scatters,
        schedule,
        partials: scatters.partials(kernel, |number| match is_local {
            true => emitter.fresh("local"),
            false => workspace(number),
        }),
        rows: launch_items(kernel, &scatters.outer),
        positions: kernel.axis(scatters.axis).extent,
        columns: launch_items(kernel, &scatters.inner),
        lists: Lists::of(kernel, scatters, schedule),
    };
    let elements = writer.rows * writer.positions * writer.columns * u64::from(schedule.splits);
    if schedule.is_sparse {
        return writer.sparse(emitter, elements);
    }
    let (functions, workspaces) = match (&writer.lists, is_local) {
        (Some(lists), _) => (vec![lists.build()?, writer.combine(emitter)?], lists.workspaces()),
        (None, true) => (vec![writer.combine(emitter)?], Vec::new()),
        (None, false) => {
            let finish = writer.finish(kernel, &writer.partials)?;
            (vec![writer.combine(emitter)?, finish], workspaces(&writer.partials, elements))
        }
    };
    Ok(Nest::new(kernel.clone(), functions, workspaces))
}

/// What of the results and of the elements is a block's.
struct Block {
    blocks: u64,
    row: Expr,
    range: Expr,
    elements: (Expr, Expr),
    positions: (Expr, Expr),
    columns: (Expr, Expr),
    /// Whether other blocks of the row have other positions.
    is_range: bool,
    /// Where the row's results begin.
    base: Expr,
}

struct Writer<'a> {
    kernel: &'a Kernel,
    scatters: &'a Scatters,
    schedule: &'a ScatterSchedule,
    partials: Vec<Partials>,
    rows: u64,
    positions: u64,
    columns: u64,
    lists: Option<Lists<'a>>,
}

impl<'a> Writer<'a> {
    fn parts(&self, emitter: &Emitter) -> Expr {
        match self.schedule.splits {
            1 => Expr::Int(1),
            _ => {
                let elements = emitter.extent(self.scatters.over);
                let above = elements.then(Add, SCATTER_SPLIT_LENGTH - 1);
                above.then(Div, SCATTER_SPLIT_LENGTH)
            }
        }
    }

    /// Results of all rows, of one part.
    fn results(&self, emitter: &Emitter) -> Expr {
        emitter.positions(&self.scatters.outer).then(Mul, self.positions * self.columns)
    }

    /// Binds the axes of a block's row.
    fn block(&self, emitter: &mut Emitter) -> Block {
        let (scatters, schedule) = (self.scatters, self.schedule);
        let ranges = self.positions.div_ceil(schedule.positions).max(1);
        let tiles = self.columns.div_ceil(schedule.columns).max(1);
        let mut parts = self.parts(emitter);
        if schedule.splits > 1 {
            parts = Expr::Name(emitter.bind("parts", INDEX, parts));
        }
        let rows = emitter.positions(&scatters.outer);
        let digits =
            [("part", &parts), ("row", &rows), ("range", &Expr::Int(ranges)), ("tile", &Expr::Int(tiles))];
        let [part, row, range, tile] = bind_digits(emitter, Expr::Builtin(Builtin::BlockX), digits);
        scatters.bind_row(emitter, &row);
        let mut between = |number: &Expr, names: [&'static str; 2], length: u64, all: Expr| match number {
            Expr::Int(0) => (Expr::Int(0), all),
            number => emitter.part(names, number.clone(), length, all),
        };
        let length = match self.kernel.axis(scatters.over).is_argument {
            true => Expr::name(Parameter::Extent(scatters.over)),
            false => Expr::Int(self.kernel.axis(scatters.over).extent),
        };
        let elements = between(&part, ["from", "to"], SCATTER_SPLIT_LENGTH, length);
        let all = Expr::Int(self.positions);
        let positions = between(&range, ["first", "end"], schedule.positions, all);
        let all = Expr::Int(self.columns);
        let columns = between(&tile, ["left", "right"], schedule.columns, all);
        let own_row = row.clone();
        let row = offset(part, rows, row);
        let mut base = scaled(row, Expr::Int(self.positions * self.columns));
        if base != Expr::Int(0) && !schedule.is_local {
            base = Expr::Name(emitter.bind("base", INDEX, base));
        }
        let row = own_row;
        Block { blocks: ranges * tiles, row, range, elements, positions, columns, is_range: ranges > 1, base }
    }

    /// Where the partial results of a position and a column are.
    fn slot(&self, block: &Block, position: Expr, column: Option<Expr>) -> Expr {
        match self.schedule.is_local {
            true => {
                let row = position.then(Sub, block.positions.0.clone());
                let row = row.then(Mul, self.schedule.columns.min(self.columns.max(1)));
                column.map_or(row.clone(), |column| row.then(Add, column.then(Sub, block.columns.0.clone())))
            }
            false => {
                let row = block.base.clone().then(Add, position.then(Mul, self.columns));
                column.map_or(row.clone(), |column| row.then(Add, column))
            }
        }
    }

    /// A loop over the columns of a block, with the place of the partial results at the position.
    fn for_columns(
        &self,
        emitter: &mut Emitter,
        block: &Block,
        position: Var,
        body: &mut dyn FnMut(&mut Emitter, &Expr),
    ) {
        let inner = self.scatters.inner.as_slice();
        if inner.is_empty() {
            return body(emitter, &self.slot(block, Expr::name(position), None));
        }
        let (left, right) = block.columns.clone();
        let length = inner.last().map_or(1, |&last| self.kernel.axis(last).extent);
        let is_whole = (&left, &right) == (&Expr::Int(0), &Expr::Int(self.columns));
        if let Some((&last, lines)) = inner.split_last().filter(|(_, lines)| !lines.is_empty())
            && is_whole
            && length >= SHORTEST_LINE
        {
            // Of several axes, lines along the innermost one: nothing is divided.
            let line = emitter.flat(lines, "line");
            let along = counting(Var::Axis(last), 0, length, LoopHint::Simd);
            return emitter.repeat(counting(line, 0, self.columns / length, LoopHint::None), |emitter| {
                emitter.unflatten(line, lines, 1);
                emitter.repeat_along(&[last], along, |emitter| {
                    let column = mul_add(line, length, last);
                    body(emitter, &self.slot(block, Expr::name(position), Some(column)));
                });
            });
        }
        let column = self.scatters.column_name(emitter);
        emitter.repeat(counting(column, left, right, LoopHint::Simd), |emitter| {
            emitter.unflatten(column, inner, 1);
            body(emitter, &self.slot(block, Expr::name(position), Some(Expr::name(column))));
        });
    }

    fn combine(&self, mut emitter: Emitter<'a>) -> Result<Function, Refusal> {
        let schedule = self.schedule;
        let block = self.block(&mut emitter);
        if schedule.is_local {
            for partials in &self.partials {
                let len = schedule.positions * schedule.columns.min(self.columns.max(1));
                emitter.array(partials.array, Type::Register(partials.dtype), len);
            }
        }
        let (first, end) = block.positions.clone();
        let at = emitter.index("at");
        emitter.repeat(counting(at, first.clone(), end.clone(), LoopHint::None), |emitter| {
            self.for_columns(emitter, &block, at, &mut |emitter, at| {
                self.partials.iter().for_each(|partials| partials.reset(emitter, at));
            });
        });

        match &self.lists {
            Some(lists) => {
                let mut take = |emitter: &mut Emitter<'a>| {
                    self.take(emitter, &block, &|_, _| {}, &|emitter, at| self.add(emitter, at));
                };
                lists.each_of_range(&mut emitter, (&block.row, &block.range), &mut take);
            }
            None => self.each_element(&mut emitter, &block, &|_, _| {}, &|emitter, at| self.add(emitter, at)),
        }
        self.combined(emitter, block)
    }

    /// Takes an element's values into the partial results at a place.
    fn add(&self, emitter: &mut Emitter, at: &Expr) {
        for partials in &self.partials {
            let value = emitter.value(partials.operand);
            partials.combine(emitter, at, value);
        }
    }

    /// A loop over the elements of a block, each of which is taken.
    fn each_element(
        &self,
        emitter: &mut Emitter,
        block: &Block,
        at_position: &dyn Fn(&mut Emitter, Var),
        body: &dyn Fn(&mut Emitter, &Expr),
    ) {
        let over = self.scatters.over;
        emitter.open(&[over], false);
        self.take(emitter, block, at_position, body);
        let taken = emitter.close();
        let (from, to) = block.elements.clone();
        emitter.push(counting(Var::Axis(over), from, to, LoopHint::None).of(taken));
    }

    /// What is done with an element that goes to a position of the block: once, with the position, and for each column with the
    /// place of its partial results.
    fn take(
        &self,
        emitter: &mut Emitter,
        block: &Block,
        at_position: &dyn Fn(&mut Emitter, Var),
        body: &dyn Fn(&mut Emitter, &Expr),
    ) {
        let scatters = self.scatters;
        let (first, end) = block.positions.clone();
        let is_own = |at: Var| {
            let at = Expr::Name(at);
            let is_own = || first.clone().then(LessEqual, at.clone()).then(And, at.then(Less, end.clone()));
            block.is_range.then(is_own)
        };
        if scatters.by_column {
            let position = emitter.index("at");
            return self.for_columns(emitter, block, position, &mut |emitter, at| {
                scatters.bind_position(emitter, position);
                emitter.open_pinned();
                at_position(emitter, position);
                body(emitter, at);
                let then = emitter.close();
                emitter.guarded(is_own(position), then);
            });
        }
        let position = scatters.bind_position(emitter, "at");
        emitter.under(is_own(position), |emitter| {
            at_position(emitter, position);
            // What is the same for all columns is there once an element.
            self.for_columns(emitter, block, position, &mut |emitter, at| body(emitter, at));
        });
    }

    /// Stores what there is where nothing goes to, at all positions, and then the results at those that elements go to. No other
    /// places of the scratch memory are looked at.
    fn sparse(&self, emitter: Emitter<'a>, elements: u64) -> Result<Nest, Refusal> {
        let kernel = self.kernel;
        let mut without = kernel.unscattered();
        let stores = std::mem::take(&mut without.stores);
        let (left, stores): (Vec<_>, Vec<_>) =
            stores.into_iter().partition(|store| without.leaves_in_place(store));
        without.stores = stores;
        let mut functions = Vec::new();
        if !without.stores.is_empty() {
            let function = self.finish(&without, &[])?;
            functions.push(Function { name: format!("{}_untouched", kernel.name), ..function });
        }
        let mut spaces = workspaces(&self.partials, elements);
        if left.is_empty() {
            functions.push(self.touched(emitter, &|emitter, _| emitter.store_all(kernel))?);
            return Ok(Nest::new(kernel.clone(), functions, spaces));
        }
        // Where results are written over inputs, all indices are checked and all is read before: an element may go where
        // another one goes.
        let first = spaces.len();
        for (number, store) in kernel.stores.iter().enumerate() {
            let dtype = kernel.value(store.value).dtype;
            spaces.push(Workspace { name: format!("result{number}"), dtype, elements, zeroed: false });
        }
        let result = |number: usize, at: &Expr| Expr::element(workspace(first + number), at.clone());
        functions.push(self.touched(emitter, &|emitter, at| {
            for (number, store) in kernel.stores.iter().enumerate() {
                let value = emitter.value(store.value);
                emitter.push(set(result(number, at), value));
            }
        })?);
        let mut emitter = Emitter::new(kernel, Language::C);
        let block = self.block(&mut emitter);
        let at_position = |emitter: &mut Emitter, position: Var| self.bind_axis(emitter, position);
        self.each_element(&mut emitter, &block, &at_position, &|emitter, at| {
            for (number, store) in kernel.stores.iter().enumerate() {
                let dtype = kernel.buffers[store.buffer.index()].dtype;
                let target = Expr::element(store.buffer, Expr::Index(store.index.clone()));
                emitter.push(set(target, Expr::ToMemory(dtype, Box::new(result(number, at)))));
            }
        });
        let launch = self.scatters.launch(kernel, block.blocks);
        functions.push(Function { name: format!("{}_put", kernel.name), body: emitter.finish()?, launch });
        Ok(Nest::new(kernel.clone(), functions, spaces))
    }

    /// Combines the elements, and does what is to be done with the results at each position that some go to.
    fn touched(
        &self,
        mut emitter: Emitter<'a>,
        with: &dyn Fn(&mut Emitter, &Expr),
    ) -> Result<Function, Refusal> {
        let (kernel, scatters) = (self.kernel, self.scatters);
        let block = self.block(&mut emitter);
        self.each_element(&mut emitter, &block, &|_, _| {}, &|emitter, at| {
            self.partials.iter().for_each(|partials| partials.reset(emitter, at));
        });
        self.each_element(&mut emitter, &block, &|_, _| {}, &|emitter, at| self.add(emitter, at));
        let at_position = |emitter: &mut Emitter, position: Var| {
            self.bind_axis(emitter, position);
            if !scatters.by_column {
                self.define(emitter, &self.first_slot(&block, position), false);
            }
        };
        self.each_element(&mut emitter, &block, &at_position, &|emitter, at| {
            self.define(emitter, at, true);
            with(emitter, at);
        });
        let launch = scatters.launch(kernel, block.blocks);
        Ok(Function::of(kernel, emitter.finish()?, launch))
    }

    /// States which position of the results an element goes to.
    fn bind_axis(&self, emitter: &mut Emitter, position: Var) {
        emitter.bind(self.scatters.axis, INDEX, Expr::Name(position));
        emitter.bind_axes(&[self.scatters.axis]);
    }

    /// Defines the scatters that vary among columns, or those that do not, as their results at a place.
    fn define(&self, emitter: &mut Emitter, at: &Expr, varying: bool) {
        let varies = |partials: &Partials| {
            self.scatters.inner.iter().any(|axis| self.kernel.value(partials.id).axes.contains(axis))
        };
        for partials in self.partials.iter().filter(|partials| varies(partials) == varying) {
            let result = emitter.named(partials.element(at), partials.dtype);
            emitter.define(partials.id, result);
        }
    }

    /// The place of a position's first column.
    fn first_slot(&self, block: &Block, position: Var) -> Expr {
        let first = (!self.scatters.inner.is_empty()).then(|| block.columns.0.clone());
        self.slot(block, Expr::name(position), first)
    }

    /// The function, once all elements are combined.
    fn combined(&self, mut emitter: Emitter<'a>, block: Block) -> Result<Function, Refusal> {
        let (kernel, scatters, schedule) = (self.kernel, self.scatters, self.schedule);
        if schedule.is_local {
            self.store(&mut emitter, &block);
        }

        let launch = scatters.launch(kernel, block.blocks);
        Ok(Function::of(kernel, emitter.finish()?, of_parts(&launch, schedule.splits)))
    }

    /// Stores what follows from the results of a block's local arrays.
    fn store(&self, emitter: &mut Emitter, block: &Block) {
        let (kernel, scatters) = (self.kernel, self.scatters);
        let position = Var::Axis(scatters.axis);
        let (first, end) = block.positions.clone();
        let hint = if scatters.inner.is_empty() { LoopHint::Simd } else { LoopHint::None };
        emitter.repeat_along(&[scatters.axis], counting(position, first, end, hint), |emitter| {
            // What is the same for all columns is there once a position.
            self.define(emitter, &self.first_slot(block, position), false);
            self.for_columns(emitter, block, position, &mut |emitter, at| {
                self.define(emitter, at, true);
                emitter.store_all(kernel);
            });
        });
    }

    /// Merges the parts in order, and computes what is stored.
    fn finish(&self, kernel: &Kernel, partials: &[Partials]) -> Result<Function, Refusal> {
        let mut emitter = Emitter::new(kernel, Language::C);
        let map = kernel.axes_of_kind(AxisKind::Map);
        let (inner, outer) =
            map.split_last().map_or((self.scatters.axis, &[][..]), |(&last, outer)| (last, outer));
        let length = kernel.axis(inner).extent;
        let column = Var::Axis(inner);
        let mut parts = self.parts(&emitter);
        if self.schedule.splits > 1 {
            parts = Expr::Name(emitter.bind("parts", INDEX, parts));
        }
        // Whole rows of the innermost axis, or parts of the only one.
        let per_block = if outer.is_empty() { RESULTS } else { (RESULTS / length.max(1)).max(1) };
        let total = if outer.is_empty() { Expr::Int(length) } else { emitter.positions(outer) };
        let block = Expr::Builtin(Builtin::BlockX);
        let (first, end) = emitter.part(["first", "end"], block, per_block, total);
        let line = emitter.index("line");
        emitter.open(&[], false);
        if !outer.is_empty() {
            emitter.unflatten(line, outer, 1);
        }
        // What is the same all along a row is merged once a row.
        let varies =
            |partials: &&Partials| outer.is_empty() || kernel.value(partials.id).axes.contains(&inner);
        partials.iter().filter(|partials| !varies(partials)).for_each(|partials| {
            self.merge(&mut emitter, partials, &parts, line.then(Mul, length));
        });
        emitter.open(&[inner], false);
        let at = match outer {
            [] => Expr::name(column),
            _ => mul_add(line, length, column),
        };
        partials
            .iter()
            .filter(varies)
            .for_each(|partials| self.merge(&mut emitter, partials, &parts, at.clone()));
        emitter.store_all(kernel);
        let body = emitter.close();
        let along =
            |from: Expr, to: Expr, body: Vec<Stmt>| counting(column, from, to, LoopHint::Simd).of(body);
        if outer.is_empty() {
            emitter.push(along(first, end, body));
            let rest = emitter.close();
            emitter.append(rest);
        } else {
            let extent = emitter.extent(inner);
            emitter.push(along(Expr::Int(0), extent, body));
            let body = emitter.close();
            emitter.push(counting(line, first, end, LoopHint::None).of(body));
        }
        let lines = if outer.is_empty() { std::slice::from_ref(&inner) } else { outer };
        let launch = Launch { per_block, ..launch_over(kernel, lines) };
        Ok(merging(kernel, emitter.finish()?, launch))
    }

    /// Defines a scatter as its parts, combined.
    fn merge(&self, emitter: &mut Emitter, partials: &Partials, parts: &Expr, at: Expr) {
        let merged = partials.declare(emitter);
        match self.schedule.splits {
            1 => partials.merge(emitter, &merged, &at),
            _ => Parts::all(parts.clone()).merge(emitter, |emitter, part| {
                let place = mul_add(part.clone(), self.results(emitter), at);
                partials.merge(emitter, &merged, &place);
            }),
        }
        emitter.define(partials.id, merged.result(None));
    }
}
