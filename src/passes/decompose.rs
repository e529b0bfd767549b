//! Composites become primitives; each keeps the composite's origin and location. The formulas are
//! PyTorch's. On the 16-bit floats all but max pooling is computed in f32 and rounded once at the end,
//! so that a sum that is stored on its way to a division neither overflows nor loses digits.

use smallvec::SmallVec;

use crate::graph::op::{Axes, Composite, Constant, ConstantRole, Op, Pool2d, View};
use crate::graph::{Graph, Node, NodeId};
use crate::{BinaryOp, DType, ReduceOp, Scalar, Shape, UnaryOp};

pub(super) fn run(graph: &Graph) -> Option<Graph> {
    let composite = |node: &Node| matches!(node.op, Op::Composite(_));
    if !graph.nodes().any(|id| composite(graph.node(id))) {
        return None;
    }
    Some(graph.rewrite(|result, node, operands| match (&node.op, operands) {
        (Op::Composite(composite), &[x]) => Recipe { graph: result, node }.composite(composite, x),
        _ => result.add(node.clone(), operands),
    }))
}

/// Adds the primitives of one composite.
struct Recipe<'a> {
    graph: &'a mut Graph,
    node: &'a Node,
}

impl Recipe<'_> {
    fn composite(&mut self, composite: &Composite, x: NodeId) -> NodeId {
        let exact_in_16_bits = matches!(composite, Composite::MaxPool2d(_));
        let dtype = self.node.dtype;
        if exact_in_16_bits || dtype.compute() == dtype {
            return self.primitives(composite, x);
        }
        let wide = self.cast(x, dtype.compute());
        let result = self.primitives(composite, wide);
        self.cast(result, dtype)
    }

    fn primitives(&mut self, composite: &Composite, x: NodeId) -> NodeId {
        match composite {
            Composite::Mean { axes } => self.mean(x, axes),
            Composite::Var { axes, correction } => {
                let deviations = self.reduce(ReduceOp::SquaredDeviations, x, axes);
                self.divided(deviations, self.count(x, axes).saturating_sub(*correction))
            }
            Composite::Sigmoid => {
                let denominator = self.one_plus_exp_neg(x);
                self.unary(UnaryOp::Reciprocal, denominator)
            }
            Composite::Silu => {
                let denominator = self.one_plus_exp_neg(x);
                self.binary(BinaryOp::Div, x, denominator)
            }
            Composite::Gelu => {
                let scaled = self.scaled(x, std::f64::consts::FRAC_1_SQRT_2);
                let erf = self.unary(UnaryOp::Erf, scaled);
                self.half_times_one_plus(x, erf)
            }
            Composite::GeluTanh => {
                let square = self.unary(UnaryOp::Square, x);
                let cube = self.binary(BinaryOp::Mul, square, x);
                let correction = self.scaled(cube, 0.044715);
                let sum = self.binary(BinaryOp::Add, x, correction);
                let inner = self.scaled(sum, (2.0 / std::f64::consts::PI).sqrt());
                let tanh = self.unary(UnaryOp::Tanh, inner);
                self.half_times_one_plus(x, tanh)
            }
            Composite::Softmax { axis } => self.softmax(x, &Axes::from_slice(&[*axis])),
            Composite::LayerNorm { dims, eps_bits } => {
                let rank = self.shape(x).rank();
                self.layer_norm(x, &(rank - dims..rank).collect(), f64::from_bits(*eps_bits))
            }
            Composite::MaxPool2d(pool) => {
                let windows = self.windows(x, pool, least(self.dtype(x)));
                self.reduce_windows(ReduceOp::Max, windows)
            }
            Composite::AvgPool2d(pool) => {
                let windows = self.windows(x, pool, Scalar::from_f64(self.dtype(x), 0.0));
                let sum = self.reduce_windows(ReduceOp::Sum, windows);
                let area = self.literal((pool.kernel[0] * pool.kernel[1]) as f64, sum);
                self.binary(BinaryOp::Div, sum, area)
            }
        }
    }

    fn mean(&mut self, x: NodeId, axes: &Axes) -> NodeId {
        let sum = self.reduce(ReduceOp::Sum, x, axes);
        self.divided(sum, self.count(x, axes))
    }

    /// By a number that follows from the shape, perhaps from the batch size: another one is not
    /// another kernel.
    fn divided(&mut self, x: NodeId, count: usize) -> NodeId {
        let value = Scalar::from_i64(self.dtype(x), i64::try_from(count).unwrap_or(i64::MAX));
        let count = self.constant(value, ConstantRole::Argument, x);
        self.binary(BinaryOp::Div, x, count)
    }

    fn one_plus_exp_neg(&mut self, x: NodeId) -> NodeId {
        let neg = self.unary(UnaryOp::Neg, x);
        let exp = self.unary(UnaryOp::Exp, neg);
        let one = self.literal(1.0, exp);
        self.binary(BinaryOp::Add, exp, one)
    }

    /// `x / 2 * (1 + y)`, in this order.
    fn half_times_one_plus(&mut self, x: NodeId, y: NodeId) -> NodeId {
        let half = self.scaled(x, 0.5);
        let one = self.literal(1.0, y);
        let sum = self.binary(BinaryOp::Add, y, one);
        self.binary(BinaryOp::Mul, half, sum)
    }

    fn scaled(&mut self, x: NodeId, factor: f64) -> NodeId {
        let factor = self.literal(factor, x);
        self.binary(BinaryOp::Mul, x, factor)
    }

    fn softmax(&mut self, x: NodeId, axes: &Axes) -> NodeId {
        if self.shape(x).elements() == 0 {
            return x; // There is no largest of nothing, and nothing to compute.
        }
        let max = self.reduce(ReduceOp::Max, x, axes);
        let max = self.spread(max, axes, x);
        let shifted = self.binary(BinaryOp::Sub, x, max);
        let exp = self.unary(UnaryOp::Exp, shifted);
        // One division a row: the sum is between 1 and the number of elements, or NaN.
        let sum = self.reduce(ReduceOp::Sum, exp, axes);
        let scale = self.unary(UnaryOp::Reciprocal, sum);
        let scale = self.spread(scale, axes, x);
        self.binary(BinaryOp::Mul, exp, scale)
    }

    fn layer_norm(&mut self, x: NodeId, axes: &Axes, eps: f64) -> NodeId {
        let mean = self.mean(x, axes);
        let deviations = self.reduce(ReduceOp::SquaredDeviations, x, axes);
        let variance = self.divided(deviations, self.count(x, axes));
        let eps = Scalar::from_f64(self.dtype(x), eps);
        let eps = self.constant(eps, ConstantRole::Argument, variance);
        let sum = self.binary(BinaryOp::Add, variance, eps);
        let scale = self.unary(UnaryOp::Rsqrt, sum);
        let mean = self.spread(mean, axes, x);
        let scale = self.spread(scale, axes, x);
        let centred = self.binary(BinaryOp::Sub, x, mean);
        self.binary(BinaryOp::Mul, centred, scale)
    }

    /// All windows of the last two dimensions, as two new last dimensions.
    fn windows(&mut self, x: NodeId, pool: &Pool2d, edge: Scalar) -> NodeId {
        let mut shape = self.shape(x).to_vec();
        let height = shape.len() - 2;
        let mut result = x;
        if pool.padding != [0, 0] {
            let mut before: SmallVec<[usize; 6]> = SmallVec::from_elem(0, shape.len());
            for d in 0..2 {
                before[height + d] = pool.padding[d];
                shape[height + d] += 2 * pool.padding[d];
            }
            result = self.view(View::Pad { before, value: edge }, result, &shape);
        }
        for d in 0..2 {
            let axis = height + d;
            let (size, stride, dilation) = (pool.kernel[d], pool.stride[d], pool.dilation[d]);
            shape[axis] = self.node.shape[axis];
            shape.push(size);
            result = self.view(View::Window { axis, size, stride, dilation }, result, &shape);
        }
        result
    }

    fn reduce_windows(&mut self, op: ReduceOp, windows: NodeId) -> NodeId {
        let rank = self.shape(windows).rank();
        self.reduce(op, windows, &Axes::from_slice(&[rank - 2, rank - 1]))
    }

    /// A reduced value at each element that it was reduced from.
    fn spread(&mut self, reduced: NodeId, axes: &Axes, like: NodeId) -> NodeId {
        let shape = self.shape(like).clone();
        let kept: Shape = shape
            .iter()
            .enumerate()
            .map(|(axis, &extent)| if axes.contains(&axis) { 1 } else { extent })
            .collect();
        let kept = self.view(View::Reshape, reduced, &kept);
        self.view(View::Expand, kept, &shape)
    }

    fn count(&self, x: NodeId, axes: &Axes) -> usize {
        axes.iter().fold(1, |count: usize, &axis| count.saturating_mul(self.shape(x)[axis]))
    }

    /// A number that belongs to the composite's definition.
    fn literal(&mut self, value: f64, like: NodeId) -> NodeId {
        let value = Scalar::from_f64(self.dtype(like), value);
        self.constant(value, ConstantRole::Literal, like)
    }

    fn constant(&mut self, value: Scalar, role: ConstantRole, like: NodeId) -> NodeId {
        let shape = self.shape(like).clone();
        let constant = self.add(Op::Constant(Constant { value, role }), &[], Shape::scalar(), value.dtype());
        if shape.rank() == 0 { constant } else { self.view(View::Expand, constant, &shape) }
    }

    fn unary(&mut self, op: UnaryOp, x: NodeId) -> NodeId {
        self.add(Op::Unary(op), &[x], self.shape(x).clone(), self.dtype(x))
    }

    fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.add(Op::Binary(op), &[a, b], self.shape(a).clone(), self.dtype(a))
    }

    fn cast(&mut self, x: NodeId, dtype: DType) -> NodeId {
        self.add(Op::Cast, &[x], self.shape(x).clone(), dtype)
    }

    fn view(&mut self, view: View, x: NodeId, shape: &[usize]) -> NodeId {
        self.add(Op::View(view), &[x], Shape::from(shape), self.dtype(x))
    }

    fn reduce(&mut self, op: ReduceOp, x: NodeId, axes: &Axes) -> NodeId {
        self.add(Op::Reduce { op, axes: axes.clone() }, &[x], self.shape(x).without(axes), self.dtype(x))
    }

    fn add(&mut self, op: Op, operands: &[NodeId], shape: Shape, dtype: DType) -> NodeId {
        let (origin, location) = (self.node.origin, self.node.location);
        self.graph.add(Node { op, shape, dtype, origin, location }, operands)
    }

    fn shape(&self, id: NodeId) -> &Shape {
        &self.graph.node(id).shape
    }

    fn dtype(&self, id: NodeId) -> DType {
        self.graph.node(id).dtype
    }
}

/// What is never larger than any other value.
fn least(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::from_bool(false),
        // Saturates: the least integer.
        _ => Scalar::from_f64(dtype, f64::NEG_INFINITY),
    }
}
