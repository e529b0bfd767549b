//! From groups to kernels: each is lowered and emitted, and divided where that is better.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::emission::{emit_cached, refused};
use super::plan::{Part, PlannedKernel};
use super::settings::Settings;
use super::{batch, cuts};
use crate::fusion::group::{Group, WhyNot};
use crate::fusion::{Facts, Fusion, Grouping};
use crate::graph::op::Op;
use crate::graph::parameters::Parameters;
use crate::graph::{Graph, NodeId};
use crate::lower::{Request, lower};
use crate::{DType, Error, Result};

/// The kernels of groups, in the order of launching, into which both are brought.
pub(super) fn emit_groups(
    graph: &Graph,
    parameters: &Parameters,
    settings: Settings,
    facts: &Facts,
    grouping: &mut Grouping,
) -> Result<Vec<Arc<PlannedKernel>>> {
    let mut kernels: Vec<Option<PlannedKernel>> = Vec::new();
    kernels.resize_with(grouping.groups.len(), || None);
    while let Some(number) = kernels.iter().position(Option::is_none) {
        let group = &grouping.groups[number];
        let is_replaced = match emit_group(graph, parameters, group, settings) {
            Ok(kernel) => match cuts::measured(graph, group, &kernel, settings) {
                Some((parts, why)) => {
                    grouping.replace(number, parts, why);
                    true
                }
                None => {
                    kernels[number] = Some(kernel);
                    false
                }
            },
            Err(reason) => {
                grouping
                    .divide(graph, facts, number, reason.clone())
                    .ok_or_else(|| Error::internal("scheduling", reason.to_string()))?;
                true
            }
        };
        if is_replaced {
            kernels.swap_remove(number);
            kernels.resize_with(grouping.groups.len(), || None);
        }
        if kernels.iter().all(Option::is_some) {
            grouping.store_once(graph, facts, &mut kernels).ok_or_else(|| {
                Error::internal(
                    "scheduling",
                    "divided kernels wait for each other, or what is left of one is none",
                )
            })?;
        }
    }
    let mut kernels: Vec<PlannedKernel> = kernels.into_iter().flatten().collect();
    for (number, kernel) in kernels.iter_mut().enumerate() {
        kernel.parts.iter_mut().for_each(|part| part.group = number);
    }
    if settings.fusion == Fusion::On {
        kernels = batch::batch(kernels, grouping, &settings.figures())
            .map_err(|reason| Error::internal("batching", reason.to_string()))?;
    }
    Ok(kernels.into_iter().map(Arc::new).collect())
}

/// The kernel of a group, whose number is not known yet.
fn emit_group(
    graph: &Graph,
    parameters: &Parameters,
    group: &Group,
    settings: Settings,
) -> Result<PlannedKernel, WhyNot> {
    let nodes: FxHashSet<NodeId> = group.nodes.iter().copied().collect();
    let name = kernel_name(graph, group);
    let request = Request {
        graph,
        parameters,
        nodes: &nodes,
        reads: &group.reads,
        outputs: &group.outputs,
        hero: group.hero,
        name: &name,
    };
    let lowered = lower(&request).map_err(WhyNot::NotLowered)?;
    let emitted =
        emit_cached(&lowered.kernel, group.is_low_pressure, settings).map_err(WhyNot::NoSchedule)?;
    if let Some(reason) = refused(group, &emitted, settings) {
        return Err(reason);
    }
    let blocks = emitted.launches.first().map_or(0, |(_, launch)| launch.grid()[0]);
    let parts = vec![Part { group: 0, lowered, blocks }];
    Ok(PlannedKernel::new(emitted, parts, group.is_low_pressure))
}

/// The operations' names in order, each once, and the dtype of the result: `where_mul_f32`. Of many these are the first ones and the last. Of
/// several results it is the last one's that are floats, or at least numbers, beside which others are tables and masks.
fn kernel_name(graph: &Graph, group: &Group) -> String {
    const NAMES: usize = 4;
    let mut names: Vec<&str> = Vec::new();
    // A view that could have been stored computes nothing.
    let is_named = |id: &&NodeId| !matches!(graph.node(**id).op, Op::View(_)) || group.outputs.contains(id);
    for &id in group.nodes.iter().filter(is_named) {
        let name = graph.node(id).called();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > NAMES {
        let last = group.nodes.iter().rfind(is_named).map_or("", |&id| graph.node(id).called());
        names.truncate(NAMES);
        if names.contains(&last) {
            names.push("etc");
        } else {
            names.truncate(NAMES - 1);
            names.extend(["etc", last]);
        }
    }
    let dtypes = group.outputs.iter().map(|&output| graph.node(output).dtype);
    let dtype = dtypes.max_by_key(|dtype| (dtype.is_float(), *dtype != DType::Bool));
    format!("{}_{}", names.join("_"), dtype.map_or("", DType::name))
}
