//! What reads and writes where other tensors say, and what says where.

mod bags;
mod coordinates;
pub(crate) mod counted;
mod found;
pub(crate) mod gather;
mod indexed;
mod interp;
mod lexical;
mod mode;
pub(crate) mod positions;
pub(crate) mod quantiles;
mod rows;
pub(crate) mod scatter;
mod sets;
mod sort;
mod whole;
