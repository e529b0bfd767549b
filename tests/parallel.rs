//! Several devices at once: default devices, copies among them, and work that is divided. All of it over the CPU under several
//! names; `tests/gpu/parallel.rs` has what only devices that run ahead show.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lazuli::{DType, Device, Tensor, compile, eval, parallel};

/// The counters are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cpus(many: usize) -> Vec<Device> {
    (0..many).map(Device::cpu_virtual).collect()
}

fn rows(many: usize) -> Tensor {
    let elements = (0..many * 3).map(|n| (n * 37 % 101) as f32 / 8.0 - 5.0).collect();
    Tensor::from_vec(elements, [many, 3])
}

fn bits(x: &Tensor) -> Vec<u32> {
    x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_divided_batch_gives_what_one_device_gives() {
    let _alone = alone();
    let weights = (rows(3), Tensor::from([0.5f32, -1.0, 2.0]));
    // Nothing that an interpreter rounds differently.
    let layer = |x: &Tensor, (w, b): &(Tensor, Tensor)| {
        let y = x.matmul(w) + b;
        &y / (y.abs().max_keepdim(1) + 1.0)
    };
    let compiled = compile(move |(x, weights): (Tensor, (Tensor, Tensor))| layer(&x, &weights));
    let mut mixed = cpus(2);
    mixed.insert(1, Device::cpu_interpreted());
    for devices in [cpus(1), cpus(2), cpus(3), mixed] {
        let on_each = parallel::replicate(&weights, &devices).unwrap();
        for many in [0, 1, 2, 5, 7] {
            let x = rows(many);
            let expected = layer(&x, &weights);
            let mut called = Vec::new();
            let recorded = |number: usize, x: Tensor| {
                assert_eq!(x.device().unwrap(), devices[number]);
                assert_eq!(Device::default(), devices[number]);
                called.push(number);
                layer(&x, &on_each[number])
            };
            let result = parallel::data_parallel(recorded, &x, &devices, 0).unwrap();
            // Who has no rows is not asked.
            assert_eq!(called, (0..many.clamp(1, devices.len())).collect::<Vec<_>>());
            assert_eq!((result.device().unwrap(), result.is_evaluated()), (devices[0], true));
            assert_eq!(bits(&result), bits(&expected), "{many} rows on {devices:?}");
            let call = |number: usize, x: Tensor| compiled.call((&x, &on_each[number]));
            let result = parallel::data_parallel(call, &x, &devices, -2).unwrap();
            assert_eq!(bits(&result), bits(&expected), "{many} rows on {devices:?}, compiled");
        }
    }
    assert_eq!(Device::default(), Device::cpu());
}

#[test]
fn what_has_no_dimensions_goes_to_all_and_comes_back_as_a_vector() {
    let _alone = alone();
    let devices = cpus(3);
    let inputs = (rows(4).t(), Some(Tensor::from([10i64, 20, 30, 40]).reshape([1, 4])), Tensor::scalar(2.0));
    let f = |_: usize, (x, labels, scale): (Tensor, Option<Tensor>, Tensor)| {
        assert_eq!(scale.device().unwrap(), x.device().unwrap());
        vec![(&x * scale), labels.unwrap(), x.sum(..)]
    };
    let results = parallel::data_parallel(f, &inputs, &devices, 1).unwrap();
    assert_eq!(bits(&results[0]), bits(&(rows(4).t() * 2.0)));
    assert_eq!(results[1].to_vec::<i64>().unwrap(), [10, 20, 30, 40]);
    let sums = [rows(4).slice(0, ..2), rows(4).slice(0, 2..3), rows(4).slice(0, 3..)];
    let sums: Vec<f32> = sums.iter().map(|part| part.sum(..).item().unwrap()).collect();
    assert_eq!(results[2].to_vec::<f32>().unwrap(), sums);
}

#[test]
fn sums_over_devices_have_one_order() {
    let _alone = alone();
    let devices = cpus(4);
    let values = [1e8f32, 3.0, -1e8, 0.5];
    let parts: Vec<[Tensor; 1]> = (values.iter().zip(&devices))
        .map(|(&value, device)| [Tensor::from([value, f32::NAN, -0.0]).to(device)])
        .collect();
    let expected = ((values[0] + values[1]) + values[2]) + values[3];
    let totals = parallel::all_reduce(&parts, &devices).unwrap();
    for ([total], device) in totals.iter().zip(&devices) {
        assert_eq!(total.device().unwrap(), *device);
        let total = total.to_vec::<f32>().unwrap();
        assert!(total[1].is_nan() && total[2].to_bits() == (-0.0f32).to_bits());
        assert_eq!(total[0], expected);
    }
    let one = parallel::reduce_add(&parts[2..], &devices[1]).unwrap();
    assert_eq!(one[0].to_vec::<f32>().unwrap()[0], values[2] + values[3]);
}

#[test]
fn data_and_constants_are_on_the_default_device_of_their_thread() {
    let _alone = alone();
    let other = Device::cpu_virtual(1);
    let here = Tensor::from([1.0f32, 2.0]);
    other.scope(|| {
        let data = [
            Tensor::from([1.0f32, 2.0]),
            Tensor::from_vec(vec![1.0f32, 2.0], [2]),
            Tensor::from_bytes(&[0; 8], DType::F32, [2]),
        ];
        for x in &data {
            assert_eq!(x.device().unwrap(), other);
            assert!((x + &here).eval().unwrap_err().to_string().contains("cpu:1 and cpu"));
        }
        let random = Tensor::rand([2], 1);
        assert_eq!(random.device().unwrap(), other);
        // What is made beside constants, too.
        let transformed = Tensor::ones([9], DType::F32).rfft(-1).1;
        assert_eq!(transformed.device().unwrap(), other);
        (transformed + &data[0].select(0, 0)).eval().unwrap();
        random.eval().unwrap();
        // It goes with everything, evaluated or not.
        assert_eq!((&random + &here).device().unwrap(), Device::cpu());
        (&random + &here).eval().unwrap();
        (&random + &data[0]).eval().unwrap();
        assert_eq!(std::thread::spawn(Device::default).join().unwrap(), Device::cpu());
        Device::interpreter().scope(|| assert_eq!(Device::default(), Device::interpreter()));
        assert_eq!(Device::default(), other);
        let caught = std::panic::catch_unwind(|| {
            Device::interpreter().scope(|| std::panic::resume_unwind(Box::new(())))
        });
        assert!(caught.is_err());
        assert_eq!(Device::default(), other);
    });
    assert_eq!(Device::default(), Device::cpu());
    // A function that makes its data itself makes it anew elsewhere.
    let table = compile(|rows: Vec<Tensor>| (Tensor::from([3.0f32, 4.0]), rows.len()));
    assert_eq!(table.call(Vec::<Tensor>::new()).unwrap().0.device().unwrap(), Device::cpu());
    let there = other.scope(|| table.call(Vec::<Tensor>::new())).unwrap().0;
    assert_eq!((there.device().unwrap(), there.to_vec::<f32>().unwrap()), (other, vec![3.0, 4.0]));
}

#[test]
fn what_goes_back_and_forth_is_computed_in_order_and_once() {
    let _alone = alone();
    let devices = cpus(3);
    let x = rows(2);
    let a = (&x + 1.0).to(&devices[1]);
    let b = (&a * 2.0).to(&devices[2]);
    let c = (&a * 3.0).to(&devices[2]);
    let d = (&b + &c).to(&devices[0]);
    let e = &d + &x;
    let before = lazuli::stats().evaluations;
    eval([&e, &b]).unwrap();
    // `x + 1`; both products, which one device computes together; the sum there; the sum here.
    assert_eq!(lazuli::stats().evaluations - before, 4);
    let expected: Vec<f32> =
        x.to_vec::<f32>().unwrap().iter().map(|x| ((x + 1.0) * 2.0 + (x + 1.0) * 3.0) + x).collect();
    assert_eq!(e.to_vec::<f32>().unwrap(), expected);
    // Devices that share memory do not write over each other's.
    let large = Tensor::rand([1 << 19], 1);
    large.eval().unwrap();
    let there = large.to(&devices[1]);
    there.eval().unwrap();
    let first = large.to_vec::<f32>().unwrap()[0];
    let moved = there.donate() + 1.0;
    moved.eval().unwrap();
    assert_eq!(large.to_vec::<f32>().unwrap()[0], first);
}

#[test]
fn what_does_not_fit_is_an_error_at_the_users_line() {
    let _alone = alone();
    let devices = cpus(2);
    let x = rows(4);
    let error = |result: lazuli::Result<()>| result.unwrap_err().to_string();
    let identity = |_: usize, x: Tensor| x;
    let errors = [
        (error(parallel::scatter(&x, &[], 0).map(drop)), "scatter: there are no devices"),
        (
            error(parallel::scatter(&x, &devices, 2).map(drop)),
            "scatter: axis 2 is out of range for shape [4, 3]",
        ),
        (
            error(parallel::scatter(&(x.clone(), rows(5)), &devices, 0).map(drop)),
            "scatter: a tensor has 5 positions along axis 0, and another one 4",
        ),
        (
            error(parallel::scatter(&Tensor::scalar(1.0), &devices, 0).map(drop)),
            "scatter: no tensor has dimensions",
        ),
        (error(parallel::gather::<Tensor>(&[], &devices[0], 0).map(drop)), "gather: there are no parts"),
        (
            error(parallel::gather(&[vec![x.clone()], vec![]], &devices[0], 0).map(drop)),
            "gather: the parts are not of one structure",
        ),
        (error(parallel::gather(&[x.clone(), x.t()], &devices[0], 0).map(drop)), "gather: "),
        (
            error(parallel::reduce_add(&[x.clone(), rows(1)], &devices[0]).map(drop)),
            "reduce_add: parts are f32 [4, 3] and f32 [1, 3]",
        ),
        (
            error(parallel::all_reduce(std::slice::from_ref(&x), &[]).map(drop)),
            "all_reduce: there are no devices",
        ),
        (
            error(parallel::parallel_apply(identity, vec![x.clone()], &devices).map(drop)),
            "parallel_apply: 1 parts are given for 2 devices",
        ),
        (
            error(parallel::data_parallel(identity, &x, &[], 0).map(drop)),
            "data_parallel: there are no devices",
        ),
        (error(parallel::data_parallel(|_, part: Tensor| part + &x, &x, &devices, 0).map(drop)), "add: "),
        (error(parallel::replicate(&x.reshape([7]), &devices).map(drop)), "reshape: "),
    ];
    for (error, expected) in &errors {
        assert!(error.starts_with(expected) && error.contains("tests/parallel.rs:"), "{error}");
    }
    let mixed = (x.to(&devices[1]) + &x).eval().unwrap_err().to_string();
    assert!(mixed.starts_with("add: operands are on cpu:1 and cpu; move one"), "{mixed}");
}
