//! How long the host takes for calls that compute next to nothing: an expression that is recorded in each call, its pieces,
//! and the same expression compiled. `cargo bench --bench latency`; the least and the median of many rounds, in microseconds.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark that cannot run says so and ends.

use std::time::{Duration, Instant};

use lazuli::{Tensor, compile, measure};

const ROUNDS: usize = 2000;

/// The least and the median time of a call of `f`; what it returns is dropped outside of the time.
fn time<T>(mut f: impl FnMut() -> T) -> (Duration, Duration) {
    for _ in 0..ROUNDS / 4 {
        f();
    }
    let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let result = f();
        times.push(start.elapsed());
        drop(result);
    }
    times.sort_unstable();
    (times[0], times[ROUNDS / 2])
}

fn show(name: &str, (least, median): (Duration, Duration)) {
    println!("{name:<44} {:>7.2} {:>7.2}", least.as_secs_f64() * 1e6, median.as_secs_f64() * 1e6);
}

fn one(x: &Tensor) -> Tensor {
    x * 2.0
}

fn ten(x: &Tensor) -> Tensor {
    ((((x * 0.5 + 1.0).relu() - 0.25) * x).maximum(0.125) * 2.0 - x).abs().sqrt()
}

fn twenty(x: &Tensor) -> Tensor {
    ten(&ten(x))
}

fn main() {
    let x = Tensor::from_vec((0..1000).map(|n| n as f32 / 1000.0).collect(), [1000]);
    println!("{:<44} {:>7} {:>7}", "1,000 elements, µs", "least", "median");
    let one: fn(&Tensor) -> Tensor = one;
    for (name, f) in [("one operation", one), ("ten operations", ten), ("twenty operations", twenty)] {
        show(
            &format!("{name}, recorded and evaluated"),
            time(|| {
                let y = f(&x);
                y.eval().unwrap();
                y
            }),
        );
        show(&format!("{name}, recorded, evaluated, dropped"), time(|| f(&x).eval().unwrap()));
        show("  recorded", time(|| f(&x)));
        let y = f(&x);
        show("  clone of a handle", time(|| x.clone()));
        let outputs = [y];
        for (piece, run) in measure::pieces(&outputs) {
            show(&format!("  {piece}"), time(run));
        }
        show("  recorded and dropped", time(|| drop(f(&x))));
        let compiled = compile(move |x: Tensor| f(&x));
        show(&format!("{name}, compiled"), time(|| compiled.call(&x).unwrap()));
        show(&format!("{name}, compiled, dropped"), time(|| drop(compiled.call(&x).unwrap())));
        let executable = compiled.executable(&x).unwrap();
        let mut memory = Some(executable.call(&x).unwrap());
        show(
            &format!("{name}, executable into memory"),
            time(|| {
                memory = memory.take().map(|memory| executable.call_into(&x, memory).unwrap());
            }),
        );
    }
    let plain: Vec<f32> = (0..1000).map(|n| n as f32 / 1000.0).collect();
    let mut result = vec![0.0f32; 1000];
    show(
        "ten operations, a loop in Rust",
        time(|| {
            for (y, &x) in result.iter_mut().zip(std::hint::black_box(&plain)) {
                *y = ((((x * 0.5 + 1.0).max(0.0) - 0.25) * x).max(0.125) * 2.0 - x).abs().sqrt();
            }
            std::hint::black_box(&mut result);
        }),
    );
}
