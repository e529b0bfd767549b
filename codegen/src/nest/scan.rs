//! What the schedules of scans share: running results, and what is done at one position.

use super::accumulate::Accumulator;
use super::emitter::Emitter;
use super::stmt::Arithmetic::Sub;
use super::stmt::{Expr, Type};
use super::{INDEX, pointwise::launch_items};
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// The scans of a kernel, all along one axis and in one direction.
pub(super) struct Scans {
    pub(super) axis: AxisId,
    pub(super) reverse: bool,
    pub(super) ids: Vec<ValueId>,
    /// The other map axes, outermost first: each of their positions has a scan of its own.
    pub(super) others: Vec<AxisId>,
    /// Whether neighbouring elements of a scan are neighbours in the results.
    pub(super) is_innermost: bool,
}

impl Scans {
    pub(super) fn new(kernel: &Kernel) -> Result<Scans, String> {
        let mut found: Option<(AxisId, bool)> = None;
        let mut ids = Vec::new();
        for (number, value) in kernel.values.iter().enumerate() {
            let ValueOp::Scan { axis, reverse, .. } = value.op else { continue };
            if found.is_some_and(|found| found != (axis, reverse)) {
                return Err("scans along different axes, or in different directions".into());
            }
            found = Some((axis, reverse));
            ids.push(ValueId(number as u32));
        }
        let (axis, reverse) = found.ok_or("no scan")?;
        let map = kernel.axes_of_kind(AxisKind::Map);
        let is_innermost = map.last() == Some(&axis);
        let others = map.into_iter().filter(|&other| other != axis).collect();
        Ok(Scans { axis, reverse, ids, others, is_innermost })
    }

    /// How many scans this launch has.
    pub(super) fn rows(&self, kernel: &Kernel) -> u64 {
        launch_items(kernel, &self.others)
    }

    /// Running results for all scans, holding no values yet.
    pub(super) fn declare(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        lanes: Option<u64>,
    ) -> Vec<Accumulator> {
        let declared = self.ids.iter().filter_map(|&id| match kernel.value(id).op {
            ValueOp::Scan { op, .. } => {
                Some(Accumulator::declare(emitter, op, kernel.value(id).dtype, lanes))
            }
            _ => None,
        });
        declared.collect()
    }

    /// Binds the axis to the position that comes after `step` others.
    pub(super) fn bind_position(&self, emitter: &mut Emitter, kernel: &Kernel, step: &str) {
        let name = kernel.axis(self.axis).name.clone();
        if self.reverse {
            let last = emitter.extent(self.axis).then(Sub, Expr::Int(1));
            emitter.bind(name, INDEX, last.then(Sub, Expr::name(step)));
        } else if name != step {
            emitter.bind(name, INDEX, Expr::name(step));
        }
    }

    /// The variable that counts positions in the order of the scan.
    pub(super) fn step_name(&self, kernel: &Kernel) -> String {
        match self.reverse {
            true => "step".into(),
            false => kernel.axis(self.axis).name.clone(),
        }
    }

    /// Takes the elements of one position, and defines the scans' values there.
    pub(super) fn advance(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        running: &[Accumulator],
        lane: Option<&Expr>,
    ) {
        for (&id, running) in self.ids.iter().zip(running) {
            let ValueOp::Scan { operand, exclusive, .. } = kernel.value(id).op else { continue };
            let value = emitter.value(operand);
            match exclusive {
                true => {
                    let before = emitter.fresh("before");
                    emitter.bind(before.clone(), Type::Register(running.dtype), running.part(0, lane));
                    running.update(emitter, value, lane, None);
                    emitter.define(id, Expr::Name(before));
                }
                false => {
                    running.update(emitter, value, lane, None);
                    emitter.define(id, running.part(0, lane));
                }
            }
        }
    }
}
