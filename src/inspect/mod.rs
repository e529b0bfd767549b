//! What users inspect without running it: the kernels of an expression for a target.

pub(crate) mod parts;
pub(crate) mod profile;
pub(crate) mod program;
pub(crate) mod target;
#[cfg(test)]
mod tests;
