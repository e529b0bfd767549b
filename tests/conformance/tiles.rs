//! Proves the tiles of products on a GPU right, at sizes around those of every tile: the emulated device carries out the
//! instructions of warps together, so that a wrong part of a matrix or a missing barrier shows.

use lazuli::{Attention, DType, Device, Target, Tensor};

use crate::common::data::{floats, ordinary};
use crate::common::{Output, check_fused, exact, near};

/// Sums of `n` products of numbers of about 1 in this dtype: rounding alone differs with the order.
fn close(label: &str, y: Tensor, dtype: DType, n: usize) -> Output {
    let of_sum = dtype.compute().finfo().unwrap().eps * (n as f64);
    near(label, y, 2.0 * dtype.finfo().unwrap().eps, of_sum.max(dtype.finfo().unwrap().eps))
}

/// That the kernel for a GPU is one of tiles.
fn is_tiled(build: impl Fn(&Device) -> Vec<Output>) {
    for output in build(&Device::cpu()) {
        let program = output.tensor().compile_for(&Target::cuda("sm_90")).unwrap();
        assert!(program.source().contains("contraction(tile="), "{}", program.source());
    }
}

fn check_tiled(name: &str, build: impl Fn(&Device) -> Vec<Output>) {
    is_tiled(&build);
    check_fused(name, &build);
}

#[test]
fn every_edge_of_a_tile() {
    check_tiled("tiles", |device| {
        let mut outputs = Vec::new();
        for (number, [rows, terms, columns]) in
            [[33, 19, 300], [128, 64, 128], [129, 70, 65], [400, 17, 1031]].into_iter().enumerate()
        {
            let of = |shape: [usize; 2], seed| floats(device, DType::F32, shape, 1.0, seed + number as u64);
            let (a, b) = (of([rows, terms], 1), of([terms, columns], 2));
            outputs.push(close("straight", a.relu().matmul(&b), DType::F32, terms));
            let turned = of([terms, rows], 3).t().linear(&of([columns, terms], 4), Some(&b.select(0, 0)));
            outputs.push(close("turned", turned.gelu(), DType::F32, terms));
        }
        outputs
    });
}

#[test]
fn every_dtype_has_tiles() {
    check_tiled("dtypes", |device| {
        let [a, b] = [[40, 70], [70, 60]];
        let mut outputs = Vec::new();
        let (x, y) = (floats(device, DType::F64, a, 1.0, 1), floats(device, DType::F64, b, 1.0, 2));
        outputs.push(close("f64", x.matmul(&y) + 1.0, DType::F64, 70));
        for dtype in [DType::U8, DType::I16, DType::I32, DType::U32, DType::I64] {
            let (x, y) = (ordinary(device, dtype, a, 1), ordinary(device, dtype, b, 2));
            outputs.push(exact(dtype.name(), x.matmul(&y)));
        }
        let (x, y) = (ordinary(device, DType::I32, a, 1), ordinary(device, DType::I32, b, 2));
        outputs.push(exact("wide sums", (x.unsqueeze(2) * y.unsqueeze(0)).sum(1)));
        outputs
    });
}

#[test]
fn warps_multiply_matrices_of_16_bits() {
    let build = |device: &Device| {
        let mut outputs = Vec::new();
        let sizes = [[33, 40, 128], [130, 97, 66], [64, 128, 72]];
        for (dtype, sizes) in [(DType::F16, &sizes[..]), (DType::BF16, &sizes[1..2])] {
            for (number, &[rows, terms, columns]) in sizes.iter().enumerate() {
                let of = |shape: [usize; 2], seed| floats(device, dtype, shape, 1.0, seed + number as u64);
                let (a, b) = (of([rows, terms], 1), of([terms, columns], 2));
                outputs.push(close("straight", a.matmul(&b), dtype, terms));
                let turned = of([terms, rows], 3).t().linear(&of([columns, terms], 4), Some(&b.select(0, 0)));
                outputs.push(close("turned", turned.relu(), dtype, terms));
            }
        }
        let x = floats(device, DType::F16, [50, 64], 1.0, 7);
        let weight = floats(device, DType::F16, [96, 64], 1.0, 8);
        outputs.push(close("computed", (&x * 0.5).relu().linear(&weight, None), DType::F16, 64));
        outputs
    };
    check_tiled("halves", build);
    // On sm_90 groups of warps do.
    for (target, function) in [("sm_100", "lz_multiply_matrices_"), ("sm_90", "lz_multiply_group_")] {
        for output in build(&Device::cpu()) {
            let source = output.tensor().compile_for(&Target::cuda(target)).unwrap().source();
            assert!(source.contains(function), "{source}");
        }
    }
}

/// Factors of 16 bits in any order, of which groups of warps multiply lines: as memory has them, computed, of odd lengths, several
/// products of one factor, batches, windows, and terms that blocks share.
#[test]
fn lines_of_groups_of_warps() {
    for (dtype, [rows, terms, columns]) in [
        (DType::F16, [130, 264, 300]),
        (DType::BF16, [65, 67, 129]),
        (DType::F16, [33, 16, 64]),
        (DType::BF16, [70, 2050, 72]),
    ] {
        check_fused(&format!("{dtype}, {rows} × {terms} × {columns}"), |device| {
            let of = |shape: &[usize], seed| floats(device, dtype, shape.to_vec(), 1.0, seed);
            let relative = dtype.finfo().unwrap().eps;
            let absolute = dtype.compute().finfo().unwrap().eps * (terms as f64);
            // What follows rounds sums of up to 64 that were rounded already.
            let after = |name: &str, y| near(name, y, 4.0 * relative, absolute + 64.0 * relative);
            let near = |name: &str, y| near(name, y, relative, absolute);
            let (a, b) = (of(&[rows, terms], 1), of(&[terms, columns], 2));
            let (at, bt) = (of(&[terms, rows], 3).t(), of(&[columns, terms], 4).t());
            let row = Tensor::arange(0i64, rows as i64, 1).to(device).eq(30).unsqueeze(1);
            let (image, kernels) = (of(&[2, 3, 13, 17], 7), of(&[72, 3, 3, 3], 8));
            vec![
                after("windows", image.conv2d(&kernels, None, 1, 1)),
                near("straight", a.matmul(&b)),
                near("left turned", at.matmul(&b)),
                near("right turned", a.matmul(&bt)),
                near("both turned", at.matmul(&bt)),
                after("computed", (a.relu() * 0.5).matmul(&b).tanh()),
                near("both computed", a.abs().matmul(&bt.clamp(-0.5, 0.5)).relu()),
                after("gated", a.matmul(&b).silu() * a.matmul(&bt)),
                after("batches", of(&[2, rows, terms], 5).matmul(&b) + of(&[columns], 6)),
                near("nan", a.masked_fill(&row, f64::NAN).matmul(&b)),
                near("greatest", a.matmul(&b).max(1)),
            ]
        });
    }
}

/// Tiles that are copied as a whole, of factors that begin at other places each time, of batches and parts of heads.
#[test]
fn tiles_of_parts_of_memory() {
    for first in [0, 3, 65, 230] {
        check_fused(&format!("rows from {first} on"), |device| {
            let of = |shape: [usize; 2], seed| floats(device, DType::BF16, shape, 1.0, seed);
            let (x, w) = (of([300, 136], 1), of([136, 200], 2));
            vec![close("rows", x.slice(0, first..first + 70).matmul(&w), DType::BF16, 136)]
        });
    }
    check_fused("parts of memory", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::BF16, shape.to_vec(), 1.0, seed);
        let (x, w) = (of(&[300, 136], 1), of(&[136, 200], 2));
        let heads = of(&[70, 3, 2, 64], 3);
        let part = |n| heads.select(1, n).transpose(0, 1);
        let same = w.slice(1, ..1).expand([136, 64]);
        vec![
            close("terms", x.slice(1, 8..).matmul(w.slice(0, 8..)), DType::BF16, 128),
            close("odd terms", x.slice(1, 3..131).matmul(w.slice(0, 8..)), DType::BF16, 128),
            close("columns", x.matmul(w.slice(1, 16..150)), DType::BF16, 136),
            close("scores", part(0).matmul(part(1).transpose(1, 2)), DType::BF16, 64),
            close("equal columns", x.matmul(&same), DType::BF16, 136),
        ]
    });
}

/// The tiles of large products: a block cannot declare as much shared memory.
#[test]
fn the_largest_tiles_are_in_memory_of_the_launch() {
    let build = |device: &Device| {
        let of = |shape: [usize; 2], seed| floats(device, DType::BF16, shape, 1.0, seed);
        let product = of([2060, 200], 1).linear(&of([520, 200], 2), None).relu();
        vec![close("large", product, DType::BF16, 200)]
    };
    check_fused("large tiles", build);
    let source = build(&Device::cpu())[0].tensor().compile_for(&Target::cuda("sm_100")).unwrap().source();
    assert!(source.contains("tile=128x256") && source.contains("147456 bytes of shared memory"), "{source}");
}

/// Few rows go through a large factor together: it is read once, whatever its layout and dtype.
#[test]
fn few_rows_share_tiles_of_a_large_factor() {
    let (terms, columns) = (2051, 513);
    let product = |device: &Device, dtype, rows, is_linear| {
        let x = floats(device, dtype, [rows, terms], 1.0, rows as u64);
        match is_linear {
            true => x.linear(&floats(device, dtype, [columns, terms], 1.0, 2), None).relu(),
            false => x.matmul(&floats(device, dtype, [terms, columns], 1.0, 3)),
        }
    };
    for (dtype, rows, is_linear, tile) in [
        (DType::F32, 2, true, "8x128"),
        (DType::F32, 8, false, "8x128"),
        (DType::F32, 15, true, ""),
        (DType::BF16, 7, true, "16x64"),
        (DType::F64, 3, false, "8x128"),
    ] {
        let label = format!("{rows} rows of {dtype}");
        let y = product(&Device::cpu(), dtype, rows, is_linear);
        let program = y.compile_for(&Target::cuda("sm_100")).unwrap();
        assert!(program.source().contains(&format!("tile={tile}")), "{label}: {}", program.source());
        check_fused(&label, |device| {
            vec![close("product", product(device, dtype, rows, is_linear), dtype, terms)]
        });
    }
    // Factors that are computed on their way.
    check_tiled("computed factors of few rows", |device| {
        let narrow = ordinary(device, DType::I8, [columns, terms], 5).cast(DType::F32) * 0.01;
        let of = |rows| floats(device, DType::F32, [rows, terms], 1.0, 6).relu();
        let wide = floats(device, DType::F64, [5, terms], 1.0, 7).abs().linear(narrow.cast(DType::F64), None);
        vec![
            close("few", of(6).linear(&narrow, None), DType::F32, 2 * terms),
            close("more", of(12).matmul(narrow.t()).gelu(), DType::F32, 2 * terms),
            close("wide", wide, DType::F64, 2 * terms),
        ]
    });
    // One row reads it once anyhow, and a small factor is in a near cache.
    let small = floats(&Device::cpu(), DType::F32, [8, 64], 1.0, 1);
    let small = small.linear(&floats(&Device::cpu(), DType::F32, [64, 64], 1.0, 2), None);
    for y in [product(&Device::cpu(), DType::F32, 1, true), small] {
        let source = y.compile_for(&Target::cuda("sm_90")).unwrap().source();
        assert!(!source.contains("contraction("), "{source}");
    }
}

/// Numbers of 16 bits are multiplied as matrices where a GPU has an instruction for them, and else as single numbers.
#[test]
fn each_gpu_multiplies_by_what_it_has() {
    for (target, dtype, is_of_matrices) in [
        ("sm_70", DType::F16, false),
        ("sm_75", DType::F16, true),
        ("sm_75", DType::BF16, false),
        ("sm_80", DType::BF16, true),
        ("sm_120", DType::BF16, true),
    ] {
        let of = |shape: [usize; 2]| floats(&Device::cpu(), dtype, shape, 1.0, 1);
        let (a, b) = (of([128, 128]), of([128, 128]));
        let attention = |x: &Tensor| {
            let x = x.reshape([1, 1, 128, 128]);
            x.scaled_dot_product_attention(&x, &x, &Attention::new())
        };
        for y in [a.matmul(&b), attention(&a)] {
            let source = y.compile_for(&Target::cuda(target)).unwrap().source();
            let multiplies = source.contains("lz_multiply_matrices_");
            assert_eq!(multiplies, is_of_matrices, "{dtype} on {target}: {source}");
        }
    }
}

#[test]
fn long_sums_of_few_results_are_split() {
    check_tiled("split", |device| {
        let of = |dtype, shape: [usize; 2], seed| floats(device, dtype, shape, 1.0, seed);
        vec![
            close(
                "f32",
                of(DType::F32, [20, 2001], 1).matmul(&of(DType::F32, [2001, 36], 2)),
                DType::F32,
                4000,
            ),
            close(
                "f16",
                of(DType::F16, [48, 1024], 1).matmul(&of(DType::F16, [1024, 64], 2)),
                DType::F16,
                4000,
            ),
        ]
    });
}

#[test]
fn what_is_not_finite_stays_in_its_row_and_column() {
    check_tiled("not finite", |device| {
        let rows = Tensor::arange(0i64, 70, 1).to(device).unsqueeze(1);
        let mut outputs = Vec::new();
        for dtype in [DType::F32, DType::F16] {
            let plain = floats(device, dtype, [70, 83], 1.0, 1);
            let b = floats(device, dtype, [83, 90], 1.0, 2).abs();
            for (number, value) in [(7i64, f64::NAN), (69, f64::INFINITY)] {
                let a = plain.masked_fill(&rows.eq(number), value);
                outputs.push(close("rows", a.matmul(&b), dtype, 100));
                outputs.push(close("columns", b.t().matmul(&a.t()), dtype, 100));
            }
        }
        outputs
    });
}

#[test]
fn convolutions_and_batches_have_tiles() {
    check_tiled("windows", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, weight) = (of(&[2, 16, 12, 20], 1), of(&[24, 16, 3, 3], 2));
        vec![
            close("conv2d", x.conv2d(&weight, Some(&of(&[24], 3)), 1, 1).relu(), DType::F32, 144),
            close("batches", of(&[3, 70, 40], 1).matmul(&of(&[3, 40, 50], 2)), DType::F32, 33),
            close(
                "gated",
                {
                    let (x, up, gate) = (of(&[70, 48], 1), of(&[64, 48], 2), of(&[64, 48], 3));
                    x.linear(&gate, None).silu() * x.linear(&up, None)
                },
                DType::F32,
                100,
            ),
        ]
    });
}

/// A few thousand rows of few columns are few blocks: they divide the terms.
#[test]
fn tall_products_of_few_columns_are_split() {
    for rows in [200, 1000, 2048, 4000] {
        let x = floats(&Device::cpu(), DType::BF16, [rows, 4096], 1.0, 1);
        let y = floats(&Device::cpu(), DType::BF16, [4096, 16], 1.0, 2);
        let text = x.matmul(&y).compile_for(&Target::cuda("sm_90")).unwrap().source();
        assert!(text.contains("splits="), "{rows} rows:\n{text}");
    }
}

#[test]
fn another_batch_size_is_no_other_kernel_of_tiles() {
    let text = |rows: usize| {
        let weight = floats(&Device::cpu(), DType::F32, [2048, 256], 1.0, 1);
        let x = floats(&Device::cpu(), DType::F32, [rows, 256], 1.0, 2);
        x.linear(&weight, None).compile_for(&Target::cuda("sm_90")).unwrap().source()
    };
    let (few, many) = (text(17), text(500));
    assert!(few.contains("contraction(tile=") && many.contains("contraction(tile="), "{few}\n{many}");
    for (text_of, others) in [
        (few, [18, 25, 32]),
        (text(33), [34, 47, 64]),
        (text(65), [66, 127, 128]),
        (text(129), [130, 200, 256]),
        (many, [257, 300, 512]),
        (text(600), [513, 900, 1024]),
        (text(2000), [1025, 1300, 2048]),
        (text(3000), [2049, 3500, 4096]),
        (text(5000), [4097, 9999, 60_000]),
    ] {
        others.iter().for_each(|&rows| assert_eq!(text(rows), text_of, "{rows} rows"));
    }
}

/// What is known of whole tiles is not asked as it runs.
#[test]
fn whole_tiles_have_no_conditions() {
    let of = |seed| floats(&Device::cpu(), DType::F32, [512, 512], 1.0, seed);
    let source = of(1).matmul(of(2)).compile_for(&Target::cuda("sm_90")).unwrap().source();
    assert!(source.contains("contraction(tile="), "{source}");
    for condition in [" % 1u", " / 1u", "row < ", "if (column < "] {
        assert_eq!(source.contains(condition), condition == "row < ", "{condition}: {source}");
    }
}
