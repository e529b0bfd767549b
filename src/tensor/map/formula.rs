//! Formulas over the elements of tensors, recorded as they are written.
//!
//! [`formula`] brings operands to one shape and dtype and hands them over as [`Term`]s, whose operators and methods
//! record primitives of the call. On the 16-bit floats a formula is computed in `F32` and rounded once, at its end.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::operands::{Rule, unified};
use crate::graph::op::{Constant, ConstantRole, Op};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Number, Operand};
use crate::{BinaryOp, DType, Result, Scalar, Tensor, UnaryOp};

/// The result of a formula in the dtype in which the operands meet.
pub(crate) fn formula<const N: usize>(
    call: Call,
    rule: Rule,
    operands: [Operand; N],
    compute: impl FnOnce([Term; N]) -> Term,
) -> Result<Tensor> {
    let dtype = rule.dtype(call, &operands)?;
    let shapes = operands.each_ref().map(Operand::shape);
    let shape = call.broadcast(&shapes.each_ref())?;
    let wide = dtype.compute();
    let terms = operands.map(|operand| Term { call, value: unified(call, operand, wide, &shape) });
    let result = compute(terms).value?;
    match result.node.dtype == wide {
        true => call.cast(&result, dtype),
        false => Ok(result),
    }
}

/// A tensor within a call. An error stays one: the first is the formula's.
#[derive(Clone)]
pub(crate) struct Term {
    pub(crate) call: Call,
    pub(crate) value: Result<Tensor>,
}

/// What stands beside a term.
pub(crate) enum Beside {
    /// A term of the same shape and dtype.
    Term(Term),
    /// A number that belongs to the formula.
    Literal(f64),
    /// A number of the user's.
    Argument(f64),
}

impl Beside {
    /// The number with its role, or the term.
    fn number(self) -> Result<(f64, ConstantRole), Term> {
        match self {
            Beside::Term(term) => Err(term),
            Beside::Literal(number) => Ok((number, ConstantRole::Literal)),
            Beside::Argument(number) => Ok((number, ConstantRole::Argument)),
        }
    }
}

/// A number of the user's, in a formula: another one is not another kernel.
#[derive(Clone, Copy)]
pub(crate) struct Argument(pub(crate) f64);

impl From<Term> for Beside {
    fn from(term: Term) -> Beside {
        Beside::Term(term)
    }
}

impl From<&Term> for Beside {
    fn from(term: &Term) -> Beside {
        Beside::Term(term.clone())
    }
}

impl From<f64> for Beside {
    fn from(number: f64) -> Beside {
        Beside::Literal(number)
    }
}

impl From<Argument> for Beside {
    fn from(number: Argument) -> Beside {
        Beside::Argument(number.0)
    }
}

/// The number in a formula's dtype, which must hold one of the user's.
fn scalar(call: Call, dtype: DType, number: f64, role: ConstantRole) -> Result<Scalar> {
    match role {
        ConstantRole::Argument => Number::Float(number).held(call, dtype),
        ConstantRole::Literal => Ok(Scalar::from_f64(dtype, number)),
    }
}

macro_rules! term_methods {
    (unary: $($unary:ident = $unary_op:ident),*; binary: $($binary:ident = $binary_op:ident),*) => {
        impl Term {
            $(pub(crate) fn $unary(&self) -> Term {
                self.with(|call, x| call.unary(UnaryOp::$unary_op, x))
            })*

            $(pub(crate) fn $binary(&self, other: impl Into<Beside>) -> Term {
                self.binary(BinaryOp::$binary_op, other)
            })*
        }
    };
}

// What formulas use.
term_methods! {
    unary: abs = Abs, erf = Erf, erfc = Erfc, exp = Exp, exp2 = Exp2, expm1 = Expm1, log = Log, log1p = Log1p, sin = Sin, cos = Cos, tanh = Tanh,
        square = Square, sqrt = Sqrt, i0 = I0, round = Round, trunc = Trunc, sign = Sign, isnan = IsNan, isfinite = IsFinite, not = Not;
    binary: maximum = Maximum, minimum = Minimum, and = And, or = Or, eq = Eq, lt = Lt, le = Le, gt = Gt, ge = Ge
}

impl Term {
    fn with(&self, record: impl FnOnce(Call, &Tensor) -> Result<Tensor>) -> Term {
        let value = self.value.as_ref().map_err(Clone::clone).and_then(|x| record(self.call, x));
        Term { call: self.call, value }
    }

    /// The number at every position of the term.
    pub(crate) fn like(&self, number: impl Into<Beside>) -> Term {
        let (number, role) = match number.into().number() {
            Ok(number) => number,
            Err(term) => return term,
        };
        self.with(|call, x| {
            let (shape, dtype) = x.known()?;
            call.filled(scalar(call, dtype, number, role)?, role, shape)
        })
    }

    pub(crate) fn binary(&self, op: BinaryOp, other: impl Into<Beside>) -> Term {
        match other.into().number() {
            Ok((number, role)) => self.with(|call, x| {
                let (shape, dtype) = x.known()?;
                let value = scalar(call, dtype, number, role)?;
                match op.accepts(dtype) && !x.node.is_of_step {
                    true => Ok(call.with_number(op, x.clone(), Constant { value, role }, false)),
                    false => call.binary(op, x, &call.filled(value, role, shape)?),
                }
            }),
            Err(other) => self.with(|call, x| call.binary(op, x, &other.value?)),
        }
    }

    /// `a` where this `Bool` term is true, `b` elsewhere; one of them is a term.
    pub(crate) fn select(&self, a: impl Into<Beside>, b: impl Into<Beside>) -> Term {
        let (a, b) = match (a.into(), b.into()) {
            (Beside::Term(a), b) => (a.clone(), a.like(b)),
            (a, Beside::Term(b)) => (b.like(a), b),
            (a, b) => (self.like(a), self.like(b)),
        };
        self.with(|call, condition| {
            let (a, b) = (a.value?, b.value?);
            let (shape, dtype) = a.known()?;
            call.record(Op::Select, &[condition, &a, &b], shape.clone(), dtype)
        })
    }

    /// Limited to a range, NaN staying NaN.
    pub(crate) fn clamp(&self, low: impl Into<Beside>, high: impl Into<Beside>) -> Term {
        self.maximum(low).minimum(high)
    }

    /// The larger of the two. Where they are equal, what reaches it reaches the term and not the limit, as in PyTorch's `clamp`.
    pub(crate) fn at_least(&self, low: &Term) -> Term {
        self.maximum(low)
            .derived([self, low], |g, [x, low], _| [low.le(&x).select(&g, 0.0), x.lt(low).select(&g, 0.0)])
    }

    /// The smaller of the two, as [`Term::at_least`].
    pub(crate) fn at_most(&self, high: &Term) -> Term {
        self.minimum(high).derived([self, high], |g, [x, high], _| {
            [x.le(&high).select(&g, 0.0), high.lt(x).select(&g, 0.0)]
        })
    }

    /// Limited to a range of numbers, from whose ends on the slope is 0.
    pub(crate) fn flattened<T>(&self, low: T, high: T) -> Term
    where
        T: Into<Beside> + Copy + Send + Sync + 'static,
    {
        self.clamp(low, high).derived([self], move |g, [x], _| [x.le(low).or(x.ge(high)).select(0.0, g)])
    }

    /// `1 / (1 + exp(-x))`.
    pub(crate) fn sigmoid(&self) -> Term {
        let denominator = (-self).exp() + 1.0;
        let sigmoid = denominator.with(|call, x| call.unary(UnaryOp::Reciprocal, x));
        // Where the exponential is infinite, its slope times the reciprocal's is NaN.
        sigmoid.derived([self], |g, _, y| [g * (&y * (-&y + 1.0))])
    }

    /// `log(sigmoid(x))`, without overflow: `min(x, 0) - log1p(exp(-|x|))`.
    pub(crate) fn logsigmoid(&self) -> Term {
        let logarithm = self.minimum(0.0) - (-self.abs()).exp().log1p();
        // Both parts have a bend at 0, their sum has none.
        logarithm.derived([self], |g, [x], _| [g * (-x).sigmoid()])
    }

    /// `log(1 + exp(x))`, infinite where that overflows.
    pub(crate) fn softplus(&self) -> Term {
        self.exp().log1p().derived([self], |g, [x], _| [g * x.sigmoid()])
    }

    /// The term, whose gradients by other terms follow from a rule: what reaches each of them, of what reaches the term, of
    /// these, and of the term. It is for functions whose parts have no slope, or none that is finite, where they have one.
    pub(crate) fn derived<const N: usize>(
        &self,
        sources: [&Term; N],
        rule: impl Fn(Term, [Term; N], Term) -> [Term; N] + Send + Sync + 'static,
    ) -> Term {
        let values = sources.map(|source| source.value.clone());
        self.with(|call, y| {
            if !y.known()?.1.is_float() {
                return Ok(y.clone());
            }
            let values: Vec<Tensor> = values.into_iter().collect::<Result<_>>()?;
            let sources: Vec<&Tensor> = values.iter().collect();
            Ok(call.derived(y, &sources, move |g, all| {
                let call = Call::here("grad");
                let term = |x: &Tensor| Term { call, value: Ok(x.clone()) };
                let sources = std::array::from_fn(|place| term(&all[place + 1]));
                rule(term(g), sources, term(&all[0])).into_iter().map(|adjoint| adjoint.value).collect()
            }))
        })
    }
}

macro_rules! term_operators {
    ($($trait:ident, $method:ident, $op:ident;)*) => {$(
        impl<R: Into<Beside>> $trait<R> for Term {
            type Output = Term;

            fn $method(self, right: R) -> Term {
                self.binary(BinaryOp::$op, right)
            }
        }

        impl<R: Into<Beside>> $trait<R> for &Term {
            type Output = Term;

            fn $method(self, right: R) -> Term {
                self.binary(BinaryOp::$op, right)
            }
        }
    )*};
}
term_operators! {
    Add, add, Add;
    Sub, sub, Sub;
    Mul, mul, Mul;
    Div, div, Div;
}

impl Neg for Term {
    type Output = Term;

    fn neg(self) -> Term {
        -&self
    }
}

impl Neg for &Term {
    type Output = Term;

    fn neg(self) -> Term {
        self.with(|call, x| call.unary(UnaryOp::Neg, x))
    }
}
