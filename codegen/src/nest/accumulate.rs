//! Partial results of a reduction: how they start, take a value, and merge.

use super::Parameter;
use super::emitter::Emitter;
use super::loops::{halving, stepping};
use super::stmt::Arithmetic::{Add, Div, Equal, Mul};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::ops::{Algebra, Taken};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};

/// The variables of one partial result, as its monoid declares them.
#[derive(Clone, Debug)]
pub(super) struct Accumulator {
    pub(super) op: ReduceOp,
    /// The values'.
    pub(super) dtype: DType,
    pub(super) parts: Vec<Var>,
    /// What counts positions.
    pub(super) index: DType,
    lanes: Option<u64>,
}

/// Where a partial result is: the part's number to the part's expression.
type Place<'a> = &'a dyn Fn(usize) -> Expr;

/// An accumulator, in one lane of it, as what the formulas of monoids change: they become statements.
struct Formula<'e, 'k> {
    emitter: &'e mut Emitter<'k>,
    of: &'e Accumulator,
    lane: Option<&'e Expr>,
}

impl Algebra for Formula<'_, '_> {
    type Value = Expr;

    fn part(&self, part: usize) -> Expr {
        self.of.part(part, self.lane)
    }

    fn set(&mut self, part: usize, value: Expr) {
        self.emitter.push(set(self.of.part(part, self.lane), value));
    }

    fn literal(&self, value: Scalar) -> Expr {
        Expr::Literal(value)
    }

    fn unary(&self, op: UnaryOp, dtype: DType, a: Expr) -> Expr {
        Expr::Unary(op, dtype, Box::new(a))
    }

    fn binary(&self, op: BinaryOp, dtype: DType, a: Expr, b: Expr) -> Expr {
        Expr::Binary(op, dtype, Box::new(a), Box::new(b))
    }

    fn select(&self, condition: Expr, a: Expr, b: Expr) -> Expr {
        Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
    }

    fn bind(&mut self, name: &'static str, dtype: DType, value: Expr) -> Expr {
        let name = self.emitter.fresh(name);
        Expr::Name(self.emitter.bind(name, Type::Register(dtype), value))
    }

    fn named(&mut self, dtype: DType, value: Expr) -> Expr {
        self.emitter.named(value, dtype)
    }
}

impl Accumulator {
    /// Declares the variables of a reduction, or arrays with a partial result for each lane, holding no values yet.
    pub(super) fn of(
        emitter: &mut Emitter,
        kernel: &Kernel,
        id: ValueId,
        lanes: Option<u64>,
    ) -> Option<Accumulator> {
        let own = Accumulator::undefined(emitter, kernel, id, lanes)?;
        if lanes.is_some() {
            own.reset(emitter);
        }
        Some(own)
    }

    /// The same, but that nothing is in the arrays yet.
    pub(super) fn undefined(
        emitter: &mut Emitter,
        kernel: &Kernel,
        id: ValueId,
        lanes: Option<u64>,
    ) -> Option<Accumulator> {
        let ValueOp::Reduce { op, axes, operand, .. } = &kernel.value(id).op else { return None };
        let positions = axes.iter().fold(1, |n: u64, &axis| n.saturating_mul(kernel.axis(axis).extent));
        let index = if positions <= i32::MAX as u64 { DType::I32 } else { DType::I64 };
        Some(Accumulator::new(emitter, *op, kernel.value(*operand).dtype, index, lanes))
    }

    /// Takes a reduction's operand at the position that is bound.
    pub(super) fn take(
        &self,
        emitter: &mut Emitter,
        id: ValueId,
        lane: Option<&Expr>,
        weight: Option<&Expr>,
    ) {
        let ValueOp::Reduce { operand, position, .. } = emitter.kernel.value(id).op else { return };
        let value = emitter.value(operand);
        let position = position.map(|position| match (emitter.value(position), self.index) {
            (position, DType::I64) => position,
            (position, to) => Expr::Cast { from: DType::I64, to, operand: Box::new(position) },
        });
        self.update(emitter, Taken { value, position, weight: weight.cloned() }, lane);
    }

    /// Takes a value of a monoid that asks for no position, or a partial result of other values if that is one number.
    pub(super) fn take_value(&self, emitter: &mut Emitter, value: Expr, lane: Option<&Expr>) {
        self.update(emitter, Taken { value, position: None, weight: None }, lane);
    }

    fn update(&self, emitter: &mut Emitter, taken: Taken<Expr>, lane: Option<&Expr>) {
        self.op.take(&mut Formula { emitter, of: self, lane }, self.dtype, taken);
    }

    /// As [`Accumulator::of`], of what has no positions.
    pub(super) fn declare(
        emitter: &mut Emitter,
        op: ReduceOp,
        dtype: DType,
        lanes: Option<u64>,
    ) -> Accumulator {
        let own = Accumulator::new(emitter, op, dtype, DType::I64, lanes);
        if lanes.is_some() {
            own.reset(emitter);
        }
        own
    }

    /// Declares the variables. Arrays have no values.
    fn new(
        emitter: &mut Emitter,
        op: ReduceOp,
        dtype: DType,
        index: DType,
        lanes: Option<u64>,
    ) -> Accumulator {
        let parts: Vec<Var> = op.parts().iter().map(|part| emitter.fresh(part.name)).collect();
        let accumulator = Accumulator { op, dtype, parts, index, lanes };
        for part in 0..accumulator.parts.len() {
            let (var, ty) = (accumulator.parts[part], Type::Register(accumulator.part_dtype(part)));
            match lanes {
                None => emitter.variable(var, ty, accumulator.identity(part)),
                Some(lanes) => emitter.array(var, ty, lanes),
            };
        }
        accumulator
    }

    /// Holds no values again, in any lane.
    pub(super) fn reset(&self, emitter: &mut Emitter) {
        match self.lanes {
            None => self.assign_identity(None).into_iter().for_each(|assign| emitter.push(assign)),
            Some(lanes) => {
                emitter.push(for_lanes(lanes, self.assign_identity(Some(&Expr::name(Var::Lane)))));
            }
        }
    }

    /// What makes it hold no values.
    pub(super) fn assign_identity(&self, lane: Option<&Expr>) -> Vec<Stmt> {
        (0..self.parts.len()).map(|part| set(self.part(part, lane), self.identity(part))).collect()
    }

    fn identity(&self, part: usize) -> Expr {
        Expr::Literal(self.op.parts()[part].identity(self.part_dtype(part)))
    }

    /// What a part is.
    pub(super) fn part_dtype(&self, part: usize) -> DType {
        if self.op.parts()[part].is_position { self.index } else { self.dtype }
    }

    /// The part that is a position.
    pub(super) fn position(&self) -> Option<usize> {
        self.op.parts().iter().position(|part| part.is_position)
    }

    pub(super) fn part(&self, part: usize, lane: Option<&Expr>) -> Expr {
        match lane {
            None => Expr::Name(self.parts[part]),
            Some(lane) => Expr::element(self.parts[part], lane.clone()),
        }
    }

    /// The number that a partial result is, where it is one.
    pub(super) fn place(&self, lane: Option<&Expr>) -> Expr {
        self.part(0, lane)
    }

    /// The variable of that number.
    pub(super) fn name(&self) -> Var {
        self.parts[0]
    }

    /// What two numbers are together, where partial results are one.
    pub(super) fn combined(&self, emitter: &mut Emitter, a: Expr, b: Expr) -> Expr {
        let b = emitter.named(b, self.dtype);
        self.op.combined(&mut Formula { emitter, of: self, lane: None }, self.dtype, a, b)
    }

    fn binary(&self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        Expr::Binary(op, self.dtype, Box::new(a), Box::new(b))
    }

    fn number(&self, value: i64) -> Expr {
        Expr::Literal(Scalar::from_i64(self.dtype, value))
    }

    fn one(&self) -> Expr {
        self.number(1)
    }

    /// An accumulator that counts for all that count, if they count in one type.
    pub(super) fn common_welford(accumulators: &[Accumulator]) -> Option<&Accumulator> {
        let mut counting = accumulators.iter().filter(|a| a.op == ReduceOp::SquaredDeviations);
        let first = counting.next()?;
        counting.all(|other| other.dtype == first.dtype).then_some(first)
    }

    /// A counter of values per lane, for [`Accumulator::next_step`].
    pub(super) fn declare_steps(&self, emitter: &mut Emitter) -> Expr {
        let steps = emitter.fresh("steps");
        Expr::Name(emitter.variable(steps, Type::Register(self.dtype), self.number(0)))
    }

    /// Counts a value in all lanes, and gives its weight.
    pub(super) fn next_step(&self, emitter: &mut Emitter, steps: &Expr) -> Expr {
        emitter.push(set(steps.clone(), self.binary(BinaryOp::Add, steps.clone(), self.one())));
        let weight = emitter.fresh("weight");
        let value = self.binary(BinaryOp::Div, self.one(), steps.clone());
        Expr::Name(emitter.bind(weight, Type::Register(self.dtype), value))
    }

    /// Gives all lanes the common count.
    pub(super) fn spread_steps(&self, emitter: &mut Emitter, steps: &Expr) {
        if let (ReduceOp::SquaredDeviations, Some(lanes)) = (self.op, self.lanes) {
            let body = vec![set(self.part(2, Some(&Expr::name(Var::Lane))), steps.clone())];
            emitter.push(for_lanes(lanes, body));
        }
    }

    /// Becomes another partial result.
    pub(super) fn copy(&self, emitter: &mut Emitter, lane: Option<&Expr>, other: Place) {
        (0..self.parts.len()).for_each(|part| emitter.push(set(self.part(part, lane), other(part))));
    }

    /// Takes another partial result.
    pub(super) fn merge(&self, emitter: &mut Emitter, lane: Option<&Expr>, other: Place) {
        let other: Vec<Expr> = (0..self.parts.len()).map(other).collect();
        self.op.merge(&mut Formula { emitter, of: self, lane }, self.dtype, self.index, &other);
    }

    /// Whether something remains to be done when all values have been taken and merged.
    pub(super) fn settles(&self) -> bool {
        self.op.settles()
    }

    /// Does it.
    pub(super) fn settle(&self, emitter: &mut Emitter, lane: Option<&Expr>) {
        self.op.settle(&mut Formula { emitter, of: self, lane }, self.dtype);
    }

    /// The reduction's result.
    pub(super) fn result(&self, lane: Option<&Expr>) -> Expr {
        let part = self.op.result_part();
        let result = self.part(part, lane);
        match self.part_dtype(part) {
            from if self.op.is_position() && from != DType::I64 => {
                Expr::Cast { from, to: DType::I64, operand: Box::new(result) }
            }
            _ => result,
        }
    }

    /// Merges across a group of `width` neighbouring threads; all of them get the result.
    pub(super) fn merge_by_shuffles(&self, emitter: &mut Emitter, width: u32) {
        if width <= 1 {
            return;
        }
        let step = emitter.index("step");
        emitter.repeat(halving(step, u64::from(width / 2), LoopHint::Unroll), |emitter| {
            self.merge(emitter, None, &|part| Expr::ShuffleXor {
                value: Box::new(self.part(part, None)),
                mask: Box::new(Expr::Name(step)),
                width,
            });
        });
    }

    /// Merges across a block of `warps` warps in which each warp holds one partial result in all of
    /// its lanes; all threads get the result. The prefix names the shared arrays.
    pub(super) fn merge_by_shared_memory(&self, emitter: &mut Emitter, warps: u32, prefix: &str) {
        if warps <= 1 {
            return;
        }
        let thread = || Expr::Builtin(Builtin::ThreadX);
        let shared = self.declare_shared(emitter, prefix, u64::from(warps));
        let warp = thread().then(Div, 32);
        let writes = (0..shared.len())
            .map(|part| set(Expr::element(shared[part], warp.clone()), self.part(part, None)))
            .collect();
        let first_lane = thread().then(super::stmt::Arithmetic::Rem, 32).then(Equal, 0);
        emitter.push(Stmt::If { condition: first_lane, then: writes, otherwise: Vec::new() });
        emitter.push(Stmt::Barrier);
        let slot = thread().then(super::stmt::Arithmetic::Rem, u64::from(warps));
        for (part, array) in shared.iter().enumerate() {
            emitter.push(set(self.part(part, None), Expr::element(array, slot.clone())));
        }
        self.merge_by_shuffles(emitter, warps);
    }

    /// Arrays in shared memory for partial results.
    pub(super) fn declare_shared(&self, emitter: &mut Emitter, prefix: &str, len: u64) -> Vec<Var> {
        let parts = self.parts.iter().enumerate();
        parts
            .map(|(n, &part)| emitter.shared(prefix, part, Type::Register(self.part_dtype(n)), len))
            .collect()
    }

    /// Merges the lanes of arrays into lane 0, halving: the same order on every machine.
    pub(super) fn merge_lanes(&self, emitter: &mut Emitter) {
        let Some(lanes) = self.lanes.filter(|&lanes| lanes > 1) else { return };
        let lane = Expr::name(Var::Lane);
        let step = emitter.index("step");
        emitter.open(&[], false);
        let partner = lane.clone().then(Add, step);
        self.merge(emitter, Some(&lane), &|part| self.part(part, Some(&partner)));
        let body = emitter.close();
        let inner = stepping(Var::Lane, (0, step), 1, LoopHint::Simd).of(body);
        emitter.push(halving(step, lanes / 2, LoopHint::None).of(vec![inner]));
    }
}

/// The place in the n-th workspace.
fn workspace(number: usize, at: &Expr) -> Expr {
    Expr::element(Parameter::Workspace(number), at.clone())
}

/// Writes partial results to the workspaces, which have one for each part of them in this order.
pub(super) fn save(emitter: &mut Emitter, accumulators: &[Accumulator], lane: Option<&Expr>, at: &Expr) {
    let parts =
        accumulators.iter().flat_map(|own| (0..own.parts.len()).map(move |part| own.part(part, lane)));
    parts.enumerate().for_each(|(number, part)| emitter.push(set(workspace(number, at), part)));
}

/// Lets accumulators take partial results from the workspaces.
pub(super) fn load(emitter: &mut Emitter, accumulators: &[Accumulator], lane: Option<&Expr>, at: &Expr) {
    let mut first = 0;
    for accumulator in accumulators {
        accumulator.merge(emitter, lane, &|part| workspace(first + part, at));
        first += accumulator.parts.len();
    }
}

/// `target = value`.
pub(super) fn set(target: impl Into<Expr>, value: impl Into<Expr>) -> Stmt {
    Stmt::Assign { target: target.into(), value: value.into() }
}

/// A C compiler that is told to find vectors also unrolls loops over stores, about which it then takes seconds: so few lanes
/// are not worth it.
const FEW_LANES: u64 = 4;

/// `for (l = 0; l < lanes; ++l)`, vectorised or unrolled.
pub(super) fn for_lanes(lanes: u64, body: Vec<Stmt>) -> Stmt {
    stepping(Var::Lane, (0, lanes), 1, if lanes <= FEW_LANES { LoopHint::Unroll } else { LoopHint::Simd })
        .of(body)
}

/// `a * b + c` on indices.
pub(super) fn mul_add(a: impl Into<Expr>, b: impl Into<Expr>, c: impl Into<Expr>) -> Expr {
    a.into().then(Mul, b).then(Add, c)
}
