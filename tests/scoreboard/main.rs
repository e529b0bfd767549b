//! Whether fusion got better or worse: what it makes of expressions as people write them, in one table,
//! `snapshots/scoreboard.snap` (`INSTA_UPDATE=always cargo test --test scoreboard` writes it anew).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.
#![allow(clippy::duplicate_mod, reason = "`common` and `workloads` each have the module for NVRTC")]

#[path = "../common/mod.rs"]
mod common;
include!("modules.rs");

use std::fmt::Write;

use lazuli::{DType, Device, Program, Target, Tensor};
use rayon::prelude::*;

use common::{Output, Scope, exact, near};
use groups::groups;
use inputs::{Inputs, Workload};

fn program(workload: &Workload) -> Program {
    let results = (workload.record)(&mut Inputs::large());
    let program = lazuli::compile_for(&results, &Target::cuda("sm_90"));
    program.unwrap_or_else(|error| panic!("{}: {error}", workload.name))
}

/// `column_reduce, pointwise ×2`: the schedules in order, without their parameters.
fn schedules(program: &Program) -> String {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for kernel in program.kernels() {
        let schedule = kernel.schedule().to_string();
        let name = schedule.split('(').next().unwrap().to_string();
        match runs.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => runs.push((name, 1)),
        }
    }
    let text = |(name, count)| if count == 1 { name } else { format!("{name} ×{count}") };
    runs.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// As a multiple of the least possible.
fn multiple(bytes: u64, least: u64) -> String {
    let multiple = bytes as f64 / least as f64;
    match multiple {
        ..1e3 => format!("{multiple:.2}"),
        ..1e6 => format!("{multiple:.0}"),
        _ => format!("{multiple:.1e}"),
    }
}

const HEAD: &str = "\
For CUDA sm_90. Bytes are multiples of the least possible, which is each input read once and each result written once;
a kernel's buffers count once. Registers are the largest estimate of a fused kernel. A note says why a row is more than
one kernel or more than the least bytes.

                                          kernels         bytes
workload                               fused unfused  fused unfused  registers  schedules                  note
";

#[test]
fn the_table() {
    let mut table = String::from(HEAD);
    let (mut count, mut of_one, mut of_least) = (0, 0, 0);
    let mut wrong = String::new();
    for (heading, workloads) in groups() {
        writeln!(table, "\n{heading}").unwrap();
        for workload in workloads {
            let program = program(&workload);
            let explanation = program.explain();
            let (kernels, least) = (explanation.kernels(), explanation.least_bytes());
            let bytes = multiple(explanation.bytes_moved(), least);
            let registers = program.kernels().iter().map(|kernel| kernel.register_estimate()).max().unwrap();
            let Workload { name, note, .. } = workload;
            let line = format!(
                "  {name:<36}{kernels:>6}{:>8}{bytes:>7}{:>8}{registers:>11}  {:<26} {note}",
                explanation.unfused_kernels(),
                multiple(explanation.unfused_bytes(), least),
                schedules(&program),
            );
            writeln!(table, "{}", line.trim_end()).unwrap();
            count += 1;
            of_one += usize::from(kernels == 1);
            of_least += usize::from(bytes == "1.00");
            if note.is_empty() != (kernels == 1 && bytes == "1.00") {
                writeln!(wrong, "{name}: {note:?}\n{explanation}").unwrap();
            }
        }
    }
    writeln!(table, "\n{count} workloads, {of_one} with one kernel, {of_least} at 1.00×").unwrap();
    insta::with_settings!({
        snapshot_path => "../../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!("scoreboard", table) });
    assert!(wrong.is_empty(), "a note where none is needed, or none where one is:\n{wrong}");
}

/// What the table counts is right: fused and unfused as the interpreter says, at small sizes.
#[test]
fn the_results() {
    let scope = Scope { unfused: false, nvrtc: false, ..common::EVERYTHING };
    let output = |tensor: Tensor| -> Output {
        match tensor.dtype().unwrap() {
            DType::F16 | DType::BF16 => near("result", tensor, 2e-2, 2e-2),
            dtype if dtype.is_float() => near("result", tensor, 1e-4, 1e-4),
            _ => exact("result", tensor),
        }
    };
    let workloads: Vec<Workload> = groups().into_iter().flat_map(|(_, workloads)| workloads).collect();
    let differences: String = workloads
        .par_iter()
        .map(|Workload { name, record, .. }| {
            let results = |device: &Device| record(&mut Inputs::small(device));
            let is_finite = |result: &Tensor| result.isfinite().all(..).item::<bool>().unwrap();
            if !results(&Device::interpreter()).iter().all(is_finite) {
                return format!("{name} gives a NaN or an infinity, which many mistakes give too\n");
            }
            common::differences(name, scope, |device| results(device).into_iter().map(output).collect())
        })
        .collect();
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
#[cfg(feature = "cuda")]
fn the_kernels_compile_without_spills() {
    let programs: Vec<Program> = groups().iter().flat_map(|(_, workloads)| workloads).map(program).collect();
    workloads::nvrtc::compile_without_spills(&programs).unwrap();
}

/// NVRTC takes a vector apart where it does not see where a pointer is from: see `text`.
#[test]
#[cfg(feature = "cuda")]
fn vectors_stay_vectors() {
    let programs: Vec<Program> = groups().iter().flat_map(|(_, workloads)| workloads).map(program).collect();
    workloads::nvrtc::check_widths(&programs).unwrap_or_else(|problems| panic!("{problems}"));
}

/// What the test above would find.
#[test]
#[cfg(feature = "cuda")]
fn a_vector_that_is_taken_apart_is_found() {
    let text = |place: &str| {
        format!(
            "extern \"C\" __global__ void k(const float* __restrict__ in0, float* __restrict__ out0) {{\n  \
             const unsigned t = blockIdx.x * 256u + threadIdx.x;\n  \
             const unsigned i0 = t / 32768u;\n  const unsigned i1 = t / 1024u % 32u;\n  \
             const unsigned i2 = t % 1024u * 4u;\n  \
             __align__(16) float x[4];\n  __align__(16) float y[4];\n  \
             *(float4*)(x) = *(const float4*)(in0 + i2);\n\
             #pragma unroll\n  for (unsigned l = 0u; l < 4u; ++l) y[l] = x[l] + 1.0f;\n  \
             *(float4*)({place}) = *(const float4*)(y);\n}}\n"
        )
    };
    if lazuli::nvrtc::find().is_err() {
        return println!("not checked: there is no NVRTC");
    }
    let chain = text("out0 + i0 * 131072u + i1 * 4096u + i2");
    assert!(
        workloads::nvrtc::narrowed(&[("chain", &chain)])
            .contains("st.global of [4, 4, 4, 4] bytes, in the text [16]")
    );
    let sum = text("out0 + (i0 * 131072u + i1 * 4096u + i2)");
    assert_eq!(workloads::nvrtc::narrowed(&[("sum", &sum)]), "");
}

/// The estimates are of use: NVRTC takes neither twice as many registers nor half as many, and a few.
#[test]
#[cfg(feature = "cuda")]
fn registers_are_estimated() {
    let (_, seeds) = groups().remove(0);
    for workload in seeds {
        for kernel in program(&workload).kernels() {
            let Ok(compiled) = kernel.compile() else { return println!("not checked: there is no NVRTC") };
            let (estimate, taken) = (kernel.register_estimate(), compiled.info.registers);
            let is_near = taken <= 2 * estimate + 8 && estimate <= 2 * taken + 8;
            assert!(is_near, "{}: {estimate} estimated, {taken} taken", workload.name);
        }
    }
}
