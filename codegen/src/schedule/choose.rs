//! Choosing a schedule from the kernel's shape and the target's figures.

use super::columns::columns;
use super::depth::flattened;
use super::facts::{
    Figures, SHORTEST_COLUMNS, THREADS, cooperative, extent_of, largest_power_of_two_divisor, loads_below,
};
use super::rows::rows;
use super::scans::{divided, scan};
use super::sliding::shares_partials;
use super::taps::is_in_lanes;
use super::vector::Sizes;
use super::work::elements_per_block;
use super::{Contraction, PointwiseSchedule, RowContraction, Scatters, Schedule, Sorts};
use crate::index::{Atom, AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, Value, ValueId, ValueOp};
use crate::{Language, Refusal};

/// Bytes of elements that threads should not read one by one.
const NARROW: u64 = 2;

/// Register values that the unrolled loops of one thread may load.
const LOADS_PER_THREAD: u64 = 64;

/// Whether a core makes all of these reductions of what neighbouring windows share, or has neighbouring windows in its lanes: see
/// `nest::windows_cpu`.
fn slides(kernel: &Kernel, reductions: &[ValueId]) -> bool {
    let Some(&inner) = kernel.axes_of_kind(AxisKind::Map).last() else { return false };
    let is_reduced = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce;
    let is_long = kernel.axis(inner).extent >= SHORTEST_COLUMNS;
    is_long
        && reductions.iter().all(|&id| shares_partials(kernel, inner, id) || is_in_lanes(kernel, inner, id))
        && !kernel.stores.iter().any(|store| {
            kernel.value(store.value).axes.iter().any(is_reduced) || store.index.axes().iter().any(is_reduced)
        })
}

/// A schedule for the kernel.
///
/// # Errors
/// If none can run it: the reason.
pub fn schedule(kernel: &Kernel, language: Language, figures: &Figures) -> Result<Schedule, Refusal> {
    if let Some(scan) = scan(kernel, language) {
        return Ok(Schedule::Scan(divided(kernel, &scan, language, figures).unwrap_or(scan)));
    }
    if let Some(scatters) = Scatters::of(kernel)? {
        return Ok(Schedule::Scatter(super::scatter::scatter(kernel, &scatters, language, figures)));
    }
    if let Some(sorts) = Sorts::of(kernel)? {
        return Ok(Schedule::Sort(super::sort::sort(kernel, &sorts, language)));
    }
    if let Some(contraction) = Contraction::of(kernel, language) {
        return Ok(match language {
            Language::C => match RowContraction::instead(kernel, &contraction) {
                Some(rows) => Schedule::RowContraction(rows.schedule(kernel)),
                None => Schedule::Contraction(contraction.schedule(kernel)),
            },
            Language::Cuda => Schedule::Product(contraction.tiles(kernel, figures)),
        });
    }
    if let Some(rows) = RowContraction::of(kernel, language) {
        match language {
            Language::C => return Ok(Schedule::RowContraction(rows.schedule(kernel))),
            Language::Cuda => {
                if let Some(tiles) = rows.tiles(kernel, figures) {
                    return Ok(Schedule::RowProduct(tiles));
                }
            }
        }
    }
    if let Some(across) = super::across::across(kernel).filter(|_| language == Language::C) {
        return Ok(Schedule::Columns(across));
    }
    let reductions = cooperative(kernel)?;
    if reductions.is_empty()
        && let Some((_, tiled)) = super::tiled::tiled(kernel, language)
    {
        return Ok(Schedule::Tiled(tiled));
    }
    let first = reductions.first().filter(|_| language == Language::Cuda || !slides(kernel, &reductions));
    match first {
        None => Ok(Schedule::Pointwise(pointwise(kernel, language))),
        Some(&first) => {
            let ValueOp::Reduce { axes, operand, .. } = &kernel.value(first).op else {
                return Err(Refusal::Misfit("not a reduction"));
            };
            let goes_along_rows = match language {
                Language::C if is_short_of_lanes(kernel, axes) => Some(false),
                Language::C => strides_less_along(kernel, axes, *operand),
                Language::Cuda => None,
            };
            match goes_along_rows.unwrap_or_else(|| reduces_contiguous_axis(kernel, axes, *operand)) {
                true => Ok(Schedule::Rows(rows(kernel, axes, language, figures))),
                false => Ok(Schedule::Columns(columns(kernel, axes, language, figures))),
            }
        }
    }
}

/// The schedule of a kernel whose threads compute results of their own.
pub(super) fn pointwise(kernel: &Kernel, language: Language) -> PointwiseSchedule {
    match language {
        Language::Cuda => PointwiseSchedule {
            threads: THREADS,
            vector: pointwise_vector(kernel),
            elements_per_block: 0,
            order: None,
        },
        Language::C => PointwiseSchedule {
            threads: 1,
            vector: 1,
            elements_per_block: elements_per_block(kernel),
            order: None,
        },
    }
}

/// Consecutive results of a thread, where some store is consecutive along the innermost axis; fewer if the unrolled loops
/// would load too much.
fn pointwise_vector(kernel: &Kernel) -> u32 {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let Some(&inner) = map.last() else { return 1 };
    if !kernel.stores.iter().any(|store| store.index.coefficient(inner) == Some(1)) {
        return 1;
    }
    let mut vector = Sizes::along(kernel, &[inner]).vector();
    if map.len() > 1 {
        vector = largest_power_of_two_divisor(kernel.axis(inner).extent, vector);
        // Lines of an odd length are one with what is broadcast along them read element by element: single numbers of 16 bits
        // are a small part of an access.
        if vector == 1
            && let Some(vector) = vector_across_lines(kernel)
        {
            return vector;
        }
    }
    let window: u64 =
        kernel.axes_of_kind(AxisKind::Reduce).iter().map(|&axis| kernel.axis(axis).extent).product();
    // Guarded elements are read one by one: neighbouring threads should be as near as can be.
    let is_guarded = |value: &Value| matches!(value.op, ValueOp::Load { guard: Some(_), .. });
    if window > 1 && kernel.values.iter().any(is_guarded) {
        return 1;
    }
    while vector > 1 && vector * window > LOADS_PER_THREAD {
        vector /= 2;
    }
    vector as u32
}

/// The vector of an elementwise kernel as one line, where some of its elements are narrow.
fn vector_across_lines(kernel: &Kernel) -> Option<u32> {
    let (flat, axis) = flattened(kernel)?;
    let sizes = Sizes::along(&flat, &[axis]);
    sizes.narrowest().is_some_and(|bytes| bytes <= NARROW).then(|| sizes.vector() as u32)
}

/// Whether the loads below a reduction are mostly consecutive along its axes.
fn reduces_contiguous_axis(kernel: &Kernel, axes: &[AxisId], operand: ValueId) -> bool {
    let (mut along, mut across) = (0, 0);
    for load in loads_below(kernel, operand) {
        let ValueOp::Load { index, buffer, .. } = &kernel.value(load).op else { continue };
        // What is read once a row says nothing of the pass.
        if !axes.iter().any(|axis| kernel.value(load).axes.contains(axis)) {
            continue;
        }
        let elements = match kernel.computed_axes(index).is_empty() {
            true => kernel.buffers[buffer.index()].elements,
            // Few rows of a table are looked up many times.
            false => extent_of(kernel, &kernel.value(load).axes.iter().copied().collect::<Vec<_>>()),
        };
        let weight = elements.saturating_mul(kernel.buffers[buffer.index()].dtype.size() as u64);
        let consecutive = |axis: AxisId| index.least_step(axis) == 1;
        if axes.iter().any(|&axis| consecutive(axis)) {
            along += weight;
        } else if kernel.axes_of_kind(AxisKind::Map).into_iter().any(consecutive) {
            across += weight;
        }
    }
    along >= across
}

/// Whether rows are too few elements for a core's lanes, and columns enough.
fn is_short_of_lanes(kernel: &Kernel, axes: &[AxisId]) -> bool {
    let is_argument = |axis: AxisId| kernel.axis(axis).is_argument;
    let across = super::across::lanes_along(kernel);
    let fills = |axis: AxisId| is_argument(axis) || kernel.axis(axis).extent >= SHORTEST_COLUMNS;
    super::share::is_in_thread(extent_of(kernel, axes), || false)
        && !axes.iter().copied().any(is_argument)
        && across.is_some_and(fills)
}

/// Whether a core's lanes read fewer loads element by element along a row than across columns; `None` if it makes no
/// difference. What all lanes read at one place costs nothing, which is not so for the threads of a GPU's block, who share
/// what they read.
fn strides_less_along(kernel: &Kernel, axes: &[AxisId], operand: ValueId) -> Option<bool> {
    let along = *axes.last()?;
    let across = *kernel.axes_of_kind(AxisKind::Map).last()?;
    if kernel.axis(across).extent < SHORTEST_COLUMNS {
        return None;
    }
    let loads = || {
        loads_below(kernel, operand).filter_map(|load| match &kernel.value(load).op {
            ValueOp::Load { index, .. } => Some(index),
            _ => None,
        })
    };
    let strided = |axis: AxisId| {
        let is_strided = |index: &&IndexExpr| stride(index, axis).is_none_or(|c| c.unsigned_abs() > 1);
        let stores = kernel.stores.iter().map(|store| &store.index);
        loads().chain(stores.filter(|index| index.uses(along))).filter(is_strided).count()
    };
    match (strided(along), strided(across)) {
        (rows, columns) if rows != columns => Some(rows < columns),
        (0, _) => None,
        // No vectors either way: of neighbours in one line of memory the first brings the others.
        _ => {
            // Weighted by how many elements a load reads: few stay in a near cache.
            let positions = |index: &IndexExpr| {
                let own = index.axes().into_iter().map(|axis| match kernel.axis(axis) {
                    axis if axis.is_argument => UNKNOWN_EXTENT,
                    axis => axis.extent as f64,
                });
                own.product::<f64>()
            };
            let apart = |axis: AxisId| {
                loads().map(|index| distance(index, axis).min(LINE) * positions(index)).sum::<f64>()
            };
            let (rows, columns) = (apart(along), apart(across));
            (rows != columns).then_some(rows < columns)
        }
    }
}

/// Elements that a line of memory holds.
const LINE: f64 = 16.0;

/// Stands for an extent that only a launch knows.
const UNKNOWN_EXTENT: f64 = 256.0;

/// About how far neighbours along an axis are apart in memory.
fn distance(index: &IndexExpr, axis: AxisId) -> f64 {
    let of_term = |(atom, factor): &(Atom, i64)| {
        let of_atom = match atom {
            Atom::Axis(own) => f64::from(*own == axis),
            Atom::Mod(inner, _) => distance(inner, axis),
            Atom::Div(inner, by) => distance(inner, axis) / *by as f64,
        };
        of_atom * factor.unsigned_abs() as f64
    };
    index.terms().iter().map(of_term).sum()
}

/// How far neighbours along an axis are apart in memory: of a roll, but for where it begins again.
fn stride(index: &IndexExpr, axis: AxisId) -> Option<i64> {
    let of_term = |(atom, factor): &(Atom, i64)| match atom {
        Atom::Axis(own) => Some(if *own == axis { *factor } else { 0 }),
        Atom::Mod(inner, _) => stride(inner, axis)?.checked_mul(*factor),
        Atom::Div(inner, _) => (!inner.uses(axis)).then_some(0),
    };
    index.terms().iter().try_fold(0i64, |all, term| all.checked_add(of_term(term)?))
}
