//! Routines: what libraries make of whole matrices and lines on a CPU, in the place of the operations that they decompose into.

use std::sync::Arc;

use smallvec::SmallVec;

use super::call::Call;
use crate::graph::op::{Op, View};
use crate::recording::{Decomposition, Recipe, Results, Sources, State, together};
use crate::runtime::routine::{Invocation, MatrixShape, Routine};
use crate::{Result, Shape, Tensor, settings};

/// Whether a library takes such a tensor.
pub(crate) fn takes(x: &Tensor) -> bool {
    let device = x.node.device.unwrap_or_default();
    Routine::IS_AVAILABLE && device.is_cpu() && settings::has_libraries()
}

/// A tensor of matrices as a routine reads it.
pub(crate) struct Source {
    pub(crate) tensor: Tensor,
    /// Whether the matrices are the transposes of what it is of.
    pub(crate) is_transposed: bool,
}

impl Source {
    /// What is read in memory: to swap the last two axes nothing is copied.
    pub(crate) fn of(x: &Tensor) -> Source {
        let rank = x.node.shape.rank();
        let is_swap = |order: &[usize]| {
            let swapped = (0..rank).map(|at| match rank - at {
                1 => rank - 2,
                2 => rank - 1,
                _ => at,
            });
            rank > 1 && order.iter().copied().eq(swapped)
        };
        let source = match &*x.node.state() {
            State::Recorded(Recipe::Op(Op::View(View::Permute(order))), sources) if is_swap(order) => {
                sources.first().cloned()
            }
            _ => None,
        };
        match source {
            Some(tensor) => Source { tensor, is_transposed: true },
            None => Source { tensor: x.clone(), is_transposed: false },
        }
    }

    fn again(x: &Tensor, is_transposed: bool) -> Tensor {
        if is_transposed { x.transpose(-1, -2) } else { x.clone() }
    }
}

/// What the routine makes of each of the matrices, and of what is beside them, of the same batch; none of them is empty. `decomposition`
/// makes the same of the same.
pub(crate) fn record(
    call: Call,
    routine: Routine,
    sources: &[Source],
    decomposition: impl Fn(&[Tensor]) -> Result<Results> + Send + Sync + 'static,
) -> Result<Results> {
    let matrix = |source: Option<&Source>| match source.map(|read| &read.tensor.node.shape) {
        Some(shape) if shape.rank() > 1 => {
            let [rows, columns] = [shape[shape.rank() - 2], shape[shape.rank() - 1]];
            if source.is_some_and(|read| read.is_transposed) { [columns, rows] } else { [rows, columns] }
        }
        _ => [0, 0],
    };
    let Some(first) = sources.first() else { return call.fail("needs matrices") };
    let (shape, dtype) = first.tensor.known()?;
    let batch = &shape[..shape.rank().saturating_sub(2)];
    let device = sources.iter().try_fold(None, |device, source| together(device, &source.tensor));
    let device = device.map_err(|message| call.error(message))?;
    let transposed: SmallVec<[bool; 2]> = sources.iter().map(|source| source.is_transposed).collect();
    let invocation = Arc::new(Invocation::new(routine, transposed.clone()));
    let decomposition = Arc::new(Decomposition::new(move |read| {
        call.compose(|| {
            let whole =
                read.iter().zip(&transposed).map(|(x, &is_transposed)| Source::again(x, is_transposed));
            decomposition(&whole.collect::<Vec<Tensor>>())
        })
    }));
    let read: Sources = sources.iter().map(|source| source.tensor.clone()).collect();
    let part = |(number, part): (usize, MatrixShape)| {
        let shape: Shape = batch.iter().copied().chain(part).collect();
        call.needs_addressable(&shape)?;
        let recipe =
            Recipe::Routine { invocation: invocation.clone(), number, decomposition: decomposition.clone() };
        let state = State::Recorded(recipe, read.clone());
        Ok(Tensor::from_parts(shape, dtype, device, call.name(), call.location(), state))
    };
    let parts = routine.parts(matrix(Some(first)), matrix(sources.get(1))[1]);
    parts.into_iter().enumerate().map(part).collect()
}
