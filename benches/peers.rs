//! The workloads of the comparison with other systems, which `benches/peers/run` makes: the harness writes the inputs,
//! times the peers in the same run, and checks every output against float64. `benches/peers/README.md` has the protocol.
//!
//! ```text
//! peers --data DIR --device cpu|cuda --threads N --cases a,b,c --out OUT [--compiled yes]
//! ```
//! `DIR/manifest.json` names each case's dtype, inputs and bytes; `DIR/CASE/in0.npy` … are its inputs. Outputs go to
//! `OUT/CASE/out0.npy` …, timings as a line of JSON a case to the standard output. With `--compiled yes` a case is
//! a compiled function, as Inductor's and JAX's are; otherwise it is recorded in each call, as in PyTorch.

#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that fails has nothing to tell")]

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lazuli::{Attention, Conv2d, DType, Device, Pool2d, Tensor, bf16, f16, io};
use serde_json::{Value, json};

type Pipeline = fn(&[Tensor]) -> Vec<Tensor>;

/// The part of a case's name before its size names the formula.
pub fn pipeline(case: &str) -> Option<Pipeline> {
    let prefixes: [(&str, Pipeline); 31] = [
        ("gelu_chain", |x| {
            let y = wide(&x[0]);
            let y = 0.5 * &y * (1.0 + (0.797_884_56 * (&y + 0.044715 * (&y * &y * &y))).tanh()) * 1.5 + 0.25;
            vec![narrow(y, &x[0])]
        }),
        ("chain20", |x| {
            let x = &x[0];
            let y = (x * 1.01 + 0.5).abs().sqrt() - 0.75;
            let y = y.maximum(-0.5);
            let y = &y * &y + x;
            let y = (-y.abs()).exp() * 2.0 - x;
            let y = y.minimum(3.0).maximum(-3.0) * 0.5;
            vec![(&y * &y + 1.0).sqrt() / 1.5]
        }),
        ("where_mul", |x| vec![x[0].gt(0.125).where_(&x[0] * 2.0, &x[0] / 2.0) * &x[1]]),
        ("bias_relu", |x| vec![(&x[0] + &x[1]).relu()]),
        ("relu_maxpool_k2", |x| vec![x[0].relu().max_pool2d(2, 2)]),
        ("relu_maxpool_k3", |x| vec![x[0].relu().max_pool2d_with(Pool2d::new(3).stride(2).padding(1))]),
        ("sum_all", |x| vec![x[0].sum(..)]),
        ("sum_rows", |x| vec![x[0].sum(1)]),
        ("sum_cols", |x| vec![x[0].sum(0)]),
        ("mean_var_rows", |x| vec![x[0].mean(1), x[0].var(1, 0)]),
        ("softmax", |x| vec![x[0].softmax(-1)]),
        ("layernorm", |x| {
            let length = x[1].shape().expect("a shape")[0];
            vec![x[0].layer_norm([length], Some(&x[1]), Some(&x[2]), 1e-5)]
        }),
        ("rmsnorm", |x| {
            let scale = ((&x[0] * &x[0]).mean_keepdim(1) + 1e-6).sqrt();
            vec![&x[0] / scale * &x[1]]
        }),
        ("cumsum_dim0", |x| vec![x[0].cumsum(0)]),
        ("cumsum_dim1", |x| vec![x[0].cumsum(1)]),
        ("cat10", |x| vec![Tensor::cat(&x.iter().collect::<Vec<_>>(), 0) * 1.5 + 0.25]),
        ("adamw", |x| {
            let m = &x[2] * 0.9 + &x[1] * 0.1;
            let v = &x[3] * 0.999 + (&x[1] * &x[1]) * 0.001;
            let d = (&v * (1.0 / (1.0 - 0.999f64.powi(10)))).sqrt() + 1e-8;
            let p = &x[0] * (1.0 - 1e-5) - (&m * (1e-3 / (1.0 - 0.9f64.powi(10)))) / d;
            vec![p, m, v]
        }),
        ("matmul", |x| vec![x[0].matmul(&x[1])]),
        ("linear_few_rows", |x| vec![x[0].linear(&x[1], Some(&x[2]))]),
        ("linear_gelu", |x| vec![(x[0].matmul(&x[1]) + &x[2]).gelu_tanh()]),
        ("linear_swiglu", |x| vec![x[0].matmul(&x[1]).silu() * x[0].matmul(&x[2])]),
        ("nearest_centre", |x| {
            let lengths = (&x[1] * &x[1]).sum(1);
            vec![(lengths - 2.0 * x[0].matmul(&x[1].t())).min(1)]
        }),
        ("squared_distances", |x| vec![(x[0].unsqueeze(1) - x[1].unsqueeze(0)).square().sum(2)]),
        ("shortest_paths", |x| vec![(x[0].unsqueeze(2) + x[1].unsqueeze(0)).min(1)]),
        ("conv3x3", |x| vec![x[0].conv2d(&(&x[1] * 0.125), Some(&x[2]), 1, 1).relu()]),
        ("halving_conv3x3", |x| vec![x[0].conv2d(&(&x[1] * 0.125), Some(&x[2]), 2, 1).relu()]),
        ("halving_depthwise", |x| {
            let groups = x[1].shape().expect("a shape")[0];
            let settings = Conv2d::new().stride(2).padding(1).groups(groups);
            vec![x[0].conv2d_with(&x[1], Some(&x[2]), settings).relu()]
        }),
        ("depthwise_relu", |x| {
            let groups = x[1].shape().expect("a shape")[0];
            let settings = Conv2d::new().padding(1).groups(groups);
            vec![x[0].conv2d_with(&x[1], Some(&x[2]), settings).relu()]
        }),
        ("conv_stem", |x| {
            let pool = Pool2d::new(3).stride(2).padding(1);
            vec![x[0].conv2d(&x[1], Some(&x[2]), 2, 3).relu().max_pool2d_with(pool)]
        }),
        ("attention_causal", |x| {
            vec![x[0].scaled_dot_product_attention(&x[1], &x[2], &Attention::new().causal(true))]
        }),
        ("attention_softcap", |x| {
            let shape = x[0].shape().expect("a shape");
            let (heads, count) = (shape[1] as i64, shape[2] as i64);
            let scores = (x[0].matmul(&x[1].transpose(-2, -1)) / 160.0).tanh() * 20.0;
            let position = Tensor::arange(0, count, 1).cast(DType::F32);
            let slope = (-Tensor::arange(1, heads + 1, 1).cast(DType::F32)).exp2().reshape([-1, 1, 1]);
            let distance = position.unsqueeze(0) - position.unsqueeze(1);
            vec![(scores + slope * distance).softmax(-1).matmul(&x[2])]
        }),
    ];
    prefixes.into_iter().find(|(prefix, _)| case.starts_with(prefix)).map(|(_, pipeline)| pipeline)
}

/// 16-bit chains compute in `F32` and store 16 bits.
fn wide(x: &Tensor) -> Tensor {
    x.cast(DType::F32)
}

fn narrow(y: Tensor, like: &Tensor) -> Tensor {
    y.cast(like.dtype().expect("a dtype"))
}

/// A tensor from an `.npy` file of that dtype.
pub fn read(path: &Path, dtype: &str) -> Tensor {
    let tensor = io::read_npy(path).expect("an .npy file");
    if dtype != "bf16" {
        return tensor;
    }
    // NumPy has no bfloat16: its bits are stored as integers.
    let bits = tensor.to_vec::<i16>().expect("the bits of bf16");
    let values = bits.into_iter().map(|bits| bf16::from_bits(bits as u16)).collect();
    Tensor::from_vec(values, tensor.shape().expect("a shape"))
}

/// Writes an `.npy` file.
pub fn write(path: &Path, tensor: &Tensor) {
    let stored = match tensor.dtype().expect("a dtype") {
        DType::BF16 => {
            let bits = tensor.to_vec::<bf16>().expect("values").into_iter().map(|x| x.to_bits() as i16);
            Tensor::from_vec(bits.collect(), tensor.shape().expect("a shape"))
        }
        _ => tensor.clone(),
    };
    io::write_npy(path, &stored).expect("a file for an output");
}

/// Values by the names of their options.
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Of the command line, the program's name aside.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Arguments {
        // `cargo bench` adds `--bench`.
        let words: Vec<String> = words.into_iter().filter(|word| word != "--bench").collect();
        let pairs =
            words.chunks_exact(2).map(|pair| (pair[0].trim_start_matches('-').into(), pair[1].clone()));
        Arguments(pairs.collect())
    }

    fn is_compiled(&self) -> bool {
        self.0.get("compiled").is_some_and(|answer| answer == "yes")
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("--{name} is missing; see the head of benches/peers.rs"))
    }
}

/// Results of a call, computed.
type Call = Box<dyn Fn(&Vec<Tensor>) -> Vec<Tensor>>;

fn call_of(pipeline: Pipeline, is_compiled: bool) -> Call {
    if is_compiled {
        let compiled = lazuli::compile(move |inputs: Vec<Tensor>| pipeline(&inputs));
        return Box::new(move |inputs| compiled.call(inputs).expect("values"));
    }
    Box::new(move |inputs| {
        let outputs = pipeline(inputs);
        lazuli::eval(&outputs).expect("values");
        outputs
    })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether the quartiles are further apart than a quarter of the median.
fn scatters(values: &mut [f64]) -> bool {
    let median = median(values);
    values[values.len() * 3 / 4] - values[values.len() / 4] > 0.25 * median
}

/// Milliseconds a call of each sample, and how many calls they were.
struct Samples {
    milliseconds: Vec<f64>,
    /// Wall time a call of a batch that is waited for once.
    wall: Option<f64>,
    calls: usize,
}

fn steady(device: &Device, results: &Call, sets: &[Vec<Tensor>], sampling: Duration) -> Samples {
    let mut turn = 0;
    let mut call = || {
        turn += 1;
        black_box(results(&sets[turn % sets.len()]));
    };
    (0..4).for_each(|_| call());
    device.synchronize().expect("a device");
    let start = Instant::now();
    call();
    device.synchronize().expect("a device");
    let estimate = start.elapsed().as_secs_f64();
    if *device == Device::cpu() {
        let batch = if estimate > 1e-3 { 1 } else { (1e-3 / estimate) as usize + 1 };
        let mut milliseconds = Vec::new();
        // Twice as long where others interfere.
        for _ in 0..2 {
            let end = Instant::now() + sampling;
            while milliseconds.len() < 7 || Instant::now() < end && milliseconds.len() < 400 {
                let start = Instant::now();
                (0..batch).for_each(|_| call());
                milliseconds.push(start.elapsed().as_secs_f64() * 1e3 / batch as f64);
            }
            if !scatters(&mut milliseconds) {
                break;
            }
        }
        let calls = milliseconds.len() * batch;
        return Samples { milliseconds, wall: None, calls };
    }
    let batch = sets.len().max(((0.02 / estimate) as usize + 1).min(200));
    let mut wall: Vec<f64> = (0..11)
        .map(|_| {
            let start = Instant::now();
            (0..batch).for_each(|_| call());
            device.synchronize().expect("a device");
            start.elapsed().as_secs_f64() * 1e3 / batch as f64
        })
        .collect();
    // Work queued before the first event keeps the device busy while the host records and launches the batch.
    let busy = Tensor::ones([1 << 28], DType::F32).to(device);
    busy.eval().expect("values");
    let batch = sets.len().max(batch.min(50));
    let milliseconds = (0..11)
        .map(|_| {
            let heads: Vec<Tensor> = (0..4).map(|_| busy.sin()).collect();
            heads.iter().for_each(|head| head.eval().expect("values"));
            let seconds = device.time(|| {
                (0..batch).for_each(|_| call());
                Ok(())
            });
            seconds.expect("a time") * 1e3 / batch as f64
        })
        .collect();
    Samples { milliseconds, wall: Some(median(&mut wall)), calls: 11 * batch }
}

/// Runs a case and leaves its outputs; returns its line. `sampling`: how long a call is timed on the CPU, at least.
pub fn run(case: &str, entry: &Value, arguments: &Arguments, sampling: Duration) -> Value {
    let Some(pipeline) = pipeline(case) else {
        return json!({"case": case, "status": "unsupported"});
    };
    let device = if arguments.get("device") == "cuda" { Device::cuda(0) } else { Device::cpu() };
    let folder = PathBuf::from(arguments.get("data")).join(case);
    let inputs = entry["inputs"].as_array().expect("inputs");
    let host: Vec<Tensor> = inputs
        .iter()
        .enumerate()
        .map(|(i, input)| read(&folder.join(format!("in{i}.npy")), input["dtype"].as_str().expect("a dtype")))
        .collect();
    let bytes: usize = host
        .iter()
        .map(|x| x.shape().expect("a shape").iter().product::<usize>() * x.dtype().expect("a dtype").size())
        .sum();
    let tiny = entry["tiny"].as_bool().unwrap_or(false);
    // As many as the harness gives the other systems (`copies_of_inputs` in measure.py).
    let copies = match (device == Device::cpu(), tiny) {
        (true, true) => 1,
        (true, false) => usize::div_ceil(128 << 20, bytes).clamp(1, 16),
        (false, _) => usize::div_ceil(256 << 20, bytes).clamp(2, 16),
    };
    // Copies of their own: the same memory again would be read from the caches.
    let sets: Vec<Vec<Tensor>> = (0..copies)
        .map(|_| {
            host.iter()
                .map(|x| {
                    let copy = if device == Device::cpu() { own(x) } else { x.to(&device) };
                    copy.eval().expect("an input");
                    copy
                })
                .collect()
        })
        .collect();
    device.synchronize().expect("a device");
    let start = Instant::now();
    let call = call_of(pipeline, arguments.is_compiled());
    let outputs = call(&sets[0]);
    device.synchronize().expect("a device");
    let first = start.elapsed().as_secs_f64() * 1e3;
    let out = PathBuf::from(arguments.get("out")).join(case);
    std::fs::create_dir_all(&out).expect("a folder for outputs");
    for (i, output) in outputs.iter().enumerate() {
        write(&out.join(format!("out{i}.npy")), output);
    }
    drop(outputs);
    let mut samples = steady(&device, &call, &sets, sampling);
    let least = samples.milliseconds.iter().copied().fold(f64::INFINITY, f64::min);
    let mut line = json!({
        "case": case, "first_ms": first, "median_ms": median(&mut samples.milliseconds), "min_ms": least,
        "n": samples.calls, "noisy": scatters(&mut samples.milliseconds),
    });
    if let Some(wall) = samples.wall {
        line["wall_ms"] = json!(wall);
        line["timer"] = json!("events");
    }
    line
}

/// A copy in memory of its own.
fn own(x: &Tensor) -> Tensor {
    match x.dtype().expect("a dtype") {
        DType::F32 => Tensor::from_vec(x.to_vec::<f32>().expect("values"), x.shape().expect("a shape")),
        DType::F16 => Tensor::from_vec(x.to_vec::<f16>().expect("values"), x.shape().expect("a shape")),
        _ => Tensor::from_vec(x.to_vec::<bf16>().expect("values"), x.shape().expect("a shape")),
    }
}

fn manifest(data: &Path) -> Value {
    let file = File::open(data.join("manifest.json")).expect("a manifest");
    serde_json::from_reader(BufReader::new(file)).expect("JSON")
}

fn main() {
    let arguments = Arguments::parse(std::env::args().skip(1));
    if arguments.0.is_empty() {
        eprintln!("peers: needs the data of a harness; see the head of benches/peers.rs");
        return;
    }
    let threads = arguments.get("threads").parse().expect("a number of threads");
    // Before anything runs: the CPU kernels use the global pool.
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("a thread pool");
    println!("{}", json!({"version": env!("CARGO_PKG_VERSION")}));
    let manifest = manifest(Path::new(arguments.get("data")));
    for case in arguments.get("cases").split(',') {
        println!("{}", run(case, &manifest[case], &arguments, Duration::from_millis(400)));
    }
}
