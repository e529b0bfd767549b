//! Proves pooling of every kind and interpolation right against plain loops, and on every device against the
//! interpreter.

use lazuli::{Conv2d, DType, Device, Interpolation, Pool, Pool1d, Pool2d, Pool3d, Tensor, explain};

use crate::common::data::{floats, mixed, ordinary, units};
use crate::common::{Output, check, check_fused, check_on_cpu, exact, near, tolerance};

/// A pooling as the reference sees it, of up to three dimensions.
#[derive(Clone, Copy)]
struct Spec {
    kernel: [usize; 3],
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
    ceil: bool,
    count_padding: bool,
    divisor: Option<usize>,
}

impl Spec {
    fn new(kernel: [usize; 3], stride: [usize; 3], padding: [usize; 3]) -> Spec {
        Spec { kernel, stride, padding, dilation: [1; 3], ceil: false, count_padding: true, divisor: None }
    }

    fn pool<const N: usize>(&self) -> Pool<N> {
        let last = |all: [usize; 3]| -> [usize; N] { std::array::from_fn(|d| all[3 - N + d]) };
        let pool = Pool::new(last(self.kernel)).stride(last(self.stride)).padding(last(self.padding));
        let pool =
            pool.dilation(last(self.dilation)).ceil_mode(self.ceil).count_include_pad(self.count_padding);
        match self.divisor {
            Some(divisor) => pool.divisor_override(divisor),
            None => pool,
        }
    }

    /// PyTorch's `pooling_output_shape`.
    fn count(&self, d: usize, extent: usize) -> usize {
        let (k, s, p) = (self.kernel[d] as isize, self.stride[d] as isize, self.padding[d] as isize);
        let span = extent as isize + 2 * p - self.dilation[d] as isize * (k - 1) - 1;
        let mut count = (span + if self.ceil { s - 1 } else { 0 }).div_euclid(s) + 1;
        if self.ceil && (count - 1) * s >= extent as isize + p {
            count -= 1;
        }
        count as usize
    }

    /// Maximum and mean of each window of `[planes, depth, height, width]`.
    fn loops(&self, x: &[f64], [planes, extents @ ..]: [usize; 4]) -> (Vec<f64>, Vec<f64>) {
        let counts: [usize; 3] = std::array::from_fn(|d| self.count(d, extents[d]));
        let (mut largest, mut means) = (Vec::new(), Vec::new());
        let volume: usize = extents.iter().product();
        for i in 0..planes * counts.iter().product::<usize>() {
            let plane = i / counts.iter().product::<usize>();
            let o = [i / (counts[1] * counts[2]) % counts[0], i / counts[2] % counts[1], i % counts[2]];
            let (mut most, mut sum, mut number) = (f64::NEG_INFINITY, 0.0, 0usize);
            for j in 0..self.kernel.iter().product() {
                let k = [
                    j / (self.kernel[1] * self.kernel[2]),
                    j / self.kernel[2] % self.kernel[1],
                    j % self.kernel[2],
                ];
                let at: [isize; 3] = std::array::from_fn(|d| {
                    (o[d] * self.stride[d] + k[d] * self.dilation[d]) as isize - self.padding[d] as isize
                });
                let inside = (0..3).all(|d| (0..extents[d] as isize).contains(&at[d]));
                let in_padding = (0..3).all(|d| at[d] < (extents[d] + self.padding[d]) as isize);
                if inside {
                    let at = at.map(|at| at as usize);
                    let value = x[plane * volume + (at[0] * extents[1] + at[1]) * extents[2] + at[2]];
                    most = if value.is_nan() || most.is_nan() { f64::NAN } else { most.max(value) };
                    sum += value;
                }
                number += usize::from(inside || self.count_padding && in_padding);
            }
            largest.push(most);
            means.push(sum / self.divisor.unwrap_or(number) as f64);
        }
        (largest, means)
    }
}

#[track_caller]
fn assert_close(what: &str, result: &Tensor, expected: &[f64]) {
    let values = result.cast(DType::F64).to_vec::<f64>().unwrap();
    assert_eq!(values.len(), expected.len(), "{what}: {:?}", result.shape());
    for (i, (&got, &wanted)) in values.iter().zip(expected).enumerate() {
        let same = got == wanted || got.is_nan() && wanted.is_nan();
        assert!(
            same || (got - wanted).abs() <= 1e-12 * (1.0 + wanted.abs()),
            "{what}: [{i}] is {got}, not {wanted}"
        );
    }
}

fn specs() -> Vec<(&'static str, Spec)> {
    let plain = Spec::new([2, 3, 2], [2, 2, 1], [0, 0, 0]);
    let padded = Spec::new([3, 3, 4], [2, 2, 3], [1, 1, 2]);
    vec![
        ("plain", plain),
        ("padded", padded),
        ("dilated", Spec { dilation: [1, 2, 2], ..padded }),
        ("ceil", Spec { ceil: true, ..plain }),
        ("ceil padded", Spec { ceil: true, ..padded }),
        ("ceil wide", Spec { ceil: true, ..Spec::new([2, 2, 2], [3, 5, 4], [1, 1, 1]) }),
        ("not counted", Spec { count_padding: false, ..padded }),
        ("not counted, ceil", Spec { count_padding: false, ceil: true, ..padded }),
        ("not counted, dilated", Spec { count_padding: false, dilation: [2, 2, 1], ..padded }),
        ("divisor", Spec { divisor: Some(7), ceil: true, ..padded }),
    ]
}

#[test]
fn pools_against_loops() {
    for (name, spec) in specs() {
        for (shape, special) in [([2, 5, 7, 9], false), ([1, 4, 6, 8], true), ([3, 3, 4, 11], false)] {
            let mut data: Vec<f64> = units(shape.iter().product(), 5).map(|x| x * 9.0 - 20.0).collect();
            if special {
                (data[3], data[50], data[99]) = (f64::NAN, f64::INFINITY, f64::NEG_INFINITY);
            }
            let x = Tensor::from_slice(&data, shape);
            let (most, mean) = spec.loops(&data, shape);
            assert_close(&format!("max 3d {name}"), &x.max_pool3d_with(spec.pool()), &most);
            if !special {
                assert_close(&format!("mean 3d {name}"), &x.avg_pool3d_with(spec.pool()), &mean);
            }
            // Planes of the first dimensions.
            let flat = [shape[0] * shape[1], 1, shape[2], shape[3]];
            let one = |mut spec: Spec, count: usize| {
                (0..count).for_each(|d| {
                    (spec.kernel[d], spec.stride[d], spec.padding[d], spec.dilation[d]) = (1, 1, 0, 1);
                });
                spec
            };
            let (most, mean) = one(spec, 1).loops(&data, flat);
            assert_close(&format!("max 2d {name}"), &x.max_pool2d_with(spec.pool()), &most);
            if !special {
                assert_close(&format!("mean 2d {name}"), &x.avg_pool2d_with(spec.pool()), &mean);
            }
            let rows = [shape[0] * shape[1] * shape[2], 1, 1, shape[3]];
            let (most, mean) = one(spec, 2).loops(&data, rows);
            assert_close(&format!("max 1d {name}"), &x.max_pool1d_with(spec.pool()), &most);
            if !special {
                assert_close(&format!("mean 1d {name}"), &x.avg_pool1d_with(spec.pool()), &mean);
            }
        }
    }
}

/// Start and end of the windows that divide an extent.
fn parts(extent: usize, count: usize) -> Vec<std::ops::Range<usize>> {
    (0..count).map(|i| i * extent / count..((i + 1) * extent).div_ceil(count)).collect()
}

#[test]
fn adaptive_pools_against_loops() {
    let [planes, height, width] = [3, 7, 10];
    let data: Vec<f64> = units(planes * height * width, 6).map(|x| x * 9.0 - 20.0).collect();
    let x = Tensor::from_slice(&data, [planes, height, width]);
    for (rows, columns) in [(1, 1), (7, 10), (3, 4), (7, 5), (2, 10), (9, 3), (20, 30), (1, 7), (5, 6)] {
        let (mut most, mut means) = (Vec::new(), Vec::new());
        for plane in 0..planes {
            for row in parts(height, rows) {
                for column in parts(width, columns) {
                    let at = |r: usize, c: usize| data[(plane * height + r) * width + c];
                    let window: Vec<f64> =
                        row.clone().flat_map(|r| column.clone().map(move |c| at(r, c))).collect();
                    most.push(window.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                    means.push(window.iter().sum::<f64>() / window.len() as f64);
                }
            }
        }
        let what = format!("{rows}×{columns}");
        assert_close(&format!("max {what}"), &x.adaptive_max_pool2d((rows, columns)), &most);
        assert_close(&format!("mean {what}"), &x.adaptive_avg_pool2d((rows, columns)), &means);
    }
    let line = x.adaptive_avg_pool1d(4).to_vec::<f64>().unwrap();
    let plane = x.adaptive_avg_pool2d((height, 4)).to_vec::<f64>().unwrap();
    assert_close("1d", &Tensor::from_slice(&line, [line.len()]), &plane);
    assert_eq!(x.adaptive_max_pool3d((2, 3, 4)).shape().unwrap().to_vec(), [2, 3, 4]);
}

#[test]
fn power_pools_against_loops() {
    let data: Vec<f64> = units(60, 7).map(|x| x * 3.0).collect();
    let x = Tensor::from_slice(&data, [5, 12]);
    for p in [1.0, 2.0, 3.0, 2.5] {
        let sums = data.chunks(12).flat_map(|row| {
            (0..5).map(move |o| row[2 * o..2 * o + 4].iter().map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p))
        });
        assert_close(&format!("p = {p}"), &x.lp_pool1d(p, 4, 2), &sums.collect::<Vec<_>>());
    }
    let squares = x.square().avg_pool2d(2, 1).to_vec::<f64>().unwrap();
    let norms: Vec<f64> = squares.iter().map(|mean| (mean * 4.0).sqrt()).collect();
    assert_close("2d", &x.lp_pool2d(2.0, 2, 1), &norms);
    assert_eq!(x.reshape([5, 3, 4]).lp_pool3d(2.0, 2, 2).shape().unwrap().to_vec(), [2, 1, 2]);
    assert_eq!(
        x.lp_pool1d(f64::INFINITY, 4, 2).to_vec::<f64>().unwrap(),
        x.max_pool1d(4, 2).to_vec::<f64>().unwrap()
    );
}

/// The neighbours of position i and the weight of the higher one, as PyTorch has them.
fn source(i: usize, extent: usize, scale: f64, size: usize, align: bool) -> (usize, usize, f64) {
    let at = match align {
        true if size == 1 => 0.0,
        true => i as f64 * (extent - 1) as f64 / (size - 1) as f64,
        false => ((i as f64 + 0.5) / scale - 0.5).max(0.0),
    };
    let low = (at as usize).min(extent - 1);
    (low, (low + 1).min(extent - 1), at - low as f64)
}

#[test]
fn interpolation_against_loops() {
    let [planes, height, width] = [2, 5, 7];
    let data: Vec<f64> = units(planes * height * width, 8).map(|x| x * 9.0).collect();
    let x = Tensor::from_slice(&data, [planes, height, width]);
    let at = |plane: usize, r: usize, c: usize| data[(plane * height + r) * width + c];
    let each = |rows: usize, columns: usize, f: &dyn Fn(usize, usize, usize) -> f64| -> Vec<f64> {
        let all = (0..planes).flat_map(|p| (0..rows).flat_map(move |r| (0..columns).map(move |c| (p, r, c))));
        all.map(|(p, r, c)| f(p, r, c)).collect()
    };
    for (rows, columns) in [(5, 7), (10, 14), (15, 7), (3, 4), (1, 1), (8, 3), (13, 29), (2, 1), (5, 100)] {
        let what = format!("{rows}×{columns}");
        let nearest = each(rows, columns, &|p, r, c| at(p, r * height / rows, c * width / columns));
        assert_close(
            &format!("nearest {what}"),
            &x.interpolate([rows, columns], Interpolation::Nearest),
            &nearest,
        );
        let centre = |i: usize, extent: usize, size: usize| (2 * i + 1) * extent / (2 * size);
        let nearest =
            each(rows, columns, &|p, r, c| at(p, centre(r, height, rows), centre(c, width, columns)));
        let exact = x.interpolate([rows, columns], Interpolation::NearestExact);
        assert_close(&format!("nearest exact {what}"), &exact, &nearest);
        for align in [false, true] {
            let linear = each(rows, columns, &|p, r, c| {
                let (r0, r1, v) = source(r, height, rows as f64 / height as f64, rows, align);
                let (c0, c1, w) = source(c, width, columns as f64 / width as f64, columns, align);
                let row = |r: usize| at(p, r, c0) * (1.0 - w) + at(p, r, c1) * w;
                row(r0) * (1.0 - v) + row(r1) * v
            });
            let result = x.interpolate([rows, columns], Interpolation::Linear { align_corners: align });
            assert_close(&format!("linear {what}, align {align}"), &result, &linear);
            let plan = result.explain().unwrap();
            assert!(plan.kernels() <= 1, "linear {what}: {plan}");
        }
    }
    for factor in [2.0, 0.5, 1.7, 3.0, 0.3, 1.0 / 3.0] {
        let columns = (width as f64 * factor).floor() as usize;
        let linear = each(height, columns, &|p, r, c| {
            let (c0, c1, w) = source(c, width, factor, columns, false);
            at(p, r, c0) * (1.0 - w) + at(p, r, c1) * w
        });
        let result = x.interpolate_scale(&[factor], Interpolation::Linear { align_corners: false });
        assert_close(&format!("linear by {factor}"), &result, &linear);
        let nearest =
            each(height, columns, &|p, r, c| at(p, r, ((c as f64 / factor + 1e-9) as usize).min(width - 1)));
        let result = x.interpolate_scale(&[factor], Interpolation::Nearest);
        assert_close(&format!("nearest by {factor}"), &result, &nearest);
    }
    let cube = x.interpolate([4, 10, 14], Interpolation::Linear { align_corners: true });
    assert_eq!(cube.shape().unwrap().to_vec(), [4, 10, 14]);
    let ends: Vec<f64> = cube.to_vec::<f64>().unwrap();
    assert!((ends[0] - data[0]).abs() < 1e-12 && (ends[4 * 140 - 1] - data[69]).abs() < 1e-12);
}

/// Infinities stay where they are at the edges: the neighbour beyond is no neighbour.
#[test]
fn edges_have_one_neighbour() {
    let x = Tensor::from_slice(&[f32::INFINITY, 1.0, f32::NAN], [3]);
    let y = x.interpolate([6], Interpolation::Linear { align_corners: false }).to_vec::<f32>().unwrap();
    assert_eq!(y[..3], [f32::INFINITY; 3]);
    assert!(y[3..].iter().all(|x| x.is_nan()), "{y:?}");
}

fn all(x: &Tensor) -> Vec<Output> {
    let dtype = x.dtype().unwrap();
    let eps = match dtype {
        DType::BF16 => 2f64.powi(-7),
        DType::F16 => 2f64.powi(-10),
        DType::F64 => 2f64.powi(-52),
        _ => 2f64.powi(-23),
    };
    let close = |name: &str, y: Tensor| near(name, y, 4.0 * eps, 8.0 * eps);
    let ceil = Pool2d::new(3).stride(2).padding(1).ceil_mode(true);
    let mut outputs = vec![
        exact("nearest", x.interpolate([5, 13], Interpolation::Nearest)),
        exact("nearest exact", x.interpolate([20, 4], Interpolation::NearestExact)),
        exact("twice", x.interpolate_scale(&[2.0, 2.0], Interpolation::Nearest)),
        exact("half", x.interpolate_scale(&[0.5], Interpolation::Nearest)),
    ];
    if dtype != DType::Bool {
        outputs.extend([
            exact("max 1d", x.max_pool1d_with(Pool1d::new(3).padding(1))),
            exact("max 3d", x.max_pool3d_with(Pool3d::new((2, 3, 3)).stride(2).padding((1, 1, 1)))),
            exact("max ceil", x.max_pool2d_with(ceil)),
            exact("max adaptive", x.adaptive_max_pool2d((4, 7))),
            exact("max adaptive even", x.adaptive_max_pool2d((5, 2))),
            exact("channels last", x.permute([1, 2, 0]).movedim(-1, 0).max_pool2d_with(ceil)),
        ]);
    }
    if dtype.is_float() {
        outputs.extend([
            close("mean 1d", x.avg_pool1d(3, 2)),
            close("mean 3d", x.avg_pool3d(2, 1)),
            close("mean ceil", x.avg_pool2d_with(ceil)),
            close("mean not counted", x.avg_pool2d_with(ceil.count_include_pad(false))),
            close("mean adaptive", x.adaptive_avg_pool2d((4, 7))),
            close("mean of all", x.adaptive_avg_pool2d(1)),
            close("lp", x.lp_pool2d(2.0, 3, 2)),
            close("bilinear up", x.interpolate([17, 30], Interpolation::Linear { align_corners: false })),
            close("bilinear down", x.interpolate([4, 5], Interpolation::Linear { align_corners: true })),
        ]);
    }
    outputs
}

/// Attention of chunks to their neighbours, beyond the ends of which zeros lie: the weights are softmaxes of the windows that they
/// are weights of, so that a position's border is not that of all positions that it was divided by.
#[test]
fn windows_weighted_by_softmaxes_of_themselves() {
    for (heads, chunks, width, features) in [(2, 3, 2, 4), (1, 1, 2, 4), (3, 4, 2, 20), (2, 5, 3, 16)] {
        check_on_cpu(&format!("{heads} heads, {chunks} chunks of {width}, {features} features"), |device| {
            let [q, k, v] = [1, 2, 3]
                .map(|seed| floats(device, DType::F32, [heads, chunks * width, features], 2.0, seed));
            let border = [(0, 0), (width as isize, width as isize), (0, 0)];
            let windows = |x: &Tensor| x.pad(border, 0.0).unfold(1, 3 * width, width);
            let scores = q.reshape([heads, chunks, width, features]).matmul(windows(&k)) * 0.3;
            let at =
                Tensor::arange(0i64, chunks as i64, 1).to(device).unsqueeze(1) * width as i64 - width as i64;
            let at = at + Tensor::arange(0i64, 3 * width as i64, 1).to(device);
            let is_there = at.ge(0).logical_and(at.lt((chunks * width) as i64)).unsqueeze(1);
            let weights = is_there.where_(&scores, -1e9).softmax(-1);
            let all = scores.softmax(-1).matmul(windows(&v).transpose(2, 3));
            vec![
                near("masked", weights.matmul(windows(&v).transpose(2, 3)), 1e-5, 1e-5),
                near("all", all, 1e-5, 1e-5),
            ]
        });
    }
}

/// Enlarged images are never stored, however many channels are reduced of them: what neighbours read twice is read in lanes.
#[test]
fn channels_of_enlarged_images() {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        let t = tolerance(dtype);
        for (channels, side) in [(1, 9), (8, 20), (9, 16), (16, 33), (64, 12), (65, 17), (130, 24)] {
            check_on_cpu(&format!("{dtype} {channels} channels of {side} squared"), |device| {
                let x = floats(device, dtype, [2, channels, side, side], 2.0, 3);
                let sizes = [[2 * side, 2 * side], [3 * side, 2 * side + 1]];
                let of_size = |size: [usize; 2]| {
                    let y = x.interpolate(size, Interpolation::Linear { align_corners: false });
                    let nearest = x.interpolate(size, Interpolation::Nearest);
                    [
                        near("mean", y.mean(1), t, t),
                        near("largest", y.max(1), t, t),
                        near("norm", &nearest / (nearest.square().sum_keepdim(1) + 1.0).sqrt(), t, t),
                        exact("smallest", nearest.min(1)),
                    ]
                };
                sizes.into_iter().flat_map(of_size).collect()
            });
        }
    }
    let kernels = |shape: [usize; 4]| {
        let x = floats(&Device::cpu(), DType::F32, shape, 2.0, 1);
        let y = x.interpolate([2 * shape[2], 2 * shape[3]], Interpolation::Linear { align_corners: false });
        explain([&y.mean(1), &y.max(1)]).unwrap().kernels()
    };
    assert_eq!([[8, 16, 128, 128], [4, 128, 64, 64]].map(kernels), [1, 1]);
}

/// What is left of a pool, alone and beside the pool: rows combine the windows of some elements before they go along them.
fn of_pools(x: &Tensor, pool: Pool2d) -> Vec<Output> {
    let most = x.max_pool2d_with(pool);
    let size = most.shape().unwrap()[3];
    let own = x.narrow(2, 0, most.shape().unwrap()[2]).narrow(3, 0, size);
    let differs = most.ne(&own);
    let mut outputs = vec![
        exact("largest", most.max(..)),
        exact("where", most.argmax(..)),
        exact("largest of rows", (&most - &own).max(-1)),
        exact("any", differs.any(..)),
        exact("differs, any", differs.any([2, 3])),
        exact("differs", differs),
    ];
    if x.dtype().unwrap().is_float() {
        let mean = x.avg_pool2d_with(pool);
        // Means of 16 bits are rounded to these where they are stored.
        let tolerance = if x.dtype().unwrap().size() == 2 { 1e-2 } else { 1e-4 };
        let near = |name: &str, x: Tensor| near(name, x.cast(DType::F32), tolerance, tolerance);
        outputs.extend([
            near("mean", mean.cast(DType::F32).mean(..)),
            near("squares of rows", mean.cast(DType::F32).square().sum(-1)),
            near("variance", mean.cast(DType::F32).var([2, 3], 0)),
            near("tan", (most.cast(DType::F32) * 0.1).tan().sum([2, 3])),
            near("softmax", mean.cast(DType::F32).softmax(-1)),
            near("shifted", &mean - mean.mean_keepdim([2, 3])),
        ]);
    }
    outputs
}

#[test]
fn windows_within_rows() {
    let pools = [
        ("3 padded", Pool2d::new(3).stride(1).padding(1)),
        ("3", Pool2d::new(3).stride(1)),
        ("2", Pool2d::new(2).stride(1)),
        ("5x3 padded", Pool2d::new((5, 3)).stride(1).padding((2, 1))),
        ("3x11 padded", Pool2d::new((3, 11)).stride(1).padding((1, 5))),
        ("3 by 2 padded", Pool2d::new(3).stride((1, 2)).padding(1)),
        ("3 dilated", Pool2d::new(3).stride(1).dilation(2)),
    ];
    // Short lines, those of one stretch, of several, and of several stretches and parts.
    let shapes = [[2, 3, 12, 13], [1, 1, 20, 40], [1, 2, 9, 700], [1, 1, 300, 260]];
    for (number, (name, pool)) in pools.into_iter().enumerate() {
        for shape in [shapes[number % 4], shapes[(number + 2) % 4]] {
            check_on_cpu(&format!("rows of windows {name} of {shape:?}"), |device| {
                of_pools(&ordinary(device, DType::F32, shape, 3), pool)
            });
        }
    }
    for dtype in [DType::F16, DType::BF16, DType::F64, DType::U8, DType::I32, DType::I64] {
        check_fused(&format!("rows of windows of {dtype}"), |device| {
            of_pools(&ordinary(device, dtype, [1, 2, 10, 150], 3), Pool2d::new(3).stride(1).padding(1))
        });
    }
    check_on_cpu("rows of windows of truths, until nothing changes", |device| {
        let (x, may) =
            (ordinary(device, DType::F32, [70, 150], 3), ordinary(device, DType::F32, [70, 150], 4));
        let (x, may) = (x.gt(1.0), may.gt(-1.0));
        let pool = Pool2d::new(3).stride(1).padding(1);
        let grown = x.cast(DType::F32).unsqueeze(0).max_pool2d_with(pool).squeeze(0).gt(0.0) & may;
        vec![exact("changed", grown.ne(&x).any(..)), exact("grown", grown)]
    });
}

#[test]
fn windows_of_every_dtype() {
    for dtype in DType::ALL {
        check_fused(&format!("windows of {dtype}"), |device| all(&ordinary(device, dtype, [3, 10, 12], 3)));
    }
    check("windows", |device: &Device| all(&(ordinary(device, DType::F32, [3, 10, 12], 4) + 0.5)));
    check_fused("windows of special values", |device| {
        let x = mixed(device, DType::F32, [3, 10, 12], 3, 7);
        all(&x).into_iter().take(10).collect()
    });
}

#[test]
fn rows_that_their_quotients_make_short() {
    check_on_cpu("repeated elements", |device| {
        let sums = (2..=40).flat_map(|n| {
            let x = floats(device, DType::F32, [n], 2.0, 3).repeat_interleave(2, 0);
            [near("sum", x.sum(..), 1e-5, 1e-5), exact("largest", x.max(..))]
        });
        sums.collect()
    });
    check_on_cpu("windows of images in another order", |device| {
        let padded = Conv2d::new().padding(1);
        let x = floats(device, DType::F32, [1, 8, 20, 24], 2.0, 3);
        let shuffled = x.pixel_shuffle(2).unfold2d(3, padded);
        let turned = x.transpose(2, 3).unfold2d(3, padded);
        vec![
            near("shuffled", shuffled.sum(1), 1e-5, 1e-5),
            exact("shuffled, largest", shuffled.max(1)),
            near("turned", turned.sum(1), 1e-5, 1e-5),
            near("turned, of two", turned.unfold(2, 2, 1).sum([1, 3]), 1e-5, 1e-5),
        ]
    });
}

/// Neighbours that lie far apart in memory, and an inner sum of each: rows all read the same, which a block lays out.
#[test]
fn windows_of_sums_of_what_all_rows_read() {
    for (count, width) in [(24, 5), (70, 7), (33, 9)] {
        check_on_cpu(&format!("{count} lines of {width}"), |device| {
            let x = ordinary(device, DType::F32, [count, width], 1);
            let pairs = (x.unsqueeze(1).minimum(x.unsqueeze(0))).max(2).neg();
            let both = (x.unsqueeze(1) * x.unsqueeze(0)).abs().min(2);
            vec![
                exact("of two", pairs.unfold(1, 2, 1).sum(2)),
                exact("of three in steps", pairs.unfold(1, 3, 2).max(2)),
                exact("of four", both.unfold(1, 4, 1).max(2)),
            ]
        });
    }
}
