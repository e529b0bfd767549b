//! Squared deviations of shifted data: of distances from the row's first element. T. F. Chan, G. H. Golub, R. J. LeVeque,
//! "Algorithms for computing the sample variance", 1983.
//!
//! Deviations from the mean are the same whatever is subtracted from all elements. Welford's method rounds its running mean at each
//! step, by as much as the mean is large; the mean of distances is as small as the spread. Sums are not shifted: one that begins with
//! infinity would be NaN, and one of integers beside a large first one inexact.

use smallvec::SmallVec;

use crate::index::{Atom, AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, Numbered, ValueId, ValueOp};
use crate::{BinaryOp, ReduceOp};

/// What the first element costs at most, in simple operations: it is computed once a row, but spelled out once more.
const MOST_OPERATIONS: f64 = 16.0;

type Axes = SmallVec<[AxisId; 4]>;

/// The kernel with deviations of distances from the first element, wherever that is simple; `None` if it is nowhere.
pub(super) fn from_first(kernel: &Kernel) -> Option<Kernel> {
    let rows = rows(kernel);
    if rows.is_empty() {
        return None;
    }
    let mut result = Numbered::like(kernel);
    let mut new_ids: Vec<ValueId> = Vec::with_capacity(kernel.values.len());
    for value in &kernel.values {
        let mut op = value.op.clone();
        op.named_operands_mut().into_iter().for_each(|id| *id = new_ids[id.index()]);
        if let ValueOp::Reduce { op: ReduceOp::SquaredDeviations, axes, operand, .. } = &mut op
            && let ValueOp::Reduce { operand: own, .. } = value.op
            && rows.iter().any(|(of, along)| *of == own && along[..] == axes[..])
        {
            *operand = distance(kernel, &mut result, &new_ids, own, axes);
        }
        new_ids.push(result.add(op, value.dtype));
    }
    let mut result = result.kernel;
    for store in &kernel.stores {
        result.store(store.buffer, store.index.clone(), new_ids[store.value.index()]);
    }
    Some(result)
}

/// What is reduced to squared deviations, and along which axes, where the first element is simple and of no other row.
fn rows(kernel: &Kernel) -> Vec<(ValueId, Axes)> {
    if kernel.has_computed_axes() || !kernel.recurrences.is_empty() {
        return Vec::new();
    }
    let deviations = kernel.values.iter().filter_map(|value| match &value.op {
        ValueOp::Reduce { op: ReduceOp::SquaredDeviations, axes, operand, .. } => {
            Some((*operand, axes.clone()))
        }
        _ => None,
    });
    let has_first = |axes: &Axes| axes.iter().all(|&axis| kernel.axis(axis).extent > 0);
    deviations.filter(|(operand, axes)| has_first(axes) && is_simple(kernel, *operand, axes)).collect()
}

fn is_simple(kernel: &Kernel, operand: ValueId, axes: &Axes) -> bool {
    let varying = varying(kernel, operand, axes);
    let cost = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Unary(op, _) => op.cost(),
        ValueOp::Binary(op, ..) => op.cost(),
        ValueOp::Load { .. } | ValueOp::InBounds(_) | ValueOp::Select(..) | ValueOp::Cast(..) => 1.0,
        _ => f64::INFINITY,
    };
    let is_apart = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Load { index, .. } => is_apart(kernel, index, axes),
        _ => true,
    };
    varying.iter().map(cost).sum::<f64>() <= MOST_OPERATIONS && varying.iter().all(is_apart)
}

/// Whether rows have no elements in common, as far as strides say: windows share what their elements combine to.
fn is_apart(kernel: &Kernel, index: &IndexExpr, axes: &Axes) -> bool {
    let span = |axis: AxisId, factor: i64| kernel.axis(axis).extent.saturating_mul(factor.unsigned_abs());
    let terms = || index.terms().iter();
    let reduced = terms().filter_map(|(atom, factor)| match atom {
        Atom::Axis(axis) if axes.contains(axis) => Some((*axis, *factor)),
        _ => None,
    });
    reduced.into_iter().all(|(axis, factor)| {
        terms().all(|(atom, other)| match atom {
            Atom::Axis(along) if kernel.axis(*along).kind == AxisKind::Map => {
                span(axis, factor) <= other.unsigned_abs() || span(*along, *other) <= factor.unsigned_abs()
            }
            _ => true,
        })
    })
}

/// The values that one follows from, itself among them, and that vary along the axes.
fn varying(kernel: &Kernel, operand: ValueId, axes: &Axes) -> Vec<ValueId> {
    let varies = |id: &ValueId| kernel.value(*id).axes.iter().any(|axis| axes.contains(axis));
    kernel.down_from([operand]).into_iter().filter(varies).collect()
}

/// The distance of a row's elements from its first one.
fn distance(
    kernel: &Kernel,
    result: &mut Numbered,
    new_ids: &[ValueId],
    operand: ValueId,
    axes: &Axes,
) -> ValueId {
    let ranges = kernel.ranges();
    let mut firsts: Vec<(ValueId, ValueId)> = Vec::new();
    for id in varying(kernel, operand, axes) {
        let value = kernel.value(id);
        let mut op = value.op.clone();
        for index in op.indices_mut() {
            for &axis in axes {
                *index = index.substitute(axis, &IndexExpr::constant(0), &ranges);
            }
        }
        for own in op.named_operands_mut() {
            let first = firsts.iter().find(|(of, _)| of == own).map(|(_, first)| *first);
            *own = first.unwrap_or(new_ids[own.index()]);
        }
        firsts.push((id, result.decided(op, value.dtype)));
    }
    let dtype = kernel.value(operand).dtype;
    let own = new_ids[operand.index()];
    let first = firsts.last().map_or(own, |(_, first)| *first);
    result.add(ValueOp::Binary(BinaryOp::Sub, own, first), dtype)
}
