//! Calls of compiled functions that a GPU gets as one graph.

use super::*;
use lazuli::Target;

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

/// Products whose tiles are copied by tensor maps get maps of each call's own buffers.
#[test]
fn products_in_a_graph_are_of_each_calls_factors() {
    let Some((gpu, _alone)) = gpu() else { return };
    let layers = |[x, w]: [Tensor; 2]| {
        let y = x.matmul(&w).relu();
        [y.matmul(&w), y.sum(1)]
    };
    let factor = |n: usize, rows: usize| {
        let values = (0..rows * 72).map(|k| ((k * 7 + n * 5) % 23) as f32 / 8.0 - 1.0);
        let factor = Tensor::from_vec(values.collect(), [rows, 72]).cast(DType::F16).to(&gpu);
        factor.eval().unwrap();
        factor
    };
    let results = layers([factor(0, 70), factor(1, 72)]);
    let explained = lazuli::compile_for(&results, &Target::cuda("sm_90")).unwrap().explain().to_string();
    assert!(explained.contains(", bulk"), "{explained}");
    let f = compile(layers);
    let numbers = |results: [Tensor; 2]| {
        eval(&results).unwrap();
        results.map(|y| y.cast(DType::F32).to_vec::<f32>().unwrap())
    };
    for n in 0..6 {
        let (x, w) = (factor(n, 70), factor(n + 10, 72));
        let results = numbers(f.call([&x, &w]).unwrap());
        assert!(results == numbers(layers([x, w])), "call {n}");
    }
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
