//! Fourier transforms of rows or columns in the host's memory.

use std::sync::Arc;

use bytemuck::Pod;
use lazuli_routines::Transform;
use smallvec::SmallVec;

use super::batch::{Matrices, elements};
use crate::runtime::buffer::Buffer;
use crate::runtime::cpu::{Cost, in_parallel};
use crate::runtime::host::HostBuffer;
use crate::{Error, Result};

/// Neighbouring columns that are brought together, so that lines of a cache are used as a whole.
const COLUMNS: usize = 16;

/// What transforms one line: real and imaginary parts, of which some may be of no length, to those of the result.
pub(super) type OfLine<T> = Box<dyn FnMut(&[T], &[T], &mut [T], &mut [T])>;

/// Where the lines of some matrices lie.
#[derive(Clone, Copy)]
struct Lie {
    length: usize,
    /// From an element to the next one.
    stride: usize,
    /// Lines that begin at neighbouring elements.
    neighbours: usize,
}

impl Lie {
    /// The first element of a line.
    fn first(self, line: usize) -> usize {
        line / self.neighbours * self.neighbours * self.length + line % self.neighbours
    }
}

pub(super) fn run<T: Pod + Sync + Send>(
    (transform, down): (Transform, bool),
    sources: &[Matrices<'_>],
    new: &(dyn Fn(Transform, usize) -> OfLine<T> + Sync),
) -> Result<SmallVec<[Buffer; 3]>> {
    static COST: Cost = Cost::new();
    let wrong = || Error::internal("Fourier transforms", "a batch that is none of such lines");
    let (re, im) = match sources {
        [re] => (elements::<T>(re)?, &[][..]),
        [re, im] => (elements(re)?, elements(im)?),
        _ => return Err(wrong()),
    };
    let [m, n] = sources[0].shape;
    let lie = |length| {
        if down { Lie { length, stride: n, neighbours: n } } else { Lie { length, stride: 1, neighbours: 1 } }
    };
    let from = lie(if down { m } else { n });
    let to = lie(transform.results(from.length));
    if from.length == 0 || !re.len().is_multiple_of(m * n) || !(im.is_empty() || im.len() == re.len()) {
        return Err(wrong());
    }
    let lines = re.len() / from.length;
    let parts = if matches!(transform, Transform::HalfBack { .. }) { 1 } else { 2 };
    let bytes = lines * to.length * size_of::<T>();
    let results = (0..parts).map(|_| HostBuffer::allocate(bytes).map(Arc::new));
    let results: SmallVec<[Arc<HostBuffer>; 3]> = results.collect::<Result<_>>()?;
    let places: SmallVec<[usize; 2]> = results.iter().map(|result| result.as_ptr() as usize).collect();
    // Columns of one matrix alone are brought together.
    let together = if down { COLUMNS.min(n) } else { 1 };
    let in_matrix = from.neighbours.div_ceil(together);
    let blocks = lines / from.neighbours * in_matrix;
    in_parallel(blocks as u64, &COST, &|first, end| {
        let mut one = new(transform, from.length);
        let mut given =
            [re, im].map(|part| vec![T::zeroed(); if part.is_empty() { 0 } else { from.length * together }]);
        let mut made =
            [0, 1].map(|part| vec![T::zeroed(); if part < parts { to.length * together } else { 0 }]);
        for block in first as usize..end as usize {
            let first_line = block / in_matrix * from.neighbours + block % in_matrix * together;
            let count = together.min(from.neighbours - block % in_matrix * together);
            if !down {
                // SAFETY: as below, of one line.
                let mut to_parts =
                    places.iter().map(|&place| unsafe { line_at(place, first_line * to.length, to.length) });
                let (to_re, to_im) =
                    (to_parts.next().unwrap_or_default(), to_parts.next().unwrap_or_default());
                one(line(re, first_line, from.length), line(im, first_line, from.length), to_re, to_im);
                continue;
            }
            for (part, given) in [re, im].iter().zip(&mut given).filter(|(part, _)| !part.is_empty()) {
                let start = from.first(first_line);
                for t in 0..from.length {
                    let row = &part[start + t * from.stride..][..count];
                    row.iter().enumerate().for_each(|(line, &x)| given[line * from.length + t] = x);
                }
            }
            let [given_re, given_im] = &given;
            let [made_re, made_im] = &mut made;
            for number in 0..count {
                let to_re = line_mut(made_re, number, to.length);
                let to_im = line_mut(made_im, number, to.length);
                one(line(given_re, number, from.length), line(given_im, number, from.length), to_re, to_im);
            }
            for (&place, made) in places.iter().zip(&made) {
                for k in 0..to.length {
                    // SAFETY: the places of `count` lines of the results, which are in the buffer; nobody else has it yet, and each
                    // line is written by one thread. Any bits are a `T`.
                    let row = unsafe { line_at::<T>(place, to.first(first_line) + k * to.stride, count) };
                    row.iter_mut().enumerate().for_each(|(line, to_k)| *to_k = made[line * to.length + k]);
                }
            }
        }
    });
    Ok(results.into_iter().map(Buffer::Host).collect())
}

/// One of the lines that lie one after the other; nothing of nothing.
fn line<T>(part: &[T], number: usize, length: usize) -> &[T] {
    if part.is_empty() { part } else { &part[number * length..][..length] }
}

fn line_mut<T>(part: &mut [T], number: usize, length: usize) -> &mut [T] {
    if part.is_empty() { part } else { &mut part[number * length..][..length] }
}

/// Elements of a buffer from one on.
///
/// # Safety
/// The buffer at this address has them; nobody else accesses them for as long as they are held.
unsafe fn line_at<'a, T: Pod>(address: usize, first: usize, length: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise, and any bits are a `T`.
    unsafe { std::slice::from_raw_parts_mut((address as *mut T).wrapping_add(first), length) }
}
