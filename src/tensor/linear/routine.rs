//! What a library makes of whole matrices on a CPU, in the place of steps that are recorded.
//!
//! A function that is traced has the steps: its plan is all that runs in a call. So has a step of a scan.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::parts::{UNROLLED, swapped};
use crate::graph::op::{Op, View};
use crate::recording::{Recipe, Results, Sources, State, Steps};
use crate::runtime::routine::{MatrixShape, Once, Routine};
use crate::tensor::arguments::call::{Call, is_traced};
use crate::{Result, Shape, Tensor};

/// So many small matrices are worth a kernel, in which each lane has one.
const MANY_SMALL: usize = 256;

/// Whether a library takes these matrices, whose steps are loops.
pub(super) fn takes(x: &Tensor) -> bool {
    let device = x.node.device.unwrap_or_default();
    Routine::IS_AVAILABLE && device.is_cpu() && !is_traced() && !x.node.is_of_step
}

/// The same of matrices whose steps are one formula if they have few `rows`.
pub(super) fn takes_of(x: &Tensor, rows: usize) -> bool {
    let batch = || x.node.shape.iter().rev().skip(2).product::<usize>();
    takes(x) && (rows > UNROLLED || batch() < MANY_SMALL)
}

/// What the routine makes of each of the matrices, and of what is beside them, of the same batch; none of them is empty. `steps` make
/// the same of the same.
pub(super) fn made(
    call: Call,
    routine: Routine,
    sources: &[&Tensor],
    steps: impl Fn(&[Tensor]) -> Result<Results> + Send + Sync + 'static,
) -> Result<Results> {
    let matrix = |source: Option<&&Tensor>| match source.map(|x| x.known()).transpose()? {
        Some((shape, _)) if shape.rank() > 1 => Ok([shape[shape.rank() - 2], shape[shape.rank() - 1]]),
        _ => Ok([0, 0]),
    };
    let parts = routine.parts(matrix(sources.first())?, matrix(sources.get(1))?[1]);
    let (shape, dtype) = sources.first().map_or_else(|| call.fail("needs matrices"), |x| x.known())?;
    let batch = &shape[..shape.rank().saturating_sub(2)];
    let device = sources.iter().find_map(|source| source.node.device);
    let read: SmallVec<[(Tensor, bool); 2]> = sources.iter().map(|source| as_it_lies(source)).collect();
    let transposed: SmallVec<[bool; 2]> = read.iter().map(|(_, is_transposed)| *is_transposed).collect();
    let once = Arc::new(Once::new(routine, transposed.clone()));
    let steps = Arc::new(Steps::new(move |read| {
        call.compose(|| {
            let as_given =
                |(x, &is_swapped): (&Tensor, &bool)| if is_swapped { swapped(x) } else { x.clone() };
            steps(&read.iter().zip(&transposed).map(as_given).collect::<Vec<_>>())
        })
    }));
    let sources: Sources = read.into_iter().map(|(source, _)| source).collect();
    let part = |(number, part): (usize, MatrixShape)| {
        let shape: Shape = batch.iter().copied().chain(part).collect();
        call.needs_addressable(&shape)?;
        let recipe = Recipe::Routine { once: once.clone(), number, steps: steps.clone() };
        let state = State::Recorded(recipe, sources.clone());
        Ok(Tensor::from_parts(shape, dtype, device, call.name(), call.location(), state))
    };
    parts.into_iter().enumerate().map(part).collect()
}

/// The one result of a routine.
pub(super) fn only(
    call: Call,
    routine: Routine,
    sources: &[&Tensor],
    steps: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let steps = move |sources: &[Tensor]| steps(sources).map(|result| smallvec![result]);
    let result = made(call, routine, sources, steps)?.into_iter().next();
    result.ok_or_else(|| call.error("has no result"))
}

/// What is read in memory, and whether as its transpose: to swap the last two axes nothing is copied.
fn as_it_lies(x: &Tensor) -> (Tensor, bool) {
    let rank = x.node.shape.rank();
    match &*x.node.state() {
        State::Recorded(Recipe::Op(Op::View(View::Permute(order))), sources) => {
            let is_swap = (0..rank).all(|at| {
                let from = if at + 2 == rank {
                    rank - 1
                } else if at + 1 == rank {
                    rank - 2
                } else {
                    at
                };
                order[at] == from
            });
            match sources.first().filter(|_| is_swap) {
                Some(source) => (source.clone(), true),
                None => (x.clone(), false),
            }
        }
        _ => (x.clone(), false),
    }
}

/// What reaches a matrix, of what reaches the result that a library makes of it: by way of the steps that make the same.
pub(super) fn through(
    steps: impl FnOnce(&Tensor) -> Result<Tensor>,
    g: &Tensor,
    x: &Tensor,
) -> Result<Vec<Tensor>> {
    Ok(vec![crate::vjp(&[steps(x)?], &[g], x)])
}

/// Each part of what a library makes, with a gradient by way of the same part of what the steps make.
pub(super) fn by_steps<const N: usize>(
    call: Call,
    parts: [&Tensor; N],
    x: &Tensor,
    steps: impl Fn(&Tensor) -> Result<[Tensor; N]> + Copy + Send + Sync + 'static,
) -> [Tensor; N] {
    std::array::from_fn(|number| {
        call.derived(parts[number], &[x], move |g, all| {
            through(|x| steps(x).map(|parts| parts[number].clone()), g, &all[1])
        })
    })
}
