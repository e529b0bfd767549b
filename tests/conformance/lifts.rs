//! Proves contractions that combine other expressions than products right: distances, shortest paths, agreements. Against plain
//! loops in double precision, and on every device against the interpreter, at shapes around every tile.

use lazuli::{DType, Device, Target, Tensor};

use crate::common::data::{floats, ordinary};
use crate::common::{Output, check, check_fused, exact, near};

/// Both as `[rows, columns, terms]` before they broadcast: `[rows, 1, terms]` and `[1, columns, terms]`.
fn pair(device: &Device, dtype: DType, [rows, terms, columns]: [usize; 3], seed: u64) -> [Tensor; 2] {
    let of = |shape: [usize; 2], seed| match dtype.is_float() {
        true => floats(device, dtype, shape, 1.0, seed),
        false => ordinary(device, dtype, shape, seed),
    };
    [of([rows, terms], seed).unsqueeze(1), of([columns, terms], seed + 1).unsqueeze(0)]
}

/// Sums of `n` numbers of about 1: rounding alone differs with the order.
fn close(label: &str, y: Tensor, n: usize) -> Output {
    let dtype = y.dtype().unwrap();
    let eps = dtype.compute().finfo().unwrap().eps * (n as f64);
    near(label, y, 2.0 * dtype.finfo().unwrap().eps + eps, eps)
}

/// That the kernel is one of tiles, on a core and on a GPU.
fn check_tiled(name: &str, build: impl Fn(&Device) -> Vec<Output>) {
    for output in build(&Device::cpu()) {
        for (target, schedule) in
            [(Target::cuda("sm_90"), "contraction(tile="), (Target::cpu(), "contraction(rows=")]
        {
            let source = output.tensor().compile_for(&target).unwrap().source();
            assert!(source.contains(schedule), "{source}");
        }
    }
    check_fused(name, &build);
}

/// What is lifted and how it is combined, as tensors and as numbers.
type Way = (&'static str, fn([Tensor; 2]) -> Tensor, fn(f64, f64) -> f64, fn(f64, f64) -> f64, f64);

const WAYS: [Way; 6] = [
    ("squares", |[a, b]| (a - b).square().sum(-1), |a, b| (a - b) * (a - b), |x, y| x + y, 0.0),
    ("magnitudes", |[a, b]| (a - b).abs().sum(-1), |a, b| (a - b).abs(), |x, y| x + y, 0.0),
    ("greatest", |[a, b]| (a - b).abs().max(-1), |a, b| (a - b).abs(), f64::max, f64::NEG_INFINITY),
    ("paths", |[a, b]| (a + b).min(-1), |a, b| a + b, f64::min, f64::INFINITY),
    ("widest", |[a, b]| a.minimum(&b).max(-1), f64::min, f64::max, f64::NEG_INFINITY),
    ("overlaps", |[a, b]| a.minimum(&b).sum(-1), f64::min, |x, y| x + y, 0.0),
];

#[test]
fn results_are_those_of_plain_loops() {
    for shape @ [rows, terms, columns] in
        [[1, 1, 1], [4, 12, 8], [5, 300, 70], [6, 256, 64], [7, 257, 65], [61, 13, 129], [130, 515, 100]]
    {
        for (name, build, lift, combine, identity) in WAYS {
            let [a, b] = pair(&Device::cpu(), DType::F32, shape, 1);
            let (x, y) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
            let got = build([a, b]).to_vec::<f32>().unwrap();
            assert_eq!(got.len(), rows * columns);
            for (place, got) in got.into_iter().enumerate() {
                let (i, j) = (place / columns, place % columns);
                let term = |k| lift(f64::from(x[i * terms + k]), f64::from(y[j * terms + k]));
                let expected = (0..terms).map(term).fold(identity, combine);
                let most = 1e-7 * (terms as f64 + 4.0) * (expected.abs() + 1.0);
                assert!(
                    (f64::from(got) - expected).abs() <= most,
                    "{name} {shape:?} at {place}: {got}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn every_edge_of_a_tile_of_lifts() {
    check_tiled("edges", |device| {
        let mut outputs = Vec::new();
        for (number, shape) in [[33, 19, 300], [128, 64, 128], [129, 70, 65]].into_iter().enumerate() {
            let of = || pair(device, DType::F32, shape, number as u64);
            let (name, build, ..) = WAYS[number];
            outputs.push(close(name, build(of()), shape[1]));
            let (name, build, ..) = WAYS[3 + number];
            outputs.push(close(name, build(of()), shape[1]));
            // Rows and columns are neighbours in memory.
            let [rows, terms, columns] = shape;
            let a = floats(device, DType::F32, [terms, rows], 1.0, 5).t().unsqueeze(1);
            let b = floats(device, DType::F32, [terms, columns], 1.0, 6).t().unsqueeze(0);
            outputs.push(close("turned", (a - b).square().sum(-1), terms));
        }
        outputs
    });
}

#[test]
fn every_dtype_is_lifted() {
    check("dtypes", |device| {
        let shape = [37, 40, 70];
        let mut outputs = Vec::new();
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let of = || pair(device, dtype, shape, 1);
            outputs.push(close(
                "squares",
                {
                    let [a, b] = of();
                    (a - b).square().sum(-1)
                },
                40,
            ));
            outputs.push(exact("paths", {
                let [a, b] = of();
                (a + b).min(-1)
            }));
        }
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::U32, DType::I64] {
            let of = || pair(device, dtype, shape, 1);
            outputs.push(exact("magnitudes", {
                let [a, b] = of();
                a.maximum(&b).sum(-1)
            }));
            outputs.push(exact("agreements", {
                let [a, b] = of();
                a.eq(&b).sum(-1)
            }));
            outputs.push(exact("few bits", {
                let [a, b] = of();
                (a - b).sum(-1).cast(DType::I16)
            }));
            outputs.push(exact("widest", {
                let [a, b] = of();
                a.minimum(&b).max(-1)
            }));
            outputs.push(exact("bits", {
                let [a, b] = of();
                (a ^ b).max(-1)
            }));
        }
        let [a, b] = pair(device, DType::I32, shape, 1).map(|x| x.gt(0));
        outputs.push(exact("reached", (&a & &b).any(-1)));
        outputs.push(exact("all", (&a | &b).all(-1)));
        outputs.push(exact("common", (a & b).sum(-1)));
        outputs
    });
}

#[test]
fn what_is_around_a_lift_is_in_its_kernel() {
    check_fused("around lifts", |device| {
        let (rows, terms, columns) = (61, 45, 70);
        let of = || pair(device, DType::F32, [rows, terms, columns], 1);
        let squares = || {
            let [a, b] = of();
            (a - b).square().sum(-1)
        };
        let weights = floats(device, DType::F32, [terms], 1.0, 5);
        let each = floats(device, DType::F32, [rows, 1], 1.0, 6);
        let near_to = |label: &str, y: Tensor| close(label, y, 16 * terms);
        let [a, b] = of();
        let picked = b.index_select(1, &Tensor::arange(69, 0, -3).to(device));
        let bytes = [&a, &b].map(|x| (x * 50.0).cast(DType::I8).cast(DType::F32));
        let batch = floats(device, DType::F32, [3, 33, terms], 1.0, 7);
        let normal = a.layer_norm([terms], None, None, 1e-5);
        vec![
            near_to("kernel", (squares() * -0.05).exp()),
            near_to("distances", a.squeeze(1).cdist(&b.squeeze(0), 2.0)),
            near_to("of order 1", a.squeeze(1).cdist(&b.squeeze(0), 1.0)),
            near_to("greatest", a.squeeze(1).cdist(&b.squeeze(0), f64::INFINITY)),
            exact("nearest", squares().argmin(1)),
            near_to("least", squares().min(1)),
            near_to("summed", squares().sum(1)),
            near_to("of each row", squares() + &each),
            near_to("weighted", (&weights * (&a - &b).square()).sum(-1)),
            near_to("weighted differences", ((&a - &b) * &weights).abs().sum(-1)),
            near_to("relu", (a.relu() - b.sigmoid()).abs().sum(-1)),
            near_to("two of a side", ((&a - &b).abs() / (a.abs() + b.abs() + 1.0)).sum(-1)),
            near_to("jaccard", a.abs().minimum(&b.abs()).sum(-1) / a.abs().maximum(&b.abs()).sum(-1)),
            near_to("gathered", (&a - picked).square().sum(-1)),
            near_to("bytes", (&bytes[0] - &bytes[1]).abs().sum(-1)),
            near_to("normalised", (normal - &b).abs().sum(-1)),
            near_to("batches", (batch.unsqueeze(2) - batch.flip(0).unsqueeze(1)).square().sum(-1)),
            near_to("between", (&batch.unsqueeze(1) - &batch.unsqueeze(0)).abs().sum([2, 3])),
            exact("where", a.lt(&b).where_(&a, &(&b * 2.0)).max(-1)),
            exact("masked", {
                let holds = floats(device, DType::F32, [rows, terms], 1.0, 8).gt(0.0).unsqueeze(1);
                holds.where_(&b, -9.0).max(-1)
            }),
            exact("down columns", {
                let (a, b) = (a.squeeze(1), b.squeeze(0).t());
                (a.unsqueeze(2) + b.unsqueeze(0)).min(1)
            }),
        ]
    });
}

#[test]
fn what_is_not_finite_is_lifted_as_it_is() {
    check_fused("not finite lifts", |device| {
        let mut outputs = Vec::new();
        let rows = Tensor::arange(0i64, 70, 1).to(device).unsqueeze(1);
        for (number, value) in [(7i64, f64::NAN), (69, f64::INFINITY), (33, f64::NEG_INFINITY), (1, -0.0)] {
            // 83 terms are no whole tile: what fills it combines with nothing.
            let [a, b] = pair(device, DType::F32, [70, 83, 70], 1);
            let a = a.squeeze(1).masked_fill(&rows.eq(number), value).unsqueeze(1);
            let b = b.squeeze(0).masked_fill(&rows.eq(69 - number), value).unsqueeze(0);
            outputs.push(close("squares", (&a - &b).square().sum(-1), 100));
            outputs.push(exact("paths", (&a + &b).min(-1)));
            outputs.push(exact("longest", (&a + &b).max(-1)));
            outputs.push(exact("widest", a.minimum(&b).max(-1)));
            // All terms are of one sign: an identity of zero would show.
            outputs.push(exact("negative", (-(a.abs() + b.abs())).max(-1)));
            outputs.push(exact("positive", (a.abs() + b.abs() + 1.0).min(-1)));
        }
        outputs
    });
}

#[test]
fn few_terms_and_none() {
    check("few terms", |device| {
        let mut outputs = Vec::new();
        for terms in [0, 1, 2, 12] {
            let of = || pair(device, DType::F32, [40, terms, 66], 1);
            outputs.push(close(
                "squares",
                {
                    let [a, b] = of();
                    (a - b).square().sum(-1)
                },
                4,
            ));
            outputs.push(exact("any", {
                let [a, b] = of();
                a.gt(&b).any(-1)
            }));
            if terms > 0 {
                outputs.push(exact("paths", {
                    let [a, b] = of();
                    (a + b).min(-1)
                }));
            }
        }
        outputs
    });
}

#[test]
fn long_reductions_of_few_results_are_split_too() {
    check_tiled("split lifts", |device| {
        let of = || pair(device, DType::F32, [20, 2001, 36], 1);
        vec![
            close(
                "squares",
                {
                    let [a, b] = of();
                    (a - b).square().sum(-1)
                },
                4000,
            ),
            exact("paths", {
                let [a, b] = of();
                (a + b).min(-1)
            }),
        ]
    });
}
