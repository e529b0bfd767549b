//! Why a group cannot be written as one kernel.

use std::fmt;

/// Values of one kernel: views that read at many places make many of one operation.
pub(super) const MAX_VALUES: usize = 1 << 12;

pub(super) type Result<T> = std::result::Result<T, Refusal>;

/// What lowering a group has shown: smaller ones may do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Refusal {
    /// Views that read at many places make many values of one operation.
    TooManyValues,
    /// A row's result is wanted along the row itself.
    ReducedAlong,
    /// A condition is on a row and on places along it.
    ConditionAlong,
    /// The operation is computed for all of an axis, where a part of it is wanted.
    Conditional(&'static str),
    /// An index is divided that may be less than zero.
    DividesBelowZero,
    /// What analysis does not let happen.
    Broken(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::TooManyValues => {
                write!(f, "more than {MAX_VALUES} values would be computed for one position")
            }
            Refusal::ReducedAlong => write!(f, "a reduction would be read along its own axes"),
            Refusal::ConditionAlong => write!(f, "a condition is on a row and on places along it"),
            Refusal::Conditional(op) => write!(f, "{op} would be under a condition"),
            Refusal::DividesBelowZero => write!(f, "an index would be divided that may be less than zero"),
            Refusal::Broken(what) => write!(f, "{what}"),
        }
    }
}
