//! What a contraction combines: not only products of two factors, but any cheap expression of an element of each, by any monoid
//! whose state is one number. Distances, shortest paths, agreements.

use super::share::MOST_LIFTED;
use super::work::operations;
use crate::index::AxisId;
use crate::ir::{AxisSet, Kernel, ValueId, ValueOp};
use crate::{DType, ReduceOp};

/// What is combined in the place of products that are added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lift {
    /// How.
    pub(crate) op: ReduceOp,
    /// Of an element of each factor, and of what varies over neither rows nor columns.
    pub(crate) value: ValueId,
    /// In which some terms are combined: that of the value, or a wider one.
    pub(crate) dtype: DType,
    /// Whether the value follows from others than the factors, which vary over the terms.
    pub(crate) has_others: bool,
}

/// The two factors of a lifted value.
pub(super) struct Lifted {
    /// Varies over rows.
    pub(super) left: ValueId,
    /// Varies over columns.
    pub(super) right: ValueId,
    pub(super) has_others: bool,
}

/// Which side an axis or a value belongs to.
struct Sides {
    rows: AxisSet,
    columns: AxisSet,
}

impl Sides {
    /// An axis of the results is of the columns if all that has it has the innermost one too, and of the rows if nothing
    /// that has it has that one.
    fn of(kernel: &Kernel, operand: ValueId, depth: &[AxisId], column: AxisId) -> Sides {
        let (mut rows, mut columns) = (AxisSet::new(), AxisSet::new());
        for id in kernel.down_from([operand]) {
            let value = kernel.value(id);
            if !value.op.is_elementwise() {
                let side = if value.axes.contains(&column) { &mut columns } else { &mut rows };
                side.extend(value.axes.iter().filter(|axis| !depth.contains(axis)));
            }
        }
        let both: AxisSet = rows.intersection(&columns).copied().collect();
        rows.retain(|axis| !both.contains(axis));
        columns.retain(|axis| !both.contains(axis));
        Sides { rows, columns }
    }

    fn has(&self, kernel: &Kernel, id: ValueId) -> (bool, bool) {
        let axes = &kernel.value(id).axes;
        (!axes.is_disjoint(&self.rows), !axes.is_disjoint(&self.columns))
    }
}

/// The factors of what is combined over some axes: the largest expressions that vary over the rows alone or over the columns
/// alone, one of each. `None` if there are others, or if the rest is not cheap.
pub(super) fn lifted(kernel: &Kernel, operand: ValueId, depth: &[AxisId], column: AxisId) -> Option<Lifted> {
    let sides = Sides::of(kernel, operand, depth, column);
    let (mut lefts, mut rights, mut others) = (AtMostOnce::default(), AtMostOnce::default(), Vec::new());
    let mut cost = 0.0;
    let mut seen = AtMostOnce::default();
    let mut pending = vec![operand];
    while let Some(id) = pending.pop() {
        match sides.has(kernel, id) {
            (true, true) if !kernel.value(id).op.is_elementwise() => return None,
            (true, true) => {
                if seen.insert(id) {
                    cost += operations(kernel, id);
                    pending.extend(kernel.operands(&kernel.value(id).op));
                }
            }
            (true, false) => drop(lefts.insert(id)),
            (false, true) => drop(rights.insert(id)),
            (false, false) => others.push(id),
        }
    }
    let left = lefts.core(kernel, |id| sides.has(kernel, id).0, &mut others)?;
    let right = rights.core(kernel, |id| sides.has(kernel, id).1, &mut others)?;
    let (of_left, of_right) = (&kernel.value(left).axes, &kernel.value(right).axes);
    let is_shared = |axis: &AxisId| depth.contains(axis) || of_left.contains(axis) && of_right.contains(axis);
    let is_reduced = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
    let fits = cost <= MOST_LIFTED
        && of_right.contains(&column)
        && others.iter().all(|&id| kernel.value(id).axes.iter().all(is_shared))
        && !kernel.down_from(others.iter().copied()).iter().any(is_reduced);
    let has_others = others.iter().any(|&id| kernel.value(id).axes.iter().any(|axis| depth.contains(axis)));
    fits.then_some(Lifted { left, right, has_others })
}

/// Values, each once.
#[derive(Default)]
struct AtMostOnce(Vec<ValueId>);

impl AtMostOnce {
    /// Whether it was not there.
    fn insert(&mut self, id: ValueId) -> bool {
        let is_new = !self.0.contains(&id);
        if is_new {
            self.0.push(id);
        }
        is_new
    }

    /// The one value that all follow from; what they follow from besides is among the others.
    fn core(
        mut self,
        kernel: &Kernel,
        is_of_side: impl Fn(ValueId) -> bool,
        others: &mut Vec<ValueId>,
    ) -> Option<ValueId> {
        // Operands come first: the last of several is none that another follows from.
        while self.0.len() > 1 {
            let (place, &last) = self.0.iter().enumerate().max_by_key(|(_, id)| **id)?;
            self.0.swap_remove(place);
            if !kernel.value(last).op.is_elementwise() {
                return None;
            }
            for operand in kernel.operands(&kernel.value(last).op) {
                match is_of_side(operand) {
                    true => drop(self.insert(operand)),
                    false => others.push(operand),
                }
            }
        }
        self.0.pop()
    }
}
