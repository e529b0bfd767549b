//! Why something cannot be computed.

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something cannot be computed. Whoever asked knows the operation and the line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// What is asked for is not sound: the rule that is broken.
    #[error("{0}")]
    Broken(String),
    /// A result has no room.
    #[error("no room for {bytes} bytes")]
    OutOfMemory {
        /// Its size.
        bytes: u64,
    },
    /// An index is no position of the axis that it is for.
    #[error("index {index} is out of range for axis {axis} of extent {extent}")]
    IndexOutOfRange {
        /// The first such index.
        index: i64,
        /// The axis.
        axis: usize,
        /// How many positions it has.
        extent: usize,
    },
}

pub(crate) fn broken(message: impl Into<String>) -> Error {
    Error::Broken(message.into())
}
