//! Which operations share a kernel.
//!
//! Every computed node starts as a kernel of its own. A node with one reader that recomputes nothing
//! joins its reader at once; after that, merges are tried best first, as the cost model ranks them,
//! until none gains. A merge is legal if [`analyse::Analyser`] finds one kernel for it, and every refusal
//! carries its reason.

mod analyse;
pub(crate) mod cost;
pub(crate) mod cut;
mod facts;
pub(crate) mod group;
mod merge;
pub(crate) mod reads;
mod restraints;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{Graph, NodeId};
use analyse::Analyser;
use cost::TargetFigures;
pub(crate) use facts::Facts;
use group::{Group, Recomputed, WhyNot};
pub(crate) use restraints::Restraints;

/// Whether operations are combined into kernels.
///
/// ```
/// use lazuli::Fusion;
/// assert_eq!(Fusion::default(), Fusion::On);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fusion {
    /// As few kernels and as little memory traffic as the cost model finds worthwhile.
    #[default]
    On,
    /// Every operation is its own kernel: the baseline to compare with, and a way to find a bug.
    Off,
}

/// Two groups with a value between them, or that read the same, and why they are not one.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    /// The value in memory.
    pub(crate) value: NodeId,
    /// Who stores it, or reads it too.
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) reason: WhyNot,
}

/// The kernels of a graph, producers first.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub(crate) groups: Vec<Group>,
    pub(crate) restraints: Restraints,
    fusion: Fusion,
}

/// Divides the graph into kernels.
pub(crate) fn fuse(
    graph: &Graph,
    fusion: Fusion,
    figures: &TargetFigures,
    restraints: Restraints,
) -> Grouping {
    let facts = Facts::new(graph, figures, &restraints);
    let mut groups = match fusion {
        Fusion::Off => facts.singles(graph),
        Fusion::On => merge::Merger::new(graph, &facts, figures).run(),
    };
    sort(&mut groups);
    Grouping { groups, restraints, fusion }
}

/// Producers before consumers; otherwise by first node.
fn sort(groups: &mut Vec<Group>) {
    groups.sort_by_key(|group| group.nodes.first().copied());
    let owner = owners(groups);
    let producers = groups.iter().map(|group| group.reads.iter().filter_map(|read| owner.get(read).copied()));
    let order = producers_first(&producers.map(Iterator::collect).collect::<Vec<_>>());
    let mut taken: Vec<Option<Group>> = std::mem::take(groups).into_iter().map(Some).collect();
    groups.extend(order.into_iter().filter_map(|number| taken[number].take()));
}

/// An order in which everything comes after its producers, and as early as its number allows. `producers` may name one
/// several times.
pub(crate) fn producers_first(producers: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = Vec::with_capacity(producers.len());
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); producers.len()];
    for (number, producers) in producers.iter().enumerate() {
        missing.push(producers.len());
        producers.iter().for_each(|&producer| consumers[producer].push(number));
    }
    let mut ready: BTreeSet<usize> = (0..producers.len()).filter(|&number| missing[number] == 0).collect();
    let mut order = Vec::with_capacity(producers.len());
    while let Some(next) = ready.pop_first() {
        order.push(next);
        for &consumer in &consumers[next] {
            missing[consumer] -= 1;
            if missing[consumer] == 0 {
                ready.insert(consumer);
            }
        }
    }
    order
}

/// Which group stores each node.
fn owners(groups: &[Group]) -> FxHashMap<NodeId, usize> {
    let stored =
        groups.iter().enumerate().flat_map(|(n, group)| group.outputs.iter().map(move |&id| (id, n)));
    stored.collect()
}

/// Why each pair of neighbouring groups is apart.
pub(crate) fn boundaries(
    graph: &Graph,
    facts: &Facts,
    grouping: &Grouping,
    figures: &TargetFigures,
) -> Vec<Boundary> {
    let (groups, reads) = (&grouping.groups, &facts.reads);
    let owner = owners(groups);
    let mut readers: FxHashMap<NodeId, usize> = FxHashMap::default();
    groups.iter().flat_map(|group| &group.reads).for_each(|&value| *readers.entry(value).or_default() += 1);
    let mut result = Vec::new();
    for (consumer, group) in groups.iter().enumerate() {
        for &value in &group.reads {
            let Some(&producer) = owner.get(&value) else { continue };
            // What only the consumer reads would not be stored if the two were one.
            let is_kept = |id: &NodeId| {
                let here = usize::from(group.reads.contains(id));
                reads.is_output(*id) || readers.get(id).is_some_and(|&all| all > here)
            };
            let kept: Vec<NodeId> = groups[producer].outputs.iter().copied().filter(is_kept).collect();
            let divided = grouping.restraints.why_divided(value);
            let reason = match (grouping.fusion, divided) {
                (Fusion::Off, _) => WhyNot::Off,
                (Fusion::On, Some(why)) => WhyNot::Schedule(why.to_string()),
                (Fusion::On, None) => why_apart(graph, facts, &groups[producer], group, kept, figures),
            };
            result.push(Boundary { value, producer, consumer, reason });
        }
    }
    result.extend(between_siblings(graph, facts, grouping, figures));
    result
}

/// Why groups are apart that read the same, neither of which needs the other: neighbours in the order, for each value.
fn between_siblings(
    graph: &Graph,
    facts: &Facts,
    grouping: &Grouping,
    figures: &TargetFigures,
) -> Vec<Boundary> {
    let groups = &grouping.groups;
    let owner = owners(groups);
    // What each group needs, of the groups before it.
    let mut needs: Vec<FxHashSet<usize>> = Vec::with_capacity(groups.len());
    let mut last_reader: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut seen: FxHashSet<(usize, usize)> = FxHashSet::default();
    let mut result = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let mut needed: FxHashSet<usize> = FxHashSet::default();
        for producer in group.reads.iter().filter_map(|read| owner.get(read)) {
            needed.insert(*producer);
            needed.extend(needs.get(*producer).into_iter().flatten());
        }
        for &value in &group.reads {
            let Some(other) = last_reader.insert(value, number) else { continue };
            if other == number || needed.contains(&other) || !seen.insert((other, number)) {
                continue;
            }
            let kept = groups[other].outputs.clone();
            let reason = match grouping.fusion {
                Fusion::Off => WhyNot::Off,
                Fusion::On => match why_apart(graph, facts, &groups[other], group, kept, figures) {
                    WhyNot::Cycle => WhyNot::NotTried,
                    reason => reason,
                },
            };
            result.push(Boundary { value, producer: other, consumer: number, reason });
        }
        needs.push(needed);
    }
    result
}

fn why_apart(
    graph: &Graph,
    facts: &Facts,
    producer: &Group,
    consumer: &Group,
    kept: Vec<NodeId>,
    figures: &TargetFigures,
) -> WhyNot {
    let nodes = producer.nodes.iter().chain(&consumer.nodes).copied().collect();
    let outputs = kept.into_iter().chain(consumer.outputs.iter().copied()).collect();
    match Analyser::new(graph, facts).group(nodes, outputs) {
        Err(reason) => reason,
        Ok(merged) => {
            let apart = producer.work.seconds(figures) + consumer.work.seconds(figures);
            let fused = merged.work.seconds(figures);
            let is_slower = fused >= apart * merge::DOUBT;
            match merged.recomputed {
                Some(Recomputed { value, times, .. }) if is_slower => {
                    WhyNot::Recomputation { value, times, fused, apart }
                }
                _ if is_slower => WhyNot::Unprofitable { fused, apart },
                _ => WhyNot::Cycle,
            }
        }
    }
}
