//! Elements of rows that conditions on positions leave out: the later keys of causal attention, all keys outside of a window.

use super::row_contraction::RowContraction;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, ReduceOp, UnaryOp};

/// Integers are compared as they are in elements of rows where none comes near what 32 bits hold.
pub(crate) const MOST_POSITIONS: u64 = 1 << 30;

/// Elements that are filled with numbers wherever a condition does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Masked {
    /// The numbers, if they are negative infinity.
    pub(crate) fills: Vec<ValueId>,
    /// And numbers that weights of nothing become, if they are zero.
    pub(crate) zeros: Vec<ValueId>,
    /// Where the others are.
    pub(crate) kept: Kept,
}

/// A part of each row that has all elements at which a condition holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kept {
    All,
    None,
    Until(Distance),
    From(Distance),
    Both(Box<[Kept; 2]>),
    Either(Box<[Kept; 2]>),
}

/// `minuend - subtrahend + more`, of integers at the row's first element, as an element of the row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Distance {
    pub(crate) minuend: ValueId,
    pub(crate) subtrahend: ValueId,
    pub(crate) more: i64,
}

impl Masked {
    /// Numbers that are known when the kernel runs, and what they must be.
    pub(crate) fn numbers(&self, kernel: &Kernel) -> Vec<(ValueId, f64)> {
        let infinities = self.fills.iter().map(|&id| (id, f64::NEG_INFINITY));
        let all = infinities.chain(self.zeros.iter().map(|&id| (id, 0.0)));
        let is_known = |(id, value): &(ValueId, f64)| match kernel.value(*id).op {
            ValueOp::Literal(literal) => literal.as_f64() == *value,
            _ => false,
        };
        all.filter(|number| !is_known(number)).collect()
    }
}

impl Kept {
    /// Whether rows begin with elements that are left out.
    pub(crate) fn has_beginning(&self) -> bool {
        match self {
            Kept::From(_) => true,
            Kept::Both(parts) | Kept::Either(parts) => parts.iter().any(Kept::has_beginning),
            Kept::All | Kept::None | Kept::Until(_) => false,
        }
    }

    pub(crate) fn distances(&self) -> Vec<Distance> {
        match self {
            Kept::All | Kept::None => Vec::new(),
            Kept::Until(distance) | Kept::From(distance) => vec![*distance],
            Kept::Both(parts) | Kept::Either(parts) => parts.iter().flat_map(Kept::distances).collect(),
        }
    }

    fn both(a: Kept, b: Kept) -> Kept {
        match (a, b) {
            (Kept::None, _) | (_, Kept::None) => Kept::None,
            (Kept::All, other) | (other, Kept::All) => other,
            (a, b) => Kept::Both(Box::new([a, b])),
        }
    }

    fn either(a: Kept, b: Kept) -> Kept {
        match (a, b) {
            (Kept::All, _) | (_, Kept::All) => Kept::All,
            (Kept::None, other) | (other, Kept::None) => other,
            (a, b) => Kept::Either(Box::new([a, b])),
        }
    }

    /// Where a condition along an axis holds, or does not.
    fn of(kernel: &Kernel, along: AxisId, condition: ValueId, holds: bool) -> Kept {
        let of = |id: ValueId, holds: bool| Kept::of(kernel, along, id, holds);
        match kernel.value(condition).op {
            ValueOp::Literal(truth) => match (truth.as_f64() != 0.0) == holds {
                true => Kept::All,
                false => Kept::None,
            },
            ValueOp::Unary(UnaryOp::Not, a) => of(a, !holds),
            ValueOp::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b)
                if kernel.value(a).dtype == DType::Bool =>
            {
                match (op == BinaryOp::And) == holds {
                    true => Kept::both(of(a, holds), of(b, holds)),
                    false => Kept::either(of(a, holds), of(b, holds)),
                }
            }
            ValueOp::Select(choice, a, b) => Kept::either(
                Kept::both(of(choice, true), of(a, holds)),
                Kept::both(of(choice, false), of(b, holds)),
            ),
            ValueOp::Binary(op, a, b) => Kept::compared(kernel, along, op, [a, b], holds),
            _ => Kept::All,
        }
    }

    fn compared(kernel: &Kernel, along: AxisId, op: BinaryOp, [a, b]: [ValueId; 2], holds: bool) -> Kept {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let own = |op: BinaryOp| Kept::compared(kernel, along, op, [a, b], true);
        let (left, right, more) = match (op, holds) {
            (Lt, true) | (Ge, false) => (a, b, 0),
            (Le, true) | (Gt, false) => (a, b, 1),
            (Gt, true) | (Le, false) => (b, a, 0),
            (Ge, true) | (Lt, false) => (b, a, 1),
            (Eq, true) | (Ne, false) => return Kept::both(own(Le), own(Ge)),
            _ => return Kept::All,
        };
        if !matches!(kernel.value(a).dtype, DType::I32 | DType::I64) {
            return Kept::All;
        }
        // `left - right < more`
        match growth(kernel, left, along).zip(growth(kernel, right, along)).map(|(a, b)| a - b) {
            Some(1) => Kept::Until(Distance { minuend: right, subtrahend: left, more }),
            Some(-1) => Kept::From(Distance { minuend: left, subtrahend: right, more: 1 - more }),
            _ => Kept::All,
        }
    }
}

/// By how much an integer grows from each position of an axis to the next one, but for what its dtype does not hold.
pub(crate) fn growth(kernel: &Kernel, id: ValueId, axis: AxisId) -> Option<i64> {
    let value = kernel.value(id);
    if !value.axes.contains(&axis) {
        return Some(0);
    }
    let of = |id: ValueId| growth(kernel, id, axis);
    match &value.op {
        ValueOp::Position(index) => index.coefficient(axis).filter(|growth| growth.unsigned_abs() == 1),
        ValueOp::Unary(UnaryOp::Neg, a) => Some(-of(*a)?),
        ValueOp::Binary(BinaryOp::Add, a, b) => Some(of(*a)? + of(*b)?),
        ValueOp::Binary(BinaryOp::Sub, a, b) => Some(of(*a)? - of(*b)?),
        // The lower bits are the same.
        ValueOp::Cast(DType::I32, a) if matches!(kernel.value(*a).dtype, DType::I32 | DType::I64) => of(*a),
        _ => None,
    }
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
        let [score] = self.scores.as_slice() else { return None };
        let (score, product) = (score.products[0].sum, *self.contraction.products.first()?);
        let reads = |id: ValueId, of: ValueId| kernel.operands(&kernel.value(id).op).contains(&of);
        let below = kernel.down_from([product.left]);
        let is_number =
            |id: ValueId| matches!(kernel.value(id).op, ValueOp::Argument(_) | ValueOp::Literal(_));
        let (mut masked, mut last) =
            (Masked { fills: Vec::new(), zeros: Vec::new(), kept: Kept::All }, score);
        // Masks of masked elements, each of which all else goes by.
        for &id in &below {
            let ValueOp::Select(condition, a, b) = kernel.value(id).op else { continue };
            let is_next = match masked.fills.is_empty() {
                true => kernel.down_from([id]).contains(&score),
                false => a == last || b == last,
            };
            if !is_next {
                continue;
            }
            let (fill, holds) = if is_number(a) { (a, false) } else { (b, true) };
            let inside = kernel.down_from([id]);
            if !is_number(fill) || below.iter().any(|&id| reads(id, last) && !inside.contains(&id)) {
                break;
            }
            let kept = Kept::of(kernel, self.along, condition, holds);
            if kept == Kept::All && masked.fills.is_empty() {
                continue;
            }
            masked.fills.push(fill);
            masked.kept = Kept::both(masked.kept, kept);
            last = id;
        }
        let mut zeros = Vec::new();
        let is_nothing = self.statistics.iter().all(|&id| match &kernel.value(id).op {
            ValueOp::Reduce { op: ReduceOp::Max | ReduceOp::SumExp, operand, position: None, .. } => {
                self.there(kernel, last, *operand, &mut zeros) == Some(There::NegativeInfinity)
            }
            ValueOp::Reduce { op: ReduceOp::Sum, operand, .. } => {
                self.there(kernel, last, *operand, &mut zeros) == Some(There::Zero)
            }
            _ => false,
        });
        let is_nothing =
            is_nothing && self.there(kernel, last, product.left, &mut zeros) == Some(There::Zero);
        zeros.sort();
        zeros.dedup();
        masked.zeros = zeros;
        let is_short = kernel.axes.iter().all(|axis| axis.extent < MOST_POSITIONS);
        let is_part = !masked.kept.distances().is_empty();
        (is_part && is_short && is_nothing).then_some(masked)
    }

    fn there(&self, kernel: &Kernel, mask: ValueId, id: ValueId, zeros: &mut Vec<ValueId>) -> Option<There> {
        use There::{NegativeInfinity, OfRow, Zero};
        if id == mask {
            return Some(NegativeInfinity);
        }
        let is_number =
            |id: ValueId| matches!(kernel.value(id).op, ValueOp::Argument(_) | ValueOp::Literal(_));
        if !kernel.value(id).axes.contains(&self.along) {
            return Some(OfRow);
        }
        let mut of = |id: ValueId| self.there(kernel, mask, id, zeros);
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
            ValueOp::Select(_, a, b) => {
                let (number, weight) = if is_number(a) { (a, b) } else { (b, a) };
                let is_zero = is_number(number) && of(weight)? == Zero;
                is_zero.then(|| zeros.push(number))?;
                Some(Zero)
            }
            _ => None,
        }
    }
}
