//! Transforms of `r * m` elements in passes: one of `r` elements for each of `m` columns, a turn of each result, and one of
//! `m` for each of `r` rows (J. W. Cooley, J. W. Tukey, 1965).

use std::f64::consts::TAU;

use super::tables::{Complex, Table, table};
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

/// How many elements are combined in registers. The texts of 6, and of 10 and more, are so long that these kernels would be divided.
const BUTTERFLIES: [usize; 7] = [2, 3, 4, 5, 7, 8, 9];

/// The largest prime factor of a pass, which is a product with a matrix.
const MOST_ROWS: usize = 64;

/// How many elements each pass combines; `None` if a prime factor is too large for one.
pub(super) fn radices(n: usize) -> Option<Vec<usize>> {
    let mut primes = Vec::new();
    let mut rest = n;
    let mut factor = 2;
    while rest > 1 && factor <= MOST_ROWS {
        if rest.is_multiple_of(factor) {
            (rest, _) = (rest / factor, primes.push(factor));
        } else {
            factor += 1;
        }
    }
    if rest > 1 {
        return None;
    }
    let (small, mut radices): (Vec<usize>, Vec<usize>) =
        primes.into_iter().partition(|prime| BUTTERFLIES.contains(prime));
    radices.extend(fewest(small.iter().product()));
    // The last ones have few columns: lanes go along their rows.
    radices.sort_unstable();
    Some(radices)
}

/// The fewest factors of butterflies, as alike as they can be, of a product of such.
fn fewest(n: usize) -> Vec<usize> {
    if n == 1 {
        return Vec::new();
    }
    let with = |first: usize| {
        let mut factors = fewest(n / first);
        factors.push(first);
        factors
    };
    let choices = BUTTERFLIES.into_iter().filter(|first| n.is_multiple_of(*first)).map(with);
    choices.min_by_key(|factors| (factors.len(), factors.iter().sum::<usize>())).unwrap_or_default()
}

/// Along the last axis. Before each pass it is in two: results so far, in their order, and what is left to combine.
pub(super) fn transformed(
    call: Call,
    re: &Tensor,
    im: Option<&Tensor>,
    radices: &[usize],
) -> Result<Complex> {
    let mut x = Number { re: re.unsqueeze(-2), im: im.map(|im| im.unsqueeze(-2)) };
    let mut left: usize = radices.iter().product();
    for &radix in radices {
        let columns = left / radix;
        let parts = x.map(|x| x.unflatten(-1, [radix, columns]));
        let mut y = match BUTTERFLIES.contains(&radix) {
            true => {
                let parts = (0..radix).map(|part| parts.map(|x| x.select(-2, part as isize))).collect();
                Number::stack(&butterfly(parts))
            }
            false => {
                let (cos, sin) = table(call, Table::Turns { rows: radix, columns: radix, of: radix }, re)?;
                let products = |table: &Tensor, x: &Tensor| table.matmul(x).transpose(-2, -3);
                let (re, im) = (&parts.re, parts.im.as_ref());
                let (re, im) = turned(re, im, |x| products(&cos, x), |x| products(&sin, x));
                Number { re, im: Some(im) }
            }
        };
        if columns > 1 {
            let (cos, sin) = table(call, Table::Turns { rows: radix, columns, of: left }, re)?;
            let (cos, sin) = (cos.unsqueeze(1), sin.unsqueeze(1));
            let (re, im) = turned(&y.re, y.im.as_ref(), |x| x * &cos, |x| x * &sin);
            y = Number { re, im: Some(im) };
        }
        x = y.map(|x| x.flatten(-3..-1));
        left = columns;
    }
    let x = x.map(|x| x.squeeze(-1));
    let im = x.im.unwrap_or_else(|| x.re.zeros_like());
    Ok((x.re, im))
}

/// `(re + i * im) * (cos - i * sin)`, of whatever products.
pub(super) fn turned(
    re: &Tensor,
    im: Option<&Tensor>,
    cos: impl Fn(&Tensor) -> Tensor,
    sin: impl Fn(&Tensor) -> Tensor,
) -> Complex {
    match im {
        Some(im) => (cos(re) + sin(im), cos(im) - sin(re)),
        None => (cos(re), -sin(re)),
    }
}

/// A complex number, or a real one.
#[derive(Clone)]
struct Number {
    re: Tensor,
    im: Option<Tensor>,
}

impl Number {
    fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Number {
        Number { re: f(&self.re), im: self.im.as_ref().map(f) }
    }

    fn plus(&self, other: &Number) -> Number {
        let im = match (&self.im, &other.im) {
            (Some(a), Some(b)) => Some(a + b),
            (one, None) | (None, one) => one.clone(),
        };
        Number { re: &self.re + &other.re, im }
    }

    fn minus(&self, other: &Number) -> Number {
        let im = match (&self.im, &other.im) {
            (Some(a), Some(b)) => Some(a - b),
            (one, None) => one.clone(),
            (None, Some(b)) => Some(-b),
        };
        Number { re: &self.re - &other.re, im }
    }

    /// Times `-i`.
    fn quarter(&self) -> Number {
        Number { re: self.im.clone().unwrap_or_else(|| self.re.zeros_like()), im: Some(-&self.re) }
    }

    /// Times `exp(-2πi * part / of)`.
    fn turned(&self, part: usize, of: usize) -> Number {
        match part % of {
            0 => self.clone(),
            part if part * 4 == of => self.quarter(),
            part => {
                let (sin, cos) = (TAU * part as f64 / of as f64).sin_cos();
                let (re, im) = turned(&self.re, self.im.as_ref(), |x| x * cos, |x| x * sin);
                Number { re, im: Some(im) }
            }
        }
    }

    /// Side by side along an axis before the last two.
    fn stack(parts: &[Number]) -> Number {
        let re: Vec<&Tensor> = parts.iter().map(|part| &part.re).collect();
        let zeros = parts[0].re.zeros_like();
        let is_real = parts.iter().all(|part| part.im.is_none());
        let im: Vec<&Tensor> = parts.iter().map(|part| part.im.as_ref().unwrap_or(&zeros)).collect();
        Number { re: Tensor::stack(&re, -3), im: (!is_real).then(|| Tensor::stack(&im, -3)) }
    }
}

/// The transform of a few elements: of a multiple of a prime number in steps, as [`transformed`] is.
fn butterfly(x: Vec<Number>) -> Vec<Number> {
    let n = x.len();
    let Some(prime) = (2..n).find(|prime| n.is_multiple_of(*prime)) else { return of_prime(&x) };
    let columns = n / prime;
    let each = |first: usize| butterfly(x.iter().skip(first).step_by(prime).cloned().collect());
    let parts: Vec<Vec<Number>> = (0..prime).map(each).collect();
    let mut rows: Vec<Vec<Number>> = Vec::new();
    for column in 0..columns {
        let row: Vec<Number> = parts
            .iter()
            .enumerate()
            .map(|(part, results)| results[column].turned(part * column, n))
            .collect();
        rows.push(of_prime(&row));
    }
    (0..n).map(|k| rows[k % columns][k / columns].clone()).collect()
}

/// Pairs of elements that are as far from the first have the same cosines, and opposite sines.
fn of_prime(x: &[Number]) -> Vec<Number> {
    let n = x.len();
    if let [a, b] = x {
        return vec![a.plus(b), a.minus(b)];
    }
    let half = n / 2;
    let pairs: Vec<(Number, Number)> =
        (1..=half).map(|at| (x[at].plus(&x[n - at]), x[at].minus(&x[n - at]).quarter())).collect();
    let mut results = vec![pairs.iter().fold(x[0].clone(), |sum, (even, _)| sum.plus(even))];
    let mut back = Vec::new();
    for k in 1..=half {
        let weighed = |at: usize| (TAU * ((k * at) % n) as f64 / n as f64).sin_cos();
        let terms = pairs.iter().enumerate().map(|(place, (sum, difference))| {
            let (sin, cos) = weighed(place + 1);
            (sum.map(|x| x * cos), difference.map(|x| x * sin))
        });
        let (even, odd): (Vec<Number>, Vec<Number>) = terms.unzip();
        let even = even.iter().fold(x[0].clone(), |sum, term| sum.plus(term));
        let Some(odd) = odd.into_iter().reduce(|sum, term| sum.plus(&term)) else { continue };
        results.push(even.plus(&odd));
        back.push(even.minus(&odd));
    }
    back.reverse();
    results.extend(back);
    results
}
