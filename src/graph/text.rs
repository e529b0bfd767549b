//! The graph as text: one line a node, for dumps, snapshots and messages. It says all that decides how the graph runs;
//! [`parse`](super::parse) gives back the same.

use std::fmt::{self, Write};

use super::op::{Constant, ConstantRole, Op, StepResult, View};
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
/// %1 = relu(%0) : f32 [1, 64, 256, 256]  # src/main.rs:11:9
/// %2 = max_pool2d(%1) kernel=3x3 stride=2x2 : f32 [1, 64, 127, 127]  # src/main.rs:12:9
/// return %2
/// ```
///
/// A node that is part of something the user called by another name says so: `# softmax`. What a recurrence does in each
/// step stands below it.
pub(crate) fn text(graph: &Graph, locations: Locations) -> String {
    let mut out = String::with_capacity(64 * graph.bound());
    lines(&mut out, graph, locations, "");
    out
}

fn lines(out: &mut String, graph: &Graph, locations: Locations, indent: &str) {
    let numbers = graph.numbers();
    for id in graph.nodes() {
        let Some(number) = numbers[id.index()] else { continue };
        let node = graph.node(id);
        put(out, format_args!("{indent}%{number} = {}", node.op.name()));
        let operands = graph.operands(id);
        if !operands.is_empty() {
            put(
                out,
                format_args!("({})", List(&operands.iter().map(|o| numbers[o.index()]).collect::<Vec<_>>())),
            );
        }
        put(out, format_args!("{} : {} {}", Attributes(&node.op), node.dtype, node.shape));
        let remarks = Remarks { node, locations };
        if !remarks.is_empty() {
            put(out, format_args!("  # {remarks}"));
        }
        out.push('\n');
        if let Op::Recurrence { body, .. } = &node.op {
            put(out, format_args!("{indent}  step\n"));
            lines(out, &body.graph, locations, &format!("{indent}    "));
        }
    }
    let outputs: Vec<_> = graph.outputs().iter().map(|output| numbers[output.index()]).collect();
    put(out, format_args!("{indent}return {}\n", List(&outputs)));
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
        let origin = self.node.origin;
        (origin != self.node.op.name() && !origin.is_empty()).then_some(origin)
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
            write!(f, "{separator}{}", self.node.location)?;
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
                write!(f, " carries={}", body.carries)
            }
            Op::Gather { axis, is_checked } => {
                write!(f, " axis={axis}{}", if *is_checked { "" } else { " within" })
            }
            Op::Scatter { op: _, axis, extent } => write!(f, " axis={axis} extent={extent}"),
            Op::Sort { axis, extent, descending, result: _ } => {
                write!(f, " axis={axis} extent={extent}{}", if *descending { " descending" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lazuli_codegen::syntax::Cursor;

    use super::*;
    use crate::graph::hash::structural_key;
    use crate::graph::parse;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, ReduceOp, Scalar, SourceLocation, UnaryOp};

    fn sample() -> Graph {
        let mut s = Sketch::new();
        let x = s.input([1, 2, 8, 8], DType::F32);
        let _dead = s.unary(UnaryOp::Exp, x);
        let half = s.slice(x, [0, 0, 0, 0], [1, 1, 2, 2], [1, 2, 4, 3]);
        let flipped = s.slice(half, [0, 0, 3, 0], [1, 1, -1, 1], [1, 2, 4, 3]);
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
%1 = slice(%0) starts=[0, 0, 0, 0] steps=[1, 1, 2, 2] : f32 [1, 2, 4, 3]
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
        assert!(text.contains("%5 = mul(%2, %4) : f32 [1, 2, 4, 3]  # scale, src/main.rs:12:3\n"), "{text}");
    }

    fn read(text: &str) -> Result<Graph, String> {
        let mut cursor = Cursor::new(text);
        let (graph, _) = parse::graph(&mut cursor).map_err(|error| error.to_string())?;
        cursor.end().map_err(|error| error.to_string())?;
        Ok(graph)
    }

    /// One of everything that has attributes.
    const ZOO: &str = "\
%0 = input slot=0 : f32 [2, 3, 8, 8]
%1 = slice(%0) starts=[0, 0, 0, 0] steps=[1, 1, 2, 3] : f32 [2, 3, 4, 2]
%2 = slice(%1) starts=[0, 2, 3, 0] steps=[1, -1, -1, 1] : f32 [2, 3, 4, 2]  # flip, src/my file.rs:3:14
%3 = constant NaN(0x7fc00001) argument : f32 []
%4 = expand(%3) : f32 [2, 3, 4, 2]
%5 = mul(%2, %4) : f32 [2, 3, 4, 2]  # scale
%6 = sum(%5) axes=[2, 3] : f32 [2, 3]
%7 = permute(%6) perm=[1, 0] : f32 [3, 2]
%8 = pad(%7) before=[1, 0] value=-inf : f32 [5, 2]
%9 = window(%8) axis=0 size=2 stride=1 dilation=2 : f32 [3, 2, 2]
%10 = tanh(%9) : f32 [3, 2, 2]  # activation
%11 = cumsum(%10) axis=1 reverse exclusive : f32 [3, 2, 2]
%12 = iota : i64 [2]
%13 = random seed=18446744073709551615 : f64 [2]
%14 = squared_deviations(%13) axes=[0] : f64 []
%15 = cast(%12) : bf16 [2]
%16 = reshape(%15) : bf16 [2, 1]
%17 = iota : i64 [4]
%18 = constant -0.0 literal : f16 []
%19 = constant 3 literal : i64 []
%20 = expand(%19) : i64 [2]
%21 = scatter_max(%13, %12) axis=0 extent=3 : f64 [3]  # scatter_reduce, src/main.rs:1:1
%22 = gather(%21, %20) axis=0 : f64 [2]
%23 = input slot=3 : f32 [2]
%24 = input slot=1 : f32 [2, 5]
%25 = recurrence(%23, %24) axis=1 reverse last=0 carries=1 : f32 [2]  # scan
  step
    %0 = input slot=0 : f32 []
    %1 = exp(%0) : f32 []
    return %1
return %11, %14, %16, %17, %18, %22, %25, %11
";

    #[test]
    fn what_is_printed_reads_back() {
        let text = |graph: &Graph| text(graph, Locations::Shown);
        let graph = read(ZOO).unwrap();
        let again = read(&text(&graph)).unwrap();
        assert_eq!(text(&again), text(&graph));
        assert_eq!(structural_key(&again), structural_key(&graph));
        let bare = ZOO.replace(", src/my file.rs:3:14", "").replace(", src/main.rs:1:1", "");
        assert_eq!(super::text(&graph, Locations::Hidden), bare);
        assert_eq!(graph.node(graph.outputs()[5]).location.line, 23, "the line of the text");
        let sample = sample();
        let read = read(&text(&sample)).unwrap();
        assert_eq!((text(&read), structural_key(&read)), (text(&sample), structural_key(&sample)));
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, error) in [
            ("%0 = input slot=0 : f33 [2]", "line 1, column 21: no dtype is called `f33`"),
            (
                "%0 = iota : f32 [2]\nreturn %0",
                "line 1, column 6: iota: gives a 1-d i64 tensor, but is recorded as f32 [2]",
            ),
            ("%0 = iota : i64 [2", "line 1, column 19: expected `,` or `]`, found the end"),
            ("%0 = iota : i64 [2]\n%0 = iota : i64 [3]", "line 2, column 1: there are two nodes %0"),
            ("%0 = itoa : i64 [2]", "line 1, column 6: no operation is called `itoa`"),
            ("%0 = constant 256 literal : u8 []", "line 1, column 15: 256 is no u8"),
            (
                "%0 = iota : i64 [2]",
                "line 1, column 20: expected a node, such as `%0`, or `return`, found the end",
            ),
            ("return %0", "line 1, column 8: %0 is not there yet"),
            ("return\nmore", "line 2, column 1: expected the end, found `more`"),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
    }
}
