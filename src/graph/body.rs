//! The body of a recurrence: what one step computes, as a graph of its own.

use std::hash::{Hash, Hasher};

use super::hash::{StructuralKey, structural_key};
use super::op::{Composite, Op};
use super::{Graph, NodeId};
use crate::DType;

/// What one step of a recurrence computes. Nodes are 0-d, because every position is a step of its own; the inputs are
/// the carries and then the elements, the outputs the carries of the next step and then results.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) graph: Graph,
    /// How many of the inputs are carries.
    pub(crate) carries: usize,
    /// The inputs' dtypes; one that nothing needs may have no node.
    pub(crate) inputs: Vec<DType>,
    key: StructuralKey,
}

/// Bodies are equal if their graphs are, whatever lines of the user's they are from.
impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        (self.key, self.carries, &self.inputs) == (other.key, other.carries, &other.inputs)
    }
}

impl Eq for Body {}

impl Hash for Body {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.key, self.carries).hash(state);
    }
}

impl Body {
    pub(crate) fn new(graph: Graph, carries: usize, inputs: Vec<DType>) -> Body {
        let key = structural_key(&graph);
        Body { graph, carries, inputs, key }
    }

    pub(crate) fn key(&self) -> StructuralKey {
        self.key
    }

    /// The dtype of an output.
    pub(crate) fn output(&self, number: usize) -> Option<DType> {
        let &id = self.graph.outputs().get(number)?;
        Some(self.graph.node(id).dtype)
    }

    /// The nodes that an output needs and that are not `known`, operands first.
    pub(crate) fn needed(&self, output: NodeId, known: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let mut seen = vec![false; self.graph.bound()];
        let (mut pending, mut needed) = (vec![output], Vec::new());
        while let Some(id) = pending.pop() {
            if !known(id) && !std::mem::replace(&mut seen[id.index()], true) {
                needed.push(id);
                pending.extend(self.graph.operands(id));
            }
        }
        needed.sort_unstable();
        needed
    }
}

impl Op {
    /// Whether each element of the result follows from the operands' elements at its own position, whatever the
    /// shape: then a step may consist of it.
    pub(crate) fn is_elementwise(&self) -> bool {
        match self {
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => true,
            Op::Composite(composite) => match composite {
                Composite::Sigmoid | Composite::Silu | Composite::Gelu | Composite::GeluTanh => true,
                Composite::Mean { .. }
                | Composite::Var { .. }
                | Composite::Softmax { .. }
                | Composite::LayerNorm { .. }
                | Composite::MaxPool2d(_)
                | Composite::AvgPool2d(_) => false,
            },
            Op::Input(_)
            | Op::Constant(_)
            | Op::Iota
            | Op::Random { .. }
            | Op::View(_)
            | Op::Reduce { .. }
            | Op::Scan { .. }
            | Op::Recurrence { .. }
            | Op::Gather { .. }
            | Op::Scatter { .. } => false,
        }
    }
}
