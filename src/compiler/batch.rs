//! Few launches for many small kernels: those of one text that wait for nothing of each other become one.

use std::sync::Arc;

use lazuli_codegen::nest::Parameter;
use lazuli_codegen::schedule::Schedule;
use lazuli_codegen::{Refusal, emit_batch};
use rustc_hash::FxHashMap;

use super::plan::{Part, PlannedKernel};
use crate::fusion::cost::TargetFigures;
use crate::fusion::{Grouping, producers_first};
use crate::graph::NodeId;

/// What kernels of one batch have in common: how many others come before at least, text and how it is launched.
type Alike<'a> = (usize, &'a str, Schedule, &'a [Parameter], [u32; 3], u64);

/// Joins small kernels of one part each, given in an order that they can run in; the result is in such an order too.
pub(super) fn batch(
    kernels: Vec<PlannedKernel>,
    grouping: &Grouping,
    figures: &TargetFigures,
) -> Result<Vec<PlannedKernel>, Refusal> {
    let producers = producers(&kernels);
    let mut units = units(&kernels, &producers, grouping, figures);
    if units.len() == kernels.len() {
        return Ok(kernels);
    }
    sort(&mut units, &producers);
    let mut kernels: Vec<Option<PlannedKernel>> = kernels.into_iter().map(Some).collect();
    let mut result = Vec::with_capacity(units.len());
    for Unit { members, records } in units {
        let members = members.into_iter().filter_map(|number| kernels[number].take());
        match records {
            1 => result.extend(members),
            _ => result.push(joined(members.collect(), records)?),
        }
    }
    Ok(result)
}

/// Kernels that are launched together, ascending, and how many the emitted text has room for.
struct Unit {
    members: Vec<usize>,
    records: usize,
}

/// The kernels that each one reads of.
fn producers(kernels: &[PlannedKernel]) -> Vec<Vec<usize>> {
    let mut owner: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut producers = Vec::with_capacity(kernels.len());
    for (number, kernel) in kernels.iter().enumerate() {
        let lowered = kernel.parts.iter().map(|part| &part.lowered);
        let inputs = lowered.clone().flat_map(|lowered| &lowered.inputs);
        producers.push(inputs.filter_map(|input| owner.get(input).copied()).collect());
        owner.extend(lowered.flat_map(|lowered| &lowered.outputs).map(|&output| (output, number)));
    }
    producers
}

/// Which kernels are launched together, by the first of them.
fn units(
    kernels: &[PlannedKernel],
    producers: &[Vec<usize>],
    grouping: &Grouping,
    figures: &TargetFigures,
) -> Vec<Unit> {
    // Kernels of one depth wait for nothing of each other, and joining them closes no cycle: every path goes down.
    let mut depth: Vec<usize> = Vec::with_capacity(kernels.len());
    let mut alike: FxHashMap<Alike, usize> = FxHashMap::default();
    let mut sets: Vec<Vec<usize>> = Vec::with_capacity(kernels.len());
    for (number, kernel) in kernels.iter().enumerate() {
        depth.push(producers[number].iter().map(|&producer| depth[producer] + 1).max().unwrap_or(0));
        let seconds: f64 = kernel.groups(grouping).map(|group| group.work.seconds(figures)).sum();
        let emitted = &kernel.code.emitted;
        // Behind one that takes longer than a launch, the next launch hides. And what all parts store is there at once.
        let is_small = seconds <= 2.0 * figures.launch;
        let key =
            emitted.launches.first().filter(|_| is_small && !kernel.is_empty() && emitted.can_be_batched());
        let set = match key {
            None => sets.len(),
            Some((_, launch)) => {
                let key = (
                    depth[number],
                    &*emitted.source,
                    emitted.schedule,
                    emitted.parameters.as_slice(),
                    launch.block,
                    launch.per_block,
                );
                *alike.entry(key).or_insert(sets.len())
            }
        };
        match sets.get_mut(set) {
            Some(members) => members.push(number),
            None => sets.push(vec![number]),
        }
    }
    let mut units = Vec::with_capacity(sets.len());
    for members in sets {
        let (Some(&first), count) = (members.first(), members.len()) else { continue };
        let kernel = &kernels[first];
        let most = match count {
            1 => 1,
            _ => kernel.parts.first().map_or(1, |part| kernel.code.emitted.most_parts(&part.lowered.kernel)),
        };
        // As many in each as in the others: then the text is one.
        let records = count.div_ceil(count.div_ceil(most));
        units.extend(members.chunks(records).map(|part| Unit { members: part.to_vec(), records }));
    }
    units
}

/// Producers first; otherwise by first member.
fn sort(units: &mut Vec<Unit>, producers: &[Vec<usize>]) {
    units.sort_by_key(|unit| unit.members.first().copied());
    let mut unit_of = vec![0; producers.len()];
    for (number, unit) in units.iter().enumerate() {
        unit.members.iter().for_each(|&member| unit_of[member] = number);
    }
    let of = |member: &usize| producers[*member].iter().map(|&producer| unit_of[producer]);
    let producers: Vec<Vec<usize>> =
        units.iter().map(|unit| unit.members.iter().flat_map(of).collect()).collect();
    let order = producers_first(&producers);
    let mut taken: Vec<Option<Unit>> = std::mem::take(units).into_iter().map(Some).collect();
    units.extend(order.into_iter().filter_map(|number| taken[number].take()));
}

/// Several kernels as one.
pub(super) fn joined(kernels: Vec<PlannedKernel>, records: usize) -> Result<PlannedKernel, Refusal> {
    let first = kernels.first().map(|kernel| (kernel.code.emitted.clone(), kernel.is_low_pressure));
    let parts: Vec<Part> = kernels.into_iter().flat_map(|kernel| kernel.parts).collect();
    let (Some(part), Some((emitted, is_low_pressure))) = (parts.first(), first) else {
        return Err(Refusal::Misfit("a batch of nothing"));
    };
    let blocks = parts.iter().map(|part| part.blocks).sum();
    let emitted = emit_batch(&part.lowered.kernel, &emitted, parts.len(), blocks, records)?;
    Ok(PlannedKernel::new(Arc::new(emitted), parts, is_low_pressure))
}
