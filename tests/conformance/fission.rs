//! What the CPU computes in loops of its own, of some elements at a time, and rows of few elements, tiles of which it
//! transposes.

use lazuli::{DType, Device, Fusion, Pool2d, Tensor};

use crate::common::data::{mixed, ordinary, units};
use crate::common::{check_on_cpu, exact, near};

fn floats(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    let elements: Vec<f32> = units(shape.iter().product(), seed).map(|x| 2.0 * x as f32).collect();
    Tensor::from_vec(elements, shape.to_vec()).to(device)
}

/// The values bit by bit: those of one kernel beside those of a kernel an operation.
fn check_bits(name: &str, results: impl Fn(&Device) -> Vec<Tensor>) {
    let device = Device::cpu();
    let bits = |fusion: Fusion| {
        lazuli::with_fusion(fusion, || {
            let results = results(&device);
            lazuli::eval(&results).unwrap();
            let bits = |y: &Tensor| {
                y.cast(DType::F64).to_vec::<f64>().unwrap().iter().map(|x| x.to_bits()).collect()
            };
            results.iter().map(bits).collect::<Vec<Vec<u64>>>()
        })
    };
    assert!(bits(Fusion::On) == bits(Fusion::Off), "{name}");
}

/// Chains that are divided: lengths on both sides of a stretch, several results at several depths, conditions that are left
/// to later loops, reversed reads beside bytes.
#[test]
fn long_chains() {
    for (rows, length) in [(1, 63), (3, 255), (2, 257), (2, 600), (2, 0)] {
        let results = |device: &Device| {
            let x = floats(device, &[rows, length], 1);
            let early = x.exp().sin();
            let is_large = early.gt(0.5);
            let late = (&early.tanh() * 0.5).erf().exp();
            let chosen = is_large.where_(&late, late.log1p().sigmoid());
            let reversed = is_large.where_(x.flip(1).tanh().exp().sin(), x.sin().exp());
            vec![late, early, is_large, chosen, reversed]
        };
        check_bits(&format!("chains of {rows} × {length}"), results);
        check_on_cpu(&format!("chains of {rows} × {length}"), |device| {
            results(device).into_iter().map(|y| near("chain", y.cast(DType::F32), 1e-5, 1e-5)).collect()
        });
    }
    let specials = |device: &Device| {
        let x = mixed(device, DType::F32, [300], 0, 1);
        vec![x.tanh().exp().log1p().sqrt().pow(1.5), (x.square() + 1e-4).pow(0.75).exp().tanh()]
    };
    check_bits("chains of special values", specials);
    check_on_cpu("chains of special values", |device| {
        specials(device).into_iter().map(|y| near("chain", y, 1e-5, 1e-6)).collect()
    });
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        check_on_cpu(&format!("chains of {dtype}"), |device| {
            let x = ordinary(device, dtype, [2, 300], 1);
            vec![near("chain", (&x * 0.1).exp().tanh().sin().log1p().sqrt(), 2e-2, 2e-2)]
        });
    }
}

/// Numbers of 64 bits have loops of their own beside costly ones of 32: before them, after them, both, compared with, and
/// stored.
#[test]
fn wide_numbers_beside_costly_ones() {
    let results = |device: &Device, shape: [usize; 2]| {
        let x = floats(device, &shape, 1);
        let labels = (floats(device, &shape, 2) * 3.0).cast(DType::I64);
        let levels = ((x.abs() * 255.0 + 1.0).log() * 20.0).floor().cast(DType::I64);
        let again = (levels.cast(DType::F32) / 127.5 - 1.0).exp();
        let chosen = labels.eq(1).where_(again.tanh(), (&x + labels.cast(DType::F32)).exp());
        let doubles = (x.sin().cast(DType::F64) * 3.0 + 1.0).cast(DType::F32).exp().tanh();
        vec![again, levels % 7, chosen, doubles, labels * 2]
    };
    for shape in [[1, 63], [3, 255], [2, 257], [1, 600], [2, 0]] {
        check_bits(&format!("wide numbers of {shape:?}"), |device| results(device, shape));
        check_on_cpu(&format!("wide numbers of {shape:?}"), |device| {
            let cast = |y: Tensor| near("wide", y.cast(DType::F32), 1e-5, 1e-5);
            results(device, shape).into_iter().map(cast).collect()
        });
    }
    let x = floats(&Device::cpu(), &[4, 1000], 1);
    let levels = (x.exp() * 20.0).floor().cast(DType::I64);
    let results = [(levels.cast(DType::F32) / 7.0).exp(), levels];
    let text = lazuli::compile_for(&results, &lazuli::Target::cpu()).unwrap().source();
    assert!(text.contains("lz_exp_f32v(") && !text.contains("lz_exp_f32_half("), "{text}");
}

/// A result that is written over what an earlier loop has read, and a later one reads again.
#[test]
fn chains_over_their_inputs() {
    let x = || {
        let elements: Vec<f32> = units(1 << 19, 3).map(|x| x as f32).collect();
        Tensor::from_vec(elements, [1 << 19])
    };
    let results = |x: &Tensor| [x.exp().tanh().sin().exp(), x * 2.0, x.tanh().exp().sin() + x];
    let apart = lazuli::with_fusion(Fusion::Off, || {
        results(&x().to(&Device::cpu())).map(|y| y.to_vec::<f32>().unwrap())
    });
    let input = x().to(&Device::cpu());
    input.eval().unwrap();
    let own = results(&input);
    drop(input);
    lazuli::eval(&own).unwrap();
    for (own, apart) in own.iter().zip(apart) {
        assert!(own.to_vec::<f32>().unwrap() == apart, "results over inputs");
    }
}

/// Rows that lanes divide, and others; tails of groups; columns.
#[test]
fn costly_elements_of_rows() {
    for (rows, length) in [(3, 64), (2, 200), (2, 1100), (1, 2300)] {
        check_on_cpu(&format!("costly rows of {rows} × {length}"), |device| {
            let x = floats(device, &[rows, length], 1);
            let mask = floats(device, &[1, length], 2).gt(0.0);
            let scores = (&x * 0.5).masked_fill(&mask, f64::NEG_INFINITY);
            let noise = -(-((&x * 0.4).square() + 1e-3).log()).log();
            let scale = x.abs().max_keepdim(1) / 127.0;
            vec![
                near("softmax", scores.softmax(1), 1e-5, 1e-6),
                exact("where", noise.argmax(1)),
                near("sums", x.exp().tanh().sin().sum(1), 1e-4, 1e-4),
                near("deviations", x.exp().tanh().var(1, 1), 1e-3, 1e-5),
                exact("bytes", (&x / &scale).round().clamp(-127, 127).cast(DType::I8)),
                near("columns", x.exp().tanh().sin().sum(0), 1e-4, 1e-4),
            ]
        });
    }
}

/// Few elements each: all the schedules of rows below sixteen, more rows than a tile has, results along them and once a row,
/// weights that all rows read, special values, rows that are views.
#[test]
fn rows_of_few() {
    for (rows, length) in [(16, 2), (1100, 3), (17, 5), (300, 8), (40, 12), (130, 16), (0, 4)] {
        check_on_cpu(&format!("{rows} rows of {length}"), |device| {
            let x = floats(device, &[rows, length], 1);
            let (weight, bias) = (floats(device, &[length], 2), floats(device, &[length], 3));
            vec![
                near("softmax", x.softmax(1), 1e-5, 1e-6),
                near("layer norm", x.layer_norm([length], Some(&weight), Some(&bias), 1e-5), 1e-4, 1e-5),
                near("logsumexp", x.logsumexp(1), 1e-5, 1e-5),
                near("deviation", x.exp().std(1, 1), 1e-4, 1e-5),
                exact("where", x.argmax(1)),
                exact("largest", x.max(1)),
                near("sum of a part", x.slice(1, 1..).exp().sum(1), 1e-5, 1e-5),
            ]
        });
    }
    for dtype in [DType::F16, DType::BF16, DType::F64, DType::I32, DType::U8] {
        check_on_cpu(&format!("rows of few {dtype}"), |device| {
            let x = ordinary(device, dtype, [70, 6], 1);
            vec![near("sum", x.sum(1), 1e-2, 1e-2), exact("above", &x - x.min_keepdim(1))]
        });
    }
    check_on_cpu("special values in rows of few", |device| {
        let x = mixed(device, DType::F32, [90, 5], 0, 1);
        vec![
            near("softmax", x.softmax(1), 1e-5, 1e-6),
            exact("largest", x.max(1)),
            exact("where", x.argmin(1)),
        ]
    });
    check_on_cpu("two short axes", |device| {
        let x = floats(device, &[50, 2, 4], 1);
        vec![
            near("both", x.softmax(2).sum([1, 2]), 1e-5, 1e-5),
            near("mean", x.exp().mean([1, 2]), 1e-5, 1e-5),
        ]
    });
}

/// Columns that are too long to be unrolled, and few of them beside each other.
#[test]
fn columns_of_some() {
    check_on_cpu("few columns", |device| {
        let x = floats(device, &[2, 40, 70], 1);
        let few = floats(device, &[5, 30, 90], 2);
        vec![
            near("deviation", x.tanh().var(1, 1).transpose(0, 1), 1e-3, 1e-5),
            exact("largest", few.max(1).transpose(0, 1)),
            near("sum", few.transpose(0, 2).sum(1), 1e-4, 1e-5),
            near("scaled", x.softmax(1), 1e-5, 1e-6),
        ]
    });
}

/// Windows of planes whose rows are combined first: borders on each side, steps, conditions of rows alone, costly elements.
#[test]
fn windows_of_planes() {
    for (height, width) in [(7, 33), (20, 16), (5, 600)] {
        check_on_cpu(&format!("windows of {height} × {width}"), |device| {
            let x = floats(device, &[2, 3, height, width], 1);
            let padded = |stride: usize| Pool2d::new(3).stride(stride).padding(1);
            vec![
                exact("largest", x.relu().max_pool2d_with(padded(1))),
                exact("every second", x.relu().max_pool2d_with(padded(2))),
                exact("every third", (-&x).max_pool2d_with(padded(3))),
                exact("pairs", x.max_pool2d(2, 2)),
                exact("no border", x.max_pool2d(3, 1)),
                near("mean", x.gelu().avg_pool2d_with(padded(2)), 1e-5, 1e-5),
                near(
                    "mean of what is there",
                    x.avg_pool2d_with(padded(1).count_include_pad(false)),
                    1e-5,
                    1e-5,
                ),
                near("norm of channels", x.local_response_norm(3, 1e-2, 0.75, 1.0), 1e-5, 1e-5),
            ]
        });
    }
    check_on_cpu("windows of special values", |device| {
        let x = mixed(device, DType::F32, [1, 1, 9, 40], 0, 1);
        let bytes = ordinary(device, DType::I32, [1, 2, 9, 40], 2);
        let pool = || Pool2d::new(3).stride(2).padding(1);
        vec![
            exact("largest", x.max_pool2d_with(pool())),
            exact("whole numbers", bytes.max_pool2d_with(pool())),
        ]
    });
}

/// Costly operations after windows: combined in parts, whole, over a border, and made of shorter ones.
#[test]
fn costly_after_windows() {
    for width in [37, 513, 700] {
        check_on_cpu(&format!("windows of rows of {width}"), |device| {
            let x = floats(device, &[2, 9, width], 1);
            let costly = |x: Tensor| (x.sin().exp() + 0.5).tanh().erf().sigmoid();
            let padded = Pool2d::new(3).stride(2).padding(1);
            vec![
                near("largest", costly(x.max_pool2d(2, 1)), 1e-5, 1e-6),
                near("mean over the border", costly(x.avg_pool2d_with(padded)), 1e-5, 1e-6),
                near("rolling", costly(x.unfold(2, 30, 1).mean(3)), 1e-5, 1e-5),
            ]
        });
    }
}

/// Spreads of what is costly, of rows that are longer than what is computed at a time, beside what is stored of them.
#[test]
fn spread_of_costly_rows() {
    for length in [1024, 1029, 2500] {
        check_on_cpu(&format!("spread of {length} costly elements"), |device| {
            let x = floats(device, &[5, length], 1);
            let y = x.silu().cos();
            let (var, mean) = y.var_mean_keepdim([1], 0);
            vec![
                near("cosines", y.cos(), 1e-5, 1e-6),
                near("mean", mean, 1e-4, 1e-6),
                near("spread", var, 1e-4, 1e-6),
            ]
        });
    }
}

/// What is read at computed positions has a loop of its own, and what comes before and after it is in vectors.
#[test]
fn what_is_read_from_afar() {
    for length in [15, 16, 100, 600] {
        let results = |device: &Device| {
            let x = floats(device, &[3, 7, length], 1);
            let places = |seed| {
                let costly = floats(device, &[3, length], seed).exp().sin().abs();
                (costly * length as f64).floor().cast(DType::I64).clamp(0, length as i64 - 1)
            };
            let (first, second) = (places(2), places(3));
            let taken = x.gather(2, &first.unsqueeze(1).expand([3, 7, length]));
            let twice = x.select(1, 0).gather(1, &second.gather(1, &first));
            let sum = (&taken * x.slice(1, ..1)).clamp(-0.5, 0.75).sum(1);
            vec![
                &taken * 2.0 - 1.0,
                taken.clone(),
                sum,
                twice.tanh() + &twice,
                taken.softmax(2),
                taken.abs().max(2),
            ]
        };
        check_on_cpu(&format!("from afar, {length}"), |device| {
            results(device).into_iter().map(|y| near("far", y, 1e-5, 1e-5)).collect()
        });
        let elementwise = |device: &Device| results(device).into_iter().take(2).collect();
        check_bits(&format!("from afar, {length}"), elementwise);
    }
    for dtype in [DType::U8, DType::I64, DType::F16, DType::F64, DType::Bool] {
        check_on_cpu(&format!("from afar, {dtype}"), |device| {
            let x = ordinary(device, dtype, [90], 1);
            let at = (Tensor::arange(0i64, 80, 1).to(device) * 37).remainder(90);
            let taken = x.take(&at);
            vec![exact("chosen", taken.ne(0).where_(&taken, x.slice(0, ..80))), exact("itself", taken)]
        });
    }
}

/// What is read far within an element's own short loop is left to a loop that does nothing else.
#[test]
fn far_neighbours_within_elements() {
    for neighbours in [3, 16, 40, 70] {
        let results = |device: &Device| {
            let x = floats(device, &[50, 2], 1);
            let index = Tensor::randint(0, 50, [50 * neighbours], 2).to(device);
            let near = x.index_select(0, &index).reshape([50, neighbours as isize, 2]);
            let distances = (x.unsqueeze(1) - near).square().sum(2);
            vec![(1.0 - &distances).clamp_min(0.0).pow(3).exp().sum(1), (-distances).exp().max(1)]
        };
        check_on_cpu(&format!("{neighbours} neighbours"), |device| {
            results(device).into_iter().map(|y| near("sum", y, 1e-5, 1e-5)).collect()
        });
    }
}

/// What follows from a product in long chains: rows of columns, and lines of windows that end within a vector.
#[test]
fn long_chains_after_products() {
    for (images, [height, width], outputs) in [(2, [9, 19], 3), (1, [34, 34], 20), (3, [5, 70], 7)] {
        check_on_cpu(&format!("a convolution of {height} × {width}"), |device| {
            let x = floats(device, &[images, 3, height, width], 1);
            let y = x.conv2d(floats(device, &[outputs, 3, 3, 3], 2), None, 1, 0);
            let once = y.mish();
            let gated = (&once + 1.0).tanh().exp() * floats(device, &[images, outputs, 1, 1], 3);
            vec![near("twice", once.mish(), 1e-5, 1e-5), near("gated", gated, 1e-4, 1e-4)]
        });
    }
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 2e-2), (DType::F64, 1e-10)] {
        check_on_cpu(&format!("a product of {dtype}"), |device| {
            let of = |shape: &[usize], seed| (floats(device, shape, seed) * 0.3).cast(dtype);
            let y = of(&[30, 40], 1).matmul(of(&[40, 101], 2)) + of(&[101], 3);
            vec![near("gated", (y.mish().mish() * y.sigmoid()).log1p().sin(), tolerance, tolerance)]
        });
    }
}
