//! A very short innermost axis on the CPU, as of interleaved results: the loop goes along the axis before it, in vectors,
//! and the short one's positions stand one after the other in its body.

use super::INDEX;
use super::emitter::Emitter;
use super::loops::counting;
use super::segments::Segments;
use super::stmt::{Expr, LoopHint, Stmt};
use crate::index::AxisId;
use crate::ir::{Kernel, ValueOp};

/// Longer axes, or more values at all positions together, are too much text.
const LONGEST: u64 = 8;
const MOST_VALUES: usize = 256;

/// The axis whose positions are spelled out.
pub(super) struct ShortAxis {
    axis: AxisId,
    extent: u64,
    /// What its positions decide: which operand of a join each is of.
    segments: Option<Segments>,
}

impl ShortAxis {
    /// The innermost axis, if it is short, the one before it is at least `long`, and neither keeps guards.
    pub(super) fn of(kernel: &Kernel, map: &[AxisId], long: u64) -> Option<ShortAxis> {
        let [.., before, axis] = *map else { return None };
        let extent = kernel.axis(axis).extent;
        let is_short = (2..=LONGEST).contains(&extent) && !kernel.axis(axis).is_argument;
        let is_plain = kernel.values.iter().all(|value| !matches!(value.op, ValueOp::Reduce { .. }));
        let guarded = kernel.values.iter().any(|value| matches!(value.op, ValueOp::InBounds(_)));
        let segments = if guarded { fixed_segments(kernel, axis) } else { None };
        let fits = kernel.values.len() * extent as usize <= MOST_VALUES;
        let before = kernel.axis(before);
        let is_worth_it = is_short && is_plain && fits && (before.is_argument || before.extent >= long);
        (is_worth_it && guarded == segments.is_some()).then_some(ShortAxis { axis, extent, segments })
    }

    /// How many results one position of the other axes has.
    pub(super) fn extent(&self) -> u64 {
        self.extent
    }

    /// The loop along the axis before it.
    pub(super) fn emit<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        axis: AxisId,
        from: Expr,
        to: Expr,
    ) {
        emitter.repeat_along(&[axis], counting(axis, from, to, LoopHint::Simd), |emitter| {
            for position in 0..self.extent {
                let part = match &self.segments {
                    Some(segments) => segments.at(position),
                    None => None,
                };
                emitter.using(part.unwrap_or(kernel), |emitter| {
                    match part {
                        // What a segment reads is not there in the next one.
                        Some(_) => emitter.open_pinned(),
                        None => emitter.open(&[], true),
                    }
                    emitter.bind_axes(&[self.axis]);
                    emitter.bind(self.axis, INDEX, Expr::Int(position));
                    emitter.store_all(emitter.kernel);
                    let body = emitter.close();
                    emitter.push(Stmt::Block(body));
                });
            }
        });
    }
}

/// Parts of the axis that begin where the text says.
fn fixed_segments(kernel: &Kernel, axis: AxisId) -> Option<Segments> {
    Segments::of(kernel).filter(|segments| segments.axis == axis && segments.at(0).is_some())
}
