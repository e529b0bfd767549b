//! What a library makes of whole matrices on a CPU.

use smallvec::smallvec;

use super::parts::UNROLLED;
use crate::recording::Results;
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
pub(super) use crate::tensor::arguments::routine::takes;
use crate::tensor::arguments::routine::{self, Source};
use crate::{Result, Tensor};

/// So many small matrices are worth a kernel, in which each lane has one.
const MANY_SMALL: usize = 256;

/// The same of matrices whose steps are one formula if they have few `rows`. In a step of a scan that is part of the kernels around it, which
/// are compiled once for all steps.
pub(super) fn takes_of(x: &Tensor, rows: usize) -> bool {
    let batch = || x.node.shape.iter().rev().skip(2).product::<usize>();
    takes(x) && (rows > UNROLLED || !x.node.is_of_step && batch() < MANY_SMALL)
}

/// What the routine makes of each of the matrices, and of what is beside them; see [`routine::record`].
pub(super) fn record(
    call: Call,
    routine: Routine,
    sources: &[&Tensor],
    decomposition: impl Fn(&[Tensor]) -> Result<Results> + Send + Sync + 'static,
) -> Result<Results> {
    sources.iter().try_for_each(|source| source.validity())?;
    let read: Vec<Source> = sources.iter().map(|source| Source::of(source)).collect();
    routine::record(call, routine, &read, decomposition)
}

/// The one result of a routine.
pub(super) fn record_one(
    call: Call,
    routine: Routine,
    sources: &[&Tensor],
    decomposition: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let decomposition = move |sources: &[Tensor]| decomposition(sources).map(|result| smallvec![result]);
    let result = record(call, routine, sources, decomposition)?.into_iter().next();
    result.ok_or_else(|| call.error("has no result"))
}

/// What reaches a matrix, of what reaches the result that a library makes of it: by way of its decomposition.
pub(super) fn vjp_of(
    decomposition: impl FnOnce(&Tensor) -> Result<Tensor>,
    g: &Tensor,
    x: &Tensor,
) -> Result<Vec<Tensor>> {
    Ok(vec![crate::vjp(&[decomposition(x)?], &[g], x)])
}

/// Each part of what a library makes, with a gradient by way of the decomposition.
pub(super) fn differentiable<const N: usize>(
    call: Call,
    parts: [&Tensor; N],
    x: &Tensor,
    decomposition: impl Fn(&Tensor) -> Result<[Tensor; N]> + Copy + Send + Sync + 'static,
) -> [Tensor; N] {
    std::array::from_fn(|number| {
        call.derived(parts[number], &[x], move |g, all| {
            vjp_of(|x| decomposition(x).map(|parts| parts[number].clone()), g, &all[1])
        })
    })
}
