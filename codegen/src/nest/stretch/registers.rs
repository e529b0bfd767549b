//! Scans within registers, one row stage by stage: what the scans of a stage take is computed in lanes, then scanned, so that
//! the next stage has it in lanes again, and at last what follows from all of them.

use super::InOrder;
use crate::ir::{AxisKind, ValueId, ValueOp};
use crate::nest::accumulate::set;
use crate::nest::emitter::Emitter;
use crate::nest::fission::{Divided, Each};
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
                    let (there, left) = (elements(&known, &slot), elements(taken, &slot));
                    let each: Each<'_, 'k> = &mut |emitter, body| {
                        emitter.repeat(counting(self.step, start, stop, LoopHint::Simd), |emitter| {
                            self.bind_step(emitter);
                            body(emitter);
                        });
                    };
                    self.divided(emitter, &there, taken, &slot, each, |emitter| emitter.leave(&left));
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
            let stored: Vec<ValueId> = self.stores.iter().map(|store| store.value).collect();
            let each: Each<'_, 'k> = &mut |emitter, body| {
                let along = counting(axis, from.clone(), to.clone(), LoopHint::Simd);
                emitter.repeat_along(&[axis], along, |emitter| body(emitter));
            };
            self.divided(emitter, &elements(&known, &slot), &stored, &slot, each, |emitter| {
                emitter.values_before_stores(self.kernel);
                self.store(emitter);
            });
        });
    }

    /// Loops in lanes, each made by `each`, that come to some values: several where one would wait for itself, or for what is read
    /// at computed positions. `there` is in arrays; `end` does with the values what they are for.
    fn divided(
        &self,
        emitter: &mut Emitter<'k>,
        there: &[(ValueId, Expr)],
        ends: &[ValueId],
        slot: &Expr,
        each: Each<'_, 'k>,
        end: impl Fn(&mut Emitter<'k>),
    ) {
        let axis = self.scans.axis;
        let known: Vec<ValueId> = there.iter().map(|(id, _)| *id).collect();
        let divided = Divided {
            kernel: self.kernel,
            along: &[axis],
            bound: self.kernel.axes_of_kind(AxisKind::Map).into_iter().chain([axis]).collect(),
            ends: ends.to_vec(),
            there: &known,
            apart: None,
        };
        let length = LENGTH.min(self.kernel.axis(axis).extent);
        let fission = divided.fission(length);
        let mut each = |emitter: &mut Emitter<'k>, body: &mut dyn FnMut(&mut Emitter<'k>)| {
            each(emitter, &mut |emitter| {
                emitter.find(there);
                body(emitter);
            });
        };
        let elements = fission.map(|fission| fission.emit(emitter, self.kernel, slot, LENGTH, &mut each));
        let elements = elements.unwrap_or_default();
        each(emitter, &mut |emitter| {
            emitter.find(&elements);
            end(emitter);
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
