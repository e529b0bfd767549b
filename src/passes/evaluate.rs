//! An evaluator for the tests of the passes: plain loops over scalars, each scalar operation as it
//! is declared. Values of the
//! 16-bit floats are f32, as in a kernel's registers, and rounded where they are cast.

use std::cmp::Ordering;

use crate::graph::op::{Op, Sorted, StepResult, View};
use crate::graph::{Graph, Node, NodeId};
use crate::{BinaryOp, DType, ReduceOp, Scalar, Shape, UnaryOp};

/// The outputs' elements, given the inputs'.
pub(super) fn evaluate(graph: &Graph, inputs: &[Vec<Scalar>]) -> Vec<Vec<Scalar>> {
    let mut values: Vec<Vec<Scalar>> = Vec::new();
    for id in graph.nodes() {
        let operands = graph.operands(id);
        let operand = |n: usize| &values[NodeId::index(operands[n])];
        let shape = |n: usize| &graph.node(operands[n]).shape;
        let node = graph.node(id);
        let pointwise = |f: &dyn Fn(usize) -> Scalar| (0..node.shape.elements()).map(f).collect();
        let value: Vec<Scalar> = match &node.op {
            Op::Input(slot) => inputs[*slot].iter().map(|x| x.cast(node.dtype.compute())).collect(),
            Op::Constant(constant) => vec![constant.value.cast(node.dtype.compute())],
            Op::Iota => pointwise(&|n| Scalar::from_i64(DType::I64, n as i64)),
            Op::Random { seed } => pointwise(&|n| {
                let bits = (seed ^ n as u64).wrapping_mul(0x9e3779b97f4a7c15) >> 40;
                Scalar::from_f64(node.dtype.compute(), bits as f64 / f64::powi(2.0, 24))
            }),
            Op::Unary(op) => pointwise(&|n| unary(*op, operand(0)[n])),
            Op::Binary(op) => pointwise(&|n| binary(*op, operand(0)[n], operand(1)[n])),
            Op::Select => pointwise(&|n| operand(if operand(0)[n].is_nonzero() { 1 } else { 2 })[n]),
            Op::Cast => pointwise(&|n| operand(0)[n].cast(node.dtype).cast(node.dtype.compute())),
            Op::View(view) => viewed(view, operand(0), shape(0), node),
            Op::Reduce { op, axes } => reduced(*op, axes, operand(0), shape(0), node.dtype.compute()),
            Op::Scan { op, axis, reverse, exclusive } => {
                let (x, extent) = (operand(0), shape(0)[*axis]);
                let stride: usize = shape(0)[axis + 1..].iter().product();
                let at = |n: usize| {
                    let place = n / stride % extent;
                    let before = match reverse {
                        true => place + usize::from(*exclusive)..extent,
                        false => 0..place + usize::from(!exclusive),
                    };
                    let row = before.map(|k| x[n + k * stride - place * stride]);
                    op.fold(node.dtype, row)
                };
                pointwise(&at)
            }
            Op::Recurrence { body, .. } => {
                let values: Vec<&[Scalar]> = (0..operands.len()).map(|n| &operand(n)[..]).collect();
                stepped(node, &values, shape(body.carries))
            }
            Op::Gather { axis, .. } => {
                let (inner, extent) = (node.shape.strides()[*axis], shape(0)[*axis]);
                pointwise(&|n| {
                    let outer = n / (inner * node.shape[*axis]);
                    let row = outer * extent + operand(1)[n].as_i64() as usize;
                    operand(0)[row * inner + n % inner]
                })
            }
            Op::Scatter { op, axis, extent } => {
                let inner: usize = shape(0)[axis + 1..].iter().product();
                let count = shape(0)[*axis];
                pointwise(&|n| {
                    let (outer, place) = (n / (inner * extent), (n / inner % extent) as i64);
                    let sources = (0..count).map(|k| (outer * count + k) * inner + n % inner);
                    let hits = sources.filter(|&at| operand(1)[at].as_i64() == place);
                    let row: Vec<Scalar> = hits.map(|at| operand(0)[at]).collect();
                    let row_shape = Shape::from([row.len()]);
                    reduced(*op, &[0], &row, &row_shape, node.dtype.compute())[0]
                })
            }
            Op::Sort { axis, .. } => {
                let (inner, count) = (node.shape.strides()[*axis], shape(0)[*axis]);
                let extent = node.shape[*axis];
                pointwise(&|n| {
                    let (outer, rank) = (n / (inner * extent), n / inner % extent);
                    let row = (0..count).map(|k| operand(0)[(outer * count + k) * inner + n % inner]);
                    ranked(&node.op, &row.collect::<Vec<_>>(), rank)
                })
            }
        };
        values.push(value);
    }
    graph.outputs().iter().map(|output| values[output.index()].clone()).collect()
}

/// A result of a recurrence, step by step.
fn stepped(node: &Node, operands: &[&[Scalar]], full: &Shape) -> Vec<Scalar> {
    let Op::Recurrence { axis, reverse, body, result } = &node.op else { unreachable!() };
    let (extent, stride) = (full[*axis], full[axis + 1..].iter().product::<usize>());
    let mut results = vec![None; node.shape.elements()];
    for row in 0..full.elements() / extent {
        let mut carries: Vec<Scalar> = (0..body.carries).map(|n| operands[n][row]).collect();
        for time in 0..extent {
            let place = if *reverse { extent - 1 - time } else { time };
            let at = row / stride * stride * extent + place * stride + row % stride;
            let elements = operands[body.carries..].iter().map(|operand| operand[at]);
            let inputs: Vec<Vec<Scalar>> = carries.iter().copied().chain(elements).map(|x| vec![x]).collect();
            let outputs = evaluate(&body.graph, &inputs);
            match result {
                StepResult::Each(n) => results[at] = Some(outputs[*n][0]),
                StepResult::Last(n) => results[row] = Some(outputs[*n][0]),
            }
            carries = outputs[..body.carries].iter().map(|output| output[0]).collect();
        }
    }
    results.into_iter().map(Option::unwrap).collect()
}

/// What a sort puts at a rank of a row.
fn ranked(sort: &Op, row: &[Scalar], rank: usize) -> Scalar {
    let Op::Sort { descending, result, .. } = sort else { unreachable!() };
    let before = |a: usize, b: usize| {
        let (a, b) = (row[a].as_f64(), row[b].as_f64());
        let order = a.is_nan().cmp(&b.is_nan()).then(a.partial_cmp(&b).unwrap_or(Ordering::Equal));
        if *descending { order.reverse() } else { order }
    };
    let mut places: Vec<usize> = (0..row.len()).collect();
    places.sort_by(|&a, &b| before(a, b));
    match result {
        Sorted::Values => row[places[rank]],
        Sorted::Positions => Scalar::from_i64(DType::I64, places[rank] as i64),
    }
}

/// Equal bits, or both NaN.
pub(super) fn same(a: Scalar, b: Scalar) -> bool {
    a == b || a.dtype() == b.dtype() && a.as_f64().is_nan() && b.as_f64().is_nan()
}

fn unary(op: UnaryOp, x: Scalar) -> Scalar {
    op.apply(x).unwrap_or_else(|| panic!("{op} of {}", x.dtype()))
}

fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    op.apply(a, b).unwrap_or_else(|| panic!("{op} of {} and {}", a.dtype(), b.dtype()))
}

/// The position along each axis of the n-th element.
fn position(shape: &[usize], mut n: usize) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        at[axis] = n % shape[axis];
        n /= shape[axis];
    }
    at
}

fn offset(shape: &[usize], at: &[usize]) -> usize {
    shape.iter().zip(at).fold(0, |offset, (extent, at)| offset * extent + at)
}

fn viewed(view: &View, x: &[Scalar], from: &Shape, node: &Node) -> Vec<Scalar> {
    let element = |n: usize| -> Scalar {
        let at = position(&node.shape, n);
        let source: Vec<usize> = match view {
            View::Reshape => return x[n],
            View::Permute(perm) => {
                let mut source = vec![0; at.len()];
                perm.iter().zip(&at).for_each(|(&axis, &i)| source[axis] = i);
                source
            }
            View::Expand => {
                let own = &at[at.len() - from.rank()..];
                own.iter().zip(from.iter()).map(|(&i, &extent)| if extent == 1 { 0 } else { i }).collect()
            }
            View::Slice { starts, steps } => at
                .iter()
                .zip(starts.iter().zip(steps))
                .map(|(&i, (s, t))| (s + t * i as i64) as usize)
                .collect(),
            View::Pad { before, value } => {
                let inside = |axis: usize| at[axis] >= before[axis] && at[axis] < before[axis] + from[axis];
                if !(0..at.len()).all(inside) {
                    return value.cast(node.dtype.compute());
                }
                at.iter().zip(before).map(|(i, before)| i - before).collect()
            }
            View::Window { axis, stride, dilation, .. } => {
                let mut source = at[..from.rank()].to_vec();
                source[*axis] = at[*axis] * stride + at[from.rank()] * dilation;
                source
            }
        };
        x[offset(from, &source)]
    };
    (0..node.shape.elements()).map(element).collect()
}

/// For each element of the result, the elements of x along the axes.
fn rows<T: Copy>(axes: &[usize], x: &[T], from: &Shape) -> Vec<Vec<T>> {
    let to = from.without(axes);
    let mut rows = vec![Vec::new(); to.elements()];
    for (n, &value) in x.iter().enumerate() {
        let at = position(from, n);
        let kept: Vec<usize> =
            (0..at.len()).filter(|axis| !axes.contains(axis)).map(|axis| at[axis]).collect();
        rows[offset(&to, &kept)].push(value);
    }
    rows
}

fn reduced(op: ReduceOp, axes: &[usize], x: &[Scalar], from: &Shape, dtype: DType) -> Vec<Scalar> {
    let reduce = |row: Vec<Scalar>| match op {
        // By their definitions, not in one pass.
        ReduceOp::SquaredDeviations => {
            let values: Vec<f64> = row.iter().map(|x| x.as_f64()).collect();
            Scalar::from_f64(dtype, squared_deviations(&values))
        }
        ReduceOp::SumExp => {
            let max = ReduceOp::Max.fold(dtype, row.iter().copied());
            ReduceOp::Sum.fold(dtype, row.iter().map(|x| unary(UnaryOp::Exp, binary(BinaryOp::Sub, *x, max))))
        }
        op => op.fold(dtype, row),
    };
    rows(axes, x, from).into_iter().map(reduce).collect()
}

fn squared_deviations(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    // `Iterator::sum` starts at -0.
    values.iter().fold(0.0, |sum, x| sum + (x - mean) * (x - mean))
}
