//! A window: which reductions are one, what it goes over, and the one condition of all that it reads.

use super::super::emitter::Emitter;
use super::super::guarded_lanes::{VECTOR, are_masks};
use super::super::interior::everywhere;
use super::super::stmt::{Expr, Stmt};
use crate::index::{AxisId, Bound, BoundTruth};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::schedule::{LONGEST_UNROLLED, Taps, is_last, sliding_axis, strided_axis};

/// Sliding windows from this length on are made of each other.
const SHORTEST_SLIDING: u64 = 8;

/// A reduction over a window.
pub(super) struct Window {
    pub(super) id: ValueId,
    /// Reduced axes that are loops.
    pub(super) loops: Vec<AxisId>,
    /// The reduced axis along which windows slide by one element, and its length.
    pub(super) sliding: Option<(AxisId, u64)>,
    /// The short reduced axis along which a window moves on by some elements. What the loops combine at each of these is there
    /// once, and the few of a window are combined where it is used.
    pub(super) strided: Option<Strided>,
    /// What decides where the window is beyond the border.
    pub(super) guard: Option<Guard>,
    /// How it reads what its neighbours do, if it is one of places with weights.
    pub(super) taps: Option<Taps>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) struct Strided {
    pub(super) axis: AxisId,
    pub(super) length: u64,
    pub(super) stride: u64,
}

/// The one condition of all that a window reads.
#[derive(PartialEq)]
pub(super) struct Guard {
    /// What the loops decide.
    pub(super) rows: Vec<Bound>,
    /// The first elements inside and beyond the other border, where the window of the first result begins.
    pub(super) columns: Option<(i64, i64)>,
}

/// A kernel without the conditions of its windows: where they hold, and where they do not.
pub(in crate::nest) struct Border {
    pub(super) inside: Kernel,
    pub(super) outside: Kernel,
}

impl Window {
    /// The reduction as a window of the loop over `axis`, one of those that a pass goes over if it is one, if it is worth it.
    pub(super) fn of(kernel: &Kernel, axis: AxisId, swept: &[AxisId], id: ValueId) -> Option<Window> {
        let value = kernel.value(id);
        let ValueOp::Reduce { op, axes, position, .. } = &value.op else { return None };
        let is_bound = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Map || swept.contains(axis);
        let is_free = value.axes.iter().all(is_bound);
        if !is_free || !value.axes.contains(&axis) || axes.iter().any(|&axis| kernel.axis(axis).is_argument) {
            return None;
        }
        let positions: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
        let sliding = sliding_axis(kernel, axis, id).filter(|&(_, length)| length >= SHORTEST_SLIDING);
        let is_short = positions <= LONGEST_UNROLLED && sliding.is_none();
        if is_short && is_one_vector(kernel, axis, &kernel.down_from([id])) {
            return None;
        }
        let strided = match sliding.is_none() && op.is_plain() && position.is_none() {
            true => {
                strided_axis(kernel, axis, id).map(|(axis, length, stride)| Strided { axis, length, stride })
            }
            false => None,
        };
        let is_alone = sliding.is_none() && strided.is_none() && swept.is_empty();
        let pays = |taps: &Taps| {
            let fewest = if taps.step > 1 { FEWEST_STEPPING } else { FEWEST_SHORT };
            !is_short || is_short_line(kernel, axis, id) && positions >= fewest
        };
        let taps = if is_alone { Taps::of(kernel, axis, id).filter(pays) } else { None };
        let guard = match (sliding, &taps) {
            (None, None) => Guard::of(kernel, (axis, swept), id, strided),
            _ => Ok(None),
        };
        let (strided, guard) = match guard {
            Ok(guard) => (strided, guard),
            Err(NoGuard) => (None, None),
        };
        let shared = sliding.map(|(axis, _)| axis).or(strided.map(|strided| strided.axis));
        let below = kernel.down_from(kernel.operands(&value.op));
        let is_inner = |id: &&ValueId| {
            matches!(kernel.value(**id).op, ValueOp::Reduce { .. }) && kernel.value(**id).axes.contains(&axis)
        };
        // What is reduced before is shared if it is one at each element of the window, and not one of the window.
        let is_apart = |id: &ValueId| shared.is_none_or(|shared| !kernel.value(*id).axes.contains(&shared));
        if below.iter().filter(is_inner).any(is_apart) {
            return None;
        }
        // Others that are short are as well unrolled.
        let is_last = strided.is_some_and(|strided| is_last(strided.length, strided.stride));
        let has_others = axes.len() > 1 || below.iter().any(|id| is_inner(&id));
        let is_worth_it = taps.is_some() || guard.is_some() || is_last && has_others || !is_short;
        let loops = axes.iter().copied().filter(|&own| shared != Some(own)).collect();
        is_worth_it.then_some(Window { id, loops, sliding, strided, guard, taps })
    }

    /// Whether what it combines lies in rows of memory, none of which it has in common with another.
    pub(super) fn is_of_rows(&self) -> bool {
        self.sliding.is_none() && self.strided.is_none() && self.taps.is_none()
    }

    /// Whether another one goes over the same elements, under the same conditions.
    pub(super) fn goes_with(&self, other: &Window) -> bool {
        let of = |window: &Window| (window.sliding, window.strided);
        let are_taps = match (&self.taps, &other.taps) {
            (Some(own), Some(other)) => own.goes_with(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        are_taps && self.loops == other.loops && of(self) == of(other) && self.guard == other.guard
    }
}

impl Guard {
    /// That of all conditions below a window, if they are one, which the loops and the position within the window decide.
    pub(super) fn of(
        kernel: &Kernel,
        (axis, swept): (AxisId, &[AxisId]),
        id: ValueId,
        strided: Option<Strided>,
    ) -> Result<Option<Guard>, NoGuard> {
        let mut conditions = kernel.down_from([id]).into_iter().filter_map(|id| match &kernel.value(id).op {
            ValueOp::InBounds(bounds) => Some(bounds),
            _ => None,
        });
        let Some(first) = conditions.next() else { return Ok(None) };
        if conditions.any(|other| other != first) {
            return Err(NoGuard);
        }
        let ValueOp::Reduce { axes: own, .. } = &kernel.value(id).op else { return Err(NoGuard) };
        // A reduction along the same axis, such as the softmax of a window, goes over all positions, whatever this loop decides.
        let is_again = |id: &ValueId| match &kernel.value(*id).op {
            ValueOp::Reduce { axes, .. } => axes.iter().any(|axis| own.contains(axis)),
            _ => false,
        };
        if kernel.down_from(kernel.operands(&kernel.value(id).op)).iter().any(is_again) {
            return Err(NoGuard);
        }
        // What a reduction further in decides is not known before its loop.
        let is_inner = |axis: &AxisId| {
            kernel.axis(*axis).kind == AxisKind::Reduce && !own.contains(axis) && !swept.contains(axis)
        };
        let mut guard = Guard { rows: Vec::new(), columns: None };
        // Nor is a position of what is computed at each result.
        let of_result =
            |own: &AxisId| *own == axis || strided.is_some_and(|s| s.axis == *own) || is_inner(own);
        for bound in first {
            let computed = kernel.computed_axes(&bound.expr);
            let varies = computed.iter().any(|&(_, value)| kernel.value(value).axes.iter().any(of_result));
            if varies || bound.expr.axes().iter().any(is_inner) {
                return Err(NoGuard);
            }
            let within =
                strided.map_or(0, |strided| bound.expr.coefficient(strided.axis).unwrap_or(i64::MAX));
            match (bound.expr.coefficient(axis), within) {
                (Some(0), 0) => guard.rows.push(bound.clone()),
                (Some(own), 1) if bound.expr.axes().len() == 2 && own > 0 && guard.columns.is_none() => {
                    let offset = bound.expr.constant_term();
                    guard.columns = Some((bound.lo - offset, bound.hi - offset));
                }
                _ => return Err(NoGuard),
            }
        }
        Ok(Some(guard))
    }

    /// What holds where the loops' conditions do at all of their positions; `None` if that is not known, or nowhere.
    pub(super) fn everywhere(&self, kernel: &Kernel, loops: &[AxisId]) -> Option<Vec<Bound>> {
        let mut all = Vec::new();
        let mut others = kernel.axes_of_kind(AxisKind::Reduce);
        others.retain(|axis| !loops.contains(axis));
        for bound in &self.rows {
            match everywhere(kernel, bound, &others)?.simplify(&kernel.ranges()) {
                BoundTruth::Always => {}
                BoundTruth::Never => return None,
                BoundTruth::Depends(bound) => all.push(bound),
            }
        }
        Some(all)
    }

    /// One of the kernels without conditions, as the loops decide.
    pub(super) fn choose<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        border: &'k Border,
        part: &dyn Fn(&mut Emitter<'k>, &'k Kernel),
    ) {
        if self.rows.is_empty() {
            return emitter.using(&border.inside, |emitter| part(emitter, &border.inside));
        }
        self.rows.iter().for_each(|bound| emitter.bind_computed(&bound.expr));
        let [then, otherwise] = [&border.inside, &border.outside].map(|kernel| {
            emitter.open_pinned();
            emitter.using(kernel, |emitter| part(emitter, kernel));
            emitter.close()
        });
        emitter.push(Stmt::If { condition: Expr::InBounds(self.rows.clone()), then, otherwise });
    }
}

/// The conditions of a window are several, or of another form.
pub(super) struct NoGuard;

/// Places of short windows over a border for which it is worth it to lay out what they read, and of those with a stride: lanes pick
/// what they read from memory out of whole vectors.
const FEWEST_SHORT: u64 = 16;
const FEWEST_STEPPING: u64 = 9;

/// Longer lines have an interior that needs no conditions, and shorter ones fill half a vector at most.
const SHORT_LINES: std::ops::RangeInclusive<u64> = VECTOR / 2 + 1..=4 * VECTOR;

/// Whether a window reaches over the border of short lines.
fn is_short_line(kernel: &Kernel, axis: AxisId, id: ValueId) -> bool {
    let is_guard = |id: &ValueId| {
        let value = kernel.value(*id);
        matches!(value.op, ValueOp::InBounds(_)) && value.axes.contains(&axis)
    };
    let own = kernel.axis(axis);
    !own.is_argument && SHORT_LINES.contains(&own.extent) && kernel.down_from([id]).iter().any(is_guard)
}

/// Whether a loop over the axis is one vector of neighbours, in which short windows beyond the edges are combined as they are, in
/// registers: a partial result in memory would have to be stored before its neighbours can be read.
fn is_one_vector(kernel: &Kernel, axis: AxisId, below: &[ValueId]) -> bool {
    let own = kernel.axis(axis);
    let is_guarded = below.iter().any(|&id| matches!(kernel.value(id).op, ValueOp::InBounds(_)));
    let is_near = |&id: &ValueId| match &kernel.value(id).op {
        ValueOp::Load { index, .. } => index.coefficient(axis).is_some_and(|step| (0..=1).contains(&step)),
        _ => true,
    };
    !own.is_argument
        && own.extent <= VECTOR
        && is_guarded
        && below.iter().all(is_near)
        && are_masks(kernel, axis)
}
