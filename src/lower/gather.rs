//! Reading at computed positions: the index becomes an axis of its own, whose position the kernel computes.

use lazuli_codegen::index::{AxisId, IndexExpr};
use lazuli_codegen::ir::{AxisKind, ValueId, ValueOp};

use super::Lowering;
use super::indices::{Guards, Indices};
use super::refusal::Result;
use crate::error::IndexCheck;
use crate::graph::NodeId;
use crate::{BinaryOp, DType, Scalar};

impl Lowering<'_> {
    /// The element of the first operand at the position along `axis` that the second says.
    pub(super) fn gather(
        &mut self,
        id: NodeId,
        (axis, is_checked): (usize, bool),
        indices: &Indices,
        guards: &Guards,
    ) -> Result<ValueId> {
        let graph = self.request.graph;
        let operands = graph.operands(id);
        let index = self.value(operands[1], indices, guards)?;
        let extent = graph.node(operands[0]).shape[axis];
        // The batch, mostly: another one is not another kernel.
        let is_outermost = axis == 0 && self.has_argument;
        let known = self.computed.get(&(index, extent, is_outermost)).copied();
        let (computed, position) = match known.and_then(|axis| Some((axis, self.kernel.computed_by(axis)?))) {
            Some(known) => known,
            None => {
                let position = self.position(index, guards);
                let node = graph.node(id);
                let check = is_checked.then_some(self.checks.len() as u32);
                let kind = AxisKind::Computed { value: position, check };
                if is_checked {
                    self.checks.push(IndexCheck { op: node.origin, axis, extent, location: node.location });
                }
                let computed = self.axis(kind, extent, is_outermost);
                self.computed.insert((index, extent, is_outermost), computed);
                (computed, position)
            }
        };
        let mut inner = indices.clone();
        inner[axis] = IndexExpr::axis(computed);
        let value = self.value(operands[0], &inner, guards)?;
        match self.depends_on(value, position) {
            true => Ok(value),
            // The same element at every position, as of a broadcast tensor: the index is checked all the same.
            false => {
                let position = self.kernel.add(ValueOp::Position(IndexExpr::axis(computed)), DType::I64);
                let zero = self.literal(Scalar::from_i64(DType::I64, 0));
                let checked = self.kernel.binary(BinaryOp::Ge, position, zero);
                Ok(self.kernel.add(ValueOp::Select(checked, value, value), self.kernel.value(value).dtype))
            }
        }
    }

    /// An index as the position that it says; 0 where nothing is read, and so nothing can be wrong.
    pub(super) fn position(&mut self, index: ValueId, guards: &Guards) -> ValueId {
        let position = match self.kernel.value(index).dtype {
            DType::I64 => index,
            _ => self.kernel.cast(DType::I64, index),
        };
        let Some(guard) = self.guard(guards) else { return position };
        let nowhere = self.literal(Scalar::from_i64(DType::I64, 0));
        self.kernel.select(guard, position, nowhere)
    }

    /// Whether some index varies along the axes, be it through a computed position.
    pub(super) fn vary(&self, indices: &Indices, axes: &[AxisId]) -> bool {
        let by_position = |index: &IndexExpr, axis: &AxisId| {
            let computed = self.kernel.computed_axes(index);
            computed.iter().any(|&(_, value)| self.kernel.value(value).axes.contains(axis))
        };
        indices.iter().any(|index| axes.iter().any(|axis| index.uses(*axis) || by_position(index, axis)))
    }

    /// Whether computing a value needs another one.
    fn depends_on(&self, value: ValueId, on: ValueId) -> bool {
        let mut seen = vec![false; self.kernel.values.len()];
        let mut pending = vec![value];
        while let Some(id) = pending.pop() {
            if id == on {
                return true;
            }
            if !std::mem::replace(&mut seen[id.index()], true) {
                pending.extend(self.kernel.operands(&self.kernel.value(id).op));
            }
        }
        false
    }
}
