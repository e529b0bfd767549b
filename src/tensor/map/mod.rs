//! What maps elements: each result element follows from the operands' elements at its position.

pub(crate) mod activations;
pub(crate) mod arithmetic;
pub(crate) mod bessel;
mod bessel_first;
mod bessel_quotients;
pub(crate) mod binary;
pub(crate) mod bits;
pub(crate) mod elementwise;
pub(crate) mod formula;
mod gamma_shares;
mod limits;
pub(crate) mod operands;
pub(crate) mod operators;
mod quantize;
mod representation;
mod signs;
pub(crate) mod special;
mod zeta;
