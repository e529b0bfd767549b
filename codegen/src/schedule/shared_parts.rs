//! Joins whose parts follow from the same values, as sums and differences of the halves of a row do: a butterfly. Results
//! that the join tells apart are side by side where loops along its axis are unrolled, and share what they have in common;
//! a result alone computes anew in each step what its neighbours computed too.

use super::share::NEAR;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueOp};

/// Results that are side by side, at most.
const MOST_TOGETHER: u64 = 16;

/// What results side by side compute, at most, of what they would compute alone; and how many values that may be.
const MOST_OF_ALONE: f64 = 0.75;
const MOST_VALUES: usize = 320;

/// Neighbours in memory that lanes along another axis may tell apart.
const MOST_BESIDE_LANES: u64 = 8;

/// An axis is long enough for lanes.
const LONG: u64 = 16;

/// Unrolling goes on while there are no more values than that, or than twice those that there were.
const MOST_TRIED: usize = 512;

/// The kernel with loops along axes of its results unrolled where those share values, and how many results are side by side;
/// `None` where nothing gains. One prime factor after the other: each decides some conditions, and what these leave out is no
/// part of the next.
pub(crate) fn unrolled_by_parts(kernel: &Kernel) -> Option<(Kernel, u64)> {
    let mut best: Option<(f64, Kernel, u64)> = None;
    let (mut current, mut together) = (None, 1);
    let mut left_out = Vec::new();
    loop {
        let before = current.as_ref().unwrap_or(kernel);
        let Some((axis, factor)) = next(before, together, &left_out) else { break };
        let unrolled = before.unrolled(axis, factor);
        // Of each store there is one a step.
        let of = |step: u64| computed(&unrolled, |store| store as u64 % (together * factor) == step);
        let (all, alone) = (computed(&unrolled, |_| true), (0..together * factor).map(of).sum::<usize>());
        if all == alone {
            left_out.push(axis);
            continue;
        }
        together *= factor;
        let each = all as f64 / together as f64;
        let gains = all as f64 <= alone as f64 * MOST_OF_ALONE && all <= MOST_VALUES;
        if gains && best.as_ref().is_none_or(|(least, ..)| each < *least) {
            best = Some((each, unrolled.clone(), together));
        }
        if unrolled.values.len() > MOST_TRIED.max(2 * kernel.values.len()) {
            break;
        }
        current = Some(unrolled);
    }
    let (_, mut result, together) = best?;
    if let [.., before, inner] = result.axes_of_kind(AxisKind::Map)[..]
        && result.axis(inner).extent == 1
        && kernel.axis(inner).extent > 1
        && !kernel.axis(before).is_argument
    {
        // Lanes go along the innermost axis.
        result.exchange(before, inner);
    }
    Some((result, together))
}

/// The next axis to unroll along, and by what: the innermost that conditions tell apart, but for the lanes'.
fn next(kernel: &Kernel, together: u64, left_out: &[AxisId]) -> Option<(AxisId, u64)> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let lanes = lanes(kernel, &map);
    map.iter().rev().find_map(|&axis| {
        let extent = kernel.axis(axis).extent;
        // All of it: what conditions tell apart is decided then. Beyond a border, which they tell from a long rest, nothing is.
        if extent > MOST_TOGETHER / together {
            return None;
        }
        let prime = (2..=extent).find(|by| extent.is_multiple_of(*by))?;
        let is_free = Some(axis) != lanes && !kernel.axis(axis).is_argument && !left_out.contains(&axis);
        (is_free && tells_apart(kernel, axis) && kernel.is_unrollable(axis)).then_some((axis, prime))
    })
}

/// The axis that lanes go along, which stays: the innermost, or the one before it if all of that may be side by side.
fn lanes(kernel: &Kernel, map: &[AxisId]) -> Option<AxisId> {
    let own = |axis: AxisId| kernel.axis(axis);
    let reduces = kernel.values.iter().any(|value| matches!(value.op, ValueOp::Reduce { .. }));
    // What is reduced chooses its lanes by what it reads (`nest::pointwise_cpu`).
    let (nearest, may_be_argument) = if reduces { (NEAR, false) } else { (MOST_BESIDE_LANES, true) };
    let is_long = |axis: AxisId| match own(axis).is_argument {
        true => may_be_argument,
        false => own(axis).extent >= LONG,
    };
    match *map {
        [.., before, inner] if !own(inner).is_argument && own(inner).extent <= nearest && is_long(before) => {
            Some(before)
        }
        _ => map.last().copied(),
    }
}

/// Whether conditions depend on the position along an axis.
fn tells_apart(kernel: &Kernel, axis: AxisId) -> bool {
    let bounds = kernel.values.iter().flat_map(|value| match &value.op {
        ValueOp::InBounds(bounds) => &bounds[..],
        _ => &[],
    });
    bounds.into_iter().any(|bound| bound.expr.uses(axis))
}

/// How many loads and operations some stores need.
fn computed(kernel: &Kernel, is_one: impl Fn(usize) -> bool) -> usize {
    let stores = kernel.stores.iter().enumerate().filter(|(number, _)| is_one(*number));
    let values = kernel.down_from(stores.map(|(_, store)| store.value));
    let is_free =
        |op: &ValueOp| matches!(op, ValueOp::Literal(_) | ValueOp::Argument(_) | ValueOp::InBounds(_));
    values.into_iter().filter(|&id| !is_free(&kernel.value(id).op)).count()
}
