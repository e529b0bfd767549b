//! Results take the memory of inputs that nobody can ask for any more, and of no others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use lazuli::{DType, Device, Error, Fusion, Target, Tensor, eval, stats, with_fusion};

/// The counters are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::cpu()];
    devices.extend(cfg!(feature = "emulate").then(Device::cuda_emulated));
    devices.extend(lazuli::cuda_is_available().then(|| Device::cuda(0)));
    devices
}

/// Small whole numbers, so that every order of adding is exact.
fn numbers(elements: usize) -> Vec<f32> {
    (0..elements).map(|n| (n * 37 % 101) as f32 - 50.0).collect()
}

/// Evaluated on the device, with one owner.
fn input(elements: usize, device: &Device) -> Tensor {
    let x = Tensor::from_vec(numbers(elements), [elements]).to(device);
    x.eval().unwrap();
    x
}

fn square(side: usize, device: &Device) -> Tensor {
    let x = Tensor::from_vec(numbers(side * side), [side, side]).to(device);
    x.eval().unwrap();
    x
}

/// Evaluates, and says how many results were written over inputs.
#[track_caller]
fn in_place(tensors: &[&Tensor]) -> u64 {
    let before = stats().in_place;
    eval(tensors.iter().copied()).unwrap();
    stats().in_place - before
}

fn mapped(elements: usize, f: impl Fn(f32) -> f32) -> Vec<f32> {
    numbers(elements).into_iter().map(f).collect()
}

#[track_caller]
fn assert_values(tensor: &Tensor, expected: &[f32]) {
    assert_eq!(tensor.to_vec::<f32>().unwrap(), expected);
}

#[test]
fn a_handle_moved_into_an_operator_gives_its_memory() {
    let _alone = alone();
    for device in devices() {
        let large = 1 << 18;
        let y = input(large, &device) * 2.0 + 1.0;
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(large, |x| x * 2.0 + 1.0));
        // What is small must be said.
        let y = input(1000, &device) * 2.0;
        assert_eq!(in_place(&[&y]), 0, "{device}");
        let y = input(1003, &device).donate() * 2.0;
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(1003, |x| x * 2.0));
        // Borrowed, then dropped.
        let x = input(1003, &device).donate();
        let y = x.relu();
        drop(x);
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(1003, |x| x.max(0.0)));
    }
}

/// A loss that somebody has looked at has kept what it was recorded from; for who looks only that is no reason to copy.
#[test]
fn what_was_looked_at_gives_way() {
    let _alone = alone();
    for device in devices() {
        let mut x = input(1 << 18, &device);
        for _ in 0..3 {
            let loss = (&x * 0.25).sum(..);
            let bias = (&loss * 2.0).relu();
            loss.item::<f32>().unwrap();
            bias.item::<f32>().unwrap();
            x = x * 0.5;
            assert_eq!(in_place(&[&x]), 1, "{device}");
            assert!(loss.is_evaluated() && bias.is_evaluated());
        }
        assert_values(&x, &mapped(1 << 18, |x| x * 0.125));
        // A handle is a reason.
        let before = x.clone();
        let loss = (&x * 0.25).sum(..);
        loss.item::<f32>().unwrap();
        x = x * 0.5;
        assert_eq!(in_place(&[&x]), 0, "{device}");
        assert_eq!(lazuli::grad(&loss, &before).to_vec::<f32>().unwrap()[7], 0.25);
    }
}

#[test]
fn another_handle_keeps_the_values() {
    let _alone = alone();
    for device in devices() {
        let x = input(100, &device).donate();
        let y = &x * 2.0;
        assert_eq!(in_place(&[&y]), 0, "{device}");
        assert_values(&x, &numbers(100));
        let other = x.clone();
        let y = x + 1.0;
        assert_eq!(in_place(&[&y]), 0, "{device}");
        assert_values(&other, &numbers(100));
        let y = other + 1.0;
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(100, |x| x + 1.0));
    }
}

#[test]
fn a_tensor_that_is_still_to_be_computed_keeps_the_values() {
    let _alone = alone();
    for device in devices() {
        let x = input(100, &device).donate();
        let later = &x - 3.0;
        let y = x * 2.0;
        assert_eq!(in_place(&[&y]), 0, "{device}");
        assert_eq!(in_place(&[&later]), 1, "{device}");
        assert_values(&later, &mapped(100, |x| x - 3.0));
        assert_values(&y, &mapped(100, |x| x * 2.0));
        // Both at once let go of it.
        let x = input(100, &device).donate();
        let (a, b) = (&x - 3.0, x * 2.0);
        assert_eq!(in_place(&[&a, &b]), 1, "{device}");
        assert_values(&a, &mapped(100, |x| x - 3.0));
        assert_values(&b, &mapped(100, |x| x * 2.0));
        // One that was dropped does not count.
        let x = input(100, &device).donate();
        drop(&x - 3.0);
        let y = x * 2.0;
        assert_eq!(in_place(&[&y]), 1, "{device}");
    }
}

#[test]
fn an_intermediate_with_a_handle_keeps_the_values() {
    let _alone = alone();
    for device in devices() {
        let middle = input(100, &device).donate() * 2.0;
        let y = &middle + 1.0;
        assert_eq!(in_place(&[&y]), 0, "{device}");
        assert_eq!(in_place(&[&middle]), 1, "{device}");
        assert_values(&middle, &mapped(100, |x| x * 2.0));
        assert_values(&y, &mapped(100, |x| x * 2.0 + 1.0));
        let middle = input(100, &device).donate() * 2.0;
        let y = &middle + 1.0;
        drop(middle);
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(100, |x| x * 2.0 + 1.0));
    }
}

/// Two tensors can share memory: here by a move to a device with the same memory.
#[test]
fn memory_with_another_owner_stays() {
    let _alone = alone();
    for device in [Device::cpu()].into_iter().chain(cfg!(feature = "emulate").then(Device::cuda_emulated)) {
        let x = input(100, &device).donate();
        let elsewhere = x.to(&Device::interpreter());
        elsewhere.eval().unwrap();
        let y = x * 2.0;
        assert_eq!(in_place(&[&y]), 0, "{device}");
        assert_values(&elsewhere, &numbers(100));
        // Both as inputs of one kernel.
        let x = input(100, &device).donate();
        let same = x.to(&Device::interpreter()).to(&device);
        same.eval().unwrap();
        let y = x * 2.0 + same.donate();
        assert_eq!(in_place(&[&y]), 0, "{device}");
        assert_values(&y, &mapped(100, |x| x * 3.0));
    }
}

/// What a position reads, no other may have overwritten, and what is written must be as long and of the same type.
#[test]
fn other_positions_lengths_and_types_are_not_written_over() {
    let _alone = alone();
    let cases: [fn(Tensor) -> Tensor; 9] = [
        |x| x.t() + 1.0,
        |x| x.flip([0]) + 1.0,
        |x| x.roll(1, 0) * 2.0,
        |x| &x + x.t(),
        |x| x.slice(0, ..5) + 1.0,
        |x| x.unsqueeze(0).expand([3, 10, 10]) + 1.0,
        |x| x.cast(DType::I32) + 1,
        |x| x.pad(&[(1, 1), (0, 0)], 0.0) + 1.0,
        |x| x.cumsum(0) + 1.0,
    ];
    for device in devices() {
        for (number, case) in cases.iter().enumerate() {
            let expected = case(square(10, &Device::interpreter())).cast(DType::F32).to_vec::<f32>().unwrap();
            let y = case(square(10, &device).donate());
            assert_eq!(in_place(&[&y]), 0, "case {number} on {device}");
            assert_eq!(y.cast(DType::F32).to_vec::<f32>().unwrap(), expected, "case {number} on {device}");
        }
        let y = square(10, &device).donate().reshape([100]) + 1.0;
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(100, |x| x + 1.0));
    }
}

/// What the second result needs first is read after the first is written.
#[test]
fn what_is_read_late_is_not_written_over_early() {
    let _alone = alone();
    for device in devices() {
        for elements in [7, 100] {
            let (u, v) = (input(elements, &device), input(elements, &device).donate() * 1.0);
            let first = &u * 2.0;
            let second = &first + v;
            assert_eq!(in_place(&[&first, &second]), 1, "{device}");
            assert_values(&first, &mapped(elements, |x| x * 2.0));
            assert_values(&second, &mapped(elements, |x| x * 3.0));
        }
    }
}

#[test]
fn another_kernel_that_reads_the_input_keeps_it() {
    let _alone = alone();
    for device in devices() {
        let x = input(100, &device).donate();
        let (a, b) = (&x + 1.0, x * 2.0);
        assert_eq!(with_fusion(Fusion::Off, || in_place(&[&a, &b])), 0, "{device}");
        assert_values(&a, &mapped(100, |x| x + 1.0));
        assert_values(&b, &mapped(100, |x| x * 2.0));
        // The sum comes first; what is written over it is read by no one after.
        let x = square(40, &device).donate();
        let expected: f32 = numbers(1600).iter().sum();
        let y = &x + x.sum(..);
        drop(x);
        assert!(in_place(&[&y]) <= 1);
        assert_values(&y, &mapped(1600, |x| x + expected));
    }
}

/// Parameter, first and second average after a step.
fn adam([parameter, gradient, m, v]: [Tensor; 4]) -> [Tensor; 3] {
    let m = m * 0.9 + &gradient * 0.1;
    let v = v * 0.999 + gradient.square() * 0.001;
    let parameter = parameter * 0.99 - &m * 1e-3 / (v.sqrt() + 1e-8);
    [parameter, m, v]
}

/// Three buffers and the gradient instead of six: the state of an optimiser stays where it is.
/// Their elements are converted some at a time, before the results of the same positions are stored.
#[test]
fn halves_are_written_over() {
    let _alone = alone();
    for device in devices() {
        for count in [65usize, 1003, 1 << 15] {
            let x = Tensor::rand([count], 3).to(&device).cast(DType::F16);
            let y = Tensor::rand([count], 4).to(&device).cast(DType::F16);
            eval([&x, &y]).unwrap();
            let expected = (&x * 2.0 + &y).to_vec::<lazuli::f16>().unwrap();
            let before = stats().in_place;
            let result = x.donate() * 2.0 + y;
            result.eval().unwrap();
            assert_eq!(stats().in_place - before, u64::from(device != Device::interpreter()), "{device}");
            assert_eq!(result.to_vec::<lazuli::f16>().unwrap(), expected, "{count} on {device}");
        }
    }
}

#[test]
fn the_state_of_an_optimiser_stays_in_its_memory() {
    let _alone = alone();
    let run = |device: &Device, donate: bool| -> Vec<Vec<u32>> {
        let count = 12;
        let of = |n: usize, seed: usize| {
            let x = Tensor::rand([5 * n + 1], (4 * n + seed) as u64).to(device);
            x.eval().unwrap();
            x
        };
        let mut state: Vec<[Tensor; 3]> = (0..count).map(|n| [of(n, 0), of(n, 1), of(n, 2)]).collect();
        for step in 0..3 {
            let before = stats();
            let gradients: Vec<Tensor> = (0..count).map(|n| of(n, 10 + step)).collect();
            let apply = |([p, m, v], gradient): ([Tensor; 3], &Tensor)| match donate {
                true => adam([p.donate(), gradient.clone(), m.donate(), v.donate()]),
                false => adam([p, gradient.clone(), m, v]),
            };
            state = state.into_iter().zip(&gradients).map(apply).collect();
            eval(state.iter().flatten()).unwrap();
            let after = stats();
            if *device != Device::interpreter() && step > 0 {
                assert_eq!(after.in_place - before.in_place, if donate { 3 * count as u64 } else { 0 });
                // Most sizes are one launch, and random gradients as many again.
                assert!(after.launches - before.launches < 2 * count as u64);
            }
        }
        state
            .iter()
            .flatten()
            .map(|x| x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect())
            .collect()
    };
    let expected = run(&Device::interpreter(), false);
    for device in devices() {
        assert_eq!(run(&device, false), expected, "{device}");
        assert_eq!(run(&device, true), expected, "{device}");
    }
}

/// In a batch, an output is written over an input in all parts or in none.
#[test]
fn one_part_that_is_seen_keeps_the_others() {
    let _alone = alone();
    for device in devices() {
        let (a, b) = (input(10, &device).donate(), input(20, &device).donate());
        let seen = b.clone();
        let results = [a * 2.0, b * 2.0];
        assert_eq!(results[0].explain().unwrap().kernels(), 1);
        assert_eq!(in_place(&[&results[0], &results[1]]), 0, "{device}");
        assert_values(&seen, &numbers(20));
        assert_values(&results[0], &mapped(10, |x| x * 2.0));
        // One input of two parts.
        let x = input(10, &device).donate();
        let results = [&x * 2.0, x.flip([0]) * 2.0];
        drop(x);
        in_place(&[&results[0], &results[1]]);
        assert_values(&results[0], &mapped(10, |x| x * 2.0));
    }
}

/// What fails can be tried again: the values are still there.
#[test]
fn nothing_is_lost_if_the_evaluation_fails() {
    let _alone = alone();
    for device in devices() {
        let y = input(100, &device).donate() * 2.0;
        let huge = Tensor::from_vec(vec![1.0f32], [1]).to(&device).expand([1usize << 55]) + 1.0;
        assert!(matches!(eval([&y, &huge]), Err(Error::OutOfMemory { .. })), "{device}");
        assert_eq!(in_place(&[&y]), 1, "{device}");
        assert_values(&y, &mapped(100, |x| x * 2.0));
        let y = input(100, &device).donate() * 2.0;
        let wrong = Tensor::from_vec(vec![7i64], [1]).to(&device);
        let wrong = input(5, &device).index_select(0, &wrong);
        for order in [[&y, &wrong], [&wrong, &y]] {
            let evaluated = eval(order);
            // Nobody waits for a GPU: there who reads what is wrong is told.
            let told = if device == Device::cuda(0) { wrong.to_vec::<f32>().map(|_| ()) } else { evaluated };
            assert!(matches!(told, Err(Error::IndexOutOfRange { .. })), "{device}");
        }
        eval([&y]).unwrap();
        assert_values(&y, &mapped(100, |x| x * 2.0));
    }
}

/// Of a tensor that few elements go to only these are written, once all of their positions are known to be some.
#[test]
fn elements_are_put_into_a_tensor_that_is_given_up() {
    let _alone = alone();
    let device = Device::cpu();
    let on = |x: Tensor| x.to(&device);
    let (at, source) = (on(Tensor::from([5i64, 999, 5, 0])), on(Tensor::from([1.5f32, 2.5, 3.5, -0.5])));
    let mut expected = numbers(1003);
    (expected[5], expected[999], expected[0]) = (3.5, 2.5, -0.5);
    let y = input(1003, &device).donate().scatter(0, &at, &source);
    assert_eq!(in_place(&[&y]), 1);
    assert_values(&y, &expected);
    let y = input(1003, &device).donate().index_copy(0, &at, &source);
    assert_eq!(in_place(&[&y]), 1);
    assert_values(&y, &expected);
    // Rows, of which each block has one.
    let (of_rows, ends) =
        (on(Tensor::from([[3i64], [199], [3]])), on(Tensor::from([[1.5f32], [2.5], [3.5]])));
    let y = square(200, &device).donate().scatter(1, of_rows, ends);
    assert_eq!(in_place(&[&y]), 1);
    let mut squared = numbers(200 * 200);
    (squared[3], squared[399], squared[403]) = (1.5, 2.5, 3.5);
    assert_values(&y, &squared);
    // What is there is read once for each position, however many elements go there.
    let x = input(1003, &device).donate();
    let hits = on(Tensor::zeros([1003], DType::I32)).scatter_add(0, &at, on(Tensor::ones([4], DType::I32)));
    let y = hits.cast(DType::Bool).where_(&x * 3.0, &x);
    drop(x);
    assert_eq!(in_place(&[&y]), 1);
    let mut tripled = numbers(1003);
    [0, 5, 999].iter().for_each(|&place: &usize| tripled[place] *= 3.0);
    assert_values(&y, &tripled);
    // Sums make 0 of -0 everywhere; and what is read elsewhere, or held, is not written over.
    let y = input(1003, &device).donate().scatter_add(0, &at, &source);
    assert_eq!(in_place(&[&y]), 0);
    let x = input(1003, &device).donate();
    let y = x.scatter(0, &at, x.gather(0, &at) * 2.0);
    drop(x);
    assert_eq!(in_place(&[&y]), 0);
    let x = input(1003, &device);
    let y = x.clone().donate().scatter(0, &at, &source);
    assert_eq!(in_place(&[&y]), 0);
    assert_values(&x, &numbers(1003));

    // A position that is none is found before anything is written, whichever block finds it.
    for wrong in [[3i64, 7, 200], [200, 3, 7]] {
        let wrong = on(Tensor::from(wrong)).unsqueeze(1);
        let y = square(200, &device).donate().scatter(1, &wrong, 9.0);
        for _ in 0..2 {
            assert!(matches!(y.eval(), Err(Error::IndexOutOfRange { index: 200, .. })));
        }
    }
}

/// An output is evaluated by several threads at once, together with what follows from it: one of them may overwrite what
/// the others are about to read.
#[test]
fn threads_that_evaluate_the_same() {
    let _alone = alone();
    let before = stats().in_place;
    for round in 0..300 {
        let threads = 3;
        let y = input(50, &Device::cpu()).donate() * 2.0 + 1.0;
        let after = &y + 1.0;
        let barrier = Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (y, after, barrier) = (&y, &after, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    if (round + thread) % 3 == 0 {
                        assert_values(after, &mapped(50, |x| x * 2.0 + 2.0));
                    }
                    assert_values(y, &mapped(50, |x| x * 2.0 + 1.0));
                    assert_values(after, &mapped(50, |x| x * 2.0 + 2.0));
                });
            }
        });
    }
    assert!(stats().in_place > before, "nothing was ever written over");
}

/// A thread that holds a handle, and drops it at any time.
#[test]
fn a_handle_in_another_thread() {
    let _alone = alone();
    for _ in 0..200 {
        let x = input(50, &Device::cpu()).donate();
        let seen = x.clone();
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || (&seen - 1.0).to_vec::<f32>().unwrap());
            let y = x * 2.0;
            assert_values(&y, &mapped(50, |x| x * 2.0));
            assert_eq!(reader.join().unwrap(), mapped(50, |x| x - 1.0));
        });
    }
}

struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Operations on random tensors, whose handles are moved, given up or dropped at random, and evaluations of some in
/// between: everything that can still be asked for is what the interpreter says.
#[test]
fn random_graphs_with_random_handles() {
    let _alone = alone();
    for device in devices() {
        let before = stats().in_place;
        for seed in 0..12 {
            let mut choices = Choices(seed);
            let shape = [[3, 5], [1, 16], [8, 8]][choices.below(3)];
            let new = |device: &Device, n: usize| {
                let data: Vec<i32> =
                    (0..shape[0] * shape[1]).map(|i| ((i + 7 * n) * 31 % 19) as i32 - 9).collect();
                Tensor::from_vec(data, shape).to(device)
            };
            let mut pairs: Vec<(Tensor, Tensor)> =
                (0..4).map(|n| (new(&device, n), new(&Device::interpreter(), n))).collect();
            for step in 0..30 {
                let (a, b) = (choices.below(pairs.len()), choices.below(pairs.len()));
                let operation = choices.below(6);
                let apply = |x: Tensor, y: &Tensor| match operation {
                    0 => x + y,
                    1 => x * y,
                    2 => x.maximum(y),
                    3 => x.flip([0]) - y,
                    4 => -x,
                    _ => y.gt(0).where_(&x, y),
                };
                let (y, expected) = pairs[b].clone();
                // The handle itself, or another one.
                let (x, x_expected) = match choices.below(2) {
                    0 => pairs.swap_remove(a),
                    _ => pairs[a].clone(),
                };
                let x = if choices.below(2) == 0 { x.donate() } else { x };
                pairs.push((apply(x, &y), apply(x_expected, &expected)));
                drop((y, expected));
                match choices.below(4) {
                    0 => eval(pairs.iter().step_by(1 + choices.below(3)).map(|(x, _)| x)).unwrap(),
                    1 => pairs[choices.below(pairs.len())].0.eval().unwrap(),
                    2 if pairs.len() > 3 => drop(pairs.swap_remove(choices.below(pairs.len()))),
                    _ => {}
                }
                if pairs.len() < 3 {
                    pairs.push((new(&device, step), new(&Device::interpreter(), step)));
                }
            }
            for (number, (x, expected)) in pairs.iter().enumerate() {
                let (x, expected) = (x.to_vec::<i32>().unwrap(), expected.to_vec::<i32>().unwrap());
                assert_eq!(x, expected, "seed {seed}, tensor {number} on {device}");
            }
        }
        assert!(stats().in_place - before > 20, "{device}: {}", stats().in_place - before);
    }
}

/// Plans and their texts know nothing of who holds what.
#[test]
fn programs_are_as_they_were() {
    let _alone = alone();
    let y = input(100, &Device::cpu()).donate() * 2.0;
    let program = workloads::compile_for([&y], &Target::cuda("sm_90")).unwrap();
    assert!(!program.source().contains("in_place"));
}
