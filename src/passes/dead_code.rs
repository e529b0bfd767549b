//! Drops what no output needs: helpers of rules that were simplified away in turn.

use crate::graph::Graph;

pub(super) fn run(graph: &Graph) -> Option<Graph> {
    let all_live = graph.live().into_iter().all(|live| live);
    (!all_live).then(|| graph.rewrite(|result, node, operands| result.add(node.clone(), operands)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::sketch::Sketch;
    use crate::{DType, UnaryOp};

    #[test]
    fn only_what_outputs_need_stays() {
        let mut s = Sketch::new();
        let x = s.input([2], DType::F32);
        let dead = s.unary(UnaryOp::Exp, x);
        s.unary(UnaryOp::Neg, dead);
        let y = s.unary(UnaryOp::Sin, x);
        let swept = run(&s.outputs([y])).unwrap();
        assert_eq!(swept.bound(), 2);
        assert!(run(&swept).is_none());
    }
}
