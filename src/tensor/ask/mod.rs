//! What asks tensors for their values: the end of recording.

pub(crate) mod display;
pub(crate) mod download;
pub(crate) mod evaluate;
