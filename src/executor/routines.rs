//! What a library makes of whole matrices (`runtime::routine`): of those that are computed before, and read by what comes after.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::history::{History, KEPT_BYTES};
use super::joins;
use super::settle::{Purpose, Reads, settle};
use super::timing::{self, Work};
use crate::debug::{self, Level};
use crate::recording::{Recipe, Sources, State, Tensor, TensorNode};
use crate::runtime::buffer::Buffer;
use crate::runtime::routine::{self, Invocation, Matrices};
use crate::{DType, Error, Result, Shape};

/// Whether a tensor is what a library makes, and has not made yet.
pub(super) fn is_routine(tensor: &Tensor) -> bool {
    matches!(&*tensor.node.state(), State::Recorded(recipe, _) if recipe.is_routine())
}

/// Computes the matrices, with what later kernels would compute again, and then what a library makes of each.
pub(super) fn carry_out(
    routines: &[Tensor],
    shared: Vec<Tensor>,
    purpose: Purpose,
    evaluate: &dyn Fn(&[Tensor]) -> Result<()>,
) -> Result<()> {
    let sources = |routine: &Tensor| match &*routine.node.state() {
        State::Recorded(Recipe::Routine { .. }, sources) => sources.clone(),
        // Another thread has done so.
        _ => Sources::new(),
    };
    let sources: Vec<Tensor> = routines.iter().flat_map(sources).collect();
    match evaluate(&[&sources[..], &shared].concat()) {
        // Without room for what is shared, it is computed anew.
        Err(Error::OutOfMemory { .. }) if !shared.is_empty() => evaluate(&sources)?,
        result => result?,
    }
    routines.iter().try_for_each(|routine| {
        let node = &routine.node;
        make(routine, purpose).map_err(|error| error.of_operation(node.origin, node.location))
    })
}

fn make(tensor: &Tensor, purpose: Purpose) -> Result<()> {
    let State::Recorded(Recipe::Routine { invocation, number, .. }, sources) = tensor.node.state().clone()
    else {
        return Ok(());
    };
    let made = invocation.result(number, || {
        let source =
            |source: &Tensor| Ok(Source { shape: source.node.shape.clone(), buffer: source.buffer()? });
        let sources = sources.iter().map(source).collect::<Result<SmallVec<[Source; 2]>>>()?;
        carried_out(&invocation, tensor.node.dtype, &sources)
    });
    settle(tensor, made?, purpose, &Reads::of(&sources));
    Ok(())
}

/// What a routine is of.
pub(super) struct Source {
    pub(super) shape: Shape,
    pub(super) buffer: Buffer,
}

/// The results of a routine.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn carried_out(
    invocation: &Invocation,
    dtype: DType,
    sources: &[Source],
) -> Result<SmallVec<[Buffer; 3]>> {
    let start = Instant::now();
    let buffers = sources.iter().map(|source| source.buffer.to_host()).collect::<Result<Vec<_>>>()?;
    let mut matrices: SmallVec<[Matrices<'_>; 2]> = SmallVec::new();
    for ((source, buffer), &is_transposed) in sources.iter().zip(&buffers).zip(&invocation.transposed) {
        let [.., mut m, mut n] = source.shape[..] else {
            return Err(Error::internal("routines", "a routine of no matrices"));
        };
        if is_transposed {
            std::mem::swap(&mut m, &mut n);
        }
        matrices.push(Matrices { buffer, shape: [m, n], is_transposed });
    }
    let results = timing::noting(Work::Libraries, || routine::run(invocation.routine, dtype, &matrices))?;
    debug::print(Level::Timings, || {
        let of: Vec<String> = sources.iter().map(|source| source.shape.to_string()).collect();
        let seconds = start.elapsed().as_secs_f64();
        format!("cpu: {:?} of {} by a library, {:.1} µs", invocation.routine, of.join(" and "), seconds * 1e6)
    });
    Ok(results)
}

/// For each round of what is apart ([`super::pending`]): what is computed for its routines, and would be again in a later round or
/// for the tensors themselves. What is large and costs little is computed again.
pub(super) fn shared(tensors: &[Tensor], rounds: &[Vec<Tensor>]) -> Vec<Vec<Tensor>> {
    let mut shared = vec![Vec::new(); rounds.len()];
    if !rounds.iter().flatten().any(is_routine) {
        return shared;
    }
    let key = |tensor: &Tensor| Arc::as_ptr(&tensor.node);
    let mut apart: FxHashMap<*const TensorNode, usize> = FxHashMap::default();
    for (number, round) in rounds.iter().enumerate() {
        apart.extend(round.iter().map(|tensor| (key(tensor), number)));
    }
    let history = History::of(tensors);
    // In which round each is computed first, and in which last.
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; history.tensors.len()];
    let outputs: FxHashSet<*const TensorNode> = tensors.iter().map(key).collect();
    let (asked, mut pointwise) = (FxHashSet::default(), FxHashSet::default());
    for (number, tensor) in history.tensors.iter().enumerate().rev() {
        if outputs.contains(&key(tensor)) {
            let (first, _) = spans[number].unwrap_or((rounds.len(), rounds.len()));
            spans[number] = Some((first, rounds.len()));
        }
        let Some((first, mut last)) = spans[number] else { continue };
        let first = match apart.get(&key(tensor)) {
            Some(&round) => {
                last = round;
                round
            }
            None if first < last && is_computed(tensor) => {
                let bytes = tensor.node.shape.elements().saturating_mul(tensor.node.dtype.size());
                if bytes <= KEPT_BYTES || !joins::is_pointwise(tensor, &asked, &mut pointwise) {
                    shared[first].push(tensor.clone());
                    last = first;
                }
                first
            }
            None => first,
        };
        for &source in history.sources(number) {
            let span = spans[source].get_or_insert((first, last));
            *span = (span.0.min(first), span.1.max(last));
        }
    }
    shared
}

/// Whether a kernel computes it: views and numbers cost nothing where they are used.
fn is_computed(tensor: &Tensor) -> bool {
    match &*tensor.node.state() {
        State::Recorded(Recipe::Op(op), _) => !op.is_free(),
        State::Recorded(Recipe::WithNumber { .. }, _) => true,
        _ => false,
    }
}
