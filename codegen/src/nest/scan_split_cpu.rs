//! Scans on the CPU whose axis is divided, because there are fewer of them than threads may be: one function combines
//! the elements of each part, with vector lanes, and the next one scans each part from its exclusive prefix.
//! The parts follow from the sizes, so that results do not depend on the number of threads.

use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::{launch_of_columns, launch_over};
use super::scan::{Scans, Totals};
use super::scan_cpu::Columns;
use super::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::stretch::InOrder;
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::ir::{Kernel, Store};
use crate::schedule::{Launch, MOST_SCAN_SPLITS, ScanSchedule, WorkItems, rows_together, scan_split_length};
use crate::{Language, Refusal};

/// Bytes of the vector lanes that combine elements: so many that additions overlap.
const LANE_BYTES: u64 = 128;

/// Combinations of pieces that are written one after the other.
const UNROLLED: u64 = 4;

pub(super) fn build(kernel: &Kernel, scans: &Scans, schedule: &ScanSchedule) -> Result<Nest, Refusal> {
    let splits = u64::from(schedule.splits);
    let pieces = if scans.is_innermost { rows_together(kernel) } else { 1 };
    let totals = Totals::new(kernel, scans, Language::C, scans.rows(kernel) * splits * pieces);
    let function = |name: String, phase: Phase| {
        let mut emitter = Emitter::new(kernel, Language::C);
        let divided = Divided::bind(&mut emitter, kernel, scans, schedule, &totals);
        match scans.is_innermost {
            true => divided.row(&mut emitter, phase),
            false => divided.columns(&mut emitter, phase),
        }
        Ok(Function { name, body: emitter.finish()?, launch: divided.launch() })
    };
    let functions = vec![
        function(format!("{}_totals", kernel.name), Phase::Totals)?,
        function(kernel.name.clone(), Phase::Scans)?,
    ];
    Ok(Nest::new(kernel.clone(), functions, totals.workspaces))
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
    totals: &'k Totals,
    /// How many parts there are, and the block's.
    splits: Var,
    split: Var,
    /// Where that begins and ends.
    first: Var,
    end: Var,
}

impl<'k> Divided<'k> {
    fn launch(&self) -> Launch {
        let whole = match self.scans.is_innermost {
            true => launch_over(self.kernel, &self.scans.others),
            false => launch_of_columns(self.kernel, &self.scans.others, self.schedule.rows.into()),
        };
        Launch { items: whole.items * WorkItems::named("splits", self.schedule.splits.into()), ..whole }
    }

    /// Binds the number of parts and their length, and this block's part.
    fn bind(
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        scans: &'k Scans,
        schedule: &'k ScanSchedule,
        totals: &'k Totals,
    ) -> Divided<'k> {
        let extent = emitter.extent(scans.axis);
        let columns = if scans.is_innermost { 1 } else { u64::from(schedule.rows) };
        let ceil = |a: Expr, b: Expr| a.then(Add, b.clone().then(Sub, 1)).then(Div, b);
        let splits = ceil(extent.clone(), Expr::Int(scan_split_length(columns)));
        let splits = emitter.bind("splits", INDEX, splits.then(Min, MOST_SCAN_SPLITS));
        let length = emitter.bind("length", INDEX, ceil(extent, Expr::Name(splits)));
        let split = emitter.bind("split", INDEX, Builtin::BlockX.then(Rem, splits));
        let first = emitter.bind("first", INDEX, split.then(Mul, length));
        let end = first.then(Add, length);
        let end = emitter.bind("end", INDEX, end.then(Min, emitter.extent(scans.axis)));
        Divided { kernel, scans, schedule, totals, splits, split, first, end }
    }

    /// Pieces of a row that go on together.
    fn together(&self) -> u64 {
        rows_together(self.kernel)
    }

    fn whole_block(&self) -> Expr {
        Builtin::BlockX.then(Div, self.splits)
    }

    /// Opens the scope of the position after `step` others, and closes it again.
    fn at_step(
        &self,
        emitter: &mut Emitter<'k>,
        step: Expr,
        body: impl FnOnce(&mut Emitter<'k>),
    ) -> Vec<Stmt> {
        emitter.open(&[], false);
        let name = self.scans.step_name(emitter);
        emitter.bind(name, INDEX, step);
        self.scans.bind_position(emitter, name);
        emitter.bind_axes(&[self.scans.axis]);
        body(emitter);
        emitter.close()
    }

    /// A part of a row: pieces of it go on together, as a step waits for the one before it, not for those of other pieces.
    fn row(&self, emitter: &mut Emitter<'k>, phase: Phase) {
        let row = (!self.scans.others.is_empty()).then(|| {
            let row = emitter.bind("row", INDEX, self.whole_block());
            emitter.unflatten(row, &self.scans.others, 1);
            row
        });
        if self.together() == 1 {
            return match phase {
                Phase::Totals => self.total(emitter, self.first, self.end, &Expr::Builtin(Builtin::BlockX)),
                Phase::Scans => self.row_scan(emitter, row),
            };
        }
        let length = self.end.then(Sub, self.first);
        let piece = emitter.bind("piece", INDEX, length.then(Div, self.together()));
        // Blocks have numbers row by row, part by part.
        let own = Builtin::BlockX.then(Mul, self.together());
        match phase {
            Phase::Totals => self.row_totals(emitter, own, piece),
            Phase::Scans => self.row_scans(emitter, own, piece, row),
        }
    }

    fn row_totals(&self, emitter: &mut Emitter<'k>, own: Expr, piece: Var) {
        let number = emitter.index("part");
        let part = Expr::Name(number);
        emitter.repeat(counting(number, 0, self.together(), LoopHint::None), |emitter| {
            let from = mul_add(part.clone(), piece, self.first);
            let from = emitter.bind("from", INDEX, from);
            let to = Expr::Select(
                Box::new(part.clone().then(Less, self.together() - 1)),
                Box::new(from.then(Add, piece)),
                Box::new(Expr::Name(self.end)),
            );
            let to = emitter.bind("to", INDEX, to);
            self.total(emitter, from, to, &own.then(Add, part));
        });
    }

    /// What the elements between two positions come to, left at a place.
    fn total(&self, emitter: &mut Emitter<'k>, from: Var, to: Var, at: &Expr) {
        let widest = self.scans.ids.iter().map(|&id| self.kernel.value(id).dtype.compute().size());
        let lanes = LANE_BYTES / widest.max().unwrap_or(4) as u64;
        let all = to.then(Sub, from);
        let whole = all.then(Div, lanes).then(Mul, lanes);
        let whole = emitter.bind("whole", INDEX, from.then(Add, whole));
        let running = self.scans.declare(emitter, self.kernel, Some(lanes));
        let (start, lane) = (emitter.index("start"), Expr::name(Var::Lane));
        let take = |emitter: &mut Emitter<'k>, start: Expr| {
            self.at_step(emitter, start.then(Add, lane.clone()), |emitter| {
                self.scans.take_elements(emitter, self.kernel, &running, Some(&lane));
            })
        };
        let body = take(emitter, Expr::Name(start));
        emitter.push(
            stepping(start, (from, whole), lanes, LoopHint::None)
                .of(vec![counting(Var::Lane, 0, lanes, LoopHint::Simd).of(body)]),
        );
        let body = take(emitter, Expr::Name(whole));
        emitter.push(counting(Var::Lane, 0, to.then(Sub, whole), LoopHint::None).of(body));
        let total = self.scans.declare(emitter, self.kernel, None);
        emitter.repeat(counting(Var::Lane, 0, lanes, LoopHint::None), |emitter| {
            for (total, running) in total.iter().zip(&running) {
                total.take_value(emitter, running.place(Some(&lane)), None);
            }
        });
        self.totals.save(emitter, &total, None, at);
    }

    /// The only piece of a part, within registers.
    fn row_scan(&self, emitter: &mut Emitter<'k>, row: Option<Var>) {
        let (kernel, scans) = (self.kernel, self.scans);
        let running = scans.declare(emitter, kernel, None);
        self.take_before(emitter, &running, None, row);
        let step = scans.step_name(emitter);
        let bind = |emitter: &mut Emitter<'k>| scans.bind_position(emitter, step);
        let stores: Vec<&Store> = kernel.stores.iter().collect();
        let of = InOrder {
            kernel,
            scans,
            running: &running,
            carries: None,
            lanes: None,
            lane: None,
            stores: &stores,
            step,
            bind: &bind,
            is_one_position: true,
            for_each: &|emitter, _, body| body(emitter),
        };
        of.emit(emitter, Expr::Name(self.first), Expr::Name(self.end));
    }

    /// Lets running results take what the parts before come to.
    fn take_before(
        &self,
        emitter: &mut Emitter<'k>,
        running: &[Accumulator],
        lane: Option<&Expr>,
        row: Option<Var>,
    ) {
        let before = self.split.then(Mul, self.together());
        let of_row = match row {
            None => Expr::Int(0),
            Some(row) => row.then(Mul, self.splits).then(Mul, self.together()),
        };
        let number = emitter.index("before");
        emitter.repeat(counting(number, 0, before, LoopHint::None), |emitter| {
            self.totals.take(emitter, running, lane, &of_row.then(Add, number));
        });
    }

    fn row_scans(&self, emitter: &mut Emitter<'k>, own: Expr, piece: Var, row: Option<Var>) {
        let l = Expr::name(Var::Lane);
        let running = self.scans.declare(emitter, self.kernel, Some(self.together()));
        // Each piece begins with its exclusive prefix: the first one with the part's, each of the others with that and the one before it.
        self.take_before(emitter, &running, Some(&Expr::Int(0)), row);
        emitter.open(&[], false);
        let last = l.clone().then(Sub, 1);
        let totals = self.totals.at(&own.then(Add, last.clone()));
        for (running, total) in running.iter().zip(totals) {
            let so_far = running.combined(emitter, running.place(Some(&last)), total);
            emitter.push(set(running.place(Some(&l)), so_far));
        }
        let body = emitter.close();
        let hint = if self.together() > UNROLLED { LoopHint::None } else { LoopHint::Unroll };
        emitter.push(counting(Var::Lane, 1, self.together(), hint).of(body));
        let length = Expr::Name(piece);
        self.pieces(emitter, &running, piece, (&l, true), Expr::Int(0), length.clone());
        // What is left of the last piece.
        let all = self.end.then(Sub, self.first);
        let rest = all.then(Sub, length.clone().then(Mul, self.together() - 1));
        self.pieces(emitter, &running, piece, (&Expr::Int(self.together() - 1), false), length, rest);
    }

    /// What is done `from` to `to` steps after the starts of all pieces, or after that of one.
    fn pieces(
        &self,
        emitter: &mut Emitter<'k>,
        running: &[Accumulator],
        length: Var,
        (piece, is_all): (&Expr, bool),
        from: Expr,
        to: Expr,
    ) {
        let (kernel, scans) = (self.kernel, self.scans);
        let (step, k) = (scans.step_name(emitter), emitter.index("k"));
        let bind = |emitter: &mut Emitter<'k>| {
            let start = mul_add(piece.clone(), length, self.first);
            emitter.bind(step, INDEX, start.then(Add, k));
            scans.bind_position(emitter, step);
        };
        let for_each =
            |emitter: &mut Emitter<'k>, hint: LoopHint, body: &dyn Fn(&mut Emitter<'k>)| match is_all {
                true => {
                    emitter.repeat(counting(Var::Lane, 0, self.together(), hint), body);
                }
                false => body(emitter),
            };
        let stores: Vec<&Store> = kernel.stores.iter().collect();
        let lanes = is_all.then_some((self.together(), piece));
        let of = InOrder {
            kernel,
            scans,
            running,
            carries: None,
            lanes,
            lane: Some(piece),
            stores: &stores,
            step: k,
            bind: &bind,
            is_one_position: false,
            for_each: &for_each,
        };
        of.emit(emitter, from, to);
    }

    /// A part of neighbouring columns, in vectors.
    fn columns(&self, emitter: &mut Emitter<'k>, phase: Phase) {
        let Some((&inner, outer)) = self.scans.others.split_last() else { return };
        let lanes = u64::from(self.schedule.rows);
        let columns = Columns::bind(emitter, inner, outer, lanes, self.whole_block());
        let lane = columns.lane();
        let extent = emitter.extent(inner);
        let at = |split: Expr| {
            let split = match columns.row {
                None => split,
                Some(row) => mul_add(row, self.splits, split),
            };
            mul_add(split, extent.clone(), inner)
        };
        let running = self.scans.declare(emitter, self.kernel, Some(lanes));
        if phase == Phase::Scans {
            let before = emitter.index("before");
            emitter.repeat(counting(before, 0, self.split, LoopHint::None), |emitter| {
                columns.each(emitter, &|emitter| {
                    self.totals.take(emitter, &running, Some(&lane), &at(Expr::Name(before)));
                });
            });
        }
        let step = self.scans.step_name(emitter);
        emitter.repeat(counting(step, self.first, self.end, LoopHint::None), |emitter| {
            self.scans.bind_position(emitter, step);
            emitter.bind_axes(&[self.scans.axis]);
            columns.each(emitter, &|emitter| {
                self.scans.prefetch_next(emitter, self.kernel);
                match phase {
                    Phase::Totals => self.scans.take_elements(emitter, self.kernel, &running, Some(&lane)),
                    Phase::Scans => {
                        self.scans.advance(emitter, self.kernel, &running, Some(&lane), None);
                        emitter.store_all(self.kernel);
                    }
                }
            });
        });
        if phase == Phase::Totals {
            columns.each(emitter, &|emitter| {
                self.totals.save(emitter, &running, Some(&lane), &at(Expr::Name(self.split)));
            });
        }
    }
}
