//! What is too much for one kernel becomes several, and the values stay the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;

use common::{check_fused, near};
use lazuli::{DType, Device, Target, Tensor, s};

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
    // Of smaller results, kernels of 64 have one text.
    let sum = |device: &Device| {
        let parts: Vec<Tensor> = (0..400).map(|n| values(device, [20_000], DType::F32, n)).collect();
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

/// The elements above, below, right and left of each, zero beyond the border.
#[allow(clippy::reversed_empty_ranges)] // Python's indices: `1..-1` is without the first and the last.
fn neighbours(u: &Tensor) -> [Tensor; 4] {
    let around = u.pad(1, 0.0);
    [s![2.., 1..-1], s![..-2, 1..-1], s![1..-1, 2..], s![1..-1, ..-2]].map(|place| around.i(place))
}

fn relaxed(u: &Tensor, of: &Tensor) -> Tensor {
    let step = |u: Tensor| {
        let [a, b, c, d] = neighbours(&u);
        (a + b + c + d + of) * 0.2 + u * 0.2
    };
    step(step(u.clone()))
}

/// A cycle over grids, each half as fine as the one before.
fn cycle(u: &Tensor, of: &Tensor, grids: usize) -> Tensor {
    let mut u = relaxed(u, of);
    if grids > 1 {
        let [a, b, c, d] = neighbours(&u);
        let rest = (of - (&u * 4.0 - a - b - c - d)).avg_pool2d(2, 2) * 4.0;
        let coarse = cycle(&rest.zeros_like(), &rest, grids - 1);
        u = u + coarse.repeat_interleave(2, 0).repeat_interleave(2, 1);
    }
    relaxed(&u, of)
}

/// Parts of a divided kernel compute again what other kernels compute; each value is stored by one of all.
#[test]
fn what_is_computed_twice_is_stored_once() {
    let of = |device: &Device| values(device, [16, 16], DType::F32, 1);
    let solve = |of: &Tensor| cycle(&of.zeros_like(), of, 4);
    let program = solve(&of(&Device::cpu())).compile_for(&Target::cuda("sm_90")).unwrap();
    let why = program.explain().to_string();
    assert!(why.contains("values would be computed for one position"), "{why}");
    let on = |device: Device| solve(&of(&device)).to_vec::<f32>().unwrap();
    let wanted = on(Device::interpreter());
    for device in [Device::cuda_interpreted(), Device::cpu_interpreted()] {
        for (value, wanted) in on(device).iter().zip(&wanted) {
            assert!((value - wanted).abs() <= 1e-5 * wanted.abs().max(1.0), "{value}, and not {wanted}");
        }
    }
}

/// Two chains whose steps each reduce rows of what the step before came to, as of a hidden Markov model: a step that a thread
/// reduces for each row is computed for each element of the next one's, which no kernel should do again and again.
#[test]
fn steps_that_reduce_rows_of_steps() {
    let chains = |device: &Device| {
        let likely = values(device, [64, 9, 12], DType::F32, 1);
        let ways = values(device, [12, 12], DType::F32, 2);
        let (mut forth, mut back) = (vec![likely.select(1, 0)], vec![likely.select(1, 8) * 0.0]);
        for step in 1..9 {
            forth.push((forth[step - 1].unsqueeze(2) + &ways).logsumexp(1) + likely.select(1, step as isize));
            let next = (&back[step - 1] + likely.select(1, 9 - step as isize)).unsqueeze(1) + &ways;
            back.push(next.logsumexp(2));
        }
        back.reverse();
        let both = Tensor::stack(forth, 1) + Tensor::stack(back, 1);
        [both.softmax(2), both.logsumexp(2)]
    };
    let explained = lazuli::explain(&chains(&Device::cpu())).unwrap().to_string();
    assert!(!explained.contains("a C compiler would take"), "{explained}");
}

/// Steps of Runge and Kutta's for Lorenz's equations: what three results share is in the text of one kernel several times, and
/// in a long program that counts.
#[test]
fn what_is_apart_for_its_text_says_so() {
    let mut state = values(&Device::cpu(), [3, 2000], DType::F64, 1);
    let slope = |s: &Tensor| {
        let [x, y, z] = [0, 1, 2].map(|axis| s.select(0, axis));
        Tensor::stack([(&y - &x) * 10.0, &x * (28.0 - &z) - &y, &x * &y - &z * 8.0 / 3.0], 0)
    };
    for _ in 0..8 {
        let first = slope(&state);
        let second = slope(&(&state + &first * 0.0025));
        let third = slope(&(&state + &second * 0.0025));
        let fourth = slope(&(&state + &third * 0.005));
        state = &state + (first + second * 2.0 + third * 2.0 + fourth) * (0.005 / 6.0);
    }
    let explained = lazuli::explain([&state]).unwrap().to_string();
    assert!(explained.contains("its text would repeat"), "{explained}");
    assert!(!explained.contains("were not tried"), "{explained}");
}
