//! The first call of programs that make much text: each one in a process of its own with an empty kernel cache, so that
//! it plans, compiles, loads and runs everything. `benches/notes/first_calls.md` says how to read the figures.
//!
//! ```text
//! cargo bench --bench first_calls                    # all programs
//! cargo bench --bench first_calls -- cat stack       # those whose names contain a word
//! ```

#![allow(clippy::expect_used, reason = "a benchmark that fails has nothing to tell")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lazuli::{Device, Pool2d, ScanOrder, Target, Tensor};

/// What is asked for at once.
type Record = fn() -> Vec<Tensor>;

const PROGRAMS: &[(&str, Record)] = &[
    ("negation", || vec![-data(&[1000])]),
    ("gelu", || vec![(data(&[1 << 20]) * 1.5 + 0.25).gelu()]),
    ("softmax, rows of 1,000", || vec![data(&[64, 1000]).softmax(-1)]),
    ("layer norm, rows of 256", || vec![block(&data(&[64, 256]))]),
    ("chain of 4 sines", || vec![sines(4)]),
    ("chain of 16 sines", || vec![sines(16)]),
    ("chain of 64 sines", || vec![sines(64)]),
    ("chain of 200 sines", || vec![sines(200)]),
    ("chain of 48 transcendentals of all kinds", || vec![kinds(48, &data(&[100_000]))]),
    ("cat of 64", || vec![Tensor::cat(&refs(&parts(64, &[7])), 0)]),
    ("cat of 256", || vec![Tensor::cat(&refs(&parts(256, &[7])), 0)]),
    ("cat of 256, sizes differ", || vec![Tensor::cat(&refs(&uneven(256)), 0)]),
    ("cat of 64 columns", || vec![Tensor::cat(&refs(&parts(64, &[100, 3])), 1)]),
    ("cat of 64, each computed", || {
        let parts: Vec<Tensor> = parts(64, &[50]).iter().map(|x| (x * 2.0).tanh()).collect();
        vec![Tensor::cat(&refs(&parts), 0)]
    }),
    ("cat of 24, computed differently", || {
        let parts: Vec<Tensor> =
            parts(24, &[50]).iter().enumerate().map(|(n, x)| kinds(n % 7 + 1, x)).collect();
        vec![Tensor::cat(&refs(&parts), 0)]
    }),
    ("stack of 64", || vec![Tensor::stack(&refs(&parts(64, &[100])), 0)]),
    ("stack of 64, last axis", || vec![Tensor::stack(&refs(&parts(64, &[100])), -1)]),
    ("64 different results", || results(64)),
    ("300 different results", || results(300)),
    ("64 statistics of one tensor", || {
        let x = data(&[200, 100]);
        (0..64).map(|n| (&x * (1.0 + n as f64)).sin().mean(1)).collect()
    }),
    ("augmentation of 8 images", || {
        let images: Vec<Tensor> = (0..8).map(augmented).collect();
        vec![Tensor::stack(&refs(&images), 0)]
    }),
    ("max_pool2d(5, stride 1, padding 2)", || {
        vec![data(&[8, 64, 64]).max_pool2d_with(Pool2d::new(5).stride(1).padding(2))]
    }),
    ("max_pool2d(3, stride 2, padding 1)", || {
        vec![data(&[8, 64, 64]).relu().max_pool2d_with(Pool2d::new(3).stride(2).padding(1))]
    }),
    ("box, Sobel and local contrast, padded", || vec![filters()]),
    ("window of 7 x 7 of a window of 5 x 5", || {
        let x = data(&[64, 64]).window(0, 5, 1, 1).window(1, 5, 1, 1).mean([2, 3]);
        vec![x.window(0, 7, 1, 1).window(1, 7, 1, 1).square().mean([2, 3])]
    }),
    ("scan with a step of 100 operations", || vec![scan(100)]),
    ("scan with a step of 2,000 operations", || vec![scan(2000)]),
    ("190 nested wheres", || vec![wheres(190)]),
    ("median of 3 x 3 by a network", || vec![median()]),
    ("18 steps of Mandelbrot", || vec![mandelbrot(18)]),
    ("1,000 operations", || vec![(0..14).fold(data(&[64, 256]), |x, _| block(&x))]),
    ("1,000 operations, one chain", || {
        vec![(0..250).fold(data(&[100_000]), |y, n| ((y * 1.01 + 0.5).abs() - n as f64 * 0.01).maximum(-1.0))]
    }),
];

fn data(shape: &[usize]) -> Tensor {
    let values = (0..shape.iter().product()).map(|i: usize| (i * 7919 % 1000) as f32 / 500.0 - 1.0);
    Tensor::from_vec::<f32>(values.collect(), shape.to_vec()).to(&Device::cpu())
}

fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

fn parts(count: usize, shape: &[usize]) -> Vec<Tensor> {
    (0..count).map(|_| data(shape)).collect()
}

fn uneven(count: usize) -> Vec<Tensor> {
    (0..count).map(|n| data(&[n * 37 % 23 + 1])).collect()
}

fn sines(count: usize) -> Tensor {
    (0..count).fold(data(&[100_000]), |y, _| y.sin() * 1.5)
}

fn kinds(count: usize, x: &Tensor) -> Tensor {
    (0..count).fold(x.clone(), |y, n| match n % 12 {
        0 => (y * 0.5).exp(),
        1 => (y.abs() + 1.0).log(),
        2 => y.tanh(),
        3 => y.sigmoid(),
        4 => y.cos(),
        5 => y.erf(),
        6 => y.gelu(),
        7 => (y.abs() + 0.5).pow(1.7),
        8 => y.expm1(),
        9 => y.abs().log1p(),
        10 => y.atan(),
        _ => (y * 0.1).tan(),
    })
}

/// Different in what is done, not only in numbers.
fn results(count: usize) -> Vec<Tensor> {
    let x = data(&[1000]);
    let one = |n: usize| {
        let y = &x * (n as f64 + 0.5);
        let y = if n & 1 == 0 { y.sin() } else { y.exp() };
        let y = if n & 2 == 0 { y + &x } else { y - 1.0 };
        let y = if n & 4 == 0 { y.abs() } else { y.square() };
        let y = if n & 8 == 0 { y.maximum(0.1) } else { y * &x };
        let y = if n & 16 == 0 { (y.abs() + 1.0).log() } else { y.tanh() };
        if n & 32 == 0 { y } else { y.relu() }
    };
    (0..count).map(one).collect()
}

fn augmented(number: usize) -> Tensor {
    let image = data(&[3, 96, 96]);
    let image = if number & 1 == 0 { image } else { image.flip(-1) };
    let at = number as isize;
    let image = image.slice(1, at..at + 64).slice(2, 2 * at..2 * at + 64);
    let image = image.pad(&[(0, 0), (4, 4), (4, 4)], 0.0).slice(1, at..at + 64).slice(2, 3..67);
    let image = (image * (0.8 + 0.05 * number as f64) + 0.02).clamp(0.0, 1.0);
    let grey = image.mean_keepdim(0);
    let image = &image * 0.7 + grey * 0.3;
    (image.pow(0.9 + 0.02 * number as f64) - 0.45) / 0.22
}

fn filters() -> Tensor {
    let x = data(&[128, 128]);
    let near =
        |y: isize, z: isize| x.pad(&[(1, 1), (1, 1)], 0.0).slice(0, 1 + y..129 + y).slice(1, 1 + z..129 + z);
    let across = (near(-1, 1) - near(-1, -1)) + (near(0, 1) - near(0, -1)) * 2.0 + (near(1, 1) - near(1, -1));
    let down = (near(1, -1) - near(-1, -1)) + (near(1, 0) - near(-1, 0)) * 2.0 + (near(1, 1) - near(-1, 1));
    let box_ = x.unsqueeze(0).avg_pool2d_with(Pool2d::new(7).stride(1).padding(3)).squeeze(0);
    (across.square() + down.square()).sqrt() / (box_.abs() + 0.1)
}

fn scan(operations: usize) -> Tensor {
    let x = data(&[1000, 16]);
    let step = |h: &Tensor, x: &Tensor| {
        (0..operations / 4).fold(h * 0.5, |y, n| ((y + x) * 0.9).maximum(-2.0) - 0.001 * n as f64)
    };
    let ([_], [all]) = lazuli::scan([&x], 0, ScanOrder::new(), [0.0], |[h], [x]| {
        let next = step(h, x);
        ([next.clone()], [next])
    });
    all
}

fn wheres(count: usize) -> Tensor {
    let x = data(&[100_000]);
    (0..count).fold(x.clone(), |y, n| x.gt(n as f64 / count as f64).where_(&y * 0.5 + 0.1, &x))
}

/// Paeth's nineteen exchanges, on the nine shifts of an image.
fn median() -> Tensor {
    let x = data(&[130, 130]);
    let mut p: Vec<Tensor> =
        (0..9isize).map(|n| x.slice(0, n / 3..128 + n / 3).slice(1, n % 3..128 + n % 3)).collect();
    let exchanges = [
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 1),
        (3, 4),
        (6, 7),
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 3),
        (5, 8),
        (4, 7),
        (3, 6),
        (1, 4),
        (2, 5),
        (4, 7),
        (4, 2),
        (6, 4),
        (4, 2),
    ];
    for (a, b) in exchanges {
        (p[a], p[b]) = (p[a].minimum(&p[b]), p[a].maximum(&p[b]));
    }
    p.swap_remove(4)
}

fn mandelbrot(steps: usize) -> Tensor {
    let line = |from: f64| (data(&[256]) + from) * 1.2;
    let (re, im) = (line(-0.5).unsqueeze(0), line(0.0).unsqueeze(1));
    let (mut x, mut y) = (&re * 0.0 + &im * 0.0, &re * 0.0 + &im * 0.0);
    let mut count = &x * 0.0;
    for _ in 0..steps {
        (x, y) = (&x * &x - &y * &y + &re, &x * &y * 2.0 + &im);
        count = count + (&x * &x + &y * &y).lt(4.0).where_(1.0, 0.0);
    }
    count
}

/// Everything of a transformer block but the matrix products: about 70 operations.
fn block(x: &Tensor) -> Tensor {
    let (gamma, beta, bias) = (data(&[256]), data(&[256]), data(&[256]));
    let normal = x.layer_norm([256], Some(&gamma), Some(&beta), 1e-5);
    let scores = (&normal * 0.125 + bias).softmax(-1);
    let attended = (&scores * &normal).gt(0.01).where_(&scores, 0.0) + x;
    let hidden = (attended.layer_norm([256], Some(&gamma), Some(&beta), 1e-5) * 1.5 + &beta).gelu_tanh();
    let gate = (hidden.mean_keepdim(1) * 0.25).sigmoid();
    &hidden * &gate + &attended * 0.5
}

/// One program, in this process: a line for the table.
fn measure(name: &str, record: Record) {
    let results = record();
    let start = Instant::now();
    let program = lazuli::compile_for(&results, &Target::cpu()).expect("a plan");
    let planned = start.elapsed();
    let bytes: usize = program.kernels().iter().map(|kernel| kernel.source().len()).sum();
    let kernels = program.kernels().len();
    drop((program, results));
    let call = || {
        let results = record();
        let start = Instant::now();
        lazuli::eval(&results).expect("values");
        start.elapsed()
    };
    let first = call();
    // The plan was there, as the kernels are in the second call: the difference is what compilers and loading took.
    let compiling = first.saturating_sub(call());
    println!(
        "{name:<42}{kernels:>8}{:>10.1}{:>9.0}{:>9.0}{:>9.0}",
        bytes as f64 / 1e3,
        milliseconds(planned),
        milliseconds(compiling),
        milliseconds(planned + first),
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let Ok(name) = std::env::var("FIRST_CALL") {
        let program = PROGRAMS.iter().find(|(other, _)| *other == name);
        return program.map_or((), |(name, record)| measure(name, *record));
    }
    println!(
        "{:<42}{:>8}{:>10}{:>9}{:>9}{:>9}",
        "program (ms)", "kernels", "kB text", "plan", "compile", "first"
    );
    for (name, _) in PROGRAMS {
        if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
            let cache = tempfile::tempdir().expect("a folder");
            run(name, cache.path());
        }
    }
}

/// The caches in memory are a process's, the one on disk is the folder's.
fn run(name: &str, cache: &Path) {
    let this = std::env::current_exe().expect("a path");
    let status = Command::new(this).env("FIRST_CALL", name).env("LAZULI_CACHE_DIR", cache).status();
    assert!(status.expect("a process").success(), "{name} failed");
}
