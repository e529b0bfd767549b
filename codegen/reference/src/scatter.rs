//! Combining at positions that are values.

use lazuli_codegen::{DType, ReduceOp, Scalar};

use crate::error::broken;
use crate::extents::elements;
use crate::gather::integers;
use crate::reduce::of_integers;
use crate::values::{Float, for_any};
use crate::{Element, Error, Result, Values};

/// At each of `to[axis]` positions of the axis, those elements of x combined whose index says this one: one after the
/// other, in the order that they are in. `from` are the extents of x and of the index, `to` those of the result.
///
/// # Errors
/// [`Error::IndexOutOfRange`]; [`Error::Broken`] if the index is of no integers, or that is not defined for the dtype.
///
/// ```
/// use lazuli_codegen::ReduceOp;
/// use lazuli_reference::{Values, scatter};
/// let (x, index) = (Values::F32(vec![1.0, 2.0, 4.0]), Values::U8(vec![1, 1, 0]));
/// assert_eq!(scatter(ReduceOp::Sum, &x, &[3], &index, &[2], 0), Ok(Values::F32(vec![4.0, 3.0])));
/// ```
pub fn scatter(
    op: ReduceOp,
    x: &Values,
    from: &[usize],
    index: &Values,
    to: &[usize],
    axis: usize,
) -> Result<Values> {
    let (count, extent) = (from[axis], to[axis]);
    let inner: usize = from[axis + 1..].iter().product();
    let mut targets = Vec::with_capacity(elements(from));
    for (n, index) in integers(index)?.into_iter().enumerate() {
        let position = usize::try_from(index).ok().filter(|&position| position < extent);
        let position = position.ok_or(Error::IndexOutOfRange { index, axis, extent })?;
        targets.push((n / (inner * count) * extent + position) * inner + n % inner);
    }
    combine(op, x, &targets, elements(to))
}

/// Each element of x combined with those before it at one of so many results.
pub(crate) fn combine(op: ReduceOp, x: &Values, targets: &[usize], results: usize) -> Result<Values> {
    let undefined = || broken(format!("a scatter by {op} is not defined for {}", x.dtype()));
    match (op, x) {
        (ReduceOp::Max | ReduceOp::Min, values) => {
            let combine = op == ReduceOp::Max;
            let nothing = Values::filled(extreme(op, x.dtype()), results);
            for_any!(values, x => {
                let nothing = Element::unwrap(&nothing).ok_or_else(undefined)?.to_vec();
                let combine = if combine { Element::maximum } else { Element::minimum };
                Ok(Element::wrap(combined(nothing, x, targets, combine)))
            })
        }
        (_, Values::F16(x)) => float(op, x, targets, results).ok_or_else(undefined),
        (_, Values::BF16(x)) => float(op, x, targets, results).ok_or_else(undefined),
        (_, Values::F32(x)) => float(op, x, targets, results).ok_or_else(undefined),
        (_, Values::F64(x)) => float(op, x, targets, results).ok_or_else(undefined),
        (_, integers) => {
            let (nothing, combine) = of_integers(op, x.dtype()).ok_or_else(undefined)?;
            let elements = integers.integers().ok_or_else(undefined)?;
            let results = combined(vec![nothing; results], &elements, targets, combine);
            Ok(Values::of_integers(x.dtype(), results.into_iter()))
        }
    }
}

/// What the largest or the smallest of nothing is: what changes no other.
fn extreme(op: ReduceOp, dtype: DType) -> Scalar {
    match (op, dtype) {
        (ReduceOp::Max, DType::Bool) => Scalar::from_bool(false),
        // Integers saturate.
        (ReduceOp::Max, _) => Scalar::from_f64(dtype, f64::NEG_INFINITY),
        _ => Scalar::from_f64(dtype, f64::INFINITY),
    }
}

fn combined<T: Copy, R: Copy>(
    mut results: Vec<R>,
    x: &[T],
    targets: &[usize],
    combine: fn(R, T) -> R,
) -> Vec<R> {
    for (&target, &x) in targets.iter().zip(x) {
        results[target] = combine(results[target], x);
    }
    results
}

fn float<T: Float>(op: ReduceOp, x: &[T], targets: &[usize], results: usize) -> Option<Values> {
    let (nothing, combine): (f64, fn(f64, T) -> f64) = match op {
        ReduceOp::Sum => (0.0, |sum, x| sum + x.to_f64()),
        ReduceOp::Prod => (1.0, |product, x| product * x.to_f64()),
        _ => return None,
    };
    let results = combined(vec![nothing; results], x, targets, combine);
    Some(T::wrap(results.into_iter().map(T::from_real).collect()))
}
