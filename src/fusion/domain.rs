//! What kernels go over besides the positions of their results: the rows of reductions and the lines of scans.

use super::cost::TargetFigures;
use crate::Shape;
use crate::graph::domain::Roles;
use crate::graph::maps::{Map, MapId, Maps};
use lazuli_codegen::index::{AxisId, IndexExpr};
use lazuli_codegen::schedule::{self, share::NEAR_LENGTH};

/// Elements of a column that one thread goes down, the columns of a block of longer ones, and the blocks of a multiprocessor.
const SHORT: usize = 32;
const COLUMNS_OF_BLOCK: usize = 16;
const BLOCKS_OF_PROCESSOR: usize = 4;

/// The rows of a reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rows {
    /// Of the first reduction's operand.
    pub(super) domain: u32,
    pub(super) full_elements: usize,
    pub(super) results: usize,
    /// Elements of a row.
    pub(super) length: usize,
    /// How many times as long as in full lanes an operation takes along a row that is too short for them.
    pub(super) waste: f64,
    /// Whether what is reduced is consecutive.
    pub(super) is_consecutive: bool,
    /// Whether several passes over the rows are no more expensive than one from far away.
    pub(super) is_near: bool,
    /// Whether the rows fit registers, with what is costly to compute again.
    pub(super) is_kept: bool,
    /// Each element.
    pub(super) whole: MapId,
    /// The row of each element.
    pub(super) row: MapId,
    /// The first element of the row of each.
    first: MapId,
}

impl Rows {
    /// `size` is the bytes of an element, and `has_length` says whether kernels know how long the rows are.
    pub(super) fn new(
        roles: &Roles,
        domain: u32,
        size: usize,
        has_length: bool,
        figures: &TargetFigures,
        maps: &Maps,
    ) -> Rows {
        let product = |reduced: bool| {
            let extents = roles.iter().filter(|(_, role)| *role == reduced);
            extents.fold(1usize, |product, &(extent, _)| product.saturating_mul(extent as usize))
        };
        let (length, results) = (product(true), product(false));
        // What is consecutive: columns share their lines with others, and have no registers to stay in.
        let is_consecutive = roles.last().is_none_or(|&(_, is_reduced)| is_reduced);
        let bytes = length.saturating_mul(size);
        let room = figures.kept.max(if has_length { figures.shared } else { 0 });
        let is_small = is_consecutive && bytes <= room;
        let fills = results >= figures.processors as usize;
        let is_cached = is_small || is_consecutive && fills && bytes <= figures.cache;
        // The same with the reduced axes left out, and with all strides as they are.
        let (mut row, mut first) = (IndexExpr::zero(), IndexExpr::zero());
        let (mut stride, mut row_stride) = (1i64, 1i64);
        for (axis, &(extent, is_reduced)) in roles.iter().enumerate().rev() {
            if !is_reduced {
                row = row.add(&IndexExpr::axis(AxisId(axis as u32)).scale(row_stride));
                first = first.add(&IndexExpr::axis(AxisId(axis as u32)).scale(stride));
                row_stride = row_stride.saturating_mul(extent as i64);
            }
            stride = stride.saturating_mul(extent as i64);
        }
        let map = |position: &IndexExpr| maps.add(Map::new(roles.iter().map(|role| role.0), position));
        let full_elements = roles.iter().fold(1usize, |all, role| all.saturating_mul(role.0 as usize));
        Rows {
            domain,
            full_elements,
            results,
            length,
            waste: match is_consecutive {
                true => (figures.lanes as f64 / length.max(1) as f64).max(1.0),
                false => 1.0,
            },
            is_consecutive,
            is_near: length as u64 <= NEAR_LENGTH || is_cached,
            is_kept: is_small && has_length,
            whole: maps.identity(full_elements as u64),
            row: map(&row),
            first: map(&first),
        }
    }

    /// The share of the processors that have nothing to do where blocks have whole rows, or whole columns of which a block has a few,
    /// which are neighbours: a multiprocessor has several such blocks. A thread has short ones to itself; rows that are kept are read once.
    pub(super) fn idle_again(&self, figures: &TargetFigures) -> f64 {
        if self.length <= SHORT || self.is_kept {
            return 0.0;
        }
        let of_processor = if self.is_consecutive { 1 } else { COLUMNS_OF_BLOCK * BLOCKS_OF_PROCESSOR };
        let full = (of_processor * figures.processors as usize).max(1);
        (1.0 - self.results as f64 / full as f64).max(0.0)
    }

    /// Whether there is one row, of neighbours in memory.
    pub(super) fn is_one(&self) -> bool {
        self.results == 1 && self.is_consecutive
    }

    /// Whether what the elements read by a map is another one along a row.
    pub(super) fn varies(&self, map: MapId, maps: &Maps) -> bool {
        map == self.whole && self.first != self.whole || maps.then(self.first, map) != map
    }
}

/// What scans and recurrences go along.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Lines {
    outer: usize,
    length: usize,
    inner: usize,
    reverse: bool,
    /// Where the axis is; of one position, it is no other one.
    place: Option<(usize, usize)>,
}

impl Lines {
    pub(super) fn new(full: &Shape, axis: usize, reverse: bool) -> Lines {
        let product = |extents: &[usize]| extents.iter().fold(1usize, |all, &n| all.saturating_mul(n));
        let length = full[axis];
        let place = (length == 1).then_some((axis, full.rank()));
        Lines { outer: product(&full[..axis]), length, inner: product(&full[axis + 1..]), reverse, place }
    }

    /// Whether neighbours along the axis are neighbours in memory.
    pub(super) fn is_innermost(&self) -> bool {
        self.inner == 1
    }

    pub(super) fn elements(&self) -> usize {
        self.ends().saturating_mul(self.length)
    }

    /// Whether cores share lines along the innermost axis, and sweep over them twice.
    pub(super) fn are_shared_rows(&self, processors: u32) -> bool {
        let [lines, length] = [self.outer, self.length].map(|count| count as u64);
        self.is_innermost() && schedule::is_row_scan_shared(lines, length, u64::from(processors))
    }

    /// What is known in the end: one element a line.
    pub(super) fn ends(&self) -> usize {
        self.outer.saturating_mul(self.inner)
    }
}
