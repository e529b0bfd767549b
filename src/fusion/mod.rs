//! Which operations share a kernel.
//!
//! Every computed node starts as a kernel of its own. A node with one reader that recomputes nothing
//! joins its reader at once; after that, merges are tried best first, as the cost model ranks them,
//! until none gains. A merge is legal if [`analyse::Analyser`] finds one kernel for it, and every refusal
//! carries its reason.

mod analyse;
mod contracted;
pub(crate) mod cost;
pub(crate) mod cut;
mod domain;
mod facts;
pub(crate) mod group;
mod merge;
pub(crate) mod reads;
mod repeats;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use analyse::Analyser;
pub(crate) use analyse::part;
use cut::Cut;
pub(crate) use facts::Facts;
use group::{Group, MAX_NODES, Recomputed, WhyNot};
use merge::Part;

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

/// Two groups that share values, and why they are not one.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    /// What lies between them in memory, or what both read.
    pub(crate) values: Vec<NodeId>,
    /// Who stores it, or reads it too.
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) reason: WhyNot,
}

/// The kernels of a graph, producers first.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub(crate) groups: Vec<Group>,
    fusion: Fusion,
    /// The nodes of kernels that were too much and became several, and why.
    divided: Vec<(Vec<NodeId>, WhyNot)>,
}

/// A group that somebody wants.
#[cfg(feature = "opt")]
pub(crate) struct Wanted {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) outputs: Vec<NodeId>,
    /// Whether its threads take as few registers as they can.
    pub(crate) is_low_pressure: bool,
}

#[cfg(feature = "opt")]
impl Grouping {
    /// The groups that somebody wants.
    ///
    /// # Errors
    /// Why one is no kernel, or what is missing.
    pub(crate) fn of(graph: &Graph, facts: &Facts, wanted: &[Wanted]) -> Result<Grouping, String> {
        let numbers = graph.numbers();
        let name =
            |id: NodeId| numbers[id.index()].map_or("a dead node".into(), |number| format!("%{number}"));
        let mut groups = Vec::with_capacity(wanted.len());
        let mut analyser = Analyser::new(graph, facts);
        for (number, Wanted { nodes, outputs, is_low_pressure }) in wanted.iter().enumerate() {
            if let Some(&id) = nodes.iter().find(|&&id| !facts.reads.is_computed(id)) {
                return Err(format!("group {number}: {} is not computed by a kernel", name(id)));
            }
            if let Some(&id) = outputs.iter().find(|id| !nodes.contains(id)) {
                return Err(format!("group {number}: {} is stored and not computed", name(id)));
            }
            let group = analyser.group(nodes.clone(), outputs.clone());
            let group = group.map_err(|why| format!("group {number} is no kernel: {why}"))?;
            groups.push(Group { is_low_pressure: *is_low_pressure, ..group });
        }
        let stored = owners(&groups);
        let is_missing = |id: &&NodeId| facts.reads.is_computed(**id) && !stored.contains_key(*id);
        if let Some(&id) = groups.iter().flat_map(|group| &group.reads).find(is_missing) {
            return Err(format!("no group stores {}, which another one reads", name(id)));
        }
        let wanted =
            graph.outputs().iter().map(|&output| reads::stored_as(graph, output)).collect::<Vec<_>>();
        if let Some(&id) = wanted.iter().find(is_missing) {
            return Err(format!("no group stores {}, which is an output", name(id)));
        }
        let order = order(&groups);
        if order.len() < groups.len() {
            return Err("groups need each other's results".into());
        }
        permute(&mut groups, &order);
        Ok(Grouping { groups, fusion: Fusion::On, divided: Vec::new() })
    }
}

/// Divides the graph into kernels.
pub(crate) fn fuse(graph: &Graph, facts: &Facts, fusion: Fusion) -> Grouping {
    let mut groups = match fusion {
        Fusion::Off => singles(graph, facts),
        Fusion::On => {
            let reads = &facts.reads;
            let nodes: Vec<NodeId> = graph.nodes().filter(|&id| reads.is_computed(id)).collect();
            let is_wanted = graph.nodes().map(|id| reads.is_output(id)).collect();
            merge::Merger::new(
                graph,
                facts,
                Part { nodes, is_wanted, most_nodes: MAX_NODES, is_divided: false },
            )
            .run()
        }
    };
    let order = order(&groups);
    permute(&mut groups, &order);
    Grouping { groups, fusion, divided: Vec::new() }
}

/// Every operation as a kernel of its own; a contraction is one operation.
pub(crate) fn singles(graph: &Graph, facts: &Facts) -> Vec<Group> {
    let mut analyser = Analyser::new(graph, facts);
    let products: FxHashMap<NodeId, NodeId> =
        graph.nodes().filter_map(|sum| Some((sum, facts.contracted(graph, sum)?))).collect();
    let inside: FxHashSet<NodeId> = products.values().copied().collect();
    let computed = graph.nodes().filter(|id| facts.reads.is_computed(*id) && !inside.contains(id));
    computed
        .filter_map(|id| match products.get(&id) {
            None => analyser.single(id),
            Some(&product) => analyser.group(vec![product, id], vec![id]).ok(),
        })
        .collect()
}

/// By node, what a group stores.
fn wanted(graph: &Graph, group: &Group) -> Vec<bool> {
    let mut is_wanted = vec![false; graph.bound()];
    group.outputs.iter().for_each(|output| is_wanted[output.index()] = true);
    is_wanted
}

/// The kernels of a group without one of its merges, producers first. `None` if they were one all the same, or if what is stored
/// between them were rounded to 16 bits, which one kernel does not do.
pub(crate) fn apart(graph: &Graph, facts: &mut Facts, group: &Group, cut: Cut) -> Option<Vec<Group>> {
    let part = Part {
        nodes: group.nodes.clone(),
        is_wanted: wanted(graph, group),
        most_nodes: MAX_NODES,
        is_divided: false,
    };
    let before = facts.undone.replace(cut);
    let mut parts = merge::Merger::new(graph, facts, part).run();
    facts.undone = before;
    let order = order(&parts);
    permute(&mut parts, &order);
    let is_rounded = |id: &NodeId| {
        let node = graph.node(*id);
        node.dtype.is_float() && node.dtype.size() == 2 && !matches!(node.op, Op::Cast)
    };
    let mut stored = parts.iter().flat_map(|part| &part.outputs).filter(|id| !group.outputs.contains(id));
    (parts.len() > 1 && !stored.any(is_rounded)).then_some(parts)
}

impl Grouping {
    /// Groups that are all there is.
    pub(crate) fn alone(groups: Vec<Group>) -> Grouping {
        Grouping { groups, fusion: Fusion::On, divided: Vec::new() }
    }

    /// The work of groups that are no plan, each by its nodes and what it stores; `None` if one is no kernel.
    pub(crate) fn works(
        graph: &Graph,
        facts: &Facts,
        groups: Vec<(Vec<NodeId>, Vec<NodeId>)>,
    ) -> Option<Vec<cost::Work>> {
        let mut analyser = Analyser::new(graph, facts);
        let mut work = |(nodes, outputs)| Some(analyser.group(nodes, outputs).ok()?.work);
        groups.into_iter().map(&mut work).collect()
    }

    /// The same for another graph that differs in extents alone; `None` if one of the groups is none there.
    pub(crate) fn like(&self, graph: &Graph, facts: &Facts) -> Option<Grouping> {
        let mut analyser = Analyser::new(graph, facts);
        let mut same = |group: &Group| {
            let same = analyser.group(group.nodes.clone(), group.outputs.clone()).ok()?;
            Some(Group { is_low_pressure: group.is_low_pressure, ..same })
        };
        let groups = self.groups.iter().map(&mut same).collect::<Option<Vec<Group>>>()?;
        // Which views are nodes depends on extents.
        let stored = owners(&groups);
        let reads = || groups.iter().flat_map(|group| &group.reads);
        let is_whole = groups.iter().flat_map(|group| &group.nodes).all(|&id| facts.reads.is_computed(id))
            && reads().all(|id| !facts.reads.is_computed(*id) || stored.contains_key(id));
        is_whole.then(|| Grouping { groups, fusion: self.fusion, divided: self.divided.clone() })
    }

    /// Smaller groups in the place of one that was too much, at the end of the list; the others stay as they are. `None`
    /// if it has one operation.
    pub(crate) fn divide(&mut self, graph: &Graph, facts: &Facts, number: usize, why: WhyNot) -> Option<()> {
        let group = self.groups.get(number).filter(|group| group.nodes.len() > 1)?;
        let is_wanted = wanted(graph, group);
        let (nodes, is_low_pressure) = (group.nodes.clone(), group.is_low_pressure);
        // A contraction's product stays with its sum: stored it would be the largest value by far.
        let texts = (group.texts as usize).max(2);
        let most_nodes = (texts / 2).max(2).min(texts - 1);
        let part = Part { most_nodes, nodes, is_wanted, is_divided: true };
        let mut parts = merge::Merger::new(graph, facts, part).run();
        parts.iter_mut().for_each(|part| part.is_low_pressure = is_low_pressure);
        self.replace(number, parts, why);
        Some(())
    }

    /// These groups in the place of one, at the end of the list.
    pub(crate) fn replace(&mut self, number: usize, parts: Vec<Group>, why: WhyNot) {
        let group = self.groups.swap_remove(number);
        self.groups.extend(parts);
        self.divided.push((group.nodes, why));
    }

    /// Whether a kernel is several because these were measured to be faster.
    pub(crate) fn is_cut(&self) -> bool {
        self.divided.iter().any(|(_, why)| matches!(why, WhyNot::Tuned(_)))
    }

    /// Values that several groups store are stored by the first that can run. A part of a divided group stores what other
    /// groups may have too, because both compute it. Groups are then in an order that they can run in, and `of_groups`, a
    /// list of something for each, too: what stands for a group that stores less is `None` there. `None` if what is left of one is no
    /// kernel, or if some wait for each other.
    pub(crate) fn store_once<T>(
        &mut self,
        graph: &Graph,
        facts: &Facts,
        of_groups: &mut Vec<Option<T>>,
    ) -> Option<()> {
        let order = order(&self.groups);
        if order.len() < self.groups.len() {
            return None;
        }
        permute(&mut self.groups, &order);
        permute(of_groups, &order);
        let mut stored: FxHashSet<NodeId> = FxHashSet::default();
        let mut analyser = Analyser::new(graph, facts);
        for (group, of_group) in self.groups.iter_mut().zip(of_groups.iter_mut()) {
            let outputs: Vec<NodeId> =
                group.outputs.iter().copied().filter(|id| stored.insert(*id)).collect();
            if outputs.len() < group.outputs.len() {
                *of_group = None;
                let is_low_pressure = group.is_low_pressure;
                match outputs.is_empty() {
                    true => group.outputs.clear(),
                    false => {
                        let nodes = needed(graph, facts, &group.nodes, &outputs);
                        *group = Group { is_low_pressure, ..analyser.group(nodes, outputs).ok()? };
                    }
                }
            }
        }
        let mut has_outputs = self.groups.iter().map(|group| !group.outputs.is_empty());
        of_groups.retain(|_| has_outputs.next() == Some(true));
        self.groups.retain(|group| !group.outputs.is_empty());
        Some(())
    }

    /// Whether a group turned out to be too much.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn was_divided(&self) -> bool {
        !self.divided.is_empty()
    }

    /// Registers ran out in a kernel: first its threads compute fewer elements, then it becomes smaller. `None` if it
    /// cannot.
    pub(crate) fn relieve(&mut self, graph: &Graph, facts: &Facts, number: usize, bytes: u32) -> Option<()> {
        match self.groups.get_mut(number)? {
            group if group.is_low_pressure => self.divide(graph, facts, number, WhyNot::Spills { bytes }),
            group => {
                group.is_low_pressure = true;
                Some(())
            }
        }
    }

    /// Why two groups are apart that were one.
    fn why_divided(&self, a: usize, b: usize) -> Option<WhyNot> {
        let is_of = |nodes: &[NodeId], number: usize| {
            self.groups[number].nodes.iter().all(|id| nodes.binary_search(id).is_ok())
        };
        let mut divided = self.divided.iter().rev();
        divided.find(|(nodes, _)| is_of(nodes, a) && is_of(nodes, b)).map(|(_, why)| why.clone())
    }
}

/// Those of a group's nodes that these outputs of it follow from.
fn needed(graph: &Graph, facts: &Facts, nodes: &[NodeId], outputs: &[NodeId]) -> Vec<NodeId> {
    let mut is_needed = vec![false; graph.bound()];
    outputs.iter().for_each(|output| is_needed[output.index()] = true);
    for &id in nodes.iter().rev() {
        if is_needed[id.index()] {
            facts.reads.reads(id).iter().for_each(|read| is_needed[read.node.index()] = true);
        }
    }
    nodes.iter().copied().filter(|id| is_needed[id.index()]).collect()
}

/// Producers before consumers; otherwise by first node. Of several that store a value, one comes before its readers.
fn order(groups: &[Group]) -> Vec<usize> {
    let mut by_first: Vec<usize> = (0..groups.len()).collect();
    by_first.sort_by_key(|&number| groups[number].nodes.first().copied());
    let mut rank = vec![0; groups.len()];
    by_first.iter().enumerate().for_each(|(place, &number)| rank[number] = place);
    let stored: FxHashSet<NodeId> = groups.iter().flat_map(|group| &group.outputs).copied().collect();
    let mut readers: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
    let mut missing = vec![0; groups.len()];
    for (number, group) in groups.iter().enumerate() {
        for &read in group.reads.iter().filter(|read| stored.contains(read)) {
            missing[number] += 1;
            readers.entry(read).or_default().push(number);
        }
    }
    let mut ready: BTreeSet<usize> =
        (0..groups.len()).filter(|&place| missing[by_first[place]] == 0).collect();
    let mut order = Vec::with_capacity(groups.len());
    while let Some(place) = ready.pop_first() {
        order.push(by_first[place]);
        for output in &groups[by_first[place]].outputs {
            for number in readers.remove(output).unwrap_or_default() {
                missing[number] -= 1;
                if missing[number] == 0 {
                    ready.insert(rank[number]);
                }
            }
        }
    }
    order
}

/// Brings a list into an order.
fn permute<T>(list: &mut Vec<T>, order: &[usize]) {
    let mut taken: Vec<Option<T>> = std::mem::take(list).into_iter().map(Some).collect();
    list.extend(order.iter().filter_map(|&number| taken[number].take()));
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

/// Why each pair of groups is apart that share a value: one stores it and the other reads it, or both read it.
pub(crate) fn boundaries(graph: &Graph, facts: &Facts, grouping: &Grouping) -> Vec<Boundary> {
    let groups = &grouping.groups;
    let owner = owners(groups);
    let mut pairs: IndexMap<(usize, usize), Vec<NodeId>, FxBuildHasher> = IndexMap::default();
    for (consumer, group) in groups.iter().enumerate() {
        for &value in &group.reads {
            if let Some(&producer) = owner.get(&value) {
                pairs.entry((producer, consumer)).or_default().push(value);
            }
        }
    }
    // What each group needs, of the groups before it.
    let mut needs: Vec<FxHashSet<usize>> = Vec::with_capacity(groups.len());
    let mut last_reader: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (number, group) in groups.iter().enumerate() {
        let mut needed: FxHashSet<usize> = FxHashSet::default();
        for producer in group.reads.iter().filter_map(|read| owner.get(read)) {
            needed.insert(*producer);
            needed.extend(needs.get(*producer).into_iter().flatten());
        }
        for &value in &group.reads {
            // Neighbours in the order, for each value.
            let Some(other) = last_reader.insert(value, number) else { continue };
            if other != number && !needed.contains(&other) {
                pairs.entry((other, number)).or_default().push(value);
            }
        }
        needs.push(needed);
    }
    let mut apart = Apart { graph, facts, grouping, needs, analyser: Analyser::new(graph, facts) };
    let readers = readers(groups);
    let boundary = |((producer, consumer), values): ((usize, usize), Vec<NodeId>)| {
        let reason = apart.why(producer, consumer, &readers);
        Boundary { values, producer, consumer, reason }
    };
    pairs.into_iter().map(boundary).collect()
}

/// How many groups read each node.
fn readers(groups: &[Group]) -> FxHashMap<NodeId, usize> {
    let mut readers: FxHashMap<NodeId, usize> = FxHashMap::default();
    groups.iter().flat_map(|group| &group.reads).for_each(|&value| *readers.entry(value).or_default() += 1);
    readers
}

/// What says why groups are apart.
struct Apart<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    grouping: &'a Grouping,
    needs: Vec<FxHashSet<usize>>,
    analyser: Analyser<'a>,
}

impl Apart<'_> {
    /// Why the second of two groups is not one with the first, which it reads from or which reads the same.
    fn why(&mut self, a: usize, b: usize, readers: &FxHashMap<NodeId, usize>) -> WhyNot {
        if self.grouping.fusion == Fusion::Off {
            return WhyNot::Off;
        }
        if let Some(why) = self.grouping.why_divided(a, b) {
            return why;
        }
        let (first, second) = (&self.grouping.groups[a], &self.grouping.groups[b]);
        // What only the second reads would not be stored if the two were one.
        let is_kept = |id: &NodeId| {
            let here = usize::from(second.reads.contains(id));
            self.facts.reads.is_output(*id) || readers.get(id).is_some_and(|&all| all > here)
        };
        let kept = first.outputs.iter().copied().filter(is_kept);
        let outputs = kept.chain(second.outputs.iter().copied()).collect();
        let merged = match self.analyser.both(first, second, outputs) {
            Ok(merged) => merged,
            Err(reason) => return reason,
        };
        let figures = &self.facts.figures;
        let apart = first.work.seconds(figures) + second.work.seconds(figures);
        let fused = merged.work.seconds(figures);
        let is_slower = fused >= apart * merge::DOUBT;
        // As the search counts them.
        let text =
            |group: &Group| figures.repeated(group.texts - group.nodes.len() as f64, self.facts.bound());
        let is_longer = fused + text(&merged) >= (apart + text(first) + text(second)) * merge::DOUBT;
        let is_consumer = first.outputs.iter().any(|id| second.reads.contains(id));
        let is_between = |&between: &usize| between != a && self.needs[between].contains(&a);
        let nodes = first.nodes.iter().chain(&second.nodes).copied();
        let too_many = self.facts.repeats.too_many(self.graph, nodes);
        match (merged.recomputed, too_many) {
            (Some(Recomputed { value, times, .. }), _) if is_slower => {
                WhyNot::Recomputation { value, times, fused, apart }
            }
            _ if is_slower => WhyNot::Unprofitable { fused, apart },
            _ if self.needs[b].iter().any(is_between) => WhyNot::Cycle,
            (_, Some(too_many)) => WhyNot::TooMany(too_many),
            _ if is_longer => WhyNot::Repeated { operations: merged.texts - first.texts - second.texts },
            // The search doubts small losses as well.
            _ if fused >= apart => WhyNot::Unprofitable { fused, apart },
            _ if is_consumer => WhyNot::Overtaken { fused, apart },
            _ => WhyNot::NotTried,
        }
    }
}
