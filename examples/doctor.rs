//! What works on this machine, and what to do about what does not.
//!
//!     cargo run --example doctor
//!
//! It evaluates a small expression on each device, for real and without the cache, and compares the results.

use lazuli::{DType, Device, Error, Target, Tensor, profile};

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

/// The command that mends a missing C compiler.
fn mend() -> String {
    if let Ok(chosen) = std::env::var("LAZULI_CC") {
        let others = ["cc", "gcc", "clang"];
        if let Some(other) = others.into_iter().find(|program| is_program(program)) {
            return format!("unset LAZULI_CC   # it is {chosen:?}, and {other} is there");
        }
    }
    let managers = [
        ("apt-get", "sudo apt-get install gcc libc6-dev"),
        ("dnf", "sudo dnf install gcc"),
        ("pacman", "sudo pacman -S gcc"),
        ("zypper", "sudo zypper install gcc"),
        ("apk", "sudo apk add gcc musl-dev"),
        ("brew", "brew install gcc"),
    ];
    let own = managers.into_iter().find(|(manager, _)| is_program(manager));
    own.map_or("export LAZULI_CC=…   # a C compiler", |(_, command)| command).to_owned()
}

fn is_program(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// Runs the expression by kernels. Whether that worked.
fn try_device(what: &str, device: &Device, expected: &[f32]) -> bool {
    let (values, profile) = profile(|| expression(device).to_vec::<f32>());
    match values {
        // What is right may be an interpreter's.
        Ok(_) if profile.kernels().is_empty() => {
            println!("missing  {what}");
            if let Err(error) = device.compiler() {
                println!("         {error}");
            }
            println!(
                "         The interpreter takes its place, which is slow. To mend it:\n\n             {}\n",
                mend()
            );
            false
        }
        Ok(values) => {
            let milliseconds = profile.seconds() * 1e3;
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
    let compiler =
        Device::cpu().compiler().unwrap_or_else(|_| "a C compiler (LAZULI_CC, CC, cc, gcc, clang)".into());
    try_device(&format!("the CPU, by {compiler}"), &Device::cpu(), &expected);

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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The process of the test below, which has its own environment.
    #[test]
    #[ignore = "run by another test"]
    fn runs() {
        main().unwrap();
    }

    fn said(compiler: &str) -> String {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "tests::runs"]).env("LAZULI_CC", compiler);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn an_interpreter_is_no_compiler() {
        let text = said("/nonexistent");
        let cpu: Vec<&str> = text.lines().skip_while(|line| !line.contains("the CPU, by ")).take(6).collect();
        assert!(cpu[0].starts_with("missing  the CPU, by a C compiler"), "{text}");
        assert!(cpu[1].contains("/nonexistent: not found"), "{text}");
        assert!(cpu[2].contains("The interpreter takes its place"), "{text}");
        let commands = ["unset LAZULI_CC", "install gcc", "-S gcc", "add gcc", "export LAZULI_CC="];
        assert!(commands.iter().any(|command| cpu[4].contains(command)), "{text}");
    }

    #[test]
    fn a_compiler_is_named() {
        let text = said("cc");
        assert!(text.contains("works    the CPU, by "), "{text}");
        assert!(!text.contains("missing  the CPU"), "{text}");
    }
}
