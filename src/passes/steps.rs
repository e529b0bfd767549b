//! The steps of recurrences: graphs of their own, which all passes simplify as they do any other.

use std::sync::Arc;

use crate::graph::Graph;
use crate::graph::body::Body;
use crate::graph::op::Op;

pub(super) fn run(graph: &Graph) -> Option<Graph> {
    let is_loop = |op: &Op| matches!(op, Op::Recurrence { .. });
    if !graph.nodes().any(|id| is_loop(&graph.node(id).op)) {
        return None;
    }
    let mut changed = false;
    let result = graph.rewrite(|result, node, operands| {
        let mut node = node.clone();
        if let Op::Recurrence { body, .. } = &mut node.op
            && let Some(simpler) = simplified(body)
        {
            *body = Arc::new(simpler);
            changed = true;
        }
        result.add(node, operands)
    });
    changed.then_some(result)
}

fn simplified(body: &Body) -> Option<Body> {
    let graph = super::run(&body.graph, None).ok()?;
    let simpler = Body::new(graph, body.carries, body.inputs.clone());
    (simpler.key() != body.key()).then_some(simpler)
}
