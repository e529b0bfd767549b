//! What the CPU computes in vector lanes beside loops that have none: costly elements before scans and after them, windows
//! made of shorter ones, sweeps along several axes, columns that are read where rows would stride.

use lazuli::{Conv, DType, Device, ScanOrder, Tensor, s, scan};

use crate::common::data::{mixed, ordinary, units};
use crate::common::{check_on_cpu, exact, near};

fn floats(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    let elements: Vec<f32> = units(shape.iter().product(), seed).map(|x| 2.0 * x as f32).collect();
    Tensor::from_vec(elements, shape.to_vec()).to(device)
}

/// Rows on both sides of what goes on together, lengths on both sides of a stretch.
#[test]
fn costly_elements_of_scans() {
    for (rows, length) in [(1, 16), (3, 255), (4, 256), (5, 257), (9, 700)] {
        check_on_cpu(&format!("{rows} scans of {length} costly elements"), |device| {
            let x = floats(device, &[rows, length], 1);
            let back = ScanOrder::new().reverse();
            let sums = x.exp().cumsum_with(1, back.exclusive());
            let drawdown = 1.0 - x.exp() / x.exp().cummax(1);
            let twice = (x.sigmoid().cumsum(1) / 3.0).exp().log1p().cumsum(1).sqrt();
            let largest = (&x * 3.0).sin().cummax_with(1, back);
            vec![
                near("sums", sums, 1e-5, 1e-4),
                near("drawdown", drawdown, 1e-5, 1e-6),
                near("scan of a scan", twice, 1e-4, 1e-4),
                near("largest", largest, 1e-5, 1e-6),
            ]
        });
    }
    for dtype in [DType::F16, DType::BF16, DType::F64, DType::I32] {
        check_on_cpu(&format!("costly elements of {dtype}"), |device| {
            let x = ordinary(device, dtype, [6, 300], 1);
            let wide = if dtype.is_float() { (&x * 0.1).exp() } else { &x * &x + &x * 3 - &x / 2 };
            vec![near("sums", wide.cumsum(1), 2e-2, 2e-2), near("least", (&wide - 1).cummin(1), 2e-2, 2e-2)]
        });
    }
    check_on_cpu("special values around scans", |device| {
        let x = mixed(device, DType::F32, [5, 300], 0, 1);
        vec![
            near("sums", x.exp().cumsum(1).tanh(), 1e-5, 1e-6),
            near("largest", x.exp().cummax(1).log(), 1e-5, 1e-6),
            near("none", Tensor::zeros([4, 0], DType::F32).to(device).exp().cumsum(1).sqrt(), 0.0, 0.0),
        ]
    });
}

/// Recurrences whose step takes what is costly, and whose results go on to what is.
#[test]
fn costly_elements_of_recurrences() {
    for (rows, length, reverse) in [(4, 300, false), (3, 40, true)] {
        check_on_cpu(&format!("recurrences of {rows} × {length}"), |device| {
            let x = floats(device, &[rows, length], 1);
            let y = floats(device, &[rows, length], 2);
            let order = if reverse { ScanOrder::new().reverse() } else { ScanOrder::new() };
            let inputs = [&x.sigmoid(), &y.exp()];
            let ([last], [all]) = scan(inputs, 1, order, [0.0], |[carry], [gate, y]| {
                let next = carry * gate + y * (1.0 - gate);
                ([next.clone()], [next])
            });
            vec![near("all", all.log1p().sqrt(), 1e-5, 1e-5), near("last", last.sqrt(), 1e-5, 1e-5)]
        });
    }
}

/// Windows of powers of two and of all binary digits, longer than a stretch, as long as the row, of every reduction.
#[test]
fn sliding_windows() {
    for (rows, length, window) in [(2, 1100, 50), (3, 40, 32), (1, 700, 63), (2, 90, 75), (1, 1500, 600)] {
        check_on_cpu(&format!("windows of {window} in {rows} × {length}"), |device| {
            let x = floats(device, &[rows, length], 1);
            let windows = (&x * 1.5 + 100.0).unfold(1, window, 1);
            let tail = x.slice(1, window as isize - 1..);
            vec![
                near("mean", windows.mean(2), 1e-5, 1e-4),
                near("deviation", windows.std(2, 1), 1e-3, 1e-4),
                exact("largest", windows.max(2)),
                exact("least", windows.min(2)),
                exact("where", windows.argmax(2)),
                near("logsumexp", x.unfold(1, window, 1).logsumexp(2), 1e-5, 1e-5),
                near(
                    "z-score",
                    (&tail - x.unfold(1, window, 1).mean(2)) / x.unfold(1, window, 1).std(2, 1),
                    1e-3,
                    1e-4,
                ),
                near("reversed", x.flip(1).unfold(1, window, 1).sum(2), 1e-4, 1e-4),
            ]
        });
    }
}

/// Sums of whole numbers and products, special values, steps that are none, planes, borders.
#[test]
fn windows_of_all_kinds() {
    for dtype in [DType::F16, DType::BF16, DType::F64, DType::I32, DType::U8, DType::Bool] {
        check_on_cpu(&format!("windows of {dtype}"), |device| {
            let x = ordinary(device, dtype, [3, 200], 1);
            let windows = x.unfold(1, 37, 1);
            let largest = if dtype == DType::Bool { windows.any(2) } else { windows.max(2) };
            vec![exact("largest", largest), near("sum", windows.sum(2), 1e-2, 1e-2)]
        });
    }
    check_on_cpu("special values in windows", |device| {
        let x = mixed(device, DType::F32, [2, 300], 0, 1);
        let windows = x.unfold(1, 29, 1);
        let scattered = floats(device, &[400], 3);
        let position = Tensor::arange(0, 400, 1).to(device);
        let odd = position.eq(77).where_(f32::NAN, position.eq(200).where_(f32::INFINITY, &scattered));
        let rolling = odd.unfold(0, 30, 1);
        vec![
            exact("largest", windows.max(2)),
            exact("least", windows.min(2)),
            near("mean", rolling.mean(1), 1e-4, 1e-4),
            near("deviation", rolling.std(1, 0), 1e-3, 1e-4),
        ]
    });
    check_on_cpu("windows of other steps and of planes", |device| {
        let x = floats(device, &[2, 900], 1);
        let plane = floats(device, &[2, 3, 40, 50], 2);
        vec![
            near("every third", x.unfold(1, 40, 3).mean(2), 1e-4, 1e-5),
            near("deviation of every third", x.unfold(1, 40, 3).std(2, 0), 1e-3, 1e-5),
            exact("largest of planes", plane.max_pool2d(9, 1)),
            near("mean of planes", plane.avg_pool2d(11, 1), 1e-4, 1e-5),
            exact("tiles", plane.max_pool2d(8, 8)),
            near(
                "mean, padded",
                x.unsqueeze(1).avg_pool1d_with(lazuli::Pool1d::new(31).stride(1).padding(15)),
                1e-4,
                1e-5,
            ),
        ]
    });
}

/// Sweeps along axes that are not neighbours: inner extents that lanes divide, and others.
#[test]
fn sweeps_along_several_axes() {
    for inner in [5, 33, 49, 64, 128, 256] {
        check_on_cpu(&format!("first and last axis, {inner}"), |device| {
            let x = floats(device, &[7, 3, inner], 1);
            let mean = x.mean_keepdim([0, 2]);
            vec![
                near("standardised", (&x - &mean) / (x.var_keepdim([0, 2], 0) + 1e-5).sqrt(), 1e-3, 1e-4),
                near("softmax", (&x - x.max_keepdim([0, 2])).exp() / x.exp().sum_keepdim([0, 2]), 1e-4, 1e-6),
                exact("largest", x.max([0, 2])),
            ]
        });
    }
    check_on_cpu("long sweeps along several axes", |device| {
        let x = floats(device, &[40, 2, 4096], 1);
        let y = floats(device, &[70, 2, 2000], 2);
        vec![near("mean", x.mean([0, 2]), 1e-4, 1e-5), near("odd", y.std([0, 2], 1), 1e-3, 1e-5)]
    });
}

/// Operands that are consecutive along the results as well as along what is reduced.
#[test]
fn products_over_a_middle_axis() {
    for (m, k, n) in [(5, 40, 70), (3, 300, 16), (2, 33, 15), (4, 17, 3)] {
        check_on_cpu(&format!("{m} × {k} × {n}"), |device| {
            let (a, b) = (floats(device, &[m, k], 1), floats(device, &[k, n], 2));
            let all = a.unsqueeze(2) * b.unsqueeze(0);
            vec![near("sum", all.sum(1), 1e-4, 1e-4), near("largest", (all * 2.0).max(1), 1e-6, 0.0)]
        });
    }
}

/// Rows each element of which is a reduction: distances of points, unrolled and not; positions where several are equal.
#[test]
fn reductions_of_reductions() {
    for (points, centres, features) in [(70, 16, 3), (100, 5, 30), (17, 1, 4), (33, 7, 100)] {
        check_on_cpu(&format!("{points} points, {centres} centres, {features} features"), |device| {
            let (p, c) =
                (floats(device, &[points, 1, features], 1), floats(device, &[1, centres, features], 2));
            let apart = (&p - &c).square().sum(2);
            // Multiples of a half: sums are exact, and many of them the same.
            let same = ((&p * 2.0).round() - (&c * 2.0).round()).abs().sum(2);
            vec![
                exact("nearest", same.argmin(1)),
                near("least", apart.min(1), 1e-4, 1e-5),
                near("sum of roots", apart.sqrt().sum(1), 1e-4, 1e-4),
                near("weights", (-apart).softmax(1), 1e-3, 1e-6),
            ]
        });
    }
    check_on_cpu("points that are no numbers, and far away", |device| {
        let whole = (floats(device, &[40, 1, 3], 1) * 4.0).round();
        let number = Tensor::arange(0, 120, 1).to(device).reshape([40, 1, 3]);
        let x = number.eq(37).where_(f32::NAN, number.eq(80).where_(f32::INFINITY, whole));
        let centres = (floats(device, &[1, 9, 3], 2) * 4.0).round();
        let apart = (x - centres).abs().sum(2);
        vec![
            exact("nearest", apart.argmin(1)),
            exact("farthest", apart.argmax(1)),
            exact("least", apart.min(1)),
        ]
    });
}

/// Columns beside reductions that all of them share, and of other lengths.
#[test]
fn columns_beside_other_reductions() {
    check_on_cpu("columns beside one of them and a short one", |device| {
        let x = floats(device, &[3, 40, 130], 1);
        let first = x.select(0, 0).select(1, 0).max(0);
        let few = x.select(1, 0).select(1, 0).mean(0);
        vec![
            near("largest", x.max(1).maximum(&first).exp() - &few, 1e-5, 1e-6),
            near("sums", x.sum(1) * first + few, 1e-4, 1e-5),
        ]
    });
}

/// Rows that are padded, in front and behind, along themselves, and both: what is beyond is read nowhere.
#[test]
fn sweeps_of_padded_rows() {
    for (rows, length) in [(9, 300), (5, 2000), (3, 40)] {
        check_on_cpu(&format!("{rows} padded rows of {length}"), |device| {
            let x = floats(device, &[2, rows, length], 1);
            let of_rows = x.pad(&[(0, 0), (1, 2), (0, 0)], 3.0);
            let along = x.pad(&[(0, 0), (0, 0), (7, 1)], -2.0);
            let both = x.pad(&[(0, 0), (2, 1), (3, 5)], 0.5);
            let joined = Tensor::cat(&[&x, &(&x * 2.0), &(&x + 1.0)], 2);
            let softmax = |x: &Tensor| near("softmax", (x * 1.5).softmax(2), 1e-4, 1e-7);
            vec![
                near("mean of padded rows", of_rows.relu().mean(2), 1e-4, 1e-6),
                near("spread of padded rows", of_rows.var(2, 0), 1e-4, 1e-6),
                softmax(&of_rows),
                near("mean along the pad", along.relu().mean(2), 1e-4, 1e-6),
                near("spread along the pad", along.var(2, 0), 1e-4, 1e-6),
                softmax(&along),
                exact("largest with both", both.max(2)),
                exact("where with both", both.argmin(2)),
                softmax(&both),
                near("of joined rows", joined.exp().sum(2), 1e-4, 1e-6),
                softmax(&joined),
            ]
        });
    }
    check_on_cpu("no numbers in padded rows, and no rows", |device| {
        let x = mixed(device, DType::F32, [6, 90], 0, 7).pad(&[(1, 1), (40, 3)], f32::NAN);
        let none = Tensor::zeros([0, 90], DType::F32).to(device).pad(&[(0, 0), (2, 2)], 1.0);
        vec![exact("largest", x.max(1)), exact("where", x.argmax(1)), exact("none", none.sum(1))]
    });
}

/// What is the same for parts of a flattened axis, and what is so for parts of these.
#[test]
fn periods_of_a_flattened_axis() {
    check_on_cpu("periods", |device| {
        let x = floats(device, &[6 * 70 * 3], 1);
        let (row, column) = (floats(device, &[70 * 3], 2), floats(device, &[6, 1], 3));
        let rows = row.unsqueeze(0).expand([6, 210]).reshape([6 * 210]);
        let columns = column.expand([6, 210]).reshape([6 * 210]);
        let both = (&x * rows + &columns).exp();
        vec![
            near("rows and columns", both.clone(), 1e-6, 0.0),
            near("transposed", both.reshape([6, 210]).t() * 2.0, 1e-6, 0.0),
        ]
    });
}

/// Costly operations on the results of rows, of one axis and of several; one that a sweep needs as well.
#[test]
fn epilogues_of_rows() {
    for (rows, length) in [(300, 40), (17, 65), (5, 30)] {
        check_on_cpu(&format!("{rows} rows of {length}"), |device| {
            let x = floats(device, &[2, rows, length], 1);
            let bias = floats(device, &[rows], 2);
            let flat = x.reshape([2 * rows, length]);
            let halves = x.cast(DType::F16);
            let frames = floats(device, &[2, 40 * rows + length], 3).unfold(1, length, 40);
            let scale = x.square().sum_keepdim(2).sqrt().tanh();
            vec![
                near("roots", (x.sum(2).exp() + &bias).tanh(), 1e-4, 1e-5),
                near("of one axis", (flat.square().sum(1) + 1e-6).log10() * 10.0, 1e-4, 1e-5),
                near("two results", flat.max(1).exp().sin(), 1e-4, 1e-5),
                near("halves", halves.sum(2).sigmoid(), 1e-2, 1e-3),
                near("frames", (frames.square().sum(2) + 1e-6).log10().exp(), 1e-4, 1e-5),
                near("scaled", &x * &scale, 1e-4, 1e-5),
                near("scales", scale, 1e-4, 1e-5),
            ]
        });
    }
    check_on_cpu("rows without numbers", |device| {
        let x = mixed(device, DType::F32, [20, 40], 0, 7);
        vec![near("roots", x.max(1).exp().log1p(), 1e-5, 1e-6)]
    });
}

/// Transposed reads whose results end with a short axis, and others beside them, along the results and once a row.
#[test]
fn transposes_to_short_axes() {
    for (long, middle, short) in [(70, 20, 3), (33, 9, 4), (100, 5, 1), (40, 7, 15)] {
        check_on_cpu(&format!("{short} × {middle} × {long}"), |device| {
            let x = floats(device, &[short, middle, long], 1);
            let y = floats(device, &[long, middle, short], 2);
            let turned = x.permute([2, 1, 0]);
            let rows = floats(device, &[long, 1, 1], 3);
            vec![
                exact("turned", &turned * 2.0),
                exact("beside another", &turned + &y * rows),
                exact("of a row", &turned * floats(device, &[middle, 1], 4)),
                near("costly", (turned.exp() + y).tanh(), 1e-5, 1e-6),
            ]
        });
    }
}

/// Columns of what is padded, pooled or joined: an interior without guards, borders beside it, above it and below it.
#[test]
fn sweeps_down_padded_columns() {
    for (rows, length) in [(20, 70), (3, 5), (40, 600)] {
        check_on_cpu(&format!("{length} columns of {rows}, padded"), |device| {
            let x = floats(device, &[rows, length], 1);
            let beside = x.pad(&[(0, 0), (3, 2)], 0.5);
            let around = x.pad(&[(2, 1), (1, 4)], -1.0);
            let pooled = x.avg_pool2d_with(lazuli::Pool2d::new(2).stride(1).padding(1));
            let joined = Tensor::cat(&[&(&x * 2.0), &x.exp(), &(&x + 1.0)], 1);
            let planes = floats(device, &[3, rows, length], 2).pad(&[(0, 0), (1, 1), (1, 1)], 0.25);
            vec![
                near("sums beside borders", beside.sum(0), 1e-4, 1e-5),
                near("variances within borders", around.var(0, 0), 1e-4, 1e-5),
                near("costly", around.exp().sigmoid().sum(0), 1e-4, 1e-5),
                near("pooled", pooled.mean(0), 1e-4, 1e-5),
                near("pooled and scaled", &pooled / (pooled.abs().max(0) + 1.0), 1e-4, 1e-5),
                near("joined", joined.max(0), 1e-5, 1e-6),
                near("of planes", planes.square().mean([0, 1]), 1e-4, 1e-5),
            ]
        });
    }
}

/// What is costly in some rows alone: positions at which columns do different things, all of them alike.
#[test]
fn sweeps_down_columns_that_share_guards() {
    for (rows, length) in [(20, 70), (70, 600), (9000, 40)] {
        check_on_cpu(&format!("{length} columns of {rows}, some of them replaced"), |device| {
            let (x, row) = (floats(device, &[rows, length], 1), floats(device, &[length], 2));
            let replaced = x.select_scatter(0, row.exp(), 5);
            let twice = replaced.select_scatter(0, row.sin().tanh(), -1);
            let joined = Tensor::cat([x.exp(), &x * 2.0, x.i(s![2..7]).sin()], 0);
            let part = x.slice_assign(s![2..9, 3..17], row.i(s![3..17]).exp());
            let planes = floats(device, &[3, rows, length], 3).slice_assign(s![.., 4..6], row.sigmoid());
            let padded = x.exp().sin().pad(&[(3, 2), (0, 0)], 0.25);
            vec![
                near("one", replaced.sum(0), 1e-4, 1e-5),
                near("two", twice.max(0), 1e-5, 1e-6),
                near("variances", twice.var(0, 0), 1e-4, 1e-5),
                near("scaled", &replaced / (replaced.abs().max(0) + 1.0), 1e-4, 1e-5),
                near("joined", joined.mean(0), 1e-4, 1e-5),
                near("parts of rows", part.sum(0), 1e-4, 1e-5),
                near("planes", planes.min(1), 1e-5, 1e-6),
                near("of planes", planes.square().mean([0, 1]), 1e-4, 1e-5),
                near("padded", padded.sum(0), 1e-4, 1e-5),
                near("two reductions", padded.max(0) - padded.mean(0), 1e-4, 1e-5),
            ]
        });
    }
}

/// Numbers of 64 bits in some loops of a kernel, and of 32 bits in others.
#[test]
fn loops_of_different_widths() {
    check_on_cpu("loops of 64 and 32 bits", |device| {
        let x = floats(device, &[40, 300], 1);
        let labels = ordinary(device, DType::I64, [40], 2);
        let weights = ordinary(device, DType::F64, [40], 3);
        let losses = x.exp().sum(1).log();
        let scaled = losses.cast(DType::F64) * &weights;
        let wide = x.cast(DType::F64);
        vec![
            near("chosen by wide numbers", labels.ne(1).where_(&losses, 0.0), 1e-5, 1e-6),
            near("wide results of rows", scaled, 1e-4, 1e-5),
            near("wide sums beside others", wide.sum(1).cast(DType::F32) + x.max(1), 1e-5, 1e-6),
            near("of columns", x.cast(DType::F64).mean(0).cast(DType::F32) * x.exp().sum(0), 1e-4, 1e-4),
            near("positions", x.argmax(1).cast(DType::F32) + x.sigmoid().sum(1), 1e-5, 1e-6),
        ]
    });
}

/// Positions compared with numbers of 64 bits, many of which are no positions, and converted, beside floats.
#[test]
fn positions_beside_wide_numbers() {
    let wide = [3, 299, -1, 1 << 32, (1 << 32) + 3, -(1 << 33), i64::MIN, i64::MAX, 1 << 31, -(1 << 31) - 1];
    check_on_cpu("positions beside numbers of 64 bits", |device| {
        let labels = Tensor::from_vec(wide.to_vec(), [wide.len(), 1]).to(device);
        let position = Tensor::arange(0, 300, 1).to(device);
        let x = floats(device, &[wide.len(), 300], 1);
        let choice = |mask: Tensor| mask.where_(&x * 2.0, 0.5);
        vec![
            exact("equal", choice(labels.eq(&position))),
            exact("unequal", choice(position.ne(&labels))),
            exact("less", choice(labels.lt(&position))),
            exact("not more", choice(position.le(&labels))),
            exact("of two", choice((&position - 150).ge(&position * -1))),
            exact("of a number", choice(position.gt(1i64 << 40))),
            exact("converted", &x + position.cast(DType::F32)),
            exact("counted", &x * (&position * (1i64 << 40)).cast(DType::F32)),
            near("of rows", choice(labels.eq(&position)).sum(1), 1e-5, 1e-6),
        ]
    });
}

/// Every second element from the end on, in vectors, of whole ones and of what is left of one.
#[test]
fn every_second_element_from_the_end() {
    for (name, dtype) in
        [("floats", DType::F32), ("halves", DType::F16), ("doubles", DType::F64), ("integers", DType::I32)]
    {
        check_on_cpu(&format!("{name} from the end"), |device| {
            let x = mixed(device, dtype, [3, 101], 3, 9);
            let whole = mixed(device, dtype, [2, 128], 4, 9);
            vec![
                exact("from the last", x.slice_step(1, None, None, -2) + 1),
                exact("from the one before", x.slice_step(1, -2, None, -2) * 3),
                exact("reversed halves", whole.flip(1).slice_step(1, None, None, 2) + 2),
                exact("beside the others", x.slice(1, 0..51) + x.slice_step(1, None, None, -2)),
            ]
        });
    }
}

/// What all rows read and lies across, such as a weight of each channel where channels are innermost, is turned once a block.
#[test]
fn small_inputs_that_lie_across() {
    for dtype in [DType::F16, DType::F32, DType::F64, DType::I32] {
        for (rows, channels) in [(37, 17), (300, 64), (9, 130), (70, 300)] {
            check_on_cpu(&format!("{dtype} {rows} rows of {channels}"), |device| {
                let x = ordinary(device, dtype, [rows, channels], 1);
                let weight = ordinary(device, dtype, [channels, 9], 2);
                let taps = weight.slice(1, 2..7);
                let image = x.reshape([1, rows, 1, channels]).permute([0, 3, 1, 2]);
                let kernel = weight.reshape([channels, 1, 9, 1]);
                let conv = Conv::new().padding([4, 0]).groups(channels);
                vec![
                    exact("scaled", &x * weight.select(1, 4)),
                    exact("rolled", &x * weight.roll(1, 1).select(1, 0) + weight.roll(1, 0).select(1, 3)),
                    near("taps", (x.unfold(0, 5, 1) * taps).sum(2), 1e-2, 1e-2),
                    near(
                        "depthwise",
                        image.conv2d_with(&kernel, None, conv).permute([0, 2, 3, 1]),
                        1e-2,
                        1e-2,
                    ),
                ]
            });
        }
    }
}

/// Rows of fewer elements than a vector has, which cannot be one with those before: of slices, pools and what each row shares.
#[test]
fn rows_shorter_than_a_vector() {
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::F64] {
        for length in [7, 8, 9, 11, 14, 15] {
            check_on_cpu(&format!("{dtype} rows of {length}"), |device| {
                let x = ordinary(device, dtype, [43, length + 3], 1);
                let image = ordinary(device, dtype, [3, 2, 2 * length, 2 * length], 2);
                let shared = ordinary(device, dtype, [43, 1], 3);
                vec![
                    exact("slice", x.slice(1, 1..length + 1) + x.slice(1, 3..)),
                    exact("shared", x.slice(1, 2..length + 2) * &shared),
                    exact("pool", image.max_pool2d(2, 2)),
                    exact("padded", image.pad(1, 0).slice_step(3, 0, None, 2)),
                ]
            });
        }
    }
}

/// Products of few terms, on both sides of what is packed.
#[test]
fn products_of_few_terms() {
    for terms in [8, 9, 10, 11, 12] {
        check_on_cpu(&format!("{terms} terms"), |device| {
            let (a, b) = (floats(device, &[200, terms], 1), floats(device, &[terms, 70], 2));
            let wave = floats(device, &[2, 1, 900], 3);
            let taps = floats(device, &[20, 1, terms], 4);
            vec![
                near("matrix", a.matmul(&b).relu(), 1e-5, 1e-5),
                near("distances", a.cdist(&a, 2.0).min(1), 1e-4, 2e-3),
                near("convolution", wave.conv1d(&taps, None, 5, 2).tanh(), 1e-5, 1e-5),
                near(
                    "integers",
                    (&a * 9.0).round().cast(DType::I32).matmul((&b * 9.0).cast(DType::I32)),
                    0.0,
                    0.0,
                ),
            ]
        });
    }
}
