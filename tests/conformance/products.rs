//! Proves products of matrices right: against plain loops in double precision, and on every
//! device against the interpreter, at shapes around every tile.

use lazuli::{Attention, DType, Device, Target, Tensor, f16};

use crate::common::data::{floats, ordinary};
use crate::common::{check, check_fused, check_on_cpu, exact, near};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// Sums of `n` products of numbers of about 1 in this dtype: rounding alone differs with the order.
fn tolerance(dtype: DType, n: usize) -> (f64, f64) {
    let of_sum = dtype.compute().finfo().unwrap().eps * (n as f64);
    let of_store = dtype.finfo().unwrap().eps;
    (of_store, of_sum)
}

/// Row-major `[rows, terms]` times `[terms, columns]`.
fn loops(a: &[f32], b: &[f32], [rows, terms, columns]: [usize; 3]) -> Vec<f64> {
    let term = |i, j, k| f64::from(a[i * terms + k]) * f64::from(b[k * columns + j]);
    let at = |place: usize| (0..terms).map(|k| term(place / columns, place % columns, k)).sum();
    (0..rows * columns).map(at).collect()
}

#[test]
fn products_are_those_of_plain_loops() {
    for shape @ [rows, terms, columns] in [
        [1, 1, 1],
        [4, 12, 8],
        [5, 300, 70],
        [6, 256, 64],
        [7, 257, 65],
        [61, 13, 129],
        [130, 515, 100],
        [3, 0, 4],
    ] {
        let (a, b) = (
            floats(&Device::cpu(), DType::F32, [rows, terms], 1.0, 1),
            floats(&Device::cpu(), DType::F32, [terms, columns], 1.0, 2),
        );
        let expected = loops(&a.to_vec().unwrap(), &b.to_vec().unwrap(), shape);
        let ways = [
            ("matmul", a.matmul(&b)),
            ("of transposes", b.t().matmul(&a.t()).t()),
            ("linear", a.linear(&b.t(), None)),
            ("by hand", (a.unsqueeze(2) * b.unsqueeze(0)).sum(1)),
        ];
        for (name, y) in ways {
            let got = y.to_vec::<f32>().unwrap();
            assert_eq!(got.len(), expected.len());
            for (place, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let most = 1e-6 * (terms as f64 + 4.0);
                assert!(
                    (f64::from(*got) - expected).abs() <= most,
                    "{name} {shape:?} at {place}: {got}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn every_dtype_multiplies() {
    check("matmul", |device| {
        let mut outputs = Vec::new();
        for dtype in FLOATS {
            let (a, b) = (floats(device, dtype, [13, 40], 1.0, 1), floats(device, dtype, [40, 70], 1.0, 2));
            let (relative, absolute) = tolerance(dtype, 40);
            outputs.push(near("matmul", a.matmul(&b), relative, absolute));
            outputs.push(near("linear", a.linear(&b.t(), Some(&b.select(0, 0))), relative, absolute));
        }
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::U32, DType::I64] {
            let (a, b) = (ordinary(device, dtype, [13, 40], 1), ordinary(device, dtype, [40, 70], 2));
            outputs.push(exact("matmul", a.matmul(&b)));
        }
        outputs
    });
}

#[test]
fn what_is_around_a_product_is_in_its_kernel() {
    check_fused("neighbours", |device| {
        let (a, b) = (
            floats(device, DType::F32, [2, 37, 130], 1.0, 1),
            floats(device, DType::F32, [130, 100], 1.0, 2),
        );
        let c = floats(device, DType::F32, [130, 100], 1.0, 3);
        let (mask, bias) = (a.select(0, 0).select(1, 0).unsqueeze(1).gt(0.0), b.select(0, 0));
        let (relative, absolute) = tolerance(DType::F32, 300);
        let halves = floats(device, DType::F16, [130, 100], 1.0, 3);
        vec![
            near("before", a.relu().matmul(&(&b * 2.0)), relative, absolute),
            near("after", a.linear(&b.t(), Some(&bias)).gelu(), relative, absolute),
            near("masked", a.matmul(&b).masked_fill(&mask, 0.5), relative, absolute),
            near("gated", a.matmul(&b).silu() * a.matmul(&c), 8.0 * relative, absolute),
            near("widened", a.matmul(&halves.cast(DType::F32)), relative, absolute),
            near(
                "bytes",
                a.matmul(&((&b * 100.0).cast(DType::I8).cast(DType::F32) * 0.01)),
                relative,
                absolute,
            ),
            near("normalised", a.layer_norm([130], None, None, 1e-5).matmul(&b), relative, absolute * 8.0),
            near("summed", a.matmul(&b).sum(-1), relative, absolute * 100.0),
            near("twice", a.matmul(&b).matmul(&b.t()), relative, absolute * 300.0),
            near("rounded", a.matmul(&b).cast(DType::F16), 1e-3, 1e-3),
            near("sliced", a.matmul(&b).slice(1, 3..20).transpose(1, 2), relative, absolute),
            near(
                "gathered",
                a.matmul(&b.index_select(1, &Tensor::arange(99, 0, -3).to(device))),
                relative,
                absolute,
            ),
        ]
    });
}

#[test]
fn batches_broadcast() {
    check_fused("batches", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (relative, absolute) = tolerance(DType::F32, 64);
        let near = |name: &str, y| near(name, y, relative, absolute);
        vec![
            near("batches", of(&[3, 20, 33], 1).matmul(&of(&[3, 33, 50], 2))),
            near("one of them", of(&[3, 20, 33], 1).matmul(&of(&[33, 50], 2))),
            near("both", of(&[4, 1, 20, 33], 1).matmul(&of(&[3, 33, 50], 2))),
            near("nothing", of(&[0, 20, 33], 1).matmul(&of(&[33, 50], 2))),
            near("rows", of(&[33], 1).matmul(&of(&[3, 33, 50], 2))),
            near("columns", of(&[3, 20, 33], 1).matmul(&of(&[33], 2))),
            near("small", of(&[500, 3, 5], 1).matmul(&of(&[500, 5, 4], 2))),
            near(
                "three",
                Tensor::einsum(
                    "bik,kj,jl->bil",
                    &[&of(&[2, 20, 33], 1), &of(&[33, 40], 2), &of(&[40, 9], 3)],
                ) / 40.0,
            ),
            near(
                "inner batch",
                Tensor::einsum("ikb,kjb->ijb", &[&of(&[20, 33, 4], 1), &of(&[33, 40, 4], 2)]),
            ),
        ]
    });
}

#[test]
fn what_is_not_finite_reaches_its_row_and_column() {
    check_on_cpu("not finite", |device| {
        let plain = floats(device, DType::F32, [70, 80], 1.0, 1);
        let at = |row: i64, value: f64| {
            let rows = Tensor::arange(0i64, 70, 1).to(device).unsqueeze(1);
            plain.masked_fill(&rows.eq(row), value)
        };
        let b = floats(device, DType::F32, [80, 90], 1.0, 2).abs();
        vec![
            near("nan", at(7, f64::NAN).matmul(&b), 1e-5, 1e-4),
            near("infinite", at(69, f64::INFINITY).matmul(&b), 1e-5, 1e-4),
            near("of columns", b.t().matmul(&at(0, f64::NAN).t()), 1e-5, 1e-4),
        ]
    });
}

/// Products of BF16, whose terms a processor may multiply in pairs: any number of them, and no worse than in `F32`.
#[test]
fn sums_of_pairs_are_as_good_as_of_single_products() {
    // Round tiles of 6, 16, 32 and 48 rows, 16 to 64 columns and 32 terms.
    const SHAPES: [[usize; 3]; 8] = [
        [4, 12, 8],
        [7, 257, 65],
        [17, 31, 24],
        [33, 288, 80],
        [61, 13, 129],
        [97, 33, 17],
        [130, 515, 100],
        [241, 96, 48],
    ];
    for shape @ [rows, terms, columns] in SHAPES {
        let of = |shape: [usize; 2], seed| floats(&Device::cpu(), DType::BF16, shape, 1.0, seed);
        let (a, b) = (of([rows, terms], 1).cast(DType::F32), of([terms, columns], 2).cast(DType::F32));
        let values = [&a, &b].map(|x| x.to_vec::<f32>().unwrap());
        let expected = loops(&values[0], &values[1], shape);
        let [a_abs, b_abs] = values.map(|x| x.iter().map(|x| x.abs()).collect::<Vec<f32>>());
        let magnitudes = loops(&a_abs, &b_abs, shape);
        for (name, y) in [("matmul", a.matmul(&b)), ("of transposes", b.t().matmul(&a.t()).t())] {
            let got = y.to_vec::<f32>().unwrap();
            for (place, (got, (expected, magnitude))) in
                got.iter().zip(expected.iter().zip(&magnitudes)).enumerate()
            {
                let most = terms as f64 * f64::from(f32::EPSILON) * magnitude;
                assert!(
                    (f64::from(*got) - expected).abs() <= most,
                    "{name} {shape:?} at {place}: {got}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn pairs_of_terms() {
    check_on_cpu("pairs", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::BF16, shape.to_vec(), 1.0, seed);
        let (relative, absolute) = tolerance(DType::BF16, 300);
        let near = |name: &str, y| near(name, y, relative, absolute);
        let (a, b) = (of(&[2, 37, 131], 1), of(&[131, 100], 2));
        let row = Tensor::arange(0i64, 37, 1).to(device).eq(30).unsqueeze(1);
        let (image, kernels) = (of(&[2, 3, 13, 17], 4), of(&[8, 3, 3, 3], 5));
        let (lines, weights) = (of(&[37, 294], 6), of(&[100, 294], 7));
        let odd = of(&[37, 295], 8).narrow(1, 0, 294);
        let part = |x: &Tensor| x.narrow(1, 3, 260);
        vec![
            near("lines", lines.linear(&weights, Some(&b.select(0, 0))).relu()),
            near("parts of lines", part(&lines).linear(&part(&weights), None)),
            near("odd lines", odd.linear(&weights, None)),
            near("lines and columns", lines.matmul(&of(&[294, 100], 9))),
            near("lines of others", lines.exp().linear(&weights.abs(), None)),
            near("before and after", a.relu().linear(&b.t(), Some(&b.select(0, 0))).gelu()),
            near("rounded before", a.exp().matmul(&b.abs())),
            near("gated", a.matmul(&b).silu() * a.matmul(&of(&[131, 100], 3))),
            near("of transposes", b.t().matmul(&a.transpose(1, 2))),
            near("normalised", a.layer_norm([131], None, None, 1e-5).matmul(&b) * 0.1),
            near("nan", a.masked_fill(&row, f64::NAN).matmul(&b)),
            near("infinite", a.masked_fill(&row, f64::INFINITY).matmul(&b.abs())),
            near("windows", image.conv2d(&kernels, None, 1, 1)),
            near("windows apart", image.conv2d(&kernels, None, 2, 0).relu()),
        ]
    });
}

/// Sums of some terms each are added up: in one sum of all, each term would be rounded to what the whole has room for.
#[test]
fn long_sums_lose_little() {
    let sums = |x: &Tensor| x.t().matmul(x);
    for columns in [8, 24] {
        let x = Tensor::rand([1 << 20, columns], 1);
        let precise = sums(&x.cast(DType::F64));
        let error = ((sums(&x) - &precise) / &precise).abs().max([0, 1]).item::<f64>().unwrap();
        assert!(error < 5e-6, "{columns} columns: {error:e}");
    }
}

#[test]
fn another_batch_size_is_right_too() {
    let weight = floats(&Device::cpu(), DType::F32, [80, 64], 1.0, 1);
    for rows in [300, 8, 1, 61, 241] {
        let x = floats(&Device::cpu(), DType::F32, [rows, 64], 1.0, rows as u64);
        let y = x.linear(&weight, None);
        let expected = loops(&x.to_vec().unwrap(), &weight.t().to_vec().unwrap(), [rows, 64, 80]);
        for (got, expected) in y.to_vec::<f32>().unwrap().iter().zip(expected) {
            assert!((f64::from(*got) - expected).abs() < 1e-4, "{rows} rows: {got}, not {expected}");
        }
    }
}

/// With few rows the other factor is read as it is in memory, or turned on the way; what it is computed from is computed then.
#[test]
fn few_rows() {
    check_on_cpu("few rows", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (relative, absolute) = tolerance(DType::F32, 1030);
        let near = |name: &str, y| near(name, y, relative, absolute);
        let mut outputs = Vec::new();
        for rows in [1, 6, 13, 17] {
            outputs.push(near("straight", of(&[rows, 37], 1).matmul(&of(&[37, 528], 2))));
            outputs
                .push(near("turned", of(&[rows, 1030], 1).linear(&of(&[70, 1030], 2), Some(&of(&[70], 3)))));
        }
        let scales = of(&[530], 4);
        let bytes = ordinary(device, DType::I8, [37, 530], 5).cast(DType::F32) / 100.0 * &scales;
        outputs.push(near("no multiple of a vector", of(&[2, 37], 1).matmul(&of(&[37, 530], 2)).relu()));
        outputs.push(near("bytes", of(&[3, 37], 1).matmul(&bytes)));
        let halves = floats(device, DType::BF16, [90, 300], 1.0, 6);
        outputs.push(near("halves", of(&[5, 300], 1).linear(&halves.cast(DType::F32), None)));
        outputs.push(near("batches", of(&[3, 5, 20], 1).matmul(&of(&[3, 20, 528], 2))));
        outputs.push(near("a vector", of(&[37], 1).matmul(&of(&[3, 37, 1040], 2)) + of(&[1040], 3)));
        let (a, b) = (ordinary(device, DType::I64, [4, 37], 1), ordinary(device, DType::I64, [37, 528], 2));
        outputs.push(exact("integers", a.matmul(&b)));
        outputs.push(exact("lines of integers", a.linear(&ordinary(device, DType::I64, [70, 37], 3), None)));
        outputs
    });
}

/// The same in BF16, whose terms are multiplied in pairs: as memory has them, and as they are computed; an odd number of them too.
#[test]
fn few_rows_of_halves() {
    check_on_cpu("few rows of halves", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::BF16, shape.to_vec(), 1.0, seed);
        let (relative, absolute) = tolerance(DType::BF16, 400);
        let near = |name: &str, y| near(name, y, relative, absolute);
        let mut outputs = Vec::new();
        for (rows, terms) in [(2, 131), (5, 37), (7, 24), (16, 390)] {
            let x = of(&[rows, terms], 1);
            outputs.push(near("straight", x.matmul(&of(&[terms, 592], 2))));
            outputs.push(near("columns that fill no vector", x.matmul(&of(&[terms, 523], 2))));
            outputs.push(near("lines", x.linear(&of(&[131, terms], 2), Some(&of(&[131], 3)))));
            let scale = of(&[terms], 4);
            let normal = x.rms_norm([terms], Some(&scale), 1e-5);
            outputs.push(near("rows that are computed", normal.linear(&of(&[131, terms], 2), None)));
            let bytes = ordinary(device, DType::I8, [131, terms], 5).cast(DType::BF16) * of(&[131, 1], 6);
            outputs.push(near("lines that are computed", x.linear(&bytes, None)));
        }
        let lost = of(&[3, 100], 1).masked_fill(&of(&[3, 100], 7).gt(0.99), f64::NAN);
        outputs.push(near("what is not a number", lost.linear(&of(&[140, 100], 2), None)));
        outputs
    });
}

/// Two numbers of four bits are in a byte, and some of them share a scale.
#[test]
fn numbers_that_are_packed_along_a_row() {
    check_on_cpu("packed numbers", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (relative, absolute) = tolerance(DType::F32, 3000);
        let near = |name: &str, y| near(name, y, relative, absolute);
        let pairs = |packed: &Tensor, length: usize| {
            let parts = [packed & 15, packed >> 4];
            Tensor::stack(&parts, -1).reshape([37, length])
        };
        let mut outputs = Vec::new();
        for length in [256, 96, 34] {
            let packed = ordinary(device, DType::U8, [37, length / 2], length as u64);
            let (codes, x) = (pairs(&packed, length), of(&[1, length], 1));
            let weights = (codes.cast(DType::F32) - 8.0) * of(&[37, 1], 2);
            outputs.push(near("a scale a row", x.linear(&weights, None)));
            outputs.push(near("greatest", weights.max(1)));
            outputs.push(exact("sums of codes", codes.cast(DType::I32).sum(1)));
        }
        let packed = ordinary(device, DType::U8, [37, 128], 7);
        let codes = pairs(&packed, 256).cast(DType::F32).reshape([37, 8, 32]) - 8.0;
        let in_groups = (&codes * of(&[37, 8, 1], 3)).reshape([37, 256]);
        outputs.push(near("a scale a group", of(&[1, 256], 1).linear(&in_groups, None)));
        outputs.push(near("two rows", of(&[2, 256], 1).linear(&in_groups, None)));
        let bytes = ordinary(device, DType::I8, [37, 96], 9).cast(DType::F32).reshape([37, 2, 48]);
        let bytes = (bytes * of(&[37, 2, 1], 4)).reshape([37, 96]);
        outputs.push(near("bytes in groups", of(&[96], 1).matmul(&bytes.t())));
        let shifts = (Tensor::arange(0i64, 4, 1) * 2).cast(DType::U8).to(device);
        let two_bits = ((packed.unsqueeze(-1) >> shifts) & 3).reshape([37, 512]).cast(DType::F32);
        outputs.push(near("four in a byte", of(&[1, 512], 1).linear(&two_bits, None)));
        outputs
    });
}

/// So long that two kernels would store all weights between them.
#[test]
fn packed_numbers_of_a_line_are_one_kernel() {
    let device = Device::cpu();
    for length in [512, 2048] {
        let packed = ordinary(&device, DType::U8, [1024, length / 2], 1);
        let [x, scales] = [&[1, length][..], &[1024, length / 64, 1]]
            .map(|shape| floats(&device, DType::F32, shape.to_vec(), 1.0, 2));
        let codes = Tensor::stack(&[&packed & 15, &packed >> 4], 2).reshape([1024, length / 64, 64]);
        let weights = ((codes.cast(DType::F32) - 8.0) * scales).reshape([1024, length]);
        let kernels = x.linear(&weights, None).explain().unwrap().kernels();
        assert_eq!(kernels, 1, "{length}");
    }
}

/// Many small products, packed where all of them have enough to multiply, and rows of them.
#[test]
fn many_small_products() {
    for [batch, rows, terms, columns] in
        [[100, 4, 16, 8], [70, 27, 16, 27], [65, 8, 9, 16], [64, 5, 12, 11], [3, 16, 16, 16], [1, 8, 16, 8]]
    {
        check_on_cpu(&format!("{batch} times {rows}×{terms}×{columns}"), |device| {
            let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
            let (relative, absolute) = tolerance(DType::F32, terms);
            let near = |name: &str, y| near(name, y, relative, absolute);
            let (a, b) = (of(&[batch, rows, terms], 1), of(&[batch, terms, columns], 2));
            let c = of(&[batch, columns, terms], 3);
            let scores = a.matmul(c.transpose(1, 2)) * 0.5;
            vec![
                near("lines", a.matmul(&b)),
                near("lines of terms", scores.relu()),
                near("both ways", b.transpose(1, 2).matmul(a.transpose(1, 2))),
                near("with itself", a.matmul(a.transpose(1, 2))),
                near("weighed", scores.softmax(2).matmul(&c)),
                exact(
                    "whole numbers",
                    (&a * 4.0).round().cast(DType::I32).matmul((&b * 4.0).round().cast(DType::I32)),
                ),
            ]
        });
    }
}

#[test]
fn another_batch_size_is_no_other_kernel() {
    let target = Target::cpu();
    let text = |rows: usize| {
        let weight = floats(&Device::cpu(), DType::F32, [2048, 256], 1.0, 1);
        let x = floats(&Device::cpu(), DType::F32, [rows, 256], 1.0, 2);
        x.linear(&weight, None).compile_for(&target).unwrap().source()
    };
    // Few rows and many are two kernels.
    for same in [[4, 5, 16], [17, 63, 240], [17, 241, 1000]] {
        let expected = text(same[0]);
        assert!(expected.contains("contraction(rows="), "{expected}");
        for rows in same {
            assert_eq!(text(rows), expected, "{rows} rows");
        }
    }
}

/// What a layer of few inputs comes to is added to each channel: its sum is a loop beside the convolution's, or a kernel, and
/// in no case are the convolution's products stored.
#[test]
fn a_layer_beside_a_convolution() {
    let shifted = |device: &Device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, kernel, bias) = (of(&[2, 16, 20, 20], 1), of(&[24, 16, 3, 3], 2), of(&[24], 3));
        let shift = |inputs: usize| of(&[2, inputs], 4).linear(&of(&[24, inputs], 5), None);
        let y = |inputs| x.conv2d(&kernel, Some(&bias), 1, 1) + shift(inputs).unsqueeze(2).unsqueeze(3);
        let to = |channels: usize| of(&[channels, 16, 3, 3], 6);
        vec![
            near("few", y(40), 1e-5, 1e-4),
            near("more", y(150), 1e-5, 1e-4),
            near("to three channels", x.conv2d(&to(3), Some(&of(&[3], 7)), 1, 1).sigmoid(), 1e-5, 1e-4),
            near("to one channel", x.conv2d(&to(1), None, 2, 0), 1e-5, 1e-4),
        ]
    };
    check_on_cpu("a layer beside a convolution", shifted);
    let [x, kernel, time, layer] = [vec![2, 64, 32, 32], vec![64, 64, 3, 3], vec![2, 64], vec![64, 64]]
        .map(|shape| Tensor::rand(shape, 1));
    lazuli::eval([&x, &kernel, &time, &layer]).unwrap();
    let y = x.conv2d(&kernel, None, 1, 1) + time.linear(&layer, None).unsqueeze(2).unsqueeze(3);
    assert_eq!(y.explain().unwrap().kernels(), 1);
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        let moved = y.compile_for(&target).unwrap().explain().bytes_moved();
        assert!(moved < 3_000_000, "{moved}");
    }
}

/// A layer and what two narrow ones add to it (LoRA): the inner one is stored and not summed up anew for each result, and the
/// outer one is a loop of the layer's results, as long as that has more terms.
#[test]
fn a_layer_and_its_adapter() {
    let of = |device: &Device, shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
    let adapted = |device: &Device, [rows, inputs, outputs, rank]: [usize; 4]| {
        let x = of(device, &[rows, inputs], 1);
        let narrow = x.linear(of(device, &[rank, inputs], 2), None);
        x.linear(of(device, &[outputs, inputs], 3), None)
            + narrow.linear(of(device, &[outputs, rank], 4), None) * 0.5
    };
    check_on_cpu("adapters", |device| {
        let sizes = [[130, 40, 33, 2], [67, 64, 64, 4], [50, 20, 70, 5]];
        sizes.map(|sizes| near(format!("{sizes:?}"), adapted(device, sizes), 1e-5, 1e-4)).into()
    });
    for (rank, kernels) in [(1, 2), (2, 2), (4, 2), (16, 3)] {
        let plan = adapted(&Device::cpu(), [4096, 64, 64, rank]).compile_for(&Target::cpu()).unwrap();
        assert_eq!(plan.kernels().len(), kernels, "{}", plan.explain());
        let last = plan.kernels()[kernels - 1].schedule().to_string();
        assert!(last.starts_with("contraction"), "{}", plan.explain());
    }
}

/// Rows of products, so many that blocks have whole ones, which are reduced or normalised and go nowhere else.
#[test]
fn rows_of_products_are_reduced_in_their_kernel() {
    let reduced = |device: &Device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, centres) = (of(&[2003, 13], 1), of(&[130, 13], 2));
        let (q, k) = (of(&[3, 700, 12], 3), of(&[3, 150, 12], 4));
        let products = x.linear(&centres, None);
        let nan = Tensor::arange(0i64, 2003, 1).to(device).eq(200).unsqueeze(1).where_(f64::NAN, &x);
        let near = |name: &str, y| near(name, y, 1e-5, 1e-4);
        vec![
            near("least distance", (centres.square().sum(1) - 2.0 * x.matmul(&centres.t())).min(1)),
            exact("nearest", (centres.square().sum(1) - 2.0 * x.matmul(&centres.t())).argmin(1)),
            exact("of NaN", nan.linear(&centres, None).argmax(1)),
            near("greatest and sum", products.max(1) + products.sum(1)),
            near("softmax", products.softmax(1)),
            near("stored as well", &products / products.max_keepdim(1).abs()),
            near("of batches", (q.matmul(&k.transpose(1, 2)) * 0.2).log_softmax(-1)),
            near("of batches, greatest", q.matmul(&k.transpose(1, 2)).max(-1)),
        ]
    };
    check_on_cpu("reduced products", reduced);
    let (x, centres) = (Tensor::rand([2003, 13], 1), Tensor::rand([130, 13], 2));
    lazuli::eval([&x, &centres]).unwrap();
    let products = x.linear(&centres, None);
    for y in [products.argmin(1), products.softmax(1)] {
        assert_eq!(y.explain().unwrap().kernels(), 1);
    }
}

/// Steps of training and of models with residuals: what follows from a product's rows is needed elsewhere as well.
#[test]
fn products_of_products() {
    check_on_cpu("products of products", |device: &Device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, w, v) = (of(&[130, 64], 1), of(&[64, 200], 2), of(&[200, 200], 3));
        let hidden = x.matmul(&w).tanh();
        let masked = hidden.matmul(&v) * of(&[130, 200], 4).gt(0.0).cast(DType::F32);
        let low = hidden.matmul(&of(&[200, 8], 5)).matmul(&of(&[8, 200], 6));
        let near = |name: &str, y| near(name, y, 1e-4, 1e-3);
        vec![
            near("residual", hidden.matmul(&v).tanh() + &hidden),
            near("of weights", x.t().matmul(&masked)),
            near("both", masked.t().matmul(&hidden)),
            near("low rank beside", (hidden.matmul(&v) + low * 0.5).sigmoid()),
            near("low rank before", (hidden.matmul(&v) * of(&[130, 7], 7).matmul(&of(&[7, 200], 8))).relu()),
        ]
    });
}

#[test]
fn halves_are_rounded_once() {
    // 2048 + 1 is no f16, but the sum of 2048 and two ones is 2050.
    let a = Tensor::from_slice(&[2048.0f32, 1.0, 1.0].map(f16::from_f32), [1, 3]);
    let ones = Tensor::ones([3, 1], DType::F16);
    assert_eq!(a.matmul(&ones).to_vec::<f16>().unwrap(), [f16::from_f32(2050.0)]);
    let bias = Tensor::from_slice(&[f16::from_f32(-2048.0)], [1]);
    let b = Tensor::from_slice(&[2048.0f32, 0.5].map(f16::from_f32), [1, 2]);
    let sum = b.linear(&Tensor::ones([1, 2], DType::F16), Some(&bias));
    assert_eq!(sum.to_vec::<f16>().unwrap(), [f16::from_f32(0.5)]);
}

#[test]
fn mistakes_say_what_does_not_fit() {
    let of = |shape: &[usize]| Tensor::zeros(shape.to_vec(), DType::F32);
    let said = |y: Tensor| y.shape().unwrap_err().to_string();
    for (y, part) in [
        (of(&[2, 3]).matmul(&of(&[4, 5])), "has 3 elements, the last but one of the second 4"),
        (of(&[]).matmul(&of(&[4])), "0-d tensor is no matrix"),
        (of(&[2, 3, 4]).matmul(&of(&[5, 4, 2])), "shapes [2] and [5] do not broadcast"),
        (of(&[2, 3]).bmm(&of(&[3, 2])), "needs equally many matrices"),
        (of(&[2, 3]).linear(&of(&[5, 4]), None), "the input end with the inputs"),
        (of(&[1, 4, 8, 8]).conv2d(&of(&[2, 3, 3, 3]), None, 1, 0), "for 3 channels a group"),
        (of(&[1, 4, 2, 8]).conv2d(&of(&[2, 4, 3, 3]), None, 1, 0), "exceeds the padded input"),
        (Tensor::einsum("ij,jk->iz", &[&of(&[2, 3]), &of(&[3, 4])]), "'z', which no operand has"),
        (Tensor::einsum("ij,jk->ik", &[&of(&[2, 3]), &of(&[4, 4])]), "'j' in the equation"),
        (Tensor::einsum("i?", &[&of(&[2, 3])]), "'?' in the equation"),
        (of(&[2, 3]).cast(DType::Bool).matmul(&of(&[3, 2]).cast(DType::Bool)), "bool"),
        (
            of(&[2, 3]).scaled_dot_product_attention(&of(&[4, 2]), &of(&[4, 2]), &Attention::new()),
            "equally long",
        ),
    ] {
        let message = said(y);
        assert!(message.contains(part), "{message}");
        assert!(message.contains("products.rs"), "{message}");
    }
}
