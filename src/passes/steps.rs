//! The steps of recurrences: graphs of their own, which all passes simplify as they do any other.

use std::sync::Arc;

use crate::Result;
use crate::graph::Graph;
use crate::graph::body::Body;
use crate::graph::op::Op;

/// `simplify` is what all passes make of a graph.
pub(super) fn run(graph: &Graph, simplify: fn(&Graph) -> Result<Graph>) -> Option<Graph> {
    let is_loop = |op: &Op| matches!(op, Op::Recurrence { .. });
    if !graph.nodes().any(|id| is_loop(&graph.node(id).op)) {
        return None;
    }
    let mut changed = false;
    let result = graph.rewrite(|result, node, operands| {
        let mut node = node.clone();
        if let Op::Recurrence { body, .. } = &mut node.op
            && let Some(simpler) = simplified(body, simplify)
        {
            *body = Arc::new(simpler);
            changed = true;
        }
        result.add(node, operands)
    });
    changed.then_some(result)
}

fn simplified(body: &Body, simplify: fn(&Graph) -> Result<Graph>) -> Option<Body> {
    let graph = simplify(&body.graph).ok()?;
    let simpler = Body::new(graph, body.carries, body.inputs.clone());
    (simpler.key() != body.key()).then_some(simpler)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::op::StepResult;
    use crate::graph::sketch::Sketch;
    use crate::graph::text::{Locations, text};
    use crate::{BinaryOp, DType, UnaryOp};

    #[test]
    fn a_step_is_simplified_as_any_graph() {
        let mut step = Sketch::new();
        let (h, x) = (step.input([], DType::F32), step.input([], DType::F32));
        let back = step.unary(UnaryOp::Neg, h);
        let forth = step.unary(UnaryOp::Neg, back);
        let gate = step.unary(UnaryOp::Exp, x);
        let next = step.binary(BinaryOp::Mul, forth, gate);
        let body = Arc::new(Body::new(step.outputs([next]), 1, vec![DType::F32; 2]));
        let mut s = Sketch::new();
        let (init, x) = (s.input([3], DType::F32), s.input([3, 5], DType::F32));
        let op = Op::Recurrence { axis: 1, reverse: false, body, result: StepResult::Each(0) };
        let y = s.op(op, &[init, x], [3, 5], DType::F32);
        let passes = |graph: &Graph| crate::passes::run(graph, None);
        let simplified = run(&s.outputs([y]), passes).unwrap();
        let text = text(&simplified, Locations::Hidden);
        assert!(!text.contains("neg(%0)") && text.contains("exp("), "{text}");
        assert!(run(&simplified, passes).is_none());
    }
}
