//! Products of small matrices, whose results fill no vector: lanes go along the matrices.

use lazuli::{DType, Device, Tensor};

use crate::common::data::{ordinary, units};
use crate::common::{check_on_cpu, exact, near};

fn floats(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    let elements: Vec<f32> = units(shape.iter().product(), seed).map(|x| x as f32).collect();
    Tensor::from_vec(elements, shape.to_vec()).to(device)
}

/// Matrices of all sizes, as many as fill tiles and some more or fewer.
#[test]
fn of_all_sizes() {
    for [rows, terms, columns] in
        [[4, 4, 4], [3, 3, 3], [2, 2, 2], [8, 8, 8], [1, 5, 7], [6, 3, 1], [5, 8, 2]]
    {
        check_on_cpu(&format!("{rows} x {terms} x {columns}"), |device| {
            let mut outputs = Vec::new();
            for count in [31, 32, 129, 300] {
                let a = floats(device, &[count, rows, terms], 1);
                let b = floats(device, &[count, terms, columns], 2);
                let turned = floats(device, &[count, columns, terms], 3);
                outputs.push(near("product", a.matmul(&b), 1e-6, 1e-6));
                outputs.push(near("of the second turned", a.matmul(&turned.transpose(1, 2)), 1e-6, 1e-6));
                let around = a.relu().matmul(&b).exp() + floats(device, &[rows, columns], 4);
                outputs.push(near("with what is around", around, 1e-5, 1e-6));
                outputs.push(near("of a vector", a.matmul(&turned.select(1, 0).unsqueeze(2)), 1e-6, 1e-6));
                outputs.push(near("one for all", a.matmul(&b.select(0, 0)), 1e-6, 1e-6));
            }
            outputs
        });
    }
}

#[test]
fn of_every_dtype() {
    for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool) {
        check_on_cpu(&format!("small matrices of {dtype}"), |device| {
            let a = ordinary(device, dtype, [70, 3, 4], 1);
            let b = ordinary(device, dtype, [70, 4, 3], 2);
            let (relative, absolute) = if dtype.is_float() { (1e-2, 1e-2) } else { (0.0, 0.0) };
            let product = a.matmul(&b);
            vec![
                near("product", product.clone(), relative, absolute),
                near("turned", product.transpose(1, 2) + &product, relative, absolute),
                exact("greatest sums", (a.unsqueeze(3) + b.unsqueeze(1)).max(2)),
            ]
        });
    }
}

#[test]
fn parts_of_larger_tensors_and_what_is_not_finite() {
    check_on_cpu("parts and special values", |device| {
        let of = |shape: &[usize], seed| floats(device, shape, seed);
        let wide = of(&[3, 50, 6, 6], 1);
        let (a, b) = (wide.slice(2, ..4).slice(3, 1..5), wide.slice(2, 2..).slice(3, ..4));
        let lost = a.masked_fill(&of(&[3, 50, 4, 4], 2).gt(0.9), f64::NAN);
        let endless = a.masked_fill(&of(&[3, 50, 4, 4], 3).gt(0.9), f64::INFINITY);
        vec![
            near("parts", a.matmul(&b), 1e-6, 1e-6),
            near("not a number", lost.matmul(&b), 1e-6, 1e-6),
            near("infinity", endless.matmul(&b), 1e-6, 1e-6),
            near("chain", a.matmul(&b).matmul(&a), 1e-5, 1e-5),
            near("none", of(&[0, 4, 4], 1).matmul(&of(&[0, 4, 4], 2)), 1e-6, 1e-6),
        ]
    });
}

/// Joins of what is in memory, which are turned part by part; and of what is computed.
#[test]
fn joined() {
    check_on_cpu("joined matrices", |device| {
        let mut outputs = Vec::new();
        for count in [31, 32, 129, 300] {
            let of = |shape: &[usize], seed| floats(device, shape, seed);
            let (a, b) = (of(&[count, 4, 4], 1), of(&[count, 4, 4], 2));
            let (top, bottom, line) = (of(&[count, 1, 4], 3), of(&[count, 3, 4], 4), of(&[count], 5));
            let rows = Tensor::cat(&[&top, &bottom], 1);
            let columns = Tensor::cat(&[&bottom.transpose(1, 2), &top.transpose(1, 2)], 2);
            let three = Tensor::cat(&[&top, &bottom.slice(1, 1..), &top], 1);
            let lines =
                Tensor::stack(&[&a.select(2, 1), &line.unsqueeze(1).expand([count, 4]), &b.select(2, 0)], 2);
            let padded = top.pad(&[(0, 0), (0, 3), (0, 0)], 0.0);
            outputs.push(near("rows", a.matmul(&rows), 1e-6, 1e-6));
            outputs.push(near("both", columns.matmul(&rows), 1e-6, 1e-6));
            outputs.push(near("columns", columns.matmul(&b), 1e-6, 1e-6));
            outputs.push(near("three parts", three.matmul(&b), 1e-6, 1e-6));
            outputs.push(near("lines", b.matmul(&lines), 1e-6, 1e-6));
            outputs.push(near("computed", a.matmul(&rows.exp()), 1e-5, 1e-6));
            outputs.push(near(
                "of what is computed",
                a.matmul(&Tensor::cat(&[top.exp(), bottom.neg()], 1)),
                1e-5,
                1e-6,
            ));
            outputs.push(near("padded", a.matmul(&padded), 1e-6, 1e-6));
        }
        outputs
    });
}
