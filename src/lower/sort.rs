//! Rows in order.

use lazuli_codegen::index::{Atom, IndexExpr};
use lazuli_codegen::ir::{AxisKind, ValueId, ValueOp};

use super::Lowering;
use super::indices::{Guards, Indices};
use super::refusal::{Refusal, Result};
use crate::DType;
use crate::graph::NodeId;
use crate::graph::op::Sorted;

impl Lowering<'_> {
    /// The operand is computed along an axis of its own, in the place of the one along which the results are in order.
    pub(super) fn sort(
        &mut self,
        id: NodeId,
        (axis, descending): (usize, bool),
        result: Sorted,
        indices: &Indices,
    ) -> Result<ValueId> {
        let graph = self.request.graph;
        let source = graph.operands(id)[0];
        let along = match indices[axis].terms() {
            [(Atom::Axis(along), 1)] if indices[axis].constant_term() == 0 => *along,
            _ => return Err(Refusal::Broken("a sort is not along an axis of its kernel")),
        };
        let over = match self.sorted {
            Some(over) => over,
            None => self.axis(AxisKind::Reduce, graph.node(source).shape[axis], false),
        };
        self.sorted = Some(over);
        let mut inner = indices.clone();
        inner[axis] = IndexExpr::axis(over);
        self.enclosing.push([over].as_slice().into());
        let operand = self.value(source, &inner, &Guards::new());
        self.enclosing.pop();
        let operand = operand?;
        let (is_position, dtype) = match result {
            Sorted::Values => (false, self.kernel.value(operand).dtype),
            Sorted::Positions => (true, DType::I64),
        };
        Ok(self.kernel.add(ValueOp::Sort { axis: along, over, descending, is_position, operand }, dtype))
    }
}
