//! Who reads, and where it reads through views.

use lazuli_codegen::index::{AxisId, AxisRanges, IndexExpr};

use crate::Shape;
use crate::graph::maps::{self, Indices, Map, MapId, Maps};
use crate::graph::op::View;

/// The extent of the last dimension.
pub(super) fn innermost(shape: &Shape) -> usize {
    shape.last().copied().unwrap_or(1)
}

/// A reader, as the views to what it reads are followed.
pub(super) struct Reader<'a> {
    /// What its positions go over.
    pub(super) shape: &'a Shape,
    pub(super) ranges: AxisRanges,
    pub(super) is_gather: bool,
    pub(super) may_align: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shape: &'a Shape, is_gather: bool, may_align: bool) -> Reader<'a> {
        let mut ranges = AxisRanges::new();
        shape.iter().enumerate().for_each(|(axis, &extent)| ranges.set(AxisId(axis as u32), extent as u64));
        Reader { shape, ranges, is_gather, may_align }
    }

    /// The indices at which a view of this shape is read, as those of its operand.
    pub(super) fn through(&self, view: &View, to: &Shape, from: &Shape, indices: Option<Indices>) -> Indices {
        let own = || (0..to.rank()).map(|axis| IndexExpr::axis(AxisId(axis as u32))).collect();
        maps::through(view, (to, from), &indices.unwrap_or_else(own), &maps::starts(view), &self.ranges)
    }

    pub(super) fn map(&self, indices: Option<&Indices>, of: &Shape, maps: &Maps) -> MapId {
        match indices {
            None => maps.identity(self.shape.elements() as u64),
            Some(indices) => {
                let extents = self.shape.iter().map(|&extent| extent as u64);
                maps.add(Map::new(extents, &maps::flatten(indices, of)))
            }
        }
    }
}
