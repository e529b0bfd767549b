//! Positions of extreme values: a partial result is the extreme value so far and where it was first.
//!
//! What holds nothing is at position 0 with the value that nothing exceeds, such as -infinity; it gives way to any other
//! value, and if there is none, position 0 is right.

use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::stmt::Expr;
use crate::{BinaryOp, DType, ReduceOp, UnaryOp};

/// Which part of a partial result is the extreme value so far.
pub(super) const VALUE: usize = 0;
/// Which is its position.
pub(super) const POSITION: usize = 1;

impl Accumulator {
    /// Takes a value that comes after all others: it must be better than they are.
    pub(super) fn choose(&self, emitter: &mut Emitter, value: Expr, position: Expr, lane: Option<&Expr>) {
        let value = emitter.named(value, self.dtype);
        let position = match self.index {
            DType::I64 => position,
            to => Expr::Cast { from: DType::I64, to, operand: Box::new(position) },
        };
        let better = self.is_better(&value, &self.part(VALUE, lane));
        self.replace(emitter, better, value, position, lane);
    }

    /// Takes another partial result. The order is total, so that two threads that exchange theirs get the same.
    pub(super) fn choose_partial(
        &self,
        emitter: &mut Emitter,
        value: Expr,
        position: Expr,
        lane: Option<&Expr>,
    ) {
        let (own, at) = (self.part(VALUE, lane), self.part(POSITION, lane));
        let logical = |op, a, b| Expr::Binary(op, DType::Bool, Box::new(a), Box::new(b));
        let mut same = self.binary(BinaryOp::Eq, value.clone(), own.clone());
        if self.dtype.is_float() {
            let nan = |x: &Expr| self.binary(BinaryOp::Ne, x.clone(), x.clone());
            same = logical(BinaryOp::Or, same, logical(BinaryOp::And, nan(&value), nan(&own)));
        }
        let before = Expr::Binary(BinaryOp::Lt, self.index, Box::new(position.clone()), Box::new(at));
        let first = logical(BinaryOp::And, same, before);
        let better = logical(BinaryOp::Or, self.is_better(&value, &own), first);
        self.replace(emitter, better, value, position, lane);
    }

    fn replace(
        &self,
        emitter: &mut Emitter,
        condition: Expr,
        value: Expr,
        position: Expr,
        lane: Option<&Expr>,
    ) {
        // Twice the comparison and no variable: lanes of conditions are then as wide as those of values.
        for (part, new) in [(POSITION, position), (VALUE, value)] {
            let own = self.part(part, lane);
            let chosen = Expr::Select(Box::new(condition.clone()), Box::new(new), Box::new(own.clone()));
            emitter.push(set(own, chosen));
        }
    }

    /// Whether a value is more extreme than another; NaN is more extreme than any number.
    fn is_better(&self, value: &Expr, than: &Expr) -> Expr {
        let is_max = self.op == ReduceOp::ArgMax;
        if !self.dtype.is_float() {
            let op = if is_max { BinaryOp::Gt } else { BinaryOp::Lt };
            return self.binary(op, value.clone(), than.clone());
        }
        let op = if is_max { BinaryOp::Le } else { BinaryOp::Ge };
        let worse = self.binary(op, value.clone(), than.clone());
        let not_worse = Expr::Unary(UnaryOp::Not, DType::Bool, Box::new(worse));
        let number = self.binary(BinaryOp::Eq, than.clone(), than.clone());
        Expr::Binary(BinaryOp::And, DType::Bool, Box::new(not_worse), Box::new(number))
    }

    /// The position as the reduction's result.
    pub(super) fn position(&self, lane: Option<&Expr>) -> Expr {
        let position = self.part(POSITION, lane);
        match self.index {
            DType::I64 => position,
            from => Expr::Cast { from, to: DType::I64, operand: Box::new(position) },
        }
    }
}
