//! What the schedules of reductions share: which walks along the reduced axes compute what, and the
//! partial results of several blocks.
//!
//! A pass is one walk. Reductions of what is known before a walk share it; what depends on their
//! results needs the next one. Elements that a later pass needs again are read again.

use super::accumulate::Accumulator;
use super::emitter::Emitter;
use super::stmt::Arithmetic::{Add, Div};
use super::stmt::{Expr, LoopHint, Step, Stmt};
use super::{Workspace, extent_name};
use crate::Language;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp, operands};
use crate::schedule::cooperative;

/// What the walks along a row compute.
pub(super) struct Plan {
    /// The reduced axes, outermost first.
    pub(super) axes: Vec<AxisId>,
    /// The axes of the results.
    pub(super) map: Vec<AxisId>,
    /// One entry a pass.
    pub(super) passes: Vec<Pass>,
    /// Stores of results that do not vary along the row.
    pub(super) results: Vec<usize>,
}

/// One walk.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) reductions: Vec<ValueId>,
    /// Stores of values that vary along the row.
    pub(super) stores: Vec<usize>,
}

impl Plan {
    pub(super) fn new(kernel: &Kernel) -> Result<Plan, String> {
        let reductions = cooperative(kernel)?;
        let axes = match reductions.first().map(|&first| &kernel.value(first).op) {
            Some(ValueOp::Reduce { axes, .. }) => axes.to_vec(),
            _ => return Err("no reduction for several threads".into()),
        };
        // A value's pass: how many walks must have ended before it can be computed.
        let mut pass_of = vec![0usize; kernel.values.len()];
        for (number, value) in kernel.values.iter().enumerate() {
            let before =
                operands(&value.op).iter().map(|operand| pass_of[operand.index()]).max().unwrap_or(0);
            let is_cooperative = reductions.contains(&ValueId(number as u32));
            pass_of[number] = before + usize::from(is_cooperative);
        }
        let last = pass_of.iter().copied().max().unwrap_or(0);
        let mut passes: Vec<Pass> = (0..=last).map(|_| Pass::default()).collect();
        for &reduction in &reductions {
            passes[pass_of[reduction.index()] - 1].reductions.push(reduction);
        }
        let mut results = Vec::new();
        for (number, store) in kernel.stores.iter().enumerate() {
            let value = kernel.value(store.value);
            let varies = |axis: &AxisId| value.axes.contains(axis) || store.index.uses(*axis);
            match kernel.axes_of_kind(AxisKind::Reduce).iter().any(varies) {
                true => passes[pass_of[store.value.index()]].stores.push(number),
                false => results.push(number),
            }
        }
        passes.retain(|pass| !pass.reductions.is_empty() || !pass.stores.is_empty());
        Ok(Plan { axes, map: kernel.axes_of_kind(AxisKind::Map), passes, results })
    }

    /// All reductions that threads share, in the order of their passes.
    pub(super) fn reductions(&self) -> Vec<ValueId> {
        self.passes.iter().flat_map(|pass| pass.reductions.clone()).collect()
    }

    /// Whether one walk is all, and nothing varies along it in the results: then it can be split.
    pub(super) fn walks_once(&self) -> bool {
        self.passes.len() == 1 && self.passes.iter().all(|pass| pass.stores.is_empty())
    }

    /// The variable that numbers the rows: the map axis itself where there is only one.
    pub(super) fn row_name(&self, kernel: &Kernel) -> String {
        match self.map.as_slice() {
            [axis] => kernel.axis(*axis).name.clone(),
            _ => "row".into(),
        }
    }

    /// The variable that walks: the reduced axis itself where there is only one.
    pub(super) fn walk_name(&self, kernel: &Kernel) -> String {
        match self.axes.as_slice() {
            [axis] => kernel.axis(*axis).name.clone(),
            _ => "r".into(),
        }
    }

    /// How many parts of a length a walk has: the CPU's split reductions.
    pub(super) fn parts(&self, emitter: &Emitter, length: u64) -> Expr {
        emitter.positions(&self.axes).then(Add, Expr::Int(length - 1)).then(Div, Expr::Int(length))
    }
}

impl Pass {
    /// Accumulators for the pass's reductions, with a partial result for each lane if there are lanes.
    pub(super) fn declare(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        lanes: Option<u64>,
    ) -> Vec<Accumulator> {
        declare(&self.reductions, emitter, kernel, lanes)
    }
}

fn declare(
    reductions: &[ValueId],
    emitter: &mut Emitter,
    kernel: &Kernel,
    lanes: Option<u64>,
) -> Vec<Accumulator> {
    let mut accumulators = Vec::new();
    for &id in reductions {
        if let ValueOp::Reduce { op, .. } = kernel.value(id).op {
            accumulators.push(Accumulator::declare(emitter, op, kernel.value(id).dtype, lanes));
        }
    }
    accumulators
}

/// How many work items a launch has, as text over the kernel's arguments.
pub(super) fn items_formula(kernel: &Kernel, axes: &[AxisId], divisor: u64) -> String {
    let mut constant = 1;
    let mut names = Vec::new();
    for &axis in axes {
        match kernel.axis(axis).is_argument {
            true => names.push(extent_name(kernel, axis)),
            false => constant *= kernel.axis(axis).extent,
        }
    }
    let product = |names: &[String], constant: u64| match (names, constant) {
        ([], constant) => constant.to_string(),
        (names, 1) => names.join(" * "),
        (names, constant) => format!("{} * {constant}", names.join(" * ")),
    };
    match divisor {
        1 => product(&names, constant),
        divisor if constant % divisor == 0 => product(&names, constant / divisor),
        divisor => format!("ceil({} / {divisor})", product(&names, constant)),
    }
}

/// Workspaces for the partial results of some reductions.
pub(super) fn partial_workspaces(
    kernel: &Kernel,
    language: Language,
    reductions: &[ValueId],
    elements: u64,
) -> Vec<Workspace> {
    let accumulators = declare(reductions, &mut Emitter::new(kernel, language), kernel, None);
    let space = |accumulator: &Accumulator, name| Workspace {
        name,
        dtype: accumulator.dtype,
        elements,
        zeroed: false,
    };
    let spaces = accumulators.iter().flat_map(|accumulator| {
        accumulator.workspace_names().into_iter().map(move |name| space(accumulator, name))
    });
    spaces.collect()
}

/// The lane of a result: results that do not vary over the lanes are in the first.
pub(super) fn lane_of(kernel: &Kernel, id: ValueId, lane_axis: Option<AxisId>) -> Expr {
    match lane_axis.is_some_and(|axis| !kernel.value(id).axes.contains(&axis)) {
        true => Expr::Int(0),
        false => Expr::name("l"),
    }
}

/// `for (name = from; name < to; ++name)`.
pub(super) fn count_loop(name: &str, from: Expr, to: Expr, hint: LoopHint, body: Vec<Stmt>) -> Stmt {
    Stmt::For { name: name.into(), from, to, step: Step::Add(Expr::Int(1)), hint, body }
}
