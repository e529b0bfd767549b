//! The cases: what is measured.

use lazuli::{Conv2d, Conv3d, DType, Device, GridSample, Interpolation, PadMode, Pool2d, Tensor};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::common::data::floats;
use super::graphs::{Recipe, SMOOTH_OPS, Smooth, SmoothInputs, recipes, smooth_tensors};
use super::groups::groups;
use super::inputs::Inputs;

/// An expression, recorded anew for each run.
pub struct Case {
    pub name: String,
    pub record: Box<dyn FnMut() -> Vec<Tensor>>,
}

/// The workloads of the scoreboard at their real sizes, programs that once lost, and random graphs.
pub fn cases(random: usize, seed: u8) -> Vec<Case> {
    let mut result = Vec::new();
    for (_, workloads) in groups() {
        for workload in workloads {
            let mut inputs: Option<Inputs> = None;
            result.push(Case {
                name: workload.name.into(),
                record: Box::new(move || {
                    (workload.record)(
                        inputs.get_or_insert_with(|| Inputs::kept(&Device::default(), true)).again(),
                    )
                }),
            });
        }
    }
    result.extend(programs());
    result.extend(
        recipes_of(random, seed).into_iter().enumerate().map(|(number, recipe)| graph(number, recipe)),
    );
    result
}

/// A program of one input.
fn program(name: &str, shape: &[usize], f: impl Fn(&Tensor) -> Vec<Tensor> + 'static) -> Case {
    let (shape, mut input) = (shape.to_vec(), None);
    Case {
        name: format!("program: {name}"),
        record: Box::new(move || {
            f(input.get_or_insert_with(|| floats(&Device::default(), DType::F32, shape.clone(), 1.0, 1)))
        }),
    }
}

fn programs() -> Vec<Case> {
    vec![
        program("rolling mean and std", &[200, 10_000], |x| {
            let windows = x.unfold(1, 50, 1);
            vec![windows.mean(2), windows.std(2, 1)]
        }),
        program("rolling z-score", &[200, 10_000], |x| {
            let windows = x.unfold(1, 50, 1);
            vec![(x.slice(1, 49..) - windows.mean(2)) / windows.std(2, 1)]
        }),
        program("random walks", &[1], |_| vec![Tensor::randn([20_000, 252], 1).cumsum(1)]),
        program("cumsum of exp", &[4096, 1024], |x| vec![x.exp().cumsum(1)]),
        program("std of two poolings", &[1, 1 << 20], |x| {
            let (mean, squares) = (x.avg_pool1d(50, 1), x.square().avg_pool1d(50, 1));
            vec![(squares - mean.square()).relu().sqrt()]
        }),
        program("total variation of squares", &[16, 32, 64, 64], |x| {
            let (rows, columns) =
                (x.narrow(2, 1, 63) - x.narrow(2, 0, 63), x.narrow(3, 1, 63) - x.narrow(3, 0, 63));
            vec![rows.abs().mean(..) + columns.abs().mean(..)]
        }),
        program("soft argmax of squares", &[512, 64, 64], |x| {
            let weights = x.flatten(1..3).softmax(1).reshape([512, 64, 64]);
            let at = Tensor::linspace(-1.0, 1.0, 64, DType::F32);
            vec![(weights.sum(1) * &at).sum(1), (weights.sum(2) * &at).sum(1)]
        }),
        program("the best of each beam", &[100_000, 8, 8], |x| vec![x.max(2).argmax(1)]),
        program("product by broadcasting", &[2, 256, 256], |x| {
            vec![(x.select(0, 0).unsqueeze(2) * x.select(0, 1).unsqueeze(0)).sum(1)]
        }),
        program("bodies as [i, j, 3]", &[2048, 3], |x| {
            let apart = x.unsqueeze(0) - x.unsqueeze(1);
            let square = apart.square().sum_keepdim(2) + 0.01;
            vec![(apart / (&square * square.sqrt())).sum(1)]
        }),
        program("softmax of rows of 3", &[1 << 20, 3], |x| vec![x.softmax(1)]),
        program("softmax of rows of 8", &[1 << 19, 8], |x| vec![x.softmax(1)]),
        program("layer norm of rows of 4", &[1 << 20, 4], |x| vec![x.layer_norm([4], None, None, 1e-5)]),
        program("softmax of rows of 12", &[1 << 18, 12], |x| vec![x.softmax(1)]),
        program("softmax of rows of 16", &[1 << 18, 16], |x| vec![x.softmax(1)]),
        program("layer norm of rows of 16", &[1 << 18, 16], |x| vec![x.layer_norm([16], None, None, 1e-5)]),
        program("rolled, then pooled", &[2000, 252], |x| {
            vec![x.roll(3, 1).unsqueeze(0).max_pool2d_with(Pool2d::new(3).stride(1).padding(1))]
        }),
        program("rolled, then softmax", &[4000, 252], |x| vec![x.roll(3, 1).softmax(1)]),
        program("rows of another length, then a norm", &[4000, 252], |x| {
            let turned = x.reshape([4000, 21, 12]).transpose(1, 2).reshape([4000, 252]);
            vec![turned.layer_norm([252], None, None, 1e-5)]
        }),
        program("interleaved, then the greatest", &[4000, 252], |x| {
            let (even, odd) = (x.slice(1, ..126), x.slice(1, 126..));
            vec![Tensor::stack(&[even, odd], 2).flatten(1..).argmax(1)]
        }),
        program("channels shuffled, then 5 x 5", &[8, 32, 56, 48], |x| {
            let shuffled = x.reshape([8, 4, 8, 56, 48]).transpose(1, 2).reshape([8, 32, 56, 48]);
            let weights = x.slice(0, ..1).reshape([-1]).slice(0, ..800).reshape([32, 1, 5, 5]);
            vec![shuffled.conv2d_with(&weights, None, Conv2d::new().padding(2).groups(32))]
        }),
        program("softmax of rows that are masked", &[2, 8, 512, 512], |x| {
            vec![x.masked_fill(x.gt(0.3), f64::NEG_INFINITY).softmax(3)]
        }),
        program("softmax of 3 channels", &[4, 3, 512, 512], |x| vec![x.softmax(1)]),
        program("overlapping windows of gelu", &[64, 128, 128], |x| vec![x.gelu().max_pool2d(3, 1)]),
        program("attention with rotary positions", &[3, 8, 256, 64], |x| vec![rotary_attention(x)]),
        program("bilateral filter of 5 x 5", &[260, 260], |x| vec![bilateral(x)]),
        program("sum of rolled parts, which are joined", &[9, 192, 256], |x| {
            let part = |n: isize| x.select(0, n).roll([n % 3 - 1, n / 3 - 1], [0, 1]);
            let joined = Tensor::stack(&(0..9).map(part).collect::<Vec<_>>(), 0);
            vec![joined.sum(0), joined]
        }),
        program("rotary embedding of neighbours, then a norm", &[256, 2048], |x| {
            let (even, odd) = (x.slice_step(1, None, None, 2), x.slice_step(1, 1, None, 2));
            let angles = Tensor::arange(0.0, 1024.0, 1.0) * 0.01;
            let (cos, sin) = (angles.cos(), angles.sin());
            let pair = [&even * &cos - &odd * &sin, &even * &sin + &odd * &cos];
            let turned = Tensor::stack(&pair, 2).reshape([256, 2048]);
            vec![&turned / (turned.square().mean_keepdim(1) + 1e-6).sqrt()]
        }),
        program("largest exp of a part of each image", &[4000, 12, 80], |x| {
            vec![x.narrow(2, 3, 72).exp().max([1, 2])]
        }),
        program("adaptive pooling to 3", &[600, 40, 40], |x| vec![x.adaptive_avg_pool2d([3, 3]) * 2.0]),
        program("mean of a pool of 5×5", &[16, 256, 256], |x| vec![x.max_pool2d(5, 1).mean([1, 2])]),
        program("scores of edges in four heads", &[60_000, 4], |x| {
            let at = Tensor::randint(0, 20_000, [60_000], 1);
            let nodes = x.slice(0, ..20_000);
            vec![(x - nodes.index_select(0, &at)).exp() / (nodes.square() + 1.0).index_select(0, &at)]
        }),
        program("edges that grow until none changes", &[512, 512], |x| {
            let (strong, weak) = (x.gt(0.9), x.gt(-0.5));
            let pool = Pool2d::new(3).stride(1).padding(1);
            let near = strong.cast(DType::F32).unsqueeze(0).max_pool2d_with(pool).squeeze(0).gt(0.0);
            let grown = near.logical_and(&weak);
            vec![grown.ne(&strong).any(..), grown]
        }),
        program("largest of a smoothed image", &[4, 3, 510, 510], |x| {
            vec![x.avg_pool2d_with(Pool2d::new(7).stride(1).padding(3)).max([2, 3])]
        }),
        program("regions that are sampled, then pooled", &[50, 14, 14, 2], |x| {
            let image = Tensor::arange(0.0f32, 65536.0, 1.0).reshape([1, 64, 32, 32]) * 1e-3;
            vec![image.expand([50, 64, 32, 32]).grid_sample(x, GridSample::new()).avg_pool2d(2, 2)]
        }),
        program("depthwise 3 x 3, then a group norm", &[8, 128, 28, 28], |x| {
            let weights = x.slice(0, ..1).reshape([-1]).slice(0, ..1152).reshape([128, 1, 3, 3]);
            let convolved = x.conv2d_with(&weights, None, Conv2d::new().padding(1).groups(128));
            vec![convolved.group_norm(16, None, None, 1e-5)]
        }),
        program("3 x 3 pool, then a group norm", &[8, 128, 14, 14], |x| {
            vec![x.avg_pool2d_with(Pool2d::new(3).stride(1).padding(1)).group_norm(16, None, None, 1e-5)]
        }),
        program("quotients that are gathered", &[2, 20_000], |x| {
            let at = (Tensor::rand([200_000], 3) * 20_000.0).cast(DType::I64);
            vec![(x.select(0, 0) / x.select(0, 1)).gather(0, at)]
        }),
        program("starts of runs, counted", &[300_000], |x| {
            let starts = x.slice(0, 1..).gt(x.slice(0, ..-1)).pad([(1, 0)], true);
            vec![starts.cast(DType::I64).cumsum(0)]
        }),
        program("a box along one axis after the other", &[16, 256, 256], |x| {
            vec![x.avg_pool2d((9, 1), 1).avg_pool2d((1, 9), 1)]
        }),
        program("channels of an enlarged image", &[8, 16, 128, 128], |x| {
            let y = x.interpolate([256, 256], Interpolation::Linear { align_corners: false });
            vec![y.mean(1), y.max(1)]
        }),
        program("exponentials of running totals of rows of 7", &[60_000, 7], |x| {
            vec![(x.cumsum(1) * 0.1).exp()]
        }),
        program("two steps of heat with a repeated border", &[512, 512], |x| {
            let step = |x: &Tensor| {
                let at = x.pad_with(1, PadMode::Replicate);
                let at =
                    |row: isize, column: isize| at.slice(0, row..row + 512).slice(1, column..column + 512);
                x + (at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2) - x * 4.0) * 0.1
            };
            vec![step(&step(x))]
        }),
        program("norm of ten joined tensors", &[10, 1 << 20], |x| {
            let parts: Vec<Tensor> = (0..10).map(|n| x.select(0, n).slice(0, n..)).collect();
            vec![Tensor::cat(&parts, 0).square().sum(0).sqrt()]
        }),
        program("common neighbours in a graph", &[1024, 1024], |x| {
            let above = x.gt(0.4).triu(1).cast(DType::F32);
            let joined = &above + above.t();
            let common = joined.matmul(&joined);
            vec![(&common * &joined).sum(1), common.max(1)]
        }),
        program("seven joints, 4 x 4 matrices", &[5000, 7], |x| vec![joints(x)]),
        program("messages weighed by head", &[20_000, 64], |x| vec![messages(x)]),
        program("crops by position", &[64, 3 * 40 * 40], |x| {
            let x = x.reshape([64, 3, 40, 40]);
            let places = |seed| Tensor::randint(0, 9, [64, 1], seed) + Tensor::arange(0i64, 32, 1);
            let rows = x.gather(2, &places(1).reshape([64, 1, 32, 1]).expand([64, 3, 32, 40]));
            let crop = rows.gather(3, &places(2).reshape([64, 1, 1, 32]).expand([64, 3, 32, 32]));
            let bright = (crop * 1.2).clamp(0.0, 1.0);
            vec![bright.mean_keepdim(1), bright]
        }),
        program("two layers with a residual", &[512, 256], |x| {
            let (x, weight) = (x.slice(0, ..256), x.slice(0, 256..));
            let hidden = x.matmul(&weight).silu();
            vec![hidden.matmul(&weight.t()).silu() + hidden]
        }),
        program("gradient of a layer's weights", &[512, 256], |x| {
            let (x, weight) = (x.slice(0, ..256), x.slice(0, 256..));
            vec![x.t().matmul(&(x.matmul(&weight.t()) * x.gt(0.0).cast(DType::F32)))]
        }),
        program("a layer and one of low rank", &[768, 512], |x| {
            let (x, weight) = (x.slice(0, ..256), x.slice(0, 256..));
            let low = x.matmul(&weight.slice(1, ..8)).matmul(&weight.slice(0, ..8));
            vec![x.matmul(&weight) + low * 2.0 + x]
        }),
        program("loss of one prediction each", &[1_000_000, 2], |x| {
            let (y, target) = (x.slice(1, ..1), x.slice(1, 1..));
            vec![(y.sigmoid() - target).square().mean(..)]
        }),
        program("shares of all pairs but each with itself", &[750, 2], |x| {
            let squares = x.square().sum(1);
            let distances = squares.unsqueeze(1) + squares.unsqueeze(0) - x.matmul(x.t()) * 2.0;
            let near = (1.0 / (distances + 1.0)) * (1.0 - Tensor::eye(750, DType::F32));
            vec![&near / near.sum(..), near]
        }),
        program("stacked steps reversed by lengths", &[40, 16 * 48], |x| {
            let steps: Vec<Tensor> = (0..40).map(|n| (x.select(0, n) * 0.5).tanh()).collect();
            let lengths = Tensor::randint(1, 41, [768], 1);
            let steps_of = Tensor::arange(0i64, 40, 1).unsqueeze(1);
            let reversed = steps_of.lt(&lengths).where_(&lengths - 1 - &steps_of, &steps_of);
            vec![Tensor::cat(&[Tensor::stack(&steps, 0).gather(0, &reversed), x.clone()], 1) * 2.0]
        }),
        program("density of neighbours in cells", &[20_000, 2], |x| {
            let index = Tensor::randint(0, 20_000, [20_000 * 16], 1);
            let near = x.index_select(0, &index).reshape([20_000, 16, 2]);
            let weights = (1.0 - (x.unsqueeze(1) - near).square().sum(2)).clamp_min(0.0).pow(3);
            vec![(weights * 2.0).exp().sum(1)]
        }),
        program("features, their slopes and a mask", &[16, 512, 80], |x| {
            let features = (x - x.mean_keepdim(1)) / (x.std_keepdim(1, 1) + 1e-5);
            let padded = features.pad_with([(0, 0), (2, 2), (0, 0)], PadMode::Replicate);
            let [a, b, c, d] = [0, 1, 3, 4].map(|first| padded.slice(1, first..first + 512));
            let slopes = (c - b + (d - a) * 2.0) / 10.0;
            let position = Tensor::arange(0i64, 80, 1);
            let both = Tensor::cat([&features, &slopes], 2).reshape([16, 512, 2, 80]);
            vec![position.lt(20).logical_or(position.ge(30)).where_(both, 0.0)]
        }),
        program("sines and cosines of points, by octave", &[65_536, 3], |x| {
            let angles = x.unsqueeze(2) * (Tensor::arange(0.0f32, 10.0, 1.0).exp2() * std::f64::consts::PI);
            let waves = Tensor::stack([angles.sin(), angles.cos()], 3).reshape([65_536, 60]);
            vec![Tensor::cat([x, &waves], 1)]
        }),
        program("spread by a transposed convolution, clamped", &[32, 32, 16, 16], |x| {
            let weights = x.slice(0, ..1).reshape([-1]).slice(0, ..4608).reshape([32, 16, 3, 3]);
            let conv = Conv2d::new().stride(2).padding(1).output_padding(1);
            vec![(x.conv_transpose2d_with(&weights, None, conv).clamp(0.0, 1.0) * 2.0).clamp(0.0, 1.0)]
        }),
        program("spread in three dimensions, logsumexp", &[2, 16, 8, 16, 16], |x| {
            let weights = x.slice(0, ..1).reshape([-1]).slice(0, ..13824).reshape([16, 32, 3, 3, 3]);
            let conv = Conv3d::new().stride(2).padding(1).output_padding(1);
            vec![x.conv_transpose3d_with(&weights, None, conv).logsumexp(1)]
        }),
        program("convolution, mish twice", &[32, 3, 32, 32], |x| {
            let weights = x.slice(0, ..1).reshape([-1]).slice(0, ..432).reshape([16, 3, 3, 3]);
            vec![x.conv2d(&weights, None, 1, 0).mish().mish()]
        }),
        program("blurred, halved, gated by channel", &[32, 64, 28, 28], |x| {
            let k = Tensor::from_slice(&[1.0f32, 2.0, 1.0], [3]);
            let weight = (k.unsqueeze(0) * k.unsqueeze(1) / 16.0).expand([64, 1, 3, 3]);
            let y = x.conv2d_with(&weight, None, Conv2d::new().padding(1).stride(2).groups(64));
            let gate = y.mean_keepdim([2, 3]).sigmoid();
            vec![(y * gate).pixel_unshuffle(2)]
        }),
        program("gaps filled from before, or by the mean", &[2000, 500], |x| {
            let is_gap = x.gt(1.5);
            let last = is_gap.where_(Tensor::scalar(-1i64), &Tensor::arange(0i64, 500, 1)).cummax(1);
            let filled = x.gather(1, last.clamp_min(0));
            let count = is_gap.logical_not().cast(DType::F32).sum_keepdim(1);
            let mean = is_gap.where_(0.0, x).sum_keepdim(1) / count;
            vec![last.ge(0).where_(filled, mean)]
        }),
        program("a flock", &[512, 4], |x| {
            let (p, v) = (x.slice(1, ..2), x.slice(1, 2..));
            let d = p.unsqueeze(0) - p.unsqueeze(1);
            let r = d.square().sum(2);
            let near = r.lt(0.01).cast(DType::F32) * (1.0 - Tensor::eye(512, DType::F32));
            let n = near.sum_keepdim(1) + 1e-9;
            let steer = (near.matmul(&p) / &n - &p) * 0.01 + (near.matmul(&v) / &n - &v) * 0.1;
            let apart = (&d * (&near / (r + 1e-4)).unsqueeze(2)).sum(1) * -1e-4;
            vec![v + steer + apart]
        }),
    ]
}

/// Rows of other nodes, in four heads with a weight each, added up.
fn messages(x: &Tensor) -> Tensor {
    let edges = 60_000;
    let [from, to] = [1, 2].map(|seed| Tensor::randint(0, 20_000, [edges], seed));
    let (rows, weights) = (x.reshape([20_000, 4, 16]), x.slice(1, ..4).index_select(0, &to));
    let weighed = rows.index_select(0, &from) * weights.unsqueeze(2);
    Tensor::zeros([20_000, 4, 16], DType::F32).index_add(0, &to, &weighed).relu()
}

/// Causal attention of queries, keys and values, whose positions turn pairs of the first two.
fn rotary_attention(x: &Tensor) -> Tensor {
    let (length, half) = (256, 32);
    let positions = Tensor::arange(0.0f32, length as f32, 1.0);
    let rates = (Tensor::arange(0.0f32, half as f32, 1.0) * (-(1e4f64.ln()) / half as f64)).exp();
    let angles = positions.unsqueeze(1) * rates;
    let (cos, sin) = (angles.cos(), angles.sin());
    let turned = |x: Tensor| {
        let (a, b) = (x.slice(2, 0..half), x.slice(2, half..));
        Tensor::cat(&[&a * &cos - &b * &sin, &a * &sin + &b * &cos], 2)
    };
    let scores = turned(x.select(0, 0)).matmul(&turned(x.select(0, 1)).transpose(1, 2)) * 0.125;
    let may_see = positions.unsqueeze(1).ge(&positions);
    may_see.where_(scores, f64::NEG_INFINITY).softmax(-1).matmul(&x.select(0, 2))
}

/// Neighbours weighted by how near and how alike they are.
fn bilateral(x: &Tensor) -> Tensor {
    let inside = |y: isize, x0: isize| x.slice(0, y..y + 256).slice(1, x0..x0 + 256);
    let middle = inside(2, 2);
    let (mut sum, mut weights) =
        (Tensor::zeros([256, 256], DType::F32), Tensor::zeros([256, 256], DType::F32));
    for (dy, dx) in (0..5).flat_map(|dy| (0..5).map(move |dx| (dy, dx))) {
        let near = inside(dy, dx);
        let distance = ((dy - 2) * (dy - 2) + (dx - 2) * (dx - 2)) as f64;
        let weight = ((&near - &middle).square() * -20.0 - distance / 8.0).exp();
        sum = sum + &weight * near;
        weights = weights + weight;
    }
    sum / weights
}

/// A chain of turns about one axis, each one a matrix of its own angle.
fn joints(x: &Tensor) -> Tensor {
    let (bodies, count) = (5000, 7);
    let number = |value| Tensor::full([bodies], value, DType::F32);
    let (zero, one, far) = (number(0.0), number(1.0), number(0.3));
    let joint = |n| {
        let (cos, sin) = (x.select(1, n).cos(), x.select(1, n).sin());
        let minus = -&sin;
        let rows = [[&cos, &minus, &zero, &far], [&sin, &cos, &zero, &zero]];
        let others = [[&zero, &zero, &one, &far], [&zero, &zero, &zero, &one]];
        Tensor::stack([rows, others].as_flattened().as_flattened(), 1).reshape([bodies, 4, 4])
    };
    (1..count).fold(joint(0), |chain, n| chain.matmul(&joint(n)))
}

fn recipes_of(count: usize, seed: u8) -> Vec<(Recipe<Smooth>, [usize; 3])> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    // 1 to 50 MB: 250,000 to 12,500,000 elements.
    let shape = (0u32..18, 4u32..10, 2usize..6).prop_map(|(size, rows, batch)| {
        let elements = 250_000.0 * f64::from(size).mul_add(0.22, 0.0).exp();
        let rows = 1usize << rows;
        [batch, rows, (elements / (batch * rows) as f64) as usize + 1]
    });
    let strategy = (recipes(SMOOTH_OPS.to_vec(), 10..=60), shape);
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("a graph").current()).collect()
}

fn graph(number: usize, (recipe, shape): (Recipe<Smooth>, [usize; 3])) -> Case {
    let mut inputs = None;
    let elements: usize = shape.iter().product();
    Case {
        name: format!("random {number}"),
        record: Box::new(move || {
            let new = || SmoothInputs::new(&Device::default(), DType::F32, shape, 2 * elements);
            smooth_tensors(inputs.get_or_insert_with(new), &recipe)
        }),
    }
}
