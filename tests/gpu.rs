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

/// The first GPU. Memory is the process's: one test at a time.
fn gpu() -> Option<(Device, MutexGuard<'static, ()>)> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    lazuli::cuda_is_available().then(|| (Device::cuda(0), alone))
}

fn numbers(elements: usize) -> Vec<f32> {
    (0..elements).map(|n| (n * 37 % 101) as f32 / 8.0 - 5.0).collect()
}

fn tensor(elements: usize, device: &Device) -> Tensor {
    Tensor::from_vec(numbers(elements), [elements]).to(device)
}

/// What the driver for tests has not been given back: bytes and allocations. Nothing where the driver is a real one.
fn held(device: c_int) -> Option<(usize, usize)> {
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
    let reserved = gpu.memory().unwrap().reserved;
    (0..10_000).for_each(step);
    assert_eq!((held(0), gpu.memory().unwrap().allocated), before);
    assert_eq!(gpu.memory().unwrap().reserved, reserved);
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
    let x = tensor(1 << 18, &gpu);
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
    assert!(gpu.memory().unwrap().reserved >= 4 << 18);
    drop(x);
    gpu.trim_memory().unwrap();
    let memory = gpu.memory().unwrap();
    assert!(memory.reserved < memory.allocated + (4 << 18), "{memory:?}");
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
fn a_tensor_is_used_on_another_stream_when_it_is_there() {
    let Some((gpu, _alone)) = gpu() else { return };
    let [first, second] = [Stream::new(&gpu).unwrap(), Stream::with_priority(&gpu, -1).unwrap()];
    for n in 0..3 {
        // Filled on the device's own stream, summed on one side, and that on another one.
        let x = tensor(70_000, &gpu) + f64::from(n);
        x.eval().unwrap();
        let y = first.scope(|| {
            let y = &x * 2.0;
            y.eval().map(|()| y)
        });
        let y = y.unwrap();
        let sum = second.scope(|| y.reshape([100, 700]).sum(0).to_vec::<f32>()).unwrap();
        let expected = &numbers(70_000).iter().map(|x| (x + n as f32) * 2.0).collect::<Vec<_>>();
        let expected = (0..700).map(|at| (0..100).map(|row| expected[row * 700 + at]).sum::<f32>());
        assert!(sum.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs().max(1.0)));
        // And back, as a transfer, an upload and a copy do.
        let back = second.scope(|| tensor(10, &gpu).to(&Device::cpu()).to(&gpu) * 3.0);
        second.scope(|| back.eval()).unwrap();
        assert_eq!(back.to_vec::<f32>().unwrap()[1], numbers(2)[1] * 3.0);
    }
}

#[test]
fn memory_is_released_after_all_streams_that_use_it() {
    let Some((gpu, _alone)) = gpu() else { return };
    let sides = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
    let before = held(0);
    let x = tensor(5000, &gpu);
    x.eval().unwrap();
    let results = sides.each_ref().map(|side| {
        let y = &x + 1.0;
        side.scope(|| y.eval()).unwrap();
        y
    });
    drop(x);
    // The device's own stream goes on, and with it what is released there.
    assert_eq!((tensor(5000, &gpu) * 2.0).to_vec::<f32>().unwrap().len(), 5000);
    let expected: Vec<f32> = numbers(5000).iter().map(|x| x + 1.0).collect();
    for result in results {
        assert_eq!(result.to_vec::<f32>().unwrap(), expected);
    }
    assert_eq!(held(0), before);
}

#[test]
fn what_another_stream_reads_is_overwritten_later() {
    let Some((gpu, _alone)) = gpu() else { return };
    let side = Stream::new(&gpu).unwrap();
    let mut state = tensor(1 << 20, &gpu);
    state.eval().unwrap();
    let before = side.scope(|| {
        let before = &state * 2.0;
        before.eval().map(|()| before)
    });
    let in_place = stats().in_place;
    state = state * 0.5;
    state.eval().unwrap();
    assert_eq!(stats().in_place, in_place + 1);
    assert_eq!(state.slice(0, ..2).to_vec::<f32>().unwrap()[1], numbers(2)[1] * 0.5);
    let expected: Vec<f32> = numbers(1 << 20).iter().map(|x| x * 2.0).collect();
    assert_eq!(before.unwrap().to_vec::<f32>().unwrap(), expected);
}

#[test]
fn streams_share_no_counters_and_no_notes() {
    let Some((gpu, _alone)) = gpu() else { return };
    let sides = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
    let x = tensor(1 << 18, &gpu);
    x.eval().unwrap();
    // Long sums, whose blocks count who comes last.
    let sums = sides.each_ref().map(|side| {
        side.scope(|| {
            let sum = (&x * 1.0).sum(0);
            sum.eval().map(|()| sum).unwrap()
        })
    });
    let expected = sum_of(&numbers(1 << 18));
    for sum in &sums {
        assert!((sum.item::<f32>().unwrap() - expected).abs() < 1e-3 * expected.abs());
    }
    let at = |index: i64| Tensor::from_vec(vec![index], [1]).to(&gpu);
    let [wrong, right] = [sides[0].scope(|| x.index_select(0, &at(-1))), x.index_select(0, &at(1))];
    sides[0].scope(|| wrong.eval()).unwrap();
    sides[1].scope(|| right.eval()).unwrap();
    assert_eq!(right.item::<f32>().unwrap(), numbers(2)[1]);
    assert!(matches!(wrong.item::<f32>(), Err(Error::IndexOutOfRange { index: -1, .. })));
}

#[test]
fn events_order_and_time_streams() {
    let Some((gpu, _alone)) = gpu() else { return };
    let [first, second] = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
    let start = first.record().unwrap();
    let x = tensor(1000, &gpu).exp();
    first.scope(|| x.eval()).unwrap();
    let end = first.record().unwrap();
    second.wait(&end).unwrap();
    second.synchronize().unwrap();
    assert!(end.is_reached().unwrap() && second.is_idle().unwrap());
    assert!((0.0..10.0).contains(&end.seconds_since(&start).unwrap()));
    // Handles that are dropped are had again, with the priority that was asked for.
    let priority = driver::<unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int>("cuStreamGetPriority");
    for asked in [0, -1, 0, -1, 1] {
        let stream = Stream::with_priority(&gpu, asked).unwrap();
        let mut got = 7;
        // SAFETY: the handle is the stream's, and the number this function's.
        assert_eq!(unsafe { priority(stream.as_raw(), &mut got) }, 0);
        assert_eq!(got, asked.min(0));
    }
    let other = Device::cuda(1);
    if let Ok(elsewhere) = Stream::new(&other) {
        let there = elsewhere.record().unwrap();
        first.wait(&there).unwrap();
        let error = there.seconds_since(&start).unwrap_err().to_string();
        assert!(error.contains("cuda:0") && error.contains("cuda:1"), "{error}");
    }
}

#[test]
fn streams_of_others_may_go_before_the_tensors() {
    let Some((gpu, _alone)) = gpu() else { return };
    let create = driver::<unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int>("cuStreamCreate");
    let destroy = driver::<unsafe extern "C" fn(*mut c_void) -> c_int>("cuStreamDestroy_v2");
    let x = tensor(1000, &gpu);
    x.eval().unwrap();
    let mut raw = std::ptr::null_mut();
    // SAFETY: the device's context is current, since x was computed.
    assert_eq!(unsafe { create(&mut raw, 1) }, 0);
    // SAFETY: the stream is destroyed after the handle is dropped.
    let stream = unsafe { Stream::external(&gpu, raw) }.unwrap();
    let (y, sum) = stream.scope(|| {
        assert_eq!(Stream::current(&gpu).unwrap().as_raw(), raw);
        let (y, sum) = (&x + 1.0, tensor(1 << 18, &gpu).sum(0));
        eval([&y, &sum]).map(|()| (y, sum)).unwrap()
    });
    drop(stream);
    // SAFETY: nobody uses it any more.
    assert_eq!(unsafe { destroy(raw) }, 0);
    drop(x);
    let z = &y * 2.0;
    drop(sum);
    assert_eq!(z.to_vec::<f32>().unwrap()[1], (numbers(2)[1] + 1.0) * 2.0);
}

/// Memory that a program got from the driver itself.
struct Foreign {
    address: u64,
    idle: Option<(Stream, Arc<AtomicBool>)>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some((stream, was_idle)) = &self.idle {
            was_idle.store(stream.is_idle().unwrap(), Ordering::Relaxed);
        }
        let free = driver::<unsafe extern "C" fn(u64) -> c_int>("cuMemFree_v2");
        // SAFETY: allocated by the test, and nobody else's.
        assert_eq!(unsafe { free(self.address) }, 0);
    }
}

#[test]
fn memory_of_others_is_used_in_its_place() {
    let Some((gpu, _alone)) = gpu() else { return };
    let allocate = driver::<unsafe extern "C" fn(*mut u64, usize) -> c_int>("cuMemAlloc_v2");
    let copy = driver::<unsafe extern "C" fn(u64, *const c_void, usize, *mut c_void) -> c_int>(
        "cuMemcpyHtoDAsync_v2",
    );
    let side = Stream::new(&gpu).unwrap();
    tensor(1, &gpu).eval().unwrap(); // the context is current
    let values = numbers(1000);
    let mut address = 0;
    // SAFETY: the address is this function's.
    assert_eq!(unsafe { allocate(&mut address, 4000) }, 0);
    // SAFETY: the memory has so many bytes, and the values are there until the end.
    assert_eq!(unsafe { copy(address, values.as_ptr().cast(), 4000, side.as_raw()) }, 0);
    let was_idle = Arc::new(AtomicBool::new(false));
    let keeper = Foreign { address, idle: Some((side.clone(), was_idle.clone())) };
    // SAFETY: the elements are written in the order of the side, and kept by the keeper.
    let x = side.scope(|| unsafe {
        Tensor::from_raw_parts(address as *const c_void, DType::F32, [1000], &gpu, Arc::new(keeper))
    });
    assert_eq!(x.as_ptr().unwrap() as u64, address);
    let twice = &x * 2.0;
    twice.eval().unwrap();
    let thrice = x.slice(0, 1..).donate() * 3.0;
    side.scope(|| thrice.eval()).unwrap();
    drop(x);
    assert!(was_idle.load(Ordering::Relaxed), "it is given back when the kernels are done");
    assert_eq!(twice.to_vec::<f32>().unwrap(), values.iter().map(|x| x * 2.0).collect::<Vec<_>>());
    assert_eq!(thrice.to_vec::<f32>().unwrap()[0], values[1] * 3.0);
}

#[test]
#[cfg(feature = "dlpack")]
fn dlpack_shares_a_gpus_memory() {
    let Some((gpu, _alone)) = gpu() else { return };
    let before = held(0);
    let side = Stream::new(&gpu).unwrap();
    let x = tensor(1 << 20, &gpu) + 1.0;
    // Made and used by the consumer on the side.
    let shared = side.scope(|| x.to_dlpack()).unwrap();
    let view = shared.validate().unwrap();
    assert_eq!(
        (view.device().device_id, view.shape(), view.data_ptr()),
        (0, &[1 << 20][..], x.as_ptr().unwrap())
    );
    // SAFETY: the memory is x's, and nobody writes to it.
    let y = side.scope(|| unsafe { Tensor::from_dlpack(shared) });
    assert_eq!((y.device().unwrap(), y.as_ptr().unwrap()), (gpu, x.as_ptr().unwrap()));
    let (address, thrice) = (y.as_ptr().unwrap(), y.donate() * 3.0);
    drop(x);
    side.scope(|| thrice.eval()).unwrap();
    assert_ne!(thrice.as_ptr().unwrap(), address);
    // Memory that is released is there for others.
    let others = tensor(1 << 20, &gpu) * 2.0;
    others.eval().unwrap();
    let expected: Vec<f32> = numbers(1 << 20).iter().map(|x| (x + 1.0) * 3.0).collect();
    assert_eq!(thrice.to_vec::<f32>().unwrap(), expected);
    // Columns of a matrix of others are read where they are.
    let matrix = tensor(35, &gpu).reshape([5, 7]);
    let mut transposed = matrix.to_dlpack().unwrap();
    // SAFETY: extents and strides are those of the transposed matrix.
    unsafe {
        let descriptor = &mut (*transposed.as_ptr()).dl_tensor;
        for part in [descriptor.shape, descriptor.strides] {
            std::ptr::swap(part, part.add(1));
        }
        *transposed.flags_mut() = dlpark::DlpackFlags::empty();
    }
    // SAFETY: the memory is the matrix's, and nobody writes to it.
    let transposed = unsafe { Tensor::from_dlpack(transposed) };
    assert_eq!(transposed.to_vec::<f32>().unwrap(), matrix.t().to_vec::<f32>().unwrap());
    drop((transposed, matrix, thrice, others));
    assert_eq!(held(0), before);
}

/// What the calls of a compiled function are that a GPU gets as one graph: none if the user wants none.
fn replays(calls: u64) -> u64 {
    let is_off = std::env::var("LAZULI_CUDA_GRAPHS").is_ok_and(|value| value == "off");
    if is_off { 0 } else { calls }
}

/// Two branches, of which either may go first, and a sum of each that the other one needs.
fn branches([x, y]: [Tensor; 2]) -> [Tensor; 3] {
    let (a, b) = (x * 2.0, y + 1.0);
    let (first, second) = (&a * b.sum(0), &b * a.sum(0));
    let both = &first - &second;
    [first, second, both]
}

#[test]
fn a_compiled_functions_calls_are_one_graph() {
    let Some((gpu, _alone)) = gpu() else { return };
    let before = held(0);
    let of = |device: &Device, n: usize| {
        [tensor(5000, device) + n as f64, tensor(5000, device) * (1.0 + n as f64)]
    };
    let bits = |tensors: &[Tensor]| -> Vec<Vec<u32>> {
        let of = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
        tensors.iter().map(of).collect()
    };
    with_fusion(Fusion::Off, || {
        let f = compile(branches);
        let expected: Vec<_> = (0..8).map(|n| bits(&branches(of(&gpu, n)))).collect();
        let inputs: Vec<[Tensor; 2]> = (0..8).map(|n| of(&gpu, n)).collect();
        inputs.iter().for_each(|inputs| eval(inputs).unwrap());
        let start = stats();
        // In memory of their own each, and looked at when all have been started.
        let results: Vec<[Tensor; 3]> = inputs.iter().map(|[x, y]| f.call([x, y]).unwrap()).collect();
        assert_eq!(stats().graph_replays - start.graph_replays, replays(6));
        let launches = stats().launches - start.launches;
        assert_eq!(launches % 8, 0, "a call launches the same, as a graph or not: {launches}");
        assert!(launches >= 8 * 5);
        for (results, expected) in results.iter().zip(&expected) {
            assert!(bits(results) == *expected);
        }
        drop(results);
        // Inputs and results that go at once, and memory that is had again.
        let [mut x, mut y] = of(&gpu, 0);
        let mut into = f.call([&x, &y]).unwrap();
        for (n, expected) in expected.iter().enumerate() {
            [x, y] = of(&gpu, n);
            into = f.call_into([x, y], into).unwrap();
            assert!(bits(&into) == *expected);
        }
        // On streams by turns, each after what it reads.
        let sides = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
        let of_sides: Vec<[Tensor; 3]> = (0..8)
            .map(|n| {
                let inputs = of(&gpu, n);
                eval(&inputs).unwrap();
                sides[n % 2].scope(|| f.call(inputs.each_ref()).unwrap())
            })
            .collect();
        for (results, expected) in of_sides.iter().zip(&expected) {
            assert!(bits(results) == *expected);
        }
    });
    let usage = gpu.memory().unwrap().allocated;
    drop(tensor(1, &gpu).to_vec::<f32>().unwrap());
    assert_eq!(gpu.memory().unwrap().allocated, usage);
    assert_eq!(held(0), before);
}

#[test]
fn a_graphs_state_stays_in_its_memory() {
    let Some((gpu, _alone)) = gpu() else { return };
    let step = |state: Tensor, x: &Tensor| {
        let mut scale = x.square().mean(0);
        for _ in 0..3 {
            scale = (x - &scale).square().mean(0).sqrt();
        }
        (state * 0.5 + x * &scale, scale)
    };
    let f = compile(move |(state, x): (Tensor, Tensor)| step(state, &x));
    let x = tensor(1 << 18, &gpu);
    let (mut state, mut expected) = (&x * 3.0, &x * 3.0);
    [&x, &state, &expected].iter().for_each(|tensor| tensor.eval().unwrap()); // each in memory of its own
    let start = stats();
    for n in 0..6 {
        let (scale, expected_scale);
        (state, scale) = f.call((state, &x)).unwrap();
        assert_eq!(stats().in_place - start.in_place, 2 * n + 1);
        (expected, expected_scale) = step(expected, &x);
        eval([&expected, &expected_scale]).unwrap();
        assert_eq!(scale.item::<f32>().unwrap(), expected_scale.item::<f32>().unwrap());
    }
    assert_eq!(stats().graph_replays - start.graph_replays, replays(4));
    assert!(state.to_vec::<f32>().unwrap() == expected.to_vec::<f32>().unwrap());
}

#[test]
fn a_wrong_index_in_a_graph_is_an_error_of_that_call() {
    let Some((gpu, _alone)) = gpu() else { return };
    let f = compile(|(x, at, rows): (Tensor, Tensor, Tensor)| {
        let taken = x.index_select(0, &at) * 2.0;
        let sum = taken.sum(0);
        let other = x.index_select(0, &rows).exp();
        let apart = &x - x.mean(0);
        (&taken * &sum, &other + other.sum(0), apart)
    });
    let at = |index: i64| Tensor::from_vec(vec![1i64, index], [2]).to(&gpu);
    let x = tensor(10, &gpu);
    eval([&x]).unwrap();
    with_fusion(Fusion::Off, || {
        let call = |first: i64, second: i64| f.call((&x, at(first), at(second))).unwrap();
        let start = stats().graph_replays;
        let results: Vec<_> = [(2, 3), (4, 5), (10, 3), (2, -1), (6, 7)].map(|(a, b)| call(a, b)).into();
        assert_eq!(stats().graph_replays - start, replays(3));
        let index = |tensor: &Tensor| match tensor.to_vec::<f32>() {
            Ok(_) => None,
            Err(Error::IndexOutOfRange { index, .. }) => Some(index),
            Err(other) => panic!("{other}"),
        };
        let indices: Vec<_> = results.iter().map(|(a, b, c)| [index(a), index(b), index(c)]).collect();
        let none = [None; 3];
        assert_eq!(indices, [none, none, [Some(10), None, None], [None, Some(-1), None], none]);
        // More than the device has room to note.
        for n in 0..300 {
            let (taken, ..) = call(n % 10, 0);
            assert!(n % 50 != 0 || index(&taken).is_none());
        }
        assert_eq!(index(&call(0, 77).1), Some(77));
    });
}

#[test]
fn copies_to_and_from_the_host_are_not_waited_for() {
    let Some((gpu, _alone)) = gpu() else { return };
    let marker = Stream::current(&gpu).unwrap();
    let before = stats();
    let x = tensor(1000, &Device::cpu()).pin().unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), numbers(1000));
    tensor(1, &gpu).to_vec::<f32>().unwrap(); // the device is idle
    let is_lazy = held(0).is_some(); // the driver for tests does nothing before somebody waits, as this does
    marker.synchronize().unwrap();
    let uploads: Vec<Tensor> = (0..5).map(|_| x.to(&gpu)).collect();
    eval(&uploads).unwrap();
    drop(x);
    let downloads: Vec<_> = (0..5).map(|n| (&uploads[n] * n as f64).download().unwrap()).collect();
    drop(uploads);
    if is_lazy {
        assert!(!marker.is_idle().unwrap() && !downloads[0].is_ready().unwrap());
    }
    for (n, download) in downloads.into_iter().enumerate() {
        if n == 3 {
            continue; // nobody waits for it
        }
        let y = download.wait().unwrap();
        assert_eq!(y.device().unwrap(), Device::cpu());
        // Used as any other tensor.
        let expected: Vec<f32> = numbers(1000).iter().map(|x| x * n as f32 + 1.0).collect();
        assert_eq!((y + 1.0).to_vec::<f32>().unwrap(), expected);
    }
    let after = stats();
    assert_eq!(after.bytes_uploaded - before.bytes_uploaded, 4 + 5 * 4000);
    assert_eq!(after.bytes_downloaded - before.bytes_downloaded, 4 + 4 * 4000);
    let at = Tensor::from_vec(vec![10i64], [1]).to(&gpu);
    let wrong = tensor(10, &gpu).index_select(0, &at).download().unwrap();
    assert!(matches!(wrong.wait(), Err(Error::IndexOutOfRange { index: 10, .. })));
}

#[test]
fn one_element_is_read_by_a_copy_of_one() {
    let Some((gpu, _alone)) = gpu() else { return };
    let x = tensor(1 << 18, &gpu);
    x.eval().unwrap();
    let before = stats().bytes_downloaded;
    assert_eq!(x.slice(0, 7..8).item::<f32>().unwrap(), numbers(8)[7]);
    assert_eq!(stats().bytes_downloaded - before, 4);
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
