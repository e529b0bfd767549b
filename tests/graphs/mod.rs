//! Graphs of random operations: what a recipe says is recorded, at any size.

#![allow(dead_code, reason = "each target uses its own part")]
#![allow(clippy::unwrap_used)] // A failed assumption stops the test.

use std::ops::RangeInclusive;

use lazuli::{DType, Device, Pool2d, Tensor};
use proptest::prelude::*;

use crate::common::data::{floats, ordinary};

/// One operation. The numbers choose its operands, among the tensors so far from the newest on, and its parameters;
/// whatever they are, they mean something.
#[derive(Clone, Copy, Debug)]
pub struct Step<Op> {
    pub op: Op,
    pub operands: [usize; 3],
    pub parameter: usize,
}

/// A graph: what is recorded, and which tensors besides the last are results.
#[derive(Clone, Debug)]
pub struct Recipe<Op> {
    pub steps: Vec<Step<Op>>,
    pub outputs: Vec<usize>,
}

/// Recipes of so many operations.
pub fn recipes<Op: Clone + std::fmt::Debug + 'static>(
    ops: Vec<Op>,
    steps: RangeInclusive<usize>,
) -> impl Strategy<Value = Recipe<Op>> {
    let step = (prop::sample::select(ops), prop::array::uniform3(0usize..12), 0usize..1000)
        .prop_map(|(op, operands, parameter)| Step { op, operands, parameter });
    (prop::collection::vec(step, steps), prop::collection::vec(0usize..25, 0..3))
        .prop_map(|(steps, outputs)| Recipe { steps, outputs })
}

/// Of the tensors so far, the one that is meant.
pub fn pick<T: Clone>(tensors: &[T], which: usize) -> T {
    tensors[tensors.len() - 1 - which % tensors.len()].clone()
}

/// The extents.
pub fn shape_of(x: &Tensor) -> Vec<usize> {
    x.shape().unwrap().to_vec()
}

/// A view of `x`, chosen by a number.
pub fn viewed(x: &Tensor, parameter: usize) -> Tensor {
    let shape = shape_of(x);
    let rank = shape.len() as isize;
    let (kind, rest) = (parameter % 12, parameter / 12);
    if rank == 0 {
        return x.expand([1 + rest % 5]);
    }
    let axis = (rest as isize) % rank;
    match kind {
        0 => x.transpose(axis, -1),
        1 => x.permute((0..rank).rev().collect::<Vec<_>>()),
        2 => x.flip(axis),
        3 => x.slice(axis, 1..),
        4 => x.slice_step(axis, None, None, if rest % 2 == 0 { 2 } else { -2 }),
        5 => {
            let border: Vec<(usize, usize)> =
                (0..shape.len()).map(|a| if a == axis as usize { (1, rest % 3) } else { (0, 0) }).collect();
            x.pad(&border, (rest % 4) as i64)
        }
        6 => x.flatten(..),
        7 => x.unsqueeze(axis),
        8 => x
            .unsqueeze(axis)
            .expand(&*[&shape[..axis as usize], &[1 + rest % 3], &shape[axis as usize..]].concat()),
        9 => x.unfold(axis, 2, 1 + rest % 2),
        10 => x.select(axis, -1),
        _ => {
            // The extents in another order: the elements stay in row-major order.
            let mut rotated = shape.clone();
            rotated.rotate_left(1);
            x.reshape(rotated)
        }
    }
}

/// A tensor that broadcasts with `x`: `y`, or what is left of it, if there would be more than `most` elements.
pub fn fitted(x: &Tensor, y: &Tensor, most: usize) -> Tensor {
    let (shape, other) = (x.shape().unwrap(), y.shape().unwrap());
    match shape.broadcast(&other) {
        Some(together) if together.elements() <= most => y.clone(),
        _ if other.elements() == 0 => x.clone(),
        _ => y.flatten(..).slice(0, ..1).squeeze(..),
    }
}

/// Whether a result has at most so many elements.
pub fn is_recordable(x: &Tensor, most: usize) -> bool {
    x.shape().is_ok_and(|shape| shape.elements() <= most && shape.rank() <= 6)
}

#[derive(Clone, Copy, Debug, PartialEq)]
/// Operations of bounded slope.
pub enum Smooth {
    Sin,
    Cos,
    Tanh,
    Sigmoid,
    Erf,
    Gelu,
    Silu,
    Relu,
    Abs,
    Exp,
    Log,
    Sqrt,
    Scale,
    Add,
    Sub,
    Mul,
    Div,
    Maximum,
    Where,
    View,
    Mean,
    Sum,
    Max,
    Var,
    Softmax,
    LayerNorm,
    AvgPool,
}

/// Operations to choose from.
pub const SMOOTH_OPS: [Smooth; 29] = [
    Smooth::Sin,
    Smooth::Cos,
    Smooth::Tanh,
    Smooth::Sigmoid,
    Smooth::Erf,
    Smooth::Gelu,
    Smooth::Silu,
    Smooth::Relu,
    Smooth::Abs,
    Smooth::Exp,
    Smooth::Log,
    Smooth::Sqrt,
    Smooth::Scale,
    Smooth::Add,
    Smooth::Sub,
    Smooth::Mul,
    Smooth::Div,
    Smooth::Maximum,
    Smooth::Where,
    Smooth::View,
    Smooth::View,
    Smooth::View,
    Smooth::Mean,
    Smooth::Sum,
    Smooth::Max,
    Smooth::Var,
    Smooth::Softmax,
    Smooth::LayerNorm,
    Smooth::AvgPool,
];

impl Smooth {
    /// Whether the order of additions matters, which the schedule decides.
    pub fn is_ordered(self) -> bool {
        use Smooth::*;
        matches!(self, Mean | Sum | Max | Var | Softmax | LayerNorm | AvgPool)
    }
}

/// What graphs of [`Smooth`] operations start from.
pub struct SmoothInputs {
    pub floats: Vec<Tensor>,
    pub mask: Tensor,
    /// Results with more elements are not recorded.
    pub most: usize,
}

impl SmoothInputs {
    /// Tensors of shapes that broadcast.
    pub fn new(device: &Device, dtype: DType, [a, b, c]: [usize; 3], most: usize) -> SmoothInputs {
        SmoothInputs {
            floats: vec![
                floats(device, dtype, [b, c], 2.0, 1),
                floats(device, dtype, [b, 1], 2.0, 2),
                floats(device, dtype, [a, b, c], 2.0, 3),
            ],
            mask: ordinary(device, DType::Bool, [b, c], 4),
            most,
        }
    }
}

/// Every operation keeps values within a few units and errors within a few times their size.
pub fn smooth_tensors(inputs: &SmoothInputs, recipe: &Recipe<Smooth>) -> Vec<Tensor> {
    let SmoothInputs { floats, mask, most } = inputs;
    let most = *most;
    let mut tensors = floats.clone();
    for &Step { op, operands, parameter } in &recipe.steps {
        let x = pick(&tensors, operands[0]);
        let y = fitted(&x, &pick(&tensors, operands[1]), most);
        let shape = shape_of(&x);
        if shape.contains(&0) {
            tensors.push(x.sum(..));
            continue;
        }
        let rank = shape.len() as isize;
        let axis = if rank > 0 { parameter as isize % rank } else { 0 };
        let result = match op {
            Smooth::Sin => x.sin(),
            Smooth::Cos => x.cos(),
            Smooth::Tanh => x.tanh(),
            Smooth::Sigmoid => x.sigmoid(),
            Smooth::Erf => x.erf(),
            Smooth::Gelu => x.gelu(),
            Smooth::Silu => x.silu(),
            Smooth::Relu => x.relu(),
            Smooth::Abs => x.abs(),
            Smooth::Exp => x.minimum(1.0).exp(),
            Smooth::Log => (x.square() + 1.0).log(),
            Smooth::Sqrt => (x.square() + 1.0).sqrt(),
            Smooth::Scale => &x * ((parameter % 4) as f64 * 0.3) + 0.1,
            Smooth::Add => (&x + &y) * 0.5,
            Smooth::Sub => (&x - &y) * 0.5,
            Smooth::Mul => x.tanh() * y.tanh(),
            Smooth::Div => &x / (y.abs() + 1.0),
            Smooth::Maximum => x.maximum(&y),
            Smooth::Where => fitted(&x, mask, most).where_(&x, &y),
            Smooth::View => viewed(&x, parameter),
            Smooth::Mean if rank > 0 => x.mean_keepdim(axis),
            Smooth::Sum if rank > 0 => x.sum(axis) * (1.0 / shape[axis as usize] as f64),
            Smooth::Max if rank > 0 => x.max(axis),
            Smooth::Var if rank > 0 => x.tanh().var_keepdim(axis, 0),
            Smooth::Softmax if rank > 0 => x.softmax(axis),
            Smooth::LayerNorm if rank > 0 => x.layer_norm([shape[shape.len() - 1]], None, None, 1.0),
            Smooth::AvgPool if rank > 1 => x.avg_pool2d_with(Pool2d::new(2).stride(1).padding(1)),
            _ => x.mean(..),
        };
        if is_recordable(&result, most) {
            tensors.push(result);
        }
    }
    let mut outputs = vec![tensors[tensors.len() - 1].clone()];
    outputs.extend(recipe.outputs.iter().map(|&which| pick(&tensors, which)));
    outputs
}
