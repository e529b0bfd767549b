//! Operations on the elements of several tensors: arithmetic, comparisons, logic, selection.

use smallvec::SmallVec;

use super::operands::{Rule, cast, described};
use crate::graph::op::{Constant, ConstantRole, Op};
use crate::tensor::arguments::call::{Call, list};
use crate::tensor::arguments::promotion::{Number, Operand};
use crate::{BinaryOp, DType, Result, Tensor};

macro_rules! binary_methods {
    ($(#[$block:meta])* impl: $($(#[$meta:meta])* $name:ident = $op:ident, $rule:ident;)*) => {
        $(#[$block])*
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, other: impl Into<Operand>) -> Tensor {
                    let call = Call::here(stringify!($name));
                    Tensor::or_invalid(binary(call, BinaryOp::$op, Rule::$rule, [self.into(), other.into()]))
                }
            )*
        }
    };
}

binary_methods! {
    /// Arithmetic. The operand is a tensor or a number; shapes broadcast.
    impl:
    /// `self + other`, in the promoted dtype; integers wrap, bools are or-ed. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let row = Tensor::from_slice(&[10.0f32, 20.0], [2]);
    /// assert_eq!(x.add(&row).to_vec::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
    /// assert_eq!((&x + 0.5).to_vec::<f32>()?, [1.5, 2.5, 3.5, 4.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    add = Add, Promoted;
    /// `self - other`, in the promoted dtype; integers wrap. Shapes broadcast; invalid for two bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3u8, 1], [2]);
    /// assert_eq!(x.sub(2).to_vec::<u8>()?, [1, 255]);
    /// assert_eq!((1.5 - &x).to_vec::<f32>()?, [-1.5, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sub = Sub, Promoted;
    /// `self * other`, in the promoted dtype; integers wrap, bools are and-ed. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let column = Tensor::from_slice(&[1.0f32, 2.0], [2, 1]);
    /// let row = Tensor::from_slice(&[3.0f32, 4.0], [2]);
    /// assert_eq!(column.mul(&row).to_vec::<f32>()?, [3.0, 4.0, 6.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    mul = Mul, Promoted;
    /// `self / other`, the true quotient: in the promoted dtype, or `F32` for integers and bools. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[7i32, -7], [2]);
    /// assert_eq!(x.div(2).to_vec::<f32>()?, [3.5, -3.5]);
    /// assert_eq!(x.floor_divide(2).to_vec::<i32>()?, [3, -4]);
    /// assert_eq!(x.remainder(2).to_vec::<i32>()?, [1, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    div = Div, Float;
    /// The quotient rounded towards minus infinity (Python's `//`), in the promoted dtype. Integer division
    /// by zero gives 0. Shapes broadcast; invalid for two bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[7i32, -7], [2]);
    /// assert_eq!(x.floor_divide(2).to_vec::<i32>()?, [3, -4]);
    /// assert_eq!(x.floor_divide(0).to_vec::<i32>()?, [0, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    floor_divide = FloorDiv, Promoted;
    /// The remainder with the divisor's sign (Python's `%`), in the promoted dtype. An integer remainder by
    /// zero is 0. Shapes broadcast; invalid for two bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[7i32, -7], [2]);
    /// assert_eq!(x.remainder(3).to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(x.remainder(-3).to_vec::<i32>()?, [-2, -1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    remainder = Rem, Promoted;
    /// The larger of two elements, NaN if either is, in the promoted dtype; +0 is larger than -0. Shapes broadcast.
    /// A number must fit the dtype ([`Tensor::full`] says what does). See [`Tensor::max`] for the largest along axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, -2.0, f32::NAN], [3]);
    /// let larger = x.maximum(0.0).to_vec::<f32>()?;
    /// assert_eq!(larger[..2], [1.0, 0.0]);
    /// assert!(larger[2].is_nan()); // `fmax` gives the number
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    maximum = Maximum, Held;
    /// The smaller of two elements, NaN if either is, in the promoted dtype; -0 is smaller than +0. Shapes broadcast.
    /// A number must fit the dtype, as for [`Tensor::maximum`]. See [`Tensor::min`] for the smallest along axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, -2.0, f32::NAN], [3]);
    /// let smaller = x.minimum(0.0).to_vec::<f32>()?;
    /// assert_eq!(smaller[..2], [0.0, -2.0]);
    /// assert!(smaller[2].is_nan()); // `fmin` gives the number
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    minimum = Minimum, Held;
    /// The angle in radians of the point (`other`, `self`), in the promoted dtype, or `F32` for integers and
    /// bools. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// use std::f32::consts::PI;
    /// let y = Tensor::from_slice(&[0.0f32, -0.0], [2]);
    /// assert_eq!(y.atan2(-1.0).to_vec::<f32>()?, [PI, -PI]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    atan2 = Atan2, Float;
    /// The remainder with the dividend's sign (C's `fmod`), in the promoted dtype. An integer remainder by zero is 0.
    /// Shapes broadcast; invalid for two bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[7i32, -7], [2]);
    /// assert_eq!(x.fmod(3).to_vec::<i32>()?, [1, -1]);
    /// assert_eq!(x.remainder(3).to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    fmod = Fmod, Promoted;
    /// The larger of two elements, or the one that is a number, in the promoted dtype. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 1.0], [2]);
    /// assert_eq!(x.fmax(0.5).to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    fmax = Fmax, Held;
    /// The smaller of two elements, or the one that is a number, in the promoted dtype. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 1.0], [2]);
    /// assert_eq!(x.fmin(0.5).to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    fmin = Fmin, Held;
    /// `sqrt(self² + other²)` without overflow on the way, in the promoted dtype, or `F32` for integers and bools.
    /// Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[3.0f32], [1]).hypot(4.0).to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hypot = Hypot, Float;
    /// The magnitude of `self` with the sign of `other`, also of -0, in the promoted dtype, or `F32` for integers and
    /// bools. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[3.0f32], [1]).copysign(-0.0).to_vec::<f32>()?, [-3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    copysign = Copysign, Float;
}

binary_methods! {
    /// Bits and truth values.
    impl:
    /// Bitwise and of integers, logical and of bools, in the promoted dtype. Shapes broadcast; invalid for
    /// floats. Also written `a & b`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0b1100u8, 0b1010], [2]);
    /// assert_eq!(x.bitwise_and(0b0110).to_vec::<u8>()?, [0b0100, 0b0010]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    bitwise_and = And, Promoted;
    /// Bitwise or of integers, logical or of bools, in the promoted dtype. Shapes broadcast; invalid for
    /// floats. Also written `a | b`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32, 2.0, 9.0], [3]);
    /// let outside = x.lt(1.0) | x.gt(8.0);
    /// assert_eq!(outside.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    bitwise_or = Or, Promoted;
    /// Bitwise exclusive or of integers, inequality of bools, in the promoted dtype. Shapes broadcast; invalid
    /// for floats. Also written `a ^ b`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0b1100u8, 0b1010], [2]);
    /// assert_eq!(x.bitwise_xor(0b1111).to_vec::<u8>()?, [0b0011, 0b0101]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    bitwise_xor = Xor, Promoted;
    /// The greatest common divisor of integers, in the promoted dtype: not negative, and 0 of two zeros. Shapes broadcast;
    /// invalid for floats and for two bools. For the least common multiple see [`Tensor::lcm`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[12i32, -18, 0], [3]);
    /// assert_eq!(x.gcd(8).to_vec::<i32>()?, [4, 2, 8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    gcd = Gcd, Promoted;
    /// Whether both are nonzero: a `Bool`, for every dtype. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0, f32::NAN], [3]);
    /// let y = Tensor::from_slice(&[1i32, 0, -1], [3]);
    /// assert_eq!(x.logical_and(&y).to_vec::<bool>()?, [false, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logical_and = And, Truth;
    /// Whether either is nonzero: a `Bool`, for every dtype. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0, f32::NAN], [3]);
    /// assert_eq!(x.logical_or(0).to_vec::<bool>()?, [false, true, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logical_or = Or, Truth;
    /// Whether exactly one is nonzero: a `Bool`, for every dtype. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0], [2]);
    /// assert_eq!(x.logical_xor(5).to_vec::<bool>()?, [true, false]); // both 2 and 5 are nonzero
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logical_xor = Xor, Truth;
    /// Shifted left by so many bits, in the promoted dtype; 0 where the number is negative or not less than the
    /// dtype's bits. Shapes broadcast; invalid for floats and bools. Also written `a << b`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1u8, 200], [2]);
    /// assert_eq!(x.bitwise_left_shift(1).to_vec::<u8>()?, [2, 144]);
    /// assert_eq!((&x >> 3).to_vec::<u8>()?, [0, 25]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    bitwise_left_shift = Shl, Promoted;
    /// Shifted right by so many bits, in the promoted dtype, copies of the sign coming in; where the number is negative
    /// or not less than the dtype's bits, nothing but these. Shapes broadcast; invalid for floats and bools. Also
    /// written `a >> b`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-9i32, 9], [2]);
    /// assert_eq!(x.bitwise_right_shift(1).to_vec::<i32>()?, [-5, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    bitwise_right_shift = Shr, Promoted;
}

binary_methods! {
    /// Comparisons of elements. The names are those of PyTorch and of `PartialEq` and `PartialOrd`, which a
    /// tensor does not implement, because their results are a single `bool`: write `x.gt(0.0)`, not `x > 0.0`.
    impl:
    /// Whether the elements are equal, compared in the promoted dtype: a `Bool`; false if either is NaN.
    /// Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, -0.0, f32::NAN], [3]);
    /// assert_eq!(x.eq(0).to_vec::<bool>()?, [false, true, false]);
    /// assert_eq!(x.eq(&x).to_vec::<bool>()?, [true, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    eq = Eq, Promoted;
    /// Whether the elements differ, compared in the promoted dtype: a `Bool`; true if either is NaN. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, -0.0, f32::NAN], [3]);
    /// assert_eq!(x.ne(0).to_vec::<bool>()?, [true, false, true]);
    /// assert_eq!(x.ne(&x).to_vec::<bool>()?, [false, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ne = Ne, Promoted;
    /// Whether `self < other`, compared in the promoted dtype: a `Bool`; false if either is NaN. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 0.0, f32::NAN], [3]);
    /// assert_eq!(x.lt(0.0).to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    lt = Lt, Promoted;
    /// Whether `self <= other`, compared in the promoted dtype: a `Bool`; false if either is NaN. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 0.0, f32::NAN], [3]);
    /// assert_eq!(x.le(0.0).to_vec::<bool>()?, [true, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    le = Le, Promoted;
    /// Whether `self > other`, compared in the promoted dtype: a `Bool`; false if either is NaN. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 0.0, 2.0], [3]);
    /// assert_eq!(x.gt(0.0).to_vec::<bool>()?, [false, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    gt = Gt, Promoted;
    /// Whether `self >= other`, compared in the promoted dtype: a `Bool`; false if either is NaN. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 0.0, f32::NAN], [3]);
    /// assert_eq!(x.ge(0.0).to_vec::<bool>()?, [false, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ge = Ge, Promoted;
}

impl Tensor {
    /// The elements of `a` where this `Bool` tensor is true, of `b` where it is false, in the promoted dtype
    /// of `a` and `b`. All three broadcast; `a` and `b` may be numbers.
    ///
    /// Invalid if the condition is not `Bool`, and for a number that the promoted dtype does not hold ([`Tensor::full`] says
    /// which it does).
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.0f32, 3.0], [2]);
    /// assert_eq!(x.lt(0.0).where_(0.1 * &x, &x).to_vec::<f32>()?, [-0.2, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn where_(&self, a: impl Into<Operand>, b: impl Into<Operand>) -> Tensor {
        Tensor::or_invalid(select(Call::here("where"), self, [a.into(), b.into()]))
    }
}

pub(crate) fn binary(call: Call, op: BinaryOp, rule: Rule, operands: [Operand; 2]) -> Result<Tensor> {
    let dtype = rule.dtype(call, &operands)?;
    if !op.accepts(dtype) {
        return call.fail(refusal(op, dtype, &operands));
    }
    if scales(op, dtype, &operands) {
        let wide = |operand| match operand {
            Operand::Tensor(x) => Ok(Operand::Tensor(call.cast(&x, dtype.compute())?)),
            number => Ok(number),
        };
        let [a, b] = operands;
        return call.cast(&binary(call, op, rule, [wide(a)?, wide(b)?])?, dtype);
    }
    match operands {
        // A scan's step has tensors alone.
        [Operand::Tensor(x), Operand::Number(number)] if !x.node.is_of_step => {
            beside(call, op, x, (number, dtype), false)
        }
        [Operand::Number(number), Operand::Tensor(x)] if !x.node.is_of_step => {
            beside(call, op, x, (number, dtype), true)
        }
        [a, b] => call.binary_of(op, cast(call, a, dtype)?, cast(call, b, dtype)?),
    }
}

/// Whether 16-bit floats are scaled by a number that is none of them: as in PyTorch it keeps its digits, and the product alone is
/// rounded.
fn scales(op: BinaryOp, dtype: DType, operands: &[Operand; 2]) -> bool {
    let is_scaled = |number: &Number| {
        let [own, wide] = [dtype, dtype.compute()].map(|dtype| number.to_scalar(dtype).as_f64());
        own != wide && !wide.is_nan()
    };
    matches!(op, BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv)
        && dtype.compute() != dtype
        && operands.iter().any(|operand| matches!(operand, Operand::Number(number) if is_scaled(number)))
}

/// The operation of a tensor and a number of the user's, which meet in a dtype that it accepts.
fn beside(
    call: Call,
    op: BinaryOp,
    x: Tensor,
    (number, dtype): (Number, DType),
    is_first: bool,
) -> Result<Tensor> {
    let number = Constant { value: number.to_scalar(dtype), role: ConstantRole::Argument };
    Ok(call.with_number(op, cast(call, x.into(), dtype)?, number, is_first))
}

/// Why operands of a dtype do not fit, and what to do.
fn refusal(op: BinaryOp, dtype: DType, operands: &[Operand]) -> String {
    let named: SmallVec<[String; 2]> = operands.iter().map(described).collect();
    let named = list(&named);
    match op {
        BinaryOp::Sub if dtype == DType::Bool => {
            format!("not defined for bools, got {named}; use .logical_xor(…) or the operator ^")
        }
        _ if dtype == DType::Bool => {
            format!("not defined for bools, got {named}; cast one first, such as with .cast(DType::I64)")
        }
        _ if !op.accepts(DType::F32) => match op.accepts(DType::Bool) {
            true => format!("needs integers or bools, got {named}"),
            false => format!("needs integers, got {named}"),
        },
        _ => format!("not defined for {dtype}, got {named}"),
    }
}

fn select(call: Call, condition: &Tensor, operands: [Operand; 2]) -> Result<Tensor> {
    let (own, asked) = condition.known()?;
    let dtype = Rule::Held.dtype(call, &operands)?;
    if asked != DType::Bool {
        return call
            .fail(format!("the condition must be bool, got {asked} {own}; compare it, such as with .ne(0)"));
    }
    let [a, b] = operands;
    let shape = call.broadcast(&[own, &a.shape(), &b.shape()])?;
    let (a, b) = (cast(call, a, dtype)?, cast(call, b, dtype)?);
    call.record(Op::Select, &[condition, &a, &b], shape, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{mistake, recorded};
    use crate::{Device, Shape};

    type Method = fn(&Tensor, &Tensor) -> Tensor;

    /// Method, the operation it records, and its result for bool, i32, f16 and f32 (`None`: invalid).
    #[test]
    fn dtypes_follow_pytorch() {
        use DType::{Bool, F16, F32, I32};
        let same = [Some(Bool), Some(I32), Some(F16), Some(F32)];
        let no_bool = [None, Some(I32), Some(F16), Some(F32)];
        let float = [Some(F32), Some(F32), Some(F16), Some(F32)];
        let bits = [Some(Bool), Some(I32), None, None];
        let truth = [Some(Bool); 4];
        let cases: [(Method, &str, [Option<DType>; 4]); 22] = [
            (|a, b| a.add(b), "add", same),
            (|a, b| a.sub(b), "sub", no_bool),
            (|a, b| a.mul(b), "mul", same),
            (|a, b| a.div(b), "div", float),
            (|a, b| a.floor_divide(b), "floor_divide", no_bool),
            (|a, b| a.remainder(b), "remainder", no_bool),
            (|a, b| a.pow(b), "pow", no_bool),
            (|a, b| a.maximum(b), "maximum", same),
            (|a, b| a.minimum(b), "minimum", same),
            (|a, b| a.atan2(b), "atan2", float),
            (|a, b| a.bitwise_and(b), "and", bits),
            (|a, b| a.bitwise_or(b), "or", bits),
            (|a, b| a.bitwise_xor(b), "xor", bits),
            (|a, b| a.logical_and(b), "and", truth),
            (|a, b| a.logical_or(b), "or", truth),
            (|a, b| a.logical_xor(b), "xor", truth),
            (|a, b| a.eq(b), "eq", truth),
            (|a, b| a.ne(b), "ne", truth),
            (|a, b| a.lt(b), "lt", truth),
            (|a, b| a.le(b), "le", truth),
            (|a, b| a.gt(b), "gt", truth),
            (|a, b| a.ge(b), "ge", truth),
        ];
        for (method, op, results) in cases {
            for (dtype, expected) in [Bool, I32, F16, F32].into_iter().zip(results) {
                let x = Tensor::ones([2, 1], dtype);
                let y = method(&x, &Tensor::ones([3], dtype));
                assert_eq!(y.dtype().ok(), expected, "{op} of {dtype}");
                if expected.is_some() {
                    assert_eq!(y.shape().unwrap(), Shape::from([2, 3]), "{op} of {dtype}");
                    assert_eq!(recorded(&y).last().map(String::as_str), Some(op));
                }
            }
        }
    }

    #[test]
    fn operands_are_cast_before_they_are_broadcast() {
        let x = Tensor::from_slice(&[1i32, 2], [2, 1]);
        let y = Tensor::from_slice(&[1.0f32, 2.0], [2]);
        assert_eq!(recorded(&(&x * &y)), ["input", "cast", "input", "expand", "expand", "mul"]);
        assert_eq!(recorded(&(&y * 2)), ["input", "constant 2.0f32 argument", "expand", "mul"]);
        assert_eq!(recorded(&y.mul(&y)), ["input", "mul"]);
    }

    #[test]
    fn where_takes_tensors_and_numbers() {
        let mask = Tensor::from_slice(&[true, false], [2, 1]);
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
        let picked = mask.where_(&x, 0);
        assert_eq!(picked.shape().unwrap(), Shape::from([2, 3]));
        assert_eq!(picked.dtype().unwrap(), DType::F32);
        assert_eq!(mask.where_(1, 0).dtype().unwrap(), DType::I64);
        assert_eq!(mask.where_(1.0, false).dtype().unwrap(), DType::F32);
        assert_eq!(mask.where_(x.cast(DType::F16), x.cast(DType::BF16)).dtype().unwrap(), DType::F32);
    }

    /// The results are PyTorch's.
    #[test]
    fn what_scales_16_bit_floats_keeps_its_digits() {
        let of = |dtype, values: &[f32]| Tensor::from_slice(values, [values.len()]).cast(dtype);
        let exact = |x: Tensor| x.to(&Device::interpreter()).cast(DType::F32).to_vec::<f32>().unwrap();
        let (half, brain) = (of(DType::F16, &[1e-3, 60_000.0]), of(DType::BF16, &[100.0, 3.0]));
        assert_eq!((&half * 65536.0).dtype().unwrap(), DType::F16);
        assert_eq!(exact(&half * 65536.0), [65.5625, f32::INFINITY]);
        assert_eq!(exact(65536.0 * &half), [65.5625, f32::INFINITY]);
        assert_eq!(exact(&half / 100_000), [0.0, 0.600_097_66]);
        assert_eq!(exact(half.floor_divide(1e-8))[1], f32::INFINITY);
        assert_eq!(exact(&brain * 1.003), [100.5, 3.015_625]);
        // What is a number of the dtype is one there, and what is added is made one.
        assert_eq!(recorded(&(&brain * 0.5)).last().map(String::as_str), Some("mul"));
        assert_eq!(recorded(&(&brain + 1.003)).last().map(String::as_str), Some("add"));
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([3, 4], DType::F32);
        let y = Tensor::ones([5], DType::F32);
        let mask = Tensor::ones([4], DType::Bool);
        mistake!(
            &x * &y,
            "mul: shapes [3, 4] and [5] do not broadcast: 4 against 5 in dimension -1, which must be equal or 1"
        );
        mistake!(
            x.add(Tensor::ones([2, 4], DType::F32)),
            "add: shapes [3, 4] and [2, 4] do not broadcast: 3 against 2 in dimension -2, which must be equal or 1"
        );
        mistake!(
            mask.where_(&x, &y),
            "where: shapes [4], [3, 4] and [5] do not broadcast: 4 against 5 in dimension -1, which must be equal or 1"
        );
        mistake!(
            x.where_(1.0, 0.0),
            "where: the condition must be bool, got f32 [3, 4]; compare it, such as with .ne(0)"
        );
        mistake!(
            &mask - &mask,
            "sub: not defined for bools, got bool [4] and bool [4]; use .logical_xor(…) or the operator ^"
        );
        mistake!(
            mask.pow(true),
            "pow: not defined for bools, got bool [4] and the number true; cast one first, such as with .cast(DType::I64)"
        );
        mistake!(x.bitwise_and(3), "bitwise_and: needs integers or bools, got f32 [3, 4] and the number 3");
        mistake!(
            x.clamp(0.0, &y),
            "clamp: shapes [3, 4] and [5] do not broadcast: 4 against 5 in dimension -1, which must be equal or 1"
        );
    }
}
