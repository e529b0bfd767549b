//! Where guards are decided: parts of one axis, as the operands of a join have. In each, every guard holds or none of
//! its positions, so that a loop over it reads without conditions.

use super::interior::{ceil_div, decided};
use crate::index::{Atom, AxisId, Bound};
use crate::ir::{AxisKind, Kernel, ValueOp};

/// More pieces, or more values in all of them, are too much text.
const MOST_PIECES: usize = 128;
const MOST_VALUES: usize = 1 << 16;

/// Parts of an axis.
pub(super) struct Pieces {
    pub(super) axis: AxisId,
    /// The kernel from each position to the next one, without guards; the first is 0.
    pub(super) parts: Vec<(u64, Kernel)>,
}

impl Pieces {
    /// The pieces of the one axis that all guards depend on; `None` if there are several.
    pub(super) fn of(kernel: &Kernel) -> Option<Pieces> {
        let mut found: Option<AxisId> = None;
        let mut starts = vec![0];
        for bound in kernel.values.iter().flat_map(|value| bounds(&value.op)) {
            let [(Atom::Axis(axis), stride)] = bound.expr.terms() else { return None };
            let (axis, stride) = (*axis, *stride);
            if *found.get_or_insert(axis) != axis || kernel.axis(axis).kind != AxisKind::Map {
                return None;
            }
            // lo <= stride * i + offset < hi begins and ends at these positions.
            let offset = bound.expr.constant_term();
            for limit in [bound.lo - offset, bound.hi - offset] {
                starts.push(match stride > 0 {
                    true => ceil_div(limit, stride),
                    false => (-limit).div_euclid(-stride) + 1,
                });
            }
        }
        let axis = found?;
        let end = if kernel.axis(axis).is_argument { i64::MAX } else { kernel.axis(axis).extent as i64 };
        starts.retain(|&start| (0..end).contains(&start));
        starts.sort_unstable();
        starts.dedup();
        if starts.len() < 2 || starts.len() > MOST_PIECES || starts.len() * kernel.values.len() > MOST_VALUES
        {
            return None;
        }
        let holds = |bound: &Bound, at: i64| {
            let stride = bound.expr.coefficient(axis).unwrap_or(0);
            (bound.lo..bound.hi).contains(&(stride * at + bound.expr.constant_term()))
        };
        let piece = |at: i64| {
            let kernel = decided(kernel, |bounds| bounds.iter().all(|bound| holds(bound, at)));
            (at as u64, kernel)
        };
        Some(Pieces { axis, parts: starts.into_iter().map(piece).collect() })
    }
}

fn bounds(op: &ValueOp) -> &[Bound] {
    match op {
        ValueOp::InBounds(bounds) => bounds,
        _ => &[],
    }
}
