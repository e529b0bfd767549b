//! What happens to each row: normalisations, losses of rows, positions.

use lazuli::{DType, Reduction, Tensor};

use crate::inputs::{Group, Inputs, row};

pub fn groups() -> Vec<Group> {
    vec![softmax(), norms(), of_channels(), labelled()]
}

fn extent(x: &Tensor, axis: usize) -> usize {
    x.shape().unwrap()[axis]
}

/// Scores of attention: heads, queries, keys.
fn scores(x: &mut Inputs) -> Tensor {
    let shape = [x.at(16, 2), x.at(512, 7), x.at(512, 7)];
    x.floats(shape)
}

fn softmax() -> Group {
    let rows = vec![
        row("softmax", |x| vec![x.rows().softmax(-1)]),
        row("softmax bf16", |x| {
            let shape = [x.at(4096, 3), x.at(1024, 37)];
            vec![x.halves(DType::BF16, shape).softmax(-1)]
        }),
        row("softmax of columns", |x| vec![x.rows().softmax(0)])
            .because("right: too few columns for all multiprocessors, which share the first pass"),
        row("softmax of a middle axis", |x| {
            let shape = [x.at(64, 2), x.at(32, 5), x.at(1024, 9)];
            vec![x.floats(shape).softmax(1)]
        }),
        row("softmax of rows of 8", |x| {
            let shape = [x.at(1 << 18, 7), 8];
            vec![x.floats(shape).softmax(1)]
        }),
        row("softmax of two axes", |x| {
            let y = x.images();
            let e = (&y - y.max_keepdim([2, 3])).exp();
            vec![&e / e.sum_keepdim([2, 3])]
        }),
        row("softmax, rows of 50,000", |x| {
            let shape = [x.at(64, 2), x.at(50_000, 50)];
            vec![x.floats(shape).softmax(-1)]
        }),
        row("layer_norm of a sum, rows of 50,000", |x| {
            let shape = [x.at(256, 2), x.at(50_000, 50)];
            vec![(x.floats(shape) + x.floats(shape)).layer_norm([shape[1]], None, None, 1e-5)]
        }),
        row("softmax, rows of 100,000", |x| {
            let shape = [x.at(64, 2), x.at(100_000, 50)];
            vec![x.floats(shape).softmax(-1)]
        })
        .because("right: the maximum and the sum come before the first result, of rows too long to keep"),
        row("log_softmax", |x| vec![x.rows().log_softmax(-1)]),
        row("logsumexp", |x| vec![x.rows().logsumexp(1)]),
        row("softmax and its entropy", |x| {
            let p = x.rows().softmax(-1);
            vec![-(&p * (&p + 1e-9).log()).sum(1), p]
        }),
        row("attention: scale, mask, softmax", |x| {
            let scores = scores(x);
            let shape = scores.shape().unwrap();
            let hidden = x.mask([shape[1], shape[2]]);
            vec![(scores * 0.125).masked_fill(&hidden, -1e4).softmax(-1)]
        }),
        row("attention: causal, by tri", |x| {
            let scores = scores(x);
            let queries = extent(&scores, 1);
            let seen = Tensor::tri(queries, queries, 0, DType::Bool);
            vec![seen.where_(scores * 0.125, f64::NEG_INFINITY).softmax(-1)]
        }),
        row("attention: bias, softmax, dropout", |x| {
            let scores = scores(x);
            let shape = scores.shape().unwrap();
            let bias = x.floats([shape[1], shape[2]]);
            vec![(scores * 0.125 + bias).softmax(-1).dropout(0.1, 5)]
        }),
    ];
    ("softmax and its relatives", rows)
}

fn norms() -> Group {
    let rows = vec![
        row("layer_norm", |x| {
            let x = x.rows();
            vec![x.layer_norm([extent(&x, 1)], None, None, 1e-5)]
        }),
        row("layer_norm, weight and bias", |x| {
            let y = x.rows();
            let length = extent(&y, 1);
            let (weight, bias) = (x.floats([length]), x.floats([length]));
            vec![y.layer_norm([length], Some(&weight), Some(&bias), 1e-5)]
        }),
        row("layer_norm bf16, then gelu", |x| {
            let shape = [x.at(4096, 3), x.at(1024, 37)];
            let y = x.halves(DType::BF16, shape);
            vec![y.layer_norm([shape[1]], None, None, 1e-5).gelu()]
        }),
        row("rms_norm, weight", |x| {
            let y = x.rows();
            let length = extent(&y, 1);
            let weight = x.floats([length]);
            vec![y.rms_norm([length], Some(&weight), 1e-6)]
        }),
        row("residual + rms_norm, both results", |x| {
            let sum = x.rows() + x.rows();
            let length = extent(&sum, 1);
            let weight = x.floats([length]);
            vec![sum.rms_norm([length], Some(&weight), 1e-6), sum]
        }),
        row("residual + layer_norm, both results", |x| {
            let sum = x.rows() + x.rows();
            let length = extent(&sum, 1);
            let (weight, bias) = (x.floats([length]), x.floats([length]));
            vec![sum.layer_norm([length], Some(&weight), Some(&bias), 1e-5), sum]
        }),
        row("row standardisation", |x| {
            let x = x.rows();
            vec![(&x - x.mean_keepdim(1)) / (x.std_keepdim(1, 1) + 1e-6)]
        }),
        row("column standardisation", |x| {
            let x = x.rows();
            vec![(&x - x.mean_keepdim(0)) / (x.std_keepdim(0, 1) + 1e-6)]
        })
        .because("right: too few columns for all multiprocessors, which share the first pass"),
        row("rows scaled to 0..1", |x| {
            let x = x.rows();
            let (least, most) = x.aminmax_keepdim(1);
            vec![(&x - &least) / (most - least)]
        }),
        row("rows of length 1", |x| vec![x.rows().normalize(2.0, -1, 1e-12)]),
        row("cosine similarity of rows", |x| vec![x.rows().cosine_similarity(&x.rows(), 1, 1e-8)]),
        row("int8 rows with their scales", |x| {
            let x = x.rows();
            let scale = x.abs().max_keepdim(1) / 127.0;
            vec![(&x / &scale).round().clamp(-127, 127).cast(DType::I8), scale]
        }),
    ];
    ("norms of rows", rows)
}

fn of_channels() -> Group {
    let rows = vec![
        row("group_norm", |x| {
            let y = x.images();
            let channels = extent(&y, 1);
            let (weight, bias) = (x.floats([channels]), x.floats([channels]));
            vec![y.group_norm(channels / 4, Some(&weight), Some(&bias), 1e-5)]
        }),
        row("group_norm f16, silu", |x| {
            let shape = [x.at(8, 2), x.at(32, 4), x.at(64, 8), x.at(64, 10)];
            vec![x.halves(DType::F16, shape).group_norm(x.at(8, 2), None, None, 1e-5).silu()]
        }),
        row("instance_norm", |x| vec![x.images().instance_norm(None, None, 1e-5)]),
        row("batch norm, inference", |x| {
            let y = x.images();
            let channels = extent(&y, 1);
            let [mean, weight, bias] = [(); 3].map(|()| x.floats([channels]));
            let var = x.positive([channels]);
            vec![y.batch_norm(&mean, &var, Some(&weight), Some(&bias), 1e-5)]
        }),
        row("batch norm, training", |x| {
            let y = x.images();
            let (var, mean) = y.var_mean_keepdim([0, 2, 3], 0);
            vec![(y - &mean) / (&var + 1e-5).sqrt(), mean, var]
        }),
        row("ResNet block: norm, add, relu", |x| {
            let (y, shortcut) = (x.images(), x.images());
            let channels = extent(&y, 1);
            let [mean, weight, bias] = [(); 3].map(|()| x.floats([channels]));
            let var = x.positive([channels]);
            let y = y.batch_norm(&mean, &var, Some(&weight), Some(&bias), 1e-5).relu();
            vec![(y + shortcut).relu()]
        }),
        row("local_response_norm", |x| vec![x.images().local_response_norm(5, 1e-4, 0.75, 1.0)]),
        row("global average pooling, sigmoid", |x| vec![x.images().mean([2, 3]).sigmoid()]),
    ];
    ("norms of channels", rows)
}

/// Logits and a label each.
fn logits(x: &mut Inputs) -> (Tensor, Tensor) {
    let (rows, classes) = (x.at(4096, 6), x.at(1000, 37));
    (x.floats([rows, classes]), x.labels([rows], classes))
}

fn labelled() -> Group {
    let rows = vec![
        row("cross-entropy", |x| {
            let (logits, labels) = logits(x);
            vec![logits.cross_entropy(&labels, Reduction::None)]
        }),
        row("cross-entropy, mean", |x| {
            let (logits, labels) = logits(x);
            vec![logits.cross_entropy(&labels, Reduction::Mean)]
        })
        .because("right: the mean needs the losses of all rows"),
        row("cross-entropy, smoothed labels", |x| {
            let (logits, labels) = logits(x);
            let classes = extent(&logits, 1);
            let target = labels.one_hot(classes).cast(DType::F32) * 0.9 + 0.1 / classes as f64;
            vec![-(target * logits.log_softmax(-1)).sum(1)]
        }),
        row("gradient of cross-entropy", |x| {
            let (logits, labels) = logits(x);
            let classes = extent(&logits, 1);
            vec![logits.softmax(-1) - labels.one_hot(classes).cast(DType::F32)]
        }),
        row("argmax", |x| vec![x.rows().argmax(1)]),
        row("argmax with max", |x| {
            let (value, index) = x.rows().max_with_indices(1);
            vec![value, index]
        }),
        row("argmin of columns", |x| vec![x.rows().argmin(0)]),
        row("argmax of everything", |x| vec![x.rows().argmax(..)]),
        row("correct predictions", |x| {
            let (logits, labels) = logits(x);
            vec![logits.argmax(1).eq(labels)]
        }),
        row("top-1 accuracy", |x| {
            let (logits, labels) = logits(x);
            vec![logits.argmax(1).eq(labels).cast(DType::F32).mean(..)]
        })
        .because("right: the mean needs the answers of all rows"),
        row("Gumbel sampling of a class", |x| {
            let logits = x.rows();
            let noise = -(-(logits.rand_like(3) + 1e-9).log()).log();
            vec![(logits + noise).argmax(1)]
        }),
    ];
    ("labels and positions", rows)
}
