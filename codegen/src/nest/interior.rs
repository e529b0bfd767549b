//! Where no guard is needed: the positions of the innermost axis at which every guarded access is
//! inside, whatever the positions in a window.

use std::ops::Range;

use super::guarded_lanes::whole_vectors;
use crate::index::{AxisId, Bound, BoundTruth, IndexExpr};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::{DType, Scalar};

/// The interior of a kernel along one axis.
pub(super) struct Interior {
    /// First position.
    pub(super) low: u64,
    /// One past the last position.
    pub(super) high: u64,
    /// Positions along the axis.
    extent: u64,
    /// What must hold of the other axes.
    pub(super) conditions: Vec<Bound>,
    /// The kernel without guards.
    pub(super) kernel: Kernel,
}

impl Interior {
    /// The interior along `axis`; `None` if nothing is guarded, if it depends on other axes as well, or
    /// if it is not the larger part.
    pub(super) fn of(kernel: &Kernel, axis: AxisId) -> Option<Interior> {
        Interior::beside(kernel, axis, &[])
    }

    /// The same of a loop at each position of a sweep, which the conditions may say.
    pub(super) fn beside(kernel: &Kernel, axis: AxisId, swept: &[AxisId]) -> Option<Interior> {
        let extent = kernel.axis(axis).extent as i64;
        let (mut low, mut high) = (0, extent);
        let mut conditions: Vec<Bound> = Vec::new();
        let mut guarded = false;
        for value in &kernel.values {
            let ValueOp::InBounds(bounds) = &value.op else { continue };
            guarded = true;
            for bound in bounds {
                let bound = everywhere(kernel, bound, swept)?;
                if bound.simplify(&kernel.ranges()) == BoundTruth::Never {
                    return None;
                }
                let stride = bound.expr.coefficient(axis)?;
                if stride == 0 {
                    let condition = match conditions.iter_mut().find(|other| other.expr == bound.expr) {
                        Some(other) => {
                            (other.lo, other.hi) = (other.lo.max(bound.lo), other.hi.min(bound.hi));
                            &*other
                        }
                        None => {
                            conditions.push(bound);
                            &conditions[conditions.len() - 1]
                        }
                    };
                    // A window that is larger than what it slides over, or parts of which an element has one.
                    if condition.lo >= condition.hi {
                        return None;
                    }
                    continue;
                }
                let offset = bound.expr.constant_term();
                if bound.expr.terms().len() != 1 {
                    return None;
                }
                // lo <= stride * i + offset < hi, solved for i.
                let (first, last) = match stride > 0 {
                    true => (ceil_div(bound.lo - offset, stride), (bound.hi - 1 - offset).div_euclid(stride)),
                    false => {
                        (ceil_div(offset - bound.hi + 1, -stride), (offset - bound.lo).div_euclid(-stride))
                    }
                };
                low = low.max(first);
                high = high.min(last + 1);
            }
        }
        let is_large = high - low > extent / 2;
        let extent = extent as u64;
        (guarded && is_large).then(|| Interior {
            low: low as u64,
            high: high as u64,
            extent,
            conditions,
            kernel: decided(kernel, |_| true),
        })
    }
}

/// What guards compare, without a constant.
struct Compared {
    expr: IndexExpr,
    /// Of each guard the values at which it holds whatever the positions in a window, and those at which it may.
    guards: Vec<[Range<i64>; 2]>,
}

impl Compared {
    fn by(kernel: &Kernel, bound: &Bound) -> Option<Compared> {
        let (rest, least, most) = without_windows(kernel, &bound.expr, &[])?;
        let constant = rest.constant_term();
        let low = |by: i64| if bound.has_lo() { bound.lo - constant - by } else { Bound::NO_LO };
        let high = |by: i64| if bound.has_hi() { bound.hi - constant - by } else { Bound::NO_HI };
        let guards = vec![[low(least)..high(most), low(most)..high(least)]];
        Some(Compared { expr: rest.offset(-constant), guards })
    }

    /// The longest range of these values in which each guard holds or does not; none without an end, where nothing is read.
    fn longest(&self, all: &Range<i64>) -> Option<Range<i64>> {
        let ends = self.guards.iter().flatten().flat_map(|range| [range.start, range.end]);
        let mut cuts: Vec<i64> = ends.chain([all.start, all.end]).collect();
        cuts.retain(|cut| (all.start..=all.end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        let is_decided =
            |at: i64| self.guards.iter().all(|[surely, maybe]| surely.contains(&at) || !maybe.contains(&at));
        let ranges = cuts.windows(2).map(|ends| ends[0]..ends[1]);
        let decided = ranges.filter(|range| is_decided(range.start) && range.end < Bound::NO_HI);
        decided.reduce(|a, b| if b.end - b.start > a.end - a.start { b } else { a })
    }
}

impl Interior {
    /// Where guards do not all hold but are all decided: most elements are of one part of a join, as in a border that repeats
    /// the edge.
    pub(super) fn of_one_part(kernel: &Kernel, axis: AxisId) -> Option<Interior> {
        let mut all: Vec<Compared> = Vec::new();
        for bound in kernel.values.iter().flat_map(|value| bounds(&value.op)) {
            let own = Compared::by(kernel, bound)?;
            if own.expr.uses(axis) && own.expr != IndexExpr::axis(axis) {
                return None;
            }
            match all.iter_mut().find(|compared| compared.expr == own.expr) {
                Some(compared) => compared.guards.extend(own.guards),
                None => all.push(own),
            }
        }
        let (ranges, extent) = (kernel.ranges(), kernel.axis(axis).extent);
        let (mut along, mut conditions, mut inside) = (None, Vec::new(), Vec::new());
        for compared in all {
            let (least, most) = compared.expr.range(&ranges);
            let whole = least..most.saturating_add(1);
            let longest = compared.longest(&whole)?;
            let (lo, hi) = (longest.start, longest.end);
            inside.push((compared.expr.clone(), lo));
            if compared.expr.uses(axis) {
                along = Some(longest);
            } else if longest != whole {
                conditions.push(Bound { expr: compared.expr, lo, hi });
            }
        }
        let holds = |bound: &Bound| {
            let own = Compared::by(kernel, bound);
            own.is_some_and(|own| {
                let at = inside.iter().find(|(expr, _)| *expr == own.expr);
                at.is_some_and(|(_, at)| own.guards[0][0].contains(at))
            })
        };
        let along = along.filter(|along| along.end - along.start > extent as i64 / 2)?;
        let kernel = decided(kernel, |bounds| bounds.iter().all(holds));
        Some(Interior { low: along.start as u64, high: along.end as u64, extent, kernel, conditions })
    }

    /// That of whole vectors, if there are some and what is left has masks.
    pub(super) fn of_whole_vectors(self) -> Option<Interior> {
        let (low, high) = whole_vectors(self.extent, (self.low, self.high))?;
        Some(Interior { low, high, ..self })
    }

    /// Whether rows are wholly in it or not at all.
    pub(super) fn is_whole_rows(&self) -> bool {
        (self.low, self.high) == (0, self.extent)
    }
}

pub(super) fn bounds(op: &ValueOp) -> &[Bound] {
    match op {
        ValueOp::InBounds(bounds) => bounds,
        _ => &[],
    }
}

pub(super) fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// What holds where the bound does at all positions of the reduced axes but for the swept ones.
pub(super) fn everywhere(kernel: &Kernel, bound: &Bound, swept: &[AxisId]) -> Option<Bound> {
    let (expr, least, most) = without_windows(kernel, &bound.expr, swept)?;
    let lo = if bound.has_lo() { bound.lo - least } else { bound.lo };
    let hi = if bound.has_hi() { bound.hi - most } else { bound.hi };
    Some(Bound { expr, lo, hi })
}

/// The expression without its reduced axes but for the swept ones, and the least and most that they add.
pub(super) fn without_windows(
    kernel: &Kernel,
    expr: &IndexExpr,
    swept: &[AxisId],
) -> Option<(IndexExpr, i64, i64)> {
    let ranges = kernel.ranges();
    let (mut rest, mut least, mut most) = (expr.clone(), 0, 0);
    for axis in expr.axes() {
        match kernel.axis(axis).kind {
            AxisKind::Map | AxisKind::Offset { .. } => continue,
            AxisKind::Reduce if swept.contains(&axis) => continue,
            AxisKind::Reduce => {}
            AxisKind::Computed { .. } => return None,
        }
        if kernel.axis(axis).is_argument {
            return None;
        }
        let reach = expr.coefficient(axis)? * (kernel.axis(axis).extent as i64 - 1);
        least += reach.min(0);
        most += reach.max(0);
        rest = rest.substitute(axis, &IndexExpr::zero(), &ranges);
    }
    Some((rest, least, most))
}

/// The same kernel where some bounds are known to hold.
pub(super) fn without(kernel: &Kernel, known: &[Bound]) -> Kernel {
    let left = |bounds: &[Bound]| -> Vec<Bound> {
        bounds.iter().filter(|bound| !known.contains(bound)).cloned().collect()
    };
    let mut result = decided_where(kernel, |bounds| left(bounds).is_empty().then_some(true));
    for value in &mut result.values {
        if let ValueOp::InBounds(bounds) = &mut value.op {
            *bounds = left(bounds).into();
        }
    }
    result.map_indices(IndexExpr::clone);
    result
}

/// The same kernel where it is known which guards hold: loads read always or never, choices by a guard are made.
pub(super) fn decided(kernel: &Kernel, holds: impl Fn(&[Bound]) -> bool) -> Kernel {
    decided_where(kernel, |bounds| Some(holds(bounds)))
}

/// The same kernel where it is known of some guards whether they hold.
pub(super) fn decided_where(kernel: &Kernel, holds: impl Fn(&[Bound]) -> Option<bool>) -> Kernel {
    let mut result = kernel.clone();
    let guard = |id: ValueId| match &kernel.value(id).op {
        ValueOp::InBounds(bounds) => holds(bounds),
        _ => None,
    };
    let mut same_as: Vec<ValueId> = (0..kernel.values.len() as u32).map(ValueId).collect();
    for (number, value) in result.values.iter_mut().enumerate() {
        match &mut value.op {
            ValueOp::InBounds(bounds) => {
                if let Some(holds) = holds(bounds) {
                    value.op = ValueOp::Literal(Scalar::from_bool(holds));
                    value.dtype = DType::Bool;
                }
            }
            ValueOp::Load { guard: condition, .. } => match condition.and_then(guard) {
                Some(false) => value.op = ValueOp::Literal(Scalar::from_i64(value.dtype, 0)),
                Some(true) => *condition = None,
                None => {}
            },
            ValueOp::Select(condition, a, b) if guard(*condition).is_some() => {
                let chosen = if guard(*condition) == Some(true) { a } else { b };
                same_as[number] = same_as[chosen.index()];
            }
            op => op.named_operands_mut().into_iter().for_each(|id| *id = same_as[id.index()]),
        }
    }
    result.replace_computed(|value| same_as[value.index()]);
    for store in &mut result.stores {
        store.value = same_as[store.value.index()];
    }
    result.map_indices(IndexExpr::clone);
    result
}
