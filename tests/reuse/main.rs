//! Kernels and plans that serve every position: programs that do the same at another place each time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

#[path = "../common/mod.rs"]
mod common;
mod joins;
#[path = "../../benches/reuse/programs.rs"]
mod programs;
mod steps;
mod training;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli::{
    DType, Device, PadMode, Reduction, ScanOrder, Settings, Stats, Target, Tensor, iterate, s, scan, stats,
};
use programs::{CALLS, Data, GROWING, GROWING_INSIDE, PROGRAMS, Program};

/// The counters are the process's: one test at a time. Kernels on disk, which others left, would serve in place of those that
/// are counted: none are read.
fn alone() -> MutexGuard<'static, ()> {
    static COUNTERS: Mutex<()> = Mutex::new(());
    let guard = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    Settings::new().cache(false).install().unwrap();
    guard
}

/// Kernels that a program takes: where it begins at 0, and elsewhere; on CUDA also where accesses are aligned.
const MOST_KERNELS: usize = 3;
/// Where an inner extent grows: of a few elements, of one step of lanes or many, with a rest or without are texts of other
/// kinds, each of which takes one kernel as it first was and one or two for those that follow.
const MOST_INSIDE: u64 = 12;
/// More in a process that knew none of the program's kernels: what one kind teaches serves the first of the next.
const MOST_UNKNOWN: u64 = 1;

/// Kernels of these calls for a target, those of one call, and plans made.
fn compiled(
    program: &Program,
    data: &Data,
    target: &Target,
    calls: impl Iterator<Item = usize> + Clone,
) -> (usize, usize, u64) {
    let before = stats();
    let mut sources: HashSet<String> = HashSet::new();
    let mut at_once = 0;
    for n in calls.clone() {
        let compiled = (program.call)(data, n).compile_for(target).unwrap();
        at_once = at_once.max(compiled.kernels().len());
        sources.extend(compiled.kernels().iter().map(|kernel| kernel.source().to_string()));
    }
    let (plans, hits) = (stats().plans_made - before.plans_made, stats().plan_hits - before.plan_hits);
    assert_eq!(plans + hits, calls.count() as u64);
    (sources.len(), at_once, plans)
}

#[test]
fn few_kernels_and_plans_serve_all_positions() {
    let _alone = alone();
    let data = Data::new(&Device::cpu()).unwrap();
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for program in PROGRAMS {
            let (kernels, at_once, plans) = compiled(program, &data, &target, 0..CALLS);
            assert!(kernels <= MOST_KERNELS * at_once, "{}: {kernels} kernels for {target}", program.name);
            assert!(plans * 100 <= CALLS as u64, "{}: {plans} plans for {target}", program.name);
        }
    }
}

#[test]
fn few_kernels_and_plans_serve_what_grows() {
    let _alone = alone();
    let data = Data::new(&Device::cpu()).unwrap();
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for program in GROWING {
            // Up to 8 positions are the loop of one thread, whose length is text.
            let (_, _, few) = compiled(program, &data, &target, 0..8);
            let many = (8..70).chain((70..CALLS).step_by(15)).chain([255, 256, CALLS - 1]);
            let (kernels, at_once, plans) = compiled(program, &data, &target, many);
            assert!(kernels <= MOST_KERNELS * at_once, "{}: {kernels} kernels for {target}", program.name);
            assert!((few + plans) * 100 <= CALLS as u64, "{}: {} plans", program.name, few + plans);
        }
    }
}

/// Names the program to call, in a process of its own: what others taught of their texts would serve it too.
const PROGRAM: &str = "LAZULI_TEST_PROGRAM";

#[test]
fn few_kernels_serve_what_grows_along_an_inner_axis() {
    let Ok(name) = std::env::var(PROGRAM) else {
        for program in GROWING_INSIDE {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            let this = "few_kernels_serve_what_grows_along_an_inner_axis";
            let output = command.args(["--exact", this]).env(PROGRAM, program.name).output().unwrap();
            let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            assert!(output.status.success() && said[0].contains("1 passed"), "{}", said.concat());
        }
        return;
    };
    let _alone = alone();
    let data = Data::new(&Device::cpu()).unwrap();
    let program = GROWING_INSIDE.iter().find(|program| program.name == name).unwrap();
    let made = stats().plans_made;
    let loaded = |stats: Stats| stats.kernels_compiled + stats.disk_hits;
    let (mut kernels, mut at_once) = (0, 0);
    for n in (8..70).chain((70..CALLS).step_by(31)).chain([255, 256, CALLS - 1]) {
        let before = stats();
        (program.call)(&data, n).eval().unwrap();
        kernels += loaded(stats()) - loaded(before);
        at_once = at_once.max(stats().launches - before.launches);
    }
    assert!(kernels <= MOST_INSIDE * at_once + MOST_UNKNOWN, "{name}: {kernels} kernels");
    let plans = stats().plans_made - made;
    assert!(plans <= 12, "{name}: {plans} plans");
}

/// Values of an option in a tree of prices, from the last day back: each step has one less.
fn binomial_tree(steps: usize) -> Tensor {
    let payoff = (Tensor::rand([100, steps + 300], 1) * 100.0 - 50.0).relu();
    let step = |values: Tensor, _| {
        let (up, down) = (values.slice(1, 1..), values.slice(1, ..-1));
        (up * 0.53 + down * 0.46).cumsum(1) * 0.01
    };
    (0..steps).fold(payoff, step)
}

#[test]
fn steps_that_shrink_are_few_kernels() {
    let _alone = alone();
    let before = stats();
    let tree = binomial_tree(34);
    tree.eval().unwrap();
    let kernels = stats().kernels_compiled + stats().disk_hits - before.kernels_compiled - before.disk_hits;
    let launches = stats().launches - before.launches;
    assert!(launches >= 34 && kernels <= 6, "{kernels} kernels for {launches} launches");
}

/// Names the device and the sizes to compute one after the other, in a process of its own.
const SIZES: &str = "LAZULI_TEST_SIZES";

/// The first of a size has its numbers in the text, and those that follow get them as arguments: not a bit differs.
#[test]
fn numbers_as_arguments_change_no_result() {
    let results = |n: usize, device: &Device| {
        let data: Vec<f32> = (0..4 * n).map(|i| ((i * 7919) % 1009) as f32 / 300.0 - 1.5).collect();
        let x = Tensor::from_vec(data, [2, n, 2]).to(device);
        let x = Tensor::cat(&[&x, &(&x * 0.7).sin()], 1);
        let rows = x.permute([0, 2, 1]).exp();
        [
            x.softmax(1),
            rows.cumsum(2) / x.sum_keepdim(1).permute([0, 2, 1]),
            rows.var(2, 1),
            x.square().sum(1),
        ]
    };
    if let Ok(sizes) = std::env::var(SIZES) {
        let _alone = alone();
        let (name, sizes) = sizes.split_once(':').unwrap();
        let device = common::devices().into_iter().find(|device| device.to_string() == name).unwrap();
        for size in sizes.split(',') {
            let results = results(size.parse().unwrap(), &device);
            let values = results.iter().flat_map(|x| x.to_vec::<f32>().unwrap());
            println!("results {size} {:?}", values.map(f32::to_bits).collect::<Vec<u32>>());
        }
        let stats = stats();
        println!("loaded {}", stats.kernels_compiled + stats.disk_hits);
        return;
    }
    for device in common::devices() {
        let run = |sizes: &str| {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            let sizes = format!("{device}:{sizes}");
            let this = "numbers_as_arguments_change_no_result";
            command.args(["--exact", this, "--nocapture"]).env(SIZES, sizes);
            let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
            let line =
                |start: &str| output.lines().find_map(|line| line.strip_prefix(start)).unwrap().to_owned();
            (line("results 149 "), line("loaded ").parse::<usize>().unwrap())
        };
        let (known, kernels) = run("149");
        let (given, more) = run("141,133,149,181,157,149");
        assert_eq!(known, given, "{device}");
        assert!(more <= 3 * kernels, "{device}: {more} kernels instead of {kernels}");
    }
}

/// Sizes that follow each other in one process: near ones, which share kernels; those that are another extent of the
/// programs, by chance; 1, along which a broadcast is none; 0; those where schedules change; and some whose plans follow
/// from those of two others.
const SIZES_IN_TURN: [usize; 28] = [
    130, 131, 133, 135, 5, 129, 3, 1, 2, 4, 0, 7, 6, 16, 17, 128, 127, 65, 63, 64, 134, 257, 90, 91, 77, 96,
    120, 200,
];

/// Programs of one size that fit it in different ways.
const OF_A_SIZE: [fn(&Device, usize) -> Tensor; 10] = [
    // What a token of a text takes whose cache grows by it.
    |device, n| {
        let x = ramp(device, &[1, 48]);
        let normal = x.rms_norm([48], None, 1e-5);
        let heads = |shift: f64| {
            let weights = (ramp(device, &[48, 48]) + shift) * 0.1;
            normal.linear(&weights, None).reshape([1, 1, 6, 8]).transpose(1, 2)
        };
        let key = heads(0.1) * (Tensor::arange(0, 8, 1).cast(DType::F32) * (n as f64 + 0.3)).cos();
        let keys = Tensor::cat(&[&ramp(device, &[1, 6, n, 8]), &key], 2);
        let values = Tensor::cat(&[&(ramp(device, &[1, 6, n, 8]) * 0.7), &heads(0.2)], 2);
        let attended = heads(0.3).scaled_dot_product_attention(&keys, &values, &lazuli::Attention::default());
        x + attended.transpose(1, 2).reshape([1, 48])
    },
    // A cache of positions, and attention to it.
    |device, n| {
        let (old, new) = (ramp(device, &[2, 3, n, 4]), ramp(device, &[2, 3, 1, 4]));
        let keys = Tensor::cat(&[&old, &new], 2);
        new.scaled_dot_product_attention(&keys, &(&keys * 0.5), &lazuli::Attention::default())
    },
    // What is joined has as many positions as what it is joined to.
    |device, n| Tensor::cat(&[&ramp(device, &[3, n, 5]), &ramp(device, &[3, 5, 5])], 1) * 2.0,
    |device, n| ramp(device, &[5, n]).layer_norm([n], None, None, 1e-5),
    // Both operands are broadcast, each along the other's axis.
    |device, n| ramp(device, &[n, 1, 7]) + ramp(device, &[n, 3, 1]),
    |device, n| ramp(device, &[4, n, 3]).permute([2, 1, 0]) + 1.0,
    |device, n| ramp(device, &[5, n]).matmul(&ramp(device, &[n, 6])),
    |device, n| ramp(device, &[3, n, 2]).cumsum(1),
    |device, n| {
        let x = ramp(device, &[2, n, n.min(6)]);
        x.sum(1) - x.mean(1)
    },
    |device, n| ramp(device, &[3, n + 4]).unfold(1, 5, 1).sum(2),
];

fn ramp(device: &Device, shape: &[usize]) -> Tensor {
    let length: usize = shape.iter().product();
    let data: Vec<f32> = (0..length).map(|i| ((i * 37) % 101) as f32 / 25.0 - 2.0).collect();
    Tensor::from_vec(data, shape.to_vec()).to(device)
}

#[test]
fn each_size_has_its_own_results() {
    let _alone = alone();
    for device in common::devices() {
        for (number, program) in OF_A_SIZE.iter().enumerate() {
            for n in SIZES_IN_TURN {
                let (actual, expected) = (program(&device, n), program(&Device::interpreter(), n));
                assert_eq!(actual.shape().ok(), expected.shape().ok());
                let values = |tensor: Tensor| tensor.to_vec::<f32>();
                match (values(actual), values(expected)) {
                    (Ok(actual), Ok(expected)) => {
                        for (at, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                            let is_near = (actual - expected).abs() <= 2e-4 * expected.abs().max(1.0);
                            let is_nan = actual.is_nan() && expected.is_nan();
                            assert!(
                                is_near || is_nan,
                                "program {number} of {n} on {device}: {actual} is not {expected} at {at}"
                            );
                        }
                    }
                    (actual, expected) => assert_eq!(actual.is_err(), expected.is_err(), "{number} of {n}"),
                }
            }
        }
    }
}

/// Numbers that laws of arithmetic are about, among others.
const NUMBERS_IN_TURN: [f64; 18] = [
    0.3,
    0.7,
    1.0,
    -0.7,
    0.0,
    3.0,
    -0.0,
    0.5,
    2.0,
    -1.0,
    f64::NAN,
    -2.5,
    f64::INFINITY,
    1e-40,
    f64::NEG_INFINITY,
    0.3,
    -2.0,
    1e30,
];

/// Programs with a number, all of whose results are exactly defined.
#[rustfmt::skip]
const OF_A_NUMBER: &[fn(&Tensor, f64) -> Tensor] = &[
    |x, v| x * v,
    |x, v| v * x + v,
    |x, v| (x + v) - (v + 0.25),
    |x, v| v - x / v,
    |x, v| (x * v).maximum(x),
    |x, v| x.lt(v).where_(x, v),
    |x, v| x.pow(v).isnan(),
    |x, v| x * Tensor::full([4, 25], v, DType::F32) - 0.3,
    |x, v| x * (Tensor::scalar(v as f32) * 0.3) + v,
    |x, v| Tensor::scalar(v as f32).gt(0.4).where_(x, 1.5),
    |x, v| (x * 0.3) * v + (x * v) * 0.3,
    |x, v| (x * 9.0).cast(DType::I32) * v as i64 + (v * 3.0) as i64,
    |x, v| (x * 9.0).cast(DType::I32).floor_divide(v as i64) ^ (v * 7.0) as i64,
    |x, v| ((x * 9.0).cast(DType::I32) * Tensor::zeros([4, 25], DType::I32)).maximum((v as i32).saturating_sub(1)),
    |x, v| (x * 9.0).cast(DType::U8) & v as u8 as i64,
    |x, v| x.cast(DType::F64) * v - v / 3.0,
    |x, v| x.pad([(1, 0), (0, 2)], v) * v,
    |x, v| x.le(Tensor::rand([4, 25], v.to_bits() % 1000)) & x.gt(v),
];

/// Whatever was evaluated with other numbers before, each bit is that of the reference.
#[test]
fn each_number_has_its_own_results() {
    let _alone = alone();
    let x = |device: &Device| ramp(device, &[4, 25]);
    let reference = x(&Device::interpreter());
    for device in common::devices() {
        let x = x(&device);
        x.eval().unwrap();
        for (number, program) in OF_A_NUMBER.iter().enumerate() {
            for v in NUMBERS_IN_TURN {
                let bits = |of: &Tensor| -> Vec<u64> {
                    let canonical = |v: f64| if v.is_nan() { f64::NAN } else { v };
                    let values = program(of, v).cast(DType::F64).to_vec::<f64>().unwrap();
                    values.into_iter().map(|value| canonical(value).to_bits()).collect()
                };
                assert_eq!(bits(&x), bits(&reference), "program {number} of {v} on {device}");
            }
        }
    }
}

#[test]
fn each_position_has_its_own_results() {
    let _alone = alone();
    let reference = Data::new(&Device::interpreter()).unwrap();
    for device in common::devices() {
        let data = Data::new(&device).unwrap();
        for program in PROGRAMS.iter().chain(GROWING).chain(GROWING_INSIDE) {
            for n in [0, 1, 16, 17, 500, 999] {
                let values = |tensor: Tensor| tensor.to_vec::<f32>().unwrap();
                let (actual, expected) =
                    (values((program.call)(&data, n)), values((program.call)(&reference, n)));
                assert_eq!(actual.len(), expected.len());
                for (at, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                    assert!(
                        (actual - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                        "{} on {device}, call {n}: {actual} is not {expected} at {at}",
                        program.name
                    );
                }
            }
        }
    }
}

/// Boxes that overlap better ones are dropped, some at a time: rows that are selected one by one, at other positions in each
/// evaluation.
#[test]
fn few_kernels_serve_rows_that_are_selected_together() {
    const BOXES: usize = 60;
    const AT_ONCE: usize = 5;
    let _alone = alone();
    let loaded = || stats().kernels_compiled + stats().disk_hits;
    let kept = |device: &Device| {
        let corners = ramp(device, &[BOXES, 2]);
        let others = &corners + 0.9;
        others.eval().unwrap();
        let over = (others.minimum(others.unsqueeze(1)) - corners.maximum(corners.unsqueeze(1)))
            .clamp_min(0.0)
            .prod(2)
            .gt(0.3)
            .triu(1);
        let mut keep = Tensor::ones([BOXES], DType::Bool).to(device);
        keep.eval().unwrap();
        let before = loaded();
        for first in (0..BOXES as isize).step_by(AT_ONCE) {
            for row in first..first + AT_ONCE as isize {
                let drops = over.select(0, row).logical_and(keep.select(0, row));
                keep = keep.logical_and(drops.logical_not());
            }
            keep.eval().unwrap();
        }
        (loaded() - before, keep.to_vec::<bool>().unwrap())
    };
    let (_, expected) = kept(&Device::interpreter());
    assert!(expected.contains(&true) && expected.contains(&false));
    for device in common::devices() {
        let (kernels, actual) = kept(&device);
        assert_eq!(actual, expected, "{device}");

        assert!(device != Device::cpu() || kernels <= 8, "{device}: {kernels} kernels");
    }
}

#[test]
fn what_was_evaluated_before_decides_nothing() {
    let _alone = alone();
    let x = Tensor::from_vec(vec![1.0f32; 100 * 64], [100, 64]);
    let at = |start: usize| (x.narrow(0, start, 10) * 2.0).compile_for(&Target::cuda("sm_90")).unwrap();
    let (three, seven) = (at(3), at(7));
    assert_eq!(three.source(), seven.source());
    // Where it begins is what the launch says.
    let arguments = |program: &lazuli::Program| program.kernels()[0].arguments();
    assert_eq!(arguments(&three)[4], "o0: offset = 3");
    assert_eq!(arguments(&seven)[4], "o0: offset = 7");
    // The distance between two reads of one tensor is text, and so is a beginning at 0.
    let stencil = |start: usize| {
        let rows = x.narrow(0, start, 20);
        (rows.slice(0, 1..) - rows.slice(0, ..-1)).compile_for(&Target::cuda("sm_90")).unwrap()
    };
    assert!(stencil(5).source().contains("o0 * 64u + 64u"), "{}", stencil(5).source());
    assert!(!stencil(0).source().contains("o0"), "{}", stencil(0).source());
    // Beside a border of a tensor's own elements, each neighbour is read from another join.
    let bordered = x.pad_with(1, PadMode::Replicate);
    let at = |row: usize, column: usize| bordered.narrow(0, row, 100).narrow(1, column, 64);
    let around = (at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2)).compile_for(&Target::cpu()).unwrap();
    assert!(!around.source().contains("o0"), "{}", around.source());
    let windows = |start: usize| bordered.narrow(0, start, 10).compile_for(&Target::cpu()).unwrap().source();
    assert_eq!(windows(50), windows(70));
}

/// Numbers of the user's are arguments of kernels, wherever they stand.
#[test]
fn other_numbers_are_no_other_kernels() {
    let _alone = alone();
    let x = Tensor::rand([40, 100], 1);
    let (n, index) = ((Tensor::rand([40, 100], 2) * 9.0).cast(DType::I32), Tensor::from(vec![3i64, 7]));
    x.eval().unwrap();
    n.eval().unwrap();
    let (x, n) = (&x, &n);
    type Of<'a> = Box<dyn Fn(f64) -> Tensor + 'a>;
    let calls: Vec<(&str, Of)> = vec![
        ("pad", Box::new(|v| x.pad([(1, 2), (0, 3)], v))),
        ("pad of integers", Box::new(|v| n.pad([(0, 0), (1, 0)], v as i64))),
        ("pad_with", Box::new(|v| x.pad_with([(1, 2), (0, 3)], PadMode::Constant(v.into())))),
        ("masked_fill", Box::new(|v| x.masked_fill(&n.gt(3), v))),
        ("where_", Box::new(|v| n.gt(3).where_(x, v))),
        ("clamp", Box::new(|v| x.clamp(v / 9.0, v))),
        ("threshold", Box::new(|v| x.threshold(v / 9.0, v))),
        ("leaky_relu", Box::new(|v| x.leaky_relu(v))),
        ("hardshrink", Box::new(|v| x.hardshrink(v))),
        ("pow", Box::new(|v| x.pow(v + 0.25))),
        ("remainder", Box::new(|v| n.remainder(v as i64))),
        ("floor_divide", Box::new(|v| n.floor_divide(v as i64))),
        ("bitwise_and", Box::new(|v| n.bitwise_and(v as i64))),
        ("bitwise_left_shift", Box::new(|v| n.bitwise_left_shift(v as i64))),
        ("lerp", Box::new(|v| x.lerp(x.square(), v / 9.0))),
        ("index_fill", Box::new(|v| x.index_fill(0, &index, v))),
        ("slice_assign", Box::new(|v| x.slice_assign(s![1..3], v))),
        ("nan_to_num", Box::new(|v| x.nan_to_num(v, None, None))),
        ("full", Box::new(|v| Tensor::full([40], v, DType::F32))),
        ("layer_norm", Box::new(|v| x.layer_norm([100], None, None, v * 1e-6))),
        ("histc", Box::new(|v| x.histc(10, 0.0, v))),
        ("scan_with", Box::new(|v| x.scan_with(0, v, |h, x| h * (v / 10.0) + x))),
        ("arange", Box::new(|v| Tensor::arange(v, v + 10.0, 1.0))),
        ("linspace", Box::new(|v| Tensor::linspace(0.0, v, 10, DType::F32))),
        ("dropout", Box::new(|v| x.dropout(v / 10.0, 1))),
        ("round_decimals", Box::new(|v| x.round_decimals(v as i32))),
        ("isclose", Box::new(|v| x.isclose(0.5, v * 1e-3, 1e-8, false))),
        ("huber_loss", Box::new(|v| x.huber_loss(&x.square(), v, Reduction::Mean))),
    ];
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for (name, call) in &calls {
            let source = |v: f64| call(v).compile_for(&target).unwrap().source().to_string();
            assert!(source(5.0) == source(6.0), "{name} for {target}");
        }
    }
}

/// Sequences of other lengths are no other kernels: each step is computed once, and what all of them read once for all.
#[test]
fn few_kernels_serve_scans_of_every_length() {
    let _alone = alone();
    let device = Device::cpu();
    let (w, u) = (ramp(&device, &[3, 20]) * 0.01, ramp(&device, &[5, 20]) * 0.01);
    lazuli::eval([&w, &u]).unwrap();
    let run = |steps: usize| {
        let x = ramp(&device, &[2, steps, 3]) * 0.01;
        x.eval().unwrap();
        let begun = [(); 2].map(|()| Tensor::zeros([2, 5], DType::F32));
        let before = stats();
        let (_, [outputs]) = scan([&x.matmul(&w)], 1, ScanOrder::new(), begun, |[h, c], [x]| {
            let gates = (x + h.matmul(&u)).chunk(4, 1).unwrap();
            let c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
            let h = gates[3].sigmoid() * c.tanh();
            ([h.clone(), c], [h])
        });
        assert_eq!(outputs.sum(..).to_vec::<f32>().unwrap().len(), 1);
        let after = stats();
        (
            after.kernels_compiled + after.disk_hits - before.kernels_compiled - before.disk_hits,
            after.launches - before.launches,
        )
    };
    for steps in [4, 5, 9, 30] {
        run(steps);
    }
    let [(_, of_40), (compiled, of_80)] = [40, 80].map(run);
    assert!(compiled <= MOST_KERNELS as u64, "{compiled} kernels");
    assert!(of_80 <= of_40 * 2, "{of_40} launches of 40 steps, {of_80} of 80");
}

/// The same of steps that are only counted.
#[test]
fn few_kernels_serve_every_number_of_steps() {
    let _alone = alone();
    let w = ramp(&Device::cpu(), &[5, 5]) * 0.01;
    w.eval().unwrap();
    let run = |steps: usize| {
        let before = stats();
        let ([_], [all]) = iterate(steps, [Tensor::ones([2, 5], DType::F32)], |[h], _| {
            let h = h.matmul(&w).tanh();
            ([h.clone()], [h])
        });
        all.sum(..).eval().unwrap();
        stats().kernels_compiled + stats().disk_hits - before.kernels_compiled - before.disk_hits
    };
    for steps in [4, 5, 9, 30] {
        run(steps);
    }
    let compiled = run(40) + run(80);
    assert!(compiled <= MOST_KERNELS as u64, "{compiled} kernels");
}
