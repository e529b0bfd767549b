//! Compiled functions: the same results as without, recorded once for inputs of one kind, and errors that say what does not
//! fit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lazuli::{
    Compiled, DType, Device, Error, Executable, Fusion, Leaves, Result, Target, Tensor, Tensors, compile,
    stats, with_fusion,
};

/// The counters are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::cpu(), Device::interpreter(), Device::cpu_interpreted()];
    devices.extend(cfg!(feature = "emulate").then(Device::cuda_emulated));
    devices.push(Device::cuda_interpreted());
    devices.extend(lazuli::cuda_is_available().then(|| Device::cuda(0)));
    devices
}

/// Several kernels, temporary values, several results of different dtypes, one of them twice, an input, and a constant.
fn several((x, [w, number]): (Tensor, [Tensor; 2])) -> (Vec<Tensor>, Option<Tensor>) {
    let rows = x.softmax(1).matmul(&w);
    let large = rows.gt(&number);
    let columns = rows.sum(0).exp();
    let both = (&rows * &columns).max(1);
    (vec![rows.clone(), large, both, rows, w], Some(Tensor::ones([3], DType::I32)))
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.cast(DType::F32).to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// By a library where that makes them without as well.
#[test]
fn transforms_have_the_same_bits() {
    let _alone = alone();
    let filtered = |(x, filter): (Tensor, Tensor)| {
        let (re, im) = x.rfft(-1);
        (re * &filter).irfft(im * &filter, 100, -1)
    };
    let (x, filter) = (Tensor::rand([3, 100], 1), Tensor::rand([51], 2));
    let expected = filtered((x.clone(), filter.clone()));
    assert_eq!(bits(&compile(filtered).call((x, filter)).unwrap()), bits(&expected));
}

#[test]
fn results_are_those_of_the_same_operations_without() {
    let _alone = alone();
    for device in devices() {
        let f = compile(several);
        // The second time with other values.
        for seed in [1, 2] {
            let x = Tensor::rand([5, 8], seed).to(&device);
            let w = (Tensor::rand([8, 6], seed + 10) - 0.5).to(&device);
            let (expected, one) =
                several((x.clone(), [w.clone(), Tensor::scalar(0.1 * seed as f64).to(&device)]));
            let (results, ones) = f.call((&x, [w, Tensor::scalar(0.1 * seed as f64).to(&device)])).unwrap();
            assert_eq!(results.len(), expected.len());
            for (result, expected) in results.iter().zip(&expected) {
                assert!(result.is_evaluated());
                assert_eq!(result.device().unwrap(), device);
                assert_eq!(result.dtype().unwrap(), expected.dtype().unwrap());
                assert_eq!(result.shape().unwrap(), expected.shape().unwrap());
                assert_eq!(bits(result), bits(expected), "{device}");
            }
            assert_eq!(ones.unwrap().to_vec::<i32>().unwrap(), one.unwrap().to_vec::<i32>().unwrap());
        }
    }
}

/// A function, and how often it was recorded.
fn counted<I: Tensors + 'static, O: Tensors + 'static>(
    f: impl Fn(I) -> O + Send + Sync + 'static,
) -> (Compiled<I, O>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let own = count.clone();
    let counting = move |inputs: I| {
        own.fetch_add(1, Ordering::Relaxed);
        f(inputs)
    };
    (compile(counting), count)
}

#[test]
fn a_function_is_recorded_once_for_inputs_of_one_kind() {
    let (f, count) = counted(|(x, y): (Vec<Tensor>, Vec<Tensor>)| {
        let sum = |list: &[Tensor]| list.iter().fold(Tensor::scalar(0.0f32), |sum, x| sum + x);
        sum(&x) - sum(&y)
    });
    let device = Device::cpu_interpreted();
    let tensor = |value: f32| Tensor::full([2], value, DType::F32).to(&device);
    let value = |y: Tensor| y.to_vec::<f32>().unwrap()[0];
    let call = |x: &[f32], y: &[f32]| {
        let list = |values: &[f32]| values.iter().map(|&value| tensor(value)).collect::<Vec<_>>();
        value(f.call((list(x), &list(y))).unwrap())
    };
    assert_eq!((call(&[1.0], &[2.0, 3.0]), call(&[5.0], &[1.0, 1.0])), (-4.0, 3.0));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // As many tensors, in other lists.
    assert_eq!((call(&[1.0, 2.0], &[3.0]), count.load(Ordering::Relaxed)), (0.0, 2));
    let of = |x: Tensor, y: Tensor| value(f.call((vec![x, y], Vec::<Tensor>::new())).unwrap());
    let ones = |shape: [usize; 1], dtype| Tensor::ones(shape, dtype).to(&device);
    assert_eq!(of(ones([2], DType::F32), ones([2], DType::F32)), 2.0);
    let before = count.load(Ordering::Relaxed);
    of(ones([3], DType::F32), ones([3], DType::F32)); // a shape
    of(ones([2], DType::I32), ones([2], DType::F32)); // a dtype
    of(ones([2], DType::F32).to(&Device::interpreter()), ones([2], DType::F32).to(&Device::interpreter())); // a device
    with_fusion(Fusion::Off, || of(ones([2], DType::F32), ones([2], DType::F32)));
    assert_eq!(count.load(Ordering::Relaxed), before + 4);
    of(ones([2], DType::F32), ones([2], DType::F32));
    assert_eq!(count.load(Ordering::Relaxed), before + 4);
}

#[test]
fn what_is_no_tensor_is_part_of_the_function() {
    let (f, count) = counted(|(x, (power, negative, name)): (Tensor, (usize, bool, String))| {
        let y = x.pow(power as f32) + name.len() as f32;
        if negative { -y } else { y }
    });
    let x = Tensor::from([2.0f32]).to(&Device::cpu_interpreted());
    let call = |power: usize, negative: bool, name: &str| {
        f.call((&x, (power, negative, name.to_string()))).unwrap().to_vec::<f32>().unwrap()[0]
    };
    assert_eq!((call(3, false, ""), call(3, false, "")), (8.0, 8.0));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert_eq!((call(2, false, ""), call(2, true, ""), call(2, true, "é!")), (4.0, -4.0, -7.0));
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

#[test]
fn numbers_are_inputs() {
    for device in [Device::cpu(), Device::cuda_interpreted()] {
        let (f, count) = counted(|(x, a, b): (Tensor, Tensor, Tensor)| x * a + b);
        let x = Tensor::from([1.0f32, 2.0]).to(&device);
        let _ = f.call((&x, 0.5, 1)).unwrap();
        for (a, b) in [(2.0, 3), (0.0, 0), (f64::NAN, -1), (-0.0, 0)] {
            let y = f.call((&x, a, b)).unwrap();
            let expected = &x * a + b;
            assert_eq!((y.dtype().unwrap(), bits(&y)), (DType::F32, bits(&expected)), "{a} {b}");
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn inputs_that_are_given_away_are_written_over_and_others_are_not() {
    let _alone = alone();
    for device in [Device::cpu()].into_iter().chain(cfg!(feature = "emulate").then(Device::cuda_emulated)) {
        let f = compile(|(x, y): (Tensor, Tensor)| x * 2.0 + y);
        let large = |value: f32| {
            let x = Tensor::full([1 << 18], value, DType::F32).to(&device);
            x.eval().unwrap();
            x
        };
        let in_place = |x: Tensor, y: Tensor, borrowed: &[&Tensor]| {
            let before = stats().in_place;
            let first = borrowed.first().map_or(0.0, |x| x.select(0, 0).item::<f32>().unwrap());
            let result = f.call((x, y)).unwrap().select(0, 7).item::<f32>().unwrap();
            let same = borrowed.first().is_none_or(|x| x.select(0, 0).item::<f32>().unwrap() == first);
            assert!(same, "{device}: a tensor with a handle has changed");
            (result, stats().in_place - before)
        };
        assert_eq!(in_place(large(1.0), large(2.0), &[]), (4.0, 1), "{device}");
        let held = large(3.0);
        assert_eq!(in_place(held.clone(), large(1.0), &[&held]), (7.0, 1));
        assert_eq!(in_place(held.clone(), held.clone(), &[&held]), (9.0, 0));
        // One handle moved in, another one as the other argument.
        let twice = large(1.0);
        assert_eq!(in_place(twice.clone(), twice, &[]), (3.0, 0));
        // Shared memory, by another tensor.
        let one = large(1.0);
        let same = one.to(&Device::interpreter());
        same.eval().unwrap();
        assert_eq!(in_place(one, held.clone(), &[&same]), (5.0, 0));
        // Small ones must be given up in words.
        let small = || {
            let x = Tensor::full([9], 1.0, DType::F32).to(&device);
            x.eval().unwrap();
            x
        };
        assert_eq!(in_place(small(), small(), &[]), (3.0, 0));
        assert_eq!(in_place(small().donate(), small(), &[]), (3.0, 1));
    }
}

#[test]
fn threads_share_a_function() {
    let f = compile(|x: Tensor| (x.softmax(1).matmul(&x.t()), x.sum(0)));
    let expected: Vec<Vec<u32>> =
        (0..4).map(|seed| bits(&f.call(Tensor::rand([6, 5], seed)).unwrap().0)).collect();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (f, expected) = (&f, &expected[seed as usize]);
            scope.spawn(move || {
                for _ in 0..50 {
                    let (product, sums) = f.call(Tensor::rand([6, 5], seed)).unwrap();
                    assert_eq!(&bits(&product), expected);
                    assert_eq!(sums.shape().unwrap().to_vec(), [5]);
                }
            });
        }
    });
}

#[test]
fn tensors_from_outside_keep_the_values_that_they_had() {
    let device = Device::cpu_interpreted();
    let evaluated = Tensor::from([1.0f32, 2.0]).to(&device);
    let recorded = Tensor::arange(0.0f32, 2.0, 1.0) * 10.0;
    let elsewhere = (Tensor::from([100.0f32, 200.0]).to(&Device::interpreter()) * 2.0).to(&device);
    let f = compile(move |x: Tensor| x + &evaluated + &recorded + &elsewhere);
    for _ in 0..2 {
        let y = f.call(Tensor::from([0.5f32, 0.5]).to(&device)).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [201.5, 412.5]);
    }
    // Nothing but what is captured.
    let constant = compile(|()| Tensor::arange(0i32, 3, 1) + 1);
    assert_eq!(constant.call(()).unwrap().to_vec::<i32>().unwrap(), [1, 2, 3]);
}

#[test]
fn constants_that_were_computed_on_another_device_are_inputs_too() {
    for device in devices() {
        let ones = Tensor::ones([3], DType::F32) * 2.0;
        ones.eval().unwrap();
        let x = Tensor::from([1.0f32, 2.0, 3.0]).to(&device);
        let f = compile(|(x, y): (Tensor, Tensor)| x * y);
        assert_eq!(f.call((&x, &ones)).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
        assert_eq!((&x * &ones).to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0], "{device}");
    }
}

fn message<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("it succeeds"),
        Err(error) => {
            let here = error.location().expect("an error without a line");
            assert!(here.file.ends_with("compiled.rs"), "{here}");
            error.to_string()
        }
    }
}

#[test]
fn an_executable_says_what_does_not_fit() {
    let device = Device::cpu_interpreted();
    let f = compile(|x: Vec<Tensor>| x[0].relu());
    let made: Executable<Vec<Tensor>, Tensor> =
        f.executable(vec![Tensor::zeros([2, 3], DType::F32).to(&device)]).unwrap();
    let call = |x: Vec<Tensor>| made.call(x);
    let with = |shape: [usize; 2], dtype, device: Device| vec![Tensor::ones(shape, dtype).to(&device)];
    assert_eq!(call(with([2, 3], DType::F32, device)).unwrap().to_vec::<f32>().unwrap(), [1.0; 6]);
    let shape = message(call(with([2, 4], DType::F32, device)));
    assert!(
        shape.starts_with(
            "call: input 0 is f32 [2, 4] on cpu (interpreted), and was f32 [2, 3] on cpu (interpreted) when"
        ),
        "{shape}"
    );
    assert!(shape.contains("(compile, at tests/compiled.rs:"), "{shape}");
    assert!(message(call(with([2, 3], DType::F64, device))).contains("input 0 is f64 [2, 3]"));
    assert!(message(call(with([2, 3], DType::F32, Device::cpu()))).contains("on cpu, and was"));
    let two = [with([2, 3], DType::F32, device), with([2, 3], DType::F32, device)].concat();
    assert!(message(call(two)).contains("2 tensors are given, and 1 were"));
    let invalid = Tensor::ones([2], DType::F32).reshape([7]);
    assert!(message(call(vec![invalid.clone()])).starts_with("reshape: "));
    assert!(message(f.call(vec![invalid])).starts_with("reshape: "));
    assert_eq!(made.explain().unwrap().kernels(), 1);
    assert_eq!(made.device(), device);
    assert!(made.compile_for(&Target::cuda("sm_90")).unwrap().source().contains("relu_f32"));
    assert_eq!(
        format!("{made:?}"),
        "Executable((f32 [2, 3] on cpu (interpreted)) -> (f32 [2, 3] on cpu (interpreted)))"
    );
    let into = made.call_into(with([2, 3], DType::F32, device), Tensor::zeros([1], DType::F32));
    assert_eq!(into.unwrap().to_vec::<f32>().unwrap(), [1.0; 6]);
    let lists = compile(|x: Tensor| vec![x]);
    let x = Tensor::ones([2], DType::F32).to(&device);
    assert!(message(lists.call_into(&x, vec![&x, &x])).contains("has 1 results, and memory is given for 2"));
}

#[test]
fn a_function_that_cannot_be_recorded_says_why() {
    let device = Device::cpu_interpreted();
    let x = Tensor::from([[1.0f32, 2.0]]).to(&device);
    let shapes = compile(|x: Tensor| x.matmul(&x));
    assert!(message(shapes.call(&x)).starts_with("matmul: "));
    assert!(shapes.call(Tensor::ones([2, 2], DType::F32).to(&device)).is_ok());
    let evaluates = compile(|x: Tensor| {
        let sum = x.sum(0).to_vec::<f32>()?;
        Ok(x * sum[0])
    });
    assert!(message(evaluates.call(&x)).contains("nothing can be evaluated"));
    let moves = compile(|x: Tensor| x.to(&Device::cpu()) + 1.0);
    assert!(message(moves.call(&x)).contains("nothing moved to another device"));
    let own = compile(|x: Tensor| if x.shape()?.rank() == 1 { Ok(x) } else { x.item::<f32>().map(|_| x) });
    assert!(message(own.call(&x)).starts_with("item: "));
    let apart = compile(|x: Tensor| (x, Tensor::from([1.0f32]).to(&Device::interpreter())));
    assert!(message(apart.call(&x)).contains("results on cpu (interpreted) and on interpreter"));
    // A stand-in that has got out has no values either.
    let out: Arc<Mutex<Option<Tensor>>> = Arc::default();
    let kept = out.clone();
    let leaks = compile(move |x: Tensor| {
        *kept.lock().unwrap() = Some(x.exp());
        x
    });
    let _ = leaks.call(&x).unwrap();
    let leaked = out.lock().unwrap().take().unwrap();
    assert!(message(leaked.eval()).contains("used where it has no values"));
}

#[test]
fn an_index_that_is_out_of_range_is_the_calls_error() {
    let f = compile(|(x, index): (Tensor, Tensor)| x.index_select(0, &index));
    let x = Tensor::from([1.0f32, 2.0, 3.0]).to(&Device::cpu_interpreted());
    let index = |n: i64| Tensor::from([n]).to(&Device::cpu_interpreted());
    assert_eq!(f.call((&x, index(2))).unwrap().to_vec::<f32>().unwrap(), [3.0]);
    assert!(matches!(f.call((&x, index(7))), Err(Error::IndexOutOfRange { index: 7, .. })));
    assert_eq!(f.call((&x, index(0))).unwrap().to_vec::<f32>().unwrap(), [1.0]);
}

#[test]
fn a_value_that_reads_other_leaves_than_it_writes_is_an_error() {
    struct Uneven(Tensor);
    impl Tensors for Uneven {
        fn to_leaves(&self, leaves: &mut Leaves) {
            [self.0.clone(), self.0.clone()].to_leaves(leaves);
        }
        fn from_leaves(leaves: &mut Leaves) -> Uneven {
            Uneven(Tensors::from_leaves(leaves))
        }
    }
    let f = compile(|x: Uneven| x.0);
    let error = f.call(&Uneven(Tensor::from([1.0f32]))).unwrap_err();
    assert!(error.to_string().starts_with("from_leaves: asks for other leaves"), "{error}");
}

#[test]
fn nothing_is_computed_where_results_are_empty() {
    let f = compile(|x: Tensor| (x.relu(), x.sum(0)));
    let (empty, sums) = f.call(Tensor::zeros([0, 3], DType::F32).to(&Device::cpu())).unwrap();
    assert_eq!((empty.to_vec::<f32>().unwrap().len(), sums.to_vec::<f32>().unwrap()), (0, vec![0.0; 3]));
}
