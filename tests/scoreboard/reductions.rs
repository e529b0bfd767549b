//! Reductions that share their sweep, reductions of other axes, and scans.

use lazuli::{DType, ScanOrder, Tensor, scan};

use crate::inputs::{Group, row};

pub fn groups() -> Vec<Group> {
    vec![siblings(), of_axes(), scans(), recurrences()]
}

/// Sum, maximum and mean of squares.
fn three(x: &Tensor, axes: &[isize]) -> Vec<Tensor> {
    vec![x.sum(axes), x.max(axes), x.square().mean(axes)]
}

fn siblings() -> Group {
    let rows = vec![
        row("sum, max, mean of squares: rows", |x| three(&x.rows(), &[1])),
        row("sum, max, mean of squares: columns", |x| three(&x.rows(), &[0])),
        row("sum, max, mean of squares: whole", |x| three(&x.rows(), &[0, 1])),
        row("mean and variance of rows", |x| {
            let (var, mean) = x.rows().var_mean(1, 0);
            vec![mean, var]
        }),
        row("statistics of rows of 3, both forms", |x| {
            let shape = [x.at(1 << 20, 7), 3];
            let x = x.floats(shape);
            vec![x.mean(1), x.max_keepdim(1) + 1.0, x.min(1).unsqueeze(0)]
        }),
        row("a statistic of four", |x| {
            let x = x.rows();
            let (least, most) = x.aminmax(1);
            vec![(x.mean(1) - least) / (most - x.sum(1)).abs()]
        }),
        row("weighted mean of rows", |x| {
            let (y, weight) = (x.rows(), x.rows().sigmoid());
            vec![(y * &weight).sum(1) / weight.sum(1)]
        }),
        row("covariance of two vectors", |x| {
            let count = x.at(1 << 20, 101);
            let (a, b) = (x.floats([count]), x.floats([count]));
            vec![(&a * &b).mean(..) - a.mean(..) * b.mean(..)]
        }),
        row("rows and columns of one matrix", |x| {
            let x = x.rows();
            vec![x.sum(0), x.sum(1)]
        })
        .because("a weakness: one sweep over tiles could add up both"),
    ];
    ("sibling reductions", rows)
}

fn of_axes() -> Group {
    let rows = vec![
        row("sum of everything", |x| vec![x.rows().sum(..)]),
        row("sum of rows", |x| vec![x.rows().sum(1)]),
        row("sum of columns", |x| vec![x.rows().sum(0)]),
        row("sum of a middle axis", |x| {
            let shape = [x.at(32, 3), x.at(200, 9), x.at(512, 10)];
            vec![x.floats(shape).sum(1)]
        }),
        row("largest magnitude of a middle axis", |x| {
            let shape = [x.at(32, 3), x.at(200, 9), x.at(512, 10)];
            vec![x.floats(shape).abs().max(1).log1p()]
        }),
        row("bias gradient f16: first two axes", |x| {
            let shape = [x.at(16, 3), x.at(256, 5), x.at(1024, 17)];
            vec![x.halves(DType::F16, shape).sum([0, 1])]
        }),
        row("mean of channels: axes 0, 2, 3", |x| vec![x.images().mean([0, 2, 3])]),
        row("mean of the first and last axis", |x| {
            let shape = [x.at(64, 3), x.at(64, 5), x.at(256, 7)];
            vec![x.floats(shape).mean([0, 2])]
        }),
        row("rows that are finite", |x| vec![x.rows().isfinite().all(1)]),
        row("count of the positive", |x| vec![x.rows().gt(0.0).count_nonzero(..)]),
        row("root mean square error", |x| {
            let (a, b) = (x.rows(), x.rows());
            vec![(a - b).square().mean(..).sqrt()]
        }),
        row("norm, then everything scaled", |x| {
            let x = x.rows();
            vec![&x * x.square().sum(..).rsqrt()]
        })
        .because("right: the norm comes before the first result"),
        row("rows, then columns", |x| {
            let x = x.rows();
            vec![x.sum_keepdim(1).exp() * x.sum(0)]
        })
        .because("right: the sums of columns come before the first result"),
        row("sums of sums", |x| vec![x.images().sum(3).exp().sum(2)])
            .because("a weakness: a sum in a sum could be one sweep"),
    ];
    ("reductions of axes", rows)
}

fn scans() -> Group {
    let rows = vec![
        row("cumsum of rows", |x| vec![x.rows().cumsum(1)]),
        row("cumsum of columns", |x| vec![x.rows().cumsum(0)]),
        row("cumsum of a middle axis", |x| {
            let shape = [x.at(32, 3), x.at(200, 9), x.at(512, 10)];
            vec![x.floats(shape).cumsum(1)]
        }),
        row("cumsum of one long row", |x| {
            let shape = [x.at(1 << 24, 140_001)];
            vec![x.positive(shape).cumsum(0)]
        }),
        row("square, cumsum, sqrt", |x| vec![(x.rows().square().cumsum(1) + 1.0).sqrt()]),
        row("cumprod of 1 + x", |x| vec![(x.rows() * 1e-3 + 1.0).cumprod(1) - 1.0]),
        row("cummax of columns", |x| vec![x.rows().abs().cummax(0)]),
        row("cummax of rows with positions", |x| {
            let (largest, indices) = x.rows().cummax_with_indices(1);
            vec![largest, indices]
        }),
        row("cummin of columns with positions", |x| {
            let (smallest, indices) = x.rows().cummin_with_indices(0);
            vec![smallest, indices]
        }),
        row("cumsum of cumsum", |x| vec![x.rows().cumsum(1).cumsum(1)]),
        row("running mean of the running mean", |x| {
            let x = x.rows();
            let count = Tensor::arange(1.0, x.shape().unwrap()[1] as f32 + 1.0, 1.0);
            vec![(x.cumsum(1) / &count).cumsum(1) / count]
        }),
        row("logcumsumexp of rows", |x| vec![x.rows().logcumsumexp(1)]),
        row("drawdown: 1 - x / cummax", |x| {
            let prices = x.rows().exp();
            vec![1.0 - &prices / prices.cummax(1)]
        }),
        row("cumsum, reversed and exclusive", |x| {
            vec![x.rows().cumsum_with(1, ScanOrder::new().reverse().exclusive())]
        }),
        row("flip, cumsum, flip, log", |x| vec![x.rows().exp().flip(1).cumsum(1).flip(1).log()]),
        row("running mean", |x| {
            let x = x.rows();
            let length = x.shape().unwrap()[1];
            vec![x.cumsum(1) / Tensor::arange(1.0, length as f32 + 1.0, 1.0)]
        }),
        row("EMA by cumulative products", |x| {
            // s_t = a s_(t-1) + (1 - a) x_t, as a^t times the running sum of (1 - a) x_t / a^t.
            let shape = [x.at(4096, 3), x.at(512, 33)];
            let decay = Tensor::full([shape[1]], 0.97, DType::F32).cumprod(0);
            vec![(x.floats(shape) * 0.03 / &decay).cumsum(1) * decay]
        })
        .because("right: 512 powers are computed once, not in each row"),
        row("discounted returns", |x| {
            let shape = [x.at(4096, 3), x.at(512, 33)];
            let discount = Tensor::arange(0.0, shape[1] as f32, 1.0) * 0.99f64.ln();
            let later = (x.floats(shape) * discount.exp()).cumsum_with(1, ScanOrder::new().reverse());
            vec![later / discount.exp()]
        }),
        row("running totals of probabilities", |x| vec![x.rows().softmax(1).cumsum(1)])
            .because("a weakness: a scan reads a row again that softmax has just read"),
        row("moving average by cumsum", |x| {
            let sums = x.rows().cumsum(1);
            vec![(sums.slice(1, 16..) - sums.slice(1, ..-16)) / 16.0]
        })
        .because("a weakness: a scan's results are read at its own position alone"),
    ];
    ("scans", rows)
}

fn recurrences() -> Group {
    let rows = vec![
        row("exponential moving average, scan_with", |x| {
            vec![x.rows().scan_with(1, 0.0, |h, x| h * 0.97 + x * 0.03)]
        }),
        row("linear recurrence", |x| {
            let shape = [x.at(2048, 17), x.at(1024, 10)];
            let (a, b) = (x.floats(shape).sigmoid(), x.floats(shape));
            let ([last], [h]) = scan([&a, &b], 0, ScanOrder::new(), [0.0], |[h], [a, b]| {
                let h = a * h + b;
                ([h.clone()], [h])
            });
            vec![h.tanh(), last]
        })
        .because("so few threads go along the columns that functions take longer beside them than apart"),
        row("running normalisation", |x| {
            let x = x.rows();
            let count = Tensor::arange(1.0, x.shape().unwrap()[0] as f32 + 1.0, 1.0).unsqueeze(1);
            let ([_, _], [normed]) =
                scan([&x, &count], 0, ScanOrder::new(), [0.0, 0.0], |[mean, m2], [x, n]| {
                    let delta = x - mean;
                    let mean = mean + &delta / n;
                    let centred = x - &mean;
                    let m2 = m2 + delta * &centred;
                    let normed = centred / (&m2 / n + 1e-5).sqrt();
                    ([mean, m2], [normed])
                });
            vec![normed]
        }),
        row("discounted returns by scan", |x| {
            let shape = [x.at(4096, 3), x.at(512, 33)];
            let back = ScanOrder::new().reverse();
            let ([_], [returns]) = scan([&x.floats(shape)], 1, back, [0.0], |[later], [reward]| {
                let all = later * 0.99 + reward;
                ([all.clone()], [all])
            });
            vec![returns]
        }),
        row("biquad filter of channels", |x| {
            let shape = [x.at(4096, 33), x.at(1024, 3)];
            let ([_, _], [y]) = scan([&x.floats(shape)], 0, ScanOrder::new(), [0.0, 0.0], |[s1, s2], [x]| {
                let y = x * 0.2 + s1;
                let next = [x * 0.4 - &y * -0.5 + s2, x * 0.2 - &y * 0.3];
                (next, [y])
            });
            vec![y]
        }),
    ];
    ("recurrences", rows)
}
