//! Joins by copies: whose kernels would be others each time, because they depend on the number of parts.
//!
//! A loop that stacks the steps so far, or as many as there were, joins another number of tensors in each turn. So a
//! line's first two numbers of parts are kernels, which read the parts and compute what follows: a function that joins
//! three here and four there, or the last of some batches, goes on to fuse both. From the third number on the parts are
//! computed, copied into one tensor, and read from there: however many they are, kernels and plans are the same, until
//! one number has come often enough after itself to be worth kernels of its own. So are
//! many parts whose values are there: a plan of so many would take longer than all copies. What reaches a tensor on the way back
//! through the steps of such a loop is joined alike where it reaches parts; where it reaches the whole, it is added up term by term.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use smallvec::SmallVec;

use crate::executor::joins::Stored;
use crate::recording::{Recipe, Sources, State, TensorNode};
use crate::tensor::arguments::call::{Call, is_traced};
use crate::{Device, Result, Shape, SourceLocation, Tensor};

/// Fewer parts are kernels, of which there are so many at most: such as a cache to which a position is joined.
const LEAST_PARTS: usize = 3;
/// By fewer ways gradients reach what is no state of a loop.
const LEAST_WAYS: usize = 8;
/// From how many on tensors that have values are copied, if they are no more bytes than these.
const MANY_PARTS: usize = 48;
const MANY_BYTES: usize = 1 << 20;

/// The parts after each other as a tensor that is copied together, if that is what to do.
pub(super) fn copied(call: Call, parts: &[Tensor], axis: usize) -> Option<Result<Tensor>> {
    // Of operations that are made of joins, each has numbers of its own; the results of a scan's steps are as many as these.
    let joins =
        ["cat", "stack", "hstack", "vstack", "dstack", "column_stack", "scan", "scan_with", "iterate"];
    let is_another = || joins.contains(&call.name()) && is_another((call.location(), None), parts.len());
    let copies = parts.len() >= LEAST_PARTS && can_be_copied(parts) && (is_another() || are_many(parts));
    if copies { together(call, parts, axis) } else { None }
}

/// The same of parts of what reaches a tensor on the way back.
pub(crate) fn copied_back(call: Call, parts: &[Tensor], axis: usize) -> Option<Result<Tensor>> {
    let is_another = || is_another((call.location(), None), parts.len());
    let copies = parts.len() >= LEAST_WAYS && can_be_copied(parts) && is_another();
    if copies { together(call, parts, axis) } else { None }
}

/// The sum of terms of what reaches a tensor on the way back, each added by a kernel of its own, if that is what to do.
pub(crate) fn added_apart(call: Call, terms: &[Tensor]) -> Option<Tensor> {
    // Weights are mostly made, or updated, by one line.
    let line = || (call.location(), Some(terms[0].node.shape.clone()));
    if terms.len() < LEAST_WAYS || !can_be_copied(terms) || !is_another(line(), terms.len()) {
        return None;
    }
    let TensorNode { shape, dtype, device, .. } = &*terms[0].node;
    if terms.iter().any(|term| term.node.device != *device) {
        return None;
    }
    let state = State::Recorded(Recipe::Total, Sources::from_iter(terms.iter().cloned()));
    Some(Tensor::from_parts(shape.clone(), *dtype, *device, call.name(), call.location(), state))
}

fn can_be_copied(parts: &[Tensor]) -> bool {
    !is_traced() && !parts.iter().any(|part| part.node.is_of_step)
}

fn together(call: Call, parts: &[Tensor], axis: usize) -> Option<Result<Tensor>> {
    let mut devices = parts.iter().filter_map(|part| part.node.device);
    let device = devices.next();
    // An error to be told as that of any operation.
    if devices.any(|other| Some(other) != device) {
        return None;
    }
    let shape = &parts[0].node.shape;
    let (before, after) = (&shape[..axis], &shape[axis + 1..]);
    // A GPU copies what is in one place.
    if !device.unwrap_or_default().runs_ahead() || before.iter().all(|&extent| extent == 1) {
        let length = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.node.shape[axis]))?;
        return Some(join(call, parts, [before, &[length], after].concat(), (axis, device)));
    }
    // Equal parts along an inner axis are rows along an outer one, seen from elsewhere.
    let is_equal = parts.iter().all(|part| part.node.shape == *shape);
    is_equal.then(|| {
        call.compose(|| {
            let rows: Vec<Tensor> = parts.iter().map(|part| part.unsqueeze(0)).collect();
            let joined = join(call, &rows, [&[rows.len()], &shape[..]].concat(), (0, device))?;
            Ok(joined.movedim(0, axis as isize).flatten(axis as isize..axis as isize + 2))
        })
    })
}

fn join(
    call: Call,
    parts: &[Tensor],
    shape: Vec<usize>,
    (axis, device): (usize, Option<Device>),
) -> Result<Tensor> {
    let shape = Shape::from(shape);
    call.needs_addressable(&shape)?;
    let state = State::Recorded(Recipe::Join { axis }, Sources::from_iter(parts.iter().cloned()));
    let dtype = parts[0].node.dtype;
    Ok(Tensor::from_parts(shape, dtype, device, call.name(), call.location(), state))
}

/// Numbers of parts that a line of the user's joins by kernels.
#[derive(Default)]
struct Joined {
    by_kernels: SmallVec<[usize; FIRST]>,
    /// The last other one, and how often it came since another.
    other: (usize, u32),
}

impl Joined {
    /// Whether kernels for this number would be those of one among many. What comes again and again is worth its own.
    fn is_another(&mut self, number: usize) -> bool {
        if self.by_kernels.contains(&number) {
            return false;
        }
        let (other, times) = &mut self.other;
        *times = if *other == number { *times + 1 } else { 1 };
        *other = number;
        let is_steady = *times >= STEADY && self.by_kernels.len() < MOST_STEADY;
        let is_known = self.by_kernels.len() < FIRST || is_steady;
        if is_known {
            self.by_kernels.push(number);
        }
        !is_known
    }
}

/// So many numbers of parts have kernels in any case, and so many if they come so often after each other.
const FIRST: usize = 2;
const MOST_STEADY: usize = 8;
const STEADY: u32 = 8;

/// The user's line, and the shape that tells several tensors of it apart.
type Line = (SourceLocation, Option<Shape>);

/// Lines that are remembered, least recently used first out.
const MOST_LINES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// Whether the line joined other numbers of parts before.
fn is_another(line: Line, number: usize) -> bool {
    static LINES: Mutex<Option<LruCache<Line, Joined>>> = Mutex::new(None);
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = lines.get_or_insert_with(|| LruCache::new(MOST_LINES));
    lines.get_or_insert_mut(line, Joined::default).is_another(number)
}

/// Whether the parts are many that need no kernel.
fn are_many(parts: &[Tensor]) -> bool {
    let bytes = |part: &Tensor| part.node.shape.elements().saturating_mul(part.node.dtype.size());
    parts.len() >= MANY_PARTS
        && parts.iter().map(bytes).fold(0, usize::saturating_add) <= MANY_BYTES
        && parts.iter().all(|part| Stored::of(part).is_there())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_come_again_and_again_have_kernels() {
        let mut joined = Joined::default();
        assert!(![3, 4, 3, 4].iter().any(|&number| joined.is_another(number)));
        assert!((5..100).all(|number| joined.is_another(number)));
        let times = |joined: &mut Joined, number| (1..20).find(|_| !joined.is_another(number));
        assert_eq!(times(&mut joined, 100), Some(STEADY));
        assert!(!joined.is_another(100) && joined.is_another(5) && !joined.is_another(100));
        let steady = (200..300).filter(|&number| times(&mut joined, number).is_some()).count();
        assert_eq!(steady, MOST_STEADY - FIRST - 1);
    }
}
