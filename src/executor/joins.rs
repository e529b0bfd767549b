//! Joins by copies: the parts are computed one after the other, so that however many they are, they share plans and kernels, and
//! then copied into one buffer.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::KEPT_BYTES;
use crate::graph::op::{Op, View};
use crate::recording::{Recipe, State, Tensor, TensorNode};
use crate::runtime::backend::Backend;
use crate::runtime::join::{Join, Piece};
use crate::{Device, Result, Shape};

/// Whether a tensor is a join by copies that was not carried out.
pub(super) fn is_join(tensor: &Tensor) -> bool {
    matches!(&*tensor.node.state(), State::Recorded(Recipe::Join { .. }, _))
}

/// Carries a join out, for whose parts nothing is to be copied any more.
pub(super) fn carry_out(join: &Tensor, evaluate: &dyn Fn(Device, &[Tensor]) -> Result<()>) -> Result<()> {
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
    for tensors in evaluations(&bases, bytes.max(KEPT_BYTES)) {
        evaluate(device, &tensors)?;
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
    join.settle(joined);
    Ok(())
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
                State::Evaluated(_) => return Stored { base: base.clone(), start },
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

/// What is computed together, and after what: each of the parts, with what later ones go on from, if that is no larger than so
/// many bytes.
fn evaluations(parts: &[Tensor], most_bytes: usize) -> Vec<Vec<Tensor>> {
    let mut evaluations: Vec<Vec<Tensor>> = Vec::new();
    // With which part each is visited first.
    let mut visited: FxHashMap<*const TensorNode, usize> = FxHashMap::default();
    let mut asked: FxHashSet<*const TensorNode> = FxHashSet::default();
    for (number, part) in parts.iter().enumerate() {
        evaluations.push(Vec::new());
        if part.is_evaluated() || !asked.insert(Arc::as_ptr(&part.node)) {
            continue;
        }
        evaluations[number].push(part.clone());
        let mut pending = vec![part.clone()];
        while let Some(tensor) = pending.pop() {
            let State::Recorded(recipe, sources) = tensor.node.state().clone() else { continue };
            let first = *visited.entry(Arc::as_ptr(&tensor.node)).or_insert(number);
            if first == number {
                // A source twice is visited twice: what is visited has no more sources to come.
                let is_new = |source: &&Tensor| {
                    visited.get(&Arc::as_ptr(&source.node)).is_none_or(|&first| first < number)
                };
                pending.extend(sources.iter().filter(is_new).cloned());
                continue;
            }
            // A view, and a number, cost nothing where they are used.
            let is_computed = match &recipe {
                Recipe::Op(op) => !matches!(op, Op::View(_) | Op::Constant(_)),
                Recipe::WithNumber { .. } => true,
                _ => false,
            };
            if !is_computed {
                pending.extend(sources);
                continue;
            }
            let bytes = tensor.node.shape.elements().saturating_mul(tensor.node.dtype.size());
            if bytes <= most_bytes && asked.insert(Arc::as_ptr(&tensor.node)) {
                evaluations[first].push(tensor);
            }
        }
    }
    evaluations.retain(|tensors| !tensors.is_empty());
    evaluations
}
