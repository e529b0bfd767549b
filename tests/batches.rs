//! Small kernels of one text that wait for nothing of each other are one launch.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use lazuli::{DType, Device, Fusion, Target, Tensor, eval, stats, with_fusion};
use workloads::{child_succeeds, compile_for};

/// Parameter, first and second average after a step.
fn adam([parameter, gradient, m, v]: &[Tensor; 4], rate: f64) -> [Tensor; 3] {
    let m = m * 0.9 + gradient * 0.1;
    let v = v * 0.999 + gradient.square() * 0.001;
    let parameter = parameter * 0.99 - &m * rate / ((&v * 1.5).sqrt() + 1e-8);
    [parameter, m, v]
}

/// Numbers between -5 and 5 that differ from tensor to tensor.
fn values(shape: &[usize], seed: usize, device: &Device) -> Tensor {
    let elements: usize = shape.iter().product();
    let values = (0..elements).map(|n| (((n + 31 * seed) * 7919 % 1000) as f32 - 499.5) / 100.0).collect();
    Tensor::from_vec::<f32>(values, shape.to_vec()).to(device)
}

fn step(shape: &[usize], seed: usize, rate: f64, device: &Device) -> [Tensor; 3] {
    let of = |part| values(shape, 4 * seed + part, device);
    adam(&[of(0), of(1), of(2), of(3).abs()], rate)
}

/// Vectors, matrices, single elements and nothing: aligned and odd.
fn shapes() -> Vec<Vec<usize>> {
    let sizes = (0..40).map(|n| match n % 4 {
        0 => vec![64 * n + 64],
        1 => vec![n, 37],
        2 => vec![1, 8 * n + 3],
        _ => vec![3, 2, n],
    });
    sizes.chain([vec![1], vec![], vec![1, 1], vec![0], vec![3, 0]]).collect()
}

/// Every device that compiles.
fn devices() -> Vec<Device> {
    let mut devices = vec![Device::cpu()];
    devices.extend(cfg!(feature = "emulate").then(Device::cuda_emulated));
    devices.extend(lazuli::cuda_is_available().then(|| Device::cuda(0)));
    devices
}

/// The results' bits, on a device, with and without fusion.
fn bits(record: &dyn Fn(&Device) -> Vec<Tensor>, device: &Device, fusion: Fusion) -> Vec<Vec<u32>> {
    let results = record(device);
    with_fusion(fusion, || eval(&results)).unwrap();
    results.iter().map(|y| y.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()).collect()
}

/// Fused, unfused and interpreted to the same bits, on every device.
#[track_caller]
fn assert_right(record: &dyn Fn(&Device) -> Vec<Tensor>) {
    let expected = bits(record, &Device::interpreter(), Fusion::On);
    for device in devices() {
        for fusion in [Fusion::On, Fusion::Off] {
            assert_eq!(bits(record, &device, fusion), expected, "{device}, {fusion:?}");
        }
    }
}

/// The kernels for CUDA, by name and count.
#[track_caller]
fn names(tensors: &[Tensor]) -> Vec<String> {
    let program = compile_for(tensors, &Target::cuda("sm_90")).unwrap();
    assert_eq!(program.explain().kernels(), program.kernels().len());
    program.kernels().iter().map(|kernel| kernel.name().to_owned()).collect()
}

/// The names of what a test expects: operations and suffix.
#[track_caller]
fn assert_names(tensors: &[Tensor], expected: &[&str]) {
    assert_eq!(names(tensors), expected);
}

#[test]
fn adam_over_tensors_of_any_size() {
    let record = |device: &Device| -> Vec<Tensor> {
        shapes().iter().enumerate().flat_map(|(n, shape)| step(shape, n, 1e-3, device)).collect()
    };
    assert_right(&record);
    let results = record(&Device::cpu());
    let program = compile_for(&results, &Target::cuda("sm_90")).unwrap();
    let launched: Vec<&str> =
        program.kernels().iter().filter_map(|k| k.name().split('_').next_back()).collect();
    // Rows and vectors are one text; single elements another; what is empty is not launched.
    assert_eq!(launched, ["x40", "x3", "f32", "f32"]);
    let unfused = with_fusion(Fusion::Off, || compile_for(&results, &Target::cuda("sm_90"))).unwrap();
    assert!(unfused.kernels().iter().all(|kernel| !kernel.source().contains("struct Part")));
    // What is said of the kernel is said of all parts.
    let kernel = &program.kernels()[0];
    let sizes: Vec<u64> =
        shapes().iter().take(40).map(|shape| shape.iter().product::<usize>() as u64).collect();
    let (elements, blocks) =
        (sizes.iter().sum::<u64>(), sizes.iter().map(|size| size.div_ceil(1024)).sum::<u64>());
    assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (16 * elements, 12 * elements));
    assert_eq!(kernel.grid(), [blocks, 1, 1]);
    let explanation = program.explain();
    assert_eq!(explanation.bytes_moved(), explanation.least_bytes());
    assert!(explanation.to_string().contains("× 40\n   reads     160 values ("), "{explanation}");
}

#[test]
fn the_arguments_of_all_parts_are_listed() {
    let results = [values(&[5], 0, &Device::cpu()) * 2.0, values(&[6], 1, &Device::cpu()) * 3.0];
    let program = compile_for(&results, &Target::cuda("sm_90")).unwrap();
    assert_eq!(
        program.kernels()[0].launches(),
        ["mul_f32_x2: grid = the sum of ceil(n_i0 / 1024) over 2 parts, block = 256"]
    );
    assert_eq!(
        program.kernels()[0].arguments(),
        [
            "part[0].in0: f32 [5]",
            "part[0].out0: f32 [5]",
            "part[0].c0: f32 = 2.0",
            "part[0].n_i0: extent = 5",
            "part[1].in0: f32 [6]",
            "part[1].out0: f32 [6]",
            "part[1].c0: f32 = 3.0",
            "part[1].n_i0: extent = 6",
        ]
    );
}

/// A kernel's parameters have a limit. The text of all batches is one, the last with room for parts that are not there.
#[test]
fn many_tensors_take_several_launches_of_one_kernel() {
    let count = 100;
    let record = |device: &Device| -> Vec<Tensor> {
        // Each with numbers of its own, too.
        (0..count).flat_map(|n| step(&[n + 2], n, 2e-3 + n as f64 * 1e-4, device)).collect()
    };
    assert_right(&record);
    for (target, launches) in [(Target::cuda("sm_90"), 3), (Target::cpu(), 3)] {
        let program = compile_for(&record(&Device::cpu()), &target).unwrap();
        assert_eq!(program.kernels().len(), launches, "{target}");
        assert!(program.kernels().iter().all(|kernel| kernel.source() == program.kernels()[0].source()));
        let table = program.kernels()[0].source().lines().find(|line| line.contains("_assert")).unwrap();
        let record: usize =
            table.split(&['=', ','][..]).nth(2).unwrap().trim().trim_end_matches(')').parse().unwrap();
        assert!(record * count.div_ceil(launches) <= 4096, "{table}");
    }
}

/// Kernels of one text, four softmaxes each, the second of which reads the first.
fn chain(rows: usize, device: &Device) -> Vec<Tensor> {
    let mut y = vec![values(&[rows, 100], rows, device)];
    (0..8).for_each(|n| y.push(y[n].softmax(1)));
    y.split_off(1)
}

#[test]
fn what_waits_for_the_other_is_not_in_one_launch() {
    let single = chain(5, &Device::cpu());
    let program = compile_for(&single, &Target::cuda("sm_90")).unwrap();
    assert_eq!(program.kernels().len(), 2);
    assert!(program.kernels().windows(2).all(|pair| pair[0].source() == pair[1].source()));
    // Of two chains, those at one depth.
    let both = |device: &Device| [chain(5, device), chain(8, device)].concat();
    assert_names(&both(&Device::cpu()), &["softmax_f32_x2"; 2]);
    assert_near(&both);
}

/// As [`assert_right`], but sums of rows are added up in another order than the interpreter's.
#[track_caller]
fn assert_near(record: &dyn Fn(&Device) -> Vec<Tensor>) {
    let of = |device: &Device, fusion| bits(record, device, fusion).into_iter().flatten().map(f32::from_bits);
    for device in devices() {
        for fusion in [Fusion::On, Fusion::Off] {
            let expected = of(&Device::interpreter(), Fusion::On);
            for (actual, expected) in of(&device, fusion).zip(expected) {
                let is_near = (actual - expected).abs() <= 1e-5 + 1e-5 * expected.abs();
                assert!(is_near, "{device}, {fusion:?}: {actual} is not {expected}");
            }
        }
    }
}

/// One kernel, two that read it, and one that reads both: the two are one launch, between the others.
#[test]
fn a_diamond_keeps_its_order() {
    let record = |device: &Device| {
        let top = values(&[10, 100], 1, device).softmax(1);
        let (left, right) = (top.slice(0, ..3).softmax(1), top.slice(0, ..7).softmax(1));
        let bottom = (left.sum(0) + right.sum(0)).softmax(0);
        vec![top, left, right, bottom]
    };
    let names = names(&record(&Device::cpu()));
    assert_eq!(names[..2], ["softmax_f32", "softmax_f32_x2"], "{names:?}");
    assert_near(&record);
}

/// A batch waits for all of its parts' producers, also for those that were recorded after its first part.
#[test]
fn a_batch_waits_for_the_last_producer() {
    let record = |device: &Device| {
        let first = values(&[10, 100], 1, device).softmax(1);
        let second = (values(&[8, 100], 2, device) * 0.5).softmax(1);
        let (left, right) = (first.slice(0, ..3).softmax(1), second.slice(0, ..7).softmax(1));
        vec![left, first, right, second]
    };
    assert_names(&record(&Device::cpu()), &["softmax_f32", "mul_softmax_f32", "softmax_f32_x2"]);
    assert_near(&record);
}

#[test]
fn dtypes_and_operations_are_kernels_of_their_own() {
    let x = |n: usize, dtype| values(&[10 * n], n, &Device::cpu()).cast(dtype).to(&Device::cpu());
    let inputs: Vec<Tensor> =
        (1..5).map(|n| x(n, if n % 2 == 0 { DType::F64 } else { DType::F32 })).collect();
    eval(&inputs).unwrap();
    let halves: Vec<Tensor> = inputs.iter().map(|x| x * 0.5).collect();
    assert_names(&halves, &["mul_f32_x2", "mul_f64_x2"]);
    let mixed = [&inputs[0] * 0.5, &inputs[2] + 0.5];
    assert_names(&mixed, &["mul_f32", "add_f32"]);
}

#[test]
fn reductions_of_rows_and_columns() {
    let record = |device: &Device| {
        let x: Vec<Tensor> = (1..6).map(|n| values(&[9 * n, 64], n, device)).collect();
        let of = |f: fn(&Tensor) -> Tensor| x.iter().map(f).collect::<Vec<_>>();
        [of(|x| x.layer_norm([64], None, None, 1e-5)), of(|x| x.sum(0)), of(|x| x.square().sum(..))].concat()
    };
    assert_near(&record);
    let results = record(&Device::cpu());
    assert_names(&results[..5], &["layer_norm_f32_x5"]);
    assert_names(&results[5..10], &["sum_f32_x5"]);
    assert_names(&results[10..], &["square_sum_f32_x5"]);
}

/// What is long, counts arrivals, or checks positions is launched alone.
#[test]
fn what_stays_alone() {
    let large = |n: usize| Tensor::from_vec(vec![1.0f32; n << 20], [n << 20]) * 2.0;
    assert_names(&[large(16), large(17)], &["mul_f32", "mul_f32"]);
    let long = |n: usize| values(&[100_000 + n], n, &Device::cpu()).sum(..);
    assert_names(&[long(1), long(2)], &["sum_f32", "sum_f32"]);
    let gathered = |n: usize| {
        let index = Tensor::from_vec(vec![0i64; n], [n]);
        values(&[10, 3], n, &Device::cpu()).index_select(0, &index)
    };
    assert_names(&[gathered(2), gathered(3)], &["index_select_f32", "index_select_f32"]);
}

#[test]
fn the_text_is_the_same_each_time() {
    for target in [Target::cuda("sm_90"), Target::cpu()] {
        let source = || -> String {
            let results: Vec<Tensor> =
                (1..9).flat_map(|n| step(&[n, 5], n, 1e-3 * n as f64, &Device::cpu())).collect();
            compile_for(&results, &target).unwrap().source()
        };
        assert_eq!(source(), source());
    }
}

#[test]
fn child() {
    let Some(scenario) = workloads::scenario() else { return };
    assert_eq!(scenario, "sizes");
    let run = |sizes: &[usize], rate: f64| {
        let step = |(n, &size): (usize, &usize)| step(&[size], n, rate * (n + 1) as f64, &Device::cpu());
        let results: Vec<Tensor> = sizes.iter().enumerate().flat_map(step).collect();
        eval(&results).unwrap();
    };
    run(&[5, 6, 70, 800], 0.01);
    let first = stats();
    assert_eq!((first.kernels_compiled, first.launches), (1, 1));
    // Other sizes, as many parts: another plan, the same kernel. Other numbers alone are the same plan.
    run(&[9, 31, 2, 1024], 0.01);
    run(&[9, 31, 2, 1024], 0.02);
    let after = stats();
    assert_eq!((after.plans_made, after.kernels_compiled, after.disk_hits), (2, 1, 0));
    assert_eq!(after.launches, 3);
    run(&[9, 31, 2, 1024], 0.02);
    assert_eq!((stats().plans_made, stats().plan_hits), (2, 2));
    // Another number of parts is another text.
    run(&[9, 31, 2], 0.02);
    assert_eq!(stats().kernels_compiled, 2);
}

#[test]
fn other_sizes_are_not_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    child_succeeds("sizes", &[("LAZULI_CACHE_DIR", folder.path().to_str().unwrap())]);
}
