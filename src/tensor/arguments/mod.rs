//! How calls are taken: their names and lines, operands and their dtypes, axes, element types.

pub(crate) mod axes;
pub(crate) mod call;
pub(crate) mod element;
pub(crate) mod promotion;
pub(crate) mod routine;
