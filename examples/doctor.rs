//! What works on this machine, and what to do about what does not.
//!
//!     cargo run --example doctor
//!
//! It evaluates a small expression on each device, for real and without the cache, and compares the results.

use std::time::Instant;

use lazuli::{DType, Device, Error, Target, Tensor};

/// The expression: one kernel with a reduction inside.
fn expression(device: &Device) -> Tensor {
    let x = Tensor::from_vec((0..4096).map(|i| i as f32 / 512.0 - 4.0).collect(), [64, 64]);
    x.to(device).softmax(1) * 2.0
}

/// What a user can do: an error's hint is its last sentence.
fn tell(what: &str, error: &Error) {
    println!("missing  {what}");
    for line in error.to_string().lines() {
        println!("         {line}");
    }
}

/// Runs the expression. Whether it worked.
fn try_device(what: &str, device: &Device, expected: &[f32]) -> bool {
    let start = Instant::now();
    match expression(device).to_vec::<f32>() {
        Ok(values) => {
            let milliseconds = start.elapsed().as_secs_f64() * 1e3;
            let error = values.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let is_right = values.len() == expected.len() && error < 1e-6;
            let verdict = if is_right { "works  " } else { "WRONG  " };
            println!(
                "{verdict}  {what}: a softmax in {milliseconds:.1} ms, compiling included, off by {error:.1e}"
            );
            is_right
        }
        Err(error) => {
            tell(what, &error);
            false
        }
    }
}

fn main() -> lazuli::Result<()> {
    // SAFETY: nothing has run yet, so that no other thread reads the environment.
    unsafe { std::env::set_var("LAZULI_CACHE", "off") };
    println!("Lazuli {} on {} {}\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);

    let expected = expression(&Device::interpreter()).to_vec::<f32>()?;
    try_device("the CPU, by the C compiler (LAZULI_CC, CC, cc, gcc, clang)", &Device::cpu(), &expected);

    let program = expression(&Device::cpu()).compile_for(&Target::cuda("sm_90"))?;
    #[cfg(feature = "cuda")]
    match program.kernels().first().map(|kernel| kernel.compile()) {
        Some(Ok(kernel)) => {
            println!("works    NVRTC: the kernel has {} registers a thread on sm_90", kernel.info.registers)
        }
        Some(Err(error)) => tell("NVRTC, which compiles CUDA C", &error),
        None => {}
    }
    #[cfg(not(feature = "cuda"))]
    println!("left out NVRTC and GPUs: build with the feature `cuda` ({} kernel)", program.kernels().len());

    for gpu in (0..).map(Device::cuda) {
        let is_another = gpu != Device::cuda(0);
        if is_another && Tensor::zeros([1], DType::F32).to(&gpu).eval().is_err() {
            break;
        }
        if !try_device(&format!("GPU {gpu}"), &gpu, &expected) {
            break;
        }
    }
    if cfg!(feature = "emulate") {
        try_device("CUDA C on the CPU, by the C++ compiler (CXX, g++)", &Device::cuda_emulated(), &expected);
    } else {
        println!("left out CUDA C on the CPU, for tests: build with `--features emulate`");
    }

    let settings: Vec<String> = std::env::vars()
        .filter(|(name, _)| name.starts_with("LAZULI_") && name != "LAZULI_CACHE")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    println!("\nSettings: {}", if settings.is_empty() { "the defaults".into() } else { settings.join(" ") });
    println!("`Device::best()` is {}.", Device::best());
    Ok(())
}
