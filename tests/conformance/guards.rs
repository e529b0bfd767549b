//! Guards that differ among the lanes of a core's loops: windows that are weighed and reach over a border, on images of few
//! and of many columns, what is padded along the innermost axis, and tiles of which a guard leaves a part.

use lazuli::{Conv2d, DType, Device, Tensor, s};

use crate::common::data::{mixed, ordinary, units};
use crate::common::{check_on_cpu, exact, near};

fn floats(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    let elements: Vec<f32> = units(shape.iter().product(), seed).map(|x| x as f32).collect();
    Tensor::from_vec(elements, shape.to_vec()).to(device)
}

/// Columns on both sides of a vector's length and of rows that are masked from end to end.
#[test]
fn weighed_windows_over_borders() {
    for width in [1, 3, 4, 7, 8, 14, 15, 16, 17, 33, 64, 65, 79, 80, 81, 131] {
        check_on_cpu(&format!("images of {width} columns"), |device| {
            let x = floats(device, &[2, 3, 5, width], 1);
            let of = |kernel: [usize; 2], seed| floats(device, &[3, 1, kernel[0], kernel[1]], seed);
            let depthwise = |x: &Tensor, weight: &Tensor, settings: Conv2d| {
                x.conv2d_with(weight, Some(&floats(device, &[3], 9)), settings.groups(3))
            };
            let conv = Conv2d::new;
            vec![
                near("three", depthwise(&x, &of([3, 3], 2), conv().padding(1)), 1e-6, 1e-6),
                near(
                    "after what is computed",
                    depthwise(&x.exp(), &of([3, 3], 2), conv().padding(1)),
                    1e-5,
                    1e-5,
                ),
                near("five", depthwise(&x, &of([5, 5], 3), conv().padding(2)).relu(), 1e-6, 1e-6),
                near("far", depthwise(&x, &of([3, 3], 4), conv().padding(2).dilation(2)), 1e-6, 1e-6),
                near(
                    "one side",
                    depthwise(&x.pad(&[(0, 0), (0, 0), (0, 0), (2, 0)], 0.0), &of([1, 3], 5), conv()),
                    1e-6,
                    1e-6,
                ),
                near(
                    "every second",
                    depthwise(&x, &of([3, 3], 6), conv().padding(1).stride((1, 2))),
                    1e-6,
                    1e-6,
                ),
                near(
                    "every third",
                    depthwise(&x, &of([3, 3], 6), conv().padding(1).stride((2, 3))),
                    1e-6,
                    1e-6,
                ),
                near(
                    "every fourth",
                    depthwise(&x, &of([3, 3], 7), conv().padding(1).stride((1, 4))),
                    1e-6,
                    1e-6,
                ),
            ]
        });
    }
}

/// What is beyond a border is neither read nor counted, whatever is near.
#[test]
fn special_values_at_borders() {
    check_on_cpu("special values", |device| {
        let x = mixed(device, DType::F32, [3, 4, 14], 0, 1);
        let padded = |value: f64| x.pad(&[(0, 0), (1, 2), (3, 1)], value);
        vec![
            exact("zeros", padded(0.0) * 2.0),
            exact("negative zeros", padded(-0.0) * 2.0),
            exact("not a number", padded(f64::NAN).abs()),
            exact("infinity", padded(f64::INFINITY) - 1.0),
            exact("truths", padded(0.5).gt(0.25)),
            exact("differences", &x - x.pad(&[(0, 0), (0, 0), (1, -1)], 1.0)),
            exact(
                "both neighbours",
                x.pad(&[(0, 0), (0, 0), (1, -1)], 0.0) + x.pad(&[(0, 0), (0, 0), (-1, 1)], 7.0) - &x,
            ),
        ]
    });
}

#[test]
fn every_dtype_has_borders() {
    for dtype in DType::ALL {
        check_on_cpu(&format!("borders of {dtype}"), |device| {
            let mut outputs = Vec::new();
            for width in [6, 14, 21, 90] {
                let x = ordinary(device, dtype, [3, 5, width], 1);
                let padded = x.pad(&[(0, 0), (1, 1), (2, 3)], 1);
                let wide = padded.cast(DType::F32) * 0.5 + padded.cast(DType::I64).cast(DType::F32);
                outputs.push(exact(format!("{width} in 32 bits"), wide));
                for step in 2..5 {
                    let some = padded.slice_step(-1, None, None, step);
                    outputs.push(exact(format!("{width} by {step}"), some.cast(DType::F32) * 0.5));
                    outputs.push(exact(format!("{width} by {step} as they are"), some));
                }
                outputs.push(exact(
                    format!("{width} chosen"),
                    padded.ne(0).where_(&padded, padded.cast(DType::I32).cast(dtype)),
                ));
            }
            outputs
        });
    }
}

/// What all of a row has in common is one number under a guard that differs among lanes; elements around it are not read.
#[test]
fn rows_with_a_number_of_their_own_are_placed() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32, DType::I64] {
        check_on_cpu(&format!("placed rows of {dtype}"), |device| {
            let mut pairs = Vec::new();
            for (row, columns) in [(2, 3), (1, 40), (3, 131)] {
                let x = mixed(device, dtype, [5, columns], 1, 7);
                let each = mixed(device, dtype, [5, 1], 2, 3);
                let table = mixed(device, dtype, [11, columns + 29], 3, 5);
                let part = s![row..row + 5, 7..7 + columns as isize];
                pairs.push(exact("placed", table.slice_assign(part, &x * &each)));
                pairs.push(exact("bordered", (&x + &each).pad([1, 8, 2, 5], 0).abs()));
                pairs.push(exact(
                    "the number itself",
                    each.broadcast_to([5, columns]).pad([1, 8, 2, 5], 0) + 1,
                ));
            }
            pairs
        });
    }
}

/// Statistics of what windows over short and long lines come to.
#[test]
fn reductions_of_windows_over_borders() {
    for width in [5, 28, 70] {
        check_on_cpu(&format!("reduced, {width} wide"), |device| {
            let x = floats(device, &[3, 1, 9, width], 1);
            let y = x.conv2d(&floats(device, &[4, 1, 3, 3], 2), None, 1, 1);
            let mean = y.mean_keepdim([0, 2, 3]);
            vec![
                near("windows", y.clone(), 1e-5, 1e-5),
                near("variance", y.var([0, 2, 3], 0), 1e-5, 1e-5),
                near("normalised", (&y - &mean) / (y.var_keepdim([0, 2, 3], 0) + 1e-5).sqrt(), 1e-4, 1e-4),
            ]
        });
    }
}

/// Borders that begin and end within tiles, between them and beyond, on each side alone and together.
#[test]
fn parts_of_tiles_are_turned() {
    for (rows, columns, dtype) in [(33, 16, DType::F32), (70, 37, DType::F16), (31, 64, DType::I64)] {
        check_on_cpu(&format!("{rows} x {columns} of {dtype}"), |device| {
            let x = (floats(device, &[2, columns, rows], 1) * 100.0).cast(dtype);
            x.eval().expect("elements");
            let x = x.permute([0, 2, 1]);
            let bordered = |sides: [(usize, usize); 3]| x.pad(&sides, 3.0) + 1.0;
            vec![
                exact("rows", bordered([(0, 0), (1, 2), (0, 0)])),
                exact("columns", bordered([(0, 0), (0, 0), (3, 40)])),
                exact("all", bordered([(1, 1), (40, 1), (5, 0)])),
                exact("joined rows", Tensor::cat(&[x.abs(), &x + 1.0, x.slice(1, 5..)], 1).neg()),
                exact("joined columns", Tensor::cat(&[x.abs(), &x + 1.0], 2).neg()),
                exact(
                    "beside what is not",
                    Tensor::cat(&[x.abs(), Tensor::ones([2, 3, columns], dtype).to(device)], 1),
                ),
            ]
        });
    }
}

/// Joins that are reduced along their own axis, in parts of one position and of several, and stored.
#[test]
fn joins_are_reduced_part_by_part() {
    for (parts, columns) in [(2, 100), (3, 16), (9, 70), (16, 33), (17, 33)] {
        check_on_cpu(&format!("{parts} parts of {columns} columns"), |device| {
            let x = floats(device, &[parts, 5, columns], 1);
            let each =
                |n: usize| x.select(0, n as isize).roll([n as isize % 3 - 1, 1], [0, 1]) * (n + 1) as f32;
            let stack = Tensor::stack(&(0..parts).map(each).collect::<Vec<_>>(), 0);
            let long: Vec<Tensor> = (0..parts).map(|n| each(n).repeat([n % 3 + 2, 1])).collect();
            let long = Tensor::cat(&long, 0);
            vec![
                near("sum", stack.sum(0), 1e-6, 1e-5),
                exact("stored", stack.clone()),
                exact("position", stack.argmax(0)),
                near("variance", long.var(0, 1), 1e-5, 1e-5),
                exact("largest", long.max(0)),
                near("weights", long.exp().softmax(0), 1e-6, 1e-5),
            ]
        });
    }
}

/// Neighbours in images of bytes, added up: half a register of bytes for the sums' numbers of 64 bits.
#[test]
fn bytes_inside_of_borders_are_added_up() {
    for dtype in [DType::Bool, DType::U8, DType::I8, DType::F16] {
        check_on_cpu(&format!("neighbours of {dtype}"), |device| {
            let x = ordinary(device, dtype, [5, 70], 1);
            let padded = x.pad([[1, 1], [1, 2]], 1);
            let around = padded.i(s![..-2, ..-3]).maximum(padded.i(s![1..-1, 2..-1])).maximum(&x);
            let sum = around.cast(DType::I64) + padded.i(s![2.., 3..]).cast(DType::I64);
            vec![exact("sum", sum.sum(..)), exact("of rows", sum.sum(1)), exact("largest", around.max(..))]
        });
    }
}
