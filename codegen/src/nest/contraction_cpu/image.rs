//! The part of an image that a block's windows reach.

use super::super::guarded_lanes::are_masks_of;
use super::super::interior::Interior;
use super::super::stmt::Arithmetic::Mul;
use super::super::stmt::Expr;
use super::super::variable::Var;
use crate::ir::ValueId;
use crate::schedule::{ContractionSchedule, Image, Windows};

/// What of an image a block computes.
pub(in crate::nest) struct Part<'a> {
    pub(super) windows: &'a Windows,
    pub(super) image: &'a Image,
    /// Columns inside of its border.
    pub(super) interior: Option<Interior>,
    /// Whether the border is read under masks, and not number by number.
    pub(super) is_masked: bool,
    /// Lines and columns that there is room for, and channels; or, of one channel at a time, images that are side by side.
    pub(super) lines: u64,
    pub(super) columns: u64,
    channels: u64,
    images: Option<u64>,
}

impl<'a> Part<'a> {
    pub(super) fn new(
        windows: &'a Windows,
        image: &'a Image,
        factors: &[ValueId],
        schedule: &ContractionSchedule,
    ) -> Part<'a> {
        let is_masked = are_masks_of(&image.kernel, image.column, factors);
        let interior = Interior::of(&image.kernel, image.column);
        Part {
            windows,
            image,
            interior: if is_masked { interior.and_then(Interior::of_whole_vectors) } else { interior },
            is_masked,
            lines: windows.line.map_or(1, |line| {
                let lines = schedule.lines.into();
                line.reach(windows.of_image.map_or(lines, |of_image| of_image.min(lines)))
            }),
            columns: windows.column.reach(schedule.columns.into()),
            channels: u64::from(schedule.depth) / windows.places(),
            images: windows.of_image.map(|of_image| u64::from(schedule.lines).div_ceil(of_image)),
        }
    }

    /// Elements of the array.
    pub(super) fn elements(&self) -> u64 {
        self.images.unwrap_or(self.channels) * self.of_image()
    }

    /// Those of a channel of an image.
    pub(super) fn of_image(&self) -> u64 {
        self.lines * self.columns
    }

    /// Where a channel begins.
    pub(super) fn channel(&self, channel: Var) -> Expr {
        match self.images {
            None => channel.then(Mul, self.of_image()),
            Some(_) => Expr::Int(0),
        }
    }
}
