//! Scans with steps of the user's, against plain loops and the interpreter: carries of every dtype, several of them,
//! captured tensors, both directions, every axis, and what fuses with them.

use lazuli::{DType, Device, ScanOrder, Target, Tensor, scan};

use crate::common::data::{mixed, ordinary};
use crate::common::{Output, check, check_fused, devices, exact, near};

/// The shapes and axes on which loops lie: rows, columns, in between, alone, of one step, of none.
const PLACES: [(&[usize], isize); 10] = [
    (&[70, 33], 0),
    (&[70, 33], 1),
    (&[3, 40, 5], 1),
    (&[2, 3, 100], -1),
    (&[130], 0),
    (&[1, 5], 0),
    (&[5, 1], 1),
    (&[4, 0], 1),
    (&[0, 4], 1),
    (&[3, 1, 7], 1),
];

/// `step` along rows of a tensor, by plain loops: what [`Tensor::scan_with`] does on `f32`.
fn plain(values: &[f32], length: usize, reverse: bool, step: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    let mut results = vec![0.0; values.len()];
    for (row, result) in values.chunks(length).zip(results.chunks_mut(length)) {
        let mut carry = 0.5;
        for time in 0..length {
            let at = if reverse { length - 1 - time } else { time };
            carry = step(carry, row[at]);
            result[at] = carry;
        }
    }
    results
}

#[test]
fn carries_may_be_wider_than_inputs() {
    for device in devices().into_iter().chain([Device::interpreter()]) {
        // One series, three filters.
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).to(&device);
        let rate = Tensor::from_slice(&[0.0f32, 0.5], [2]).to(&device);
        let zeros = Tensor::zeros([2], DType::F32);
        let h = x.scan_with(0, &zeros, |h, x| h * &rate + x);
        assert_eq!(h.shape().unwrap(), lazuli::Shape::from([3, 2]));
        assert_eq!(h.to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.5, 3.0, 4.25], "{device}");
        // The axis stays where it is: [2, 3] beside a carry of [2, 2] is [2, 3, 2].
        let rows = Tensor::stack(&[&x, &(&x * 10.0)], 0);
        let start = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], [2, 2]).to(&device);
        let ([last], []) = scan([&rows], 1, ScanOrder::new(), [&start], |[h], [x]| ([h + x], []));
        assert_eq!(last.to_vec::<f32>().unwrap(), [6.0, 61.0, 8.0, 63.0], "{device}");
        let sums = rows.scan_with(1, &start, |h, x| h + x);
        assert_eq!(sums.shape().unwrap(), lazuli::Shape::from([2, 3, 2]), "{device}");
        assert_eq!(sums.select(1, 1).to_vec::<f32>().unwrap(), [3.0, 31.0, 5.0, 33.0], "{device}");
    }
}

/// Rows that are looked up, which loops before and after the one in order read: as many as go side by side, and some that are left.
#[test]
fn rows_that_are_looked_up() {
    for rows in [1, 3, 9] {
        check_fused(&format!("{rows} rows that are looked up"), |device| {
            let x = ordinary(device, DType::F32, &[7, 5], 1);
            let indices: Vec<i64> = (0..rows).map(|row| row * 5 % 7).collect();
            let own = x.index_select(0, &Tensor::from_vec(indices, [rows as usize]).to(device));
            let costly = own.mish();
            let sums = costly.scan_with(1, 0.0, |h, x| x.gt(0.0).where_(h + x, 0.0));
            vec![exact("rows", own), near("costly", costly, 1e-5, 1e-5), near("sums", sums, 1e-5, 1e-5)]
        });
    }
}

/// In an empty batch, a scan and a sum over its state have equally many elements: none.
#[test]
fn states_of_no_series_are_summed() {
    for batch in [0, 2] {
        check(&format!("states of {batch} series"), |device| {
            let [x, rates] = [1, 2].map(|seed| ordinary(device, DType::F32, [batch, 4, 4], seed));
            let (kept, added) = ((-rates.unsqueeze(-1)).exp(), (&rates * &x).unsqueeze(-1) * x.unsqueeze(2));
            let step = |[h]: [&Tensor; 1], [kept, added]: [&Tensor; 2]| {
                let h = h * kept + added;
                ([h.clone()], [h])
            };
            let (_, [states]) = scan([&kept, &added], 1, ScanOrder::new(), [0.0], step);
            vec![near("outputs", (states * x.unsqueeze(2)).sum(-1).relu(), 1e-5, 1e-5)]
        });
    }
}

#[test]
fn every_length_as_plain_loops() {
    for length in [1usize, 2, 31, 32, 33, 64, 100, 1000] {
        let values: Vec<f32> = (0..35 * length).map(|i| ((i * 7919) % 17) as f32 / 8.0 - 1.0).collect();
        for device in devices().into_iter().chain([Device::interpreter()]) {
            let x = Tensor::from_slice(&values, [35, length]).to(&device);
            let columns = Tensor::from_vec(x.t().to_vec::<f32>().unwrap(), [length, 35]).to(&device);
            let average = plain(&values, length, false, |h, x| h * 0.9 + x * 0.1);
            let along = x.scan_with(1, 0.5, |h, x| h * 0.9 + x * 0.1);
            assert_eq!(along.to_vec::<f32>().unwrap(), average, "rows of {length} on {device}");
            let down = columns.scan_with(0, 0.5, |h, x| h * 0.9 + x * 0.1).t();
            assert_eq!(down.to_vec::<f32>().unwrap(), average, "columns of {length} on {device}");
            let backwards = plain(&values, length, true, |h, x| x - h * 0.5);
            let back = ScanOrder::new().reverse();
            let ([last], [along]) = scan([&x], 1, back, [0.5], |[h], [x]| {
                let next = x - h * 0.5;
                ([next.clone()], [next])
            });
            assert_eq!(along.to_vec::<f32>().unwrap(), backwards, "reverse rows of {length} on {device}");
            let first: Vec<f32> = backwards.iter().step_by(length).copied().collect();
            assert_eq!(last.to_vec::<f32>().unwrap(), first, "the last carry of {length} on {device}");
        }
    }
}

/// Running statistics with three carries, of which one is counted in integers.
fn welford(x: &Tensor, axis: isize) -> Vec<Tensor> {
    let zeros = [Tensor::scalar(0.0f32), Tensor::scalar(0.0f32), Tensor::scalar(0i32)];
    let (last, results) = scan([x], axis, ScanOrder::new(), zeros.each_ref(), |[mean, m2, count], [x]| {
        let count = count + 1;
        let delta = x - mean;
        let mean = mean + &delta / count.cast(DType::F32);
        let m2 = m2 + delta * (x - &mean);
        let variance = &m2 / count.cast(DType::F32);
        ([mean.clone(), m2, count.clone()], [mean, variance, count])
    });
    last.into_iter().chain(results).collect()
}

#[test]
fn every_place() {
    for (shape, axis) in PLACES {
        check(&format!("recurrences along {axis} of {shape:?}"), |device| {
            let x = ordinary(device, DType::F32, shape, 1);
            let y = ordinary(device, DType::F32, shape, 2) / 16.0;
            let full = x.shape().unwrap();
            let at = axis.rem_euclid(full.rank() as isize) as usize;
            let inner: Vec<usize> = (0..full.rank()).filter(|&k| k != at).map(|k| full[k]).collect();
            let weight = ordinary(device, DType::F32, &inner[..], 3) / 16.0;
            let mut outputs = vec![
                exact("linear, coefficients of every step", {
                    let ([_], [h]) = scan([&y, &x], axis, ScanOrder::new(), [0.0], |[h], [a, b]| {
                        let h = a * h + b;
                        ([h.clone()], [h])
                    });
                    h
                }),
                exact("a parameter of each loop", x.scan_with(axis, &weight, |h, x| &weight * h + x)),
                exact("the largest", x.scan_with(axis, f64::NEG_INFINITY, |h, x| h.maximum(x))),
                exact("before and after", (&x * 2.0 + 1.0).scan_with(axis, 1.0, |h, x| x - h * 0.25) * &y),
                near(
                    "a network",
                    x.scan_with(axis, 0.0, |h, x| (h * 0.5 + x).tanh() * x.sigmoid()),
                    1e-5,
                    1e-5,
                ),
            ];
            for (number, result) in welford(&x, axis).into_iter().enumerate() {
                outputs.push(exact(format!("running moments, {number}"), result));
            }
            outputs
        });
    }
}

#[test]
fn biquad_filters() {
    check("direct form 1", |device| {
        let x = ordinary(device, DType::F64, [3, 200], 5);
        let zero = Tensor::zeros([], DType::F64).to(device);
        let (last, [y]) = scan([&x], 1, ScanOrder::new(), [&zero; 4], |[x1, x2, y1, y2], [x]| {
            let y = x * 0.2 + x1 * 0.4 + x2 * 0.2 - y1 * -0.5 - y2 * 0.3;
            ([x.clone(), x1.clone(), y.clone(), y1.clone()], [y])
        });
        last.into_iter().chain([y]).enumerate().map(|(n, y)| exact(format!("{n}"), y)).collect()
    });
}

/// More rows of tiles than shared memory has room for.
#[test]
fn many_inputs() {
    check_fused("twelve inputs", |device| {
        let inputs: [Tensor; 12] = std::array::from_fn(|n| ordinary(device, DType::F64, [40, 50], n as u64));
        let ([last], results) = scan(inputs.each_ref(), 1, ScanOrder::new(), [0.0], |[h], x| {
            let next = x.iter().fold(h * 0.5, |sum, x| sum * 0.5 + *x);
            ([next.clone()], [&next - x[3], &next * x[11], next])
        });
        results.into_iter().chain([last]).enumerate().map(|(n, y)| exact(format!("{n}"), y)).collect()
    });
}

#[test]
fn every_dtype() {
    for dtype in DType::ALL {
        check(&format!("recurrences of {dtype}"), |device| {
            let x = ordinary(device, dtype, [40, 20], 3);
            let zero = Tensor::zeros([], dtype).to(device);
            let none = Tensor::scalar(0i64).to(device);
            let parity = Tensor::zeros([20], DType::Bool).to(device);
            let sum = x.scan_with(0, &zero, |h, x| h + x);
            let eps = dtype.finfo().map_or(0.0, |info| info.eps);
            vec![
                if eps > 1e-5 { near("sum", sum, 4.0 * eps, 32.0 * eps) } else { exact("sum", sum) },
                exact("largest", x.scan_with(1, &zero, |h, x| h.maximum(x))),
                exact("signs", x.scan_with(0, &parity, |odd, x| odd.logical_xor(x.gt(0)))),
                exact("how many", x.scan_with(1, &none, |n, x| n + x.ne(0))),
            ]
        });
    }
}

#[test]
fn special_values() {
    check("recurrences of special values", |device| {
        let values = [1.0f32, f32::INFINITY, 2.0, f32::NEG_INFINITY, 3.0, f32::NAN, 4.0, -0.0];
        let x = Tensor::from_slice(&values, [8]).to(device);
        let rows = x.expand([3, 8]);
        vec![
            exact("sum", x.scan_with(0, -0.0, |h, x| h + x)),
            exact("the last number", rows.scan_with(1, 7.0, |h, x| x.isnan().where_(h, x))),
            exact("swapped", {
                let ([a, b], []) = scan([&rows], 1, ScanOrder::new(), [1.0, -0.0], |[a, b], [_]| {
                    ([b.clone(), a.clone()], [])
                });
                a - b
            }),
            exact("the step's own", rows.scan_with(0, 0.0, |_, x| x * 2.0)),
            exact("a constant", rows.scan_with(0, 0.0, |h, _| h.ones_like())),
        ]
    });
}

fn random_step(h: &Tensor, x: &Tensor, captured: &Tensor, mut seed: usize) -> Tensor {
    let mut values = vec![h.clone(), x.clone(), captured.clone()];
    for _ in 0..6 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let pick = |shift: usize| values[(seed >> shift) % values.len()].clone();
        let (a, b) = (pick(20), pick(30));
        values.push(match (seed >> 40) % 6 {
            0 => (a + b) * 0.5,
            1 => a * b.sign(),
            2 => a.maximum(b),
            3 => a.lt(&b).where_(&a, &b),
            4 => a.relu() - b.abs() * 0.25,
            _ => (a - b) / 3.0,
        });
    }
    values.swap_remove(values.len() - 1)
}

#[test]
fn random_steps_at_random_places() {
    for seed in 0..24usize {
        let rank = 1 + seed % 3;
        let shape: Vec<usize> = (0..rank).map(|k| [1, 5, 33, 4, 17][(seed * 3 + k * 7) % 5]).collect();
        let axis = (seed / 3) % rank;
        check(&format!("random step {seed} along {axis} of {shape:?}"), |device| {
            let x = ordinary(device, DType::F32, &shape[..], seed as u64);
            let inner: Vec<usize> = (0..rank).filter(|&k| k != axis).map(|k| shape[k]).collect();
            let captured = ordinary(device, DType::F32, &inner[..], seed as u64 + 100) + 0.5;
            let order = if seed % 2 == 0 { ScanOrder::new() } else { ScanOrder::new().reverse() };
            let ([last], [each]) = scan([&x], axis as isize, order, [1.5], |[h], [x]| {
                let next = random_step(h, x, &captured, seed);
                ([next.clone()], [next])
            });
            vec![exact("last", &last + &captured), exact("each", each)]
        });
    }
}

fn kernels(results: &[&Tensor]) -> usize {
    lazuli::compile_for(results.iter().copied(), &Target::cuda("sm_90")).unwrap().kernels().len()
}

#[test]
fn one_kernel() {
    let rows = Tensor::from_vec(vec![0.5f32; 1 << 20], [1 << 17, 8]);
    let weight = Tensor::rand([1 << 17], 2);
    let scanned = (&rows * 2.0).exp().scan_with(1, 0.0, |h, x| &weight.exp() * h + x).relu() / 3.0;
    assert_eq!(kernels(&[&scanned]), 1);
    // On a GPU, few threads would take longer for what is costly than a kernel of its own.
    let x = Tensor::from_vec(vec![0.5f32; 512_000], [512, 1000]);
    let costly = x.exp().scan_with(1, 0.0, |h, x| h * 0.5 + x);
    assert_eq!(costly.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 2);
    // All results of a loop, with what follows from its end, and another loop over the same elements.
    let ([last], [each]) = scan([&x], 0, ScanOrder::new(), [0.0], |[h], [x]| {
        let next = h * 0.5 + x;
        ([next.clone()], [next * 2.0])
    });
    let other = x.scan_with(0, 1.0, |h, x| h.maximum(x));
    assert_eq!(kernels(&[&each, &(last * 0.5), &other, &x.cumsum(0)]), 1);
    // Another direction is another kernel.
    let ([back], []) = scan([&x], 0, ScanOrder::new().reverse(), [0.0], |[h], [x]| ([h + x], []));
    assert_eq!(kernels(&[&each, &back]), 2);
}

#[test]
fn another_batch_is_the_same_kernel() {
    let source = |batch: usize| {
        let x = Tensor::rand([batch, 50], 1);
        let y = x.scan_with(1, 0.0, |h, x| h * 0.5 + x);
        y.compile_for(&Target::cuda("sm_90")).unwrap().kernels()[0].source().to_string()
    };
    assert_eq!(source(8), source(9));
}

#[test]
fn among_other_operations() {
    check_fused("recurrences fused", |device| {
        let x = ordinary(device, DType::F32, [6, 130], 1);
        let smooth = |x: &Tensor, axis| x.scan_with(axis, 0.0, |h, x| h * 0.5 + x);
        let of_view = smooth(&x.t(), 0) * 0.5;
        let of_reduction = smooth(&(&x - x.mean_keepdim(1)), 1);
        let reduced = smooth(&x, 1).sum(1);
        let moved = smooth(&x, 0).slice(1, 3..50) + 1.0;
        let twice = smooth(&smooth(&x, 1), 0);
        let again = smooth(&smooth(&x, 1), 1);
        let begun = x.scan_with(1, x.max(1), |h, x| h * 0.5 + x);
        let ([last], [each]) = scan([&x], 1, ScanOrder::new(), [0.0], |[h], [x]| ([h + x], [h * x]));
        let centred = &each - last.unsqueeze(1);
        let results = [of_view, of_reduction, reduced, moved, twice, again, begun, centred, each];
        let labels =
            ["of a view", "of a reduction", "reduced", "moved", "twice", "again", "begun", "centred", "each"];
        let output = |(label, result): (&str, Tensor)| -> Output { near(label, result, 1e-5, 1e-3) };
        labels.into_iter().zip(results).map(output).collect()
    });
}

/// More than a kernel takes as arguments: the others are part of its text.
#[test]
fn a_step_has_as_many_numbers_as_it_likes() {
    let values = [0.25f32, -3.0, 7.5, 1.0, 0.0, -0.125];
    for (device, count) in [(Device::cpu(), 140), (Device::interpreter(), 302)] {
        let numbers = || (0..count).map(|n| f64::from(n % 150) / 128.0 - 0.5);
        let expected = plain(&values, 3, false, |h, x| numbers().fold(h * 0.5 + x, |v, n| v + n as f32));
        let x = Tensor::from_slice(&values, [2, 3]).to(&device);
        let y = x.scan_with(1, 0.5, |h, x| numbers().fold(h * 0.5 + x, |v, n| v + n));
        assert_eq!(kernels(&[&y]), 1);
        assert_eq!(y.to_vec::<f32>().unwrap(), expected, "{device}");
    }
}

/// In a step, random numbers are those of its position in the whole tensor.
#[test]
fn each_step_draws_its_own_random_numbers() {
    check("random numbers in steps", |device| {
        let x = ordinary(device, DType::F32, [5, 33], 1);
        let drawn = |axis| {
            let ([], [masked, like]) = scan([&x], axis, ScanOrder::new().reverse(), [0.0; 0], |[], [x]| {
                ([], [x.dropout(0.4, 7), x.rand_like(8) + x.bernoulli(9)])
            });
            [masked, like]
        };
        let [rows, rows_like] = drawn(0);
        let [columns, columns_like] = drawn(1);
        let masked = x.dropout(0.4, 7);
        let like = x.rand_like(8) + x.bernoulli(9);
        let same = [rows.eq(&masked), columns.eq(&masked), rows_like.eq(&like), columns_like.eq(&like)];
        let same = same.map(|same| exact("as the whole tensor's", same.all(..)));
        assert!(device != &Device::interpreter() || rows.eq(&masked).all(..).item::<bool>().unwrap());
        same.into_iter().chain([exact("rows", rows), exact("columns", columns)]).collect()
    });
    // What is drawn before is one for all steps.
    let (x, mask) = (Tensor::ones([8, 4], DType::F32), Tensor::rand([4], 3));
    let kept = x.scan_with(0, 0.0, |_, x| x * &mask);
    assert_eq!(kept.to_vec::<f32>().unwrap()[..4], kept.to_vec::<f32>().unwrap()[28..]);
    let dropped = x.scan_with(0, 0.0, |h, x| h * 0.5 + x.dropout(0.5, 1));
    assert_eq!(kernels(&[&dropped]), 1);
}

#[test]
fn values_of_a_step_do_not_leave_it() {
    let x = Tensor::ones([3, 4], DType::F32);
    let mut leaked = None;
    let sum = x.scan_with(0, 0.0, |h, x| {
        leaked = Some(h * 2.0);
        assert!(x.to_vec::<f32>().is_err() && h.eval().is_err() && x.explain().is_err());
        h + x
    });
    assert_eq!(sum.to_vec::<f32>().unwrap()[8..], [3.0; 4]);
    let leaked = leaked.unwrap();
    let errors = [
        leaked.to_vec::<f32>().unwrap_err(),
        (&leaked + 1.0).to_vec::<f32>().unwrap_err(),
        x.scan_with(0, 0.0, |h, _| h + &leaked).shape().unwrap_err(),
        leaked.sum(0).to_vec::<f32>().unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("step"), "{error}");
    }
}

#[test]
fn carries_of_no_steps_are_on_the_device_of_the_others() {
    for device in devices() {
        let x = ordinary(&device, DType::F32, [0, 3], 1);
        let ([last], [each]) = lazuli::scan([&x], 0, ScanOrder::new(), [3.0], |[c], [x]| ([c + x], [c * x]));
        assert_eq!(last.to_vec::<f32>().unwrap(), [3.0; 3]);
        assert_eq!([last.device().unwrap(), each.device().unwrap()], [device, device]);
    }
}

/// What is computed from one loop in order for the next has no lanes on a core: a multiplication is hidden, an exponential is not.
#[test]
fn what_is_costly_between_scans_is_computed_in_lanes() {
    let x = Tensor::from_vec(vec![0.001f32; 200 * 2500], [200, 2500]);
    let average = |x: &Tensor| x.scan_with(1, 1.0, |h, x| h * 0.9 + x * 0.1);
    let programs =
        [("a factor", average(&(average(&x) * 0.5)), 1), ("an exponential", average(&average(&x).exp()), 2)];
    for (name, y, kernels) in programs {
        assert_eq!(y.compile_for(&lazuli::Target::cpu()).unwrap().kernels().len(), kernels, "{name}");
    }
}

/// Costly steps of sixteen rows and more are in lanes: rows that fill no group, stretches that are not whole, what differs by row alone
/// or by step alone, states that are stored, and such as are not.
#[test]
fn costly_steps_of_many_rows() {
    for (rows, length) in [(16, 16), (37, 65), (48, 200), (70, 15), (5, 100)] {
        check_fused(&format!("{rows} rows of {length} costly steps"), |device| {
            let x = ordinary(device, DType::F32, &[rows, length], 1);
            let (of_row, of_step) =
                (ordinary(device, DType::F32, &[rows], 2), ordinary(device, DType::F32, &[length], 3));
            let online = |[m, s]: [&Tensor; 2], [x]: [&Tensor; 1]| {
                let most = m.maximum(x);
                let sum = s * (m - &most).exp() + (x - &most).exp();
                ([most, sum], [])
            };
            let ([m, s], []) = scan([&x], 1, ScanOrder::new(), [f64::NEG_INFINITY, 0.0], online);
            let both = |[h]: [&Tensor; 1], [x, w]: [&Tensor; 2]| {
                let next = (h * &of_row + x * w).tanh();
                ([next.clone()], [next, h * 2.0])
            };
            let order = ScanOrder::new().reverse();
            let of_steps = of_step.expand([rows, length]);
            let ([last], [states, before]) = scan([&x, &of_steps], 1, order, [&of_row], both);
            let late =
                |[h, y]: [&Tensor; 2], [x]: [&Tensor; 1]| ([(h.sigmoid() + y).sin(), x.clone()], [h * y]);
            let ([end, latest], [products]) = scan([&x], 1, ScanOrder::new(), [0.5, 0.25], late);
            let choice = |h: &Tensor, x: &Tensor| x.gt(h).where_((h * 0.5).exp(), (h + x).cos());
            vec![
                near("sums", s.log() + &m, 1e-5, 1e-5),
                near("softmax", (&x - m.unsqueeze(1)).exp() / s.unsqueeze(1), 1e-5, 1e-5),
                near("states", states.square(), 1e-5, 1e-4),
                near("what they were before", before, 1e-5, 1e-4),
                near("the first one", last, 1e-5, 1e-4),
                near("late", products, 1e-5, 1e-4),
                near("its end", end, 1e-5, 1e-4),
                exact("the last element", latest),
                near("chosen", x.scan_with(1, 0.0, choice), 1e-5, 1e-4),
            ]
        });
    }
    for dtype in [DType::F64, DType::F16, DType::I32, DType::I64] {
        check_fused(&format!("costly steps of {dtype}"), |device| {
            let x = ordinary(device, dtype, &[33, 70], 1);
            let step = |h: &Tensor, x: &Tensor| match dtype.is_float() {
                true => (h * 0.5 + x).tanh().exp() - (h - x).cos(),
                false => (h * 3 + x) % 1001 - (h % 7) * (x % 5) + (h - x) % 11,
            };
            let start = Tensor::zeros([33], dtype).to(device);
            vec![near("states", x.scan_with(1, &start, step), 2e-2, 2e-2)]
        });
    }
    check_fused("special values in costly steps", |device| {
        let x = mixed(device, DType::F32, [40, 80], 3, 67);
        let step = |h: &Tensor, x: &Tensor| h.maximum(&x.exp()) + (h - x).tanh() * 0.5;
        vec![near("states", x.scan_with(1, 0.0, step), 1e-5, 1e-5)]
    });
}
