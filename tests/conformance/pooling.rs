//! Proves pooling right: kernels, strides, paddings, dilations, odd inputs, every dtype, NaN and infinities, and
//! pooling among other operations. Maxima are exact; means of small multiples of 1/4 are rounded once, or twice where
//! the window's size is no power of two.

use lazuli::{DType, Number, Pool2d, Tensor};

use crate::common::data::{floats, mixed, ordinary};
use crate::common::{Output, check, check_fused, devices, exact, near};

fn both(name: &str, x: &Tensor, pool: Pool2d) -> Vec<Output> {
    let dtype = x.dtype().unwrap();
    let mut outputs = vec![exact(format!("max {name}"), x.max_pool2d_with(pool))];
    if let Some(info) = dtype.finfo() {
        outputs.push(near(format!("mean {name}"), x.avg_pool2d_with(pool), info.eps, 1e-6));
    }
    outputs
}

fn pools() -> Vec<(&'static str, Pool2d)> {
    vec![
        ("1", Pool2d::new(1)),
        ("1 by 2", Pool2d::new(1).stride(2)),
        ("2", Pool2d::new(2)),
        ("2 by 1", Pool2d::new(2).stride(1)),
        ("2 padded", Pool2d::new(2).padding(1)),
        ("3", Pool2d::new(3)),
        ("3 by 1 padded", Pool2d::new(3).stride(1).padding(1)),
        ("3 by 2 padded", Pool2d::new(3).stride(2).padding(1)),
        ("3 dilated", Pool2d::new(3).stride(1).dilation(2)),
        ("3 dilated and padded", Pool2d::new(3).stride(2).padding(1).dilation((2, 1))),
        ("5", Pool2d::new(5).stride(2)),
        ("5 padded", Pool2d::new(5).stride((1, 3)).padding(2)),
        ("2x3", Pool2d::new((2, 3))),
        ("2x3 padded", Pool2d::new((2, 3)).stride((3, 1)).padding((1, 0))),
        ("6 by 1", Pool2d::new(6).stride(1)),
        ("7 by 1 padded", Pool2d::new(7).stride(1).padding(3)),
        ("7x6 by 2", Pool2d::new((7, 6)).stride(2)),
        ("6", Pool2d::new(6)),
        ("5x7 padded", Pool2d::new((5, 7)).padding(2)),
        ("9 by 2 padded", Pool2d::new(9).stride(2).padding(4)),
        ("10x12 by 3 padded", Pool2d::new((10, 12)).stride((1, 3)).padding((2, 3))),
        ("9x7 padded", Pool2d::new((9, 7)).stride(1).padding((1, 0))),
    ]
}

#[test]
fn windows_of_every_kind() {
    for (name, pool) in pools() {
        for shape in [&[2, 3, 13, 15][..], &[1, 2, 16, 16], &[7, 9]] {
            check_fused(&format!("pool {name} of {shape:?}"), |device| {
                let x = ordinary(device, DType::F32, shape, 3);
                let mut outputs = both("of data", &x, pool);
                // All elements below zero: padding must not win.
                outputs.extend(both("of what is below zero", &(&x - 100.0), pool));
                outputs
            });
        }
        check(&format!("pool {name}"), |device| {
            both("", &ordinary(device, DType::F32, [3, 11, 12], 4), pool)
        });
    }
}

#[test]
fn every_dtype() {
    for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool) {
        check(&format!("pool {dtype}"), |device| {
            let x = ordinary(device, dtype, [2, 9, 10], 5);
            let mut outputs = both("2", &x, Pool2d::new(2));
            outputs.extend(both("3 padded", &x, Pool2d::new(3).stride(2).padding(1)));
            // The least element is not less than the padding.
            let least = x.full_like(
                dtype.iinfo().map_or(Number::Float(f64::NEG_INFINITY), |info| Number::Int(info.min)),
            );
            outputs.push(exact("least", least.max_pool2d_with(Pool2d::new(3).stride(2).padding(1))));
            outputs
        });
    }
}

#[test]
fn special_values() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32, DType::U8] {
        check_fused(&format!("pool special {dtype}"), |device| {
            let x = mixed(device, dtype, [3, 12, 13], 0, 7);
            vec![
                exact("2", x.max_pool2d(2, 2)),
                exact("3 padded", x.max_pool2d_with(Pool2d::new(3).stride(1).padding(1))),
                exact("2x3", x.max_pool2d((2, 3), 1)),
            ]
        });
    }
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        check_fused(&format!("pool with {value}"), |device| {
            let x = ordinary(device, DType::F32, [9, 9], 6);
            let here = ordinary(device, DType::F32, [9, 9], 7).gt(5.0);
            let x = here.where_(value, &x);
            pools().into_iter().flat_map(|(name, pool)| both(name, &x, pool)).collect()
        });
    }
}

#[test]
fn nothing_to_pool() {
    check("pool nothing", |device| {
        let x = ordinary(device, DType::F32, [0, 3, 4, 4], 1);
        vec![exact("max", x.max_pool2d(2, 2)), exact("mean", x.avg_pool2d(2, 2))]
    });
}

#[test]
fn pooling_among_other_operations() {
    check("pipelines", |device| {
        let x = ordinary(device, DType::F32, [2, 3, 14, 17], 8);
        let scale = ordinary(device, DType::F32, [3, 1, 1], 9);
        let padded = Pool2d::new(3).stride(2).padding(1);
        let pooled = x.relu().max_pool2d_with(padded);
        vec![
            exact("relu", x.relu().max_pool2d(2, 2)),
            exact("relu padded", pooled.clone()),
            exact("scaled", (&x * &scale).max_pool2d(2, 2) + 1.0),
            exact("normalised after", &pooled - pooled.max_keepdim([-1, -2])),
            exact("sum after", pooled.sum([0, 2, 3])),
            exact("twice", x.max_pool2d(2, 2).max_pool2d(2, 1)),
            exact("of a flip", x.flip(3).max_pool2d(2, 2)),
            exact("of a transpose", x.transpose(2, 3).max_pool2d((3, 2), 2)),
            exact("channels last", x.permute([0, 2, 3, 1]).permute([0, 3, 1, 2]).max_pool2d(2, 2)),
            exact("the input too", x.relu()),
            exact("max against min", x.max_pool2d(2, 2) + (-&x).max_pool2d(2, 2)),
            near("mean of squares", x.square().avg_pool2d(3, 2), 1e-6, 1e-6),
            near("residual", x.avg_pool2d_with(Pool2d::new(3).stride(1).padding(1)) - &x, 1e-6, 1e-5),
        ]
    });
    check_fused("dear producers", |device| {
        let x = floats(device, DType::F32, [2, 12, 12], 3.0, 9);
        vec![
            near("gelu", x.gelu().max_pool2d(2, 2), 1e-5, 1e-6),
            near("overlapping", x.exp().sin().max_pool2d(3, 1), 1e-5, 1e-5),
            near("softmax", x.softmax(-1).avg_pool2d(2, 2), 1e-5, 1e-7),
        ]
    });
}

/// One axis after the other, as boxes and morphology are written.
#[test]
fn windows_of_windows() {
    for dtype in [DType::F32, DType::F16, DType::I32] {
        for (size, stride, padding) in [(3, 1, 1), (5, 1, 0), (5, 2, 2), (9, 1, 4), (11, 1, 0), (20, 1, 9)] {
            check_fused(&format!("{size} by {stride} of {dtype}, axis after axis"), |device| {
                let x = ordinary(device, dtype, [2, 26, 45], 10);
                let along = |axis: usize| {
                    let one = |n: usize, other: usize| if axis == 0 { (n, other) } else { (other, n) };
                    Pool2d::new(one(size, 1)).stride(one(stride, 1)).padding(one(padding, 0))
                };
                let (down, right) = (along(0), along(1));
                let mut outputs = vec![
                    exact("down, right", x.max_pool2d_with(down).max_pool2d_with(right)),
                    exact("right, down", x.max_pool2d_with(right).max_pool2d_with(down)),
                    exact("to and fro", (-x.max_pool2d_with(right)).max_pool2d_with(right)),
                    exact("used twice", {
                        let y = x.max_pool2d_with(down);
                        y.max_pool2d_with(right).max(2) + y.max(2)
                    }),
                    exact("then reduced", x.max_pool2d_with(down).max_pool2d_with(right).min([1, 2])),
                ];
                if let Some(info) = dtype.finfo() {
                    let mean = x.avg_pool2d_with(down).avg_pool2d_with(right);
                    let square = x.square().avg_pool2d_with(down).avg_pool2d_with(right);
                    outputs.push(near("mean", mean.clone(), 2.0 * info.eps, 1e-5));
                    outputs.push(near("variance", square - mean.square(), 16.0 * info.eps, 1e-3));
                }
                outputs
            });
        }
    }
}

/// As PyTorch pools `arange(16).reshape(4, 4)`.
#[test]
fn pooling_is_pytorchs() {
    for device in devices() {
        let x = Tensor::arange(0i32, 16, 1).to(&device).reshape([4, 4]).cast(DType::F32);
        let padded = Pool2d::new(3).stride(2).padding(1);
        assert_eq!(x.max_pool2d(2, 2).to_vec::<f32>().unwrap(), [5.0, 7.0, 13.0, 15.0]);
        assert_eq!(x.max_pool2d_with(padded).to_vec::<f32>().unwrap(), [5.0, 7.0, 13.0, 15.0]);
        assert_eq!(x.avg_pool2d(2, 2).to_vec::<f32>().unwrap(), [2.5, 4.5, 10.5, 12.5]);
        let sums = (x.avg_pool2d_with(padded) * 9.0).round().to_vec::<f32>().unwrap();
        assert_eq!(sums, [10.0, 24.0, 51.0, 90.0]);
    }
}

/// Positions of the largest elements, against a plain loop over the windows.
#[test]
fn positions_of_the_largest() {
    let (height, width) = (7, 6);
    let mut values: Vec<f32> = (0..height * width).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
    values[15] = f32::NAN;
    values[16] = f32::NAN;
    values[20..26].fill(f32::NEG_INFINITY);
    let mut expected = Vec::new();
    for top in (-1..height as isize - 1).step_by(2) {
        for left in (-1..width as isize - 1).step_by(2) {
            let mut best: Option<usize> = None;
            for (y, x) in (0..9).map(|n| (top + n / 3, left + n % 3)) {
                if y < 0 || x < 0 || y >= height as isize || x >= width as isize {
                    continue;
                }
                let at = y as usize * width + x as usize;
                // As PyTorch does: of several NaN the last stays.
                let is_better = |best: usize| values[at].is_nan() || values[at] > values[best];
                if best.is_none_or(is_better) {
                    best = Some(at);
                }
            }
            expected.push(best.unwrap() as i64);
        }
    }
    for device in crate::common::devices().into_iter().chain([lazuli::Device::interpreter()]) {
        let x = Tensor::from_slice(&values, [1, 1, height, width]).to(&device);
        let pool = Pool2d::new(3).stride(2).padding(1);
        let (value, index) = x.max_pool2d_with_indices(pool);
        lazuli::eval([&value, &index]).unwrap();
        assert_eq!(index.to_vec::<i64>().unwrap(), expected, "{device}");
        let plain = x.max_pool2d_with(pool).to_vec::<f32>().unwrap();
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        assert_eq!(bits(value.to_vec::<f32>().unwrap()), bits(plain), "{device}");
    }
}

#[test]
fn means_of_windows_are_one_kernel_line_by_line() {
    let pool = |size| Pool2d::new(size).stride(1).padding(size / 2);
    // Lines that are no whole vectors, whole ones, borders wider than what is inside, and windows beside those of others.
    for shape in [[2, 3, 28, 28], [1, 2, 16, 64], [3, 2, 5, 9], [2, 2, 7, 37]] {
        check_fused(&format!("pooled {shape:?}"), |device| {
            let x = mixed(device, DType::F32, shape, 0, 7);
            let usual = ordinary(device, DType::F32, shape, 8);
            let (largest, wide) = (x.max_pool2d_with(pool(3)), usual.max_pool2d_with(pool(5)));
            let mean = usual.avg_pool2d_with(pool(3));
            vec![
                exact("largest of all", x.max_pool2d_with(Pool2d::new(3).stride(1)).max([2, 3])),
                exact("largest of padded", largest.max([2, 3])),
                exact("where it is", usual.max_pool2d_with(pool(3)).argmax([2, 3])),
                near("mean of all", wide.mean([2, 3]), f32::EPSILON.into(), 1e-5),
                exact("windows stored beside", wide),
                near("deviation", mean.std([2, 3], 0), f32::EPSILON.into(), 1e-5),
                near("normalised", mean.softmax(3), f32::EPSILON.into(), 1e-5),
            ]
        });
    }
}

#[test]
fn padded_windows_have_loops_without_conditions_in_rows() {
    let source = |width: usize| {
        let x = Tensor::from_vec(vec![0.5f32; 192 * 28 * width], [1, 192, 28, width]);
        let y = x.max_pool2d_with(Pool2d::new(3).stride(1).padding(1));
        let program = lazuli::compile_for([&y.mean([2, 3]), &y], &lazuli::Target::cpu()).unwrap();
        assert_eq!(program.kernels().len(), 1, "{}", program.source());
        program.source().to_string()
    };
    // Where the window is inside, vectors are read as they are; short lines are few vectors, all of them masked.
    let inside = |line: &str| line.contains("= lz_load_f32(in0") && !line.contains('?');
    for (width, has_inside) in [(28, false), (100, true)] {
        let source = source(width);
        assert!(!source.contains(&format!(" % {width}")), "lanes divide their positions:\n{source}");
        assert_eq!(source.lines().any(inside), has_inside, "{source}");
    }
}

/// Neighbouring windows share what they read, but not loops: within those of others each would be gone through for each position.
#[test]
fn windows_of_windows_are_kernels_of_their_own() {
    for (size, padding) in [(3, 1), (3, 0), (5, 2)] {
        let pool = Pool2d::new(size).stride(1).padding(padding);
        let x = Tensor::from_vec(vec![0.5f32; 64 * 64], [1, 1, 64, 64]);
        let y = (x.max_pool2d_with(pool) * 0.5).max_pool2d_with(pool);
        let program = y.compile_for(&lazuli::Target::cpu()).unwrap();
        assert_eq!(program.kernels().len(), 2, "{}", program.source());
    }
}

/// What there is of each channel is consecutive along the channels, but it is little beside the image.
#[test]
fn normalised_channels_are_pooled_along_lines() {
    let x = Tensor::from_vec(vec![0.5f32; 16 * 32 * 28 * 28], [16, 32, 28, 28]);
    let of_channels = |value: f32| Tensor::from_vec(vec![value; 32], [32, 1, 1]);
    let y = ((x - of_channels(0.25)) * of_channels(2.0)).relu().max_pool2d(2, 2);
    let program = y.compile_for(&lazuli::Target::cpu()).unwrap();
    assert_eq!(program.kernels().len(), 1);
    assert!(program.source().contains("max_pool2d_f32: pointwise("), "{}", program.source());
}
