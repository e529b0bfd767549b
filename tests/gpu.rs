//! What the host does for a GPU: memory, order, several devices, errors. On a machine with a GPU, or with the driver for
//! tests (`tests/run driver`); elsewhere nothing is checked here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.
#![cfg(feature = "cuda")]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli::{DType, Device, Error, Fusion, Stream, Tensor, compile, eval, stats, with_fusion};
use libloading::Library;

#[path = "gpu/copies.rs"]
mod copies;
#[path = "gpu/errors.rs"]
mod errors;
#[path = "gpu/foreign.rs"]
mod foreign;
#[path = "gpu/graphs.rs"]
mod graphs;
#[path = "gpu/parallel.rs"]
mod parallel;
#[path = "gpu/profile.rs"]
mod profile;
#[path = "gpu/streams.rs"]
mod streams;

/// The first GPU. Memory and counters are the process's: one test at a time.
fn gpu() -> Option<(Device, MutexGuard<'static, ()>)> {
    let alone = alone();
    lazuli::cuda_is_available().then(|| (Device::cuda(0), alone))
}

/// What a test holds that launches anything, wherever: others count launches.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn numbers(elements: usize) -> Vec<f32> {
    (0..elements).map(|n| (n * 37 % 101) as f32 / 8.0 - 5.0).collect()
}

fn tensor(elements: usize, device: &Device) -> Tensor {
    Tensor::from_vec(numbers(elements), [elements]).to(device)
}

/// What the driver for tests has not been given back, beside what is kept for the next tensors: bytes and allocations. Nothing
/// where the driver is a real one.
fn held(device: c_int) -> Option<(usize, usize)> {
    Device::cuda(device as usize).trim_memory().unwrap();
    type Memory = unsafe extern "C" fn(c_int, *mut usize, *mut usize) -> c_int;
    // SAFETY: the driver's library, which is loaded already.
    let library = unsafe { Library::new("libcuda.so") }.ok()?;
    // SAFETY: the type is that of the function in `tests/mock-driver`.
    let memory = unsafe { library.get::<Memory>(b"lazuliMockMemory") }.ok()?;
    let (mut bytes, mut blocks) = (0, 0);
    // SAFETY: both pointers are to numbers of this function.
    assert_eq!(unsafe { memory(device, &mut bytes, &mut blocks) }, 0);
    Some((bytes, blocks))
}

/// A function of the driver's, as the tests of external streams and memory call it.
fn driver<F: Copy>(name: &str) -> F {
    // SAFETY: the driver's library, which is loaded already, and stays.
    let library = Box::leak(Box::new(
        unsafe { Library::new("libcuda.so").or_else(|_| Library::new("libcuda.so.1")) }.unwrap(),
    ));
    // SAFETY: the callers give the type that `cuda.h` declares.
    *unsafe { library.get::<F>(name.as_bytes()) }.unwrap()
}

fn sum_of(values: &[f32]) -> f32 {
    values.iter().sum()
}

#[test]
fn what_is_uploaded_computed_and_read_is_the_same() {
    let Some((gpu, _alone)) = gpu() else { return };
    for elements in [0, 1, 31, 1000, 70_001] {
        let record = |device: &Device| {
            let x = tensor(elements, device);
            (x.exp().minimum(&x * 3.0) + 1.0).sqrt()
        };
        let expected = record(&Device::cpu()).to_vec::<f32>().unwrap();
        let got = record(&gpu).to_vec::<f32>().unwrap();
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4 || a.is_nan() && b.is_nan()));
    }
}

#[test]
fn buffers_may_go_before_the_kernels_that_read_them_have_run() {
    let Some((gpu, _alone)) = gpu() else { return };
    let results: Vec<Tensor> = (0..50)
        .map(|n| {
            let x = tensor(1000 + n, &gpu);
            x.eval().unwrap();
            let y = &x * 2.0 + n as f64;
            y.eval().unwrap();
            y // x goes here, and nothing has waited
        })
        .collect();
    for (n, result) in results.iter().enumerate() {
        let expected: Vec<f32> = numbers(1000 + n).iter().map(|x| x * 2.0 + n as f32).collect();
        assert_eq!(result.to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn a_loop_of_changing_sizes_leaves_no_memory_behind() {
    let Some((gpu, _alone)) = gpu() else { return };
    let step = |n: usize| {
        let x = tensor(500 + 13 * (n % 40), &gpu);
        let sum = (x.tanh() * 3.0).sum(0);
        assert!(sum.item::<f32>().unwrap().is_finite());
    };
    (0..50).for_each(step);
    let before = (held(0), gpu.memory().unwrap().allocated);
    // All sizes, until nothing new is kept of them.
    (0..200).for_each(step);
    let reserved = gpu.memory().unwrap().reserved;
    (0..10_000).for_each(step);
    assert_eq!(gpu.memory().unwrap().reserved, reserved);
    assert_eq!((held(0), gpu.memory().unwrap().allocated), before);
}

#[test]
fn too_much_is_an_error_that_leaves_the_device_usable() {
    let Some((gpu, _alone)) = gpu() else { return };
    let before = held(0);
    let huge = Tensor::full([1 << 28, 1 << 12], 1.0, DType::F32).to(&gpu) * 2.0;
    match huge.eval() {
        Err(Error::OutOfMemory { device, requested, .. }) => {
            assert!(device.starts_with("cuda:0"), "{device}");
            assert_eq!(requested, 4 << 40);
        }
        other => panic!("{other:?}"),
    }
    drop(huge);
    assert_eq!(held(0), before);
    assert_eq!((tensor(3, &gpu) + 1.0).to_vec::<f32>().unwrap().len(), 3);
}

#[test]
fn memory_that_has_been_released_is_used_again() {
    let Some((gpu, _alone)) = gpu() else { return };
    // Together more than the driver for tests has, in the main run.
    for n in 0..40 {
        let x = tensor(1 << 19, &gpu) + f64::from(n);
        x.eval().unwrap();
        let y = x.slice(0, 5..6) * 2.0;
        assert_eq!(y.to_vec::<f32>().unwrap(), [2.0 * (numbers(6)[5] + n as f32)]);
    }
}

#[test]
fn memory_comes_from_a_pool_of_our_own() {
    let Some((gpu, _alone)) = gpu() else { return };
    // The driver takes 32 MiB at a time, and gives back what nothing is in.
    const CHUNK: u64 = 32 << 20;
    let x = tensor(1 << 23, &gpu);
    x.eval().unwrap();
    let default = driver::<unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int>("cuDeviceGetMemPool");
    let ask = driver::<unsafe extern "C" fn(*mut c_void, c_int, *mut u64) -> c_int>("cuMemPoolGetAttribute");
    let mut pool = std::ptr::null_mut();
    // SAFETY: the handle is this function's, and the device there.
    assert_eq!(unsafe { default(&mut pool, 0) }, 0);
    for (attribute, name) in [(4, "release threshold"), (5, "reserved"), (7, "used")] {
        let mut bytes = 1;
        // SAFETY: the attributes are 64-bit numbers.
        assert_eq!(unsafe { ask(pool, attribute, &mut bytes) }, 0);
        assert_eq!(bytes, 0, "{name} of the pool that others share");
    }
    assert!(gpu.memory().unwrap().reserved >= CHUNK);
    drop(x);
    gpu.trim_memory().unwrap();
    let memory = gpu.memory().unwrap();
    assert!(memory.reserved < memory.allocated + CHUNK, "{memory:?}");
}

#[test]
fn a_limit_is_kept_and_errors_name_what_has_the_memory() {
    let Some((gpu, _alone)) = gpu() else { return };
    let start = gpu.memory().unwrap().allocated;
    gpu.reset_peak_memory().unwrap();
    gpu.limit_memory(Some(start + (8 << 20) + (1 << 16))).unwrap();
    let kept = [tensor(1 << 20, &gpu).exp(), tensor(1 << 20, &gpu).exp()];
    let line = line!() - 1;
    eval(&kept[..1]).unwrap();
    let (uploaded, much) = (tensor(1 << 18, &gpu), Tensor::zeros([1 << 20], DType::F32).to(&gpu));
    uploaded.eval().unwrap();
    let too_much = (much + &uploaded.slice(0, ..1)).cumsum(0); // this line
    let Err(Error::OutOfMemory { op, location, requested, usage, .. }) = too_much.eval() else { panic!() };
    assert_eq!((op, location.unwrap().line, requested), (Some("cumsum"), line + 5, 4 << 20));
    assert!(usage.contains(&format!("4194304 in exp at tests/gpu.rs:{line}")), "{usage}");
    assert!(usage.contains("limit_memory"), "{usage}");
    drop(kept);
    too_much.eval().unwrap();
    gpu.limit_memory(None).unwrap();
    drop(too_much);
    assert!(gpu.memory().unwrap().peak <= start + (8 << 20) + (1 << 16));
}

#[test]
fn memory_is_counted() {
    let Some((gpu, _alone)) = gpu() else { return };
    gpu.reset_peak_memory().unwrap();
    let before = gpu.memory().unwrap();
    let x = tensor(1 << 16, &gpu);
    x.eval().unwrap();
    drop(x);
    let after = gpu.memory().unwrap();
    assert_eq!(after.allocated, before.allocated);
    assert_eq!(after.peak, before.allocated + (4 << 16));
    assert!(after.reserved >= after.allocated);
    gpu.trim_memory().unwrap();
    assert!(gpu.memory().unwrap().reserved >= after.allocated);
}

#[test]
fn a_wrong_index_is_an_error_of_what_follows_from_it() {
    let Some((gpu, _alone)) = gpu() else { return };
    let x = tensor(10, &gpu);
    let at = |index: i64| Tensor::from_vec(vec![1i64, index], [2]).to(&gpu);
    let wrong = x.index_select(0, &at(-1));
    wrong.eval().unwrap(); // nobody has waited
    let follows = wrong.exp().sum(0);
    follows.eval().unwrap();
    let elsewhere = follows.to(&Device::cuda(1));
    // Others are not told, however often they wait.
    assert_eq!(x.to_vec::<f32>().unwrap(), numbers(10));
    assert_eq!((&x * 2.0).sum(0).to_vec::<f32>().unwrap().len(), 1);
    for tensor in [&wrong, &follows, &(follows.relu() * 2.0)] {
        let error = tensor.to_vec::<f32>().unwrap_err();
        assert!(matches!(error, Error::IndexOutOfRange { index: -1, extent: 10, .. }), "{error}");
    }
    if Tensor::zeros([1], DType::F32).to(&Device::cuda(1)).eval().is_ok() {
        assert!(matches!(elsewhere.to_vec::<f32>(), Err(Error::IndexOutOfRange { .. })));
    }
    // More launches than the device has room to note.
    for n in 0..600 {
        x.index_select(0, &at(n % 10)).eval().unwrap();
    }
    let error = x.index_select(0, &at(10)).to_vec::<f32>().unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 10, extent: 10, .. }), "{error}");
    let values = numbers(10);
    assert_eq!(x.index_select(0, &at(9)).to_vec::<f32>().unwrap(), [values[1], values[9]]);
}

#[test]
fn rows_beyond_the_default_shared_memory() {
    let Some((gpu, _alone)) = gpu() else { return };
    for columns in [20_000, 40_000] {
        let record = |device: &Device| tensor(2 * columns, device).reshape([2, columns as isize]).softmax(1);
        let expected = record(&Device::cpu()).to_vec::<f32>().unwrap();
        let got = record(&gpu).to_vec::<f32>().unwrap();
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-6 + 1e-4 * b.abs()));
    }
}

#[test]
fn many_small_kernels_in_one_launch() {
    let Some((gpu, _alone)) = gpu() else { return };
    let inputs: Vec<Tensor> = (1..60).map(|n| tensor(7 * n, &gpu)).collect();
    eval(&inputs).unwrap();
    let record = || inputs.iter().map(|x| x * 2.0 + 1.0).collect::<Vec<_>>();
    eval(&record()).unwrap();
    let before = stats().launches;
    let results = record();
    eval(&results).unwrap();
    assert!(stats().launches - before <= 4, "{} launches", stats().launches - before);
    for (x, result) in inputs.iter().zip(&results) {
        let expected: Vec<f32> = x.to_vec::<f32>().unwrap().iter().map(|x| x * 2.0 + 1.0).collect();
        assert_eq!(result.to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn several_devices() {
    let Some((first, _alone)) = gpu() else { return };
    let second = Device::cuda(1);
    if Tensor::zeros([1], DType::F32).to(&second).eval().is_err() {
        return; // one GPU alone
    }
    // The same kernel by turns, and values from one to the other and back.
    for _ in 0..3 {
        let x = tensor(100, &first) * 2.0;
        let y = x.to(&second) * 2.0;
        let z = y.to(&first) * 2.0;
        let expected: Vec<f32> = numbers(100).iter().map(|x| x * 8.0).collect();
        let before = stats();
        assert_eq!(z.to_vec::<f32>().unwrap(), expected);
        // From one to the other, and not by way of the host.
        let after = stats();
        assert_eq!(after.bytes_between_devices - before.bytes_between_devices, 800);
        assert_eq!(after.bytes_downloaded - before.bytes_downloaded, 400);
        assert_eq!(z.device().unwrap(), first);
        assert_eq!(y.device().unwrap(), second);
    }
    let mixed = tensor(3, &first) + tensor(3, &second);
    let text = mixed.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.contains("cuda:0") && text.contains("cuda:1") && text.contains("gpu.rs"), "{text}");
}

#[test]
fn threads_share_a_device() {
    let Some((gpu, _alone)) = gpu() else { return };
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            scope.spawn(move || {
                for n in 0..20 {
                    let x = tensor(100 + thread + n, &gpu);
                    let y = (&x * 2.0).sum(0);
                    let z = &x + &y;
                    let values = z.to_vec::<f32>().unwrap();
                    let sum: f32 = numbers(100 + thread + n).iter().map(|x| x * 2.0).sum();
                    assert!((values[0] - (numbers(1)[0] + sum)).abs() < 1e-2 * sum.abs().max(1.0));
                }
            });
        }
    });
}

#[test]
fn state_is_updated_in_its_own_memory() {
    let Some((gpu, _alone)) = gpu() else { return };
    let mut state = tensor(1 << 20, &gpu);
    state.eval().unwrap();
    let before = held(0);
    for _ in 0..5 {
        state = state * 0.5 + 1.0;
        state.eval().unwrap();
    }
    assert_eq!(held(0), before);
    let expected = numbers(2)[1] / 32.0 + 2.0 - 1.0 / 16.0;
    assert!((state.slice(0, 1..2).item::<f32>().unwrap() - expected).abs() < 1e-5);
}

#[test]
fn a_device_says_what_it_is() {
    let Some((gpu, _alone)) = gpu() else { return };
    let information = gpu.information().unwrap();
    assert!(information.name.is_some_and(|name| name.contains("GPU") || name.contains("NVIDIA")));
    assert!(information.architecture.unwrap().starts_with("sm_"));
    assert!(information.processors > 0 && information.memory.unwrap() > 1 << 20);
    assert!(information.clock.unwrap() > 1e8);
    assert!(information.bandwidth.is_none_or(|bandwidth| bandwidth > 1e10));
}
