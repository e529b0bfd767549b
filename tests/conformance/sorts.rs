//! Rows in order: against the interpreter on every device, with lengths round those at which blocks sort differently, of every
//! dtype, along every axis; and in one kernel with what is computed before and after.

use lazuli::{DType, Device, Target, Tensor};

use crate::common::data::{mixed, ordinary};
use crate::common::{Output, check, check_fused, check_on_cpu, exact};

/// Numbers of which many are equal, with NaN, infinities and zeros of both signs among floats.
fn numbers(device: &Device, dtype: DType, shape: &[usize]) -> Tensor {
    // Alternating with ordinary ones, and no period that lengths divide.
    let special = mixed(device, dtype, shape, 3, 5);
    let ordinary = ordinary(device, dtype, shape, 7);
    let count: usize = shape.iter().product();
    let is_special = (Tensor::arange(0, count as i64, 1).to(device) * 7919 % 11).lt(3).reshape(shape);
    is_special.where_(&special, &ordinary)
}

fn both(name: &str, (values, positions): (Tensor, Tensor)) -> Vec<Output> {
    vec![exact(format!("{name}, values"), values), exact(format!("{name}, positions"), positions)]
}

#[test]
fn rows_of_every_length() {
    // Rows, elements and how many are wanted.
    let sizes = [
        (3, 1, 1),
        (9, 2, 2),
        (70, 10, 10),
        (17, 33, 5),
        (5, 256, 256),
        (3, 257, 257),
        (2, 400, 1),
        (2, 1000, 30),
    ];
    check("rows of every length", |device| {
        let of = |(rows, length, k): (usize, usize, usize)| {
            let x = numbers(device, DType::F32, &[rows, length]);
            both(&format!("{rows} rows of {length}"), x.topk(k, 1, length % 2 == 0))
        };
        sizes.into_iter().flat_map(of).collect()
    });
}

#[test]
fn rows_that_no_block_holds() {
    let sizes = [(1, 5000, 5000), (2, 9000, 9000), (1, 9000, 7), (1, 70_001, 70_001), (2, 66_000, 4099)];
    check_fused("long rows", |device| {
        let of = |(rows, length, k): (usize, usize, usize)| {
            let x = numbers(device, DType::F32, &[rows, length]);
            let wide = numbers(device, DType::F64, &[rows, length]);
            let mut outputs = both(&format!("{rows} rows of {length}"), x.topk(k, 1, length % 2 == 0));
            if length < 10_000 {
                outputs.extend(both(&format!("{rows} wide rows of {length}"), wide.topk(k, 1, true)));
            }
            outputs
        };
        sizes.into_iter().flat_map(of).collect()
    });
}

/// The first of rows whose elements have most bytes in common: small integers, a few large ones far above, all negative, all equal.
#[test]
fn rows_that_are_nearly_alike() {
    const LENGTH: i64 = 1000;
    check_fused("rows that are nearly alike", |device| {
        let count = Tensor::arange(0, LENGTH, 1).to(device);
        let mixed = &count * 7919 % 97;
        let rows = [
            ("small", mixed.clone()),
            ("large", &mixed + (1i64 << 40)),
            ("negative", &mixed - (1i64 << 33) - 500),
            ("of both signs", &mixed - 48),
            ("equal", Tensor::full([LENGTH as usize], -3, DType::I64).to(device)),
        ];
        let of = |(name, row): (&str, Tensor)| {
            let narrow = row.remainder(1 << 20).cast(DType::I32);
            let floats = row.cast(DType::F64);
            [row, narrow, floats]
                .into_iter()
                .flat_map(|x| {
                    [40, 110]
                        .into_iter()
                        .flat_map(move |k| both(&format!("{k} of {name}"), x.topk(k, 0, k == 40)))
                })
                .collect::<Vec<Output>>()
        };
        rows.into_iter().flat_map(of).collect()
    });
}

#[test]
fn every_dtype_and_axis() {
    check_fused("dtypes and axes", |device| {
        let of = |dtype: DType| {
            let x = numbers(device, dtype, &[5, 40, 3]);
            let mut outputs = both(&format!("{dtype} along the middle"), x.sort(1, false));
            outputs.extend(both(&format!("{dtype} descending"), x.sort(1, true)));
            outputs.extend(both(&format!("{dtype} along the first"), x.topk(2, 0, true)));
            outputs
        };
        DType::ALL.into_iter().flat_map(of).collect()
    });
}

#[test]
fn what_surrounds_a_sort_is_in_its_kernel() {
    check("around a sort", |device| {
        let x = numbers(device, DType::F32, &[12, 50]);
        let bias = Tensor::arange(0, 50, 1).cast(DType::F32).to(device);
        let (values, positions) = (x.abs() * 2.0 + &bias).sort(1, true);
        let weighted = values.maximum(-3.0) * &bias + positions.cast(DType::F32);
        vec![exact("between", weighted), exact("of a broadcast", bias.expand([4, 50]).argsort(0, true))]
    });
    let x = numbers(&Device::cpu(), DType::F32, &[12, 50]);
    let (values, positions) = x.abs().topk(5, 1, true);
    let results = [values.sqrt(), positions + 1];
    assert_eq!(lazuli::explain(&results).unwrap().kernels(), 1);
    for target in [Target::cuda("sm_90"), Target::cpu()] {
        let program = lazuli::compile_for(&results, &target).unwrap();
        assert_eq!(program.kernels().len(), 1, "{target}");
    }
}

#[test]
fn nothing_and_single_elements() {
    check("nothing", |device| {
        let x = numbers(device, DType::F32, &[3, 4]);
        let none = Tensor::zeros([3, 0], DType::F32).to(device);
        let single = numbers(device, DType::F32, &[1]).squeeze(0);
        let mut outputs = both("of nothing", none.sort(1, false));
        outputs.extend(both("no rows", none.sort(0, false)));
        outputs.extend(both("k of 0", x.topk(0, 1, true)));
        outputs.extend(both("0-d", single.sort(0, true)));
        outputs.extend(both("median of 0-d", single.median(-1)));
        outputs
            .extend(both("one row of nothing", Tensor::zeros([0, 1], DType::I32).to(device).sort(0, true)));
        outputs
    });
}

/// Medians against a plain loop: the lower one of two, the first NaN where there is one, and of what is none.
#[test]
fn medians() {
    for (rows, length) in [(40, 1), (30, 2), (30, 5), (9, 64), (3, 301)] {
        let x = numbers(&Device::interpreter(), DType::F32, &[rows, length]).to_vec::<f32>().unwrap();
        let of_row = |row: &[f32], skips: bool| -> (f32, i64) {
            let mut order: Vec<usize> = (0..length).collect();
            // Zeros are equal, and so are all NaN, behind everything else.
            order.sort_by(|&i, &j| {
                row[i].partial_cmp(&row[j]).unwrap_or_else(|| row[i].is_nan().cmp(&row[j].is_nan()))
            });
            let others = row.iter().filter(|x| !x.is_nan()).count();
            let place = match skips {
                true => others.saturating_sub(1) / 2,
                false if others < length => others,
                false => (length - 1) / 2,
            };
            (row[order[place]], order[place] as i64)
        };
        for (device, skips) in
            [Device::cpu(), Device::interpreter()].into_iter().flat_map(|d| [(d, false), (d, true)])
        {
            let input = Tensor::from_slice(&x, [rows, length]).to(&device);
            let (values, positions) = if skips { input.nanmedian(1) } else { input.median(1) };
            let expected: Vec<(f32, i64)> = x.chunks(length).map(|row| of_row(row, skips)).collect();
            let (values, positions) = (values.to_vec::<f32>().unwrap(), positions.to_vec::<i64>().unwrap());
            for (row, (value, position)) in expected.into_iter().enumerate() {
                let is_same = values[row] == value || values[row].is_nan() && value.is_nan();
                assert!(
                    is_same && positions[row] == position,
                    "{rows} × {length} on {device}, NaN skipped: {skips}: row {row} is {} at {}, not {value} at {position}",
                    values[row],
                    positions[row],
                );
            }
        }
    }
}

/// Whether elements are among others, against a plain loop: few others, which are compared one by one, and many.
#[test]
fn what_is_among_others() {
    let x: Vec<f32> = (0..60)
        .map(|i| [i as f32 % 23.0 - 3.0, f32::NAN, -0.0][(i % 17 == 0) as usize + (i % 29 == 1) as usize])
        .collect();
    for count in [0, 1, 8, 9, 40] {
        let others: Vec<f32> =
            (0..count).map(|i| if i == 5 { f32::NAN } else { (i * 7 % 31) as f32 }).collect();
        let expected: Vec<bool> = x.iter().map(|x| others.contains(x)).collect();
        for device in [Device::cpu(), Device::interpreter()] {
            let [x, others] =
                [&x, &others].map(|values| Tensor::from_slice(values, [values.len()]).to(&device));
            assert_eq!(
                x.reshape([6, 10]).isin(&others).to_vec::<bool>().unwrap(),
                expected,
                "{count} on {device}"
            );
            // Of another dtype, and more than one dimension.
            let integers = others.nan_to_num(100.0, None, None).cast(DType::U8).unsqueeze(1);
            assert_eq!(x.isin(&integers).to_vec::<bool>().unwrap(), expected, "{count} on {device}");
        }
    }
}

/// A few of long rows, of which vectors are looked through: equal ones, zeros of both signs and NaN among them.
#[test]
fn few_of_long_rows() {
    for (rows, length, wanted) in [(3, 1000, 5), (2, 8191, 8), (5, 300, 9), (1, 40_000, 50)] {
        for dtype in [DType::F32, DType::BF16, DType::I32, DType::U8, DType::I64] {
            check_on_cpu(&format!("{wanted} of {rows} rows of {length} {dtype}"), |device| {
                let x = mixed(device, dtype, [rows, length], 7, 61);
                let few = (ordinary(device, DType::F32, [rows, length], 1) * 3.0).round().cast(dtype);
                let mut outputs = both("largest", x.topk(wanted, 1, true));
                outputs.extend(both("least", x.topk(wanted, 1, false)));
                outputs.extend(both("of few numbers", few.topk(wanted, 1, true)));
                outputs
            });
        }
    }
}

/// What is there only once, against the standard library's.
#[test]
fn what_differs() {
    for (length, kinds) in [(0, 1), (1, 1), (7, 1), (300, 11), (5000, 4000)] {
        let x: Vec<i32> = (0..length).map(|i| (i * 7919 + i * i) % kinds - 3).collect();
        let mut counts = std::collections::BTreeMap::new();
        x.iter().for_each(|&x| *counts.entry(x).or_insert(0i64) += 1);
        for device in [Device::cpu(), Device::interpreter()] {
            let tensor = Tensor::from_slice(&x, [x.len()]).to(&device);
            let (values, found) = tensor.unique_counts().unwrap();
            assert_eq!(values.to_vec::<i32>().unwrap(), counts.keys().copied().collect::<Vec<_>>());
            assert_eq!(found.to_vec::<i64>().unwrap(), counts.values().copied().collect::<Vec<_>>());
            let (values, inverse) = tensor.unique_inverse().unwrap();
            assert_eq!(values.take(&inverse).to_vec::<i32>().unwrap(), x, "{length} of {kinds} on {device}");
            assert_eq!(values.device().unwrap(), device);
        }
    }
    let floats = Tensor::from_slice(&[f32::NAN, 0.0, f32::NAN, -0.0], [2, 2]).unique().unwrap();
    assert!(
        matches!(floats.to_vec::<f32>().unwrap()[..], [zero, a, b] if zero == 0.0 && a.is_nan() && b.is_nan())
    );
}
