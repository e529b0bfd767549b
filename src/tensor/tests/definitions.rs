//! What is made of several operations against its definition, by hand and in plain loops: in the interpreter, in f64.

use std::f64::consts::PI;

use crate::{DType, Device, Pool2d, Shape, Tensor, f16};

const INF: f64 = f64::INFINITY;

fn of(x: &[f64], shape: impl Into<Shape>, f: impl FnOnce(&Tensor) -> Tensor) -> Vec<f64> {
    f(&Tensor::from_slice(x, shape).to(&Device::interpreter())).to_vec().unwrap()
}

/// Up to rounding; zeros have their sign.
fn close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        let is_same = a.to_bits() == e.to_bits() || a.is_nan() && e.is_nan();
        assert!(
            is_same || *e != 0.0 && (a - e).abs() <= 1e-14 * e.abs().max(1.0),
            "{actual:?}, {expected:?}"
        );
    }
}

#[test]
fn means_and_variances() {
    let x = [1.0, 2.0, 3.0, 6.0];
    close(&of(&x, [2, 2], |x| x.mean(1)), &[1.5, 4.5]);
    close(&of(&x, [2, 2], |x| x.mean(0)), &[2.0, 4.0]);
    close(&of(&[], [0], |x| x.mean(0)), &[f64::NAN]);
    close(&of(&x, [4], |x| x.var(0, 0)), &[3.5]);
    close(&of(&x, [4], |x| x.var(0, 1)), &[14.0 / 3.0]);
    close(&of(&[7.0], [1], |x| x.var(0, 1)), &[f64::NAN]);
    close(&of(&[1.0, 2.0], [2], |x| x.var(0, 5)), &[INF]);
    close(&of(&[], [0], |x| x.var(0, 0)), &[f64::NAN]);
    // The sum exceeds what 16 bits hold, the mean does not.
    let large = Tensor::from_slice(&[f16::from_f32(60000.0); 4], [4]).to(&Device::interpreter());
    assert_eq!(large.mean(0).item::<f16>().unwrap().to_f32(), 60000.0);
}

#[test]
fn activations() {
    let x = [0.0, 1.0, -1.0, INF, -INF, f64::NAN, -0.0];
    let (half, nan) = (1.0 / (1.0 + 1f64.exp()), f64::NAN);
    close(&of(&x, [7], Tensor::sigmoid), &[0.5, 1.0 - half, half, 1.0, 0.0, nan, 0.5]);
    close(&of(&x, [7], Tensor::silu), &[0.0, 1.0 - half, -half, INF, nan, nan, -0.0]);
    // The normal distribution at 1 and -1: 0.841344746068542948… and 0.158655253931457051….
    let (above, below) = (0.841_344_746_068_542_9, -0.158_655_253_931_457_05);
    close(&of(&x, [7], Tensor::gelu), &[0.0, above, below, INF, nan, nan, -0.0]);
    let tanh = ((2.0 / PI).sqrt() * 1.044715).tanh();
    let (above, below) = (0.5 + tanh / 2.0, tanh / 2.0 - 0.5);
    close(&of(&x, [7], Tensor::gelu_tanh), &[0.0, above, below, INF, nan, nan, -0.0]);
    assert_eq!(Tensor::zeros([0], DType::F16).gelu().to_vec::<f16>().unwrap(), []);
}

#[test]
fn softmax_along_each_axis() {
    let x = [0.0, 2f64.ln(), 3f64.ln(), 0.0, 3f64.ln(), 0.0];
    let rows = [1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0, 1.0 / 5.0, 3.0 / 5.0, 1.0 / 5.0];
    close(&of(&x, [2, 3], |x| x.softmax(1)), &rows);
    close(&of(&x, [2, 3], |x| x.softmax(0)), &[0.5, 0.4, 0.75, 0.5, 0.6, 0.25]);
    close(&of(&x, [1, 3, 2], |x| x.softmax(1))[..2], &[1.0 / 7.0, 0.5]);
    close(&of(&[1000.0, 1000.0], [2], |x| x.softmax(0)), &[0.5, 0.5]);
    close(&of(&[-INF, 0.0], [2], |x| x.softmax(0)), &[0.0, 1.0]);
    for special in [-INF, INF, f64::NAN] {
        let other = if special == -INF { special } else { 0.0 };
        close(&of(&[special, other], [2], |x| x.softmax(0)), &[f64::NAN; 2]);
    }
    close(&of(&[], [2, 0], |x| x.softmax(1)), &[]);
    close(&of(&[5.0], [], |x| x.softmax(0)), &[1.0]);
}

#[test]
fn layer_norm_over_the_last_dimensions() {
    let x = [1.0, 3.0, 10.0, 30.0];
    close(&of(&x, [2, 2], |x| x.layer_norm([2], None, None, 0.0)), &[-1.0, 1.0, -1.0, 1.0]);
    close(&of(&x[..2], [2], |x| x.layer_norm([2], None, None, 3.0)), &[-0.5, 0.5]);
    let (mean, deviation) = (11.0, 131.5f64.sqrt());
    let all = of(&x, [2, 2], |x| x.layer_norm([2, 2], None, None, 0.0));
    close(&all, &x.map(|x| (x - mean) / deviation));
    close(&of(&[], [3, 0], |x| x.layer_norm([0], None, None, 1e-5)), &[]);
    close(&of(&[2.0, 2.0], [2], |x| x.layer_norm([2], None, None, 0.0)), &[f64::NAN; 2]);
}

#[test]
fn max_pools_by_hand() {
    let x: Vec<i32> = (0..16).collect();
    let x = Tensor::from_vec(x, [4, 4]).to(&Device::interpreter());
    assert_eq!(x.max_pool2d(2, 2).to_vec::<i32>().unwrap(), [5, 7, 13, 15]);
    let padded = x.max_pool2d_with(Pool2d::new(2).padding(1)).to_vec::<i32>().unwrap();
    assert_eq!(padded, [0, 2, 3, 8, 10, 11, 12, 14, 15]);
    let row = |x: &Tensor| x.max_pool2d((1, 2), (1, 2));
    close(&of(&[f64::NAN, 1.0, -3.0, -2.0], [1, 4], row), &[f64::NAN, -2.0]);
    // Both elements of the window lie in the padding.
    let sparse = Pool2d::new((1, 2)).stride(1).padding((0, 1)).dilation((1, 3));
    close(&of(&[1.0, 2.0], [1, 2], |x| x.max_pool2d_with(sparse)), &[-INF]);
    let bytes = Tensor::from_slice(&[5u8, 6], [1, 2]).to(&Device::interpreter());
    assert_eq!(bytes.max_pool2d_with(sparse).to_vec::<u8>().unwrap(), [0]);
    close(&of(&[], [0, 4, 4], |x| x.max_pool2d(2, 2)), &[]);
}

#[test]
fn average_pools_count_the_padding() {
    let x: Vec<f64> = (0..16).map(f64::from).collect();
    close(&of(&x, [4, 4], |x| x.avg_pool2d(2, 2)), &[2.5, 4.5, 10.5, 12.5]);
    let expected = [0.0, 0.75, 0.75, 3.0, 7.5, 4.5, 3.0, 6.75, 3.75];
    close(&of(&x, [4, 4], |x| x.avg_pool2d_with(Pool2d::new(2).padding(1))), &expected);
}

/// Kernel, stride, padding and dilation in two dimensions.
type Sizes = [[usize; 2]; 4];

/// Pads into a buffer first, then reads every window in full.
fn by_padding(
    x: &[f64],
    [n, h, w]: [usize; 3],
    [kernel, stride, [ph, pw], dilation]: Sizes,
    [oh, ow]: [usize; 2],
    max: bool,
) -> Vec<f64> {
    let (hh, ww) = (h + 2 * ph, w + 2 * pw);
    let mut padded = vec![if max { -INF } else { 0.0 }; n * hh * ww];
    for (i, &x) in x.iter().enumerate() {
        padded[(i / (h * w) * hh + i / w % h + ph) * ww + i % w + pw] = x;
    }
    let mut result = Vec::new();
    for i in 0..n * oh * ow {
        let (plane, y, x) = (i / (oh * ow), i / ow % oh, i % ow);
        let mut values = Vec::new();
        for ky in 0..kernel[0] {
            for kx in 0..kernel[1] {
                let (row, column) = (y * stride[0] + ky * dilation[0], x * stride[1] + kx * dilation[1]);
                values.push(padded[(plane * hh + row) * ww + column]);
            }
        }
        result.push(match max {
            true => values.iter().copied().fold(-INF, f64::max),
            false => values.iter().sum::<f64>() / values.len() as f64,
        });
    }
    result
}

#[test]
fn pools_with_padding_and_dilation_against_loops() {
    let cases: [([usize; 3], Sizes, [usize; 2]); 3] = [
        ([2, 7, 9], [[3, 2], [2, 3], [1, 1], [2, 1]], [3, 4]),
        ([1, 5, 5], [[3, 3], [1, 1], [1, 1], [1, 1]], [5, 5]),
        ([3, 6, 8], [[2, 4], [1, 2], [0, 2], [3, 2]], [3, 3]),
    ];
    for (from, sizes, to) in cases {
        // Distinct integers in a scrambled order: exact in every way of summing.
        let x: Vec<f64> = (0..from.iter().product()).map(|i: usize| (i * 37 % 101) as f64 - 50.0).collect();
        let [kernel, stride, padding, dilation] = sizes;
        let pool = Pool2d::new(kernel).stride(stride).padding(padding).dilation(dilation);
        close(&of(&x, from, |x| x.max_pool2d_with(pool)), &by_padding(&x, from, sizes, to, true));
        close(&of(&x, from, |x| x.avg_pool2d_with(pool)), &by_padding(&x, from, sizes, to, false));
    }
}

#[test]
fn values_on_a_diagonal_of_any_two_axes() {
    let [planes, rows, columns] = [3, 4, 6];
    let x: Vec<f64> = (0..planes * rows * columns).map(|i| -(i as f64) - 1.0).collect();
    for (first, second) in [(1, 2), (2, 1), (0, 2), (-1, -3), (1, 0)] {
        for offset in [0, 1, -1, 2, -2, 3, -3, 5, -6, 9, isize::MAX, isize::MIN] {
            let axis = |axis: isize| axis.rem_euclid(3) as usize;
            let (a, b) = (axis(first), axis(second));
            let other = 3 - a - b;
            // In the order of the diagonal's elements: the other axis, and then along the diagonal.
            let (mut expected, mut count) = (x.clone(), 0);
            let extents = [planes, rows, columns];
            for o in 0..extents[other] {
                for i in 0..extents[a] {
                    let Some(j) =
                        (i as isize).checked_add(offset).filter(|j| (0..extents[b] as isize).contains(j))
                    else {
                        continue;
                    };
                    let mut at = [0; 3];
                    (at[other], at[a], at[b]) = (o, i, j as usize);
                    expected[(at[0] * rows + at[1]) * columns + at[2]] = count as f64;
                    count += 1;
                }
            }
            let values: Vec<f64> = (0..count).map(f64::from).collect();
            let along = count as usize / extents[other];
            let values = Tensor::from_slice(&values, [extents[other], along]).to(&Device::interpreter());
            close(&of(&x, extents, |x| x.diagonal_scatter(&values, offset, first, second)), &expected);
        }
    }
}

#[test]
fn distances_of_pairs_of_few_rows() {
    let x = [0.0, 0.0, 3.0, 4.0, 3.0, f64::NAN];
    close(&of(&x, [3, 2], |x| x.pdist(2.0)), &[5.0, f64::NAN, f64::NAN]);
    close(&of(&x[..4], [4, 1], |x| x.pdist(1.0)), &[0.0, 3.0, 4.0, 3.0, 4.0, 1.0]);
    close(&of(&x[..4], [2, 2], |x| x.pdist(INF)), &[4.0]);
    close(&of(&x[..2], [1, 2], |x| x.pdist(2.0)), &[]);
    close(&of(&[], [0, 2], |x| x.pdist(2.0)), &[]);
}

#[test]
fn norms_that_are_bounded() {
    let x = [3.0, 4.0, 0.3, 0.4, 0.0, 0.0, f64::NAN, 1.0];
    let most = 1.0 / (5.0 + 1e-7);
    let rows = of(&x, [4, 2], |x| x.renorm(2.0, 0, 1.0));
    // A norm that is NaN is not more than another.
    close(&rows, &[3.0 * most, 4.0 * most, 0.3, 0.4, 0.0, 0.0, f64::NAN, 1.0]);
    let columns = of(&x[..4], [1, 2, 2], |x| x.renorm(1.0, -1, 0.0));
    close(&columns, &[0.0; 4]);
    close(&of(&[2.0, -0.5], [2], |x| x.renorm(2.0, 0, 1.0)), &[2.0 / (2.0 + 1e-7), -0.5]);
    close(&of(&[], [0, 3], |x| x.renorm(INF, 1, 1.0)), &[]);
}

#[test]
fn the_least_has_the_largest_share() {
    let x = [0.0, -(2f64.ln()), 0.0, INF, 0.0, 0.0];
    close(&of(&x, [2, 3], |x| x.softmin(1)), &[0.25, 0.5, 0.25, 0.0, 0.5, 0.5]);
    close(&of(&[7.0], [], |x| x.softmin(0)), &[1.0]);
    close(&of(&[], [2, 0], |x| x.softmin(1)), &[]);
}

#[test]
fn channels_that_are_dealt_out() {
    let x: Vec<f64> = (0..2 * 6 * 4).map(f64::from).collect();
    for groups in [1, 2, 3, 6] {
        let expected: Vec<f64> = (0..48)
            .map(|i| {
                let (batch, channel, pixel) = (i / 24, i / 4 % 6, i % 4);
                let own = channel % groups * (6 / groups) + channel / groups;
                x[batch * 24 + own * 4 + pixel]
            })
            .collect();
        close(&of(&x, [2, 6, 2, 2], |x| x.channel_shuffle(groups)), &expected);
    }
    close(&of(&[], [2, 4, 0], |x| x.channel_shuffle(2)), &[]);
    close(&of(&[], [2, 0, 4], |x| x.channel_shuffle(2)), &[]);
}

#[test]
fn equal_parts_by_the_name_of_an_axis() {
    let x = Tensor::arange(0.0, 24.0, 1.0).reshape([2, 3, 4]).to(&Device::interpreter());
    let second = |parts: Vec<Tensor>| -> Vec<f64> { parts[1].to_vec().unwrap() };
    close(&second(x.vsplit(2).unwrap()), &(12..24).map(f64::from).collect::<Vec<_>>());
    close(&second(x.hsplit(3).unwrap()), &[4.0, 5.0, 6.0, 7.0, 16.0, 17.0, 18.0, 19.0]);
    close(&second(x.dsplit(4).unwrap()), &[1.0, 5.0, 9.0, 13.0, 17.0, 21.0]);
    close(&second(x.ravel().hsplit(12).unwrap()), &[2.0, 3.0]);
    assert_eq!(x.slice(1, 3..).hsplit(5).unwrap().len(), 5);
    for parts in [x.hsplit(2), x.hsplit(0), x.ravel().vsplit(2), x.select(0, 0).dsplit(1), x.sum(9).vsplit(1)]
    {
        assert!(parts.is_err());
    }
    assert_eq!((x.numel().unwrap(), x.ndim().unwrap()), (24, 3));
    assert_eq!([0, -2, 2, 3, -4].map(|axis| x.size(axis).ok()), [Some(2), Some(3), Some(4), None, None]);
}
