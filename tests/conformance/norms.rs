//! Proves normalisations and composed reductions right against plain loops in double precision, and on every device
//! against the interpreter; what PyTorch computes in one pass over a row is one kernel.

use lazuli::{Conv2d, DType, Device, Tensor};

use crate::common::data::{floats, units};
use crate::common::{Output, check, check_fused, check_on_cpu, exact, near};

/// Rows of a matrix as the reference sees them.
fn rows(x: &[f64], length: usize) -> impl Iterator<Item = &[f64]> {
    x.chunks(length.max(1))
}

#[track_caller]
fn assert_close(what: &str, result: &Tensor, expected: &[f64], tolerance: f64) {
    let values = result.cast(DType::F64).to_vec::<f64>().unwrap();
    assert_eq!(values.len(), expected.len(), "{what}");
    for (i, (&got, &wanted)) in values.iter().zip(expected).enumerate() {
        let same = got == wanted || got.is_nan() && wanted.is_nan();
        let near = (got - wanted).abs() <= tolerance * (1.0 + wanted.abs());
        assert!(same || near, "{what}: [{i}] is {got} instead of {wanted}");
    }
}

fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

fn variance(row: &[f64]) -> f64 {
    let mean = mean(row);
    row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64
}

fn norm(row: &[f64], p: f64) -> f64 {
    row.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p)
}

const SHAPE: [usize; 3] = [4, 6, 35];

fn data(shape: &[usize], seed: u64) -> (Vec<f64>, Tensor) {
    let values: Vec<f64> = units(shape.iter().product(), seed).map(|x| x * 3.0).collect();
    (values.clone(), Tensor::from_vec(values, shape))
}

#[test]
fn reductions_against_loops() {
    let (x, tensor) = data(&SHAPE, 1);
    let each = |f: &dyn Fn(&[f64]) -> f64| rows(&x, 35).map(f).collect::<Vec<f64>>();
    for p in [1.0, 2.0, 3.0, 0.5, -1.0] {
        assert_close(&format!("norm {p}"), &tensor.norm(-1, p), &each(&|row| norm(row, p)), 1e-13);
    }
    let largest = |row: &[f64]| row.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let smallest = |row: &[f64]| row.iter().fold(9.0, |m: f64, x| m.min(x.abs()));
    assert_close("norm inf", &tensor.norm(2, f64::INFINITY), &each(&largest), 0.0);
    assert_close("norm -inf", &tensor.norm(2, f64::NEG_INFINITY), &each(&smallest), 0.0);
    assert_close(
        "norm 0",
        &tensor.trunc().norm(2, 0.0),
        &each(&|r| r.iter().filter(|x| x.trunc() != 0.0).count() as f64),
        0.0,
    );
    let logsumexp = |row: &[f64]| row.iter().map(|x| x.exp()).sum::<f64>().ln();
    assert_close("logsumexp", &tensor.logsumexp(-1), &each(&logsumexp), 1e-13);
    assert_close("norm of all", &tensor.norm(.., 2.0), &[norm(&x, 2.0)], 1e-13);
    let (var, average) = tensor.var_mean([2], 0);
    assert_close("var", &var, &each(&variance), 1e-13);
    assert_close("mean", &average, &each(&mean), 1e-13);
    assert_eq!(tensor.norm_keepdim([0, 2], 2.0).shape().unwrap().to_vec(), [1, 6, 1]);
    assert_eq!(tensor.logsumexp_keepdim(1).shape().unwrap().to_vec(), [4, 1, 35]);
    assert_eq!(tensor.aminmax_keepdim(1).1.shape().unwrap().to_vec(), [4, 1, 35]);
    assert_eq!(tensor.var_mean_keepdim(.., 1).0.shape().unwrap().to_vec(), [1, 1, 1]);
}

#[test]
fn reductions_of_special_values() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let x = Tensor::from_vec(
        [
            [nan, 1.0, 2.0],
            [inf, 1.0, -inf],
            [-inf, -inf, -inf],
            [0.0, -0.0, 0.0],
            [nan, nan, nan],
            [inf, inf, 1.0],
        ]
        .concat(),
        [6, 3],
    );
    assert_close("nansum", &x.nansum(1), &[3.0, nan, -inf, 0.0, 0.0, inf], 0.0);
    assert_close("nanmean", &x.nanmean(1), &[1.5, nan, -inf, 0.0, nan, inf], 0.0);
    assert_close("logsumexp", &x.logsumexp(1), &[nan, inf, -inf, 3f64.ln(), nan, inf], 1e-15);
    assert_close("norm", &x.norm(1, 2.0), &[nan, inf, inf, 0.0, nan, inf], 0.0);
    assert_close("norm inf", &x.norm(1, inf), &[nan, inf, inf, 0.0, nan, inf], 0.0);
    assert_close("norm 0", &x.norm(1, 0.0), &[3.0, 3.0, 3.0, 0.0, 3.0, 3.0], 0.0);
    assert_eq!(x.count_nonzero(1).to_vec::<i64>().unwrap(), [3, 3, 3, 0, 3, 3]);
    assert_close(
        "log_softmax",
        &x.log_softmax(1).slice(0, 2..4),
        &[nan, nan, nan, -(3f64.ln()), -(3f64.ln()), -(3f64.ln())],
        1e-15,
    );
    let none = Tensor::zeros([2, 0], DType::F32);
    assert_close("norm of nothing", &none.norm(1, 2.0), &[0.0, 0.0], 0.0);
    assert_close("logsumexp of nothing", &none.logsumexp(1), &[-inf, -inf], 0.0);
    assert_close("nansum of nothing", &none.nansum(1), &[0.0, 0.0], 0.0);
    assert_close("nanmean of nothing", &none.nanmean(1), &[nan, nan], 0.0);
    assert_eq!(none.count_nonzero(1).to_vec::<i64>().unwrap(), [0, 0]);
    assert_eq!(none.log_softmax(1).shape().unwrap().to_vec(), [2, 0]);
    let one = Tensor::from_slice(&[-3.0f64], []);
    assert_close("0-d", &one.norm(.., 2.0), &[3.0], 0.0);
    assert_close("0-d", &one.logsumexp(..), &[-3.0], 0.0);
    assert_eq!(one.count_nonzero(..).item::<i64>().unwrap(), 1);
    let ints = Tensor::from_slice(&[3i32, 0, -4], [3]);
    assert_eq!(ints.nansum(0).item::<i64>().unwrap(), -1);
    assert_eq!(ints.count_nonzero(0).item::<i64>().unwrap(), 2);
    assert_eq!(ints.gt(0).count_nonzero(0).item::<i64>().unwrap(), 1);
    assert_eq!(ints.logsumexp(0).dtype().unwrap(), DType::F32);
    assert_eq!(ints.aminmax(0).0.item::<i32>().unwrap(), -4);
}

#[test]
fn norms_of_channels_against_loops() {
    let (x, tensor) = data(&SHAPE, 2);
    let [_, channels, length] = SHAPE;
    let (w, weight) = data(&[channels], 3);
    let (b, bias) = data(&[channels], 4);
    let eps = 1e-5;
    let channel = |i: usize| i / length % channels;
    // Statistics of the group of `size` channels around an element.
    let normal = |i: usize, size: usize| {
        let group = size * length;
        let row = &x[i / group * group..][..group];
        (x[i] - mean(row)) / (variance(row) + eps).sqrt()
    };
    for groups in [1, 2, 3, 6] {
        let plain: Vec<f64> = (0..x.len()).map(|i| normal(i, channels / groups)).collect();
        let name = format!("group_norm {groups}");
        assert_close(&name, &tensor.group_norm(groups, None, None, eps), &plain, 1e-12);
        let whole: Vec<f64> =
            plain.iter().enumerate().map(|(i, x)| x * w[channel(i)] + b[channel(i)]).collect();
        assert_close(&name, &tensor.group_norm(groups, Some(&weight), Some(&bias), eps), &whole, 1e-12);
        if groups == channels {
            assert_close("instance_norm", &tensor.instance_norm(None, None, eps), &plain, 1e-12);
            assert_close(
                "instance_norm",
                &tensor.instance_norm(Some(&weight), Some(&bias), eps),
                &whole,
                1e-12,
            );
        }
    }
    let var: Vec<f64> = w.iter().map(|w| w.abs() + 0.5).collect();
    let var_tensor = Tensor::from_slice(&var, [channels]);
    let expected: Vec<f64> = (0..x.len())
        .map(|i| (x[i] - b[channel(i)]) / (var[channel(i)] + eps).sqrt() * w[channel(i)] + b[channel(i)])
        .collect();
    let result = tensor.batch_norm(&bias, &var_tensor, Some(&weight), Some(&bias), eps);
    assert_close("batch_norm", &result, &expected, 1e-12);
    for size in [1, 2, 3, 5, 9] {
        let expected: Vec<f64> = (0..x.len())
            .map(|i| {
                let (n, c, l) = (i / (channels * length), channel(i) as isize, i % length);
                let around = (c - (size / 2) as isize..=c + ((size - 1) / 2) as isize)
                    .filter(|c| (0..channels as isize).contains(c));
                let sum: f64 = around.map(|c| x[(n * channels + c as usize) * length + l].powi(2)).sum();
                x[i] / (1.5 + 0.7 * sum / size as f64).powf(0.75)
            })
            .collect();
        assert_close(
            "local_response_norm",
            &tensor.local_response_norm(size, 0.7, 0.75, 1.5),
            &expected,
            1e-12,
        );
    }
}

#[test]
fn norms_of_rows_against_loops() {
    let (x, tensor) = data(&SHAPE, 2);
    let [batch, channels, length] = SHAPE;
    let eps = 1e-5;
    let rms = |row: &[f64]| (row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64 + eps).sqrt();
    let (g, gain) = data(&[length], 5);
    let expected: Vec<f64> = rows(&x, length)
        .flat_map(|row| row.iter().enumerate().map(|(j, x)| x / rms(row) * g[j]).collect::<Vec<_>>())
        .collect();
    assert_close("rms_norm", &tensor.rms_norm([length], Some(&gain), eps), &expected, 1e-12);
    let expected: Vec<f64> = x
        .chunks(channels * length)
        .flat_map(|row| row.iter().map(|x| x / rms(row)).collect::<Vec<_>>())
        .collect();
    assert_close("rms_norm of two", &tensor.rms_norm([channels, length], None, eps), &expected, 1e-12);
    for p in [1.0, 2.0] {
        let expected: Vec<f64> = rows(&x, length)
            .flat_map(|row| row.iter().map(|x| x / norm(row, p).max(40.0)).collect::<Vec<_>>())
            .collect();
        assert_close("normalize", &tensor.normalize(p, -1, 40.0), &expected, 1e-12);
    }
    let softmax: Vec<f64> = rows(&x, length)
        .flat_map(|row| {
            let sum = row.iter().map(|x| x.exp()).sum::<f64>().ln();
            row.iter().map(move |x| x - sum).collect::<Vec<_>>()
        })
        .collect();
    assert_close("log_softmax", &tensor.log_softmax(2), &softmax, 1e-13);
    let (y, other) = data(&[channels, length], 6);
    let expected: Vec<f64> = rows(&x, length)
        .enumerate()
        .map(|(i, row)| {
            let other = &y[i % channels * length..][..length];
            row.iter().zip(other).map(|(x, y)| x * y).sum::<f64>() / (norm(row, 2.0) * norm(other, 2.0))
        })
        .collect();
    assert_close("cosine_similarity", &tensor.cosine_similarity(&other, -1, 1e-8), &expected, 1e-12);
    assert_eq!(expected.len(), batch * channels);
}

fn all_norms(x: &Tensor, device: &Device) -> Vec<Output> {
    let dtype = x.dtype().unwrap();
    let unit = match dtype {
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        DType::F64 => 2f64.powi(-53),
        _ => 2f64.powi(-24),
    };
    let [_, channels, length] = SHAPE;
    let (weight, bias) =
        (floats(device, dtype, [channels], 1.0, 3), floats(device, dtype, [channels], 1.0, 4));
    let within = |name: &str, tensor: Tensor| near(name, tensor, 64.0 * unit, 64.0 * unit);
    vec![
        within("log_softmax", x.log_softmax(-1)),
        within("log_softmax of columns", x.log_softmax(0)),
        within("rms_norm", x.rms_norm([length], None, 1e-5)),
        within("group_norm", x.group_norm(3, Some(&weight), Some(&bias), 1e-5)),
        within("instance_norm", x.instance_norm(Some(&weight), None, 1e-5)),
        within("batch_norm", x.batch_norm(&bias, &weight.abs(), Some(&weight), Some(&bias), 1e-3)),
        within("normalize", x.normalize(2.0, 1, 1e-12)),
        within("local_response_norm", x.local_response_norm(3, 1.0, 0.75, 1.0)),
        within("cosine_similarity", x.cosine_similarity(&x.flip(2), 2, 1e-8)),
        within("norm 2", x.norm(2, 2.0)),
        within("norm 3", x.norm([0, 2], 3.0)),
        exact("norm inf", x.norm(0, f64::INFINITY)),
        within("logsumexp", x.logsumexp(1)),
        within("nansum", x.nansum(2)),
        within("nanmean", x.nanmean(..)),
        exact("count_nonzero", x.count_nonzero([1, 2])),
    ]
}

#[test]
fn norms_of_every_float() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        check_fused(&format!("norms of {dtype}"), |device| {
            all_norms(&floats(device, dtype, SHAPE, 2.0, 7), device)
        });
    }
    check("norms", |device| all_norms(&floats(device, DType::F32, SHAPE, 2.0, 8), device));
}

/// What a row is multiplied with, where vectors do not fit its length: computed once, before the loop, of as many turns as there are.
#[test]
fn factors_of_a_row_are_computed_before_its_elements() {
    let of = |dtype, shape: &[usize]| floats(&Device::cpu(), dtype, shape.to_vec(), 1.0, 1);
    let norm = |x: &Tensor, length| x.rms_norm([length], Some(&of(x.dtype().unwrap(), &[length])), 1e-5);
    let source = |y: Tensor| y.compile_for(&lazuli::Target::cuda("sm_90")).unwrap().source();
    for (dtype, length, turns) in [(DType::BF16, 50_257, 50), (DType::F32, 4097, 9), (DType::BF16, 33, 8)] {
        let source = source(norm(&of(dtype, &[256, length]), length));
        let loops: Vec<usize> = source.match_indices("for (unsigned turn").map(|(at, _)| at).collect();
        let roots: Vec<usize> = source.match_indices("rsqrtf(").map(|(at, _)| at).collect();
        assert!(loops.len() == 2 && roots.len() == 1 && roots[0] < loops[1], "{length}: {source}");
        assert_eq!(source.matches(&format!("turn < {turns}u")).count(), 2, "{length}: {source}");
    }
    let x = of(DType::F32, &[256, 4097]).layer_norm([4097], Some(&of(DType::F32, &[4097])), None, 1e-5);
    let source = source(x);
    assert!(source.contains("turn < 9u") && source.matches("rsqrtf(").count() == 1, "{source}");
    check_fused("factors of odd rows", |device| {
        let mut outputs = Vec::new();
        for length in [33, 1003, 4097] {
            let x = floats(device, DType::F32, [3, length], 1.0, length as u64);
            let weight = floats(device, DType::F32, [length], 1.0, 7);
            outputs.push(near("rms", x.rms_norm([length], Some(&weight), 1e-5), 1e-5, 1e-6));
            outputs.push(near("layer", x.layer_norm([length], Some(&weight), None, 1e-5), 1e-5, 1e-5));
            outputs.push(near("columns", x.t().softmax(0) * 2.0, 1e-5, 1e-6));
        }
        outputs
    });
}

#[test]
fn one_kernel_each() {
    for length in [7, 512, 16_384] {
        let x = Tensor::from_vec(vec![1.0f32; 4 * length], [2, 2, length]);
        let channel = Tensor::from_slice(&[1.0f32, 2.0], [2]);
        let gain = Tensor::from_vec(vec![1.0f32; length], [length]);
        let one = |name: &str, y: Tensor| {
            for target in [lazuli::Target::cpu(), lazuli::Target::cuda("sm_90")] {
                let program = y.compile_for(&target).unwrap();
                let kernels = program.kernels().len();
                assert_eq!(kernels, 1, "{name} of rows of {length}: {}", program.explain());
            }
        };
        one("softmax", x.softmax(-1));
        one("log_softmax", x.log_softmax(-1));
        one("layer_norm", x.layer_norm([length], Some(&gain), Some(&gain), 1e-5));
        one("rms_norm", x.rms_norm([length], Some(&gain), 1e-5));
        one("group_norm", x.group_norm(2, Some(&channel), Some(&channel), 1e-5));
        one("instance_norm", x.instance_norm(Some(&channel), Some(&channel), 1e-5));
        one("batch_norm", x.batch_norm(&channel, &channel, Some(&channel), Some(&channel), 1e-5));
        one("normalize", x.normalize(2.0, -1, 1e-12));
        one("logsumexp", x.logsumexp(-1));
        one("cosine_similarity", x.cosine_similarity(&x, -1, 1e-8));
        one("local_response_norm", x.local_response_norm(2, 1e-4, 0.75, 1.0));
        one("nanmean", x.nanmean(-1));
        one("norm", x.norm(-1, 2.0));
    }
}

/// A block of ConvNeXt with fewer channels than a vector has lanes: how many elements the lanes of its layer norm have is a
/// constant of ones and zeros, which gcc 12 stores as ones where it is stored as one integer.
#[test]
fn statistics_of_fewer_elements_than_lanes() {
    for channels in [10, 12, 14] {
        check_on_cpu(&format!("{channels} channels"), |device| {
            let numbers = |shape: &[usize], seed| floats(device, DType::F32, shape, 1.0, seed);
            let x = numbers(&[2, channels, 9, 8], 1);
            let kernel = numbers(&[channels, 1, 7, 7], 2) * 0.1;
            let depthwise = Conv2d::new().padding(3).groups(channels);
            let mixed = x.conv2d_with(&kernel, None, depthwise).permute([0, 2, 3, 1]);
            let normalised = mixed.layer_norm([channels], None, None, 1e-6);
            let wide = normalised.linear(numbers(&[2 * channels, channels], 3), None).gelu();
            let energy = wide.square().sum_keepdim([1, 2]).sqrt();
            let response = &energy / (energy.mean_keepdim(-1) + 1e-6);
            let narrow = (&wide * response + &wide).linear(numbers(&[channels, 2 * channels], 4), None);
            vec![near("block", &x + narrow.permute([0, 3, 1, 2]), 1e-4, 1e-4)]
        });
    }
}
