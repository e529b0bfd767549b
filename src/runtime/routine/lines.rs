//! Fourier transforms of rows or columns in the host's memory.

use std::sync::Arc;

use bytemuck::Pod;
use lazuli_routines::{Routine, Transform};
use smallvec::SmallVec;

use super::batch::{Matrices, elements};
use super::resources::{COPIES, cost, ensure_room};
use crate::runtime::buffer::Buffer;
use crate::runtime::cpu::in_parallel;
use crate::runtime::host::HostBuffer;
use crate::{Error, Result};

/// Neighbouring columns that are brought together, so that lines of a cache are used as a whole; of as many rows at a time. With 64
/// columns, what they need leaves a core's cache: 5.6 ms for 2.4 (1,024 × 513).
const COLUMNS: usize = 16;

/// What transforms one line: real and imaginary parts, of which some may be of no length, to those of the result.
pub(super) type OfLine<T> = Box<dyn FnMut(&[T], &[T], &mut [T], &mut [T])>;

/// Where the lines of some matrices lie.
#[derive(Clone, Copy)]
struct Layout {
    length: usize,
    /// From an element to the next one.
    stride: usize,
    /// Lines that begin at neighbouring elements.
    neighbours: usize,
}

impl Layout {
    /// From one line to the next where they are brought together: lines of a power of two would crowd a few sets of a cache.
    fn pitch(self) -> usize {
        self.length + COLUMNS
    }

    /// The first element of a line.
    fn first(self, line: usize) -> usize {
        line / self.neighbours * self.neighbours * self.length + line % self.neighbours
    }
}

pub(super) fn run<T: Pod + Sync + Send>(
    transform: Transform,
    along_columns: bool,
    sources: &[Matrices<'_>],
    new: &(dyn Fn(Transform, usize) -> OfLine<T> + Sync),
) -> Result<SmallVec<[Buffer; 3]>> {
    let wrong = || Error::internal("Fourier transforms", "a batch that is none of such lines");
    let (re, im) = match sources {
        [re] => (elements::<T>(re)?, &[][..]),
        [re, im] => (elements(re)?, elements(im)?),
        _ => return Err(wrong()),
    };
    let [m, n] = sources[0].shape;
    let layout = |length| {
        if along_columns {
            Layout { length, stride: n, neighbours: n }
        } else {
            Layout { length, stride: 1, neighbours: 1 }
        }
    };
    let from = layout(if along_columns { m } else { n });
    let to = layout(transform.results(from.length));
    if from.length == 0 || !re.len().is_multiple_of(m * n) || !(im.is_empty() || im.len() == re.len()) {
        return Err(wrong());
    }
    let lines = re.len() / from.length;
    let parts = if matches!(transform, Transform::ComplexToReal { .. }) { 1 } else { 2 };
    // Complex numbers, and as much again for lengths without small factors.
    ensure_room::<T>(from.length.max(to.length).saturating_mul(2 * COPIES), lines)?;
    let bytes = lines * to.length * size_of::<T>();
    let results = (0..parts).map(|_| HostBuffer::allocate(bytes).map(Arc::new));
    let results: SmallVec<[Arc<HostBuffer>; 3]> = results.collect::<Result<_>>()?;
    let places: SmallVec<[usize; 2]> = results.iter().map(|result| result.as_ptr() as usize).collect();
    // Columns of one matrix alone are brought together.
    let together = if along_columns { COLUMNS.min(n) } else { 1 };
    let in_matrix = from.neighbours.div_ceil(together);
    let blocks = lines / from.neighbours * in_matrix;
    let cost = cost(Routine::Fourier { transform, along_columns }, from.length);
    in_parallel(blocks as u64, cost, &|first, end| {
        let mut one = new(transform, from.length);
        let lines = |is_needed: bool, layout: Layout| {
            vec![T::zeroed(); if is_needed { layout.pitch() * together } else { 0 }]
        };
        let mut given = [re, im].map(|part| lines(along_columns && !part.is_empty(), from));
        let mut made = [0, 1].map(|part| lines(along_columns && part < parts, to));
        for block in first as usize..end as usize {
            let first_line = block / in_matrix * from.neighbours + block % in_matrix * together;
            let count = together.min(from.neighbours - block % in_matrix * together);
            if !along_columns {
                // SAFETY: as below, of one line.
                let mut to_parts =
                    places.iter().map(|&place| unsafe { line_at(place, first_line * to.length, to.length) });
                let (to_re, to_im) =
                    (to_parts.next().unwrap_or_default(), to_parts.next().unwrap_or_default());
                let [re, im] = [re, im].map(|part| line_of(part, first_line * from.length, from.length));
                one(re, im, to_re, to_im);
                continue;
            }
            for (part, given) in [re, im].iter().zip(&mut given).filter(|(part, _)| !part.is_empty()) {
                let start = from.first(first_line);
                let row = |t: usize| &part[start + t * from.stride..][..count];
                let mut put = |line: usize, t: usize, few: &[T]| {
                    copy(few, &mut given[line * from.pitch() + t..][..few.len()]);
                };
                transposed(from.length, count, row, &mut put);
            }
            let [given_re, given_im] = &given;
            let [made_re, made_im] = &mut made;
            for number in 0..count {
                let [to_re, to_im] =
                    [&mut *made_re, made_im].map(|part| line_mut(part, number * to.pitch(), to.length));
                let [re, im] =
                    [given_re, given_im].map(|part| line_of(part, number * from.pitch(), from.length));
                one(re, im, to_re, to_im);
            }
            for (&place, made) in places.iter().zip(&made) {
                let row = |line: usize| line_of(made, line * to.pitch(), to.length);
                let mut put = |k: usize, line: usize, few: &[T]| {
                    let first = to.first(first_line) + k * to.stride + line;
                    // SAFETY: places of `count` lines of the results, which are in the buffer; nobody else has it yet, and each line
                    // is written by one thread. Any bits are a `T`.
                    copy(few, unsafe { line_at::<T>(place, first, few.len()) });
                };
                transposed(count, to.length, row, &mut put);
            }
        }
    });
    Ok(results.into_iter().map(Buffer::Host).collect())
}

/// Puts what rows have at each of so many columns, a few neighbouring rows at a time: `put(column, first row, elements)`.
fn transposed<'a, T: Pod>(
    rows: usize,
    columns: usize,
    row: impl Fn(usize) -> &'a [T],
    put: &mut impl FnMut(usize, usize, &[T]),
) {
    for first in (0..rows).step_by(COLUMNS) {
        let few = COLUMNS.min(rows - first);
        for column in (0..columns).step_by(COLUMNS) {
            let count = COLUMNS.min(columns - column);
            let mut tile = [[T::zeroed(); COLUMNS]; COLUMNS];
            for (number, to) in tile.iter_mut().enumerate().take(few) {
                copy(&row(first + number)[column..][..count], &mut to[..count]);
            }
            let mut across = [[T::zeroed(); COLUMNS]; COLUMNS];
            for (i, line) in tile.iter().enumerate() {
                line.iter().zip(&mut across).for_each(|(&x, to)| to[i] = x);
            }
            for (at, elements) in across.iter().enumerate().take(count) {
                put(column + at, first, &elements[..few]);
            }
        }
    }
}

/// Mostly of as many elements as are brought together, which takes no call.
fn copy<T: Pod>(from: &[T], to: &mut [T]) {
    match (from.first_chunk::<COLUMNS>(), to.first_chunk_mut::<COLUMNS>()) {
        (Some(from), Some(to)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

/// A line that begins there; nothing of nothing.
fn line_of<T>(part: &[T], first: usize, length: usize) -> &[T] {
    if part.is_empty() { part } else { &part[first..][..length] }
}

fn line_mut<T>(part: &mut [T], first: usize, length: usize) -> &mut [T] {
    if part.is_empty() { part } else { &mut part[first..][..length] }
}

/// Elements of a buffer from one on.
///
/// # Safety
/// The buffer at this address has them; nobody else accesses them for as long as they are held.
unsafe fn line_at<'a, T: Pod>(address: usize, first: usize, length: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise, and any bits are a `T`.
    unsafe { std::slice::from_raw_parts_mut((address as *mut T).wrapping_add(first), length) }
}
