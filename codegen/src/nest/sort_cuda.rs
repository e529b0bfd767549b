//! Sorts on CUDA: rows that fit are sorted in shared memory, several short ones by a block. Of a longer row each block sorts
//! a tile, and further functions merge up to 16 parts into one: a thread finds the rank of its item among the parts by
//! binary searches. No two items are equal, so that each rank is one item's.

use super::emitter::Emitter;
use super::loops::{counting, halving, stepping};
use super::passes::launch_items;
use super::sort::{Items, Sorts};
use super::stmt::Arithmetic::{Add, And, Div, Less, LessEqual, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, SortBy, Sorting, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest, Parameter, Workspace};
use crate::ir::Kernel;
use crate::schedule::{Launch, SortSchedule, WorkItems};
use crate::{BinaryOp, DType, Language, Refusal};

/// Parts that one function merges.
const MERGED: u64 = 16;

/// Threads of a block that merges.
const THREADS: u64 = 256;

pub(super) fn build(kernel: &Kernel, sorts: &Sorts, schedule: &SortSchedule) -> Result<Nest, Refusal> {
    let rows = launch_items(kernel, &sorts.outer);
    let length = kernel.axis(sorts.over).extent;
    let writer = Writer { kernel, sorts, schedule, length, wanted: kernel.axis(sorts.axis).extent };
    let tile = u64::from(schedule.tile);
    let mut workspaces: Vec<Workspace> = Vec::new();
    let functions = match length <= tile {
        true => vec![writer.short()?],
        false => {
            let first = Parts {
                count: length.div_ceil(tile),
                length: tile.min(writer.wanted),
                last: (length - (length.div_ceil(tile) - 1) * tile).min(writer.wanted),
            };
            let mut parts = first;
            let mut functions = vec![writer.tiles(first)?];
            // By turns one of two has the parts that are merged.
            while parts.count > 1 {
                let number = functions.len();
                let elements = rows * parts.count * parts.length * sorts.width();
                match workspaces.get_mut((number - 1) % 2) {
                    Some(space) => space.elements = space.elements.max(elements),
                    None => workspaces.push(Workspace {
                        name: format!("parts{}", number - 1),
                        dtype: DType::I64,
                        elements,
                        zeroed: false,
                    }),
                }
                functions.push(writer.merge(number, parts)?);
                parts = parts.merged(writer.wanted);
            }
            functions
        }
    };
    Ok(Nest::new(kernel.clone(), functions, workspaces))
}

/// What a row is divided into: parts that are in order, each with no more items than are wanted.
#[derive(Clone, Copy)]
struct Parts {
    count: u64,
    length: u64,
    /// Items of the last one.
    last: u64,
}

impl Parts {
    /// Items of all.
    fn items(self) -> u64 {
        (self.count - 1) * self.length + self.last
    }

    fn merged(self, wanted: u64) -> Parts {
        let count = self.count.div_ceil(MERGED);
        let last = self.items() - (count - 1) * MERGED * self.length;
        Parts { count, length: (MERGED * self.length).min(wanted), last: last.min(wanted) }
    }
}

struct Writer<'a> {
    kernel: &'a Kernel,
    sorts: &'a Sorts,
    schedule: &'a SortSchedule,
    length: u64,
    /// Items of each row that are stored.
    wanted: u64,
}

impl<'a> Writer<'a> {
    /// So many of each row.
    fn of_rows(&self, count: u64) -> WorkItems {
        WorkItems::of(self.kernel, &self.sorts.outer) * WorkItems::number(count)
    }

    /// Items in shared memory.
    fn share(&self, emitter: &mut Emitter, count: u64) -> Items {
        let array = emitter.fresh("items");
        let array = emitter.share(array, Type::Register(DType::I64), count * self.sorts.width());
        Items { array, wide: self.sorts.wide }
    }

    fn sort(&self, emitter: &mut Emitter, items: Items, count: u64) {
        let by = SortBy::Block {
            items: count,
            length: u64::from(self.schedule.tile),
            threads: u64::from(self.schedule.threads),
        };
        let (items, wide) = (items.array, items.wide);
        emitter.push(Stmt::Sort(Box::new(Sorting { items, at: Expr::Int(0), wide, by })));
    }

    /// A loop of all threads over slots.
    fn each_slot(&self, emitter: &mut Emitter, count: u64, body: impl FnOnce(&mut Emitter, Expr)) {
        let slot = emitter.index("slot");
        emitter.repeat_pinned(
            stepping(slot, (Builtin::ThreadX, count), u64::from(self.schedule.threads), LoopHint::None),
            |emitter| {
                body(emitter, Expr::Name(slot));
            },
        );
    }

    /// Puts the element of a row that is at a place of it into the slot, or what is after all others where there is none.
    fn put(&self, emitter: &mut Emitter, items: Items, slot: &Expr, [row, place]: [Expr; 2]) {
        let row = emitter.bind("row", INDEX, row);
        let place = Expr::Name(emitter.bind("place", INDEX, place));
        let rows = emitter.positions(&self.sorts.outer);
        let exists = row.then(Less, rows);
        let exists = exists.then(And, place.clone().then(Less, self.length));
        emitter.open_pinned();
        emitter.unflatten(row, &self.sorts.outer, 1);
        emitter.bind(self.sorts.over, INDEX, place.clone());
        emitter.bind_axes(&[self.sorts.over]);
        self.sorts.put(emitter, items, slot.clone(), place);
        let then = emitter.close();
        emitter.open_pinned();
        items.fill(emitter, slot);
        let otherwise = emitter.close();
        emitter.push(Stmt::If { condition: exists, then, otherwise });
    }

    /// Stores what follows from an item of a row, under a condition if there is one.
    fn store(
        &self,
        emitter: &mut Emitter,
        condition: Option<Expr>,
        (row, rank): (Var, Expr),
        item: [Expr; 2],
    ) {
        emitter.under(condition, |emitter| {
            emitter.unflatten(row, &self.sorts.outer, 1);
            emitter.bind(self.sorts.axis, INDEX, rank);
            emitter.bind_axes(&[self.sorts.axis]);
            self.sorts.store(emitter, item);
        });
    }

    /// Rows that fit.
    fn short(&self) -> Result<Function, Refusal> {
        let kernel = self.kernel;
        let mut emitter = Emitter::new(kernel, Language::Cuda);
        let (rows, tile) = (u64::from(self.schedule.rows), u64::from(self.schedule.tile));
        let first = Builtin::BlockX.then(Mul, rows);
        let row_and_place = |slot: &Expr, of: u64| match rows {
            1 => [first.clone(), slot.clone()],
            _ => [first.clone().then(Add, slot.clone().then(Div, of)), slot.clone().then(Rem, of)],
        };
        let items = self.share(&mut emitter, rows * tile);
        self.each_slot(&mut emitter, rows * tile, |emitter, slot| {
            self.put(emitter, items, &slot, row_and_place(&slot, tile));
        });
        self.sort(&mut emitter, items, rows * tile);
        self.each_slot(&mut emitter, rows * self.wanted, |emitter, slot| {
            let [row, rank] = row_and_place(&slot, self.wanted);
            let row = emitter.bind("row", INDEX, row);
            let rank = Expr::Name(emitter.bind("rank", INDEX, rank));
            let at = match rows {
                1 => rank.clone(),
                _ => slot.then(Div, self.wanted).then(Mul, tile).then(Add, rank.clone()),
            };
            let all = emitter.positions(&self.sorts.outer);
            let exists = (rows > 1).then(|| row.then(Less, all));
            self.store(emitter, exists, (row, rank), items.place_and_key(at));
        });
        let launch = Launch {
            items: self.of_rows(1),
            per_block: rows,
            block: [self.schedule.threads, 1, 1],
            ..Launch::default()
        };
        Ok(Function::of(kernel, emitter.finish()?, launch))
    }

    /// Sorts each tile of a row, and leaves what may be wanted of it.
    fn tiles(&self, parts: Parts) -> Result<Function, Refusal> {
        let kernel = self.kernel;
        let mut emitter = Emitter::new(kernel, Language::Cuda);
        let tile = u64::from(self.schedule.tile);
        let block = Expr::Builtin(Builtin::BlockX);
        let items = self.share(&mut emitter, tile);
        self.each_slot(&mut emitter, tile, |emitter, slot| {
            let first = block.clone().then(Rem, parts.count).then(Mul, tile);
            let row = block.clone().then(Div, parts.count);
            self.put(emitter, items, &slot, [row, first.then(Add, slot.clone())]);
        });
        self.sort(&mut emitter, items, tile);
        let sorted = Items { array: Parameter::Workspace(0).into(), wide: items.wide };
        self.each_slot(&mut emitter, parts.length, |emitter, slot| {
            let to = block.clone().then(Mul, parts.length).then(Add, slot.clone());
            for (target, value) in sorted.numbers(&to).into_iter().zip(items.numbers(&slot)) {
                emitter.push(Stmt::Assign { target, value });
            }
        });
        let launch = Launch {
            items: self.of_rows(parts.count),
            block: [self.schedule.threads, 1, 1],
            ..Launch::default()
        };
        Ok(Function::of(kernel, emitter.finish()?, launch))
    }

    /// Puts each item of up to 16 parts at its rank among them; the last time, into the results.
    fn merge(&self, number: usize, parts: Parts) -> Result<Function, Refusal> {
        let kernel = self.kernel;
        let mut emitter = Emitter::new(kernel, Language::Cuda);
        let [from, to] = [number - 1, number]
            .map(|number| Items { array: Parameter::Workspace(number % 2).into(), wide: self.sorts.wide });
        let merged = parts.merged(self.wanted);
        let (length, count) = (Expr::Int(parts.length), Expr::Int(parts.count));
        let item = Builtin::BlockX.then(Mul, THREADS);
        let at = emitter.bind("at", INDEX, item.then(Add, Builtin::ThreadX));
        let run = Expr::Name(emitter.bind("run", INDEX, at.then(Div, length.clone())));
        let part = Expr::Name(emitter.bind("part", INDEX, run.clone().then(Rem, count.clone())));
        let row = emitter.bind("row", INDEX, run.then(Div, count.clone()));
        let place = at.then(Rem, length.clone());
        // The last part of a row has fewer.
        let place = part.clone().then(Mul, length).then(Add, place);
        let all = emitter.positions(&self.sorts.outer).then(Mul, parts.count * parts.length);
        let exists = at.then(Less, all);
        let exists = exists.then(And, place.then(Less, parts.items()));

        emitter.open_pinned();
        let own = from.numbers(&Expr::Name(at));
        let own: Vec<Expr> = own.into_iter().map(|number| emitter.named(number, DType::I64)).collect();
        let group = Expr::Name(emitter.bind("group", INDEX, part.then(Div, MERGED)));
        let first = Expr::Name(emitter.bind("first", INDEX, group.clone().then(Mul, MERGED)));
        let end = first.clone().then(Add, MERGED).then(Min, count);
        let end = Expr::Name(emitter.bind("end", INDEX, end));
        let rank = emitter.variable("rank", INDEX, Expr::Int(0));
        let other = emitter.index("other");
        let body = self.count_smaller(&mut emitter, from, parts, &own, [row, other, rank]);
        emitter.push(counting(other, first, end, LoopHint::None).of(body));
        let rank = Expr::Name(rank);
        let is_wanted = Some(rank.clone().then(Less, merged.length));
        match (merged.count, &own[..]) {
            (1, [place, .., key]) => {
                self.store(&mut emitter, is_wanted, (row, rank), [place.clone(), key.clone()])
            }
            (1, [item]) => self.store(&mut emitter, is_wanted, (row, rank), [item.clone(), item.clone()]),
            _ => {
                let run = row.then(Mul, merged.count).then(Add, group);
                let place = run.then(Mul, merged.length).then(Add, rank);
                let targets = to.numbers(&place).into_iter().zip(own);
                let then = targets.map(|(target, value)| Stmt::Assign { target, value }).collect();
                emitter.guarded(is_wanted, then);
            }
        }
        let then = emitter.close();
        emitter.guarded(Some(exists), then);
        let launch = Launch {
            items: self.of_rows(parts.count * parts.length),
            per_block: THREADS,
            block: [THREADS as u32, 1, 1],
            ..Launch::default()
        };
        let number = if number == 1 { String::new() } else { number.to_string() };
        Ok(Function { name: format!("{}_merge{number}", kernel.name), body: emitter.finish()?, launch })
    }

    /// Adds to the rank how many items of the other part come before the thread's own. In its own part that is its place.
    fn count_smaller(
        &self,
        emitter: &mut Emitter,
        from: Items,
        parts: Parts,
        own: &[Expr],
        [row, other, rank]: [Var; 3],
    ) -> Vec<Stmt> {
        emitter.open_pinned();
        let before = other.then(Mul, parts.length);
        let base = row.then(Mul, parts.count).then(Add, other);
        let base = Expr::Name(emitter.bind("base", INDEX, base.then(Mul, parts.length)));
        let left = Expr::Int(parts.items()).then(Sub, before);
        let items = Expr::Name(emitter.bind("items", INDEX, left.then(Min, parts.length)));
        let found = emitter.variable("found", INDEX, Expr::Int(0));
        let half = emitter.index("half");
        emitter.open_pinned();
        let probe = Expr::Name(emitter.bind("probe", INDEX, found.then(Add, half)));
        let numbers = from.numbers(&base.then(Add, probe.clone()).then(Sub, 1));
        let compare = |op: BinaryOp, number: usize| {
            Expr::Binary(op, DType::I64, Box::new(numbers[number].clone()), Box::new(own[number].clone()))
        };
        let is_less = match self.sorts.wide {
            false => compare(BinaryOp::Lt, 0),
            true => Expr::Select(
                Box::new(compare(BinaryOp::Eq, 1)),
                Box::new(compare(BinaryOp::Lt, 0)),
                Box::new(compare(BinaryOp::Lt, 1)),
            ),
        };
        let then = vec![Stmt::Assign { target: Expr::Name(found), value: probe.clone() }];
        let then = vec![Stmt::If { condition: is_less, then, otherwise: Vec::new() }];
        emitter.guarded(Some(probe.then(LessEqual, items)), then);
        let body = emitter.close();
        emitter.push(halving(half, 1 << parts.length.max(1).ilog2(), LoopHint::None).of(body));
        let sum = rank.then(Add, found);
        emitter.push(Stmt::Assign { target: Expr::Name(rank), value: sum });
        emitter.close()
    }
}
