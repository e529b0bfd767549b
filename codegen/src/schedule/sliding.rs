//! Windows that slide by one element along an axis: a window's elements but one are those of the next.

use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};

/// Longer windows are rows of their own: partial results of them need room.
const LONGEST: u64 = 2048;

/// The reduced axis, and its length, along which the windows of a reduction slide by one element as `axis` does: moving on
/// along either reads the same. The longest, if there are several.
pub(crate) fn sliding_axis(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<(AxisId, u64)> {
    let ValueOp::Reduce { axes, operand, position: None, .. } = &kernel.value(id).op else { return None };
    let below = kernel.down_from([*operand]);
    let slides = |along: AxisId| {
        let mut moves = false;
        let is_same = below.iter().all(|&id| {
            let op = &kernel.value(id).op;
            op.indices().into_iter().all(|index| {
                let (a, b) = (index.coefficient(axis), index.coefficient(along));
                moves |= b.is_some_and(|b| b != 0);
                a.is_some() && a == b && kernel.computed_axes(index).is_empty()
            })
        });
        is_same && moves
    };
    let lengths = axes.iter().filter(|&&axis| !kernel.axis(axis).is_argument);
    let lengths = lengths.map(|&axis| (axis, kernel.axis(axis).extent));
    lengths.filter(|&(along, length)| length <= LONGEST && slides(along)).max_by_key(|&(_, length)| length)
}

/// Longer windows with a stride are rows of their own: as many of their parts are combined for each result.
pub(crate) const LONGEST_UNROLLED: u64 = 25;

/// Windows move on by at most so many of their own elements.
const LONGEST_STRIDE: u64 = 16;

/// Elements so far apart are picked out of whole vectors.
const NEAR: u64 = 4;

/// The short reduced axis, its length, and by how few of its elements the windows of a reduction move on as `axis` does: moving
/// on by so many along either reads the same.
pub(crate) fn strided_axis(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<(AxisId, u64, u64)> {
    let found = any_stride(kernel, axis, id);
    found.filter(|&(_, length, stride)| stride <= LONGEST_STRIDE.min(length) && length <= LONGEST_UNROLLED)
}

/// Whether it is better to combine the other axes of windows first, at each element that they move on along: windows overlap, or
/// their elements lie far apart along lanes, and those of the first step are neighbours.
pub(crate) fn is_shared(length: u64, stride: u64) -> bool {
    stride < length || stride > NEAR
}

/// Whether neighbouring windows of a reduction share what is combined once for all of them.
pub(crate) fn shares_windows(kernel: &Kernel, axis: AxisId, id: ValueId) -> bool {
    let strided =
        || strided_axis(kernel, axis, id).is_some_and(|(_, length, stride)| is_shared(length, stride));
    let has_others = || match &kernel.value(id).op {
        ValueOp::Reduce { op, axes, .. } => op.is_plain() && axes.len() > 1,
        _ => false,
    };
    sliding_axis(kernel, axis, id).is_some() || has_others() && strided()
}

fn any_stride(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<(AxisId, u64, u64)> {
    let ValueOp::Reduce { axes, operand, position: None, .. } = &kernel.value(id).op else { return None };
    let below = kernel.down_from([*operand]);
    let indices: Vec<_> = below.iter().flat_map(|&id| kernel.value(id).op.indices()).collect();
    if indices.iter().any(|index| !kernel.computed_axes(index).is_empty()) {
        return None;
    }
    let stride = |along: AxisId| -> Option<u64> {
        let mut found: Option<i64> = None;
        for index in &indices {
            let (a, b) = (index.coefficient(axis)?, index.coefficient(along)?);
            match (a, b) {
                (0, 0) => {}
                (_, 0) => return None,
                _ if a % b != 0 || *found.get_or_insert(a / b) != a / b => return None,
                _ => {}
            }
        }
        found.filter(|&stride| stride > 0).map(|stride| stride as u64)
    };
    let along = axes.iter().filter(|&&axis| !kernel.axis(axis).is_argument && kernel.axis(axis).extent > 1);
    let mut along = along.filter_map(|&axis| Some((axis, kernel.axis(axis).extent, stride(axis)?)));
    along.next()
}
