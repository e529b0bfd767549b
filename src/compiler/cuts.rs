//! Kernels that are several because that was measured to be faster.

use super::plan::PlannedKernel;
use super::settings::Settings;
use crate::fusion::cut::Cut;
use crate::fusion::group::{Group, WhyNot};
use crate::fusion::{self, Facts, Fusion};
use crate::graph::Graph;
use crate::tuned;

/// Whether kernels may be cut: not if fusion is off, or where benchmarks cut them.
pub(super) fn is_for(settings: Settings) -> bool {
    settings.fusion == Fusion::On && settings.undone.is_none()
}

/// The groups that are faster than one on this device, if these sizes were measured there, and how much.
pub(super) fn measured(
    graph: &Graph,
    group: &Group,
    kernel: &PlannedKernel,
    settings: Settings,
) -> Option<(Vec<Group>, WhyNot)> {
    let part = kernel.only_part().filter(|_| is_for(settings))?;
    let measured = tuned::cut(settings.tuned, &part.lowered.kernel)?;
    let mut facts = Facts::new(graph, &settings.figures(), None);
    let cut = Cut::at(measured.place()?, graph, group, &facts.reads)?;
    let parts = fusion::apart(graph, &mut facts, group, cut)?;
    Some((parts, WhyNot::Tuned(measured.reason())))
}
