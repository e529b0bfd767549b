//! Proves that what users write as a whole comes out right: whole pipelines, values that are both results and
//! intermediates, many results at once, deep chains, and evaluation in steps.

use lazuli::{DType, Fusion, Tensor, with_fusion};

use crate::common::data::{floats, ordinary};
use crate::common::{check, check_fused, devices, exact, near};

#[test]
fn normalise_then_activate() {
    for (shape, axis) in [(&[50, 300][..], 1), (&[300, 50], 0), (&[20, 31, 3], 1)] {
        check(&format!("normalise {shape:?} along {axis}"), |device| {
            let x = floats(device, DType::F32, shape, 5.0, 1);
            let y = (&x - x.mean_keepdim(axis)) / (x.var_keepdim(axis, 0) + 1e-5).sqrt();
            vec![
                near("normalised", y.clone(), 1e-5, 1e-5),
                near("gelu", (&y * 1.5 + 0.25).gelu(), 1e-5, 1e-5),
            ]
        });
    }
    check_fused("normalise an image", |device| {
        let x = floats(device, DType::F32, [150, 151, 3], 5.0, 2);
        vec![near("normalised", (&x - x.mean(..)) / (x.var(.., 0) + 1e-5).sqrt(), 1e-5, 1e-5)]
    });
}

#[test]
fn where_then_multiply() {
    for dtype in [DType::F32, DType::F64, DType::I32] {
        check(&format!("where then mul {dtype}"), |device| {
            let x = ordinary(device, dtype, [1003], 3);
            let y = &x * 3;
            vec![exact("masked", x.gt(1).where_(&x * 2, &x - 2) * &y), exact("y", y)]
        });
    }
}

/// An optimiser step: several results over one space.
#[test]
fn adam() {
    check("adam", |device| {
        let [w, g, m, v] = [1, 2, 3, 4].map(|seed| floats(device, DType::F32, [37, 29], 1.0, seed));
        let v = v.square();
        let m2 = &m * 0.9 + &g * 0.1;
        let v2 = &v * 0.999 + g.square() * 0.001;
        let step = &m2 / (v2.sqrt() + 1e-8) * 1e-3;
        vec![exact("w", &w - &step), exact("m", m2), exact("v", v2)]
    });
}

#[test]
fn cross_entropy_and_attention() {
    check("cross entropy", |device| {
        let logits = floats(device, DType::F32, [32, 100], 4.0, 5);
        let targets = (Tensor::arange(0i64, 32, 1).to(device) * 37 % 100).unsqueeze(1);
        let shifted = &logits - logits.max_keepdim(1);
        let log_softmax = &shifted - shifted.exp().sum_keepdim(1).log();
        let picked = targets.eq(Tensor::arange(0i64, 100, 1).to(device)).where_(&log_softmax, 0.0).sum(1);
        vec![near("loss", -picked.mean(..), 1e-5, 1e-6), near("log softmax", log_softmax, 1e-5, 1e-5)]
    });
    check("causal mask", |device| {
        let scores = floats(device, DType::F32, [2, 20, 20], 4.0, 6);
        let place = Tensor::arange(0i64, 20, 1).to(device);
        let masked = place.unsqueeze(0).gt(place.unsqueeze(1)).where_(f64::NEG_INFINITY, &scores);
        vec![near("attention", masked.softmax(-1), 1e-5, 1e-7)]
    });
}

#[test]
fn many_results_of_one_input() {
    check("many", |device| {
        let x = ordinary(device, DType::F32, [40, 52], 7);
        let y = &x * 2.0;
        let z = y.relu() + &x;
        let rows = z.sum_keepdim(1);
        let columns = z.sum_keepdim(0);
        vec![
            exact("x + y", &x + &y),
            exact("y", y.clone()),
            exact("z", z.clone()),
            exact("rows", rows.clone()),
            exact("columns", columns.clone()),
            exact("rows and columns", &rows + &columns),
            exact("z centred", &z * 64.0 - &rows - &columns),
            exact("transposed", z.t()),
            exact("all", z.sum(..)),
            exact("same twice", z.clone()),
            exact("input", x.clone()),
        ]
    });
}

#[test]
fn deep_chains() {
    check_fused("deep", |device| {
        let mut x = ordinary(device, DType::F32, [100], 8);
        for i in 0..400 {
            x = if i % 2 == 0 { &x * 0.5 } else { &x + 1.0 };
        }
        vec![exact("chain", x)]
    });
    check("wide", |device| {
        // More inputs than any kernel takes.
        let mut sum = ordinary(device, DType::I64, [33], 0);
        for seed in 1..200 {
            sum = sum + ordinary(device, DType::I64, [33], seed);
        }
        vec![exact("sum", sum)]
    });
}

/// Results do not depend on when they are asked for.
#[test]
fn evaluation_in_steps() {
    for device in devices() {
        for fusion in [Fusion::On, Fusion::Off] {
            with_fusion(fusion, || {
                // Rows so short are added up in one order wherever that is.
                let x = floats(&device, DType::F32, [33, 12], 2.0, 9);
                let whole = ((&x * 3.0).exp() + x.sum_keepdim(1)).to_vec::<f32>().unwrap();
                let y = &x * 3.0;
                y.eval().unwrap();
                let sum = x.sum_keepdim(1);
                sum.eval().unwrap();
                let steps = (y.exp() + &sum).to_vec::<f32>().unwrap();
                assert_eq!(whole, steps, "{device}, {fusion:?}");
                assert_eq!(whole, (y.exp() + sum).to_vec::<f32>().unwrap());
            });
        }
    }
}

/// The same on every run, however the work is spread over threads.
#[test]
fn results_repeat() {
    for device in devices() {
        let run = || {
            let x = floats(&device, DType::F32, [100_000], 1.0, 10);
            (x.sum(..).item::<f32>().unwrap().to_bits(), x.var(.., 1).item::<f32>().unwrap().to_bits())
        };
        let first = run();
        for _ in 0..5 {
            assert_eq!(run(), first, "{device}");
        }
    }
}
