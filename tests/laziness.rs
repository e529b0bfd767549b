//! When things happen: nothing while recording, each thing once, and what is done lets go of what led to it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use std::collections::HashSet;
use std::time::Instant;

use lazuli::{DType, Device, Error, Stats, Target, Tensor, eval, stats};
use workloads::{child_succeeds, compile_for, tensor};

#[test]
fn child() {
    let Some(scenario) = workloads::scenario() else { return };
    match scenario.as_str() {
        "recording" => recording(),
        "one_plan" => one_plan(),
        "again" => again(),
        "following" => following(),
        "detached" => detached(),
        "many" => many(),
        "memory" => memory(),
        "one_for_each_device" => one_for_each_device(),
        other => panic!("no scenario {other}"),
    }
}

#[test]
fn recording_and_asking_run_nothing() {
    child_succeeds("recording", &[]);
}

fn recording() {
    let x = tensor([100, 100]);
    let y = (x.exp() + Tensor::rand([100, 100], 3)).softmax(1).sum(0);
    let elsewhere = y.to(&Device::cuda(7)) * 2.0;
    for tensor in [&y, &elsewhere] {
        assert!(!tensor.is_evaluated());
        tensor.shape().unwrap();
        tensor.dtype().unwrap();
        tensor.device().unwrap();
        let _ = (format!("{tensor:?}"), tensor.clone());
    }
    assert_eq!(stats(), Stats::default());
    // Explaining and compiling for a target plan, but run nothing either.
    y.explain().unwrap();
    elsewhere.explain().unwrap();
    compile_for([&y], &Target::cuda("sm_90")).unwrap();
    let after = stats();
    assert!(after.plans_made > 0);
    assert_eq!((after.evaluations, after.kernels_compiled, after.launches), (0, 0, 0));
    assert!(!y.is_evaluated());
    // Evaluation then finds the plan.
    y.eval().unwrap();
    assert_eq!((stats().plans_made, stats().plan_hits), (after.plans_made, after.plan_hits + 1));
}

#[test]
fn several_results_share_a_plan_and_a_kernel() {
    child_succeeds("one_plan", &[]);
}

fn one_plan() {
    let x = tensor([50, 60]);
    let results = [x.sum(1), x.max(1), x.exp().mean(1)];
    eval(&results).unwrap();
    let after = stats();
    assert_eq!((after.evaluations, after.plans_made, after.launches), (1, 1, 1));
    assert!(results.iter().all(Tensor::is_evaluated));
    // Also if some are the same, or there already; nothing at all is fine too.
    let fresh = x.min(0);
    eval([&fresh, &results[0], &fresh, &fresh.clone()]).unwrap();
    assert_eq!((stats().evaluations, stats().launches), (2, 2));
    eval([]).unwrap();
    eval(&results).unwrap();
    assert_eq!(stats().evaluations, 2);
}

#[test]
fn results_on_two_devices_come_from_one_call() {
    child_succeeds("one_for_each_device", &[]);
}

fn one_for_each_device() {
    let x = tensor([10]);
    let (here, there) = (x.exp(), x.to(&Device::interpreter()).exp());
    eval([&here, &there]).unwrap();
    assert!(here.is_evaluated() && there.is_evaluated());
    let (here, there) = (here.to_vec::<f32>().unwrap(), there.to_vec::<f32>().unwrap());
    assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs()));
}

/// A loop that asks for a number of each step computes no step more than twice, and soon no other kernels.
#[test]
fn what_is_computed_again_is_kept() {
    child_succeeds("again", &[]);
}

fn again() {
    let mut x = tensor([64]);
    let mut reference: Vec<f64> = x.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect();
    let mut steps = Vec::new();
    let mut made = 0;
    for step in 0..12 {
        let next = (&x * 0.5).cos();
        let before = x.clone();
        let change = (&next - &x).abs().max(..).item::<f32>().unwrap();
        let own: Vec<f64> = reference.iter().map(|x| (x * 0.5).cos()).collect();
        let expected = own.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!((f64::from(change) - expected).abs() < 1e-5);
        // The one before is data now, and this one is not.
        assert!(before.is_evaluated() && !next.is_evaluated());
        if step == 4 {
            made = stats().plans_made;
        }
        steps.push(before);
        (x, reference) = (next, own);
    }
    assert_eq!(stats().plans_made, made);
    assert!(steps.iter().all(Tensor::is_evaluated));
}

/// The same where the step before has no handle any more: what follows from it is kept.
#[test]
fn what_follows_from_what_is_computed_again_is_kept() {
    child_succeeds("following", &[]);
}

fn following() {
    let mut x = tensor([64]);
    let mut made = 0;
    for step in 0..12 {
        let next = (&x * 0.5).cos();
        let change = (&next - &x).abs().max(..);
        x = next;
        change.eval().unwrap();
        assert_eq!(x.is_evaluated(), step % 2 == 1);
        if step == 3 {
            made = stats().plans_made;
        }
    }
    assert_eq!(stats().plans_made, made);
}

/// The same of steps whose gradients have a rule of their own, such as those that are cut off.
#[test]
fn what_is_detached_is_kept_as_well() {
    child_succeeds("detached", &[]);
}

fn detached() {
    let mut x = tensor([64]);
    let mut made = 0;
    for step in 0..12 {
        let next = (&x * 0.5).cos().detach();
        let change = (&next - &x).abs().max(..).item::<f32>().unwrap();
        assert!(change.is_finite() && x.is_evaluated() && !next.is_evaluated());
        if step == 4 {
            made = stats().plans_made;
        }
        x = next;
    }
    assert_eq!(stats().plans_made, made);
}

/// However many tensors keep how they were recorded: those whose histories hold nothing that is not there anyway go on doing so.
#[test]
fn what_there_are_handles_of_keeps_its_history() {
    child_succeeds("many", &[]);
}

fn many() {
    let a = tensor([24]);
    a.eval().unwrap();
    let make = || (a.unsqueeze(1) - &a).square();
    let expected = lazuli::grad(&make().sum(..), &a).to_vec::<f32>().unwrap();
    let distances = make();
    distances.to_vec::<f32>().unwrap();
    let sums = |of: &dyn Fn() -> Tensor| -> Vec<Tensor> {
        let sum = |_| {
            let sum = of().sum(..);
            sum.item::<f32>().unwrap();
            sum
        };
        (0..1500).map(sum).collect()
    };
    // Of what there is a handle of, and of data that only the history holds.
    let first = sums(&|| a.clone());
    let _second = sums(&|| Tensor::from_vec(vec![1.0f32; 24], [24]));
    assert_eq!(lazuli::grad(&distances.sum(..), &a).to_vec::<f32>().unwrap(), expected);
    assert_eq!(lazuli::grad(&first[0], &a).to_vec::<f32>().unwrap(), [1.0; 24]);
}

#[test]
fn what_is_large_or_cannot_be_asked_for_is_not_kept() {
    let [queries, keys] = [1, 2].map(|seed| Tensor::rand([1024, 8], seed));
    eval([&queries, &keys]).unwrap();
    let scores = queries.matmul(&keys.t());
    let small = (&queries * 2.0).exp();
    let of_both = || scores.softmax(1).sum(..) + small.sum(..) + (&keys * 3.0).sin().sum(..);
    let first = of_both().item::<f32>().unwrap();
    assert!(!small.is_evaluated());
    for _ in 0..2 {
        assert_eq!(of_both().item::<f32>().unwrap(), first);
        assert!(small.is_evaluated() && !scores.is_evaluated());
    }
}

#[test]
fn an_evaluated_tensor_is_independent_of_what_made_it() {
    let x = tensor([64]);
    let y = &x + 1.0;
    let z = &y * 2.0;
    y.eval().unwrap();
    assert!(y.is_evaluated() && !z.is_evaluated());
    drop(x);
    // From here on y is an input.
    assert_eq!(z.explain().unwrap().bytes_moved(), 2 * 64 * 4);
    assert!(z.explain().unwrap().to_string().contains("computes  mul\n"));
    drop(y);
    let expected: Vec<f32> = workloads::data(64).iter().map(|x| (x + 1.0) * 2.0).collect();
    assert_eq!(z.to_vec::<f32>().unwrap(), expected);
}

#[test]
#[cfg(target_os = "linux")]
fn memory_of_the_history_is_free_after_evaluation() {
    child_succeeds("memory", &[]);
}

/// 60 steps of 16 MB each need the memory of a few.
fn memory() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let mut x = Tensor::zeros([4 << 20], DType::F32);
    x.eval().unwrap();
    for _ in 0..60 {
        x = x + 1.0;
        x.eval().unwrap();
    }
    assert_eq!(x.max(..).item::<f32>().unwrap(), 60.0);
    assert_eq!(x.min(..).item::<f32>().unwrap(), 60.0);
    assert!(peak() < 300, "{} MB", peak());
}

#[test]
fn a_million_operations_are_recorded_and_dropped_without_recursion() {
    let start = Instant::now();
    let mut x = tensor([4]);
    for n in 0..1_000_000 {
        x = if n % 2 == 0 { x.sin() } else { -x };
    }
    println!("recorded in {:?}", start.elapsed());
    let start = Instant::now();
    drop(x);
    println!("dropped in {:?}", start.elapsed());
}

#[test]
fn a_hundred_thousand_operations_are_planned_without_recursion() {
    let start = Instant::now();
    let mut x = tensor([4]);
    for n in 0..100_000 {
        x = if n % 2 == 0 { x.sin() } else { -x };
    }
    let program = compile_for([&x], &Target::cuda("sm_90")).unwrap();
    let kernels = program.kernels().len();
    assert!((100_000 / 256..5000).contains(&kernels), "{kernels} kernels");
    let texts: HashSet<&str> = program.kernels().iter().map(|kernel| kernel.source()).collect();
    assert!(texts.len() <= 5, "{} texts", texts.len());
    println!("planned as {kernels} kernels in {:?}", start.elapsed());
}

#[test]
fn chains_of_views_are_planned_without_recursion() {
    let mut x = tensor([4, 3]);
    for n in 0..1000 {
        x = x.t().sin().pad(&[(0, 1), (1, 0)], n % 2).slice(0, ..-1).slice(1, 1..);
    }
    for target in [Target::cuda("sm_90"), Target::cpu()] {
        let program = compile_for([&x], &target).unwrap();
        let texts: HashSet<&str> = program.kernels().iter().map(|kernel| kernel.source()).collect();
        assert!(texts.len() <= 10, "{} texts of {} kernels", texts.len(), program.kernels().len());
        // An index does not grow with each view.
        assert!(program.kernels().iter().all(|kernel| kernel.source().len() < 100_000));
    }
}

/// Loops that write over parts of a table, or shift it by another distance in each step: what their steps compute again is in few
/// texts, and each step of the first is computed for its own part alone.
#[test]
fn loops_of_a_hundred_steps_are_few_texts() {
    let rows = |steps: isize| {
        let (first, mut x) = (tensor([64]), Tensor::zeros([steps as usize, 64], DType::F32));
        for n in 0..steps {
            let row = if n == 0 { first.clone() } else { (x.select(0, n - 1) * 0.9).sin() + &first };
            x = x.select_scatter(0, row, n);
        }
        x
    };
    let shifted = |steps: isize| {
        let (mut best, values) = (Tensor::zeros([1001], DType::F32), tensor([steps as usize]));
        for n in 0..steps {
            let weight = n * 31 % 47 + 1;
            let none = Tensor::full([weight as usize], f32::NEG_INFINITY, DType::F32);
            let chosen = Tensor::cat([&none, &best.slice(0, ..-weight)], 0) + values.select(0, n);
            best = best.maximum(chosen);
        }
        best
    };
    let columns = |steps: isize| {
        let (mut a, mut columns) = (tensor([steps as usize, steps as usize]), Vec::new());
        for n in 0..steps as usize {
            let column = a.narrow(1, n, 1) / a.narrow(1, n, 1).narrow(0, n, 1).sqrt();
            a = &a - &column * column.t();
            columns.push(column);
        }
        Tensor::cat(columns, 1)
    };
    for (name, loops) in
        [("rows", &rows as &dyn Fn(isize) -> Tensor), ("shifted", &shifted), ("columns", &columns)]
    {
        let program = compile_for([&loops(100)], &Target::cpu()).unwrap();
        // Of kernels that differ in numbers alone, which are arguments, one is compiled.
        let no_digits = |source: &str| source.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let texts: std::collections::HashSet<String> =
            program.kernels().iter().map(|kernel| no_digits(kernel.source())).collect();
        assert!(texts.len() <= 16, "{name}: {} texts of {} kernels", texts.len(), program.kernels().len());
    }
    // Each position of a kernel computes all of its rows.
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        let program = compile_for([&rows(100)], &target).unwrap();
        let body = |source: &str| source.matches("lz_sin_f32v((").count() + source.matches("sinf(").count();
        let most = program.kernels().iter().map(|kernel| body(kernel.source())).max();
        assert!(most <= Some(6), "{most:?} sines in a kernel for {target}");
    }
}

#[test]
fn twenty_thousand_operations_are_evaluated_without_recursion() {
    let start = Instant::now();
    let mut x = Tensor::from_vec(vec![1.0f32, 2.0], [2]);
    for _ in 0..10_000 {
        x = -(x.abs());
    }
    assert_eq!(x.to_vec::<f32>().unwrap(), [-1.0, -2.0]);
    println!("evaluated in {:?}", start.elapsed());
    let mut x = Tensor::from_vec(vec![0.0f32, -0.5], [2]).to(&Device::interpreter());
    for _ in 0..20_000 {
        x = x + 1.0;
    }
    assert_eq!(x.to_vec::<f32>().unwrap(), [20_000.0, 19_999.5]);
    println!("interpreted in {:?}", start.elapsed());
}

#[test]
fn a_wide_expression_is_planned_too() {
    // Every value has many readers, and there are far more paths than values.
    let mut x = tensor([8]);
    for _ in 0..60 {
        x = (&x + &x.square()) * 0.5;
    }
    x.eval().unwrap();
    let inputs: Vec<Tensor> = (0..500).map(|_| tensor([8])).collect();
    let sum = inputs.iter().skip(1).fold(inputs[0].clone(), |sum, x| sum + x);
    let expected: Vec<f32> = workloads::data(8).iter().map(|x| x * 500.0).collect();
    for (sum, expected) in sum.to_vec::<f32>().unwrap().iter().zip(expected) {
        assert!((sum - expected).abs() <= 1e-3 * expected.abs(), "{sum} is not {expected}");
    }
}

#[test]
fn transfers_happen_at_evaluation_and_keep_the_values() {
    let x = tensor([3, 5]);
    let mut devices = vec![Device::interpreter(), Device::cpu()];
    if cfg!(feature = "emulate") {
        devices.extend([Device::cuda_emulated(), Device::interpreter(), Device::cuda_emulated()]);
    }
    let (mut y, mut expected) = (x.clone(), workloads::data(15));
    for device in &devices {
        y = y.to(device) * 2.0;
        expected.iter_mut().for_each(|x| *x *= 2.0);
        assert_eq!(y.device().unwrap(), *device);
        assert!(!y.is_evaluated());
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    // To where it is already: nothing to do.
    assert!(x.to(&Device::cpu()).is_evaluated());
    assert_eq!(x.to(&Device::cpu()).to_vec::<f32>().unwrap(), workloads::data(15));
    // What follows from constants alone goes anywhere.
    let noise = Tensor::rand([6], 1);
    let here = noise.to(&Device::interpreter());
    assert_eq!(here.device().unwrap(), Device::interpreter());
    assert_eq!(here.to_vec::<f32>().unwrap(), noise.to_vec::<f32>().unwrap());
}

#[test]
fn a_transfer_that_several_results_need_is_made_once_and_kept() {
    let x = tensor([5]).exp();
    let there = x.to(&Device::interpreter());
    eval([&there.sin(), &there.cos()]).unwrap();
    assert!(there.is_evaluated() && x.is_evaluated());
}

#[test]
fn operands_on_two_devices_are_a_mistake() {
    let (a, b) = (tensor([2]), tensor([2]).to(&Device::interpreter()));
    let mixed: [Tensor; 3] = [&a + &b, a.gt(0.0).where_(&a, &b), a.reshape([2]).maximum(b.exp())];
    for tensor in mixed {
        let error = tensor.eval().unwrap_err();
        assert!(matches!(error, Error::InvalidOperation { .. }), "{error}");
        assert!(error.to_string().contains("operands are on cpu and interpreter"), "{error}");
    }
    (&a + Tensor::ones([2], DType::F32)).eval().unwrap();
    (&b + Tensor::ones([2], DType::F32)).eval().unwrap();
}

#[test]
fn results_without_dimensions_or_elements() {
    let mut devices = vec![Device::cpu(), Device::interpreter()];
    if cfg!(feature = "emulate") {
        devices.push(Device::cuda_emulated());
    }
    for device in devices {
        let scalar = Tensor::scalar(2.75f32).to(&device);
        assert_eq!(scalar.exp().log().round().item::<f32>().unwrap(), 3.0, "{device}");
        assert_eq!(tensor([5]).to(&device).sum(..).shape().unwrap().rank(), 0);
        let empty = Tensor::from_vec(Vec::<f32>::new(), [3, 0]).to(&device);
        assert_eq!((&empty * 2.0).to_vec::<f32>().unwrap(), [0.0f32; 0], "{device}");
        assert_eq!(empty.exp().t().relu().to_vec::<f32>().unwrap(), [0.0f32; 0], "{device}");
        // The sum of nothing is zero; the mean is not a number.
        assert_eq!(empty.sum(1).to_vec::<f32>().unwrap(), [0.0; 3], "{device}");
        assert_eq!((empty.sum(..) + 1.0).item::<f32>().unwrap(), 1.0, "{device}");
        assert_eq!(empty.sum(0).to_vec::<f32>().unwrap(), [0.0f32; 0], "{device}");
        assert_eq!(empty.prod(1).to_vec::<f32>().unwrap(), [1.0; 3], "{device}");
        assert!(empty.mean(..).item::<f32>().unwrap().is_nan(), "{device}");
        assert_eq!(empty.pad(&[(0, 0), (1, 0)], 4.0).to_vec::<f32>().unwrap(), [4.0; 3], "{device}");
        // Empty and not: one kernel has nothing to do.
        let (a, b) = (&empty + 1.0, tensor([2]).to(&device).relu());
        eval([&a, &b]).unwrap();
        assert_eq!(b.to_vec::<f32>().unwrap().len(), 2);
    }
}
