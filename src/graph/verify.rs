//! The rules that every graph keeps between passes.

use smallvec::SmallVec;

use petgraph::Direction;
use petgraph::visit::EdgeRef;

use super::infer;
use super::{Graph, NodeId};
use crate::{Error, Result};

/// Checks every node: its operands come before it, fill positions 0, 1, … once each, and have the
/// shapes and dtypes that the operation takes; its own shape and dtype are what the operation gives.
/// Outputs exist.
///
/// # Errors
/// [`Error::Internal`] in `stage`, naming the first node that breaks a rule.
pub(crate) fn verify(graph: &Graph, stage: &'static str) -> Result<()> {
    for id in graph.nodes() {
        verify_node(graph, id).map_err(|message| {
            let node = graph.node(id);
            Error::internal(
                stage,
                format!(
                    "%{} = {}, from {} at {}: {message}",
                    id.index(),
                    node.op.name(),
                    node.origin,
                    node.location
                ),
            )
        })?;
    }
    match graph.outputs().iter().find(|output| output.index() >= graph.bound()) {
        Some(output) => Err(Error::internal(stage, format!("output %{} does not exist", output.index()))),
        None => Ok(()),
    }
}

/// The first node that breaks a rule.
pub(crate) fn first_broken(graph: &Graph) -> Option<NodeId> {
    graph.nodes().find(|&id| verify_node(graph, id).is_err())
}

fn verify_node(graph: &Graph, id: NodeId) -> Result<(), String> {
    let mut edges: SmallVec<[(u32, NodeId); 4]> = graph
        .inner
        .edges_directed(id, Direction::Incoming)
        .map(|edge| (*edge.weight(), edge.source()))
        .collect();
    edges.sort_unstable();
    let mut types = SmallVec::<[infer::Type; 3]>::new();
    for (expected, &(position, operand)) in edges.iter().enumerate() {
        if position as usize != expected {
            return Err(format!(
                "operand positions are not 0, 1, …: {position} stands where {expected} should"
            ));
        }
        if operand >= id {
            return Err(format!("operand %{} does not come before it", operand.index()));
        }
        let node = graph.node(operand);
        types.push((&node.shape, node.dtype));
    }
    let node = graph.node(id);
    infer::check(&node.op, &types, (&node.shape, node.dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::op::Op;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType};

    fn message(graph: &Graph) -> String {
        verify(graph, "test").unwrap_err().to_string()
    }

    #[test]
    fn a_sound_graph_passes() {
        let mut s = Sketch::new();
        let x = s.input([2, 3], DType::F32);
        let y = s.binary(BinaryOp::Add, x, x);
        assert!(verify(&s.outputs([y]), "test").is_ok());
    }

    #[test]
    fn each_broken_rule_is_found_and_the_node_named() {
        let mut s = Sketch::new();
        let x = s.input([2, 3], DType::F32);
        let node = Sketch::node(Op::Binary(BinaryOp::Add), [2, 3], DType::F32);

        let mut missing = s.graph.clone();
        missing.add(node.clone(), &[x]);
        assert!(message(&missing).contains("%1 = add, from add"), "{}", message(&missing));
        assert!(message(&missing).contains("takes 2 operands, got 1"));

        let mut gap = s.graph.clone();
        let y = gap.add(node.clone(), &[]);
        gap.inner.add_edge(x, y, 0);
        gap.inner.add_edge(x, y, 2);
        assert!(message(&gap).contains("2 stands where 1 should"));

        let mut backwards = s.graph.clone();
        let y = backwards.add(node.clone(), &[]);
        backwards.inner.add_edge(x, y, 0);
        backwards.inner.add_edge(y, y, 1);
        assert!(message(&backwards).contains("operand %1 does not come before it"));

        let mut mistyped = s.graph.clone();
        mistyped.add(Sketch::node(Op::Binary(BinaryOp::Lt), [2, 3], DType::F32), &[x, x]);
        assert!(message(&mistyped).contains("gives bool [2, 3]"));

        let mut nowhere = s.graph.clone();
        nowhere.set_outputs(vec![NodeId::new(7)]);
        assert!(message(&nowhere).contains("output %7 does not exist"));
    }
}
