//! Laws of index expressions, checked point by point against naive evaluation.

use proptest::prelude::*;

use super::{Atom, AxisId, AxisRanges, Bound, BoundTruth, IndexExpr, merge_axes};

/// An expression as written, before any rule has seen it.
#[derive(Clone, Debug)]
enum Tree {
    Axis(u32),
    Constant(i64),
    Add(Box<Tree>, Box<Tree>),
    Sub(Box<Tree>, Box<Tree>),
    Scale(Box<Tree>, i64),
    Div(Box<Tree>, i64),
    Mod(Box<Tree>, i64),
}

impl Tree {
    fn evaluate(&self, point: &[i64]) -> i64 {
        match self {
            Tree::Axis(a) => point[*a as usize % point.len()],
            Tree::Constant(v) => *v,
            Tree::Add(a, b) => a.evaluate(point) + b.evaluate(point),
            Tree::Sub(a, b) => a.evaluate(point) - b.evaluate(point),
            Tree::Scale(a, by) => a.evaluate(point) * by,
            Tree::Div(a, by) => a.evaluate(point).div_euclid(*by),
            Tree::Mod(a, by) => a.evaluate(point).rem_euclid(*by),
        }
    }

    fn build(&self, axes: usize, ranges: &AxisRanges) -> IndexExpr {
        match self {
            Tree::Axis(a) => IndexExpr::axis(AxisId(a % axes as u32)),
            Tree::Constant(v) => IndexExpr::constant(*v),
            Tree::Add(a, b) => a.build(axes, ranges).add(&b.build(axes, ranges)),
            Tree::Sub(a, b) => a.build(axes, ranges).sub(&b.build(axes, ranges)),
            Tree::Scale(a, by) => a.build(axes, ranges).scale(*by),
            Tree::Div(a, by) => a.build(axes, ranges).div(*by, ranges),
            Tree::Mod(a, by) => a.build(axes, ranges).modulo(*by, ranges),
        }
    }
}

fn divisor() -> impl Strategy<Value = i64> {
    prop_oneof![1..=9i64, Just(12), Just(16), Just(24)]
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![4 => (0..4u32).prop_map(Tree::Axis), 1 => (-20..20i64).prop_map(Tree::Constant)];
    leaf.prop_recursive(6, 24, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::Add(Box::new(a), Box::new(b))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::Sub(Box::new(a), Box::new(b))),
            2 => (inner.clone(), prop_oneof![-9..9i64, divisor()])
                .prop_map(|(a, by)| Tree::Scale(Box::new(a), by)),
            2 => (inner.clone(), divisor()).prop_map(|(a, by)| Tree::Div(Box::new(a), by)),
            2 => (inner, divisor()).prop_map(|(a, by)| Tree::Mod(Box::new(a), by)),
        ]
    })
}

fn extents() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(prop_oneof![1..=6i64, Just(8)], 1..=4)
}

fn ranges_of(extents: &[i64]) -> AxisRanges {
    let mut ranges = AxisRanges::new();
    for (a, extent) in extents.iter().enumerate() {
        ranges.set(AxisId(a as u32), *extent as u64);
    }
    ranges
}

fn points(extents: &[i64]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![Vec::new()], |points, extent| {
        let longer = |p: &Vec<i64>, v| p.iter().copied().chain([v]).collect();
        points.iter().flat_map(|p| (0..*extent).map(move |v| longer(p, v))).collect()
    })
}

fn at(e: &IndexExpr, point: &[i64]) -> i64 {
    e.evaluate(&|a| point[a.0 as usize])
}

fn axis(a: u32) -> IndexExpr {
    IndexExpr::axis(AxisId(a))
}

/// Sorted, merged, without zeros, within sums at every level.
fn assert_normal(e: &IndexExpr) {
    assert!(e.terms().is_sorted_by(|a, b| a.0 < b.0), "unsorted: {e}");
    for (atom, k) in e.terms() {
        assert_ne!(*k, 0, "zero coefficient: {e}");
        if let Atom::Div(inner, by) | Atom::Mod(inner, by) = atom {
            assert!(*by > 1, "trivial divisor: {e}");
            assert!(inner.as_constant().is_none(), "constant numerator: {e}");
            assert_normal(inner);
        }
    }
}

fn assert_numerators_not_negative(e: &IndexExpr, ranges: &AxisRanges) {
    for (atom, _) in e.terms() {
        if let Atom::Div(inner, _) | Atom::Mod(inner, _) = atom {
            assert!(inner.range(ranges).0 >= 0, "negative numerator: {e}");
            assert_numerators_not_negative(inner, ranges);
        }
    }
}

/// Evaluates C text by C's rules, in arithmetic modulo 2^32 if unsigned.
struct CText<'a> {
    text: &'a [u8],
    point: &'a [i64],
    unsigned: bool,
}

impl CText<'_> {
    fn evaluate(text: &str, point: &[i64], unsigned: bool) -> i64 {
        let mut c = CText { text: text.as_bytes(), point, unsigned };
        let value = c.sum();
        assert!(c.text.is_empty(), "left over of {text}");
        if unsigned { value as u32 as i32 as i64 } else { value }
    }

    fn wrap(&self, value: i64) -> i64 {
        if self.unsigned { value as u32 as i64 } else { value }
    }

    fn take(&mut self, options: &[u8]) -> Option<u8> {
        while let [b' ', rest @ ..] = self.text {
            self.text = rest;
        }
        let (first, rest) = self.text.split_first()?;
        options.contains(first).then(|| {
            self.text = rest;
            *first
        })
    }

    fn sum(&mut self) -> i64 {
        let mut value = self.product();
        while let Some(op) = self.take(b"+-") {
            let by = self.product();
            value = self.wrap(if op == b'+' { value + by } else { value - by });
        }
        value
    }

    fn product(&mut self) -> i64 {
        let mut value = self.unary();
        while let Some(op) = self.take(b"*/%") {
            let by = self.unary();
            value = self.wrap(match op {
                b'*' => value * by,
                b'/' => value / by,
                _ => value % by,
            });
        }
        value
    }

    fn unary(&mut self) -> i64 {
        if self.take(b"-").is_some() {
            let value = self.unary();
            return self.wrap(-value);
        }
        if self.take(b"(").is_some() {
            let value = self.sum();
            assert!(self.take(b")").is_some());
            return value;
        }
        let is_axis = self.take(b"i").is_some();
        let digits = self.text.iter().take_while(|b| b.is_ascii_digit()).count();
        let number: i64 = std::str::from_utf8(&self.text[..digits]).unwrap().parse().unwrap();
        self.text = &self.text[digits..];
        if is_axis {
            return self.point[number as usize];
        }
        assert_eq!(self.take(b"u").is_some(), self.unsigned);
        number
    }
}

fn name(axis: AxisId) -> String {
    format!("i{}", axis.0)
}

/// The indices of a shape as expressions of the flat index.
fn unflatten(flat: &IndexExpr, shape: &[i64], ranges: &AxisRanges) -> Vec<IndexExpr> {
    let mut stride: i64 = shape.iter().product();
    shape
        .iter()
        .map(|extent| {
            stride /= extent;
            flat.div(stride, ranges).modulo(*extent, ranges)
        })
        .collect()
}

fn flatten(indices: &[IndexExpr], shape: &[i64]) -> IndexExpr {
    indices.iter().zip(shape).fold(IndexExpr::zero(), |flat, (index, extent)| flat.scale(*extent).add(index))
}

/// Shapes with the same number of elements: a list of factors, cut in several ways.
fn shapes() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let factors = prop::collection::vec(prop_oneof![Just(2i64), Just(3), Just(4), Just(5)], 1..=4);
    factors.prop_flat_map(|factors| {
        let shape =
            (Just(factors.clone()).prop_shuffle(), prop::collection::vec(any::<bool>(), factors.len()))
                .prop_map(|(factors, cuts)| {
                    let mut shape = vec![1];
                    for (factor, cut) in factors.iter().zip(cuts) {
                        match shape.last_mut() {
                            Some(last) if !cut => *last *= factor,
                            _ => shape.push(*factor),
                        }
                    }
                    shape
                });
        prop::collection::vec(shape, 2..=4)
    })
}

/// From row to row within a page, not from page to page.
#[test]
fn the_least_step_is_that_within_a_page() {
    let [position, lane] = [AxisId(0), AxisId(1)];
    let ranges = ranges_of(&[512, 64]);
    let at = IndexExpr::axis(position);
    let paged = |page: i64, row: i64| {
        let page = at.div(16, &ranges).scale(page);
        page.add(&at.modulo(16, &ranges).scale(row)).add(&IndexExpr::axis(lane))
    };
    assert_eq!(paged(8192, 512).least_step(position), 512);
    assert_eq!(paged(8192, 1).least_step(position), 1);
    assert_eq!(paged(0, 512).least_step(lane), 1);
    assert_eq!(at.scale(-32).div(2, &ranges).least_step(position), 16);
    assert_eq!(at.div(2, &ranges).least_step(position), 1);
    assert_eq!(at.least_step(lane), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn building_keeps_every_value((tree, extents) in (tree(), extents())) {
        let e = tree.build(extents.len(), &ranges_of(&extents));
        assert_normal(&e);
        for point in points(&extents) {
            prop_assert_eq!(at(&e, &point), tree.evaluate(&point), "{} at {:?}", e, point);
        }
    }

    #[test]
    fn building_without_extents_keeps_every_value((tree, extents) in (tree(), extents())) {
        let e = tree.build(extents.len(), &AxisRanges::new());
        let simplified = e.simplify(&ranges_of(&extents));
        assert_normal(&e);
        assert_normal(&simplified);
        for point in points(&extents) {
            let value = tree.evaluate(&point);
            prop_assert_eq!(at(&e, &point), value, "{} at {:?}", e, point);
            prop_assert_eq!(at(&simplified, &point), value, "{} to {} at {:?}", e, simplified, point);
        }
    }

    #[test]
    fn range_contains_every_value((tree, extents) in (tree(), extents())) {
        let ranges = ranges_of(&extents);
        for e in [tree.build(extents.len(), &ranges), tree.build(extents.len(), &AxisRanges::new())] {
            let (lo, hi) = e.range(&ranges);
            for point in points(&extents) {
                prop_assert!((lo..=hi).contains(&at(&e, &point)), "{} at {:?} in {}..={}", e, point, lo, hi);
            }
        }
    }

    #[test]
    fn simplify_is_idempotent((tree, extents) in (tree(), extents())) {
        let ranges = ranges_of(&extents);
        for e in [tree.build(extents.len(), &ranges), tree.build(extents.len(), &AxisRanges::new())] {
            let once = e.simplify(&ranges);
            prop_assert_eq!(&once, &once.simplify(&ranges), "{} simplified to {}", e, once);
        }
    }

    #[test]
    fn numerators_are_not_negative((tree, extents) in (tree(), extents())) {
        let ranges = ranges_of(&extents);
        let e = tree.build(extents.len(), &ranges);
        assert_numerators_not_negative(&e, &ranges);
        assert_numerators_not_negative(&e.simplify(&ranges), &ranges);
    }

    #[test]
    fn text_means_the_same_in_c((tree, extents) in (tree(), extents())) {
        let e = tree.build(extents.len(), &ranges_of(&extents));
        let (signed, unsigned) = (e.to_text(&name, ""), e.to_text(&name, "u"));
        for point in points(&extents) {
            let value = at(&e, &point);
            prop_assert_eq!(CText::evaluate(&signed, &point, false), value, "{} at {:?}", signed, point);
            prop_assert_eq!(CText::evaluate(&unsigned, &point, true), value, "{} at {:?}", unsigned, point);
        }
    }

    #[test]
    fn substitute_replaces_everywhere((tree, by, extents) in (tree(), tree(), extents())) {
        let ranges = ranges_of(&extents);
        // Built without extents, as the substitute may leave those of the axis.
        let e = tree.build(extents.len(), &AxisRanges::new());
        // A value that is never negative, as the values of an unbounded axis are not.
        let by = by.build(extents.len(), &ranges);
        let by = by.offset(-by.range(&ranges).0.min(0));
        let substituted = e.substitute(AxisId(0), &by, &ranges);
        assert_normal(&substituted);
        for point in points(&extents) {
            let mut moved = point.clone();
            moved[0] = at(&by, &point);
            prop_assert_eq!(at(&substituted, &point), tree.evaluate(&moved), "{} at {:?}", substituted, point);
        }
    }

    #[test]
    fn axes_are_those_that_matter((tree, extents) in (tree(), extents())) {
        let e = tree.build(extents.len(), &ranges_of(&extents));
        let axes = e.axes();
        for a in 0..extents.len() {
            let id = AxisId(a as u32);
            prop_assert_eq!(axes.contains(&id), e.uses(id));
            for point in points(&extents) {
                let mut moved = point.clone();
                moved[a] = 0;
                let step = at(&e, &point) - at(&e, &moved);
                if let Some(k) = e.coefficient(id) {
                    prop_assert_eq!(step, k * point[a], "{}", e);
                    prop_assert_eq!(e.least_step(id), k.unsigned_abs());
                } else {
                    prop_assert!(e.uses(id) && e.least_step(id) > 0);
                }
            }
        }
    }

    #[test]
    fn values_are_multiples_of_the_gcd((tree, extents) in (tree(), extents())) {
        let e = tree.build(extents.len(), &ranges_of(&extents));
        let g = e.gcd_of_coefficients();
        prop_assert_eq!(g == 0, e == IndexExpr::zero());
        for point in points(&extents) {
            prop_assert!(g == 0 || at(&e, &point) % g == 0, "{} at {:?}", e, point);
        }
    }

    #[test]
    fn merged_axes_step_through_both((tree, extents, k) in (tree(), extents(), 1..6i64)) {
        // Axis 0 is split into an axis 0 and an axis 9 inside of it.
        let (outer, inner, merged) = (AxisId(0), AxisId(9), AxisId(20));
        let mut ranges = ranges_of(&extents);
        ranges.set(inner, k as u64);
        let e = tree.build(extents.len(), &AxisRanges::new());
        let mut pair = e.substitute(outer, &axis(0).scale(k).add(&axis(9)), &AxisRanges::new());
        prop_assume!(pair.uses(outer) == pair.uses(inner));
        let before = pair.clone();
        if let Some(one) = pair.merged(outer, inner, k, merged) {
            assert_normal(&one);
            prop_assert!(!one.uses(outer) && !one.uses(inner));
            ranges.set(merged, (extents[0] * k) as u64);
            assert_numerators_not_negative(&one.simplify(&ranges), &ranges);
            for point in points(&extents) {
                for low in 0..k {
                    let value_of = |a: AxisId| if a == inner { low } else { point[a.0 as usize] };
                    let merged_value = |a: AxisId| match a {
                        AxisId(20) => point[0] * k + low,
                        a => value_of(a),
                    };
                    prop_assert_eq!(one.evaluate(&merged_value), before.evaluate(&value_of));
                }
            }
            prop_assert!(merge_axes(&mut [&mut pair], outer, inner, k));
            prop_assert!(!pair.uses(inner));
        } else {
            prop_assert!(!merge_axes(&mut [&mut pair], outer, inner, k));
            prop_assert_eq!(pair, before);
        }
    }

    #[test]
    fn bounds_keep_their_truth(
        (tree, extents, lo, size, sides) in (tree(), extents(), -20..20i64, 0..30i64, 0..4)
    ) {
        let ranges = ranges_of(&extents);
        let lo = if sides == 1 { Bound::NO_LO } else { lo };
        let hi = if sides == 2 { Bound::NO_HI } else { lo.max(-20) + size };
        let bound = Bound { expr: tree.build(extents.len(), &ranges), lo, hi };
        let truth = bound.simplify(&ranges);
        for point in points(&extents) {
            let holds = |b: &Bound| (b.lo..b.hi).contains(&at(&b.expr, &point));
            let simplified = match &truth {
                BoundTruth::Always => true,
                BoundTruth::Never => false,
                BoundTruth::Depends(b) => {
                    let value = at(&b.expr, &point);
                    let needed = (!b.needs_lo(&ranges) || value >= b.lo) && (!b.needs_hi(&ranges) || value < b.hi);
                    prop_assert_eq!(needed, holds(b), "{:?}", b);
                    holds(b)
                }
            };
            prop_assert_eq!(simplified, holds(&bound), "{:?} to {:?} at {:?}", bound, truth, point);
        }
        if let BoundTruth::Depends(b) = &truth {
            prop_assert_eq!(b.expr.constant_term(), 0);
            prop_assert!(b.needs_lo(&ranges) || b.needs_hi(&ranges));
            prop_assert_eq!(b.simplify(&ranges), truth);
        }
    }

    #[test]
    fn reshapes_come_back_to_the_plain_axes(shapes in shapes()) {
        let first = &shapes[0];
        let ranges = ranges_of(first);
        let start: Vec<_> = (0..first.len() as u32).map(axis).collect();
        let mut flat = flatten(&start, first);
        for shape in &shapes[1..] {
            let indices = unflatten(&flat, shape, &ranges);
            flat = flatten(&indices, shape);
        }
        let back = unflatten(&flat, first, &ranges);
        for (a, (index, extent)) in back.iter().zip(first).enumerate() {
            let expected = if *extent == 1 { IndexExpr::zero() } else { axis(a as u32) };
            prop_assert_eq!(index, &expected);
        }
    }

    #[test]
    fn reshapes_of_an_opaque_flat_index_join(shapes in shapes()) {
        // Neither the flat index nor its parts are known to be linear in an axis of bounded extent.
        let ranges = AxisRanges::new();
        let start = axis(0).add(&axis(1).scale(7));
        let mut flat = start.modulo(shapes[0].iter().product(), &ranges);
        let expected = flat.clone();
        for shape in &shapes {
            flat = flatten(&unflatten(&flat, shape, &ranges), shape).simplify(&ranges);
        }
        prop_assert_eq!(flat, expected);
    }

    #[test]
    fn huge_numbers_do_not_overflow(
        (tree, a, b) in (tree(), any::<i64>(), any::<i64>()), by in 1..=i64::MAX, extent in any::<u64>()
    ) {
        let mut ranges = AxisRanges::new();
        ranges.set(AxisId(0), extent);
        let e = tree.build(3, &ranges).scale(a).offset(b);
        for e in [e.div(by, &ranges), e.modulo(by, &ranges), e.substitute(AxisId(0), &e, &ranges), e] {
            let (lo, hi) = e.range(&ranges);
            prop_assert!(-(1 << 62) <= lo && lo <= hi && hi <= 1 << 62);
            let e = e.simplify(&ranges).add(&e).sub(&e.scale(b));
            let _ = (e.evaluate(&|_| a), e.gcd_of_coefficients(), e.to_string());
            let _ = Bound { expr: e, lo: a, hi: b }.simplify(&ranges);
        }
    }
}

#[test]
fn text_puts_sums_in_parentheses_and_subtracts_last() {
    let ranges = ranges_of(&[64, 128, 1000]);
    let text = |e: &IndexExpr| e.to_text(&name, "u");
    let flat = axis(0).scale(128).add(&axis(1));
    assert_eq!(text(&flat.offset(3)), "i0 * 128u + i1 + 3u");
    assert_eq!(text(&IndexExpr::zero()), "0u");
    assert_eq!(text(&IndexExpr::constant(-3)), "-3u");
    assert_eq!(text(&axis(1).offset(3).sub(&axis(0).scale(2))), "i1 + 3u - i0 * 2u");
    assert_eq!(text(&axis(0).scale(-2).offset(-1)), "-i0 * 2u - 1u");
    assert_eq!(text(&axis(2).div(8, &ranges).scale(-1)), "-(i2 / 8u)");
    assert_eq!(text(&axis(2).add(&axis(1)).div(8, &ranges)), "(i1 + i2) / 8u");
    assert_eq!(text(&axis(2).div(8, &ranges).modulo(4, &ranges).scale(16)), "i2 / 8u % 4u * 16u");
    assert_eq!(text(&axis(2).scale(3).div(4, &ranges)), "i2 * 3u / 4u");
    assert_eq!(axis(1).offset(-1).div(2, &ranges).to_string(), "(a1 + 1) / 2 - 1");
}

#[test]
fn multiples_and_fine_parts_leave_a_division() {
    let ranges = ranges_of(&[64, 32, 4]);
    let e = axis(0).scale(128).add(&axis(1).scale(4)).add(&axis(2));
    assert_eq!(e.div(16, &ranges).to_string(), "a0 * 8 + a1 / 4");
    assert_eq!(e.modulo(16, &ranges).to_string(), "a2 + a1 % 4 * 4");
    assert_eq!(e.div(128, &ranges), axis(0));
    assert_eq!(e.modulo(4, &ranges), axis(2));
    // Reversed and shifted axes.
    assert_eq!(axis(0).scale(4).sub(&axis(2)).offset(3).div(4, &ranges), axis(0));
    assert_eq!(axis(0).scale(4).add(&axis(2).scale(3)).offset(3).modulo(4, &ranges).to_string(), "3 - a2");
}

#[test]
fn nested_divisions_and_remainders_become_one() {
    let ranges = AxisRanges::new();
    assert_eq!(axis(0).div(4, &ranges).div(3, &ranges), axis(0).div(12, &ranges));
    assert_eq!(axis(0).modulo(12, &ranges).modulo(4, &ranges), axis(0).modulo(4, &ranges));
    assert_eq!(axis(0).modulo(12, &ranges).div(4, &ranges), axis(0).div(4, &ranges).modulo(3, &ranges));
    let part = axis(0).sub(&axis(0).div(4, &ranges).scale(4)).simplify(&ranges);
    assert_eq!(part, axis(0).modulo(4, &ranges));
    let part = axis(0).sub(&axis(0).modulo(4, &ranges)).simplify(&ranges);
    assert_eq!(part, axis(0).div(4, &ranges).scale(4));
}

#[test]
fn division_and_remainder_join_with_a_common_factor() {
    let ranges = AxisRanges::new();
    let e = axis(0).add(&axis(1).scale(3));
    let joined = e.div(8, &ranges).scale(40).add(&e.modulo(8, &ranges).scale(5)).add(&axis(2));
    assert_eq!(joined.simplify(&ranges), e.scale(5).add(&axis(2)));
}

#[test]
fn known_extents_simplify_what_was_built_without() {
    let e = axis(0).scale(8).add(&axis(1));
    let built = e.div(8, &AxisRanges::new());
    assert_eq!(built.to_string(), "a0 + a1 / 8");
    assert_eq!(built.simplify(&ranges_of(&[5, 8])), axis(0));
    let mut ranges = ranges_of(&[5, 8]);
    assert_eq!(ranges.extent(AxisId(1)), Some(8));
    ranges.set_unbounded(AxisId(1));
    assert_eq!(ranges.extent(AxisId(1)), None);
    assert_eq!(e.range(&ranges), (0, 1 << 62));
    assert_eq!(e.scale(-1).range(&ranges), (-(1 << 62), 0));
}

#[test]
fn merging_needs_the_same_stride_everywhere() {
    let (outer, inner) = (AxisId(0), AxisId(1));
    let ranges = ranges_of(&[6, 4, 10]);
    let flat = axis(0).scale(4).add(&axis(1));
    let mut exprs = [flat.scale(2).add(&axis(2)), flat.div(3, &AxisRanges::new()), axis(2)];
    // The division has pulled a multiple of 3 out of its numerator: merging puts it back.
    assert_eq!(exprs[1].to_string(), "a0 + (a0 + a1) / 3");
    let merged = exprs[1].merged(outer, inner, 4, AxisId(7));
    assert_eq!(merged.map(|e| e.to_string()).as_deref(), Some("a7 / 3"));
    let merged = flat.modulo(3, &ranges).merged(outer, inner, 4, AxisId(7));
    assert_eq!(merged.map(|e| e.to_string()).as_deref(), Some("a7 % 3"));
    exprs[1] = axis(0).add(&axis(1)).div(3, &ranges).add(&axis(2));
    assert!(!exprs[1].can_merge(outer, inner, 4));
    assert!(exprs[0].can_merge(outer, inner, 4) && !exprs[0].can_merge(inner, outer, 6));
    let merged = exprs[0].merged(outer, inner, 4, AxisId(7));
    assert_eq!(merged.map(|e| e.to_string()).as_deref(), Some("a2 + a7 * 2"));
    let [first, second, third] = &mut exprs;
    assert!(!merge_axes(&mut [first, second], outer, inner, 4));
    assert!(merge_axes(&mut [first, third], outer, inner, 4));
    assert_eq!(*first, axis(0).scale(2).add(&axis(2)));
    assert_eq!(first.simplify(&ranges), *first);
}

#[test]
fn bounds_lose_their_divisions_and_decided_sides() {
    let ranges = ranges_of(&[64, 4, 10]);
    let flat = axis(0).scale(4).add(&axis(1));
    let simplify = |expr: &IndexExpr, lo, hi| Bound { expr: expr.clone(), lo, hi }.simplify(&ranges);
    let depends = |expr, lo, hi| BoundTruth::Depends(Bound { expr, lo, hi });
    assert_eq!(simplify(&flat, 0, 256), BoundTruth::Always);
    assert_eq!(simplify(&flat, 256, 300), BoundTruth::Never);
    assert_eq!(simplify(&flat, 3, 3), BoundTruth::Never);
    assert_eq!(simplify(&flat, -5, 128), depends(axis(0), 0, 32));
    assert_eq!(simplify(&axis(2).offset(-1), 0, 8), depends(axis(2), 1, 9));
    assert_eq!(simplify(&axis(2).scale(-2).offset(6), 0, 100), depends(axis(2), 0, 4));
    assert_eq!(simplify(&axis(2).div(3, &ranges), 1, 9), depends(axis(2), 3, 10));
}

#[test]
fn complexity_counts_nested_atoms() {
    let ranges = AxisRanges::new();
    assert_eq!(IndexExpr::constant(4).complexity(), 0);
    assert_eq!(axis(0).add(&axis(1)).complexity(), 2);
    assert_eq!(axis(0).add(&axis(1)).div(3, &ranges).add(&axis(1)).complexity(), 4);
    assert_eq!(axis(0).offset(5).without_constant(), axis(0));
    assert_eq!(IndexExpr::from(AxisId(2)), axis(2));
}
