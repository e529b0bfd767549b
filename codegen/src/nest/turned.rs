//! Small inputs of the CPU's kernels that all rows of a block read, and whose elements lie far apart along the lanes, as weights
//! of a channel do where channels are innermost, or a matrix's diagonal: a block lays them out along the lanes before its rows.

use super::accumulate::{mul_add, set};
use super::emitter::{Emitter, Staged};
use super::loops::counting;
use super::stmt::{Expr, LoopHint, Type};
use super::variable::Var;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};

/// Elements closer to each other are picked out of whole vectors.
const FAR: u64 = 5;

/// Rows that read what is laid out, at least.
const FEWEST_ROWS: u64 = 4;

/// Bytes of all arrays together: half of the nearest cache.
const MOST_BYTES: u64 = 16 * 1024;

/// Lays them out for a block of so many rows, whose lanes go along `inner`.
pub(super) fn lay_out<'k>(emitter: &mut Emitter<'k>, kernel: &'k Kernel, inner: AxisId, rows: u64) {
    if rows < FEWEST_ROWS {
        return;
    }
    let mut arrays: Vec<(Var, &IndexExpr, BufferId)> = Vec::new();
    let mut left = MOST_BYTES;
    for number in 0..kernel.values.len() as u32 {
        let id = ValueId(number);
        let ValueOp::Load { buffer, index, guard: None } = &kernel.value(id).op else { continue };
        let Some(axes) = axes_of(kernel, index, inner) else { continue };
        let dtype = kernel.buffers[buffer.index()].dtype;
        let width = kernel.axis(inner).extent.next_multiple_of(16);
        let lines: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
        let line = axes
            .iter()
            .fold(Expr::Int(0), |line, &axis| mul_add(line, Expr::Int(kernel.axis(axis).extent), axis));
        let slot = mul_add(line, width, inner);
        let same = arrays.iter().find(|(_, other, from)| (other, from) == (&index, buffer));
        let array = match same {
            Some((array, ..)) => *array,
            None if lines * width * dtype.size() as u64 > left => continue,
            None => {
                left -= lines * width * dtype.size() as u64;
                let array = emitter.fresh("turned");
                emitter.array(array, Type::Memory(dtype), lines * width);
                let element = Expr::element(*buffer, Expr::Index(index.clone()));
                let copy = set(Expr::element(array, slot.clone()), element);
                let loops = axes.iter().rev().fold(
                    counting(inner, 0, kernel.axis(inner).extent, LoopHint::Simd).of(vec![copy]),
                    |body, &axis| counting(axis, 0, kernel.axis(axis).extent, LoopHint::None).of(vec![body]),
                );
                emitter.push(loops);
                arrays.push((array, index, *buffer));
                array
            }
        };
        emitter.staged.insert(id, Staged { array, dtype, slot: Some(slot) });
    }
}

/// What is laid out is for positions within their extents. Takes it away, to be given back, from loops that compute an element for all
/// windows that have it, at positions of the first or beyond the last.
pub(super) fn take(emitter: &mut Emitter) -> Vec<(ValueId, Staged)> {
    let of_positions = emitter.staged.iter().filter(|(_, staged)| staged.slot.is_some());
    let ids: Vec<ValueId> = of_positions.map(|(id, _)| *id).collect();
    ids.into_iter().filter_map(|id| emitter.staged.remove_entry(&id)).collect()
}

/// The reduced axes of an index that says the same for all rows, and far ones for neighbouring lanes.
fn axes_of(kernel: &Kernel, index: &IndexExpr, inner: AxisId) -> Option<Vec<AxisId>> {
    let stride = index.coefficient(inner)?.unsigned_abs();
    let is_fixed = |axis: AxisId| !kernel.axis(axis).is_argument;
    if stride < FAR || !is_fixed(inner) {
        return None;
    }
    let mut axes = Vec::new();
    for axis in index.axes() {
        match kernel.axis(axis).kind {
            AxisKind::Offset { .. } => {}
            AxisKind::Map | AxisKind::Reduce if axis == inner => {}
            AxisKind::Reduce if is_fixed(axis) => axes.push(axis),
            _ => return None,
        }
    }
    Some(axes)
}
