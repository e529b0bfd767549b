//! Combining at positions that are values.

use super::gather::integers;
use super::operand::{Operand, broken};
use super::reduce::of_integers;
use super::values::{Element, Float, Values, for_any};
use crate::graph::Node;
use crate::{DType, Error, ReduceOp, Result, Scalar};

/// At each position of the axis, those elements of x combined whose index says this one: one after the other, in the
/// order that they are in.
pub(super) fn scatter(
    node: &Node,
    op: ReduceOp,
    axis: usize,
    x: &Operand<'_>,
    index: &Values,
) -> Result<Values> {
    let (count, extent) = (x.shape[axis], node.shape[axis]);
    let inner: usize = x.shape[axis + 1..].iter().product();
    let mut targets = Vec::with_capacity(x.shape.elements());
    for (n, index) in integers(index)?.into_iter().enumerate() {
        let position = usize::try_from(index).ok().filter(|&position| position < extent);
        let Some(position) = position else {
            let (op, location) = (node.origin, node.location);
            return Err(Error::IndexOutOfRange { op, index, axis, extent, location });
        };
        targets.push((n / (inner * count) * extent + position) * inner + n % inner);
    }
    combine(op, &x.values, &targets, node.shape.elements())
}

/// Each element of x combined with those before it at one of so many results.
pub(super) fn combine(op: ReduceOp, x: &Values, targets: &[usize], results: usize) -> Result<Values> {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{apply, same, tensor, try_apply};
    use super::*;
    use crate::graph::op::Op;

    fn op(op: ReduceOp, axis: usize, extent: usize) -> Op {
        Op::Scatter { op, axis, extent }
    }

    #[test]
    fn sums_by_position() {
        let x = tensor(&[1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0], [3, 2]);
        let rows = tensor(&[2i64, 2, 0, 2, 2, 0], [3, 2]);
        let sums: Vec<f32> = apply(op(ReduceOp::Sum, 0, 3), &[x.clone(), rows], [3, 2]);
        assert_eq!(sums, [4.0, 32.0, 0.0, 0.0, 17.0, 10.0]);
        let columns = tensor(&[3u8, 3, 0, 1, 1, 1], [3, 2]);
        let products: Vec<f32> = apply(op(ReduceOp::Prod, 1, 4), &[x, columns], [3, 4]);
        assert_eq!(products, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 1.0, 512.0, 1.0, 1.0]);
    }

    #[test]
    fn extremes_of_some_and_of_none() {
        let index = tensor(&[1i32, 1, 2], [3]);
        let x = tensor(&[1.0f32, f32::NAN, -3.0], [3]);
        let most: Vec<f32> = apply(op(ReduceOp::Max, 0, 3), &[x, index.clone()], [3]);
        same(&most, &[f32::NEG_INFINITY, f32::NAN, -3.0]);
        let bools = tensor(&[true, false, true], [3]);
        let any: Vec<bool> = apply(op(ReduceOp::Max, 0, 3), &[bools.clone(), index.clone()], [3]);
        assert_eq!(any, [false, true, true]);
        let all: Vec<bool> = apply(op(ReduceOp::Min, 0, 3), &[bools, index.clone()], [3]);
        assert_eq!(all, [true, false, true]);
        let least: Vec<i8> = apply(op(ReduceOp::Min, 0, 3), &[tensor(&[5i8, -7, 9], [3]), index], [3]);
        assert_eq!(least, [127, -7, 9]);
    }

    #[test]
    fn integers_wrap_and_positions_are_checked() {
        let x = tensor(&[i64::MAX, 2], [2]);
        let sums: Vec<i64> = apply(op(ReduceOp::Sum, 0, 1), &[x.clone(), tensor(&[0i64, 0], [2])], [1]);
        assert_eq!(sums, [i64::MIN + 1]);
        for wrong in [-1i64, 1] {
            let index = tensor(&[0, wrong], [2]);
            assert!(try_apply::<i64>(op(ReduceOp::Sum, 0, 1), &[x.clone(), index], [1]).is_err());
        }
    }
}
