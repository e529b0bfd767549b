//! When transposed reads go through shared memory.

use super::TiledSchedule;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// Rows and columns of a tile: as many 4-byte elements as a cache line has.
pub(crate) const TILE: u64 = 32;

/// Rows of threads in a block; each thread has `TILE / ROWS` results.
const ROWS: u32 = 8;

/// Bytes of shared memory that the tiles of a block may take, so that several blocks fit a multiprocessor.
const SHARED_BYTES: u64 = 32 << 10;

/// The loads that are consecutive along `across`, and stride along the innermost axis.
pub(crate) fn transposed_loads(kernel: &Kernel, across: AxisId) -> Vec<ValueId> {
    let Some(&inner) = kernel.axes_of_kind(AxisKind::Map).last() else { return Vec::new() };
    let is_transposed = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Load { index, guard: None, .. } => {
            let stride = |axis: AxisId| index.coefficient(axis).unwrap_or(0).unsigned_abs();
            // A value of a tile's positions: not of a loop within them, of a computed
            // position, or of a quotient of their index.
            let varies_otherwise = index.axes().into_iter().any(|axis| {
                !kernel.axis(axis).kind.is_map_or_offset()
                    || axis == inner && index.coefficient(axis).is_none()
            });
            !varies_otherwise && stride(across) == 1 && stride(inner) >= TILE / 2
        }
        _ => false,
    };
    (0..kernel.values.len() as u32).map(ValueId).filter(is_transposed).collect()
}

/// A schedule with tiles where it pays.
pub(super) fn tiled(kernel: &Kernel) -> Option<TiledSchedule> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let (&inner, outer) = map.split_last()?;
    let extent = |axis: AxisId| kernel.axis(axis).extent;
    let is_written_along = |axis| kernel.stores.iter().any(|store| store.index.coefficient(axis) == Some(1));
    if extent(inner) < TILE / 2 || !is_written_along(inner) {
        return None;
    }
    let bytes = |id: ValueId| match kernel.value(id).op {
        ValueOp::Load { buffer, .. } => {
            let buffer = &kernel.buffers[buffer.index()];
            (buffer.elements * buffer.dtype.size() as u64, buffer.dtype.size() as u64 * TILE * (TILE + 1))
        }
        _ => (0, 0),
    };
    let mut best: Option<(u64, AxisId)> = None;
    for &across in outer.iter().filter(|&&axis| extent(axis) >= TILE / 2) {
        let loads = transposed_loads(kernel, across);
        let moved: u64 = loads.iter().map(|&id| bytes(id).0).sum();
        let shared: u64 = loads.iter().map(|&id| bytes(id).1).sum();
        if moved > best.map_or(0, |(most, _)| most) && shared <= SHARED_BYTES {
            best = Some((moved, across));
        }
    }
    best.map(|(_, across)| TiledSchedule { across, rows: ROWS })
}
