//! Copies of whole tiles to shared memory, which one thread begins and nobody's registers take part in (CUDA, sm_90).

use super::Expr;
use crate::nest::variable::Var;

/// What threads do about copies of tiles. An array of 64-bit numbers in shared memory says which slots have theirs: copies to a
/// slot are a round of it.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum BulkStep {
    /// So many copies are to arrive in each round of each slot; before all others, by one thread, and a barrier later.
    Expect {
        /// The array.
        arrived: Var,
        /// Its length.
        slots: u32,
        /// Copies of a round.
        copies: u32,
    },
    /// Begins to copy a tile, by one thread.
    Begin(Box<BulkCopy>),
    /// Waits for the copies of a slot's round: what they bring is there then.
    Await(Box<BulkRound>),
}

/// Copies that are waited for.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct BulkRound {
    /// The array that says what has arrived.
    pub arrived: Var,
    /// Which of its slots.
    pub slot: Expr,
    /// The round's number; only whether it is odd matters.
    pub round: Expr,
}

/// A tile on its way to shared memory, in lines of 128 bytes whose chunks of 16 have changed places as those of a
/// [`GroupProduct`](super::GroupProduct) have.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct BulkCopy {
    /// Which of the nest's [maps](crate::nest::Nest::maps) says where it is.
    pub map: u32,
    /// Of each axis of the map, the first position.
    pub positions: Vec<Expr>,
    /// The array in shared memory.
    pub shared: Var,
    /// Where the first line goes: a multiple of 1024 bytes.
    pub at: Expr,
    /// The array that says what has arrived, and which of its slots.
    pub arrived: Var,
    /// See there.
    pub slot: Expr,
}
