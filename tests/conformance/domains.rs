//! The same rows, lines and elements under other shapes: one kernel goes over all of them.

use lazuli::{DType, Device, Tensor};

use crate::common::data::floats;
use crate::common::{Output, check_fused, exact, near};

/// That they are one kernel shows on the CPU, small as they are.
fn check_one(name: &str, build: impl Fn(&Device) -> Vec<Output>) {
    let tensors: Vec<Tensor> = build(&Device::cpu()).iter().map(|output| output.tensor().clone()).collect();
    let plan = lazuli::explain(&tensors).unwrap();
    assert_eq!(plan.kernels(), 1, "{name}:\n{plan}");
    check_fused(name, build);
}

fn x(device: &Device, shape: &[usize]) -> Tensor {
    floats(device, DType::F32, shape.to_vec(), 2.0, 5)
}

#[test]
fn rows_of_several_axes_are_rows() {
    for [outer, a, b] in [[7, 4, 5], [3, 20, 20], [1, 10, 33], [5, 1, 17]] {
        check_one(&format!("rows of {a} × {b}"), |device| {
            let x = x(device, &[outer, a * b]);
            let y = x.reshape([outer, a, b]);
            let largest = y.max_keepdim([1, 2]);
            vec![
                near("sum", x.sum(1), 1e-5, 1e-5),
                exact("maximum", y.max([1, 2])),
                near("of a column", x.sum(1).reshape([outer, 1]).exp(), 1e-4, 1e-4),
                near("both", &y - largest + x.mean(1).reshape([outer, 1, 1]), 1e-5, 1e-5),
                exact("flat", (&x * 2.0).reshape([outer * a * b]).abs()),
            ]
        });
    }
}

#[test]
fn columns_of_several_axes_are_columns() {
    check_one("columns", |device| {
        let x = x(device, &[6, 10, 9]);
        let y = x.reshape([60, 9]);
        vec![near("sum", x.sum([0, 1]), 1e-5, 1e-5), near("shares", &y / y.abs().sum_keepdim(0), 1e-5, 1e-5)]
    });
}

#[test]
fn rows_that_a_view_makes() {
    for eighths in [2, 9, 40] {
        check_one(&format!("rows of {eighths}"), |device| {
            let x = x(device, &[6, 3 * eighths]);
            let parts = x.reshape([6, 3, eighths]);
            let spread = parts.max_keepdim(2).exp().broadcast_to([6, 3, eighths]).reshape([6, 3 * eighths]);
            vec![near("each over its part", &x / spread, 1e-5, 1e-5)]
        });
    }
}

#[test]
fn results_whose_axes_divide_each_other() {
    check_one("elements", |device| {
        let x = x(device, &[6, 20]);
        let bias = floats(device, DType::F32, [5], 1.0, 3);
        vec![
            exact("rows", &x * 2.0),
            exact("fives", x.reshape([6, 4, 5]) + bias),
            exact("flat", x.abs().reshape([120]) + 1.0),
            exact("thirds", x.reshape([3, 40]).neg()),
        ]
    });
    check_fused("axes that do not", |device| {
        let x = x(device, &[3, 7]);
        let bias = floats(device, DType::F32, [3], 1.0, 3);
        vec![exact("sevens", &x * 2.0), exact("threes", x.reshape([7, 3]) + bias)]
    });
}

#[test]
fn lines_of_scans_under_other_shapes() {
    check_one("scans", |device| {
        let x = x(device, &[2, 3, 8]);
        let y = x.reshape([6, 8]);
        vec![near("sum", x.cumsum(2), 1e-5, 1e-5), exact("maximum", y.cummax(1).reshape([48]) * 2.0)]
    });
    check_fused("what a loop ends with", |device| {
        let x = x(device, &[4, 6]);
        let ([last], [each]) =
            lazuli::scan([&x], 1, lazuli::ScanOrder::new(), [0.5], |[c], [x]| ([c * 0.5 + x], [c - x]));
        vec![
            near("last", last.reshape([4, 1]) * 2.0, 1e-5, 1e-5),
            near("each", each.reshape([24]), 1e-5, 1e-5),
        ]
    });
}

#[test]
fn windows_of_what_is_computed_inside() {
    for (size, step) in [(9, 1), (16, 4), (40, 7)] {
        check_one(&format!("windows of {size}"), |device| {
            let x = x(device, &[3, 100]);
            let windows = x.unfold(1, size, step);
            vec![
                near("sum of squares", (&windows * &windows).sum(2), 1e-5, 1e-5),
                near("maximum of sines", windows.sin().max(2).exp(), 1e-5, 1e-5),
            ]
        });
    }
}

#[test]
fn short_and_long_columns() {
    for length in [2, 5, 9, 30, 64, 65] {
        check_fused(&format!("columns of {length}"), |device| {
            let x = x(device, &[2, length, 40]);
            vec![
                near("softmax", x.softmax(1), 1e-5, 1e-6),
                near("scaled", &x / x.abs().max_keepdim(1), 1e-5, 1e-6),
                near("mean of exp", x.exp().mean(1).sqrt(), 1e-5, 1e-5),
            ]
        });
    }
}

#[test]
fn what_is_a_row_for_some_and_none_for_others() {
    for n in [9, 24] {
        check_fused(&format!("{n} rows of {n}"), |device| {
            let x = x(device, &[n, n]);
            let (rows, columns) = (x.sum_keepdim(1), x.max_keepdim(0));
            vec![
                near("rows", &x - &rows, 1e-5, 1e-5),
                near("rows turned", &x - rows.t(), 1e-5, 1e-5),
                near("rows of a transpose", x.t() * &rows, 1e-5, 1e-5),
                near("reversed", &x + rows.flip([0]), 1e-5, 1e-5),
                near("columns", &x * columns + x.flip([1]), 1e-5, 1e-5),
            ]
        });
    }
}
