//! What a kernel does wrong: whose error it is, and what the error says.

use std::process::Command;

use lazuli::Settings;

use super::*;

/// Says in a process of its own what it finds there: the device is lost for that process.
const LOST: &str = "LAZULI_TEST_LOST_DEVICE";

/// What errors say after a kernel has failed while the device was not waited for, in this way.
fn lost(way: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output =
        command.args(["--exact", "errors::a_lost_device", "--nocapture"]).env(LOST, way).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Only the driver for tests has kernels fail when they are told to.
fn fail_next_kernel() {
    let fail: unsafe extern "C" fn(c_int) -> c_int = driver("lazuliMockFailKernel");
    // SAFETY: the type is that of the function in `tests/mock-driver`.
    assert_eq!(unsafe { fail(0) }, 0);
}

#[test]
fn a_lost_device() {
    let (Ok(way), gpu) = (std::env::var(LOST), Device::cuda(0)) else { return };
    let x = tensor(100, &gpu);
    let chain = |x: Tensor| with_fusion(Fusion::Off, || x.exp().sin().sqrt().abs() + 1.0);
    let compiled = compile(move |x: Tensor| chain(x));
    let call = || with_fusion(Fusion::Off, || compiled.call(&x));
    (0..3).for_each(|_| drop(call().unwrap().to_vec::<f32>()));
    (&x * 2.0).to_vec::<f32>().unwrap();
    (&x + 3.0).eval().unwrap();
    fail_next_kernel();
    let result = match way.as_str() {
        "later" => {
            let y = x.tanh(); // the line that errors name
            y.eval().unwrap(); // not waited for
            y.to_vec::<f32>().map(drop)
        }
        "graph" => call().unwrap().to_vec::<f32>().map(drop),
        _ => Settings::new().launch_blocking(true).scope(|| x.cos().eval()).unwrap(),
    };
    println!("first: {}", result.unwrap_err());
    println!("second: {}", x.to_vec::<f32>().unwrap_err());
    println!("third: {}", (&x - 1.0).eval().unwrap_err());
}

#[test]
fn a_lost_device_says_so_and_what_was_launched_last() {
    let Some((_, _alone)) = gpu() else { return };
    if held(0).is_none() {
        return;
    }
    let text = lost("later");
    let said: Vec<&str> = text.lines().filter(|line| line.contains("cuda:0")).collect();
    assert_eq!(said.len(), 3, "{text}");
    let loss = "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered. The device has lost its memory \
                for this process, which must be started again. The last launches, the latest first: \
                tanh_f32 (tanh, at tests/gpu/errors.rs:";
    assert!(said.iter().all(|line| line.contains(loss)), "{text}");
    let (tanh, add, mul) =
        (text.find("tanh_f32").unwrap(), text.find("add_f32").unwrap(), text.find("mul_f32").unwrap());
    assert!(tanh < add && add < mul, "{text}");
    assert!(said[0].contains("LAZULI_LAUNCH_BLOCKING"), "{text}");

    assert!(lost("graph").contains("the latest first: a graph of exp_f32 (exp, at tests/gpu/errors.rs:"));

    let text = lost("blocking");
    assert!(text.contains("kernel cos_f32 (cos, at tests/gpu/errors.rs:"), "{text}");
}

#[test]
fn who_waits_for_each_launch_gets_its_error() {
    let Some((gpu, _alone)) = gpu() else { return };
    let x = tensor(10, &gpu);
    let at = Tensor::from([3i64, 12]).to(&gpu);
    let waiting = Settings::new().launch_blocking(true);
    let wrong = x.index_select(0, &at) + 1.0;
    let error = waiting.scope(|| wrong.eval()).unwrap().unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 12, .. }), "{error}");
    // Without, it is the error of who asks for values.
    let later = x.index_select(0, &at) + 2.0;
    later.eval().unwrap();
    (&x + 1.0).to_vec::<f32>().unwrap();
    gpu.synchronize().unwrap();
    for _ in 0..2 {
        assert!(matches!(later.to_vec::<f32>(), Err(Error::IndexOutOfRange { index: 12, .. })));
    }
}

#[test]
fn threads_that_launch_and_wait_get_their_own_errors() {
    let Some((gpu, _alone)) = gpu() else { return };
    let x = tensor(64, &gpu);
    x.eval().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let x = &x;
            scope.spawn(move || {
                let side = Stream::new(&gpu).unwrap();
                side.scope(|| {
                    // More than a device keeps notes of.
                    for round in 0..8 {
                        let at = |n: i64| if (n + thread) % 7 == 0 { 100 + n } else { n % 64 };
                        let results: Vec<Tensor> = (0..60)
                            .map(|n| {
                                let y = x.index_select(0, &Tensor::from([at(n)]).to(&gpu)) + round as f64;
                                y.eval().unwrap();
                                y
                            })
                            .collect();
                        for (n, y) in (0..).zip(results) {
                            match (at(n), y.item::<f32>()) {
                                (wrong @ 100.., Err(Error::IndexOutOfRange { index, .. })) => {
                                    assert_eq!(index, wrong);
                                }
                                (right @ ..100, Ok(value)) => {
                                    assert_eq!(value, numbers(64)[right as usize] + round as f32);
                                }
                                (at, other) => panic!("{other:?} at {at}"),
                            }
                        }
                    }
                });
            });
        }
    });
}

/// In a process of its own, in which the device is one that is newer than the compiler.
const NEWER: &str = "LAZULI_TEST_NEWER_DEVICE";

#[test]
fn a_device_that_the_compiler_does_not_know() {
    let (Ok(_), gpu) = (std::env::var(NEWER), Device::cuda(0)) else { return };
    assert_eq!(gpu.information().unwrap().architecture.as_deref(), Some("sm_137"));
    let x = tensor(100, &gpu);
    let expected: f32 = numbers(100).iter().map(|x| x * 2.0).sum();
    assert!(((&x * 2.0).sum(0).item::<f32>().unwrap() - expected).abs() < 1e-2);
    println!("computed");
}

#[test]
fn a_device_that_is_newer_than_the_compiler_gets_ptx() {
    let Some((_, _alone)) = gpu() else { return };
    if held(0).is_none() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "errors::a_device_that_the_compiler_does_not_know", "--nocapture"]);
    let output = command.env(NEWER, "1").env("LAZULI_MOCK_CAPABILITY", "137").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("computed"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}
