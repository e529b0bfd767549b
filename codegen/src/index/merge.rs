//! Merging two axes into one where every expression steps through them contiguously.

use super::{Atom, AxisId, IndexExpr, Terms};

impl IndexExpr {
    /// Whether `outer * inner_extent + inner` can be one axis in this expression: in every sum, inside
    /// divisions and remainders too, `outer` has `inner_extent` times the coefficient of `inner`, once
    /// what a division has pulled out of its numerator is put back. True of an expression that uses
    /// neither.
    pub fn can_merge(&self, outer: AxisId, inner: AxisId, inner_extent: i64) -> bool {
        self.merged(outer, inner, inner_extent, outer).is_some()
    }

    /// The expression with `outer * inner_extent + inner` replaced by the axis `new`, or `None` if
    /// [`IndexExpr::can_merge`] denies it. `new` may be `outer` or `inner`; its extent is the product
    /// of theirs. Divisions are not simplified: the ranges for that are the caller's to update.
    pub fn merged(&self, outer: AxisId, inner: AxisId, inner_extent: i64, new: AxisId) -> Option<IndexExpr> {
        if !self.uses(outer) && !self.uses(inner) {
            return Some(self.clone());
        }
        let (merged, _) = Merge { outer, inner, inner_extent, new }.sum(self, None)?;
        Some(merged)
    }
}

/// Merges `outer` and `inner` into one axis with the id `outer` in all expressions, or leaves all as
/// they are and returns false if one of them denies it.
pub fn merge_axes(exprs: &mut [&mut IndexExpr], outer: AxisId, inner: AxisId, inner_extent: i64) -> bool {
    let merged: Option<Vec<_>> = exprs.iter().map(|e| e.merged(outer, inner, inner_extent, outer)).collect();
    let Some(merged) = merged else { return false };
    for (e, merged) in exprs.iter_mut().zip(merged) {
        **e = merged;
    }
    true
}

#[derive(Clone, Copy)]
struct Merge {
    outer: AxisId,
    inner: AxisId,
    inner_extent: i64,
    new: AxisId,
}

impl Merge {
    /// The merged form of `e + excess * divisor * outer`, and the excess. A sum that nothing divides
    /// has no excess; the quotient of one that is divided grows by `excess * outer`.
    fn sum(self, e: &IndexExpr, divisor: Option<i64>) -> Option<(IndexExpr, i64)> {
        let (mut by_outer, mut by_inner) = (0i64, 0i64);
        let mut merged = IndexExpr { terms: Terms::new(), constant: e.constant };
        for (atom, k) in &e.terms {
            let atom = match atom {
                Atom::Axis(a) if *a == self.outer => {
                    by_outer = by_outer.checked_add(*k)?;
                    continue;
                }
                Atom::Axis(a) if *a == self.inner => {
                    by_inner = *k;
                    Atom::Axis(self.new)
                }
                Atom::Axis(a) => Atom::Axis(*a),
                Atom::Div(e, by) => {
                    let (e, excess) = self.sum(e, Some(*by))?;
                    by_outer = by_outer.checked_sub(k.checked_mul(excess)?)?;
                    Atom::Div(Box::new(e), *by)
                }
                Atom::Mod(e, by) => Atom::Mod(Box::new(self.sum(e, Some(*by))?.0), *by),
            };
            merged.add_term(&atom, *k as i128);
        }
        let missing = by_inner.checked_mul(self.inner_extent)?.checked_sub(by_outer)?;
        match divisor {
            _ if missing == 0 => Some((merged, 0)),
            // A negative step might take the numerator below zero.
            Some(divisor) if by_inner > 0 && missing % divisor == 0 => Some((merged, missing / divisor)),
            _ => None,
        }
    }
}
