//! Composites, straight from their definitions in double precision; rounded once.

use std::f64::consts::{PI, SQRT_2};

use super::operand::broken;
use super::reduce::{Rows, mean, squared_deviations};
use super::values::{Element, Float, Values, for_any};
use crate::graph::op::{Composite, Pool2d};
use crate::{Result, Shape};

pub(super) fn composite(composite: &Composite, x: &Values, from: &Shape, to: &Shape) -> Result<Values> {
    if let Composite::MaxPool2d(pool) = composite {
        return Ok(for_any!(x, x => max_pool(x, from, to, pool)));
    }
    match x {
        Values::F16(x) => of_floats(composite, x, from, to),
        Values::BF16(x) => of_floats(composite, x, from, to),
        Values::F32(x) => of_floats(composite, x, from, to),
        Values::F64(x) => of_floats(composite, x, from, to),
        Values::Bool(_)
        | Values::U8(_)
        | Values::I8(_)
        | Values::I16(_)
        | Values::I32(_)
        | Values::U32(_)
        | Values::I64(_) => Err(broken(format!("{composite:?} is not defined for {}", x.dtype()))),
    }
}

fn of_floats<T: Float>(composite: &Composite, x: &[T], from: &Shape, to: &Shape) -> Result<Values> {
    let pointwise = |f: fn(f64) -> f64| x.iter().map(|x| T::from_real(f(x.to_f64()))).collect();
    Ok(T::wrap(match composite {
        Composite::Mean { axes } => {
            Rows::new(x, from, axes).iter().map(|row| T::from_real(mean(row))).collect()
        }
        Composite::Var { axes, correction } => {
            let rows = Rows::new(x, from, axes);
            let divisor = rows.len.saturating_sub(*correction) as f64;
            rows.iter().map(|row| T::from_real(squared_deviations(row) / divisor)).collect()
        }
        Composite::Sigmoid => pointwise(sigmoid),
        Composite::Silu => pointwise(|x| x * sigmoid(x)),
        Composite::Gelu => pointwise(|x| x / 2.0 * (1.0 + libm::erf(x / SQRT_2))),
        Composite::GeluTanh => {
            pointwise(|x| x / 2.0 * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).tanh()))
        }
        Composite::Softmax { axis } => softmax(x, from, *axis),
        Composite::LayerNorm { dims, eps_bits } => {
            let axes: Vec<usize> = (from.rank() - dims..from.rank()).collect();
            layer_norm(&Rows::new(x, from, &axes), f64::from_bits(*eps_bits))
        }
        Composite::MaxPool2d(pool) => return Ok(max_pool(x, from, to, pool)),
        Composite::AvgPool2d(pool) => {
            let count = (pool.kernel[0] * pool.kernel[1]) as f64;
            let sums = fold_windows(x, from, to, pool, 0.0, |sum, x: T| sum + x.to_f64());
            sums.into_iter().map(|sum| T::from_real(sum / count)).collect()
        }
    }))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softmax<T: Float>(x: &[T], shape: &Shape, axis: usize) -> Vec<T> {
    let mut result = x.to_vec();
    let (outer, len): (usize, usize) = (shape[..axis].iter().product(), shape[axis]);
    let inner: usize = shape[axis + 1..].iter().product();
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |k: usize| (o * len + k) * inner + i;
        let max = (0..len).map(|k| x[at(k)].to_f64()).fold(f64::NEG_INFINITY, Element::maximum);
        let sum = (0..len).fold(0.0, |sum, k| sum + (x[at(k)].to_f64() - max).exp());
        for k in 0..len {
            result[at(k)] = T::from_real((x[at(k)].to_f64() - max).exp() / sum);
        }
    }
    result
}

fn layer_norm<T: Float>(rows: &Rows<'_, T>, eps: f64) -> Vec<T> {
    let normalised = rows.iter().flat_map(|row| {
        let (mean, variance) = (mean(row), squared_deviations(row) / row.len() as f64);
        row.iter().map(move |x| T::from_real((x.to_f64() - mean) / (variance + eps).sqrt()))
    });
    normalised.collect()
}

fn max_pool<T: Element>(x: &[T], from: &Shape, to: &Shape, pool: &Pool2d) -> Values {
    T::wrap(fold_windows(x, from, to, pool, T::LEAST, T::maximum))
}

/// Combines the elements of each window of the last two dimensions; those in the padding are left out.
fn fold_windows<T: Copy, A: Copy>(
    x: &[T],
    from: &Shape,
    to: &Shape,
    pool: &Pool2d,
    start: A,
    combine: impl Fn(A, T) -> A,
) -> Vec<A> {
    let batch = to.rank() - 2;
    let (height, width) = (from[batch], from[batch + 1]);
    // Where the k-th element of the o-th window lies along one dimension of some extent.
    let position = |d: usize, o: usize, k: usize, extent: usize| {
        let padded = o * pool.stride[d] + k * pool.dilation[d];
        padded.checked_sub(pool.padding[d]).filter(|&at| at < extent)
    };
    let mut result = Vec::with_capacity(to.elements());
    for plane in 0..to[..batch].iter().product() {
        for (y, x0) in (0..to[batch]).flat_map(|y| (0..to[batch + 1]).map(move |x0| (y, x0))) {
            let mut value = start;
            for row in (0..pool.kernel[0]).filter_map(|k| position(0, y, k, height)) {
                for column in (0..pool.kernel[1]).filter_map(|k| position(1, x0, k, width)) {
                    value = combine(value, x[(plane * height + row) * width + column]);
                }
            }
            result.push(value);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::testing::{apply, close, same, tensor, try_apply};
    use super::*;
    use crate::graph::op::Op;

    fn of<T: Element>(composite: Composite, x: &[T], from: impl Into<Shape>, to: impl Into<Shape>) -> Vec<T> {
        apply(Op::Composite(composite), &[tensor(x, from)], to)
    }

    fn pool(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2], dilation: [usize; 2]) -> Pool2d {
        Pool2d { kernel, stride, padding, dilation }
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn means() {
        let mean = |axes: &[usize]| Composite::Mean { axes: axes.into() };
        assert_eq!(of(mean(&[1]), &[1.0f32, 2.0, 3.0, 6.0], [2, 2], [2]), [1.5, 4.5]);
        assert_eq!(of(mean(&[0]), &[1.0f32, 2.0, 3.0, 6.0], [2, 2], [2]), [2.0, 4.0]);
        assert_eq!(of(mean(&[]), &[3.0f32], [], []), [3.0]);
        same(&of::<f32>(mean(&[0]), &[], [0], []), &[f32::NAN]);
        assert!(try_apply::<i64>(Op::Composite(mean(&[0])), &[tensor(&[1i64], [1])], []).is_err());
    }

    #[test]
    fn variances() {
        let var = |correction| Composite::Var { axes: [0].as_slice().into(), correction };
        assert_eq!(of(var(0), &[1.0f32, 2.0, 3.0, 4.0], [4], []), [1.25]);
        assert_eq!(of(var(1), &[1.0f64, 2.0, 3.0, 4.0], [4], []), [5.0 / 3.0]);
        same(&of(var(1), &[7.0f32], [1], []), &[f32::NAN]);
        same(&of(var(5), &[1.0f64, 2.0], [2], []), &[INF]);
        same(&of::<f64>(var(0), &[], [0], []), &[f64::NAN]);
    }

    #[test]
    fn activations() {
        let x = [0.0f64, 1.0, -1.0];
        let half = 1.0 / (1.0 + 1f64.exp());
        close(&of(Composite::Sigmoid, &x, [3], [3]), &[0.5, 1.0 - half, half]);
        close(&of(Composite::Silu, &x, [3], [3]), &[0.0, 1.0 - half, -half]);
        // The normal distribution at 1 and -1: 0.841344746068542948… and 0.158655253931457051….
        close(&of(Composite::Gelu, &x, [3], [3]), &[0.0, 0.841_344_746_068_542_9, -0.158_655_253_931_457_05]);
        let tanh = (2.0 / PI).sqrt() * 1.044715;
        let tanh = tanh.tanh();
        close(&of(Composite::GeluTanh, &x, [3], [3]), &[0.0, 0.5 + tanh / 2.0, tanh / 2.0 - 0.5]);
    }

    #[test]
    fn activations_of_special_values() {
        let x = [INF, -INF, f64::NAN, -0.0];
        same(&of(Composite::Sigmoid, &x, [4], [4]), &[1.0, 0.0, f64::NAN, 0.5]);
        same(&of(Composite::Silu, &x, [4], [4]), &[INF, f64::NAN, f64::NAN, -0.0]);
        same(&of(Composite::Gelu, &x, [4], [4]), &[INF, f64::NAN, f64::NAN, -0.0]);
        same(&of(Composite::GeluTanh, &x, [4], [4]), &[INF, f64::NAN, f64::NAN, -0.0]);
        assert!(of::<f16>(Composite::Gelu, &[], [0], [0]).is_empty());
    }

    #[test]
    fn softmax_along_each_axis() {
        let x = [0.0f64, 2f64.ln(), 3f64.ln(), 0.0, 3f64.ln(), 0.0];
        let softmax = |axis| Composite::Softmax { axis };
        close(
            &of(softmax(1), &x, [2, 3], [2, 3]),
            &[1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0, 1.0 / 5.0, 3.0 / 5.0, 1.0 / 5.0],
        );
        close(&of(softmax(0), &x, [2, 3], [2, 3]), &[0.5, 0.4, 0.75, 0.5, 0.6, 0.25]);
        close(&of(softmax(1), &x, [1, 3, 2], [1, 3, 2])[..2], &[1.0 / 7.0, 0.5]);
        assert_eq!(of(softmax(0), &[1000.0f32, 1000.0], [2], [2]), [0.5, 0.5]);
        same(&of(softmax(0), &[-INF, 0.0], [2], [2]), &[0.0, 1.0]);
        same(&of(softmax(0), &[-INF, -INF], [2], [2]), &[f64::NAN; 2]);
        same(&of(softmax(0), &[INF, 0.0], [2], [2]), &[f64::NAN; 2]);
        same(&of(softmax(0), &[f64::NAN, 0.0], [2], [2]), &[f64::NAN; 2]);
        assert!(of::<f32>(softmax(1), &[], [2, 0], [2, 0]).is_empty());
    }

    #[test]
    fn layer_norm_over_the_last_dimensions() {
        let norm = |dims, eps: f64| Composite::LayerNorm { dims, eps_bits: eps.to_bits() };
        let x = [1.0f64, 3.0, 10.0, 30.0];
        assert_eq!(of(norm(1, 0.0), &x, [2, 2], [2, 2]), [-1.0, 1.0, -1.0, 1.0]);
        assert_eq!(of(norm(1, 3.0), &x[..2], [2], [2]), [-0.5, 0.5]);
        let (mean, deviation) = (11.0, 131.5f64.sqrt());
        close(&of(norm(2, 0.0), &x, [2, 2], [2, 2]), &x.map(|x| (x - mean) / deviation));
        assert!(of::<f32>(norm(1, 1e-5), &[], [3, 0], [3, 0]).is_empty());
        same(&of(norm(1, 0.0), &[2.0f32, 2.0], [2], [2]), &[f32::NAN; 2]);
    }

    #[test]
    fn max_pools_by_hand() {
        let x: Vec<i32> = (0..16).collect();
        let two = pool([2, 2], [2, 2], [0, 0], [1, 1]);
        assert_eq!(of(Composite::MaxPool2d(two), &x, [4, 4], [2, 2]), [5, 7, 13, 15]);
        let padded = pool([2, 2], [2, 2], [1, 1], [1, 1]);
        assert_eq!(of(Composite::MaxPool2d(padded), &x, [4, 4], [3, 3]), [0, 2, 3, 8, 10, 11, 12, 14, 15]);
        let x = [f32::NAN, 1.0, -3.0, -2.0];
        let row = pool([1, 2], [1, 2], [0, 0], [1, 1]);
        same(&of(Composite::MaxPool2d(row), &x, [1, 4], [1, 2]), &[f32::NAN, -2.0]);
        // Both elements of the window lie in the padding.
        let sparse = pool([1, 2], [1, 1], [0, 1], [1, 3]);
        same(&of(Composite::MaxPool2d(sparse), &[1.0, 2.0], [1, 2], [1, 1]), &[-INF]);
        assert_eq!(of(Composite::MaxPool2d(sparse), &[5u8, 6], [1, 2], [1, 1]), [0]);
        assert!(of::<f32>(Composite::MaxPool2d(two), &[], [0, 4, 4], [0, 2, 2]).is_empty());
    }

    #[test]
    fn average_pools_count_the_padding() {
        let x: Vec<f32> = (0..16).map(|x| x as f32).collect();
        let two = pool([2, 2], [2, 2], [0, 0], [1, 1]);
        assert_eq!(of(Composite::AvgPool2d(two), &x, [4, 4], [2, 2]), [2.5, 4.5, 10.5, 12.5]);
        let padded = pool([2, 2], [2, 2], [1, 1], [1, 1]);
        let expected = [0.0, 0.75, 0.75, 3.0, 7.5, 4.5, 3.0, 6.75, 3.75];
        assert_eq!(of(Composite::AvgPool2d(padded), &x, [4, 4], [3, 3]), expected);
    }

    /// Pads into a buffer first, then reads every window in full.
    fn by_padding(
        x: &[f64],
        [n, h, w]: [usize; 3],
        pool: &Pool2d,
        [oh, ow]: [usize; 2],
        max: bool,
    ) -> Vec<f64> {
        let [ph, pw] = pool.padding;
        let (hh, ww) = (h + 2 * ph, w + 2 * pw);
        let mut padded = vec![if max { -INF } else { 0.0 }; n * hh * ww];
        for (i, &x) in x.iter().enumerate() {
            padded[(i / (h * w) * hh + i / w % h + ph) * ww + i % w + pw] = x;
        }
        let mut result = Vec::new();
        for i in 0..n * oh * ow {
            let (plane, y, x) = (i / (oh * ow), i / ow % oh, i % ow);
            let mut values = Vec::new();
            for ky in 0..pool.kernel[0] {
                for kx in 0..pool.kernel[1] {
                    let row = y * pool.stride[0] + ky * pool.dilation[0];
                    let column = x * pool.stride[1] + kx * pool.dilation[1];
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
        let cases = [
            ([2, 7, 9], pool([3, 2], [2, 3], [1, 1], [2, 1]), [3, 4]),
            ([1, 5, 5], pool([3, 3], [1, 1], [1, 1], [1, 1]), [5, 5]),
            ([3, 6, 8], pool([2, 4], [1, 2], [0, 2], [3, 2]), [3, 3]),
        ];
        for (from, pool, [oh, ow]) in cases {
            // Distinct integers in a scrambled order: exact in every way of summing.
            let x: Vec<f64> =
                (0..from.iter().product()).map(|i: usize| (i * 37 % 101) as f64 - 50.0).collect();
            let to = [from[0], oh, ow];
            let expected = by_padding(&x, from, &pool, [oh, ow], true);
            assert_eq!(of(Composite::MaxPool2d(pool), &x, from, to), expected);
            let expected = by_padding(&x, from, &pool, [oh, ow], false);
            assert_eq!(of(Composite::AvgPool2d(pool), &x, from, to), expected);
        }
    }
}
