//! Rows in the order that memory has them in: what is combined in any order, as an image whose channels were laid between its
//! pixels is, need not be visited in the order in which a view shows it.

use super::{AxisKind, Kernel, ValueOp};
use crate::index::{Atom, AxisId, IndexExpr, gcd};

/// Axes that rows become, at most.
const MOST_AXES: usize = 8;

/// Elements side by side that are worth other axes, at least.
const SHORTEST_LINE: u64 = 8;

impl Kernel {
    /// Puts reduced axes into memory's order, those that some access divides in parts, if each access is a sum of them then. Before
    /// [`Kernel::merge_axes`], which makes few of many.
    pub fn order_rows(&mut self) {
        for axis in self.axes_of_kind(AxisKind::Reduce) {
            if let Some(ordered) = self.reduced_with(axis).and_then(|row| self.ordered(row)) {
                *self = ordered;
                return;
            }
        }
    }

    /// All axes that are reduced with this one, by reductions that go along all of them or none, where nothing tells one
    /// order from another.
    fn reduced_with(&self, axis: AxisId) -> Option<Vec<AxisId>> {
        let reduced = || {
            self.values.iter().filter_map(|value| match &value.op {
                ValueOp::Reduce { axes, .. } => Some(axes.as_slice()),
                _ => None,
            })
        };
        let row = reduced().find(|axes| axes.contains(&axis))?;
        if row.len() == 1 && self.part(axis).is_none() {
            return None;
        }
        let is_other = |axes: &[AxisId]| axes != row && axes.iter().any(|axis| row.contains(axis));
        // Parts of an argument are none.
        let is_known = row.iter().all(|&axis| !self.axis(axis).is_argument || self.part(axis).is_none());
        let is_stored = self.stores.iter().any(|store| row.iter().any(|&axis| store.index.uses(axis)));
        (self.is_unordered(axis) && is_known && !is_stored && !reduced().any(is_other)).then(|| row.to_vec())
    }

    /// The length of the longest inner part of an axis that some access divides it into.
    fn part(&self, axis: AxisId) -> Option<u64> {
        fn visit(index: &IndexExpr, axis: AxisId, extent: u64, found: &mut Option<u64>) {
            for (atom, _) in index.terms() {
                if let Atom::Div(dividend, by) | Atom::Mod(dividend, by) = atom {
                    let own =
                        dividend.coefficient(axis).filter(|&own| own != 0).map(|own| by / gcd(own, *by));
                    let length = own.map(i64::unsigned_abs);
                    let divides =
                        |length: &u64| (2..extent).contains(length) && extent.is_multiple_of(*length);
                    *found = (*found).max(length.filter(divides));
                    visit(dividend, axis, extent, found);
                }
            }
        }
        let mut found = None;
        let extent = self.axis(axis).extent;
        self.all_indices().for_each(|index| visit(index, axis, extent, &mut found));
        found
    }

    /// The kernel with parts of a row in order, if that is another order, and elements are neighbours then.
    fn ordered(&self, mut row: Vec<AxisId>) -> Option<Kernel> {
        // As most are: in order without a copy.
        if row.iter().all(|&axis| self.part(axis).is_none()) && self.order_of(&row)? == row {
            return None;
        }
        let mut result = self.clone();
        while let Some((at, length)) =
            row.iter().enumerate().find_map(|(at, &axis)| Some((at, result.part(axis)?)))
        {
            if row.len() == MOST_AXES {
                return None;
            }
            let inner = result.split_reduced(row[at], length);
            row.insert(at + 1, inner);
        }
        let order = result.order_of(&row)?;
        if order == row || result.axis(*order.last()?).extent < SHORTEST_LINE {
            return None;
        }
        result.move_last(&order);
        Some(result)
    }

    /// The axes by how far apart the load that varies along most of them reads; `None` if some access still divides one.
    fn order_of(&self, row: &[AxisId]) -> Option<Vec<AxisId>> {
        let mut first: Option<(usize, Vec<i64>)> = None;
        for value in &self.values {
            for index in value.op.indices() {
                let steps: Option<Vec<i64>> = row.iter().map(|&axis| index.coefficient(axis)).collect();
                let steps = steps?;
                let varies = steps.iter().filter(|step| **step != 0).count();
                let is_load = matches!(value.op, ValueOp::Load { .. });
                if is_load && first.as_ref().is_none_or(|(most, _)| varies > *most) {
                    first = Some((varies, steps));
                }
            }
        }
        let (_, steps) = first?;
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(steps[at].unsigned_abs()));
        let is_next = steps[*order.last()?] == 1;
        is_next.then(|| order.into_iter().map(|at| row[at]).collect())
    }

    /// Numbers these axes after all others, in this order. An extent that is an argument stays one where its axis is the outermost of
    /// them: positions are numbered with the others' extents.
    fn move_last(&mut self, order: &[AxisId]) {
        let others = (0..self.axes.len() as u32).map(AxisId).filter(|axis| !order.contains(axis));
        let all: Vec<AxisId> = others.chain(order.iter().copied()).collect();
        let mut numbers = vec![AxisId(0); all.len()];
        let old = std::mem::take(&mut self.axes);
        for (number, axis) in all.into_iter().enumerate() {
            numbers[axis.0 as usize] = AxisId(number as u32);
            let own = &old[axis.0 as usize];
            let is_outermost = !order[1..].contains(&axis);
            self.add_axis(own.kind, own.extent, own.is_argument && is_outermost);
        }
        self.rename_axes(&|axis| numbers[axis.0 as usize]);
        for value in &mut self.values {
            if let ValueOp::Reduce { axes, .. } = &mut value.op {
                axes.sort_unstable();
            }
        }
        self.find_axes();
    }
}
