//! What the schedules of scans and recurrences share: running results, carries, and what is done at one position.

use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::stmt::Arithmetic::Sub;
use super::stmt::{Expr, Stmt, Type};
use super::{INDEX, pointwise::launch_items};
use crate::DType;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Recurrence, Store, ValueId, ValueOp};

/// The scans and recurrences of a kernel, all along one axis and in one direction.
pub(super) struct Scans {
    pub(super) axis: AxisId,
    pub(super) reverse: bool,
    pub(super) ids: Vec<ValueId>,
    /// Whether there are recurrences: then no two threads can share a loop.
    pub(super) is_sequential: bool,
    /// The other map axes, outermost first: each of their positions has a scan of its own.
    pub(super) others: Vec<AxisId>,
    /// Whether neighbouring elements of a scan are neighbours in the results.
    pub(super) is_innermost: bool,
}

impl Scans {
    pub(super) fn new(kernel: &Kernel) -> Result<Scans, String> {
        let (axis, reverse) = kernel.scan_axes().next().ok_or("no scan")?;
        if kernel.scan_axes().any(|other| other != (axis, reverse)) {
            return Err("scans along different axes, or in different directions".into());
        }
        let is_scan = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Scan { .. });
        let ids = (0..kernel.values.len() as u32).map(ValueId).filter(is_scan).collect();
        let is_sequential = !kernel.recurrences.is_empty();
        let map = kernel.axes_of_kind(AxisKind::Map);
        let is_innermost = map.last() == Some(&axis);
        let others = map.into_iter().filter(|&other| other != axis).collect();
        Ok(Scans { axis, reverse, ids, is_sequential, others, is_innermost })
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

    /// Variables for the carries of all recurrences, as the first step finds them; or arrays with one for each lane,
    /// which [`Carries::start`] fills.
    pub(super) fn declare_carries<'k>(
        &self,
        emitter: &mut Emitter,
        kernel: &'k Kernel,
        lanes: Option<u64>,
    ) -> Carries<'k> {
        let names = kernel.recurrences.iter().map(|recurrence| {
            let (name, dtype) = (emitter.fresh("carry"), kernel.value(recurrence.carry).dtype);
            let init = match kernel.value(recurrence.carry).op {
                ValueOp::Carry { init, .. } if lanes.is_none() => Some(emitter.value(init)),
                _ => None,
            };
            let ty = Type::Register(dtype);
            emitter.push(Stmt::Variable { name: name.clone(), ty, len: lanes, init });
            (name, dtype)
        });
        Carries { names: names.collect(), kernel }
    }

    /// The stores at each position along the axis, and those of one value a row.
    pub(super) fn stores<'k>(&self, kernel: &'k Kernel) -> (Vec<&'k Store>, Vec<&'k Store>) {
        kernel.stores.iter().partition(|store| store.index.uses(self.axis))
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

/// The variables of the recurrences' carries.
pub(super) struct Carries<'k> {
    names: Vec<(String, DType)>,
    kernel: &'k Kernel,
}

impl Carries<'_> {
    fn variable(&self, number: usize, lane: Option<&Expr>) -> Expr {
        let (name, _) = &self.names[number];
        match lane {
            None => Expr::name(name),
            Some(lane) => Expr::element(name, lane.clone()),
        }
    }

    /// Each recurrence with its carry's variable.
    fn variables(&self, lane: Option<&Expr>) -> Vec<(&Recurrence, DType, Expr)> {
        let recurrences = self.kernel.recurrences.iter().zip(&self.names).enumerate();
        recurrences.map(|(number, (of, (_, dtype)))| (of, *dtype, self.variable(number, lane))).collect()
    }

    /// Before the loop: what the first step finds in a lane.
    pub(super) fn start(&self, emitter: &mut Emitter, lane: &Expr) {
        for (recurrence, _, variable) in self.variables(Some(lane)) {
            if let ValueOp::Carry { init, .. } = self.kernel.value(recurrence.carry).op {
                let init = emitter.value(init);
                emitter.push(set(variable, init));
            }
        }
    }

    /// At the start of a step: what it finds. A constant each, so that no expression sees the variable change.
    pub(super) fn begin_step(&self, emitter: &mut Emitter, lane: Option<&Expr>) {
        for (recurrence, dtype, variable) in self.variables(lane) {
            let before = emitter.fresh("before");
            emitter.bind(before.clone(), Type::Register(dtype), variable);
            emitter.define(recurrence.carry, Expr::Name(before));
        }
    }

    /// At the end of a step: what it gives. The stores come in between, so that all use the same values.
    pub(super) fn end_step(
        &self,
        emitter: &mut Emitter,
        lane: Option<&Expr>,
        stores: impl FnOnce(&mut Emitter),
    ) {
        let values: Vec<Expr> = self.kernel.recurrences.iter().map(|r| emitter.value(r.next)).collect();
        stores(emitter);
        for ((_, _, variable), value) in self.variables(lane).into_iter().zip(values) {
            emitter.push(set(variable, value));
        }
    }

    /// After the loop: stores of what follows from what the last step gave. Pinned, as nothing of it may be computed
    /// before, whatever it varies over.
    pub(super) fn end(&self, emitter: &mut Emitter, lane: Option<&Expr>, stores: &[&Store]) -> Vec<Stmt> {
        emitter.open_pinned();
        for (number, value) in self.kernel.values.iter().enumerate() {
            let ValueOp::Last { carry } = value.op else { continue };
            if let ValueOp::Carry { recurrence, .. } = self.kernel.value(carry).op {
                emitter.define(ValueId(number as u32), self.variable(recurrence.index(), lane));
            }
        }
        stores.iter().for_each(|store| emitter.store(store));
        emitter.close()
    }
}
