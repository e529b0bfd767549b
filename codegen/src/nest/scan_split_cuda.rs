//! Scans on CUDA whose axis is divided over blocks, because there are fewer of them than multiprocessors: one function
//! combines the elements of each part, and the next one scans each part from its exclusive prefix. It reads the
//! elements twice; and no block waits for another one, whose time would decide how sums are grouped.

use super::INDEX;
use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::Emitter;
use super::loops::{counting, halving, stepping};
use super::scan_cuda::Writer;
use super::stmt::Arithmetic::{Add, Div, Equal, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};

impl<'a> Writer<'a> {
    /// Where the block's part of a row begins and ends: at whole tiles.
    pub(super) fn bind_row_part(&self, emitter: &mut Emitter<'a>) -> (Expr, Expr) {
        let tile = Expr::Int(u64::from(self.schedule.threads) * u64::from(self.schedule.vector));
        let extent = emitter.extent(self.scans.axis);
        let step = Builtin::GridY.then(Mul, tile.clone());
        let tiles = extent.clone().then(Add, step.clone()).then(Sub, 1).then(Div, step);
        let length = emitter.bind("length", INDEX, tiles.then(Mul, tile));
        let from = emitter.bind("from", INDEX, Builtin::BlockY.then(Mul, length));
        let end = from.then(Add, length);
        let to = emitter.bind("to", INDEX, end.then(Min, extent));
        (Expr::Name(from), Expr::Name(to))
    }

    /// Of a row: what the block's part comes to.
    pub(super) fn row_totals(&self, emitter: &mut Emitter<'a>) {
        let (threads, vector) = (u64::from(self.schedule.threads), u64::from(self.schedule.vector));
        let x = Expr::Builtin(Builtin::ThreadX);
        self.bind_row(emitter, Expr::Builtin(Builtin::BlockX));
        let (from, to) = self.bind_row_part(emitter);
        let running = self.scans.declare(emitter, self.kernel, None);
        let step = emitter.index("step");
        self.open_elements(emitter, step);
        self.for_lanes(emitter, |emitter, _| {
            self.scans.take_elements(emitter, self.kernel, &running, None);
        });
        let body = emitter.close();
        emitter.push(
            stepping(step, (mul_add(x.clone(), vector, from), to), threads * vector, LoopHint::UnrollBy(4))
                .of(body),
        );
        self.combine_row_threads(emitter, &running);
        emitter.open(&[], false);
        self.totals.save(emitter, &running, None, &self.row_slot(Expr::Builtin(Builtin::BlockY)));
        let then = emitter.close();
        emitter.guarded(Some(x.then(Equal, 0)), then);
    }

    /// Of a row: takes the totals of the parts before the block's, each thread some of them.
    pub(super) fn take_row_parts(&self, emitter: &mut Emitter<'a>, running: &[Accumulator]) {
        let part = emitter.index("part");
        emitter.repeat(
            stepping(
                part,
                (Builtin::ThreadX, Builtin::BlockY),
                u64::from(self.schedule.threads),
                LoopHint::None,
            ),
            |emitter| {
                self.totals.take(emitter, running, None, &self.row_slot(Expr::Name(part)));
            },
        );
        self.combine_row_threads(emitter, running);
    }

    /// Where the total of a part of the row is.
    fn row_slot(&self, part: Expr) -> Expr {
        match self.scans.others.is_empty() {
            true => part,
            false => mul_add(self.row, Builtin::GridY, part),
        }
    }

    /// All threads of a row get their exclusive prefix.
    fn combine_row_threads(&self, emitter: &mut Emitter<'a>, running: &[Accumulator]) {
        let warps = u64::from(self.schedule.threads) / 32;
        let x = Expr::Builtin(Builtin::ThreadX);
        for running in running {
            let step = emitter.index("step");
            emitter.repeat(halving(step, 16, LoopHint::Unroll), |emitter| {
                let other = Expr::ShuffleXor {
                    value: Box::new(running.place(None)),
                    mask: Box::new(Expr::Name(step)),
                    width: 32,
                };
                running.take_value(emitter, other, None);
            });
        }
        let mut shared = Vec::new();
        for running in running {
            let array = emitter.shared("warp", running.name(), Type::Register(running.dtype), warps);
            shared.push(array);
            let slot = Expr::element(array, x.clone().then(Div, 32));
            let first_lane = x.clone().then(Rem, 32).then(Equal, 0);
            emitter.guarded(Some(first_lane), vec![set(slot, running.place(None))]);
        }
        emitter.push(Stmt::Barrier);
        running.iter().for_each(|running| running.reset(emitter));
        let w = emitter.index("w");
        emitter.repeat(counting(w, 0, warps, LoopHint::Unroll), |emitter| {
            for (running, array) in running.iter().zip(shared) {
                running.take_value(emitter, Expr::element(array, w), None);
            }
        });
    }

    /// Of columns: the totals of the block's threads, each with those before it in the block.
    pub(super) fn column_totals(&self, emitter: &mut Emitter<'a>) {
        let inside = self.bind_column(emitter);
        let running = self.scans.declare(emitter, self.kernel, None);
        let (from, to) = self.bind_column_part(emitter);
        let sweep = self.sweep(emitter, &from, &to, |emitter| {
            self.scans.take_elements(emitter, self.kernel, &running, None);
        });
        emitter.push(sweep);
        let y = Expr::Builtin(Builtin::ThreadY);
        let of_all: Vec<&Accumulator> = running.iter().collect();
        self.combine_column_threads(emitter, &of_all, y.clone().then(Add, 1));
        emitter.open(&[], false);
        self.totals.save(emitter, &running, None, &self.column_slot(emitter, self.column_part()));
        let then = emitter.close();
        emitter.guarded(inside, then);
    }

    /// Of columns: takes the totals of the parts before this thread's. Those of other blocks first, each of the column's
    /// threads some of them.
    pub(super) fn take_column_parts(&self, emitter: &mut Emitter<'a>, running: &[Accumulator]) {
        let threads = Expr::Int(u64::from(self.schedule.threads));
        let y = Expr::Builtin(Builtin::ThreadY);
        let part = emitter.index("part");
        emitter.repeat(
            stepping(part, (y.clone(), Builtin::BlockY), threads.clone(), LoopHint::None),
            |emitter| {
                let last = mul_add(part, threads.clone(), threads.clone().then(Sub, 1));
                let at = self.column_slot(emitter, last);
                self.totals.take(emitter, running, None, &at);
            },
        );
        let of_all: Vec<&Accumulator> = running.iter().collect();
        self.combine_column_threads(emitter, &of_all, threads);
        emitter.open(&[], false);
        let at = self.column_slot(emitter, self.column_part().then(Sub, 1));
        self.totals.take(emitter, running, None, &at);
        let then = emitter.close();
        emitter.guarded(Some(Expr::Int(0).then(Less, y)), then);
    }

    /// Where the total of a part of the column is.
    fn column_slot(&self, emitter: &Emitter<'a>, part: Expr) -> Expr {
        mul_add(part, emitter.positions(&self.scans.others), self.row)
    }
}
