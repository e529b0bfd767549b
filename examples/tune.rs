//! Measures kernels under other schedules than the default ones and cut in several, on this machine, and prints what that gains:
//!
//! ```sh
//! cargo run --release --example tune                      # some workloads, a minute each at most
//! cargo run --release --example tune -- softmax matmul    # those whose names have one of these words
//! cargo run --release --example tune -- --seconds 10 --file tuning.txt --device cuda
//! ```
//!
//! With `--file`, what is known there is not measured again, and what is measured now is written into it: a program has it by
//! `LAZULI_TUNING=tuning.txt`.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lazuli::{DType, Device, Tensor, TunedKernel, Tuner, Tuning, eval};

/// What is asked of some inputs.
type Expression = fn(&[Tensor]) -> Vec<Tensor>;

/// A name, the shapes of the inputs, and an expression.
type Workload = (&'static str, &'static [&'static [usize]], Expression);

const SQUARE: &[usize] = &[1024, 1024];
const LARGE: &[usize] = &[4096, 1024];

const WORKLOADS: &[Workload] = &[
    ("scale and shift", &[LARGE], |x| vec![&x[0] * 3.0 + 0.25]),
    ("gelu", &[LARGE], |x| vec![x[0].gelu()]),
    ("gelu, small", &[&[64, 256]], |x| vec![x[0].gelu()]),
    ("tanh chain", &[SQUARE], |x| vec![(x[0].tanh() * 0.5 + 0.5).log()]),
    ("clamp of bytes", &[LARGE], |x| vec![x[0].cast(DType::U8).clamp(3, 200)]),
    ("transpose and add", &[SQUARE, SQUARE], |x| vec![x[0].t() + &x[1]]),
    ("adam", &[LARGE, LARGE, LARGE], |x| {
        let m = &x[0] * 0.9 + &x[2] * 0.1;
        let v = &x[1] * 0.99 + x[2].square() * 0.01;
        let step = &m / (v.sqrt() + 1e-8);
        vec![m, v, step]
    }),
    ("sum of all", &[LARGE], |x| vec![x[0].sum(..)]),
    ("row sums", &[LARGE], |x| vec![x[0].sum(1)]),
    ("short row sums", &[&[65536, 64]], |x| vec![x[0].sum(1)]),
    ("column sums", &[LARGE], |x| vec![x[0].sum(0)]),
    ("narrow column sums", &[&[65536, 24]], |x| vec![x[0].sum(0)]),
    ("mean and variance", &[LARGE], |x| vec![x[0].mean(1), x[0].var(1, 0)]),
    ("softmax", &[LARGE], |x| vec![x[0].softmax(1)]),
    ("softmax, short rows", &[&[16384, 64]], |x| vec![x[0].softmax(1)]),
    ("softmax, few long rows", &[&[16, 65536]], |x| vec![x[0].softmax(1)]),
    ("log softmax of columns", &[SQUARE], |x| vec![x[0].log_softmax(0)]),
    ("layer norm", &[LARGE, &[1024], &[1024]], |x| {
        vec![x[0].layer_norm([1024], Some(&x[1]), Some(&x[2]), 1e-5)]
    }),
    ("layer norm of f16", &[LARGE, &[1024], &[1024]], |x| {
        let half = |x: &Tensor| x.cast(DType::F16);
        vec![half(&x[0]).layer_norm([1024], Some(&half(&x[1])), Some(&half(&x[2])), 1e-5)]
    }),
    ("rms norm", &[LARGE, &[1024]], |x| vec![x[0].rms_norm([1024], Some(&x[1]), 1e-6)]),
    ("argmax", &[LARGE], |x| vec![x[0].argmax(1)]),
    ("cumsum of rows", &[LARGE], |x| vec![x[0].cumsum(1)]),
    ("cumsum of columns", &[LARGE], |x| vec![x[0].cumsum(0)]),
    ("sort of rows", &[&[2048, 256]], |x| vec![x[0].sort(1, false).0]),
    ("topk", &[&[512, 4096]], |x| vec![x[0].topk(8, 1, true).0]),
    ("histogram", &[&[1 << 20]], |x| vec![x[0].histc(100, 0.0, 1.0)]),
    ("matmul", &[SQUARE, SQUARE], |x| vec![x[0].matmul(&x[1])]),
    ("matmul, tall", &[&[8192, 64], &[64, 64]], |x| vec![x[0].matmul(&x[1])]),
    ("matrix and vector", &[LARGE, &[1024]], |x| vec![x[0].mv(&x[1])]),
    ("linear and relu", &[&[256, 512], &[1024, 512], &[1024]], |x| {
        vec![x[0].linear(&x[1], Some(&x[2])).relu()]
    }),
    ("pooling", &[&[8, 32, 112, 112]], |x| vec![x[0].max_pool2d(2, 2)]),
    ("overlapping pooling", &[&[8, 32, 112, 112]], |x| vec![x[0].avg_pool2d(3, 2)]),
    ("convolution", &[&[4, 32, 56, 56], &[32, 32, 3, 3]], |x| vec![x[0].conv2d(&x[1], None, 1, 1)]),
    ("relu, transposed and multiplied", &[SQUARE, SQUARE], |x| vec![x[0].relu().t() * &x[1]]),
    ("density of neighbours", &[&[20_000, 2], &[20_000 * 16]], |x| {
        let index = (&x[1] * 20_000).cast(DType::I64);
        let near = x[0].index_select(0, &index).reshape([20_000, 16, 2]);
        let weights = (1.0 - (x[0].unsqueeze(1) - near).square().sum(2)).clamp_min(0.0).pow(3);
        vec![(weights * 2.0).exp().sum(1)]
    }),
    ("common neighbours in a graph", &[SQUARE], |x| {
        let above = x[0].gt(0.4).triu(1).cast(DType::F32);
        let joined = &above + above.t();
        let common = joined.matmul(&joined);
        vec![(&common * &joined).sum(1), common.max(1)]
    }),
    ("attention", &[&[8, 256, 64], &[8, 256, 64], &[8, 256, 64]], |x| {
        vec![(x[0].matmul(&x[1].transpose(1, 2)) * 0.125).softmax(2).matmul(&x[2])]
    }),
];

struct Options {
    words: Vec<String>,
    seconds: u64,
    file: Option<PathBuf>,
    device: Device,
}

fn options() -> Result<Options, Box<dyn std::error::Error>> {
    let mut options = Options { words: Vec::new(), seconds: 60, file: None, device: Device::best() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--seconds" => options.seconds = value()?.parse()?,
            "--file" => options.file = Some(value()?.into()),
            "--device" => options.device = value()?.parse()?,
            word if !word.starts_with('-') => options.words.push(argument),
            other => {
                return Err(format!("there is no {other}; see the first lines of examples/tune.rs").into());
            }
        }
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    let wanted =
        |name: &str| options.words.is_empty() || options.words.iter().any(|word| name.contains(word));
    let mut all = Tuning::default();
    for (name, shapes, expression) in WORKLOADS.iter().filter(|(name, ..)| wanted(name)) {
        let inputs: Vec<Tensor> = (shapes.iter().enumerate())
            .map(|(number, shape)| Tensor::rand(shape.to_vec(), number as u64).to(&options.device))
            .collect();
        eval(&inputs)?;
        let bar = ProgressBar::new(options.seconds);
        bar.set_style(ProgressStyle::with_template("{prefix} {bar:30} {msg}")?);
        bar.set_prefix(*name);
        let mut tuner = Tuner::new().time_limit(Duration::from_secs(options.seconds)).progress(|progress| {
            bar.set_position(progress.elapsed.as_secs());
            bar.set_message(progress.to_string());
        });
        if let Some(file) = &options.file {
            tuner = tuner.file(file);
        }
        let (results, tuning) = tuner.run(|| {
            let results = expression(&inputs);
            eval(&results).map(|()| results)
        })?;
        bar.finish_and_clear();
        let now = tuning.kernels().into_iter().filter(|kernel| !all.kernels().contains(kernel));
        println!("{name}");
        now.for_each(|kernel| print_row(&kernel));
        all = all.and(&tuning);
        drop(results);
    }
    let gains: Vec<f64> = all.kernels().iter().map(TunedKernel::gain).collect();
    let mean = (gains.iter().map(|gain| gain.ln()).sum::<f64>() / gains.len().max(1) as f64).exp();
    let tuned = gains.iter().filter(|&&gain| gain > 1.0).count();
    println!(
        "\n{tuned} of {} kernels are faster, all of them {mean:.2} times on the geometric mean",
        gains.len()
    );
    if let Some(file) = &options.file {
        println!("LAZULI_TUNING={} has programs use it", file.display());
    }
    Ok(())
}

fn print_row(kernel: &TunedKernel) {
    let (before, now) = kernel.times();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    println!(
        "  {:>5.2}  {:>9.1} µs  {:>9.1} µs  {} {}",
        kernel.gain(),
        micros(before),
        micros(now),
        kernel.name(),
        kernel.extents()
    );
    println!("         {}", kernel.default_schedule());
    if kernel.gain() > 1.0 {
        println!("         {}", kernel.schedule());
    }
}
