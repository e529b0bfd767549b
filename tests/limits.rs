//! What is too much for one kernel becomes several, and the values stay the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;

use common::{check_fused, near};
use lazuli::{DType, Device, Target, Tensor};

/// Values that no two tensors share, on the device.
fn values(device: &Device, shape: impl Into<lazuli::Shape>, dtype: DType, seed: u64) -> Tensor {
    let values = Tensor::rand(shape, seed).cast(dtype).to(device);
    values.eval().unwrap();
    values
}

/// How many kernels, their schedules, and why neighbours are apart.
fn planned(tensor: &Tensor) -> (usize, String, String) {
    let program = tensor.compile_for(&Target::cuda("sm_90")).unwrap();
    let schedules: Vec<String> =
        program.kernels().iter().map(|kernel| kernel.schedule().to_string()).collect();
    (schedules.len(), schedules.join("; "), tensor.explain().unwrap().to_string())
}

#[test]
fn tiles_beyond_the_shared_memory_of_a_block() {
    // A tile of f64 takes 8,448 bytes. Three blocks of a multiprocessor should have theirs.
    let sum = |device: &Device, count: u64| {
        let beside = values(device, [70, 130], DType::F64, 0);
        (1..=count).fold(beside, |sum, n| sum + values(device, [130, 70], DType::F64, n).t())
    };
    let (kernels, schedule, _) = planned(&sum(&Device::cpu(), 3));
    assert!(kernels == 1 && schedule.contains("tiled"), "{schedule}");
    let (kernels, schedule, _) = planned(&sum(&Device::cpu(), 9));
    assert!(kernels == 1 && schedule.contains("pointwise"), "{schedule}");
    check_fused("tiles", |device| vec![near("sum", sum(device, 9), 1e-12, 0.0)]);
}

#[test]
fn column_reductions_beyond_the_shared_memory_of_a_block() {
    // The partial results of 256 threads, for four columns each: 4 KiB, of variances three times that.
    let statistics = |device: &Device, count: u64| {
        let x = values(device, [300, 256], DType::F32, 1);
        let of = |n: u64| (&x * (n as f32 + 1.0)).sin().var(0, 1);
        (1..count).fold(of(0), |sum, n| sum + of(n))
    };
    let (kernels, schedules, _) = planned(&statistics(&Device::cpu(), 4));
    assert_eq!(kernels, 1, "{schedules}");
    let (kernels, schedules, _) = planned(&statistics(&Device::cpu(), 12));
    assert!((2..=6).contains(&kernels), "{schedules}");
    check_fused("columns", |device| vec![near("sum", statistics(device, 12), 1e-5, 1e-6)]);
}

#[test]
fn more_operations_than_a_kernel_has() {
    let sum = |device: &Device| {
        let parts: Vec<Tensor> = (0..400).map(|n| values(device, [33], DType::F32, n)).collect();
        parts[1..].iter().fold(parts[0].clone(), |sum, part| sum + part)
    };
    let (kernels, _, explanation) = planned(&sum(&Device::cpu()));
    assert_eq!(kernels, 2, "{explanation}");
    assert!(explanation.contains("operations are more than the 256 of a kernel"), "{explanation}");
    check_fused("operations", |device| vec![near("sum", sum(device), 1e-5, 0.0)]);
}

#[test]
fn more_buffers_than_a_launch_has_parameters_for() {
    // Two for each of 200 operations.
    let sums = |device: &Device| {
        let mut sums = vec![values(device, [33], DType::F32, 0)];
        (1..=200).for_each(|n| sums.push(&sums[sums.len() - 1] + values(device, [33], DType::F32, n)));
        sums.split_off(1)
    };
    let all = sums(&Device::cpu());
    let program = lazuli::compile_for(&all, &Target::cuda("sm_90")).unwrap();
    let explanation = program.explain().to_string();
    assert_eq!(program.kernels().len(), 2, "{explanation}");
    assert!(explanation.contains("buffers are more than the 384 of a kernel"), "{explanation}");
    check_fused("buffers", |device| {
        sums(device).into_iter().map(|sum| near("sum", sum, 1e-5, 0.0)).collect()
    });
}

#[test]
fn an_expression_that_reads_at_ever_more_places() {
    // Each step doubles the places that one result needs: of few elements they cost less than a launch, but their
    // text grows to megabytes.
    let spread = |device: &Device, steps: u32| {
        let x = values(device, [8_009], DType::F32, 1);
        (0..steps).fold(x, |x, n| &x + x.roll(1 + (1 << n), 0) * 0.5)
    };
    let (kernels, schedules, _) = planned(&spread(&Device::cpu(), 9));
    assert_eq!(kernels, 1, "{schedules}");
    let (kernels, schedules, _) = planned(&spread(&Device::cpu(), 12));
    assert!((2..=3).contains(&kernels), "{schedules}");
    check_fused("spread", |device| vec![near("sum", spread(device, 12), 1e-5, 0.0)]);
}
