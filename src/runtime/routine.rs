//! What libraries make of whole matrices and lines in the host's memory.

mod batch;
mod lines;
mod resources;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use self::batch::Batch;
pub(crate) use self::batch::Matrices;
use self::resources::{COPIES, cost, ensure_room};
use bytemuck::Pod;
use lazuli_codegen::DType;
use lazuli_routines::{Lines, Matrix};
pub(crate) use lazuli_routines::{MatrixShape, Routine, Transform};
use smallvec::SmallVec;

use super::buffer::Buffer;
use super::cpu::in_parallel;
use super::host::HostBuffer;
use crate::{Error, Result};

/// A routine with its matrices, whose results are tensors of their own: who comes first runs it for all of them.
pub(crate) struct Invocation {
    pub(crate) routine: Routine,
    /// Which of the sources are the transposes of what it is of.
    pub(crate) transposed: SmallVec<[bool; 2]>,
    results: Mutex<Option<SmallVec<[Buffer; 3]>>>,
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.routine.fmt(f)
    }
}

impl Invocation {
    pub(crate) fn new(routine: Routine, transposed: SmallVec<[bool; 2]>) -> Invocation {
        Invocation { routine, transposed, results: Mutex::default() }
    }

    /// The same of other matrices.
    pub(crate) fn again(&self) -> Invocation {
        Invocation::new(self.routine, self.transposed.clone())
    }

    /// One of its results, in `F32` or `F64`: of all matrices, the same on any number of threads. `run` gives the matrices, and
    /// is not called if another result was asked for before.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and those of `run`.
    pub(crate) fn result(
        &self,
        number: usize,
        run: impl FnOnce() -> Result<SmallVec<[Buffer; 3]>>,
    ) -> Result<Buffer> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let results = match &mut *results {
            Some(results) => results,
            none => none.insert(run()?),
        };
        let result = results.get(number).cloned();
        result.ok_or_else(|| Error::internal("routines", "a result that there is none of"))
    }
}

/// What a routine makes of each matrix of a batch, and of what is beside it.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn run(routine: Routine, dtype: DType, sources: &[Matrices<'_>]) -> Result<SmallVec<[Buffer; 3]>> {
    match (routine, dtype) {
        (Routine::Fourier { transform, along_columns }, DType::F32) => {
            lines::run(transform, along_columns, sources, &|transform, length| {
                let mut lines = Lines::<f32>::new(transform, length);
                Box::new(move |re, im, to_re, to_im| lines.one(re, im, to_re, to_im))
            })
        }
        (Routine::Fourier { transform, along_columns }, DType::F64) => {
            lines::run(transform, along_columns, sources, &|transform, length| {
                let mut lines = Lines::<f64>::new(transform, length);
                Box::new(move |re, im, to_re, to_im| lines.one(re, im, to_re, to_im))
            })
        }
        (_, DType::F32) => run_by(routine, sources, lazuli_routines::f32),
        (_, DType::F64) => run_by(routine, sources, lazuli_routines::f64),
        (_, other) => Err(Error::internal("routines", format!("{routine:?} of {other}"))),
    }
}

/// A routine of one matrix, and of what may be beside it.
type OfOne<T> = fn(Routine, Matrix<'_, T>, Option<Matrix<'_, T>>, &mut [&mut [T]]);

fn run_by<T: Pod + Sync>(
    routine: Routine,
    sources: &[Matrices<'_>],
    of_one: OfOne<T>,
) -> Result<SmallVec<[Buffer; 3]>> {
    let batches: SmallVec<[Batch<'_, T>; 2]> = sources.iter().map(Batch::new).collect::<Result<_>>()?;
    let (first, beside) = match &batches[..] {
        [first] => (first, None),
        [first, beside] if beside.count() == first.count() => (first, Some(beside)),
        _ => return Err(Error::internal("routines", "matrices that do not fit")),
    };
    let width = beside.map_or(0, |beside| beside.shape[1]);
    let parts = routine.parts(first.shape, width).into_iter();
    let sizes: SmallVec<[usize; 3]> = parts.map(|part| part.iter().product()).collect();
    let count = first.count();
    let elements = first.shape.iter().product::<usize>();
    ensure_room::<T>(elements.saturating_mul(COPIES), count)?;
    let results = sizes.iter().map(|size| HostBuffer::allocate(count * size * size_of::<T>()).map(Arc::new));
    let results: SmallVec<[Arc<HostBuffer>; 3]> = results.collect::<Result<_>>()?;
    let places: SmallVec<[usize; 3]> = results.iter().map(|result| result.as_ptr() as usize).collect();
    in_parallel(count as u64, cost(routine, elements), &|first_matrix, end| {
        for number in first_matrix as usize..end as usize {
            let mut to: SmallVec<[&mut [T]; 3]> = SmallVec::new();
            for (&place, &size) in places.iter().zip(&sizes) {
                let place = (place as *mut T).wrapping_add(number * size);
                // SAFETY: the place of one of `count` matrices in the buffer, which nobody else has yet; each is filled by one
                // thread. Any bits are a `T`.
                to.push(unsafe { std::slice::from_raw_parts_mut(place, size) });
            }
            of_one(routine, first.matrix(number), beside.map(|beside| beside.matrix(number)), &mut to);
        }
    });
    Ok(results.into_iter().map(Buffer::Host).collect())
}
