//! The scalar operations that kernels are made of, and what each computes.
//!
//! Each operation is declared in one place, in a table of [`unary`] or [`binary`]: its name, the dtypes that it is
//! defined for, its result, its cost, how it is spelled, and what it computes of floats and of integers. Those
//! semantics bind every implementation. Constants are folded by them and the reference interpreter follows them; the
//! emitted CUDA C and the emitted C are compared with them and with references of their own.

mod adjoint;
mod binary;
mod monoid;
mod unary;

use std::fmt;

pub use adjoint::{BinaryAdjoint, Formula, UnaryAdjoint};
pub use binary::{BinaryMeaning, BinaryOp};
pub use monoid::{Algebra, Part, ReduceOp};
pub(crate) use monoid::{MAXIMUM, Taken};
pub use unary::{UnaryMeaning, UnaryOp};

use crate::{DType, Scalar};

/// How an operation is spelled in CUDA C and in C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spelling {
    /// By operators, or in a way of its own: see `intrinsics`.
    Own,
    /// A function of this name of CUDA's and of C's library; with an `f` behind it for `F32`.
    Library(&'static str),
    /// The library's function of the operation's name; in C the helper `lz_NAME_f32` or `lz_NAME_f64`.
    Vectorised,
    /// The helper `lz_THIS_DTYPE`, in both languages.
    Named(&'static str),
    /// The helper `lz_NAME_DTYPE` of this text, in both languages: definitions with an empty line between two.
    Text(&'static str),
}

/// What an operation computes of floats. F16 and BF16 are computed in `F32` and rounded then.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<Number, Single, Truth> {
    /// IEEE 754's own result: this one in double precision, rounded once. Every kernel has these bits, so that they may
    /// be computed ahead.
    Exact(Number),
    /// This one in double precision, rounded once. Kernels may be some units in the last place away, or have a zero or
    /// NaN of the other sign.
    Near(Number),
    /// Several roundings, each in the operands' own precision: single or double.
    Stepwise(Single, Number),
    /// The answer to a question.
    Test(Truth),
}

macro_rules! scalar_operations {
    (
        $(#[$type_meta:meta])*
        $type:ident of $meaning:ident, $integer:ty: $(
            $(#[$meta:meta])*
            $op:ident = $name:literal, $accepts:ident -> $result:ident {
                cost: $cost:literal, spelling: $spelling:expr
                $(, floats: $floats:expr)? $(, integers: $integers:expr)? $(,)?
            }
        )*
    ) => {
        $(#[$type_meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $type {
            $($(#[$meta])* $op,)*
        }

        impl $type {
            /// Every operation.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$op),*];

            /// The name in dumps and messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$op => $name,)*
                }
            }

            /// Whether the operation is defined for operands of `dtype`.
            pub const fn accepts(self, dtype: $crate::DType) -> bool {
                match self {
                    $($type::$op => $crate::ops::scalar_operations!(@accepts $accepts dtype),)*
                }
            }

            /// The result's dtype for operands of `dtype`.
            pub const fn result(self, dtype: $crate::DType) -> $crate::DType {
                match self {
                    $($type::$op => $crate::ops::scalar_operations!(@result $result dtype),)*
                }
            }

            /// What it costs, in simple operations: an addition is 1. It only ranks choices.
            pub const fn cost(self) -> f64 {
                match self {
                    $($type::$op => $cost,)*
                }
            }

            /// What it computes of floats, if it is defined for them.
            pub fn floats(self) -> Option<$meaning> {
                match self {
                    $($type::$op => $crate::ops::scalar_operations!(@optional $($floats)?),)*
                }
            }

            /// What it computes of integers, if it is defined for them: of as many of the result's low bits as the
            /// dtype has. Of `Bool`, as 0 and 1; every result but 0 is true.
            pub fn integers(self) -> Option<$integer> {
                match self {
                    $($type::$op => $crate::ops::scalar_operations!(@optional $($integers)?),)*
                }
            }

            pub(crate) const fn spelling(self) -> $crate::ops::Spelling {
                use $crate::ops::Spelling::*;
                match self {
                    $($type::$op => $spelling,)*
                }
            }
        }
    };
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
    (@accepts All $dtype:ident) => { true };
    (@accepts Numbers $dtype:ident) => { !matches!($dtype, $crate::DType::Bool) };
    (@accepts Floats $dtype:ident) => { $dtype.is_float() };
    (@accepts Bits $dtype:ident) => { !$dtype.is_float() };
    (@accepts Integers $dtype:ident) => { $dtype.is_int() };
    (@accepts Bitcasts $dtype:ident) => { $dtype.bitcast().is_some() };
    (@accepts Bool $dtype:ident) => { matches!($dtype, $crate::DType::Bool) };
    (@result Same $dtype:ident) => { $dtype };
    (@result Bool $dtype:ident) => { $crate::DType::Bool };
    (@result Bitcast $dtype:ident) => {
        match $dtype.bitcast() {
            Some(other) => other,
            None => $dtype,
        }
    };
}
pub(crate) use scalar_operations;

/// Sixteen-bit floats are computed in single precision.
fn rounded(dtype: DType, value: f64) -> Scalar {
    match dtype {
        DType::F16 | DType::BF16 => Scalar::from_f64(DType::F32, value).cast(dtype),
        _ => Scalar::from_f64(dtype, value),
    }
}

fn of_integers(dtype: DType, value: i64) -> Scalar {
    if dtype == DType::Bool { Scalar::from_bool(value != 0) } else { Scalar::from_i64(dtype, value) }
}

impl UnaryOp {
    /// The result for a value; `None` if the operation is not defined for its dtype.
    ///
    /// ```
    /// use lazuli_codegen::{DType, Scalar, UnaryOp};
    /// let root = UnaryOp::Sqrt.apply(Scalar::from_f64(DType::F32, 4.0));
    /// assert_eq!(root, Some(Scalar::from_f64(DType::F32, 2.0)));
    /// assert_eq!(UnaryOp::Sqrt.apply(Scalar::from_i64(DType::I32, 4)), None);
    /// ```
    pub fn apply(self, x: Scalar) -> Option<Scalar> {
        let dtype = x.dtype();
        if !self.accepts(dtype) {
            return None;
        }
        let result = self.result(dtype);
        // No other operation has the dtype of its bits as its result's.
        if dtype.bitcast() == Some(result) {
            return Some(Scalar::from_bits(result, x.to_bits()));
        }
        if !dtype.is_float() {
            return Some(of_integers(result, self.integers()?(x.as_i64())));
        }
        Some(match self.floats()? {
            Meaning::Exact(f) | Meaning::Near(f) => rounded(dtype, f(x.as_f64())),
            Meaning::Stepwise(_, f) if dtype == DType::F64 => rounded(dtype, f(x.as_f64())),
            Meaning::Stepwise(f, _) => rounded(dtype, f(x.as_f64() as f32).into()),
            Meaning::Test(f) => Scalar::from_bool(f(x.as_f64())),
        })
    }
}

impl BinaryOp {
    /// The result for two values; `None` if the operation is not defined for their dtype, or they have two.
    ///
    /// ```
    /// use lazuli_codegen::{BinaryOp, DType, Scalar};
    /// let byte = |value| Scalar::from_i64(DType::U8, value);
    /// assert_eq!(BinaryOp::Add.apply(byte(250), byte(10)), Some(byte(4)));
    /// assert_eq!(BinaryOp::Lt.apply(byte(1), byte(2)), Some(Scalar::from_bool(true)));
    /// ```
    pub fn apply(self, a: Scalar, b: Scalar) -> Option<Scalar> {
        let dtype = a.dtype();
        if !self.accepts(dtype) || b.dtype() != dtype {
            return None;
        }
        if !dtype.is_float() {
            return Some(of_integers(self.result(dtype), self.integers()?(a.as_i64(), b.as_i64())));
        }
        let (a, b) = (a.as_f64(), b.as_f64());
        Some(match self.floats()? {
            Meaning::Exact(f) | Meaning::Near(f) => rounded(dtype, f(a, b)),
            Meaning::Stepwise(_, f) if dtype == DType::F64 => rounded(dtype, f(a, b)),
            Meaning::Stepwise(f, _) => rounded(dtype, f(a as f32, b as f32).into()),
            Meaning::Test(f) => Scalar::from_bool(f(a, b)),
        })
    }
}

macro_rules! display_name {
    ($($ty:ty),*) => {$(
        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}
display_name!(UnaryOp, BinaryOp, ReduceOp);
