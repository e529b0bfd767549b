//! Reductions down few columns: several positions are side by side in the lanes of a core, with what varies along the positions
//! or the columns alone laid out as they are.

use lazuli::{DType, Device, Tensor};

use crate::common::data::{floats, mixed, ordinary};
use crate::common::{Output, check_on_cpu, exact, near, tolerance};

/// Positions: none, few, around groups of 16, and around what one part of a long column has.
const LENGTHS: [usize; 9] = [0, 1, 15, 64, 65, 79, 127, 4096 + 17, 2 * 4096 + 1];

/// Points with weights, and something for each of the coordinates.
fn points(device: &Device, dtype: DType, (rows, columns): (usize, usize)) -> [Tensor; 3] {
    [(vec![rows, columns], 1), (vec![rows, 1], 2), (vec![columns], 3)]
        .map(|(shape, seed)| floats(device, dtype, shape, 2.0, seed))
}

#[test]
fn sums_and_moments() {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        for columns in [2, 3, 5, 7, 15] {
            for rows in LENGTHS {
                if dtype != DType::F32 && (columns > 5 || rows > 5000) {
                    continue;
                }
                let e = tolerance(dtype) * 10.0;
                check_on_cpu(&format!("{rows} x {columns} of {dtype}"), |device| {
                    let [x, w, c] = points(device, dtype, (rows, columns));
                    let near = |name: &str, x: Tensor| near(name, x, e, e);
                    vec![
                        near("variance", x.var(0, 1)),
                        near("standardised", (&x - x.mean_keepdim(0)) / (x.std_keepdim(0, 0) + 1.0)),
                        near("distance", (&x - &c).square().mean(0)),
                        near("weighted", (&x * &w).sum(0) / (w.abs().sum(0) + 1.0)),
                        near("masked", w.gt(0.0).where_(&x, &c).mean(0)),
                        near("exponentials", ((&x - &c).exp() * w.sin()).mean(0)),
                        near("several", x.var(0, 0) + (&x * &w).mean(0) + x.abs().sum(0) / 1e3),
                    ]
                });
            }
        }
    }
}

/// Rows are reduced, and columns of what comes of that; softmaxes down columns, whose second sweep knows the first; random numbers.
#[test]
fn sweeps_that_follow_others() {
    for (rows, columns) in [(64, 2), (77, 3), (513, 4), (5000, 6)] {
        check_on_cpu(&format!("{rows} x {columns}"), |device| {
            let [x, w, c] = points(device, DType::F32, (rows, columns));
            let unit = &x / (x.square().sum_keepdim(1).sqrt() + 0.1);
            let jittered = &x + Tensor::rand([rows, columns], 7) * Tensor::randn([rows, 1], 8);
            let chosen = Tensor::rand([rows], 9).unsqueeze(1).lt(0.5).where_(&x, &x * 2.0);
            vec![
                near("softmax", x.softmax(0), 1e-5, 1e-6),
                near("log of sums", (&x * &c).logsumexp(0), 1e-5, 1e-5),
                near("of weights", (&w.softmax(0) * &x).sum(0), 1e-5, 1e-5),
                near("of units", unit.sum(0), 1e-4, 1e-4),
                near("jittered", jittered.mean(0), 1e-5, 1e-5),
                near("chosen", chosen.mean(0), 1e-5, 1e-5),
                near("chosen themselves", chosen, 1e-6, 1e-6),
            ]
        });
    }
}

/// The first of equal ones, of NaN and of infinities; columns without a number.
#[test]
fn positions_are_those_of_the_first() {
    for dtype in [DType::F32, DType::I32, DType::F64, DType::U8, DType::I64, DType::BF16] {
        for columns in [2, 3, 6, 15] {
            for rows in LENGTHS.into_iter().filter(|&rows| rows > 0 && (rows < 5000 || dtype == DType::F32)) {
                check_on_cpu(&format!("positions in {rows} x {columns} of {dtype}"), |device| {
                    let all: Vec<(&str, Tensor)> = vec![
                        ("ordinary", ordinary(device, dtype, [rows, columns], 1)),
                        ("mixed", mixed(device, dtype, [rows, columns], rows, 1)),
                        ("equal", mixed(device, dtype, [rows, columns], columns, 0)),
                    ];
                    let outputs = |(name, x): (&str, Tensor)| -> Vec<Output> {
                        let (largest, at) = x.max_with_indices(0);
                        vec![
                            exact(format!("largest, {name}"), x.argmax(0)),
                            exact(format!("smallest, {name}"), x.argmin(0)),
                            exact(format!("both, {name}"), largest),
                            exact(format!("where, {name}"), at),
                            exact(format!("maximum, {name}"), x.max(0)),
                        ]
                    };
                    all.into_iter().flat_map(outputs).collect()
                });
            }
        }
    }
}

/// Several at once, what is cut out of others, and numbers that are not finite in single columns.
#[test]
fn batches_and_what_is_not_finite() {
    for (batch, rows, columns) in [(3, 70, 2), (2, 100, 3), (5, 64, 7)] {
        check_on_cpu(&format!("{batch} times {rows} x {columns}"), |device| {
            let x = floats(device, DType::F32, [batch, rows, columns], 1.0, 1);
            let odd = mixed(device, DType::F32, [batch, rows, columns], 3, 5);
            let w = floats(device, DType::F32, [batch, rows, 1], 1.0, 2);
            let cut = floats(device, DType::F32, [batch, rows + 5, columns], 1.0, 3).slice(1, 2..-3);
            vec![
                near("variances", x.var(1, 1), 1e-5, 1e-6),
                near("centres", (&x * w.sigmoid()).sum(1) / w.sigmoid().sum(1), 1e-5, 1e-6),
                near("of a cut", (&cut - &x).square().sum(1), 1e-5, 1e-5),
                near("differences", (x.slice(1, 1..) - x.slice(1, ..-1)).abs().sum(1), 1e-5, 1e-5),
                exact("largest", odd.max(1)),
                exact("positions", odd.argmin(1)),
                near("sums", odd.sign().sum(1), 1e-6, 1e-6),
            ]
        });
    }
}
