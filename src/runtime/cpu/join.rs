//! Joins on the host: bytes of many buffers, copied by several threads where that is worth it.

use std::sync::Arc;

use super::parallel::{self, Cost};
use crate::runtime::host::HostBuffer;
use crate::runtime::join::Join;
use crate::{Error, Result};

/// Bytes that a thread copies at a time.
const BLOCK: usize = 1 << 16;

/// A piece of each row.
struct Piece<'a> {
    data: &'a [u8],
    /// Where it begins in its row, and how long it is there.
    start: usize,
    bytes: usize,
}

/// The pieces in one buffer.
pub(crate) fn joined(join: &Join) -> Result<HostBuffer> {
    static COST: Cost = Cost::new();
    let row = join.row();
    let result = HostBuffer::allocate(row * join.rows)?;
    if result.bytes() == 0 {
        return Ok(result);
    }
    let hosts: Vec<Arc<HostBuffer>> =
        join.pieces.iter().map(|piece| piece.buffer.to_host()).collect::<Result<_>>()?;
    let mut start = 0;
    let mut pieces = Vec::with_capacity(join.pieces.len());
    for (piece, host) in join.pieces.iter().zip(&hosts) {
        let data = host.as_slice().get(piece.start..piece.start + piece.bytes * join.rows);
        let data = data.ok_or_else(|| Error::internal("join", "a part is beyond its buffer"))?;
        pieces.push(Piece { data, start, bytes: piece.bytes });
        start += piece.bytes;
    }
    // Short rows stay whole.
    let block = if row < BLOCK { BLOCK / row * row } else { BLOCK };
    let target = Target(result.as_ptr());
    let fill = |first: u64, end: u64| {
        let (first, end) = (first as usize * block, (end as usize * block).min(result.bytes()));
        // SAFETY: the blocks are within the buffer, which nobody else has yet, and each is filled by one thread.
        let bytes = unsafe { std::slice::from_raw_parts_mut(target.at(first), end - first) };
        fill(bytes, first, &pieces, row);
    };
    parallel::run(result.bytes().div_ceil(block) as u64, &COST, &fill);
    Ok(result)
}

/// Where several threads write, each at places of its own.
struct Target(*mut u8);

// SAFETY: an address alone.
unsafe impl Sync for Target {}

impl Target {
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}

/// Fills the bytes of the result that begin at a place.
fn fill(bytes: &mut [u8], at: usize, pieces: &[Piece], row: usize) {
    let length = pieces[0].bytes;
    if at.is_multiple_of(row) && pieces.iter().all(|piece| piece.bytes == length) {
        match length {
            1 => return interleave::<1>(bytes, at / row, pieces),
            2 => return interleave::<2>(bytes, at / row, pieces),
            4 => return interleave::<4>(bytes, at / row, pieces),
            8 => return interleave::<8>(bytes, at / row, pieces),
            16 => return interleave::<16>(bytes, at / row, pieces),
            _ => {}
        }
    }
    let (mut number_of_row, within) = (at / row, at % row);
    let mut number = pieces.partition_point(|piece| piece.start <= within) - 1;
    let mut skipped = within - pieces[number].start;
    let mut rest = bytes;
    while !rest.is_empty() {
        let piece = &pieces[number];
        let (now, later) = rest.split_at_mut((piece.bytes - skipped).min(rest.len()));
        let from = number_of_row * piece.bytes + skipped;
        now.copy_from_slice(&piece.data[from..from + now.len()]);
        (rest, skipped, number) = (later, 0, number + 1);
        if number == pieces.len() {
            (number, number_of_row) = (0, number_of_row + 1);
        }
    }
}

/// Fills whole rows, and maybe a part of the last one, of one element of each piece.
fn interleave<const N: usize>(bytes: &mut [u8], first: usize, pieces: &[Piece]) {
    let columns: Vec<&[[u8; N]]> = pieces.iter().map(|piece| piece.data[first * N..].as_chunks().0).collect();
    for (row, bytes) in bytes.as_chunks_mut().0.chunks_mut(pieces.len()).enumerate() {
        bytes.iter_mut().zip(&columns).for_each(|(element, column)| *element = column[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::buffer::Buffer;
    use crate::runtime::join;

    /// Pieces of a row by their bytes, against a loop over all bytes.
    fn check(rows: usize, lengths: &[usize], start: usize) {
        let piece = |(number, &bytes): (usize, &usize)| {
            let data: Vec<u8> = (0..start + rows * bytes).map(|n| (n * 7 + number * 31) as u8).collect();
            let buffer = Buffer::Host(Arc::new(HostBuffer::from_bytes(&data).unwrap()));
            join::Piece { buffer, start, bytes }
        };
        let join = Join { rows, pieces: lengths.iter().enumerate().map(piece).collect() };
        let mut expected = Vec::new();
        for row in 0..rows {
            for (number, &bytes) in lengths.iter().enumerate() {
                let from = start + row * bytes;
                expected.extend((from..from + bytes).map(|n| (n * 7 + number * 31) as u8));
            }
        }
        let joined = joined(&join).unwrap();
        assert!(joined.as_slice() == expected, "{rows} rows of {lengths:?}");
    }

    #[test]
    fn pieces_are_one_after_the_other_in_each_row() {
        for lengths in [&[3, 5, 4][..], &[1; 7], &[2; 5], &[4; 3], &[8; 6], &[16; 2], &[24; 3], &[100_000, 7]]
        {
            for rows in [1, 2, 100, 40_000] {
                if rows * lengths.iter().sum::<usize>() < 1 << 22 {
                    check(rows, lengths, 0);
                    check(rows, lengths, 12);
                }
            }
        }
        check(0, &[4, 4], 0);
        check(3, &[0, 0], 0);
        check(3, &[0, 4, 0, 4], 0);
    }
}
