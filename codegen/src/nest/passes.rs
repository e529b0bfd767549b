//! What the schedules of reductions share: the names of the passes' variables, accumulators, and the
//! partial results of several blocks.

use super::Workspace;
use super::accumulate::Accumulator;
use super::emitter::Emitter;
use super::stmt::Arithmetic::{Add, Div};
use super::stmt::Expr;
use super::variable::Var;
use crate::Language;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::ops::MAXIMUM;
use crate::schedule::{Launch, WorkItems};
pub(super) use crate::schedule::{Pass, Plan};

/// Values of an element beside which additions to one register wait for each other.
const MOST_LIGHT: usize = 12;

impl Plan {
    /// The variable that numbers the rows: the map axis itself where there is only one.
    pub(super) fn row_name(&self, emitter: &mut Emitter) -> Var {
        emitter.flat(&self.map, "row")
    }

    /// The variable of a sweep: the reduced axis itself where there is only one.
    pub(super) fn sweep_name(&self, emitter: &mut Emitter) -> Var {
        emitter.flat(&self.axes, "r")
    }

    /// How many parts of a length a pass has: the CPU's split reductions.
    pub(super) fn parts(&self, emitter: &Emitter, length: u64) -> Expr {
        emitter.positions(&self.axes).then(Add, length - 1).then(Div, length)
    }
}

impl Emitter<'_> {
    /// Binds the axes of a pass: the one axis itself, in steps of `vector`; several from a flat position that
    /// counts vectors, so that it unflattens by whole ones.
    pub(super) fn unflatten_sweep(&mut self, flat: Var, axes: &[AxisId], vector: u64) {
        match axes {
            [axis] => {
                self.bind_axes(axes);
                if vector > 1 {
                    self.multiples.insert(*axis, vector as i64);
                }
            }
            _ => self.unflatten(flat, axes, vector),
        }
    }
}

impl Pass {
    /// Declares the values of the pass's reductions, whose partial results are merged; the lane says which of several a
    /// value is at.
    pub(super) fn define(
        &self,
        emitter: &mut Emitter,
        accumulators: &[Accumulator],
        lane: impl Fn(ValueId) -> Option<Expr>,
    ) {
        for (&id, accumulator) in self.reductions.iter().zip(accumulators) {
            emitter.define(id, accumulator.result(lane(id).as_ref()));
        }
        for &(id, finder) in &self.maxima {
            emitter.define(id, accumulators[finder].part(MAXIMUM, lane(id).as_ref()));
        }
    }

    /// Computes what is the same all along the pass before its loop: stores, which may be under a condition, would have it computed
    /// in each turn.
    pub(super) fn bind_invariants(&self, emitter: &mut Emitter, kernel: &Kernel, map: &[AxisId]) {
        // Loops over lanes are no condition: what is the same for all lanes is before them anyhow.
        if kernel.axes.iter().any(|axis| axis.is_lane) {
            return;
        }
        let is_same = |id: ValueId| kernel.value(id).axes.iter().all(|axis| map.contains(axis));
        let stored = || self.stores.iter().map(|&store| kernel.stores[store].value);
        let swept = kernel.down_from(stored()).into_iter().filter(|&id| !is_same(id));
        let mut invariants: Vec<ValueId> = swept
            .flat_map(|id| kernel.operands(&kernel.value(id).op))
            .chain(stored())
            .filter(|&id| is_same(id) && kernel.value(id).op.is_elementwise() && !emitter.is_defined(id))
            .collect();
        invariants.sort_unstable();
        invariants.dedup();
        for id in invariants {
            let value = emitter.value(id);
            let value = emitter.named(value, kernel.value(id).dtype);
            emitter.define(id, value);
        }
    }

    /// Whether what is reduced takes so little that a core waits for additions: no loop of its own, and few values.
    pub(super) fn is_light(&self, kernel: &Kernel) -> bool {
        let operands = self.reductions.iter().flat_map(|&id| kernel.operands(&kernel.value(id).op));
        let below = kernel.down_from(operands);
        let has_loop = below.iter().any(|&id| matches!(kernel.value(id).op, ValueOp::Reduce { .. }));
        below.len() <= MOST_LIGHT && !has_loop
    }

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
        accumulators.extend(Accumulator::of(emitter, kernel, id, lanes));
    }
    accumulators
}

/// How many positions the axes have in this launch.
pub(super) fn launch_items(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}

/// A launch whose work items are the positions of some axes.
pub(super) fn launch_over(kernel: &Kernel, axes: &[AxisId]) -> Launch {
    Launch { items: WorkItems::of(kernel, axes), ..Launch::default() }
}

/// The launch of blocks that have so many neighbours along the last of some axes, at one position of the others.
pub(super) fn launch_of_columns(kernel: &Kernel, axes: &[AxisId], width: u64) -> Launch {
    let (outer, inner) = axes.split_at(axes.len().saturating_sub(1));
    launch_of_parts(kernel, &[(outer, 1), (inner, width)])
}

/// The launch of blocks that each have so many positions of some axes, and so many of others.
pub(super) fn launch_of_parts(kernel: &Kernel, parts: &[(&[AxisId], u64)]) -> Launch {
    let blocks = parts.iter().map(|(axes, of)| WorkItems::of(kernel, axes).divided(*of));
    Launch {
        items: blocks.fold(WorkItems::number(1), |product, blocks| product * blocks),
        ..Launch::default()
    }
}

/// Workspaces for the partial results of some reductions.
pub(super) fn partial_workspaces(
    kernel: &Kernel,
    language: Language,
    reductions: &[ValueId],
    elements: u64,
) -> Vec<Workspace> {
    let emitter = &mut Emitter::new(kernel, language);
    let accumulators = declare(reductions, emitter, kernel, None);
    let spaces = accumulators.iter().flat_map(|accumulator| {
        let parts = accumulator.parts.iter().enumerate();
        parts.map(|(part, &var)| Workspace {
            name: format!("partial_{}", emitter.hint(var)),
            dtype: accumulator.part_dtype(part),
            elements,
            zeroed: false,
        })
    });
    spaces.collect()
}

/// The lane of a result: results that do not vary over the lanes are in the first.
pub(super) fn lane_of(kernel: &Kernel, id: ValueId, lane_axis: Option<AxisId>) -> Expr {
    match lane_axis.is_some_and(|axis| !kernel.value(id).axes.contains(&axis)) {
        true => Expr::Int(0),
        false => Expr::name(Var::Lane),
    }
}
