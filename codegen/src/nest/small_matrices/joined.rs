//! Joins that lie across: each part is turned to its own lines of one tile, so that no lane chooses among parts.

use super::{Across, Tile};
use crate::index::{AxisId, Bound, IndexExpr};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// Positions of a join that are looked at, at most.
const MOST_LOOKED_AT: u64 = 1024;

/// A part: what it loads, and the first and last of the lines that are its own.
struct Part {
    load: ValueId,
    from: i64,
    to: i64,
}

impl Tile {
    /// Of a choice by position among loads that would be one, if the parts were side by side.
    pub(super) fn joined(kernel: &Kernel, id: ValueId, along: AxisId, moving: &[AxisId]) -> Option<Tile> {
        let ValueOp::Select(..) = kernel.value(id).op else { return None };
        let axes: Vec<AxisId> = kernel.value(id).axes.iter().copied().filter(|&axis| axis != along).collect();
        let is_moving = |axis: &AxisId| moving.contains(axis);
        let is_loop = |axis: &&AxisId| matches!(kernel.axis(**axis).kind, AxisKind::Map | AxisKind::Reduce);
        let own: Vec<AxisId> = axes.iter().filter(is_loop).copied().filter(is_moving).collect();
        let positions: u64 = own.iter().map(|&axis| kernel.axis(axis).extent).product();
        if !(1..=MOST_LOOKED_AT).contains(&positions) {
            return None;
        }
        let (mut parts, mut line): (Vec<Part>, Option<IndexExpr>) = (Vec::new(), None);
        for position in 0..positions {
            let at = |axis: AxisId| place(kernel, &own, position, axis);
            let load = chosen(kernel, id, &at, &own)?;
            let ValueOp::Load { index, .. } = &kernel.value(load).op else { return None };
            let steps = steps(kernel, index, &own)?;
            let number = steps.evaluate(&at);
            if *line.get_or_insert(steps.clone()) != steps {
                return None;
            }
            match parts.iter_mut().find(|part| part.load == load) {
                Some(part) => (part.from, part.to) = (part.from.min(number), part.to.max(number)),
                None => parts.push(Part { load, from: number, to: number }),
            }
        }
        parts.sort_unstable_by_key(|part| part.from);
        if parts.len() < 2 || parts.windows(2).any(|pair| pair[0].to >= pair[1].from) {
            return None;
        }
        let first = parts.first()?.from;
        let span = u64::try_from(parts.last()?.to - first + 1).ok()?;
        let mut dtype = None;
        let mut joined: Vec<(u64, Across)> = Vec::new();
        for Part { load, from, to } in parts {
            let ValueOp::Load { buffer, index, .. } = &kernel.value(load).op else { return None };
            let (ranges, zero) = (kernel.ranges(), IndexExpr::zero());
            let stride = u64::try_from(index.coefficient(along)?).ok()?;
            let bare = |index: IndexExpr, axis: &AxisId| index.substitute(*axis, &zero, &ranges);
            let first_element = own.iter().chain([&along]).fold(index.clone(), bare).offset(from);
            let across =
                Across { buffer: *buffer, first: first_element, stride, span: (to - from + 1) as u64 };
            let own = kernel.buffers[buffer.index()].dtype;
            if *dtype.get_or_insert(own) != own {
                return None;
            }
            joined.push(((from - first) as u64, across));
        }
        Tile { parts: joined, dtype: dtype?, span, element: line?.offset(-first) }.filter()
    }
}

/// The place along an axis of a position of all of them.
fn place(kernel: &Kernel, axes: &[AxisId], position: u64, axis: AxisId) -> i64 {
    let mut left = position;
    for &other in axes.iter().rev() {
        let extent = kernel.axis(other).extent;
        if other == axis {
            return (left % extent) as i64;
        }
        left /= extent;
    }
    0
}

/// The load that a choice comes to at a position.
fn chosen(kernel: &Kernel, id: ValueId, at: &dyn Fn(AxisId) -> i64, axes: &[AxisId]) -> Option<ValueId> {
    let holds = |guard: ValueId| match &kernel.value(guard).op {
        ValueOp::InBounds(bounds) => {
            let is_known = |bound: &Bound| bound.expr.axes().iter().all(|axis| axes.contains(axis));
            let is_inside = |bound: &Bound| (bound.lo..bound.hi).contains(&bound.expr.evaluate(at));
            bounds.iter().all(is_known).then(|| bounds.iter().all(is_inside))
        }
        _ => None,
    };
    match kernel.value(id).op {
        ValueOp::Select(condition, a, b) => chosen(kernel, if holds(condition)? { a } else { b }, at, axes),
        ValueOp::Load { guard: Some(guard), .. } => holds(guard)?.then_some(id),
        ValueOp::Load { guard: None, .. } => Some(id),
        _ => None,
    }
}

/// What an index adds at the positions of some axes.
fn steps(kernel: &Kernel, index: &IndexExpr, axes: &[AxisId]) -> Option<IndexExpr> {
    let is_plain = kernel.computed_axes(index).is_empty();
    let add = |sum: IndexExpr, &axis: &AxisId| {
        Some(sum.add(&IndexExpr::axis(axis).scale(index.coefficient(axis)?)))
    };
    axes.iter().try_fold(IndexExpr::zero(), add).filter(|_| is_plain)
}
