//! Pipelines as fused kernels against one kernel an operation. `benches/README.md` says how to read the
//! figures.

#![allow(clippy::expect_used, reason = "a benchmark that fails has nothing to tell")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use lazuli::{Device, Fusion, Pool2d, Tensor, with_fusion};

/// A pipeline: made anew from its inputs in each iteration, as a user's function is called again.
struct Case {
    name: &'static str,
    inputs: Vec<Tensor>,
    pipeline: fn(&[Tensor]) -> Tensor,
}

fn data(shape: &[usize], device: &Device) -> Tensor {
    let values = (0..shape.iter().product()).map(|i: usize| (i * 7919 % 1000) as f32 / 100.0 - 5.0);
    let tensor = Tensor::from_vec::<f32>(values.collect(), shape.to_vec()).to(device);
    tensor.eval().expect("values");
    tensor
}

fn normalised(x: &Tensor, mean: Tensor, variance: Tensor) -> Tensor {
    (x - mean) / (variance + 1e-5).sqrt()
}

fn cases(device: &Device) -> Vec<Case> {
    let input = |shape: &[usize]| data(shape, device);
    let case = |name, inputs, pipeline| Case { name, inputs, pipeline };
    let square = input(&[4096, 4096]);
    let flat = input(&[1 << 24]);
    let rows = || vec![square.clone()];
    vec![
        case("relu, max_pool 2x2, 1x64x256x256", vec![input(&[1, 64, 256, 256])], |x| {
            x[0].relu().max_pool2d(2, 2)
        }),
        case("relu, max_pool 3x3 padded, 32x64x112x112", vec![input(&[32, 64, 112, 112])], |x| {
            x[0].relu().max_pool2d_with(Pool2d::new(3).stride(2).padding(1))
        }),
        case("where, mul, 16M", vec![flat.clone(), input(&[1 << 24])], |x| {
            x[0].gt(0.0).where_(&x[0], &x[1]) * &x[1]
        }),
        case("bias, relu, 5000x2000", vec![input(&[5000, 2000]), input(&[2000])], |x| (&x[0] + &x[1]).relu()),
        case("gelu chain, 16M", vec![flat.clone()], |x| (&x[0] * 1.5 + 0.25).gelu_tanh()),
        case("gelu chain, 1000", vec![input(&[1000])], |x| (&x[0] * 1.5 + 0.25).gelu_tanh()),
        case("20 operations, 16M", vec![flat], |x| {
            (0..10).fold(x[0].clone(), |y, _| (y * 0.99).maximum(-4.0))
        }),
        case("normalised rows, 4096x4096", rows(), |x| {
            normalised(&x[0], x[0].mean_keepdim(1), x[0].var_keepdim(1, 0))
        }),
        case("normalised image, 3x2048x2048", vec![input(&[3, 2048, 2048])], |x| {
            normalised(&x[0], x[0].mean(..), x[0].var(.., 0))
        }),
        case("sum, all of 4096x4096", rows(), |x| x[0].sum(..)),
        case("sum, rows of 4096x4096", rows(), |x| x[0].sum(1)),
        case("sum, columns of 4096x4096", rows(), |x| x[0].sum(0)),
        case("mean of squares, rows of 4096x4096", rows(), |x| (&x[0] * &x[0]).mean(1)),
        case("softmax, 4096x4096", rows(), |x| x[0].softmax(-1)),
        case("layer_norm, 4096x4096", vec![square.clone(), input(&[4096]), input(&[4096])], |x| {
            x[0].layer_norm([4096], Some(&x[1]), Some(&x[2]), 1e-5)
        }),
        case("transpose, exp, 4096x4096", rows(), |x| x[0].t().exp()),
    ]
}

/// Reads and writes, each once, of as many bytes: what memory allows.
fn copy(c: &mut Criterion, device: &Device, megabytes: usize) {
    let mut group = c.benchmark_group("copy");
    let elements = megabytes * 250_000;
    group.throughput(Throughput::Bytes(8 * elements as u64));
    let x = data(&[elements], device);
    // The same kernel launch as any other, with as little to compute as there can be.
    group.bench_function(BenchmarkId::new(format!("{megabytes} MB, negated"), device), |b| {
        b.iter(|| finished(device, &-&x));
    });
    if *device == Device::cpu() {
        let from = vec![1.0f32; elements];
        let mut to = vec![0.0f32; elements];
        group.bench_function(
            BenchmarkId::new(format!("{megabytes} MB, memcpy on one thread"), device),
            |b| {
                b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
            },
        );
        let half = elements.div_ceil(rayon_threads());
        group.bench_function(
            BenchmarkId::new(format!("{megabytes} MB, memcpy on all threads"), device),
            |b| {
                b.iter(|| {
                    std::thread::scope(|scope| {
                        for (to, from) in to.chunks_mut(half).zip(from.chunks(half)) {
                            scope.spawn(move || black_box(to).copy_from_slice(black_box(from)));
                        }
                    });
                });
            },
        );
    }
}

fn rayon_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

fn finished(device: &Device, y: &Tensor) {
    y.eval().expect("values");
    device.synchronize().expect("a device");
}

fn fused(c: &mut Criterion, device: &Device) {
    for Case { name, inputs, pipeline } in cases(device) {
        let mut group = c.benchmark_group(name);
        let least = pipeline(&inputs).explain().expect("a plan").least_bytes();
        group.throughput(Throughput::Bytes(least));
        for (label, fusion) in [("fused", Fusion::On), ("unfused", Fusion::Off)] {
            group.bench_function(BenchmarkId::new(label, device), |b| {
                with_fusion(fusion, || b.iter(|| finished(device, &pipeline(&inputs))));
            });
        }
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(15)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut devices = vec![Device::cpu()];
    if lazuli::cuda_is_available() {
        devices.push(Device::cuda(0));
    }
    for device in &devices {
        copy(&mut criterion, device, 64);
        fused(&mut criterion, device);
    }
    criterion.final_summary();
}
