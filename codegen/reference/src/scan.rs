//! Scans: the elements along an axis up to each, combined.

use lazuli_codegen::ReduceOp;
use smallvec::SmallVec;

use crate::error::broken;
use crate::extents::Extents;
use crate::reduce::{Rows, log_add_exp, of_integers};
use crate::values::{Float, for_any};
use crate::views::gather;
use crate::{Element, Result, Values};

/// How a scan goes along its axis.
#[derive(Clone, Copy)]
pub struct Scan {
    /// What combines the elements.
    pub op: ReduceOp,
    /// Along which axis.
    pub axis: usize,
    /// From the last element on.
    pub reverse: bool,
    /// Without the element itself.
    pub exclusive: bool,
}

/// The elements along an axis up to each, combined.
///
/// # Errors
/// [`Error::Broken`](crate::Error::Broken) if that is not defined for the dtype.
///
/// ```
/// use lazuli_codegen::ReduceOp;
/// use lazuli_reference::{Scan, Values, scan};
/// let sums = Scan { op: ReduceOp::Sum, axis: 0, reverse: false, exclusive: false };
/// assert_eq!(scan(sums, &Values::I64(vec![1, 2, 3]), &[3]), Ok(Values::I64(vec![1, 3, 6])));
/// ```
pub fn scan(scan: Scan, x: &Values, shape: &[usize]) -> Result<Values> {
    let result = match scan.op {
        ReduceOp::Max => Some(extreme(scan, x, shape, true)),
        ReduceOp::Min => Some(extreme(scan, x, shape, false)),
        _ => match x {
            Values::F16(x) => float(scan, x, shape),
            Values::BF16(x) => float(scan, x, shape),
            Values::F32(x) => float(scan, x, shape),
            Values::F64(x) => float(scan, x, shape),
            integers => integer(scan, integers, shape),
        },
    };
    let is_defined = !scan.exclusive || !matches!(scan.op, ReduceOp::Max | ReduceOp::Min);
    result
        .filter(|_| is_defined)
        .ok_or_else(|| broken(format!("{} is not defined for {}", scan.op.scan_name(), x.dtype())))
}

fn extreme(scan: Scan, x: &Values, shape: &[usize], largest: bool) -> Values {
    for_any!(x, x => {
        let combine = if largest { Element::maximum } else { Element::minimum };
        let running = |row: &mut dyn Iterator<Item = _>| {
            let mut best = None;
            row.map(|x| {
                let next = best.map_or(x, |best| combine(best, x));
                best = Some(next);
                next
            })
            .collect()
        };
        Element::wrap(along(scan, x, shape, &running))
    })
}

fn integer(scan: Scan, x: &Values, shape: &[usize]) -> Option<Values> {
    let (first, combine) = of_integers(scan.op, x.dtype())?;
    let elements = x.integers()?;
    let running =
        |row: &mut dyn Iterator<Item = i64>| folded(scan.exclusive, first, combine, row, |x| x, |x| x);
    Some(Values::of_integers(x.dtype(), along(scan, &elements, shape, &running).into_iter()))
}

fn float<T: Float>(scan: Scan, x: &[T], shape: &[usize]) -> Option<Values> {
    let (first, combine): (f64, fn(f64, f64) -> f64) = match scan.op {
        ReduceOp::Sum => (0.0, |a, b| a + b),
        ReduceOp::Prod => (1.0, |a, b| a * b),
        ReduceOp::LogSumExp => (f64::NEG_INFINITY, log_add_exp),
        _ => return None,
    };
    let running = |row: &mut dyn Iterator<Item = T>| {
        folded(scan.exclusive, first, combine, row, |x| x.to_f64(), T::from_real)
    };
    Some(T::wrap(along(scan, x, shape, &running)))
}

/// The running results of one row.
fn folded<T, A: Copy>(
    exclusive: bool,
    first: A,
    combine: fn(A, A) -> A,
    row: &mut dyn Iterator<Item = T>,
    widen: impl Fn(T) -> A,
    round: impl Fn(A) -> T,
) -> Vec<T> {
    let mut running = first;
    row.map(|x| {
        let before = running;
        running = combine(running, widen(x));
        round(if exclusive { before } else { running })
    })
    .collect()
}

/// Applies a function to the elements along the axis, in the order of the scan, for every other position.
fn along<T: Copy>(
    scan: Scan,
    x: &[T],
    shape: &[usize],
    running: &dyn Fn(&mut dyn Iterator<Item = T>) -> Vec<T>,
) -> Vec<T> {
    let mut result = Vec::with_capacity(x.len());
    for row in Rows::new(x, shape, &[scan.axis]).iter() {
        match scan.reverse {
            false => result.extend(running(&mut row.iter().copied())),
            true => result.extend(running(&mut row.iter().rev().copied()).into_iter().rev()),
        }
    }
    gather(&result, 0, shape, &strides_back(shape, scan.axis))
}

/// The strides of an array whose axis has become the last, in the order that the axes had.
fn strides_back(shape: &[usize], axis: usize) -> SmallVec<[i64; 6]> {
    let kept = (0..shape.len()).filter(|&other| other != axis);
    let order: Extents = kept.chain([axis]).collect();
    let mut strides: SmallVec<[i64; 6]> = SmallVec::from_elem(0, shape.len());
    let mut stride = 1;
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        stride *= shape[axis] as i64;
    }
    strides
}
