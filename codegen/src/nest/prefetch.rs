//! Software prefetching on the CPU. Loops of results and the only pass over rows prefetch their streams some way ahead; what goes
//! down columns, two positions; of several passes over a row, the second prefetches the next row, since the first has read its own.

use std::cell::Cell;

use super::emitter::Emitter;
use super::stmt::{Expr, Stmt};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};
use crate::schedule::Plan;

/// The hardware prefetches the next one of shorter rows in time.
const SHORTEST: u64 = 8 << 10;

/// Longer rows would be evicted before they are read.
const LONGEST: u64 = 256 << 10;

/// The only pass over shorter rows is no stream.
const SHORTEST_STREAM: u64 = 1 << 9;

/// As many streams as processors follow.
const MOST_STREAMS: usize = 3;

/// What is prefetched: buffers, and where.
type Elements = Vec<(BufferId, IndexExpr)>;

/// Where the unguarded loads that some values follow from are prefetched, each place once.
fn of_loads(
    kernel: &Kernel,
    ends: impl IntoIterator<Item = ValueId>,
    place: impl Fn(BufferId, &IndexExpr) -> Option<IndexExpr>,
) -> Elements {
    let mut elements = Elements::new();
    for id in kernel.down_from(ends) {
        let ValueOp::Load { buffer, index, guard: None } = &kernel.value(id).op else { continue };
        if let Some(index) = place(*buffer, index)
            && !elements.contains(&(*buffer, index.clone()))
        {
            elements.push((*buffer, index));
        }
    }
    elements
}

/// `stream`: as far ahead of these places as [`Stmt::Prefetch`] says, not the places themselves.
fn emit(emitter: &mut Emitter, elements: &Elements, stream: bool) {
    for (buffer, index) in elements {
        let (buffer, index) = ((*buffer).into(), Expr::Index(index.clone()));
        emitter.push(Stmt::Prefetch { buffer, index, stream });
    }
}

/// Prefetches what a loop of results streams along an axis: not what each position of the outermost axis reads again, which is
/// cached.
pub(super) fn prefetch_streams(emitter: &mut Emitter, kernel: &Kernel, axis: AxisId) {
    let has_several = |axis: &AxisId| kernel.axis(*axis).is_argument || kernel.axis(*axis).extent > 1;
    let outermost = kernel.axes_of_kind(AxisKind::Map).into_iter().find(has_several);
    let ends = kernel.stores.iter().map(|store| store.value);
    let streams = of_loads(kernel, ends, |_, index| {
        let is_own = outermost.is_none_or(|outermost| index.uses(outermost));
        (is_own && RowPrefetch::is_along(kernel, index, axis)).then(|| index.clone())
    });
    if streams.len() <= MOST_STREAMS {
        emit(emitter, &streams, true);
    }
}

/// Prefetches what a sweep down some axes reads so many positions later, in lanes along another axis. The last of the swept axes is
/// the innermost.
pub(super) fn prefetch_next(
    emitter: &mut Emitter,
    kernel: &Kernel,
    ends: &[ValueId],
    (down, along): (&[AxisId], AxisId),
    positions: i64,
) {
    let Some(&last) = down.last() else { return };
    // Axes of reductions nested in a position are not bound here.
    let is_inside = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce && !down.contains(axis);
    let next = of_loads(kernel, ends.iter().copied(), |_, index| {
        let is_known = kernel.computed_axes(index).is_empty() && !index.axes().iter().any(is_inside);
        let is_neighbours = is_known && index.coefficient(along) == Some(1);
        let distance = index.coefficient(last).filter(|&distance| is_neighbours && distance != 0)?;
        Some(index.offset(positions * distance))
    });
    if next.len() <= MOST_STREAMS {
        emit(emitter, &next, false);
    }
}

/// What one pass over a row prefetches.
pub(super) struct RowPrefetch {
    /// The pass.
    pub(super) pass: usize,
    /// At the positions of the pass: streams in the first pass, elements of the next row in the second.
    elements: Elements,
    /// Whether a loop of the pass has it.
    is_emitted: Cell<bool>,
}

impl RowPrefetch {
    /// Of several passes the second one does, if it finds in a cache what the first one has read.
    pub(super) fn of(kernel: &Kernel, plan: &Plan) -> RowPrefetch {
        let (pass, elements) = match plan.passes.len() {
            1 => (0, RowPrefetch::stream(kernel, plan)),
            _ => (1, RowPrefetch::elements(kernel, plan)),
        };
        RowPrefetch { pass, elements: elements.unwrap_or_default(), is_emitted: Cell::new(false) }
    }

    /// What a pass that reads a row once reads later.
    fn stream(kernel: &Kernel, plan: &Plan) -> Option<Elements> {
        let ([only], [axis]) = (&plan.passes[..], &plan.axes[..]) else { return None };
        if only.reductions.is_empty() {
            return None;
        }
        let elements = of_loads(kernel, only.reductions.iter().copied(), |buffer, index| {
            let size = kernel.buffers[buffer.index()].dtype.size() as u64;
            let is_short =
                !kernel.axis(*axis).is_argument && kernel.axis(*axis).extent * size < SHORTEST_STREAM;
            // What several rows read is near for all but the first of them.
            let is_shared = |map: &AxisId| !index.uses(*map) && kernel.axis(*map).extent > 1;
            let is_stream = !is_short && RowPrefetch::is_along(kernel, index, *axis);
            (is_stream && !plan.map.iter().any(is_shared)).then(|| index.clone())
        });
        (elements.len() <= MOST_STREAMS).then_some(elements)
    }

    fn elements(kernel: &Kernel, plan: &Plan) -> Option<Elements> {
        let ([first, _, ..], [axis], Some(&row)) = (&plan.passes[..], &plan.axes[..], plan.map.last()) else {
            return None;
        };
        let operands = |id: &ValueId| kernel.operands(&kernel.value(*id).op).to_vec();
        let stored = first.stores.iter().map(|&store| kernel.stores[store].value);
        let ends = first.reductions.iter().flat_map(operands).chain(stored);
        let elements = of_loads(kernel, ends, |buffer, index| {
            let bytes = kernel.axis(*axis).extent * kernel.buffers[buffer.index()].dtype.size() as u64;
            let is_near =
                (SHORTEST..=LONGEST).contains(&bytes) && RowPrefetch::is_along(kernel, index, *axis);
            RowPrefetch::next(index, row).filter(|_| is_near)
        });
        Some(elements)
    }

    /// Whether a pass along the axis reads one element after the other, at places that it knows.
    fn is_along(kernel: &Kernel, index: &IndexExpr, axis: AxisId) -> bool {
        let is_inside = |other: &AxisId| *other != axis && kernel.axis(*other).kind == AxisKind::Reduce;
        index.coefficient(axis) == Some(1)
            && kernel.computed_axes(index).is_empty()
            && !index.axes().iter().any(is_inside)
    }

    /// The same place of the next row.
    fn next(index: &IndexExpr, row: AxisId) -> Option<IndexExpr> {
        index.coefficient(row).filter(|&distance| distance != 0).map(|distance| index.offset(distance))
    }

    /// Emits it in the loop that is open, unless another loop has it.
    pub(super) fn emit(&self, emitter: &mut Emitter) {
        if !self.is_emitted.replace(true) {
            emit(emitter, &self.elements, self.pass == 0);
        }
    }
}
