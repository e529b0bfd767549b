//! The rules that need ranges: division, remainder, and joining the two again.
//!
//! Every recursion here works on an expression of fewer atoms, or on as many atoms with a smaller
//! divisor, so that all of it terminates.

use smallvec::SmallVec;

use super::range::UNBOUNDED;
use super::{Atom, AxisId, AxisRanges, IndexExpr, Terms, gcd};

/// How often [`IndexExpr::simplify`] is repeated at most. Nearly every expression settles in the first.
const ROUNDS: usize = 4;

/// How deep trials to join a division and a remainder may nest: each costs further ones one level down.
const DEPTH: u32 = 3;

impl IndexExpr {
    /// Floor division by a positive constant, simplified.
    pub fn div(&self, by: i64, ranges: &AxisRanges) -> Self {
        debug_assert!(by > 0, "division of an index by {by}");
        let rules = Rules { ranges, depth: DEPTH };
        rules.divide(rules.recombine(rules.live(self.clone())), by.max(1))
    }

    /// The remainder of floor division by a positive constant, in `0..by`, simplified.
    pub fn modulo(&self, by: i64, ranges: &AxisRanges) -> Self {
        debug_assert!(by > 0, "remainder of an index by {by}");
        let rules = Rules { ranges, depth: DEPTH };
        rules.remainder(rules.recombine(rules.live(self.clone())), by.max(1))
    }

    /// The expression simplified as these ranges allow, from its innermost divisions outwards. Joins
    /// `c * (e / c) + e % c` to `e`, and drops axes of extent 1.
    pub fn simplify(&self, ranges: &AxisRanges) -> Self {
        let rules = Rules { ranges, depth: DEPTH };
        if self.is_linear() { rules.live(self.clone()) } else { rules.settle(self, None) }
    }

    /// The expression with an axis replaced everywhere, simplified.
    pub fn substitute(&self, axis: AxisId, by: &IndexExpr, ranges: &AxisRanges) -> Self {
        let rules = Rules { ranges, depth: DEPTH };
        if self.is_linear() && by.is_linear() {
            let mut sum = self.clone();
            let at = Atom::Axis(axis);
            if let Ok(i) = sum.terms.binary_search_by(|(a, _)| a.cmp(&at)) {
                let (_, k) = sum.terms.remove(i);
                sum.add_scaled(by, k);
            }
            return rules.live(sum);
        }
        rules.settle(self, Some((axis, by)))
    }

    /// The sum of the terms at other places than `at`, and the constant.
    fn without_term(&self, at: usize) -> IndexExpr {
        let mut terms = Terms::with_capacity(self.terms.len());
        terms.extend(self.terms.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, t)| t.clone()));
        IndexExpr { terms, constant: self.constant }
    }

    /// `self + by * other` unless a coefficient would saturate.
    fn plus(mut self, other: &IndexExpr, by: i64) -> Option<IndexExpr> {
        self.add_scaled(other, by).then_some(self)
    }

    /// `self * by` unless a coefficient would saturate.
    fn times(mut self, by: i64) -> Option<IndexExpr> {
        self.scale_in_place(by).then_some(self)
    }
}

/// Splits `e` into `by * quotient + rest` by its coefficients: those of the rest have the sign that
/// they had and magnitudes below `by`, its constant is in `0..by`.
fn split(e: IndexExpr, by: i64) -> (IndexExpr, IndexExpr) {
    let mut quotient = IndexExpr::constant(e.constant.div_euclid(by));
    let mut rest = IndexExpr::constant(e.constant.rem_euclid(by));
    for (atom, k) in e.terms {
        let (q, r) = (k / by, k % by);
        if r == 0 {
            quotient.terms.push((atom, q));
        } else {
            if q != 0 {
                quotient.terms.push((atom.clone(), q));
            }
            rest.terms.push((atom, r));
        }
    }
    (quotient, rest)
}

/// Moves multiples of `by` out of a rest until no coefficient has more than half the magnitude of
/// `by`: what moved, divided by `by`, and what remains. `None` if nothing moves.
fn centre(rest: &IndexExpr, by: i64) -> Option<(IndexExpr, IndexExpr)> {
    let large = |k: i64| k.unsigned_abs() > by as u64 / 2;
    if !rest.terms.iter().any(|(_, k)| large(*k)) {
        return None;
    }
    let mut moved = IndexExpr::zero();
    let mut centred = rest.clone();
    for (atom, k) in centred.terms.iter_mut().filter(|(_, k)| large(*k)) {
        moved.terms.push((atom.clone(), k.signum()));
        *k -= k.signum() * by;
    }
    Some((moved, centred))
}

/// The numbers that are tried as the common factor of the coarse terms, largest first.
fn factors(rest: &IndexExpr, by: i64) -> SmallVec<[i64; 8]> {
    let mut factors: SmallVec<[i64; 8]> = rest.terms.iter().map(|(_, k)| gcd(*k, by)).collect();
    factors.sort_unstable_by(|a, b| b.cmp(a));
    let mut common = 0;
    for i in 0..factors.len() {
        common = gcd(common, factors[i]);
        if common != factors[i] {
            factors.push(common);
        }
    }
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors.dedup();
    factors.retain(|g| *g > 1);
    factors
}

/// Splits `e` into `factor * coarse + fine` with `fine` in `0..factor`: the terms that `factor`
/// divides, and the others if their bounds let them.
pub(super) fn split_by_factor(
    e: &IndexExpr,
    factor: i64,
    ranges: &AxisRanges,
) -> Option<(IndexExpr, IndexExpr)> {
    let mut coarse = IndexExpr::zero();
    let mut fine = IndexExpr::constant(e.constant);
    for (atom, k) in &e.terms {
        if k % factor == 0 {
            coarse.terms.push((atom.clone(), k / factor));
        } else {
            fine.terms.push((atom.clone(), *k));
        }
    }
    let carry = match fine.as_constant() {
        Some(constant) => constant.div_euclid(factor),
        None => fine.bucket(factor, ranges)?,
    };
    coarse.constant = carry;
    fine.add_constant(-(carry as i128 * factor as i128)).then_some((coarse, fine))
}

/// Whether two atoms have an axis in common.
fn share_axis(a: &Atom, b: &Atom) -> bool {
    a.any_axis(&mut |axis| b.any_axis(&mut |other| other == axis))
}

/// The rules and what they know.
#[derive(Clone, Copy)]
struct Rules<'a> {
    ranges: &'a AxisRanges,
    /// How deep trials may still nest.
    depth: u32,
}

impl Rules<'_> {
    /// The sum without axes that take no value but 0.
    fn live(self, mut e: IndexExpr) -> IndexExpr {
        e.terms.retain(|(atom, _)| match atom {
            Atom::Axis(a) => self.ranges.extent(*a).is_none_or(|extent| extent > 1),
            Atom::Div(..) | Atom::Mod(..) => true,
        });
        e
    }

    /// Rebuilds until nothing changes.
    fn settle(self, e: &IndexExpr, replace: Option<(AxisId, &IndexExpr)>) -> IndexExpr {
        let mut current = self.rebuild(e, replace);
        for _ in 1..ROUNDS {
            if current.is_linear() {
                break;
            }
            let next = self.rebuild(&current, None);
            if next == current {
                break;
            }
            current = next;
        }
        current
    }

    /// Applies the rules to every atom, innermost first, with an axis replaced.
    fn rebuild(self, e: &IndexExpr, replace: Option<(AxisId, &IndexExpr)>) -> IndexExpr {
        let mut sum = IndexExpr::constant(e.constant);
        for (atom, k) in &e.terms {
            match (atom, replace) {
                (Atom::Axis(a), Some((axis, by))) if *a == axis => sum.add_scaled(by, *k),
                (Atom::Axis(_), _) => sum.add_term(atom, *k as i128),
                (Atom::Div(e, by), _) => sum.add_scaled(&self.divide(self.rebuild(e, replace), *by), *k),
                (Atom::Mod(e, by), _) => sum.add_scaled(&self.remainder(self.rebuild(e, replace), *by), *k),
            };
        }
        self.recombine(self.live(sum))
    }

    /// `floor(e / by)` of a sum that is recombined.
    fn divide(self, e: IndexExpr, by: i64) -> IndexExpr {
        if by == 1 {
            return e;
        }
        if let Some(constant) = e.as_constant() {
            return IndexExpr::constant(constant.div_euclid(by));
        }
        if let Some(bucket) = e.bucket(by, self.ranges) {
            return IndexExpr::constant(bucket);
        }
        let (mut quotient, mut rest) = split(e, by);
        if !quotient.terms.is_empty() {
            let (more, smaller) = split(self.recombine(rest), by);
            quotient.add_scaled(&more, 1);
            rest = smaller;
        }
        quotient.add_scaled(&self.divide_rest(rest, by), 1);
        self.recombine(quotient)
    }

    /// `floor(rest / by)` of a rest that [`split`] left.
    fn divide_rest(self, rest: IndexExpr, by: i64) -> IndexExpr {
        if let Some(constant) = rest.as_constant() {
            return IndexExpr::constant(constant.div_euclid(by));
        }
        if let Some(bucket) = rest.bucket(by, self.ranges) {
            return IndexExpr::constant(bucket);
        }
        if let Some((moved, centred)) = centre(&rest, by)
            && let Some(bucket) = centred.bucket(by, self.ranges)
        {
            return moved.offset(bucket);
        }
        // floor((g * coarse + fine) / (g * b)) = floor(coarse / b)
        for factor in factors(&rest, by) {
            if let Some((coarse, _)) = split_by_factor(&rest, factor, self.ranges) {
                return self.divide(coarse, by / factor);
            }
        }
        if let Some((numerator, by)) = flattened(&rest, by) {
            return self.divide(self.recombine(numerator), by);
        }
        // floor((e mod (b * c)) / c) = floor(e / c) mod b
        if let ([(Atom::Mod(e, modulus), 1)], 0) = (&rest.terms[..], rest.constant)
            && modulus % by == 0
        {
            return self.remainder(self.divide((**e).clone(), by), modulus / by);
        }
        let (rest, shift) = self.shifted(rest, by);
        let mut quotient = IndexExpr::atom(Atom::Div(Box::new(rest), by));
        quotient.constant = shift;
        quotient
    }

    /// `e mod by` of a sum that is recombined.
    fn remainder(self, e: IndexExpr, by: i64) -> IndexExpr {
        if by == 1 {
            return IndexExpr::zero();
        }
        if let Some(constant) = e.as_constant() {
            return IndexExpr::constant(constant.rem_euclid(by));
        }
        if let Some(rest) = self.within(&e, by) {
            return rest;
        }
        let (quotient, mut rest) = split(e, by);
        let mut changed = !quotient.terms.is_empty();
        while let Some(opened) = open_remainder(&rest, by) {
            (_, rest) = split(opened, by);
            changed = true;
        }
        if changed {
            (_, rest) = split(self.recombine(rest), by);
        }
        if rest.terms.is_empty() {
            return rest;
        }
        if let Some(rest) = self.within(&rest, by) {
            return rest;
        }
        if let Some((_, centred)) = centre(&rest, by)
            && let Some(rest) = self.within(&centred, by)
        {
            return rest;
        }
        // (g * coarse + fine) mod (g * b) = g * (coarse mod b) + fine
        for factor in factors(&rest, by) {
            if let Some((coarse, fine)) = split_by_factor(&rest, factor, self.ranges) {
                let coarse = self.remainder(coarse, by / factor);
                if let Some(sum) = fine.plus(&coarse, factor) {
                    return self.recombine(sum);
                }
            }
        }
        let (rest, _) = self.shifted(rest, by);
        IndexExpr::atom(Atom::Mod(Box::new(rest), by))
    }

    /// `e mod by` if the bounds of `e` allow only one quotient.
    fn within(self, e: &IndexExpr, by: i64) -> Option<IndexExpr> {
        let bucket = e.bucket(by, self.ranges)?;
        e.clone().plus(&IndexExpr::constant(bucket), -by)
    }

    /// `e` plus the multiple of `by` that puts its lower bound into `0..by`, and the quotient to make
    /// up for it.
    fn shifted(self, mut e: IndexExpr, by: i64) -> (IndexExpr, i64) {
        let (lo, _) = e.range(self.ranges);
        if lo <= -UNBOUNDED {
            return (e, 0);
        }
        let shift = lo.div_euclid(by);
        e.add_constant(-(shift as i128 * by as i128));
        (e, shift)
    }

    /// Joins divisions and remainders of the same expression, as long as that saves atoms.
    fn recombine(self, mut e: IndexExpr) -> IndexExpr {
        if self.depth == 0 || e.terms.len() < 2 || e.is_linear() {
            return e;
        }
        let rules = Rules { depth: self.depth - 1, ..self };
        let mut size = e.complexity();
        'again: loop {
            for at in 0..e.terms.len() {
                if let Some((better, smaller)) = rules.joined(&e, at, size) {
                    e = better;
                    size = smaller;
                    continue 'again;
                }
            }
            return e;
        }
    }

    /// A sum of fewer than `size` atoms equal to `e`, if the identity `f = c * floor(f / c) + f mod c`
    /// applied to the term at a place gives one; and its number of atoms.
    fn joined(self, e: &IndexExpr, at: usize, size: usize) -> Option<(IndexExpr, usize)> {
        let (atom, k) = &e.terms[at];
        // Only what is a multiple of what the identity adds can cancel, or what the atom divides.
        let worthwhile = |f: &IndexExpr, k: i64, step: i64| {
            e.terms.iter().enumerate().any(|(i, (other, by))| {
                let cancels = || {
                    let found = f.terms.binary_search_by(|(a, _)| a.cmp(other));
                    found.is_ok_and(|at| f.terms[at].1.checked_mul(-k) == Some(*by))
                };
                i != at && (by % step == 0 && share_axis(atom, other) || cancels())
            })
        };
        let accept = |sum: IndexExpr| {
            let smaller = sum.complexity();
            (smaller < size).then_some((sum, smaller))
        };
        match atom {
            Atom::Axis(_) => None,
            Atom::Div(f, c) => {
                if k % c != 0 {
                    return None;
                }
                let k = k / c;
                if !worthwhile(f, k, k) {
                    return None;
                }
                let remainder = self.remainder((**f).clone(), *c);
                accept(e.without_term(at).plus(f, k)?.plus(&remainder, -k)?)
            }
            Atom::Mod(f, c) => {
                let step = k.checked_mul(*c)?;
                if !worthwhile(f, *k, step) {
                    return None;
                }
                // f - c * floor(f / c)
                let low = (**f).clone().plus(&self.divide((**f).clone(), *c), c.checked_neg()?)?;
                let rest = e.without_term(at);
                if let Some(found) = rest.clone().plus(&low, *k).and_then(accept) {
                    return Some(found);
                }
                // f mod c + c * (h mod b) = (low + c * h) mod (c * b)
                for (i, (other, by)) in rest.terms.iter().enumerate() {
                    if *by == step
                        && let Atom::Mod(h, b) = other
                        && let Some(modulus) = c.checked_mul(*b)
                        && let Some(whole) = low.clone().plus(h, *c)
                        && whole.complexity() <= f.complexity() + h.complexity()
                        && let Some(whole) = self.remainder(whole, modulus).times(*k)
                        && let Some(found) = rest.without_term(i).plus(&whole, 1).and_then(accept)
                    {
                        return Some(found);
                    }
                }
                None
            }
        }
    }
}

/// `floor((floor(f / d) + l) / by) = floor((f + d * l) / (d * by))` for the one division in the sum
/// that occurs once: the new numerator and divisor.
fn flattened(rest: &IndexExpr, by: i64) -> Option<(IndexExpr, i64)> {
    let mut divisions =
        rest.terms.iter().enumerate().filter(|(_, (a, k))| *k == 1 && matches!(a, Atom::Div(..)));
    let (at, (atom, _)) = divisions.next()?;
    let Atom::Div(f, d) = atom else { return None };
    if divisions.next().is_some() {
        return None;
    }
    let divisor = d.checked_mul(by)?;
    let numerator = rest.without_term(at).times(*d)?.plus(f, 1)?;
    Some((numerator, divisor))
}

/// `r * (f mod d)` replaced by `r * f` for the first such term with `by` dividing `r * d`, which is
/// the same modulo `by`.
fn open_remainder(rest: &IndexExpr, by: i64) -> Option<IndexExpr> {
    rest.terms.iter().enumerate().find_map(|(at, (atom, k))| match atom {
        Atom::Mod(f, d) if (*k as i128 * *d as i128) % by as i128 == 0 => rest.without_term(at).plus(f, *k),
        _ => None,
    })
}
