//! Windows that slide by one element along an axis: a window's elements but one are those of the next.

use super::share::NEAR;
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

/// The short reduced axis, its length, and by how few of its elements the windows of a reduction move on as `axis` does: moving
/// on by so many along either reads the same.
pub(crate) fn strided_axis(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<(AxisId, u64, u64)> {
    let found = any_stride(kernel, axis, id);
    found.filter(|&(along, length, stride)| {
        let is_short = stride <= LONGEST_STRIDE.min(length) && length <= LONGEST_UNROLLED;
        is_short && (stride < length || !is_of_lines(kernel, along, id))
    })
}

/// Lines of a window that are shorter leave too much of a vector to nothing.
const SHORTEST_LINE: u64 = 14;

/// Whether what is read lies across a reduced axis, and along another one that is not short. Windows that touch share nothing
/// that would be worth lanes along the first: they are rows of several lines.
fn is_of_lines(kernel: &Kernel, along: AxisId, id: ValueId) -> bool {
    let ValueOp::Reduce { axes, operand, .. } = &kernel.value(id).op else { return false };
    kernel.down_from([*operand]).iter().any(|&id| {
        let ValueOp::Load { index, .. } = &kernel.value(id).op else { return false };
        let step = |axis: AxisId| index.coefficient(axis).unwrap_or(0).unsigned_abs();
        let is_line = |other: AxisId| kernel.axis(other).extent >= SHORTEST_LINE && step(other) > 0;
        axes.iter().any(|&other| is_line(other) && step(other) < step(along) && step(along) > NEAR)
    })
}

/// Whether windows of several axes are better combined along the others first, at each element of this one, of which windows
/// have some: they overlap, so that the first step is shared, or begin far apart, so that its lanes are the nearer ones.
pub(crate) fn is_last(length: u64, stride: u64) -> bool {
    stride < length || stride > NEAR
}

/// Whether neighbouring windows of a reduction share partial results.
pub(crate) fn shares_partials(kernel: &Kernel, axis: AxisId, id: ValueId) -> bool {
    let is_strided =
        || strided_axis(kernel, axis, id).is_some_and(|(_, length, stride)| is_last(length, stride));
    let has_others = || match &kernel.value(id).op {
        ValueOp::Reduce { op, axes, .. } => op.is_plain() && axes.len() > 1,
        _ => false,
    };
    sliding_axis(kernel, axis, id).is_some() || has_others() && is_strided()
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
