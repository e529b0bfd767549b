//! Scans within registers, one row stage by stage: what the scans of a stage take is computed in lanes, then scanned, so that
//! the next stage has it in lanes again, and at last what follows from all of them.

use super::InOrder;
use crate::ir::{ValueId, ValueOp};
use crate::nest::accumulate::set;
use crate::nest::emitter::Emitter;
use crate::nest::loops::counting;
use crate::nest::stmt::Arithmetic::Sub;
use crate::nest::stmt::{Expr, LoopHint, Scanning, Stmt, Type};
use crate::nest::variable::Var;

/// Positions of a stretch: beginning one costs as much as some positions do.
const LENGTH: u64 = 1024;

/// A scan, what it takes, and the array that it leaves its results in.
struct Scan {
    id: ValueId,
    operand: ValueId,
    result: Var,
    /// Of its first result: exclusive ones come after what is before all.
    at: u64,
}

impl<'k> InOrder<'_, 'k> {
    /// The loops from step `from` to `to`.
    pub(super) fn emit_in_registers(&self, emitter: &mut Emitter<'k>, from: Expr, to: &Expr) {
        let stretch @ [start, stop] = [emitter.fresh("start"), emitter.fresh("stop")];
        let all: Vec<Scan> = self.scans.ids.iter().filter_map(|&id| Scan::declare(emitter, id)).collect();
        // What a scan of another stage has left is there, and so is what another one takes as well.
        let mut arrays: Vec<(ValueId, Var)> = all.iter().map(|scan| (scan.id, scan.result)).collect();
        let mut taken = vec![Vec::new(); self.scans.stage_count()];
        for (scan, &stage) in all.iter().zip(&self.scans.stages) {
            if !arrays.iter().any(|(id, _)| *id == scan.operand) {
                let ty = Type::Register(self.kernel.value(scan.operand).dtype);
                let name = emitter.fresh("element");
                arrays.push((scan.operand, emitter.array(name, ty, LENGTH)));
                taken[stage].push(scan.operand);
            }
        }
        let array = |id: ValueId| arrays.iter().find(|(own, _)| *own == id).map(|&(_, array)| array);
        let elements = |ids: &[ValueId], slot: &Expr| -> Vec<(ValueId, Expr)> {
            ids.iter().filter_map(|&id| Some((id, Expr::element(array(id)?, slot)))).collect()
        };
        let slot = self.step.then(Sub, start);
        emitter.stretches(stretch, (from, to), LENGTH, |emitter| {
            let mut known = Vec::new();
            for (stage, taken) in taken.iter().enumerate() {
                if !taken.is_empty() {
                    self.along(emitter, stretch, &|emitter| {
                        emitter.find(&elements(&known, &slot));
                        emitter.leave(&elements(taken, &slot));
                    });
                    known.extend_from_slice(taken);
                }
                for number in self.scans.of_stage(stage) {
                    let (scan, running) = (&all[number], &self.running[number]);
                    let Some(from) = array(scan.operand) else { continue };
                    let before = running.place(self.lane);
                    if scan.at > 0 {
                        emitter.push(set(Expr::element(scan.result, 0), before.clone()));
                    }
                    emitter.push(Stmt::Scan(Box::new(Scanning {
                        op: running.op,
                        dtype: running.dtype,
                        to: scan.result,
                        to_at: Expr::Int(scan.at),
                        from,
                        from_at: Expr::Int(0),
                        count: stop.then(Sub, start),
                        running: before,
                    })));
                    known.push(scan.id);
                }
            }
            // Results are stored in the order of memory, whatever that of the scans is.
            let axis = self.scans.axis;
            let (slot, from, to) = match self.scans.reverse {
                false => (slot.clone(), Expr::Name(start), Expr::Name(stop)),
                true => {
                    let extent = emitter.extent(axis);
                    let step = extent.clone().then(Sub, 1).then(Sub, axis);
                    (step.then(Sub, start), extent.clone().then(Sub, stop), extent.then(Sub, start))
                }
            };
            emitter.repeat_along(&[axis], counting(axis, from, to, LoopHint::Simd), |emitter| {
                emitter.find(&elements(&known, &slot));
                self.store(emitter);
            });
        });
    }
}

impl Scan {
    fn declare(emitter: &mut Emitter, id: ValueId) -> Option<Scan> {
        let value = emitter.kernel.value(id);
        let ValueOp::Scan { operand, exclusive, .. } = value.op else { return None };
        let at = u64::from(exclusive);
        let name = emitter.fresh("result");
        Some(Scan { id, operand, result: emitter.array(name, Type::Register(value.dtype), LENGTH + at), at })
    }
}
