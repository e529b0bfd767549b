//! What evaluation costs besides the kernels: recording, planning, and calls whose plan is cached.
//! `benches/README.md` says how to read the figures.

#![allow(clippy::expect_used, reason = "a benchmark that fails has nothing to tell")]

#[allow(dead_code, reason = "of an example, of which this plans the forward pass")]
#[path = "../examples/gpt/model.rs"]
mod gpt;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use lazuli::{DType, Device, Target, Tensor, compile_for};

/// The tensor after some operations that no graph has had in this order: the plan cache, which goes by structure, misses.
fn fresh(x: &Tensor) -> Tensor {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    (0..BITS).fold(x.clone(), |x, bit| if number >> bit & 1 == 0 { x.sin() } else { x.cos() })
}

/// So many graphs differ.
const BITS: u32 = 16;

fn input(shape: &[usize]) -> Tensor {
    let data = (0..shape.iter().product()).map(|i: usize| (i % 97) as f32 / 50.0 - 1.0).collect();
    Tensor::from_vec::<f32>(data, shape.to_vec()).to(&Device::cpu())
}

/// Everything of a transformer block but the matrix products, which are not operations of this crate:
/// normalisation with weights, gates, biases, a softmax with a mask, residual sums, pooled statistics.
/// About 60 operations after decomposition.
fn block(x: &Tensor, weights: &[Tensor; 3], scale: f64) -> Tensor {
    let [gamma, beta, bias] = weights;
    let normal = x.layer_norm([256], Some(gamma), Some(beta), 1e-5);
    let scores = (&normal * scale + bias).softmax(-1);
    let attended = (&scores * &normal).gt(0.01).where_(&scores, 0.0) + x;
    let hidden = (attended.layer_norm([256], Some(gamma), Some(beta), 1e-5) * bias + beta).gelu_tanh();
    let gate = (hidden.mean_keepdim(1) * scale).sigmoid();
    &hidden * &gate + &attended * 0.5
}

fn transformer(blocks: usize) -> Tensor {
    let weights = [input(&[256]), input(&[256]), fresh(&input(&[256]))];
    (0..blocks).fold(input(&[64, 256]), |x, _| block(&x, &weights, 1.5))
}

/// `nodes` operations, each on the one before.
fn chain(x: &Tensor, nodes: usize) -> Tensor {
    let mut y = fresh(x);
    for _ in 0..nodes / 2 {
        y = (&y * 1.5).tanh();
    }
    y
}

/// Many independent short chains that meet in sums, as updates of many parameters do: wide, not deep.
fn wide(x: &Tensor, nodes: usize) -> Tensor {
    let x = &fresh(x);
    let mut level: Vec<Tensor> = (0..nodes / 4).map(|i| (x * (1.5 + i as f64)).tanh().exp()).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| if let [a, b] = pair { a + b } else { pair[0].clone() }).collect();
    }
    level.remove(0)
}

/// The logits of some tokens, and the caches that they have joined.
fn gpt(model: &gpt::Model, tokens: &[i64]) -> Vec<Tensor> {
    let mut cache = gpt::Cache::new(model);
    let logits = fresh(&model.forward(tokens, &mut cache));
    cache.tensors().cloned().chain([logits]).collect()
}

/// Times `plan` on a graph that `record` makes, recording not counted.
fn planning(c: &mut Criterion, name: &str, nodes: u64, record: &dyn Fn() -> Vec<Tensor>) {
    for (target, language) in [(Target::cuda("sm_90"), "cuda"), (Target::cpu(), "c")] {
        let mut group = c.benchmark_group("plan");
        group.sample_size(10).throughput(Throughput::Elements(nodes));
        group.bench_function(BenchmarkId::new(name, language), |b| {
            b.iter_custom(|iterations| {
                let mut time = Duration::ZERO;
                for _ in 0..iterations {
                    let y = record();
                    let start = Instant::now();
                    black_box(compile_for(&y, &target).expect("a plan"));
                    time += start.elapsed();
                }
                time
            });
        });
    }
}

/// Operations after the passes, constants apart.
fn nodes(tensors: &[Tensor]) -> u64 {
    let dot = compile_for(tensors, &Target::cpu()).expect("a plan").graph_dot();
    let is_node = |line: &&str| line.contains(" [label=") && !line.contains("shape=plaintext");
    dot.lines().filter(is_node).count() as u64
}

fn plans(c: &mut Criterion) {
    let x = input(&[1000]);
    for blocks in [2, 17, 170] {
        let count = nodes(&[transformer(blocks)]);
        planning(c, &format!("transformer, {count} nodes"), count, &|| vec![transformer(blocks)]);
    }
    let model = gpt::Model::seeded(&Device::cpu(), 12).expect("weights");
    for tokens in [1, 96] {
        let count = nodes(&gpt(&model, &vec![0; tokens]));
        let name = format!("GPT of 12 layers, tokens: {tokens}, {count} nodes");
        planning(c, &name, count, &|| gpt(&model, &vec![0; tokens]));
    }
    for count in [1_000, 10_000, 100_000] {
        planning(c, &format!("chain, {count} nodes"), count as u64, &|| vec![chain(&x, count)]);
    }
    for count in [1_000, 10_000] {
        planning(c, &format!("wide, {count} nodes"), count as u64, &|| vec![wide(&x, count)]);
    }
}

/// A million operations, timed once: enough to see whether time grows with the square.
fn million() {
    let x = input(&[1000]);
    let start = Instant::now();
    let y = chain(&x, 1_000_000);
    let recorded = start.elapsed();
    let kernels = y.compile_for(&Target::cpu()).expect("a plan").kernels().len();
    let planned = start.elapsed() - recorded;
    drop(y);
    let dropped = start.elapsed() - recorded - planned;
    println!(
        "chain of 1,000,000, once: recorded in {recorded:.2?}, planned ({kernels} kernels) in {planned:.2?}, dropped in {dropped:.2?}\n"
    );
}

fn recording(c: &mut Criterion) {
    let mut group = c.benchmark_group("record");
    let x = input(&[1000]);
    const OPERATIONS: usize = 1000;
    group.throughput(Throughput::Elements(OPERATIONS as u64));
    group.bench_function("1000 unary", |b| {
        b.iter(|| (0..OPERATIONS).fold(x.clone(), |y, _| y.tanh()));
    });
    group.bench_function("1000 binary", |b| {
        b.iter(|| (0..OPERATIONS).fold(x.clone(), |y, _| y + &x));
    });
    group.bench_function("1000 with a number", |b| {
        b.iter(|| (0..OPERATIONS).fold(x.clone(), |y, _| y * 1.5));
    });
}

/// Calls on data that is there, with a plan that is there: what remains is the overhead of a call.
fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("cached call");
    let mut devices = vec![Device::cpu()];
    if lazuli::cuda_is_available() {
        devices.push(Device::cuda(0));
    }
    for device in devices {
        let time = |group: &mut criterion::BenchmarkGroup<'_, _>, name: &str, f: &dyn Fn() -> Tensor| {
            group.bench_function(BenchmarkId::new(name, device), |b| b.iter(|| f().eval().expect("values")));
        };
        let x = input(&[1000]).to(&device);
        time(&mut group, "add, 1000 elements", &|| &x + 1.0);
        time(&mut group, "gelu chain, 1000 elements", &|| (&x * 1.5 + 0.25).gelu());
        let rows = input(&[128, 128]).to(&device);
        time(&mut group, "softmax, 128x128", &|| rows.softmax(-1));
        let weights = [input(&[256]), input(&[256]), input(&[256])].map(|w| w.to(&device));
        let tokens = input(&[4, 256]).to(&device);
        time(&mut group, "transformer block, 4x256", &|| block(&tokens, &weights, 1.25));
        let empty = Tensor::zeros([0], DType::F32).to(&device);
        empty.eval().expect("values");
        time(&mut group, "add, nothing", &|| &empty + 1.0);
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    calls(&mut criterion);
    recording(&mut criterion);
    // As cargo bench runs it: not as a test, and not for a part.
    if std::env::args().skip(1).all(|argument| argument == "--bench") {
        million();
    }
    plans(&mut criterion);
    criterion.final_summary();
}
