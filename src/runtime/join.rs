//! Buffers copied into one, as a join of many tensors needs it.

use super::buffer::Buffer;

/// What is copied where: rows that have some bytes of each piece, one piece after the other.
pub(crate) struct Join {
    pub(crate) rows: usize,
    pub(crate) pieces: Vec<Piece>,
}

/// A part of a join.
pub(crate) struct Piece {
    pub(crate) buffer: Buffer,
    /// Where it begins in its buffer.
    pub(crate) start: usize,
    /// How many bytes of it are in a row.
    pub(crate) bytes: usize,
}

impl Join {
    /// Bytes of a row.
    pub(crate) fn row(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}
