//! Elements that move: joins, views inside of their consumers, transposes, images, frames.

use lazuli::{DType, Interpolation, PadMode, Pool2d, Pool3d, Tensor};

use crate::inputs::{Group, Inputs, row};

pub fn groups() -> Vec<Group> {
    vec![joined(), indexed(), transposed(), images()]
}

fn square(x: &mut Inputs) -> Tensor {
    let shape = [x.at(2048, 7), x.at(2048, 7)];
    x.floats(shape)
}

fn joined() -> Group {
    let rows = vec![
        row("cat of ten, then scale", |x| {
            let shape = [x.at(100, 3), x.at(1024, 5)];
            let parts = [(); 10].map(|()| x.floats(shape));
            vec![Tensor::cat(&parts.each_ref(), 0) * 1.5 + 0.25]
        }),
        row("cat of expressions, inner axis", |x| {
            let (a, b) = (x.rows(), x.rows());
            vec![Tensor::cat(&[&a.relu(), &(b * 2.0)], 1).tanh()]
        }),
        row("features: cat of x, x², sin x", |x| {
            let x = x.rows();
            vec![Tensor::cat(&[&x, &x.square(), &x.sin()], 1)]
        }),
        row("stack of expressions, last axis", |x| {
            let (a, b) = (x.rows(), x.rows());
            vec![Tensor::stack(&[&a.exp(), &(a * b)], -1)]
        }),
        row("stack of statistics", |x| {
            let x = x.rows();
            vec![Tensor::stack(&[&x.mean(1), &x.std(1, 1), &x.max(1)], 1)]
        })
        .because("a weakness: a row's results could each go to their place"),
        row("thirds of rows, multiplied", |x| {
            let shape = [x.at(4096, 3), x.at(1536, 12)];
            let parts = x.floats(shape).chunk(3, 1).unwrap();
            vec![&parts[0] * parts[1].sigmoid() + &parts[2]]
        }),
        row("thirds of rows, as three results", |x| {
            let shape = [x.at(4096, 3), x.at(1536, 12)];
            x.floats(shape).chunk(3, 1).unwrap().iter().map(|part| part * 0.5).collect()
        }),
        row("split, each half normalised", |x| {
            let x = x.rows();
            let length = x.shape().unwrap()[1];
            let halves = x.split(length.div_ceil(2), 1).unwrap();
            halves.iter().map(|half| half.softmax(-1)).collect()
        }),
        row("two halves swapped by cat", |x| {
            let halves = x.rows().chunk(2, 0).unwrap();
            vec![Tensor::cat(&[&halves[1], &halves[0]], 0) + 1.0]
        }),
    ];
    ("joined and divided", rows)
}

fn indexed() -> Group {
    let rows = vec![
        row("x - roll(x)", |x| {
            let x = x.rows();
            vec![&x - x.roll(1, 1)]
        }),
        row("repeat, times a full tensor", |x| {
            let y = x.rows();
            let shape = y.shape().unwrap();
            let pattern = x.floats([1, shape[1]]);
            vec![y * pattern.repeat([shape[0], 1])]
        }),
        row("tile of an expression", |x| vec![x.rows().exp().tile([1, 3])]),
        row("repeat_interleave, added", |x| {
            let shape = [x.at(4096, 3), x.at(256, 5)];
            let (few, many) = (x.floats(shape), x.floats([shape[0], 4 * shape[1]]));
            vec![few.repeat_interleave(4, 1) + many]
        }),
        row("tril of a product", |x| vec![(square(x) * square(x)).tril(0)]),
        row("triu, summed by rows", |x| vec![square(x).triu(1).sum(1)]),
        row("symmetric: triu + its transpose", |x| {
            let upper = square(x).triu(0);
            vec![&upper + upper.t()]
        }),
        row("one_hot, scaled", |x| {
            let (rows, classes) = (x.at(4096, 5), x.at(1000, 11));
            vec![x.labels([rows], classes).one_hot(classes).cast(DType::F32) * 0.9 + 0.1 / classes as f64]
        }),
        row("confusion counts by one_hot", |x| {
            let (rows, classes) = (x.at(4096, 20), x.at(10, 4));
            let (a, b) = (x.labels([rows], classes), x.labels([rows], classes));
            vec![(a.one_hot(classes).unsqueeze(2) * b.one_hot(classes).unsqueeze(1)).sum(0)]
        }),
        row("scores of edges: both ends, joined", |x| {
            let (nodes, edges, width) = (x.at(5000, 7), x.at(40_000, 30), x.at(64, 5));
            let features = x.floats([nodes, width]);
            let ends = [(); 2].map(|()| features.index_select(0, &x.labels([edges], nodes)));
            vec![Tensor::cat(&ends, 1).mv(&x.floats([2 * width])).leaky_relu(0.2)]
        }),
        row("trace by diagonal", |x| vec![square(x).diagonal(0, 0, 1).sum(..)]),
        row("diagonal of a product", |x| vec![(square(x) * square(x)).diagonal(0, 0, 1).exp()]),
        row("pixel_shuffle, relu", |x| {
            let shape = [x.at(8, 2), x.at(64, 8), x.at(64, 5), x.at(64, 6)];
            vec![x.floats(shape).pixel_shuffle(2).relu()]
        }),
        row("every second column, reversed", |x| vec![x.rows().flip([1]).slice_step(1, None, None, 2).exp()]),
    ];
    ("views in their consumers", rows)
}

fn transposed() -> Group {
    let rows = vec![
        row("relu(x).t() * y", |x| {
            let y = x.rows();
            let shape = y.shape().unwrap();
            vec![y.relu().t() * x.floats([shape[1], shape[0]])]
        }),
        row("x + x.t()", |x| {
            let x = square(x);
            vec![&x + x.t()]
        }),
        row("heads: [b, s, h, d] to [b, h, s, d]", |x| {
            let shape = [x.at(8, 2), x.at(256, 5), x.at(16, 3), x.at(64, 6)];
            vec![x.floats(shape).permute([0, 2, 1, 3]) * 0.125]
        }),
        row("NHWC bytes to NCHW, normalised", |x| {
            let shape = [x.at(8, 2), x.at(224, 6), x.at(224, 7), 3];
            let (mean, std) = (x.floats([3]), x.positive([3]));
            vec![((x.bytes(shape).cast(DType::F32) / 255.0 - mean) / std).permute([0, 3, 1, 2])]
        }),
        row("row sums of a transpose", |x| {
            let (a, b) = (x.rows(), x.rows());
            vec![(a.t() * b.t()).sum(1)]
        }),
        row("softmax of a transpose", |x| vec![x.rows().t().softmax(-1)]),
        row("channels-last: norm, relu, max-pool", |x| {
            let shape = [x.at(8, 2), x.at(64, 8), x.at(64, 8), x.at(32, 4)];
            let [mean, weight, bias] = [(); 3].map(|()| x.floats([shape[3]]));
            let var = x.positive([shape[3]]);
            let planes = x.floats(shape).permute([0, 3, 1, 2]);
            let planes = planes.batch_norm(&mean, &var, Some(&weight), Some(&bias), 1e-5).relu();
            vec![planes.max_pool2d(2, 2).permute([0, 2, 3, 1])]
        }),
        row("channels-last average pooling", |x| {
            let shape = [x.at(8, 2), x.at(64, 8), x.at(64, 8), x.at(32, 4)];
            vec![x.floats(shape).permute([0, 3, 1, 2]).avg_pool2d(2, 2).permute([0, 2, 3, 1])]
        }),
        row("3-d average pooling, unpadded", |x| {
            let shape = [x.at(8, 2), 4, x.at(32, 6), x.at(32, 8), x.at(32, 5)];
            vec![x.floats(shape).avg_pool3d_with(Pool3d::new(2).count_include_pad(false))]
        }),
    ];
    ("transposes", rows)
}

/// Filters of a 3 × 3 neighbourhood, as sums of shifted images.
fn sobel(x: &Tensor) -> Tensor {
    let x = x.pad(&[(0, 0), (0, 0), (1, 1), (1, 1)], 0.0);
    let at = |row: isize, column: isize| {
        let until = |from: isize| (from < 2).then_some(from - 2);
        x.slice_step(2, row, until(row), 1).slice_step(3, column, until(column), 1)
    };
    let across = at(0, 2) - at(0, 0) + (at(1, 2) - at(1, 0)) * 2.0 + at(2, 2) - at(2, 0);
    let down = at(2, 0) - at(0, 0) + (at(2, 1) - at(0, 1)) * 2.0 + at(2, 2) - at(0, 2);
    (across.square() + down.square() + 1e-9).sqrt()
}

fn images() -> Group {
    let rows = vec![
        row("image: normalise, pad, flip", |x| {
            let shape = [x.at(8, 2), 3, x.at(224, 6), x.at(224, 8)];
            let (mean, std) = (x.floats([3, 1, 1]), x.positive([3, 1, 1]));
            let y = (x.bytes(shape).cast(DType::F32) / 255.0 - mean) / std;
            vec![y.pad(&[(0, 0), (0, 0), (4, 4), (4, 4)], 0.0).flip([3])]
        }),
        row("image: its own mean and deviation", |x| {
            let shape = [3, x.at(512, 9), x.at(512, 10)];
            let y = x.floats(shape);
            vec![(&y - y.mean_keepdim([1, 2])) / (y.std_keepdim([1, 2], 0) + 1e-5)]
        })
        .because("right: a channel's statistics come first, too long for registers"),
        row("grey of three channels", |x| {
            let shape = [x.at(8, 2), 3, x.at(224, 6), x.at(224, 8)];
            let weights = x.floats([3, 1, 1]);
            vec![(x.floats(shape) * weights).sum(1)]
        }),
        row("resize to twice, nearest", |x| {
            let y = x.images();
            vec![y.interpolate_scale(&[2.0, 2.0], Interpolation::Nearest) * 0.5]
        }),
        row("resize to twice, bilinear", |x| {
            let linear = Interpolation::Linear { align_corners: false };
            vec![x.images().interpolate_scale(&[2.0, 2.0], linear).relu()]
        }),
        row("resize to half, bilinear", |x| {
            let linear = Interpolation::Linear { align_corners: false };
            vec![x.images().interpolate_scale(&[0.5, 0.5], linear)]
        }),
        row("upsample + skip connection", |x| {
            let few = x.images();
            let shape = few.shape().unwrap();
            let skip = x.floats([shape[0], shape[1], 2 * shape[2], 2 * shape[3]]);
            vec![(few.interpolate_scale(&[2.0, 2.0], Interpolation::Nearest) + skip).relu()]
        }),
        row("Sobel edges", |x| vec![sobel(&x.images())]),
        row("Sobel edges, relu, max-pool", |x| vec![(sobel(&x.images()) - 1.0).relu().max_pool2d(2, 2)]),
        row("gelu, max-pool 2", |x| vec![x.images().gelu().max_pool2d(2, 2)]),
        row("gelu, max-pool 3 stride 1", |x| vec![x.images().gelu().max_pool2d(3, 1)])
            .because("right: overlapping windows would compute gelu nine times"),
        row("relu, max-pool 3 stride 2 pad 1", |x| {
            vec![x.images().relu().max_pool2d_with(Pool2d::new(3).stride(2).padding(1))]
        }),
        row("blur of a blur, borders reflected", |x| {
            let border = [(0, 0), (0, 0), (2, 2), (2, 2)];
            let blur = |x: &Tensor| {
                x.pad_with(border, PadMode::Reflect).unfold(2, 5, 1).unfold(3, 5, 1).mean([-1, -2])
            };
            vec![blur(&blur(&x.images()))]
        })
        .because("right: each of nine parts of the border would compute means of means"),
        row("difference of two blurs", |x| {
            let y = x.images();
            let blur = |size: usize| y.avg_pool2d_with(Pool2d::new(size).stride(1).padding(size / 2));
            vec![blur(3) - blur(5)]
        }),
        row("adaptive average pooling to 7", |x| {
            let y = x.images();
            let size = x.at(7, 3);
            vec![y.adaptive_avg_pool2d([size, size]) * 2.0]
        })
        .because("right: where windows begin is divided once, for all rows, and not in each"),
        row("heat equation: one step", |x| {
            let field = square(x);
            let neighbours = field.roll(1, 0) + field.roll(-1, 0) + field.roll(1, 1) + field.roll(-1, 1);
            vec![&field + (neighbours - &field * 4.0) * 0.1]
        }),
        row("frames, window, power, sum", |x| {
            let (batch, length, size) = (x.at(16, 2), x.at(16_000, 100), x.at(400, 20));
            let window = x.floats([size]);
            let frames = x.floats([batch, length]).unfold(1, size, size * 2 / 5);
            vec![((frames * window).square().sum(2) + 1e-6).log10() * 10.0]
        }),
        row("pre-emphasis: x - 0.97 x[t - 1]", |x| {
            let signal = x.rows();
            let before = signal.pad(&[(0, 0), (1, 0)], 0.0).slice(1, ..-1);
            vec![signal - before * 0.97]
        }),
    ];
    ("images and signals", rows)
}
