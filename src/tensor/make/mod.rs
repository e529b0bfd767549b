//! What makes tensors: data, numbers, positions, seeds.

pub(crate) mod bytes;
pub(crate) mod constructors;
pub(crate) mod convert;
pub(crate) mod create;
mod distributions;
mod draws;
pub(crate) mod foreign;
pub(crate) mod random;
mod signals;
pub(crate) mod tapers;
