//! Which tensors were met on the way, and in what order.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::{Tensor, TensorNode};

/// The least mark of who goes next: all marks of those who went before are less.
static TURN: Mutex<u64> = Mutex::new(1);

/// The numbers of tensors that one visitor has met: marks in the tensors, or a map for whoever comes while another one makes
/// marks.
pub(super) enum Numbers {
    Marks {
        least: u64,
        next: MutexGuard<'static, u64>,
    },
    Map {
        numbers: FxHashMap<*const TensorNode, u32>,
        /// So that an address cannot be given to another tensor meanwhile.
        tensors: Vec<Tensor>,
    },
}

impl Numbers {
    pub(super) fn new() -> Numbers {
        match TURN.try_lock() {
            Ok(next) => Numbers::Marks { least: *next, next },
            Err(_) => Numbers::Map { numbers: FxHashMap::default(), tensors: Vec::new() },
        }
    }

    /// The number that the tensor was met with.
    #[inline]
    pub(super) fn of(&self, tensor: &Tensor) -> Option<u32> {
        match self {
            // Nobody else makes marks meanwhile.
            Numbers::Marks { least, .. } => {
                tensor.node.mark.load(Ordering::Relaxed).checked_sub(*least).map(|number| number as u32)
            }
            Numbers::Map { numbers, .. } => numbers.get(&Arc::as_ptr(&tensor.node)).copied(),
        }
    }

    /// From now on the tensor has that number.
    #[inline]
    pub(super) fn note(&mut self, tensor: &Tensor, number: u32) {
        match self {
            Numbers::Marks { least, next } => {
                let mark = *least + u64::from(number);
                tensor.node.mark.store(mark, Ordering::Relaxed);
                **next = (**next).max(mark + 1);
            }
            Numbers::Map { numbers, tensors } => {
                numbers.insert(Arc::as_ptr(&tensor.node), number);
                tensors.push(tensor.clone());
            }
        }
    }
}
