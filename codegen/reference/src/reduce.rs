//! Reductions: every result is computed from one contiguous row of its operands.

use std::borrow::Cow;

use lazuli_codegen::{DType, ReduceOp};
use smallvec::SmallVec;

use crate::error::broken;
use crate::extents::{self, Extents};
use crate::values::{Float, for_any};
use crate::views::gather;
use crate::{Element, Result, Values};

/// For each result, the elements that it combines, row-major within the reduced axes.
pub(crate) struct Rows<'a, T: Copy> {
    elements: Cow<'a, [T]>,
    count: usize,
    /// Elements in each row.
    len: usize,
}

impl<'a, T: Copy> Rows<'a, T> {
    pub(crate) fn new(x: &'a [T], shape: &[usize], axes: &[usize]) -> Rows<'a, T> {
        let order = order(shape, axes);
        let (kept, along) = order.extents.split_at(shape.len() - axes.len());
        let elements = match order.is_sorted {
            true => Cow::Borrowed(x),
            false => Cow::Owned(gather(x, 0, &order.extents, &order.strides)),
        };
        Rows { elements, count: extents::elements(kept), len: along.iter().product() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.count).map(|n| &self.elements[n * self.len..][..self.len])
    }
}

/// The axes of an array, others before some.
struct Order {
    extents: Extents,
    strides: SmallVec<[i64; 6]>,
    /// They are so already.
    is_sorted: bool,
}

fn order(shape: &[usize], axes: &[usize]) -> Order {
    let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
    let order: Extents = kept.chain(axes.iter().copied()).collect();
    let own = extents::strides(shape);
    Order {
        extents: order.iter().map(|&axis| shape[axis]).collect(),
        strides: order.iter().map(|&axis| own[axis] as i64).collect(),
        is_sorted: order.is_sorted(),
    }
}

/// The elements along the axes, combined. Sums and products of floats are of double precision, and rounded once.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if that is not defined for the dtype, or an extreme is asked of nothing.
///
/// ```
/// use lazuli_codegen::ReduceOp;
/// use lazuli_reference::{Values, reduce};
/// let x = Values::F32(vec![1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(reduce(ReduceOp::Sum, &x, &[2, 2], &[0]), Ok(Values::F32(vec![4.0, 6.0])));
/// ```
pub fn reduce(op: ReduceOp, x: &Values, shape: &[usize], axes: &[usize]) -> Result<Values> {
    let result = match op {
        ReduceOp::Max => return extreme(x, shape, axes, true),
        ReduceOp::Min => return extreme(x, shape, axes, false),
        ReduceOp::ArgMax => return position(x, shape, axes, true),
        ReduceOp::ArgMin => return position(x, shape, axes, false),
        _ => match x {
            Values::F16(x) => float(op, &Rows::new(x, shape, axes)),
            Values::BF16(x) => float(op, &Rows::new(x, shape, axes)),
            Values::F32(x) => float(op, &Rows::new(x, shape, axes)),
            Values::F64(x) => float(op, &Rows::new(x, shape, axes)),
            integers => integer(op, integers, shape, axes),
        },
    };
    result.ok_or_else(|| broken(format!("{op} is not defined for {}", x.dtype())))
}

fn extreme(x: &Values, shape: &[usize], axes: &[usize], largest: bool) -> Result<Values> {
    fn of_rows<T: Element>(rows: &Rows<'_, T>, combine: fn(T, T) -> T) -> Option<Values> {
        let results: Option<Vec<T>> = rows.iter().map(|row| row.iter().copied().reduce(combine)).collect();
        results.map(T::wrap)
    }
    let result = for_any!(x, x => {
        of_rows(&Rows::new(x, shape, axes), if largest { Element::maximum } else { Element::minimum })
    });
    result.ok_or_else(|| broken(format!("no largest or smallest of nothing: shape {shape:?} along {axes:?}")))
}

/// The first NaN, or else the first of the extreme values.
fn position(x: &Values, shape: &[usize], axes: &[usize], largest: bool) -> Result<Values> {
    fn of_rows<T: Element>(rows: &Rows<'_, T>, largest: bool) -> Option<Values> {
        let is_nan = |x: T| x.partial_cmp(&x).is_none();
        let of_row = |row: &[T]| {
            let mut best: Option<(usize, T)> = None;
            for (n, &x) in row.iter().enumerate() {
                let is_first = best.is_none_or(|(_, best)| {
                    let beats = if largest { x > best } else { x < best };
                    !is_nan(best) && (is_nan(x) || beats)
                });
                if is_first {
                    best = Some((n, x));
                }
            }
            best.map(|(n, _)| n as i64)
        };
        rows.iter().map(of_row).collect::<Option<_>>().map(Values::I64)
    }
    let result = for_any!(x, x => of_rows(&Rows::new(x, shape, axes), largest));
    result.ok_or_else(|| broken(format!("no largest or smallest of nothing: shape {shape:?} along {axes:?}")))
}

fn integer(op: ReduceOp, x: &Values, shape: &[usize], axes: &[usize]) -> Option<Values> {
    let (nothing, combine) = of_integers(op, x.dtype())?;
    let elements = x.integers()?;
    let rows = Rows::new(&elements, shape, axes);
    Some(Values::of_integers(x.dtype(), rows.iter().map(|row| row.iter().copied().fold(nothing, combine))))
}

/// What integers are combined by.
type OfIntegers = fn(i64, i64) -> i64;

/// What a monoid of one operation is of no integers, and the operation: as it is declared.
pub(crate) fn of_integers(op: ReduceOp, dtype: DType) -> Option<(i64, OfIntegers)> {
    let combine = op.plain().filter(|_| op.accepts(dtype))?;
    Some((op.identity(dtype).as_i64(), combine.integers()?))
}

fn float<T: Float>(op: ReduceOp, rows: &Rows<'_, T>) -> Option<Values> {
    let function: fn(&[T]) -> f64 = match op {
        ReduceOp::Sum => sum,
        ReduceOp::Prod => |row| row.iter().fold(1.0, |product, x| product * x.to_f64()),
        ReduceOp::LogSumExp => {
            |row| row.iter().fold(f64::NEG_INFINITY, |sum, x| log_add_exp(sum, x.to_f64()))
        }
        ReduceOp::SquaredDeviations => squared_deviations,
        ReduceOp::SumExp => sum_exp,
        _ => return None,
    };
    Some(T::wrap(rows.iter().map(|row| T::from_real(function(row))).collect()))
}

/// `log(exp(a) + exp(b))`; infinities of one sign, whose difference is NaN, are what they are.
pub(crate) fn log_add_exp(a: f64, b: f64) -> f64 {
    let (least, most) = if a < b { (a, b) } else { (b, a) };
    if a == b && a.is_infinite() { a } else { most + (least - most).exp().ln_1p() }
}

pub(crate) fn sum<T: Float>(row: &[T]) -> f64 {
    row.iter().fold(0.0, |sum, x| sum + x.to_f64())
}

pub(crate) fn mean<T: Float>(row: &[T]) -> f64 {
    sum(row) / row.len() as f64
}

pub(crate) fn squared_deviations<T: Float>(row: &[T]) -> f64 {
    let mean = mean(row);
    row.iter().fold(0.0, |sum, x| sum + (x.to_f64() - mean) * (x.to_f64() - mean))
}

/// By its definition: the maximum first.
fn sum_exp<T: Float>(row: &[T]) -> f64 {
    let max = row.iter().copied().reduce(Element::maximum).map_or(0.0, Float::to_f64);
    row.iter().fold(0.0, |sum, x| sum + (x.to_f64() - max).exp())
}
