//! How passes along rows get around guards: by peeling, by an interior without any, by windows that decide them.

use crate::ir::{Kernel, ValueId, ValueOp};
use crate::nest::guarded_lanes::masks_lines;
use crate::nest::interior::Interior;
use crate::nest::passes::{Pass, Plan};
use crate::nest::peeled::Peeled;
use crate::nest::windows_cpu::{Border, LENGTH, Windows};
use crate::schedule::RowSchedule;
use crate::schedule::share::SHORTEST_WINDOWED_LINE;

/// How passes get around guards.
#[derive(Clone, Copy)]
pub(super) struct Guards<'k> {
    pub(super) peeled: Option<&'k Peeled>,
    /// Where no guard is needed along the innermost of several axes, as of a window's padding.
    pub(super) interior: Option<&'k Interior>,
    pub(super) windows: Option<&'k Combined>,
}

impl Guards<'_> {
    pub(super) fn are_none(self) -> bool {
        self.peeled.is_none() && self.interior.is_none() && self.windows.is_none()
    }
}

/// Windows along the last of the swept axes are combined before the loops of the passes, as those of pointwise results are.
pub(super) struct Combined {
    /// What decides all guards that there are.
    pub(super) border: Option<Border>,
}

impl Combined {
    pub(super) fn of(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule) -> Option<Combined> {
        let &inner = plan.axes.last()?;
        // What is kept from pass to pass is at its position in the row, which lines of several axes do not count.
        let keeps_lines = schedule.stack_bytes > 0 && plan.axes.len() > 1;
        // Lanes that have counted together do so to the end of a stretch, which is a multiple of them but for the row's last.
        if !(2..=LENGTH).contains(&u64::from(schedule.threads_per_row)) || keeps_lines {
            return None;
        }
        let ends = plan.passes.iter().flat_map(|pass| ends(kernel, pass)).collect();
        let windows = Windows::of_pass(kernel, &plan.axes, ends, &[])?;
        let border = windows.decide(kernel);
        let is_guarded = kernel.values.iter().any(|value| matches!(value.op, ValueOp::InBounds(_)));
        // Where they are used, conditions would keep loops from being vectors.
        let shortest = if border.is_some() { SHORTEST_WINDOWED_LINE / 2 } else { SHORTEST_WINDOWED_LINE };
        let is_long = kernel.axis(inner).is_argument || kernel.axis(inner).extent >= shortest;
        (is_long && (border.is_some() || !is_guarded)).then_some(Combined { border })
    }
}

/// What a pass computes at each element.
pub(super) fn ends(kernel: &Kernel, pass: &Pass) -> Vec<ValueId> {
    let reduced = pass.reductions.iter().filter_map(|&id| match kernel.value(id).op {
        ValueOp::Reduce { operand, .. } => Some(operand),
        _ => None,
    });
    let stored = pass.stores.iter().map(|&store| kernel.stores[store].value);
    stored.chain(reduced).collect()
}

pub(super) fn interior_of_lines(kernel: &Kernel, plan: &Plan) -> Option<Interior> {
    let (&inner, [_, ..]) = plan.axes.split_last()? else { return None };
    let results: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
    if kernel.axis(inner).is_argument || masks_lines(kernel, inner, &results) {
        return None;
    }
    Interior::beside(kernel, inner, &plan.axes)
}
