//! Transforms along the last axis as products and passes.

use smallvec::smallvec;

use super::passes::{self, turned};
use super::tables::{Complex, Table, table};
use crate::recording::Results;
use crate::runtime::routine::Transform;
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

/// Up to here, a transform is one product with a matrix of all turns.
pub(super) const DIRECT: usize = 16;
/// The same of real numbers, which have half as many turns.
const DIRECT_HALF: usize = 112;

/// How many elements a transform has along the last axis.
pub(super) fn length(x: &Tensor) -> usize {
    x.node.shape.last().copied().unwrap_or(1)
}

/// Of parts along the last axis, in both directions.
pub(super) fn complex_decomposed(call: Call, parts: &[Tensor], transform: Transform) -> Result<Results> {
    let (re, im) = match (transform, parts) {
        (Transform::Inverse, [re, im]) => inverse_decomposed(call, re, im)?,
        (_, [re, others @ ..]) => forward_decomposed(call, re, others.first())?,
        _ => return call.fail("needs real parts"),
    };
    Ok(smallvec![re, im])
}

/// Of real numbers along the last axis, in both directions.
pub(super) fn real_decomposed(call: Call, parts: &[Tensor], transform: Transform) -> Result<Results> {
    match (transform, parts) {
        (Transform::ComplexToReal { n }, [re, im]) => {
            Ok(smallvec![inverse_half_decomposed(call, re, im, n)?])
        }
        (_, [x, ..]) => {
            let (re, im) = forward_half_decomposed(call, x)?;
            Ok(smallvec![re, im])
        }
        _ => call.fail("needs real parts"),
    }
}

fn forward_decomposed(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let n = length(re);
    if n <= DIRECT {
        let (cos, sin) = table(call, Table::Turns { rows: n, columns: n, of: n }, re)?;
        return Ok(turned(re, im, |x| x.matmul(&cos), |x| x.matmul(&sin)));
    }
    match passes::radices(n) {
        Some(radices) => passes::transformed(call, re, im, &radices),
        None => by_convolution(call, re, im),
    }
}

/// `exp(2πi * k)` is `exp(-2πi * k)` with the parts exchanged.
fn inverse_decomposed(call: Call, re: &Tensor, im: &Tensor) -> Result<Complex> {
    let n = length(re) as f64;
    let (im, re) = forward_decomposed(call, &(im / n), Some(&(re / n)))?;
    Ok((re, im))
}

/// Every second one is the imaginary part of the one before it, which halves an even number of them:
/// results at `k` and at `n / 2 - k` are sums and differences of what follows from the two parts.
fn forward_half_decomposed(call: Call, x: &Tensor) -> Result<Complex> {
    let n = length(x);
    let half = n / 2 + 1;
    if n <= DIRECT_HALF {
        let (cos, sin) = table(call, Table::Turns { rows: n, columns: half, of: n }, x)?;
        return Ok(turned(x, None, |x| x.matmul(&cos), |x| x.matmul(&sin)));
    }
    if !n.is_multiple_of(2) {
        let (re, im) = forward_decomposed(call, x, None)?;
        return Ok((re.narrow(-1, 0, half), im.narrow(-1, 0, half)));
    }
    let pairs = x.unflatten(-1, [n / 2, 2]);
    let (re, im) = forward_decomposed(call, &pairs.select(-1, 0), Some(&pairs.select(-1, 1)))?;
    let around = |x: &Tensor| Tensor::cat(&[x, &x.narrow(-1, 0, 1)], -1);
    let (re, im) = (around(&re), around(&im));
    let (re_back, im_back) = (re.flip(-1), im.flip(-1));
    let (even_re, even_im) = ((&re + &re_back) * 0.5, (&im - &im_back) * 0.5);
    let (odd_re, odd_im) = ((&im + &im_back) * 0.5, (&re_back - &re) * 0.5);
    let (cos, sin) = table(call, Table::Circle { rows: half, of: n }, x)?;
    let (re, im) = turned(&odd_re, Some(&odd_im), |x| x * &cos, |x| x * &sin);
    Ok((even_re + re, even_im + im))
}

/// [`forward_half_decomposed`], backwards.
fn inverse_half_decomposed(call: Call, re: &Tensor, im: &Tensor, n: usize) -> Result<Tensor> {
    let half = n / 2 + 1;
    // What results of real numbers have no imaginary parts of: the first, and of an even number the one in the middle.
    let middle = usize::from(n.is_multiple_of(2));
    let im = &padded(&im.narrow(-1, 1, half - 1 - middle), 1, middle);
    if n <= DIRECT_HALF {
        let (cos, sin) = table(call, Table::Halves { n }, re)?;
        return Ok(re.matmul(&cos) - im.matmul(&sin));
    }
    if !n.is_multiple_of(2) {
        // The second half mirrors the first.
        let mirrored = |x: &Tensor| x.narrow(-1, 1, n - half).flip(-1);
        let re = Tensor::cat(&[re, &mirrored(re)], -1);
        let im = Tensor::cat(&[im, &-mirrored(im)], -1);
        return Ok(inverse_decomposed(call, &re, &im)?.0);
    }
    let first = |x: &Tensor| x.narrow(-1, 0, n / 2);
    let (re_back, im_back) = (first(&re.flip(-1)), first(&im.flip(-1)));
    let (re, im) = (first(re), first(im));
    let (even_re, even_im) = ((&re + &re_back) * 0.5, (&im - &im_back) * 0.5);
    let (odd_re, odd_im) = ((&re - &re_back) * 0.5, (&im + &im_back) * 0.5);
    let (cos, sin) = table(call, Table::Circle { rows: n / 2, of: n }, &re)?;
    // Turned back.
    let (odd_im, odd_re) = turned(&odd_im, Some(&odd_re), |x| x * &cos, |x| x * &sin);
    let (re, im) = inverse_decomposed(call, &(even_re - odd_im), &(even_im + odd_re))?;
    Ok(Tensor::stack(&[re, im], -1).flatten(-2..))
}

/// With zeros along the last axis, so many before and after.
fn padded(x: &Tensor, before: usize, after: usize) -> Tensor {
    let mut border = vec![(0, 0); x.node.shape.rank()];
    if let Some(last) = border.last_mut() {
        *last = (before, after);
    }
    x.pad(&border, 0)
}

/// Any number of elements: since `k * t = (k² + t² - (k - t)²) / 2`, a convolution, which is a product of transforms of a
/// power of 2 (L. I. Bluestein, 1970).
fn by_convolution(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let n = length(re);
    let Some(padded_length) = n.checked_mul(2).and_then(|twice| twice.checked_next_power_of_two()) else {
        return call.fail(format!("{n} elements are too many to transform"));
    };
    let (cos, sin) = table(call, Table::Squares { n, padded: padded_length }, re)?;
    let [first_cos, first_sin] = [&cos, &sin].map(|x| x.narrow(0, 0, n));
    let (re, im) = turned(re, im, |x| x * &first_cos, |x| x * &first_sin);
    let wide = |x: &Tensor| padded(x, 0, padded_length - n);
    let (re, im) = forward_decomposed(call, &wide(&re), Some(&wide(&im)))?;
    let (of_cos, of_sin) = forward_decomposed(call, &cos, Some(&sin))?;
    let (re, im) = (&re * &of_cos - &im * &of_sin, re * of_sin + im * of_cos);
    let (re, im) = inverse_decomposed(call, &re, &im)?;
    let first = |x: Tensor| x.narrow(-1, 0, n);
    Ok(turned(&first(re), Some(&first(im)), |x| x * &first_cos, |x| x * &first_sin))
}
