//! The dtype in which operands meet: PyTorch's type promotion.
//!
//! Within one category (dimensioned tensors, 0-d tensors, numbers) the wider dtype wins; a lower
//! category changes the dtype only if it is of a higher kind (bool < integers < floats). See
//! <https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc>. PyTorch has no promotion for
//! `U32` beside another integer type; NumPy's stands in: `U32` with `U8`, `I64` with signed integers.

use half::{bf16, f16};

use super::call::Call;
use crate::{DType, IntInfo, Result, Scalar, Shape, Tensor};

/// A Rust number of any type beside a tensor. Like a Python number in PyTorch it takes the tensor's dtype, unless it
/// is of a higher kind: a float beside integers gives `F32`, an integer beside bools `I64`. What `F16` and `BF16` are multiplied with or
/// divided by keeps the digits of an `F32`, as in PyTorch: the result alone is rounded.
///
/// ```
/// use lazuli::{DType, Number, Tensor};
/// let bytes = Tensor::ones([2], DType::U8);
/// assert_eq!((&bytes + 1).dtype()?, DType::U8);
/// assert_eq!((&bytes + 0.5).dtype()?, DType::F32);
/// assert_eq!(Number::from(0.5f32), Number::Float(0.5));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

/// What an operation takes beside a tensor: another tensor or a number.
///
/// ```
/// use lazuli::{DType, Operand, Tensor};
/// let x = Tensor::ones([2], DType::F32);
/// let operands = [Operand::from(&x), Operand::from(2.0), Operand::from(3)];
/// for operand in operands {
///     assert_eq!(x.mul(operand).dtype()?, DType::F32);
/// }
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor; it broadcasts.
    Tensor(Tensor),
    /// A number; it broadcasts to everything.
    Number(Number),
}

impl Number {
    /// The dtype that the number has on its own.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Number::Bool(_) => DType::Bool,
            Number::Int(_) => DType::I64,
            Number::Float(_) => DType::F32,
        }
    }

    /// The number in a dtype, converted as Rust's `as` converts.
    pub(crate) fn to_scalar(self, dtype: DType) -> Scalar {
        match self {
            Number::Bool(value) => Scalar::from_i64(dtype, value.into()),
            Number::Int(value) => Scalar::from_i64(dtype, value),
            Number::Float(value) => Scalar::from_f64(dtype, value),
        }
    }

    /// The number that a dtype has as this scalar.
    pub(crate) fn of(scalar: Scalar) -> Number {
        match scalar.dtype() {
            DType::Bool => Number::Bool(scalar.is_nonzero()),
            dtype if dtype.is_float() => Number::Float(scalar.as_f64()),
            _ => Number::Int(scalar.as_i64()),
        }
    }

    /// The number in a dtype that is to hold it, where arithmetic would wrap it.
    ///
    /// # Errors
    /// The call's, for what [`Number::fits`] not.
    pub(crate) fn held(self, call: Call, dtype: DType) -> Result<Scalar> {
        if let Some(limits) = dtype.iinfo()
            && !self.fits(limits)
        {
            let (number, other) = match self {
                Number::Float(value) => (format!("{value:?}"), DType::F32),
                Number::Int(_) | Number::Bool(_) => {
                    (self.to_scalar(DType::I64).as_i64().to_string(), DType::I64)
                }
            };
            return call.fail(format!(
                "the number {number} does not fit {dtype}, whose numbers go from {} to {}; use a dtype that has it, \
                 such as DType::{other:?}",
                limits.min, limits.max
            ));
        }
        Ok(self.to_scalar(dtype))
    }

    /// Whether integers within these limits hold the number, as PyTorch counts: of a float what is before the point, and of
    /// an integer below an unsigned one's what it wraps to.
    fn fits(self, IntInfo { min, max, .. }: IntInfo) -> bool {
        match self {
            Number::Bool(_) => true,
            Number::Int(value) => value <= max && (value >= min || min == 0 && value >= -max),
            // As an f64 the largest i64 is one more.
            Number::Float(value) => {
                value >= min as f64 && value <= max as f64 && value as i128 <= i128::from(max)
            }
        }
    }
}

impl Operand {
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Operand::Tensor(tensor) => tensor.node.shape.clone(),
            Operand::Number(_) => Shape::scalar(),
        }
    }
}

macro_rules! from_numbers {
    ($($ty:ty => $variant:ident($value:ident => $number:expr);)*) => {$(
        impl From<$ty> for Number {
            fn from($value: $ty) -> Number {
                Number::$variant($number)
            }
        }

        impl From<$ty> for Operand {
            fn from(value: $ty) -> Operand {
                Operand::Number(value.into())
            }
        }
    )*};
}
from_numbers! {
    bool => Bool(value => value);
    u8 => Int(value => value.into());
    i8 => Int(value => value.into());
    i16 => Int(value => value.into());
    u16 => Int(value => value.into());
    i32 => Int(value => value.into());
    u32 => Int(value => value.into());
    i64 => Int(value => value);
    isize => Int(value => value as i64);
    f16 => Float(value => value.into());
    bf16 => Float(value => value.into());
    f32 => Float(value => value.into());
    f64 => Float(value => value);
}

/// What no `i64` holds is a float, not another integer.
macro_rules! from_counts {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Number {
            fn from(value: $ty) -> Number {
                i64::try_from(value).map_or(Number::Float(value as f64), Number::Int)
            }
        }

        impl From<$ty> for Operand {
            fn from(value: $ty) -> Operand {
                Operand::Number(value.into())
            }
        }
    )*};
}
from_counts! { usize u64 }

/// So that operations take tensors as well as references to them.
impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

impl From<Number> for Operand {
    fn from(number: Number) -> Operand {
        Operand::Number(number)
    }
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Operand {
        Operand::Tensor(tensor)
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Operand {
        Operand::Tensor(tensor.clone())
    }
}

impl From<&&Tensor> for Operand {
    fn from(tensor: &&Tensor) -> Operand {
        Operand::from(*tensor)
    }
}

/// The dtype in which two of one category meet (`torch.promote_types`). PyTorch refuses `U32` beside another
/// integer type; here it is promoted as NumPy does.
pub(crate) fn promote(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
        // An unsigned integer beside a signed one: the least that holds both.
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        (DType::U32, signed) | (signed, DType::U32)
            if matches!(signed, DType::I8 | DType::I16 | DType::I32) =>
        {
            DType::I64
        }
        // Else dtypes are ordered by promotion; a float beside an integer of any width wins.
        (a, b) => a.max(b),
    }
}

/// What a higher category makes of a lower one.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (None, other) | (other, None) => other,
        (Some(higher), Some(lower)) => {
            let lifts = !higher.is_float() && (higher == DType::Bool || lower.is_float());
            Some(if lifts { promote(higher, lower) } else { higher })
        }
    }
}

/// The dtype in which the operands meet (`torch.result_type`).
///
/// # Errors
/// The error of the first operand that is invalid.
pub(crate) fn result_type(operands: &[Operand]) -> Result<DType> {
    let (mut dimensioned, mut scalars, mut numbers) = (None, None, None);
    for operand in operands {
        let (category, dtype) = match operand {
            Operand::Tensor(tensor) => match tensor.known()? {
                (shape, dtype) if shape.rank() > 0 => (&mut dimensioned, dtype),
                (_, dtype) => (&mut scalars, dtype),
            },
            Operand::Number(number) => (&mut numbers, number.dtype()),
        };
        *category = Some(category.map_or(dtype, |other| promote(other, dtype)));
    }
    Ok(combine(dimensioned, combine(scalars, numbers)).unwrap_or(DType::F32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::*;

    /// `torch.promote_types`, as documented, and NumPy's for `U32` beside integers; rows and columns in the order of [`DType::ALL`].
    #[test]
    fn one_category_follows_pytorchs_table() {
        let table = [
            [Bool, U8, I8, I16, I32, U32, I64, F16, BF16, F32, F64],
            [U8, U8, I16, I16, I32, U32, I64, F16, BF16, F32, F64],
            [I8, I16, I8, I16, I32, I64, I64, F16, BF16, F32, F64],
            [I16, I16, I16, I16, I32, I64, I64, F16, BF16, F32, F64],
            [I32, I32, I32, I32, I32, I64, I64, F16, BF16, F32, F64],
            [U32, U32, I64, I64, I64, U32, I64, F16, BF16, F32, F64],
            [I64, I64, I64, I64, I64, I64, I64, F16, BF16, F32, F64],
            [F16, F16, F16, F16, F16, F16, F16, F16, F32, F32, F64],
            [BF16, BF16, BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, F64],
            [F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, F64],
            [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64],
        ];
        for (a, row) in DType::ALL.into_iter().zip(table) {
            for (b, expected) in DType::ALL.into_iter().zip(row) {
                assert_eq!(promote(a, b), expected, "{a} with {b}");
                let (x, y) = (Tensor::zeros([2], a), Tensor::zeros([2], b));
                assert_eq!(x.maximum(&y).dtype().unwrap(), expected, "{a} with {b}");
                let (x, y) = (Tensor::zeros([], a), Tensor::zeros([], b));
                assert_eq!(x.maximum(&y).dtype().unwrap(), expected, "0-d {a} with {b}");
            }
        }
    }

    /// From the examples of `torch.result_type` and the type promotion page.
    #[test]
    fn lower_categories_only_lift_the_kind() {
        let dim = |dtype| Operand::from(Tensor::zeros([1], dtype));
        let zero = |dtype| Operand::from(Tensor::zeros([], dtype));
        let cases = [
            (dim(I32), zero(I64), I32),
            (dim(U8), zero(I64), U8),
            (dim(F32), zero(F64), F32),
            (dim(F16), zero(F32), F16),
            (dim(BF16), zero(F16), BF16),
            (dim(I32), zero(F64), F64),
            (dim(I64), zero(F16), F16),
            (dim(Bool), zero(U8), U8),
            (dim(Bool), zero(I32), I32),
            (dim(Bool), zero(F64), F64),
            (dim(F32), zero(Bool), F32),
            (dim(I32), zero(Bool), I32),
            (dim(U8), 1.into(), U8),
            (dim(I32), 1i64.into(), I32),
            (dim(I32), true.into(), I32),
            (dim(I32), 2.5.into(), F32),
            (dim(I64), 2.5f32.into(), F32),
            (dim(F16), 2.5.into(), F16),
            (dim(F16), 2.into(), F16),
            (dim(F64), 2.5f32.into(), F64),
            (dim(Bool), 1.into(), I64),
            (dim(Bool), 1.5.into(), F32),
            (dim(Bool), true.into(), Bool),
            (zero(I32), 1i64.into(), I32),
            (zero(U8), 1.into(), U8),
            (zero(F16), 1.5.into(), F16),
            (zero(I32), 1.5.into(), F32),
            (zero(Bool), 1.into(), I64),
            (1.into(), 2.into(), I64),
            (1.into(), 2.0.into(), F32),
            (true.into(), false.into(), Bool),
        ];
        for (a, b, expected) in cases {
            let message = format!("{a:?} with {b:?}");
            assert_eq!(result_type(&[a.clone(), b.clone()]).unwrap(), expected, "{message}");
            assert_eq!(result_type(&[b, a]).unwrap(), expected, "swapped: {message}");
        }
    }

    #[test]
    fn three_categories_meet() {
        let operands = [Tensor::zeros([2], Bool).into(), Tensor::zeros([], U8).into(), 1.5.into()];
        assert_eq!(result_type(&operands).unwrap(), F32);
        let operands = [Tensor::zeros([2], I32).into(), Tensor::zeros([], F64).into(), 1.5.into()];
        assert_eq!(result_type(&operands).unwrap(), F64);
    }

    #[test]
    fn numbers_convert_as_rust_does() {
        assert_eq!(Number::from(300).to_scalar(U8).as_i64(), 44);
        assert_eq!(Number::from(-1.5).to_scalar(U8).as_i64(), 0);
        assert_eq!(Number::from(f64::NAN).to_scalar(I32).as_i64(), 0);
        assert_eq!(Number::from(i64::MAX).to_scalar(I64).as_i64(), i64::MAX);
        assert_eq!(Number::from(0.1).to_scalar(F32).to_bits(), 0.1f32.to_bits() as u64);
        assert!(Number::from(true).to_scalar(F16).is_nonzero());
        let fits = |number: Number, dtype: DType| number.fits(dtype.iinfo().unwrap());
        for (number, dtype) in [
            (Number::Int(255), U8),
            (Number::Int(-255), U8),
            (Number::Int(-128), I8),
            (Number::Int(i64::MIN), I64),
            (Number::Bool(true), I8),
            (Number::Float(254.9), U8),
            (Number::Float(-0.0), U32),
            (Number::Float(-9.2e18), I64),
        ] {
            assert!(fits(number, dtype), "{number:?} in {dtype}");
        }
        for (number, dtype) in [
            (Number::Int(256), U8),
            (Number::Int(-256), U8),
            (Number::Int(-129), I8),
            (Number::Int(1 << 31), I32),
            (Number::Float(255.5), U8),
            (Number::Float(-0.5), U8),
            (Number::Float(2f64.powi(63)), I64),
            (Number::Float(f64::INFINITY), I64),
            (Number::Float(f64::NAN), I16),
        ] {
            assert!(!fits(number, dtype), "{number:?} in {dtype}");
        }
        // The width of a number never counts: a kernel of bytes stays one of bytes.
        let bytes = Tensor::from_slice(&[250u8, 7], [2]);
        for sum in [&bytes + 9u8, &bytes + 9i8, &bytes + 9i16, &bytes + 9u32, &bytes + 9usize] {
            assert_eq!(sum.to_vec::<u8>().unwrap(), [3, 16]);
        }
        assert_eq!(Number::from(f16::from_f32(0.5)), Number::from(bf16::from_f32(0.5)));
    }
}
