//! The graph in Graphviz's DOT language: `dot -Tsvg graph.dot -o graph.svg`.

use super::op::{Constant, Op};
use super::text::{Attributes, Locations, Remarks, put};
use super::{Graph, Node};

/// A drawing of the live nodes: colours tell kinds of operations apart, constants are drawn beside
/// each of their users (one shared node would cross the picture with lines), outputs have a double
/// border, and the location is the tooltip. Stable, as [`text`](super::text::text) is.
pub(crate) fn dot(graph: &Graph, locations: Locations) -> String {
    let numbers = graph.numbers();
    let mut out = String::from(
        "digraph lazuli {\n  \
         node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11];\n  \
         edge [fontname=\"Helvetica\", fontsize=9, color=\"#555555\"];\n",
    );
    for id in graph.nodes() {
        let Some(number) = numbers[id.index()] else { continue };
        let node = graph.node(id);
        let is_output = graph.outputs().contains(&id);
        if constant_of(node).is_some() && !is_output {
            continue;
        }
        let mut label =
            format!("%{number} {}{}\n{} {}", node.op.name(), Attributes(&node.op), node.dtype, node.shape);
        let remarks = Remarks { node, locations: Locations::Hidden };
        if let Some(origin) = remarks.origin() {
            put(&mut label, format_args!("\n({origin})"));
        }
        put(
            &mut out,
            format_args!("  n{number} [label=\"{}\", fillcolor=\"{}\"", escaped(&label), colour(&node.op)),
        );
        if is_output {
            out.push_str(", peripheries=2");
        }
        if locations == Locations::Shown {
            put(&mut out, format_args!(", tooltip=\"{}\"", escaped(&node.location.to_string())));
        }
        out.push_str("];\n");

        let operands = graph.operands(id);
        for (position, &operand) in operands.iter().enumerate() {
            let Some(source) = numbers[operand.index()] else { continue };
            let operand_node = graph.node(operand);
            let drawn_once = constant_of(operand_node).is_none() || graph.outputs().contains(&operand);
            let name =
                if drawn_once { format!("n{source}") } else { format!("n{source}_{number}_{position}") };
            if let (Some(constant), false) = (constant_of(operand_node), drawn_once) {
                put(
                    &mut out,
                    format_args!(
                        "  {name} [label=\"{}\", shape=plaintext, style=solid];\n",
                        escaped(&constant.value.to_string())
                    ),
                );
            }
            put(&mut out, format_args!("  {name} -> n{number}"));
            if operands.len() > 1 {
                put(&mut out, format_args!(" [headlabel=\"{position}\"]"));
            }
            out.push_str(";\n");
        }
    }
    out.push_str("}\n");
    out
}

fn constant_of(node: &Node) -> Option<&Constant> {
    match &node.op {
        Op::Constant(constant) => Some(constant),
        _ => None,
    }
}

fn colour(op: &Op) -> &'static str {
    match op {
        Op::Input(_) => "#cfe2f3",
        Op::Constant(_) | Op::Iota | Op::Random { .. } => "#eeeeee",
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => "#ffffff",
        Op::View(_) | Op::Gather { .. } => "#fff2cc",
        Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Recurrence { .. }
        | Op::Scatter { .. }
        | Op::Sort { .. } => "#f4cccc",
    }
}

/// For a double-quoted DOT string; a line break becomes one in the label.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, Scalar, SourceLocation};

    #[test]
    fn nodes_edges_and_escapes() {
        let mut s = Sketch::new();
        let x = s.input([4], DType::F32);
        let two = s.splat(Scalar::from_f64(DType::F32, 2.0), [4]);
        let mut node = Sketch::node(Op::Binary(BinaryOp::Div), [4], DType::F32);
        node.location = SourceLocation { file: "C:\\a \"b\".rs", line: 1, column: 2 };
        let y = s.graph.add(node, &[x, two]);
        let graph = s.outputs([y]);
        let expected = r##"digraph lazuli {
  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=9, color="#555555"];
  n0 [label="%0 input slot=0\nf32 [4]", fillcolor="#cfe2f3"];
  n2 [label="%2 expand\nf32 [4]", fillcolor="#fff2cc"];
  n1_2_0 [label="2.0", shape=plaintext, style=solid];
  n1_2_0 -> n2;
  n3 [label="%3 div\nf32 [4]", fillcolor="#ffffff", peripheries=2];
  n0 -> n3 [headlabel="0"];
  n2 -> n3 [headlabel="1"];
}
"##;
        assert_eq!(dot(&graph, Locations::Hidden), expected);
        assert!(dot(&graph, Locations::Shown).contains(r#"tooltip="C:\\a \"b\".rs:1:2""#));
    }
}
