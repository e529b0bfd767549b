//! Reductions: every result is computed from one contiguous row of its operands.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::operand::broken;
use super::values::{Element, Float, Values, for_any};
use super::views::gather;
use crate::{DType, ReduceOp, Result, Shape};

/// For each result, the elements that it combines, row-major within the reduced axes.
pub(super) struct Rows<'a, T: Copy> {
    elements: Cow<'a, [T]>,
    count: usize,
    /// Elements in each row.
    pub(super) len: usize,
}

impl<'a, T: Copy> Rows<'a, T> {
    pub(super) fn new(x: &'a [T], shape: &Shape, axes: &[usize]) -> Rows<'a, T> {
        let kept = (0..shape.rank()).filter(|axis| !axes.contains(axis));
        let order: SmallVec<[usize; 6]> = kept.chain(axes.iter().copied()).collect();
        let elements = if order.is_sorted() {
            Cow::Borrowed(x)
        } else {
            let own = shape.strides();
            let extents: SmallVec<[usize; 6]> = order.iter().map(|&axis| shape[axis]).collect();
            let strides: SmallVec<[i64; 6]> = order.iter().map(|&axis| own[axis] as i64).collect();
            Cow::Owned(gather(x, 0, &extents, &strides))
        };
        let len = axes.iter().map(|&axis| shape[axis]).product();
        Rows { elements, count: shape.without(axes).elements(), len }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.count).map(|n| &self.elements[n * self.len..][..self.len])
    }
}

pub(super) fn reduce(op: ReduceOp, x: &Values, shape: &Shape, axes: &[usize]) -> Result<Values> {
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

fn extreme(x: &Values, shape: &Shape, axes: &[usize], largest: bool) -> Result<Values> {
    fn of_rows<T: Element>(rows: &Rows<'_, T>, combine: fn(T, T) -> T) -> Option<Values> {
        let results: Option<Vec<T>> = rows.iter().map(|row| row.iter().copied().reduce(combine)).collect();
        results.map(T::wrap)
    }
    let result = for_any!(x, x => {
        of_rows(&Rows::new(x, shape, axes), if largest { Element::maximum } else { Element::minimum })
    });
    result.ok_or_else(|| broken(format!("no largest or smallest of nothing: shape {shape} along {axes:?}")))
}

/// The first NaN, or else the first of the extreme values.
fn position(x: &Values, shape: &Shape, axes: &[usize], largest: bool) -> Result<Values> {
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
    result.ok_or_else(|| broken(format!("no largest or smallest of nothing: shape {shape} along {axes:?}")))
}

fn integer(op: ReduceOp, x: &Values, shape: &Shape, axes: &[usize]) -> Option<Values> {
    let (nothing, combine) = of_integers(op, x.dtype())?;
    let elements = x.integers()?;
    let rows = Rows::new(&elements, shape, axes);
    Some(Values::of_integers(x.dtype(), rows.iter().map(|row| row.iter().copied().fold(nothing, combine))))
}

/// What integers are combined by.
type OfIntegers = fn(i64, i64) -> i64;

/// What a monoid of one operation is of no integers, and the operation: as it is declared.
pub(super) fn of_integers(op: ReduceOp, dtype: DType) -> Option<(i64, OfIntegers)> {
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
pub(super) fn log_add_exp(a: f64, b: f64) -> f64 {
    let (least, most) = if a < b { (a, b) } else { (b, a) };
    if a == b && a.is_infinite() { a } else { most + (least - most).exp().ln_1p() }
}

pub(super) fn sum<T: Float>(row: &[T]) -> f64 {
    row.iter().fold(0.0, |sum, x| sum + x.to_f64())
}

pub(super) fn mean<T: Float>(row: &[T]) -> f64 {
    sum(row) / row.len() as f64
}

pub(super) fn squared_deviations<T: Float>(row: &[T]) -> f64 {
    let mean = mean(row);
    row.iter().fold(0.0, |sum, x| sum + (x.to_f64() - mean) * (x.to_f64() - mean))
}

/// By its definition: the maximum first.
fn sum_exp<T: Float>(row: &[T]) -> f64 {
    let max = row.iter().copied().reduce(Element::maximum).map_or(0.0, Float::to_f64);
    row.iter().fold(0.0, |sum, x| sum + (x.to_f64() - max).exp())
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::super::testing::{apply, same, tensor, try_apply};
    use super::*;
    use crate::graph::op::Op;

    fn reduced<T: Element>(
        op: ReduceOp,
        x: &[T],
        from: impl Into<Shape>,
        axes: &[usize],
        to: impl Into<Shape>,
    ) -> Vec<T> {
        apply(Op::Reduce { op, axes: axes.into() }, &[tensor(x, from)], to)
    }

    #[test]
    fn along_any_axes() {
        let x: Vec<f32> = (0..24).map(|x| x as f32).collect();
        let sum = |axes: &[usize], to: &[usize]| reduced(ReduceOp::Sum, &x, [2, 3, 4], axes, to);
        assert_eq!(sum(&[2], &[2, 3]), [6.0, 22.0, 38.0, 54.0, 70.0, 86.0]);
        assert_eq!(sum(&[0], &[3, 4]), [12., 14., 16., 18., 20., 22., 24., 26., 28., 30., 32., 34.]);
        assert_eq!(sum(&[1], &[2, 4]), [12.0, 15.0, 18.0, 21.0, 48.0, 51.0, 54.0, 57.0]);
        assert_eq!(sum(&[0, 2], &[3]), [60.0, 92.0, 124.0]);
        assert_eq!(sum(&[0, 1, 2], &[]), [276.0]);
        assert_eq!(sum(&[], &[2, 3, 4]), x);
        assert_eq!(reduced(ReduceOp::Sum, &[7.0f32], [], &[], []), [7.0]);
    }

    #[test]
    fn sums_accumulate_in_double_precision_and_round_once() {
        let mut x = vec![1.0f32; 1001];
        x[0] = 16_777_216.0;
        assert_eq!(reduced(ReduceOp::Sum, &x, [1001], &[0], []), [16_778_216.0]);
        let x = vec![f16::from_f32(0.1); 10_000];
        assert_eq!(reduced(ReduceOp::Sum, &x, [10_000], &[0], []), [f16::from_f32(1000.0)]);
        assert_eq!(reduced(ReduceOp::Sum, &[1e20f32, 1.0, -1e20], [3], &[0], []), [0.0]);
        same(&reduced(ReduceOp::Sum, &[f32::INFINITY, f32::NEG_INFINITY], [2], &[0], []), &[f32::NAN]);
        assert_eq!(reduced(ReduceOp::Prod, &[3.0f32, -2.0, 0.5], [3], &[0], []), [-3.0]);
    }

    #[test]
    fn integer_sums_and_products_wrap() {
        assert_eq!(reduced(ReduceOp::Sum, &[i64::MAX, 2, 3], [3], &[0], []), [i64::MIN + 4]);
        assert_eq!(reduced(ReduceOp::Prod, &[1i64 << 62, 2, 3], [3], &[0], []), [i64::MIN]);
    }

    #[test]
    fn extremes_propagate_nan() {
        let x = [1.0f32, f32::NAN, 3.0, 4.0, -5.0, 6.0, -0.0, 0.0, -0.0];
        same(&reduced(ReduceOp::Max, &x, [3, 3], &[1], [3]), &[f32::NAN, 6.0, 0.0]);
        same(&reduced(ReduceOp::Min, &x, [3, 3], &[1], [3]), &[f32::NAN, -5.0, -0.0]);
        let x = [bf16::NEG_INFINITY, bf16::NEG_INFINITY];
        assert_eq!(reduced(ReduceOp::Max, &x, [2], &[0], []), [bf16::NEG_INFINITY]);
    }

    #[test]
    fn extremes_of_integers_and_truth() {
        let x = [3i32, i32::MIN, 7, 200];
        assert_eq!(reduced(ReduceOp::Max, &x, [2, 2], &[0], [2]), [7, 200]);
        assert_eq!(reduced(ReduceOp::Min, &x, [2, 2], &[0], [2]), [3, i32::MIN]);
        assert_eq!(reduced(ReduceOp::Max, &[200u8, 100], [2], &[0], []), [200]);
        let x = [true, false, false, false, true, true];
        assert_eq!(reduced(ReduceOp::Max, &x, [3, 2], &[1], [3]), [true, false, true]);
        assert_eq!(reduced(ReduceOp::Min, &x, [3, 2], &[1], [3]), [false, false, true]);
    }

    #[test]
    fn squared_deviations_from_the_mean() {
        let x = [1.0f64, 2.0, 3.0, 4.0, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0, 1e9 + 4.0];
        assert_eq!(reduced(ReduceOp::SquaredDeviations, &x, [2, 4], &[1], [2]), [5.0, 5.0]);
        assert_eq!(reduced(ReduceOp::SquaredDeviations, &[4.0f32], [1], &[0], []), [0.0]);
        same(&reduced(ReduceOp::SquaredDeviations, &[f32::INFINITY, 1.0], [2], &[0], []), &[f32::NAN]);
    }

    #[test]
    fn exponentials_add_up_below_the_maximum() {
        let x = [1000.0f64, 1000.0 - 2f64.ln(), 1000.0 - 4f64.ln(), f64::NEG_INFINITY];
        let sum = reduced(ReduceOp::SumExp, &x, [4], &[0], [])[0];
        assert!((sum - 1.75).abs() < 1e-12, "{sum}");
        let inf = f32::INFINITY;
        for row in [[inf, 0.0], [inf, inf], [-inf, -inf], [f32::NAN, 0.0], [0.0, f32::NAN]] {
            same(&reduced(ReduceOp::SumExp, &row, [2], &[0], []), &[f32::NAN]);
        }
    }

    #[test]
    fn reductions_of_nothing() {
        let none: [f32; 0] = [];
        same(&reduced(ReduceOp::Sum, &none, [2, 0], &[1], [2]), &[0.0, 0.0]);
        same(&reduced(ReduceOp::Sum, &none, [0, 2], &[0], [2]), &[0.0, 0.0]);
        same(&reduced(ReduceOp::Prod, &none, [0], &[0], []), &[1.0]);
        same(&reduced(ReduceOp::SquaredDeviations, &none, [0], &[0], []), &[0.0]);
        assert_eq!(reduced::<i64>(ReduceOp::Prod, &[], [0], &[0], []), [1]);
        assert!(reduced(ReduceOp::Max, &none, [0, 2], &[1], [0]).is_empty());
        let max = Op::Reduce { op: ReduceOp::Max, axes: [1].as_slice().into() };
        assert!(try_apply::<f32>(max, &[tensor(&none, [2, 0])], [2]).is_err());
        assert!(reduce(ReduceOp::Min, &Values::F32(vec![]), &Shape::from([2, 0]), &[1]).is_err());
    }

    #[test]
    fn positions_of_extremes() {
        let at = |op, x: &[f32]| {
            let op = Op::Reduce { op, axes: [0].as_slice().into() };
            apply::<i64>(op, &[tensor(x, [x.len()])], [])[0]
        };
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for (x, max, min) in [
            (&[1.0, 5.0, 5.0, 1.0][..], 1, 0),
            (&[-0.0, 0.0, -0.0], 0, 0),
            (&[-inf, -inf], 0, 0),
            (&[inf, -inf, inf], 0, 1),
            (&[inf, nan, nan], 1, 1),
        ] {
            assert_eq!((at(ReduceOp::ArgMax, x), at(ReduceOp::ArgMin, x)), (max, min), "{x:?}");
        }
        assert!(reduce(ReduceOp::ArgMax, &Values::F32(vec![]), &Shape::from([0]), &[0]).is_err());
    }

    #[test]
    fn every_reduction_is_defined_exactly_where_it_says() {
        use super::super::values::with_type;
        for dtype in crate::DType::ALL {
            let x = with_type!(dtype, T => T::wrap(vec![T::from_int(1)]));
            for op in ReduceOp::ALL {
                let result = reduce(op, &x, &Shape::from([1]), &[0]);
                assert_eq!(result.is_ok(), op.accepts(dtype), "{op} of {dtype}");
            }
        }
    }
}
