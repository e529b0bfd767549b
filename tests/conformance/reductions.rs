//! Proves that reductions are right: every operation and dtype, any axes, row and column lengths on both sides of every
//! schedule's limits, NaN wherever it stands, and reductions of nothing. Sums of small integers are exact in any
//! order; other float sums and products are compared with the double-precision oracle within bounds that follow
//! from the length and the magnitudes.

use lazuli::{DType, Device, Target, Tensor};

use crate::common::data::{floats, mixed, ordinary};
use crate::common::{Output, check, check_fused, check_on_cpu, devices, exact, near};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// Of a float dtype.
fn epsilon(dtype: DType) -> f64 {
    dtype.finfo().unwrap().eps
}

/// Every reduction that the dtype has, of ordinary elements: sums and extremes exact.
fn all_reductions(x: &Tensor, axes: &[isize], length: usize) -> Vec<Output> {
    let dtype = x.dtype().unwrap();
    let axes = axes.to_vec();
    let mut outputs = vec![
        exact("max", x.max(&axes)),
        exact("min", x.min_keepdim(&axes)),
        exact("any", x.any(&axes)),
        exact("all", x.all_keepdim(&axes)),
    ];
    if dtype.is_float() {
        // Sums of multiples of 1/4 up to 8: exact in F32, rounded once to 16 bits.
        let half = epsilon(dtype) / 2.0;
        outputs.push(exact("sum", x.sum(&axes)));
        outputs.push(near("mean", x.mean_keepdim(&axes), 2.0 * half, 1e-6));
        let spread = 2.0 * half + 1e-6;
        outputs.push(near("var", x.var(&axes, 0), spread, 1e-6));
        outputs.push(near("std", x.std_keepdim(&axes, usize::from(length > 1)), spread + half, 1e-6));
        // Near 1, so that no product leaves the range: each factor brings an error of its own.
        let factors = x * (1.0 / 8.0 / length.max(8) as f64) + 1.0;
        outputs.push(near("prod", factors.prod(&axes), half * (length as f64).max(8.0), 0.0));
    } else {
        outputs.push(exact("sum", x.sum_keepdim(&axes)));
        outputs.push(exact("prod", x.prod(&axes)));
    }
    outputs
}

#[test]
fn every_dtype_and_set_of_axes() {
    for dtype in DType::ALL {
        for axes in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[-1, 0]] {
            let axes: Vec<isize> = axes.to_vec();
            check_fused(&format!("{dtype} along {axes:?}"), |device| {
                let length = axes.iter().map(|&axis| [5, 7, 12][axis.rem_euclid(3) as usize]).product();
                all_reductions(&ordinary(device, dtype, [5, 7, 12], 3), &axes, length)
            });
        }
    }
}

#[test]
fn every_operation_unfused() {
    for dtype in DType::ALL {
        for axes in [&[0][..], &[-1]] {
            let length = if axes == [0] { 30 } else { 33 };
            check(&format!("{dtype} along {axes:?}"), |device| {
                all_reductions(&ordinary(device, dtype, [30, 33], 4), axes, length)
            });
        }
    }
}

#[test]
fn axes_of_higher_ranks() {
    for axes in [&[1, 3][..], &[0, 2, 4], &[1, 2, 3], &[0, 4], &[2], &[3, 4], &[0, 1]] {
        let axes: Vec<isize> = axes.to_vec();
        check_fused(&format!("five dimensions along {axes:?}"), |device| {
            let x = ordinary(device, DType::F32, [3, 4, 5, 6, 7], 5);
            vec![
                exact("sum", x.sum(&axes)),
                exact("max", x.max_keepdim(&axes)),
                exact("broadcast back", &x - x.sum_keepdim(&axes)),
            ]
        });
    }
}

/// Lengths on both sides of every schedule's limits: rows are contiguous, columns are not.
#[test]
fn rows_of_every_length() {
    let lengths: [usize; 24] = [
        1, 2, 3, 7, 8, 9, 15, 31, 32, 33, 64, 65, 127, 257, 1000, 1023, 3072, 3073, 4096, 16_384, 16_385,
        32_768, 65_536, 65_537,
    ];
    for length in lengths {
        let rows = if length > 10_000 { 3 } else { 37 };
        check_fused(&format!("rows of {length}"), |device| {
            rows_and_columns(&ordinary(device, DType::F32, [rows, length], 6), 1, length)
        });
    }
}

#[test]
fn columns_of_every_length() {
    for (length, columns) in [
        (2, 100),
        (8, 33),
        (9, 31),
        (25, 64),
        (33, 1000),
        (100, 7),
        (100, 128),
        (511, 65),
        (512, 32),
        (1000, 1),
        (2049, 3),
        (5000, 40),
        (65_537, 2),
        (70_000, 5),
    ] {
        check_fused(&format!("{columns} columns of {length}"), |device| {
            rows_and_columns(&ordinary(device, DType::F32, [length, columns], 7), 0, length)
        });
    }
}

/// One of each kind, so that they share their kernel, and what follows a reduction.
fn rows_and_columns(x: &Tensor, axis: isize, length: usize) -> Vec<Output> {
    let centred = x - x.mean_keepdim(axis);
    vec![
        exact("sum", x.sum(axis)),
        exact("max", x.max(axis)),
        // Multiples of 1/16 up to 64: exact while the sum has fewer than 24 bits; then each of the few parts' additions may round.
        near("sum of squares", x.square().sum(axis), if length < 20_000 { 0.0 } else { 2f64.powi(-19) }, 0.0),
        near("mean", x.mean(axis), 1e-6, 1e-6),
        near("var", x.var(axis, 0), 1e-6 * (length as f64).log2().max(1.0), 1e-7),
        near("centred", centred, 1e-6, 1e-5),
    ]
}

/// Several at a time in one thread, none of which spills a register on any architecture.
#[test]
fn few_neighbours() {
    for dtype in [DType::I8, DType::U8, DType::I16, DType::F16] {
        for length in [3, 5, 8] {
            let x = |device: &Device| ordinary(device, dtype, [16, 64, length], length as u64);
            let of = |name: &str, reduce: fn(&Tensor) -> Tensor| {
                check_fused(&format!("{name} of {length} {dtype}"), |device| {
                    vec![exact(name, reduce(&x(device)))]
                });
            };
            of("max", |x| x.max(-1));
            of("sum", |x| x.sum(-1));
            of("argmax", |x| x.argmax(-1));
        }
    }
}

#[test]
fn long_reductions_of_every_dtype() {
    for dtype in DType::ALL {
        check_fused(&format!("one long row of {dtype}"), |device| {
            let x = ordinary(device, dtype, [70_001], 8);
            vec![
                exact("sum", x.sum(..)),
                exact("max", x.max(..)),
                exact("min", x.min(..)),
                exact("all", x.all(..)),
            ]
        });
        check_fused(&format!("few long columns of {dtype}"), |device| {
            let x = ordinary(device, dtype, [9001, 3], 9);
            vec![
                exact("sum", x.sum(0)),
                exact("max", x.max(0)),
                exact("min", x.min(0)),
                exact("any", x.any(0)),
            ]
        });
    }
}

/// Digits that do not cancel: the error of a sum is bounded by its length's logarithm times the magnitudes' sum.
#[test]
fn sums_of_numbers_with_all_digits() {
    for dtype in FLOATS {
        for (shape, axes) in
            [(&[37, 1000][..], &[1][..]), (&[1000, 37], &[0]), (&[30, 41, 17], &[0, 2]), (&[131_073], &[0])]
        {
            check_fused(&format!("sums of {dtype} {shape:?} along {axes:?}"), |device| {
                let x = floats(device, dtype, shape, 1.0, 21);
                let length: usize = axes.iter().map(|&axis: &isize| shape[axis as usize]).product();
                let unit = epsilon(dtype.max(DType::F32)).max(epsilon(DType::F32).min(epsilon(dtype)));
                let sum = length as f64 * 0.5 * unit.min(epsilon(DType::F32)) * 8.0;
                let rounding = epsilon(dtype) / 2.0;
                vec![
                    near("sum", x.sum(axes), rounding, sum),
                    near("mean", x.mean(axes), 2.0 * rounding, sum / length as f64),
                    near("var", x.var(axes, 1), 2.0 * rounding + 4e-6, 0.0),
                    near("sum of squares", x.cast(DType::F32).square().sum(axes), 1e-5, 0.0),
                ]
            });
        }
    }
}

/// Far from zero, sums of squares cancel; Welford's method does not.
#[test]
fn variances_far_from_zero() {
    let shapes =
        [(&[5, 3000][..], 1), (&[3000, 5], 0), (&[100_000], 0), (&[9, 8], 1), (&[37, 4], 1), (&[40, 33], 1)];
    for (shape, axis) in shapes {
        check_fused(&format!("variance of {shape:?} far from zero"), |device| {
            let x = floats(device, DType::F32, shape, 1.0, 31) + 1000.0;
            let wide = floats(device, DType::F64, shape, 1.0, 31) + 1e8;
            vec![
                near("f32", x.var(axis, 0), 5e-6, 0.0),
                near("f64", wide.var(axis, 0), 1e-6, 0.0),
                near("constant", x.full_like(0.1).var(axis, 0), 0.0, 1e-12),
            ]
        });
    }
}

/// NaN and infinities wherever they stand: at the ends, within vectors, and in the tail.
#[test]
fn special_values_at_any_position() {
    for dtype in FLOATS {
        for (name, value) in [("NaN", f64::NAN), ("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY)] {
            for length in [5, 33, 67, 300] {
                check_fused(&format!("{name} among {length} {dtype}"), |device| {
                    // Row i has the value at position i.
                    let places = Tensor::arange(0i64, length, 1).to(device);
                    let x = ordinary(device, dtype, [length as usize, length as usize], 13);
                    let x = places.unsqueeze(1).eq(places.unsqueeze(0)).where_(x.full_like(value), &x);
                    vec![
                        exact("max of rows", x.max(1)),
                        exact("min of rows", x.min(1)),
                        exact("sum of rows", x.sum(1)),
                        near("mean of rows", x.mean(1), epsilon(dtype), 1e-6),
                        near("var of rows", x.var(1, 0), epsilon(dtype), 1e-6),
                        exact("max of columns", x.max(0)),
                        exact("min of columns", x.min(0)),
                        exact("sum of columns", x.sum(0)),
                        exact("all", x.max(..)),
                    ]
                });
            }
        }
    }
    check("special values", |device| {
        let mut outputs = Vec::new();
        for dtype in DType::ALL {
            let x = mixed(device, dtype, [9, 67], 0, 1);
            for axis in [0, 1] {
                outputs.push(exact(format!("max {dtype} {axis}"), x.max(axis)));
                outputs.push(exact(format!("min {dtype} {axis}"), x.min(axis)));
                outputs.push(exact(format!("any {dtype} {axis}"), x.any(axis)));
                outputs.push(exact(format!("all {dtype} {axis}"), x.all(axis)));
                if !dtype.is_float() {
                    outputs.push(exact(format!("sum {dtype} {axis}"), x.sum(axis)));
                    outputs.push(exact(format!("prod {dtype} {axis}"), x.prod(axis)));
                }
            }
        }
        outputs
    });
    // Zeros of both signs: the larger is +0. What no row holds but -0 sums to +0, as in the oracle: sums start there.
    check("zeros of both signs", |device| {
        let x = Tensor::from_vec(
            (0..64 * 20).map(|i| if i % 3 == 0 { 0.0f32 } else { -0.0 }).collect(),
            [20, 64],
        )
        .to(device);
        let negative = Tensor::from_vec(vec![-0.0f32; 64 * 20], [20, 64]).to(device);
        let mut outputs = Vec::new();
        for axis in [0, 1] {
            for (name, x) in [("mixed", &x), ("negative", &negative)] {
                outputs.push(exact(format!("max {name} {axis}"), x.max(axis)));
                outputs.push(exact(format!("min {name} {axis}"), x.min(axis)));
                outputs.push(exact(format!("sum {name} {axis}"), x.sum(axis)));
            }
        }
        outputs
    });
}

#[test]
fn reductions_of_nothing_and_of_one() {
    for dtype in DType::ALL {
        check(&format!("empty {dtype}"), |device| {
            let x = ordinary(device, dtype, [3, 0, 2], 1);
            let mut outputs = vec![
                exact("sum", x.sum(1)),
                exact("sum of all", x.sum(..)),
                exact("prod", x.prod(1)),
                exact("prod of all", x.prod_keepdim(..)),
                exact("any", x.any(1)),
                exact("all", x.all(1)),
                exact("no results", x.max(0)),
                exact("no results of sum", x.sum(2)),
                exact("of no axis", x.sum(Vec::<i64>::new())),
                exact("computed", x.sum(1) * 2 + 1),
            ];
            if dtype.is_float() {
                outputs.push(exact("mean", x.mean(1)));
                outputs.push(exact("var", x.var(1, 0)));
                outputs.push(exact("std", x.std(.., 1)));
            }
            outputs
        });
        check_fused(&format!("one {dtype}"), |device| {
            let (x, y) = (ordinary(device, dtype, [], 1), ordinary(device, dtype, [3, 1, 4], 2));
            let mut outputs = all_reductions(&y, &[1], 1);
            outputs.push(exact("0-d", x.sum(..)));
            outputs.push(exact("0-d max", x.max(..)));
            outputs.push(exact("no axis", y.max(Vec::<i64>::new())));
            if dtype.is_float() {
                outputs.push(exact("var of one", y.var(1, 1)));
                outputs.push(exact("var of no axis", y.var(Vec::<i64>::new(), 0)));
            }
            outputs
        });
    }
    for device in devices() {
        let x = ordinary(&device, DType::F32, [3, 0], 1);
        assert!(x.max(1).to_vec::<f32>().is_err() && x.min(..).to_vec::<f32>().is_err());
        assert_eq!(x.sum(1).to_vec::<f32>().unwrap(), [0.0; 3]);
        assert_eq!(x.prod(..).item::<f32>().unwrap(), 1.0);
        assert!(x.mean(..).item::<f32>().unwrap().is_nan());
    }
}

/// Reductions after, before and between other operations.
#[test]
fn reductions_among_other_operations() {
    for (shape, axis) in
        [(&[37, 100][..], 1), (&[100, 37], 0), (&[4, 50, 6], 1), (&[6, 5], 1), (&[5, 5000], 1)]
    {
        check(&format!("around reductions of {shape:?}"), |device| {
            let x = ordinary(device, DType::F32, shape, 15);
            let bias = ordinary(device, DType::F32, &shape[shape.len() - 1..], 16);
            let sum = (&x + &bias).relu().sum_keepdim(axis);
            let top = x.max_keepdim(axis);
            vec![
                exact("prologue", (&x * 2.0 + 1.0).sum(axis)),
                exact("epilogue", x.sum(axis) * 2.0 + 1.0),
                exact("both", &sum + 1.0),
                exact("back", &x - &sum),
                exact("twice", (&x - &top).eq(0.0).sum(axis)),
                exact("of a reduction", sum.sum(..)),
                exact("masked", x.gt(0.0).where_(&x, 0.0).sum(axis)),
                exact("of a constant", x.full_like(3.0).sum(axis)),
                exact("of a broadcast", bias.expand(shape).sum(axis)),
                exact("count", x.gt(0.0).sum(axis)),
                exact("transposed", x.transpose(0, -1).sum(0)),
                exact("two axes apart", x.sum(0).max(..)),
            ]
        });
    }
}

/// A short reduction is a loop of the thread that sweeps along a row: of its elements, no register holds the one.
#[test]
fn short_reductions_within_rows_and_scans() {
    for length in [50, 1024, 3000] {
        check(&format!("sums of four below rows of {length}"), |device| {
            let of = |rows: usize| ordinary(device, DType::F32, [rows, length], rows as u64);
            let (x, y) = (of(4), of(6));
            let products = x.sum_keepdim(0) * (&y * 0.125);
            vec![
                near("softmax", products.softmax(1), 1e-4, 1e-6),
                near("variance", products.var(1, 0), 1e-4, 1e-6),
                exact("cumsum", x.sum(0).cumsum(0)),
                exact("cumsum of rows", (x.sum_keepdim(0) + y).cumsum(1)),
            ]
        });
    }
}

/// Positions against a plain loop: the first NaN, else the first of the equal extremes.
#[test]
fn positions_of_extremes() {
    let first = |values: &[f32], is_better: fn(f32, f32) -> bool| -> i64 {
        let nan = values.iter().position(|x| x.is_nan());
        let best =
            || (1..values.len()).fold(0, |best, i| if is_better(values[i], values[best]) { i } else { best });
        nan.unwrap_or_else(best) as i64
    };
    for length in [1, 2, 7, 33, 300, 5000] {
        let mut values: Vec<f32> = (0..3 * length).map(|i| ((i * 7919) % 101) as f32 - 50.0).collect();
        values[length / 2] = f32::NEG_INFINITY;
        values[length + length / 3] = f32::NAN;
        values[3 * length - 1] = f32::INFINITY;
        let rows: Vec<&[f32]> = values.chunks(length).collect();
        let most: Vec<i64> = rows.iter().map(|row| first(row, |x, best| x > best)).collect();
        let least: Vec<i64> = rows.iter().map(|row| first(row, |x, best| x < best)).collect();
        let devices = crate::common::devices();
        for device in devices.into_iter().chain([Device::interpreter()]) {
            let x = Tensor::from_slice(&values, [3, length]).to(&device);
            let columns = x.t();
            assert_eq!(x.argmax(1).to_vec::<i64>().unwrap(), most, "{length} on {device}");
            assert_eq!(x.argmin(1).to_vec::<i64>().unwrap(), least, "{length} on {device}");
            assert_eq!(columns.argmax(0).to_vec::<i64>().unwrap(), most, "columns of {length} on {device}");
            let everywhere = (length + length / 3) as i64;
            assert_eq!(x.argmin(..).item::<i64>().unwrap(), everywhere, "all of 3 x {length} on {device}");
            let (value, index) = x.max_with_indices(1);
            assert_eq!(index.to_vec::<i64>().unwrap(), most);
            assert!(value.to_vec::<f32>().unwrap()[1].is_nan());
        }
    }
    // The value and its position share one kernel.
    let (value, index) = Tensor::rand([64, 500], 1).max_with_indices(1);
    let explanation = lazuli::compile_for([&value, &index], &lazuli::Target::cuda("sm_90")).unwrap();
    assert_eq!(explanation.kernels().len(), 1);
}

/// Long reductions beside results along them, which do not wait for the reductions' end: split all the same, and as
/// accurate.
#[test]
fn long_reductions_beside_their_elements() {
    for (shape, axis) in [([1, 200_001], 1), ([2, 70_000], 1), ([65_537, 2], 0), ([9_001, 40], 0)] {
        let results = |device: &Device| {
            let x = ordinary(device, DType::F32, shape, 7);
            let mean = x.mean_keepdim(axis);
            mean.eval().unwrap();
            [x.square().sum(axis), (&x * 2.0 + 1.0).abs(), x.max(axis), &x - mean]
        };
        for target in [Target::cpu(), Target::cuda("sm_90")] {
            let program = lazuli::compile_for(&results(&Device::cpu()), &target).unwrap();
            let [kernel] = program.kernels() else { panic!("{shape:?} for {target}: {}", program.explain()) };
            assert!(
                kernel.schedule().to_string().contains("splits="),
                "{shape:?} for {target}: {}",
                kernel.schedule()
            );
        }
        check_fused(&format!("beside {shape:?}"), |device| {
            let [squares, scaled, max, centred] = results(device);
            vec![
                near("squares", squares, 2f64.powi(-19), 0.0),
                exact("scaled", scaled),
                exact("max", max),
                near("centred", centred, 1e-6, 1e-5),
            ]
        });
    }
}

/// Of a row of several axes, whose parts begin within lines: longer and shorter ones, on both sides of a part's length, and
/// axes of one.
#[test]
fn parts_of_rows_of_lines() {
    for shape in [[300, 500], [201, 326], [132, 993], [65_537, 1], [400, 331]] {
        check_on_cpu(&format!("the parts of {shape:?}"), |device| {
            let x = ordinary(device, DType::F32, &shape, 1);
            let line = ordinary(device, DType::F32, &[shape[0], 1], 2);
            let y = &x * &line;
            let (sum, var) = (y.sum(..), y.var(.., 1));
            let positions = [y.argmax(..), y.argmin(..)].map(|at| exact("positions", at));
            let values = [near("sum", sum, 1e-4, 1e-2), near("var", var, 1e-4, 1e-4), exact("product", y)];
            positions.into_iter().chain(values).collect()
        });
    }
}

/// A few columns, as of colours or classes: several of their positions share a vector, and some are left.
#[test]
fn narrow_columns() {
    for (rows, columns) in [(64, 2), (79, 3), (300, 4), (1000, 7), (129, 10), (65, 15), (9000, 3)] {
        check_on_cpu(&format!("{columns} columns of {rows}"), |device| {
            let x = floats(device, DType::F32, [rows, columns], 1.0, 1);
            let images = floats(device, DType::F32, [3, rows, columns], 1.0, 2);
            let counts = (&x * 9.0).cast(DType::I32);
            let bias = floats(device, DType::F32, [columns], 1.0, 3);
            vec![
                near("sums", x.sum(0), 1e-4, 1e-3),
                near("of halves", x.cast(DType::F16).sum(0).cast(DType::F32), 2e-2, 1e-1),
                exact("integers", counts.sum(0)),
                exact("largest and least", x.max(0) - x.min(0)),
                near("of squares", (&x * &x + 1.0).sum(0).sqrt(), 1e-4, 1e-3),
                near("moved", (&x + &bias).mean(0), 1e-4, 1e-4),
                near("of each image", images.mean(1), 1e-4, 1e-4),
                near("of all images", images.sum([0, 1]) * 0.5, 1e-4, 1e-2),
                near("variances", x.var(0, 1), 1e-3, 1e-4),
                exact("any", x.gt(0.9).any(0)),
                near("padded", x.pad(&[(1, 2), (0, 0)], 0.5).sum(0), 1e-4, 1e-3),
            ]
        });
    }
    check_on_cpu("columns without numbers", |device| {
        let x = mixed(device, DType::F32, [200, 3], 0, 7);
        vec![exact("largest", x.max(0)), exact("sums", x.sum(0)), exact("least", x.min(0))]
    });
}

/// Rows of few elements beside results along a row that all of them share: one sweep cannot be of both.
#[test]
fn sums_of_few_beside_rows_that_are_stored() {
    check("distances", |device| {
        let x = floats(device, DType::F32, [48, 2], 1.0, 1);
        let kernel = (-(x.unsqueeze(1) - x.unsqueeze(0)).square().sum(2)).exp();
        let zeros = Tensor::zeros([48, 48], DType::F32).to(device);
        let first = kernel.select(1, 0) - zeros.matmul(zeros.select(0, 0).unsqueeze(1)).squeeze(1);
        vec![near("kernel", kernel, 1e-5, 1e-6), near("its first column", first, 1e-5, 1e-6)]
    });
    check("a table", |device| {
        let x = floats(device, DType::F32, [48, 2], 1.0, 1);
        let weights = floats(device, DType::F32, [48], 1.0, 2);
        let shared = (&x * 2.0).sum(1) + weights.sum(0);
        let table = x.select(1, 0).unsqueeze(1) * &weights;
        vec![near("shared sum", shared, 1e-5, 1e-5), near("table", table, 1e-5, 1e-6)]
    });
}

/// Rows of few elements that are read in another order as well, as cross products do: they are turned on the way in.
#[test]
fn rolled_rows_of_few() {
    for (rows, length) in [(70, 2), (300, 3), (129, 5), (1000, 8), (65, 13)] {
        for shift in [1, -2] {
            check(&format!("{rows} rows of {length} rolled by {shift}"), |device| {
                let x = floats(device, DType::F32, [rows, length], 1.0, 1);
                let y = floats(device, DType::F64, [7, 1, length], 1.0, 2).cast(DType::F32);
                let crossed = x.roll(shift, -1) * y.roll(-1, -1) - x.roll(2, -1) * y.roll(-2, -1);
                vec![
                    near("products", crossed.clone(), 0.0, 0.0),
                    near("their sums", (&crossed * &x).sum(-1), 1e-5, 1e-5),
                    exact("largest", crossed.max(-1)),
                    exact("flipped", (x.flip(1) - &x).max(-1)),
                    near("every second", x.roll(shift, -1).sum(-1) + x.flip(-1).sum(-1), 1e-5, 1e-5),
                ]
            });
        }
    }
}

/// Short sums whose terms are neighbours along another axis than the results are.
#[test]
fn few_terms_of_turned_results() {
    for (dtype, shape) in [(DType::F32, [9, 70, 131]), (DType::F64, [16, 65, 64]), (DType::I32, [5, 80, 200])]
    {
        check_on_cpu(&format!("{dtype} {shape:?}"), |device| {
            let x = ordinary(device, dtype, shape, 2);
            let turned = (x.permute([2, 0, 1]) * 2).abs();
            vec![
                exact("sum", turned.sum(1)),
                exact("largest beside its place", turned.max(1) + turned.argmax(1).cast(dtype)),
                exact("in place of others", turned.min(1) - x.select(0, 0).t()),
            ]
        });
    }
}

/// Rows that all read the same elements across memory's order: a diagonal, a column, and one of a stack.
#[test]
fn rows_beside_what_lies_across_memory() {
    for (dtype, sizes) in [(DType::F32, [70, 512]), (DType::F64, [9, 130]), (DType::BF16, [33, 77])] {
        check_on_cpu(&format!("across, {dtype}"), |device| {
            let [rows, length] = sizes;
            let x = floats(device, dtype, [length.max(rows), length, 6], 2.0, 3).cast(DType::F32);
            let plane = |n| x.select(2, n);
            let (diagonal, column) = (plane(1).diagonal(0, 0, 1), plane(2).select(1, 3).slice(0, ..length));
            let own = plane(0).slice(0, ..rows);
            let same = plane(3).slice(0, ..rows).ge(0.0);
            let apart = (&own - &diagonal).abs();
            vec![
                exact("greatest", (&apart * same.cast(DType::F32)).max(1)),
                exact("least", same.where_(f64::INFINITY, &apart).min(1)),
                near("sum", (&own * &diagonal + column).square().sum(1), 1e-4, 1e-4),
                near("softmax", (&own * &diagonal).softmax(1), 1e-4, 1e-6),
            ]
        });
    }
}

/// Few results of many elements, or of costly ones, are divided among a GPU's blocks.
#[test]
fn few_results_are_divided_among_multiprocessors() {
    let build = |device: &Device, rows: usize| {
        let logits = floats(device, DType::F32, [rows, 3], 2.0, 1);
        let labels = Tensor::arange(0i64, rows as i64, 1).to(device) % 3;
        vec![
            near("columns", floats(device, DType::F32, [63, 511, 13], 1.0, 2).sum(1), 1e-5, 1e-4),
            near("entropy", logits.cross_entropy(&labels, lazuli::Reduction::Mean), 1e-5, 1e-6),
            near("running", floats(device, DType::F32, [4096, 1024], 1.0, 3).cumsum(0), 1e-5, 1e-2),
        ]
    };
    let blocks = |output: &Output| {
        let program = output.tensor().compile_for(&Target::cuda("sm_90")).unwrap();
        program.kernels()[0].grid().iter().product::<u64>()
    };
    let grids: Vec<u64> = build(&Device::cpu(), 8192).iter().map(blocks).collect();
    assert!(grids[0] >= 132 && grids[1] >= 4 && grids[2] >= 100, "{grids:?}");
    check_fused("divided", |device| {
        let mut outputs = build(device, 8192);
        outputs[2] = near("running", floats(device, DType::F32, [4099, 5], 1.0, 3).cumsum(0), 1e-5, 1e-3);
        outputs
    });
}
