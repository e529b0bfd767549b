//! Which elements of a block's rows some row keeps, where a mask leaves out the others. Its conditions are compared as
//! positions, so that what is known when the kernel runs, such as the number of earlier keys, is known here.

use super::INDEX;
use super::accumulate::set;
use super::emitter::Emitter;
use super::loops::stepping;
use super::stmt::Arithmetic::{Add, Max, Sub};
use super::stmt::{Expr, LoopHint, Type};
use super::variable::Var;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::{Distance, Kept, Masked, RowContraction, growth};
use crate::{BinaryOp, DType, Scalar};

/// How far from zero integers are compared as positions.
const FAR: i64 = 1 << 30;

const I64: Type = Type::Register(DType::I64);

fn number(value: i64) -> Expr {
    Expr::Literal(Scalar::from_i64(DType::I64, value))
}

/// A number of elements: rows of other lengths are one text but for that.
fn position(value: i64) -> Expr {
    Expr::Position(IndexExpr::constant(value))
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, DType::I64, Box::new(a), Box::new(b))
}

/// Rows of a block, as positions of their axes.
pub(super) struct Rows<'a> {
    pub(super) axes: &'a [AxisId],
    pub(super) first: Expr,
    pub(super) count: Expr,
}

struct Part<'a> {
    kernel: &'a Kernel,
    length: i64,
}

/// Binds the first element that one of the rows keeps, and the one after the last: at least one element.
pub(super) fn part_of_rows(
    emitter: &mut Emitter,
    of: &RowContraction,
    masked: &Masked,
    rows: &Rows,
) -> [Var; 2] {
    let kernel = emitter.kernel;
    let part = Part { kernel, length: kernel.axis(of.along).extent as i64 };
    let has_beginning = masked.kept.has_beginning();
    let first = has_beginning.then(|| emitter.variable("first_kept", I64, position(part.length)));
    let last = emitter.variable("last_kept", I64, number(1));
    // Bounds that all go one way from row to row are farthest in the first or the last one.
    let is_even = match rows.axes {
        &[axis] => {
            let growths =
                masked.kept.distances().into_iter().map(|Distance { minuend, subtrahend, .. }| {
                    Some(growth(kernel, minuend, axis)? - growth(kernel, subtrahend, axis)?)
                });
            let growths: Option<Vec<i64>> = growths.collect();
            growths.is_some_and(|all| all.iter().all(|&own| own >= 0) || all.iter().all(|&own| own <= 0))
        }
        _ => false,
    };
    let row = emitter.index("r");
    let step = match is_even {
        true => rows.count.clone().then(Sub, 1).then(Max, 1),
        false => Expr::Int(1),
    };
    emitter.repeat_pinned(stepping(row, (0, rows.count.clone()), step, LoopHint::None), |emitter| {
        let at_row = emitter.bind("at_row", INDEX, rows.first.clone().then(Add, Expr::Name(row)));
        emitter.unflatten(at_row, rows.axes, 1);
        emitter.bind(of.along, INDEX, Expr::Int(0));
        emitter.bind_axes(&[of.along]);
        let [begin, end] = part.bounds(emitter, &masked.kept);
        let mut take = |var: Var, op: BinaryOp, bound: Expr| {
            let bound = emitter.named(bound, DType::I64);
            emitter.push(set(Expr::Name(var), binary(op, Expr::Name(var), bound)));
        };
        if let Some(first) = first {
            take(first, BinaryOp::Minimum, begin.unwrap_or(number(0)));
        }
        take(last, BinaryOp::Maximum, end.unwrap_or(position(part.length)));
    });
    let end = binary(BinaryOp::Minimum, Expr::Name(last), position(part.length));
    let end = emitter.named(end, DType::I64);
    let to_index = |value: Expr| Expr::ToIndex(Box::new(value));
    let begin = match first {
        None => Expr::Int(0),
        Some(first) => {
            let least = binary(BinaryOp::Maximum, Expr::Name(first), number(0));
            let least = emitter.named(least, DType::I64);
            let before = emitter.named(binary(BinaryOp::Sub, end.clone(), number(1)), DType::I64);
            to_index(binary(BinaryOp::Minimum, least, before))
        }
    };
    let end = emitter.bind("end_kept", INDEX, to_index(end));
    [emitter.bind("begin_kept", INDEX, begin), end]
}

impl Part<'_> {
    /// The first element that a row keeps, and the one after the last, where something bounds them.
    fn bounds(&self, emitter: &mut Emitter, kept: &Kept) -> [Option<Expr>; 2] {
        let merged = |emitter: &mut Emitter, op, a: Expr, b: Expr| {
            let (a, b) = (emitter.named(a, DType::I64), emitter.named(b, DType::I64));
            binary(op, a, b)
        };
        match kept {
            Kept::All => [None, None],
            Kept::None => [Some(position(self.length)), Some(position(0))],
            Kept::Until(distance) => [None, Some(self.distance(emitter, distance, self.length))],
            Kept::From(distance) => [Some(self.distance(emitter, distance, 0)), None],
            Kept::Both(parts) => {
                let [a, b] = parts.each_ref().map(|part| self.bounds(emitter, part));
                let mut both = |op, a: Option<Expr>, b: Option<Expr>| match (a, b) {
                    (Some(a), Some(b)) => Some(merged(emitter, op, a, b)),
                    (a, b) => a.or(b),
                };
                let ([a, b], [c, d]) = (a, b);
                [both(BinaryOp::Maximum, a, c), both(BinaryOp::Minimum, b, d)]
            }
            Kept::Either(parts) => {
                let [a, b] = parts.each_ref().map(|part| self.bounds(emitter, part));
                let mut either =
                    |op, a: Option<Expr>, b: Option<Expr>| a.zip(b).map(|(a, b)| merged(emitter, op, a, b));
                let ([a, b], [c, d]) = (a, b);
                [either(BinaryOp::Minimum, a, c), either(BinaryOp::Maximum, b, d)]
            }
        }
    }

    /// A distance, or where it does not count as one of positions, all elements.
    fn distance(&self, emitter: &mut Emitter, of: &Distance, otherwise: i64) -> Expr {
        let mut conditions = Vec::new();
        let [minuend, subtrahend] = [of.minuend, of.subtrahend].map(|id| {
            let dtype = self.kernel.value(id).dtype;
            let value = emitter.value(id);
            let value = match dtype {
                DType::I64 => value,
                _ => Expr::Cast { from: dtype, to: DType::I64, operand: Box::new(value) },
            };
            if self.is_near(id) {
                return value;
            }
            let value = emitter.named(value, DType::I64);
            conditions.push(binary(BinaryOp::Gt, value.clone(), number(-FAR)));
            conditions.push(binary(BinaryOp::Lt, value.clone(), number(FAR)));
            value
        });
        let distance = binary(BinaryOp::Sub, minuend, subtrahend);
        let distance = if of.more == 0 { distance } else { binary(BinaryOp::Add, distance, number(of.more)) };
        let all = conditions
            .into_iter()
            .reduce(|a, b| Expr::Binary(BinaryOp::And, DType::Bool, Box::new(a), Box::new(b)));
        match all {
            None => distance,
            Some(condition) => {
                Expr::Select(Box::new(condition), Box::new(distance), Box::new(position(otherwise)))
            }
        }
    }

    /// Whether it is a position, or beside one by a number of the text.
    fn is_near(&self, id: ValueId) -> bool {
        match &self.kernel.value(id).op {
            ValueOp::Position(index) => index.largest_part(&self.kernel.ranges()) < FAR,
            ValueOp::Literal(value) => value.as_i64().unsigned_abs() < FAR as u64,
            _ => false,
        }
    }
}
