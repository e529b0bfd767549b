//! Regions of elementwise operations that are more than one kernel, cut into bands where few values lie between. Without,
//! trees of single-use values would join first however far they reach, and what lies between them would all be stored.

use crate::fusion::facts::Facts;
use crate::graph::NodeId;

/// The band of nodes that are in none.
pub(super) const NONE: u32 = 0;

/// The band of each node; empty if no region is more than one kernel, of so many nodes at most.
pub(super) fn bands(facts: &Facts, nodes: &[NodeId], most_nodes: usize) -> Vec<u32> {
    if nodes.len() <= most_nodes {
        return Vec::new();
    }
    let regions = regions(facts, nodes);
    let mut bands = Vec::new();
    let mut last = NONE;
    for region in regions.iter().filter(|region| region.len() > most_nodes) {
        bands.resize(facts.bound(), NONE);
        let live = live(facts, region);
        let mut start = 0;
        while start < region.len() {
            let most = (start + most_nodes).min(region.len());
            // Where the least lies between what is before and what follows; the last of such places.
            let end = match most == region.len() {
                true => most,
                false => {
                    (start + most_nodes / 2 + 1..=most).rev().min_by_key(|&end| live[end - 1]).unwrap_or(most)
                }
            };
            last += 1;
            region[start..end].iter().for_each(|id| bands[id.index()] = last);
            start = end;
        }
    }
    bands
}

/// Elementwise nodes that read each other's elements in their order, each region ascending.
fn regions(facts: &Facts, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
    let is_plain = |id: NodeId| {
        let node = facts.of(id);
        node.fan == 1.0 && node.rows.is_none() && node.scan.is_none() && node.scatter.is_none()
    };
    // The number of the region that a node joined first, and of regions the one that they have become.
    let mut region: Vec<Option<usize>> = vec![None; facts.bound()];
    let mut same_as: Vec<usize> = Vec::new();
    fn found(same_as: &mut [usize], mut number: usize) -> usize {
        while same_as[number] != number {
            same_as[number] = same_as[same_as[number]];
            number = same_as[number];
        }
        number
    }
    for &id in nodes.iter().filter(|&&id| is_plain(id)) {
        let own = same_as.len();
        same_as.push(own);
        region[id.index()] = Some(own);
        for read in facts.reads.reads(id).iter().filter(|read| read.aligned) {
            if let Some(before) = region[read.node.index()] {
                let (a, b) = (found(&mut same_as, before), found(&mut same_as, own));
                same_as[a.max(b)] = a.min(b);
            }
        }
    }
    let mut regions = vec![Vec::new(); same_as.len()];
    for &id in nodes {
        if let Some(number) = region[id.index()] {
            regions[found(&mut same_as, number)].push(id);
        }
    }
    regions
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
