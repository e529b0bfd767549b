//! Sums of many tensors: each is computed and added to those before it, so that however many they are, they share plans and
//! kernels, and in memory are one sum, and what later terms go on from.

use std::sync::Arc;

use smallvec::smallvec;

use super::history::KEPT_BYTES;
use super::joins::{read_later, with_later};
use super::settle::{Purpose, Reads, become_data, settle};
use crate::graph::op::Op;
use crate::recording::{Recipe, State, Tensor, TensorNode};
use crate::{BinaryOp, Device, Error, Result};

/// Whether a tensor is such a sum that was not carried out.
pub(super) fn is_total(tensor: &Tensor) -> bool {
    matches!(&*tensor.node.state(), State::Recorded(Recipe::Total, _))
}

/// Carries a sum out, for whose terms nothing is to be copied any more.
pub(super) fn carry_out(
    total: &Tensor,
    purpose: Purpose,
    evaluate: &dyn Fn(Device, &[Tensor]) -> Result<()>,
) -> Result<()> {
    // Another thread has done so, otherwise.
    let State::Recorded(Recipe::Total, sources) = total.node.state().clone() else { return Ok(()) };
    let TensorNode { shape, dtype, device, origin, location, .. } = &*total.node;
    // What was recorded first may be gone on from: the last steps of a loop, on the way back.
    let mut terms = sources.to_vec();
    terms.sort_by_key(|term| term.node.time);
    let bytes = shape.elements() * dtype.size();
    let mut last: Option<Tensor> = None;
    let mut reads = Reads::default();
    for (term, later) in terms.iter().zip(read_later(&terms, bytes.max(KEPT_BYTES), false)) {
        let sum = match last.take() {
            None => term.clone(),
            Some(last) => {
                let state =
                    State::Recorded(Recipe::Op(Op::Binary(BinaryOp::Add)), smallvec![last, term.clone()]);
                Tensor::from_parts(shape.clone(), *dtype, *device, origin, *location, state)
            }
        };
        with_later(device.unwrap_or_default(), &sum, &later, evaluate)?;
        reads = Reads::of(std::slice::from_ref(&sum));
        if !Arc::ptr_eq(&sum.node, &term.node) {
            // Its history would hold the sum before, over which it may be written.
            become_data(&sum);
        }
        last = Some(sum);
    }
    let Some(last) = last else { return Err(Error::internal("totals", "a sum of nothing")) };
    settle(total, last.buffer()?, purpose, &reads);
    Ok(())
}
