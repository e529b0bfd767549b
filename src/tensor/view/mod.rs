//! What looks at the same elements in other places, or puts tensors together and apart.

pub(crate) mod assign;
pub(crate) mod border;
pub(crate) mod copied;
mod cuts;
pub(crate) mod index;
pub(crate) mod join;
mod named;
pub(crate) mod overlap;
pub(crate) mod rearrange;
pub(crate) mod slices;
pub(crate) mod stacks;
pub(crate) mod views;
