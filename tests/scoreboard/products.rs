//! Products of matrices, convolutions and attention, with what models have around them.

use lazuli::{Attention, DType, Tensor};

use crate::inputs::{Group, row};

const SUM_FIRST: &str = "the sums of the first product must end before those of the second begin";

pub fn groups() -> Vec<Group> {
    vec![products(), convolutions(), attention()]
}

fn products() -> Group {
    let rows = vec![
        row("product of matrices", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            vec![x.floats([n, k]).matmul(&x.floats([k, m]))]
        }),
        row("linear, bias, gelu", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            vec![x.floats([n, k]).linear(&x.floats([m, k]), Some(&x.floats([m]))).gelu()]
        }),
        row("relu, linear, residual", |x| {
            let [n, k] = [x.at(1024, 5), x.at(512, 40)];
            let y = x.floats([n, k]);
            vec![&y + y.relu().linear(&x.floats([k, k]), None)]
        }),
        row("SwiGLU of two products", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            let y = x.floats([n, k]);
            vec![y.matmul(&x.floats([k, m])).silu() * y.matmul(&x.floats([k, m]))]
        }),
        row("linear of bytes with their scales", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            let bytes = (x.floats([m, k]) * 100.0).cast(DType::I8);
            lazuli::eval([&bytes]).unwrap();
            let weight = bytes.cast(DType::F32) * x.floats([m, 1]);
            vec![x.floats([n, k]).linear(&weight, None)]
        }),
        row("linear of f16", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            vec![x.halves(DType::F16, [n, k]).linear(&x.halves(DType::F16, [m, k]), None)]
        }),
        row("einsum of batches", |x| {
            let [b, n, k] = [x.at(16, 2), x.at(256, 5), x.at(64, 13)];
            vec![Tensor::einsum("bik,bjk->bij", &[&x.floats([b, n, k]), &x.floats([b, n, k])])]
        }),
        row("matrix and vector", |x| {
            let [n, k] = [x.at(4096, 5), x.at(4096, 40)];
            vec![x.floats([n, k]).mv(&x.floats([k]))]
        }),
        row("layer norm, linear", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            vec![x.floats([n, k]).layer_norm([k], None, None, 1e-5).linear(&x.floats([m, k]), None)]
        })
        .because("a row's statistics must end before the sums begin: no schedule of CUDA has both"),
        row("the nearest of some centres", |x| {
            let [n, m, k] = [x.at(65_536, 50), x.at(256, 9), x.at(32, 13)];
            let (y, centres) = (x.floats([n, k]), x.floats([m, k]));
            vec![(centres.square().sum(1) - 2.0 * y.matmul(&centres.t())).argmin(1)]
        })
        .because("sums of products, and then the least of them"),
        row("distances of many dimensions", |x| {
            let [n, m, k] = [x.at(1024, 50), x.at(1024, 9), x.at(64, 13)];
            vec![(x.floats([n, 1, k]) - x.floats([m, k])).square().sum(2).sqrt()]
        }),
        row("distances as sums of magnitudes, as a kernel", |x| {
            let [n, m, k] = [x.at(1024, 50), x.at(1024, 9), x.at(64, 13)];
            vec![(-x.floats([n, k]).cdist(&x.floats([m, k]), 1.0)).exp()]
        }),
        row("shortest paths of two edges", |x| {
            let n = x.at(256, 19);
            let edges = x.floats([n, n]);
            vec![(edges.unsqueeze(2) + edges.unsqueeze(0)).min(1)]
        }),
        row("two layers", |x| {
            let [n, k, m] = [x.at(1024, 5), x.at(512, 40), x.at(768, 9)];
            let hidden = x.floats([n, k]).linear(&x.floats([m, k]), None).relu();
            vec![hidden.linear(&x.floats([k, m]), None)]
        })
        .because(SUM_FIRST),
    ];
    ("products", rows)
}

fn convolutions() -> Group {
    let rows = vec![
        row("convolution 3×3, bias, relu", |x| {
            let [n, c, o, s] = [x.at(8, 1), x.at(64, 3), x.at(64, 5), x.at(56, 9)];
            vec![x.floats([n, c, s, s]).conv2d(&x.floats([o, c, 3, 3]), Some(&x.floats([o])), 1, 1).relu()]
        }),
        row("depthwise convolution", |x| {
            let [n, c, s] = [x.at(8, 1), x.at(64, 3), x.at(56, 9)];
            let conv = lazuli::Conv2d::new().padding(1).groups(c);
            vec![x.floats([n, c, s, s]).conv2d_with(&x.floats([c, 1, 3, 3]), None, conv)]
        }),
        row("convolution, relu, max-pool", |x| {
            let [n, c, o, s] = [x.at(8, 1), x.at(3, 2), x.at(64, 5), x.at(112, 12)];
            vec![x.floats([n, c, s, s]).conv2d(&x.floats([o, c, 3, 3]), None, 1, 1).relu().max_pool2d(2, 2)]
        })
        .because("sums of products in tiles, and then windows of them"),
    ];
    ("convolutions", rows)
}

fn attention() -> Group {
    let rows = vec![
        row("causal attention", |x| {
            let [b, h, n, d] = [x.at(2, 1), x.at(8, 2), x.at(512, 13), x.at(64, 12)];
            let [q, k, v] = std::array::from_fn(|_| x.floats([b, h, n, d]));
            vec![q.scaled_dot_product_attention(&k, &v, &Attention::new().causal(true))]
        }),
        row("attention to cached pages", |x| {
            let [b, h, d] = [x.at(8, 2), x.at(8, 3), x.at(64, 12)];
            let [pages, length, used] = [x.at(512, 9), x.at(16, 4), x.at(32, 5)];
            let q = x.floats([b, h, d]);
            let table = x.labels([b, used], pages);
            let mut cached = || {
                let cache = x.floats([pages, length, h, d]);
                cache.index_select(0, &table.flatten(..)).reshape([b, used * length, h, d])
            };
            let [k, v] = [cached(), cached()];
            let weights = Tensor::einsum("bhd,bnhd->bhn", [&q, &k]).softmax(-1);
            vec![Tensor::einsum("bhn,bnhd->bhd", [&weights, &v])]
        })
        .because(SUM_FIRST),
    ];
    ("attention", rows)
}
