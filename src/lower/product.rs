//! Factors of contractions: numbers of 16 bits stay such.
//!
//! Elsewhere 16 bits are how values are stored, and a chain of operations rounds once, at its end. Tensor cores multiply
//! numbers of 16 bits, so a factor that is computed in its kernel is rounded as if it had been stored.

use lazuli_codegen::ir::ValueId;
use lazuli_codegen::schedule::is_exact;

use super::Lowering;
use crate::BinaryOp;
use crate::graph::NodeId;
use crate::graph::op::{Op, View};

impl Lowering<'_> {
    /// Notes the casts from 16 bits that a summed product has as factors: both of which broadcast.
    pub(super) fn note_factors(&mut self, summed: NodeId) {
        let graph = self.request.graph;
        if !matches!(graph.node(summed).op, Op::Binary(BinaryOp::Mul)) {
            return;
        }
        let factors: Option<Vec<NodeId>> =
            graph.operands(summed).iter().map(|&factor| self.below_expand(factor)).collect();
        let is_narrow = |id: &NodeId| {
            let node = graph.node(*id);
            matches!(node.op, Op::Cast) && {
                let from = graph.node(graph.operands(*id)[0]).dtype;
                from.compute() != from && from.compute() == node.dtype
            }
        };
        self.rounded.extend(factors.unwrap_or_default().into_iter().filter(is_narrow));
    }

    /// What a factor is a view of, if it broadcasts.
    fn below_expand(&self, mut id: NodeId) -> Option<NodeId> {
        let graph = self.request.graph;
        let mut expands = false;
        while let Op::View(view) = &graph.node(id).op {
            expands |= matches!(view, View::Expand);
            id = graph.operands(id)[0];
        }
        expands.then_some(id)
    }

    /// What a cast is of, rounded to 16 bits where that decides: of a factor, and where it becomes an integer or a bool, which
    /// would be another one whether the number has been stored or not.
    pub(super) fn rounded_operand(&mut self, cast: NodeId, value: ValueId) -> ValueId {
        let graph = self.request.graph;
        let from = graph.node(graph.operands(cast)[0]).dtype;
        let decides = self.rounded.contains(&cast) || !graph.node(cast).dtype.is_float();
        if !decides || from.compute() == from {
            return value;
        }
        if is_exact(&self.kernel, value, from) { value } else { self.kernel.cast(from, value) }
    }
}
