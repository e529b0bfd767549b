//! The workloads that several tests look at, and tests that need a process of their own.

#![allow(dead_code, reason = "each test target uses its own part")]

use std::process::{Command, Output};

use lazuli::{Error, Pool2d, Program, Target, Tensor};

#[path = "../common/matrix.rs"]
pub mod matrix;
#[cfg(feature = "cuda")]
#[path = "../common/nvrtc.rs"]
pub mod nvrtc;

/// Numbers between -5 and 5, none of them special.
pub fn data(elements: usize) -> Vec<f32> {
    (0..elements).map(|n| ((n * 7919 % 1000) as f32 - 499.5) / 100.0).collect()
}

pub fn tensor<const N: usize>(shape: [usize; N]) -> Tensor {
    Tensor::from_vec(data(shape.iter().product()), shape)
}

/// Plans for a target. NVRTC compiles kernels for CUDA, where it is there.
pub fn compile_for<'a>(
    tensors: impl IntoIterator<Item = &'a Tensor>,
    target: &Target,
) -> lazuli::Result<Program> {
    let program = lazuli::compile_for(tensors, target)?;
    #[cfg(feature = "cuda")]
    if let Err(problems) = nvrtc::compile(std::slice::from_ref(&program)) {
        panic!("{problems}");
    }
    Ok(program)
}

/// A pipeline that fusion exists for, at any batch size.
pub struct Seed {
    pub name: &'static str,
    /// The results for a batch size.
    pub record: fn(usize) -> Vec<Tensor>,
    /// Kernels, at most.
    pub kernels: usize,
    /// Whether each input is read once and each result written once, and nothing else.
    pub least_traffic: bool,
}

pub const SEEDS: [Seed; 13] = [
    Seed {
        name: "relu_max_pool2d",
        record: |n| vec![tensor([n, 3, 32, 32]).relu().max_pool2d(2, 2)],
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "relu_max_pool2d_padded",
        record: |n| vec![tensor([n, 3, 31, 33]).relu().max_pool2d_with(Pool2d::new(3).stride(2).padding(1))],
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "where_mul",
        record: |n| {
            let (x, y) = (tensor([n, 1000]), tensor([n, 1000]));
            vec![x.gt(0.5).where_(&x * 2.0, &x / 2.0) * y]
        },
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "bias_relu",
        record: |n| vec![(tensor([n, 64]) + tensor([64])).relu()],
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "gelu_chain",
        record: |n| vec![((tensor([n, 128]) * 1.5 + 0.25).gelu() - 0.5).tanh()],
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "normalise_image",
        record: |n| {
            let x = tensor([n, 24, 32, 3]);
            vec![(&x - x.mean(..)) / (x.var(.., 0) + 1e-5).sqrt()]
        },
        kernels: 2,
        least_traffic: false,
    },
    Seed {
        name: "normalise_rows",
        record: |n| {
            let x = tensor([n, 300]);
            vec![(&x - x.mean_keepdim(1)) / (x.var_keepdim(1, 0) + 1e-5).sqrt()]
        },
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "relu_for_two",
        record: |n| {
            let y = tensor([n, 100]).relu();
            vec![y.exp() * 0.5, &y + 1.0]
        },
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "value_and_its_use",
        record: |n| {
            let y = tensor([n, 100]).relu();
            vec![y.clone(), y.square() + 1.0]
        },
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "sgd_momentum",
        record: |n| {
            let (weight, gradient, velocity) = (tensor([n, 100]), tensor([n, 100]), tensor([n, 100]));
            let velocity = velocity * 0.9 + gradient;
            vec![weight - &velocity * 0.01, velocity]
        },
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "sum_max_mean",
        record: |n| {
            let x = tensor([n, 300]);
            vec![x.sum(1), x.max(1), x.mean(1)]
        },
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "relu_max_pool2d_stride_1",
        record: |n| vec![tensor([n, 1, 64, 64]).relu().max_pool2d(3, 1)],
        kernels: 1,
        least_traffic: true,
    },
    Seed {
        name: "noise",
        record: |n| vec![tensor([n, 100]) + Tensor::rand([n, 100], 42) * 0.1],
        kernels: 1,
        least_traffic: true,
    },
];

/// The start of a scenario's name in the environment.
const SCENARIO: &str = "LAZULI_TEST_SCENARIO";

/// Runs the calling file's test `child` in a process of its own, as a scenario, with only these `LAZULI_*`
/// variables.
pub fn in_child(scenario: &str, variables: &[(&str, &str)]) -> Output {
    in_limited_child("", scenario, variables)
}

/// As [`in_child`], after the shell has set limits to the process, such as `ulimit -n 16`.
pub fn in_limited_child(limits: &str, scenario: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{limits}\nexec \"$0\" \"$@\"")).arg(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LAZULI_")) {
        command.env_remove(name);
    }
    command.args(["child", "--exact", "--nocapture", "--test-threads=1"]);
    command.env("RUST_BACKTRACE", "0").env(SCENARIO, scenario);
    command.envs(variables.iter().copied()).output().unwrap()
}

/// As [`in_child`], for a scenario that must succeed: what it printed to stdout and stderr.
pub fn child_succeeds(scenario: &str, variables: &[(&str, &str)]) -> (String, String) {
    let output = in_child(scenario, variables);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{scenario}: {}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "{scenario} did not run:\n{stdout}");
    (stdout, stderr)
}

/// Which scenario this process is for; `None` in the process that runs all tests.
pub fn scenario() -> Option<String> {
    std::env::var(SCENARIO).ok()
}

/// The location of an invalid operation.
pub fn location(error: &Error) -> Option<lazuli::SourceLocation> {
    match error {
        Error::InvalidOperation { location, .. } => Some(*location),
        _ => None,
    }
}
