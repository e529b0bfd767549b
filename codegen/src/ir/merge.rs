//! Fewer axes: adjacent ones that every access goes over as one are merged. And more: one that some access divides is two.

use super::{AxisKind, AxisSet, Kernel, Value, ValueOp};
use crate::index::{Atom, AxisId, IndexExpr};

/// A loop over fewer positions does not pay for the division that it saves.
const SHORTEST_PART: u64 = 64;

/// Parts of a join that may be side by side.
const MOST_JOINED: u64 = 16;

impl Kernel {
    /// Merges adjacent axes wherever each index expression treats them as one row-major axis, drops
    /// axes that have one position or that nothing uses, and renames the rest. The result computes
    /// the same values.
    pub fn merge_axes(&mut self) {
        self.drop_unit_axes();
        for kind in [AxisKind::Map, AxisKind::Reduce] {
            let mut order = self.axes_of_kind(kind);
            let mut position = order.len().saturating_sub(1);
            while position > 0 {
                let (outer, inner) = (order[position - 1], order[position]);
                if self.try_merge(outer, inner) {
                    order.remove(position);
                }
                position -= 1;
            }
        }
        self.compact_axes();
    }

    /// Makes two axes of each one of results whose position some access divides by a constant, as what is broadcast along the
    /// outer part of a flattened axis does: loops over the inner part need no division. Before [`Kernel::merge_axes`].
    pub fn split_axes(&mut self) {
        while let Some((axis, length)) = self.divided_axis() {
            let (outer, inner) = (axis.0 as usize, AxisId(axis.0 + 1));
            let old = std::mem::take(&mut self.axes);
            for (number, axis) in old.into_iter().enumerate() {
                let extent = if number == outer { axis.extent / length } else { axis.extent };
                self.add_axis(axis.kind, extent, axis.is_argument);
                if number == outer {
                    self.add_axis(AxisKind::Map, length, false);
                }
            }
            self.rename_axes(&|id| if id > axis { AxisId(id.0 + 1) } else { id });
            let both = IndexExpr::axis(axis).scale(length as i64).add(&IndexExpr::axis(inner));
            self.put_in_place(axis, &both);
        }
    }

    /// Makes two axes of a reduced one, which stays the outer of them, and gives the inner one, of so many positions.
    pub(crate) fn split_reduced(&mut self, axis: AxisId, length: u64) -> AxisId {
        let inner = self.add_axis(AxisKind::Reduce, length, false);
        self.axes[axis.0 as usize].extent /= length;
        for value in &mut self.values {
            if let ValueOp::Reduce { axes, .. } = &mut value.op
                && axes.contains(&axis)
            {
                axes.push(inner);
            }
        }
        let both = IndexExpr::axis(axis).scale(length as i64).add(&IndexExpr::axis(inner));
        self.put_in_place(axis, &both);
        inner
    }

    /// Puts an expression in the place of an axis, which it may name.
    fn put_in_place(&mut self, axis: AxisId, by: &IndexExpr) {
        // Not in one step, since the expression names the axis itself.
        let (ranges, away) = (self.ranges(), AxisId(self.axes.len() as u32));
        let renamed = |id: AxisId| if id == axis { away } else { id };
        self.map_indices(|index| match index.uses(axis) {
            true => index.renamed(&renamed).substitute(away, by, &ranges),
            false => index.clone(),
        });
    }

    /// By what some access divides positions along an axis.
    pub fn divisors(&self, axis: AxisId) -> Vec<u64> {
        fn visit(index: &IndexExpr, axis: AxisId, found: &mut Vec<u64>) {
            for (atom, _) in index.terms() {
                if let Atom::Div(dividend, by) | Atom::Mod(dividend, by) = atom {
                    if dividend.coefficient(axis) == Some(1) {
                        found.push(by.unsigned_abs());
                    }
                    visit(dividend, axis, found);
                }
            }
        }
        let mut found = Vec::new();
        self.all_indices().for_each(|index| visit(index, axis, &mut found));
        found
    }

    /// An axis that is divided, and the longest inner part: a long one, or the parts of a join, which can be side by side then.
    fn divided_axis(&self) -> Option<(AxisId, u64)> {
        let innermost = self.axes_of_kind(AxisKind::Map).pop();
        let tells_apart = |axis: AxisId, by: i64| {
            let bounds = self.values.iter().flat_map(|value| match &value.op {
                ValueOp::InBounds(bounds) => &bounds[..],
                _ => &[],
            });
            let is_part = |atom: &Atom| matches!(atom, Atom::Mod(of, parts) if *parts == by && **of == IndexExpr::axis(axis));
            bounds.into_iter().any(|bound| matches!(bound.expr.terms(), [(atom, 1)] if is_part(atom)))
        };
        fn visit(index: &IndexExpr, found: &mut dyn FnMut(&IndexExpr, i64)) {
            for (atom, _) in index.terms() {
                if let Atom::Div(dividend, by) | Atom::Mod(dividend, by) = atom {
                    found(dividend, *by);
                    visit(dividend, found);
                }
            }
        }
        let mut longest: Option<(AxisId, u64)> = None;
        for index in self.all_indices() {
            visit(index, &mut |dividend, by| {
                let ([(Atom::Axis(axis), 1)], 0) = (dividend.terms(), dividend.constant_term()) else {
                    return;
                };
                let (own, length) = (self.axis(*axis), by as u64);
                let divides = own.extent > length && own.extent.is_multiple_of(length);
                let is_longer = longest.is_none_or(|(_, longest)| length > longest);
                let is_join = || length <= MOST_JOINED && innermost != Some(*axis) && tells_apart(*axis, by);
                let is_worth_it = is_longer && (length >= SHORTEST_PART || is_join());
                if own.kind == AxisKind::Map && divides && is_worth_it && !self.is_named(*axis) {
                    longest = Some((*axis, length));
                }
            });
        }
        longest
    }

    /// The kernel with two adjacent axes of results as one, of the first one's number, whatever divides it then.
    pub(crate) fn with_merged(&self, outer: AxisId, inner: AxisId) -> Kernel {
        let (mut result, mut ranges) = (self.clone(), self.ranges());
        let (both, extent) = (AxisId(self.axes.len() as u32), self.axis(inner).extent);
        ranges.set(both, self.axis(outer).extent * extent);
        let flat = IndexExpr::axis(both);
        let (first, last) = (flat.div(extent as i64, &ranges), flat.modulo(extent as i64, &ranges));
        let renamed = |id: AxisId| if id == both { outer } else { id };
        result.map_indices(|index| {
            let index = index.substitute(outer, &first, &ranges).substitute(inner, &last, &ranges);
            index.simplify(&ranges).renamed(&renamed)
        });
        result.axes[outer.0 as usize].extent *= extent;
        result.compact_axes();
        result
    }

    /// Whether an index divides what may be less than zero while arguments may have any value: see
    /// [`IndexExpr::divides_below_zero`].
    pub fn divides_below_zero(&self) -> bool {
        let ranges = self.ranges();
        self.all_indices().any(|index| index.divides_below_zero(&ranges))
    }

    pub(super) fn all_indices(&self) -> impl Iterator<Item = &IndexExpr> {
        let loads = self.values.iter().flat_map(|value| value.op.indices());
        loads.chain(self.stores.iter().map(|store| &store.index))
    }

    fn drop_unit_axes(&mut self) {
        let ranges = self.ranges();
        for number in 0..self.axes.len() as u32 {
            let axis = AxisId(number);
            if self.axis(axis).extent == 1
                && !self.is_named(axis)
                && !self.axis(axis).is_argument
                && self.leaves_others(axis)
            {
                self.map_indices(|index| match index.uses(axis) {
                    true => index.substitute(axis, &IndexExpr::zero(), &ranges),
                    false => index.clone(),
                });
                for value in &mut self.values {
                    if let ValueOp::Reduce { axes, .. } = &mut value.op {
                        axes.retain(|reduced| *reduced != axis);
                    }
                }
            }
        }
    }

    /// Whether every reduction along the axis goes along another one too.
    fn leaves_others(&self, axis: AxisId) -> bool {
        self.values.iter().all(|value| match &value.op {
            ValueOp::Reduce { axes, .. } => axes.len() > 1 || !axes.contains(&axis),
            _ => true,
        })
    }

    fn try_merge(&mut self, outer: AxisId, inner: AxisId) -> bool {
        let inner_axis = self.axis(inner);
        let Ok(extent) = i64::try_from(inner_axis.extent) else { return false };
        if inner_axis.is_argument
            || self.is_named(outer)
            || self.is_named(inner)
            || !self.reduced_together(outer, inner)
        {
            return false;
        }
        if !self.all_indices().all(|index| index.can_merge(outer, inner, extent)) {
            return false;
        }
        self.map_indices(|index| index.merged(outer, inner, extent, outer).unwrap_or_else(|| index.clone()));
        for value in &mut self.values {
            if let ValueOp::Reduce { axes, .. } = &mut value.op {
                axes.retain(|axis| *axis != inner);
            }
        }
        let merged = self.axis(outer).extent * self.axis(inner).extent;
        self.axes[outer.0 as usize].extent = merged;
        self.axes[inner.0 as usize].extent = 1;
        true
    }

    /// Whether a value names the axis by itself, and not as one of several that it reduces.
    fn is_named(&self, along: AxisId) -> bool {
        let scattered = self.values.iter().any(|value| match &value.op {
            ValueOp::Scatter { axis, over, .. } | ValueOp::Sort { axis, over, .. } => {
                [axis, over].contains(&&along)
            }
            _ => false,
        });
        scattered || self.scan_axes().any(|(axis, _)| axis == along)
    }

    /// Whether every reduction combines both axes or neither.
    fn reduced_together(&self, outer: AxisId, inner: AxisId) -> bool {
        self.values.iter().all(|value| match &value.op {
            ValueOp::Reduce { axes, .. } => axes.contains(&outer) == axes.contains(&inner),
            _ => true,
        })
    }

    /// Drops axes that nothing iterates over, and renumbers and renames the others.
    fn compact_axes(&mut self) {
        let mut used = AxisSet::new();
        for index in self.all_indices() {
            used.extend(index.axes());
        }
        used.extend(self.values.iter().flat_map(|value| value.op.named_axes()));
        used.extend(self.scan_axes().map(|(axis, _)| axis));
        let old = std::mem::take(&mut self.axes);
        let mut renumbered = vec![AxisId(u32::MAX); old.len()];
        for (number, axis) in old.into_iter().enumerate() {
            if used.contains(&AxisId(number as u32)) {
                renumbered[number] = self.add_axis(axis.kind, axis.extent, axis.is_argument);
            }
        }
        self.rename_axes(&|axis| renumbered[axis.0 as usize]);
        self.find_axes();
    }

    /// Calls the axes otherwise wherever something refers to them.
    pub(super) fn rename_axes(&mut self, name: &dyn Fn(AxisId) -> AxisId) {
        self.map_indices(|index| index.renamed(name));
        for Value { op, .. } in &mut self.values {
            op.named_axes_mut().into_iter().for_each(|axis| *axis = name(*axis));
        }
        for recurrence in &mut self.recurrences {
            recurrence.axis = name(recurrence.axis);
        }
    }
}
