//! What the schedules of scans and recurrences share: running results, carries, and what is done at one position.

use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::prefetch::prefetch_next;
use super::stmt::Arithmetic::Sub;
use super::stmt::{Expr, Stmt, Type};
use super::variable::Var;
use super::{INDEX, Parameter, Workspace, passes::launch_items};
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Recurrence, Store, ValueId, ValueOp};
use crate::{DType, Language, Refusal};

/// The scans and recurrences of a kernel, all along one axis and in one direction.
pub(super) struct Scans {
    pub(super) axis: AxisId,
    pub(super) reverse: bool,
    pub(super) ids: Vec<ValueId>,
    /// For each scan, how many others must have come to an end of a part before it can be computed there.
    pub(super) stages: Vec<usize>,
    /// Whether there are recurrences: then no two threads can share a loop.
    pub(super) is_sequential: bool,
    /// The other map axes, outermost first: each of their positions has a scan of its own.
    pub(super) others: Vec<AxisId>,
    /// Whether neighbouring elements of a scan are neighbours in the results.
    pub(super) is_innermost: bool,
}

impl Scans {
    /// Prefetches what columns that go down together read two steps later.
    pub(super) fn prefetch_next(&self, emitter: &mut Emitter, kernel: &Kernel) {
        let Some(&along) = self.others.last() else { return };
        let ends: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
        prefetch_next(emitter, kernel, &ends, (&[self.axis], along), if self.reverse { -2 } else { 2 });
    }

    pub(super) fn new(kernel: &Kernel) -> Result<Scans, Refusal> {
        let (axis, reverse) = kernel.scan_axes().next().ok_or(Refusal::Misfit("no scan"))?;
        if kernel.scan_axes().any(|other| other != (axis, reverse)) {
            return Err(Refusal::DifferentScans);
        }
        let is_scan = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Scan { .. });
        let ids: Vec<ValueId> = (0..kernel.values.len() as u32).map(ValueId).filter(is_scan).collect();
        let mut below = vec![0; kernel.values.len()];
        for (number, value) in kernel.values.iter().enumerate() {
            let operands = kernel.operands(&value.op);
            let most = operands.iter().map(|id| below[id.index()]).max().unwrap_or(0);
            below[number] = most + usize::from(matches!(value.op, ValueOp::Scan { .. }));
        }
        let stages = ids.iter().map(|id| below[id.index()] - 1).collect();
        let is_sequential = !kernel.recurrences.is_empty();
        let map = kernel.axes_of_kind(AxisKind::Map);
        let is_innermost = map.last() == Some(&axis);
        let others = map.into_iter().filter(|&other| other != axis).collect();
        Ok(Scans { axis, reverse, ids, stages, is_sequential, others, is_innermost })
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
        (0..self.ids.len()).filter_map(|number| self.declare_one(emitter, kernel, number, lanes)).collect()
    }

    /// A running result for one scan.
    pub(super) fn declare_one(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        number: usize,
        lanes: Option<u64>,
    ) -> Option<Accumulator> {
        let value = kernel.value(self.ids[number]);
        match value.op {
            ValueOp::Scan { op, .. } => Some(Accumulator::declare(emitter, op, value.dtype, lanes)),
            _ => None,
        }
    }

    /// The numbers of the scans of a stage.
    pub(super) fn of_stage(&self, stage: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.ids.len()).filter(move |&number| self.stages[number] == stage)
    }

    /// How many stages there are.
    pub(super) fn stage_count(&self) -> usize {
        self.stages.iter().map(|stage| stage + 1).max().unwrap_or(0)
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
            let ty = Type::Register(dtype);
            match (&kernel.value(recurrence.carry).op, lanes) {
                (_, Some(lanes)) => emitter.array(name, ty, lanes),
                (ValueOp::Carry { init, .. }, None) => {
                    let init = emitter.value(*init);
                    emitter.variable(name, ty, init)
                }
                (_, None) => name,
            };
            (name, dtype)
        });
        Carries { names: names.collect(), kernel }
    }

    /// The stores at each position along the axis, and those of one value a row.
    pub(super) fn stores<'k>(&self, kernel: &'k Kernel) -> (Vec<&'k Store>, Vec<&'k Store>) {
        // An axis of one position is in no index.
        let is_along = |store: &&Store| {
            store.index.uses(self.axis) || kernel.value(store.value).axes.contains(&self.axis)
        };
        kernel.stores.iter().partition(is_along)
    }

    /// Binds the axis to the position that comes after `step` others.
    pub(super) fn bind_position(&self, emitter: &mut Emitter, step: impl Into<Var>) {
        let (axis, step) = (Var::Axis(self.axis), step.into());
        if self.reverse {
            let last = emitter.extent(self.axis).then(Sub, 1);
            emitter.bind(axis, INDEX, last.then(Sub, step));
        } else if axis != step {
            emitter.bind(axis, INDEX, Expr::Name(step));
        }
    }

    /// The variable that counts positions in the order of the scan.
    pub(super) fn step_name(&self, emitter: &mut Emitter) -> Var {
        match self.reverse {
            true => emitter.index("step"),
            false => Var::Axis(self.axis),
        }
    }

    /// Takes the elements of one position.
    pub(super) fn take_elements(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        running: &[Accumulator],
        lane: Option<&Expr>,
    ) {
        for (&id, running) in self.ids.iter().zip(running) {
            if let ValueOp::Scan { operand, .. } = kernel.value(id).op {
                let value = emitter.value(operand);
                running.take_value(emitter, value, lane);
            }
        }
    }

    /// Takes the elements of one position, and defines the scans' values there; of the stages up to one, if that is
    /// given.
    pub(super) fn advance(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        running: &[Accumulator],
        lane: Option<&Expr>,
        last_stage: Option<usize>,
    ) {
        for (number, (&id, running)) in self.ids.iter().zip(running).enumerate() {
            let ValueOp::Scan { operand, exclusive, .. } = kernel.value(id).op else { continue };
            if last_stage.is_some_and(|last| self.stages[number] > last) {
                continue;
            }
            let value = emitter.value(operand);
            match exclusive {
                true => {
                    let before = emitter.fresh("before");
                    emitter.bind(before, Type::Register(running.dtype), running.place(lane));
                    running.take_value(emitter, value, lane);
                    emitter.define(id, Expr::Name(before));
                }
                false => {
                    running.take_value(emitter, value, lane);
                    emitter.define(id, running.place(lane));
                }
            }
        }
    }
}

/// The total of each part of a divided axis, for each scan: one function leaves it in memory, the next one begins each
/// part with its exclusive prefix.
pub(super) struct Totals {
    pub(super) workspaces: Vec<Workspace>,
}

impl Totals {
    pub(super) fn new(kernel: &Kernel, scans: &Scans, language: Language, elements: u64) -> Totals {
        let emitter = &mut Emitter::new(kernel, language);
        let running = scans.declare(emitter, kernel, None);
        let workspace = |running: &Accumulator| Workspace {
            name: format!("total_{}", emitter.hint(running.name())),
            dtype: running.dtype.compute(),
            elements,
            zeroed: false,
        };
        Totals { workspaces: running.iter().map(workspace).collect() }
    }

    /// The totals of one part.
    pub(super) fn at(&self, at: &Expr) -> Vec<Expr> {
        (0..self.workspaces.len()).map(|n| Expr::element(Parameter::Workspace(n), at.clone())).collect()
    }

    /// Leaves a part's total.
    pub(super) fn save(
        &self,
        emitter: &mut Emitter,
        running: &[Accumulator],
        lane: Option<&Expr>,
        at: &Expr,
    ) {
        for (running, total) in running.iter().zip(self.at(at)) {
            emitter.push(set(total, running.place(lane)));
        }
    }

    /// Takes a part's total.
    pub(super) fn take(
        &self,
        emitter: &mut Emitter,
        running: &[Accumulator],
        lane: Option<&Expr>,
        at: &Expr,
    ) {
        for (running, total) in running.iter().zip(self.at(at)) {
            running.take_value(emitter, total, lane);
        }
    }
}

/// The variables of the recurrences' carries.
pub(super) struct Carries<'k> {
    names: Vec<(Var, DType)>,
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
            emitter.bind(before, Type::Register(dtype), variable);
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
