//! Linear algebra by a library, beside the kernels of its decomposition, and between kernels.

use lazuli::{DType, Device, Tensor};

use super::{assert_small, by_kernels, largest, random, transposed};

/// What a library makes is what its decomposition into operations makes; also within a function that is traced.
#[test]
fn a_library_and_the_decomposition_agree() {
    type Results = (Vec<Tensor>, (Tensor, Tensor));
    let all = |(a, b): (Tensor, Tensor)| -> Results {
        let positive = a.matmul(transposed(&a)) + Tensor::eye(9, DType::F64);
        let (p, l, u) = a.lu();
        let (q, r) = a.qr();
        let (sign, logarithm) = a.slogdet();
        let (values, vectors) = positive.eigh();
        let (left, singular, right) = a.svd();
        let lower = positive.cholesky(false);
        let triangle = lower.solve_triangular(&b, false, true, false);
        let least = a.slice(-1, ..5).lstsq(&b);
        let wide = a.slice(-2, ..5).lstsq(b.slice(-2, ..5));
        let solved = a.solve(&b);
        // Vectors may have either sign.
        let signless = [vectors.abs(), left.abs(), right.abs()];
        let results = [p, l, u, q, r, a.det(), sign, logarithm, a.inv(), values, singular, lower, triangle]
            .into_iter()
            .chain([least, wide, solved, a.svdvals(), positive.eigvalsh()])
            .chain(signless)
            .collect::<Vec<Tensor>>();
        let floats = |x: &Tensor| x.square().sum(..);
        let loss = results.iter().map(floats).reduce(|sum, x| sum + x).unwrap();
        let gradients = lazuli::grad(&loss, &(a, b));
        (results, gradients)
    };
    let a = random(&[2, 9, 9], DType::F64, 11).to(&Device::cpu());
    let b = random(&[2, 9, 2], DType::F64, 12).to(&Device::cpu());
    lazuli::eval([&a, &b]).unwrap();
    let function = lazuli::compile(all);
    let traced = function.call((&a, &b)).unwrap();
    let again = function.call((&a, &b)).unwrap();
    let (composed, of_composed) = by_kernels(|| all((a.clone(), b.clone())));
    lazuli::eval(composed.iter().chain([&of_composed.0, &of_composed.1])).unwrap();
    for (made, of_made) in [all((a, b)), traced, again] {
        lazuli::eval(made.iter().chain([&of_made.0, &of_made.1])).unwrap();
        let gradients = [(&of_composed.0, &of_made.0), (&of_composed.1, &of_made.1)];
        for (number, (composed, made)) in composed.iter().zip(&made).chain(gradients).enumerate() {
            let difference = largest(&(composed - made)) / largest(made);
            assert!(difference < 1e-8, "result {number}: {difference}");
        }
    }
}

#[test]
fn a_library_reads_what_the_decomposition_reads() {
    let device = Device::cpu();
    for n in [4, 20] {
        let x = random(&[n, n], DType::F64, 90).to(&device);
        let beyond = Tensor::full([n, n], f64::NAN, DType::F64).triu(1).to(&device);
        let symmetric = x.tril(0) + transposed(&x.tril(-1));
        let (values, vectors) = (x.tril(0) + &beyond).eigh();
        lazuli::eval([&values, &vectors]).unwrap();
        assert_small(&(symmetric.eigvalsh() - &values), largest(&values), 10.0);
        let same = (&vectors * &values).matmul(transposed(&vectors));
        assert_small(&(same - &symmetric), largest(&values), 20.0 * n as f64);
        let t = x.tril(0) + Tensor::eye(n, DType::F64) * 4.0;
        let solved = (&t + &beyond).solve_triangular(&x, false, true, false);
        assert_small(&(t.matmul(&solved) - &x), largest(&t) * largest(&solved), 10.0 * n as f64);
    }
    // Operands on two devices are not mixed.
    let (here, there) = (Tensor::eye(9, DType::F32).to(&device), Tensor::ones([9, 2], DType::F32));
    let there = there.to(&Device::cpu_virtual(1));
    let fft = here.rfft(0).0.fft(&here.rfft(0).0.to(&Device::cpu_virtual(1)), 1).0;
    for mixed in
        [here.solve(&there), here.lstsq(&there), here.solve_triangular(&there, true, true, false), fft]
    {
        let error = mixed.shape().unwrap_err().to_string();
        assert!(error.contains("operands are on cpu"), "{error}");
    }
}

/// What kernels need before a library and after it is computed once, and stored unless it costs next to nothing.
#[test]
fn what_a_library_waits_for_is_computed_once() {
    let device = Device::cpu();
    let x = random(&[40, 40], DType::F32, 21).to(&device);
    x.eval().unwrap();
    let product = x.matmul(transposed(&x));
    let positive = &product + Tensor::eye(40, DType::F32) * 50.0;
    let whitened = positive.cholesky(false).solve_triangular(&product, false, true, false);
    let (values, vectors) = (&whitened + transposed(&whitened)).eigh();
    let result = (vectors * values).matmul(&product);
    let text = result.explain().unwrap().to_string();
    for made in ["cholesky of f32 [40, 40]", "solve_triangular of f32 [40, 40] and f32 [40, 40]", "eigh of"] {
        assert!(text.contains(made), "{text}");
    }
    // For a GPU there are kernels.
    let there = result.compile_for(&lazuli::Target::cuda("sm_90")).unwrap();
    assert!(there.source().contains("cholesky") && there.source().contains("eigh"));
    // The product, and the result.
    assert_eq!(result.compile_for(&lazuli::Target::cpu()).unwrap().kernels().len(), 2);
    // Of this thread alone: others run tests meanwhile.
    let (evaluated, profile) = lazuli::profile(|| result.eval());
    evaluated.unwrap();
    // The product with what is factorised, what has eigenvalues, and the result.
    assert_eq!(profile.kernels().iter().map(|kernel| kernel.launches).sum::<u64>(), 3);
    assert!(product.is_evaluated());
    // A batch, and each of its matrices, on one thread and on several.
    let batch = random(&[300, 7, 7], DType::F32, 22).to(&device);
    let solved = batch.solve(Tensor::ones([7, 1], DType::F32));
    let vectors = batch.svd().0;
    lazuli::eval([&solved, &vectors]).unwrap();
    for number in [0, 137, 299] {
        let one = batch.select(0, number);
        assert_eq!(one.svd().0.to_vec::<f32>().unwrap(), vectors.select(0, number).to_vec::<f32>().unwrap());
        let alone = one.solve(Tensor::ones([7, 1], DType::F32));
        assert_small(&(alone - solved.select(0, number)), largest(&solved), 0.0);
    }
}

/// A function whose kernels a library stands between: what it uses besides its inputs, results that it gives as they are, and what is
/// computed once for several stages.
#[test]
fn functions_in_stages() {
    let device = Device::cpu();
    let noise = random(&[12, 12], DType::F64, 31).to(&device);
    let filter = lazuli::compile(move |(x, gain): (Tensor, Tensor)| {
        let positive =
            x.matmul(transposed(&x)) + &noise * transposed(&noise) + Tensor::eye(12, DType::F64) * 50.0;
        let lower = positive.cholesky(false);
        let next = lower.solve_triangular(&gain, false, true, false) + noise.matmul(&gain);
        let (values, _) = (next.matmul(transposed(&next)) + positive).eigh();
        (lower, next.det(), values, gain * 2.0, noise.inv().matmul(&x))
    });
    let (x, gain) = (random(&[12, 12], DType::F64, 32), random(&[12, 12], DType::F64, 33));
    let executable = filter.executable((&x, &gain)).unwrap();
    let text = executable.explain().unwrap().to_string();
    assert!(text.contains("cholesky of f64 [12, 12]") && text.contains("eigh of f64 [12, 12]"), "{text}");
    let there = executable.compile_for(&lazuli::Target::cuda("sm_90")).unwrap();
    assert!(there.source().contains("cholesky") && there.source().contains("eigh"));
    for seed in 40..43 {
        let (x, gain) = (random(&[12, 12], DType::F64, seed), random(&[12, 12], DType::F64, seed + 10));
        let (lower, det, values, twice, whitened) = filter.call((&x, &gain)).unwrap();
        let other = by_kernels(|| {
            let noise = random(&[12, 12], DType::F64, 31);
            let positive =
                x.matmul(transposed(&x)) + &noise * transposed(&noise) + Tensor::eye(12, DType::F64) * 50.0;
            let lower = positive.cholesky(false);
            let next = lower.solve_triangular(&gain, false, true, false) + noise.matmul(&gain);
            let values = (next.matmul(transposed(&next)) + positive).eigvalsh();
            [lower, next.det(), values, &gain * 2.0, noise.inv().matmul(&x)]
        });
        for (number, (made, other)) in [lower, det, values, twice, whitened].iter().zip(&other).enumerate() {
            let difference = largest(&(made - other)) / largest(other);
            assert!(difference < 1e-9, "result {number}: {difference}");
        }
    }
    // Inputs may be given away.
    let double = lazuli::compile(|x: Tensor| (x.inv() + &x, &x * 2.0));
    let (x, kept) = (random(&[40, 40], DType::F64, 50), random(&[40, 40], DType::F64, 50));
    lazuli::eval([&x, &kept]).unwrap();
    let (sum, twice) = double.call(x.donate()).unwrap();
    assert_eq!(largest(&(twice - &kept * 2.0)), 0.0);
    assert_small(&(sum - kept.inv() - &kept), largest(&kept.inv()) + largest(&kept), 4.0);
    // What is evaluated within is told as ever.
    let inner = lazuli::compile(|x: Tensor| Tensor::scalar(x.inv().sum(..).item::<f64>().unwrap_or(7.0)));
    assert_eq!(inner.call(&kept).unwrap().item::<f64>().unwrap(), 7.0);
}

/// Steps of a scan that are recorded one after the other go to a library as those of a loop do, each on its own matrices and lines.
#[test]
fn steps_of_scans_are_by_a_library() {
    let device = Device::cpu();
    let x = random(&[20, 20], DType::F64, 61).to(&device);
    // Lines of 64 and less are products there.
    let wave = Tensor::rfftfreq(80, 1.0, DType::F64).to(&device);
    lazuli::eval([&x, &wave]).unwrap();
    let step = move |u: &Tensor| {
        let (re, im) = u.pad(&[(0, 0), (0, 60)], 0).rfft(1);
        let slope = (-&wave * &im).irfft(&wave * &re, 80, 1).narrow(1, 0, 20);
        let (left, values, right) = (u + slope * 0.1).svd();
        let next = (left * (values * 0.9 + 0.1)).matmul(right);
        // A scan within: its steps are made of the outer step's values.
        let ([solved], []) =
            lazuli::iterate(2, [&next], |[v], _| ([(v * 0.1 + Tensor::eye(20, DType::F64)).solve(u)], []));
        next + solved * 0.1
    };
    let looped = (0..3).fold(x.clone(), |u, _| step(&u));
    let ([scanned], []) = lazuli::iterate(3, [&x], |[u], _| ([step(u)], []));
    let gradient = |u: &Tensor| lazuli::grad(&u.square().sum(..), &x);
    for (own, other) in [(&scanned, &looped), (&gradient(&scanned), &gradient(&looped))] {
        let count = |x: &Tensor| x.explain().unwrap().to_string().matches("by a library").count();
        assert_eq!(count(own), count(other));
        assert!(count(own) >= 12, "{}", count(own));
        assert!(largest(&(own - other)) <= 1e-12 * largest(other));
    }
    let own = step.clone();
    let steps = lazuli::compile(move |x: Tensor| lazuli::iterate(3, [&x], |[u], _| ([own(u)], [])).0);
    let [traced] = steps.call(&x).unwrap();
    assert!(largest(&(traced - &looped)) <= 1e-12 * largest(&looped));
    // What begins as a constant is anywhere, until it meets what is somewhere else than libraries.
    let there = Device::interpreter();
    let added = random(&[80], DType::F64, 62).to(&there);
    let step = |u: &Tensor| u.rfft(0).0.irfft(u.rfft(0).1, 80, 0) * 0.5 + &added;
    let ([own], []) = lazuli::iterate(3, [Tensor::ones([80], DType::F64)], |[u], _| ([step(u)], []));
    let other = (0..3).fold(Tensor::ones([80], DType::F64), |u, _| step(&u));
    assert_eq!(own.device().unwrap(), there);
    assert!(largest(&(own - other)) <= 1e-12);
}
