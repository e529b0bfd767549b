//! Fourier transforms, as products of matrices: a transform of `r * m` elements is one of `r` for each of `m` columns,
//! a turn of each result, and one of `m` for each of `r` rows (J. W. Cooley, J. W. Tukey, 1965). There is no complex
//! dtype: real and imaginary parts are tensors of their own.

use std::f64::consts::TAU;
use std::num::NonZeroUsize;
use std::sync::{LazyLock, Mutex, PoisonError};

use lru::LruCache;
use rustc_hash::FxHashMap;

use crate::tensor::arguments::call::Call;
use crate::{DType, Device, Result, Shape, Tensor};

/// The real and the imaginary part.
type Complex = (Tensor, Tensor);

impl Tensor {
    /// The discrete Fourier transform of complex numbers along an axis, of which this tensor has the real parts: real and
    /// imaginary parts of `Σ x[t] * exp(-2πi * k * t / n)`. PyTorch's and NumPy's `fft.fft`. Any number of elements; the best
    /// are products of small primes.
    ///
    /// 16-bit floats are computed in `F32` and rounded once. Invalid for integers and bools, if shapes or dtypes of the parts
    /// differ, and for no elements along the axis.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 0.0], [4]);
    /// let (re, im) = x.fft(&x.zeros_like(), 0);
    /// assert_eq!(re.to_vec::<f32>()?, [1.0; 4]);
    /// assert_eq!(im.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fft(&self, imaginary: impl AsRef<Tensor>, axis: isize) -> (Tensor, Tensor) {
        let imaginary = imaginary.as_ref();
        let call = Call::here("fft");
        both(call, || along(call, (self, imaginary), axis, |re, im| forward(call, re, Some(im))))
    }

    /// The inverse of [`Tensor::fft`]: `Σ x[k] * exp(2πi * k * t / n) / n`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], [4]);
    /// let (re, im) = x.fft(&x, 0);
    /// let (back, _) = re.ifft(&im, 0);
    /// assert_eq!(back.round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ifft(&self, imaginary: impl AsRef<Tensor>, axis: isize) -> (Tensor, Tensor) {
        let imaginary = imaginary.as_ref();
        let call = Call::here("ifft");
        both(call, || along(call, (self, imaginary), axis, |re, im| inverse(call, re, im)))
    }

    /// [`Tensor::fft`] of real numbers, of whose `n` results the first `n / 2 + 1` say all.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (re, im) = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]).rfft(0);
    /// assert_eq!(re.to_vec::<f32>()?, [10.0, -2.0, -2.0]);
    /// assert_eq!(im.round_decimals(4).to_vec::<f32>()?, [0.0, 2.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rfft(&self, axis: isize) -> (Tensor, Tensor) {
        let call = Call::here("rfft");
        both(call, || along(call, (self, self), axis, |x, _| forward_half(call, x)))
    }

    /// The inverse of [`Tensor::rfft`]: `n` real numbers of their `n / 2 + 1` results. `n` must be given, because an even
    /// and an odd number have as many.
    ///
    /// Invalid for what [`Tensor::fft`] is, and for another number of elements along the axis.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (re, im) = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]).rfft(0);
    /// assert_eq!(re.irfft(&im, 4, 0).round_decimals(4).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn irfft(&self, imaginary: impl AsRef<Tensor>, n: usize, axis: isize) -> Tensor {
        let imaginary = imaginary.as_ref();
        let call = Call::here("irfft");
        call.composed(|| {
            along(call, (self, imaginary), axis, |re, im| {
                let real = inverse_half(call, re, im, n)?;
                Ok((real.clone(), real))
            })
            .map(|(real, _)| real)
        })
    }
}

/// Two results of one call, both invalid where it fails.
pub(crate) fn both(call: Call, f: impl FnOnce() -> Result<Complex>) -> Complex {
    call.compose(f).unwrap_or_else(|error| (Tensor::invalid(error.clone()), Tensor::invalid(error)))
}

/// What `f` makes of the parts with the axis last, in the dtype of their arithmetic.
fn along(
    call: Call,
    (re, im): (&Tensor, &Tensor),
    axis: isize,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Complex>,
) -> Result<Complex> {
    let ((shape, dtype), (other, other_dtype)) = (re.known()?, im.known()?);
    call.needs_float(re)?;
    if shape != other || dtype != other_dtype {
        return call.fail(format!(
            "real and imaginary parts must be alike, got {dtype} {shape} and {other_dtype} {other}"
        ));
    }
    let axis = call.axis(axis, shape)?;
    if shape[axis] == 0 {
        return call.fail(format!("axis {axis} of shape {shape} has no elements to transform"));
    }
    let axis = axis as isize;
    let last = |x: &Tensor| x.movedim(axis, -1).cast(dtype.compute());
    let (re, im) = f(&last(re), &last(im))?;
    let back = |x: Tensor| x.cast(dtype).movedim(-1, axis);
    Ok((back(re), back(im)))
}

/// Up to here, one product with a matrix of all turns is as fast as several with smaller ones.
const DIRECT: usize = 128;
/// The same of real numbers, which have half as many turns.
const DIRECT_HALF: usize = 512;
/// The largest matrix of a step.
const MOST_ROWS: usize = 64;
/// What a step costs beside its products, in multiplications for each element.
const STEP: usize = 16;

/// How many elements a transform has along the last axis.
fn length(x: &Tensor) -> usize {
    x.node.shape.last().copied().unwrap_or(1)
}

/// Multiplications for each element, and the rows of the first step; `None` if a prime is too large for that.
fn best(n: usize, known: &mut FxHashMap<usize, (usize, Option<usize>)>) -> (usize, Option<usize>) {
    if let Some(&best) = known.get(&n) {
        return best;
    }
    let mut least = (if n <= DIRECT { n } else { usize::MAX }, None);
    for rows in (2..=MOST_ROWS.min(n / 2)).filter(|rows| n.is_multiple_of(*rows)) {
        let cost = best(n / rows, known).0.saturating_add(rows + STEP);
        if cost < least.0 {
            least = (cost, Some(rows));
        }
    }
    known.insert(n, least);
    least
}

/// Along the last axis.
fn forward(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let n = length(re);
    match best(n, &mut FxHashMap::default()) {
        (usize::MAX, _) => by_convolution(call, re, im),
        (_, None) => {
            let (cos, sin) = table(call, Table::Turns { rows: n, columns: n, of: n }, re)?;
            Ok(turned(re, im, |x| x.matmul(&cos), |x| x.matmul(&sin)))
        }
        (_, Some(rows)) => {
            let columns = n / rows;
            let apart = |x: &Tensor| x.unflatten(-1, [rows, columns]);
            let (cos, sin) = table(call, Table::Turns { rows, columns: rows, of: rows }, re)?;
            let im = im.map(apart);
            let (re, im) = turned(&apart(re), im.as_ref(), |x| cos.matmul(x), |x| sin.matmul(x));
            let (cos, sin) = table(call, Table::Turns { rows, columns, of: n }, &re)?;
            let (re, im) = turned(&re, Some(&im), |x| x * &cos, |x| x * &sin);
            let (re, im) = forward(call, &re, Some(&im))?;
            let joined = |x: Tensor| x.transpose(-1, -2).flatten(-2..);
            Ok((joined(re), joined(im)))
        }
    }
}

/// `(re + i * im) * (cos - i * sin)`, of whatever products.
fn turned(
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

/// `exp(2πi * k)` is `exp(-2πi * k)` with the parts exchanged.
fn inverse(call: Call, re: &Tensor, im: &Tensor) -> Result<Complex> {
    let n = length(re) as f64;
    let (im, re) = forward(call, im, Some(re))?;
    Ok((re / n, im / n))
}

fn forward_half(call: Call, x: &Tensor) -> Result<Complex> {
    let n = length(x);
    let half = n / 2 + 1;
    if n <= DIRECT_HALF {
        let (cos, sin) = table(call, Table::Turns { rows: n, columns: half, of: n }, x)?;
        return Ok(turned(x, None, |x| x.matmul(&cos), |x| x.matmul(&sin)));
    }
    let (re, im) = forward(call, x, None)?;
    Ok((re.narrow(-1, 0, half), im.narrow(-1, 0, half)))
}

fn inverse_half(call: Call, re: &Tensor, im: &Tensor, n: usize) -> Result<Tensor> {
    let half = n / 2 + 1;
    if length(re) != half || n == 0 {
        return call
            .fail(format!("{n} real numbers have {half} results, got {}: pad or cut the axis", length(re)));
    }
    if n <= DIRECT_HALF {
        let (cos, sin) = table(call, Table::Halves { n }, re)?;
        return Ok(re.matmul(&cos) - im.matmul(&sin));
    }
    // The second half mirrors the first: all but the first, and of an even number the middle one.
    let mirrored = |x: &Tensor| x.narrow(-1, 1, n - half).flip(-1);
    let re = Tensor::cat(&[re, &mirrored(re)], -1);
    let im = Tensor::cat(&[im, &-mirrored(im)], -1);
    Ok(inverse(call, &re, &im)?.0)
}

/// Any number of elements: since `k * t = (k² + t² - (k - t)²) / 2`, a convolution, which is a product of transforms of a
/// power of 2 (L. I. Bluestein, 1970).
fn by_convolution(call: Call, re: &Tensor, im: Option<&Tensor>) -> Result<Complex> {
    let n = length(re);
    let Some(padded) = n.checked_mul(2).and_then(|twice| twice.checked_next_power_of_two()) else {
        return call.fail(format!("{n} elements are too many to transform"));
    };
    let (cos, sin) = table(call, Table::Squares { n, padded }, re)?;
    let [first_cos, first_sin] = [&cos, &sin].map(|x| x.narrow(0, 0, n));
    let (re, im) = turned(re, im, |x| x * &first_cos, |x| x * &first_sin);
    let wide = |x: &Tensor| {
        let mut border = vec![(0, 0); x.node.shape.rank()];
        if let Some(last) = border.last_mut() {
            last.1 = padded - n;
        }
        x.pad(&border, 0)
    };
    let (re, im) = forward(call, &wide(&re), Some(&wide(&im)))?;
    let (of_cos, of_sin) = forward(call, &cos, Some(&sin))?;
    let (re, im) = (&re * &of_cos - &im * &of_sin, re * of_sin + im * of_cos);
    let (re, im) = inverse(call, &re, &im)?;
    let first = |x: Tensor| x.narrow(-1, 0, n);
    Ok(turned(&first(re), Some(&first(im)), |x| x * &first_cos, |x| x * &first_sin))
}

/// Cosines and sines that transforms multiply by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Table {
    /// Of `2π * row * column / of`.
    Turns { rows: usize, columns: usize, of: usize },
    /// Of [`Table::Turns`], half of `n` rows, weighted so that products with both halves' numbers are the inverse.
    Halves { n: usize },
    /// Of `π * k² / n`, for k up to ±n around `padded` elements.
    Squares { n: usize, padded: usize },
}

impl Table {
    fn shape(self) -> Shape {
        match self {
            Table::Turns { rows, columns, .. } => [rows, columns].into(),
            Table::Halves { n } => [n / 2 + 1, n].into(),
            Table::Squares { padded, .. } => [padded].into(),
        }
    }

    /// Cosines and sines, each of an angle that is reduced before it is rounded.
    fn values(self) -> (Vec<f64>, Vec<f64>) {
        let turn =
            |numerator: u128, of: usize| (TAU * ((numerator % of as u128) as f64 / of as f64)).sin_cos();
        let product = |a: usize, b: usize| a as u128 * b as u128;
        let pairs: Vec<(f64, f64)> = match self {
            Table::Turns { rows, columns, of } => (0..rows)
                .flat_map(|row| (0..columns).map(move |column| turn(product(row, column), of)))
                .collect(),
            Table::Halves { n } => (0..n / 2 + 1)
                .flat_map(|row| {
                    let both = if row == 0 || 2 * row == n { 1.0 } else { 2.0 };
                    (0..n).map(move |column| {
                        let (sin, cos) = turn(product(row, column), n);
                        (sin * both / n as f64, cos * both / n as f64)
                    })
                })
                .collect(),
            Table::Squares { n, padded } => (0..padded)
                .map(|place| match place.min(padded - place) {
                    k if k < n => turn(product(k, k), 2 * n),
                    _ => (0.0, 0.0),
                })
                .collect(),
        };
        let (sin, cos) = pairs.into_iter().unzip();
        (cos, sin)
    }
}

/// Larger tables are not kept.
const LARGEST_KEPT: usize = 1 << 18;

type Kept = LruCache<(Table, DType, Option<Device>), Complex>;

/// The tables that were used last: making one takes longer than using it.
static KEPT: LazyLock<Mutex<Kept>> =
    LazyLock::new(|| Mutex::new(LruCache::new(NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN))));

/// A table in the dtype of `beside` and on its device. May only be called while a call is composed.
fn table(call: Call, table: Table, beside: &Tensor) -> Result<Complex> {
    let (shape, (_, dtype)) = (table.shape(), beside.known()?);
    call.needs_addressable(&shape)?;
    let key = (table, dtype, beside.node.device);
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept().get(&key) {
        return Ok(found.clone());
    }
    let (cos, sin) = table.values();
    let tensor = |values: Vec<f64>| {
        let tensor = match dtype {
            DType::F64 => Tensor::from_vec(values, shape.clone()),
            _ => Tensor::from_vec(values.iter().map(|&value| value as f32).collect(), shape.clone()),
        };
        beside.node.device.map_or(Ok(tensor.clone()), |device| call.transfer(&tensor, device))
    };
    let made = (tensor(cos)?, tensor(sin)?);
    if shape.elements() <= LARGEST_KEPT {
        kept().put(key, made.clone());
    }
    Ok(made)
}
