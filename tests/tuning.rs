//! Tuning: what is measured, what is chosen, and what programs have of it.

#![allow(clippy::unwrap_used)] // A failed assumption stops the test.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use lazuli::{DType, Device, Error, Result, Tensor, Tuner, Tuning, compile, stats};

/// Seconds by schedule: the default pointwise one of the CPU takes 16,384 elements.
fn costs(schedule: &str) -> f64 {
    match schedule {
        "pointwise(elements_per_block=4096)" => 1e-3,
        "pointwise(elements_per_block=8192)" => 1.5e-3,
        _ => 2e-3,
    }
}

fn tuner<'a>() -> Tuner<'a> {
    Tuner::new().time_limit(Duration::from_secs(600)).clock(|_, schedule, measured| {
        assert!(measured > 0.0);
        costs(schedule)
    })
}

fn input() -> Tensor {
    let x = Tensor::rand([40, 1000], 1);
    x.eval().unwrap();
    x
}

fn scaled(x: &Tensor) -> Tensor {
    x * 3.0 + 0.25
}

#[test]
fn the_fastest_schedule_is_found_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    let x = input();
    let untuned = scaled(&x).to_vec::<f32>().unwrap();
    let progress = RefCell::new(Vec::new());
    let (values, tuning) = tuner()
        .file(&file)
        .progress(|told| progress.borrow_mut().push(told.to_string()))
        .run(|| scaled(&x).to_vec::<f32>())
        .unwrap();
    assert_eq!(values, untuned);
    let kernels = tuning.kernels();
    assert_eq!(kernels.len(), 1);
    let kernel = &kernels[0];
    assert_eq!((kernel.name(), kernel.extents()), ("mul_add_f32", "i0=40000"));
    assert_eq!(kernel.default_schedule(), "pointwise(elements_per_block=16384)");
    assert_eq!(kernel.schedule(), "pointwise(elements_per_block=4096)");
    assert_eq!((kernel.gain(), kernel.times().1), (2.0, Duration::from_millis(1)));
    let progress = progress.into_inner();
    assert_eq!(progress.first().unwrap(), "0 of 1 kernels, mul_add_f32 i0=40000");
    assert_eq!(progress.last().unwrap(), "1 of 1 kernels");

    // What programs load is what was measured, and it is what runs: the same bits, and the same plan each time.
    let loaded = Tuning::load(&file).unwrap();
    assert_eq!(loaded, tuning);
    for _ in 0..2 {
        loaded.scope(|| {
            let y = scaled(&x);
            let explained = y.explain().unwrap().to_string();
            assert!(explained.contains("mul_add_f32: pointwise(elements_per_block=4096)"), "{explained}");
            let line =
                "tuned     2.00 times as fast (1000.0 µs) as pointwise(elements_per_block=16384) (2000.0 µs)";
            assert!(explained.contains(line), "{explained}");
            assert_eq!(y.to_vec::<f32>().unwrap(), untuned);
            // Other numbers are no other kernel, other sizes are.
            let other = (&x * 5.0 + 0.5).explain().unwrap().to_string();
            assert!(other.contains("elements_per_block=4096"), "{other}");
            let other = scaled(&x.slice(0, ..39)).explain().unwrap().to_string();
            assert!(other.contains("elements_per_block=16384") && !other.contains("tuned"), "{other}");
        });
    }
    let explained = scaled(&x).explain().unwrap().to_string();
    assert!(explained.contains("elements_per_block=16384") && !explained.contains("tuned"), "{explained}");

    // Nothing is measured again.
    let again = Tuner::new().file(&file).clock(|_, _, _| unreachable!()).run(|| scaled(&x).eval()).unwrap();
    assert_eq!(again.1, tuning);
}

#[test]
fn a_default_that_nothing_beats_is_known_as_such() {
    let x = input();
    let (_, tuning) = Tuner::new().clock(|_, _, _| 1e-3).run(|| x.exp().eval()).unwrap();
    let kernels = tuning.kernels();
    assert_eq!((kernels.len(), kernels[0].gain()), (1, 1.0));
    assert_eq!(kernels[0].schedule(), kernels[0].default_schedule());
    let explained = tuning.scope(|| x.exp().explain()).unwrap().to_string();
    assert!(explained.contains("tuned     no other schedule was clearly faster (1000.0 µs)"), "{explained}");
}

#[test]
fn all_schedules_of_a_reduction_give_its_results() {
    let x = input();
    let expected = x.softmax(1).to_vec::<f32>().unwrap();
    let tried = RefCell::new(BTreeSet::new());
    // The last one that comes is the fastest.
    let clock = |_: &str, schedule: &str, _: f64| {
        let mut tried = tried.borrow_mut();
        tried.insert(schedule.to_owned());
        if schedule.contains("threads_per_row=32") { 1e-3 } else { 2e-3 }
    };
    let (_, tuning) = Tuner::new().clock(clock).run(|| x.softmax(1).eval()).unwrap();
    assert!(tried.borrow().len() > 5, "{tried:?}");
    let kernel = &tuning.kernels()[0];
    assert!(kernel.schedule().contains("threads_per_row=32"), "{}", kernel.schedule());
    let values = tuning.scope(|| x.softmax(1).to_vec::<f32>()).unwrap();
    assert!(values.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-6 * b));
    let again = tuning.scope(|| x.softmax(1).to_vec::<f32>()).unwrap();
    assert_eq!(values, again);
}

#[test]
fn compiled_functions_follow_the_tuning_in_force() {
    let x = input();
    let f = compile(|x: Tensor| scaled(&x));
    let expected = f.call(&x).unwrap().to_vec::<f32>().unwrap();
    let ((), tuning) = tuner().run(|| f.call(&x).map(|_| ())).unwrap();
    let schedule = || f.executable(&x)?.explain().map(|explained| explained.to_string());
    assert!(tuning.scope(schedule).unwrap().contains("elements_per_block=4096"));
    assert_eq!(tuning.scope(|| f.call(&x)).unwrap().to_vec::<f32>().unwrap(), expected);
    assert!(schedule().unwrap().contains("elements_per_block=16384"));
    // One that was made keeps its own.
    let executable = tuning.scope(|| f.executable(&x)).unwrap();
    assert!(executable.explain().unwrap().to_string().contains("elements_per_block=4096"));
    assert_eq!(executable.call(&x).unwrap().to_vec::<f32>().unwrap(), expected);
}

#[test]
fn results_over_inputs_have_the_schedule_too() {
    let large = || Tensor::rand([1 << 20], 1);
    let run = || -> Result<Vec<f32>> {
        let x = large();
        x.eval()?;
        (x.donate() * 3.0 + 0.25).to_vec::<f32>()
    };
    let expected = run().unwrap();
    let (values, tuning) = tuner().run(run).unwrap();
    assert_eq!(values, expected);
    let before = stats().in_place;
    assert_eq!(tuning.scope(run).unwrap(), expected);
    assert!(stats().in_place > before);
}

#[test]
fn what_is_not_for_this_device_or_version_is_said() {
    let x = input();
    let ((), tuning) = tuner().run(|| scaled(&x).eval()).unwrap();
    let text = tuning.to_string();
    let device = tuning.kernels()[0].device().to_owned();
    let foreign: Tuning =
        text.replace(&format!("device {device}"), "device Z80, 1 processor").parse().unwrap();
    let explained = foreign.scope(|| scaled(&x).explain()).unwrap().to_string();
    assert!(explained.contains("elements_per_block=16384"), "{explained}");
    let line = format!("not tuned: nothing was measured on {device}, but on Z80, 1 processor");
    assert!(explained.contains(&line), "{explained}");
    assert_eq!(foreign.scope(|| scaled(&x).to_vec::<f32>()).unwrap(), scaled(&x).to_vec::<f32>().unwrap());

    let stale: Tuning = text
        .replace("pointwise(elements_per_block=4096)", "sort(rows_per_block=1, lanes=8)")
        .parse()
        .unwrap();
    let explained = stale.scope(|| scaled(&x).explain()).unwrap().to_string();
    assert!(explained.contains("mul_add_f32: pointwise(elements_per_block=16384)"), "{explained}");
    assert!(
        explained
            .contains("tuned     not so: sort(rows_per_block=1, lanes=8) is not for this kernel any more"),
        "{explained}"
    );

    // Another kernel of the name: as if it were not there.
    let other = text.replacen("kernel mul_add_f32 ", "kernel mul_add_f32 0000000000000000\n#", 1);
    let other: Tuning = other.parse().unwrap();
    let explained = other.scope(|| scaled(&x).explain()).unwrap().to_string();
    assert!(explained.contains("elements_per_block=16384") && !explained.contains("tuned"), "{explained}");
}

/// Seconds where cutting below the exponentials is faster than any schedule.
fn cut_costs(way: &str) -> f64 {
    if way.starts_with("cut below exp f32") { 1e-3 } else { 1.3e-3 }
}

fn exponentials(x: &Tensor) -> Tensor {
    x.exp() * 2.0 + 1.0
}

/// The kernels that a program launches, in their order.
fn launched(program: impl FnOnce() -> Result<()>) -> Vec<String> {
    let names = RefCell::new(Vec::new());
    let tuner = Tuner::new().time_limit(Duration::ZERO).progress(|told| {
        names.borrow_mut().extend((!told.name.is_empty()).then(|| format!("{} {}", told.name, told.extents)));
    });
    tuner.run(program).unwrap();
    let mut names = names.into_inner();
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_cut_that_is_faster_is_found_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    let x = input();
    let expected = exponentials(&x).to_vec::<f32>().unwrap();
    let tried = RefCell::new(BTreeSet::new());
    let clock = |name: &str, way: &str, measured: f64| {
        assert!(measured > 0.0);
        assert_eq!(name, "exp_mul_add_f32");
        tried.borrow_mut().insert(way.to_owned());
        cut_costs(way)
    };
    let run = || exponentials(&x).to_vec::<f32>();
    let (values, tuning) =
        Tuner::new().time_limit(Duration::from_secs(600)).file(&file).clock(clock).run(run).unwrap();
    assert_eq!(values, expected);
    let tried = tried.into_inner();
    let cuts: Vec<&String> = tried.iter().filter(|way| way.starts_with("cut")).collect();
    assert_eq!(cuts, ["cut below exp f32 [40, 1000]", "cut below mul f32 [40, 1000]"]);
    let kernel = &tuning.kernels()[0];
    assert_eq!(
        (kernel.schedule().as_str(), kernel.times().1),
        ("cut below exp f32 [40, 1000]", Duration::from_millis(1))
    );
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\n  fastest cut below exp f32 [40, 1000] 1000.000 us\n"), "{text}");
    let loaded = Tuning::load(&file).unwrap();
    assert_eq!(loaded, tuning);
    for _ in 0..2 {
        loaded.scope(|| {
            let explanation = exponentials(&x).explain().unwrap();
            assert_eq!(explanation.kernels(), 2);
            let line = "1 and 2 at exp f32 [40, 1000] (160.0 kB): tuned: cut below exp f32 [40, 1000], 1.30 times as \
                        fast (1000.0 µs) as one kernel (1300.0 µs)";
            let explained = explanation.to_string();
            assert!(explained.contains(line), "{explained}");
            assert_eq!(exponentials(&x).to_vec::<f32>().unwrap(), expected, "stored between, no bit is another");
            // Other numbers are no other kernel, other sizes are.
            assert_eq!((x.exp() * 5.0 + 0.5).explain().unwrap().kernels(), 2);
            assert_eq!(exponentials(&x.slice(0, ..39)).explain().unwrap().kernels(), 1);
            // What it is cut into is tuned as other kernels are.
            let two = ["exp_f32 i0=40000", "mul_add_f32 i0=40000"];
            assert_eq!(launched(|| exponentials(&x).eval()), two);
        });
    }
    assert_eq!(exponentials(&x).explain().unwrap().kernels(), 1);
    let again =
        Tuner::new().file(&file).clock(|_, _, _| unreachable!()).run(|| exponentials(&x).eval()).unwrap();
    assert_eq!(again.1, tuning);
}

#[test]
fn one_of_many_sizes_is_cut() {
    let input = |rows: usize| {
        let x = Tensor::rand([rows, 100], 1);
        x.eval().unwrap();
        x
    };
    let clock = |_: &str, way: &str, _: f64| cut_costs(way);
    let measured =
        |rows: usize| Tuner::new().clock(clock).run(|| exponentials(&input(rows)).eval()).unwrap().1;
    // In the middle of a stretch, and at both of its ends.
    for tuned in [vec![45], vec![40, 41, 42]] {
        let tuning = tuned.iter().fold(Tuning::default(), |all, &rows| all.and(&measured(rows)));
        tuning.scope(|| {
            for rows in 40..50 {
                let x = input(rows);
                let kernels = launched(|| exponentials(&x).eval());
                assert_eq!(kernels.len(), 1 + usize::from(tuned.contains(&rows)), "{rows} rows: {kernels:?}");
            }
        });
    }
}

#[test]
fn kernels_that_are_reduced_or_give_several_results_are_cut_too() {
    let x = input();
    let several = |x: &Tensor| vec![x.exp().sum(1), x.exp() * 2.0, x.cumsum(1)];
    let values = |x: &Tensor| -> Vec<Vec<f32>> {
        let results = several(x);
        lazuli::eval(&results).unwrap();
        results.iter().map(|result| result.to_vec::<f32>().unwrap()).collect()
    };
    let expected = values(&x);
    let ways = RefCell::new(BTreeSet::new());
    let note = |_: &str, way: &str, _: f64| {
        ways.borrow_mut().insert(way.to_owned());
        1e-3
    };
    Tuner::new().time_limit(Duration::from_secs(600)).clock(note).run(|| Ok(values(&x))).unwrap();
    let cuts: Vec<String> = ways.into_inner().into_iter().filter(|way| way.starts_with("cut")).collect();
    assert!(cuts.iter().any(|way| way.starts_with("cut beside")), "{cuts:?}");
    for cut in cuts {
        let clock = |_: &str, way: &str, _: f64| if way == cut { 1e-3 } else { 2e-3 };
        let (_, tuning) =
            Tuner::new().time_limit(Duration::from_secs(600)).clock(clock).run(|| Ok(values(&x))).unwrap();
        tuning.scope(|| {
            let explained = lazuli::explain(&several(&x)).unwrap().to_string();
            assert!(explained.contains(&format!("tuned: {cut}, 2.00 times as fast")), "{explained}");
            for (own, expected) in values(&x).iter().zip(&expected) {
                assert!(own.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs()), "{cut}");
            }
        });
    }
}

#[cfg(feature = "emulate")]
#[test]
fn kernels_for_cuda_are_cut_too() {
    let x = input();
    let clock = |_: &str, way: &str, _: f64| cut_costs(way);
    let ((), tuning) = Tuner::new().clock(clock).run(|| exponentials(&x).eval()).unwrap();
    let device = Device::cuda_emulated();
    let text = tuning.to_string().replace(tuning.kernels()[0].device(), &device.to_string());
    let on_device = x.to(&device);
    let expected = exponentials(&on_device).to_vec::<f32>().unwrap();
    text.parse::<Tuning>().unwrap().scope(|| {
        assert_eq!(exponentials(&on_device).explain().unwrap().kernels(), 2);
        assert_eq!(exponentials(&on_device).to_vec::<f32>().unwrap(), expected);
    });
}

#[test]
fn values_of_16_bits_are_not_stored_by_cuts() {
    let x = input().cast(DType::F16);
    x.eval().unwrap();
    let clock = |_: &str, way: &str, _: f64| {
        assert!(!way.starts_with("cut"), "{way} would round where one kernel does not");
        1e-3
    };
    Tuner::new().clock(clock).run(|| exponentials(&x).eval()).unwrap();
}

#[test]
fn a_cut_that_is_not_for_the_kernel_is_as_if_it_were_not_there() {
    let x = input();
    let clock = |_: &str, way: &str, _: f64| cut_costs(way);
    let ((), tuning) = Tuner::new().clock(clock).run(|| exponentials(&x).eval()).unwrap();
    let text = tuning.to_string();
    for other in [
        "below exp f32 [40, 1000] #2",
        "below exp f32 [40, 999]",
        "beside exp f32 [40, 1000]",
        "below sin f32 [40, 1000]",
    ] {
        let stale: Tuning = text.replace("below exp f32 [40, 1000]", other).parse().unwrap();
        let explanation = stale.scope(|| exponentials(&x).explain()).unwrap();
        let explained = explanation.to_string();
        assert_eq!(explanation.kernels(), 1, "{explained}");
        let line = format!("tuned     not so: cut {other} is not for this kernel any more");
        assert!(explained.contains(&line), "{explained}");
        assert!(explained.contains("exp_mul_add_f32: pointwise(elements_per_block=16384)"), "{explained}");
    }
    let damaged = text.replace("cut below exp f32 [40, 1000]", "cut exp");
    let error = damaged.parse::<Tuning>().unwrap_err().to_string();
    assert!(error.contains("`cut exp` is no cut, such as `cut below exp f32 [4096, 1000]`"), "{error}");
}

/// With a GPU, or the driver for tests.
#[test]
fn kernels_of_a_gpu_are_tuned_there() {
    if !lazuli::cuda_is_available() {
        return;
    }
    let x = Tensor::rand([4000], 1).to(&Device::cuda(0));
    x.eval().unwrap();
    let expected = scaled(&x).to_vec::<f32>().unwrap();
    let clock = |_: &str, schedule: &str, _: f64| match schedule {
        "pointwise(threads=128, vec=4)" => 1e-3,
        _ => 2e-3,
    };
    let f = compile(|x: Tensor| scaled(&x));
    let (y, tuning) = Tuner::new().clock(clock).run(|| f.call(&x)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    let kernel = &tuning.kernels()[0];
    assert_eq!(kernel.default_schedule(), "pointwise(threads=256, vec=4)");
    assert_eq!(kernel.schedule(), "pointwise(threads=128, vec=4)");
    assert!(kernel.device().contains("sm_"), "{}", kernel.device());
    tuning.scope(|| {
        let explained = scaled(&x).explain().unwrap().to_string();
        assert!(explained.contains("pointwise(threads=128, vec=4)"), "{explained}");
        assert_eq!(scaled(&x).to_vec::<f32>().unwrap(), expected);
        assert_eq!(f.call(&x).unwrap().to_vec::<f32>().unwrap(), expected);
    });
    let clock = |_: &str, way: &str, _: f64| if way.starts_with("cut") { 1e-3 } else { 2e-3 };
    let ((), tuning) = Tuner::new().clock(clock).run(|| scaled(&x).eval()).unwrap();
    assert_eq!(tuning.kernels()[0].schedule(), "cut below mul f32 [4000]");
    tuning.scope(|| {
        assert_eq!(scaled(&x).explain().unwrap().kernels(), 2);
        assert_eq!(scaled(&x).to_vec::<f32>().unwrap(), expected);
    });
}

#[test]
fn errors_are_the_programs_own_or_the_files() {
    let x = input();
    let error = tuner().run(|| (&x + Tensor::rand([7], 1)).eval()).unwrap_err();
    assert!(matches!(error, Error::InvalidOperation { op: "add", .. }), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.txt");
    std::fs::write(&file, "lazuli tuning 1\nkernel").unwrap();
    let error = tuner().file(&file).run(|| -> Result<()> { unreachable!() }).unwrap_err();
    assert!(error.to_string().contains("tuning.txt: line 2: expected `device` or `kernel`"), "{error}");
    let error = tuner().file(folder.path().join("no/folder")).run(|| Ok(())).unwrap_err();
    assert!(error.to_string().starts_with("could not write "), "{error}");
    // Interpreters have nothing to choose.
    let on_interpreter = x.to(&Device::interpreter());
    let (_, tuning) = tuner().run(|| scaled(&on_interpreter).eval()).unwrap();
    assert!(tuning.is_empty());
}
