//! The texts that people read: kernels, explanations, error messages. Each is a file in `snapshots/`; a
//! change shows up as a difference in review (`INSTA_UPDATE=always cargo test` accepts it).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use lazuli::{Error, Target, Tensor};
use workloads::{SEEDS, compile_for};

fn assert_text(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(name, text) });
}

/// Seeds whose kernels are worth reading; the others differ little.
const READ: [&str; 8] = [
    "relu_max_pool2d",
    "relu_max_pool2d_padded",
    "where_mul",
    "bias_relu",
    "gelu_chain",
    "normalise_image",
    "sgd_momentum",
    "sum_max_mean",
];

#[test]
fn kernels_of_the_seeds() {
    for seed in SEEDS.iter().filter(|seed| READ.contains(&seed.name)) {
        let results = (seed.record)(16);
        for (language, target) in [("cuda", Target::cuda("sm_90")), ("c", Target::cpu())] {
            let program = compile_for(&results, &target).unwrap();
            assert_text(&format!("{}_{language}", seed.name), &program.source());
        }
    }
}

/// Small kernels of one text: a table of their parameters.
#[test]
fn kernels_of_several_parts() {
    let averaged = |n: usize| workloads::tensor([n, 9]) * 0.75 + workloads::tensor([n, 9]) * 0.25;
    let results: Vec<lazuli::Tensor> = (1..6).map(averaged).collect();
    for (language, target) in [("cuda", Target::cuda("sm_90")), ("c", Target::cpu())] {
        let program = compile_for(&results, &target).unwrap();
        assert_eq!(program.kernels().len(), 1);
        assert_text(&format!("batch_{language}"), &program.source());
    }
    let explanation = compile_for(&results, &Target::cuda("sm_90")).unwrap().explain();
    assert_text("explanation_of_a_batch", &explanation.to_string());
}

/// An embedding with what is before and after it.
#[test]
fn kernels_that_gather() {
    let (table, ids) = (workloads::tensor([1000, 256]), workloads::tensor([8, 32]).cast(lazuli::DType::I32));
    let vectors = (ids.relu().embedding(&table) * 16.0).layer_norm([256], None, None, 1e-5);
    for (language, target) in [("cuda", Target::cuda("sm_90")), ("c", Target::cpu())] {
        let program = compile_for(std::slice::from_ref(&vectors), &target).unwrap();
        assert_eq!(program.kernels().len(), 1);
        assert_text(&format!("embedding_{language}"), &program.source());
    }
}

/// An exponential moving average of each column and of each row, with what is before and after it: on a GPU something cheap, as
/// a root beside so few lines is a kernel of its own.
#[test]
fn kernels_of_recurrences() {
    for (axis, name) in ["moving_average", "moving_average_rows"].into_iter().enumerate() {
        let x = workloads::tensor([1000, 64]).square();
        let average = x.scan_with(axis as isize, 0.0, |h, x| h * 0.9 + x * 0.1);
        let (cuda, cpu) = (Target::cuda("sm_90"), Target::cpu());
        for (language, target, after) in [("cuda", cuda, &average + 1.0), ("c", cpu, average.sqrt())] {
            let program = compile_for([&after], &target).unwrap();
            assert_eq!(program.kernels().len(), 1);
            assert_text(&format!("{name}_{language}"), &program.source());
        }
    }
}

/// Where a row stays from sweep to sweep depends on what the architecture has.
#[test]
fn rows_in_registers_and_in_shared_memory() {
    let mut text = String::new();
    for length in [8_192, 24_576, 40_960, 65_536] {
        let result = workloads::tensor([512, length]).softmax(-1);
        for architecture in ["sm_75", "sm_86", "sm_90"] {
            let program = result.compile_for(&Target::cuda(architecture)).unwrap();
            let kernels: Vec<String> =
                program.kernels().iter().map(|kernel| kernel.schedule().to_string()).collect();
            text.push_str(&format!("{length} on {architecture}: {}\n", kernels.join("; ")));
            if (length, architecture) == (40_960, "sm_90") {
                assert_text("row_in_shared_memory_cuda", &program.source());
            }
        }
    }
    assert_text("where_rows_stay", &text);
}

/// On the CPU, each part of a join has a loop of its own.
#[test]
fn kernels_of_joins() {
    let parts = [[100, 64], [20, 64], [300, 64]].map(workloads::tensor);
    let rows = Tensor::cat(&parts.each_ref(), 0) * 2.0;
    let columns = Tensor::cat(&[&workloads::tensor([50, 30]), &workloads::tensor([50, 70])], 1) * 2.0;
    for (name, joined) in [("join_of_rows_c", rows), ("join_of_columns_c", columns)] {
        let program = compile_for(std::slice::from_ref(&joined), &Target::cpu()).unwrap();
        assert_text(name, &program.source());
    }
}

/// On CUDA, whole vectors are of one part, and the parts share registers.
#[test]
fn a_join_of_vectors() {
    let parts = [[50, 64], [50, 32], [50, 160]].map(workloads::tensor);
    let joined = Tensor::cat(&parts.each_ref(), 1) * 2.0;
    let program = compile_for(std::slice::from_ref(&joined), &Target::cuda("sm_90")).unwrap();
    assert_text("join_of_columns_cuda", &program.source());
}

/// What the files of kernels show for CUDA.
#[test]
#[cfg(feature = "cuda")]
fn kernels_of_files_compile() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/kernels");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts: Vec<(String, String, String)> = paths
        .iter()
        .filter_map(|path| {
            let file = std::fs::read_to_string(path).unwrap();
            let (_, source) = file.split_once("\n==== --to cuda\n")?;
            let (source, _) = source.split_once("\n==== ").unwrap();
            let (before, _) = source.split_once("(\n").unwrap();
            let name = before.split(' ').next_back().unwrap();
            Some((name.into(), source.lines().next().unwrap().into(), source.into()))
        })
        .collect();
    assert!(texts.len() >= 10);
    workloads::nvrtc::compile_texts(&texts).unwrap();
}

#[test]
fn explanations_of_the_seeds() {
    let mut text = String::new();
    for seed in SEEDS {
        let program = compile_for(&(seed.record)(16), &Target::cuda("sm_90")).unwrap();
        text.push_str(&format!("=== {} ===\n{}\n", seed.name, program.explain()));
    }
    assert_text("explanations", &text);
}

#[test]
fn explanations_of_what_stays_apart() {
    let x = workloads::tensor([4, 16, 256, 256]);
    let rows = workloads::tensor([1024, 1024]);
    let apart = [
        ("gelu, then overlapping windows", x.gelu().max_pool2d(3, 1)),
        ("softmax", rows.softmax(-1)),
        ("layer_norm", rows.layer_norm([1024], None, None, 1e-5)),
        (
            "gather from what is reduced",
            rows.mean(1).index_select(0, &workloads::tensor([64]).cast(lazuli::DType::I64)),
        ),
        ("sums of segments, then their softmax", {
            let segments = workloads::tensor([1024]).cast(lazuli::DType::I64);
            rows.zeros_like().index_add(0, &segments, &rows).softmax(-1)
        }),
        ("rows, then columns", rows.sum_keepdim(1).exp() * rows.sum(0)),
    ];
    let computed = rows.sum(1);
    computed.eval().unwrap();
    let positions = lazuli::Tensor::arange(0.0f32, 1048576.0, 1.0);
    let statistics = |x: &lazuli::Tensor| [x.mean_keepdim(0), x.std_keepdim(0, 1), x.max_keepdim(0)];
    let mut apart: Vec<(&str, Vec<lazuli::Tensor>)> = apart.map(|(name, result)| (name, vec![result])).into();
    apart.extend([
        ("what reads the same", vec![rows.sum(0), rows.sum(1)]),
        ("an evaluated tensor", vec![computed]),
        ("positions, beside a single number", vec![&positions * 2.0, positions.mean(..)]),
        ("several values between two kernels", {
            let x = workloads::tensor([1 << 20, 1]);
            let [mean, std, max] = statistics(&x);
            vec![(&x - mean) / std / max]
        }),
    ]);
    let mut text = String::new();
    for (name, results) in apart {
        let program = compile_for(&results, &Target::cuda("sm_90")).unwrap();
        text.push_str(&format!("=== {name} ===\n{}\n", program.explain()));
    }
    assert_text("explanations_apart", &text);
}

#[test]
fn messages_of_what_is_not_there() {
    #[cfg(feature = "cuda")]
    {
        let program = workloads::tensor([4]).relu().compile_for(&Target::cpu()).unwrap();
        let error = program.kernels()[0].compile().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }));
        assert_text("no_cubin_for_the_cpu", &error.to_string());
    }
    let (usage, op, location) = ("Tensors have 12 bytes".into(), None, None);
    let error = Error::OutOfMemory { device: "cuda:0".into(), requested: 1 << 40, usage, op, location };
    assert_text("out_of_memory", &error.to_string());
}
