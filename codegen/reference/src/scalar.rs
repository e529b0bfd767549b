//! Pointwise operations: each scalar operation means what its declaration in [`lazuli_codegen`] says. How they are
//! rounded to the dtypes is written here.

use lazuli_codegen::{BinaryOp, DType, Meaning, UnaryOp};

use crate::error::broken;
use crate::values::{Float, Int, Real, for_any};
use crate::{Element, Result, Values};

pub(crate) fn map<T: Copy, U>(x: &[T], f: impl Fn(T) -> U) -> Vec<U> {
    x.iter().map(|&x| f(x)).collect()
}

fn zip<T: Copy, U>(a: &[T], b: &[T], f: impl Fn(T, T) -> U) -> Vec<U> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

/// The operation of each element.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if it is not defined for the dtype.
///
/// ```
/// use lazuli_codegen::UnaryOp;
/// use lazuli_reference::{Values, unary};
/// assert_eq!(unary(UnaryOp::Neg, &Values::U8(vec![1, 2])), Ok(Values::U8(vec![255, 254])));
/// assert!(unary(UnaryOp::Not, &Values::F32(vec![1.0])).is_err());
/// ```
pub fn unary(op: UnaryOp, x: &Values) -> Result<Values> {
    if op == UnaryOp::Bitcast && op.accepts(x.dtype()) {
        return Ok(Values::from_bytes(op.result(x.dtype()), x.bytes()));
    }
    let result = match x {
        Values::Bool(x) => op
            .integers()
            .map(|f| Values::Bool(map(x, |x| f(i64::from(x)) != 0)))
            .filter(|_| op.accepts(DType::Bool)),
        Values::U8(x) => int_unary(op, x),
        Values::I8(x) => int_unary(op, x),
        Values::I16(x) => int_unary(op, x),
        Values::I32(x) => int_unary(op, x),
        Values::U32(x) => int_unary(op, x),
        Values::I64(x) => int_unary(op, x),
        Values::F16(x) => float_unary(op, x),
        Values::BF16(x) => float_unary(op, x),
        Values::F32(x) => float_unary(op, x),
        Values::F64(x) => float_unary(op, x),
    };
    result
        .filter(|_| op.accepts(x.dtype()))
        .ok_or_else(|| broken(format!("{op} is not defined for {}", x.dtype())))
}

fn int_unary<T: Int>(op: UnaryOp, x: &[T]) -> Option<Values> {
    let f = op.integers()?;
    Some(T::wrap(map(x, |x| T::from_int(f(x.to_i64())))))
}

fn float_unary<T: Float>(op: UnaryOp, x: &[T]) -> Option<Values> {
    Some(match op.floats()? {
        Meaning::Exact(f) => T::wrap(map(x, |x| T::narrow(T::Wide::rounded(f(x.to_f64()))))),
        Meaning::Near(f) => T::wrap(map(x, |x| T::from_real(f(x.to_f64())))),
        Meaning::Stepwise(single, double) => {
            T::wrap(map(x, |x| T::narrow(T::Wide::unary(single, double)(x.widen()))))
        }
        Meaning::Test(f) => Values::Bool(map(x, |x| f(x.to_f64()))),
    })
}

/// The operation of each two elements.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if it is not defined for the dtypes.
///
/// ```
/// use lazuli_codegen::BinaryOp;
/// use lazuli_reference::{Values, binary};
/// let (a, b) = (Values::F64(vec![1.0]), Values::F64(vec![0.5]));
/// assert_eq!(binary(BinaryOp::Lt, &a, &b), Ok(Values::Bool(vec![false])));
/// ```
pub fn binary(op: BinaryOp, a: &Values, b: &Values) -> Result<Values> {
    let result = match (a, b) {
        (Values::Bool(a), Values::Bool(b)) => {
            op.integers().map(|f| Values::Bool(zip(a, b, |a, b| f(i64::from(a), i64::from(b)) != 0)))
        }
        (Values::U8(a), Values::U8(b)) => int_binary(op, a, b),
        (Values::I8(a), Values::I8(b)) => int_binary(op, a, b),
        (Values::I16(a), Values::I16(b)) => int_binary(op, a, b),
        (Values::I32(a), Values::I32(b)) => int_binary(op, a, b),
        (Values::U32(a), Values::U32(b)) => int_binary(op, a, b),
        (Values::I64(a), Values::I64(b)) => int_binary(op, a, b),
        (Values::F16(a), Values::F16(b)) => float_binary(op, a, b),
        (Values::BF16(a), Values::BF16(b)) => float_binary(op, a, b),
        (Values::F32(a), Values::F32(b)) => float_binary(op, a, b),
        (Values::F64(a), Values::F64(b)) => float_binary(op, a, b),
        _ => None,
    };
    let result = result.filter(|_| op.accepts(a.dtype()));
    result.ok_or_else(|| broken(format!("{op} is not defined for {} and {}", a.dtype(), b.dtype())))
}

fn int_binary<T: Int>(op: BinaryOp, a: &[T], b: &[T]) -> Option<Values> {
    let f = op.integers()?;
    let of = |a: T, b: T| f(a.to_i64(), b.to_i64());
    Some(match op.result(DType::I64) {
        DType::Bool => Values::Bool(zip(a, b, |a, b| of(a, b) != 0)),
        _ => T::wrap(zip(a, b, |a, b| T::from_int(of(a, b)))),
    })
}

fn float_binary<T: Float>(op: BinaryOp, a: &[T], b: &[T]) -> Option<Values> {
    Some(match op.floats()? {
        Meaning::Exact(f) => {
            T::wrap(zip(a, b, |a, b| T::narrow(T::Wide::rounded(f(a.to_f64(), b.to_f64())))))
        }
        Meaning::Near(f) => T::wrap(zip(a, b, |a, b| T::from_real(f(a.to_f64(), b.to_f64())))),
        Meaning::Stepwise(single, double) => {
            T::wrap(zip(a, b, |a, b| T::narrow(T::Wide::binary(single, double)(a.widen(), b.widen()))))
        }
        Meaning::Test(f) => Values::Bool(zip(a, b, |a, b| f(a.to_f64(), b.to_f64()))),
    })
}

/// The element of `a` where the condition holds, else that of `b`.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if the condition is of no truth values, or the others of two dtypes.
///
/// ```
/// use lazuli_reference::{Values, select};
/// let (a, b) = (Values::I32(vec![1, 2]), Values::I32(vec![3, 4]));
/// assert_eq!(select(&Values::Bool(vec![true, false]), &a, &b), Ok(Values::I32(vec![1, 4])));
/// ```
pub fn select(condition: &Values, a: &Values, b: &Values) -> Result<Values> {
    fn choose<T: Element>(condition: &[bool], a: &[T], b: &Values) -> Option<Values> {
        let choices = condition.iter().zip(a).zip(T::unwrap(b)?);
        Some(T::wrap(choices.map(|((&condition, &a), &b)| if condition { a } else { b }).collect()))
    }
    let chosen = bool::unwrap(condition).and_then(|condition| for_any!(a, a => choose(condition, a, b)));
    chosen.ok_or_else(|| {
        let (condition, a, b) = (condition.dtype(), a.dtype(), b.dtype());
        broken(format!("where is not defined for {condition}, {a} and {b}"))
    })
}
