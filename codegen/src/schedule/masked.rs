//! Elements of rows that a condition on positions leaves out: the later keys of causal attention.

use super::row_contraction::RowContraction;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{BinaryOp, ReduceOp, UnaryOp};

/// From an element on, all that a row has is one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masked {
    /// The number.
    pub(crate) fill: ValueId,
    /// So far behind the element of the row's own number it begins.
    pub(crate) behind: i64,
}

/// What a value is at the elements that are left out, if the number is negative infinity, and the row has others.
#[derive(Clone, Copy, PartialEq)]
enum There {
    NegativeInfinity,
    /// Unless the whole row is NaN.
    Zero,
    /// The same for all of a row.
    OfRow,
}

impl RowContraction {
    /// What is left out of each row, if a number of negative infinity makes it nothing in all that is reduced or
    /// multiplied: a zero weight.
    pub(crate) fn masked(&self, kernel: &Kernel) -> Option<Masked> {
        let ([score], &[row]) = (self.scores.as_slice(), self.contraction.rows.as_slice()) else {
            return None;
        };
        let (score, product) = (score.products[0].sum, *self.contraction.products.first()?);
        let reads = |id: ValueId| kernel.operands(&kernel.value(id).op).contains(&score);
        let below = kernel.down_from([product.left]);
        let is_masking = |id: &ValueId| {
            let op = &kernel.value(*id).op;
            matches!(op, ValueOp::Select(..)) && kernel.down_from([*id]).contains(&score)
        };
        // The first one above the score; all else goes by it.
        let mask = below.iter().copied().find(is_masking)?;
        let inside = kernel.down_from([mask]);
        if below.iter().any(|&id| reads(id) && !inside.contains(&id)) {
            return None;
        }
        let ValueOp::Select(condition, a, b) = kernel.value(mask).op else { return None };
        let is_number =
            |id: ValueId| matches!(kernel.value(id).op, ValueOp::Argument(_) | ValueOp::Literal(_));
        let (fill, is_left_out) = if is_number(a) { (a, true) } else { (b, false) };
        let ValueOp::Binary(op, left, right) = kernel.value(condition).op else { return None };
        let (ValueOp::Position(left), ValueOp::Position(right)) =
            (&kernel.value(left).op, &kernel.value(right).op)
        else {
            return None;
        };
        // Holds from where the distance reaches the least on.
        let (distance, least) = match op {
            BinaryOp::Lt => (right.sub(left), 1),
            BinaryOp::Le => (right.sub(left), 0),
            BinaryOp::Gt => (left.sub(right), 1),
            BinaryOp::Ge => (left.sub(right), 0),
            _ => return None,
        };
        let (distance, least) = if is_left_out { (distance, least) } else { (distance.scale(-1), 1 - least) };
        let is_diagonal = distance.terms().len() == 2
            && distance.coefficient(self.along) == Some(1)
            && distance.coefficient(row) == Some(-1);
        let is_nothing = || {
            let reduces_nothing = |&id: &ValueId| match &kernel.value(id).op {
                ValueOp::Reduce { op: ReduceOp::Max, operand, position: None, .. } => {
                    self.there(kernel, mask, *operand) == Some(There::NegativeInfinity)
                }
                ValueOp::Reduce { op: ReduceOp::Sum, operand, .. } => {
                    self.there(kernel, mask, *operand) == Some(There::Zero)
                }
                _ => false,
            };
            self.statistics.iter().all(reduces_nothing)
                && self.there(kernel, mask, product.left) == Some(There::Zero)
        };
        let behind = least - distance.constant_term();
        (is_number(fill) && is_diagonal && is_nothing()).then_some(Masked { fill, behind })
    }

    fn there(&self, kernel: &Kernel, mask: ValueId, id: ValueId) -> Option<There> {
        use There::{NegativeInfinity, OfRow, Zero};
        if id == mask {
            return Some(NegativeInfinity);
        }
        if !kernel.value(id).axes.contains(&self.along) {
            return Some(OfRow);
        }
        let of = |id: ValueId| self.there(kernel, mask, id);
        match kernel.value(id).op {
            ValueOp::Unary(UnaryOp::Exp, a) => (of(a)? == NegativeInfinity).then_some(Zero),
            // Of a row whose greatest number is infinite all is NaN, whatever is left out.
            ValueOp::Binary(BinaryOp::Sub, a, b) => match (of(a)?, &kernel.value(b).op) {
                (NegativeInfinity, ValueOp::Reduce { op: ReduceOp::Max, .. }) => Some(NegativeInfinity),
                _ => None,
            },
            ValueOp::Binary(BinaryOp::Div, a, b) => match (of(a)?, &kernel.value(b).op) {
                (Zero, ValueOp::Reduce { op: ReduceOp::Sum, .. }) => Some(Zero),
                _ => None,
            },
            ValueOp::Binary(BinaryOp::Mul, a, b) => match (of(a)?, &kernel.value(b).op) {
                (Zero, &ValueOp::Unary(UnaryOp::Reciprocal, sum)) => {
                    let is_sum = matches!(kernel.value(sum).op, ValueOp::Reduce { op: ReduceOp::Sum, .. });
                    is_sum.then_some(Zero)
                }
                _ => None,
            },
            _ => None,
        }
    }
}
