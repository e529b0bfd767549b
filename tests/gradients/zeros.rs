//! Gradients of what a loss follows from, though nothing reaches it: zeros, as PyTorch's. And what it does not follow from, which is
//! an error.

use lazuli::{DType, Device, GridSample, MatrixNorm, Pool2d, ScanOrder, Tensor, grad, scan, vjp};

type Case = (&'static str, fn(&Tensor) -> Tensor);

fn given(values: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), shape.to_vec()).to(&Device::interpreter())
}

fn empty(shape: &[usize]) -> Tensor {
    given(&[], shape)
}

fn no_rows() -> Tensor {
    Tensor::zeros([0], DType::I64).to(&Device::interpreter())
}

fn no_places() -> Tensor {
    Tensor::zeros([0, 2], DType::I64).to(&Device::interpreter())
}

/// Zeros that do not follow from the tensor.
fn base_of(x: &Tensor) -> Tensor {
    x.detach().zeros_like()
}

/// A scan of no steps, which begins with something else.
fn empty_scan(x: &Tensor, moves: bool) -> (Tensor, Tensor) {
    let init = given(&[1.0, 2.0], &[2]);
    let ([last], [each]) = scan([&x.slice(0, 0..0)], 0, ScanOrder::new(), [&init], |[carry], [x]| {
        let next = if moves { carry.flip(0) + x } else { carry * x };
        ([next.clone()], [next])
    });
    (last, each)
}

/// What is wrong with a gradient of zeros.
fn wrong_zeros(gradient: &Tensor, x: &Tensor) -> Option<String> {
    match gradient.to_vec::<f64>() {
        Ok(values) if values.iter().any(|&value| value != 0.0) => Some(format!("{values:?}")),
        Ok(_) => (gradient.shape().unwrap() != x.shape().unwrap()).then(|| "another shape".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn all_zeros(order: usize, cases: &[Case], x: &Tensor) {
    let mut wrong = Vec::new();
    for (name, f) in cases {
        let y = f(x);
        let mut gradient = vjp(&[&y], &[y.ones_like() * 1.5], x);
        for _ in 1..order {
            gradient = vjp(&[&gradient], &[gradient.ones_like() * 0.5], x);
        }
        wrong.extend(wrong_zeros(&gradient, x).map(|wrong| format!("{name}: {wrong}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A graph's batch without edges, a sequence without steps.
#[test]
fn what_adds_nothing_has_gradients_of_zeros() {
    let x = given(&[0.5, -1.0, 2.0, 0.25, 1.5, -0.75], &[3, 2]);
    for order in [1, 2] {
        all_zeros(
            order,
            &[
                ("index_add", |x| base_of(x).index_add(0, no_rows(), x.index_select(0, no_rows()))),
                ("index_copy", |x| base_of(x).index_copy(0, no_rows(), x.index_select(0, no_rows()))),
                ("scatter_add", |x| base_of(x).scatter_add(0, no_places(), x.slice(0, 0..0))),
                ("scatter", |x| base_of(x).scatter(0, no_places(), x.slice(0, 0..0))),
                ("masked_scatter", |x| {
                    let nothing = base_of(x).slice(0, 0..0);
                    nothing.masked_scatter(nothing.gt(0.0), x)
                }),
                ("scan, the last", |x| empty_scan(x, false).0),
                ("scan, each", |x| empty_scan(x, false).1),
                ("scan whose step moves, the last", |x| empty_scan(x, true).0),
                ("scan whose step moves, each", |x| empty_scan(x, true).1),
                ("scan of no steps, what each would use", |x| {
                    let steps = given(&[], &[0, 2]);
                    let init = given(&[1.0, 2.0], &[2]);
                    let ([last], [each]) = scan([&steps], 0, ScanOrder::new(), [&init], |[carry], [step]| {
                        let next = x.slice(0, ..2).matmul(&carry) + step;
                        ([next.clone()], [next])
                    });
                    last.sum(..) + each.sum(..)
                }),
            ],
            &x,
        );
    }
}

#[test]
fn what_is_constant_but_for_jumps_has_gradients_of_zeros() {
    let x = given(&[0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 0.0, 1.0], &[1, 2, 2, 2]);
    for order in [1, 2] {
        all_zeros(
            order,
            &[
                ("floor", |x| x.floor()),
                ("sign", |x| x.sign()),
                ("norm(0)", |x| x.norm(.., 0.0)),
                ("pdist(0)", |x| x.reshape([4, 2]).pdist(0.0)),
                ("matrix_power(0)", |x| x.matrix_power(0)),
                ("addmm(0)", |x| {
                    x.reshape([4, 2]).addmm(given(&[1.0; 4], &[4, 1]), given(&[1.0; 2], &[1, 2]), 0, 1)
                }),
                ("grid_sample, by the grid", |x| {
                    given(&[1.0, 2.0, 3.0, 4.0], &[1, 1, 2, 2]).grid_sample(x, GridSample::new().nearest())
                }),
            ],
            &x,
        );
    }
}

#[test]
fn slopes_that_are_constant_but_for_jumps_have_gradients_of_zeros() {
    let x = given(&(0..16).map(|n| f64::from(n * 7 % 16) / 4.0 - 2.0).collect::<Vec<f64>>(), &[1, 1, 4, 4]);
    let cases: &[Case] = &[
        ("relu", |x| x.relu()),
        ("relu6", |x| x.relu6()),
        ("leaky_relu", |x| x.leaky_relu(0.1)),
        ("hardtanh", |x| x.hardtanh(-1.0, 1.0)),
        ("hardsigmoid", |x| x.hardsigmoid()),
        ("threshold", |x| x.threshold(0.1, 20.0)),
        ("hardshrink", |x| x.hardshrink(0.5)),
        ("softshrink", |x| x.softshrink(0.5)),
        ("clamp", |x| x.clamp(-1.0, 1.0)),
        ("abs", |x| x.abs()),
        ("maximum", |x| x.maximum(x * 0.5 + 0.1)),
        ("max", |x| x.max(-1)),
        ("median", |x| x.median(-1).0),
        ("sort", |x| x.sort(-1, false).0),
        ("cummax", |x| x.cummax(-1)),
        ("max_pool2d", |x| x.max_pool2d(2, 2)),
        ("max_pool2d_with", |x| x.max_pool2d_with(Pool2d::new(3).stride(2).padding(1))),
        ("adaptive_max_pool2d", |x| x.adaptive_max_pool2d(3)),
    ];
    all_zeros(2, cases, &x);
    all_zeros(3, cases, &x);
}

#[test]
fn what_is_of_nothing_has_gradients_of_zeros() {
    all_zeros(
        1,
        &[
            ("softmax", |x| x.softmax(1)),
            ("cat", |x| Tensor::cat(&[x, &given(&[1.0; 10], &[5, 2])], 1)),
            ("cat of nothing else", |x| Tensor::cat(&[&empty(&[5, 0]), x], 1)),
            ("qr", |x| x.qr().0),
            ("qr, the triangle", |x| x.qr().1),
            ("qr_complete", |x| x.qr_complete().0),
            ("svd", |x| x.svd().0),
            ("svd, the values", |x| x.svd().1),
            ("svd, on the right", |x| x.svd().2),
            ("pinv", |x| x.pinv()),
            ("cond", |x| x.cond()),
            ("matrix_norm", |x| x.matrix_norm(MatrixNorm::Spectral, [0, 1])),
            ("lstsq", |x| x.lstsq(given(&[1.0; 5], &[5, 1]))),
        ],
        &empty(&[5, 0]),
    );
    all_zeros(1, &[("cat", |x| Tensor::cat(&[x, &given(&[1.0; 4], &[2, 2])], 1))], &empty(&[0]));
    all_zeros(
        1,
        &[
            ("inv", |x| x.inv()),
            ("det", |x| x.det()),
            ("slogdet", |x| x.slogdet().1),
            ("cholesky", |x| x.cholesky(false)),
            ("cholesky_inverse", |x| x.cholesky_inverse(false)),
            ("cholesky_solve", |x| empty(&[0, 3]).cholesky_solve(x, false)),
            ("solve", |x| x.solve(empty(&[0, 3]))),
            ("solve_triangular", |x| x.solve_triangular(empty(&[0, 3]), true, true, false)),
            ("lu_solve", |x| x.lu_solve(Tensor::zeros([0], DType::I32), empty(&[0, 3]))),
            ("eigh", |x| x.eigh().1),
            ("matrix_exp", |x| x.matrix_exp()),
            ("matrix_power", |x| x.matrix_power(0)),
        ],
        &empty(&[0, 0]),
    );
    // All others have their own.
    let (x, none) = (given(&[1.0, 2.0], &[2]), empty(&[0]));
    let whole = (Tensor::cat(&[&none, &x], 0).square()).sum(..);
    let (of_x, of_none) = grad(&whole, &(x.clone(), none.clone()));
    assert_eq!(of_x.to_vec::<f64>().unwrap(), [2.0, 4.0]);
    assert_eq!(of_none.to_vec::<f64>().unwrap(), [0.0; 0]);
}

/// Positions and conditions are a way within an operation, and none between operations.
#[test]
fn integers_between_operations_are_no_way() {
    let x = given(&[0.5, -1.0, 2.0], &[3]);
    let other = given(&[1.0, 2.0, 3.0], &[3]);
    let losses = [
        x.argmax(0).cast(DType::F64),
        x.gt(0.0).cast(DType::F64).sum(..),
        x.cast(DType::I64).cast(DType::F64).sum(..),
        other.index_select(0, x.argsort(0, false)).sum(..),
        x.gt(0.0).where_(&other, 0.0).sum(..),
        x.detach().sum(..),
        // Of a line the slope follows from nothing.
        grad(&(&x * 3.0).sum(..), &x).sum(..),
    ];
    for (number, loss) in losses.iter().enumerate() {
        let error = grad(loss, &x).eval().unwrap_err().to_string();
        assert!(error.contains("was not recorded from the f64 [3] of "), "{number}: {error}");
        assert!(
            error.contains("it was not used on the way, at tests/gradients/zeros.rs"),
            "{number}: {error}"
        );
    }
}

/// What an error names was recorded from something.
#[test]
fn data_of_the_users_is_not_what_a_gradient_went_into() {
    let x = given(&[0.5, -1.0, 2.0], &[3]);
    let unused = Tensor::from([1.0f64, 2.0, 3.0]);
    let data = Tensor::from_vec(vec![1.0f64, 2.0, 3.0], [3]);
    let drawn = Tensor::rand([3], 7).cast(DType::F64);
    drawn.eval().unwrap();
    let message = |loss: &Tensor| grad(loss, &unused).eval().unwrap_err().to_string();
    for loss in [(&x * 2.0).sum(..), (data.exp() * 2.0).sum(..), (&data * &drawn).sum(..)] {
        assert!(message(&loss).contains(": it was not used on the way, at"), "{}", message(&loss));
    }
    let gradient = vjp(&[data.exp()], &[Tensor::from([1.0f64, 0.0, 1.0])], &unused);
    assert!(gradient.eval().unwrap_err().to_string().contains(": it was not used on the way, at"));
    // Of constants too, once they are data.
    let zeros = Tensor::zeros([3], DType::F64);
    zeros.eval().unwrap();
    for x in [&unused, &zeros] {
        let made = x.exp() + 1.0;
        made.eval().unwrap();
        let error = grad(&(&made * &data).sum(..), x).eval().unwrap_err().to_string();
        assert!(error.contains("into the f64 [3] of `add` at tests/gradients/zeros.rs"), "{error}");
    }
}
