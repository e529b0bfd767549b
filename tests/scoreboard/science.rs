//! Formulas: finance, distances, counting, simulation.

use lazuli::{DType, ScatterReduction, Tensor};

use crate::inputs::{Group, Inputs, row};

pub fn groups() -> Vec<Group> {
    vec![formulas(), pairs()]
}

fn vectors<const N: usize>(x: &mut Inputs) -> [Tensor; N] {
    let count = x.at(1 << 20, 101);
    [(); N].map(|()| x.positive([count]))
}

/// The normal distribution function.
fn normal(x: &Tensor) -> Tensor {
    ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}

fn formulas() -> Group {
    let rows = vec![
        row("Black-Scholes: call and put", |x| {
            let [spot, strike, years, volatility] = vectors(x);
            let deviation = volatility * years.sqrt();
            let d1 = ((&spot / &strike).log() + &years * 0.02) / &deviation + &deviation * 0.5;
            let d2 = &d1 - deviation;
            let present = strike * (years * -0.02).exp();
            let call = &spot * normal(&d1) - &present * normal(&d2);
            vec![&call - spot + present, call]
        }),
        row("haversine distances", |x| {
            let [latitude, longitude, other_latitude, other_longitude] = vectors(x);
            let half = |a: &Tensor, b: &Tensor| ((a - b) * 0.5).sin().square();
            let h = half(&latitude, &other_latitude)
                + latitude.cos() * other_latitude.cos() * half(&longitude, &other_longitude);
            vec![h.sqrt().asin() * (2.0 * 6371.0)]
        }),
        row("polynomial of degree 12, Horner", |x| {
            let [x] = vectors(x);
            vec![(1..12).fold(&x * 0.5 + 1.0, |sum, n| sum * &x + 1.0 / n as f64)]
        }),
        row("Mandelbrot, 8 steps", |x| {
            let (rows, columns) = (x.at(1024, 9), x.at(1024, 11));
            let imaginary = x.floats([rows, 1]);
            let real = x.floats([1, columns]);
            let (mut a, mut b) = (real.zeros_like() + &imaginary * 0.0, &imaginary + real.zeros_like());
            let mut count = (&a * 0.0).cast(DType::I32);
            for _ in 0..8 {
                let (next_a, next_b) = (&a * &a - &b * &b + &real, &a * &b * 2.0 + &imaginary);
                (a, b) = (next_a.clamp(-4.0, 4.0), next_b.clamp(-4.0, 4.0));
                count = count + (&a * &a + &b * &b).lt(4.0).cast(DType::I32);
            }
            vec![count]
        }),
        row("product of complex numbers", |x| {
            let shape = [x.at(1 << 19, 51), 2];
            let (a, b) = (x.floats(shape), x.floats(shape));
            let part = |x: &Tensor, n: isize| x.select(1, n);
            let real = part(&a, 0) * part(&b, 0) - part(&a, 1) * part(&b, 1);
            let imaginary = part(&a, 0) * part(&b, 1) + part(&a, 1) * part(&b, 0);
            vec![Tensor::stack(&[&real, &imaginary], 1)]
        }),
        row("bytes to f16, scaled by row", |x| {
            let shape = [x.at(4096, 3), x.at(1024, 37)];
            let (quantised, scale) = (x.bytes(shape), x.positive([shape[0], 1]));
            vec![((quantised.cast(DType::F32) - 128.0) * scale).cast(DType::F16)]
        }),
        row("mean of a Monte Carlo price", |x| {
            let shape = [x.at(1 << 20, 101)];
            let end = (Tensor::randn(shape, 9) * 0.2 - 0.02).exp();
            vec![(end - 1.0).relu().mean(..)]
        }),
        row("outer product, scaled", |x| {
            let count = x.at(2048, 9);
            let (a, b) = (x.floats([count, 1]), x.floats([count]));
            vec![(a * b).tanh()]
        }),
    ];
    ("formulas", rows)
}

/// Points of three dimensions, one below and one beside the other.
fn points(x: &mut Inputs) -> (Tensor, Tensor) {
    let count = x.at(2048, 9);
    let points = x.floats([count, 3]);
    (points.unsqueeze(1), points.unsqueeze(0))
}

fn pairs() -> Group {
    let rows = vec![
        row("pairwise distances", |x| {
            let (a, b) = points(x);
            vec![(a - b).square().sum(2).sqrt()]
        }),
        row("kernel matrix of a Gaussian", |x| {
            let (a, b) = points(x);
            vec![((a - b).square().sum(2) * -0.5).exp()]
        }),
        row("nearest neighbour's distance", |x| {
            let (a, b) = points(x);
            let far = Tensor::eye(a.shape().unwrap()[0], DType::F32) * 1e9;
            vec![((a - b).square().sum(2) + far).min(1)]
        }),
        row("k-means: nearest centre", |x| {
            let (count, centres) = (x.at(100_000, 20), x.at(16, 4));
            let (points, centres) = (x.floats([count, 1, 3]), x.floats([1, centres, 3]));
            vec![(points - centres).square().sum(2).argmin(1)]
        }),
        row("forces between bodies", |x| {
            let (a, b) = points(x);
            let away = b - a;
            let squared = away.square().sum_keepdim(2) + 1e-2;
            vec![(away / (&squared * squared.sqrt())).sum(1)]
        }),
        row("counts of 16 classes", |x| {
            let count = x.at(1 << 20, 101);
            let class = Tensor::arange(0i64, 16, 1).unsqueeze(1);
            vec![x.labels([count], 16).eq(class).cast(DType::I64).sum(1)]
        }),
        row("histogram of 32 bins", |x| {
            let count = x.at(1 << 20, 101);
            let bin = ((x.floats([count]) + 3.0) * (32.0 / 6.0)).floor();
            let bins = Tensor::arange(0.0f32, 32.0, 1.0).unsqueeze(1);
            vec![bin.eq(bins).cast(DType::I64).sum(1)]
        }),
        row("means of 16 classes", |x| {
            let count = x.at(1 << 18, 101);
            let (value, label) = (x.floats([count]), x.labels([count], 16));
            let is_class = label.eq(Tensor::arange(0i64, 16, 1).unsqueeze(1)).cast(DType::F32);
            vec![(&is_class * value).sum(1) / (is_class.sum(1) + 1e-6)]
        }),
        row("bincount of 256 bins", |x| {
            let count = x.at(1 << 20, 101);
            vec![x.labels([count], 256).bincount(256)]
        }),
        row("histogram of floats", |x| {
            let count = x.at(1 << 20, 101);
            vec![x.floats([count]).histc(64, -3.0, 3.0)]
        }),
        row("weighted histogram, normalised", |x| {
            let count = x.at(1 << 20, 101);
            let (bins, weights) = (x.labels([count], 100), x.positive([count]));
            vec![bins.bincount_with(100, &weights.square()) / count as f64]
        }),
        row("means of 16 classes, scattered", |x| {
            let (count, columns) = (x.at(1 << 16, 37), x.at(64, 5));
            let (values, labels) = (x.floats([count, columns]), x.labels([count, 1], 16));
            let at = labels.broadcast_to([count, columns]);
            let none = Tensor::zeros([16, columns], DType::F32);
            vec![none.scatter_reduce(0, &at, &values, ScatterReduction::Mean, false)]
        }),
        row("rank by counting the smaller", |x| {
            let count = x.at(4096, 21);
            let values = x.floats([count]);
            vec![values.unsqueeze(0).lt(values.unsqueeze(1)).cast(DType::I64).sum(1)]
        }),
    ];
    ("pairs and counts", rows)
}
