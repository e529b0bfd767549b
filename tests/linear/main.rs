//! Factorisations and what is solved by them: residuals in units of rounding, on the interpreter, as kernels that are interpreted
//! and compiled, and by a library.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod routines;

use lazuli::{DType, Device, Settings, Shape, Tensor};

/// Rows of the matrices: one formula, and loops.
const SIZES: [usize; 4] = [1, 2, 4, 10];

const WIDE: [DType; 2] = [DType::F32, DType::F64];

fn random(shape: &[usize], dtype: DType, seed: u64) -> Tensor {
    Tensor::randn_with(shape.to_vec(), dtype, seed)
}

fn largest(x: &Tensor) -> f64 {
    x.abs().max(..).cast(DType::F64).item::<f64>().unwrap()
}

fn transposed(x: &Tensor) -> Tensor {
    x.transpose(-1, -2)
}

/// Asserts that a residual, over the magnitude that it is to be compared with, is so many roundings. NaN is none.
#[track_caller]
fn assert_small(residual: &Tensor, magnitude: f64, roundings: f64) {
    let eps = residual.dtype().unwrap().finfo().unwrap().eps;
    let found = largest(residual) / magnitude / eps;
    assert!(found <= roundings, "{found} roundings");
}

fn is_nan(x: &Tensor) -> bool {
    x.cast(DType::F64).to_vec::<f64>().unwrap().iter().all(|x| !x.is_finite())
}

/// Runs a check of matrices with so many rows on the devices that are to run it.
fn on_devices(check: impl Fn(&Device, usize, DType)) {
    for dtype in WIDE {
        for n in SIZES {
            check(&Device::interpreter(), n, dtype);
        }
    }
    check(&Device::cpu_interpreted(), 3, DType::F64);
    by_kernels(|| check(&Device::cpu(), 9, DType::F32));
    by_library(check);
}

/// Runs a check on the CPU, where a library does it.
fn by_library(check: impl Fn(&Device, usize, DType)) {
    for dtype in WIDE {
        for n in SIZES.into_iter().chain([70]) {
            check(&Device::cpu(), n, dtype);
        }
    }
}

/// The same of what takes long in the interpreter.
fn on_some_devices(check: impl Fn(&Device, usize, DType)) {
    check(&Device::interpreter(), 1, DType::F32);
    check(&Device::interpreter(), 4, DType::F64);
    check(&Device::cpu_interpreted(), 3, DType::F32);
    by_kernels(|| check(&Device::cpu(), 9, DType::F64));
    by_library(check);
}

/// What `f` records without libraries.
fn by_kernels<T>(f: impl FnOnce() -> T) -> T {
    Settings::new().libraries(false).scope(f).unwrap()
}

/// Where matrices are that are taken step by step, and by a library.
fn both_ways() -> [Device; 2] {
    [Device::interpreter(), Device::cpu()]
}

#[test]
fn solving() {
    on_devices(|device, n, dtype| {
        for batch in [&[][..], &[2]] {
            let shape = |rows, columns| [batch, &[rows, columns]].concat();
            let a = random(&shape(n, n), dtype, n as u64).to(device);
            let b = random(&shape(n, 2), dtype, 7).to(device);
            let x = a.solve(&b);
            lazuli::eval([&x]).unwrap();
            assert_small(&(a.matmul(&x) - &b), largest(&a) * largest(&x), 20.0 * n as f64);
        }
    });
}

#[test]
fn solving_where_pivots_are_needed() {
    on_devices(|device, n, dtype| {
        // Zeros on the diagonal, and rows of very different magnitude.
        let a = random(&[n, n], dtype, 3).to(device) * (1.0 - Tensor::eye(n, dtype));
        let a = if n == 1 { a + 2.0 } else { a };
        let scale = Tensor::from_vec((0..n).map(|i| 10f64.powi(i as i32 % 5 * 3 - 6)).collect(), [n, 1]);
        let a = a * scale.cast(dtype).to(device);
        let x = a.solve(Tensor::ones([n], dtype).to(device));
        lazuli::eval([&x]).unwrap();
        // Each row by its own magnitude.
        let residual = (a.matmul(&x) - 1.0) / (a.abs().matmul(x.abs()) + 1.0);
        assert_small(&residual, 1.0, 300.0 * n as f64);
    });
}

#[test]
fn inverses_and_determinants() {
    on_devices(|device, n, dtype| {
        // Of determinants in range.
        let a = random(&[2, n, n], dtype, 40 + n as u64).to(device) / (n as f64).sqrt();
        let inverse = a.inv();
        let (sign, logarithm) = a.slogdet();
        let determinant = a.det();
        let by_inverse = inverse.det();
        lazuli::eval([&inverse, &sign, &logarithm, &determinant, &by_inverse]).unwrap();
        let identity = Tensor::eye(n, dtype).to(device);
        let magnitude = largest(&a) * largest(&inverse);
        assert_small(&(a.matmul(&inverse) - &identity), magnitude, 50.0 * n as f64);
        assert_small(&(inverse.matmul(&a) - &identity), magnitude, 50.0 * n as f64);
        let ratio = &determinant / (sign * logarithm.exp());
        assert_small(&(ratio - 1.0), 1.0, 100.0 * n as f64);
        assert_small(&(determinant * by_inverse - 1.0), magnitude, 500.0 * n as f64);
    });
}

#[test]
fn triangles_of_any_shape() {
    on_devices(|device, n, dtype| {
        for (m, n) in [(n, n), (n, n + 2), (n + 3, n)] {
            let a = random(&[m, n], dtype, 5).to(device);
            let (p, l, u) = a.lu();
            lazuli::eval([&p, &l, &u]).unwrap();
            let k = m.min(n);
            let shapes = [&p, &l, &u].map(|x| x.shape().unwrap());
            assert_eq!(shapes, [Shape::from([m, m]), Shape::from([m, k]), Shape::from([k, n])]);
            assert_small(&(p.matmul(&l).matmul(&u) - &a), largest(&a), 10.0 * n as f64);
            assert!(largest(&l) <= 1.0);
            assert_eq!(largest(&u.tril(-1)) + largest(&l.triu(1)), 0.0);
            assert_small(&(p.matmul(transposed(&p)) - Tensor::eye(m, dtype).to(device)), 1.0, 0.0);
        }
    });
}

#[test]
fn roots_of_positive_definite_matrices() {
    on_devices(|device, n, dtype| {
        let x = random(&[2, n, n], dtype, 50 + n as u64).to(device);
        let a = x.matmul(transposed(&x)) + Tensor::eye(n, dtype).to(device);
        // Above the diagonal nothing is read.
        let lower = (a.tril(0) + Tensor::full([n, n], f64::NAN, dtype).triu(1).to(device)).cholesky(false);
        let b = random(&[n, 3], dtype, 9).to(device);
        let solved = b.cholesky_solve(&lower, false);
        let inverse = transposed(&lower).cholesky_inverse(true);
        lazuli::eval([&a, &lower, &solved, &inverse]).unwrap();
        assert_small(&(lower.matmul(transposed(&lower)) - &a), largest(&a), 10.0 * n as f64);
        if n > 1 {
            assert_eq!(largest(&lower.triu(1)), 0.0);
        }
        assert_small(&(a.matmul(&solved) - &b), largest(&a) * largest(&solved), 30.0 * n as f64);
        let identity = Tensor::eye(n, dtype).to(device);
        assert_small(&(a.matmul(&inverse) - identity), largest(&a) * largest(&inverse), 30.0 * n as f64);
    });
}

#[test]
fn orthonormal_columns() {
    on_devices(|device, n, dtype| {
        for (m, n) in [(n, n), (n, n + 2), (n + 3, n)] {
            // Columns of magnitudes whose squares are out of range.
            let scale =
                (0..n).map(|j| if dtype == DType::F32 { 1e-25 * 1e9f64.powi(j as i32 % 5) } else { 1e-200 });
            let scale = Tensor::from_vec(scale.collect(), [n]).cast(dtype).to(device);
            let a = random(&[m, n], dtype, 15).to(device);
            let (q, r) = (&a * &scale).qr();
            lazuli::eval([&q, &r]).unwrap();
            let k = m.min(n);
            assert_eq!([&q, &r].map(|x| x.shape().unwrap()), [Shape::from([m, k]), Shape::from([k, n])]);
            assert_small(&(q.matmul(&(&r / &scale)) - &a), largest(&a), 20.0 * n as f64);
            assert_small(
                &(transposed(&q).matmul(&q) - Tensor::eye(k, dtype).to(device)),
                1.0,
                20.0 * n as f64,
            );
            assert_eq!(largest(&(&r / &scale).tril(-1)), 0.0);
        }
    });
}

#[test]
fn least_squares() {
    on_devices(|device, n, dtype| {
        let tall = random(&[n + 3, n], dtype, 25).to(device);
        let b = random(&[n + 3, 2], dtype, 26).to(device);
        let x = tall.lstsq(&b);
        lazuli::eval([&x]).unwrap();
        // What is left is perpendicular to the columns.
        let left = transposed(&tall).matmul(&(tall.matmul(&x) - &b));
        let magnitude = largest(&tall) * (largest(&b) + largest(&tall) * largest(&x));
        assert_small(&left, magnitude, 50.0 * n as f64);
        let wide = transposed(&tall);
        let b = random(&[n], dtype, 27).to(device);
        let x = wide.lstsq(&b);
        lazuli::eval([&x]).unwrap();
        assert_small(&(wide.matmul(&x) - b), largest(&wide) * largest(&x), 50.0 * n as f64);
        // The least one is made of rows.
        let of_rows = wide.matmul(transposed(&wide)).solve(wide.matmul(&x));
        let rest = transposed(&wide).matmul(&of_rows) - &x;
        assert_small(&rest, largest(&x) + largest(&of_rows), 200.0 * n as f64);
    });
}

#[test]
fn exponentials() {
    for dtype in WIDE {
        for (n, scale) in [(1, 1.0), (3, 0.01), (3, 5.0), (10, 1.0)] {
            let a = random(&[n, n], dtype, 35).to(&Device::interpreter()) * scale;
            let (forth, back) = (a.matrix_exp(), (-&a).matrix_exp());
            lazuli::eval([&forth, &back]).unwrap();
            let identity = Tensor::eye(n, dtype).to(&Device::interpreter());
            assert_small(&(forth.matmul(&back) - identity), largest(&forth) * largest(&back), 50.0);
        }
        // A decay so strong that its terms overflow.
        let a = Tensor::from([[-1000.0, 0.0], [0.0, 0.5]]).cast(dtype).to(&Device::interpreter());
        let expected = Tensor::from([[0.0, 0.0], [0.0, 0.5f64.exp()]]).cast(dtype).to(&Device::interpreter());
        assert_small(&(a.matrix_exp() - expected), 1.0, 2000.0);
        assert!(is_nan(&(a * 1e6).matrix_exp()));
    }
    let a = random(&[4, 4], DType::F32, 36).to(&Device::cpu());
    let there = a.matrix_exp();
    let here = a.to(&Device::interpreter()).matrix_exp();
    assert_small(&(there.to(&Device::interpreter()) - &here), largest(&here), 50.0);
}

#[test]
fn what_has_no_result_is_not_finite() {
    for (device, n) in both_ways().into_iter().flat_map(|device| [1, 2, 3, 9].map(|n| (device, n))) {
        let on = |x: Tensor| x.to(&device);
        let singular = on(Tensor::zeros([n, n], DType::F64));
        assert_eq!(largest(&singular.det()), 0.0);
        let (sign, logarithm) = singular.slogdet();
        assert_eq!(sign.item::<f64>().unwrap(), 0.0);
        assert_eq!(logarithm.item::<f64>().unwrap(), f64::NEG_INFINITY);
        assert!(is_nan(&singular.inv()) && is_nan(&singular.solve(on(Tensor::ones([n], DType::F64)))));
        let (p, l, u) = singular.lu();
        assert_eq!(largest(&(p.matmul(&l).matmul(&u))), 0.0);
        let (q, r) = singular.qr();
        assert_eq!(largest(&(q - on(Tensor::eye(n, DType::F64)))) + largest(&r), 0.0);
        let negative = on(-Tensor::eye(n, DType::F64));
        assert!(is_nan(&negative.cholesky(false).diagonal(0, 0, 1)));
        // One NaN is in every result.
        let nan = on(Tensor::full([n, n], f64::NAN, DType::F64).tril(0).triu(0) + 1.0);
        for x in [nan.det(), nan.inv(), nan.matrix_exp(), nan.lu().2, nan.qr().1, nan.cholesky(true)] {
            assert!(x.isnan().any(..).item::<bool>().unwrap());
        }
    }
    for device in both_ways() {
        // The same row twice.
        let a = Tensor::from([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0, 1.0, 5.0]]).to(&device);
        assert_eq!(a.det().item::<f64>().unwrap(), 0.0);
        let (p, l, u) = a.lu();
        assert_eq!(largest(&(p.matmul(&l).matmul(&u) - a)), 0.0);
        // Positive definite up to the third column.
        let a = Tensor::eye(9, DType::F32).to(&device) * 4.0;
        let a = a - Tensor::from_vec((0..9).map(|i| if i == 2 { 5.0f32 } else { 0.0 }).collect(), [9])
            .to(&device)
            .diag(0);
        let lower = a.cholesky(false).isnan().to_vec::<bool>().unwrap();
        assert!((0..9).all(|i| !lower[i * 9] && !lower[i * 9 + 1]), "columns before it");
        assert!((2..9).all(|j| lower[j * 9 + j]), "columns from it on");
    }
}

#[test]
fn nothing_has_results_too() {
    both_ways().into_iter().for_each(nothing_on);
}

fn nothing_on(device: Device) {
    let on = |shape: &[usize]| Tensor::zeros(shape.to_vec(), DType::F32).to(&device);
    let shape = |x: Tensor| {
        x.eval().unwrap();
        x.shape().unwrap().to_vec()
    };
    let none = on(&[0, 0]);
    assert_eq!(none.det().item::<f32>().unwrap(), 1.0);
    assert_eq!(none.logdet().item::<f32>().unwrap(), 0.0);
    for x in [
        none.inv(),
        none.cholesky(false),
        none.matrix_exp(),
        none.cholesky_inverse(true),
        none.lu().0,
        none.qr().0,
    ] {
        assert_eq!(shape(x), [0, 0]);
    }
    assert_eq!(shape(none.solve(on(&[0, 3]))), [0, 3]);
    assert_eq!(shape(none.solve(on(&[0]))), [0]);
    assert_eq!(shape(none.solve_triangular(on(&[0, 3]), true, true, false)), [0, 3]);
    assert_eq!(shape(on(&[4, 0]).lu().0), [4, 4]);
    assert_eq!(shape(on(&[0, 4]).lu().2), [0, 4]);
    assert_eq!(shape(on(&[4, 0]).qr().0), [4, 0]);
    assert_eq!(shape(on(&[0, 4]).qr().1), [0, 4]);
    assert_eq!(shape(on(&[4, 0]).lstsq(on(&[4, 2]))), [0, 2]);
    assert_eq!(shape(on(&[0, 4]).lstsq(on(&[0, 2]))), [4, 2]);
    for n in [2, 9] {
        let batch = on(&[0, n, n]);
        for x in [batch.inv(), batch.cholesky(false), batch.matrix_exp(), batch.lu().1, batch.qr().1] {
            assert_eq!(shape(x), [0, n, n]);
        }
        assert_eq!(shape(batch.det()), [0]);
        assert_eq!(shape(batch.solve(on(&[n, 0]))), [0, n, 0]);
        assert_eq!(shape(on(&[n, n]).solve(on(&[n, 0]))), [n, 0]);
    }
}

#[test]
fn right_hand_sides() {
    both_ways().into_iter().for_each(right_hand_sides_on);
}

fn right_hand_sides_on(device: Device) {
    let a = random(&[2, 3, 3], DType::F64, 1).to(&device);
    let b = random(&[3], DType::F64, 2).to(&device);
    let one = |k: isize| a.select(0, k).solve(&b);
    let both = a.solve(&b);
    assert_eq!(both.shape().unwrap(), Shape::from([2, 3]));
    for k in 0..2 {
        assert_small(&(both.select(0, k) - one(k)), largest(&one(k)), 0.0);
    }
    // Two vectors for two matrices, and one matrix of right-hand sides for both.
    let vectors = random(&[2, 3], DType::F64, 3).to(&device);
    assert_eq!(a.solve(&vectors).shape().unwrap(), Shape::from([2, 3]));
    let matrix = random(&[3, 4], DType::F32, 4).to(&device);
    let x = a.solve(&matrix);
    assert_eq!((x.shape().unwrap(), x.dtype().unwrap()), (Shape::from([2, 3, 4]), DType::F64));
    assert_small(&(a.matmul(&x) - matrix), largest(&a) * largest(&x), 50.0);
    // Factors of the inverse.
    let (three, inverse) = (a.matrix_power(-3), a.inv());
    let expected = inverse.matmul(&inverse).matmul(&inverse);
    assert_small(&(three - &expected), largest(&expected), 100.0);
    // A triangle, from either side.
    for n in [4, 10] {
        let t = random(&[n, n], DType::F64, 5).to(&device) + Tensor::eye(n, DType::F64).to(&device) * 4.0;
        let (b, c) = (random(&[n, 2], DType::F64, 6).to(&device), random(&[2, n], DType::F64, 6).to(&device));
        for (upper, is_unit) in [(false, false), (true, false), (false, true), (true, true)] {
            let half = if upper { t.triu(1) } else { t.tril(-1) } / if is_unit { 4.0 } else { 1.0 };
            let diagonal = Tensor::eye(n, DType::F64).to(&device);
            let whole = if is_unit { &half + diagonal } else { &half + &t * diagonal };
            // A diagonal that counts as 1 is not read.
            let unread = Tensor::eye(n, DType::F64).to(&device).ne(0.0).where_(f64::NAN, &half);
            let given = if is_unit { unread } else { whole.clone() };
            let x = given.solve_triangular(&b, upper, true, is_unit);
            assert_small(&(whole.matmul(&x) - &b), largest(&whole) * largest(&x), 100.0);
            let x = given.solve_triangular(&c, upper, false, is_unit);
            assert_small(&(x.matmul(&whole) - &c), largest(&whole) * largest(&x), 100.0);
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape.to_vec(), DType::F32);
    let message = |x: Tensor| x.shape().unwrap_err().to_string();
    assert!(
        message(zeros(&[2, 3]).inv())
            .starts_with("inv: needs square matrices, got shape [2, 3], at tests/linear/main.rs")
    );
    assert!(
        message(zeros(&[3]).det()).starts_with("det: needs matrices, of 2 dimensions or more, got f32 [3]")
    );
    assert!(
        message(zeros(&[2, 2]).cast(DType::BF16).qr().1)
            .starts_with("qr: needs F32 or F64, got bf16 [2, 2]; cast it first")
    );
    assert!(
        message(zeros(&[2, 2]).solve(zeros(&[3])))
            .starts_with("solve: shapes [2, 2] and [3] do not fit: the matrix has 2 rows")
    );
    assert!(
        message(zeros(&[3, 2, 2]).lstsq(zeros(&[4, 2, 2])))
            .starts_with("lstsq: the batches of [3, 2, 2] and [4, 2, 2] do not broadcast")
    );
    assert!(
        message(zeros(&[2, 2]).solve_triangular(zeros(&[3, 1]), true, true, true))
            .starts_with("solve_triangular: shapes [2, 2] and [3, 1] do not fit")
    );
    assert!(
        message(zeros(&[2, 2]).cast(DType::I64).matrix_power(-1))
            .starts_with("matrix_power: needs F32 or F64, got i64 [2, 2]")
    );
}

#[test]
fn eigenvalues_and_vectors() {
    on_some_devices(|device, n, dtype| {
        let x = random(&[2, n, n], dtype, 60 + n as u64).to(device);
        let lower = |x: Tensor| x.tril(0) + transposed(&x.tril(-1));
        let twice = |n: usize| Tensor::eye(n, dtype).to(device) * 2.0;
        // Any; eigenvalues that are all the same; and some that are nearly the same.
        let near = twice(n) + lower(random(&[n, n], dtype, 61).to(device) * 1e-5);
        for a in [lower(x) * 1e20, twice(n), near] {
            let (values, vectors) = a.tril(0).eigh();
            let alone = a.eigvalsh();
            lazuli::eval([&values, &vectors, &alone]).unwrap();
            let magnitude = largest(&values);
            let same = (&vectors * values.unsqueeze(-2)).matmul(transposed(&vectors));
            assert_small(&(same - &a), magnitude, 20.0 * n as f64);
            let identity = Tensor::eye(n, dtype).to(device);
            assert_small(&(transposed(&vectors).matmul(&vectors) - identity), 1.0, 20.0 * n as f64);
            assert_small(&(&values - alone), magnitude, 10.0);
            assert!((values.slice(-1, 1..) - values.slice(-1, ..-1)).ge(0.0).all(..).item::<bool>().unwrap());
        }
    });
}

#[test]
fn singular_values_and_vectors() {
    on_some_devices(|device, n, dtype| {
        let wide = random(&[n, n + 2], dtype, 70 + n as u64).to(device);
        let square = random(&[2, n, n], dtype, 80 + n as u64).to(device);
        // One row is the sum of others.
        let dependent = Tensor::cat([&wide, &wide.sum_keepdim(0)], 0) * 1e-20;
        for a in [square, dependent] {
            let (u, s, vh) = a.svd();
            let alone = a.svdvals();
            lazuli::eval([&u, &s, &vh, &alone]).unwrap();
            let k = s.shape().unwrap().last().copied().unwrap();
            let same = (&u * s.unsqueeze(-2)).matmul(&vh);
            assert_small(&(same - &a), largest(&s), 20.0 * n as f64);
            let identity = Tensor::eye(k, dtype).to(device);
            assert_small(&(transposed(&u).matmul(&u) - &identity), 1.0, 20.0 * n as f64);
            assert_small(&(vh.matmul(transposed(&vh)) - &identity), 1.0, 20.0 * n as f64);
            assert_small(&(&s - alone), largest(&s), 10.0 * n as f64);
            assert!(s.slice(-1, -1..).ge(0.0).all(..).item::<bool>().unwrap());
            assert!((s.slice(-1, ..-1) - s.slice(-1, 1..)).ge(0.0).all(..).item::<bool>().unwrap());
        }
    });
}

#[test]
fn pseudoinverses_and_ranks() {
    on_some_devices(|device, n, dtype| {
        // One row is the sum of others.
        let wide = random(&[n, n + 2], dtype, 70 + n as u64).to(device);
        let a = Tensor::cat([&wide, &wide.sum_keepdim(0)], 0);
        let (inverse, rank) = (a.pinv(), a.matrix_rank());
        lazuli::eval([&inverse, &rank]).unwrap();
        assert_eq!(rank.item::<i64>().unwrap(), n as i64);
        let condition = largest(&a) * largest(&inverse);
        assert_small(&(a.matmul(&inverse).matmul(&a) - &a), largest(&a), 50.0 * n as f64 * condition);
        let product = a.matmul(&inverse);
        assert_small(&(transposed(&product) - &product), 1.0, 50.0 * n as f64 * condition);
    });
}

#[test]
fn eigenvalues_of_what_has_few_or_none() {
    both_ways().into_iter().for_each(few_or_none_on);
}

fn few_or_none_on(device: Device) {
    let on = |x: Tensor| x.to(&device);
    let none = on(Tensor::zeros([0, 0], DType::F32));
    assert!(none.eigh().0.to_vec::<f32>().unwrap().is_empty());
    assert_eq!(none.svd().2.shape().unwrap(), Shape::from([0, 0]));
    assert_eq!(none.matrix_rank().item::<i64>().unwrap(), 0);
    let empty = on(Tensor::zeros([3, 0], DType::F32));
    assert_eq!(empty.pinv().shape().unwrap(), Shape::from([0, 3]));
    assert!(empty.svdvals().to_vec::<f32>().unwrap().is_empty());
    let batch = on(Tensor::zeros([0, 3, 3], DType::F32));
    assert!(batch.eigh().1.to_vec::<f32>().unwrap().is_empty());
    assert!(batch.pinv().to_vec::<f32>().unwrap().is_empty());
    for n in [1, 3] {
        let zeros = on(Tensor::zeros([n, n], DType::F64));
        let (values, vectors) = zeros.eigh();
        assert_eq!(largest(&values), 0.0);
        assert_small(&(transposed(&vectors).matmul(&vectors) - on(Tensor::eye(n, DType::F64))), 1.0, 20.0);
        assert_eq!(largest(&zeros.pinv()) + largest(&zeros.svdvals()), 0.0);
        assert_eq!(zeros.matrix_rank().item::<i64>().unwrap(), 0);
        let nan = zeros + f64::NAN;
        for x in [nan.eigh().0, nan.eigh().1, nan.svd().1, nan.svdvals(), nan.pinv()] {
            assert!(x.isnan().any(..).item::<bool>().unwrap());
        }
    }
}

#[test]
fn vectors_of_equal_values() {
    for (device, dtype) in both_ways().into_iter().flat_map(|device| WIDE.map(|dtype| (device, dtype))) {
        let n = 14;
        let (basis, _) = random(&[n, n], dtype, 5).to(&device).qr();
        let identity = Tensor::eye(n, dtype).to(&device);
        for few in [1.0, 2.0, 7.0] {
            // As many values as that, each many times.
            let values = Tensor::arange(0.0, n as f64, 1.0).remainder(few).cast(dtype).to(&device);
            let a = (&basis * values).matmul(transposed(&basis)) + &identity * 0.5;
            let a = a.tril(0) + transposed(&a.tril(-1));
            let ((values, vectors), (u, s, vh)) = (a.eigh(), a.svd());
            lazuli::eval([&values, &vectors, &u, &s, &vh]).unwrap();
            let magnitude = largest(&values);
            let same = (&vectors * &values).matmul(transposed(&vectors));
            assert_small(&(same - &a), magnitude, 10.0 * n as f64);
            assert_small(&((&u * &s).matmul(&vh) - &a), magnitude, 10.0 * n as f64);
            for orthonormal in [vectors, u, transposed(&vh)] {
                assert_small(
                    &(transposed(&orthonormal).matmul(&orthonormal) - &identity),
                    1.0,
                    20.0 * n as f64,
                );
            }
        }
    }
}

/// From 640 rows on a panel of columns at a time, the last of which is not full.
#[test]
fn large_matrices_are_taken_by_panels() {
    const N: usize = 650;
    let device = Device::cpu();
    let noise = random(&[N, N], DType::F32, 1).to(&device);
    let a = noise.matmul(transposed(&noise)) / N as f64 + Tensor::eye(N, DType::F32).to(&device);
    let lower = by_kernels(|| a.cholesky(false));
    lazuli::eval([&lower]).unwrap();
    assert_small(&(lower.matmul(transposed(&lower)) - &a), largest(&a), 40.0);
    assert_eq!(largest(&lower.triu(1)), 0.0);

    // More rows than columns, and pivots from all panels.
    let x = random(&[N + 50, N], DType::F32, 2).to(&device);
    let x = Tensor::cat([&(x.slice(1, ..1) * 0.0), &x.slice(1, 1..)], 1);
    let (p, l, u) = by_kernels(|| x.lu());
    lazuli::eval([&p, &l, &u]).unwrap();
    assert_small(&(p.matmul(&l).matmul(&u) - &x), largest(&x), 400.0);
    assert!(largest(&l) <= 1.0 && largest(&l.triu(1)) == 0.0);

    let x = random(&[N, N], DType::F64, 3).to(&device) * (1.0 - Tensor::eye(N, DType::F64).to(&device));
    let b = random(&[N, 3], DType::F64, 4).to(&device);
    let solved = by_kernels(|| x.solve(&b));
    lazuli::eval([&solved]).unwrap();
    assert_small(&(x.matmul(&solved) - &b), largest(&x) * largest(&solved), 20.0 * N as f64);
}

/// Triangles of several blocks, the last of which is not full, also where numbers grow from row to row.
#[test]
fn triangles_are_solved_block_by_block() {
    for (device, n, dtype) in [
        (Device::interpreter(), 37, DType::F64),
        (Device::cpu_interpreted(), 40, DType::F32),
        (Device::cpu(), 100, DType::F32),
    ] {
        let t = (random(&[2, n, n], dtype, 1).to(&device) * 0.3).tril(0)
            + Tensor::eye(n, dtype).to(&device) * 2.0;
        let beyond = random(&[n, n], dtype, 2).to(&device).triu(1);
        let b = random(&[2, n, 5], dtype, 3).to(&device);
        for is_unit in [false, true] {
            let whole = if is_unit { t.tril(-1) + Tensor::eye(n, dtype).to(&device) } else { t.clone() };
            let x = (&t + &beyond).solve_triangular(&b, false, true, is_unit);
            lazuli::eval([&x, &whole]).unwrap();
            assert_small(&(whole.matmul(&x) - &b), largest(&whole) * largest(&x), 10.0 * n as f64);
            let turned = transposed(&(&t + transposed(&beyond.t())));
            let y = turned.solve_triangular(&b, true, true, is_unit);
            lazuli::eval([&y]).unwrap();
            assert_small(
                &(transposed(&whole).matmul(&y) - &b),
                largest(&whole) * largest(&y),
                10.0 * n as f64,
            );
        }
    }
}
