//! What asks tensors for their values: the end of recording.

mod copies;
pub(crate) mod display;
pub(crate) mod download;
pub(crate) mod evaluate;
mod extents;
