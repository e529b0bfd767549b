//! Where the memory of a whole run is, and in which orders its launches may be: what is known before the first of them.

use smallvec::SmallVec;

use super::prepared::Prepared;
use crate::compiler::{Place, Plan};

/// Fewer launches are as fast one by one; so many more take long to order.
const LAUNCHES: std::ops::RangeInclusive<usize> = 4..=4096;
/// What each value in the arena begins at a multiple of.
const ALIGNMENT: usize = 256;

/// A run that is known beforehand.
pub(super) struct Layout {
    /// Bytes of one block with the values that only kernels read, and with scratch memory: shared by what is needed at
    /// different times.
    pub(super) arena: usize,
    /// Of each place.
    pub(super) homes: Vec<Home>,
    /// Of each kernel: where in the arena its scratch memory begins; nothing for counters.
    pub(super) scratch: Vec<SmallVec<[Option<usize>; 2]>>,
    /// Bytes of the counters that need the most; 0 without any.
    pub(super) counters: usize,
    /// Places to be allocated, and their bytes.
    pub(super) results: Vec<(Place, usize)>,
    /// Memory from outside of the arena that is read or written, the latter if so.
    pub(super) uses: Vec<(Place, bool)>,
    /// The kernels that check positions, ascending.
    pub(super) checking: Vec<usize>,
    /// What each result follows from: places of inputs, and numbers of those that check.
    pub(super) follows: Vec<(Place, Sources)>,
    pub(super) launches: Vec<Step>,
}

/// Where a place's memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    /// It is given by the caller, or a result's.
    Given,
    Arena(usize),
    /// An input's that is written over.
    As(Place),
}

/// A launch: of which kernel, which of its functions, and after which launches.
pub(super) struct Step {
    pub(super) kernel: usize,
    pub(super) function: usize,
    pub(super) after: Vec<usize>,
}

/// What a value follows from.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Sources {
    pub(super) inputs: Vec<Place>,
    pub(super) checks: Vec<usize>,
}

impl Sources {
    fn join(&mut self, other: &Sources) {
        self.inputs
            .extend(other.inputs.iter().filter(|place| !self.inputs.contains(place)).collect::<Vec<_>>());
        self.checks
            .extend(other.checks.iter().filter(|check| !self.checks.contains(check)).collect::<Vec<_>>());
    }
}

/// Something that takes part of the arena while these kernels run, first and last.
struct Tenant {
    bytes: usize,
    first: usize,
    last: usize,
}

/// Memory that a kernel uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
    Place(Place),
    Arena { start: usize, end: usize },
    Counters,
}

impl Region {
    fn overlaps(self, other: Region) -> bool {
        match (self, other) {
            (Region::Arena { start, end }, Region::Arena { start: other, end: other_end }) => {
                start < other_end && other < end
            }
            _ => self == other,
        }
    }
}

impl Layout {
    /// None where launches are better made one by one.
    pub(super) fn new(plan: &Plan, prepared: &Prepared) -> Option<Layout> {
        let commands = prepared.commands();
        let launches: usize = commands.iter().map(|command| command.launches()).sum();
        if !LAUNCHES.contains(&launches) {
            return None;
        }
        let mut first = vec![None; plan.storage.places];
        let mut last = vec![None; plan.storage.places];
        let mut homes = vec![Home::Given; plan.storage.places];
        for (number, command) in commands.iter().enumerate() {
            command.new.iter().for_each(|&(place, bytes)| first[place.index()] = Some((number, bytes)));
            command.last_used.iter().for_each(|place| last[place.index()] = Some(number));
            for &(output, input) in &command.over {
                homes[output.index()] = Home::As(input);
            }
        }
        let mut results = Vec::new();
        let (mut tenants, mut values, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for command in commands {
            for &(place, bytes) in &command.new {
                match (first[place.index()], last[place.index()]) {
                    (Some((first, bytes)), Some(last)) => {
                        values.push(place);
                        tenants.push(Tenant { bytes, first, last });
                    }
                    _ => results.push((place, bytes)),
                }
            }
            scratch.push(SmallVec::from_elem(None, command.scratch.len()));
        }
        let mut counters = 0;
        let mut parts = Vec::new();
        for (number, command) in commands.iter().enumerate() {
            for (part, &(bytes, is_zeroed)) in command.scratch.iter().enumerate() {
                if is_zeroed {
                    counters = counters.max(bytes);
                } else {
                    parts.push((number, part));
                    tenants.push(Tenant { bytes, first: number, last: number });
                }
            }
        }
        let (offsets, arena) = arrange(&tenants);
        for (&place, &offset) in values.iter().zip(&offsets) {
            homes[place.index()] = Home::Arena(offset);
        }
        for (&(number, part), &offset) in parts.iter().zip(&offsets[values.len()..]) {
            scratch[number][part] = Some(offset);
        }
        let mut layout = Layout {
            arena,
            homes,
            scratch,
            counters,
            results,
            uses: Vec::new(),
            checking: Vec::new(),
            follows: Vec::new(),
            launches: Vec::new(),
        };
        // What is written over has to be somebody's.
        let outside = |&(_, input): &(Place, Place)| layout.homes[input.index()] == Home::Given;
        if !commands.iter().flat_map(|command| &command.over).all(outside) {
            return None;
        }
        layout.use_memory(prepared);
        layout.follow(prepared, plan.storage.places);
        let sizes: Vec<usize> = first.iter().map(|first| first.map_or(0, |(_, bytes)| bytes)).collect();
        layout.order(prepared, &sizes);
        Some(layout)
    }

    /// The place whose memory another one's is.
    pub(super) fn root(&self, place: Place) -> Place {
        match self.homes[place.index()] {
            Home::As(other) => other,
            Home::Given | Home::Arena(_) => place,
        }
    }

    fn use_memory(&mut self, prepared: &Prepared) {
        for command in prepared.commands() {
            for (side, places) in command.flows.iter().flat_map(|flow| flow.iter().enumerate()) {
                for &place in places {
                    let place = self.root(place);
                    let used = (place, side == 1);
                    if self.homes[place.index()] == Home::Given && !self.uses.contains(&used) {
                        self.uses.push(used);
                    }
                }
            }
        }
    }

    fn follow(&mut self, prepared: &Prepared, places: usize) {
        let mut sources: Vec<Option<Sources>> = vec![None; places];
        let mut written: Vec<Place> = Vec::new();
        for (number, command) in prepared.commands().iter().enumerate() {
            let check = command.checks.is_some() && command.loaded.is_some();
            if check {
                self.checking.push(number);
            }
            for [inputs, outputs] in &command.flows {
                let mut all = Sources::default();
                for &input in inputs {
                    let own = Sources { inputs: vec![input], checks: Vec::new() };
                    all.join(sources[input.index()].as_ref().unwrap_or(&own));
                }
                if check {
                    all.join(&Sources { inputs: Vec::new(), checks: vec![self.checking.len() - 1] });
                }
                for &output in outputs {
                    sources[output.index()] = Some(all.clone());
                    if self.homes[self.root(output).index()] == Home::Given && !written.contains(&output) {
                        written.push(output);
                    }
                }
            }
        }
        let of = |place: Place| (place, sources[place.index()].take().unwrap_or_default());
        self.follows = written.into_iter().map(of).collect();
    }

    /// Launches come after those that write what they use, and after those that use what they write.
    fn order(&mut self, prepared: &Prepared, sizes: &[usize]) {
        let commands = prepared.commands();
        let mut regions: Vec<Vec<(Region, bool)>> = Vec::with_capacity(commands.len());
        for (command, scratch) in commands.iter().zip(&self.scratch) {
            let mut own = Vec::new();
            for (side, places) in command.flows.iter().flat_map(|flow| flow.iter().enumerate()) {
                own.extend(places.iter().map(|&place| {
                    let region = match self.homes[place.index()] {
                        Home::Arena(start) => Region::Arena { start, end: start + sizes[place.index()] },
                        Home::Given | Home::As(_) => Region::Place(self.root(place)),
                    };
                    (region, side == 1)
                }));
            }
            own.extend(command.scratch.iter().zip(scratch).map(|(&(bytes, _), start)| match *start {
                Some(start) => (Region::Arena { start, end: start + bytes }, true),
                None => (Region::Counters, true),
            }));
            regions.push(own);
        }
        // The last launch of each kernel, and which kernels come before it, one bit each.
        let mut ends: Vec<Option<usize>> = Vec::with_capacity(commands.len());
        let mut before: Vec<Vec<u64>> = Vec::with_capacity(commands.len());
        for (number, command) in commands.iter().enumerate() {
            let mut known = vec![0u64; commands.len().div_ceil(64)];
            let mut after = Vec::new();
            // Nearest first: what they come after need not be said.
            for earlier in (0..number).rev() {
                let is_known = known[earlier / 64] >> (earlier % 64) & 1 == 1;
                let Some(end) = ends[earlier].filter(|_| !is_known) else { continue };
                let conflicts = regions[number].iter().any(|&(region, writes)| {
                    regions[earlier].iter().any(|&(other, wrote)| (writes || wrote) && region.overlaps(other))
                });
                if conflicts {
                    after.push(end);
                    known.iter_mut().zip(&before[earlier]).for_each(|(known, before)| *known |= before);
                    known[earlier / 64] |= 1 << (earlier % 64);
                }
            }
            for function in 0..command.launches() {
                let after = match function {
                    0 => std::mem::take(&mut after),
                    _ => vec![self.launches.len() - 1],
                };
                self.launches.push(Step { kernel: number, function, after });
            }
            ends.push((command.launches() > 0).then(|| self.launches.len() - 1));
            before.push(known);
        }
    }
}

/// Where each tenant's part begins, and the bytes of all: large ones first, each in the first gap that is free all its time.
fn arrange(tenants: &[Tenant]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..tenants.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(tenants[number].bytes));
    let mut offsets = vec![0; tenants.len()];
    let (mut placed, mut total): (Vec<usize>, usize) = (Vec::new(), 0);
    for number in order {
        let own = &tenants[number];
        let bytes = own.bytes.next_multiple_of(ALIGNMENT);
        let mut taken: Vec<(usize, usize)> = (placed.iter())
            .filter(|&&other| tenants[other].first <= own.last && own.first <= tenants[other].last)
            .map(|&other| (offsets[other], tenants[other].bytes.next_multiple_of(ALIGNMENT)))
            .collect();
        taken.sort_unstable();
        let mut start = 0;
        for (other, length) in taken {
            if start + bytes <= other {
                break;
            }
            start = start.max(other + length);
        }
        offsets[number] = start;
        total = total.max(start + bytes);
        placed.push(number);
    }
    (offsets, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_at_different_times_shares_the_arena() {
        let tenant = |bytes, first, last| Tenant { bytes, first, last };
        let tenants =
            [tenant(100, 0, 1), tenant(1000, 1, 2), tenant(1000, 3, 4), tenant(300, 2, 3), tenant(0, 0, 9)];
        let (offsets, total) = arrange(&tenants);
        assert_eq!(offsets, [1024, 0, 0, 1024, 0]);
        assert_eq!(total, 1024 + 512);
        assert_eq!(arrange(&[]), (vec![], 0));
    }
}
