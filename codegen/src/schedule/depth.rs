//! Axes as one: how many positions they have, and one axis in place of several.

use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, Value, ValueOp};

pub(super) fn positions(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}

/// The kernel with one summed axis in place of several, and that axis.
pub(crate) fn with_one_depth(kernel: &Kernel, depth: &[AxisId]) -> (Kernel, AxisId) {
    with_one_axis(kernel, depth, AxisKind::Reduce)
}

/// The kernel with one axis of this kind in place of several, and that axis.
fn with_one_axis(kernel: &Kernel, depth: &[AxisId], kind: AxisKind) -> (Kernel, AxisId) {
    let mut result = kernel.clone();
    if let [axis] = depth {
        return (result, *axis);
    }
    let extent = positions(kernel, depth);
    let outer = depth.first().copied().filter(|&axis| kernel.axis(axis).is_argument);
    let flat = result.add_axis(kind, extent, outer.is_some());
    // Only the outermost extent may be an argument.
    result.axes[flat.0 as usize].positions_of = outer.map(|outer| (outer, positions(kernel, &depth[1..])));
    for value in &mut result.values {
        if let ValueOp::Reduce { axes, .. } = &mut value.op
            && axes.as_slice() == depth
        {
            *axes = [flat].into_iter().collect();
        }
    }
    let ranges = result.ranges();
    let mut stride = 1i64;
    let mut parts = Vec::new();
    for (place, &axis) in depth.iter().enumerate().rev() {
        let extent = kernel.axis(axis).extent as i64;
        let mut part = IndexExpr::axis(flat).div(stride, &ranges);
        if place > 0 {
            part = part.modulo(extent, &ranges);
        }
        parts.push((axis, part));
        stride *= extent;
    }
    result.map_indices(|index| {
        parts.iter().fold(index.clone(), |index, (axis, part)| index.substitute(*axis, part, &ranges))
    });
    (result, flat)
}

/// An elementwise kernel with one axis of results in place of several, and that axis, if its results are neighbours along it. What
/// is broadcast is read at a remainder or quotient.
pub(crate) fn flattened(kernel: &Kernel) -> Option<(Kernel, AxisId)> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let is_plain = |value: &Value| match &value.op {
        ValueOp::Load { index, guard: None, .. } => kernel.computed_axes(index).is_empty(),
        ValueOp::Literal(_) | ValueOp::Argument(_) => true,
        op => op.is_elementwise(),
    };
    let is_argument = |&axis: &AxisId| kernel.axis(axis).is_argument;
    if map.len() < 2 || map[1..].iter().any(is_argument) || !kernel.values.iter().all(is_plain) {
        return None;
    }
    let (result, flat) = with_one_axis(kernel, &map, AxisKind::Map);
    let are_neighbours = result.stores.iter().all(|store| store.index.coefficient(flat) == Some(1));
    are_neighbours.then_some((result, flat))
}
