//! Proves products right whose terms are divided among blocks: many terms of few results, in every dtype, of sizes around the
//! parts, with what is before and after them.

use lazuli::{DType, Device, Target, Tensor, eval};

use crate::common::data::{floats, mixed, ordinary};
use crate::common::{check, check_fused, check_on_cpu, exact, near};

/// Rounding of so many terms of about 1.
fn bounds(terms: usize) -> (f64, f64) {
    (1e-5, 1e-6 * terms as f64)
}

/// Whether a core divides the terms.
fn is_divided(y: &Tensor) -> bool {
    y.compile_for(&Target::cpu()).unwrap().source().contains("partial_sums0")
}

#[test]
fn many_terms_of_few_results_are_divided() {
    let x = |shape: [usize; 2]| Tensor::randn(shape, 1);
    let long = x([100_000, 8]);
    for y in [
        long.t().matmul(&long),
        x([20_000, 100]).t().matmul(x([20_000, 33])),
        (&long - long.mean_keepdim(0)).t().matmul(&long),
        x([12, 100_000]).linear(x([20, 100_000]), None),
    ] {
        assert!(is_divided(&y), "{}", y.explain().unwrap());
    }
    // What has blocks enough, or few terms, is as it was.
    for y in [x([1000, 64]).t().matmul(x([1000, 64])), x([2000, 4096]).matmul(x([4096, 2000]))] {
        assert!(!is_divided(&y), "{}", y.explain().unwrap());
    }
}

#[test]
fn parts_are_those_of_plain_loops() {
    for [terms, rows, columns] in
        [[2048, 64, 64], [2049, 65, 63], [5000, 70, 130], [16_384, 8, 8], [40_001, 9, 17]]
    {
        let device = Device::cpu();
        let a = floats(&device, DType::F32, [terms, rows], 1.0, 1);
        let b = floats(&device, DType::F32, [terms, columns], 1.0, 2);
        let (left, right) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
        let mut expected = vec![0f64; rows * columns];
        for (left, right) in left.chunks(rows).zip(right.chunks(columns)) {
            for (place, sum) in expected.iter_mut().enumerate() {
                *sum += f64::from(left[place / columns]) * f64::from(right[place % columns]);
            }
        }
        let (lines, columns_of) = (a.t(), b.t());
        eval([&lines, &columns_of]).unwrap();
        for (name, y) in [
            ("both across", a.t().matmul(&b)),
            ("left along", lines.matmul(&b)),
            ("both along", lines.matmul(columns_of.t())),
            ("right along", a.t().matmul(columns_of.t())),
        ] {
            for (place, (got, expected)) in y.to_vec::<f32>().unwrap().iter().zip(&expected).enumerate() {
                let far = (f64::from(*got) - expected).abs();
                assert!(far <= 1e-7 * terms as f64, "{name} {terms} {rows}x{columns} at {place}: {far}");
            }
        }
    }
}

#[test]
fn every_dtype_has_parts() {
    check_on_cpu("parts", |device| {
        let mut outputs = Vec::new();
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let (a, b) =
                (floats(device, dtype, [3001, 50], 1.0, 1), floats(device, dtype, [3001, 40], 1.0, 2));
            let relative = dtype.finfo().unwrap().eps;
            let absolute = 2e-6 * 3001.0 * if dtype == DType::F64 { 1e-6 } else { 1.0 };
            outputs.push(near("product", a.t().matmul(&b), relative, absolute));
        }
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::U32, DType::I64] {
            let (a, b) = (ordinary(device, dtype, [3001, 50], 1), ordinary(device, dtype, [3001, 40], 2));
            outputs.push(exact("integers", a.t().matmul(&b)));
        }
        outputs
    });
}

#[test]
fn nan_and_infinity_stay_in_their_rows() {
    check_on_cpu("specials", |device| {
        let (relative, absolute) = bounds(3000);
        let a = floats(device, DType::F32, [3000, 50], 1.0, 1);
        let special = mixed(device, DType::F32, [3000, 50], 3, 977);
        let b = floats(device, DType::F32, [3000, 70], 1.0, 2);
        vec![
            near("left", special.t().matmul(&b), relative, absolute),
            near("right", b.t().matmul(&special), relative, absolute),
            near("zeros", (&a * 0.0).t().matmul(&b), 0.0, 0.0),
        ]
    });
}

#[test]
fn what_is_around_parts_is_in_their_kernels() {
    check_fused("around parts", |device| {
        let x = floats(device, DType::F32, [2100, 60], 1.0, 1);
        let y = floats(device, DType::F32, [2100, 70], 1.0, 2);
        let weights = floats(device, DType::F32, [2100, 1], 1.0, 3);
        let (bias, batch) = (y.select(0, 0), floats(device, DType::F32, [2, 2100, 48], 1.0, 4));
        let (relative, absolute) = bounds(2100);
        vec![
            near("weighted", (&x * &weights).t().matmul(&y), relative, absolute),
            near("bias", (x.t().matmul(&y) + bias).relu(), relative, absolute),
            near("two", x.t().matmul(&y) * x.square().t().matmul(&y), 1e-3, absolute * 300.0),
            near("batches", batch.transpose(1, 2).matmul(&batch), relative, absolute),
            near("stored across", x.t().matmul(&y).t().cast(DType::F16), 1e-3, absolute),
        ]
    });
}

#[test]
fn what_is_combined_otherwise_has_parts() {
    check_on_cpu("lifts", |device| {
        let x = floats(device, DType::F32, [33, 3000], 1.0, 1);
        let y = mixed(device, DType::F32, [40, 3000], 5, 613);
        let apart = |y: &Tensor| x.unsqueeze(1) - y.unsqueeze(0);
        vec![
            near(
                "distances",
                apart(&floats(device, DType::F32, [40, 3000], 1.0, 2)).square().sum(2),
                1e-5,
                1e-3,
            ),
            exact("shortest", (x.unsqueeze(1) + y.unsqueeze(0)).min(2)),
            exact("farthest", apart(&y).abs().max(2)),
        ]
    });
}

#[test]
fn parts_are_on_every_device() {
    check("parts everywhere", |device| {
        let (a, b) =
            (floats(device, DType::F32, [2500, 40], 1.0, 1), floats(device, DType::F32, [2500, 65], 1.0, 2));
        let (relative, absolute) = bounds(2500);
        vec![near("product", a.t().matmul(&b), relative, absolute)]
    });
}
