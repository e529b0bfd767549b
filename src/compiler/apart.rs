//! The kernels of a plan cut in several, for who measures them.

use std::sync::Arc;

use super::cuts::is_for;
use super::groups::emit_groups;
use super::plan::{Part, Plan, Shared};
use super::settings::Settings;
use crate::fusion::cut::Cut;
use crate::fusion::group::Group;
use crate::fusion::{self, Facts, Grouping};
use crate::graph::parameters::Parameters;
use crate::tuned::Place;

/// Cuts of a kernel that are measured: each is two kernels to compile, or more.
const MOST_CUTS: usize = 6;
/// Cuts that the model is asked about.
const MOST_MODELLED: usize = 32;
/// As a multiple of the one kernel's, what several may take by the model, which knows of memory better than of loops: nobody
/// waits for the products of a matrix to be stored.
const MOST_TIMES: f64 = 4.0;

/// The cuts of a kernel of the plan that are worth measuring, those first that the model thinks most of.
pub(crate) fn cuts(plan: &Plan, number: usize) -> Vec<Cut> {
    let Some((_, group)) = whole(plan, number) else { return Vec::new() };
    let (graph, figures) = (&plan.graph, plan.settings.figures());
    let mut facts = Facts::new(graph, &figures, None);
    let mut all = Cut::all(std::slice::from_ref(group), &facts.reads);
    all.sort_by_key(|cut| !cut.is_doubtful(graph, &facts.reads));
    all.truncate(MOST_MODELLED);
    let mut modelled: Vec<(f64, Cut, Vec<Group>)> = Vec::new();
    for cut in all {
        let Some(parts) = fusion::apart(graph, &mut facts, group, cut) else { continue };
        let seconds: f64 = parts.iter().map(|part| part.work.seconds(&figures)).sum();
        let is_known = modelled.iter().any(|(_, _, others)| are_same(others, &parts));
        if !is_known && seconds <= group.work.seconds(&figures) * MOST_TIMES {
            modelled.push((seconds, cut, parts));
        }
    }
    modelled.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    modelled.into_iter().take(MOST_CUTS).map(|(_, cut, _)| cut).collect()
}

fn are_same(a: &[Group], b: &[Group]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (&a.nodes, &a.outputs) == (&b.nodes, &b.outputs))
}

/// The part of a kernel that can be cut, and its group.
fn whole(plan: &Plan, number: usize) -> Option<(&Part, &Group)> {
    let part = plan.kernels.get(number)?.only_part().filter(|_| is_for(plan.settings))?;
    Some((part, plan.grouping.groups.get(part.group)?))
}

/// A cut of a kernel of the plan, in words.
pub(crate) fn place(plan: &Plan, number: usize, cut: Cut) -> Option<Place> {
    Some(cut.place(&plan.graph, &whole(plan, number)?.1.nodes))
}

/// A plan of what a kernel of the plan computes, from what it reads, as several kernels. Its inputs and outputs are the kernel's,
/// in order.
pub(crate) fn in_parts(plan: &Plan, number: usize, cut: Cut) -> Option<Arc<Plan>> {
    let (Part { lowered, .. }, group) = whole(plan, number)?;
    let graph = plan.graph.clone();
    let settings = Settings { tuned: None, ..plan.settings };
    let mut facts = Facts::new(&graph, &settings.figures(), None);
    let mut grouping = Grouping::alone(fusion::apart(&graph, &mut facts, group, cut)?);
    let parameters = Parameters::of(&graph, settings.language);
    let kernels = emit_groups(&graph, &parameters, settings, &facts, &mut grouping).ok()?;
    let inputs = lowered.inputs.iter().copied().enumerate();
    let shared = Shared::between(&graph, grouping, kernels, inputs, lowered.outputs.clone());
    let values = plan.values.clone();
    Some(Arc::new(Plan { graph, values, shared: Arc::new(shared), settings, follows: false, numbers: None }))
}
