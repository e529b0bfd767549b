//! Where a value is wanted: at which indices, and under which conditions.

use lazuli_codegen::index::Bound;
use smallvec::SmallVec;

pub(super) use crate::graph::maps::Indices;

/// Conditions under which a value exists: it lies inside of all pads on the way.
pub(super) type Guards = SmallVec<[Bound; 2]>;
