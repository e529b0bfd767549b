//! When transposed reads go through shared memory.

use std::borrow::Cow;

use super::TiledSchedule;
use crate::Language;
use crate::index::{Atom, AxisId, Bound};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// Rows and columns of a tile: as many 4-byte elements as a cache line has.
pub(crate) const TILE: u64 = 32;

/// The same on a core, whose memory answers faster the longer the lines that it is asked for: with 32, 64 and 128 rows of as many
/// columns, 1024 × 4096 numbers took 4.9, 2.6 and 2.6 ms.
const CORE_TILE: u64 = 64;

/// From one row of a core's tile to the next: whole vectors, and not a power of two, whose places share sets of a cache.
pub(crate) const CORE_PITCH: u64 = CORE_TILE + 16;

/// Rows of threads in a block; each thread has `TILE / ROWS` results.
const ROWS: u32 = 8;

/// Bytes of shared memory that the tiles of a block may take, so that several blocks fit a multiprocessor; and of a core's stack.
const SHARED_BYTES: u64 = 32 << 10;
const TILES_BYTES: u64 = 128 << 10;

/// The loads that are consecutive along `across`, and stride along the innermost axis. A core goes through a tile row by row,
/// each of which may be anywhere, and copies as much of it as a guard leaves.
pub(crate) fn transposed_loads(kernel: &Kernel, across: AxisId, language: Language) -> Vec<ValueId> {
    let Some(&inner) = kernel.axes_of_kind(AxisKind::Map).last() else { return Vec::new() };
    let is_transposed = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Load { index, guard, .. } => {
            let is_whole = match guard.map(|guard| &kernel.value(guard).op) {
                None => true,
                Some(ValueOp::InBounds(bounds)) => {
                    language == Language::C && bounds.iter().all(|bound| limits(kernel, bound).is_some())
                }
                Some(_) => false,
            };
            let stride = |axis: AxisId| index.coefficient(axis).unwrap_or(0).unsigned_abs();
            let is_divided = index.coefficient(inner).is_none();
            // A value of a tile's positions: not of a loop within them, of a computed
            // position, or of a quotient of their index.
            let varies_otherwise = index.axes().into_iter().any(|axis| {
                !kernel.axis(axis).kind.is_map_or_offset()
                    || axis == inner && is_divided && language == Language::Cuda
            });
            is_whole && !varies_otherwise && stride(across) == 1 && (is_divided || stride(inner) >= TILE / 2)
        }
        _ => false,
    };
    (0..kernel.values.len() as u32).map(ValueId).filter(is_transposed).collect()
}

/// The axis whose positions a bound limits, if it is one, and the first position and the one after the last, where there are such.
pub(crate) fn limits(kernel: &Kernel, bound: &Bound) -> Option<(AxisId, Option<i64>, Option<i64>)> {
    match bound.expr.terms() {
        [(Atom::Axis(axis), 1)] if kernel.axis(*axis).kind == AxisKind::Map => {
            let at = |limit: i64| limit - bound.expr.constant_term();
            let (lo, hi) = (bound.has_lo().then(|| at(bound.lo)), bound.has_hi().then(|| at(bound.hi)));
            Some((*axis, lo, hi))
        }
        _ => None,
    }
}

/// A schedule with tiles where it pays, and the kernel that has them: on a core, an innermost axis that is shorter than a tile
/// is one with the axis before it.
pub(crate) fn tiled(kernel: &Kernel, language: Language) -> Option<(Cow<'_, Kernel>, TiledSchedule)> {
    if let Some(schedule) = tiles(kernel, language) {
        return Some((Cow::Borrowed(kernel), schedule));
    }
    let [.., before, inner] = kernel.axes_of_kind(AxisKind::Map)[..] else { return None };
    let is_known = !kernel.axis(before).is_argument && !kernel.axis(inner).is_argument;
    let is_short = (2..TILE / 2).contains(&kernel.axis(inner).extent);
    if language == Language::Cuda || !is_known || !is_short {
        return None;
    }
    let flat = kernel.with_merged(before, inner);
    let schedule = tiles(&flat, language)?;
    // No other access divides in the lanes.
    let staged = transposed_loads(&flat, schedule.across, language);
    let inner = *flat.axes_of_kind(AxisKind::Map).last()?;
    let others = flat.values.iter().enumerate().filter(|(id, _)| !staged.contains(&ValueId(*id as u32)));
    let others = others.flat_map(|(_, value)| value.op.indices());
    let others = others.chain(flat.stores.iter().map(|store| &store.index));
    let is_plain = others.into_iter().all(|index| index.coefficient(inner).is_some());
    is_plain.then_some((Cow::Owned(flat), schedule))
}

fn tiles(kernel: &Kernel, language: Language) -> Option<TiledSchedule> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let (&inner, outer) = map.split_last()?;
    let extent = |axis: AxisId| kernel.axis(axis).extent;
    let is_written_along = |axis| kernel.stores.iter().any(|store| store.index.coefficient(axis) == Some(1));
    if extent(inner) < TILE / 2 || !is_written_along(inner) {
        return None;
    }
    let (tile, pitch, most) = match language {
        Language::Cuda => (TILE, TILE + 1, SHARED_BYTES),
        Language::C => (CORE_TILE, CORE_PITCH, TILES_BYTES),
    };
    let bytes = |id: ValueId| match kernel.value(id).op {
        ValueOp::Load { buffer, .. } => {
            let buffer = &kernel.buffers[buffer.index()];
            (buffer.elements * buffer.dtype.size() as u64, buffer.dtype.size() as u64 * tile * pitch)
        }
        _ => (0, 0),
    };
    let mut best: Option<(u64, AxisId)> = None;
    for &across in outer.iter().filter(|&&axis| extent(axis) >= TILE / 2) {
        let loads = transposed_loads(kernel, across, language);
        let moved: u64 = loads.iter().map(|&id| bytes(id).0).sum();
        let shared: u64 = loads.iter().map(|&id| bytes(id).1).sum();
        if moved > best.map_or(0, |(most, _)| most) && shared <= most {
            best = Some((moved, across));
        }
    }
    best.map(|(_, across)| TiledSchedule { across, tile: tile as u32, rows: ROWS })
}
