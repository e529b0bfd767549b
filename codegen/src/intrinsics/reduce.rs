//! Reductions: where an accumulator starts, and how it takes one more value.

use super::{Helpers, binary, literal};
use crate::{BinaryOp, DType, Language, ReduceOp, Scalar};

/// The neutral element of a reduction in the compute type of `dtype`: the value of a reduction of nothing.
///
/// For reductions of several parts this is the initial 0 of their sums, or the extreme value that is below or above all.
pub fn reduce_identity(language: Language, op: ReduceOp, dtype: DType) -> String {
    let dtype = dtype.compute();
    let value = match op {
        ReduceOp::Sum | ReduceOp::SquaredDeviations | ReduceOp::SumExp => Scalar::from_i64(dtype, 0),
        ReduceOp::Prod => Scalar::from_i64(dtype, 1),
        // The conversion saturates: infinity gives the extreme integers.
        ReduceOp::Max | ReduceOp::ArgMax if dtype == DType::Bool => Scalar::from_bool(false),
        ReduceOp::Max | ReduceOp::ArgMax => Scalar::from_f64(dtype, f64::NEG_INFINITY),
        ReduceOp::Min | ReduceOp::ArgMin => Scalar::from_f64(dtype, f64::INFINITY),
    };
    literal(language, value)
}

/// Two accumulators, or an accumulator and one more value, combined. NaN propagates.
///
/// For reductions of several parts this is only the sum of two accumulated sums, or the extreme value: the caller merges the other parts, and
/// sees to what follows for the sums.
pub fn reduce_combine(
    language: Language,
    op: ReduceOp,
    dtype: DType,
    a: &str,
    b: &str,
    helpers: &mut Helpers,
) -> String {
    let op = match op {
        ReduceOp::Sum | ReduceOp::SquaredDeviations | ReduceOp::SumExp => BinaryOp::Add,
        ReduceOp::Prod => BinaryOp::Mul,
        ReduceOp::Max | ReduceOp::ArgMax => BinaryOp::Maximum,
        ReduceOp::Min | ReduceOp::ArgMin => BinaryOp::Minimum,
    };
    binary(language, op, dtype, a, b, helpers)
}
