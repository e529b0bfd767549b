//! The search for groups: single-use producers first, then the best merge until none gains.

mod attention;
mod both;
mod butterflies;
mod candidate;
mod narrow;
mod partition;
mod rematerialise;
mod sorted;

use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use self::candidate::{Action, Candidate};
use super::analyse::Analyser;
use super::cost::TargetFigures;
use super::cut::Cut;
use super::facts::{Facts, MOST_PARTS};
use super::group::Group;
use super::reads::Read;
use crate::graph::domain::Hero;
use crate::graph::{Graph, NodeId};

/// Siblings that are considered for each shared input.
const SIBLINGS: usize = 2;

/// A producer with more consumers than this is not computed again in each of them.
const INLINED: usize = 8;

/// How much longer than two kernels one may take: that it launches less and moves less is certain, what arithmetic costs is
/// not.
pub(super) const DOUBT: f64 = 1.05;

/// What an analysis of two groups said, as long as they are as they were.
#[derive(Clone, Copy)]
struct Memo {
    versions: (u32, u32),
    outputs: usize,
    /// Modelled, if one kernel can do it.
    seconds: Option<f64>,
}

/// Numbers of groups, ascending, each once.
type Numbers = SmallVec<[usize; 8]>;

fn ascending(numbers: impl Iterator<Item = usize>) -> Numbers {
    let mut numbers: Numbers = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// No group stores the node.
const NOBODY: u32 = u32::MAX;

/// What to divide into kernels.
pub(super) struct Part {
    /// Computed nodes, ascending.
    pub(super) nodes: Vec<NodeId>,
    /// Those of them that are wanted; by node.
    pub(super) is_wanted: Vec<bool>,
    /// The most nodes of a kernel.
    pub(super) most_nodes: usize,
    /// Whether these are of a kernel that was too much: then a node counts as often as its text is there.
    pub(super) is_divided: bool,
}

pub(super) struct Merger<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    figures: &'a TargetFigures,
    part: Part,
    analyser: Analyser<'a>,
    groups: Vec<Option<Group>>,
    versions: Vec<u32>,
    /// Which part of a large region each node is of; empty if there is none, or if it does not matter any more.
    partition: Vec<u32>,
    /// Less than those of all consumers, so that a search for a way between two groups stays between them.
    ranks: Vec<u32>,
    /// Which group stores a node; by node.
    owner: Vec<u32>,
    /// Which groups read a node from memory, ascending; by node.
    readers: Vec<SmallVec<[u32; 4]>>,
    candidates: BinaryHeap<Candidate>,
    /// Two groups as one.
    merged: FxHashMap<(usize, usize), Memo>,
    /// The second with what it needs of the first.
    inlined: FxHashMap<(usize, usize), Memo>,
    /// Buffers of one step, kept for the next.
    nodes: Vec<NodeId>,
    outputs: Vec<NodeId>,
    is_needed: Vec<bool>,
    /// The last search that came by each group, and the number of the last search.
    seen: Vec<u32>,
    searches: u32,
}

impl<'a> Merger<'a> {
    pub(super) fn new(graph: &'a Graph, facts: &'a Facts, part: Part) -> Merger<'a> {
        let mut analyser = Analyser::new(graph, facts);
        analyser.most_nodes = part.most_nodes;
        analyser.counts_texts = part.is_divided;
        let partition = partition::partition(facts, &part.nodes, part.most_nodes);
        Merger {
            graph,
            facts,
            figures: &facts.figures,
            part,
            analyser,
            groups: Vec::new(),
            versions: Vec::new(),
            partition,
            ranks: Vec::new(),
            owner: vec![NOBODY; facts.bound()],
            readers: vec![SmallVec::new(); facts.bound()],
            candidates: BinaryHeap::new(),
            merged: FxHashMap::default(),
            inlined: FxHashMap::default(),
            nodes: Vec::new(),
            outputs: Vec::new(),
            is_needed: vec![false; facts.bound()],
            seen: Vec::new(),
            searches: 0,
        }
    }

    pub(super) fn run(mut self) -> Vec<Group> {
        self.join_sure_gains();
        self.seen = vec![0; self.groups.len()];
        self.search();
        if !std::mem::take(&mut self.partition).is_empty() {
            self.search();
        }
        if !self.figures.packs {
            (0..self.groups.len()).for_each(|middle| self.join_attention(middle));
        }
        self.store_narrow();
        self.groups.into_iter().flatten().collect()
    }

    /// Tries the merges there are, best first, and those that follow from them.
    fn search(&mut self) {
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
                if let Some(saving) = self.saving(action) {
                    self.candidates.push(Candidate { saving, is_exact: true, ..candidate });
                }
            } else if !self.makes_cycle(action) {
                // Since the merge was found, others may have led a way from one group to the other.
                self.apply(action);
            }
        }
    }

    /// The part of some nodes: of one of them that is in one.
    fn part_of(&self, nodes: &[NodeId]) -> u32 {
        let parts = nodes.iter().filter_map(|id| self.partition.get(id.index()));
        parts.copied().find(|&part| part != partition::NONE).unwrap_or(partition::NONE)
    }

    /// Whether two groups are of different parts.
    fn are_beyond(&self, a: usize, b: usize) -> bool {
        if self.partition.is_empty() {
            return false;
        }
        let [a, b] = [a, b].map(|number| {
            self.groups[number].as_ref().map_or(partition::NONE, |group| self.part_of(&group.nodes))
        });
        a != b && a != partition::NONE && b != partition::NONE
    }

    /// A node that one other reads, without computing any element twice, joins it.
    fn join_sure_gains(&mut self) {
        let facts = self.facts;
        let reads = &facts.reads;
        let all = std::mem::take(&mut self.part.nodes);
        let is_rematerialised = self.rematerialised(&all);
        let computed: Vec<NodeId> = all.into_iter().filter(|id| !is_rematerialised[id.index()]).collect();
        let mut group_of: Vec<usize> = vec![usize::MAX; facts.bound()];
        let mut members: Vec<Vec<NodeId>> = Vec::with_capacity(computed.len());
        let mut shared: Vec<Option<NodeId>> = Vec::with_capacity(computed.len());
        for &id in &computed {
            group_of[id.index()] = members.len();
            members.push(vec![id]);
            shared.push(facts.of(id).shared_rows().map(|_| id));
        }
        let mut parts: Vec<u32> = computed.iter().map(|&id| self.part_of(&[id])).collect();
        // What a contraction sums comes first, in case only so many nodes may join.
        let is_product = |id: NodeId, user: NodeId| facts.contracted(self.graph, user) == Some(id);
        let is_summed = |id: &&NodeId| reads.users(**id).iter().any(|&user| is_product(**id, user));
        let (summed, others): (Vec<&NodeId>, Vec<&NodeId>) = computed.iter().partition(is_summed);
        for &id in summed.into_iter().chain(others) {
            let is_inside = |user: &&NodeId| group_of[user.index()] != usize::MAX;
            let mut users = reads.users(id).iter().filter(is_inside);
            let (Some(&user), None) = (users.next(), users.next()) else { continue };
            let elements = facts.of(id).elements as u64;
            let uses = || reads.reads(user).iter().filter(|r| r.node == id);
            let demand: u64 = uses().map(|r| r.elements).sum();
            // Scatters join by the search: what is computed where is not that of a tree.
            let scatters = facts.of(id).scatter.is_some() || facts.of(user).scatter.is_some();
            let is_cut = facts.undone == Some(Cut::Below(id));
            let slows = || facts.changes_loop(id, user, uses().any(|r| r.interleaved));
            // What the analyser refuses.
            let searches = facts.of(id).parts > MOST_PARTS && uses().any(|read| read.map.is_none());
            if self.part.is_wanted[id.index()]
                || demand > elements
                || scatters
                || is_cut
                || searches
                || slows()
            {
                continue;
            }
            let (from, to) = (group_of[id.index()], group_of[user.index()]);
            if from == to || members[from].len() + members[to].len() > self.part.most_nodes {
                continue;
            }
            if parts[from] != parts[to] && parts[from].min(parts[to]) != partition::NONE {
                continue;
            }
            let both = members[from].iter().chain(&members[to]).copied();
            if facts.repeats.too_many(self.graph, both).is_some() {
                continue;
            }
            if let Some(reduction) = shared[from]
                && !self.joins_rows(reduction, shared[to], (id, user))
            {
                continue;
            }
            let (small, large) =
                if members[from].len() < members[to].len() { (from, to) } else { (to, from) };
            let moved = std::mem::take(&mut members[small]);
            moved.iter().for_each(|node| group_of[node.index()] = large);
            members[large].extend(moved);
            shared[large] = shared[large].or(shared[small]);
            parts[large] = parts[large].max(parts[small]);
        }
        self.join_butterflies(&computed, &mut group_of, &mut members);
        self.join_sorts(&computed, &mut group_of, &mut members);
        for (number, nodes) in members.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
            // What is needed outside is stored.
            let is_other = |user: &NodeId| ![number, usize::MAX].contains(&group_of[user.index()]);
            let is_needed =
                |id: &NodeId| self.part.is_wanted[id.index()] || reads.users(*id).iter().any(is_other);
            let outputs: Vec<NodeId> = nodes.iter().copied().filter(is_needed).collect();
            let nodes = self.with_rematerialised(nodes, &is_rematerialised);
            match self.analyser.group(nodes.clone(), outputs.clone()) {
                Ok(group) => self.add(group),
                // Too much text, of values that are needed in several places each.
                Err(_) => self.divided(nodes, outputs).into_iter().for_each(|group| self.add(group)),
            }
        }
        (0..self.groups.len()).for_each(|number| self.raise(number, self.ranks[number]));
    }

    /// Smaller groups of the nodes of one that is no kernel; alone, every node is one.
    fn divided(&mut self, nodes: Vec<NodeId>, outputs: Vec<NodeId>) -> Vec<Group> {
        if nodes.len() < 2 {
            return nodes.into_iter().filter_map(|id| self.analyser.single(id)).collect();
        }
        let mut is_wanted = vec![false; self.facts.bound()];
        outputs.iter().for_each(|id| is_wanted[id.index()] = true);
        let most_nodes = nodes.len().div_ceil(2);
        Merger::new(self.graph, self.facts, Part { nodes, is_wanted, most_nodes, is_divided: true }).run()
    }

    /// Whether a node with a reduction in its tree may join the one node that reads it, and its tree, with or without a
    /// reduction: it is one of the same rows, or of the elements of these, or element by element of the results.
    /// [`Analyser`] checks the same for any set of nodes.
    fn joins_rows(&self, reduction: NodeId, other: Option<NodeId>, (id, user): (NodeId, NodeId)) -> bool {
        let facts = self.facts;
        let (own, reader) = (facts.of(reduction).shared_rows(), facts.of(user));
        let Some(rows) = own.map(|number| facts.rows(number)) else { return false };
        let is_same = other.is_none_or(|other| facts.of(other).shared_rows() == own);
        let is_element = reader.fan == 1.0 && reader.scan.is_none() || reader.shared_rows() == own;
        let mut uses = facts.reads.reads(user).iter().filter(|read| read.node == id);
        let is_at_rows = |read: &Read| {
            let is_near = rows.is_near || read.elements as usize == rows.results;
            is_near && (read.aligned || read.map == Some(rows.row))
        };
        is_same && is_element && uses.all(is_at_rows)
    }

    fn add(&mut self, group: Group) {
        let number = self.groups.len();
        // Groups made of single-use producers store their last node alone, and what others read is before that; butterflies are
        // raised when all groups are there.
        let rank = group.nodes.last().map_or(0, |id| id.index() as u32);
        self.groups.push(None);
        self.versions.push(0);
        self.ranks.push(rank);
        self.put(number, group);
    }

    fn put(&mut self, number: usize, group: Group) {
        for &output in &group.outputs {
            self.owner[output.index()] = number as u32;
        }
        for &read in &group.reads {
            let readers = &mut self.readers[read.index()];
            if let Err(place) = readers.binary_search(&(number as u32)) {
                readers.insert(place, number as u32);
            }
        }
        self.groups[number] = Some(group);
        self.versions[number] += 1;
    }

    fn take(&mut self, number: usize) -> Option<Group> {
        let group = self.groups[number].take()?;
        for output in &group.outputs {
            self.owner[output.index()] = NOBODY;
        }
        for read in &group.reads {
            let readers = &mut self.readers[read.index()];
            if let Ok(place) = readers.binary_search(&(number as u32)) {
                readers.remove(place);
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
    fn consumers(&self, number: usize) -> Numbers {
        ascending(self.readers_of(number))
    }

    /// The consumers, some of them several times.
    fn readers_of(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let outputs = self.groups[number].iter().flat_map(|group| &group.outputs);
        let readers = outputs.flat_map(|output| &self.readers[output.index()]);
        readers.map(|&reader| reader as usize).filter(move |&reader| reader != number)
    }

    /// Seconds that so many operations count whose text is there once more.
    fn repeated(&self, operations: f64) -> f64 {
        self.figures.repeated(operations, self.facts.bound())
    }

    fn seconds(&self, number: usize) -> f64 {
        self.groups[number].as_ref().map_or(0.0, |group| {
            group.work.seconds(self.figures) + self.repeated(group.texts - group.nodes.len() as f64)
        })
    }

    /// The merges that involve a group.
    fn actions(&self, number: usize) -> Vec<Action> {
        let Some(group) = &self.groups[number] else { return Vec::new() };
        let owners = group.reads.iter().map(|read| self.owner[read.index()]);
        let producers = ascending(owners.filter(|&owner| owner != NOBODY).map(|owner| owner as usize));
        let near = |read: &NodeId| {
            let readers = &self.readers[read.index()];
            let here = readers.partition_point(|&reader| (reader as usize) < number);
            let is_reader = readers.get(here).is_some_and(|&reader| reader as usize == number);
            let behind = here + usize::from(is_reader);
            let before = &readers[here.saturating_sub(SIBLINGS)..here];
            before.iter().chain(&readers[behind..readers.len().min(behind + SIBLINGS)])
        };
        let consumers = self.consumers(number);
        let mut siblings = ascending(group.reads.iter().flat_map(near).map(|&sibling| sibling as usize));
        // Elements that follow from another result of the same kernel: keys and values that each join their cache.
        if group.hero == Hero::Elements {
            let stored = producers.iter().filter_map(|&producer| self.groups[producer].as_ref());
            let cousins = stored.flat_map(|group| &group.outputs).flat_map(near).map(|&other| other as usize);
            let is_alike = |other: &usize| {
                let other = self.groups[*other].as_ref();
                other.is_some_and(|other| {
                    other.hero == Hero::Elements
                        && self.facts.is_same_domain(other.outputs[0], group.outputs[0])
                })
            };
            siblings.extend(cousins.filter(is_alike).filter(|&other| other != number));
            siblings = ascending(siblings.into_iter());
        }
        // One that needs the other is no sibling.
        siblings.retain(|other| !producers.contains(other) && !consumers.contains(other));
        let count = 2 * producers.len() + consumers.len() + 1 + siblings.len();
        let mut actions: Vec<Action> = Vec::with_capacity(count);
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
            self.candidates.push(Candidate {
                saving,
                is_exact: false,
                action,
                order: action.order(),
                versions,
            });
        }
    }

    /// Whether one kernel would have too much of what comes many times.
    fn has_too_many(&self, a: &Group, b: &Group) -> bool {
        let nodes = a.nodes.iter().chain(&b.nodes).copied();
        self.facts.repeats.too_many(self.graph, nodes).is_some()
    }

    /// The launches and the traffic that a merge would do without.
    fn estimate(&self, action: Action) -> Option<f64> {
        let bytes = |&id: &NodeId| self.facts.of(id).bytes() as f64;
        let traffic = match action {
            Action::Merge(a, b) | Action::Siblings(a, b) if self.are_beyond(a, b) => return None,
            Action::Merge(a, b) | Action::Siblings(a, b) => {
                let (a, b) = (self.groups[a].as_ref()?, self.groups[b].as_ref()?);
                if self.has_too_many(a, b) {
                    return None;
                }
                let stored: f64 = a.outputs.iter().filter(|id| b.reads.contains(id)).map(bytes).sum();
                let shared: f64 = a.reads.iter().filter(|id| b.reads.contains(id)).map(bytes).sum();
                2.0 * stored + shared
            }
            Action::Inline(producer) => {
                let consumers = self.inlines(producer)?;
                let own = self.groups[producer].as_ref()?;
                let is_apart = |&consumer: &usize| {
                    let reader = self.groups[consumer].as_ref();
                    self.are_beyond(producer, consumer)
                        || reader.is_some_and(|reader| self.has_too_many(own, reader))
                };
                if consumers.iter().any(is_apart) {
                    return None;
                }
                let stored: f64 = own.outputs.iter().map(bytes).sum();
                stored * (1 + consumers.len()) as f64
            }
        };
        Some(self.figures.launch + traffic / self.figures.bandwidth)
    }

    fn saving(&mut self, action: Action) -> Option<f64> {
        match action {
            Action::Merge(a, b) | Action::Siblings(a, b) => {
                if self.makes_cycle(action) {
                    return None;
                }
                let merged = self.merged_seconds(a, b)?;
                let apart = self.seconds(a) + self.seconds(b);
                (merged < apart * DOUBT).then_some(apart - merged)
            }
            Action::Inline(producer) => {
                let consumers = self.inlines(producer)?;
                let before: f64 = self.seconds(producer)
                    + consumers.iter().map(|&number| self.seconds(number)).sum::<f64>();
                // What several kernels compute is in the text of each.
                let nodes = self.groups[producer].as_ref()?.nodes.len();
                let mut after = self.repeated((nodes * (consumers.len() - 1)) as f64);
                for consumer in consumers {
                    after += self.inlined_seconds(producer, consumer)?;
                    if after >= before {
                        return None;
                    }
                }
                Some(before - after)
            }
        }
    }

    /// Whether a third group would both need the merged one and be needed by it.
    fn makes_cycle(&mut self, action: Action) -> bool {
        match action {
            Action::Merge(producer, consumer) => {
                let others = self.readers_of(producer).filter(|&next| next != consumer).collect();
                self.reaches(others, consumer)
            }
            Action::Siblings(a, b) => {
                self.reaches(Numbers::from_slice(&[a]), b) || self.reaches(Numbers::from_slice(&[b]), a)
            }
            // What reads the producer reads what it read instead: no new ways.
            Action::Inline(_) => false,
        }
    }

    /// Whether a way leads from one of the groups to another.
    fn reaches(&mut self, from: Numbers, to: usize) -> bool {
        self.searches += 1;
        let mut pending = from;
        while let Some(number) = pending.pop() {
            if number == to {
                return true;
            }
            if self.ranks[number] < self.ranks[to] && self.seen[number] != self.searches {
                self.seen[number] = self.searches;
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
                let found = self.stored_by_both(a, b).and_then(|()| self.nodes_of_both(a, b));
                let Some(group) = found.and_then(|()| self.found()) else { return };
                self.take(a);
                self.take(b);
                self.put(b, group);
                self.raise(b, self.ranks[a].max(self.ranks[b]));
                vec![b]
            }
            Action::Inline(producer) => {
                let Some(numbers) = self.inlines(producer) else { return };
                let inlined = |number| self.inline(producer, number).and_then(|()| self.found());
                let Some(groups) = numbers.iter().copied().map(inlined).collect::<Option<Vec<Group>>>()
                else {
                    return;
                };
                self.take(producer);
                for (&number, group) in numbers.iter().zip(groups) {
                    self.take(number);
                    self.put(number, group);
                }
                numbers.to_vec()
            }
        };
        for number in changed {
            self.actions(number).into_iter().for_each(|action| self.queue(action));
        }
    }
}
