//! Joins and borders of own elements along the innermost axis, in vectors, and lanes that are far apart in memory.

use lazuli::{DType, Device, PadMode, Target, Tensor};

use crate::common::data::{mixed, ordinary};
use crate::common::{Output, check_fused, check_on_cpu, devices, exact, near};

/// Pairs of elements turned by angles, as rotary positions have it: halves joined again along the innermost axis.
fn turned(x: &Tensor, half: isize) -> Tensor {
    let (device, dtype) = (x.device().unwrap(), x.dtype().unwrap());
    let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
    let count = |most: isize| Tensor::arange(0i64, most as i64, 1).to(&device).cast(wide);
    let angles = count(x.shape().unwrap()[1] as isize).unsqueeze(1) * (count(half) * -0.3).exp();
    let (cos, sin) = (angles.cos().cast(dtype), angles.sin().cast(dtype));
    let (a, b) = (x.slice(2, 0..half), x.slice(2, half..));
    Tensor::cat(&[&a * &cos - &b * &sin, &a * &sin + &b * &cos], 2)
}

#[test]
fn factors_of_products_are_joined() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12)] {
        for (length, half) in [(40, 16), (67, 13), (130, 32)] {
            check_on_cpu(&format!("{dtype}, {length} positions of {half} pairs"), |device| {
                let input = |seed| ordinary(device, dtype, [2, length, 2 * half as usize], seed) * 0.25;
                let (q, k, v) = (turned(&input(1), half), turned(&input(2), half), input(3));
                let scores = q.matmul(&k.transpose(1, 2));
                vec![
                    near("weighted", scores.softmax(-1).matmul(&v), tolerance, tolerance),
                    near("scores", scores, tolerance, 10.0 * tolerance),
                ]
            });
        }
    }
}

/// Borders of the tensor's own elements, and neighbours that are read through them.
fn bordered(x: &Tensor, mode: PadMode) -> Vec<Output> {
    let wide = x.pad_with(&[(1, 2), (3, 2)], mode);
    let (rows, columns) = (x.shape().unwrap()[0] as isize, x.shape().unwrap()[1] as isize);
    let at = |y: isize, x: isize| wide.slice(0, y..y + rows).slice(1, x..x + columns);
    let around = at(0, 3) + at(2, 3) - at(1, 1) * 2 + at(1, 5);
    vec![
        exact("alone", wide.clone()),
        exact("neighbours", around),
        exact("backwards", wide.flip(1).slice(1, 1..)),
        exact("every second", wide.slice_step(1, 1, None, 2) + wide.slice_step(1, 0, -1, 2)),
    ]
}

#[test]
fn borders_are_read() {
    for mode in [PadMode::Reflect, PadMode::Circular, PadMode::Replicate] {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::U8, DType::I32, DType::I64] {
            for shape in [[4, 300], [5, 37], [3, 16]] {
                check_on_cpu(&format!("{dtype} {shape:?} with borders"), |device| {
                    bordered(&ordinary(device, dtype, shape, 1), mode)
                });
            }
        }
    }
    check_on_cpu("special values beside borders", |device| {
        let x = mixed(device, DType::F32, [3, 50], 0, 1);
        bordered(&x, PadMode::Reflect)
    });
}

#[test]
fn joins_are_read_at_other_places() {
    for dtype in [DType::F32, DType::I32, DType::F64] {
        check_on_cpu(&format!("joins of {dtype}"), |device| {
            let part = |columns: usize, seed| ordinary(device, dtype, [6, columns], seed);
            let joined = Tensor::cat(&[&part(20, 1) * 2, part(1, 2), &part(43, 3) - 1, part(7, 4)], 1);
            let sums = joined.sum_keepdim(1);
            vec![
                near("shares", (&joined - &sums) * 0.5, 1e-6, 1e-6),
                exact("shifted", joined.slice(1, 1..) + joined.slice(1, ..-1)),
                exact("turned", joined.flip(1) + &joined),
                exact("padded", joined.pad(&[(0, 0), (5, 9)], 1) + 1),
            ]
        });
    }
}

/// Every seventh element, of which costly operations are worth vectors that come lane by lane.
#[test]
fn lanes_are_far_apart() {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        check_on_cpu(&format!("columns of {dtype}"), |device| {
            let x = ordinary(device, dtype, [301, 7], 1);
            let column = |n: isize| x.select(1, n);
            let padded = x.pad(&[(2, 3), (1, 1)], 0.5).select(1, 3);
            let tolerance = if dtype == DType::F16 { 2e-3 } else { 1e-5 };
            vec![
                near("sines", column(2).sin() + column(6).cos() * column(0), tolerance, tolerance),
                near("guarded", padded.tanh().exp() + 1, tolerance, tolerance),
                near("backwards", column(5).flip(0).exp().log1p(), tolerance, tolerance),
            ]
        });
    }
}

/// A line that joins another number of parts each time: of parts whose values are there, parts of such, and parts to be computed,
/// of equal and of other lengths, along each axis.
#[test]
fn joins_of_every_number_of_parts() {
    let bits = |x: &Tensor| -> Vec<u32> { x.to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect() };
    for device in devices() {
        for axis in 0..3 {
            let part = |n: usize, extent: usize| {
                let mut shape = [2, 3, 4];
                shape[axis] = extent;
                let x = mixed(&device, DType::F32, shape, n * 7, 1);
                match n % 4 {
                    0 => x,
                    1 => x * 2.0,
                    2 => Tensor::cat(&[&x, &x], axis as isize).narrow(axis as isize, 1, extent),
                    _ => {
                        x.eval().unwrap();
                        x.narrow(axis as isize, 0, extent.min(2))
                    }
                }
            };
            for is_equal in [true, false] {
                for count in [3, 5, 1, 4, 9] {
                    let parts: Vec<Tensor> = (0..count).map(|n| part(n * 4, 4)).collect();
                    let others: Vec<Tensor> = (0..count).map(|n| part(n, n * 5 % 7 + 1)).collect();
                    let parts = if is_equal { parts } else { others };
                    let joined = Tensor::cat(&parts, axis as isize);
                    let extents: Vec<usize> = parts.iter().map(|part| part.shape().unwrap()[axis]).collect();
                    assert_eq!(joined.shape().unwrap()[axis], extents.iter().sum::<usize>());
                    let after = (&joined + 1.0).sum(axis as isize);
                    let whole: Vec<Tensor> = joined.split_sizes(&extents, axis as isize).unwrap();
                    joined.eval().unwrap();
                    for (own, part) in whole.iter().zip(&parts) {
                        assert_eq!(bits(own), bits(part), "{count} along {axis} on {device}");
                    }
                    let again = (&joined + 1.0).sum(axis as isize);
                    assert_eq!(bits(&after), bits(&again), "{count} along {axis} on {device}");
                }
            }
        }
    }
}

/// Random numbers have no device: a line that joins another number of them copies all the same.
#[test]
fn joins_of_random_numbers_are_copied() {
    let joined = |count: usize, axis: isize| {
        let parts: Vec<Tensor> = (0..count as u64).map(|n| Tensor::rand([3, 4], n)).collect();
        (Tensor::cat(&parts, axis), parts)
    };
    for axis in [0, 1] {
        for count in [3, 5, 4, 9] {
            let (all, parts) = joined(count, axis);
            let after = &all * 2.0;
            after.eval().unwrap();
            assert_eq!(all.is_evaluated(), count == 4 || count == 9, "{count} along {axis}");
            for device in devices() {
                let moved = (&all * 2.0).to(&device).to_vec::<f32>().unwrap();
                let own: Vec<Vec<f32>> = parts.iter().map(|part| part.to_vec().unwrap()).collect();
                let rows = if axis == 0 { 1 } else { 3 };
                let expected: Vec<f32> = (0..rows)
                    .flat_map(|row| own.iter().map(move |part| (part, row)))
                    .flat_map(|(part, row)| {
                        part[row * 12 / rows..(row + 1) * 12 / rows].iter().map(|x| x * 2.0)
                    })
                    .collect();
                assert_eq!(moved, expected, "{count} along {axis} on {device}");
            }
        }
    }
}

/// What is read at computed positions of a join of many parts reads it from memory: else each element would compare its
/// position with all of them. Of few parts it is one kernel.
#[test]
fn joins_are_read_at_computed_positions() {
    for (count, kernels) in [(4, 1), (40, 2)] {
        let result = |device: &Device| {
            let part = |n| ordinary(device, DType::F32, [6, 8], n as u64) * (1.0 + n as f64);
            let parts: Vec<Tensor> = (0..count).map(part).collect();
            let index = Tensor::randint(0, count as i64, [count, 6, 1], 9).to(device);
            index.eval().unwrap();
            // A line that joins another number of parts copies them.
            let joined = if count == 4 { Tensor::stack(&parts, 0) } else { Tensor::cat(&parts, 0) };
            joined.reshape([count as isize, 6, 8]).relu().take_along_axis(&index, 0) + 1.0
        };
        let program = result(&Device::cpu()).compile_for(&Target::cpu()).unwrap();
        assert_eq!(program.kernels().len(), kernels, "{count} parts: {}", program.explain());
        check_on_cpu(&format!("{count} parts"), |device| vec![exact("read", result(device))]);
    }
}

/// A sum over a join goes through part after part: no element asks which of them it is in.
#[test]
fn sums_over_many_parts_have_no_conditions() {
    let joined = |device: &Device, count: usize| {
        let parts: Vec<Tensor> = (0..count).map(|n| mixed(device, DType::F32, [40 + n], n, 1)).collect();
        Tensor::cat(&parts, 0)
    };
    for count in [5, 9, 15] {
        let source =
            joined(&Device::cpu(), count).square().sum(0).compile_for(&Target::cpu()).unwrap().source();
        // Of loops with conditions the compiler is asked to make vectors; others have them in their text.
        assert!(!source.contains("#pragma omp simd"), "{source}");
        check_on_cpu(&format!("sums over {count} parts"), |device| {
            vec![near("squares", joined(device, count).square().sum(0), 1e-5, 1e-4)]
        });
    }
}

/// Few parts along a reduced axis are values side by side: what is stored of them, and zeros' signs, are as without.
#[test]
fn stacks_are_reduced() {
    for dtype in [DType::F32, DType::F16, DType::F64, DType::I32, DType::U8] {
        for (count, shape) in [(2, [3, 37]), (3, [1, 64]), (9, [5, 20]), (16, [2, 33]), (4, [3, 0])] {
            for axis in [0, 1, 2] {
                check_fused(&format!("{count} of {dtype} {shape:?} stacked along {axis}"), |device| {
                    let part = |n: usize| {
                        let x = mixed(device, dtype, shape, n, 3);
                        if n % 3 == 1 { x.roll([1, 2], [0, 1]) } else { x }
                    };
                    let parts: Vec<Tensor> = (0..count).map(part).collect();
                    let all = Tensor::stack(&parts, axis);
                    let zeros = Tensor::stack(vec![Tensor::zeros_like(&parts[0]).neg(); count], axis);
                    let mut outputs = vec![
                        exact("greatest", all.max(axis)),
                        exact("least, and all", all.min_keepdim(axis) + &all),
                        exact("place", all.argmax(axis)),
                        exact("some", all.gt(1).any(axis)),
                        exact("zeros", zeros.sum(axis)),
                    ];
                    if !shape.contains(&0) {
                        outputs.push(exact("of both axes", all.max([axis, (axis + 1) % 3])));
                    }
                    if dtype.is_float() {
                        let eps = dtype.finfo().unwrap().eps;
                        let finite = all.clamp(-4.0, 4.0).nan_to_num(0.5, None, None);
                        let length = (finite.square().sum_keepdim(axis) + 1.0).sqrt();
                        outputs.extend([
                            near("sum", finite.sum(axis), 8.0 * eps, 8.0 * eps),
                            near("sum of both", finite.sum([axis, (axis + 1) % 3]), 16.0 * eps, 64.0 * eps),
                            near("scaled", &finite / length, 8.0 * eps, 8.0 * eps),
                            near("softmax", finite.softmax(axis), 8.0 * eps, 8.0 * eps),
                        ]);
                    } else {
                        outputs.push(exact("sum", all.sum(axis)));
                        outputs.push(exact("product", all.prod(axis)));
                    }
                    outputs
                });
            }
        }
    }
}

/// Steps of a network that combines halves of blocks, then halves of these: all in one kernel or few.
fn combined_halves(x: &Tensor, steps: &[usize], both: fn(&Tensor, &Tensor) -> [Tensor; 2]) -> Tensor {
    let shape = x.shape().unwrap();
    let (rows, length) = (shape[0], shape[1]);
    steps.iter().fold(x.clone(), |x, &half| {
        let blocks = x.reshape([rows, length / (2 * half), 2, half]);
        Tensor::stack(&both(&blocks.select(2, 0), &blocks.select(2, 1)), 2).reshape([rows, length])
    })
}

#[test]
fn halves_are_combined() {
    for (dtype, rows, length, steps) in [
        (DType::F32, 5, 96, [48, 24, 12]),
        (DType::F32, 3, 40, [10, 5, 1]),
        (DType::F64, 2, 144, [72, 36, 9]),
        (DType::I32, 7, 80, [8, 40, 2]),
        // Short rows, many of them: lanes go from row to row.
        (DType::F32, 70, 8, [1, 2, 4]),
        (DType::F32, 1, 8, [4, 2, 1]),
        (DType::F64, 35, 32, [1, 2, 4]),
        (DType::F32, 50, 64, [4, 2, 1]),
        (DType::I64, 19, 24, [4, 12, 2]),
    ] {
        check_on_cpu(&format!("{dtype}, halves of {length}"), |device| {
            let x = mixed(device, dtype, [rows, length], 0, 1);
            let sorted = combined_halves(&x, &steps, |a, b| [a.minimum(b), a.maximum(b)]);
            let waves = combined_halves(&x, &steps, |a, b| [a + b, a - b]);
            let parts = match length {
                ..24 => [x.slice(1, ..6), waves.slice(1, 1..7), x.slice(1, 2..8)],
                _ => [x.slice(1, ..8), waves.slice(1, 3..11), x.slice(1, 16..24)],
            };
            vec![
                exact("in order", sorted.clone()),
                exact("sums and differences", &waves * 2),
                exact("both", sorted - waves),
                exact("parts", Tensor::stack(&parts, 1)),
            ]
        });
    }
}

/// Waves of both axes taken apart, their sums and differences, and together again.
fn interleaved_both_ways(x: &Tensor) -> Tensor {
    let shape = x.shape().unwrap();
    let (rows, columns) = (shape[1], shape[2]);
    let quarter = |down: isize, right: isize| x.slice_step(1, down, None, 2).slice_step(2, right, None, 2);
    let (a, b, c, d) = (quarter(0, 0), quarter(0, 1), quarter(1, 0), quarter(1, 1));
    let together = |a: &Tensor, b: &Tensor, axis: isize, shape: [usize; 3]| {
        Tensor::stack(&[a + b, a - b], axis).reshape(shape)
    };
    let batch = shape[0];
    let (low, high) = (
        together(&a, &b, 2, [batch, rows, columns / 2]),
        together(&c, &(d * 2), 2, [batch, rows, columns / 2]),
    );
    together(&low, &high, 3, [batch, rows, columns])
}

#[test]
fn halves_of_both_axes_are_interleaved() {
    for dtype in [DType::F32, DType::F64, DType::I32, DType::U8] {
        for [rows, columns] in [[6, 64], [10, 70], [4, 8]] {
            check_on_cpu(&format!("{dtype}, {rows}×{columns} interleaved"), |device| {
                let x = mixed(device, dtype, [3, rows, columns], 0, 1);
                // Where a slice begins is an argument, beside axes that are unrolled as a whole.
                let begins =
                    ordinary(device, dtype, [2, 2, 2 * columns], 2).slice(2, 5..5 + columns as isize);
                let other = ordinary(device, dtype, [2, 2, columns], 3);
                let halves = Tensor::cat(&[&other + &begins, &other - &begins], 1);
                vec![exact("both axes", interleaved_both_ways(&x)), exact("begins elsewhere", halves)]
            });
        }
    }
}

/// Windows that lie in one part of a join, and those that lie in several: each part has a loop without conditions.
#[test]
fn windows_go_over_joins() {
    for (dtype, step) in
        [(DType::F32, 1), (DType::F32, 2), (DType::F64, 3), (DType::I32, 2), (DType::BF16, 4)]
    {
        for lengths in [[200, 131, 90], [33, 1, 70], [5, 64, 2]] {
            check_on_cpu(&format!("{dtype} in steps of {step} over {lengths:?}"), |device| {
                let part = |seed: usize| mixed(device, dtype, [3, lengths[seed]], seed, 7);
                let (first, second) = (part(0), part(1).flip(1));
                let three = Tensor::cat(&[&first, &second, &(part(2) * 2)], 1);
                let both = Tensor::cat(&[&first, &first.flip(1)], 1);
                vec![
                    exact("largest", three.unfold(1, 5, step).max(2)),
                    exact("largest both ways", both.unfold(1, 4, step).max(2)),
                    exact("neighbours", three.slice(1, 2..) - three.slice(1, ..-2)),
                    exact("of a series", both.select(0, 1).unfold(0, 4, step).max(1)),
                ]
            });
        }
    }
}

#[test]
fn windows_in_one_part_of_a_join_have_no_conditions() {
    let x = Tensor::from_vec(vec![0.5f32; 4 * 512], [4, 512]);
    let joined = Tensor::cat(&[&x, &x.flip(1)], 1);
    let program = joined.unfold(1, 5, 2).max(2).compile_for(&Target::cpu()).unwrap();
    // Only where windows have elements of both.
    assert!(program.source().contains("for (idx i1 = 254; i1 < 256; ++i1)"), "{}", program.source());
    assert_eq!(program.source().matches("inside0").count(), 3, "{}", program.source());
}
