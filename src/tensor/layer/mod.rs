//! Layers of neural networks and their losses.

pub(crate) mod adaptive;
mod adaptive_places;
pub(crate) mod boxes;
pub(crate) mod cross_entropy;
mod ctc;
pub(crate) mod grid;
pub(crate) mod interpolate;
pub(crate) mod losses;
mod margins;
mod multilabel;
pub(crate) mod norms;
pub(crate) mod pool;
mod unpool;
pub(crate) mod weighted;
