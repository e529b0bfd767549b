//! The extents of axes, and the bounds of expressions that follow from them.

use rustc_hash::FxHashMap;

use super::{Atom, AxisId, IndexExpr};

/// A bound of this magnitude is no bound: saturated, or of an axis without an extent.
pub(super) const UNBOUNDED: i64 = 1 << 62;

/// The extents of axes: an axis takes the values `0..extent`, and one without a known extent any
/// value of at least 0.
#[derive(Clone, Debug, Default)]
pub struct AxisRanges {
    extents: FxHashMap<AxisId, u64>,
}

impl AxisRanges {
    /// No extent known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the axis take the values `0..extent`. An extent of 0 bounds expressions as 1 does.
    pub fn set(&mut self, axis: AxisId, extent: u64) {
        self.extents.insert(axis, extent);
    }

    /// Lets the axis take any value of at least 0.
    pub fn set_unbounded(&mut self, axis: AxisId) {
        self.extents.remove(&axis);
    }

    /// The extent of the axis, if it is known.
    pub fn extent(&self, axis: AxisId) -> Option<u64> {
        self.extents.get(&axis).copied()
    }
}

/// A product of a bound and a coefficient, saturating at [`UNBOUNDED`].
fn scaled(bound: i64, by: i64) -> i128 {
    let limit = UNBOUNDED as i128;
    (bound as i128 * by as i128).clamp(-limit, limit)
}

impl IndexExpr {
    /// Inclusive bounds of the value, not always the tightest. A lower bound of `-2^62` or an upper
    /// bound of `2^62` means that none is known.
    pub fn range(&self, ranges: &AxisRanges) -> (i64, i64) {
        let limit = UNBOUNDED as i128;
        let (mut lo, mut hi) = (self.constant as i128, self.constant as i128);
        let (mut lo_known, mut hi_known) = (true, true);
        for (atom, k) in &self.terms {
            let (low, high) = atom.range(ranges);
            let (low, high) = if *k > 0 { (low, high) } else { (high, low) };
            let (low, high) = (scaled(low, *k), scaled(high, *k));
            lo_known &= low > -limit;
            hi_known &= high < limit;
            lo += low;
            hi += high;
        }
        let lo = if lo_known { lo.clamp(-limit, limit) } else { -limit };
        let hi = if hi_known { hi.clamp(-limit, limit) } else { limit };
        (lo as i64, hi as i64)
    }

    /// An upper bound of whatever is computed on the way to the value, where what is added and what is subtracted are
    /// computed on their own.
    pub fn largest_part(&self, ranges: &AxisRanges) -> i64 {
        let (added, subtracted) = self.by_sign();
        let inside = self.terms.iter().map(|(atom, _)| match atom {
            Atom::Axis(_) => 0,
            Atom::Div(numerator, _) | Atom::Mod(numerator, _) => numerator.largest_part(ranges),
        });
        inside.chain([added.range(ranges).1, subtracted.range(ranges).1]).max().unwrap_or(0)
    }

    /// `floor(self / by)` if the bounds decide it.
    pub(super) fn bucket(&self, by: i64, ranges: &AxisRanges) -> Option<i64> {
        let (lo, hi) = self.range(ranges);
        let bucket = lo.div_euclid(by);
        (lo > -UNBOUNDED && hi < UNBOUNDED && bucket == hi.div_euclid(by)).then_some(bucket)
    }
}

impl Atom {
    /// Inclusive bounds of the value.
    fn range(&self, ranges: &AxisRanges) -> (i64, i64) {
        match self {
            Atom::Axis(a) => match ranges.extent(*a) {
                Some(extent) => (0, extent.saturating_sub(1).min(UNBOUNDED as u64) as i64),
                None => (0, UNBOUNDED),
            },
            Atom::Div(e, by) => {
                let (lo, hi) = e.range(ranges);
                let lo = if lo > -UNBOUNDED { lo.div_euclid(*by) } else { lo };
                let hi = if hi < UNBOUNDED { hi.div_euclid(*by) } else { hi };
                (lo, hi)
            }
            Atom::Mod(e, by) => {
                let (lo, hi) = e.range(ranges);
                let known = lo > -UNBOUNDED && hi < UNBOUNDED;
                if known && lo.div_euclid(*by) == hi.div_euclid(*by) {
                    (lo.rem_euclid(*by), hi.rem_euclid(*by))
                } else {
                    (0, by - 1)
                }
            }
        }
    }
}
