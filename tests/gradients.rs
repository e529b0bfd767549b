//! Gradients against finite differences: of every row of the table of operations.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use lazuli::operations::{self, Case, Elements, Group, Input, Operation};
use lazuli::{DType, Device, Fusion, Operand, Reduction, ScanOrder, Shape, Target, Tensor, with_fusion};

#[path = "gradients/asked.rs"]
mod asked;
#[path = "gradients/edges.rs"]
mod edges;
#[path = "gradients/jacobian.rs"]
mod jacobian;
#[path = "gradients/products.rs"]
mod products;
#[path = "gradients/resized.rs"]
mod resized;
#[path = "gradients/rules.rs"]
mod rules;
#[path = "gradients/steps.rs"]
mod steps;
#[path = "gradients/zeros.rs"]
mod zeros;

/// Operations that are constant wherever they have a slope.
const CONSTANT: &[&str] = &[
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "fix",
    "round_decimals",
    "view_dtype",
    "div_with",
    "floor_divide",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "isnan",
    "isinf",
    "isposinf",
    "isneginf",
    "signbit",
    "isfinite",
    "isclose",
    "any",
    "any_keepdim",
    "all",
    "all_keepdim",
    "nanargmin",
    "nanargmin_keepdim",
    "nanargmax",
    "nanargmax_keepdim",
    "count_nonzero",
    "count_nonzero_keepdim",
    "argmax",
    "argmax_keepdim",
    "argmin",
    "argmin_keepdim",
    "histc",
    "argsort",
    "searchsorted",
    "lexsort",
    "bucketize",
    "digitize",
    "unpackbits",
    "isin",
    "detach",
    "matrix_rank",
    "matrix_rank_with",
];

/// Operations whose gradients are meant to be others than their slopes.
const STRAIGHT_THROUGH: &[&str] = &["fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"];

/// Numbers that differ from each other, in no order: where they begin, and how far they go.
fn numbers(seed: usize, count: usize, from: f64, to: f64) -> Vec<f64> {
    let unit = |n: usize| (((n + 31 * seed + 1) as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(1.0);
    (0..count).map(|n| from + (to - from) * unit(n)).collect()
}

/// Where the elements of inputs are that may have any: some operations take positive numbers, some those below or above 1.
const RANGES: [(f64, f64); 3] = [(-1.9, 2.1), (0.1, 0.9), (1.1, 1.9)];

fn elements(input: &Input, seed: usize, shape: &Shape, (from, to): (f64, f64)) -> Vec<f64> {
    match input.elements {
        Elements::Special | Elements::Small => numbers(seed, shape.elements(), from, to),
        Elements::Unit => numbers(seed, shape.elements(), 0.05, 0.95),
        Elements::Below(end) => (0..shape.elements()).map(|n| ((n * 2 + seed) as i64 % end) as f64).collect(),
    }
}

fn tensor(input: &Input, values: &[f64], shape: &Shape) -> Tensor {
    let dtype = match input.elements {
        Elements::Below(_) => input.dtype.unwrap_or(DType::I64),
        _ => input.dtype.unwrap_or(DType::F64),
    };
    let values: Vec<f64> = match dtype {
        DType::Bool => values.iter().map(|&x| f64::from(u8::from(x > 0.0))).collect(),
        _ => values.to_vec(),
    };
    Tensor::from_vec(values, shape.clone()).to(&Device::interpreter()).cast(dtype)
}

/// One call, with its inputs' shapes and values.
struct Call<'a> {
    operation: &'a Operation,
    case: &'a Case,
    shapes: Vec<Shape>,
    values: Vec<Vec<f64>>,
}

impl<'a> Call<'a> {
    fn new(operation: &'a Operation, case: &'a Case, range: (f64, f64)) -> Call<'a> {
        let shape = |input: &Input| input.shape.map_or(Shape::from([2, 3]), Shape::from);
        let shapes: Vec<Shape> = operation.inputs.iter().map(shape).collect();
        let values = operation.inputs.iter().zip(&shapes).enumerate();
        let values = values.map(|(seed, (input, shape))| elements(input, seed, shape, range)).collect();
        Call { operation, case, shapes, values }
    }

    fn inputs(&self, values: &[Vec<f64>]) -> Vec<Tensor> {
        let inputs = self.operation.inputs.iter().zip(values).zip(&self.shapes);
        inputs.map(|((input, values), shape)| tensor(input, values, shape)).collect()
    }

    /// The weighted sum of all float results, if there are any.
    fn loss(&self, inputs: &[Tensor]) -> Option<Tensor> {
        let results = (self.case.record)(inputs, DType::F64);
        let mut loss = None;
        for (number, result) in results.iter().enumerate() {
            let (shape, dtype) = (result.shape().unwrap(), result.dtype().unwrap());
            if !dtype.is_float() {
                continue;
            }
            let weights = numbers(number + 7, shape.elements(), 0.5, 1.5);
            let weights = Tensor::from_vec(weights, shape).to(&Device::interpreter());
            let sum = (result.cast(DType::F64) * weights).sum(..);
            loss = Some(loss.map_or(sum.clone(), |loss: Tensor| loss + sum));
        }
        loss
    }

    fn value(&self, input: usize, direction: &[f64], step: f64) -> f64 {
        let mut values = self.values.clone();
        values[input].iter_mut().zip(direction).for_each(|(x, d)| *x += step * d);
        self.loss(&self.inputs(&values)).unwrap().item::<f64>().unwrap()
    }

    /// The slope along a direction, if there is one: what steps of two sizes agree on.
    fn slope(&self, input: usize, direction: &[f64]) -> Option<f64> {
        let slope = |step: f64| {
            let ahead = self.value(input, direction, step);
            let back = self.value(input, direction, -step);
            (ahead - back) / (2.0 * step)
        };
        let (coarse, fine) = (slope(1e-4), slope(1e-5));
        let agrees = (coarse - fine).abs() <= 1e-4 * (1.0 + fine.abs());
        agrees.then_some(fine)
    }

    /// How many directions were compared.
    fn check(&self) -> Result<usize, String> {
        let mut compared = 0;
        for number in 0..self.operation.inputs.len() {
            let inputs = self.inputs(&self.values);
            if inputs[number].dtype().unwrap() != DType::F64
                || inputs[number].shape().unwrap().elements() == 0
            {
                continue;
            }
            let Some(loss) = self.loss(&inputs) else { return Ok(0) };
            let gradient = match lazuli::grad(&loss, &inputs[number]).to_vec::<f64>() {
                Ok(gradient) => gradient,
                Err(error) if error.to_string().contains("was not recorded from") => continue,
                Err(error) => return Err(error.to_string()),
            };
            for seed in 0..2 {
                let direction = numbers(40 + seed, gradient.len(), -1.0, 1.0);
                let Some(slope) = self.slope(number, &direction) else { continue };
                let along: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
                if slope.is_finite() && (along - slope).abs() > 1e-5 * (1.0 + slope.abs())
                    || along.is_nan() && !slope.is_nan()
                {
                    return Err(format!(
                        "by input {number}: {along}, finite differences say {slope}: {gradient:?}"
                    ));
                }
                compared += 1;
            }
        }
        Ok(compared)
    }
}

#[test]
fn gradients_of_all_operations_are_slopes() {
    let (mut wrong, mut constant, mut compared) = (Vec::new(), Vec::new(), 0);
    for operation in operations::all() {
        if matches!(operation.group, Group::Constructor | Group::Random)
            || !operation.accepts.accepts(DType::F64)
            || STRAIGHT_THROUGH.contains(&operation.name)
        {
            continue;
        }
        let before = compared;
        for case in operation.cases {
            // The first range in which there are slopes.
            let check = |range| Call::new(operation, case, range).check();
            let found = RANGES.iter().map(|&range| check(range)).find(|found| !matches!(found, Ok(0)));
            match found.unwrap_or(Ok(0)) {
                Ok(directions) => compared += directions,
                Err(error) => wrong.push(format!("{}: {error}", case.rust)),
            }
        }
        if compared == before {
            constant.push(operation.name);
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    let moved = constant.iter().filter(|name| !CONSTANT.contains(name)).collect::<Vec<_>>();
    assert!(moved.is_empty(), "nothing was compared of {moved:?}");
    assert!(compared > 1300, "{compared} directions only");
}

/// The gradient of `f` at some numbers, checked against finite differences in each of them.
fn checked(f: impl Fn(&Tensor) -> Tensor, at: &[f64], shape: &[usize]) -> Vec<f64> {
    let x = |values: &[f64]| Tensor::from_vec(values.to_vec(), shape.to_vec()).to(&Device::interpreter());
    let input = x(at);
    let gradient = lazuli::grad(&f(&input), &input).to_vec::<f64>().unwrap();
    for place in 0..at.len() {
        let value = |step: f64| {
            let mut values = at.to_vec();
            values[place] += step;
            f(&x(&values)).item::<f64>().unwrap()
        };
        let slope = (value(1e-5) - value(-1e-5)) / 2e-5;
        let own = gradient[place];
        assert!(
            (own - slope).abs() <= 1e-6 * (1.0 + slope.abs()),
            "at {place}: {own}, not {slope}: {gradient:?}"
        );
    }
    gradient
}

#[test]
fn loops_of_the_users_go_back() {
    let at = numbers(1, 12, -1.0, 1.0);
    // The decay is used in each step, the first carry once.
    let filtered = |x: &Tensor| {
        let decay = x.select(0, 0).sigmoid();
        let rest = x.slice(0, 1..);
        let ([last], [each]) = lazuli::scan([&rest], 0, ScanOrder::new(), [x.select(0, 1)], |[h], [x]| {
            let next = (h * &decay + x.sin()).tanh();
            ([next.clone()], [next * x])
        });
        (each * 0.5).sum(..) + last.sum(..) * 2.0
    };
    checked(filtered, &at, &[4, 3]);
    // Two carries, one of them an integer; in reverse; results of which one is unused; a step that ignores an input.
    let counted = |x: &Tensor| {
        let y = x.cos();
        let inits = [Operand::from(x.select(0, 0)), Operand::from(Tensor::zeros([3], DType::I64))];
        let order = ScanOrder::new().reverse();
        let ([last, _], [each, _]) = lazuli::scan([x, &y], 0, order, inits, |[h, n], [x, _]| {
            let next = n + 1;
            let scaled = x * next.cast(DType::F64);
            ([h * 0.5 + &scaled, next], [h * &scaled, x.exp()])
        });
        each.square().sum(..) + last.prod(..)
    };
    checked(counted, &at, &[4, 3]);
    let running = |x: &Tensor| x.scan_with(1, 0.25, |h, x| h.maximum(x) * 0.9).square().sum(..);
    checked(running, &at, &[3, 4]);
}

#[test]
fn scans_go_back_in_either_direction() {
    // With elements of 0, which no quotient would stand, and equal ones.
    let mut at = numbers(2, 10, -1.0, 1.0);
    (at[2], at[7], at[8]) = (0.0, 0.0, 0.0);
    let orders = [
        ScanOrder::new(),
        ScanOrder::new().reverse(),
        ScanOrder::new().exclusive(),
        ScanOrder::new().reverse().exclusive(),
    ];
    for (number, order) in orders.into_iter().enumerate() {
        let weights = Tensor::from_vec(numbers(3, 10, 0.5, 1.5), [2, 5]).to(&Device::interpreter());
        let weighted = |scanned: Tensor| (scanned * &weights).sum(..);
        checked(|x| weighted(x.cumsum_with(1, order)), &at, &[2, 5]);
        checked(|x| weighted(x.cumprod_with(1, order)), &at, &[2, 5]);
        let finite = |x: Tensor| x.isinf().where_(0.0, x);
        checked(|x| weighted(finite(x.logcumsumexp_with(1, order))), &at, &[2, 5]);
        if number < 2 {
            let distinct = numbers(4, 10, -1.0, 1.0);
            checked(|x| weighted(x.cummax_with(1, order)), &distinct, &[2, 5]);
            checked(|x| weighted(x.cummin_with(1, order)), &distinct, &[2, 5]);
        }
    }
    checked(|x| x.prod([0, 2]).square().sum(..), &numbers(5, 12, -1.0, 1.0), &[2, 3, 2]);
    checked(|x| x.prod(1).sum(..), &[2.0, 0.0, 3.0, 0.0, 0.0, 5.0], &[2, 3]);
}

#[test]
fn views_and_positions_go_back() {
    let at = numbers(6, 24, -1.0, 1.0);
    let squares = |x: Tensor| (x.square() * 0.5 + x).sum(..);
    checked(|x| squares(x.slice_step(1, -1, None, -2)), &at, &[3, 8]);
    checked(|x| squares(x.slice_step(1, 1, None, 3)), &at, &[3, 8]);
    checked(|x| squares(x.slice(0, 1..1)), &at, &[3, 8]);
    checked(|x| squares(x.window(1, 3, 2, 2)), &at, &[3, 8]);
    checked(|x| squares(x.window(0, 2, 3, 1)), &at, &[6, 4]);
    checked(|x| squares(x.pad(&[(1, -1), (-2, 0)], 4.0)), &at, &[3, 8]);
    checked(|x| squares(x.permute([2, 0, 1]).reshape([4, 6]).broadcast_to([2, 4, 6])), &at, &[2, 3, 4]);
    let index = Tensor::from_slice(&[2i64, 0, 2], [3]).to(&Device::interpreter());
    checked(|x| squares(x.index_select(0, &index)), &at, &[3, 8]);
    let target = Tensor::from_slice(&[1i64, 1, 0, 2, 1, 1, 0, 0], [8]).to(&Device::interpreter());
    checked(|x| squares(Tensor::zeros([3, 3], DType::F64).index_add(1, &target, x)), &at, &[3, 8]);
    checked(|x| squares(Tensor::cat([x, &x.sin(), &x.slice(0, ..1)], 0)), &at, &[3, 8]);
    checked(|x| squares(x.sort(1, true).0.slice(1, ..3)), &at, &[3, 8]);
}

#[test]
fn gradients_have_gradients() {
    let at = [0.7, -0.4, 1.3];
    let hessian = |x: &Tensor| {
        let energy = (x.square().cumsum(0).exp() * x).sum(..);
        let slope = lazuli::grad(&energy, x);
        (slope * Tensor::from([1.0, 2.0, 3.0]).to(&Device::interpreter())).sum(..)
    };
    checked(hessian, &at, &[3]);
    let x = Tensor::scalar(0.5).to(&Device::interpreter());
    let mut derivative = x.sin();
    for _ in 0..4 {
        derivative = lazuli::grad(&derivative, &x);
    }
    assert!((derivative.item::<f64>().unwrap() - 0.5f64.sin()).abs() < 1e-12);
}

#[test]
fn what_is_shared_adds_up() {
    let x = Tensor::from([3.0f32]).to(&Device::interpreter());
    // Once each by two ways, by itself, and through a value of its own.
    let y = &x * &x;
    let loss = (&y + &x + &y * 2.0).sum(..);
    let [dx, dy] = lazuli::grad(&loss, &[x.clone(), y]);
    assert_eq!((dx.to_vec::<f32>().unwrap(), dy.to_vec::<f32>().unwrap()), (vec![19.0], vec![3.0]));
    let itself = Tensor::scalar(2.0f32);
    assert_eq!(lazuli::grad(&itself, &itself).item::<f32>().unwrap(), 1.0);
    // 300,000 operations are no recursion.
    let mut deep = x.clone();
    for _ in 0..100_000 {
        deep = (deep * 1.0).abs() + 0.0;
    }
    let slope = lazuli::grad(&deep.sum(..), &x);
    drop(deep);
    assert_eq!(slope.shape().unwrap(), Shape::from([1]));
}

#[test]
fn where_there_is_no_slope_it_is_pytorchs() {
    let x = Tensor::from([0.0f64, -0.0, 2.0, 2.0, f64::NAN]).to(&Device::interpreter());
    let slopes = |loss: Tensor| lazuli::grad(&loss, &x).to_vec::<f64>().unwrap();
    assert_eq!(slopes(x.relu().sum(..))[..4], [0.0, 0.0, 1.0, 1.0]);
    assert_eq!(slopes(x.abs().sum(..))[..4], [0.0, 0.0, 1.0, 1.0]);
    assert_eq!(slopes(x.maximum(2.0).sum(..))[..4], [0.0, 0.0, 0.5, 0.5]);
    assert_eq!(slopes(x.slice(0, ..4).max(..)), [0.0, 0.0, 0.5, 0.5, 0.0]);
    assert_eq!(slopes(x.pow(2.0).slice(0, ..2).sum(..))[..2], [0.0, 0.0]);
    // A logarithm of nothing, and a sum of nothing.
    let nothing = Tensor::full([2], f64::NEG_INFINITY, DType::F64).to(&Device::interpreter());
    let both = nothing.logaddexp(&nothing).sum(..);
    assert_eq!(lazuli::grad(&both, &nothing).to_vec::<f64>().unwrap(), [1.0, 1.0]);
    let empty = Tensor::zeros([0, 3], DType::F64).to(&Device::interpreter());
    assert_eq!(lazuli::grad(&empty.exp().sum(..), &empty).shape().unwrap(), Shape::from([0, 3]));
}

#[test]
fn sixteen_bits_are_rounded_once_an_operation() {
    let x = Tensor::from([0.3f32, 1.7, -2.0]).cast(DType::BF16).to(&Device::interpreter());
    let dx = lazuli::grad(&x.gelu().cast(DType::F32).sum(..), &x);
    assert_eq!(dx.dtype().unwrap(), DType::BF16);
    let wide = x.cast(DType::F32);
    let exact = lazuli::grad(&wide.gelu().sum(..), &wide).to_vec::<f32>().unwrap();
    for (own, exact) in dx.cast(DType::F32).to_vec::<f32>().unwrap().iter().zip(exact) {
        assert!((own - exact).abs() <= 0.005 * exact.abs().max(0.1), "{own} for {exact}");
    }
}

#[test]
fn what_has_no_gradient_says_so() {
    let x = Tensor::from([1.0f32, 2.0]);
    let error = |gradient: Tensor| gradient.shape().unwrap_err().to_string();
    let of = |loss: &Tensor| error(lazuli::grad(loss, &x));
    assert!(of(&x.exp()).contains("grad: is of a tensor without dimensions, got shape [2]"));
    assert!(of(&x.cast(DType::I32).sum(..)).contains("needs a float tensor, got i64 []"));
    let other = of(&Tensor::from(1.0f32).exp());
    assert!(
        other.contains("was not recorded from the f32 [2] of `from_slice` at tests/gradients.rs"),
        "{other}"
    );
    assert!(of(&x.detach().sum(..)).contains("was not recorded from"));
    assert!(of(&x.round().cast(DType::I32).cast(DType::F32).sum(..)).contains("was not recorded from"));
    assert!(of(&x.reshape([3]).sum(..)).contains("reshape: "));
    let y = x.exp();
    y.eval().unwrap();
    assert!(of(&y.sum(..)).contains("`eval` has made data"));
    let integers = Tensor::from([1i32, 2]);
    let loss = (&x * &integers).sum(..);
    assert!(error(lazuli::grad(&loss, &integers)).contains("needs a float tensor, got i32 [2]"));
    let y = x.square();
    assert!(error(lazuli::vjp(&[&y], &[&x, &x], &x)).contains("there are 1 outputs and 2 cotangents"));
    assert!(
        error(lazuli::vjp(&[&y], &[&y.sum(..)], &x)).contains("the output has shape [2], its cotangent []")
    );
}

/// A loss and its gradients, computed by kernels, are the interpreter's, fused and not.
#[test]
fn kernels_compute_gradients() {
    let run = |device: &Device| {
        let x = Tensor::rand([6, 20], 1).to(device);
        let (w, b) = (Tensor::randn([20, 5], 2).to(device), Tensor::randn([5], 3).to(device));
        let labels = Tensor::from_slice(&[0i64, 4, 2, 2, 1, 3], [6]).to(device);
        let hidden = (x.matmul(&w) + &b).gelu().layer_norm([5], None, None, 1e-5);
        let loss = hidden.cross_entropy(&labels, Reduction::Mean);
        let [dw, db] = lazuli::grad(&loss, &[w, b]);
        lazuli::eval([&loss, &dw, &db]).unwrap();
        [loss, dw, db].map(|t| t.to_vec::<f32>().unwrap())
    };
    let expected = run(&Device::interpreter());
    let unfused = with_fusion(Fusion::Off, || run(&Device::cpu()));
    for (place, expected) in expected.iter().enumerate() {
        for own in [&run(&Device::cpu())[place], &unfused[place]] {
            for (own, expected) in own.iter().zip(expected) {
                assert!(
                    (own - expected).abs() <= 2e-6 * (1.0 + expected.abs()),
                    "{place}: {own}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn one_of_equal_elements_is_chosen_where_positions_are() {
    let x = Tensor::from([[1.0f32, 2.0, 2.0, 0.0], [2.0, 2.0, 0.0, 0.0]]).to(&Device::interpreter());
    let slopes = |loss: Tensor| lazuli::grad(&loss, &x).to_vec::<f32>().unwrap();
    assert_eq!(slopes(x.max_pool2d(2, 2).sum(..)), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(slopes(x.max_with_indices(1).0.sum(..)), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(slopes(x.min_with_indices(0).0.sum(..)), [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(slopes(x.max_with_indices(..).0), [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(slopes(x.topk(2, 1, true).0.sum(..)), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
}

/// Parts of a tensor are joined again, with zeros for what none of them is, and added up where they overlap.
#[test]
fn parts_are_joined() {
    let at = numbers(8, 24, -1.0, 1.0);
    let squares = |x: Tensor| (x.square() * 0.5 + x).sum(..);
    let by_parts = |x: &Tensor| {
        let rows = x.unbind(0).unwrap();
        squares(&rows[0] * &rows[3]) + squares(rows[2].sin())
    };
    checked(by_parts, &at, &[6, 4]);
    checked(|x| squares(x.narrow(1, 1, 3) * x.narrow(1, 4, 3)) + squares(x.exp()), &at, &[3, 8]);
    checked(|x| squares(x.narrow(1, 0, 5) * x.narrow(1, 3, 5)), &at, &[3, 8]);
    checked(|x| squares(x.slice(0, ..1) * x.slice(0, 2..)) + squares(x.slice(1, 3..)), &at, &[3, 8]);
    let x = Tensor::from_vec(at, [2, 12]).to(&Device::cpu());
    let parts = x.chunk(3, 1).unwrap();
    let dx = lazuli::grad(&(&parts[0] * parts[1].exp() * &parts[2]).sum(..), &x);
    assert!(!dx.explain().unwrap().to_string().contains("add_grad"));
}

/// Back through copies: joins of another number of parts each time, and moves between devices.
/// Which part an element is of is known before any kernel runs: none asks by position.
#[test]
fn parts_of_joins_go_back_alone() {
    let parts: Vec<Tensor> = (0..12).map(|seed| Tensor::rand([32, 8], seed)).collect();
    lazuli::eval(&parts).unwrap();
    for joined in [Tensor::stack(&parts, 0), Tensor::cat(&parts, 1)] {
        let gradients = lazuli::grad(&joined.square().sum(..), &parts);
        let program = lazuli::compile_for(&gradients, &Target::cpu()).unwrap();
        for kernel in program.kernels() {
            let (_, body) = kernel.source().split_once("_blocks(").unwrap();
            assert!(!body.contains(" inside") && !body.contains(" ? 1"), "{body}");
        }
    }
}

#[test]
fn copies_go_back() {
    let x = Tensor::from([1.0f32, 2.0, 3.0]).to(&Device::cpu());
    for count in 3..8 {
        let parts: Vec<Tensor> = (0..count).map(|n| &x * f64::from(n)).collect();
        let joined = Tensor::cat(&parts, 0);
        let slopes = lazuli::grad(&joined.square().sum(..), &x).to_vec::<f32>().unwrap();
        let squares: f32 = (0..count).map(|n| (n * n) as f32).sum();
        assert_eq!(slopes, [2.0 * squares, 4.0 * squares, 6.0 * squares], "of {count} parts");
    }
    let elsewhere = (&x * 2.0).to(&Device::interpreter());
    let slopes = lazuli::grad(&elsewhere.square().sum(..), &x);
    assert_eq!(slopes.device().unwrap(), Device::cpu());
    assert_eq!(slopes.to_vec::<f32>().unwrap(), [8.0, 16.0, 24.0]);
}

#[test]
fn a_step_may_be_detached_from_the_one_before() {
    for (device, dtype) in
        [(Device::interpreter(), DType::F64), (Device::cpu(), DType::F32), (Device::cpu(), DType::BF16)]
    {
        let x = Tensor::from([1.0f64, -2.0, 3.0]).to(&device).cast(dtype);
        let each = x.scan_with(0, 0.0, |h, x| h.detach() * 0.5 + x.square());
        let slopes = lazuli::grad(&each.sum(..), &x).cast(DType::F64);
        assert_eq!(each.cast(DType::F64).to_vec::<f64>().unwrap(), [1.0, 4.5, 11.25]);
        assert_eq!(slopes.to_vec::<f64>().unwrap(), [2.0, -4.0, 6.0], "{dtype} on {device}");
    }
}
