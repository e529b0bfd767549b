//! Scans whose step moves or combines elements, against the same steps recorded in a loop: recurrent networks, sums and
//! products over states, loops in loops.

use lazuli::{DType, Operand, ScanOrder, Shape, Tensor, grad, iterate, scan};

use crate::common::data::ordinary;
use crate::common::{Output, check, devices, exact, near};

/// The gates of an LSTM's cell: the next state and the next output.
fn cell([h, c]: [&Tensor; 2], x: &Tensor, [w, u]: [&Tensor; 2]) -> [Tensor; 2] {
    let gates = (x.matmul(w) + h.matmul(u)).chunk(4, -1).unwrap();
    let c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    [gates[3].sigmoid() * c.tanh(), c]
}

/// The outputs of an LSTM after each step along the axis, and the last state, once as a scan and once as a loop.
fn lstm(x: &Tensor, axis: isize, reverse: bool, hidden: usize) -> [[Tensor; 2]; 2] {
    let (device, dtype, shape) = (x.device().unwrap(), x.dtype().unwrap(), x.shape().unwrap());
    let weights = [(shape[2], 11), (hidden, 12)]
        .map(|(rows, seed)| ordinary(&device, dtype, [rows, 4 * hidden], seed) * 0.3);
    let [w, u] = &weights;
    let (steps, batch) = if axis == 0 { (shape[0], shape[1]) } else { (shape[1], shape[0]) };
    let begun = [13, 14].map(|seed| ordinary(&device, dtype, [batch, hidden], seed));
    let order = if reverse { ScanOrder::new().reverse() } else { ScanOrder::new() };
    let ([_, last], [each]) = scan([x], axis, order, [&begun[0], &begun[1]], |[h, c], [x]| {
        let [h, c] = cell([h, c], x, [w, u]);
        ([h.clone(), c], [h])
    });
    let [mut h, mut c] = begun;
    let mut all = Vec::new();
    for n in 0..steps {
        let n = if reverse { steps - 1 - n } else { n };
        [h, c] = cell([&h, &c], &x.select(axis, n as isize), [w, u]);
        all.push(h.clone());
    }
    if reverse {
        all.reverse();
    }
    [[each, last], [Tensor::stack(all, axis), c]]
}

#[test]
fn recurrent_networks_are_scans() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12), (DType::F16, 1e-2)] {
        for (shape, axis, reverse, hidden) in [([7, 3, 5], 0, false, 6), ([2, 5, 1], 1, true, 9)] {
            check(&format!("{dtype} {shape:?} along {axis}"), |device| {
                let [own, looped] = lstm(&ordinary(device, dtype, shape, 1), axis, reverse, hidden);
                let apart = [0, 1].map(|n| (&own[n] - &looped[n]).abs().max(..));
                let [each, last] = own;
                let [of_each, of_last] = apart;
                vec![
                    near("each", each, tolerance, tolerance),
                    near("last", last, tolerance, tolerance),
                    near("each beside a loop", of_each, 0.0, tolerance),
                    near("last beside a loop", of_last, 0.0, tolerance),
                ]
            });
        }
    }
}

/// The probability of observations in a hidden Markov model: each step sums over the states of the one before.
#[test]
fn steps_reduce_what_they_carry() {
    check("states that follow each other", |device| {
        let moves = ordinary(device, DType::F32, [5, 5], 1).log_softmax(1);
        let seen = ordinary(device, DType::F32, [9, 3, 5], 2).log_softmax(2);
        let step = |a: &Tensor, seen: &Tensor| (a.unsqueeze(2) + &moves).logsumexp(1) + seen;
        let all = seen.slice(0, 1..).scan_with(0, seen.select(0, 0), step);
        let mut a = seen.select(0, 0);
        for n in 1..9 {
            a = step(&a, &seen.select(0, n));
        }
        vec![
            near("beside a loop", (all.select(0, -1) - &a).abs().max(..), 0.0, 1e-5),
            near("all", all, 1e-5, 1e-5),
            near(
                "of a carry that sorts",
                seen.scan_with(0, 0.0, |h, x| (h + x).sort(-1, true).0),
                1e-5,
                1e-5,
            ),
        ]
    });
}

/// Each tensor has its own shape in a step: inputs that broadcast only step by step, and carries of others than their shape.
#[test]
fn shapes_of_a_step_are_those_without_the_axis() {
    check("own shapes", |device| {
        let [x, times] = [vec![6, 2, 3], vec![6]].map(|shape| ordinary(device, DType::F32, shape, 1));
        let total = Tensor::zeros([2, 1], DType::F32).to(device);
        let largest = Tensor::full((), f32::NEG_INFINITY, DType::F32).to(device);
        let ([total, largest], [x_shape, shares]) =
            scan([&x, &times], 0, ScanOrder::new(), [&total, &largest], |[total, largest], [x, time]| {
                assert_eq!([x, time, total].map(|x| x.shape().unwrap().rank()), [2, 0, 2]);
                let total = total + x.sum_keepdim(1) * time;
                let largest = largest.maximum(total.max(..));
                ([total.clone(), largest], [x * 2.0, (x / total).sum(0)])
            });
        let shapes = [&total, &largest, &x_shape, &shares].map(|x| x.shape().unwrap());
        assert_eq!(
            shapes,
            [Shape::from([2, 1]), Shape::scalar(), Shape::from([6, 2, 3]), Shape::from([6, 3])]
        );
        // Elementwise, these broadcast: the result has the shape of all.
        let decayed = scan([&x, &times], 0, ScanOrder::new(), [0.0], |[h], [x, t]| ([h * 0.5 + x * t], [])).0;
        vec![
            near("total", total, 1e-5, 1e-5),
            near("largest", largest, 1e-5, 1e-5),
            exact("doubled", x_shape),
            near("shares", shares, 1e-4, 1e-4),
            near("decayed", decayed[0].clone(), 1e-6, 1e-6),
        ]
    });
}

#[test]
fn loops_in_loops() {
    check("a scan in a step", |device| {
        let x = ordinary(device, DType::F32, [4, 3, 5], 1);
        // The inner step uses a value of the outer one, and one of neither.
        let weight = ordinary(device, DType::F32, [5], 2);
        let outer = x.scan_with(0, 0.0, |h, x| {
            let scale = h.mean(..);
            h * 0.5 + x.scan_with(0, 0.0, |g, y| g * 0.9 + y * &scale + &weight)
        });
        let mut h = Tensor::zeros([3, 5], DType::F32).to(device);
        for n in 0..4 {
            let scale = h.mean(..);
            let mut g = Tensor::zeros([5], DType::F32).to(device);
            let mut all = Vec::new();
            for m in 0..3 {
                g = g * 0.9 + x.select(0, n).select(0, m) * &scale + &weight;
                all.push(g.clone());
            }
            h = h * 0.5 + Tensor::stack(all, 0);
        }
        let apart = (outer.select(0, -1) - h).abs().max(..);
        vec![near("beside loops", apart, 0.0, 1e-5), near("all", outer, 1e-5, 1e-5)]
    });
}

#[test]
fn steps_draw_random_numbers_of_any_shape() {
    check("random numbers", |device| {
        let x = ordinary(device, DType::F32, [5, 8], 1);
        let ([], [sums, drawn]) = scan([&x], 0, ScanOrder::new().reverse(), [0.0; 0], |[], [x]| {
            ([], [x.dropout(0.4, 7).sum(0), Tensor::rand([3], 8)])
        });
        let all = x.dropout(0.4, 7).sum(1);
        vec![
            // Sums of eight numbers of up to 10, in another order: some of their last bits.
            near("as the whole tensor's", (&sums - all).abs().max(..), 0.0, 1e-5),
            near("sums", sums, 1e-6, 1e-6),
            exact("drawn", drawn),
        ]
    });
}

/// More tensors than a kernel takes; and an axis that is counted from the end stays there beside a carry of more dimensions.
#[test]
fn many_tensors_and_wide_carries() {
    check("260 tensors", |device| {
        let x = ordinary(device, DType::F32, [3, 4], 1);
        let others: Vec<Tensor> = (0..260).map(|n| ordinary(device, DType::F32, [4], n)).collect();
        let sums = x.scan_with(0, 0.0, |h, x| others.iter().fold(h + x, |sum, other| sum + other));
        vec![near("sums", sums, 1e-5, 1e-3)]
    });
    for device in devices() {
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).to(&device);
        let begun = Tensor::from_slice(&[0.0f32, 10.0], [2]).to(&device);
        for (axis, shape, expected) in
            [(0, [3, 2], [1.0, 11.0, 3.0, 13.0, 6.0, 16.0]), (-1, [2, 3], [1.0, 3.0, 6.0, 11.0, 13.0, 16.0])]
        {
            let sums = x.scan_with(axis, &begun, |h, x| h + x);
            assert_eq!(sums.shape().unwrap(), Shape::from(shape), "{device}");
            assert_eq!(sums.to_vec::<f32>().unwrap(), expected, "{device}");
        }
    }
}

#[test]
fn of_no_steps_and_of_one() {
    for device in devices() {
        for steps in [0, 1] {
            let x = ordinary(&device, DType::F32, [steps, 2, 3], 1);
            let begun = Tensor::ones([2, 3], DType::F32);
            let w = Tensor::eye(3, DType::F32);
            let ([last], [each]) =
                scan([&x], 0, ScanOrder::new(), [&begun], |[h], [x]| ([h.matmul(&w) + x], [h.sum(1)]));
            assert_eq!(each.shape().unwrap(), Shape::from([steps, 2]));
            assert_eq!(each.to_vec::<f32>().unwrap(), vec![3.0; 2 * steps]);
            let expected: Vec<f32> = match steps {
                0 => vec![1.0; 6],
                _ => x.to_vec::<f32>().unwrap().iter().map(|x| x + 1.0).collect(),
            };
            assert_eq!(last.to_vec::<f32>().unwrap(), expected);
        }
    }
}

#[test]
fn gradients_go_back_through_steps() {
    check("gradients", |device| {
        let [x, w, begun] = [(vec![5, 2, 3], 1), (vec![3, 3], 2), (vec![2, 3], 3)]
            .map(|(shape, seed)| ordinary(device, DType::F64, shape, seed));
        let step = |h: &Tensor, x: &Tensor| (h.matmul(&w) + x).tanh();
        let scanned = x.scan_with(0, &begun, step).square().sum(..);
        let mut h = begun.clone();
        let mut looped = Tensor::zeros((), DType::F64).to(device);
        for n in 0..5 {
            h = step(&h, &x.select(0, n));
            looped = looped + h.square().sum(..);
        }
        let by = [x.clone(), w.clone(), begun.clone()];
        let outputs = |own: Tensor, other: Tensor| -> Vec<Output> {
            let apart = (&own - other).abs().max(..);
            vec![near("gradient", own, 1e-9, 1e-9), near("beside a loop", apart, 0.0, 1e-9)]
        };
        grad(&scanned, &by).into_iter().zip(grad(&looped, &by)).flat_map(|(a, b)| outputs(a, b)).collect()
    });
}

/// A row and a number for each step, though there are as many rows as columns.
#[test]
fn what_an_input_is_does_not_follow_from_its_extents() {
    for (steps, columns) in [(4, 6), (6, 6), (6, 4), (1, 3), (3, 1)] {
        check(&format!("{steps} steps of {columns}"), |device| {
            let rows = ordinary(device, DType::F32, [steps, columns], 1);
            let (each, once) =
                (ordinary(device, DType::F32, [steps], 2), ordinary(device, DType::F32, [1, columns], 3));
            let weights = ordinary(device, DType::F32, [columns, columns], 4);
            let begun = ordinary(device, DType::F32, [columns], 5);
            let next = |sum: &Tensor, row: &Tensor, own: &Tensor, once: &Tensor, product: bool| {
                let added = row * own + once;
                if product {
                    sum * 0.5 + added.unsqueeze(0).matmul(&weights).squeeze(0)
                } else {
                    sum * 0.5 + added
                }
            };
            let mut outputs = Vec::new();
            for product in [false, true] {
                // A number has no axes, and is the same in each step.
                let one = Tensor::scalar(1.0f32).to(device);
                let inputs = [&rows, &each, &once, &one];
                let ([last], []) =
                    scan(inputs, 0, ScanOrder::new(), [&begun], |[sum], [row, own, once, one]| {
                        ([next(sum, row, own, once, product) * one], [])
                    });
                let looped = (0..steps as isize).fold(begun.clone(), |sum, n| {
                    next(&sum, &rows.select(0, n), &each.select(0, n), &once.select(0, 0), product)
                });
                outputs.push(near("beside a loop", (&last - looped).abs().max(..), 0.0, 1e-5));
                outputs.push(near("last", last, 1e-5, 1e-5));
            }
            outputs
        });
    }
}

fn counted(h: &Tensor, number: impl Into<Operand>, x: &Tensor) -> Tensor {
    (h * 0.5 + number).sin() + x
}

/// By numbers of steps alone, beside the same steps in a loop.
#[test]
fn steps_may_be_counted_alone() {
    check("counted steps", |device| {
        let x = ordinary(device, DType::F32, [33], 1);
        let mut outputs = Vec::new();
        for steps in [0, 1, 7] {
            let ([last, count], [each]) =
                iterate(steps, [x.clone(), x.zeros_like()], |[h, count], number| {
                    let h = counted(h, number, &x);
                    ([h.clone(), count + 1.0], [h])
                });
            assert_eq!(each.shape().unwrap(), [steps, 33].into());
            let numbers = 0..steps as i64;
            let looped = numbers.fold(x.clone(), |h, number| counted(&h, number, &x));
            outputs.push(exact(format!("last of {steps} beside a loop"), last.eq(looped).all(..)));
            outputs.push(exact(format!("count of {steps}"), count));
            outputs.push(near(format!("each of {steps}"), each, 1e-6, 1e-6));
        }
        // A step with a product is recorded as often.
        let w = ordinary(device, DType::F32, [5, 5], 2);
        let ([power], []) = iterate(3, [w.clone()], |[power], _| ([power.matmul(&w)], []));
        let difference = (power - w.matrix_power(4)).abs().max(..);
        outputs.push(near("powers", difference, 0.0, 1e-4));
        outputs
    });
    let x = Tensor::from([1.5f64, -0.5]);
    let ([power], []) = iterate(5, [&x], |[h], _| ([h * &x], []));
    let slopes = lazuli::grad(&power.sum(..), &x).to_vec::<f64>().unwrap();
    assert_eq!(slopes, [6.0 * 1.5f64.powi(5), 6.0 * (-0.5f64).powi(5)]);
    // Numbers begin as F32 or I64.
    let ([a, b], []) = iterate(2, [1.0.into(), Operand::from(2)], |[a, b], _| ([a * 2.0, b * 2], []));
    assert_eq!((a.item::<f32>().unwrap(), b.item::<i64>().unwrap()), (4.0, 8));
    let ([wrong], []) = iterate(3, [&x], |[h], _| ([h.cast(DType::F32)], []));
    let message = wrong.eval().unwrap_err().to_string();
    assert!(message.starts_with("iterate: the step gives f32 for a carry that begins as f64"), "{message}");
    let ([many], []) = iterate(usize::MAX, [&x], |[h], _| ([h + 1.0], []));
    assert!(many.eval().is_err());
}

/// Steps that join elements and combine them again, beside the same steps in a loop, with their gradients: equal elements share those of
/// an extreme one.
#[test]
fn elements_are_joined_and_combined() {
    let table = |device: &_| ordinary(device, DType::F64, [3, 6], 3);
    type Step = fn(&Tensor, &Tensor, &Tensor) -> Tensor;
    let steps: [(&str, Step); 5] = [
        ("logsumexp", |h, x, _| x - Tensor::stack([-h, -x, h * x], 0).logsumexp(0)),
        ("equal ones", |h, x, _| Tensor::stack([h + x, x + h, h - 9.0], -1).max(-1) * 0.5),
        ("softmax", |h, x, t| (Tensor::stack([h, x, &(h + x)], 0).softmax(0) * t).sum(0)),
        ("mean, product", |h, x, _| {
            let all = Tensor::stack([h, x], 1);
            all.mean(1) + all.prod(1) * 0.1
        }),
        ("parts", |h, x, t| (Tensor::stack([x, h, x], 0).flip(0) * t).slice(0, 1..).min(0)),
    ];
    for (name, step) in steps {
        check(&format!("{name} of joined elements"), |device| {
            let x = ordinary(device, DType::F64, [4, 6], 1);
            let begun = ordinary(device, DType::F64, [6], 2);
            let t = table(device);
            let ([last], [all]) = scan([&x], 0, ScanOrder::new(), [&begun], |[h], [x]| {
                let h = step(h, x, &t);
                ([h.clone()], [h])
            });
            let looped = (0..4).fold(begun.clone(), |h, n| step(&h, &x.select(0, n), &t));
            let mut outputs = vec![near("all", all, 1e-9, 1e-9)];
            for (what, own, other) in [
                ("last", last.clone(), looped.clone()),
                ("to the elements", grad(&last.sin().sum(..), &x), grad(&looped.sin().sum(..), &x)),
                ("to the carry", grad(&last.sin().sum(..), &begun), grad(&looped.sin().sum(..), &begun)),
                (
                    "to what is captured",
                    grad(&(last.sum(..) + t.sum(..)), &t),
                    grad(&(looped.sum(..) + t.sum(..)), &t),
                ),
            ] {
                outputs.push(near(what, (own - other).abs().max(..), 0.0, 1e-9));
            }
            outputs
        });
    }
}
