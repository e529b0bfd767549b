//! Typed arrays, and what each element type can do.

use bytemuck::NoUninit;
use half::{bf16, f16};

use lazuli_codegen::{DType, Scalar};

/// The elements of an array, row-major.
///
/// ```
/// use lazuli_reference::Values;
/// let values = Values::F32(vec![1.0, -2.0]);
/// assert_eq!(Values::from_bytes(values.dtype(), values.bytes()), values);
/// ```
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "each is named as its dtype")]
pub enum Values {
    Bool(Vec<bool>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    I64(Vec<i64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Evaluates the expression with the name bound to the elements, whatever their type.
macro_rules! for_any {
    ($values:expr, $name:ident => $body:expr) => {
        match $values {
            Values::Bool($name) => $body,
            Values::U8($name) => $body,
            Values::I8($name) => $body,
            Values::I16($name) => $body,
            Values::I32($name) => $body,
            Values::U32($name) => $body,
            Values::I64($name) => $body,
            Values::F16($name) => $body,
            Values::BF16($name) => $body,
            Values::F32($name) => $body,
            Values::F64($name) => $body,
        }
    };
}

/// Evaluates the expression with the alias standing for the dtype's element type.
///
/// ```
/// use lazuli_reference::{Element, Values, with_type};
/// let dtype = lazuli_codegen::DType::I16;
/// assert_eq!(with_type!(dtype, T => T::wrap(vec![T::from_int(3)])), Values::I16(vec![3]));
/// ```
#[macro_export]
macro_rules! with_type {
    ($dtype:expr, $alias:ident => $body:expr) => {
        $crate::with_type!(@ $dtype, $alias, $body,
            Bool bool, U8 u8, I8 i8, I16 i16, I32 i32, U32 u32, I64 i64, F16 $crate::f16, BF16 $crate::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $alias:ident, $body:expr, $($variant:ident $ty:ty),*) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $alias = $ty;
                $body
            })*
        }
    };
}
pub(crate) use for_any;

impl Values {
    /// What the elements are.
    pub fn dtype(&self) -> DType {
        match self {
            Values::Bool(_) => DType::Bool,
            Values::U8(_) => DType::U8,
            Values::I8(_) => DType::I8,
            Values::I16(_) => DType::I16,
            Values::I32(_) => DType::I32,
            Values::U32(_) => DType::U32,
            Values::I64(_) => DType::I64,
            Values::F16(_) => DType::F16,
            Values::BF16(_) => DType::BF16,
            Values::F32(_) => DType::F32,
            Values::F64(_) => DType::F64,
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        for_any!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as they lie in memory.
    pub fn bytes(&self) -> &[u8] {
        for_any!(self, v => bytemuck::cast_slice(v))
    }

    /// The elements in some bytes, which need not be aligned; what is left over does not count.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Values {
        match dtype {
            DType::Bool => Values::Bool(bytes.iter().map(|&byte| byte != 0).collect()),
            DType::U8 => Values::U8(bytes.to_vec()),
            DType::I8 => Values::I8(bytemuck::pod_collect_to_vec(bytes)),
            DType::I16 => Values::I16(bytemuck::pod_collect_to_vec(whole(bytes, 2))),
            DType::I32 => Values::I32(bytemuck::pod_collect_to_vec(whole(bytes, 4))),
            DType::U32 => Values::U32(bytemuck::pod_collect_to_vec(whole(bytes, 4))),
            DType::I64 => Values::I64(bytemuck::pod_collect_to_vec(whole(bytes, 8))),
            DType::F16 => Values::F16(bytemuck::pod_collect_to_vec(whole(bytes, 2))),
            DType::BF16 => Values::BF16(bytemuck::pod_collect_to_vec(whole(bytes, 2))),
            DType::F32 => Values::F32(bytemuck::pod_collect_to_vec(whole(bytes, 4))),
            DType::F64 => Values::F64(bytemuck::pod_collect_to_vec(whole(bytes, 8))),
        }
    }

    /// The elements, of integers and truth values.
    pub(crate) fn integers(&self) -> Option<Vec<i64>> {
        fn widened<T: Copy + Into<i64>>(values: &[T]) -> Option<Vec<i64>> {
            Some(values.iter().map(|&value| value.into()).collect())
        }
        match self {
            Values::Bool(values) => widened(values),
            Values::U8(values) => widened(values),
            Values::I8(values) => widened(values),
            Values::I16(values) => widened(values),
            Values::I32(values) => widened(values),
            Values::U32(values) => widened(values),
            Values::I64(values) => widened(values),
            Values::F16(_) | Values::BF16(_) | Values::F32(_) | Values::F64(_) => None,
        }
    }

    /// Elements from integers, of which they have the low bits; all but 0 are true.
    pub(crate) fn of_integers(dtype: DType, values: impl Iterator<Item = i64>) -> Values {
        crate::with_type!(dtype, T => T::wrap(values.map(T::from_int).collect()))
    }

    /// The numbers from 0, as `I64`.
    pub fn counting(count: usize) -> Values {
        Values::I64((0..count as i64).collect())
    }

    /// The scalar, `count` times.
    pub fn filled(value: Scalar, count: usize) -> Values {
        crate::with_type!(value.dtype(), T => T::wrap(vec![T::from_low_bits(value.to_bits()); count]))
    }
}

fn whole(bytes: &[u8], size: usize) -> &[u8] {
    &bytes[..bytes.len() / size * size]
}

/// An element type.
pub trait Element: Copy + PartialOrd + NoUninit {
    /// Elements of this type.
    fn wrap(values: Vec<Self>) -> Values;

    /// The elements, if they are of this type.
    fn unwrap(values: &Values) -> Option<&[Self]>;

    /// The element with these bits; what its type does not have does not count.
    fn from_low_bits(bits: u64) -> Self;

    /// As Rust's `as`; one rounding, where `half`'s own `from_f64` may round twice. Everything but 0 is true.
    fn from_real(value: f64) -> Self;

    /// As Rust's `as`; to the 16-bit floats through f32. Everything but 0 is true.
    fn from_int(value: i64) -> Self;

    /// The larger, NaN if either is NaN; +0 is larger than -0.
    fn maximum(self, other: Self) -> Self;

    /// The smaller, NaN if either is NaN; -0 is smaller than +0.
    fn minimum(self, other: Self) -> Self;
}

/// An integer type. Its arithmetic is that of i64, reduced to the type's bits.
pub(crate) trait Int: Element {
    fn to_i64(self) -> i64;
}

/// A float type.
pub(crate) trait Float: Element {
    /// What basic arithmetic is done in.
    type Wide: Real;

    fn widen(self) -> Self::Wide;

    /// Rounds the result of basic arithmetic.
    fn narrow(value: Self::Wide) -> Self;

    fn to_f64(self) -> f64;
}

/// A type that the machine computes in.
pub(crate) trait Real: Copy {
    /// A number of double precision, rounded.
    fn rounded(value: f64) -> Self;
    /// Of two versions of a function, the one in this precision.
    fn unary(single: fn(f32) -> f32, double: fn(f64) -> f64) -> fn(Self) -> Self;
    fn binary(single: fn(f32, f32) -> f32, double: fn(f64, f64) -> f64) -> fn(Self, Self) -> Self;
}

macro_rules! wrapping {
    ($variant:ident, $ty:ty) => {
        fn wrap(values: Vec<$ty>) -> Values {
            Values::$variant(values)
        }
        fn unwrap(values: &Values) -> Option<&[$ty]> {
            if let Values::$variant(values) = values { Some(values) } else { None }
        }
    };
}

impl Element for bool {
    wrapping!(Bool, bool);
    fn from_low_bits(bits: u64) -> bool {
        bits & 0xff != 0
    }
    fn from_real(value: f64) -> bool {
        value != 0.0
    }
    fn from_int(value: i64) -> bool {
        value != 0
    }
    fn maximum(self, other: bool) -> bool {
        self | other
    }
    fn minimum(self, other: bool) -> bool {
        self & other
    }
}

macro_rules! int {
    ($variant:ident, $ty:ty) => {
        impl Element for $ty {
            wrapping!($variant, $ty);
            fn from_low_bits(bits: u64) -> $ty {
                bits as $ty
            }
            fn from_real(value: f64) -> $ty {
                value as $ty
            }
            fn from_int(value: i64) -> $ty {
                value as $ty
            }
            fn maximum(self, other: $ty) -> $ty {
                self.max(other)
            }
            fn minimum(self, other: $ty) -> $ty {
                self.min(other)
            }
        }
        impl Int for $ty {
            fn to_i64(self) -> i64 {
                self as i64
            }
        }
    };
}
int!(U8, u8);
int!(I8, i8);
int!(I16, i16);
int!(I32, i32);
int!(U32, u32);
int!(I64, i64);

macro_rules! float {
    ($variant:ident, $ty:ty, bits $bits:ty, from_real $from_real:expr, from_int $from_int:expr) => {
        impl Element for $ty {
            wrapping!($variant, $ty);
            fn from_low_bits(bits: u64) -> $ty {
                <$ty>::from_bits(bits as $bits)
            }
            fn from_real(value: f64) -> $ty {
                $from_real(value)
            }
            fn from_int(value: i64) -> $ty {
                $from_int(value)
            }
            fn maximum(self, other: $ty) -> $ty {
                if self.is_nan() || self > other || (self == other && !self.is_sign_negative()) {
                    self
                } else {
                    other
                }
            }
            fn minimum(self, other: $ty) -> $ty {
                if self.is_nan() || self < other || (self == other && self.is_sign_negative()) {
                    self
                } else {
                    other
                }
            }
        }
    };
}
float!(F16, f16, bits u16, from_real |x| f16::from_f32(round_to_odd(x)), from_int |x| f16::from_f32(x as f32));
float!(BF16, bf16, bits u16, from_real |x| bf16::from_f32(round_to_odd(x)), from_int |x| bf16::from_f32(x as f32));
float!(F32, f32, bits u32, from_real |x| x as f32, from_int |x| x as f32);
float!(F64, f64, bits u64, from_real |x| x, from_int |x| x as f64);

macro_rules! float_through {
    ($ty:ty, $wide:ty, $widen:expr, $narrow:expr) => {
        impl Float for $ty {
            type Wide = $wide;
            fn widen(self) -> $wide {
                $widen(self)
            }
            fn narrow(value: $wide) -> $ty {
                $narrow(value)
            }
            fn to_f64(self) -> f64 {
                f64::from($widen(self))
            }
        }
    };
}
float_through!(f16, f32, f16::to_f32, f16::from_f32);
float_through!(bf16, f32, bf16::to_f32, bf16::from_f32);
float_through!(f32, f32, |x| x, |x| x);
float_through!(f64, f64, |x| x, |x| x);

impl Real for f32 {
    fn rounded(value: f64) -> f32 {
        value as f32
    }
    fn unary(single: fn(f32) -> f32, _: fn(f64) -> f64) -> fn(f32) -> f32 {
        single
    }
    fn binary(single: fn(f32, f32) -> f32, _: fn(f64, f64) -> f64) -> fn(f32, f32) -> f32 {
        single
    }
}

impl Real for f64 {
    fn rounded(value: f64) -> f64 {
        value
    }
    fn unary(_: fn(f32) -> f32, double: fn(f64) -> f64) -> fn(f64) -> f64 {
        double
    }
    fn binary(_: fn(f32, f32) -> f32, double: fn(f64, f64) -> f64) -> fn(f64, f64) -> f64 {
        double
    }
}

/// An f32 that rounds to any narrower format as the f64 itself would: where the value is not exact,
/// the neighbour whose last bit is odd, which is never halfway between two narrower numbers.
/// S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Comput. 57(4), 2008.
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let bits = nearest.to_bits();
    if value.is_nan() || f64::from(nearest) == value || bits & 1 == 1 {
        nearest
    } else if f64::from(nearest).abs() > value.abs() {
        f32::from_bits(bits - 1)
    } else {
        f32::from_bits(bits + 1)
    }
}
