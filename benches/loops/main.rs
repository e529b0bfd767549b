//! Loops whose steps are recorded one after the other, and evaluated at their end or in each step.
//! `benches/notes/loops.md` says what the figures are.
//!
//! ```text
//! cargo bench --bench loops                      # all programs, 10 and 100 steps
//! cargo bench --bench loops -- lstm 10 100 1000  # those whose names contain a word, so many steps
//! ```

#![allow(clippy::expect_used, reason = "a benchmark that fails has nothing to tell")]

mod programs;

use std::time::Instant;

use lazuli::{DType, Tensor, stats};
use programs::{Each, PROGRAMS, Program};

/// Calls of each kind, of which the least counts.
const CALLS: usize = 3;

fn main() {
    let (mut names, mut steps) = (Vec::new(), Vec::new());
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        match argument.parse() {
            Ok(number) => steps.push(number),
            Err(_) => names.push(argument),
        }
    }
    if steps.is_empty() {
        steps = vec![10, 100];
    }
    println!(
        "{:<24}{:>7}{:>12}{:>9}{:>12}{:>9}{:>10}",
        "ms", "steps", "first call", "texts", "recorded", "kernels", "each step"
    );
    let chosen = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part.as_str()));
    for &(name, program) in PROGRAMS.iter().filter(|(name, _)| chosen(name)) {
        for &steps in &steps {
            measure(name, program, steps);
        }
    }
}

fn measure(name: &str, program: Program, steps: usize) {
    let before = stats().kernels_compiled;
    let (first, results) = timed(program, steps, |_| ());
    let texts = stats().kernels_compiled - before;
    let launches = stats().launches;
    let recorded = least(program, steps, |_| ());
    let launches = (stats().launches - launches) / CALLS as u64;
    let staged = least(program, steps, |x| x.eval().expect("a step is evaluated"));
    let (_, again) = timed(program, steps, |x| x.eval().expect("a step is evaluated"));
    let apart = results.iter().zip(&again).map(|(a, b)| apart(a, b)).fold(0.0, f64::max);
    let note = if apart > 1e-3 { format!("   results are {apart:.1e} apart") } else { String::new() };
    println!("{name:<24}{steps:>7}{first:>12.1}{texts:>9}{recorded:>12.2}{launches:>9}{staged:>10.2}{note}");
}

fn least(program: Program, steps: usize, each: Each) -> f64 {
    (0..CALLS).map(|_| timed(program, steps, each).0).fold(f64::INFINITY, f64::min)
}

/// Milliseconds of a call, and its results.
fn timed(program: Program, steps: usize, each: Each) -> (f64, Vec<Tensor>) {
    let start = Instant::now();
    let results = program(steps, each);
    lazuli::eval(&results).expect("the program is evaluated");
    (start.elapsed().as_secs_f64() * 1e3, results)
}

/// The largest difference, beside the largest number.
fn apart(a: &Tensor, b: &Tensor) -> f64 {
    let number = |x: Tensor| x.item::<f64>().expect("a number");
    let (a, b) = (a.cast(DType::F64), b.cast(DType::F64));
    number((&a - &b).abs().max(..)) / number(b.abs().max(..)).max(1e-30)
}
