//! One operation at a time, of a million elements in each dtype: what somebody who knows PyTorch calls most.
//!
//! `cargo bench --bench operations -- [part of a name] > lazuli.txt`, then `benches/operations.py lazuli.txt` times the same in
//! PyTorch. A line each: name and dtype, the least of many calls, and the first call, both in milliseconds.

#![allow(clippy::unwrap_used, clippy::panic)] // A benchmark that cannot run says so and ends.

use std::time::{Duration, Instant};

use lazuli::{DType, Interpolation, PadMode, Reduction, Tensor, s};

const N: usize = 1024;

/// Calls of an operation: so many at most, in about this time, but a few at least.
const MOST_CALLS: usize = 300;
const TIME: Duration = Duration::from_millis(150);
const LEAST_CALLS: usize = 5;

type Operation = (&'static str, fn(&Data) -> Vec<Tensor>);

/// Tensors of one dtype: normally distributed numbers, or integers from 0 to 99.
struct Data {
    dtype: DType,
    a: Tensor,
    b: Tensor,
    row: Tensor,
    column: Tensor,
    flat: Tensor,
    images: Tensor,
    heads: Tensor,
    /// Positions: a vector of them, and one for each element.
    places: Tensor,
    each: Tensor,
    mask: Tensor,
    /// Positive definite matrices, their triangles and what is to be solved for; empty unless of wide floats.
    definite: Tensor,
    triangle: Tensor,
    sides: Tensor,
}

impl Data {
    fn new(dtype: DType) -> Data {
        let make = |shape: &[usize], seed: u64| {
            let shape = shape.to_vec();
            let all = if dtype.is_float() {
                Tensor::randn(shape, seed)
            } else {
                Tensor::randint(0, 100, shape, seed)
            };
            evaluated(all.cast(dtype))
        };
        let wide = if is_wide_float(dtype) { 32 } else { 0 };
        let x = make(&[wide, 64, 64], 20);
        let definite = match wide {
            0 => x,
            _ => evaluated(x.matmul(x.transpose(1, 2)) + Tensor::eye(64, dtype)),
        };
        let triangle = if wide == 0 { definite.clone() } else { evaluated(definite.cholesky(false)) };
        let position = |shape: &[usize], seed| evaluated(Tensor::randint(0, N as i64, shape.to_vec(), seed));
        Data {
            dtype,
            a: make(&[N, N], 1),
            b: make(&[N, N], 2),
            row: make(&[N], 3),
            column: make(&[N, 1], 4),
            flat: make(&[N * N], 9),
            images: make(&[8, 16, 64, 128], 5),
            heads: make(&[64, 3, 128, 32], 10),
            places: position(&[N], 6),
            each: position(&[N, N], 7),
            mask: evaluated(Tensor::rand([N, N], 8).gt(0.5)),
            definite,
            triangle,
            sides: make(&[wide, 64, 4], 21),
        }
    }
}

fn is_wide_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

fn evaluated(x: Tensor) -> Tensor {
    x.eval().unwrap();
    x
}

fn pair((a, b): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![a, b]
}

const OF_ALL: &[Operation] = &[
    ("add", |d| vec![&d.a + &d.b]),
    ("add_row", |d| vec![&d.a + &d.row]),
    ("add_column", |d| vec![&d.a + &d.column]),
    ("mul_add", |d| vec![&d.a * &d.b + &d.row]),
    ("add_transposed", |d| vec![&d.a + d.b.t()]),
    ("where", |d| vec![d.mask.where_(&d.a, &d.b)]),
    ("masked_fill", |d| vec![d.a.masked_fill(&d.mask, 0)]),
    ("lt", |d| vec![d.a.lt(&d.b)]),
    ("clamp", |d| vec![d.a.clamp(1, 50)]),
    ("abs", |d| vec![d.a.abs()]),
    ("sum_all", |d| vec![d.a.sum(..)]),
    ("sum_0", |d| vec![d.a.sum(0)]),
    ("sum_1", |d| vec![d.a.sum(1)]),
    ("max_all", |d| vec![d.a.max(..)]),
    ("max_0", |d| vec![d.a.max(0)]),
    ("max_1", |d| vec![d.a.max(1)]),
    ("argmax_0", |d| vec![d.a.argmax(0)]),
    ("argmax_1", |d| vec![d.a.argmax(1)]),
    ("prod_1", |d| vec![d.a.prod(1)]),
    ("any_1", |d| vec![d.mask.any(1)]),
    ("cumsum_0", |d| vec![d.a.cumsum(0)]),
    ("cumsum_1", |d| vec![d.a.cumsum(1)]),
    ("cumsum_flat", |d| vec![d.flat.cumsum(0)]),
    ("cummax_1", |d| vec![d.a.cummax(1)]),
    ("cumprod_1", |d| vec![d.a.cumprod(1)]),
    ("transpose", |d| vec![d.a.t()]),
    ("channels_last", |d| vec![d.images.permute([0, 2, 3, 1])]),
    ("permute_0213", |d| vec![d.images.permute([0, 2, 1, 3])]),
    ("flip_1", |d| vec![d.a.flip(1)]),
    ("flip_0", |d| vec![d.a.flip(0)]),
    ("roll_1", |d| vec![d.a.roll(3, 1)]),
    ("cat_0", |d| vec![Tensor::cat([&d.a, &d.b], 0)]),
    ("cat_1", |d| vec![Tensor::cat([&d.a, &d.b], 1)]),
    ("stack_2", |d| vec![Tensor::stack([&d.a, &d.b], 2)]),
    ("pad", |d| vec![d.a.pad([(1, 1), (1, 1)], 0)]),
    ("pad_reflect", |d| vec![d.images.pad_with([(0, 0), (0, 0), (2, 2), (2, 2)], PadMode::Reflect)]),
    ("repeat", |d| vec![d.row.repeat([N, 2])]),
    ("repeat_interleave", |d| vec![d.a.repeat_interleave(2, 1)]),
    ("tril", |d| vec![d.a.tril(0)]),
    ("slice_step", |d| vec![d.a.slice_step(1, None, None, 2)]),
    ("slice_assign", |d| vec![d.a.slice_assign(s![..512, ..512], d.b.i(s![..512, ..512]))]),
    ("diff_1", |d| vec![d.a.diff(1)]),
    ("unfold_max", |d| vec![d.a.unfold(1, 8, 4).max(2)]),
    ("index_select_0", |d| vec![d.a.index_select(0, &d.places)]),
    ("index_select_1", |d| vec![d.a.index_select(1, &d.places)]),
    ("gather_0", |d| vec![d.a.gather(0, &d.each)]),
    ("gather_1", |d| vec![d.a.gather(1, &d.each)]),
    ("take", |d| vec![d.flat.take(&d.each)]),
    ("index_add_0", |d| vec![d.a.index_add(0, &d.places, &d.b)]),
    ("scatter_add_1", |d| vec![d.a.scatter_add(1, &d.each, &d.b)]),
    ("scatter_add_0", |d| vec![d.a.scatter_add(0, &d.each, &d.b)]),
    ("scatter_1", |d| vec![d.a.scatter(1, &d.each, &d.b)]),
    ("index_copy_0", |d| vec![d.a.index_copy(0, &d.places, &d.b)]),
    ("masked_select", |d| vec![d.a.masked_select(&d.mask).unwrap()]),
    ("nonzero", |d| vec![d.mask.nonzero().unwrap()]),
    ("sort_1", |d| pair(d.a.sort(1, false))),
    ("sort_0", |d| pair(d.a.sort(0, false))),
    ("argsort_1", |d| vec![d.a.argsort(1, true)]),
    ("sort_flat", |d| pair(d.flat.sort(0, false))),
    ("topk_1", |d| pair(d.a.topk(10, 1, true))),
    ("topk_0", |d| pair(d.a.topk(10, 0, true))),
    ("topk_flat", |d| pair(d.flat.topk(10, 0, true))),
    ("median_1", |d| pair(d.a.median(1))),
    ("kthvalue_1", |d| pair(d.a.kthvalue(100, 1))),
    ("unique", |d| vec![d.flat.unique().unwrap()]),
    ("searchsorted", |d| vec![d.row.sort(0, false).0.searchsorted(&d.flat, false)]),
    ("isin", |d| vec![d.a.isin(&d.row)]),
    ("max_pool2d", |d| vec![d.images.max_pool2d(2, 2)]),
    ("triu_sum", |d| vec![d.a.triu(1).sum(1)]),
    ("matmul", |d| vec![d.a.matmul(&d.b)]),
    ("matmul_transposed", |d| vec![d.a.matmul(d.b.t())]),
    ("mv", |d| vec![d.a.mv(&d.row)]),
    ("outer_sum", |d| vec![d.row.unsqueeze(1) + &d.row]),
    ("matmul_heads", |d| vec![d.heads.matmul(d.heads.transpose(2, 3))]),
];

const OF_INTEGERS: &[Operation] = &[
    ("bitwise_and", |d| vec![d.a.bitwise_and(&d.b)]),
    ("remainder", |d| vec![d.a.remainder(7)]),
    ("remainder_each", |d| vec![d.a.remainder(d.b.clamp_min(1))]),
    ("floor_divide", |d| vec![d.a.floor_divide(7)]),
    ("cast_f32", |d| vec![d.a.cast(DType::F32)]),
    ("cast_scaled", |d| vec![d.a.cast(DType::F32) / 255.0 - 0.5]),
    ("one_hot", |d| vec![d.places.one_hot(N)]),
    ("bincount", |d| vec![d.flat.bincount(100)]),
    ("shift", |d| vec![d.a.bitwise_left_shift(2)]),
    ("square", |d| vec![d.a.pow(2)]),
];

const OF_FLOATS: &[Operation] = &[
    ("div", |d| vec![&d.a / &d.b]),
    ("exp", |d| vec![d.a.exp()]),
    ("log", |d| vec![d.a.abs().log()]),
    ("sin", |d| vec![d.a.sin()]),
    ("tanh", |d| vec![d.a.tanh()]),
    ("sigmoid", |d| vec![d.a.sigmoid()]),
    ("gelu", |d| vec![d.a.gelu()]),
    ("erf", |d| vec![d.a.erf()]),
    ("erfinv", |d| vec![(d.a.clamp(-3, 3) * 0.3).erfinv()]),
    ("lgamma", |d| vec![d.a.abs().lgamma()]),
    ("pow", |d| vec![d.a.abs().pow(&d.b)]),
    ("pow_3", |d| vec![d.a.pow(3.0)]),
    ("atan2", |d| vec![d.a.atan2(&d.b)]),
    ("sqrt", |d| vec![d.a.abs().sqrt()]),
    ("rsqrt", |d| vec![d.a.abs().rsqrt()]),
    ("floor", |d| vec![d.a.floor()]),
    ("fmod", |d| vec![d.a.fmod(&d.b)]),
    ("remainder", |d| vec![d.a.remainder(&d.b)]),
    ("log1p", |d| vec![d.a.abs().log1p()]),
    ("hypot", |d| vec![d.a.hypot(&d.b)]),
    ("lerp", |d| vec![d.a.lerp(&d.b, 0.3)]),
    ("softmax_1", |d| vec![d.a.softmax(1)]),
    ("softmax_0", |d| vec![d.a.softmax(0)]),
    ("log_softmax_1", |d| vec![d.a.log_softmax(1)]),
    ("logsumexp_1", |d| vec![d.a.logsumexp(1)]),
    ("mean_1", |d| vec![d.a.mean(1)]),
    ("var_0", |d| vec![d.a.var(0, 1)]),
    ("var_1", |d| vec![d.a.var(1, 1)]),
    ("std_all", |d| vec![d.a.std(.., 1)]),
    ("norm_1", |d| vec![d.a.norm(1, 2.0)]),
    ("layer_norm", |d| vec![d.a.layer_norm([N], Some(&d.row), Some(&d.row), 1e-5)]),
    ("rms_norm", |d| vec![d.a.rms_norm([N], Some(&d.row), 1e-5)]),
    ("logcumsumexp_1", |d| vec![d.a.logcumsumexp(1)]),
    ("mse_loss", |d| vec![d.a.mse_loss(&d.b, Reduction::Mean)]),
    ("cross_entropy", |d| vec![d.a.cross_entropy(&d.places, Reduction::Mean)]),
    ("quantile_1", |d| vec![d.a.quantile(0.3, 1)]),
    ("histc", |d| vec![d.flat.histc(100, -3.0, 3.0)]),
    ("avg_pool2d", |d| vec![d.images.avg_pool2d(3, 1)]),
    ("interpolate_linear", |d| {
        vec![d.images.interpolate([128, 256], Interpolation::Linear { align_corners: false })]
    }),
    ("interpolate_nearest", |d| vec![d.images.interpolate([128, 256], Interpolation::Nearest)]),
    ("cosine_similarity", |d| vec![d.a.cosine_similarity(&d.b, 1, 1e-8)]),
    ("cdist_2", |d| vec![d.a.slice(1, ..16).cdist(d.b.slice(1, ..16), 2.0)]),
    ("cdist_1", |d| vec![d.a.slice(1, ..16).cdist(d.b.slice(1, ..16), 1.0)]),
    ("corrcoef", |d| vec![d.a.corrcoef()]),
    ("dropout", |d| vec![d.a.dropout(0.5, 1)]),
    ("nan_to_num", |d| vec![d.a.nan_to_num(0.0, None, None)]),
    ("isnan_any", |d| vec![d.a.isnan().any(..)]),
    ("cast_i64", |d| vec![d.a.cast(DType::I64)]),
    ("cast_u8", |d| vec![(d.a.clamp(0, 1) * 200.0).cast(DType::U8)]),
];

const OF_WIDE_FLOATS: &[Operation] = &[
    ("rfft", |d| pair(d.a.rfft(1))),
    ("rfft2", |d| pair(d.a.rfft2())),
    ("cholesky", |d| vec![d.definite.cholesky(false)]),
    ("solve", |d| vec![d.definite.solve(&d.sides)]),
    ("inv", |d| vec![d.definite.inv()]),
    ("det", |d| vec![d.definite.det()]),
    ("qr", |d| pair(d.definite.qr())),
    ("solve_triangular", |d| vec![d.triangle.solve_triangular(&d.sides, false, true, false)]),
    ("eigh", |d| pair(d.definite.slice(0, ..4).eigh())),
    ("svd", |d| {
        let (u, values, v) = d.definite.slice(0, ..4).svd();
        vec![u, values, v]
    }),
];

fn operations(dtype: DType) -> impl Iterator<Item = &'static Operation> {
    let own = if dtype.is_float() { OF_FLOATS } else { OF_INTEGERS };
    let wide = if is_wide_float(dtype) { OF_WIDE_FLOATS } else { &[] };
    OF_ALL.iter().chain(own).chain(wide)
}

fn main() {
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I32, DType::U8] {
        let data = Data::new(dtype);
        for (name, operation) in operations(data.dtype) {
            let name = format!("{name}/{dtype}");
            if !name.contains(&part) {
                continue;
            }
            let call = || {
                let start = Instant::now();
                let results = operation(&data);
                lazuli::eval(&results).unwrap_or_else(|error| panic!("{name}: {error}"));
                start.elapsed()
            };
            let (first, begin) = (call(), Instant::now());
            let mut times = vec![call()];
            while times.len() < LEAST_CALLS || times.len() < MOST_CALLS && begin.elapsed() < TIME {
                times.push(call());
            }
            let least = times.into_iter().min().unwrap_or_default();
            let [least, first] = [least, first].map(|time| time.as_secs_f64() * 1e3);
            println!("{name} {least:.4} {first:.0}");
        }
    }
}
