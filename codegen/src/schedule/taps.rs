//! Windows whose elements have weights, or are else computed anew at each place of a window, as those of filters are: what
//! they combine is nobody else's, but what they read is.

use super::facts::{SHORTEST_COLUMNS, loads_below};
use super::share::{self, NEAR};
use crate::DType;
use crate::index::{AxisId, IndexExpr, gcd};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// The longest axis of places.
const LONGEST: u64 = 1 << 12;

/// Whether a core has the windows of a reduction in its lanes, however long they are.
pub(super) fn is_in_lanes(kernel: &Kernel, inner: AxisId, id: ValueId) -> bool {
    let own = kernel.axis(inner);
    let is_window = |id: ValueId| match &kernel.value(id).op {
        ValueOp::Load { index, .. } => {
            let reduced = kernel.axes_of_kind(AxisKind::Reduce);
            let reduced = reduced.into_iter().map(|axis| (axis, kernel.axis(axis).extent));
            share::is_window_in_lanes(index, reduced, inner)
        }
        _ => false,
    };
    (own.is_argument || own.extent >= SHORTEST_COLUMNS)
        && loads_below(kernel, id).any(is_window)
        && Taps::of(kernel, inner, id).is_some()
}

/// How windows of the loop over an axis go over what they read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Taps {
    /// The axis of places along which windows overlap, and how many there are.
    pub(crate) along: AxisId,
    pub(crate) length: u64,
    /// An element is at `step` × the window + `spread` × the place.
    pub(crate) step: u64,
    pub(crate) spread: u64,
    /// What is one for all windows that have the element.
    pub(crate) images: Vec<ValueId>,
    /// What is one for all places of a window, and differs among windows.
    pub(crate) own: Vec<ValueId>,
}

/// How a value that varies along the windows does so.
#[derive(Clone, Copy, PartialEq)]
enum Varies {
    Not,
    Image,
    Own,
    Both,
}

impl Taps {
    /// Those of a reduction along some axes.
    pub(crate) fn of(kernel: &Kernel, axis: AxisId, id: ValueId) -> Option<Taps> {
        let ValueOp::Reduce { axes, operand, position: None, .. } = &kernel.value(id).op else { return None };
        if axes.iter().any(|&axis| kernel.axis(axis).is_argument) {
            return None;
        }
        axes.iter().rev().find_map(|&along| Taps::along(kernel, (axis, along), axes, *operand))
    }

    fn along(
        kernel: &Kernel,
        (axis, along): (AxisId, AxisId),
        axes: &[AxisId],
        operand: ValueId,
    ) -> Option<Taps> {
        let mut below = kernel.down_from([operand]);
        below.sort_unstable();
        let steps = |index: &IndexExpr| {
            let (a, b) = (index.coefficient(axis)?, index.coefficient(along)?);
            (a > 0 && b > 0).then_some((a, b))
        };
        let mut indices = below.iter().flat_map(|&id| kernel.value(id).op.indices());
        let (a, b) = indices.find_map(steps)?;
        let by = gcd(a, b);
        let length = kernel.axis(along).extent;
        let mut taps = Taps {
            along,
            length,
            step: (a / by) as u64,
            spread: (b / by) as u64,
            images: Vec::new(),
            own: Vec::new(),
        };
        let is_near = taps.step <= NEAR && (taps.step == 1 || taps.spread == 1);
        // The rows of a matrix have no elements in common, however long they are.
        let windows = kernel.axis(axis);
        let overlaps = taps.step < taps.spread.saturating_mul(length)
            && (windows.is_argument || taps.step.saturating_mul(windows.extent.max(1) - 1) >= taps.spread);
        if !is_near || !overlaps || taps.reach() > LONGEST {
            return None;
        }
        let mut found: Vec<(ValueId, Varies)> = Vec::new();
        for &id in &below {
            let varies = taps.varies(kernel, axis, axes, &found, id)?;
            found.push((id, varies));
        }
        // What is read from arrays: the last of each sort.
        let of = |id: ValueId| found.iter().find(|(own, _)| *own == id).map(|(_, varies)| *varies);
        let mut read = vec![operand];
        for &(id, varies) in &found {
            if varies == Varies::Both {
                read.extend(kernel.operands(&kernel.value(id).op));
            }
        }
        read.sort_unstable();
        read.dedup();
        taps.images = read.iter().copied().filter(|&id| of(id) == Some(Varies::Image)).collect();
        taps.own = read.into_iter().filter(|&id| of(id) == Some(Varies::Own)).collect();
        let all = || taps.images.iter().chain(&taps.own);
        let is_number = all().all(|&id| kernel.value(id).dtype != DType::Bool);
        (is_number && !taps.images.is_empty()).then_some(taps)
    }

    /// How a value varies, if what it follows from is known; `None` if it is found for each place of each window.
    fn varies(
        &self,
        kernel: &Kernel,
        axis: AxisId,
        axes: &[AxisId],
        found: &[(ValueId, Varies)],
        id: ValueId,
    ) -> Option<Varies> {
        let value = kernel.value(id);
        if !value.axes.contains(&axis) {
            return Some(Varies::Not);
        }
        let indices = value.op.indices();
        let is_plain = indices.iter().all(|index| kernel.computed_axes(index).is_empty());
        let is_simple = !matches!(
            value.op,
            ValueOp::Reduce { .. }
                | ValueOp::Scan { .. }
                | ValueOp::Carry { .. }
                | ValueOp::Last { .. }
                | ValueOp::Scatter { .. }
                | ValueOp::Sort { .. }
        );
        if !is_plain || !is_simple {
            return None;
        }
        let below = kernel.down_from([id]);
        let mut indices = below.iter().flat_map(|&id| kernel.value(id).op.indices());
        let is_image = |index: &IndexExpr| match (index.coefficient(axis), index.coefficient(self.along)) {
            (Some(a), Some(b)) => a * self.spread as i64 == b * self.step as i64,
            _ => false,
        };
        if indices.clone().all(is_image) {
            return Some(Varies::Image);
        }
        if !axes.iter().any(|axis| value.axes.contains(axis)) && indices.all(|index| !index.uses(self.along))
        {
            return Some(Varies::Own);
        }
        let is_known = |id: &ValueId| found.iter().any(|(own, _)| own == id);
        let has_indices = !value.op.indices().is_empty();
        (!has_indices && kernel.operands(&value.op).iter().all(is_known)).then_some(Varies::Both)
    }

    /// Elements between the first and the last place of a window.
    pub(crate) fn reach(&self) -> u64 {
        self.spread.saturating_mul(self.length.saturating_sub(1))
    }

    /// Whether another window goes over the same elements.
    pub(crate) fn goes_with(&self, other: &Taps) -> bool {
        let of = |taps: &Taps| (taps.along, taps.step, taps.spread);
        of(self) == of(other)
    }
}
