//! What training does beside its matrix products: activations, losses, optimisers, random numbers.

use lazuli::{DType, Reduction, Tensor};

use crate::inputs::{Group, Inputs, Workload, row};

pub fn groups() -> Vec<Group> {
    vec![activations(), losses(), optimisers(), random()]
}

/// gelu with tanh, spelt out.
fn gelu(x: &Tensor) -> Tensor {
    0.5 * x * (1.0 + (0.797_884_56 * (x + 0.044715 * (x * x * x))).tanh())
}

fn activations() -> Group {
    let mut rows = vec![
        row("gelu chain", |x| vec![gelu(&x.rows()) * 1.5 + 0.25]),
        row("gelu chain bf16, computed in f32", |x| {
            let shape = [x.at(4096, 3), x.at(1024, 37)];
            let y = x.halves(DType::BF16, shape).cast(DType::F32);
            vec![(gelu(&y) * 1.5 + 0.25).cast(DType::BF16)]
        }),
        row("chain of twenty operations", |x| {
            let x = x.rows();
            let y = (&x * 1.01 + 0.5).abs().sqrt() - 0.75;
            let y = y.maximum(-0.5);
            let y = &y * &y + &x;
            let y = (-y.abs()).exp() * 2.0 - x;
            let y = y.minimum(3.0).maximum(-3.0) * 0.5;
            vec![(&y * &y + 1.0).sqrt() / 1.5]
        }),
        row("bias, gelu, dropout", |x| {
            let y = x.rows();
            let bias = x.floats([y.shape().unwrap()[1]]);
            vec![(y + bias).gelu().dropout(0.1, 7)]
        }),
        row("SwiGLU of two tensors", |x| vec![x.rows().silu() * x.rows()]),
        row("SwiGLU of two halves", |x| {
            let shape = [x.at(4096, 3), x.at(2048, 14)];
            let halves = x.floats(shape).chunk(2, -1).unwrap();
            vec![halves[0].silu() * &halves[1]]
        }),
        row("gelu: value and gradient", |x| {
            let (x, gradient) = (x.rows(), x.rows());
            let normal = ((&x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
            let density = (x.square() * -0.5).exp() * 0.398_942_28;
            vec![&x * &normal, gradient * (normal + &x * density)]
        }),
        row("gradient of softmax", |x| {
            let (p, gradient) = (x.rows(), x.rows());
            let product = &p * gradient;
            vec![&product - &p * product.sum_keepdim(1)]
        }),
    ];
    rows.extend(positions());
    ("activations and positions", rows)
}

fn positions() -> Vec<Workload> {
    vec![
        row("RoPE: two halves rotated", |x| {
            // Batch, heads, positions, elements.
            let [batch, heads, positions, size] = [x.at(4, 2), x.at(16, 3), x.at(512, 5), x.at(128, 8)];
            let (q, cos, sin) = (
                x.floats([batch, heads, positions, size]),
                x.floats([positions, size]),
                x.floats([positions, size]),
            );
            let halves = q.chunk(2, -1).unwrap();
            let rotated = Tensor::cat(&[&-&halves[1], &halves[0]], -1);
            vec![q * cos + rotated * sin]
        }),
        row("RoPE: pairs, angles computed", |x| {
            let [batch, heads, positions, size] = [x.at(4, 2), x.at(16, 3), x.at(512, 5), x.at(128, 8)];
            let q = x.floats([batch, heads, positions, size / 2, 2]);
            let step = Tensor::arange(0.0, size as f32 / 2.0, 1.0) * (-2.0 / size as f64 * 10_000f64.ln());
            let angle = Tensor::arange(0.0, positions as f32, 1.0).unsqueeze(1) * step.exp();
            let (a, b) = (q.select(-1, 0), q.select(-1, 1));
            let parts = [&a * angle.cos() - &b * angle.sin(), a * angle.sin() + b * angle.cos()];
            vec![Tensor::stack(&parts.each_ref(), -1).reshape([batch, heads, positions, size])]
        })
        .because("right: angles are computed once, not for each of 64 heads"),
        row("RoPE: queries and keys", |x| {
            let [batch, heads, positions, size] = [x.at(4, 2), x.at(16, 3), x.at(512, 5), x.at(128, 8)];
            let (cos, sin) = (x.floats([positions, size]), x.floats([positions, size]));
            let mut rotate = || {
                let q = x.floats([batch, heads, positions, size]);
                &q * &cos + q.roll(size as isize / 2, -1) * &sin
            };
            vec![rotate(), rotate()]
        }),
        row("embedding + positions computed", |x| {
            let [batch, positions, size] = [x.at(8, 2), x.at(512, 5), x.at(512, 6)];
            let y = x.floats([batch, positions, size]);
            let rate = Tensor::arange(0.0, size as f32, 1.0) * (-(10_000f64.ln()) / size as f64);
            let angle = Tensor::arange(0.0, positions as f32, 1.0).unsqueeze(1) * rate.exp();
            vec![y + angle.sin()]
        }),
        row("gradient of an embedding: index_add", |x| {
            let [tokens, entries, size] = [x.at(8192, 23), x.at(50_000, 301), x.at(512, 70)];
            let (gradient, ids) = (x.floats([tokens, size]), x.labels([tokens], entries));
            vec![Tensor::zeros([entries, size], DType::F32).index_add(0, &ids, &gradient)]
        }),
        row("embedding, updated where it was read", |x| {
            let [tokens, entries, size] = [x.at(8192, 23), x.at(50_000, 301), x.at(512, 6)];
            let (table, gradient) = (x.floats([entries, size]), x.floats([tokens, size]));
            let ids = x.labels([tokens], entries);
            vec![table.index_add_with(0, &ids, &(gradient * 0.125).tanh(), -0.01)]
        }),
        row("scatter_add", |x| {
            let [rows, positions, columns] = [x.at(4096, 5), x.at(1000, 11), x.at(512, 3)];
            let (sums, values) = (x.floats([positions, columns]), x.floats([rows, columns]));
            vec![sums.scatter_add(0, &x.labels([rows, columns], positions), &values)]
        }),
    ]
}

/// Corners x0, y0, x1, y1 of boxes, one below the other.
fn boxes(x: &mut Inputs, count: usize) -> Tensor {
    let (corner, size) = (x.floats([count, 2]), x.positive([count, 2]));
    Tensor::cat(&[&corner, &(&corner + size)], 1)
}

/// The shared part of the area, of pairs that broadcast.
fn intersection_over_union(a: &Tensor, b: &Tensor) -> Tensor {
    let side = |x: &Tensor, n: isize| x.select(-1, n);
    let across = side(a, 2).minimum(side(b, 2)) - side(a, 0).maximum(side(b, 0));
    let down = side(a, 3).minimum(side(b, 3)) - side(a, 1).maximum(side(b, 1));
    let shared = across.clamp_min(0.0) * down.clamp_min(0.0);
    let area = |x: &Tensor| (side(x, 2) - side(x, 0)) * (side(x, 3) - side(x, 1));
    &shared / (area(a) + area(b) - &shared)
}

fn losses() -> Group {
    let rows = vec![
        row("smooth L1, mean", |x| vec![x.rows().smooth_l1_loss(&x.rows(), 0.5, Reduction::Mean)]),
        row("Huber, one each", |x| vec![x.rows().huber_loss(&x.rows(), 1.0, Reduction::None)]),
        row("binary cross-entropy with logits", |x| {
            vec![x.rows().binary_cross_entropy_with_logits(&x.rows().sigmoid(), Reduction::Mean)]
        }),
        row("focal loss", |x| {
            let logits = x.rows();
            let shape = logits.shape().unwrap();
            let target = x.mask(shape).cast(DType::F32);
            let p = logits.sigmoid();
            let hit = &p * &target + (1.0 - &p) * (1.0 - &target);
            let weight = &target * 0.25 + (1.0 - target) * 0.75;
            vec![(weight * (1.0 - &hit).square() * -(hit + 1e-8).log()).mean(..)]
        }),
        row("Dice loss", |x| {
            let p = x.rows().sigmoid();
            let shape = p.shape().unwrap();
            let target = x.mask(shape).cast(DType::F32);
            vec![1.0 - ((&p * &target).sum(..) * 2.0 + 1.0) / (p.sum(..) + target.sum(..) + 1.0)]
        }),
        row("divergence of two softmaxes", |x| {
            let (teacher, student) = (x.rows().log_softmax(-1), x.rows().log_softmax(-1));
            vec![(teacher.exp() * (&teacher - student)).sum(1)]
        }),
        row("triplet margin loss", |x| {
            let [anchor, near, far] = [(); 3].map(|()| x.rows());
            let distance = |other: &Tensor| (&anchor - other).square().sum(1).sqrt();
            vec![(distance(&near) - distance(&far) + 1.0).relu()]
        }),
        row("IoU of boxes, one to one", |x| {
            let count = x.at(100_000, 9);
            let sides = [(); 8].map(|()| x.floats([count]));
            let corners = |n: usize| Tensor::stack(&sides[n..n + 4].iter().collect::<Vec<_>>(), 1);
            vec![intersection_over_union(&corners(0), &corners(4))]
        }),
        row("IoU of boxes, all pairs", |x| {
            let (a, b) = (x.at(2000, 5), x.at(3000, 6));
            let (a, b) = (x.floats([a, 1, 4]), x.floats([1, b, 4]));
            vec![intersection_over_union(&a, &b)]
        }),
        row("IoU of boxes from corner and size", |x| {
            let (a, b) = (x.at(2000, 5), x.at(3000, 6));
            let (a, b) = (boxes(x, a).unsqueeze(1), boxes(x, b).unsqueeze(0));
            vec![intersection_over_union(&a, &b)]
        }),
    ];
    ("losses and boxes", rows)
}

/// A parameter, its gradient and two averages.
fn four(x: &mut Inputs) -> [Tensor; 4] {
    let shape = [x.at(1 << 20, 101)];
    [x.floats(shape), x.floats(shape), x.floats(shape), x.positive(shape)]
}

/// Parameter, first and second average after a step.
fn adam([parameter, gradient, m, v]: &[Tensor; 4], decay: f64) -> [Tensor; 3] {
    let m = m * 0.9 + gradient * 0.1;
    let v = v * 0.999 + gradient.square() * 0.001;
    let root = (&v * (1.0 / (1.0 - 0.999f64.powi(10)))).sqrt() + 1e-8;
    let parameter = parameter * (1.0 - decay) - &m * (1e-3 / (1.0 - 0.9f64.powi(10))) / root;
    [parameter, m, v]
}

fn optimisers() -> Group {
    let rows = vec![
        row("SGD with momentum", |x| {
            let [parameter, gradient, velocity, _] = four(x);
            let velocity = velocity * 0.9 + gradient;
            vec![parameter - &velocity * 0.01, velocity]
        }),
        row("SGD, Nesterov, weight decay", |x| {
            let [parameter, gradient, velocity, _] = four(x);
            let gradient = gradient + &parameter * 1e-4;
            let velocity = velocity * 0.9 + &gradient;
            vec![parameter - (gradient + &velocity * 0.9) * 0.01, velocity]
        }),
        row("AdamW", |x| adam(&four(x), 1e-5).to_vec()),
        row("AdamW and the weights in bf16", |x| {
            let [parameter, m, v] = adam(&four(x), 1e-5);
            vec![parameter.cast(DType::BF16), parameter, m, v]
        }),
        row("RMSprop", |x| {
            let [parameter, gradient, _, average] = four(x);
            let average = average * 0.99 + gradient.square() * 0.01;
            vec![parameter - gradient * 1e-3 / (average.sqrt() + 1e-8), average]
        }),
        row("Lion", |x| {
            let [parameter, gradient, m, _] = four(x);
            let step = (&m * 0.9 + &gradient * 0.1).sign();
            vec![parameter * (1.0 - 1e-4) - step * 1e-4, m * 0.99 + gradient * 0.01]
        }),
        row("Adam over 50 tensors", |x| {
            let step = |number: usize| {
                let shape = [x.at(1000 * (number + 1), number + 1)];
                adam(&[x.floats(shape), x.floats(shape), x.floats(shape), x.positive(shape)], 0.0)
            };
            (0..50).flat_map(step).collect()
        })
        .because("right: a launch has 4096 bytes of parameters, and here 42 tensors fit"),
        row("weights averaged, 50 tensors", |x| {
            let step = |number: usize| {
                let shape = [x.at(1000 * (number + 1), number + 1)];
                x.floats(shape) * 0.999 + x.floats(shape) * 0.001
            };
            (0..50).map(step).collect()
        }),
        row("gradients clipped to a norm", |x| {
            let [a, b, c, _] = four(x);
            let norm = (a.square().sum(..) + b.square().sum(..) + c.square().sum(..)).sqrt();
            let scale = (1.0 / (norm + 1e-6)).minimum(1.0);
            vec![a * &scale, b * &scale, c * &scale]
        })
        .because("right: the norm comes before the first result"),
    ];
    ("optimisers", rows)
}

fn random() -> Group {
    let rows = vec![
        row("dropout", |x| vec![x.rows().dropout(0.2, 1)]),
        row("dropout, residual, layer_norm", |x| {
            let y = x.rows().dropout(0.2, 1) + x.rows();
            let length = y.shape().unwrap()[1];
            vec![y.layer_norm([length], None, None, 1e-5)]
        }),
        row("Gaussian noise", |x| {
            let x = x.rows();
            vec![&x + x.randn_like(2) * 0.1]
        }),
        row("a sample of a Gaussian", |x| {
            let (mean, log_variance) = (x.rows(), x.rows());
            vec![&mean + (log_variance * 0.5).exp() * mean.randn_like(2)]
        }),
        row("mean of noise", |x| {
            let count = x.at(1 << 20, 101);
            vec![Tensor::rand([count], 3).square().mean(..)]
        }),
        row("dropout of whole channels", |x| {
            let y = x.images();
            let shape = y.shape().unwrap();
            vec![&y * (Tensor::rand([shape[0], shape[1], 1, 1], 3).ge(0.2).cast(DType::F32) / 0.8)]
        }),
    ];
    ("random numbers", rows)
}
