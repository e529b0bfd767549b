//! The end of an evaluation: tensors have their values, and let go of what led to them, at once or later.
//!
//! A tensor that [`eval`](crate::eval) was asked for is data from then on, a constant for gradients. All else that an evaluation computes
//! (for who wants to see values, or on the way to others) keeps how it was recorded, so that a gradient is the same whatever was
//! looked at before. What that keeps alive is bounded: by tensors that follow from each other, by their number, and by bytes of
//! values that nothing else holds. It also gives way to results that are written over their inputs. Histories that had to go
//! leave a note of what they began from, so that a gradient through them is an error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::history::History;
use crate::Tensor;
use crate::recording::{Past, Recipe, Sources, State, TensorNode};
use crate::runtime::buffer::Buffer;

/// Computed tensors with histories that follow from each other: a loop lets go of what is longer ago.
const MOST_GENERATIONS: u32 = 8;
/// About how many computed tensors have histories that hold anything, besides those that were computed on the way to them.
const MOST_PASTS: usize = 1024;
/// Bytes of values that only histories of computed tensors hold.
const MOST_BYTES: usize = 256 << 20;
/// Operations that a history may hold for as long as there is a handle of the tensor.
const FEW_OPERATIONS: usize = 64;
/// How many histories are looked through for memory that results could be written over.
const MOST_SEARCHED: usize = 16;

/// What tensors are computed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Their values are wanted.
    Values,
    /// Their values are wanted for others that the same evaluation computes, which begins from tensors of this generation.
    OnTheWay { generation: u32, evaluation: u64 },
    /// They become data.
    Data,
}

/// What an evaluation reads, for those who keep how they were recorded.
#[derive(Default)]
pub(super) struct Reads {
    /// The most of any input.
    generation: u32,
    /// Where each one's values are, and how many bytes they have.
    buffers: SmallVec<[(usize, usize); 4]>,
}

impl Reads {
    pub(super) fn new<'a>(generation: u32, inputs: impl Iterator<Item = &'a Buffer>) -> Reads {
        Reads { generation, buffers: inputs.map(place).collect() }
    }

    pub(super) fn of(sources: &[Tensor]) -> Reads {
        let mut reads = Reads::default();
        for source in sources {
            if let State::Evaluated(buffer, past) = &*source.node.state() {
                reads.generation = reads.generation.max(Past::generation(past.as_deref()));
                reads.buffers.push(place(buffer));
            }
        }
        reads
    }
}

fn place(buffer: &Buffer) -> (usize, usize) {
    (buffer.pointer() as usize, buffer.bytes())
}

/// The tensor has its values now.
pub(super) fn settle(tensor: &Tensor, buffer: Buffer, purpose: Purpose, reads: &Reads) {
    let node = &tensor.node;
    buffer.hold(node.origin, node.location);
    let own = place(&buffer);
    let generation = match purpose {
        // However many follow from each other, they were recorded before any of them was computed: no loop makes more of them.
        Purpose::OnTheWay { generation, .. } => generation.max(1),
        Purpose::Values if reads.generation >= MOST_GENERATIONS => younger(tensor),
        Purpose::Values | Purpose::Data => reads.generation + 1,
    };
    let mut state = node.state();
    let (past, sources) = match &mut *state {
        State::Recorded(recipe, sources)
            if purpose != Purpose::Data && node.dtype.is_float() && !sources.is_empty() =>
        {
            let recipe = std::mem::replace(recipe, Recipe::StepValue);
            let sources = std::mem::take(sources);
            (Some(Arc::new(Past::Recorded { recipe, sources, generation })), Sources::new())
        }
        State::Recorded(_, sources) => (None, std::mem::take(sources)),
        // By another thread.
        State::Evaluated(_, past) => (past.take(), Sources::new()),
        State::Invalid(_) | State::Lent(_) => (None, Sources::new()),
    };
    let is_kept = past.is_some();
    *state = State::Evaluated(buffer, past);
    drop(state);
    // After the lock is released: the history may be long.
    drop(sources);
    if is_kept {
        Pasts::add(tensor, purpose == Purpose::Values, reads.buffers.iter().copied().chain([own]));
    }
}

/// Lets go of the oldest histories behind a tensor; its generation. What else it follows from, such as what all steps of a loop
/// read, is not old for that.
fn younger(tensor: &Tensor) -> u32 {
    let generation = |tensor: &Tensor| Past::generation(tensor.node.state().past());
    let (mut old, others): (Vec<Tensor>, Vec<Tensor>) =
        tensor.computed_behind().into_iter().partition(|tensor| generation(tensor) >= MOST_GENERATIONS);
    // What each began from is then known of those before it.
    old.sort_by_key(|tensor| tensor.node.time);
    old.iter().for_each(Tensor::forget);
    1 + others.iter().map(generation).max().unwrap_or(0)
}

/// A computed tensor becomes data.
pub(super) fn become_data(tensor: &Tensor) {
    let past = match &mut *tensor.node.state() {
        State::Evaluated(_, past) => past.take(),
        State::Invalid(_) | State::Recorded(..) | State::Lent(_) => None,
    };
    drop(past);
}

/// Computed tensors that may have histories, in the order of their evaluations.
struct Pasts {
    tensors: VecDeque<Entry>,
    /// How many there may be before those are looked for that are gone, or too many.
    room: usize,
    /// Bytes that evaluations may still read and write before it is looked for how many bytes are held.
    room_bytes: usize,
    /// Where those are that were counted since it was last looked for any, and how many bytes they have: memory that was given back
    /// may have become larger values.
    counted: FxHashSet<(usize, usize)>,
}

struct Entry {
    tensor: Weak<TensorNode>,
    /// Whether it is not on the way to others alone.
    is_asked: bool,
}

static PASTS: Mutex<Pasts> = Mutex::new(Pasts {
    tensors: VecDeque::new(),
    room: MOST_PASTS / 16,
    room_bytes: MOST_BYTES,
    counted: FxHashSet::with_hasher(FxBuildHasher),
});

impl Pasts {
    fn add(tensor: &Tensor, is_asked: bool, values: impl Iterator<Item = (usize, usize)>) {
        let mut pasts = PASTS.lock().unwrap_or_else(PoisonError::into_inner);
        pasts.tensors.push_back(Entry { tensor: Arc::downgrade(&tensor.node), is_asked });
        // What each step of a loop reads is held once.
        let bytes: usize = values.filter(|value| pasts.counted.insert(*value)).map(|(_, bytes)| bytes).sum();
        let is_full = pasts.tensors.len() > pasts.room;
        let is_heavy = bytes > pasts.room_bytes;
        pasts.room_bytes = pasts.room_bytes.saturating_sub(bytes);
        if !is_full && !is_heavy {
            return;
        }
        pasts.counted.clear();
        pasts.tensors.retain(|entry| entry.tensor.strong_count() > 0);
        pasts.room = (pasts.tensors.len() * 5 / 4).max(MOST_PASTS / 16);
        let asked = pasts.tensors.iter().filter(|entry| entry.is_asked).count();
        drop(pasts);
        if asked > MOST_PASTS {
            thin_out();
        }
        if is_heavy {
            lighten();
        }
    }
}

/// Lets go of the oldest histories of those that hold anything, if these are too many.
fn thin_out() {
    let (tensors, are_asked): (Vec<Tensor>, Vec<bool>) = {
        let pasts = PASTS.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = |entry: &Entry| Some((Tensor { node: entry.tensor.upgrade()? }, entry.is_asked));
        pasts.tensors.iter().filter_map(alive).unzip()
    };
    let (_, hold) = held(&tensors);
    let mut left = hold.iter().zip(&are_asked).filter(|&(&holds, &is_asked)| holds && is_asked).count();
    let most = if left > MOST_PASTS { MOST_PASTS * 3 / 4 } else { left };
    for ((tensor, holds), is_asked) in tensors.iter().zip(hold).zip(are_asked) {
        if left <= most {
            break;
        }
        if holds {
            left -= usize::from(is_asked);
            tensor.forget();
        }
    }
}

fn alive<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Tensor> {
    entries.filter_map(|entry| Some(Tensor { node: entry.tensor.upgrade()? })).collect()
}

fn all() -> Vec<Tensor> {
    alive(PASTS.lock().unwrap_or_else(PoisonError::into_inner).tensors.iter())
}

fn newest() -> Vec<Tensor> {
    let pasts = PASTS.lock().unwrap_or_else(PoisonError::into_inner);
    alive(pasts.tensors.iter().rev().take(MOST_SEARCHED))
}

/// How many handles of what was recorded after a time there are in the newest histories of computed tensors alone.
pub(super) fn handles_in_pasts(after: u64) -> FxHashMap<*const TensorNode, usize> {
    let mut newest = newest();
    newest.retain(|tensor| tensor.node.time > after);
    if newest.is_empty() {
        return FxHashMap::default();
    }
    let history = History::with_pasts(&newest, after);
    let (_, let_go) = history.without_handles(|number| history.tensors[number].is_evaluated());
    let handles = history.tensors.iter().zip(let_go).filter(|(_, handles)| *handles > 0);
    handles.map(|(tensor, handles)| (Arc::as_ptr(&tensor.node), handles)).collect()
}

/// Lets go of the oldest histories until what only they hold is little enough.
fn lighten() {
    let mut tensors = all();
    let (mut bytes, hold) = held(&tensors);
    let mut hold = hold.into_iter();
    tensors.retain(|_| hold.next() == Some(true));
    while bytes > MOST_BYTES && !tensors.is_empty() {
        tensors.drain(..tensors.len().div_ceil(2)).for_each(|tensor| tensor.forget());
        (bytes, _) = held(&tensors);
    }
    PASTS.lock().unwrap_or_else(PoisonError::into_inner).room_bytes =
        MOST_BYTES.saturating_sub(bytes).max(MOST_BYTES / 4);
}

/// Bytes of values that only the histories of computed tensors hold, and of which tensors the histories hold any of these, or many
/// operations. The others take no more than what there are handles of does: nothing is won without them.
fn held(tensors: &[Tensor]) -> (usize, Vec<bool>) {
    let history = History::with_pasts(tensors, 0);
    let (only_here, _) = history.without_handles(|number| history.tensors[number].is_evaluated());
    // What goes with the last handle of each, as far as nobody else has one: any values, and how many operations.
    let mut behind: Vec<(bool, usize)> = Vec::with_capacity(history.tensors.len());
    let mut hold = FxHashSet::default();
    let mut bytes = 0;
    for (number, tensor) in history.tensors.iter().enumerate() {
        let (values, operations) = history.sources(number).iter().fold((false, 0usize), |all, &source| {
            (all.0 | behind[source].0, all.1.saturating_add(behind[source].1))
        });
        if values || operations > FEW_OPERATIONS {
            hold.insert(Arc::as_ptr(&tensor.node));
        }
        behind.push(match &*tensor.node.state() {
            _ if !only_here[number] => (false, 0),
            State::Evaluated(buffer, _) => {
                bytes += buffer.bytes();
                (true, 0)
            }
            _ => (values, operations.saturating_add(1)),
        });
    }
    (bytes, tensors.iter().map(|tensor| hold.contains(&Arc::as_ptr(&tensor.node))).collect())
}

/// Lets go of all histories of computed tensors, for want of memory; whether there were any.
pub(super) fn forget_all() -> bool {
    let tensors = all();
    PASTS.lock().unwrap_or_else(PoisonError::into_inner).tensors.clear();
    tensors.iter().for_each(Tensor::forget);
    !tensors.is_empty()
}

/// Lets go of the histories that alone keep an evaluation of these outputs from writing over what it wants to.
pub(super) fn forget_for(outputs: &[Tensor], wants: impl Fn(&Buffer) -> bool) {
    let newest = newest();
    if newest.is_empty() {
        return;
    }
    let roots = [outputs, &newest].concat();
    let history = History::with_pasts(&roots, 0);
    drop(newest);
    let addresses: FxHashSet<*const TensorNode> = roots.iter().map(|root| Arc::as_ptr(&root.node)).collect();
    let is_root = |number: usize| addresses.contains(&Arc::as_ptr(&history.tensors[number].node));
    let (is_free, _) = history.without_handles(is_root);
    let mut leads = vec![false; history.tensors.len()];
    for (number, tensor) in history.tensors.iter().enumerate() {
        leads[number] = history.sources(number).iter().any(|&source| leads[source]);
        let State::Evaluated(buffer, _) = &*tensor.node.state() else { continue };
        if is_free[number] && wants(buffer) {
            leads[number] = true;
        }
    }
    let leading = history.tensors.iter().zip(leads).filter(|(_, leads)| *leads);
    leading.for_each(|(tensor, _)| tensor.forget());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    fn has_past(tensor: &Tensor) -> bool {
        tensor.node.state().recorded().is_some()
    }

    #[test]
    fn a_loop_lets_go_of_what_is_long_ago() {
        let mut x = Tensor::from_vec(vec![1.0f32; 8], [8]);
        let mut states = Vec::new();
        for _ in 0..50 {
            x = (x * 0.5).exp();
            x.to_vec::<f32>().unwrap();
            states.push(Arc::downgrade(&x.node));
            let count = states.iter().filter(|state: &&Weak<TensorNode>| state.strong_count() > 0).count();
            assert!(count <= MOST_GENERATIONS as usize + 2, "{count}");
        }
        assert!(has_past(&x));
    }

    /// Each holds values that only its history knows, and there are handles of all.
    #[test]
    fn of_many_histories_that_hold_values_the_oldest_go() {
        let sum = |_| {
            let sum = Tensor::from_vec(vec![1.0f32; 8], [8]).sum(..);
            sum.item::<f32>().unwrap();
            sum
        };
        let sums: Vec<Tensor> = (0..1500).map(sum).collect();
        assert!(!has_past(&sums[0]) && sums[1000..].iter().all(has_past));
    }

    fn held_by(tensor: &Tensor) -> usize {
        // One more handle, as of who looks them up.
        let tensors = vec![tensor.clone()];
        held(&tensors).0
    }

    #[test]
    fn what_only_histories_hold_is_counted() {
        let make = |bytes: usize| Tensor::from_vec(vec![1.0f32; bytes / 4], [bytes / 4]);
        let (mine, given) = (make(1 << 10), make(1 << 12));
        let y = (&mine * 2.0).sum(..) + (&given * 2.0).sum(..);
        y.to_vec::<f32>().unwrap();
        assert_eq!(held_by(&y), 0);
        drop(given);
        assert_eq!(held_by(&y), 1 << 12);
        // What is between is held as long as what was made of it.
        let z = &y * 3.0;
        z.to_vec::<f32>().unwrap();
        drop(y);
        assert_eq!(held_by(&z), (1 << 12) + 4);
        z.forget();
        assert_eq!(held_by(&z), 0);
    }

    #[test]
    fn data_has_no_history() {
        let x = Tensor::from_vec(vec![1.0f32; 8], [8]);
        let (y, z) = (x.exp(), x.sin());
        y.to_vec::<f32>().unwrap();
        assert!(has_past(&y));
        crate::eval([&y, &z]).unwrap();
        assert!(!has_past(&y) && !has_past(&z));
        // Integers have no gradients.
        let index = x.argmax(0);
        index.to_vec::<i64>().unwrap();
        assert!(!has_past(&index));
    }
}
