//! Operations on elements that are short formulas of others.

use std::f64::consts::{LN_2, LOG2_E, PI};

use super::binary::binary;
use super::formula::{Argument, Term, formula};
use super::operands::{Rule, cast};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Number, Operand, result_type};
use crate::{BinaryOp, DType, Result, Tensor, UnaryOp};

/// How [`Tensor::div_with`] rounds a quotient: PyTorch's `rounding_mode`.
///
/// ```
/// use lazuli::{Rounding, Tensor};
/// let x = Tensor::from_slice(&[-7i32, 7], [2]);
/// assert_eq!(x.div_with(2, Rounding::Floor).to_vec::<i32>()?, [-4, 3]);
/// assert_eq!(x.div_with(2, Rounding::Trunc).to_vec::<i32>()?, [-3, 3]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rounding {
    /// Towards minus infinity, as Python's `//`.
    Floor,
    /// Towards zero, as C's and Rust's division of integers.
    Trunc,
}

impl Tensor {
    /// `self` to the power `other`, in the promoted dtype. Integers wrap, and negative exponents in a tensor give 0 but
    /// for the bases 1 and -1. Shapes broadcast; invalid for two bools, and for an integer that is the exponent of
    /// integers if it is negative or does not fit their dtype. For a number's power, see [`Tensor::rpow`].
    ///
    /// As in PyTorch, the numbers 0.5 and -0.5 are [`Tensor::sqrt`] and [`Tensor::rsqrt`], which differ from powers by
    /// an exponent in a tensor: of -∞ they are NaN (∞ and 0), of -0 they are -0 and -∞ (0 and ∞). The numbers 2, 3 and 4
    /// are products.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[2i32, -1], [2]);
    /// assert_eq!(x.pow(3).to_vec::<i32>()?, [8, -1]);
    /// assert_eq!(x.pow(Tensor::from([-1])).to_vec::<i32>()?, [0, -1]);
    /// assert_eq!(x.cast(DType::F32).pow(-1).to_vec::<f32>()?, [0.5, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pow(&self, other: impl Into<Operand>) -> Tensor {
        Tensor::or_invalid(pow(Call::here("pow"), [self.into(), other.into()]))
    }

    /// The base to the power of each element: `base.pow(self)`, in which the base may be a number. Dtypes are those
    /// of [`Tensor::pow`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, 3.0], [3]);
    /// assert_eq!(x.rpow(2).to_vec::<f32>()?, [1.0, 2.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rpow(&self, base: impl Into<Operand>) -> Tensor {
        Tensor::or_invalid(pow(Call::here("rpow"), [base.into(), self.into()]))
    }

    /// The quotient rounded to an integer, in the promoted dtype. Integer division by zero gives 0. Shapes broadcast;
    /// invalid for two bools.
    ///
    /// ```
    /// use lazuli::{Rounding, Tensor};
    /// let x = Tensor::from_slice(&[-7.5f32, 7.5], [2]);
    /// assert_eq!(x.div_with(2, Rounding::Trunc).to_vec::<f32>()?, [-3.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn div_with(&self, other: impl Into<Operand>, rounding: Rounding) -> Tensor {
        Tensor::or_invalid(divided(Call::here("div_with"), [self.into(), other.into()], rounding))
    }

    /// `x - trunc(x)`: what is behind the point, with the sign of x. Keeps shape and dtype; invalid for integers and
    /// bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.5f32, 2.25], [2]).frac().to_vec::<f32>()?, [-0.5, 0.25]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn frac(&self) -> Tensor {
        let frac = |[x]: [Term; 1]| &x - x.trunc();
        Tensor::or_invalid(formula(Call::here("frac"), Rule::Floats, [self.into()], frac))
    }

    /// Radians of degrees. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let half_turn = Tensor::from_slice(&[180.0f32], [1]).deg2rad();
    /// assert_eq!(half_turn.to_vec::<f32>()?, [std::f32::consts::PI]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn deg2rad(&self) -> Tensor {
        let scaled = |[x]: [Term; 1]| x * (PI / 180.0);
        Tensor::or_invalid(formula(Call::here("deg2rad"), Rule::Float, [self.into()], scaled))
    }

    /// Degrees of radians. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let half_turn = Tensor::from_slice(&[std::f32::consts::PI], [1]).rad2deg();
    /// assert_eq!(half_turn.to_vec::<f32>()?, [180.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rad2deg(&self) -> Tensor {
        let scaled = |[x]: [Term; 1]| x * (180.0 / PI);
        Tensor::or_invalid(formula(Call::here("rad2deg"), Rule::Float, [self.into()], scaled))
    }

    /// Rounded to so many decimals, halves to even; to tens, hundreds, … if negative. PyTorch's `round` with
    /// `decimals`. Keeps shape and dtype; invalid for integers and bools.
    ///
    /// The scaled number is rounded, so that the limits between two results are those of the multiplication.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.26f32, 1250.0], [2]);
    /// assert_eq!(x.round_decimals(1).to_vec::<f32>()?, [1.3, 1250.0]);
    /// assert_eq!(x.round_decimals(-2).to_vec::<f32>()?, [0.0, 1200.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn round_decimals(&self, decimals: i32) -> Tensor {
        let power = Argument(10f64.powi(decimals.saturating_abs()));
        let rounded = |[x]: [Term; 1]| match decimals {
            0 => x.round(),
            1.. => (x * power).round() / power,
            _ => (x / power).round() * power,
        };
        Tensor::or_invalid(formula(Call::here("round_decimals"), Rule::Floats, [self.into()], rounded))
    }

    /// `log(exp(self) + exp(other))` without overflow, in the promoted dtype, or `F32` for integers and bools. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1000.0f32], [1]);
    /// assert_eq!(x.logaddexp(-1000.0).to_vec::<f32>()?, [1000.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn logaddexp(&self, other: impl Into<Operand>) -> Tensor {
        let sum = |[a, b]: [Term; 2]| {
            let larger = a.maximum(&b);
            shared(larger + (-difference(&a, &b).abs()).exp().log1p(), [&a, &b], 1.0)
        };
        let operands = [self.into(), other.into()];
        Tensor::or_invalid(formula(Call::here("logaddexp"), Rule::Float, operands, sum))
    }

    /// `log2(exp2(self) + exp2(other))` without overflow, in the promoted dtype, or `F32` for integers and bools. Shapes
    /// broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1000.0f32], [1]);
    /// assert_eq!(x.logaddexp2(1000.0).to_vec::<f32>()?, [1001.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn logaddexp2(&self, other: impl Into<Operand>) -> Tensor {
        let sum = |[a, b]: [Term; 2]| {
            let larger = a.maximum(&b);
            shared(larger + (-difference(&a, &b).abs()).exp2().log1p() * LOG2_E, [&a, &b], LN_2)
        };
        let operands = [self.into(), other.into()];
        Tensor::or_invalid(formula(Call::here("logaddexp2"), Rule::Float, operands, sum))
    }

    /// `log(x / (1 - x))`, the opposite of [`Tensor::sigmoid`]: infinite at 0 and 1, NaN beyond. Floats keep their dtype,
    /// integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.5f32, 1.0], [2]).logit().to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn logit(&self) -> Tensor {
        let logit = |[x]: [Term; 1]| {
            // At 0 and 1 the quotient and the logarithm have slopes whose product is NaN.
            (&x / (-&x + 1.0)).log().derived([&x], |g, [x], _| {
                let slope = &g / (&x * (-&x + 1.0));
                [x.lt(0.0).or(x.gt(1.0)).select(f64::NAN, slope)]
            })
        };
        Tensor::or_invalid(formula(Call::here("logit"), Rule::Float, [self.into()], logit))
    }

    /// 0 where `self` is negative or NaN, 1 where it is positive, and the other's element where it is 0: in the
    /// promoted dtype. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.0f32, 0.0, 3.0], [3]);
    /// assert_eq!(x.heaviside(0.5).to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn heaviside(&self, at_zero: impl Into<Operand>) -> Tensor {
        let step = |[x, at_zero]: [Term; 2]| x.eq(0.0).select(at_zero, x.gt(0.0).select(x.like(1.0), 0.0));
        let operands = [self.into(), at_zero.into()];
        Tensor::or_invalid(formula(Call::here("heaviside"), Rule::Held, operands, step))
    }

    /// From `self` (weight 0) to `end` (weight 1) and beyond, on a line: exact at both. In the promoted dtype of all
    /// three, which must be a float; they broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 10.0], [2]);
    /// assert_eq!(x.lerp(20.0, 0.25).to_vec::<f32>()?, [5.0, 12.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lerp(&self, end: impl Into<Operand>, weight: impl Into<Operand>) -> Tensor {
        Tensor::or_invalid(lerp(Call::here("lerp"), self.into(), end.into(), weight.into()))
    }

    /// `self + value * a * b`, in the promoted dtype of the tensors; all three broadcast. Invalid for bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// assert_eq!(x.addcmul(&x, &x, 0.5).to_vec::<f32>()?, [1.5, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn addcmul(&self, a: impl Into<Operand>, b: impl Into<Operand>, value: f64) -> Tensor {
        let operands = [self.into(), a.into(), b.into()];
        let sum = |[x, a, b]: [Term; 3]| x + a * Argument(value) * b;
        Tensor::or_invalid(formula(Call::here("addcmul"), Rule::Numbers, operands, sum))
    }

    /// `self + value * a / b`, in the promoted dtype of the tensors, which must be a float; all three broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// assert_eq!(x.addcdiv(&x, 4.0, 2.0).to_vec::<f32>()?, [1.5, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn addcdiv(&self, a: impl Into<Operand>, b: impl Into<Operand>, value: f64) -> Tensor {
        let operands = [self.into(), a.into(), b.into()];
        let sum = |[x, a, b]: [Term; 3]| x + a * Argument(value) / b;
        Tensor::or_invalid(formula(Call::here("addcdiv"), Rule::Floats, operands, sum))
    }

    /// NaN replaced by a number, and the infinities by others: by the greatest and the least number of the dtype if
    /// `None`. Keeps shape and dtype; integers and bools stay as they are. PyTorch's number for NaN is 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2.0], [4]);
    /// assert_eq!(x.nan_to_num(0.0, Some(9.0), None).to_vec::<f32>()?, [0.0, 9.0, f32::MIN, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Tensor {
        Tensor::or_invalid(nan_to_num(Call::here("nan_to_num"), self, nan, posinf, neginf))
    }

    /// Whether `|self - other| <= atol + rtol * |other|`, or both are equal (so are infinities): a `Bool`. NaN is close
    /// to NaN if `equal_nan`. Compared in the promoted dtype, or `F32` for integers and bools; shapes broadcast.
    /// PyTorch's `rtol` is 1e-5, its `atol` 1e-8.
    ///
    /// Invalid for a negative tolerance.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN], [2]);
    /// assert_eq!(x.isclose(&x * 1.000001, 1e-5, 1e-8, false).to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn isclose(&self, other: impl Into<Operand>, rtol: f64, atol: f64, equal_nan: bool) -> Tensor {
        let close = |[a, b]: [Term; 2]| {
            let difference = (&a - &b).abs();
            let allowed = (&b * Argument(rtol)).abs() + Argument(atol);
            let near = difference.isfinite().and(difference.le(allowed)).or(a.eq(&b));
            if equal_nan { near.or(a.isnan().and(b.isnan())) } else { near }
        };
        let (call, operands) = (Call::here("isclose"), [self.into(), other.into()]);
        call.composed(|| {
            call.needs(rtol >= 0.0, "rtol must be 0 or more", rtol)?;
            call.needs(atol >= 0.0, "atol must be 0 or more", atol)?;
            formula(call, Rule::Float, operands, close)
        })
    }

    /// The least common multiple of integers, in the promoted dtype: not negative, and 0 where either is 0. What is too large
    /// wraps, and may then be negative, as PyTorch's. Shapes broadcast; invalid for floats and for two bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[12i32, -5, 0], [3]);
    /// assert_eq!(x.lcm(8).to_vec::<i32>()?, [24, 40, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn lcm(&self, other: impl Into<Operand>) -> Tensor {
        let (call, other) = (Call::here("lcm"), other.into());
        call.composed(|| {
            let divisor = self.gcd(other.clone());
            let dtype = divisor.known()?.1;
            // As in C, and so in PyTorch, shorter integers wrap at the end alone.
            let wide = if matches!(dtype, DType::I8 | DType::I16) { DType::I32 } else { dtype };
            let other = cast(call, other, dtype)?.cast(wide);
            let quotient = self.cast(dtype).cast(wide).floor_divide(divisor.cast(wide));
            Ok(quotient.mul(other).abs().cast(dtype))
        })
    }

    /// The value where the `Bool` mask is true, this tensor's elements elsewhere. Keeps the dtype, to which the value
    /// is converted; the shapes broadcast.
    ///
    /// Invalid if the mask is not `Bool`, and for a number that the dtype does not hold ([`Tensor::full`] says which it does).
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.0f32, 3.0], [2]);
    /// assert_eq!(x.masked_fill(&x.lt(0.0), 0.5).to_vec::<f32>()?, [0.5, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_fill(&self, mask: impl AsRef<Tensor>, value: impl Into<Number>) -> Tensor {
        let mask = mask.as_ref();
        Tensor::or_invalid(masked_fill(Call::here("masked_fill"), self, mask, value.into()))
    }
}

/// `a - b`, but 0 of two infinities of one sign.
fn difference(a: &Term, b: &Term) -> Term {
    a.eq(b).select(0.0, a - b).derived([a, b], |g, _, _| [g.clone(), -g])
}

/// The logarithm of a sum of powers, with slopes that are the shares of each, given the logarithm of what the powers are of.
fn shared(sum: Term, of: [&Term; 2], scale: f64) -> Term {
    // The parts of the formula have bends where both are equal, their sum has none.
    sum.derived(of, move |g, [a, b], _| {
        let ahead = difference(&a, &b) * scale;
        [&g * ahead.sigmoid(), g * (-ahead).sigmoid()]
    })
}

fn pow(call: Call, operands: [Operand; 2]) -> Result<Tensor> {
    if let [_, Operand::Number(exponent @ Number::Int(value))] = operands {
        let dtype = result_type(&operands)?;
        if value < 0 && dtype.is_int() {
            return call.fail(format!(
                "integers to the power of {value} are no integers; cast them first, such as with .cast(DType::F32)"
            ));
        }
        exponent.held(call, dtype)?;
    }
    let root = match (&operands[0], &operands[1]) {
        (_, Operand::Number(Number::Float(0.5))) => UnaryOp::Sqrt,
        (_, Operand::Number(Number::Float(-0.5))) => UnaryOp::Rsqrt,
        // Products, and no call of a function.
        (Operand::Tensor(_), Operand::Number(Number::Int(3) | Number::Float(3.0))) => {
            return formula(call, Rule::Promoted, operands, |[x, _]| x.square() * x);
        }
        (Operand::Tensor(_), Operand::Number(Number::Int(4) | Number::Float(4.0))) => {
            return formula(call, Rule::Promoted, operands, |[x, _]| x.square().square());
        }
        _ => return binary(call, BinaryOp::Pow, Rule::Promoted, operands),
    };
    let dtype = Rule::Promoted.dtype(call, &operands)?;
    match &operands[0] {
        Operand::Tensor(x) => call.unary(root, &call.cast(x, dtype)?),
        Operand::Number(_) => binary(call, BinaryOp::Pow, Rule::Promoted, operands),
    }
}

fn divided(call: Call, operands: [Operand; 2], rounding: Rounding) -> Result<Tensor> {
    let is_float = Rule::Numbers.dtype(call, &operands)?.is_float();
    match rounding {
        Rounding::Floor => binary(call, BinaryOp::FloorDiv, Rule::Promoted, operands),
        Rounding::Trunc => formula(call, Rule::Numbers, operands, |[a, b]| match is_float {
            true => (a / b).trunc(),
            // Without its remainder a number is a multiple of the divisor: which way is rounded does not matter.
            false => (&a - a.binary(BinaryOp::Fmod, &b)).binary(BinaryOp::FloorDiv, b),
        }),
    }
}

fn lerp(call: Call, start: Operand, end: Operand, weight: Operand) -> Result<Tensor> {
    // From the end that is nearer the result is exact at both, and beyond the start it overflows no sooner than it must.
    let from_start = |start: &Term, end: &Term, weight: &Term| start + weight * (end - start);
    let from_end = |start: &Term, end: &Term, weight: &Term| end - (end - start) * (-weight + 1.0);
    let is_near_start = match weight {
        Operand::Number(Number::Float(weight)) => Some(weight < 0.5),
        Operand::Number(Number::Int(weight)) => Some(weight < 1),
        Operand::Number(Number::Bool(weight)) => Some(!weight),
        Operand::Tensor(_) => None,
    };
    formula(call, Rule::Floats, [start, end, weight], |[start, end, weight]| match is_near_start {
        Some(true) => from_start(&start, &end, &weight),
        Some(false) => from_end(&start, &end, &weight),
        None => {
            let near = weight.lt(0.5);
            near.select(from_start(&start, &end, &weight), from_end(&start, &end, &weight))
        }
    })
}

fn nan_to_num(call: Call, x: &Tensor, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<Tensor> {
    let (_, dtype) = x.known()?;
    let Some(limits) = dtype.finfo() else { return Ok(x.clone()) };
    let (posinf, neginf) = (posinf.unwrap_or(limits.max), neginf.unwrap_or(limits.min));
    formula(call, Rule::Floats, [x.into()], |[x]| {
        let finite = x.eq(f64::INFINITY).select(Argument(posinf), &x);
        let finite = x.eq(f64::NEG_INFINITY).select(Argument(neginf), finite);
        x.isnan().select(Argument(nan), finite)
    })
}

fn masked_fill(call: Call, x: &Tensor, mask: &Tensor, value: Number) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let (own, mask_dtype) = mask.known()?;
    if mask_dtype != DType::Bool {
        return call
            .fail(format!("the mask must be bool, got {mask_dtype} {own}; compare it, such as with .ne(0)"));
    }
    let shape = call.broadcast(&[shape, own])?;
    let term = |tensor: &Tensor| Term { call, value: call.expand(tensor, &shape) };
    let value = call.filled(value.held(call, dtype)?, crate::graph::op::ConstantRole::Argument, &shape)?;
    term(mask).select(term(&value), term(x)).value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{mistake, recorded};

    #[test]
    fn formulas_in_16_bits_round_once() {
        let x = Tensor::from_slice(&[half::f16::ONE], [1]);
        assert_eq!(recorded(&x.frac()), ["input", "cast", "trunc", "sub", "cast"]);
        let x = Tensor::from_slice(&[1.0f32], [1]);
        assert_eq!(recorded(&x.frac()), ["input", "trunc", "sub"]);
    }

    #[test]
    fn parameters_are_arguments_and_constants_literals() {
        let x = Tensor::from_slice(&[1.0f32], [1]);
        let names = recorded(&x.leaky_relu(0.25));
        assert!(names.contains(&"constant 0.25f32 argument".to_owned()), "{names:?}");
        assert!(names.contains(&"constant 0.0f32 literal".to_owned()), "{names:?}");
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        let integers = x.cast(DType::I32);
        mistake!(
            integers.frac(),
            "frac: needs a float tensor, got i32 [2, 3]; cast it first, such as with .cast(DType::F32)"
        );
        mistake!(
            integers.lerp(&integers, 2),
            "lerp: needs float tensors, got i32 [2, 3], i32 [2, 3] and the number 2; cast one first, such as with .cast(DType::F32)"
        );
        mistake!(
            x.masked_fill(&integers, 0),
            "masked_fill: the mask must be bool, got i32 [2, 3]; compare it, such as with .ne(0)"
        );
        mistake!(
            x.logaddexp(Tensor::ones([2], DType::F32)),
            "logaddexp: shapes [2, 3] and [2] do not broadcast: 3 against 2 in dimension -1, which must be equal or 1"
        );
        mistake!(
            x.cast(DType::Bool).relu6(),
            "relu6: not defined for bools, got bool [2, 3]; cast first, such as with .cast(DType::I64)"
        );
        mistake!(x.glu(-1), "glu: axis 1 of shape [2, 3] has 3 elements, which have no half");
        mistake!(
            x.prelu(&Tensor::ones([4], DType::F32)),
            "prelu: the weight must be f32 of 1 or 3 elements, got f32 [4]"
        );
        mistake!(&integers << 0.5, "bitwise_left_shift: needs integers, got i32 [2, 3] and the number 0.5");
    }
}
