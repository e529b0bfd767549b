//! Products that four warps carry out together while they go on (CUDA, sm_90).

use super::{Expr, Lines};
use crate::DType;
use crate::nest::variable::Var;

/// A product of 64 × 16 and 16 × `columns` elements in shared memory. They are in lines of 64, 128 bytes each, which begin at a
/// multiple of 1024 bytes and whose eight chunks have changed places: chunk `c` of line `n` is where `c ^ n % 8` says.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct GroupProduct {
    /// Of the elements: F16 or BF16.
    pub dtype: DType,
    /// 64, 128 or 256.
    pub columns: u32,
    /// The first factor.
    pub left: GroupFactor,
    /// The second factor, which no thread has of its own.
    pub right: GroupFactor,
    /// The array of sums, which are F32.
    pub sums: Var,
    /// Where the thread's begin: of rows `i` and `i + 8` of its warp's sixteen, of which it has two neighbours in each eight columns.
    pub sums_at: Expr,
}

/// A factor of a [`GroupProduct`].
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct GroupFactor {
    /// The array in shared memory, or the thread's own.
    pub array: Var,
    /// Where the first line of the first term is, before chunks change places, or the first of the thread's own eight.
    pub at: Expr,
    /// What its lines are.
    pub lines: Lines,
}

/// What threads do about products of groups of warps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProductStep {
    /// What the thread has put into shared memory is seen by products, those of other threads after the next barrier.
    Publish,
    /// Products follow that go on with the sums as they are.
    Begin,
    /// The products that have been begun since the last such step are a group.
    Commit,
    /// Waits until no more than so many of the last groups are under way.
    Await(u32),
}

impl GroupFactor {
    /// Elements from the first to that of a row or column and of a term, before chunks change places.
    pub(crate) fn offset(&self, own: u64, term: u64) -> u64 {
        match self.lines {
            Lines::Turned => (own / GROUP_LINE * GROUP_LINE + term) * GROUP_LINE + own % GROUP_LINE,
            Lines::Along => own * GROUP_LINE + term,
            // Of rows i and i + 8, and of terms k and k + 8 of a thread.
            Lines::Own => (term / 8 * 2 + own / 8 % 2) * 2 + term % 2,
        }
    }

    /// Elements of the product's factor, the last one included.
    pub(crate) fn len(&self, own: u64) -> u64 {
        self.offset(own - 1, GROUP_TERMS - 1) + 1
    }
}

/// Elements of a line of a [`GroupFactor`].
pub(crate) const GROUP_LINE: u64 = 64;

/// Rows of a product, its terms, and the threads that carry it out.
pub(crate) const GROUP_ROWS: u64 = 64;
pub(crate) const GROUP_TERMS: u64 = 16;
pub(crate) const GROUP_THREADS: u64 = 128;
