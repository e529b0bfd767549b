//! A window: what it goes over, and the one condition of all that it reads.

use super::super::emitter::Emitter;
use super::super::interior::everywhere;
use super::super::stmt::{Expr, Stmt};
use crate::index::{AxisId, Bound, BoundTruth};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::schedule::Taps;

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
