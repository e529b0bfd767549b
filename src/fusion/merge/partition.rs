//! Regions of elementwise operations. Those that are more than one kernel are partitioned where few values are live: without,
//! trees of single-use values would join first however far they reach, and what lies between them would all be stored. Butterflies are
//! one kernel from the start.

use indexmap::IndexMap;
use petgraph::unionfind::UnionFind;

use crate::fusion::facts::Facts;
use crate::fusion::reads::Read;
use crate::graph::NodeId;

/// The part of nodes that are in none.
pub(super) const NONE: u32 = 0;

/// The part of each node; empty if no region is more than one kernel, of so many nodes at most.
pub(super) fn partition(facts: &Facts, nodes: &[NodeId], most_nodes: usize) -> Vec<u32> {
    if nodes.len() <= most_nodes && facts.repeats.is_empty() {
        return Vec::new();
    }
    let regions = regions(facts, nodes, |read| read.aligned);
    let mut parts = Vec::new();
    let mut last = NONE;
    for region in &regions {
        // Of steps, as many as a kernel has.
        let most_nodes = facts.repeats.of_kernel(region).unwrap_or(most_nodes).min(most_nodes);
        if region.len() <= most_nodes {
            continue;
        }
        parts.resize(facts.bound(), NONE);
        let mut start = 0;
        for end in cuts(&live(facts, region), most_nodes) {
            last += 1;
            region[start..end].iter().for_each(|id| parts[id.index()] = last);
            start = end;
        }
    }
    parts
}

/// Where parts of so many nodes at most end, so that the sum of what is live at their ends is least, and they are fewest of
/// those; the latest such ends. A shortest path, by dynamic programming from the end.
fn cuts(live: &[usize], most_nodes: usize) -> Vec<usize> {
    let count = live.len();
    // Of the nodes from each on: bytes and parts, and where the first part ends.
    let mut best = vec![((0, 0), count); count + 1];
    for start in (0..count).rev() {
        let ends = (start + 1..=(start + most_nodes).min(count)).rev();
        let cost = |end: usize| {
            let (bytes, parts) = best[end].0;
            (bytes + live[end - 1], parts + 1)
        };
        let end = ends.min_by_key(|&end| cost(end)).unwrap_or(count);
        best[start] = (cost(end), end);
    }
    std::iter::successors(Some(best[0].1), |&end| (end < count).then(|| best[end].1)).collect()
}

/// Joins of a few large parts, with the elementwise nodes that compute these and those that follow in the same order: each element
/// is computed once, and no part is stored before it is joined. Found pair by pair, steps of a Fourier transform would end as others: no
/// two of their parts, which all share values, gain anything by themselves.
pub(super) fn butterflies(facts: &Facts, nodes: &[NodeId], most_nodes: usize) -> Vec<Vec<NodeId>> {
    // All of a node, as it lies.
    let is_part = |read: &Read| {
        let is_whole = read.in_place == facts.of(read.node).elements as u64;
        is_whole && read.in_place < read.elements && !read.permuted
    };
    let mut regions = regions(facts, nodes, |read| read.aligned || is_part(read));
    let joins = |region: &Vec<NodeId>| region.iter().any(|&id| facts.reads.reads(id).iter().any(is_part));
    regions.retain(|region| region.len() <= most_nodes && joins(region));
    regions
}

/// Elementwise nodes that read each other so, each region ascending.
fn regions(facts: &Facts, nodes: &[NodeId], is_near: impl Fn(&Read) -> bool) -> Vec<Vec<NodeId>> {
    let is_plain = |id: NodeId| {
        let node = facts.of(id);
        node.fan == 1.0 && node.rows.is_none() && node.scan.is_none() && node.scatter.is_none()
    };
    let mut joined = UnionFind::<usize>::new(facts.bound());
    let mut is_seen = vec![false; facts.bound()];
    for &id in nodes.iter().filter(|&&id| is_plain(id)) {
        is_seen[id.index()] = true;
        for read in facts.reads.reads(id).iter().filter(|read| is_near(read) && is_seen[read.node.index()]) {
            joined.union(read.node.index(), id.index());
        }
    }
    let mut regions: IndexMap<usize, Vec<NodeId>> = IndexMap::new();
    for &id in nodes.iter().filter(|id| is_seen[id.index()]) {
        regions.entry(joined.find_mut(id.index())).or_default().push(id);
    }
    regions.into_values().collect()
}

/// The bytes of an element that are computed up to each node of a region and read behind it.
fn live(facts: &Facts, region: &[NodeId]) -> Vec<usize> {
    let mut grows = vec![0isize; region.len() + 1];
    for (place, &id) in region.iter().enumerate() {
        let users = facts.reads.users(id).iter();
        let last = users.filter_map(|user| region.binary_search(user).ok()).max();
        if let Some(last) = last.filter(|&last| last > place) {
            let bytes = facts.of(id).size as isize;
            grows[place] += bytes;
            grows[last] -= bytes;
        }
    }
    let mut bytes = 0;
    let mut sum = |grows: &isize| {
        bytes += grows;
        bytes as usize
    };
    grows[..region.len()].iter().map(&mut sum).collect()
}
