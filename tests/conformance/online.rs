//! Sums of exponentials, whose maximum may be found on the way: every schedule and length, and the values that a sum
//! below a maximum breaks on.

use lazuli::{DType, Device, Target, Tensor};

use crate::common::data::floats;
use crate::common::{Output, check, check_fused, devices, near};

/// Lengths around what a thread, a warp, a block and the registers of a block hold, and beyond.
const LENGTHS: [usize; 15] =
    [2, 9, 31, 32, 33, 100, 1023, 1024, 1025, 4099, 16_384, 20_000, 32_768, 40_000, 100_001];

fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        DType::F64 => 2f64.powi(-53),
        _ => 2f64.powi(-24),
    }
}

fn statistics(x: &Tensor, axis: isize) -> Vec<Output> {
    // A lane of columns adds up to 16,384 elements one after the other, a lane of rows a 32nd of them.
    let unit = unit(x.dtype().unwrap()) * if axis == 0 || x.shape().unwrap().rank() > 2 { 8.0 } else { 1.0 };
    let within = |name: &str, y: Tensor| near(format!("{name} along {axis}"), y, 64.0 * unit, 64.0 * unit);
    let max = x.max_keepdim(axis);
    let exp = (x - &max).exp();
    vec![
        near("softmax", x.softmax(axis), 64.0 * unit, 4.0 * unit * unit),
        within("log_softmax", x.log_softmax(axis)),
        within("logsumexp", x.logsumexp(axis)),
        within("sum", exp.sum(axis).log()),
        within("maximum", max),
    ]
}

#[test]
fn every_length() {
    for length in LENGTHS {
        let rows = if length > 5000 { 2 } else { 5 };
        let x = |device: &Device| floats(device, DType::F32, [rows, length], 10.0, length as u64);
        check_fused(&format!("rows of {length}"), |device| statistics(&x(device), 1));
        check_fused(&format!("softmax of rows of {length}"), |device| {
            vec![near("softmax", x(device).softmax(1), 64.0 * unit(DType::F32), 0.0)]
        });
    }
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        for length in [33, 1025, 20_000] {
            check_fused(&format!("{dtype} rows of {length}"), |device| {
                statistics(&floats(device, dtype, [3, length], 10.0, 2), 1)
            });
        }
    }
}

#[test]
fn columns_and_middle_axes() {
    for length in [1, 2, 9, 100, 1025, 4099, 20_000] {
        check_fused(&format!("columns of {length}"), |device| {
            let x = floats(device, DType::F32, [length, 37], 10.0, 3);
            let y = floats(device, DType::F32, [3, length, 8], 10.0, 4);
            statistics(&x, 0).into_iter().chain(statistics(&y, 1)).collect()
        });
    }
    check("several axes", |device| {
        let x = floats(device, DType::F32, [3, 4, 50, 7], 10.0, 5);
        let of = |axes: &[isize]| near("logsumexp", x.logsumexp(axes), 1e-5, 1e-5);
        vec![of(&[1, 2]), of(&[0, 2]), of(&[0, 1, 2, 3]), of(&[0, 3]), of(&[3, 1])]
    });
}

/// Rows whose running maximum rises at every step, falls, and jumps to and from infinities.
#[test]
fn extreme_rows() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (length, dtype) in
        [(5, DType::F32), (40, DType::F16), (333, DType::F32), (333, DType::F64), (70_000, DType::F32)]
    {
        let rows: Vec<fn(usize, usize) -> f64> = vec![
            |_, _| f64::NEG_INFINITY,
            |n, len| if n + 1 == len { 3.0 } else { f64::NEG_INFINITY },
            |n, _| if n == 0 { 3.0 } else { f64::NEG_INFINITY },
            |n, _| if n % 7 == 3 { n as f64 * 0.01 } else { f64::NEG_INFINITY },
            |n, len| if n == len / 2 { f64::INFINITY } else { 1.0 },
            |_, _| f64::INFINITY,
            |n, _| if n % 2 == 0 { f64::INFINITY } else { f64::NEG_INFINITY },
            |n, len| if n + 1 == len { f64::NAN } else { 1.0 },
            |n, _| if n == 0 { f64::NAN } else { f64::NEG_INFINITY },
            |n, len| 80.0 * n as f64 / len as f64,
            |n, len| -80.0 * n as f64 / len as f64,
            |n, _| if n == 1 { 60_000.0 } else { -60_000.0 },
            |_, _| -60_000.0,
            |n, _| if n % 2 == 0 { 0.0 } else { -0.0 },
        ];
        let values = rows.iter().flat_map(|row| (0..length).map(move |n| row(n, length)));
        let values: Vec<f64> = values.collect();
        check_fused(&format!("{dtype} rows of {length}"), |device| {
            let x = Tensor::from_vec(values.clone(), [rows.len(), length]).cast(dtype).to(device);
            let mut outputs = statistics(&x, 1);
            outputs.extend(statistics(&x.t(), 0));
            outputs
        });
    }
    // As PyTorch.
    let masked = Tensor::from_slice(&[-inf, -inf], [2]).to(&Device::cpu());
    assert_eq!(masked.logsumexp(0).item::<f64>().unwrap(), -inf);
    assert!(masked.softmax(0).to_vec::<f64>().unwrap().iter().all(|x| x.is_nan()));
    assert!(masked.log_softmax(0).to_vec::<f64>().unwrap().iter().all(|x| x.is_nan()));
    let overflowed = Tensor::from_slice(&[inf, 0.0], [2]).to(&Device::cpu());
    assert_eq!(overflowed.logsumexp(0).item::<f64>().unwrap(), inf);
    let unknown = Tensor::from_slice(&[nan, inf], [2]).to(&Device::cpu());
    assert!(unknown.logsumexp(0).item::<f64>().unwrap().is_nan());
}

/// A sum that is scaled at every step is as good as one below the known maximum.
#[test]
fn rising_rows_against_f64() {
    for length in [1000usize, 20_000, 100_001] {
        let values: Vec<f64> =
            (0..length).map(|n| (n * 40 / length) as f64 + (n % 13) as f64 * 0.1).collect();
        let max = values.iter().copied().fold(f64::MIN, f64::max);
        let expected = values.iter().map(|x| (x - max).exp()).sum::<f64>().ln() + max;
        for device in devices() {
            let x = Tensor::from_vec(values.clone(), [length]).cast(DType::F32).to(&device);
            let actual = f64::from(x.logsumexp(0).item::<f32>().unwrap());
            assert!((actual - expected).abs() < 1e-5, "{length} on {device}: {actual}, not {expected}");
        }
    }
}

#[test]
fn kernels() {
    let kernels = |y: &Tensor, target: &Target| y.compile_for(target).unwrap().kernels().len();
    let x = |rows: usize, length: usize| Tensor::from_vec(vec![1.0f32; rows * length], [rows, length]);
    // In registers; in shared memory; read again by one block, of rows for all processors (fusion sees 300 as 512);
    // statistics of parts first.
    for (rows, length, architecture, expected) in [
        (1, 32_768, "sm_86", 1),
        (2, 40_000, "sm_90", 1),
        (300, 40_000, "sm_86", 1),
        (2, 40_000, "sm_86", 2),
        (200, 100_000, "sm_90", 2),
    ] {
        let target = Target::cuda(architecture);
        let count = kernels(&x(rows, length).softmax(1), &target);
        assert_eq!(count, expected, "{rows} of {length} for {target}");
    }
    for (rows, length, expected) in [(1, 16_384, 1), (20, 100_000, 1), (2, 100_000, 2)] {
        assert_eq!(kernels(&x(rows, length).softmax(1), &Target::cpu()), expected, "{rows} of {length}");
    }
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        assert_eq!(kernels(&x(2, 100_000).logsumexp(1), &target), 1);
        assert_eq!(kernels(&x(1, 1_000_000).logsumexp(..), &target), 1);
        assert_eq!(kernels(&x(2, 100_000).layer_norm([100_000], None, None, 1e-5), &target), 2);
    }
}
