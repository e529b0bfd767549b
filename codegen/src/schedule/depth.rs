//! Axes as one: how many positions they have, and several summed axes in place of which there is one.

use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, ValueOp};

pub(super) fn positions(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}

/// The kernel with one summed axis in place of several, and that axis.
pub(crate) fn with_one_depth(kernel: &Kernel, depth: &[AxisId]) -> (Kernel, AxisId) {
    let mut result = kernel.clone();
    if let [axis] = depth {
        return (result, *axis);
    }
    let extent = positions(kernel, depth);
    let outer = depth.first().copied().filter(|&axis| kernel.axis(axis).is_argument);
    let flat = result.add_axis(AxisKind::Reduce, extent, outer.is_some());
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
