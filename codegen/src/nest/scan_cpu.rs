//! Scans and recurrences on the CPU. Along the innermost axis scans are made within registers, row by row; a recurrence, and
//! what registers cannot scan, in one loop along four rows at a time, or along sixteen in vectors where combining is costly.
//! Along another axis, neighbouring columns go down together, in vectors.

use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::{launch_of_columns, launch_over};
use super::scan::Scans;
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint};
use super::stretch::{ForEach, InOrder};
use super::variable::Var;
use super::{Function, INDEX, Nest, scan_split_cpu};
use crate::index::AxisId;
use crate::ir::Kernel;
use crate::schedule::{Launch, ScanSchedule, rows_together};
use crate::{Language, Refusal};

pub(super) fn build(kernel: &Kernel, scans: &Scans, schedule: &ScanSchedule) -> Result<Nest, Refusal> {
    if schedule.splits > 1 {
        return scan_split_cpu::build(kernel, scans, schedule);
    }
    let mut emitter = Emitter::new(kernel, Language::C);
    let launch = match scans.is_innermost {
        true => rows(&mut emitter, kernel, scans, schedule),
        false => columns(&mut emitter, kernel, scans, schedule),
    };
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, emitter.finish()?, launch)], Vec::new()))
}

fn rows<'k>(emitter: &mut Emitter<'k>, kernel: &'k Kernel, scans: &Scans, schedule: &ScanSchedule) -> Launch {
    let rows = u64::from(schedule.rows);
    let total = emitter.positions(&scans.others);
    let (first, end) = emitter.part(["first", "end"], Expr::Builtin(Builtin::BlockX), rows, total);
    let mut from = first.clone();
    let together = rows_together(kernel);
    if (2..=rows).contains(&together) && !scans.others.is_empty() {
        let count = end.clone().then(Sub, first.clone());
        let whole = count.then(Div, together).then(Mul, together);
        let rest = emitter.bind("rest", INDEX, first.clone().then(Add, whole));
        let row = emitter.index("row");
        emitter.repeat(stepping(row, (from, rest), together, LoopHint::None), |emitter| {
            side_by_side(
                emitter,
                kernel,
                scans,
                Some((together, &Expr::name(Var::Lane))),
                &|emitter, hint, body| {
                    emitter.repeat(counting(Var::Lane, 0, together, hint), |emitter| {
                        // What vectors go over is in local arrays.
                        if hint != LoopHint::Simd {
                            let own_row = row.then(Add, Var::Lane);
                            let own_row = emitter.bind("own_row", INDEX, own_row);
                            emitter.unflatten(own_row, &scans.others, 1);
                        }
                        body(emitter);
                    });
                },
            );
        });
        from = Expr::Name(rest);
    }
    let row = emitter.index("row");
    emitter.repeat(counting(row, from, end.clone(), LoopHint::None), |emitter| {
        emitter.unflatten(row, &scans.others, 1);
        side_by_side(emitter, kernel, scans, None, &|emitter, _, body| body(emitter));
    });
    Launch { per_block: rows, ..launch_over(kernel, &scans.others) }
}

/// One loop, or several step by step together: `for_each` repeats what it is given for each of them. How many there are,
/// and the number of one.
fn side_by_side<'k>(
    emitter: &mut Emitter<'k>,
    kernel: &'k Kernel,
    scans: &Scans,
    lanes: Option<(u64, &Expr)>,
    for_each: ForEach<'_, 'k>,
) {
    let (lanes, lane) = (lanes.map(|(lanes, _)| lanes), lanes.map(|(_, lane)| lane));
    let running = scans.declare(emitter, kernel, lanes);
    let carries = scans.declare_carries(emitter, kernel, lanes);
    if let Some(lane) = lane.filter(|_| scans.is_sequential) {
        for_each(emitter, LoopHint::Unroll, &|emitter| carries.start(emitter, lane));
    }
    let (along, once) = scans.stores(kernel);
    let step = scans.step_name(emitter);
    let extent = emitter.extent(scans.axis);
    let bind = |emitter: &mut Emitter<'k>| scans.bind_position(emitter, step);
    let of = InOrder {
        kernel,
        scans,
        running: &running,
        carries: Some(&carries),
        lanes: lanes.zip(lane),
        lane,
        stores: &along,
        step,
        bind: &bind,
        is_one_position: true,
        for_each,
    };
    of.emit(emitter, Expr::Int(0), extent);
    if !once.is_empty() {
        for_each(emitter, LoopHint::Unroll, &|emitter| {
            let end = carries.end(emitter, lane, &once);
            emitter.guarded(None, end);
        });
    }
}

fn columns<'k>(
    emitter: &mut Emitter<'k>,
    kernel: &'k Kernel,
    scans: &Scans,
    schedule: &ScanSchedule,
) -> Launch {
    let Some((&inner, outer)) = scans.others.split_last() else {
        return rows(emitter, kernel, scans, schedule);
    };
    let lanes = u64::from(schedule.rows);
    let block = Expr::Builtin(Builtin::BlockX);
    let columns = Columns::bind(emitter, inner, outer, lanes, block);
    side_by_side(emitter, kernel, scans, Some((lanes, &columns.lane())), &|emitter, _, body| {
        columns.each(emitter, body);
    });
    launch_of_columns(kernel, &scans.others, lanes)
}

/// The columns of a block.
pub(super) struct Columns {
    inner: AxisId,
    left: Var,
    right: Var,
    /// The number of their row, if there are several.
    pub(super) row: Option<Var>,
}

impl Columns {
    /// Binds those that a block has by its number, and what is outside of them.
    pub(super) fn bind(
        emitter: &mut Emitter,
        inner: AxisId,
        outer: &[AxisId],
        lanes: u64,
        block: Expr,
    ) -> Columns {
        let columns = emitter.extent(inner);
        let parts = columns.clone().then(Add, lanes - 1).then(Div, lanes);
        let parts = Expr::Name(emitter.bind("parts", INDEX, parts));
        let row = (!outer.is_empty()).then(|| {
            let row = emitter.bind("row", INDEX, block.clone().then(Div, parts.clone()));
            emitter.unflatten(row, outer, 1);
            row
        });
        let left = emitter.bind("left", INDEX, block.then(Rem, parts).then(Mul, lanes));
        let right = left.then(Add, lanes).then(Min, columns);
        Columns { inner, left, right: emitter.bind("right", INDEX, right), row }
    }

    /// The lane of a column.
    pub(super) fn lane(&self) -> Expr {
        Expr::name(self.inner).then(Sub, self.left)
    }

    /// Does the same for all of them, in vectors.
    pub(super) fn each<'k>(&self, emitter: &mut Emitter<'k>, body: &dyn Fn(&mut Emitter<'k>)) {
        let (left, right) = (Expr::Name(self.left), Expr::Name(self.right));
        emitter.repeat_along(&[self.inner], counting(self.inner, left, right, LoopHint::Simd), body);
    }
}
