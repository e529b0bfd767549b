//! Scans on the CPU whose axis is divided, because there are fewer of them than threads may be: one function combines
//! the elements of each part, with vector lanes, and the next one scans each part from what those before it come to.
//! The parts follow from the sizes, so that results do not depend on the number of threads.

use super::accumulate::{mul_add, set};
use super::emitter::Emitter;
use super::scan::{Running, Scans, Totals};
use super::scan_cpu::{TOGETHER, bind_columns, columns_launch, for_columns};
use super::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Step, Stmt};
use super::stretch::{InOrder, Stretches};
use super::variable::Var;
use super::walk::{count_loop, items_formula};
use super::{Function, INDEX, Nest, needs_wide_index, parameters};
use crate::Language;
use crate::ir::{Kernel, Store};
use crate::schedule::{Launch, MOST_SCAN_SPLITS, ScanSchedule, scan_split_length};

/// Bytes of the vector lanes that combine elements: so many that additions overlap.
const LANE_BYTES: u64 = 128;

pub(super) fn build(kernel: &Kernel, scans: &Scans, schedule: &ScanSchedule) -> Nest {
    let splits = u64::from(schedule.splits);
    let pieces = if scans.is_innermost { TOGETHER } else { 1 };
    let totals = Totals::new(kernel, scans, Language::C, scans.rows(kernel) * splits * pieces);
    let divided = Divided { kernel, scans, schedule, totals };
    let function = |name: String, phase: Phase| {
        let mut emitter = Emitter::new(kernel, Language::C);
        divided.bind_length(&mut emitter);
        match scans.is_innermost {
            true => divided.row(&mut emitter, phase),
            false => divided.columns(&mut emitter, phase),
        }
        Function { name, body: emitter.finish(), launch: divided.launch() }
    };
    let functions = vec![
        function(format!("{}_totals", kernel.name), Phase::Totals),
        function(kernel.name.clone(), Phase::Scans),
    ];
    Nest {
        functions,
        parameters: parameters(kernel, &divided.totals.workspaces),
        workspaces: divided.totals.workspaces,
        wide_index: needs_wide_index(kernel),
        kernel: kernel.clone(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Totals,
    Scans,
}

struct Divided<'k> {
    kernel: &'k Kernel,
    scans: &'k Scans,
    schedule: &'k ScanSchedule,
    totals: Totals,
}

impl<'k> Divided<'k> {
    fn launch(&self) -> Launch {
        let whole = match self.scans.is_innermost {
            true => Launch {
                items: self.scans.rows(self.kernel),
                formula: items_formula(self.kernel, &self.scans.others, 1),
                ..Launch::default()
            },
            false => columns_launch(self.kernel, &self.scans.others, u64::from(self.schedule.rows)),
        };
        let formula = match whole.formula.as_str() {
            "1" => "splits".into(),
            formula => format!("{formula} * splits"),
        };
        Launch { items: whole.items * u64::from(self.schedule.splits), formula, ..whole }
    }

    /// Binds the number of parts and their length; the number of this block's part, and of the rest.
    fn bind_length(&self, emitter: &mut Emitter<'k>) {
        let extent = emitter.extent(self.scans.axis);
        let columns = if self.scans.is_innermost { 1 } else { u64::from(self.schedule.rows) };
        let ceil = |a: Expr, b: Expr| a.then(Add, b.clone().then(Sub, Expr::Int(1))).then(Div, b);
        let splits = ceil(extent.clone(), Expr::Int(scan_split_length(columns)));
        emitter.bind("splits", INDEX, splits.then(Min, Expr::Int(MOST_SCAN_SPLITS)));
        emitter.bind("length", INDEX, ceil(extent, Expr::name("splits")));
        emitter.bind("split", INDEX, Expr::Builtin(Builtin::BlockX).then(Rem, Expr::name("splits")));
        emitter.bind("first", INDEX, Expr::name("split").then(Mul, Expr::name("length")));
        let end = Expr::name("first").then(Add, Expr::name("length"));
        emitter.bind("end", INDEX, end.then(Min, emitter.extent(self.scans.axis)));
    }

    fn whole_block() -> Expr {
        Expr::Builtin(Builtin::BlockX).then(Div, Expr::name("splits"))
    }

    /// Opens the scope of the position after `step` others, and closes it again.
    fn at_step(
        &self,
        emitter: &mut Emitter<'k>,
        step: Expr,
        body: impl FnOnce(&mut Emitter<'k>),
    ) -> Vec<Stmt> {
        emitter.open(&[], false);
        let name = self.scans.step_name();
        emitter.bind(name, INDEX, step);
        self.scans.bind_position(emitter, name);
        emitter.bind_axes(&[self.scans.axis]);
        body(emitter);
        emitter.close()
    }

    /// A part of a row: pieces of it go on together, as a step waits for the one before it, not for those of other pieces.
    fn row(&self, emitter: &mut Emitter<'k>, phase: Phase) {
        if !self.scans.others.is_empty() {
            emitter.bind("row", INDEX, Self::whole_block());
            emitter.unflatten("row", &self.scans.others, 1);
        }
        let length = Expr::name("end").then(Sub, Expr::name("first"));
        emitter.bind("piece", INDEX, length.then(Div, Expr::Int(TOGETHER)));
        // Blocks have numbers row by row, part by part.
        let own = Expr::Builtin(Builtin::BlockX).then(Mul, Expr::Int(TOGETHER));
        match phase {
            Phase::Totals => self.row_totals(emitter, own),
            Phase::Scans => self.row_scans(emitter, own),
        }
    }

    fn row_totals(&self, emitter: &mut Emitter<'k>, own: Expr) {
        let widest = self.scans.ids.iter().map(|&id| self.kernel.value(id).dtype.compute().size());
        let lanes = LANE_BYTES / widest.max().unwrap_or(4) as u64;
        let part = Expr::name("part");
        emitter.open(&[], false);
        let from = mul_add(part.clone(), Expr::name("piece"), Expr::name("first"));
        emitter.bind("from", INDEX, from);
        let to = Expr::Select(
            Box::new(part.clone().then(Less, Expr::Int(TOGETHER - 1))),
            Box::new(Expr::name("from").then(Add, Expr::name("piece"))),
            Box::new(Expr::name("end")),
        );
        emitter.bind("to", INDEX, to);
        let all = Expr::name("to").then(Sub, Expr::name("from"));
        let whole = all.then(Div, Expr::Int(lanes)).then(Mul, Expr::Int(lanes));
        emitter.bind("whole", INDEX, Expr::name("from").then(Add, whole));
        let running = self.scans.declare(emitter, self.kernel, Some(lanes));
        let lane = Expr::name("lane");
        let start = Expr::name("start");
        let take = |emitter: &mut Emitter<'k>, start: Expr| {
            self.at_step(emitter, start.then(Add, lane.clone()), |emitter| {
                self.scans.take_elements(emitter, self.kernel, &running, Some(&lane));
            })
        };
        let body = take(emitter, start);
        emitter.push(Stmt::For {
            var: "start".into(),
            from: Expr::name("from"),
            to: Expr::name("whole"),
            step: Step::Add(Expr::Int(lanes)),
            hint: LoopHint::None,
            body: vec![count_loop("lane", Expr::Int(0), Expr::Int(lanes), LoopHint::Simd, body)],
        });
        let body = take(emitter, Expr::name("whole"));
        let rest = Expr::name("to").then(Sub, Expr::name("whole"));
        emitter.push(count_loop("lane", Expr::Int(0), rest, LoopHint::None, body));
        let total = self.scans.declare(emitter, self.kernel, None);
        emitter.open(&[], false);
        for (total, running) in total.iter().zip(&running) {
            total.take(emitter, running.place(Some(&lane)), None);
        }
        let body = emitter.close();
        emitter.push(count_loop("lane", Expr::Int(0), Expr::Int(lanes), LoopHint::None, body));
        self.totals.save(emitter, &total, None, &own.then(Add, part));
        let body = emitter.close();
        emitter.push(count_loop("part", Expr::Int(0), Expr::Int(TOGETHER), LoopHint::None, body));
    }

    fn row_scans(&self, emitter: &mut Emitter<'k>, own: Expr) {
        let l = Expr::name(Var::Lane);
        let running = self.scans.declare(emitter, self.kernel, Some(TOGETHER));
        // The first piece begins with what all before come to, each of the others with what the one before it does.
        let before = Expr::name("split").then(Mul, Expr::Int(TOGETHER));
        let of_row = match self.scans.others.is_empty() {
            true => Expr::Int(0),
            false => Expr::name("row").then(Mul, Expr::name("splits")).then(Mul, Expr::Int(TOGETHER)),
        };
        emitter.open(&[], false);
        self.totals.take(emitter, &running, Some(&Expr::Int(0)), &of_row.then(Add, Expr::name("before")));
        let body = emitter.close();
        emitter.push(count_loop("before", Expr::Int(0), before, LoopHint::None, body));
        emitter.open(&[], false);
        let last = l.clone().then(Sub, Expr::Int(1));
        let totals = self.totals.at(&own.then(Add, last.clone()));
        for (running, total) in running.iter().zip(totals) {
            let so_far = running.combined(emitter, running.place(Some(&last)), total);
            emitter.push(set(running.place(Some(&l)), so_far));
        }
        let body = emitter.close();
        emitter.push(count_loop(Var::Lane, Expr::Int(1), Expr::Int(TOGETHER), LoopHint::Unroll, body));
        let piece = Expr::name("piece");
        self.pieces(emitter, &running, (&l, true), Expr::Int(0), piece.clone());
        // What is left of the last piece.
        let length = Expr::name("end").then(Sub, Expr::name("first"));
        let rest = length.then(Sub, piece.clone().then(Mul, Expr::Int(TOGETHER - 1)));
        self.pieces(emitter, &running, (&Expr::Int(TOGETHER - 1), false), piece, rest);
    }

    /// What is done `from` to `to` steps after the starts of all pieces, or after that of one.
    fn pieces(
        &self,
        emitter: &mut Emitter<'k>,
        running: &[Running],
        (piece, is_all): (&Expr, bool),
        from: Expr,
        to: Expr,
    ) {
        let (kernel, scans) = (self.kernel, self.scans);
        let step = scans.step_name();
        let bind = |emitter: &mut Emitter<'k>| {
            let start = mul_add(piece.clone(), Expr::name("piece"), Expr::name("first"));
            emitter.bind(step, INDEX, start.then(Add, Expr::name("k")));
            scans.bind_position(emitter, step);
        };
        let for_each =
            |emitter: &mut Emitter<'k>, hint: LoopHint, body: &dyn Fn(&mut Emitter<'k>)| match is_all {
                true => {
                    emitter.open(&[], false);
                    body(emitter);
                    let body = emitter.close();
                    emitter.push(count_loop(Var::Lane, Expr::Int(0), Expr::Int(TOGETHER), hint, body));
                }
                false => body(emitter),
            };
        let stores: Vec<&Store> = kernel.stores.iter().collect();
        let Some(stretches) = Stretches::of(kernel, scans) else {
            emitter.open(&[], false);
            for_each(emitter, LoopHint::Unroll, &|emitter| {
                bind(emitter);
                emitter.bind_axes(&[scans.axis]);
                scans.advance(emitter, kernel, running, Some(piece), None);
                stores.iter().for_each(|store| emitter.store(store));
            });
            let body = emitter.close();
            return emitter.push(count_loop("k", from, to, LoopHint::None, body));
        };
        let lanes = is_all.then_some((TOGETHER, piece));
        let of = InOrder {
            kernel,
            scans,
            running,
            carries: None,
            lanes,
            lane: Some(piece),
            stores: &stores,
            step: "k".into(),
            bind: &bind,
            for_each: &for_each,
        };
        stretches.emit(emitter, &of, from, to);
    }

    /// A part of neighbouring columns, in vectors.
    fn columns(&self, emitter: &mut Emitter<'k>, phase: Phase) {
        let Some((&inner, outer)) = self.scans.others.split_last() else { return };
        let lanes = u64::from(self.schedule.rows);
        let (column, lane) = bind_columns(emitter, &self.scans.others, lanes, Self::whole_block());
        let extent = emitter.extent(inner);
        let at = |split: Expr| {
            let split = match outer.is_empty() {
                true => split,
                false => mul_add(Expr::name("row"), Expr::name("splits"), split),
            };
            mul_add(split, extent.clone(), Expr::name(column))
        };
        let running = self.scans.declare(emitter, self.kernel, Some(lanes));
        if phase == Phase::Scans {
            emitter.open(&[], false);
            for_columns(emitter, inner, column, &|emitter| {
                self.totals.take(emitter, &running, Some(&lane), &at(Expr::name("before")));
            });
            let body = emitter.close();
            emitter.push(count_loop("before", Expr::Int(0), Expr::name("split"), LoopHint::None, body));
        }
        let step = self.scans.step_name();
        emitter.open(&[], false);
        self.scans.bind_position(emitter, step);
        emitter.bind_axes(&[self.scans.axis]);
        for_columns(emitter, inner, column, &|emitter| match phase {
            Phase::Totals => self.scans.take_elements(emitter, self.kernel, &running, Some(&lane)),
            Phase::Scans => {
                self.scans.advance(emitter, self.kernel, &running, Some(&lane), None);
                self.kernel.stores.iter().for_each(|store| emitter.store(store));
            }
        });
        let body = emitter.close();
        emitter.push(count_loop(step, Expr::name("first"), Expr::name("end"), LoopHint::None, body));
        if phase == Phase::Totals {
            for_columns(emitter, inner, column, &|emitter| {
                self.totals.save(emitter, &running, Some(&lane), &at(Expr::name("split")));
            });
        }
    }
}
