//! Joins by copies: the parts are computed one after the other, so that however many they are, they share plans and kernels, and
//! then copied into one buffer.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::KEPT_BYTES;
use super::settle::{Purpose, Reads, settle};
use crate::graph::op::{Op, View};
use crate::recording::{Recipe, State, Tensor, TensorNode};
use crate::runtime::backend::Backend;
use crate::runtime::join::{Join, Piece};
use crate::{Device, Error, Result, Shape};

/// Whether a tensor is a join by copies that was not carried out.
pub(super) fn is_join(tensor: &Tensor) -> bool {
    matches!(&*tensor.node.state(), State::Recorded(Recipe::Join { .. }, _))
}

/// Carries a join out, for whose parts nothing is to be copied any more.
pub(super) fn carry_out(
    join: &Tensor,
    purpose: Purpose,
    evaluate: &dyn Fn(Device, &[Tensor]) -> Result<()>,
) -> Result<()> {
    let (axis, parts) = match &*join.node.state() {
        State::Recorded(Recipe::Join { axis }, sources) => (*axis, sources.clone()),
        // Another thread has done so.
        _ => return Ok(()),
    };
    let TensorNode { shape, dtype, origin, location, .. } = &*join.node;
    let device = join.node.device.unwrap_or_default();
    let stored: Vec<Stored> = parts.iter().map(Stored::of).collect();
    let bases: Vec<Tensor> = stored.iter().map(|stored| stored.base.clone()).collect();
    let bytes = shape.elements() * dtype.size();
    // What was recorded first may be gone on from: the last steps of a loop, on the way back.
    let mut in_time = bases.clone();
    in_time.sort_by_key(|base| base.node.time);
    for (base, later) in in_time.iter().zip(read_later(&in_time, bytes.max(KEPT_BYTES), true)) {
        with_later(device, base, &later, evaluate)?;
    }
    let backend = Backend::open(device)?;
    let inner: usize = shape[axis + 1..].iter().product::<usize>() * dtype.size();
    let pieces = parts.iter().zip(&stored).map(|(part, stored)| {
        let buffer = stored.base.buffer()?;
        // What follows from constants alone may have been computed elsewhere.
        let buffer = if backend.holds(&buffer) { buffer } else { backend.import(&buffer)? };
        Ok(Piece { buffer, start: stored.start * dtype.size(), bytes: part.node.shape[axis] * inner })
    });
    let pieces = pieces.collect::<Result<Vec<_>>>()?;
    let rows = shape[..axis].iter().product();
    let joined =
        backend.join(&Join { rows, pieces }).map_err(|error| error.of_operation(origin, *location))?;
    settle(join, joined, purpose, &Reads::of(&bases));
    Ok(())
}

/// Evaluates a tensor, with what later ones go on from: without room for that, they compute it anew.
pub(super) fn with_later(
    device: Device,
    tensor: &Tensor,
    later: &[Tensor],
    evaluate: &dyn Fn(Device, &[Tensor]) -> Result<()>,
) -> Result<()> {
    let missing = |tensors: &[&[Tensor]]| -> Result<()> {
        let missing: Vec<Tensor> =
            tensors.iter().copied().flatten().filter(|tensor| !tensor.is_evaluated()).cloned().collect();
        if missing.is_empty() { Ok(()) } else { evaluate(device, &missing) }
    };
    let tensor = std::slice::from_ref(tensor);
    match missing(&[tensor, later]) {
        Err(Error::OutOfMemory { .. }) if !later.is_empty() => missing(&[tensor]),
        result => result,
    }
}

/// Where a tensor's elements are, or will be when something was computed, without another copy.
pub(crate) struct Stored {
    base: Tensor,
    /// The first element's number.
    start: usize,
}

impl Stored {
    pub(crate) fn of(part: &Tensor) -> Stored {
        let (mut base, mut start) = (part.clone(), 0);
        // What all of the elements are those of.
        let mut whole = part.clone();
        let mut is_cut = false;
        loop {
            let below = match &*base.node.state() {
                State::Recorded(Recipe::Op(Op::View(view)), sources) => sources.first().and_then(|source| {
                    Some((source.clone(), first(view, &base.node.shape, &source.node.shape)?))
                }),
                State::Evaluated(..) => return Stored { base: base.clone(), start },
                _ => None,
            };
            let Some((source, skipped)) = below else { return Stored { base: whole, start: 0 } };
            is_cut |= source.node.shape.elements() != base.node.shape.elements();
            (base, start) = (source, start + skipped);
            if !is_cut {
                whole = base.clone();
            }
        }
    }

    /// Whether nothing has to be computed.
    pub(crate) fn is_there(&self) -> bool {
        self.base.is_evaluated()
    }
}

/// The number of the first of a tensor's elements that a view has, if it has consecutive ones in their order.
fn first(view: &View, shape: &Shape, from: &Shape) -> Option<usize> {
    let View::Slice { starts, steps } = view else { return (*view == View::Reshape).then_some(0) };
    let (mut start, mut stride, mut is_whole) = (0, 1, true);
    for axis in (0..shape.rank()).rev() {
        // Above an axis of which a part is read, others have one position.
        if shape[axis] > 1 && !(is_whole && steps[axis] == 1) {
            return None;
        }
        is_whole &= shape[axis] == from[axis];
        start += starts[axis] as usize * stride;
        stride *= from[axis];
    }
    Some(start)
}

/// What later ones of some parts go on from, by the part with which it is computed first. No more than `most_bytes` of it, where
/// later parts only read parts of it, and can compute these again for little. Parts themselves are stored, or go into something.
pub(super) fn read_later(parts: &[Tensor], most_bytes: usize, are_stored: bool) -> Vec<Vec<Tensor>> {
    let mut later: Vec<Vec<Tensor>> = vec![Vec::new(); parts.len()];
    // With which part each is visited first.
    let mut visited: FxHashMap<*const TensorNode, usize> = FxHashMap::default();
    let mut stored: FxHashSet<*const TensorNode> = FxHashSet::default();
    let mut pointwise: FxHashSet<*const TensorNode> = FxHashSet::default();
    for (number, part) in parts.iter().enumerate() {
        if part.is_evaluated() || are_stored && !stored.insert(Arc::as_ptr(&part.node)) {
            continue;
        }
        // What is visited, and whether views read a part of it.
        let mut pending = vec![(part.clone(), false)];
        while let Some((tensor, is_cut)) = pending.pop() {
            let State::Recorded(recipe, sources) = tensor.node.state().clone() else { continue };
            let first = *visited.entry(Arc::as_ptr(&tensor.node)).or_insert(number);
            let elements = tensor.node.shape.elements();
            let is_view = matches!(recipe, Recipe::Op(Op::View(_)));
            let below = |source: Tensor| {
                let is_cut = is_view && (is_cut || elements < source.node.shape.elements());
                (source, is_cut)
            };
            if first == number {
                // A source twice is visited twice: what is visited has no more sources to come.
                let is_new = |source: &&Tensor| {
                    visited.get(&Arc::as_ptr(&source.node)).is_none_or(|&first| first < number)
                };
                pending.extend(sources.iter().filter(is_new).cloned().map(below));
                continue;
            }
            // A view, and a number, cost nothing where they are used.
            let is_computed = match &recipe {
                Recipe::Op(op) => !matches!(op, Op::View(_) | Op::Constant(_)),
                Recipe::WithNumber { .. } => true,
                _ => false,
            };
            if !is_computed {
                pending.extend(sources.into_iter().map(below));
                continue;
            }
            let bytes = elements.saturating_mul(tensor.node.dtype.size());
            if (bytes <= most_bytes || !is_cut || !is_pointwise(&tensor, &stored, &mut pointwise))
                && stored.insert(Arc::as_ptr(&tensor.node))
            {
                later[first].push(tensor);
            }
        }
    }
    later
}

/// Whether each element of a tensor is computed from few of those that are there, or are asked for: by elementwise operations
/// and views alone. So are those in `known`.
pub(super) fn is_pointwise(
    tensor: &Tensor,
    asked: &FxHashSet<*const TensorNode>,
    known: &mut FxHashSet<*const TensorNode>,
) -> bool {
    let mut met = FxHashSet::default();
    let mut pending = vec![tensor.clone()];
    while let Some(tensor) = pending.pop() {
        let address = Arc::as_ptr(&tensor.node);
        if asked.contains(&address) || known.contains(&address) || !met.insert(address) {
            continue;
        }
        let state = tensor.node.state();
        let State::Recorded(recipe, sources) = &*state else { continue };
        match recipe {
            Recipe::Op(op) if !(op.is_elementwise() || matches!(op, Op::View(_)) || sources.is_empty()) => {
                return false;
            }
            _ => pending.extend(sources.iter().cloned()),
        }
    }
    known.extend(met);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn addresses(tensors: &[Tensor]) -> Vec<*const TensorNode> {
        tensors.iter().map(|tensor| Arc::as_ptr(&tensor.node)).collect()
    }

    #[test]
    fn what_is_costly_is_computed_once() {
        let (x, w) = (Tensor::zeros([8, 16], DType::F32), Tensor::zeros([16, 64], DType::F32));
        let cheap = &x * 2.0;
        let costly = x.matmul(&w) + 1.0;
        let parts = |of: &Tensor| (0..8).map(|n| of.select(0, n) * 2.0).collect::<Vec<Tensor>>();
        // Parts of a sum of products, which is larger than what is joined, would each compute all of it.
        let of_costly = parts(&costly);
        let later = read_later(&of_costly, 0, true);
        assert_eq!(later.len(), 8);
        assert_eq!(addresses(&later[0]), addresses(&[costly]));
        assert!(later[1..].iter().all(Vec::is_empty));
        // Parts of what is computed element by element are computed where they are read, unless there is room.
        assert!(read_later(&parts(&cheap), 0, true).iter().all(Vec::is_empty));
        assert_eq!(read_later(&parts(&cheap), 1 << 20, true)[0].len(), 1);
        // Whole, it is computed once.
        let whole: Vec<Tensor> = (0..3).map(|n| (&cheap + n as f32).sum(0)).collect();
        assert_eq!(read_later(&whole, 0, true)[0].len(), 1);
    }

    #[test]
    fn steps_are_computed_once() {
        let mut state = Tensor::zeros([1 << 10], DType::F32);
        let mut sums = Vec::new();
        for _ in 0..5 {
            state = &state * 0.5 + 1.0;
            sums.push(state.sum(0));
        }
        for (number, later) in read_later(&sums, 0, true).iter().enumerate() {
            assert_eq!(later.len(), usize::from(number < 4), "step {number}");
        }
    }
}
