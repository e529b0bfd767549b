//! The CUDA C of the scoreboard's workloads at their real sizes, for `benches/sass/read.py`, which reads what NVRTC makes of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the benchmark.

#[path = "../never_loses/common.rs"]
mod common;
include!("../../tests/scoreboard/modules.rs");

use lazuli::Target;
use serde_json::{Value, json};

use groups::groups;
use inputs::Inputs;

/// Where the texts go unless the command line says.
const OUT: &str = "target/sass.json";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // What `cargo bench` and `cargo test` add is not for this program.
    let path = arguments.iter().find(|argument| !argument.starts_with('-')).map_or(OUT, String::as_str);
    let target = Target::cuda("sm_90");
    let mut kernels: Vec<Value> = Vec::new();
    for workload in groups().into_iter().flat_map(|(_, workloads)| workloads) {
        let results = (workload.record)(&mut Inputs::large());
        let program = lazuli::compile_for(&results, &target);
        let program = program.unwrap_or_else(|error| panic!("{}: {error}", workload.name));
        for (number, kernel) in program.kernels().iter().enumerate() {
            kernels.push(json!({
                "workload": workload.name,
                "number": number,
                "name": kernel.name(),
                "schedule": kernel.schedule().to_string(),
                "threads": kernel.block().iter().product::<u32>(),
                "blocks": kernel.grid().iter().product::<u64>(),
                "bytes": kernel.bytes_read() + kernel.bytes_written(),
                "source": kernel.source(),
            }));
        }
    }
    std::fs::write(path, serde_json::to_string(&kernels).unwrap()).unwrap();
    println!("{} kernels in {path}", kernels.len());
}
