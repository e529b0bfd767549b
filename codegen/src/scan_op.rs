//! What scans combine elements by.

use std::fmt;

use crate::{DType, Scalar};

/// How the elements up to each are combined. All are associative, up to rounding, so that threads can share a scan.
///
/// ```
/// use lazuli_codegen::{DType, ScanOp};
/// assert_eq!(ScanOp::Sum.name(), "cumsum");
/// assert_eq!(ScanOp::Prod.identity(DType::F32).as_f64(), 1.0);
/// assert!(ScanOp::Max.accepts(DType::U8) && !ScanOp::LogSumExp.accepts(DType::I64));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ScanOp {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// The larger; NaN if either is NaN; logical or for `Bool`.
    Max,
    /// The smaller; NaN if either is NaN; logical and for `Bool`.
    Min,
    /// `log(exp(a) + exp(b))` without overflow on the way; NaN if either is NaN.
    LogSumExp,
}

impl ScanOp {
    /// Every scan.
    pub const ALL: [ScanOp; 5] = [ScanOp::Sum, ScanOp::Prod, ScanOp::Max, ScanOp::Min, ScanOp::LogSumExp];

    /// The name in dumps and messages.
    pub const fn name(self) -> &'static str {
        match self {
            ScanOp::Sum => "cumsum",
            ScanOp::Prod => "cumprod",
            ScanOp::Max => "cummax",
            ScanOp::Min => "cummin",
            ScanOp::LogSumExp => "logcumsumexp",
        }
    }

    /// Whether the scan is defined for operands of `dtype`. Sums and products of `Bool` and integers are recorded as a
    /// cast to `I64` first.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self {
            ScanOp::Sum | ScanOp::Prod => dtype.is_float() || matches!(dtype, DType::I64),
            ScanOp::Max | ScanOp::Min => true,
            ScanOp::LogSumExp => dtype.is_float(),
        }
    }

    /// What nothing combines to: combined with it, everything stays what it is.
    pub fn identity(self, dtype: DType) -> Scalar {
        match self {
            ScanOp::Sum => Scalar::from_i64(dtype, 0),
            ScanOp::Prod => Scalar::from_i64(dtype, 1),
            ScanOp::Max if dtype == DType::Bool => Scalar::from_bool(false),
            // The conversion saturates: infinity gives the extreme integers.
            ScanOp::Max | ScanOp::LogSumExp => Scalar::from_f64(dtype, f64::NEG_INFINITY),
            ScanOp::Min => Scalar::from_f64(dtype, f64::INFINITY),
        }
    }
}

impl fmt::Display for ScanOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
