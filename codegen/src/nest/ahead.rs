//! Rows that are asked for ahead of time on the CPU: a pass that computes, over a row that is near already, has the next row
//! come from memory meanwhile.

use std::cell::Cell;

use super::emitter::Emitter;
use super::stmt::{Expr, Stmt};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{BufferId, Kernel, ValueId, ValueOp};
use crate::schedule::Plan;

/// Of shorter rows the processor itself asks for the next one in time.
const SHORTEST: u64 = 8 << 10;

/// Longer rows would be gone before they are read.
const LONGEST: u64 = 256 << 10;

/// What the first pass reads of a row.
pub(super) struct Ahead {
    /// Buffers, and the elements of the next row at the positions of the pass.
    elements: Vec<(BufferId, IndexExpr)>,
    /// Whether a loop asks for them.
    is_asked_for: Cell<bool>,
}

impl Ahead {
    /// Nothing, unless the second pass finds in a cache what the first one has read.
    pub(super) fn of(kernel: &Kernel, plan: &Plan) -> Ahead {
        let elements = Ahead::elements(kernel, plan).unwrap_or_default();
        Ahead { elements, is_asked_for: Cell::new(false) }
    }

    fn elements(kernel: &Kernel, plan: &Plan) -> Option<Vec<(BufferId, IndexExpr)>> {
        let ([first, _, ..], [axis], Some(&row)) = (&plan.passes[..], &plan.axes[..], plan.map.last()) else {
            return None;
        };
        let operands = |id: &ValueId| kernel.operands(&kernel.value(*id).op).to_vec();
        let stored = first.stores.iter().map(|&store| kernel.stores[store].value);
        let ends = first.reductions.iter().flat_map(operands).chain(stored);
        let mut elements: Vec<(BufferId, IndexExpr)> = Vec::new();
        for id in kernel.down_from(ends) {
            let ValueOp::Load { buffer, index, guard: None } = &kernel.value(id).op else { continue };
            let bytes = kernel.axis(*axis).extent * kernel.buffers[buffer.index()].dtype.size() as u64;
            let is_row = index.coefficient(*axis) == Some(1) && kernel.computed_axes(index).is_empty();
            let Some(next) = Ahead::next(index, row).filter(|_| is_row && bytes >= SHORTEST) else {
                continue;
            };
            if bytes <= LONGEST && !elements.contains(&(*buffer, next.clone())) {
                elements.push((*buffer, next));
            }
        }
        Some(elements)
    }

    /// The same place of the next row.
    fn next(index: &IndexExpr, row: AxisId) -> Option<IndexExpr> {
        index.coefficient(row).filter(|&distance| distance != 0).map(|distance| index.offset(distance))
    }

    /// Asks for the elements at the position of the loop that is open, unless another loop does so.
    pub(super) fn ask(&self, emitter: &mut Emitter) {
        if !self.is_asked_for.replace(true) {
            for (buffer, index) in &self.elements {
                emitter.push(Stmt::Prefetch { buffer: (*buffer).into(), index: Expr::Index(index.clone()) });
            }
        }
    }
}
