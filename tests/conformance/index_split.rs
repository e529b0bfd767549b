//! Quotients along the innermost axis, from rolls, repeated rows and flattened axes: loops are split where these change.

use lazuli::{DType, Device, Tensor};

use crate::common::data::ordinary;
use crate::common::{Output, check_on_cpu, exact, near};

/// Rolls by constants, which begin at offsets, and what is read backwards or at every second place of them.
fn rolled(x: &Tensor) -> Vec<Output> {
    let eight = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)];
    let neighbours = eight.map(|(rows, columns)| x.roll([rows, columns], [0, 1]));
    let sum = neighbours.into_iter().reduce(|sum, x| sum + x).unwrap_or_else(|| x.clone());
    vec![
        exact("neighbours", sum),
        exact("one", x.roll(7, 1)),
        exact("padded", x.roll(3, 1).pad(&[(0, 0), (2, 5)], 1)),
        exact("backwards", x.roll(5, 1).flip(1) + x.roll(-9, 1)),
        exact("every second", x.roll(11, 1).slice_step(1, None, None, 2) * x.slice_step(1, 1, None, 2)),
        exact("flat", x.flatten(..).roll(40, 0) - x.flatten(..)),
        exact("twice", sides(&sides(x))),
    ]
}

fn sides(x: &Tensor) -> Tensor {
    x.roll(1, 1) + x.roll(-1, 1) - x * 2
}

#[test]
fn rolls_are_split_where_they_wrap() {
    for dtype in [DType::U8, DType::I16, DType::F32, DType::F64] {
        for shape in [[5, 300], [3, 64], [1, 1000], [40, 16], [9, 24], [70, 34]] {
            check_on_cpu(&format!("{dtype} {shape:?} rolled"), |device| {
                rolled(&ordinary(device, dtype, shape, 1))
            });
        }
    }
}

#[test]
fn segments_are_divided_and_reduced() {
    let input = |device: &Device, shape: &[usize], seed| ordinary(device, DType::F32, shape, seed);
    check_on_cpu("costly operations in segments", |device| {
        let x = input(device, &[3, 700], 1);
        let y = (x.roll(99, 1).tanh().exp().sin() + x.roll(-3, 1)).tanh().exp().log1p().sin();
        vec![near("costly", y, 1e-5, 1e-5)]
    });
    check_on_cpu("columns in segments", |device| {
        // The rows of one factor are longer than those of what is reduced.
        let (x, few) = (input(device, &[3, 40, 1500], 1), input(device, &[3, 40], 2));
        let both = &x * few.unsqueeze(2);
        let columns = both.reshape([40, 3 * 1500]);
        vec![
            exact("maximum", columns.max(0)),
            near("sum", (columns * 0.5).exp().sum(0), 1e-5, 1e-5),
            near("rolled", (x.roll(100, 2).sum(1) - x.sum(1)).var(1, 0), 1e-4, 1e-5),
        ]
    });
}

/// A tensor's columns in so many parts, each of which is changed in its own way, and one after the other of them again.
fn interleaved(x: &Tensor, count: usize) -> Tensor {
    let length = x.shape().unwrap()[1] / count;
    let part = |n: usize| {
        let part = x.slice(1, (n * length) as isize..((n + 1) * length) as isize);
        if n == 1 { part.neg() } else { part + n as i64 }
    };
    let rows = x.shape().unwrap()[0];
    Tensor::stack((0..count).map(part).collect::<Vec<_>>(), 2).reshape([rows, count * length])
}

#[test]
fn neighbours_of_one_quotient_are_side_by_side() {
    for dtype in [DType::F32, DType::F16, DType::F64, DType::I64, DType::U8] {
        for (shape, count) in
            [([7, 48], 2), ([3, 300], 3), ([1, 64], 4), ([2, 6], 2), ([2, 35], 5), ([9, 16], 8)]
        {
            check_on_cpu(&format!("{dtype} {shape:?}, {count} interleaved"), |device| {
                let x = ordinary(device, dtype, shape, 1);
                let turned = interleaved(&x, count);
                let again = interleaved(&(&turned * 2), count);
                let twice = x.repeat_interleave(count, 1).slice(1, ..shape[1] as isize);
                let mut outputs = vec![
                    exact("used", &turned + &x),
                    exact("steps", again),
                    exact("flat", turned.flatten(..) * 2 + x.flatten(..)),
                    exact("repeated", &twice + &x),
                    exact("cut", (&turned * 2).slice(1, 1..)),
                    exact("across", turned.t() + x.t()),
                    exact("greatest", turned.max(1)),
                ];
                if dtype.is_float() {
                    let eps = dtype.finfo().unwrap().eps;
                    let scale = (turned.square().mean_keepdim(1) + 1.0).sqrt();
                    outputs.push(near("normalised", &turned / scale, 4.0 * eps, 1e-6));
                    outputs.push(near("sum of what is stored", turned.sum(1), 8.0 * eps, 1e-4));
                }
                outputs
            });
        }
    }
}
