//! Transforms along the last axis: by a library on a CPU, or decomposed.

use smallvec::SmallVec;

use super::decomposition::{DIRECT, complex_decomposed, length, real_decomposed};
use super::tables::Complex;
use crate::recording::Results;
use crate::runtime::routine::{Routine, Transform};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::routine::{Source, record, takes};
use crate::tensor::make::create::counting;
use crate::{Result, Tensor};

/// Along the last axis.
pub(super) fn forward(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let parts: SmallVec<[&Tensor; 2]> = std::iter::once(re).chain(im).collect();
    match transformed(call, Transform::Forward, &parts, complex_decomposed)? {
        Some(results) => complex(call, &results, &parts, false),
        None => pair(call, complex_decomposed(call, &owned(&parts), Transform::Forward)?),
    }
}

/// [`forward`], backwards, over how many there are.
pub(super) fn inverse(call: Call, re: &Tensor, im: &Tensor) -> Result<Complex> {
    match transformed(call, Transform::Inverse, &[re, im], complex_decomposed)? {
        Some(results) => complex(call, &results, &[re, im], true),
        None => pair(call, complex_decomposed(call, &owned(&[re, im]), Transform::Inverse)?),
    }
}

/// Of real numbers.
pub(super) fn forward_half(call: Call, x: &Tensor) -> Result<Complex> {
    match transformed(call, Transform::RealToComplex, &[x], real_decomposed)? {
        Some(results) => half(call, &results, x),
        None => pair(call, real_decomposed(call, &owned(&[x]), Transform::RealToComplex)?),
    }
}

/// [`forward_half`], backwards.
pub(super) fn inverse_half(call: Call, re: &Tensor, im: &Tensor, n: usize) -> Result<Tensor> {
    let half = n / 2 + 1;
    if length(re) != half || n == 0 {
        return call
            .fail(format!("{n} real numbers have {half} results, got {}: pad or cut the axis", length(re)));
    }
    match transformed(call, Transform::ComplexToReal { n }, &[re, im], real_decomposed)? {
        Some(results) => real(call, &results, [re, im]),
        None => {
            let results = real_decomposed(call, &owned(&[re, im]), Transform::ComplexToReal { n })?;
            results.into_iter().next().ok_or_else(|| call.error("has no real numbers"))
        }
    }
}

fn owned(parts: &[&Tensor]) -> SmallVec<[Tensor; 2]> {
    parts.iter().map(|&x| x.clone()).collect()
}

fn pair(call: Call, results: Results) -> Result<Complex> {
    match &results[..] {
        [re, im] => Ok((re.clone(), im.clone())),
        _ => call.fail("has no two parts"),
    }
}

/// Real numbers in lines shorter than this are one product with a matrix in less time than the library takes, where there are many lines
/// (`benches/notes/fourier.md`).
const SHORT: usize = 32;
const MANY_LINES: usize = 1000;
/// In a step of a scan, lines of this length and shorter are one product, which is part of the kernels around it: ten steps with `rfft` and
/// `irfft` of 64 numbers take 0.09 ms, and by the library 0.29.
const SHORT_IN_STEPS: usize = 64;

/// Whether a library transforms parts along the last axis.
fn is_by_library(transform: Transform, parts: &[&Tensor]) -> bool {
    let Some(&first) = parts.first() else { return false };
    let (n, is_real) = match transform {
        Transform::Forward | Transform::Inverse => (length(first), false),
        Transform::RealToComplex => (length(first), true),
        Transform::ComplexToReal { n } => (n, true),
    };
    let elements = first.node.shape.elements();
    let is_many = || elements / length(first).max(1) >= MANY_LINES;
    let is_product =
        n <= DIRECT || is_real && n < SHORT && is_many() || first.node.is_of_step && n <= SHORT_IN_STEPS;
    elements > 0 && !is_product && parts.iter().all(|x| takes(x))
}

/// The transform of parts along the last axis, if a library takes them. `decomposition` makes the same.
fn transformed(
    call: Call,
    transform: Transform,
    parts: &[&Tensor],
    decomposition: fn(Call, &[Tensor], Transform) -> Result<Results>,
) -> Result<Option<Results>> {
    parts.iter().try_for_each(|x| x.validity())?;
    if !is_by_library(transform, parts) {
        return Ok(None);
    }
    let is_line = parts.iter().any(|x| x.node.shape.rank() == 1);
    let rows = |x: &&Tensor| if is_line { x.unsqueeze(0) } else { (*x).clone() };
    let mut read: SmallVec<[Source; 2]> = parts.iter().map(|x| Source::of(&rows(x))).collect();
    // Columns of what lies there, and of what is made.
    let along_columns = read.iter().all(|read| read.is_transposed);
    if !along_columns {
        read = parts.iter().map(|x| Source { tensor: rows(x), is_transposed: false }).collect();
    }
    read.iter_mut().for_each(|read| read.is_transposed = false);
    let turned = move |x: &Tensor| if along_columns { x.transpose(-1, -2) } else { x.clone() };
    let decomposition = move |read: &[Tensor]| {
        let rows: Vec<Tensor> = read.iter().map(turned).collect();
        Ok(decomposition(call, &rows, transform)?.iter().map(turned).collect())
    };
    let results = record(call, Routine::Fourier { transform, along_columns }, &read, decomposition)?;
    Ok(Some(results.iter().map(|x| if is_line { x.squeeze(0) } else { turned(x) }).collect()))
}

/// Both parts of a transform of complex numbers, of which `real` ones have no imaginary part, with their gradients.
fn complex(call: Call, results: &Results, parts: &[&Tensor], is_back: bool) -> Result<Complex> {
    let [re, im] = &results[..] else { return call.fail("has no two parts") };
    let part = |x: &Tensor, number: usize| {
        let is_real = parts.len() == 1;
        call.derived(x, parts, move |g, _| {
            let n = length(g) as f64;
            let none = g.zeros_like();
            let (re, im) = if number == 0 { (g, &none) } else { (&none, g) };
            // The conjugate of the matrix, transposed: the transform backwards.
            let (re, im) = match is_back {
                false => inverse(call, &(re * n), &(im * n))?,
                true => forward(call, &(re / n), Some(&(im / n)))?,
            };
            Ok(if is_real { vec![re] } else { vec![re, im] })
        })
    };
    Ok((part(re, 0), part(im, 1)))
}

/// Both parts of a half transform of real numbers, with their gradients.
fn half(call: Call, results: &Results, x: &Tensor) -> Result<Complex> {
    let [re, im] = &results[..] else { return call.fail("has no two parts") };
    let n = length(x);
    let part = |result: &Tensor, number: usize| {
        call.derived(result, &[x], move |g, _| {
            let shares = g * &weights(g, n, 0.5) * n as f64;
            let none = shares.zeros_like();
            let (re, im) = if number == 0 { (&shares, &none) } else { (&none, &shares) };
            Ok(vec![inverse_half(call, re, im, n)?])
        })
    };
    Ok((part(re, 0), part(im, 1)))
}

/// Real numbers of a half transform, with their gradients.
fn real(call: Call, results: &Results, parts: [&Tensor; 2]) -> Result<Tensor> {
    let [x] = &results[..] else { return call.fail("has no real numbers") };
    Ok(call.derived(x, &parts, move |g, all| {
        let n = length(g);
        let (re, im) = forward_half(call, g)?;
        let weights = weights(&all[1], n, 2.0) / n as f64;
        Ok(vec![re * &weights, im * weights])
    }))
}

/// 1 for those of the `n / 2 + 1` results that stand for themselves alone, and `others` for those that stand for two.
fn weights(of: &Tensor, n: usize, others: f64) -> Tensor {
    let number = counting(n / 2 + 1);
    let is_alone = number.eq(0).logical_or((&number * 2).eq(n as i64));
    is_alone.where_(1.0, Tensor::scalar(others)).cast(of.node.dtype)
}
