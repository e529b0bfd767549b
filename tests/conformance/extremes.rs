//! Positions of extreme values in every dtype and schedule: of equal values the first, and before all the first NaN.

use lazuli::{DType, Device, Target, Tensor};

use crate::common::data::mixed;
use crate::common::{Output, check, check_fused, exact};

fn positions(x: &Tensor, axes: &[isize]) -> Vec<Output> {
    let (max, at_max) = x.max_with_indices(axes);
    vec![
        exact(format!("argmax along {axes:?}"), x.argmax(axes)),
        exact(format!("argmin along {axes:?}"), x.argmin_keepdim(axes)),
        exact(format!("max along {axes:?}"), max),
        exact(format!("its position along {axes:?}"), at_max),
    ]
}

#[test]
fn every_dtype() {
    let shapes = [[12, 7, 3], [3, 100, 4], [4, 9, 66]];
    for (number, dtype) in DType::ALL.into_iter().enumerate() {
        // Every shape with two dtypes, and with several of the others.
        let all = matches!(dtype, DType::F32 | DType::I64);
        let of_dtype = shapes.into_iter().enumerate().filter(|(turn, _)| all || number % 3 == *turn);
        for (_, shape) in of_dtype {
            check(&format!("positions in {dtype} {shape:?}"), |device| {
                let x = mixed(device, dtype, shape, 0, 1);
                let axes: [&[isize]; 7] = [&[0], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]];
                axes.into_iter().flat_map(|axes| positions(&x, axes)).collect()
            });
        }
    }
}

/// Rows of many equal values, at all lengths around a lane, a warp and a block, and of several blocks.
#[test]
fn every_length() {
    for length in [1, 2, 8, 9, 31, 32, 33, 1023, 1024, 1025, 16_384, 40_000, 100_001] {
        check_fused(&format!("rows of {length}"), |device| {
            let values = (0..3 * length).map(|n| ((n * 7919) % 5) as f32 - 2.0).collect();
            let x: Tensor = Tensor::from_vec::<f32>(values, [3, length]).to(device);
            let mut outputs = positions(&x, &[1]);
            outputs.extend(positions(&x.t(), &[0]));
            outputs.extend(positions(&x, &[0, 1]));
            outputs.push(exact("backwards", x.flip(1).argmax(1)));
            outputs.push(exact("of a transpose", x.t().argmax(..)));
            outputs.push(exact("of what is computed", (&x * &x - 1.0).argmin(1)));
            outputs
        });
    }
    check_fused("columns", |device| {
        let x = mixed(device, DType::F32, [5000, 40], 3, 7);
        positions(&x, &[0]).into_iter().chain(positions(&x.reshape([50, 100, 40]), &[0, 1])).collect()
    });
}

/// Where nothing exceeds what a partial result starts with, and where signs of zeros must not matter.
#[test]
fn values_at_the_edge() {
    for length in [3, 40, 5000, 70_000] {
        check_fused(&format!("edges of {length}"), |device| {
            let row = |value: f64| Tensor::from_vec(vec![value as f32; length], [length]).to(device);
            let at =
                |device: &Device, n: usize| Tensor::arange(0i64, length as i64, 1).to(device).eq(n as i64);
            let nan = at(device, length / 2).where_(f64::NAN, row(f64::INFINITY));
            let zeros = at(device, length - 1).where_(0.0, row(-0.0));
            let odd = at(device, length - 2).where_(-1e30, row(f64::INFINITY));
            let mut outputs = Vec::new();
            for x in [row(f64::NEG_INFINITY), row(f64::INFINITY), row(f64::NAN), nan, zeros, odd] {
                outputs.push(exact("argmax", x.argmax(0)));
                outputs.push(exact("argmin", x.argmin(0)));
            }
            for dtype in [DType::I8, DType::U8, DType::I32, DType::I64, DType::U32, DType::Bool] {
                let (least, most) = match dtype.iinfo() {
                    Some(info) => (info.min, info.max),
                    None => (0, 1),
                };
                for value in [least, most] {
                    let x = Tensor::from_vec(vec![value; length], [length]).to(device).cast(dtype);
                    outputs.push(exact(format!("{dtype} argmax"), x.argmax(0)));
                    outputs.push(exact(format!("{dtype} argmin"), x.argmin(0)));
                }
            }
            outputs
        });
    }
}

#[test]
fn one_kernel_reads_once() {
    let x = Tensor::from_vec(vec![1.0f32; 1 << 20], [1 << 10, 1 << 10]);
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for y in [x.argmax(..), x.argmax(0), x.argmin(1), x.exp().argmax(1)] {
            let explanation = y.compile_for(&target).unwrap().explain().clone();
            assert_eq!(explanation.kernels(), 1, "{explanation}");
            assert_eq!(explanation.bytes_moved(), explanation.least_bytes(), "{explanation}");
        }
    }
}
