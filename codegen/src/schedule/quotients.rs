//! Rows and results whose positions some access divides, as those of packed numbers are (two of four bits are in a byte, and some
//! dozens share a scale), or of interleaved parts. What has one quotient is side by side then: neighbours are combined before
//! a row is, or stored one after the other, and groups are an axis of their own, so that loops know neither quotients nor
//! remainders.

use super::RowSchedule;
use super::share::NEAR;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel};

/// Elements of a group, at least: lines of fewer take longer than their divisions.
const FEWEST_IN_GROUP: u64 = 7;

/// Lanes that groups are a multiple of, at least; else groups are lines, which need not be.
const FEWEST_LANES: u64 = 8;

/// The kernel with its reduced row as quotients, their groups and neighbours, and the schedule with no more lanes than these
/// have; `None` if nothing divides the row.
pub(crate) fn by_quotients(kernel: &Kernel, schedule: &RowSchedule) -> Option<(Kernel, RowSchedule)> {
    if schedule.keep.is_some() {
        return None;
    }
    let divided = divided(kernel, schedule.splits > 1)?;
    let (inner, outer) =
        divided.axes_of_kind(AxisKind::Reduce).split_last().map(|(&a, rest)| (a, rest.len()))?;
    let extent = divided.axis(inner).extent;
    let own = 1 << extent.trailing_zeros();
    let most = match outer > 0 && own >= FEWEST_LANES {
        // No lane is in another group than its neighbours.
        true => own,
        false if outer > 0 => 1 << extent.ilog2(),
        false => extent.next_power_of_two() / 2,
    };
    let lanes = u64::from(schedule.threads_per_row).min(most).max(1);
    Some((divided, RowSchedule { threads_per_row: lanes as u32, ..*schedule }))
}

fn divided(kernel: &Kernel, is_split: bool) -> Option<Kernel> {
    let axes = kernel.axes_of_kind(AxisKind::Reduce);
    let (&row, outer) = axes.split_last()?;
    if kernel.axis(row).is_argument || !kernel.is_unordered(row) {
        return None;
    }
    let extent = kernel.axis(row).extent;
    let fits = |by: &u64| extent.is_multiple_of(*by) && *by < extent;
    // Neighbours that are combined first make the row shorter, which parts of it are not.
    let fits_together = |by: &u64| outer.is_empty() && !is_split && kernel.unrolls(row, *by);
    let together = neighbours(kernel, row).filter(fits_together);
    let divisors = kernel.divisors(row).into_iter();
    let group = divisors.filter(|by| *by >= FEWEST_IN_GROUP && fits(by)).min();
    let group = group.filter(|group| group.is_multiple_of(together.unwrap_or(1)));
    let in_groups = group.map(|group| {
        let mut groups = kernel.clone();
        let inner = groups.split_reduced(row, group);
        (groups, inner)
    });
    let (kernel, row) = in_groups.as_ref().map_or((kernel, row), |(kernel, inner)| (kernel, *inner));
    match together {
        Some(together) => Some(kernel.unrolled(row, together)),
        None => Some(kernel.clone()).filter(|_| group.is_some()),
    }
}

/// How many neighbours along an axis some access has in common or tells apart, as two of interleaved numbers, up to so many as
/// lanes pick out of whole vectors.
pub fn neighbours(kernel: &Kernel, axis: AxisId) -> Option<u64> {
    let extent = kernel.axis(axis).extent;
    let fits = |by: &u64| *by <= NEAR && extent.is_multiple_of(*by) && *by < extent;
    kernel.divisors(axis).into_iter().filter(fits).max()
}

/// The kernel with the loop along the innermost axis of its results unrolled by [`neighbours`]; `None` if there are none.
pub(crate) fn unrolled_by_quotients(kernel: &Kernel) -> Option<Kernel> {
    let &inner = kernel.axes_of_kind(AxisKind::Map).last()?;
    let together = neighbours(kernel, inner)?;
    let fits = !kernel.axis(inner).is_argument && kernel.unrolls(inner, together);
    fits.then(|| kernel.unrolled(inner, together))
}
