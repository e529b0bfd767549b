//! Proves that rows of few elements go through the lanes of a core, whatever stands beside their reductions: results along
//! them, positions that are computed, guards, and reductions of other axes that their elements need; and that what is reduced
//! of rows of products is not made again for another row. Rows of many short lines, too.

use lazuli::{DType, Device, Pool2d, Target, Tensor, compile_for, explain};

use crate::common::data::{floats, mixed, ordinary};
use crate::common::{check_on_cpu, exact, near, tolerance};

/// The schedules of the kernels of these tensors.
fn schedules(tensors: &[Tensor]) -> Vec<String> {
    let program = compile_for(tensors, &Target::cpu()).unwrap();
    program.kernels().iter().map(|kernel| kernel.schedule().to_string()).collect()
}

fn numbers<const N: usize>(device: &Device, shape: [usize; N], seed: u64) -> Tensor {
    floats(device, DType::F32, shape, 2.0, seed)
}

fn index(device: &Device, count: usize, extent: usize, seed: usize) -> Tensor {
    let positions = (0..count).map(|n| ((n * 7919 + seed * 31 + n * n) % extent) as i64).collect();
    Tensor::from_vec(positions, [count]).to(device)
}

/// Vectors from one point to another, and of length 1: as of edges in a graph.
fn edges(points: &Tensor, from: &Tensor, to: &Tensor) -> [Tensor; 2] {
    let along = points.index_select(0, from) - points.index_select(0, to);
    let length = (along.square().sum_keepdim(1) + 1e-4).sqrt();
    [along / &length, length]
}

#[test]
fn rows_at_computed_positions() {
    for dtype in [DType::BF16, DType::F32, DType::F64] {
        for length in [2, 3, 4, 7, 16, 17] {
            for count in [1, 15, 16, 300] {
                check_on_cpu(&format!("{dtype} {count} rows of {length}"), |device| {
                    let points = ordinary(device, dtype, [53, length], 1);
                    let [from, to] = [2, 3].map(|seed| index(device, count, 53, seed));
                    let [along, lengths] = edges(&points, &from, &to);
                    vec![
                        near("along", along, 1e-2, 1e-2),
                        near("lengths", lengths, 1e-2, 1e-2),
                        exact("largest", points.index_select(0, &from).max(1)),
                        near("softmax", points.index_select(0, &to).softmax(1), 1e-2, 1e-2),
                    ]
                });
            }
        }
    }
    let (points, cpu) = (numbers(&Device::cpu(), [2000, 3], 1), Device::cpu());
    let along = edges(&points, &index(&cpu, 9000, 2000, 1), &index(&cpu, 9000, 2000, 2));
    assert!(schedules(&along)[0].starts_with("column_reduce") && schedules(&along).len() == 1);
}

/// Tiles of rows of every length are turned in registers on the way in and out, the last one of fewer rows.
#[test]
fn rows_of_every_length_are_turned() {
    let few: &[usize] = &[6, 13, 20, 37];
    let all: &[usize] = &[5, 6, 7, 9, 10, 12, 15, 17, 20, 23, 24, 25, 31, 40, 41];
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::I16, DType::I32, DType::F64] {
        for &length in if dtype == DType::F32 { all } else { few } {
            for rows in [3, 67, 133] {
                check_on_cpu(&format!("{dtype} {rows} rows of {length}"), |device| {
                    let x = ordinary(device, dtype, [rows, length], length as u64);
                    let greatest = x.max_keepdim(1);
                    let beyond = (&x - &greatest).abs();
                    let mut outputs = vec![
                        exact("where the largest is", x.argmax(1)),
                        exact("largest", x.max(1)),
                        exact("below it", beyond),
                    ];
                    if dtype.is_float() {
                        let close = if dtype.size() == 2 { 1e-2 } else { 1e-5 };
                        outputs.push(near("softmax", x.softmax(1), close, close));
                        outputs.push(near("variance", x.var(1, 1), close, close));
                    }
                    outputs
                });
            }
        }
    }
    let turns = |dtype: DType, length: usize| {
        let x = Tensor::placeholder([1000, length], dtype);
        x.softmax(1)
            .compile_for(&Target::cpu())
            .unwrap()
            .source()
            .contains(&format!("lz_turn_some_{dtype}(out0"))
    };
    assert!(
        [5, 7, 10, 15, 20, 24].iter().all(|&length| turns(DType::F32, length) && turns(DType::BF16, length))
    );
    assert!([8, 16, 25, 32].iter().all(|&length| !turns(DType::F32, length)));
}

/// What follows from rows at computed positions and from rows in order is one loop over the elements of all of them; what is
/// there once a row, or in all rows, is brought in with the former.
#[test]
fn elementwise_of_short_rows_at_computed_positions() {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        for length in [2, 3, 4, 5, 8] {
            for count in [1, 17, 257, 700] {
                check_on_cpu(&format!("{dtype} {count} rows of {length}"), |device| {
                    let scores = ordinary(device, dtype, [count, length], 1);
                    let nodes = ordinary(device, dtype, [53, length], 2);
                    let at = index(device, count, 53, 3);
                    let (of_row, of_column) =
                        (ordinary(device, dtype, [count, 1], 4), ordinary(device, dtype, [length], 5));
                    let of_edge = nodes.index_select(0, &at);
                    let batch = ordinary(device, dtype, [3, count, length], 6);
                    vec![
                        near("softmax of edges", (&scores - &of_edge).exp() / of_edge.exp(), 1e-2, 1e-2),
                        near("once a row", of_edge.tanh() * &of_row + &of_column, 1e-2, 1e-2),
                        near("of each batch", (&batch * &of_edge).sigmoid(), 1e-2, 1e-2),
                        exact("turned", scores.flip([1]).relu() + of_edge.abs()),
                    ]
                });
            }
        }
    }
}

/// What goes along the same axis of the same elements is one loop for each result.
#[test]
fn short_reductions_beside_each_other() {
    for dtype in [DType::BF16, DType::F32, DType::F64] {
        let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
        let t = tolerance(wide);
        for (channels, inner) in [(2, 70), (9, 64), (12, 300), (16, 1000), (25, 33), (64, 65)] {
            check_on_cpu(&format!("{dtype} {channels} channels of {inner}"), |device| {
                let x = ordinary(device, dtype, [5, channels, inner], 1).cast(wide);
                let e = x.exp();
                let centred = &e - e.mean_keepdim(1);
                let (largest, at) = (e.max(1), x.argmax(1));
                vec![
                    near("largest", largest, t, t),
                    exact("where", at),
                    near("mean", e.mean(1), t, t),
                    near("sum of squares", e.square().sum(1), t, t),
                    near("variance", e.var(1, 0), t, t),
                    near("deviation", centred.abs().max(1), t, t),
                    exact("any", x.gt(1.0).any(1)),
                ]
            });
        }
    }
}

/// Differences along rows and columns of a square have equally many elements, which end at others.
#[test]
fn rows_of_lines_that_end_elsewhere() {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        for (count, side) in [(1, 300), (3, 9), (40, 65), (700, 16), (2000, 8)] {
            check_on_cpu(&format!("{dtype} {count} images of {side}"), |device| {
                let images = ordinary(device, dtype, [count, side, side], 1);
                let along = |axis| images.narrow(axis, 1, side - 1) - images.narrow(axis, 0, side - 1);
                let [rows, columns] = [1, 2].map(|axis| along(axis).abs());
                // Results of 16 bits are rounded when they are added.
                let tolerance = if dtype == DType::F16 { 1e-2 } else { 1e-5 };
                vec![
                    near("of all", rows.mean(..) + columns.mean(..), tolerance, tolerance),
                    near("of each", rows.sum([1, 2]) + columns.sum([1, 2]), tolerance, tolerance),
                    exact("largest", rows.max(..).maximum(columns.max(..))),
                ]
            });
        }
    }
    let images = numbers(&Device::cpu(), [40, 65, 65], 1);
    let along = |axis| (images.narrow(axis, 1, 64) - images.narrow(axis, 0, 64)).abs().mean(..);
    let program = compile_for(&[along(1) + along(2)], &Target::cpu()).unwrap();
    assert_eq!(program.kernels().len(), 1);
    assert!(!program.source().contains("/ 64 * "), "no position is divided:\n{}", program.source());
}

/// Rows of groups, such as the best of each beam: whole rows are turned into tiles.
#[test]
fn rows_of_short_reductions() {
    for dtype in [DType::F16, DType::F32, DType::F64, DType::I32, DType::I64] {
        for (count, groups, each) in [(1, 8, 8), (3, 5, 7), (130, 8, 8), (300, 3, 9), (1001, 4, 5)] {
            check_on_cpu(&format!("{dtype} {count} rows of {groups} groups of {each}"), |device| {
                let x = ordinary(device, dtype, [count, groups * each], 1).reshape([count, groups, each]);
                let best = x.max(2);
                vec![
                    exact("which", best.argmax(1)),
                    exact("least", best.min(1)),
                    exact("sum", x.min(2).max(1)),
                ]
            });
        }
    }
    let x = numbers(&Device::cpu(), [1000, 64], 1).reshape([1000, 8, 8]);
    let program = compile_for(&[x.max(2).argmax(1)], &Target::cpu()).unwrap();
    assert!(program.source().contains("lz_turn_some_f32(tile0"), "{}", program.source());
}

/// A position that is out of range is found, though its row is copied first.
#[test]
fn rows_that_there_are_not() {
    let points = numbers(&Device::cpu(), [20, 2], 1);
    let from = Tensor::from_vec((0..100).map(|n| if n == 77 { 20i64 } else { n % 20 }).collect(), [100]);
    let [along, _] = edges(&points, &from, &Tensor::zeros([100], DType::I64));
    let error = along.to_vec::<f32>().unwrap_err().to_string();
    assert!(error.contains("20"), "{error}");
}

/// What is pooled is stored as well, with a border and without.
#[test]
fn pooled_and_stored() {
    for dtype in [DType::F16, DType::F32, DType::I32] {
        for size in [2, 6, 34, 70] {
            check_on_cpu(&format!("{dtype} {size}"), |device| {
                let x = ordinary(device, dtype, [size, size], 1);
                let (twice, half) = (&x * 2, size / 2);
                let border = x.pad([(1, 1), (1, 1)], 0);
                let laplace =
                    &x * 4 - border.slice(0, 2..).slice(1, 1..-1) - border.slice(1, ..-2).slice(0, 1..-1);
                vec![
                    exact("sums", twice.reshape([half, 2, half, 2]).sum([1, 3])),
                    exact("stored", twice),
                    exact("largest", laplace.reshape([1, 1, size, size]).max_pool2d(2, 2)),
                    exact("with a border", laplace),
                ]
            });
        }
    }
    let x = numbers(&Device::cpu(), [128, 128], 1) * 0.5;
    let both = [x.clone(), x.reshape([64, 2, 64, 2]).sum([1, 3])];
    assert_eq!(schedules(&both), ["column_reduce(threads=64x1, vec=1)"]);
}

/// Rows of three whose parts are joined, beside what follows from them.
#[test]
fn joined_rows_and_their_products() {
    for count in [1, 16, 333] {
        check_on_cpu(&format!("{count} rows"), |device| {
            let (x, weights) = (numbers(device, [count], 1), numbers(device, [3], 2));
            let basis = Tensor::stack([x.ones_like(), x.clone(), x.square()], 1);
            let value = (&basis * weights).sum(1);
            let more = value.gt(0.5);
            let masked = &basis * more.cast(DType::F32).unsqueeze(1);
            vec![near("value", value, 1e-6, 1e-6), exact("more", more), near("masked", masked, 1e-6, 1e-6)]
        });
    }
}

/// The nearest centre by squares of both: those of the points are each row's own, along another axis.
#[test]
fn elements_that_need_another_reduction() {
    for (points, centres, features) in [(1, 3, 2), (40, 16, 8), (500, 5, 3), (200, 12, 20)] {
        check_on_cpu(&format!("{points} points, {centres} centres, {features}"), |device| {
            let (x, c) = (numbers(device, [points, features], 1), numbers(device, [centres, features], 2));
            let squares = x.square().sum_keepdim(1);
            let distances = &squares - x.matmul(c.t()) * 2.0 + c.square().sum(1);
            let scaled = x.square().sum_keepdim(1).sqrt() * &x;
            vec![
                near("nearest", distances.min(1), 1e-4, 1e-4),
                exact("which", distances.argmin(1)),
                near("squares", squares, 1e-5, 1e-5),
                near("scaled", scaled.max(1), 1e-5, 1e-5),
            ]
        });
    }
    let (x, c) = (numbers(&Device::cpu(), [20_000, 8], 1), numbers(&Device::cpu(), [16, 8], 2));
    let squares = x.square().sum_keepdim(1);
    let nearest = (&squares - x.matmul(c.t()) * 2.0 + numbers(&Device::cpu(), [16], 3)).argmin(1);
    assert_eq!(schedules(&[squares, nearest]), ["column_reduce(threads=256x1, vec=1, all)"]);
}

/// Codes of rows of products, and whether any of some tables has the code of another row: as many results as there are codes,
/// but not those of the same rows.
#[test]
fn reductions_of_reduced_products() {
    let codes = |x: &Tensor, planes: &Tensor| {
        let bits = x.matmul(planes).reshape([x.shape().unwrap()[0], 4, 12]).gt(0.0).cast(DType::I64);
        (bits << Tensor::arange(0, 12, 1)).sum(2)
    };
    check_on_cpu("codes", |device| {
        let (x, planes) = (numbers(device, [300, 32], 1), numbers(device, [32, 48], 2));
        let [all, asked] = [codes(&x, &planes), codes(&x.slice(0, 7..11), &planes)];
        let found = all.unsqueeze(0).eq(asked.unsqueeze(1)).any(2);
        vec![exact("found", found), exact("codes", all.clone()), exact("turned", all.t() + 1)]
    });
    let (x, planes) = (numbers(&Device::cpu(), [20_000, 32], 1), numbers(&Device::cpu(), [32, 48], 2));
    let (all, asked) = (codes(&x, &planes), Tensor::arange(0, 16, 1).reshape([4, 4]));
    let found = all.unsqueeze(0).eq(asked.unsqueeze(1)).any(2);
    let kernels = explain([&all, &found]).unwrap().kernels();
    assert!(kernels > 1, "{kernels} kernels");
}

/// Rows and columns of a square matrix are not read by one loop.
#[test]
fn rows_and_columns_of_a_square() {
    check_on_cpu("both", |device| {
        let x = numbers(device, [130, 130], 1);
        let by_rows = x.logsumexp(1);
        vec![near("rows", by_rows, 1e-5, 1e-5), near("columns", x.t().logsumexp(1), 1e-5, 1e-5)]
    });
    let x = numbers(&Device::cpu(), [512, 512], 1);
    let both = schedules(&[x.logsumexp(1), x.t().logsumexp(1)]);
    let kind = |name: &str| both.iter().filter(|schedule| schedule.starts_with(name)).count();
    assert_eq!((kind("row_reduce"), kind("column_reduce")), (1, 1), "{both:?}");
    // Short ones neither, which one thread of a GPU adds up.
    let x = numbers(&Device::cpu(), [512, 60, 60], 1);
    assert_eq!(schedules(&[x.sum(1), x.sum(2)]).len(), 2);
}

/// Windows before a sort, a short product after a long one, and short sums at computed positions are kernels of their own:
/// beside those loops they had no lanes.
#[test]
fn short_reductions_beside_other_loops() {
    let program = |device: &Device| {
        let image = numbers(device, [1, 1, 100, 60], 1);
        let largest = image.max_pool2d_with(Pool2d::new(5).stride(1).padding(2));
        let peaks = largest.eq(&image).where_(&largest, 0.0).reshape([-1]).topk(5, 0, true);

        let (x, weight) = (numbers(device, [128, 256], 2), numbers(device, [256, 256], 3));
        let (low, up) = (numbers(device, [128, 8], 4), numbers(device, [256, 8], 5));
        let adapted = (x.linear(&weight, None) + low.linear(&up, None) * 2.0).gelu();

        let nodes = numbers(device, [1000, 32], 6).linear(numbers(device, [32, 32], 7), None);
        let heads = nodes.reshape([1000, 4, 8]);
        let scores = [8, 9].map(|seed| (&heads * numbers(device, [4, 8], seed)).sum(2));
        let [from, to] = [10, 11].map(|seed| index(device, 8000, 1000, seed));
        let along = (scores[0].index_select(0, from) + scores[1].index_select(0, to)).leaky_relu(0.2);
        [vec![peaks.0, peaks.1], vec![adapted], vec![along, heads]]
    };
    check_on_cpu("beside", |device| {
        let [peaks, adapted, along] = program(device);
        let all = peaks.into_iter().chain(adapted).chain(along);
        let names = ["peaks", "places", "adapted", "along", "heads"];
        all.zip(names).map(|(x, name)| near(name, x, 1e-4, 1e-3)).collect()
    });
    let kernels = program(&Device::cpu()).map(|tensors| schedules(&tensors).len());
    assert_eq!(kernels, [2, 2, 3]);
}

/// Rows of several lines, none of which the lanes divide: a line is in one vector, a part of which has nothing.
#[test]
fn rows_of_short_lines() {
    let cases = [
        (DType::F32, 10),
        (DType::F32, 20),
        (DType::BF16, 7),
        (DType::F64, 5),
        (DType::F64, 14),
        (DType::I32, 15),
    ];
    for (dtype, width) in cases {
        check_on_cpu(&format!("{dtype} lines of {width}"), |device| {
            let x = ordinary(device, dtype, [37, 3, 29], 1).narrow(2, 4, width);
            let mut results = vec![exact("largest", x.max([1, 2])), near("sum", x.sum([1, 2]), 1e-2, 1e-2)];
            if dtype.is_float() {
                results.push(near("variance", x.var([1, 2], 1), 1e-2, 1e-2));
                results.push(near("pooled", x.adaptive_avg_pool1d(2), 1e-2, 1e-2));
            }
            results
        });
    }
    let x = numbers(&Device::cpu(), [1000, 12, 80], 1);
    assert_eq!(
        schedules(&[x.narrow(2, 3, 20).sum([1, 2])]),
        ["row_reduce(threads_per_row=32, rows_per_block=64, vec=1)"]
    );
}

/// Sums of many short lines beside something for each place in a line, or for each line: points with weights, boxes, colours. On
/// both sides of a part's length, and few lines.
#[test]
fn sums_of_short_lines() {
    for (lines, length) in
        [(5, 3), (64, 2), (1000, 3), (65_537, 3), (70_000, 2), (900, 5), (14_000, 7), (300, 8)]
    {
        check_on_cpu(&format!("{lines} lines of {length}"), |device| {
            let [x, y] = [1, 2].map(|seed| floats(device, DType::F32, [lines, length], 1.0, seed));
            let weights = floats(device, DType::F32, [length], 1.0, 3);
            let line = floats(device, DType::F32, [lines, 1], 1.0, 4);
            let counts = (&x * 9.0).cast(DType::I32);
            let images = floats(device, DType::F64, [2, 70, length], 1.0, 5);
            vec![
                near("of squares", ((&x - &y).square() * &weights).mean(..), 1e-4, 1e-4),
                exact("the largest", (&x - &weights).abs().max(..)),
                near("from each line", (&x - &line).abs().sum(..), 1e-4, 1e-2),
                exact("integers", (&counts * weights.gt(0.0)).sum(..)),
                exact("any", x.gt(&weights + 5.0).any(..)),
                near("of each image", (&images * &weights).sum([1, 2]), 1e-12, 1e-12),
                exact("where", (&x - &weights).argmax(..)),
            ]
        });
    }
    check_on_cpu("lines without numbers", |device| {
        let (x, weights) =
            (mixed(device, DType::F32, [200, 3], 0, 7), floats(device, DType::F32, [3], 1.0, 1));
        vec![exact("largest", (&x * &weights).max(..)), exact("sums", (&x * &weights).sum(..))]
    });
}

/// Costly elements of rows of 5, 6 and 7 that share something: compilers leave them one after the other, so that lanes go along
/// the rows, and what lies across is turned.
#[test]
fn rows_of_few_share_what_is_costly() {
    for (dtype, width) in
        [(DType::F32, 5), (DType::F32, 6), (DType::F32, 7), (DType::F64, 5), (DType::F64, 6)]
    {
        check_on_cpu(&format!("{dtype} rows of {width}"), |device| {
            let x = ordinary(device, dtype, [411, width], 1);
            let (row, column) = (ordinary(device, dtype, [411, 1], 2), ordinary(device, dtype, [width], 3));
            let both = (&x * &row).tanh();
            vec![
                near("of rows", both.clone(), tolerance(dtype), tolerance(dtype)),
                near("of both", (&row * &column).sin(), tolerance(dtype), tolerance(dtype)),
                near("beside", both / (row.exp() + column), tolerance(dtype), tolerance(dtype)),
            ]
        });
    }
    let (x, row) = (numbers(&Device::cpu(), [1000, 5], 1), numbers(&Device::cpu(), [1000, 1], 2));
    let source = |y: Tensor| compile_for([&y], &Target::cpu()).unwrap().source();
    assert!(!source((&x * &row).tanh()).contains("omp simd"), "lanes are explicit");
    assert!(source(&x * &row).contains("omp simd"), "cheap ones are left as they are");
}

/// Distances of all pairs, stored beside the sums of their rows. Of points of many numbers, columns are in the lanes, and what is stored
/// along a row is turned; of few, rows are.
#[test]
fn rows_of_pairs_are_stored_beside_their_sums() {
    let pairs = |x: &Tensor| {
        let squares = (x.unsqueeze(1) - x.unsqueeze(0)).square().sum(2);
        let near = squares.lt(1.5).cast(DType::F32);
        [&near / (&squares + 0.5), near.sum(1), squares]
    };
    for (count, numbers) in [(17, 2), (33, 2), (70, 2), (33, 7), (70, 9)] {
        check_on_cpu(&format!("{count} points of {numbers} numbers"), |device| {
            let [shares, sums, squares] = pairs(&ordinary(device, DType::F32, [count, numbers], 1));
            vec![
                near("shares", shares, 1e-5, 1e-5),
                exact("sums", sums),
                near("squares", squares, 1e-5, 1e-5),
            ]
        });
    }
    for (width, is_turned) in [(2, false), (7, true)] {
        let points = numbers(&Device::cpu(), [300, width], 1);
        let program = compile_for(&pairs(&points), &Target::cpu()).unwrap();
        assert_eq!(program.source().contains("lz_turn_some_f32(out"), is_turned, "{}", program.source());
    }
}
