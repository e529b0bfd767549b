//! Combining at computed positions.

use lazuli_codegen::index::{Atom, IndexExpr};
use lazuli_codegen::ir::{AxisKind, ValueId, ValueOp};

use super::indices::{Guards, Indices};
use super::refusal::{Refusal, Result};
use super::{Lowering, Scattered};
use crate::ReduceOp;
use crate::error::IndexCheck;
use crate::graph::NodeId;

impl Lowering<'_> {
    /// The elements of the first operand combined whose index, the second, says the position along `axis`.
    pub(super) fn scatter(
        &mut self,
        id: NodeId,
        op: ReduceOp,
        axis: usize,
        indices: &Indices,
    ) -> Result<ValueId> {
        let graph = self.request.graph;
        let operands = graph.operands(id);
        // Where it is computed: along an axis of the iteration space itself.
        let along = match indices[axis].terms() {
            [(Atom::Axis(along), 1)] if indices[axis].constant_term() == 0 => *along,
            _ => return Err(Refusal::Broken("a scatter is not along an axis of its kernel")),
        };
        let over = match self.scattered {
            Some(scattered) => scattered.over,
            // Mostly the batch: another one is not another kernel.
            None => self.axis(AxisKind::Reduce, graph.node(operands[0]).shape[axis], axis == 0),
        };
        let mut inner = indices.clone();
        inner[axis] = IndexExpr::axis(over);
        self.enclosing.push([over].as_slice().into());
        let index = self.value(operands[1], &inner, &Guards::new());
        let operand = self.value(operands[0], &inner, &Guards::new());
        self.enclosing.pop();
        let (index, operand) = (index?, operand?);
        let scattered = match self.scattered {
            Some(scattered) => scattered,
            None => {
                let node = graph.node(id);
                let check = self.checks.len() as u32;
                let extent = node.shape[axis];
                self.checks.push(IndexCheck { op: node.origin, axis, extent, location: node.location });
                Scattered { over, index: self.position(index, &Guards::new()), check }
            }
        };
        self.scattered = Some(scattered);
        let Scattered { over, index, check } = scattered;
        let dtype = self.kernel.value(operand).dtype;
        Ok(self.kernel.add(ValueOp::Scatter { op, axis: along, over, index, check, operand }, dtype))
    }
}
