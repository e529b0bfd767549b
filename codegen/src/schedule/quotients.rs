//! Rows and results whose positions some access divides, as those of packed numbers are (two of four bits are in a byte, and some
//! dozens share a scale), or of interleaved parts. What has one quotient is side by side then: neighbours are combined before
//! a row is, or stored one after the other, and groups are an axis of their own, so that loops know neither quotients nor
//! remainders.

use rustc_hash::FxHashMap;

use super::RowSchedule;
use crate::index::{AxisId, BoundTruth, IndexExpr};
use crate::ir::{AxisKind, Kernel, Value, ValueId, ValueOp};
use crate::{DType, Scalar};

/// More values of all neighbours together are too much text for results that no reduction makes of them.
const MOST_VALUES: usize = 512;

/// Elements of a group, at least.
const FEWEST_IN_GROUP: u64 = 16;

/// The kernel with its reduced row as quotients, their groups and neighbours, and the schedule with no more lanes than these
/// have; `None` if nothing divides the row, or if its parts are several blocks'.
pub(crate) fn by_quotients(kernel: &Kernel, schedule: &RowSchedule) -> Option<(Kernel, RowSchedule)> {
    if schedule.splits > 1 || schedule.keep.is_some() {
        return None;
    }
    let divided = divided(kernel)?;
    let (inner, outer) =
        divided.axes_of_kind(AxisKind::Reduce).split_last().map(|(&a, rest)| (a, rest.len()))?;
    let extent = divided.axis(inner).extent;
    // No lane is in another group than its neighbours.
    let most = if outer > 0 { 1 << extent.trailing_zeros() } else { extent.next_power_of_two() / 2 };
    let lanes = u64::from(schedule.threads_per_row).min(most).max(1);
    Some((divided, RowSchedule { threads_per_row: lanes as u32, ..*schedule }))
}

fn divided(kernel: &Kernel) -> Option<Kernel> {
    let (row, is_swept_once) = row_of(kernel)?;
    let extent = kernel.axis(row).extent;
    let divisors = kernel.divisors(row);
    let fits = |by: &u64| extent.is_multiple_of(*by) && *by < extent;
    let together = kernel.neighbours(row);
    let group = divisors.iter().copied().filter(|by| *by >= FEWEST_IN_GROUP && fits(by)).min();
    let group = group.filter(|group| is_swept_once && group.is_multiple_of(together.unwrap_or(1)));
    let in_groups = group.map(|group| in_groups(kernel, row, group));
    let (kernel, row) = in_groups.as_ref().map_or((kernel, row), |(kernel, inner)| (kernel, *inner));
    match together {
        Some(together) => Some(combined(kernel, row, together)),
        None => Some(kernel.clone()).filter(|_| group.is_some()),
    }
}

/// The one axis that is reduced, by operations that may take their elements in any order, and whether that is all that goes
/// along it, in one pass.
fn row_of(kernel: &Kernel) -> Option<(AxisId, bool)> {
    let &[row] = kernel.axes_of_kind(AxisKind::Reduce).as_slice() else { return None };
    let is_plain = kernel.values.iter().all(|value| match &value.op {
        ValueOp::Reduce { op, position, .. } => op.is_plain() && position.is_none(),
        ValueOp::Scan { .. }
        | ValueOp::Carry { .. }
        | ValueOp::Last { .. }
        | ValueOp::Scatter { .. }
        | ValueOp::Sort { .. } => false,
        _ => true,
    });
    let is_along = |value: ValueId| kernel.value(value).axes.contains(&row);
    let is_stored = kernel.stores.iter().any(|store| is_along(store.value) || store.index.uses(row));
    let is_one_pass = kernel.values.iter().all(|value| {
        let follows = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        !value.axes.contains(&row) || !kernel.operands(&value.op).iter().any(follows)
    });
    let fits = is_plain && !kernel.axis(row).is_argument && !kernel.has_computed_axes();
    fits.then_some((row, !is_stored && is_one_pass))
}

/// The kernel with two axes in place of the row, groups of so many positions and the positions of each, and the latter.
fn in_groups(kernel: &Kernel, row: AxisId, of: u64) -> (Kernel, AxisId) {
    let mut result = kernel.clone();
    let inner = result.add_axis(AxisKind::Reduce, of, false);
    result.axes[row.0 as usize].extent /= of;
    for value in &mut result.values {
        if let ValueOp::Reduce { axes, .. } = &mut value.op {
            axes.extend([inner]);
        }
    }
    let both = IndexExpr::axis(row).scale(of as i64).add(&IndexExpr::axis(inner));
    put_in_place(&mut result, row, &both);
    (result, inner)
}

/// Puts an expression that may name the axis in its place.
fn put_in_place(kernel: &mut Kernel, axis: AxisId, by: &IndexExpr) {
    let (ranges, away) = (kernel.ranges(), AxisId(kernel.axes.len() as u32));
    let renamed = |id: AxisId| if id == axis { away } else { id };
    kernel.map_indices(|index| index.renamed(&renamed).substitute(away, by, &ranges));
}

/// The kernel with neighbours along the innermost axis of its results side by side, if some access divides it.
pub(crate) fn neighbours_by_quotients(kernel: &Kernel) -> Option<Kernel> {
    let &inner = kernel.axes_of_kind(AxisKind::Map).last()?;
    let is_plain = |value: &Value| {
        !matches!(
            value.op,
            ValueOp::Scan { .. }
                | ValueOp::Carry { .. }
                | ValueOp::Last { .. }
                | ValueOp::Scatter { .. }
                | ValueOp::Sort { .. }
        )
    };
    let together = kernel.neighbours(inner)?;
    let is_short = kernel.values.len() * together as usize <= MOST_VALUES;
    let is_plain = kernel.values.iter().all(is_plain);
    let fits = is_plain && is_short && !kernel.axis(inner).is_argument && !kernel.has_computed_axes();
    fits.then(|| combined(kernel, inner, together))
}

/// The kernel with so many neighbours along the axis side by side. What reduces the axis combines them before.
fn combined(kernel: &Kernel, row: AxisId, together: u64) -> Kernel {
    let empty = Kernel { values: Vec::new(), stores: Vec::new(), ..kernel.clone() };
    let mut result = Parts { kernel: empty, known: FxHashMap::default() };
    result.kernel.axes[row.0 as usize].extent /= together;
    let ranges = result.kernel.ranges();
    let away = AxisId(kernel.axes.len() as u32);
    let renamed = |id: AxisId| if id == row { away } else { id };
    let at = |place: u64| IndexExpr::axis(row).scale(together as i64).offset(place as i64);
    // Of each value what it is at each of the neighbours: once for what does not vary along the row.
    let mut parts: Vec<Vec<ValueId>> = Vec::with_capacity(kernel.values.len());
    for value in &kernel.values {
        let varies = value.axes.contains(&row);
        let own = (0..if varies { together } else { 1 }).map(|place| {
            let mut op = value.op.clone();
            for index in op.indices_mut() {
                *index = index.renamed(&renamed).substitute(away, &at(place), &ranges);
            }
            if let ValueOp::Reduce { op: reduction, axes, operand, .. } = &mut op
                && let (Some(by), true) = (reduction.plain(), axes.contains(&row))
            {
                let all = parts[operand.index()].clone();
                let dtype = kernel.value(*operand).dtype;
                let both = |a, b| result.add(ValueOp::Binary(by, a, b), dtype);
                let whole = all.iter().copied().reduce(both);
                *operand = whole.unwrap_or(all[0]);
            } else {
                for id in op.named_operands_mut() {
                    let of = &parts[id.index()];
                    *id = of[place as usize % of.len()];
                }
            }
            result.decided(op, value.dtype)
        });
        let own = own.collect();
        parts.push(own);
    }
    let mut result = result.kernel;
    for store in &kernel.stores {
        let parts = &parts[store.value.index()];
        let varies = store.index.uses(row) || parts.len() > 1;
        for place in 0..if varies { together } else { 1 } {
            let index = store.index.renamed(&renamed).substitute(away, &at(place), &ranges);
            result.store(store.buffer, index, parts[place as usize % parts.len()]);
        }
    }
    result
}

/// A kernel that has each value once, whose conditions are decided where they can be.
struct Parts {
    kernel: Kernel,
    known: FxHashMap<(ValueOp, DType), ValueId>,
}

impl Parts {
    fn add(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let Parts { kernel, known } = self;
        *known.entry((op, dtype)).or_insert_with_key(|(op, _)| kernel.add(op.clone(), dtype))
    }

    fn decided(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let truth = |kernel: &Kernel, id: ValueId| match kernel.value(id).op {
            ValueOp::Literal(scalar) => Some(scalar.as_f64() != 0.0),
            _ => None,
        };
        match op {
            ValueOp::InBounds(bounds) => {
                let ranges = self.kernel.ranges();
                let truths: Vec<BoundTruth> = bounds.iter().map(|bound| bound.simplify(&ranges)).collect();
                match () {
                    () if truths.contains(&BoundTruth::Never) => {
                        self.add(ValueOp::Literal(Scalar::from_bool(false)), DType::Bool)
                    }
                    () if truths.iter().all(|truth| *truth == BoundTruth::Always) => {
                        self.add(ValueOp::Literal(Scalar::from_bool(true)), DType::Bool)
                    }
                    () => self.add(ValueOp::InBounds(bounds), dtype),
                }
            }
            ValueOp::Load { buffer, index, guard: Some(guard) } => match truth(&self.kernel, guard) {
                Some(true) => self.add(ValueOp::Load { buffer, index, guard: None }, dtype),
                Some(false) => self.add(ValueOp::Literal(Scalar::from_i64(dtype, 0)), dtype),
                None => self.add(ValueOp::Load { buffer, index, guard: Some(guard) }, dtype),
            },
            ValueOp::Select(condition, a, b) => match truth(&self.kernel, condition) {
                Some(holds) => {
                    if holds {
                        a
                    } else {
                        b
                    }
                }
                None => self.add(ValueOp::Select(condition, a, b), dtype),
            },
            op => self.add(op, dtype),
        }
    }
}
