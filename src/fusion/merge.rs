//! The search for groups: sure gains first, then the best merge until none gains.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use rustc_hash::{FxHashMap, FxHashSet};

use super::cost::TargetFigures;
use super::group::{self, Group, MAX_NODES, WhyNot};
use super::reads::Reads;
use crate::graph::{Graph, NodeId};

/// Siblings that are considered for each shared input.
const SIBLINGS: usize = 2;

/// A producer with more consumers than this is not computed again in each of them.
const INLINED: usize = 8;

/// A possible merge and the seconds that the model says it saves.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Candidate {
    /// An estimate until its turn comes.
    saving: f64,
    is_exact: bool,
    action: Action,
    versions: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Action {
    /// A producer and one of its consumers become one kernel.
    Merge(usize, usize),
    /// A producer is computed again in each of its consumers.
    Inline(usize),
    /// Two independent kernels over the same space become one.
    Siblings(usize, usize),
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    /// By saving; equal ones in a fixed order, so that the same graph gives the same groups.
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.saving.total_cmp(&other.saving).then_with(|| other.action.cmp(&self.action))
    }
}

pub(super) struct Merger<'a> {
    graph: &'a Graph,
    reads: &'a Reads,
    cooperative: &'a [bool],
    figures: &'a TargetFigures,
    groups: Vec<Option<Group>>,
    versions: Vec<u32>,
    /// Less than those of all consumers, so that a search for a way between two groups stays between them.
    ranks: Vec<u32>,
    /// Which group stores a node.
    owner: FxHashMap<NodeId, usize>,
    /// Which groups read a node from memory.
    readers: FxHashMap<NodeId, BTreeSet<usize>>,
    candidates: BinaryHeap<Candidate>,
}

impl<'a> Merger<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        reads: &'a Reads,
        cooperative: &'a [bool],
        figures: &'a TargetFigures,
    ) -> Merger<'a> {
        Merger {
            graph,
            reads,
            cooperative,
            figures,
            groups: Vec::new(),
            versions: Vec::new(),
            ranks: Vec::new(),
            owner: FxHashMap::default(),
            readers: FxHashMap::default(),
            candidates: BinaryHeap::new(),
        }
    }

    pub(super) fn run(mut self) -> Vec<Group> {
        self.join_sure_gains();
        // Both groups of a pair name it, and each consumer a producer: once is enough before any changes.
        let mut seen: FxHashSet<Action> = FxHashSet::default();
        for group in 0..self.groups.len() {
            let actions = self.actions(group);
            actions.into_iter().filter(|&action| seen.insert(action)).for_each(|action| self.queue(action));
        }
        while let Some(candidate) = self.candidates.pop() {
            let action = candidate.action;
            if self.versions_of(action) != candidate.versions {
                continue;
            }
            if !candidate.is_exact {
                // Its turn has come: work it out, and see whether it is still the best.
                if let Some(saving) = self.saving(action).filter(|&saving| saving > 0.0) {
                    self.candidates.push(Candidate { saving, is_exact: true, ..candidate });
                }
            } else if !self.makes_cycle(action) {
                // Since the merge was found, others may have led a way from one group to the other.
                self.apply(action);
            }
        }
        self.groups.into_iter().flatten().collect()
    }

    fn analyse(&self, nodes: Vec<NodeId>, outputs: Vec<NodeId>) -> Result<Group, WhyNot> {
        Group::analyse(self.graph, self.reads, self.cooperative, nodes, outputs)
    }

    /// A node that one other reads, without computing any element twice, joins it.
    fn join_sure_gains(&mut self) {
        let graph = self.graph;
        let computed: Vec<NodeId> = graph.nodes().filter(|&id| self.reads.is_computed(id)).collect();
        let mut group_of: FxHashMap<NodeId, usize> = FxHashMap::default();
        let mut members: Vec<Vec<NodeId>> = Vec::new();
        let mut shared: Vec<Option<NodeId>> = Vec::new();
        for &id in &computed {
            group_of.insert(id, members.len());
            members.push(vec![id]);
            shared.push(self.cooperative[id.index()].then_some(id));
        }
        for &id in &computed {
            let &[user] = self.reads.users(id) else { continue };
            let elements = graph.node(id).shape.elements() as u64;
            let demand: u64 =
                self.reads.reads(user).iter().filter(|r| r.node == id).map(|r| r.elements).sum();
            if self.reads.is_output(id) || demand > elements {
                continue;
            }
            let (from, to) = (group_of[&id], group_of[&user]);
            if from == to || members[from].len() + members[to].len() > MAX_NODES {
                continue;
            }
            if let Some(reduction) = shared[from]
                && !self.joins_rows(reduction, shared[to], user)
            {
                continue;
            }
            let (small, large) =
                if members[from].len() < members[to].len() { (from, to) } else { (to, from) };
            let moved = std::mem::take(&mut members[small]);
            moved.iter().for_each(|&node| {
                group_of.insert(node, large);
            });
            members[large].extend(moved);
            shared[large] = shared[large].or(shared[small]);
        }
        for nodes in members.into_iter().filter(|nodes| !nodes.is_empty()) {
            let outputs = self.stored(&nodes);
            match self.analyse(nodes.clone(), outputs) {
                Ok(group) => self.add(group),
                // Joins were checked, so this is unreachable; alone, every node is a kernel.
                Err(_) => {
                    let singles: Vec<Group> =
                        nodes.iter().filter_map(|&id| self.analyse(vec![id], vec![id]).ok()).collect();
                    singles.into_iter().for_each(|group| self.add(group));
                }
            }
        }
    }

    /// Whether a node may join a tree with a reduction that it reads, and bring a tree of its own, with
    /// or without a reduction. Both are trees in which each node has one reader, so that only `user`
    /// newly follows from the reduction; [`Group::analyse`] checks the same for any set of nodes.
    fn joins_rows(&self, reduction: NodeId, other: Option<NodeId>, user: NodeId) -> bool {
        let (full, axes) = group::space(self.graph, reduction);
        let shape = &self.graph.node(user).shape;
        let walkable = group::is_walkable(self.graph, reduction);
        let is_result = shape.elements() == self.graph.node(reduction).shape.elements();
        let fits = is_result || walkable && shape == full;
        let same_rows = other.is_none_or(|other| group::space(self.graph, other) == (full, axes));
        let waits = self.cooperative[user.index()];
        same_rows && if waits { walkable } else { fits }
    }

    /// The nodes that are needed outside of the set.
    fn stored(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let inside: FxHashSet<NodeId> = nodes.iter().copied().collect();
        let is_needed = |id: &NodeId| {
            self.reads.is_output(*id) || self.reads.users(*id).iter().any(|user| !inside.contains(user))
        };
        nodes.iter().copied().filter(is_needed).collect()
    }

    fn add(&mut self, group: Group) {
        let number = self.groups.len();
        // Groups that sure gains made store their last node alone, and what others read is before that.
        let rank = group.nodes.last().map_or(0, |id| id.index() as u32);
        self.groups.push(None);
        self.versions.push(0);
        self.ranks.push(rank);
        self.put(number, group);
    }

    fn put(&mut self, number: usize, group: Group) {
        for &output in &group.outputs {
            self.owner.insert(output, number);
        }
        for &read in &group.reads {
            self.readers.entry(read).or_default().insert(number);
        }
        self.groups[number] = Some(group);
        self.versions[number] += 1;
    }

    fn take(&mut self, number: usize) -> Option<Group> {
        let group = self.groups[number].take()?;
        for output in &group.outputs {
            self.owner.remove(output);
        }
        for read in &group.reads {
            if let Some(readers) = self.readers.get_mut(read) {
                readers.remove(&number);
            }
        }
        self.versions[number] += 1;
        Some(group)
    }

    fn versions_of(&self, action: Action) -> (u32, u32) {
        match action {
            Action::Merge(a, b) | Action::Siblings(a, b) => (self.versions[a], self.versions[b]),
            Action::Inline(a) => {
                let consumers = self.consumers(a);
                (
                    self.versions[a],
                    consumers.iter().fold(0, |sum: u32, &c| sum.wrapping_add(self.versions[c])),
                )
            }
        }
    }

    /// The groups that read what a group stores.
    fn consumers(&self, number: usize) -> BTreeSet<usize> {
        self.readers_of(number).collect()
    }

    /// The consumers, some of them several times.
    fn readers_of(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let outputs = self.groups[number].iter().flat_map(|group| &group.outputs);
        let readers = outputs.filter_map(|output| self.readers.get(output));
        readers.flatten().copied().filter(move |&reader| reader != number)
    }

    fn seconds(&self, number: usize) -> f64 {
        self.groups[number].as_ref().map_or(0.0, |group| group.work.seconds(self.figures))
    }

    /// The merges that involve a group.
    fn actions(&self, number: usize) -> Vec<Action> {
        let Some(group) = &self.groups[number] else { return Vec::new() };
        let producers: BTreeSet<usize> =
            group.reads.iter().filter_map(|read| self.owner.get(read).copied()).collect();
        let mut siblings: BTreeSet<usize> = BTreeSet::new();
        for read in &group.reads {
            if let Some(readers) = self.readers.get(read) {
                let near = readers
                    .range(..number)
                    .rev()
                    .take(SIBLINGS)
                    .chain(readers.range(number + 1..).take(SIBLINGS));
                siblings.extend(near.copied());
            }
        }
        let consumers = self.consumers(number);
        let mut actions: Vec<Action> = Vec::new();
        actions.extend(producers.iter().map(|&producer| Action::Merge(producer, number)));
        actions.extend(producers.iter().map(|&producer| Action::Inline(producer)));
        actions.extend(consumers.iter().map(|&consumer| Action::Merge(number, consumer)));
        actions.push(Action::Inline(number));
        actions
            .extend(siblings.into_iter().map(|other| Action::Siblings(number.min(other), number.max(other))));
        actions
    }

    /// Queues a merge by what it might save. Most are overtaken by others before their turn comes, so
    /// that only the few at the top are worked out.
    fn queue(&mut self, action: Action) {
        if let Some(saving) = self.estimate(action) {
            let versions = self.versions_of(action);
            self.candidates.push(Candidate { saving, is_exact: false, action, versions });
        }
    }

    /// The launches and the traffic that a merge would do without.
    fn estimate(&self, action: Action) -> Option<f64> {
        let bytes = |&id: &NodeId| {
            let node = self.graph.node(id);
            (node.shape.elements() * node.dtype.size()) as f64
        };
        let traffic = match action {
            Action::Merge(a, b) | Action::Siblings(a, b) => {
                let (a, b) = (self.groups[a].as_ref()?, self.groups[b].as_ref()?);
                let stored: f64 = a.outputs.iter().filter(|id| b.reads.contains(id)).map(bytes).sum();
                let shared: f64 = a.reads.iter().filter(|id| b.reads.contains(id)).map(bytes).sum();
                2.0 * stored + shared
            }
            Action::Inline(producer) => {
                let consumers = self.consumers(producer).len();
                if !(2..=INLINED).contains(&consumers) {
                    return None;
                }
                let stored: f64 = self.groups[producer].as_ref()?.outputs.iter().map(bytes).sum();
                stored * (1 + consumers) as f64
            }
        };
        Some(self.figures.launch + traffic / self.figures.bandwidth)
    }

    fn saving(&self, action: Action) -> Option<f64> {
        match action {
            Action::Merge(producer, consumer) => {
                let merged = self.merged(producer, consumer)?;
                let before = self.seconds(producer) + self.seconds(consumer);
                let saving = before - merged.work.seconds(self.figures);
                (saving > 0.0 && !self.makes_cycle(action)).then_some(saving)
            }
            Action::Siblings(a, b) => {
                if self.makes_cycle(action) {
                    return None;
                }
                let merged = self.merged(a, b)?;
                Some(self.seconds(a) + self.seconds(b) - merged.work.seconds(self.figures))
            }
            Action::Inline(producer) => {
                let consumers = self.inlined(producer)?;
                let before: f64 = self.seconds(producer)
                    + consumers.iter().map(|(number, _)| self.seconds(*number)).sum::<f64>();
                let after: f64 = consumers.iter().map(|(_, group)| group.work.seconds(self.figures)).sum();
                Some(before - after)
            }
        }
    }

    /// Two groups as one; what only they use is not stored.
    fn merged(&self, a: usize, b: usize) -> Option<Group> {
        let (first, second) = (self.groups[a].as_ref()?, self.groups[b].as_ref()?);
        if first.nodes.len() + second.nodes.len() > MAX_NODES {
            return None;
        }
        let nodes: Vec<NodeId> = first.nodes.iter().chain(&second.nodes).copied().collect();
        let is_needed = |id: &NodeId| {
            let mut readers = self.readers.get(id).into_iter().flatten();
            self.reads.is_output(*id) || readers.any(|&reader| reader != a && reader != b)
        };
        let outputs = first.outputs.iter().chain(&second.outputs).copied().filter(is_needed).collect();
        self.analyse(nodes, outputs).ok()
    }

    /// Each consumer with the producer's nodes computed inside, if the producer is not needed then.
    fn inlined(&self, producer: usize) -> Option<Vec<(usize, Group)>> {
        let group = self.groups[producer].as_ref()?;
        let shares = group.nodes.iter().any(|id| self.cooperative[id.index()]);
        if shares || group.outputs.iter().any(|&output| self.reads.is_output(output)) {
            return None;
        }
        let consumers = self.consumers(producer);
        if !(2..=INLINED).contains(&consumers.len()) {
            return None;
        }
        let inline = |number: usize| {
            let consumer = self.groups[number].as_ref()?;
            let nodes =
                self.needed(group, consumer).into_iter().chain(consumer.nodes.iter().copied()).collect();
            self.analyse(nodes, consumer.outputs.clone()).ok().map(|group| (number, group))
        };
        consumers.into_iter().map(inline).collect()
    }

    /// The producer's nodes that lead to what the consumer reads.
    fn needed(&self, producer: &Group, consumer: &Group) -> Vec<NodeId> {
        let inside: FxHashSet<NodeId> = producer.nodes.iter().copied().collect();
        let mut pending: Vec<NodeId> =
            consumer.reads.iter().copied().filter(|id| inside.contains(id)).collect();
        let mut needed = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if needed.insert(id) {
                pending
                    .extend(self.reads.reads(id).iter().map(|r| r.node).filter(|node| inside.contains(node)));
            }
        }
        needed.into_iter().collect()
    }

    /// Whether a third group would both need the merged one and be needed by it.
    fn makes_cycle(&self, action: Action) -> bool {
        match action {
            Action::Merge(producer, consumer) => {
                self.readers_of(producer).any(|next| next != consumer && self.reaches(next, consumer))
            }
            Action::Siblings(a, b) => self.reaches(a, b) || self.reaches(b, a),
            // What reads the producer reads what it read instead: no new ways.
            Action::Inline(_) => false,
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = FxHashSet::default();
        let mut pending = vec![from];
        while let Some(number) = pending.pop() {
            if number == to {
                return true;
            }
            if self.ranks[number] < self.ranks[to] && seen.insert(number) {
                let between = |&next: &usize| next == to || self.ranks[next] < self.ranks[to];
                pending.extend(self.readers_of(number).filter(between));
            }
        }
        false
    }

    /// Gives a group at least this rank, and those that follow from it larger ones.
    fn raise(&mut self, number: usize, rank: u32) {
        let mut pending = vec![(number, rank)];
        while let Some((number, rank)) = pending.pop() {
            if self.ranks[number] < rank {
                self.ranks[number] = rank;
            }
            let next = self.ranks[number] + 1;
            let behind = self.readers_of(number).filter(|&reader| self.ranks[reader] < next);
            pending.extend(behind.map(|reader| (reader, next)));
        }
    }

    fn apply(&mut self, action: Action) {
        let changed: Vec<usize> = match action {
            Action::Merge(a, b) | Action::Siblings(a, b) => {
                let Some(group) = self.merged(a, b) else { return };
                self.take(a);
                self.take(b);
                self.put(b, group);
                self.raise(b, self.ranks[a].max(self.ranks[b]));
                vec![b]
            }
            Action::Inline(producer) => {
                let Some(consumers) = self.inlined(producer) else { return };
                self.take(producer);
                let mut changed = Vec::new();
                for (number, group) in consumers {
                    self.take(number);
                    self.put(number, group);
                    changed.push(number);
                }
                changed
            }
        };
        for number in changed {
            self.actions(number).into_iter().for_each(|action| self.queue(action));
        }
    }
}
