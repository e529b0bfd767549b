//! Scans against plain loops: every operation, direction and axis, lengths on both sides of the schedules' limits, and
//! what fuses with them.

use lazuli::{DType, Device, ScanOrder, Target, Tensor};

use crate::common::data::ordinary;
use crate::common::{check, check_fused, devices, exact, near};

/// The scan of one row of whole numbers, in order.
fn running(row: &[f32], order: (bool, bool), first: f32, combine: fn(f32, f32) -> f32) -> Vec<f32> {
    let (reverse, exclusive) = order;
    let mut running = first;
    let mut step = |x: &f32| {
        let before = running;
        running = combine(running, *x);
        if exclusive { before } else { running }
    };
    match reverse {
        false => row.iter().map(&mut step).collect(),
        true => {
            let mut result: Vec<f32> = row.iter().rev().map(&mut step).collect();
            result.reverse();
            result
        }
    }
}

#[test]
fn every_length_and_order() {
    for length in [1usize, 2, 31, 33, 64, 127, 256, 300, 1024, 2000, 5000] {
        let values: Vec<f32> = (0..3 * length).map(|i| ((i * 7919) % 17) as f32 - 8.0).collect();
        for device in devices().into_iter().chain([Device::interpreter()]) {
            let x = Tensor::from_slice(&values, [3, length]).to(&device);
            // Along axis 0 of its transpose, whose layout is made first.
            let columns = Tensor::from_vec(x.t().to_vec::<f32>().unwrap(), [length, 3]).to(&device);
            for (reverse, exclusive) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut order = ScanOrder::new();
                order = if reverse { order.reverse() } else { order };
                order = if exclusive { order.exclusive() } else { order };
                let sums: Vec<f32> = values
                    .chunks(length)
                    .flat_map(|row| running(row, (reverse, exclusive), 0.0, |a, b| a + b))
                    .collect();
                let context = format!("{length}, {order:?} on {device}");
                assert_eq!(x.cumsum_with(1, order).to_vec::<f32>().unwrap(), sums, "{context}");
                let down = columns.cumsum_with(0, order).t();
                assert_eq!(down.to_vec::<f32>().unwrap(), sums, "columns of {context}");
            }
            let most: Vec<f32> = values
                .chunks(length)
                .flat_map(|row| running(row, (false, false), f32::NEG_INFINITY, f32::max))
                .collect();
            assert_eq!(x.cummax(-1).to_vec::<f32>().unwrap(), most, "{length} on {device}");
            let least: Vec<f32> = values
                .chunks(length)
                .flat_map(|row| running(row, (true, false), f32::INFINITY, f32::min))
                .collect();
            let reversed = columns.cummin_with(0, ScanOrder::new().reverse()).t();
            assert_eq!(reversed.to_vec::<f32>().unwrap(), least, "{length} on {device}");
        }
    }
}

#[test]
fn every_dtype_and_axis() {
    for dtype in DType::ALL {
        check(&format!("scans of {dtype}"), |device| {
            let x = ordinary(device, dtype, [3, 5, 7, 4], 3);
            let mut outputs = Vec::new();
            for axis in 0..4 {
                outputs.push(exact(format!("cummax along {axis}"), x.cummax(axis)));
                outputs.push(exact(
                    format!("cummin along {axis}"),
                    x.cummin_with(axis, ScanOrder::new().reverse()),
                ));
                let (sum, product) =
                    (x.cumsum(axis), x.ones_like().cumprod_with(axis, ScanOrder::new().exclusive()));
                let eps = dtype.finfo().map_or(0.0, |info| info.eps);
                outputs.push(near(format!("cumsum along {axis}"), sum, 8.0 * eps, 64.0 * eps));
                outputs.push(exact(format!("cumprod along {axis}"), product));
            }
            outputs
        });
    }
}

#[test]
fn special_values() {
    check("scans of special values", |device| {
        let values = [1.0f32, f32::INFINITY, 2.0, f32::NEG_INFINITY, 3.0, f32::NAN, 4.0, -0.0];
        let x = Tensor::from_slice(&values, [8]).to(device);
        vec![
            exact("cumsum", x.cumsum(0)),
            exact("cumprod", x.cumprod(0)),
            exact("cummax", x.cummax(0)),
            exact("cummin", x.cummin_with(0, ScanOrder::new().reverse())),
            exact("of nothing", Tensor::zeros([3, 0], DType::F32).to(device).cumsum(1)),
            exact("of one", Tensor::ones([3, 1], DType::F32).to(device).cumsum(1)),
        ]
    });
}

#[test]
fn scans_among_other_operations() {
    check("scans fused", |device| {
        let x = ordinary(device, DType::F32, [6, 130], 1);
        let mask = ordinary(device, DType::F32, [130], 2).gt(0.0);
        let sum = (&x * 2.0 + 1.0).cumsum(1);
        let both = mask.where_(&sum, &x) - x.cummax(1);
        let of_view = x.t().cumsum(0) * 0.5;
        let of_reduction = (&x - x.mean_keepdim(1)).cumsum(1);
        let reduced = x.cumsum(1).sum(1);
        let moved = x.cumsum(0).slice(1, 3..50) + 1.0;
        let twice = x.cumsum(1).cumsum(0);
        vec![
            near("both", both, 1e-5, 1e-4),
            near("the sum", sum, 1e-5, 1e-4),
            near("of a view", of_view, 1e-5, 1e-4),
            near("of a reduction", of_reduction, 1e-5, 1e-4),
            near("reduced", reduced, 1e-5, 1e-2),
            near("moved", moved, 1e-5, 1e-4),
            near("twice", twice, 1e-5, 1e-3),
        ]
    });
    check_fused("long scans", |device| {
        let x = ordinary(device, DType::F32, [40_000], 1);
        let y = ordinary(device, DType::F16, [70, 3, 90], 2);
        vec![
            near("long", x.cumsum(0), 1e-5, 2e-3),
            near("middle", y.cumsum(1) * 2.0, 2e-3, 2e-3),
            near("outer", y.cumsum(0), 2e-3, 3e-2),
        ]
    });
}

/// Prologue and epilogue are part of the scan's kernel, which reads and writes once.
#[test]
fn one_kernel() {
    let x = Tensor::rand([512, 1000], 1);
    let scanned = ((&x * 2.0).exp().cumsum(1) / 3.0).relu();
    assert_eq!(scanned.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 1);
    let columns = (&x - 1.0).cumsum_with(0, ScanOrder::new().reverse()) * &x;
    assert_eq!(columns.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 1);
    let mean = x.cumsum(1) / (Tensor::arange(0.0f32, 1000.0, 1.0) + 1.0);
    assert_eq!(mean.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 1);
}

/// Of few long rows or columns, whose axis is divided from some length on: every order, and lengths that no part divides.
#[test]
fn few_long_scans() {
    for (length, rows) in [(65_535, 1), (65_536, 2), (131_071, 1), (131_072, 2), (131_073, 3), (300_001, 1)] {
        let values: Vec<f32> = (0..rows * length).map(|i| ((i * 7919) % 17) as f32 - 8.0).collect();
        let x = Tensor::from_vec(values.clone(), [rows, length]);
        let columns = Tensor::from_vec(x.t().to_vec::<f32>().unwrap(), [length, rows]);
        for device in devices() {
            let (x, columns) = (x.to(&device), columns.to(&device));
            for (reverse, exclusive) in [(false, false), (true, true)] {
                let order = if reverse { ScanOrder::new().reverse().exclusive() } else { ScanOrder::new() };
                let sums: Vec<f32> = values
                    .chunks(length)
                    .flat_map(|row| running(row, (reverse, exclusive), 0.0, |a, b| a + b))
                    .collect();
                let context = format!("{rows} x {length}, {order:?} on {device}");
                assert!(x.cumsum_with(1, order).to_vec::<f32>().unwrap() == sums, "{context}");
                let down = columns.cumsum_with(0, order).t();
                assert!(down.to_vec::<f32>().unwrap() == sums, "columns of {context}");
            }
        }
    }
}

/// All that may be in a kernel whose axis is divided, of rows with whole vectors and without, and of columns.
#[test]
fn what_surrounds_long_scans() {
    let shapes = [(vec![131_075], 0), (vec![2, 140_000], 1), (vec![33_000, 3], 0), (vec![3, 70_001, 2], 1)];
    for (shape, axis) in shapes {
        check_fused(&format!("long scans along {axis} of {shape:?}"), |device| {
            let x = ordinary(device, DType::F32, shape.clone(), 1);
            let (whole, half) = (x.cast(DType::I64), ordinary(device, DType::F16, shape.clone(), 2));
            let back = ScanOrder::new().reverse();
            let exp = ((&x - 3.0).exp().cumsum(axis) * 0.5 - &x).relu();
            let extremes = x.cummax_with(axis, back) - (&x * 2.0).cummin_with(axis, back);
            vec![
                near("prologue and epilogue", exp, 1e-4, 1e-3),
                exact("two scans", extremes),
                exact("whole numbers", whole.cumsum_with(axis, back.exclusive())),
                near("of f16", (half * 0.01).cumsum(axis), 1e-2, 1e-2),
                // In F32 the rounding of so many steps one after the other comes to more than any mistake would.
                near("logarithms", x.cast(DType::F64).logcumsumexp(axis), 1e-9, 1e-9),
                near("products", (&x * 1e-3 + 1.0).cumprod(axis), 1e-2, 1e-6),
            ]
        });
    }
}

/// From the first NaN on there is nothing else, in whichever part it is.
#[test]
fn not_a_number_goes_from_part_to_part() {
    let length = 200_000;
    for at in [0, 10, 70_000, length - 1] {
        let values: Vec<f32> =
            (0..length).map(|i| if i == at { f32::NAN } else { (i % 1000) as f32 }).collect();
        for device in devices() {
            let x = Tensor::from_slice(&values, [length]).to(&device);
            for y in [x.cummax(0), x.cumsum(0), x.logcumsumexp(0), -(-&x).cummin(0)] {
                let y = y.to_vec::<f32>().unwrap();
                let first = y.iter().position(|y| y.is_nan());
                assert!(first == Some(at) && y[at..].iter().all(|y| y.is_nan()), "{at} on {device}");
            }
        }
    }
}

/// Parts follow from the sizes: the same bits on any number of threads.
#[test]
fn long_scans_do_not_depend_on_threads() {
    for (shape, axis) in [(vec![1_000_003], 0), (vec![3, 200_000], 1), (vec![100_001, 5], 0)] {
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let x = ordinary(&Device::cpu(), DType::F32, shape.clone(), 1);
                let sums = (&x * 0.1).cumsum(axis).to_vec::<f32>().unwrap();
                sums.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
            })
        };
        let first = bits(1);
        for threads in [2, 3, 8] {
            assert!(bits(threads) == first, "{shape:?} along {axis} on {threads} threads");
        }
    }
}

/// Few long scans are divided, and what is long and many is not; nor what no part can begin before the one before it ends.
#[test]
fn which_scans_are_divided() {
    let divided = |x: Tensor, target: &Target| {
        let program = x.compile_for(target).unwrap();
        program.kernels().iter().any(|kernel| kernel.schedule().to_string().contains("splits="))
    };
    for target in [Target::cuda("sm_90"), Target::cpu()] {
        let zeros = |shape: &[usize]| {
            let x = Tensor::from_vec(vec![0.0f32; shape.iter().product()], shape);
            x.eval().unwrap();
            x
        };
        let (long, few) = (zeros(&[1 << 18]), zeros(&[1 << 16, 4]));
        assert!(divided(long.cumsum(0), &target) && divided(few.cumsum(0), &target), "{target}");
        assert!(divided(long.exp().cummax(0) + long.cumsum(0), &target), "{target}");
        for whole in [
            zeros(&[1 << 10, 1 << 9]).cumsum(1),
            zeros(&[200, 1 << 13]).cumsum(1),
            zeros(&[1 << 9, 1 << 14]).cumsum(0),
            long.cumsum(0).cummax(0),
            long.scan_with(0, 0.0, |h, x| h * 0.5 + x),
        ] {
            assert!(!divided(whole, &target), "{target}");
        }
    }
}

/// PyTorch's rule: an element that is not less takes over, and from the first NaN on only NaN does.
fn with_position(row: &[f32]) -> (Vec<f32>, Vec<i64>) {
    let (mut best, mut at) = (row[0], 0);
    let step = |(i, &x): (usize, &f32)| {
        if x.is_nan() || !best.is_nan() && x >= best {
            (best, at) = (x, i as i64);
        }
        (best, at)
    };
    row.iter().enumerate().map(step).unzip()
}

#[test]
fn positions_of_extremes() {
    for length in [1usize, 2, 33, 100, 300, 1024, 5000] {
        let element = |i: usize| match i * 7919 % 97 {
            0 if i > 200 => f32::NAN,
            n => (n % 13) as f32 + (i / 40) as f32,
        };
        let values: Vec<f32> = (0..3 * length).map(element).collect();
        let (best, at): (Vec<f32>, Vec<i64>) =
            values.chunks(length).map(with_position).flat_map(|(best, at)| best.into_iter().zip(at)).unzip();
        let bits = |values: Vec<f32>| -> Vec<u32> { values.into_iter().map(f32::to_bits).collect() };
        let best = bits(best.into_iter().map(|x| if x.is_nan() { f32::NAN } else { x }).collect());
        for device in devices().into_iter().chain([Device::interpreter()]) {
            let x = Tensor::from_slice(&values, [3, length]).to(&device);
            let columns = Tensor::from_vec(x.t().to_vec::<f32>().unwrap(), [length, 3]).to(&device);
            let rows = x.cummax_with_indices(1);
            let down = columns.cummax_with_indices(0);
            let least = (-&x).cummin_with_indices(1);
            let results = [rows, (down.0.t(), down.1.t()), (-least.0, least.1)];
            lazuli::eval(results.iter().flat_map(|(best, at)| [best, at])).unwrap();
            for (way, (largest, indices)) in ["rows", "columns", "least"].iter().zip(&results) {
                let context = format!("{way} of {length} on {device}");
                let largest = largest.to_vec::<f32>().unwrap();
                let largest = largest.into_iter().map(|x| if x.is_nan() { f32::NAN } else { x }).collect();
                assert_eq!(bits(largest), best, "{context}");
                assert_eq!(indices.to_vec::<i64>().unwrap(), at, "positions, {context}");
            }
        }
    }
}

/// Scans of what follows from other scans at their own position share the kernel.
#[test]
fn scans_of_scans() {
    for (shape, axis) in
        [([3, 5000], 1), ([40, 60], 1), ([3, 1000], 1), ([700, 5], 0), ([9, 40], 0), ([1, 4], 0)]
    {
        for order in [ScanOrder::new(), ScanOrder::new().reverse(), ScanOrder::new().exclusive()] {
            check_fused(&format!("scans of scans along {axis} of {shape:?}, {order:?}"), |device| {
                let x = ordinary(device, DType::F32, shape, 1);
                let whole = x.cast(DType::I64);
                let sums = whole.cumsum_with(axis, order);
                let most = (&sums * 2 - &whole).cummax(axis);
                let in_order = whole.cumsum_with(axis, order).remainder(7).cumsum_with(axis, order);
                let thrice = (&in_order + &sums).cumsum_with(axis, order);
                let product = (x.sign() * 0.5 + 1.5).cumprod_with(axis, order);
                let levels = (product.remainder(3.0) - &x).cumsum_with(axis, order) * &x;
                let smooth = x.scan_with(axis, 0.0, |h, x| h * 0.5 + x).cummax(axis);
                let again = smooth.scan_with(axis, 0.0, |h, x| x - h);
                vec![
                    exact("sums", sums),
                    exact("most", most),
                    exact("in order", in_order),
                    exact("thrice", thrice),
                    exact("smooth", smooth),
                    exact("again", again),
                    near("levels", levels, 1e-4, 2e-2),
                ]
            });
        }
    }
}

#[test]
fn logarithms_of_sums() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        check(&format!("logcumsumexp of {dtype}"), |device| {
            let eps = dtype.finfo().unwrap().eps;
            let mut outputs = Vec::new();
            for (shape, axis) in [([5, 700], 1), ([35, 150], 1), ([300, 7], 0), ([3, 1], 1)] {
                let x = ordinary(device, dtype, shape, 3) * 4.0;
                let (up, back) = (ScanOrder::new().exclusive(), ScanOrder::new().reverse());
                let near = |label: &str, y| near(label, y, 16.0 * eps, 16.0 * eps);
                outputs.push(near("inclusive", x.logcumsumexp(axis)));
                outputs.push(near("exclusive", x.logcumsumexp_with(axis, up)));
                outputs.push(near("reverse", x.logcumsumexp_with(axis, back) * 0.5));
            }
            outputs
        });
    }
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let rows = [
        ([-inf, -inf, 0.0, -inf], [-inf, -inf, 0.0, 0.0]),
        ([0.0, inf, 1.0, inf], [0.0, inf, inf, inf]),
        ([-inf, inf, -inf, 0.0], [-inf, inf, inf, inf]),
        ([1000.0, -1000.0, nan, inf], [1000.0, 1000.0, nan, nan]),
    ];
    for device in devices().into_iter().chain([Device::interpreter()]) {
        for (row, expected) in rows {
            for shape in [[1, 4], [4, 1]] {
                let x = Tensor::from_slice(&row, shape).to(&device);
                let axis = if shape[0] == 1 { 1 } else { 0 };
                let got = x.logcumsumexp(axis).to_vec::<f32>().unwrap();
                let same = got.iter().zip(&expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
                assert!(same, "{got:?} instead of {expected:?} along {axis} on {device}");
            }
        }
    }
}

#[test]
fn one_element_along_the_axis() {
    for (shape, axis) in [([1, 1, 1], 0), ([1, 1, 4], 1), ([3, 1, 5], 1), ([1, 3, 5], 0), ([3, 5, 1], 2)] {
        check(&format!("{shape:?} along {axis}"), |device| {
            let x = ordinary(device, DType::F32, shape, 1);
            let sum = lazuli::scan([&x], axis, ScanOrder::new(), [1.0], |[sum], [x]| ([sum + x], []));
            let ([sum], []) = sum;
            vec![
                exact("cummax", x.cummax(axis)),
                exact("cumsum without itself", x.cumsum_with(axis, ScanOrder::new().exclusive())),
                exact("scan_with", x.scan_with(axis, 0.5, |last, x| last + x)),
                exact("the last carry", sum),
            ]
        });
    }
}

/// What is the same along an axis, or everywhere: of its own, and with what follows.
#[test]
fn scans_of_broadcasts() {
    for shape in [[3, 12, 40], [1, 50, 1], [2, 1, 300]] {
        for axis in 0..3isize {
            let check = |name: &str, scan: &dyn Fn(&Tensor) -> Tensor| {
                for (from, extents) in [
                    ("one number", [1, 1, 1]),
                    ("columns", [shape[0], 1, 1]),
                    ("a middle axis", [1, shape[1], 1]),
                    ("rows", [1, 1, shape[2]]),
                ] {
                    check_fused(&format!("{name} of {from} of {shape:?} along {axis}"), |device| {
                        let x = ordinary(device, DType::F32, extents, 3).broadcast_to(shape);
                        vec![near("result", scan(&x), 1e-5, 1e-5)]
                    });
                }
            };
            check("sums", &|x| x.cumsum(axis).minimum(50.0) * 2.0);
            check("maxima from the end", &|x| x.cummax_with(axis, ScanOrder::new().reverse()) + 1.0);
            check("averages", &|x| x.scan_with(axis, 0.0, |h, x| h * 0.5 + x).relu() - 1.0);
            check("sums by place", &|x| {
                let at = Tensor::zeros([x.shape().unwrap()[axis as usize]], DType::I64);
                let at = at.to(&x.device().unwrap());
                x.zeros_like().index_add(axis, &at, x).maximum(-3.0) * 2.0
            });
        }
    }
    check_fused("positions of a long row", |device| {
        let ones = Tensor::ones([200_001], DType::I64).to(device);
        let columns = Tensor::ones([70_000, 3], DType::I64).to(device);
        vec![exact("row", ones.cumsum(0) - 1), exact("columns", columns.cumsum(0) * 2)]
    });
}

/// PyTorch's: a 0-d tensor has an axis 0, along which it is one element.
#[test]
fn of_one_element_without_an_axis() {
    check("0-d", |device| {
        let x = Tensor::scalar(3.0f32).to(device) * 1.5;
        let (most, position) = x.cummax_with_indices(-1);
        vec![
            exact("sum", x.cumsum(0)),
            exact("exclusive product", x.cumprod_with(-1, ScanOrder::new().exclusive())),
            exact("largest", most),
            exact("its position", position),
            exact("softmax", x.softmax(0)),
            exact("log_softmax", x.log_softmax(-1)),
            exact("quantile", x.quantile(0.3, 0)),
            exact("reductions", x.sum(0) + x.max_keepdim(-1) + x.norm(0, 2.0) + x.argmin(0)),
        ]
    });
    assert_eq!(Tensor::scalar(3.0f32).cumsum(0).item::<f32>().unwrap(), 3.0);
    assert_eq!(Tensor::scalar(3.0f32).softmax(-1).item::<f32>().unwrap(), 1.0);
    assert!(Tensor::scalar(3.0f32).cumsum(1).eval().is_err());
}

/// Each element from a row of its own, scanned and read once more.
#[test]
fn scans_of_what_is_looked_up_in_other_rows() {
    for (dtype, shape) in [(DType::F32, [40, 64]), (DType::F64, [9, 130]), (DType::F16, [33, 512])] {
        check_fused(&format!("{dtype} {shape:?}"), |device| {
            let x = ordinary(device, dtype, shape, 3).clamp(-2.0, 2.0);
            let rows = ordinary(device, DType::I64, shape, 5).abs() % shape[0] as i64;
            let own = x.gather(0, &rows);
            vec![
                exact("largest so far, less each", own.cummax(1) - &own),
                exact("least so far of positions", (&rows.cummin(1) + &rows).cast(DType::F32)),
                exact("two looked up", x.gather(0, &rows.flip(1)).cummin(1) * &own),
            ]
        });
    }
}

/// Of few elements, less than a vector has, and costly ones before and behind.
#[test]
fn scans_of_short_rows_beside_exponentials() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12), (DType::BF16, 2e-2)] {
        for columns in [3, 4, 5, 8, 11, 15] {
            check_fused(&format!("{dtype} rows of {columns}"), |device| {
                let x = ordinary(device, dtype, [7, columns], 3).clamp(-2.0, 2.0);
                let between = ((&x * 0.3).exp().cumsum(1) * 0.1).exp();
                vec![
                    near("behind", (x.cumsum(1) * 0.1).exp(), tolerance, tolerance),
                    near("before", (&x * 0.5).exp().cumsum(1), tolerance, tolerance),
                    near(
                        "both, backwards",
                        between.cumsum_with(1, ScanOrder::new().reverse()),
                        tolerance,
                        tolerance,
                    ),
                ]
            });
        }
    }
}
