//! Where a plan's values are: inputs and outputs have places of their own, and what only kernels read shares places with
//! what is needed at other times.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use crate::lower::Lowered;

/// A value's place, among those of its plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Bytes that an intermediate value's place may have beyond its own, as a multiple of these.
const MOST_WASTE: usize = 2;

/// The places of a plan's values, and how long each is needed.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct Storage {
    /// How many there are.
    pub(crate) places: usize,
    /// Of each input that the plan reads or gives: its number and its place.
    pub(crate) inputs: Vec<(usize, Place)>,
    /// Of each output; two that are one value have one, and an input that is given has the input's.
    pub(crate) outputs: Vec<Place>,
    pub(crate) kernels: Vec<KernelStorage>,
}

/// What one kernel has to do with places.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct KernelStorage {
    /// Of each part, those of its buffers in order: inputs, then outputs.
    pub(crate) parts: Vec<SmallVec<[Place; 4]>>,
    /// Places that the kernel is the first to write to, and their bytes.
    pub(crate) first_used: SmallVec<[(Place, usize); 2]>,
    /// Places that nobody needs any more after it.
    pub(crate) last_used: SmallVec<[Place; 2]>,
}

/// A place whose value is not needed any more.
struct Free {
    place: Place,
    bytes: usize,
    /// The kernel that read it last.
    since: usize,
}

impl Storage {
    /// For kernels in this order, each of these parts. `inputs` are there before, by number.
    pub(super) fn new(
        graph: &Graph,
        kernels: &[Vec<&Lowered>],
        inputs: impl Iterator<Item = (usize, NodeId)>,
        outputs: &[NodeId],
    ) -> Storage {
        let mut storage = Storage::default();
        let mut place_of: FxHashMap<NodeId, Place> = FxHashMap::default();
        for (slot, id) in inputs {
            let place = storage.place();
            storage.inputs.push((slot, place));
            place_of.insert(id, place);
        }
        let mut last_reader: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (number, kernel) in kernels.iter().enumerate() {
            let inputs = kernel.iter().flat_map(|part| &part.inputs);
            last_reader.extend(inputs.map(|&id| (id, number)));
        }
        outputs.iter().for_each(|output| {
            last_reader.remove(output);
        });
        let mut free: Vec<Free> = Vec::new();
        let mut bytes_of: FxHashMap<Place, usize> = FxHashMap::default();
        for (number, kernel) in kernels.iter().enumerate() {
            let mut own = KernelStorage::default();
            for id in kernel.iter().flat_map(|part| &part.outputs) {
                let node = graph.node(*id);
                let bytes = node.shape.elements() * node.dtype.size();
                let fits =
                    |free: &&Free| free.bytes >= bytes && free.bytes <= bytes.saturating_mul(MOST_WASTE);
                let shared = (!outputs.contains(id) && bytes > 0)
                    .then(|| free.iter().filter(fits).min_by_key(|free| (free.bytes, free.place.0)))
                    .flatten();
                let place = match shared.map(|shared| shared.place) {
                    Some(place) => {
                        free.retain(|other| other.place != place);
                        place
                    }
                    None => {
                        let place = storage.place();
                        own.first_used.push((place, bytes));
                        bytes_of.insert(place, bytes);
                        place
                    }
                };
                place_of.insert(*id, place);
            }
            for part in kernel {
                let buffers = part.inputs.iter().chain(&part.outputs);
                own.parts.push(buffers.filter_map(|id| place_of.get(id).copied()).collect());
            }
            let mut read: Vec<NodeId> = kernel.iter().flat_map(|part| &part.inputs).copied().collect();
            read.sort_unstable();
            read.dedup();
            for id in read.iter().filter(|id| last_reader.get(id) == Some(&number)) {
                let Some(&place) = place_of.get(id) else { continue };
                match bytes_of.get(&place) {
                    Some(&bytes) => free.push(Free { place, bytes, since: number }),
                    // An input's, in memory of somebody else's.
                    None => own.last_used.push(place),
                }
            }
            storage.kernels.push(own);
        }
        for Free { place, since, .. } in free {
            storage.kernels[since].last_used.push(place);
        }
        storage.outputs = outputs.iter().filter_map(|id| place_of.get(id).copied()).collect();
        storage
    }

    fn place(&mut self) -> Place {
        self.places += 1;
        Place(self.places as u32 - 1)
    }
}

/// The graph's input nodes, by input number.
pub(crate) fn input_nodes(graph: &Graph) -> impl Iterator<Item = (usize, NodeId)> + '_ {
    graph.nodes().filter_map(|id| match graph.node(id).op {
        Op::Input(slot) => Some((slot, id)),
        _ => None,
    })
}
