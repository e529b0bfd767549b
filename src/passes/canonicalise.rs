//! One form for what can be written in several: chains of views merge, views that do nothing and
//! reductions of single values go, a constant stands second. Every rule keeps every bit.

use smallvec::SmallVec;

use super::rule::{Rule, Site, Step, rewrite, splat};
use super::sliced;
use crate::graph::op::{Axes, ConstantRole, Op, View};
use crate::graph::{Graph, Node, Operands};
use crate::{BinaryOp, DType, ReduceOp, Scalar, Shape, UnaryOp};

pub(super) fn run(graph: &Graph) -> Option<Graph> {
    rewrite(graph, rules_for)
}

pub(super) fn rules_for(op: &Op) -> &'static [Rule] {
    match op {
        Op::View(view) => match view {
            View::Reshape => &RESHAPE,
            View::Permute(_) => &PERMUTE,
            View::Expand => &EXPAND,
            View::Slice { .. } => &SLICE,
            View::Pad { .. } => &PAD,
            View::Window { .. } => &WINDOW,
        },
        Op::Cast => &CAST,
        Op::Reduce { .. } => &REDUCE,
        Op::Binary(_) => &BINARY,
        _ => &[],
    }
}

const SPLAT: Rule = Rule {
    name: "view_of_splat",
    statement: "a view of an expanded constant is that constant, expanded",
    apply: |site| {
        let constant = site.splat(0)?;
        let operand = match site.operand(0).op {
            Op::Constant(_) => site.operands[0],
            _ => site.inner(0).first().copied()?,
        };
        // An expanded constant itself is what this rule leaves behind.
        let done = matches!(site.node.op, Op::View(View::Expand)) && operand == site.operands[0];
        (!done && constant.value.dtype() == site.node.dtype)
            .then(|| site.become_op(Op::View(View::Expand), &[operand]))?
    },
};

pub(super) const RESHAPE: [Rule; 4] = [
    Rule {
        name: "reshape_to_itself",
        statement: "reshape(x) is x, if the shapes are equal",
        apply: |site| (site.operand(0).shape == site.node.shape).then(|| site.become_operand(0))?,
    },
    SPLAT,
    Rule {
        name: "reshape_reshape",
        statement: "reshape(reshape(x)) is reshape(x)",
        apply: |site| {
            let x = site.through_view(0, |view| matches!(view, View::Reshape))?;
            site.become_op(Op::View(View::Reshape), &[x])
        },
    },
    Rule {
        name: "reshape_of_a_permute_of_ones",
        statement: "reshape(permute(x)) is reshape(x), if only dimensions of one element move",
        apply: |site| {
            let Op::View(View::Permute(perm)) = &site.operand(0).op else { return None };
            let x = site.inner(0).first().copied()?;
            moves_only_ones(perm, &site.graph.node(x).shape)
                .then(|| site.become_op(Op::View(View::Reshape), &[x]))?
        },
    },
];

pub(super) const PERMUTE: [Rule; 3] = [
    SPLAT,
    Rule {
        name: "permute_permute",
        statement: "permute(permute(x)) is one permute(x)",
        apply: |site| {
            let Op::View(View::Permute(outer)) = &site.node.op else { return None };
            let Op::View(View::Permute(inner)) = &site.operand(0).op else { return None };
            let perm: Axes = outer.iter().map(|&axis| inner[axis]).collect();
            let x = site.inner(0).first().copied()?;
            site.become_op(Op::View(View::Permute(perm)), &[x])
        },
    },
    Rule {
        name: "permute_of_ones",
        statement: "permute(x) is reshape(x), if only dimensions of one element move",
        apply: |site| {
            let Op::View(View::Permute(perm)) = &site.node.op else { return None };
            moves_only_ones(perm, &site.operand(0).shape)
                .then(|| site.become_op(Op::View(View::Reshape), &[site.operands[0]]))?
        },
    },
];

fn moves_only_ones(perm: &[usize], shape: &Shape) -> bool {
    perm.iter().filter(|&&axis| shape[axis] != 1).is_sorted()
}

pub(super) const EXPAND: [Rule; 5] = [
    Rule {
        name: "expand_to_itself",
        statement: "expand(x) is x, if the shapes are equal",
        apply: |site| (site.operand(0).shape == site.node.shape).then(|| site.become_operand(0))?,
    },
    SPLAT,
    Rule {
        name: "expand_expand",
        statement: "expand(expand(x)) is expand(x)",
        apply: |site| {
            let x = site.through_view(0, |view| matches!(view, View::Expand))?;
            site.become_op(Op::View(View::Expand), &[x])
        },
    },
    Rule {
        name: "expand_of_leading_ones",
        statement: "expand(reshape(x)) is expand(x), if the reshape only puts ones in front",
        apply: |site| {
            let x = site.through_view(0, |view| matches!(view, View::Reshape))?;
            let (before, after) = (&site.graph.node(x).shape, &site.operand(0).shape);
            let added = after.rank().checked_sub(before.rank())?;
            let only_ones_in_front = after[added..] == before[..] && after[..added].iter().all(|&e| e == 1);
            only_ones_in_front.then(|| site.become_op(Op::View(View::Expand), &[x]))?
        },
    },
    Rule {
        name: "expand_by_ones",
        statement: "expand(x) is reshape(x), if it only puts ones in front",
        apply: |site| {
            let operand = site.operand(0);
            let elements = operand.shape.elements();
            let applies = elements > 0
                && elements == site.node.shape.elements()
                && !matches!(operand.op, Op::Constant(_));
            applies.then(|| site.become_op(Op::View(View::Reshape), &[site.operands[0]]))?
        },
    },
];

pub(super) const SLICE: [Rule; 7] = [
    Rule {
        name: "slice_of_everything",
        statement: "slice(x) is x, if every element stays in its place",
        apply: |site| {
            let Op::View(View::Slice { starts, steps }) = &site.node.op else { return None };
            let in_place = |axis: usize| site.node.shape[axis] <= 1 || starts[axis] == 0 && steps[axis] == 1;
            let everything =
                site.operand(0).shape == site.node.shape && (0..site.node.shape.rank()).all(in_place);
            everything.then(|| site.become_operand(0))?
        },
    },
    SPLAT,
    Rule {
        name: "slice_slice",
        statement: "slice(slice(x)) is one slice(x)",
        apply: |site| {
            let Op::View(View::Slice { starts, steps }) = &site.node.op else { return None };
            let Op::View(View::Slice { starts: inner_starts, steps: inner_steps }) = &site.operand(0).op
            else {
                return None;
            };
            let (mut merged_starts, mut merged_steps) = (SmallVec::new(), SmallVec::new());
            for (axis, &extent) in site.node.shape.iter().enumerate() {
                let (start, step) = match extent {
                    0 => (0, 1),
                    _ => (
                        inner_steps[axis].checked_mul(starts[axis])?.checked_add(inner_starts[axis])?,
                        if extent == 1 { 1 } else { inner_steps[axis].checked_mul(steps[axis])? },
                    ),
                };
                merged_starts.push(start);
                merged_steps.push(step);
            }
            let x = site.inner(0).first().copied()?;
            site.become_op(Op::View(View::Slice { starts: merged_starts, steps: merged_steps }), &[x])
        },
    },
    Rule {
        name: "slice_of_broadcast",
        statement: "slice(expand(x)) is expand(x), if only stretched dimensions are cut",
        apply: |site| {
            let Op::View(View::Slice { starts, steps }) = &site.node.op else { return None };
            let x = site.through_view(0, |view| matches!(view, View::Expand))?;
            let (from, to) = (&site.operand(0).shape, &site.node.shape);
            let source = &site.graph.node(x).shape;
            let added = to.rank().checked_sub(source.rank())?;
            let uncut = |axis: usize| {
                to[axis] == from[axis] && (to[axis] <= 1 || starts[axis] == 0 && steps[axis] == 1)
            };
            let stretched = |axis: usize| axis < added || source[axis - added] == 1;
            (0..to.rank())
                .all(|axis| uncut(axis) || stretched(axis))
                .then(|| site.become_op(Op::View(View::Expand), &[x]))?
        },
    },
    Rule {
        name: "slice_of_choice",
        statement: "slice(where(c, a, b)) is slice(a), if c says where a padded true is, and that is all of the slice, and b is padded or a splat; or slice(b)",
        apply: |site| sliced::of_choice(site),
    },
    Rule {
        name: "slice_of_pad",
        statement: "slice(pad(x)) is slice(x), if it has no padding, and the padding, if it has nothing else",
        apply: |site| sliced::of_padded(site),
    },
    Rule {
        name: "flip_of_scan",
        statement: "flip(scan(x)) is scan(flip(x)), the other way round if the scan's own axis is flipped",
        apply: |site| flip_of_scan(site),
    },
];

/// What comes before a scan is read in any order; what follows from one is known in the scan's.
fn flip_of_scan(site: &mut Site<'_>) -> Option<Step> {
    let Op::View(flip @ View::Slice { starts, steps }) = &site.node.op else { return None };
    let scan = site.operand(0);
    let Op::Scan { op, axis, reverse, exclusive } = scan.op else { return None };
    let is_flipped = |at: usize| steps[at] == -1 && starts[at] == scan.shape[at] as i64 - 1;
    let is_left = |at: usize| steps[at] == 1 && starts[at] == 0;
    if scan.shape != site.node.shape || !(0..scan.shape.rank()).all(|at| is_flipped(at) || is_left(at)) {
        return None;
    }
    let operand = site.inner(0)[0];
    let node = site.graph.node(operand);
    let flipped = site.add(Op::View(flip.clone()), &[operand], node.shape.clone(), node.dtype);
    let reverse = reverse != is_flipped(axis);
    let node = Node { op: Op::Scan { op, axis, reverse, exclusive }, ..scan.clone() };
    Some(Step::New(node, Operands::from_slice(&[flipped])))
}

pub(super) const PAD: [Rule; 3] = [
    Rule {
        name: "pad_by_nothing",
        statement: "pad(x) is x, if the shapes are equal",
        apply: |site| (site.operand(0).shape == site.node.shape).then(|| site.become_operand(0))?,
    },
    Rule {
        name: "pad_of_like_splat",
        statement: "pad(c, with c) is c, expanded",
        apply: |site| {
            let Op::View(View::Pad { value, .. }) = &site.node.op else { return None };
            (site.splat(0)?.value == *value).then(|| (SPLAT.apply)(site))?
        },
    },
    Rule {
        name: "pad_pad",
        statement: "pad(pad(x, with c), with c) is one pad(x, with c)",
        apply: |site| {
            let Op::View(View::Pad { before, value }) = &site.node.op else { return None };
            let Op::View(View::Pad { before: inner, value: inner_value }) = &site.operand(0).op else {
                return None;
            };
            if value != inner_value {
                return None;
            }
            let before = before.iter().zip(inner).map(|(a, b)| a + b).collect();
            let x = site.inner(0).first().copied()?;
            site.become_op(Op::View(View::Pad { before, value: *value }), &[x])
        },
    },
];

pub(super) const WINDOW: [Rule; 2] = [
    SPLAT,
    Rule {
        name: "window_of_one",
        statement: "window(x) is reshape(slice(x)), if a window has one element",
        apply: |site| {
            let Op::View(View::Window { axis, size: 1, stride, .. }) = site.node.op else { return None };
            let rank = site.operand(0).shape.rank();
            let mut steps = SmallVec::from_elem(1, rank);
            steps[axis] = i64::try_from(stride).ok()?;
            let starts = SmallVec::from_elem(0, rank);
            let shape = Shape::from(&site.node.shape[..rank]);
            let x = site.operands[0];
            let sliced = match shape == site.operand(0).shape {
                true => x,
                false => site.add(Op::View(View::Slice { starts, steps }), &[x], shape, site.node.dtype),
            };
            site.become_op(Op::View(View::Reshape), &[sliced])
        },
    },
];

pub(super) const CAST: [Rule; 1] = [Rule {
    name: "cast_to_itself",
    statement: "x as T is x, if x is a T; not for the 16-bit floats, which such a cast rounds",
    apply: |site| {
        let dtype = site.node.dtype;
        (site.operand(0).dtype == dtype && dtype.compute() == dtype).then(|| site.become_operand(0))?
    },
}];

pub(super) const REDUCE: [Rule; 3] = [
    Rule {
        name: "reduce_single_values",
        statement: "reduce(x) along dimensions of one element is reshape(x), the position of an extreme 0; a float sum adds x to +0",
        apply: |site| reduce_single_values(site),
    },
    Rule {
        name: "reduce_nothing",
        statement: "a reduction of no values is what its monoid combines nothing to",
        apply: |site| {
            let Op::Reduce { op, axes } = &site.node.op else { return None };
            if op.needs_values() {
                return None;
            }
            let empty = axes.iter().any(|&axis| site.operand(0).shape[axis] == 0);
            let value = op.identity(site.node.dtype);
            (empty && site.node.shape.elements() > 0)
                .then(|| site.become_constant(value, ConstantRole::Literal))?
        },
    },
    Rule {
        name: "sum_of_exponentials",
        statement: "sum(exp(x - max(x))) along the same dimensions is sum_exp(x), which needs no maximum beforehand",
        apply: |site| sum_of_exponentials(site),
    },
];

fn sum_of_exponentials(site: &mut Site<'_>) -> Option<Step> {
    let Op::Reduce { op: ReduceOp::Sum, axes } = &site.node.op else { return None };
    let Op::Unary(UnaryOp::Exp) = site.operand(0).op else { return None };
    let (graph, below) = (site.graph, site.inner(0)[0]);
    let Op::Binary(BinaryOp::Sub) = graph.node(below).op else { return None };
    let operands = graph.operands(below);
    let (x, mut max) = (operands[0], operands[1]);
    // The maximum at each element that it is the maximum of: spread along the axes, and nothing else.
    let shape = &graph.node(x).shape;
    let Op::View(View::Expand) = graph.node(max).op else { return None };
    max = graph.operands(max)[0];
    let spread = &graph.node(max).shape;
    let missing = shape.rank() - spread.rank();
    let extent = |axis: usize| if axis < missing { 1 } else { spread[axis - missing] };
    let kept = |axis: usize| if axes.contains(&axis) { 1 } else { shape[axis] };
    if (0..shape.rank()).any(|axis| extent(axis) != kept(axis)) {
        return None;
    }
    while let Op::View(View::Reshape) = graph.node(max).op {
        max = graph.operands(max)[0];
    }
    let Op::Reduce { op: ReduceOp::Max, axes: own } = &graph.node(max).op else { return None };
    let is_of_x = own == axes && graph.operands(max)[0] == x;
    is_of_x.then(|| site.become_op(Op::Reduce { op: ReduceOp::SumExp, axes: axes.clone() }, &[x]))?
}

fn reduce_single_values(site: &mut Site<'_>) -> Option<Step> {
    let Op::Reduce { op, axes } = &site.node.op else { return None };
    if !axes.iter().all(|&axis| site.operand(0).shape[axis] == 1) {
        return None;
    }
    let float = site.node.dtype.is_float();
    match op {
        ReduceOp::Sum if float => {
            // A sum starts at +0, which makes +0 of -0.
            let (shape, dtype) = (site.node.shape.clone(), site.node.dtype);
            let term = match axes.is_empty() {
                true => site.operands[0],
                false => site.add(Op::View(View::Reshape), &[site.operands[0]], shape, dtype),
            };
            let zero = site.constant(Scalar::from_f64(site.node.dtype, 0.0), ConstantRole::Literal);
            site.become_op(Op::Binary(BinaryOp::Add), &[term, zero])
        }
        op if op.is_scan() => site.become_op(Op::View(View::Reshape), site.operands),
        op if op.is_position() => {
            site.become_constant(Scalar::from_i64(DType::I64, 0), ConstantRole::Literal)
        }
        // Not 0, and not 1, but NaN for infinities and NaN.
        _ => None,
    }
}

pub(super) const BINARY: [Rule; 1] = [Rule {
    name: "constant_second",
    statement: "c + x is x + c for what commutes; c < x is x > c",
    apply: |site| {
        let Op::Binary(op) = site.node.op else { return None };
        let swapped = match op {
            BinaryOp::Lt => BinaryOp::Gt,
            BinaryOp::Le => BinaryOp::Ge,
            BinaryOp::Gt => BinaryOp::Lt,
            BinaryOp::Ge => BinaryOp::Le,
            // Which of +0 and -0 is the larger is left to the kernel.
            BinaryOp::Maximum | BinaryOp::Minimum
                if swaps_freely(op, site.node.dtype) || site.splat(0)?.value.is_nonzero() =>
            {
                op
            }
            _ if swaps_freely(op, site.node.dtype) => op,
            _ => return None,
        };
        let (a, b) = (site.operands[0], site.operands[1]);
        let applies = splat(site.graph, a).is_some() && splat(site.graph, b).is_none();
        applies.then(|| site.become_op(Op::Binary(swapped), &[b, a]))?
    },
}];

/// Whether swapping the operands cannot change a bit of the result, NaN payloads aside. Unlike
/// [`BinaryOp::is_commutative`] this leaves open which of +0 and -0 is the larger.
pub(super) fn swaps_freely(op: BinaryOp, result: DType) -> bool {
    op.is_commutative() && !(result.is_float() && matches!(op, BinaryOp::Maximum | BinaryOp::Minimum))
}
