//! The graph as text: one line a node, for dumps, snapshots and messages.

use std::fmt::{self, Write};

use super::op::{Composite, Constant, ConstantRole, Op, Pool2d, StepResult, View};
use super::{Graph, Node};

/// Whether the lines name the user's file and line: good in a dump, bad in a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Locations {
    Shown,
    Hidden,
}

/// The live nodes in topological order, numbered densely, and the outputs in the last line. The text
/// follows from the graph's structure alone (and from the locations, if they are shown):
///
/// ```text
/// %0 = input slot=0 : f32 [1, 64, 256, 256]
/// %1 = relu(%0) : f32 [1, 64, 256, 256]  # src/main.rs:11
/// %2 = max_pool2d(%1) kernel=3x3 stride=2x2 : f32 [1, 64, 127, 127]  # src/main.rs:12
/// return %2
/// ```
///
/// A node that is part of something the user called by another name says so: `# softmax`.
pub(crate) fn text(graph: &Graph, locations: Locations) -> String {
    let numbers = graph.numbers();
    let mut out = String::with_capacity(64 * graph.bound());
    for id in graph.nodes() {
        let Some(number) = numbers[id.index()] else { continue };
        let node = graph.node(id);
        put(&mut out, format_args!("%{number} = {}", node.op.name()));
        let operands = graph.operands(id);
        if !operands.is_empty() {
            put(
                &mut out,
                format_args!("({})", List(&operands.iter().map(|o| numbers[o.index()]).collect::<Vec<_>>())),
            );
        }
        put(&mut out, format_args!("{} : {} {}", Attributes(&node.op), node.dtype, node.shape));
        let remarks = Remarks { node, locations };
        if !remarks.is_empty() {
            put(&mut out, format_args!("  # {remarks}"));
        }
        out.push('\n');
    }
    let outputs: Vec<_> = graph.outputs().iter().map(|output| numbers[output.index()]).collect();
    put(&mut out, format_args!("return {}\n", List(&outputs)));
    out
}

/// Writing to a string cannot fail.
pub(super) fn put(out: &mut String, text: fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

struct List<'a>(&'a [Option<u32>]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, number) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            match number {
                Some(number) => write!(f, "{separator}%{number}")?,
                None => write!(f, "{separator}%?")?,
            }
        }
        Ok(())
    }
}

/// What the user called this, if not by the operation's own name, and where.
pub(super) struct Remarks<'a> {
    pub(super) node: &'a Node,
    pub(super) locations: Locations,
}

impl Remarks<'_> {
    pub(super) fn origin(&self) -> Option<&'static str> {
        (self.node.origin != self.node.op.name()).then_some(self.node.origin)
    }

    fn is_empty(&self) -> bool {
        self.origin().is_none() && self.locations == Locations::Hidden
    }
}

impl fmt::Display for Remarks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = self.origin() {
            f.write_str(origin)?;
        }
        if self.locations == Locations::Shown {
            let separator = if self.origin().is_some() { ", " } else { "" };
            write!(f, "{separator}{}:{}", self.node.location.file, self.node.location.line)?;
        }
        Ok(())
    }
}

/// The operation's attributes, each after a space: ` kernel=3x3 stride=2x2`. What the node's shape and
/// dtype already say, and attributes that change nothing (no padding, dilation 1), are left out.
pub(super) struct Attributes<'a>(pub(super) &'a Op);

impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Op::Input(slot) => write!(f, " slot={slot}"),
            Op::Constant(Constant { value, role }) => match role {
                ConstantRole::Argument => write!(f, " {value} argument"),
                ConstantRole::Literal => write!(f, " {value} literal"),
            },
            Op::Random { seed } => write!(f, " seed={seed}"),
            Op::Iota | Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => Ok(()),
            Op::View(view) => match view {
                View::Reshape | View::Expand => Ok(()),
                View::Permute(perm) => write!(f, " perm={perm:?}"),
                View::Slice { starts, steps } => match steps.iter().all(|&step| step == 1) {
                    true => write!(f, " starts={starts:?}"),
                    false => write!(f, " starts={starts:?} steps={steps:?}"),
                },
                View::Pad { before, value } => write!(f, " before={before:?} value={value}"),
                View::Window { axis, size, stride, dilation } => {
                    write!(f, " axis={axis} size={size} stride={stride}")?;
                    if *dilation == 1 { Ok(()) } else { write!(f, " dilation={dilation}") }
                }
            },
            Op::Reduce { op: _, axes } => write!(f, " axes={axes:?}"),
            Op::Scan { op: _, axis, reverse, exclusive } => {
                write!(f, " axis={axis}")?;
                f.write_str(if *reverse { " reverse" } else { "" })?;
                f.write_str(if *exclusive { " exclusive" } else { "" })
            }
            Op::Recurrence { axis, reverse, body, result } => {
                write!(f, " axis={axis}{}", if *reverse { " reverse" } else { "" })?;
                match result {
                    StepResult::Each(number) => write!(f, " each={number}")?,
                    StepResult::Last(number) => write!(f, " last={number}")?,
                }
                let step = text(&body.graph, Locations::Hidden);
                write!(f, " carries={} step={{{}}}", body.carries, step.trim_end().replace('\n', "; "))
            }
            Op::Gather { axis } => write!(f, " axis={axis}"),
            Op::Scatter { op: _, axis, extent } => write!(f, " axis={axis} extent={extent}"),
            Op::Composite(composite) => match composite {
                Composite::Mean { axes } => write!(f, " axes={axes:?}"),
                Composite::Var { axes, correction } => write!(f, " axes={axes:?} correction={correction}"),
                Composite::Sigmoid | Composite::Silu | Composite::Gelu | Composite::GeluTanh => Ok(()),
                Composite::Softmax { axis } => write!(f, " axis={axis}"),
                Composite::LayerNorm { dims, eps_bits } => {
                    write!(f, " dims={dims} eps={:?}", f64::from_bits(*eps_bits))
                }
                Composite::MaxPool2d(pool) | Composite::AvgPool2d(pool) => pool_attributes(f, pool),
            },
        }
    }
}

fn pool_attributes(f: &mut fmt::Formatter<'_>, pool: &Pool2d) -> fmt::Result {
    let mut pair = |name: &str, [height, width]: [usize; 2]| write!(f, " {name}={height}x{width}");
    pair("kernel", pool.kernel)?;
    pair("stride", pool.stride)?;
    if pool.padding != [0, 0] {
        pair("padding", pool.padding)?;
    }
    if pool.dilation != [1, 1] {
        pair("dilation", pool.dilation)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, ReduceOp, Scalar, SourceLocation, UnaryOp};

    fn sample() -> Graph {
        let mut s = Sketch::new();
        let x = s.input([1, 2, 8, 8], DType::F32);
        let _dead = s.unary(UnaryOp::Exp, x);
        let pool = Pool2d { kernel: [3, 3], stride: [2, 2], padding: [1, 0], dilation: [1, 1] };
        let pooled = s.op(Op::Composite(Composite::MaxPool2d(pool)), &[x], [1, 2, 4, 3], DType::F32);
        let flipped = s.slice(pooled, [0, 0, 3, 0], [1, 1, -1, 1], [1, 2, 4, 3]);
        let two = s.splat(Scalar::from_f64(DType::F32, 2.0), [1, 2, 4, 3]);
        let mut node = Sketch::node(Op::Binary(BinaryOp::Mul), [1, 2, 4, 3], DType::F32);
        node.origin = "scale";
        node.location = SourceLocation { file: "src/main.rs", line: 12, column: 3 };
        let scaled = s.graph.add(node, &[flipped, two]);
        let sum = s.reduce(ReduceOp::Sum, scaled, [2, 3]);
        s.outputs([sum, scaled, sum])
    }

    #[test]
    fn one_line_a_live_node_numbered_densely() {
        let expected = "\
%0 = input slot=0 : f32 [1, 2, 8, 8]
%1 = max_pool2d(%0) kernel=3x3 stride=2x2 padding=1x0 : f32 [1, 2, 4, 3]
%2 = slice(%1) starts=[0, 0, 3, 0] steps=[1, 1, -1, 1] : f32 [1, 2, 4, 3]
%3 = constant 2.0 argument : f32 []
%4 = expand(%3) : f32 [1, 2, 4, 3]
%5 = mul(%2, %4) : f32 [1, 2, 4, 3]  # scale
%6 = sum(%5) axes=[2, 3] : f32 [1, 2]
return %6, %5, %6
";
        assert_eq!(text(&sample(), Locations::Hidden), expected);
    }

    #[test]
    fn locations_come_last_and_only_on_request() {
        let text = text(&sample(), Locations::Shown);
        assert!(text.contains("%5 = mul(%2, %4) : f32 [1, 2, 4, 3]  # scale, src/main.rs:12\n"), "{text}");
    }
}
