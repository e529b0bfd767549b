//! Adjoints of scalar operations: what reaches an operand, given what reaches the result.
//!
//! They are formulas of other operations, so that gradients are made of nothing but operations that exist.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{BinaryOp, UnaryOp};

/// An expression of scalar operations over an operation's operands, its result, and what reaches that.
///
/// ```
/// use lazuli_codegen::{Formula, UnaryOp};
/// let adjoint = UnaryOp::Exp.adjoint().unwrap();
/// let formula = adjoint(Formula::Cotangent, Formula::Operand(0), Formula::Result);
/// assert_eq!(formula, Formula::Cotangent * Formula::Result);
/// assert!(UnaryOp::Floor.adjoint().is_none()); // constant wherever it has a slope
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Formula {
    /// The derivative of what is differentiated by the operation's result.
    Cotangent,
    /// One of the operands.
    Operand(usize),
    /// The operation's result.
    Result,
    /// A number.
    Number(f64),
    /// An operation on one value.
    Unary(UnaryOp, Box<Formula>),
    /// An operation on two values.
    Binary(BinaryOp, Box<Formula>, Box<Formula>),
    /// The second where the first holds, else the third.
    Select(Box<[Formula; 3]>),
    /// There is a derivative, which is longer than a formula: a composition of tensors.
    Unknown,
}

use Formula::Number;

impl Formula {
    fn of(self, op: UnaryOp) -> Formula {
        Formula::Unary(op, Box::new(self))
    }

    fn with(self, op: BinaryOp, other: impl Into<Formula>) -> Formula {
        Formula::Binary(op, Box::new(self), Box::new(other.into()))
    }

    fn square(self) -> Formula {
        self.of(UnaryOp::Square)
    }

    /// Where the formula holds.
    pub(crate) fn select(self, a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
        Formula::Select(Box::new([self, a.into(), b.into()]))
    }

    /// The formula's value for numbers: of a condition 1 or 0.
    #[cfg(test)]
    fn value(&self, cotangent: f64, operands: &[f64], result: f64) -> f64 {
        let value = |formula: &Formula| formula.value(cotangent, operands, result);
        let scalar = |number: f64| crate::Scalar::from_f64(crate::DType::F64, number);
        match self {
            Formula::Cotangent => cotangent,
            Formula::Operand(number) => operands[*number],
            Formula::Result => result,
            Formula::Number(number) => *number,
            Formula::Unary(op, x) => op.apply(scalar(value(x))).unwrap().as_f64(),
            Formula::Binary(op, a, b) => op.apply(scalar(value(a)), scalar(value(b))).unwrap().as_f64(),
            Formula::Select(parts) => value(if value(&parts[0]) != 0.0 { &parts[1] } else { &parts[2] }),
            Formula::Unknown => f64::NAN,
        }
    }
}

impl From<f64> for Formula {
    fn from(number: f64) -> Formula {
        Number(number)
    }
}

macro_rules! operators {
    ($($trait:ident, $method:ident;)*) => {$(
        impl<T: Into<Formula>> $trait<T> for Formula {
            type Output = Formula;
            fn $method(self, other: T) -> Formula {
                self.with(BinaryOp::$trait, other)
            }
        }

        impl $trait<Formula> for f64 {
            type Output = Formula;
            fn $method(self, other: Formula) -> Formula {
                Number(self).with(BinaryOp::$trait, other)
            }
        }
    )*};
}
operators! {
    Add, add;
    Sub, sub;
    Mul, mul;
    Div, div;
}

impl Neg for Formula {
    type Output = Formula;
    fn neg(self) -> Formula {
        self.of(UnaryOp::Neg)
    }
}

/// The formula of what reaches an operand, of what reaches the result, of the operand, and of the result.
pub type UnaryAdjoint = fn(Formula, Formula, Formula) -> Formula;

/// The formulas of what reaches each operand, of what reaches the result, of the operands, and of the result.
pub type BinaryAdjoint = fn(Formula, Formula, Formula, Formula) -> [Formula; 2];

impl UnaryOp {
    /// What reaches the operand. `None` where that is nothing: where the result is constant but for jumps.
    pub fn adjoint(self) -> Option<UnaryAdjoint> {
        let adjoint: UnaryAdjoint = match self {
            UnaryOp::Neg => |g, _, _| -g,
            UnaryOp::Abs => |g, x, _| g * x.of(UnaryOp::Sign),
            UnaryOp::Reciprocal => |g, _, y| -g * y.square(),
            UnaryOp::Square => |g, x, _| 2.0 * g * x,
            UnaryOp::Sqrt => |g, _, y| 0.5 * g / y,
            UnaryOp::Rsqrt => |g, _, y| -0.5 * g * y.clone().square() * y,
            UnaryOp::Cbrt => |g, _, y| g / (3.0 * y.square()),
            UnaryOp::Exp => |g, _, y| g * y,
            UnaryOp::Exp2 => |g, _, y| g * y * LN_2,
            UnaryOp::Expm1 => |g, _, y| g * (y + 1.0),
            UnaryOp::Log => |g, x, _| g / x,
            UnaryOp::Log2 => |g, x, _| g / (x * LN_2),
            UnaryOp::Log10 => |g, x, _| g / (x * LN_10),
            UnaryOp::Log1p => |g, x, _| g / (x + 1.0),
            UnaryOp::Sin => |g, x, _| g * x.of(UnaryOp::Cos),
            UnaryOp::Cos => |g, x, _| -g * x.of(UnaryOp::Sin),
            UnaryOp::Tan => |g, _, y| g * (1.0 + y.square()),
            UnaryOp::Asin => |g, x, _| g * (1.0 - x.square()).of(UnaryOp::Rsqrt),
            UnaryOp::Acos => |g, x, _| -g * (1.0 - x.square()).of(UnaryOp::Rsqrt),
            UnaryOp::Atan => |g, x, _| g / (1.0 + x.square()),
            UnaryOp::Sinh => |g, x, _| g * x.of(UnaryOp::Cosh),
            UnaryOp::Cosh => |g, x, _| g * x.of(UnaryOp::Sinh),
            UnaryOp::Tanh => |g, _, y| g * (1.0 - y.square()),
            UnaryOp::Asinh => |g, x, _| g * (x.square() + 1.0).of(UnaryOp::Rsqrt),
            UnaryOp::Acosh => |g, x, _| g * (x.square() - 1.0).of(UnaryOp::Rsqrt),
            UnaryOp::Atanh => |g, x, _| g / (1.0 - x.square()),
            UnaryOp::Erf => |g, x, _| FRAC_2_SQRT_PI * g * (-x.square()).of(UnaryOp::Exp),
            UnaryOp::Erfc => |g, x, _| -FRAC_2_SQRT_PI * g * (-x.square()).of(UnaryOp::Exp),
            UnaryOp::Erfinv => |g, _, y| g * y.square().of(UnaryOp::Exp) / FRAC_2_SQRT_PI,
            UnaryOp::Lgamma => |g, x, _| g * x.of(UnaryOp::Digamma),
            UnaryOp::Digamma => |_, _, _| Formula::Unknown,
            UnaryOp::I0 => |_, _, _| Formula::Unknown,
            UnaryOp::Relu => |g, _, y| y.with(BinaryOp::Le, 0.0).select(0.0, g),
            UnaryOp::Sign
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Round
            | UnaryOp::Trunc
            | UnaryOp::Not
            | UnaryOp::BitNot
            | UnaryOp::Bitcast
            | UnaryOp::IsNan
            | UnaryOp::IsInf
            | UnaryOp::IsFinite => return None,
        };
        Some(adjoint)
    }
}

impl BinaryOp {
    /// What reaches each operand. `None` where that is nothing: where the result is constant but for jumps.
    pub fn adjoint(self) -> Option<BinaryAdjoint> {
        let adjoint: BinaryAdjoint = match self {
            BinaryOp::Add => |g, _, _, _| [g.clone(), g],
            BinaryOp::Sub => |g, _, _, _| [g.clone(), -g],
            BinaryOp::Mul => |g, a, b, _| [g.clone() * b, g * a],
            BinaryOp::Div => |g, _, b, y| [g.clone() / b.clone(), -g * y / b],
            BinaryOp::Rem => |g, a, b, _| [g.clone(), -g * (a / b).of(UnaryOp::Floor)],
            BinaryOp::Fmod => |g, a, b, _| [g.clone(), -g * (a / b).of(UnaryOp::Trunc)],
            BinaryOp::Pow => |g, a, b, y| power_adjoint(g, a, b, y),
            BinaryOp::Maximum => |g, a, b, _| chosen(g, a, b, BinaryOp::Ge),
            BinaryOp::Minimum => |g, a, b, _| chosen(g, a, b, BinaryOp::Le),
            BinaryOp::Fmax => |g, a, b, _| chosen_number(g, a, b, BinaryOp::Ge),
            BinaryOp::Fmin => |g, a, b, _| chosen_number(g, a, b, BinaryOp::Le),
            BinaryOp::Atan2 => |g, a, b, _| angle_adjoint(g, a, b),
            BinaryOp::Hypot => |g, a, b, y| length_adjoint(g, a, b, y),
            BinaryOp::Copysign => {
                |g, a, _, y| [g * (a.of(UnaryOp::Sign) * y.of(UnaryOp::Sign)), Formula::from(0.0)]
            }
            BinaryOp::FloorDiv
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Gcd
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => return None,
        };
        Some(adjoint)
    }
}

/// Which operand a choice takes: both half where they are equal, as PyTorch.
fn chosen(g: Formula, a: Formula, b: Formula, is_first: BinaryOp) -> [Formula; 2] {
    let half = a.clone().with(BinaryOp::Eq, b.clone()).select(0.5 * g.clone(), g);
    let first = a.clone().with(is_first, b.clone());
    let second = b.with(is_first, a);
    [first.select(half.clone(), 0.0), second.select(half, 0.0)]
}

/// Of choices that pass over NaN: of equal ones, and of two NaNs, it is the first, as in PyTorch.
fn chosen_number(g: Formula, a: Formula, b: Formula, is_first: BinaryOp) -> [Formula; 2] {
    let is_first = a.with(is_first, b.clone());
    let is_alone = b.of(UnaryOp::IsNan);
    let first = is_alone.clone().select(g.clone(), is_first.clone().select(g.clone(), 0.0));
    let second = is_alone.select(0.0, is_first.select(0.0, g));
    [first, second]
}

/// Without 0 times infinity where a power is constant: PyTorch's. Powers of 0 count as constant at an exponent of 0 as well.
fn power_adjoint(g: Formula, a: Formula, b: Formula, y: Formula) -> [Formula; 2] {
    let base = g.clone() * (b.clone() * a.clone().with(BinaryOp::Pow, b.clone() - 1.0));
    let exponent = g * (y.clone() * a.clone().of(UnaryOp::Log));
    let is_constant = b.clone().with(BinaryOp::Eq, 0.0);
    // It stands here once: what would reach a second one that is not taken would be 0 times infinity.
    let are_zero = (a.of(UnaryOp::Abs) + b.of(UnaryOp::Abs)).with(BinaryOp::Eq, 0.0);
    let exponent = are_zero.select(0.0, exponent);
    [is_constant.select(0.0, base), y.with(BinaryOp::Eq, 0.0).select(0.0, exponent)]
}

/// 0 at the origin, as PyTorch.
fn angle_adjoint(g: Formula, a: Formula, b: Formula) -> [Formula; 2] {
    let square = a.clone().square() + b.clone().square();
    let share = g / square.clone().with(BinaryOp::Eq, 0.0).select(f64::INFINITY, square);
    [share.clone() * b, -share * a]
}

/// 0 at the origin, where PyTorch gives NaN.
fn length_adjoint(g: Formula, a: Formula, b: Formula, y: Formula) -> [Formula; 2] {
    let share = g / y.clone().with(BinaryOp::Eq, 0.0).select(f64::INFINITY, y);
    [share.clone() * a, share * b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::ops::Meaning;

    /// Where an operation is smooth, whatever it is.
    const POINTS: [f64; 6] = [-2.3, -0.7, -0.31, 0.4, 0.83, 2.6];

    fn slope(f: impl Fn(f64) -> f64, x: f64) -> f64 {
        let step = 1e-5;
        // Of fourth order: its own error is far below what is allowed.
        (8.0 * (f(x + step) - f(x - step)) - (f(x + 2.0 * step) - f(x - 2.0 * step))) / (12.0 * step)
    }

    fn is_near(adjoint: f64, slope: f64) -> bool {
        (adjoint - slope).abs() <= 1e-7 * (1.0 + slope.abs())
    }

    #[test]
    fn adjoints_of_one_operand_are_slopes() {
        let mut seen = 0;
        for op in UnaryOp::ALL.into_iter().filter(|op| op.result(DType::F64) == DType::F64) {
            let Some(Meaning::Exact(f) | Meaning::Near(f)) = op.floats() else { continue };
            for x in POINTS {
                let formula = op
                    .adjoint()
                    .map(|adjoint| adjoint(Formula::Cotangent, Formula::Operand(0), Formula::Result));
                if formula == Some(Formula::Unknown) || !slope(f, x).is_finite() {
                    continue;
                }
                let adjoint = formula.map_or(0.0, |formula| formula.value(3.0, &[x], f(x)));
                assert!(
                    is_near(adjoint, 3.0 * slope(f, x)),
                    "{op} at {x}: {adjoint}, not {}",
                    3.0 * slope(f, x)
                );
                seen += 1;
            }
        }
        assert!(seen > 150, "{seen} points only");
    }

    #[test]
    fn adjoints_of_two_operands_are_slopes() {
        let mut seen = 0;
        for op in BinaryOp::ALL.into_iter().filter(|op| op.result(DType::F64) == DType::F64) {
            let f = match op.floats() {
                Some(Meaning::Exact(f) | Meaning::Near(f) | Meaning::Stepwise(_, f)) => f,
                _ => continue,
            };
            for (a, b) in POINTS.into_iter().flat_map(|a| POINTS.map(|b| (a, b - 0.0437))) {
                let slopes = [slope(|a| f(a, b), a), slope(|b| f(a, b), b)];
                let adjoints = op.adjoint().map(|adjoint| {
                    adjoint(Formula::Cotangent, Formula::Operand(0), Formula::Operand(1), Formula::Result)
                });
                for place in 0..2 {
                    if !slopes[place].is_finite() {
                        continue;
                    }
                    let formula = adjoints.as_ref().map(|formulas| &formulas[place]);
                    let adjoint = formula.map_or(0.0, |formula| formula.value(3.0, &[a, b], f(a, b)));
                    let slope = 3.0 * slopes[place];
                    assert!(
                        is_near(adjoint, slope),
                        "{op} of {a} and {b} by {place}: {adjoint}, not {slope}"
                    );
                    seen += 1;
                }
            }
        }
        assert!(seen > 700, "{seen} points only");
    }

    #[test]
    fn choices_of_equal_numbers_are_as_pytorchs() {
        let shares = |op: BinaryOp, operands: [f64; 2]| {
            let adjoint = op.adjoint().unwrap();
            let formulas =
                adjoint(Formula::Cotangent, Formula::Operand(0), Formula::Operand(1), Formula::Result);
            formulas.map(|formula| formula.value(3.0, &operands, 2.0))
        };
        for op in [BinaryOp::Maximum, BinaryOp::Minimum] {
            assert_eq!(shares(op, [2.0, 2.0]), [1.5, 1.5], "{op}");
        }
        // The first alone, also beside NaN.
        for op in [BinaryOp::Fmax, BinaryOp::Fmin] {
            let nan = f64::NAN;
            for operands in [[2.0, 2.0], [2.0, nan], [nan, nan]] {
                assert_eq!(shares(op, operands), [3.0, 0.0], "{op} of {operands:?}");
            }
            assert_eq!(shares(op, [nan, 2.0]), [0.0, 3.0], "{op}");
        }
        let power = BinaryOp::Pow.adjoint().unwrap();
        let [base, exponent] =
            power(Formula::Cotangent, Formula::Operand(0), Formula::Operand(1), Formula::Result);
        assert_eq!(base.value(1.0, &[0.0, 0.0], 1.0), 0.0);
        assert_eq!(exponent.value(1.0, &[0.0, 2.0], 0.0), 0.0);
        assert_eq!(exponent.value(1.0, &[0.0, 0.0], 1.0), 0.0);
        assert_eq!(exponent.value(1.0, &[0.0, -1.0], f64::INFINITY), f64::NEG_INFINITY);
    }
}
