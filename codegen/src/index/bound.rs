//! Conditions on index expressions.

use super::range::UNBOUNDED;
use super::simplify::split_by_factor;
use super::{Atom, AxisRanges, IndexExpr, gcd};

/// The condition `lo <= expr < hi`. A limit of [`Bound::NO_LO`] or less, or [`Bound::NO_HI`] or more, is none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bound {
    /// What is compared.
    pub expr: IndexExpr,
    /// The least value allowed.
    pub lo: i64,
    /// One more than the largest value allowed.
    pub hi: i64,
}

/// What is known of a [`Bound`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BoundTruth {
    /// It holds everywhere.
    Always,
    /// It holds nowhere.
    Never,
    /// It depends on the axes.
    Depends(Bound),
}

/// The quotient rounded up.
fn div_ceil(a: i64, by: i64) -> i64 {
    a.div_euclid(by) + i64::from(a.rem_euclid(by) != 0)
}

impl Bound {
    /// Where there is no least value.
    pub const NO_LO: i64 = -UNBOUNDED;
    /// Where there is no largest one.
    pub const NO_HI: i64 = UNBOUNDED;

    /// Whether there is a least value.
    pub fn has_lo(&self) -> bool {
        self.lo > Self::NO_LO
    }

    /// Whether there is a largest value.
    pub fn has_hi(&self) -> bool {
        self.hi < Self::NO_HI
    }

    /// The limits changed by what holds for numbers; where there is none, there is none.
    fn limits(&self, lo: impl Fn(i64) -> i64, hi: impl Fn(i64) -> i64) -> (i64, i64) {
        let limits = |bound: &Bound| (lo(bound.lo), hi(bound.hi));
        let (low, high) = limits(self);
        (if self.has_lo() { low } else { Self::NO_LO }, if self.has_hi() { high } else { Self::NO_HI })
    }

    /// Decides the condition or brings it into a normal form: the constant of the expression goes
    /// into the limits, common factors and divisions go out, and `lo` and `hi` are no looser than the
    /// range of the expression. A limit equal to the range's needs no comparison: see
    /// [`Bound::needs_lo`] and [`Bound::needs_hi`].
    pub fn simplify(&self, ranges: &AxisRanges) -> BoundTruth {
        let mut bound = Bound { expr: self.expr.simplify(ranges), lo: self.lo, hi: self.hi };
        loop {
            let constant = bound.expr.constant;
            bound.expr.constant = 0;
            let without = |limit: i64| limit.saturating_sub(constant);
            (bound.lo, bound.hi) = bound.limits(without, without);
            let (lo, hi) = bound.expr.range(ranges);
            let (lo_known, hi_known) = (lo > -UNBOUNDED, hi < UNBOUNDED);
            let lo_decided = !bound.has_lo() || lo_known && lo >= bound.lo;
            let hi_decided = !bound.has_hi() || hi_known && hi < bound.hi;
            if bound.lo >= bound.hi || hi_known && hi < bound.lo || lo_known && lo >= bound.hi {
                return BoundTruth::Never;
            }
            if lo_decided && hi_decided {
                return BoundTruth::Always;
            }
            if let Some(next) = bound.reduced(lo_decided, hi_decided, ranges) {
                bound = next;
                continue;
            }
            if lo_decided {
                bound.lo = lo;
            }
            if hi_decided {
                bound.hi = hi + 1;
            }
            return BoundTruth::Depends(bound);
        }
    }

    /// Whether `expr >= lo` does not follow from the ranges.
    pub fn needs_lo(&self, ranges: &AxisRanges) -> bool {
        let (lo, _) = self.expr.range(ranges);
        self.has_lo() && (lo <= -UNBOUNDED || lo < self.lo)
    }

    /// Whether `expr < hi` does not follow from the ranges.
    pub fn needs_hi(&self, ranges: &AxisRanges) -> bool {
        let (_, hi) = self.expr.range(ranges);
        self.has_hi() && (hi >= UNBOUNDED || hi >= self.hi)
    }

    /// An equal condition on a simpler expression. The constant of the expression is 0.
    fn reduced(&self, lo_decided: bool, hi_decided: bool, ranges: &AxisRanges) -> Option<Bound> {
        let terms = self.expr.terms();
        // -e in lo..hi where e in 1 - hi..1 - lo
        if terms.iter().all(|(_, k)| *k < 0) {
            let lo = if self.has_hi() { 1i64.checked_sub(self.hi)? } else { Self::NO_LO };
            let hi = if self.has_lo() { 1i64.checked_sub(self.lo)? } else { Self::NO_HI };
            return Some(Bound { expr: self.expr.scale(-1), lo, hi });
        }
        // g * e in lo..hi
        let common = terms.iter().fold(0, |g, (_, k)| gcd(g, *k));
        if common > 1 {
            let (expr, _) = split_by_factor(&self.expr, common, ranges)?;
            let (lo, hi) = self.limits(|lo| div_ceil(lo, common), |hi| div_ceil(hi, common));
            return Some(Bound { expr, lo, hi });
        }
        // floor(e / c) in lo..hi where e in c * lo..c * hi
        if let [(Atom::Div(e, by), 1)] = terms {
            let (lo, hi) = self.limits(|lo| lo.saturating_mul(*by), |hi| hi.saturating_mul(*by));
            return Some(Bound { expr: (**e).clone(), lo, hi });
        }
        // g * e + fine in g * l..g * h where e in l..h
        for (_, k) in terms {
            let factor = k.abs();
            if factor > 1
                && (lo_decided || self.lo % factor == 0)
                && (hi_decided || self.hi % factor == 0)
                && let Some((expr, _)) = split_by_factor(&self.expr, factor, ranges)
                && expr.complexity() < self.expr.complexity()
            {
                let (lo, hi) = self.limits(|lo| lo.div_euclid(factor), |hi| div_ceil(hi, factor));
                return Some(Bound { expr, lo, hi });
            }
        }
        None
    }
}
