//! The same expression gives the same kernels, to the byte, whatever else happens around it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use std::collections::BTreeSet;

use lazuli::{DType, Device, Interpolation, Program, Target, Tensor};
use workloads::{SEEDS, compile_for, tensor};

fn targets() -> [Target; 2] {
    [Target::cuda("sm_90"), Target::cpu()]
}

/// All that there is to read about a program.
fn texts(program: &Program) -> String {
    let arguments: Vec<String> = program
        .kernels()
        .iter()
        .map(|kernel| kernel.arguments().iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        .collect();
    [program.source(), program.explain().to_string(), arguments.join("\n"), program.graph_dot()]
        .join("\n---\n")
}

/// The functions' texts, without the launch shapes of this program's sizes.
fn kernels(program: &Program) -> Vec<String> {
    program.kernels().iter().map(|kernel| kernel.source().to_owned()).collect()
}

#[track_caller]
fn assert_same(results: [&[Tensor]; 2]) {
    for target in targets() {
        let [first, second] = results.map(|results| texts(&compile_for(results, &target).unwrap()));
        assert_eq!(first, second);
    }
}

#[test]
fn the_order_of_statements_does_not_matter() {
    let (x, y) = (tensor([20, 30]), tensor([20, 30]));
    let a = x.exp();
    let b = y.relu();
    let c = (&x + 1.0).sum(1);
    let first = [&a * &b, c];

    let (y, x) = (tensor([20, 30]), tensor([20, 30]));
    let c = (&x + 1.0).sum(1);
    let b = y.relu();
    let a = x.exp();
    let second = [&a * &b, c];
    assert_same([&first, &second]);
}

#[test]
fn what_is_not_needed_leaves_no_trace() {
    let expression = |noise: bool| {
        let x = tensor([20, 30]);
        let mut kept = Vec::new();
        let mut dead = |tensor: Tensor| {
            if noise {
                kept.push(tensor.sin().sum(0));
            }
        };
        dead(x.exp());
        let y = x.relu();
        dead(&y * 7.0);
        let z = (&y - y.mean(..)).tanh();
        dead(z.max(1));
        z
    };
    assert_same([&[expression(false)], &[expression(true)]]);
}

#[test]
fn what_was_recorded_and_planned_before_leaves_no_trace() {
    let expression = || [tensor([33, 7]).gelu().sum(0), tensor([33, 7]).softmax(1)];
    let before = targets().map(|target| texts(&compile_for(&expression(), &target).unwrap()));
    for n in 1..20 {
        let other = (tensor([n, 7]) * 2.0).gelu().softmax(0);
        other.compile_for(&Target::cpu()).unwrap();
        other.explain().unwrap();
    }
    let after = targets().map(|target| texts(&compile_for(&expression(), &target).unwrap()));
    assert_eq!(before, after);
}

#[test]
fn threads_that_plan_at_once_plan_the_same() {
    let plan = || SEEDS.map(|seed| texts(&compile_for(&(seed.record)(3), &Target::cuda("sm_90")).unwrap()));
    let expected = plan();
    std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(plan));
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), expected));
    });
}

#[test]
fn a_process_plans_as_the_one_before() {
    if workloads::scenario().is_some() {
        return;
    }
    let first = workloads::child_succeeds("plan", &[]).0;
    assert!(first.contains("__global__") && first.contains("row_reduce"));
    // Not the last line: it says how long the test took.
    let plan = |text: &str| text.split("test result").next().unwrap().to_owned();
    for _ in 0..2 {
        assert_eq!(plan(&workloads::child_succeeds("plan", &[]).0), plan(&first));
    }
}

#[test]
fn child() {
    match workloads::scenario().as_deref() {
        None => {}
        Some("threads") => print_sums(),
        Some(_) => {
            for seed in SEEDS {
                for target in targets() {
                    println!("{}", texts(&compile_for(&(seed.record)(5), &target).unwrap()));
                }
            }
        }
    }
}

/// Kernels for rows of any length. On CUDA: rows for a warp, for a block, for two reads, and split ones. On the
/// CPU, rows that are read once, twice, and split; the shortest have a kernel for each number of rows in a block.
fn most_for_lengths(target: &Target) -> usize {
    if *target == Target::cpu() { 6 } else { 4 }
}

#[test]
fn a_hundred_batch_sizes_need_at_most_two_kernels() {
    // From one row to many, round and odd ones.
    let sizes = (1..=60).chain((64..=1024).step_by(32)).chain((1..=9).map(|n| n * 97));
    let sizes: Vec<usize> = sizes.collect();
    assert_eq!(sizes.len(), 100);
    for seed in SEEDS.iter().filter(|seed| !seed.name.contains("max_pool2d")) {
        for target in targets() {
            // Its rows are whole images, so the size is not a batch but a length: schedules are for lengths.
            let is_length = seed.name == "normalise_image";
            let most = if is_length { most_for_lengths(&target) } else { 2 };
            let sources: BTreeSet<Vec<String>> = sizes
                .iter()
                .map(|&size| kernels(&compile_for(&(seed.record)(size), &target).unwrap()))
                .collect();
            assert!(sources.len() <= most, "{} for {target}: {} sources", seed.name, sources.len());
        }
    }
}

#[test]
fn a_hundred_batch_sizes_of_images_need_at_most_two_kernels() {
    for seed in SEEDS.iter().filter(|seed| seed.name.contains("max_pool2d")) {
        for target in targets() {
            let sources: BTreeSet<Vec<String>> =
                (1..=100).map(|size| kernels(&compile_for(&(seed.record)(size), &target).unwrap())).collect();
            assert!(sources.len() <= 2, "{} for {target}: {} sources", seed.name, sources.len());
        }
    }
}

/// Its name, and its results for a batch size.
type Layer = (&'static str, fn(usize) -> Vec<Tensor>);

/// What a model does to a batch of rows, images or positions.
const LAYERS: [Layer; 18] = [
    ("softmax", |n| vec![tensor([n, 1000]).softmax(1)]),
    ("log_softmax", |n| vec![tensor([n, 257]).log_softmax(-1)]),
    ("attention scores", |n| {
        let causal = Tensor::tri(128, 128, 0, DType::Bool);
        let scores = tensor([n, 4, 128, 128]) / 8.0;
        vec![causal.where_(&scores, f32::NEG_INFINITY).softmax(-1)]
    }),
    ("layer_norm", |n| {
        vec![tensor([n, 768]).layer_norm([768], Some(&tensor([768])), Some(&tensor([768])), 1e-5)]
    }),
    ("residual and rms_norm", |n| {
        let sum = tensor([n, 512]) + tensor([n, 512]);
        vec![sum.rms_norm([512], Some(&tensor([512])), 1e-6), sum]
    }),
    ("group_norm", |n| vec![tensor([n, 8, 10, 10]).group_norm(4, None, None, 1e-5)]),
    ("cross_entropy", |n| {
        let labels = Tensor::from_vec((0..n).map(|row| (row * 7 % 100) as i64).collect(), [n]);
        let picked = tensor([n, 100]).log_softmax(1).gather(1, &labels.unsqueeze(1));
        vec![picked.squeeze(1).neg()]
    }),
    ("argmax with max", |n| {
        let (value, position) = tensor([n, 300]).max_with_indices(1);
        vec![value, position]
    }),
    ("cumsum of rows", |n| vec![tensor([n, 640]).cumsum(1)]),
    ("cumsum of a middle axis", |n| vec![tensor([n, 64, 48]).cumsum(1)]),
    ("sum of a middle axis", |n| vec![tensor([n, 64, 48]).sum(1)]),
    ("global average pooling", |n| vec![tensor([n, 16, 7, 7]).mean([2, 3])]),
    ("cat of ten", |n| {
        let parts: Vec<Tensor> = (0..10).map(|_| tensor([n, 20])).collect();
        vec![Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1) * 2.0]
    }),
    ("embedding", |n| {
        let tokens = Tensor::from_vec((0..n as i64).map(|token| token % 50).collect(), [n]);
        vec![tokens.embedding(&tensor([50, 64])) + tensor([64])]
    }),
    ("transpose", |n| vec![tensor([n, 64, 96]).permute([0, 2, 1]).relu()]),
    ("dropout, residual", |n| vec![tensor([n, 256]).dropout(0.1, 7) + tensor([n, 256])]),
    ("one step of AdamW", |n| {
        let (weight, gradient, mean, square) =
            (tensor([n, 30]), tensor([n, 30]), tensor([n, 30]), tensor([n, 30]));
        let mean = mean * 0.9 + &gradient * 0.1;
        let square = square * 0.999 + &gradient * &gradient * 0.001;
        let step = &mean / (square.sqrt() + 1e-8);
        vec![weight * 0.9999 - step * 1e-3, mean, square]
    }),
    ("bilinear resize", |n| {
        vec![tensor([n, 3, 8, 8]).interpolate([16, 16], Interpolation::Linear { align_corners: false })]
    }),
];

#[test]
fn a_hundred_batches_of_each_layer_need_at_most_two_kernels() {
    for (name, record) in LAYERS {
        for target in targets() {
            let sources: BTreeSet<Vec<String>> = (1..=100)
                .map(|size| kernels(&lazuli::compile_for(&record(size), &target).unwrap()))
                .collect();
            let texts: Vec<String> = sources.iter().map(|source| source.join("\n")).collect();
            assert!(sources.len() <= 2, "{name} for {target}:\n{}", texts.join("\n\n"));
        }
    }
}

#[test]
fn long_scans_of_other_lengths_are_the_same_kernel() {
    for target in targets() {
        for columns in [1, 3] {
            let sources: BTreeSet<Vec<String>> = [1 << 20, (1 << 20) + 1, 3 << 20]
                .map(|length| kernels(&compile_for(&[tensor([length, columns]).cumsum(0)], &target).unwrap()))
                .into_iter()
                .collect();
            assert_eq!(sources.len(), 1, "{target}: {sources:#?}");
        }
    }
}

#[test]
fn other_numbers_are_arguments_of_the_same_kernel() {
    let expressions: [fn(f64) -> Tensor; 5] = [
        |c| tensor([100]) * c,
        |c| tensor([100]).gt(c).where_(c * 3.0, tensor([100])),
        |c| (tensor([10, 10]).var(1, 0) + c).sqrt(),
        |c| tensor([100]).clamp(-c, c * 2.0),
        |c| tensor([10, 10]).layer_norm([10], None, None, c),
    ];
    for expression in expressions {
        for target in targets() {
            let sources: BTreeSet<Vec<String>> = [0.37, 1.5, 3.25, 1e-5, 1e10]
                .map(|c| kernels(&compile_for(&[expression(c)], &target).unwrap()))
                .into_iter()
                .collect();
            assert_eq!(sources.len(), 1, "{target}: {sources:#?}");
        }
    }
    let sources: BTreeSet<Vec<String>> = [0, 1, 42, u64::MAX]
        .map(|seed| kernels(&compile_for(&[Tensor::rand([100], seed)], &Target::cuda("sm_90")).unwrap()))
        .into_iter()
        .collect();
    assert_eq!(sources.len(), 1, "{sources:#?}");
}

#[test]
fn other_inputs_are_the_same_program() {
    let program = |x: Vec<f32>| Tensor::from_vec(x, [4]).exp().compile_for(&Target::cpu()).unwrap();
    assert_eq!(texts(&program(vec![0.0; 4])), texts(&program(vec![f32::NAN, 1.0, 2.0, 3.0])));
}

#[test]
fn texts_hold_no_addresses() {
    for seed in SEEDS {
        for target in targets() {
            let text = texts(&compile_for(&(seed.record)(4), &target).unwrap());
            // Floats and masks have eight hexadecimal digits at most, constants of f64 sixteen; a pointer
            // has twelve.
            for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
                let digits = word.strip_prefix("0x").unwrap_or("").trim_end_matches(['u', 'l', 'U', 'L']);
                assert!(digits.len() <= 8 || digits.len() == 16, "{}: {word}", seed.name);
            }
        }
    }
    let zeros = Tensor::zeros([4], DType::F32).compile_for(&Target::cpu()).unwrap();
    assert_eq!(zeros.kernels().len(), 1);
}

/// The bits of sums of all kinds, and how many threads there are.
fn print_sums() {
    let x = (Tensor::rand([1200, 700], 1) - 0.5).to(&Device::cpu());
    let divided = x.reshape([-1, 20]);
    let sums = [
        x.sum([0, 1]).reshape([1]),
        x.sum(0),
        x.softmax(1).sum(1),
        x.reshape([-1]).cumsum(0).slice(0, 839_990..840_000),
        x.slice(0, 0..300).matmul(&x.t().slice(1, 300..500)).reshape([-1]),
        x.var(0, 1),
        divided.t().matmul(&divided).reshape([-1]),
    ];
    lazuli::eval(&sums).unwrap();
    let bits: Vec<Vec<u32>> =
        sums.iter().map(|sum| sum.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()).collect();
    println!("threads: {}", Device::cpu().description().unwrap());
    println!("bits: {bits:?}");
}

#[test]
fn sums_are_the_same_on_any_number_of_threads() {
    let of = |threads: &str| {
        let variables = [("LAZULI_NUM_THREADS", threads), ("RAYON_NUM_THREADS", "5")];
        let (stdout, _) = workloads::child_succeeds("threads", &variables);
        let after =
            |label: &str| stdout.split_once(label).unwrap().1.lines().next().unwrap_or_default().to_owned();
        (after("threads: "), after("bits: "))
    };
    let (one, three, all) = (of("1"), of("3"), of("not a number"));
    assert_eq!([one.0, three.0, all.0], ["cpu: 1 threads", "cpu: 3 threads", "cpu: 5 threads"]);
    assert!(one.1 == three.1 && one.1 == all.1);
}
