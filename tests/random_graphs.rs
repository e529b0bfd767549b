//! Random graphs, fused and unfused, against the reference interpreter, with shrinking.
//!
//! - `exact_graphs`: every dtype, casts, comparisons, selections, views, reductions and pooling over small multiples of
//!   1/4, with intermediates that are results too. The magnitudes are kept where every dtype computes exactly, in any order
//!   of summation: all results must be the interpreter's to the last bit.
//! - `exact_graphs_of_rows`: the same, of axes that several threads share.
//! - `smooth_graphs`: approximated functions, quotients, means, variances, softmax and layer norm in `F32`, of bounded
//!   slope: near the interpreter's results. Without reductions, fused and unfused agree to the last bit.
//! - `smooth_graphs_of_16_bits`: the same in `F16` and `BF16`, loosely.
//!
//! The graphs are the same on every run. `LAZULI_RANDOM_CASES=1000` tries more of them, the first of which are those. All
//! run in the interpreter of kernels; one in [`COMPILED`], which its own text chooses, is also compiled, and so is all that
//! shrinking tries. In the full matrix every one is compiled.

#![allow(clippy::reversed_empty_ranges, reason = "a slice to -1 ends before the last, as in Python")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;
mod graphs;

use common::data::ordinary;
use common::matrix::is_full_matrix;
use common::{EVERYTHING, Output, Scope, differences, exact, near};
use graphs::{
    Recipe, SMOOTH_OPS, Smooth, SmoothInputs, Step, fitted, is_recordable, pick, recipes, shape_of,
    smooth_tensors, viewed,
};
use lazuli::{DType, Device, Pool2d, ScanOrder, ScatterReduction, Tensor};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Unfused on the CPU alone: there are many graphs.
const SCOPE: Scope = Scope { unfused: false, ..EVERYTHING };

/// Of so many graphs, one is compiled.
const COMPILED: u8 = 5;

/// Results with more elements are not recorded.
const MOST_ELEMENTS: usize = 3000;

fn run<Op: Clone + std::fmt::Debug + 'static>(
    ops: &[Op],
    seed: u8,
    test: impl Fn(&Recipe<Op>, Scope) -> String,
) {
    let cases = std::env::var("LAZULI_RANDOM_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let has_failed = std::cell::Cell::new(false);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let result = TestRunner::new_with_rng(config, rng).run(&recipes(ops.to_vec(), 10..=25), |recipe| {
        let chosen = blake3::hash(format!("{recipe:?}").as_bytes()).as_bytes()[0].is_multiple_of(COMPILED);
        let is_compiled = chosen || has_failed.get() || is_full_matrix();
        let scope = if is_compiled { SCOPE } else { SCOPE.interpreted() };
        match test(&recipe, scope) {
            report if report.is_empty() => Ok(()),
            report => {
                has_failed.set(true);
                Err(TestCaseError::fail(report))
            }
        }
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Elements of `x` at positions that `y`, or their own place, says.
fn gathered(x: &Tensor, y: &Tensor, parameter: usize) -> Tensor {
    let shape = shape_of(x);
    let axis = parameter % shape.len().max(1);
    if shape.contains(&0) || shape.is_empty() {
        return x.clone();
    }
    let extent = shape[axis] as i64;
    let index = match parameter / 8 % 2 {
        0 => Tensor::arange(0, 1 + parameter as i64 % 11, 1) * 5,
        _ => y.flatten(..).cast(DType::I32) + parameter as i64,
    };
    let index = index.remainder(extent);
    let at = y.cast(DType::I64).remainder(extent);
    match parameter / 16 % 3 {
        0 => x.index_select(axis as isize, &index),
        1 if shape_of(y) == shape => x.gather(axis as isize, &at),
        1 => x.take(&(y.cast(DType::I64).remainder(x.shape().unwrap().elements() as i64))),
        _ => x.take_along_axis(&x.argmax_keepdim(axis as isize), axis as isize),
    }
}

/// Elements of `x` combined with those of `x` or `y` at positions that `y`, or their own place, says.
fn scattered(x: &Tensor, y: &Tensor, parameter: usize) -> Tensor {
    let shape = shape_of(x);
    let axis = parameter % shape.len().max(1);
    if shape.contains(&0) || shape.is_empty() || x.dtype().unwrap() == DType::Bool {
        return x.clone();
    }
    let (along, extent) = (axis as isize, shape[axis] as i64);
    match parameter / 8 % 4 {
        0 => x.index_add(along, &(Tensor::arange(0, extent, 1) * 3).remainder(extent), x),
        1 if shape_of(y) == shape => {
            let index = y.cast(DType::I64).remainder(extent);
            x.scatter_reduce(along, &index, x, ScatterReduction::Amax, (parameter / 32).is_multiple_of(2))
        }
        2 => y.flatten(..).cast(DType::I64).remainder(7).bincount(7 + parameter),
        _ => {
            let index = x.cast(DType::I32).remainder(extent);
            let source = if shape_of(y) == shape { y.cast(x.dtype().unwrap()) } else { x.clone() };
            x.scatter_add(along, &index, &source)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Exact {
    Add,
    Sub,
    Mul,
    Maximum,
    Minimum,
    Remainder,
    Neg,
    Abs,
    Relu,
    Floor,
    Where,
    Compare,
    AddNumber,
    Cast,
    View,
    Sum,
    Max,
    Min,
    Any,
    MaxPool,
    AvgPool,
    Random,
    Gather,
    Scan,
    Join,
    Rearrange,
    Position,
    Assign,
    Scatter,
    Sort,
    Product,
}

const EXACT_OPS: [Exact; 38] = [
    Exact::Add,
    Exact::Sub,
    Exact::Mul,
    Exact::Maximum,
    Exact::Minimum,
    Exact::Remainder,
    Exact::Neg,
    Exact::Abs,
    Exact::Relu,
    Exact::Floor,
    Exact::Where,
    Exact::Compare,
    Exact::AddNumber,
    Exact::Cast,
    Exact::View,
    Exact::View,
    Exact::View,
    Exact::Sum,
    Exact::Max,
    Exact::Min,
    Exact::Any,
    Exact::MaxPool,
    Exact::AvgPool,
    Exact::Random,
    Exact::Gather,
    Exact::Gather,
    Exact::Scan,
    Exact::Scan,
    Exact::Join,
    Exact::Rearrange,
    Exact::Position,
    Exact::Assign,
    Exact::Scatter,
    Exact::Scatter,
    Exact::Sort,
    Exact::Sort,
    Exact::Product,
    Exact::Product,
];

/// Back to multiples of 1/4 of at most 4: exact in every dtype, and so are their products.
fn tame(x: &Tensor) -> Tensor {
    match x.dtype().unwrap() {
        DType::Bool => x.clone(),
        DType::U8 | DType::U32 => x.minimum(4),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => x.clamp(-4, 4),
        // The limit first: what lies within it was exact before.
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => (x.clamp(-4, 4) * 4).floor() / 4,
    }
}

/// The running result along an axis, in one order or another.
fn scanned(x: &Tensor, axis: isize, parameter: usize) -> Tensor {
    let order = match parameter / 4 % 4 {
        0 | 1 => ScanOrder::new(),
        2 => ScanOrder::new().reverse(),
        _ => ScanOrder::new().exclusive(),
    };
    match parameter % 4 {
        0 => x.cummax(axis),
        1 => x.cummin_with(axis, if parameter / 4 % 4 == 2 { order } else { ScanOrder::new() }),
        _ => x.cumsum_with(axis, order),
    }
}

/// The elements in other places, some of them several times.
fn rearranged(x: &Tensor, axis: isize, parameter: usize) -> Tensor {
    match parameter % 6 {
        0 => x.roll(1 + parameter as isize % 3, axis),
        1 => x.repeat_interleave(2, axis),
        2 => Tensor::cat(&[x, x], axis),
        3 if shape_of(x).len() > 1 => x.tril(parameter as isize % 3 - 1),
        4 => x.flip(axis),
        _ => x.swapaxes(axis, 0),
    }
}

/// Rows in order, or what follows from it.
fn sorted(x: &Tensor, axis: isize, parameter: usize) -> Tensor {
    let extent = shape_of(x)[axis as usize];
    let is_descending = (parameter / 8).is_multiple_of(2);
    match parameter % 5 {
        0 => x.sort(axis, is_descending).0,
        1 => x.argsort(axis, is_descending),
        2 => x.topk(extent.min(2), axis, is_descending).0,
        3 if extent > 0 => x.median(axis).0,
        _ => {
            let (values, positions) = x.topk(extent - extent / 2, axis, is_descending);
            values.gt(0).where_(positions, -1)
        }
    }
}

/// Sums of products of `x` and a part of `y` or itself, or what else two rows are combined to: small enough to be exact in any
/// order.
fn product(x: &Tensor, y: &Tensor, parameter: usize) -> Tensor {
    let (shape, elements) = (shape_of(x), x.shape().unwrap().elements());
    let depth = shape.last().copied().unwrap_or(0);
    if depth == 0 || elements == 0 {
        return x.clone();
    }
    let other = y.flatten(..).cast(x.dtype().unwrap());
    let rows = (shape_of(&other)[0] / depth).min(7);
    // What two rows have between them.
    let (lines, few) = (elements / depth, elements / depth * elements <= 1 << 16);
    let pairs = || (x.reshape([lines, 1, depth]), x.reshape([1, lines, depth]));
    match parameter % 7 {
        4 if few => {
            let (a, b) = pairs();
            (a - b).abs().sum(-1).cast(x.dtype().unwrap())
        }
        5 if few => {
            let (a, b) = pairs();
            (a + b).min(-1)
        }
        6 if few => {
            let (a, b) = pairs();
            a.minimum(&b).max(-1) + a.eq(&b).sum(-1).cast(x.dtype().unwrap())
        }
        0 if shape.len() > 1 => x.matmul(&x.transpose(-1, -2)),
        1 if depth > 1 => {
            let lines = x.reshape([1, elements / depth, depth]);
            lines.conv1d(&lines.slice(2, ..2), None, 1 + parameter / 4 % 2, 1)
        }
        2 if shape.len() == 2 => Tensor::einsum("ij,ik->jk", &[x, &x.flip(1)]),
        _ if rows > 0 => x.linear(&other.slice(0, ..(rows * depth) as isize).reshape([rows, depth]), None),
        _ => x.clone(),
    }
}

/// One operation. Each is exact on tame operands.
fn exact_step(op: Exact, parameter: usize, [x, y, z]: [&Tensor; 3]) -> Tensor {
    let rank = shape_of(x).len() as isize;
    let axes: Vec<isize> = (0..rank).filter(|axis| parameter >> axis & 1 == 1).collect();
    let is_empty = x.shape().unwrap().elements() == 0;
    let axis = if rank > 0 { parameter as isize / 16 % rank } else { 0 };
    let pool = || match parameter % 4 {
        0 => Pool2d::new(2),
        1 => Pool2d::new((1, 2)).stride(1),
        2 => Pool2d::new(2).stride(1).padding(1),
        _ => Pool2d::new((2, 1)).dilation(2),
    };
    match op {
        Exact::Add => x.add(y),
        Exact::Sub => x.sub(y),
        Exact::Mul => x.mul(y),
        Exact::Maximum => x.maximum(y),
        Exact::Minimum => x.minimum(y),
        Exact::Remainder => x.remainder(y),
        Exact::Neg => x.neg(),
        Exact::Abs => x.abs(),
        Exact::Relu => x.relu(),
        Exact::Floor => x.floor(),
        Exact::Where => z.gt(1).where_(x, y),
        Exact::Compare => match parameter % 3 {
            0 => x.lt(y),
            1 => x.eq(y),
            _ => x.ge(1),
        },
        Exact::AddNumber => x.add((parameter % 5) as f64 * 0.25),
        Exact::Cast => x.cast(DType::ALL[parameter % 8]),
        Exact::View => viewed(x, parameter),
        Exact::Sum => x.sum(&axes),
        Exact::Max if !is_empty => x.max_keepdim(&axes),
        Exact::Min if !is_empty => x.min(&axes),
        Exact::Any => x.any(&axes),
        Exact::MaxPool => x.max_pool2d_with(pool()),
        Exact::AvgPool => x.avg_pool2d_with(pool()),
        Exact::Random => Tensor::rand(x.shape().unwrap(), parameter as u64).lt(0.5).where_(x, y),
        Exact::Gather => gathered(x, y, parameter),
        Exact::Scatter => scattered(x, y, parameter),
        Exact::Sort if rank > 0 => sorted(x, axis, parameter),
        Exact::Product => product(x, y, parameter),
        Exact::Scan if rank > 0 => scanned(x, axis, parameter),
        Exact::Join if parameter.is_multiple_of(2) => Tensor::stack(&[x, &(x + y - y), &(x * 2)], axis),
        Exact::Join if rank > 0 => Tensor::cat(&[x, &x.abs(), &x.narrow(axis, 0, 1)], axis),
        Exact::Rearrange if rank > 0 => rearranged(x, axis, parameter),
        Exact::Position if !is_empty => x.argmax_keepdim(&axes),
        Exact::Assign if rank > 0 && !is_empty => {
            x.slice_scatter(axis, &(x.narrow(axis, 0, 1) + 1).cast(x.dtype().unwrap()), 0, 1, 1)
        }
        Exact::Max
        | Exact::Min
        | Exact::Scan
        | Exact::Sort
        | Exact::Join
        | Exact::Rearrange
        | Exact::Position
        | Exact::Assign => x.clone(),
    }
}

/// The tensors of a recipe. Each is tame, so that every operation on two of them is exact.
fn exact_tensors(device: &Device, [a, b, c]: [usize; 3], recipe: &Recipe<Exact>) -> Vec<Tensor> {
    let mut tensors: Vec<Tensor> = [
        ordinary(device, DType::I64, [b, c], 1),
        ordinary(device, DType::F16, [a, b, c], 2),
        ordinary(device, DType::F32, [b, 1], 3),
        ordinary(device, DType::F32, [a, b, c], 4),
    ]
    .iter()
    .map(tame)
    .collect();
    let mut raw = Vec::new();
    for &Step { op, operands, parameter } in &recipe.steps {
        let x = pick(&tensors, operands[0]);
        let y = fitted(&x, &pick(&tensors, operands[1]), MOST_ELEMENTS);
        let z = fitted(&x, &pick(&tensors, operands[2]), MOST_ELEMENTS);
        let result = exact_step(op, parameter, [&x, &y, &z]);
        if is_recordable(&result, MOST_ELEMENTS) {
            tensors.push(tame(&result));
            raw.push(result);
        }
    }
    // The last is always asked for; others, as they came and tamed, by choice.
    let mut outputs = vec![tensors[tensors.len() - 1].clone()];
    for &which in &recipe.outputs {
        outputs.push(if which % 2 == 0 && !raw.is_empty() {
            pick(&raw, which)
        } else {
            pick(&tensors, which)
        });
    }
    outputs
}

fn exact_graph(shape: [usize; 3], recipe: &Recipe<Exact>, scope: Scope) -> String {
    differences("exact graph", scope, |device| {
        let outputs = exact_tensors(device, shape, recipe);
        outputs.into_iter().enumerate().map(|(i, tensor)| exact(format!("output {i}"), tensor)).collect()
    })
}

#[test]
fn exact_graphs() {
    run(&EXACT_OPS, 1, |recipe, scope| exact_graph([4, 6, 5], recipe, scope));
}

#[test]
fn exact_graphs_of_rows() {
    run(&EXACT_OPS, 6, |recipe, scope| exact_graph([3, 12, 40], recipe, scope));
}

fn smooth(
    dtype: DType,
    recipe: &Recipe<Smooth>,
    scope: Scope,
    output: impl Fn(String, Tensor) -> Output,
) -> String {
    differences("smooth graph", scope, |device| {
        let inputs = SmoothInputs::new(device, dtype, [4, 6, 5], MOST_ELEMENTS);
        let outputs = smooth_tensors(&inputs, recipe);
        outputs.into_iter().enumerate().map(|(i, tensor)| output(format!("output {i}"), tensor)).collect()
    })
}

#[test]
fn smooth_graphs() {
    run(&SMOOTH_OPS, 2, |recipe, scope| {
        smooth(DType::F32, recipe, scope, |label, x| near(label, x, 1e-4, 1e-4))
    });
}

#[test]
fn elementwise_graphs_fuse_without_a_trace() {
    let ops: Vec<Smooth> = SMOOTH_OPS.into_iter().filter(|op| !op.is_ordered()).collect();
    run(&ops, 3, |recipe, scope| {
        smooth(DType::F32, recipe, scope, |label, x| near(label, x, 1e-4, 1e-4).same_unfused())
    });
}

#[test]
fn smooth_graphs_of_16_bits() {
    run(&SMOOTH_OPS, 4, |recipe, scope| {
        smooth(DType::F16, recipe, scope, |label, x| near(label, x, 0.02, 0.02))
    });
    run(&SMOOTH_OPS, 5, |recipe, scope| {
        smooth(DType::BF16, recipe, scope, |label, x| near(label, x, 0.1, 0.1))
    });
}
