//! Combining at computed positions: against plain loops, on every device against the interpreter, the same bits for any
//! number of threads, and in one kernel with what is computed before and after. `tests/positions.rs` has the positions
//! that there are not.

use lazuli::{DType, Device, Fusion, ScatterReduction, Target, Tensor};

use crate::common::data::{floats, mixed, ordinary};
use crate::common::{check, check_fused, devices, exact, near};

const REDUCTIONS: [ScatterReduction; 5] = [
    ScatterReduction::Sum,
    ScatterReduction::Prod,
    ScatterReduction::Mean,
    ScatterReduction::Amax,
    ScatterReduction::Amin,
];

/// `count` positions below `extent`, in no order, some of them several times.
fn positions(count: usize, extent: usize, seed: usize) -> Vec<i64> {
    (0..count).map(|n| ((n * 7919 + seed * 31 + n * n) % extent) as i64).collect()
}

fn index(device: &Device, shape: &[usize], extent: usize, seed: usize) -> Tensor {
    Tensor::from_vec(positions(shape.iter().product(), extent, seed), shape).to(device)
}

/// Whole numbers, whose sums are exact in any order.
fn whole(device: &Device, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    Tensor::from_vec((0..count).map(|n| ((n * 31) % 23) as f32 - 11.0).collect(), shape).to(device)
}

fn zeros(device: &Device, shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32).to(device)
}

/// Messages along edges, weighed by head: columns of two axes, one of which the weights do not have.
#[test]
fn columns_of_several_axes() {
    for (nodes, heads, length) in [(300, 4, 16), (40, 3, 5), (5000, 2, 8), (20_000, 2, 9)] {
        check_fused(&format!("{nodes} nodes, {heads} × {length}"), |device| {
            let edges = 3000;
            let (from, to) = (index(device, &[edges], nodes, 1), index(device, &[edges], nodes, 2));
            let (x, weights) = (whole(device, &[nodes, heads, length]), whole(device, &[edges, heads]));
            let messages = x.index_select(0, &from) * weights.unsqueeze(2);
            let sums = zeros(device, &[nodes, heads, length]).index_add(0, &to, &messages);
            let weight = whole(device, &[heads, 1]);
            let most = zeros(device, &[nodes, heads, length]).scatter_reduce(
                0,
                &to.reshape([edges, 1, 1]).expand([edges, heads, length]),
                &(&messages * &weight),
                ScatterReduction::Amax,
                true,
            );
            vec![exact("sums", &sums * &weight + 1.0), exact("greatest", most)]
        });
    }
}

#[test]
fn sums_of_rows_and_elements_against_a_loop() {
    // Rows, positions, columns and elements of each: what blocks, warps, ranges, tiles and parts divide.
    let sizes = [
        (1, 1, 1, 1),
        (1, 5, 1, 7),
        (1, 16, 1, 1000),
        (1, 256, 1, 40_000),
        (1, 20_000, 1, 3_000),
        (1, 3_000, 1, 40_000),
        (1, 200_000, 1, 60_000),
        (1, 6_000, 3, 33_000),
        (1, 5_000, 40, 4_000),
        (3, 4, 5, 6),
        (2, 1, 3, 4),
        (1, 9, 33, 200),
        (1, 16, 64, 33_000),
        (1, 700, 200, 300),
        (40, 6, 2, 10),
        (5, 300, 1, 900),
        (70_000, 2, 1, 3),
        (1, 5_000, 16, 33_000),
        (2, 1_100, 64, 300),
    ];
    for (rows, extent, columns, count) in sizes {
        for by_column in [false, true] {
            if by_column && rows * count * columns > 300_000 {
                continue;
            }
            let full = [rows, count, columns];
            let shape = if by_column { full.to_vec() } else { vec![count] };
            let at = positions(shape.iter().product(), extent, 3);
            let source = whole(&Device::cpu(), &full).to_vec::<f32>().unwrap();
            let mut expected = vec![1.0f32; rows * extent * columns];
            for (n, x) in source.iter().enumerate() {
                let (row, element, column) = (n / columns / count, n / columns % count, n % columns);
                let position = if by_column { at[n] } else { at[element] } as usize;
                expected[(row * extent + position) * columns + column] += x;
            }
            for device in devices() {
                let x = zeros(&device, &[rows, extent, columns]) + 1.0;
                let (at, source) =
                    (Tensor::from_vec(at.clone(), shape.clone()).to(&device), whole(&device, &full));
                let sum =
                    if by_column { x.scatter_add(1, &at, &source) } else { x.index_add(1, &at, &source) };
                let context = format!("{rows}, {extent}, {columns}, {count}, {by_column} on {device}");
                assert!(sum.to_vec::<f32>().unwrap() == expected, "{context}");
            }
        }
    }
}

/// Each row has lists of its own, of elements that columns share.
#[test]
fn rows_with_an_index_each_and_none_of_their_columns() {
    check("scatter_add by an index of the rows", |device| {
        let x = whole(device, &[3, 1_100, 64]);
        let at = Tensor::from_vec(positions(3 * 300, 1_100, 5), [3, 300, 1]).to(device);
        let source = whole(device, &[3, 300, 64]);
        vec![exact("sums", x.scatter_add(1, &at.expand([3, 300, 64]), &source))]
    });
}

#[test]
fn every_reduction_along_every_axis() {
    for dtype in [DType::F32, DType::F16, DType::I32, DType::U8, DType::F64] {
        for axis in 0..3 {
            check(&format!("scatter_reduce of {dtype} along {axis}"), |device| {
                let x = mixed(device, dtype, [3, 4, 5], 1, 1);
                let mut shape = [2, 4, 3];
                shape[axis] = 6;
                let (at, source) = (index(device, &shape, 3, axis), ordinary(device, dtype, [6, 6, 6], 5));
                let mut outputs = Vec::new();
                for reduce in REDUCTIONS {
                    for include_self in [true, false] {
                        let result = x.scatter_reduce(axis as isize - 3, &at, &source, reduce, include_self);
                        let label = format!("{reduce:?}, {include_self}");
                        let is_exact = matches!(reduce, ScatterReduction::Amax | ScatterReduction::Amin);
                        outputs.push(match dtype {
                            DType::F16 if !is_exact => near(label, result, 4e-3, 4e-3),
                            dtype if dtype.is_float() && !is_exact => near(label, result, 1e-5, 1e-5),
                            _ => exact(label, result),
                        });
                    }
                }
                outputs
            });
        }
    }
}

#[test]
fn counts_and_histograms_against_a_loop() {
    for (count, bins) in [(0, 3), (1, 1), (1000, 7), (50_000, 256), (5_000, 9_000), (40_000, 200_000)] {
        let at = positions(count, bins, 1);
        let mut counts = vec![0i64; bins];
        at.iter().for_each(|&at| counts[at as usize] += 1);
        for device in devices().into_iter().chain([Device::interpreter()]) {
            let context = format!("{count} in {bins} on {device}");
            let numbers = Tensor::from_slice(&at, [count]).to(&device);
            assert_eq!(numbers.bincount(bins).to_vec::<i64>().unwrap(), counts, "{context}");
            // The same numbers as floats, between the limits of their parts.
            let floats = numbers.cast(DType::F32) + 0.5;
            let parts = floats.histc(bins, 0.0, bins as f64).to_vec::<f32>().unwrap();
            assert!(parts.iter().zip(&counts).all(|(a, &b)| *a == b as f32), "{context}");
        }
    }
    let x = [-0.001f32, -0.0, 0.0, 0.999, 1.0, 2.5, 4.0, 4.001, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for device in devices().into_iter().chain([Device::interpreter()]) {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let x = Tensor::from_slice(&x, [x.len()]).to(&device).cast(dtype);
            let below = if dtype == DType::BF16 { [2.0, 2.0] } else { [3.0, 1.0] };
            // In BF16, 0.999 is 1 and 4.001 is 4.
            let last = if matches!(dtype, DType::BF16 | DType::F16) { 2.0 } else { 1.0 };
            let parts = x.histc(4, 0.0, 4.0).cast(DType::F64).to_vec::<f64>().unwrap();
            assert_eq!(parts, [below[0], below[1], 1.0, last], "{dtype} on {device}");
        }
        for dtype in [DType::F32, DType::F64] {
            // The distance between the limits overflows, and so would that from the lower one, times the bins.
            let most = dtype.finfo().unwrap().max;
            let x = Tensor::from_slice(&[-1.0, -0.5, 0.0, 0.75, 1.0], [5]).to(&device) * most;
            let histogram =
                |bins, min, max| x.cast(dtype).histc(bins, min, max).cast(DType::F64).to_vec::<f64>();
            assert_eq!(histogram(4, -most, most).unwrap(), [1.0, 1.0, 1.0, 2.0], "{dtype} on {device}");
            assert_eq!(histogram(5, 0.0, most).unwrap(), [1.0, 0.0, 0.0, 1.0, 1.0], "{dtype} on {device}");
        }
        let weights = Tensor::from_slice(&[0.5f32, -1.0, f32::INFINITY, 2.0], [4]).to(&device);
        let numbers = Tensor::from_slice(&[1u8, 1, 3, 0], [4]).to(&device);
        let sums = numbers.bincount_with(4, &weights).to_vec::<f32>().unwrap();
        assert_eq!(sums, [2.0, -0.5, 0.0, f32::INFINITY], "{device}");
        let sums = numbers.bincount_with(4, &weights.cast(DType::F16)).to_vec::<f64>().unwrap();
        assert_eq!(sums, [2.0, -0.5, 0.0, f64::INFINITY], "{device}");
    }
}

#[test]
fn the_last_of_several_stays() {
    // Few positions of many elements, which blocks and cores take in parts; columns; many of few.
    for (count, extent, columns) in [(50_000usize, 7usize, 1usize), (300, 20, 40), (5, 3_000, 1)] {
        let at = positions(count * columns, extent, 3);
        let source: Vec<f32> = (0..count * columns).map(|n| n as f32).collect();
        let mut expected = vec![-0.5f32; extent * columns];
        let places = at.iter().enumerate().map(|(n, &at)| at as usize * columns + n % columns);
        places.zip(&source).for_each(|(place, &value)| expected[place] = value);
        for device in devices().into_iter().chain([Device::interpreter()]) {
            let index = Tensor::from_slice(&at, [count, columns]).to(&device);
            let source = Tensor::from_slice(&source, [count, columns]).to(&device);
            let x = zeros(&device, &[extent, columns]) - 0.5;
            let y = x.scatter(0, &index, &source);
            assert_eq!(kernels(&y), 1, "{count} in {extent}");
            assert!(y.to_vec::<f32>().unwrap() == expected, "{count} in {extent} on {device}");
            let met = x.scatter(0, &index, 2).to_vec::<f32>().unwrap();
            let is_met = expected.iter().map(|&value| if value < 0.0 { -0.5 } else { 2.0 });
            assert!(met.into_iter().eq(is_met), "{count} in {extent} on {device}");
        }
    }
}

fn kernels(y: &Tensor) -> usize {
    y.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len()
}

/// Of all results few are other ones than without the scatter: on the CPU the others are stored by a loop of their own.
#[test]
fn few_elements_beside_many_results() {
    // Rows, positions, columns and elements.
    for (rows, extent, columns, count) in [
        (1, 20_001, 1, 9),
        (5, 701, 1, 13),
        (1, 300, 37, 3),
        (1, 150, 300, 4),
        (3, 97, 5, 2),
        (3, 64, 1, 1),
        (1, 32, 1, 1),
    ] {
        check_fused(&format!("{count} elements in {rows} × {extent} × {columns}"), |device| {
            let mut shape = [rows, extent, columns];
            let x = ordinary(device, DType::F32, shape, 1);
            shape[1] = count;
            let source = ordinary(device, DType::F32, shape, 2);
            // Half of the positions, so that some are met twice.
            let each = index(device, &shape, extent.div_ceil(2), 3);
            let of_all = index(device, &[count], extent.div_ceil(2), 4);
            let picked = x.gather(1, &each);
            let hits = Tensor::zeros(x.shape().unwrap(), DType::I32).to(device).scatter_add(
                1,
                &each,
                &each.cast(DType::I32),
            );
            let mean = x.scatter_reduce(1, &each, &source, ScatterReduction::Mean, true);
            let outputs = vec![
                exact("put", x.scatter(1, &each, &source)),
                exact("a number", x.scatter(1, &each, 2.5)),
                exact("rows put", x.index_copy(1, &of_all, &source)),
                exact("at an index", x.transpose(0, 1).index_put(&[&of_all], source.transpose(0, 1), false)),
                exact("added", x.scatter_add(1, &each, &source)),
                exact("rows added", x.index_add(1, &of_all, &source)),
                near("mean", mean, 1e-6, 1e-6),
                exact("most", x.scatter_reduce(1, &each, &source, ScatterReduction::Amax, false)),
                exact("before and after", (&x * 2.0).scatter(1, &each, &source.relu()).abs() + &x),
                exact(
                    "of what was there",
                    x.scatter(1, &each, picked.lt(0.0).where_(&picked * 1.5, &picked / 1.5)),
                ),
                exact("changed where any is", hits.gt(0).where_(&x * 3.0, &x)),
                exact("halves", x.cast(DType::F16).scatter(1, &each, &source.cast(DType::F16))),
                exact("truths", x.gt(0.0).scatter(1, &each, &source.gt(0.0))),
            ];
            outputs
        });
    }
    let cpu = Device::cpu();
    let x = zeros(&cpu, &[1 << 16]);
    let put = x.scatter(0, index(&cpu, &[40], 1 << 16, 1), whole(&cpu, &[40]));
    let text = put.compile_for(&Target::cpu()).unwrap().source();
    assert!(text.contains(", sparse)"), "{text}");
}

#[test]
fn special_values_stay_where_few_elements_go() {
    check("special values beside few elements", |device| {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0];
        let x = Tensor::from_slice(&values, [5, 1]).to(device).expand([5, 40]);
        let source = Tensor::from_slice(&values, [5, 1]).to(device);
        let at = Tensor::from_slice(&[7i64, 7, 0, 39, 12], [5, 1]).to(device);
        let mut outputs = vec![
            exact("put", x.scatter(1, &at, &source)),
            exact("signs", x.scatter_add(1, &at, &source).reciprocal()),
            exact("signs of what is put", x.scatter(1, &at, -0.0).reciprocal()),
        ];
        for reduce in REDUCTIONS {
            for include_self in [true, false] {
                let result = x.scatter_reduce(1, &at, source.flip(0), reduce, include_self);
                outputs.push(exact(format!("{reduce:?}, {include_self}"), result));
            }
        }
        outputs
    });
}

#[test]
fn every_index_dtype() {
    check("indices", |device| {
        let (x, source) = (ordinary(device, DType::F32, [5, 4], 1), ordinary(device, DType::F32, [6, 4], 2));
        let dtypes = [DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::U32];
        let at = |dtype| index(device, &[6], 5, 3).cast(dtype);
        dtypes.map(|dtype| near(dtype.name(), x.index_add(0, &at(dtype), &source), 1e-6, 1e-6)).into()
    });
}

#[test]
fn shapes_that_are_special() {
    check("special shapes", |device| {
        let number = |value: f32| Tensor::scalar(value).to(device);
        let zero = Tensor::scalar(0i64).to(device);
        let none = Tensor::from_vec(Vec::<i64>::new(), [0]).to(device);
        let x = ordinary(device, DType::F32, [3, 4], 1);
        let mean = ScatterReduction::Mean;
        vec![
            exact("0-d", number(7.0).scatter_add(0, &zero, &number(2.0))),
            exact("0-d mean", number(7.0).scatter_reduce(-1, &zero, &number(2.0), mean, true)),
            exact("0-d index", x.index_add(0, &zero, &x.slice(0, ..1))),
            exact("nothing to add", x.index_add(1, &none, &x.slice(1, ..0))),
            exact("nothing to scatter", x.scatter_add(0, &none.reshape([0, 4]), &x)),
            exact("nothing in rows", x.scatter_reduce(1, &none.reshape([3, 0]), &x, mean, false)),
            exact("to nothing", x.slice(0, ..0).index_add(0, &none, &x.slice(0, ..0))),
            exact(
                "no columns",
                x.slice(1, ..0).index_add(0, &zero.reshape([1]), &x.slice(0, ..1).slice(1, ..0)),
            ),
            exact(
                "no rows",
                x.slice(0, ..0).index_add(1, &zero.reshape([1]), &x.slice(0, ..0).slice(1, ..1)),
            ),
            exact("no bins", none.bincount(0)),
            exact("none in bins", none.bincount(3)),
            exact("one position", x.slice(0, ..1).index_add(0, &none.pad(&[(0, 3)], 0), &x)),
            exact(
                "of a constant",
                Tensor::ones([3], DType::F32).index_add(0, &zero.reshape([1]), &number(1.0).reshape([1])),
            ),
            exact(
                "to a constant",
                Tensor::zeros([3, 4], DType::F32).scatter_add(0, &index(device, &[3, 4], 3, 1), &x),
            ),
        ]
    });
}

#[test]
fn nan_and_infinity_stay_where_they_go() {
    check("special values", |device| {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1.0, f32::MAX, f32::MAX, -1.0];
        let source = Tensor::from_slice(&values, [8]).to(device);
        let at = Tensor::from_slice(&[0i64, 1, 2, 3, 4, 5, 5, 6], [8]).to(device);
        let meet = Tensor::from_slice(&[0i64, 1, 1, 2, 3, 4, 5, 0], [8]).to(device);
        let x =
            Tensor::from_slice(&[0.0f32, -0.0, 1.0, -0.0, 2.0, -1.0, f32::NAN, 3.0, -0.0], [9]).to(device);
        let mut outputs = Vec::new();
        for (index, name) in [(&at, "apart"), (&meet, "meeting")] {
            for reduce in REDUCTIONS {
                for include_self in [true, false] {
                    let result = x.scatter_reduce(0, index, &source, reduce, include_self);
                    // In F64 the largest numbers have a sum.
                    let label = format!("{reduce:?}, {include_self}, {name}");
                    let is_sum = matches!(reduce, ScatterReduction::Sum | ScatterReduction::Mean);
                    outputs.push(match is_sum && name == "apart" {
                        true => exact(label, result.isnan()),
                        false => exact(label, result),
                    });
                }
            }
        }
        outputs
    });
}

#[test]
fn sums_have_the_same_bits_however_often_and_by_however_many() {
    let sizes = [
        (16, 1, 40_000),
        (20_000, 1, 30_000),
        (7_000, 2, 40_000),
        (3_000, 40, 5_000),
        (300, 40, 3_000),
        (5, 200, 40_000),
    ];
    for (extent, columns, count) in sizes {
        let sums = |device: &Device| {
            let source = floats(device, DType::F32, [count, columns], 1.0, 3);
            let at = index(device, &[count], extent, 5);
            let full = index(device, &[count, columns], extent, 7);
            let x = zeros(device, &[extent, columns]);
            let results = [x.index_add(0, &at, &source), x.scatter_add(0, &full, &source)];
            results
                .map(|sum| sum.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<u32>>())
        };
        let of_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sums(&Device::cpu()))
        };
        let first = of_threads(1);
        for threads in [2, 3, 8] {
            assert!(of_threads(threads) == first, "{extent}, {columns}, {count} on {threads} threads");
        }
        if lazuli::cuda_is_available() {
            let device = Device::cuda(0);
            let first = sums(&device);
            (0..20).for_each(|_| assert!(sums(&device) == first, "{extent}, {columns}, {count} on {device}"));
        }
    }
}

/// Rows that a GPU's block collects: a lane reads its own columns, not the whole row.
#[test]
fn lanes_read_their_own_columns() {
    for columns in [4, 32, 48, 64, 96] {
        let rows = |device: &Device, positions, count| {
            let at = index(device, &[count], positions, 1);
            zeros(device, &[positions, columns]).index_add(0, &at, &whole(device, &[count, columns]))
        };
        let program = rows(&Device::cpu(), 1000, 65_536).compile_for(&Target::cuda("sm_90")).unwrap();
        let source = program.source();
        assert!(source.contains("collected=4") && !source.contains("tile0"), "{source}");
        // As many loads as a lane has columns.
        assert!(source.contains(&format!("k < {}u", columns.div_ceil(32))) || columns <= 32, "{source}");
        check_fused(&format!("rows of {columns}"), |device| vec![exact("sums", rows(device, 700, 500))]);
    }
}

/// Counts and sums of integers at many positions: each index is read once, and what is added in memory comes to the same in any
/// order. Floats have their order.
#[test]
fn integers_of_many_positions_are_added_in_memory() {
    let (count, bins) = (60_000, 600_000);
    let counts = |device: &Device| {
        let at = index(device, &[count], bins, 1) % 7000;
        let added = Tensor::from_vec(
            (0..2 * count).map(|n| (n as i32).wrapping_mul(77_777_777)).collect(),
            [count, 2],
        );
        let (pairs, sums) = (at.reshape([count / 2, 2]) * 3, Tensor::zeros([bins, 2], DType::I32).to(device));
        vec![
            exact("counts", at.bincount(bins)),
            exact("sums", sums.index_add(0, &at, &added.to(device)) * 2 + 1),
            exact("columns", sums.scatter_add(0, &pairs, &added.to(device))),
            exact("nothing", at.slice(0, ..0).bincount(bins)),
        ]
    };
    for output in &counts(&Device::cpu())[..2] {
        let program = output.tensor().compile_for(&Target::cuda("sm_90")).unwrap();
        let source = program.source();
        assert!(program.kernels().len() == 1 && source.contains("atomic)"), "{source}");
        assert!(source.contains("atomicAdd((unsigned"), "{source}");
    }
    check_fused("integers", counts);
    let floats = Tensor::zeros([bins], DType::F32).index_add(
        0,
        &index(&Device::cpu(), &[count], bins, 1),
        &Tensor::ones([count], DType::F32),
    );
    let source = floats.compile_for(&Target::cuda("sm_90")).unwrap().source();
    assert!(!source.contains("atomic)"), "{source}");
    for device in devices() {
        let beyond = index(&device, &[count], bins, 1) + 1;
        let error = beyond.bincount(bins).to_vec::<i64>().err();
        assert_eq!(error.is_some(), beyond.max(0).item::<i64>().unwrap() >= bins as i64, "{device}");
    }
}

#[test]
fn what_is_before_and_after_is_in_the_kernel() {
    let kernels = |results: &[&Tensor]| {
        let program = lazuli::compile_for(results.iter().copied(), &Target::cuda("sm_90")).unwrap();
        program.explain().kernels()
    };
    let device = Device::cpu();
    let (x, source) = (ordinary(&device, DType::F32, [50, 8], 1), ordinary(&device, DType::F32, [600, 8], 2));
    let at = index(&device, &[600], 50, 1);
    let sums = |source: &Tensor| x.index_add_with(0, &at, source, 0.5);
    assert_eq!(kernels(&[&(sums(&(source.exp() * 2.0)).relu() + &x).cast(DType::F16)]), 1);
    assert_eq!(kernels(&[&sums(&source.sum_keepdim(1).broadcast_to([600, 8]))]), 1);
    let whole = at.unsqueeze(1).broadcast_to([600, 8]);
    let reduced = |reduce, include_self| x.scatter_reduce(0, &whole, &source, reduce, include_self);
    assert_eq!(kernels(&[&reduced(ScatterReduction::Mean, false)]), 1);
    assert_eq!(kernels(&[&reduced(ScatterReduction::Amax, false), &reduced(ScatterReduction::Sum, true)]), 1);
    assert_eq!(kernels(&[&((&at * 3 + 1).remainder(50)).bincount(50)]), 1);
    // What needs a result elsewhere waits for it.
    assert_eq!(kernels(&[&sums(&source).softmax(1)]), 2);
    assert_eq!(kernels(&[&sums(&source).cumsum(1)]), 2);
    assert_eq!(kernels(&[&sums(&source.softmax(0))]), 2);
    assert_eq!(kernels(&[&at.bincount(50).index_select(0, &at).bincount(700)]), 2);
    let of_many: Vec<Tensor> = (0..6).map(|n| x.index_add(0, &at, &(&source * f64::from(n)))).collect();
    assert!(kernels(&of_many.iter().collect::<Vec<_>>()) <= 3);
    check_fused("scatters with others", |device| {
        let (x, source) =
            (ordinary(device, DType::F32, [50, 8], 1), ordinary(device, DType::F32, [600, 8], 2));
        let at = index(device, &[600], 50, 1);
        let picked = source.index_select(0, &index(device, &[600], 600, 9)).tanh();
        let sums = x.index_add_with(0, &at, &picked, 0.5);
        let windows = source.pad(&[(1, 1), (0, 0)], 0.0).unfold(0, 3, 1).sum(-1);
        vec![
            near(
                "means of rows",
                x.scatter_reduce(
                    0,
                    &at.unsqueeze(1).broadcast_to([600, 8]),
                    &source,
                    ScatterReduction::Mean,
                    false,
                ),
                1e-5,
                1e-5,
            ),
            near("gathered before", sums.relu() + &x, 1e-5, 1e-5),
            near("softmax after", sums.softmax(1), 1e-5, 1e-5),
            near("windows before", x.index_add(0, &at, &windows), 1e-5, 1e-5),
            near("softmax before", x.index_add(0, &at, &source.softmax(0)), 1e-5, 1e-5),
            near("transposed", x.t().index_add(1, &at, &source.t()) * 2.0, 1e-5, 1e-5),
            near("reversed", x.flip(0).index_add(0, &at.flip(0), &source.flip(1)), 1e-5, 1e-5),
            exact("of what was counted", at.bincount(50).index_select(0, &at).bincount(700)),
            near("into itself", x.index_add(0, &index(device, &[50], 50, 2), &x), 1e-5, 1e-5),
            near("f16", x.cast(DType::F16).index_add(0, &at, &source.cast(DType::F16)), 4e-3, 4e-3),
        ]
    });
}

#[test]
fn halves_are_rounded_once() {
    let device_results = |fusion: Fusion, device: Device| {
        let zeros = |count: usize| Tensor::zeros([count], DType::I64).to(&device);
        let halves = |values: &[f32]| Tensor::from_slice(values, [values.len()]).to(&device).cast(DType::F16);
        let [large, small] = [halves(&[40_000.0, 40_000.0]), halves(&[400.0, 400.0])];
        let many = halves(&[0.5; 100_000]);
        let x = halves(&[-60_000.0]);
        let mean = |x: &Tensor, source: &Tensor, include_self| {
            let at = zeros(source.shape().unwrap().elements());
            x.scatter_reduce(0, &at, source, ScatterReduction::Mean, include_self)
        };
        let results = [
            x.scatter_add(0, &zeros(2), &large),
            x.index_add(0, &zeros(2), &large),
            halves(&[0.0]).index_add_with(0, &zeros(2), &large, 0.5),
            halves(&[0.001]).scatter_reduce(0, &zeros(2), &small, ScatterReduction::Prod, true),
            mean(&x, &large, true),
            mean(&x, &large, false),
            mean(&x, &many, false),
        ];
        let values = |x: &Tensor| x.cast(DType::F32).item::<f32>().unwrap();
        lazuli::with_fusion(fusion, || results.each_ref().map(values))
    };
    for device in devices().into_iter().chain([Device::interpreter()]) {
        for fusion in [Fusion::On, Fusion::Off] {
            let results = device_results(fusion, device);
            // 0.001 of F16 is 1,049 of 2^-20; the spacing of F16 at 160 is 1/8.
            let expected = [20_000.0, 20_000.0, 40_000.0, 160.125, 6_668.0, 40_000.0, 0.5];
            assert_eq!(results, expected, "{device} {fusion:?}");
        }
    }
}

#[test]
fn an_index_without_elements_changes_nothing() {
    check("nothing", |device| {
        let nowhere = |shape: [usize; 2]| Tensor::zeros(shape, DType::I64).to(device);
        let x = ordinary(device, DType::F32, [3, 4], 1);
        let empty = ordinary(device, DType::F32, [0, 4], 1);
        let add =
            |x: &Tensor, at: [usize; 2]| x.scatter_add(0, &nowhere(at), &ordinary(device, DType::F32, at, 2));
        vec![
            exact("no rows", add(&x, [0, 4])),
            exact("no columns", add(&x, [5, 0])),
            exact("an empty tensor", add(&empty, [3, 0])),
        ]
    });
}
