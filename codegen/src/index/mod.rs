//! Integer index expressions over the axes of a kernel, kept in a normal form.
//!
//! An [`IndexExpr`] is a sum of `coefficient * atom` and a constant, where an atom is an axis, or
//! the floor division or remainder of another expression by a positive constant. Divisions and
//! remainders simplify with the help of the extents of the axes ([`AxisRanges`]), so that a
//! flattening undone by its unflattening gives back the plain axes:
//!
//! ```
//! use lazuli_codegen::index::{AxisId, AxisRanges, IndexExpr};
//! let (row, column) = (AxisId(0), AxisId(1));
//! let mut ranges = AxisRanges::new();
//! ranges.set(row, 6);
//! ranges.set(column, 4);
//! let flat = IndexExpr::axis(row).scale(4).add(&IndexExpr::axis(column));
//! assert_eq!(flat.div(4, &ranges), IndexExpr::axis(row));
//! assert_eq!(flat.modulo(4, &ranges), IndexExpr::axis(column));
//! // Through [8, 3] and back.
//! let back = flat.div(3, &ranges).scale(3).add(&flat.modulo(3, &ranges));
//! assert_eq!(back.simplify(&ranges), flat);
//! ```
//!
//! Coefficients and constants saturate at the limits of `i64`; no operation panics on overflow. A
//! rewriting rule whose result would saturate is not applied.

mod bound;
mod merge;
mod parse;
mod print;
mod range;
mod simplify;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use smallvec::SmallVec;

pub use bound::{Bound, BoundTruth};
pub use merge::merge_axes;
pub use range::AxisRanges;

/// An axis of a kernel's iteration space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AxisId(pub u32);

/// What an [`IndexExpr`] is a sum of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Atom {
    /// The value of an axis.
    Axis(AxisId),
    /// Floor division by a positive constant.
    Div(Box<IndexExpr>, i64),
    /// The remainder of floor division by a positive constant `c`, in `0..c`.
    Mod(Box<IndexExpr>, i64),
}

/// The terms of a sum; most index expressions have few.
type Terms = SmallVec<[(Atom, i64); 4]>;

/// A sum of `coefficient * atom` and a constant.
///
/// The terms are sorted by atom, no atom occurs twice, and no coefficient is zero. [`IndexExpr::add`]
/// and its like keep this much; [`IndexExpr::div`], [`IndexExpr::modulo`], [`IndexExpr::simplify`]
/// and [`IndexExpr::substitute`] also apply the rules that need [`AxisRanges`]. What they return
/// divides only numerators that are at least zero wherever a lower bound is known, so that C's
/// truncating division agrees with floor division.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexExpr {
    terms: Terms,
    constant: i64,
}

/// Cuts to `±i64::MAX`, so that negation never overflows; the flag tells whether the value fitted.
fn narrow(value: i128) -> (i64, bool) {
    let limit = i64::MAX as i128;
    (value.clamp(-limit, limit) as i64, (-limit..=limit).contains(&value))
}

/// The greatest common divisor of the magnitudes.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(i64::MAX)
}

impl IndexExpr {
    /// A constant.
    pub fn constant(v: i64) -> Self {
        IndexExpr { terms: Terms::new(), constant: narrow(v as i128).0 }
    }

    /// The constant 0.
    pub fn zero() -> Self {
        Self::constant(0)
    }

    /// The value of an axis.
    pub fn axis(a: AxisId) -> Self {
        Self::atom(Atom::Axis(a))
    }

    /// An atom taken once. Its expression is used as it is.
    pub(crate) fn atom(atom: Atom) -> Self {
        let mut terms = Terms::new();
        terms.push((atom, 1));
        IndexExpr { terms, constant: 0 }
    }

    /// The value, if no atom occurs.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The constant of the sum.
    pub fn constant_term(&self) -> i64 {
        self.constant
    }

    /// Shows `f` each coefficient, divisor and constant. What it changes must leave the sum in its normal form.
    pub(crate) fn each_number(&mut self, f: &mut dyn FnMut(&mut i64)) {
        for (atom, coefficient) in &mut self.terms {
            if let Atom::Div(inner, divisor) | Atom::Mod(inner, divisor) = atom {
                inner.each_number(f);
                f(divisor);
            }
            f(coefficient);
        }
        f(&mut self.constant);
    }

    /// The atoms and their coefficients, sorted by atom, none of them zero.
    pub fn terms(&self) -> &[(Atom, i64)] {
        &self.terms
    }

    /// `self + other`, without looking for a division and remainder to join: see [`IndexExpr::simplify`].
    pub fn add(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add_scaled(other, 1);
        sum
    }

    /// `self - other`; see [`IndexExpr::add`].
    pub fn sub(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add_scaled(other, -1);
        sum
    }

    /// `self * by`.
    pub fn scale(&self, by: i64) -> Self {
        let mut sum = self.clone();
        sum.scale_in_place(by);
        sum
    }

    /// `self + by`.
    pub fn offset(&self, by: i64) -> Self {
        let mut sum = self.clone();
        sum.add_constant(by as i128);
        sum
    }

    /// The sum without its constant.
    pub fn without_constant(&self) -> Self {
        IndexExpr { terms: self.terms.clone(), constant: 0 }
    }

    /// What is added and what is subtracted: two sums without negative coefficients, whose difference this is.
    pub fn by_sign(&self) -> (Self, Self) {
        let (added, subtracted): (Vec<_>, Vec<_>) = self.terms.iter().cloned().partition(|(_, k)| *k > 0);
        let subtracted = subtracted.into_iter().map(|(atom, k)| (atom, k.saturating_neg())).collect();
        let negative = IndexExpr { terms: subtracted, constant: self.constant.min(0).saturating_neg() };
        (IndexExpr { terms: added.into_iter().collect(), constant: self.constant.max(0) }, negative)
    }

    /// Every axis that occurs, inside divisions and remainders too.
    pub fn axes(&self) -> BTreeSet<AxisId> {
        let mut axes = BTreeSet::new();
        self.any_axis(&mut |axis| {
            axes.insert(axis);
            false
        });
        axes
    }

    /// Whether the axis occurs, inside divisions and remainders too.
    pub fn uses(&self, axis: AxisId) -> bool {
        self.any_axis(&mut |a| a == axis)
    }

    /// Whether `test` holds for an axis that occurs; stops at the first.
    fn any_axis(&self, test: &mut dyn FnMut(AxisId) -> bool) -> bool {
        self.terms.iter().any(|(atom, _)| atom.any_axis(test))
    }

    /// The coefficient of an axis: `Some(0)` if it does not occur, `None` if it occurs inside a
    /// division or remainder.
    pub fn coefficient(&self, axis: AxisId) -> Option<i64> {
        let mut coefficient = 0;
        for (atom, k) in &self.terms {
            match atom {
                Atom::Axis(a) if *a == axis => coefficient = *k,
                Atom::Axis(_) => {}
                Atom::Div(e, _) | Atom::Mod(e, _) if e.uses(axis) => return None,
                Atom::Div(..) | Atom::Mod(..) => {}
            }
        }
        Some(coefficient)
    }

    /// The smallest step, in magnitude, that a term takes from one position of the axis to the next; 0 if the axis does not occur.
    /// A remainder steps as what it is of, but for where it wraps around, and a quotient by at least 1, where it changes.
    pub fn least_step(&self, axis: AxisId) -> u64 {
        let step = |(atom, k): &(Atom, i64)| {
            let own = match atom {
                Atom::Axis(a) => u64::from(*a == axis),
                Atom::Div(e, by) => e.least_step(axis).div_ceil(by.unsigned_abs()),
                Atom::Mod(e, _) => e.least_step(axis),
            };
            own.saturating_mul(k.unsigned_abs())
        };
        self.terms.iter().map(step).filter(|&step| step > 0).min().unwrap_or(0)
    }

    /// What varies along these axes, if no division or remainder is of others as well; but `fixed` ones do not count.
    pub(crate) fn part_along(&self, axes: &[AxisId], fixed: impl Fn(AxisId) -> bool) -> Option<IndexExpr> {
        let mut terms = Terms::new();
        for (atom, k) in &self.terms {
            let (mut of_these, mut of_others) = (false, false);
            atom.any_axis(&mut |axis| {
                let is_one = axes.contains(&axis);
                (of_these, of_others) = (of_these | is_one, of_others | !(is_one || fixed(axis)));
                false
            });
            match (of_these, of_others) {
                (true, true) => return None,
                (true, false) => terms.push((atom.clone(), *k)),
                (false, _) => {}
            }
        }
        Some(IndexExpr { terms, constant: 0 })
    }

    /// The greatest common divisor of all coefficients and of the constant; 0 for the zero expression.
    /// The value of the expression is always a multiple of it.
    pub fn gcd_of_coefficients(&self) -> i64 {
        self.terms.iter().fold(gcd(self.constant, 0), |g, (_, k)| gcd(g, *k))
    }

    /// The value where the axes have the given values. Sums wrap on overflow.
    pub fn evaluate(&self, value_of: &dyn Fn(AxisId) -> i64) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (atom, k)| {
            let value = match atom {
                Atom::Axis(a) => value_of(*a),
                Atom::Div(e, c) => e.evaluate(value_of).div_euclid(*c),
                Atom::Mod(e, c) => e.evaluate(value_of).rem_euclid(*c),
            };
            sum.wrapping_add(k.wrapping_mul(value))
        })
    }

    /// How many atoms occur, those inside divisions and remainders included.
    pub fn complexity(&self) -> usize {
        self.terms
            .iter()
            .map(|(atom, _)| match atom {
                Atom::Axis(_) => 1,
                Atom::Div(e, _) | Atom::Mod(e, _) => 1 + e.complexity(),
            })
            .sum()
    }

    /// Whether a division or remainder occurs of what may be less than zero, as far as the ranges tell:
    /// C would round it the other way.
    pub fn divides_below_zero(&self, ranges: &AxisRanges) -> bool {
        self.terms.iter().any(|(atom, _)| match atom {
            Atom::Axis(_) => false,
            Atom::Div(e, _) | Atom::Mod(e, _) => e.range(ranges).0 < 0 || e.divides_below_zero(ranges),
        })
    }

    /// The same with other axes in their places. Nothing is simplified: that could take ranges.
    pub fn renamed(&self, name: &dyn Fn(AxisId) -> AxisId) -> IndexExpr {
        let mut sum = IndexExpr::constant(self.constant);
        for (atom, k) in &self.terms {
            let atom = match atom {
                Atom::Axis(axis) => Atom::Axis(name(*axis)),
                Atom::Div(e, by) => Atom::Div(Box::new(e.renamed(name)), *by),
                Atom::Mod(e, by) => Atom::Mod(Box::new(e.renamed(name)), *by),
            };
            sum.add_term(&atom, i128::from(*k));
        }
        sum
    }

    /// Lets `change` change each number: factors, divisors, and constants if these count. What it is told must not be zero
    /// afterwards if it was not, nor the same where it was different.
    pub(crate) fn change_numbers(&mut self, constants: bool, change: &mut dyn FnMut(&mut i64)) {
        for (atom, k) in &mut self.terms {
            change(k);
            if let Atom::Div(e, by) | Atom::Mod(e, by) = atom {
                e.change_numbers(constants, &mut *change);
                change(by);
            }
        }
        if constants {
            change(&mut self.constant);
        }
    }

    /// Whether no division or remainder occurs.
    fn is_linear(&self) -> bool {
        self.terms.iter().all(|(atom, _)| matches!(atom, Atom::Axis(_)))
    }

    /// Adds to the constant; false if it saturated.
    fn add_constant(&mut self, by: i128) -> bool {
        let (constant, exact) = narrow(self.constant as i128 + by);
        self.constant = constant;
        exact
    }

    /// Adds `by * other`; false if a coefficient saturated.
    fn add_scaled(&mut self, other: &IndexExpr, by: i64) -> bool {
        let mut exact = self.add_constant(other.constant as i128 * by as i128);
        for (atom, k) in &other.terms {
            exact &= self.add_term(atom, *k as i128 * by as i128);
        }
        exact
    }

    /// Adds `k * atom`; false if the coefficient saturated.
    fn add_term(&mut self, atom: &Atom, k: i128) -> bool {
        match self.terms.binary_search_by(|(a, _)| a.cmp(atom)) {
            Ok(at) => {
                let (sum, exact) = narrow(self.terms[at].1 as i128 + k);
                if sum == 0 {
                    self.terms.remove(at);
                } else {
                    self.terms[at].1 = sum;
                }
                exact
            }
            Err(at) => {
                let (k, exact) = narrow(k);
                if k != 0 {
                    self.terms.insert(at, (atom.clone(), k));
                }
                exact
            }
        }
    }

    /// Multiplies by a constant; false if a coefficient saturated.
    fn scale_in_place(&mut self, by: i64) -> bool {
        if by == 0 {
            *self = Self::zero();
            return true;
        }
        let mut exact = true;
        for value in self.terms.iter_mut().map(|(_, k)| k).chain([&mut self.constant]) {
            let (scaled, fits) = narrow(*value as i128 * by as i128);
            *value = scaled;
            exact &= fits;
        }
        exact
    }
}

impl Atom {
    /// Whether `test` holds for an axis that occurs; stops at the first.
    fn any_axis(&self, test: &mut dyn FnMut(AxisId) -> bool) -> bool {
        match self {
            Atom::Axis(a) => test(*a),
            Atom::Div(e, _) | Atom::Mod(e, _) => e.any_axis(test),
        }
    }
}

impl From<AxisId> for IndexExpr {
    fn from(axis: AxisId) -> Self {
        IndexExpr::axis(axis)
    }
}
