//! The scoreboard's workloads at their real sizes on one device, fused and unfused, beside what a copy of memory takes.
//!
//! ```text
//! workloads [--device cpu|cuda] [--out FILE] [--rounds N] [--small] [NAME...]
//! ```
//! `NAME`s are parts of workloads' names. The figures are wall times of a call, from recording on, in a batch that is
//! waited for once: the median of the rounds. They go to `FILE` as JSON, seconds and bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the benchmark.

#[path = "../never_loses/common.rs"]
mod common;
include!("../../tests/scoreboard/modules.rs");

use std::time::Instant;

use lazuli::{Device, Fusion, Tensor, with_fusion};
use serde_json::{Value, json};

use groups::groups;
use inputs::{Inputs, Workload};

/// Seconds that a batch takes at least, so that the wait at its end counts for little.
const BATCH: f64 = 0.01;

struct Options {
    device: Device,
    out: String,
    rounds: usize,
    is_small: bool,
    names: Vec<String>,
}

impl Options {
    fn new() -> Options {
        let mut options = Options {
            device: Device::cpu(),
            out: "target/workloads.json".into(),
            rounds: 7,
            is_small: false,
            names: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value behind the option");
            match argument.as_str() {
                // What `cargo bench` adds.
                "--bench" => {}
                "--device" if value() == "cuda" => options.device = Device::cuda(0),
                "--device" => {}
                "--out" => options.out = value(),
                "--rounds" => options.rounds = value().parse().expect("a number of rounds"),
                "--small" => options.is_small = true,
                name => options.names.push(name.into()),
            }
        }
        options
    }

    fn wants(&self, workload: &Workload) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| workload.name.contains(name.as_str()))
    }
}

/// Seconds of a call: the median over the rounds.
fn seconds(
    device: &Device,
    rounds: usize,
    mut call: impl FnMut() -> lazuli::Result<()>,
) -> lazuli::Result<f64> {
    let mut batch = |calls: usize| {
        let start = Instant::now();
        (0..calls).try_for_each(|_| call())?;
        device.synchronize()?;
        lazuli::Result::Ok(start.elapsed().as_secs_f64() / calls as f64)
    };
    // The first call compiles.
    batch(1)?;
    let calls = (BATCH / batch(1)?).clamp(1.0, 1000.0) as usize;
    let mut found = (0..rounds).map(|_| batch(calls)).collect::<lazuli::Result<Vec<f64>>>()?;
    found.sort_by(f64::total_cmp);
    Ok(found[found.len() / 2])
}

/// Bytes a second that a copy reads and writes.
fn copy(options: &Options) -> lazuli::Result<f64> {
    let elements = match (options.is_small, options.device == Device::cpu()) {
        (true, _) => 1 << 12,
        (false, true) => 1 << 25,
        (false, false) => 1 << 28,
    };
    let x = Tensor::rand([elements], 1).to(&options.device);
    x.eval()?;
    // The same kernel launch as any other, with as little to compute as there can be.
    let seconds = seconds(&options.device, options.rounds, || (-&x).eval())?;
    Ok(8.0 * elements as f64 / seconds)
}

fn measured(workload: &Workload, options: &Options) -> lazuli::Result<Value> {
    let mut inputs = Inputs::kept(&options.device, !options.is_small);
    let explanation = lazuli::explain(&(workload.record)(inputs.again()))?;
    let mut timed = |fusion| {
        with_fusion(fusion, || {
            seconds(&options.device, options.rounds, || lazuli::eval(&(workload.record)(inputs.again())))
        })
    };
    Ok(json!({
        "name": workload.name,
        "fused": timed(Fusion::On)?,
        "unfused": timed(Fusion::Off)?,
        "kernels": explanation.kernels(),
        "moved": explanation.bytes_moved(),
        "bytes": explanation.least_bytes(),
    }))
}

fn main() {
    let options = Options::new();
    let copy = copy(&options).expect("a copy");
    println!("{}: a copy reads and writes {:.1} GB/s", options.device, copy / 1e9);
    println!("{:<44} {:>12} {:>9} {:>10}", "workload", "µs", "× unfused", "% of copy");
    let mut workloads = Vec::new();
    for workload in groups().into_iter().flat_map(|(_, workloads)| workloads).filter(|w| options.wants(w)) {
        match measured(&workload, &options) {
            Ok(row) => {
                let number = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
                let (fused, unfused) = (number("fused"), number("unfused"));
                println!(
                    "{:<44} {:>12.1} {:>9.2} {:>10.0}",
                    workload.name,
                    fused * 1e6,
                    unfused / fused,
                    100.0 * number("bytes") / fused / copy
                );
                workloads.push(row);
            }
            Err(error) => println!("{}: {error}", workload.name),
        }
    }
    let found =
        json!({ "device": options.device.to_string(), "copy_gbps": copy / 1e9, "workloads": workloads });
    std::fs::write(&options.out, found.to_string()).expect("a file for the figures");
    println!("the figures: {}", options.out);
}
