//! Sums of exponentials below the largest value, which is known only at the end: a partial result is the largest value
//! so far and the sum of `exp(x - largest)`, and what exceeds the largest scales the sum down to itself.

use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::stmt::{Expr, Type};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};

/// Which part of a partial result is the largest value so far.
pub(super) const MAXIMUM: usize = 0;
/// Which is the sum.
pub(super) const SUM: usize = 1;

impl Accumulator {
    /// Where the maximum starts: not at -infinity but at the least finite number, so that differences from it are
    /// numbers. Values of -infinity add nothing then, and a sum of 0 says that there was nothing else.
    pub(super) fn below_all(&self) -> Expr {
        let least = if self.dtype == DType::F64 { f64::MIN } else { f32::MIN.into() };
        Expr::Literal(Scalar::from_f64(self.dtype, least))
    }

    /// Takes `sum` times the exponential of `value`: one value, or another partial result. One exponential does, that of
    /// the distance between the maxima, by which the lower side is scaled. Exchanging the sides exchanges the operands of
    /// an addition, so that two threads that merge each other's results get the same bits.
    pub(super) fn add_exp(&self, emitter: &mut Emitter, value: Expr, sum: Expr, lane: Option<&Expr>) {
        let register = Type::Register(self.dtype);
        let (max, own) = (self.part(MAXIMUM, lane), self.part(SUM, lane));
        let distance = emitter.fresh("distance");
        let apart = self.binary(BinaryOp::Sub, value.clone(), max.clone());
        let distance = Expr::Name(emitter.bind(distance, register, apart));
        let unary = |op, a: Expr| Expr::Unary(op, self.dtype, Box::new(a));
        let scale = emitter.fresh("scale");
        let below = unary(UnaryOp::Neg, unary(UnaryOp::Abs, distance.clone()));
        let scale = Expr::Name(emitter.bind(scale, register, unary(UnaryOp::Exp, below)));
        let scaled = |sum: Expr| match sum == self.number(1) {
            true => scale.clone(),
            false => self.binary(BinaryOp::Mul, sum, scale.clone()),
        };
        let raised = self.binary(BinaryOp::Add, scaled(own.clone()), sum.clone());
        let kept = self.binary(BinaryOp::Add, own.clone(), scaled(sum));
        let exceeds = self.binary(BinaryOp::Gt, distance, self.number(0));
        emitter.push(set(own, Expr::Select(Box::new(exceeds), Box::new(raised), Box::new(kept))));
        let larger = Expr::Combine(ReduceOp::Max, self.dtype, Box::new(max.clone()), Box::new(value));
        emitter.push(set(max, larger));
    }

    /// Makes the parts what they stand for, once they hold all values: a sum of 0 means that nothing exceeded -infinity,
    /// and below an infinite maximum the sum is NaN.
    pub(super) fn settle_exp(&self, emitter: &mut Emitter, lane: Option<&Expr>) {
        let (max, sum) = (self.part(MAXIMUM, lane), self.part(SUM, lane));
        let nothing = self.binary(BinaryOp::Eq, sum.clone(), self.number(0));
        let infinity = Expr::Literal(Scalar::from_f64(self.dtype, f64::NEG_INFINITY));
        let true_max = Expr::Select(Box::new(nothing), Box::new(infinity), Box::new(max.clone()));
        emitter.push(set(max.clone(), true_max));
        let zero = self.binary(BinaryOp::Sub, max.clone(), max);
        emitter.push(set(sum.clone(), self.binary(BinaryOp::Add, sum, zero)));
    }
}
